/* Creates the kernel objects of a module, each when it is first requested, and implements the
 * public functions about kernels. */
#include <stdlib.h>
#include <string.h>

#include "code/kernel.h"
#include "ir/number.h"

/* Kernel objects of a module, indexed by declaration. Existing objects are read without a lock. */
typedef struct kernel_set {
  size_t count;
  _Atomic(kjit_kernel *) items[];
} kernel_set;

/* ---- properties that a launch needs ---- */

static kj_annotation read_annotation(const ki_decl *decl, const ki_types *types)
{
  const ki_type_expr *written = decl->type_expr;
  kj_annotation none = { .kind = KJ_ANNOTATION_NONE, .same_as = -1 },
                found = { .kind = KJ_ANNOTATION_OTHER, .same_as = -1 };
  if (!written) return none;
  const ki_type_expr *element = written->kind == KJ_TYPE_ARRAY ? written->element : written;
  bool names_parameter = element && element->kind == KJ_TYPE_DTYPE && element->expr &&
                         element->expr->kind == KJ_EXPR_DECL &&
                         element->expr->decl->kind == KJ_DECL_PARAM;
  if (names_parameter) found.same_as = (int)element->expr->decl->index;
  if (written->kind == KJ_TYPE_ARRAY) {
    found.kind = KJ_ANNOTATION_ARRAY;
    found.rank = (uint8_t)written->rank;
    found.layout = (uint8_t)written->layout;
    found.read_only = written->read_only;
  } else if (written->kind == KJ_TYPE_DTYPE && names_parameter) {
    found.kind = KJ_ANNOTATION_SAME;
  } else if (written->kind == KJ_TYPE_FIXED) {
    const ki_type_info *info = ki_type(types, written->type);
    found.kind = info->class_ == KJ_CLASS_ARRAY ? KJ_ANNOTATION_ARRAY
                 : ki_is_scalar(written->type)  ? KJ_ANNOTATION_SCALAR
                                                : KJ_ANNOTATION_OTHER;
    found.type = info->class_ == KJ_CLASS_ARRAY ? info->element : written->type;
    if (info->class_ == KJ_CLASS_POINTER) found.kind = KJ_ANNOTATION_POINTER;
    found.rank = (uint8_t)info->rank;
    found.layout = (uint8_t)info->layout;
    found.read_only = info->read_only || written->read_only;
  }
  return found;
}

static bool bind_lets(kjit_kernel *kernel, const ki_stmts *body);

static void bind_let(kjit_kernel *kernel, const ki_stmt *stmt)
{
  for (size_t i = 0; i < stmt->decls.count; i++) {
    const ki_decl *decl = stmt->decls.items[i];
    if (decl->kind != KJ_DECL_LET || decl->index >= kernel->binding_count) continue;
    /* a let with a declared type is not bound: the conversion to this type can give the let another
     * value than its expression has */
    if (decl->type_expr && stmt->decls.count == 1) continue;
    kernel->bindings[decl->index] = (kj_binding){ .value = stmt->value ? stmt->value : decl->value,
                                                  .item = stmt->decls.count > 1 ? (int)i : -1 };
  }
}

static bool add_range(kjit_kernel *kernel, const ki_stmt *stmt)
{
  const ki_stmt **grown = realloc(kernel->ranges, (kernel->range_count + 1) * sizeof *grown);
  if (!grown) return false;
  kernel->ranges = grown;
  kernel->ranges[kernel->range_count++] = stmt;
  return true;
}

/* Collects the lets and grid_ranges in a statement. A let inside a loop has a changing value; its
 * evaluation fails later at the loop's variable, which is unknown. */
static bool bind_stmt(kjit_kernel *kernel, const ki_stmt *stmt)
{
  if (stmt->kind == KJ_STMT_DECLARE) bind_let(kernel, stmt);
  bool is_range = stmt->kind == KJ_STMT_FOR && stmt->range == KJ_GRID_RANGE;
  return (!is_range || add_range(kernel, stmt)) && bind_lets(kernel, &stmt->body) &&
         bind_lets(kernel, &stmt->otherwise);
}

static bool bind_lets(kjit_kernel *kernel, const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++)
    if (!bind_stmt(kernel, body->items[i])) return false;
  return true;
}

/* Returns whether the statement calls an adjoint, which has the grid_range of the original
 * kernel. */
static bool is_adjoint_call(const ki_stmt *stmt)
{
  const ki_expr *call = stmt->kind == KJ_STMT_EVALUATE ? stmt->value : NULL;
  if (!call || call->kind != KJ_EXPR_CALL || call->x->kind != KJ_EXPR_CALL) return false;
  const ki_expr *callee = call->x->x;
  return callee->kind == KJ_EXPR_BUILTIN && callee->builtin->id == KJ_BUILTIN_ADJOINT;
}

static bool has_adjoint_call(const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const ki_stmt *stmt = body->items[i];
    if (is_adjoint_call(stmt) || has_adjoint_call(&stmt->body) ||
        has_adjoint_call(&stmt->otherwise))
      return true;
  }
  return false;
}

static bool has_grid_range(const ki_stmts *body)
{
  for (size_t i = 0; i < body->count; i++) {
    const ki_stmt *stmt = body->items[i];
    if ((stmt->kind == KJ_STMT_FOR && stmt->range == KJ_GRID_RANGE) ||
        has_grid_range(&stmt->body) || has_grid_range(&stmt->otherwise))
      return true;
  }
  return false;
}

/* Returns whether any func of the module has a grid_range. This function does not check whether the
 * kernel calls the func; if the kernel does not call it, the grid is only larger than necessary. */
static bool has_callee_range(const kjit_module *module)
{
  const kjit_module *base = module->later ? module->bases.items[0] : module;
  if (base->partial && base->partial->has_grid_ranges) return true;
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (decl->kind != KJ_DECL_FUNCTION) continue;
    const ki_function *function = decl->function;
    if (has_adjoint_call(&function->body) ||
        (!function->is_kernel && has_grid_range(&function->body)))
      return true;
  }
  return false;
}

/* Returns whether an attribute depends on const parameters only. To find out, evaluates the
 * attribute with const parameters set to 1 and without other arguments. */
static bool is_static(kjit_kernel *kernel, const ki_attribute *attribute)
{
  kj_bound *bound = attribute ? calloc(kernel->parameter_count + 1, sizeof *bound) : NULL;
  if (!bound) return false;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    bound[i].kind = kernel->parameters[i].is_const ? KJ_ARGUMENT_CONST : KJ_ARGUMENT_FUNCTION;
    bound[i].value = (ki_value){ .type = KJ_WEAK_INT, .integer = 1 };
  }
  kj_scope scope = { .bound = bound,
                     .bound_count = kernel->parameter_count,
                     .bindings = kernel->bindings,
                     .binding_count = kernel->binding_count };
  bool is_known = true;
  int64_t value;
  for (size_t i = 0; i < attribute->values.count && is_known; i++)
    is_known = kj_evaluate_index(&scope, attribute->values.items[i], &value);
  free(bound);
  return is_known;
}

/* Evaluates the kernel's @block once for all launches, if it depends on no parameter. */
static void fix_block(kjit_kernel *kernel)
{
  kj_scope scope = { .bindings = kernel->bindings, .binding_count = kernel->binding_count };
  uint32_t block[3];
  if (kernel->block && kj_evaluate_attribute(kernel, &scope, kernel->block, NULL, block) == KJIT_OK)
    memcpy(kernel->fixed_block, block, sizeof block);
}

static bool is_named(const ki_attribute *attribute, const ki_decl *decl)
{
  const ki_expr *value = attribute->values.count ? attribute->values.items[0] : NULL;
  return value && ((value->kind == KJ_EXPR_DECL && value->decl == decl) ||
                   (value->name && !strcmp(value->name, decl->name)));
}

static bool is_general(const ki_function *function, const ki_decl *decl)
{
  for (size_t i = 0; i < function->attributes.count; i++) {
    const ki_attribute *attribute = &function->attributes.items[i];
    if (attribute->info == &ki_attribute_table[KJ_ATTRIBUTE_GENERAL] && is_named(attribute, decl))
      return true;
  }
  return false;
}

static void describe_parameters(kjit_kernel *kernel, const bool *read, const bool *written)
{
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    const ki_decl *decl = kernel->function->params.items[i];
    kernel->parameters[i] = (kj_parameter_row){
      .decl = decl,
      .annotation = read_annotation(decl, kernel->module->types),
      .is_const = decl->is_const,
      .is_func = decl->is_func,
      .is_read = read[i],
      .is_written = written[i],
      .is_general = is_general(kernel->function, decl),
    };
  }
}

/* Returns the number of bytes that a call needs for bound arguments, key and parameter block, in
 * which an array takes a pointer, extents and strides. Relations are needed only for a
 * compilation. */
static size_t count_call_bytes(const kjit_kernel *kernel)
{
  enum {
    BLOCK_BYTES = 8 + 2 * 8 * KJ_MAX_RANK,
    ALL_MAPS = KJ_MOST_MAPS * KJ_MAP_BYTES + KJ_MAP_ALIGNMENT
  };
  return kernel->parameter_count * (sizeof(kj_bound) + BLOCK_BYTES) +
         kj_key_capacity(kernel) * sizeof(uint64_t) + 64 +
         (kernel->shared_count + 1) *
           (sizeof(kj_shared_size) + (KJ_MAX_RANK + 1) * sizeof(uint32_t)) +
         (kernel->module->has_tensor_copies ? ALL_MAPS : 0) +
         2 * sizeof(uint64_t) /* space for the addresses of a failure record and a print sink */;
}

static void free_kernel(kjit_kernel *kernel)
{
  if (!kernel) return;
  kj_free_specializations(kernel);
  if (kernel->free_functions) kernel->free_functions(kernel);
  kj_destroy_mutex(&kernel->mutex);
  free(kernel->order);
  free(kernel->ranges);
  free(kernel->shared);
  free(kernel->bindings);
  free(kernel->parameters);
  free(kernel);
}

/* Returns whether a shared array has extents that a launch evaluates. Which of these arrays the
 * code uses is known only after its compilation. */
static bool has_extents(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_SHARED && decl->type_expr->kind == KJ_TYPE_STATIC_ARRAY &&
         decl->type_expr->extents.count;
}

static bool describe_shared(kjit_kernel *kernel)
{
  const ki_decls *locals = &kernel->function->locals;
  uint32_t count = 0;
  for (size_t i = 0; i < locals->count; i++) count += has_extents(locals->items[i]);
  kernel->shared = calloc(count + 1, sizeof *kernel->shared);
  if (!kernel->shared) return false;
  for (size_t i = 0; i < locals->count; i++) {
    const ki_decl *decl = locals->items[i];
    if (!has_extents(decl)) continue;
    kernel->shared[kernel->shared_count++] = decl;
  }
  return true;
}

static bool describe_kernel(kjit_kernel *kernel)
{
  const ki_function *function = kernel->function;
  bool *accesses = calloc(2 * function->params.count + 1, sizeof *accesses);
  kernel->binding_count = (uint32_t)(function->params.count + function->locals.count);
  kernel->parameter_count = (uint32_t)function->params.count;
  kernel->parameters = calloc(function->params.count + 1, sizeof *kernel->parameters);
  kernel->bindings = calloc(kernel->binding_count + 1, sizeof *kernel->bindings);
  if (!accesses || !kernel->parameters || !kernel->bindings) {
    free(accesses);
    return false;
  }
  ki_find_accesses(kernel->module, function, accesses, accesses + function->params.count);
  describe_parameters(kernel, accesses, accesses + function->params.count);
  free(accesses);
  if (!bind_lets(kernel, &function->body)) return false;
  kernel->block = ki_get_attribute(&function->attributes, KJ_ATTRIBUTE_BLOCK);
  kernel->grid = ki_get_attribute(&function->attributes, KJ_ATTRIBUTE_GRID);
  kernel->launch_bounds = ki_get_attribute(&function->attributes, KJ_ATTRIBUTE_LAUNCH_BOUNDS);
  kernel->block_is_static = is_static(kernel, kernel->block);
  fix_block(kernel);
  kernel->is_range_only = kj_is_range_only(function);
  kernel->has_callee_range = has_callee_range(kernel->module);
  if (!describe_shared(kernel)) return false;
  kernel->call_bytes = count_call_bytes(kernel);
  return kj_mark_shaping(kernel);
}

static kjit_kernel *make_kernel(kjit_module *module, const ki_function *function)
{
  kjit_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) return NULL;
  kernel->module = module;
  kernel->context = module->context;
  kernel->function = function;
  pthread_mutex_init(&kernel->mutex, NULL);
  if (describe_kernel(kernel)) return kernel;
  free_kernel(kernel);
  return NULL;
}

/* ---- the kernels in a module ---- */

static void release_kernels(kjit_module *module)
{
  kernel_set *set = module->kernels;
  for (size_t i = 0; set && i < set->count; i++) free_kernel(atomic_load(&set->items[i]));
  free(set);
  module->kernels = NULL;
}

static kernel_set *get_set(kjit_module *module)
{
  kernel_set *set = __atomic_load_n(&module->kernels, __ATOMIC_ACQUIRE);
  if (set) return set;
  kj_lock(&module->context->runtime_mutex, KJ_LOCK_RUNTIME);
  set = module->kernels;
  if (!set && (set = calloc(1, sizeof *set + module->decls.count * sizeof *set->items))) {
    set->count = module->decls.count;
    module->release_kernels = release_kernels;
    __atomic_store_n(&module->kernels, set, __ATOMIC_RELEASE);
  }
  kj_unlock(&module->context->runtime_mutex, KJ_LOCK_RUNTIME);
  return set;
}

/* Returns the kernel object. If two threads create it at the same time, the second object is
 * discarded. */
static kjit_kernel *get_kernel(kjit_module *module, kernel_set *set, size_t index)
{
  kjit_kernel *known = atomic_load_explicit(&set->items[index], memory_order_acquire);
  if (known) return known;
  kjit_kernel *made = make_kernel(module, module->decls.items[index]->function);
  if (!made || atomic_compare_exchange_strong(&set->items[index], &known, made)) return made;
  free_kernel(made);
  return known;
}

kjit_kernel *kj_get_kernel_object(kjit_module *module, size_t index)
{
  kernel_set *set = get_set(module);
  return set ? get_kernel(module, set, index) : NULL;
}

static kjit_status report_unknown(kjit_module *module, const char *name)
{
  kj_buffer names = { 0 };
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (decl->kind == KJ_DECL_FUNCTION && decl->function->is_kernel)
      kj_append_format(&names, "%s`%s`", names.length ? ", " : "", decl->name);
  }
  const char *source = module->sources.count ? module->sources.items[0].name : "the module";
  kjit_status status =
    ki_fail_call(module->context, KJIT_ERROR_NAME, "%s has no kernel `%s`; %s%s", source, name,
                 names.length ? "its kernels are " : "it has no kernels",
                 names.length ? names.text : "");
  kj_free_buffer(&names);
  return status;
}

kjit_kernel *kj_get_made_kernel(kjit_module *module, size_t index)
{
  kernel_set *set = __atomic_load_n(&module->kernels, __ATOMIC_ACQUIRE);
  return set ? atomic_load_explicit(&set->items[index], memory_order_acquire) : NULL;
}

kjit_status kjit_get_kernel(kjit_module *module, const char *name, kjit_kernel **kernel)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!name || !kernel)
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_get_kernel: %s is NULL",
                        name ? "kernel" : "name");
  size_t index = 0;
  while (index < module->decls.count) {
    const ki_decl *decl = module->decls.items[index];
    if (decl->kind == KJ_DECL_FUNCTION && decl->function->is_kernel && !strcmp(decl->name, name))
      break;
    index++;
  }
  if (index == module->decls.count) return report_unknown(module, name);
  kernel_set *set = get_set(module);
  kjit_kernel *found = set ? get_kernel(module, set, index) : NULL;
  if (!found) return ki_fail_call(module->context, KJIT_ERROR_MEMORY, "out of memory");
  *kernel = found;
  return KJIT_OK;
}

kjit_status kjit_get_adjoint(kjit_kernel *kernel, const uint32_t *parameters, size_t count,
                             kjit_module **derived, kjit_kernel **adjoint)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(kernel->context)) return KJIT_ERROR_FORKED;
  if (!derived || !adjoint || (count && !parameters))
    return ki_fail_call(kernel->context, KJIT_ERROR_MISUSE, "kjit_get_adjoint: %s is NULL",
                        !derived   ? "derived"
                        : !adjoint ? "adjoint"
                                   : "parameters");
  kjit_module *made;
  const char *name;
  KJ_TRY(ki_derive_kernel(kernel->module, kernel->function, parameters, count, &made, &name));
  kjit_status status = kjit_get_kernel(made, name, adjoint);
  if (status == KJIT_OK) *derived = made;
  else kjit_release_module(made);
  return status;
}

/* ---- public queries ---- */

static kjit_status tell_parameter(const char *call, const kjit_kernel *kernel, const char *what,
                                  size_t index, kjit_parameter_info *info)
{
  if (index >= kernel->parameter_count)
    return ki_fail_call(kernel->context, KJIT_ERROR_ARGUMENT,
                        "%s `%s` has %u parameters, but parameter %zu was requested", what,
                        kernel->function->decl->name, kernel->parameter_count, index);
  const kj_parameter_row *row = &kernel->parameters[index];
  const ki_type_expr *written = row->decl->type_expr;
  const kjit_parameter_info own = {
    .name = row->decl->name,
    .annotation = row->is_func                                ? KJIT_FUNC
                  : written && written->kind == KJ_TYPE_FIXED ? written->type
                                                              : KJIT_ANY,
    .is_const = row->is_const,
    .has_default = row->decl->value != NULL,
    .is_function = row->is_func,
    .is_read = row->is_read,
    .is_written = row->is_written,
  };
  return ki_write_sized(kernel->context, call, KI_PARAMETER_INFO, &own, info);
}

kjit_status kjit_get_parameter_info(kjit_kernel *kernel, size_t index, kjit_parameter_info *info)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  return tell_parameter("kjit_get_parameter_info", kernel, "kernel", index, info);
}

kjit_status kjit_get_function_parameter_info(kjit_function *function, size_t index,
                                             kjit_parameter_info *info)
{
  if (!function) return KJIT_ERROR_MISUSE;
  const ki_decl *decl = kj_function_of(function);
  kjit_context *context = decl->function->module->context;
  if (decl->function->is_extern || decl->function->builtin)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "`%s` is %s; kjit can describe the parameters only of funcs with a body",
                        decl->name, decl->function->builtin ? "a built-in" : "an extern func");
  const kjit_kernel *known = kj_get_kernel_object(decl->function->module, decl->index);
  if (!known) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  return tell_parameter("kjit_get_function_parameter_info", known, "function", index, info);
}

/* ---- calls ---- */

size_t kj_divide_memory(kj_call *call, char *memory)
{
  const kjit_kernel *kernel = call->kernel;
  call->bound = (kj_bound *)memory;
  call->key = (uint64_t *)(call->bound + kernel->parameter_count);
  call->shared = (kj_shared_size *)(call->key + kj_key_capacity(kernel));
  size_t shared_bytes = (kernel->shared_count + 1) * sizeof *call->shared;
  call->parameters = (char *)call->shared + (shared_bytes + 7) / 8 * 8;
  call->parameter_room = (size_t)(memory + kernel->call_bytes - call->parameters);
  return kernel->call_bytes;
}

/* ---- printing ---- */

static void print_array(const kj_call *call, const kj_bound *bound, kj_buffer *buffer)
{
  ki_types *types = call->kernel->module->types;
  kjit_type type =
    ki_array_type(types, bound->type, bound->rank, (kjit_layout)bound->layout, false);
  if (type == KJIT_ANY) kj_append_text(buffer, "an array");
  else ki_print_type(types, type, buffer);
}

void kj_print_bound(const kj_call *call, const kj_bound *bound, kj_buffer *buffer)
{
  switch ((kj_argument_kind)bound->kind) {
  case KJ_ARGUMENT_ARRAY: print_array(call, bound, buffer); return;
  case KJ_ARGUMENT_CONST: ki_print_value(bound->value, true, buffer); return;
  case KJ_ARGUMENT_FUNCTION:
    kj_append_text(buffer, bound->function ? bound->function->name : "a function");
    return;
  case KJ_ARGUMENT_NUMBER: kj_append_text(buffer, kj_number_text(bound->type)); return;
  case KJ_ARGUMENT_VALUE: ki_print_type(call->kernel->module->types, bound->type, buffer); return;
  }
}

/* ---- arrays ---- */

static bool have_equal_strides(const kj_bound *a, const kj_bound *b)
{
  if (a->layout != b->layout) return false;
  for (uint32_t i = 0; i < a->rank && a->strides && b->strides; i++)
    if (a->shape[i] > 1 && a->strides[i] != b->strides[i]) return false;
  return true;
}

kj_relation kj_relate(const kj_bound *a, const kj_bound *b)
{
  if (a->is_empty || b->is_empty || a->on_host != b->on_host ||
      !kj_do_meet(a->low, a->high, b->low, b->high))
    return KJ_RELATION_DISJOINT;
  bool is_same = a->address == b->address && a->type == b->type && a->rank == b->rank &&
                 (!a->rank || !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape));
  return is_same && have_equal_strides(a, b) ? KJ_RELATION_SAME : KJ_RELATION_ANY;
}
