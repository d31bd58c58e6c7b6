/* Subscripts: 32-bit index arithmetic and addresses.
 *
 * Under the fact offsets32 every element's offset, and so every partial sum index * stride of an
 * element that exists, is in the range of i32. The index expressions themselves may leave it on the
 * way ((a * b) - c), so they are computed modulo 2^32 and wrap; the sums over strides do not. */
#include "lower/lower.h"

static bool is_integer(kj_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_INT ||
         (kj_is_scalar(type) && type != KJIT_BOOL && !kj_is_float_type(l, type));
}

/* Fits a 32-bit operation: both operands are exact in 32 bits. */
static bool are_narrow(const kj_texpr *x, const kj_texpr *y)
{
  return x->is_narrow && y->is_narrow;
}

static bool is_small_constant(const kj_texpr *expr, int64_t least, int64_t most)
{
  return expr->kind == KJ_T_CONST && expr->integer >= least && expr->integer <= most;
}

static LLVMValueRef no_wrap(LLVMValueRef value, bool holds)
{
  if (holds && LLVMIsAInstruction(value)) LLVMSetNSW(value, true);
  return value;
}

/* A sum, difference or product in 32 bits that does not leave its range: the range holds in 64. */
static LLVMValueRef exact32(kj_lowering *l, const kj_texpr *expr, LLVMValueRef value,
                            LLVMValueRef x, LLVMValueRef y)
{
  if (kj_asserts_facts(l))
    kj_assert_range(l, expr->range, KJIT_I64,
                    kj_build_binary(l, expr->op, KJIT_I64, kj_as_i64(l, x), kj_as_i64(l, y),
                                    expr->location));
  return no_wrap(value, true);
}

static LLVMValueRef asserted(kj_lowering *l, const kj_texpr *expr, LLVMValueRef value)
{
  if (expr->is_narrow) kj_assert_range(l, expr->range, KJIT_I64, value);
  return value;
}

static LLVMValueRef binary32(kj_lowering *l, const kj_texpr *expr)
{
  LLVMBuilderRef b = l->builder;
  bool is_exact = expr->is_narrow && are_narrow(expr->x, expr->y);
  switch (KJ_AMONG(expr->op)) {
  case KJIT_ADD:
  case KJIT_SUB:
  case KJIT_MUL:
  case KJIT_BIT_AND:
  case KJIT_BIT_OR:
  case KJIT_BIT_XOR: {
    LLVMValueRef x = kj_lower_index32(l, expr->x), y = kj_lower_index32(l, expr->y);
    LLVMValueRef value = kj_build_binary(l, expr->op, KJIT_I32, x, y, expr->location);
    bool wraps = expr->op == KJIT_ADD || expr->op == KJIT_SUB || expr->op == KJIT_MUL;
    return wraps && is_exact ? exact32(l, expr, value, x, y) : asserted(l, expr, value);
  }
  case KJIT_SHL: {
    if (!is_small_constant(expr->y, 0, 31)) return NULL;
    LLVMValueRef x = kj_lower_index32(l, expr->x), y = kj_const32(l, (int64_t)expr->y->integer),
                 value = LLVMBuildShl(b, x, y, "");
    return is_exact ? exact32(l, expr, value, x, y) : value;
  }
  case KJIT_SHR:
    if (!is_small_constant(expr->y, 0, 31) || !expr->x->is_narrow) return NULL;
    return asserted(l, expr,
                    LLVMBuildAShr(b, kj_lower_index32(l, expr->x),
                                  kj_const32(l, (int64_t)expr->y->integer), ""));
  case KJIT_FLOORDIV:
  case KJIT_MOD: {
    if (!expr->is_narrow || !are_narrow(expr->x, expr->y)) return NULL;
    LLVMValueRef x = kj_lower_index32(l, expr->x), y = kj_lower_index32(l, expr->y);
    if (expr->is_checked) kj_check_divisor(l, expr, KJIT_I32, x, y);
    return asserted(l, expr, kj_build_binary(l, expr->op, KJIT_I32, x, y, expr->location));
  }
  default: return NULL;
  }
}

static LLVMValueRef convert32(kj_lowering *l, const kj_texpr *expr)
{
  if (!is_integer(l, expr->x->type)) return NULL;
  if (kj_asserts_facts(l) && expr->is_narrow) return NULL; /* all of the operand is looked at */
  if (kj_scalar_bytes(l, expr->x->type) >= 4) return kj_lower_index32(l, expr->x);
  return kj_build_convert(l, expr->x->type, KJIT_I32, kj_lower_expr(l, expr->x));
}

static LLVMValueRef extent32(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value array = kj_lower_array(l, expr->x);
  LLVMValueRef value =
    expr->kind == KJ_T_EXTENT ? array.extents[expr->dimension] : array.strides[expr->dimension];
  if (!value) value = kj_extent(l, &array, expr->dimension);
  if (expr->is_narrow) kj_assert_range(l, expr->range, KJIT_I64, value);
  return kj_as_i32(l, value);
}

LLVMValueRef kj_try_index32(kj_lowering *l, const kj_texpr *expr)
{
  if (expr->kind == KJ_T_CONST) return kj_const32(l, (int64_t)expr->integer);
  switch (KJ_AMONG(expr->kind)) {
  case KJ_T_VAR: return kj_get_variable32(l, expr->var);
  case KJ_T_UNARY:
    if (expr->op == KJIT_NEG) {
      LLVMValueRef x = kj_lower_index32(l, expr->x), value = LLVMBuildNeg(l->builder, x, "");
      if (!expr->is_narrow || !expr->x->is_narrow) return value;
      kj_assert_range(l, expr->range, KJIT_I64, LLVMBuildNeg(l->builder, kj_as_i64(l, x), ""));
      return no_wrap(value, true);
    }
    return expr->op == KJIT_INVERT ? LLVMBuildNot(l->builder, kj_lower_index32(l, expr->x), "")
                                   : NULL;
  case KJ_T_BINARY: return expr->type == KJIT_I64 ? binary32(l, expr) : NULL;
  case KJ_T_CONVERT: return convert32(l, expr);
  case KJ_T_EXTENT:
  case KJ_T_STRIDE: return extent32(l, expr);
  default: return NULL;
  }
}

/* Below 64 bits there is nothing to save; i32 and u32 expressions end up here as operands of
 * conversions. */
LLVMValueRef kj_lower_index32(kj_lowering *l, const kj_texpr *expr)
{
  if (expr->kind != KJ_T_CONST && kj_scalar_bytes(l, expr->type) < 8)
    return kj_build_convert(l, expr->type, KJIT_I32, kj_lower_expr(l, expr));
  LLVMValueRef value = kj_try_index32(l, expr);
  return value ? value : kj_as_i32(l, kj_lower_expr(l, expr));
}

/* ---- extents and strides ---- */

LLVMValueRef kj_extent(kj_lowering *l, const kj_array_value *array, uint32_t dimension)
{
  if (array->extents[dimension]) return kj_as_i64(l, array->extents[dimension]);
  const kj_type_info *info = kj_type(l->c->types, array->type);
  /* an argument's: the plan found no use of the result */
  if (info->space != KJ_SPACE_SHARED) return LLVMGetPoison(l->i64);
  return kj_own_extent(l, kj_scalar_bytes(l, info->element));
}

LLVMValueRef kj_stride(kj_lowering *l, const kj_array_value *array, uint32_t dimension)
{
  return array->strides[dimension] ? kj_as_i64(l, array->strides[dimension])
                                   : LLVMGetPoison(l->i64);
}

/* ---- addresses ---- */

static bool is_one(LLVMValueRef value)
{
  return LLVMIsAConstantInt(value) && LLVMConstIntGetZExtValue(value) == 1;
}

/* index * stride, of the index's type. */
static LLVMValueRef scaled(kj_lowering *l, const kj_array_value *array, LLVMValueRef index,
                           uint32_t dimension)
{
  /* of a view: the stride may be one that was not asked for */
  if (LLVMIsAConstantInt(index) && LLVMIsNull(index)) return index;
  LLVMValueRef stride = array->strides[dimension];
  if (is_one(stride)) return index;
  stride = LLVMTypeOf(index) == l->i32 ? kj_as_i32(l, stride) : kj_as_i64(l, stride);
  return no_wrap(LLVMBuildMul(l->builder, index, stride, ""), true);
}

static LLVMValueRef step_to(kj_lowering *l, LLVMTypeRef type, LLVMValueRef pointer,
                            LLVMValueRef offset)
{
  if (LLVMIsAConstantInt(offset) && LLVMIsNull(offset)) return pointer;
  offset = kj_as_i64(l, offset);
  return LLVMBuildInBoundsGEP2(l->builder, type, pointer, &offset, 1, "");
}

/* Offsets in 32 bits are added up, which takes half the instructions; each partial sum is that of
 * an element [i, .., 0, ..] and does not wrap. In 64 bits one step a dimension, outermost first, so
 * that what does not change in an inner loop is hoisted. */
LLVMValueRef kj_element_pointer_at(kj_lowering *l, const kj_array_value *array,
                                   LLVMValueRef const *indices, uint32_t count)
{
  LLVMTypeRef type = kj_memory_type(l, kj_type(l->c->types, array->type)->element);
  LLVMValueRef pointer = array->pointer, sum = NULL;
  for (uint32_t d = 0; d < count; d++) {
    LLVMValueRef offset = scaled(l, array, indices[d], d);
    if (LLVMTypeOf(offset) == l->i32)
      sum = sum ? no_wrap(LLVMBuildAdd(l->builder, sum, offset, ""), true) : offset;
    else pointer = step_to(l, type, pointer, offset);
  }
  return sum ? step_to(l, type, pointer, sum) : pointer;
}

/* i32 arithmetic modulo 2^32 is right for arguments under offsets32, and for arrays of the block
 * and the thread, which are small. */
static bool has_small_offsets(kj_lowering *l, const kj_array_value *array)
{
  kj_space space = kj_type(l->c->types, array->type)->space;
  if (space == KJ_SPACE_GENERIC) return false;
  if (space != KJ_SPACE_GLOBAL) return true;
  return l->c->request->signature->offsets32;
}

static LLVMValueRef lower_index(kj_lowering *l, const kj_texpr *index, bool is_small)
{
  if (is_small) return kj_lower_index32(l, index);
  /* the product with the stride may need more */
  if (index->is_narrow) return kj_as_i64(l, kj_lower_index32(l, index));
  if (index->type == KJIT_I64 || index->type == KJIT_U64) return kj_lower_expr(l, index);
  return kj_build_convert(l, index->type, KJIT_I64, kj_lower_expr(l, index));
}

/* The element that a copy of a vectorized body touches, written so that neighbouring copies are
 * seen to be neighbours. */
static LLVMValueRef vector_pointer(kj_lowering *l, const kj_array_value *array)
{
  LLVMTypeRef type = kj_memory_type(l, kj_type(l->c->types, array->type)->element);
  LLVMValueRef base =
                 LLVMBuildInBoundsGEP2(l->builder, type, array->pointer, &l->vector_base, 1, ""),
               step = kj_const64(l, l->vector_step);
  return l->vector_step ? LLVMBuildInBoundsGEP2(l->builder, type, base, &step, 1, "") : base;
}

bool kj_is_vector_access(kj_lowering *l, const kj_array_value *array, const kj_texprs *indices)
{
  if (!l->vector_variable || indices->count != 1 || !kj_is_argument(array->object)) return false;
  if (kj_is_composed_type(l, kj_type(l->c->types, array->type)->element)) return false;
  const kj_texpr *index = indices->items[0];
  return index->kind == KJ_T_VAR && index->var == l->vector_variable && is_one(array->strides[0]);
}

LLVMValueRef kj_element_pointer(kj_lowering *l, const kj_array_value *array,
                                const kj_texprs *indices)
{
  if (kj_is_vector_access(l, array, indices)) return vector_pointer(l, array);
  bool is_small = has_small_offsets(l, array);
  LLVMValueRef values[KJ_MAX_RANK];
  for (size_t i = 0; i < indices->count; i++)
    values[i] = lower_index(l, indices->items[i], is_small);
  if (is_small && indices->count && kj_is_argument(array->object)) l->c->used_offsets32 = true;
  return kj_element_pointer_at(l, array, values, (uint32_t)indices->count);
}

/* All of an index, in 64 bits. */
LLVMValueRef kj_lower_exact_index(kj_lowering *l, const kj_texpr *index)
{
  if (index->kind != KJ_T_CONST && index->is_narrow)
    return kj_as_i64(l, kj_lower_index32(l, index));
  if (index->type == KJIT_I64 || index->type == KJIT_U64) return kj_lower_expr(l, index);
  return kj_build_convert(l, index->type, KJIT_I64, kj_lower_expr(l, index));
}

static void lower_exact_indices(kj_lowering *l, const kj_texprs *indices, LLVMValueRef *values)
{
  for (size_t i = 0; i < indices->count; i++)
    values[i] = kj_lower_exact_index(l, indices->items[i]);
}

static LLVMValueRef exact_pointer(kj_lowering *l, const kj_array_value *array,
                                  const kj_texprs *indices, LLVMValueRef *values)
{
  if (kj_is_vector_access(l, array, indices)) return vector_pointer(l, array);
  bool is_small = has_small_offsets(l, array);
  for (size_t i = 0; i < indices->count && is_small; i++) values[i] = kj_as_i32(l, values[i]);
  if (is_small && indices->count && kj_is_argument(array->object)) l->c->used_offsets32 = true;
  return kj_element_pointer_at(l, array, values, (uint32_t)indices->count);
}

LLVMValueRef kj_checked_pointer(kj_lowering *l, const kj_array_value *array,
                                const kj_texprs *indices, bool is_checked)
{
  if (!is_checked) return kj_element_pointer(l, array, indices);
  LLVMValueRef values[KJ_MAX_RANK], extents[KJ_MAX_RANK];
  lower_exact_indices(l, indices, values);
  for (size_t i = 0; i < indices->count; i++) extents[i] = kj_extent(l, array, (uint32_t)i);
  kj_check_indices(l, indices, values, extents);
  return exact_pointer(l, array, indices, values);
}

uint32_t kj_element_alignment(kj_lowering *l, const kj_array_value *array, const kj_texprs *indices)
{
  uint32_t size = kj_scalar_bytes(l, kj_type(l->c->types, array->type)->element);
  if (!kj_is_vector_access(l, array, indices) || l->vector_step)
    return kj_array_alignment(l, array->type);
  return size * l->vector_count < 16 ? size * l->vector_count : 16;
}

/* ---- views ---- */

/* Exact in 64 bits, where the optimizer finds what 32 are enough for: a step that is too large for
 * the fact "offsets fit" only fits a dimension of at most one element. */
static LLVMValueRef multiply(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  if (is_one(x)) return y;
  if (is_one(y)) return x;
  return LLVMBuildMul(l->builder, kj_as_i64(l, x), kj_as_i64(l, y), "");
}

static LLVMValueRef lower_part(kj_lowering *l, const kj_texpr *view, int part)
{
  const kj_texpr *expr = view->indices.items[part];
  return expr->is_narrow && expr->kind != KJ_T_CONST ? kj_lower_index32(l, expr)
                                                     : kj_lower_expr(l, expr);
}

static void set_source_dimension(kj_lowering *l, const kj_texpr *expr, const kj_array_value *array,
                                 uint32_t d, kj_array_value *view)
{
  const kj_view_dimension same = { (int)(d + expr->args.count), KJ_VIEW_SAME, KJ_VIEW_SAME };
  const kj_view_dimension *dimension = expr->dimensions ? &expr->dimensions[d] : &same;
  LLVMValueRef stride = array->strides[dimension->source];
  view->extents[d] = dimension->extent == KJ_VIEW_SAME ? array->extents[dimension->source]
                                                       : lower_part(l, expr, dimension->extent);
  view->strides[d] = dimension->step == KJ_VIEW_SAME || !stride
                       ? stride
                       : multiply(l, stride, lower_part(l, expr, dimension->step));
}

static void set_new_shape(kj_lowering *l, const kj_texpr *expr, uint32_t rank, kj_array_value *view)
{
  for (uint32_t d = 0; d < rank; d++)
    view->extents[d] = lower_part(l, expr, expr->dimensions[d].extent);
  LLVMValueRef stride = kj_const64(l, 1);
  for (uint32_t d = rank; d-- > 0;) {
    view->strides[d] = stride;
    if (d) stride = multiply(l, stride, view->extents[d]);
  }
}

/* The dimension of the view that dimension `source` of the array becomes; NULL: it is indexed away.
 */
static const kj_view_dimension *kept_dimension(const kj_texpr *view, uint32_t rank, uint32_t source)
{
  for (uint32_t d = 0; view->dimensions && d < rank; d++)
    if (view->dimensions[d].source == (int)source) return &view->dimensions[d];
  return NULL;
}

static void check_kept(kj_lowering *l, const kj_texpr *view, const kj_view_dimension *kept,
                       LLVMValueRef first, LLVMValueRef extent)
{
  if (kept->extent == KJ_VIEW_SAME) return;
  kj_slice slice = { .location = view->location,
                     .first = first ? first : kj_const64(l, 0),
                     .extent = extent };
  slice.count = kj_as_i64(l, lower_part(l, view, kept->extent));
  if (kept->step != KJ_VIEW_SAME) slice.step = kj_as_i64(l, lower_part(l, view, kept->step));
  kj_check_slice(l, &slice);
}

/* A reshaped view has no start; its shape is made of extents. */
static LLVMValueRef checked_start(kj_lowering *l, const kj_texpr *view, const kj_array_value *array,
                                  uint32_t rank)
{
  LLVMValueRef values[KJ_MAX_RANK];
  lower_exact_indices(l, &view->args, values);
  uint32_t source_rank = kj_type(l->c->types, array->type)->rank;
  for (uint32_t i = 0; i < source_rank; i++) {
    const kj_view_dimension *kept = kept_dimension(view, rank, i);
    LLVMValueRef first = i < view->args.count ? values[i] : NULL;
    if (kept) check_kept(l, view, kept, first, kj_extent(l, array, i));
    else if (first) kj_check_index(l, view->args.items[i], first, kj_extent(l, array, i));
  }
  return exact_pointer(l, array, &view->args, values);
}

kj_array_value kj_lower_view(kj_lowering *l, const kj_texpr *expr)
{
  kj_array_value array = kj_lower_array(l, expr->x);
  const kj_type_info *info = kj_type(l->c->types, expr->type);
  kj_array_value view = { .type = expr->type };
  view.pointer = expr->is_checked ? checked_start(l, expr, &array, info->rank)
                                  : kj_element_pointer(l, &array, &expr->args);
  if (info->is_static) view = kj_static_array(l, expr->type, view.pointer);
  else if (expr->dimensions && info->rank && expr->dimensions[0].source == KJ_VIEW_SAME)
    set_new_shape(l, expr, info->rank, &view);
  else
    for (uint32_t d = 0; d < info->rank; d++) set_source_dimension(l, expr, &array, d, &view);
  for (uint32_t d = 0; d < info->rank; d++)
    if (kj_is_unit_stride(info, d)) view.strides[d] = kj_const64(l, 1);
  view.object = array.object;
  return view;
}
