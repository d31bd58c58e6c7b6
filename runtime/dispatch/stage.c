/* Host arrays of a launch on a GPU: copied there before it and back after it.
 *
 * Arrays whose memory overlaps share one allocation that holds the bytes of all of them, each at its place: what is the same, overlapping or disjoint on the host is so on
 * the GPU. A copy lies as its original does relative to 256 bytes, so that the facts about alignment hold for it. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/dispatch.h"
#include "view.h"

enum { PLACEMENT = 256 };

typedef struct group {
  uint64_t low, high;         /* bytes on the host */
  uint64_t allocation, image; /* image: where low lies on the GPU */
  bool copy_in;
} group;

struct kj_staging {
  uint32_t count;
  group groups[];
};

/* An array of which the kernel only asks the extents stays where it is. */
static bool is_staged(const kj_call *call, uint32_t index)
{
  const kj_bound *bound = &call->bound[index];
  const kj_parameter_row *row = &call->kernel->parameters[index];
  return bound->kind == KJ_ARGUMENT_ARRAY && bound->on_host && !bound->is_empty && (row->is_read || row->is_written);
}

/* ---- groups ---- */

/* Merges the range with every group that it overlaps. */
static void add_range(kj_staging *staging, group added)
{
  for (uint32_t i = 0; i < staging->count;) {
    group *other = &staging->groups[i];
    if (added.high <= other->low || other->high <= added.low) {
      i++;
      continue;
    }
    added.low = added.low < other->low ? added.low : other->low;
    added.high = added.high > other->high ? added.high : other->high;
    added.copy_in = true; /* no member alone need cover the union */
    *other = staging->groups[--staging->count];
    i = 0;
  }
  staging->groups[staging->count++] = added;
}

/* The same array twice stays one range that one of them may cover alone. */
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
  return row->is_written ? KJIT_ACCESS_IN_OUT : KJIT_ACCESS_IN; /* nobody knows that a kernel writes every element */
}

static bool is_dense(const kj_bound *bound) { return bound->high - bound->low == bound->count * kj_element_bytes(bound->type); }

static void find_groups(const kj_call *call, kj_staging *staging)
{
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    const kj_bound *bound = &call->bound[i];
    if (!is_staged(call, i)) continue;
    bool writes_all = access_of(call, i) == KJIT_ACCESS_OUT && is_dense(bound);
    merge_range(staging, (group){ .low = bound->low, .high = bound->high, .copy_in = !writes_all });
  }
}

static const group *group_of(const kj_staging *staging, const kj_bound *bound)
{
  uint32_t i = 0;
  while (bound->low < staging->groups[i].low || bound->high > staging->groups[i].high) i++;
  return &staging->groups[i];
}

/* ---- in ---- */

static kjit_status make_image(kj_call *call, group *group, void *stream, kj_diagnostics *diagnostics)
{
  kjit_device *device = call->device;
  size_t size_bytes = group->high - group->low;
  KJ_TRY(kj_allocate_cuda(device, size_bytes + PLACEMENT, diagnostics, &group->allocation));
  group->image = group->allocation + (group->low - group->allocation) % PLACEMENT;
  if (!group->copy_in) return KJIT_OK;
  return KJ_DRIVER(device, diagnostics, cuMemcpyHtoDAsync, group->image, (const void *)(uintptr_t)group->low, size_bytes, stream);
}

kjit_status kj_stage_in(kj_call *call, void *stream, kj_diagnostics *diagnostics, kj_staging **staging)
{
  uint32_t count = call->kernel->parameter_count;
  *staging = calloc(1, sizeof **staging + (count + 1) * sizeof *(*staging)->groups);
  if (!*staging) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  find_groups(call, *staging);
  for (uint32_t i = 0; i < (*staging)->count; i++) KJ_TRY(make_image(call, &(*staging)->groups[i], stream, diagnostics));
  for (uint32_t i = 0; i < count; i++) {
    kj_bound *bound = &call->bound[i];
    if (!is_staged(call, i)) continue;
    const group *group = group_of(*staging, bound);
    bound->target = group->image + (bound->address - group->low);
  }
  return KJIT_OK;
}

/* ---- out ---- */

static kjit_status copy_back(kj_call *call, void *stream, const kj_bound *bound, const group *group, kj_diagnostics *diagnostics)
{
  kjit_device *device = call->device;
  uint64_t image = group->image + (bound->low - group->low);
  size_t size_bytes = bound->high - bound->low;
  if (is_dense(bound)) return KJ_DRIVER(device, diagnostics, cuMemcpyDtoHAsync, (void *)(uintptr_t)bound->low, image, size_bytes, stream);
  /* What lies between the elements is not the kernel's to write. */
  char *between = malloc(size_bytes);
  if (!between) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory: copying back an array that is not contiguous needs %zu bytes", size_bytes);
  kjit_status status = KJ_DRIVER(device, diagnostics, cuMemcpyDtoHAsync, between, image, size_bytes, stream);
  if (status == KJIT_OK) status = KJ_DRIVER(device, diagnostics, cuStreamSynchronize, stream);
  if (status == KJIT_OK) {
    kj_view to = { .kind = KJIT_DEVICE_CPU,
                   .element = bound->type,
                   .rank = bound->rank,
                   .element_bytes = kj_element_bytes(bound->type),
                   .address = bound->address,
                   .count = bound->count };
    for (uint32_t i = 0; i < bound->rank; i++) {
      to.shape[i] = bound->shape[i];
      to.strides[i] = kj_stride_of(bound, i);
    }
    kj_view from = to;
    from.address = (uint64_t)(uintptr_t)between + (bound->address - bound->low);
    status = kj_copy_host(&to, &from, diagnostics);
  }
  free(between);
  return status;
}

kjit_status kj_stage_out(kj_call *call, void *stream, kj_staging *staging, kj_diagnostics *diagnostics)
{
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    const kj_bound *bound = &call->bound[i];
    if (is_staged(call, i) && access_of(call, i) != KJIT_ACCESS_IN) KJ_TRY(copy_back(call, stream, bound, group_of(staging, bound), diagnostics));
  }
  KJ_TRY(kj_synchronize(call->device, false, stream, diagnostics));
  return kj_take_failures(call->device, diagnostics);
}

/* Also after a failure halfway: cuMemFree waits for what still uses the memory. */
void kj_free_staging(kj_call *call, kj_staging *staging)
{
  if (!staging) return;
  for (uint32_t i = 0; i < staging->count; i++)
    if (staging->groups[i].allocation && !atomic_load(&call->device->lost)) call->device->driver->cuMemFree(staging->groups[i].allocation);
  free(staging);
}
