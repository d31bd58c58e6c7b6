/* Modules that are made from other modules: copies, modules linked together, and modules with
 * replaced constants. */
#include <string.h>

#include "ir/context.h"
#include "ir/module.h"
#include "support/containers.h"
#include "support/host_process.h"

/* ---- copies of modules ----
 *
 * Modules are immutable, because any thread can use them. Binding, linking and replacing constants
 * therefore always create a new module.
 *
 * Texts and data in another module's arena are not copied; the copy retains that module instead.
 * Several nodes can refer to a declaration. The copier therefore copies each declaration only once,
 * and finds the copy by the declaration's index. Expressions need no such table, because each
 * expression has only one parent. An open declaration (an extern func without code) is replaced by
 * the declaration that provides its code. */

typedef struct copier {
  kj_arena *arena;
  kjit_module *made;
  const kjit_module *from;
  uint32_t first_file; /* number of the first source of `from` in the copy */
  /* the copies; indexed by declaration in `from`; NULL means that no copied node has referred to
   * the declaration yet */
  ki_decl **decls;
  KJ_LIST(const ki_decl *) started;
  size_t filled;               /* number of started declarations that are complete */
  const ki_function *function; /* the function that is being copied */
  /* copies of the parameters and locals of this function; indexed by declaration */
  ki_decl **locals;
  ki_function *copy;
} copier;

static ki_expr *copy_expr(copier *c, const ki_expr *expr);
static ki_type_expr *copy_type(copier *c, const ki_type_expr *type);
static void copy_stmts(copier *c, ki_stmts *to, const ki_stmts *from);
static void start_module_decl(copier *c, const ki_decl *decl);

static kj_location move(const copier *c, kj_location location)
{
  if (location.line) location.file += c->first_file;
  return location;
}

static bool is_of_module(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION || decl->kind == KJ_DECL_CONST ||
         decl->kind == KJ_DECL_STRUCT;
}

/* ---- expressions and types ---- */

static void copy_exprs(copier *c, ki_exprs *to, const ki_exprs *from)
{
  *to = (ki_exprs){ 0 };
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(c->arena, to, copy_expr(c, from->items[i]));
}

static ki_decl *map_decl(copier *c, const ki_decl *decl)
{
  if (!decl) return NULL;
  if (!is_of_module(decl)) {
    KJ_ASSERT(c->function && decl->index < c->function->local_count);
    return c->locals[decl->index];
  }
  if (!c->decls[decl->index]) start_module_decl(c, decl);
  return c->decls[decl->index];
}

static ki_expr *copy_expr(copier *c, const ki_expr *expr)
{
  if (!expr) return NULL;
  ki_expr *copy = KJ_NEW(c->arena, ki_expr);
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

static ki_type_expr *copy_type(copier *c, const ki_type_expr *type)
{
  if (!type) return NULL;
  ki_type_expr *copy = KJ_NEW(c->arena, ki_type_expr);
  *copy = *type;
  copy->location = move(c, type->location);
  copy->expr = copy_expr(c, type->expr);
  copy->element = copy_type(c, type->element);
  copy->decl = map_decl(c, type->decl);
  copy_exprs(c, &copy->extents, &type->extents);
  copy->items.items = NULL;
  copy->items.count = copy->items.capacity = 0;
  for (size_t i = 0; i < type->items.count; i++)
    KJ_PUSH(c->arena, &copy->items, copy_type(c, type->items.items[i]));
  return copy;
}

static void copy_attributes(copier *c, ki_attributes *to, const ki_attributes *from)
{
  *to = (ki_attributes){ 0 };
  for (size_t i = 0; i < from->count; i++) {
    ki_attribute attribute = from->items[i];
    attribute.location = move(c, attribute.location);
    copy_exprs(c, &attribute.values, &from->items[i].values);
    KJ_PUSH(c->arena, to, attribute);
  }
}

/* ---- functions ---- */

/* Copies a declaration, except for the fields that refer to other declarations. */
static ki_decl *start_decl(copier *c, const ki_decl *decl)
{
  ki_decl *copy = KJ_NEW(c->arena, ki_decl);
  *copy = *decl;
  copy->location = move(c, decl->location);
  copy->type_expr = NULL;
  copy->value = NULL;
  copy->attributes = (ki_attributes){ 0 };
  copy->fields = (ki_decls){ 0 };
  return copy;
}

static void fill_decl(copier *c, ki_decl *copy, const ki_decl *decl)
{
  copy->type_expr = copy_type(c, decl->type_expr);
  copy->value = copy_expr(c, decl->value);
  copy_attributes(c, &copy->attributes, &decl->attributes);
}

static void start_locals(copier *c, ki_decls *to, const ki_decls *from)
{
  *to = (ki_decls){ 0 };
  for (size_t i = 0; i < from->count; i++) {
    ki_decl *copy = c->locals[from->items[i]->index] = start_decl(c, from->items[i]);
    copy->function = c->copy;
    KJ_PUSH(c->arena, to, copy);
  }
}

static ki_stmt *copy_stmt(copier *c, const ki_stmt *stmt)
{
  ki_stmt *copy = KJ_NEW(c->arena, ki_stmt);
  *copy = *stmt;
  copy->location = move(c, stmt->location);
  copy->decls = (ki_decls){ 0 };
  for (size_t i = 0; i < stmt->decls.count; i++)
    KJ_PUSH(c->arena, &copy->decls, c->locals[stmt->decls.items[i]->index]);
  copy_exprs(c, &copy->places, &stmt->places);
  copy_exprs(c, &copy->args, &stmt->args);
  copy->value = copy_expr(c, stmt->value);
  copy_attributes(c, &copy->attributes, &stmt->attributes);
  /* a let and its statement share one expression */
  for (size_t i = 0; i < stmt->decls.count; i++) {
    const ki_decl *decl = stmt->decls.items[i];
    ki_decl *local = c->locals[decl->index];
    bool is_shared = decl->value && decl->value == stmt->value;
    fill_decl(c, local, decl);
    if (is_shared) local->value = copy->value;
  }
  copy_stmts(c, &copy->body, &stmt->body);
  copy_stmts(c, &copy->otherwise, &stmt->otherwise);
  return copy;
}

static void copy_stmts(copier *c, ki_stmts *to, const ki_stmts *from)
{
  *to = (ki_stmts){ 0 };
  for (size_t i = 0; i < from->count; i++) KJ_PUSH(c->arena, to, copy_stmt(c, from->items[i]));
}

static void copy_function(copier *c, ki_function *copy, const ki_function *function)
{
  c->function = function;
  c->copy = copy;
  c->locals = KJ_NEW_ARRAY(c->arena, ki_decl *, function->local_count + 1);
  start_locals(c, &copy->params, &function->params);
  start_locals(c, &copy->locals, &function->locals);
  for (size_t i = 0; i < function->params.count; i++)
    fill_decl(c, copy->params.items[i], function->params.items[i]);
  copy->result = copy_type(c, function->result);
  copy_attributes(c, &copy->attributes, &function->attributes);
  copy_stmts(c, &copy->body, &function->body);
  c->locals = NULL;
}

void ki_copy_parameters(kjit_module *module, const ki_function *from, ki_function *to)
{
  copier c = { .arena = &module->arena,
               .made = module,
               .from = module,
               .decls = module->decls.items,
               .function = from,
               .copy = to,
               .locals = KJ_NEW_ARRAY(&module->arena, ki_decl *, from->local_count + 1) };
  KJ_ASSERT(from->module == module && !to->params.count);
  start_locals(&c, &to->params, &from->params);
  for (size_t i = 0; i < from->params.count; i++) {
    fill_decl(&c, to->params.items[i], from->params.items[i]);
    to->params.items[i]->value = NULL;
  }
}

/* ---- modules ---- */

static void start_module_decl(copier *c, const ki_decl *decl)
{
  KJ_ASSERT(c->from->decls.items[decl->index] == decl && !c->decls[decl->index]);
  ki_decl *made = start_decl(c, decl);
  if (decl->kind == KJ_DECL_FUNCTION) {
    made->function = KJ_NEW(c->arena, ki_function);
    *made->function = *decl->function;
    made->function->decl = made;
    made->function->module = c->made;
  }
  made->index = (uint32_t)c->made->decls.count;
  c->decls[decl->index] = made;
  KJ_PUSH(c->arena, &c->made->decls, made);
  KJ_PUSH(c->arena, &c->started, decl);
}

static void fill_module_decl(copier *c, const ki_decl *decl)
{
  ki_decl *made = c->decls[decl->index];
  fill_decl(c, made, decl);
  if (decl->kind == KJ_DECL_FUNCTION) copy_function(c, made->function, decl->function);
  for (size_t i = 0; i < decl->fields.count; i++) {
    ki_decl *field = start_decl(c, decl->fields.items[i]);
    fill_decl(c, field, decl->fields.items[i]);
    KJ_PUSH(c->arena, &made->fields, field);
  }
}

static bool is_open(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION
           ? decl->function->is_extern && !decl->function->bound
           : decl->kind == KJ_DECL_CONST && !decl->value && !decl->data;
}

/* Where find_meaning searches for the code of open declarations. */
typedef struct meaning_source {
  kjit_module *library; /* provides code by name; can be NULL */
  const ki_meaning *meanings;
  size_t count;
} meaning_source;

/* Returns the declaration that provides the code of an open declaration, or NULL. */
static const ki_decl *find_meaning(const ki_decl *decl, const meaning_source *from)
{
  if (!is_open(decl)) return NULL;
  for (size_t i = 0; i < from->count; i++)
    if (from->meanings[i].open == decl) return from->meanings[i].decl;
  const ki_decl *found = from->library ? ki_find_decl(from->library, decl->name) : NULL;
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
                 .made = copy,
                 .from = from,
                 .decls = KJ_NEW_ARRAY(&copy->arena, ki_decl *, from->decls.count + 1) };
  add_sources(c, copy);
}

/* Completes all started declarations. Completing a declaration can start the declarations that it
 * refers to. */
static bool fill_started(copier *c)
{
  bool has_filled = c->filled < c->started.count;
  while (c->filled < c->started.count) fill_module_decl(c, c->started.items[c->filled++]);
  return has_filled;
}

typedef struct linker {
  kjit_module *copy;
  const meaning_source *from;
  copier own;
  KJ_LIST(copier *) others; /* one entry for each additional module that provides code */
} linker;

static copier *add_copier(linker *l, kjit_module *from)
{
  for (size_t i = 0; i < l->others.count; i++)
    if (l->others.items[i]->from == from) return l->others.items[i];
  copier *added = KJ_NEW(&l->copy->arena, copier);
  start_copier(added, l->copy, from);
  KJ_PUSH(&l->copy->arena, &l->others, added);
  KJ_PUSH(&l->copy->arena, &l->copy->bases, from);
  (void)kjit_retain_module(from);
  l->copy->parse_time_ns += from->parse_time_ns;
  l->copy->is_linked = true;
  l->copy->has_tensor_copies |= from->has_tensor_copies;
  l->copy->has_guest |= from->has_guest;
  l->copy->hands_over_writer |= from->hands_over_writer;
  return added;
}

/* Copies all structs. It is not known which structs are used, because types do not refer to the
 * declarations of structs. */
static void start_structs(copier *c)
{
  for (size_t i = 0; i < c->from->decls.count; i++)
    if (c->from->decls.items[i]->kind == KJ_DECL_STRUCT) (void)map_decl(c, c->from->decls.items[i]);
}

/* Copies the module. If l->from has meanings, copies only the kernels and the declarations that
 * they use, the kernels first. */
static void fill_copy(linker *l, kjit_module *module)
{
  const meaning_source *from = l->from;
  bool is_whole = !from->count;
  start_copier(&l->own, l->copy, module);
  KJ_PUSH(&l->copy->arena, &l->copy->bases, module);
  (void)kjit_retain_module(module);
  l->copy->parse_time_ns = module->parse_time_ns;
  l->copy->is_linked = module->is_linked;
  l->copy->has_tensor_copies = module->has_tensor_copies;
  l->copy->has_guest = module->has_guest;
  l->copy->hands_over_writer = module->hands_over_writer;
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    bool is_kernel = decl->kind == KJ_DECL_FUNCTION && decl->function->is_kernel;
    if ((is_whole || is_kernel) && !find_meaning(decl, from)) start_module_decl(&l->own, decl);
  }
  if (!is_whole) start_structs(&l->own);
  for (size_t i = 0; i < from->count; i++)
    start_structs(add_copier(l, from->meanings[i].decl->function->module));
  copier *library = from->library ? add_copier(l, from->library) : NULL;
  for (size_t i = 0; library && i < from->library->decls.count; i++)
    start_module_decl(library, from->library->decls.items[i]);
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *meaning = find_meaning(module->decls.items[i], from);
    copier *of_meaning = !meaning  ? NULL
                         : library ? library
                                   : add_copier(l, meaning->function->module);
    if (meaning) l->own.decls[i] = map_decl(of_meaning, meaning);
  }
  for (bool has_filled = true; has_filled;) {
    has_filled = fill_started(&l->own);
    for (size_t i = 0; i < l->others.count; i++)
      has_filled = fill_started(l->others.items[i]) || has_filled;
  }
}

/* Checks that the copy refers to the original only for texts, data and bound code. */
static void assert_copied(const kjit_module *copy)
{
  for (size_t i = 0; i < copy->decls.count; i++) {
    const ki_decl *decl = copy->decls.items[i];
    KJ_ASSERT(is_of_module(decl) && decl->index == i);
    KJ_ASSERT(decl->kind != KJ_DECL_FUNCTION ||
              (decl->function->decl == decl && decl->function->module == copy));
    KJ_ASSERT(decl->kind != KJ_DECL_FUNCTION || !decl->function->bound ||
              decl->function->is_extern);
  }
}

static kjit_status derive(kjit_module *module, const meaning_source *from, ki_change change,
                          void *data, kj_diagnostics *diagnostics, kjit_module **changed)
{
  jmp_buf on_failure;
  kjit_module *copy = ki_create_module(module->context, module->types);
  int jump = copy ? 0 : KJ_JUMP_MEMORY;
  if (copy) {
    copy->arena.on_failure = &on_failure;
    jump = setjmp(on_failure);
    if (jump == 0) {
      linker *l = KJ_NEW(&copy->arena, linker);
      l->copy = copy;
      l->from = from;
      fill_copy(l, module);
      if (change) change(copy, data, diagnostics);
      if (diagnostics->error_count) longjmp(on_failure, KJ_JUMP_ERROR);
      assert_copied(copy);
    }
    copy->arena.on_failure = NULL;
  }
  if (jump == KJ_JUMP_MEMORY)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
  if (jump) {
    ki_destroy_module(copy);
    return diagnostics->status;
  }
  ki_publish_module(copy);
  *changed = copy;
  return KJIT_OK;
}

kjit_status ki_change_module(kjit_module *module, kjit_module *library, ki_change change,
                             void *data, kj_diagnostics *diagnostics, kjit_module **changed)
{
  return derive(module, &(meaning_source){ .library = library }, change, data, diagnostics,
                changed);
}

kjit_status ki_link_meanings(kjit_module *base, const ki_meaning *meanings, size_t count,
                             kj_diagnostics *diagnostics, kjit_module **linked)
{
  KJ_ASSERT(count && count <= KI_MOST_MEANINGS);
  return derive(base, &(meaning_source){ .meanings = meanings, .count = count }, NULL, NULL,
                diagnostics, linked);
}

/* ---- linking: replaces `extern` declarations by declarations in another module ---- */

static bool takes(const ki_function *function, size_t count)
{
  size_t least = function->params.count;
  while (least && function->params.items[least - 1]->value) least--;
  return count >= least && count <= function->params.count;
}

static void check_meaning(const kjit_module *module, const kjit_module *library,
                          const ki_decl *decl, kj_diagnostics *diagnostics)
{
  bool is_extern = decl->kind == KJ_DECL_FUNCTION && is_open(decl);
  const ki_decl *found = is_extern ? ki_find_decl(library, decl->name) : NULL;
  if (!found || found->kind != KJ_DECL_FUNCTION || is_open(found)) return;
  size_t declared = decl->function->params.count, taken = found->function->params.count;
  if (found->function->is_kernel)
    kj_report(diagnostics, &module->sources, decl->location, KJIT_SEVERITY_ERROR, KJIT_ERROR_TYPE,
              "`%s` is a kernel of the linked library, but only its functions can be called",
              decl->name);
  else if (!takes(found->function, declared))
    kj_report(diagnostics, &module->sources, decl->location, KJIT_SEVERITY_ERROR, KJIT_ERROR_TYPE,
              "`%s` is declared with %zu parameter%s, but has %zu in the linked library",
              decl->name, declared, declared == 1 ? "" : "s", taken);
}

kjit_status kjit_link_module(kjit_module *module, kjit_module *library, kjit_module **linked)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!library || !linked)
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_link_module: %s is NULL",
                        library ? "linked" : "library");
  if (library->context != module->context)
    return ki_fail_call(module->context, KJIT_ERROR_ARGUMENT,
                        "kjit_link_module: the library belongs to another context");
  kj_diagnostics diagnostics = { 0 };
  kjit_module *made = NULL;
  for (size_t i = 0; i < module->decls.count; i++)
    check_meaning(module, library, module->decls.items[i], &diagnostics);
  if (!diagnostics.error_count)
    (void)ki_change_module(module, library, NULL, NULL, &diagnostics, &made);
  kjit_status status = ki_finish_call(module->context, &diagnostics);
  if (status == KJIT_OK) *linked = made;
  return status;
}
