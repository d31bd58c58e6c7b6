/* Runs a launch's grid on the CPU. Each worker first runs its own share of the blocks in order, and
 * then takes blocks from the shares of other workers. Each worker has the same share in each
 * launch, so the data of the share stays in the worker's cache from one launch to the next. */
#include "cpu/cpu.h"

#include <fenv.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "support/stack.h"
#include "native/architecture.h"
#include "native/watch.h"
#include "support/host_process.h"
#include "support/lock.h"

enum {
  CACHE_LINE = 64,
  SMALL_SCRATCH = 8192,
  PIECES = 16 /* maximum number of pieces in a worker's share */
};

/* ---- scratch memory ---- */

/* A scratch buffer begins with its size. The memory for the worker begins one cache line later. */
static void *take_scratch(kjit_device *device, uint64_t size_bytes)
{
  for (uint32_t i = 0; i < KJ_SCRATCH_SLOTS; i++) {
    if (!atomic_load_explicit(&device->scratch[i], memory_order_relaxed)) continue;
    uint64_t *buffer = atomic_exchange(&device->scratch[i], NULL);
    if (buffer && *buffer >= size_bytes) return (char *)buffer + CACHE_LINE;
    free(buffer);
  }
  uint64_t rounded = (size_bytes + 2 * CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
  uint64_t *buffer = rounded < size_bytes ? NULL : aligned_alloc(CACHE_LINE, rounded);
  if (!buffer) return NULL;
  KJ_ASSERT(rounded % CACHE_LINE == 0 && rounded - CACHE_LINE >= size_bytes);
  *buffer = rounded - CACHE_LINE;
  return (char *)buffer + CACHE_LINE;
}

static void give_scratch(kjit_device *device, void *scratch)
{
  if (!scratch) return;
  KJ_ASSERT((uintptr_t)scratch % CACHE_LINE == 0);
  void *buffer = (char *)scratch - CACHE_LINE;
  for (uint32_t i = 0; i < KJ_SCRATCH_SLOTS; i++) {
    void *none = NULL;
    if (atomic_compare_exchange_strong(&device->scratch[i], &none, buffer)) return;
  }
  free(buffer);
}

void kj_free_scratch(kjit_device *device)
{
  for (uint32_t i = 0; i < KJ_SCRATCH_SLOTS; i++) free(atomic_exchange(&device->scratch[i], NULL));
}

/* ---- workers ---- */

typedef struct share {
  _Alignas(CACHE_LINE) _Atomic uint64_t next; /* first block that no worker has taken */
  uint64_t end;
} share;

typedef struct crew {
  kjit_device *device;
  const kj_cpu_launch *launch;
  share *shares;
  uint32_t workers;
  uint64_t piece; /* number of blocks in a piece */
  _Atomic bool is_out_of_memory, is_stuck, is_interrupted;
  uint64_t scratch_bytes; /* scratch memory of one worker */
  char stuck[256];        /* description of a deadlock, written by the worker that sets is_stuck */
} crew;

/* ---- interrupts ---- */

/* A call of interruptible code. The code can leave this call by longjmp, because it owns no
 * resources. */
typedef struct interruptible_call {
  kj_cpu_grid grid; /* must be the first member: the kernel passes a pointer to this grid to
                       `leave` */
  jmp_buf left;
} interruptible_call;

static void leave_call(const kj_cpu_grid *grid)
{
  longjmp(((interruptible_call *)(uintptr_t)grid)->left, 1);
}

static __attribute__((noinline)) void run_interruptible(crew *crew, uint64_t first, uint64_t last,
                                                        void *scratch)
{
  const kj_cpu_launch *launch = crew->launch;
  interruptible_call call = { .grid = launch->grid };
  call.grid.leave = leave_call;
  if (setjmp(call.left) == 0) launch->kernel(launch->parameters, &call.grid, first, last, scratch);
  else atomic_store(&crew->is_interrupted, true);
}

/* ---- work ---- */

/* Runs groups of blocks that wait for each other. */
static void run_groups(crew *crew, kj_crowd *crowd, uint64_t first, uint64_t last, void *scratch)
{
  char stuck[sizeof crew->stuck];
  KJ_ASSERT(last <= kj_count_groups(crew->launch));
  for (uint64_t group = first;
       group < last && !atomic_load_explicit(&crew->is_stuck, memory_order_relaxed); group++)
    switch (kj_run_group(crowd, group, scratch, stuck, sizeof stuck)) {
    case KJ_GROUP_DONE: break;
    case KJ_GROUP_INTERRUPTED: atomic_store(&crew->is_interrupted, true); return;
    case KJ_GROUP_STUCK:
      if (!atomic_exchange(&crew->is_stuck, true)) memcpy(crew->stuck, stuck, sizeof stuck);
    }
}

/* Runs chunks of a share until no chunk is left. Returns false if this worker has to stop early and
 * leave the remaining chunks to other workers. */
static bool work_on(crew *crew, share *share, bool is_helper, kj_crowd *crowd, void *scratch)
{
  const kj_cpu_launch *launch = crew->launch;
  while (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end &&
         !atomic_load_explicit(&crew->is_interrupted, memory_order_relaxed)) {
    uint64_t first = atomic_fetch_add_explicit(&share->next, crew->piece, memory_order_relaxed);
    if (first >= share->end) return true;
    uint64_t last = share->end - first < crew->piece ? share->end : first + crew->piece;
    KJ_ASSERT(first < last && last <= share->end && !kj_count_locks());
    if (crowd) run_groups(crew, crowd, first, last, scratch);
    else if (launch->is_interruptible) run_interruptible(crew, first, last, scratch);
    else launch->kernel(launch->parameters, &launch->grid, first, last, scratch);
    if (is_helper && kj_leave_work()) return false;
  }
  return true;
}

static void work(crew *crew, size_t worker, void *scratch)
{
  const kj_cpu_launch *launch = crew->launch;
  kj_crowd *crowd = NULL;
  KJ_ASSERT(worker < crew->workers && (uintptr_t)scratch % CACHE_LINE == 0);
  KJ_ASSERT(launch->zeroed_from <= launch->scratch_bytes || launch->is_cleared);
  if (launch->is_cleared) memset(scratch, 0, crew->scratch_bytes);
  else if (launch->zeroed_from < launch->scratch_bytes)
    memset((char *)scratch + launch->zeroed_from, 0, launch->scratch_bytes - launch->zeroed_from);
  if (crew->launch->parts != KJ_FIBERS_NONE && !(crowd = kj_create_crowd(crew->launch))) {
    atomic_store(&crew->is_out_of_memory, true);
    return;
  }
  bool is_helper = worker && !crew->device->context->config.executor, is_here = true;
  for (uint32_t i = 0; i < crew->workers && is_here; i++)
    is_here = work_on(crew, &crew->shares[(worker + i) % crew->workers], is_helper, crowd, scratch);
  kj_destroy_crowd(crowd);
  if (launch->zeroed_from < launch->scratch_bytes)
    kn_end_watch((kn_watch *)(void *)((char *)scratch + launch->zeroed_from));
}

static void run_kernel(crew *crew, size_t worker)
{
  _Alignas(CACHE_LINE) char small[SMALL_SCRATCH];
  if (crew->scratch_bytes <= sizeof small) {
    work(crew, worker, small);
    return;
  }
  void *scratch = take_scratch(crew->device, crew->scratch_bytes);
  if (!scratch) {
    /* a worker without memory stops, and the other workers run its share */
    atomic_store(&crew->is_out_of_memory, true);
    return;
  }
  work(crew, worker, scratch);
  give_scratch(crew->device, scratch);
}

typedef struct worker_call {
  crew *crew;
  size_t worker;
} worker_call;

static void run_call(void *data)
{
  worker_call *call = data;
  run_kernel(call->crew, call->worker);
}

/* Runs a worker on a stack that is large enough. Fibers have their own stacks. */
static void run_with_stack(crew *crew, size_t worker)
{
  const kj_cpu_launch *launch = crew->launch;
  worker_call call = { .crew = crew, .worker = worker };
  uint32_t bytes = launch->parts == KJ_FIBERS_NONE ? launch->stack_bytes : 0;
  if (!kj_call_with_stack(bytes, run_call, &call)) atomic_store(&crew->is_out_of_memory, true);
}

/* Runs kernels in the default floating-point environment: round to nearest, no flushing of
 * subnormals, no traps. Otherwise the results of a block would depend on the settings of the thread
 * that runs it. */
static void run_in_environment(crew *crew, size_t worker)
{
  fenv_t own;
  if (kn_has_default_environment()) {
    run_with_stack(crew, worker);
    return;
  }
  fegetenv(&own);
  fesetenv(FE_DFL_ENV);
  run_with_stack(crew, worker);
  fesetenv(&own);
}

/* Runs a worker; the kernel may call functions of the application. */
static void run_worker(void *data, size_t worker)
{
  crew *own = data;
  ki_host_code code;
  ki_enter_host(&code, own->device->context);
  run_in_environment(own, worker);
  ki_leave_host(&code);
}

static void call_executor(crew *crew)
{
  const kjit_context *context = crew->device->context;
  const kjit_executor *executor = context->config.executor;
  ki_host_code code;
  ki_enter_host(&code, context);
  executor->run(executor->user, crew->workers, run_worker, crew);
  ki_leave_host(&code);
}

static void run_crew(crew *crew)
{
  KJ_ASSERT(crew->workers && crew->workers <= KJ_MOST_WORKERS && crew->piece);
  if (crew->workers == 1) {
    run_worker(crew, 0);
  } else if (crew->device->context->config.executor) {
    call_executor(crew);
  } else {
    kj_share_work(crew->workers, run_worker, crew);
  }
}

static bool is_done(const crew *crew)
{
  for (uint32_t i = 0; i < crew->workers; i++)
    if (atomic_load(&crew->shares[i].next) < crew->shares[i].end) return false;
  return true;
}

/* Runs the blocks, or groups of blocks, with indices [first, last). */
static kjit_status run_blocks(kjit_device *device, const kj_cpu_launch *launch, uint32_t workers,
                              uint64_t first, uint64_t last, kj_diagnostics *diagnostics,
                              bool *is_interrupted)
{
  KJ_ASSERT(launch->kernel && (void *)(uintptr_t)launch->kernel != KJ_UNLOADED);
  uint64_t total = last - first, scratch_bytes = launch->parts == KJ_FIBERS_NONE
                                                   ? launch->scratch_bytes
                                                   : kj_group_scratch_bytes(launch);
  if (workers > total) workers = total ? (uint32_t)total : 1;
  share shares[KJ_MOST_WORKERS];
  crew crew = { .device = device,
                .launch = launch,
                .shares = shares,
                .workers = workers,
                .scratch_bytes = scratch_bytes };
  for (uint32_t i = 0; i < workers; i++) {
    uint64_t count = total / workers + (i < total % workers);
    atomic_init(&shares[i].next, first);
    shares[i].end = first += count;
  }
  KJ_ASSERT(first == last); /* the shares cover all blocks */
  crew.piece = workers == 1 ? total : total / workers / PIECES;
  if (!crew.piece) crew.piece = 1;
  run_crew(&crew);
  *is_interrupted = atomic_load(&crew.is_interrupted);
  if (atomic_load(&crew.is_stuck))
    return kj_error(diagnostics, KJIT_ERROR_KERNEL, "%s", crew.stuck);
  /* the failure record describes an interruption in more detail */
  if (*is_interrupted || is_done(&crew)) return KJIT_OK;
  if (!atomic_load(&crew.is_out_of_memory))
    return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                    "the application's executor returned before the launch was complete; it must "
                    "call body for every index first");
  return kj_error(
    diagnostics, KJIT_ERROR_MEMORY,
    "out of memory: a worker of the launch needs %llu bytes of scratch memory and %u of stack",
    (unsigned long long)scratch_bytes, launch->stack_bytes);
}

/* Runs a launch on the chosen number of threads, which may depend on the time of its first blocks.
 * Does not record the time of an interrupted launch. */
static kjit_status run_spread(kjit_device *device, const kj_cpu_launch *launch,
                              const kj_cpu_work *work, kj_spread *spread, kj_cpu_cost *cost,
                              uint64_t blocks, kj_diagnostics *diagnostics)
{
  bool is_interrupted = false;
  uint64_t lead = kj_count_lead(spread, blocks);
  KJ_ASSERT(lead <= blocks);
  uint64_t start_ns = spread->is_timed || lead ? kj_clock_ns() : 0;
  if (lead) {
    KJ_TRY(run_blocks(device, launch, 1, 0, lead, diagnostics, &is_interrupted));
    if (is_interrupted) return KJIT_OK;
    double share = (double)blocks / (double)lead;
    kj_follow_lead(cost, work, spread, share * (double)(kj_clock_ns() - start_ns));
  }
  KJ_TRY(run_blocks(device, launch, spread->workers, lead, blocks, diagnostics, &is_interrupted));
  if (spread->is_timed && !is_interrupted)
    kj_note_time(cost, work, spread, kj_clock_ns() - start_ns);
  return KJIT_OK;
}

/* ---- a launch ---- */

/* Returns the number of elements of the largest array whose extents the code reads. This number
 * estimates the work of kernels in which each thread loops over a row. */
static uint64_t count_array_elements(const kj_code *code, const char *parameters)
{
  uint64_t most = 0, elements = 1;
  uint32_t argument = UINT32_MAX;
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (parameter->kind != KJ_PARAMETER_EXTENT) continue;
    KJ_ASSERT(parameter->offset + parameter->size_bytes <= code->parameter_bytes);
    uint64_t extent = 0;
    memcpy(&extent, parameters + parameter->offset, parameter->size_bytes == 4 ? 4 : 8);
    elements = parameter->argument == argument ? elements * extent : extent;
    argument = parameter->argument;
    if (elements > most) most = elements;
  }
  return most;
}

static kj_cpu_work describe_work(const kjit_device *device, const kj_code *code,
                                 const kj_device_launch *call, uint64_t blocks)
{
  /* assumed size of a range whose extents are known only in the kernel */
  enum { SOME_ELEMENTS = 1 << 16 };
  uint32_t most = device->workers, own = call->cpu_threads;
  kj_cpu_work work = { .most = own && own < most ? own : most, .is_limited = own && own < most };
  /* a launch with a single thread is not divided, because the thread's variables can carry values
   * from one element to the next */
  bool is_one_thread =
         blocks == 1 && (uint64_t)call->block[0] * call->block[1] * call->block[2] == 1,
       is_cut = code->is_range_only && !is_one_thread;
  work.units = !is_cut ? blocks : call->has_elements ? call->elements : SOME_ELEMENTS;
  if (!work.units) work.units = 1;
  work.size = work.units;
  work.is_even = is_cut && call->has_elements && code->elements_a_thread;
  if (work.is_even || work.most <= 1) return work;
  uint64_t elements = count_array_elements(code, call->parameters);
  if (elements > work.size) work.size = elements;
  return work;
}

/* Replaces the grid of a range-only kernel by blocks of one thread, which the workers can divide
 * among themselves. */
static void cut_range(kj_cpu_launch *launch, uint32_t pieces)
{
  KJ_ASSERT(pieces && launch->parts == KJ_FIBERS_NONE);
  launch->grid.grid[0] = pieces;
  launch->grid.grid[1] = launch->grid.grid[2] = 1;
  launch->grid.block[0] = launch->grid.block[1] = launch->grid.block[2] = 1;
}

/* Adds memory after the block's scratch memory for the state of each element, if the kernel is
 * compiled with the checks of uninitialized memory and races. */
static void set_scratch(kj_cpu_launch *launch, const kj_code *code)
{
  uint64_t bytes = launch->scratch_bytes;
  launch->zeroed_from =
    code->is_watched ? (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE : bytes;
  if (code->is_watched)
    launch->scratch_bytes = launch->zeroed_from + sizeof(kn_watch) + bytes * sizeof(kn_watch_cell);
  KJ_ASSERT(launch->scratch_bytes >= bytes);
}

kjit_status kj_launch_on_cpu(kjit_device *device, const kj_device_code *loaded, const kj_code *code,
                             const kj_device_launch *call, kj_diagnostics *diagnostics)
{
  kj_cpu_launch launch = { .parameters = call->parameters,
                           .scratch_bytes = code->scratch_bytes + call->dynamic_shared_bytes,
                           .is_cleared = code->is_guest,
                           .is_cooperative = code->is_cooperative,
                           .is_interruptible = code->is_interruptible,
                           .stack_bytes = code->stack_bytes,
                           .parts = (kj_cpu_fibers)code->cpu_fibers };
  KJ_ASSERT(call->parameter_bytes >= code->parameter_bytes && call->cost);
  KJ_ASSERT(!((uintptr_t)call->parameters % _Alignof(uint64_t)));
  memcpy(&launch.kernel, &loaded->function, sizeof launch.kernel);
  memcpy(launch.grid.grid, call->grid, sizeof launch.grid.grid);
  memcpy(launch.grid.block, call->block, sizeof launch.grid.block);
  launch.grid.dynamic_shared_bytes = call->dynamic_shared_bytes;
  for (int i = 0; i < 3; i++)
    launch.grid.cluster[i] = call->cluster && call->cluster[i] ? call->cluster[i] : 1;
  set_scratch(&launch, code);
  uint64_t blocks = (uint64_t)call->grid[0] * call->grid[1] * call->grid[2];
  if (launch.parts != KJ_FIBERS_NONE) {
    KJ_TRY(kj_check_parts(&launch, diagnostics));
    blocks = kj_count_groups(&launch);
  }
  kj_cpu_work work = describe_work(device, code, call, blocks);
  kj_spread spread = kj_choose_spread(call->cost, &work);
  if (code->is_range_only) cut_range(&launch, (uint32_t)(blocks = kj_count_pieces(&work, &spread)));
  return run_spread(device, &launch, &work, &spread, call->cost, blocks, diagnostics);
}
