/* Determines the valid range of each untyped number that a kernel takes.
 *
 * An untyped number from the application gets its type from the operands and elements with which
 * the kernel combines it. This file finds the range of values that all these types can represent.
 * The runtime then rejects a launch with any other value, instead of converting it to a wrong
 * value. Explicit conversions such as `u32(n)` do not restrict the range.
 *
 * kt_convert marks the conversions that restrict the range: it sets kt_expr.must_fit in each node
 * that converts an untyped number to another type. It also marks conversions of the sum or
 * difference of an untyped number and literals. */
#include "typing/infer.h"

/* The value factor * variable + offset. If variable is NULL, the value is the constant `offset`. */
typedef struct affine {
  kt_var *variable;
  __int128 factor, offset;
} affine;

/* Returns whether the value is so small that sums and products of two such values cannot
 * overflow. */
static bool is_small(__int128 value)
{
  const __int128 limit = (__int128)1 << 62;
  return value > -limit && value < limit;
}

static bool find_affine(const kt_compilation *c, const kt_expr *e, affine *found);

static bool negate(affine *value)
{
  value->factor = -value->factor;
  value->offset = -value->offset;
  return true;
}

static bool add(const affine *x, const affine *y, affine *sum)
{
  if (x->variable && y->variable) return false;
  *sum = (affine){ x->variable ? x->variable : y->variable, x->factor + y->factor,
                   x->offset + y->offset };
  return is_small(sum->offset);
}

static bool multiply(const affine *x, const affine *y, affine *product)
{
  if (y->variable) return !x->variable && multiply(y, x, product);
  bool fits = is_small(x->factor) && is_small(y->offset);
  *product = (affine){ x->variable, x->factor * y->offset, x->offset * y->offset };
  return fits && is_small(product->factor) && is_small(product->offset);
}

static bool find_binary(const kt_compilation *c, const kt_expr *e, affine *found)
{
  affine x, y;
  if (e->op != KJIT_OP_ADD && e->op != KJIT_OP_SUB && e->op != KJIT_OP_MUL) return false;
  if (!find_affine(c, e->x, &x) || !find_affine(c, e->y, &y)) return false;
  if (e->op == KJIT_OP_MUL) return multiply(&x, &y, found);
  if (e->op == KJIT_OP_SUB) negate(&y);
  return add(&x, &y, found);
}

/* Returns whether a conversion preserves every value, because the launch checks the value or
 * because the type is wide enough. */
static bool keeps_value(const kt_compilation *c, const kt_expr *convert)
{
  bool is_carrier = convert->type == KJIT_I64 && kt_wide_type(convert->x) != KJIT_U64;
  return convert->must_fit || convert->type == KJ_WEAK_INT || is_carrier ||
         (kt_is_integer(c, convert->type) && !ki_is_weak(convert->x->type) &&
          ki_joined_type(convert->type, convert->x->type) == convert->type);
}

static bool find_affine(const kt_compilation *c, const kt_expr *e, affine *found)
{
  if (!kt_is_integer(c, e->type)) return false;
  switch (KJ_AMONG(e->kind)) {
  case KJ_T_CONST: *found = (affine){ .offset = e->integer }; return is_small(e->integer);
  case KJ_T_VAR:
    *found = (affine){ e->var, 1, 0 };
    return e->var->kind == KJ_V_PARAM || e->var->kind == KJ_V_LET;
  case KJ_T_CONVERT: return keeps_value(c, e) && find_affine(c, e->x, found);
  case KJ_T_UNARY: return e->op == KJIT_OP_NEG && find_affine(c, e->x, found) && negate(found);
  case KJ_T_BINARY: return find_binary(c, e, found);
  default: return false;
  }
}

/* ---- limits of variables ---- */

typedef struct search {
  kt_compilation *c;
  bool is_changed;
} search;

static __int128 number_of(const kt_var *variable, const kj_number_limit *limit)
{
  return variable->wide == KJIT_U64 ? (__int128)(uint64_t)limit->value : limit->value;
}

static void narrow(search *s, kt_var *variable, bool is_least, kj_number_limit limit)
{
  kj_number_limit *known = is_least ? &variable->least : &variable->most;
  __int128 wanted = number_of(variable, &limit), have = number_of(variable, known);
  if (known->type && (is_least ? have >= wanted : have <= wanted)) return;
  *known = limit;
  s->is_changed = true;
}

static __int128 divide_down(__int128 x, __int128 y)
{
  __int128 quotient = x / y;
  return x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

/* Clamps a limit to the range of the variable's type. Returns false if every value of the type
 * satisfies the limit. */
static bool clamp(const kt_var *variable, bool is_least, __int128 *limit)
{
  bool is_unsigned = variable->wide == KJIT_U64;
  __int128 low = is_unsigned ? 0 : INT64_MIN, high = is_unsigned ? (__int128)UINT64_MAX : INT64_MAX;
  if (is_least ? *limit <= low : *limit >= high) return false;
  if (*limit < low) *limit = low;
  if (*limit > high) *limit = high;
  return true;
}

/* Requires that the value is at least `bound` (if is_least) or at most `bound`. */
static void limit_value(search *s, const affine *value, __int128 bound, bool is_least,
                        const kj_number_limit *from)
{
  bool is_variables_least = is_least == (value->factor > 0);
  __int128 distance = bound - value->offset;
  /* round a lower limit up and an upper limit down */
  __int128 wanted = is_variables_least ? -divide_down(-distance, value->factor)
                                       : divide_down(distance, value->factor);
  kj_number_limit limit = *from;
  if (!clamp(value->variable, is_variables_least, &wanted)) return;
  limit.value = (int64_t)wanted;
  narrow(s, value->variable, is_variables_least, limit);
}

/* Returns whether the limits of a type apply to the value. The limits do not apply to a product in
 * a type of 32 or 64 bits, because arithmetic in these types can wrap around. They apply in smaller
 * types, because products are computed in 32 bits and then converted. */
static bool is_limited(const search *s, const affine *value, kjit_type type)
{
  if (!value->variable || !value->factor) return false;
  return value->factor == 1 || value->factor == -1 ||
         ki_type(s->c->types, type)->size_bytes < sizeof(int32_t);
}

static int width_of(const search *s, kjit_type type)
{
  return (int)ki_type(s->c->types, type)->size_bytes * 8;
}

static __int128 least_of(const search *s, kjit_type type)
{
  bool is_signed = kt_class_of(s->c, type) == KJ_CLASS_SIGNED;
  return is_signed ? -((__int128)1 << (width_of(s, type) - 1)) : 0;
}

static __int128 most_of(const search *s, kjit_type type)
{
  bool is_signed = kt_class_of(s->c, type) == KJ_CLASS_SIGNED;
  return ((__int128)1 << (width_of(s, type) - is_signed)) - 1;
}

static void take_limits(search *s, const kt_var *from, const kt_expr *expr)
{
  affine value;
  if (!from->least.type && !from->most.type) return;
  if (!find_affine(s->c, expr, &value) || !value.variable || !value.factor) return;
  if (from->least.type) limit_value(s, &value, number_of(from, &from->least), true, &from->least);
  if (from->most.type) limit_value(s, &value, number_of(from, &from->most), false, &from->most);
}

static void visit_expr(void *data, kt_expr **expr)
{
  search *s = data;
  const kt_expr *e = *expr;
  affine value;
  if (e->kind == KJ_T_CALL) {
    KJ_ASSERT(e->args.count == e->instance->params.count);
    for (size_t i = 0; i < e->args.count; i++)
      take_limits(s, e->instance->params.items[i], e->args.items[i]);
    return;
  }
  if (!e->must_fit || !find_affine(s->c, e, &value) || !is_limited(s, &value, e->type)) return;
  const kj_number_limit limit = { .type = e->type,
                                  .file = e->location.file,
                                  .line = e->location.line,
                                  .column = e->location.column };
  limit_value(s, &value, least_of(s, e->type), true, &limit);
  limit_value(s, &value, most_of(s, e->type), false, &limit);
}

/* Applies the limits of a let to the untyped numbers from which it is computed. */
static void visit_stmt(void *data, kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_ASSIGN && stmt->var->kind == KJ_V_LET)
    take_limits(data, stmt->var, stmt->value);
}

void kt_find_number_limits(kt_compilation *c)
{
  enum { MOST_ROUNDS = 64 };
  search s = { .c = c, .is_changed = true };
  for (int round = 0; s.is_changed && round < MOST_ROUNDS; round++) {
    s.is_changed = false;
    for (size_t i = 0; i < c->instances.count; i++)
      kt_walk_tstmts(&c->instances.items[i]->body, visit_stmt, visit_expr, &s);
  }
}
