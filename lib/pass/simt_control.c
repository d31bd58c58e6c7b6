/* Control flow that holds a synchronization, and so stays outside the thread loops: as it is where
 * all threads take it together, else under the mask. */
#include "pass/simt.h"

/* Making and copying typed trees. */

kj_texpr *kj_new_const(kj_simt *s, kjit_type type, __int128 value, kj_location location)
{
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_CONST, type, location);
  e->integer = value;
  return e;
}

kj_texpr *kj_new_var(kj_simt *s, kj_tvar *var, kj_location location)
{
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_VAR, var->type, location);
  e->var = var;
  e->is_narrow = var->is_narrow;
  return e;
}

kj_texpr *kj_new_unary(kj_simt *s, kjit_op op, kj_texpr *x)
{
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_UNARY, x->type, x->location);
  e->op = op;
  e->x = x;
  return e;
}

static kj_texpr *make_two(kj_simt *s, kj_tkind kind, kjit_type type, kjit_op op, kj_texpr *x,
                          kj_texpr *y)
{
  kj_texpr *e = kj_new_texpr(s->c, kind, type, x->location);
  e->op = op;
  e->x = x;
  e->y = y;
  return e;
}

kj_texpr *kj_new_binary(kj_simt *s, kjit_op op, kj_texpr *x, kj_texpr *y)
{
  return make_two(s, KJ_T_BINARY, x->type, op, x, y);
}
kj_texpr *kj_new_compare(kj_simt *s, kjit_op op, kj_texpr *x, kj_texpr *y)
{
  return make_two(s, KJ_T_COMPARE, KJIT_BOOL, op, x, y);
}

kj_texpr *kj_new_cond(kj_simt *s, kj_texpr *x, kj_texpr *y, kj_texpr *z)
{
  kj_texpr *e = make_two(s, KJ_T_COND, y->type, (kjit_op)0, x, y);
  e->z = z;
  return e;
}

kj_texpr *kj_new_convert(kj_simt *s, kjit_type type, kj_texpr *x)
{
  if (x->type == type) return x;
  kj_texpr *e = kj_new_texpr(s->c, KJ_T_CONVERT, type, x->location);
  e->x = x;
  return e;
}

kj_tstmt *kj_new_assign(kj_simt *s, kj_tvar *var, kj_texpr *value)
{
  kj_tstmt *stmt = kj_new_tstmt(s->c, KJ_TS_ASSIGN, value ? value->location : var->location);
  stmt->var = var;
  stmt->value = value;
  return stmt;
}

kj_tstmt *kj_new_if(kj_simt *s, kj_texpr *condition, kj_location location)
{
  kj_tstmt *stmt = kj_new_tstmt(s->c, KJ_TS_IF, location);
  stmt->value = condition;
  return stmt;
}

kj_tvar *kj_new_local(kj_simt *s, kj_tvar_kind kind, const char *name, kjit_type type,
                      kj_location location)
{
  return kj_new_tvar(s->c, s->kernel, kind, name, type, location);
}

kj_tvar *kj_new_holder(kj_simt *s, kj_tvar_kind kind, const char *name, const kj_texpr *expr)
{
  kj_tvar *var = kj_new_local(s, kind, name, expr->type, expr->location);
  var->is_narrow = expr->is_narrow;
  return var;
}

void kj_append_stmt(kj_simt *s, kj_tstmts *list, kj_tstmt *stmt)
{
  KJ_PUSH(s->c->arena, list, stmt);
}

void kj_append_stmts(kj_simt *s, kj_tstmts *list, const kj_tstmts *more)
{
  for (size_t i = 0; i < more->count; i++) kj_append_stmt(s, list, more->items[i]);
}

kj_tstmts kj_drop_declarations(kj_simt *s, const kj_tstmts *list)
{
  kj_tstmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    stmt->body = kj_drop_declarations(s, &stmt->body);
    stmt->otherwise = kj_drop_declarations(s, &stmt->otherwise);
    kj_append_stmt(s, &kept, stmt);
  }
  return kept;
}

/* Statements that threads carry out on their own. */

/* More than one loop over threads. */
static bool has_regions(const kj_simt *s) { return s->has_sync || s->has_range; }

/* ---- assignments ---- */

/* A let that is cheap to compute is computed again where it is needed; a variable in it that
 * changes is caught as it is now. */
static void catch_variable(void *data, kj_texpr **expr)
{
  kj_simt_builder *b = data;
  kj_texpr *e = *expr;
  if (e->kind != KJ_T_VAR || e->var->kind != KJ_V_VAR || !e->var->is_uniform) return;
  kj_tvar *caught = kj_new_uniform(b, e->var->name, e->type, e->location);
  caught->is_narrow = e->var->is_narrow;
  kj_emit_joint(b, kj_new_assign(b->s, caught, e));
  *expr = kj_new_var(b->s, caught, e->location);
}

static bool is_array(kj_simt_builder *b, const kj_texpr *expr)
{
  const kj_type_info *info = kj_type(b->s->c->types, expr->type);
  return info->class_ == KJ_CLASS_ARRAY && info->space != KJ_SPACE_VALUE;
}

/* Scalar parts of a view are kept in variables, so that the view itself can be made again anywhere.
 */
static void hold_part(kj_simt_builder *b, kj_texpr **part, const kj_simt_position *position)
{
  if (!*part || kj_is_cheap(*part, UINT32_MAX)) return;
  kj_tvar *var = kj_new_holder(b->s, KJ_V_LET, "held", *part);
  kj_push_active(b, kj_new_assign(b->s, var, *part), position);
  *part = kj_new_var(b->s, var, (*part)->location);
}

static void hold_parts(kj_simt_builder *b, kj_texpr *expr, const kj_simt_position *position)
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

static void build_assign(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  if (!stmt->value) return;
  if (has_regions(b->s) && stmt->var->kind == KJ_V_LET) {
    if (is_array(b, stmt->value)) hold_parts(b, stmt->value, position);
    if (kj_is_cheap(stmt->value, UINT32_MAX)) kj_walk_texpr(&stmt->value, catch_variable, b);
  }
  kj_push_active(b, stmt, position);
}

/* ---- jumps ---- */

typedef struct depth {
  uint32_t loops, onces;
} depth;

static int64_t jump_code(kj_simt_builder *b, const kj_tstmt *jump, const kj_simt_position *position)
{
  kj_simt_frame *target = kj_jump_target(jump, position);
  if (!target) return KJ_OFF_LEFT_KERNEL;
  return kj_off_code(b, target->stmt,
                     jump->kind == KJ_TS_CONTINUE ? KJ_OFF_CONTINUE : KJ_OFF_BREAK);
}

static bool leaves_statement(const kj_tstmt *stmt, depth inside)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_RETURN: return true;
  case KJ_TS_LEAVE: return !inside.onces;
  case KJ_TS_BREAK:
  case KJ_TS_CONTINUE: return !inside.loops;
  default: return false;
  }
}

/* Jumps out of a thread's statements: the thread is turned off and its part of the run ends. */
static kj_tstmts mask_jumps(kj_simt_builder *b, const kj_tstmts *list,
                            const kj_simt_position *position, depth inside)
{
  kj_tstmts masked = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    if (leaves_statement(stmt, inside)) {
      if (stmt->kind == KJ_TS_RETURN) b->has_left = true;
      kj_append_stmt(b->s, &masked, kj_set_off(b, kj_off_const(b, jump_code(b, stmt, position))));
      kj_append_stmt(b->s, &masked, kj_new_tstmt(b->s->c, KJ_TS_RETURN, stmt->location));
      continue;
    }
    depth deep = inside;
    if (kj_flow_of(stmt) == KJ_FLOW_LOOP) deep.loops++;
    if (stmt->kind == KJ_TS_ONCE) deep.onces++;
    stmt->body = mask_jumps(b, &stmt->body, position, deep);
    stmt->otherwise = mask_jumps(b, &stmt->otherwise, position, deep);
    kj_append_stmt(b->s, &masked, stmt);
  }
  return masked;
}

void kj_build_thread(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  if (stmt->kind == KJ_TS_ASSIGN) {
    build_assign(b, stmt, position);
    return;
  }
  bool had_left = b->has_left;
  kj_tstmts one = { .items = &stmt, .count = 1 };
  kj_tstmts masked = mask_jumps(b, &one, position, (depth){ 0, 0 });
  bool has_left = b->has_left;
  b->has_left = had_left; /* the statement itself starts before */
  for (size_t i = 0; i < masked.count; i++) kj_push_active(b, masked.items[i], position);
  b->has_left |= has_left;
}

kj_texpr *kj_any_active(kj_simt_builder *b, const kj_simt_position *position)
{
  kj_tvar *var = kj_new_uniform(b, "any", KJIT_BOOL, kj_no_location());
  kj_emit_reduce(b, var, NULL, kj_no_location(), position);
  return kj_new_var(b->s, var, kj_no_location());
}

/* Fills a list of a statement that is emitted itself. */
static void build_inside(kj_simt_builder *b, kj_tstmts *to, const kj_tstmts *from,
                         const kj_simt_position *position)
{
  kj_flush_run(b);
  kj_tstmts filled = { 0 };
  kj_tstmts *outer = b->out;
  b->out = &filled;
  kj_build_joint_list(b, from, position);
  kj_flush_run(b);
  b->out = outer;
  *to = filled;
}

/* ---- conditions ---- */

static void build_uniform_if(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_flush_run(b);
  kj_tstmts body = stmt->body, otherwise = stmt->otherwise;
  bool had_left = b->has_left;
  build_inside(b, &stmt->body, &body, position);
  bool has_left = b->has_left;
  b->has_left = had_left;
  build_inside(b, &stmt->otherwise, &otherwise, position);
  b->has_left |= has_left;
  kj_emit_joint(b, stmt);
}

static void build_part(kj_simt_builder *b, const kj_tstmts *list, const kj_simt_position *position)
{
  kj_tstmt *part = kj_new_if(b->s, kj_any_active(b, position), kj_no_location());
  build_inside(b, &part->body, list, position);
  kj_emit_joint(b, part);
}

static void build_divergent_if(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_simt_position inner = kj_enter_joint(b->s, stmt, position, NULL);
  int64_t to_else = kj_off_code(b, stmt, KJ_OFF_ELSE), to_end = kj_off_code(b, stmt, KJ_OFF_THEN);
  kj_push_active(b,
                 kj_set_off(b, kj_new_cond(b->s, stmt->value, kj_off_const(b, 0),
                                           kj_off_const(b, to_else))),
                 position);
  build_part(b, &stmt->body, &inner);
  b->s->reads_off = true;
  if (stmt->otherwise.count) {
    kj_texpr *turned =
      kj_new_cond(b->s, kj_off_is(b, to_else), kj_off_const(b, 0), kj_off_value(b));
    kj_push_for_all(b,
                    kj_set_off(b,
                               kj_new_cond(b->s, kj_off_is(b, 0), kj_off_const(b, to_end), turned)),
                    &inner);
    build_part(b, &stmt->otherwise, &inner);
  }
  kj_restore_active(b, stmt, stmt->otherwise.count ? KJ_OFF_THEN : KJ_OFF_ELSE, position);
}

/* ---- loops ---- */

/* RETURN, a failure, or LEAVE of a ONCE around the list; onces: how many are around it that do not
 * count. */
static bool has_exit(const kj_tstmts *list, uint32_t onces)
{
  for (size_t i = 0; i < list->count; i++) {
    const kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_RETURN || (stmt->kind == KJ_TS_LEAVE && !onces) ||
        kj_stmt_may_fail(stmt))
      return true;
    uint32_t deep = onces + (stmt->kind == KJ_TS_ONCE);
    if (has_exit(&stmt->body, deep) || has_exit(&stmt->otherwise, deep)) return true;
  }
  return false;
}

static bool has_return(const kj_tstmts *list) { return has_exit(list, 1); }

static void emit_stop_unless_any(kj_simt_builder *b, const kj_simt_position *position)
{
  kj_tstmt *stop =
    kj_new_if(b->s, kj_new_unary(b->s, KJIT_NOT, kj_any_active(b, position)), kj_no_location());
  kj_append_stmt(b->s, &stop->body, kj_new_tstmt(b->s->c, KJ_TS_BREAK, kj_no_location()));
  kj_emit_joint(b, stop);
}

/* The body of a joint loop: stops when no thread is left in it, turns threads on that have
 * continued. */
static void build_loop_body(kj_simt_builder *b, kj_tstmt *stmt, const kj_tstmts *from,
                            kj_tstmt *condition, bool may_empty, const kj_simt_position *inner)
{
  kj_tstmts filled = { 0 };
  kj_tstmts *outer = b->out;
  b->out = &filled;
  if (condition) kj_push_active(b, condition, inner);
  if (may_empty) emit_stop_unless_any(b, inner);
  kj_build_joint_list(b, from, inner);
  if (stmt->masks_continue) kj_restore_active(b, stmt, KJ_OFF_CONTINUE, inner);
  kj_flush_run(b);
  b->out = outer;
  stmt->body = filled;
}

static void build_loop(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_flush_run(b);
  kj_simt_frame frame;
  kj_simt_position inner = kj_enter_joint(b->s, stmt, position, &frame);
  if (b->s->masks_return && has_return(&stmt->body)) b->has_left = true;
  bool is_uniform = kj_has_uniform_header(b->s, stmt);
  bool may_empty =
    !is_uniform || stmt->masks_break || (kj_is_masked(b, &inner) && has_exit(&stmt->body, 0));
  kj_tstmts body = stmt->body;
  kj_tstmt *condition = NULL;
  if (!is_uniform) { /* a divergent while: threads turn themselves off */
    int64_t leave = kj_off_code(b, stmt, KJ_OFF_BREAK);
    condition =
      kj_set_off(b, kj_new_cond(b->s, stmt->value, kj_off_const(b, 0), kj_off_const(b, leave)));
    stmt->value = kj_new_const(b->s, KJIT_BOOL, 1, stmt->location);
  }
  build_loop_body(b, stmt, &body, condition, may_empty, &inner);
  kj_emit_joint(b, stmt);
  if (!is_uniform || stmt->masks_break) kj_restore_active(b, stmt, KJ_OFF_BREAK, position);
}

/* A for whose range differs between threads, as a while over the number of iterations: unsigned, so
 * that no step overflows. */
static kj_texpr *count_up(kj_simt_builder *b, kj_tvar *from, kj_tvar *to, kj_texpr *step)
{
  kj_simt *s = b->s;
  kj_location at = from->location;
  kj_texpr *start = kj_new_convert(s, KJIT_U64, kj_new_var(s, from, at));
  kj_texpr *end = kj_new_convert(s, KJIT_U64, kj_new_var(s, to, at));
  kj_texpr *span = kj_new_binary(s, KJIT_SUB, kj_new_binary(s, KJIT_SUB, end, start),
                                 kj_new_const(s, KJIT_U64, 1, at));
  kj_texpr *count = kj_new_binary(s, KJIT_ADD, kj_new_binary(s, KJIT_FLOORDIV, span, step),
                                  kj_new_const(s, KJIT_U64, 1, at));
  kj_texpr *runs = kj_new_compare(s, KJIT_LT, kj_new_var(s, from, at), kj_new_var(s, to, at));
  return kj_new_cond(s, runs, count, kj_new_const(s, KJIT_U64, 0, at));
}

static bool is_signed(kj_simt_builder *b, kjit_type type)
{
  return kj_type(b->s->c->types, type)->class_ == KJ_CLASS_SIGNED;
}

static kj_texpr *iteration_count(kj_simt_builder *b, kj_tvar *first, kj_tvar *stop, kj_tvar *step)
{
  kj_simt *s = b->s;
  kj_location at = first->location;
  kj_texpr *zero = kj_new_const(s, step->type, 0, at);
  kj_texpr *up_step = kj_new_convert(s, KJIT_U64, kj_new_var(s, step, at));
  kj_texpr *up = count_up(b, first, stop, up_step);
  kj_texpr *none = kj_new_const(s, KJIT_U64, 0, at);
  kj_texpr *is_up = kj_new_compare(s, KJIT_GT, kj_new_var(s, step, at), zero);
  if (!is_signed(b, step->type)) return kj_new_cond(s, is_up, up, none);
  kj_texpr *down_step = kj_new_binary(s, KJIT_SUB, kj_new_const(s, KJIT_U64, 0, at),
                                      kj_new_convert(s, KJIT_U64, kj_new_var(s, step, at)));
  kj_texpr *down = count_up(b, stop, first, down_step);
  kj_texpr *is_down =
    kj_new_compare(s, KJIT_LT, kj_new_var(s, step, at), kj_new_const(s, step->type, 0, at));
  return kj_new_cond(s, is_up, up, kj_new_cond(s, is_down, down, none));
}

static kj_tvar *hold_bound(kj_simt_builder *b, const char *name, kj_texpr *value,
                           const kj_simt_position *position)
{
  kj_tvar *var = kj_new_holder(b->s, KJ_V_LET, name, value);
  kj_push_active(b, kj_new_assign(b->s, var, value), position);
  return var;
}

static void build_divergent_for(kj_simt_builder *b, kj_tstmt *stmt,
                                const kj_simt_position *position)
{
  kj_simt *s = b->s;
  kj_location at = stmt->location;
  kj_tvar *first = hold_bound(b, "first", stmt->first, position);
  kj_tvar *stop = hold_bound(b, "stop", stmt->stop, position);
  kj_tvar *step =
    hold_bound(b, "step", stmt->step ? stmt->step : kj_new_const(s, stmt->var->type, 1, at),
               position);
  kj_tvar *count = hold_bound(b, "count", iteration_count(b, first, stop, step), position);
  kj_tvar *done = kj_new_local(s, KJ_V_VAR, "done", KJIT_U64, at);
  kj_push_active(b, kj_new_assign(s, done, kj_new_const(s, KJIT_U64, 0, at)), position);

  kj_texpr *offset =
    kj_new_binary(s, KJIT_MUL, kj_new_convert(s, stmt->var->type, kj_new_var(s, done, at)),
                  kj_new_var(s, step, at));
  kj_tstmts body = { 0 };
  kj_append_stmt(s, &body,
                 kj_new_assign(s, stmt->var,
                               kj_new_binary(s, KJIT_ADD, kj_new_var(s, first, at), offset)));
  kj_append_stmt(s, &body,
                 kj_new_assign(s, done,
                               kj_new_binary(s, KJIT_ADD, kj_new_var(s, done, at),
                                             kj_new_const(s, KJIT_U64, 1, at))));
  kj_append_stmts(s, &body, &stmt->body);
  stmt->kind = KJ_TS_WHILE;
  stmt->value = kj_new_compare(s, KJIT_LT, kj_new_var(s, done, at), kj_new_var(s, count, at));
  stmt->first = stmt->stop = stmt->step = NULL;
  stmt->var = NULL;
  stmt->body = body;
  build_loop(b, stmt, position);
}

static void build_once(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_flush_run(b);
  kj_simt_frame frame;
  kj_simt_position inner = kj_enter_joint(b->s, stmt, position, &frame);
  kj_tstmts body = stmt->body;
  build_inside(b, &stmt->body, &body, &inner);
  kj_emit_joint(b, stmt);
  if (stmt->masks_break) kj_restore_active(b, stmt, KJ_OFF_BREAK, position);
}

void kj_build_control(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  bool is_uniform = kj_has_uniform_header(b->s, stmt);
  if (stmt->kind == KJ_TS_IF && is_uniform) build_uniform_if(b, stmt, position);
  else if (stmt->kind == KJ_TS_IF) build_divergent_if(b, stmt, position);
  else if (stmt->kind == KJ_TS_ONCE) build_once(b, stmt, position);
  else if (stmt->kind == KJ_TS_FOR && !is_uniform) build_divergent_for(b, stmt, position);
  else build_loop(b, stmt, position);
}
