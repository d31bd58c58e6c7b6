/* Replaces remainders by selections in loops over a period. In a loop over i from 0 to n - 1, the
 * remainder (i + 1) % n is i + 1, and the remainders (i - 1) % n and (i + n - 1) % n are i - 1,
 * except at one end of the range. The pass replaces them by a comparison and a selection, because a
 * 64-bit remainder takes about 70 instructions on a GPU.
 *
 * Needs: typed instances whose checks are marked. Guarantees: no value changes. The pass does not
 * replace a sum that could leave the range of its type. It also does not replace the remainder of
 * an unsigned i - 1, because i - 1 wraps around for i = 0. */
#include "pass/interval.h"
#include "pass/pass.h"

typedef struct pass {
  kt_compilation *c;
  const kt_instance *instance;
  uint32_t *assignments;       /* number of assignments to each variable of the instance */
  const kt_expr **definitions; /* indexed by variable: the value that is assigned to it last */
  const kt_expr **periods; /* indexed by variable: the period; the variable is at least 0 and less
                            * than the period */
} pass;

/* ---- facts about variables ---- */

static void count_assignment(void *data, kt_stmt *stmt)
{
  pass *p = data;
  if (stmt->kind != KJ_TS_ASSIGN) return;
  p->assignments[stmt->var->index]++;
  p->definitions[stmt->var->index] = stmt->value;
}

/* Returns the expression without conversions that preserve the value. */
static const kt_expr *strip(const pass *p, const kt_expr *e)
{
  while (e->kind == KJ_T_CONVERT) {
    kp_integer to = kp_find_integer(p->c->types, e->type),
               from = kp_find_integer(p->c->types, e->x->type);
    bool is_kept =
      to.bits && from.bits &&
      (to.is_signed == from.is_signed ? to.bits >= from.bits : to.is_signed && to.bits > from.bits);
    if (!is_kept) return e;
    e = e->x;
  }
  return e;
}

/* Returns whether the variable belongs to the instance. A variable that another pass has copied can
 * have a period that refers to a variable of another instance. */
static bool is_of_instance(const pass *p, const kt_var *var)
{
  const kt_vars *params = &p->instance->params, *locals = &p->instance->locals;
  uint32_t index = var->index;
  if (index < params->count) return params->items[index] == var;
  index -= (uint32_t)params->count;
  return index < locals->count && locals->items[index] == var;
}

static bool is_fixed(const pass *p, const kt_var *var)
{
  return p->assignments[var->index] <= (var->kind == KJ_V_PARAM ? 0 : 1);
}

/* Returns whether the expression has the same value during the whole loop. It must be an array's
 * extent, or a variable. */
static bool is_period(const pass *p, const kt_expr *e)
{
  const kt_var *of = e->kind == KJ_T_EXTENT ? e->x->var : e->var;
  if (!of || !is_of_instance(p, of)) return false;
  if (e->kind == KJ_T_EXTENT) return e->x->kind == KJ_T_VAR && is_fixed(p, e->x->var);
  return e->kind == KJ_T_VAR && e->var->kind != KJ_V_LOOP && is_fixed(p, e->var);
}

static bool is_same(const kt_expr *a, const kt_expr *b)
{
  if (a->kind != b->kind) return false;
  if (a->kind == KJ_T_EXTENT)
    return a->dimension == b->dimension && a->x->kind == KJ_T_VAR && b->x->kind == KJ_T_VAR &&
           a->x->var == b->x->var;
  return a->kind == KJ_T_VAR && a->var == b->var;
}

static bool assigns(void *data, const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_ASSIGN && stmt->var == data;
}

/* Returns whether the value is a parameter or a parameter's extent, which no statement changes. */
static bool is_of_parameter(const pass *p, const kt_expr *e)
{
  if (e->kind == KJ_T_EXTENT) e = e->x;
  return e->kind == KJ_T_VAR && e->var->kind == KJ_V_PARAM && is_fixed(p, e->var);
}

/* Returns the period for which the expression stands. Removes conversions, and replaces a variable
 * that holds a parameter or an array's extent by this parameter or extent. */
static const kt_expr *resolve(const pass *p, const kt_expr *e)
{
  e = strip(p, e);
  bool is_held = e->kind == KJ_T_VAR && e->var->kind != KJ_V_PARAM && is_of_instance(p, e->var) &&
                 p->assignments[e->var->index] == 1;
  if (!is_held) return e;
  const kt_expr *value = strip(p, p->definitions[e->var->index]);
  return is_of_parameter(p, value) ? value : e;
}

/* Records the period of a loop variable, unless the body assigns the period. */
static void note_period(pass *p, const kt_stmt *loop, const kt_var *var, const kt_expr *end)
{
  const kt_expr *period = resolve(p, end);
  if (!is_period(p, period)) return;
  kt_var *of = period->kind == KJ_T_EXTENT ? period->x->var : period->var;
  if (!kt_any_in_tstmts(&loop->body, assigns, NULL, of)) p->periods[var->index] = period;
}

static bool is_number(const kt_expr *e, int64_t value)
{
  return e->kind == KJ_T_CONST && e->integer == value;
}

static void note_loop(void *data, kt_stmt *stmt)
{
  pass *p = data;
  if (stmt->kind == KJ_TS_GRID_FOR)
    for (size_t i = 0; i < stmt->vars.count; i++)
      note_period(p, stmt, stmt->vars.items[i], stmt->extents.items[i]);
  if (stmt->kind == KJ_TS_FOR && is_number(stmt->first, 0) && is_number(stmt->step, 1))
    note_period(p, stmt, stmt->var, stmt->stop);
}

/* ---- remainders ---- */

/* Returns whether the expression is a variable whose value is from 0 to the period - 1. */
static bool is_inside(const pass *p, const kt_expr *e, const kt_expr *period)
{
  e = strip(p, e);
  if (e->kind != KJ_T_VAR) return false;
  const kt_expr *below = p->periods[e->var->index];
  return below && is_same(below, period);
}

static bool is_binary(const kt_expr *e, kjit_op op)
{
  return e->kind == KJ_T_BINARY && e->op == op;
}

/* If the expression is i + 1 or 1 + i, returns i, otherwise NULL. */
static const kt_expr *find_next(const pass *p, const kt_expr *e, const kt_expr *period)
{
  if (!is_binary(e, KJIT_OP_ADD)) return NULL;
  if (is_number(e->y, 1) && is_inside(p, e->x, period)) return e->x;
  return is_number(e->x, 1) && is_inside(p, e->y, period) ? e->y : NULL;
}

/* If the expression is i - 1, returns i, otherwise NULL. */
static const kt_expr *find_before(const pass *p, const kt_expr *e, const kt_expr *period)
{
  bool is_less = is_binary(e, KJIT_OP_SUB) && is_number(e->y, 1);
  return is_less && is_inside(p, e->x, period) ? e->x : NULL;
}

/* If the sum has the terms i, n and -1, in any order, returns i, otherwise NULL. */
static const kt_expr *find_before_with_period(const pass *p, const kt_expr *e,
                                              const kt_expr *period)
{
  bool is_less = is_binary(e, KJIT_OP_SUB) && is_number(e->y, 1);
  const kt_expr *sum = is_less ? e->x : e, *x = sum->x, *y = sum->y;
  if (!is_binary(sum, KJIT_OP_ADD)) return NULL;
  if (is_less && is_inside(p, x, period) && is_same(resolve(p, y), period)) return x;
  if (is_less && is_inside(p, y, period) && is_same(resolve(p, x), period)) return y;
  if (is_less) return NULL;
  for (int i = 0; i < 2; i++) {
    const kt_expr *a = i ? y : x, *b = i ? x : y;
    bool is_end =
      is_binary(b, KJIT_OP_SUB) && is_number(b->y, 1) && is_same(resolve(p, b->x), period);
    if (is_end && is_inside(p, a, period)) return a;
    if (find_before(p, a, period) && is_same(resolve(p, b), period)) return a->x;
  }
  return NULL;
}

/* Returns whether twice the period is in the range of the type. */
static bool fits_twice(const pass *p, const kt_expr *period, kjit_type type)
{
  kt_interval all = kp_whole_interval(kp_find_integer(p->c->types, type)),
              own = kp_whole_interval(kp_find_integer(p->c->types, period->type));
  if (period->kind == KJ_T_EXTENT) own = kp_extent_interval(p->c, period->x->type);
  return own.known && 2 * own.most <= all.most;
}

static kt_expr *clone(const pass *p, const kt_expr *e)
{
  return kt_clone_texpr(p->c, e, NULL, NULL);
}

static kt_expr *make_number(const pass *p, const kt_expr *like, int64_t value)
{
  kt_expr *e = kt_new_texpr(p->c, KJ_T_CONST, like->type, like->location);
  e->integer = value;
  return e;
}

static kt_expr *make_binary(const pass *p, kt_tkind kind, kjit_op op, kt_expr *x, kt_expr *y)
{
  kjit_type type = kind == KJ_T_COMPARE ? KJIT_BOOL : x->type;
  kt_expr *e = kt_new_texpr(p->c, kind, type, x->location);
  e->op = op;
  e->x = x;
  e->y = y;
  return e;
}

static kt_expr *choose(const pass *p, kt_expr *condition, kt_expr *y, kt_expr *z)
{
  kt_expr *e = kt_new_texpr(p->c, KJ_T_COND, y->type, y->location);
  e->x = condition;
  e->y = y;
  e->z = z;
  return e;
}

/* Makes `i + 1 == n ? 0 : i + 1`. */
static kt_expr *make_next(const pass *p, const kt_expr *e)
{
  kt_expr *is_end = make_binary(p, KJ_T_COMPARE, KJIT_OP_EQ, e->x, e->y);
  return choose(p, is_end, make_number(p, e, 0), clone(p, e->x));
}

/* Makes `i == 0 ? n - 1 : i - 1`. */
static kt_expr *make_before(const pass *p, const kt_expr *e, const kt_expr *i)
{
  kt_expr *is_first = make_binary(p, KJ_T_COMPARE, KJIT_OP_EQ, clone(p, i), make_number(p, e, 0));
  kt_expr *last = make_binary(p, KJ_T_BINARY, KJIT_OP_SUB, e->y, make_number(p, e, 1)),
          *before = make_binary(p, KJ_T_BINARY, KJIT_OP_SUB, clone(p, i), make_number(p, e, 1));
  return choose(p, is_first, last, before);
}

static void replace(void *data, kt_expr **at)
{
  const pass *p = data;
  const kt_expr *e = *at;
  kp_integer type = kp_find_integer(p->c->types, e->type);
  if (!is_binary(e, KJIT_OP_MOD) || !type.bits) return;
  const kt_expr *period = resolve(p, e->y);
  if (!is_period(p, period)) return;
  if (find_next(p, e->x, period)) {
    *at = make_next(p, e);
    return;
  }
  const kt_expr *i = type.is_signed ? find_before(p, e->x, period) : NULL;
  if (!i && fits_twice(p, period, e->type)) i = find_before_with_period(p, e->x, period);
  if (i) *at = make_before(p, e, i);
}

void kp_replace_periodic(kt_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++) {
    kt_instance *instance = c->instances.items[i];
    size_t count = instance->params.count + instance->locals.count + 1;
    pass p = { .c = c,
               .instance = instance,
               .assignments = KJ_NEW_ARRAY(c->arena, uint32_t, count),
               .definitions = KJ_NEW_ARRAY(c->arena, const kt_expr *, count),
               .periods = KJ_NEW_ARRAY(c->arena, const kt_expr *, count) };
    kt_walk_tstmts(&instance->body, count_assignment, NULL, &p);
    for (size_t k = 0; k < instance->locals.count; k++) {
      const kt_var *var = instance->locals.items[k];
      const kt_expr *below = var->below ? resolve(&p, var->below) : NULL;
      if (below && is_period(&p, below)) p.periods[var->index] = below;
    }
    kt_walk_tstmts(&instance->body, note_loop, NULL, &p);
    kt_walk_tstmts(&instance->body, NULL, replace, &p);
  }
}
