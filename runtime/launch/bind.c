/* Binds a call's arguments to a kernel's parameters. It checks the number and the kinds of the
 * arguments, and the ranks, element types and scalar types that annotations require, and fills in
 * default values. Conditions that depend on the kernel's types are left to type inference. */
#include <stdlib.h>
#include <string.h>

#include "launch/steps.h"
#include "ir/number.h"

/* Reports "parameter `x`: expected ..., got ..." at the parameter. */
static kjit_status mismatch(const kj_call *call, uint32_t index, const char *expected,
                            const char *got, kj_diagnostics *diagnostics)
{
  const ki_decl *decl = call->kernel->parameters[index].decl;
  return kj_error_at(diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: expected %s, got %s", decl->name, expected, got);
}

static kjit_status mismatch_bound(const kj_call *call, uint32_t index, const char *expected,
                                  kj_diagnostics *diagnostics)
{
  kj_buffer got = { 0 };
  const kj_bound *bound = &call->bound[index];
  bool is_scalar = bound->kind == KJ_ARGUMENT_VALUE || bound->kind == KJ_ARGUMENT_NUMBER;
  if (is_scalar && bound->value.type != KJIT_ANY) ki_print_value(bound->value, true, &got);
  else kj_print_bound(call, bound, &got);
  kjit_status status =
    mismatch(call, index, expected, got.text ? got.text : "something else", diagnostics);
  kj_free_buffer(&got);
  return status;
}

static const char *name_kind(const kjit_arg *argument)
{
  switch (argument->kind) {
  case KJIT_ARG_VALUE:
  case KJIT_ARG_BY_ADDRESS: return "a scalar";
  case KJIT_ARG_NUMBER: return "a number";
  case KJIT_ARG_TENSOR:
  case KJIT_ARG_ARRAY: return "an array";
  case KJIT_ARG_FUNCTION: return "a function";
  case KJIT_ARG_TUPLE: return "a tuple";
  default: return "an argument of an unknown kind";
  }
}

/* ---- arrays: their layout, and the facts that hold for this call ---- */

static kjit_status fail(kj_call *call, uint32_t index, kj_diagnostics *diagnostics,
                        const char *format, long long number)
{
  const ki_decl *decl = call->kernel->parameters[index].decl;
  kj_buffer text = { 0 };
  kj_append_format(&text, "parameter `%s`: ", decl->name);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  kj_append_format(&text, format, number);
#pragma GCC diagnostic pop
  kjit_status status = kj_error_at(diagnostics, call->kernel->module, decl->location,
                                   KJIT_ERROR_ARGUMENT, "%s", text.text ? text.text : decl->name);
  kj_free_buffer(&text);
  return status;
}

typedef struct extent_facts {
  uint64_t count; /* number of elements */
  bool is_empty, is_huge;
  bool is_row_major, is_column_major;
  bool fits32;
  int64_t least, most; /* minimum and maximum element offset */
} extent_facts;

/* Computes the properties of a contiguous array from its shape. By convention the stride of an
 * extent of 1 is irrelevant, and an array without elements is contiguous. */
static void look_at_contiguous(const int64_t *shape, uint32_t rank, extent_facts *facts)
{
  uint64_t count = 1;
  uint32_t wide = 0; /* number of dimensions with more than one element */
  for (uint32_t i = 0; i < rank; i++) {
    facts->is_empty = facts->is_empty || shape[i] == 0;
    facts->fits32 = facts->fits32 && shape[i] <= INT32_MAX;
    wide += shape[i] > 1;
    if (shape[i])
      facts->is_huge = __builtin_mul_overflow(count, (uint64_t)shape[i], &count) || facts->is_huge;
  }
  facts->count = facts->is_empty ? 0 : count;
  facts->is_huge = facts->is_huge || count > (uint64_t)INT64_MAX / 16;
  facts->fits32 = facts->fits32 && count <= INT32_MAX; /* the strides must fit in 32 bits as well */
  facts->is_row_major = true;
  facts->is_column_major = facts->is_empty || wide <= 1;
  facts->most = facts->count ? (int64_t)facts->count - 1 : 0;
}

static bool has_order(const int64_t *shape, const int64_t *strides, uint32_t rank, bool row_major)
{
  int64_t expected = 1;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t d = row_major ? rank - 1 - i : i;
    if (shape[d] != 1 && strides[d] != expected) return false;
    if (__builtin_mul_overflow(expected, shape[d], &expected)) return false;
  }
  return true;
}

static void look_at_strides(const int64_t *shape, const int64_t *strides, uint32_t rank,
                            extent_facts *facts)
{
  look_at_contiguous(shape, rank, facts);
  facts->is_row_major = facts->is_empty || has_order(shape, strides, rank, true);
  facts->is_column_major = facts->is_empty || has_order(shape, strides, rank, false);
  if (facts->is_row_major || facts->is_column_major) return;
  facts->most = 0;
  for (uint32_t i = 0; i < rank; i++) {
    int64_t reach;
    facts->fits32 = facts->fits32 && strides[i] >= INT32_MIN && strides[i] <= INT32_MAX;
    if (__builtin_mul_overflow(shape[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(*(reach < 0 ? &facts->least : &facts->most), reach,
                               reach < 0 ? &facts->least : &facts->most))
      facts->is_huge = true;
  }
  facts->fits32 = facts->fits32 && facts->least >= INT32_MIN && facts->most <= INT32_MAX;
  facts->is_huge =
    facts->is_huge || facts->least < -(INT64_MAX / 16) || facts->most > INT64_MAX / 16;
}

static uint8_t choose_layout(const extent_facts *facts, const kj_annotation *annotation)
{
  bool wants_columns =
    annotation->kind == KJ_ANNOTATION_ARRAY && annotation->layout == KJIT_LAYOUT_F;
  if (facts->is_column_major && (wants_columns || !facts->is_row_major)) return KJIT_LAYOUT_F;
  return facts->is_row_major ? KJIT_LAYOUT_C : KJIT_LAYOUT_STRIDED;
}

static kjit_status fail_type(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                             kj_diagnostics *diagnostics)
{
  const ki_decl *decl = call->kernel->parameters[index].decl;
  return kj_error_at(diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: DLPack's type code %u with %u bits and %u lane%s is not an "
                     "element type of kjit",
                     decl->name, (unsigned)tensor->code, (unsigned)tensor->bits,
                     (unsigned)tensor->lanes, tensor->lanes == 1 ? "" : "s");
}

kjit_status kj_bind_tensor(kj_call *call, uint32_t index, const kjit_tensor *tensor,
                           kjit_type given, kj_diagnostics *diagnostics)
{
  ki_types *types = call->kernel->module->types;
  const kj_parameter_row *row = &call->kernel->parameters[index];
  kj_bound *bound = &call->bound[index];
  extent_facts facts = { .fits32 = true };
  if (tensor->rank < 0 || tensor->rank > KJ_MAX_RANK)
    return fail(call, index, diagnostics, "expected an array of 0 to 8 dimensions, got %lld",
                tensor->rank);
  kjit_type element = kj_type_of_tensor(types, tensor, given);
  if (element == KJIT_ANY) return fail_type(call, index, tensor, diagnostics);
  uint32_t rank = (uint32_t)tensor->rank;
  if (rank && !tensor->shape)
    return fail(call, index, diagnostics, "the tensor has no shape (rank %lld)", rank);
  for (uint32_t i = 0; i < rank; i++)
    if (tensor->shape[i] < 0)
      return fail(call, index, diagnostics, "extent %lld is negative", tensor->shape[i]);
  if (tensor->strides) look_at_strides(tensor->shape, tensor->strides, rank, &facts);
  else look_at_contiguous(tensor->shape, rank, &facts);
  uint32_t bytes = kj_element_bytes(types, element),
           alignment = kj_element_alignment(types, element);
  if (facts.is_huge)
    return fail(call, index, diagnostics,
                "the extents and strides do not fit the address space (element size %lld)", bytes);
  *bound = (kj_bound){ .kind = KJ_ARGUMENT_ARRAY,
                       .rank = (uint8_t)rank,
                       .type = element,
                       .shape = tensor->shape,
                       .is_empty = facts.is_empty,
                       .count = facts.count,
                       .offsets_fit = facts.fits32 };
  bound->layout = choose_layout(&facts, &row->annotation);
  bound->strides = bound->layout == KJIT_LAYOUT_STRIDED ? tensor->strides : NULL;
  bound->address = bound->target = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  bound->low = bound->address + (uint64_t)(facts.least * (int64_t)bytes);
  bound->high =
    facts.is_empty ? bound->low : bound->address + (uint64_t)((facts.most + 1) * (int64_t)bytes);
  if (!facts.is_empty && !bound->address)
    return fail(call, index, diagnostics, "the tensor has no data (%lld elements)",
                (long long)facts.count);
  if (!facts.is_empty && bound->address & (alignment - 1))
    return fail(call, index, diagnostics,
                "the elements are not aligned: the address is not a multiple of %lld", alignment);
  if (row->is_general) return KJIT_OK;
  bool has_rows = rank > 1 && bound->layout == KJIT_LAYOUT_C,
       is_result = row->is_written && call->kernel->is_range_only; /* see kj_make_key */
  bound->facts = (uint8_t)kj_find_array_facts(
    (kj_array_place){ .address = bound->address,
                      .has_rows = has_rows,
                      .row_bytes = has_rows ? (uint64_t)bound->shape[rank - 1] * bytes : 0,
                      .result_bytes = is_result ? bound->count * bytes : 0 });
  return KJIT_OK;
}

/* ---- one argument ---- */

static kjit_status bind_scalar(kj_call *call, uint32_t index, const kjit_arg *argument,
                               kj_diagnostics *diagnostics)
{
  kj_bound *bound = &call->bound[index];
  if (argument->kind == KJIT_ARG_NUMBER) {
    ki_value value = kj_argument_number(argument);
    *bound =
      (kj_bound){ .kind = KJ_ARGUMENT_NUMBER, .type = kj_number_type(value), .value = value };
    ki_encode_value(value, &bound->bits[0]);
    return KJIT_OK;
  }
  ki_types *types = call->kernel->module->types;
  if (!ki_is_element(types, argument->type))
    return mismatch(call, index, "a value", "a value of a type that arguments cannot have",
                    diagnostics);
  const void *memory =
    argument->kind == KJIT_ARG_BY_ADDRESS ? argument->value.address : &argument->value;
  if (!memory) return mismatch(call, index, "a value", "the address NULL", diagnostics);
  if (argument->kind == KJIT_ARG_VALUE &&
      kj_element_bytes(types, argument->type) > sizeof argument->value)
    return mismatch(call, index, "a value",
                    "a value that is too large for a kjit_arg; pass its address", diagnostics);
  *bound = (kj_bound){ .kind = KJ_ARGUMENT_VALUE, .type = argument->type };
  bool is_pointer = ki_type(types, argument->type)->class_ == KJ_CLASS_POINTER;
  if (is_pointer) memcpy(bound->bits, memory, sizeof(uint64_t));
  if (!is_pointer && (!ki_is_scalar(argument->type) || argument->type >= KJIT_C64))
    bound->bits[0] = (uint64_t)(uintptr_t)memory;
  if (!ki_is_scalar(argument->type) || argument->type >= KJIT_C64) return KJIT_OK;
  memcpy(bound->bits, memory, kj_element_bytes(types, argument->type));
  /* normalizes a bool to 0 or 1 */
  (void)ki_decode_value(argument->type, memory, &bound->value);
  ki_encode_value(bound->value, &bound->bits[0]);
  return KJIT_OK;
}

static kjit_status bind_const(kj_call *call, uint32_t index, const kjit_arg *argument,
                              kj_diagnostics *diagnostics)
{
  bool is_scalar = argument->kind == KJIT_ARG_VALUE || argument->kind == KJIT_ARG_NUMBER ||
                   argument->kind == KJIT_ARG_BY_ADDRESS;
  if (!is_scalar)
    return mismatch(call, index, "a value, because the parameter is const", name_kind(argument),
                    diagnostics);
  KJ_TRY(bind_scalar(call, index, argument, diagnostics));
  kj_bound *bound = &call->bound[index];
  if (bound->value.type == KJIT_ANY)
    return mismatch(call, index, "an integer, a float or a bool, because the parameter is const",
                    "a value with several components", diagnostics);
  /* A whole number becomes an integer literal, because the value of a const parameter is compiled
   * into the code and is exact in any type. Other parameters, which the kernel receives at run
   * time, keep the type of the literal. */
  ki_value integer;
  /* kjit_arg_real sets the type f64, so that a whole number stays a float literal */
  bool may_be_integer = argument->type != KJIT_F64;
  bool is_integral = may_be_integer && bound->value.type == KJ_WEAK_FLOAT &&
                     ki_is_true(bound->value) &&
                     ki_fit_argument(bound->value, KJ_WEAK_INT, &integer);
  if (is_integral) *bound = (kj_bound){ .type = KJ_WEAK_INT, .value = integer };
  bound->kind = KJ_ARGUMENT_CONST;
  return KJIT_OK;
}

static kjit_status bind_function(kj_call *call, uint32_t index, const kjit_arg *argument,
                                 kj_diagnostics *diagnostics)
{
  if (argument->kind != KJIT_ARG_FUNCTION)
    return mismatch(call, index, "a function", name_kind(argument), diagnostics);
  if (!argument->value.function) return mismatch(call, index, "a function", "NULL", diagnostics);
  const ki_decl *function = kj_function_of(argument->value.function);
  if (function->function->module != call->kernel->module)
    return mismatch(call, index, "a function of the kernel's module",
                    "a function of another module", diagnostics);
  call->bound[index] =
    (kj_bound){ .kind = KJ_ARGUMENT_FUNCTION, .type = KJIT_FUNC, .function = function };
  return KJIT_OK;
}

static kjit_status bind_array(kj_call *call, uint32_t index, const kjit_arg *argument,
                              kj_diagnostics *diagnostics)
{
  if (argument->value.address == NULL)
    return mismatch(call, index, "an array", "NULL", diagnostics);
  if (argument->access > KJIT_ACCESS_IN_OUT)
    return mismatch(call, index, "an array whose access is KJIT_ACCESS_AUTO, _IN, _OUT or _IN_OUT",
                    "an array with an unknown access", diagnostics);
  if (argument->kind == KJIT_ARG_TENSOR)
    return kj_bind_tensor(call, index, argument->value.tensor, argument->type, diagnostics);
  const kjit_array *array = argument->value.array;
  if (array->object.device->context != call->kernel->context)
    return mismatch(call, index, "an array of the kernel's context", "an array of another context",
                    diagnostics);
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  return kj_bind_tensor(call, index, &array->tensor, array->element, diagnostics);
}

static kjit_status bind_one(kj_call *call, uint32_t index, const kjit_arg *argument,
                            kj_diagnostics *diagnostics)
{
  const kj_parameter_row *row = &call->kernel->parameters[index];
  if (row->is_func) return bind_function(call, index, argument, diagnostics);
  if (row->is_const) return bind_const(call, index, argument, diagnostics);
  switch (argument->kind) {
  case KJIT_ARG_TENSOR:
  case KJIT_ARG_ARRAY:
    KJ_TRY(bind_array(call, index, argument, diagnostics));
    call->bound[index].access = argument->access;
    return KJIT_OK;
  case KJIT_ARG_VALUE:
  case KJIT_ARG_NUMBER:
  case KJIT_ARG_BY_ADDRESS: return bind_scalar(call, index, argument, diagnostics);
  case KJIT_ARG_FUNCTION:
    return mismatch(
      call, index,
      "a value or an array, because only a parameter declared `: func` takes a function",
      "a function", diagnostics);
  default: return mismatch(call, index, "an argument", name_kind(argument), diagnostics);
  }
}

static kjit_status bind_default(kj_call *call, uint32_t index, kj_diagnostics *diagnostics)
{
  const ki_decl *decl = call->kernel->parameters[index].decl;
  kj_scope scope = { .bound = call->bound, .bound_count = index };
  ki_value value;
  if (!kj_evaluate(&scope, decl->value, &value))
    return kj_error_at(diagnostics, call->kernel->module, scope.location, KJIT_ERROR_ARGUMENT,
                       "the default of parameter `%s` cannot be evaluated: this %s", decl->name,
                       scope.reason);
  call->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .value = value };
  return KJIT_OK;
}

/* ---- annotations ---- */

static void print_expected(const kj_call *call, const kj_annotation *annotation, kjit_type element,
                           kj_buffer *buffer)
{
  ki_types *types = call->kernel->module->types;
  if (element == KJIT_ANY) {
    kj_append_format(buffer, "an array of %u dimensions%s", annotation->rank,
                     annotation->layout == KJIT_LAYOUT_C   ? " in C order"
                     : annotation->layout == KJIT_LAYOUT_F ? " in F order"
                                                           : "");
    return;
  }
  ki_print_type(types,
                ki_array_type(types, element, annotation->rank, (kjit_layout)annotation->layout,
                              annotation->read_only),
                buffer);
}

static kjit_status check_array(kj_call *call, uint32_t index, kjit_type element,
                               kj_diagnostics *diagnostics)
{
  const kj_annotation *annotation = &call->kernel->parameters[index].annotation;
  const kj_bound *bound = &call->bound[index];
  bool fits = bound->kind == KJ_ARGUMENT_ARRAY && bound->rank == annotation->rank &&
              (element == KJIT_ANY || bound->type == element) &&
              (annotation->layout == KJIT_LAYOUT_STRIDED || bound->layout == annotation->layout);
  if (fits) return KJIT_OK;
  kj_buffer expected = { 0 };
  print_expected(call, annotation, element, &expected);
  kjit_status status =
    mismatch_bound(call, index, expected.text ? expected.text : "an array", diagnostics);
  kj_free_buffer(&expected);
  return status;
}

/* A parameter `p: f32*` accepts an address of this type, possibly without const, or a 64-bit
 * integer. */
static kjit_status check_pointer(kj_call *call, uint32_t index, kjit_type type,
                                 kj_diagnostics *diagnostics)
{
  kj_bound *bound = &call->bound[index];
  const ki_types *types = call->kernel->module->types;
  const ki_type_info *want = ki_type(types, type), *have = ki_type(types, bound->type);
  bool is_number = bound->kind == KJ_ARGUMENT_NUMBER;
  bool is_value = bound->kind == KJ_ARGUMENT_VALUE || is_number;
  bool is_pointer = !is_number && is_value && have->class_ == KJ_CLASS_POINTER &&
                    have->element == want->element && (want->read_only || !have->read_only);
  bool is_address = is_value && (bound->type == KJIT_U64 || bound->type == KJIT_I64);
  if (!is_pointer && !is_address) {
    kj_buffer expected = { 0 };
    ki_print_type(types, type, &expected);
    kj_append_text(&expected, ", or an address as a u64");
    kjit_status status =
      mismatch_bound(call, index, expected.text ? expected.text : "a pointer", diagnostics);
    kj_free_buffer(&expected);
    return status;
  }
  bound->kind = KJ_ARGUMENT_VALUE;
  bound->type = type;
  bound->value.type = KJIT_ANY;
  return KJIT_OK;
}

/* Converts a scalar to the type of an annotated parameter. The parameter accepts every number that
 * its type can represent, and rounds floats. The scalar's own type does not matter, so calls with
 * scalars of different types use the same specialization. */
static kjit_status convert_scalar(kj_call *call, uint32_t index, kjit_type type,
                                  kj_diagnostics *diagnostics)
{
  kj_bound *bound = &call->bound[index];
  ki_value converted;
  bool has_type = bound->kind == KJ_ARGUMENT_VALUE || bound->kind == KJ_ARGUMENT_CONST;
  if (has_type && bound->type == type) return KJIT_OK;
  bool is_number = bound->kind != KJ_ARGUMENT_ARRAY && bound->kind != KJ_ARGUMENT_FUNCTION &&
                   bound->value.type != KJIT_ANY;
  if (!is_number || !ki_fit_argument(bound->value, type, &converted))
    return mismatch_bound(call, index, ki_type(call->kernel->module->types, type)->name,
                          diagnostics);
  bound->kind = bound->kind == KJ_ARGUMENT_CONST ? KJ_ARGUMENT_CONST : KJ_ARGUMENT_VALUE;
  bound->type = type;
  bound->value = converted;
  ki_encode_value(converted, &bound->bits[0]);
  return KJIT_OK;
}

static kjit_type type_of_other(const kj_call *call, int index)
{
  const kj_bound *other = index >= 0 ? &call->bound[index] : NULL;
  bool has_type = other && (other->kind == KJ_ARGUMENT_ARRAY || other->kind == KJ_ARGUMENT_VALUE);
  return has_type ? other->type : KJIT_ANY;
}

static kjit_status check_annotation(kj_call *call, uint32_t index, kj_diagnostics *diagnostics)
{
  const kj_annotation *annotation = &call->kernel->parameters[index].annotation;
  kjit_type other = annotation->same_as >= 0 ? type_of_other(call, annotation->same_as) : KJIT_ANY;
  switch (annotation->kind) {
  case KJ_ANNOTATION_ARRAY:
    return check_array(call, index, annotation->type != KJIT_ANY ? annotation->type : other,
                       diagnostics);
  case KJ_ANNOTATION_SCALAR:
    if (annotation->type >= KJIT_C64 && call->bound[index].kind != KJ_ARGUMENT_ARRAY)
      return KJIT_OK;
    return convert_scalar(call, index, annotation->type, diagnostics);
  case KJ_ANNOTATION_POINTER: return check_pointer(call, index, annotation->type, diagnostics);
  case KJ_ANNOTATION_SAME:
    return other == KJIT_ANY || other >= KJIT_C64 ? KJIT_OK
                                                  : convert_scalar(call, index, other, diagnostics);
  default: return KJIT_OK;
  }
}

/* ---- all arguments ---- */

static kjit_status report_count(const kj_call *call, size_t count, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  uint32_t least = kernel->parameter_count;
  while (least && kernel->parameters[least - 1].decl->value) least--;
  const char *name = kernel->function->decl->name;
  kj_location location = kernel->function->decl->location;
  if (count < least) location = kernel->parameters[count].decl->location;
  if (least != kernel->parameter_count)
    return kj_error_at(diagnostics, kernel->module, location, KJIT_ERROR_ARGUMENT,
                       "kernel `%s`: expected %u to %u arguments, got %zu", name, least,
                       kernel->parameter_count, count);
  return kj_error_at(diagnostics, kernel->module, location, KJIT_ERROR_ARGUMENT,
                     "kernel `%s`: expected %u argument%s, got %zu", name, least,
                     least == 1 ? "" : "s", count);
}

kjit_status kj_bind_arguments(kj_call *call, const kjit_arg *arguments, size_t count,
                              kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  if (count > kernel->parameter_count) return report_count(call, count, diagnostics);
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    if (i >= count && !kernel->parameters[i].decl->value)
      return report_count(call, count, diagnostics);
    KJ_TRY(i < count ? bind_one(call, i, &arguments[i], diagnostics)
                     : bind_default(call, i, diagnostics));
  }
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    if (kernel->parameters[i].annotation.kind != KJ_ANNOTATION_NONE)
      KJ_TRY(check_annotation(call, i, diagnostics));
  return KJIT_OK;
}
