/* Code for a GPU: translates PTX to machine code, loads it, computes occupancy and launches
 * kernels. */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "support/assert.h"

/* ---- loading ---- */

static kjit_status report_log(char *log, const char *kernel_name, int result,
                              const kjit_device *device, kj_diagnostics *diagnostics)
{
  size_t length = kj_trim_log(log);
  const char *name = NULL;
  device->driver->cuGetErrorName(result, &name);
  return kj_error(
    diagnostics, KJIT_ERROR_COMPILE,
    "the driver cannot load the code of kernel `%s` for %s: cuModuleLoadDataEx returns %s (%d)%s%s",
    kernel_name, device->target, name ? name : "an unknown error", result,
    length ? ":\n" : "; it left no log", log);
}

static kjit_status load_module(kjit_device *device, const void *image, const char *kernel_name,
                               kj_diagnostics *diagnostics, void **module)
{
  enum {
    INVALID_IMAGE = 200,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    JIT_COMPILER_NOT_FOUND = 221
  };
  char *log = calloc(1, KJ_LOG_BYTES);
  if (!log) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kj_jit_options options = kj_make_jit_options(device, log);
  int result;
  KJ_ASK_TWICE(result, device,
               cuModuleLoadDataEx(module, image, options.count, options.names, options.values));
  bool is_refused = result == INVALID_IMAGE || result == NO_BINARY_FOR_GPU ||
                    result == INVALID_PTX || result == UNSUPPORTED_PTX_VERSION ||
                    result == JIT_COMPILER_NOT_FOUND;
  kjit_status status = is_refused ? report_log(log, kernel_name, result, device, diagnostics)
                                  : kj_check_kernel_call(device, kernel_name, result,
                                                         "cuModuleLoadDataEx", diagnostics);
  free(log);
  return status;
}

#define ASK_OF_KERNEL(device, asked, diagnostics, symbol, ...) \
  kj_check_kernel_call(device, (asked)->mark->name, (device)->driver->symbol(__VA_ARGS__), \
                       #symbol, diagnostics)

static kjit_status read_attributes(kjit_device *device, kj_device_code *function,
                                   kj_diagnostics *diagnostics)
{
  const struct {
    int attribute;
    uint32_t *value;
  } wanted[] = {
    { KJ_CU_FUNCTION_REGISTERS, &function->registers },
    { KJ_CU_FUNCTION_SHARED, &function->shared_bytes },
    { KJ_CU_FUNCTION_LOCAL, &function->local_bytes },
    { KJ_CU_FUNCTION_CONST, &function->constant_bytes },
    { KJ_CU_FUNCTION_MAX_THREADS, &function->max_threads },
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    int value = 0;
    KJ_TRY(ASK_OF_KERNEL(device, function, diagnostics, cuFuncGetAttribute, &value,
                         wanted[i].attribute, function->function));
    *wanted[i].value = (uint32_t)value;
  }
  return KJIT_OK;
}

/* Allows a kernel to use all dynamic shared memory of the device. Done when the code is loaded, so
 * that launches need no driver call for it. */
static kjit_status allow_dynamic_shared(kjit_device *device, kj_device_code *function,
                                        kj_diagnostics *diagnostics)
{
  uint64_t most = device->info.max_shared_bytes;
  function->max_dynamic_shared_bytes =
    most > function->shared_bytes ? (uint32_t)(most - function->shared_bytes) : 0;
  return ASK_OF_KERNEL(device, function, diagnostics, cuFuncSetAttribute, function->function,
                       KJ_CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)function->max_dynamic_shared_bytes);
}

/* Allows clusters of more than 8 blocks if the device supports them. */
static kjit_status allow_clusters(kjit_device *device, kj_device_code *function,
                                  kj_diagnostics *diagnostics)
{
  if (!device->has_clusters) return KJIT_OK;
  return ASK_OF_KERNEL(device, function, diagnostics, cuFuncSetAttribute, function->function,
                       KJ_CU_FUNCTION_ANY_CLUSTER, 1);
}

static kjit_status load_function(kjit_device *device, const void *image, const char *entry,
                                 const char *kernel_name, kj_diagnostics *diagnostics,
                                 kj_device_code *function)
{
  KJ_ASSERT(!function->module && !function->function);
  function->mark = kj_get_mark(device, kernel_name);
  if (!function->mark) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(load_module(device, image, kernel_name, diagnostics, &function->module));
  kjit_status status = ASK_OF_KERNEL(device, function, diagnostics, cuModuleGetFunction,
                                     &function->function, function->module, entry);
  if (status == KJIT_OK) status = read_attributes(device, function, diagnostics);
  if (status == KJIT_OK) status = allow_dynamic_shared(device, function, diagnostics);
  if (status == KJIT_OK) status = allow_clusters(device, function, diagnostics);
  KJ_ASSERT(status != KJIT_OK || (function->module && function->function));
  if (status == KJIT_OK) return KJIT_OK;
  device->driver->cuModuleUnload(function->module);
  *function = (kj_device_code){ 0 };
  return status;
}

kjit_status kj_cuda_load(kjit_device *device, const kj_code *code, const char *name,
                         const kj_outside *outside, kj_diagnostics *diagnostics,
                         kj_device_code *loaded)
{
  void *previous;
  (void)outside;
  *loaded = (kj_device_code){ 0 };
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = load_function(device, code->data, code->entry, name, diagnostics, loaded);
  kj_leave_device(device, previous);
  return status;
}

kjit_status kj_cuda_find_variable(kjit_device *device, const kj_device_code *loaded,
                                  const char *name, kj_diagnostics *diagnostics, uint64_t *address,
                                  size_t *size_bytes)
{
  kjit_status status;
  KJ_CALL_IN(status, device, diagnostics, cuModuleGetGlobal, address, size_bytes, loaded->module,
             name);
  return status;
}

/* ---- resident blocks, by the driver's occupancy calculator ---- */

static kjit_status count_resident(kjit_device *device, const kj_device_code *function,
                                  uint32_t threads, uint64_t dynamic_shared_bytes,
                                  kj_diagnostics *diagnostics, uint32_t *blocks)
{
  int count = 0;
  int result =
    device->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, function->function,
                                                                (int)threads,
                                                                (size_t)dynamic_shared_bytes);
  KJ_TRY(kj_check_kernel_call(device, function->mark->name, result,
                              "cuOccupancyMaxActiveBlocksPerMultiprocessor", diagnostics));
  *blocks = count > 0 ? (uint32_t)count : 0;
  return KJIT_OK;
}

kjit_status kj_cuda_count_resident(kjit_device *device, const kj_device_code *function,
                                   uint32_t threads, uint64_t dynamic_shared_bytes,
                                   kj_diagnostics *diagnostics, uint32_t *blocks)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status =
    count_resident(device, function, threads, dynamic_shared_bytes, diagnostics, blocks);
  kj_leave_device(device, previous);
  return status;
}

/* Block sizes in order of preference, for equal occupancy. Large blocks leave a multiprocessor half
 * empty while the last of them finish, and small blocks cost more to start. */
kjit_status kj_cuda_choose_threads(kjit_device *device, const kj_device_code *function,
                                   uint64_t dynamic_shared_bytes, uint32_t most,
                                   kj_diagnostics *diagnostics, uint32_t *threads)
{
  static const uint32_t sizes[] = { 256, 192, 128, 384, 512, 320, 96, 64, 640, 768, 1024, 32 };
  uint32_t best = 0;
  void *previous;
  *threads = 0;
  KJ_ASSERT(function->function && function->mark);
  if (function->max_threads && function->max_threads < most) most = function->max_threads;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && status == KJIT_OK; i++) {
    uint32_t blocks = 0;
    if (sizes[i] > most) continue;
    status = count_resident(device, function, sizes[i], dynamic_shared_bytes, diagnostics, &blocks);
    if (status != KJIT_OK || blocks * sizes[i] <= best) continue;
    best = blocks * sizes[i];
    *threads = sizes[i];
  }
  kj_leave_device(device, previous);
  return status;
}

/* ---- unloading ---- */

void kj_cuda_unload(kjit_device *device, void *module)
{
  kj_diagnostics ignored = { 0 };
  kjit_status status;
  KJ_ASSERT(module);
  KJ_CALL_IN(status, device, &ignored, cuModuleUnload, module);
  (void)status;
  kj_free_diagnostics(&ignored);
}

/* ---- launching ---- */

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
  enum { BUFFER_POINTER = 1, BUFFER_SIZE = 2 };
  size_t parameter_bytes = launch->parameter_bytes;
  void *block_and_size[] = { (void *)(uintptr_t)BUFFER_POINTER, launch->parameters,
                             (void *)(uintptr_t)BUFFER_SIZE, &parameter_bytes, NULL };
  void **extra = parameter_bytes && !launch->pointers ? block_and_size : NULL;
  KJ_ASSERT(!parameter_bytes || launch->parameters);
  KJ_ASSERT(!launch->has_attributes || launch->cluster);
  const uint32_t *grid = launch->grid, *block = launch->block;
  if (launch->has_attributes) return launch_extended(device, function, launch, extra);
  return device->driver->cuLaunchKernel(function->function, grid[0], grid[1], grid[2], block[0],
                                        block[1], block[2], launch->dynamic_shared_bytes,
                                        launch->stream, launch->pointers, extra);
}

/* Returns whether a launch failed because a thread needs too much local memory. A GPU has 512 KiB
 * for each thread. Driver 580 reserves about 1 KiB of it, loads code that needs more, and reports
 * the launch's values as invalid, which is misleading. */
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

/* Tests with driver 580: a function never runs in a context other than its own, and a stream of its
 * context is enough to select it. The error may also come from the context that was current. */
kjit_status kj_retry_launch(kjit_device *device, const kj_device_code *function,
                            const kj_device_launch *launch, int result, kj_diagnostics *diagnostics)
{
  void *previous;
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  if (previous != device->primary || result == KJ_CU_INVALID_CONTEXT)
    result = launch_once(device, function, launch);
  /* at the first launch of a kernel the driver allocates local memory for its threads */
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
  int result = kj_is_elsewhere(device, launch->stream) ? KJ_CU_INVALID_CONTEXT
                                                       : launch_once(device, function, launch);
  return result ? kj_retry_launch(device, function, launch, result, diagnostics) : KJIT_OK;
}
