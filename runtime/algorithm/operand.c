/* Operands: checks the application's operands and arranges their axes in the order of the
 * kernel. */
#include <stdlib.h>
#include <string.h>

#include "algorithm/algorithm.h"
#include "code/kernel.h"
#include "ir/context.h"

/* ---- arrays ---- */

static void choose_device(ka_call *call, const kjit_arg *argument, const kj_view *view)
{
  if (call->device) return;
  if (argument->kind == KJIT_ARG_ARRAY) {
    call->device = argument->value.array->object.device;
    return;
  }
  if (view->kind == KJIT_DEVICE_CUDA || view->is_placed)
    ka_try(call, kjit_get_device(call->context, view->kind, view->ordinal, &call->device));
}

/* an invalid operand is ignored here; ka_read_operand reports it later */
static void prefer_device_of(ka_call *call, const kjit_arg *argument)
{
  kj_view view = { 0 };
  kj_diagnostics ignored = { 0 };
  bool is_array = argument->kind == KJIT_ARG_ARRAY && argument->value.array &&
                  argument->value.array->object.device->context == call->context;
  bool is_tensor = argument->kind == KJIT_ARG_TENSOR && argument->value.tensor &&
                   kj_view_tensor(call->context->types, argument->value.tensor, argument->type, "",
                                  &ignored, &view) == KJIT_OK;
  kj_free_diagnostics(&ignored);
  if (is_array || is_tensor) choose_device(call, argument, &view);
}

void ka_prefer_device(ka_call *call, const kjit_operand *operands, size_t count)
{
  for (size_t i = 0; operands && i < count; i++) prefer_device_of(call, &operands[i].argument);
}

static kj_view view_array(ka_call *call, const char *name, const kjit_arg *argument)
{
  kj_view view = { 0 };
  kj_diagnostics diagnostics = { 0 };
  bool is_own = argument->kind == KJIT_ARG_ARRAY;
  if (is_own ? !argument->value.array : !argument->value.tensor)
    ka_fail(call, KJIT_ERROR_MISUSE, "`%s` is NULL", name);
  if (is_own && argument->value.array->object.device->context != call->context)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` belongs to another context", name);
  if (is_own) (void)kj_view_array(argument->value.array, name, &diagnostics, &view);
  else
    (void)kj_view_tensor(call->context->types, argument->value.tensor, argument->type, name,
                         &diagnostics, &view);
  ka_try(call, ki_finish_call(call->context, &diagnostics));
  choose_device(call, argument, &view);
  if (call->options.work) KJ_PUSH(&call->arena, &call->given, ((ka_given){ name, view }));
  return view;
}

/* Returns whether steps along two axes can lead to the same address. */
static bool do_axes_meet(const ka_operand *operand, uint32_t i, uint32_t j)
{
  uint64_t a = (uint64_t)llabs(operand->view.strides[i]),
           b = (uint64_t)llabs(operand->view.strides[j]), divisor = a, rest = b;
  while (rest) {
    uint64_t next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  return b / divisor < (uint64_t)operand->shape[i] && a / divisor < (uint64_t)operand->shape[j];
}

/* Returns whether two elements of the operand have the same address: along one axis, or by steps
 * along two axes. */
static bool overlaps_itself(const ka_operand *operand)
{
  for (uint32_t i = 0; i < operand->rank && operand->count; i++) {
    if (operand->shape[i] <= 1) continue;
    if (operand->view.strides[i] == 0) return true;
    for (uint32_t j = 0; j < i; j++)
      if (operand->shape[j] > 1 && do_axes_meet(operand, i, j)) return true;
  }
  return false;
}

static void read_array(ka_call *call, const kjit_operand *given, ka_operand *operand)
{
  kj_view view = view_array(call, operand->name, &given->argument);
  operand->view = view;
  operand->element = view.element;
  operand->rank = view.rank;
  memcpy(operand->shape, view.shape, sizeof view.shape);
  operand->count = view.count;
  operand->arrays = KJ_NEW(&call->arena, kjit_arg);
  operand->arrays[0] = given->argument;
  operand->array_count = 1;
  if (given->arrays || given->shape)
    ka_fail(call, KJIT_ERROR_MISUSE,
            "`%s` is an array, but its fields arrays or shape are set; they are only for functions",
            operand->name);
  bool is_read_only =
    given->argument.kind == KJIT_ARG_ARRAY && given->argument.value.array->is_read_only;
  if (operand->is_output && is_read_only)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` is an output, but its array is read-only",
            operand->name);
  if (operand->is_output && overlaps_itself(operand))
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "output `%s` has overlapping elements: its strides map two indices to one address",
            operand->name);
}

/* ---- funcs ---- */

void ka_check_arity(ka_call *call, const kjit_function *function, size_t count, const char *what)
{
  const ki_decl *decl = kj_function_of(function);
  const ki_function *callee = decl->function;
  size_t least = callee->builtin ? callee->builtin->least : ki_least_arguments(callee),
         most = callee->builtin ? callee->builtin->most : callee->params.count;
  if (count >= least && count <= most) return;
  const char *takes = least == most ? kj_format(&call->arena, "%zu", most)
                                    : kj_format(&call->arena, "%zu to %zu", least, most);
  ka_fail_at(call, decl, KJIT_ERROR_TYPE,
             "`%s` takes %s argument%s, but is called with %zu here: %s", decl->name, takes,
             most == 1 ? "" : "s", count, what);
}

void ka_check_operand_arity(ka_call *call, const ka_operand *operand)
{
  bool writes = operand->is_output;
  size_t values = operand->array_count;
  ka_check_arity(call, operand->function, operand->rank + (writes ? 1 : 0) + values,
                 kj_format(&call->arena, "%u ind%s%s and %zu of its arrays and values",
                           operand->rank, operand->rank == 1 ? "ex" : "ices",
                           writes ? ", the value to store" : "", values));
}

/* Returns a description of the error in a value, or NULL if the value is valid. */
static const char *find_fault(ka_call *call, const kjit_arg *argument)
{
  bool has_type = ki_has_type(call->context->types, argument->type) &&
                  ki_is_element(call->context->types, argument->type);
  switch (argument->kind) {
  case KJIT_ARG_NUMBER: return NULL;
  case KJIT_ARG_VALUE: break;
  case KJIT_ARG_BY_ADDRESS:
    if (!argument->value.address) return "expected a value, got the address NULL";
    break;
  default: return "expected a value, got none";
  }
  return has_type ? NULL : "the value has an unknown type";
}

void ka_check_value(ka_call *call, const char *name, const kjit_arg *argument)
{
  const char *fault = find_fault(call, argument);
  if (fault) ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s`: %s", name, fault);
}

void ka_check_initial(ka_call *call)
{
  const char *fault = call->options.initial ? find_fault(call, call->options.initial) : NULL;
  if (fault) ka_fail(call, KJIT_ERROR_ARGUMENT, KJ_OPTION("initial") ": %s", fault);
}

static bool is_array(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_ARRAY || argument->kind == KJIT_ARG_TENSOR;
}

kjit_type ka_argument_type(ka_call *call, const ka_operand *operand, const kjit_arg *argument)
{
  if (is_array(argument)) {
    kj_view view = view_array(call, operand->name, argument);
    kjit_type type = kjit_get_array_type(call->context, view.element, view.rank,
                                         KJIT_LAYOUT_STRIDED, !operand->is_output);
    if (type == KJIT_VOID) ka_fail(call, KJIT_ERROR_MEMORY, "out of memory");
    return type;
  }
  if (argument->kind == KJIT_ARG_NUMBER)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "a number passed to `%s` needs a type; use kjit_arg_f32(x) or another typed kjit_arg "
            "function",
            operand->name);
  return argument->type;
}

/* Infers the element type, which is the result type of the func if it is called with indices and
 * its additional arguments. */
static kjit_type infer_element(ka_call *call, const ka_operand *operand)
{
  kjit_type type = KJIT_VOID;
  size_t count = operand->rank + operand->array_count;
  kjit_type *types = KJ_NEW_ARRAY(&call->arena, kjit_type, count + 1);
  for (uint32_t i = 0; i < operand->rank; i++) types[i] = KJIT_I64;
  for (size_t i = 0; i < operand->array_count; i++)
    types[operand->rank + i] = ka_argument_type(call, operand, &operand->arrays[i]);
  ka_try(call, ka_get_result_type(call, operand->function, types, count, &type));
  if (!ki_is_element(call->context->types, type))
    ka_fail(call, KJIT_ERROR_TYPE, "the function of `%s` returns %s", operand->name,
            type == KJIT_VOID ? "no value" : "a value that an array cannot hold");
  return type;
}

static void read_function(ka_call *call, const kjit_operand *given, ka_operand *operand)
{
  operand->function = given->argument.value.function;
  if (!operand->function) ka_fail(call, KJIT_ERROR_MISUSE, "`%s` is NULL", operand->name);
  if (((const ki_decl *)operand->function)->function->module->context != call->context)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "the function of `%s` belongs to another context",
            operand->name);
  if ((given->array_count && !given->arrays) || (given->rank && !given->shape))
    ka_fail(call, KJIT_ERROR_MISUSE, "`%s`: %s is NULL", operand->name,
            given->rank && !given->shape ? "shape" : "arrays");
  if (given->rank > KJ_MAX_RANK)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` has %u axes; the maximum is %d", operand->name,
            given->rank, KJ_MAX_RANK);
  operand->rank = given->rank;
  operand->count = 1;
  for (uint32_t i = 0; i < given->rank; i++) {
    operand->shape[i] = given->shape[i];
    if (given->shape[i] < 0 ||
        __builtin_mul_overflow(operand->count, (uint64_t)given->shape[i], &operand->count))
      ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s`: extent %lld of axis %u is %s", operand->name,
              (long long)given->shape[i], i, given->shape[i] < 0 ? "negative" : "too large");
  }
  operand->array_count = given->array_count;
  operand->arrays = KJ_NEW_ARRAY(&call->arena, kjit_arg, given->array_count + 1);
  for (size_t i = 0; i < given->array_count; i++) operand->arrays[i] = given->arrays[i];
  for (size_t i = 0; i < given->array_count; i++) {
    if (is_array(&given->arrays[i])) (void)view_array(call, operand->name, &given->arrays[i]);
    else if (given->arrays[i].kind == KJIT_ARG_FUNCTION)
      ka_fail(call, KJIT_ERROR_UNSUPPORTED,
              "`%s` is called with a function, but only arrays and values can be passed to it",
              operand->name);
    else ka_check_value(call, operand->name, &given->arrays[i]);
  }
  /* an output func is checked later, because its arguments depend on the algorithm */
  if (operand->is_output) return;
  ka_check_operand_arity(call, operand);
  operand->element = infer_element(call, operand);
}

static void read_operand(ka_call *call, const kjit_operand *given, ka_operand *operand)
{
  if (!given) ka_fail(call, KJIT_ERROR_MISUSE, "`%s` is NULL", operand->name);
  switch ((kjit_arg_kind)given->argument.kind) {
  case KJIT_ARG_TENSOR:
  case KJIT_ARG_ARRAY: read_array(call, given, operand); break;
  case KJIT_ARG_FUNCTION: read_function(call, given, operand); break;
  default:
    ka_fail(call, KJIT_ERROR_ARGUMENT, "`%s` is a value: expected an array or a function",
            operand->name);
  }
  bool is_small = operand->count < (uint64_t)INT32_MAX - (1 << 20);
  call->is_wide = call->is_wide || !is_small;
}

void ka_read_input(ka_call *call, const char *name, const kjit_operand *given, ka_operand *operand)
{
  *operand = (ka_operand){ .name = name };
  read_operand(call, given, operand);
}

void ka_read_output(ka_call *call, const char *name, const kjit_operand *given, ka_operand *operand)
{
  *operand = (ka_operand){ .name = name, .is_output = true };
  read_operand(call, given, operand);
}

static void read_value(ka_call *call, const kjit_arg *given, ka_operand *operand)
{
  operand->is_value = true;
  operand->count = 1;
  operand->arrays = KJ_NEW(&call->arena, kjit_arg);
  operand->arrays[0] = *given;
  operand->array_count = 1;
  operand->element = given->kind == KJIT_ARG_NUMBER ? KJIT_ANY : given->type;
}

void ka_read_argument(ka_call *call, const char *name, const kjit_operand *given,
                      ka_operand *operand)
{
  *operand = (ka_operand){ .name = name };
  kjit_arg_kind kind = given ? (kjit_arg_kind)given->argument.kind : KJIT_ARG_ARRAY;
  if (kind == KJIT_ARG_VALUE || kind == KJIT_ARG_NUMBER || kind == KJIT_ARG_BY_ADDRESS)
    read_value(call, &given->argument, operand);
  else read_operand(call, given, operand);
}

/* ---- overlap ---- */

static bool is_same_place(const kj_view *a, const kj_view *b)
{
  size_t bytes = a->rank * sizeof *a->shape;
  return a->address == b->address && a->element == b->element && a->rank == b->rank &&
         !memcmp(a->shape, b->shape, bytes) && !memcmp(a->strides, b->strides, bytes);
}

static void check_written(ka_call *call, const ka_operand *output, const kj_view *written,
                          const ka_operand *input, bool may_be_same)
{
  for (size_t i = 0; i < input->array_count; i++) {
    const kjit_arg *argument = &input->arrays[i];
    if (!is_array(argument)) continue;
    kj_view view = input->function ? view_array(call, input->name, argument) : input->view;
    if (!kj_do_overlap(written, &view)) continue;
    if (may_be_same && !input->function && is_same_place(written, &view)) continue;
    ka_fail(call, KJIT_ERROR_ARGUMENT, "the output `%s` overlaps `%s`", output->name, input->name);
  }
}

/* Determines to which of its additional arguments (arrays and values) an output func stores.
 * Returns an array with a bool for each argument, or NULL for a built-in. */
static const bool *find_stores(ka_call *call, const ka_operand *output)
{
  const ki_function *function = kj_function_of(output->function)->function;
  size_t count = function->params.count;
  bool *found = KJ_NEW_ARRAY(&call->arena, bool, 2 * count + 1);
  if (function->builtin || count < output->array_count) return NULL;
  ki_find_accesses(function->module, function, found, found + count);
  return found + 2 * count - output->array_count;
}

/* Does not check whether two funcs share arrays, because the funcs themselves can order their
 * accesses. For the same reason, does not compare the arrays of a func with the elements that the
 * func receives. */
void ka_check_overlap(ka_call *call, const ka_operand *output, const ka_operand *input,
                      bool may_be_same)
{
  if (!output->count) return;
  if (!output->function) {
    check_written(call, output, &output->view, input, may_be_same);
    return;
  }
  if (input->function || may_be_same) return;
  const bool *stores = find_stores(call, output);
  for (size_t i = 0; stores && i < output->array_count; i++) {
    if (!stores[i] || !is_array(&output->arrays[i])) continue;
    const kj_view written = view_array(call, output->name, &output->arrays[i]);
    check_written(call, output, &written, input, false);
  }
}

/* ---- positions ---- */

void ka_check_positions(ka_call *call, const ka_operand *result, uint64_t count)
{
  if (result->function || !ki_is_integral(result->element)) return;
  bool is_signed = ki_type(call->context->types, result->element)->class_ == KJ_CLASS_SIGNED;
  uint32_t bits = 8 * kj_element_bytes(call->context->types, result->element) - is_signed;
  if (count && bits < 64 && (count - 1) >> bits)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "`%s` has elements of type %s, which cannot represent positions up to %llu",
            result->name, ka_type_text(call, result->element), (unsigned long long)(count - 1));
}

void ka_check_index_result(ka_call *call, const ka_operand *result, uint64_t count)
{
  if (result->function) return;
  if (!ka_is_integer(call, result->element) || result->element == KJIT_BOOL)
    ka_fail(call, KJIT_ERROR_TYPE, "`%s` has elements of type %s, but positions are integers",
            result->name, ka_type_text(call, result->element));
  ka_check_positions(call, result, count);
}

/* ---- axes ---- */

uint32_t ka_read_axes(ka_call *call, uint32_t rank)
{
  uint32_t found = 0;
  if (!call->options.axes) return (1u << rank) - 1;
  for (uint32_t i = 0; i < call->options.axis_count; i++) {
    int64_t axis = call->options.axes[i];
    if (axis < -(int64_t)rank || axis >= (int64_t)rank)
      ka_fail(call, KJIT_ERROR_ARGUMENT, "axis %lld is out of range: `x` has %u %s",
              (long long)axis, rank, rank == 1 ? "axis" : "axes");
    uint32_t bit = 1u << (axis < 0 ? axis + rank : axis);
    if (found & bit)
      ka_fail(call, KJIT_ERROR_ARGUMENT, "axis %lld is given twice", (long long)axis);
    found |= bit;
  }
  return found;
}

/* ---- order of axes in the kernel ---- */

/* Removes axes of extent 1 and merges adjacent axes of a group that are contiguous. */
static uint32_t join_axes(int64_t *shape, int64_t *strides, uint32_t count)
{
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (shape[i] == 1) continue;
    bool lies_together = kept && strides[kept - 1] == strides[i] * shape[i];
    if (lies_together) shape[kept - 1] *= shape[i];
    else shape[kept++] = shape[i];
    strides[kept - 1] = strides[i];
  }
  return kept;
}

static bool is_as_given(const kj_view *view, const int64_t *extents, const int64_t *strides,
                        uint32_t rank)
{
  if (rank != view->rank) return false;
  for (uint32_t i = 0; i < rank; i++)
    if (extents[i] != view->shape[i] || strides[i] != view->strides[i]) return false;
  return true;
}

void ka_view_operand(ka_call *call, ka_operand *operand, const int64_t *extents,
                     const int64_t *strides, uint32_t rank)
{
  kjit_arg *argument = &operand->arrays[0];
  KJ_ASSERT(!operand->function && operand->array_count == 1 && rank <= KJ_MAX_RANK);
  if (is_as_given(&operand->view, extents, strides, rank)) return;
  KJ_PUSH(&call->arena, &call->viewed,
          ((ka_view){ .base = *argument, .element = operand->element, .rank = rank }));
  ka_view *viewed = &call->viewed.items[call->viewed.count - 1];
  memcpy(viewed->extents, extents, rank * sizeof *extents);
  memcpy(viewed->strides, strides, rank * sizeof *strides);
  ka_make_view(call, viewed);
  *argument = viewed->made;
}

kjit_array **ka_add_view(ka_call *call)
{
  KJ_PUSH(&call->arena, &call->views, NULL);
  return &call->views.items[call->views.count - 1];
}

void ka_make_view(ka_call *call, ka_view *wanted)
{
  wanted->made = wanted->base;
  if (wanted->base.kind == KJIT_ARG_ARRAY) {
    kj_diagnostics diagnostics = { 0 };
    kjit_array **view = ka_add_view(call);
    (void)kj_make_view(wanted->base.value.array, wanted->element, wanted->extents, wanted->strides,
                       wanted->rank, 0, &diagnostics, view);
    ka_try(call, ki_finish_call(call->context, &diagnostics));
    wanted->made.value.array = *view;
    return;
  }
  /* the launch happens later, when the operand may no longer exist */
  kjit_tensor *tensor = KJ_NEW(&call->arena, kjit_tensor);
  int64_t *kept = KJ_NEW_ARRAY(&call->arena, int64_t, 2 * KJ_MAX_RANK);
  memcpy(kept, wanted->extents, wanted->rank * sizeof *kept);
  memcpy(kept + KJ_MAX_RANK, wanted->strides, wanted->rank * sizeof *kept);
  *tensor = *wanted->base.value.tensor;
  tensor->rank = (int32_t)wanted->rank;
  tensor->shape = kept;
  tensor->strides = kept + KJ_MAX_RANK;
  wanted->made.value.tensor = tensor;
}

void ka_arrange(ka_call *call, ka_operand *operand, const uint32_t *axes, uint32_t group_count,
                const uint32_t *group_ranks)
{
  int64_t strides[KJ_MAX_RANK] = { 0 };
  KJ_ASSERT(group_count <= KA_MOST_GROUPS);
  operand->group_count = group_count;
  operand->axis_count = 0;
  for (uint32_t group = 0, next = 0; group < group_count; group++) {
    uint32_t first = operand->axis_count, count = group_ranks[group];
    for (uint32_t i = 0; i < count; i++, next++) {
      operand->axes[first + i] = axes[next];
      operand->extents[first + i] = operand->shape[axes[next]];
      strides[first + i] = operand->function ? 0 : operand->view.strides[axes[next]];
    }
    if (!operand->function) count = join_axes(operand->extents + first, strides + first, count);
    operand->group_ranks[group] = count;
    operand->axis_count += count;
    KJ_ASSERT(operand->axis_count <= KJ_MAX_RANK && next <= operand->rank);
  }
  if (operand->function) return;
  if (!operand->axis_count) { /* all axes have extent 1, and the kernel needs one axis */
    operand->extents[0] = strides[0] = 1;
    operand->axis_count = 1;
  }
  ka_view_operand(call, operand, operand->extents, strides, operand->axis_count);
}
