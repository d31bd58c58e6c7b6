/* The symbols of PTX that an application has bound to extern funcs. */
#ifndef KJ_CUDA_PTX_SYMBOLS_H
#define KJ_CUDA_PTX_SYMBOLS_H

#include <stddef.h>

#include "base/device.h"

/* The PTX with the suffix behind each symbol that it defines and that other PTX sees (`.visible`,
 * `.weak`, `.common`), wherever the symbol occurs. malloc'd, with a 0 byte behind *size_bytes; NULL
 * means that memory ran out. */
char *kj_rename_ptx_symbols(const char *ptx, const char *suffix, size_t *size_bytes);

/* COMPILE if two inputs of PTX define the same `.visible` symbol. nvJitLink 13.5 does not report
 * such inputs, and ends the process when it is asked for their cubin. */
kjit_status kj_check_ptx_definitions(const kj_link_input *inputs, size_t count,
                                     kj_diagnostics *diagnostics);

#endif
