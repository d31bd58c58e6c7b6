/* Values as bits: what lanes of a warp exchange and compare, and what bitcast reads anew. A value
 * of n bytes is an integer of 8 * n bits, laid out as in memory; what pads a struct is 0. */
#include "lower/lower.h"

static bool has_parts(kj_lowering *l, kjit_type type)
{
  return kj_is_composed_type(l, type) && !kj_is_vector_type(l, type) &&
         kj_type(l->c->types, type)->class_ != KJ_CLASS_POINTER;
}

static bool is_pointer(kj_lowering *l, kjit_type type)
{
  return kj_is_composed_type(l, type) && kj_type(l->c->types, type)->class_ == KJ_CLASS_POINTER;
}

static LLVMTypeRef bits_type(kj_lowering *l, kjit_type type)
{
  return LLVMIntTypeInContext(l->context, 8 * kj_scalar_bytes(l, type));
}

/* Lanes of bool are bytes in memory. */
static LLVMValueRef lanes_to_memory(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (!kj_is_vector_type(l, type)) return kj_to_memory(l, type, value);
  if (kj_part_of(l, type) != KJIT_BOOL) return value;
  return LLVMBuildZExt(l->builder, value,
                       LLVMVectorType(l->i8, LLVMGetVectorSize(LLVMTypeOf(value))), "");
}

LLVMValueRef kj_value_bits(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  LLVMTypeRef wide = bits_type(l, type);
  if (is_pointer(l, type)) return LLVMBuildPtrToInt(l->builder, value, wide, "");
  if (!has_parts(l, type))
    return LLVMBuildBitCast(l->builder, lanes_to_memory(l, type, value), wide, "");
  LLVMValueRef bits = LLVMConstNull(wide);
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    kj_component part = kj_get_part_info(l, type, i);
    LLVMValueRef own =
      LLVMBuildZExt(l->builder, kj_value_bits(l, part.type, kj_get_part(l, type, value, i)), wide,
                    "");
    bits = LLVMBuildOr(l->builder, bits,
                       LLVMBuildShl(l->builder, own,
                                    LLVMConstInt(wide, 8 * part.offset_bytes, false), ""),
                       "");
  }
  return bits;
}

LLVMValueRef kj_value_of_bits(kj_lowering *l, kjit_type type, LLVMValueRef bits)
{
  LLVMBuilderRef b = l->builder;
  if (is_pointer(l, type)) return LLVMBuildIntToPtr(b, bits, kj_register_type(l, type), "");
  if (kj_is_vector_type(l, type) && kj_part_of(l, type) == KJIT_BOOL) {
    LLVMTypeRef bytes = LLVMVectorType(l->i8, kj_type(l->c->types, type)->count);
    return LLVMBuildICmp(b, LLVMIntNE, LLVMBuildBitCast(b, bits, bytes, ""), LLVMConstNull(bytes),
                         "");
  }
  if (kj_is_vector_type(l, type)) return LLVMBuildBitCast(b, bits, kj_register_type(l, type), "");
  if (!has_parts(l, type))
    return kj_from_memory(l, type, LLVMBuildBitCast(b, bits, kj_memory_type(l, type), ""));
  LLVMValueRef value = LLVMGetPoison(kj_register_type(l, type));
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    kj_component part = kj_get_part_info(l, type, i);
    LLVMValueRef shifted =
      LLVMBuildLShr(b, bits, LLVMConstInt(LLVMTypeOf(bits), 8 * part.offset_bytes, false), "");
    LLVMTypeRef own = bits_type(l, part.type);
    LLVMValueRef cut = own == LLVMTypeOf(bits) ? shifted : LLVMBuildTrunc(b, shifted, own, "");
    value = kj_set_part(l, type, value, kj_value_of_bits(l, part.type, cut), i);
  }
  return value;
}

LLVMValueRef kj_hide_float_bits(kj_lowering *l, LLVMValueRef bits)
{
  if (!l->target->float_bits || LLVMIsConstant(bits)) return bits;
  LLVMTypeRef type = LLVMTypeOf(bits);
  if (LLVMGetIntTypeWidth(type) >= 32) return l->target->float_bits(l, bits);
  return LLVMBuildTrunc(l->builder,
                        l->target->float_bits(l, LLVMBuildZExt(l->builder, bits, l->i32, "")), type,
                        "");
}

/* ---- words ---- */

LLVMValueRef kj_get_word(kj_lowering *l, LLVMValueRef bits, uint32_t index)
{
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(bits));
  if (width == 32) return bits;
  if (width < 32) return LLVMBuildZExt(l->builder, bits, l->i32, "");
  return LLVMBuildTrunc(l->builder,
                        LLVMBuildLShr(l->builder, bits,
                                      LLVMConstInt(LLVMTypeOf(bits), 32 * index, false), ""),
                        l->i32, "");
}

LLVMValueRef kj_join_words(kj_lowering *l, LLVMTypeRef type, LLVMValueRef const *words,
                           uint32_t count)
{
  unsigned width = LLVMGetIntTypeWidth(type);
  if (width == 32) return words[0];
  if (width < 32) return LLVMBuildTrunc(l->builder, words[0], type, "");
  LLVMValueRef bits = LLVMBuildZExt(l->builder, words[0], type, "");
  for (uint32_t i = 1; i < count; i++) {
    unsigned rest = width - 32 * i;
    LLVMValueRef word =
      rest < 32 ? LLVMBuildTrunc(l->builder, words[i], LLVMIntTypeInContext(l->context, rest), "")
                : words[i];
    LLVMValueRef own = LLVMBuildZExt(l->builder, word, type, "");
    bits = LLVMBuildOr(l->builder, bits,
                       LLVMBuildShl(l->builder, own, LLVMConstInt(type, 32 * i, false), ""), "");
  }
  return bits;
}

uint32_t kj_count_words(LLVMTypeRef type) { return (LLVMGetIntTypeWidth(type) + 31) / 32; }
