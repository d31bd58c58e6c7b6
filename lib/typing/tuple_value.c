/* Tuples as operands: indexing, slices, concatenation and comparisons. A tuple is evaluated only
 * once, even if several of its items are used. */
#include "typing/infer.h"

static uint32_t count_of(const kt_scope *s, const kt_expr *tuple)
{
  KJ_ASSERT(kt_is_tuple(s->c, tuple->type));
  return ki_type(s->c->types, tuple->type)->count;
}

static kt_expr *item_of(kt_scope *s, const kt_expr *tuple, uint32_t index, kj_location location)
{
  return kt_make_item(s, kt_copy_texpr(s, tuple), index, location);
}

/* ---- an item that is selected at run time ---- */

/* Returns a balanced tree of conditional expressions that selects one of the items, which start at
 * index `first`. */
static kt_expr *choose(kt_scope *s, const kt_expr *tuple, const kt_expr *index, uint32_t first,
                       uint32_t count, kj_location location)
{
  if (count == 1) return item_of(s, tuple, first, location);
  uint32_t low = count / 2;
  kt_expr *is_low = kt_make_binary(s, KJIT_OP_LT, kt_copy_texpr(s, index),
                                   kt_new_integer(s, KJ_WEAK_INT, first + low, location), location);
  kt_expr *x = choose(s, tuple, index, first, low, location),
          *y = choose(s, tuple, index, first + low, count - low, location);
  return kt_make_cond(s, is_low, x, y, location);
}

/* Returns the common type of two items, or KJIT_ANY if there is none. Arrays can differ in layout,
 * and a literal gets the type of the other item; otherwise the types must be equal. */
static kjit_type join_items(kt_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  if (kt_is_array(s->c, a) && kt_is_array(s->c, b)) return kt_join_arrays(s, a, b);
  bool has_literal = a != b && (ki_is_weak(a) || ki_is_weak(b));
  if (!has_literal) return a == b ? a : KJIT_ANY;
  kjit_type joined = kt_join_values(s, a, b, location);
  return joined == a || joined == b ? joined : KJIT_ANY;
}

static void check_one_type(kt_scope *s, const kt_expr *tuple, const ki_expr *arg)
{
  const ki_type_info *info = ki_type(s->c->types, tuple->type);
  kjit_type joined = info->items[0];
  for (uint32_t i = 1; i < info->count; i++) {
    joined = join_items(s, joined, info->items[i], arg->location);
    if (joined == KJIT_ANY)
      kt_fail(s->c, arg->location, KJIT_ERROR_TYPE,
              "the items of %s have different types, so the index must be known at compile time; "
              "iterate with " KJ_PHRASE(TUPLE_LOOP,
                                        "`for v in t` or `for i in range(len(t)) @static`"),
              kt_type_text(s->c, tuple->type));
  }
}

/* Adds a bounds check for the index if bounds checks are enabled. In `@numba` functions, it is also
 * added if assertions are enabled. */
static void check_bounds(kt_scope *s, const kt_expr *index, uint32_t count, kj_location location)
{
  uint32_t needed = KJIT_CHECK_BOUNDS | (s->has_numba_types ? KJIT_CHECK_ASSERT : 0);
  if (!(s->c->request->checks & needed)) return;
  kt_expr *extent = kt_new_integer(s, KJIT_I64, count, location);
  kt_expr *exact = index->type == KJIT_U64
                     ? kt_copy_texpr(s, index)
                     : kt_convert(s, kt_copy_texpr(s, index), KJIT_I64, location);
  kt_expr *is_high = kt_make_binary(s, KJIT_OP_GE, kt_copy_texpr(s, exact),
                                    kt_new_integer(s, KJ_WEAK_INT, count, location), location);
  kt_expr *is_outside = kt_new_texpr(s->c, KJ_T_LOGIC, KJIT_BOOL, location);
  is_outside->op = KJIT_OP_OR;
  is_outside->x = kt_make_binary(s, KJIT_OP_LT, kt_copy_texpr(s, exact),
                                 kt_new_integer(s, KJ_WEAK_INT, 0, location), location);
  is_outside->y = is_high;
  kt_stmt *failure = kt_new_tstmt(s->c, KJ_TS_FAIL, location),
          *branch = kt_new_if(s->c, index->type == KJIT_U64 ? is_high : is_outside, location);
  failure->failure = KJ_FAILURE_BOUNDS;
  KJ_PUSH(s->arena, &failure->indices, exact);
  KJ_PUSH(s->arena, &failure->indices, extent);
  KJ_PUSH(s->arena, &branch->body, failure);
  kt_emit(s, branch);
}

/* Adds the number of items to a negative index, which counts from the end (`@wrap`). */
static kt_expr *wrap(kt_scope *s, kt_expr *index, uint32_t count, kj_location location)
{
  kt_expr *wide = kt_keep_value(s, kt_convert(s, index, KJIT_I64, location));
  kt_expr *is_negative = kt_make_binary(s, KJIT_OP_LT, kt_copy_texpr(s, wide),
                                        kt_new_integer(s, KJIT_I64, 0, location), location);
  kt_expr *from_end = kt_make_binary(s, KJIT_OP_ADD, kt_copy_texpr(s, wide),
                                     kt_new_integer(s, KJIT_I64, count, location), location);
  return kt_make_cond(s, is_negative, from_end, wide, location);
}

static kt_expr *choose_item(kt_scope *s, const ki_expr *arg, kt_expr *tuple, kt_expr *index,
                            kj_location location)
{
  uint32_t count = count_of(s, tuple);
  if (count == 0) kt_fail(s->c, arg->location, KJIT_ERROR_TYPE, "the tuple `()` has no items");
  check_one_type(s, tuple, arg);
  tuple = kt_keep_value(s, tuple);
  index = kt_keep_value(s, kt_make_concrete(s, index));
  bool may_wrap = s->wraps && kt_class_of(s->c, index->type) == KJ_CLASS_SIGNED;
  if (may_wrap) index = kt_keep_value(s, wrap(s, index, count, location));
  check_bounds(s, index, count, arg->location);
  return choose(s, tuple, index, 0, count, location);
}

/* ---- slices ---- */

/* Evaluates a bound of a slice and clamps it to the number of items. */
static int64_t infer_bound(kt_scope *s, const ki_expr *expr, int64_t absent, uint32_t count)
{
  __int128 distance;
  if (!expr) return absent;
  bool is_from_end = kt_is_from_end(expr, &distance);
  __int128 bound =
    is_from_end ? count - distance : kt_infer_constant(s, expr, "a bound of a slice of a tuple");
  if (s->wraps && !is_from_end && bound < 0) bound += count;
  if (s->wraps) bound = bound < 0 ? 0 : bound > count ? count : bound;
  if (bound < 0 || bound > count)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "bound %s of a slice is out of bounds for a tuple of length %u",
            kt_integer_text(s->arena, is_from_end ? -distance : bound), count);
  return (int64_t)bound;
}

static kt_expr *infer_slice(kt_scope *s, const ki_expr *slice, kt_expr *tuple, kj_location location)
{
  int64_t count = count_of(s, tuple);
  int64_t step = slice->z ? kt_infer_constant(s, slice->z, "the step of a slice of a tuple") : 1;
  if (step == 0) kt_fail(s->c, slice->z->location, KJIT_ERROR_TYPE, "the step of a slice is 0");
  int64_t first = infer_bound(s, slice->x, step > 0 ? 0 : count - 1, (uint32_t)count),
          stop = infer_bound(s, slice->y, step > 0 ? count : -1, (uint32_t)count);
  if (s->wraps && step < 0 && first == count) first = count - 1;
  bool is_outside = step < 0 && first == count && count;
  if (is_outside)
    kt_fail(s->c, slice->x->location, KJIT_ERROR_TYPE,
            "index %lld is out of bounds for a tuple of length %lld", (long long)first,
            (long long)count);
  kt_exprs items = { 0 };
  tuple = kt_keep_value(s, tuple);
  /* larger steps select the same items as a step of count + 1 */
  step = step > count ? count + 1 : step < -count ? -count - 1 : step;
  for (int64_t i = first; step > 0 ? i < stop : i > stop && i < count; i += step)
    KJ_PUSH(s->arena, &items, item_of(s, tuple, (uint32_t)i, location));
  return kt_make_tuple(s, &items, location);
}

kt_expr *kt_infer_item(kt_scope *s, const ki_expr *expr, kt_expr *tuple)
{
  uint32_t count = count_of(s, tuple);
  __int128 distance = 0;
  if (expr->args.count != 1)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "a tuple takes exactly one index, got %zu",
            expr->args.count);
  const ki_expr *arg = expr->args.items[0];
  if (arg->kind == KJ_EXPR_SLICE) return infer_slice(s, arg, tuple, expr->location);
  bool is_from_end = kt_is_from_end(arg, &distance);
  kt_order order = { 0 };
  kt_begin_operand(s, &order);
  kt_end_operand(s, &order, tuple);
  kt_begin_operand(s, &order);
  kt_expr *index = is_from_end ? kt_new_integer(s, KJ_WEAK_INT, count - distance, arg->location)
                               : kt_infer_expr(s, arg);
  if (!kt_is_integer(s->c, index->type))
    kt_fail_number(s->c, arg->location, index->type, "an index must be an integer, got %s",
                   kt_type_text(s->c, index->type));
  kt_end_operand(s, &order, index);
  kt_settle(s, &order, &tuple, 1);
  if (s->wraps && !is_from_end && kt_is_constant(index) && index->integer < 0)
    index = kt_new_integer(s, index->type, index->integer + count, arg->location);
  if (!kt_is_constant(index)) return choose_item(s, arg, tuple, index, expr->location);
  if (index->integer < 0 || index->integer >= count)
    kt_fail(s->c, arg->location, KJIT_ERROR_TYPE,
            "index %s is out of bounds for a tuple of length %u",
            kt_integer_text(s->arena, is_from_end ? -distance : index->integer), count);
  return kt_make_item(s, tuple, (uint32_t)index->integer, expr->location);
}

/* ---- sums and comparisons ---- */

static kt_expr *concatenate(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  kt_exprs items = { 0 };
  x = kt_keep_value(s, x);
  y = kt_keep_value(s, y);
  for (uint32_t i = 0; i < count_of(s, x); i++)
    KJ_PUSH(s->arena, &items, item_of(s, x, i, location));
  for (uint32_t i = 0; i < count_of(s, y); i++)
    KJ_PUSH(s->arena, &items, item_of(s, y, i, location));
  return kt_make_tuple(s, &items, location);
}

static kt_expr *make_both(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  if (kt_is_constant(x)) return x->integer ? y : x;
  if (kt_is_constant(y)) return y->integer ? x : y;
  kt_expr *both = kt_new_texpr(s->c, KJ_T_LOGIC, KJIT_BOOL, location);
  both->op = KJIT_OP_AND;
  both->x = x;
  both->y = y;
  return both;
}

/* Two tuples of equal length in temporaries. */
typedef struct pair {
  const kt_expr *x, *y;
  kj_location location;
} pair;

static kt_expr *compare_items(kt_scope *s, const pair *p, kjit_op op, uint32_t index)
{
  kt_expr *truth = kt_make_binary(s, op, item_of(s, p->x, index, p->location),
                                  item_of(s, p->y, index, p->location), p->location);
  if (truth->type == KJIT_BOOL) return truth;
  kt_fail(s->c, p->location, KJIT_ERROR_TYPE,
          "item %u of the tuples is a vector, which `%s` compares lane by lane: write `all(t[%u] "
          "%s u[%u])`",
          index, ki_op_table[op].text, index, ki_op_table[op].text, index);
}

/* Compares the items in a balanced tree, which limits the recursion depth of passes. */
static kt_expr *are_equal(kt_scope *s, const pair *p, uint32_t first, uint32_t count)
{
  if (count == 0) return kt_new_integer(s, KJIT_BOOL, 1, p->location);
  if (count == 1) return compare_items(s, p, KJIT_OP_EQ, first);
  kt_expr *x = are_equal(s, p, first, count / 2),
          *y = are_equal(s, p, first + count / 2, count - count / 2);
  return make_both(s, x, y, p->location);
}

/* Orders tuples like Python: the first two items that are not equal decide. NaN is not equal to any
 * number. */
static kt_expr *are_ordered(kt_scope *s, const pair *p, kjit_op op, uint32_t first, uint32_t count)
{
  if (count == 1) return compare_items(s, p, op, first);
  kt_expr *is_same = are_equal(s, p, first, count / 2),
          *low = are_ordered(s, p, op, first, count / 2),
          *high = are_ordered(s, p, op, first + count / 2, count - count / 2);
  if (kt_is_constant(is_same)) return is_same->integer ? high : low;
  return kt_make_cond(s, is_same, high, low, p->location);
}

/* Compares tuples of different lengths like Python: if all common items are equal, the shorter
 * tuple is less. */
static kt_expr *compare_lengths(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                                kj_location location)
{
  uint32_t first = count_of(s, x), second = count_of(s, y);
  pair p = { .location = location };
  p.x = kt_keep_value(s, x);
  p.y = kt_keep_value(s, y);
  if (op == KJIT_OP_EQ || op == KJIT_OP_NE)
    return kt_new_integer(s, KJIT_BOOL, op == KJIT_OP_NE, location);
  bool is_less = op == KJIT_OP_LT || op == KJIT_OP_LE;
  kt_expr *decided = kt_new_integer(s, KJIT_BOOL, is_less == (first < second), location);
  uint32_t common = first < second ? first : second;
  if (!common) return decided;
  kt_expr *is_same = are_equal(s, &p, 0, common);
  if (kt_is_constant(is_same))
    return is_same->integer ? decided : are_ordered(s, &p, op, 0, common);
  return kt_make_cond(s, is_same, decided, are_ordered(s, &p, op, 0, common), location);
}

static kt_expr *compare(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  uint32_t count = count_of(s, x);
  if (count != count_of(s, y) && s->has_numba_types) return compare_lengths(s, op, x, y, location);
  if (count != count_of(s, y))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "tuples with %u and %u items cannot be compared (%s and %s); compare their `len`, "
            "which is known at compile time",
            count, count_of(s, y), kt_type_text(s->c, x->type), kt_type_text(s->c, y->type));
  pair p = { .location = location };
  p.x = kt_keep_value(s, x);
  p.y = kt_keep_value(s, y);
  if (op == KJIT_OP_EQ) return are_equal(s, &p, 0, count);
  if (op == KJIT_OP_NE) return kt_make_unary(s, KJIT_OP_NOT, are_equal(s, &p, 0, count), location);
  bool are_empty_ordered = op == KJIT_OP_LE || op == KJIT_OP_GE;
  return count ? are_ordered(s, &p, op, 0, count)
               : kt_new_integer(s, KJIT_BOOL, are_empty_ordered, location);
}

static _Noreturn void fail_mixed(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                                 kj_location location)
{
  const kt_expr *tuple = kt_is_tuple(s->c, x->type) ? x : y, *other = tuple == x ? y : x;
  kt_fail(s->c, location, KJIT_ERROR_TYPE,
          "`%s` cannot be applied to a tuple, %s, and %s, which is not a tuple%s",
          ki_op_table[op].text, kt_type_text(s->c, tuple->type), kt_type_text(s->c, other->type),
          kt_is_number(s->c, other->type) ? "; select an item: `t[0]`" : "");
}

kt_expr *kt_make_tuple_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  bool compares = ki_op_table[op].class_ == KJ_OP_COMPARE;
  if (!compares && op != KJIT_OP_ADD) return NULL;
  if (!kt_is_tuple(s->c, x->type) || !kt_is_tuple(s->c, y->type)) fail_mixed(s, op, x, y, location);
  return compares ? compare(s, op, x, y, location) : concatenate(s, x, y, location);
}
