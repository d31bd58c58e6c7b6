/* The symbols of PTX that an application has bound to extern funcs. */
#ifndef KJ_CODE_PTX_SYMBOLS_H
#define KJ_CODE_PTX_SYMBOLS_H

#include <stddef.h>

/* The PTX with the suffix behind each symbol that it defines and that other PTX sees (`.visible`,
 * `.weak`, `.common`), wherever the symbol occurs. malloc'd, with a 0 byte behind *size_bytes; NULL
 * means that memory ran out. */
char *kj_rename_ptx_symbols(const char *ptx, const char *suffix, size_t *size_bytes);

#endif
