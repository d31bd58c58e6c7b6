/* Threads launch the kernels of a context that keeps the code of only a few kernels loaded. The
 * disk cache has the code of all kernels, so evictions and launches of the same code follow each
 * other within microseconds. If an eviction did not see a launch, it would unmap code that is
 * running.
 * RUN: rm -rf %t && %programs/evictions %t
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "stop_at_first.h"

enum { THREADS = 12, CONSTANTS = 12, COUNT = 8192, WANTED_EVICTIONS = 12000, MOST_SECONDS = 20 };

static kjit_kernel *kernel;
static atomic_bool is_over;

static void check_values(const int32_t *values, uint32_t constant)
{
  for (int32_t i = 0; i < COUNT; i++) CHECK(values[i] == (int32_t)constant * 3 + i);
}

/* Half of the threads launch, and the others run prepared launches, which keep the specialization
 * while its code is evicted and loaded again. */
static void *launch_often(void *number)
{
  uint64_t state = (uintptr_t)number;
  kjit_prepared *prepared[CONSTANTS] = { NULL };
  int32_t values[COUNT];
  const int64_t count = COUNT;
  kjit_tensor tensor = kjit_make_tensor(values, KJIT_I32, 1, &count);
  while (!atomic_load(&is_over)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint32_t constant = (uint32_t)(state >> 40) % CONSTANTS, often = state >> 60 ? 1 : 30;
    kjit_arg arguments[] = { kjit_arg_tensor(&tensor), kjit_arg_i32((int32_t)constant) };
    kjit_prepared **own = &prepared[constant];
    if ((uintptr_t)number % 2 && !*own) OK(kjit_prepare_launch(kernel, NULL, arguments, 2, own));
    for (uint32_t i = 0; i < often; i++) {
      memset(values, 0, sizeof values);
      if (*own) OK(kjit_run_prepared(*own, NULL));
      else OK(kjit_launch(kernel, NULL, arguments, 2));
      check_values(values, constant);
    }
    if (state >> 61 == 0) sched_yield();
  }
  for (uint32_t i = 0; i < CONSTANTS; i++) kjit_destroy_prepared(prepared[i]);
  return NULL;
}

static uint64_t count_evictions(void)
{
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_get_statistics(context, &statistics);
  return statistics.evictions;
}

int main(int argc, char **argv)
{
  static const char text[] =
    "kernel k(r, const C) { for i in grid_range(len(r)) { r[i] = C * 3 + i } }";
  pthread_t threads[THREADS];
  CHECK(argc == 2);
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = argv[1],
                         .code_limit_bytes = 3 << 10,
                         .variant_limit = 4 };
  OK(kjit_create_context(&config, &context));
  OK(kjit_parse_module(context, "evictions.kir", text, sizeof text - 1, &module));
  kernel = kernel_of("k");
  for (uintptr_t i = 0; i < THREADS; i++)
    CHECK(!pthread_create(&threads[i], NULL, launch_often, (void *)(i + 1)));
  const struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
  time_t end = time(NULL) + MOST_SECONDS;
  while (count_evictions() < WANTED_EVICTIONS && time(NULL) < end) nanosleep(&pause, NULL);
  atomic_store(&is_over, true);
  for (int i = 0; i < THREADS; i++) CHECK(!pthread_join(threads[i], NULL));
  printf("%llu evictions\n", (unsigned long long)count_evictions());
  CHECK(count_evictions() > CONSTANTS);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return 0;
}
