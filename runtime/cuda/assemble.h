/* PTX to machine code and machine code to text, by NVIDIA's programs: for those who look at code.
 * What runs goes through the driver (link.c, load.c). */
#ifndef KJ_CUDA_ASSEMBLE_H
#define KJ_CUDA_ASSEMBLE_H

#include <stdbool.h>

#include "support/diagnostics.h"

typedef struct kj_assembly {
  const char *ptxas;  /* NULL: looked for */
  const char *target; /* "sm_90a" */
  kjit_debug debug;
  bool is_part; /* functions that others call: what they are linked with is not there yet */
} kj_assembly;

/* Both: the result is malloc'd, with a 0 byte behind it. Errors: NO_COMPILER where the program is
 * not there, COMPILE where it fails, IO, MEMORY. */
kjit_status kj_assemble(const kj_assembly *assembly, const void *ptx, size_t ptx_bytes,
                        kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes);
kjit_status kj_disassemble(const void *cubin, size_t cubin_bytes, kj_diagnostics *diagnostics,
                           void **sass, size_t *sass_bytes);

#endif
