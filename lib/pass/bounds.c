/* Computes the minimum and maximum that an integer expression has within a block of threads. The
 * expression can contain positions, counters, extents, parameters, sums, products and quotients.
 * Each bound is computed in two forms: as an i64 expression of values that are known when the block
 * starts, which does not overflow, and as a number that is valid in every launch. */
#include "pass/bounds.h"

enum { MOST_NODES = 40 };

const kp_bounds kp_unknown_bounds = { .known = false };

/* ---- expressions of bounds ---- */

kt_expr *kp_make_bound(kp_prover *p, int64_t value)
{
  kt_expr *e = kt_new_texpr(p->c, KJ_T_CONST, KJIT_I64, (kj_location){ 0 });
  e->integer = value;
  return e;
}

kt_expr *kp_make_i64(kp_prover *p, kt_expr *e)
{
  if (e->type == KJIT_I64) return e;
  kt_expr *wide = kt_new_texpr(p->c, KJ_T_CONVERT, KJIT_I64, e->location);
  wide->x = e;
  return wide;
}

static bool is_number(const kt_expr *e) { return e->kind == KJ_T_CONST; }

/* Returns x op y, with constants folded. fit() rejects results that overflow. */
static kt_expr *make_binary(kp_prover *p, kjit_op op, kt_expr *x, kt_expr *y)
{
  KJ_ASSERT(x->type == KJIT_I64 && y->type == KJIT_I64);
  if (is_number(x) && is_number(y) && op != KJIT_OP_FLOORDIV) {
    uint64_t a = (uint64_t)x->integer, b = (uint64_t)y->integer;
    return kp_make_bound(p, (int64_t)(op == KJIT_OP_ADD   ? a + b
                                      : op == KJIT_OP_SUB ? a - b
                                                          : a * b));
  }
  kt_expr *e = kt_new_texpr(p->c, KJ_T_BINARY, KJIT_I64, x->location);
  e->op = op;
  e->x = x;
  e->y = y;
  return e;
}

static kt_expr *make_builtin(kp_prover *p, ki_builtin_id id, kt_expr *x, kt_expr *y)
{
  KJ_ASSERT(x->type == KJIT_I64 && y->type == KJIT_I64);
  if (x == y) return x;
  kt_expr *e = kt_new_texpr(p->c, KJ_T_BUILTIN, KJIT_I64, x->location);
  e->builtin = &ki_builtin_table[id];
  KJ_PUSH(p->c->arena, &e->args, x);
  KJ_PUSH(p->c->arena, &e->args, y);
  return e;
}

kp_bounds kp_bounds_of_number(kp_prover *p, int64_t value)
{
  kt_expr *number = kp_make_bound(p, value);
  return (kp_bounds){
    .known = true, .low = number, .high = number, .least = value, .most = value, .nodes = 1
  };
}

static kp_bounds of_range(kp_prover *p, int64_t least, int64_t most)
{
  KJ_ASSERT(least <= most);
  return (kp_bounds){ .known = true,
                      .low = kp_make_bound(p, least),
                      .high = kp_make_bound(p, most),
                      .least = least,
                      .most = most,
                      .nodes = 1 };
}

static kp_bounds of_interval(kp_prover *p, kt_interval numbers)
{
  KJ_ASSERT(numbers.known && kp_is_within(numbers, INT64_MIN, INT64_MAX));
  return of_range(p, (int64_t)numbers.least, (int64_t)numbers.most);
}

/* Returns the bounds of a value that is the same in the whole block. */
static kp_bounds of_uniform(kt_expr *e, kt_interval numbers)
{
  KJ_ASSERT(e->type == KJIT_I64 && kp_is_within(numbers, INT64_MIN, INT64_MAX));
  return (kp_bounds){ .known = true,
                      .low = e,
                      .high = e,
                      .least = (int64_t)numbers.least,
                      .most = (int64_t)numbers.most,
                      .nodes = 1 };
}

/* ---- types ---- */

/* Returns the range of the type. For u64, returns only the lower half of the range, because no
 * index is in the upper half. */
bool kp_find_type_range(const kp_prover *p, kjit_type type, int64_t *least, int64_t *most)
{
  kt_interval all = kp_whole_interval(kp_find_integer(p->c->types, type)),
              index = kp_meet_intervals(all, kp_make_interval(INT64_MIN, INT64_MAX));
  *least = (int64_t)index.least;
  *most = (int64_t)index.most;
  return index.known;
}

static kt_interval numbers_of(const kp_bounds *b) { return kp_make_interval(b->least, b->most); }

/* Returns an operation's interval on i64 values before any overflow. */
static kt_interval exact(kjit_op op, const kp_bounds *x, const kp_bounds *y)
{
  KJ_ASSERT(x->known && y->known);
  return kp_exact_binary(op, (kp_integer){ 64, true }, numbers_of(x), numbers_of(y));
}

/* Returns the range of a type of at most 2 bytes. Returns unknown bounds for a larger type, because
 * such a large range would never be within the bounds of an array. */
static kp_bounds of_type(kp_prover *p, kjit_type type)
{
  int64_t least, most;
  if (ki_is_weak(type) || !kp_find_type_range(p, type, &least, &most) ||
      ki_type(p->c->types, type)->size_bytes > 2)
    return kp_unknown_bounds;
  return of_range(p, least, most);
}

/* Converts an exact result to bounds, which are valid if the type can represent the result. In a
 * loop, if this cannot be proved but the result can be computed in 64 bits, adds the condition that
 * the type can represent the result. */
static kp_bounds fit(kp_prover *p, kjit_type type, kp_bounds b, kt_interval numbers)
{
  int64_t least, most;
  if (b.nodes > MOST_NODES || !kp_find_type_range(p, type, &least, &most)) return of_type(p, type);
  bool fits = kp_is_within(numbers, least, most);
  if (!fits && (!p->inside || !kp_is_within(numbers, INT64_MIN, INT64_MAX)))
    return of_type(p, type);
  b.known = true;
  b.least = (int64_t)numbers.least;
  b.most = (int64_t)numbers.most;
  if (!fits) kp_confine(p, &b, least, most);
  return b;
}

/* ---- operations ---- */

static uint32_t sum_of_nodes(const kp_bounds *x, const kp_bounds *y)
{
  return x->nodes + y->nodes + 1;
}

kp_bounds kp_add_bounds(kp_prover *p, kjit_type type, kp_bounds x, kp_bounds y)
{
  if (!x.known || !y.known) return of_type(p, type);
  kp_bounds b = { .low = make_binary(p, KJIT_OP_ADD, x.low, y.low),
                  .high = make_binary(p, KJIT_OP_ADD, x.high, y.high),
                  .nodes = sum_of_nodes(&x, &y) };
  return fit(p, type, b, exact(KJIT_OP_ADD, &x, &y));
}

kp_bounds kp_subtract_bounds(kp_prover *p, kjit_type type, kp_bounds x, kp_bounds y)
{
  if (!x.known || !y.known) return of_type(p, type);
  kp_bounds b = { .low = make_binary(p, KJIT_OP_SUB, x.low, y.high),
                  .high = make_binary(p, KJIT_OP_SUB, x.high, y.low),
                  .nodes = sum_of_nodes(&x, &y) };
  return fit(p, type, b, exact(KJIT_OP_SUB, &x, &y));
}

static kp_bounds multiply(kp_prover *p, kjit_type type, kp_bounds x, kp_bounds y)
{
  if (!x.known || !y.known) return of_type(p, type);
  if (x.least == x.most) { /* swap the operands so that y is the constant */
    kp_bounds swap = x;
    x = y;
    y = swap;
  }
  bool is_negative = y.least == y.most && y.most < 0,
       is_ordered = y.least >= 0 && (x.least >= 0 || y.least == y.most);
  if (!is_negative && !is_ordered) return of_type(p, type);
  kt_expr *low = make_binary(p, KJIT_OP_MUL, x.low, y.low),
          *high = make_binary(p, KJIT_OP_MUL, x.high, y.high);
  kp_bounds b = { .low = is_negative ? high : low,
                  .high = is_negative ? low : high,
                  .nodes = sum_of_nodes(&x, &y) };
  return fit(p, type, b, exact(KJIT_OP_MUL, &x, &y));
}

/* Divides by a positive number. The quotient is monotonic in the dividend. */
static kp_bounds divide(kp_prover *p, kjit_type type, kp_bounds x, int64_t by)
{
  KJ_ASSERT(by > 0);
  if (!x.known) return of_type(p, type);
  kp_bounds y = kp_bounds_of_number(p, by);
  kt_interval numbers = exact(KJIT_OP_FLOORDIV, &x, &y);
  if (is_number(x.low) && is_number(x.high)) return of_interval(p, numbers);
  kp_bounds b = { .low = make_binary(p, KJIT_OP_FLOORDIV, x.low, y.low),
                  .high = make_binary(p, KJIT_OP_FLOORDIV, x.high, y.low),
                  .nodes = x.nodes + 2 };
  return fit(p, type, b, numbers);
}

static kp_bounds extremes(kp_prover *p, kp_bounds x, kp_bounds y, bool is_min, bool is_max)
{
  KJ_ASSERT(x.known && y.known);
  ki_builtin_id of_low = is_max ? KJ_BUILTIN_MAX : KJ_BUILTIN_MIN,
                of_high = is_min ? KJ_BUILTIN_MIN : KJ_BUILTIN_MAX;
  kp_bounds b = { .known = true,
                  .low = make_builtin(p, of_low, x.low, y.low),
                  .high = make_builtin(p, of_high, x.high, y.high),
                  .nodes = sum_of_nodes(&x, &y) };
  b.least = is_max == (x.least > y.least) ? x.least : y.least;
  b.most = is_min == (x.most < y.most) ? x.most : y.most;
  return b.nodes > MOST_NODES ? kp_unknown_bounds : b;
}

kp_bounds kp_find_last_bounds(kp_prover *p, kp_bounds first, kp_bounds stop, int64_t step)
{
  KJ_ASSERT(step != 0 && first.known && stop.known);
  kp_bounds one = kp_bounds_of_number(p, 1), size = kp_bounds_of_number(p, step > 0 ? step : -step);
  kp_bounds before =
    step > 0 ? kp_subtract_bounds(p, KJIT_I64, stop, one) : kp_add_bounds(p, KJIT_I64, stop, one);
  kp_bounds span = step > 0 ? kp_subtract_bounds(p, KJIT_I64, before, first)
                            : kp_subtract_bounds(p, KJIT_I64, first, before);
  kp_bounds way = multiply(p, KJIT_I64, divide(p, KJIT_I64, span, size.least), size);
  kp_bounds last =
    step > 0 ? kp_add_bounds(p, KJIT_I64, first, way) : kp_subtract_bounds(p, KJIT_I64, first, way);
  last.least = before.least; /* the last value is between first and stop, whose bounds are known */
  last.most = before.most;
  return last;
}

static bool is_positive_number(const kp_bounds *b) { return b->least == b->most && b->least > 0; }

/* Returns the bounds of x & y or x % y. These bounds do not depend on x, so in a loop they need no
 * conditions about x. */
static kp_bounds find_remainder(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(e->op == KJIT_OP_BIT_AND || e->op == KJIT_OP_MOD);
  kp_bounds y = kp_find_bounds(p, e->y);
  if (!y.known || y.most <= 0) return of_type(p, e->type);
  bool is_mask = e->op == KJIT_OP_BIT_AND;
  kp_confine(p, &y, !is_mask, y.most);
  kt_expr *high = is_mask ? y.high : make_binary(p, KJIT_OP_SUB, y.high, kp_make_bound(p, 1));
  return (kp_bounds){ .known = true,
                      .low = kp_make_bound(p, 0),
                      .high = high,
                      .most = y.most - !is_mask,
                      .nodes = y.nodes + 2 };
}

static kp_bounds find_binary(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(e->kind == KJ_T_BINARY);
  if (p->inside && (e->op == KJIT_OP_BIT_AND || e->op == KJIT_OP_MOD)) return find_remainder(p, e);
  kp_bounds x = kp_find_bounds(p, e->x), y = kp_find_bounds(p, e->y);
  bool is_below =
    y.known &&
    (e->op == KJIT_OP_BIT_AND ? y.least >= 0 : e->op == KJIT_OP_MOD && is_positive_number(&y));
  if (is_below && !x.known) x = of_range(p, INT64_MIN, INT64_MAX);
  if (is_below) return of_interval(p, exact(e->op, &x, &y));
  if (!x.known || !y.known) return of_type(p, e->type);
  switch (KJ_AMONG(e->op)) {
  case KJIT_OP_ADD: return kp_add_bounds(p, e->type, x, y);
  case KJIT_OP_SUB: return kp_subtract_bounds(p, e->type, x, y);
  case KJIT_OP_MUL: return multiply(p, e->type, x, y);
  case KJIT_OP_FLOORDIV:
    return is_positive_number(&y) ? divide(p, e->type, x, y.least) : of_type(p, e->type);
  case KJIT_OP_SHL:
    return y.least == y.most && y.least >= 0 && y.least < 31
             ? multiply(p, e->type, x, kp_bounds_of_number(p, (int64_t)1 << y.least))
             : of_type(p, e->type);
  case KJIT_OP_SHR:
    return y.least == y.most && y.least >= 0 && y.least < 31
             ? divide(p, e->type, x, (int64_t)1 << y.least)
             : of_type(p, e->type);
  default: return of_type(p, e->type);
  }
}

/* ---- positions ---- */

static kt_expr *make_position(kp_prover *p, ki_builtin_id id, uint32_t dimension)
{
  KJ_ASSERT(dimension < 3);
  kt_expr *e = kt_new_texpr(p->c, KJ_T_BUILTIN, KJIT_I64, (kj_location){ 0 });
  e->builtin = &ki_builtin_table[id];
  e->dimension = dimension;
  return e;
}

/* Returns the bounds of a position that is the same for the whole block. */
static kp_bounds find_uniform(kp_prover *p, ki_builtin_id id, uint32_t d)
{
  KJ_ASSERT(d < 3);
  kp_launch_limits limits = kp_find_limits(p->c);
  kt_interval numbers = kp_position_interval(&limits, id, d);
  return numbers.least == numbers.most ? of_interval(p, numbers)
                                       : of_uniform(make_position(p, id, d), numbers);
}

static kp_bounds find_thread_index(kp_prover *p, uint32_t d)
{
  KJ_ASSERT(d < 3);
  kp_bounds last = kp_subtract_bounds(p, KJIT_I64, find_uniform(p, KJ_BUILTIN_BLOCK_DIM, d),
                                      kp_bounds_of_number(p, 1));
  last.low = kp_make_bound(p, 0);
  last.least = 0;
  return last;
}

static kp_bounds find_builtin(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(e->kind == KJ_T_BUILTIN);
  uint32_t d = e->dimension < 3 ? e->dimension : 0;
  kp_launch_limits limits = kp_find_limits(p->c);
  switch (KJ_AMONG(e->builtin->id)) {
  case KJ_BUILTIN_THREAD_IDX: return find_thread_index(p, d);
  case KJ_BUILTIN_BLOCK_IDX:
  case KJ_BUILTIN_BLOCK_DIM:
  case KJ_BUILTIN_GRID_DIM: return find_uniform(p, e->builtin->id, d);
  case KJ_BUILTIN_GRID:
    return kp_add_bounds(p, KJIT_I64,
                         multiply(p, KJIT_I64, find_uniform(p, KJ_BUILTIN_BLOCK_IDX, d),
                                  find_uniform(p, KJ_BUILTIN_BLOCK_DIM, d)),
                         find_thread_index(p, d));
  case KJ_BUILTIN_GRIDSIZE:
    return multiply(p, KJIT_I64, find_uniform(p, KJ_BUILTIN_GRID_DIM, d),
                    find_uniform(p, KJ_BUILTIN_BLOCK_DIM, d));
  case KJ_BUILTIN_THREAD_RANK:
  case KJ_BUILTIN_WARP_RANK:
  case KJ_BUILTIN_LANEID: return of_interval(p, kp_position_interval(&limits, e->builtin->id, d));
  default: break;
  }
  if (e->args.count != 2) return of_type(p, e->type);
  kp_bounds x = kp_find_bounds(p, e->args.items[0]), y = kp_find_bounds(p, e->args.items[1]);
  if (!x.known || !y.known) return of_type(p, e->type);
  if (e->builtin->id == KJ_BUILTIN_MIN || e->builtin->id == KJ_BUILTIN_MAX)
    return extremes(p, x, y, e->builtin->id == KJ_BUILTIN_MIN, e->builtin->id == KJ_BUILTIN_MAX);
  if (e->builtin->id != KJ_BUILTIN_CEIL_DIV || !is_positive_number(&y)) return of_type(p, e->type);
  return divide(p, e->type, kp_add_bounds(p, KJIT_I64, x, kp_bounds_of_number(p, y.least - 1)),
                y.least);
}

/* ---- arrays ---- */

static kp_bounds of_extent(kp_prover *p, const kt_expr *array, uint32_t d)
{
  KJ_ASSERT(d < ki_type(p->c->types, array->type)->rank);
  kt_expr *e = kt_new_texpr(p->c, KJ_T_EXTENT, KJIT_I64, array->location);
  e->x = (kt_expr *)array;
  e->dimension = d;
  /* the memory size limits only the extents of arguments and shared arrays; it does not limit the
   * extents of views, of memory at pointers, and of arrays that the kernel creates */
  bool is_given = array->var->kind == KJ_V_SHARED ||
                  (array->var->kind == KJ_V_PARAM && p->at->instance->is_kernel);
  return of_uniform(e, is_given ? kp_extent_interval(p->c, array->type)
                                : kp_make_interval(INT64_MIN, INT64_MAX));
}

/* Finds the remaining dimensions of an indexed array. For slices and reshaped views these
 * dimensions are not known. */
static bool find_view(kp_prover *p, const kt_expr *view, uint32_t rank, kp_bounded_shape *found)
{
  KJ_ASSERT(view->kind == KJ_T_VIEW);
  const kp_bounded_shape *whole = kp_find_least_shape(p, view->x);
  if (view->dimensions || !whole) return false;
  for (uint32_t d = 0; d < rank; d++) found->extents[d] = whole->extents[view->args.count + d];
  return true;
}

static bool fill_shape(kp_prover *p, const kt_expr *array, kp_bounded_shape *found)
{
  const ki_type_info *info = ki_type(p->c->types, array->type);
  bool is_kernels = p->at->depth == 0;
  if (info->is_static) {
    for (uint32_t d = 0; d < info->rank; d++)
      found->extents[d] = kp_bounds_of_number(p, info->extents[d]);
    return true;
  }
  if (array->kind == KJ_T_VIEW) return find_view(p, array, info->rank, found);
  if (array->kind != KJ_T_VAR) return false;
  bool is_own = array->var->kind == KJ_V_SHARED || (array->var->kind == KJ_V_PARAM && is_kernels) ||
                (p->inside && !p->at->depth && !p->inside[array->var->index]);
  if (!is_own) {
    const kp_bounded_shape *kept = p->at->shapes[array->var->index];
    kp_add_conditions(p, &p->at->needs[array->var->index]);
    if (kept) *found = *kept;
    return kept != NULL;
  }
  if (!is_kernels && array->var->kind == KJ_V_SHARED) return false;
  for (uint32_t d = 0; d < info->rank; d++) found->extents[d] = of_extent(p, array, d);
  return true;
}

kp_bounded_shape *kp_find_least_shape(kp_prover *p, const kt_expr *array)
{
  kp_bounded_shape *found = KJ_NEW(p->c->arena, kp_bounded_shape);
  found->known = fill_shape(p, array, found);
  return found->known ? found : NULL;
}

static kp_bounds find_extent(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(e->kind == KJ_T_EXTENT);
  const kp_bounded_shape *of = kp_find_least_shape(p, e->x);
  return of ? of->extents[e->dimension] : kp_unknown_bounds;
}

/* ---- expressions of any kind ---- */

static kp_bounds find_variable(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(e->kind == KJ_T_VAR);
  const kt_var *var = e->var;
  int64_t least, most;
  if (var->kind != KJ_V_PARAM || p->at->depth) {
    kp_add_conditions(p, &p->at->needs[var->index]);
    return p->at->values[var->index].known ? p->at->values[var->index] : of_type(p, e->type);
  }
  if (ki_is_weak(e->type) || !kp_find_type_range(p, e->type, &least, &most) ||
      e->type == KJIT_U64 || e->type == KJIT_BOOL)
    return of_type(p, e->type);
  return of_uniform(kp_make_i64(p, (kt_expr *)e), kp_make_interval(least, most));
}

static kp_bounds find_convert(kp_prover *p, const kt_expr *e)
{
  KJ_ASSERT(e->kind == KJ_T_CONVERT);
  int64_t least, most;
  bool is_weak_integer = e->x->type == KJ_WEAK_INT && e->x->kind == KJ_T_VAR && !p->at->depth &&
                         kp_find_type_range(p, e->type, &least, &most);
  if (is_weak_integer && e->type == KJIT_I64)
    return of_uniform((kt_expr *)e, kp_make_interval(INT64_MIN, INT64_MAX));
  /* the runtime passes this untyped number to the kernel as an i32 */
  if (is_weak_integer && e->type == KJIT_I32) {
    kt_expr *wide = kt_new_texpr(p->c, KJ_T_CONVERT, KJIT_I64, e->location);
    wide->x = (kt_expr *)e;
    return of_uniform(wide, kp_make_interval(least, most));
  }
  if (ki_is_weak(e->x->type)) return of_type(p, e->type);
  kp_bounds x = kp_find_bounds(p, e->x);
  if (!x.known || !kp_find_type_range(p, e->type, &least, &most)) return of_type(p, e->type);
  if (p->inside) kp_confine(p, &x, least, most);
  return x.least < least || x.most > most ? of_type(p, e->type) : x;
}

kp_bounds kp_find_bounds(kp_prover *p, const kt_expr *e)
{
  bool is_leaf = p->inside && !p->at->depth && e->kind != KJ_T_CONST && kp_is_invariant(p, e);
  return is_leaf ? kp_bounds_of_invariant(p, (kt_expr *)e) : kp_find_bounds_by_kind(p, e);
}

kp_bounds kp_find_bounds_by_kind(kp_prover *p, const kt_expr *e)
{
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_CONST: {
    int64_t least, most;
    bool is_integer = !ki_is_weak(e->type) && kp_find_type_range(p, e->type, &least, &most);
    return is_integer && e->integer >= INT64_MIN && e->integer <= INT64_MAX
             ? kp_bounds_of_number(p, (int64_t)e->integer)
             : kp_unknown_bounds;
  }
  case KJ_T_VAR:
    return ki_type(p->c->types, e->type)->class_ == KJ_CLASS_ARRAY ? kp_unknown_bounds
                                                                   : find_variable(p, e);
  case KJ_T_UNARY: {
    kp_bounds x = kp_find_bounds(p, e->x);
    return e->op == KJIT_OP_NEG && x.known
             ? kp_subtract_bounds(p, e->type, kp_bounds_of_number(p, 0), x)
             : of_type(p, e->type);
  }
  case KJ_T_BINARY: return find_binary(p, e);
  case KJ_T_COND: {
    kp_bounds y = kp_find_bounds(p, e->y), z = kp_find_bounds(p, e->z);
    return y.known && z.known ? extremes(p, y, z, false, false) : of_type(p, e->type);
  }
  case KJ_T_CONVERT: return find_convert(p, e);
  case KJ_T_EXTENT: return find_extent(p, e);
  case KJ_T_BUILTIN: return find_builtin(p, e);
  default: return of_type(p, e->type);
  }
}
