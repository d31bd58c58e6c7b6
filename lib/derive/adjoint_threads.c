/* Adjoints of kernels without a loop over a grid_range, in which each thread works on its own
 * elements. In the adjoint, each thread runs the kernel forward and then backward. Each barrier of
 * the kernel is a barrier in both directions.
 *
 * The adjoint is correct if the kernel has no data races: between two barriers, no thread accesses
 * an element that another thread stores to. Each thread then knows the order of the stores to an
 * element. Accesses to derivatives have no races either, because the additions for loads are
 * atomic.
 *
 * This file checks the kernel and plans the derivatives of its arrays. adjoint_shared.c handles
 * shared arrays and loops over a block_range. */
#include "derive/adjoint.h"

/* ---- values that differ between the threads in a block ---- */

static bool differs_here(void *data, const kt_expr *e)
{
  const kd_part *part = data;
  switch (KJ_AMONG(kt_source_of(e))) {
  case KJ_FROM_VARIABLE: return e->var->index < part->d.count && part->differs[e->var->index];
  case KJ_FROM_BUILTIN:
    return (e->builtin->flags & (KJ_THREAD | KJ_WARP)) ||
           (!(e->builtin->flags & (KJ_PURE | KJ_READS | KJ_BARRIER)));
  case KJ_FROM_CALL: return true;
  case KJ_FROM_MEMORY: return kd_root(e->x) && kd_root(e->x)->kind == KJ_V_LOCAL;
  default: return false;
  }
}

bool kd_differs(const kd_part *part, const kt_expr *e)
{
  return kt_any_texpr(e, differs_here, (void *)part);
}

static bool differ(kd_part *part, const kt_var *var, bool differs)
{
  if (!differs || part->differs[var->index]) return false;
  return part->differs[var->index] = true;
}

/* Returns whether only some threads may run an iteration of the loop. */
static bool loop_differs(const kd_part *part, const kt_stmt *loop)
{
  bool differs = loop->kind == KJ_TS_BLOCK_FOR;
  for (size_t i = 0; i < kt_stmt_operand_count(loop); i++)
    differs |= kt_stmt_operand(loop, i) && kd_differs(part, kt_stmt_operand(loop, i));
  for (size_t i = 0; i < loop->body.count; i++) {
    const kt_stmt *stmt = loop->body.items[i];
    differs |= kd_is_last_break(stmt) && kd_differs(part, stmt->value);
  }
  return differs;
}

static bool may_differ(const kd_part *part, const kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_IF) return kd_differs(part, stmt->value);
  return loop_differs(part, stmt);
}

static bool find_differing(kd_part *part, const kt_stmts *stmts, bool is_divergent)
{
  bool has_changed = false;
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    if (stmt->kind == KJ_TS_ASSIGN)
      has_changed |= differ(part, stmt->var, is_divergent || kd_differs(part, stmt->value));
    if (!stmt->body.count && !stmt->otherwise.count) continue;
    bool inside = is_divergent || may_differ(part, stmt);
    if (stmt->kind == KJ_TS_FOR) has_changed |= differ(part, stmt->var, inside);
    for (size_t k = 0; k < stmt->vars.count; k++)
      has_changed |= differ(part, stmt->vars.items[k], true);
    has_changed |= find_differing(part, &stmt->body, inside);
    has_changed |= find_differing(part, &stmt->otherwise, inside);
  }
  return has_changed;
}

/* ---- restrictions of such kernels ---- */

bool kd_is_sync(const kd_derivation *d, const kt_stmt *stmt)
{
  bool is_builtin = d->adjoint && d->adjoint->is_by_threads && stmt->kind == KJ_TS_EVALUATE &&
                    stmt->value->kind == KJ_T_BUILTIN;
  if (!is_builtin) return false;
  switch (KJ_AMONG(stmt->value->builtin->id)) {
  case KJ_BUILTIN_SYNCTHREADS:
  case KJ_BUILTIN_SYNCWARP:
  case KJ_BUILTIN_THREADFENCE:
  case KJ_BUILTIN_THREADFENCE_BLOCK:
  case KJ_BUILTIN_THREADFENCE_SYSTEM: return true;
  default: return false;
  }
}

static bool is_barrier(const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_EVALUATE && stmt->value->kind == KJ_T_BUILTIN &&
         stmt->value->builtin->id == KJ_BUILTIN_SYNCTHREADS;
}

/* Returns whether the expression has a side effect, which the adjoint would repeat. */
static bool has_own_effect(void *data, const kt_expr *e)
{
  (void)data;
  return e->kind == KJ_T_BUILTIN && !(e->builtin->flags & (KJ_PURE | KJ_READS | KJ_WARP));
}

static void check_effects(kd_part *part, const kt_stmt *stmt)
{
  kd_derivation *d = &part->d;
  if (kd_is_sync(d, stmt)) return;
  bool is_atomic = stmt->kind == KJ_TS_EVALUATE && kt_accesses_place(stmt->value);
  const kt_var *root = is_atomic ? kd_root(stmt->value->x) : NULL;
  /* the kernel has already executed this operation, and the adjoint does not repeat it */
  if (root && root->kind == KJ_V_PARAM) return;
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++) {
    const kt_expr *operand = kt_stmt_operand(stmt, i);
    if (stmt->kind == KJ_TS_EVALUATE || kt_any_texpr(operand, has_own_effect, NULL))
      kd_refuse(d, stmt->location,
                "this statement has an effect that the adjoint would repeat; kernels with barriers "
                "may have stores, `syncthreads()`, `syncwarp()` and `atomic_add` without a use of "
                "its result");
  }
}

static void check_block(kd_part *part, const kt_stmts *stmts, const kt_stmt *divergent)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    if (is_barrier(stmt) && divergent)
      kt_fail_twice(part->d.c, stmt->location, divergent->location, KJIT_CODE_NONE,
                    "this statement decides which threads reach the barrier",
                    "`adjoint` of `%s`: only some threads of the block reach this barrier, because "
                    "it follows a `return` or is under a condition that depends on the thread: let "
                    "all threads reach the barrier",
                    part->d.primal->instance->function->decl->name);
    check_effects(part, stmt);
    const kt_stmt *inside = divergent;
    bool is_nested = stmt->body.count || stmt->otherwise.count;
    if (!inside && is_nested && may_differ(part, stmt)) inside = stmt;
    check_block(part, &stmt->body, inside);
    check_block(part, &stmt->otherwise, inside);
  }
}

/* ---- stores by several threads ---- */

typedef struct walk {
  kd_part *part;
  /* the outermost `if` around a statement if its condition depends on the thread, otherwise NULL;
   * and whether the statement is in its `else` branch */
  const kt_stmt *condition;
  bool is_otherwise;
  const kt_stmt *wanted; /* argument of find_condition */
  bool is_found;
} walk;

static bool any_differs(const kd_part *part, const kt_exprs *indices)
{
  for (size_t i = 0; i < indices->count; i++)
    if (kd_differs(part, indices->items[i])) return true;
  return false;
}

static void find_condition(walk *w, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count && !w->is_found; i++) {
    const kt_stmt *stmt = stmts->items[i];
    if (stmt == w->wanted) {
      w->is_found = true;
      return;
    }
    for (int arm = 0; arm < 2 && !w->is_found; arm++) {
      const kt_stmts *list = arm ? &stmt->otherwise : &stmt->body;
      if (!list->count) continue;
      bool enters = !w->condition && may_differ(w->part, stmt);
      if (enters) {
        w->condition = stmt;
        w->is_otherwise = arm == 1;
      }
      find_condition(w, list);
      if (enters && !w->is_found) w->condition = NULL;
    }
  }
}

static walk condition_of(kd_part *part, const kt_stmt *store)
{
  walk w = { .part = part, .wanted = store };
  find_condition(&w, &part->d.body);
  return w;
}

/* Rejects a store by which all threads in a block write to the same element: in the adjoint, each
 * of these threads would read the derivative of the element. */
static void check_store(kd_part *part, const kt_stmt *store)
{
  const kt_var *root = kd_root(store->array);
  bool is_place = any_differs(part, &store->indices) || kd_differs(part, store->array);
  if (is_place || !kd_is_active(&part->d, root)) return;
  if (condition_of(part, store).condition) return;
  kd_refuse(&part->d, store->location,
            "all threads of a block store to the same element of `%s`: let one thread store, `if "
            "threadIdx.x == 0`",
            root->name);
}

static void check_stores(void *data, kt_stmt *stmt)
{
  kd_part *part = data;
  if (stmt->kind != KJ_TS_STORE || kd_find_taken_sum(part, stmt)) return;
  const kt_var *root = kd_root(stmt->array);
  if (root && root->kind != KJ_V_LOCAL) check_store(part, stmt);
}

void kd_start_threads(kd_part *part)
{
  kd_derivation *d = &part->d;
  part->differs = KJ_NEW_ARRAY(d->arena, bool, d->count + 1);
  while (find_differing(part, &d->body, false)) continue;
  kd_check_shared(part);
  check_block(part, &d->body, NULL);
  kt_walk_tstmts(&d->body, check_stores, NULL, part);
}

/* ---- plans ---- */

static bool is_same_place(kd_part *part, const kd_site *a, const kd_site *b)
{
  bool is_same = a->is_whole && b->is_whole && a->rank == b->rank;
  for (uint32_t k = 0; is_same && k < a->rank; k++)
    is_same = kd_equal_exprs(kd_resolve(part, a->store->indices.items[k]),
                             kd_resolve(part, b->store->indices.items[k]));
  return is_same;
}

/* Returns whether the same thread executes both of these stores to one element. */
static bool has_same_thread(kd_part *part, const kd_site *a, const kd_site *b)
{
  if (any_differs(part, &a->store->indices)) return true;
  walk of_a = condition_of(part, a->store), of_b = condition_of(part, b->store);
  return of_a.condition == of_b.condition && of_a.is_otherwise == of_b.is_otherwise;
}

bool kd_is_one_thread_element(kd_part *part, const kd_sites *stores)
{
  const kd_site *first = stores->items[0];
  for (size_t i = 0; i < stores->count; i++) {
    const kd_site *site = stores->items[i];
    if (site->loops || !is_same_place(part, first, site) || !has_same_thread(part, first, site))
      return false;
  }
  return true;
}
