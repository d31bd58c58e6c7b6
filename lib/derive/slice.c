/* Removes unnecessary statements and variables from an adjoint kernel, and rejects a kernel whose
 * remaining statements need a value that it has overwritten. A statement is needed if it changes
 * memory that other threads can see, or if it assigns a variable that a needed statement reads. The
 * analysis ignores the order of the statements. */
#include "derive/adjoint.h"

typedef struct slicer {
  kd_derivation *d;
  bool *is_needed; /* indexed by variable of the instance: whether a needed statement reads it */
  bool has_changed;
  /* indexed by parameter: a store of the kernel to this array, in the last grid loop that stores to
   * it */
  const kt_stmt **changes;
  uint32_t *changed_in; /* the number of the loop that contains this store; indexed by parameter */
  uint32_t number;      /* number of the loop whose statements are analyzed */
} slicer;

/* ---- needed statements ---- */

static bool is_loop(const kt_stmt *stmt)
{
  kt_flow flow = kt_flow_of(stmt);
  return flow == KJ_FLOW_LOOP || flow == KJ_FLOW_RANGE;
}

/* Returns whether stores to the array are needed. Stores to a local or shared array are needed only
 * if a needed statement loads from it. */
static bool is_needed_array(const slicer *s, const kt_expr *array)
{
  const kt_var *root = kd_root(array);
  bool is_own = root && (root->kind == KJ_V_LOCAL || root->kind == KJ_V_SHARED);
  return !is_own || s->is_needed[root->index];
}

static bool is_needed_any(const slicer *s, const kt_stmts *stmts);

static bool is_needed_alone(const slicer *s, const kt_stmt *stmt)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_ASSIGN: return s->is_needed[stmt->var->index] || kt_has_effect(stmt->value);
  case KJ_TS_STORE: return is_needed_array(s, stmt->array);
  case KJ_TS_FAIL:
  case KJ_TS_BREAK: return false;
  case KJ_TS_EVALUATE: return !kt_accesses_place(stmt->value) || is_needed_array(s, stmt->value->x);
  case KJ_TS_RETURN: return true;
  default: return is_needed_any(s, &stmt->body) || is_needed_any(s, &stmt->otherwise);
  }
}

static bool is_needed_any(const slicer *s, const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++)
    if (!kd_is_sync(s->d, stmts->items[i]) && is_needed_alone(s, stmts->items[i])) return true;
  return false;
}

/* Returns whether the statement can end a loop. Such statements in a needed loop are needed as
 * well, because they determine the trip count of the loop. */
static bool ends_loop(const kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_BREAK || stmt->kind == KJ_TS_FAIL) return true;
  if (stmt->kind != KJ_TS_IF) return false;
  for (size_t i = 0; i < stmt->body.count; i++)
    if (ends_loop(stmt->body.items[i])) return true;
  for (size_t i = 0; i < stmt->otherwise.count; i++)
    if (ends_loop(stmt->otherwise.items[i])) return true;
  return false;
}

static bool is_needed(const slicer *s, const kt_stmt *stmt, bool in_loop)
{
  return is_needed_alone(s, stmt) || (in_loop && ends_loop(stmt));
}

/* ---- needed variables ---- */

static void need_expr(slicer *s, const kt_expr *e)
{
  if (!e) return;
  if (e->kind == KJ_T_VAR && !s->is_needed[e->var->index])
    s->is_needed[e->var->index] = s->has_changed = true;
  for (size_t i = 0; i < kt_operand_count(e); i++) need_expr(s, kt_operand(e, i));
}

static void need_block(slicer *s, const kt_stmts *stmts, bool in_loop)
{
  for (size_t i = stmts->count; i-- > 0;) {
    const kt_stmt *stmt = stmts->items[i];
    bool is_inner = is_loop(stmt) || in_loop;
    if (!is_needed(s, stmt, in_loop)) continue;
    for (size_t k = 0; k < kt_stmt_operand_count(stmt); k++) need_expr(s, kt_stmt_operand(stmt, k));
    need_block(s, &stmt->body, is_inner);
    need_block(s, &stmt->otherwise, is_inner);
  }
}

/* ---- removal ---- */

/* Returns the first barrier in the statements, or NULL. */
static kt_stmt *find_barrier(const slicer *s, const kt_stmts *stmts)
{
  kt_stmt *found = NULL;
  for (size_t i = 0; !found && i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    bool is_barrier = kd_is_sync(s->d, stmt) && stmt->value->builtin->flags & KJ_BARRIER;
    found = is_barrier ? stmt : find_barrier(s, &stmt->body);
    if (!found) found = find_barrier(s, &stmt->otherwise);
  }
  return found;
}

/* Removes the statements that are not needed. If only the barriers in a loop are needed, one
 * barrier replaces the loop. */
static void drop_block(const slicer *s, kt_stmts *stmts, bool in_loop)
{
  size_t count = 0;
  for (size_t i = 0; i < stmts->count; i++) {
    kt_stmt *stmt = stmts->items[i];
    bool is_inner = is_loop(stmt) || in_loop;
    if (!is_needed(s, stmt, in_loop)) {
      kt_stmt *barrier = find_barrier(s, &stmt->body);
      if (!barrier) barrier = find_barrier(s, &stmt->otherwise);
      if (barrier) stmts->items[count++] = barrier;
      continue;
    }
    drop_block(s, &stmt->body, is_inner);
    drop_block(s, &stmt->otherwise, is_inner);
    stmts->items[count++] = stmt;
  }
  stmts->count = count;
}

static void keep_var(slicer *s, const kt_var *var)
{
  if (var) s->is_needed[var->index] = true;
}

static void note_vars(void *data, kt_stmt *stmt)
{
  keep_var(data, stmt->var);
  for (size_t i = 0; i < stmt->vars.count; i++) keep_var(data, stmt->vars.items[i]);
}

/* Removes unused variables and renumbers the rest without changing their order. */
static void drop_variables(slicer *s)
{
  kt_instance *made = s->d->record->instance;
  uint32_t index = (uint32_t)made->params.count;
  size_t count = 0;
  kt_walk_tstmts(&made->body, note_vars, NULL, s);
  for (size_t i = 0; i < made->locals.count; i++) {
    kt_var *var = made->locals.items[i];
    if (!s->is_needed[var->index]) continue;
    made->locals.items[count++] = var;
  }
  made->locals.count = count;
  for (size_t i = 0; i < count; i++) made->locals.items[i]->index = index++;
}

/* ---- overwritten values ---- */

static void note_change(void *data, kt_stmt *stmt)
{
  slicer *s = data;
  const kt_var *root = stmt->kind == KJ_TS_STORE ? kd_root(stmt->array) : NULL;
  if (stmt->kind == KJ_TS_EVALUATE && kt_accesses_place(stmt->value))
    root = kd_root(stmt->value->x);
  if (!root || root->kind != KJ_V_PARAM) return;
  bool is_first = !s->changes[root->index] || s->changed_in[root->index] != s->number;
  if (is_first) s->changes[root->index] = stmt;
  s->changed_in[root->index] = s->number;
}

static void note_changes(slicer *s)
{
  const kd_plan *plan = s->d->adjoint->plan;
  for (uint32_t i = 0; i < plan->firsts.count; i++) {
    s->number = i;
    kt_walk_tstmts(&plan->firsts.items[i]->loop->body, note_change, NULL, s);
  }
}

/* Rejects a load from an array if a later loop of the kernel has overwritten the array. */
static void check_load(void *data, kt_expr **place)
{
  slicer *s = data;
  const kt_expr *e = *place;
  const kt_var *root = e->kind == KJ_T_LOAD ? kd_root(e->x) : NULL;
  const kt_stmt *change =
    root && root->index < s->d->primal->instance->params.count ? s->changes[root->index] : NULL;
  if (!change || s->changed_in[root->index] < s->number) return;
  kt_fail_twice(s->d->c, e->location, change->location, KJIT_CODE_NONE,
                "the kernel overwrites the value here",
                "`adjoint` of `%s`: the derivative needs the value that is loaded from `%s` here, "
                "but the kernel overwrites this value later; store to another array",
                s->d->primal->instance->function->decl->name, root->name);
}

static const kd_owned *find_owned(const kd_plan *plan, const kt_stmt *stmt)
{
  for (size_t i = 0; i < plan->owned.count; i++)
    if (plan->owned.items[i].stmt == stmt) return &plan->owned.items[i];
  return NULL;
}

/* Checks the loads of all grid loops. A statement that belongs to no grid loop is a gathering loop;
 * the statements in its body are checked. */
static void check_loads(slicer *s, kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kd_owned *owned = find_owned(s->d->adjoint->plan, stmts->items[i]);
    if (!owned) {
      check_loads(s, &stmts->items[i]->body);
      continue;
    }
    kt_stmts alone = { 0 };
    KJ_PUSH(s->d->arena, &alone, stmts->items[i]);
    s->number = owned->loop;
    kt_walk_tstmts(&alone, NULL, check_load, s);
  }
}

void kd_slice(kd_derivation *d)
{
  kt_instance *made = d->record->instance;
  size_t count = made->params.count + made->locals.count + 1;
  slicer s = { .d = d,
               .is_needed = KJ_NEW_ARRAY(d->arena, bool, count),
               .changes = KJ_NEW_ARRAY(d->arena, const kt_stmt *, made->params.count + 1),
               .changed_in = KJ_NEW_ARRAY(d->arena, uint32_t, made->params.count + 1) };
  note_changes(&s);
  do {
    s.has_changed = false;
    need_block(&s, &made->body, false);
  } while (s.has_changed);
  drop_block(&s, &made->body, false);
  check_loads(&s, &made->body);
  kd_check_stale(d->adjoint);
  drop_variables(&s);
}
