/* On a GPU and in C functions, compiles loops in two versions: with their checks and without.
 *
 * Before a thread enters such a loop, it tests once whether a check in any iteration of the loop
 * can fail. If no check can fail, the thread runs the version without checks, which the compiler
 * unrolls, and whose loads need not wait for branches. In the version with checks, a thread fails
 * only when it executes a check that fails. The conditions can therefore be stricter than
 * necessary, and early exits from the loop need no analysis. Inside of the unchecked version, inner
 * loops can have two versions as well, for checks that remain there.
 *
 * Loops in which threads synchronize do not have two versions, because the threads would
 * synchronize in different code. A range over the threads of the grid or of a block distributes its
 * iterations differently in each version, so all threads must choose the same version.
 *
 * Needs: typed instances with is_checked, after pass/prove.c. Guarantees: values and failures do
 * not change. */
#include "pass/pass.h"

/* Limits, in expressions and statements: for one loop, for all loops that are compiled twice, and
 * for all loops that are analyzed. */
enum { MOST_SIZE = 4000, MOST_TOTAL = 20000, MOST_LOOKED_AT = 200000 };

typedef struct pass {
  kt_compilation *c;
  kt_instance *instance;
  /* indexed by the variables that the instance had before the pass: the value of each LET
   * variable */
  const kt_expr **values;
  size_t value_count;
  uint32_t total, looked_at;
} pass;

/* ---- reasons against two versions ---- */

typedef struct look {
  uint32_t size;
  bool has_checks, meets, is_long;
} look;

/* Returns whether the expression is a math function that takes long to run and to compile. Compared
 * with such a function, checks cost little at run time, but a second copy of the function takes as
 * long to compile as the rest of the loop. */
static bool is_long_function(const kt_expr *e)
{
  if (e->kind == KJ_T_BINARY) return e->op == KJIT_OP_POW;
  return e->kind == KJ_T_BUILTIN && (ki_math_table[e->builtin->id].form & KJ_MATH_LONG);
}

static bool meets(const kt_expr *e)
{
  if (e->kind == KJ_T_CALL)
    return e->instance->has_barrier || e->instance->has_warp || e->instance->function->is_extern;
  if (e->kind != KJ_T_BUILTIN) return false;
  return (e->builtin->flags & (KJ_BARRIER | KJ_WARP | KJ_WAITS)) ||
         e->builtin->id == KJ_BUILTIN_PTX || e->builtin->id == KJ_BUILTIN_PTX_EFFECT;
}

static void look_at_stmt(void *data, kt_stmt *stmt)
{
  look *l = data;
  l->size++;
  l->has_checks |= stmt->is_checked;
  l->meets |= kt_flow_of(stmt) == KJ_FLOW_RANGE;
}

static void look_at_expr(void *data, kt_expr **at);

/* Analyzes a called function. Does nothing if the loop is already known to be too large. */
static void look_into(look *l, kt_instance *instance)
{
  if (l->size > MOST_SIZE || instance->is_recursive) return;
  kt_walk_tstmts(&instance->body, look_at_stmt, look_at_expr, l);
}

static void look_at_expr(void *data, kt_expr **at)
{
  look *l = data;
  const kt_expr *e = *at;
  l->size++;
  l->has_checks |= e->is_checked;
  l->meets |= meets(e);
  l->is_long |= is_long_function(e);
  if (e->kind == KJ_T_CALL) look_into(l, e->instance);
}

/* ---- values that are the same in all threads ---- */

typedef struct sharing {
  const pass *p;
  bool of_block;
} sharing;

static bool is_shared(const pass *p, const kt_expr *e, bool of_block);

static bool is_shared_variable(const sharing *s, const kt_var *var)
{
  if (var->kind == KJ_V_PARAM) return s->p->instance->is_kernel;
  /* only its extents are read */
  if (var->kind == KJ_V_SHARED || var->kind == KJ_V_CONST) return true;
  return var->kind == KJ_V_LET && var->index < s->p->value_count && s->p->values[var->index] &&
         is_shared(s->p, s->p->values[var->index], s->of_block);
}

static bool is_shared_builtin(const sharing *s, const kt_expr *e)
{
  ki_builtin_id id = e->builtin->id;
  bool is_dimension = id == KJ_BUILTIN_BLOCK_DIM || id == KJ_BUILTIN_GRID_DIM ||
                      id == KJ_BUILTIN_CLUSTER_DIM || id == KJ_BUILTIN_CLUSTER_GRID_DIM;
  /* KJ_XYZ built-ins other than the dimensions are positions, which differ between the blocks in a
   * grid */
  if (e->builtin->flags & KJ_XYZ && !(e->builtin->flags & KJ_THREAD))
    return is_dimension || s->of_block;
  return (e->builtin->flags & KJ_PURE) && !(e->builtin->flags & (KJ_THREAD | KJ_WARP | KJ_NAME)) &&
         !e->x;
}

static bool differs(void *data, const kt_expr *e)
{
  const sharing *s = data;
  switch (kt_source_of(e)) {
  case KJ_FROM_OPERANDS: return false;
  case KJ_FROM_VARIABLE: return !is_shared_variable(s, e->var);
  case KJ_FROM_MEMORY: return true;
  case KJ_FROM_BUILTIN: return !is_shared_builtin(s, e);
  case KJ_FROM_CALL: return true;
  }
  return true;
}

/* Returns whether the value is the same in all threads of the grid, or of the block. A parameter is
 * the same in all threads only if the function is a kernel. */
static bool is_shared(const pass *p, const kt_expr *e, bool of_block)
{
  sharing s = { p, of_block };
  return !kt_any_texpr(e, differs, &s);
}

static bool are_shared(const pass *p, const kt_exprs *list, bool of_block)
{
  for (size_t i = 0; i < list->count; i++)
    if (!is_shared(p, list->items[i], of_block)) return false;
  return true;
}

/* ---- bounds of a counter ---- */

/* Returns whether a loop bound that contains the expression must first be stored in a variable,
 * because the conditions before the loop cannot evaluate the expression themselves. They could
 * evaluate views, but a variable is cheaper. */
static bool is_bound_by_place(void *data, const kt_expr *e)
{
  (void)data;
  if (e->is_checked || e->kind == KJ_T_VIEW || e->kind == KJ_T_POINTED) return true;
  switch (kt_source_of(e)) {
  case KJ_FROM_OPERANDS:
  case KJ_FROM_VARIABLE: return false;
  case KJ_FROM_BUILTIN: return !(e->builtin->flags & KJ_PURE);
  case KJ_FROM_MEMORY:
  case KJ_FROM_CALL: return true;
  }
  return true;
}

static kt_stmt *hold(pass *p, kt_expr **bound)
{
  kt_var *var =
    kt_new_tvar(p->c, p->instance, KJ_V_LET, "bound", (*bound)->type, (*bound)->location);
  kt_stmt *assign = kt_new_tstmt(p->c, KJ_TS_ASSIGN, (*bound)->location);
  assign->var = var;
  assign->value = *bound;
  *bound = kt_new_texpr(p->c, KJ_T_VAR, var->type, assign->location);
  (*bound)->var = var;
  return assign;
}

static void insert(pass *p, kt_stmts *list, size_t at, kt_stmt *stmt)
{
  KJ_ASSERT(at <= list->count);
  KJ_PUSH(p->c->arena, list, stmt);
  for (size_t i = list->count - 1; i > at; i--) list->items[i] = list->items[i - 1];
  list->items[at] = stmt;
}

/* Stores loop bounds that contain loads or calls in variables before the loop, in their order of
 * evaluation. Returns the number of these variables. */
static size_t hold_bounds(pass *p, kt_stmts *list, size_t at)
{
  KJ_ASSERT(list->items[at]->kind == KJ_TS_FOR);
  kt_stmt *loop = list->items[at];
  kt_expr **bounds[] = { &loop->first, &loop->stop, &loop->step };
  size_t count = 0;
  for (int i = 0; i < 3; i++)
    if (kt_any_texpr(*bounds[i], is_bound_by_place, NULL))
      insert(p, list, at + count++, hold(p, bounds[i]));
  return count;
}

/* ---- the pass ---- */

static void version(pass *p, kt_stmt *loop, uint32_t size)
{
  KJ_ASSERT(!loop->hoisted);
  kt_exprs conditions;
  p->looked_at += size;
  const kt_loop_checks *proved = kp_prove_in_loop(p->c, p->instance, loop, &conditions);
  if (!proved) return;
  if (loop->kind != KJ_TS_FOR && !are_shared(p, &conditions, loop->kind == KJ_TS_BLOCK_FOR)) return;
  p->total += size;
  loop->hoisted = proved;
  loop->indices = conditions;
}

static void visit_list(pass *p, kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++) {
    kt_stmt *stmt = list->items[i];
    look l = { 0 };
    if (stmt->kind == KJ_TS_FOR || kt_flow_of(stmt) == KJ_FLOW_RANGE)
      kt_walk_tstmts(&stmt->body, look_at_stmt, look_at_expr, &l);
    if (l.has_checks && !l.meets && !l.is_long && l.size <= MOST_SIZE &&
        p->total + l.size <= MOST_TOTAL && p->looked_at + l.size <= MOST_LOOKED_AT) {
      if (stmt->kind == KJ_TS_FOR) i += hold_bounds(p, list, i);
      version(p, stmt, l.size);
    }
    visit_list(p, &stmt->body);
    visit_list(p, &stmt->otherwise);
  }
}

static void forget_expr(void *data, kt_expr **at)
{
  (void)data;
  (*at)->proof = KJ_PROOF_UNSEEN;
}

static void forget_stmt(void *data, kt_stmt *stmt)
{
  const kt_expr **values = data;
  stmt->proof = KJ_PROOF_UNSEEN;
  if (stmt->kind == KJ_TS_ASSIGN && stmt->var->kind == KJ_V_LET)
    values[stmt->var->index] = stmt->value;
}

void kp_version_loops(kt_compilation *c)
{
  if (c->request->debug || !(c->request->checks & (KJIT_CHECK_BOUNDS | KJIT_CHECK_DIVISION)))
    return;
  pass p = { .c = c };
  const kt_expr ***values = KJ_NEW_ARRAY(c->arena, const kt_expr **, c->instances.count);
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_instance *instance = c->instances.items[i];
    values[i] =
      KJ_NEW_ARRAY(c->arena, const kt_expr *, instance->params.count + instance->locals.count + 1);
    kt_walk_tstmts(&instance->body, forget_stmt, forget_expr, values[i]);
  }
  for (size_t i = 0; i < c->instances.count; i++) {
    p.instance = c->instances.items[i];
    p.values = values[i];
    p.value_count = p.instance->params.count + p.instance->locals.count;
    visit_list(&p, &p.instance->body);
  }
}
