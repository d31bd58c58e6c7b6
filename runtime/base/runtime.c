/* The runtime object of a context: devices, the objects of the host, the end. */
#include "base/runtime.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cpu/run.h"
#include "code/background.h"
#include "code/blob.h"
#include "code/disk.h"
#include "stream/stream.h"

/* ---- errors ---- */

kjit_status kj_error(kj_diagnostics *diagnostics, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, status, format, list);
  va_end(list);
  return status;
}

kjit_status kj_error_at(kj_diagnostics *diagnostics, const kjit_module *module,
                        kj_location location, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_report_list(diagnostics, &module->sources, location, KJIT_SEVERITY_ERROR, status, format,
                 list);
  va_end(list);
  return status;
}

uint64_t kj_clock_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- scalar types ---- */

kjit_type kj_type_of_dlpack(uint8_t code, uint8_t bits)
{
  enum { CODES = 8, EIGHTS = 17 };
  static const uint8_t types[CODES][EIGHTS] = {
#define X(name, text, size, class_, code, bits) [code][bits / 8] = KJIT_##name,
#include <kjit/types.def>
#undef X
  };
  return code < CODES && bits % 8 == 0 && bits / 8 < EIGHTS ? types[code][bits / 8] : KJIT_ANY;
}

bool kj_locate_tensor(const kjit_tensor *tensor, kjit_device_kind *kind, int32_t *ordinal)
{
  enum { CUDA_HOST = 3, CUDA_MANAGED = 13 }; /* DLPack's numbers */
  bool is_host = tensor->device_type == KJIT_DEVICE_CPU || tensor->device_type == CUDA_HOST;
  *kind = is_host ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA;
  *ordinal = is_host ? 0 : tensor->device_id;
  return is_host || tensor->device_type == KJIT_DEVICE_CUDA || tensor->device_type == CUDA_MANAGED;
}

/* ---- creation and end ---- */

static void wait_runtime(void *data)
{
  kj_runtime *runtime = data;
  kj_stop_background(runtime);
  kj_abort_captures(runtime);
  for (uint32_t i = 0; i < runtime->cuda_count; i++) {
    kjit_device *device = atomic_load(&runtime->cuda[i]);
    kj_diagnostics ignored = { 0 };
    if (device) (void)kj_synchronize(device, true, NULL, &ignored);
    kj_free_diagnostics(&ignored);
  }
}

static void destroy_device(kjit_device *device)
{
  if (!device) return;
  if (kj_is_cuda(device)) kj_close_cuda_device(device);
  kj_free_scratch(device);
  pthread_mutex_destroy(&device->mutex);
  free(device);
}

static void destroy_runtime(void *data)
{
  kj_runtime *runtime = data;
  while (runtime->objects) {
    kj_object *object = runtime->objects;
    kj_remove_object(object);
    object->destroy(object);
  }
  if (runtime->compiler) runtime->interface->destroy(runtime->compiler);
  for (uint32_t i = 0; i < runtime->cuda_count; i++) destroy_device(atomic_load(&runtime->cuda[i]));
  destroy_device(runtime->cpu);
  free(runtime->cuda);
  kj_close_driver(runtime->driver);
  kj_free_imports(runtime);
  if (runtime->identities != runtime->disk) kj_close_disk(runtime->identities);
  kj_close_disk(runtime->disk);
  pthread_mutex_destroy(&runtime->objects_mutex);
  pthread_mutex_destroy(&runtime->loaded_mutex);
  pthread_mutex_destroy(&runtime->compiler_mutex);
  free(runtime);
}

static uint32_t count_workers(const kjit_context *context)
{
  const kjit_executor *executor = context->config.executor;
  /* In a child OpenMP would wait for threads that only its parent has. */
  int count = executor                 ? (int)executor->concurrency
              : atomic_load(&kj_forks) ? 1
                                       : omp_get_max_threads();
  return count > 0 ? (uint32_t)count : 1;
}

static kjit_device *make_device(kj_runtime *runtime, kjit_device_kind kind, int32_t ordinal)
{
  static _Atomic uint32_t last_number;
  kjit_device *device = aligned_alloc(_Alignof(kjit_device), sizeof *device);
  if (!device) return NULL;
  memset(device, 0, sizeof *device);
  device->number = atomic_fetch_add(&last_number, 1) + 1;
  device->context = runtime->context;
  device->runtime = runtime;
  device->info.kind = kind;
  device->info.ordinal = ordinal;
  device->info.name = device->name;
  device->info.target = device->target;
  pthread_mutex_init(&device->mutex, NULL);
  return device;
}

/* "model name" of /proc/cpuinfo; what it is called elsewhere is not worth knowing. */
static void read_processor_name(char *name, size_t size_bytes)
{
  char line[512];
  FILE *file = fopen("/proc/cpuinfo", "r");
  snprintf(name, size_bytes, "CPU");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, "model name", 10)) continue;
    const char *text = strchr(line, ':');
    if (text) snprintf(name, size_bytes, "%s", text + 1 + strspn(text + 1, " \t"));
    name[strcspn(name, "\n")] = 0;
    break;
  }
  if (file) fclose(file);
}

/* A CPU has no limits of its own here: it takes CUDA's, so that a kernel that runs on it runs on a
 * GPU. */
static kjit_device *make_cpu(kj_runtime *runtime)
{
  kjit_device *device = make_device(runtime, KJIT_DEVICE_CPU, 0);
  if (!device) return NULL;
  kjit_device_info *info = &device->info;
  device->workers = count_workers(runtime->context);
  long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES),
       page = sysconf(_SC_PAGESIZE);
  read_processor_name(device->name, sizeof device->name);
  snprintf(device->target, sizeof device->target, "cpu");
  snprintf(device->code_target, sizeof device->code_target, "cpu");
  info->multiprocessor_count = cores > 0 ? (uint32_t)cores : 1;
  info->max_threads_per_block = 1024;
  memcpy(info->max_block, (const uint32_t[3]){ 1024, 1024, 64 }, sizeof info->max_block);
  memcpy(info->max_grid, (const uint32_t[3]){ 0x7fffffff, 65535, 65535 }, sizeof info->max_grid);
  info->max_shared_bytes = 1 << 20;
  info->memory_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  return device;
}

static kj_runtime *make_runtime(kjit_context *context)
{
  kj_runtime *runtime = calloc(1, sizeof *runtime);
  if (!runtime) return NULL;
  runtime->context = context;
  pthread_mutex_init(&runtime->objects_mutex, NULL);
  pthread_mutex_init(&runtime->loaded_mutex, NULL);
  pthread_mutex_init(&runtime->compiler_mutex, NULL);
  runtime->disk = kj_open_disk(&context->config);
  runtime->identities = runtime->disk ? runtime->disk : kj_open_identities(&context->config);
  runtime->cpu = make_cpu(runtime);
  if (runtime->cpu && runtime->identities) return runtime;
  destroy_runtime(runtime);
  return NULL;
}

kj_runtime *kj_get_runtime(kjit_context *context)
{
  kj_runtime *runtime = __atomic_load_n(&context->runtime, __ATOMIC_ACQUIRE);
  if (runtime) return runtime;
  pthread_mutex_lock(&context->runtime_mutex);
  runtime = context->runtime;
  if (!runtime && (runtime = make_runtime(context))) {
    context->wait_runtime = wait_runtime;
    context->destroy_runtime = destroy_runtime;
    __atomic_store_n(&context->runtime, runtime, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&context->runtime_mutex);
  return runtime;
}

/* ---- objects ---- */

void kj_add_object(kjit_device *device, kj_object *object, void (*destroy)(kj_object *object))
{
  kj_runtime *runtime = device->runtime;
  object->device = device;
  object->generation = atomic_load(&device->generation);
  object->destroy = destroy;
  pthread_mutex_lock(&runtime->objects_mutex);
  object->previous = NULL;
  object->next = runtime->objects;
  if (object->next) object->next->previous = object;
  runtime->objects = object;
  pthread_mutex_unlock(&runtime->objects_mutex);
}

void kj_remove_object(kj_object *object)
{
  kj_runtime *runtime = object->device->runtime;
  pthread_mutex_lock(&runtime->objects_mutex);
  if (object->previous) object->previous->next = object->next;
  if (!object->previous) runtime->objects = object->next;
  if (object->next) object->next->previous = object->previous;
  pthread_mutex_unlock(&runtime->objects_mutex);
}

kjit_status kj_check_object(const kj_object *object, const char *what, kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_check_device(object->device, diagnostics));
  if (object->generation == atomic_load_explicit(&object->device->generation, memory_order_relaxed))
    return KJIT_OK;
  char place[24];
  return kj_error(diagnostics, KJIT_ERROR_DEVICE, "the %s was lost when %s was reset", what,
                  kj_device_text(object->device, place));
}

/* ---- devices ---- */

const char *kj_device_text(const kjit_device *device, char text[24])
{
  if (!kj_is_cuda(device)) return "cpu";
  snprintf(text, 24, "cuda:%d", device->info.ordinal);
  return text;
}

/* The rest happens under context->runtime_mutex. */

static kjit_status open_driver(kj_runtime *runtime, void *(*find)(void *user, const char *symbol),
                               void *user, kj_diagnostics *diagnostics)
{
  if (runtime->driver) return KJIT_OK;
  uint32_t count = 0;
  kj_driver *driver;
  KJ_TRY(kj_open_driver(find, user, diagnostics, &driver, &count));
  _Atomic(kjit_device *) *devices = calloc(count ? count : 1, sizeof *devices);
  if (!devices) {
    kj_close_driver(driver);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  runtime->cuda = devices;
  runtime->cuda_count = count;
  runtime->driver = driver;
  atomic_store_explicit(&runtime->has_driver, true, memory_order_release);
  return KJIT_OK;
}

static kjit_status make_cuda(kj_runtime *runtime, int32_t ordinal, kj_diagnostics *diagnostics,
                             kjit_device **device)
{
  kjit_device *made = make_device(runtime, KJIT_DEVICE_CUDA, ordinal);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->driver = runtime->driver;
  kjit_status status = kj_open_cuda_device(made, ordinal, diagnostics);
  if (status != KJIT_OK) {
    destroy_device(made);
    return status;
  }
  atomic_store_explicit(&runtime->cuda[ordinal], made, memory_order_release);
  *device = made;
  return KJIT_OK;
}

static kjit_status find_cuda(kj_runtime *runtime, int32_t ordinal, kj_diagnostics *diagnostics,
                             kjit_device **device)
{
  KJ_TRY(open_driver(runtime, NULL, NULL, diagnostics));
  if (ordinal < 0 || (uint32_t)ordinal >= runtime->cuda_count)
    return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                    "there is no device cuda:%d: the driver has %u", ordinal, runtime->cuda_count);
  *device = atomic_load_explicit(&runtime->cuda[ordinal], memory_order_acquire);
  return *device ? KJIT_OK : make_cuda(runtime, ordinal, diagnostics, device);
}

kjit_status kj_find_device(kj_runtime *runtime, kjit_device_kind kind, int32_t ordinal,
                           kj_diagnostics *diagnostics, kjit_device **device)
{
  if (kind == KJIT_DEVICE_CPU && ordinal == 0) {
    *device = runtime->cpu;
    return KJIT_OK;
  }
  if (kind == KJIT_DEVICE_CPU)
    return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                    "there is no device cpu:%d: the CPU is one device, 0", ordinal);
  bool is_known = kind == KJIT_DEVICE_CUDA &&
                  atomic_load_explicit(&runtime->has_driver, memory_order_acquire) &&
                  ordinal >= 0 && (uint32_t)ordinal < runtime->cuda_count;
  if (is_known && (*device = atomic_load_explicit(&runtime->cuda[ordinal], memory_order_acquire)))
    return KJIT_OK;
  if (kind != KJIT_DEVICE_CUDA)
    return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                    "there is no kind of device %d: 1 is the CPU, 2 is CUDA", (int)kind);
  pthread_mutex_lock(&runtime->context->runtime_mutex);
  kjit_status status = find_cuda(runtime, ordinal, diagnostics, device);
  pthread_mutex_unlock(&runtime->context->runtime_mutex);
  return status;
}

static uint32_t count_cuda(kj_runtime *runtime)
{
  kj_diagnostics ignored = { 0 };
  if (atomic_load_explicit(&runtime->has_driver, memory_order_acquire)) return runtime->cuda_count;
  if (atomic_load_explicit(&runtime->lacks_driver, memory_order_relaxed)) return 0;
  pthread_mutex_lock(&runtime->context->runtime_mutex);
  uint32_t count = open_driver(runtime, NULL, NULL, &ignored) == KJIT_OK ? runtime->cuda_count : 0;
  if (!runtime->driver) atomic_store(&runtime->lacks_driver, true);
  pthread_mutex_unlock(&runtime->context->runtime_mutex);
  kj_free_diagnostics(&ignored);
  return count;
}

kjit_status kj_default_device(kj_runtime *runtime, kj_diagnostics *diagnostics,
                              kjit_device **device)
{
  return count_cuda(runtime) ? kj_find_device(runtime, KJIT_DEVICE_CUDA, 0, diagnostics, device)
                             : kj_find_device(runtime, KJIT_DEVICE_CPU, 0, diagnostics, device);
}

kjit_status kj_use_driver(kjit_context *context, void *(*find)(void *user, const char *symbol),
                          void *user, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  pthread_mutex_lock(&context->runtime_mutex);
  kjit_status status = open_driver(runtime, find, user, diagnostics);
  atomic_store(&runtime->lacks_driver, false);
  pthread_mutex_unlock(&context->runtime_mutex);
  return status;
}

/* ---- the public functions ---- */

kjit_status kjit_get_device(kjit_context *context, kjit_device_kind kind, int32_t ordinal,
                            kjit_device **device)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!device) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_get_device: device is NULL");
  kj_diagnostics diagnostics = { 0 };
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  (void)kj_find_device(runtime, kind, ordinal, &diagnostics, device);
  return ki_finish_call(context, &diagnostics);
}

uint32_t kjit_get_device_count(kjit_context *context, kjit_device_kind kind)
{
  kj_runtime *runtime = context && !ki_is_forked(context) ? kj_get_runtime(context) : NULL;
  if (!runtime) return 0;
  if (kind == KJIT_DEVICE_CPU) return 1;
  return kind == KJIT_DEVICE_CUDA ? count_cuda(runtime) : 0;
}

void kjit_get_device_info(const kjit_device *device, kjit_device_info *info)
{
  if (!info) return;
  *info = device ? device->info : (kjit_device_info){ 0 };
}

kjit_status kjit_synchronize_device(kjit_device *device)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!kj_is_cuda(device)) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  if (kj_check_captures(device, &diagnostics) == KJIT_OK &&
      kj_synchronize(device, true, NULL, &diagnostics) == KJIT_OK)
    (void)kj_take_failures(device, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_reset_device(kjit_device *device)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!kj_is_cuda(device)) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  (void)kj_reset_cuda_device(device, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}
