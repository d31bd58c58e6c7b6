/* CPU: finds the variables that are the same in all threads in a block, the control flow that all
 * threads take together, and the points at which some threads can be inactive.
 *
 * The analysis is optimistic. It assumes that every variable is uniform and that all threads take
 * every jump together. Rounds over the kernel revoke these assumptions until nothing changes. A
 * variable is uniform if all values that are assigned to it are uniform, and if each assignment is
 * in the same divergent control flow as the declaration. Under this condition, threads that are
 * inactive at the assignment never read the variable.
 *
 * A uniform value can be computed once for the block even if no thread is active. So an expression
 * that contains a load is not uniform where threads can be inactive. A load from the same address
 * is assumed to return the same value in all threads; otherwise the program has a data race. */
#include "pass/simt.h"

/* ---- expressions ---- */

static bool is_uniform_var(const kt_var *var)
{
  return var->kind == KJ_V_PARAM || var->kind == KJ_V_SHARED || var->kind == KJ_V_CONST ||
         (var->kind != KJ_V_LOCAL && var->is_uniform);
}

static bool is_uniform_call(const kp_simt *s, const kt_expr *expr)
{
  kt_effects effects = { 0 };
  kt_expr without_arguments = *expr;
  without_arguments.args.count = 0;
  kt_add_effects(s->c, &without_arguments, &effects);
  return !kt_has_any_effect(&effects) && !effects.has_positions && !expr->instance->may_fail &&
         !(effects.reads && s->has_mask);
}

static bool is_divergent_node(void *data, const kt_expr *expr)
{
  const kp_simt *s = data;
  if (expr->is_checked || expr->is_watched) return true; /* the failing threads can differ */
  switch (kt_source_of(expr)) {
  case KJ_FROM_OPERANDS: return false;
  case KJ_FROM_VARIABLE: return !is_uniform_var(expr->var);
  case KJ_FROM_MEMORY:
    return s->has_mask || ki_type(s->c->types, expr->x->type)->space == KJ_SPACE_LOCAL;
  case KJ_FROM_BUILTIN:
    return !(expr->builtin->flags & KJ_PURE) || (expr->builtin->flags & KJ_THREAD);
  case KJ_FROM_CALL: return !is_uniform_call(s, expr);
  }
  return true;
}

bool kp_is_uniform(const kp_simt *s, const kt_expr *expr)
{
  return !kt_any_texpr(expr, is_divergent_node, (void *)s);
}

/* ---- statements ---- */

static bool is_jump(const kt_stmt *stmt) { return kt_flow_of(stmt) == KJ_FLOW_JUMP; }

static bool is_loop(const kt_stmt *stmt) { return kt_flow_of(stmt) == KJ_FLOW_LOOP; }

bool kp_has_uniform_header(const kp_simt *s, const kt_stmt *stmt)
{
  return kp_is_uniform(s, stmt->value) && kp_is_uniform(s, stmt->first) &&
         kp_is_uniform(s, stmt->stop) && kp_is_uniform(s, stmt->step);
}

/* Number of loops and ONCEs that contain the current position and are inside of the analyzed
 * statement. A jump that ends such a loop or ONCE does not leave the statement. */
typedef struct depth {
  uint32_t loops, onces;
} depth;

static depth deeper(depth outer, const kt_stmt *stmt)
{
  if (is_loop(stmt)) outer.loops++;
  if (stmt->kind == KJ_TS_ONCE) outer.onces++;
  return outer;
}

static bool escapes(const kt_stmt *jump, depth inside)
{
  if (jump->kind == KJ_TS_RETURN) return true;
  return jump->kind == KJ_TS_LEAVE ? !inside.onces : !inside.loops;
}

static bool is_scalar_list(const kp_simt *s, const kt_stmts *list, depth inside);

/* Returns whether the statement only assigns uniform values to uniform variables. */
static bool is_scalar_stmt(const kp_simt *s, const kt_stmt *stmt, depth inside)
{
  if (is_jump(stmt)) return !escapes(stmt, inside);
  if (stmt->is_joint) return false;
  if (stmt->kind == KJ_TS_ASSIGN) return stmt->var->is_uniform && kp_is_uniform(s, stmt->value);
  if (stmt->kind != KJ_TS_IF && !is_loop(stmt) && stmt->kind != KJ_TS_ONCE) return false;
  if (stmt->kind == KJ_TS_FOR && !stmt->var->is_uniform) return false;
  depth deep = deeper(inside, stmt);
  return kp_has_uniform_header(s, stmt) && is_scalar_list(s, &stmt->body, deep) &&
         is_scalar_list(s, &stmt->otherwise, deep);
}

static bool is_scalar_list(const kp_simt *s, const kt_stmts *list, depth inside)
{
  for (size_t i = 0; i < list->count; i++)
    if (!is_scalar_stmt(s, list->items[i], inside)) return false;
  return true;
}

kp_simt_frame *kp_jump_target(const kt_stmt *jump, const kp_simt_position *position)
{
  if (jump->kind == KJ_TS_RETURN) return NULL;
  kp_simt_frame *frame = position->frame;
  while (frame && (frame->stmt->kind == KJ_TS_ONCE) != (jump->kind == KJ_TS_LEAVE))
    frame = frame->outer;
  return frame;
}

bool kp_is_masked_jump(const kt_stmt *jump, const kp_simt_position *position)
{
  const kp_simt_frame *target = kp_jump_target(jump, position);
  return position->divergence != (target ? target->divergence : NULL);
}

static bool has_real_jump(const kp_simt *s, const kt_stmts *list, const kp_simt_position *position);

/* Returns whether the statement is a uniform IF that contains a jump, which all threads take
 * together. Such an IF becomes control flow outside of the thread loops. */
static bool is_lifted(const kp_simt *s, const kt_stmt *stmt, const kp_simt_position *position)
{
  if (stmt->kind != KJ_TS_IF || !kp_has_uniform_header(s, stmt)) return false;
  return has_real_jump(s, &stmt->body, position) || has_real_jump(s, &stmt->otherwise, position);
}

static bool has_real_jump(const kp_simt *s, const kt_stmts *list, const kp_simt_position *position)
{
  for (size_t i = 0; i < list->count; i++) {
    const kt_stmt *stmt = list->items[i];
    if (is_jump(stmt) ? !kp_is_masked_jump(stmt, position) : is_lifted(s, stmt, position))
      return true;
  }
  return false;
}

kp_simt_level kp_find_level(const kp_simt *s, const kt_stmt *stmt, const kp_simt_position *position)
{
  if (stmt->is_joint) return KJ_LEVEL_JOINT;
  if (is_jump(stmt)) return kp_is_masked_jump(stmt, position) ? KJ_LEVEL_THREAD : KJ_LEVEL_JOINT;
  if (is_scalar_stmt(s, stmt, (depth){ 0, 0 })) return KJ_LEVEL_SCALAR;
  return is_lifted(s, stmt, position) ? KJ_LEVEL_JOINT : KJ_LEVEL_THREAD;
}

kp_simt_position kp_enter_joint(const kp_simt *s, kt_stmt *stmt, const kp_simt_position *outer,
                                kp_simt_frame *frame)
{
  kp_simt_position inner = *outer;
  if (!kp_has_uniform_header(s, stmt) || stmt->masks_break || stmt->masks_continue)
    inner.divergence = stmt;
  if (stmt->kind == KJ_TS_IF) return inner;
  *frame = (kp_simt_frame){ .outer = outer->frame, .stmt = stmt, .divergence = outer->divergence };
  inner.frame = frame;
  return inner;
}

/* ---- the rounds ---- */

static void demote(kp_simt *s, kt_var *var)
{
  if (!var->is_uniform) return;
  var->is_uniform = false;
  s->has_changed = true;
}

static void set(kp_simt *s, bool *flag)
{
  if (*flag) return;
  *flag = true;
  s->has_changed = true;
}

/* Records an assignment. The first assignment in a round is the declaration. */
static void assign(kp_simt *s, kt_var *var, const kp_simt_position *position)
{
  kp_simt_variable *own = var->simt;
  if (own->round != s->round) {
    own->round = s->round;
    own->scope = position->divergence;
  }
  if (own->scope != position->divergence) demote(s, var);
}

static void demote_all(kp_simt *s, const kt_stmts *list);

static void demote_in(kp_simt *s, const kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_ASSIGN || stmt->kind == KJ_TS_FOR) demote(s, stmt->var);
  for (size_t i = 0; i < stmt->vars.count; i++) demote(s, stmt->vars.items[i]);
  demote_all(s, &stmt->body);
  demote_all(s, &stmt->otherwise);
}

static void demote_all(kp_simt *s, const kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++) demote_in(s, list->items[i]);
}

static void mask_jump(kp_simt *s, const kt_stmt *jump, const kp_simt_position *position)
{
  set(s, &s->has_mask);
  kp_simt_frame *target = kp_jump_target(jump, position);
  set(s, !target                        ? &s->masks_return
         : jump->kind == KJ_TS_CONTINUE ? &target->stmt->masks_continue
                                        : &target->stmt->masks_break);
}

static void mask_escapes(kp_simt *s, const kt_stmts *list, const kp_simt_position *position,
                         depth inside);

static void mask_escapes_in(kp_simt *s, const kt_stmt *stmt, const kp_simt_position *position,
                            depth inside)
{
  if (is_jump(stmt)) {
    if (escapes(stmt, inside)) mask_jump(s, stmt, position);
    return;
  }
  mask_escapes(s, &stmt->body, position, deeper(inside, stmt));
  mask_escapes(s, &stmt->otherwise, position, deeper(inside, stmt));
}

static void mask_escapes(kp_simt *s, const kt_stmts *list, const kp_simt_position *position,
                         depth inside)
{
  for (size_t i = 0; i < list->count; i++) mask_escapes_in(s, list->items[i], position, inside);
}

static void analyze_list(kp_simt *s, const kt_stmts *list, const kp_simt_position *position);

static void analyze_scalar(kp_simt *s, const kt_stmt *stmt, const kp_simt_position *position)
{
  if (stmt->kind == KJ_TS_ASSIGN || stmt->kind == KJ_TS_FOR) assign(s, stmt->var, position);
  for (size_t i = 0; i < stmt->body.count; i++) analyze_scalar(s, stmt->body.items[i], position);
  for (size_t i = 0; i < stmt->otherwise.count; i++)
    analyze_scalar(s, stmt->otherwise.items[i], position);
}

static void analyze_sync(kp_simt *s, const kt_stmt *stmt, const kp_simt_position *position)
{
  s->has_sync = true;
  if (stmt->kind != KJ_TS_ASSIGN) return;
  assign(s, stmt->var, position);
  if (stmt->value->builtin->flags & KJ_WARP) demote(s, stmt->var);
}

static void analyze_joint(kp_simt *s, kt_stmt *stmt, const kp_simt_position *position)
{
  if (stmt->kind == KJ_TS_ASSIGN || stmt->kind == KJ_TS_EVALUATE) {
    analyze_sync(s, stmt, position);
    return;
  }
  if (kt_flow_of(stmt) == KJ_FLOW_RANGE) {
    demote_in(s, stmt);
    return;
  }
  if (is_jump(stmt)) return;
  bool is_uniform = kp_has_uniform_header(s, stmt);
  if (!is_uniform) set(s, &s->has_mask);
  kp_simt_frame frame;
  kp_simt_position inner = kp_enter_joint(s, stmt, position, &frame);
  if (stmt->kind == KJ_TS_FOR) {
    assign(s, stmt->var, &inner);
    if (!is_uniform) demote(s, stmt->var);
  }
  analyze_list(s, &stmt->body, &inner);
  analyze_list(s, &stmt->otherwise, &inner);
}

/* Analyzes a statement according to its level (kp_simt_level). A declaration in a nested statement
 * has that statement as its scope. */
static void analyze_stmt(kp_simt *s, kt_stmt *stmt, const kp_simt_position *position)
{
  switch (kp_find_level(s, stmt, position)) {
  case KJ_LEVEL_JOINT: analyze_joint(s, stmt, position); return;
  case KJ_LEVEL_SCALAR: analyze_scalar(s, stmt, position); return;
  case KJ_LEVEL_THREAD:
    demote_in(s, stmt);
    mask_escapes_in(s, stmt, position, (depth){ 0, 0 });
    return;
  }
}

static void analyze_list(kp_simt *s, const kt_stmts *list, const kp_simt_position *position)
{
  for (size_t i = 0; i < list->count; i++) analyze_stmt(s, list->items[i], position);
}

void kp_find_uniform(kp_simt *s)
{
  for (size_t i = 0; i < s->kernel->locals.count; i++) {
    kt_var *var = s->kernel->locals.items[i];
    var->simt = KJ_NEW(s->c->arena, kp_simt_variable);
    var->is_uniform = var->kind == KJ_V_LET || var->kind == KJ_V_VAR || var->kind == KJ_V_LOOP;
  }
  s->has_mask = s->masks_return = s->kernel->may_fail;
  do {
    s->has_changed = false;
    s->round++;
    analyze_list(s, &s->kernel->body, &(kp_simt_position){ 0 });
  } while (s->has_changed);
}
