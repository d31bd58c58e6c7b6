/* Prints warnings and remarks of the library to stderr when they arise. */
#ifndef TOOL_REMARK_H
#define TOOL_REMARK_H

#include <kjit/kjit.h>

/* Callback for kjit_config.on_print; writes to standard output. */
void tool_show_print(void *user, const char *text, size_t size_bytes);
/* Callback for kjit_config.on_diagnostic. Ignores errors, because the caller of the failing
 * function prints them. */
void tool_show_remark(void *user, const kjit_diagnostic *diagnostic);

#endif
