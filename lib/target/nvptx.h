/* Declarations that the files of the nvptx target share. */
#ifndef KJ_TARGET_NVPTX_H
#define KJ_TARGET_NVPTX_H

#include "lower/nvptx/lower_nvptx.h"
#include "target/emission.h"

/* ---- nvptx.c ---- */

typedef struct kg_nvptx_arch {
  uint32_t arch;
  char suffix;
  uint32_t least_ptx; /* minimum PTX version for which LLVM does not end the process */
} kg_nvptx_arch;

/* A compilation's target. */
typedef struct kg_nvptx_choice {
  const kg_nvptx_arch *arch;
  uint32_t ptx;
} kg_nvptx_choice;

/* Reports an error if the request does not name a supported target. */
kg_nvptx_choice kg_choose_nvptx(kt_compilation *c);

/* ---- math_library.c ---- */

/* The math library: libdevice or libclc. */
typedef struct kg_nvptx_library {
  pthread_mutex_t mutex; /* protects the fields below */
  kg_bitcode *bitcode;   /* NULL if no library was found, or if it has not been searched for yet */
  kj_math_library kind;
  bool has_looked;
} kg_nvptx_library;

/* If path is NULL, kg_find_library searches for the library when it is needed for the first
 * time. */
kjit_status kg_open_library(kg_nvptx_library *library, const char *path,
                            kj_diagnostics *diagnostics);
void kg_close_library(kg_nvptx_library *library);
/* Searches for the library, unless an earlier call has done so. */
void kg_find_library(kg_nvptx_library *library);
/* Links the functions that the module calls: math functions from the library, and extern funcs from
 * the application's LLVM IR. Returns whether there are such extern funcs. arch: 90 for sm_90. */
bool kg_link_library(kg_emission *e, const kg_nvptx_library *library, kl_nvptx_lowering *state,
                     uint32_t arch);

/* ---- nvptx_rewrites.c ---- */

/* For @fastmath kernels: makes the f32 instructions of the kernel, and of all functions that it
 * calls, treat subnormal inputs and results as zero. Call it before the passes. */
void kg_flush_subnormals(LLVMModuleRef module);
/* nvptx_branches.c: replaces short branches in math library functions by selects. */
void kg_flatten_branches(LLVMModuleRef module);
/* Call it after the passes: rewrites code that LLVM's code generation or ptxas would translate
 * incorrectly or inefficiently. */
void kg_rewrite_for_ptx(LLVMModuleRef module);
/* For code generation without optimization: computes offsets of elements from 32-bit indices with
 * wide products. */
void kg_widen_offsets(LLVMModuleRef module);

/* ---- nvptx_float_bits.c: called by kg_rewrite_for_ptx ---- */

/* Rewrites code that uses the bits of floats such that ptxas treats them as integers. */
void kg_keep_float_bits(LLVMModuleRef module);

/* ---- nvptx_high_words.c: called by kg_rewrite_for_ptx ---- */

/* Finds 64-bit sums of multiples of 2^32 whose result is shifted right, and computes these sums in
 * 32 bits. */
void kg_compute_high_words(LLVMModuleRef module);

#endif
