/* Verifies statements, and the lvalues that they modify. */
#include <string.h>

#include "ir/verify.h"

/* ---- lvalues that an assignment or an atomic operation may change ---- */

static const char *const decl_kinds[] = {
  [KJ_DECL_FUNCTION] = "a function",
  [KJ_DECL_CONST] = "a constant",
  [KJ_DECL_STRUCT] = "a struct",
  [KJ_DECL_PARAM] = "a parameter",
  [KJ_DECL_LET] = "a `let`",
  [KJ_DECL_VAR] = "a `var`",
  [KJ_DECL_SHARED] = "shared memory",
  [KJ_DECL_LOCAL] = "local memory",
  [KJ_DECL_LOOP] = "the variable of a loop",
};

static void verify_name_place(ki_verifier *v, ki_expr *place, bool is_atomic)
{
  KJ_ASSERT(place->kind == KJ_EXPR_DECL);
  ki_decl *decl = place->decl;
  bool is_memory = decl->kind == KJ_DECL_SHARED || decl->kind == KJ_DECL_LOCAL;
  if (is_memory && decl->type_expr->kind == KJ_TYPE_STATIC_ARRAY)
    ki_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is an array and cannot be assigned: assign its elements, `%s[i]`",
                   decl->name, decl->name);
  else if (decl->kind == KJ_DECL_SHARED) return;
  else if (is_atomic)
    ki_fail_verify(
      v, place->location, KJIT_ERROR_TYPE,
      "an atomic function needs an array element, `a[i]`, or shared memory, but `%s` is %s",
      decl->name, decl_kinds[decl->kind]);
  else if (decl->kind == KJ_DECL_VAR) decl->is_assigned = true;
  else if (decl->kind == KJ_DECL_LET)
    ki_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is declared with `let` and cannot be changed: declare it with `var %s`",
                   decl->name, decl->name);
  else if (!is_memory)
    ki_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is %s and cannot be changed: copy it to a `var`", decl->name,
                   decl_kinds[decl->kind]);
}

/* Verifies the root of an lvalue: the array that contains the element, or the variable that
 * contains the field. Type inference checks that the field belongs to a struct that can be modified
 * and is not a property of an array. */
static void verify_root(ki_verifier *v, const ki_expr *place)
{
  const ki_expr *root = place;
  bool has_index = false;
  for (; root->kind == KJ_EXPR_INDEX || root->kind == KJ_EXPR_FIELD; root = root->x)
    has_index |= root->kind == KJ_EXPR_INDEX;
  /* an item in a tuple cannot be assigned to; the elements of an item that is an array can */
  bool is_item = root->kind == KJ_EXPR_TUPLE && place->x == root;
  if (is_item || root->kind == KJ_EXPR_INT || root->kind == KJ_EXPR_FLOAT)
    ki_fail_verify(
      v, place->location, KJIT_ERROR_TYPE,
      "this value cannot be changed: only a variable, an array element or a field of these can");
  if (root->kind != KJ_EXPR_DECL) return;
  ki_decl *decl = root->decl;
  if (decl->kind == KJ_DECL_CONST)
    ki_fail_verify(v, place->location, KJIT_ERROR_TYPE, "`%s` is a constant and cannot be changed",
                   decl->name);
  if (decl->kind == KJ_DECL_VAR) decl->is_assigned = true;
  bool is_fixed =
    decl->kind == KJ_DECL_PARAM && decl->type_expr && decl->type_expr->kind == KJ_TYPE_FIXED;
  bool read_only = is_fixed ? ki_type(v->module->types, decl->type_expr->type)->read_only
                            : decl->type_expr && decl->type_expr->read_only;
  if (decl->kind == KJ_DECL_PARAM && read_only)
    ki_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   "`%s` is declared `const`, so %s cannot be changed", decl->name,
                   has_index ? "its elements" : "what it points to");
}

void ki_verify_place(ki_verifier *v, ki_expr *place, bool is_atomic)
{
  if (place->kind == KJ_EXPR_NAME && !ki_find_visible(v, place->location, place->name)) {
    if (!ki_is_known_name(v, place->location, place->name))
      ki_fail_unknown(v, place->location, place->name, !is_atomic);
    else
      ki_fail_verify(v, place->location, KJIT_ERROR_NAME,
                     "`%s` is built in and cannot be changed: `var %s = ...` declares a variable",
                     place->name, place->name);
    return;
  }
  ki_verify_expr(v, place,
                 place->kind == KJ_EXPR_DECL || place->kind == KJ_EXPR_NAME ? KJ_ROLE_ARGUMENT
                                                                            : KJ_ROLE_VALUE);
  if (place->kind == KJ_EXPR_DECL) verify_name_place(v, place, is_atomic);
  else if (place->kind == KJ_EXPR_INDEX || place->kind == KJ_EXPR_FIELD) verify_root(v, place);
  else
    ki_fail_verify(v, place->location, KJIT_ERROR_TYPE,
                   is_atomic
                     ? "an atomic function needs an array element, `a[i]`, or shared memory"
                     : "expected a variable to assign to: a `var`, or an array element, `a[i]`");
}

/* ---- locals are declared before their use, and statements are where they are allowed ---- */

/* ---- scopes ---- */

void ki_show_local(ki_verifier *v, const ki_decl *decl)
{
  KJ_ASSERT(v->visible && decl->function == v->function);
  v->visible[decl->index] = true;
  KJ_PUSH(v->arena, &v->shown, decl->index);
}

static void hide(ki_verifier *v, size_t kept)
{
  while (v->shown.count > kept) v->visible[v->shown.items[--v->shown.count]] = false;
}

/* ---- statements ---- */

/* Returns the number of values of an expression, or 0 if it depends on types. */
static size_t count_values(const ki_expr *value)
{
  if (value->kind == KJ_EXPR_TUPLE) return value->args.count;
  if (value->kind != KJ_EXPR_CALL || value->x->kind != KJ_EXPR_BUILTIN || value->args.count != 1)
    return 0;
  bool is_grid =
    value->x->builtin->id == KJ_BUILTIN_GRID || value->x->builtin->id == KJ_BUILTIN_GRIDSIZE;
  const ki_expr *rank = value->args.items[0];
  return is_grid && rank->kind == KJ_EXPR_INT && rank->integer <= 3 ? (size_t)rank->integer : 0;
}

static void verify_count(ki_verifier *v, const ki_expr *value, size_t names, const char *what)
{
  size_t values = count_values(value);
  if (names > 1 && values && values != names)
    ki_fail_verify(v, value->location, KJIT_ERROR_TYPE,
                   "got %zu %s for %zu value%s; both numbers must be equal", names, what, values,
                   values == 1 ? "" : "s");
}

static void verify_declare(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_DECLARE && stmt->decls.count);
  if (stmt->value) ki_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  ki_verify_type(v, stmt->decls.items[0]->type_expr, false);
  if (stmt->value) verify_count(v, stmt->value, stmt->decls.count, "names");
  for (size_t i = 0; i < stmt->decls.count; i++) ki_show_local(v, stmt->decls.items[i]);
}

static void verify_storage(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_STORAGE && stmt->decls.count == 1);
  ki_decl *decl = stmt->decls.items[0];
  ki_type_expr *type = decl->type_expr;
  bool is_shared = decl->kind == KJ_DECL_SHARED, is_array = type->kind == KJ_TYPE_STATIC_ARRAY;
  const char *word = is_shared ? "shared" : "local";
  ki_verify_type(v, type, true);
  ki_verify_attributes(v, &decl->attributes, KJ_PLACE_ARRAY);
  const ki_type_expr *element = is_array ? type->element : type;
  bool is_whole = element->kind == KJ_TYPE_FIXED &&
                  ki_type(v->module->types, element->type)->class_ != KJ_CLASS_ARRAY;
  bool is_scalar = element->kind == KJ_TYPE_DTYPE || element->kind == KJ_TYPE_VECTOR ||
                   element->kind == KJ_TYPE_PARAMETER || is_whole;
  if (element->kind == KJ_TYPE_TUPLE)
    ki_fail_verify(v, type->location, KJIT_ERROR_UNSUPPORTED,
                   "tuples in %s memory are not supported", word);
  else if (!is_scalar && (element->kind == KJ_TYPE_FIXED || element->kind == KJ_TYPE_ARRAY))
    ki_fail_verify(v, type->location, KJIT_ERROR_TYPE, "a %s array needs extents: `%s %s: f32[16]`",
                   word, word, decl->name);
  if (is_array && type->extents.count == 0 && !is_shared)
    ki_fail_verify(v, type->location, KJIT_ERROR_TYPE,
                   "a local array needs extents: `local %s: f32[16]`", decl->name);
  ki_show_local(v, decl);
}

static void verify_assign(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_ASSIGN && stmt->places.count);
  ki_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  for (size_t i = 0; i < stmt->places.count; i++) ki_verify_place(v, stmt->places.items[i], false);
  verify_count(v, stmt->value, stmt->places.count, "targets");
}

static void verify_if(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_IF);
  ki_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  ki_verify_body(v, &stmt->body);
  ki_verify_body(v, &stmt->otherwise);
}

static void verify_loop_body(ki_verifier *v, ki_stmt *stmt)
{
  const ki_stmt *loop = v->loop;
  v->loop = stmt;
  ki_verify_body(v, &stmt->body);
  v->loop = loop;
}

/* Rejects `@interleave` on a loop that does not support it. */
static void refuse_interleave(ki_verifier *v, const ki_stmt *stmt, bool is_unfit)
{
  const ki_attribute *given = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_INTERLEAVE);
  if (!given || !is_unfit) return;
  ki_fail_verify(v, given->location, KJIT_ERROR_TYPE,
                 "`@interleave` is supported only for loops over `range` without `@static`");
}

static void verify_while(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_WHILE);
  ki_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
  ki_verify_attributes(v, &stmt->attributes, KJ_PLACE_LOOP);
  refuse_interleave(v, stmt, true);
  const ki_attribute *is_static = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_STATIC);
  if (is_static)
    ki_fail_verify(v, is_static->location, KJIT_ERROR_TYPE,
                   "`@static` needs a `range`; the number of iterations of a `while` is not known "
                   "at compile time");
  verify_loop_body(v, stmt);
}

static const char *range_name(const ki_stmt *stmt)
{
  KJ_ASSERT(stmt->range != KJ_ITEMS);
  return ki_range_names[stmt->range];
}

/* Returns whether the expression cannot be a tuple, whatever its operands' types. */
static bool is_number(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_INT || expr->kind == KJ_EXPR_FLOAT || expr->kind == KJ_EXPR_UNARY ||
         expr->kind == KJ_EXPR_BINARY;
}

static void verify_range(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_FOR);
  size_t names = stmt->decls.count, count = stmt->args.count;
  ki_verify_exprs(v, &stmt->args, KJ_ROLE_VALUE);
  if (stmt->range == KJ_ITEMS) {
    if (is_number(stmt->args.items[0]))
      ki_fail_verify(v, stmt->args.items[0]->location, KJIT_ERROR_TYPE,
                     "expected a tuple or a range, found a number: write `for i in range(n)`");
    return;
  }
  if (count < 1 || count > 3)
    ki_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "`%s` takes 1 to 3 arguments, got %zu",
                   range_name(stmt), count);
  else if (stmt->range == KJ_RANGE && names != 1 && (count != 1 || is_number(stmt->args.items[0])))
    ki_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "`range` has one loop variable, got %zu",
                   names);
  else if (stmt->range != KJ_RANGE && names != count &&
           (count != 1 || is_number(stmt->args.items[0])))
    ki_fail_verify(v, stmt->location, KJIT_ERROR_TYPE,
                   "`%s` has one loop variable for each extent: got %zu variables for %zu extents",
                   range_name(stmt), names, count);
}

static void verify_grid_loop(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(ki_is_shared_out(stmt->range));
  ki_summary *summary = &v->summaries[v->decl->index];
  if (v->range)
    ki_fail_verify(v, stmt->location, KJIT_ERROR_TYPE, "a %s inside a %s", range_name(stmt),
                   range_name(v->range));
  else if (!summary->forbidden) {
    summary->forbidden = stmt->range == KJ_GRID_RANGE ? "a grid_range" : "a block_range";
    summary->forbidden_at = stmt->location;
  }
  if (stmt->attributes.count)
    ki_fail_verify(v, stmt->attributes.items[0].location, KJIT_ERROR_TYPE,
                   "`@%s` cannot be applied to a %s", stmt->attributes.items[0].info->name,
                   range_name(stmt));
}

/* Verifies a loop whose iterations are not distributed over threads. */
static void verify_own_loop(ki_verifier *v, ki_stmt *stmt)
{
  const ki_attribute *is_static = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_STATIC),
                     *unroll = ki_get_attribute(&stmt->attributes, KJ_ATTRIBUTE_UNROLL);
  ki_verify_attributes(v, &stmt->attributes, KJ_PLACE_LOOP);
  refuse_interleave(v, stmt, is_static || stmt->range != KJ_RANGE);
  if (is_static && unroll)
    ki_fail_verify(v, unroll->location, KJIT_ERROR_TYPE,
                   "`@static` already copies the body for each iteration, so `@unroll` has no "
                   "effect: omit one of them");
  if (is_static && stmt->range == KJ_ITEMS)
    ki_fail_verify(v, is_static->location, KJIT_ERROR_TYPE,
                   "omit `@static`: a loop over a tuple is always static");
}

static void verify_for(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_FOR);
  verify_range(v, stmt);
  const ki_stmt *range = v->range;
  if (ki_is_shared_out(stmt->range)) verify_grid_loop(v, stmt);
  else verify_own_loop(v, stmt);
  if (ki_is_shared_out(stmt->range) && !range) v->range = stmt;
  size_t kept = v->shown.count;
  for (size_t i = 0; i < stmt->decls.count; i++) ki_show_local(v, stmt->decls.items[i]);
  verify_loop_body(v, stmt);
  hide(v, kept);
  v->range = range;
}

static void verify_jump(ki_verifier *v, const ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_BREAK || stmt->kind == KJ_STMT_CONTINUE);
  const char *word = stmt->kind == KJ_STMT_BREAK ? "break" : "continue";
  if (!v->loop)
    ki_fail_verify(v, stmt->location, KJIT_ERROR_SYNTAX, "`%s` outside of a loop", word);
  else if (stmt->kind == KJ_STMT_BREAK && v->loop->kind == KJ_STMT_FOR &&
           ki_is_shared_out(v->loop->range))
    ki_fail_verify(v, stmt->location, KJIT_ERROR_TYPE,
                   "`break` cannot leave a %s, because its iterations are independent; `continue` "
                   "ends an iteration",
                   range_name(v->loop));
}

static void verify_return(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_RETURN);
  if (v->range)
    ki_fail_verify(v, stmt->location, KJIT_ERROR_TYPE,
                   "`return` cannot leave a %s, because its iterations are independent; `continue` "
                   "ends an iteration",
                   range_name(v->range));
  if (stmt->value && v->function->is_kernel)
    ki_fail_verify(v, stmt->value->location, KJIT_ERROR_TYPE,
                   "a kernel cannot return a value; it writes its results to array arguments");
  if (stmt->value) ki_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
}

static void verify_evaluate(ki_verifier *v, ki_stmt *stmt)
{
  ki_verify_expr(v, stmt->value, KJ_ROLE_VALUE);
}

static void verify_print(ki_verifier *v, ki_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_STMT_PRINT);
  for (size_t i = 0; i < stmt->args.count; i++)
    if (stmt->args.items[i]->kind != KJ_EXPR_STRING)
      ki_verify_expr(v, stmt->args.items[i], KJ_ROLE_VALUE);
}

static void verify_stmt(ki_verifier *v, ki_stmt *stmt)
{
  switch (stmt->kind) {
  case KJ_STMT_DECLARE: verify_declare(v, stmt); break;
  case KJ_STMT_STORAGE: verify_storage(v, stmt); break;
  case KJ_STMT_ASSIGN: verify_assign(v, stmt); break;
  case KJ_STMT_EVALUATE: verify_evaluate(v, stmt); break;
  case KJ_STMT_IF: verify_if(v, stmt); break;
  case KJ_STMT_WHILE: verify_while(v, stmt); break;
  case KJ_STMT_FOR: verify_for(v, stmt); break;
  case KJ_STMT_BREAK:
  case KJ_STMT_CONTINUE: verify_jump(v, stmt); break;
  case KJ_STMT_RETURN: verify_return(v, stmt); break;
  case KJ_STMT_ASSERT: ki_verify_expr(v, stmt->value, KJ_ROLE_VALUE); break;
  case KJ_STMT_RAISE: break;
  case KJ_STMT_PRINT: verify_print(v, stmt); break;
  }
}

void ki_verify_body(ki_verifier *v, const ki_stmts *body)
{
  size_t kept = v->shown.count;
  for (size_t i = 0; i < body->count; i++) verify_stmt(v, body->items[i]);
  hide(v, kept);
}
