/* What a launch that finds its code does besides launching: it allocates nothing, takes no lock, asks the driver nothing. The program's own malloc and
 * pthread_mutex_lock stand in front of the C library's and count. */
#include "kj_test.h"

#include <dlfcn.h>
#include <stdio.h>

#include "dispatch/dispatch.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

/* Sanitizers have their own. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
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
void *aligned_alloc(size_t alignment, size_t size) { return allocations++, __libc_memalign(alignment, size); }
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
  "kernel plane(r: f32[:, :] C, x: f32[:, :] C, n: i32) @block(8, 8) @grid(ceil_div(r.shape[0], 8), ceil_div(r.shape[1], 8)) { r[0, 0] = x[0, 0] * n }\n"
  "kernel many(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) {\n"
  "  a[0] = b[0] + c[0] + d[0] + e[0] + f[0] + g[0] + h[0] + i + j + k + l + m + n + o + p\n}\n"
  "kernel turn(r, x) { r[0, 0] = x[0, 0] }\n";

typedef struct row {
  const char *kernel, *arguments; /* a: array, m: matrix, t: its transpose, f: f32, i: i32, d: f64, n: number */
  bool has_grid;
} row;

static const row rows[] = {
  { "none", "", true },   { "axpy", "afaa", false }, { "axpy", "anaa", false }, { "plane", "mmi", false }, { "many", "aaaaaaaaffffffff", true },
  { "turn", "mt", true }, /* no plan: the general way */
};

_Alignas(256) static float memory[16 * 1024];
static int64_t length = 1024, shape[] = { 32, 32 }, strides[] = { 1, 32 };
static kjit_tensor tensors[16];

static kjit_arg make_argument(char kind, int index)
{
  kjit_tensor *tensor = &tensors[index];
  *tensor = (kjit_tensor){ .data = memory + index * 1024, .device_type = 2, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = &length };
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

static void expect_only_launches(const char *what, counts before, counts after, int launches)
{
  bool is_clean = after.allocations == before.allocations && after.locks == before.locks && after.calls - before.calls == launches;
  if (!is_clean)
    print_error("%s: %llu allocations, %llu locks, %d driver calls for %d launches\n", what, (unsigned long long)(after.allocations - before.allocations),
                (unsigned long long)(after.locks - before.locks), after.calls - before.calls, launches);
  assert_true(is_clean);
  assert_int_equal(after.launches - before.launches, launches);
}

enum { TIMES = 100 };

static void check_row(kjit_context *context, kjit_module *module, kjit_device *device, const row *row)
{
  kjit_arg arguments[16];
  size_t argument_count = strlen(row->arguments);
  kjit_kernel *kernel = kernel_of(module, row->kernel);
  kjit_launch_config config = { .device = device };
  kjit_prepared *prepared = NULL;
  int failures = 0;
  for (size_t i = 0; i < argument_count; i++) arguments[i] = make_argument(row->arguments[i], (int)i);
  if (row->has_grid) config.grid[0] = config.block[0] = 32;
  if (kjit_launch(kernel, &config, arguments, argument_count) != KJIT_OK) print_error("%s\n", last_message(context)), fail();

  counts before = count();
  for (int i = 0; i < TIMES; i++) failures += kjit_launch(kernel, &config, arguments, argument_count) != KJIT_OK;
  expect_only_launches(row->kernel, before, count(), TIMES);

  assert_int_equal(kjit_prepare_launch(kernel, &config, arguments, argument_count, &prepared), KJIT_OK);
  before = count();
  for (int i = 0; i < TIMES; i++) {
    for (size_t k = 0; k < argument_count; k++) failures += kjit_set_prepared_argument(prepared, k, &arguments[k]) != KJIT_OK;
    failures += kjit_run_prepared(prepared, NULL) != KJIT_OK;
    failures += kjit_run_prepared(prepared, NULL) != KJIT_OK;
  }
  expect_only_launches("prepared", before, count(), 2 * TIMES);
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
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(context, module, device, &rows[i]);
  kjit_destroy_context(context);
}

/* The counters count: a test that sees nothing would pass too. */
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
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_counters), cmocka_unit_test(test_hits) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
