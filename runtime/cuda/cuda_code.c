/* Handles code on a GPU: lets the driver translate PTX to machine code and load it, and computes
 * occupancy. */
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

static kjit_status load_module(kjit_device *device, const kj_code *code, const char *kernel_name,
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
  kj_jit_options options = kj_make_jit_options(device, code->is_plain, log);
  int result;
  KJ_ASK_TWICE(result, device,
               cuModuleLoadDataEx(module, code->data, options.count, options.names,
                                  options.values));
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

/* Allows a kernel to use all dynamic shared memory of the device. Called when the code is loaded,
 * so that launches need no driver call for this. */
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

static kjit_status load_function(kjit_device *device, const kj_code *code, const char *kernel_name,
                                 kj_diagnostics *diagnostics, kj_device_code *function)
{
  KJ_ASSERT(!function->module && !function->function);
  function->mark = kj_get_mark(device, kernel_name);
  if (!function->mark) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(load_module(device, code, kernel_name, diagnostics, &function->module));
  kjit_status status = ASK_OF_KERNEL(device, function, diagnostics, cuModuleGetFunction,
                                     &function->function, function->module, code->entry);
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
  kjit_status status = load_function(device, code, name, diagnostics, loaded);
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

/* Tries the block sizes in `sizes`, and of those with the highest occupancy chooses the first.
 * Large blocks are late in the list, because they leave multiprocessors half empty at the end of a
 * launch. Small blocks are late as well, because starting many blocks takes more time. */
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
