/* Asynchronous copies and tensor copies, of lower_sync.c, as the targets take them. */
#ifndef KJ_LOWER_BUILTINS_TENSOR_COPY_H
#define KJ_LOWER_BUILTINS_TENSOR_COPY_H

#include "lower/lower.h"

/* A tensor copy: the box of an array, where it starts, the tile; what is_whole and box say of the
 * map. */
typedef struct kj_tensor_copy {
  kj_array_value array, tile;
  const kj_texprs *start;
  kj_tensor_map map;
  bool is_store;
} kj_tensor_copy;
kj_tensor_copy kj_lower_tensor_copy(kj_lowering *l, const kj_texpr *copy);
/* The map of an array argument for a typed copy, but for the argument. */
kj_tensor_map kj_describe_map(kj_lowering *l, const kj_texpr *copy);
bool kj_is_tensor_copy(const kj_texpr *expr);
/* Where an asynchronous copy reads and writes; bytes of an element. */
LLVMValueRef kj_lower_source(kj_lowering *l, const kj_texpr *copy, kj_array_value *array);
LLVMValueRef kj_lower_destination(kj_lowering *l, const kj_texpr *copy, kj_array_value *array);
uint32_t kj_copied_bytes(kj_lowering *l, const kj_texpr *copy);

#endif
