/* Finds loops in which a thread only waits for another thread. On the CPU, the threads in a block
 * are executed one after the other, so the awaited thread never runs. Interruptible code reports a
 * failure in such a loop (lower/poll.c). On a GPU the other thread would run. */
#include "pass/pass.h"

typedef struct waiting {
  const kt_stmt *loop;
  bool reads; /* the loop reads memory to which other threads can write */
} waiting;

#define AT_ALL_SCOPES(id) \
  KJ_BUILTIN_ATOMIC_##id, KJ_BUILTIN_ATOMIC_##id##_BLOCK, KJ_BUILTIN_ATOMIC_##id##_SYSTEM

static bool is_among(ki_builtin_id id, const ki_builtin_id *ids, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (ids[i] == id) return true;
  return false;
}

/* Returns whether repeating the atomic operation has no effect as long as no other thread runs,
 * because the operation stores the same value again or adds 0. Atomic loads are often written as
 * additions of 0. */
static bool is_idle_atomic(const kt_expr *e)
{
  static const ki_builtin_id always[] = { AT_ALL_SCOPES(CAS),  AT_ALL_SCOPES(EXCH),
                                          AT_ALL_SCOPES(LOAD), AT_ALL_SCOPES(MIN),
                                          AT_ALL_SCOPES(MAX),  AT_ALL_SCOPES(AND),
                                          AT_ALL_SCOPES(OR) },
                             of_zero[] = { AT_ALL_SCOPES(ADD), AT_ALL_SCOPES(SUB),
                                           AT_ALL_SCOPES(XOR) };
  ki_builtin_id id = e->builtin->id;
  if (is_among(id, always, sizeof always / sizeof *always)) return true;
  return is_among(id, of_zero, sizeof of_zero / sizeof *of_zero) && e->args.count == 1 &&
         kt_is_constant(e->args.items[0]) && !e->args.items[0]->integer;
}

static bool is_pause(ki_builtin_id id)
{
  static const ki_builtin_id pauses[] = { KJ_BUILTIN_NANOSLEEP, KJ_BUILTIN_THREADFENCE,
                                          KJ_BUILTIN_THREADFENCE_BLOCK,
                                          KJ_BUILTIN_THREADFENCE_SYSTEM };
  return is_among(id, pauses, sizeof pauses / sizeof *pauses);
}

static bool does_more_in_list(waiting *w, const kt_stmts *list);

/* Returns whether this expression can end the loop without another thread. */
static bool expr_does_more(void *data, const kt_expr *e)
{
  waiting *w = data;
  if (e->kind == KJ_T_LOAD) w->reads = true;
  if (e->kind == KJ_T_CALL) {
    const kt_instance *callee = e->instance;
    return callee->function->is_extern || callee->is_recursive || callee->reaches_recursion ||
           does_more_in_list(w, &callee->body);
  }
  if (e->kind != KJ_T_BUILTIN || e->builtin->flags & KJ_PURE || is_pause(e->builtin->id))
    return false;
  bool is_idle = is_idle_atomic(e);
  w->reads |= is_idle;
  return !is_idle;
}

typedef struct assigned {
  const kt_stmt *loop;
  const kt_var *var;
} assigned;

static bool is_assignment_of(void *data, const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_ASSIGN && stmt->var == ((const assigned *)data)->var;
}

/* Returns whether the expression is a variable that the loop assigns, so that an iteration can read
 * a value from an earlier iteration. */
static bool is_carried(void *data, const kt_expr *e)
{
  assigned of = { .loop = ((const waiting *)data)->loop, .var = e->var };
  return e->kind == KJ_T_VAR && e->var->kind == KJ_V_VAR &&
         kt_any_in_tstmt(of.loop, is_assignment_of, NULL, &of);
}

static bool stmt_does_more(void *data, const kt_stmt *stmt)
{
  switch (KJ_AMONG(stmt->kind)) {
  case KJ_TS_ASSIGN: return kt_any_texpr(stmt->value, is_carried, data);
  case KJ_TS_EVALUATE:
  case KJ_TS_IF:
  case KJ_TS_BREAK:
  case KJ_TS_CONTINUE:
  case KJ_TS_RETURN:
  case KJ_TS_FAIL:
  case KJ_TS_ONCE:
  case KJ_TS_LEAVE: return false;
  case KJ_TS_WHILE: return stmt != ((const waiting *)data)->loop;
  default: return true;
  }
}

static bool does_more_in_list(waiting *w, const kt_stmts *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (kt_any_in_tstmt(list->items[i], stmt_does_more, expr_does_more, w)) return true;
  return false;
}

bool kp_only_waits(const kt_stmt *loop)
{
  waiting w = { .loop = loop };
  return loop->kind == KJ_TS_WHILE && !kt_any_in_tstmt(loop, stmt_does_more, expr_does_more, &w) &&
         w.reads;
}
