/* Promotion and conversion: docs/ir.md, Types and Inference.
 *
 * A weak value is a literal, or a tree whose leaves are literals and numbers without a type of
 * their own. It stays a tree until it meets a type, which then goes down to its leaves: `c ? 1 :
 * 0.5` times an f32 is computed in f32. Leaves that are only known at run time: a VAR of weak type
 * (a plain number of the host), a CONVERT to a weak type (a value of i64 or f64 that counts as a
 * literal), a LOAD from a constant array whose elements have met no type. */
#include <math.h>

#include "typing/infer.h"

kj_type_class kj_class_of(const kj_compilation *c, kjit_type type)
{
  return kj_type(c->types, type)->class_;
}

bool kj_is_integer(const kj_compilation *c, kjit_type type)
{
  kj_type_class class_ = kj_class_of(c, type);
  return type == KJ_WEAK_INT || class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED;
}

bool kj_is_float(const kj_compilation *c, kjit_type type)
{
  return type == KJ_WEAK_FLOAT || kj_class_of(c, type) == KJ_CLASS_FLOAT;
}

bool kj_is_number(const kj_compilation *c, kjit_type type)
{
  return type == KJIT_BOOL || kj_is_integer(c, type) || kj_is_float(c, type);
}

bool kj_is_array(const kj_compilation *c, kjit_type type)
{
  return kj_class_of(c, type) == KJ_CLASS_ARRAY && !kj_is_value_array(c, type);
}

bool kj_is_tuple(const kj_compilation *c, kjit_type type)
{
  return kj_class_of(c, type) == KJ_CLASS_TUPLE;
}

/* ---- common types ---- */

static uint32_t size_of(const kj_compilation *c, kjit_type type)
{
  return kj_type(c->types, type)->size_bytes;
}

kjit_type kj_promote(kj_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  bool has_weak_float = a == KJ_WEAK_FLOAT || b == KJ_WEAK_FLOAT;
  kjit_type type = kj_common_type(a, b);
  if (has_weak_float && type == KJIT_F64 && a != KJIT_F64 && b != KJIT_F64)
    kj_note_double(s, location);
  return type;
}

kjit_type kj_join(kj_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  kjit_type type = kj_joined_type(a, b);
  return type == a || type == b ? type : kj_promote(s, a, b, location);
}

/* ---- constants ---- */

kj_texpr *kj_new_integer(kj_scope *s, kjit_type type, __int128 value, kj_location location)
{
  kj_texpr *expr = kj_new_texpr(s->c, KJ_T_CONST, type, location);
  expr->integer = value;
  return expr;
}

kj_texpr *kj_new_value(kj_scope *s, kj_value value, kj_location location)
{
  return kj_new_integer(s, value.type, value.integer, location);
}

kj_texpr *kj_new_number(kj_scope *s, kjit_type type, double value, kj_location location)
{
  return kj_new_value(s, kj_float_value(type, value), location);
}

static kj_texpr *constant_to_float(kj_scope *s, const kj_texpr *constant, kjit_type type,
                                   kj_location location)
{
  kj_value value = kj_value_of(constant), converted = kj_convert_value(value, type);
  bool overflows = isinf(kj_number_of(converted)) && isfinite(kj_number_of(value));
  if (kj_is_weak(value.type) && overflows) {
    const char *text = value.type == KJ_WEAK_INT ? kj_integer_text(s->arena, value.integer)
                                                 : kj_format(s->arena, "%g", kj_number_of(value));
    kj_fail(s->c, constant->location, KJIT_ERROR_TYPE, "the literal %s does not fit %s", text,
            kj_type_text(s->c, type));
  }
  return kj_new_value(s, converted, location);
}

/* Whether some var has met nothing but literals so far: then this round is not the last, and what
 * meets the var may have another type in the next. */
static bool is_open_round(const kj_scope *s)
{
  for (size_t i = 0; s->guesses && i < s->function->locals.count; i++)
    if (kj_is_weak(s->guesses[s->function->locals.items[i]->index].type)) return true;
  return false;
}

static kj_texpr *constant_to_integer(kj_scope *s, const kj_texpr *value, kjit_type type,
                                     kj_location location)
{
  if (value->type == KJ_WEAK_INT && !kj_integer_fits(type, value->integer) && !is_open_round(s))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "the literal %s does not fit %s",
            kj_integer_text(s->arena, value->integer), kj_type_text(s->c, type));
  return kj_new_value(s, kj_convert_value(kj_value_of(value), type), location);
}

static kj_texpr *convert_constant(kj_scope *s, const kj_texpr *value, kjit_type type,
                                  kj_location location)
{
  if (kj_is_float(s->c, type)) return constant_to_float(s, value, type, location);
  if (type != KJIT_BOOL && type != KJ_WEAK_INT)
    return constant_to_integer(s, value, type, location);
  return kj_new_value(s, kj_convert_value(kj_value_of(value), type), location);
}

/* ---- weak trees ---- */

static kj_texpr *new_convert(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  if (value->type == type) return value;
  kj_texpr *expr = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
  expr->x = value;
  return expr;
}

/* Operators and built-ins that floats lack, or that give something else on floats. */
static bool is_integer_only(const kj_texpr *e)
{
  if (e->kind == KJ_T_BUILTIN)
    return e->builtin->id != KJ_BUILTIN_MIN && e->builtin->id != KJ_BUILTIN_MAX &&
           e->builtin->id != KJ_BUILTIN_ABS;
  if (e->kind == KJ_T_UNARY) return e->op == KJIT_INVERT;
  if (e->kind != KJ_T_BINARY) return false;
  return e->op != KJIT_ADD && e->op != KJIT_SUB && e->op != KJIT_MUL && e->op != KJIT_POW;
}

static bool is_operation(const kj_texpr *e)
{
  return e->kind == KJ_T_UNARY || e->kind == KJ_T_BINARY || e->kind == KJ_T_BUILTIN;
}

static kj_texpr *load_weak(kj_scope *s, const kj_texpr *e, kjit_type type)
{
  kj_texpr *load = kj_new_texpr(s->c, KJ_T_LOAD, type, e->location);
  load->x = kj_make_constant_array(s, kj_weak_constant(s, e->x), type, e->x->location);
  load->args = e->args;
  return load;
}

static kj_texpr *give_type(kj_scope *s, kj_texpr *e, kjit_type type);

kj_texpr *kj_make_exponent(kj_scope *s, kj_texpr *exponent)
{
  exponent = kj_make_concrete(s, exponent);
  return kj_convert(s, exponent, kj_arithmetic_type(exponent->type), exponent->location);
}

static kj_texpr *give_operands_type(kj_scope *s, const kj_texpr *e, kjit_type type)
{
  bool is_power = e->kind == KJ_T_BINARY && e->op == KJIT_POW && kj_is_float(s->c, type) &&
                  !kj_is_float(s->c, e->y->type);
  kj_texpr *typed = kj_new_texpr(s->c, e->kind, type, e->location);
  typed->op = e->op;
  typed->builtin = e->builtin;
  if (e->x) typed->x = kj_convert(s, e->x, type, e->location);
  if (e->y)
    typed->y = is_power ? kj_make_exponent(s, e->y) : kj_convert(s, e->y, type, e->location);
  for (size_t i = 0; i < e->args.count; i++)
    KJ_PUSH(s->arena, &typed->args, kj_convert(s, e->args.items[i], type, e->location));
  return typed;
}

static kj_texpr *give_arms_type(kj_scope *s, const kj_texpr *e, kjit_type type)
{
  kj_texpr *typed = kj_new_texpr(s->c, KJ_T_COND, type, e->location);
  typed->x = e->x;
  typed->y = kj_convert(s, e->y, type, e->location);
  typed->z = kj_convert(s, e->z, type, e->location);
  return typed;
}

/* A weak tree, not a constant, with the type that it has met. */
static kj_texpr *give_type(kj_scope *s, kj_texpr *e, kjit_type type)
{
  bool to_float = kj_is_float(s->c, type), is_weak_float = e->type == KJ_WEAK_FLOAT;
  if (is_weak_float && !to_float)
    return new_convert(s, give_type(s, e, KJIT_F64), type, e->location);
  if (is_operation(e)) {
    bool needs_integer = to_float && !is_weak_float && is_integer_only(e);
    bool is_small = !to_float && (type == KJIT_BOOL || size_of(s->c, type) < 4);
    if (needs_integer || is_small)
      return new_convert(s, give_type(s, e, KJIT_I32), type, e->location);
    return give_operands_type(s, e, type);
  }
  if (e->kind == KJ_T_COND) return give_arms_type(s, e, type);
  if (e->kind == KJ_T_LOAD && type != KJIT_BOOL) return load_weak(s, e, type);
  if (e->kind == KJ_T_LOAD) return new_convert(s, load_weak(s, e, KJIT_I64), type, e->location);
  if (e->kind == KJ_T_CONVERT) return kj_convert(s, e->x, type, e->location);
  return new_convert(s, e, type, e->location);
}

/* ---- conversion ---- */

kj_texpr *kj_convert(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  if (value->type == type) return value;
  if (kj_has_parts(s->c, type) || kj_has_parts(s->c, value->type))
    return kj_convert_parts(s, value, type, location);
  if (value->kind == KJ_T_CONST) return convert_constant(s, value, type, location);
  if (!kj_is_number(s->c, value->type)) {
    const char *text = kj_type_text(s->c, value->type);
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "expected a number, got %s%s", text,
            kj_is_array(s->c, value->type) ? "; index it" : "");
  }
  /* A weak integer among weak floats keeps its own type until the whole meets one. */
  if (kj_is_weak(type)) return value;
  return kj_is_weak(value->type) ? give_type(s, value, type)
                                 : new_convert(s, value, type, location);
}

kj_texpr *kj_convert_stored(kj_scope *s, kj_texpr *value, kjit_type type, const char *what,
                            kj_location location)
{
  if (value->type == type) return value;
  kjit_type from = kj_part_type(s->c, value->type), to = kj_part_type(s->c, type);
  if (!kj_keeps_parts(s->c, value->type, type) || !kj_is_scalar(to) || !kj_is_number(s->c, from))
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "%s has type %s; the value is %s", what,
            kj_type_text(s->c, type), kj_type_text(s->c, value->type));
  bool drops_fraction = kj_is_float(s->c, from) && !kj_is_float(s->c, to);
  if (drops_fraction) {
    const char *wanted = kj_type_text(s->c, type);
    const char *given = value->type == KJ_WEAK_FLOAT ? "a float" : kj_type_text(s->c, value->type);
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "%s has type %s and the value is %s, which is not converted implicitly: write %s(...)",
            what, wanted, given, wanted);
  }
  return kj_convert(s, value, type, location);
}

/* ---- values that meet no type ---- */

static kjit_type concrete_scalar(const kj_texpr *value)
{
  if (value->type == KJ_WEAK_FLOAT) return KJIT_F64;
  bool is_wide = value->kind == KJ_T_CONST && !kj_integer_fits(KJIT_I32, value->integer);
  return is_wide ? KJIT_I64 : KJIT_I32;
}

static kj_texpr *make_concrete_tuple(kj_scope *s, kj_texpr *value)
{
  if (value->kind != KJ_T_TUPLE) return value; /* the result of a call: concrete already */
  kj_texprs items = { 0 };
  for (size_t i = 0; i < value->args.count; i++)
    KJ_PUSH(s->arena, &items, kj_make_concrete(s, value->args.items[i]));
  return kj_make_tuple(s, &items, value->location);
}

static kj_texpr *make_concrete_array(kj_scope *s, kj_texpr *value)
{
  const kj_constant *constant = kj_weak_constant(s, value);
  if (!constant) return value;
  return kj_make_constant_array(s, constant, kj_concrete_element(constant), value->location);
}

kj_texpr *kj_make_concrete(kj_scope *s, kj_texpr *value)
{
  if (kj_is_tuple(s->c, value->type)) return make_concrete_tuple(s, value);
  if (kj_is_array(s->c, value->type)) return make_concrete_array(s, value);
  if (!kj_is_weak(value->type)) return value;
  if (value->type == KJ_WEAK_FLOAT) kj_note_double(s, value->location);
  return kj_convert(s, value, concrete_scalar(value), value->location);
}

kjit_type kj_concrete_type(const kj_texpr *value)
{
  return kj_is_weak(value->type) ? concrete_scalar(value) : value->type;
}
