/* Control flow that holds a synchronization, and so stays outside the thread loops: as it is where
 * all threads take it together, else under the mask. */
#include "pass/simt_build.h"

static kj_texpr *any_active(kj_simt_builder *b, const kj_simt_position *position)
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
  kj_tstmt *part = kj_new_if(b->s, any_active(b, position), kj_no_location());
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
    kj_new_if(b->s, kj_new_unary(b->s, KJIT_NOT, any_active(b, position)), kj_no_location());
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
