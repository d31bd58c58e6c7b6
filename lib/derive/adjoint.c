/* Makes the adjoint of a kernel. Let y be a number that depends on the kernel's outputs. The
 * adjoint's inputs are the derivatives of y with respect to the elements that the kernel stores.
 * The adjoint computes the derivatives of y with respect to the elements and scalars that the
 * kernel loads, and adds them to the arrays of derivatives.
 *
 * The adjoint runs the grid loops in the kernel in reverse order. Each loop has one or more parts
 * (adjoint.h). The first part runs the loop again: each iteration executes the body forward and
 * then propagates derivatives backward through it. If the derivatives with respect to an array are
 * gathered, a separate loop over the elements in the array computes them (adjoint_gather.c).
 * slice.c removes the statements that a part does not need.
 *
 * A kernel without a grid loop has one part, its whole body (adjoint_threads.c).
 *
 * Iterations of different loops may run at the same time, unless grid_sync() is between the loops.
 * The adjoint has a grid_sync() between the same loops. */
#include "derive/adjoint.h"

#include <string.h>

/* ---- parts ---- */

/* Rejects a kernel whose structure has no adjoint. `instead` is the rest of the message: it names
 * the obstacle and the code to write in its place. */
static _Noreturn void refuse_shape(kd_part *part, kj_location location, const char *instead)
{
  kd_refuse(&part->d, location,
            "the body of a kernel with an adjoint must consist of loops over a grid_range, with "
            "only grid_sync() and computed values between them; %s",
            instead);
}

static bool is_effect(void *data, const kt_stmt *stmt)
{
  (void)data;
  const kt_var *root = stmt->kind == KJ_TS_STORE ? kd_root(stmt->array) : NULL;
  bool is_store = stmt->kind == KJ_TS_STORE && (!root || root->kind != KJ_V_LOCAL);
  return is_store || stmt->kind == KJ_TS_EVALUATE || kt_flow_of(stmt) == KJ_FLOW_RANGE;
}

static bool is_grid_loop(void *data, const kt_stmt *stmt)
{
  (void)data;
  return stmt->kind == KJ_TS_GRID_FOR;
}

static _Noreturn void refuse_stmt(kd_part *part, const kt_stmt *stmt)
{
  bool has_loop = kt_any_in_tstmt(stmt, is_grid_loop, NULL, NULL);
  const char *instead =
    "this statement has an effect outside of a grid_range: move it into `for i in grid_range(n)`";
  if (stmt->kind == KJ_TS_EVALUATE || stmt->kind == KJ_TS_STORE)
    refuse_shape(part, stmt->location, instead);
  if (!has_loop)
    instead = "this statement has an effect outside of a grid_range: write `for i in "
              "grid_range(n)` instead of computing an index of the thread";
  else if (kt_flow_of(stmt) == KJ_FLOW_LOOP)
    instead = "this grid_range is in another loop: launch the kernel, and its adjoint, once for "
              "each iteration of the outer loop";
  else
    instead = "this grid_range is under a condition, or follows a `return`: write the condition in "
              "the loop, or launch the kernel under this condition";
  refuse_shape(part, stmt->location, instead);
}

static bool is_sync(const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_EVALUATE && stmt->value->kind == KJ_T_BUILTIN &&
         stmt->value->builtin->id == KJ_BUILTIN_GRID_SYNC;
}

static void take_atomic_sum(void *data, kt_stmt *stmt) { kd_take_atomic_sum(data, stmt); }

void kd_take_atomic_sums(kd_derivation *d)
{
  kd_part *part = d->adjoint;
  part->is_by_threads = !kt_any_in_tstmts(&d->body, is_grid_loop, NULL, NULL);
  kt_walk_tstmts(&d->body, take_atomic_sum, NULL, part);
}

/* Makes a loop without variables from the whole body of a kernel that has no grid loop. */
static void take_body(kd_part *part)
{
  part->loop = kt_new_tstmt(part->d.c, KJ_TS_GRID_FOR, part->d.location);
  part->loop->body = part->d.body;
  part->is_last = true;
}

/* Finds the grid loop of the part and the statements before it. */
static void find_loop(kd_part *part)
{
  kd_derivation *d = &part->d;
  uint32_t number = 0;
  kt_stmt *sync = NULL;
  for (size_t i = 0; i < d->body.count; i++) {
    kt_stmt *stmt = d->body.items[i];
    if (stmt->kind == KJ_TS_GRID_FOR) {
      part->is_last = number == part->number;
      if (part->is_last) { /* this loop is the last grid loop so far */
        part->loop = stmt;
        part->sync = sync;
      }
      number++;
      sync = NULL;
    } else if (is_sync(stmt)) {
      sync = stmt;
    } else {
      if (kt_any_in_tstmt(stmt, is_effect, NULL, NULL)) refuse_stmt(part, stmt);
      if (!part->loop) KJ_PUSH(d->arena, &part->before, stmt);
    }
  }
  if (!part->loop) refuse_shape(part, d->location, "this kernel has no grid_range");
}

/* Rejects a variable that is assigned both before the grid loop and inside it. An iteration would
 * read the value of an earlier iteration, and which iterations a thread runs is not specified. */
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

kd_part *kd_make_part(const kd_derivation *of, kd_plan *plan, uint32_t number)
{
  kd_part *part = KJ_NEW(of->arena, kd_part);
  part->d = *of;
  part->d.adjoint = part;
  part->d.body = (kt_stmts){ 0 };
  part->d.variables = NULL;
  memset(&part->d.logs, 0, sizeof part->d.logs);
  part->plan = plan;
  part->number = number;
  part->copies = KJ_NEW_ARRAY(of->arena, kt_var *, of->primal->instance->params.count + 1);
  kd_start(&part->d);
  if (part->is_by_threads) take_body(part);
  else find_loop(part);
  kd_find_sites(part);
  if (part->is_by_threads) kd_start_threads(part);
  else check_carried(part);
  return part;
}

/* ---- derivatives of variables ---- */

static bool is_inside(const kd_part *part, const kt_var *var)
{
  return part->is_inside[var->index];
}

void kd_add_derivatives(kd_part *part, bool inside)
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

void kd_own_statements(kd_part *part, size_t first)
{
  const kt_stmts *out = part->d.s->out;
  for (size_t i = first; i < out->count; i++)
    KJ_PUSH(part->d.arena, &part->plan->owned, ((kd_owned){ out->items[i], part->number }));
}

/* ---- the first part of a loop ---- */

static void emit_list(kd_derivation *d, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) kt_emit(d->s, stmts->items[i]);
}

void kd_emit_iteration(kd_part *part)
{
  kd_derivation *d = &part->d;
  kt_stmts reverse = { 0 };
  kd_begin_iteration(part);
  kd_add_derivatives(part, true);
  kd_begin_shared(part);
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

kt_stmt *kd_new_grid_loop(kd_derivation *d, const kt_stmt *like)
{
  kt_stmt *loop = kt_new_tstmt(d->c, KJ_TS_GRID_FOR, like->location);
  loop->unroll = like->unroll;
  return loop;
}

/* Adds the derivatives with respect to scalar parameters to the list of sums that each thread adds
 * to memory at the end. */
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
  size_t first = outer->count;
  check_before(part);
  kd_add_derivatives(part, false);
  kd_reverse_block(d, &part->before, &reverse);
  kt_stmt *loop = kd_new_grid_loop(d, part->loop);
  loop->vars = part->loop->vars;
  for (size_t i = 0; i < part->loop->extents.count; i++)
    KJ_PUSH(d->arena, &loop->extents, kd_copy(d, part->loop->extents.items[i]));
  d->s->out = &loop->body;
  kd_emit_iteration(part);
  d->s->out = outer;
  d->s->out = &after;
  emit_list(d, &reverse);
  d->s->out = outer;
  for (size_t i = 0; i < part->sums.count; i++)
    kd_assign(d, part->sums.items[i].sum, kd_nothing(d, part->sums.items[i].sum->type));
  kd_clear_copies(part);
  add_scalar_sums(part);
  if (part->is_by_threads) emit_list(d, &loop->body);
  else kt_emit(d->s, loop);
  emit_list(d, &after);
  kd_add_thread_sums(part);
  kd_own_statements(part, first);
}

/* ---- entry point ---- */

static void make_firsts(const kd_derivation *d, kd_plan *plan)
{
  kd_part *part;
  do {
    part = kd_make_part(d, plan, (uint32_t)plan->firsts.count);
    KJ_PUSH(d->arena, &plan->firsts, part);
  } while (!part->is_last);
}

static void emit_sync(kd_part *part)
{
  kd_derivation *d = &part->d;
  kt_stmt *sync = kt_new_tstmt(d->c, KJ_TS_EVALUATE, part->sync->location);
  sync->value = kd_copy(d, part->sync->value);
  kt_emit(d->s, sync);
}

void kd_make_adjoint(kd_derivation *d)
{
  kd_plan *plan = KJ_NEW(d->arena, kd_plan);
  make_firsts(d, plan);
  kd_make_plan(plan);
  for (size_t k = plan->firsts.count; k-- > 0;) {
    kd_part *first = plan->firsts.items[k];
    emit_first(first);
    for (size_t i = 0; i < plan->arrays.count; i++) {
      const kd_array_plan *array = &plan->arrays.items[i];
      if (array->loads == KD_GATHERED && array->first == k) kd_emit_gather(first, array);
    }
    if (first->sync && k) emit_sync(first);
  }
  d->record->result = d->record->instance->result = KJIT_VOID;
  kd_slice(&plan->firsts.items[0]->d);
  kd_note_plan(plan);
  kd_remark_plan(plan);
}
