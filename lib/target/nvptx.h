/* What the files of the nvptx target share. */
#ifndef KJ_TARGET_NVPTX_H
#define KJ_TARGET_NVPTX_H

#include "lower/nvptx/lower_nvptx.h"
#include "target/emission.h"

/* ---- nvptx.c ---- */

typedef struct kg_nvptx_arch {
  uint32_t arch;
  char suffix;
  uint32_t least_ptx; /* what LLVM asks for; a lower version ends the process */
} kg_nvptx_arch;

/* What code is made for. */
typedef struct kg_nvptx_choice {
  const kg_nvptx_arch *arch;
  uint32_t ptx;
} kg_nvptx_choice;

/* Fails for what there is no code for. */
kg_nvptx_choice kg_choose_nvptx(kt_compilation *c);

/* ---- math_library.c ---- */

/* The math functions: libdevice, or libclc's. */
typedef struct kg_nvptx_library {
  pthread_mutex_t mutex; /* protects what follows */
  kg_bitcode *bitcode;   /* NULL: none was found, or it was not looked for yet */
  kj_math_library kind;
  bool has_looked;
} kg_nvptx_library;

/* path NULL: it is looked for when first needed. */
kjit_status kg_open_library(kg_nvptx_library *library, const char *path,
                            kj_diagnostics *diagnostics);
void kg_close_library(kg_nvptx_library *library);
/* Looks for it where that was not done yet. */
void kg_find_library(kg_nvptx_library *library);
/* Links what the module calls, of the library and of the host's own code (extern funcs). True:
 * there is code of the host. arch: 90 for sm_90. */
bool kg_link_library(kg_emission *e, const kg_nvptx_library *library, kl_nvptx_lowering *state,
                     uint32_t arch);

/* ---- nvptx_rewrites.c ---- */

/* Before the passes, of a kernel that is @fastmath: instructions on f32 take and give zeros for
 * subnormal numbers, as all of its functions then do. */
void kg_flush_subnormals(LLVMModuleRef module);
/* nvptx_branches.c: in the functions of a math library. */
void kg_flatten_branches(LLVMModuleRef module);
/* After the passes: of what LLVM's code generation or ptxas would make something wrong or too long.
 */
void kg_rewrite_for_ptx(LLVMModuleRef module);
/* For code generation without optimization: offsets of elements by an index of 32 bits become wide
 * products. */
void kg_widen_offsets(LLVMModuleRef module);

/* ---- nvptx_float_bits.c: a part of kg_rewrite_for_ptx ---- */

/* What takes the bits of floats is written so that ptxas takes them for integers. */
void kg_keep_float_bits(LLVMModuleRef module);

/* ---- nvptx_high_words.c: a part of kg_rewrite_for_ptx ---- */

/* Sums of multiples of 2^32 that are shifted to the right are computed in 32 bits. */
void kg_compute_high_words(LLVMModuleRef module);

#endif
