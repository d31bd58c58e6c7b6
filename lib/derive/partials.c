/* Partial derivatives of operators and built-ins: computes the contribution of one operand to the
 * derivative of an expression. The rows of derivatives.def become the cases of one switch. */
#include "derive/derive.h"

/* ---- built-ins with a row ---- */

/* Number of rows in derivatives.def that precede the row of KJ_BUILTIN_SQRT, the first float
 * function. */
enum { OTHER_ROWS = 4 };
enum {
  ROW_COUNT = 0
#define ONE(id, x) +1
#define TWO(id, x, y) +1
#define THREE(id, x, y, z) +1
#define PAIR(id, first, second) +1
#define PAIR_TWO(id, first, second, first_by_y, second_by_y) +1
#define DISCRETE(id) +1
#include "derive/derivatives.def"
};
_Static_assert(KJ_BUILTIN_COUNT - KJ_BUILTIN_SQRT + OTHER_ROWS == ROW_COUNT,
               "each function of floats in builtins.def has a row in derivatives.def");

kd_rule_kind kd_rule_of(const ki_builtin *builtin)
{
  static const uint8_t kinds[KJ_BUILTIN_COUNT] = {
    [KJ_BUILTIN_SELECT] = KJ_RULE_CHOICE,
#define ONE(id, x) [KJ_BUILTIN_##id] = KJ_RULE_PARTIAL,
#define TWO(id, x, y) [KJ_BUILTIN_##id] = KJ_RULE_PARTIAL,
#define THREE(id, x, y, z) [KJ_BUILTIN_##id] = KJ_RULE_PARTIAL,
#define PAIR(id, first, second) [KJ_BUILTIN_##id] = KJ_RULE_PAIR,
#define PAIR_TWO(id, first, second, first_by_y, second_by_y) [KJ_BUILTIN_##id] = KJ_RULE_PAIR,
#define DISCRETE(id) [KJ_BUILTIN_##id] = KJ_RULE_DISCRETE,
#include "derive/derivatives.def"
  };
  return kinds[builtin->id];
}

/* ---- the words in the rows of derivatives.def ---- */

/* The node to which the rules apply, and t, the tangent or cotangent by which they multiply a
 * partial derivative. */
typedef struct terms {
  kd_derivation *d;
  const kd_node *node;
  kt_expr *t;
  kj_location location;
} terms;

static kt_expr *operand(const terms *k, size_t index)
{
  const kd_node *node = k->node;
  if (node->from->kind == KJ_T_BUILTIN) return kd_copy(k->d, node->args[index]->value);
  kt_expr *value = kd_copy(k->d, node->nodes[index]->value);
  /* converted, because the exponent of `**` may be an integer */
  return kt_convert(k->d->s, value, node->from->type, k->location);
}

static kt_expr *result(const terms *k) { return kd_copy(k->d, k->node->value); }

static kt_expr *result_item(const terms *k, uint32_t index)
{
  return kt_make_item(k->d->s, result(k), index, k->location);
}

static kt_expr *derivative(const terms *k) { return kd_copy(k->d, k->t); }

static kt_expr *number(const terms *k, double value)
{
  kjit_type type = k->t->type, part = kt_part_type(k->d->c, type);
  return kt_convert(k->d->s, kt_new_number(k->d->s, part, value, k->location), type, k->location);
}

static kt_expr *whole(const terms *k, int value)
{
  return kt_new_integer(k->d->s, KJIT_I32, value, k->location);
}

static kt_expr *binary(const terms *k, kjit_op op, kt_expr *x, kt_expr *y)
{
  return kt_make_own_binary(k->d->s, op, x, y, k->location);
}

/* Returns x / y without the run-time check of the divisor, which applies only to divisions in the
 * source. */
static kt_expr *quotient(const terms *k, kt_expr *x, kt_expr *y)
{
  kt_expr *made = binary(k, KJIT_OP_DIV, x, y);
  made->is_power |= made->kind == KJ_T_BINARY;
  return made;
}

static kt_expr *negative(const terms *k, kt_expr *x)
{
  return kt_make_own_unary(k->d->s, KJIT_OP_NEG, x, k->location);
}

static kt_expr *apply(const terms *k, ki_builtin_id id, kt_expr *x, kt_expr *y, kt_expr *z)
{
  kt_operands operands = { .builtin = &ki_builtin_table[id], .location = k->location };
  KJ_PUSH(k->d->arena, &operands.values, x);
  if (y) KJ_PUSH(k->d->arena, &operands.values, y);
  if (z) KJ_PUSH(k->d->arena, &operands.values, z);
  return kt_apply_rule(k->d->s, &operands);
}

static kt_expr *logic(const terms *k, kjit_op op, kt_expr *x, kt_expr *y)
{
  kt_expr *made = kt_new_texpr(k->d->c, KJ_T_LOGIC, KJIT_BOOL, k->location);
  made->op = op;
  made->x = x;
  made->y = y;
  return made;
}

/* Selects x or y. Vectors are selected lane by lane. */
static kt_expr *choose(const terms *k, kt_expr *condition, kt_expr *x, kt_expr *y)
{
  if (kt_is_vector(k->d->c, condition->type)) return apply(k, KJ_BUILTIN_SELECT, condition, x, y);
  return kt_make_cond(k->d->s, condition, x, y, k->location);
}

/* Returns the condition under which a power's base has a logarithm. */
static kt_expr *has_log(const terms *k, kt_expr *x)
{
  bool is_complex = kt_is_complex(k->d->c, x->type);
  return binary(k, is_complex ? KJIT_OP_NE : KJIT_OP_GT, x, number(k, 0));
}

static bool is_literal(const kt_expr *e, double least)
{
  /* numbers from 1e-4 to 1e4 are finite and nonzero in every float type */
  return e->kind == KJ_T_CONST && ki_number_of(kt_value_of(e)) >= least &&
         ki_number_of(kt_value_of(e)) <= 1e4;
}

/* Returns whether a float expression is never negative, except that it may be NaN. */
static bool is_nonnegative(const kt_expr *e)
{
  if (e->kind == KJ_T_CONVERT) return is_nonnegative(e->x);
  if (e->kind == KJ_T_CONST) return is_literal(e, 0);
  if (e->kind == KJ_T_BINARY && e->op == KJIT_OP_MUL && e->x->kind == KJ_T_VAR &&
      e->y->kind == KJ_T_VAR && e->x->var == e->y->var)
    return true;
  if (e->kind == KJ_T_BINARY && (e->op == KJIT_OP_ADD || e->op == KJIT_OP_MUL))
    return is_nonnegative(e->x) && is_nonnegative(e->y);
  if (e->kind != KJ_T_BUILTIN) return false;
  static const bool known[KJ_BUILTIN_COUNT] = {
    [KJ_BUILTIN_EXP] = true,  [KJ_BUILTIN_EXP2] = true, [KJ_BUILTIN_EXP10] = true,
    [KJ_BUILTIN_SQRT] = true, [KJ_BUILTIN_ABS] = true,  [KJ_BUILTIN_HYPOT] = true,
  };
  return known[e->builtin->id];
}

/* Returns whether an expression is never 0, except that it may be NaN. Returns true for literals,
 * for loop counters that start at 1 or more, and for a literal plus a nonnegative value. Complex
 * numbers are excluded because their squares can be negative. */
static bool is_nonzero(const terms *k, const kt_expr *e)
{
  if (e->kind == KJ_T_CONVERT)
    return kt_is_float(k->d->c, e->x->type) ? is_nonzero(k, e->x)
                                            : kd_is_positive_counter(k->d, e->x);
  if (kt_is_complex(k->d->c, e->type)) return false;
  if (is_literal(e, 1e-4)) return true;
  if (e->kind != KJ_T_BINARY || e->op != KJIT_OP_ADD) return false;
  return (is_literal(e->x, 1e-4) && is_nonnegative(e->y)) ||
         (is_literal(e->y, 1e-4) && is_nonnegative(e->x)) ||
         (is_nonzero(k, e->x) && is_nonnegative(e->x) && is_nonnegative(e->y));
}

/* Returns an operand as it is in the prepared body. */
static const kt_expr *source(const terms *k, size_t index)
{
  const kd_node *node = k->node;
  return node->from->kind == KJ_T_BUILTIN ? node->args[index]->from : node->nodes[index]->from;
}

/* Returns 0 if the factor is 0, and otherwise the value. Without this guard, the result would be
 * NaN if the factor is 0 and another factor of the value is infinite. The value is computed
 * unconditionally to avoid a branch, because the factor is rarely 0. */
static kt_expr *guard_by(const terms *k, kt_expr *factor, kt_expr *value)
{
  kt_expr *is_zero = binary(k, KJIT_OP_EQ, factor, number(k, 0));
  kt_expr *made = choose(k, is_zero, number(k, 0), kd_keep(k->d, value));
  bool is_select = made->kind == KJ_T_BUILTIN && made->builtin->id == KJ_BUILTIN_SELECT;
  made->is_guard = made->kind == KJ_T_COND || is_select;
  return made;
}

static kt_expr *guard(const terms *k, kt_expr *value) { return guard_by(k, derivative(k), value); }

kt_expr *kd_open_guard(kd_derivation *d, kt_expr *guard)
{
  bool is_cond = guard->kind == KJ_T_COND;
  kt_expr **zero = is_cond ? &guard->y : &guard->args.items[1],
          **value = is_cond ? &guard->z : &guard->args.items[2];
  kt_var *var = kd_new_var(d, "_guarded", guard->type, guard->location);
  kd_assign(d, var, *value);
  *value = kd_read(d, var);
  guard->is_guard = false;
  kt_expr *is_nan =
            kt_make_own_binary(d->s, KJIT_OP_NE, kd_read(d, var), kd_read(d, var), guard->location),
          *inner = KJ_NEW(d->arena, kt_expr);
  *inner = *guard;
  inner->args = (kt_exprs){ 0 };
  if (is_cond) {
    inner->x = is_nan;
    inner->z = kd_read(d, var);
  } else {
    KJ_PUSH(d->arena, &inner->args, is_nan);
    KJ_PUSH(d->arena, &inner->args, *zero);
    KJ_PUSH(d->arena, &inner->args, kd_read(d, var));
  }
  *zero = inner;
  return guard;
}

/* Returns the derivative of log(abs(tgamma(x))), in f32 or f64. Arguments below 0.5 use the
 * reflection formula, and arguments below 10 are increased by 10 with digamma(x) = digamma(x + 1) -
 * 1 / x. Stirling's series then has an error of less than one unit in the last place. Near the
 * zeros of digamma, this bound applies to the absolute error. */
static kt_expr *digamma_of(const terms *k, kt_expr *x)
{
  static const double series[] = { 1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                                   1. / 132, -691. / 32760, 1. / 12 };
  enum { STEPS = 10, TERMS = sizeof series / sizeof *series };
  kd_derivation *d = k->d;
  kt_expr *is_reflected = kd_keep(d, binary(k, KJIT_OP_LT, kd_copy(d, x), number(k, 0.5)));
  kt_expr *y =
    kd_keep(d, choose(k, kd_copy(d, is_reflected),
                      binary(k, KJIT_OP_SUB, number(k, 1), kd_copy(d, x)), kd_copy(d, x)));
  kt_expr *is_moved = kd_keep(d, binary(k, KJIT_OP_LT, kd_copy(d, y), number(k, STEPS))),
          *moved = NULL;
  for (int i = 0; i < STEPS; i++) {
    kt_expr *step = i ? binary(k, KJIT_OP_ADD, kd_copy(d, y), number(k, i)) : kd_copy(d, y);
    step = quotient(k, number(k, 1), step);
    moved = moved ? binary(k, KJIT_OP_ADD, moved, step) : step;
  }
  kt_expr *up = binary(k, KJIT_OP_ADD, kd_copy(d, y), number(k, STEPS));
  kt_expr *z = kd_keep(d, choose(k, kd_copy(d, is_moved), up, kd_copy(d, y)));
  kt_expr *inverse = kd_keep(d, quotient(k, number(k, 1), kd_copy(d, z)));
  kt_expr *square = kd_keep(d, binary(k, KJIT_OP_MUL, kd_copy(d, inverse), kd_copy(d, inverse)));
  kt_expr *sum = number(k, series[TERMS - 1]);
  for (int i = TERMS - 2; i >= 0; i--)
    sum =
      binary(k, KJIT_OP_ADD, binary(k, KJIT_OP_MUL, sum, kd_copy(d, square)), number(k, series[i]));
  sum = binary(k, KJIT_OP_ADD, binary(k, KJIT_OP_MUL, number(k, 0.5), inverse),
               binary(k, KJIT_OP_MUL, sum, square));
  sum = binary(k, KJIT_OP_SUB, apply(k, KJ_BUILTIN_LOG, z, NULL, NULL), sum);
  kt_expr *value =
    kd_keep(d, binary(k, KJIT_OP_SUB, sum, choose(k, is_moved, moved, number(k, 0))));
  kt_expr *cotangent = quotient(k, apply(k, KJ_BUILTIN_COSPI, kd_copy(d, x), NULL, NULL),
                                apply(k, KJ_BUILTIN_SINPI, x, NULL, NULL));
  kt_expr *reflected = binary(k, KJIT_OP_SUB, kd_copy(d, value),
                              binary(k, KJIT_OP_MUL, number(k, 3.14159265358979323846), cotangent));
  return choose(k, is_reflected, reflected, value);
}

/* Computes the digamma of f16 and bf16 in f32, as the function itself does. */
static kt_expr *digamma(const terms *k, kt_expr *x)
{
  kjit_type type = kd_wide_type(k->d, x->type);
  kt_expr *wide = kd_keep(k->d, kt_convert(k->d->s, x, type, k->location));
  const terms inner = { .d = k->d, .node = k->node, .t = wide, .location = k->location };
  return kt_convert(k->d->s, digamma_of(&inner, wide), x->type, k->location);
}

#define X operand(k, 0)
#define Y operand(k, 1)
#define Z operand(k, 2)
#define R result(k)
#define R0 result_item(k, 0)
#define R1 result_item(k, 1)
#define T derivative(k)
#define NONE NULL
#define NUM(value) number(k, value)
#define INT(value) whole(k, value)
#define NEG(x) negative(k, x)
#define INEG(x) negative(k, x)
#define ADD(x, y) binary(k, KJIT_OP_ADD, x, y)
#define SUB(x, y) binary(k, KJIT_OP_SUB, x, y)
#define MUL(x, y) binary(k, KJIT_OP_MUL, x, y)
#define DIV(x, y) quotient(k, x, y)
#define IADD(x, y) binary(k, KJIT_OP_ADD, x, y)
#define ISUB(x, y) binary(k, KJIT_OP_SUB, x, y)
#define EQ(x, y) binary(k, KJIT_OP_EQ, x, y)
#define NE(x, y) binary(k, KJIT_OP_NE, x, y)
#define LT(x, y) binary(k, KJIT_OP_LT, x, y)
#define GT(x, y) binary(k, KJIT_OP_GT, x, y)
#define AND(x, y) logic(k, KJIT_OP_AND, x, y)
#define OR(x, y) logic(k, KJIT_OP_OR, x, y)
#define IF(condition, x, y) choose(k, condition, x, y)
#define HAS_LOG(x) has_log(k, x)
#define GUARD(value) guard(k, value)
#define GUARD_BY(factor, value) guard_by(k, factor, value)
#define GUARD_UNLESS(condition, value) ((condition) ? (value) : guard(k, value))
#define IS_NONZERO(index) is_nonzero(k, source(k, index))
#define IS_NONNEGATIVE(index) \
  (!kt_is_complex(k->d->c, k->t->type) && is_nonnegative(source(k, index)))
#define CALL1(id, x) apply(k, KJ_BUILTIN_##id, x, NULL, NULL)
#define DIGAMMA(x) digamma(k, x)
#define CALL2(id, x, y) apply(k, KJ_BUILTIN_##id, x, y, NULL)

/* ---- operators ---- */

/* Returns -x * r, where r is the result of a division. The result is built as 0 - x * r in two
 * cases. If the body runs again, r has no other uses; LLVM would move a negation into r and compute
 * the division a second time. If the product has a guard, LLVM could not combine a negation with
 * the sum that follows. */
static kt_expr *minus_times_quotient(const terms *k, kt_expr *x, bool is_guarded)
{
  kt_expr *product = binary(k, KJIT_OP_MUL, x, result(k));
  return is_guarded || k->d->is_recomputed ? binary(k, KJIT_OP_SUB, number(k, 0), product)
                                           : negative(k, product);
}

/* Returns the contribution of the dividend or the divisor to the derivative of a quotient. */
static kt_expr *of_quotient(const terms *k, bool is_dividend)
{
  bool is_negative = k->t->kind == KJ_T_UNARY, is_guarded = !is_nonzero(k, source(k, 1));
  terms own = *k;
  if (is_negative) own.t = k->t->x;
  kt_expr *value = quotient(&own, derivative(&own), operand(&own, 1));
  if (is_dividend && is_negative) value = negative(&own, value);
  else if (is_negative) value = binary(&own, KJIT_OP_MUL, value, result(&own));
  else if (!is_dividend) value = minus_times_quotient(&own, value, is_guarded);
  return is_guarded ? guard(&own, value) : value;
}

static kt_expr *of_binary(const terms *k, size_t index)
{
  bool is_first = index == 0;
  switch (KJ_AMONG(k->node->from->op)) {
  case KJIT_OP_ADD: return T;
  case KJIT_OP_SUB: return is_first ? T : NEG(T);
  case KJIT_OP_MUL: return MUL(T, is_first ? Y : X);
  case KJIT_OP_DIV: return of_quotient(k, is_first);
  case KJIT_OP_MOD: return is_first ? T : NEG(MUL(T, CALL1(RINT, DIV(SUB(X, R), Y))));
  default: return NULL;
  }
}

#define BY(id, x, y, z) \
  case KJ_BUILTIN_##id: \
    return index == 0 ? (x) : index == 1 ? (y) : (z);
#define ONE(id, x) BY(id, x, NULL, NULL)
#define TWO(id, x, y) BY(id, x, y, NULL)
#define THREE(id, x, y, z) BY(id, x, y, z)
static kt_expr *of_builtin(const terms *k, ki_builtin_id id, size_t index)
{
  switch (KJ_AMONG(id)) {
#include "derive/derivatives.def"
  default: return NULL;
  }
}

kt_expr *kd_times_partial(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t)
{
  const kt_expr *e = node->from;
  const terms k = { .d = d, .node = node, .t = t, .location = e->location };
  if (e->kind == KJ_T_BUILTIN) return of_builtin(&k, e->builtin->id, index);
  KJ_ASSERT(e->kind == KJ_T_BINARY);
  bool is_power = e->op == KJIT_OP_POW;
  return is_power ? of_builtin(&k, KJ_BUILTIN_POW, index) : of_binary(&k, index);
}

/* ---- functions that return a pair ---- */

#define PAIR(id, of_first, of_second) \
  case KJ_BUILTIN_##id: \
    first = of_first; \
    second = of_second; \
    break;
#define PAIR_TWO(id, of_first, of_second, first_by_y, second_by_y) \
  case KJ_BUILTIN_##id: \
    first = index ? first_by_y : of_first; \
    second = index ? second_by_y : of_second; \
    break;
kt_expr *kd_pair_forward(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t)
{
  const terms all = { .d = d, .node = node, .t = t, .location = node->from->location }, *k = &all;
  kt_expr *first = NULL, *second = NULL;
  switch (KJ_AMONG(node->from->builtin->id)) {
#include "derive/derivatives.def"
  default: KJ_ASSERT(!"a built-in that returns a pair has a row");
  }
  kt_expr *pair = kt_new_texpr(d->c, KJ_T_TUPLE, node->from->type, node->from->location);
  const ki_type_info *info = ki_type(d->c->types, node->from->type);
  KJ_PUSH(d->arena, &pair->args, first ? first : kd_zero(d, info->items[0]));
  KJ_PUSH(d->arena, &pair->args, second ? second : kd_zero(d, info->items[1]));
  return pair;
}

/* Adds the contributions of both items of the pair. */
kt_expr *kd_pair_reverse(kd_derivation *d, const kd_node *node, size_t index, kt_expr *t)
{
  kt_expr *sum = NULL;
  const ki_type_info *info = ki_type(d->c->types, node->from->type);
  for (uint32_t i = 0; i < 2; i++) {
    if (!kt_is_float(d->c, info->items[i])) continue;
    kt_expr *item = kd_keep(d, kt_make_item(d->s, kd_copy(d, t), i, node->from->location));
    kt_expr *pair = kd_pair_forward(d, node, index, item), *part = pair->args.items[i];
    sum = sum ? kd_add(d, sum, part) : part;
  }
  return sum;
}
