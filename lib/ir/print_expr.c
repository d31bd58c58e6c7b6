/* Expressions and types as text. */
#include "ir/number.h"
#include "ir/printer.h"

void kj_put_list(kj_printer *p, const kj_exprs *list)
{
  for (size_t i = 0; i < list->count; i++) {
    if (i) kj_put(p, ", ");
    kj_put_expr(p, list->items[i], KJ_LEVEL_CONDITIONAL);
  }
}

void kj_put_string(kj_printer *p, const char *text)
{
  kj_put(p, "\"");
  for (; *text; text++) {
    const char *escape = *text == '\n'   ? "\\n"
                         : *text == '\t' ? "\\t"
                         : *text == '"'  ? "\\\""
                         : *text == '\\' ? "\\\\"
                                         : NULL;
    if (escape) kj_put(p, escape);
    else kj_append(p->buffer, text, 1);
  }
  kj_put(p, "\"");
}

/* ---- types ---- */

static void print_dimensions(kj_printer *p, const kj_type_expr *type)
{
  kj_put(p, "[");
  for (uint32_t i = 0; i < type->rank; i++) kj_put(p, i ? ", :" : ":");
  kj_put(p, "]");
  if (type->rank == 0) return;
  if (type->layout == KJIT_LAYOUT_C || (type->layout == KJIT_LAYOUT_F && type->rank == 1))
    kj_put(p, " C");
  else if (type->layout == KJIT_LAYOUT_F) kj_put(p, " F");
}

void kj_put_type(kj_printer *p, const kj_type_expr *type)
{
  if (type->read_only && type->kind != KJ_TYPE_FIXED) kj_put(p, "const ");
  switch (type->kind) {
  case KJ_TYPE_FIXED: kj_print_type(p->module->types, type->type, p->buffer); break;
  case KJ_TYPE_NAMED: kj_put(p, type->name); break;
  case KJ_TYPE_DTYPE:
    kj_put(p, "dtype(");
    kj_put_expr(p, type->expr, KJ_LEVEL_CONDITIONAL);
    kj_put(p, ")");
    break;
  case KJ_TYPE_ARRAY:
    kj_put_type(p, type->element);
    print_dimensions(p, type);
    break;
  case KJ_TYPE_STATIC_ARRAY:
    kj_put_type(p, type->element);
    kj_put(p, "[");
    kj_put_list(p, &type->extents);
    kj_put(p, "]");
    break;
  case KJ_TYPE_POINTER:
    kj_put_type(p, type->element);
    kj_put(p, "*");
    break;
  case KJ_TYPE_TUPLE:
    kj_put(p, "(");
    for (size_t i = 0; i < type->items.count; i++) {
      if (i) kj_put(p, ", ");
      kj_put_type(p, type->items.items[i]);
    }
    kj_put(p, ")");
    break;
  }
}

/* ---- expressions ---- */

static int level(const kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_COND || expr->kind == KJ_EXPR_SLICE) return KJ_LEVEL_CONDITIONAL;
  if (expr->kind == KJ_EXPR_UNARY || expr->kind == KJ_EXPR_BINARY)
    return kj_op_table[expr->op].precedence;
  return expr->kind == KJ_EXPR_CALL || expr->kind == KJ_EXPR_INDEX || expr->kind == KJ_EXPR_FIELD
           ? KJ_LEVEL_POSTFIX
           : KJ_LEVEL_PRIMARY;
}

static void print_suffix(kj_printer *p, kjit_type type)
{
  if (kj_is_scalar(type)) kj_put(p, kj_type(p->module->types, type)->name);
}

static void print_unary(kj_printer *p, const kj_expr *expr)
{
  const kj_op_info *op = &kj_op_table[expr->op];
  kj_put(p, op->text);
  if (expr->op == KJIT_NOT) kj_put(p, " ");
  kj_put_expr(p, expr->x, op->precedence);
}

/* Operators associate to the left, ** to the right with a sign allowed behind it; comparisons not
 * at all. */
static void print_binary(kj_printer *p, const kj_expr *expr)
{
  const kj_op_info *op = &kj_op_table[expr->op];
  bool is_power = op->class_ == KJ_OP_POWER, is_compare = op->class_ == KJ_OP_COMPARE;
  kj_put_expr(p, expr->x, op->precedence + (is_power || is_compare));
  kj_append_format(p->buffer, " %s ", op->text);
  kj_put_expr(p, expr->y, is_power ? kj_op_table[KJIT_NEG].precedence : op->precedence + 1);
}

static void print_conditional(kj_printer *p, const kj_expr *expr)
{
  kj_put_expr(p, expr->x, 1);
  kj_put(p, " ? ");
  kj_put_expr(p, expr->y, KJ_LEVEL_CONDITIONAL);
  kj_put(p, " : ");
  kj_put_expr(p, expr->z, KJ_LEVEL_CONDITIONAL);
}

static void print_slice(kj_printer *p, const kj_expr *expr)
{
  if (expr->x) kj_put_expr(p, expr->x, 1);
  kj_put(p, ":");
  if (expr->y) kj_put_expr(p, expr->y, 1);
  if (!expr->z) return;
  kj_put(p, ":");
  kj_put_expr(p, expr->z, 1);
}

static void print_bracketed(kj_printer *p, const kj_expr *expr, const char *open, const char *close)
{
  kj_put_expr(p, expr->x, KJ_LEVEL_POSTFIX);
  kj_put(p, open);
  kj_put_list(p, &expr->args);
  kj_put(p, close);
}

static void print_field(kj_printer *p, const kj_expr *expr)
{
  /* `5.x` is a number with a suffix */
  bool is_number = expr->x->kind == KJ_EXPR_INT || expr->x->kind == KJ_EXPR_FLOAT;
  kj_put_expr(p, expr->x, is_number ? KJ_LEVEL_PRIMARY + 1 : KJ_LEVEL_POSTFIX);
  kj_append_format(p->buffer, ".%s", expr->name);
}

static void print_node(kj_printer *p, const kj_expr *expr)
{
  switch (expr->kind) {
  case KJ_EXPR_INT:
    kj_append_format(p->buffer, "%llu", (unsigned long long)expr->integer);
    print_suffix(p, expr->type);
    break;
  case KJ_EXPR_FLOAT:
    kj_print_float(expr->number, expr->type, p->buffer);
    print_suffix(p, expr->type);
    break;
  case KJ_EXPR_BOOL: kj_put(p, expr->integer ? "true" : "false"); break;
  case KJ_EXPR_STRING: kj_put_string(p, expr->name); break;
  case KJ_EXPR_DECL: kj_put(p, kj_printed_name(p->naming, expr->decl)); break;
  case KJ_EXPR_NAME: kj_put(p, expr->name); break;
  case KJ_EXPR_BUILTIN: kj_put(p, expr->builtin->name); break;
  case KJ_EXPR_TYPE: kj_put_type(p, expr->type_expr); break;
  case KJ_EXPR_UNARY: print_unary(p, expr); break;
  case KJ_EXPR_BINARY: print_binary(p, expr); break;
  case KJ_EXPR_COND: print_conditional(p, expr); break;
  case KJ_EXPR_CALL: print_bracketed(p, expr, "(", ")"); break;
  case KJ_EXPR_INDEX: print_bracketed(p, expr, "[", "]"); break;
  case KJ_EXPR_SLICE: print_slice(p, expr); break;
  case KJ_EXPR_FIELD: print_field(p, expr); break;
  case KJ_EXPR_TUPLE:
    kj_put(p, "(");
    kj_put_list(p, &expr->args);
    kj_put(p, expr->args.count == 1 ? ",)" : ")");
    break;
  }
}

void kj_put_expr(kj_printer *p, const kj_expr *expr, int least)
{
  bool parentheses = level(expr) < least;
  if (parentheses) kj_put(p, "(");
  print_node(p, expr);
  if (parentheses) kj_put(p, ")");
}
