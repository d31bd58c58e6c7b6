/* Arguments of prepared launches. A prepared launch keeps copies of its arguments. If a run-time
 * scalar on which no extent depends is replaced, its value is written to the parameter block. If
 * any other argument is replaced, the next run checks all facts again. */
#include <stdlib.h>
#include <string.h>

#include "launch/prepared.h"
#include "launch/steps.h"
#include "support/assert.h"

/* ---- keeping arguments ---- */

static kjit_status refuse(const kjit_prepared *prepared, size_t index, const char *text,
                          kj_diagnostics *diagnostics)
{
  const ki_decl *decl = prepared->kernel->parameters[index].decl;
  return kj_error_at(diagnostics, prepared->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: %s", decl->name, text);
}

static kjit_status keep_tensor(kjit_prepared *prepared, size_t index, const kjit_tensor *tensor,
                               kj_diagnostics *diagnostics)
{
  kj_kept_argument *kept = &prepared->kept[index];
  if (!tensor) return refuse(prepared, index, "expected an array, got NULL", diagnostics);
  if (tensor->rank < 0 || tensor->rank > KJ_MAX_RANK || (tensor->rank && !tensor->shape))
    return refuse(prepared, index, "expected an array of 0 to 8 dimensions with a shape",
                  diagnostics);
  size_t bytes = (size_t)tensor->rank * sizeof *tensor->shape;
  kept->tensor = *tensor;
  if (bytes) memcpy(kept->extents, tensor->shape, bytes);
  if (bytes && tensor->strides) memcpy(kept->extents + KJ_MAX_RANK, tensor->strides, bytes);
  kept->tensor.shape = kept->extents;
  kept->tensor.strides = tensor->strides ? kept->extents + KJ_MAX_RANK : NULL;
  prepared->arguments[index].value.tensor = &kept->tensor;
  return KJIT_OK;
}

static kjit_status keep_value(kjit_prepared *prepared, size_t index, const kjit_arg *argument,
                              kj_diagnostics *diagnostics)
{
  kj_kept_argument *kept = &prepared->kept[index];
  ki_types *types = prepared->kernel->module->types;
  if (!argument->value.address || !ki_is_element(types, argument->type))
    return refuse(prepared, index, "expected a value, got none", diagnostics);
  size_t size = kj_element_bytes(types, argument->type);
  if (size <= sizeof kept->bits && !kept->value) {
    memcpy(kept->bits, argument->value.address, size);
    return KJIT_OK;
  }
  void *grown = realloc(kept->value, size > sizeof kept->bits ? size : sizeof kept->bits);
  if (!grown) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kept->value = grown;
  memcpy(kept->value, argument->value.address, size);
  return KJIT_OK;
}

static void release_kept(kjit_arg *argument)
{
  KJ_ASSERT(argument->kind != KJIT_ARG_TUPLE); /* flatten.c has replaced tuples by their items */
  if (argument->kind == KJIT_ARG_ARRAY) kjit_release_array(argument->value.array);
  argument->kind = 0;
}

static kjit_status keep_argument(kjit_prepared *prepared, size_t index, const kjit_arg *argument,
                                 kj_diagnostics *diagnostics)
{
  kjit_arg *own = &prepared->arguments[index], before = *own;
  kj_kept_argument *kept = &prepared->kept[index];
  switch (argument->kind) {
  case KJIT_ARG_TENSOR:
    KJ_TRY(keep_tensor(prepared, index, argument->value.tensor, diagnostics));
    break;
  case KJIT_ARG_BY_ADDRESS: KJ_TRY(keep_value(prepared, index, argument, diagnostics)); break;
  case KJIT_ARG_ARRAY:
    if (!argument->value.array)
      return refuse(prepared, index, "expected an array, got NULL", diagnostics);
    /* the array's context may end before the prepared launch */
    if (argument->value.array->object.device->context != prepared->kernel->context)
      return refuse(prepared, index,
                    "expected an array of the kernel's context, got an array of another context",
                    diagnostics);
    (void)kjit_retain_array(argument->value.array);
    break;
  default: break;
  }
  *own = *argument;
  KJ_ASSERT(index < prepared->count);
  if (argument->kind == KJIT_ARG_TENSOR) own->value.tensor = &kept->tensor;
  if (argument->kind == KJIT_ARG_BY_ADDRESS)
    own->value.address = kept->value ? kept->value : kept->bits;
  release_kept(&before);
  return KJIT_OK;
}

kjit_status kj_keep_arguments(kjit_prepared *prepared, const kjit_arg *arguments,
                              kj_diagnostics *diagnostics)
{
  for (size_t i = 0; i < prepared->count; i++)
    KJ_TRY(keep_argument(prepared, i, &arguments[i], diagnostics));
  return KJIT_OK;
}

void kj_release_arguments(kjit_prepared *prepared)
{
  for (size_t i = 0; i < prepared->count; i++) release_kept(&prepared->arguments[i]);
}

/* ---- scalars that can be replaced in the parameter block ---- */

static bool shapes_launch(const kjit_kernel *kernel, uint32_t index)
{
  bool is_used = kernel->parameters[index].is_shaping;
  /* the default value of another parameter may depend on this argument */
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    is_used = is_used || kernel->parameters[i].decl->value;
  return is_used;
}

void kj_find_scalars(kjit_prepared *prepared)
{
  const kj_code *code = &prepared->ready.specialization->code;
  for (size_t i = 0; i < prepared->count; i++) prepared->kept[i].scalar_offset = -1;
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (parameter->kind != KJ_PARAMETER_SCALAR || parameter->size_bytes > 8 || parameter->part ||
        parameter->argument >= prepared->count)
      continue;
    if (prepared->call.bound[parameter->argument].kind != KJ_ARGUMENT_VALUE ||
        shapes_launch(prepared->kernel, parameter->argument))
      continue;
    KJ_ASSERT(parameter->offset + parameter->size_bytes <= code->parameter_bytes);
    prepared->kept[parameter->argument].scalar_offset = (int32_t)parameter->offset;
    prepared->kept[parameter->argument].scalar_bytes = parameter->size_bytes;
  }
}

/* ---- replacing arguments ---- */

static const kjit_tensor *tensor_of(const kjit_arg *argument)
{
  if (argument->kind == KJIT_ARG_TENSOR) return argument->value.tensor;
  return argument->kind == KJIT_ARG_ARRAY && argument->value.array ? &argument->value.array->tensor
                                                                   : NULL;
}

static bool is_scalar(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_VALUE || argument->kind == KJIT_ARG_BY_ADDRESS;
}

static bool has_same_type(const kjit_arg *a, const kjit_arg *b)
{
  const kjit_tensor *x = tensor_of(a), *y = tensor_of(b);
  if (x || y)
    return x && y && x->rank == y->rank && x->code == y->code && x->bits == y->bits &&
           x->lanes == y->lanes;
  return is_scalar(a) ? is_scalar(b) && a->type == b->type : a->kind == b->kind;
}

static bool write_scalar(kjit_prepared *prepared, size_t index, const kjit_arg *argument)
{
  kj_kept_argument *kept = &prepared->kept[index];
  kjit_arg *own = &prepared->arguments[index];
  /* a launch that does nothing has no parameter block */
  bool is_made = (prepared->ready.is_ready || !prepared->is_stale) && !prepared->call.has_nothing;
  bool is_plain = is_made && kept->scalar_offset >= 0 && argument->kind == KJIT_ARG_VALUE &&
                  own->kind == KJIT_ARG_VALUE;
  kj_bound *bound = &prepared->call.bound[index];
  /* converting the value to the parameter's type may fail */
  if (!is_plain || argument->type != own->type || argument->type != bound->type) return false;
  *own = *argument;
  KJ_ASSERT(kept->scalar_bytes <= sizeof bound->bits[0]);
  KJ_ASSERT((size_t)kept->scalar_offset + kept->scalar_bytes <= prepared->call.parameter_room);
  bound->bits[0] =
    argument->type == KJIT_BOOL ? (argument->value.u & 0xff) != 0 : argument->value.u;
  memcpy(prepared->call.parameters + kept->scalar_offset, bound->bits, kept->scalar_bytes);
  return true;
}

static kjit_status replace(kjit_prepared *prepared, size_t index, const kjit_arg *argument,
                           kj_diagnostics *diagnostics)
{
  if (index >= prepared->count)
    return kj_error(
      diagnostics, KJIT_ERROR_ARGUMENT,
      "the launch of kernel `%s` was prepared with %zu arguments, so there is no argument %zu",
      prepared->kernel->function->decl->name, prepared->count, index);
  if (!has_same_type(&prepared->arguments[index], argument))
    return refuse(prepared, index,
                  "an argument of a prepared launch can be replaced only by one of the same type",
                  diagnostics);
  KJ_TRY(keep_argument(prepared, index, argument, diagnostics));
  kj_set_stale(prepared);
  return KJIT_OK;
}

kjit_status kjit_set_prepared_argument(kjit_prepared *prepared, size_t index,
                                       const kjit_arg *argument)
{
  if (!prepared) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(prepared->kernel->context)) return KJIT_ERROR_FORKED;
  if (!argument)
    return ki_fail_call(prepared->kernel->context, KJIT_ERROR_MISUSE,
                        "kjit_set_prepared_argument: argument is NULL");
  if (index < prepared->count && write_scalar(prepared, index, argument)) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  if (replace(prepared, index, argument, &diagnostics) == KJIT_OK) return KJIT_OK;
  return ki_finish_call(prepared->kernel->context, &diagnostics);
}
