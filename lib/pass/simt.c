/* CPU: the kernel for one thread becomes loops over the threads of a block (kj_make_thread_loops).
 *
 * Needs: typed instances, block shape known. Guarantees: the kernel's body consists of uniform
 * control flow and uniform assignments, THREADS loops around what is left, WARP and BARRIER_REDUCE
 * between them; variables that live across thread loops are is_slot; nothing inside THREADS
 * synchronizes.
 *
 * A run of statements without synchronization becomes one THREADS; a barrier is the boundary
 * between two. Control flow that holds a synchronization stays outside the thread loops: as it is
 * where all threads take it together (uniform.c), else under a mask. The mask is one slot variable,
 * `off`: a thread is active where it is 0, and otherwise holds the code of the place where it
 * becomes active again: the else part or end of a divergent if, the next iteration or end of a
 * loop, the end of an inlined function; or of none: it has left the kernel. Uniform assignments are
 * moved in front of the run they interrupt, unless the run has used the variable before or writes
 * memory that the value is loaded from.
 *
 * A kernel of grid_ranges that looks at no position and shares nothing needs no threads: it stays
 * as it is, and a block is one contiguous piece (is_range_only). */
#include "pass/simt.h"

/* Which threads are active: the slot variable `off`, see simt.c. */

enum { PLACES_A_SITE = 2 };

static kj_tvar *off_of(kj_simt_builder *b)
{
  kj_instance *kernel = b->s->kernel;
  if (!kernel->off) {
    kernel->off = kj_new_local(b->s, KJ_V_VAR, "off", KJIT_I32, kj_no_location());
    kernel->off->simt = KJ_NEW(b->s->c->arena, kj_simt_variable);
  }
  return kernel->off;
}

static uint32_t site_of(kj_simt_builder *b, kj_tstmt *stmt)
{
  if (!stmt->site) stmt->site = ++b->s->site_count;
  return stmt->site;
}

int64_t kj_off_code(kj_simt_builder *b, kj_tstmt *stmt, kj_off_place place)
{
  return KJ_OFF_LEFT_KERNEL + 1 + (int64_t)(site_of(b, stmt) - 1) * PLACES_A_SITE + place;
}

kj_texpr *kj_off_value(kj_simt_builder *b) { return kj_new_var(b->s, off_of(b), kj_no_location()); }
kj_texpr *kj_off_const(kj_simt_builder *b, int64_t value)
{
  return kj_new_const(b->s, KJIT_I32, value, kj_no_location());
}
kj_texpr *kj_off_is(kj_simt_builder *b, int64_t value)
{
  return kj_new_compare(b->s, KJIT_EQ, kj_off_value(b), kj_off_const(b, value));
}
kj_tstmt *kj_set_off(kj_simt_builder *b, kj_texpr *value)
{
  return kj_new_assign(b->s, off_of(b), value);
}

bool kj_is_masked(const kj_simt_builder *b, const kj_simt_position *position)
{
  return b->has_left || position->divergence != NULL;
}

void kj_guard(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  stmt->is_guarded = kj_is_masked(b, position);
  b->s->reads_off |= stmt->is_guarded;
}

void kj_restore_active(kj_simt_builder *b, kj_tstmt *stmt, kj_off_place place,
                       const kj_simt_position *position)
{
  b->s->reads_off = true;
  kj_push_for_all(b,
                  kj_set_off(b, kj_new_cond(b->s, kj_off_is(b, kj_off_code(b, stmt, place)),
                                            kj_off_const(b, 0), kj_off_value(b))),
                  position);
}

/* ---- the end ---- */

/* Nobody asks which threads are off: only the last run turns some off. */
static kj_tstmts drop_off(kj_simt_builder *b, const kj_tstmts *list)
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

void kj_settle_off(kj_simt_builder *b)
{
  kj_instance *kernel = b->s->kernel;
  if (!kernel->off) return;
  if (b->s->reads_off) {
    kernel->off->is_slot = true;
    return;
  }
  kernel->body = drop_off(b, &kernel->body);
  drop_local(kernel, kernel->off);
  kernel->off = NULL;
}

/* Synchronizations: what the threads do together. */

static void build_warp(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_flush_run(b);
  kj_tstmt *warp = kj_new_tstmt(b->s->c, KJ_TS_WARP, stmt->location);
  warp->var = stmt->kind == KJ_TS_ASSIGN ? stmt->var : NULL;
  warp->value = stmt->value;
  kj_guard(b, warp, position);
  kj_emit_joint(b, warp);
}

void kj_emit_reduce(kj_simt_builder *b, kj_tvar *var, kj_texpr *value, kj_location location,
                    const kj_simt_position *position)
{
  kj_flush_run(b);
  kj_tstmt *reduce = kj_new_tstmt(b->s->c, KJ_TS_BARRIER_REDUCE, location);
  reduce->var = var;
  reduce->value = value;
  kj_guard(b, reduce, position);
  kj_emit_joint(b, reduce);
}

/* The boundary between two thread loops is enough, unless each warp has its own. */
static bool is_boundary_enough(const kj_simt_builder *b, const kj_texpr *barrier)
{
  return barrier->builtin->id == KJ_BUILTIN_SYNCTHREADS &&
         b->s->c->code->cpu_parts != KJ_PARTS_WARPS;
}

/* Threads that wait at the barrier or have left the kernel are fine; where any waits, the others
 * are somewhere else and would never come. */
static void check_barrier(kj_simt_builder *b, const kj_tstmt *stmt,
                          const kj_simt_position *position)
{
  kj_texpr *waits = kj_any_active(b, position);
  kj_texpr *is_elsewhere =
    kj_new_compare(b->s, KJIT_GT, kj_off_value(b), kj_off_const(b, KJ_OFF_LEFT_KERNEL));
  kj_texpr *none = kj_new_const(b->s, KJIT_BOOL, 0, stmt->location);
  kj_tstmt *check = kj_new_if(b->s, kj_new_cond(b->s, waits, is_elsewhere, none), stmt->location);
  kj_tstmt *failure = kj_new_tstmt(b->s->c, KJ_TS_FAIL, stmt->value->location);
  failure->failure = KJ_FAILURE_BARRIER;
  kj_append_stmt(b->s, &check->body, failure);
  b->s->reads_off = true;
  kj_push_for_all(b, check, position);
  b->has_left = true;
  kj_flush_run(b);
}

static void build_barrier(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_flush_run(b);
  uint32_t checks = b->s->c->request->checks;
  if ((checks & KJIT_CHECK_BARRIER) && position->divergence &&
      b->s->c->code->cpu_parts != KJ_PARTS_WARPS)
    check_barrier(b, stmt, position);
  if (stmt->kind == KJ_TS_EVALUATE && !is_boundary_enough(b, stmt->value)) {
    build_warp(b, stmt, position);
    return;
  }
  if (stmt->kind == KJ_TS_EVALUATE) {
    /* time goes on */
    if (b->s->c->code->is_watched) kj_emit_reduce(b, NULL, stmt->value, stmt->location, position);
    return;
  }
  if (stmt->var->is_uniform) {
    kj_emit_reduce(b, stmt->var, stmt->value, stmt->location, position);
    return;
  }
  kj_tvar *var = kj_new_uniform(b, stmt->var->name, stmt->var->type, stmt->location);
  kj_emit_reduce(b, var, stmt->value, stmt->location, position);
  kj_push_active(b, kj_new_assign(b->s, stmt->var, kj_new_var(b->s, var, stmt->location)),
                 position);
}

void kj_build_sync(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  if (stmt->value->builtin->flags & KJ_WARP) build_warp(b, stmt, position);
  else build_barrier(b, stmt, position);
}

/* Runs of statements without synchronization: each becomes one THREADS. Uniform assignments are
 * moved in front of the run that they interrupt. */

void kj_flush_run(kj_simt_builder *b)
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

void kj_emit_joint(kj_simt_builder *b, kj_tstmt *stmt) { kj_append_stmt(b->s, b->out, stmt); }

static void mention(void *data, kj_texpr **expr)
{
  kj_simt_builder *b = data;
  const kj_tvar *var = (*expr)->kind == KJ_T_VAR ? (*expr)->var : NULL;
  if (var && var->simt) var->simt->run = b->run_number;
}

static void append_to_run(kj_simt_builder *b, kj_tstmt *stmt)
{
  kj_tstmts one = { .items = &stmt, .count = 1 };
  kj_walk_tstmts(&one, NULL, mention, b);
  kj_simt_effects effects = { 0 };
  kj_find_stmt_effects(stmt, &effects);
  b->run_writes |= effects.writes;
  kj_append_stmt(b->s, &b->run, stmt);
}

/* A run that started before some of them were turned off goes on: those have jumped to its end. */
void kj_push_active(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  bool masked = kj_is_masked(b, position);
  if (b->run.count && !b->is_run_guarded && b->is_run_masked && masked) kj_flush_run(b);
  if (!b->run.count) b->is_run_guarded = b->is_run_masked = masked;
  append_to_run(b, stmt);
  if (kj_stmt_may_fail(stmt)) b->has_left = true;
}

void kj_push_for_all(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  kj_flush_run(b);
  b->is_run_guarded = false;
  b->is_run_masked = kj_is_masked(b, position);
  append_to_run(b, stmt);
}

static bool is_assigned_in_run(const kj_simt_builder *b, const kj_tstmt *stmt)
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

void kj_build_scalar(kj_simt_builder *b, kj_tstmt *stmt)
{
  kj_simt_effects effects = { 0 };
  kj_find_stmt_effects(stmt, &effects);
  if (is_assigned_in_run(b, stmt) || (effects.loads && b->run_writes)) kj_flush_run(b);
  stmt->body = kj_drop_declarations(b->s, &stmt->body);
  stmt->otherwise = kj_drop_declarations(b->s, &stmt->otherwise);
  kj_emit_joint(b, stmt);
}

kj_tvar *kj_new_uniform(kj_simt_builder *b, const char *name, kjit_type type, kj_location location)
{
  kj_tvar *var = kj_new_local(b->s, KJ_V_LET, name, type, location);
  var->is_uniform = true;
  return var;
}

/* ---- ranges ---- */

/* Extents are the same in all threads by the rules of the language: where that cannot be seen,
 * those of the first active thread are taken. */
static kj_texpr *make_extent(kj_simt_builder *b, kj_texpr *extent, const kj_simt_position *position)
{
  if (kj_is_uniform(b->s, extent)) return extent;
  bool may_fail = kj_may_fail(extent); /* then there may be no active thread left: no iterations */
  kj_tvar *slot = kj_new_holder(b->s, may_fail ? KJ_V_VAR : KJ_V_LET, "extent", extent);
  if (may_fail)
    kj_push_for_all(b,
                    kj_new_assign(b->s, slot,
                                  kj_new_const(b->s, extent->type, 0, extent->location)),
                    position);
  kj_push_active(b, kj_new_assign(b->s, slot, extent), position);
  kj_tvar *var = kj_new_uniform(b, "extent", extent->type, extent->location);
  var->is_narrow = extent->is_narrow;
  kj_emit_reduce(b, var, kj_new_var(b->s, slot, extent->location), extent->location, position);
  return kj_new_var(b->s, var, extent->location);
}

static void build_range(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  for (size_t i = 0; i < stmt->extents.count; i++)
    stmt->extents.items[i] = make_extent(b, stmt->extents.items[i], position);
  kj_flush_run(b);
  stmt->body = kj_drop_declarations(b->s, &stmt->body);
  b->has_left |= kj_stmt_may_fail(stmt); /* in one of its rounds, before others */
  kj_guard(b, stmt, position);
  kj_emit_joint(b, stmt);
}

/* ---- statements ---- */

static bool is_jump(const kj_tstmt *stmt) { return kj_flow_of(stmt) == KJ_FLOW_JUMP; }

static void build_joint(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_ASSIGN:
  case KJ_TS_EVALUATE: kj_build_sync(b, stmt, position); return;
  case KJ_TS_GRID_FOR:
  case KJ_TS_BLOCK_FOR: build_range(b, stmt, position); return;
  case KJ_TS_IF:
  case KJ_TS_FOR:
  case KJ_TS_WHILE:
  case KJ_TS_ONCE: kj_build_control(b, stmt, position); return;
  default:
    kj_flush_run(b);
    kj_emit_joint(b, stmt);
    return; /* a jump that all active threads take */
  }
}

void kj_build_joint_list(kj_simt_builder *b, const kj_tstmts *list,
                         const kj_simt_position *position)
{
  for (size_t i = 0; i < list->count; i++) {
    kj_tstmt *stmt = list->items[i];
    kj_simt_level level = kj_find_level(b->s, stmt, position);
    if (level == KJ_LEVEL_JOINT) build_joint(b, stmt, position);
    else if (stmt->kind == KJ_TS_ASSIGN && !stmt->value) continue;
    else if (level == KJ_LEVEL_SCALAR) kj_build_scalar(b, stmt);
    else kj_build_thread(b, stmt, position);
    if (is_jump(stmt)) return; /* what follows is never reached */
  }
}

/* ---- the whole ---- */

static void build_kernel(kj_simt *s)
{
  kj_tstmts from = s->kernel->body, to = { 0 };
  kj_simt_builder b = { .s = s, .out = &to, .run_number = 1 };
  kj_simt_position top = { 0 };
  if (s->has_mask)
    /* even in kernels without barriers: a uniform variable that changes ends a run */
    kj_push_for_all(&b, kj_set_off(&b, kj_off_const(&b, 0)), &top);
  kj_build_joint_list(&b, &from, &top);
  kj_flush_run(&b);
  s->kernel->body = to;
  kj_settle_off(&b);
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
    c->code->is_range_only = true;
    s.kernel->body = kj_drop_declarations(&s, &s.kernel->body);
    mark_users_of_context(c);
    return;
  }
  kj_find_uniform(&s);
  build_kernel(&s);
  kj_place_variables(&s);
  mark_users_of_context(c);
}
