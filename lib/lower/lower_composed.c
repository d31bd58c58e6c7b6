/* Aggregates: structs, arrays inside structs, vectors, complex numbers, tuples and pointers. This
 * file defines the register form and the memory layout of aggregates, and accesses their
 * components.
 *
 * In registers, a struct, a complex number and a tuple are LLVM structs of their components'
 * register types. An array inside a struct is an LLVM array in row-major order, a vector is an LLVM
 * vector, and a pointer is a generic pointer. ir/composed_type.c defines the layout in memory,
 * which sometimes differs from LLVM's layout. So for LLVM, an array of aggregates in memory is an
 * array of bytes. Aggregates are loaded and stored component by component, and vectors by a single
 * access. */
#include "lower/instruction.h"

bool kl_is_composed_type(kl_lowering *l, kjit_type type)
{
  if (ki_is_weak(type)) return false;
  const ki_type_info *info = kl_type_info(l, type);
  return info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_STRUCT ||
         info->class_ == KJ_CLASS_COMPLEX || info->class_ == KJ_CLASS_POINTER ||
         (info->class_ == KJ_CLASS_ARRAY && info->space == KJ_SPACE_VALUE);
}

/* ---- types ---- */

static LLVMTypeRef parts_type(kl_lowering *l, kjit_type type)
{
  uint32_t count = ki_component_count(l->c->types, type);
  LLVMTypeRef *items = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, count + 1);
  for (uint32_t i = 0; i < count; i++)
    items[i] = kl_register_type(l, ki_get_component(l->c->types, type, i).type);
  return LLVMStructTypeInContext(l->context, items, count, false);
}

LLVMTypeRef kl_composed_register_type(kl_lowering *l, kjit_type type)
{
  const ki_type_info *info = kl_type_info(l, type);
  switch (KJ_AMONG(info->class_)) {
  case KJ_CLASS_POINTER: return l->pointer;
  case KJ_CLASS_VECTOR: return LLVMVectorType(kl_register_type(l, info->element), info->count);
  case KJ_CLASS_ARRAY:
    return LLVMArrayType2(kl_register_type(l, info->element), ki_element_count(info));
  default:
    KJ_ASSERT(info->class_ == KJ_CLASS_STRUCT || info->class_ == KJ_CLASS_COMPLEX);
    return parts_type(l, type);
  }
}

/* Returns whether the type is loaded by a single access. Vectors of three lanes are accessed lane
 * by lane, because LLVM would access four lanes. */
static bool is_one_access(const ki_type_info *info)
{
  return info->class_ == KJ_CLASS_VECTOR && info->count != 3;
}

LLVMTypeRef kl_composed_memory_type(kl_lowering *l, kjit_type type)
{
  const ki_type_info *info = kl_type_info(l, type);
  if (info->class_ == KJ_CLASS_POINTER) return l->pointer;
  if (is_one_access(info)) return LLVMVectorType(kl_memory_type(l, info->element), info->count);
  return LLVMArrayType2(l->i8, info->size_bytes);
}

uint32_t kl_type_alignment(kl_lowering *l, kjit_type type)
{
  if (ki_is_weak(type)) return 8;
  const ki_type_info *info = kl_type_info(l, type);
  return info->alignment_bytes ? info->alignment_bytes : info->size_bytes;
}

uint32_t kl_array_alignment(kl_lowering *l, kjit_type array)
{
  const ki_type_info *info = kl_type_info(l, array);
  return info->space != KJ_SPACE_VALUE && info->alignment_bytes
           ? info->alignment_bytes
           : kl_type_alignment(l, info->element);
}

/* ---- parts of values ---- */

LLVMValueRef kl_get_part(kl_lowering *l, kjit_type type, LLVMValueRef value, uint32_t index)
{
  if (kl_type_info(l, type)->class_ == KJ_CLASS_VECTOR)
    return kl_extract_element(l, value, kl_const32(l, index));
  return kl_extract_value(l, value, index);
}

LLVMValueRef kl_set_part(kl_lowering *l, kjit_type type, LLVMValueRef value, LLVMValueRef part,
                         uint32_t index)
{
  if (kl_type_info(l, type)->class_ == KJ_CLASS_VECTOR)
    return kl_insert_element(l, value, part, kl_const32(l, index));
  return kl_insert_value(l, value, part, index);
}

/* Returns the number of components. The components of an array inside a struct are its elements. */
uint32_t kl_part_count(kl_lowering *l, kjit_type type)
{
  const ki_type_info *info = kl_type_info(l, type);
  return info->class_ == KJ_CLASS_ARRAY ? (uint32_t)ki_element_count(info)
                                        : ki_component_count(l->c->types, type);
}

ki_component kl_get_part_info(kl_lowering *l, kjit_type type, uint32_t index)
{
  const ki_type_info *info = kl_type_info(l, type);
  if (info->class_ != KJ_CLASS_ARRAY) return ki_get_component(l->c->types, type, index);
  return (ki_component){ .index = index,
                         .type = info->element,
                         .offset_bytes = index * kl_scalar_bytes(l, info->element) };
}

/* ---- memory ---- */

LLVMValueRef kl_byte_pointer(kl_lowering *l, LLVMValueRef pointer, uint32_t offset)
{
  LLVMValueRef bytes = kl_const64(l, offset);
  return offset ? kl_inbounds_gep(l, l->i8, pointer, &bytes, 1) : pointer;
}

static bool is_whole(kl_lowering *l, kjit_type type)
{
  const ki_type_info *info = kl_type_info(l, type);
  return !kl_is_composed_type(l, type) || info->class_ == KJ_CLASS_POINTER || is_one_access(info);
}

LLVMValueRef kl_load_value(kl_lowering *l, kjit_type type, LLVMValueRef pointer, uint32_t alignment,
                           uint32_t object)
{
  KJ_ASSERT(alignment && (alignment & (alignment - 1)) == 0);
  if (is_whole(l, type)) {
    kl_assert_access(l, pointer, kl_scalar_bytes(l, type), alignment, object);
    LLVMValueRef load = kl_load(l, kl_memory_type(l, type), pointer);
    LLVMSetAlignment(load, alignment);
    kl_annotate_load(l, load, object);
    /* The memory can be uninitialized, or another thread can write to it at the same time. Freezing
     * ensures that a check of the loaded value and the access after the check use the same
     * value. */
    bool is_frozen = l->c->module->has_guest;
    return kl_from_memory(l, type, is_frozen ? LLVMBuildFreeze(l->builder, load, "") : load);
  }
  LLVMValueRef value = LLVMGetPoison(kl_register_type(l, type));
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    LLVMValueRef at = kl_byte_pointer(l, pointer, part.offset_bytes);
    value = kl_set_part(l, type, value,
                        kl_load_value(l, part.type, at,
                                      ki_alignment_at(alignment, part.offset_bytes), object),
                        i);
  }
  return value;
}

void kl_store_value(kl_lowering *l, kjit_type type, LLVMValueRef pointer, LLVMValueRef value,
                    uint32_t alignment, uint32_t object)
{
  KJ_ASSERT(alignment && (alignment & (alignment - 1)) == 0);
  bool is_misaligned = alignment < kl_type_alignment(l, type);
  if (is_whole(l, type) && !(is_misaligned && kl_type_info(l, type)->class_ == KJ_CLASS_VECTOR)) {
    kl_assert_access(l, pointer, kl_scalar_bytes(l, type), alignment, object);
    LLVMValueRef stored = kl_to_memory(l, type, value);
    LLVMValueRef store = kl_store(l, stored, pointer);
    LLVMSetAlignment(store, alignment);
    kl_annotate_access(l, store, object);
    return;
  }
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    LLVMValueRef at = kl_byte_pointer(l, pointer, part.offset_bytes);
    kl_store_value(l, part.type, at, kl_get_part(l, type, value, i),
                   ki_alignment_at(alignment, part.offset_bytes), object);
  }
}

/* ---- expressions ---- */

LLVMValueRef kl_lower_tuple(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_TUPLE);
  LLVMValueRef tuple = LLVMGetPoison(kl_register_type(l, expr->type));
  for (size_t i = 0; i < expr->args.count; i++)
    tuple = kl_set_part(l, expr->type, tuple, kl_lower_expr(l, expr->args.items[i]), (uint32_t)i);
  return tuple;
}

LLVMValueRef kl_lower_item(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_ITEM);
  return kl_get_part(l, expr->x->type, kl_lower_expr(l, expr->x), expr->dimension);
}

/* Returns the row-major index of an element as an i64. Checks the index if the node is checked. */
static LLVMValueRef place_of(kl_lowering *l, const kt_expr *expr)
{
  const ki_type_info *info = kl_type_info(l, expr->x->type);
  bool is_vector = info->class_ == KJ_CLASS_VECTOR;
  LLVMValueRef place = kl_const64(l, 0);
  for (size_t i = 0; i < expr->args.count; i++) {
    LLVMValueRef extent = kl_const64(l, is_vector ? (int64_t)info->count : info->extents[i]);
    LLVMValueRef index = kl_lower_exact_index(l, expr->args.items[i]);
    if (expr->is_checked) kl_check_index(l, KJ_CHECK_MADE, expr->args.items[i], index, extent);
    place = kl_add(l, kl_mul(l, place, extent), index);
  }
  return place;
}

/* Stores an array to memory, so that an element with a run-time index can be accessed. Returns the
 * element address. */
static LLVMValueRef spill(kl_lowering *l, LLVMValueRef value, LLVMValueRef place,
                          LLVMTypeRef element, LLVMValueRef *memory)
{
  *memory = kl_alloca(l, LLVMTypeOf(value), "parts");
  kl_store(l, value, *memory);
  return kl_inbounds_gep(l, element, *memory, &place, 1);
}

LLVMValueRef kl_lower_element(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_ELEMENT);
  LLVMValueRef value = kl_lower_expr(l, expr->x), place = place_of(l, expr), memory;
  if (kl_type_info(l, expr->x->type)->class_ == KJ_CLASS_VECTOR)
    return kl_extract_element(l, value, place);
  if (LLVMIsAConstantInt(place) &&
      LLVMConstIntGetZExtValue(place) < kl_part_count(l, expr->x->type))
    return kl_get_part(l, expr->x->type, value, (uint32_t)LLVMConstIntGetZExtValue(place));
  LLVMTypeRef element = kl_register_type(l, expr->type);
  return kl_load(l, element, spill(l, value, place, element, &memory));
}

LLVMValueRef kl_lower_insert(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_INSERT);
  LLVMValueRef value = kl_lower_expr(l, expr->x), item = kl_lower_expr(l, expr->y), memory;
  if (expr->args.count == 0) return kl_set_part(l, expr->type, value, item, expr->dimension);
  LLVMValueRef place = place_of(l, expr);
  if (kl_type_info(l, expr->type)->class_ == KJ_CLASS_VECTOR)
    return kl_insert_element(l, value, item, place);
  if (LLVMIsAConstantInt(place) && LLVMConstIntGetZExtValue(place) < kl_part_count(l, expr->type))
    return kl_set_part(l, expr->type, value, item, (uint32_t)LLVMConstIntGetZExtValue(place));
  LLVMValueRef pointer = spill(l, value, place, LLVMTypeOf(item), &memory);
  kl_store(l, item, pointer);
  return kl_load(l, LLVMTypeOf(value), memory);
}

/* ---- lvalues ---- */

kl_array_value kl_lower_member(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_MEMBER);
  kl_array_value array = kl_lower_array(l, expr->x);
  /* with KJ_ALL_LANES, the offset is 0: the lanes start at the vector address */
  ki_component part = { 0 };
  if (expr->dimension != KJ_ALL_LANES)
    part = ki_get_component(l->c->types, kl_type_info(l, array.type)->element, expr->dimension);
  kl_array_value member =
    kl_static_array(l, expr->type, kl_byte_pointer(l, array.pointer, part.offset_bytes));
  member.object = array.object;
  return member;
}

/* Returns a generic pointer, because a pointer may point to any memory. */
LLVMValueRef kl_lower_address(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_ADDRESS);
  kl_array_value array = kl_lower_array(l, expr->x);
  LLVMValueRef pointer = kl_checked_pointer(l, &array, &expr->args, kl_check_of_expr(l, expr));
  if (LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == 0) return pointer;
  return kl_addrspacecast(l, pointer, l->pointer);
}

kl_array_value kl_lower_pointed(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_POINTED);
  kl_array_value array = { .type = expr->type,
                           .pointer = kl_lower_expr(l, expr->x),
                           .object = kl_object_of_type(l, expr->type) };
  const ki_type_info *info = kl_type_info(l, expr->type);
  if (info->is_static) return kl_static_array(l, expr->type, array.pointer);
  if (info->rank && expr->args.count == 2 * (size_t)info->rank) {
    for (uint32_t d = 0; d < info->rank; d++) {
      array.extents[d] = kl_lower_expr(l, expr->args.items[d]);
      array.strides[d] = kl_lower_expr(l, expr->args.items[info->rank + d]);
    }
    return array;
  }
  LLVMValueRef stride = kl_const64(l, 1);
  for (uint32_t d = info->rank; d-- > 0;) {
    if (d < expr->args.count) array.extents[d] = kl_lower_expr(l, expr->args.items[d]);
    array.strides[d] = stride;
    if (d) stride = kl_mul(l, stride, array.extents[d]);
  }
  return array;
}
