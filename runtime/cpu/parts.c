/* Runs the blocks and warps of a launch that wait for each other. Each block or warp is a fiber (a
 * coroutine with a stack), which this code calls a part.
 *
 * A fiber runs until it has to wait; then the next fiber that can continue runs. All fibers of a
 * group run on one thread, so this file needs no atomic accesses. A barrier waits only for fibers
 * that have not ended, because a thread that has left the kernel takes no part in barriers. If no
 * fiber of a group can continue, the kernel is deadlocked, and the launch returns an error with the
 * locations at which the fibers wait. On a GPU such a kernel would hang. */
#include "cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "support/stack.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

enum {
  NAMED = 16,
  MOST_PARTS = 16384,
  LEAST_STACK_BYTES = 512 * 1024,
  CACHE_LINE = 64,
  MOST_TRIES = 1 << 16,
  PARITY_SHIFT = 63
};

/* A barrier. `round` is incremented when all fibers have arrived. */
typedef struct barrier {
  uint32_t arrived, round;
  uint64_t sum, last_sum;
} barrier;

typedef struct block {
  barrier whole, named[NAMED];
  uint32_t live;
} block;

typedef enum part_state {
  PART_READY,
  PART_AT_BARRIER,
  PART_AT_PHASE,
  PART_TRYING,
  PART_ENDED
} part_state;

typedef struct part {
  kj_cpu_grid grid; /* must be the first member: the kernel passes a pointer to this grid to `wait`
                       and `leave` */
  kj_crowd *crowd;
  ucontext_t context;
  void *scratch;
  uint64_t number; /* linear index of the block in the grid */
  uint32_t block, cluster;
  uint32_t cluster_round; /* cluster->round at the last cluster_arrive */
  part_state state;
  kj_cpu_wait what;
  const barrier *at; /* for AT_BARRIER: the fiber waits until at->round differs from `round` */
  uint32_t round;
  /* for AT_PHASE and TRYING: the word of the mbarrier, and the parity of the phase */
  const uint64_t *word;
  uint64_t parity;
  uint32_t id, tries;
  /* for TRYING: mbarrier_try_wait returns false, because no other fiber could run */
  bool has_failed;
#if defined(__SANITIZE_THREAD__)
  void *fiber;
#endif
} part;

struct kj_crowd {
  const kj_cpu_launch *launch;
  uint32_t group[3]; /* extents of a group in blocks */
  uint32_t blocks, warps, parts, clusters, cluster_blocks;
  uint64_t stride;
  part *all;
  block *block;
  barrier *cluster;
  uint32_t *cluster_live;
  barrier grid;
  uint32_t live;
  bool is_interrupted;
  char *stacks;
  size_t stack_bytes, stacks_bytes;
  ucontext_t home;
#if defined(__SANITIZE_THREAD__)
  void *home_fiber;
#endif
};

/* ---- groups ---- */

static void shape_group(const kj_cpu_launch *launch, uint32_t group[3])
{
  for (int d = 0; d < 3; d++)
    group[d] = launch->is_cooperative ? launch->grid.grid[d] : launch->grid.cluster[d];
}

static uint64_t volume(const uint32_t extents[3])
{
  return (uint64_t)extents[0] * extents[1] * extents[2];
}

static uint64_t scratch_stride(const kj_cpu_launch *launch)
{
  return (launch->scratch_bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
}

static uint64_t count_warps(const kj_cpu_launch *launch)
{
  return launch->parts == KJ_FIBERS_WARPS
           ? (volume(launch->grid.block) + KJ_WARP_THREADS - 1) / KJ_WARP_THREADS
           : 1;
}

uint64_t kj_count_groups(const kj_cpu_launch *launch)
{
  uint32_t group[3];
  shape_group(launch, group);
  for (int d = 0; d < 3; d++) KJ_ASSERT(group[d] && launch->grid.grid[d] % group[d] == 0);
  return volume(launch->grid.grid) / volume(group);
}

uint64_t kj_group_scratch_bytes(const kj_cpu_launch *launch)
{
  uint32_t group[3];
  shape_group(launch, group);
  return volume(group) * scratch_stride(launch);
}

kjit_status kj_check_parts(const kj_cpu_launch *launch, kj_diagnostics *diagnostics)
{
  uint32_t group[3];
  shape_group(launch, group);
  uint64_t parts = volume(group) * count_warps(launch);
  if (parts <= MOST_PARTS) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                  "all blocks of a cooperative launch must be resident at once, but the launch has "
                  "%llu blocks of %llu warps and the CPU can hold %d %s",
                  (unsigned long long)volume(group),
                  (unsigned long long)((volume(launch->grid.block) + KJ_WARP_THREADS - 1) /
                                       KJ_WARP_THREADS),
                  MOST_PARTS,
                  launch->parts == KJ_FIBERS_WARPS
                    ? "warps of a kernel whose warps wait for each other"
                    : "blocks");
}

/* ---- context switches ---- */

static bool can_go_on(const part *p);

static void go_home(part *p)
{
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(p->crowd->home_fiber, 0);
#endif
  swapcontext(&p->context, &p->crowd->home);
}

static void resume(kj_crowd *crowd, part *p)
{
  KJ_ASSERT(p->state != PART_ENDED && p->crowd == crowd && can_go_on(p));
  p->state = PART_READY;
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(p->fiber, 0);
#endif
  swapcontext(&crowd->home, &p->context);
}

/* Ends the whole group. Interrupted code calls this function. */
static void leave_crowd(const kj_cpu_grid *grid)
{
  part *p = (part *)(uintptr_t)grid;
  p->crowd->is_interrupted = true;
  for (;;) go_home(p);
}

/* ---- barriers ---- */

static void turn(barrier *b)
{
  KJ_ASSERT(b->arrived);
  b->arrived = 0;
  b->last_sum = b->sum;
  b->sum = 0;
  b->round++;
}

static void turn_if_all(barrier *b, uint32_t live)
{
  if (b->arrived && b->arrived >= live) turn(b);
}

static void wait_round(part *p, const barrier *b, uint32_t round)
{
  p->at = b;
  p->round = round;
  while (b->round == round) {
    p->state = PART_AT_BARRIER;
    go_home(p);
  }
}

static uint64_t meet(part *p, barrier *b, uint32_t live, uint64_t value)
{
  uint32_t round = b->round;
  KJ_ASSERT(b->arrived < live);
  b->sum += value;
  b->arrived++;
  turn_if_all(b, live);
  wait_round(p, b, round);
  /* last_sum is still valid, because the next round ends only after this fiber has arrived */
  return b->last_sum;
}

static void meet_named(part *p, barrier *b, uint32_t threads, bool waits)
{
  uint32_t round = b->round;
  b->arrived += KJ_WARP_THREADS;
  if (b->arrived >= threads) turn(b);
  if (waits) wait_round(p, b, round);
}

static bool is_phase_over(const part *p) { return *p->word >> PARITY_SHIFT != p->parity; }

static uint64_t wait_for_phase(part *p, part_state state, const uint64_t *word, uint64_t parity)
{
  p->word = word;
  p->parity = parity;
  p->has_failed = false;
  while (!is_phase_over(p) && !p->has_failed) {
    p->state = state;
    go_home(p);
  }
  if (!p->has_failed) p->tries = 0;
  return !p->has_failed;
}

/* Called by the kernel to wait; see kj_cpu_wait. */
static uint64_t wait_for(const kj_cpu_grid *grid, uint32_t what, uint32_t id, uint32_t count,
                         const void *address, uint64_t value)
{
  part *p = (part *)grid;
  kj_crowd *crowd = p->crowd;
  KJ_ASSERT(p >= crowd->all && p < crowd->all + crowd->parts && p->state == PART_READY);
  KJ_ASSERT(what < KJ_WAIT_COUNT && p->block < crowd->blocks && p->cluster < crowd->clusters);
  block *own = &crowd->block[p->block];
  barrier *cluster = &crowd->cluster[p->cluster];
  p->what = (kj_cpu_wait)what;
  p->id = id;
  switch (p->what) {
  case KJ_WAIT_BLOCK: return meet(p, &own->whole, own->live, value);
  case KJ_WAIT_NAMED:
  case KJ_WAIT_NAMED_ARRIVE:
    meet_named(p, &own->named[id % NAMED], count, what == KJ_WAIT_NAMED);
    return 0;
  case KJ_WAIT_CLUSTER_ARRIVE:
    p->cluster_round = cluster->round;
    cluster->arrived++;
    turn_if_all(cluster, crowd->cluster_live[p->cluster]);
    return 0;
  case KJ_WAIT_CLUSTER: wait_round(p, cluster, p->cluster_round); return 0;
  case KJ_WAIT_GRID: return meet(p, &crowd->grid, crowd->live, 0);
  case KJ_WAIT_PHASE: return wait_for_phase(p, PART_AT_PHASE, address, value);
  case KJ_WAIT_TRY_PHASE: return wait_for_phase(p, PART_TRYING, address, value);
  case KJ_WAIT_COUNT: break;
  }
  return 0;
}

/* ---- starting and running fibers ---- */

static void run_part(unsigned low, unsigned high)
{
  part *p = (part *)((uintptr_t)low | (uintptr_t)high << 32);
  kj_crowd *crowd = p->crowd;
  crowd->launch->kernel(crowd->launch->parameters, &p->grid, p->number, p->number + 1, p->scratch);
  p->state = PART_ENDED;
  block *own = &crowd->block[p->block];
  KJ_ASSERT(own->live && crowd->cluster_live[p->cluster] && crowd->live);
  turn_if_all(&own->whole, --own->live);
  turn_if_all(&crowd->cluster[p->cluster], --crowd->cluster_live[p->cluster]);
  turn_if_all(&crowd->grid, --crowd->live);
  go_home(p);
}

/* Computes the position of block `i` of the group in the grid, and its cluster. The blocks in a
 * cluster are adjacent in scratch memory. */
static void place_block(const kj_crowd *crowd, uint64_t group, uint32_t i, part *p)
{
  const uint32_t *grid = crowd->launch->grid.grid, *cluster = crowd->launch->grid.cluster;
  uint32_t inner = i % crowd->cluster_blocks, at[3], groups[3], clusters[3];
  uint64_t first = group, outer = i / crowd->cluster_blocks;
  p->cluster = (uint32_t)outer;
  for (int d = 0; d < 3; d++) {
    groups[d] = grid[d] / crowd->group[d];
    clusters[d] = crowd->group[d] / cluster[d];
    at[d] = (uint32_t)(first % groups[d]) * crowd->group[d] +
            (uint32_t)(outer % clusters[d]) * cluster[d] + inner % cluster[d];
    first /= groups[d];
    outer /= clusters[d];
    inner /= cluster[d];
  }
  p->number = at[0] + (uint64_t)grid[0] * (at[1] + (uint64_t)grid[1] * at[2]);
  KJ_ASSERT(p->cluster < crowd->clusters && !first && !outer);
  for (int d = 0; d < 3; d++) KJ_ASSERT(at[d] < grid[d]);
}

static void start_part(kj_crowd *crowd, uint64_t group, uint32_t i, char *scratch)
{
  part *p = &crowd->all[i];
  uint32_t index = i / crowd->warps;
  p->crowd = crowd;
  p->grid = crowd->launch->grid;
  p->grid.warp = i % crowd->warps;
  p->grid.scratch_stride = crowd->stride;
  p->grid.wait = wait_for;
  p->grid.leave = leave_crowd;
  p->block = index;
  p->scratch = scratch + index * crowd->stride;
  p->state = PART_READY;
  p->tries = 0;
  place_block(crowd, group, index, p);
  getcontext(&p->context);
  p->context.uc_stack.ss_sp = crowd->stacks + i * crowd->stack_bytes;
  p->context.uc_stack.ss_size = crowd->stack_bytes;
  p->context.uc_link = NULL;
  makecontext(&p->context, (void (*)(void))run_part, 2, (unsigned)(uintptr_t)p,
              (unsigned)((uintptr_t)p >> 32));
}

static void start_group(kj_crowd *crowd, uint64_t group, char *scratch)
{
  memset(crowd->block, 0, crowd->blocks * sizeof *crowd->block);
  memset(crowd->cluster, 0, crowd->clusters * sizeof *crowd->cluster);
  crowd->grid = (barrier){ 0 };
  crowd->live = crowd->parts;
  crowd->is_interrupted = false;
  for (uint32_t i = 0; i < crowd->blocks; i++) crowd->block[i].live = crowd->warps;
  for (uint32_t i = 0; i < crowd->clusters; i++)
    crowd->cluster_live[i] = crowd->cluster_blocks * crowd->warps;
  for (uint32_t i = 0; i < crowd->parts; i++) start_part(crowd, group, i, scratch);
}

static bool can_go_on(const part *p)
{
  switch (p->state) {
  case PART_READY: return true;
  case PART_AT_BARRIER: return p->at->round != p->round;
  case PART_AT_PHASE:
  case PART_TRYING: return is_phase_over(p) || p->has_failed;
  case PART_ENDED: return false;
  }
  return false;
}

/* Lets the waiting mbarrier_try_wait calls return false, because their threads may then do other
 * work. Returns whether a thread was waiting in such a call. */
static bool wake_one_that_tries(kj_crowd *crowd)
{
  bool has_woken = false;
  for (uint32_t i = 0; i < crowd->parts; i++) {
    part *p = &crowd->all[i];
    if (p->state != PART_TRYING || p->tries >= MOST_TRIES) continue;
    p->tries++;
    p->has_failed = has_woken = true;
  }
  return has_woken;
}

static void describe_stuck(const kj_crowd *crowd, char *text, size_t bytes)
{
  static const char *const names[KJ_WAIT_COUNT] = {
    [KJ_WAIT_BLOCK] = "syncthreads",
    [KJ_WAIT_NAMED] = "barrier_sync",
    [KJ_WAIT_CLUSTER_ARRIVE] = "cluster_arrive",
    [KJ_WAIT_CLUSTER] = "cluster_sync",
    [KJ_WAIT_GRID] = "grid_sync",
    [KJ_WAIT_PHASE] = "mbarrier_wait",
    [KJ_WAIT_TRY_PHASE] = "mbarrier_try_wait",
  };
  const part *p = crowd->all;
  while (p->state == PART_ENDED) p++;
  const uint32_t *grid = crowd->launch->grid.grid;
  uint64_t number = p->number;
  int length =
    snprintf(text, bytes, "the threads wait for each other forever: block (%llu, %llu, %llu)",
             (unsigned long long)(number % grid[0]),
             (unsigned long long)(number / grid[0] % grid[1]),
             (unsigned long long)(number / grid[0] / grid[1]));
  if (crowd->warps > 1)
    length += snprintf(text + length, bytes - (size_t)length, ", warp %u", p->grid.warp);
  length += snprintf(text + length, bytes - (size_t)length, " waits at `%s`", names[p->what]);
  if (p->what == KJ_WAIT_NAMED) snprintf(text + length, bytes - (size_t)length, " %u", p->id);
}

kj_group_end kj_run_group(kj_crowd *crowd, uint64_t group, void *scratch, char *stuck,
                          size_t stuck_bytes)
{
  KJ_ASSERT(group < kj_count_groups(crowd->launch) && (uintptr_t)scratch % CACHE_LINE == 0);
  start_group(crowd, group, scratch);
  while (crowd->live) {
    bool has_moved = false;
    for (uint32_t i = 0; i < crowd->parts; i++) {
      part *p = &crowd->all[i];
      if (!can_go_on(p)) continue;
      has_moved = true;
      resume(crowd, p);
      /* no fiber continues; the stacks need not be unwound, because they contain no resources */
      if (crowd->is_interrupted) return KJ_GROUP_INTERRUPTED;
    }
    if (has_moved || wake_one_that_tries(crowd)) continue;
    describe_stuck(crowd, stuck, stuck_bytes);
    return KJ_GROUP_STUCK; /* the stacks need not be unwound, because they contain no resources */
  }
  for (uint32_t i = 0; KJ_HAS_ASSERTIONS && i < crowd->parts; i++)
    KJ_ASSERT(crowd->all[i].state == PART_ENDED);
  return KJ_GROUP_DONE;
}

/* ---- memory ---- */

static bool map_stacks(kj_crowd *crowd)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  crowd->stack_bytes = page + kj_whole_stack_bytes(crowd->launch->stack_bytes);
  if (crowd->stack_bytes < LEAST_STACK_BYTES) crowd->stack_bytes = LEAST_STACK_BYTES;
  KJ_ASSERT(crowd->stack_bytes % page == 0 && crowd->stack_bytes > crowd->launch->stack_bytes);
  crowd->stacks_bytes = crowd->parts * crowd->stack_bytes;
  void *stacks = mmap(NULL, crowd->stacks_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stacks == MAP_FAILED) return false;
  crowd->stacks = stacks;
  for (uint32_t i = 0; i < crowd->parts; i++)
    /* guard page: a stack overflow ends the process instead of overwriting the next stack */
    if (mprotect(crowd->stacks + i * crowd->stack_bytes, page, PROT_NONE)) return false;
  return true;
}

void kj_destroy_crowd(kj_crowd *crowd)
{
  if (!crowd) return;
#if defined(__SANITIZE_THREAD__)
  for (uint32_t i = 0; crowd->all && i < crowd->parts; i++)
    if (crowd->all[i].fiber) __tsan_destroy_fiber(crowd->all[i].fiber);
#endif
  if (crowd->stacks) munmap(crowd->stacks, crowd->stacks_bytes);
  free(crowd->all);
  free(crowd->block);
  free(crowd->cluster);
  free(crowd->cluster_live);
  free(crowd);
}

kj_crowd *kj_create_crowd(const kj_cpu_launch *launch)
{
  kj_crowd *crowd = calloc(1, sizeof *crowd);
  if (!crowd) return NULL;
  crowd->launch = launch;
  shape_group(launch, crowd->group);
  crowd->blocks = (uint32_t)volume(crowd->group);
  crowd->cluster_blocks = (uint32_t)volume(launch->grid.cluster);
  crowd->clusters = crowd->blocks / crowd->cluster_blocks;
  crowd->warps = (uint32_t)count_warps(launch);
  crowd->parts = crowd->blocks * crowd->warps;
  crowd->stride = scratch_stride(launch);
  KJ_ASSERT(crowd->parts && crowd->parts <= MOST_PARTS); /* kj_check_parts has checked the number */
  KJ_ASSERT(crowd->clusters * crowd->cluster_blocks == crowd->blocks);
  crowd->all = calloc(crowd->parts, sizeof *crowd->all);
  crowd->block = calloc(crowd->blocks, sizeof *crowd->block);
  crowd->cluster = calloc(crowd->clusters, sizeof *crowd->cluster);
  crowd->cluster_live = calloc(crowd->clusters, sizeof *crowd->cluster_live);
  if (!crowd->all || !crowd->block || !crowd->cluster || !crowd->cluster_live ||
      !map_stacks(crowd)) {
    kj_destroy_crowd(crowd);
    return NULL;
  }
#if defined(__SANITIZE_THREAD__)
  crowd->home_fiber = __tsan_get_current_fiber();
  for (uint32_t i = 0; i < crowd->parts; i++) crowd->all[i].fiber = __tsan_create_fiber(0);
#endif
  return crowd;
}
