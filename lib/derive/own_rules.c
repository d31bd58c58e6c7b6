/* Custom derivatives: `func f(x) @jvp(g) @vjp(h)`.
 *
 * The parameters of g are the parameters of f, followed by a derivative for each parameter that
 * holds floats; g returns what `jvp(f)` returns. The parameters of h are the parameters of f,
 * followed by the derivative with respect to the result of f; h returns what `vjp(f)` returns. If h
 * is missing, kjit makes the reverse derivative from g. In this case g must be linear in its
 * derivative parameters, which linear.c checks. */
#include "derive/derive.h"

static const ki_function *find_rule(const ki_function *function, ki_attribute_id id)
{
  const ki_decl *decl = ki_find_named_func(function, id);
  return decl ? decl->function : NULL;
}

bool kd_has_rule(const ki_function *function)
{
  return find_rule(function, KJ_ATTRIBUTE_JVP) || find_rule(function, KJ_ATTRIBUTE_VJP);
}

const ki_function *kd_own_rule(kd_derivation *d, const ki_function *function, kj_location location)
{
  if (d->kind != KJ_BUILTIN_JVP) {
    const ki_function *own = find_rule(function, KJ_ATTRIBUTE_VJP);
    return own ? own : find_rule(function, KJ_ATTRIBUTE_JVP);
  }
  const ki_function *own = find_rule(function, KJ_ATTRIBUTE_JVP);
  if (!own && kd_has_rule(function))
    kd_refuse(d, location,
              "`%s` has a derivative rule for `vjp` but none for `jvp`: write " KJ_PHRASE(
                DERIVATIVE_RULE,
                "`func %s(...) @" KJ_PHRASE_ARGUMENT("jvp") "(g)`") ", too, or use `vjp`",
              function->decl->name, function->decl->name);
  return own;
}

/* ---- the call of a rule ---- */

typedef struct rule_call {
  kd_derivation *d;
  kt_captured arguments; /* all arguments of the rule's call */
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
    kd_refuse(
      r->d, r->d->location,
      "`%s` has a derivative rule and a function parameter; a function with a rule cannot have "
      "function parameters",
      of->instance->function->decl->name);
  case KJ_BOUND_CONST:
    add_argument(r, *bound, make_constant(r->d, bound->type, bound->integer));
    break;
  case KJ_BOUND_TYPE: add_argument(r, *bound, NULL); break;
  default: add_value(r, value);
  }
}

static bool is_handed_over(const kt_bound *bound)
{
  return bound->kind == KJ_BOUND_VALUE || bound->kind == KJ_BOUND_WEAK;
}

/* Begins the argument list of a rule's call with the func's arguments. values has an item for each
 * run-time parameter. */
static rule_call begin_call(kd_derivation *d, const kt_inferred *of, const kt_exprs *values)
{
  const ki_decls *params = &of->instance->function->params;
  rule_call r = { .d = d };
  size_t at = 0, most = 2 * params->count + 2;
  r.arguments.bounds = KJ_NEW_ARRAY(d->arena, kt_bound, most);
  r.arguments.values = KJ_NEW_ARRAY(d->arena, kt_expr *, most);
  for (size_t i = 0; i < params->count; i++)
    add_parameter(&r, of, i, is_handed_over(&of->bounds[i]) ? values->items[at++] : NULL);
  return r;
}

/* Binds the call and returns the instance of the rule. `what` describes, for error messages, the
 * parameters that the rule has in addition to those of the func. */
static kt_inferred *bind_call(rule_call *r, const ki_function *rule, const kt_inferred *of,
                              const char *what, kt_exprs *arguments, kj_location location)
{
  kd_derivation *d = r->d;
  ki_expr *call = KJ_NEW(d->arena, ki_expr);
  *call = (ki_expr){ .kind = KJ_EXPR_CALL, .location = location };
  const kt_callee callee = { .function = rule, .captured = &r->arguments };
  const char *name = of->instance->function->decl->name;
  if (r->arguments.count != rule->params.count)
    kd_refuse(d, location,
              "the derivative rule `%s` of `%s` has %zu parameters, but must have %zu: the "
              "parameters of `%s` and %s",
              rule->decl->name, name, rule->params.count, r->arguments.count, name, what);
  kt_refuse_kernel(d->s, rule, location);
  kt_inferred *record = kt_bind_call(d->s, call, &callee, NULL, 0, arguments);
  KJ_PUSH(d->arena, &d->record->callees, record);
  return record;
}

static void add_derivatives(rule_call *r, const kt_inferred *of, const kt_exprs *derivatives)
{
  kd_derivation *d = r->d;
  size_t at = 0;
  for (size_t i = 0; i < of->instance->function->params.count; i++) {
    const kt_bound *bound = &of->bounds[i];
    kt_expr *derivative = is_handed_over(bound) ? derivatives->items[at++] : NULL;
    if (derivative) add_value(r, derivative);
    else if (bound->kind == KJ_BOUND_CONST && kt_is_float(d->c, bound->type))
      add_value(r, kt_new_number(d->s, KJIT_F64, 0, d->location));
  }
}

static const char FORWARD_PARAMETERS[] = "a derivative for each of them that holds floats",
                  REVERSE_PARAMETERS[] = "the derivative with respect to its result";

kt_expr *kd_call_rule(kd_derivation *d, const ki_function *rule, const kt_inferred *of,
                      const kt_exprs *values, const kt_exprs *derivatives, kj_location location)
{
  kt_exprs arguments = { 0 };
  rule_call r = begin_call(d, of, values);
  add_derivatives(&r, of, derivatives);
  kt_inferred *record = bind_call(&r, rule, of, FORWARD_PARAMETERS, &arguments, location);
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
            "the derivative rule `%s` of `%s` returns %s, but must return a value and its "
            "derivative, both %s",
            rule->decl->name, of->decl->name, kt_type_text(d->c, both->type),
            kt_type_text(d->c, type));
}

/* ---- reverse ---- */

/* Returns the type of the derivative that a rule returns for a parameter of the func, or KJIT_VOID
 * if it returns none. A rule returns a derivative for each run-time value that holds floats. It
 * also returns a derivative for a float constant; that derivative is not used. */
static kjit_type part_type(const kd_derivation *d, const kt_inferred *of, size_t index)
{
  const kt_vars *params = &of->instance->params;
  const kt_bound *bound = &of->bounds[index];
  if (bound->kind == KJ_BOUND_CONST)
    return kt_is_float(d->c, bound->type) ? bound->type : KJIT_VOID;
  for (size_t i = 0; is_handed_over(bound) && i < params->count; i++) {
    kjit_type type = params->items[i]->type;
    bool has_part = kd_holds_float(d->c, type) && !kt_is_array(d->c, type);
    if (params->items[i]->argument == index) return has_part ? type : KJIT_VOID;
  }
  return KJIT_VOID;
}

static bool has_part(const kd_derivation *d, const kt_inferred *of, size_t index)
{
  return part_type(d, of, index) != KJIT_VOID;
}

/* Returns item `index` of a rule's result. Rejects the rule if the item does not have this type. */
static kt_expr *take_item(kd_derivation *d, kt_expr *all, uint32_t index, uint32_t count,
                          kjit_type type, const ki_function *rule, kj_location location)
{
  const ki_type_info *info = ki_type(d->c->types, all->type);
  bool is_whole = count == 1,
       is_tuple = info->class_ == KJ_CLASS_TUPLE && info->count == count && !is_whole;
  kjit_type have = is_whole ? all->type : is_tuple ? info->items[index] : KJIT_VOID;
  if (have != type)
    kd_refuse(d, location,
              "the derivative rule `%s` returns %s, but must return the same types as `vjp` of the "
              "function: %u value%s, and value %u must be %s",
              rule->decl->name, kt_type_text(d->c, all->type), count, count == 1 ? "" : "s", index,
              kt_type_text(d->c, type));
  return is_whole ? all : kt_make_item(d->s, kd_copy(d, all), index, location);
}

static kd_parts call_reverse_rule(kd_derivation *d, const kt_inferred *of, const kt_exprs *values,
                                  kt_expr *t, const kt_exprs *arrays, kj_location location)
{
  const kt_instance *primal = of->instance;
  const ki_function *rule = kd_own_rule(d, primal->function, location);
  kt_exprs arguments = { 0 };
  kd_parts parts = { 0 };
  rule_call r = begin_call(d, of, values);
  bool has_value = primal->result != KJIT_VOID;
  uint32_t at = has_value, count = at;
  for (size_t i = 0; i < primal->function->params.count; i++) count += has_part(d, of, i);
  if (t) add_value(&r, t);
  for (size_t i = 0; arrays && i < arrays->count; i++) add_value(&r, arrays->items[i]);
  kt_inferred *record = bind_call(&r, rule, of, REVERSE_PARAMETERS, &arguments, location);
  kt_expr *all = kt_make_concrete(d->s, kt_call_instance(d->s, record, &arguments, location));
  if (!count) {
    parts.effect = all;
    return parts;
  }
  all = kd_keep(d, all);
  if (has_value) parts.value = take_item(d, all, 0, count, primal->result, rule, location);
  for (size_t i = 0; i < primal->function->params.count; i++) {
    bool is_used = is_handed_over(&of->bounds[i]), has = has_part(d, of, i);
    kt_expr *part =
      has && is_used ? take_item(d, all, at, count, part_type(d, of, i), rule, location) : NULL;
    if (is_used) KJ_PUSH(d->arena, &parts.derivatives, part);
    at += has;
  }
  return parts;
}

/* Calls the transpose of a `jvp` rule with respect to its derivative parameters. The result does
 * not depend on the values of these parameters, because the rule is linear in them; the call passes
 * 1 for each. */
static kd_parts call_transposed_rule(kd_derivation *d, const kt_inferred *of,
                                     const kt_exprs *values, kt_expr *t, kj_location location)
{
  const kt_instance *primal = of->instance;
  const ki_function *rule = kd_own_rule(d, primal->function, location);
  kt_exprs arguments = { 0 }, ones = { 0 }, pair = { 0 }, cotangents = { 0 };
  rule_call r = begin_call(d, of, values);
  for (size_t i = 0; i < primal->params.count; i++) {
    kjit_type type = primal->params.items[i]->type;
    bool holds_float = kd_holds_float(d->c, type);
    kt_var *one = holds_float ? kd_new_var(d, "_one", type, location) : NULL;
    if (one) kd_assign(d, one, kd_one(d, type));
    KJ_PUSH(d->arena, &ones, one ? kd_read(d, one) : NULL);
  }
  add_derivatives(&r, of, &ones);
  kt_inferred *record = bind_call(&r, rule, of, FORWARD_PARAMETERS, &arguments, location);
  const kt_var result = { .type = record->instance->result };
  kd_check_pair(d, kd_read(d, (kt_var *)&result), primal->result, rule, primal->function, location);
  KJ_PUSH(d->arena, &pair, kd_zero(d, primal->result));
  KJ_PUSH(d->arena, &pair, t);
  KJ_PUSH(d->arena, &cotangents, kd_keep(d, kt_make_tuple(d->s, &pair, location)));
  KJ_PUSH(d->arena, &arguments, cotangents.items[0]);
  kt_vars chosen = { 0 };
  for (size_t i = 0; i < record->instance->params.count; i++) {
    kt_var *param = record->instance->params.items[i];
    if (param->argument >= primal->function->params.count) KJ_PUSH(d->arena, &chosen, param);
  }
  kt_inferred *made = kd_get_transpose(d->s, record, &chosen, &cotangents, location);
  KJ_PUSH(d->arena, &d->record->callees, made);
  kt_expr *all = kd_keep(d, kt_call_instance(d->s, made, &arguments, location));
  kd_parts parts = { 0 };
  kt_expr *both = kt_make_item(d->s, all, 0, location);
  parts.value = kt_make_item(d->s, both, 0, location);
  uint32_t at = 1;
  for (size_t i = 0; i < primal->function->params.count; i++) {
    kt_expr *part = has_part(d, of, i) ? kt_make_item(d->s, kd_copy(d, all), at++, location) : NULL;
    if (is_handed_over(&of->bounds[i])) KJ_PUSH(d->arena, &parts.derivatives, part);
  }
  KJ_ASSERT(at == chosen.count + 1);
  return parts;
}

kd_parts kd_go_back_by_rule(kd_derivation *d, const kt_inferred *of, const kt_exprs *values,
                            kt_expr *t, const kt_exprs *arrays, kj_location location)
{
  if (find_rule(of->instance->function, KJ_ATTRIBUTE_VJP))
    return call_reverse_rule(d, of, values, t, arrays, location);
  if (!t || (arrays && arrays->count))
    kd_refuse(
      d, location,
      "`%s` has a derivative rule for `jvp`, from which kjit cannot compute a reverse derivative, "
      "because the function takes arrays or returns nothing: write " KJ_PHRASE(
        DERIVATIVE_RULE, "`func %s(...) @" KJ_PHRASE_ARGUMENT("vjp") "(h)`"),
      of->instance->function->decl->name, of->instance->function->decl->name);
  return call_transposed_rule(d, of, values, t, location);
}

/* ---- derivatives of funcs that have a custom rule ---- */

static kt_var *derivative_of(const kd_derivation *d, const kt_var *param)
{
  for (size_t i = 0; i < d->record->chosen.count; i++)
    if (d->record->chosen.items[i] == param) return d->derivatives.items[i];
  return NULL;
}

static void evaluate(kd_derivation *d, kt_expr *value)
{
  kt_stmt *stmt = kt_new_tstmt(d->c, KJ_TS_EVALUATE, d->location);
  stmt->value = value;
  kt_emit(d->s, stmt);
  d->record->result = d->record->instance->result = KJIT_VOID;
}

static void need_array(kd_derivation *d, const kt_var *param, const kt_var *derivative)
{
  if (derivative || !kt_is_array(d->c, param->type) || !kd_holds_float(d->c, param->type)) return;
  kd_refuse(
    d, d->location,
    "the derivative rule of `%s` also needs a derivative of the array `%s`: add `%s` to the "
    "chosen parameters",
    d->primal->instance->function->decl->name, param->name, param->name);
}

static void return_forward(kd_derivation *d, const ki_function *rule)
{
  const kt_instance *primal = d->primal->instance;
  kt_exprs values = { 0 }, derivatives = { 0 };
  for (size_t i = 0; i < primal->params.count; i++) {
    const kt_var *param = primal->params.items[i];
    kt_var *derivative = derivative_of(d, param);
    bool needs_zero = !derivative && kd_holds_float(d->c, param->type);
    need_array(d, param, derivative);
    KJ_PUSH(d->arena, &values, kd_read(d, d->record->instance->params.items[i]));
    KJ_PUSH(d->arena, &derivatives,
            derivative   ? kd_read(d, derivative)
            : needs_zero ? kd_zero(d, param->type)
                         : NULL);
  }
  kt_expr *both = kd_call_rule(d, rule, d->primal, &values, &derivatives, d->location);
  if (primal->result == KJIT_VOID) {
    evaluate(d, both);
    return;
  }
  kd_check_pair(d, both, primal->result, rule, primal->function, d->location);
  kd_return(d, both);
}

static void return_reverse(kd_derivation *d)
{
  const kt_instance *primal = d->primal->instance;
  kt_exprs values = { 0 }, arrays = { 0 }, all = { 0 };
  for (size_t i = 0; i < primal->params.count; i++) {
    const kt_var *param = primal->params.items[i];
    kt_var *derivative = derivative_of(d, param);
    need_array(d, param, derivative);
    KJ_PUSH(d->arena, &values, kd_read(d, d->record->instance->params.items[i]));
    if (derivative) KJ_PUSH(d->arena, &arrays, kd_read(d, derivative));
  }
  kt_expr *t = d->cotangent                  ? kd_read(d, d->cotangent)
               : primal->result == KJIT_VOID ? NULL
                                             : kt_new_number(d->s, primal->result, 1, d->location);
  kd_parts parts = kd_go_back_by_rule(d, d->primal, &values, t, &arrays, d->location);
  if (parts.value && d->kind == KJ_BUILTIN_VJP) KJ_PUSH(d->arena, &all, parts.value);
  for (size_t i = 0; i < primal->params.count; i++) {
    bool is_chosen = false;
    for (size_t k = 0; k < d->record->chosen.count; k++)
      is_chosen |= d->record->chosen.items[k] == primal->params.items[i];
    if (is_chosen && parts.derivatives.items[i])
      KJ_PUSH(d->arena, &all, parts.derivatives.items[i]);
  }
  if (parts.effect) evaluate(d, parts.effect);
  else if (!all.count) d->record->result = d->record->instance->result = KJIT_VOID;
  else kd_return(d, all.count == 1 ? all.items[0] : kt_make_tuple(d->s, &all, d->location));
}

void kd_return_rule(kd_derivation *d, const ki_function *rule)
{
  if (d->kind == KJ_BUILTIN_JVP) return_forward(d, rule);
  else return_reverse(d);
}
