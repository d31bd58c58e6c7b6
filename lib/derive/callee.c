/* Infers the types of calls of derivatives, for example `jvp(f)(x, dx)`. The first arguments are
 * the arguments of f. They are bound as in a call of f. The binding selects the instance of f that
 * is differentiated. The remaining arguments are derivatives, one for each chosen parameter of f
 * that holds floats. */
#include "derive/derive.h"

bool kd_is_derivative(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_CALL && expr->x->kind == KJ_EXPR_BUILTIN &&
         ki_is_derivative(expr->x->builtin);
}

/* ---- the callee `jvp(f, 0, 2)` ---- */

enum { MOST_CHOSEN = 64 };

static uint64_t infer_chosen(kt_scope *s, const ki_expr *expr)
{
  uint64_t chosen = 0;
  for (size_t i = 1; i < expr->args.count; i++) {
    const ki_expr *number = expr->args.items[i];
    int64_t index = kt_infer_constant(s, number, "a parameter number");
    if (index < 0 || index >= MOST_CHOSEN)
      kt_fail(s->c, number->location, KJIT_ERROR_TYPE,
              "the number of a parameter must be from 0 to %d, got %lld", MOST_CHOSEN - 1,
              (long long)index);
    chosen |= (uint64_t)1 << index;
  }
  return chosen;
}

/* Checks that `adjoint` is used for a kernel and the other derivatives for a func. */
static void check_kind(kt_scope *s, const ki_expr *first, const kt_derived *derived)
{
  const char *name = derived->of.function->decl->name;
  if (derived->kind != KJ_BUILTIN_ADJOINT) return;
  if (derived->of.derived || derived->of.captured)
    kt_fail(s->c, first->location, KJIT_ERROR_UNSUPPORTED,
            "`adjoint` takes the name of a kernel: the adjoint of a derivative is not supported");
  if (!derived->of.function->is_kernel)
    kt_fail(s->c, first->location, KJIT_ERROR_TYPE,
            "`adjoint` takes a kernel, and `%s` is a function: write `vjp(%s)`", name, name);
}

kt_callee kd_derive_callee(kt_scope *s, const ki_expr *expr)
{
  const ki_builtin *kind = expr->x->builtin;
  const ki_expr *first = expr->args.items[0];
  kt_derived *derived = KJ_NEW(s->arena, kt_derived);
  derived->kind = kind->id;
  if (!kt_as_callee(s, first, &derived->of))
    kt_fail(s->c, first->location, KJIT_ERROR_TYPE, "the first argument of `%s` must be a function",
            kind->name);
  if (derived->of.builtin)
    kt_fail(s->c, first->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` takes a function that the module declares: declare a function that calls `%s`",
            kind->name, derived->of.builtin->name);
  check_kind(s, first, derived);
  derived->is_chosen = expr->args.count > 1;
  derived->chosen = infer_chosen(s, expr);
  return (kt_callee){ .function = derived->of.function, .derived = derived };
}

kt_expr *kt_rule_derivative(kt_scope *s, const kt_operands *o)
{
  kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
          "`%s` returns a function: call it, or pass it to a `func` parameter", o->builtin->name);
}

kt_expr *kt_rule_no_diff(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = kt_make_concrete(s, o->values.items[0]);
  kt_exprs values = { 0 };
  if (kt_holds_array(s->c, value->type))
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE, "`no_diff` takes a value, got %s",
            kt_type_text(s->c, value->type));
  if (kt_is_constant(value)) return value;
  KJ_PUSH(s->arena, &values, value);
  return kt_new_builtin_of(s, o, values, value->type);
}

/* ---- the arguments of a call ---- */

/* State while the arguments of a call of a derivative are consumed. The arguments in the source
 * come first, followed by the arguments that bind_back captured. */
typedef struct taker {
  kt_scope *s;
  const ki_expr *call;
  const kt_captured *captured; /* NULL means none */
  bool is_adjoint;
  size_t taken;
  kt_order order;
  kt_exprs arguments; /* the consumed arguments that have run-time values */
  /* indexed by argument: the parameter of the instance that receives the argument, or NULL if the
   * argument has no run-time value */
  kt_vars params;
} taker;

static size_t captured_count(const kt_captured *captured) { return captured ? captured->count : 0; }

static size_t given_count(const taker *t)
{
  return t->call->args.count + captured_count(t->captured);
}

static _Noreturn void fail_few(const taker *t, const kt_callee *callee, const char *missing)
{
  kt_fail(t->s->c, t->call->location, KJIT_ERROR_TYPE,
          "`%s` needs more arguments than the %zu given here: %s", kt_callee_text(t->s->c, callee),
          given_count(t), missing);
}

/* Lists the run-time parameters that belong to the first `count` arguments of a call of f. */
static void list_params(taker *t, const kt_inferred *record, size_t count)
{
  const ki_decls *params = &record->instance->function->params;
  for (size_t i = 0; i < count; i++) KJ_PUSH(t->s->arena, &t->params, (kt_var *)NULL);
  for (size_t i = 0; i < record->instance->params.count; i++) {
    kt_var *param = record->instance->params.items[i];
    if (param->argument < count && !params->items[param->argument]->is_func)
      t->params.items[param->argument] = param;
  }
}

/* Binds the arguments of f. The arguments in the source are bound as in a call of f itself.
 * Arguments that bind_back has added to the derivative precede the arguments that f itself has
 * captured. */
static kt_inferred *take_call(taker *t, const kt_callee *callee, uint64_t variable)
{
  kt_scope *s = t->s;
  const kt_captured *own = callee->captured;
  size_t most = callee->function->params.count, own_count = captured_count(own);
  size_t count = most > own_count ? most - own_count : 0, written = t->call->args.count;
  if (count > given_count(t))
    fail_few(t, callee,
             kj_format(s->arena, "%zu argument%s of `%s`", count, count == 1 ? "" : "s",
                       callee->function->decl->name));
  size_t from_call = count < written ? count : written, from_captured = count - from_call;
  ki_expr *call = KJ_NEW(s->arena, ki_expr);
  *call = *t->call;
  call->args = (ki_exprs){ 0 };
  for (size_t i = 0; i < from_call; i++) KJ_PUSH(s->arena, &call->args, t->call->args.items[i]);
  kt_captured *all = KJ_NEW(s->arena, kt_captured);
  all->count = from_captured + own_count;
  all->bounds = KJ_NEW_ARRAY(s->arena, kt_bound, all->count + 1);
  all->values = KJ_NEW_ARRAY(s->arena, kt_expr *, all->count + 1);
  for (size_t i = 0; i < all->count; i++) {
    bool is_own = i >= from_captured;
    size_t at = is_own ? i - from_captured : i;
    all->bounds[i] = (is_own ? own : t->captured)->bounds[at];
    all->values[i] = (is_own ? own : t->captured)->values[at];
  }
  const kt_callee bound = { .function = callee->function, .captured = all };
  t->taken = count;
  if (!t->is_adjoint) kt_refuse_kernel(s, callee->function, t->call->location);
  if (count < MOST_CHOSEN) variable &= ((uint64_t)1 << count) - 1;
  kt_inferred *record = kt_bind_call(s, call, &bound, NULL, variable, &t->arguments);
  list_params(t, record, count);
  return record;
}

/* Consumes the next argument. It must be the derivative of the parameter `of` and have the
 * parameter's type. An array of derivatives can have other strides, and be in another address
 * space, than the parameter's array. */
static kt_expr *take_derivative(taker *t, const kt_callee *callee, const kt_var *of)
{
  kt_scope *s = t->s;
  size_t index = t->taken++, written = t->call->args.count;
  kt_expr *value;
  kj_location location = t->call->location;
  const char *what = kj_format(s->arena, "the derivative of `%s`", of->name);
  kt_begin_operand(s, &t->order);
  if (index < written) {
    location = t->call->args.items[index]->location;
    value = kt_infer_expr(s, t->call->args.items[index]);
  } else if (index < given_count(t) && t->captured->values[index - written]) {
    value = kt_copy_texpr(s, t->captured->values[index - written]);
  } else {
    fail_few(t, callee, what);
  }
  if (t->is_adjoint && !kt_is_array(s->c, of->type)) {
    const ki_type_info *have = ki_type(s->c->types, value->type);
    bool fits = have->class_ == KJ_CLASS_ARRAY && have->element == of->type && have->rank == 1;
    if (!fits)
      kt_fail(s->c, location, KJIT_ERROR_TYPE, "%s must be an array of one element, %s[:], got %s",
              what, kt_type_text(s->c, of->type), kt_type_text(s->c, value->type));
  } else if (kt_is_array(s->c, of->type)) {
    const ki_type_info *want = ki_type(s->c->types, of->type),
                       *have = ki_type(s->c->types, value->type);
    bool fits =
      have->class_ == KJ_CLASS_ARRAY && have->element == want->element && have->rank == want->rank;
    if (!fits)
      kt_fail(s->c, location, KJIT_ERROR_TYPE,
              "%s must be an array with its element type and number of dimensions: expected %s, "
              "got %s",
              what, kt_type_text(s->c, of->type), kt_type_text(s->c, value->type));
  } else {
    value = kt_fit_annotation(s, value, of->type, what, location);
  }
  kt_end_operand(s, &t->order, value);
  kt_settle(s, &t->order, t->arguments.items, t->arguments.count);
  return value;
}

static bool is_chosen(const kt_derived *derived, size_t index)
{
  return !derived->is_chosen || (index < MOST_CHOSEN && derived->chosen >> index & 1);
}

static void refuse_chosen(const taker *t, const kt_callee *callee, size_t index)
{
  kt_fail(t->s->c, t->call->location, KJIT_ERROR_TYPE,
          "`%s` chooses parameter %zu, but this parameter holds no floats",
          kt_callee_text(t->s->c, callee), index);
}

/* Returns the chosen parameters: the parameters of the instance with respect to which it is
 * differentiated. */
static kt_vars list_chosen(const taker *t, const kt_callee *callee)
{
  kt_vars chosen = { 0 }, all = t->params;
  const kt_derived *derived = callee->derived;
  for (size_t i = 0; i < all.count; i++) {
    kt_var *param = all.items[i];
    bool has_derivative = param && kd_holds_float(t->s->c, param->type);
    if (!is_chosen(derived, i)) continue;
    if (t->is_adjoint && !derived->is_chosen)
      has_derivative = has_derivative && kt_is_array(t->s->c, param->type);
    if (has_derivative) KJ_PUSH(t->s->arena, &chosen, param);
    else if (derived->is_chosen) refuse_chosen(t, callee, i);
  }
  for (size_t i = all.count; i < MOST_CHOSEN; i++)
    if (derived->is_chosen && is_chosen(derived, i)) refuse_chosen(t, callee, i);
  return chosen;
}

/* Returns a bit mask of the arguments with respect to which f is differentiated. If such an
 * argument is a float literal, it becomes a run-time argument, so that all literals share one
 * instance. */
static uint64_t list_variable(const kt_callee *callee)
{
  uint64_t variable = 0;
  for (const kt_callee *at = callee; at->derived; at = &at->derived->of)
    variable |= at->derived->is_chosen ? at->derived->chosen : UINT64_MAX;
  return variable;
}

static void hand_over(taker *t, kt_expr *value, kt_exprs *values)
{
  KJ_PUSH(t->s->arena, values, value);
  KJ_PUSH(t->s->arena, &t->arguments, value);
}

static kt_inferred *take_arguments(taker *t, const kt_callee *callee, uint64_t variable)
{
  if (!callee->derived) return take_call(t, callee, variable);
  const kt_derived *derived = callee->derived;
  if (derived->of.derived && derived->of.captured)
    kt_fail(t->s->c, t->call->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` cannot take a derivative whose values are bound: bind the values of the "
            "innermost function, as in `jvp(jvp(bind_back(f, a)))`",
            kt_callee_text(t->s->c, callee));
  kt_inferred *of = take_arguments(t, &derived->of, variable);
  kt_vars chosen = list_chosen(t, callee);
  kt_exprs values = { 0 };
  kt_var result = { .name = callee->function->decl->name, .type = of->instance->result };
  bool is_forward = derived->kind == KJ_BUILTIN_JVP;
  if (derived->kind == KJ_BUILTIN_VJP && result.type != KJIT_VOID)
    hand_over(t, take_derivative(t, callee, &result), &values);
  if (derived->kind == KJ_BUILTIN_GRAD && !kt_is_float(t->s->c, result.type))
    kt_fail(
      t->s->c, t->call->location, KJIT_ERROR_TYPE,
      "`%s` differentiates a function that returns one float, but `%s` returns %s: `vjp` accepts "
      "any result",
      kt_callee_text(t->s->c, callee), result.name, kt_type_text(t->s->c, result.type));
  for (size_t i = 0; i < chosen.count; i++)
    if (is_forward || t->is_adjoint || kt_is_array(t->s->c, chosen.items[i]->type))
      hand_over(t, take_derivative(t, callee, chosen.items[i]), &values);
  kt_inferred *record =
    kd_get_derived(t->s, of, derived->kind, &chosen, &values, t->call->location);
  const kt_vars *made = &record->instance->params;
  for (size_t i = 0; i < t->params.count; i++)
    if (t->params.items[i]) t->params.items[i] = made->items[t->params.items[i]->index];
  for (size_t i = of->instance->params.count; i < made->count; i++)
    KJ_PUSH(t->s->arena, &t->params, made->items[i]);
  return record;
}

kt_expr *kd_infer_call(kt_scope *s, const ki_expr *call, const kt_callee *callee)
{
  taker t = { .s = s,
              .call = call,
              .captured = callee->captured,
              .is_adjoint = callee->derived->kind == KJ_BUILTIN_ADJOINT };
  kt_inferred *record = take_arguments(&t, callee, list_variable(callee));
  if (t.taken != given_count(&t))
    kt_fail(
      s->c, call->location, KJIT_ERROR_TYPE,
      "`%s` takes %zu argument%s, got %zu; it takes the arguments of `%s`, %s",
      kt_callee_text(s->c, callee), t.taken, t.taken == 1 ? "" : "s", given_count(&t),
      callee->function->decl->name,
      callee->derived->kind == KJ_BUILTIN_JVP
        ? "and a derivative for each of its parameters that hold floats"
        : "the derivative with respect to its result (only for `vjp`), and an array of derivatives "
          "for each of its arrays of floats");
  return kt_call_instance(s, record, &t.arguments, call->location);
}
