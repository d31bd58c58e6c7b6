/* The builder's statements: public functions that append a statement to the innermost open block.
 * Functions such as kjit_build_if open a block, which kjit_build_end closes. */
#include <string.h>

#include "ir/builder.h"

static ki_stmt *add_stmt(kjit_builder *builder, ki_stmt_kind kind)
{
  ki_open_block *frame = ki_top_frame(builder);
  ki_stmt *stmt = KJ_NEW(ki_builder_arena(builder), ki_stmt);
  stmt->kind = kind;
  stmt->location = builder->location;
  KJ_PUSH(ki_builder_arena(builder), frame->body, stmt);
  return stmt;
}

static kjit_node declare(kjit_builder *builder, ki_stmt *stmt, ki_decl *decl)
{
  KJ_PUSH(ki_builder_arena(builder), &stmt->decls, decl);
  return ki_add_decl(builder, decl);
}

kjit_node kjit_build_let(kjit_builder *builder, const char *name, kjit_node value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_expr *expr = ki_use_node(builder, value);
  ki_decl *decl = ki_build_local(builder, KJ_DECL_LET, name, "t");
  ki_stmt *stmt = add_stmt(builder, KJ_STMT_DECLARE);
  stmt->value = decl->value = expr;
  return declare(builder, stmt, decl);
}

kjit_node kjit_build_var(kjit_builder *builder, const char *name, kjit_type type, kjit_node value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_type_expr *annotation = ki_use_type(builder, type);
  ki_expr *expr = value ? ki_use_node(builder, value) : NULL;
  ki_decl *decl = ki_build_local(builder, KJ_DECL_VAR, name, "v");
  ki_stmt *stmt = add_stmt(builder, KJ_STMT_DECLARE);
  decl->type_expr = annotation;
  decl->is_open = !expr;
  stmt->value = decl->value = expr;
  return declare(builder, stmt, decl);
}

static kjit_node add_storage(kjit_builder *builder, ki_decl_kind kind, const char *name,
                             kjit_type element, const kjit_node *extents, size_t rank)
{
  bool is_shared = kind == KJ_DECL_SHARED, is_dynamic = is_shared && rank == 1 && !extents;
  if (!ki_is_type_of_node(element) && !ki_is_element(builder->module->types, element))
    ki_fail_build(
      builder, KJIT_ERROR_TYPE,
      "the elements of a shared or local array must be scalars, vectors, structs or pointers");
  if (rank > KJ_MAX_RANK)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "an array has at most %d dimensions, not %zu",
                  KJ_MAX_RANK, rank);
  kj_arena *arena = ki_builder_arena(builder);
  ki_type_expr *scalar = ki_use_type(builder, element), *array = KJ_NEW(arena, ki_type_expr);
  array->kind = KJ_TYPE_STATIC_ARRAY;
  array->location = builder->location;
  array->element = scalar;
  if (!is_dynamic) ki_use_nodes(builder, extents, rank, &array->extents);
  ki_decl *decl = ki_build_local(builder, kind, name, is_shared ? "s" : "a");
  decl->type_expr = rank ? array : scalar;
  return declare(builder, add_stmt(builder, KJ_STMT_STORAGE), decl);
}

kjit_node kjit_build_shared(kjit_builder *builder, const char *name, kjit_type element,
                            const kjit_node *extents, size_t rank)
{
  return KJ_ENTER_BUILDER(builder)
           ? add_storage(builder, KJ_DECL_SHARED, name, element, extents, rank)
           : 0;
}

kjit_node kjit_build_local(kjit_builder *builder, const char *name, kjit_type element,
                           const kjit_node *extents, size_t rank)
{
  return KJ_ENTER_BUILDER(builder)
           ? add_storage(builder, KJ_DECL_LOCAL, name, element, extents, rank)
           : 0;
}

void kjit_build_assign(kjit_builder *builder, kjit_node place, kjit_op op, kjit_node value)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  bool is_compound = (unsigned)op < KJIT_OP_COUNT && (ki_op_table[op].class_ <= KJ_OP_POWER);
  if (op != KJIT_OP_STORE && !is_compound)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "the operator of an assignment must be KJIT_OP_STORE or the operator of a "
                  "compound assignment, such as KJIT_OP_ADD");
  ki_expr *expr = ki_use_node(builder, place), *result = ki_use_node(builder, value);
  ki_stmt *stmt = add_stmt(builder, KJ_STMT_ASSIGN);
  stmt->op = op;
  stmt->value = result;
  KJ_PUSH(ki_builder_arena(builder), &stmt->places, expr);
}

void kjit_build_evaluate(kjit_builder *builder, kjit_node call)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  ki_expr *expr = ki_use_node(builder, call);
  if (expr->kind != KJ_EXPR_CALL)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "only a call can be a statement on its own; this expression is not a call");
  add_stmt(builder, KJ_STMT_EVALUATE)->value = expr;
}

void kjit_build_print(kjit_builder *builder, const kjit_node *items, size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  if (!count || !items)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_print needs at least one item");
  ki_exprs list = { 0 };
  ki_use_nodes(builder, items, count, &list);
  add_stmt(builder, KJ_STMT_PRINT)->args = list;
}

void kjit_build_raise(kjit_builder *builder, const char *message)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  if (!message) ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_raise: the message is NULL");
  const char *copy = ki_copy_text(builder, message);
  add_stmt(builder, KJ_STMT_RAISE)->message = copy;
}

void kjit_build_assert(kjit_builder *builder, kjit_node condition, const char *message)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  ki_expr *expr = ki_use_node(builder, condition);
  ki_stmt *stmt = add_stmt(builder, KJ_STMT_ASSERT);
  stmt->value = expr;
  if (message) stmt->message = ki_copy_text(builder, message);
}

static void open_block(kjit_builder *builder, ki_stmt *stmt)
{
  ki_push_frame(builder, stmt->kind == KJ_STMT_IF ? KJ_FRAME_IF : KJ_FRAME_LOOP, stmt, &stmt->body);
}

static void open_conditional(kjit_builder *builder, ki_stmt_kind kind, kjit_node condition)
{
  ki_expr *expr = ki_use_node(builder, condition);
  ki_stmt *stmt = add_stmt(builder, kind);
  stmt->value = expr;
  open_block(builder, stmt);
}

void kjit_build_if(kjit_builder *builder, kjit_node condition)
{
  if (KJ_ENTER_BUILDER(builder)) open_conditional(builder, KJ_STMT_IF, condition);
}

void kjit_build_else(kjit_builder *builder)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  ki_open_block *frame = ki_top_frame(builder);
  if (frame->kind != KJ_FRAME_IF)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_else without an open kjit_build_if");
  frame->kind = KJ_FRAME_ELSE;
  frame->body = &frame->stmt->otherwise;
}

void kjit_build_while(kjit_builder *builder, kjit_node condition)
{
  if (KJ_ENTER_BUILDER(builder)) open_conditional(builder, KJ_STMT_WHILE, condition);
}

static ki_stmt *add_for(kjit_builder *builder, ki_range range, const ki_exprs *args)
{
  ki_stmt *stmt = add_stmt(builder, KJ_STMT_FOR);
  stmt->range = range;
  stmt->args = *args;
  return stmt;
}

kjit_node kjit_build_for_range(kjit_builder *builder, const char *name, kjit_node first,
                               kjit_node stop, kjit_node step)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_exprs args = { 0 };
  if (first) ki_use_nodes(builder, &first, 1, &args);
  else if (step) {
    ki_expr *zero = ki_make_literal(builder, KJ_WEAK_INT, &(int64_t){ 0 });
    KJ_PUSH(ki_builder_arena(builder), &args, zero);
  }
  ki_use_nodes(builder, &stop, 1, &args);
  if (step) ki_use_nodes(builder, &step, 1, &args);
  ki_stmt *stmt = add_for(builder, KJ_RANGE, &args);
  kjit_node variable = declare(builder, stmt, ki_build_local(builder, KJ_DECL_LOOP, name, "i"));
  open_block(builder, stmt);
  return variable;
}

kjit_node kjit_build_for_items(kjit_builder *builder, const char *name, kjit_node value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_exprs args = { 0 };
  ki_use_nodes(builder, &value, 1, &args);
  ki_stmt *stmt = add_for(builder, KJ_ITEMS, &args);
  kjit_node variable = declare(builder, stmt, ki_build_local(builder, KJ_DECL_LOOP, name, "v"));
  open_block(builder, stmt);
  return variable;
}

static void add_grid_loop(kjit_builder *builder, ki_range range, const kjit_node *extents,
                          size_t rank, kjit_node *variables)
{
  if (rank < 1 || rank > 3 || !variables)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "a grid must have 1, 2 or 3 dimensions and one variable for each dimension");
  ki_exprs args = { 0 };
  ki_use_nodes(builder, extents, rank, &args);
  ki_stmt *stmt = add_for(builder, range, &args);
  for (size_t i = 0; i < rank; i++)
    variables[i] = declare(builder, stmt, ki_build_local(builder, KJ_DECL_LOOP, NULL, "i"));
  open_block(builder, stmt);
}

/* Sets the output nodes to 0, so that the application can pass them to further calls if this call
 * fails. */
static void clear_nodes(kjit_node *variables, size_t rank)
{
  for (size_t i = 0; variables && i < rank && i < 3; i++) variables[i] = 0;
}

void kjit_build_for_grid(kjit_builder *builder, const kjit_node *extents, size_t rank,
                         kjit_node *variables)
{
  clear_nodes(variables, rank);
  if (KJ_ENTER_BUILDER(builder)) add_grid_loop(builder, KJ_GRID_RANGE, extents, rank, variables);
}

void kjit_build_for_block(kjit_builder *builder, const kjit_node *extents, size_t rank,
                          kjit_node *variables)
{
  clear_nodes(variables, rank);
  if (KJ_ENTER_BUILDER(builder)) add_grid_loop(builder, KJ_BLOCK_RANGE, extents, rank, variables);
}

void kjit_build_end(kjit_builder *builder)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  if (ki_top_frame(builder)->kind == KJ_FRAME_FUNCTION) {
    ki_function *function = builder->function;
    function->local_count = (uint32_t)(function->params.count + function->locals.count);
    builder->function = NULL;
  }
  builder->frames.count--;
}

void kjit_build_break(kjit_builder *builder)
{
  if (KJ_ENTER_BUILDER(builder)) add_stmt(builder, KJ_STMT_BREAK);
}

void kjit_build_continue(kjit_builder *builder)
{
  if (KJ_ENTER_BUILDER(builder)) add_stmt(builder, KJ_STMT_CONTINUE);
}

void kjit_build_return(kjit_builder *builder, kjit_node value)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  ki_expr *expr = value ? ki_use_node(builder, value) : NULL;
  add_stmt(builder, KJ_STMT_RETURN)->value = expr;
}
