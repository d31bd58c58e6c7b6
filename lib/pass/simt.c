/* CPU: converts the kernel, which describes one thread, to loops over the threads in a block
 * (kp_make_thread_loops).
 *
 * Needs: typed instances, and a known block shape. Guarantees: the body of the kernel consists of
 * uniform control flow, uniform assignments, THREADS loops that contain all other statements, and
 * WARP and BARRIER_REDUCE statements between these loops. Variables whose values are used in
 * several thread loops are slots (is_slot). Code inside THREADS does not synchronize.
 *
 * A run of statements without synchronization becomes a THREADS loop. A barrier is the boundary
 * between two THREADS loops. Control flow that contains a synchronization stays outside of the
 * thread loops. If all threads take the same path through this control flow, it does not change
 * (uniform.c). Otherwise it is executed under a mask.
 *
 * The mask is the slot variable `off`. A thread is active while its `off` is 0. In an inactive
 * thread, `off` is a code. One code means that the thread has left the kernel. Each other code
 * identifies the point at which the thread becomes active again: the else part or the end of a
 * divergent if, the next iteration or the end of a loop, or the end of an inlined function.
 *
 * A uniform assignment is moved before the run in which it occurs, unless the run has already used
 * the variable or writes to the memory from which the value is loaded.
 *
 * A kernel that consists of grid_ranges, reads no position and has no shared memory needs no
 * threads. Such a kernel is not converted, and each block runs a contiguous part of each range
 * (kp_is_range_only). */
#include "pass/simt.h"

/* ---- active threads: the slot variable `off` (see this file's head) ---- */

enum { PLACES_A_SITE = 2 };

static kt_var *off_of(kp_simt_builder *b)
{
  kt_instance *kernel = b->s->kernel;
  if (!kernel->off) {
    kernel->off = kp_new_local(b->s, KJ_V_VAR, "off", KJIT_I32, kp_no_location());
    kernel->off->simt = KJ_NEW(b->s->c->arena, kp_simt_variable);
  }
  return kernel->off;
}

static uint32_t off_number_of(kp_simt_builder *b, kt_stmt *stmt)
{
  if (!stmt->off_number) stmt->off_number = ++b->s->off_count;
  return stmt->off_number;
}

int64_t kp_off_code(kp_simt_builder *b, kt_stmt *stmt, kp_off_place place)
{
  KJ_ASSERT((unsigned)place < PLACES_A_SITE);
  return KJ_OFF_LEFT_KERNEL + 1 + (int64_t)(off_number_of(b, stmt) - 1) * PLACES_A_SITE + place;
}

kt_expr *kp_off_value(kp_simt_builder *b) { return kp_new_var(b->s, off_of(b), kp_no_location()); }
kt_expr *kp_off_const(kp_simt_builder *b, int64_t value)
{
  return kp_new_const(b->s, KJIT_I32, value, kp_no_location());
}
kt_expr *kp_off_is(kp_simt_builder *b, int64_t value)
{
  return kp_new_compare(b->s, KJIT_OP_EQ, kp_off_value(b), kp_off_const(b, value));
}
kt_stmt *kp_set_off(kp_simt_builder *b, kt_expr *value)
{
  return kp_new_assign(b->s, off_of(b), value);
}

bool kp_is_masked(const kp_simt_builder *b, const kp_simt_position *position)
{
  return b->has_left || position->divergence != NULL;
}

void kp_guard(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  stmt->is_guarded = kp_is_masked(b, position);
  b->s->reads_off |= stmt->is_guarded;
}

void kp_restore_active(kp_simt_builder *b, kt_stmt *stmt, kp_off_place place,
                       const kp_simt_position *position)
{
  b->s->reads_off = true;
  kp_push_for_all(b,
                  kp_set_off(b, kp_new_cond(b->s, kp_off_is(b, kp_off_code(b, stmt, place)),
                                            kp_off_const(b, 0), kp_off_value(b))),
                  position);
}

/* ---- when `off` is not needed ---- */

/* Removes all assignments to `off`. This is possible if only the last run makes threads inactive,
 * because no statement then reads `off`. */
static kt_stmts drop_off(kp_simt_builder *b, const kt_stmts *list)
{
  kt_stmts kept = { 0 };
  for (size_t i = 0; i < list->count; i++) {
    kt_stmt *stmt = list->items[i];
    if (stmt->kind == KJ_TS_ASSIGN && stmt->var == b->s->kernel->off) continue;
    stmt->body = drop_off(b, &stmt->body);
    stmt->otherwise = drop_off(b, &stmt->otherwise);
    if (stmt->kind == KJ_TS_THREADS && !stmt->body.count) continue;
    kp_append_stmt(b->s, &kept, stmt);
  }
  return kept;
}

/* Removes an unused variable from the kernel's list of variables. */
static void drop_local(kt_instance *kernel, const kt_var *var)
{
  KJ_ASSERT(var->index < kernel->params.count + kernel->locals.count && var->kind != KJ_V_PARAM);
  size_t kept = 0;
  for (size_t i = 0; i < kernel->locals.count; i++) {
    kt_var *local = kernel->locals.items[i];
    if (local == var) continue;
    local->index = (uint32_t)(kernel->params.count + kept);
    kernel->locals.items[kept++] = local;
  }
  kernel->locals.count = kept;
}

void kp_settle_off(kp_simt_builder *b)
{
  kt_instance *kernel = b->s->kernel;
  if (!kernel->off) return;
  if (b->s->reads_off) {
    kernel->off->is_slot = true;
    return;
  }
  kernel->body = drop_off(b, &kernel->body);
  drop_local(kernel, kernel->off);
  kernel->off = NULL;
}

/* Builds synchronizations. */

static void build_warp(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  KJ_ASSERT(stmt->value && stmt->value->kind == KJ_T_BUILTIN);
  kp_flush_run(b);
  kt_stmt *warp = kt_new_tstmt(b->s->c, KJ_TS_WARP, stmt->location);
  warp->var = stmt->kind == KJ_TS_ASSIGN ? stmt->var : NULL;
  warp->value = stmt->value;
  kp_guard(b, warp, position);
  kp_emit_joint(b, warp);
}

void kp_emit_reduce(kp_simt_builder *b, kt_var *var, kt_expr *value, kj_location location,
                    const kp_simt_position *position)
{
  KJ_ASSERT(!var || var->is_uniform);
  kp_flush_run(b);
  kt_stmt *reduce = kt_new_tstmt(b->s->c, KJ_TS_BARRIER_REDUCE, location);
  reduce->var = var;
  reduce->value = value;
  kp_guard(b, reduce, position);
  kp_emit_joint(b, reduce);
}

/* Returns whether the boundary between two thread loops is sufficient for the barrier. The boundary
 * is not sufficient if each warp has its own thread loops. */
static bool is_boundary_enough(const kp_simt_builder *b, const kt_expr *barrier)
{
  KJ_ASSERT(barrier->kind == KJ_T_BUILTIN);
  return barrier->builtin->id == KJ_BUILTIN_SYNCTHREADS &&
         b->s->c->code->cpu_fibers != KJ_FIBERS_WARPS;
}

/* Builds the check of a divergent barrier. Each thread must either wait at the barrier or have left
 * the kernel. If some thread waits, threads that have taken another path would never arrive at the
 * barrier. */
static void check_barrier(kp_simt_builder *b, const kt_stmt *stmt, const kp_simt_position *position)
{
  KJ_ASSERT(position->divergence);
  kt_expr *waits = kp_any_active(b, position);
  kt_expr *is_elsewhere =
    kp_new_compare(b->s, KJIT_OP_GT, kp_off_value(b), kp_off_const(b, KJ_OFF_LEFT_KERNEL));
  kt_expr *none = kp_new_const(b->s, KJIT_BOOL, 0, stmt->location);
  kt_stmt *check = kt_new_if(b->s->c, kp_new_cond(b->s, waits, is_elsewhere, none), stmt->location);
  kt_stmt *failure = kt_new_tstmt(b->s->c, KJ_TS_FAIL, stmt->value->location);
  failure->failure = KJ_FAILURE_BARRIER;
  kp_append_stmt(b->s, &check->body, failure);
  b->s->reads_off = true;
  kp_push_for_all(b, check, position);
  b->has_left = b->may_idle = true;
  kp_flush_run(b);
}

static void build_barrier(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  kp_flush_run(b);
  uint32_t checks = b->s->c->request->checks;
  if (position->divergence) b->s->c->has_part_barrier = true;
  if ((checks & KJIT_CHECK_BARRIER) && position->divergence &&
      b->s->c->code->cpu_fibers != KJ_FIBERS_WARPS)
    check_barrier(b, stmt, position);
  if (stmt->kind == KJ_TS_EVALUATE && !is_boundary_enough(b, stmt->value)) {
    build_warp(b, stmt, position);
    return;
  }
  if (stmt->kind == KJ_TS_EVALUATE) {
    /* begins a new period between synchronizations for the access checks (native/watch.h) */
    if (b->s->c->code->is_watched) kp_emit_reduce(b, NULL, stmt->value, stmt->location, position);
    return;
  }
  if (stmt->var->is_uniform) {
    kp_emit_reduce(b, stmt->var, stmt->value, stmt->location, position);
    return;
  }
  kt_var *var = kp_new_uniform(b, stmt->var->name, stmt->var->type, stmt->location);
  kp_emit_reduce(b, var, stmt->value, stmt->location, position);
  kp_push_active(b, kp_new_assign(b->s, stmt->var, kp_new_var(b->s, var, stmt->location)),
                 position);
}

void kp_build_sync(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  KJ_ASSERT(stmt->value && stmt->value->kind == KJ_T_BUILTIN);
  if (stmt->value->builtin->flags & KJ_WARP) build_warp(b, stmt, position);
  else build_barrier(b, stmt, position);
}

/* ---- runs: statements without synchronization, which become one THREADS loop ----
 *
 * Uniform assignments are moved before the run in which they occur. */

void kp_flush_run(kp_simt_builder *b)
{
  if (!b->run.count) return;
  kt_stmt *threads = kt_new_tstmt(b->s->c, KJ_TS_THREADS, b->run.items[0]->location);
  threads->body = b->run;
  threads->is_guarded = b->is_run_guarded;
  b->s->reads_off |= threads->is_guarded;
  kp_append_stmt(b->s, b->out, threads);
  b->run = (kt_stmts){ 0 };
  b->run_number++;
  b->run_writes = false;
}

void kp_emit_joint(kp_simt_builder *b, kt_stmt *stmt) { kp_append_stmt(b->s, b->out, stmt); }

static void mention(void *data, kt_expr **expr)
{
  kp_simt_builder *b = data;
  const kt_var *var = (*expr)->kind == KJ_T_VAR ? (*expr)->var : NULL;
  if (var && var->simt) var->simt->run = b->run_number;
}

static void append_to_run(kp_simt_builder *b, kt_stmt *stmt)
{
  KJ_ASSERT(!stmt->is_joint);
  kt_stmts one = { .items = &stmt, .count = 1 };
  kt_walk_tstmts(&one, NULL, mention, b);
  kt_effects effects = { 0 };
  kt_add_stmt_effects(b->s->c, stmt, &effects);
  b->run_writes |= kt_has_any_effect(&effects);
  kp_append_stmt(b->s, &b->run, stmt);
}

/* Adds a statement for the active threads. The run continues even after a statement that makes some
 * threads inactive, because these threads jump to the end of the run. */
void kp_push_active(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  bool masked = kp_is_masked(b, position);
  if (b->run.count && !b->is_run_guarded && b->is_run_masked && masked) kp_flush_run(b);
  if (!b->run.count) b->is_run_guarded = b->is_run_masked = masked;
  append_to_run(b, stmt);
  if (kp_stmt_may_fail(stmt)) b->has_left = b->may_idle = true;
}

void kp_push_for_all(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  kp_flush_run(b);
  b->is_run_guarded = false;
  b->is_run_masked = kp_is_masked(b, position);
  append_to_run(b, stmt);
}

static bool is_assigned_in_run(const kp_simt_builder *b, const kt_stmt *stmt)
{
  if ((stmt->kind == KJ_TS_ASSIGN || stmt->kind == KJ_TS_FOR) && stmt->var->simt &&
      stmt->var->simt->run == b->run_number)
    return true;
  for (size_t i = 0; i < stmt->body.count; i++)
    if (is_assigned_in_run(b, stmt->body.items[i])) return true;
  for (size_t i = 0; i < stmt->otherwise.count; i++)
    if (is_assigned_in_run(b, stmt->otherwise.items[i])) return true;
  return false;
}

void kp_build_scalar(kp_simt_builder *b, kt_stmt *stmt)
{
  KJ_ASSERT(!stmt->is_joint);
  kt_effects effects = { 0 };
  kt_add_stmt_effects(b->s->c, stmt, &effects);
  if (is_assigned_in_run(b, stmt) || (effects.reads && b->run_writes)) kp_flush_run(b);
  stmt->body = kp_drop_declarations(b->s, &stmt->body);
  stmt->otherwise = kp_drop_declarations(b->s, &stmt->otherwise);
  kp_emit_joint(b, stmt);
}

kt_var *kp_new_uniform(kp_simt_builder *b, const char *name, kjit_type type, kj_location location)
{
  kt_var *var = kp_new_local(b->s, KJ_V_LET, name, type, location);
  var->is_uniform = true;
  return var;
}

/* ---- ranges ---- */

/* Returns an extent that is uniform. The language requires that extents are the same in all
 * threads. If this cannot be proved, the value in the first active thread is used. */
static kt_expr *make_extent(kp_simt_builder *b, kt_expr *extent, const kp_simt_position *position)
{
  if (kp_is_uniform(b->s, extent)) return extent;
  /* after a failure there may be no active thread, and a loop over an extent of 0 does nothing */
  bool may_fail = kp_may_fail(extent);
  kt_var *slot = kp_new_holder(b->s, may_fail ? KJ_V_VAR : KJ_V_LET, "extent", extent);
  if (may_fail)
    kp_push_for_all(b,
                    kp_new_assign(b->s, slot,
                                  kp_new_const(b->s, extent->type, 0, extent->location)),
                    position);
  kp_push_active(b, kp_new_assign(b->s, slot, extent), position);
  kt_var *var = kp_new_uniform(b, "extent", extent->type, extent->location);
  var->is_narrow = extent->is_narrow;
  kp_emit_reduce(b, var, kp_new_var(b->s, slot, extent->location), extent->location, position);
  return kp_new_var(b->s, var, extent->location);
}

static void build_range(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  KJ_ASSERT(kt_flow_of(stmt) == KJ_FLOW_RANGE);
  for (size_t i = 0; i < stmt->extents.count; i++)
    stmt->extents.items[i] = make_extent(b, stmt->extents.items[i], position);
  kp_flush_run(b);
  stmt->body = kp_drop_declarations(b->s, &stmt->body);
  /* a thread may leave the kernel before other threads have executed their iterations */
  if (kp_stmt_may_fail(stmt)) b->has_left = b->may_idle = true;
  kp_guard(b, stmt, position);
  kp_emit_joint(b, stmt);
}

/* ---- statements ---- */

static bool is_jump(const kt_stmt *stmt) { return kt_flow_of(stmt) == KJ_FLOW_JUMP; }

static void build_joint(kp_simt_builder *b, kt_stmt *stmt, const kp_simt_position *position)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_ASSIGN:
  case KJ_TS_EVALUATE: kp_build_sync(b, stmt, position); return;
  case KJ_TS_GRID_FOR:
  case KJ_TS_BLOCK_FOR: build_range(b, stmt, position); return;
  case KJ_TS_IF:
  case KJ_TS_FOR:
  case KJ_TS_WHILE:
  case KJ_TS_ONCE: kp_build_control(b, stmt, position); return;
  default:
    KJ_ASSERT(is_jump(stmt)); /* all active threads take this jump */
    kp_flush_run(b);
    kp_emit_joint(b, stmt);
    return;
  }
}

void kp_build_joint_list(kp_simt_builder *b, const kt_stmts *list, const kp_simt_position *position)
{
  for (size_t i = 0; i < list->count; i++) {
    kt_stmt *stmt = list->items[i];
    kp_simt_level level = kp_find_level(b->s, stmt, position);
    if (kp_needs_active(b, stmt, level, position) && kp_build_rest_if_any(b, list, i, position))
      return;
    if (level == KJ_LEVEL_JOINT) build_joint(b, stmt, position);
    else if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    else if (level == KJ_LEVEL_SCALAR) kp_build_scalar(b, stmt);
    else kp_build_thread(b, stmt, position);
    if (is_jump(stmt)) return; /* the following statements are never reached */
  }
}

/* ---- the whole kernel ---- */

static void build_kernel(kp_simt *s)
{
  kt_stmts from = s->kernel->body, to = { 0 };
  kp_simt_builder b = { .s = s, .out = &to, .run_number = 1 };
  kp_simt_position top = { 0 };
  if (s->has_mask)
    /* this assignment is needed even in a kernel without barriers, because a change of a uniform
     * variable also ends a run */
    kp_push_for_all(&b, kp_set_off(&b, kp_off_const(&b, 0)), &top);
  kp_build_joint_list(&b, &from, &top);
  kp_flush_run(&b);
  s->kernel->body = to;
  kp_settle_off(&b);
}

/* Finds statements and expressions that need the thread's position: prints and monitored
 * accesses. */
static void find_print(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_PRINT || stmt->is_watched) *(bool *)data = true;
}

static void find_shared_use(void *data, kt_expr **expr)
{
  const kt_expr *e = *expr;
  if (e->is_watched) *(bool *)data = true;
  if (e->kind == KJ_T_VAR && e->var->kind == KJ_V_SHARED) *(bool *)data = true;
  if (e->kind == KJ_T_CALL && e->instance->uses_positions) *(bool *)data = true;
}

static void mark_users_of_context(kt_compilation *c)
{
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (size_t i = 1; i < c->instances.count; i++) {
      kt_instance *instance = c->instances.items[i];
      if (instance->uses_positions) continue;
      kt_walk_tstmts(&instance->body, find_print, find_shared_use, &instance->uses_positions);
      has_changed |= instance->uses_positions;
    }
  }
}

void kp_make_thread_loops(kt_compilation *c)
{
  KJ_ASSERT(c->request->target.kind == KJ_TARGET_CPU && !c->request->symbol);
  kp_simt s = { .c = c, .kernel = c->instances.items[0] };
  kp_inline_synchronizing(&s);
  if (kp_is_range_only(&s)) {
    c->code->is_range_only = true;
    s.kernel->body = kp_drop_declarations(&s, &s.kernel->body);
    mark_users_of_context(c);
    return;
  }
  kp_find_uniform(&s);
  build_kernel(&s);
  kp_place_variables(&s);
  mark_users_of_context(c);
}
