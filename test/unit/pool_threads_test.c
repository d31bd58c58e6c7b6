/* Many threads create, use and release arrays on their own streams and on shared streams. No thread
 * gets memory that another thread still has, and the counts of the pool are correct at the end. The
 * fake driver supports only one thread, so its entry points take a lock here. */
#include "gpu_test.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local void *current;

static int locked_cuCtxGetCurrent(void **context)
{
  *context = current;
  return 0;
}
static int locked_cuCtxSetCurrent(void *context)
{
  current = context;
  return 0;
}
#define LOCKED(name, parameters, arguments) \
  static int locked_##name parameters \
  { \
    pthread_mutex_lock(&lock); \
    int result = fake_##name arguments; \
    pthread_mutex_unlock(&lock); \
    return result; \
  }
LOCKED(cuMemAlloc, (uint64_t * address, size_t size), (address, size))
LOCKED(cuMemFree, (uint64_t address), (address))
LOCKED(cuMemHostAlloc, (void **memory, size_t size, unsigned flags), (memory, size, flags))
LOCKED(cuMemFreeHost, (void *memory), (memory))
LOCKED(cuMemsetD32Async, (uint64_t address, unsigned value, size_t count, void *stream),
       (address, value, count, stream))
LOCKED(cuMemcpyDtoHAsync, (void *to, uint64_t from, size_t size, void *stream),
       (to, from, size, stream))
LOCKED(cuEventCreate, (void **event, unsigned flags), (event, flags))
LOCKED(cuEventDestroy, (void *event), (event))
LOCKED(cuEventRecord, (void *event, void *stream), (event, stream))
LOCKED(cuStreamWaitEvent, (void *stream, void *event, unsigned flags), (stream, event, flags))
LOCKED(cuStreamCreate, (void **stream, unsigned flags), (stream, flags))
LOCKED(cuStreamDestroy, (void *stream), (stream))
LOCKED(cuStreamQuery, (void *stream), (stream))
LOCKED(cuStreamSynchronize, (void *stream), (stream))
LOCKED(cuLaunchHostFunc, (void *stream, void (*function)(void *user), void *user),
       (stream, function, user))
#undef LOCKED

static void *find_locked(void *user, const char *symbol)
{
  static const struct {
    const char *symbol;
    void *address;
  } rows[] = {
#define ROW(name, symbol) { symbol, (void *)(uintptr_t)locked_##name }
    ROW(cuCtxGetCurrent, "cuCtxGetCurrent"),   ROW(cuCtxSetCurrent, "cuCtxSetCurrent"),
    ROW(cuMemAlloc, "cuMemAlloc_v2"),          ROW(cuMemFree, "cuMemFree_v2"),
    ROW(cuMemHostAlloc, "cuMemHostAlloc"),     ROW(cuMemFreeHost, "cuMemFreeHost"),
    ROW(cuMemsetD32Async, "cuMemsetD32Async"), ROW(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2"),
    ROW(cuEventCreate, "cuEventCreate"),       ROW(cuEventDestroy, "cuEventDestroy_v2"),
    ROW(cuEventRecord, "cuEventRecord"),       ROW(cuStreamWaitEvent, "cuStreamWaitEvent"),
    ROW(cuStreamCreate, "cuStreamCreate"),     ROW(cuStreamDestroy, "cuStreamDestroy_v2"),
    ROW(cuStreamQuery, "cuStreamQuery"),       ROW(cuStreamSynchronize, "cuStreamSynchronize"),
    ROW(cuLaunchHostFunc, "cuLaunchHostFunc"),
#undef ROW
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].symbol, symbol)) return rows[i].address;
  return find_fake(user, symbol);
}

enum { THREADS = 6, ROUNDS = 300, HELD = 4 };

typedef struct shared {
  kjit_context *context;
  kjit_device *device;
  kjit_stream *stream; /* stream of all threads for arrays */
} shared;

typedef struct worker {
  shared *s;
  uint32_t number;
  int failures;
} worker;

static uint32_t draw(uint32_t *seed, uint32_t below)
{
  *seed = *seed * 1664525u + 1013904223u;
  return (*seed >> 8) % below;
}

/* Returns whether all elements have the values that this thread has written. */
static bool holds(kjit_context *context, kjit_array *array, kjit_stream *stream, uint32_t value)
{
  uint32_t found[2048];
  size_t bytes = (size_t)kjit_get_tensor(array)->shape[0] * sizeof *found;
  (void)context;
  if (kjit_copy_to_host(array, found, bytes, stream) != KJIT_OK) return false;
  for (size_t i = 0; i < bytes / sizeof *found; i++)
    if (found[i] != value) return false;
  return true;
}

static void *work(void *data)
{
  worker *w = data;
  shared *s = w->s;
  kjit_array *held[HELD] = { NULL };
  uint32_t values[HELD] = { 0 }, seed = w->number;
  kjit_stream *own = NULL;
  for (int round = 0; round < ROUNDS; round++) {
    uint32_t slot = draw(&seed, HELD), value = w->number << 16 | (uint32_t)round;
    if (round % 50 == 0) {
      kjit_destroy_stream(own); /* arrays that were created on the stream keep it alive */
      w->failures += kjit_create_stream(s->device, &own) != KJIT_OK;
    }
    kjit_stream *streams[] = { NULL, own, s->stream }, *stream = streams[draw(&seed, 3)];
    if (held[slot]) w->failures += !holds(s->context, held[slot], own, values[slot]);
    kjit_release_array(held[slot]);
    int64_t length = 1 + draw(&seed, 2048);
    kjit_array_config config = { .size_bytes = sizeof config,
                                 .device = s->device,
                                 .element = KJIT_U32,
                                 .rank = 1,
                                 .shape = &length,
                                 .layout = KJIT_LAYOUT_C,
                                 .stream = stream };
    w->failures += kjit_create_array_with(&config, &held[slot]) != KJIT_OK;
    kjit_arg destination = kjit_arg_array(held[slot]), element = kjit_arg_u32(value);
    w->failures +=
      kjit_fill(s->context, &destination, &element, draw(&seed, 2) ? own : stream) != KJIT_OK;
    values[slot] = value;
    if (draw(&seed, 40) == 0) kjit_trim_memory(s->device, 4096);
  }
  for (int i = 0; i < HELD; i++) {
    if (held[i]) w->failures += !holds(s->context, held[i], own, values[i]);
    kjit_release_array(held[i]);
  }
  kjit_destroy_stream(own);
  return NULL;
}

static void test_threads(void **state)
{
  (void)state;
  kj_diagnostics diagnostics = { 0 };
  pthread_t threads[THREADS];
  worker workers[THREADS];
  cuda = (fake_driver){ .devices = 1 };
  fake_delete_all();
  shared s = { .context = make_fake_context() };
  assert_int_equal(kj_use_driver(s.context, find_locked, NULL, &diagnostics), KJIT_OK);
  s.device = gpu(s.context, 0);
  expect_ok(s.context, kjit_create_stream(s.device, &s.stream));
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){ .s = &s, .number = i + 1 };
    assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(workers[i].failures, 0);
  }
  kjit_memory_statistics statistics = memory_of(s.device);
  assert_int_equal(statistics.used_bytes, 0);
  assert_int_equal(statistics.allocations, THREADS * ROUNDS);
  assert_int_equal(statistics.hits + statistics.driver_allocations, THREADS * ROUNDS);
  assert_true(statistics.hits > THREADS * ROUNDS / 4);
  kjit_trim_memory(s.device, 0);
  assert_int_equal(cuda.allocations, 0);
  kjit_destroy_context(s.context);
  expect_nothing_left();
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_threads) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
