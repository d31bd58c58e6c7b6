/* Values made of others: structs, arrays inside structs, vectors, complex numbers, tuples,
 * pointers. How they are held in registers, how they lie in memory, and access to their parts.
 *
 * In registers: a struct, a complex number and a tuple are LLVM structs of their parts' register
 * types, an array inside a struct an LLVM array (row-major), a vector an LLVM vector, a pointer a
 * generic pointer. In memory they lie as ir/composed_type.c says, which is not always how LLVM
 * would lay them out: an array of them is one of bytes for LLVM, and they are read and written part
 * by part, vectors in one access. */
#include "lower/lower.h"

static const kj_type_info *info_of(kj_lowering *l, kjit_type type)
{
  return kj_type(l->c->types, type);
}

static bool is_value_array(const kj_type_info *info)
{
  return info->class_ == KJ_CLASS_ARRAY && info->space == KJ_SPACE_VALUE;
}

bool kj_is_composed_type(kj_lowering *l, kjit_type type)
{
  if (kj_is_weak(type)) return false;
  const kj_type_info *info = info_of(l, type);
  return info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_STRUCT ||
         info->class_ == KJ_CLASS_COMPLEX || info->class_ == KJ_CLASS_POINTER ||
         is_value_array(info);
}

/* ---- types ---- */

static LLVMTypeRef parts_type(kj_lowering *l, kjit_type type)
{
  uint32_t count = kj_component_count(l->c->types, type);
  LLVMTypeRef *items = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, count + 1);
  for (uint32_t i = 0; i < count; i++)
    items[i] = kj_register_type(l, kj_get_component(l->c->types, type, i).type);
  return LLVMStructTypeInContext(l->context, items, count, false);
}

LLVMTypeRef kj_composed_register_type(kj_lowering *l, kjit_type type)
{
  const kj_type_info *info = info_of(l, type);
  switch (KJ_AMONG(info->class_)) {
  case KJ_CLASS_POINTER: return l->pointer;
  case KJ_CLASS_VECTOR: return LLVMVectorType(kj_register_type(l, info->element), info->count);
  case KJ_CLASS_ARRAY:
    return LLVMArrayType2(kj_register_type(l, info->element), kj_element_count(info));
  default: return parts_type(l, type);
  }
}

/* Three lanes are read and written one by one: LLVM would take the room of four. */
static bool is_one_access(const kj_type_info *info)
{
  return info->class_ == KJ_CLASS_VECTOR && info->count != 3;
}

LLVMTypeRef kj_composed_memory_type(kj_lowering *l, kjit_type type)
{
  const kj_type_info *info = info_of(l, type);
  if (info->class_ == KJ_CLASS_POINTER) return l->pointer;
  if (is_one_access(info)) return LLVMVectorType(kj_memory_type(l, info->element), info->count);
  return LLVMArrayType2(l->i8, info->size_bytes);
}

uint32_t kj_type_alignment(kj_lowering *l, kjit_type type)
{
  if (kj_is_weak(type)) return 8;
  const kj_type_info *info = info_of(l, type);
  return info->alignment_bytes ? info->alignment_bytes : info->size_bytes;
}

uint32_t kj_array_alignment(kj_lowering *l, kjit_type array)
{
  const kj_type_info *info = info_of(l, array);
  return info->space != KJ_SPACE_VALUE && info->alignment_bytes
           ? info->alignment_bytes
           : kj_type_alignment(l, info->element);
}

/* ---- parts of values ---- */

LLVMValueRef kj_get_part(kj_lowering *l, kjit_type type, LLVMValueRef value, uint32_t index)
{
  if (info_of(l, type)->class_ == KJ_CLASS_VECTOR)
    return LLVMBuildExtractElement(l->builder, value, kj_const32(l, index), "");
  return LLVMBuildExtractValue(l->builder, value, index, "");
}

LLVMValueRef kj_set_part(kj_lowering *l, kjit_type type, LLVMValueRef value, LLVMValueRef part,
                         uint32_t index)
{
  if (info_of(l, type)->class_ == KJ_CLASS_VECTOR)
    return LLVMBuildInsertElement(l->builder, value, part, kj_const32(l, index), "");
  return LLVMBuildInsertValue(l->builder, value, part, index, "");
}

/* Components of any composed type, elements of arrays inside structs too. */
uint32_t kj_part_count(kj_lowering *l, kjit_type type)
{
  const kj_type_info *info = info_of(l, type);
  return info->class_ == KJ_CLASS_ARRAY ? (uint32_t)kj_element_count(info)
                                        : kj_component_count(l->c->types, type);
}

kj_component kj_get_part_info(kj_lowering *l, kjit_type type, uint32_t index)
{
  const kj_type_info *info = info_of(l, type);
  if (info->class_ != KJ_CLASS_ARRAY) return kj_get_component(l->c->types, type, index);
  return (kj_component){ .index = index,
                         .type = info->element,
                         .offset_bytes = index * kj_scalar_bytes(l, info->element) };
}

/* ---- memory ---- */

LLVMValueRef kj_byte_pointer(kj_lowering *l, LLVMValueRef pointer, uint32_t offset)
{
  LLVMValueRef bytes = kj_const64(l, offset);
  return offset ? LLVMBuildInBoundsGEP2(l->builder, l->i8, pointer, &bytes, 1, "") : pointer;
}

static bool is_whole(kj_lowering *l, kjit_type type)
{
  const kj_type_info *info = info_of(l, type);
  return !kj_is_composed_type(l, type) || info->class_ == KJ_CLASS_POINTER || is_one_access(info);
}

LLVMValueRef kj_load_value(kj_lowering *l, kjit_type type, LLVMValueRef pointer, uint32_t alignment,
                           uint32_t object)
{
  if (is_whole(l, type)) {
    kj_assert_access(l, pointer, kj_scalar_bytes(l, type), alignment, object);
    LLVMValueRef load = LLVMBuildLoad2(l->builder, kj_memory_type(l, type), pointer, "");
    LLVMSetAlignment(load, alignment);
    kj_annotate_load(l, load, object);
    return kj_from_memory(l, type, load);
  }
  LLVMValueRef value = LLVMGetPoison(kj_register_type(l, type));
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    kj_component part = kj_get_part_info(l, type, i);
    LLVMValueRef at = kj_byte_pointer(l, pointer, part.offset_bytes);
    value = kj_set_part(l, type, value,
                        kj_load_value(l, part.type, at,
                                      kj_alignment_at(alignment, part.offset_bytes), object),
                        i);
  }
  return value;
}

/* What is stored with less than its own alignment goes byte by byte; where the target asks for it,
 * the bytes are those of an integer, not of a float. */
static LLVMValueRef to_bytes(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (!kj_is_float_type(l, type)) return value;
  return kj_hide_float_bits(
    l, LLVMBuildBitCast(l->builder, value,
                        LLVMIntTypeInContext(l->context, kj_scalar_bytes(l, type) * 8), ""));
}

void kj_store_value(kj_lowering *l, kjit_type type, LLVMValueRef pointer, LLVMValueRef value,
                    uint32_t alignment, uint32_t object)
{
  bool is_misaligned = alignment < kj_type_alignment(l, type);
  if (is_whole(l, type) && !(is_misaligned && info_of(l, type)->class_ == KJ_CLASS_VECTOR)) {
    kj_assert_access(l, pointer, kj_scalar_bytes(l, type), alignment, object);
    LLVMValueRef stored = kj_to_memory(l, type, value);
    LLVMValueRef store =
      LLVMBuildStore(l->builder, is_misaligned ? to_bytes(l, type, stored) : stored, pointer);
    LLVMSetAlignment(store, alignment);
    kj_annotate_access(l, store, object);
    return;
  }
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    kj_component part = kj_get_part_info(l, type, i);
    LLVMValueRef at = kj_byte_pointer(l, pointer, part.offset_bytes);
    kj_store_value(l, part.type, at, kj_get_part(l, type, value, i),
                   kj_alignment_at(alignment, part.offset_bytes), object);
  }
}

/* ---- expressions ---- */

LLVMValueRef kj_lower_tuple(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef tuple = LLVMGetPoison(kj_register_type(l, expr->type));
  for (size_t i = 0; i < expr->args.count; i++)
    tuple = kj_set_part(l, expr->type, tuple, kj_lower_expr(l, expr->args.items[i]), (uint32_t)i);
  return tuple;
}

LLVMValueRef kj_lower_item(kj_lowering *l, const kj_texpr *expr)
{
  return kj_get_part(l, expr->x->type, kj_lower_expr(l, expr->x), expr->dimension);
}

/* The row-major place of an element, i64; checked where the node asks for it. */
static LLVMValueRef place_of(kj_lowering *l, const kj_texpr *expr)
{
  const kj_type_info *info = info_of(l, expr->x->type);
  bool is_vector = info->class_ == KJ_CLASS_VECTOR;
  LLVMValueRef place = kj_const64(l, 0);
  for (size_t i = 0; i < expr->args.count; i++) {
    LLVMValueRef extent = kj_const64(l, is_vector ? (int64_t)info->count : info->extents[i]);
    LLVMValueRef index = kj_lower_exact_index(l, expr->args.items[i]);
    if (expr->is_checked) kj_check_index(l, expr->args.items[i], index, extent);
    place = LLVMBuildAdd(l->builder, LLVMBuildMul(l->builder, place, extent, ""), index, "");
  }
  return place;
}

/* An array of which an element is chosen at run time goes through memory; the element at that
 * place. */
static LLVMValueRef spill(kj_lowering *l, LLVMValueRef value, LLVMValueRef place,
                          LLVMTypeRef element, LLVMValueRef *slot)
{
  *slot = kj_alloca(l, LLVMTypeOf(value), "parts");
  LLVMBuildStore(l->builder, value, *slot);
  return LLVMBuildInBoundsGEP2(l->builder, element, *slot, &place, 1, "");
}

LLVMValueRef kj_lower_element(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef value = kj_lower_expr(l, expr->x), place = place_of(l, expr), slot;
  if (info_of(l, expr->x->type)->class_ == KJ_CLASS_VECTOR)
    return LLVMBuildExtractElement(l->builder, value, place, "");
  if (LLVMIsAConstantInt(place) &&
      LLVMConstIntGetZExtValue(place) < kj_part_count(l, expr->x->type))
    return kj_get_part(l, expr->x->type, value, (uint32_t)LLVMConstIntGetZExtValue(place));
  LLVMTypeRef element = kj_register_type(l, expr->type);
  return LLVMBuildLoad2(l->builder, element, spill(l, value, place, element, &slot), "");
}

LLVMValueRef kj_lower_insert(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef value = kj_lower_expr(l, expr->x), item = kj_lower_expr(l, expr->y), slot;
  if (expr->args.count == 0) return kj_set_part(l, expr->type, value, item, expr->dimension);
  LLVMValueRef place = place_of(l, expr);
  if (info_of(l, expr->type)->class_ == KJ_CLASS_VECTOR)
    return LLVMBuildInsertElement(l->builder, value, item, place, "");
  if (LLVMIsAConstantInt(place) && LLVMConstIntGetZExtValue(place) < kj_part_count(l, expr->type))
    return kj_set_part(l, expr->type, value, item, (uint32_t)LLVMConstIntGetZExtValue(place));
  LLVMValueRef pointer = spill(l, value, place, LLVMTypeOf(item), &slot);
  LLVMBuildStore(l->builder, item, pointer);
  return LLVMBuildLoad2(l->builder, LLVMTypeOf(value), slot, "");
}

/* ---- places ---- */

kj_array_value kj_lower_member(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value array = kj_lower_array(l, expr->x);
  kj_component part =
    kj_get_component(l->c->types, info_of(l, array.type)->element, expr->dimension);
  kj_array_value member =
    kj_static_array(l, expr->type, kj_byte_pointer(l, array.pointer, part.offset_bytes));
  member.object = array.object;
  return member;
}

/* Pointers are generic: they may have been taken of any memory. */
LLVMValueRef kj_lower_address(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value array = kj_lower_array(l, expr->x);
  LLVMValueRef pointer = kj_checked_pointer(l, &array, &expr->args, expr->is_checked);
  if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == 0) return pointer;
  return LLVMBuildAddrSpaceCast(l->builder, pointer, l->pointer, "");
}

kj_array_value kj_lower_pointed(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value array = { .type = expr->type,
                           .pointer = kj_lower_expr(l, expr->x),
                           .object = kj_object_of_type(l, expr->type) };
  const kj_type_info *info = info_of(l, expr->type);
  if (info->is_static) return kj_static_array(l, expr->type, array.pointer);
  LLVMValueRef stride = kj_const64(l, 1);
  for (uint32_t d = info->rank; d-- > 0;) {
    if (d < expr->args.count) array.extents[d] = kj_lower_expr(l, expr->args.items[d]);
    array.strides[d] = stride;
    if (d) stride = LLVMBuildMul(l->builder, stride, array.extents[d], "");
  }
  return array;
}
