/* Declarations that the files of the nvptx target share. */
#ifndef KJ_TARGET_NVPTX_H
#define KJ_TARGET_NVPTX_H

#include "lower/nvptx/lower_nvptx.h"
#include "target/emission.h"

/* ---- nvptx.c ---- */

typedef struct kg_nvptx_arch {
  uint32_t arch;
  char suffix;
  uint32_t least_ptx; /* minimum PTX version of LLVM; a lower one ends the process */
} kg_nvptx_arch;

/* The target of a compilation. */
typedef struct kg_nvptx_choice {
  const kg_nvptx_arch *arch;
  uint32_t ptx;
} kg_nvptx_choice;

/* Fails if the request has no supported target. */
kg_nvptx_choice kg_choose_nvptx(kt_compilation *c);

/* ---- math_library.c ---- */

/* The math library: libdevice or libclc. */
typedef struct kg_nvptx_library {
  pthread_mutex_t mutex; /* protects the fields below */
  kg_bitcode *bitcode;   /* NULL if no library was found, or if kjit has not searched for one yet */
  kj_math_library kind;
  bool has_looked;
} kg_nvptx_library;

/* If path is NULL, kg_find_library searches for the library when it is first needed. */
kjit_status kg_open_library(kg_nvptx_library *library, const char *path,
                            kj_diagnostics *diagnostics);
void kg_close_library(kg_nvptx_library *library);
/* Searches for the library, unless that has been done. */
void kg_find_library(kg_nvptx_library *library);
/* Links the functions that the module calls, from the library and from the application's code for
 * extern funcs. Returns whether there is application code. arch: 90 for sm_90. */
bool kg_link_library(kg_emission *e, const kg_nvptx_library *library, kl_nvptx_lowering *state,
                     uint32_t arch);

/* ---- nvptx_rewrites.c ---- */

/* For @fastmath kernels, before the passes: f32 instructions then treat subnormal inputs and
 * results as zero, as all functions of such a kernel do. */
void kg_flush_subnormals(LLVMModuleRef module);
/* nvptx_branches.c: replaces short branches in math library functions by selects. */
void kg_flatten_branches(LLVMModuleRef module);
/* After the passes: rewrites code that LLVM's code generation or ptxas would translate incorrectly
 * or inefficiently. */
void kg_rewrite_for_ptx(LLVMModuleRef module);
/* For code generation without optimization: computes element offsets from 32-bit indices with wide
 * products. */
void kg_widen_offsets(LLVMModuleRef module);

/* ---- nvptx_float_bits.c: called by kg_rewrite_for_ptx ---- */

/* Rewrites uses of the bits of floats so that ptxas treats them as integers. */
void kg_keep_float_bits(LLVMModuleRef module);

/* ---- nvptx_high_words.c: called by kg_rewrite_for_ptx ---- */

/* Computes right-shifted sums of multiples of 2^32 in 32 bits. */
void kg_compute_high_words(LLVMModuleRef module);

#endif
