/* CPU: prevents code outside of thread loops from running without an active thread.
 *
 * If some threads can be inactive, all threads in a block can be inactive. Thread loops then do
 * nothing. However, a loop or a long call outside of thread loops would still run, and might never
 * end, because no active thread determines its values. The builder therefore tracks `may_idle`,
 * whether all threads can be inactive at this point. Before the first statement that needs an
 * active thread, it emits a test for an active thread:
 *
 *   - If threads can be inactive only because they have left the kernel, the block returns.
 *   - Otherwise inactive threads wait for a later statement, and the rest of the list is placed
 * under an IF.
 *
 * Assignments that contain no loops run without a test. They have no effects, load nothing
 * (uniform.c) and take a bounded time, and a test would split the surrounding thread loops. */
#include "pass/simt.h"

/* maximum number of iterations of constant loops that may run without an active thread; for nested
 * loops, the maximum of the product of their iterations */
enum { MAX_IDLE_ITERATIONS = 4096 };

static bool is_long_call(void *data, const kt_expr *expr)
{
  const kt_compilation *c = data;
  if (expr->kind != KJ_T_CALL) return false;
  kt_effects effects = { 0 };
  kt_add_effects(c, expr, &effects);
  return effects.has_loops;
}

bool kp_has_long_operand(const kt_compilation *c, const kt_stmt *stmt)
{
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++)
    if (kt_any_texpr(kt_stmt_operand(stmt, i), is_long_call, (void *)c)) return true;
  return false;
}

static bool is_long_list(const kt_compilation *c, const kt_stmts *list, uint64_t iterations);

/* Returns whether executing the statement can take long or never end. iterations: the product of
 * the trip counts of the surrounding loops. */
static bool is_long_stmt(const kt_compilation *c, const kt_stmt *stmt, uint64_t iterations)
{
  if (kp_has_long_operand(c, stmt)) return true;
  if (kt_flow_of(stmt) == KJ_FLOW_LOOP) {
    uint64_t trips = stmt->kind == KJ_TS_FOR ? kp_short_trip_count(stmt) : 0;
    iterations *= trips;
    if (!iterations || iterations > MAX_IDLE_ITERATIONS) return true;
  }
  return is_long_list(c, &stmt->body, iterations) || is_long_list(c, &stmt->otherwise, iterations);
}

static bool is_long_list(const kt_compilation *c, const kt_stmts *list, uint64_t iterations)
{
  for (size_t i = 0; i < list->count; i++)
    if (is_long_stmt(c, list->items[i], iterations)) return true;
  return false;
}

bool kp_needs_active(kp_simt_builder *b, kt_stmt *stmt, kp_simt_level level,
                     const kp_simt_position *position)
{
  if (!b->may_idle || !kp_is_masked(b, position) || level == KJ_LEVEL_THREAD) return false;
  if (level == KJ_LEVEL_SCALAR) return is_long_stmt(b->s->c, stmt, 1);
  /* the statements in a range's body are built one by one, each with its own test */
  if (kt_flow_of(stmt) == KJ_FLOW_RANGE) return true;
  if (kt_flow_of(stmt) == KJ_FLOW_LOOP) return kp_needs_active_first(b, stmt, position);
  return stmt->kind == KJ_TS_IF && kp_has_long_operand(b->s->c, stmt);
}

bool kp_build_rest_if_any(kp_simt_builder *b, const kt_stmts *list, size_t first,
                          const kp_simt_position *position)
{
  KJ_ASSERT(b->may_idle && kp_is_masked(b, position) && first < list->count);
  kt_expr *any = kp_any_active(b, position);
  b->may_idle = false;
  if (!position->divergence) {
    kt_stmt *leave =
      kt_new_if(b->s->c, kp_new_unary(b->s, KJIT_OP_NOT, any), list->items[first]->location);
    kp_append_stmt(b->s, &leave->body, kt_new_tstmt(b->s->c, KJ_TS_RETURN, kp_no_location()));
    kp_emit_joint(b, leave);
    return false;
  }
  kt_stmts rest = { .items = list->items + first, .count = list->count - first };
  kt_stmt *guarded = kt_new_if(b->s->c, any, list->items[first]->location);
  kp_build_inside(b, &guarded->body, &rest, position);
  kp_emit_joint(b, guarded);
  b->may_idle = true;
  return true;
}
