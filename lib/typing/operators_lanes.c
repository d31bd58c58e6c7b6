/* Operators and element-wise built-ins on vectors and complex numbers.
 *
 * What LLVM can do with a whole vector is one node; all else is taken apart here, lane by lane, and
 * made by the rules for scalars: the same types, the same errors. */
#include "typing/rules.h"

static const char *text_of(kjit_op op) { return kj_op_table[op].text; }

/* ---- vectors, lane by lane ---- */

static kj_texpr *lane_of(kj_scope *s, kj_texpr *value, uint32_t lane)
{
  return kj_is_vector(s->c, value->type)
           ? kj_make_item(s, kj_copy_texpr(s, value), lane, value->location)
           : kj_copy_texpr(s, value);
}

/* Results of lanes have one type, but for literals among them. */
static kj_texpr *join_lanes(kj_scope *s, kj_texprs *lanes, kj_location location)
{
  for (size_t i = 0; i < lanes->count; i++) lanes->items[i] = kj_make_concrete(s, lanes->items[i]);
  kjit_type lane = lanes->items[0]->type;
  for (size_t i = 1; i < lanes->count; i++)
    lanes->items[i] = kj_convert(s, lanes->items[i], lane, location);
  return kj_make_composed(s, kj_vector_of(s, lane, (uint32_t)lanes->count), lanes, location);
}

static kj_texpr *make_lanes(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y, kj_location location)
{
  kj_texprs lanes = { 0 };
  uint32_t count = kj_type(s->c->types, kj_is_vector(s->c, x->type) ? x->type : y->type)->count;
  x = kj_keep_value(s, x);
  y = kj_keep_value(s, y);
  for (uint32_t i = 0; i < count; i++)
    KJ_PUSH(s->arena, &lanes, kj_make_binary(s, op, lane_of(s, x, i), lane_of(s, y, i), location));
  return join_lanes(s, &lanes, location);
}

/* ---- vectors as a whole ---- */

static kj_texpr *new_operation(kj_scope *s, kj_tkind kind, kjit_op op, kjit_type type, kj_texpr *x,
                               kj_texpr *y, kj_location location)
{
  kj_texpr *expr = kj_new_texpr(s->c, kind, type, location);
  expr->op = op;
  expr->x = x;
  expr->y = y;
  return expr;
}

static _Noreturn void fail_operands(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                                    kj_location location)
{
  const char *a = kj_type_text(s->c, x->type), *b = kj_type_text(s->c, y->type);
  bool are_vectors = kj_is_vector(s->c, x->type) && kj_is_vector(s->c, y->type);
  bool differ =
    are_vectors && kj_type(s->c->types, x->type)->count != kj_type(s->c->types, y->type)->count;
  if (differ)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` of %s and %s: the numbers of lanes differ",
            text_of(op), a, b);
  if (kj_is_complex(s->c, x->type) != kj_is_complex(s->c, y->type) &&
      kj_is_vector(s->c, x->type) != kj_is_vector(s->c, y->type))
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` of %s and %s: the lanes of a vector are no complex numbers", text_of(op), a, b);
  if (are_vectors || kj_is_vector(s->c, x->type) != kj_is_vector(s->c, y->type))
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` of %s and %s: no vector type holds both; convert one", text_of(op), a, b);
  kj_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` of %s and %s: no type holds both", text_of(op), a,
          b);
}

/* Each side's lanes on their own; the count is taken modulo the width, so that it converts freely.
 */
static kj_texpr *make_shift(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y, kj_location location)
{
  x = kj_make_concrete(s, x);
  const kj_texpr *vector = kj_is_vector(s->c, x->type) ? x : y;
  kjit_type lane = kj_arithmetic_type(kj_part_type(s->c, x->type)),
            type = kj_with_part(s, vector->type, lane);
  if (kj_is_constant(y))
    y = kj_new_integer(s, lane, y->integer & (kj_type(s->c->types, lane)->size_bytes * 8 - 1),
                       y->location);
  else y = kj_make_concrete(s, y);
  x = kj_convert(s, x, type, location);
  return new_operation(s, KJ_T_BINARY, op, type, x, kj_convert(s, y, type, location), location);
}

static bool is_whole_number(const kj_compilation *c, kjit_type type)
{
  return type == KJIT_BOOL || kj_is_integer(c, type);
}

/* The common type of operands that LLVM takes as whole vectors; KJIT_ANY: lane by lane. */
static kjit_type whole_type(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                            kj_location location)
{
  const kj_compilation *c = s->c;
  kjit_type a = kj_part_type(c, x->type), b = kj_part_type(c, y->type);
  bool are_bools = a == KJIT_BOOL && b == KJIT_BOOL,
       are_integers = is_whole_number(c, a) && is_whole_number(c, b);
  bool compares = kj_op_table[op].class_ == KJ_OP_COMPARE,
       combines = kj_op_table[op].class_ == KJ_OP_INT;
  if (are_bools && (compares || combines)) return kj_is_vector(c, x->type) ? x->type : y->type;
  bool is_whole = compares || (combines && are_integers) || op == KJIT_ADD || op == KJIT_SUB ||
                  op == KJIT_MUL || (op == KJIT_DIV && !are_integers);
  return is_whole ? kj_promote_parts(s, x->type, y->type, location) : KJIT_ANY;
}

static kj_texpr *make_vector_binary(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y,
                                    kj_location location)
{
  const kj_compilation *c = s->c;
  bool are_vectors = kj_is_vector(c, x->type) && kj_is_vector(c, y->type);
  if (are_vectors && kj_type(c->types, x->type)->count != kj_type(c->types, y->type)->count)
    fail_operands(s, op, x, y, location);
  bool is_shift = kj_op_table[op].class_ == KJ_OP_SHIFT;
  bool are_integers =
    is_whole_number(c, kj_part_type(c, x->type)) && is_whole_number(c, kj_part_type(c, y->type));
  if (is_shift && are_integers) return make_shift(s, op, x, y, location);
  kjit_type type = whole_type(s, op, x, y, location);
  if (type == KJIT_ANY) return make_lanes(s, op, x, y, location);
  bool compares = kj_op_table[op].class_ == KJ_OP_COMPARE;
  x = kj_convert(s, x, type, location);
  y = kj_convert(s, y, type, location);
  return new_operation(s, compares ? KJ_T_COMPARE : KJ_T_BINARY, op,
                       compares ? kj_with_part(s, type, KJIT_BOOL) : type, x, y, location);
}

/* ---- complex numbers ---- */

typedef struct scaling {
  kjit_op op;
  kj_texpr *number;
} scaling;

static kj_texpr *scale_part(kj_scope *s, kj_texpr *part, uint32_t index, const void *data)
{
  const scaling *by = data;
  (void)index;
  return kj_make_binary(s, by->op, part, kj_copy_texpr(s, by->number), part->location);
}

/* A real factor or divisor acts on the parts: half the work, and no 0 * inf where the imaginary
 * part would be 0 (C, Annex G). */
static kj_texpr *scale(kj_scope *s, kjit_op op, kj_texpr *z, kj_texpr *number, kjit_type type,
                       kj_location location)
{
  kjit_type part = kj_part_type(s->c, type);
  z = kj_convert(s, z, type, location);
  scaling by = { .op = op, .number = kj_keep_value(s, kj_convert(s, number, part, location)) };
  return kj_map_parts(s, type, z, scale_part, &by, location);
}

/* z + x, x - z: the imaginary part is that of z. */
static kj_texpr *add_real(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y, kjit_type type,
                          kj_location location)
{
  kjit_type part = kj_part_type(s->c, type);
  bool is_first = kj_is_complex(s->c, x->type);
  kj_texprs parts = { 0 };
  x = kj_keep_value(s, kj_convert(s, x, is_first ? type : part, location));
  y = kj_keep_value(s, kj_convert(s, y, is_first ? part : type, location));
  kj_texpr *a = is_first ? kj_make_item(s, kj_copy_texpr(s, x), 0, location) : x,
           *b = is_first ? y : kj_make_item(s, kj_copy_texpr(s, y), 0, location);
  kj_texpr *imaginary = kj_make_item(s, kj_copy_texpr(s, is_first ? x : y), 1, location);
  KJ_PUSH(s->arena, &parts, kj_make_binary(s, op, a, b, location));
  KJ_PUSH(s->arena, &parts,
          !is_first && op == KJIT_SUB ? kj_make_unary(s, KJIT_NEG, imaginary, location)
                                      : imaginary);
  return kj_make_composed(s, type, &parts, location);
}

static kj_texpr *make_one(kj_scope *s, kjit_type type, kj_location location)
{
  return kj_convert(s, kj_new_integer(s, KJ_WEAK_INT, 1, location), type, location);
}

/* By squaring; n > 0. */
static kj_texpr *multiply_out(kj_scope *s, kj_texpr *z, unsigned __int128 n, kj_location location)
{
  kj_texpr *result = NULL;
  for (; n; n >>= 1) {
    z = kj_keep_value(s, z);
    if (n & 1)
      result = result ? kj_make_binary(s, KJIT_MUL, result, kj_copy_texpr(s, z), location)
                      : kj_copy_texpr(s, z);
    if (n > 1) z = kj_make_binary(s, KJIT_MUL, kj_copy_texpr(s, z), kj_copy_texpr(s, z), location);
  }
  return result;
}

static kj_texpr *make_complex_power(kj_scope *s, kj_texpr *x, kj_texpr *y, kj_location location)
{
  bool is_multiplied = kj_is_constant(y) && kj_is_integer(s->c, y->type);
  if (!is_multiplied) {
    kj_operands operands = { .builtin = &kj_builtin_table[KJ_BUILTIN_POW], .location = location };
    KJ_PUSH(s->arena, &operands.values, x);
    KJ_PUSH(s->arena, &operands.values, y);
    return kj_apply_rule(s, &operands);
  }
  if (y->integer == 0) return make_one(s, x->type, location);
  if (y->integer > 0) return multiply_out(s, x, (unsigned __int128)y->integer, location);
  x = kj_make_binary(s, KJIT_DIV, make_one(s, x->type, location), x, location);
  return multiply_out(s, x, -(unsigned __int128)y->integer, location);
}

static kj_texpr *make_complex_binary(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y,
                                     kj_location location)
{
  bool is_sum = op == KJIT_ADD || op == KJIT_SUB, is_equality = op == KJIT_EQ || op == KJIT_NE;
  if (!is_sum && !is_equality && op != KJIT_MUL && op != KJIT_DIV && op != KJIT_POW)
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` is not for complex numbers: they have `+ - * / ** == !=`%s", text_of(op),
            kj_op_table[op].class_ == KJ_OP_COMPARE ? "; `abs(z)` is a number that compares" : "");
  if (op == KJIT_POW && kj_is_complex(s->c, x->type)) return make_complex_power(s, x, y, location);
  kjit_type type = kj_promote_parts(s, x->type, y->type, location);
  if (type == KJIT_ANY) fail_operands(s, op, x, y, location);
  bool x_complex = kj_is_complex(s->c, x->type), y_complex = kj_is_complex(s->c, y->type);
  if (op == KJIT_POW) return make_complex_power(s, kj_convert(s, x, type, location), y, location);
  if (is_sum && x_complex != y_complex) return add_real(s, op, x, y, type, location);
  if (op == KJIT_MUL && x_complex != y_complex)
    return scale(s, op, x_complex ? x : y, x_complex ? y : x, type, location);
  if (op == KJIT_DIV && !y_complex) return scale(s, op, x, y, type, location);
  x = kj_convert(s, x, type, location);
  y = kj_convert(s, y, type, location);
  return new_operation(s, is_equality ? KJ_T_COMPARE : KJ_T_BINARY, op,
                       is_equality ? KJIT_BOOL : type, x, y, location);
}

/* ---- operators ---- */

kj_texpr *kj_make_binary_parts(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y,
                               kj_location location)
{
  bool has_vector = kj_is_vector(s->c, x->type) || kj_is_vector(s->c, y->type);
  bool has_complex = kj_is_complex(s->c, x->type) || kj_is_complex(s->c, y->type);
  if (has_vector && has_complex) fail_operands(s, op, x, y, location);
  return has_vector ? make_vector_binary(s, op, x, y, location)
                    : make_complex_binary(s, op, x, y, location);
}

kj_texpr *kj_make_unary_parts(kj_scope *s, kjit_op op, kj_texpr *x, kj_location location)
{
  const kj_compilation *c = s->c;
  kjit_type part = kj_part_type(c, x->type);
  bool is_vector = kj_is_vector(c, x->type), is_sign = op == KJIT_NEG || op == KJIT_POS;
  if (!is_vector && !is_sign)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` is not for complex numbers", text_of(op));
  if (op == KJIT_NOT && kj_is_float(c, part))
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "`not` needs bools or integers, got %s",
            kj_type_text(s->c, x->type));
  if (op == KJIT_NOT && part != KJIT_BOOL) {
    x = kj_make_binary(s, KJIT_NE, x, kj_new_integer(s, KJ_WEAK_INT, 0, location), location);
    part = KJIT_BOOL;
  }
  if (op == KJIT_INVERT && part == KJIT_BOOL)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "`~` needs integers, got %s; write `not`",
            kj_type_text(s->c, x->type));
  if (op == KJIT_INVERT && !kj_is_integer(c, part))
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "`~` needs integers, got %s",
            kj_type_text(s->c, x->type));
  if (op != KJIT_NOT && is_vector)
    x = kj_convert(s, x, kj_with_part(s, x->type, kj_arithmetic_type(part)), location);
  return op == KJIT_POS ? x : new_operation(s, KJ_T_UNARY, op, x->type, x, NULL, location);
}

/* ---- built-ins on vectors ---- */

static uint32_t count_lanes(kj_scope *s, const kj_operands *o)
{
  uint32_t lanes = 0;
  for (size_t i = 0; i < o->values.count; i++) {
    const kj_texpr *value = o->values.items[i];
    if (!kj_is_vector(s->c, value->type)) continue;
    uint32_t count = kj_type(s->c->types, value->type)->count;
    if (lanes && count != lanes)
      kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` of %u and %u lanes: the numbers differ",
              o->builtin->name, lanes, count);
    lanes = count;
  }
  return lanes;
}

static kj_texprs keep_all(kj_scope *s, const kj_texprs *values)
{
  kj_texprs kept = { 0 };
  for (size_t i = 0; i < values->count; i++)
    KJ_PUSH(s->arena, &kept, kj_keep_value(s, values->items[i]));
  return kept;
}

static kj_texpr *apply_to_lane(kj_scope *s, const kj_operands *o, const kj_texprs *values,
                               uint32_t lane)
{
  kj_operands at = *o;
  at.values = (kj_texprs){ 0 };
  for (size_t i = 0; i < values->count; i++)
    KJ_PUSH(s->arena, &at.values, lane_of(s, values->items[i], lane));
  return kj_apply_rule(s, &at);
}

/* What gives several values gives as many vectors. */
static kj_texpr *join_tuples(kj_scope *s, const kj_texprs *lanes, kj_location location)
{
  kj_texprs items = { 0 };
  uint32_t count = kj_type(s->c->types, lanes->items[0]->type)->count;
  for (uint32_t i = 0; i < count; i++) {
    kj_texprs parts = { 0 };
    for (size_t lane = 0; lane < lanes->count; lane++)
      KJ_PUSH(s->arena, &parts, kj_make_item(s, kj_copy_texpr(s, lanes->items[lane]), i, location));
    KJ_PUSH(s->arena, &items, join_lanes(s, &parts, location));
  }
  return kj_make_tuple(s, &items, location);
}

static kj_texpr *apply_to_lanes(kj_scope *s, const kj_operands *o, uint32_t count)
{
  kj_texprs lanes = { 0 }, values = keep_all(s, &o->values);
  for (uint32_t i = 0; i < count; i++) KJ_PUSH(s->arena, &lanes, apply_to_lane(s, o, &values, i));
  if (!kj_is_tuple(s->c, lanes.items[0]->type)) return join_lanes(s, &lanes, o->location);
  lanes = keep_all(s, &lanes);
  return join_tuples(s, &lanes, o->location);
}

/* ---- built-ins on complex numbers ---- */

typedef enum complex_kind { NO_COMPLEX, WHOLE, HYPOT_OF, EITHER, BOTH, PARTS, CHOICE } complex_kind;

static complex_kind kind_of(const kj_builtin *builtin)
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

static kj_texpr *apply_builtin(kj_scope *s, kj_builtin_id id, kj_texpr *x, kj_texpr *y,
                               kj_location location)
{
  kj_operands operands = { .builtin = &kj_builtin_table[id], .location = location };
  KJ_PUSH(s->arena, &operands.values, x);
  if (y) KJ_PUSH(s->arena, &operands.values, y);
  return kj_apply_rule(s, &operands);
}

static kj_texpr *real_of(kj_scope *s, kj_texpr *z)
{
  return kj_make_item(s, kj_copy_texpr(s, z), 0, z->location);
}
static kj_texpr *imaginary_of(kj_scope *s, kj_texpr *z)
{
  return kj_make_item(s, kj_copy_texpr(s, z), 1, z->location);
}

static kj_texpr *apply_whole(kj_scope *s, const kj_operands *o)
{
  kjit_type type = o->values.items[0]->type;
  kj_operands typed = *o;
  typed.values = (kj_texprs){ 0 };
  for (size_t i = 1; i < o->values.count && type != KJIT_ANY; i++)
    type = kj_promote_parts(s, type, o->values.items[i]->type, o->location);
  if (type == KJIT_ANY)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE, "`%s` needs numbers", o->builtin->name);
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &typed.values, kj_convert(s, o->values.items[i], type, o->location));
  return kj_new_builtin(s, &typed, type);
}

static kj_texpr *test_parts(kj_scope *s, const kj_operands *o, kjit_op op)
{
  kj_texpr *z = kj_keep_value(s, o->values.items[0]);
  kj_texpr *real = apply_builtin(s, o->builtin->id, real_of(s, z), NULL, o->location);
  return kj_make_binary(s, op, real,
                        apply_builtin(s, o->builtin->id, imaginary_of(s, z), NULL, o->location),
                        o->location);
}

/* The last operand part by part, the others as they are. */
static kj_texpr *apply_to_parts(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = keep_all(s, &o->values), parts = { 0 };
  kjit_type type = values.items[values.count - 1]->type;
  for (uint32_t i = 0; i < 2; i++) {
    kj_operands at = *o;
    at.values = (kj_texprs){ 0 };
    for (size_t j = 0; j + 1 < values.count; j++)
      KJ_PUSH(s->arena, &at.values, kj_copy_texpr(s, values.items[j]));
    KJ_PUSH(s->arena, &at.values,
            kj_make_item(s, kj_copy_texpr(s, values.items[values.count - 1]), i, o->location));
    KJ_PUSH(s->arena, &parts, kj_apply_rule(s, &at));
  }
  return kj_make_composed(s, type, &parts, o->location);
}

static kj_texpr *choose_parts(kj_scope *s, const kj_operands *o)
{
  kj_texprs parts = { 0 };
  kjit_type type =
    kj_promote_parts(s, o->values.items[1]->type, o->values.items[2]->type, o->location);
  if (type == KJIT_ANY || kj_has_parts(s->c, o->values.items[0]->type))
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE, "`select` of %s, %s and %s",
            kj_type_text(s->c, o->values.items[0]->type),
            kj_type_text(s->c, o->values.items[1]->type),
            kj_type_text(s->c, o->values.items[2]->type));
  kj_texpr *condition = kj_keep_value(s, o->values.items[0]);
  kj_texpr *x = kj_keep_value(s, kj_convert(s, o->values.items[1], type, o->location));
  kj_texpr *y = kj_keep_value(s, kj_convert(s, o->values.items[2], type, o->location));
  for (uint32_t i = 0; i < 2; i++) {
    kj_operands at = *o;
    at.values = (kj_texprs){ 0 };
    KJ_PUSH(s->arena, &at.values, kj_copy_texpr(s, condition));
    KJ_PUSH(s->arena, &at.values, i ? imaginary_of(s, x) : real_of(s, x));
    KJ_PUSH(s->arena, &at.values, i ? imaginary_of(s, y) : real_of(s, y));
    KJ_PUSH(s->arena, &parts, kj_apply_rule(s, &at));
  }
  return kj_make_composed(s, type, &parts, o->location);
}

static kj_texpr *apply_to_complex(kj_scope *s, const kj_operands *o)
{
  kj_texpr *z;
  switch (KJ_AMONG(kind_of(o->builtin))) {
  case WHOLE: return apply_whole(s, o);
  case HYPOT_OF:
    z = kj_keep_value(s, o->values.items[0]);
    return apply_builtin(s, KJ_BUILTIN_HYPOT, real_of(s, z), imaginary_of(s, z), o->location);
  case EITHER: return test_parts(s, o, KJIT_BIT_OR);
  case BOTH: return test_parts(s, o, KJIT_BIT_AND);
  case PARTS: return apply_to_parts(s, o);
  case CHOICE: return choose_parts(s, o);
  default: return NULL;
  }
}

kj_texpr *kj_apply_rule_parts(kj_scope *s, const kj_operands *o, bool takes_lanes)
{
  bool has_vector = false, has_complex = false;
  for (size_t i = 0; i < o->values.count; i++) {
    has_vector |= kj_is_vector(s->c, o->values.items[i]->type);
    has_complex |= kj_is_complex(s->c, o->values.items[i]->type);
  }
  if (has_vector && takes_lanes) return apply_to_lanes(s, o, count_lanes(s, o));
  return has_complex ? apply_to_complex(s, o) : NULL;
}

/* ---- parts of complex numbers ---- */

static kj_texpr *take_number(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = o->values.items[0];
  bool is_number = kj_is_complex(s->c, value->type) || kj_is_number(s->c, value->type);
  if (!is_number)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs a number, got %s", o->builtin->name,
            kj_type_text(s->c, value->type));
  return kj_is_complex(s->c, value->type) ? kj_keep_value(s, value) : kj_make_concrete(s, value);
}

kj_texpr *kj_rule_complex_part(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = take_number(s, o);
  bool is_imaginary = o->builtin->id == KJ_BUILTIN_IMAG;
  if (kj_is_complex(s->c, value->type))
    return is_imaginary ? imaginary_of(s, value) : real_of(s, value);
  return is_imaginary
           ? kj_convert(s, kj_new_integer(s, KJ_WEAK_INT, 0, o->location), value->type, o->location)
           : value;
}

kj_texpr *kj_rule_conj(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = take_number(s, o);
  kj_texprs parts = { 0 };
  if (!kj_is_complex(s->c, value->type)) return value;
  KJ_PUSH(s->arena, &parts, real_of(s, value));
  KJ_PUSH(s->arena, &parts, kj_make_unary(s, KJIT_NEG, imaginary_of(s, value), o->location));
  return kj_make_composed(s, value->type, &parts, o->location);
}

kj_texpr *kj_rule_arg(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = take_number(s, o);
  bool is_complex = kj_is_complex(s->c, value->type);
  kj_texpr *imaginary =
    is_complex ? imaginary_of(s, value) : kj_new_integer(s, KJ_WEAK_INT, 0, o->location);
  return apply_builtin(s, KJ_BUILTIN_ATAN2, imaginary, is_complex ? real_of(s, value) : value,
                       o->location);
}

/* ---- all lanes of a vector of bool ---- */

kj_texpr *kj_rule_lanes(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = o->values.items[0];
  bool is_mask = kj_is_vector(s->c, value->type) && kj_part_type(s->c, value->type) == KJIT_BOOL;
  if (!is_mask)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs a vector of bool, got %s",
            o->builtin->name, kj_type_text(s->c, value->type));
  uint32_t count = kj_type(s->c->types, value->type)->count;
  value = kj_keep_value(s, value);
  kj_texpr *result = lane_of(s, value, 0);
  kjit_op op = o->builtin->id == KJ_BUILTIN_ANY_LANE ? KJIT_BIT_OR : KJIT_BIT_AND;
  for (uint32_t i = 1; i < count; i++)
    result = kj_make_binary(s, op, result, lane_of(s, value, i), o->location);
  return result;
}
