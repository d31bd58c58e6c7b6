/* The fast path of evaluate.c: i32 and i64 numbers and extents of array arguments, which nearly all
 * launches have. It computes in 64 bits. Where evaluate.c would convert, wrap around or report an
 * error, the fast path declines. */
#include <string.h>

#include "code/evaluate.h"

/* A number. type: i64, i32, or KJ_WEAK_INT for a literal, which takes the type of the other
 * operand. A number of the last two types fits i32. */
typedef struct number {
  int64_t value;
  kjit_type type;
} number;

/* steps: the number of expressions that may still be evaluated. */
static bool evaluate(const kj_scope *scope, uint32_t *steps, const ki_expr *expr, number *n);

static inline bool give(kjit_type type, int64_t value, number *n)
{
  *n = (number){ value, type };
  return type == KJIT_I64 || ((type == KJIT_I32 || type == KJ_WEAK_INT) && value == (int32_t)value);
}

static inline bool give_value(kjit_type type, __int128 value, number *n)
{
  return value == (int64_t)value && give(type, (int64_t)value, n);
}

static bool evaluate_name(const kj_scope *scope, uint32_t *steps, const ki_expr *expr, number *n)
{
  const ki_decl *decl = expr->decl;
  const kj_binding *binding = kj_find_binding(scope, decl);
  if (binding) return binding->item < 0 && evaluate(scope, steps, binding->value, n);
  if (decl->kind == KJ_DECL_CONST)
    return decl->value && !decl->type_expr && evaluate(scope, steps, decl->value, n);
  if (decl->kind != KJ_DECL_PARAM || !scope->bound || decl->index >= scope->bound_count)
    return false;
  const kj_bound *bound = &scope->bound[decl->index];
  return (bound->kind == KJ_ARGUMENT_VALUE || bound->kind == KJ_ARGUMENT_CONST) &&
         give_value(bound->value.type, bound->value.integer, n);
}

/* Evaluates blockDim.x and x.size. */
static bool evaluate_field(const kj_scope *scope, const ki_expr *expr, number *n)
{
  if (expr->x->kind == KJ_EXPR_BUILTIN)
    return expr->x->builtin->id == KJ_BUILTIN_BLOCK_DIM && scope->block && expr->name[0] >= 'x' &&
           expr->name[0] <= 'z' && !expr->name[1] &&
           give(KJIT_I64, scope->block[expr->name[0] - 'x'], n);
  const kj_bound *array = kj_find_array(scope, expr->x);
  return array && !strcmp(expr->name, "size") && give(KJIT_I64, (int64_t)array->count, n);
}

/* Evaluates x.shape[2] and x.shape[-1]. */
static bool evaluate_subscript(const kj_scope *scope, const ki_expr *expr, number *n)
{
  const ki_expr *index = expr->args.count == 1 ? expr->args.items[0] : NULL;
  if (!index || expr->x->kind != KJ_EXPR_FIELD || strcmp(expr->x->name, "shape") != 0) return false;
  const kj_bound *array = kj_find_array(scope, expr->x->x);
  bool is_from_end = index->kind == KJ_EXPR_UNARY && index->op == KJIT_OP_NEG;
  if (is_from_end) index = index->x;
  if (!array || index->kind != KJ_EXPR_INT || index->integer > array->rank) return false;
  int64_t d = is_from_end ? array->rank - (int64_t)index->integer : (int64_t)index->integer;
  return d < array->rank && give(KJIT_I64, array->shape[d], n);
}

static bool evaluate_both(const kj_scope *scope, uint32_t *steps, const ki_expr *x,
                          const ki_expr *y, number *a, number *b, kjit_type *type)
{
  if (!evaluate(scope, steps, x, a) || !evaluate(scope, steps, y, b)) return false;
  bool is_wide = a->type == KJIT_I64 || b->type == KJIT_I64,
       is_weak = a->type == KJ_WEAK_INT && b->type == KJ_WEAK_INT;
  *type = is_wide ? KJIT_I64 : is_weak ? KJ_WEAK_INT : KJIT_I32;
  return true;
}

static bool evaluate_call(const kj_scope *scope, uint32_t *steps, const ki_expr *expr, number *n)
{
  number a, b;
  kjit_type type;
  ki_expr *const *x = expr->args.items;
  if (expr->x->kind != KJ_EXPR_BUILTIN) return false;
  ki_builtin_id id = expr->x->builtin->id;
  if (id == KJ_BUILTIN_LEN) {
    const kj_bound *array = kj_find_array(scope, x[0]);
    return array && array->rank && give(KJIT_I64, array->shape[0], n);
  }
  bool is_usual = id == KJ_BUILTIN_MIN || id == KJ_BUILTIN_MAX || id == KJ_BUILTIN_CEIL_DIV;
  if (!is_usual || expr->args.count != 2 || !evaluate_both(scope, steps, x[0], x[1], &a, &b, &type))
    return false;
  if (id != KJ_BUILTIN_CEIL_DIV)
    return give(type, (a.value < b.value) == (id == KJ_BUILTIN_MIN) ? a.value : b.value, n);
  return b.value > 0 && give(type, a.value / b.value + (a.value % b.value > 0), n);
}

static bool evaluate_binary(const kj_scope *scope, uint32_t *steps, const ki_expr *expr, number *n)
{
  number a, b;
  kjit_type type;
  bool is_division = expr->op == KJIT_OP_FLOORDIV || expr->op == KJIT_OP_MOD;
  if (ki_op_table[expr->op].class_ != KJ_OP_ARITH ||
      !evaluate_both(scope, steps, expr->x, expr->y, &a, &b, &type) ||
      (is_division && b.value <= 0))
    return false;
  int64_t x = a.value, y = b.value, result;
  switch (KJ_AMONG(expr->op)) {
  case KJIT_OP_ADD: return !__builtin_add_overflow(x, y, &result) && give(type, result, n);
  case KJIT_OP_SUB: return !__builtin_sub_overflow(x, y, &result) && give(type, result, n);
  case KJIT_OP_MUL: return !__builtin_mul_overflow(x, y, &result) && give(type, result, n);
  case KJIT_OP_FLOORDIV: return give(type, (int64_t)ki_floor_divide(x, y), n);
  case KJIT_OP_MOD: return give(type, x - (int64_t)ki_floor_divide(x, y) * y, n);
  default: return false;
  }
}

static bool evaluate(const kj_scope *scope, uint32_t *steps, const ki_expr *expr, number *n)
{
  if (!*steps) return false;
  --*steps;
  switch (KJ_AMONG(expr->kind)) {
  case KJ_EXPR_INT: return give_value(expr->type, expr->integer, n);
  case KJ_EXPR_DECL: return evaluate_name(scope, steps, expr, n);
  case KJ_EXPR_FIELD: return evaluate_field(scope, expr, n);
  case KJ_EXPR_INDEX: return evaluate_subscript(scope, expr, n);
  case KJ_EXPR_CALL: return evaluate_call(scope, steps, expr, n);
  case KJ_EXPR_BINARY: return evaluate_binary(scope, steps, expr, n);
  default: return false;
  }
}

bool kj_evaluate_fast(const kj_scope *scope, const ki_expr *expr, int64_t *value)
{
  enum { MOST_STEPS = 64 };
  uint32_t steps = MOST_STEPS;
  number n;
  if (!evaluate(scope, &steps, expr, &n)) return false;
  *value = n.value;
  return true;
}
