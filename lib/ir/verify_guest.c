/* Reports operations that guest code (untrusted code) must not use: pointers, built-ins without
 * KJ_GUEST, and extern funcs that the guest declares itself. The functions visit the finished tree,
 * so they find every use of a name.
 *
 * Types of arguments, and types of the results of the application's funcs, are known only during
 * type inference. refuse_pointer in typing/infer_expr.c checks these types. */
#include "ir/verify.h"

static void walk_type(ki_verifier *v, const ki_type_expr *type);
static void walk_stmts(ki_verifier *v, const ki_stmts *body);

/* ---- expressions and types ---- */

static void walk_expr(ki_verifier *v, const ki_expr *expr)
{
  if (!expr) return;
  if (expr->kind == KJ_EXPR_BUILTIN && !(expr->builtin->flags & KJ_GUEST))
    ki_fail_verify(v, expr->location, KJIT_ERROR_REFUSED, "guest code must not use `%s`",
                   expr->builtin->name);
  const ki_expr *children[] = { expr->x, expr->y, expr->z };
  for (size_t i = 0; i < sizeof children / sizeof *children; i++) walk_expr(v, children[i]);
  for (size_t i = 0; i < expr->args.count; i++) walk_expr(v, expr->args.items[i]);
  walk_type(v, expr->type_expr);
}

static void walk_type(ki_verifier *v, const ki_type_expr *type)
{
  if (!type) return;
  bool is_pointer = type->kind == KJ_TYPE_POINTER ||
                    (type->kind == KJ_TYPE_FIXED && ki_holds_pointer(v->module->types, type->type));
  if (is_pointer)
    ki_fail_verify(v, type->location, KJIT_ERROR_REFUSED, "guest code must not use pointers");
  walk_expr(v, type->expr);
  walk_type(v, type->element);
  for (size_t i = 0; i < type->extents.count; i++) walk_expr(v, type->extents.items[i]);
  for (size_t i = 0; i < type->items.count; i++) walk_type(v, type->items.items[i]);
}

static void walk_attributes(ki_verifier *v, const ki_attributes *attributes)
{
  for (size_t i = 0; i < attributes->count; i++)
    for (size_t j = 0; j < attributes->items[i].values.count; j++)
      walk_expr(v, attributes->items[i].values.items[j]);
}

/* ---- declarations and statements ---- */

static void walk_decl(ki_verifier *v, const ki_decl *decl)
{
  walk_type(v, decl->type_expr);
  walk_expr(v, decl->value);
  walk_attributes(v, &decl->attributes);
  for (size_t i = 0; i < decl->fields.count; i++) walk_decl(v, decl->fields.items[i]);
}

static void walk_stmt(ki_verifier *v, const ki_stmt *stmt)
{
  walk_expr(v, stmt->value);
  for (size_t i = 0; i < stmt->places.count; i++) walk_expr(v, stmt->places.items[i]);
  for (size_t i = 0; i < stmt->args.count; i++) walk_expr(v, stmt->args.items[i]);
  for (size_t i = 0; i < stmt->decls.count; i++) {
    /* a declaration can share the expression of its statement, which has been visited already */
    const ki_decl *decl = stmt->decls.items[i];
    walk_type(v, decl->type_expr);
    walk_attributes(v, &decl->attributes);
    if (decl->value != stmt->value) walk_expr(v, decl->value);
  }
  walk_attributes(v, &stmt->attributes);
  walk_stmts(v, &stmt->body);
  walk_stmts(v, &stmt->otherwise);
}

static void walk_stmts(ki_verifier *v, const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) walk_stmt(v, body->items[i]);
}

static void walk_function(ki_verifier *v, const ki_function *function)
{
  if (function->is_extern)
    ki_fail_verify(
      v, function->decl->location, KJIT_ERROR_REFUSED,
      "guest code cannot declare an extern function; the application can declare `%s` in "
      "a trusted source that the guest imports",
      function->decl->name);
  for (size_t i = 0; i < function->params.count; i++) walk_decl(v, function->params.items[i]);
  walk_type(v, function->result);
  walk_attributes(v, &function->attributes);
  walk_stmts(v, &function->body);
}

/* ---- expressions ---- */

/* Checks that an expression is pure: it does not store, synchronize or print. */
static void walk_pure(ki_verifier *v, const ki_expr *expr)
{
  if (!expr) return;
  if (expr->kind == KJ_EXPR_BUILTIN && !(expr->builtin->flags & KJ_PURE))
    ki_fail_verify(v, expr->location, KJIT_ERROR_REFUSED,
                   "an expression cannot use `%s`, because it has an effect or depends on more "
                   "than its arguments",
                   expr->builtin->name);
  const ki_expr *children[] = { expr->x, expr->y, expr->z };
  for (size_t i = 0; i < sizeof children / sizeof *children; i++) walk_pure(v, children[i]);
  for (size_t i = 0; i < expr->args.count; i++) walk_pure(v, expr->args.items[i]);
}

void ki_verify_expressions(ki_verifier *v)
{
  const ki_decls *decls = &v->module->decls;
  for (size_t i = 0; i < decls->count; i++) {
    const ki_decl *decl = decls->items[i];
    if (decl->kind != KJ_DECL_FUNCTION || !decl->function->is_expression) continue;
    KJ_ASSERT(decl->function->body.count == 1);
    walk_pure(v, decl->function->body.items[0]->value);
  }
}

/* ---- guests ---- */

void ki_verify_guests(ki_verifier *v)
{
  const ki_decls *decls = &v->module->decls;
  for (size_t i = 0; i < decls->count; i++) {
    const ki_decl *decl = decls->items[i];
    if (!decl->is_guest) continue;
    v->module->has_guest = true;
    if (decl->kind == KJ_DECL_FUNCTION) walk_function(v, decl->function);
    else walk_decl(v, decl);
  }
}
