/* A module as canonical text: parsing it gives an equal module, and printing that the same text. */
#include <math.h>
#include <string.h>

#include "ir/naming.h"
#include "ir/number.h"

typedef struct printer {
  const kjit_module *module;
  const kj_naming *naming; /* NULL: names as given */
  kj_buffer *buffer;
  int indent;
} printer;

/* How tightly an expression holds together; the numbers between are those of ops.def. */
enum { LEVEL_CONDITIONAL = 0, LEVEL_POSTFIX = 13, LEVEL_PRIMARY = 14 };

static void print_expr(printer *p, const kj_expr *expr, int least);

static void put(printer *p, const char *text) { kj_append_text(p->buffer, text); }

static void print_list(printer *p, const kj_exprs *list)
{
  for (size_t i = 0; i < list->count; i++) {
    if (i) put(p, ", ");
    print_expr(p, list->items[i], LEVEL_CONDITIONAL);
  }
}

static void print_string(printer *p, const char *text)
{
  put(p, "\"");
  for (; *text; text++) {
    const char *escape = *text == '\n' ? "\\n" : *text == '\t' ? "\\t" : *text == '"' ? "\\\"" : *text == '\\' ? "\\\\" : NULL;
    if (escape) put(p, escape);
    else kj_append(p->buffer, text, 1);
  }
  put(p, "\"");
}

/* ---- types ---- */

static void print_dimensions(printer *p, const kj_type_expr *type)
{
  put(p, "[");
  for (uint32_t i = 0; i < type->rank; i++) put(p, i ? ", :" : ":");
  put(p, "]");
  if (type->rank == 0) return;
  if (type->layout == KJIT_LAYOUT_C || (type->layout == KJIT_LAYOUT_F && type->rank == 1)) put(p, " C");
  else if (type->layout == KJIT_LAYOUT_F) put(p, " F");
}

static void print_type_expr(printer *p, const kj_type_expr *type)
{
  if (type->read_only && type->kind != KJ_TYPE_FIXED) put(p, "const ");
  switch (type->kind) {
  case KJ_TYPE_FIXED: kj_print_type(p->module->types, type->type, p->buffer); break;
  case KJ_TYPE_NAMED: put(p, type->name); break;
  case KJ_TYPE_DTYPE:
    put(p, "dtype(");
    print_expr(p, type->expr, LEVEL_CONDITIONAL);
    put(p, ")");
    break;
  case KJ_TYPE_ARRAY:
    print_type_expr(p, type->element);
    print_dimensions(p, type);
    break;
  case KJ_TYPE_STATIC_ARRAY:
    print_type_expr(p, type->element);
    put(p, "[");
    print_list(p, &type->extents);
    put(p, "]");
    break;
  case KJ_TYPE_POINTER:
    print_type_expr(p, type->element);
    put(p, "*");
    break;
  case KJ_TYPE_TUPLE:
    put(p, "(");
    for (size_t i = 0; i < type->items.count; i++) {
      if (i) put(p, ", ");
      print_type_expr(p, type->items.items[i]);
    }
    put(p, ")");
    break;
  }
}

/* ---- expressions ---- */

static int level(const kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_COND || expr->kind == KJ_EXPR_SLICE) return LEVEL_CONDITIONAL;
  if (expr->kind == KJ_EXPR_UNARY || expr->kind == KJ_EXPR_BINARY) return kj_op_table[expr->op].precedence;
  return expr->kind == KJ_EXPR_CALL || expr->kind == KJ_EXPR_INDEX || expr->kind == KJ_EXPR_FIELD ? LEVEL_POSTFIX : LEVEL_PRIMARY;
}

static void print_suffix(printer *p, kjit_type type)
{
  if (kj_is_scalar(type)) put(p, kj_type(p->module->types, type)->name);
}

static void print_unary(printer *p, const kj_expr *expr)
{
  const kj_op_info *op = &kj_op_table[expr->op];
  put(p, op->text);
  if (expr->op == KJIT_NOT) put(p, " ");
  print_expr(p, expr->x, op->precedence);
}

/* Operators associate to the left, ** to the right with a sign allowed behind it; comparisons not at all. */
static void print_binary(printer *p, const kj_expr *expr)
{
  const kj_op_info *op = &kj_op_table[expr->op];
  bool is_power = op->class_ == KJ_OP_POWER, is_compare = op->class_ == KJ_OP_COMPARE;
  print_expr(p, expr->x, op->precedence + (is_power || is_compare));
  kj_append_format(p->buffer, " %s ", op->text);
  print_expr(p, expr->y, is_power ? kj_op_table[KJIT_NEG].precedence : op->precedence + 1);
}

static void print_conditional(printer *p, const kj_expr *expr)
{
  print_expr(p, expr->x, 1);
  put(p, " ? ");
  print_expr(p, expr->y, LEVEL_CONDITIONAL);
  put(p, " : ");
  print_expr(p, expr->z, LEVEL_CONDITIONAL);
}

static void print_slice(printer *p, const kj_expr *expr)
{
  if (expr->x) print_expr(p, expr->x, 1);
  put(p, ":");
  if (expr->y) print_expr(p, expr->y, 1);
  if (!expr->z) return;
  put(p, ":");
  print_expr(p, expr->z, 1);
}

static void print_bracketed(printer *p, const kj_expr *expr, const char *open, const char *close)
{
  print_expr(p, expr->x, LEVEL_POSTFIX);
  put(p, open);
  print_list(p, &expr->args);
  put(p, close);
}

static void print_field(printer *p, const kj_expr *expr)
{
  bool is_number = expr->x->kind == KJ_EXPR_INT || expr->x->kind == KJ_EXPR_FLOAT; /* `5.x` is a number with a suffix */
  print_expr(p, expr->x, is_number ? LEVEL_PRIMARY + 1 : LEVEL_POSTFIX);
  kj_append_format(p->buffer, ".%s", expr->name);
}

static void print_node(printer *p, const kj_expr *expr)
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
  case KJ_EXPR_BOOL: put(p, expr->integer ? "true" : "false"); break;
  case KJ_EXPR_STRING: print_string(p, expr->name); break;
  case KJ_EXPR_DECL: put(p, kj_printed_name(p->naming, expr->decl)); break;
  case KJ_EXPR_NAME: put(p, expr->name); break;
  case KJ_EXPR_BUILTIN: put(p, expr->builtin->name); break;
  case KJ_EXPR_TYPE: print_type_expr(p, expr->type_expr); break;
  case KJ_EXPR_UNARY: print_unary(p, expr); break;
  case KJ_EXPR_BINARY: print_binary(p, expr); break;
  case KJ_EXPR_COND: print_conditional(p, expr); break;
  case KJ_EXPR_CALL: print_bracketed(p, expr, "(", ")"); break;
  case KJ_EXPR_INDEX: print_bracketed(p, expr, "[", "]"); break;
  case KJ_EXPR_SLICE: print_slice(p, expr); break;
  case KJ_EXPR_FIELD: print_field(p, expr); break;
  case KJ_EXPR_TUPLE:
    put(p, "(");
    print_list(p, &expr->args);
    put(p, expr->args.count == 1 ? ",)" : ")");
    break;
  }
}

static void print_expr(printer *p, const kj_expr *expr, int least)
{
  bool parentheses = level(expr) < least;
  if (parentheses) put(p, "(");
  print_node(p, expr);
  if (parentheses) put(p, ")");
}

/* Where the grammar takes several values without parentheses. */
static void print_values(printer *p, const kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_TUPLE && expr->args.count > 1) print_list(p, &expr->args);
  else print_expr(p, expr, LEVEL_CONDITIONAL);
}

/* ---- statements ---- */

static void print_body(printer *p, const kj_stmts *body);

static void start_line(printer *p)
{
  for (int i = 0; i < p->indent; i++) put(p, "  ");
}

static void print_attributes(printer *p, const kj_attributes *attributes)
{
  for (size_t i = 0; i < attributes->count; i++) {
    kj_append_format(p->buffer, " @%s", attributes->items[i].info->name);
    if (attributes->items[i].values.count == 0) continue;
    put(p, "(");
    print_list(p, &attributes->items[i].values);
    put(p, ")");
  }
}

static void print_names(printer *p, const kj_decls *decls)
{
  for (size_t i = 0; i < decls->count; i++) kj_append_format(p->buffer, "%s%s", i ? ", " : "", kj_printed_name(p->naming, decls->items[i]));
}

static void print_annotation(printer *p, const kj_decl *decl)
{
  if (!decl->type_expr) return;
  put(p, ": ");
  print_type_expr(p, decl->type_expr);
}

static void print_declare(printer *p, const kj_stmt *stmt)
{
  put(p, stmt->decls.items[0]->kind == KJ_DECL_VAR ? "var " : "let ");
  print_names(p, &stmt->decls);
  print_annotation(p, stmt->decls.items[0]);
  put(p, " = ");
  if (stmt->decls.count > 1) print_values(p, stmt->value);
  else print_expr(p, stmt->value, LEVEL_CONDITIONAL);
}

static void print_storage(printer *p, const kj_stmt *stmt)
{
  const kj_decl *decl = stmt->decls.items[0];
  kj_append_format(p->buffer, "%s %s", decl->kind == KJ_DECL_SHARED ? "shared" : "local", kj_printed_name(p->naming, decl));
  print_annotation(p, decl);
  print_attributes(p, &decl->attributes);
}

static void print_assign(printer *p, const kj_stmt *stmt)
{
  for (size_t i = 0; i < stmt->places.count; i++) {
    if (i) put(p, ", ");
    print_expr(p, stmt->places.items[i], LEVEL_POSTFIX);
  }
  kj_append_format(p->buffer, stmt->op == KJIT_STORE ? " = " : " %s= ", kj_op_table[stmt->op].text);
  if (stmt->places.count > 1) print_values(p, stmt->value);
  else print_expr(p, stmt->value, LEVEL_CONDITIONAL);
}

static void print_if(printer *p, const kj_stmt *stmt)
{
  put(p, "if ");
  print_expr(p, stmt->value, LEVEL_CONDITIONAL);
  print_body(p, &stmt->body);
  if (stmt->otherwise.count == 0) return;
  put(p, " else");
  bool is_chain = stmt->otherwise.count == 1 && stmt->otherwise.items[0]->kind == KJ_STMT_IF;
  if (!is_chain) {
    print_body(p, &stmt->otherwise);
    return;
  }
  put(p, " ");
  print_if(p, stmt->otherwise.items[0]);
}

static void print_while(printer *p, const kj_stmt *stmt)
{
  put(p, "while ");
  print_expr(p, stmt->value, LEVEL_CONDITIONAL);
  print_attributes(p, &stmt->attributes);
  print_body(p, &stmt->body);
}

static void print_for(printer *p, const kj_stmt *stmt)
{
  static const char *const ranges[] = { "range", "grid_range", "block_range" };
  put(p, "for ");
  print_names(p, &stmt->decls);
  kj_append_format(p->buffer, " in %s(", ranges[stmt->range]);
  print_list(p, &stmt->args);
  put(p, ")");
  print_attributes(p, &stmt->attributes);
  print_body(p, &stmt->body);
}

static void print_stmt(printer *p, const kj_stmt *stmt)
{
  switch (stmt->kind) {
  case KJ_STMT_DECLARE: print_declare(p, stmt); break;
  case KJ_STMT_STORAGE: print_storage(p, stmt); break;
  case KJ_STMT_ASSIGN: print_assign(p, stmt); break;
  case KJ_STMT_EVALUATE: print_expr(p, stmt->value, LEVEL_POSTFIX); break;
  case KJ_STMT_IF: print_if(p, stmt); break;
  case KJ_STMT_WHILE: print_while(p, stmt); break;
  case KJ_STMT_FOR: print_for(p, stmt); break;
  case KJ_STMT_BREAK: put(p, "break"); break;
  case KJ_STMT_CONTINUE: put(p, "continue"); break;
  case KJ_STMT_RETURN:
    put(p, stmt->value ? "return " : "return");
    if (stmt->value) print_values(p, stmt->value);
    break;
  case KJ_STMT_ASSERT:
    put(p, "assert ");
    print_expr(p, stmt->value, LEVEL_CONDITIONAL);
    if (!stmt->message) break;
    put(p, ", ");
    print_string(p, stmt->message);
    break;
  case KJ_STMT_RAISE:
    put(p, "raise ");
    print_string(p, stmt->message);
    break;
  case KJ_STMT_PRINT:
    put(p, "print(");
    print_list(p, &stmt->args);
    put(p, ")");
    break;
  }
}

static void print_body(printer *p, const kj_stmts *body)
{
  put(p, " {\n");
  p->indent++;
  for (size_t i = 0; i < body->count; i++) {
    start_line(p);
    print_stmt(p, body->items[i]);
    put(p, "\n");
  }
  p->indent--;
  start_line(p);
  put(p, "}");
}

/* ---- declarations ---- */

static void print_parameter(printer *p, const kj_decl *param)
{
  kj_append_format(p->buffer, "%s%s", param->is_const ? "const " : "", kj_printed_name(p->naming, param));
  if (param->is_func) put(p, ": func");
  print_annotation(p, param);
  if (!param->value) return;
  put(p, " = ");
  print_expr(p, param->value, LEVEL_CONDITIONAL);
}

static void print_function(printer *p, const kj_function *function)
{
  kj_append_format(p->buffer, "%s%s %s(", function->is_extern ? "extern " : "", function->is_kernel ? "kernel" : "func",
                   kj_printed_name(p->naming, function->decl));
  for (size_t i = 0; i < function->params.count; i++) {
    if (i) put(p, ", ");
    print_parameter(p, function->params.items[i]);
  }
  put(p, ")");
  if (function->result) {
    put(p, " -> ");
    print_type_expr(p, function->result);
  }
  print_attributes(p, &function->attributes);
  if (!function->is_extern) print_body(p, &function->body);
}

static void print_aggregate(printer *p, const kj_expr *value)
{
  if (value->kind != KJ_EXPR_TUPLE) {
    print_expr(p, value, LEVEL_CONDITIONAL);
    return;
  }
  put(p, "{ ");
  for (size_t i = 0; i < value->args.count; i++) {
    if (i) put(p, ", ");
    print_aggregate(p, value->args.items[i]);
  }
  put(p, " }");
}

static void print_real(printer *p, double value, kjit_type type)
{
  if (signbit(value) && !isnan(value)) put(p, "-");
  if (isnan(value)) put(p, "nan");
  else if (isinf(value)) put(p, "inf");
  else kj_print_float(fabs(value), type, p->buffer);
}

static void print_complex(printer *p, double real, double imaginary, kjit_type type)
{
  kjit_type part = type == KJIT_C64 ? KJIT_F32 : KJIT_F64;
  kj_append_format(p->buffer, "%s(", kj_type(p->module->types, type)->name);
  print_real(p, real, part);
  put(p, ", ");
  print_real(p, imaginary, part);
  put(p, ")");
}

static void print_signed(printer *p, int64_t value) { kj_append_format(p->buffer, "%lld", (long long)value); }

#define LOAD(type, from) ((type *)memcpy(&(type){ 0 }, from, sizeof(type)))[0]
/* One element of a constant's data as a weak literal. */
static void print_element(printer *p, kjit_type type, const char *from)
{
  switch (type) {
  case KJIT_BOOL: put(p, *from ? "true" : "false"); break;
  case KJIT_I8: print_signed(p, LOAD(int8_t, from)); break;
  case KJIT_I16: print_signed(p, LOAD(int16_t, from)); break;
  case KJIT_I32: print_signed(p, LOAD(int32_t, from)); break;
  case KJIT_I64: print_signed(p, LOAD(int64_t, from)); break;
  case KJIT_U8: print_signed(p, LOAD(uint8_t, from)); break;
  case KJIT_U16: print_signed(p, LOAD(uint16_t, from)); break;
  case KJIT_U32: print_signed(p, LOAD(uint32_t, from)); break;
  case KJIT_U64: kj_append_format(p->buffer, "%llu", (unsigned long long)LOAD(uint64_t, from)); break;
  case KJIT_F16: print_real(p, kj_decode_f16(LOAD(uint16_t, from)), type); break;
  case KJIT_BF16: print_real(p, kj_decode_bf16(LOAD(uint16_t, from)), type); break;
  case KJIT_F32: print_real(p, LOAD(float, from), type); break;
  case KJIT_F64: print_real(p, LOAD(double, from), type); break;
  case KJIT_C64: print_complex(p, LOAD(float, from), LOAD(float, from + sizeof(float)), type); break;
  case KJIT_C128: print_complex(p, LOAD(double, from), LOAD(double, from + sizeof(double)), type); break;
  default: break; /* the builder takes no others */
  }
}

/* The elements of the dimensions from `dimension` on; returns what follows them. */
static const char *print_data(printer *p, const kj_decl *decl, uint32_t dimension, const char *from)
{
  if (dimension == decl->rank) {
    print_element(p, decl->data_element, from);
    return from + kj_type(p->module->types, decl->data_element)->size_bytes;
  }
  put(p, "{ ");
  for (int64_t i = 0; i < decl->extents[dimension]; i++) {
    if (i) put(p, ", ");
    from = print_data(p, decl, dimension + 1, from);
  }
  put(p, " }");
  return from;
}

static void print_data_type(printer *p, const kj_decl *decl)
{
  kj_append_format(p->buffer, ": %s", kj_type(p->module->types, decl->data_element)->name);
  for (uint32_t i = 0; i < decl->rank; i++) kj_append_format(p->buffer, "%s%lld", i ? ", " : "[", (long long)decl->extents[i]);
  if (decl->rank) put(p, "]");
}

static void print_constant(printer *p, const kj_decl *decl)
{
  kj_append_format(p->buffer, "%sconst %s", decl->value || decl->data ? "" : "extern ", kj_printed_name(p->naming, decl));
  if (decl->data) print_data_type(p, decl);
  else print_annotation(p, decl);
  if (!decl->value && !decl->data) return;
  put(p, " = ");
  if (decl->data) print_data(p, decl, 0, decl->data);
  else print_aggregate(p, decl->value);
}

static void print_struct(printer *p, const kj_decl *decl)
{
  kj_append_format(p->buffer, "struct %s", decl->name);
  print_attributes(p, &decl->attributes);
  put(p, " {\n");
  for (size_t i = 0; i < decl->fields.count; i++) {
    kj_append_format(p->buffer, "  %s", decl->fields.items[i]->name);
    print_annotation(p, decl->fields.items[i]);
    put(p, "\n");
  }
  put(p, "}");
}

static void print_alone(printer *p, const kj_decl *decl)
{
  if (decl->kind == KJ_DECL_FUNCTION) print_function(p, decl->function);
  else if (decl->kind == KJ_DECL_STRUCT) print_struct(p, decl);
  else print_constant(p, decl);
  put(p, "\n");
}

void kj_print_decl(const kjit_module *module, const kj_naming *naming, const kj_decl *decl, kj_buffer *buffer)
{
  print_alone(&(printer){ .module = module, .naming = naming, .buffer = buffer }, decl);
}

/* One line each, functions and structs with an empty line around them. */
static void print_decl(printer *p, size_t index)
{
  const kj_decl *decl = p->module->decls.items[index];
  bool follows = index > 0 || p->module->imports.count;
  bool together = index > 0 && decl->kind == KJ_DECL_CONST && p->module->decls.items[index - 1]->kind == KJ_DECL_CONST;
  if (follows && !together) put(p, "\n");
  print_alone(p, decl);
}

static void print_module(printer *p)
{
  kj_append(p->buffer, "", 0);
  for (size_t i = 0; i < p->module->imports.count; i++) {
    put(p, "import ");
    print_string(p, p->module->imports.items[i].name);
    put(p, "\n");
  }
  for (size_t i = 0; i < p->module->decls.count; i++) print_decl(p, i);
}

void kj_print_module(const kjit_module *module, kj_buffer *buffer)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    kj_naming naming;
    kj_choose_names(&naming, module, &arena);
    print_module(&(printer){ .module = module, .naming = &naming, .buffer = buffer });
  } else buffer->failed = 1;
  kj_free_arena(&arena);
}

void kj_print_expr(const kjit_module *module, const kj_expr *expr, kj_buffer *buffer)
{
  print_expr(&(printer){ .module = module, .buffer = buffer }, expr, LEVEL_CONDITIONAL);
}
