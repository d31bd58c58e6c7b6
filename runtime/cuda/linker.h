/* Declarations for linked code (kjit_bind_linked). NVRTC compiles CUDA C, and nvJitLink links
 * inputs that the driver does not accept. Both libraries belong to a CUDA toolkit, and kjit opens
 * them when it needs them. The files that use a library declare its few types and constants. */
#ifndef KJ_CUDA_LINKER_H
#define KJ_CUDA_LINKER_H

#include <stdbool.h>

#include "base/device.h"
#include "support/diagnostics.h"

/* Target of linking. */
typedef struct kj_link_target {
  const char *name; /* for example "sm_90a" */
  kjit_debug debug;
  int driver_version; /* 12080 for CUDA 12.8; 0 if no driver has to load the result */
  uint32_t ptx_limit; /* newest PTX version that the driver accepts (90 means PTX 9.0); 0 means any
                       * version */
} kj_link_target;

/* A library of a CUDA toolkit. */
typedef struct kj_toolkit_library {
  const char *file;     /* for example "libnvrtc.so" */
  const char *title;    /* for example "NVRTC" */
  const char *packages; /* names of the Python packages that contain the library, for messages */
} kj_toolkit_library;

/* Opens the library in the driver's version of CUDA or, if this fails, in another version. Asks the
 * dynamic loader first, which finds a library that the process has already opened. Then searches
 * the directories of toolkits, and of Python packages next to kjit. need: the reason for messages,
 * such as "f.cu is CUDA C". Errors: NO_COMPILER. The library stays open. */
kjit_status kj_open_toolkit_library(const kj_toolkit_library *library, const kj_link_target *target,
                                    const char *need, kj_diagnostics *diagnostics, void **handle);
/* Returns a function of an open library. If the function is missing, the library has the wrong
 * version. Errors: NO_COMPILER. */
kjit_status kj_find_toolkit_entry(void *handle, const kj_toolkit_library *library,
                                  const char *symbol, kj_diagnostics *diagnostics, void **entry);

/* Compiles CUDA C to PTX in a malloc'd buffer with a 0 byte after it. Messages about code that
 * compiles are warnings. Errors: NO_COMPILER; COMPILE with NVRTC's log; MEMORY. */
kjit_status kj_compile_cuda_c(const kj_link_target *target, const kj_link_input *input,
                              kj_diagnostics *diagnostics, char **ptx, size_t *size_bytes);

/* Appends the identity of NVRTC and its headers, with one item on each line: the folders of the
 * toolkit's headers, then NVRTC's file with its size and time. Returns false if there is no NVRTC.
 * */
bool kj_list_toolkit_headers(int driver_version, kj_buffer *folders);

/* Links inputs that are not CUDA C to a cubin. Errors: NO_COMPILER; COMPILE with nvJitLink's log;
 * MEMORY. */
kjit_status kj_link_by_library(const kj_link_target *target, const kj_link_input *inputs,
                               size_t count, kj_diagnostics *diagnostics, void **cubin,
                               size_t *cubin_bytes);

/* Inputs for a linker, after PTX has replaced the CUDA C among them. */
typedef struct kj_prepared_inputs {
  kj_link_input *items;
  size_t count;
  char **made; /* for each item that was CUDA C, its PTX; NULL for other items */
} kj_prepared_inputs;
kjit_status kj_prepare_inputs(const kj_link_target *target, const kj_link_input *inputs,
                              size_t count, kj_diagnostics *diagnostics,
                              kj_prepared_inputs *prepared);
void kj_free_prepared(kj_prepared_inputs *prepared);
/* Returns whether the inputs need nvJitLink, because the driver cannot link them. */
bool kj_need_link_library(const kj_link_target *target, const kj_link_input *inputs, size_t count);

#endif
