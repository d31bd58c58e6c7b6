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
#include "pass/simt_build.h"

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

static bool is_jump(const kj_tstmt *stmt)
{
  return stmt->kind == KJ_TS_BREAK || stmt->kind == KJ_TS_CONTINUE || stmt->kind == KJ_TS_RETURN ||
         stmt->kind == KJ_TS_LEAVE;
}

static void build_joint(kj_simt_builder *b, kj_tstmt *stmt, const kj_simt_position *position)
{
  switch (stmt->kind) {
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
    c->is_range_only = true;
    s.kernel->body = kj_drop_declarations(&s, &s.kernel->body);
    mark_users_of_context(c);
    return;
  }
  kj_find_uniform(&s);
  build_kernel(&s);
  kj_place_variables(&s);
  mark_users_of_context(c);
}
