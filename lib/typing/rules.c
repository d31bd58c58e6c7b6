/* Typing rules of the built-ins: positions, literals, types, numbers. Each rule that builtins.def
 * names must be defined, otherwise linking fails. */
#include <math.h>

#include "typing/rules.h"

kt_expr *kt_new_builtin(kt_scope *s, const kt_operands *o, kjit_type type)
{
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_BUILTIN, type, o->location);
  expr->builtin = o->builtin;
  expr->args = o->values;
  return expr;
}

kt_expr *kt_new_builtin_of(kt_scope *s, const kt_operands *o, kt_exprs values, kjit_type type)
{
  kt_operands typed = *o;
  typed.values = values;
  return kt_new_builtin(s, &typed, type);
}

static kt_operands with_values(const kt_operands *o, kt_exprs values)
{
  kt_operands copy = *o;
  copy.values = values;
  return copy;
}

_Noreturn static void fail_operand(kt_scope *s, const kt_operands *o, const kt_expr *value,
                                   const char *wanted)
{
  kt_fail_number(s->c, value->location, value->type, "`%s` needs %s, got %s", o->builtin->name,
                 wanted, kt_type_text(s->c, value->type));
}

/* ---- positions ---- */

kt_expr *kt_rule_position(kt_scope *s, const kt_operands *o)
{
  kt_expr *expr = kt_new_builtin(s, o, KJIT_INDEX);
  if (s->instance) s->instance->uses_positions = true;
  if (!(o->builtin->flags & KJ_XYZ)) return expr;
  bool is_field = o->field && o->field[0] >= 'x' && o->field[0] <= 'z' && o->field[1] == 0;
  if (!is_field)
    kt_fail(s->c, o->location, KJIT_ERROR_NAME,
            "`%s` has the components `.x`, `.y` and `.z`: write `%s.x`", o->builtin->name,
            o->builtin->name);
  expr->dimension = (uint32_t)(o->field[0] - 'x');
  uint32_t known =
    o->builtin->id == KJ_BUILTIN_BLOCK_DIM ? s->inference->block[expr->dimension] : 0;
  return known ? kt_new_integer(s, KJIT_INDEX, known, o->location) : expr;
}

kt_expr *kt_rule_grid(kt_scope *s, const kt_operands *o)
{
  const kt_expr *count = o->values.items[0];
  if (!kt_is_constant(count) || !kt_is_integer(s->c, count->type) || count->integer < 1 ||
      count->integer > 3)
    kt_fail(s->c, count->location, KJIT_ERROR_TYPE,
            "the argument of `%s` is the number of dimensions: 1, 2 or 3", o->builtin->name);
  kt_exprs items = { 0 };
  if (s->instance) s->instance->uses_positions = true;
  for (uint32_t i = 0; i < count->integer; i++) {
    kt_expr *item = kt_new_texpr(s->c, KJ_T_BUILTIN, KJIT_INDEX, o->location);
    item->builtin = o->builtin;
    item->dimension = i;
    KJ_PUSH(s->arena, &items, item);
  }
  return items.count == 1 ? items.items[0] : kt_make_tuple(s, &items, o->location);
}

kt_expr *kt_rule_literal(kt_scope *s, const kt_operands *o)
{
  switch (KJ_AMONG(o->builtin->id)) {
  case KJ_BUILTIN_WARPSIZE: return kt_new_integer(s, KJ_WEAK_INT, KJ_WARP_THREADS, o->location);
  case KJ_BUILTIN_INF: return kt_new_number(s, KJ_WEAK_FLOAT, INFINITY, o->location);
  case KJ_BUILTIN_NAN: return kt_new_number(s, KJ_WEAK_FLOAT, NAN, o->location);
  default:
    KJ_ASSERT(o->builtin->id == KJ_BUILTIN_PI);
    return kt_new_number(s, KJ_WEAK_FLOAT, 3.14159265358979323846, o->location);
  }
}

/* Typing rule of the names that describe the target: `target`, and the names of target kinds. The
 * name of a target kind, for example `gpu`, is a number with which programs compare `target`. */
kt_expr *kt_rule_target(kt_scope *s, const kt_operands *o)
{
  const kj_target *target = &s->c->request->target;
  bool is_gpu = target->kind == KJ_TARGET_NVPTX;
  switch (KJ_AMONG(o->builtin->id)) {
  case KJ_BUILTIN_TARGET: return kt_new_integer(s, KJ_WEAK_INT, is_gpu, o->location);
  case KJ_BUILTIN_GPU: return kt_new_integer(s, KJ_WEAK_INT, 1, o->location);
  case KJ_BUILTIN_ARCH:
    return kt_new_integer(s, KJ_WEAK_INT, is_gpu ? target->arch : 0, o->location);
  case KJ_BUILTIN_VECTOR_BYTES:
    return kt_new_integer(s, KJ_WEAK_INT, target->vector_bytes, o->location);
  default:
    KJ_ASSERT(o->builtin->id == KJ_BUILTIN_CPU);
    return kt_new_integer(s, KJ_WEAK_INT, 0, o->location);
  }
}

/* ---- arrays and types ---- */

kt_expr *kt_rule_len(kt_scope *s, const kt_operands *o)
{
  kt_expr *array = o->values.items[0];
  if (kt_is_vector(s->c, array->type) || kt_is_tuple(s->c, array->type)) {
    kt_drop_value(s, array);
    return kt_new_integer(s, KJ_WEAK_INT, ki_type(s->c->types, array->type)->count, o->location);
  }
  if (!kt_is_array(s->c, array->type) && !kt_is_value_array(s->c, array->type))
    fail_operand(s, o, array, "an array or a tuple");
  if (ki_type(s->c->types, array->type)->rank == 0)
    kt_fail(s->c, array->location, KJIT_ERROR_TYPE, "an array without dimensions has no length");
  return kt_make_extent(s, array, 0, o->location);
}

kt_expr *kt_rule_type(kt_scope *s, const kt_operands *o)
{
  kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
          "`%s(...)` is a type, not a value: use it to convert, `dtype(r)(v)`, or compare it, "
          "`dtype(x) == f32`",
          o->builtin->name);
}

/* Returns the type argument of a built-in. Rejects types whose values have no size in memory. */
static kjit_type sized_argument(kt_scope *s, const kt_operands *o)
{
  if (!ki_type(s->c->types, o->type_argument)->size_bytes)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` needs the type of a scalar, vector, struct or pointer, got %s", o->builtin->name,
            kt_type_text(s->c, o->type_argument));
  return o->type_argument;
}

kt_expr *kt_rule_zero(kt_scope *s, const kt_operands *o)
{
  return kt_make_zero(s, sized_argument(s, o), o->location);
}

kt_expr *kt_rule_sizeof(kt_scope *s, const kt_operands *o)
{
  return kt_new_integer(s, KJ_WEAK_INT, ki_type(s->c->types, sized_argument(s, o))->size_bytes,
                        o->location);
}

/* Typing rule of `is_float` and the other tests of types. The table has the type classes for which
 * each built-in returns true. The argument can be any type. */
kt_expr *kt_rule_type_test(kt_scope *s, const kt_operands *o)
{
  static const uint32_t classes[KJ_BUILTIN_COUNT] = {
    [KJ_BUILTIN_IS_FLOAT] = 1u << KJ_CLASS_FLOAT,
    [KJ_BUILTIN_IS_INTEGER] = 1u << KJ_CLASS_SIGNED | 1u << KJ_CLASS_UNSIGNED,
    [KJ_BUILTIN_IS_SIGNED] = 1u << KJ_CLASS_SIGNED | 1u << KJ_CLASS_FLOAT,
    [KJ_BUILTIN_IS_COMPLEX] = 1u << KJ_CLASS_COMPLEX,
    [KJ_BUILTIN_IS_VECTOR] = 1u << KJ_CLASS_VECTOR,
    [KJ_BUILTIN_IS_STRUCT] = 1u << KJ_CLASS_STRUCT,
    [KJ_BUILTIN_IS_POINTER] = 1u << KJ_CLASS_POINTER,
    [KJ_BUILTIN_IS_ARRAY] = 1u << KJ_CLASS_ARRAY,
    [KJ_BUILTIN_IS_TUPLE] = 1u << KJ_CLASS_TUPLE,
  };
  KJ_ASSERT(classes[o->builtin->id]);
  bool holds = classes[o->builtin->id] >> ki_type(s->c->types, o->type_argument)->class_ & 1;
  return kt_new_integer(s, KJIT_BOOL, holds, o->location);
}

/* Makes a `select` between structs or pointers of the same type. */
static kt_expr *select_whole(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, kt_make_condition(s, o->values.items[0]));
  KJ_PUSH(s->arena, &values, o->values.items[1]);
  KJ_PUSH(s->arena, &values, o->values.items[2]);
  kt_operands typed = with_values(o, values);
  return kt_new_builtin(s, &typed, o->values.items[1]->type);
}

kt_expr *kt_rule_select(kt_scope *s, const kt_operands *o)
{
  kt_expr *condition = o->values.items[0], *x = o->values.items[1], *y = o->values.items[2];
  if (x->type == y->type && kt_is_composed(s->c, x->type)) return select_whole(s, o);
  if (!kt_is_number(s->c, x->type)) fail_operand(s, o, x, "numbers to choose from");
  if (!kt_is_number(s->c, y->type)) fail_operand(s, o, y, "numbers to choose from");
  if (kt_is_float(s->c, condition->type) || !kt_is_number(s->c, condition->type))
    fail_operand(s, o, condition, "a bool or an integer first");
  condition = kt_convert(s, condition, KJIT_BOOL, o->location);
  /* Literals stay weak. `select` always evaluates both operands. */
  if ((ki_is_weak(x->type) && ki_is_weak(y->type)) || kt_stays_open(s, x, y)) {
    if (!kt_can_drop(s->c, x)) x = kt_keep_value(s, x);
    if (!kt_can_drop(s->c, y)) y = kt_keep_value(s, y);
    return kt_make_cond(s, condition, x, y, o->location);
  }
  kjit_type type = kt_join_values(s, x->type, y->type, o->location);
  if (type == KJIT_ANY)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE, "no type can represent both %s and %s",
            kt_type_text(s->c, x->type), kt_type_text(s->c, y->type));
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, condition);
  KJ_PUSH(s->arena, &values, kt_convert(s, x, type, o->location));
  KJ_PUSH(s->arena, &values, kt_convert(s, y, type, o->location));
  kt_operands typed = with_values(o, values);
  return kt_new_builtin(s, &typed, type);
}

/* ---- numbers ---- */

static kjit_type promote_all(kt_scope *s, const kt_operands *o)
{
  kjit_type type = o->values.items[0]->type;
  for (size_t i = 0; i < o->values.count; i++) {
    const kt_expr *value = o->values.items[i];
    if (!kt_is_number(s->c, value->type)) fail_operand(s, o, value, "numbers");
    kjit_type common = i ? kt_promote(s, type, value->type, o->location) : ki_arithmetic_type(type);
    if (i && kt_stays_open(s, o->values.items[i - 1], value)) common = KJ_WEAK_FLOAT;
    if (common == KJIT_ANY)
      kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
              "`%s` on %s and %s: no integer type can represent both; convert one",
              o->builtin->name, kt_type_text(s->c, type), kt_type_text(s->c, value->type));
    type = common;
  }
  return type;
}

static kt_exprs convert_all(kt_scope *s, const kt_exprs *values, kjit_type type)
{
  kt_exprs converted = { 0 };
  for (size_t i = 0; i < values->count; i++)
    KJ_PUSH(s->arena, &converted,
            kt_convert(s, values->items[i], type, values->items[i]->location));
  return converted;
}

/* Converts all operands to a type, which is also the result type. Folds constant operands if the
 * built-in can be evaluated at compile time. If the type is weak, the result is weak. */
static kt_expr *apply_common(kt_scope *s, const kt_operands *o, kjit_type type)
{
  kt_operands typed = with_values(o, convert_all(s, &o->values, type));
  kt_expr *folded = kt_fold_builtin(s, o->builtin, &typed.values, o->location);
  return folded ? folded : kt_new_builtin(s, &typed, type);
}

kt_expr *kt_rule_numeric(kt_scope *s, const kt_operands *o)
{
  kjit_type numba = s->has_numba_types ? kt_numba_number_type(&o->values) : KJIT_ANY;
  if (numba != KJIT_ANY)
    return kt_convert(s, apply_common(s, o, ki_arithmetic_type(numba)), numba, o->location);
  return apply_common(s, o, promote_all(s, o));
}

static void require_integers(kt_scope *s, const kt_operands *o)
{
  for (size_t i = 0; i < o->values.count; i++)
    if (!kt_is_integer(s->c, o->values.items[i]->type) && o->values.items[i]->type != KJIT_BOOL)
      fail_operand(s, o, o->values.items[i], "integers");
}

static kt_exprs concrete_values(kt_scope *s, const kt_exprs *values)
{
  kt_exprs concrete = { 0 };
  for (size_t i = 0; i < values->count; i++)
    KJ_PUSH(s->arena, &concrete, kt_make_concrete(s, values->items[i]));
  return concrete;
}

kt_expr *kt_rule_integer(kt_scope *s, const kt_operands *o)
{
  require_integers(s, o);
  bool needs_width = o->builtin->id == KJ_BUILTIN_BREV || o->builtin->id == KJ_BUILTIN_MULHI ||
                     o->builtin->id == KJ_BUILTIN_BSWAP;
  kjit_type type = promote_all(s, o);
  if (!needs_width || !ki_is_weak(type)) return apply_common(s, o, type);
  kt_operands typed = with_values(o, concrete_values(s, &o->values));
  return apply_common(s, &typed, promote_all(s, &typed));
}

kt_expr *kt_rule_bit_count(kt_scope *s, const kt_operands *o)
{
  require_integers(s, o);
  kt_expr *value = kt_make_concrete(s, o->values.items[0]);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, kt_convert(s, value, ki_arithmetic_type(value->type), o->location));
  kt_operands typed = with_values(o, values);
  kt_expr *folded = kt_fold_builtin(s, o->builtin, &typed.values, o->location);
  return folded ? folded : kt_new_builtin(s, &typed, KJIT_I32);
}

/* Returns the common float type of the operands. Integers are treated as f64. */
static kjit_type promote_to_float(kt_scope *s, const kt_operands *o)
{
  kjit_type numba = s->has_numba_types ? kt_numba_float_type(o->builtin, &o->values) : KJIT_ANY;
  if (numba != KJIT_ANY) return numba;
  kjit_type type = promote_all(s, o);
  if (type == KJ_WEAK_INT) return KJ_WEAK_FLOAT;
  if (kt_is_float(s->c, type)) return type;
  kt_note_double(s, o->location);
  return KJIT_F64;
}

kt_expr *kt_rule_float(kt_scope *s, const kt_operands *o)
{
  return apply_common(s, o, promote_to_float(s, o));
}

/* Like promote_to_float, but the result is never weak. */
static kjit_type concrete_float(kt_scope *s, const kt_operands *o)
{
  kjit_type type = promote_to_float(s, o);
  if (type != KJ_WEAK_FLOAT) return type;
  kt_note_double(s, o->location);
  return KJIT_F64;
}

static kt_expr *apply_float(kt_scope *s, const kt_operands *o, kjit_type operand, kjit_type result)
{
  kt_operands typed = with_values(o, convert_all(s, &o->values, operand));
  return kt_new_builtin(s, &typed, result);
}

kt_expr *kt_rule_float_test(kt_scope *s, const kt_operands *o)
{
  return apply_float(s, o, concrete_float(s, o), KJIT_BOOL);
}

kt_expr *kt_rule_float_to_i32(kt_scope *s, const kt_operands *o)
{
  return apply_float(s, o, concrete_float(s, o), KJIT_I32);
}

kt_expr *kt_rule_float_to_i64(kt_scope *s, const kt_operands *o)
{
  return apply_float(s, o, concrete_float(s, o), KJIT_I64);
}

/* Rejects f16 and bf16. Such values would be computed in f32 and rounded a second time to the
 * narrow type, always to nearest, which ignores the rounding mode that the built-in promises. */
kt_expr *kt_rule_float_exact(kt_scope *s, const kt_operands *o)
{
  kjit_type type = concrete_float(s, o);
  if (type != KJIT_F32 && type != KJIT_F64)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` supports only f32 and f64, not %s: convert its operands", o->builtin->name,
            kt_type_text(s->c, type));
  return apply_float(s, o, type, type);
}

/* Returns whether the target has FP8 instructions: sm_89 since PTX 8.1, sm_90 in every PTX version
 * that supports it. */
static bool has_fp8(kt_scope *s)
{
  enum { FIRST_PTX = 81 };
  const kj_target *target = &s->c->request->target;
  bool is_first = target->kind == KJ_TARGET_NVPTX && target->arch == 89 &&
                  (!target->ptx_version || target->ptx_version >= FIRST_PTX);
  if (is_first && s->c->least_ptx < FIRST_PTX) s->c->least_ptx = FIRST_PTX;
  return is_first || (target->kind == KJ_TARGET_NVPTX && target->arch >= 90);
}

kt_expr *kt_rule_to_fp8(kt_scope *s, const kt_operands *o)
{
  if (!kt_is_float(s->c, o->values.items[0]->type))
    fail_operand(s, o, o->values.items[0], "a float");
  kt_expr *expr =
    apply_float(s, o,
                o->values.items[0]->type == KJ_WEAK_FLOAT ? KJIT_F32 : o->values.items[0]->type,
                KJIT_U8);
  expr->dimension = has_fp8(s); /* true: lowering emits the instruction */
  return expr;
}

kt_expr *kt_rule_from_fp8(kt_scope *s, const kt_operands *o)
{
  if (o->values.items[0]->type != KJIT_U8) fail_operand(s, o, o->values.items[0], "the bits, a u8");
  kt_expr *expr = kt_new_builtin(s, o, KJIT_F32);
  expr->dimension = has_fp8(s);
  return expr;
}

/* Typing rule of the Bessel functions whose order is an operand. The order, the first operand, is
 * an integer. The second operand is a float, whose type is the result type. */
kt_expr *kt_rule_bessel(kt_scope *s, const kt_operands *o)
{
  kt_expr *order = o->values.items[0];
  if (!kt_is_integer(s->c, order->type))
    fail_operand(s, o, order, "an integer as its first argument");
  kt_exprs last = { 0 }, values = { 0 };
  KJ_PUSH(s->arena, &last, o->values.items[1]);
  kt_operands second = with_values(o, last);
  kjit_type type = concrete_float(s, &second);
  KJ_PUSH(s->arena, &values, kt_convert(s, order, KJIT_I32, o->location));
  KJ_PUSH(s->arena, &values, kt_convert(s, o->values.items[1], type, o->location));
  kt_operands typed = with_values(o, values);
  return kt_new_builtin(s, &typed, type);
}

kt_expr *kt_rule_ldexp(kt_scope *s, const kt_operands *o)
{
  kt_expr *exponent = o->values.items[1];
  if (!kt_is_integer(s->c, exponent->type))
    fail_operand(s, o, exponent, "an integer as its second argument");
  kt_operands first = *o;
  first.values.count = 1;
  kjit_type type = concrete_float(s, &first);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, kt_convert(s, o->values.items[0], type, o->location));
  KJ_PUSH(s->arena, &values, kt_convert(s, exponent, KJIT_I32, o->location));
  kt_operands typed = with_values(o, values);
  return kt_new_builtin(s, &typed, type);
}

static kjit_type pair_type(kt_scope *s, kjit_type a, kjit_type b)
{
  kjit_type items[] = { a, b };
  kjit_type type = ki_intern_tuple(s->c->types, items, 2);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kt_expr *kt_rule_frexp(kt_scope *s, const kt_operands *o)
{
  kjit_type type = concrete_float(s, o);
  return apply_float(s, o, type, pair_type(s, type, KJIT_I32));
}

kt_expr *kt_rule_modf(kt_scope *s, const kt_operands *o)
{
  kjit_type type = concrete_float(s, o);
  return apply_float(s, o, type, pair_type(s, type, type));
}

/* ---- table of the rules ---- */

typedef kt_expr *(*rule)(kt_scope *s, const kt_operands *o);

static const rule rule_table[KJ_BUILTIN_COUNT] = {
#define X(id, name, least, most, rule_name, lower, operation, scope, needs, flags, aliases) \
  kt_rule_##rule_name,
#include "ir/builtins.def"
#undef X
};

static void check_synchronization(kt_scope *s, const kt_operands *o)
{
  bool is_barrier = o->builtin->flags & KJ_BARRIER, is_warp = o->builtin->flags & KJ_WARP;
  if (!is_barrier && !is_warp) return;
  if (s->range_count)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` cannot be used in the body of a grid_range or block_range: its iterations are "
            "independent, and not every thread executes one",
            o->builtin->name);
  if (is_barrier && s->level == KJ_LEVEL_THREAD) {
    s->c->divergent_barrier = o->builtin->name;
    s->c->divergent_location = o->location;
    kt_note_message(s, o->location, KJIT_SEVERITY_WARNING,
                    "`%s` in divergent control flow: all threads of the block must reach it",
                    o->builtin->name);
  }
  if (!s->instance) return;
  s->instance->has_barrier |= is_barrier;
  s->instance->has_warp |= is_warp;
}

/* Returns whether the rule is applied to each lane in a vector. Other rules accept a vector as a
 * whole. */
static bool takes_lanes(const ki_builtin *builtin)
{
  static const rule rules[] = { kt_rule_numeric,    kt_rule_integer,      kt_rule_bit_count,
                                kt_rule_words,      kt_rule_dp4a,         kt_rule_sad,
                                kt_rule_float,      kt_rule_float_test,   kt_rule_float_to_i32,
                                kt_rule_ldexp,      kt_rule_frexp,        kt_rule_modf,
                                kt_rule_bessel,     kt_rule_float_to_i64, kt_rule_select,
                                kt_rule_arg,        kt_rule_conj,         kt_rule_reduce,
                                kt_rule_reduce_int, kt_rule_to_fp8,       kt_rule_from_fp8 };
  for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
    if (rules[i] == rule_table[builtin->id]) return true;
  return false;
}

kt_expr *kt_apply_rule(kt_scope *s, const kt_operands *operands)
{
  check_synchronization(s, operands);
  kt_check_requirement(s, operands);
  kt_expr *date = kt_apply_date_rule(s, operands);
  if (date) return date;
  kt_expr *parts = kt_apply_rule_parts(s, operands, takes_lanes(operands->builtin));
  if (parts) return parts;
  return rule_table[operands->builtin->id](s, operands);
}
