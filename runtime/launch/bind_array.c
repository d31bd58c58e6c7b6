/* Array arguments of a call: how their elements lie, the facts that hold for this very call, and
 * the device that the launch runs on. */
#include "launch/bind.h"

#include <string.h>

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
  uint64_t count; /* elements */
  bool is_empty, is_huge;
  bool is_row_major, is_column_major;
  bool fits32;
  int64_t least, most; /* element offsets */
} extent_facts;

/* By the usual convention the stride of an extent of 1 does not matter, and an array without
 * elements is contiguous. */
static void look_at_contiguous(const int64_t *shape, uint32_t rank, extent_facts *facts)
{
  uint64_t count = 1;
  uint32_t wide = 0; /* dimensions with more than one element */
  for (uint32_t i = 0; i < rank; i++) {
    facts->is_empty = facts->is_empty || shape[i] == 0;
    facts->fits32 = facts->fits32 && shape[i] <= INT32_MAX;
    wide += shape[i] > 1;
    if (shape[i])
      facts->is_huge = __builtin_mul_overflow(count, (uint64_t)shape[i], &count) || facts->is_huge;
  }
  facts->count = facts->is_empty ? 0 : count;
  facts->is_huge = facts->is_huge || count > (uint64_t)INT64_MAX / 16;
  facts->fits32 = facts->fits32 && count <= INT32_MAX; /* strides too */
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
                     "parameter `%s`: expected one of kjit's element types, got DLPack's code %u "
                     "with %u bits, in %u lane%s",
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
                "the elements are not aligned: the address is no multiple of %lld", alignment);
  if (row->is_general) return KJIT_OK;
  bool has_rows = rank > 1 && bound->layout == KJIT_LAYOUT_C;
  bound->facts = (uint8_t)kj_find_array_facts(
    (kj_array_place){ .address = bound->address,
                      .has_rows = has_rows,
                      .row_bytes = has_rows ? (uint64_t)bound->shape[rank - 1] * bytes : 0 });
  return KJIT_OK;
}

/* ---- where it runs ---- */

static const kjit_tensor *tensor_of(const kjit_arg *argument)
{
  if (argument->kind == KJIT_ARG_TENSOR) return argument->value.tensor;
  return argument->kind == KJIT_ARG_ARRAY ? &argument->value.array->tensor : NULL;
}

static kjit_status place_by_arrays(kj_call *call, const kjit_arg *arguments,
                                   kj_diagnostics *diagnostics)
{
  bool has_array = false;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    kjit_device_kind kind;
    int32_t ordinal;
    has_array = true;
    if (arguments[i].kind == KJIT_ARG_ARRAY && arguments[i].value.array->is_in_place) {
      call->device = arguments[i].value.array->object.device;
      return KJIT_OK;
    }
    if (kj_locate_tensor(tensor_of(&arguments[i]), &kind, &ordinal) && kind == KJIT_DEVICE_CUDA)
      return kj_find_device(call->runtime, KJIT_DEVICE_CUDA, ordinal, diagnostics, &call->device);
  }
  return has_array ? kj_find_device(call->runtime, KJIT_DEVICE_CPU, 0, diagnostics, &call->device)
                   : kj_default_device(call->runtime, diagnostics, &call->device);
}

/* Memory that another GPU, or the host, reaches where it is. */
static bool is_in_reach(const kj_call *call, const kjit_tensor *tensor)
{
  enum { MANAGED = 13, MOST_PEERS = 64 }; /* DLPack's number */
  uint32_t ordinal = (uint32_t)tensor->device_id;
  if (tensor->device_type == MANAGED) return true;
  return ordinal < MOST_PEERS &&
         atomic_load_explicit(&call->device->peers, memory_order_relaxed) >> ordinal & 1;
}

/* What only the kjit array knows. */
static kjit_status check_kjit_array(kj_call *call, uint32_t index, const kjit_arg *argument,
                                    kj_diagnostics *diagnostics)
{
  const kj_parameter_row *row = &call->kernel->parameters[index];
  if (argument->kind != KJIT_ARG_ARRAY) return KJIT_OK;
  kjit_array *array = argument->value.array;
  if (array->is_read_only && row->is_written)
    return kj_error_at(
      diagnostics, call->kernel->module, row->decl->location, KJIT_ERROR_ARGUMENT,
      "parameter `%s`: the kernel writes it, and the array is read-only: its owner has said so",
      row->decl->name);
  if (!call->device->operations->is_queued) return KJIT_OK;
  kj_note_use(array, call->stream, call->device);
  if (!array->is_in_place || !call->bound[index].on_host) return KJIT_OK;
  call->bound[index].on_host = false;
  return KJIT_OK;
}

static kjit_status check_place(kj_call *call, uint32_t index, const kjit_arg *argument,
                               kj_diagnostics *diagnostics)
{
  const kjit_tensor *tensor = tensor_of(argument);
  kjit_device_kind kind;
  int32_t ordinal;
  kj_bound *bound = &call->bound[index];
  const ki_decl *decl = call->kernel->parameters[index].decl;
  char place[24];
  if (!kj_locate_tensor(tensor, &kind, &ordinal))
    return kj_error_at(
      diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
      "parameter `%s`: DLPack device type %d is neither the CPU's (1) nor CUDA's (2)", decl->name,
      tensor->device_type);
  if (kind == KJIT_DEVICE_CPU) {
    bound->on_host = call->device->operations->has_memory;
    KJ_TRY(check_kjit_array(call, index, argument, diagnostics));
    call->has_host_arrays = call->has_host_arrays || bound->on_host;
    return KJIT_OK;
  }
  if ((kind == call->device->info.kind && ordinal == call->device->info.ordinal) ||
      is_in_reach(call, tensor))
    return check_kjit_array(call, index, argument, diagnostics);
  return kj_error_at(diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "parameter `%s`: the launch is on %s, the array on cuda:%d", decl->name,
                     kj_device_text(call->device, place), ordinal);
}

kjit_status kj_choose_device(kj_call *call, const kjit_arg *arguments, kj_diagnostics *diagnostics)
{
  kjit_device *asked = call->config->device;
  call->stream = call->config->stream;
  char here[24], there[24];
  if (call->stream && asked && call->stream->object.device != asked)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the launch is on %s, its stream on %s",
                    kj_device_text(asked, here),
                    kj_device_text(call->stream->object.device, there));
  call->device = call->stream ? call->stream->object.device : asked;
  if (!call->device) KJ_TRY(place_by_arrays(call, arguments, diagnostics));
  if (call->device->context != call->kernel->context)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the device and the kernel belong to different contexts");
  if (call->stream) KJ_TRY(kj_check_object(&call->stream->object, "stream", diagnostics));
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++)
    if (call->bound[i].kind == KJ_ARGUMENT_ARRAY)
      KJ_TRY(check_place(call, i, &arguments[i], diagnostics));
  return KJIT_OK;
}
