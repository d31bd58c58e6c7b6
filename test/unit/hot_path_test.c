/* A launch that finds its code allocates nothing, takes no lock and makes no driver call except the
 * launch. The malloc and pthread_mutex_lock of this program replace the C library's functions and
 * count the calls. */
#include "kj_test.h"

#include <dlfcn.h>
#include <stdio.h>

#include "launch/fast_path.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

/* Sanitizers have their own, and builds with assertions also take the slow path next to the fast
 * path.
 */
#if !defined(NDEBUG) || defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define COUNTS_LIBRARY_CALLS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define COUNTS_LIBRARY_CALLS 0
#endif
#endif
#ifndef COUNTS_LIBRARY_CALLS
#define COUNTS_LIBRARY_CALLS 1
#endif

static uint64_t allocations, locks;

#if COUNTS_LIBRARY_CALLS
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size) { return allocations++, __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return allocations++, __libc_calloc(count, size); }
void *realloc(void *memory, size_t size) { return allocations++, __libc_realloc(memory, size); }
void *aligned_alloc(size_t alignment, size_t size)
{
  return allocations++, __libc_memalign(alignment, size);
}
void free(void *memory)
{
  allocations += memory != NULL;
  __libc_free(memory);
}

#define COUNT_LOCK(name, type) \
  int name(type *lock) \
  { \
    static int (*real)(type *); \
    locks++; \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name); \
    return real(lock); \
  }
COUNT_LOCK(pthread_mutex_lock, pthread_mutex_t)
COUNT_LOCK(pthread_mutex_trylock, pthread_mutex_t)
COUNT_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNT_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
COUNT_LOCK(pthread_spin_lock, pthread_spinlock_t)
#endif

static const char source[] =
  "kernel none() { }\n"
  "kernel axpy(r, a, x, y) { for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] } }\n"
  "kernel plane(r: f32[:, :] C, x: f32[:, :] C, n: i32) @block(8, 8) @grid(ceil_div(r.shape[0], "
  "8), ceil_div(r.shape[1], 8)) { r[0, 0] = x[0, 0] * n }\n"
  "kernel many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) {\n"
  "  a[0] = b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i + j + k + l + m + n + o + p\n}\n"
  "kernel turn(r, x) { r[0, 0] = x[0, 0] }\n";

typedef struct row {
  /* a: array, m: matrix, t: its transpose, f: f32, i: i32, d: f64, n: number */
  const char *kernel, *arguments;
  bool has_grid;
} row;

static const row rows[] = {
  { "none", "", true },
  { "axpy", "afaa", false },
  { "axpy", "anaa", false },
  { "plane", "mmi", false },
  { "many", "aaaaaaaaffffffff", true },
  { "turn", "mt", true }, /* the kernel has no tables, so launches take the slow path */
};

_Alignas(256) static float memory[16 * 1024];
static int64_t length = 1024, shape[] = { 32, 32 }, strides[] = { 1, 32 };
static kjit_tensor tensors[16];

static kjit_arg make_argument(char kind, int index)
{
  kjit_tensor *tensor = &tensors[index];
  *tensor = (kjit_tensor){ .data = memory + index * 1024,
                           .device_type = 2,
                           .rank = 1,
                           .code = 2,
                           .bits = 32,
                           .lanes = 1,
                           .shape = &length };
  if (kind == 'm' || kind == 't') {
    tensor->rank = 2;
    tensor->shape = shape;
    tensor->strides = kind == 't' ? strides : NULL;
  }
  switch (kind) {
  case 'f': return kjit_arg_f32(2);
  case 'd': return kjit_arg_f64(2);
  case 'i': return kjit_arg_i32(2);
  case 'n': return kjit_arg_number(2);
  default: return kjit_arg_tensor(tensor);
  }
}

typedef struct counts {
  uint64_t allocations, locks;
  int calls, launches;
} counts;

static counts count(void) { return (counts){ allocations, locks, cuda.calls, cuda.launches }; }

static void expect_only_launches(const char *what, counts before, counts after, int launches,
                                 int calls_of_each)
{
  bool is_clean = after.allocations == before.allocations && after.locks == before.locks &&
                  after.calls - before.calls == launches * calls_of_each;
  if (!is_clean)
    print_error("%s: %llu allocations, %llu locks, %d driver calls for %d launches\n", what,
                (unsigned long long)(after.allocations - before.allocations),
                (unsigned long long)(after.locks - before.locks), after.calls - before.calls,
                launches);
  assert_true(is_clean);
  assert_int_equal(after.launches - before.launches, launches);
}

enum { TIMES = 100 };

static void check_row(kjit_context *context, kjit_module *module, kjit_device *device,
                      const row *row)
{
  kjit_arg arguments[16];
  size_t argument_count = strlen(row->arguments);
  kjit_kernel *kernel = kernel_of(module, row->kernel);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  kjit_prepared *prepared = NULL;
  int failures = 0;
  for (size_t i = 0; i < argument_count; i++)
    arguments[i] = make_argument(row->arguments[i], (int)i);
  if (row->has_grid) config.grid[0] = config.block[0] = 32;
  if (kjit_launch(kernel, &config, arguments, argument_count) != KJIT_OK)
    print_error("%s\n", last_message(context)), fail();

  counts before = count();
  for (int i = 0; i < TIMES; i++)
    failures += kjit_launch(kernel, &config, arguments, argument_count) != KJIT_OK;
  expect_only_launches(row->kernel, before, count(), TIMES, FAKE_DEFAULT_LAUNCH);

  assert_int_equal(kjit_prepare_launch(kernel, &config, arguments, argument_count, &prepared),
                   KJIT_OK);
  before = count();
  for (int i = 0; i < TIMES; i++) {
    for (size_t k = 0; k < argument_count; k++)
      failures += kjit_set_prepared_argument(prepared, k, &arguments[k]) != KJIT_OK;
    failures += kjit_run_prepared(prepared, NULL) != KJIT_OK;
    failures += kjit_run_prepared(prepared, NULL) != KJIT_OK;
  }
  expect_only_launches("prepared", before, count(), 2 * TIMES, FAKE_DEFAULT_LAUNCH);
  assert_int_equal(failures, 0);
  kjit_destroy_prepared(prepared);
}

static void test_hits(void **state)
{
  (void)state;
  kj_diagnostics diagnostics = { 0 };
  cuda.devices = 1;
  kjit_context *context = make_fake_context();
  kjit_device *device = NULL;
  assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_OK);
  kjit_module *module = parse(context, source);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    check_row(context, module, device, &rows[i]);
  kjit_destroy_context(context);
}

/* kjit arrays, which store the streams that use them, and streams of the application. */
static void test_arrays(void **state)
{
  (void)state;
  kj_diagnostics diagnostics = { 0 };
  cuda = (fake_driver){ .devices = 1 };
  kjit_context *context = make_fake_context();
  kjit_device *device = NULL;
  kjit_stream *streams[2];
  kjit_arg arguments[4];
  kjit_prepared *prepared;
  int failures = 0;
  assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_OK);
  for (int i = 0; i < 2; i++) assert_int_equal(kjit_create_stream(device, &streams[i]), KJIT_OK);
  for (int i = 0; i < 4; i++) {
    kjit_array *array;
    assert_int_equal(kjit_create_array(device, KJIT_F32, &length, 1, &array), KJIT_OK);
    arguments[i] = i == 1 ? kjit_arg_f32(2) : kjit_arg_array(array);
  }
  kjit_kernel *kernel = kernel_of(parse(context, source), "axpy");
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = streams[0] };
  if (kjit_launch(kernel, &config, arguments, 4) != KJIT_OK)
    print_error("%s\n", last_message(context)), fail();
  counts before = count();
  for (int i = 0; i < TIMES; i++) {
    config.stream = streams[i % 2];
    failures += kjit_launch(kernel, &config, arguments, 4) != KJIT_OK;
  }
  expect_only_launches("arrays", before, count(), TIMES, 1);
  assert_int_equal(kjit_prepare_launch(kernel, &config, arguments, 4, &prepared), KJIT_OK);
  before = count();
  for (int i = 0; i < TIMES; i++)
    failures += kjit_run_prepared(prepared, streams[i % 2]) != KJIT_OK;
  expect_only_launches("arrays, prepared", before, count(), TIMES, 1);
  assert_int_equal(failures, 0);
  kjit_destroy_context(context);
}

/* ---- memory that a launch writes ---- */

typedef struct watched {
  const char *what;
  const void *at;
  size_t size_bytes;
  char *before;
} watched;

static void remember(watched *w)
{
  w->before = malloc(w->size_bytes);
  memcpy(w->before, w->at, w->size_bytes);
}

/* Checks that every changed byte is in the slot of this thread. */
static void expect_unchanged(const watched *w, const void *own, size_t own_bytes)
{
  const char *now = w->at, *first = own;
  size_t changed = 0;
  for (size_t i = 0; i < w->size_bytes; i++) {
    bool is_own = now + i >= first && now + i < first + own_bytes;
    if (now[i] != w->before[i] && !is_own)
      print_error("%s: byte %zu is written by a launch\n", w->what, i), fail();
    changed += now[i] != w->before[i];
  }
  if (own_bytes) assert_true(changed > 0); /* the launches were counted here */
  free(w->before);
}

/* Threads that launch one kernel at the same time share no cache line that a launch writes. In
 * shared objects only slots change, and each slot belongs to one thread. */
static void test_written_lines(void **state)
{
  (void)state;
  kj_diagnostics diagnostics = { 0 };
  cuda.devices = 1;
  kjit_context *context = make_fake_context();
  kjit_device *device = NULL;
  kjit_prepared *prepared = NULL;
  kjit_arg arguments[4];
  assert_int_equal(kj_use_driver(context, find_fake, NULL, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_OK);
  kjit_kernel *kernel = kernel_of(parse(context, source), "axpy");
  for (int i = 0; i < 4; i++) arguments[i] = make_argument("afaa"[i], i);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  for (int i = 0; i < 2; i++) assert_int_equal(kjit_launch(kernel, &config, arguments, 4), KJIT_OK);
  assert_int_equal(kjit_prepare_launch(kernel, &config, arguments, 4, &prepared), KJIT_OK);
  kjit_specialization *specialization = kjit_get_specialization(kernel, 0);
  uint32_t own = kj_slot();
  assert_int_equal((uintptr_t)&specialization->holds[1] - (uintptr_t)&specialization->holds[0],
                   KJ_SLOT_BYTES);
  watched all[] = {
    { .what = "kernel", .at = kernel, .size_bytes = sizeof *kernel },
    { .what = "device", .at = device, .size_bytes = sizeof *device },
    { .what = "runtime", .at = context->runtime, .size_bytes = sizeof(kj_runtime) },
    { .what = "table", .at = specialization->table, .size_bytes = sizeof(kj_launch_table) },
    { .what = "specialization", .at = specialization, .size_bytes = sizeof *specialization },
    { .what = "context", .at = context, .size_bytes = sizeof *context }
  };
  enum { ALL = sizeof all / sizeof *all };
  for (int i = 0; i < ALL; i++) remember(&all[i]);
  for (int i = 0; i < TIMES; i++) {
    assert_int_equal(kjit_launch(kernel, &config, arguments, 4), KJIT_OK);
    assert_int_equal(kjit_run_prepared(prepared, NULL), KJIT_OK);
  }
  for (int i = 0; i < ALL - 2; i++) expect_unchanged(&all[i], NULL, 0);
  expect_unchanged(&all[ALL - 2], &specialization->holds[own], sizeof specialization->holds[own]);
  expect_unchanged(&all[ALL - 1], &context->launches[own], sizeof context->launches[own]);
  kjit_destroy_prepared(prepared);
  kjit_destroy_context(context);
}

/* Tests the counters themselves, because the other tests would also pass if the counters did not
 * count. */
static void test_counters(void **state)
{
  (void)state;
#if COUNTS_LIBRARY_CALLS
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  counts before = count();
  void *volatile block = malloc(16);
  free(block);
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  counts after = count();
  assert_int_equal(after.allocations - before.allocations, 2);
  assert_int_equal(after.locks - before.locks, 1);
#endif
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_counters), cmocka_unit_test(test_hits),
                                      cmocka_unit_test(test_written_lines),
                                      cmocka_unit_test(test_arrays) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
