/* The builder, which creates the same tree as the parser, but through function calls. After an
 * error, all later calls do nothing, and kjit_finish_builder reports the error. */
#include "ir/builder.h"

#include <stdlib.h>
#include <string.h>

#include "ir/expr.h"
#include "ir/context.h"
#include "support/host_process.h"

/* ---- errors ---- */

bool ki_begin_call(const kjit_builder *builder)
{
  return builder && builder->module && builder->diagnostics.status == KJIT_OK;
}

/* Continues a public call after setjmp. jump is the result of setjmp, which is 0 at the beginning
 * of the call. */
bool ki_catch(kjit_builder *builder, int jump)
{
  builder->module->arena.on_failure = &builder->on_failure;
  if (jump == KJ_JUMP_MEMORY)
    kj_report(&builder->diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR,
              KJIT_ERROR_MEMORY, "out of memory");
  return jump == 0;
}

void ki_fail_build(kjit_builder *builder, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(&builder->diagnostics, &builder->module->sources, builder->location,
                 KJIT_SEVERITY_ERROR, status, format, list);
  va_end(list);
  longjmp(builder->on_failure, KJ_JUMP_ERROR);
}

/* ---- lifetime ---- */

/* Adds a source without text. Source 0 is the module itself. */
static void add_source(kjit_builder *builder, const char *name)
{
  kj_source source = { .name = kj_copy_string(ki_builder_arena(builder), name, strlen(name)) };
  KJ_PUSH(ki_builder_arena(builder), &builder->sources, source);
  builder->module->sources = (kj_sources){ builder->sources.items, builder->sources.count };
}

/* Starts an empty module. builder->module is NULL when out of memory. */
static void start_module(kjit_builder *builder)
{
  kjit_context *context = builder->context;
  char *name = builder->name;
  *builder = (kjit_builder){ .context = context, .name = name };
  builder->module = ki_create_module(context, ki_context_types(context));
  if (!builder->module) return;
  if (KJ_ENTER_BUILDER(builder)) add_source(builder, name);
}

kjit_status kjit_create_builder(kjit_context *context, const char *module_name,
                                kjit_builder **builder)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!builder)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_create_builder: the pointer that receives the builder is NULL");
  kjit_builder *made = calloc(1, sizeof *made);
  if (made) {
    made->context = context;
    made->name = strdup(module_name ? module_name : "module");
    if (made->name) start_module(made);
  }
  if (!made || !made->module || made->diagnostics.status != KJIT_OK) {
    kjit_destroy_builder(made);
    return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  }
  *builder = made;
  return KJIT_OK;
}

void kjit_destroy_builder(kjit_builder *builder)
{
  if (!builder) return;
  ki_destroy_module(builder->module);
  kj_free_diagnostics(&builder->diagnostics);
  free(builder->name);
  free(builder);
}

kjit_context *kjit_get_builder_context(const kjit_builder *builder)
{
  return builder ? builder->context : NULL;
}

kjit_status kjit_get_builder_status(const kjit_builder *builder)
{
  if (!builder) return KJIT_ERROR_MISUSE;
  return builder->module ? builder->diagnostics.status : KJIT_ERROR_MEMORY;
}

static void finish(kjit_builder *builder)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  if (builder->function)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "`%s` is still open: a kjit_build_end is missing",
                  builder->function->decl->name);
  kjit_module *module = builder->module;
  bool is_guest = ki_is_guest(builder->trust, ki_trusts_nobody(builder->context));
  for (size_t i = 0; i < module->decls.count; i++) module->decls.items[i]->is_guest = is_guest;
  ki_finish_module(module, &builder->diagnostics);
}

kjit_status kjit_finish_builder(kjit_builder *builder, kjit_module **module)
{
  if (!builder) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(builder->context)) return KJIT_ERROR_FORKED;
  if (!module)
    return ki_fail_call(builder->context, KJIT_ERROR_MISUSE,
                        "kjit_finish_builder: the pointer that receives the module is NULL");
  if (builder->module) finish(builder);
  else
    kj_report(&builder->diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR,
              KJIT_ERROR_MEMORY, "out of memory");
  kjit_module *made = builder->module;
  kjit_status status = ki_finish_call(builder->context, &builder->diagnostics);
  if (status == KJIT_OK) {
    made->arena.on_failure = NULL;
    ki_publish_module(made);
    *module = made;
  } else ki_destroy_module(made);
  start_module(builder);
  return status;
}

void kjit_set_builder_trust(kjit_builder *builder, kjit_trust trust)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  if (!ki_is_trust(trust))
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "kjit_set_builder_trust: %d is not a value of kjit_trust", (int)trust);
  builder->trust = trust;
}

/* Returns the number of the source with this name. Adds the source if it is new. */
static uint32_t find_source(kjit_builder *builder, const char *file)
{
  if (!file) return 0;
  for (uint32_t i = (uint32_t)builder->sources.count; i; i--)
    if (!strcmp(builder->sources.items[i - 1].name, file)) return i - 1;
  add_source(builder, file);
  return (uint32_t)builder->sources.count - 1;
}

void kjit_set_builder_location(kjit_builder *builder, const char *file, uint32_t line,
                               uint32_t column)
{
  if (KJ_ENTER_BUILDER(builder))
    builder->location = (kj_location){ find_source(builder, file), line, column };
}

void kjit_set_builder_source(kjit_builder *builder, const char *file, const char *text,
                             size_t size_bytes)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  if (!text && size_bytes)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_set_builder_source: text is NULL");
  if (size_bytes > KJ_MAX_SOURCE_BYTES)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "kjit_set_builder_source: the text has %zu bytes, which is more than the maximum "
                  "size of a source",
                  size_bytes);
  /* find_source can reallocate the list of sources, so it must be called before the list is used
   * below */
  uint32_t number = find_source(builder, file);
  kj_source *source = &builder->sources.items[number];
  source->shown = kj_copy_string(ki_builder_arena(builder), text ? text : "", size_bytes);
  source->shown_bytes = size_bytes;
}

/* ---- declarations ---- */

ki_open_block *ki_top_frame(kjit_builder *builder)
{
  if (builder->frames.count == 0)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "no kernel or function is open");
  return &builder->frames.items[builder->frames.count - 1];
}

void ki_push_frame(kjit_builder *builder, ki_frame_kind kind, ki_stmt *stmt, ki_stmts *body)
{
  if (builder->frames.count >= KJ_MAX_NESTING)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "blocks nest more than %d levels deep",
                  KJ_MAX_NESTING);
  ki_open_block frame = { kind, stmt, body };
  KJ_PUSH(ki_builder_arena(builder), &builder->frames, frame);
}

/* Creates a declaration. If name is NULL, the declaration is named by `letter` followed by
 * `number`. */
static ki_decl *new_decl(kjit_builder *builder, ki_decl_kind kind, const char *name,
                         const char *letter, size_t number)
{
  kj_arena *arena = ki_builder_arena(builder);
  ki_decl *decl = KJ_NEW(arena, ki_decl);
  decl->kind = kind;
  decl->name =
    name ? kj_copy_string(arena, name, strlen(name)) : kj_format(arena, "%s%zu", letter, number);
  decl->location = builder->location;
  decl->function = builder->function;
  return decl;
}

ki_decl *ki_build_local(kjit_builder *builder, ki_decl_kind kind, const char *name,
                        const char *letter)
{
  ki_top_frame(builder);
  ki_function *function = builder->function;
  size_t index = function->params.count + function->locals.count;
  ki_decl *decl = new_decl(builder, kind, name, letter, index);
  decl->index = (uint32_t)index;
  KJ_PUSH(ki_builder_arena(builder), &function->locals, decl);
  return decl;
}

static void begin_function(kjit_builder *builder, const char *name, bool is_kernel,
                           kjit_type result)
{
  if (builder->function)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "`%s` is still open: a kjit_build_end is missing",
                  builder->function->decl->name);
  if (is_kernel && !name)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "the name of a kernel is missing");
  ki_decl *decl = new_decl(builder, KJ_DECL_FUNCTION, name, "f", builder->module->decls.count);
  ki_function *function = KJ_NEW(ki_builder_arena(builder), ki_function);
  function->decl = decl;
  function->is_kernel = is_kernel;
  function->result = result == KJIT_VOID ? NULL : ki_use_type(builder, result);
  decl->function = function;
  KJ_PUSH(ki_builder_arena(builder), &builder->module->decls, decl);
  builder->function = function;
  ki_push_frame(builder, KJ_FRAME_FUNCTION, NULL, &function->body);
}

void kjit_build_begin_kernel(kjit_builder *builder, const char *name)
{
  if (KJ_ENTER_BUILDER(builder)) begin_function(builder, name, true, KJIT_ANY);
}

void kjit_build_begin_function(kjit_builder *builder, const char *name, kjit_type result)
{
  if (KJ_ENTER_BUILDER(builder)) begin_function(builder, name, false, result);
}

void kjit_build_begin_extern(kjit_builder *builder, const char *name, kjit_type result)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  if (!name)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "an extern function needs a name, the name of the C function");
  begin_function(builder, name, false, result == KJIT_ANY ? KJIT_VOID : result);
  builder->function->is_extern = true;
}

static ki_decl *add_parameter(kjit_builder *builder, const char *name)
{
  ki_function *function = builder->function;
  if (!function || builder->frames.count != 1 || function->body.count)
    ki_fail_build(builder, KJIT_ERROR_MISUSE,
                  "parameters must directly follow the beginning of a kernel or function");
  ki_decl *param = new_decl(builder, KJ_DECL_PARAM, name, "p", function->params.count);
  param->index = (uint32_t)function->params.count;
  KJ_PUSH(ki_builder_arena(builder), &function->params, param);
  return param;
}

kjit_node kjit_build_parameter(kjit_builder *builder, const char *name, kjit_type type)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_decl *param = add_parameter(builder, name);
  param->is_func = type == KJIT_FUNC;
  param->is_type = type == KJIT_TYPE;
  if (!param->is_func && !param->is_type) param->type_expr = ki_use_type(builder, type);
  return ki_add_decl(builder, param);
}

kjit_node kjit_build_const_parameter(kjit_builder *builder, const char *name,
                                     kjit_node default_value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_expr *value = default_value ? ki_use_node(builder, default_value) : NULL;
  ki_decl *param = add_parameter(builder, name);
  param->is_const = true;
  param->value = value;
  return ki_add_decl(builder, param);
}

/* Returns the attributes of the construct that was begun last: a function or loop without
 * statements, or a shared or local array. */
static ki_attributes *find_attributes(kjit_builder *builder)
{
  const ki_open_block *frame = ki_top_frame(builder);
  const ki_stmt *last = frame->body->count ? frame->body->items[frame->body->count - 1] : NULL;
  if (last && last->kind == KJ_STMT_STORAGE) return &last->decls.items[0]->attributes;
  if (!last && frame->kind == KJ_FRAME_FUNCTION) return &builder->function->attributes;
  if (!last && frame->kind == KJ_FRAME_LOOP) return &frame->stmt->attributes;
  ki_fail_build(builder, KJIT_ERROR_MISUSE,
                "attributes must directly follow the beginning of a kernel, function or loop, or a "
                "shared or local array");
}

void kjit_build_attribute(kjit_builder *builder, const char *name, const kjit_node *values,
                          size_t count)
{
  if (!KJ_ENTER_BUILDER(builder)) return;
  ki_attribute attribute = { .info = name ? ki_find_attribute(name) : NULL,
                             .location = builder->location };
  if (!attribute.info)
    ki_fail_build(builder, KJIT_ERROR_NAME, "there is no attribute `@%s`", name ? name : "");
  ki_attributes *attributes = find_attributes(builder);
  ki_use_nodes(builder, values, count, &attribute.values);
  KJ_PUSH(ki_builder_arena(builder), attributes, attribute);
}

/* Checks the element type and the shape of a constant, and returns its size in bytes. */
static size_t measure_constant(kjit_builder *builder, kjit_type element, const int64_t *shape,
                               uint32_t rank)
{
  if (!ki_is_element(builder->module->types, element) ||
      ki_holds_pointer(builder->module->types, element))
    ki_fail_build(
      builder, KJIT_ERROR_TYPE,
      "the elements of a constant must be scalars, vectors or structs without pointers");
  if (rank > KJ_MAX_RANK || (rank && !shape))
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "a constant has at most %d dimensions", KJ_MAX_RANK);
  int64_t size = ki_type(builder->module->types, element)->size_bytes;
  for (uint32_t i = 0; i < rank; i++) {
    if (shape[i] < 0)
      ki_fail_build(builder, KJIT_ERROR_MISUSE, "an extent must be at least 0, got %lld",
                    (long long)shape[i]);
    if (__builtin_mul_overflow(size, shape[i], &size) || size > INT32_MAX)
      ki_fail_build(builder, KJIT_ERROR_MISUSE, "a constant must be smaller than 2 GiB");
  }
  return (size_t)size;
}

static ki_decl *new_constant(kjit_builder *builder, const char *name)
{
  if (builder->function)
    ki_fail_build(
      builder, KJIT_ERROR_MISUSE,
      "kjit_build_constant was called inside a function; create constants outside of functions");
  ki_decl *decl = new_decl(builder, KJ_DECL_CONST, name, "c", builder->module->decls.count);
  decl->is_const = true;
  return decl;
}

kjit_node kjit_build_constant_value(kjit_builder *builder, const char *name, kjit_type type,
                                    kjit_node value)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_decl *decl = new_constant(builder, name);
  decl->type_expr = ki_use_type(builder, type);
  decl->value = ki_use_node(builder, value);
  KJ_PUSH(ki_builder_arena(builder), &builder->module->decls, decl);
  return ki_add_decl(builder, decl);
}

kjit_node kjit_build_constant(kjit_builder *builder, const char *name, kjit_type element,
                              const void *data, const int64_t *shape, uint32_t rank)
{
  if (!KJ_ENTER_BUILDER(builder)) return 0;
  ki_decl *decl = new_constant(builder, name);
  size_t size = measure_constant(builder, element, shape, rank);
  if (!data && size)
    ki_fail_build(builder, KJIT_ERROR_MISUSE, "kjit_build_constant: the data is NULL");
  void *copy = kj_allocate(ki_builder_arena(builder), size + 1);
  if (size) memcpy(copy, data, size);
  ki_declare_structs(builder->module, element, builder->location);
  decl->data = copy;
  decl->data_element = element;
  decl->rank = rank;
  if (rank) memcpy(decl->extents, shape, rank * sizeof *shape);
  KJ_PUSH(ki_builder_arena(builder), &builder->module->decls, decl);
  return ki_add_decl(builder, decl);
}
