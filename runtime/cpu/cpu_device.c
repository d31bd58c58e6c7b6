/* Implements the CPU as a device. Every operation is complete when its call returns, all memory is
 * host memory, and an event is a reading of the clock. */
#include "cpu/cpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/aligned.h"
#include "support/host_process.h"
#include "support/lock.h"

/* ---- opening ---- */

static uint32_t count_workers(const kjit_config *config)
{
  uint32_t count = config->executor ? config->executor->concurrency : kj_count_cores();
  if (config->cpu_threads && (config->cpu_threads < count || !config->executor))
    count = config->cpu_threads;
  return !count ? 1 : count < KJ_MOST_WORKERS ? count : KJ_MOST_WORKERS;
}

/* Reads "model name" of /proc/cpuinfo. This line has another name on other architectures; the
 * result is then "CPU". */
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

static kjit_status count_devices(const kjit_context *context, const kj_driver_source *source,
                                 kj_diagnostics *diagnostics, void **shared, uint32_t *count)
{
  enum { MOST_DEVICES = 64 };
  uint32_t given = context->config.cpu_devices;
  (void)source;
  *shared = NULL;
  *count = given ? given : 1;
  if (given > MOST_DEVICES)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "kjit_config.cpu_devices: expected at most %d devices, got %u", MOST_DEVICES,
                    given);
  return KJIT_OK;
}

static void forget(void *shared) { (void)shared; }

/* The limits of a launch are those of CUDA, so that a kernel that runs on the CPU also runs on a
 * GPU. */
static kjit_status open_device(kjit_device *device, kj_diagnostics *diagnostics)
{
  (void)diagnostics;
  kjit_device_info *info = &device->info;
  device->workers = count_workers(&device->context->config);
  if (!device->context->config.executor) kj_open_workers(device->workers);
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
  return KJIT_OK;
}

static void close_device(kjit_device *device)
{
  if (!device->context->config.executor) kj_close_workers();
  kj_free_scratch(device);
}

static kjit_status synchronize(kjit_device *device, bool whole, void *stream,
                               kj_diagnostics *diagnostics)
{
  (void)device, (void)whole, (void)stream, (void)diagnostics;
  return KJIT_OK;
}

/* ---- properties ---- */

static kjit_status read_attribute(kjit_device *device, kjit_device_attribute attribute,
                                  kj_diagnostics *diagnostics, int64_t *value)
{
  (void)diagnostics;
#define KJ_CPU_CORES device->info.multiprocessor_count
  const int64_t values[] = {
#define KJIT_ROW(name, number, cpu, text) cpu,
#include <kjit/device.def>
#undef KJIT_ROW
  };
#undef KJ_CPU_CORES
  KJ_ASSERT((size_t)attribute < sizeof values / sizeof *values);
  *value = values[attribute];
  return KJIT_OK;
}

static kjit_status read_uuid(kjit_device *device, kj_diagnostics *diagnostics,
                             unsigned char uuid[16])
{
  (void)diagnostics;
  memset(uuid, 0, 16);
  uuid[15] = (unsigned char)device->info.ordinal;
  return KJIT_OK;
}

static kjit_status read_memory(kjit_device *device, kj_diagnostics *diagnostics,
                               uint64_t *free_bytes, uint64_t *total_bytes)
{
  (void)diagnostics;
  long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  *free_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
  *total_bytes = device->info.memory_bytes;
  return KJIT_OK;
}

/* ---- peer access: CPU devices can always access each other's memory ---- */

static kjit_status can_access_peer(kjit_device *device, kjit_device *peer,
                                   kj_diagnostics *diagnostics, bool *can)
{
  (void)device, (void)peer, (void)diagnostics;
  *can = true;
  return KJIT_OK;
}

static kjit_status change_peer_access(kjit_device *device, kjit_device *peer, bool is_on,
                                      kj_diagnostics *diagnostics)
{
  (void)device, (void)peer, (void)is_on, (void)diagnostics;
  return KJIT_OK;
}

/* ---- memory ---- */

static void *pointer_of(uint64_t address)
{
  return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

static kjit_status allocate_mapping(kj_allocation *allocation)
{
  size_t size_bytes = allocation->size_bytes ? allocation->size_bytes : 1;
  int file = memfd_create("kjit array", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void *memory = MAP_FAILED;
  /* Other processes open the file for writing. The seals prevent them from changing its size,
   * because accesses to the array in this process would fault if the file became shorter. */
  if (file >= 0 && !ftruncate(file, (off_t)size_bytes) &&
      !fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  allocation->call = "mmap";
  if (memory == MAP_FAILED) {
    if (file >= 0) close(file);
    return KJIT_ERROR_MEMORY;
  }
  KJ_ASSERT(file >= 0);
  allocation->size_bytes = size_bytes;
  allocation->address = (uint64_t)(uintptr_t)memory;
  allocation->file = file;
  return KJIT_OK;
}

/* Requests huge pages for large memory. Otherwise a kjit kernel that fills a new array would spend
 * as much time on page faults, one for each 4 KiB, as on its computation. Errors of madvise are
 * ignored, because huge pages only save time. */
static void advise_huge_pages(void *memory, size_t size_bytes)
{
  enum { LEAST_BYTES = 4 << 20, PAGE = 4096 };
  uintptr_t start = ((uintptr_t)memory + PAGE - 1) / PAGE * PAGE;
  uintptr_t end = ((uintptr_t)memory + size_bytes) / PAGE * PAGE;
  if (!memory || size_bytes < LEAST_BYTES) return;
  KJ_ASSERT(start < end && start % PAGE == 0 && end % PAGE == 0);
  (void)madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/* Memory up to this size is part of a malloc block of kj_allocate_aligned. */
enum { MOST_PADDED_BYTES = 64 << 10 };

static void *allocate_plain(size_t size_bytes)
{
  if (size_bytes <= MOST_PADDED_BYTES) return kj_allocate_aligned(size_bytes);
  size_t rounded = (size_bytes + KJ_ALIGNMENT - 1) / KJ_ALIGNMENT * KJ_ALIGNMENT;
  void *memory = rounded < size_bytes ? NULL : aligned_alloc(KJ_ALIGNMENT, rounded);
  advise_huge_pages(memory, rounded);
  return memory;
}

static kjit_status allocate(kjit_device *device, kj_allocation *allocation,
                            kj_diagnostics *diagnostics)
{
  (void)device, (void)diagnostics;
  if (allocation->memory == KJIT_MEMORY_SHARED) return allocate_mapping(allocation);
  allocation->call = allocation->size_bytes <= MOST_PADDED_BYTES ? "malloc" : "aligned_alloc";
  allocation->file = -1;
  void *memory = allocate_plain(allocation->size_bytes);
  allocation->address = (uint64_t)(uintptr_t)memory;
  return memory ? KJIT_OK : KJIT_ERROR_MEMORY;
}

static bool release(kjit_device *device, const kj_allocation *allocation)
{
  (void)device;
  if (allocation->file < 0) {
    void *memory = pointer_of(allocation->address);
    free(allocation->size_bytes <= MOST_PADDED_BYTES ? kj_block_of_aligned(memory) : memory);
    return true;
  }
  munmap(pointer_of(allocation->address), allocation->size_bytes);
  close(allocation->file);
  return true;
}

static kjit_status copy(kjit_device *device, const kj_transfer *transfer, void *stream,
                        kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  char *to = pointer_of(transfer->to);
  const char *from = pointer_of(transfer->from);
  for (size_t i = 0; i < transfer->rows; i++)
    memmove(to + i * transfer->to_pitch_bytes, from + i * transfer->from_pitch_bytes,
            transfer->width_bytes);
  return KJIT_OK;
}

static kjit_status set(kjit_device *device, uint64_t address, uint32_t bits, uint32_t word_bytes,
                       size_t count, void *stream, kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  char *to = pointer_of(address);
  for (size_t i = 0; i < count; i++) memcpy(to + i * word_bytes, &bits, word_bytes);
  return KJIT_OK;
}

static kjit_status prefetch(kjit_device *device, uint64_t address, size_t size_bytes,
                            kjit_device *to, void *stream, kj_diagnostics *diagnostics)
{
  (void)device, (void)address, (void)size_bytes, (void)to, (void)stream, (void)diagnostics;
  return KJIT_OK;
}

static kjit_status pin(kjit_device *device, void *memory, size_t size_bytes,
                       kj_diagnostics *diagnostics)
{
  (void)device, (void)memory, (void)size_bytes, (void)diagnostics;
  return KJIT_OK;
}

static kjit_status unpin(kjit_device *device, void *memory, kj_diagnostics *diagnostics)
{
  (void)device, (void)memory, (void)diagnostics;
  return KJIT_OK;
}

static kjit_status map(kjit_device *device, size_t size_bytes, kj_diagnostics *diagnostics,
                       void **memory, uint64_t *address)
{
  (void)device;
  *memory = calloc(1, size_bytes);
  *address = (uint64_t)(uintptr_t)*memory;
  return *memory ? KJIT_OK : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

static void release_mapped(kjit_device *device, void *memory)
{
  (void)device;
  free(memory);
}

static kjit_status name_memory(kjit_device *device, uint64_t address,
                               const kj_allocation *allocation, kj_diagnostics *diagnostics,
                               kj_memory_name *name)
{
  (void)device;
  struct stat status;
  if (allocation->file < 0 || fstat(allocation->file, &status))
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "on the CPU only arrays in KJIT_MEMORY_SHARED can be exported, because another "
                    "process cannot access other memory");
  KJ_ASSERT(address >= allocation->address &&
            address - allocation->address <= allocation->size_bytes);
  *name = (kj_memory_name){ .process = (uint64_t)getpid(),
                            .offset_bytes = address - allocation->address,
                            .size_bytes = allocation->size_bytes,
                            .file = (uint64_t)allocation->file,
                            .file_number = status.st_ino,
                            .file_device = status.st_dev };
  return KJIT_OK;
}

/* Checks that the file is the exported file and that its size is sealed. Otherwise another process
 * could shrink it, and access to the array would fault. Seals cannot be removed. */
static kjit_status check_file(int file, const kj_memory_name *name, kj_diagnostics *diagnostics)
{
  struct stat status;
  unsigned long long process = name->process;
  if (file < 0 || fstat(file, &status) || status.st_ino != name->file_number ||
      status.st_dev != name->file_device)
    return kj_error(
      diagnostics, KJIT_ERROR_IO,
      "cannot map the memory of process %llu: the process has ended, or belongs to another user",
      process);
  int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the memory of process %llu is not sealed; it could shrink during use",
                    process);
  if (fstat(file, &status) || status.st_size < 0 || (uint64_t)status.st_size < name->size_bytes)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "the handle is damaged: its memory is smaller than %llu bytes",
                    (unsigned long long)name->size_bytes);
  return KJIT_OK;
}

/* Opens the file through the exporting process's descriptor in /proc. */
static kjit_status open_memory(kjit_device *device, const kj_memory_name *name,
                               kj_diagnostics *diagnostics, kj_allocation *allocation)
{
  (void)device;
  char path[64];
  snprintf(path, sizeof path, "/proc/%llu/fd/%llu", (unsigned long long)name->process,
           (unsigned long long)name->file);
  int file = open(path, O_RDWR | O_CLOEXEC);
  kjit_status status = check_file(file, name, diagnostics);
  void *memory = MAP_FAILED;
  if (status == KJIT_OK)
    memory = mmap(NULL, name->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (status == KJIT_OK && memory == MAP_FAILED)
    status = kj_error(diagnostics, KJIT_ERROR_IO, "cannot map the memory of process %llu",
                      (unsigned long long)name->process);
  if (status != KJIT_OK && file >= 0) close(file);
  *allocation = (kj_allocation){ .memory = KJIT_MEMORY_SHARED,
                                 .size_bytes = name->size_bytes,
                                 .address = (uint64_t)(uintptr_t)memory,
                                 .file = file };
  return status;
}

/* ---- streams and events ---- */

static kjit_status read_priorities(kjit_device *device, kj_diagnostics *diagnostics, int32_t *least,
                                   int32_t *greatest)
{
  (void)device, (void)diagnostics;
  *least = *greatest = 0;
  return KJIT_OK;
}

static kjit_status create_stream(kjit_device *device, int32_t priority, uint32_t flags,
                                 kj_diagnostics *diagnostics, void **stream)
{
  (void)device, (void)priority, (void)flags, (void)diagnostics;
  *stream = NULL;
  return KJIT_OK;
}

static void destroy_stream(kjit_device *device, void *stream) { (void)device, (void)stream; }

static kjit_status query_stream(kjit_device *device, void *stream, kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  return KJIT_OK;
}

static kjit_status call_host(kjit_device *device, void *stream, void (*function)(void *user),
                             void *user, kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  ki_host_code code;
  ki_enter_host(&code, device->context);
  function(user);
  ki_leave_host(&code);
  return KJIT_OK;
}

/* Creates an event, which stores the host's clock when it is recorded. */
static kjit_status create_event(kjit_device *device, bool has_time, kj_diagnostics *diagnostics,
                                void **event)
{
  (void)device, (void)has_time;
  *event = calloc(1, sizeof(uint64_t));
  return *event ? KJIT_OK : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

static void destroy_event(kjit_device *device, void *event)
{
  (void)device;
  free(event);
}

static kjit_status record_event(kjit_device *device, void *event, void *stream,
                                kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)diagnostics;
  *(uint64_t *)event = kj_clock_ns();
  return KJIT_OK;
}

/* Does not wait, because a recorded event has already occurred. */
static kjit_status wait_event(kjit_device *device, void *stream, void *event,
                              kj_diagnostics *diagnostics)
{
  (void)device, (void)stream, (void)event, (void)diagnostics;
  return KJIT_OK;
}

static kjit_status ask_event(kjit_device *device, void *event, kj_diagnostics *diagnostics)
{
  (void)device, (void)event, (void)diagnostics;
  return KJIT_OK;
}

static kjit_status read_elapsed(kjit_device *device, void *first, void *last,
                                kj_diagnostics *diagnostics, uint64_t *time_ns)
{
  (void)device, (void)diagnostics;
  uint64_t begin_ns = *(uint64_t *)first, end_ns = *(uint64_t *)last;
  *time_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
  return KJIT_OK;
}

/* ---- code ---- */

static kjit_status load(kjit_device *device, const kj_code *code, const char *name,
                        const kj_outside *outside, kj_diagnostics *diagnostics,
                        kj_device_code *loaded)
{
  kj_image *image = NULL;
  kj_cpu_kernel kernel = NULL;
  char reason[KJ_IMAGE_REASON_BYTES];
  if (!kj_load_image(code->data, code->size_bytes, code->entry, outside, &image, &kernel, reason))
    return kj_error(diagnostics, KJIT_ERROR_COMPILE,
                    "the machine code of kernel `%s` cannot be loaded: %s", name, reason);
  *loaded = (kj_device_code){ .module = image,
                              .max_dynamic_shared_bytes = (uint32_t)device->info.max_shared_bytes };
  memcpy(&loaded->function, &kernel, sizeof kernel);
  return KJIT_OK;
}

static void unload(kjit_device *device, void *module)
{
  (void)device;
  kj_unload_image(module);
}

static kjit_status provide_stack(kjit_device *device, uint32_t bytes, kj_diagnostics *diagnostics)
{
  (void)device, (void)bytes, (void)diagnostics;
  return KJIT_OK;
}

static kjit_status count_resident(kjit_device *device, const kj_device_code *loaded,
                                  uint32_t threads, uint64_t dynamic_shared_bytes,
                                  kj_diagnostics *diagnostics, uint32_t *blocks)
{
  (void)device, (void)loaded, (void)threads, (void)dynamic_shared_bytes, (void)diagnostics;
  *blocks = 1;
  return KJIT_OK;
}

static kjit_status choose_threads(kjit_device *device, const kj_device_code *loaded,
                                  uint64_t dynamic_shared_bytes, uint32_t most,
                                  kj_diagnostics *diagnostics, uint32_t *threads)
{
  enum { USUAL = 256 };
  (void)device, (void)loaded, (void)dynamic_shared_bytes, (void)diagnostics;
  *threads = most < USUAL ? most : USUAL;
  return KJIT_OK;
}

/* ---- the table of operations ---- */

const kj_device_operations kj_cpu_operations = {
  .kind = KJIT_DEVICE_CPU,
  .name = "cpu",
  .target = KJ_TARGET_CPU,
  .is_usually_single = true,
  .knows_block = true,
  .count = count_devices,
  .forget = forget,
  .open = open_device,
  .close = close_device,
  .synchronize = synchronize,
  .read_attribute = read_attribute,
  .read_uuid = read_uuid,
  .read_memory = read_memory,
  .can_access_peer = can_access_peer,
  .change_peer_access = change_peer_access,
  .allocate = allocate,
  .release = release,
  .copy = copy,
  .set = set,
  .prefetch = prefetch,
  .pin = pin,
  .unpin = unpin,
  .map = map,
  .release_mapped = release_mapped,
  .name_memory = name_memory,
  .open_memory = open_memory,
  .close_memory = release,
  .read_priorities = read_priorities,
  .create_stream = create_stream,
  .destroy_stream = destroy_stream,
  .query_stream = query_stream,
  .call_host = call_host,
  .create_event = create_event,
  .destroy_event = destroy_event,
  .record_event = record_event,
  .wait_event = wait_event,
  .query_event = ask_event,
  .synchronize_event = ask_event,
  .read_elapsed = read_elapsed,
  .load = load,
  .unload = unload,
  .provide_stack = provide_stack,
  .count_resident = count_resident,
  .choose_threads = choose_threads,
  .launch = kj_launch_on_cpu,
};
