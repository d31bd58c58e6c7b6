/* Implements the device of a context with kjit_config.target. A launch on this device compiles the
 * kernel for another machine and does not run it. Arrays on the device have addresses but no
 * memory, so an algorithm can be called for arrays of any size, to compile the kernels that it
 * would run on that machine. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/cpu.h"
#include "native/architecture.h"

/* Properties of GPUs that kjit and its algorithms use, by compute capability: values of the CUDA
 * programming guide, and the number of multiprocessors of a typical model. An architecture that is
 * not in the table uses the last row of an older architecture. */
static const struct {
  uint32_t arch, shared_bytes, threads, multiprocessors;
} gpus[] = {
  { 75, 65536, 1024, 40 },    { 80, 166912, 2048, 108 }, { 86, 101376, 1536, 84 },
  { 87, 166912, 1536, 16 },   { 89, 101376, 1536, 128 }, { 90, 232448, 2048, 132 },
  { 100, 232448, 2048, 148 }, { 110, 232448, 1536, 20 }, { 120, 101376, 1536, 170 },
};

/* Returns whether the text names a target device. Returns false for "cpu", which other functions
 * accept as a target: kjit_config.target "cpu" means this machine. */
static bool is_target(const char *text, kj_target *target)
{
  return kj_read_target(text, target) && (target->kind != KJ_TARGET_CPU || target->level);
}

static kjit_status read_own_target(const kjit_context *context, kj_diagnostics *diagnostics,
                                   kj_target *target)
{
  const char *text = context->config.target;
  if (is_target(text, target)) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                  "kjit_config.target: expected sm_75 and up, " KJ_LEVEL_NAMES ", got `%s`", text);
}

static kjit_status count_devices(const kjit_context *context, const kj_driver_source *source,
                                 kj_diagnostics *diagnostics, void **shared, uint32_t *count)
{
  kj_target target;
  (void)source;
  *shared = NULL;
  *count = 1;
  return read_own_target(context, diagnostics, &target);
}

static void fill_gpu(kjit_device *device, const kj_target *target)
{
  enum { FIRST_WITH_CLUSTERS = 90 };
  size_t row = 0;
  while (row + 1 < sizeof gpus / sizeof *gpus && gpus[row + 1].arch <= target->arch) row++;
  kjit_device_info *info = &device->info;
  info->compute_capability = target->arch;
  info->multiprocessor_count = gpus[row].multiprocessors;
  info->max_shared_bytes = gpus[row].shared_bytes;
  info->max_threads_per_block = 1024;
  memcpy(info->max_block, (const uint32_t[3]){ 1024, 1024, 64 }, sizeof info->max_block);
  memcpy(info->max_grid, (const uint32_t[3]){ 0x7fffffff, 65535, 65535 }, sizeof info->max_grid);
  info->memory_bytes = (uint64_t)1 << 36;
  device->suffix = target->suffix;
  device->multiprocessor_threads = gpus[row].threads;
  device->has_launch_attributes = device->has_cooperative_launch = true;
  device->has_clusters = target->arch >= FIRST_WITH_CLUSTERS;
  snprintf(device->target, sizeof device->target, "sm_%u", target->arch);
}

static kjit_status open_device(kjit_device *device, kj_diagnostics *diagnostics)
{
  kj_target target;
  const char *text = device->context->config.target;
  KJ_TRY(read_own_target(device->context, diagnostics, &target));
  if (target.kind == KJ_TARGET_CPU) KJ_TRY(kj_cpu_operations.open(device, diagnostics));
  else fill_gpu(device, &target);
  device->is_target = true;
  device->level = target.level;
  snprintf(device->name, sizeof device->name, "%s, compiled for only", text);
  snprintf(device->code_target, sizeof device->code_target, "%s", text);
  return KJIT_OK;
}

static void close_gpu(kjit_device *device) { kj_free_scratch(device); }

/* ---- memory: addresses without values ---- */

static kjit_status allocate(kjit_device *device, kj_allocation *allocation,
                            kj_diagnostics *diagnostics)
{
  (void)device, (void)diagnostics;
  size_t bytes = allocation->size_bytes ? allocation->size_bytes : 1;
  void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  allocation->call = "mmap";
  allocation->file = -1;
  allocation->size_bytes = bytes;
  allocation->address = memory == MAP_FAILED ? 0 : (uint64_t)(uintptr_t)memory;
  return memory == MAP_FAILED ? KJIT_ERROR_MEMORY : KJIT_OK;
}

static bool release(kjit_device *device, const kj_allocation *allocation)
{
  (void)device;
  /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
  munmap((void *)(uintptr_t)allocation->address, allocation->size_bytes);
  return true;
}

static kjit_status copy(kjit_device *device, const kj_transfer *transfer, void *stream,
                        kj_diagnostics *diagnostics)
{
  (void)stream;
  if (!transfer->to_host) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                  "the context only compiles for %s (kjit_config.target): it launches nothing, and "
                  "its arrays have no values",
                  device->code_target);
}

static kjit_status set(kjit_device *device, uint64_t address, uint32_t bits, uint32_t word_bytes,
                       size_t count, void *stream, kj_diagnostics *diagnostics)
{
  (void)device, (void)address, (void)bits, (void)word_bytes, (void)count, (void)stream;
  (void)diagnostics;
  return KJIT_OK;
}

/* ---- code ---- */

static kjit_status load_nothing(kjit_device *device, const kj_code *code, const char *name,
                                const kj_outside *outside, kj_diagnostics *diagnostics,
                                kj_device_code *loaded)
{
  static char nothing;
  (void)code, (void)name, (void)outside, (void)diagnostics;
  *loaded = (kj_device_code){ .module = &nothing,
                              .function = &nothing,
                              .max_threads = device->info.max_threads_per_block,
                              .max_dynamic_shared_bytes = (uint32_t)device->info.max_shared_bytes };
  return KJIT_OK;
}

static void unload_nothing(kjit_device *device, void *module) { (void)device, (void)module; }

static kjit_status launch(kjit_device *device, const kj_device_code *loaded, const kj_code *code,
                          const kj_device_launch *launch, kj_diagnostics *diagnostics)
{
  (void)device, (void)loaded, (void)code, (void)launch, (void)diagnostics;
  return KJIT_OK;
}

/* ---- the tables ---- */

static kj_device_operations cpu_operations, gpu_operations;

/* Fills in the tables. An operation that this function does not set is the CPU's operation. */
static void fill_tables(void)
{
  cpu_operations = kj_cpu_operations;
  cpu_operations.count = count_devices;
  cpu_operations.open = open_device;
  cpu_operations.launch = launch;
  gpu_operations = cpu_operations;
  gpu_operations.kind = KJIT_DEVICE_CUDA;
  gpu_operations.name = "cuda";
  gpu_operations.target = KJ_TARGET_NVPTX;
  gpu_operations.has_memory = true;
  gpu_operations.knows_block = false;
  gpu_operations.close = close_gpu;
  gpu_operations.allocate = allocate;
  gpu_operations.release = gpu_operations.close_memory = release;
  gpu_operations.copy = copy;
  gpu_operations.set = set;
  gpu_operations.load = load_nothing;
  gpu_operations.unload = unload_nothing;
}

const kj_device_operations *kj_target_operations(const kj_device_operations *kind,
                                                 const char *target)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!target) return kind;
  kj_target read;
  bool is_read = is_target(target, &read);
  pthread_once(&once, fill_tables);
  /* with an invalid name, both kinds of device get the new operations, which report the error when
   * a device is used */
  if (is_read && kind->target != read.kind) return kind;
  return kind->target == KJ_TARGET_CPU ? &cpu_operations : &gpu_operations;
}
