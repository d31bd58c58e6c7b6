/* Expressions: each kind, in the role in which it stands. */
#include "ir/verify.h"

static void verify_operands(kj_verifier *v, kj_expr *expr)
{
  bool compares = expr->kind == KJ_EXPR_BINARY && (expr->op == KJIT_EQ || expr->op == KJIT_NE);
  kj_expr *operands[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3; i++)
    if (operands[i]) kj_verify_expr(v, operands[i], compares ? KJ_ROLE_COMPARED : KJ_ROLE_VALUE);
}

static void verify_index(kj_verifier *v, kj_expr *expr, kj_role role)
{
  if (role == KJ_ROLE_TYPE) {
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "expected the type of a scalar, found an index");
    return;
  }
  kj_verify_expr(v, expr->x, KJ_ROLE_VALUE);
  if (expr->args.count > KJ_MAX_RANK)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "an array has at most %d dimensions, here are %zu indices", KJ_MAX_RANK,
                   expr->args.count);
  for (size_t i = 0; i < expr->args.count; i++) {
    if (expr->args.items[i]->kind == KJ_EXPR_SLICE) verify_operands(v, expr->args.items[i]);
    else kj_verify_expr(v, expr->args.items[i], KJ_ROLE_VALUE);
  }
}

/* Of a scalar or vector; NULL: others have none. */
static const char *name_of_type(kj_verifier *v, kjit_type type)
{
  const kj_type_info *info = kj_type(v->module->types, type);
  if (info->class_ == KJ_CLASS_VECTOR)
    return kj_format(v->arena, "%sx%u", kj_type(v->module->types, info->element)->name,
                     info->count);
  return kj_is_scalar(type) ? info->name : NULL;
}

static void refuse_type_value(kj_verifier *v, const kj_expr *expr, kj_role role)
{
  if (role == KJ_ROLE_VALUE || role == KJ_ROLE_ARGUMENT)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "expected a value, found a type; `f32(x)` converts");
}

void kj_verify_expr(kj_verifier *v, kj_expr *expr, kj_role role)
{
  if (expr->kind == KJ_EXPR_NAME) kj_resolve_name(v, expr);
  switch (expr->kind) {
  case KJ_EXPR_INT:
  case KJ_EXPR_FLOAT:
  case KJ_EXPR_BOOL:
  case KJ_EXPR_NAME: break;
  case KJ_EXPR_STRING:
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "a string is no value: it can only be printed");
    break;
  case KJ_EXPR_DECL: kj_verify_decl(v, expr, role); break;
  case KJ_EXPR_BUILTIN: kj_verify_builtin(v, expr, role); break;
  case KJ_EXPR_TYPE:
    kj_verify_type(v, expr->type_expr, false);
    if (expr->type_expr->kind == KJ_TYPE_FIXED && name_of_type(v, expr->type_expr->type))
      kj_refuse_hidden(v, expr, name_of_type(v, expr->type_expr->type));
    refuse_type_value(v, expr, role);
    break;
  case KJ_EXPR_UNARY:
  case KJ_EXPR_BINARY:
  case KJ_EXPR_COND: verify_operands(v, expr); break;
  case KJ_EXPR_CALL:
    kj_verify_call(v, expr);
    if (expr->kind == KJ_EXPR_TYPE) refuse_type_value(v, expr, role);
    break;
  case KJ_EXPR_INDEX: verify_index(v, expr, role); break;
  case KJ_EXPR_SLICE:
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "a slice is no value: it stands in the index of an array");
    break;
  case KJ_EXPR_FIELD: kj_verify_field(v, expr); break;
  case KJ_EXPR_TUPLE: kj_verify_exprs(v, &expr->args, KJ_ROLE_VALUE); break;
  }
  bool is_value = expr->kind != KJ_EXPR_NAME && expr->kind != KJ_EXPR_TYPE &&
                  expr->kind != KJ_EXPR_DECL && expr->kind != KJ_EXPR_BUILTIN &&
                  expr->kind != KJ_EXPR_INDEX;
  if (role == KJ_ROLE_TYPE && is_value)
    kj_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected a type, found a value");
}

void kj_verify_exprs(kj_verifier *v, kj_exprs *list, kj_role role)
{
  for (size_t i = 0; i < list->count; i++) kj_verify_expr(v, list->items[i], role);
}
