/* Launches kernels on a GPU, and encodes the tensor maps that launches pass. */
#include <string.h>

#include "cuda/cuda.h"
#include "support/assert.h"

static kj_cu_launch_attribute *add_number(kj_cu_launch_attribute *attribute, int id, int number)
{
  *attribute = (kj_cu_launch_attribute){ .id = id, .value.number = number };
  return attribute + 1;
}

static int launch_extended(const kjit_device *device, const kj_device_code *function,
                           const kj_device_launch *launch, void **extra)
{
  kj_cu_launch_attribute attributes[KJ_CU_LAUNCH_ATTRIBUTES], *end = attributes;
  if (launch->is_cooperative) end = add_number(end, KJ_CU_LAUNCH_COOPERATIVE, 1);
  if (launch->is_programmatic) end = add_number(end, KJ_CU_LAUNCH_PROGRAMMATIC, 1);
  if (launch->priority) end = add_number(end, KJ_CU_LAUNCH_PRIORITY, launch->priority);
  if (launch->cluster[0]) {
    *end = (kj_cu_launch_attribute){ .id = KJ_CU_LAUNCH_CLUSTER };
    memcpy(end->value.cluster, launch->cluster, sizeof end->value.cluster);
    end++;
  }
  kj_cu_launch_config config = { .dynamic_shared_bytes = launch->dynamic_shared_bytes,
                                 .stream = launch->stream,
                                 .attributes = attributes };
  memcpy(config.grid, launch->grid, sizeof config.grid);
  memcpy(config.block, launch->block, sizeof config.block);
  config.attribute_count = (unsigned)(end - attributes);
  KJ_ASSERT(config.attribute_count && config.attribute_count <= KJ_CU_LAUNCH_ATTRIBUTES);
  return device->driver->cuLaunchKernelEx(&config, function->function, launch->pointers, extra);
}

static int launch_once(const kjit_device *device, const kj_device_code *function,
                       const kj_device_launch *launch)
{
  size_t parameter_bytes = launch->parameter_bytes;
  void *block_and_size[] = { (void *)(uintptr_t)KJ_BLOCK_ADDRESS, launch->parameters,
                             (void *)(uintptr_t)KJ_BLOCK_BYTES, &parameter_bytes, NULL };
  void **extra = parameter_bytes && !launch->pointers ? block_and_size : NULL;
  KJ_ASSERT(!parameter_bytes || launch->parameters);
  KJ_ASSERT(!launch->has_attributes || launch->cluster);
  const uint32_t *grid = launch->grid, *block = launch->block;
  if (launch->has_attributes) return launch_extended(device, function, launch, extra);
  return device->driver->cuLaunchKernel(function->function, grid[0], grid[1], grid[2], block[0],
                                        block[1], block[2], launch->dynamic_shared_bytes,
                                        launch->stream, launch->pointers, extra);
}

/* Returns whether a launch failed because a thread needs too much local memory. A thread can have
 * 512 KiB of local memory, of which driver 580 reserves about 1 KiB. The driver loads code that
 * needs more than the remaining local memory, but the launch fails with the misleading error that
 * its values are invalid. */
static bool needs_too_much_local(const kj_device_code *function, int result)
{
  enum { SURELY_LAUNCHED = 508 * 1024 };
  return result == KJ_CU_INVALID_VALUE && function->local_bytes > SURELY_LAUNCHED;
}

static kjit_status report_local(const kjit_device *device, const kj_device_code *function,
                                kj_diagnostics *diagnostics)
{
  char place[24];
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                  "kernel `%s` on %s: a thread needs %u bytes for local arrays, including those of "
                  "called functions; the maximum on a GPU is 512 KiB",
                  function->mark->name, kj_device_text(device, place), function->local_bytes);
}

/* Repeats a launch with the device's context current. The first launch may have failed because
 * another context was current. Tests with driver 580 show that a function never runs in a context
 * other than its own, and that a stream of this context selects the context. */
kjit_status kj_cuda_retry(kjit_device *device, const kj_device_code *function,
                          const kj_device_launch *launch, int result, kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  if (previous != device->primary || result == KJ_CU_INVALID_CONTEXT || result == KJ_ELSEWHERE)
    result = launch_once(device, function, launch);
  /* the first launch of a kernel can exhaust the memory, because the driver then allocates the
   * local memory of the kernel's threads */
  if (result == KJ_CU_OUT_OF_MEMORY) {
    kj_relieve_device(device);
    result = launch_once(device, function, launch);
  }
  kjit_status status =
    needs_too_much_local(function, result)
      ? report_local(device, function, diagnostics)
      : kj_check_kernel_call(device, function->mark->name, result,
                             launch->has_attributes ? "cuLaunchKernelEx" : "cuLaunchKernel",
                             diagnostics);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kj_cuda_launch(kjit_device *device, const kj_device_code *function, const kj_code *code,
                           const kj_device_launch *launch, kj_diagnostics *diagnostics)
{
  (void)code;
  KJ_ASSERT(function->function != KJ_UNLOADED);
  kj_assert_alive(device, launch->stream);
  kj_mark_launch(device, function->mark, launch->stream);
  int result =
    kj_is_elsewhere(device, launch->stream) ? KJ_ELSEWHERE : launch_once(device, function, launch);
  return result ? kj_cuda_retry(device, function, launch, result, diagnostics) : KJIT_OK;
}

/* ---- tensor maps ---- */

/* Returns the CUtensorMapDataType of an element. For most types it depends only on the size. Floats
 * need separate types, because fills and reductions depend on the type. */
static int data_type(kjit_type type, uint32_t size_bytes)
{
  enum { U8, U16, U32, I32, U64, I64, F16, F32, F64, BF16 };
  static const struct {
    kjit_type type;
    int number;
  } floats[] = { { KJIT_F16, F16 }, { KJIT_BF16, BF16 }, { KJIT_F32, F32 }, { KJIT_F64, F64 } };
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    if (floats[i].type == type) return floats[i].number;
  return size_bytes == 1 ? U8 : size_bytes == 2 ? U16 : size_bytes == 4 ? U32 : U64;
}

static int swizzle_of(uint32_t bytes)
{
  enum { NONE, BY_32, BY_64, BY_128 };
  return bytes == 32 ? BY_32 : bytes == 64 ? BY_64 : bytes == 128 ? BY_128 : NONE;
}

/* The driver numbers dimensions from the innermost one. */
kjit_status kj_cuda_encode_map(kjit_device *device, const kj_tensor_map *map,
                               const kj_map_array *array, kj_diagnostics *diagnostics,
                               void *encoded, const char **why)
{
  enum { UNIT = 16, PROMOTE_256 = 3 };
  uint64_t extents[KJ_MAP_RANK], strides[KJ_MAP_RANK];
  uint32_t box[KJ_MAP_RANK], steps[KJ_MAP_RANK], rank = array->rank;
  *why = NULL;
  if (!device->driver->cuTensorMapEncodeTiled)
    *why = "the driver does not support them; they need a driver of CUDA 12.0";
  else if (array->address % UNIT) *why = "its data does not start at a multiple of 16 bytes";
  for (uint32_t d = 0; d < rank && !*why; d++) {
    uint32_t own = rank - 1 - d;
    extents[d] = array->extents[own];
    box[d] = map->box[own];
    steps[d] = 1;
    if (d > 0) strides[d - 1] = array->stride_bytes[own];
    if (!extents[d]) *why = "it is empty";
    else if (extents[d] > KJ_MAP_MOST_EXTENT)
      *why = "a dimension has more than 2^31 - 256 elements, but coordinates of tensor copies have "
             "32 bits";
    else if (d > 0 && strides[d - 1] % UNIT)
      *why = "its rows do not start at multiples of 16 bytes";
  }
  if (*why) return KJIT_ERROR_LAUNCH;
  return KJ_DRIVER(device, diagnostics, cuTensorMapEncodeTiled, encoded,
                   data_type(array->element, array->element_bytes), rank,
                   (void *)(uintptr_t)array->address, extents, strides, box, steps, 0,
                   swizzle_of(map->swizzle_bytes), PROMOTE_256, 0);
}
