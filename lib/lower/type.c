/* LLVM types of kernel IR types, and values between their register, memory and arithmetic forms. */
#include "lower/lower.h"

static const kj_type_info *info_of(kj_lowering *l, kjit_type type)
{
  return kj_type(l->c->types, type);
}

uint32_t kj_scalar_bytes(kj_lowering *l, kjit_type type)
{
  if (kj_is_weak(type)) return 8;
  return info_of(l, type)->size_bytes;
}

bool kj_is_float_type(kj_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_FLOAT ||
         (kj_is_scalar(type) && info_of(l, type)->class_ == KJ_CLASS_FLOAT);
}
bool kj_is_signed_type(kj_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_INT || (kj_is_scalar(type) && info_of(l, type)->class_ == KJ_CLASS_SIGNED);
}
bool kj_is_array_type(kj_lowering *l, kjit_type type)
{
  return !kj_is_weak(type) && info_of(l, type)->class_ == KJ_CLASS_ARRAY &&
         info_of(l, type)->space != KJ_SPACE_VALUE;
}
bool kj_is_tuple_type(kj_lowering *l, kjit_type type)
{
  return !kj_is_weak(type) && info_of(l, type)->class_ == KJ_CLASS_TUPLE;
}

unsigned kj_address_space(kj_lowering *l, kj_space space)
{
  switch (space) {
  case KJ_SPACE_GLOBAL: return l->target->global_space;
  case KJ_SPACE_SHARED: return l->target->shared_space;
  case KJ_SPACE_CONST: return l->target->constant_space;
  case KJ_SPACE_LOCAL:
  case KJ_SPACE_GENERIC:
  case KJ_SPACE_VALUE: return 0;
  }
  return 0;
}

static LLVMTypeRef integer_type(kj_lowering *l, uint32_t bytes)
{
  return bytes == 1 ? l->i8 : bytes == 2 ? l->i16 : bytes == 4 ? l->i32 : l->i64;
}

LLVMTypeRef kj_memory_type(kj_lowering *l, kjit_type type)
{
  if (kj_is_composed_type(l, type)) return kj_composed_memory_type(l, type);
  switch (type) {
  case KJ_WEAK_FLOAT:
  case KJIT_F64: return l->f64;
  case KJIT_F32: return l->f32;
  case KJIT_F16: return l->f16;
  default: return integer_type(l, kj_scalar_bytes(l, type));
  }
}

static LLVMTypeRef struct_of(kj_lowering *l, LLVMTypeRef *items, uint32_t count)
{
  return LLVMStructTypeInContext(l->context, items, count, false);
}

/* pointer, extents, strides; static arrays are a pointer only */
static LLVMTypeRef packed_array_type(kj_lowering *l, const kj_type_info *info)
{
  LLVMTypeRef items[1 + 2 * KJ_MAX_RANK];
  uint32_t count = 0;
  items[count++] = LLVMPointerTypeInContext(l->context, kj_address_space(l, info->space));
  for (uint32_t i = 0; !info->is_static && i < 2 * info->rank; i++) items[count++] = l->i64;
  return struct_of(l, items, count);
}

LLVMTypeRef kj_register_type(kj_lowering *l, kjit_type type)
{
  if (type == KJIT_BOOL) return l->i1;
  if (type == KJIT_VOID) return l->void_;
  if (kj_is_composed_type(l, type)) return kj_composed_register_type(l, type);
  if (kj_is_weak(type) || kj_is_scalar(type)) return kj_memory_type(l, type);
  const kj_type_info *info = info_of(l, type);
  if (info->class_ == KJ_CLASS_ARRAY) return packed_array_type(l, info);
  LLVMTypeRef *items = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, info->count + 1);
  for (uint32_t i = 0; i < info->count; i++) items[i] = kj_register_type(l, info->items[i]);
  return struct_of(l, items, info->count);
}

/* ---- packed arrays ---- */

LLVMValueRef kj_pack_array(kj_lowering *l, const kj_array_value *array)
{
  const kj_type_info *info = info_of(l, array->type);
  LLVMValueRef packed = LLVMGetPoison(packed_array_type(l, info));
  packed = LLVMBuildInsertValue(l->builder, packed, array->pointer, 0, "");
  for (uint32_t d = 0; !info->is_static && d < info->rank; d++) {
    /* its extent follows from the size that the launch gives */
    bool is_dynamic = info->space == KJ_SPACE_SHARED;
    if (array->extents[d] || is_dynamic)
      packed = LLVMBuildInsertValue(l->builder, packed, kj_extent(l, array, d), 1 + d, "");
    if (array->strides[d])
      packed = LLVMBuildInsertValue(l->builder, packed, kj_as_i64(l, array->strides[d]),
                                    1 + info->rank + d, "");
  }
  return packed;
}

static void set_static_shape(kj_lowering *l, const kj_type_info *info, kj_array_value *array)
{
  int64_t stride = 1;
  for (uint32_t d = info->rank; d-- > 0;) {
    array->extents[d] = kj_const64(l, info->extents[d]);
    array->strides[d] = kj_const64(l, stride);
    stride *= info->extents[d];
  }
}

bool kj_is_unit_stride(const kj_type_info *info, uint32_t dimension)
{
  return (info->layout == KJIT_LAYOUT_C && dimension + 1 == info->rank) ||
         (info->layout == KJIT_LAYOUT_F && dimension == 0);
}

kj_array_value kj_unpack_array(kj_lowering *l, kjit_type type, LLVMValueRef packed)
{
  const kj_type_info *info = info_of(l, type);
  kj_array_value array = { .type = type,
                           .pointer = LLVMBuildExtractValue(l->builder, packed, 0, "") };
  if (info->is_static) {
    set_static_shape(l, info, &array);
    return array;
  }
  for (uint32_t d = 0; d < info->rank; d++) {
    array.extents[d] = LLVMBuildExtractValue(l->builder, packed, 1 + d, "");
    array.strides[d] = kj_is_unit_stride(info, d)
                         ? kj_const64(l, 1)
                         : LLVMBuildExtractValue(l->builder, packed, 1 + info->rank + d, "");
  }
  return array;
}

kj_array_value kj_static_array(kj_lowering *l, kjit_type type, LLVMValueRef pointer)
{
  kj_array_value array = { .type = type, .pointer = pointer };
  set_static_shape(l, info_of(l, type), &array);
  return array;
}

/* ---- forms of scalars ---- */

static bool is_bool(kj_lowering *l, kjit_type type)
{
  if (kj_is_weak(type)) return false;
  return type == KJIT_BOOL ||
         (info_of(l, type)->class_ == KJ_CLASS_VECTOR && info_of(l, type)->element == KJIT_BOOL);
}

LLVMValueRef kj_to_memory(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  return is_bool(l, type) ? LLVMBuildZExt(l->builder, value, kj_memory_type(l, type), "") : value;
}

LLVMValueRef kj_from_memory(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  return is_bool(l, type)
           ? LLVMBuildICmp(l->builder, LLVMIntNE, value, LLVMConstNull(LLVMTypeOf(value)), "")
           : value;
}

static LLVMValueRef float_of_bf16(kj_lowering *l, LLVMValueRef bits)
{
  LLVMValueRef wide =
    LLVMBuildShl(l->builder, LLVMBuildZExt(l->builder, bits, l->i32, ""), kj_const32(l, 16), "");
  return LLVMBuildBitCast(l->builder, wide, l->f32, "");
}

/* To nearest even by integer arithmetic: no target needs an instruction or a helper for it. A NaN
 * stays one: its quiet bit is set, since its upper bits may be 0. */
static LLVMValueRef bf16_of_float(kj_lowering *l, LLVMValueRef value)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef bits = LLVMBuildBitCast(b, value, l->i32, "");
  LLVMValueRef odd =
    LLVMBuildAnd(b, LLVMBuildLShr(b, bits, kj_const32(l, 16), ""), kj_const32(l, 1), "");
  LLVMValueRef rounded = LLVMBuildAdd(b, bits, LLVMBuildAdd(b, odd, kj_const32(l, 0x7fff), ""), "");
  LLVMValueRef is_nan = LLVMBuildFCmp(b, LLVMRealUNO, value, value, "");
  LLVMValueRef quiet = LLVMBuildOr(b, bits, kj_const32(l, 0x400000), "");
  LLVMValueRef wide = LLVMBuildSelect(b, is_nan, quiet, rounded, "");
  return LLVMBuildTrunc(b, LLVMBuildLShr(b, wide, kj_const32(l, 16), ""), l->i16, "");
}

LLVMValueRef kj_to_compute(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_F16) return LLVMBuildFPExt(l->builder, value, l->f32, "");
  return type == KJIT_BF16 ? float_of_bf16(l, value) : value;
}

LLVMValueRef kj_from_compute(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_F16) return LLVMBuildFPTrunc(l->builder, value, l->f16, "");
  return type == KJIT_BF16 ? bf16_of_float(l, value) : value;
}
