/* GPU: reorders global loads, and emits remarks on the access patterns of arrays. */
#include "pass/pass.h"

/* ---- global loads of adjacent statements are moved before the first of their stores ----
 *
 * The motivation is copying a tile to shared memory: `s[i] = A[x]; if edge { s[j] = A[y] }`. In
 * this order, each store to shared memory waits for its load before the next load is issued, so the
 * block waits several times for the latency of global memory. A load from global memory can be
 * moved before the same thread's stores to shared memory, because the stores cannot change global
 * memory. Other threads cannot rely on the original order, because there is no barrier.
 *
 * A run consists of two or more adjacent statements, each of which is a store to shared memory or
 * an `if` that contains one. Each stored value contains a load from global memory. The condition,
 * the value and the store indices have no effects (typing/effects.c). The pass first stores the
 * conditions and values in variables, in order and under the same conditions; then it executes the
 * stores in order. Needs: typed instances. Guarantees: the computed values, the stores and the
 * order of the stores do not change. */

enum { MAX_RUN = 8 };

typedef struct pass {
  kt_compilation *c;
  kt_instance *instance;
} pass;

static ki_space space_of(kt_compilation *c, const kt_expr *array)
{
  return ki_type(c->types, array->type)->space;
}

/* Returns whether a value may be computed before the earlier stores in its run. It must not read
 * shared or local memory, which these stores modify. */
static bool is_movable(const kt_effects *effects)
{
  return !kt_has_any_effect(effects) && !effects->has_loops &&
         !(effects->reads & (KJ_MEMORY_SHARED | KJ_MEMORY_LOCAL));
}

/* Returns whether the array and the indices of a store have no effects. They are evaluated after
 * the loads that are moved, so they must not change the loaded values. */
static bool has_plain_place(pass *p, const kt_stmt *store)
{
  kt_effects place = { 0 };
  kt_add_effects(p->c, store->array, &place);
  for (size_t i = 0; i < store->indices.count; i++)
    kt_add_effects(p->c, store->indices.items[i], &place);
  return !kt_has_any_effect(&place);
}

/* Returns whether make_zero can create a zero of this type. */
static bool has_literal(kt_compilation *c, kjit_type type)
{
  return ki_is_scalar(type) && ki_type(c->types, type)->class_ != KJ_CLASS_COMPLEX;
}

/* If the statement can be part of a run, returns its store, otherwise NULL. */
static kt_stmt *get_staging_store(pass *p, kt_stmt *stmt)
{
  kt_stmt *store = stmt;
  kt_effects condition = { 0 }, value = { 0 };
  if (stmt->kind == KJ_TS_IF) {
    kt_add_effects(p->c, stmt->value, &condition);
    if (stmt->body.count != 1 || stmt->otherwise.count || !is_movable(&condition)) return NULL;
    store = stmt->body.items[0];
    if (store->kind == KJ_TS_STORE && !has_literal(p->c, store->value->type)) return NULL;
  }
  if (store->kind != KJ_TS_STORE || space_of(p->c, store->array) != KJ_SPACE_SHARED) return NULL;
  kt_add_effects(p->c, store->value, &value);
  bool has_global_load = value.reads & KJ_MEMORY_GLOBAL;
  return is_movable(&value) && has_global_load && has_plain_place(p, store) ? store : NULL;
}

static kt_expr *make_zero(kt_compilation *c, const kt_expr *like)
{
  return kt_new_texpr(c, KJ_T_CONST, like->type, like->location);
}

/* Appends `let name = *at` to the list and replaces *at by the variable. */
static void move_to_let(pass *p, kt_stmts *list, const char *name, kt_expr **at)
{
  kt_expr *value = *at;
  kt_stmt *let = kt_new_tstmt(p->c, KJ_TS_ASSIGN, value->location);
  let->var = kt_new_tvar(p->c, p->instance, KJ_V_LET, name, value->type, value->location);
  let->value = value;
  KJ_PUSH(p->c->arena, list, let);
  *at = kt_new_texpr(p->c, KJ_T_VAR, value->type, value->location);
  (*at)->var = let->var;
}

/* Appends `let v = value`, or `let c = condition` and `let v = c ? value : 0`. Changes the
 * statement so that it reads these variables. */
static void split(pass *p, kt_stmts *list, kt_stmt *stmt, kt_stmt *store)
{
  if (stmt != store) {
    move_to_let(p, list, "staging", &stmt->value);
    kt_expr *guarded = kt_new_texpr(p->c, KJ_T_COND, store->value->type, store->value->location);
    guarded->x = kt_new_texpr(p->c, KJ_T_VAR, stmt->value->type, stmt->value->location);
    guarded->x->var = stmt->value->var;
    guarded->y = store->value;
    guarded->z = make_zero(p->c, store->value);
    store->value = guarded;
  }
  move_to_let(p, list, "staged", &store->value);
}

static size_t get_run(pass *p, const kt_stmts *stmts, size_t first, kt_stmt **stores)
{
  size_t count = 0;
  while (count < MAX_RUN && first + count < stmts->count &&
         (stores[count] = get_staging_store(p, stmts->items[first + count])))
    count++;
  return count;
}

static void visit_list(pass *p, kt_stmts *stmts)
{
  kt_stmts result = { 0 };
  for (size_t i = 0; i < stmts->count;) {
    kt_stmt *stores[MAX_RUN];
    size_t run = get_run(p, stmts, i, stores);
    for (size_t k = 0; run > 1 && k < run; k++) split(p, &result, stmts->items[i + k], stores[k]);
    size_t taken = run > 1 ? run : 1;
    for (size_t k = 0; k < taken; k++, i++) {
      visit_list(p, &stmts->items[i]->body);
      visit_list(p, &stmts->items[i]->otherwise);
      KJ_PUSH(p->c->arena, &result, stmts->items[i]);
    }
  }
  *stmts = result;
}

void kp_issue_loads_early(kt_compilation *c)
{
  KJ_ASSERT(!c->instances.items[0]->may_fail);
  for (size_t i = 0; i < c->instances.count; i++) {
    pass p = { c, c->instances.items[i] };
    visit_list(&p, &c->instances.items[i]->body);
  }
}

/* Remarks on uncoalesced accesses, GPU only.
 *
 * Threads whose threadIdx.x is adjacent should access adjacent elements, so that a warp's accesses
 * need few memory transactions. If an index of an array contains threadIdx.x but the contiguous
 * index does not depend on it, adjacent threads access different rows. Needs typed instances, and
 * does not change them. */

enum { MOST_REMARKS = 4 };

typedef struct remark_pass {
  kt_compilation *c;
  bool *follows; /* indexed by variable: whether its value differs between adjacent threads */
  bool has_changed;
  uint32_t count;
} remark_pass;

/* ---- expressions that depend on threadIdx.x ---- */

static bool is_position_x(const kt_expr *e)
{
  if (e->kind != KJ_T_BUILTIN) return false;
  bool is_first = e->builtin->id == KJ_BUILTIN_THREAD_IDX || e->builtin->id == KJ_BUILTIN_GRID;
  return (is_first && e->dimension == 0) || e->builtin->id == KJ_BUILTIN_THREAD_RANK ||
         e->builtin->id == KJ_BUILTIN_LANEID;
}

static bool follows_x(const remark_pass *p, const kt_expr *e)
{
  if (!e) return false;
  switch (kt_source_of(e)) {
  case KJ_FROM_MEMORY:
  case KJ_FROM_CALL: return false; /* not known */
  case KJ_FROM_VARIABLE: return p->follows[e->var->index];
  case KJ_FROM_BUILTIN:
    if (is_position_x(e)) return true;
    break;
  case KJ_FROM_OPERANDS: break;
  }
  for (size_t i = 0; i < kt_operand_count(e); i++)
    if (follows_x(p, kt_operand(e, i))) return true;
  return false;
}

static void set_follows(remark_pass *p, const kt_var *var)
{
  if (p->follows[var->index]) return;
  p->follows[var->index] = p->has_changed = true;
}

static void follow_stmt(void *data, kt_stmt *stmt)
{
  remark_pass *p = data;
  if (stmt->kind == KJ_TS_ASSIGN && follows_x(p, stmt->value)) set_follows(p, stmt->var);
  if (stmt->kind == KJ_TS_FOR && follows_x(p, stmt->first)) set_follows(p, stmt->var);
  bool is_range = kt_flow_of(stmt) == KJ_FLOW_RANGE;
  if (is_range) set_follows(p, stmt->vars.items[stmt->vars.count - 1]);
}

/* ---- accesses ---- */

static void look_at(remark_pass *p, const kt_expr *array, const kt_exprs *indices,
                    kj_location location)
{
  const ki_type_info *info = ki_type(p->c->types, array->type);
  bool is_rows = info->space == KJ_SPACE_GLOBAL && info->rank > 1 && indices->count == info->rank;
  if (!is_rows || info->layout == KJIT_LAYOUT_STRIDED || p->count >= MOST_REMARKS) return;
  bool is_c = info->layout == KJIT_LAYOUT_C, walks = false;
  uint32_t contiguous = is_c ? info->rank - 1 : 0;
  const kt_expr *along = indices->items[contiguous];
  /* a constant index probably selects a field in a record */
  if (along->kind == KJ_T_CONST || follows_x(p, along)) return;
  for (uint32_t d = 0; d < info->rank; d++)
    walks = walks || (d != contiguous && follows_x(p, indices->items[d]));
  if (!walks) return;
  p->count++;
  const char *name = array->kind == KJ_T_VAR && array->var->name ? array->var->name : "the array";
  kt_warn(p->c, location, KJIT_SEVERITY_REMARK,
          "uncoalesced access: neighbouring threads (threadIdx.x) access elements that are a %s of "
          "`%s` apart; use threadIdx.x in the %s index, along which elements are contiguous",
          is_c ? "row" : "column", name, is_c ? "last" : "first");
}

static void look_expr(void *data, kt_expr **at)
{
  const kt_expr *e = *at;
  if (e->kind == KJ_T_LOAD) look_at(data, e->x, &e->args, e->location);
}

static void look_stmt(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_STORE) look_at(data, stmt->array, &stmt->indices, stmt->location);
}

void kp_remark_strides(kt_compilation *c)
{
  remark_pass p = { .c = c };
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_instance *instance = c->instances.items[i];
    p.follows = KJ_NEW_ARRAY(c->arena, bool, instance->params.count + instance->locals.count + 1);
    do {
      p.has_changed = false;
      kt_walk_tstmts(&instance->body, follow_stmt, NULL, &p);
    } while (p.has_changed);
    kt_walk_tstmts(&instance->body, look_stmt, look_expr, &p);
  }
}
