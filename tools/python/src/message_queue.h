/* Storage for printed lines and warnings until they are delivered to the interpreter; see
 * message_queue.c. */
#ifndef KJIT_PYTHON_MESSAGE_QUEUE_H
#define KJIT_PYTHON_MESSAGE_QUEUE_H

#include "binding.h"

/* Returns NULL if out of memory. */
binding_message_queue *binding_create_message_queue(void);
/* queue may be NULL. */
void binding_destroy_message_queue(binding_message_queue *queue);
/* Callbacks for kjit_config.on_print and on_diagnostic. user is the message queue. Any thread may
 * call them. */
void binding_post_lines(void *user, const char *text, size_t size_bytes);
void binding_post_diagnostic(void *user, const kjit_diagnostic *diagnostic);
/* Callback for kjit_config.on_stage. */
void binding_post_stage(void *user, const char *name, const char *stage);
/* Returns a new dictionary of the running compilations: name of the kernel or func -> stage. */
PyObject *binding_list_stages(binding_message_queue *queue);
/* Writes lines to sys.stdout and issues Python warnings. Returns 0, or -1 with an exception. */
int binding_deliver_messages(binding_message_queue *queue);

#endif
