/* The blocks of a grid are cut into pieces; every worker first runs its own share of them, front to back, then helps the others. Shares keep what a worker touches
 * together, from one launch to the next; helping evens out blocks of unequal work. */
#include "cpu/run.h"

#include <omp.h>
#include <stdlib.h>

enum { CACHE_LINE = 64, SMALL_SCRATCH = 8192, MOST_WORKERS = 256, PIECES = 16 /* of one worker's share, at most */ };

/* ---- scratch ---- */

/* A buffer starts with its size; what workers use starts one cache line later. */
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
  *buffer = rounded - CACHE_LINE;
  return (char *)buffer + CACHE_LINE;
}

static void give_scratch(kjit_device *device, void *scratch)
{
  if (!scratch) return;
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
  _Alignas(CACHE_LINE) _Atomic uint64_t next; /* first block that nobody has taken */
  uint64_t end;
} share;

typedef struct crew {
  kjit_device *device;
  const kj_cpu_launch *launch;
  share *shares;
  uint32_t workers;
  uint64_t piece; /* blocks */
  _Atomic bool is_out_of_memory;
} crew;

static void work_on(const crew *crew, share *share, void *scratch)
{
  const kj_cpu_launch *launch = crew->launch;
  while (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end) {
    uint64_t first = atomic_fetch_add_explicit(&share->next, crew->piece, memory_order_relaxed);
    if (first >= share->end) return;
    uint64_t last = share->end - first < crew->piece ? share->end : first + crew->piece;
    launch->kernel(launch->parameters, &launch->grid, first, last, scratch);
  }
}

static void work(crew *crew, size_t worker, void *scratch)
{
  for (uint32_t i = 0; i < crew->workers; i++) work_on(crew, &crew->shares[(worker + i) % crew->workers], scratch);
}

static void run_worker(void *data, size_t worker)
{
  crew *crew = data;
  _Alignas(CACHE_LINE) char small[SMALL_SCRATCH];
  if (crew->launch->scratch_bytes <= sizeof small) {
    work(crew, worker, small);
    return;
  }
  void *scratch = take_scratch(crew->device, crew->launch->scratch_bytes);
  if (!scratch) {
    atomic_store(&crew->is_out_of_memory, true); /* the others do this worker's share */
    return;
  }
  work(crew, worker, scratch);
  give_scratch(crew->device, scratch);
}

static void run_crew(crew *crew)
{
  const kjit_executor *executor = crew->device->context->config.executor;
  if (crew->workers == 1) {
    run_worker(crew, 0);
  } else if (executor) {
    executor->run(executor->user, crew->workers, run_worker, crew);
  } else {
#pragma omp parallel for num_threads(crew->workers) schedule(static, 1)
    for (uint32_t i = 0; i < crew->workers; i++) run_worker(crew, i);
  }
}

static bool is_done(const crew *crew)
{
  for (uint32_t i = 0; i < crew->workers; i++)
    if (atomic_load(&crew->shares[i].next) < crew->shares[i].end) return false;
  return true;
}

kjit_status kj_run_cpu(kjit_device *device, const kj_cpu_launch *launch, kj_diagnostics *diagnostics)
{
  const uint32_t *grid = launch->grid.grid;
  uint64_t total = (uint64_t)grid[0] * grid[1] * grid[2];
  uint32_t workers = launch->is_small ? 1 : device->workers < MOST_WORKERS ? device->workers : MOST_WORKERS;
  if (workers > total) workers = total ? (uint32_t)total : 1;
  share shares[MOST_WORKERS];
  crew crew = { .device = device, .launch = launch, .shares = shares, .workers = workers };
  uint64_t start = 0;
  for (uint32_t i = 0; i < workers; i++) {
    uint64_t count = total / workers + (i < total % workers);
    atomic_init(&shares[i].next, start);
    shares[i].end = start += count;
  }
  crew.piece = workers == 1 ? total : total / workers / PIECES;
  if (!crew.piece) crew.piece = 1;
  run_crew(&crew);
  if (!atomic_load(&crew.is_out_of_memory) || is_done(&crew)) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory: a worker of the launch needs %llu bytes of scratch",
                  (unsigned long long)launch->scratch_bytes);
}
