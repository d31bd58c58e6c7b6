/* Array indexing: 32-bit index arithmetic, and addresses of elements.
 *
 * If the fact offsets32 is true for an argument, the offset of every element fits into an i32, and
 * so does every partial sum of index * stride for an existing element. An intermediate result of an
 * index expression can exceed this range, for example a * b in (a * b) - c. Index expressions are
 * therefore computed modulo 2^32 and may wrap, but the sums over strides do not wrap. */
#include "lower/instruction.h"

static bool is_integer(kl_lowering *l, kjit_type type)
{
  return type == KJ_WEAK_INT ||
         (ki_is_scalar(type) && type != KJIT_BOOL && !kl_is_float_type(l, type));
}

/* Returns whether both operands are exact in 32 bits, so that a 32-bit operation can be used for
 * them. */
static bool are_narrow(const kt_expr *x, const kt_expr *y) { return x->is_narrow && y->is_narrow; }

static bool is_small_constant(const kt_expr *expr, int64_t least, int64_t most)
{
  return expr->kind == KJ_T_CONST && expr->integer >= least && expr->integer <= most;
}

static LLVMValueRef no_wrap(LLVMValueRef value, bool holds)
{
  if (holds && LLVMIsAInstruction(value)) LLVMSetNSW(value, true);
  return value;
}

/* Marks a 32-bit sum, difference or product as not wrapping, and asserts that its 64-bit value is
 * in range. */
static LLVMValueRef exact32(kl_lowering *l, const kt_expr *expr, LLVMValueRef value, LLVMValueRef x,
                            LLVMValueRef y)
{
  KJ_ASSERT(expr->is_narrow);
  if (kl_asserts_facts(l))
    kl_assert_range(l, expr->range, KJIT_I64,
                    kl_build_binary(l, expr->op, KJIT_I64, kl_as_i64(l, x), kl_as_i64(l, y),
                                    expr->location));
  return no_wrap(value, true);
}

static LLVMValueRef asserted(kl_lowering *l, const kt_expr *expr, LLVMValueRef value)
{
  if (expr->is_narrow) kl_assert_range(l, expr->range, KJIT_I64, value);
  return value;
}

static LLVMValueRef binary32(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_BINARY);
  bool is_exact = expr->is_narrow && are_narrow(expr->x, expr->y);
  switch (KJ_AMONG(expr->op)) {
  case KJIT_OP_ADD:
  case KJIT_OP_SUB:
  case KJIT_OP_MUL:
  case KJIT_OP_BIT_AND:
  case KJIT_OP_BIT_OR:
  case KJIT_OP_BIT_XOR: {
    LLVMValueRef x = kl_lower_index32(l, expr->x), y = kl_lower_index32(l, expr->y);
    LLVMValueRef value = kl_build_binary(l, expr->op, KJIT_I32, x, y, expr->location);
    bool wraps = expr->op == KJIT_OP_ADD || expr->op == KJIT_OP_SUB || expr->op == KJIT_OP_MUL;
    return wraps && is_exact ? exact32(l, expr, value, x, y) : asserted(l, expr, value);
  }
  case KJIT_OP_SHL: {
    if (!is_small_constant(expr->y, 0, 31)) return NULL;
    LLVMValueRef x = kl_lower_index32(l, expr->x), y = kl_const32(l, (int64_t)expr->y->integer),
                 value = kl_shl(l, x, y);
    return is_exact ? exact32(l, expr, value, x, y) : value;
  }
  case KJIT_OP_SHR:
    if (!is_small_constant(expr->y, 0, 31) || !expr->x->is_narrow) return NULL;
    return asserted(l, expr,
                    kl_ashr(l, kl_lower_index32(l, expr->x),
                            kl_const32(l, (int64_t)expr->y->integer)));
  case KJIT_OP_FLOORDIV:
  case KJIT_OP_MOD: {
    if (!expr->is_narrow || !are_narrow(expr->x, expr->y)) return NULL;
    LLVMValueRef x = kl_lower_index32(l, expr->x), y = kl_lower_index32(l, expr->y);
    kl_check_divisor(l, expr, KJIT_I32, x, y);
    return asserted(l, expr, kl_build_binary(l, expr->op, KJIT_I32, x, y, expr->location));
  }
  default: return NULL;
  }
}

static LLVMValueRef convert32(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_CONVERT);
  if (!is_integer(l, expr->x->type)) return NULL;
  /* the 64-bit operand is needed for the assertion of its range */
  if (kl_asserts_facts(l) && expr->is_narrow) return NULL;
  if (kl_scalar_bytes(l, expr->x->type) >= 4) return kl_lower_index32(l, expr->x);
  return kl_build_convert(l, expr->x->type, KJIT_I32, kl_lower_expr(l, expr->x));
}

static LLVMValueRef extent32(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_EXTENT || expr->kind == KJ_T_STRIDE);
  kl_array_value array = kl_lower_array(l, expr->x);
  LLVMValueRef value =
    expr->kind == KJ_T_EXTENT ? array.extents[expr->dimension] : array.strides[expr->dimension];
  if (!value) value = kl_extent(l, &array, expr->dimension);
  if (expr->is_narrow) kl_assert_range(l, expr->range, KJIT_I64, value);
  return kl_as_i32(l, value);
}

LLVMValueRef kl_try_index32(kl_lowering *l, const kt_expr *expr)
{
  if (expr->kind == KJ_T_CONST) return kl_const32(l, (int64_t)expr->integer);
  switch (KJ_AMONG(expr->kind)) {
  case KJ_T_VAR: return kl_get_variable32(l, expr->var);
  case KJ_T_UNARY:
    if (expr->op == KJIT_OP_NEG) {
      LLVMValueRef x = kl_lower_index32(l, expr->x), value = kl_neg(l, x);
      if (!expr->is_narrow || !expr->x->is_narrow) return value;
      kl_assert_range(l, expr->range, KJIT_I64, kl_neg(l, kl_as_i64(l, x)));
      return no_wrap(value, true);
    }
    return expr->op == KJIT_OP_INVERT ? kl_not(l, kl_lower_index32(l, expr->x)) : NULL;
  case KJ_T_BINARY: return expr->type == KJIT_I64 ? binary32(l, expr) : NULL;
  case KJ_T_CONVERT: return convert32(l, expr);
  case KJ_T_EXTENT:
  case KJ_T_STRIDE: return extent32(l, expr);
  default: return NULL;
  }
}

/* Lowers an integer expression to an i32. An expression of fewer than 64 bits is evaluated in its
 * own type and then converted. Conversions call this function also for i32 and u32 operands. */
LLVMValueRef kl_lower_index32(kl_lowering *l, const kt_expr *expr)
{
  if (expr->kind != KJ_T_CONST && kl_scalar_bytes(l, expr->type) < 8)
    return kl_build_convert(l, expr->type, KJIT_I32, kl_lower_expr(l, expr));
  LLVMValueRef value = kl_try_index32(l, expr);
  return value ? value : kl_as_i32(l, kl_lower_expr(l, expr));
}

/* ---- extents and strides ---- */

LLVMValueRef kl_extent(kl_lowering *l, const kl_array_value *array, uint32_t dimension)
{
  KJ_ASSERT(dimension < kl_type_info(l, array->type)->rank);
  if (array->extents[dimension]) return kl_as_i64(l, array->extents[dimension]);
  const ki_type_info *info = kl_type_info(l, array->type);
  /* parameter.c has found that the kernel does not use this extent of the argument */
  if (info->space != KJ_SPACE_SHARED) return LLVMGetPoison(l->i64);
  return kl_own_extent(l, kl_scalar_bytes(l, info->element));
}

LLVMValueRef kl_stride(kl_lowering *l, const kl_array_value *array, uint32_t dimension)
{
  KJ_ASSERT(dimension < kl_type_info(l, array->type)->rank);
  return array->strides[dimension] ? kl_as_i64(l, array->strides[dimension])
                                   : LLVMGetPoison(l->i64);
}

/* ---- addresses ---- */

/* Returns index * stride in the index type. */
static LLVMValueRef scaled(kl_lowering *l, const kl_array_value *array, LLVMValueRef index,
                           uint32_t dimension)
{
  /* a view's stride is missing if no access needs it */
  if (LLVMIsAConstantInt(index) && LLVMIsNull(index)) return index;
  LLVMValueRef stride = array->strides[dimension];
  KJ_ASSERT(stride); /* parameter.c has found that the kernel needs this stride */
  if (kl_is_one(stride)) return index;
  stride = LLVMTypeOf(index) == l->i32 ? kl_as_i32(l, stride) : kl_as_i64(l, stride);
  return no_wrap(kl_mul(l, index, stride), true);
}

static LLVMValueRef step_to(kl_lowering *l, LLVMTypeRef type, LLVMValueRef pointer,
                            LLVMValueRef offset)
{
  if (LLVMIsAConstantInt(offset) && LLVMIsNull(offset)) return pointer;
  offset = kl_as_i64(l, offset);
  return kl_inbounds_gep(l, type, pointer, &offset, 1);
}

/* Returns an element's address. 32-bit offsets are added to each other first, and their sum to the
 * address, which takes half as many instructions. Each partial sum is the offset of an element [i,
 * .., 0, ..], so it does not wrap. 64-bit offsets are added to the address one dimension at a time,
 * starting with the outermost. LLVM can then hoist the additions that are invariant in an inner
 * loop. */
LLVMValueRef kl_element_pointer_at(kl_lowering *l, const kl_array_value *array,
                                   LLVMValueRef const *indices, uint32_t count)
{
  KJ_ASSERT(count <= KJ_MAX_RANK);
  LLVMTypeRef type = kl_memory_type(l, kl_type_info(l, array->type)->element);
  LLVMValueRef pointer = array->pointer, sum = NULL;
  for (uint32_t d = 0; d < count; d++) {
    LLVMValueRef offset = scaled(l, array, indices[d], d);
    if (LLVMTypeOf(offset) == l->i32) sum = sum ? no_wrap(kl_add(l, sum, offset), true) : offset;
    else pointer = step_to(l, type, pointer, offset);
  }
  return sum ? step_to(l, type, pointer, sum) : pointer;
}

/* Returns whether offsets can be computed modulo 2^32. This is the case for arguments with the fact
 * offsets32, and for shared and local arrays, which are small. The CPU always uses 64 bits, which
 * are equally fast, because LLVM recognizes adjacent addresses only if the index cannot wrap. */
static bool has_small_offsets(kl_lowering *l, const kl_array_value *array)
{
  if (l->c->request->target.kind == KJ_TARGET_CPU) return false;
  ki_space space = kl_type_info(l, array->type)->space;
  if (space == KJ_SPACE_GENERIC) return false;
  if (space != KJ_SPACE_GLOBAL) return true;
  return l->c->request->signature->offsets32;
}

/* Records that the code relies on the fact offsets32 if the array is in global memory. This fact
 * about arguments then applies, because global memory always belongs to an argument. */
static void note_offsets(kl_lowering *l, const kl_array_value *array)
{
  if (kl_type_info(l, array->type)->space == KJ_SPACE_GLOBAL) l->c->used_offsets32 = true;
}

static LLVMValueRef lower_index(kl_lowering *l, const kt_expr *index, bool is_small)
{
  if (is_small) return kl_lower_index32(l, index);
  /* the product with the stride can need 64 bits */
  if (index->is_narrow) return kl_as_i64(l, kl_lower_index32(l, index));
  if (index->type == KJIT_I64 || index->type == KJIT_U64) return kl_lower_expr(l, index);
  return kl_build_convert(l, index->type, KJIT_I64, kl_lower_expr(l, index));
}

/* Returns the element address in the current copy of a vectorized body. The form of the computation
 * lets LLVM recognize that adjacent copies have adjacent addresses. */
static LLVMValueRef vector_pointer(kl_lowering *l, const kl_array_value *array)
{
  KJ_ASSERT(l->vector_variable && l->vector_step < l->vector_count);
  LLVMTypeRef type = kl_memory_type(l, kl_type_info(l, array->type)->element);
  LLVMValueRef base = kl_inbounds_gep(l, type, array->pointer, &l->vector_base, 1),
               step = kl_const64(l, l->vector_step);
  return l->vector_step ? kl_inbounds_gep(l, type, base, &step, 1) : base;
}

bool kl_is_vector_access(kl_lowering *l, const kl_array_value *array, const kt_exprs *indices)
{
  if (!l->vector_variable || indices->count != 1 || !kl_is_argument(array->object)) return false;
  if (kl_is_composed_type(l, kl_type_info(l, array->type)->element)) return false;
  const kt_expr *index = indices->items[0];
  return index->kind == KJ_T_VAR && index->var == l->vector_variable &&
         kl_is_one(array->strides[0]);
}

LLVMValueRef kl_element_pointer(kl_lowering *l, const kl_array_value *array,
                                const kt_exprs *indices)
{
  KJ_ASSERT(indices->count <= KJ_MAX_RANK);
  if (kl_is_vector_access(l, array, indices)) return vector_pointer(l, array);
  bool is_small = has_small_offsets(l, array);
  LLVMValueRef values[KJ_MAX_RANK];
  for (size_t i = 0; i < indices->count; i++)
    values[i] = lower_index(l, indices->items[i], is_small);
  if (is_small && indices->count) note_offsets(l, array);
  return kl_element_pointer_at(l, array, values, (uint32_t)indices->count);
}

/* Returns the exact index in 64 bits. */
LLVMValueRef kl_lower_exact_index(kl_lowering *l, const kt_expr *index)
{
  if (index->kind != KJ_T_CONST && index->is_narrow)
    return kl_as_i64(l, kl_lower_index32(l, index));
  if (index->type == KJIT_I64 || index->type == KJIT_U64) return kl_lower_expr(l, index);
  return kl_build_convert(l, index->type, KJIT_I64, kl_lower_expr(l, index));
}

static void lower_exact_indices(kl_lowering *l, const kt_exprs *indices, LLVMValueRef *values)
{
  for (size_t i = 0; i < indices->count; i++)
    values[i] = kl_lower_exact_index(l, indices->items[i]);
}

static LLVMValueRef exact_pointer(kl_lowering *l, const kl_array_value *array,
                                  const kt_exprs *indices, LLVMValueRef *values)
{
  if (kl_is_vector_access(l, array, indices)) return vector_pointer(l, array);
  bool is_small = has_small_offsets(l, array);
  for (size_t i = 0; i < indices->count && is_small; i++) values[i] = kl_as_i32(l, values[i]);
  if (is_small && indices->count) note_offsets(l, array);
  return kl_element_pointer_at(l, array, values, (uint32_t)indices->count);
}

LLVMValueRef kl_checked_pointer(kl_lowering *l, const kl_array_value *array,
                                const kt_exprs *indices, kl_check check)
{
  KJ_ASSERT(indices->count <= KJ_MAX_RANK);
  if (check == KJ_CHECK_NONE) return kl_element_pointer(l, array, indices);
  LLVMValueRef values[KJ_MAX_RANK], extents[KJ_MAX_RANK];
  lower_exact_indices(l, indices, values);
  for (size_t i = 0; i < indices->count; i++) extents[i] = kl_extent(l, array, (uint32_t)i);
  kl_check_indices(l, check, indices, values, extents);
  return exact_pointer(l, array, indices, values);
}

uint32_t kl_element_alignment(kl_lowering *l, const kl_array_value *array, const kt_exprs *indices)
{
  uint32_t size = kl_scalar_bytes(l, kl_type_info(l, array->type)->element);
  if (!kl_is_vector_access(l, array, indices) || l->vector_step)
    return kl_array_alignment(l, array->type);
  return size * l->vector_count < 16 ? size * l->vector_count : 16;
}

/* ---- views ---- */

/* Multiplies a step by a stride, exactly, in 64 bits; LLVM narrows the multiplication if 32 bits
 * suffice. 64 bits are needed even if the fact offsets32 is true, because the step of a dimension
 * with at most one element may be large. */
static LLVMValueRef multiply(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  if (kl_is_one(x)) return y;
  if (kl_is_one(y)) return x;
  return kl_mul(l, kl_as_i64(l, x), kl_as_i64(l, y));
}

static LLVMValueRef lower_part(kl_lowering *l, const kt_expr *view, int part)
{
  KJ_ASSERT(part >= 0 && (size_t)part < view->indices.count);
  const kt_expr *expr = view->indices.items[part];
  return expr->is_narrow && expr->kind != KJ_T_CONST ? kl_lower_index32(l, expr)
                                                     : kl_lower_expr(l, expr);
}

static void set_source_dimension(kl_lowering *l, const kt_expr *expr, const kl_array_value *array,
                                 uint32_t d, kl_array_value *view)
{
  const kt_view_dimension same = { (int)(d + expr->args.count), KJ_VIEW_SAME, KJ_VIEW_SAME };
  const kt_view_dimension *dimension = expr->dimensions ? &expr->dimensions[d] : &same;
  LLVMValueRef stride = array->strides[dimension->source];
  view->extents[d] = dimension->extent == KJ_VIEW_SAME ? array->extents[dimension->source]
                                                       : lower_part(l, expr, dimension->extent);
  view->strides[d] = dimension->step == KJ_VIEW_SAME || !stride
                       ? stride
                       : multiply(l, stride, lower_part(l, expr, dimension->step));
}

static void set_new_shape(kl_lowering *l, const kt_expr *expr, uint32_t rank, kl_array_value *view)
{
  KJ_ASSERT(expr->dimensions);
  for (uint32_t d = 0; d < rank; d++)
    view->extents[d] = lower_part(l, expr, expr->dimensions[d].extent);
  LLVMValueRef stride = kl_const64(l, 1);
  for (uint32_t d = rank; d-- > 0;) {
    view->strides[d] = stride;
    if (d) stride = multiply(l, stride, view->extents[d]);
  }
}

/* Returns the dimension of the view that selects from dimension `source` of the array. Returns NULL
 * if the view selects a single index there, so that the view does not have this dimension. */
static const kt_view_dimension *kept_dimension(const kt_expr *view, uint32_t rank, uint32_t source)
{
  for (uint32_t d = 0; view->dimensions && d < rank; d++)
    if (view->dimensions[d].source == (int)source) return &view->dimensions[d];
  return NULL;
}

static void check_kept(kl_lowering *l, const kt_expr *view, const kt_view_dimension *kept,
                       LLVMValueRef first, LLVMValueRef extent)
{
  if (kept->extent == KJ_VIEW_SAME) return;
  KJ_ASSERT(!view->is_left_out); /* pass/prove.c never omits a slice's check */
  kl_checked_slice slice = { .location = view->location,
                             .first = first ? first : kl_const64(l, 0),
                             .extent = extent };
  slice.count = kl_as_i64(l, lower_part(l, view, kept->extent));
  if (kept->step != KJ_VIEW_SAME) slice.step = kl_as_i64(l, lower_part(l, view, kept->step));
  kl_check_slice(l, &slice);
}

/* Checks the indices and slices of a view and returns its start. A reshaped view has no start
 * indices; only its shape is given. */
static LLVMValueRef checked_start(kl_lowering *l, const kt_expr *view, const kl_array_value *array,
                                  uint32_t rank)
{
  KJ_ASSERT(kl_check_of_expr(l, view) != KJ_CHECK_NONE);
  LLVMValueRef values[KJ_MAX_RANK];
  lower_exact_indices(l, &view->args, values);
  uint32_t source_rank = kl_type_info(l, array->type)->rank;
  for (uint32_t i = 0; i < source_rank; i++) {
    const kt_view_dimension *kept = kept_dimension(view, rank, i);
    LLVMValueRef first = i < view->args.count ? values[i] : NULL;
    if (kept) check_kept(l, view, kept, first, kl_extent(l, array, i));
    else if (first)
      kl_check_index(l, kl_check_of_expr(l, view), view->args.items[i], first,
                     kl_extent(l, array, i));
  }
  return exact_pointer(l, array, &view->args, values);
}

/* Returns an array's size in bytes, modulo 2^64. Sets *overflows to whether the actual size is 2^64
 * or more. */
static LLVMValueRef count_bytes(kl_lowering *l, const kl_array_value *array,
                                LLVMValueRef *overflows)
{
  const ki_type_info *info = kl_type_info(l, array->type);
  LLVMValueRef bytes = kl_const64(l, kl_scalar_bytes(l, info->element));
  *overflows = LLVMConstNull(l->i1);
  for (uint32_t d = 0; d < info->rank; d++) {
    LLVMValueRef factors[] = { bytes, kl_extent(l, array, d) },
                 product = kl_intrinsic(l, "llvm.umul.with.overflow", &l->i64, 1, factors, 2);
    bytes = kl_extract_value(l, product, 0);
    *overflows = kl_or(l, *overflows, kl_extract_value(l, product, 1));
  }
  return bytes;
}

/* Checks that the memory is large enough for the new shape, and that the elements are aligned. A
 * negative extent is treated as too large. */
static void check_new_shape(kl_lowering *l, const kt_expr *expr, const kl_array_value *array,
                            const kl_array_value *view)
{
  LLVMValueRef overflows, is_large, have = count_bytes(l, array, &overflows),
                                    need = count_bytes(l, view, &is_large);
  kl_failure size = { .kind = KJ_FAILURE_VIEW_SIZE,
                      .location = expr->location,
                      .count = 2,
                      .types = { KJIT_U64, KJIT_U64 },
                      .values = { need, have } };
  kl_fail_if(l, kl_or(l, is_large, kl_icmp(l, LLVMIntUGT, need, have)), &size);
  if (!expr->dimension) return;
  LLVMValueRef alignment = kl_const64(l, expr->dimension),
               address = kl_ptrtoint(l, view->pointer, l->i64),
               behind = kl_and(l, address, kl_const64(l, (int64_t)expr->dimension - 1));
  kl_failure start = { .kind = KJ_FAILURE_VIEW_START,
                       .location = expr->location,
                       .count = 2,
                       .types = { KJIT_U64, KJIT_U64 },
                       .values = { alignment, behind } };
  kl_fail_if(l, kl_icmp(l, LLVMIntNE, behind, kl_const64(l, 0)), &start);
}

kl_array_value kl_lower_view(kl_lowering *l, const kt_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_T_VIEW);
  kl_array_value array = kl_lower_array(l, expr->x);
  const ki_type_info *info = kl_type_info(l, expr->type);
  kl_array_value view = { .type = expr->type };
  view.pointer = kl_check_of_expr(l, expr) == KJ_CHECK_NONE
                   ? kl_element_pointer(l, &array, &expr->args)
                   : checked_start(l, expr, &array, info->rank);
  if (info->is_static) view = kl_static_array(l, expr->type, view.pointer);
  else if (kt_has_new_shape(expr)) set_new_shape(l, expr, info->rank, &view);
  else
    for (uint32_t d = 0; d < info->rank; d++) set_source_dimension(l, expr, &array, d, &view);
  for (uint32_t d = 0; d < info->rank; d++)
    if (kl_is_unit_stride(info, d)) view.strides[d] = kl_const64(l, 1);
  view.object = array.object;
  if (kt_has_new_shape(expr) && kl_check_of_expr(l, expr) != KJ_CHECK_NONE)
    check_new_shape(l, expr, &array, &view);
  return view;
}
