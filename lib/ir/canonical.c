/* Canonical text of declarations: chooses the names that are printed, and finds the declarations
 * that a kernel uses. */
#include <ctype.h>
#include <string.h>

#include "ir/lexer.h"
#include "ir/printer.h"

/* ---- choosing names ----
 *
 * These functions visit every function with the parser's scope rules. If a name would refer to the
 * wrong declaration, they rename that declaration. */

typedef struct ki_bound {
  const ki_decl *decl;
  kj_map_entry *name;
  struct ki_bound *outer;
  uint32_t scope;
} ki_bound;

static kj_map_entry *get_text(kj_map *map, const char *text)
{
  return kj_get_entry(map, text, strlen(text));
}

const char *ki_printed_name(const ki_naming *naming, const ki_decl *decl)
{
  const kj_map_entry *entry =
    naming ? kj_find_entry(&naming->changed, (const char *)&decl, sizeof decl) : NULL;
  return entry ? entry->value : decl->name;
}

const char *ki_printed_struct(const ki_naming *naming, const ki_types *types, kjit_type type)
{
  const kj_map_entry *entry =
    naming ? kj_find_entry(&naming->structs, (const char *)&type, sizeof type) : NULL;
  return entry ? ki_printed_name(naming, entry->value) : ki_type(types, type)->name;
}

/* ---- new names ---- */

static const char *make_identifier(kj_arena *arena, const char *name)
{
  size_t length = strlen(name);
  if (length > 60) length = 60;
  char *made = kj_copy_string(arena, name, length);
  for (size_t i = 0; i < length; i++) {
    char c = made[i];
    bool is_word =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
    if (!is_word) made[i] = '_';
  }
  if (length == 0 || (made[0] >= '0' && made[0] <= '9')) made = kj_format(arena, "_%s", made);
  return ki_is_name(made) ? made : kj_format(arena, "%s_", made);
}

static bool is_free(const ki_naming *naming, const char *name)
{
  return !kj_find_entry(&naming->taken, name, strlen(name)) && !ki_find_builtin(name) &&
         !ki_is_type_name(name, strlen(name));
}

static const char *make_free_name(ki_naming *naming, const char *name)
{
  const char *base = make_identifier(naming->arena, name), *made = base;
  if (strcmp(base, name) != 0 && is_free(naming, base)) {
    get_text(&naming->taken, base);
    return base;
  }
  kj_map_entry *entry = get_text(&naming->taken, base);
  for (uintptr_t number = (uintptr_t)entry->value + 2; made == base || !is_free(naming, made);
       number++) {
    made = kj_format(naming->arena, "%s_%u", base, (unsigned)number);
    entry->value = (void *)(number - 1);
  }
  get_text(&naming->taken, made);
  return made;
}

static void rename_decl(ki_naming *naming, const ki_decl *decl)
{
  const char *name = make_free_name(naming, decl->name);
  kj_get_entry(&naming->changed, (const char *)&decl, sizeof decl)->value = (void *)name;
}

/* ---- scopes, as in the parser ---- */

static ki_bound *top(const ki_naming *naming, const char *name)
{
  const kj_map_entry *entry = kj_find_entry(&naming->bound, name, strlen(name));
  return entry ? entry->value : NULL;
}

static void push(ki_naming *naming, const ki_decl *decl, const char *name)
{
  ki_bound *bound = KJ_NEW(naming->arena, ki_bound);
  *bound = (ki_bound){ decl, get_text(&naming->bound, name), NULL, naming->scope };
  bound->outer = bound->name->value;
  bound->name->value = bound;
  KJ_PUSH(naming->arena, &naming->open, bound);
}

/* Returns whether a type parameter must be renamed because a type or struct has the same name.
 * After a colon, the parser does not look up type names in the scopes, so the name of the parameter
 * would refer to the type or struct. */
static bool hides_type(const ki_naming *naming, const ki_decl *decl)
{
  const kj_map_entry *entry = kj_find_entry(&naming->global, decl->name, strlen(decl->name));
  const ki_decl *global = entry ? entry->value : NULL;
  bool is_type = ki_is_type_name(decl->name, strlen(decl->name)) ||
                 strcmp(decl->name, "dtype") == 0 || strcmp(decl->name, "vector") == 0 ||
                 (global && global->kind == KJ_DECL_STRUCT);
  return decl->is_type && is_type;
}

/* Returns whether decl is an item in a tuple parameter that is printed as a tuple. The item is then
 * named like `t[1]`. */
static bool is_item(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_PARAM && decl->function && ki_prints_tuples(decl->function) &&
         strchr(decl->name, '[');
}

static void bind(ki_naming *naming, const ki_decl *decl)
{
  const ki_bound *same = top(naming, decl->name);
  if ((!ki_is_name(decl->name) && !is_item(decl)) || (same && same->scope == naming->scope) ||
      hides_type(naming, decl))
    rename_decl(naming, decl);
  push(naming, decl, ki_printed_name(naming, decl));
}

/* Removes the innermost binding from the chain of its name, and renames its declaration. */
static void unhide(ki_naming *naming, ki_bound *bound)
{
  bound->name->value = bound->outer;
  bound->name = NULL;
  rename_decl(naming, bound->decl);
}

static void close_scope(ki_naming *naming)
{
  while (naming->open.count && naming->open.items[naming->open.count - 1]->scope == naming->scope) {
    const ki_bound *bound = naming->open.items[--naming->open.count];
    if (bound->name) bound->name->value = bound->outer;
  }
  naming->scope--;
}

/* Ensures that the name refers to decl, by renaming local declarations that hide it. If decl is
 * NULL, renames every visible local declaration with this name. */
static void reach(ki_naming *naming, const char *name, const ki_decl *decl)
{
  for (ki_bound *bound = top(naming, name); bound && bound->decl != decl; bound = top(naming, name))
    unhide(naming, bound);
}

/* Ensures that the name refers to a built-in or type, by renaming local declarations and the
 * module's declaration that hide it. */
static void reach_outside(ki_naming *naming, const char *name)
{
  reach(naming, name, NULL);
  kj_map_entry *entry = kj_find_entry(&naming->global, name, strlen(name));
  if (!entry || !entry->value) return;
  rename_decl(naming, entry->value);
  entry->value = NULL;
}

static void reach_type(ki_naming *naming, kjit_type type)
{
  const ki_type_info *info = ki_type(naming->types, type);
  if (info->class_ == KJ_CLASS_VECTOR)
    reach_outside(naming, kj_format(naming->arena, "%sx%u",
                                    ki_type(naming->types, info->element)->name, info->count));
  else if (info->class_ == KJ_CLASS_STRUCT)
    reach(naming, ki_printed_struct(naming, naming->types, type), NULL);
  else if (info->class_ == KJ_CLASS_POINTER) reach_type(naming, info->element);
  else if (type < KJIT_SCALAR_COUNT) reach_outside(naming, info->name);
}

/* ---- the walk ---- */

static void walk_expr(ki_naming *naming, const ki_expr *expr);
static void walk_decl(ki_naming *naming, const ki_decl *decl);

static void walk_exprs(ki_naming *naming, const ki_exprs *list)
{
  for (size_t i = 0; i < list->count; i++) walk_expr(naming, list->items[i]);
}

/* Visits a type. In a type after a colon, only the operands are looked up in the scopes. In an
 * expression, the type name is looked up as well. */
static void walk_type(ki_naming *naming, const ki_type_expr *type, bool in_expression)
{
  if (!type) return;
  if (in_expression && type->kind == KJ_TYPE_DTYPE) reach_outside(naming, "dtype");
  if (in_expression && type->kind == KJ_TYPE_VECTOR) reach_outside(naming, "vector");
  if (in_expression && type->kind == KJ_TYPE_FIXED) reach_type(naming, type->type);
  if (type->expr) walk_expr(naming, type->expr);
  if (type->decl) walk_decl(naming, type->decl);
  walk_type(naming, type->element, in_expression);
  walk_exprs(naming, &type->extents);
  for (size_t i = 0; i < type->items.count; i++)
    walk_type(naming, type->items.items[i], in_expression);
}

static void walk_decl(ki_naming *naming, const ki_decl *decl)
{
  reach(naming, ki_printed_name(naming, decl),
        decl->kind == KJ_DECL_FUNCTION || decl->kind == KJ_DECL_CONST ||
            decl->kind == KJ_DECL_STRUCT
          ? NULL
          : decl);
}

static void walk_expr(ki_naming *naming, const ki_expr *expr)
{
  if (expr->kind == KJ_EXPR_DECL) walk_decl(naming, expr->decl);
  else if (expr->kind == KJ_EXPR_NAME) reach(naming, expr->name, NULL);
  else if (expr->kind == KJ_EXPR_BUILTIN) reach_outside(naming, expr->builtin->name);
  walk_type(naming, expr->type_expr, true);
  const ki_expr *children[] = { expr->x, expr->y, expr->z };
  for (int i = 0; i < 3; i++)
    if (children[i]) walk_expr(naming, children[i]);
  walk_exprs(naming, &expr->args);
}

static void walk_attributes(ki_naming *naming, const ki_attributes *attributes)
{
  for (size_t i = 0; i < attributes->count; i++) walk_exprs(naming, &attributes->items[i].values);
}

static void walk_stmts(ki_naming *naming, const ki_stmts *body);

static void walk_stmt(ki_naming *naming, const ki_stmt *stmt)
{
  if (stmt->value) walk_expr(naming, stmt->value);
  walk_exprs(naming, &stmt->places);
  walk_exprs(naming, &stmt->args);
  walk_attributes(naming, &stmt->attributes);
  bool is_loop = stmt->kind == KJ_STMT_FOR;
  naming->scope += is_loop;
  for (size_t i = 0; i < stmt->decls.count; i++) {
    const ki_decl *decl = stmt->decls.items[i];
    walk_type(naming, decl->type_expr, false);
    bind(naming, decl);
    walk_attributes(naming, &decl->attributes);
  }
  naming->scope -= is_loop; /* walk_stmts opens a scope with the same number for the body */
  walk_stmts(naming, &stmt->body);
  walk_stmts(naming, &stmt->otherwise);
}

static void walk_stmts(ki_naming *naming, const ki_stmts *body)
{
  naming->scope++;
  for (size_t i = 0; i < body->count; i++) walk_stmt(naming, body->items[i]);
  close_scope(naming);
}

static void walk_function(ki_naming *naming, const ki_function *function)
{
  naming->scope++;
  for (size_t i = 0; i < function->params.count; i++) {
    const ki_decl *param = function->params.items[i];
    walk_type(naming, param->type_expr, false);
    if (param->value) walk_expr(naming, param->value);
    bind(naming, param);
  }
  walk_type(naming, function->result, false);
  walk_attributes(naming, &function->attributes);
  /* walk_stmts opens a scope with the same number, so parameters and body share a scope */
  naming->scope--;
  walk_stmts(naming, &function->body);
}

/* ---- the module ---- */

static void take_names(ki_naming *naming, const kjit_module *module)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_function *function = module->decls.items[i]->function;
    for (size_t j = 0; function && j < function->params.count; j++)
      get_text(&naming->taken, function->params.items[j]->name);
    for (size_t j = 0; function && j < function->locals.count; j++)
      get_text(&naming->taken, function->locals.items[j]->name);
    for (size_t j = 0; function && j < function->tuples.count; j++)
      get_text(&naming->taken, function->tuples.items[j]->name);
  }
}

/* Records the structs by type. If two modules declare the same struct, the first declaration
 * determines the printed name of the type. */
static void find_structs(ki_naming *naming, const kjit_module *module)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    ki_decl *decl = module->decls.items[i];
    if (decl->kind != KJ_DECL_STRUCT) continue;
    kj_map_entry *entry =
      kj_get_entry(&naming->structs, (const char *)&decl->struct_type, sizeof decl->struct_type);
    if (!entry->value) entry->value = decl;
  }
}

/* Chooses the names of the declarations in a built module. Functions and structs keep their names
 * if these are valid. Constants, to which expressions refer by node, are renamed if there is a
 * conflict. If linking has combined several functions with the same name, the first function keeps
 * the name, because kjit_get_kernel finds the first function. */
static void name_module(ki_naming *naming, const kjit_module *module)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    ki_decl *decl = module->decls.items[i];
    get_text(&naming->taken, decl->name);
    if (decl->kind == KJ_DECL_FUNCTION || decl->kind == KJ_DECL_STRUCT) {
      kj_map_entry *entry = get_text(&naming->global, decl->name);
      if (!entry->value) entry->value = decl;
    }
  }
  for (size_t i = 0; i < module->decls.count; i++) {
    ki_decl *decl = module->decls.items[i];
    kj_map_entry *entry = get_text(&naming->global, decl->name);
    if (!ki_is_name(decl->name) || (entry->value && entry->value != decl))
      rename_decl(naming, decl);
    else entry->value = decl;
  }
}

/* Returns whether the module contains sources of lib/library. If so, two declarations can have the
 * same name, one of them in lib/library, and a declaration can have the name of a built-in. */
static bool has_library(const kjit_module *module)
{
  for (size_t i = 0; i < module->sources.count; i++)
    if (module->sources.items[i].library) return true;
  return false;
}

void ki_choose_names(ki_naming *naming, const kjit_module *module, kj_arena *arena)
{
  *naming = (ki_naming){ .types = module->types, .arena = arena };
  kj_init_map(&naming->changed, arena);
  kj_init_map(&naming->taken, arena);
  kj_init_map(&naming->bound, arena);
  kj_init_map(&naming->global, arena);
  kj_init_map(&naming->structs, arena);
  find_structs(naming, module);
  take_names(naming, module);
  bool is_text = module->sources.count && module->sources.items[0].text && !module->is_linked;
  if (!is_text || has_library(module)) name_module(naming, module);
  for (size_t i = 0; i < module->decls.count; i++)
    if (module->decls.items[i]->kind == KJ_DECL_FUNCTION)
      walk_function(naming, module->decls.items[i]->function);
}

/* Prints a kernel with all declarations that it uses.
 *
 * These functions find the used declarations by searching the printed text for names, instead of
 * visiting the tree. The canonical text names every dependency, so the search finds all of them,
 * for all kinds of nodes. If a local name is also a declaration's name in the module, that
 * declaration is added unnecessarily, which is harmless. */

typedef struct reacher {
  const kjit_module *module;
  kj_arena *arena;
  kj_buffer *buffer;
  ki_naming naming;
  /* maps a name to its declaration, or to NULL after that declaration has been reached */
  kj_map declared;
  KJ_LIST(const ki_decl *) reached;
} reacher;

static void reach_name(reacher *r, const char *name, size_t length)
{
  kj_map_entry *entry = kj_find_entry(&r->declared, name, length);
  if (!entry || !entry->value) return;
  KJ_PUSH(r->arena, &r->reached, (const ki_decl *)entry->value);
  entry->value = NULL;
}

static bool is_name_part(char c)
{
  return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static void reach_names(reacher *r, size_t start)
{
  for (size_t at = start; at < r->buffer->length;) {
    size_t end = at;
    while (end < r->buffer->length && is_name_part(r->buffer->text[end])) end++;
    if (end > at) reach_name(r, r->buffer->text + at, end - at);
    at = end + 1;
  }
}

static void declare(reacher *r, const ki_decl *decl)
{
  const char *name = ki_printed_name(&r->naming, decl);
  kj_map_entry *entry = kj_get_entry(&r->declared, name, strlen(name));
  /* if two declarations had the same name, different modules could have the same text and thus the
   * same cache key */
  KJ_ASSERT(!entry->value);
  entry->value = (void *)decl;
}

static void print_reachable(reacher *r, const ki_decl *const *roots, size_t count)
{
  ki_choose_names(&r->naming, r->module, r->arena);
  kj_init_map(&r->declared, r->arena);
  for (size_t i = 0; i < r->module->decls.count; i++) declare(r, r->module->decls.items[i]);
  for (size_t i = 0; i < count; i++) {
    const char *name = ki_printed_name(&r->naming, roots[i]);
    reach_name(r, name, strlen(name));
  }
  for (size_t i = 0; i < r->reached.count; i++) {
    /* guest code must not use some operations, so the text shows which declarations are guest
     * code */
    if (r->reached.items[i]->is_guest) kj_append_text(r->buffer, "# of a guest\n");
    size_t start = r->buffer->length;
    ki_print_decl(r->module, &r->naming, r->reached.items[i], r->buffer);
    reach_names(r, start);
  }
}

void ki_print_reachable(const kjit_module *module, const ki_decl *const *roots, size_t count,
                        kj_buffer *buffer)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    reacher *r = KJ_NEW(&arena, reacher);
    *r = (reacher){ .module = module, .arena = &arena, .buffer = buffer };
    print_reachable(r, roots, count);
  } else buffer->failed = 1;
  kj_free_arena(&arena);
}
