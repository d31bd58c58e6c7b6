/* Adjoint kernels without a grid loop: shared arrays in loops whose body runs again in the reverse
 * pass.
 *
 * Loads from a shared array must return the same values as in the first run. They do if no
 * statement in the loop or after it stores to the array. They also do if the array is *renewed*: in
 * every iteration, the body first stores to the same elements, loads only afterwards, and changes
 * no other elements. The stores to a renewed array run again as well. In all other cases the array
 * is *stale*: the loop must save the loaded values, as with `@keep`, or a load whose value is
 * needed is rejected. */
#include "derive/adjoint.h"

/* ---- elements that a body loads when it runs again ---- */

typedef struct renewal {
  kd_part *part;
  const kt_var *root;
  bool *changes; /* indexed by variable: the value can differ between iterations */
  /* stores that run in every iteration, to the same elements */
  KJ_LIST(const kt_stmt *) tops;
  bool has_loads; /* the statements analyzed so far load from the array */
  bool has_stores;
  /* a store that makes the array stale, or NULL */
  const kt_stmt *stale;
} renewal;

static bool is_load_of(void *data, const kt_expr *e)
{
  bool reads = e->kind == KJ_T_LOAD || (e->kind == KJ_T_BUILTIN && e->x);
  return reads && kd_root(e->x) == data;
}

static bool loads(const kd_part *part, const kt_stmt *stmt, const kt_var *root)
{
  const kt_expr *sum = kd_find_taken_sum(part, stmt);
  for (size_t i = 0; sum && i < sum->args.count; i++)
    if (kt_any_texpr(sum->args.items[i], is_load_of, (void *)root)) return true;
  if (sum) return false;
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++)
    if (kt_any_texpr(kt_stmt_operand(stmt, i), is_load_of, (void *)root)) return true;
  return false;
}

static bool may_change(void *data, const kt_expr *e)
{
  const renewal *r = data;
  if (e->kind == KJ_T_VAR) return e->var->index < r->part->d.count && r->changes[e->var->index];
  if (e->kind == KJ_T_BUILTIN) return !(e->builtin->flags & KJ_PURE);
  return e->kind == KJ_T_LOAD || e->kind == KJ_T_CALL;
}

static bool is_constant(const renewal *r, const kt_expr *e)
{
  return !e || !kt_any_texpr(kd_resolve(r->part, e), may_change, (void *)r);
}

static bool stores_to(const kt_stmt *stmt, const kt_var *root)
{
  return stmt->kind == KJ_TS_STORE && kd_root(stmt->array) == root;
}

static bool is_constant_place(const renewal *r, const kt_stmt *store)
{
  bool is_same = store->array->kind == KJ_T_VAR;
  for (size_t i = 0; is_same && i < store->indices.count; i++)
    is_same = is_constant(r, store->indices.items[i]);
  return is_same;
}

static bool is_top_place(const renewal *r, const kt_stmt *store)
{
  for (size_t i = 0; i < r->tops.count; i++) {
    const kt_stmt *top = r->tops.items[i];
    bool is_same = store->array->kind == KJ_T_VAR && is_constant_place(r, store);
    for (size_t k = 0; is_same && k < store->indices.count; k++)
      is_same = kd_equal_exprs(kd_resolve(r->part, top->indices.items[k]),
                               kd_resolve(r->part, store->indices.items[k]));
    if (is_same) return true;
  }
  return false;
}

/* Analyzes a store. is_steady: every iteration of the loop executes the store the same number of
 * times. */
static void look_at_store(renewal *r, const kt_stmt *stmt, bool is_steady, bool is_top)
{
  bool is_new =
    is_steady && !r->has_loads && !kd_find_taken_sum(r->part, stmt) && is_constant_place(r, stmt);
  r->has_stores = true;
  if (is_new && is_top) KJ_PUSH(r->part->d.arena, &r->tops, stmt);
  else if (!is_new && !is_top_place(r, stmt) && !r->stale) r->stale = stmt;
}

static void look_at_block(renewal *r, const kt_stmts *stmts, bool is_steady, bool is_top)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    r->has_loads |= loads(r->part, stmt, r->root);
    if (stores_to(stmt, r->root)) look_at_store(r, stmt, is_steady, is_top);
    if (!stmt->body.count && !stmt->otherwise.count) continue;
    bool is_inner = is_steady && stmt->kind != KJ_TS_WHILE;
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++)
      is_inner &= is_constant(r, kt_stmt_operand(stmt, k));
    for (size_t k = 0; k < stmt->body.count; k++)
      is_inner &= !kd_is_last_break(stmt->body.items[k]);
    if (stmt->kind == KJ_TS_FOR) r->changes[stmt->var->index] = !is_inner;
    for (size_t k = 0; k < stmt->vars.count; k++)
      r->changes[stmt->vars.items[k]->index] = !is_inner;
    look_at_block(r, &stmt->body, is_inner, false);
    look_at_block(r, &stmt->otherwise, is_inner, false);
  }
}

static void note_assigned(void *data, kt_stmt *stmt)
{
  renewal *r = data;
  if (stmt->kind == KJ_TS_ASSIGN) r->changes[stmt->var->index] = true;
}

static void look_at_later_store(void *data, kt_stmt *stmt)
{
  renewal *r = data;
  if (stores_to(stmt, r->root) && !is_top_place(r, stmt) && !r->stale) r->stale = stmt;
}

static bool is_stmt(void *data, const kt_stmt *stmt) { return stmt == data; }

/* Analyzes the statements that follow the loop. Returns whether the loop is in this list of
 * statements. */
static bool look_behind(renewal *r, const kt_stmts *stmts, const kt_stmt *loop)
{
  bool is_behind = false;
  for (size_t i = 0; i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    if (is_behind) {
      kt_walk_tstmts(&(kt_stmts){ .items = &stmt, .count = 1 }, look_at_later_store, NULL, r);
    } else if (kt_any_in_tstmt(stmt, is_stmt, NULL, (void *)loop)) {
      is_behind = true;
      if (stmt != loop && !look_behind(r, &stmt->body, loop))
        look_behind(r, &stmt->otherwise, loop);
    }
  }
  return is_behind;
}

/* Analyzes a loop. outer is the surrounding loop whose body runs again, or NULL. */
static renewal look_at_loop(kd_part *part, const kt_var *root, const kt_stmt *loop,
                            const kt_stmt *outer)
{
  renewal r = { .part = part, .root = root };
  r.changes = KJ_NEW_ARRAY(part->d.arena, bool, part->d.count + 1);
  kt_walk_tstmts((kt_stmts *)&loop->body, note_assigned, NULL, &r);
  if (loop->kind == KJ_TS_FOR) r.changes[loop->var->index] = true;
  for (size_t i = 0; i < loop->vars.count; i++) r.changes[loop->vars.items[i]->index] = true;
  look_at_block(&r, &loop->body, true, true);
  look_behind(&r, outer ? &outer->body : &part->d.body, loop);
  return r;
}

static const kt_stmt *outer_of(const kd_part *part, size_t depth)
{
  return depth ? part->reruns.items[depth - 1] : NULL;
}

bool kd_is_stored(const kd_derivation *d, const kt_stmt *store)
{
  kd_part *part = d->adjoint;
  size_t depth = part->reruns.count;
  if (!depth) return true;
  renewal r = look_at_loop(part, kd_root(store->array), part->reruns.items[depth - 1],
                           outer_of(part, depth - 1));
  return r.has_loads && !r.stale;
}

/* Calls visit for each shared array that the loop loads from. */
static void for_loaded(kd_part *part, const kt_stmt *loop,
                       void (*visit)(void *data, const renewal *r), void *data)
{
  const kt_vars *locals = &part->d.record->instance->locals;
  const kt_stmt *outer = outer_of(part, part->reruns.count);
  for (size_t i = 0; i < locals->count; i++) {
    const kt_var *var = locals->items[i];
    if (var->index >= part->d.count || var->kind != KJ_V_SHARED) continue;
    renewal r = look_at_loop(part, var, loop, outer);
    if (r.has_loads) visit(data, &r);
  }
}

static void note_stale(void *data, const renewal *r) { *(bool *)data |= r->stale != NULL; }

bool kd_must_keep(kd_derivation *d, const kt_stmt *loop)
{
  bool must = false;
  if (d->adjoint && d->adjoint->is_by_threads) for_loaded(d->adjoint, loop, note_stale, &must);
  return must;
}

static void note_renewed(void *data, const renewal *r)
{
  *(bool *)data |= r->has_stores && !r->stale;
}

static bool is_barrier(void *data, const kt_stmt *stmt)
{
  (void)data;
  return stmt->kind == KJ_TS_EVALUATE && stmt->value->kind == KJ_T_BUILTIN &&
         stmt->value->builtin->id == KJ_BUILTIN_SYNCTHREADS;
}

/* Called before the emission of a body that runs again. Emits a barrier if other threads may still
 * load elements that the body stores again. */
void kd_begin_rerun(kd_derivation *d, const kt_stmt *loop)
{
  bool is_renewed = false;
  if (!d->adjoint || !d->adjoint->is_by_threads) return;
  for_loaded(d->adjoint, loop, note_renewed, &is_renewed);
  if (is_renewed && kt_any_in_tstmt(loop, is_barrier, NULL, NULL)) kd_emit_barrier(d);
  KJ_PUSH(d->arena, &d->adjoint->reruns, loop);
}

typedef struct marker {
  kd_part *part;
  const kt_var *root;
  const kt_stmt *store;
} marker;

static void mark_load(void *data, kt_expr **place)
{
  const marker *m = data;
  if (is_load_of((void *)m->root, *place))
    KJ_PUSH(m->part->d.arena, &m->part->stale, ((kd_stale_load){ *place, m->store }));
}

typedef struct marking {
  kd_part *part;
  kt_stmts *made;
} marking;

static void mark_loads(void *data, const renewal *r)
{
  const marking *all = data;
  marker m = { all->part, r->root, r->stale };
  if (r->stale) kt_walk_tstmts(all->made, NULL, mark_load, &m);
}

void kd_end_rerun(kd_derivation *d, kt_stmts *made)
{
  if (!d->adjoint || !d->adjoint->is_by_threads) return;
  const kt_stmt *loop = d->adjoint->reruns.items[--d->adjoint->reruns.count];
  marking all = { d->adjoint, made };
  for_loaded(d->adjoint, loop, mark_loads, &all);
}

static void check_load(void *data, kt_expr **place)
{
  const kd_part *part = data;
  for (size_t i = 0; i < part->stale.count; i++) {
    if (part->stale.items[i].load != *place) continue;
    kt_fail_twice(part->d.c, (*place)->location, part->stale.items[i].store->location,
                  KJIT_CODE_NONE, "this store may overwrite the value",
                  "`adjoint` of `%s`: the derivative runs this loop's body again and needs the "
                  "value that is loaded from the shared array `%s` here; store to these elements "
                  "at the start of each iteration, or write a loop whose values the derivative can "
                  "keep: with a constant trip count and without an inner loop",
                  part->d.primal->instance->function->decl->name, kd_root((*place)->x)->name);
  }
}

void kd_check_stale(kd_part *part)
{
  if (part->stale.count) kt_walk_tstmts(&part->d.record->instance->body, NULL, check_load, part);
}
