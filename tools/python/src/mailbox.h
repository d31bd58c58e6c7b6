/* Storage for printed lines and warnings until they are delivered to the interpreter; see
 * mailbox.c. */
#ifndef KJIT_PYTHON_MAILBOX_H
#define KJIT_PYTHON_MAILBOX_H

#include "binding.h"

/* Returns NULL if out of memory. */
binding_mailbox *binding_create_mailbox(void);
/* box may be NULL. */
void binding_destroy_mailbox(binding_mailbox *box);
/* Callbacks for kjit_config.on_print and on_diagnostic. user is the mailbox. Any thread may call
 * them. */
void binding_post_lines(void *user, const char *text, size_t size_bytes);
void binding_post_diagnostic(void *user, const kjit_diagnostic *diagnostic);
/* Callback for kjit_config.on_stage. */
void binding_post_stage(void *user, const char *name, const char *stage);
/* Returns a new dictionary of the running compilations: name of the kernel or func -> stage. */
PyObject *binding_list_stages(binding_mailbox *box);
/* Writes lines to sys.stdout and issues Python warnings. Returns 0, or -1 with an exception. */
int binding_empty_mailbox(binding_mailbox *box);

#endif
