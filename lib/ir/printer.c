/* Prints a module as canonical text. Parsing the text gives an equivalent module, for which the
 * same text is printed. */
#include "ir/printer.h"

#include <string.h>

static bool names_places(const kjit_module *module)
{
  for (size_t i = 0; i < module->sources.count; i++)
    if (!module->sources.items[i].text) return true;
  return false;
}

/* ---- statements ---- */

/* Prints a value at a position where the grammar allows several values without parentheses. */
static void print_values(ki_printer *p, const ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_TUPLE && expr->args.count > 1) ki_put_list(p, &expr->args);
  else ki_put_expr(p, expr, KJ_LEVEL_CONDITIONAL);
}

static void print_body(ki_printer *p, const ki_stmts *body);

static void start_line(ki_printer *p)
{
  for (int i = 0; i < p->indent; i++) ki_put(p, "  ");
}

static void print_attributes(ki_printer *p, const ki_attributes *attributes)
{
  for (size_t i = 0; i < attributes->count; i++) {
    ki_put(p, " ");
    ki_put_place(p, attributes->items[i].location, " ");
    kj_append_format(p->buffer, "@%s", attributes->items[i].info->name);
    if (attributes->items[i].values.count == 0) continue;
    ki_put(p, "(");
    ki_put_list(p, &attributes->items[i].values);
    ki_put(p, ")");
  }
}

static void print_names(ki_printer *p, const ki_decls *decls)
{
  for (size_t i = 0; i < decls->count; i++) {
    if (i) ki_put(p, ", ");
    ki_put_place(p, decls->items[i]->location, " ");
    ki_put(p, ki_printed_name(p->naming, decls->items[i]));
  }
}

static void print_annotation(ki_printer *p, const ki_decl *decl)
{
  if (!decl->type_expr) return;
  ki_put(p, ": ");
  ki_put_type(p, decl->type_expr);
}

static void print_declare(ki_printer *p, const ki_stmt *stmt)
{
  ki_put(p, stmt->decls.items[0]->kind == KJ_DECL_VAR ? "var " : "let ");
  print_names(p, &stmt->decls);
  print_annotation(p, stmt->decls.items[0]);
  if (!stmt->value) return;
  ki_put(p, " = ");
  if (stmt->decls.count > 1) print_values(p, stmt->value);
  else ki_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
}

static void print_storage(ki_printer *p, const ki_stmt *stmt)
{
  const ki_decl *decl = stmt->decls.items[0];
  kj_append_format(p->buffer, "%s %s", decl->kind == KJ_DECL_SHARED ? "shared" : "local",
                   ki_printed_name(p->naming, decl));
  print_annotation(p, decl);
  print_attributes(p, &decl->attributes);
}

static void print_assign(ki_printer *p, const ki_stmt *stmt)
{
  for (size_t i = 0; i < stmt->places.count; i++) {
    if (i) ki_put(p, ", ");
    ki_put_expr(p, stmt->places.items[i], KJ_LEVEL_POSTFIX);
  }
  kj_append_format(p->buffer,
                   stmt->op == KJIT_OP_STORE ? " = " : " %s= ", ki_op_table[stmt->op].text);
  if (stmt->places.count > 1) print_values(p, stmt->value);
  else ki_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
}

static void print_if(ki_printer *p, const ki_stmt *stmt)
{
  ki_put(p, "if ");
  ki_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
  print_body(p, &stmt->body);
  if (stmt->otherwise.count == 0) return;
  ki_put(p, " else");
  bool is_chain = stmt->otherwise.count == 1 && stmt->otherwise.items[0]->kind == KJ_STMT_IF;
  if (!is_chain) {
    print_body(p, &stmt->otherwise);
    return;
  }
  ki_put(p, " ");
  ki_put_place(p, stmt->otherwise.items[0]->location, " ");
  print_if(p, stmt->otherwise.items[0]);
}

static void print_while(ki_printer *p, const ki_stmt *stmt)
{
  ki_put(p, "while ");
  ki_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
  print_attributes(p, &stmt->attributes);
  print_body(p, &stmt->body);
}

static void print_for(ki_printer *p, const ki_stmt *stmt)
{
  ki_put(p, "for ");
  print_names(p, &stmt->decls);
  ki_put(p, " in ");
  if (stmt->range != KJ_ITEMS) kj_append_format(p->buffer, "%s(", ki_range_names[stmt->range]);
  ki_put_list(p, &stmt->args);
  if (stmt->range != KJ_ITEMS) ki_put(p, ")");
  print_attributes(p, &stmt->attributes);
  print_body(p, &stmt->body);
}

static void print_stmt(ki_printer *p, const ki_stmt *stmt)
{
  switch (stmt->kind) {
  case KJ_STMT_DECLARE: print_declare(p, stmt); break;
  case KJ_STMT_STORAGE: print_storage(p, stmt); break;
  case KJ_STMT_ASSIGN: print_assign(p, stmt); break;
  case KJ_STMT_EVALUATE: ki_put_expr(p, stmt->value, KJ_LEVEL_POSTFIX); break;
  case KJ_STMT_IF: print_if(p, stmt); break;
  case KJ_STMT_WHILE: print_while(p, stmt); break;
  case KJ_STMT_FOR: print_for(p, stmt); break;
  case KJ_STMT_BREAK: ki_put(p, "break"); break;
  case KJ_STMT_CONTINUE: ki_put(p, "continue"); break;
  case KJ_STMT_RETURN:
    ki_put(p, stmt->value ? "return " : "return");
    if (stmt->value) print_values(p, stmt->value);
    break;
  case KJ_STMT_ASSERT:
    ki_put(p, "assert ");
    ki_put_expr(p, stmt->value, KJ_LEVEL_CONDITIONAL);
    if (!stmt->message) break;
    ki_put(p, ", ");
    ki_put_string(p, stmt->message);
    break;
  case KJ_STMT_RAISE:
    ki_put(p, "raise ");
    ki_put_string(p, stmt->message);
    break;
  case KJ_STMT_PRINT:
    ki_put(p, "print(");
    ki_put_list(p, &stmt->args);
    ki_put(p, ")");
    break;
  }
}

static void print_body(ki_printer *p, const ki_stmts *body)
{
  ki_put(p, " {\n");
  p->indent++;
  for (size_t i = 0; i < body->count; i++) {
    start_line(p);
    if (ki_put_place(p, body->items[i]->location, "\n")) start_line(p);
    print_stmt(p, body->items[i]);
    ki_put(p, "\n");
  }
  p->indent--;
  start_line(p);
  ki_put(p, "}");
}

/* ---- declarations ---- */

static void print_parameter(ki_printer *p, const ki_decl *param)
{
  if (param->is_const) ki_put(p, "const ");
  ki_put_place(p, param->location, " ");
  ki_put(p, ki_printed_name(p->naming, param));
  if (param->is_func) ki_put(p, ": func");
  if (param->is_type) ki_put(p, ": " KJ_TYPE_WORD);
  print_annotation(p, param);
  if (!param->value) return;
  ki_put(p, " = ");
  ki_put_expr(p, param->value, KJ_LEVEL_CONDITIONAL);
}

/* The parameters as they were written, starting at a position in the shape (ki_function.shape). */
typedef struct written {
  const char *sign;
  ki_decl *const *param;
  ki_decl *const *tuple;
} written;

/* Prints the type, or the default, of an item. */
static void put_item(ki_printer *p, const ki_decl *item, bool is_value)
{
  ki_put_place(p, item->location, " ");
  if (is_value) ki_put_expr(p, item->value, KJ_LEVEL_CONDITIONAL);
  else if (item->type_expr) ki_put_type(p, item->type_expr);
  else ki_put(p, "_");
}

/* Prints the types or the defaults of a tuple's items. Moves `at` to the end of the tuple. */
static void put_items(ki_printer *p, written *at, bool are_values)
{
  size_t count = 0;
  ki_put(p, "(");
  for (at->sign++; *at->sign != KI_SHAPE_CLOSE; count++) {
    if (count) ki_put(p, ", ");
    if (*at->sign == KI_SHAPE_OPEN) {
      put_items(p, at, are_values);
      continue;
    }
    put_item(p, *at->param++, are_values);
    at->sign++;
  }
  at->sign++;
  ki_put(p, count == 1 ? ",)" : ")");
}

static void print_tuple(ki_printer *p, written *at)
{
  const ki_decl *tuple = *at->tuple++;
  written again = *at;
  if (tuple->is_const) ki_put(p, "const ");
  ki_put_place(p, tuple->location, " ");
  kj_append_format(p->buffer, "%s: ", tuple->name);
  put_items(p, at, false);
  if (!tuple->value) return;
  ki_put(p, " = ");
  put_items(p, &again, true);
}

static void print_written(ki_printer *p, const ki_function *function)
{
  const char *end = function->shape.items + function->shape.count;
  written at = { function->shape.items, function->params.items, function->tuples.items };
  while (at.sign < end) {
    if (at.sign > function->shape.items) ki_put(p, ", ");
    if (*at.sign == KI_SHAPE_OPEN) {
      print_tuple(p, &at);
      continue;
    }
    print_parameter(p, *at.param++);
    at.sign++;
  }
}

static void print_parameters(ki_printer *p, const ki_function *function)
{
  if (ki_prints_tuples(function)) {
    print_written(p, function);
    return;
  }
  for (size_t i = 0; i < function->params.count; i++) {
    if (i) ki_put(p, ", ");
    print_parameter(p, function->params.items[i]);
  }
}

static void print_function(ki_printer *p, const ki_function *function)
{
  kj_append_format(p->buffer, "%s%s %s(", function->is_extern ? "extern " : "",
                   function->is_kernel ? "kernel" : "func",
                   ki_printed_name(p->naming, function->decl));
  print_parameters(p, function);
  ki_put(p, ")");
  if (function->result) {
    ki_put(p, " -> ");
    ki_put_type(p, function->result);
  }
  print_attributes(p, &function->attributes);
  if (!function->is_extern) print_body(p, &function->body);
}

static void print_constant(ki_printer *p, const ki_decl *decl)
{
  kj_append_format(p->buffer, "%sconst %s", decl->value || decl->data ? "" : "extern ",
                   ki_printed_name(p->naming, decl));
  if (decl->data) ki_put_data_type(p, decl);
  else print_annotation(p, decl);
  if (!decl->value && !decl->data) return;
  ki_put(p, " = ");
  if (decl->data) ki_put_data(p, decl);
  else ki_put_expr(p, decl->value, KJ_LEVEL_CONDITIONAL);
}

static void print_struct(ki_printer *p, const ki_decl *decl)
{
  kj_append_format(p->buffer, "struct %s", ki_printed_name(p->naming, decl));
  print_attributes(p, &decl->attributes);
  ki_put(p, " {\n");
  for (size_t i = 0; i < decl->fields.count; i++) {
    kj_append_format(p->buffer, "  %s", decl->fields.items[i]->name);
    print_annotation(p, decl->fields.items[i]);
    ki_put(p, "\n");
  }
  ki_put(p, "}");
}

static void print_alone(ki_printer *p, const ki_decl *decl)
{
  ki_put_place(p, decl->location, "\n");
  if (decl->kind == KJ_DECL_FUNCTION) print_function(p, decl->function);
  else if (decl->kind == KJ_DECL_STRUCT) print_struct(p, decl);
  else print_constant(p, decl);
  ki_put(p, "\n");
}

void ki_print_decl(const kjit_module *module, const ki_naming *naming, const ki_decl *decl,
                   kj_buffer *buffer)
{
  print_alone(&(ki_printer){ .module = module, .naming = naming, .buffer = buffer }, decl);
}

/* Prints a declaration. Functions and structs are separated by empty lines, but consecutive
 * constants are not. */
static void print_decl(ki_printer *p, size_t index)
{
  const ki_decl *decl = p->module->decls.items[index];
  bool follows = index > 0 || p->module->imports.count;
  bool together = index > 0 && decl->kind == KJ_DECL_CONST &&
                  p->module->decls.items[index - 1]->kind == KJ_DECL_CONST;
  if (follows && !together) ki_put(p, "\n");
  print_alone(p, decl);
}

static void print_module(ki_printer *p)
{
  kj_append(p->buffer, "", 0);
  for (size_t i = 0; i < p->module->imports.count; i++) {
    ki_put(p, "import ");
    ki_put_string(p, p->module->imports.items[i].name);
    ki_put(p, "\n");
  }
  for (size_t i = 0; i < p->module->decls.count; i++) print_decl(p, i);
}

void ki_print_module(const kjit_module *module, kj_buffer *buffer)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    ki_naming naming;
    ki_choose_names(&naming, module, &arena);
    print_module(&(ki_printer){
      .module = module, .naming = &naming, .buffer = buffer, .has_places = names_places(module) });
  } else buffer->failed = 1;
  kj_free_arena(&arena);
}
