/* Value ranges and 32-bit indices (kernel-ir.md, `index`).
 *
 * Needs: typed instances; on the CPU after thread loops were made. Guarantees: no value, and so no
 * result, changes.
 *
 * Two ways lead to 32 bits. (1) The range of an expression is known to fit: extents, positions and
 * counters under the facts "offsets fit" and "grid fits", and what is computed from them without
 * leaving the range. (2) Nobody can tell: a `let` that is used in subscripts only, through sums,
 * differences, products and left shifts, is computed modulo 2^32 when "offsets fit" (the offset is
 * in the range of i32, and ring operations commute with the reduction). Lowering does the same for
 * subscripts themselves, without marks. */
#include <limits.h>
#include <stdint.h>

#include "typing/typed.h"

typedef struct pass {
  kj_compilation *c;
  const kj_signature *signature;
  kj_instance *instance;
  uint32_t *assignments;    /* of each variable of the instance */
  uint32_t *uses;           /* reads of each variable */
  uint32_t *subscript_uses; /* of those, how many only feed a subscript */
} pass;

static kj_value_range make_range(int64_t least, int64_t most)
{
  return (kj_value_range){ .known = least <= most, .least = least, .most = most };
}

static const kj_value_range unknown = { .known = false };

static bool is_in(kj_value_range range, int64_t least, int64_t most)
{
  return range.known && range.least >= least && range.most <= most;
}

static bool fits32(kj_value_range range) { return is_in(range, INT32_MIN, INT32_MAX); }

static kj_value_range join(kj_value_range a, kj_value_range b)
{
  if (!a.known || !b.known) return unknown;
  return make_range(a.least < b.least ? a.least : b.least, a.most > b.most ? a.most : b.most);
}

/* ---- operations: exact in 128 bits, unknown where the result could wrap ---- */

static kj_value_range from_wide(__int128 least, __int128 most)
{
  if (least < INT64_MIN || most > INT64_MAX) return unknown;
  return make_range((int64_t)least, (int64_t)most);
}

typedef __int128 (*corner)(int64_t x, int64_t y);

static __int128 corner_mul(int64_t x, int64_t y) { return (__int128)x * y; }
static __int128 corner_shl(int64_t x, int64_t y) { return (__int128)x * ((__int128)1 << y); }
static __int128 corner_shr(int64_t x, int64_t y) { return x >> y; }
static __int128 corner_floordiv(int64_t x, int64_t y)
{
  int64_t quotient = x / y;
  return quotient * y > x ? quotient - 1 : quotient;
}
static __int128 corner_ceildiv(int64_t x, int64_t y)
{
  int64_t quotient = x / y;
  return quotient * y < x ? quotient + 1 : quotient;
}

/* Extremes of a function that is monotonic in each operand lie in the corners. */
static kj_value_range at_corners(kj_value_range x, kj_value_range y, corner f)
{
  __int128 v[4] = { f(x.least, y.least), f(x.least, y.most), f(x.most, y.least),
                    f(x.most, y.most) },
           least = v[0], most = v[0];
  for (int i = 1; i < 4; i++) {
    if (v[i] < least) least = v[i];
    if (v[i] > most) most = v[i];
  }
  return from_wide(least, most);
}

/* Division by zero gives 0 in the language. */
static kj_value_range divide(kj_value_range x, kj_value_range y, corner f)
{
  if (y.least < 0) return unknown;
  kj_value_range positive = make_range(y.least ? y.least : 1, y.most ? y.most : 1);
  kj_value_range result = at_corners(x, positive, f);
  return y.least == 0 ? join(result, make_range(0, 0)) : result;
}

static kj_value_range modulo(kj_value_range x, kj_value_range y)
{
  if (y.least < 0) return unknown;
  int64_t most = y.most ? y.most - 1 : 0;
  if (x.least >= 0 && x.most < most) most = x.most;
  return make_range(0, most);
}

static kj_value_range binary_range(const kj_texpr *e)
{
  kj_value_range x = e->x->range, y = e->y->range;
  if (e->op == KJIT_BIT_AND && is_in(y, 0, INT64_MAX))
    return make_range(0, is_in(x, 0, INT64_MAX) && x.most < y.most ? x.most : y.most);
  if (e->op == KJIT_BIT_AND && is_in(x, 0, INT64_MAX)) return make_range(0, x.most);
  if (!x.known || !y.known) return unknown;
  switch (e->op) {
  case KJIT_ADD: return from_wide((__int128)x.least + y.least, (__int128)x.most + y.most);
  case KJIT_SUB: return from_wide((__int128)x.least - y.most, (__int128)x.most - y.least);
  case KJIT_MUL: return at_corners(x, y, corner_mul);
  case KJIT_FLOORDIV: return divide(x, y, corner_floordiv);
  case KJIT_MOD: return modulo(x, y);
  case KJIT_SHL: return is_in(y, 0, 62) ? at_corners(x, y, corner_shl) : unknown;
  case KJIT_SHR: return is_in(y, 0, 63) ? at_corners(x, y, corner_shr) : unknown;
  default: return unknown;
  }
}

/* ---- leaves ---- */

static kj_value_range type_range(const kj_types *types, kjit_type type)
{
  const kj_type_info *info = kj_type(types, type);
  if (info->class_ == KJ_CLASS_BOOL) return make_range(0, 1);
  if (info->size_bytes > 4) return unknown;
  if (info->class_ == KJ_CLASS_SIGNED)
    return make_range(-((int64_t)1 << (8 * info->size_bytes - 1)),
                      ((int64_t)1 << (8 * info->size_bytes - 1)) - 1);
  if (info->class_ == KJ_CLASS_UNSIGNED)
    return make_range(0, ((int64_t)1 << (8 * info->size_bytes)) - 1);
  return unknown;
}

enum { MAX_BLOCK_THREADS = 1024 };

/* Most value of blockDim in a dimension: CUDA's limit, which the runtime keeps on the CPU too. */
static int64_t most_block(const pass *p, uint32_t dimension)
{
  uint32_t known = p->c->instances.items[0]->block[dimension];
  if (known) return known;
  return dimension == 2 ? 64 : MAX_BLOCK_THREADS;
}

static kj_value_range position_range(const pass *p, const kj_texpr *e)
{
  /* of other built-ins it says something else */
  uint32_t dimension = e->dimension < 3 ? e->dimension : 0;
  int64_t block = most_block(p, dimension), grid = dimension == 0 ? INT32_MAX : UINT16_MAX;
  int64_t threads = p->signature->grid32 ? INT32_MAX : grid * block;
  if (e->builtin->id == KJ_BUILTIN_GRID || e->builtin->id == KJ_BUILTIN_GRIDSIZE)
    p->c->used_grid32 |= p->signature->grid32;
  switch (e->builtin->id) {
  case KJ_BUILTIN_THREAD_IDX: return make_range(0, block - 1);
  case KJ_BUILTIN_BLOCK_DIM: return make_range(1, block);
  case KJ_BUILTIN_BLOCK_IDX: return make_range(0, grid - 1);
  case KJ_BUILTIN_GRID_DIM: return make_range(1, grid);
  case KJ_BUILTIN_GRID: return make_range(0, threads - 1);
  case KJ_BUILTIN_GRIDSIZE: return make_range(1, threads);
  case KJ_BUILTIN_THREAD_RANK: return make_range(0, MAX_BLOCK_THREADS - 1);
  case KJ_BUILTIN_WARP_RANK: return make_range(0, MAX_BLOCK_THREADS / 32 - 1);
  case KJ_BUILTIN_LANEID: return make_range(0, 31);
  default: return unknown;
  }
}

static kj_value_range builtin_range(const pass *p, const kj_texpr *e)
{
  kj_value_range position = position_range(p, e);
  if (position.known) return position;
  if (e->args.count == 1 && e->builtin->id == KJ_BUILTIN_ABS &&
      is_in(e->args.items[0]->range, -INT64_MAX, INT64_MAX)) {
    kj_value_range x = e->args.items[0]->range;
    int64_t below = x.least < 0 ? -x.least : x.least, above = x.most < 0 ? -x.most : x.most;
    return make_range(0, below > above ? below : above);
  }
  if (e->args.count != 2) return unknown;
  kj_value_range x = e->args.items[0]->range, y = e->args.items[1]->range;
  if (!x.known || !y.known) return unknown;
  switch (e->builtin->id) {
  case KJ_BUILTIN_MIN:
    return make_range(x.least < y.least ? x.least : y.least, x.most < y.most ? x.most : y.most);
  case KJ_BUILTIN_MAX:
    return make_range(x.least > y.least ? x.least : y.least, x.most > y.most ? x.most : y.most);
  case KJ_BUILTIN_CEIL_DIV: return divide(x, y, corner_ceildiv);
  default: return unknown;
  }
}

static kj_value_range convert_range(const pass *p, const kj_texpr *e)
{
  kj_value_range target = type_range(p->c->types, e->type), x = e->x->range;
  if (!x.known) return target;
  if (target.known && !is_in(x, target.least, target.most)) return target; /* wraps */
  return x;
}

static kj_value_range expr_range(const pass *p, const kj_texpr *e)
{
  switch (e->kind) {
  case KJ_T_CONST:
    return e->integer >= INT64_MIN && e->integer <= INT64_MAX
             ? make_range((int64_t)e->integer, (int64_t)e->integer)
             : unknown;
  case KJ_T_VAR: return e->var->range.known ? e->var->range : type_range(p->c->types, e->type);
  case KJ_T_UNARY:
    return e->op == KJIT_NEG && is_in(e->x->range, -INT64_MAX, INT64_MAX)
             ? make_range(-e->x->range.most, -e->x->range.least)
             : unknown;
  case KJ_T_BINARY: return binary_range(e);
  case KJ_T_COND: return join(e->y->range, e->z->range);
  case KJ_T_CONVERT: return convert_range(p, e);
  case KJ_T_EXTENT:
    p->c->used_offsets32 |= p->signature->offsets32;
    return make_range(0, p->signature->offsets32 ? INT32_MAX : INT64_MAX);
  case KJ_T_BUILTIN: return builtin_range(p, e);
  default: return type_range(p->c->types, e->type);
  }
}

/* ---- which expressions are computed in 32 bits ---- */

static bool is_ring_operation(const kj_texpr *e)
{
  if (e->kind == KJ_T_UNARY) return e->op == KJIT_NEG;
  if (e->kind != KJ_T_BINARY) return false;
  return e->op == KJIT_ADD || e->op == KJIT_SUB || e->op == KJIT_MUL ||
         (e->op == KJIT_SHL && is_in(e->y->range, 0, 31));
}

static bool is_narrow_operand(const kj_texpr *e) { return e->type != KJIT_I64 || fits32(e->range); }

static bool can_compute_narrow(const kj_texpr *e)
{
  if (is_ring_operation(e)) return true;
  switch (e->kind) {
  case KJ_T_BINARY: return is_narrow_operand(e->x) && is_narrow_operand(e->y);
  case KJ_T_COND: return is_narrow_operand(e->y) && is_narrow_operand(e->z);
  case KJ_T_BUILTIN:
    for (size_t i = 0; i < e->args.count; i++)
      if (!is_narrow_operand(e->args.items[i])) return false;
    return true;
  case KJ_T_CONVERT: /* from an integer: nothing else has a range that fits */
  case KJ_T_CONST:
  case KJ_T_VAR:
  case KJ_T_EXTENT: return true;
  default: return false;
  }
}

/* A result outside its type has wrapped: all values of the type are possible then. */
static kj_value_range clamp_to_type(const pass *p, kjit_type type, kj_value_range range)
{
  kj_type_class class_ = kj_type(p->c->types, type)->class_;
  if (class_ != KJ_CLASS_BOOL && class_ != KJ_CLASS_SIGNED && class_ != KJ_CLASS_UNSIGNED)
    return unknown;
  if (type == KJIT_I64) return range;
  if (type == KJIT_U64) return is_in(range, 0, INT64_MAX) ? range : unknown;
  kj_value_range all = type_range(p->c->types, type);
  return is_in(range, all.least, all.most) ? range : all;
}

static void visit_expr(void *data, kj_texpr **slot)
{
  pass *p = data;
  kj_texpr *e = *slot;
  e->range = clamp_to_type(p, e->type, expr_range(p, e));
  e->is_narrow =
    e->type == KJIT_I64 &&
    (fits32(e->range) ? can_compute_narrow(e) : e->kind == KJ_T_VAR && e->var->is_narrow);
}

static void visit_list(pass *p, kj_texprs *list)
{
  for (size_t i = 0; i < list->count; i++) kj_walk_texpr(&list->items[i], visit_expr, p);
}

/* ---- reads of a variable that only feed a subscript ---- */

static void count_uses(pass *p, const kj_texpr *e, bool feeds_subscript);

static void count_list(pass *p, const kj_texprs *list, bool feeds_subscript)
{
  for (size_t i = 0; i < list->count; i++) count_uses(p, list->items[i], feeds_subscript);
}

/* The fact "offsets fit" says nothing of what pointers point to. */
static bool has_small_offsets(pass *p, const kj_texpr *array)
{
  return !array || kj_type(p->c->types, array->type)->space != KJ_SPACE_GENERIC;
}

static void count_uses(pass *p, const kj_texpr *e, bool feeds_subscript)
{
  if (!e) return;
  if (e->kind == KJ_T_VAR) {
    p->uses[e->var->index]++;
    if (feeds_subscript) p->subscript_uses[e->var->index]++;
    return;
  }
  bool through = feeds_subscript && e->type == KJIT_I64 && is_ring_operation(e);
  count_uses(p, e->x, through);
  count_uses(p, e->y, through && e->op != KJIT_SHL);
  count_uses(p, e->z, false);
  count_list(p, &e->args,
             (e->kind == KJ_T_LOAD || e->kind == KJ_T_VIEW) && has_small_offsets(p, e->x));
  /* extents and steps are values */
  count_list(p, &e->indices, e->kind != KJ_T_VIEW && has_small_offsets(p, e->x));
}

static void count_in_stmts(pass *p, const kj_tstmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kj_tstmt *s = stmts->items[i];
    if (s->kind == KJ_TS_ASSIGN || s->kind == KJ_TS_WARP || s->kind == KJ_TS_BARRIER_REDUCE)
      if (s->var) p->assignments[s->var->index]++;
    count_uses(p, s->value, false);
    count_uses(p, s->array, false);
    count_list(p, &s->indices, s->kind == KJ_TS_STORE && has_small_offsets(p, s->array));
    count_uses(p, s->first, false);
    count_uses(p, s->stop, false);
    count_uses(p, s->step, false);
    count_list(p, &s->extents, false);
    count_in_stmts(p, &s->body);
    count_in_stmts(p, &s->otherwise);
  }
}

/* ---- variables ---- */

static void narrow_let(pass *p, const kj_tstmt *s)
{
  kj_tvar *var = s->var;
  if (!var || var->kind != KJ_V_LET || p->assignments[var->index] != 1 || !s->value) return;
  var->range = s->value->range;
  if (var->type != KJIT_I64) return;
  /* a check looks at all of a subscript */
  bool is_exact = p->c->request->checks & KJIT_CHECK_BOUNDS;
  bool only_subscripts = !is_exact && p->signature->offsets32 && p->uses[var->index] &&
                         p->uses[var->index] == p->subscript_uses[var->index];
  var->is_narrow = fits32(var->range) || only_subscripts;
  p->c->used_offsets32 |= only_subscripts;
}

/* A counter stays in 32 bits when the step past its last value does too. */
static void narrow_counter(const kj_tstmt *s)
{
  kj_tvar *var = s->var;
  kj_value_range first = s->first->range, stop = s->stop->range, step = s->step->range;
  if (!first.known || !stop.known || !step.known) return;
  if (step.least > 0 && stop.most > INT64_MIN) {
    int64_t most = stop.most - 1 > first.least ? stop.most - 1 : first.least;
    var->range = make_range(first.least, most);
    kj_value_range past = from_wide((__int128)first.least + step.least, (__int128)most + step.most);
    var->is_narrow = var->type == KJIT_I64 && fits32(first) && fits32(stop) && fits32(step) &&
                     past.known && past.most <= INT32_MAX;
  } else if (step.most < 0 && stop.least < INT64_MAX) {
    int64_t least = stop.least + 1 < first.most ? stop.least + 1 : first.most;
    var->range = make_range(least, first.most);
    kj_value_range past = from_wide((__int128)least + step.least, first.most);
    var->is_narrow = var->type == KJIT_I64 && fits32(first) && fits32(stop) && fits32(step) &&
                     past.known && past.least >= INT32_MIN;
  }
}

static void set_range_loop(const kj_tstmt *s)
{
  for (size_t i = 0; i < s->vars.count; i++) {
    kj_value_range extent = s->extents.items[i]->range;
    int64_t most = extent.known && extent.most > 0 ? extent.most - 1
                   : extent.known                  ? 0
                                                   : INT64_MAX - 1;
    s->vars.items[i]->range = make_range(0, most);
    s->vars.items[i]->is_narrow = fits32(s->vars.items[i]->range);
  }
}

static void visit_stmts(pass *p, kj_tstmts *stmts);

static void visit_stmt(pass *p, kj_tstmt *s)
{
  kj_walk_texpr(&s->value, visit_expr, p);
  kj_walk_texpr(&s->array, visit_expr, p);
  visit_list(p, &s->indices);
  kj_walk_texpr(&s->first, visit_expr, p);
  kj_walk_texpr(&s->stop, visit_expr, p);
  kj_walk_texpr(&s->step, visit_expr, p);
  visit_list(p, &s->extents);
  if (s->kind == KJ_TS_ASSIGN) narrow_let(p, s);
  if (s->kind == KJ_TS_FOR) narrow_counter(s);
  if (s->kind == KJ_TS_GRID_FOR || s->kind == KJ_TS_BLOCK_FOR) set_range_loop(s);
  visit_stmts(p, &s->body);
  visit_stmts(p, &s->otherwise);
}

static void visit_stmts(pass *p, kj_tstmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) visit_stmt(p, stmts->items[i]);
}

void kj_narrow_indices(kj_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++) {
    kj_instance *instance = c->instances.items[i];
    size_t count = instance->params.count + instance->locals.count;
    pass p = { c,
               c->request->signature,
               instance,
               KJ_NEW_ARRAY(c->arena, uint32_t, count),
               KJ_NEW_ARRAY(c->arena, uint32_t, count),
               KJ_NEW_ARRAY(c->arena, uint32_t, count) };
    /* Twice: shifts by constants count as ring operations only once ranges are known. */
    visit_stmts(&p, &instance->body);
    count_in_stmts(&p, &instance->body);
    visit_stmts(&p, &instance->body);
  }
}
