/* Implements kjit_set_constant, which creates a copy of a module in which the application has set a
 * constant's value. */
#include <kjit/function.h>
#include <math.h>
#include <string.h>

#include "code/kernel.h"
#include "ir/number.h"
#include "memory/array.h"

typedef struct change {
  uint32_t index; /* index of the declaration, which is the same in the module and in its copy */
  const kjit_arg *given;
  /* the new value of a scalar constant */
  ki_value value;
  /* for other constants: `view` describes the new array, and `bits` points to the bytes of the new
   * struct or vector */
  bool is_array;
  kj_view view;
  const void *bits;
} change;

static kjit_status refuse(const kjit_module *module, const ki_decl *decl,
                          kj_diagnostics *diagnostics, const char *expected, const char *got)
{
  return kj_error_at(diagnostics, module, decl->location, KJIT_ERROR_TYPE,
                     "constant `%s`: expected %s, got %s", decl->name, expected, got);
}

static const char *type_name(const kjit_module *module, kjit_type type)
{
  if (type == KJ_WEAK_INT) return "an integer";
  if (type == KJ_WEAK_FLOAT) return "a number";
  const char *name = ki_type(module->types, type)->name;
  return name ? name : "another type";
}

/* ---- the declared type ---- */

/* Returns the declared type of a scalar or of array elements, or KJIT_ANY if none is declared. A
 * constant that the builder created from data has the type of the data. */
static kjit_type declared_element(const ki_decl *decl)
{
  const ki_type_expr *written = decl->type_expr;
  if (written && written->kind == KJ_TYPE_STATIC_ARRAY) written = written->element;
  if (written) return written->kind == KJ_TYPE_FIXED ? written->type : KJIT_ANY;
  return decl->data ? decl->data_element : KJIT_ANY;
}

static bool is_declared_array(const kjit_module *module, const ki_decl *decl, bool *is_known)
{
  const ki_type_expr *written = decl->type_expr;
  *is_known = written || decl->data || decl->value;
  if (written)
    return written->kind == KJ_TYPE_STATIC_ARRAY || written->kind == KJ_TYPE_ARRAY ||
           (written->kind == KJ_TYPE_FIXED &&
            ki_type(module->types, written->type)->class_ == KJ_CLASS_ARRAY);
  return decl->data ? decl->rank > 0 : decl->value && decl->value->kind == KJ_EXPR_AGGREGATE;
}

static kjit_status check_extents(const kjit_module *module, const ki_decl *decl,
                                 const kj_view *view, kj_diagnostics *diagnostics)
{
  const ki_type_expr *written = decl->type_expr;
  if (!written || written->kind != KJ_TYPE_STATIC_ARRAY) return KJIT_OK;
  if (written->extents.count != view->rank)
    return kj_error_at(diagnostics, module, decl->location, KJIT_ERROR_TYPE,
                       "constant `%s`: its type has %zu dimensions, but the array has %u",
                       decl->name, written->extents.count, view->rank);
  for (uint32_t d = 0; d < view->rank; d++) {
    kj_scope nothing = { 0 };
    int64_t extent;
    if (!kj_evaluate_index(&nothing, written->extents.items[d], &extent) ||
        extent == view->shape[d])
      continue;
    return kj_error_at(
      diagnostics, module, decl->location, KJIT_ERROR_TYPE,
      "constant `%s`: dimension %u has %lld elements in its type, but %lld in the array",
      decl->name, d, (long long)extent, (long long)view->shape[d]);
  }
  return KJIT_OK;
}

/* ---- the given value ---- */

static kjit_status take_scalar(const kjit_module *module, const ki_decl *decl, change *c,
                               kj_diagnostics *diagnostics)
{
  const kjit_arg *given = c->given;
  kjit_type wanted = declared_element(decl);
  if (given->kind == KJIT_ARG_NUMBER) c->value = kj_argument_number(given);
  else {
    const void *memory = given->kind == KJIT_ARG_BY_ADDRESS ? given->value.address : &given->value;
    bool is_plain =
      ki_is_element(module->types, given->type) && !ki_holds_pointer(module->types, given->type);
    if (!memory || !is_plain)
      return refuse(module, decl, diagnostics, "a scalar, a vector or a struct without pointers",
                    memory ? "a value of another type" : "the address NULL");
    c->value.type = given->type;
    if (!ki_decode_value(given->type, memory, &c->value)) { /* an aggregate */
      c->bits = memory;
      return wanted == KJIT_ANY || wanted == given->type
               ? KJIT_OK
               : refuse(module, decl, diagnostics, type_name(module, wanted),
                        type_name(module, given->type));
    }
  }
  ki_value converted;
  if (wanted == KJIT_ANY) return KJIT_OK;
  if (!ki_is_scalar(wanted) || !ki_fit_argument(c->value, wanted, &converted)) {
    kj_buffer text = { 0 };
    ki_print_value(c->value, true, &text);
    kjit_status status = refuse(module, decl, diagnostics,
                                ki_is_scalar(wanted) ? type_name(module, wanted) : "another type",
                                text.text ? text.text : "a value that the type cannot represent");
    kj_free_buffer(&text);
    return status;
  }
  c->value = converted;
  return KJIT_OK;
}

static kjit_status take_array(const kjit_module *module, const ki_decl *decl, change *c,
                              kj_diagnostics *diagnostics)
{
  const kjit_arg *given = c->given;
  kjit_type wanted = declared_element(decl);
  if (!given->value.address) return refuse(module, decl, diagnostics, "an array", "NULL");
  if (given->kind == KJIT_ARG_ARRAY &&
      given->value.array->object.device->context != module->context)
    return refuse(module, decl, diagnostics, "an array of this context",
                  "an array of another context");
  const kjit_tensor *tensor =
    given->kind == KJIT_ARG_ARRAY ? kjit_get_tensor(given->value.array) : given->value.tensor;
  KJ_TRY(kj_view_tensor(module->types, tensor, given->type, "the value of a constant", diagnostics,
                        &c->view));
  if (ki_holds_pointer(module->types, c->view.element))
    return refuse(module, decl, diagnostics, "an array without pointers",
                  "an array whose elements contain pointers");
  if (c->view.kind != KJIT_DEVICE_CPU)
    return refuse(module, decl, diagnostics, "an array in host memory", "an array in GPU memory");
  if (!c->view.rank)
    return refuse(module, decl, diagnostics, "an array with dimensions",
                  "an array without dimensions");
  if (c->view.count > INT32_MAX / c->view.element_bytes)
    return refuse(module, decl, diagnostics, "less than 2 GiB", "a larger array");
  bool is_array_type =
    wanted != KJIT_ANY && ki_type(module->types, wanted)->class_ == KJ_CLASS_ARRAY;
  if (is_array_type) {
    const ki_type_info *info = ki_type(module->types, wanted);
    if (info->rank != c->view.rank)
      return refuse(module, decl, diagnostics, "an array with the number of dimensions of its type",
                    "an array with another number of dimensions");
    wanted = info->element;
  }
  if (wanted != KJIT_ANY && wanted != c->view.element)
    return refuse(module, decl, diagnostics, type_name(module, wanted),
                  type_name(module, c->view.element));
  return check_extents(module, decl, &c->view, diagnostics);
}

static kjit_status take_value(const kjit_module *module, const ki_decl *decl, change *c,
                              kj_diagnostics *diagnostics)
{
  bool is_tuple = decl->type_expr ? decl->type_expr->kind == KJ_TYPE_TUPLE
                                  : decl->value && decl->value->kind == KJ_EXPR_TUPLE;
  if (is_tuple)
    return refuse(module, decl, diagnostics,
                  "no value, because the tuple consists of other constants", "a value");
  bool is_known, wants_array = is_declared_array(module, decl, &is_known);
  bool is_array = c->given->kind == KJIT_ARG_TENSOR || c->given->kind == KJIT_ARG_ARRAY;
  bool is_scalar = c->given->kind == KJIT_ARG_VALUE || c->given->kind == KJIT_ARG_NUMBER ||
                   c->given->kind == KJIT_ARG_BY_ADDRESS;
  if (!is_array && !is_scalar)
    return refuse(module, decl, diagnostics, "a scalar or an array", "something else");
  if (is_known && wants_array != is_array)
    return refuse(module, decl, diagnostics, wants_array ? "an array" : "a scalar",
                  is_array ? "an array" : "a scalar");
  c->is_array = is_array;
  return is_array ? take_array(module, decl, c, diagnostics)
                  : take_scalar(module, decl, c, diagnostics);
}

/* ---- declarations that depend on the constant ---- */

static bool depends_on(const ki_expr *expr, const char *name);

static bool type_depends_on(const ki_type_expr *type, const char *name)
{
  if (!type) return false;
  for (size_t i = 0; i < type->extents.count; i++)
    if (depends_on(type->extents.items[i], name)) return true;
  return type_depends_on(type->element, name) || depends_on(type->expr, name);
}

/* Returns whether the expression refers to the constant with this name, directly or through other
 * constants. The recursion ends because constants cannot depend on each other in a cycle. */
static bool depends_on(const ki_expr *expr, const char *name)
{
  if (!expr) return false;
  if (expr->kind == KJ_EXPR_NAME && strcmp(expr->name, name) == 0) return true;
  if (expr->kind == KJ_EXPR_DECL && expr->decl->kind == KJ_DECL_CONST &&
      (strcmp(expr->decl->name, name) == 0 || depends_on(expr->decl->value, name)))
    return true;
  if (depends_on(expr->x, name) || depends_on(expr->y, name) || depends_on(expr->z, name))
    return true;
  for (size_t i = 0; i < expr->args.count; i++)
    if (depends_on(expr->args.items[i], name)) return true;
  return false;
}

/* Checks that no struct depends on the constant, because structs are laid out when a module is
 * made. */
static kjit_status check_structs(const kjit_module *module, const ki_decl *decl,
                                 kj_diagnostics *diagnostics)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *item = module->decls.items[i];
    bool depends = false;
    if (item->kind != KJ_DECL_STRUCT) continue;
    for (size_t k = 0; k < item->fields.count; k++)
      depends |= type_depends_on(item->fields.items[k]->type_expr, decl->name);
    for (size_t k = 0; k < item->attributes.count; k++)
      for (size_t n = 0; n < item->attributes.items[k].values.count; n++)
        depends |= depends_on(item->attributes.items[k].values.items[n], decl->name);
    if (depends)
      return kj_error_at(diagnostics, module, decl->location, KJIT_ERROR_TYPE,
                         "constant `%s` cannot be changed, because the layout of struct `%s` "
                         "depends on it and is computed when the module is parsed",
                         decl->name, item->name);
  }
  return KJIT_OK;
}

/* ---- changing the module ---- */

static ki_expr *new_expr(kj_arena *arena, ki_expr_kind kind, kjit_type type, kj_location location)
{
  ki_expr *expr = KJ_NEW(arena, ki_expr);
  *expr = (ki_expr){ .kind = kind, .type = type, .height = 1, .location = location };
  return expr;
}

/* Returns an expression for a number. Infinity and NaN have no digits and become built-in
 * constants. */
static ki_expr *make_literal(kj_arena *arena, ki_value value, kj_location location)
{
  double number = fabs(ki_number_of(value));
  bool is_float = ki_is_floating(value.type), is_named = is_float && !isfinite(number);
  ki_expr *literal = new_expr(arena,
                              is_named   ? KJ_EXPR_BUILTIN
                              : is_float ? KJ_EXPR_FLOAT
                                         : KJ_EXPR_INT,
                              value.type, location);
  if (is_named)
    literal->builtin = &ki_builtin_table[isnan(number) ? KJ_BUILTIN_NAN : KJ_BUILTIN_INF];
  else if (is_float) literal->number = number;
  else literal->integer = value.integer < 0 ? -value.integer : value.integer;
  if (!ki_is_negative(value)) return literal;
  ki_expr *negated = new_expr(arena, KJ_EXPR_UNARY, KJIT_ANY, location);
  negated->op = KJIT_OP_NEG;
  negated->x = literal;
  negated->height = 2;
  return negated;
}

static void set_data(kj_arena *arena, ki_decl *decl, kjit_type element, const void *bits,
                     size_t size_bytes)
{
  void *data = kj_allocate(arena, size_bytes);
  memcpy(data, bits, size_bytes);
  decl->data = data;
  decl->data_element = element;
}

static void set_array(kjit_module *copy, ki_decl *decl, const kj_view *view,
                      kj_diagnostics *diagnostics)
{
  kj_view dense = *view;
  void *data = kj_allocate(&copy->arena, view->count * view->element_bytes + 1);
  dense.address = (uint64_t)(uintptr_t)data;
  kj_fill_strides(dense.strides, dense.shape, dense.rank);
  (void)kj_copy_host(&dense, view, diagnostics);
  decl->data = data;
  decl->data_element = view->element;
  decl->rank = view->rank;
  memcpy(decl->extents, view->shape, view->rank * sizeof *view->shape);
}

/* Declares the structs in the constant's element type, because the module's source must declare
 * every struct that it uses. */
static void declare_structs(kjit_module *copy, const ki_decl *constant)
{
  size_t count = copy->decls.count;
  if (constant->data) ki_declare_structs(copy, constant->data_element, constant->location);
  for (size_t i = count; i < copy->decls.count; i++) copy->decls.items[i]->index = (uint32_t)i;
}

static void apply(kjit_module *copy, void *data, kj_diagnostics *diagnostics)
{
  const change *c = data;
  ki_decl *decl = copy->decls.items[c->index];
  KJ_ASSERT(decl->kind == KJ_DECL_CONST);
  uint64_t bits = 0;
  decl->type_expr = NULL; /* without a declared type, the new value determines the type */
  decl->value = NULL;
  decl->data = NULL;
  decl->rank = 0;
  if (c->is_array) set_array(copy, decl, &c->view, diagnostics);
  else if (c->bits)
    set_data(&copy->arena, decl, c->value.type, c->bits,
             ki_type(copy->types, c->value.type)->size_bytes);
  else if (ki_is_weak(c->value.type))
    decl->value = make_literal(&copy->arena, c->value, decl->location);
  else {
    ki_encode_value(c->value, &bits);
    set_data(&copy->arena, decl, c->value.type, &bits,
             ki_type(copy->types, c->value.type)->size_bytes);
  }
  declare_structs(copy, decl);
}

static kjit_status set(kjit_module *module, const ki_decl *decl, const kjit_arg *value,
                       kj_diagnostics *diagnostics, kjit_module **changed)
{
  change c = { .index = decl->index, .given = value };
  KJ_ASSERT(module->decls.items[decl->index] == decl);
  KJ_TRY(take_value(module, decl, &c, diagnostics));
  KJ_TRY(check_structs(module, decl, diagnostics));
  return ki_change_module(module, NULL, apply, &c, diagnostics, changed);
}

/* Finds a constant of this name without a value. After linking there can be several such constants,
 * one from each module. */
static const ki_decl *find_open(const kjit_module *module, const char *name)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    bool is_open = decl->kind == KJ_DECL_CONST && !decl->value && !decl->data;
    if (is_open && strcmp(decl->name, name) == 0) return decl;
  }
  return NULL;
}

/* Sets the constant with the name, and then all constants of this name that have no value. */
static kjit_status set_all(kjit_module *module, const ki_decl *decl, const kjit_arg *value,
                           kj_diagnostics *diagnostics, kjit_module **changed)
{
  const char *name = decl->name;
  kjit_module *made = NULL;
  kjit_status status = set(module, decl, value, diagnostics, &made);
  while (status == KJIT_OK && (decl = find_open(made, name))) {
    kjit_module *next = NULL;
    status = set(made, decl, value, diagnostics, &next);
    kjit_release_module(made);
    made = next;
  }
  if (status == KJIT_OK) *changed = made;
  return status;
}

kjit_status kjit_set_constant(kjit_module *module, const char *name, const kjit_arg *value,
                              kjit_module **changed)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!name || !value || !changed)
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_set_constant: %s is NULL",
                        !name    ? "name"
                        : !value ? "value"
                                 : "changed");
  const ki_decl *decl = ki_find_decl(module, name);
  if (!decl || decl->kind != KJ_DECL_CONST)
    return ki_fail_call(module->context, KJIT_ERROR_NAME, "%s has no constant `%s`%s",
                        module->sources.count ? module->sources.items[0].name : "the module", name,
                        decl ? ": it is the name of a kernel or function" : "");
  kj_diagnostics diagnostics = { 0 };
  kjit_module *made = NULL;
  (void)set_all(module, decl, value, &diagnostics, &made);
  kjit_status status = ki_finish_call(module->context, &diagnostics);
  if (status == KJIT_OK) *changed = made;
  return status;
}
