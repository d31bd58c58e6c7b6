/* Forward derivatives: splits expressions into subexpressions. If a subexpression has a derivative,
 * its value and its derivative are stored in two variables. Subexpressions without a derivative are
 * not split. */
#include "derive/derive.h"

/* ---- the derivative of an expression, computed from the derivatives of its operands ---- */

static kt_expr *tangent_or_zero(kd_derivation *d, const kd_node *node)
{
  return node->tangent ? kd_copy(d, node->tangent) : kd_zero(d, node->from->type);
}

static kt_expr *sum_partials(kd_derivation *d, const kd_node *node)
{
  kt_expr *sum = NULL;
  bool is_builtin = node->from->kind == KJ_T_BUILTIN;
  size_t count = is_builtin ? node->from->args.count : 3;
  for (size_t i = 0; i < count; i++) {
    const kd_node *operand = is_builtin ? node->args[i] : node->nodes[i];
    if (!operand || !operand->tangent) continue;
    kt_expr *more = kd_times_partial(d, node, i, operand->tangent);
    if (more) sum = sum ? kd_add(d, sum, more) : more;
  }
  return sum;
}

/* Returns the derivative of a built-in that returns a pair. The derivative is a sum over the
 * operands: the partial derivative times the derivative of the operand. */
static kt_expr *sum_pairs(kd_derivation *d, const kd_node *node)
{
  kt_expr *sum = NULL;
  for (size_t i = 0; i < node->from->args.count; i++) {
    if (!node->args[i]->tangent) continue;
    kt_expr *more = kd_pair_forward(d, node, i, node->args[i]->tangent);
    sum = sum ? kd_add(d, sum, more) : more;
  }
  return sum;
}

/* Returns a copy of the node's expression in which each operand is replaced by the variable with
 * its value, or with its derivative if is_tangent is set. Indices and conditions are always
 * replaced by values. */
static kt_expr *with_operands(kd_derivation *d, const kd_node *node, bool is_tangent)
{
  const kt_expr *e = node->from;
  kt_expr *made = KJ_NEW(d->arena, kt_expr);
  *made = *e;
  made->args = made->indices = (kt_exprs){ 0 };
  for (size_t i = 0; i < 3; i++) {
    if (!node->nodes[i]) continue;
    *kt_operand_place(made, i) =
      is_tangent ? tangent_or_zero(d, node->nodes[i]) : kd_copy(d, node->nodes[i]->value);
  }
  for (size_t i = 0; i < node->indices.count; i++)
    KJ_PUSH(d->arena, &made->args, kd_copy(d, node->indices.items[i]));
  if (node->indices.count) return made;
  for (size_t i = 0; i < e->args.count; i++) {
    bool is_choice = e->kind == KJ_T_BUILTIN && i == 0;
    KJ_PUSH(d->arena, &made->args,
            is_tangent && !is_choice ? tangent_or_zero(d, node->args[i])
                                     : kd_copy(d, node->args[i]->value));
  }
  return made;
}

static kt_expr *builtin_tangent(kd_derivation *d, const kd_node *node)
{
  switch (KJ_AMONG(kd_rule_of(node->from->builtin))) {
  case KJ_RULE_CHOICE: return with_operands(d, node, true);
  case KJ_RULE_PAIR: return sum_pairs(d, node);
  case KJ_RULE_DISCRETE: return NULL;
  default: return sum_partials(d, node);
  }
}

static kt_expr *make_tangent(kd_derivation *d, const kd_node *node)
{
  const kt_expr *e = node->from;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_VAR: return kd_read(d, d->variables[e->var->index].other);
  case KJ_T_LOAD: return kd_load(d, kd_other_array(d, node->array), &node->indices);
  case KJ_T_BINARY: return sum_partials(d, node);
  case KJ_T_BUILTIN: return builtin_tangent(d, node);
  default: return with_operands(d, node, true);
  }
}

/* ---- expressions by kind ---- */

static kd_node *new_node(kd_derivation *d, const kt_expr *e)
{
  kd_node *node = KJ_NEW(d->arena, kd_node);
  node->from = e;
  node->args = KJ_NEW_ARRAY(d->arena, kd_node *, e->args.count + 1);
  return node;
}

static void keep_indices(kd_derivation *d, kd_node *node)
{
  for (size_t i = 0; i < node->from->args.count; i++)
    KJ_PUSH(d->arena, &node->indices, kd_keep(d, kd_copy(d, node->from->args.items[i])));
}

static void flatten_operands(kd_derivation *d, kd_node *node)
{
  const kt_expr *e = node->from;
  kt_expr *const own[] = { e->x, e->y, e->z };
  bool has_indices = e->kind == KJ_T_ELEMENT || e->kind == KJ_T_INSERT;
  for (size_t i = 0; i < 3; i++)
    if (own[i]) node->nodes[i] = kd_flatten(d, own[i]);
  if (has_indices) keep_indices(d, node);
  for (size_t i = 0; !has_indices && i < e->args.count; i++)
    node->args[i] = kd_flatten(d, e->args.items[i]);
}

/* Flattens a conditional expression. Each value and its derivative are computed in the selected
 * branch only, so that a NaN in the other branch has no effect. */
static void flatten_cond(kd_derivation *d, kd_node *node)
{
  const kt_expr *e = node->from;
  bool is_forward = d->kind == KJ_BUILTIN_JVP;
  kt_var *value = kd_new_var(d, "_value", e->type, e->location),
         *tangent = is_forward ? kd_new_var(d, "_tangent", e->type, e->location) : NULL;
  node->nodes[0] = new_node(d, e->x);
  node->nodes[0]->value = kd_keep(d, kd_copy(d, e->x));
  kt_stmt *branch = kt_new_if(d->c, kd_copy(d, node->nodes[0]->value), e->location);
  kt_emit(d->s, branch);
  kt_stmts *outer = d->s->out;
  for (int i = 1; i <= 2; i++) {
    d->s->out = i == 1 ? &branch->body : &branch->otherwise;
    const kd_node *arm = node->nodes[i] = kd_flatten(d, i == 1 ? e->y : e->z);
    kd_assign(d, value, kd_copy(d, arm->value));
    if (is_forward) kd_assign(d, tangent, tangent_or_zero(d, arm));
  }
  d->s->out = outer;
  node->value = kd_read(d, value);
  node->tangent = is_forward ? kd_read(d, tangent) : NULL;
}

static void flatten_load(kd_derivation *d, kd_node *node)
{
  node->array = kd_keep_array(d, node->from->x);
  keep_indices(d, node);
  kt_expr *load = kd_load(d, kd_copy(d, node->array), &node->indices);
  load->location = node->from->location;
  load->is_kept = node->from->is_kept;
  node->value = kd_keep(d, load);
}

/* ---- calls that are not inlined ---- */

static _Noreturn void refuse_call(kd_derivation *d, const kt_expr *e)
{
  const ki_function *function = e->instance->function;
  const char *name = function->decl->name, *rule = kd_rule_word(d);
  if (function->is_extern)
    kd_refuse(
      d, e->location,
      "the extern function `%s` has no derivative: call it in a function that has a derivative "
      "rule, " KJ_PHRASE(DERIVATIVE_RULE, "`func f(x) @" KJ_PHRASE_ARGUMENT("%s") "(g)`"),
      name, rule);
  kd_refuse(
    d, e->location,
    "`%s` calls itself, and recursion has no derivative: write a loop, or a rule, " KJ_PHRASE(
      DERIVATIVE_RULE, "`func %s(...) @" KJ_PHRASE_ARGUMENT("%s") "(g)`"),
    name, name, rule);
}

static void refuse_array_argument(kd_derivation *d, const kt_expr *call, const kt_expr *argument)
{
  kd_refuse(
    d, argument->location,
    "`%s` has a derivative rule, but kjit does not differentiate a call of such a func if an "
    "argument is an array of floats",
    call->instance->function->decl->name);
}

/* Flattens the arguments of a call that is not inlined. */
static kt_exprs flatten_arguments(kd_derivation *d, kd_node *node)
{
  const kt_expr *e = node->from;
  kt_exprs values = { 0 };
  for (size_t i = 0; i < e->args.count; i++) {
    const kt_expr *argument = e->args.items[i];
    if (kt_is_array(d->c, argument->type)) {
      if (kd_holds_float(d->c, argument->type)) refuse_array_argument(d, e, argument);
      node->args[i] = new_node(d, argument);
      node->args[i]->value = kd_keep_array(d, argument);
    } else {
      node->args[i] = kd_flatten(d, argument);
    }
    KJ_PUSH(d->arena, &values, kd_copy(d, node->args[i]->value));
  }
  return values;
}

/* Flattens a call of a func with a custom rule. In forward mode the rule returns the value and the
 * derivative; in reverse mode the func itself returns the value. */
static void flatten_call(kd_derivation *d, kd_node *node)
{
  const kt_expr *e = node->from;
  const kt_inferred *of = d->s->inference->records.items[e->instance->id];
  const ki_function *function = e->instance->function,
                    *rule = of->derived_of ? NULL : kd_own_rule(d, function, e->location);
  if (!rule) refuse_call(d, e);
  kt_exprs values = flatten_arguments(d, node), derivatives = { 0 };
  if (d->kind != KJ_BUILTIN_JVP) {
    kt_expr *call = KJ_NEW(d->arena, kt_expr);
    *call = *e;
    call->args = values;
    node->value = kd_keep(d, call);
    return;
  }
  for (size_t i = 0; i < e->args.count; i++)
    KJ_PUSH(d->arena, &derivatives,
            kd_holds_float(d->c, e->args.items[i]->type) ? tangent_or_zero(d, node->args[i])
                                                         : NULL);
  kt_expr *both = kd_call_rule(d, rule, of, &values, &derivatives, e->location);
  kd_check_pair(d, both, e->type, rule, function, e->location);
  both = kd_keep(d, both);
  node->value = kd_keep(d, kt_make_item(d->s, both, 0, e->location));
  node->tangent = kd_keep(d, kt_make_item(d->s, kd_copy(d, both), 1, e->location));
}

/* ---- entry point ---- */

static bool is_active(const kd_derivation *d, const kt_expr *e)
{
  if (!kd_varies(d, e)) return false;
  const kt_var *var = e->kind == KJ_T_VAR ? e->var : e->kind == KJ_T_LOAD ? kd_root(e->x) : NULL;
  return !var || kd_is_active(d, var);
}

kd_node *kd_flatten(kd_derivation *d, const kt_expr *e)
{
  kd_node *node = new_node(d, e);
  kt_count_work(d->s, e->location);
  if (!is_active(d, e)) {
    node->value = kd_keep(d, kd_copy(d, e));
    return node;
  }
  node->is_active = true;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_COND: flatten_cond(d, node); return node;
  case KJ_T_CALL: flatten_call(d, node); return node;
  case KJ_T_VAR: node->value = kd_keep(d, kd_copy(d, e)); break;
  case KJ_T_LOAD: flatten_load(d, node); break;
  default: flatten_operands(d, node); node->value = kd_keep(d, with_operands(d, node, false));
  }
  if (d->kind != KJ_BUILTIN_JVP) return node;
  kt_expr *tangent = make_tangent(d, node);
  node->tangent = tangent ? kd_keep(d, tangent) : NULL;
  return node;
}
