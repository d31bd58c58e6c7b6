/* Inlines functions that synchronize into the kernel. Also inlines functions that return a local
 * array; the array then belongs to the caller. Turns every synchronization into a statement.
 *
 * Needs: typed instances. Guarantees: the kernel calls no function that contains a barrier, a warp
 * operation or a grid_range. A barrier or warp operation is the whole value of an ASSIGN or
 * EVALUATE, and its operands are constants or variables. Conditions, ranges and lazily evaluated
 * operands contain no synchronization. The order of evaluation is preserved: a value that precedes
 * a synchronization is first stored in a variable if other threads could change it before its use.
 *
 * An inlined call is replaced by lets for the parameters, a variable for the result, and the body
 * in a ONCE statement, in which `return e` becomes `result = e; LEAVE`. A return at the end needs
 * no LEAVE, and `if c { ...; return a } rest` becomes an if with an else, so that most bodies need
 * no ONCE. */
#include "pass/simt.h"

/* ---- moving synchronizations out of expressions, in the order of evaluation ---- */

bool kp_is_sync_builtin(const kt_expr *e)
{
  return e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_BARRIER | KJ_WARP));
}
/* Returns whether the called function synchronizes or contains a range, so that the call must be
 * inlined. */
static bool is_joint_call(const kp_inliner *in, const kt_expr *e)
{
  return e->kind == KJ_T_CALL && in->is_joint[e->instance->id];
}

static bool has_joint_stmt(const kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i]->is_joint) return true;
  return false;
}

static bool is_joint_node(void *data, const kt_expr *e)
{
  return kp_is_sync_builtin(e) || is_joint_call(data, e);
}

bool kp_has_joint_expr(const kp_inliner *in, const kt_expr *e)
{
  return kt_any_texpr(e, is_joint_node, (void *)in);
}

/* Returns whether the expression has the same value if it is evaluated later, because neither other
 * threads nor the code in between can change it. */
static bool is_stable(const kt_compilation *c, const kt_expr *e)
{
  kt_effects effects = { 0 };
  kt_add_effects(c, e, &effects);
  return !effects.reads && !kt_has_any_effect(&effects);
}

static kt_expr *hold(kp_inliner *in, kt_expr *e, kt_stmts *out)
{
  kt_var *var = kp_new_holder(in->s, KJ_V_LET, "held", e);
  kp_push_inlined(in, out, kp_new_assign(in->s, var, e));
  return kp_new_var(in->s, var, e->location);
}

/* An expression's operands in the order of evaluation; operands that are NULL are omitted. */
typedef KJ_LIST(kt_expr **) operand_list;

static void add_operand(kp_inliner *in, operand_list *list, kt_expr **operand)
{
  if (*operand) KJ_PUSH(in->s->c->arena, list, operand);
}

/* Moves synchronizations out of the operands. To preserve the order of evaluation, operands before
 * the last operand with a synchronization are stored in variables if their values could change. */
static void hoist_operands(kp_inliner *in, operand_list *list, kt_stmts *out)
{
  size_t last = list->count;
  while (last > 0 && !kp_has_joint_expr(in, *list->items[last - 1])) last--;
  for (size_t i = 0; i < last; i++) {
    kt_expr **operand = list->items[i];
    *operand = kp_hoist(in, *operand, out);
    if (i + 1 < last && !is_stable(in->s->c, *operand)) *operand = hold(in, *operand, out);
  }
}

/* Moves the synchronizations in all operands of an expression out of it. */
static void hoist_all(kp_inliner *in, kt_expr *e, kt_stmts *out)
{
  operand_list list = { 0 };
  for (size_t i = 0; i < kt_operand_count(e); i++) add_operand(in, &list, kt_operand_place(e, i));
  hoist_operands(in, &list, out);
}

static void hoist_all_of_stmt(kp_inliner *in, kt_stmt *stmt, kt_stmts *out)
{
  operand_list list = { 0 };
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++)
    add_operand(in, &list, kt_stmt_operand_place(stmt, i));
  hoist_operands(in, &list, out);
}

/* Rewrites `x and y`, or `x or y`: y is then evaluated under an if. */
static kt_expr *hoist_logic(kp_inliner *in, kt_expr *e, kt_stmts *out)
{
  KJ_ASSERT(e->kind == KJ_T_LOGIC);
  e->x = kp_hoist(in, e->x, out);
  if (!kp_has_joint_expr(in, e->y)) return e;
  kt_var *var = kp_new_local(in->s, KJ_V_VAR, "logic", KJIT_BOOL, e->location);
  kp_push_inlined(in, out, kp_new_assign(in->s, var, e->x));
  kt_expr *condition = kp_new_var(in->s, var, e->location);
  if (e->op == KJIT_OP_OR) condition = kp_new_unary(in->s, KJIT_OP_NOT, condition);
  kt_stmt *stmt = kt_new_if(in->s->c, condition, e->location);
  kt_expr *value = kp_hoist(in, e->y, &stmt->body);
  kp_push_inlined(in, &stmt->body, kp_new_assign(in->s, var, value));
  stmt->is_joint = has_joint_stmt(&stmt->body);
  kp_push_inlined(in, out, stmt);
  return kp_new_var(in->s, var, e->location);
}

static kt_expr *hoist_cond(kp_inliner *in, kt_expr *e, kt_stmts *out)
{
  KJ_ASSERT(e->kind == KJ_T_COND);
  e->x = kp_hoist(in, e->x, out);
  if (!kp_has_joint_expr(in, e->y) && !kp_has_joint_expr(in, e->z)) return e;
  kt_var *var = kp_new_holder(in->s, KJ_V_VAR, "chosen", e);
  kp_push_inlined(in, out, kp_new_assign(in->s, var, NULL)); /* declaration */
  kt_stmt *stmt = kt_new_if(in->s->c, e->x, e->location);
  kt_expr *y = kp_hoist(in, e->y, &stmt->body);
  kp_push_inlined(in, &stmt->body, kp_new_assign(in->s, var, y));
  kt_expr *z = kp_hoist(in, e->z, &stmt->otherwise);
  kp_push_inlined(in, &stmt->otherwise, kp_new_assign(in->s, var, z));
  stmt->is_joint = has_joint_stmt(&stmt->body) || has_joint_stmt(&stmt->otherwise);
  kp_push_inlined(in, out, stmt);
  return kp_new_var(in->s, var, e->location);
}

void kp_hold_sync_operands(kp_inliner *in, kt_expr *e, const kt_var *result, kt_stmts *out)
{
  KJ_ASSERT(e->kind == KJ_T_BUILTIN);
  for (size_t i = 0; i < e->args.count; i++) {
    kt_expr *arg = e->args.items[i];
    bool is_plain = arg->kind == KJ_T_CONST ||
                    (arg->kind == KJ_T_VAR && arg->var->kind == KJ_V_VAR && arg->var != result);
    if (!is_plain) e->args.items[i] = hold(in, arg, out);
  }
}

kt_expr *kp_hoist(kp_inliner *in, kt_expr *e, kt_stmts *out)
{
  if (!kp_has_joint_expr(in, e)) return e;
  if (e->kind == KJ_T_LOGIC) return hoist_logic(in, e, out);
  if (e->kind == KJ_T_COND) return hoist_cond(in, e, out);
  hoist_all(in, e, out);
  if (is_joint_call(in, e)) return kp_inline_call(in, e, out);
  if (!kp_is_sync_builtin(e)) return e;
  kp_hold_sync_operands(in, e, NULL, out);
  kt_stmt *stmt;
  kt_var *var = NULL;
  if (e->type == KJIT_VOID) {
    stmt = kt_new_tstmt(in->s->c, KJ_TS_EVALUATE, e->location);
    stmt->value = e;
  } else {
    var = kp_new_local(in->s, KJ_V_LET, e->builtin->name, e->type, e->location);
    stmt = kp_new_assign(in->s, var, e);
  }
  stmt->is_joint = true;
  kp_push_inlined(in, out, stmt);
  return var ? kp_new_var(in->s, var, e->location) : NULL;
}

/* Limits on inlining, because the number of inlined statements can grow exponentially with the
 * depth of calls. */
enum { MAX_STATEMENTS = 100000, MAX_DEPTH = 200 };

typedef struct kp_activation kp_activation;

/* The kernel, or a call that is inlined. */
struct kp_activation {
  kp_activation *caller;
  const kt_instance *instance;
  /* indexed by variable: the kernel's variable that replaces it; NULL for the kernel itself */
  kt_var **map;
  kt_var *result;
  uint32_t result_count, leave_count;
  uint32_t depth;
};

static void rewrite_list(kp_inliner *in, const kt_stmts *from, size_t first, kt_stmts *to,
                         bool is_tail);

static kj_arena *arena_of(kp_inliner *in) { return in->s->c->arena; }

/* ---- which instances synchronize ---- */

typedef struct scan {
  kp_inliner *in;
  bool is_joint;
} scan;

static void scan_expr(void *data, kt_expr **expr)
{
  scan *found = data;
  const kt_expr *e = *expr;
  if (e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_BARRIER | KJ_WARP)))
    found->is_joint = true;
  if (e->kind == KJ_T_CALL && found->in->is_joint[e->instance->id]) found->is_joint = true;
}

static void scan_stmt(void *data, kt_stmt *stmt)
{
  scan *found = data;
  if (kt_flow_of(stmt) == KJ_FLOW_RANGE) found->is_joint = true;
}

static void find_joint_instances(kp_inliner *in)
{
  kt_compilation *c = in->s->c;
  bool has_changed = true;
  while (has_changed) { /* recursive calls can require more than one round */
    has_changed = false;
    for (size_t i = 0; i < c->instances.count; i++) {
      scan found = { .in = in };
      kt_walk_tstmts(&c->instances.items[i]->body, scan_stmt, scan_expr, &found);
      has_changed |= found.is_joint && !in->is_joint[i];
      in->is_joint[i] |= found.is_joint;
    }
  }
  /* a function that returns a local array must be inlined, but the functions that call it need not
   * be */
  for (size_t i = 0; i < c->instances.count; i++)
    in->is_joint[i] |= kt_holds_local(c->types, c->instances.items[i]->result);
}

/* ---- variables ---- */

static kt_var *copy_var(kp_inliner *in, const kt_var *var, kt_tvar_kind kind)
{
  KJ_ASSERT(var->kind != KJ_V_PARAM || kind == KJ_V_LET);
  kt_var *copy = kp_new_local(in->s, kind, var->name, var->type, var->location);
  copy->alignment = var->alignment;
  copy->data = var->data;
  copy->range = var->range;
  copy->is_narrow = var->is_narrow;
  return copy;
}

static kt_var **variable_table(kp_inliner *in, const kt_instance *instance)
{
  return KJ_NEW_ARRAY(arena_of(in), kt_var *, instance->params.count + instance->locals.count + 1);
}

static kt_var *map_var(void *data, kt_var *var)
{
  kp_inliner *in = data;
  kp_activation *at = in->at;
  if (!at->map) return var;
  kt_var **slot = &at->map[var->index];
  if (*slot) return *slot;
  if (var->kind == KJ_V_SHARED || var->kind == KJ_V_CONST) {
    kt_var ***storage = &in->storage[at->instance->id];
    if (!*storage) *storage = variable_table(in, at->instance);
    kt_var **shared = &(*storage)[var->index];
    if (!*shared) *shared = copy_var(in, var, var->kind);
    return *slot = *shared;
  }
  return *slot = copy_var(in, var, var->kind == KJ_V_PARAM ? KJ_V_LET : var->kind);
}

static kt_expr *copy_expr(kp_inliner *in, const kt_expr *e)
{
  return kt_clone_texpr(in->s->c, e, map_var, in);
}

void kp_push_inlined(kp_inliner *in, kt_stmts *out, kt_stmt *stmt)
{
  KJ_ASSERT(stmt);
  if (++in->statement_count > MAX_STATEMENTS)
    kt_fail(in->s->c, stmt->location, KJIT_ERROR_UNSUPPORTED,
            "kernel `%s` is too large: it has more than %d statements after functions that contain "
            "a barrier or warp operation, or return a local array, are inlined",
            in->s->kernel->function->decl->name, MAX_STATEMENTS);
  kp_append_stmt(in->s, out, stmt);
}

static void declare(kp_inliner *in, kt_var *var, kt_stmts *out)
{
  kp_push_inlined(in, out, kp_new_assign(in->s, var, NULL));
}

/* ---- inlining ---- */

static void check_recursion(kp_inliner *in, const kt_expr *call)
{
  const char *name = call->instance->function->decl->name;
  for (const kp_activation *at = in->at; at; at = at->caller)
    if (at->instance == call->instance)
      kt_fail(in->s->c, call->location, KJIT_ERROR_UNSUPPORTED,
              "`%s` is recursive and contains a barrier, a warp operation or a grid_range; a "
              "recursive function cannot contain these",
              name);
  if (in->at->depth >= MAX_DEPTH)
    kt_fail(in->s->c, call->location, KJIT_ERROR_UNSUPPORTED,
            "calls of `%s` are nested more than %d deep", name, MAX_DEPTH);
}

/* Returns whether the only return is the last statement. The result is then assigned once, in the
 * statement list that uses it. */
static bool has_single_return(const kt_instance *instance)
{
  const kt_stmts *body = &instance->body;
  return body->count > 0 && body->items[body->count - 1]->kind == KJ_TS_RETURN;
}

kt_expr *kp_inline_call(kp_inliner *in, kt_expr *call, kt_stmts *out)
{
  KJ_ASSERT(call->args.count == call->instance->params.count &&
            !call->instance->function->is_extern);
  check_recursion(in, call);
  kt_instance *instance = call->instance;
  kp_activation called = { .caller = in->at,
                           .instance = instance,
                           .map = variable_table(in, instance),
                           .depth = in->at->depth + 1 };
  for (size_t i = 0; i < instance->params.count; i++) {
    kt_var *param = copy_var(in, instance->params.items[i], KJ_V_LET);
    called.map[instance->params.items[i]->index] = param;
    kp_push_inlined(in, out, kp_new_assign(in->s, param, call->args.items[i]));
  }
  kt_stmt *once = kt_new_tstmt(in->s->c, KJ_TS_ONCE, call->location);
  if (instance->result != KJIT_VOID) {
    called.result = kp_new_local(in->s, KJ_V_VAR, "result", instance->result, call->location);
    declare(in, called.result, out);
  }
  in->at = &called;
  rewrite_list(in, &instance->body, 0, &once->body, true);
  in->at = called.caller;
  once->is_joint = has_joint_stmt(&once->body);
  if (called.leave_count) kp_push_inlined(in, out, once);
  else kp_append_stmts(in->s, out, &once->body);
  if (!called.result) return NULL;
  if (called.result_count == 1 && !called.leave_count && has_single_return(instance))
    called.result->kind = KJ_V_LET;
  return kp_new_var(in->s, called.result, call->location);
}

/* ---- statements ---- */

static kt_stmt *copy_stmt(kp_inliner *in, const kt_stmt *stmt)
{
  kt_stmt *copy = kt_new_tstmt(in->s->c, stmt->kind, stmt->location);
  *copy = *stmt;
  copy->body = copy->otherwise = (kt_stmts){ 0 };
  copy->indices = copy->extents = (kt_exprs){ 0 };
  copy->vars = (kt_vars){ 0 };
  copy->is_joint = false;
  if (stmt->var) copy->var = map_var(in, stmt->var);
  copy->value = copy_expr(in, stmt->value);
  copy->array = copy_expr(in, stmt->array);
  copy->first = copy_expr(in, stmt->first);
  copy->stop = copy_expr(in, stmt->stop);
  copy->step = copy_expr(in, stmt->step);
  for (size_t i = 0; i < stmt->indices.count; i++)
    KJ_PUSH(arena_of(in), &copy->indices, copy_expr(in, stmt->indices.items[i]));
  for (size_t i = 0; i < stmt->extents.count; i++)
    KJ_PUSH(arena_of(in), &copy->extents, copy_expr(in, stmt->extents.items[i]));
  for (size_t i = 0; i < stmt->vars.count; i++)
    KJ_PUSH(arena_of(in), &copy->vars, map_var(in, stmt->vars.items[i]));
  return copy;
}

static void rewrite_assign(kp_inliner *in, kt_stmt *stmt, kt_stmts *out)
{
  KJ_ASSERT(stmt->kind == KJ_TS_ASSIGN);
  if (kp_is_sync_builtin(stmt->value)) {
    hoist_all(in, stmt->value, out);
    kp_hold_sync_operands(in, stmt->value, stmt->var, out);
    stmt->is_joint = true;
  } else {
    stmt->value = kp_hoist(in, stmt->value, out);
  }
  kp_push_inlined(in, out, stmt);
}

/* STORE, PRINT */
static void rewrite_store(kp_inliner *in, kt_stmt *stmt, kt_stmts *out)
{
  hoist_all_of_stmt(in, stmt, out);
  kp_push_inlined(in, out, stmt);
}

static void rewrite_evaluate(kp_inliner *in, kt_stmt *stmt, kt_stmts *out)
{
  stmt->value = kp_hoist(in, stmt->value, out);
  if (!stmt->value || stmt->value->kind == KJ_T_VAR) return;
  kp_push_inlined(in, out, stmt);
}

static void rewrite_if(kp_inliner *in, const kt_stmt *from, kt_stmt *stmt, kt_stmts *out,
                       bool is_tail)
{
  stmt->value = kp_hoist(in, stmt->value, out);
  rewrite_list(in, &from->body, 0, &stmt->body, is_tail);
  rewrite_list(in, &from->otherwise, 0, &stmt->otherwise, is_tail);
  stmt->is_joint = has_joint_stmt(&stmt->body) || has_joint_stmt(&stmt->otherwise);
  kp_push_inlined(in, out, stmt);
}

/* Rewrites a while statement. If its condition synchronizes, the loop becomes an endless loop that
 * evaluates the condition at its start. */
static void rewrite_while(kp_inliner *in, const kt_stmt *from, kt_stmt *stmt, kt_stmts *out)
{
  KJ_ASSERT(stmt->kind == KJ_TS_WHILE);
  if (kp_has_joint_expr(in, stmt->value)) {
    kt_expr *condition = kp_hoist(in, stmt->value, &stmt->body);
    kt_stmt *leave =
      kt_new_if(in->s->c, kp_new_unary(in->s, KJIT_OP_NOT, condition), stmt->location);
    kp_push_inlined(in, &leave->body, kt_new_tstmt(in->s->c, KJ_TS_BREAK, stmt->location));
    kp_push_inlined(in, &stmt->body, leave);
    stmt->value = kp_new_const(in->s, KJIT_BOOL, 1, stmt->location);
  }
  rewrite_list(in, &from->body, 0, &stmt->body, false);
  stmt->is_joint = has_joint_stmt(&stmt->body);
  kp_push_inlined(in, out, stmt);
}

static void rewrite_for(kp_inliner *in, const kt_stmt *from, kt_stmt *stmt, kt_stmts *out)
{
  KJ_ASSERT(stmt->kind == KJ_TS_FOR);
  hoist_all_of_stmt(in, stmt, out);
  rewrite_list(in, &from->body, 0, &stmt->body, false);
  stmt->is_joint = has_joint_stmt(&stmt->body);
  kp_push_inlined(in, out, stmt);
}

static void rewrite_range(kp_inliner *in, const kt_stmt *from, kt_stmt *stmt, kt_stmts *out)
{
  KJ_ASSERT(kt_flow_of(stmt) == KJ_FLOW_RANGE);
  hoist_all_of_stmt(in, stmt, out);
  rewrite_list(in, &from->body, 0, &stmt->body, false);
  if (has_joint_stmt(&stmt->body))
    kt_fail(in->s->c, stmt->location, KJIT_ERROR_TYPE,
            "the body of a grid_range or block_range must not contain a barrier, a warp operation "
            "or another grid_range or block_range");
  stmt->is_joint = true;
  in->s->has_range = true;
  kp_push_inlined(in, out, stmt);
}

static void rewrite_return(kp_inliner *in, kt_stmt *stmt, kt_stmts *out, bool is_tail)
{
  KJ_ASSERT(stmt->kind == KJ_TS_RETURN);
  kp_activation *at = in->at;
  if (!at->map) {
    kp_push_inlined(in, out, stmt);
    return;
  }
  if (stmt->value) {
    at->result_count++;
    rewrite_assign(in, kp_new_assign(in->s, at->result, stmt->value), out);
  }
  if (is_tail) return;
  at->leave_count++;
  kp_push_inlined(in, out, kt_new_tstmt(in->s->c, KJ_TS_LEAVE, stmt->location));
}

static void rewrite_stmt(kp_inliner *in, const kt_stmt *from, kt_stmts *out, bool is_tail)
{
  kt_stmt *stmt = copy_stmt(in, from);
  switch (KJ_AMONG(from->kind)) {
  case KJ_TS_ASSIGN: rewrite_assign(in, stmt, out); return;
  case KJ_TS_STORE:
  case KJ_TS_PRINT: rewrite_store(in, stmt, out); return;
  case KJ_TS_EVALUATE: rewrite_evaluate(in, stmt, out); return;
  case KJ_TS_IF: rewrite_if(in, from, stmt, out, is_tail); return;
  case KJ_TS_WHILE: rewrite_while(in, from, stmt, out); return;
  case KJ_TS_FOR: rewrite_for(in, from, stmt, out); return;
  case KJ_TS_GRID_FOR:
  case KJ_TS_BLOCK_FOR: rewrite_range(in, from, stmt, out); return;
  case KJ_TS_RETURN: rewrite_return(in, stmt, out, is_tail); return;
  default:
    KJ_ASSERT(from->kind == KJ_TS_BREAK || from->kind == KJ_TS_CONTINUE ||
              from->kind == KJ_TS_FAIL);
    kp_push_inlined(in, out, stmt);
    return;
  }
}

static bool ends_in_return(const kt_stmts *list)
{
  return list->count > 0 && list->items[list->count - 1]->kind == KJ_TS_RETURN;
}

/* Returns whether the statement has the form `if c { ...; return a }` in an inlined body and can
 * get the statements after it as its else part. This is possible only if these statements also end
 * with a return. */
static bool takes_rest(const kp_inliner *in, const kt_stmt *stmt, bool is_tail)
{
  return in->at->map && is_tail && stmt->kind == KJ_TS_IF && !stmt->otherwise.count &&
         ends_in_return(&stmt->body);
}

static void rewrite_if_with_rest(kp_inliner *in, const kt_stmts *from, size_t at, kt_stmts *to)
{
  KJ_ASSERT(at + 1 < from->count && from->items[at]->kind == KJ_TS_IF);
  const kt_stmt *original = from->items[at];
  kt_stmt *stmt = copy_stmt(in, original);
  stmt->value = kp_hoist(in, stmt->value, to);
  rewrite_list(in, &original->body, 0, &stmt->body, true);
  rewrite_list(in, from, at + 1, &stmt->otherwise, true);
  stmt->is_joint = has_joint_stmt(&stmt->body) || has_joint_stmt(&stmt->otherwise);
  kp_push_inlined(in, to, stmt);
}

static void rewrite_list(kp_inliner *in, const kt_stmts *from, size_t first, kt_stmts *to,
                         bool is_tail)
{
  for (size_t i = first; i < from->count; i++) {
    bool is_last = i + 1 == from->count;
    if (!is_last && takes_rest(in, from->items[i], is_tail)) {
      rewrite_if_with_rest(in, from, i, to);
      return;
    }
    rewrite_stmt(in, from->items[i], to, is_tail && is_last);
    /* the following statements are never reached */
    if (from->items[i]->kind == KJ_TS_RETURN) return;
  }
}

void kp_inline_synchronizing(kp_simt *s)
{
  kp_inliner in = { .s = s };
  size_t count = s->c->instances.count;
  in.is_joint = KJ_NEW_ARRAY(s->c->arena, bool, count);
  in.storage = KJ_NEW_ARRAY(s->c->arena, kt_var **, count);
  find_joint_instances(&in);
  kp_activation kernel = { .instance = s->kernel };
  in.at = &kernel;
  kt_stmts body = { 0 };
  rewrite_list(&in, &s->kernel->body, 0, &body, true);
  s->kernel->body = body;
}
