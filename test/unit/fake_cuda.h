/* A CUDA driver in host memory, for tests. It has the entry points that kjit uses, counts the
 * objects that are alive, lets a chosen call fail, and produces a fault on request. */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"

enum {
  CUDA_OK = 0,
  CUDA_INVALID_VALUE = 1,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_INVALID_CONTEXT = 201,
  CUDA_INVALID_HANDLE = 400,
  CUDA_NO_BINARY = 209,
  CUDA_INVALID_PTX = 218,
  CUDA_ILLEGAL_ADDRESS = 700,
  CUDA_CAPTURE_UNSUPPORTED = 900,
  CUDA_CAPTURE_INVALIDATED = 901,
  CUDA_UNKNOWN = 999
};

/* Fields that the driver's functions write are atomic, because compiling threads call these
 * functions while the test runs. */
enum { FAKE_INPUT_TYPES = 8 };
typedef struct fake_driver {
  _Atomic int calls;
  /* the call number fail_at, of the calls that can fail, returns fail_with; 0 means that none
   * fails */
  int fail_at, fail_with;
  const char *_Atomic failed; /* its name */
  /* true if the failed call was a launch while the context of another device was current */
  bool failed_elsewhere;
  /* like fail_at, for calls that release an object; a failed call has no effect */
  _Atomic int releases;
  int fail_release_at;
  /* fault: error that every call returns after a failed launch, until a reset */
  int devices, fault;
  int version; /* version of the driver; 0 means 12080 */
  bool fault_next_launch, refuse_ptx, refuse_reset, refuse_cubin;
  _Atomic bool is_machine_code; /* whether the last code that was loaded is an ELF file */
  _Atomic int retained, modules, links, streams, events, allocations, pinned, launches, resets;
  size_t limit; /* of one allocation */
  /* no call gets memory: is_starved until memory is returned, is_full forever */
  _Atomic bool is_starved, is_full;
  _Atomic int starve_stack; /* number of failing calls that raise the stack limit */
  unsigned grid[3], block[3], shared_bytes;
  void *stream, *_Atomic current;
  char parameters[1024];
  size_t parameter_bytes;
  void (*kernel)(const char *parameters);
  _Atomic size_t bytes_in, bytes_out;
  uint64_t global[2]; /* the variable of the last module */
  _Atomic int shared_attribute;
  _Atomic size_t stack_bytes;        /* of a thread */
  _Atomic int limits_set, inputs;    /* inputs: of links */
  int input_types[FAKE_INPUT_TYPES]; /* CUjitInputType of the first inputs */
  /* the option for debug information that code was loaded and linked with */
  _Atomic int load_debug, link_debug;
  /* Fields for plain code, which is loaded with an optimization level. plain_registers is the
   * number of registers of its threads; 0 means the same as for other code. If refuse_plain is set,
   * plain code is rejected. on_load receives the loaded code; level is -1 if the option is not
   * set. */
  int plain_registers;
  bool refuse_plain;
  void (*on_load)(const char *image, int level);
  /* registers of a thread (0 means 32); number of launches with attributes */
  int registers, extended;
  int local_bytes; /* of a thread */
  unsigned attribute_count;
  kj_cu_launch_attribute attributes[16]; /* attributes of the last launch with attributes, by id */
  /* fake_cuda_memory.h */
  size_t memory_limit; /* limit for all allocations on GPUs; 0 means no limit */
  _Atomic size_t memory_bytes;
  void *capturing[4];     /* streams */
  bool is_capture_broken; /* a wait has broken the capture */
  struct fake_graph *captured;
  /* orders: number of waits of one stream for another */
  _Atomic int graphs, executables, registered, opened, orders, host_calls, profiling, rows;
  /* a bit for each primary context to which peer access is enabled */
  uint64_t peers;
  /* is_busy: no stream or event is done */
  bool refuse_peers, is_busy;
  /* the last orders: a stream, and the stream that waits for it */
  void *ordered[8][2];
  void *prefetched;
} fake_driver;

static fake_driver cuda;
static char fake_primary[4];

/* Memory that the driver has allocated, so that a reset can free it. */
typedef struct fake_block {
  _Alignas(256) struct fake_block *next;
  size_t size;
  const void *context; /* that was current */
  _Alignas(256) char data[];
} fake_block;
static fake_block *fake_blocks;
/* The driver may be called by several threads at once. */
static pthread_mutex_t fake_blocks_mutex = PTHREAD_MUTEX_INITIALIZER;

static void *fake_new(size_t size)
{
  fake_block *block = aligned_alloc(256, sizeof *block + (size + 255) / 256 * 256);
  if (!block) abort();
  block->size = size;
  block->context = cuda.current;
  pthread_mutex_lock(&fake_blocks_mutex);
  block->next = fake_blocks;
  fake_blocks = block;
  pthread_mutex_unlock(&fake_blocks_mutex);
  return block->data;
}

static void fake_delete(void *data)
{
  pthread_mutex_lock(&fake_blocks_mutex);
  fake_block **at = &fake_blocks;
  while (*at && (*at)->data != data) at = &(*at)->next;
  if (!*at) abort(); /* not allocated, or freed twice */
  fake_block *block = *at;
  *at = block->next;
  pthread_mutex_unlock(&fake_blocks_mutex);
  free(block);
}

static size_t fake_size(void *data)
{
  pthread_mutex_lock(&fake_blocks_mutex);
  const fake_block *block = fake_blocks;
  while (block && block->data != data) block = block->next;
  pthread_mutex_unlock(&fake_blocks_mutex);
  if (!block) abort();
  return block->size;
}

static void fake_delete_all(void)
{
  while (fake_blocks) fake_delete(fake_blocks->data);
}

/* Captured streams keep the work that is queued on them (fake_cuda_memory.h). */
static bool fake_is_captured(void *stream)
{
  for (int i = 0; i < 4; i++)
    if (stream && cuda.capturing[i] == stream) return true;
  return false;
}
enum { FAKE_LAUNCH, FAKE_COPY, FAKE_SET, FAKE_HOST };
static int fake_capture(int kind, uint64_t to, uint64_t from, size_t size, const void *data);

/* Counts a call and returns an error if it has to fail. Calls for the name of an error never fail.
 * Calls that release an object have their own counter, because a caller cannot handle their
 * failure. */
static int fake_call(const char *name)
{
  if (cuda.fault) return cuda.fault;
  if (++cuda.calls != cuda.fail_at) return CUDA_OK;
  cuda.failed = name;
  return cuda.fail_with;
}
static bool fake_keeps(const char *name)
{
  if (++cuda.releases != cuda.fail_release_at) return false;
  cuda.failed = name;
  return true;
}
#define FAKE_RELEASE() \
  do { \
    if (fake_keeps(__func__ + 5)) return cuda.fail_with; \
  } while (0)
/* Number of driver calls of a launch on a default stream: the query for the current context, and
 * the launch. */
enum { FAKE_DEFAULT_LAUNCH = 2 };

#define FAKE_CALL() \
  do { \
    int result_ = fake_call(__func__ + 5); \
    if (result_) return result_; \
  } while (0)

/* Calls that need memory of the driver. */
#define FAKE_NEEDS_MEMORY() \
  do { \
    if (cuda.is_starved || cuda.is_full) return CUDA_OUT_OF_MEMORY; \
  } while (0)

static int fake_cuInit(unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  return 0;
}
static int fake_cuDriverGetVersion(int *version)
{
  FAKE_CALL();
  *version = cuda.version ? cuda.version : 12080;
  return 0;
}
static int fake_cuGetErrorName(int error, const char **name)
{
  *name = error == CUDA_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : error == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_INVALID_PTX   ? "CUDA_ERROR_INVALID_PTX"
                                        : "CUDA_ERROR_UNKNOWN";
  return 0;
}
static int fake_cuGetErrorString(int error, const char **text)
{
  *text =
    error == CUDA_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "unknown error";
  return 0;
}
static int fake_cuDeviceGetCount(int *count)
{
  FAKE_CALL();
  *count = cuda.devices;
  return 0;
}
static int fake_cuDeviceGet(int *device, int ordinal)
{
  FAKE_CALL();
  *device = ordinal;
  return 0;
}
static int fake_cuDeviceGetName(char *name, int size, int device)
{
  FAKE_CALL();
  snprintf(name, (size_t)size, "Fake %d", device);
  return 0;
}
static int fake_cuDeviceGetAttribute(int *value, int attribute, int device)
{
  (void)device;
  FAKE_CALL();
  static const struct {
    int attribute, value;
  } rows[] = { { 1, 1024 },  { 2, 1024 },  { 3, 1024 }, { 4, 64 },     { 5, 2147483647 },
               { 6, 65535 }, { 7, 65535 }, { 16, 10 },  { 39, 2048 },  { 75, 9 },
               { 76, 0 },    { 95, 1 },    { 120, 1 },  { 97, 232448 } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].attribute == attribute) *value = rows[i].value;
  return 0;
}
static int fake_cuDeviceTotalMem(size_t *size, int device)
{
  (void)device;
  FAKE_CALL();
  *size = 1 << 30;
  return 0;
}
static int fake_cuDevicePrimaryCtxRetain(void **context, int device)
{
  FAKE_CALL();
  cuda.retained++;
  *context = &fake_primary[device];
  return 0;
}
static int fake_cuDevicePrimaryCtxRelease(int device)
{
  (void)device;
  FAKE_RELEASE();
  cuda.retained--;
  return 0;
}
static int fake_cuDevicePrimaryCtxReset(int device)
{
  (void)device;
  cuda.resets++;
  if (cuda.refuse_reset) return cuda.fault;
  cuda.fault = 0;
  memset(cuda.capturing, 0, sizeof cuda.capturing);
  cuda.memory_bytes = 0;
  cuda.graphs = cuda.executables = cuda.opened = 0;
  cuda.peers = 0;
  cuda.modules = cuda.streams = cuda.events = cuda.allocations = cuda.pinned = 0;
  fake_delete_all();
  return 0;
}
static int fake_cuCtxGetCurrent(void **context)
{
  if (!cuda.fault) FAKE_CALL();
  *context = cuda.current;
  return 0;
}
static int fake_cuCtxSetCurrent(void *context)
{
  if (!cuda.fault) FAKE_CALL();
  cuda.current = context;
  return 0;
}
static int fake_cuCtxSynchronize(void)
{
  FAKE_CALL();
  if (cuda.capturing[0]) cuda.is_capture_broken = true;
  return cuda.capturing[0] ? CUDA_CAPTURE_UNSUPPORTED : 0;
}
/* Returns CU_JIT_GENERATE_DEBUG_INFO or CU_JIT_GENERATE_LINE_INFO (their numbers in cuda.h) if the
 * options contain one of them, otherwise 0. */
static int fake_debug_option(unsigned count, const int *options, void **values)
{
  int found = 0;
  for (unsigned i = 0; i < count; i++)
    if ((options[i] == 11 || options[i] == 13) && values[i]) found = options[i];
  return found;
}
/* CU_JIT_OPTIMIZATION_LEVEL, or -1 */
static int fake_level(unsigned count, const int *options, void **values)
{
  for (unsigned i = 0; i < count; i++)
    if (options[i] == 7) return (int)(intptr_t)values[i];
  return -1;
}
static _Thread_local int fake_loaded_level; /* optimization level of this thread's last module */
static int fake_cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                                   void **values)
{
  FAKE_CALL();
  FAKE_NEEDS_MEMORY();
  for (unsigned i = 0; i < count && cuda.refuse_ptx; i++)
    if (options[i] == 5) snprintf(values[i], 64, "ptxas fatal   : bad PTX\n");
  fake_loaded_level = fake_level(count, options, values);
  if (cuda.refuse_ptx || (cuda.refuse_plain && fake_loaded_level >= 0)) return CUDA_INVALID_PTX;
  if (cuda.on_load) cuda.on_load(image, fake_loaded_level);
  cuda.is_machine_code = !strncmp(image, "\177ELF", 4); /* PTX ends with 0, as strings do */
  if (cuda.refuse_cubin && cuda.is_machine_code) return CUDA_NO_BINARY;
  cuda.modules++;
  cuda.load_debug = fake_debug_option(count, options, values);
  *module = (void *)image;
  return 0;
}
static int fake_cuModuleUnload(void *module)
{
  (void)module;
  FAKE_RELEASE();
  cuda.modules--;
  return 0;
}
static int fake_cuModuleGetFunction(void **function, void *module, const char *name)
{
  (void)name;
  FAKE_CALL();
  *function = module ? cuda.current : NULL; /* a launch needs the context of the function */
  return 0;
}
static int fake_cuCtxGetLimit(size_t *value, int limit)
{
  FAKE_CALL();
  *value = limit == 0 ? cuda.stack_bytes : 0;
  return 0;
}
static int fake_cuCtxSetLimit(int limit, size_t value)
{
  FAKE_CALL();
  if (cuda.starve_stack) {
    cuda.starve_stack--;
    return CUDA_OUT_OF_MEMORY;
  }
  if (limit == 0) cuda.stack_bytes = value;
  cuda.limits_set++;
  return 0;
}

static int fake_cuLinkCreate(unsigned count, int *options, void **values, void **link)
{
  FAKE_CALL();
  cuda.links++;
  cuda.link_debug = fake_debug_option(count, options, values);
  *link = memset(fake_new(sizeof(void *) * 2), 0, sizeof(void *) * 2);
  return 0;
}
static int fake_cuLinkAddData(void *link, int type, void *data, size_t size, const char *name,
                              unsigned count, int *options, void **values)
{
  (void)name;
  (void)count;
  (void)options;
  (void)values;
  FAKE_CALL();
  if (cuda.refuse_ptx) return CUDA_INVALID_PTX;
  if (cuda.inputs < FAKE_INPUT_TYPES) cuda.input_types[cuda.inputs] = type;
  if (!((void **)link)[0]) {
    ((void **)link)[0] = data;
    ((size_t *)link)[1] = size;
  }
  cuda.inputs++;
  return 0;
}
/* The machine code of this GPU is the PTX itself. */
static int fake_cuLinkComplete(void *link, void **cubin, size_t *size)
{
  FAKE_CALL();
  *cubin = ((void **)link)[0];
  *size = ((size_t *)link)[1];
  return 0;
}
static int fake_cuLinkDestroy(void *link)
{
  FAKE_RELEASE();
  cuda.links--;
  fake_delete(link);
  return 0;
}
/* A variable of any module. */
static int fake_cuModuleGetGlobal(uint64_t *address, size_t *size_bytes, void *module,
                                  const char *name)
{
  (void)module, (void)name;
  FAKE_CALL();
  *address = (uint64_t)(uintptr_t)cuda.global;
  *size_bytes = sizeof cuda.global;
  return CUDA_OK;
}

static int fake_cuFuncGetAttribute(int *value, int attribute, void *function)
{
  (void)function;
  FAKE_CALL();
  int given =
        cuda.plain_registers && fake_loaded_level >= 0 ? cuda.plain_registers : cuda.registers,
      registers = given ? given : 32;
  *value = attribute == 0   ? (given ? 65536 / registers / 32 * 32 : 512)
           : attribute == 1 ? 1000
           : attribute == 3 ? cuda.local_bytes
           : attribute == 4 ? registers
                            : 0;
  return 0;
}
static int fake_cuFuncSetAttribute(void *function, int attribute, int value)
{
  (void)function;
  FAKE_CALL();
  if (attribute == 8) cuda.shared_attribute = value;
  return 0;
}
static int fake_cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, void *stream,
                               void **parameters, void **extra)
{
  (void)parameters;
  if (cuda.calls + 1 == cuda.fail_at) cuda.failed_elsewhere = function != cuda.current;
  FAKE_CALL();
  FAKE_NEEDS_MEMORY();
  /* this is the behaviour of driver 580 */
  if (cuda.local_bytes > 511 * 1024) return CUDA_INVALID_VALUE;
  if (!stream && function != cuda.current)
    return cuda.current ? CUDA_INVALID_HANDLE : CUDA_INVALID_CONTEXT;
  if (fake_is_captured(stream))
    return fake_capture(FAKE_LAUNCH, 0, 0, extra ? *(size_t *)extra[3] : 0,
                        extra ? extra[1] : NULL);
  unsigned grid[3] = { gx, gy, gz }, block[3] = { bx, by, bz };
  memcpy(cuda.grid, grid, sizeof grid);
  memcpy(cuda.block, block, sizeof block);
  cuda.shared_bytes = shared;
  cuda.stream = stream;
  cuda.parameter_bytes = extra ? *(size_t *)extra[3] : 0;
  if (extra) memcpy(cuda.parameters, extra[1], cuda.parameter_bytes);
  cuda.launches++;
  if (cuda.kernel) cuda.kernel(cuda.parameters);
  /* this call still succeeds, because faults arrive later */
  if (cuda.fault_next_launch) cuda.fault = CUDA_ILLEGAL_ADDRESS;
  cuda.fault_next_launch = false;
  return 0;
}
static int fake_cuLaunchKernelEx(const kj_cu_launch_config *config, void *function,
                                 void **parameters, void **extra)
{
  FAKE_CALL();
  cuda.extended++;
  cuda.attribute_count = config->attribute_count;
  memset(cuda.attributes, 0, sizeof cuda.attributes);
  for (unsigned i = 0; i < config->attribute_count; i++)
    cuda.attributes[config->attributes[i].id] = config->attributes[i];
  cuda.calls--; /* count both as one call */
  return fake_cuLaunchKernel(function, config->grid[0], config->grid[1], config->grid[2],
                             config->block[0], config->block[1], config->block[2],
                             config->dynamic_shared_bytes, config->stream, parameters, extra);
}
/* A multiprocessor of 2048 threads, 65536 registers and 228 KiB of shared memory. */
static int fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function,
                                                            int threads,
                                                            size_t dynamic_shared_bytes)
{
  (void)function;
  FAKE_CALL();
  int registers = cuda.registers ? cuda.registers : 32,
      by_registers = 65536 / (registers * threads), by_threads = 2048 / threads,
      by_memory = (int)(233472 / (dynamic_shared_bytes + 1000 + 1024));
  *blocks = by_registers < by_threads ? by_registers : by_threads;
  if (by_memory < *blocks) *blocks = by_memory;
  return 0;
}
static int fake_cuMemAlloc(uint64_t *address, size_t size)
{
  FAKE_CALL();
  FAKE_NEEDS_MEMORY();
  if (cuda.limit && size > cuda.limit) return CUDA_OUT_OF_MEMORY;
  if (cuda.memory_limit && cuda.memory_bytes + size > cuda.memory_limit) return CUDA_OUT_OF_MEMORY;
  cuda.memory_bytes += size;
  cuda.allocations++;
  *address = (uint64_t)(uintptr_t)fake_new(size);
  return 0;
}
static int fake_cuMemFree(uint64_t address)
{
  FAKE_RELEASE();
  cuda.allocations--;
  cuda.is_starved = false;
  cuda.memory_bytes -= fake_size((void *)(uintptr_t)address);
  fake_delete((void *)(uintptr_t)address);
  return 0;
}
static int fake_cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  FAKE_NEEDS_MEMORY();
  cuda.pinned++;
  *memory = fake_new(size);
  return 0;
}
static int fake_cuMemHostGetDevicePointer(uint64_t *address, void *memory, unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  *address = (uint64_t)(uintptr_t)memory;
  return 0;
}
static int fake_cuMemFreeHost(void *memory)
{
  FAKE_RELEASE();
  cuda.pinned--;
  fake_delete(memory);
  return 0;
}
static int fake_cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t size, void *stream)
{
  FAKE_CALL();
  if (fake_is_captured(stream))
    return fake_capture(FAKE_COPY, to, (uint64_t)(uintptr_t)from, size, NULL);
  cuda.bytes_in += size;
  memcpy((void *)(uintptr_t)to, from, size);
  return 0;
}
static int fake_cuMemcpyDtoHAsync(void *to, uint64_t from, size_t size, void *stream)
{
  FAKE_CALL();
  if (fake_is_captured(stream))
    return fake_capture(FAKE_COPY, (uint64_t)(uintptr_t)to, from, size, NULL);
  cuda.bytes_out += size;
  memcpy(to, (const void *)(uintptr_t)from, size);
  return 0;
}
static int fake_cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t size, void *stream)
{
  FAKE_CALL();
  if (fake_is_captured(stream)) return fake_capture(FAKE_COPY, to, from, size, NULL);
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
  return 0;
}
static int fake_cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from, void *from_context,
                                  size_t size, void *stream)
{
  FAKE_CALL();
  if (to_context == from_context) return CUDA_INVALID_VALUE;
  (void)stream;
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
  return 0;
}
static int fake_cuStreamCreate(void **stream, unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  cuda.streams++;
  *stream = fake_new(1);
  return 0;
}
static int fake_cuStreamDestroy(void *stream)
{
  FAKE_RELEASE();
  cuda.streams--;
  fake_delete(stream);
  return 0;
}
static int fake_cuStreamSynchronize(void *stream)
{
  FAKE_CALL();
  if (fake_is_captured(stream)) return CUDA_CAPTURE_UNSUPPORTED;
  return 0;
}
static int fake_cuEventCreate(void **event, unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  cuda.events++;
  *event = fake_new(2 * sizeof(void *));
  return 0;
}
static int fake_cuEventDestroy(void *event)
{
  FAKE_RELEASE();
  cuda.events--;
  fake_delete(event);
  return 0;
}
static int fake_cuEventRecord(void *event, void *stream)
{
  FAKE_CALL();
  ((void **)event)[0] = stream;
  ((void **)event)[1] = fake_is_captured(stream) ? stream : NULL;
  return 0;
}
static int fake_cuEventSynchronize(void *event)
{
  (void)event;
  FAKE_CALL();
  return 0;
}
static int fake_cuEventElapsedTime(float *time, void *first, void *last)
{
  (void)first;
  (void)last;
  FAKE_CALL();
  *time = 1.5f;
  return 0;
}

/* The encoded map contains the address of the elements, which tests read. */
static int fake_cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                                       const uint64_t *extents, const uint64_t *strides,
                                       const uint32_t *box, const uint32_t *steps, int interleave,
                                       int swizzle, int promotion, int fill)
{
  (void)type, (void)rank, (void)extents, (void)strides, (void)box, (void)steps, (void)interleave,
    (void)swizzle, (void)promotion, (void)fill;
  FAKE_CALL();
  memset(map, 0, 128);
  memcpy(map, &address, sizeof address);
  return 0;
}

#include "fake_cuda_memory.h"

static void *find_fake(void *user, const char *symbol)
{
  (void)user;
  static const struct {
    const char *symbol;
    void *address;
  } rows[] = {
#define X(name, symbol_, parameters) { symbol_, (void *)(uintptr_t)fake_##name },
#include "cuda/driver.def"
#undef X
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].symbol, symbol)) return rows[i].address;
  return NULL;
}

#endif
