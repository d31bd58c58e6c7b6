/* Prints types, expressions and the data of constants as canonical text. */
#include <math.h>
#include <string.h>

#include "ir/arithmetic.h"
#include "ir/number.h"
#include "ir/printer.h"

/* ---- line directives ---- */

/* Returns whether the location is in the source of a front end. */
static bool is_named_place(const ki_printer *p, kj_location at)
{
  return at.line && at.file < p->module->sources.count && !p->module->sources.items[at.file].text;
}

/* Prints a line directive before a token if parsing the printed text would otherwise give the token
 * another location. A token without a location gets the location of the preceding token. */
bool ki_put_place(ki_printer *p, kj_location at, const char *behind)
{
  const kj_location own = { 0 };
  if (!p->has_places || !at.line) return false;
  if (!is_named_place(p, at)) at = own;
  bool is_same_file = at.file == p->place.file;
  if (is_same_file && at.line == p->place.line && at.column == p->place.column) return false;
  if (!at.line && !p->place.line) return false;
  ki_put(p, "@line(");
  if (at.line) kj_append_format(p->buffer, "%u", at.line);
  if (at.line && at.column) kj_append_format(p->buffer, ", %u", at.column);
  if (at.line && (!is_same_file || !p->place.line)) {
    ki_put(p, ", ");
    ki_put_string(p, p->module->sources.items[at.file].name);
  }
  ki_put(p, ")");
  ki_put(p, behind);
  p->place = at;
  return true;
}

/* ---- lists, strings ---- */

void ki_put_list(ki_printer *p, const ki_exprs *list)
{
  for (size_t i = 0; i < list->count; i++) {
    if (i) ki_put(p, ", ");
    ki_put_expr(p, list->items[i], KJ_LEVEL_CONDITIONAL);
  }
}

void ki_put_string(ki_printer *p, const char *text)
{
  ki_put(p, "\"");
  for (; *text; text++) {
    const char *escape = *text == '\n'   ? "\\n"
                         : *text == '\t' ? "\\t"
                         : *text == '"'  ? "\\\""
                         : *text == '\\' ? "\\\\"
                                         : NULL;
    if (escape) ki_put(p, escape);
    else kj_append(p->buffer, text, 1);
  }
  ki_put(p, "\"");
}

/* ---- types ---- */

static void print_dimensions(ki_printer *p, const ki_type_expr *type)
{
  ki_put(p, "[");
  for (uint32_t i = 0; i < type->rank; i++) ki_put(p, i ? ", :" : ":");
  ki_put(p, "]");
  if (type->rank == 0) return;
  if (type->layout == KJIT_LAYOUT_C || (type->layout == KJIT_LAYOUT_F && type->rank == 1))
    ki_put(p, " C");
  else if (type->layout == KJIT_LAYOUT_F) ki_put(p, " F");
}

static void put_struct(const ki_type_printer *printer, kjit_type type)
{
  ki_printer *p = printer->data;
  ki_put(p, ki_printed_struct(p->naming, printer->types, type));
}

static void put_fixed_type(ki_printer *p, kjit_type type)
{
  ki_print_type_by(&(ki_type_printer){ p->module->types, p->buffer, put_struct, p }, type);
}

void ki_put_type(ki_printer *p, const ki_type_expr *type)
{
  if (type->read_only && type->kind != KJ_TYPE_FIXED) ki_put(p, "const ");
  switch (type->kind) {
  case KJ_TYPE_FIXED: put_fixed_type(p, type->type); break;
  case KJ_TYPE_NAMED: ki_put(p, type->name); break;
  case KJ_TYPE_PARAMETER: ki_put(p, ki_printed_name(p->naming, type->decl)); break;
  case KJ_TYPE_DTYPE:
    ki_put(p, "dtype(");
    ki_put_expr(p, type->expr, KJ_LEVEL_CONDITIONAL);
    ki_put(p, ")");
    break;
  case KJ_TYPE_VECTOR:
    ki_put(p, "vector(");
    ki_put_type(p, type->element);
    ki_put(p, ", ");
    ki_put_list(p, &type->extents);
    ki_put(p, ")");
    break;
  case KJ_TYPE_ARRAY:
    ki_put_type(p, type->element);
    print_dimensions(p, type);
    break;
  case KJ_TYPE_STATIC_ARRAY:
    ki_put_type(p, type->element);
    ki_put(p, "[");
    ki_put_list(p, &type->extents);
    ki_put(p, "]");
    break;
  case KJ_TYPE_POINTER:
    ki_put_type(p, type->element);
    ki_put(p, "*");
    break;
  case KJ_TYPE_TUPLE:
    ki_put(p, "(");
    for (size_t i = 0; i < type->items.count; i++) {
      if (i) ki_put(p, ", ");
      ki_put_type(p, type->items.items[i]);
    }
    ki_put(p, ")");
    break;
  }
}

/* ---- expressions ---- */

static int level(const ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_COND || expr->kind == KJ_EXPR_SLICE) return KJ_LEVEL_CONDITIONAL;
  if (expr->kind == KJ_EXPR_UNARY || expr->kind == KJ_EXPR_BINARY)
    return ki_op_table[expr->op].precedence;
  return expr->kind == KJ_EXPR_CALL || expr->kind == KJ_EXPR_INDEX || expr->kind == KJ_EXPR_FIELD
           ? KJ_LEVEL_POSTFIX
           : KJ_LEVEL_PRIMARY;
}

static void print_suffix(ki_printer *p, kjit_type type)
{
  if (ki_is_scalar(type)) ki_put(p, ki_type(p->module->types, type)->name);
}

static void print_unary(ki_printer *p, const ki_expr *expr)
{
  const ki_op_info *op = &ki_op_table[expr->op];
  ki_put_place(p, expr->location, " ");
  ki_put(p, op->text);
  if (expr->op == KJIT_OP_NOT) ki_put(p, " ");
  ki_put_expr(p, expr->x, op->precedence);
}

/* Binary operators are left-associative. `**` is right-associative and allows a sign in its right
 * operand. Comparisons cannot be chained. */
static void print_binary(ki_printer *p, const ki_expr *expr)
{
  const ki_op_info *op = &ki_op_table[expr->op];
  bool is_power = op->class_ == KJ_OP_POWER, is_compare = op->class_ == KJ_OP_COMPARE;
  ki_put_expr(p, expr->x, op->precedence + (is_power || is_compare));
  ki_put(p, " ");
  ki_put_place(p, expr->location, " ");
  kj_append_format(p->buffer, "%s ", op->text);
  ki_put_expr(p, expr->y, is_power ? ki_op_table[KJIT_OP_NEG].precedence : op->precedence + 1);
}

static void print_conditional(ki_printer *p, const ki_expr *expr)
{
  ki_put_expr(p, expr->x, 1);
  ki_put(p, " ");
  ki_put_place(p, expr->location, " ");
  ki_put(p, "? ");
  ki_put_expr(p, expr->y, KJ_LEVEL_CONDITIONAL);
  ki_put(p, " : ");
  ki_put_expr(p, expr->z, KJ_LEVEL_CONDITIONAL);
}

static void print_slice(ki_printer *p, const ki_expr *expr)
{
  ki_put_place(p, expr->location, " ");
  if (expr->x) ki_put_expr(p, expr->x, 1);
  ki_put(p, ":");
  if (expr->y) ki_put_expr(p, expr->y, 1);
  if (!expr->z) return;
  ki_put(p, ":");
  ki_put_expr(p, expr->z, 1);
}

static void print_bracketed(ki_printer *p, const ki_expr *expr, const char *open, const char *close)
{
  ki_put_expr(p, expr->x, KJ_LEVEL_POSTFIX);
  ki_put(p, open);
  ki_put_list(p, &expr->args);
  ki_put(p, close);
}

static void print_field(ki_printer *p, const ki_expr *expr)
{
  /* without parentheses, the lexer would read `5.x` as a number with a suffix */
  bool is_number = expr->x->kind == KJ_EXPR_INT || expr->x->kind == KJ_EXPR_FLOAT;
  ki_put_expr(p, expr->x, is_number ? KJ_LEVEL_PRIMARY + 1 : KJ_LEVEL_POSTFIX);
  ki_put(p, ".");
  ki_put_place(p, expr->location, " ");
  ki_put(p, expr->name);
}

static bool begins_with_own_token(const ki_expr *expr)
{
  switch (expr->kind) {
  case KJ_EXPR_INT:
  case KJ_EXPR_FLOAT:
  case KJ_EXPR_BOOL:
  case KJ_EXPR_STRING:
  case KJ_EXPR_DECL:
  case KJ_EXPR_NAME:
  case KJ_EXPR_BUILTIN:
  case KJ_EXPR_TYPE:
  case KJ_EXPR_TUPLE:
  case KJ_EXPR_AGGREGATE: return true;
  case KJ_EXPR_UNARY:
  case KJ_EXPR_BINARY:
  case KJ_EXPR_COND:
  case KJ_EXPR_CALL:
  case KJ_EXPR_INDEX:
  case KJ_EXPR_SLICE:
  case KJ_EXPR_FIELD: return false;
  }
  return false;
}

static void print_node(ki_printer *p, const ki_expr *expr)
{
  if (begins_with_own_token(expr)) ki_put_place(p, expr->location, " ");
  switch (expr->kind) {
  case KJ_EXPR_INT:
    kj_append_format(p->buffer, "%llu", (unsigned long long)expr->integer);
    print_suffix(p, expr->type);
    break;
  case KJ_EXPR_FLOAT:
    ki_print_float(expr->number, expr->type, p->buffer);
    print_suffix(p, expr->type);
    break;
  case KJ_EXPR_BOOL: ki_put(p, expr->integer ? "true" : "false"); break;
  case KJ_EXPR_STRING: ki_put_string(p, expr->name); break;
  case KJ_EXPR_DECL: ki_put(p, ki_printed_name(p->naming, expr->decl)); break;
  case KJ_EXPR_NAME: ki_put(p, expr->name); break;
  case KJ_EXPR_BUILTIN: ki_put(p, expr->builtin->name); break;
  case KJ_EXPR_TYPE: ki_put_type(p, expr->type_expr); break;
  case KJ_EXPR_UNARY: print_unary(p, expr); break;
  case KJ_EXPR_BINARY: print_binary(p, expr); break;
  case KJ_EXPR_COND: print_conditional(p, expr); break;
  case KJ_EXPR_CALL: print_bracketed(p, expr, "(", ")"); break;
  case KJ_EXPR_INDEX: print_bracketed(p, expr, "[", "]"); break;
  case KJ_EXPR_SLICE: print_slice(p, expr); break;
  case KJ_EXPR_FIELD: print_field(p, expr); break;
  case KJ_EXPR_TUPLE:
    ki_put(p, "(");
    ki_put_list(p, &expr->args);
    ki_put(p, expr->args.count == 1 ? ",)" : ")");
    break;
  case KJ_EXPR_AGGREGATE:
    ki_put(p, "{ ");
    ki_put_list(p, &expr->args);
    ki_put(p, " }");
    break;
  }
}

void ki_put_expr(ki_printer *p, const ki_expr *expr, int least)
{
  bool parentheses = level(expr) < least;
  if (parentheses) ki_put(p, "(");
  print_node(p, expr);
  if (parentheses) ki_put(p, ")");
}

/* ---- data of constants: printed as weak literals in braces, which parse to the same bytes ---- */

static const char *put_tuple(ki_printer *p, const ki_type_info *array, uint32_t dimension,
                             const char *from);

/* Prints an element of a constant's data as a weak literal, or as a bitcast for a NaN whose bits
 * differ from `nan`. An aggregate is printed as its components. */
static void print_element(ki_printer *p, kjit_type type, const char *from)
{
  const ki_types *types = p->module->types;
  ki_value value;
  if (ki_type(types, type)->class_ == KJ_CLASS_ARRAY) {
    (void)put_tuple(p, ki_type(types, type), 0, from);
    return;
  }
  if (ki_decode_value(type, from, &value)) {
    ki_print_value(value, false, p->buffer);
    return;
  }
  put_fixed_type(p, type);
  ki_put(p, "(");
  for (uint32_t i = 0; i < ki_component_count(types, type); i++) {
    ki_component part = ki_get_component(types, type, i);
    if (i) ki_put(p, ", ");
    print_element(p, part.type, from + part.offset_bytes);
  }
  ki_put(p, ")");
}

/* Prints an array inside a struct, with parentheses instead of braces. Returns the end of its
 * data. */
static const char *put_tuple(ki_printer *p, const ki_type_info *array, uint32_t dimension,
                             const char *from)
{
  if (dimension == array->rank) {
    print_element(p, array->element, from);
    return from + ki_type(p->module->types, array->element)->size_bytes;
  }
  ki_put(p, "(");
  for (int64_t i = 0; i < array->extents[dimension]; i++) {
    if (i) ki_put(p, ", ");
    from = put_tuple(p, array, dimension + 1, from);
  }
  ki_put(p, array->extents[dimension] == 1 ? ",)" : ")");
  return from;
}

/* Prints the elements of dimension `dimension` and all further dimensions. Returns the end of their
 * data. */
static const char *put_rows(ki_printer *p, const ki_decl *decl, uint32_t dimension,
                            const char *from)
{
  if (dimension == decl->rank) {
    print_element(p, decl->data_element, from);
    return from + ki_type(p->module->types, decl->data_element)->size_bytes;
  }
  ki_put(p, "{ ");
  for (int64_t i = 0; i < decl->extents[dimension]; i++) {
    if (i) ki_put(p, ", ");
    from = put_rows(p, decl, dimension + 1, from);
  }
  ki_put(p, " }");
  return from;
}

void ki_put_data_type(ki_printer *p, const ki_decl *decl)
{
  ki_put(p, ": ");
  put_fixed_type(p, decl->data_element);
  for (uint32_t i = 0; i < decl->rank; i++)
    kj_append_format(p->buffer, "%s%lld", i ? ", " : "[", (long long)decl->extents[i]);
  if (decl->rank) ki_put(p, "]");
}

void ki_put_data(ki_printer *p, const ki_decl *decl) { put_rows(p, decl, 0, decl->data); }
