/* Classifies the index of each access in a grid loop. The index is a variable of the loop plus a
 * constant, or it has the same value in the whole grid, or nothing is known about it. */
#include "derive/adjoint.h"

/* ---- expressions ---- */

bool kd_equal_exprs(const kt_expr *a, const kt_expr *b)
{
  if (!a || !b) return a == b;
  bool is_same = a->kind == b->kind && a->op == b->op && a->type == b->type && a->var == b->var &&
                 a->builtin == b->builtin && a->dimension == b->dimension &&
                 a->integer == b->integer && a->instance == b->instance &&
                 a->dimensions == b->dimensions && kt_operand_count(a) == kt_operand_count(b);
  for (size_t i = 0; is_same && i < kt_operand_count(a); i++)
    is_same = kd_equal_exprs(kt_operand(a, i), kt_operand(b, i));
  return is_same;
}

static bool is_param(const kt_var *var) { return var->kind == KJ_V_PARAM; }

/* Returns whether a variable has the same value in all threads and wherever the loop reads it. */
static bool is_uniform_var(const kd_part *part, const kt_var *var)
{
  if (is_param(var)) return true;
  return var->index < part->d.count && part->is_before[var->index] && !part->is_inside[var->index];
}

static bool is_unlike(void *data, const kt_expr *e)
{
  const kd_part *part = data;
  switch (KJ_AMONG(kt_source_of(e))) {
  case KJ_FROM_OPERANDS: return false;
  case KJ_FROM_VARIABLE: return !is_uniform_var(part, e->var);
  case KJ_FROM_BUILTIN:
    return !(e->builtin->flags & KJ_PURE) || (e->builtin->flags & (KJ_THREAD | KJ_WARP | KJ_READS));
  default: return true;
  }
}

static bool is_uniform(kd_part *part, const kt_expr *e)
{
  return !kt_any_texpr(e, is_unlike, part);
}

/* ---- values of variables ---- */

/* Returns whether evaluating the expression again later could give another value. */
static bool may_change(void *data, const kt_expr *e)
{
  const kd_part *part = data;
  if (kt_source_of(e) == KJ_FROM_OPERANDS) return false;
  if (e->kind != KJ_T_VAR) return e->kind != KJ_T_BUILTIN || is_unlike(data, e);
  const kt_var *var = e->var;
  bool is_own = var->index < part->d.count;
  return !is_param(var) && (!is_own || (!part->definitions[var->index] && var->kind != KJ_V_LOOP));
}

typedef struct resolver {
  kd_part *part;
  uint32_t depth;
} resolver;

enum { RESOLVE_DEPTH = 16, RESOLVE_NODES = 64 };

static void substitute(void *data, kt_expr **place)
{
  resolver *r = data;
  const kt_expr *e = *place;
  if (e->kind != KJ_T_VAR || e->var->index >= r->part->d.count) return;
  const kt_expr *value = r->part->definitions[e->var->index];
  bool fits = value && r->depth < RESOLVE_DEPTH && !kt_any_texpr(value, may_change, r->part) &&
              kt_count_nodes(value, RESOLVE_NODES) < RESOLVE_NODES;
  if (!fits) return;
  *place = kt_clone_texpr(r->part->d.c, value, NULL, NULL);
  r->depth++;
  kt_walk_texpr(place, substitute, r);
  r->depth--;
}

kt_expr *kd_resolve(kd_part *part, const kt_expr *e)
{
  resolver r = { .part = part };
  kt_expr *resolved = kt_clone_texpr(part->d.c, e, NULL, NULL);
  kt_walk_texpr(&resolved, substitute, &r);
  return resolved;
}

/* ---- indices ---- */

uint32_t kd_grid_number(const kd_part *part, const kt_var *var)
{
  for (uint32_t i = 0; var && i < part->loop->vars.count; i++)
    if (part->loop->vars.items[i] == var) return i + 1;
  return 0;
}

static kd_index offset_index(int64_t least, int64_t most, bool is_exact)
{
  return (kd_index){ .is_known = true, .least = least, .most = most, .is_exact = is_exact };
}

static bool is_small(__int128 value) { return value > -(1 << 30) && value < (1 << 30); }

/* Returns the range of values of an inner loop's variable. */
static kd_index inner_index(const kd_part *part, const kt_var *var)
{
  const kt_stmt *loop = var->index < part->d.count ? part->loops[var->index] : NULL;
  bool is_counted = loop && loop->first->kind == KJ_T_CONST && loop->stop->kind == KJ_T_CONST &&
                    loop->step->kind == KJ_T_CONST && loop->step->integer &&
                    is_small(loop->first->integer) && is_small(loop->stop->integer);
  if (!is_counted) return (kd_index){ 0 };
  int64_t first = (int64_t)loop->first->integer, stop = (int64_t)loop->stop->integer;
  bool goes_up = loop->step->integer > 0;
  if (goes_up ? first >= stop : first <= stop) return (kd_index){ 0 };
  return goes_up ? offset_index(first, stop - 1, false) : offset_index(stop + 1, first, false);
}

static kd_index var_index(kd_part *part, const kt_expr *e)
{
  uint32_t number = kd_grid_number(part, e->var);
  if (number) {
    kd_index index = offset_index(0, 0, true);
    index.variable = number;
    return index;
  }
  if (!is_uniform_var(part, e->var)) return inner_index(part, e->var);
  kd_index index = offset_index(0, 0, true);
  index.symbol = e;
  return index;
}

/* Returns whether the index is a plain sum, without a remainder and without a negative index that
 * counts from the end. */
static bool is_straight(const kd_index *index)
{
  return index->is_known && !index->period && !index->is_round;
}

/* Returns x + y, or x - y. */
static kd_index sum_index(const kd_index *x, const kd_index *y, bool is_difference)
{
  kd_index sum = *x;
  if (!is_straight(x) || !is_straight(y)) return (kd_index){ 0 };
  if (y->variable && (is_difference || x->variable)) return (kd_index){ 0 };
  if (y->variable) sum.variable = y->variable;
  if (y->symbol) {
    bool cancels = is_difference && x->symbol && kd_equal_exprs(x->symbol, y->symbol);
    if (!cancels && (is_difference || x->symbol)) return (kd_index){ 0 };
    sum.symbol = cancels ? NULL : y->symbol;
  }
  sum.least += is_difference ? -y->most : y->least;
  sum.most += is_difference ? -y->least : y->most;
  sum.is_exact &= y->is_exact;
  return sum;
}

/* Returns the extent of the grid loop for one of its variables, in the form of an index. */
static kd_index extent_of(kd_part *part, uint32_t variable)
{
  KJ_ASSERT(variable);
  return kd_index_of(part, part->loop->extents.items[variable - 1]);
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* Handles max(q + c, L) and min(q + c, U) for an iteration q. The difference between the clamped
 * index and q is c, except near the border: max gives L for q from 0 to L - c - 1, so the
 * difference is at most L; min gives U for q from U - c + 1 to the last iteration. */
static kd_index clamped_index(kd_part *part, kd_index x, kd_index limit, bool is_max)
{
  bool fits = is_straight(&x) && is_straight(&limit) && x.variable && !x.symbol &&
              !limit.variable && limit.is_exact;
  if (!fits) return (kd_index){ 0 };
  x.is_exact = false;
  if (is_max && !limit.symbol) {
    x.most = most_of(x.most, limit.least);
    return x;
  }
  kd_index extent = extent_of(part, x.variable);
  bool is_near = extent.is_known && extent.is_exact && !extent.variable &&
                 kd_equal_exprs(extent.symbol, limit.symbol);
  if (is_max || !is_near) return (kd_index){ 0 };
  x.least = least_of(x.least, limit.least - extent.least + 1);
  return x;
}

static kd_index builtin_index(kd_part *part, const kt_expr *e)
{
  bool is_max = e->builtin->id == KJ_BUILTIN_MAX;
  if (!is_max && e->builtin->id != KJ_BUILTIN_MIN) return (kd_index){ 0 };
  kd_index x = kd_index_of(part, e->args.items[0]), y = kd_index_of(part, e->args.items[1]);
  return x.variable ? clamped_index(part, x, y, is_max) : clamped_index(part, y, x, is_max);
}

static kd_index resolved_index(kd_part *part, const kt_expr *e);

static bool is_signed(const kd_part *part, const kt_expr *e)
{
  return kt_class_of(part->d.c, e->type) == KJ_CLASS_SIGNED;
}

/* Handles (q + c) % n, where n is the extent of the grid loop. Each iteration then accesses a
 * different element. */
static kd_index round_index(kd_part *part, const kt_expr *e)
{
  kd_index x = resolved_index(part, e->x), n = resolved_index(part, e->y);
  bool fits = is_straight(&x) && x.variable && is_straight(&n) && !n.variable && n.is_exact &&
              is_signed(part, e);
  if (!fits) return (kd_index){ 0 };
  kd_index extent = extent_of(part, x.variable);
  bool is_extent = is_straight(&extent) && !extent.variable && extent.is_exact &&
                   extent.least == n.least && kd_equal_exprs(extent.symbol, n.symbol);
  if (!is_extent || (x.symbol && !kd_equal_exprs(x.symbol, n.symbol))) return (kd_index){ 0 };
  if (x.symbol) { /* the sum q + n + c, with the extent n as its symbol */
    x.symbol = NULL;
    x.least -= n.least;
    x.most -= n.least;
  }
  x.is_round = true;
  return x;
}

static bool is_wide_integer(const kd_part *part, kjit_type type)
{
  return kt_is_integer(part->d.c, type) && ki_type(part->d.c->types, type)->size_bytes >= 4;
}

/* Handles indices that may be negative as in Python: the array extent is added to an index below
 * 0. */
static kd_index wrapped_index(kd_part *part, const kt_expr *e)
{
  kd_index index = kd_index_of(part, e->z);
  kd_index extent = { 0 };
  if (e->y->kind == KJ_T_BINARY && e->y->op == KJIT_OP_ADD) extent = kd_index_of(part, e->y->y);
  bool may_wrap = index.least < 0 || index.symbol || !index.variable;
  if (!index.is_known || index.is_round || !may_wrap) return index;
  if (!extent.is_known || extent.variable || index.symbol || !index.variable)
    return (kd_index){ 0 };
  index.period = e->y->y;
  index.is_exact = false;
  return index;
}

static kd_index resolved_index(kd_part *part, const kt_expr *e)
{
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_CONST:
    if (!is_small(e->integer)) return (kd_index){ 0 };
    return offset_index((int64_t)e->integer, (int64_t)e->integer, true);
  case KJ_T_CONVERT:
    if (is_wide_integer(part, e->x->type)) return resolved_index(part, e->x);
    break;
  case KJ_T_VAR: return var_index(part, e);
  case KJ_T_BUILTIN: return builtin_index(part, e);
  case KJ_T_COND:
    if (e->is_wrap) return wrapped_index(part, e);
    break;
  case KJ_T_BINARY:
    if (e->op == KJIT_OP_ADD || e->op == KJIT_OP_SUB) {
      kd_index x = resolved_index(part, e->x), y = resolved_index(part, e->y);
      kd_index sum = sum_index(&x, &y, e->op == KJIT_OP_SUB);
      if (sum.is_known) return sum;
    }
    if (e->op == KJIT_OP_MOD) {
      kd_index remainder = round_index(part, e);
      if (remainder.is_known) return remainder;
    }
    break;
  default: break;
  }
  if (!is_uniform(part, e)) return (kd_index){ 0 };
  kd_index index = offset_index(0, 0, true);
  index.symbol = e;
  return index;
}

kd_index kd_index_of(kd_part *part, const kt_expr *e)
{
  kt_expr *resolved = kd_resolve(part, e);
  if (!is_wide_integer(part, resolved->type)) return (kd_index){ 0 };
  return resolved_index(part, resolved);
}

/* ---- sites ---- */

typedef struct finder {
  kd_part *part;
  const kt_stmt *inner[8];
  uint32_t loops;
  bool is_before;
} finder;

static void add_site(finder *f, const kt_expr *array, const kt_exprs *indices, kd_site site)
{
  kd_part *part = f->part;
  site.root = kd_root(array);
  if (!site.root || site.root->kind != KJ_V_PARAM) return;
  site.is_whole = array->kind == KJ_T_VAR;
  site.rank = (uint32_t)indices->count;
  site.loops = f->loops;
  site.is_before = f->is_before;
  for (uint32_t i = 0; i < f->loops && i < 8; i++) site.inner[i] = f->inner[i];
  site.is_uniform = site.is_whole;
  for (size_t i = 0; i < indices->count; i++) {
    site.indices[i] = kd_index_of(part, indices->items[i]);
    site.is_uniform &= is_uniform(part, kd_resolve(part, indices->items[i]));
  }
  KJ_PUSH(part->d.arena, &part->sites, site);
}

static void find_in_expr(finder *f, const kt_expr *e)
{
  if (!e) return;
  for (size_t i = 0; i < kt_operand_count(e); i++) find_in_expr(f, kt_operand(e, i));
  if (e->kind == KJ_T_LOAD)
    add_site(f, e->x, &e->args, (kd_site){ .load = e, .location = e->location });
}

static void find_in_block(finder *f, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    bool is_loop = kt_flow_of(stmt) == KJ_FLOW_LOOP;
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++)
      find_in_expr(f, kt_stmt_operand(stmt, k));
    if (stmt->kind == KJ_TS_STORE)
      add_site(f, stmt->array, &stmt->indices,
               (kd_site){ .store = stmt, .location = stmt->location });
    if (is_loop && f->loops < 8) f->inner[f->loops] = stmt;
    f->loops += is_loop;
    find_in_block(f, &stmt->body);
    find_in_block(f, &stmt->otherwise);
    f->loops -= is_loop;
  }
}

static void note_definition(void *data, kt_stmt *stmt)
{
  kd_part *part = data;
  if (stmt->kind == KJ_TS_FOR) part->loops[stmt->var->index] = stmt;
  if (stmt->kind != KJ_TS_ASSIGN) return;
  uint32_t index = stmt->var->index;
  part->definitions[index] = part->is_before[index] ? NULL : stmt->value;
  part->is_before[index] = true;
}

static void note_inside(void *data, kt_stmt *stmt)
{
  kd_part *part = data;
  const kt_var *root = stmt->kind == KJ_TS_ASSIGN  ? stmt->var
                       : stmt->kind == KJ_TS_STORE ? kd_root(stmt->array)
                                                   : NULL;
  if (root && root->index < part->d.count) part->is_inside[root->index] = true;
}

static void note_before(void *data, kt_stmt *stmt)
{
  kd_part *part = data;
  const kt_var *root = stmt->kind == KJ_TS_ASSIGN  ? stmt->var
                       : stmt->kind == KJ_TS_STORE ? kd_root(stmt->array)
                                                   : NULL;
  if (root && root->index < part->d.count) part->is_before[root->index] = true;
}

void kd_find_sites(kd_part *part)
{
  size_t count = part->d.count + 1;
  kj_arena *arena = part->d.arena;
  part->definitions = KJ_NEW_ARRAY(arena, const kt_expr *, count);
  part->loops = KJ_NEW_ARRAY(arena, const kt_stmt *, count);
  part->is_inside = KJ_NEW_ARRAY(arena, bool, count);
  part->is_before = KJ_NEW_ARRAY(arena, bool, count);
  kt_walk_tstmts(&part->d.body, note_definition, NULL, part);
  for (size_t i = 0; i < count; i++) part->is_before[i] = false;
  kt_walk_tstmts(&part->before, note_before, NULL, part);
  kt_walk_tstmts(&part->loop->body, note_inside, NULL, part);
  finder before = { .part = part, .is_before = true }, in = { .part = part };
  find_in_block(&before, &part->before);
  find_in_block(&in, &part->loop->body);
}
