/* Linked code (kjit_bind_linked): NVRTC, which compiles CUDA C, and nvJitLink, which links what the
 * driver does not. Both libraries belong to a CUDA toolkit and are opened when they are needed.
 * Their few types and numbers are declared where they are used. */
#ifndef KJ_CUDA_LINKER_H
#define KJ_CUDA_LINKER_H

#include <stdbool.h>

#include "base/device.h"
#include "support/diagnostics.h"

/* What code is linked for. */
typedef struct kj_link_target {
  const char *name; /* "sm_90a" */
  kjit_debug debug;
  int driver_version; /* 12080: CUDA 12.8; 0: no driver has to load the result */
  uint32_t ptx_limit; /* newest PTX that the driver takes, 90: PTX 9.0; 0: any */
} kj_link_target;

/* A library of a CUDA toolkit. */
typedef struct kj_toolkit_library {
  const char *file;     /* "libnvrtc.so" */
  const char *title;    /* "NVRTC" */
  const char *packages; /* the Python packages that have it, for messages */
} kj_toolkit_library;

/* Opens the library of the driver's version of CUDA, or else of another version. The loader looks
 * first, and finds a library that the process has opened already; then the folders of toolkits and
 * of Python packages beside kjit. need says who needs it, for messages: "f.cu is CUDA C". Errors:
 * NO_COMPILER. The library stays open. */
kjit_status kj_open_toolkit_library(const kj_toolkit_library *library, const kj_link_target *target,
                                    const char *need, kj_diagnostics *diagnostics, void **handle);
/* Where the names are of functions of an open library; it is of the wrong version without them.
 * Errors: NO_COMPILER. */
kjit_status kj_find_toolkit_entry(void *handle, const kj_toolkit_library *library,
                                  const char *symbol, kj_diagnostics *diagnostics, void **entry);

/* CUDA C to PTX, malloc'd and with a 0 byte behind it; messages about code that compiles are
 * warnings. Errors: NO_COMPILER; COMPILE with NVRTC's log; MEMORY. */
kjit_status kj_compile_cuda_c(const kj_link_target *target, const kj_link_input *input,
                              kj_diagnostics *diagnostics, char **ptx, size_t *size_bytes);

/* Makes a cubin of inputs that are not CUDA C. Errors: NO_COMPILER; COMPILE with nvJitLink's log;
 * MEMORY. */
kjit_status kj_link_by_library(const kj_link_target *target, const kj_link_input *inputs,
                               size_t count, kj_diagnostics *diagnostics, void **cubin,
                               size_t *cubin_bytes);

/* Inputs in which PTX stands for CUDA C. */
typedef struct kj_prepared_inputs {
  kj_link_input *items;
  size_t count;
  char **made; /* the PTX of each item, NULL for an item that was no CUDA C */
} kj_prepared_inputs;
kjit_status kj_prepare_inputs(const kj_link_target *target, const kj_link_input *inputs,
                              size_t count, kj_diagnostics *diagnostics,
                              kj_prepared_inputs *prepared);
void kj_free_prepared(kj_prepared_inputs *prepared);
/* Whether the driver cannot link them, so that nvJitLink has to. */
bool kj_need_link_library(const kj_link_target *target, const kj_link_input *inputs, size_t count);

#endif
