/* Detects kernels that have no effect if their grid_ranges have no iterations: outside of the
 * ranges they only evaluate expressions that cannot fail, take little time, and have no visible
 * effect. The decision uses the untyped tree, before any code exists. An expression counts as
 * harmless only if all three properties are certain. If some expression is not harmless, a launch
 * without iterations runs the kernel. */
#include "code/kernel.h"

static bool is_harmless(const ki_expr *expr);

static bool are_harmless(const ki_exprs *list)
{
  for (size_t i = 0; i < list->count; i++)
    if (!is_harmless(list->items[i])) return false;
  return true;
}

/* Returns whether the expression is a number other than 0, so that a division by it cannot fail. */
static bool is_safe_divisor(const ki_expr *expr)
{
  return (expr->kind == KJ_EXPR_INT && expr->integer != 0) ||
         (expr->kind == KJ_EXPR_FLOAT && expr->number != 0);
}

static bool divides(kjit_op op)
{
  return op == KJIT_OP_DIV || op == KJIT_OP_FLOORDIV || op == KJIT_OP_MOD;
}

static bool is_harmless_builtin(const ki_expr *call)
{
  const ki_builtin *builtin = call->x->builtin;
  if (!(builtin->flags & KJ_PURE) || (builtin->flags & (KJ_PLACE | KJ_READS | KJ_OPERATOR)))
    return false;
  switch (KJ_AMONG(builtin->id)) {
  case KJ_BUILTIN_VIEW:
  case KJ_BUILTIN_RESHAPE: return false;
  case KJ_BUILTIN_CEIL_DIV:
  case KJ_BUILTIN_DIV_TRUNC:
  case KJ_BUILTIN_REM_TRUNC: return call->args.count == 2 && is_safe_divisor(call->args.items[1]);
  default: return true;
  }
}

static bool is_harmless_call(const ki_expr *call)
{
  bool is_known = call->x->kind == KJ_EXPR_TYPE ||
                  (call->x->kind == KJ_EXPR_BUILTIN && is_harmless_builtin(call));
  return is_known && are_harmless(&call->args);
}

/* Returns whether the index selects an item of an array's shape or strides. Subscripts of arrays
 * load and may be out of bounds. */
static bool is_harmless_subscript(const ki_expr *index)
{
  if (index->x->kind != KJ_EXPR_FIELD || index->args.count != 1) return false;
  const ki_expr *number = index->args.items[0];
  if (number->kind == KJ_EXPR_UNARY && number->op == KJIT_OP_NEG) number = number->x;
  return number->kind == KJ_EXPR_INT && is_harmless(index->x);
}

static bool is_harmless(const ki_expr *expr)
{
  switch (KJ_AMONG(expr->kind)) {
  case KJ_EXPR_INT:
  case KJ_EXPR_FLOAT:
  case KJ_EXPR_BOOL:
  case KJ_EXPR_TYPE:
  case KJ_EXPR_DECL: return true;
  case KJ_EXPR_BUILTIN: return (expr->builtin->flags & KJ_PURE) != 0;
  case KJ_EXPR_FIELD:
  case KJ_EXPR_UNARY: return is_harmless(expr->x);
  case KJ_EXPR_BINARY:
    return is_harmless(expr->x) &&
           (divides(expr->op) ? is_safe_divisor(expr->y) : is_harmless(expr->y));
  case KJ_EXPR_COND: return is_harmless(expr->x) && is_harmless(expr->y) && is_harmless(expr->z);
  case KJ_EXPR_TUPLE: return are_harmless(&expr->args);
  case KJ_EXPR_CALL: return is_harmless_call(expr);
  case KJ_EXPR_INDEX: return is_harmless_subscript(expr);
  default: return false;
  }
}

/* Returns whether the statement is a `let` of harmless values. */
static bool is_harmless_let(const ki_stmt *stmt)
{
  if (stmt->kind != KJ_STMT_DECLARE) return false;
  if (stmt->value && !is_harmless(stmt->value)) return false;
  for (size_t i = 0; i < stmt->decls.count; i++) {
    const ki_decl *decl = stmt->decls.items[i];
    if (decl->kind != KJ_DECL_LET || (decl->value && !is_harmless(decl->value))) return false;
  }
  return true;
}

/* A launch computes the extents itself (evaluate.c), but does not perform checks, such as the check
 * of a division by 0. So an extent is not harmless if its evaluation may fail in the kernel. */
bool kj_is_range_only(const ki_function *function)
{
  bool has_range = false;
  for (size_t i = 0; i < function->body.count; i++) {
    const ki_stmt *stmt = function->body.items[i];
    bool is_range = stmt->kind == KJ_STMT_FOR && stmt->range == KJ_GRID_RANGE;
    if (is_range ? !are_harmless(&stmt->args) : !is_harmless_let(stmt)) return false;
    has_range = has_range || is_range;
  }
  return has_range;
}
