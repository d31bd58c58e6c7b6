/* Builds control flow that contains a synchronization and is therefore outside of the thread loops.
 * If all threads take the same path, the control flow does not change; otherwise it is executed
 * under the mask (simt.c). */
#include "pass/simt.h"

/* ---- constructing and copying typed trees ---- */

kt_expr *kp_new_const(kp_simt *s, kjit_type type, __int128 value, kj_location location)
{
  kt_expr *e = kt_new_texpr(s->c, KJ_T_CONST, type, location);
  e->integer = value;
  return e;
}

kt_expr *kp_new_var(kp_simt *s, kt_var *var, kj_location location)
{
  kt_expr *e = kt_new_texpr(s->c, KJ_T_VAR, var->type, location);
  e->var = var;
  e->is_narrow = var->is_narrow;
  return e;
}

kt_expr *kp_new_unary(kp_simt *s, kjit_op op, kt_expr *x)
{
  kt_expr *e = kt_new_texpr(s->c, KJ_T_UNARY, x->type, x->location);
  e->op = op;
  e->x = x;
  return e;
}

static kt_expr *make_two(kp_simt *s, kt_tkind kind, kjit_type type, kjit_op op, kt_expr *x,
                         kt_expr *y)
{
  kt_expr *e = kt_new_texpr(s->c, kind, type, x->location);
  e->op = op;
  e->x = x;
  e->y = y;
  return e;
}

kt_expr *kp_new_binary(kp_simt *s, kjit_op op, kt_expr *x, kt_expr *y)
{
  return make_two(s, KJ_T_BINARY, x->type, op, x, y);
}
kt_expr *kp_new_compare(kp_simt *s, kjit_op op, kt_expr *x, kt_expr *y)
{
  return make_two(s, KJ_T_COMPARE, KJIT_BOOL, op, x, y);
}

kt_expr *kp_new_cond(kp_simt *s, kt_expr *x, kt_expr *y, kt_expr *z)
{
  kt_expr *e = make_two(s, KJ_T_COND, y->type, (kjit_op)0, x, y);
  e->z = z;
  return e;
}

kt_expr *kp_new_convert(kp_simt *s, kjit_type type, kt_expr *x)
{
  if (x->type == type) return x;
  kt_expr *e = kt_new_texpr(s->c, KJ_T_CONVERT, type, x->location);
  e->x = x;
  return e;
}

kt_stmt *kp_new_assign(kp_simt *s, kt_var *var, kt_expr *value)
{
  kt_stmt *stmt = kt_new_tstmt(s->c, KJ_TS_ASSIGN, value ? value->location : var->location);
  stmt->var = var;
  stmt->value = value;
  return stmt;
}

kt_var *kp_new_local(kp_simt *s, kt_tvar_kind kind, const char *name, kjit_type type,
                     kj_location location)
{
  return kt_new_tvar(s->c, s->kernel, kind, name, type, location);
}

kt_var *kp_new_holder(kp_simt *s, kt_tvar_kind kind, const char *name, const kt_expr *expr)
{
  kt_var *var = kp_new_local(s, kind, name, expr->type, expr->location);
  var->is_narrow = expr->is_narrow;
  return var;
}

void kp_append_stmt(kp_simt *s, kt_stmts *list, kt_stmt *stmt) { KJ_PUSH(s->c->arena, list, stmt); }

void kp_append_stmts(kp_simt *s, kt_stmts *list, const kt_stmts *more)
{
  for (size_t i = 0; i < more->count; i++) kp_append_stmt(s, list, more->items[i]);
}

kt_stmts kp_drop_declarations(kp_simt *s, const kt_stmts *list)
{
  kt_stmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kt_stmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    stmt->body = kp_drop_declarations(s, &stmt->body);
    stmt->otherwise = kp_drop_declarations(s, &stmt->otherwise);
    kp_append_stmt(s, &kept, stmt);
  }
  return kept;
}

/* ---- statements that each thread executes separately ---- */

/* ---- assignments ---- */

/* Replaces a mutable uniform variable in the value of a cheap let by a copy of the variable's
 * current value, because later regions compute the let again. */
static void catch_variable(void *data, kt_expr **expr)
{
  kp_simt_builder *b = data;
  kt_expr *e = *expr;
  if (e->kind != KJ_T_VAR || e->var->kind != KJ_V_VAR || !e->var->is_uniform) return;
  kt_var *caught = kp_new_uniform(b, e->var->name, e->type, e->location);
  caught->is_narrow = e->var->is_narrow;
  kp_emit_joint(b, kp_new_assign(b->s, caught, e));
  *expr = kp_new_var(b->s, caught, e->location);
}

static bool is_array(kp_simt_builder *b, const kt_expr *expr)
{
  const ki_type_info *info = ki_type(b->s->c->types, expr->type);
  return info->class_ == KJ_CLASS_ARRAY && info->space != KJ_SPACE_VALUE;
}

/* Stores a scalar operand of a view in a variable, so that the view itself can be computed again
 * anywhere. */
static void hold_part(kp_simt_builder *b, kt_expr **part, const kp_simt_position *position)
{
  if (!*part || kp_is_cheap(*part, UINT32_MAX)) return;
  kt_var *var = kp_new_holder(b->s, KJ_V_LET, "held", *part);
  kp_push_active(b, kp_new_assign(b->s, var, *part), position);
  *part = kp_new_var(b->s, var, (*part)->location);
}

static void hold_parts(kp_simt_builder *b, kt_expr *expr, const kp_simt_position *position)
{
  if (!expr || !is_array(b, expr)) return;
  if (expr->kind == KJ_T_POINTED) hold_part(b, &expr->x, position);
  hold_parts(b, expr->x, position);
  if (expr->kind == KJ_T_COND) {
    hold_part(b, &expr->x, position);
    hold_parts(b, expr->y, position);
    hold_parts(b, expr->z, position);
  }
  for (size_t i = 0; i < expr->args.count; i++) {
    if (is_array(b, expr->args.items[i])) hold_parts(b, expr->args.items[i], position);
    else hold_part(b, &expr->args.items[i], position);
  }
  for (size_t i = 0; i < expr->indices.count; i++) hold_part(b, &expr->indices.items[i], position);
}

static void build_assign(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  if (!stmt->value) return;
  if ((b->s->has_sync || b->s->has_range) && stmt->var->kind == KJ_V_LET) {
    if (is_array(b, stmt->value)) hold_parts(b, stmt->value, position);
    if (kp_is_cheap(stmt->value, UINT32_MAX)) kt_walk_texpr(&stmt->value, catch_variable, b);
  }
  kp_push_active(b, stmt, position);
}

/* ---- jumps ---- */

typedef struct depth {
  uint32_t loops, onces;
} depth;

static int64_t jump_code(kp_simt_builder *b, const kt_stmt *jump, const kp_simt_position *position)
{
  kp_simt_frame *target = kp_jump_target(jump, position);
  if (!target) return KJ_OFF_LEFT_KERNEL;
  return kp_off_code(b, target->stmt,
                     jump->kind == KJ_TS_CONTINUE ? KJ_OFF_CONTINUE : KJ_OFF_BREAK);
}

static bool leaves_statement(const kt_stmt *stmt, depth inside)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_RETURN: return true;
  case KJ_TS_LEAVE: return !inside.onces;
  case KJ_TS_BREAK:
  case KJ_TS_CONTINUE: return !inside.loops;
  default: return false;
  }
}

/* Replaces jumps out of a list of statements that each thread executes: the thread becomes inactive
 * and skips the rest of the run. */
static kt_stmts mask_jumps(kp_simt_builder *b, const kt_stmts *list,
                           const kp_simt_position *position, depth inside)
{
  kt_stmts masked = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kt_stmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    if (leaves_statement(stmt, inside)) {
      if (stmt->kind == KJ_TS_RETURN) b->has_left = true;
      b->may_idle = true;
      kp_append_stmt(b->s, &masked, kp_set_off(b, kp_off_const(b, jump_code(b, stmt, position))));
      kp_append_stmt(b->s, &masked, kt_new_tstmt(b->s->c, KJ_TS_RETURN, stmt->location));
      continue;
    }
    depth deep = inside;
    if (kt_flow_of(stmt) == KJ_FLOW_LOOP) deep.loops++;
    if (stmt->kind == KJ_TS_ONCE) deep.onces++;
    stmt->body = mask_jumps(b, &stmt->body, position, deep);
    stmt->otherwise = mask_jumps(b, &stmt->otherwise, position, deep);
    kp_append_stmt(b->s, &masked, stmt);
  }
  return masked;
}

void kp_build_thread(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  if (stmt->kind == KJ_TS_ASSIGN) {
    build_assign(b, stmt, position);
    return;
  }
  bool had_left = b->has_left;
  kt_stmts one = { .items = &stmt, .count = 1 };
  kt_stmts masked = mask_jumps(b, &one, position, (depth){ 0, 0 });
  bool has_left = b->has_left;
  b->has_left = had_left; /* threads have not left yet when the statement itself starts */
  for (size_t i = 0; i < masked.count; i++) kp_push_active(b, masked.items[i], position);
  b->has_left |= has_left;
}

kt_expr *kp_any_active(kp_simt_builder *b, const kp_simt_position *position)
{
  kt_var *var = kp_new_uniform(b, "any", KJIT_BOOL, kp_no_location());
  kp_emit_reduce(b, var, NULL, kp_no_location(), position);
  return kp_new_var(b->s, var, kp_no_location());
}

void kp_build_inside(kp_simt_builder *b, kt_stmts *to, const kt_stmts *from,
                     const kp_simt_position *position)
{
  kp_flush_run(b);
  kt_stmts filled = { 0 };
  kt_stmts *outer = b->out;
  b->out = &filled;
  kp_build_joint_list(b, from, position);
  kp_flush_run(b);
  b->out = outer;
  *to = filled;
}

/* ---- conditions ---- */

static void build_uniform_if(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  kp_flush_run(b);
  kt_stmts body = stmt->body, otherwise = stmt->otherwise;
  bool had_left = b->has_left, could_idle = b->may_idle;
  kp_build_inside(b, &stmt->body, &body, position);
  bool has_left = b->has_left, may_idle = b->may_idle;
  b->has_left = had_left;
  b->may_idle = could_idle;
  kp_build_inside(b, &stmt->otherwise, &otherwise, position);
  b->has_left |= has_left;
  b->may_idle |= may_idle;
  kp_emit_joint(b, stmt);
}

static void build_part(kp_simt_builder *b, const kt_stmts *list, const kp_simt_position *position)
{
  kt_stmt *part = kt_new_if(b->s->c, kp_any_active(b, position), kp_no_location());
  bool could_idle = b->may_idle;
  b->may_idle = false;
  kp_build_inside(b, &part->body, list, position);
  b->may_idle |= could_idle;
  kp_emit_joint(b, part);
}

static void build_divergent_if(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  kp_simt_position inner = kp_enter_joint(b->s, stmt, position, NULL);
  int64_t to_else = kp_off_code(b, stmt, KJ_OFF_ELSE), to_end = kp_off_code(b, stmt, KJ_OFF_THEN);
  kp_push_active(b,
                 kp_set_off(b, kp_new_cond(b->s, stmt->value, kp_off_const(b, 0),
                                           kp_off_const(b, to_else))),
                 position);
  build_part(b, &stmt->body, &inner);
  b->s->reads_off = true;
  if (stmt->otherwise.count) {
    kt_expr *turned = kp_new_cond(b->s, kp_off_is(b, to_else), kp_off_const(b, 0), kp_off_value(b));
    kp_push_for_all(b,
                    kp_set_off(b,
                               kp_new_cond(b->s, kp_off_is(b, 0), kp_off_const(b, to_end), turned)),
                    &inner);
    build_part(b, &stmt->otherwise, &inner);
  }
  kp_restore_active(b, stmt, stmt->otherwise.count ? KJ_OFF_THEN : KJ_OFF_ELSE, position);
}

/* ---- loops ---- */

/* Returns whether the list contains a RETURN, a failure, or a LEAVE that leaves a ONCE around the
 * list. onces: number of ONCEs, inside of the list, that contain the current position. */
static bool has_exit(const kt_stmts *list, uint32_t onces)
{
  for (size_t i = 0; i < list->count; i++) {
    const kt_stmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_RETURN || (stmt->kind == KJ_TS_LEAVE && !onces) ||
        kp_stmt_may_fail(stmt))
      return true;
    uint32_t deep = onces + (stmt->kind == KJ_TS_ONCE);
    if (has_exit(&stmt->body, deep) || has_exit(&stmt->otherwise, deep)) return true;
  }
  return false;
}

static bool has_return(const kt_stmts *list) { return has_exit(list, 1); }

static void emit_stop_unless_any(kp_simt_builder *b, const kp_simt_position *position)
{
  kt_stmt *stop = kt_new_if(b->s->c, kp_new_unary(b->s, KJIT_OP_NOT, kp_any_active(b, position)),
                            kp_no_location());
  kp_append_stmt(b->s, &stop->body, kt_new_tstmt(b->s->c, KJ_TS_BREAK, kp_no_location()));
  kp_emit_joint(b, stop);
}

/* Builds the body of a loop that contains a synchronization. If may_empty is set, the loop ends
 * when no thread is left in it. Threads that have executed `continue` become active again at the
 * end of the body. */
static void build_loop_body(kp_simt_builder *b, kt_stmt *stmt, const kt_stmts *from,
                            kt_stmt *condition, bool may_empty, const kp_simt_position *inner)
{
  kt_stmts filled = { 0 };
  kt_stmts *outer = b->out;
  b->out = &filled;
  bool could_idle = b->may_idle;
  if (condition) kp_push_active(b, condition, inner);
  if (may_empty) emit_stop_unless_any(b, inner);
  if (may_empty) b->may_idle = false;
  kp_build_joint_list(b, from, inner);
  if (stmt->masks_continue) kp_restore_active(b, stmt, KJ_OFF_CONTINUE, inner);
  /* the condition would be evaluated before the next test in the body */
  if (may_empty && stmt->kind == KJ_TS_WHILE && kp_has_long_operand(b->s->c, stmt))
    emit_stop_unless_any(b, inner);
  kp_flush_run(b);
  b->may_idle |= could_idle || may_empty;
  b->out = outer;
  stmt->body = filled;
}

/* Returns whether the loop must test in each iteration whether any thread is active. */
static bool asks_each_time(kp_simt_builder *b, const kt_stmt *loop, const kp_simt_position *inner)
{
  if (!kp_has_uniform_header(b->s, loop) || loop->masks_break) return true;
  bool may_leave = b->s->masks_return && has_return(&loop->body);
  return (may_leave || kp_is_masked(b, inner)) && has_exit(&loop->body, 0);
}

bool kp_needs_active_first(kp_simt_builder *b, kt_stmt *loop, const kp_simt_position *position)
{
  KJ_ASSERT(loop->is_joint && kt_flow_of(loop) == KJ_FLOW_LOOP);
  if (loop->kind == KJ_TS_FOR && kp_short_trip_count(loop)) return false;
  kp_simt_frame frame;
  kp_simt_position inner = kp_enter_joint(b->s, loop, position, &frame);
  return kp_has_long_operand(b->s->c, loop) || !asks_each_time(b, loop, &inner);
}

static void build_loop(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  kp_flush_run(b);
  kp_simt_frame frame;
  kp_simt_position inner = kp_enter_joint(b->s, stmt, position, &frame);
  bool is_uniform = kp_has_uniform_header(b->s, stmt), may_empty = asks_each_time(b, stmt, &inner);
  if (b->s->masks_return && has_return(&stmt->body)) b->has_left = true;
  kt_stmts body = stmt->body;
  kt_stmt *condition = NULL;
  if (!is_uniform) { /* in a divergent while loop, threads make themselves inactive */
    int64_t leave = kp_off_code(b, stmt, KJ_OFF_BREAK);
    condition =
      kp_set_off(b, kp_new_cond(b->s, stmt->value, kp_off_const(b, 0), kp_off_const(b, leave)));
    stmt->value = kp_new_const(b->s, KJIT_BOOL, 1, stmt->location);
  }
  build_loop_body(b, stmt, &body, condition, may_empty, &inner);
  kp_emit_joint(b, stmt);
  if (!is_uniform || stmt->masks_break) kp_restore_active(b, stmt, KJ_OFF_BREAK, position);
}

/* Converts a for loop whose range differs between threads to a while loop over the number of
 * iterations. The arithmetic is unsigned, so that the steps cannot overflow. */
static kt_expr *count_up(kp_simt_builder *b, kt_var *from, kt_var *to, kt_expr *step)
{
  kp_simt *s = b->s;
  kj_location at = from->location;
  kt_expr *start = kp_new_convert(s, KJIT_U64, kp_new_var(s, from, at));
  kt_expr *end = kp_new_convert(s, KJIT_U64, kp_new_var(s, to, at));
  kt_expr *span = kp_new_binary(s, KJIT_OP_SUB, kp_new_binary(s, KJIT_OP_SUB, end, start),
                                kp_new_const(s, KJIT_U64, 1, at));
  kt_expr *count = kp_new_binary(s, KJIT_OP_ADD, kp_new_binary(s, KJIT_OP_FLOORDIV, span, step),
                                 kp_new_const(s, KJIT_U64, 1, at));
  kt_expr *runs = kp_new_compare(s, KJIT_OP_LT, kp_new_var(s, from, at), kp_new_var(s, to, at));
  return kp_new_cond(s, runs, count, kp_new_const(s, KJIT_U64, 0, at));
}

static kt_expr *iteration_count(kp_simt_builder *b, kt_var *first, kt_var *stop, kt_var *step)
{
  kp_simt *s = b->s;
  kj_location at = first->location;
  kt_expr *zero = kp_new_const(s, step->type, 0, at);
  kt_expr *up_step = kp_new_convert(s, KJIT_U64, kp_new_var(s, step, at));
  kt_expr *up = count_up(b, first, stop, up_step);
  kt_expr *none = kp_new_const(s, KJIT_U64, 0, at);
  kt_expr *is_up = kp_new_compare(s, KJIT_OP_GT, kp_new_var(s, step, at), zero);
  if (ki_type(b->s->c->types, step->type)->class_ != KJ_CLASS_SIGNED)
    return kp_new_cond(s, is_up, up, none);
  kt_expr *down_step = kp_new_binary(s, KJIT_OP_SUB, kp_new_const(s, KJIT_U64, 0, at),
                                     kp_new_convert(s, KJIT_U64, kp_new_var(s, step, at)));
  kt_expr *down = count_up(b, stop, first, down_step);
  kt_expr *is_down =
    kp_new_compare(s, KJIT_OP_LT, kp_new_var(s, step, at), kp_new_const(s, step->type, 0, at));
  return kp_new_cond(s, is_up, up, kp_new_cond(s, is_down, down, none));
}

static kt_var *hold_bound(kp_simt_builder *b, const char *name, kt_expr *value,
                          const kp_simt_position *position)
{
  kt_var *var = kp_new_holder(b->s, KJ_V_LET, name, value);
  kp_push_active(b, kp_new_assign(b->s, var, value), position);
  return var;
}

static void build_divergent_for(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  kp_simt *s = b->s;
  kj_location at = stmt->location;
  kt_var *first = hold_bound(b, "first", stmt->first, position);
  kt_var *stop = hold_bound(b, "stop", stmt->stop, position);
  kt_var *step =
    hold_bound(b, "step", stmt->step ? stmt->step : kp_new_const(s, stmt->var->type, 1, at),
               position);
  kt_var *count = hold_bound(b, "count", iteration_count(b, first, stop, step), position);
  kt_var *done = kp_new_local(s, KJ_V_VAR, "done", KJIT_U64, at);
  kp_push_active(b, kp_new_assign(s, done, kp_new_const(s, KJIT_U64, 0, at)), position);

  kt_expr *offset =
    kp_new_binary(s, KJIT_OP_MUL, kp_new_convert(s, stmt->var->type, kp_new_var(s, done, at)),
                  kp_new_var(s, step, at));
  kt_stmts body = { 0 };
  kp_append_stmt(s, &body,
                 kp_new_assign(s, stmt->var,
                               kp_new_binary(s, KJIT_OP_ADD, kp_new_var(s, first, at), offset)));
  kp_append_stmt(s, &body,
                 kp_new_assign(s, done,
                               kp_new_binary(s, KJIT_OP_ADD, kp_new_var(s, done, at),
                                             kp_new_const(s, KJIT_U64, 1, at))));
  kp_append_stmts(s, &body, &stmt->body);
  stmt->kind = KJ_TS_WHILE;
  stmt->value = kp_new_compare(s, KJIT_OP_LT, kp_new_var(s, done, at), kp_new_var(s, count, at));
  stmt->first = stmt->stop = stmt->step = NULL;
  stmt->var = NULL;
  stmt->body = body;
  build_loop(b, stmt, position);
}

static void build_once(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  kp_flush_run(b);
  kp_simt_frame frame;
  kp_simt_position inner = kp_enter_joint(b->s, stmt, position, &frame);
  kt_stmts body = stmt->body;
  bool could_idle = b->may_idle;
  kp_build_inside(b, &stmt->body, &body, &inner);
  b->may_idle |= could_idle;
  kp_emit_joint(b, stmt);
  if (stmt->masks_break) kp_restore_active(b, stmt, KJ_OFF_BREAK, position);
}

void kp_build_control(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  bool is_uniform = kp_has_uniform_header(b->s, stmt);
  if (stmt->kind == KJ_TS_IF && is_uniform) build_uniform_if(b, stmt, position);
  else if (stmt->kind == KJ_TS_IF) build_divergent_if(b, stmt, position);
  else if (stmt->kind == KJ_TS_ONCE) build_once(b, stmt, position);
  else if (stmt->kind == KJ_TS_FOR && !is_uniform) build_divergent_for(b, stmt, position);
  else build_loop(b, stmt, position);
}
