/* Numba's typing rules, for kernels and funcs with the attribute `@numba` (docs/ir.md, Inference).
 *
 * All operands have a type, because weak values get their type where they occur in the source
 * (kt_infer_effect). For each pair of operand types, numba.def gives the types to which Numba
 * converts the operands and the result type. An operator on the converted operands then follows the
 * rules of kernel IR. Operands that the table does not contain, for example vectors or bf16, follow
 * the rules of kernel IR without such a conversion. */
#include "typing/values.h"

typedef enum numba_key {
  KEY_NONE,
  KEY_ARITHMETIC,
  KEY_DIVIDE,
  KEY_FLOOR_DIVIDE,
  KEY_POWER,
  KEY_SHIFT,
  KEY_BITS,
  KEY_EQUAL,
  KEY_ORDER,
  KEY_RANGE,
  KEY_ANGLE,
  KEY_REMAINDER,
  KEY_RAISE,
  KEY_JOIN,
  KEY_SIGN,
  KEY_INVERT,
  KEY_ABSOLUTE,
  KEY_START,
  KEY_MATH
} numba_key;

typedef struct signature {
  kjit_type x, y, result;
} signature;

/* x and y are bit sets of operand types. y is 0 for operators that have one operand. */
static const struct {
  numba_key key;
  uint32_t x, y;
  signature types;
} rows[] = {
#define T(type) (1u << KJIT_##type)
#define N2(key, x, y, as_x, as_y, result) \
  { KEY_##key, x, y, { KJIT_##as_x, KJIT_##as_y, KJIT_##result } },
#define N1(key, x, as_x, result) { KEY_##key, x, 0, { KJIT_##as_x, KJIT_ANY, KJIT_##result } },
#include "typing/numba.def"
#undef N1
#undef N2
#undef T
};

_Static_assert(KJIT_SCALAR_COUNT <= 32, "sets of types are bits of a uint32_t");

static const numba_key key_of_op[KJIT_OP_COUNT] = {
  [KJIT_OP_ADD] = KEY_ARITHMETIC,
  [KJIT_OP_SUB] = KEY_ARITHMETIC,
  [KJIT_OP_MUL] = KEY_ARITHMETIC,
  [KJIT_OP_DIV] = KEY_DIVIDE,
  [KJIT_OP_FLOORDIV] = KEY_FLOOR_DIVIDE,
  [KJIT_OP_MOD] = KEY_FLOOR_DIVIDE,
  [KJIT_OP_POW] = KEY_POWER,
  [KJIT_OP_SHL] = KEY_SHIFT,
  [KJIT_OP_SHR] = KEY_SHIFT,
  [KJIT_OP_BIT_AND] = KEY_BITS,
  [KJIT_OP_BIT_OR] = KEY_BITS,
  [KJIT_OP_BIT_XOR] = KEY_BITS,
  [KJIT_OP_EQ] = KEY_EQUAL,
  [KJIT_OP_NE] = KEY_EQUAL,
  [KJIT_OP_LT] = KEY_ORDER,
  [KJIT_OP_LE] = KEY_ORDER,
  [KJIT_OP_GT] = KEY_ORDER,
  [KJIT_OP_GE] = KEY_ORDER,
  [KJIT_OP_NEG] = KEY_SIGN,
  [KJIT_OP_POS] = KEY_SIGN,
  [KJIT_OP_INVERT] = KEY_INVERT,
};

/* Returns whether Numba has a type for the scalar type. Numba has no bf16. */
static bool is_known(kjit_type type) { return ki_is_scalar(type) && type != KJIT_BF16; }

/* Returns the row for operands of types x and y, or NULL if Numba has no such operator. y is
 * KJIT_ANY if there is only one operand. */
static const signature *find(numba_key key, kjit_type x, kjit_type y)
{
  KJ_ASSERT(is_known(x) && (y == KJIT_ANY || is_known(y)));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bool is_y = y == KJIT_ANY ? !rows[i].y : rows[i].y >> y & 1;
    if (rows[i].key == key && (rows[i].x >> x & 1) && is_y) return &rows[i].types;
  }
  return NULL;
}

/* ---- operators ---- */

static kt_expr *convert_twice(kt_scope *s, kt_expr *value, kjit_type type, kjit_type then,
                              kj_location location)
{
  return kt_convert(s, kt_convert(s, value, type, location), then, location);
}

kt_expr *kt_make_numba_binary(kt_scope *s, kjit_op op, kt_expr *x, kt_expr *y, kj_location location)
{
  numba_key key = key_of_op[op];
  if (ki_is_weak(x->type)) x = kt_make_concrete(s, x);
  if (ki_is_weak(y->type)) y = kt_make_concrete(s, y);
  if (key == KEY_NONE || !is_known(x->type) || !is_known(y->type)) return NULL;
  const signature *types = find(key, x->type, y->type);
  if (!types)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` of %s and %s: Numba has no such operator",
            ki_op_table[op].text, kt_type_text(s->c, x->type), kt_type_text(s->c, y->type));
  bool compares = key == KEY_EQUAL || key == KEY_ORDER,
       keeps_second = compares || key == KEY_SHIFT || key == KEY_POWER;
  x = convert_twice(s, x, types->x, compares ? types->x : types->result, location);
  y = convert_twice(s, y, types->y, keeps_second ? types->y : types->result, location);
  return kt_make_own_binary(s, op, x, y, location);
}

kt_expr *kt_make_numba_unary(kt_scope *s, kjit_op op, kt_expr *x, kj_location location)
{
  numba_key key = key_of_op[op];
  if (ki_is_weak(x->type)) x = kt_make_concrete(s, x);
  if (key == KEY_NONE || !is_known(x->type)) return NULL;
  const signature *types = find(key, x->type, KJIT_ANY);
  if (!types)
    kt_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` of %s: Numba has no such operator",
            ki_op_table[op].text, kt_type_text(s->c, x->type));
  kjit_type given = x->type;
  x = convert_twice(s, x, types->x, types->result, location);
  bool is_bool = op == KJIT_OP_INVERT && x->type == KJIT_BOOL;
  kt_expr *result = kt_make_own_unary(s, is_bool ? KJIT_OP_NOT : op, x, location);
  /* Numba computes these operators in the type of the operand and then widens the result */
  bool is_narrow = (op == KJIT_OP_NEG || op == KJIT_OP_INVERT) && kt_is_integer(s->c, given) &&
                   given != KJIT_BOOL && given != types->result;
  if (!is_narrow) return result;
  return kt_convert(s, kt_convert(s, result, given, location), types->result, location);
}

/* ---- types of several values ---- */

/* Returns the common type of several values by Numba's rules. Numba joins the types from left to
 * right: the first type with the second, the result with the third, and so on. */
static kjit_type fold_types(numba_key key, numba_key of_one, const kt_exprs *values)
{
  KJ_ASSERT(values->count);
  for (size_t i = 0; i < values->count; i++)
    if (!is_known(values->items[i]->type)) return KJIT_ANY;
  kjit_type type = values->items[0]->type;
  const signature *types = values->count == 1 ? find(of_one, type, KJIT_ANY) : NULL;
  if (types) return types->result;
  for (size_t i = 1; i < values->count; i++) {
    types = find(key, type, values->items[i]->type);
    if (!types) return KJIT_ANY;
    type = types->result;
  }
  return values->count == 1 ? KJIT_ANY : type;
}

kjit_type kt_join_numba(kjit_type a, kjit_type b)
{
  const signature *types = is_known(a) && is_known(b) ? find(KEY_JOIN, a, b) : NULL;
  return types ? types->result : KJIT_ANY;
}

kjit_type kt_numba_range_type(const kt_exprs *values)
{
  return fold_types(KEY_RANGE, KEY_START, values);
}

kjit_type kt_numba_number_type(const kt_exprs *values)
{
  return fold_types(KEY_JOIN, KEY_ABSOLUTE, values);
}

kjit_type kt_numba_float_type(const ki_builtin *builtin, const kt_exprs *values)
{
  /* an fma of three f16 values is rounded once, to f16 */
  bool is_half = builtin->id == KJ_BUILTIN_FMA;
  for (size_t i = 0; i < values->count; i++) is_half &= values->items[i]->type == KJIT_F16;
  if (is_half) return KJIT_F16;
  static const numba_key keys[KJ_BUILTIN_COUNT] = { [KJ_BUILTIN_FMOD] = KEY_REMAINDER,
                                                    [KJ_BUILTIN_COPYSIGN] = KEY_REMAINDER,
                                                    [KJ_BUILTIN_POW] = KEY_RAISE };
  numba_key key = keys[builtin->id];
  return fold_types(key == KEY_NONE ? KEY_ANGLE : key, KEY_MATH, values);
}

kjit_type kt_numba_literal_type(const kt_expr *value)
{
  KJ_ASSERT(ki_is_weak(value->type));
  if (value->type == KJ_WEAK_FLOAT) return KJIT_F64;
  bool is_large = value->kind == KJ_T_CONST && value->integer > INT64_MAX;
  return is_large ? KJIT_U64 : KJIT_I64;
}
