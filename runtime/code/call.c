/* Bound arguments: what they are called, where they lie, how they are related; and the memory of a
 * call. */
#include "code/call.h"

#include <string.h>

#include "code/key.h"
#include "ir/number.h"

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

kj_scope kj_call_scope(const kj_call *call)
{
  const kjit_kernel *kernel = call->kernel;
  return (kj_scope){ .bound = call->bound,
                     .bound_count = kernel->parameter_count,
                     .bindings = kernel->bindings,
                     .binding_count = kernel->binding_count };
}

/* ---- texts ---- */

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
    kj_append_text(buffer, bound->function ? bound->function->name : "a func");
    return;
  case KJ_ARGUMENT_NUMBER:
    kj_append_text(buffer, bound->type == KJ_WEAK_INT ? "integer number" : "number");
    return;
  case KJ_ARGUMENT_VALUE: ki_print_type(call->kernel->module->types, bound->type, buffer); return;
  }
}

/* ---- arrays ---- */

int64_t kj_stride_of(const kj_bound *array, uint32_t dimension)
{
  int64_t stride = 1;
  if (array->strides) return array->strides[dimension];
  bool is_row_major = array->layout != KJIT_LAYOUT_F;
  for (uint32_t i = is_row_major ? dimension + 1 : 0; i < (is_row_major ? array->rank : dimension);
       i++)
    stride *= array->shape[i];
  return stride;
}

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
