/* The driver of the oracle. It does not run queued work, but it knows the position of the work in
 * the order, and the memory that the work uses. Host functions are an exception: they are called
 * when their stream reaches them, at the latest when the host waits for them, by any thread that is
 * in the driver at that time.
 *
 * The driver behaves as CUDA documents it and as driver 580 does. The default stream is ordered, in
 * both directions, with the streams that were not created as non-blocking. Copies have read or
 * written host memory that is not pinned when the call returns. Freeing memory waits for its
 * device. Unloading code and closing memory of another process do not wait. */
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

static uint64_t oracle_now_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Releases the mutex for a moment, so that other threads can run. On a busy machine a pause takes
 * milliseconds, so a program makes only a limited number of pauses.
 */
static void oracle_pause(void)
{
  enum { MOST_PAUSED_NS = 20000000 };
  if (!oracle.is_threaded) return;
  oracle.random = oracle.random * 6364136223846793005u + 1442695040888963407u;
  unsigned pauses = oracle.random >> 33 & 7 ? 0 : oracle.random >> 40 & 15;
  if (oracle.paused_ns > MOST_PAUSED_NS) pauses = 0;
  uint64_t begin = pauses ? oracle_now_ns() : 0;
  pthread_mutex_unlock(&oracle.mutex);
  for (unsigned i = 0; i < pauses; i++) sched_yield();
  pthread_mutex_lock(&oracle.mutex);
  if (pauses) oracle.paused_ns += oracle_now_ns() - begin;
}

static uint32_t oracle_current(void)
{
  return oracle_here.context ? (uint32_t)((char *)oracle_here.context - fake_primary) : 0;
}

static void oracle_begin_fault(uint32_t device);

static oracle_scope oracle_enter(const char *name, bool can_fail)
{
  pthread_mutex_lock(&oracle.mutex);
  oracle_pause();
  if (oracle_here.is_in_function) oracle_violation("a function that a stream calls calls %s", name);
  oracle_result->driver_calls++;
  oracle.call_count++;
  oracle_here.is_in_driver = true;
  /* calls that query or set the current context still work */
  bool is_of_context = !strncmp(name, "cuCtx", 5) || !strncmp(name, "cuDevicePrimaryCtx", 18);
  if (oracle.is_faulty[oracle_current()] && !is_of_context)
    return (oracle_scope){ CUDA_ILLEGAL_ADDRESS };
  if (is_of_context && oracle_here.fail_with == CUDA_ILLEGAL_ADDRESS) can_fail = false;
  if (!can_fail || !oracle_here.call || !oracle_here.fail_at || --oracle_here.fail_at)
    return (oracle_scope){ 0 };
  oracle_trace("      %s fails with %d\n", name, oracle_here.fail_with);
  if (oracle_here.fail_more > 0) {
    oracle_here.fail_more--;
    oracle_here.fail_at = 1;
  }
  if (oracle_here.fail_with == CUDA_ILLEGAL_ADDRESS) oracle_begin_fault(oracle_current());
  return (oracle_scope){ oracle_here.fail_with };
}
static void oracle_leave(const oracle_scope *scope)
{
  (void)scope;
  oracle_here.is_in_driver = false;
  pthread_mutex_unlock(&oracle.mutex);
}
/* Calls foreign code without the mutex. */
static void oracle_call_out(void (*function)(void *user), void *user)
{
  bool was_inside = oracle_here.is_in_driver;
  oracle_here.is_in_driver = false;
  pthread_mutex_unlock(&oracle.mutex);
  function(user);
  pthread_mutex_lock(&oracle.mutex);
  oracle_here.is_in_driver = was_inside;
}
static void oracle_call_hook(void *user)
{
  _Atomic(oracle_hook) *hook = user;
  oracle_hook function = atomic_exchange(hook, NULL);
  if (function) function();
}
#define ORACLE_SCOPE(can_fail) \
  __attribute__((cleanup(oracle_leave), unused)) oracle_scope scope_ = \
    oracle_enter(__func__ + 7, can_fail); \
  if (scope_.result) return scope_.result
#define ORACLE_CALL() ORACLE_SCOPE(true)
/* Used for calls that release an object. Such calls do not fail, because a caller cannot handle the
 * failure. */
#define ORACLE_RELEASE() ORACLE_SCOPE(false)
#define ORACLE_NAME (__func__ + 7)
#define ORACLE_TRY(call) \
  do { \
    int result_ = (call); \
    if (result_) return result_; \
  } while (0)

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

/* Leaves space in the table for per-thread streams, whose creation cannot fail. */
static int oracle_make_stream(void **stream, unsigned flags)
{
  enum { THREADS_OWN = 32 };
  if (oracle.stream_count + THREADS_OWN > ORACLE_STREAMS) return CUDA_OUT_OF_MEMORY;
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
  bool is_called; /* a thread has called the function, and it has not returned yet */
  oracle_clock clock;
  void (*function)(void *user);
  void *user;
} oracle_function;

enum { ORACLE_FUNCTIONS = 256 };

/* Host functions that have not returned, in the order in which they were queued, and their
 * storage. */
static struct {
  uint32_t count;
  oracle_function *items[ORACLE_FUNCTIONS];
  oracle_function places[ORACLE_FUNCTIONS]; /* an entry without a function is free */
} oracle_functions;
static pthread_cond_t oracle_function_returns = PTHREAD_COND_INITIALIZER;

static bool oracle_is_function_before(const oracle_function *function, const oracle_clock *clock)
{
  return function->tick <= clock->at[function->stream];
}

/* Returns the next host function that a stream can call, which is so when the functions before it
 * have returned. Returns NULL if no such function comes before the clock. If clock is NULL, all
 * functions are considered. */
static oracle_function *oracle_next_function(const oracle_clock *clock)
{
  for (uint32_t i = 0; i < oracle_functions.count; i++) {
    oracle_function *function = oracle_functions.items[i];
    bool is_next = !function->is_called && (!clock || oracle_is_function_before(function, clock));
    for (uint32_t k = 0; k < i && is_next; k++)
      is_next = !oracle_is_function_before(oracle_functions.items[k], &function->clock);
    if (is_next) return function;
  }
  return NULL;
}

static void oracle_remove_function(oracle_function *function)
{
  uint32_t i = 0;
  while (oracle_functions.items[i] != function) i++;
  memmove(&oracle_functions.items[i], &oracle_functions.items[i + 1],
          (--oracle_functions.count - i) * sizeof *oracle_functions.items);
  *function = (oracle_function){ 0 };
}

/* When a host function is called, all operations before it have happened, also for threads to which
 * it passes information before it returns. The function's own work is over when it has returned. */
static void oracle_call_function(oracle_function *function)
{
  oracle_clock before = function->clock;
  before.at[function->stream] = function->tick - 1;
  function->is_called = true;
  oracle_trace("      host function of %s is called\n",
               oracle_stream_text(oracle.streams[function->stream]));
  oracle_join(&oracle.host, &before);
  oracle_here.is_in_function = true;
  oracle_call_out(function->function, function->user);
  oracle_here.is_in_function = false;
  oracle_call_out(oracle_call_hook, &oracle_in_function);
  oracle_join(&oracle.host, &function->clock);
  oracle_remove_function(function);
  pthread_cond_broadcast(&oracle_function_returns);
}

static bool oracle_has_functions(const oracle_clock *clock)
{
  for (uint32_t i = 0; i < oracle_functions.count; i++)
    if (oracle_is_function_before(oracle_functions.items[i], clock)) return true;
  return false;
}

/* Calls the host functions that come before the clock, and waits for those that other threads have
 * called. The caller holds the mutex, which is released meanwhile. */
static void oracle_run_functions(const oracle_clock *clock)
{
  while (oracle_has_functions(clock)) {
    oracle_function *function = oracle_next_function(clock);
    if (function) oracle_call_function(function);
    else pthread_cond_wait(&oracle_function_returns, &oracle.mutex);
  }
}

/* Returns whether other threads are running host functions that come before the clock. */
static bool oracle_has_called_functions(const oracle_clock *clock)
{
  for (uint32_t i = 0; i < oracle_functions.count; i++) {
    const oracle_function *function = oracle_functions.items[i];
    if (function->is_called && oracle_is_function_before(function, clock)) return true;
  }
  return false;
}

/* Lets a stream run one host function. */
static void oracle_run_function(void)
{
  oracle_function *function = oracle_next_function(NULL);
  if (function) oracle_call_function(function);
}

static void oracle_add_function(const oracle_stream *stream, void (*function)(void *user),
                                void *user)
{
  while (oracle_functions.count == ORACLE_FUNCTIONS) {
    if (oracle_next_function(NULL)) oracle_run_function();
    else pthread_cond_wait(&oracle_function_returns, &oracle.mutex);
  }
  oracle_function *made = oracle_functions.places;
  while (made->function) made++;
  *made = (oracle_function){ .stream = stream->index,
                             .tick = stream->clock.at[stream->index],
                             .clock = stream->clock,
                             .function = function,
                             .user = user };
  oracle_functions.items[oracle_functions.count++] = made;
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

/* Discards the work that is queued on the device, with its uses of memory. */
static void oracle_stop_device(uint32_t device)
{
  oracle.is_faulty[device] = true;
  for (uint32_t i = 0; i < oracle.stream_count; i++)
    if (oracle.streams[i]->device == device) oracle_join(&oracle.host, &oracle.streams[i]->clock);
  for (uint32_t i = oracle_functions.count; i-- > 0;) {
    oracle_function *function = oracle_functions.items[i];
    if (!function->is_called && oracle.streams[function->stream]->device == device)
      oracle_remove_function(function);
  }
  pthread_cond_broadcast(&oracle_function_returns);
}

/* A kernel has failed. With driver 580 the calls for every other device of the process give the
 * fault too, each until that device is reset. */
static void oracle_begin_fault(uint32_t device)
{
  for (uint32_t i = 0; i < ORACLE_DEVICES; i++)
    if (i == device || oracle.spreads_faults) oracle_stop_device(i);
}

/* ---- waiting ---- */

/* Waits for the work that was queued when the wait began. Other threads can run meanwhile. */
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
  if (oracle.is_faulty[device]) return CUDA_ILLEGAL_ADDRESS;
  oracle_call_out(oracle_call_hook, &oracle_before_wait);
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
/* A stream is done when its host functions have been called, because other work does not really
 * run. */
static int oracle_cuStreamQuery(void *handle)
{
  ORACLE_CALL();
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  ORACLE_TRY(oracle_look_at(stream, ORACLE_NAME));
  oracle_clock clock = oracle_next(stream);
  bool is_done = oracle.call_count % 3 == 0 && !oracle_has_called_functions(&clock);
  oracle_trace("      cuStreamQuery of %s: %s\n", oracle_stream_text(stream),
               is_done ? "done" : "not ready");
  if (!is_done) return CUDA_NOT_READY;
  oracle_wait(clock);
  return 0;
}

typedef struct oracle_event {
  const char *gone;
  uint32_t device;
  oracle_clock clock;
  uint64_t capture; /* number of the capture in which the event was recorded, or 0 */
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
  /* CUDA, "Stream synchronization behavior": "When an action is taken in the legacy stream such as
   * a kernel launch or cudaStreamWaitEvent(), [...] then all blocking streams wait on the legacy
   * stream." */
  if (stream->is_legacy) oracle_tick(stream);
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
  if (oracle.call_count % 3 || oracle_has_called_functions(&event->clock)) return CUDA_NOT_READY;
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

#include "oracle_device.h"

#endif
