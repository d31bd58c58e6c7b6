/* What the files of the nvptx target share. */
#ifndef KJ_TARGET_NVPTX_H
#define KJ_TARGET_NVPTX_H

#include "lower/nvptx/lower_nvptx.h"
#include "target/emission.h"

/* ---- nvptx.c ---- */

typedef struct kj_nvptx_arch {
  uint32_t arch;
  char suffix;
  uint32_t least_ptx; /* what LLVM asks for; a lower version ends the process */
} kj_nvptx_arch;

/* What code is made for. */
typedef struct kj_nvptx_choice {
  const kj_nvptx_arch *arch;
  uint32_t ptx;
} kj_nvptx_choice;

/* Fails for what there is no code for. */
kj_nvptx_choice kj_choose_nvptx(kj_compilation *c);

/* ---- math_library.c ---- */

/* The math functions: libdevice, or libclc's. */
typedef struct kj_nvptx_library {
  pthread_mutex_t mutex; /* protects what follows */
  kj_bitcode *bitcode;   /* NULL: none was found, or it was not looked for yet */
  kj_math_library kind;
  bool has_looked;
} kj_nvptx_library;

/* path NULL: it is looked for when first needed. */
kjit_status kj_open_library(kj_nvptx_library *library, const char *path,
                            kj_diagnostics *diagnostics);
void kj_close_library(kj_nvptx_library *library);
/* Looks for it where that was not done yet. */
void kj_find_library(kj_nvptx_library *library);
/* Links what the module calls, of the library and of the host's own code (extern funcs). True:
 * there is code of the host. arch: 90 for sm_90. */
bool kj_link_library(kj_emission *e, const kj_nvptx_library *library, kj_nvptx_lowering *state,
                     uint32_t arch);

/* ---- nvptx.c ---- */

/* For code generation without optimization: offsets of elements by an index of 32 bits become wide
 * products. */
void kj_widen_offsets(LLVMModuleRef module);

#endif
