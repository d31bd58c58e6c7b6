/* Copies of modules: what binding, linking and replacing constants change is always a new module,
 * since modules are immutable and any thread may use them.
 *
 * Everything is copied but texts and data that another module's arena owns: the copy keeps that
 * module alive. Declarations are shared by reference within a module, so each is copied once, found
 * again by its index; an expression has one parent. Declarations of the module that stand for
 * something of a library become those of the library. */
#include <string.h>

#include "ir/module.h"
#include "support/map.h"

typedef struct copier {
  kj_arena *arena;
  const kjit_module *from;
  uint32_t first_file;         /* number of its first source in the copy */
  kj_decl **decls;             /* by index in `from` */
  const kj_function *function; /* being copied */
  kj_decl **locals;            /* of it, by index */
  kj_function *copy;
} copier;

static kj_expr *copy_expr(copier *c, const kj_expr *expr);
static kj_type_expr *copy_type(copier *c, const kj_type_expr *type);
static void copy_stmts(copier *c, kj_stmts *to, const kj_stmts *from);

static kj_location move(const copier *c, kj_location location)
{
  if (location.line) location.file += c->first_file;
  return location;
}

static bool is_of_module(const kj_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION || decl->kind == KJ_DECL_CONST ||
         decl->kind == KJ_DECL_STRUCT;
}

/* ---- expressions and types ---- */

static void copy_exprs(copier *c, kj_exprs *to, const kj_exprs *from)
{
  *to = (kj_exprs){ 0 };
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(c->arena, to, copy_expr(c, from->items[i]));
}

static kj_decl *map_decl(copier *c, const kj_decl *decl)
{
  if (!decl) return NULL;
  return is_of_module(decl) ? c->decls[decl->index] : c->locals[decl->index];
}

static kj_expr *copy_expr(copier *c, const kj_expr *expr)
{
  if (!expr) return NULL;
  kj_expr *copy = KJ_NEW(c->arena, kj_expr);
  *copy = *expr;
  copy->location = move(c, expr->location);
  copy->x = copy_expr(c, expr->x);
  copy->y = copy_expr(c, expr->y);
  copy->z = copy_expr(c, expr->z);
  copy->decl = map_decl(c, expr->decl);
  copy->type_expr = copy_type(c, expr->type_expr);
  copy_exprs(c, &copy->args, &expr->args);
  return copy;
}

static kj_type_expr *copy_type(copier *c, const kj_type_expr *type)
{
  if (!type) return NULL;
  kj_type_expr *copy = KJ_NEW(c->arena, kj_type_expr);
  *copy = *type;
  copy->location = move(c, type->location);
  copy->expr = copy_expr(c, type->expr);
  copy->element = copy_type(c, type->element);
  copy_exprs(c, &copy->extents, &type->extents);
  copy->items.items = NULL;
  copy->items.count = copy->items.capacity = 0;
  for (size_t i = 0; i < type->items.count; i++)
    KJ_PUSH(c->arena, &copy->items, copy_type(c, type->items.items[i]));
  return copy;
}

static void copy_attributes(copier *c, kj_attributes *to, const kj_attributes *from)
{
  *to = (kj_attributes){ 0 };
  for (size_t i = 0; i < from->count; i++) {
    kj_attribute attribute = from->items[i];
    attribute.location = move(c, attribute.location);
    copy_exprs(c, &attribute.values, &from->items[i].values);
    KJ_PUSH(c->arena, to, attribute);
  }
}

/* ---- functions ---- */

/* Without what refers to other declarations. */
static kj_decl *start_decl(copier *c, const kj_decl *decl)
{
  kj_decl *copy = KJ_NEW(c->arena, kj_decl);
  *copy = *decl;
  copy->location = move(c, decl->location);
  copy->type_expr = NULL;
  copy->value = NULL;
  copy->attributes = (kj_attributes){ 0 };
  copy->fields = (kj_decls){ 0 };
  return copy;
}

static void fill_decl(copier *c, kj_decl *copy, const kj_decl *decl)
{
  copy->type_expr = copy_type(c, decl->type_expr);
  copy->value = copy_expr(c, decl->value);
  copy_attributes(c, &copy->attributes, &decl->attributes);
}

static void start_locals(copier *c, kj_decls *to, const kj_decls *from)
{
  *to = (kj_decls){ 0 };
  for (size_t i = 0; i < from->count; i++) {
    kj_decl *copy = c->locals[from->items[i]->index] = start_decl(c, from->items[i]);
    copy->function = c->copy;
    KJ_PUSH(c->arena, to, copy);
  }
}

static kj_stmt *copy_stmt(copier *c, const kj_stmt *stmt)
{
  kj_stmt *copy = KJ_NEW(c->arena, kj_stmt);
  *copy = *stmt;
  copy->location = move(c, stmt->location);
  copy->decls = (kj_decls){ 0 };
  for (size_t i = 0; i < stmt->decls.count; i++)
    KJ_PUSH(c->arena, &copy->decls, c->locals[stmt->decls.items[i]->index]);
  copy_exprs(c, &copy->places, &stmt->places);
  copy_exprs(c, &copy->args, &stmt->args);
  copy->value = copy_expr(c, stmt->value);
  copy_attributes(c, &copy->attributes, &stmt->attributes);
  for (size_t i = 0; i < stmt->decls.count; i++) { /* a let's value is its statement's */
    const kj_decl *decl = stmt->decls.items[i];
    kj_decl *local = c->locals[decl->index];
    bool is_shared = decl->value && decl->value == stmt->value;
    fill_decl(c, local, decl);
    if (is_shared) local->value = copy->value;
  }
  copy_stmts(c, &copy->body, &stmt->body);
  copy_stmts(c, &copy->otherwise, &stmt->otherwise);
  return copy;
}

static void copy_stmts(copier *c, kj_stmts *to, const kj_stmts *from)
{
  *to = (kj_stmts){ 0 };
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(c->arena, to, copy_stmt(c, from->items[i]));
}

static void copy_function(copier *c, kj_function *copy, const kj_function *function)
{
  c->function = function;
  c->copy = copy;
  c->locals = KJ_NEW_ARRAY(c->arena, kj_decl *, function->local_count + 1);
  start_locals(c, &copy->params, &function->params);
  start_locals(c, &copy->locals, &function->locals);
  for (size_t i = 0; i < function->params.count; i++)
    fill_decl(c, copy->params.items[i], function->params.items[i]);
  copy->result = copy_type(c, function->result);
  copy_attributes(c, &copy->attributes, &function->attributes);
  copy_stmts(c, &copy->body, &function->body);
  c->locals = NULL;
}

/* ---- modules ---- */

static void start_module_decl(copier *c, kjit_module *copy, const kj_decl *decl)
{
  kj_decl *made = start_decl(c, decl);
  if (decl->kind == KJ_DECL_FUNCTION) {
    made->function = KJ_NEW(c->arena, kj_function);
    *made->function = *decl->function;
    made->function->decl = made;
    made->function->module = copy;
  }
  made->index = (uint32_t)copy->decls.count;
  c->decls[decl->index] = made;
  KJ_PUSH(c->arena, &copy->decls, made);
}

static void fill_module_decl(copier *c, const kj_decl *decl)
{
  kj_decl *made = c->decls[decl->index];
  fill_decl(c, made, decl);
  if (decl->kind == KJ_DECL_FUNCTION) copy_function(c, made->function, decl->function);
  for (size_t i = 0; i < decl->fields.count; i++) {
    kj_decl *field = start_decl(c, decl->fields.items[i]);
    fill_decl(c, field, decl->fields.items[i]);
    KJ_PUSH(c->arena, &made->fields, field);
  }
}

static bool is_open(const kj_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION
           ? decl->function->is_extern && !decl->function->bound
           : decl->kind == KJ_DECL_CONST && !decl->value && !decl->data;
}

/* What a declaration of the module without a meaning of its own stands for, or NULL. */
static const kj_decl *find_meaning(const kj_decl *decl, const kjit_module *library)
{
  if (!library || !is_open(decl)) return NULL;
  const kj_decl *found = kj_find_decl(library, decl->name);
  bool fits = found && found->kind == decl->kind && !is_open(found);
  return fits && (decl->kind != KJ_DECL_FUNCTION || !found->function->is_kernel) ? found : NULL;
}

static void add_sources(copier *c, kjit_module *copy)
{
  size_t count = copy->sources.count, more = c->from->sources.count;
  kj_source *sources = KJ_NEW_ARRAY(c->arena, kj_source, count + more + 1);
  if (count) memcpy(sources, copy->sources.items, count * sizeof *sources);
  if (more) memcpy(sources + count, c->from->sources.items, more * sizeof *sources);
  c->first_file = (uint32_t)count;
  copy->sources = (kj_sources){ sources, count + more };
}

static void start_copier(copier *c, kjit_module *copy, const kjit_module *from)
{
  *c = (copier){ .arena = &copy->arena,
                 .from = from,
                 .decls = KJ_NEW_ARRAY(&copy->arena, kj_decl *, from->decls.count + 1) };
  add_sources(c, copy);
}

static void fill_copy(kjit_module *copy, const kjit_module *module, const kjit_module *library)
{
  copier own, other;
  start_copier(&own, copy, module);
  if (library) start_copier(&other, copy, library);
  for (size_t i = 0; i < module->decls.count; i++)
    if (!find_meaning(module->decls.items[i], library))
      start_module_decl(&own, copy, module->decls.items[i]);
  for (size_t i = 0; library && i < library->decls.count; i++)
    start_module_decl(&other, copy, library->decls.items[i]);
  for (size_t i = 0; i < module->decls.count; i++) {
    const kj_decl *meaning = find_meaning(module->decls.items[i], library);
    if (meaning) own.decls[i] = other.decls[meaning->index];
  }
  for (size_t i = 0; i < module->decls.count; i++)
    if (!find_meaning(module->decls.items[i], library))
      fill_module_decl(&own, module->decls.items[i]);
  for (size_t i = 0; library && i < library->decls.count; i++)
    fill_module_decl(&other, library->decls.items[i]);
  copy->parse_time_ns = module->parse_time_ns + (library ? library->parse_time_ns : 0);
  copy->is_linked = module->is_linked || library;
}

kjit_status kj_change_module(kjit_module *module, kjit_module *library, kj_change change,
                             void *data, kj_diagnostics *diagnostics, kjit_module **changed)
{
  jmp_buf on_failure;
  kjit_module *copy = kj_create_module(module->context, module->types);
  int jump = copy ? 0 : KJ_JUMP_MEMORY;
  if (copy) {
    copy->arena.on_failure = &on_failure;
    copy->bases[0] = kjit_retain_module(module);
    copy->bases[1] = kjit_retain_module(library);
    jump = setjmp(on_failure);
    if (jump == 0) {
      fill_copy(copy, module, library);
      if (change) change(copy, data, diagnostics);
      if (diagnostics->error_count) longjmp(on_failure, KJ_JUMP_ERROR);
    }
    copy->arena.on_failure = NULL;
  }
  if (jump == KJ_JUMP_MEMORY)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
  if (jump) {
    kj_destroy_module(copy);
    return diagnostics->status;
  }
  kj_publish_module(copy);
  *changed = copy;
  return KJIT_OK;
}
