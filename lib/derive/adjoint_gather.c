/* Adjoint kernels: gathered arrays. A loop runs over the elements in an array that the kernel loads
 * from. For each element, a thread runs all iterations that can have loaded it and sums their
 * contributions. The adjoint has a part for each of these iterations, which differ in their offset
 * from the element's index. */
#include "derive/adjoint.h"

/* ---- offsets ---- */

static kd_turn turn_of(const kd_index *index) { return index->is_round ? KD_ROUND : KD_STRAIGHT; }

static bool find_dimension(const kd_sites *sites, uint32_t variable, uint32_t *dimension)
{
  for (uint32_t k = 0; k < sites->items[0]->rank; k++) {
    bool fits = true;
    for (size_t i = 0; fits && i < sites->count; i++) {
      const kd_site *site = sites->items[i];
      const kd_index *index = &site->indices[k];
      fits = site->is_whole && index->is_known && index->variable == variable && !index->symbol;
    }
    if (!fits) continue;
    *dimension = k;
    return true;
  }
  return false;
}

static bool is_same_offset(const kd_gather_offset *a, const kd_gather_offset *b)
{
  bool is_same = a->loop == b->loop;
  for (int v = 0; is_same && v < KD_MOST_GRID; v++)
    is_same = a->offset[v] == b->offset[v] && a->turn[v] == b->turn[v];
  return is_same;
}

static bool add_offset(const kd_part *part, kd_array_plan *plan, const kd_gather_offset *offset)
{
  for (size_t i = 0; i < plan->offsets.count; i++)
    if (is_same_offset(&plan->offsets.items[i], offset)) return true;
  KJ_PUSH(part->d.arena, &plan->offsets, *offset);
  return plan->offsets.count <= KD_MOST_GATHERED;
}

/* Adds each combination of offsets that a site's indices can have, for the variables with number v
 * and higher. Returns false if there are too many. */
static bool add_offsets(const kd_part *part, kd_array_plan *plan, const kd_site *site, size_t v,
                        kd_gather_offset offset)
{
  if (v == part->loop->vars.count || v == KD_MOST_GRID) return add_offset(part, plan, &offset);
  const kd_index *index = &site->indices[plan->dimension[v]];
  if (index->most - index->least >= KD_MOST_GATHERED) return false;
  for (int64_t at = index->least; at <= index->most; at++) {
    offset.offset[v] = at;
    offset.turn[v] = turn_of(index);
    if (!add_offsets(part, plan, site, v + 1, offset)) return false;
    offset.turn[v] = KD_FROM_END;
    bool is_from_end = index->period && at < 0;
    if (is_from_end && !add_offsets(part, plan, site, v + 1, offset)) return false;
  }
  return true;
}

bool kd_plan_gather(const kd_part *part, kd_array_plan *plan, const kd_sites *loads)
{
  for (uint32_t v = 0; v < part->loop->vars.count; v++) {
    uint32_t dimension;
    if (!find_dimension(loads, v + 1, &dimension)) return false;
    bool is_first = !plan->offsets.count;
    if (!is_first && plan->dimension[v] != dimension) return false;
    plan->dimension[v] = dimension;
  }
  kd_gather_offset offset = { .loop = part->number };
  for (size_t i = 0; i < loads->count; i++)
    if (!add_offsets(part, plan, loads->items[i], 0, offset)) return false;
  return true;
}

/* ---- computing the iteration from an element and an offset ---- */

static kt_expr *extent_of(kd_derivation *d, const kd_array_plan *plan, size_t v)
{
  return kt_make_extent(d->s, kd_read(d, (kt_var *)plan->array), plan->dimension[v], d->location);
}

static kt_expr *binary(kd_derivation *d, kjit_op op, kt_expr *x, kt_expr *y)
{
  return kt_make_own_binary(d->s, op, x, y, d->location);
}

static kt_expr *index_number(kd_derivation *d, int64_t value)
{
  return kt_new_integer(d->s, KJIT_INDEX, value, d->location);
}

static kt_expr *logic(kd_derivation *d, kjit_op op, kt_expr *x, kt_expr *y)
{
  if (!x || !y) return x ? x : y;
  kt_expr *both = kt_new_texpr(d->c, KJ_T_LOGIC, KJIT_BOOL, d->location);
  both->op = op;
  both->x = x;
  both->y = y;
  return both;
}

/* Returns the expression 0 <= at && at < extent. */
static kt_expr *is_in(kd_derivation *d, kt_var *at, kt_expr *extent)
{
  kt_expr *is_from_0 = binary(d, KJIT_OP_GE, kd_read(d, at), index_number(d, 0));
  return logic(d, KJIT_OP_AND, is_from_0, binary(d, KJIT_OP_LT, kd_read(d, at), extent));
}

/* Emits code that takes `at`, the index of an element minus the offset, modulo the extent. If the
 * offset is 1 or -1, `at` is at most one step outside of the range, so no division is needed. For
 * other offsets, the emitted code divides only if `at` is out of range, which is rare. */
static void take_round(kd_derivation *d, kt_var *at, kt_expr *extent, int64_t offset)
{
  kt_expr *is_out, *inside;
  if (offset == 1) {
    is_out = binary(d, KJIT_OP_LT, kd_read(d, at), index_number(d, 0));
    inside = binary(d, KJIT_OP_ADD, kd_read(d, at), kd_copy(d, extent));
  } else if (offset == -1) {
    is_out = binary(d, KJIT_OP_GE, kd_read(d, at), extent);
    inside = index_number(d, 0);
  } else {
    is_out = kt_make_own_unary(d->s, KJIT_OP_NOT, is_in(d, at, extent), d->location);
    inside = binary(d, KJIT_OP_MOD, kd_read(d, at), kd_copy(d, extent));
  }
  kt_stmt *stmt = kt_new_if(d->c, is_out, d->location);
  kt_emit(d->s, stmt);
  kt_stmts *outer = d->s->out;
  d->s->out = &stmt->body;
  kd_assign(d, at, inside);
  d->s->out = outer;
}

/* Returns whether the array and the grid loop have the same extent for variable v. */
static bool is_whole(kd_part *part, size_t v)
{
  return kd_equal_exprs(kd_resolve(part, part->loop->extents.items[v]),
                        extent_of(&part->d, part->gathered, v));
}

/* Emits code that sets variable v to the iteration that contributes to the element. Returns the
 * condition under which this iteration exists, or NULL if it always exists. */
static kt_expr *place_variable(kd_part *part, size_t v)
{
  kd_derivation *d = &part->d;
  kt_var *var = part->loop->vars.items[v];
  kt_var *at = kd_new_var(d, var->name, KJIT_INDEX, var->location);
  kt_expr *extent = kd_copy(d, part->loop->extents.items[v]);
  kt_expr *value = kd_read(d, part->position.items[v]);
  int64_t offset = part->offset->offset[v];
  kd_turn turn = part->offset->turn[v];
  kjit_op op = offset > 0 ? KJIT_OP_SUB : KJIT_OP_ADD;
  if (offset) value = binary(d, op, value, index_number(d, offset > 0 ? offset : -offset));
  if (turn == KD_FROM_END) value = binary(d, KJIT_OP_SUB, value, extent_of(d, part->gathered, v));
  kd_assign(d, at, value);
  at->below = kd_copy(d, extent);
  d->variables[var->index].instead = at;
  if (turn == KD_ROUND) {
    if (offset) take_round(d, at, extent, offset);
    return is_whole(part, v)
             ? NULL
             : binary(d, KJIT_OP_LT, kd_read(d, part->position.items[v]), kd_copy(d, extent));
  }
  if (turn == KD_FROM_END || offset) return is_in(d, at, extent);
  return is_whole(part, v) ? NULL : binary(d, KJIT_OP_LT, kd_read(d, at), extent);
}

/* ---- contributions ---- */

static void enter_if(kd_derivation *d, kt_expr *condition)
{
  kt_stmt *stmt = kt_new_if(d->c, condition, d->location);
  kt_emit(d->s, stmt);
  d->s->out = &stmt->body;
}

static void emit_contribution(kd_part *part)
{
  kd_derivation *d = &part->d;
  kt_stmts *outer = d->s->out;
  size_t first = outer->count;
  for (size_t v = 0; v < part->loop->vars.count; v++) {
    kt_expr *is_there = place_variable(part, v);
    if (is_there) enter_if(d, is_there);
  }
  kd_add_derivatives(part, false);
  kd_emit_iteration(part);
  d->s->out = outer;
  kd_own_statements(part, first);
}

/* Emits code that adds the sum to the derivative of the element. */
static void store_sum(kd_part *part, const kt_vars *position)
{
  kd_derivation *d = &part->d;
  const kd_array_plan *plan = part->gathered;
  const kt_var *other = d->variables[plan->array->index].other;
  kt_exprs indices = { 0 };
  for (uint32_t k = 0; k < ki_type(d->c->types, plan->array->type)->rank; k++)
    for (size_t v = 0; v < position->count; v++)
      if (plan->dimension[v] == k) KJ_PUSH(d->arena, &indices, kd_read(d, position->items[v]));
  if (ki_type(d->c->types, other->type)->read_only)
    kd_refuse(d, d->location,
              "the array that is passed as the derivative of `%s` must not be const",
              plan->array->name);
  kt_expr *before = kd_keep(d, kd_load(d, kd_read(d, (kt_var *)other), &indices));
  kt_expr *sum = kt_convert(d->s, kd_read(d, part->sum), before->type, d->location);
  kd_store(d, kd_read(d, (kt_var *)other), &indices, kd_add(d, before, sum));
}

static kd_part *make_part(const kd_part *first, const kd_array_plan *gathered,
                          const kd_gather_offset *offset)
{
  kd_part *part = kd_make_part(&first->d, first->plan, offset->loop);
  kt_stmts ignored = { 0 };
  part->gathered = gathered;
  part->offset = offset;
  kd_reverse_block(&part->d, &part->before, &ignored);
  return part;
}

/* Makes the loop over the elements. Its variables have the same order as in the grid loop that
 * loads the elements. */
static kt_stmt *make_loop(kd_part *first, const kd_array_plan *plan)
{
  kd_derivation *d = &first->d;
  kt_stmt *loop = kd_new_grid_loop(d, first->loop);
  for (size_t v = 0; v < first->loop->vars.count; v++) {
    kt_var *var = kt_add_variable(d->s, KJ_V_LOOP, first->loop->vars.items[v]->name, KJIT_INDEX,
                                  first->loop->location, KJ_LEVEL_THREAD);
    KJ_PUSH(d->arena, &loop->vars, var);
    KJ_PUSH(d->arena, &loop->extents, extent_of(d, plan, v));
  }
  return loop;
}

void kd_emit_gather(kd_part *first, const kd_array_plan *plan)
{
  kd_derivation *d = &first->d;
  const ki_type_info *info = ki_type(d->c->types, plan->array->type);
  size_t count = plan->offsets.count;
  kd_part **parts = KJ_NEW_ARRAY(d->arena, kd_part *, count + 1);
  size_t begin = d->s->out->count;
  for (size_t i = 0; i < count; i++) parts[i] = make_part(first, plan, &plan->offsets.items[i]);
  kd_own_statements(first, begin);
  kt_stmt *loop = make_loop(first, plan);
  bool has_sum = info->rank == loop->vars.count;
  kt_var *sum = has_sum ? kd_new_var(d, "_sum", kd_wide_type(d, info->element), d->location) : NULL;
  kt_stmts *outer = d->s->out;
  d->s->out = &loop->body;
  if (sum) kd_assign(d, sum, kd_nothing(d, sum->type));
  for (size_t i = 0; i < count; i++) {
    parts[i]->position = loop->vars;
    parts[i]->sum = sum;
    emit_contribution(parts[i]);
  }
  if (sum) store_sum(parts[0], &loop->vars);
  d->s->out = outer;
  kt_emit(d->s, loop);
}

/* ---- offsets that lead to the same iteration ---- */

typedef enum { SAME_NEVER, SAME_ALWAYS, SAME_IF } sameness;

/* Compares this part's offset in variable v with another offset. For SAME_IF, sets *condition to
 * the condition under which both offsets lead to the same iteration. */
static sameness find_sameness(kd_part *part, const kd_gather_offset *other, size_t v,
                              kt_expr **condition)
{
  kd_derivation *d = &part->d;
  int64_t distance = part->offset->offset[v] - other->offset[v];
  kd_turn turn = part->offset->turn[v];
  if (turn == other->turn[v] && !distance) return SAME_ALWAYS;
  if (turn == KD_ROUND && other->turn[v] == KD_ROUND) {
    kt_expr *extent = kd_copy(d, part->loop->extents.items[v]);
    kt_expr *rest =
      binary(d, KJIT_OP_MOD, index_number(d, distance < 0 ? -distance : distance), extent);
    *condition = binary(d, KJIT_OP_EQ, rest, index_number(d, 0));
    return SAME_IF;
  }
  if (turn == other->turn[v] || turn == KD_ROUND || other->turn[v] == KD_ROUND) return SAME_NEVER;
  if (turn == KD_STRAIGHT) distance = -distance;
  /* the iterations are the same only if the extent is -distance; this is impossible, because the
   * extent is positive */
  if (distance >= 0) return SAME_NEVER;
  *condition = binary(d, KJIT_OP_EQ, extent_of(d, part->gathered, v), index_number(d, -distance));
  return SAME_IF;
}

/* Returns whether the index of the site can have these offsets. */
static bool has_offset(const kd_part *part, const kd_site *site, const kd_gather_offset *of)
{
  bool has = true;
  for (size_t v = 0; has && v < part->loop->vars.count; v++) {
    const kd_index *index = &site->indices[part->gathered->dimension[v]];
    bool is_there = of->offset[v] >= index->least && of->offset[v] <= index->most;
    has = is_there && (of->turn[v] == KD_FROM_END ? index->period && of->offset[v] < 0
                                                  : of->turn[v] == turn_of(index));
  }
  return has;
}

/* Returns the condition under which an earlier offset leads to the same iteration, or NULL if this
 * never happens. Two offsets can lead to the same iteration if the array is short; the iteration
 * must then contribute only once. */
static kt_expr *make_seen_before(kd_part *part, const kd_site *site)
{
  kd_derivation *d = &part->d;
  kt_expr *seen = NULL;
  for (const kd_gather_offset *other = part->gathered->offsets.items; other != part->offset;
       other++) {
    kt_expr *is_same = NULL;
    bool can_be = other->loop == part->number && has_offset(part, site, other);
    for (size_t v = 0; can_be && v < part->loop->vars.count; v++) {
      kt_expr *condition = NULL;
      can_be = find_sameness(part, other, v, &condition) != SAME_NEVER;
      is_same = logic(d, KJIT_OP_AND, is_same, condition);
    }
    if (can_be) seen = logic(d, KJIT_OP_OR, seen, is_same);
  }
  return seen;
}

/* ---- sums ---- */

/* If the index at the site is exact, the site's offset alone tells whether the iteration loads the
 * gathered element. Otherwise the emitted code compares the index with the element's position. */
void kd_add_gathered(kd_part *part, const kd_node *node, const kd_site *site, kt_expr *t)
{
  kd_derivation *d = &part->d;
  kt_stmts *outer = d->s->out;
  if (!has_offset(part, site, part->offset)) return;
  kt_expr *seen = make_seen_before(part, site);
  if (seen) enter_if(d, kt_make_own_unary(d->s, KJIT_OP_NOT, seen, d->location));
  for (size_t v = 0; v < part->loop->vars.count; v++) {
    uint32_t dimension = part->gathered->dimension[v];
    if (site->indices[dimension].is_exact) continue;
    kt_expr *index =
      kt_convert(d->s, kd_copy(d, node->indices.items[dimension]), KJIT_INDEX, d->location);
    enter_if(d, binary(d, KJIT_OP_EQ, index, kd_read(d, part->position.items[v])));
  }
  if (part->sum) {
    t = kt_convert(d->s, t, part->sum->type, t->location);
    kd_assign(d, part->sum, kd_add(d, kd_read(d, part->sum), t));
  } else {
    kd_add_to_element(d, node, t);
  }
  d->s->out = outer;
}
