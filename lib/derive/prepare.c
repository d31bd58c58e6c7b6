/* Prepares a func's body for differentiation: copies the body into the new instance, inlines the
 * called funcs, and removes jumps.
 *
 * Guarantees about the prepared body: Every array value is a parameter, a thread-local array, or a
 * view or member of such an array. A view's indices are evaluated where the view is created. There
 * is no RETURN or CONTINUE, and a BREAK occurs only in an IF at the end of a loop. The only calls
 * are calls of extern funcs, of funcs with custom rules, and of recursive funcs. */
#include "derive/derive.h"

#include <string.h>

typedef struct loop_flags loop_flags;
struct loop_flags {
  loop_flags *outer;
  kt_var *is_left;    /* flag: the loop has been left */
  kt_var *is_skipped; /* flag: the rest of the iteration is skipped */
};

typedef struct frame frame;
struct frame {
  frame *outer;
  const kt_instance *instance;
  kt_var **vars; /* indexed by variable of the instance */
  /* indexed by variable of the instance: the expression that replaces an array variable */
  kt_expr **arrays;
  kt_var *result;
  kt_expr *array_result;
  kt_var *has_returned;
  loop_flags *loops;
};

typedef struct preparer {
  kd_derivation *d;
  frame *frame;
} preparer;

static kt_expr *copy_expr(preparer *p, const kt_expr *e);
static void copy_block(preparer *p, const kt_stmts *stmts, size_t first);

/* ---- jumps ---- */

static bool is_return(void *data, const kt_stmt *stmt)
{
  (void)data;
  return stmt->kind == KJ_TS_RETURN;
}

/* Returns whether the statement may leave the iteration or the function that contains it. */
static bool may_leave(const kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_BREAK || stmt->kind == KJ_TS_CONTINUE) return true;
  if (stmt->kind != KJ_TS_IF) return kt_any_in_tstmt(stmt, is_return, NULL, NULL);
  for (size_t i = 0; i < stmt->body.count; i++)
    if (may_leave(stmt->body.items[i])) return true;
  for (size_t i = 0; i < stmt->otherwise.count; i++)
    if (may_leave(stmt->otherwise.items[i])) return true;
  return false;
}

static bool may_leave_any(const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++)
    if (may_leave(stmts->items[i])) return true;
  return false;
}

static bool always_leaves(const kt_stmts *stmts)
{
  for (size_t i = 0; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    if (stmt->kind == KJ_TS_BREAK || stmt->kind == KJ_TS_CONTINUE || stmt->kind == KJ_TS_RETURN)
      return true;
    if (stmt->kind == KJ_TS_IF && always_leaves(&stmt->body) && always_leaves(&stmt->otherwise))
      return true;
  }
  return false;
}

static kt_expr *bool_of(preparer *p, bool value)
{
  return kt_new_integer(p->d->s, KJIT_BOOL, value, p->d->location);
}

static void set_flag(preparer *p, kt_var *flag, bool value)
{
  if (flag) kd_assign(p->d, flag, bool_of(p, value));
}

/* ---- arrays ---- */

/* Stores the indices in an array expression in variables, so that later assignments do not change
 * the expression. */
static kt_expr *freeze_array(preparer *p, kt_expr *array)
{
  kd_derivation *d = p->d;
  bool has_root = array->kind == KJ_T_VAR || array->kind == KJ_T_VIEW || array->kind == KJ_T_MEMBER;
  for (size_t i = 0; i < kt_operand_count(array); i++) {
    kt_expr **operand = kt_operand_place(array, i);
    if (!*operand || array->kind == KJ_T_VAR) continue;
    if (has_root && *operand == array->x) {
      freeze_array(p, *operand);
      continue;
    }
    if ((*operand)->kind == KJ_T_CONST || kt_is_array(d->c, (*operand)->type)) continue;
    kt_var *kept = kd_new_var(d, "_at", (*operand)->type, (*operand)->location);
    kd_assign(d, kept, *operand);
    *operand = kd_read(d, kept);
  }
  return array;
}

static void bind_array(preparer *p, const kt_var *var, kt_expr *array)
{
  if (p->frame->arrays[var->index])
    kd_refuse(p->d, array->location,
              "the array variable `%s` is assigned more than once; use one variable for each array",
              var->name);
  p->frame->arrays[var->index] = freeze_array(p, array);
}

/* ---- variables ---- */

static kt_var *map_var(preparer *p, const kt_var *var)
{
  kt_var **made = &p->frame->vars[var->index];
  if (*made) return *made;
  kt_tvar_kind kind = var->kind == KJ_V_LET || var->kind == KJ_V_PARAM ? KJ_V_VAR : var->kind;
  *made = kt_add_variable(p->d->s, kind, var->name, var->type, var->location, KJ_LEVEL_THREAD);
  (*made)->alignment = var->alignment;
  (*made)->sized_by = var->sized_by;
  (*made)->data = var->data;
  (*made)->start_alignment = var->start_alignment;
  return *made;
}

static kt_expr *copy_var(preparer *p, const kt_expr *e)
{
  kt_expr *array = p->frame->arrays[e->var->index];
  if (array) return kd_copy(p->d, array);
  kt_expr *copy = KJ_NEW(p->d->arena, kt_expr);
  *copy = *e;
  copy->var = map_var(p, e->var);
  return copy;
}

/* ---- calls ---- */

static bool is_on_stack(const preparer *p, const kt_instance *instance)
{
  for (const frame *at = p->frame; at; at = at->outer)
    if (at->instance == instance) return true;
  return false;
}

static bool stays_call(const preparer *p, const kt_instance *callee)
{
  const kt_inferred *record = p->d->s->inference->records.items[callee->id];
  bool has_rule = !record->derived_of && kd_has_rule(callee->function);
  return callee->function->is_extern || !callee->is_inferred || is_on_stack(p, callee) || has_rule;
}

static frame new_frame(preparer *p, const kt_instance *instance)
{
  size_t count = instance->params.count + instance->locals.count + 1;
  frame made = { .outer = p->frame, .instance = instance };
  made.vars = KJ_NEW_ARRAY(p->d->arena, kt_var *, count);
  made.arrays = KJ_NEW_ARRAY(p->d->arena, kt_expr *, count);
  return made;
}

/* Copies the body of p->frame. The frame's parameters must be bound. */
static void copy_body(preparer *p)
{
  const kt_instance *instance = p->frame->instance;
  kd_derivation *d = p->d;
  d->record->instance->modes.is_strict |= instance->modes.is_strict;
  bool is_array = instance->result != KJIT_VOID && kt_holds_array(d->c, instance->result);
  if (instance->result != KJIT_VOID && !is_array)
    p->frame->result = kd_new_var(d, "_result", instance->result, d->location);
  const kt_stmts *body = &instance->body;
  size_t last = body->count ? body->count - 1 : 0;
  bool ends_in_return = body->count && body->items[last]->kind == KJ_TS_RETURN &&
                        !may_leave_any(&(kt_stmts){ .items = body->items, .count = last });
  if (!ends_in_return && may_leave_any(body)) {
    p->frame->has_returned = kd_new_var(d, "_has_returned", KJIT_BOOL, d->location);
    set_flag(p, p->frame->has_returned, false);
  }
  copy_block(p, body, 0);
}

static kt_expr *inline_call(preparer *p, const kt_expr *call, const kt_exprs *arguments)
{
  const kt_instance *callee = call->instance;
  frame made = new_frame(p, callee);
  frame *outer = p->frame;
  p->frame = &made;
  for (size_t i = 0; i < callee->params.count; i++) {
    const kt_var *param = callee->params.items[i];
    kt_expr *argument = arguments->items[i];
    if (kt_is_array(p->d->c, param->type)) bind_array(p, param, argument);
    else kd_assign(p->d, map_var(p, param), argument);
  }
  copy_body(p);
  p->frame = outer;
  return made.result ? kd_read(p->d, made.result) : made.array_result;
}

static kt_expr *copy_call(preparer *p, const kt_expr *call)
{
  kd_derivation *d = p->d;
  kt_exprs arguments = { 0 };
  for (size_t i = 0; i < call->args.count; i++)
    KJ_PUSH(d->arena, &arguments, copy_expr(p, call->args.items[i]));
  if (!stays_call(p, call->instance)) return inline_call(p, call, &arguments);
  kt_expr *copy = KJ_NEW(d->arena, kt_expr);
  *copy = *call;
  copy->args = arguments;
  KJ_PUSH(d->arena, &d->record->callees, d->s->inference->records.items[call->instance->id]);
  return copy;
}

/* ---- expressions ---- */

static bool is_call(void *data, const kt_expr *e)
{
  (void)data;
  return e->kind == KJ_T_CALL;
}

/* Replaces `x ? y : z`, `x and y` or `x or y` by an `if`, because a call in an operand must run
 * only if the operand is needed. */
static kt_expr *branch_expr(preparer *p, const kt_expr *e)
{
  kd_derivation *d = p->d;
  kt_var *value = kd_new_var(d, "_value", e->type, e->location);
  kt_stmt *branch = kt_new_if(d->c, copy_expr(p, e->x), e->location);
  kt_stmts *outer = d->s->out;
  bool is_cond = e->kind == KJ_T_COND, is_or = !is_cond && e->op == KJIT_OP_OR;
  KJ_ASSERT(!kt_is_array(d->c, e->type));
  d->s->out = &branch->body;
  kd_assign(d, value, is_or ? bool_of(p, true) : copy_expr(p, e->y));
  d->s->out = &branch->otherwise;
  kd_assign(d, value,
            is_cond ? copy_expr(p, e->z)
            : is_or ? copy_expr(p, e->y)
                    : bool_of(p, false));
  d->s->out = outer;
  kt_emit(d->s, branch);
  return kd_read(d, value);
}

static void copy_list(preparer *p, kt_exprs *to, const kt_exprs *from)
{
  *to = (kt_exprs){ 0 };
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(p->d->arena, to, copy_expr(p, from->items[i]));
}

static kt_expr *copy_expr(preparer *p, const kt_expr *e)
{
  if (!e) return NULL;
  if (e->kind == KJ_T_VAR) return copy_var(p, e);
  if (e->kind == KJ_T_CALL) return copy_call(p, e);
  bool is_lazy = e->kind == KJ_T_COND || e->kind == KJ_T_LOGIC;
  if (is_lazy && (kt_any_texpr(e->y, is_call, NULL) || kt_any_texpr(e->z, is_call, NULL)))
    return branch_expr(p, e);
  kt_expr *copy = KJ_NEW(p->d->arena, kt_expr);
  *copy = *e;
  copy->x = copy_expr(p, e->x);
  copy->y = copy_expr(p, e->y);
  copy->z = copy_expr(p, e->z);
  copy_list(p, &copy->indices, &e->indices);
  copy_list(p, &copy->args, &e->args);
  return e->is_guard ? kd_open_guard(p->d, copy) : copy;
}

/* ---- statements ---- */

static kt_stmt *copy_head(preparer *p, const kt_stmt *stmt)
{
  kt_stmt *copy = KJ_NEW(p->d->arena, kt_stmt);
  *copy = *stmt;
  copy->body = copy->otherwise = (kt_stmts){ 0 };
  return copy;
}

static void copy_assign(preparer *p, const kt_stmt *stmt)
{
  kt_expr *value = copy_expr(p, stmt->value);
  if (kt_is_array(p->d->c, stmt->var->type)) {
    bind_array(p, stmt->var, value);
    return;
  }
  kt_stmt *copy = copy_head(p, stmt);
  copy->value = value;
  copy->var = map_var(p, stmt->var);
  kt_emit(p->d->s, copy);
}

static void copy_operands(preparer *p, const kt_stmt *stmt)
{
  kt_stmt *copy = copy_head(p, stmt);
  copy->value = copy_expr(p, stmt->value);
  copy->array = copy_expr(p, stmt->array);
  copy_list(p, &copy->indices, &stmt->indices);
  if (copy->kind == KJ_TS_EVALUATE && (!copy->value || !kt_has_effect(copy->value))) return;
  kt_emit(p->d->s, copy);
}

static void copy_into(preparer *p, kt_stmts *out, const kt_stmts *stmts, size_t first)
{
  kt_stmts *outer = p->d->s->out;
  p->d->s->out = out;
  copy_block(p, stmts, first);
  p->d->s->out = outer;
}

static void copy_jump(preparer *p, const kt_stmt *stmt)
{
  frame *f = p->frame;
  if (stmt->kind == KJ_TS_RETURN) {
    kt_expr *value = copy_expr(p, stmt->value);
    if (value && f->result) kd_assign(p->d, f->result, value);
    else if (value && f->array_result)
      kd_refuse(p->d, stmt->location,
                "a function that returns one of several arrays is not supported");
    else if (value) f->array_result = freeze_array(p, value);
    set_flag(p, f->has_returned, true);
  }
  for (loop_flags *at = f->loops; at; at = at->outer) {
    set_flag(p, at->is_skipped, true);
    if (stmt->kind != KJ_TS_CONTINUE) set_flag(p, at->is_left, true);
    if (stmt->kind != KJ_TS_RETURN) break;
  }
}

/* ---- loops ---- */

typedef struct jumps {
  bool leaves, skips;
} jumps;

/* Finds the jumps in the body that belong to this loop and not to an inner loop. */
static void find_jumps(const kt_stmts *body, bool is_own, jumps *found)
{
  for (size_t i = 0; i < body->count; i++) {
    const kt_stmt *stmt = body->items[i];
    bool is_break = is_own && stmt->kind == KJ_TS_BREAK, returns = stmt->kind == KJ_TS_RETURN,
         is_continue = is_own && stmt->kind == KJ_TS_CONTINUE;
    found->leaves |= is_break || returns;
    found->skips |= is_break || is_continue || returns;
    bool is_inner = kt_flow_of(stmt) == KJ_FLOW_LOOP || kt_flow_of(stmt) == KJ_FLOW_RANGE;
    find_jumps(&stmt->body, is_own && !is_inner, found);
    find_jumps(&stmt->otherwise, is_own && !is_inner, found);
  }
}

static void emit_last_break(preparer *p, const kt_var *is_left)
{
  kt_stmt *leave = kt_new_if(p->d->c, kd_read(p->d, (kt_var *)is_left), p->d->location);
  KJ_PUSH(p->d->arena, &leave->body, kt_new_tstmt(p->d->c, KJ_TS_BREAK, p->d->location));
  kt_emit(p->d->s, leave);
}

/* Emits the condition of a `while` loop if it needs statements. These statements run before the
 * loop and at the end of each iteration. */
static void emit_condition(preparer *p, const kt_stmt *stmt, kt_var *condition,
                           const kt_var *is_left)
{
  kt_stmts *outer = p->d->s->out;
  kt_stmt *unless = NULL;
  if (is_left) {
    kt_expr *goes_on =
      kt_make_own_unary(p->d->s, KJIT_OP_NOT, kd_read(p->d, (kt_var *)is_left), stmt->location);
    unless = kt_new_if(p->d->c, goes_on, stmt->location);
    kt_emit(p->d->s, unless);
    p->d->s->out = &unless->body;
  }
  kd_assign(p->d, condition, copy_expr(p, stmt->value));
  p->d->s->out = outer;
}

static void copy_loop(preparer *p, const kt_stmt *stmt)
{
  kd_derivation *d = p->d;
  jumps found = { 0 };
  find_jumps(&stmt->body, true, &found);
  loop_flags flags = { .outer = p->frame->loops };
  if (found.skips) flags.is_skipped = kd_new_var(d, "_is_skipped", KJIT_BOOL, stmt->location);
  if (found.leaves) flags.is_left = kd_new_var(d, "_is_left", KJIT_BOOL, stmt->location);
  set_flag(p, flags.is_left, false);
  kt_stmt *copy = copy_head(p, stmt);
  bool asks_first = stmt->kind == KJ_TS_WHILE && kt_any_texpr(stmt->value, is_call, NULL);
  kt_var *condition = asks_first ? kd_new_var(d, "_goes_on", KJIT_BOOL, stmt->location) : NULL;
  if (asks_first) {
    emit_condition(p, stmt, condition, NULL);
    copy->value = kd_read(d, condition);
  } else {
    copy->value = copy_expr(p, stmt->value);
  }
  copy->first = copy_expr(p, stmt->first);
  copy->stop = copy_expr(p, stmt->stop);
  copy->step = copy_expr(p, stmt->step);
  copy_list(p, &copy->extents, &stmt->extents);
  if (stmt->var) copy->var = map_var(p, stmt->var);
  copy->vars = (kt_vars){ 0 };
  for (size_t i = 0; i < stmt->vars.count; i++)
    KJ_PUSH(d->arena, &copy->vars, map_var(p, stmt->vars.items[i]));
  kt_stmts *outer = d->s->out;
  p->frame->loops = &flags;
  d->s->out = &copy->body;
  set_flag(p, flags.is_skipped, false);
  copy_block(p, &stmt->body, 0);
  if (asks_first) emit_condition(p, stmt, condition, flags.is_left);
  if (flags.is_left) emit_last_break(p, flags.is_left);
  d->s->out = outer;
  p->frame->loops = flags.outer;
  kt_emit(d->s, copy);
}

/* ---- blocks ---- */

/* Copies the rest of a block under a condition. The preceding statement may have left the block. */
static void copy_guarded(preparer *p, const kt_stmts *stmts, size_t first)
{
  if (first == stmts->count) return;
  kt_var *flag = p->frame->loops ? p->frame->loops->is_skipped : p->frame->has_returned;
  KJ_ASSERT(flag);
  kt_expr *goes_on =
    kt_make_own_unary(p->d->s, KJIT_OP_NOT, kd_read(p->d, flag), stmts->items[first]->location);
  kt_stmt *rest = kt_new_if(p->d->c, goes_on, stmts->items[first]->location);
  kt_emit(p->d->s, rest);
  copy_into(p, &rest->body, stmts, first);
}

/* Copies an `if`. If one branch always leaves the block, the statements after the `if` are copied
 * into the other branch. Returns whether the rest of the block has been copied. */
static bool copy_if(preparer *p, const kt_stmts *stmts, size_t at)
{
  const kt_stmt *stmt = stmts->items[at];
  kt_stmt *copy = copy_head(p, stmt);
  copy->value = copy_expr(p, stmt->value);
  kt_emit(p->d->s, copy);
  copy_into(p, &copy->body, &stmt->body, 0);
  copy_into(p, &copy->otherwise, &stmt->otherwise, 0);
  if (!may_leave(stmt)) return false;
  bool first = always_leaves(&stmt->body), second = always_leaves(&stmt->otherwise);
  if (first && second) return true;
  if (first && !may_leave_any(&stmt->otherwise)) copy_into(p, &copy->otherwise, stmts, at + 1);
  else if (second && !may_leave_any(&stmt->body)) copy_into(p, &copy->body, stmts, at + 1);
  else copy_guarded(p, stmts, at + 1);
  return true;
}

static void copy_block(preparer *p, const kt_stmts *stmts, size_t first)
{
  for (size_t i = first; i < stmts->count; i++) {
    const kt_stmt *stmt = stmts->items[i];
    kt_count_work(p->d->s, stmt->location);
    switch (KJ_AMONG(kt_flow_of(stmt))) {
    case KJ_FLOW_STRAIGHT:
      if (stmt->kind == KJ_TS_ASSIGN) copy_assign(p, stmt);
      else copy_operands(p, stmt);
      break;
    case KJ_FLOW_BRANCH:
      if (copy_if(p, stmts, i)) return;
      break;
    case KJ_FLOW_JUMP: copy_jump(p, stmt); return;
    default:
      copy_loop(p, stmt);
      if (!may_leave(stmt)) break;
      copy_guarded(p, stmts, i + 1);
      return;
    }
  }
}

/* ---- entry points ---- */

static kt_var *variable_at(const kt_instance *instance, size_t index)
{
  size_t params = instance->params.count;
  return index < params ? instance->params.items[index] : instance->locals.items[index - params];
}

void kd_prepare_loop_body(kd_derivation *d, const kt_stmt *loop, size_t outer)
{
  preparer p = { .d = d };
  frame made = new_frame(&p, d->s->instance);
  kt_stmts *out = d->s->out;
  p.frame = &made;
  for (size_t i = 0; i < outer; i++) made.vars[i] = variable_at(d->s->instance, i);
  made.vars[loop->var->index] = loop->var;
  d->s->out = &d->body;
  copy_block(&p, &loop->body, 0);
  d->s->out = out;
}

void kd_prepare(kd_derivation *d)
{
  preparer p = { .d = d };
  const kt_instance *primal = d->primal->instance;
  frame made = new_frame(&p, primal);
  kt_stmts *outer = d->s->out;
  p.frame = &made;
  for (size_t i = 0; i < primal->params.count; i++)
    made.vars[i] = d->record->instance->params.items[i];
  d->s->out = &d->body;
  copy_body(&p);
  if (made.array_result)
    kd_refuse(d, d->location,
              "a function that returns an array is not supported; let it store into a parameter");
  d->s->out = outer;
  kd_name_repeated(d);
  d->result = made.result;
  d->count = d->record->instance->params.count + d->record->instance->locals.count;
}
