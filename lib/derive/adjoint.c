/* Adjoint kernels: for given derivatives of a number by the elements that a kernel stores, the
 * derivatives of this number by the elements and the scalars that it loads, which are added to
 * those that are there.
 *
 * The first part runs the grid loop again: each iteration goes forwards through the body, and then
 * backwards. An array that is gathered has a loop of its own over its elements. There, an element
 * runs the iterations that may have loaded it, each in a part of its own, and sums what they
 * contribute to it. What a part does not need is dropped (slice.c). */
#include "derive/adjoint.h"

#include <string.h>

/* ---- parts ---- */

static _Noreturn void refuse_shape(kd_part *part, kj_location location)
{
  kd_refuse(&part->d, location,
            "an adjoint kernel is made of a kernel whose body is one loop over a grid_range, and "
            "values that are computed before the loop; this is something else");
}

static bool is_effect(void *data, const kt_stmt *stmt)
{
  (void)data;
  const kt_var *root = stmt->kind == KJ_TS_STORE ? kd_root(stmt->array) : NULL;
  bool is_store = stmt->kind == KJ_TS_STORE && (!root || root->kind != KJ_V_LOCAL);
  return is_store || stmt->kind == KJ_TS_EVALUATE || kt_flow_of(stmt) == KJ_FLOW_RANGE;
}

/* Takes the body apart: the statements before the grid loop, and the loop. */
static void find_loop(kd_part *part)
{
  kd_derivation *d = &part->d;
  for (size_t i = 0; i < d->body.count; i++) {
    kt_stmt *stmt = d->body.items[i];
    if (part->loop) refuse_shape(part, stmt->location);
    if (stmt->kind == KJ_TS_GRID_FOR) {
      part->loop = stmt;
      continue;
    }
    if (kt_any_in_tstmt(stmt, is_effect, NULL, NULL)) refuse_shape(part, stmt->location);
    KJ_PUSH(d->arena, &part->before, stmt);
  }
  if (!part->loop) refuse_shape(part, d->location);
}

/* A value that iterations hand on to one another would depend on which thread runs which one. */
static void check_carried(kd_part *part)
{
  const kt_vars *locals = &part->d.record->instance->locals;
  for (size_t i = 0; i < locals->count; i++) {
    const kt_var *var = locals->items[i];
    bool is_carried =
      var->index < part->d.count && part->is_before[var->index] && part->is_inside[var->index];
    if (is_carried)
      kd_refuse(&part->d, var->location,
                "`%s` is declared before the loop over the grid_range and changed in it: declare "
                "it in the loop",
                var->name);
  }
}

static kd_part *make_part(const kd_derivation *of, kd_plan *plan)
{
  kd_part *part = KJ_NEW(of->arena, kd_part);
  part->d = *of;
  part->d.adjoint = part;
  part->d.body = (kt_stmts){ 0 };
  part->d.variables = NULL;
  memset(&part->d.logs, 0, sizeof part->d.logs);
  part->plan = plan;
  kd_start(&part->d);
  find_loop(part);
  kd_find_sites(part);
  check_carried(part);
  return part;
}

/* ---- derivatives of variables ---- */

static bool is_inside(const kd_part *part, const kt_var *var)
{
  return part->is_inside[var->index];
}

static void add_derivatives(kd_part *part, bool inside)
{
  kd_derivation *d = &part->d;
  const kt_instance *made = d->record->instance;
  for (size_t i = 0; !inside && i < d->primal->instance->params.count; i++) {
    kt_var *var = made->params.items[i];
    if (d->variables[i].varies && !kt_is_array(d->c, var->type)) kd_add_derivative(d, var);
  }
  for (size_t i = 0; i < made->locals.count; i++) {
    kt_var *var = made->locals.items[i];
    bool is_own = var->index < d->count && kd_is_active(d, var);
    if (is_own && is_inside(part, var) == inside) kd_add_derivative(d, var);
  }
}

/* ---- the first part ---- */

static void emit_list(kd_derivation *d, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) kt_emit(d->s, stmts->items[i]);
}

/* One iteration, forwards and backwards. */
static void emit_iteration(kd_part *part)
{
  kd_derivation *d = &part->d;
  kt_stmts reverse = { 0 };
  kd_begin_iteration(part);
  add_derivatives(part, true);
  d->body = part->loop->body;
  kd_plan_logs(d);
  kd_reverse_block(d, &part->loop->body, &reverse);
  emit_list(d, &reverse);
}

static bool is_reversed(void *data, const kt_stmt *stmt) { return kd_is_reversed_loop(data, stmt); }

static void check_before(kd_part *part)
{
  for (size_t i = 0; i < part->before.count; i++)
    if (kt_any_in_tstmt(part->before.items[i], is_reversed, NULL, &part->d))
      kd_refuse(&part->d, part->before.items[i]->location,
                "a loop before the loop over the grid_range computes values that depend on a "
                "parameter: compute them in the loop over the grid_range");
}

static kt_stmt *new_grid_loop(kd_derivation *d, const kt_stmt *like)
{
  kt_stmt *loop = kt_new_tstmt(d->c, KJ_TS_GRID_FOR, like->location);
  loop->unroll = like->unroll;
  return loop;
}

/* Scalars are summed by each thread, too. */
static void add_scalar_sums(kd_part *part)
{
  kd_derivation *d = &part->d;
  for (size_t i = 0; i < d->record->chosen.count; i++) {
    const kt_var *param = d->record->chosen.items[i];
    kt_var *sum = d->variables[param->index].other;
    if (kt_is_array(d->c, param->type)) continue;
    kd_thread_sum made = { .array = kd_read(d, d->derivatives.items[i]),
                           .sum = sum,
                           .location = param->location };
    KJ_PUSH(d->arena, &made.indices, kt_new_integer(d->s, KJIT_INDEX, 0, d->location));
    KJ_PUSH(d->arena, &part->sums, made);
  }
}

static void emit_first(kd_part *part)
{
  kd_derivation *d = &part->d;
  kt_stmts reverse = { 0 }, *outer = d->s->out, after = { 0 };
  check_before(part);
  add_derivatives(part, false);
  kd_reverse_block(d, &part->before, &reverse);
  kt_stmt *loop = new_grid_loop(d, part->loop);
  loop->vars = part->loop->vars;
  for (size_t i = 0; i < part->loop->extents.count; i++)
    KJ_PUSH(d->arena, &loop->extents, kd_copy(d, part->loop->extents.items[i]));
  d->s->out = &loop->body;
  emit_iteration(part);
  d->s->out = outer;
  d->s->out = &after;
  emit_list(d, &reverse);
  d->s->out = outer;
  for (size_t i = 0; i < part->sums.count; i++)
    kd_assign(d, part->sums.items[i].sum, kd_nothing(d, part->sums.items[i].sum->type));
  add_scalar_sums(part);
  kt_emit(d->s, loop);
  emit_list(d, &after);
  kd_add_thread_sums(part);
}

/* ---- gathering ---- */

static kt_expr *extent_of(kd_derivation *d, const kd_array_plan *plan, size_t v)
{
  return kt_make_extent(d->s, kd_read(d, (kt_var *)plan->array), plan->dimension[v], d->location);
}

static kt_expr *binary(kd_derivation *d, kjit_op op, kt_expr *x, kt_expr *y)
{
  return kt_make_own_binary(d->s, op, x, y, d->location);
}

/* The variable of the iteration that contributes, and whether there is such an iteration. */
static kt_expr *place_variable(kd_part *part, size_t v)
{
  kd_derivation *d = &part->d;
  kt_var *var = part->loop->vars.items[v];
  kt_var *at = kd_new_var(d, var->name, KJIT_INDEX, var->location);
  kt_expr *extent = kd_copy(d, part->loop->extents.items[v]);
  kt_expr *value = kd_read(d, part->position.items[v]);
  int64_t offset = part->offset->offset[v];
  bool wraps = part->offset->wraps[v];
  kjit_op op = offset > 0 ? KJIT_OP_SUB : KJIT_OP_ADD;
  kt_expr *distance = kt_new_integer(d->s, KJIT_INDEX, offset > 0 ? offset : -offset, d->location);
  if (offset) value = binary(d, op, value, distance);
  if (wraps) value = binary(d, KJIT_OP_SUB, value, extent_of(d, part->gathered, v));
  kd_assign(d, at, value);
  d->variables[var->index].instead = at;
  kt_expr *below = binary(d, KJIT_OP_LT, kd_read(d, at), extent);
  if (!offset && !wraps) {
    bool is_whole = kd_equal_exprs(kd_resolve(part, part->loop->extents.items[v]),
                                   extent_of(d, part->gathered, v));
    return is_whole ? NULL : below;
  }
  kt_expr *zero = kt_new_integer(d->s, KJIT_INDEX, 0, d->location);
  kt_expr *both = kt_new_texpr(d->c, KJ_T_LOGIC, KJIT_BOOL, d->location);
  both->op = KJIT_OP_AND;
  both->x = binary(d, KJIT_OP_GE, kd_read(d, at), zero);
  both->y = below;
  return both;
}

static void emit_contribution(kd_part *part)
{
  kd_derivation *d = &part->d;
  kt_stmts *outer = d->s->out;
  for (size_t v = 0; v < part->loop->vars.count; v++) {
    kt_expr *is_there = place_variable(part, v);
    if (!is_there) continue;
    kt_stmt *stmt = kt_new_if(d->c, is_there, d->location);
    kt_emit(d->s, stmt);
    d->s->out = &stmt->body;
  }
  add_derivatives(part, false);
  emit_iteration(part);
  d->s->out = outer;
}

/* Adds the sum to the element. */
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
    kd_refuse(d, d->location, "the array that is handed over as the derivative of `%s` is const",
              plan->array->name);
  kt_expr *before = kd_keep(d, kd_load(d, kd_read(d, (kt_var *)other), &indices));
  kt_expr *sum = kt_convert(d->s, kd_read(d, part->sum), before->type, d->location);
  kd_store(d, kd_read(d, (kt_var *)other), &indices, kd_add(d, before, sum));
}

static kd_part *add_gather_part(const kd_derivation *of, kd_plan *plan,
                                const kd_array_plan *gathered, const kd_gather_offset *offset)
{
  kd_part *part = make_part(of, plan);
  kt_stmts ignored = { 0 };
  part->gathered = gathered;
  part->offset = offset;
  kd_reverse_block(&part->d, &part->before, &ignored);
  return part;
}

static void emit_gather(kd_part *first, const kd_array_plan *plan)
{
  kd_derivation *d = &first->d;
  size_t count = plan->offsets.count, rank = first->loop->vars.count;
  kd_part **parts = KJ_NEW_ARRAY(d->arena, kd_part *, count + 1);
  for (size_t i = 0; i < count; i++)
    parts[i] = add_gather_part(d, first->plan, plan, &plan->offsets.items[i]);
  kt_stmt *loop = new_grid_loop(d, first->loop);
  bool has_sum = ki_type(d->c->types, plan->array->type)->rank == rank;
  for (size_t v = 0; v < rank; v++) {
    kt_var *var = kt_add_variable(d->s, KJ_V_LOOP, first->loop->vars.items[v]->name, KJIT_INDEX,
                                  first->loop->location, KJ_LEVEL_THREAD);
    KJ_PUSH(d->arena, &loop->vars, var);
    KJ_PUSH(d->arena, &loop->extents, extent_of(d, plan, v));
  }
  kjit_type element = ki_type(d->c->types, plan->array->type)->element;
  kt_var *sum = has_sum ? kd_new_var(d, "_sum", kd_wide_type(d, element), d->location) : NULL;
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

/* ---- the whole ---- */

void kd_make_adjoint(kd_derivation *d)
{
  kd_plan *plan = KJ_NEW(d->arena, kd_plan);
  kd_part *first = make_part(d, plan);
  kd_make_plan(first, plan);
  emit_first(first);
  for (size_t i = 0; i < plan->arrays.count; i++)
    if (plan->arrays.items[i].way == KD_GATHERED) emit_gather(first, &plan->arrays.items[i]);
  d->record->result = d->record->instance->result = KJIT_VOID;
  kd_slice(&first->d);
  kd_remark_plan(first);
}
