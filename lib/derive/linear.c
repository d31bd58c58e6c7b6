/* Checks that a prepared body is linear in its chosen parameters. A custom rule for `jvp` must be
 * linear in its derivative parameters; otherwise the reverse derivative of the rule would depend on
 * the values of these parameters. A value that depends on a chosen parameter must be a sum of
 * terms. Each term must be a value that depends on a chosen parameter, times a factor that does
 * not. Conditions, indices and loop bounds must not depend on a chosen parameter. */
#include "derive/derive.h"

typedef struct linear {
  kd_derivation *d;
  bool *depends; /* indexed by variable: whether it depends on a chosen parameter */
  bool has_changed;
} linear;

static bool is_dependent(void *data, const kt_expr *e)
{
  const linear *l = data;
  return e->kind == KJ_T_VAR && e->var->index < l->d->count && l->depends[e->var->index];
}

static bool depends(linear *l, const kt_expr *e) { return kt_any_texpr(e, is_dependent, l); }

static void mark_variable(linear *l, const kt_var *var)
{
  if (!var || var->index >= l->d->count || l->depends[var->index]) return;
  l->depends[var->index] = l->has_changed = true;
}

static void find_dependent(void *data, kt_stmt *stmt)
{
  linear *l = data;
  bool is_loop = stmt->kind == KJ_TS_FOR;
  if (stmt->kind == KJ_TS_ASSIGN && depends(l, stmt->value)) mark_variable(l, stmt->var);
  if (stmt->kind == KJ_TS_STORE && depends(l, stmt->value)) mark_variable(l, kd_root(stmt->array));
  if (is_loop && (depends(l, stmt->first) || depends(l, stmt->stop))) mark_variable(l, stmt->var);
}

static _Noreturn void refuse(const linear *l, kj_location location)
{
  kd_refuse(
    l->d, location,
    "this value is not linear in the derivatives that the rule takes, so kjit cannot compute a "
    "reverse derivative from the rule: write a rule for the reverse derivative, " KJ_PHRASE(
      DERIVATIVE_RULE, "`@" KJ_PHRASE_ARGUMENT("vjp") "(h)`"));
}

static void need_constant(linear *l, const kt_expr *e)
{
  if (e && depends(l, e)) refuse(l, e->location);
}

static bool is_zero(const kt_expr *e)
{
  if (e->kind == KJ_T_CONST) return !ki_is_true(kt_value_of(e));
  if (e->kind == KJ_T_CONVERT) return is_zero(e->x);
  for (size_t i = 0; i < e->args.count; i++)
    if (!is_zero(e->args.items[i])) return false;
  return e->kind == KJ_T_TUPLE;
}

static void check(linear *l, const kt_expr *e);

/* Checks an expression that may be a term of a sum. */
static void check_term(linear *l, const kt_expr *e)
{
  if (depends(l, e)) check(l, e);
  else if (!is_zero(e)) refuse(l, e->location);
}

static void check_product(linear *l, const kt_expr *e, const kt_expr *x, const kt_expr *y)
{
  if (depends(l, x) && depends(l, y)) refuse(l, e->location);
  check(l, depends(l, x) ? x : y);
}

static void check_builtin(linear *l, const kt_expr *e)
{
  kt_expr *const *args = e->args.items;
  switch (KJ_AMONG(e->builtin->id)) {
  case KJ_BUILTIN_SELECT:
    need_constant(l, args[0]);
    check_term(l, args[1]);
    check_term(l, args[2]);
    break;
  case KJ_BUILTIN_FMA:
    if (depends(l, args[0]) || depends(l, args[1])) check_product(l, e, args[0], args[1]);
    else if (!is_zero(args[0]) && !is_zero(args[1])) refuse(l, e->location);
    check_term(l, args[2]);
    break;
  case KJ_BUILTIN_LDEXP:
    need_constant(l, args[1]);
    check(l, args[0]);
    break;
  default: refuse(l, e->location);
  }
}

static void check_binary(linear *l, const kt_expr *e)
{
  switch (KJ_AMONG(e->op)) {
  case KJIT_OP_ADD:
  case KJIT_OP_SUB:
    check_term(l, e->x);
    check_term(l, e->y);
    break;
  case KJIT_OP_MUL: check_product(l, e, e->x, e->y); break;
  case KJIT_OP_DIV:
    need_constant(l, e->y);
    check(l, e->x);
    break;
  default: refuse(l, e->location);
  }
}

/* Checks an expression that depends on a chosen parameter. */
static void check(linear *l, const kt_expr *e)
{
  if (!depends(l, e)) return;
  for (size_t i = 0; i < e->args.count && e->kind != KJ_T_TUPLE && e->kind != KJ_T_BUILTIN; i++)
    need_constant(l, e->args.items[i]);
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_VAR: break;
  case KJ_T_LOAD:
    for (const kt_expr *at = e->x; at->kind == KJ_T_VIEW || at->kind == KJ_T_MEMBER; at = at->x)
      for (size_t i = 0; i < kt_operand_count(at); i++)
        if (kt_operand(at, i) != at->x) need_constant(l, kt_operand(at, i));
    break;
  case KJ_T_UNARY:
    if (e->op != KJIT_OP_NEG) refuse(l, e->location);
    check(l, e->x);
    break;
  case KJ_T_CONVERT:
    if (!kd_holds_float(l->d->c, e->type)) refuse(l, e->location);
    check(l, e->x);
    break;
  case KJ_T_BINARY: check_binary(l, e); break;
  case KJ_T_BUILTIN: check_builtin(l, e); break;
  case KJ_T_COND:
    need_constant(l, e->x);
    check_term(l, e->y);
    check_term(l, e->z);
    break;
  case KJ_T_TUPLE:
    for (size_t i = 0; i < e->args.count; i++) check(l, e->args.items[i]);
    break;
  case KJ_T_ITEM:
  case KJ_T_ELEMENT: check(l, e->x); break;
  case KJ_T_INSERT:
    check(l, e->x);
    check(l, e->y);
    break;
  default: refuse(l, e->location);
  }
}

static void check_stmt(void *data, kt_stmt *stmt)
{
  linear *l = data;
  const kt_var *to = stmt->kind == KJ_TS_ASSIGN  ? stmt->var
                     : stmt->kind == KJ_TS_STORE ? kd_root(stmt->array)
                                                 : NULL;
  if (stmt->kind != KJ_TS_ASSIGN && stmt->kind != KJ_TS_STORE) {
    for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++)
      need_constant(l, kt_stmt_operand(stmt, i));
    return;
  }
  for (size_t i = 0; i < stmt->indices.count; i++) need_constant(l, stmt->indices.items[i]);
  if (!to || to->index >= l->d->count || !l->depends[to->index]) return;
  bool is_whole = kt_is_tuple(l->d->c, stmt->value->type) || stmt->value->kind == KJ_T_INSERT;
  if (to == l->d->result && stmt->value->kind == KJ_T_TUPLE)
    need_constant(l, stmt->value->args.items[0]);
  if (is_whole) check(l, stmt->value);
  else check_term(l, stmt->value);
}

void kd_check_linear(kd_derivation *d)
{
  linear l = { .d = d, .depends = KJ_NEW_ARRAY(d->arena, bool, d->count + 1) };
  for (size_t i = 0; i < d->record->chosen.count; i++)
    l.depends[d->record->chosen.items[i]->index] = true;
  do {
    l.has_changed = false;
    kt_walk_tstmts(&d->body, find_dependent, NULL, &l);
  } while (l.has_changed);
  kt_walk_tstmts(&d->body, check_stmt, NULL, &l);
}
