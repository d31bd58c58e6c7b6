/* The driver that the oracle looks at: what is queued is not run, but its place in the order is
 * known, and what it uses. Host functions are the exception: they are called when their stream gets
 * there, at the latest when the host waits for it.
 *
 * As CUDA documents it and driver 580 does it: the default stream is ordered with the streams that
 * are not made as non-blocking, in both directions. Copies of host memory that is not pinned have
 * read or written it when the call returns. Freeing memory waits for its device, unloading code and
 * closing another process's memory for nothing. */
#ifndef ORACLE_DRIVER_H
#define ORACLE_DRIVER_H

#include "oracle_clock.h"

enum {
  CUDA_NOT_READY = 600,
  CUDA_PEER_ALREADY = 704,
  CUDA_PEER_NOT_ENABLED = 705,
  CUDA_CAPTURE_UNJOINED = 904,
  CUDA_CAPTURE_ISOLATION = 905,
  CUDA_CAPTURE_IMPLICIT = 906,
  CUDA_CAPTURED_EVENT = 907
};

/* ---- entering ---- */

typedef struct oracle_scope {
  int result;
} oracle_scope;

/* The mutex is let go for a moment, so that other threads come in between. */
static void oracle_pause(void)
{
  if (!oracle.is_threaded) return;
  oracle.random = oracle.random * 6364136223846793005u + 1442695040888963407u;
  unsigned pauses = oracle.random >> 33 & 7 ? 0 : oracle.random >> 40 & 15;
  pthread_mutex_unlock(&oracle.mutex);
  for (unsigned i = 0; i < pauses; i++) sched_yield();
  pthread_mutex_lock(&oracle.mutex);
}

static oracle_scope oracle_enter(const char *name, bool can_fail)
{
  pthread_mutex_lock(&oracle.mutex);
  oracle_pause();
  oracle_result->driver_calls++;
  oracle.call_count++;
  oracle_here.is_in_driver = true;
  if (!can_fail || !oracle_here.call || !oracle_here.fail_at || --oracle_here.fail_at)
    return (oracle_scope){ 0 };
  oracle_here.has_failed = true;
  oracle_trace("      %s fails with %d\n", name, oracle_here.fail_with);
  return (oracle_scope){ oracle_here.fail_with };
}
static void oracle_leave(const oracle_scope *scope)
{
  (void)scope;
  oracle_here.is_in_driver = false;
  pthread_mutex_unlock(&oracle.mutex);
}
/* Somebody else's code runs in between. */
static void oracle_call_out(void (*function)(void *user), void *user)
{
  oracle_here.is_in_driver = false;
  pthread_mutex_unlock(&oracle.mutex);
  function(user);
  pthread_mutex_lock(&oracle.mutex);
  oracle_here.is_in_driver = true;
}
static void oracle_call_hook(void *user)
{
  void (**hook)(void) = user;
  void (*function)(void) = *hook;
  *hook = NULL;
  if (function) function();
}
#define ORACLE_SCOPE(can_fail) \
  __attribute__((cleanup(oracle_leave), unused)) oracle_scope scope_ = \
    oracle_enter(__func__ + 7, can_fail); \
  if (scope_.result) return scope_.result
#define ORACLE_CALL() ORACLE_SCOPE(true)
/* Nobody can act on its failure, and it does not fail. */
#define ORACLE_RELEASE() ORACLE_SCOPE(false)
#define ORACLE_NAME (__func__ + 7)
#define ORACLE_TRY(call) \
  do { \
    int result_ = (call); \
    if (result_) return result_; \
  } while (0)

static uint32_t oracle_current(void)
{
  return oracle_here.context ? (uint32_t)((char *)oracle_here.context - fake_primary) : 0;
}

static int oracle_cuCtxGetCurrent(void **context)
{
  ORACLE_CALL();
  *context = oracle_here.context;
  return 0;
}
static int oracle_cuCtxSetCurrent(void *context)
{
  ORACLE_CALL();
  oracle_here.context = context;
  return 0;
}

/* ---- streams ---- */

static oracle_stream *oracle_thread_stream(uint32_t device)
{
  for (uint32_t i = 0; i < oracle.stream_count; i++) {
    oracle_stream *stream = oracle.streams[i];
    if (stream->thread == oracle_here.thread && stream->device == device && !stream->gone)
      return stream;
  }
  oracle_stream *made = oracle_add_stream(device, true);
  if (!made) abort();
  made->thread = oracle_here.thread;
  return made;
}

/* CUDA's names for the default streams are 0, 1 and 2. */
static oracle_stream *oracle_stream_of(void *handle, const char *call)
{
  if ((uintptr_t)handle <= 1) return oracle.legacy[oracle_current()];
  if ((uintptr_t)handle == 2) return oracle_thread_stream(oracle_current());
  oracle_stream *stream = handle;
  if (stream->gone)
    oracle_violation("%s uses %s, which is gone: %s", call, oracle_stream_text(stream),
                     stream->gone);
  return stream;
}

static int oracle_make_stream(void **stream, unsigned flags)
{
  oracle_stream *made = oracle_add_stream(oracle_current(), !(flags & 1));
  if (!made) return CUDA_OUT_OF_MEMORY;
  oracle_trace("      cuStreamCreate: %s\n", oracle_stream_text(made));
  *stream = made;
  return 0;
}
static int oracle_cuStreamCreate(void **stream, unsigned flags)
{
  ORACLE_CALL();
  return oracle_make_stream(stream, flags);
}
static int oracle_cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
  (void)priority;
  ORACLE_CALL();
  return oracle_make_stream(stream, flags);
}

#include "oracle_graph.h"

static int oracle_cuStreamDestroy(void *handle)
{
  ORACLE_RELEASE();
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  oracle_trace("      cuStreamDestroy: %s\n", oracle_stream_text(stream));
  if (stream->capture) oracle_break_capture(stream->capture, "its stream is destroyed");
  stream->capture = NULL;
  stream->gone = "it was destroyed";
  return 0;
}

/* ---- host functions ---- */

typedef struct oracle_function {
  uint32_t stream, tick;
  oracle_clock clock;
  void (*function)(void *user);
  void *user;
} oracle_function;

static struct {
  uint32_t count;
  oracle_function items[256];
} oracle_functions;

/* Those that come before the clock are called, NULL: the first one. The first that was queued is
 * first in every order. Under the mutex, which is let go meanwhile. */
static void oracle_run_functions(const oracle_clock *clock)
{
  for (uint32_t i = 0; i < oracle_functions.count; i++) {
    oracle_function function = oracle_functions.items[i];
    if (clock && function.tick > clock->at[function.stream]) continue;
    oracle_functions.count--;
    memmove(&oracle_functions.items[i], &oracle_functions.items[i + 1],
            (oracle_functions.count - i) * sizeof function);
    oracle_trace("      host function of %s is called\n",
                 oracle_stream_text(oracle.streams[function.stream]));
    oracle_call_out(function.function, function.user);
    /* what it did it may have told to the host */
    oracle_join(&oracle.host, &function.clock);
    if (!clock) return;
    i = UINT32_MAX;
  }
}

static void oracle_add_function(const oracle_stream *stream, void (*function)(void *user),
                                void *user)
{
  enum { MOST = sizeof oracle_functions.items / sizeof *oracle_functions.items };
  if (oracle_functions.count == MOST) oracle_run_functions(NULL);
  oracle_functions.items[oracle_functions.count++] =
    (oracle_function){ stream->index, stream->clock.at[stream->index], stream->clock, function,
                       user };
}

static int oracle_cuLaunchHostFunc(void *handle, void (*function)(void *user), void *user)
{
  ORACLE_CALL();
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  oracle_operation operation = { .call = ORACLE_NAME, .function = function, .user = user };
  for (uint32_t i = 0; i < oracle_here.host_count; i++)
    oracle_add_access(&operation, oracle_here.host[i]);
  return oracle_queue(stream, &operation);
}

/* ---- waiting ---- */

/* The moment when the wait begins is what it waits for; others come in between. */
static void oracle_wait(oracle_clock clock)
{
  oracle_pause();
  oracle_run_functions(&clock);
  oracle_join(&oracle.host, &clock);
}

static int oracle_cuCtxSynchronize(void)
{
  ORACLE_CALL();
  uint32_t device = oracle_current();
  oracle_clock clock = { 0 };
  if (oracle_break_captures_of(device, true, ORACLE_NAME)) return CUDA_CAPTURE_UNSUPPORTED;
  for (uint32_t i = 0; i < oracle.stream_count; i++)
    if (oracle.streams[i]->device == device) oracle_join(&clock, &oracle.streams[i]->clock);
  oracle_trace("      cuCtxSynchronize of cuda:%u\n", device);
  oracle_wait(clock);
  oracle_call_out(oracle_call_hook, &oracle_after_wait);
  return 0;
}
static int oracle_cuStreamSynchronize(void *handle)
{
  ORACLE_CALL();
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  ORACLE_TRY(oracle_look_at(stream, ORACLE_NAME));
  oracle_trace("      cuStreamSynchronize of %s\n", oracle_stream_text(stream));
  oracle_wait(oracle_next(stream));
  return 0;
}
/* A stream whose host functions have been called is done: nothing else is ever seen to happen. */
static int oracle_cuStreamQuery(void *handle)
{
  ORACLE_CALL();
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  ORACLE_TRY(oracle_look_at(stream, ORACLE_NAME));
  bool is_done = oracle.call_count % 3 == 0;
  oracle_trace("      cuStreamQuery of %s: %s\n", oracle_stream_text(stream),
               is_done ? "done" : "not ready");
  if (!is_done) return CUDA_NOT_READY;
  oracle_wait(oracle_next(stream));
  return 0;
}

typedef struct oracle_event {
  const char *gone;
  uint32_t device;
  oracle_clock clock;
  uint64_t capture; /* number of the capture that it was recorded in; 0: none */
} oracle_event;

static oracle_event *oracle_event_of(void *handle, const char *call)
{
  oracle_event *event = handle;
  if (event->gone) oracle_violation("%s uses an event that is gone: %s", call, event->gone);
  return event;
}

static struct {
  uint32_t count;
  oracle_event *items[4096];
} oracle_events;

static int oracle_cuEventCreate(void **event, unsigned flags)
{
  enum { MOST = sizeof oracle_events.items / sizeof *oracle_events.items };
  (void)flags;
  ORACLE_CALL();
  if (oracle_events.count == MOST) return CUDA_OUT_OF_MEMORY;
  oracle_event *made = calloc(1, sizeof *made);
  if (!made) abort();
  made->device = oracle_current();
  oracle_events.items[oracle_events.count++] = made;
  *event = made;
  return 0;
}
static int oracle_cuEventDestroy(void *handle)
{
  ORACLE_RELEASE();
  oracle_event_of(handle, ORACLE_NAME)->gone = "it was destroyed";
  return 0;
}
static int oracle_cuEventRecord(void *handle, void *on)
{
  ORACLE_CALL();
  oracle_event *event = oracle_event_of(handle, ORACLE_NAME);
  oracle_stream *stream = oracle_stream_of(on, ORACLE_NAME);
  if (event->device != stream->device) return CUDA_INVALID_HANDLE;
  oracle_trace("      cuEventRecord on %s\n", oracle_stream_text(stream));
  event->capture = stream->capture ? stream->capture->number : 0;
  if (stream->capture) {
    event->clock = stream->captured;
    return 0;
  }
  ORACLE_TRY(oracle_look_at(stream, ORACLE_NAME));
  event->clock = oracle_next(stream);
  return 0;
}
static int oracle_cuStreamWaitEvent(void *on, void *handle, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  oracle_event *event = oracle_event_of(handle, ORACLE_NAME);
  oracle_stream *stream = oracle_stream_of(on, ORACLE_NAME);
  oracle_trace("      cuStreamWaitEvent on %s\n", oracle_stream_text(stream));
  if (event->capture) return oracle_join_stream(stream, event->capture, &event->clock);
  if (stream->capture) {
    oracle_break_capture(stream->capture, "a stream of it waits for an event of outside");
    return CUDA_CAPTURE_ISOLATION;
  }
  ORACLE_TRY(oracle_look_at(stream, ORACLE_NAME));
  oracle_join(&stream->clock, &event->clock);
  return 0;
}
static int oracle_check_event(const oracle_event *event)
{
  struct oracle_capture *capture = oracle_capture_of(event->capture);
  if (capture) oracle_break_capture(capture, "an event of it is waited for or asked");
  return event->capture ? CUDA_CAPTURED_EVENT : 0;
}
static int oracle_cuEventSynchronize(void *handle)
{
  ORACLE_CALL();
  const oracle_event *event = oracle_event_of(handle, ORACLE_NAME);
  ORACLE_TRY(oracle_check_event(event));
  oracle_wait(event->clock);
  return 0;
}
static int oracle_cuEventQuery(void *handle)
{
  ORACLE_CALL();
  const oracle_event *event = oracle_event_of(handle, ORACLE_NAME);
  ORACLE_TRY(oracle_check_event(event));
  if (oracle.call_count % 3) return CUDA_NOT_READY;
  oracle_wait(event->clock);
  return 0;
}
static int oracle_cuEventElapsedTime(float *time, void *first, void *last)
{
  ORACLE_CALL();
  oracle_event_of(first, ORACLE_NAME);
  oracle_event_of(last, ORACLE_NAME);
  *time = 1;
  return 0;
}

/* ---- memory ---- */

static int oracle_allocate(size_t size, oracle_kind kind, void **memory)
{
  uint32_t device = oracle_current();
  bool counts = kind == ORACLE_DEVICE || kind == ORACLE_MANAGED;
  if (counts && oracle.memory_limit && oracle.memory_bytes[device] + size > oracle.memory_limit)
    return CUDA_OUT_OF_MEMORY;
  if (counts) oracle.memory_bytes[device] += size;
  *memory = aligned_alloc(256, (size + 255) / 256 * 256);
  if (!*memory) abort();
  oracle_block *block = oracle_add_block(*memory, size, kind, device);
  oracle_trace("      %s of cuda:%u: %zu bytes\n", oracle_block_text(block), device, size);
  return 0;
}
static int oracle_cuMemAlloc(uint64_t *address, size_t size)
{
  ORACLE_CALL();
  return oracle_allocate(size, ORACLE_DEVICE, (void **)address);
}
static int oracle_cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  return oracle_allocate(size, ORACLE_MANAGED, (void **)address);
}
static int oracle_cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  return oracle_allocate(size, ORACLE_PINNED, memory);
}
/* The machine's memory stays until the process ends, so that no address comes twice. */
static int oracle_free(void *memory, const char *call)
{
  oracle_block *block = oracle_find_block(memory);
  if (!block || block->address != memory)
    oracle_violation("%s of memory that the driver has not given, or has back", call);
  oracle_trace("      %s of %s\n", call, oracle_block_text(block));
  if (block->kind == ORACLE_DEVICE || block->kind == ORACLE_MANAGED)
    oracle.memory_bytes[block->device] -= block->size;
  oracle_end_block(block, call, true);
  return 0;
}
static int oracle_cuMemFree(uint64_t address)
{
  ORACLE_RELEASE();
  return oracle_free((void *)(uintptr_t)address, ORACLE_NAME);
}
static int oracle_cuMemFreeHost(void *memory)
{
  ORACLE_RELEASE();
  return oracle_free(memory, ORACLE_NAME);
}
static int oracle_cuMemHostGetDevicePointer(uint64_t *address, void *memory, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  *address = (uint64_t)(uintptr_t)memory;
  return 0;
}
static int oracle_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  ORACLE_CALL();
  *total_bytes = *free_bytes = 1 << 30;
  return 0;
}
static int oracle_cuMemGetAddressRange(uint64_t *base, size_t *size, uint64_t address)
{
  ORACLE_CALL();
  const oracle_block *block = oracle_find_block((void *)(uintptr_t)address);
  if (!block) return CUDA_INVALID_VALUE;
  if (base) *base = (uint64_t)(uintptr_t)block->address;
  if (size) *size = block->size;
  return 0;
}
static int oracle_cuMemHostRegister(void *memory, size_t size, unsigned flags)
{
  (void)memory, (void)size, (void)flags;
  ORACLE_CALL();
  return 0;
}
static int oracle_cuMemHostUnregister(void *memory)
{
  (void)memory;
  ORACLE_CALL();
  return 0;
}
/* A handle is the address; the importer sees the memory elsewhere. */
static int oracle_cuIpcGetMemHandle(kj_cu_ipc_handle *handle, uint64_t address)
{
  ORACLE_CALL();
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &address, sizeof address);
  return 0;
}
static int oracle_cuIpcOpenMemHandle(uint64_t *address, kj_cu_ipc_handle handle, unsigned flags)
{
  (void)flags;
  void *memory;
  ORACLE_CALL();
  memcpy(&memory, &handle, sizeof memory);
  const oracle_block *block = oracle_find_block(memory);
  return block ? oracle_allocate(block->size, ORACLE_OPENED, (void **)address) : CUDA_INVALID_VALUE;
}
static int oracle_cuIpcCloseMemHandle(uint64_t address)
{
  ORACLE_RELEASE();
  oracle_block *block = oracle_find_block((void *)(uintptr_t)address);
  if (!block || block->kind != ORACLE_OPENED)
    oracle_violation("%s of memory that is not open", ORACLE_NAME);
  oracle_end_block(block, ORACLE_NAME, false);
  return 0;
}

/* ---- copies ---- */

/* Memory of the host that is not pinned has been read or written when the call returns. */
static int oracle_copy(void *handle, const void *to, const void *from, const char *call)
{
  oracle_stream *stream = oracle_stream_of(handle, call);
  oracle_operation operation = { .call = call };
  const oracle_block *blocks[] = { oracle_find_block(to), oracle_find_block(from) };
  bool is_host[2] = { false };
  for (int i = 0; i < 2; i++) is_host[i] = !blocks[i] || blocks[i]->kind == ORACLE_HOST;
  if (!is_host[0] || stream->capture) oracle_add_access(&operation, to);
  if (!is_host[1] || stream->capture) oracle_add_access(&operation, from);
  ORACLE_TRY(oracle_queue(stream, &operation));
  if (is_host[0] && !stream->capture) oracle_wait(oracle_next(stream));
  return 0;
}
static int oracle_cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t size, void *stream)
{
  (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, (void *)(uintptr_t)to, from, ORACLE_NAME);
}
static int oracle_cuMemcpyDtoHAsync(void *to, uint64_t from, size_t size, void *stream)
{
  (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, to, (void *)(uintptr_t)from, ORACLE_NAME);
}
static int oracle_cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t size, void *stream)
{
  (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, (void *)(uintptr_t)to, (void *)(uintptr_t)from, ORACLE_NAME);
}
static int oracle_cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from,
                                    void *from_context, size_t size, void *stream)
{
  (void)to_context, (void)from_context, (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, (void *)(uintptr_t)to, (void *)(uintptr_t)from, ORACLE_NAME);
}
static int oracle_cuMemcpy2DAsync(const kj_cu_rows *rows, void *stream)
{
  ORACLE_CALL();
  return oracle_copy(stream, fake_side(&rows->destination), fake_side(&rows->source), ORACLE_NAME);
}
static int oracle_set(void *handle, uint64_t address, const char *call)
{
  oracle_operation operation = { .call = call };
  oracle_add_access(&operation, (void *)(uintptr_t)address);
  return oracle_queue(oracle_stream_of(handle, call), &operation);
}
#define ORACLE_SET(name, type) \
  static int oracle_##name(uint64_t address, type value, size_t count, void *stream) \
  { \
    (void)value, (void)count; \
    ORACLE_CALL(); \
    return oracle_set(stream, address, ORACLE_NAME); \
  }
ORACLE_SET(cuMemsetD8Async, unsigned char)
ORACLE_SET(cuMemsetD16Async, unsigned short)
ORACLE_SET(cuMemsetD32Async, unsigned)
#undef ORACLE_SET
static int oracle_cuMemPrefetchAsync(uint64_t address, size_t size, int device, void *stream)
{
  (void)size, (void)device;
  ORACLE_CALL();
  return oracle_set(stream, address, ORACLE_NAME);
}

/* ---- code ---- */

static int oracle_cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                                     void **values)
{
  (void)image, (void)count, (void)options, (void)values;
  ORACLE_CALL();
  oracle_module *made = calloc(1, sizeof *made);
  if (!made) abort();
  made->device = oracle_current();
  made->uses = (oracle_block){ .size = 1, .kind = ORACLE_DEVICE, .device = made->device };
  made->next = oracle_modules;
  oracle_modules = made;
  *module = made;
  return 0;
}
static int oracle_cuModuleUnload(void *handle)
{
  ORACLE_RELEASE();
  oracle_module *module = handle;
  if (module->gone) oracle_violation("a module is unloaded twice");
  for (uint32_t i = 0; i < module->uses.use_count; i++) {
    const oracle_use *use = &module->uses.uses[i];
    if (!oracle_is_before(use, &oracle.host))
      oracle_violation("cuModuleUnload of code that is queued: %s, operation %u of %s", use->call,
                       use->tick, oracle_stream_text(oracle.streams[use->stream]));
  }
  module->gone = "it was unloaded";
  return 0;
}
static int oracle_cuModuleGetFunction(void **function, void *module, const char *name)
{
  (void)name;
  ORACLE_CALL();
  *function = module;
  return 0;
}
static int oracle_cuModuleGetGlobal(uint64_t *address, size_t *size_bytes, void *module,
                                    const char *name)
{
  (void)module, (void)name;
  ORACLE_CALL();
  *address = (uint64_t)(uintptr_t)cuda.global;
  *size_bytes = sizeof cuda.global;
  return CUDA_OK;
}

/* Every word of the parameters that is an address in memory of the driver's is an array's. */
static int oracle_launch(oracle_module *module, void *handle, void **extra)
{
  oracle_stream *stream = oracle_stream_of(handle, "cuLaunchKernel");
  oracle_operation operation = { .call = "cuLaunchKernel", .module = module };
  if (module->gone) oracle_violation("cuLaunchKernel of code that is gone: %s", module->gone);
  if ((uintptr_t)handle <= 2 && module->device != oracle_current())
    return oracle_here.context ? CUDA_INVALID_HANDLE : CUDA_INVALID_CONTEXT;
  if (stream->device != module->device) return CUDA_INVALID_HANDLE;
  for (size_t at = 0; extra && at + sizeof(uint64_t) <= *(size_t *)extra[3]; at += 8) {
    void *word;
    memcpy(&word, (char *)extra[1] + at, sizeof word);
    oracle_add_access(&operation, word);
  }
  return oracle_queue(stream, &operation);
}
static int oracle_cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, void *stream,
                                 void **parameters, void **extra)
{
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)parameters;
  ORACLE_CALL();
  return oracle_launch(function, stream, extra);
}
static int oracle_cuLaunchKernelEx(const kj_cu_launch_config *config, void *function,
                                   void **parameters, void **extra)
{
  (void)parameters;
  ORACLE_CALL();
  return oracle_launch(function, config->stream, extra);
}

/* ---- devices ---- */

static uint8_t oracle_peers[ORACLE_DEVICES][ORACLE_DEVICES];

static int oracle_cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  uint8_t *has = &oracle_peers[oracle_current()][(char *)peer - fake_primary];
  if (*has) return CUDA_PEER_ALREADY;
  *has = 1;
  return 0;
}
static int oracle_cuCtxDisablePeerAccess(void *peer)
{
  ORACLE_CALL();
  uint8_t *has = &oracle_peers[oracle_current()][(char *)peer - fake_primary];
  if (!*has) return CUDA_PEER_NOT_ENABLED;
  *has = 0;
  return 0;
}

/* All that the context had is gone, what was queued there included. */
static int oracle_cuDevicePrimaryCtxReset(int handle)
{
  static const char why[] = "its device was reset";
  uint32_t device = (uint32_t)handle;
  ORACLE_CALL();
  oracle_trace("      cuDevicePrimaryCtxReset of cuda:%u\n", device);
  oracle_drop_captures_of(device);
  for (uint32_t i = 0; i < oracle.stream_count; i++) {
    oracle_stream *stream = oracle.streams[i];
    if (stream->device != device) continue;
    oracle_join(&oracle.host, &stream->clock);
    if (!stream->is_legacy && !stream->gone) stream->gone = why;
  }
  oracle_run_functions(&oracle.host);
  for (uint32_t i = 0; i < oracle.block_count; i++) {
    oracle_block *block = &oracle.blocks[i];
    if (block->gone || block->kind == ORACLE_HOST || block->device != device) continue;
    block->gone = why; /* whoever else uses it: the host was told not to */
    block->use_count = 0;
    block->is_alive = false;
  }
  for (uint32_t i = 0; i < oracle_events.count; i++)
    if (oracle_events.items[i]->device == device && !oracle_events.items[i]->gone)
      oracle_events.items[i]->gone = why;
  for (oracle_module *module = oracle_modules; module; module = module->next)
    if (module->device == device && !module->gone) module->gone = why;
  oracle_drop_graphs_of(device, why);
  memset(oracle_peers[device], 0, sizeof oracle_peers[device]);
  oracle.memory_bytes[device] = 0;
  return 0;
}

/* ---- the table ---- */

static void *find_oracle(void *user, const char *symbol)
{
  static const struct {
    const char *symbol;
    void *address;
  } rows[] = {
#define ROW(name, symbol) { symbol, (void *)(uintptr_t)oracle_##name }
    ROW(cuCtxGetCurrent, "cuCtxGetCurrent"),
    ROW(cuCtxSetCurrent, "cuCtxSetCurrent"),
    ROW(cuCtxSynchronize, "cuCtxSynchronize"),
    ROW(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess"),
    ROW(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess"),
    ROW(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2"),
    ROW(cuStreamCreate, "cuStreamCreate"),
    ROW(cuStreamCreateWithPriority, "cuStreamCreateWithPriority"),
    ROW(cuStreamDestroy, "cuStreamDestroy_v2"),
    ROW(cuStreamSynchronize, "cuStreamSynchronize"),
    ROW(cuStreamQuery, "cuStreamQuery"),
    ROW(cuStreamWaitEvent, "cuStreamWaitEvent"),
    ROW(cuStreamIsCapturing, "cuStreamIsCapturing"),
    ROW(cuStreamBeginCapture, "cuStreamBeginCapture_v2"),
    ROW(cuStreamEndCapture, "cuStreamEndCapture"),
    ROW(cuLaunchHostFunc, "cuLaunchHostFunc"),
    ROW(cuEventCreate, "cuEventCreate"),
    ROW(cuEventDestroy, "cuEventDestroy_v2"),
    ROW(cuEventRecord, "cuEventRecord"),
    ROW(cuEventSynchronize, "cuEventSynchronize"),
    ROW(cuEventQuery, "cuEventQuery"),
    ROW(cuEventElapsedTime, "cuEventElapsedTime"),
    ROW(cuMemAlloc, "cuMemAlloc_v2"),
    ROW(cuMemAllocManaged, "cuMemAllocManaged"),
    ROW(cuMemFree, "cuMemFree_v2"),
    ROW(cuMemHostAlloc, "cuMemHostAlloc"),
    ROW(cuMemFreeHost, "cuMemFreeHost"),
    ROW(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2"),
    ROW(cuMemGetInfo, "cuMemGetInfo_v2"),
    ROW(cuMemGetAddressRange, "cuMemGetAddressRange_v2"),
    ROW(cuMemHostRegister, "cuMemHostRegister_v2"),
    ROW(cuMemHostUnregister, "cuMemHostUnregister"),
    ROW(cuMemPrefetchAsync, "cuMemPrefetchAsync"),
    ROW(cuIpcGetMemHandle, "cuIpcGetMemHandle"),
    ROW(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2"),
    ROW(cuIpcCloseMemHandle, "cuIpcCloseMemHandle"),
    ROW(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2"),
    ROW(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2"),
    ROW(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2"),
    ROW(cuMemcpyPeerAsync, "cuMemcpyPeerAsync"),
    ROW(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2"),
    ROW(cuMemsetD8Async, "cuMemsetD8Async"),
    ROW(cuMemsetD16Async, "cuMemsetD16Async"),
    ROW(cuMemsetD32Async, "cuMemsetD32Async"),
    ROW(cuModuleLoadDataEx, "cuModuleLoadDataEx"),
    ROW(cuModuleUnload, "cuModuleUnload"),
    ROW(cuModuleGetFunction, "cuModuleGetFunction"),
    ROW(cuModuleGetGlobal, "cuModuleGetGlobal_v2"),
    ROW(cuLaunchKernel, "cuLaunchKernel"),
    ROW(cuLaunchKernelEx, "cuLaunchKernelEx"),
    ROW(cuGraphDestroy, "cuGraphDestroy"),
    ROW(cuGraphGetNodes, "cuGraphGetNodes"),
    ROW(cuGraphInstantiate, "cuGraphInstantiateWithFlags"),
    ROW(cuGraphExecUpdate, "cuGraphExecUpdate"),
    ROW(cuGraphLaunch, "cuGraphLaunch"),
    ROW(cuGraphExecDestroy, "cuGraphExecDestroy")
#undef ROW
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].symbol, symbol)) return rows[i].address;
  return find_fake(user, symbol);
}

#endif
