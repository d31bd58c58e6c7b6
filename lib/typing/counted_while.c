/* Finds `while` loops whose maximum number of iterations is known when they start. */
#include "typing/typed.h"

/* The changes that a loop makes to its counter and to the value that limits it. */
typedef struct changes {
  const kt_var *counter, *stop;
  uint32_t count;
  bool stops, continues;
} changes;

static bool note_changes(void *data, const kt_stmt *stmt)
{
  changes *seen = data;
  if (stmt->var && stmt->var == seen->counter) seen->count++;
  if (stmt->var && stmt->var == seen->stop) seen->stops = true;
  for (size_t i = 0; i < stmt->vars.count; i++) {
    if (stmt->vars.items[i] == seen->counter) seen->count++;
    if (stmt->vars.items[i] == seen->stop) seen->stops = true;
  }
  if (stmt->kind == KJ_TS_CONTINUE) seen->continues = true;
  return false;
}

static bool adds_one(const kt_stmt *stmt, const kt_var *counter)
{
  const kt_expr *value = stmt->value;
  if (stmt->kind != KJ_TS_ASSIGN || stmt->var != counter || stmt->indices.count ||
      value->kind != KJ_T_BINARY || value->op != KJIT_OP_ADD)
    return false;
  return value->x->kind == KJ_T_VAR && value->x->var == counter && value->y->kind == KJ_T_CONST &&
         value->y->integer == 1;
}

/* Returns whether every iteration that does not leave the loop adds 1 to the counter, and nothing
 * else changes the counter or the limit. */
static bool counts_up(const kt_stmt *loop, const kt_var *counter, const kt_var *stop)
{
  changes seen = { .counter = counter, .stop = stop };
  kt_any_in_tstmts(&loop->body, note_changes, NULL, &seen);
  if (seen.count != 1 || seen.stops || seen.continues) return false;
  for (size_t i = 0; i < loop->body.count; i++)
    if (adds_one(loop->body.items[i], counter)) return true;
  return false;
}

/* Finds a comparison of a counter with a limit. The loop's condition is this comparison, or an
 * `and` of several conditions that include it. */
static bool find_in(const kt_stmt *loop, const kt_expr *condition, kt_counter *found)
{
  if (condition->kind == KJ_T_LOGIC && condition->op == KJIT_OP_AND)
    return find_in(loop, condition->x, found) || find_in(loop, condition->y, found);
  bool is_less = condition->op == KJIT_OP_LT;
  if (condition->kind != KJ_T_COMPARE || (!is_less && condition->op != KJIT_OP_GT)) return false;
  const kt_expr *at = is_less ? condition->x : condition->y,
                *stop = is_less ? condition->y : condition->x;
  if (at->kind != KJ_T_VAR || !ki_is_integral(at->type) || at->type != stop->type) return false;
  /* an untyped number that is passed at launch is converted before it is compared */
  const kt_expr *value = stop->kind == KJ_T_CONVERT ? stop->x : stop;
  if (value->kind != KJ_T_CONST && value->kind != KJ_T_VAR) return false;
  *found = (kt_counter){ .at = at, .stop = stop };
  return counts_up(loop, at->var, value->kind == KJ_T_VAR ? value->var : NULL);
}

bool kt_find_counter(const kt_stmt *loop, kt_counter *found)
{
  KJ_ASSERT(loop->kind == KJ_TS_WHILE);
  return find_in(loop, loop->value, found);
}
