/* The pool of worker threads for launches on the CPU. The pool belongs to the process, not to a
 * context. So application threads that launch at the same time use the same workers, and at most
 * one thread runs on each core.
 *
 * A launch publishes an offer and runs its own share of the work. An idle worker joins the offer at
 * any time. When the launch has no work left to distribute, it withdraws the offer and waits only
 * for the workers that have joined. If no worker joins, because the machine is loaded, the launch
 * is as fast as on one thread.
 *
 * If launches follow each other closely, an idle worker spins for a while before it sleeps, unless
 * other threads need its core. It spins on its own variable, the box, to which the launch writes
 * the offer. So spinning workers do not contend for the mutex.
 *
 * Workers start when an offer needs them, sleep while no offer exists, and are joined when the last
 * device of the process is closed, because the application may unload the library afterwards. It
 * takes 1 to 2 us to wake a thread, so a launch wakes only FAN workers, and each of these wakes FAN
 * more. */
#include "cpu/cpu.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native/architecture.h"
#include "support/lock.h"

enum {
  MOST_THREADS = KJ_MOST_WORKERS - 1,
  /* Twice the stack that recursive functions in a kernel may use, and space for the worker
   * itself. */
  STACK_BYTES = 2 << 20,
  /* Number of times that the launching thread checks for unfinished workers before it sleeps. The
   * checks take about as long as one sleep with its wake-up. */
  TURNS = 200,
  FAN = 3, /* maximum number of threads that one thread wakes at a time */
  /* LOOKING_NS is the time for which a worker spins until the next launch; launches that follow
   * each other within this time count as frequent. If more than LOST_CORE_NS pass between two clock
   * readings, another thread has used the core, and no worker spins for CROWDED_NS. */
  LOOKING_NS = 50 * 1000,
  LOST_CORE_NS = 20 * 1000,
  CROWDED_NS = 10 * 1000 * 1000,
  IS_WAITING = 1 << 30 /* flag in offer.inside: the launching thread sleeps */
};

typedef struct offer {
  struct offer *next, **place; /* `place` is the pointer in the list that points to this offer, or
                                  NULL if the list does not contain the offer */
  void (*body)(void *data, size_t index);
  void *data;
  /* `count` is the number of indices; the launching thread has index 0. `begun` is the number of
   * indices taken so far. */
  size_t count, begun;
  _Atomic uint32_t inside; /* number of workers that run the body, plus the flag IS_WAITING */
  bool is_over;            /* the launching thread has no work left to distribute */
  /* indices that workers have returned early (kj_leave_work), so that other workers can take
   * them */
  uint32_t left_count;
  uint8_t left[MOST_THREADS];
} offer;

/* A worker's box contains its state, in a separate cache line. */
typedef struct box {
  _Alignas(64) _Atomic uintptr_t state; /* BUSY, LOOKING, or the address of the offer that the
                                         * worker must join */
  /* the worker's index in that offer; written before `state` while the mutex is held */
  size_t index;
} box;
enum { BUSY, LOOKING };

static struct {
  pthread_mutex_t users_mutex; /* protects users; held while threads are joined */
  uint32_t users;
  pthread_mutex_t mutex; /* protects the fields below; never held while a body runs */
  offer *offers, **end;  /* linked list, oldest offer first */
  /* maximum number of threads that run bodies at a time, including launching threads; never reduced
   * while a body runs */
  _Atomic uint32_t most;
  _Atomic uint32_t running; /* number of threads that run bodies; also read without the mutex */
  _Atomic uint32_t listed;  /* number of listed offers */
  uint32_t sleeping, woken; /* number of sleeping workers; number of those that were woken and do
                             * not run yet */
  uint32_t thread_count;
  uint64_t ended_ns;        /* end of the last launch, by kj_clock_ns() */
  _Atomic bool is_frequent; /* launches follow each other closely, so workers spin */
  _Atomic uint64_t crowded_until_ns;
  uint32_t asked;  /* number of workers that the current launches can use */
  cpu_set_t cores; /* union of the affinity masks of the threads that opened devices */
  bool is_closing;
  _Atomic uint32_t changes; /* futex on which idle workers sleep */
  pthread_t threads[MOST_THREADS];
  box boxes[MOST_THREADS];
} pool = { .users_mutex = PTHREAD_MUTEX_INITIALIZER,
           .mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP };

/* Checks the pool's invariants, with the mutex held. Does not check exact values of atomic counts
 * that other threads change without the mutex. */
static void check_pool(void)
{
  uint32_t listed = 0;
  if (!KJ_HAS_ASSERTIONS) return;
  for (const offer *at = pool.offers; at; at = at->next) {
    KJ_ASSERT(at->place && *at->place == at && !at->is_over);
    KJ_ASSERT(at->begun <= at->count && at->left_count < at->begun);
    KJ_ASSERT(at->begun < at->count || at->left_count); /* an index is left to distribute */
    listed++;
  }
  KJ_ASSERT(listed == atomic_load(&pool.listed));
  KJ_ASSERT(!listed || !*pool.end);
  KJ_ASSERT(pool.thread_count <= MOST_THREADS && pool.sleeping <= pool.thread_count);
}

static void lock_pool(void)
{
  kj_lock(&pool.mutex, KJ_LOCK_WORKERS);
  check_pool();
}

static void unlock_pool(void)
{
  check_pool();
  kj_unlock(&pool.mutex, KJ_LOCK_WORKERS);
}

/* sleep_on and wake ignore errors of the futex call. The word may have changed, or its memory may
 * have been freed. This is harmless: the operating system uses only the address of the word, and
 * woken threads check the condition again. */
static void sleep_on(_Atomic uint32_t *word, uint32_t seen)
{
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}
static void wake(_Atomic uint32_t *word, uint32_t most)
{
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

/* ---- offers; the caller holds the mutex ---- */

static void list_offer(offer *made)
{
  KJ_ASSERT(kj_is_locked_here(&pool.mutex) && !made->place && !made->is_over);
  if (!pool.offers) pool.end = &pool.offers;
  made->next = NULL;
  made->place = pool.end;
  *pool.end = made;
  pool.end = &made->next;
  pool.listed++;
  atomic_fetch_add(&pool.changes, 1);
}

static void take_back(offer *made)
{
  KJ_ASSERT(kj_is_locked_here(&pool.mutex));
  if (!made->place) return;
  KJ_ASSERT(*made->place == made && atomic_load(&pool.listed));
  *made->place = made->next;
  if (made->next) made->next->place = made->place;
  else pool.end = made->place;
  made->place = NULL;
  pool.listed--;
}

static size_t count_open(const offer *made) { return made->count - made->begun + made->left_count; }

static size_t take_index(offer *made)
{
  KJ_ASSERT(made->left_count || made->begun < made->count);
  size_t index = made->left_count ? made->left[--made->left_count] : made->begun++;
  if (!count_open(made)) take_back(made);
  return index;
}

/* Makes the index of a worker that left early available to other workers. This is needed because
 * the launch may run long after the overload of the machine has ended. */
static void return_index(offer *made, size_t index)
{
  if (made->is_over) return;
  KJ_ASSERT(index && index < made->begun && made->left_count < MOST_THREADS);
  for (uint32_t i = 0; i < made->left_count; i++) KJ_ASSERT(made->left[i] != index);
  made->left[made->left_count++] = (uint8_t)index;
  if (!made->place) list_offer(made);
}

/* Returns how many sleeping workers the caller has to wake, and counts them as woken. No worker
 * falls asleep after this call without checking the offers again, so at least this number of
 * workers will join. */
static uint32_t announce(void)
{
  KJ_ASSERT(kj_is_locked_here(&pool.mutex));
  uint64_t wanted = 0, room = pool.most > pool.running ? pool.most - pool.running : 0;
  for (const offer *at = pool.offers; at && wanted < room; at = at->next) wanted += count_open(at);
  if (wanted > room) wanted = room;
  if (wanted > pool.sleeping) wanted = pool.sleeping;
  if (wanted <= pool.woken) return 0;
  wanted -= pool.woken;
  if (wanted > FAN) wanted = FAN;
  pool.woken += (uint32_t)wanted;
  atomic_fetch_add(&pool.changes, 1);
  return (uint32_t)wanted;
}

/* Assigns indices of the offered work to spinning workers, up to the maximum number of running
 * threads. */
static void hand_out(offer *made)
{
  for (uint32_t i = 0; i < pool.thread_count && made->begun < made->count; i++) {
    box *to = &pool.boxes[i];
    uintptr_t looking = LOOKING;
    if (pool.running >= pool.most) return;
    if (atomic_load_explicit(&to->state, memory_order_relaxed) != LOOKING) continue;
    to->index = made->begun;
    pool.running++;
    atomic_fetch_add_explicit(&made->inside, 1, memory_order_relaxed);
    if (atomic_compare_exchange_strong(&to->state, &looking, (uintptr_t)made)) {
      made->begun++;
    } else {
      pool.running--;
      atomic_fetch_sub_explicit(&made->inside, 1, memory_order_relaxed);
    }
  }
}

/* Takes the offer back from spinning workers that have not reacted to it, for example because
 * another thread uses their core. The caller does not hold the mutex. */
static void take_from_boxes(offer *made, uint32_t thread_count)
{
  for (uint32_t i = 0; i < thread_count; i++) {
    uintptr_t own = (uintptr_t)made;
    if (atomic_load_explicit(&pool.boxes[i].state, memory_order_relaxed) != own ||
        !atomic_compare_exchange_strong(&pool.boxes[i].state, &own, LOOKING))
      continue;
    pool.running--;
    atomic_fetch_sub(&made->inside, 1);
  }
}

/* ---- workers ---- */

static _Thread_local bool has_left; /* this worker left early and is no longer counted in
                                     * pool.running */

/* Runs the body for an index. The worker is already counted in pool.running and made->inside. */
static void take_part(offer *made, size_t index)
{
  KJ_ASSERT(index && index < made->count);
  KJ_ASSERT((atomic_load(&made->inside) & ~(uint32_t)IS_WAITING) && !kj_count_locks());
  has_left = false;
  made->body(made->data, index);
  if (has_left) {
    lock_pool();
    return_index(made, index);
    unlock_pool();
  } else {
    pool.running--;
  }
  /* after the subtraction below, the launching thread may free the offer */
  _Atomic uint32_t *inside = &made->inside;
  if (atomic_fetch_sub(inside, 1) == (IS_WAITING | 1)) wake(inside, 1);
}

/* A body stops early if more threads run than allowed, because other launches have begun on their
 * own threads. */
bool kj_leave_work(void)
{
  uint32_t running = atomic_load_explicit(&pool.running, memory_order_relaxed);
  if (running <= pool.most) return false;
  has_left = atomic_compare_exchange_strong(&pool.running, &running, running - 1);
  return has_left;
}

/* Spins for at most LOOKING_NS. Returns the offer that a launch wrote to the box. Returns NULL
 * after a timeout, a change of pool.changes, or a time in which another thread used the core. */
static offer *look_for_offer(box *own, uint32_t seen)
{
  enum { TURNS_OF_CLOCK = 16 };
  uint64_t start_ns = kj_clock_ns(), last_ns = start_ns, now_ns = start_ns;
  atomic_store(&own->state, LOOKING);
  for (uint32_t turn = 1;; turn++) {
    uintptr_t state = atomic_load(&own->state);
    bool is_lost = now_ns - last_ns > LOST_CORE_NS;
    bool is_over = is_lost || now_ns - start_ns > LOOKING_NS || atomic_load(&pool.changes) != seen;
    if (is_lost) pool.crowded_until_ns = now_ns + CROWDED_NS;
    last_ns = now_ns;
    /* a launch may write or withdraw an offer until the box is BUSY */
    if ((state != LOOKING || is_over) && atomic_compare_exchange_strong(&own->state, &state, BUSY))
      return state == LOOKING ? NULL : (offer *)state;
    kn_pause();
    if (turn % TURNS_OF_CLOCK == 0) now_ns = kj_clock_ns();
  }
}

/* Spins for further offers after a body has ended. The caller does not hold the mutex. */
static void look_around(box *own)
{
  while (pool.is_frequent && kj_clock_ns() >= pool.crowded_until_ns) {
    uint32_t seen = atomic_load(&pool.changes);
    offer *made = pool.listed ? NULL : look_for_offer(own, seen);
    if (!made) return;
    take_part(made, own->index);
  }
}

/* Runs the body of the oldest offer. The caller holds the mutex, which the function releases while
 * the body runs. */
static void join_in(box *own)
{
  offer *made = pool.offers;
  KJ_ASSERT(kj_is_locked_here(&pool.mutex) && made);
  size_t index = take_index(made);
  atomic_fetch_add_explicit(&made->inside, 1, memory_order_relaxed);
  pool.running++;
  uint32_t wanted = announce();
  unlock_pool();
  if (wanted) wake(&pool.changes, wanted);
  take_part(made, index);
  look_around(own);
  lock_pool();
}

/* Sleeps until pool.changes changes. The caller holds the mutex, which the function releases while
 * the worker sleeps. */
static void wait_for_change(void)
{
  uint32_t seen = atomic_load(&pool.changes);
  pool.sleeping++;
  while (atomic_load(&pool.changes) == seen) {
    unlock_pool();
    sleep_on(&pool.changes, seen);
    lock_pool();
  }
  KJ_ASSERT(pool.sleeping);
  pool.sleeping--;
  if (pool.woken) pool.woken--;
}

static void *run_worker(void *own)
{
  lock_pool();
  /* a new thread inherits the affinity of the first launching thread, which may be bound to a
   * single core */
  if (CPU_COUNT(&pool.cores)) (void)sched_setaffinity(0, sizeof pool.cores, &pool.cores);
  for (;;) {
    if (pool.offers && pool.running < pool.most) join_in(own);
    else if (pool.is_closing) break;
    else wait_for_change();
  }
  unlock_pool();
  return NULL;
}

/* Blocks all signals in workers, so that the application's threads handle them. Signals that the
 * code itself raises stay unblocked, because an application's handler must run on the thread with
 * the fault. */
static void block_signals(sigset_t *previous)
{
  static const int raised[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS };
  sigset_t signals;
  sigfillset(&signals);
  for (size_t i = 0; i < sizeof raised / sizeof *raised; i++) sigdelset(&signals, raised[i]);
  (void)pthread_sigmask(SIG_SETMASK, &signals, previous);
}

static bool start_thread(void)
{
  pthread_attr_t attributes;
  KJ_ASSERT(kj_is_locked_here(&pool.mutex) && pool.thread_count < MOST_THREADS);
  if (pthread_attr_init(&attributes)) return false;
  (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
  bool is_started = !pthread_create(&pool.threads[pool.thread_count], &attributes, run_worker,
                                    &pool.boxes[pool.thread_count]);
  (void)pthread_attr_destroy(&attributes);
  if (is_started) pool.thread_count++;
  return is_started;
}

/* Starts workers until `most` run, or fewer if the system cannot create more threads. */
static void start_threads(uint32_t most)
{
  sigset_t previous;
  if (pool.thread_count >= most) return;
  block_signals(&previous);
  while (pool.thread_count < most && start_thread()) {}
  (void)pthread_sigmask(SIG_SETMASK, &previous, NULL);
}

/* ---- a launch ---- */

static void wait_for_workers(offer *made)
{
  for (int i = 0; i < TURNS && atomic_load(&made->inside); i++) kn_pause();
  while (atomic_load(&made->inside)) {
    uint32_t seen = atomic_fetch_or(&made->inside, IS_WAITING);
    if (!(seen & ~(uint32_t)IS_WAITING)) return;
    sleep_on(&made->inside, seen | IS_WAITING);
  }
}

void kj_share_work(size_t count, void (*body)(void *data, size_t index), void *data)
{
  offer made = { .body = body, .data = data, .count = count, .begun = 1 };
  KJ_ASSERT(count > 1 && count <= KJ_MOST_WORKERS);
  kj_assert_no_locks();
  lock_pool();
  pool.running++;
  pool.asked += (uint32_t)count - 1;
  start_threads(pool.asked < pool.most ? pool.asked : pool.most - 1);
  uint32_t thread_count = pool.thread_count;
  pool.is_frequent = kj_clock_ns() - pool.ended_ns < LOOKING_NS;
  hand_out(&made);
  if (made.begun < made.count) list_offer(&made);
  uint32_t wanted = announce();
  unlock_pool();
  if (wanted) wake(&pool.changes, wanted);
  body(data, 0);
  lock_pool();
  made.is_over = true;
  take_back(&made);
  unlock_pool();
  take_from_boxes(&made, thread_count);
  wait_for_workers(&made);
  lock_pool();
  /* the offer is on this stack frame */
  KJ_ASSERT(!made.place && !(atomic_load(&made.inside) & ~(uint32_t)IS_WAITING));
  KJ_ASSERT(pool.asked >= count - 1);
  pool.running--;
  pool.asked -= (uint32_t)count - 1;
  pool.ended_ns = kj_clock_ns();
  /* now a core is free, so workers wake up for other launches */
  wanted = announce();
  unlock_pool();
  if (wanted) wake(&pool.changes, wanted);
}

/* ---- opening the first and closing the last device ---- */

uint32_t kj_count_cores(void)
{
  cpu_set_t cores;
  int count = sched_getaffinity(0, sizeof cores, &cores) ? 0 : CPU_COUNT(&cores);
  /* more cores than cpu_set_t can represent */
  if (count <= 0) count = (int)sysconf(_SC_NPROCESSORS_ONLN);
  return count <= 0 ? 1 : count < KJ_MOST_WORKERS ? (uint32_t)count : KJ_MOST_WORKERS;
}

/* Resets the pool in a forked child, which has neither the worker threads nor their locks. */
static void forget_parent(void)
{
  pool.users_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  pool.mutex = (pthread_mutex_t)PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
  pool.offers = NULL;
  pool.users = 0;
  pool.most = 0;
  pool.running = 0;
  pool.listed = 0;
  pool.sleeping = 0;
  pool.woken = 0;
  pool.thread_count = 0;
  pool.asked = 0;
  for (size_t i = 0; i < MOST_THREADS; i++) pool.boxes[i].state = BUSY;
  CPU_ZERO(&pool.cores);
  pool.is_closing = false;
}

static void add_cores(void)
{
  cpu_set_t cores;
  if (!sched_getaffinity(0, sizeof cores, &cores)) CPU_OR(&pool.cores, &pool.cores, &cores);
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget_parent); }

void kj_open_workers(uint32_t threads)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  uint32_t cores = kj_count_cores(), most = threads > cores ? threads : cores;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&pool.users_mutex);
  pool.users++;
  lock_pool();
  add_cores();
  if (most > pool.most) pool.most = most < KJ_MOST_WORKERS ? most : KJ_MOST_WORKERS;
  unlock_pool();
  pthread_mutex_unlock(&pool.users_mutex);
}

void kj_close_workers(void)
{
  pthread_mutex_lock(&pool.users_mutex);
  KJ_ASSERT(pool.users);
  if (--pool.users == 0) {
    lock_pool();
    pool.is_closing = true;
    atomic_fetch_add(&pool.changes, 1);
    unlock_pool();
    wake(&pool.changes, INT_MAX);
    for (uint32_t i = 0; i < pool.thread_count; i++) (void)pthread_join(pool.threads[i], NULL);
    KJ_ASSERT(!pool.offers && !atomic_load(&pool.listed) && !pool.asked && !pool.sleeping);
    KJ_ASSERT(!atomic_load(&pool.running));
    pool.thread_count = 0;
    pool.most = 0;
    CPU_ZERO(&pool.cores);
    pool.is_closing = false;
  }
  pthread_mutex_unlock(&pool.users_mutex);
}
