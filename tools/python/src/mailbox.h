/* Printed lines and warnings on their way to the interpreter; see mailbox.c. */
#ifndef KJIT_PYTHON_MAILBOX_H
#define KJIT_PYTHON_MAILBOX_H

#include "binding.h"

/* NULL: out of memory. */
binding_mailbox *binding_create_mailbox(void);
/* box NULL is fine. */
void binding_destroy_mailbox(binding_mailbox *box);
/* kjit_config.on_print and on_diagnostic; user: the mailbox. Any thread. */
void binding_post_lines(void *user, const char *text, size_t size_bytes);
void binding_post_diagnostic(void *user, const kjit_diagnostic *diagnostic);
/* kjit_config.on_stage. */
void binding_post_stage(void *user, const char *name, const char *stage);
/* A new dictionary of what is being compiled: name of the kernel or func -> stage. */
PyObject *binding_list_stages(binding_mailbox *box);
/* Lines go to sys.stdout, warnings to Python's. 0, or -1 with an exception. */
int binding_empty_mailbox(binding_mailbox *box);

#endif
