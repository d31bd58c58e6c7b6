/* Tests the worker threads for launches on the CPU. They check how many workers run at once, and
 * that no launch waits for a worker that has not begun. They cover forks and the end of the
 * threads. Tests with a simulated clock check how many threads kjit uses for a launch. */
#include "kj_test.h"

#include <dirent.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../seed.h"
#include "cpu/cpu.h"

enum { THREADS = 4, MOST_INDICES = 40 };

static unsigned count_process_threads(void)
{
  unsigned count = 0;
  DIR *folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder));) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* ThreadSanitizer starts a thread of its own with the first thread, and ends a forked child that
 * starts a thread.
 */
#if defined(__SANITIZE_THREAD__)
enum { IS_WATCHED = 1 };
#else
enum { IS_WATCHED = 0 };
#endif

/* Waits until the process has this number of threads. The system lists a joined thread for a short
 * time. */
static void wait_for_threads(unsigned count)
{
  while (!IS_WATCHED && count_process_threads() > count) sched_yield();
}

/* ---- sharing ---- */

typedef struct shared {
  _Atomic uint32_t inside, most, counts[MOST_INDICES];
  pthread_t caller;
  _Atomic bool is_foreign; /* index 0 ran on another thread */
} shared;

static void note(void *data, size_t index)
{
  static _Thread_local uint32_t state;
  shared *s = data;
  uint32_t inside = atomic_fetch_add(&s->inside, 1) + 1, most = atomic_load(&s->most);
  while (inside > most && !atomic_compare_exchange_weak(&s->most, &most, inside)) {}
  atomic_fetch_add(&s->counts[index], 1);
  if ((index == 0) != (pthread_equal(pthread_self(), s->caller) != 0)) s->is_foreign = true;
  for (uint32_t i = (state = state * 1664525 + 1013904223) >> 28; i-- > 0;) sched_yield();
  atomic_fetch_sub(&s->inside, 1);
}

static void *share_often(void *nothing)
{
  (void)nothing;
  for (uint32_t round = 0; round < 200; round++) {
    shared s = { .caller = pthread_self() };
    size_t count = 2 + round % (MOST_INDICES - 1);
    kj_share_work(count, note, &s);
    assert_int_equal(s.inside, 0);
    assert_int_equal(s.counts[0], 1);
    for (size_t i = 0; i < MOST_INDICES; i++) assert_true(s.counts[i] <= (i < count));
    assert_false(s.is_foreign);
    assert_true(s.most <= KJ_MOST_WORKERS);
  }
  return NULL;
}

static void test_sharing(void **state)
{
  (void)state;
  unsigned before = count_process_threads();
  for (int round = 0; round < 3; round++) {
    pthread_t threads[THREADS];
    kj_open_workers(THREADS);
    kj_open_workers(1);
    for (int i = 0; i < THREADS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, share_often, NULL), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    kj_close_workers();
    (void)share_often(NULL);
    kj_close_workers();
    wait_for_threads(before);
  }
}

/* ---- one limit for all launches ---- */

static shared all;

static void note_all(void *data, size_t index)
{
  (void)data;
  for (int i = 0; i < 4; i++) {
    uint32_t inside = atomic_fetch_add(&all.inside, 1) + 1, most = atomic_load(&all.most);
    while (inside > most && !atomic_compare_exchange_weak(&all.most, &most, inside)) {}
    usleep(100);
    atomic_fetch_sub(&all.inside, 1);
    if (index && kj_leave_work()) return;
  }
}

static void *share_all(void *nothing)
{
  (void)nothing;
  for (int i = 0; i < 50; i++) kj_share_work(8, note_all, NULL);
  return NULL;
}

static void test_bound(void **state)
{
  (void)state;
  pthread_t threads[2];
  uint32_t most = kj_count_cores() > THREADS ? kj_count_cores() : THREADS;
  all = (shared){ 0 };
  kj_open_workers(THREADS);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, share_all, NULL), 0);
  (void)share_all(NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  assert_true(all.most <= most + 2); /* until the workers leave because of the two other launches */
  wait_for_threads(most);
  kj_close_workers();
}

/* ---- a launch does not wait for busy workers ---- */

static _Atomic uint32_t held;
static _Atomic bool is_free;

static void hold(void *data, size_t index)
{
  (void)data, (void)index;
  atomic_fetch_add(&held, 1);
  while (!is_free) sched_yield();
}

static void *hold_all(void *count)
{
  kj_share_work(*(size_t *)count, hold, NULL);
  return NULL;
}

static void test_busy(void **state)
{
  (void)state;
  pthread_t holder;
  size_t count = kj_count_cores() > THREADS ? kj_count_cores() : THREADS;
  held = 0;
  is_free = false;
  kj_open_workers(THREADS);
  assert_int_equal(pthread_create(&holder, NULL, hold_all, &count), 0);
  while (held < count) sched_yield();
  shared s = { .caller = pthread_self() };
  kj_share_work(3, note, &s); /* or this hangs */
  assert_int_equal(s.counts[0], 1);
  assert_int_equal(s.counts[1] + s.counts[2], 0);
  is_free = true;
  pthread_join(holder, NULL);
  kj_close_workers();
}

/* ---- several launches that each want a part of the cores use all cores together ---- */

static void *hold_three(void *nothing)
{
  (void)nothing;
  kj_share_work(3, hold, NULL);
  return NULL;
}

static void test_two_launches(void **state)
{
  (void)state;
  pthread_t threads[2];
  held = 0;
  is_free = false;
  kj_open_workers(6);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, hold_three, NULL), 0);
  while (held < 6) sched_yield(); /* or this hangs */
  is_free = true;
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  kj_close_workers();
}

/* ---- a worker that has left for another launch returns when the other launch has ended ---- */

static _Atomic uint32_t helping;
static _Atomic bool is_long_over;

static void work_long(void *data, size_t index)
{
  (void)data;
  if (index) atomic_fetch_add(&helping, 1);
  while (!is_long_over && !(index && kj_leave_work())) sched_yield();
  if (index) atomic_fetch_sub(&helping, 1);
}

static void *launch_long(void *count)
{
  kj_share_work(*(size_t *)count, work_long, NULL);
  return NULL;
}

static void *hold_two(void *nothing)
{
  (void)nothing;
  kj_share_work(2, hold, NULL);
  return NULL;
}

static void test_return(void **state)
{
  (void)state;
  pthread_t longer, other;
  size_t count = kj_count_cores() > THREADS ? kj_count_cores() : THREADS;
  helping = held = 0;
  is_free = is_long_over = false;
  kj_open_workers(THREADS);
  assert_int_equal(pthread_create(&longer, NULL, launch_long, &count), 0);
  while (helping < count - 1) sched_yield();
  assert_int_equal(pthread_create(&other, NULL, hold_two, NULL), 0);
  while (helping > count - 2) sched_yield();
  is_free = true;
  pthread_join(other, NULL);
  while (helping < count - 1) sched_yield(); /* or this hangs */
  is_long_over = true;
  pthread_join(longer, NULL);
  kj_close_workers();
}

/* ---- workers run on all cores of the process, not only on those of the first launching thread
 * ---- */

static cpu_set_t cores_of_worker;

static void look_at_cores(void *data, size_t index)
{
  (void)data;
  if (index) sched_getaffinity(0, sizeof cores_of_worker, &cores_of_worker);
  if (index) is_free = true;
  while (!is_free) sched_yield();
}

static void *launch_pinned(void *nothing)
{
  (void)nothing;
  cpu_set_t all_cores, one;
  sched_getaffinity(0, sizeof all_cores, &all_cores);
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
    if (CPU_ISSET(i, &all_cores)) CPU_SET(i, &one);
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  kj_share_work(2, look_at_cores, NULL);
  assert_true(CPU_EQUAL(&cores_of_worker, &all_cores));
  return NULL;
}

static void test_cores(void **state)
{
  (void)state;
  pthread_t thread;
  is_free = false;
  kj_open_workers(2);
  assert_int_equal(pthread_create(&thread, NULL, launch_pinned, NULL), 0);
  pthread_join(thread, NULL);
  kj_close_workers();
}

/* ---- fork ---- */

static void test_child(void **state)
{
  (void)state;
  if (IS_WATCHED) skip();
  kj_open_workers(THREADS);
  (void)share_often(NULL);
  pid_t child = fork();
  if (!child) {
    alarm(100);
    kj_open_workers(2);
    (void)share_often(NULL);
    kj_close_workers();
    wait_for_threads(1);
    _exit(0);
  }
  int status = 1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  (void)share_often(NULL);
  kj_close_workers();
}

/* ---- the number of threads for a launch ---- */

/* A simulated machine, which determines the time of a launch for each number of threads. */
typedef struct machine {
  /* efficiency of a second thread; a negative value means that threads slow each other down */
  double unit_ns, start_ns, efficiency;
} machine;

static double time_on(const machine *m, const kj_cpu_work *work, uint32_t workers)
{
  double alone = m->unit_ns * (double)work->size + 100;
  return workers == 1 ? alone : m->start_ns + alone / (1 + m->efficiency * ((double)workers - 1));
}

static uint32_t next_random(uint32_t *seed)
{
  *seed = *seed * 1664525 + 1013904223;
  return *seed >> 8;
}

/* Simulates a launch and returns its time. One launch in 64 is interrupted for milliseconds. */
static double launch_on(const machine *m, kj_cpu_cost *cost, const kj_cpu_work *work,
                        uint32_t *seed)
{
  kj_spread spread = kj_choose_spread(cost, work);
  uint64_t blocks = work->units > 1024 ? 1024 : work->units, lead = kj_count_lead(&spread, blocks);
  double share = (double)lead / (double)blocks, time = share * time_on(m, work, 1);
  assert_true(spread.workers >= 1 && spread.workers <= work->most && spread.workers <= work->units);
  if (lead) kj_follow_lead(cost, work, &spread, time / share);
  time += (1 - share) * time_on(m, work, spread.workers);
  time *= 0.9 + next_random(seed) % 1000 * 2e-4;
  double late = next_random(seed) % 64 ? 0 : 4e6;
  if (spread.is_timed) kj_note_time(cost, work, &spread, (uint64_t)(time + late));
  return time;
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of(const machine *m, kj_cpu_cost *cost, const kj_cpu_work *work,
                        uint32_t *seed)
{
  enum { LAUNCHES = 400, SETTLED = 200 };
  double times[LAUNCHES];
  for (int i = 0; i < LAUNCHES; i++) times[i] = launch_on(m, cost, work, seed);
  qsort(times + SETTLED, LAUNCHES - SETTLED, sizeof *times, compare);
  return times[SETTLED + (LAUNCHES - SETTLED) / 2];
}

static void expect_good(const machine *m, kj_cpu_cost *cost, const kj_cpu_work *work,
                        uint32_t *seed)
{
  uint32_t most = work->most < work->units ? work->most : (uint32_t)work->units;
  double own = median_of(m, cost, work, seed), alone = time_on(m, work, 1),
         wide = time_on(m, work, most), better = alone < wide ? alone : wide;
  if (own > 1.2 * better + 200)
    fail_msg(
      "size %llu, units %llu, %u threads, unit %g ns, start %g ns, efficiency %g: %g ns, not "
      "%g or %g",
      (unsigned long long)work->size, (unsigned long long)work->units, most, m->unit_ns,
      m->start_ns, m->efficiency, own, alone, wide);
}

static void test_choices(void **state)
{
  (void)state;
  static const double units_ns[] = { 0.1, 1, 30, 5000 }, efficiencies[] = { 1, 0.8, 0.1, -0.03 };
  uint32_t seed = kj_draw_seed();
  for (int i = 0; i < 400; i++) {
    machine m = { units_ns[next_random(&seed) % 4], 4000 + next_random(&seed) % 3000,
                  efficiencies[next_random(&seed) % 4] };
    uint64_t size = (uint64_t)1 << next_random(&seed) % 24;
    kj_cpu_work work = { .size = size,
                         .units = next_random(&seed) % 2 ? size : 1 + next_random(&seed) % size,
                         .most = 2 + next_random(&seed) % 15 };
    kj_cpu_cost cost = { 0 };
    /* Skip cases with few long blocks that slow each other down, because one thread is not tried
     * for all of them. */
    if (m.efficiency < 0 && work.units < 64 && m.unit_ns * (double)size > 2e4) continue;
    expect_good(&m, &cost, &work, &seed);
    m.efficiency = 0; /* other processes use the cores now; later the cores are free again */
    for (int j = 0; j < 40; j++) (void)median_of(&m, &cost, &work, &seed);
    if (m.unit_ns * (double)size > 1e6) expect_good(&m, &cost, &work, &seed);
  }
}

/* Launches of one size take very different times. The launches that take long are spread over
 * several threads.
 */
static void test_varied(void **state)
{
  (void)state;
  kj_cpu_cost cost = { 0 };
  kj_cpu_work work = { .size = 4096, .units = 4096, .most = 8 };
  machine quick = { 0.1, 3000, 1 }, slow = { 3000, 3000, 1 };
  uint32_t seed = 1;
  double time = 0;
  for (int i = 0; i < 4000; i++) {
    (void)launch_on(&quick, &cost, &work, &seed);
    double one = launch_on(&slow, &cost, &work, &seed);
    if (i >= 3900) time += one;
  }
  assert_true(time / 100 < 0.5 * time_on(&slow, &work, 1));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_sharing), cmocka_unit_test(test_bound),
    cmocka_unit_test(test_busy),    cmocka_unit_test(test_two_launches),
    cmocka_unit_test(test_return),  cmocka_unit_test(test_cores),
    cmocka_unit_test(test_child),   cmocka_unit_test(test_choices),
    cmocka_unit_test(test_varied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
