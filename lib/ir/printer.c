/* A module as canonical text: parsing it gives an equal module, and printing that the same text. */
#include "ir/printer.h"

/* ---- statements ---- */

/* Where the grammar takes several values without parentheses. */
static void print_values(kj_printer *p, const kj_expr *expr)
{
  if (expr->kind == KJ_EXPR_TUPLE && expr->args.count > 1) kj_put_list(p, &expr->args);
  else kj_put_expr(p, expr, KJ_LEVEL_CONDITIONAL);
}

static void print_body(kj_printer *p, const kj_stmts *body);

static void start_line(kj_printer *p)
{
  for (int i = 0; i < p->indent; i++) kj_put(p, "  ");
}

static void print_attributes(kj_printer *p, const kj_attributes *attributes)
{
  for (size_t i = 0; i < attributes->count; i++) {
    kj_append_format(p->buffer, " @%s", attributes->items[i].info->name);
    if (attributes->items[i].values.count == 0) continue;
    kj_put(p, "(");
    kj_put_list(p, &attributes->items[i].values);
    kj_put(p, ")");
  }
}

static void print_names(kj_printer *p, const kj_decls *decls)
{
  for (size_t i = 0; i < decls->count; i++)
    kj_append_format(p->buffer, "%s%s", i ? ", " : "", kj_printed_name(p->naming, decls->items[i]));
}

static void print_annotation(kj_printer *p, const kj_decl *decl)
{
  if (!decl->type_expr) return;
  kj_put(p, ": ");
  kj_put_type(p, decl->type_expr);
}

static void print_declare(kj_printer *p, const kj_stmt *stmt)
{
  kj_put(p, stmt->decls.items[0]->kind == KJ_DECL_VAR ? "var " : "let ");
  print_names(p, &stmt->decls);
  print_annotation(p, stmt->decls.items[0]);
  kj_put(p, " = ");
  if (stmt->decls.count > 1) print_values(p, stmt->value);
  else kj_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
}

static void print_storage(kj_printer *p, const kj_stmt *stmt)
{
  const kj_decl *decl = stmt->decls.items[0];
  kj_append_format(p->buffer, "%s %s", decl->kind == KJ_DECL_SHARED ? "shared" : "local",
                   kj_printed_name(p->naming, decl));
  print_annotation(p, decl);
  print_attributes(p, &decl->attributes);
}

static void print_assign(kj_printer *p, const kj_stmt *stmt)
{
  for (size_t i = 0; i < stmt->places.count; i++) {
    if (i) kj_put(p, ", ");
    kj_put_expr(p, stmt->places.items[i], KJ_LEVEL_POSTFIX);
  }
  kj_append_format(p->buffer, stmt->op == KJIT_STORE ? " = " : " %s= ", kj_op_table[stmt->op].text);
  if (stmt->places.count > 1) print_values(p, stmt->value);
  else kj_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
}

static void print_if(kj_printer *p, const kj_stmt *stmt)
{
  kj_put(p, "if ");
  kj_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
  print_body(p, &stmt->body);
  if (stmt->otherwise.count == 0) return;
  kj_put(p, " else");
  bool is_chain = stmt->otherwise.count == 1 && stmt->otherwise.items[0]->kind == KJ_STMT_IF;
  if (!is_chain) {
    print_body(p, &stmt->otherwise);
    return;
  }
  kj_put(p, " ");
  print_if(p, stmt->otherwise.items[0]);
}

static void print_while(kj_printer *p, const kj_stmt *stmt)
{
  kj_put(p, "while ");
  kj_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
  print_attributes(p, &stmt->attributes);
  print_body(p, &stmt->body);
}

static void print_for(kj_printer *p, const kj_stmt *stmt)
{
  kj_put(p, "for ");
  print_names(p, &stmt->decls);
  kj_append_format(p->buffer, " in %s(", kj_range_names[stmt->range]);
  kj_put_list(p, &stmt->args);
  kj_put(p, ")");
  print_attributes(p, &stmt->attributes);
  print_body(p, &stmt->body);
}

static void print_stmt(kj_printer *p, const kj_stmt *stmt)
{
  switch (stmt->kind) {
  case KJ_STMT_DECLARE: print_declare(p, stmt); break;
  case KJ_STMT_STORAGE: print_storage(p, stmt); break;
  case KJ_STMT_ASSIGN: print_assign(p, stmt); break;
  case KJ_STMT_EVALUATE: kj_put_expr(p, stmt->value, KJ_LEVEL_POSTFIX); break;
  case KJ_STMT_IF: print_if(p, stmt); break;
  case KJ_STMT_WHILE: print_while(p, stmt); break;
  case KJ_STMT_FOR: print_for(p, stmt); break;
  case KJ_STMT_BREAK: kj_put(p, "break"); break;
  case KJ_STMT_CONTINUE: kj_put(p, "continue"); break;
  case KJ_STMT_RETURN:
    kj_put(p, stmt->value ? "return " : "return");
    if (stmt->value) print_values(p, stmt->value);
    break;
  case KJ_STMT_ASSERT:
    kj_put(p, "assert ");
    kj_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
    if (!stmt->message) break;
    kj_put(p, ", ");
    kj_put_string(p, stmt->message);
    break;
  case KJ_STMT_RAISE:
    kj_put(p, "raise ");
    kj_put_string(p, stmt->message);
    break;
  case KJ_STMT_PRINT:
    kj_put(p, "print(");
    kj_put_list(p, &stmt->args);
    kj_put(p, ")");
    break;
  }
}

static void print_body(kj_printer *p, const kj_stmts *body)
{
  kj_put(p, " {\n");
  p->indent++;
  for (size_t i = 0; i < body->count; i++) {
    start_line(p);
    print_stmt(p, body->items[i]);
    kj_put(p, "\n");
  }
  p->indent--;
  start_line(p);
  kj_put(p, "}");
}

/* ---- declarations ---- */

static void print_parameter(kj_printer *p, const kj_decl *param)
{
  kj_append_format(p->buffer, "%s%s", param->is_const ? "const " : "",
                   kj_printed_name(p->naming, param));
  if (param->is_func) kj_put(p, ": func");
  print_annotation(p, param);
  if (!param->value) return;
  kj_put(p, " = ");
  kj_put_expr(p, param->value, KJ_LEVEL_CONDITIONAL);
}

static void print_function(kj_printer *p, const kj_function *function)
{
  kj_append_format(p->buffer, "%s%s %s(", function->is_extern ? "extern " : "",
                   function->is_kernel ? "kernel" : "func",
                   kj_printed_name(p->naming, function->decl));
  for (size_t i = 0; i < function->params.count; i++) {
    if (i) kj_put(p, ", ");
    print_parameter(p, function->params.items[i]);
  }
  kj_put(p, ")");
  if (function->result) {
    kj_put(p, " -> ");
    kj_put_type(p, function->result);
  }
  print_attributes(p, &function->attributes);
  if (!function->is_extern) print_body(p, &function->body);
}

static void print_aggregate(kj_printer *p, const kj_expr *value)
{
  if (value->kind != KJ_EXPR_TUPLE) {
    kj_put_expr(p, value, KJ_LEVEL_CONDITIONAL);
    return;
  }
  kj_put(p, "{ ");
  for (size_t i = 0; i < value->args.count; i++) {
    if (i) kj_put(p, ", ");
    print_aggregate(p, value->args.items[i]);
  }
  kj_put(p, " }");
}

static void print_constant(kj_printer *p, const kj_decl *decl)
{
  kj_append_format(p->buffer, "%sconst %s", decl->value || decl->data ? "" : "extern ",
                   kj_printed_name(p->naming, decl));
  if (decl->data) kj_put_data_type(p, decl);
  else print_annotation(p, decl);
  if (!decl->value && !decl->data) return;
  kj_put(p, " = ");
  if (decl->data) kj_put_data(p, decl);
  else print_aggregate(p, decl->value);
}

static void print_struct(kj_printer *p, const kj_decl *decl)
{
  kj_append_format(p->buffer, "struct %s", decl->name);
  print_attributes(p, &decl->attributes);
  kj_put(p, " {\n");
  for (size_t i = 0; i < decl->fields.count; i++) {
    kj_append_format(p->buffer, "  %s", decl->fields.items[i]->name);
    print_annotation(p, decl->fields.items[i]);
    kj_put(p, "\n");
  }
  kj_put(p, "}");
}

static void print_alone(kj_printer *p, const kj_decl *decl)
{
  if (decl->kind == KJ_DECL_FUNCTION) print_function(p, decl->function);
  else if (decl->kind == KJ_DECL_STRUCT) print_struct(p, decl);
  else print_constant(p, decl);
  kj_put(p, "\n");
}

void kj_print_decl(const kjit_module *module, const kj_naming *naming, const kj_decl *decl,
                   kj_buffer *buffer)
{
  print_alone(&(kj_printer){ .module = module, .naming = naming, .buffer = buffer }, decl);
}

/* One line each, functions and structs with an empty line around them. */
static void print_decl(kj_printer *p, size_t index)
{
  const kj_decl *decl = p->module->decls.items[index];
  bool follows = index > 0 || p->module->imports.count;
  bool together = index > 0 && decl->kind == KJ_DECL_CONST &&
                  p->module->decls.items[index - 1]->kind == KJ_DECL_CONST;
  if (follows && !together) kj_put(p, "\n");
  print_alone(p, decl);
}

static void print_module(kj_printer *p)
{
  kj_append(p->buffer, "", 0);
  for (size_t i = 0; i < p->module->imports.count; i++) {
    kj_put(p, "import ");
    kj_put_string(p, p->module->imports.items[i].name);
    kj_put(p, "\n");
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
    print_module(&(kj_printer){ .module = module, .naming = &naming, .buffer = buffer });
  } else buffer->failed = 1;
  kj_free_arena(&arena);
}

void kj_print_expr(const kjit_module *module, const kj_expr *expr, kj_buffer *buffer)
{
  kj_put_expr(&(kj_printer){ .module = module, .buffer = buffer }, expr, KJ_LEVEL_CONDITIONAL);
}
