/* Lifetime of modules, and public functions for modules and types. kjit_get_kernel and the
 * functions for its results are in the runtime. */
#include "ir/module.h"

#include <stdlib.h>
#include <string.h>

#include "ir/context.h"
#include "ir/near_name.h"
#include "support/host_process.h"

/* ---- lifetime ---- */

/* Destroys a module because its context is being destroyed. */
static void end_module(kjit_module *module)
{
  module->is_left = true;
  ki_destroy_module(module);
}

/* Called for a module that the application has not released when its context was destroyed. Clears
 * all fields that the release does not need. */
static void leave_module(kjit_module *module)
{
  uint32_t references = atomic_load(&module->references);
  *module = (kjit_module){ .context = &ki_ended_context, .is_left = true };
  atomic_store(&module->references, references);
  module->forks = kj_keep_remains(&module->remains, module);
}

void ki_publish_module(kjit_module *module)
{
  kjit_context *context = module->context;
  if (!context) return;
  pthread_mutex_lock(&context->mutex);
  module->next = context->modules;
  if (module->next) module->next->previous = module;
  context->modules = module;
  context->end_module = end_module;
  module->is_published = true;
  pthread_mutex_unlock(&context->mutex);
}

static void unlink_module(kjit_context *context, kjit_module *module)
{
  if (!module->is_published) return;
  pthread_mutex_lock(&context->mutex);
  if (module->next) module->next->previous = module->previous;
  if (module->previous) module->previous->next = module->next;
  else context->modules = module->next;
  pthread_mutex_unlock(&context->mutex);
}

kjit_module *ki_create_module(kjit_context *context, ki_types *types)
{
  kjit_module *module = calloc(1, sizeof *module);
  if (!module) return NULL;
  module->context = context;
  module->types = types;
  atomic_store_explicit(&module->references, 1, memory_order_relaxed);
  return module;
}

void ki_destroy_module(kjit_module *module)
{
  if (!module) return;
  if (module->release_kernels) module->release_kernels(module);
  unlink_module(module->context, module);
  for (ki_builtin_func *func = module->builtin_funcs, *next; func; func = next) {
    next = func->next;
    free(func);
  }
  for (size_t i = 0; module->later && i < module->later->library_count; i++)
    kjit_release_module(module->later->libraries[i]);
  kjit_module *bases[KI_MOST_MEANINGS + 1];
  size_t base_count = module->bases.count;
  KJ_ASSERT(base_count <= KI_MOST_MEANINGS + 1);
  if (base_count) memcpy(bases, module->bases.items, base_count * sizeof *bases);
  kjit_module *whole = module->partial ? atomic_load(&module->partial->whole) : NULL;
  kj_free_arena(&module->arena);
  free(module->recipe);
  if (module->is_left) leave_module(module);
  else free(module);
  for (size_t i = 0; i < base_count; i++) kjit_release_module(bases[i]);
  kjit_release_module(whole);
}

kjit_module *kjit_retain_module(kjit_module *module)
{
  if (module) atomic_fetch_add_explicit(&module->references, 1, memory_order_relaxed);
  return module;
}

void kjit_release_module(kjit_module *module)
{
  if (!module || (!module->is_left && ki_is_forked(module->context))) return;
  if (atomic_fetch_sub_explicit(&module->references, 1, memory_order_acq_rel) != 1) return;
  if (module->is_left) kj_drop_remains(&module->remains, module->forks);
  else ki_destroy_module(module);
}

kjit_context *kjit_get_module_context(const kjit_module *module)
{
  return module ? ki_told_context(module->context) : NULL;
}

/* ---- text ---- */

kjit_status kjit_parse_module(kjit_context *context, const char *name, const char *text,
                              size_t size_bytes, kjit_module **module)
{
  return kjit_parse_module_as(context, KJIT_TRUST_DEFAULT, name, text, size_bytes, module);
}

kjit_status kjit_parse_module_as(kjit_context *context, kjit_trust trust, const char *name,
                                 const char *text, size_t size_bytes, kjit_module **module)
{
  const kjit_parse_options options = { .size_bytes = sizeof options, .trust = trust };
  return kjit_parse_module_with(context, &options, name, text, size_bytes, module);
}

static kjit_status check_quoted(kjit_context *context, const kjit_parse_options *options)
{
  if (!options->quoted && options->quoted_count)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_parse_options.quoted is NULL");
  if (options->quoted_count >= KJ_MAX_SOURCES)
    return ki_fail_call(context, KJIT_ERROR_UNSUPPORTED,
                        "kjit_parse_options.quoted: a module can have at most %d sources",
                        KJ_MAX_SOURCES);
  for (size_t i = 0; i < options->quoted_count; i++) {
    const kjit_quoted_text *quoted = &options->quoted[i];
    if (!quoted->file || (!quoted->text && quoted->text_bytes))
      return ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "kjit_parse_options.quoted: %s of a text is NULL",
                          quoted->file ? "the text" : "the name");
    if (quoted->text_bytes > KJ_MAX_SOURCE_BYTES)
      return ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "kjit_parse_options.quoted: the text has %zu bytes, which is more than "
                          "the maximum size of a source",
                          quoted->text_bytes);
  }
  return KJIT_OK;
}

kjit_status kjit_parse_module_with(kjit_context *context, const kjit_parse_options *options,
                                   const char *name, const char *text, size_t size_bytes,
                                   kjit_module **module)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!module || (!text && size_bytes))
    return ki_fail_call(
      context, KJIT_ERROR_MISUSE,
      "kjit_parse_module: the source or the pointer that receives the module is NULL");
  kjit_parse_options given;
  KJ_TRY(ki_read_sized(context, "kjit_parse_module_with", KI_PARSE_OPTIONS, options, &given));
  if (!ki_is_trust(given.trust))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_parse_options.trust: %d is not a value of kjit_trust",
                        (int)given.trust);
  if (given.rules & ~(uint32_t)KI_ALL_RULES)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_parse_options.rules contains unknown bits: 0x%x",
                        given.rules & ~(uint32_t)KI_ALL_RULES);
  KJ_TRY(check_quoted(context, &given));
  const ki_text source = { .name = name,
                           .text = text ? text : "",
                           .size_bytes = size_bytes,
                           .is_guest = ki_is_guest(given.trust, ki_trusts_nobody(context)),
                           .rules = given.rules,
                           .quoted = given.quoted,
                           .quoted_count = given.quoted_count };
  kj_diagnostics diagnostics = { 0 };
  kjit_module *parsed = NULL;
  ki_parse_module(context, context->types, &source, &diagnostics, &parsed);
  kjit_status status = ki_finish_call(context, &diagnostics);
  if (status == KJIT_OK) *module = parsed;
  return status;
}

kjit_status ki_parse_algorithm(kjit_context *context, const char *text, size_t size_bytes,
                               const ki_named_type *types, size_t type_count, bool is_partial,
                               kjit_module **module)
{
  const ki_text source = { .name = "<algorithm>",
                           .text = text,
                           .size_bytes = size_bytes,
                           .is_algorithm = true,
                           .is_partial = is_partial,
                           .types = types,
                           .type_count = type_count };
  kj_diagnostics diagnostics = { 0 };
  (void)ki_parse_module(context, context->types, &source, &diagnostics, module);
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_copy_module_text(kjit_module *module, char **text)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (!text)
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE,
                        "kjit_copy_module_text: the pointer that receives the text is NULL");
  kj_buffer buffer = { 0 };
  ki_print_module(module, &buffer);
  char *copy = kj_take_text(&buffer);
  if (!copy) return ki_fail_call(module->context, KJIT_ERROR_MEMORY, "out of memory");
  *text = copy;
  return KJIT_OK;
}

/* ---- names ---- */

static ki_decl *find_named(const kjit_module *module, const char *name, bool is_struct)
{
  ki_decl *of_library = NULL;
  for (size_t i = 0; i < module->decls.count; i++) {
    ki_decl *decl = module->decls.items[i];
    if ((decl->kind == KJ_DECL_STRUCT) != is_struct || strcmp(decl->name, name) != 0) continue;
    if (!ki_is_library_decl(module, decl)) return decl;
    if (!of_library) of_library = decl;
  }
  return of_library;
}

ki_decl *ki_find_decl(const kjit_module *module, const char *name)
{
  return find_named(module, name, false);
}

bool ki_can_hand_over(const ki_builtin *builtin)
{
  static const ki_builtin_id others[] = { KJ_BUILTIN_VIEW, KJ_BUILTIN_PTX, KJ_BUILTIN_PTX_EFFECT,
                                          KJ_BUILTIN_CP_ASYNC_TENSOR,
                                          KJ_BUILTIN_CP_ASYNC_TENSOR_STORE };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (builtin->id == others[i]) return false;
  return !(builtin->flags & (KJ_TYPE_ARG | KJ_UNEVALUATED | KJ_OPERATOR));
}

bool ki_is_writer(const ki_builtin *builtin)
{
  return (builtin->flags & (KJ_PLACE | KJ_ADDRESS)) || builtin->id == KJ_BUILTIN_POINTER;
}

/* Returns the module's handle of the built-in, which the first call creates. Returns NULL when out
 * of memory. */
static ki_decl *get_builtin_func(kjit_module *module, const ki_builtin *builtin)
{
  pthread_mutex_lock(&module->context->mutex);
  ki_builtin_func *func = module->builtin_funcs;
  while (func && func->function.builtin != builtin) func = func->next;
  if (!func && (func = calloc(1, sizeof *func))) {
    func->decl.kind = KJ_DECL_FUNCTION;
    func->decl.name = builtin->name;
    func->decl.function = &func->function;
    func->function.decl = &func->decl;
    func->function.module = module;
    func->function.builtin = builtin;
    func->next = module->builtin_funcs;
    module->builtin_funcs = func;
  }
  pthread_mutex_unlock(&module->context->mutex);
  return func ? &func->decl : NULL;
}

/* Rejects a built-in that modifies its arguments. The analysis of the arrays that a kernel writes
 * considers the funcs in the module and the built-ins that the module itself passes, but not a
 * built-in that a launch passes. */
const ki_decl *ki_find_func(kjit_module *module, const char *name, const char **reason)
{
  const ki_decl *decl = ki_find_decl(module, name);
  const ki_builtin *builtin = decl ? NULL : ki_find_builtin(name);
  *reason = NULL;
  if (decl && decl->kind == KJ_DECL_FUNCTION && !decl->function->is_kernel) return decl;
  if (!builtin) *reason = decl ? ": it is the name of a kernel or constant" : "";
  else if (builtin->flags & KJ_NAME) *reason = ": it is the name of a built-in value";
  else if (!ki_can_hand_over(builtin))
    *reason = ": this built-in cannot be passed as a function; declare a function that calls it";
  else if (ki_is_writer(builtin))
    *reason = ": this built-in modifies its arguments; declare a function that calls it";
  else return get_builtin_func(module, builtin);
  return NULL;
}

/* Returns the func of the module with the most similar name, or NULL. */
static const char *find_near_func(const kjit_module *module, const char *name)
{
  ki_near near = { .name = name };
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (decl->kind == KJ_DECL_FUNCTION && !decl->function->is_kernel)
      ki_consider(&near, decl->name);
  }
  return near.best;
}

kjit_status kjit_get_function(kjit_module *module, const char *name, kjit_function **function)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!name || !function)
    return ki_fail_call(
      module->context, KJIT_ERROR_MISUSE,
      "kjit_get_function: the name or the pointer that receives the function is NULL");
  const char *reason;
  const ki_decl *decl = ki_find_func(module, name, &reason);
  if (!decl && !reason) return ki_fail_call(module->context, KJIT_ERROR_MEMORY, "out of memory");
  const char *near = decl || *reason ? NULL : find_near_func(module, name);
  if (!decl)
    return ki_fail_call(module->context, KJIT_ERROR_NAME, "module %s has no function `%s`%s%s%s%s",
                        module->sources.items[0].name, name, reason, near ? "; did you mean `" : "",
                        near ? near : "", near ? "`?" : "");
  *function = (kjit_function *)decl;
  return KJIT_OK;
}

/* Returns the name of a kernel, func or constant, or NULL. index counts only declarations of this
 * kind. */
static const char *get_name(const kjit_module *module, ki_decl_kind kind, bool is_kernel,
                            size_t index)
{
  for (size_t i = 0; module && i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    bool is_meant =
      decl->kind == kind && (kind != KJ_DECL_FUNCTION || decl->function->is_kernel == is_kernel);
    if (is_meant && index-- == 0) return decl->name;
  }
  return NULL;
}

const char *kjit_get_kernel_name(kjit_module *module, size_t index)
{
  return get_name(module, KJ_DECL_FUNCTION, true, index);
}

const char *kjit_get_function_name(kjit_module *module, size_t index)
{
  return get_name(module, KJ_DECL_FUNCTION, false, index);
}

const char *kjit_get_constant_name(kjit_module *module, size_t index)
{
  return get_name(module, KJ_DECL_CONST, false, index);
}

const char *kjit_get_struct_name(kjit_module *module, size_t index)
{
  return get_name(module, KJ_DECL_STRUCT, false, index);
}

kjit_status kjit_get_struct(kjit_module *module, const char *name, kjit_type *type)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!name || !type)
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE,
                        "kjit_get_struct: the name or the pointer that receives the type is NULL");
  const ki_decl *decl = find_named(module, name, true);
  if (decl) {
    *type = decl->struct_type;
    return KJIT_OK;
  }
  return ki_fail_call(module->context, KJIT_ERROR_NAME, "module %s has no struct `%s`",
                      module->sources.items[0].name, name);
}

/* ---- types ---- */

kjit_type kjit_get_pointer_type(kjit_context *context, kjit_type element, int read_only)
{
  if (!context || ki_is_forked(context)) return KJIT_VOID;
  kjit_type type = KJIT_ANY;
  kjit_status status = KJIT_OK;
  if (!ki_is_element(context->types, element))
    status = ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "a pointer must point to a scalar, vector, struct or pointer type");
  else if (ki_is_too_deep(context->types, element))
    status = ki_fail_call(context, KJIT_ERROR_UNSUPPORTED,
                          "structs and pointers nest at most %d levels deep", KJ_MAX_TYPE_LEVELS);
  else type = ki_intern_pointer(context->types, element, read_only != 0);
  if (status == KJIT_OK && type == KJIT_ANY)
    status = ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  return status == KJIT_OK ? type : KJIT_VOID;
}

kjit_type kjit_get_array_type(kjit_context *context, kjit_type element, uint32_t rank,
                              kjit_layout layout, int read_only)
{
  if (!context || ki_is_forked(context)) return KJIT_VOID;
  bool is_layout =
    layout == KJIT_LAYOUT_STRIDED || layout == KJIT_LAYOUT_C || layout == KJIT_LAYOUT_F;
  kjit_type type = KJIT_ANY;
  kjit_status status = KJIT_OK;
  if (!ki_is_element(context->types, element))
    status =
      ki_fail_call(context, KJIT_ERROR_MISUSE,
                   "the element type of an array must be a scalar, vector, struct or pointer type");
  else if (rank > KJ_MAX_RANK)
    status = ki_fail_call(context, KJIT_ERROR_MISUSE, "an array has at most %d dimensions, not %u",
                          KJ_MAX_RANK, rank);
  else if (!is_layout)
    status =
      ki_fail_call(context, KJIT_ERROR_MISUSE, "%d is not a value of kjit_layout", (int)layout);
  else type = ki_array_type(context->types, element, rank, layout, read_only != 0);
  if (status == KJIT_OK && type == KJIT_ANY)
    status = ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  return status == KJIT_OK ? type : KJIT_VOID;
}

kjit_status kjit_parse_type(kjit_context *context, const char *text, kjit_type *type)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!text || !type)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_parse_type: the text or the pointer that receives the type is NULL");
  kj_diagnostics diagnostics = { 0 };
  kjit_type parsed = KJIT_ANY;
  ki_parse_type(context->types, NULL, text, &diagnostics, &parsed);
  kjit_status status = ki_finish_call(context, &diagnostics);
  if (status == KJIT_OK) *type = parsed;
  return status;
}

char *kjit_copy_type_text(kjit_context *context, kjit_type type)
{
  if (!context || ki_is_forked(context)) return NULL;
  kj_buffer buffer = { 0 };
  if (ki_has_type(context->types, type)) ki_print_type(context->types, type, &buffer);
  else kj_append_format(&buffer, "unknown type %u", type);
  return kj_take_text(&buffer);
}
