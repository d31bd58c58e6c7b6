/* Static properties of loops: variables that a loop only adds to, the trip count of a loop that
 * halves a number, and counters that are never 0. */
#include "derive/derive.h"

/* ---- variables that a loop only adds to ---- */

/* A set of variables (the members), each of which is read only in sums, `s = s + e`, and in copies
 * to other members, `t = s`. */
typedef struct members {
  const kd_derivation *d;
  bool *is_member; /* indexed by variable */
  bool has_changed, is_broken;
} members;

static bool is_member(void *data, const kt_expr *e)
{
  const members *m = data;
  return e->kind == KJ_T_VAR && e->var->index < m->d->count && m->is_member[e->var->index];
}

static bool reads(members *m, const kt_expr *e) { return kt_any_texpr(e, is_member, m); }

/* Returns whether the members occur in the expression only as terms of one sum. */
static bool only_adds(members *m, const kt_expr *e)
{
  if (e->kind == KJ_T_VAR) return true;
  bool is_sum = e->kind == KJ_T_BINARY && (e->op == KJIT_OP_ADD || e->op == KJIT_OP_SUB);
  return is_sum ? only_adds(m, e->x) && only_adds(m, e->y) : !reads(m, e);
}

static void look(void *data, kt_stmt *stmt)
{
  members *m = data;
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++) {
    const kt_expr *operand = kt_stmt_operand(stmt, i);
    if (!operand || !reads(m, operand)) continue;
    bool is_value = stmt->kind == KJ_TS_ASSIGN && operand == stmt->value;
    if (!is_value || !only_adds(m, operand)) m->is_broken = true;
    else if (!m->is_member[stmt->var->index])
      m->is_member[stmt->var->index] = m->has_changed = true;
  }
}

bool kd_is_sum(const kd_derivation *d, const kt_stmt *loop, const kt_var *var)
{
  kt_stmt *source = (kt_stmt *)loop;
  members m = { .d = d, .is_member = KJ_NEW_ARRAY(d->arena, bool, d->count + 1) };
  if (!kd_holds_float(d->c, var->type)) return false;
  m.is_member[var->index] = true;
  do {
    m.has_changed = false;
    kt_walk_tstmts(&(kt_stmts){ .items = &source, .count = 1 }, look, NULL, &m);
  } while (m.has_changed && !m.is_broken);
  return !m.is_broken;
}

/* ---- loops that halve a number: `while n > 0 { ...; n = n // 2 }` ---- */

/* If the condition is `n > 0` or `n >= 1`, returns the variable n, otherwise NULL. */
static const kt_var *positive_var(const kt_expr *condition)
{
  if (condition->kind != KJ_T_COMPARE || condition->x->kind != KJ_T_VAR ||
      condition->y->kind != KJ_T_CONST)
    return NULL;
  bool is_above = condition->op == KJIT_OP_GT && condition->y->integer == 0,
       is_least = condition->op == KJIT_OP_GE && condition->y->integer == 1;
  return is_above || is_least ? condition->x->var : NULL;
}

static bool halves(const kt_stmt *stmt, const kt_var *var)
{
  const kt_expr *value = stmt->value;
  bool is_own = stmt->kind == KJ_TS_ASSIGN && stmt->var == var && value->kind == KJ_T_BINARY &&
                value->x->kind == KJ_T_VAR && value->x->var == var && value->y->kind == KJ_T_CONST;
  if (!is_own) return false;
  return (value->op == KJIT_OP_FLOORDIV && value->y->integer >= 2) ||
         (value->op == KJIT_OP_SHR && value->y->integer >= 1);
}

static bool assigns(void *data, const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_ASSIGN && stmt->var == data;
}

uint32_t kd_count_halvings(const kd_derivation *d, const kt_stmt *loop)
{
  const kt_var *var = loop->kind == KJ_TS_WHILE ? positive_var(loop->value) : NULL;
  bool has_halving = false;
  if (!var || !kt_is_integer(d->c, var->type)) return 0;
  for (size_t i = 0; i < loop->body.count; i++) {
    const kt_stmt *stmt = loop->body.items[i];
    if (halves(stmt, var)) has_halving = true;
    else if (kt_any_in_tstmt(stmt, assigns, NULL, (void *)var)) return 0;
  }
  return has_halving ? 8 * (uint32_t)ki_type(d->c->types, var->type)->size_bytes : 0;
}

/* ---- counters that are never 0: `for i in range(1, n)` ---- */

typedef struct counter_search {
  const kt_var *var;
  int64_t least; /* lower bound of the counter; negative if none is known */
} counter_search;

static bool counts_up(void *data, const kt_stmt *stmt)
{
  counter_search *search = data;
  if (stmt->kind != KJ_TS_FOR || stmt->var != search->var) return false;
  bool is_known = stmt->first->kind == KJ_T_CONST && stmt->step->kind == KJ_T_CONST;
  if (is_known && stmt->step->integer > 0) search->least = stmt->first->integer;
  return true;
}

bool kd_is_positive_counter(const kd_derivation *d, const kt_expr *e)
{
  if (e->kind == KJ_T_CONVERT) {
    const ki_type_info *from = ki_type(d->c->types, e->x->type),
                       *to = ki_type(d->c->types, e->type);
    /* conversion to a narrower type could change a nonzero counter to 0 */
    return ki_is_integral(e->type) && to->size_bytes >= from->size_bytes &&
           kd_is_positive_counter(d, e->x);
  }
  int64_t more = 0;
  /* The sum of two numbers that are not negative is negative if it overflows, so it is not 0. */
  if (e->kind == KJ_T_BINARY && e->op == KJIT_OP_ADD && ki_is_signed(e->type)) {
    const kt_expr *literal = e->y->kind == KJ_T_CONST ? e->y : e->x;
    if (literal->kind != KJ_T_CONST || literal->integer < 0) return false;
    more = literal->integer;
    e = literal == e->y ? e->x : e->y;
  }
  counter_search search = { .var = e->kind == KJ_T_VAR ? e->var : NULL, .least = -1 };
  if (!search.var || search.var->kind != KJ_V_LOOP) return false;
  kt_any_in_tstmts(&d->body, counts_up, NULL, &search);
  return search.least >= 0 && (search.least > 0 || more > 0);
}
