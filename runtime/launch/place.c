/* Chooses a launch's device. Copies host arrays to a GPU before the launch and back after it; the
 * memory for the copies comes from the device's pools.
 *
 * Arrays with overlapping memory form a group. The copy of a group contains the bytes of all its
 * arrays at the same relative positions, so two arrays that are equal, overlap or are disjoint on
 * the host have the same relation on the GPU. Each copy has the same address modulo 256 as its
 * original, so facts about alignment stay true. All groups are in one block of GPU memory, first
 * the groups that are copied to the GPU before the launch. If the block is small, the groups are
 * first copied to a pinned host block with the same layout. The launch then needs only one transfer
 * in each direction, and the driver need not pin memory. The driver copies larger groups directly
 * from the application's memory, which is as fast as a copy through pinned memory. */
#include <stdlib.h>
#include <string.h>

#include "launch/steps.h"
#include "memory/pool.h"
#include "memory/array.h"

/* ---- the device of a launch ---- */

static kjit_status place_by_arrays(kj_call *call, const kjit_arg *arguments,
                                   kj_diagnostics *diagnostics)
{
  bool has_array = false;
  /* with several CPU devices: the ordinal of the device to which the first array on one of them
   * belongs; otherwise -1 */
  int32_t cpu = -1;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    kjit_device_kind kind;
    int32_t ordinal;
    const kjit_tensor *tensor = kj_tensor_of(&arguments[i]);
    has_array = true;
    if (cpu < 0 && tensor->device_type == KJ_DLPACK_PLACED) cpu = tensor->device_id;
    if (arguments[i].kind == KJIT_ARG_ARRAY && arguments[i].value.array->is_in_place) {
      call->device = arguments[i].value.array->object.device;
      return KJIT_OK;
    }
    if (kj_locate_tensor(tensor, &kind, &ordinal) && kind == KJIT_DEVICE_CUDA)
      return kj_find_device(call->runtime, KJIT_DEVICE_CUDA, ordinal, diagnostics, &call->device);
  }
  return has_array ? kj_find_device(call->runtime, KJIT_DEVICE_CPU, cpu < 0 ? 0 : cpu, diagnostics,
                                    &call->device)
                   : kj_default_device(call->runtime, diagnostics, &call->device);
}

/* Returns whether the call's device can access the tensor's memory, which can be managed memory or
 * memory of another GPU or CPU device. */
static bool is_in_reach(const kj_call *call, kjit_device_kind kind, const kjit_tensor *tensor)
{
  enum { MANAGED = 13, MOST_PEERS = 64 }; /* DLPack's device type for CUDA managed memory */
  uint32_t ordinal = (uint32_t)tensor->device_id;
  if (tensor->device_type == MANAGED) return true;
  if (kind != call->device->info.kind) return false;
  return ordinal < MOST_PEERS &&
         atomic_load_explicit(&call->device->peers, memory_order_relaxed) >> ordinal & 1;
}

/* Stores the properties of an array argument that only kjit arrays have. */
static void note_kjit_array(kj_call *call, uint32_t index, const kjit_arg *argument)
{
  if (argument->kind != KJIT_ARG_ARRAY) return;
  kjit_array *array = argument->value.array;
  if (array->is_read_only && call->kernel->parameters[index].is_written) {
    call->has_read_only = true;                 /* kj_check_writes follows */
    call->bound[index].access = KJIT_ACCESS_IN; /* a copy on the device is not copied back */
  }
  if (!call->device->operations->is_queued) return;
  kj_note_use(array, call->stream, call->device);
  if (array->is_in_place && call->bound[index].on_host) call->bound[index].on_host = false;
}

static kjit_status check_place(kj_call *call, uint32_t index, const kjit_arg *argument,
                               kj_diagnostics *diagnostics)
{
  const kjit_tensor *tensor = kj_tensor_of(argument);
  kjit_device_kind kind;
  int32_t ordinal;
  kj_bound *bound = &call->bound[index];
  const ki_decl *decl = call->kernel->parameters[index].decl;
  char place[24];
  const kj_device_operations *operations = call->device->operations;
  if (!kj_locate_tensor(tensor, &kind, &ordinal))
    return kj_error_at(
      diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
      "parameter `%s`: DLPack device type %d is neither the CPU's (1) nor CUDA's (2)", decl->name,
      tensor->device_type);
  bool is_placed = tensor->device_type == KJ_DLPACK_PLACED && !operations->has_memory;
  if (kind == KJIT_DEVICE_CPU && !is_placed) {
    bound->on_host = operations->has_memory;
    note_kjit_array(call, index, argument);
    call->has_host_arrays = call->has_host_arrays || bound->on_host;
    return KJIT_OK;
  }
  if ((kind == call->device->info.kind && ordinal == call->device->info.ordinal) ||
      is_in_reach(call, kind, tensor)) {
    note_kjit_array(call, index, argument);
    return KJIT_OK;
  }
  if (kind != call->device->info.kind)
    return kj_error_at(diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                       "parameter `%s`: the launch is on %s, but the array is on cuda:%d",
                       decl->name, kj_device_text(call->device, place), ordinal);
  return kj_error_at(
    diagnostics, call->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
    "parameter `%s`: the launch is on %s, but the array is on %s:%d; copy the array "
    "to the device, or switch peer access on",
    decl->name, kj_device_text(call->device, place), operations->name, ordinal);
}

/* kj_parameter_row.is_written is derived from the source before typing, so it is also true for
 * writes in branches that the argument types exclude. */
kjit_status kj_check_writes(const kj_call *call, const kjit_arg *arguments, const kj_code *code,
                            kj_diagnostics *diagnostics)
{
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (parameter->kind != KJ_PARAMETER_POINTER || !parameter->may_write) continue;
    const kj_parameter_row *row = &call->kernel->parameters[parameter->argument];
    const kjit_arg *argument = &arguments[parameter->argument];
    if (argument->kind != KJIT_ARG_ARRAY || !argument->value.array->is_read_only) continue;
    if (row->is_written)
      return kj_error_at(diagnostics, call->kernel->module, row->decl->location,
                         KJIT_ERROR_ARGUMENT,
                         "parameter `%s`: the kernel writes to the array, but the array's owner "
                         "has marked it read-only",
                         row->decl->name);
  }
  return KJIT_OK;
}

kjit_status kj_choose_device(kj_call *call, const kjit_arg *arguments, kj_diagnostics *diagnostics)
{
  kjit_device *asked = call->config->device;
  call->stream = call->config->stream;
  char here[24], there[24];
  if (call->stream && asked && call->stream->object.device != asked)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the launch is on %s, but its stream is on %s", kj_device_text(asked, here),
                    kj_device_text(call->stream->object.device, there));
  call->device = call->stream ? call->stream->object.device : asked;
  if (!call->device) KJ_TRY(place_by_arrays(call, arguments, diagnostics));
  if (call->device->context != call->kernel->context)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the device and the kernel belong to different contexts");
  KJ_ASSERT(!call->stream || call->stream->object.device == call->device);
  if (call->stream) KJ_TRY(kj_check_object(&call->stream->object, "stream", diagnostics));
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++)
    if (call->bound[i].kind == KJ_ARGUMENT_ARRAY)
      KJ_TRY(check_place(call, i, &arguments[i], diagnostics));
  return KJIT_OK;
}

/* ---- host arrays ---- */

enum { PLACEMENT = 256 };

typedef struct group {
  uint64_t low, high; /* range of bytes in host memory */
  uint64_t offset;    /* offset of `low` in the image */
  bool copy_in;
} group;

struct kj_staging {
  kj_block *image, *pinned; /* image is the block on the GPU. pinned is a host block with the same
                               layout, or NULL if the image is too large for one. */
  /* size of the image, and size of the part at its beginning that is copied to the GPU before the
   * launch */
  uint64_t size_bytes, in_bytes;
  bool is_queued; /* true if queued work may still use host memory */
  uint32_t count;
  group groups[];
};

/* Returns whether an array is copied. An array is not copied if the kernel reads only its
 * extents. */
static bool is_staged(const kj_call *call, uint32_t index)
{
  const kj_bound *bound = &call->bound[index];
  const kj_parameter_row *row = &call->kernel->parameters[index];
  return bound->kind == KJ_ARGUMENT_ARRAY && bound->on_host && !bound->is_empty &&
         (row->is_read || row->is_written);
}

/* ---- groups ---- */

/* Adds a range and merges it with all groups that it overlaps. */
static void add_range(kj_staging *staging, group added)
{
  for (uint32_t i = 0; i < staging->count;) {
    group *other = &staging->groups[i];
    if (!kj_do_meet(added.low, added.high, other->low, other->high)) {
      i++;
      continue;
    }
    added.low = added.low < other->low ? added.low : other->low;
    added.high = added.high > other->high ? added.high : other->high;
    /* the group is copied to the GPU before the launch, because its arrays may not cover the whole
     * byte range */
    added.copy_in = true;
    *other = staging->groups[--staging->count];
    i = 0;
  }
  KJ_ASSERT(added.low < added.high);
  for (uint32_t i = 0; i < staging->count; i++)
    KJ_ASSERT(!kj_do_meet(added.low, added.high, staging->groups[i].low, staging->groups[i].high));
  staging->groups[staging->count++] = added;
}

/* Adds a byte range. If two arguments pass the same array, adds the range only once. The range is
 * copied to the GPU before the launch, unless both arguments promise that the kernel overwrites the
 * whole array. */
static void merge_range(kj_staging *staging, group added)
{
  for (uint32_t i = 0; i < staging->count; i++) {
    group *other = &staging->groups[i];
    if (other->low != added.low || other->high != added.high) continue;
    other->copy_in = other->copy_in || added.copy_in;
    return;
  }
  add_range(staging, added);
}

static kjit_access access_of(const kj_call *call, uint32_t index)
{
  const kj_parameter_row *row = &call->kernel->parameters[index];
  kjit_access given = (kjit_access)call->bound[index].access;
  if (given != KJIT_ACCESS_AUTO) return given;
  /* copy in as well, because the kernel may leave elements unwritten */
  return row->is_written ? KJIT_ACCESS_IN_OUT : KJIT_ACCESS_IN;
}

static bool is_dense(const kj_call *call, const kj_bound *bound)
{
  return bound->high - bound->low ==
         bound->count * kj_element_bytes(call->kernel->module->types, bound->type);
}

static void find_groups(const kj_call *call, kj_staging *staging)
{
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    const kj_bound *bound = &call->bound[i];
    if (!is_staged(call, i)) continue;
    bool writes_all = access_of(call, i) == KJIT_ACCESS_OUT && is_dense(call, bound);
    merge_range(staging, (group){ .low = bound->low, .high = bound->high, .copy_in = !writes_all });
  }
}

static const group *group_of(const kj_staging *staging, const kj_bound *bound)
{
  uint32_t i = 0;
  while (bound->low < staging->groups[i].low || bound->high > staging->groups[i].high) {
    i++;
    KJ_ASSERT(i < staging->count); /* every copied array belongs to a group */
  }
  return &staging->groups[i];
}

/* ---- in ---- */

static void place_groups(kj_staging *staging, bool copy_in)
{
  for (uint32_t i = 0; i < staging->count; i++) {
    group *group = &staging->groups[i];
    if (group->copy_in != copy_in) continue;
    group->offset =
      (staging->size_bytes + PLACEMENT - 1) / PLACEMENT * PLACEMENT + group->low % PLACEMENT;
    KJ_ASSERT(group->offset >= staging->size_bytes);
    KJ_ASSERT(group->offset % PLACEMENT == group->low % PLACEMENT);
    staging->size_bytes = group->offset + (group->high - group->low);
  }
}

static kjit_status take_memory(kj_call *call, kj_staging *staging, kj_diagnostics *diagnostics)
{
  enum { MOST_PINNED = 4 << 20 };
  KJ_ASSERT(!staging->image && !staging->pinned && staging->count <= call->kernel->parameter_count);
  if (!staging->count) return KJIT_OK;
  place_groups(staging, true);
  staging->in_bytes = staging->size_bytes;
  place_groups(staging, false);
  KJ_TRY(kj_take_block(call->device, KJ_POOL_DEVICE, staging->size_bytes, call->stream, diagnostics,
                       &staging->image));
  if (staging->size_bytes > MOST_PINNED) return KJIT_OK;
  KJ_TRY(kj_take_block(call->device, KJ_POOL_PINNED, staging->size_bytes, NULL, diagnostics,
                       &staging->pinned));
  kj_add_use(&staging->pinned->use, kj_id_of(call->stream, call->device));
  return KJIT_OK;
}

static char *pinned_place(const kj_staging *staging, uint64_t offset)
{
  KJ_ASSERT(offset <= staging->size_bytes && staging->size_bytes <= staging->pinned->size_bytes);
  /* NOLINT(performance-no-int-to-ptr) */
  return (char *)(uintptr_t)staging->pinned->address + offset;
}

static kjit_status send(const kj_call *call, void *stream, uint64_t to, const void *from,
                        size_t size_bytes, kj_diagnostics *diagnostics)
{
  kj_transfer transfer = { .to = to,
                           .from = (uint64_t)(uintptr_t)from,
                           .from_host = true,
                           .width_bytes = size_bytes,
                           .rows = 1 };
  return call->device->operations->copy(call->device, &transfer, stream, diagnostics);
}

static kjit_status copy_in(const kj_call *call, void *stream, const kj_staging *staging,
                           kj_diagnostics *diagnostics)
{
  for (uint32_t i = 0; i < staging->count; i++) {
    const group *group = &staging->groups[i];
    const void *host = (const void *)(uintptr_t)group->low; /* NOLINT(performance-no-int-to-ptr) */
    size_t size_bytes = group->high - group->low;
    if (!group->copy_in) continue;
    if (staging->pinned) memcpy(pinned_place(staging, group->offset), host, size_bytes);
    else
      KJ_TRY(
        send(call, stream, staging->image->address + group->offset, host, size_bytes, diagnostics));
  }
  if (!staging->pinned || !staging->in_bytes) return KJIT_OK;
  return send(call, stream, staging->image->address, pinned_place(staging, 0), staging->in_bytes,
              diagnostics);
}

static uint64_t offset_of(const kj_staging *staging, const kj_bound *bound, uint64_t address)
{
  const group *group = group_of(staging, bound);
  KJ_ASSERT(address >= group->low && address <= group->high);
  return group->offset + (address - group->low);
}

kjit_status kj_stage_in(kj_call *call, void *stream, kj_diagnostics *diagnostics,
                        kj_staging **staging)
{
  uint32_t count = call->kernel->parameter_count;
  KJ_ASSERT(call->has_host_arrays && call->device->operations->has_memory);
  *staging = calloc(1, sizeof **staging + (count + 1) * sizeof *(*staging)->groups);
  if (!*staging) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  find_groups(call, *staging);
  /* queued work may still write to pinned host memory */
  KJ_TRY(kj_synchronize(call->device, false, stream, diagnostics));
  KJ_TRY(take_memory(call, *staging, diagnostics));
  (*staging)->is_queued = true;
  for (uint32_t i = 0; i < count; i++) {
    kj_bound *bound = &call->bound[i];
    if (is_staged(call, i))
      bound->target = (*staging)->image->address + offset_of(*staging, bound, bound->address);
  }
  return copy_in(call, stream, *staging, diagnostics);
}

/* ---- out ---- */

static bool is_written(const kj_call *call, uint32_t index)
{
  return is_staged(call, index) && access_of(call, index) != KJIT_ACCESS_IN;
}

static kjit_status fetch(const kj_call *call, void *stream, void *to, uint64_t from,
                         size_t size_bytes, kj_diagnostics *diagnostics)
{
  kj_transfer transfer = { .to = (uint64_t)(uintptr_t)to,
                           .from = from,
                           .to_host = true,
                           .width_bytes = size_bytes,
                           .rows = 1 };
  return call->device->operations->copy(call->device, &transfer, stream, diagnostics);
}

/* Copies an array from `copy`, which starts with the byte at bound->low. Bytes between the elements
 * are not written. */
static kjit_status put_back(const kj_call *call, const kj_bound *bound, const char *copy,
                            kj_diagnostics *diagnostics)
{
  if (is_dense(call, bound)) {
    /* NOLINT(performance-no-int-to-ptr) */
    memcpy((void *)(uintptr_t)bound->low, copy, bound->high - bound->low);
    return KJIT_OK;
  }
  kj_view to = { .kind = KJIT_DEVICE_CPU,
                 .element = bound->type,
                 .rank = bound->rank,
                 .element_bytes = kj_element_bytes(call->kernel->module->types, bound->type),
                 .address = bound->address,
                 .count = bound->count };
  for (uint32_t i = 0; i < bound->rank; i++) {
    to.shape[i] = bound->shape[i];
    to.strides[i] = kj_stride_of(bound, i);
  }
  kj_view from = to;
  from.address = (uint64_t)(uintptr_t)copy + (bound->address - bound->low);
  return kj_copy_host(&to, &from, diagnostics);
}

static kjit_status copy_back(kj_call *call, void *stream, const kj_bound *bound,
                             const kj_staging *staging, kj_diagnostics *diagnostics)
{
  uint64_t image = staging->image->address + offset_of(staging, bound, bound->low);
  size_t size_bytes = bound->high - bound->low;
  if (is_dense(call, bound)) /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
    return fetch(call, stream, (void *)(uintptr_t)bound->low, image, size_bytes, diagnostics);
  char *between = malloc(size_bytes);
  if (!between)
    return kj_error(diagnostics, KJIT_ERROR_MEMORY,
                    "out of memory: copying back a non-contiguous array needs %zu bytes",
                    size_bytes);
  kjit_status status = fetch(call, stream, between, image, size_bytes, diagnostics);
  if (status == KJIT_OK) status = kj_synchronize(call->device, false, stream, diagnostics);
  if (status == KJIT_OK) status = put_back(call, bound, between, diagnostics);
  free(between);
  return status;
}

/* Copies the bytes from the first written byte to the last one in a single transfer. */
static kjit_status fetch_pinned(const kj_call *call, void *stream, const kj_staging *staging,
                                kj_diagnostics *diagnostics)
{
  uint64_t low = UINT64_MAX, high = 0;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    if (!is_written(call, i)) continue;
    uint64_t first = offset_of(staging, &call->bound[i], call->bound[i].low),
             last = offset_of(staging, &call->bound[i], call->bound[i].high);
    low = first < low ? first : low;
    high = last > high ? last : high;
  }
  if (high <= low) return KJIT_OK;
  return fetch(call, stream, pinned_place(staging, low), staging->image->address + low, high - low,
               diagnostics);
}

static kjit_status queue_out(kj_call *call, void *stream, const kj_staging *staging,
                             kj_diagnostics *diagnostics)
{
  if (staging->pinned) return fetch_pinned(call, stream, staging, diagnostics);
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++)
    if (is_written(call, i)) KJ_TRY(copy_back(call, stream, &call->bound[i], staging, diagnostics));
  return KJIT_OK;
}

static kjit_status wait(kj_call *call, kj_staging *staging, kj_diagnostics *diagnostics)
{
  kj_waited waited;
  KJ_TRY(kj_wait_stream(call->device, call->stream, diagnostics, &waited));
  staging->is_queued = false;
  if (staging->image) kj_note_waited(&staging->image->use, waited);
  if (staging->pinned) kj_note_waited(&staging->pinned->use, waited);
  return KJIT_OK;
}

kjit_status kj_stage_out(kj_call *call, void *stream, kj_staging *staging,
                         kj_diagnostics *diagnostics)
{
  KJ_TRY(queue_out(call, stream, staging, diagnostics));
  KJ_TRY(wait(call, staging, diagnostics));
  for (uint32_t i = 0; i < call->kernel->parameter_count && staging->pinned; i++) {
    const kj_bound *bound = &call->bound[i];
    if (is_written(call, i))
      KJ_TRY(put_back(call, bound, pinned_place(staging, offset_of(staging, bound, bound->low)),
                      diagnostics));
  }
  return kj_report_kernels(call->device, diagnostics);
}

/* Frees the copies' memory. After a failure, first waits for the queued copies, because they still
 * use host memory. */
void kj_free_staging(kj_call *call, kj_staging *staging)
{
  if (!staging) return;
  kj_diagnostics ignored = { 0 };
  if (staging->is_queued) (void)wait(call, staging, &ignored);
  KJ_ASSERT(staging->image || !staging->pinned);
  kj_free_diagnostics(&ignored);
  kj_release_block(staging->image);
  kj_release_block(staging->pinned);
  free(staging);
}
