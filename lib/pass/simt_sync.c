/* Synchronizations: what the threads do together. */
#include "pass/simt_build.h"

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
  return barrier->builtin->id == KJ_BUILTIN_SYNCTHREADS && b->s->c->cpu_parts != KJ_PARTS_WARPS;
}

/* Threads that wait at the barrier or have left the kernel are fine; the others are somewhere else
 * and would never come. */
static void check_barrier(kj_simt_builder *b, const kj_tstmt *stmt,
                          const kj_simt_position *position)
{
  kj_tstmt *check =
    kj_new_if(b->s,
              kj_new_compare(b->s, KJIT_GT, kj_off_value(b), kj_off_const(b, KJ_OFF_LEFT_KERNEL)),
              stmt->location);
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
  if ((checks & KJIT_CHECK_BARRIER) && position->divergence && b->s->c->cpu_parts != KJ_PARTS_WARPS)
    check_barrier(b, stmt, position);
  if (stmt->kind == KJ_TS_EVALUATE && !is_boundary_enough(b, stmt->value)) {
    build_warp(b, stmt, position);
    return;
  }
  if (stmt->kind == KJ_TS_EVALUATE) {
    /* time goes on */
    if (b->s->c->has_watched) kj_emit_reduce(b, NULL, stmt->value, stmt->location, position);
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
