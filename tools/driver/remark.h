/* Warnings and remarks of the library on stderr, as they arise. */
#ifndef TOOL_REMARK_H
#define TOOL_REMARK_H

#include <kjit/kjit.h>

/* A kjit_config.on_print: to standard output. */
void tool_show_print(void *user, const char *text, size_t size_bytes);
/* A kjit_config.on_diagnostic. Errors are left out: the failing call's caller shows them. */
void tool_show_remark(void *user, const kjit_diagnostic *diagnostic);

#endif
