/* Verifies expressions of each kind in their role (ki_role), and calls with their arguments. */
#include <string.h>

#include "ir/verify.h"

/* ---- expressions ---- */

static void verify_operands(ki_verifier *v, ki_expr *expr)
{
  bool compares =
    expr->kind == KJ_EXPR_BINARY && (expr->op == KJIT_OP_EQ || expr->op == KJIT_OP_NE);
  ki_expr *operands[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3; i++)
    if (operands[i]) ki_verify_expr(v, operands[i], compares ? KJ_ROLE_COMPARED : KJ_ROLE_VALUE);
}

static void verify_index(ki_verifier *v, ki_expr *expr, ki_role role)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_INDEX);
  if (role == KJ_ROLE_TYPE) {
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "expected the type of a scalar, found an index");
    return;
  }
  ki_verify_expr(v, expr->x, KJ_ROLE_VALUE);
  if (expr->args.count > KJ_MAX_RANK)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "an array has at most %d dimensions, but %zu indices are given", KJ_MAX_RANK,
                   expr->args.count);
  for (size_t i = 0; i < expr->args.count; i++) {
    if (expr->args.items[i]->kind == KJ_EXPR_SLICE) verify_operands(v, expr->args.items[i]);
    else ki_verify_expr(v, expr->args.items[i], KJ_ROLE_VALUE);
  }
}

/* Returns the name of a scalar or vector type, and NULL for any other type. */
static const char *name_of_type(ki_verifier *v, kjit_type type)
{
  const ki_type_info *info = ki_type(v->module->types, type);
  if (info->class_ == KJ_CLASS_VECTOR)
    return kj_format(v->arena, "%sx%u", ki_type(v->module->types, info->element)->name,
                     info->count);
  return ki_is_scalar(type) ? info->name : NULL;
}

static void refuse_type_value(ki_verifier *v, const ki_expr *expr, ki_role role)
{
  if (role == KJ_ROLE_VALUE)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "expected a value, found a type; to convert, write `f32(x)`");
}

/* Verifies a call of bind_back or of a derivative, whose value is a func. The derivative of a func
 * that writes to an array also writes to the array's derivative. The verifier does not know which
 * parameter is the array's derivative, because this depends on types. So if a module passes a
 * derivative as an argument, the module is treated as if each func parameter could write to its
 * array arguments. */
static void verify_func_value(ki_verifier *v, const ki_expr *made, ki_role role)
{
  const ki_builtin *builtin = made->x->builtin;
  bool is_derivative = ki_is_derivative(builtin);
  if (is_derivative && role == KJ_ROLE_ARGUMENT) v->module->hands_over_writer = true;
  if (role == KJ_ROLE_ARGUMENT || role == KJ_ROLE_COMPARED) return;
  if (is_derivative && role == KJ_ROLE_CALLEE) return;
  ki_fail_verify(v, made->location, KJIT_ERROR_TYPE,
                 "`%s` returns a function, which can only be %spassed to a `func` parameter",
                 builtin->name, is_derivative ? "called or " : "");
}

void ki_verify_expr(ki_verifier *v, ki_expr *expr, ki_role role)
{
  if (expr->kind == KJ_EXPR_NAME) ki_resolve_name(v, expr);
  if (expr->kind == KJ_EXPR_DECL && expr->decl->is_type) ki_name_type_parameter(v, expr);
  switch (expr->kind) {
  case KJ_EXPR_INT:
  case KJ_EXPR_FLOAT:
  case KJ_EXPR_BOOL:
  case KJ_EXPR_NAME: break;
  case KJ_EXPR_STRING:
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "a string is not a value; strings can only be used in " KJ_PHRASE(
                     STRING_USES, "`assert`, `raise` and `print`"));
    break;
  case KJ_EXPR_DECL: ki_verify_decl(v, expr, role); break;
  case KJ_EXPR_BUILTIN: ki_verify_builtin(v, expr, role); break;
  case KJ_EXPR_TYPE:
    ki_verify_type(v, expr->type_expr, false);
    if (expr->type_expr->kind == KJ_TYPE_FIXED && name_of_type(v, expr->type_expr->type))
      ki_refuse_hidden(v, expr, name_of_type(v, expr->type_expr->type));
    refuse_type_value(v, expr, role);
    break;
  case KJ_EXPR_UNARY:
  case KJ_EXPR_BINARY:
  case KJ_EXPR_COND: verify_operands(v, expr); break;
  case KJ_EXPR_CALL:
    ki_verify_call(v, expr);
    if (expr->kind == KJ_EXPR_TYPE) refuse_type_value(v, expr, role);
    if (ki_is_func_value(expr)) verify_func_value(v, expr, role);
    break;
  case KJ_EXPR_INDEX: verify_index(v, expr, role); break;
  case KJ_EXPR_SLICE:
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "a slice can only be used as an array index");
    break;
  case KJ_EXPR_FIELD: ki_verify_field(v, expr); break;
  case KJ_EXPR_TUPLE:
  case KJ_EXPR_AGGREGATE: ki_verify_exprs(v, &expr->args, KJ_ROLE_VALUE); break;
  }
  bool is_value = expr->kind != KJ_EXPR_NAME && expr->kind != KJ_EXPR_TYPE &&
                  expr->kind != KJ_EXPR_DECL && expr->kind != KJ_EXPR_BUILTIN &&
                  expr->kind != KJ_EXPR_INDEX;
  if (role == KJ_ROLE_TYPE && is_value)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected a type, found a value");
}

void ki_verify_exprs(ki_verifier *v, ki_exprs *list, ki_role role)
{
  for (size_t i = 0; i < list->count; i++) ki_verify_expr(v, list->items[i], role);
}

/* ---- calls ---- */

static void fail_count(ki_verifier *v, const ki_expr *call, const char *name, size_t least,
                       size_t most)
{
  KJ_ASSERT(least <= most);
  size_t count = call->args.count;
  if (least == most)
    ki_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` takes %zu argument%s, got %zu", name,
                   least, least == 1 ? "" : "s", count);
  else
    ki_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` takes %zu to %zu arguments, got %zu",
                   name, least, most, count);
}

/* Returns whether the call has one argument too many, and this argument is a memory order. */
static bool has_order(const ki_expr *call)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_BUILTIN);
  const ki_builtin *builtin = call->x->builtin;
  if (!(builtin->flags & KJ_ORDER) || call->args.count != (size_t)builtin->most + 1) return false;
  const ki_expr *last = call->args.items[builtin->most];
  const ki_builtin *order = last->kind == KJ_EXPR_BUILTIN ? last->builtin
                            : last->kind == KJ_EXPR_NAME  ? ki_find_builtin(last->name)
                                                          : NULL;
  return order && order->id >= KJ_BUILTIN_RELAXED && order->id <= KJ_BUILTIN_SEQ_CST;
}

/* Reports two common mistakes that lead to one argument too many: a quoted memory order, as in
 * `atomic_load(p[0], "acquire")`; and an array with an index in place of an element, as in
 * `atomic_add(a, i, v)`. */
static bool refuse_one_more(ki_verifier *v, const ki_expr *call)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_BUILTIN);
  const ki_builtin *builtin = call->x->builtin;
  if (!(builtin->flags & KJ_PLACE) || call->args.count != (size_t)builtin->most + 1) return false;
  const ki_expr *last = call->args.items[builtin->most];
  if ((builtin->flags & KJ_ORDER) && last->kind == KJ_EXPR_STRING) {
    ki_fail_verify(v, last->location, KJIT_ERROR_TYPE,
                   "a memory order must be relaxed, acquire, release, acq_rel or seq_cst, without "
                   "quotes: `%s(%s, acquire)`",
                   builtin->name, builtin->most > 1 ? "a[i], x" : "a[i]");
    return true;
  }
  ki_fail_verify(
    v, call->location, KJIT_ERROR_TYPE,
    "`%s` takes %u arguments, got %zu; the first argument is the element, `%s(a[i], ...)`",
    builtin->name, builtin->most, call->args.count, builtin->name);
  return true;
}

static bool is_literal_rank(const ki_expr *expr)
{
  return expr->kind != KJ_EXPR_INT || (expr->integer >= 1 && expr->integer <= 3);
}

/* Converts a call of dtype(e) or vector(T, n) to a type. */
static void convert_type(ki_verifier *v, ki_expr *call)
{
  ki_type_expr *type = KJ_NEW(v->arena, ki_type_expr);
  bool is_vector = call->x->builtin->id == KJ_BUILTIN_VECTOR;
  const ki_expr *first = call->args.items[0];
  if (is_vector && first->kind != KJ_EXPR_TYPE) return; /* already reported */
  type->kind = is_vector ? KJ_TYPE_VECTOR : KJ_TYPE_DTYPE;
  type->location = call->location;
  if (is_vector) {
    type->element = first->type_expr;
    KJ_PUSH(v->arena, &type->extents, call->args.items[1]);
  } else {
    type->expr = call->args.items[0];
  }
  *call = (ki_expr){
    .kind = KJ_EXPR_TYPE, .location = call->location, .height = call->height, .type_expr = type
  };
}

/* Converts the first argument of `view(`, for example `f32[n, m]`, from an index expression to a
 * type. The type extents are values. */
static void convert_to_array_type(ki_verifier *v, ki_expr *expr)
{
  if (expr->kind != KJ_EXPR_INDEX || expr->args.count == 0) {
    ki_fail_verify(
      v, expr->location, KJIT_ERROR_TYPE,
      "the first argument of `view` must be an array type with extents: `view(f32[n, m], p)`");
    return;
  }
  ki_convert_to_type(v, expr->x);
  for (size_t i = 0; i < expr->args.count; i++)
    ki_verify_expr(v, expr->args.items[i], KJ_ROLE_VALUE);
  if (expr->x->kind != KJ_EXPR_TYPE) return; /* already reported */
  ki_type_expr *type = KJ_NEW(v->arena, ki_type_expr);
  *type = (ki_type_expr){ .kind = KJ_TYPE_STATIC_ARRAY,
                          .location = expr->location,
                          .element = expr->x->type_expr,
                          .extents = expr->args };
  *expr = (ki_expr){
    .kind = KJ_EXPR_TYPE, .location = expr->location, .height = expr->height, .type_expr = type
  };
}

static void note_forbidden(ki_verifier *v, const char *what, kj_location location)
{
  ki_summary *summary = &v->summaries[v->decl->index];
  if (v->range)
    ki_fail_verify(v, location, KJIT_ERROR_TYPE,
                   "%s cannot be used in the body of a %s, whose iterations are independent and "
                   "can run in any order",
                   what, ki_range_names[v->range->range]);
  if (summary->forbidden) return;
  summary->forbidden = what;
  summary->forbidden_at = location;
}

/* Checks that the argument of inline PTX is a string. */
static void verify_text(ki_verifier *v, const ki_expr *call, size_t index)
{
  if (index < call->args.count && call->args.items[index]->kind == KJ_EXPR_STRING) return;
  ki_fail_verify(v, call->location, KJIT_ERROR_TYPE,
                 "the first argument of `%s` must be a string with the instructions, as in `%s`",
                 call->x->builtin->name,
                 index ? "ptx(i32, \"add.s32 %0, %1, %2;\", x, y)"
                       : "ptx_effect(\"nanosleep.u32 %0;\", n)");
}

/* Verifies bind_back(f, values). The values can be funcs, too. */
static void verify_bind_back(ki_verifier *v, ki_expr *call)
{
  const ki_expr *bound = call->args.items[0];
  ki_verify_exprs(v, &call->args, KJ_ROLE_ARGUMENT);
  bool has_parameters = bound->kind == KJ_EXPR_DECL && bound->decl->kind == KJ_DECL_FUNCTION;
  size_t most = has_parameters ? bound->decl->function->params.count : SIZE_MAX;
  if (!ki_is_func_value(bound) && bound->kind != KJ_EXPR_NAME)
    ki_fail_verify(
      v, bound->location, KJIT_ERROR_TYPE,
      "the first argument of `bind_back` must be a function: `bind_back(f, x)` is f with "
      "x as its last argument");
  else if (call->args.count - 1 > most)
    ki_fail_verify(v, call->location, KJIT_ERROR_TYPE,
                   "`%s` has %zu parameter%s, but %zu values are bound", bound->decl->name, most,
                   most == 1 ? "" : "s", call->args.count - 1);
}

/* Verifies the func argument of built-ins such as identity_of(op, like). The rules about calls
 * treat the func as if it were passed to a func parameter and called its identity func. */
static void verify_operator(ki_verifier *v, const ki_expr *call, size_t index)
{
  ki_expr *operator_ = call->args.items[index];
  v->takes_kernel = call->x->builtin->id == KJ_BUILTIN_ADJOINT;
  ki_verify_expr(v, operator_, KJ_ROLE_ARGUMENT);
  v->takes_kernel = false;
  if (!ki_is_func_value(operator_) && operator_->kind != KJ_EXPR_NAME)
    ki_fail_verify(v, operator_->location, KJIT_ERROR_TYPE,
                   "the first argument of `%s` must be a function", call->x->builtin->name);
}

static void verify_builtin_arguments(ki_verifier *v, ki_expr *call)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_BUILTIN);
  const ki_builtin *builtin = call->x->builtin;
  size_t first = 0;
  if (builtin->id == KJ_BUILTIN_BIND_BACK && call->args.count) {
    verify_bind_back(v, call);
    return;
  }
  if (call->args.count && builtin->id == KJ_BUILTIN_VIEW)
    convert_to_array_type(v, call->args.items[first++]);
  else if (call->args.count && (builtin->flags & KJ_TYPE_ARG))
    ki_convert_to_type(v, call->args.items[first++]);
  else if (call->args.count && (builtin->flags & (KJ_PLACE | KJ_ADDRESS)))
    ki_verify_place(v, call->args.items[first++], true);
  if (builtin->id == KJ_BUILTIN_PTX || builtin->id == KJ_BUILTIN_PTX_EFFECT)
    verify_text(v, call, first++);
  if (call->args.count && (builtin->flags & KJ_OPERATOR)) verify_operator(v, call, first++);
  for (size_t i = first; i < call->args.count; i++)
    ki_verify_expr(v, call->args.items[i], KJ_ROLE_VALUE);
}

static void verify_builtin_call(ki_verifier *v, ki_expr *call)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_BUILTIN);
  const ki_builtin *builtin = call->x->builtin;
  size_t count = call->args.count;
  /* the built-in is not a function, which has been reported already */
  if (builtin->flags & KJ_NAME) return;
  bool fits = (count >= builtin->least && count <= builtin->most) || has_order(call);
  if (!fits && refuse_one_more(v, call)) return;
  if (!fits) fail_count(v, call, builtin->name, builtin->least, builtin->most);
  verify_builtin_arguments(v, call);
  if (builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR || builtin->id == KJ_BUILTIN_CP_ASYNC_TENSOR_STORE)
    v->module->has_tensor_copies = true;
  if (builtin->flags & (KJ_BARRIER | KJ_WARP))
    note_forbidden(v, kj_format(v->arena, "`%s`", builtin->name), call->location);
  bool is_grid = builtin->id == KJ_BUILTIN_GRID || builtin->id == KJ_BUILTIN_GRIDSIZE;
  if (is_grid && count == 1 && !is_literal_rank(call->args.items[0]))
    ki_fail_verify(v, call->location, KJIT_ERROR_TYPE, "a grid must have 1, 2 or 3 dimensions");
  if ((builtin->id == KJ_BUILTIN_DTYPE && count == 1) ||
      (builtin->id == KJ_BUILTIN_VECTOR && count == 2))
    convert_type(v, call);
}

static void verify_function_call(ki_verifier *v, ki_expr *call)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_DECL && call->x->decl->kind == KJ_DECL_FUNCTION);
  const ki_decl *callee = call->x->decl;
  const ki_function *function = callee->function;
  size_t least = ki_least_arguments(function), most = function->params.count;
  if (call->args.count < least || call->args.count > most) {
    fail_count(v, call, callee->name, least, most);
    ki_note_verify(v, callee->location, "`%s` is declared here", callee->name);
    return;
  }
  for (size_t i = 0; i < call->args.count; i++) {
    const ki_decl *param = function->params.items[i];
    const ki_expr *argument = call->args.items[i];
    if (ki_is_func_value(argument) && !param->is_func && !param->is_type)
      ki_fail_verify(v, argument->location, KJIT_ERROR_TYPE,
                     "parameter `%s` of `%s` takes a value, not a function: declare it `%s: func`",
                     param->name, callee->name, param->name);
    else if (param->is_func && !ki_is_func_value(argument) && argument->kind != KJ_EXPR_NAME)
      ki_fail_verify(v, argument->location, KJIT_ERROR_TYPE,
                     "parameter `%s` of `%s` must be a function", param->name, callee->name);
    else if (!param->is_type && argument->kind == KJ_EXPR_TYPE)
      ki_fail_verify(v, argument->location, KJIT_ERROR_TYPE,
                     "parameter `%s` of `%s` takes a value, not a type: declare it `%s: type`",
                     param->name, callee->name, param->name);
  }
}

static void verify_cast(ki_verifier *v, const ki_expr *call)
{
  KJ_ASSERT(call->x->kind == KJ_EXPR_TYPE);
  const ki_type_expr *type = call->x->type_expr;
  bool is_scalar = type->kind == KJ_TYPE_FIXED && ki_is_scalar(type->type);
  bool is_complex = is_scalar && ki_type(v->module->types, type->type)->class_ == KJ_CLASS_COMPLEX;
  /* vectors, structs and complex numbers are constructed from several values; type inference checks
   * their number */
  if (call->args.count == 1 || !is_scalar || is_complex) return;
  const char *name = ki_type(v->module->types, type->type)->name;
  ki_fail_verify(v, call->location, KJIT_ERROR_TYPE, "`%s` converts exactly one value, got %zu",
                 name, call->args.count);
}

static void verify_argument(ki_verifier *v, const ki_expr *call, size_t index)
{
  const ki_expr *callee = call->x;
  bool has_parameters = callee->kind == KJ_EXPR_DECL && callee->decl->kind == KJ_DECL_FUNCTION &&
                        index < callee->decl->function->params.count;
  if (has_parameters && callee->decl->function->params.items[index]->is_type)
    ki_convert_to_type(v, call->args.items[index]);
  else
    ki_verify_expr(v, call->args.items[index],
                   callee->kind == KJ_EXPR_TYPE ? KJ_ROLE_VALUE : KJ_ROLE_ARGUMENT);
}

/* Rejects method calls as in Python, for example `a.conj()`. If the name before the dot is unknown,
 * that has been reported already. */
static void refuse_method(ki_verifier *v, const ki_expr *callee)
{
  KJ_ASSERT(callee->kind == KJ_EXPR_FIELD);
  const ki_expr *x = callee->x;
  const char *name = callee->name, *subject = x->kind == KJ_EXPR_DECL ? x->decl->name : "x";
  const ki_decl *decl = ki_find_visible(v, callee->location, name);
  const ki_builtin *builtin = ki_find_builtin(name);
  bool is_function = (decl && decl->kind == KJ_DECL_FUNCTION) ||
                     (builtin && !(builtin->flags & KJ_NAME) && builtin->least == 1);
  const ki_expr *root = x;
  while (root->kind == KJ_EXPR_FIELD) root = root->x;
  if (root->kind == KJ_EXPR_NAME) return;
  if (is_function)
    ki_fail_verify(v, callee->location, KJIT_ERROR_TYPE, "values have no methods: write `%s(%s)`",
                   name, subject);
  else
    ki_fail_verify(
      v, callee->location, KJIT_ERROR_NAME,
      "values have no methods, and there is no function `%s`: declare `func %s(%s)` in the module",
      name, name, subject);
}

void ki_verify_call(ki_verifier *v, ki_expr *call)
{
  ki_expr *callee = call->x;
  ki_verify_expr(v, callee, KJ_ROLE_CALLEE);
  if (callee->kind == KJ_EXPR_BUILTIN) {
    verify_builtin_call(v, call);
    return;
  }
  if (callee->kind == KJ_EXPR_FIELD) refuse_method(v, callee);
  bool is_cast = callee->kind == KJ_EXPR_TYPE, is_name = callee->kind == KJ_EXPR_DECL ||
                                                         callee->kind == KJ_EXPR_NAME ||
                                                         callee->kind == KJ_EXPR_FIELD;
  bool is_made = callee->kind == KJ_EXPR_CALL && ki_is_func_value(callee);
  bool is_refused_type = callee->kind == KJ_EXPR_CALL && callee->x->kind == KJ_EXPR_BUILTIN &&
                         (callee->x->builtin->flags & KJ_UNEVALUATED);
  if (!is_cast && !is_name && !is_refused_type && !is_made)
    ki_fail_verify(v, callee->location, KJIT_ERROR_TYPE, "only a function or a type can be called");
  for (size_t i = 0; i < call->args.count; i++) verify_argument(v, call, i);
  if (is_cast) verify_cast(v, call);
  if (callee->kind == KJ_EXPR_DECL && callee->decl->kind == KJ_DECL_FUNCTION)
    verify_function_call(v, call);
}
