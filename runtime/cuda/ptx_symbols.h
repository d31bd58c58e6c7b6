/* PTX's symbols that an application has bound to extern funcs. */
#ifndef KJ_CUDA_PTX_SYMBOLS_H
#define KJ_CUDA_PTX_SYMBOLS_H

#include <stddef.h>

#include "base/device.h"

/* Returns a copy of the PTX. At every occurrence, a suffix is appended to each symbol that the PTX
 * defines and makes visible to other PTX (`.visible`, `.weak`, `.common`). The result is malloc'd
 * with a 0 byte after *size_bytes bytes, or NULL if out of memory. */
char *kj_rename_ptx_symbols(const char *ptx, const char *suffix, size_t *size_bytes);

/* Returns COMPILE if two PTX inputs define the same `.visible` symbol. nvJitLink 13.5 does not
 * report this error, and ends the process when kjit requests the cubin. */
kjit_status kj_check_ptx_definitions(const kj_link_input *inputs, size_t count,
                                     kj_diagnostics *diagnostics);

#endif
