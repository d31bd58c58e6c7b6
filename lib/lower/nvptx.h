/* Lowering to nvptx: what lib/target/nvptx.c tells it and learns from it. */
#ifndef KJ_LOWER_NVPTX_H
#define KJ_LOWER_NVPTX_H

#include "lower/lower.h"

typedef enum kj_math_library { KJ_LIBDEVICE, KJ_LIBCLC } kj_math_library;

/* kj_lowering.target_state */
typedef struct kj_nvptx_lowering {
  kj_math_library library; /* whose names to call */
  bool calls_library;      /* out */
  bool has_branches;       /* out: of what is called, something is worth the passes over loops */
} kj_nvptx_lowering;

extern const kj_lower_target kj_nvptx_lowering_target;

#endif
