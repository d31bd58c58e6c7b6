/* Rules of the source: `func f(x) @jvp(g)`. g has the parameters of f and, behind them, a
 * derivative for each parameter that holds floats; it returns what `jvp(f)` returns. */
#include "derive/derive.h"

void kd_refuse_rule(kd_derivation *d, const ki_function *function, kj_location location)
{
  kd_refuse(
    d, location,
    "`%s` has a rule of its own for `jvp`, which is none for reverse derivatives: use `jvp`",
    function->decl->name);
}

const ki_function *kd_own_rule(const ki_function *function)
{
  const ki_decl *decl = ki_find_named_func(function, KJ_ATTRIBUTE_JVP);
  return decl ? decl->function : NULL;
}

/* ---- the call of a rule ---- */

typedef struct rule_call {
  kd_derivation *d;
  kt_captured arguments; /* all arguments of the call */
} rule_call;

static void add_argument(rule_call *r, kt_bound bound, kt_expr *value)
{
  r->arguments.bounds[r->arguments.count] = bound;
  r->arguments.values[r->arguments.count++] = value;
}

static void add_value(rule_call *r, kt_expr *value)
{
  add_argument(r, kt_value_bound(r->d->s, value), value);
}

static kt_expr *make_constant(kd_derivation *d, kjit_type type, __int128 integer)
{
  kt_expr *value = kt_new_texpr(d->c, KJ_T_CONST, type, d->location);
  value->integer = integer;
  return value;
}

static void add_parameter(rule_call *r, const kt_inferred *of, size_t index, kt_expr *value)
{
  const kt_bound *bound = &of->bounds[index];
  switch (KJ_AMONG(bound->kind)) {
  case KJ_BOUND_CALLEE:
    kd_refuse(r->d, r->d->location,
              "`%s` has a rule of its own and a parameter that is a func: such rules take values",
              of->instance->function->decl->name);
  case KJ_BOUND_CONST:
    add_argument(r, *bound, make_constant(r->d, bound->type, bound->integer));
    break;
  case KJ_BOUND_TYPE: add_argument(r, *bound, NULL); break;
  default: add_value(r, value);
  }
}

kt_expr *kd_call_rule(kd_derivation *d, const ki_function *rule, const kt_inferred *of,
                      const kt_exprs *values, const kt_exprs *derivatives, kj_location location)
{
  const ki_decls *params = &of->instance->function->params;
  rule_call r = { .d = d };
  r.arguments.bounds = KJ_NEW_ARRAY(d->arena, kt_bound, 2 * params->count + 1);
  r.arguments.values = KJ_NEW_ARRAY(d->arena, kt_expr *, 2 * params->count + 1);
  size_t at = 0;
  for (size_t i = 0; i < params->count; i++) {
    bool is_value = of->bounds[i].kind == KJ_BOUND_VALUE || of->bounds[i].kind == KJ_BOUND_WEAK;
    add_parameter(&r, of, i, is_value ? values->items[at++] : NULL);
  }
  at = 0;
  for (size_t i = 0; i < params->count; i++) {
    const kt_bound *bound = &of->bounds[i];
    bool is_value = bound->kind == KJ_BOUND_VALUE || bound->kind == KJ_BOUND_WEAK;
    kt_expr *derivative = is_value ? derivatives->items[at++] : NULL;
    if (derivative) add_value(&r, derivative);
    else if (bound->kind == KJ_BOUND_CONST && kt_is_float(d->c, bound->type))
      add_value(&r, kt_new_number(d->s, KJIT_F64, 0, location));
  }
  ki_expr *call = KJ_NEW(d->arena, ki_expr);
  *call = (ki_expr){ .kind = KJ_EXPR_CALL, .location = location };
  const kt_callee callee = { .function = rule, .captured = &r.arguments };
  if (r.arguments.count != rule->params.count)
    kd_refuse(d, location,
              "the rule `%s` of `%s` takes %zu parameters and needs %zu: those of `%s` and a "
              "derivative for each of them that holds floats",
              rule->decl->name, of->instance->function->decl->name, rule->params.count,
              r.arguments.count, of->instance->function->decl->name);
  kt_exprs arguments = { 0 };
  kt_inferred *record = kt_bind_call(d->s, call, &callee, NULL, 0, &arguments);
  KJ_PUSH(d->arena, &d->record->callees, record);
  return kt_make_concrete(d->s, kt_call_instance(d->s, record, &arguments, location));
}

void kd_check_pair(kd_derivation *d, const kt_expr *both, kjit_type type, const ki_function *rule,
                   const ki_function *of, kj_location location)
{
  const ki_type_info *info = ki_type(d->c->types, both->type);
  bool is_pair = info->class_ == KJ_CLASS_TUPLE && info->count == 2 && info->items[0] == type &&
                 info->items[1] == type;
  if (is_pair) return;
  kd_refuse(d, location,
            "the rule `%s` of `%s` returns %s; it has to return a value and its derivative, both "
            "%s",
            rule->decl->name, of->decl->name, kt_type_text(d->c, both->type),
            kt_type_text(d->c, type));
}

/* ---- the derivative of a func that has a rule ---- */

static kt_var *derivative_of(const kd_derivation *d, const kt_var *param)
{
  for (size_t i = 0; i < d->record->chosen.count; i++)
    if (d->record->chosen.items[i] == param) return d->derivatives.items[i];
  return NULL;
}

void kd_return_rule(kd_derivation *d, const ki_function *rule)
{
  const kt_instance *primal = d->primal->instance;
  kt_exprs values = { 0 }, derivatives = { 0 };
  for (size_t i = 0; i < primal->params.count; i++) {
    const kt_var *param = primal->params.items[i];
    kt_var *derivative = derivative_of(d, param);
    bool needs_zero = !derivative && kd_holds_float(d->c, param->type);
    if (needs_zero && kt_is_array(d->c, param->type))
      kd_refuse(d, d->location,
                "`%s` has a rule of its own, which needs the derivative of the array `%s`, too",
                primal->function->decl->name, param->name);
    KJ_PUSH(d->arena, &values, kd_read(d, d->record->instance->params.items[i]));
    KJ_PUSH(d->arena, &derivatives,
            derivative   ? kd_read(d, derivative)
            : needs_zero ? kd_zero(d, param->type)
                         : NULL);
  }
  kt_expr *both = kd_call_rule(d, rule, d->primal, &values, &derivatives, d->location);
  if (primal->result == KJIT_VOID) {
    kt_stmt *stmt = kt_new_tstmt(d->c, KJ_TS_EVALUATE, d->location);
    stmt->value = both;
    kt_emit(d->s, stmt);
    d->record->result = d->record->instance->result = KJIT_VOID;
    return;
  }
  kd_check_pair(d, both, primal->result, rule, primal->function, d->location);
  kd_return(d, both);
}
