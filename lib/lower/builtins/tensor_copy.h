/* Asynchronous copies and tensor copies, of lower_sync.c, as the targets take them. */
#ifndef KJ_LOWER_BUILTINS_TENSOR_COPY_H
#define KJ_LOWER_BUILTINS_TENSOR_COPY_H

#include "lower/lower.h"

/* A tensor copy: the box of an array, where it starts, the tile; what is_whole and box say of the
 * map. */
typedef struct kl_tensor_copy {
  kl_array_value array, tile;
  const kt_exprs *start;
  kj_tensor_map map;
  bool is_store;
} kl_tensor_copy;
kl_tensor_copy kl_lower_tensor_copy(kl_lowering *l, const kt_expr *copy);
/* The map of an array argument for a typed copy, but for the argument. */
kj_tensor_map kl_describe_map(kl_lowering *l, const kt_expr *copy);
bool kl_is_tensor_copy(const kt_expr *expr);
/* Where an asynchronous copy reads and writes; bytes of an element. */
LLVMValueRef kl_lower_source(kl_lowering *l, const kt_expr *copy, kl_array_value *array);
LLVMValueRef kl_lower_destination(kl_lowering *l, const kt_expr *copy, kl_array_value *array);
uint32_t kl_copied_bytes(kl_lowering *l, const kt_expr *copy);

#endif
