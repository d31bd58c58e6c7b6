/* Inlines synchronizing functions into the kernel and makes every synchronization a statement.
 *
 * Needs: typed instances. Guarantees: the kernel calls no function that holds a barrier, a warp
 * operation or a grid_range; a barrier or warp operation is the whole value of an ASSIGN or
 * EVALUATE, and its operands are constants or variables; conditions, ranges and lazy operands hold
 * none. Evaluation order is kept: what is evaluated before a synchronization and could be changed
 * by other threads meanwhile is put into a variable first.
 *
 * A call becomes: parameters as lets, a variable for the result, and the body in a ONCE, in which
 * `return e` is `result = e; LEAVE`. A final return needs no LEAVE, and `if c { ...; return a }
 * rest` becomes an if with an else, so that most bodies need no ONCE. */
#include "pass/simt.h"

/* Takes synchronizations out of expressions, for inline_sync.c: each becomes a statement, in the
 * order of evaluation. */

bool kj_is_sync_builtin(const kj_texpr *e)
{
  return e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_BARRIER | KJ_WARP));
}
static bool is_joint_call(const kj_inliner *in, const kj_texpr *e)
{
  return e->kind == KJ_T_CALL && in->is_joint[e->instance->id];
}

static bool is_joint_node(void *data, const kj_texpr *e)
{
  return kj_is_sync_builtin(e) || is_joint_call(data, e);
}

bool kj_has_joint_expr(const kj_inliner *in, const kj_texpr *e)
{
  return kj_any_texpr(e, is_joint_node, (void *)in);
}

/* Evaluated later it has the same value: no other thread can change it, nor what runs in between.
 */
static bool is_stable(const kj_texpr *e)
{
  kj_simt_effects effects = { 0 };
  kj_find_effects(e, &effects);
  return !effects.loads && !effects.writes;
}

static kj_texpr *hold(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  kj_tvar *var = kj_new_holder(in->s, KJ_V_LET, "held", e);
  kj_push_inlined(in, out, kj_new_assign(in->s, var, e));
  return kj_new_var(in->s, var, e->location);
}

/* Operands in order of evaluation; places of none (NULL) are left out. */
typedef KJ_LIST(kj_texpr **) operand_list;

static void add_operand(kj_inliner *in, operand_list *list, kj_texpr **operand)
{
  if (*operand) KJ_PUSH(in->s->c->arena, list, operand);
}

/* Those before the last one that synchronizes are evaluated before it. */
static void hoist_operands(kj_inliner *in, operand_list *list, kj_tstmts *out)
{
  size_t last = list->count;
  while (last > 0 && !kj_has_joint_expr(in, *list->items[last - 1])) last--;
  for (size_t i = 0; i < last; i++) {
    kj_texpr **operand = list->items[i];
    *operand = kj_hoist(in, *operand, out);
    if (i + 1 < last && !is_stable(*operand)) *operand = hold(in, *operand, out);
  }
}

/* Out of all operands of an expression. */
static void hoist_all(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  operand_list list = { 0 };
  for (size_t i = 0; i < kj_operand_count(e); i++) add_operand(in, &list, kj_operand_place(e, i));
  hoist_operands(in, &list, out);
}

static void hoist_all_of_stmt(kj_inliner *in, kj_tstmt *stmt, kj_tstmts *out)
{
  operand_list list = { 0 };
  for (size_t i = 0; i < kj_stmt_operand_count(stmt); i++)
    add_operand(in, &list, kj_stmt_operand_place(stmt, i));
  hoist_operands(in, &list, out);
}

/* x and y, x or y: y is evaluated under an if. */
static kj_texpr *hoist_logic(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  e->x = kj_hoist(in, e->x, out);
  if (!kj_has_joint_expr(in, e->y)) return e;
  kj_tvar *var = kj_new_local(in->s, KJ_V_VAR, "logic", KJIT_BOOL, e->location);
  kj_push_inlined(in, out, kj_new_assign(in->s, var, e->x));
  kj_texpr *condition = kj_new_var(in->s, var, e->location);
  if (e->op == KJIT_OR) condition = kj_new_unary(in->s, KJIT_NOT, condition);
  kj_tstmt *stmt = kj_new_if(in->s, condition, e->location);
  stmt->is_joint = true;
  kj_texpr *value = kj_hoist(in, e->y, &stmt->body);
  kj_push_inlined(in, &stmt->body, kj_new_assign(in->s, var, value));
  kj_push_inlined(in, out, stmt);
  return kj_new_var(in->s, var, e->location);
}

static kj_texpr *hoist_cond(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  e->x = kj_hoist(in, e->x, out);
  if (!kj_has_joint_expr(in, e->y) && !kj_has_joint_expr(in, e->z)) return e;
  kj_tvar *var = kj_new_holder(in->s, KJ_V_VAR, "chosen", e);
  kj_push_inlined(in, out, kj_new_assign(in->s, var, NULL)); /* declared */
  kj_tstmt *stmt = kj_new_if(in->s, e->x, e->location);
  stmt->is_joint = true;
  kj_texpr *y = kj_hoist(in, e->y, &stmt->body);
  kj_push_inlined(in, &stmt->body, kj_new_assign(in->s, var, y));
  kj_texpr *z = kj_hoist(in, e->z, &stmt->otherwise);
  kj_push_inlined(in, &stmt->otherwise, kj_new_assign(in->s, var, z));
  kj_push_inlined(in, out, stmt);
  return kj_new_var(in->s, var, e->location);
}

void kj_hold_sync_operands(kj_inliner *in, kj_texpr *e, const kj_tvar *result, kj_tstmts *out)
{
  for (size_t i = 0; i < e->args.count; i++) {
    kj_texpr *arg = e->args.items[i];
    bool is_plain = arg->kind == KJ_T_CONST ||
                    (arg->kind == KJ_T_VAR && arg->var->kind == KJ_V_VAR && arg->var != result);
    if (!is_plain) e->args.items[i] = hold(in, arg, out);
  }
}

kj_texpr *kj_hoist(kj_inliner *in, kj_texpr *e, kj_tstmts *out)
{
  if (!kj_has_joint_expr(in, e)) return e;
  if (e->kind == KJ_T_LOGIC) return hoist_logic(in, e, out);
  if (e->kind == KJ_T_COND) return hoist_cond(in, e, out);
  hoist_all(in, e, out);
  if (is_joint_call(in, e)) return kj_inline_call(in, e, out);
  if (!kj_is_sync_builtin(e)) return e;
  kj_hold_sync_operands(in, e, NULL, out);
  kj_tstmt *stmt;
  kj_tvar *var = NULL;
  if (e->type == KJIT_VOID) {
    stmt = kj_new_tstmt(in->s->c, KJ_TS_EVALUATE, e->location);
    stmt->value = e;
  } else {
    var = kj_new_local(in->s, KJ_V_LET, e->builtin->name, e->type, e->location);
    stmt = kj_new_assign(in->s, var, e);
  }
  stmt->is_joint = true;
  kj_push_inlined(in, out, stmt);
  return var ? kj_new_var(in->s, var, e->location) : NULL;
}

/* Inlined calls multiply; a bound on the statements made keeps compile time and memory in hand. */
enum { MAX_STATEMENTS = 100000, MAX_DEPTH = 200 };

typedef struct kj_activation kj_activation;

/* The kernel, or one inlined call. */
struct kj_activation {
  kj_activation *caller;
  const kj_instance *instance;
  kj_tvar **map; /* by variable index: the kernel's variable; the kernel itself has none */
  kj_tvar *result;
  uint32_t result_count, leave_count;
  uint32_t depth;
};

static void rewrite_list(kj_inliner *in, const kj_tstmts *from, size_t first, kj_tstmts *to,
                         bool is_tail);

static kj_arena *arena_of(kj_inliner *in) { return in->s->c->arena; }

/* ---- which instances synchronize ---- */

typedef struct scan {
  kj_inliner *in;
  bool is_joint;
} scan;

static void scan_expr(void *data, kj_texpr **expr)
{
  scan *found = data;
  const kj_texpr *e = *expr;
  if (e->kind == KJ_T_BUILTIN && (e->builtin->flags & (KJ_BARRIER | KJ_WARP)))
    found->is_joint = true;
  if (e->kind == KJ_T_CALL && found->in->is_joint[e->instance->id]) found->is_joint = true;
}

static void scan_stmt(void *data, kj_tstmt *stmt)
{
  scan *found = data;
  if (kj_flow_of(stmt) == KJ_FLOW_RANGE) found->is_joint = true;
}

static void find_joint_instances(kj_inliner *in)
{
  kj_compilation *c = in->s->c;
  bool has_changed = true;
  while (has_changed) { /* more than one round only under recursion */
    has_changed = false;
    for (size_t i = 0; i < c->instances.count; i++) {
      scan found = { .in = in };
      kj_walk_tstmts(&c->instances.items[i]->body, scan_stmt, scan_expr, &found);
      has_changed |= found.is_joint && !in->is_joint[i];
      in->is_joint[i] |= found.is_joint;
    }
  }
}

/* ---- variables ---- */

static kj_tvar *copy_var(kj_inliner *in, const kj_tvar *var, kj_tvar_kind kind)
{
  kj_tvar *copy = kj_new_local(in->s, kind, var->name, var->type, var->location);
  copy->alignment = var->alignment;
  copy->data = var->data;
  copy->range = var->range;
  copy->is_narrow = var->is_narrow;
  return copy;
}

static kj_tvar **variable_table(kj_inliner *in, const kj_instance *instance)
{
  return KJ_NEW_ARRAY(arena_of(in), kj_tvar *, instance->params.count + instance->locals.count + 1);
}

static kj_tvar *map_var(void *data, kj_tvar *var)
{
  kj_inliner *in = data;
  kj_activation *at = in->at;
  if (!at->map) return var;
  kj_tvar **slot = &at->map[var->index];
  if (*slot) return *slot;
  if (var->kind == KJ_V_SHARED || var->kind == KJ_V_CONST) {
    kj_tvar ***storage = &in->storage[at->instance->id];
    if (!*storage) *storage = variable_table(in, at->instance);
    kj_tvar **shared = &(*storage)[var->index];
    if (!*shared) *shared = copy_var(in, var, var->kind);
    return *slot = *shared;
  }
  return *slot = copy_var(in, var, var->kind == KJ_V_PARAM ? KJ_V_LET : var->kind);
}

static kj_texpr *copy_expr(kj_inliner *in, const kj_texpr *e)
{
  return kj_clone_texpr(in->s->c, e, map_var, in);
}

void kj_push_inlined(kj_inliner *in, kj_tstmts *out, kj_tstmt *stmt)
{
  if (++in->statement_count > MAX_STATEMENTS)
    kj_fail(in->s->c, stmt->location, KJIT_ERROR_UNSUPPORTED,
            "kernel `%s` is too large: functions that hold a barrier or warp operation are "
            "inlined, to more than %d statements",
            in->s->kernel->function->decl->name, MAX_STATEMENTS);
  kj_append_stmt(in->s, out, stmt);
}

static void declare(kj_inliner *in, kj_tvar *var, kj_tstmts *out)
{
  kj_push_inlined(in, out, kj_new_assign(in->s, var, NULL));
}

/* ---- inlining ---- */

static bool has_joint_stmt(const kj_tstmts *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i]->is_joint) return true;
  return false;
}

static void check_recursion(kj_inliner *in, const kj_texpr *call)
{
  const char *name = call->instance->function->decl->name;
  for (const kj_activation *at = in->at; at; at = at->caller)
    if (at->instance == call->instance)
      kj_fail(in->s->c, call->location, KJIT_ERROR_UNSUPPORTED,
              "`%s` calls itself and holds a barrier, a warp operation or a grid_range: that "
              "cannot be compiled",
              name);
  if (in->at->depth >= MAX_DEPTH)
    kj_fail(in->s->c, call->location, KJIT_ERROR_UNSUPPORTED,
            "calls of `%s` are nested more than %d deep", name, MAX_DEPTH);
}

/* The only return is the last statement: the result is assigned once, in the same list as its uses.
 */
static bool has_single_return(const kj_instance *instance)
{
  const kj_tstmts *body = &instance->body;
  return body->count > 0 && body->items[body->count - 1]->kind == KJ_TS_RETURN;
}

kj_texpr *kj_inline_call(kj_inliner *in, kj_texpr *call, kj_tstmts *out)
{
  check_recursion(in, call);
  kj_instance *instance = call->instance;
  kj_activation called = { .caller = in->at,
                           .instance = instance,
                           .map = variable_table(in, instance),
                           .depth = in->at->depth + 1 };
  for (size_t i = 0; i < instance->params.count; i++) {
    kj_tvar *param = copy_var(in, instance->params.items[i], KJ_V_LET);
    called.map[instance->params.items[i]->index] = param;
    kj_push_inlined(in, out, kj_new_assign(in->s, param, call->args.items[i]));
  }
  kj_tstmt *once = kj_new_tstmt(in->s->c, KJ_TS_ONCE, call->location);
  if (instance->result != KJIT_VOID) {
    called.result = kj_new_local(in->s, KJ_V_VAR, "result", instance->result, call->location);
    declare(in, called.result, out);
  }
  in->at = &called;
  rewrite_list(in, &instance->body, 0, &once->body, true);
  in->at = called.caller;
  once->is_joint = has_joint_stmt(&once->body);
  if (called.leave_count) kj_push_inlined(in, out, once);
  else kj_append_stmts(in->s, out, &once->body);
  if (!called.result) return NULL;
  if (called.result_count == 1 && !called.leave_count && has_single_return(instance))
    called.result->kind = KJ_V_LET;
  return kj_new_var(in->s, called.result, call->location);
}

/* ---- statements ---- */

static kj_tstmt *copy_stmt(kj_inliner *in, const kj_tstmt *stmt)
{
  kj_tstmt *copy = kj_new_tstmt(in->s->c, stmt->kind, stmt->location);
  *copy = *stmt;
  copy->body = copy->otherwise = (kj_tstmts){ 0 };
  copy->indices = copy->extents = (kj_texprs){ 0 };
  copy->vars = (kj_tvars){ 0 };
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

static void rewrite_assign(kj_inliner *in, kj_tstmt *stmt, kj_tstmts *out)
{
  if (kj_is_sync_builtin(stmt->value)) {
    hoist_all(in, stmt->value, out);
    kj_hold_sync_operands(in, stmt->value, stmt->var, out);
    stmt->is_joint = true;
  } else {
    stmt->value = kj_hoist(in, stmt->value, out);
  }
  kj_push_inlined(in, out, stmt);
}

/* STORE, PRINT */
static void rewrite_store(kj_inliner *in, kj_tstmt *stmt, kj_tstmts *out)
{
  hoist_all_of_stmt(in, stmt, out);
  kj_push_inlined(in, out, stmt);
}

static void rewrite_evaluate(kj_inliner *in, kj_tstmt *stmt, kj_tstmts *out)
{
  stmt->value = kj_hoist(in, stmt->value, out);
  if (!stmt->value || stmt->value->kind == KJ_T_VAR) return;
  kj_push_inlined(in, out, stmt);
}

static void rewrite_if(kj_inliner *in, const kj_tstmt *from, kj_tstmt *stmt, kj_tstmts *out,
                       bool is_tail)
{
  stmt->value = kj_hoist(in, stmt->value, out);
  rewrite_list(in, &from->body, 0, &stmt->body, is_tail);
  rewrite_list(in, &from->otherwise, 0, &stmt->otherwise, is_tail);
  stmt->is_joint = has_joint_stmt(&stmt->body) || has_joint_stmt(&stmt->otherwise);
  kj_push_inlined(in, out, stmt);
}

/* A condition that synchronizes is evaluated at the top of an endless loop. */
static void rewrite_while(kj_inliner *in, const kj_tstmt *from, kj_tstmt *stmt, kj_tstmts *out)
{
  if (kj_has_joint_expr(in, stmt->value)) {
    kj_texpr *condition = kj_hoist(in, stmt->value, &stmt->body);
    kj_tstmt *leave = kj_new_if(in->s, kj_new_unary(in->s, KJIT_NOT, condition), stmt->location);
    kj_push_inlined(in, &leave->body, kj_new_tstmt(in->s->c, KJ_TS_BREAK, stmt->location));
    kj_push_inlined(in, &stmt->body, leave);
    stmt->value = kj_new_const(in->s, KJIT_BOOL, 1, stmt->location);
  }
  rewrite_list(in, &from->body, 0, &stmt->body, false);
  stmt->is_joint = has_joint_stmt(&stmt->body);
  kj_push_inlined(in, out, stmt);
}

static void rewrite_for(kj_inliner *in, const kj_tstmt *from, kj_tstmt *stmt, kj_tstmts *out)
{
  hoist_all_of_stmt(in, stmt, out);
  rewrite_list(in, &from->body, 0, &stmt->body, false);
  stmt->is_joint = has_joint_stmt(&stmt->body);
  kj_push_inlined(in, out, stmt);
}

static void rewrite_range(kj_inliner *in, const kj_tstmt *from, kj_tstmt *stmt, kj_tstmts *out)
{
  hoist_all_of_stmt(in, stmt, out);
  rewrite_list(in, &from->body, 0, &stmt->body, false);
  if (has_joint_stmt(&stmt->body))
    kj_fail(in->s->c, stmt->location, KJIT_ERROR_TYPE,
            "the body of a grid_range or block_range must not hold a barrier, a warp operation or "
            "another such range");
  stmt->is_joint = true;
  in->s->has_range = true;
  kj_push_inlined(in, out, stmt);
}

static void rewrite_return(kj_inliner *in, kj_tstmt *stmt, kj_tstmts *out, bool is_tail)
{
  kj_activation *at = in->at;
  if (!at->map) {
    kj_push_inlined(in, out, stmt);
    return;
  }
  if (stmt->value) {
    at->result_count++;
    rewrite_assign(in, kj_new_assign(in->s, at->result, stmt->value), out);
  }
  if (is_tail) return;
  at->leave_count++;
  kj_push_inlined(in, out, kj_new_tstmt(in->s->c, KJ_TS_LEAVE, stmt->location));
}

static void rewrite_stmt(kj_inliner *in, const kj_tstmt *from, kj_tstmts *out, bool is_tail)
{
  kj_tstmt *stmt = copy_stmt(in, from);
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
  default: kj_push_inlined(in, out, stmt); return;
  }
}

static bool ends_in_return(const kj_tstmts *list)
{
  return list->count > 0 && list->items[list->count - 1]->kind == KJ_TS_RETURN;
}

/* `if c { ...; return a } rest` in an inlined body, where falling off the end of rest returns too.
 */
static bool takes_rest(const kj_inliner *in, const kj_tstmt *stmt, bool is_tail)
{
  return in->at->map && is_tail && stmt->kind == KJ_TS_IF && !stmt->otherwise.count &&
         ends_in_return(&stmt->body);
}

static void rewrite_if_with_rest(kj_inliner *in, const kj_tstmts *from, size_t at, kj_tstmts *to)
{
  const kj_tstmt *original = from->items[at];
  kj_tstmt *stmt = copy_stmt(in, original);
  stmt->value = kj_hoist(in, stmt->value, to);
  rewrite_list(in, &original->body, 0, &stmt->body, true);
  rewrite_list(in, from, at + 1, &stmt->otherwise, true);
  stmt->is_joint = has_joint_stmt(&stmt->body) || has_joint_stmt(&stmt->otherwise);
  kj_push_inlined(in, to, stmt);
}

static void rewrite_list(kj_inliner *in, const kj_tstmts *from, size_t first, kj_tstmts *to,
                         bool is_tail)
{
  for (size_t i = first; i < from->count; i++) {
    bool is_last = i + 1 == from->count;
    if (!is_last && takes_rest(in, from->items[i], is_tail)) {
      rewrite_if_with_rest(in, from, i, to);
      return;
    }
    rewrite_stmt(in, from->items[i], to, is_tail && is_last);
    if (from->items[i]->kind == KJ_TS_RETURN) return; /* what follows is never reached */
  }
}

void kj_inline_synchronizing(kj_simt *s)
{
  kj_inliner in = { .s = s };
  size_t count = s->c->instances.count;
  in.is_joint = KJ_NEW_ARRAY(s->c->arena, bool, count);
  in.storage = KJ_NEW_ARRAY(s->c->arena, kj_tvar **, count);
  find_joint_instances(&in);
  kj_activation kernel = { .instance = s->kernel };
  in.at = &kernel;
  kj_tstmts body = { 0 };
  rewrite_list(&in, &s->kernel->body, 0, &body, true);
  s->kernel->body = body;
}
