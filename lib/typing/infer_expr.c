/* Type inference of expressions: conditions, tuples, names, and the operands of `print`. Every
 * value has a type. Literals stay weak until another operand determines their type (promote.c). */
#include "typing/infer.h"

/* ---- operands that are evaluated only under a condition ---- */

/* An expression, and the statements that must be executed before it. */
typedef struct part {
  kt_stmts stmts;
  kt_expr *value;
} part;

static part infer_part(kt_scope *s, const ki_expr *expr, bool is_condition)
{
  part p = { 0 };
  kt_stmts *out = s->out;
  s->out = &p.stmts;
  p.value = is_condition ? kt_infer_condition(s, expr) : kt_infer_expr(s, expr);
  s->out = out;
  return p;
}

/* An operand that is evaluated only under a condition. If its type is not known yet in this round,
 * the other operands determine the type of the whole expression, and the arm's value is NULL. */
typedef struct arm {
  const ki_expr *expr;
  bool is_condition;
  part part;
} arm;

static void infer_arm_part(kt_scope *s, void *data)
{
  arm *a = data;
  a->part = infer_part(s, a->expr, a->is_condition);
}

static part infer_arm(kt_scope *s, const ki_expr *expr, bool is_condition)
{
  arm a = { .expr = expr, .is_condition = is_condition };
  if (!s->on_wait) return infer_part(s, expr, is_condition);
  if (!kt_try_without_waiting(s, infer_arm_part, &a)) a.part = (part){ 0 };
  return a.part;
}

static kt_var *add_temporary(kt_scope *s, kjit_type type, kj_location location, kt_level level)
{
  return kt_add_variable(s, KJ_V_VAR, kj_format(s->arena, "_%u", s->temporary_count++), type,
                         location, level);
}

static kt_expr *make_logic(kt_scope *s, const ki_expr *expr, kt_expr *x, part *y)
{
  if (y->stmts.count == 0) {
    kt_expr *logic = kt_new_texpr(s->c, KJ_T_LOGIC, KJIT_BOOL, expr->location);
    logic->op = expr->op;
    logic->x = x;
    logic->y = y->value;
    return logic;
  }
  kt_var *var = add_temporary(s, KJIT_BOOL, expr->location,
                              kt_higher_level(kt_level_of(s, x), kt_level_of(s, y->value)));
  kt_emit_assign(s, var, x, expr->location);
  kt_expr *test = kt_make_var(s, var, expr->location);
  kt_stmt *stmt =
    kt_new_if(s->c,
              expr->op == KJIT_OP_AND ? test : kt_make_unary(s, KJIT_OP_NOT, test, expr->location),
              expr->location);
  stmt->body = y->stmts;
  KJ_PUSH(s->arena, &stmt->body, kt_new_assign(s, var, y->value, y->value->location));
  kt_emit(s, stmt);
  return kt_make_var(s, var, expr->location);
}

static kt_expr *infer_logic(kt_scope *s, const ki_expr *expr)
{
  kt_expr *x = kt_infer_condition(s, expr->x);
  bool decides = expr->op == KJIT_OP_OR; /* the left operand is the result if it has this value */
  if (kt_is_constant(x)) return (x->integer != 0) == decides ? x : kt_infer_condition(s, expr->y);
  part y = infer_arm(s, expr->y, true);
  return y.value ? make_logic(s, expr, x, &y) : x;
}

static kt_expr *give_items_type(kt_scope *s, kt_expr *value, kjit_type type)
{
  const ki_type_info *info = ki_type(s->c->types, type);
  if (value->type == type) return value;
  value = kt_keep_value(s, value);
  kt_exprs items = { 0 };
  for (uint32_t i = 0; i < info->count; i++)
    KJ_PUSH(s->arena, &items,
            kt_give_type(s, kt_make_item(s, kt_copy_texpr(s, value), i, value->location),
                         info->items[i]));
  return kt_make_tuple(s, &items, value->location);
}

kt_expr *kt_give_type(kt_scope *s, kt_expr *value, kjit_type type)
{
  if (kt_is_tuple(s->c, type)) return give_items_type(s, value, type);
  if (kt_is_array(s->c, type) && value->type != type) return kt_give_array_type(s, value, type);
  if (value->type == type) return value;
  kt_expr *date = kt_convert_date(s, value, type, value->location);
  return date ? date : kt_convert(s, value, type, value->location);
}

static kjit_type join_tuples(kt_scope *s, const ki_type_info *a, const ki_type_info *b,
                             kj_location location)
{
  if (a->count != b->count) return KJIT_ANY;
  kjit_type *items = KJ_NEW_ARRAY(s->arena, kjit_type, a->count + 1);
  for (uint32_t i = 0; i < a->count; i++) {
    items[i] = kt_join_values(s, a->items[i], b->items[i], location);
    if (items[i] == KJIT_ANY) return KJIT_ANY;
  }
  return ki_intern_tuple(s->c->types, items, a->count);
}

kjit_type kt_join_values(kt_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  if (a == b) return a;
  kjit_type joined = s->has_numba_types ? kt_join_numba(a, b) : KJIT_ANY;
  if (joined != KJIT_ANY) return joined;
  if (kt_is_number(s->c, a) && kt_is_number(s->c, b)) return kt_join(s, a, b, location);
  if (kt_has_parts(s->c, a) || kt_has_parts(s->c, b)) return kt_promote_parts(s, a, b, location);
  if (kt_is_array(s->c, a) && kt_is_array(s->c, b)) return kt_join_arrays(s, a, b);
  if (kt_is_tuple(s->c, a) && kt_is_tuple(s->c, b))
    return join_tuples(s, ki_type(s->c->types, a), ki_type(s->c->types, b), location);
  return kt_join_dates(s, a, b);
}

/* Makes a conditional expression whose arms need statements: an `if` that assigns to a
 * temporary. */
static kt_expr *make_cond_statement(kt_scope *s, kt_expr *condition, part *x, part *y,
                                    kjit_type type, kj_location location)
{
  kjit_type wide = kt_wider_type(kt_wide_type(x->value), kt_wide_type(y->value));
  kjit_type kept = ki_is_weak(type) ? kt_carrier_of(type, wide) : type;
  kt_var *var = add_temporary(s, kept, location,
                              kt_higher_level(kt_level_of(s, condition),
                                              kt_higher_level(kt_level_of(s, x->value),
                                                              kt_level_of(s, y->value))));
  kt_stmt *stmt = kt_new_if(s->c, condition, location);
  stmt->body = x->stmts;
  stmt->otherwise = y->stmts;
  KJ_PUSH(s->arena, &stmt->body,
          kt_new_assign(s, var, kt_give_type(s, x->value, kept), x->value->location));
  KJ_PUSH(s->arena, &stmt->otherwise,
          kt_new_assign(s, var, kt_give_type(s, y->value, kept), y->value->location));
  kt_emit(s, stmt);
  kt_expr *value = kt_make_var(s, var, location);
  return ki_is_weak(type) ? kt_make_weak(s, value, type, wide) : value;
}

/* Makes a conditional expression and converts both arms to a type. Statements that the conversion
 * needs are part of the arm. */
static kt_expr *make_typed_cond(kt_scope *s, kt_expr *condition, part *x, part *y, kjit_type type,
                                kj_location location)
{
  part *arms[] = { x, y };
  kt_stmts *out = s->out;
  for (size_t i = 0; i < 2; i++) {
    s->out = &arms[i]->stmts;
    arms[i]->value = kt_give_type(s, arms[i]->value, type);
  }
  s->out = out;
  if (x->stmts.count || y->stmts.count)
    return make_cond_statement(s, condition, x, y, type, location);
  kt_expr *cond = kt_new_texpr(s->c, KJ_T_COND, type, location);
  cond->x = condition;
  cond->y = x->value;
  cond->z = y->value;
  return cond;
}

static kt_expr *make_cond(kt_scope *s, kt_expr *condition, part *x, part *y, kj_location location)
{
  bool is_plain = kt_is_number(s->c, x->value->type) && kt_is_number(s->c, y->value->type);
  if (!is_plain) {
    x->value = kt_make_concrete(s, x->value);
    y->value = kt_make_concrete(s, y->value);
  }
  bool is_open = kt_stays_open(s, x->value, y->value);
  kjit_type type =
    is_open ? KJ_WEAK_FLOAT : kt_join_values(s, x->value->type, y->value->type, location);
  if (type == KJIT_ANY)
    kt_fail(s->c, location, KJIT_ERROR_TYPE,
            "the two values of " KJ_PHRASE(CONDITIONAL, "`?:`") " have no common type: %s and %s",
            kt_type_text(s->c, x->value->type), kt_type_text(s->c, y->value->type));
  return make_typed_cond(s, condition, x, y, type, location);
}

kt_expr *kt_give_arms_type(kt_scope *s, const kt_expr *cond, kjit_type type)
{
  part x = { .value = cond->y }, y = { .value = cond->z };
  return make_typed_cond(s, cond->x, &x, &y, type, cond->location);
}

kt_expr *kt_make_cond(kt_scope *s, kt_expr *condition, kt_expr *x, kt_expr *y, kj_location location)
{
  part a = { .value = x }, b = { .value = y };
  return make_cond(s, condition, &a, &b, location);
}

static kt_expr *infer_cond(kt_scope *s, const ki_expr *expr)
{
  kt_expr *condition = kt_infer_condition(s, expr->x);
  if (kt_is_constant(condition)) return kt_infer_expr(s, condition->integer ? expr->y : expr->z);
  part x = infer_arm(s, expr->y, false), y = infer_arm(s, expr->z, false);
  if (!x.value && !y.value) kt_wait_for_type(s, s->waits_for, s->waits_at);
  if (!x.value || !y.value) return x.value ? x.value : y.value;
  return make_cond(s, condition, &x, &y, expr->location);
}

/* ---- lists ---- */

void kt_infer_list(kt_scope *s, const ki_exprs *exprs, kt_exprs *values)
{
  kt_order order = { 0 };
  for (size_t i = 0; i < exprs->count; i++) {
    kt_begin_operand(s, &order);
    kt_expr *value = kt_infer_expr(s, exprs->items[i]);
    kt_end_operand(s, &order, value);
    kt_settle(s, &order, values->items, values->count);
    KJ_PUSH(s->arena, values, value);
  }
}

static kt_expr *infer_tuple(kt_scope *s, const ki_expr *expr)
{
  kt_exprs items = { 0 };
  kt_infer_list(s, &expr->args, &items);
  return kt_make_tuple(s, &items, expr->location);
}

/* ---- other expressions ---- */

static kt_expr *infer_type_compare(kt_scope *s, const ki_expr *expr)
{
  kjit_type x, y;
  if (expr->op != KJIT_OP_EQ && expr->op != KJIT_OP_NE) return NULL;
  if (!kt_as_type(s, expr->x, &x)) return NULL;
  if (!kt_as_type(s, expr->y, &y))
    kt_fail(s->c, expr->y->location, KJIT_ERROR_TYPE,
            "a type can only be compared with a type: `dtype(x) == f32`");
  return kt_new_integer(s, KJIT_BOOL, (x == y) == (expr->op == KJIT_OP_EQ), expr->location);
}

static bool has_values(const kt_callee *callee)
{
  return callee->captured || (callee->derived && has_values(&callee->derived->of));
}

/* Evaluates a comparison of funcs, for example `op == add`, at compile time. Returns NULL for any
 * other comparison. */
static kt_expr *infer_func_compare(kt_scope *s, const ki_expr *expr)
{
  kt_callee x, y;
  if (expr->op != KJIT_OP_EQ && expr->op != KJIT_OP_NE) return NULL;
  if (!kt_as_callee(s, expr->x, &x)) return NULL;
  if (!kt_as_callee(s, expr->y, &y))
    kt_fail(s->c, expr->y->location, KJIT_ERROR_TYPE,
            "a function can only be compared with a function: `op == %s`",
            x.builtin ? x.builtin->name : x.function->decl->name);
  if (has_values(&x) || has_values(&y))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "functions made by `bind_back` cannot be compared, because they hold values");
  bool is_same = kt_equal_callee(&x, &y);
  return kt_new_integer(s, KJIT_BOOL, is_same == (expr->op == KJIT_OP_EQ), expr->location);
}

static kt_expr *infer_binary(kt_scope *s, const ki_expr *expr)
{
  if (ki_op_table[expr->op].class_ == KJ_OP_LOGIC) return infer_logic(s, expr);
  kt_expr *types = infer_type_compare(s, expr);
  if (types) return types;
  kt_expr *funcs = infer_func_compare(s, expr);
  if (funcs) return funcs;
  kt_order order = { 0 };
  kt_begin_operand(s, &order);
  kt_expr *x = kt_infer_expr(s, expr->x);
  kt_end_operand(s, &order, x);
  kt_begin_operand(s, &order);
  kt_expr *y = kt_infer_expr(s, expr->y);
  kt_end_operand(s, &order, y);
  kt_settle(s, &order, &x, 1);
  return kt_make_binary(s, expr->op, x, y, expr->location);
}

static kt_expr *infer_name(kt_scope *s, const ki_expr *expr)
{
  const ki_decl *decl = expr->decl;
  if (decl->kind == KJ_DECL_CONST) return kt_make_constant(s, decl, expr->location);
  if (decl->kind == KJ_DECL_FUNCTION)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is a function: call it, or pass it to a function parameter", decl->name);
  if (!s->meanings)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is not known at compile time: only constants are allowed here", decl->name);
  const kt_meaning *meaning = &s->meanings[decl->index];
  s->guesses[decl->index].was_read = true;
  if (meaning->kind == KJ_MEANS_VALUE) {
    kt_expr *copy = kt_copy_texpr(s, meaning->value);
    copy->location = expr->location;
    return copy;
  }
  if (meaning->kind == KJ_MEANS_CALLEE)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is a function here: call it, or pass it to a function parameter", decl->name);
  if (meaning->kind == KJ_MEANS_FIELDS) {
    kt_expr *view = kt_view_of_named_fields(s, meaning->fields);
    if (view) return view;
    kt_fail_code(
      s->c, expr->location, KJIT_ERROR_NAME, KJIT_CODE_ARRAY_OF_FIELDS,
      "`%s` is the field `.%s` of an array of structs and cannot be an array, because the struct's "
      "size is not a multiple of the field's size: write the index here, `%s[i]`",
      decl->name, meaning->fields->name, decl->name);
  }
  bool is_unknown = meaning->kind == KJ_MEANS_UNTYPED ||
                    (meaning->kind == KJ_MEANS_VARIABLE && meaning->var->type == KJIT_ANY);
  if (is_unknown) kt_wait_for_type(s, decl, expr->location);
  /* the name is not declared because its declaration was skipped */
  if (meaning->kind == KJ_MEANS_NOTHING && s->waits_for)
    kt_wait_for_type(s, s->waits_for, s->waits_at);
  if (meaning->kind == KJ_MEANS_NOTHING)
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "`%s` has no value yet at this point",
            decl->name);
  kt_check_set(s, decl, expr->location);
  kt_expr *var = kt_make_var(s, meaning->var, expr->location);
  if (!meaning->is_scalar) return var;
  kt_expr *load =
    kt_new_texpr(s->c, KJ_T_LOAD, ki_type(s->c->types, var->type)->element, expr->location);
  load->x = var;
  return load;
}

static kt_expr *infer_integer(kt_scope *s, const ki_expr *expr, __int128 integer)
{
  if (!ki_is_weak(expr->type) && !ki_integer_fits(expr->type, integer))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "the literal %s does not fit %s",
            kt_integer_text(s->arena, integer), kt_type_text(s->c, expr->type));
  return kt_new_integer(s, expr->type, integer, expr->location);
}

/* Infers a unary operator. `-128i8` is a literal although `128i8` is not. */
static kt_expr *infer_unary(kt_scope *s, const ki_expr *expr)
{
  bool is_least = expr->op == KJIT_OP_NEG && expr->x->kind == KJ_EXPR_INT &&
                  (kt_class_of(s->c, expr->x->type) == KJ_CLASS_SIGNED ||
                   (s->has_numba_types && ki_is_weak(expr->x->type)));
  return is_least ? infer_integer(s, expr->x, -expr->x->integer)
                  : kt_make_unary(s, expr->op, kt_infer_expr(s, expr->x), expr->location);
}

static kt_expr *infer_kind(kt_scope *s, const ki_expr *expr)
{
  switch (KJ_AMONG(expr->kind)) {
  case KJ_EXPR_INT: return infer_integer(s, expr, expr->integer);
  case KJ_EXPR_FLOAT: return kt_new_number(s, expr->type, expr->number, expr->location);
  case KJ_EXPR_BOOL: return kt_new_integer(s, KJIT_BOOL, expr->integer != 0, expr->location);
  case KJ_EXPR_DECL: return infer_name(s, expr);
  case KJ_EXPR_BUILTIN: return kt_infer_builtin_name(s, expr, expr->builtin, NULL);
  case KJ_EXPR_UNARY: return infer_unary(s, expr);
  case KJ_EXPR_BINARY: return infer_binary(s, expr);
  case KJ_EXPR_COND: return infer_cond(s, expr);
  case KJ_EXPR_CALL: return kt_infer_call(s, expr);
  case KJ_EXPR_INDEX: return kt_infer_index(s, expr);
  case KJ_EXPR_FIELD: return kt_infer_field(s, expr);
  case KJ_EXPR_TUPLE: return infer_tuple(s, expr);
  case KJ_EXPR_STRING:
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "a string is not a value; strings can only be used in " KJ_PHRASE(
              STRING_USES, "`assert`, `raise` and `print`"));
  case KJ_EXPR_TYPE:
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "expected a value, found a type; to convert, write `f32(x)`");
  case KJ_EXPR_SLICE:
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "a slice can only be used as an array index: `a[first:stop:step]`");
  default:
    kt_fail(s->c, expr->location, KJIT_ERROR_NAME, "`%s` is not known",
            expr->name ? expr->name : "?");
  }
}

/* Rejects a pointer in untrusted code (a guest). Guest code cannot create pointers, but the
 * application's funcs can pass or return pointers to guest code. */
static void refuse_pointer(kt_scope *s, const kt_expr *value)
{
  if (!ki_holds_pointer(s->c->types, value->type)) return;
  kt_fail(s->c, value->location, KJIT_ERROR_REFUSED, "guest code must not use pointers: this is %s",
          kt_type_text(s->c, value->type));
}

kt_expr *kt_infer_effect(kt_scope *s, const ki_expr *expr)
{
  kt_count_work(s, expr->location);
  kt_expr *value = infer_kind(s, expr);
  if (s->has_numba_types && ki_is_weak(value->type)) value = kt_make_concrete(s, value);
  if (s->function && s->function->decl->is_guest) refuse_pointer(s, value);
  return value;
}

kt_expr *kt_infer_expr(kt_scope *s, const ki_expr *expr)
{
  kt_expr *value = kt_infer_effect(s, expr);
  if (value->type == KJIT_VOID)
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "this call returns no value");
  return value;
}

kt_expr *kt_infer_condition(kt_scope *s, const ki_expr *expr)
{
  return kt_make_condition(s, kt_infer_expr(s, expr));
}

int64_t kt_infer_constant(kt_scope *s, const ki_expr *expr, const char *what)
{
  kt_stmts ignored = { 0 }, *out = s->out;
  s->out = &ignored;
  kt_expr *value = kt_infer_expr(s, expr);
  s->out = out;
  if (!kt_is_constant(value))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "%s must be known at compile time: a literal, a constant, a const parameter, or "
            "arithmetic on them",
            what);
  if (!kt_is_integer(s->c, value->type))
    kt_fail_number(s->c, expr->location, value->type, "%s must be an integer, got %s", what,
                   kt_type_text(s->c, value->type));
  if (!ki_integer_fits(KJIT_I64, value->integer))
    kt_fail(s->c, expr->location, KJIT_ERROR_TYPE, "%s is too large", what);
  return (int64_t)value->integer;
}

kjit_type kt_infer_type_of(kt_scope *s, const ki_expr *expr)
{
  kt_stmts ignored = { 0 }, *out = s->out;
  bool was_quiet = s->is_quiet;
  kt_instance flags = s->instance ? *s->instance : (kt_instance){ 0 };
  s->out = &ignored;
  s->is_quiet = true;
  kt_expr *value = kt_infer_expr(s, expr);
  kjit_type type = ki_is_scalar(value->type) || ki_is_weak(value->type)
                     ? kt_concrete_type(value)
                     : kt_make_concrete(s, value)->type;
  s->out = out;
  s->is_quiet = was_quiet;
  if (s->instance) {
    s->instance->has_barrier = flags.has_barrier;
    s->instance->has_warp = flags.has_warp;
    s->instance->uses_positions = flags.uses_positions;
  }
  return type;
}

/* ---- print ---- */

/* Appends a string from the source. Control characters are escaped, because some of them mark
 * values (KJ_PRINT_VALUE). */
static void append_string(kj_buffer *line, const char *text)
{
  enum { FIRST_PRINTABLE = 32, SHIFT = 64 };
  for (const char *at = text; *at; at++) {
    if ((unsigned char)*at >= FIRST_PRINTABLE) kj_append(line, at, 1);
    else kj_append_format(line, "%c%c", KJ_PRINT_ESCAPE, *at + SHIFT);
  }
}

static const char *make_line(kt_scope *s, const ki_exprs *items)
{
  kj_buffer line = { 0 };
  for (size_t i = 0; i < items->count; i++) {
    if (i) kj_append_text(&line, " ");
    if (items->items[i]->kind == KJ_EXPR_STRING) append_string(&line, items->items[i]->name);
    else kj_append_format(&line, "%c", KJ_PRINT_VALUE);
  }
  return kj_keep_text(s->arena, &line);
}

/* Rejects arrays: `print` prints values, and an array is a reference. */
static void check_value(kt_scope *s, const kt_expr *value)
{
  if (!kt_holds_array(s->c, value->type)) return;
  kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
          "%s (%s) cannot be printed; print its elements or its `.shape`",
          kt_is_array(s->c, value->type) ? "an array" : "a tuple with an array in it",
          kt_type_text(s->c, value->type));
}

/* Converts a value for printing. If a literal is only printed, it does not cause a remark about f64
 * arithmetic. */
static kt_expr *make_printed(kt_scope *s, kt_expr *value)
{
  if (value->type == KJ_WEAK_FLOAT && kt_is_constant(value))
    return kt_new_value(s, ki_convert_value(kt_value_of(value), KJIT_F64), value->location);
  return kt_make_concrete(s, value);
}

void kt_infer_print(kt_scope *s, const ki_stmt *stmt)
{
  ki_exprs given = { 0 };
  kt_exprs values = { 0 };
  for (size_t i = 0; i < stmt->args.count; i++)
    if (stmt->args.items[i]->kind != KJ_EXPR_STRING) KJ_PUSH(s->arena, &given, stmt->args.items[i]);
  kt_infer_list(s, &given, &values);
  kt_stmt *print = kt_new_tstmt(s->c, KJ_TS_PRINT, stmt->location);
  for (size_t i = 0; i < values.count; i++) {
    check_value(s, values.items[i]);
    KJ_PUSH(s->arena, &print->indices, make_printed(s, values.items[i]));
  }
  print->message = make_line(s, &stmt->args);
  kt_emit(s, print);
}
