/* Promotion and conversion of types (docs/ir.md, Types and Inference).
 *
 * A weak value is a literal, or an expression tree whose leaves are literals and untyped numbers.
 * It stays a tree until another operand determines its type. This type is then applied to the
 * tree's leaves: `c ? 1 : 0.5` times an f32 is computed in f32. There are three kinds of leaves
 * that are known only at run time. A VAR of weak type is an untyped number from the application. A
 * CONVERT to a weak type is an i64 or f64 value that is treated like a literal. A LOAD is from a
 * constant array whose element type is not known. */
#include <math.h>

#include "typing/infer.h"

ki_type_class kt_class_of(const kt_compilation *c, kjit_type type)
{
  return ki_type(c->types, type)->class_;
}

bool kt_is_integer(const kt_compilation *c, kjit_type type)
{
  ki_type_class class_ = kt_class_of(c, type);
  return type == KJ_WEAK_INT || class_ == KJ_CLASS_SIGNED || class_ == KJ_CLASS_UNSIGNED;
}

bool kt_is_float(const kt_compilation *c, kjit_type type)
{
  return type == KJ_WEAK_FLOAT || kt_class_of(c, type) == KJ_CLASS_FLOAT;
}

bool kt_is_number(const kt_compilation *c, kjit_type type)
{
  return type == KJIT_BOOL || kt_is_integer(c, type) || kt_is_float(c, type);
}

bool kt_is_array(const kt_compilation *c, kjit_type type)
{
  return kt_class_of(c, type) == KJ_CLASS_ARRAY && !kt_is_value_array(c, type);
}

bool kt_is_tuple(const kt_compilation *c, kjit_type type)
{
  return kt_class_of(c, type) == KJ_CLASS_TUPLE;
}

/* ---- common types ---- */

kjit_type kt_promote(kt_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  bool has_weak_float = a == KJ_WEAK_FLOAT || b == KJ_WEAK_FLOAT;
  kjit_type type = ki_common_type(a, b);
  if (has_weak_float && type == KJIT_F64 && a != KJIT_F64 && b != KJIT_F64)
    kt_note_double(s, location);
  return type;
}

kjit_type kt_join(kt_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  kjit_type type = ki_joined_type(a, b);
  return type == a || type == b ? type : kt_promote(s, a, b, location);
}

/* ---- constants ---- */

kt_expr *kt_new_integer(kt_scope *s, kjit_type type, __int128 value, kj_location location)
{
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_CONST, type, location);
  expr->integer = value;
  return expr;
}

kt_expr *kt_new_value(kt_scope *s, ki_value value, kj_location location)
{
  return kt_new_integer(s, value.type, value.integer, location);
}

kt_expr *kt_new_number(kt_scope *s, kjit_type type, double value, kj_location location)
{
  return kt_new_value(s, ki_float_value(type, value), location);
}

static void find_open(void *data, const ki_decl *decl, kt_guess *guess)
{
  bool *is_open = data;
  (void)decl;
  *is_open = *is_open || ki_is_weak(guess->type);
}

/* Returns whether there is a var to which only literals have been assigned so far. Another round of
 * type inference then follows, which can change the types of values that are combined with the
 * var. */
static bool is_open_round(const kt_scope *s)
{
  bool is_open = false;
  if (s->copy) kt_each_guess(s, find_open, &is_open);
  return is_open;
}

static kt_expr *constant_to_float(kt_scope *s, const kt_expr *constant, kjit_type type,
                                  kj_location location)
{
  KJ_ASSERT(constant->kind == KJ_T_CONST);
  ki_value value = kt_value_of(constant), converted = ki_convert_value(value, type);
  bool overflows = isinf(ki_number_of(converted)) && isfinite(ki_number_of(value));
  if (ki_is_weak(value.type) && overflows && !is_open_round(s)) {
    const char *text = value.type == KJ_WEAK_INT ? kt_integer_text(s->arena, value.integer)
                                                 : kj_format(s->arena, "%g", ki_number_of(value));
    kt_fail(s->c, constant->location, KJIT_ERROR_TYPE, "the literal %s cannot be represented as %s",
            text, kt_type_text(s->c, type));
  }
  return kt_new_value(s, converted, location);
}

static kt_expr *constant_to_integer(kt_scope *s, const kt_expr *value, kjit_type type,
                                    kj_location location)
{
  KJ_ASSERT(value->kind == KJ_T_CONST);
  if (value->type == KJ_WEAK_INT && !ki_integer_fits(type, value->integer) && !is_open_round(s))
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE, "the literal %s cannot be represented as %s",
            kt_integer_text(s->arena, value->integer), kt_type_text(s->c, type));
  return kt_new_value(s, ki_convert_value(kt_value_of(value), type), location);
}

static kt_expr *convert_constant(kt_scope *s, const kt_expr *value, kjit_type type,
                                 kj_location location)
{
  if (kt_is_float(s->c, type)) return constant_to_float(s, value, type, location);
  if (type != KJIT_BOOL && type != KJ_WEAK_INT)
    return constant_to_integer(s, value, type, location);
  return kt_new_value(s, ki_convert_value(kt_value_of(value), type), location);
}

/* ---- weak trees ---- */

static kt_expr *new_convert(kt_scope *s, kt_expr *value, kjit_type type, kj_location location)
{
  KJ_ASSERT(!kt_has_parts(s->c, value->type) && !kt_has_parts(s->c, type));
  if (value->type == type) return value;
  kt_expr *expr = kt_new_texpr(s->c, KJ_T_CONVERT, type, location);
  expr->x = value;
  return expr;
}

/* Returns whether the conversion follows Numba's rules and is from a float to an integer of fewer
 * than 32 bits. Numba does not define the result for numbers out of range of the integer type. Its
 * CPU code converts to 32 bits first, so 300.5 becomes 44 as u8. */
static bool is_narrowed(const kt_scope *s, const kt_expr *value, kjit_type type)
{
  return s->has_numba_types && kt_is_float(s->c, value->type) && type != KJIT_BOOL &&
         kt_is_integer(s->c, type) && ki_type(s->c->types, type)->size_bytes < sizeof(int32_t);
}

/* Returns whether the operator or built-in does not exist for floats or has another meaning for
 * them. */
static bool is_integer_only(const kt_expr *e)
{
  if (e->kind == KJ_T_BUILTIN)
    return e->builtin->id != KJ_BUILTIN_MIN && e->builtin->id != KJ_BUILTIN_MAX &&
           e->builtin->id != KJ_BUILTIN_ABS;
  if (e->kind == KJ_T_UNARY) return e->op == KJIT_OP_INVERT;
  if (e->kind != KJ_T_BINARY) return false;
  return e->op != KJIT_OP_ADD && e->op != KJIT_OP_SUB && e->op != KJIT_OP_MUL &&
         e->op != KJIT_OP_POW;
}

static bool is_operation(const kt_expr *e)
{
  return e->kind == KJ_T_UNARY || e->kind == KJ_T_BINARY || e->kind == KJ_T_BUILTIN;
}

static kt_expr *load_weak(kt_scope *s, const kt_expr *e, kjit_type type)
{
  KJ_ASSERT(e->kind == KJ_T_LOAD && kt_weak_constant(s, e->x));
  kt_expr *load = kt_new_texpr(s->c, KJ_T_LOAD, type, e->location);
  load->x = kt_make_constant_array(s, kt_weak_constant(s, e->x), type, e->x->location);
  load->args = e->args;
  return load;
}

static kt_expr *give_type(kt_scope *s, kt_expr *e, kjit_type type);

/* Marks a conversion of an untyped number to an integer type, so that the launch checks that the
 * value fits (number_limits.c). */
static kt_expr *demand_fit(const kt_scope *s, kt_expr *e)
{
  bool is_typed = e->type != KJIT_BOOL && !ki_is_weak(e->type) && kt_is_integer(s->c, e->type);
  bool is_made = e->kind == KJ_T_CONVERT || e->kind == KJ_T_BINARY || e->kind == KJ_T_UNARY;
  if (is_typed && is_made && !s->is_cast && !s->has_numba_types) e->must_fit = true;
  return e;
}

static kt_expr *give_operands_type(kt_scope *s, const kt_expr *e, kjit_type type)
{
  KJ_ASSERT(is_operation(e));
  if (e->kind == KJ_T_BINARY && e->op == KJIT_OP_POW)
    return kt_make_binary(s, KJIT_OP_POW, kt_convert(s, e->x, type, e->location), e->y,
                          e->location);
  kt_expr *typed = kt_new_texpr(s->c, e->kind, type, e->location);
  typed->op = e->op;
  typed->builtin = e->builtin;
  if (e->x) typed->x = kt_convert(s, e->x, type, e->location);
  if (e->y) typed->y = kt_convert(s, e->y, type, e->location);
  for (size_t i = 0; i < e->args.count; i++)
    KJ_PUSH(s->arena, &typed->args, kt_convert(s, e->args.items[i], type, e->location));
  return typed;
}

/* Converts a weak tree, which is not a constant, to the type that has been determined for it. */
static kt_expr *give_type(kt_scope *s, kt_expr *e, kjit_type type)
{
  KJ_ASSERT(ki_is_weak(e->type) && !ki_is_weak(type) && e->kind != KJ_T_CONST);
  bool to_float = kt_is_float(s->c, type), is_weak_float = e->type == KJ_WEAK_FLOAT;
  if (is_weak_float && !to_float)
    return new_convert(s, give_type(s, e, KJIT_F64), type, e->location);
  if (is_operation(e)) {
    bool needs_integer = to_float && !is_weak_float && is_integer_only(e);
    bool is_small = !to_float && (type == KJIT_BOOL || ki_type(s->c->types, type)->size_bytes < 4);
    if (needs_integer || is_small)
      return demand_fit(s, new_convert(s, give_type(s, e, KJIT_I32), type, e->location));
    return demand_fit(s, give_operands_type(s, e, type));
  }
  if (e->kind == KJ_T_COND) return kt_give_arms_type(s, e, type);
  if (e->kind == KJ_T_LOAD && type != KJIT_BOOL) return load_weak(s, e, type);
  if (e->kind == KJ_T_LOAD) return new_convert(s, load_weak(s, e, KJIT_I64), type, e->location);
  if (e->kind == KJ_T_CONVERT && e->x->type == type) return e->x;
  bool is_kept = e->kind == KJ_T_CONVERT && e->x->kind == KJ_T_VAR;
  if (is_kept) return demand_fit(s, new_convert(s, e->x, type, e->location));
  if (e->kind == KJ_T_CONVERT) return kt_convert(s, e->x, type, e->location);
  return demand_fit(s, new_convert(s, e, type, e->location));
}

/* ---- conversion ---- */

kt_expr *kt_convert(kt_scope *s, kt_expr *value, kjit_type type, kj_location location)
{
  if (value->type == type) return value;
  if (kt_has_parts(s->c, type) || kt_has_parts(s->c, value->type))
    return kt_convert_parts(s, value, type, location);
  if (is_narrowed(s, value, type)) value = kt_convert(s, value, KJIT_I32, location);
  if (value->kind == KJ_T_CONST) return convert_constant(s, value, type, location);
  if (!kt_is_number(s->c, value->type)) {
    const char *text = kt_type_text(s->c, value->type);
    kt_fail_number(s->c, value->location, value->type, "expected a number, got %s%s", text,
                   kt_is_array(s->c, value->type) ? "; index it" : "");
  }
  /* a weak integer in a tree of weak floats stays an integer until the tree type is known */
  if (ki_is_weak(type)) return value;
  return ki_is_weak(value->type) ? give_type(s, value, type)
                                 : new_convert(s, value, type, location);
}

/* Returns whether the array has rank 0 and its element is a struct. Such an array can be stored
 * like the struct. */
static bool is_only_element(const kt_scope *s, kjit_type array, kjit_type element)
{
  const ki_type_info *info = ki_type(s->c->types, array);
  return kt_is_struct(s->c, element) && kt_is_array(s->c, array) && info->rank == 0 &&
         info->element == element;
}

/* Describes the missing indices for the error message if an array is used where an element is
 * expected. */
static const char *missing_indices(const kt_scope *s, kjit_type value, kjit_type type)
{
  const ki_type_info *info = ki_type(s->c->types, value);
  if (!kt_is_array(s->c, value) || kt_is_array(s->c, type) || !info->rank) return "";
  if (info->rank == 1) return "; an index is missing";
  return kj_format(s->c->arena, "; %u indices are missing", (unsigned)info->rank);
}

kt_expr *kt_convert_stored(kt_scope *s, kt_expr *value, kjit_type type, const char *what,
                           kj_location location)
{
  if (value->type == type) return value;
  if (is_only_element(s, value->type, type)) {
    const kt_place only = { .array = value, .type = type, .location = location };
    return kt_load_place(s, &only);
  }
  kt_expr *date = kt_convert_date(s, value, type, location);
  if (date) return date;
  kjit_type from = kt_part_type(s->c, value->type), to = kt_part_type(s->c, type);
  if (!kt_keeps_parts(s->c, value->type, type) || !ki_is_scalar(to) || !kt_is_number(s->c, from))
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "%s has the type %s, but the value is " KJ_PHRASE(VALUE_TYPE,
                                                              KJ_PHRASE_ARGUMENT("%s")) "%s",
            what, kt_type_text(s->c, type), kt_type_text(s->c, value->type),
            missing_indices(s, value->type, type));
  bool drops_fraction = kt_is_float(s->c, from) && !kt_is_float(s->c, to) && !s->has_numba_types;
  if (drops_fraction) {
    const char *wanted = kt_type_text(s->c, type);
    const char *given = value->type == KJ_WEAK_FLOAT ? "a float" : kt_type_text(s->c, value->type);
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "%s has the type %s, but the value is %s, which is not converted implicitly: "
            "write %s(...)",
            what, wanted, given, wanted);
  }
  return kt_convert(s, value, type, location);
}

/* ---- untyped integers that can need more than 32 bits ---- */

kjit_type kt_wider_type(kjit_type x, kjit_type y) { return x == KJIT_U64 || y == KJIT_ANY ? x : y; }

kjit_type kt_wide_type(const kt_expr *value)
{
  if (value->type != KJ_WEAK_INT) return KJIT_ANY;
  if (value->kind == KJ_T_CONST)
    return ki_integer_fits(KJIT_I32, value->integer) ? KJIT_ANY : KJIT_I64;
  if (value->kind == KJ_T_CONVERT)
    return value->x->kind == KJ_T_VAR ? value->x->var->wide : KJIT_ANY;
  bool has_operands = is_operation(value) || value->kind == KJ_T_COND;
  kjit_type wide = KJIT_ANY;
  if (!has_operands) return wide;
  if (value->x) wide = kt_wider_type(wide, kt_wide_type(value->x));
  if (value->y) wide = kt_wider_type(wide, kt_wide_type(value->y));
  if (value->z) wide = kt_wider_type(wide, kt_wide_type(value->z));
  for (size_t i = 0; i < value->args.count; i++)
    wide = kt_wider_type(wide, kt_wide_type(value->args.items[i]));
  return wide;
}

kjit_type kt_carrier_of(kjit_type weak, kjit_type wide)
{
  KJ_ASSERT(ki_is_weak(weak));
  if (weak == KJ_WEAK_FLOAT) return KJIT_F64;
  return wide == KJIT_U64 ? KJIT_U64 : KJIT_I64;
}

kt_expr *kt_make_weak(kt_scope *s, kt_expr *carrier, kjit_type weak, kjit_type wide)
{
  KJ_ASSERT(carrier->type == kt_carrier_of(weak, wide));
  kt_expr *value = kt_new_texpr(s->c, KJ_T_CONVERT, weak, carrier->location);
  value->x = carrier;
  if (carrier->kind == KJ_T_VAR) carrier->var->wide = wide;
  return value;
}

/* ---- weak values whose type no operand determines ---- */

static kjit_type concrete_scalar(const kt_expr *value)
{
  KJ_ASSERT(ki_is_weak(value->type));
  if (value->type == KJ_WEAK_FLOAT) return KJIT_F64;
  kjit_type wide = kt_wide_type(value);
  return wide != KJIT_ANY ? wide : KJIT_I32;
}

static kt_expr *make_concrete_tuple(kt_scope *s, kt_expr *value)
{
  /* the value is the result of a call, whose items already have types */
  if (value->kind != KJ_T_TUPLE) return value;
  kt_exprs items = { 0 };
  for (size_t i = 0; i < value->args.count; i++)
    KJ_PUSH(s->arena, &items, kt_make_concrete(s, value->args.items[i]));
  return kt_make_tuple(s, &items, value->location);
}

static kt_expr *make_concrete_array(kt_scope *s, kt_expr *value)
{
  const kt_constant *constant = kt_weak_constant(s, value);
  if (!constant) return value;
  kjit_type element = s->has_numba_types && constant->element == KJ_WEAK_INT
                        ? KJIT_I64
                        : kt_concrete_element(constant);
  return kt_make_constant_array(s, constant, element, value->location);
}

kt_expr *kt_make_concrete(kt_scope *s, kt_expr *value)
{
  if (kt_is_tuple(s->c, value->type)) return make_concrete_tuple(s, value);
  if (kt_is_array(s->c, value->type)) return make_concrete_array(s, value);
  if (!ki_is_weak(value->type)) return value;
  if (s->has_numba_types)
    return kt_convert(s, value, kt_numba_literal_type(value), value->location);
  if (value->type == KJ_WEAK_FLOAT) kt_note_double(s, value->location);
  return kt_convert(s, value, concrete_scalar(value), value->location);
}

kjit_type kt_concrete_type(const kt_expr *value)
{
  return ki_is_weak(value->type) ? concrete_scalar(value) : value->type;
}
