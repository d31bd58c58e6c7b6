/* Asynchronous copies and tensor copies: functions of lower_sync.c that the targets use. */
#ifndef KJ_LOWER_BUILTINS_TENSOR_COPY_H
#define KJ_LOWER_BUILTINS_TENSOR_COPY_H

#include "lower/lower.h"

/* A tensor copy between a tile and a box of an array. The box starts at `start`; `map` describes
 * its shape. */
typedef struct kl_tensor_copy {
  kl_array_value array, tile;
  const kt_exprs *start;
  kj_tensor_map map;
  bool is_store;
} kl_tensor_copy;
kl_tensor_copy kl_lower_tensor_copy(kl_lowering *l, const kt_expr *copy);
/* Returns the map for a typed tensor copy of an array argument. The map's field `argument` is not
 * set. */
kj_tensor_map kl_describe_map(kl_lowering *l, const kt_expr *copy);
bool kl_is_tensor_copy(const kt_expr *expr);
/* Return the addresses that an asynchronous copy reads from and writes to, and an element's size in
 * bytes. */
LLVMValueRef kl_lower_source(kl_lowering *l, const kt_expr *copy, kl_array_value *array);
LLVMValueRef kl_lower_destination(kl_lowering *l, const kt_expr *copy, kl_array_value *array);
uint32_t kl_copied_bytes(kl_lowering *l, const kt_expr *copy);

#endif
