/* Resolves names, and checks that each declaration, built-in or field is allowed where it is
 * used. */
#include <string.h>

#include "ir/expr.h"
#include "ir/foreign_syntax.h"
#include "ir/near_name.h"
#include "ir/verify.h"

/* ---- unknown names ---- */

static const char *find_near(ki_verifier *v, const char *name)
{
  ki_near near = { .name = name };
  for (size_t i = 0; v->function && i < v->function->params.count; i++)
    ki_consider(&near, v->function->params.items[i]->name);
  for (size_t i = 0; v->function && i < v->function->locals.count; i++)
    ki_consider(&near, v->function->locals.items[i]->name);
  for (size_t i = 0; i < v->module->decls.count; i++)
    ki_consider(&near, v->module->decls.items[i]->name);
  for (int i = 0; i < KJ_BUILTIN_COUNT; i++) ki_consider(&near, ki_builtin_table[i].name);
  for (int i = 0; i < KJ_RANGE_COUNT; i++) ki_consider(&near, ki_range_names[i]);
  for (kjit_type type = KJIT_BOOL; type < KJIT_SCALAR_COUNT; type++)
    ki_consider(&near, ki_type(v->module->types, type)->name);
  return near.best;
}

static bool is_local_name(const ki_verifier *v, const char *name)
{
  for (size_t i = 0; v->function && i < v->function->locals.count; i++)
    if (strcmp(v->function->locals.items[i]->name, name) == 0) return true;
  return false;
}

void ki_fail_unknown(ki_verifier *v, kj_location location, const char *name, bool is_assigned)
{
  const char *sentence = ki_explain_name(v->arena, name);
  if (sentence) {
    ki_fail_verify(v, location, KJIT_ERROR_NAME, "%s", sentence);
    return;
  }
  const char *near = find_near(v, name);
  const char *hint = near ? kj_format(v->arena, "; did you mean `%s`?", near) : "";
  if (is_local_name(v, name)) hint = ": its declaration is in another block or comes later";
  if (is_assigned)
    ki_fail_verify(v, location, KJIT_ERROR_NAME,
                   "`%s` is not declared: `var %s = ...` declares a variable%s", name, name,
                   near ? hint : "");
  else ki_fail_verify(v, location, KJIT_ERROR_NAME, "`%s` is not declared%s", name, hint);
}

/* Finds a parameter of the function. A parameter's type can refer to a later parameter. */
static ki_decl *find_parameter(const ki_verifier *v, const char *name)
{
  for (size_t i = 0; v->in_parameters && i < v->function->params.count; i++)
    if (strcmp(v->function->params.items[i]->name, name) == 0) return v->function->params.items[i];
  return NULL;
}

static ki_decl *find_in(const kj_map *map, const char *name)
{
  const kj_map_entry *entry = kj_find_entry(map, name, strlen(name));
  return entry ? entry->value : NULL;
}

ki_decl *ki_find_visible(const ki_verifier *v, kj_location location, const char *name)
{
  const kj_sources *sources = &v->module->sources;
  bool is_library = location.file < sources->count && sources->items[location.file].library;
  ki_decl *found = is_library ? NULL : find_in(&v->decls, name);
  return found ? found : find_in(&v->library_decls, name);
}

bool ki_is_known_name(const ki_verifier *v, kj_location location, const char *name)
{
  return find_parameter(v, name) || ki_find_visible(v, location, name) || ki_find_builtin(name) ||
         ki_is_type_name(name, strlen(name));
}

/* If the root of a dotted name such as `cuda.grid` or `math.sqrt` is unknown, returns the dotted
 * name, otherwise NULL. */
static const char *spell_dotted(ki_verifier *v, const ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_NAME)
    return ki_is_known_name(v, expr->location, expr->name) ? NULL : expr->name;
  if (expr->kind != KJ_EXPR_FIELD) return NULL;
  const char *root = spell_dotted(v, expr->x);
  return root ? kj_format(v->arena, "%s.%s", root, expr->name) : NULL;
}

static const ki_expr *find_root(const ki_expr *expr)
{
  while (expr->kind == KJ_EXPR_FIELD || expr->kind == KJ_EXPR_INDEX) expr = expr->x;
  return expr;
}

/* ---- names ---- */

/* Replaces a struct's name by its type. If the struct has errors, these have been reported already,
 * and the name is not replaced. */
static void resolve_struct_name(ki_verifier *v, ki_expr *expr, ki_decl *decl)
{
  KJ_ASSERT(decl->kind == KJ_DECL_STRUCT);
  ki_resolve_struct(v, decl);
  if (decl->struct_type == KJIT_ANY) return;
  expr->kind = KJ_EXPR_TYPE;
  expr->type_expr = ki_spell_type(v->arena, v->module->types, decl->struct_type, expr->location);
}

void ki_resolve_name(ki_verifier *v, ki_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_NAME);
  ki_decl *param = find_parameter(v, expr->name);
  if (param) {
    expr->kind = KJ_EXPR_DECL;
    expr->decl = param;
    return;
  }
  ki_decl *decl = ki_find_visible(v, expr->location, expr->name);
  const ki_builtin *builtin = ki_find_builtin(expr->name);
  kjit_type type;
  if (!ki_find_type(v->module->types, expr->name, strlen(expr->name), &type))
    longjmp(*v->arena->on_failure, KJ_JUMP_MEMORY);
  if (decl && decl->kind == KJ_DECL_STRUCT) {
    resolve_struct_name(v, expr, decl);
  } else if (decl) {
    expr->kind = KJ_EXPR_DECL;
    expr->decl = decl;
  } else if (builtin) {
    expr->kind = KJ_EXPR_BUILTIN;
    expr->builtin = builtin;
  } else if (type != KJIT_ANY) {
    expr->kind = KJ_EXPR_TYPE;
    expr->type_expr = ki_spell_type(v->arena, v->module->types, type, expr->location);
  } else {
    ki_fail_unknown(v, expr->location, expr->name, false);
  }
}

bool ki_is_func_value(const ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_BUILTIN) return !(expr->builtin->flags & KJ_NAME);
  if (expr->kind == KJ_EXPR_CALL)
    return expr->x->kind == KJ_EXPR_BUILTIN &&
           (expr->x->builtin->id == KJ_BUILTIN_BIND_BACK || ki_is_derivative(expr->x->builtin));
  return expr->kind == KJ_EXPR_DECL && (expr->decl->kind == KJ_DECL_FUNCTION ||
                                        (expr->decl->kind == KJ_DECL_PARAM && expr->decl->is_func));
}

static void note_call(ki_verifier *v, const ki_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_DECL && v->decl->index < v->module->decls.count);
  ki_call_site site = { expr->decl, expr->location, v->range };
  KJ_PUSH(v->arena, &v->summaries[v->decl->index].calls, site);
}

static void verify_function_name(ki_verifier *v, ki_expr *expr, ki_role role)
{
  KJ_ASSERT(expr->decl->kind == KJ_DECL_FUNCTION);
  const ki_function *function = expr->decl->function;
  if (function->is_kernel && !v->takes_kernel)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is a kernel; only the application can launch it", expr->decl->name);
  else if (v->fixed)
    ki_fail_verify(v, expr->location, KJIT_ERROR_UNSUPPORTED,
                   "calls of functions in %s are not supported", v->fixed);
  else if (role != KJ_ROLE_CALLEE && role != KJ_ROLE_ARGUMENT && role != KJ_ROLE_COMPARED)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is a function: call it, or pass it to a `func` parameter",
                   expr->decl->name);
  else if (role != KJ_ROLE_COMPARED) note_call(v, expr);
}

static void verify_local(ki_verifier *v, const ki_expr *expr, ki_role role)
{
  const ki_decl *decl = expr->decl;
  if (!decl->function) {
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is a field of a struct and has no value in the struct's declaration",
                   decl->name);
    return;
  }
  if (decl->function != v->function) {
    ki_fail_verify(v, expr->location, KJIT_ERROR_NAME, "`%s` belongs to another function",
                   decl->name);
    return;
  }
  if (v->fixed && strcmp(v->fixed, "a default") == 0) {
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "a default value can use only constants, not `%s`", decl->name);
    return;
  }
  if (!v->visible[decl->index]) {
    ki_fail_verify(v, expr->location, KJIT_ERROR_NAME,
                   "`%s` is used outside the block that declares it", decl->name);
    return;
  }
  bool is_wrong_call = role == KJ_ROLE_CALLEE && !decl->is_func;
  if (is_wrong_call && decl->kind == KJ_DECL_PARAM)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is called, " KJ_PHRASE(
                     FUNCTION_PARAMETER, "so it must be a function: declare the parameter as "
                                         "`" KJ_PHRASE_ARGUMENT("%s") ": func`"),
                   decl->name, decl->name);
  else if (is_wrong_call)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is not a function", decl->name);
  if (decl->is_func && v->fixed)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is a function and cannot be used in %s, because kjit evaluates that "
                   "expression before the launch",
                   decl->name, v->fixed);
  else if (decl->is_func && role != KJ_ROLE_CALLEE && role != KJ_ROLE_ARGUMENT &&
           role != KJ_ROLE_COMPARED)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is a function: call it, or pass it to a `func` parameter", decl->name);
}

void ki_verify_decl(ki_verifier *v, ki_expr *expr, ki_role role)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_DECL);
  ki_decl *decl = expr->decl;
  if (decl->kind == KJ_DECL_FUNCTION) verify_function_name(v, expr, role);
  else if (decl->kind != KJ_DECL_CONST) verify_local(v, expr, role);
  else if (role == KJ_ROLE_CALLEE)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "`%s` is a constant, not a function",
                   decl->name);
  if (role == KJ_ROLE_TYPE && decl->kind != KJ_DECL_FUNCTION)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "expected a type, found the value `%s`; write `dtype(%s)` for its type",
                   decl->name, decl->name);
}

void ki_refuse_hidden(ki_verifier *v, const ki_expr *expr, const char *name)
{
  const ki_decl *decl = v->is_text ? NULL : find_in(&v->decls, name);
  bool is_kernel = decl && decl->kind == KJ_DECL_FUNCTION && decl->function->is_kernel;
  if (is_kernel)
    ki_fail_verify(v, expr->location, KJIT_ERROR_NAME,
                   "`%s` is used here as a name, but is also the name of a kernel", name);
}

/* Returns whether the built-in has the same value in all threads and is known before the launch. */
static bool is_fixed(const ki_builtin *builtin)
{
  return (builtin->flags & KJ_PURE) && !(builtin->flags & (KJ_THREAD | KJ_XYZ)) &&
         builtin->id != KJ_BUILTIN_GRIDSIZE;
}

void ki_verify_builtin(ki_verifier *v, const ki_expr *expr, ki_role role)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_BUILTIN);
  const ki_builtin *builtin = expr->builtin;
  const char *name = builtin->name;
  bool is_value = builtin->flags & KJ_NAME;
  ki_refuse_hidden(v, expr, name);
  if (v->fixed && !is_fixed(builtin))
    ki_fail_verify(
      v, expr->location, KJIT_ERROR_TYPE,
      "`%s` has no value in %s, because kjit evaluates that expression before the launch", name,
      v->fixed);
  else if (builtin->flags & KJ_XYZ)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` has three components: write `%s.x`, `%s.y` or `%s.z`", name, name, name,
                   name);
  else if (is_value && role == KJ_ROLE_CALLEE)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is a value, not a function: omit the parentheses", name);
  else if (role == KJ_ROLE_TYPE)
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE, "expected a type, found `%s`", name);
  else if (!is_value && role == KJ_ROLE_ARGUMENT && !ki_can_hand_over(builtin))
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` cannot be passed as a function; declare a function that calls it", name);
  else if (!is_value && role != KJ_ROLE_CALLEE && role != KJ_ROLE_ARGUMENT &&
           (role != KJ_ROLE_COMPARED || v->fixed))
    ki_fail_verify(v, expr->location, KJIT_ERROR_TYPE,
                   "`%s` is a function: write it with its arguments, `%s(%s)`", name, name,
                   builtin->most ? "..." : "");
  if (role == KJ_ROLE_ARGUMENT && !is_value) v->module->hands_over_writer |= ki_is_writer(builtin);
}

/* ---- fields ---- */

void ki_verify_field(ki_verifier *v, ki_expr *expr)
{
  KJ_ASSERT(expr->kind == KJ_EXPR_FIELD);
  const char *dotted = spell_dotted(v, expr);
  if (dotted) {
    const ki_expr *root = find_root(expr);
    ki_fail_unknown(v, root->location, ki_explain_name(v->arena, dotted) ? dotted : root->name,
                    false);
    return;
  }
  ki_expr *x = expr->x;
  if (x->kind == KJ_EXPR_NAME) ki_resolve_name(v, x);
  bool is_position = x->kind == KJ_EXPR_BUILTIN && (x->builtin->flags & KJ_XYZ);
  bool is_part = expr->name[0] >= 'x' && expr->name[0] <= 'z' && expr->name[1] == 0;
  if (is_position && v->fixed) ki_verify_builtin(v, x, KJ_ROLE_VALUE);
  else if (is_position && !is_part)
    ki_fail_verify(v, expr->location, KJIT_ERROR_NAME,
                   "`%s` has the components `.x`, `.y` and `.z`, not `.%s`", x->builtin->name,
                   expr->name);
  if (is_position) return;
  /* type inference checks the field, because the field depends on the type */
  ki_verify_expr(v, x, KJ_ROLE_VALUE);
}
