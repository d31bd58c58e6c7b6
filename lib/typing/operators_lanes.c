/* Type inference of operators and element-wise built-ins on vectors and complex numbers.
 *
 * An operation that LLVM supports on whole vectors becomes one node. All other operations are split
 * into lanes and follow the rules for scalars, with the same types and errors. */
#include "typing/rules.h"

static const char *text_of(kjit_op op) { return ki_op_table[op].text; }

/* ---- vectors, lane by lane ---- */

static kt_expr *lane_of(kt_scope *s, kt_expr *value, uint32_t lane)
{
  return kt_is_vector(s->c, value->type)
           ? kt_make_item(s, kt_copy_texpr(s, value), lane, value->location)
           : kt_copy_texpr(s, value);
}

/* Makes a vector from the results for all lanes. The results must have the same type, except that
 * literals are converted. */
static kt_expr *join_lanes(kt_scope *s, kt_exprs *lanes, kj_location location)
{
  for (size_t i = 0; i < lanes->count; i++) lanes->items[i] = kt_make_concrete(s, lanes->items[i]);
  kjit_type lane = lanes->items[0]->type;
  if (!ki_is_scalar(lane) || kt_is_complex(s->c, lane))
    kt_fail(
      s->c, location, KJIT_ERROR_TYPE,
      "the result for a lane would be %s, but the lanes of a vector must be real numbers or bools",
      kt_type_text(s->c, lane));
  for (size_t i = 1; i < lanes->count; i++)
    lanes->items[i] = kt_convert(s, lanes->items[i], lane, location);
  return kt_make_composed(s, kt_vector_of(s, lane, (uint32_t)lanes->count), lanes, location);
}

static kt_expr *make_lanes(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  kt_exprs lanes = { 0 };
  uint32_t count = ki_type(s->c->types, kt_is_vector(s->c, x->type) ? x->type : y->type)->count;
  x = kt_keep_value(s, x);
  y = kt_keep_value(s, y);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &lanes, kt_make_binary(s, op, lane_of(s, x, i), lane_of(s, y, i), location));
  return join_lanes(s, &lanes, location);
}

/* ---- vectors as a whole ---- */

static kt_expr *new_operation(kt_scope *s, kt_tkind kind, kjit_op op, kjit_type type, kt_expr *x,
                              kt_expr *y, kj_location location)
{
  kt_expr *expr = kt_new_texpr(s->c, kind, type, location);
  expr->op = op;
  expr->x = x;
  expr->y = y;
  return expr;
}

static _Noreturn void fail_operands(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                                    kj_location location)
{
  const char *a = kt_type_text(s->c, x->type), *b = kt_type_text(s->c, y->type);
  bool are_vectors = kt_is_vector(s->c, x->type) && kt_is_vector(s->c, y->type);
  bool differ =
    are_vectors && ki_type(s->c->types, x->type)->count != ki_type(s->c->types, y->type)->count;
  if (differ)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` on %s and %s: the vectors have different numbers of lanes", text_of(op), a, b);
  if (kt_is_complex(s->c, x->type) != kt_is_complex(s->c, y->type) &&
      kt_is_vector(s->c, x->type) != kt_is_vector(s->c, y->type))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` on %s and %s: a vector cannot have complex lanes", text_of(op), a, b);
  if (are_vectors || kt_is_vector(s->c, x->type) != kt_is_vector(s->c, y->type))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` on %s and %s: no vector type can represent both; convert one", text_of(op), a, b);
  kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` on %s and %s: no type can represent both",
          text_of(op), a, b);
}

/* Shifts each lane. The operands are converted separately. The count can be converted to any
 * integer type, because it is taken modulo the width. */
static kt_expr *make_shift(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  x = kt_make_concrete(s, x);
  const kt_expr *vector = kt_is_vector(s->c, x->type) ? x : y;
  kjit_type lane = ki_arithmetic_type(kt_part_type(s->c, x->type)),
            type = kt_with_part(s, vector->type, lane);
  if (kt_is_constant(y))
    y = kt_new_integer(s, lane, y->integer & (ki_type(s->c->types, lane)->size_bytes * 8 - 1),
                       y->location);
  else y = kt_make_concrete(s, y);
  x = kt_convert(s, x, type, location);
  return new_operation(s, KJ_T_BINARY, op, type, x, kt_convert(s, y, type, location), location);
}

static bool is_whole_number(const kt_compilation *c, kjit_type type)
{
  return type == KJIT_BOOL || kt_is_integer(c, type);
}

/* Returns the common type of the operands if the operation can be done on whole vectors, or
 * KJIT_ANY if it must be split into lanes. */
static kjit_type whole_type(kt_scope *s, kjit_op op, const kt_expr *x, const kt_expr *y,
                            kj_location location)
{
  const kt_compilation *c = s->c;
  kjit_type a = kt_part_type(c, x->type), b = kt_part_type(c, y->type);
  bool are_bools = a == KJIT_BOOL && b == KJIT_BOOL,
       are_integers = is_whole_number(c, a) && is_whole_number(c, b);
  bool compares = ki_op_table[op].class_ == KJ_OP_COMPARE,
       combines = ki_op_table[op].class_ == KJ_OP_INT;
  if (are_bools && (compares || combines)) return kt_is_vector(c, x->type) ? x->type : y->type;
  bool is_whole = compares || (combines && are_integers) || op == KJIT_OP_ADD ||
                  op == KJIT_OP_SUB || op == KJIT_OP_MUL || (op == KJIT_OP_DIV && !are_integers);
  return is_whole ? kt_promote_parts(s, x->type, y->type, location) : KJIT_ANY;
}

static kt_expr *make_vector_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                                   kj_location location)
{
  const kt_compilation *c = s->c;
  bool are_vectors = kt_is_vector(c, x->type) && kt_is_vector(c, y->type);
  if (are_vectors && ki_type(c->types, x->type)->count != ki_type(c->types, y->type)->count)
    fail_operands(s, op, x, y, location);
  bool is_shift = ki_op_table[op].class_ == KJ_OP_SHIFT;
  bool are_integers =
    is_whole_number(c, kt_part_type(c, x->type)) && is_whole_number(c, kt_part_type(c, y->type));
  if (is_shift && are_integers) return make_shift(s, op, x, y, location);
  kjit_type type = whole_type(s, op, x, y, location);
  if (type == KJIT_ANY) return make_lanes(s, op, x, y, location);
  bool compares = ki_op_table[op].class_ == KJ_OP_COMPARE;
  x = kt_convert(s, x, type, location);
  y = kt_convert(s, y, type, location);
  return new_operation(s, compares ? KJ_T_COMPARE : KJ_T_BINARY, op,
                       compares ? kt_with_part(s, type, KJIT_BOOL) : type, x, y, location);
}

/* ---- complex numbers ---- */

typedef struct scaling {
  kjit_op op;
  kt_expr *number;
} scaling;

static kt_expr *scale_part(kt_scope *s, kt_expr *part, uint32_t index, const void *data)
{
  const scaling *by = data;
  (void)index;
  return kt_make_binary(s, by->op, part, kt_copy_texpr(s, by->number), part->location);
}

/* Multiplies or divides both parts of a complex number by a real number. Converting the real number
 * to a complex number would need twice as many operations, and would compute 0 * inf for its
 * imaginary part of 0 (C, Annex G). */
static kt_expr *scale(kt_scope *s, kjit_op op, kt_expr *z, kt_expr *number, kjit_type type,
                      kj_location location)
{
  kjit_type part = kt_part_type(s->c, type);
  z = kt_convert(s, z, type, location);
  scaling by = { .op = op, .number = kt_keep_value(s, kt_convert(s, number, part, location)) };
  return kt_map_parts(s, type, z, scale_part, &by, location);
}

/* Computes z + x or x - z for a real x. The imaginary part depends only on z. */
static kt_expr *add_real(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kjit_type type,
                         kj_location location)
{
  kjit_type part = kt_part_type(s->c, type);
  bool is_first = kt_is_complex(s->c, x->type);
  kt_exprs parts = { 0 };
  x = kt_keep_value(s, kt_convert(s, x, is_first ? type : part, location));
  y = kt_keep_value(s, kt_convert(s, y, is_first ? part : type, location));
  kt_expr *a = is_first ? kt_make_item(s, kt_copy_texpr(s, x), 0, location) : x,
          *b = is_first ? y : kt_make_item(s, kt_copy_texpr(s, y), 0, location);
  kt_expr *imaginary = kt_make_item(s, kt_copy_texpr(s, is_first ? x : y), 1, location);
  KJ_PUSH(s->arena, &parts, kt_make_binary(s, op, a, b, location));
  KJ_PUSH(s->arena, &parts,
          !is_first && op == KJIT_OP_SUB ? kt_make_unary(s, KJIT_OP_NEG, imaginary, location)
                                         : imaginary);
  return kt_make_composed(s, type, &parts, location);
}

/* Computes z to the power n, n > 0, by repeated squaring. */
static kt_expr *multiply_out(kt_scope *s, kt_expr *z, unsigned __int128 n, kj_location location)
{
  kt_expr *result = NULL;
  for (; n; n >>= 1) {
    z = kt_keep_value(s, z);
    if (n & 1)
      result = result ? kt_make_binary(s, KJIT_OP_MUL, result, kt_copy_texpr(s, z), location)
                      : kt_copy_texpr(s, z);
    if (n > 1)
      z = kt_make_binary(s, KJIT_OP_MUL, kt_copy_texpr(s, z), kt_copy_texpr(s, z), location);
  }
  return result;
}

static kt_expr *make_general_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  kt_operands operands = { .builtin = &ki_builtin_table[KJ_BUILTIN_POW], .location = location };
  KJ_PUSH(s->arena, &operands.values, x);
  KJ_PUSH(s->arena, &operands.values, y);
  return kt_apply_rule(s, &operands);
}

/* Computes a complex power by Numba's rules. Numba computes `z ** 2` as `z * z`. Otherwise it
 * converts the exponent to a complex number. */
static kt_expr *make_numba_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  bool is_known =
    y->kind == KJ_T_TUPLE && kt_is_constant(y->args.items[0]) && kt_is_constant(y->args.items[1]);
  kjit_type part = kt_part_type(s->c, x->type);
  if (is_known && y->args.items[0]->integer == kt_new_number(s, part, 2, location)->integer &&
      y->args.items[1]->integer == 0)
    return multiply_out(s, x, 2, location);
  if (is_known || !kt_is_complex(s->c, y->type)) return make_general_power(s, x, y, location);
  x = kt_keep_value(s, x);
  y = kt_keep_value(s, y);
  kt_expr *two = kt_convert(s, kt_new_integer(s, KJIT_I64, 2, location), y->type, location);
  kt_expr *is_square = kt_make_binary(s, KJIT_OP_EQ, kt_copy_texpr(s, y), two, location);
  kt_expr *square =
    kt_make_binary(s, KJIT_OP_MUL, kt_copy_texpr(s, x), kt_copy_texpr(s, x), location);
  kt_expr *power = make_general_power(s, kt_copy_texpr(s, x), kt_copy_texpr(s, y), location);
  return kt_make_cond(s, is_square, square, power, location);
}

static kt_expr *make_complex_power(kt_scope *s, kt_expr *x, kt_expr *y, kj_location location)
{
  bool is_multiplied = kt_is_constant(y) && kt_is_integer(s->c, y->type);
  if (s->has_numba_types) return make_numba_power(s, x, y, location);
  if (!is_multiplied) return make_general_power(s, x, y, location);
  if (y->integer == 0) {
    kt_drop_value(s, x);
    return kt_make_one(s, x->type, location);
  }
  if (y->integer > 0) return multiply_out(s, x, (unsigned __int128)y->integer, location);
  x = kt_make_binary(s, KJIT_OP_DIV, kt_make_one(s, x->type, location), x, location);
  return multiply_out(s, x, -(unsigned __int128)y->integer, location);
}

static kt_expr *make_complex_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y,
                                    kj_location location)
{
  bool is_sum = op == KJIT_OP_ADD || op == KJIT_OP_SUB,
       is_equality = op == KJIT_OP_EQ || op == KJIT_OP_NE;
  if (!is_sum && !is_equality && op != KJIT_OP_MUL && op != KJIT_OP_DIV && op != KJIT_OP_POW)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` does not support complex numbers, which only have `+ - * / ** == !=`%s",
            text_of(op),
            ki_op_table[op].class_ == KJ_OP_COMPARE ? "; compare their absolute values, `abs(z)`"
                                                    : "");
  if (op == KJIT_OP_POW && kt_is_complex(s->c, x->type))
    return make_complex_power(s, x, y, location);
  kjit_type type = kt_promote_parts(s, x->type, y->type, location);
  if (type == KJIT_ANY) fail_operands(s, op, x, y, location);
  bool x_complex = kt_is_complex(s->c, x->type), y_complex = kt_is_complex(s->c, y->type);
  if (op == KJIT_OP_POW)
    return make_complex_power(s, kt_convert(s, x, type, location), y, location);
  if (is_sum && x_complex != y_complex) return add_real(s, op, x, y, type, location);
  if (op == KJIT_OP_MUL && x_complex != y_complex)
    return scale(s, op, x_complex ? x : y, x_complex ? y : x, type, location);
  if (op == KJIT_OP_DIV && !y_complex) return scale(s, op, x, y, type, location);
  x = kt_convert(s, x, type, location);
  y = kt_convert(s, y, type, location);
  return new_operation(s, is_equality ? KJ_T_COMPARE : KJ_T_BINARY, op,
                       is_equality ? KJIT_BOOL : type, x, y, location);
}

/* ---- operators ---- */

kt_expr *kt_make_binary_parts(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  bool has_vector = kt_is_vector(s->c, x->type) || kt_is_vector(s->c, y->type);
  bool has_complex = kt_is_complex(s->c, x->type) || kt_is_complex(s->c, y->type);
  if (has_vector && has_complex) fail_operands(s, op, x, y, location);
  return has_vector ? make_vector_binary(s, op, x, y, location)
                    : make_complex_binary(s, op, x, y, location);
}

kt_expr *kt_make_unary_parts(kt_scope *s, kjit_op op, kt_expr *x, kj_location location)
{
  const kt_compilation *c = s->c;
  kjit_type part = kt_part_type(c, x->type);
  bool is_vector = kt_is_vector(c, x->type), is_sign = op == KJIT_OP_NEG || op == KJIT_OP_POS;
  if (!is_vector && !is_sign)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` does not support complex numbers", text_of(op));
  if (op == KJIT_OP_NOT && kt_is_float(c, part))
    kt_fail_number(s->c, location, x->type, "`not` needs bools or integers, got %s",
                   kt_type_text(s->c, x->type));
  if (op == KJIT_OP_NOT && part != KJIT_BOOL) {
    x = kt_make_binary(s, KJIT_OP_NE, x, kt_new_integer(s, KJ_WEAK_INT, 0, location), location);
    part = KJIT_BOOL;
  }
  if (op == KJIT_OP_INVERT && part == KJIT_BOOL)
    kt_fail_number(s->c, location, x->type, "`~` needs integers, got %s; write `not`",
                   kt_type_text(s->c, x->type));
  if (op == KJIT_OP_INVERT && !kt_is_integer(c, part))
    kt_fail_number(s->c, location, x->type, "`~` needs integers, got %s",
                   kt_type_text(s->c, x->type));
  if (op != KJIT_OP_NOT && is_vector)
    x = kt_convert(s, x, kt_with_part(s, x->type, ki_arithmetic_type(part)), location);
  return op == KJIT_OP_POS ? x : new_operation(s, KJ_T_UNARY, op, x->type, x, NULL, location);
}

/* ---- built-ins on vectors ---- */

static uint32_t count_lanes(kt_scope *s, const kt_operands *o)
{
  uint32_t lanes = 0;
  for (size_t i = 0; i < o->values.count; i++) {
    const kt_expr *value = o->values.items[i];
    if (!kt_is_vector(s->c, value->type)) continue;
    uint32_t count = ki_type(s->c->types, value->type)->count;
    if (lanes && count != lanes)
      kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
              "`%s` on %u and %u lanes: the numbers of lanes must be equal", o->builtin->name,
              lanes, count);
    lanes = count;
  }
  return lanes;
}

static kt_exprs keep_all(kt_scope *s, const kt_exprs *values)
{
  kt_exprs kept = { 0 };
  for (size_t i = 0; i < values->count; i++)
    KJ_PUSH(s->arena, &kept, kt_keep_value(s, values->items[i]));
  return kept;
}

static kt_expr *apply_to_lane(kt_scope *s, const kt_operands *o, const kt_exprs *values,
                              uint32_t lane)
{
  kt_operands at = *o;
  at.values = (kt_exprs){ 0 };
  for (size_t i = 0; i < values->count; i++)
    KJ_PUSH(s->arena, &at.values, lane_of(s, values->items[i], lane));
  return kt_apply_rule(s, &at);
}

/* Combines the results of a built-in that returns several values for each lane: each of these
 * values becomes a vector. */
static kt_expr *join_tuples(kt_scope *s, const kt_exprs *lanes, kj_location location)
{
  kt_exprs items = { 0 };
  uint32_t count = ki_type(s->c->types, lanes->items[0]->type)->count;
  for (uint32_t i = 0; i < count; i++) {
    kt_exprs parts = { 0 };
    for (size_t lane = 0; lane < lanes->count; lane++)
      KJ_PUSH(s->arena, &parts, kt_make_item(s, kt_copy_texpr(s, lanes->items[lane]), i, location));
    KJ_PUSH(s->arena, &items, join_lanes(s, &parts, location));
  }
  return kt_make_tuple(s, &items, location);
}

static kt_expr *apply_to_lanes(kt_scope *s, const kt_operands *o, uint32_t count)
{
  kt_exprs lanes = { 0 }, values = keep_all(s, &o->values);
  for (uint32_t i = 0; i < count; i++) KJ_PUSH(s->arena, &lanes, apply_to_lane(s, o, &values, i));
  if (!kt_is_tuple(s->c, lanes.items[0]->type)) return join_lanes(s, &lanes, o->location);
  lanes = keep_all(s, &lanes);
  return join_tuples(s, &lanes, o->location);
}

/* ---- built-ins on complex numbers ---- */

typedef enum complex_kind { NO_COMPLEX, WHOLE, HYPOT_OF, EITHER, BOTH, PARTS, CHOICE } complex_kind;

static complex_kind kind_of(const ki_builtin *builtin)
{
  static const uint8_t kinds[KJ_BUILTIN_COUNT] = {
    [KJ_BUILTIN_EXP] = WHOLE,        [KJ_BUILTIN_LOG] = WHOLE,     [KJ_BUILTIN_LOG10] = WHOLE,
    [KJ_BUILTIN_SQRT] = WHOLE,       [KJ_BUILTIN_SIN] = WHOLE,     [KJ_BUILTIN_COS] = WHOLE,
    [KJ_BUILTIN_TAN] = WHOLE,        [KJ_BUILTIN_ASIN] = WHOLE,    [KJ_BUILTIN_ACOS] = WHOLE,
    [KJ_BUILTIN_ATAN] = WHOLE,       [KJ_BUILTIN_SINH] = WHOLE,    [KJ_BUILTIN_COSH] = WHOLE,
    [KJ_BUILTIN_TANH] = WHOLE,       [KJ_BUILTIN_ASINH] = WHOLE,   [KJ_BUILTIN_ACOSH] = WHOLE,
    [KJ_BUILTIN_ATANH] = WHOLE,      [KJ_BUILTIN_POW] = WHOLE,     [KJ_BUILTIN_ABS] = HYPOT_OF,
    [KJ_BUILTIN_ISNAN] = EITHER,     [KJ_BUILTIN_ISINF] = EITHER,  [KJ_BUILTIN_ISFINITE] = BOTH,
    [KJ_BUILTIN_REDUCE_ADD] = PARTS, [KJ_BUILTIN_SELECT] = CHOICE,
  };
  return kinds[builtin->id];
}

static kt_expr *apply_builtin(kt_scope *s, ki_builtin_id id, kt_expr *x, kt_expr *y,
                              kj_location location)
{
  kt_operands operands = { .builtin = &ki_builtin_table[id], .location = location };
  KJ_PUSH(s->arena, &operands.values, x);
  if (y) KJ_PUSH(s->arena, &operands.values, y);
  return kt_apply_rule(s, &operands);
}

static kt_expr *real_of(kt_scope *s, kt_expr *z)
{
  return kt_make_item(s, kt_copy_texpr(s, z), 0, z->location);
}
static kt_expr *imaginary_of(kt_scope *s, kt_expr *z)
{
  return kt_make_item(s, kt_copy_texpr(s, z), 1, z->location);
}

static kt_expr *apply_whole(kt_scope *s, const kt_operands *o)
{
  kjit_type type = o->values.items[0]->type;
  kt_operands typed = *o;
  typed.values = (kt_exprs){ 0 };
  for (size_t i = 1; i < o->values.count && type != KJIT_ANY; i++)
    type = kt_promote_parts(s, type, o->values.items[i]->type, o->location);
  if (type == KJIT_ANY)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE, "`%s` needs numbers", o->builtin->name);
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &typed.values, kt_convert(s, o->values.items[i], type, o->location));
  return kt_new_builtin(s, &typed, type);
}

static kt_expr *test_parts(kt_scope *s, const kt_operands *o, kjit_op op)
{
  kt_expr *z = kt_keep_value(s, o->values.items[0]);
  kt_expr *real = apply_builtin(s, o->builtin->id, real_of(s, z), NULL, o->location);
  return kt_make_binary(s, op, real,
                        apply_builtin(s, o->builtin->id, imaginary_of(s, z), NULL, o->location),
                        o->location);
}

/* Applies a built-in to the real part and to the imaginary part of the last operand. Both calls get
 * all other operands. */
static kt_expr *apply_to_parts(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = keep_all(s, &o->values), parts = { 0 };
  kjit_type type = values.items[values.count - 1]->type;
  for (uint32_t i = 0; i < 2; i++) {
    kt_operands at = *o;
    at.values = (kt_exprs){ 0 };
    for (size_t j = 0; j + 1 < values.count; j++)
      KJ_PUSH(s->arena, &at.values, kt_copy_texpr(s, values.items[j]));
    KJ_PUSH(s->arena, &at.values,
            kt_make_item(s, kt_copy_texpr(s, values.items[values.count - 1]), i, o->location));
    KJ_PUSH(s->arena, &parts, kt_apply_rule(s, &at));
  }
  return kt_make_composed(s, type, &parts, o->location);
}

static kt_expr *choose_parts(kt_scope *s, const kt_operands *o)
{
  kt_exprs parts = { 0 };
  kjit_type type =
    kt_promote_parts(s, o->values.items[1]->type, o->values.items[2]->type, o->location);
  if (type == KJIT_ANY || kt_has_parts(s->c, o->values.items[0]->type))
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE, "`select` does not support the types %s, %s and %s",
            kt_type_text(s->c, o->values.items[0]->type),
            kt_type_text(s->c, o->values.items[1]->type),
            kt_type_text(s->c, o->values.items[2]->type));
  kt_expr *condition = kt_keep_value(s, o->values.items[0]);
  kt_expr *x = kt_keep_value(s, kt_convert(s, o->values.items[1], type, o->location));
  kt_expr *y = kt_keep_value(s, kt_convert(s, o->values.items[2], type, o->location));
  for (uint32_t i = 0; i < 2; i++) {
    kt_operands at = *o;
    at.values = (kt_exprs){ 0 };
    KJ_PUSH(s->arena, &at.values, kt_copy_texpr(s, condition));
    KJ_PUSH(s->arena, &at.values, i ? imaginary_of(s, x) : real_of(s, x));
    KJ_PUSH(s->arena, &at.values, i ? imaginary_of(s, y) : real_of(s, y));
    KJ_PUSH(s->arena, &parts, kt_apply_rule(s, &at));
  }
  return kt_make_composed(s, type, &parts, o->location);
}

static kt_expr *apply_to_complex(kt_scope *s, const kt_operands *o)
{
  kt_expr *z;
  switch (KJ_AMONG(kind_of(o->builtin))) {
  case WHOLE: return apply_whole(s, o);
  case HYPOT_OF:
    z = kt_keep_value(s, o->values.items[0]);
    return apply_builtin(s, KJ_BUILTIN_HYPOT, real_of(s, z), imaginary_of(s, z), o->location);
  case EITHER: return test_parts(s, o, KJIT_OP_BIT_OR);
  case BOTH: return test_parts(s, o, KJIT_OP_BIT_AND);
  case PARTS: return apply_to_parts(s, o);
  case CHOICE: return choose_parts(s, o);
  default: return NULL;
  }
}

kt_expr *kt_apply_rule_parts(kt_scope *s, const kt_operands *o, bool takes_lanes)
{
  bool has_vector = false, has_complex = false;
  for (size_t i = 0; i < o->values.count; i++) {
    has_vector |= kt_is_vector(s->c, o->values.items[i]->type);
    has_complex |= kt_is_complex(s->c, o->values.items[i]->type);
  }
  if (has_vector && takes_lanes) return apply_to_lanes(s, o, count_lanes(s, o));
  return has_complex ? apply_to_complex(s, o) : NULL;
}

/* ---- parts of complex numbers ---- */

static kt_expr *take_number(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = o->values.items[0];
  bool is_number = kt_is_complex(s->c, value->type) || kt_is_number(s->c, value->type);
  if (!is_number)
    kt_fail_number(s->c, value->location, value->type, "`%s` needs a number, got %s",
                   o->builtin->name, kt_type_text(s->c, value->type));
  return kt_is_complex(s->c, value->type) ? kt_keep_value(s, value) : kt_make_concrete(s, value);
}

kt_expr *kt_rule_complex_part(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = take_number(s, o);
  bool is_imaginary = o->builtin->id == KJ_BUILTIN_IMAG;
  if (kt_is_complex(s->c, value->type))
    return is_imaginary ? imaginary_of(s, value) : real_of(s, value);
  if (!is_imaginary) return value;
  kt_drop_value(s, value);
  return kt_convert(s, kt_new_integer(s, KJ_WEAK_INT, 0, o->location), value->type, o->location);
}

kt_expr *kt_rule_conj(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = take_number(s, o);
  kt_exprs parts = { 0 };
  if (!kt_is_complex(s->c, value->type)) return value;
  KJ_PUSH(s->arena, &parts, real_of(s, value));
  KJ_PUSH(s->arena, &parts, kt_make_unary(s, KJIT_OP_NEG, imaginary_of(s, value), o->location));
  return kt_make_composed(s, value->type, &parts, o->location);
}

kt_expr *kt_rule_arg(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = take_number(s, o);
  bool is_complex = kt_is_complex(s->c, value->type);
  kt_expr *imaginary =
    is_complex ? imaginary_of(s, value) : kt_new_integer(s, KJ_WEAK_INT, 0, o->location);
  return apply_builtin(s, KJ_BUILTIN_ATAN2, imaginary, is_complex ? real_of(s, value) : value,
                       o->location);
}

/* ---- all lanes of a vector of bool ---- */

kt_expr *kt_rule_lanes(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = o->values.items[0];
  bool is_mask = kt_is_vector(s->c, value->type) && kt_part_type(s->c, value->type) == KJIT_BOOL;
  if (!is_mask)
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs a vector of bool, got %s",
            o->builtin->name, kt_type_text(s->c, value->type));
  uint32_t count = ki_type(s->c->types, value->type)->count;
  value = kt_keep_value(s, value);
  kt_expr *result = lane_of(s, value, 0);
  kjit_op op = o->builtin->id == KJ_BUILTIN_ANY_LANE ? KJIT_OP_BIT_OR : KJIT_OP_BIT_AND;
  for (uint32_t i = 1; i < count; i++)
    result = kt_make_binary(s, op, result, lane_of(s, value, i), o->location);
  return result;
}
