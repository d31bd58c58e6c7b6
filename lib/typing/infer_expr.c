/* Inference of expressions: conditions, tuples, names; what a print prints. Every value comes back
 * with its type; literals stay weak until they meet one (promote.c). */
#include "typing/infer.h"

/* Inference of expressions: conditions, tuples, names. Every value comes back with its type;
 * literals stay weak until they meet one (promote.c). */

/* ---- what is evaluated only where needed ---- */

/* An expression with its own list for the statements that it needs before it. */
typedef struct part {
  kj_tstmts stmts;
  kj_texpr *value;
} part;

static part infer_part(kj_scope *s, const kj_expr *expr, bool is_condition)
{
  part p = { 0 };
  kj_tstmts *out = s->out;
  s->out = &p.stmts;
  p.value = is_condition ? kj_infer_condition(s, expr) : kj_infer_expr(s, expr);
  s->out = out;
  return p;
}

static kj_tstmt *new_if(kj_scope *s, kj_texpr *condition, kj_location location)
{
  kj_tstmt *stmt = kj_new_tstmt(s->c, KJ_TS_IF, location);
  stmt->value = condition;
  return stmt;
}

static kj_tstmt *new_assign(kj_scope *s, kj_tvar *var, kj_texpr *value)
{
  kj_tstmt *stmt = kj_new_tstmt(s->c, KJ_TS_ASSIGN, value->location);
  stmt->var = var;
  stmt->value = value;
  return stmt;
}

static kj_tvar *add_temporary(kj_scope *s, kjit_type type, kj_location location, kj_level level)
{
  return kj_add_variable(s, KJ_V_VAR, kj_format(s->arena, "_%u", s->temporary_count++), type,
                         location, level);
}

static kj_texpr *make_logic(kj_scope *s, const kj_expr *expr, kj_texpr *x, part *y)
{
  if (y->stmts.count == 0) {
    kj_texpr *logic = kj_new_texpr(s->c, KJ_T_LOGIC, KJIT_BOOL, expr->location);
    logic->op = expr->op;
    logic->x = x;
    logic->y = y->value;
    return logic;
  }
  kj_tvar *var = add_temporary(s, KJIT_BOOL, expr->location,
                               kj_higher_level(kj_level_of(s, x), kj_level_of(s, y->value)));
  kj_emit_assign(s, var, x, expr->location);
  kj_texpr *test = kj_make_var(s, var, expr->location);
  kj_tstmt *stmt =
    new_if(s, expr->op == KJIT_AND ? test : kj_make_unary(s, KJIT_NOT, test, expr->location),
           expr->location);
  stmt->body = y->stmts;
  KJ_PUSH(s->arena, &stmt->body, new_assign(s, var, y->value));
  kj_emit(s, stmt);
  return kj_make_var(s, var, expr->location);
}

static kj_texpr *infer_logic(kj_scope *s, const kj_expr *expr)
{
  kj_texpr *x = kj_infer_condition(s, expr->x);
  bool decides = expr->op == KJIT_OR; /* the value of the left operand that is the result */
  if (kj_is_constant(x)) return (x->integer != 0) == decides ? x : kj_infer_condition(s, expr->y);
  part y = infer_part(s, expr->y, true);
  return make_logic(s, expr, x, &y);
}

static kj_texpr *give_items_type(kj_scope *s, kj_texpr *value, kjit_type type)
{
  const kj_type_info *info = kj_type(s->c->types, type);
  if (value->type == type) return value;
  value = kj_keep_value(s, value);
  kj_texprs items = { 0 };
  for (uint32_t i = 0; i < info->count; i++)
    KJ_PUSH(s->arena, &items,
            kj_give_type(s, kj_make_item(s, kj_copy_texpr(s, value), i, value->location),
                         info->items[i]));
  return kj_make_tuple(s, &items, value->location);
}

kj_texpr *kj_give_type(kj_scope *s, kj_texpr *value, kjit_type type)
{
  if (kj_is_tuple(s->c, type)) return give_items_type(s, value, type);
  if (kj_is_array(s->c, type) && value->type != type) return kj_give_array_type(s, value, type);
  return value->type == type ? value : kj_convert(s, value, type, value->location);
}

static kjit_type join_tuples(kj_scope *s, const kj_type_info *a, const kj_type_info *b,
                             kj_location location)
{
  if (a->count != b->count) return KJIT_ANY;
  kjit_type *items = KJ_NEW_ARRAY(s->arena, kjit_type, a->count + 1);
  for (uint32_t i = 0; i < a->count; i++) {
    items[i] = kj_join_values(s, a->items[i], b->items[i], location);
    if (items[i] == KJIT_ANY) return KJIT_ANY;
  }
  return kj_intern_tuple(s->c->types, items, a->count);
}

kjit_type kj_join_values(kj_scope *s, kjit_type a, kjit_type b, kj_location location)
{
  if (a == b) return a;
  if (kj_is_number(s->c, a) && kj_is_number(s->c, b)) return kj_join(s, a, b, location);
  if (kj_has_parts(s->c, a) || kj_has_parts(s->c, b)) return kj_promote_parts(s, a, b, location);
  if (kj_is_array(s->c, a) && kj_is_array(s->c, b)) return kj_join_arrays(s, a, b);
  if (kj_is_tuple(s->c, a) && kj_is_tuple(s->c, b))
    return join_tuples(s, kj_type(s->c->types, a), kj_type(s->c->types, b), location);
  return KJIT_ANY;
}

/* Arms that need statements: an `if` that assigns a temporary. */
static kj_texpr *make_cond_statement(kj_scope *s, kj_texpr *condition, part *x, part *y,
                                     kjit_type type, kj_location location)
{
  kjit_type kept = type == KJ_WEAK_INT ? KJIT_I64 : type == KJ_WEAK_FLOAT ? KJIT_F64 : type;
  kj_tvar *var = add_temporary(s, kept, location,
                               kj_higher_level(kj_level_of(s, condition),
                                               kj_higher_level(kj_level_of(s, x->value),
                                                               kj_level_of(s, y->value))));
  kj_tstmt *stmt = new_if(s, condition, location);
  stmt->body = x->stmts;
  stmt->otherwise = y->stmts;
  KJ_PUSH(s->arena, &stmt->body, new_assign(s, var, kj_give_type(s, x->value, kept)));
  KJ_PUSH(s->arena, &stmt->otherwise, new_assign(s, var, kj_give_type(s, y->value, kept)));
  kj_emit(s, stmt);
  kj_texpr *value = kj_make_var(s, var, location);
  if (!kj_is_weak(type)) return value;
  kj_texpr *weak = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
  weak->x = value;
  return weak;
}

static kj_texpr *make_cond(kj_scope *s, kj_texpr *condition, part *x, part *y, kj_location location)
{
  bool is_plain = kj_is_number(s->c, x->value->type) && kj_is_number(s->c, y->value->type);
  if (!is_plain) {
    x->value = kj_make_concrete(s, x->value);
    y->value = kj_make_concrete(s, y->value);
  }
  bool is_open = kj_stays_open(s, x->value, y->value);
  kjit_type type =
    is_open ? KJ_WEAK_FLOAT : kj_join_values(s, x->value->type, y->value->type, location);
  if (type == KJIT_ANY)
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "the two values of `?:` have no common type: %s and %s",
            kj_type_text(s->c, x->value->type), kj_type_text(s->c, y->value->type));
  if (x->stmts.count || y->stmts.count)
    return make_cond_statement(s, condition, x, y, type, location);
  kj_texpr *cond = kj_new_texpr(s->c, KJ_T_COND, type, location);
  cond->x = condition;
  cond->y = kj_give_type(s, x->value, type);
  cond->z = kj_give_type(s, y->value, type);
  return cond;
}

kj_texpr *kj_make_cond(kj_scope *s, kj_texpr *condition, kj_texpr *x, kj_texpr *y,
                       kj_location location)
{
  part a = { .value = x }, b = { .value = y };
  return make_cond(s, condition, &a, &b, location);
}

static kj_texpr *infer_cond(kj_scope *s, const kj_expr *expr)
{
  kj_texpr *condition = kj_infer_condition(s, expr->x);
  if (kj_is_constant(condition)) return kj_infer_expr(s, condition->integer ? expr->y : expr->z);
  part x = infer_part(s, expr->y, false), y = infer_part(s, expr->z, false);
  return make_cond(s, condition, &x, &y, expr->location);
}

/* ---- lists ---- */

/* Statements that a later operand needed were added before it: the earlier operands are evaluated
 * first. */
static void settle(kj_scope *s, kj_texprs *values, size_t mark)
{
  for (size_t i = 0; i < values->count; i++) {
    size_t before = s->out->count;
    values->items[i] = kj_keep_value_at(s, values->items[i], mark);
    mark += s->out->count - before;
  }
}

void kj_infer_list(kj_scope *s, const kj_exprs *exprs, kj_texprs *values)
{
  for (size_t i = 0; i < exprs->count; i++) {
    size_t mark = s->out->count;
    kj_texpr *value = kj_infer_expr(s, exprs->items[i]);
    if (s->out->count > mark) settle(s, values, mark);
    KJ_PUSH(s->arena, values, value);
  }
}

static kj_texpr *infer_tuple(kj_scope *s, const kj_expr *expr)
{
  kj_texprs items = { 0 };
  kj_infer_list(s, &expr->args, &items);
  return kj_make_tuple(s, &items, expr->location);
}

/* ---- the rest ---- */

static kj_texpr *infer_type_compare(kj_scope *s, const kj_expr *expr)
{
  kjit_type x, y;
  if (expr->op != KJIT_EQ && expr->op != KJIT_NE) return NULL;
  if (!kj_as_type(s, expr->x, &x)) return NULL;
  if (!kj_as_type(s, expr->y, &y))
    kj_fail(s->c, expr->y->location, KJIT_ERROR_TYPE,
            "a type is compared with a type: `dtype(x) == f32`");
  return kj_new_integer(s, KJIT_BOOL, (x == y) == (expr->op == KJIT_EQ), expr->location);
}

static kj_texpr *infer_binary(kj_scope *s, const kj_expr *expr)
{
  if (kj_op_table[expr->op].class_ == KJ_OP_LOGIC) return infer_logic(s, expr);
  kj_texpr *types = infer_type_compare(s, expr);
  if (types) return types;
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, kj_infer_expr(s, expr->x));
  size_t mark = s->out->count;
  kj_texpr *y = kj_infer_expr(s, expr->y);
  if (s->out->count > mark) settle(s, &values, mark);
  return kj_make_binary(s, expr->op, values.items[0], y, expr->location);
}

static kj_texpr *infer_name(kj_scope *s, const kj_expr *expr)
{
  const kj_decl *decl = expr->decl;
  if (decl->kind == KJ_DECL_CONST) return kj_make_constant(s, decl, expr->location);
  if (decl->kind == KJ_DECL_FUNCTION)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is a function: call it, or hand it to a parameter", decl->name);
  if (!s->meanings)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is not known at compile time: only constants can stand here", decl->name);
  const kj_meaning *meaning = &s->meanings[decl->index];
  s->guesses[decl->index].was_read = true;
  if (meaning->kind == KJ_MEANS_VALUE) {
    kj_texpr *copy = kj_copy_texpr(s, meaning->value);
    copy->location = expr->location;
    return copy;
  }
  if (meaning->kind == KJ_MEANS_CALLEE)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "`%s` is a function here: call it, or hand it to a parameter", decl->name);
  if (meaning->kind == KJ_MEANS_NOTHING)
    kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "`%s` has no value here yet", decl->name);
  kj_texpr *var = kj_make_var(s, meaning->var, expr->location);
  if (!meaning->is_scalar) return var;
  kj_texpr *load =
    kj_new_texpr(s->c, KJ_T_LOAD, kj_type(s->c->types, var->type)->element, expr->location);
  load->x = var;
  return load;
}

static kj_texpr *infer_integer(kj_scope *s, const kj_expr *expr, __int128 integer)
{
  if (!kj_is_weak(expr->type) && !kj_integer_fits(expr->type, integer))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "the literal %s does not fit %s",
            kj_integer_text(s->arena, integer), kj_type_text(s->c, expr->type));
  return kj_new_integer(s, expr->type, integer, expr->location);
}

/* The least value of a signed type is a literal too, `-128i8`, although 128 is none. */
static kj_texpr *infer_unary(kj_scope *s, const kj_expr *expr)
{
  bool is_least = expr->op == KJIT_NEG && expr->x->kind == KJ_EXPR_INT &&
                  kj_class_of(s->c, expr->x->type) == KJ_CLASS_SIGNED;
  return is_least ? infer_integer(s, expr->x, -expr->x->integer)
                  : kj_make_unary(s, expr->op, kj_infer_expr(s, expr->x), expr->location);
}

static kj_texpr *infer_kind(kj_scope *s, const kj_expr *expr)
{
  switch (KJ_AMONG(expr->kind)) {
  case KJ_EXPR_INT: return infer_integer(s, expr, expr->integer);
  case KJ_EXPR_FLOAT: return kj_new_number(s, expr->type, expr->number, expr->location);
  case KJ_EXPR_BOOL: return kj_new_integer(s, KJIT_BOOL, expr->integer != 0, expr->location);
  case KJ_EXPR_DECL: return infer_name(s, expr);
  case KJ_EXPR_BUILTIN: return kj_infer_builtin_name(s, expr, expr->builtin, NULL);
  case KJ_EXPR_UNARY: return infer_unary(s, expr);
  case KJ_EXPR_BINARY: return infer_binary(s, expr);
  case KJ_EXPR_COND: return infer_cond(s, expr);
  case KJ_EXPR_CALL: return kj_infer_call(s, expr);
  case KJ_EXPR_INDEX: return kj_infer_index(s, expr);
  case KJ_EXPR_FIELD: return kj_infer_field(s, expr);
  case KJ_EXPR_TUPLE: return infer_tuple(s, expr);
  case KJ_EXPR_STRING:
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "a string is not a value: strings stand in `assert`, `raise` and `print` only");
  case KJ_EXPR_TYPE:
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "a type is not a value: call it to convert, `f32(x)`");
  case KJ_EXPR_SLICE:
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "a slice is no value: it stands in the index of an array, `a[first:stop:step]`");
  default:
    kj_fail(s->c, expr->location, KJIT_ERROR_NAME, "`%s` is not known",
            expr->name ? expr->name : "?");
  }
}

kj_texpr *kj_infer_effect(kj_scope *s, const kj_expr *expr)
{
  kj_count_work(s->inference, expr->location);
  return infer_kind(s, expr);
}

kj_texpr *kj_infer_expr(kj_scope *s, const kj_expr *expr)
{
  kj_texpr *value = kj_infer_effect(s, expr);
  if (value->type == KJIT_VOID)
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "this call gives no value");
  return value;
}

kj_texpr *kj_infer_condition(kj_scope *s, const kj_expr *expr)
{
  return kj_make_condition(s, kj_infer_expr(s, expr));
}

int64_t kj_infer_constant(kj_scope *s, const kj_expr *expr, const char *what)
{
  kj_tstmts ignored = { 0 }, *out = s->out;
  s->out = &ignored;
  kj_texpr *value = kj_infer_expr(s, expr);
  s->out = out;
  if (!kj_is_constant(value))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE,
            "%s must be known at compile time: a literal, a constant, a const parameter, or "
            "arithmetic on them",
            what);
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "%s must be an integer, got %s", what,
            kj_type_text(s->c, value->type));
  if (!kj_integer_fits(KJIT_I64, value->integer))
    kj_fail(s->c, expr->location, KJIT_ERROR_TYPE, "%s is too large", what);
  return (int64_t)value->integer;
}

kjit_type kj_infer_type_of(kj_scope *s, const kj_expr *expr)
{
  kj_tstmts ignored = { 0 }, *out = s->out;
  bool was_quiet = s->is_quiet;
  kj_instance flags = s->instance ? *s->instance : (kj_instance){ 0 };
  s->out = &ignored;
  s->is_quiet = true;
  kj_texpr *value = kj_infer_expr(s, expr);
  kjit_type type = kj_is_scalar(value->type) || kj_is_weak(value->type)
                     ? kj_concrete_type(value)
                     : kj_make_concrete(s, value)->type;
  s->out = out;
  s->is_quiet = was_quiet;
  if (s->instance) {
    s->instance->has_barrier = flags.has_barrier;
    s->instance->has_warp = flags.has_warp;
    s->instance->uses_positions = flags.uses_positions;
  }
  return type;
}

/* Inference of print: what is printed, and the line around it. */

/* Control characters are escaped, so that those that mark values are no user's: see
 * kj_tstmt.message. */
static void append_string(kj_buffer *line, const char *text)
{
  enum { FIRST_PRINTABLE = 32, SHIFT = 64 };
  for (const char *at = text; *at; at++) {
    if ((unsigned char)*at >= FIRST_PRINTABLE) kj_append(line, at, 1);
    else kj_append_format(line, "%c%c", KJ_PRINT_ESCAPE, *at + SHIFT);
  }
}

static const char *make_line(kj_scope *s, const kj_exprs *items)
{
  kj_buffer line = { 0 };
  for (size_t i = 0; i < items->count; i++) {
    if (i) kj_append_text(&line, " ");
    if (items->items[i]->kind == KJ_EXPR_STRING) append_string(&line, items->items[i]->name);
    else kj_append_format(&line, "%c", KJ_PRINT_VALUE);
  }
  return kj_keep_text(s->arena, &line);
}

/* Arrays are references, and a line holds what is known when it is printed. */
static void check_value(kj_scope *s, const kj_texpr *value)
{
  if (!kj_is_array(s->c, value->type)) return;
  kj_fail(s->c, value->location, KJIT_ERROR_TYPE,
          "an array (%s) cannot be printed: print its elements, or its `.shape`",
          kj_type_text(s->c, value->type));
}

/* A literal that is only printed is no f64 arithmetic. */
static kj_texpr *make_printed(kj_scope *s, kj_texpr *value)
{
  if (value->type == KJ_WEAK_FLOAT && kj_is_constant(value))
    return kj_new_value(s, kj_convert_value(kj_value_of(value), KJIT_F64), value->location);
  return kj_make_concrete(s, value);
}

void kj_infer_print(kj_scope *s, const kj_stmt *stmt)
{
  kj_exprs given = { 0 };
  kj_texprs values = { 0 };
  for (size_t i = 0; i < stmt->args.count; i++)
    if (stmt->args.items[i]->kind != KJ_EXPR_STRING) KJ_PUSH(s->arena, &given, stmt->args.items[i]);
  kj_infer_list(s, &given, &values);
  kj_tstmt *print = kj_new_tstmt(s->c, KJ_TS_PRINT, stmt->location);
  for (size_t i = 0; i < values.count; i++) {
    check_value(s, values.items[i]);
    KJ_PUSH(s->arena, &print->indices, make_printed(s, values.items[i]));
  }
  print->message = make_line(s, &stmt->args);
  kj_emit(s, print);
}
