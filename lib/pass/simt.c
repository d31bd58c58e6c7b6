/* CPU: the kernel for one thread becomes loops over the threads of a block (kj_make_thread_loops).
 *
 * Needs: typed instances, block shape known. Guarantees: the kernel's body consists of uniform control flow and uniform assignments, THREADS loops around what is left, WARP and
 * BARRIER_REDUCE between them; variables that live across thread loops are is_slot; nothing inside THREADS synchronizes.
 *
 * A run of statements without synchronization becomes one THREADS; a barrier is the boundary between two. Control flow that holds a synchronization stays outside the thread
 * loops: as it is where all threads take it together (uniform.c), else under a mask. The mask is one slot variable, `off`: a thread is active where it is 0, and otherwise holds the
 * code of the place where it becomes active again: the else part or end of a divergent if, the next iteration or end of a loop, the end of an inlined function; or of none: it
 * has left the kernel. Uniform assignments are moved in front of the run they interrupt, unless the run has used the variable before or writes memory that the value is loaded from.
 *
 * A kernel of grid_ranges that looks at no position and shares nothing needs no threads: it stays as it is, and a block is one contiguous piece (is_range_only). */
#include "pass/simt.h"

enum { CODES_A_SITE = 2 };
typedef enum code { CODE_ELSE = 0, CODE_BREAK = 0, CODE_THEN = 1, CODE_CONTINUE = 1 } code;

typedef struct builder {
  kj_simt *s;
  kj_tstmts *out;
  kj_tstmts run;       /* of the THREADS being collected */
  uint32_t run_number; /* from 1 */
  bool is_run_guarded;
  bool is_run_masked; /* threads may be off at its start: it is not guarded because it turns them on */
  bool run_writes;
  bool has_left; /* some threads may have left the kernel */
} builder;

static void build_list(builder *b, const kj_tstmts *list, const kj_simt_position *position);

static kj_location no_location(void) { return (kj_location){ 0 }; }

/* More than one loop over threads. */
static bool has_regions(const kj_simt *s) { return s->has_sync || s->has_range; }

/* ---- the mask ---- */

static kj_tvar *off_of(builder *b)
{
  kj_instance *kernel = b->s->kernel;
  if (!kernel->off) {
    kernel->off = kj_new_local(b->s, KJ_V_VAR, "off", KJIT_I32, no_location());
    kernel->off->simt = KJ_NEW(b->s->c->arena, kj_simt_variable);
  }
  return kernel->off;
}

static uint32_t site_of(builder *b, kj_tstmt *stmt)
{
  if (!stmt->site) stmt->site = ++b->s->site_count;
  return stmt->site;
}

static int64_t code_of(builder *b, kj_tstmt *stmt, code code) { return KJ_OFF_LEFT_KERNEL + 1 + (int64_t)(site_of(b, stmt) - 1) * CODES_A_SITE + code; }

static kj_texpr *off_value(builder *b) { return kj_new_var(b->s, off_of(b), no_location()); }
static kj_texpr *off_const(builder *b, int64_t value) { return kj_new_const(b->s, KJIT_I32, value, no_location()); }
static kj_texpr *off_is(builder *b, int64_t value) { return kj_new_compare(b->s, KJIT_EQ, off_value(b), off_const(b, value)); }
static kj_tstmt *set_off(builder *b, kj_texpr *value) { return kj_new_assign(b->s, off_of(b), value); }
static kj_tstmt *set_off_to(builder *b, int64_t value) { return set_off(b, off_const(b, value)); }

static bool is_masked(const builder *b, const kj_simt_position *position) { return b->has_left || position->divergence != NULL; }

/* ---- runs ---- */

static void flush(builder *b)
{
  if (!b->run.count) return;
  kj_tstmt *threads = kj_new_tstmt(b->s->c, KJ_TS_THREADS, b->run.items[0]->location);
  threads->body = b->run;
  threads->is_guarded = b->is_run_guarded;
  b->s->reads_off |= threads->is_guarded;
  kj_append_stmt(b->s, b->out, threads);
  b->run = (kj_tstmts){ 0 };
  b->run_number++;
  b->run_writes = false;
}

static void emit(builder *b, kj_tstmt *stmt) { kj_append_stmt(b->s, b->out, stmt); }

static void mention(void *data, kj_texpr **expr)
{
  builder *b = data;
  const kj_tvar *var = (*expr)->kind == KJ_T_VAR ? (*expr)->var : NULL;
  if (var && var->simt) var->simt->run = b->run_number;
}

static void append_to_run(builder *b, kj_tstmt *stmt)
{
  kj_tstmts one = { .items = &stmt, .count = 1 };
  kj_walk_tstmts(&one, NULL, mention, b);
  kj_simt_effects effects = { 0 };
  kj_find_stmt_effects(stmt, &effects);
  b->run_writes |= effects.writes;
  kj_append_stmt(b->s, &b->run, stmt);
}

/* To the run, for the active threads. A run that started before some of them were turned off goes on: those have jumped to its end. */
static void push(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  bool masked = is_masked(b, position);
  if (b->run.count && !b->is_run_guarded && b->is_run_masked && masked) flush(b);
  if (!b->run.count) b->is_run_guarded = b->is_run_masked = masked;
  append_to_run(b, stmt);
  if (kj_stmt_may_fail(stmt)) b->has_left = true;
}

/* To a run of its own or to one that only turns threads on: for all threads, active or not. */
static void push_for_all(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  flush(b);
  b->is_run_guarded = false;
  b->is_run_masked = is_masked(b, position);
  append_to_run(b, stmt);
}

/* ---- uniform assignments ---- */

static bool is_assigned_in_run(const builder *b, const kj_tstmt *stmt)
{
  if ((stmt->kind == KJ_TS_ASSIGN || stmt->kind == KJ_TS_FOR) && stmt->var->simt && stmt->var->simt->run == b->run_number) return true;
  for (size_t i = 0; i < stmt->body.count; i++)
    if (is_assigned_in_run(b, stmt->body.items[i])) return true;
  for (size_t i = 0; i < stmt->otherwise.count; i++)
    if (is_assigned_in_run(b, stmt->otherwise.items[i])) return true;
  return false;
}

static kj_tstmts drop_declarations(builder *b, const kj_tstmts *list)
{
  kj_tstmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    stmt->body = drop_declarations(b, &stmt->body);
    stmt->otherwise = drop_declarations(b, &stmt->otherwise);
    kj_append_stmt(b->s, &kept, stmt);
  }
  return kept;
}

static void build_scalar(builder *b, kj_tstmt *stmt)
{
  kj_simt_effects effects = { 0 };
  kj_find_stmt_effects(stmt, &effects);
  if (is_assigned_in_run(b, stmt) || (effects.loads && b->run_writes)) flush(b);
  stmt->body = drop_declarations(b, &stmt->body);
  stmt->otherwise = drop_declarations(b, &stmt->otherwise);
  emit(b, stmt);
}

/* A uniform variable of the pass's own. */
static kj_tvar *make_uniform(builder *b, const char *name, kjit_type type, kj_location location)
{
  kj_tvar *var = kj_new_local(b->s, KJ_V_LET, name, type, location);
  var->is_uniform = true;
  return var;
}

/* ---- what threads do on their own ---- */

/* A let that is cheap to compute is computed again where it is needed; a variable in it that changes is caught as it is now. */
static void catch_variable(void *data, kj_texpr **expr)
{
  builder *b = data;
  kj_texpr *e = *expr;
  if (e->kind != KJ_T_VAR || e->var->kind != KJ_V_VAR || !e->var->is_uniform) return;
  kj_tvar *caught = make_uniform(b, e->var->name, e->type, e->location);
  caught->is_narrow = e->var->is_narrow;
  emit(b, kj_new_assign(b->s, caught, e));
  *expr = kj_new_var(b->s, caught, e->location);
}

static bool is_array(builder *b, const kj_texpr *expr)
{
  const kj_type_info *info = kj_type(b->s->c->types, expr->type);
  return info->class_ == KJ_CLASS_ARRAY && info->space != KJ_SPACE_VALUE;
}

/* Scalar parts of a view are kept in variables, so that the view itself can be made again anywhere. */
static void hold_part(builder *b, kj_texpr **part, const kj_simt_position *position)
{
  uint32_t budget = UINT32_MAX;
  if (!*part || kj_is_cheap(*part, &budget)) return;
  kj_tvar *var = kj_new_holder(b->s, KJ_V_LET, "held", *part);
  push(b, kj_new_assign(b->s, var, *part), position);
  *part = kj_new_var(b->s, var, (*part)->location);
}

static void hold_parts(builder *b, kj_texpr *expr, const kj_simt_position *position)
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

static void build_assign(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  if (!stmt->value) return;
  if (has_regions(b->s) && stmt->var->kind == KJ_V_LET) {
    if (is_array(b, stmt->value)) hold_parts(b, stmt->value, position);
    uint32_t budget = UINT32_MAX;
    if (kj_is_cheap(stmt->value, &budget)) kj_walk_texpr(&stmt->value, catch_variable, b);
  }
  push(b, stmt, position);
}

typedef struct depth {
  uint32_t loops, onces;
} depth;

static int64_t jump_code(builder *b, const kj_tstmt *jump, const kj_simt_position *position)
{
  kj_simt_frame *target = kj_jump_target(jump, position);
  if (!target) return KJ_OFF_LEFT_KERNEL;
  return code_of(b, target->stmt, jump->kind == KJ_TS_CONTINUE ? CODE_CONTINUE : CODE_BREAK);
}

static bool is_jump(const kj_tstmt *stmt)
{
  return stmt->kind == KJ_TS_BREAK || stmt->kind == KJ_TS_CONTINUE || stmt->kind == KJ_TS_RETURN || stmt->kind == KJ_TS_LEAVE;
}

static bool leaves_statement(const kj_tstmt *stmt, depth inside)
{
  switch (stmt->kind) {
  case KJ_TS_RETURN: return true;
  case KJ_TS_LEAVE: return !inside.onces;
  case KJ_TS_BREAK:
  case KJ_TS_CONTINUE: return !inside.loops;
  default: return false;
  }
}

/* Jumps out of a thread's statements: the thread is turned off and its part of the run ends. */
static kj_tstmts mask_jumps(builder *b, const kj_tstmts *list, const kj_simt_position *position, depth inside)
{
  kj_tstmts masked = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    if (leaves_statement(stmt, inside)) {
      if (stmt->kind == KJ_TS_RETURN) b->has_left = true;
      kj_append_stmt(b->s, &masked, set_off_to(b, jump_code(b, stmt, position)));
      kj_append_stmt(b->s, &masked, kj_new_tstmt(b->s->c, KJ_TS_RETURN, stmt->location));
      continue;
    }
    depth deep = inside;
    if (stmt->kind == KJ_TS_WHILE || stmt->kind == KJ_TS_FOR) deep.loops++;
    if (stmt->kind == KJ_TS_ONCE) deep.onces++;
    stmt->body = mask_jumps(b, &stmt->body, position, deep);
    stmt->otherwise = mask_jumps(b, &stmt->otherwise, position, deep);
    kj_append_stmt(b->s, &masked, stmt);
  }
  return masked;
}

static void build_thread(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
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
  for (size_t i = 0; i < masked.count; i++) push(b, masked.items[i], position);
  b->has_left |= has_left;
}

/* ---- synchronizations ---- */

static void build_warp(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  flush(b);
  kj_tstmt *warp = kj_new_tstmt(b->s->c, KJ_TS_WARP, stmt->location);
  warp->var = stmt->kind == KJ_TS_ASSIGN ? stmt->var : NULL;
  warp->value = stmt->value;
  warp->is_guarded = is_masked(b, position);
  b->s->reads_off |= warp->is_guarded;
  emit(b, warp);
}

static void emit_reduce(builder *b, kj_tvar *var, kj_texpr *value, kj_location location, const kj_simt_position *position)
{
  flush(b);
  kj_tstmt *reduce = kj_new_tstmt(b->s->c, KJ_TS_BARRIER_REDUCE, location);
  reduce->var = var;
  reduce->value = value;
  reduce->is_guarded = is_masked(b, position);
  b->s->reads_off |= reduce->is_guarded;
  emit(b, reduce);
}

/* The boundary between two thread loops is enough, unless each warp has its own. */
static bool is_boundary_enough(const builder *b, const kj_texpr *barrier)
{
  return barrier->builtin->id == KJ_BUILTIN_SYNCTHREADS && b->s->c->cpu_parts != KJ_PARTS_WARPS;
}

/* Threads that wait at the barrier or have left the kernel are fine; the others are somewhere else and would never come. */
static void check_barrier(builder *b, const kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_tstmt *check = kj_new_if(b->s, kj_new_compare(b->s, KJIT_GT, off_value(b), off_const(b, KJ_OFF_LEFT_KERNEL)), stmt->location);
  kj_tstmt *failure = kj_new_tstmt(b->s->c, KJ_TS_FAIL, stmt->value->location);
  failure->failure = KJ_FAILURE_BARRIER;
  kj_append_stmt(b->s, &check->body, failure);
  b->s->reads_off = true;
  push_for_all(b, check, position);
  b->has_left = true;
  flush(b);
}

static void build_barrier(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  flush(b);
  uint32_t checks = b->s->c->request->checks;
  if ((checks & KJIT_CHECK_BARRIER) && position->divergence && b->s->c->cpu_parts != KJ_PARTS_WARPS) check_barrier(b, stmt, position);
  if (stmt->kind == KJ_TS_EVALUATE && !is_boundary_enough(b, stmt->value)) {
    build_warp(b, stmt, position);
    return;
  }
  if (stmt->kind == KJ_TS_EVALUATE) {
    if (b->s->c->has_watched) emit_reduce(b, NULL, stmt->value, stmt->location, position); /* time goes on */
    return;
  }
  if (stmt->var->is_uniform) {
    emit_reduce(b, stmt->var, stmt->value, stmt->location, position);
    return;
  }
  kj_tvar *var = make_uniform(b, stmt->var->name, stmt->var->type, stmt->location);
  emit_reduce(b, var, stmt->value, stmt->location, position);
  push(b, kj_new_assign(b->s, stmt->var, kj_new_var(b->s, var, stmt->location)), position);
}

static void build_sync(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  if (stmt->value->builtin->flags & KJ_WARP) build_warp(b, stmt, position);
  else build_barrier(b, stmt, position);
}

/* ---- control flow between thread loops ---- */

static kj_texpr *any_active(builder *b, const kj_simt_position *position)
{
  kj_tvar *var = make_uniform(b, "any", KJIT_BOOL, no_location());
  emit_reduce(b, var, NULL, no_location(), position);
  return kj_new_var(b->s, var, no_location());
}

/* Fills a list of a statement that is emitted itself. */
static void build_inside(builder *b, kj_tstmts *to, const kj_tstmts *from, const kj_simt_position *position)
{
  flush(b);
  kj_tstmts filled = { 0 };
  kj_tstmts *outer = b->out;
  b->out = &filled;
  build_list(b, from, position);
  flush(b);
  b->out = outer;
  *to = filled;
}

static void build_uniform_if(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  flush(b);
  kj_tstmts body = stmt->body, otherwise = stmt->otherwise;
  bool had_left = b->has_left;
  build_inside(b, &stmt->body, &body, position);
  bool has_left = b->has_left;
  b->has_left = had_left;
  build_inside(b, &stmt->otherwise, &otherwise, position);
  b->has_left |= has_left;
  emit(b, stmt);
}

static void build_part(builder *b, const kj_tstmts *list, const kj_simt_position *position)
{
  kj_tstmt *part = kj_new_if(b->s, any_active(b, position), no_location());
  build_inside(b, &part->body, list, position);
  emit(b, part);
}

static void build_divergent_if(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_simt_position inner = kj_enter_joint(b->s, stmt, position, NULL);
  int64_t to_else = code_of(b, stmt, CODE_ELSE), to_end = code_of(b, stmt, CODE_THEN);
  push(b, set_off(b, kj_new_cond(b->s, stmt->value, off_const(b, 0), off_const(b, to_else))), position);
  build_part(b, &stmt->body, &inner);
  b->s->reads_off = true;
  if (stmt->otherwise.count) {
    kj_texpr *turned = kj_new_cond(b->s, off_is(b, to_else), off_const(b, 0), off_value(b));
    push_for_all(b, set_off(b, kj_new_cond(b->s, off_is(b, 0), off_const(b, to_end), turned)), &inner);
    build_part(b, &stmt->otherwise, &inner);
    push_for_all(b, set_off(b, kj_new_cond(b->s, off_is(b, to_end), off_const(b, 0), off_value(b))), position);
    return;
  }
  push_for_all(b, set_off(b, kj_new_cond(b->s, off_is(b, to_else), off_const(b, 0), off_value(b))), position);
}

static void restore(builder *b, kj_tstmt *stmt, code code, const kj_simt_position *position)
{
  b->s->reads_off = true;
  push_for_all(b, set_off(b, kj_new_cond(b->s, off_is(b, code_of(b, stmt, code)), off_const(b, 0), off_value(b))), position);
}

/* RETURN, a failure, or LEAVE of a ONCE around the list. */
static bool has_exit(const kj_tstmts *list, uint32_t onces)
{
  for (size_t i = 0; i < list->count; i++) {
    const kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_RETURN || (stmt->kind == KJ_TS_LEAVE && !onces) || kj_stmt_may_fail(stmt)) return true;
    uint32_t deep = onces + (stmt->kind == KJ_TS_ONCE);
    if (has_exit(&stmt->body, deep) || has_exit(&stmt->otherwise, deep)) return true;
  }
  return false;
}

static bool has_return(const kj_tstmts *list)
{
  for (size_t i = 0; i < list->count; i++) {
    const kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_RETURN || kj_stmt_may_fail(stmt) || has_return(&stmt->body) || has_return(&stmt->otherwise)) return true;
  }
  return false;
}

static void emit_stop_unless_any(builder *b, const kj_simt_position *position)
{
  kj_tstmt *stop = kj_new_if(b->s, kj_new_unary(b->s, KJIT_NOT, any_active(b, position)), no_location());
  kj_append_stmt(b->s, &stop->body, kj_new_tstmt(b->s->c, KJ_TS_BREAK, no_location()));
  emit(b, stop);
}

/* The body of a joint loop: stops when no thread is left in it, turns threads on that have continued. */
static void build_loop_body(builder *b, kj_tstmt *stmt, const kj_tstmts *from, kj_tstmt *condition, bool may_empty, const kj_simt_position *inner)
{
  kj_tstmts filled = { 0 };
  kj_tstmts *outer = b->out;
  b->out = &filled;
  if (condition) push(b, condition, inner);
  if (may_empty) emit_stop_unless_any(b, inner);
  build_list(b, from, inner);
  if (stmt->masks_continue) restore(b, stmt, CODE_CONTINUE, inner);
  flush(b);
  b->out = outer;
  stmt->body = filled;
}

static void build_loop(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  flush(b);
  kj_simt_frame frame;
  kj_simt_position inner = kj_enter_joint(b->s, stmt, position, &frame);
  if (b->s->masks_return && has_return(&stmt->body)) b->has_left = true;
  bool is_uniform = kj_has_uniform_header(b->s, stmt);
  bool may_empty = !is_uniform || stmt->masks_break || (is_masked(b, &inner) && has_exit(&stmt->body, 0));
  kj_tstmts body = stmt->body;
  kj_tstmt *condition = NULL;
  if (!is_uniform) { /* a divergent while: threads turn themselves off */
    int64_t leave = code_of(b, stmt, CODE_BREAK);
    condition = set_off(b, kj_new_cond(b->s, stmt->value, off_const(b, 0), off_const(b, leave)));
    stmt->value = kj_new_const(b->s, KJIT_BOOL, 1, stmt->location);
  }
  build_loop_body(b, stmt, &body, condition, may_empty, &inner);
  emit(b, stmt);
  if (!is_uniform || stmt->masks_break) restore(b, stmt, CODE_BREAK, position);
}

/* A for whose range differs between threads, as a while over the number of iterations: unsigned, so that no step overflows. */
static kj_texpr *count_up(builder *b, kj_tvar *from, kj_tvar *to, kj_texpr *step)
{
  kj_simt *s = b->s;
  kj_location at = from->location;
  kj_texpr *start = kj_new_convert(s, KJIT_U64, kj_new_var(s, from, at));
  kj_texpr *end = kj_new_convert(s, KJIT_U64, kj_new_var(s, to, at));
  kj_texpr *span = kj_new_binary(s, KJIT_SUB, kj_new_binary(s, KJIT_SUB, end, start), kj_new_const(s, KJIT_U64, 1, at));
  kj_texpr *count = kj_new_binary(s, KJIT_ADD, kj_new_binary(s, KJIT_FLOORDIV, span, step), kj_new_const(s, KJIT_U64, 1, at));
  kj_texpr *runs = kj_new_compare(s, KJIT_LT, kj_new_var(s, from, at), kj_new_var(s, to, at));
  return kj_new_cond(s, runs, count, kj_new_const(s, KJIT_U64, 0, at));
}

static bool is_signed(builder *b, kjit_type type) { return kj_type(b->s->c->types, type)->class_ == KJ_CLASS_SIGNED; }

static kj_texpr *iteration_count(builder *b, kj_tvar *first, kj_tvar *stop, kj_tvar *step)
{
  kj_simt *s = b->s;
  kj_location at = first->location;
  kj_texpr *zero = kj_new_const(s, step->type, 0, at);
  kj_texpr *up_step = kj_new_convert(s, KJIT_U64, kj_new_var(s, step, at));
  kj_texpr *up = count_up(b, first, stop, up_step);
  kj_texpr *none = kj_new_const(s, KJIT_U64, 0, at);
  kj_texpr *is_up = kj_new_compare(s, KJIT_GT, kj_new_var(s, step, at), zero);
  if (!is_signed(b, step->type)) return kj_new_cond(s, is_up, up, none);
  kj_texpr *down_step = kj_new_binary(s, KJIT_SUB, kj_new_const(s, KJIT_U64, 0, at), kj_new_convert(s, KJIT_U64, kj_new_var(s, step, at)));
  kj_texpr *down = count_up(b, stop, first, down_step);
  kj_texpr *is_down = kj_new_compare(s, KJIT_LT, kj_new_var(s, step, at), kj_new_const(s, step->type, 0, at));
  return kj_new_cond(s, is_up, up, kj_new_cond(s, is_down, down, none));
}

static kj_tvar *hold_bound(builder *b, const char *name, kj_texpr *value, const kj_simt_position *position)
{
  kj_tvar *var = kj_new_holder(b->s, KJ_V_LET, name, value);
  push(b, kj_new_assign(b->s, var, value), position);
  return var;
}

static void build_divergent_for(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_simt *s = b->s;
  kj_location at = stmt->location;
  kj_tvar *first = hold_bound(b, "first", stmt->first, position);
  kj_tvar *stop = hold_bound(b, "stop", stmt->stop, position);
  kj_tvar *step = hold_bound(b, "step", stmt->step ? stmt->step : kj_new_const(s, stmt->var->type, 1, at), position);
  kj_tvar *count = hold_bound(b, "count", iteration_count(b, first, stop, step), position);
  kj_tvar *done = kj_new_local(s, KJ_V_VAR, "done", KJIT_U64, at);
  push(b, kj_new_assign(s, done, kj_new_const(s, KJIT_U64, 0, at)), position);

  kj_texpr *offset = kj_new_binary(s, KJIT_MUL, kj_new_convert(s, stmt->var->type, kj_new_var(s, done, at)), kj_new_var(s, step, at));
  kj_tstmts body = { 0 };
  kj_append_stmt(s, &body, kj_new_assign(s, stmt->var, kj_new_binary(s, KJIT_ADD, kj_new_var(s, first, at), offset)));
  kj_append_stmt(s, &body, kj_new_assign(s, done, kj_new_binary(s, KJIT_ADD, kj_new_var(s, done, at), kj_new_const(s, KJIT_U64, 1, at))));
  kj_append_stmts(s, &body, &stmt->body);
  stmt->kind = KJ_TS_WHILE;
  stmt->value = kj_new_compare(s, KJIT_LT, kj_new_var(s, done, at), kj_new_var(s, count, at));
  stmt->first = stmt->stop = stmt->step = NULL;
  stmt->var = NULL;
  stmt->body = body;
  build_loop(b, stmt, position);
}

static void build_once(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  flush(b);
  kj_simt_frame frame;
  kj_simt_position inner = kj_enter_joint(b->s, stmt, position, &frame);
  kj_tstmts body = stmt->body;
  build_inside(b, &stmt->body, &body, &inner);
  emit(b, stmt);
  if (stmt->masks_break) restore(b, stmt, CODE_BREAK, position);
}

/* Extents are the same in all threads by the rules of the language: where that cannot be seen, those of the first active thread are taken. */
static kj_texpr *make_extent(builder *b, kj_texpr *extent, const kj_simt_position *position)
{
  if (kj_is_uniform(b->s, extent)) return extent;
  bool may_fail = kj_may_fail(extent); /* then there may be no active thread left: no iterations */
  kj_tvar *slot = kj_new_holder(b->s, may_fail ? KJ_V_VAR : KJ_V_LET, "extent", extent);
  if (may_fail) push_for_all(b, kj_new_assign(b->s, slot, kj_new_const(b->s, extent->type, 0, extent->location)), position);
  push(b, kj_new_assign(b->s, slot, extent), position);
  kj_tvar *var = make_uniform(b, "extent", extent->type, extent->location);
  var->is_narrow = extent->is_narrow;
  emit_reduce(b, var, kj_new_var(b->s, slot, extent->location), extent->location, position);
  return kj_new_var(b->s, var, extent->location);
}

static void build_range(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  for (size_t i = 0; i < stmt->extents.count; i++) stmt->extents.items[i] = make_extent(b, stmt->extents.items[i], position);
  flush(b);
  stmt->body = drop_declarations(b, &stmt->body);
  b->has_left |= kj_stmt_may_fail(stmt); /* in one of its rounds, before others */
  stmt->is_guarded = is_masked(b, position);
  b->s->reads_off |= stmt->is_guarded;
  emit(b, stmt);
}

static void build_joint(builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  switch (stmt->kind) {
  case KJ_TS_ASSIGN:
  case KJ_TS_EVALUATE: build_sync(b, stmt, position); return;
  case KJ_TS_GRID_FOR:
  case KJ_TS_BLOCK_FOR: build_range(b, stmt, position); return;
  case KJ_TS_IF:
    if (kj_has_uniform_header(b->s, stmt)) build_uniform_if(b, stmt, position);
    else build_divergent_if(b, stmt, position);
    return;
  case KJ_TS_FOR:
    if (!kj_has_uniform_header(b->s, stmt)) {
      build_divergent_for(b, stmt, position);
      return;
    }
    build_loop(b, stmt, position);
    return;
  case KJ_TS_WHILE: build_loop(b, stmt, position); return;
  case KJ_TS_ONCE: build_once(b, stmt, position); return;
  default:
    flush(b);
    emit(b, stmt);
    return; /* a jump that all active threads take */
  }
}

static void build_list(builder *b, const kj_tstmts *list, const kj_simt_position *position)
{
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    kj_simt_level level = kj_find_level(b->s, stmt, position);
    if (level == KJ_LEVEL_JOINT) build_joint(b, stmt, position);
    else if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    else if (level == KJ_LEVEL_SCALAR) build_scalar(b, stmt);
    else build_thread(b, stmt, position);
    if (is_jump(stmt)) return; /* what follows is never reached */
  }
}

/* ---- the whole ---- */

/* Nobody asks which threads are off: only the last run turns some off. */
static kj_tstmts drop_off(builder *b, const kj_tstmts *list)
{
  kj_tstmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && stmt->var == b->s->kernel->off) continue;
    stmt->body = drop_off(b, &stmt->body);
    stmt->otherwise = drop_off(b, &stmt->otherwise);
    if (stmt->kind == KJ_TS_THREADS && !stmt->body.count) continue;
    kj_append_stmt(b->s, &kept, stmt);
  }
  return kept;
}

/* Takes a variable that nothing mentions any more off the kernel's list. */
static void drop_local(kj_instance *kernel, const kj_tvar *var)
{
  size_t kept = 0;
  for (size_t i = 0; i < kernel->locals.count; i++) {
    kj_tvar *local = kernel->locals.items[i];
    if (local == var) continue;
    local->index = (uint32_t)(kernel->params.count + kept);
    kernel->locals.items[kept++] = local;
  }
  kernel->locals.count = kept;
}

static void build_kernel(kj_simt *s)
{
  kj_tstmts from = s->kernel->body, to = { 0 };
  builder b = { .s = s, .out = &to, .run_number = 1 };
  kj_simt_position top = { 0 };
  if (s->has_mask) push_for_all(&b, set_off_to(&b, 0), &top); /* even in kernels without barriers: a uniform variable that changes ends a run */
  build_list(&b, &from, &top);
  flush(&b);
  s->kernel->body = to;
  if (!s->kernel->off) return;
  if (!s->reads_off) {
    s->kernel->body = drop_off(&b, &s->kernel->body);
    drop_local(s->kernel, s->kernel->off);
    s->kernel->off = NULL;
    return;
  }
  s->kernel->off->is_slot = true;
}

/* Where a line goes is found the same way as positions, and so is shared memory. */
static void find_print(void *data, kj_tstmt *stmt)
{
  if (stmt->kind == KJ_TS_PRINT || stmt->is_watched) *(bool *)data = true;
}

static void find_shared_use(void *data, kj_texpr **expr)
{
  const kj_texpr *e = *expr;
  if (e->is_watched) *(bool *)data = true;
  if (e->kind == KJ_T_VAR && e->var->kind == KJ_V_SHARED) *(bool *)data = true;
  if (e->kind == KJ_T_CALL && e->instance->uses_positions) *(bool *)data = true;
}

static void mark_users_of_context(kj_compilation *c)
{
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = 1; i < c->instances.count; i++) {
      kj_instance *instance = c->instances.items[i];
      if (instance->uses_positions) continue;
      kj_walk_tstmts(&instance->body, find_print, find_shared_use, &instance->uses_positions);
      has_changed |= instance->uses_positions;
    }
  }
}

void kj_make_thread_loops(kj_compilation *c)
{
  kj_simt s = { .c = c, .kernel = c->instances.items[0] };
  kj_inline_synchronizing(&s);
  if (kj_is_range_only(&s)) {
    c->is_range_only = true;
    builder b = { .s = &s };
    s.kernel->body = drop_declarations(&b, &s.kernel->body);
    mark_users_of_context(c);
    return;
  }
  kj_find_uniform(&s);
  build_kernel(&s);
  kj_place_variables(&s);
  mark_users_of_context(c);
}
