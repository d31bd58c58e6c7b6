/* Functions of kjit that CPU code calls to print lines, and to report facts that do not hold. */
#include "native/support_routines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/hostile.h"
#include "support/lock.h"

/* ---- collecting the lines that CPU threads print; only whole lines are stored ---- */

enum { LARGE = 1 << 19 /* words */ };

static bool make_room(kn_print_sink *sink, size_t needed)
{
  if (sink->count + needed <= sink->capacity) return true;
  size_t wanted = sink->capacity;
  while (wanted < sink->count + needed) wanted = KJ_GROWN(wanted, 1024);
  uint64_t *grown = realloc(sink->words, wanted * sizeof *grown);
  if (!grown) return false;
  sink->words = grown;
  sink->capacity = wanted;
  return true;
}

void kn_print_line(kn_print_sink *sink, uint64_t header, uint64_t block, const uint64_t *values)
{
  size_t count = kn_print_count(header);
  kj_lock(&sink->mutex, KJ_LOCK_SINK);
  if (make_room(sink, count + 2)) {
    uint64_t *at = sink->words + sink->count;
    at[0] = block;
    at[1] = header;
    if (count) memcpy(at + 2, values, count * sizeof *values);
    sink->count += count + 2;
  } else {
    sink->lost++;
  }
  bool is_large = sink->count >= LARGE;
  kj_unlock(&sink->mutex, KJ_LOCK_SINK);
  if (is_large) sink->deliver(sink);
}

/* ---- facts ---- */

#ifndef NDEBUG
void kn_report_fact(const char *fact, uint64_t value)
{
  fprintf(stderr,
          "kjit: internal error: an assumption of the compiled code does not hold: %s; got %lld",
          fact, (long long)value);
  abort();
}

/* The accesses to a word of 8 bytes in the current parallel loop. For each byte, the cell holds 1 +
 * the number of the iteration that accessed the byte, or 0 if no iteration has accessed it. A cell
 * that belongs to an earlier loop is free. Several iterations are allowed to write to the same
 * byte, just as several threads are. The byte then holds the result of one of the writes. */
typedef struct parallel_cell {
  uintptr_t word;
  uint64_t loop;
  uint32_t writers[8], readers[8];
  uint8_t moves; /* a bit for each byte: 1 if a write to this byte can move across the other
                    accesses in its iteration */
} parallel_cell;

/* Limits of the memory for these cells. If a loop accesses more words, only some of the words are
 * tracked. */
enum { PARALLEL_CELLS = 1 << 15, MOST_PROBES = 16, SEVERAL_READERS = UINT32_MAX };
typedef struct parallel_watch {
  uint64_t loop;
  uint32_t iteration; /* number of the current iteration plus 1 */
  parallel_cell cells[PARALLEL_CELLS];
} parallel_watch;

/* Each iteration and each access reads this pointer. With the initial-exec model, a thread reads it
 * without a function call; AddressSanitizer would add several calls. Its 8 bytes fit into the space
 * that the loader reserves for libraries that are loaded later. The thread-specific key frees the
 * memory when the thread ends. */
static _Thread_local parallel_watch *own_watch __attribute__((tls_model("initial-exec")));

static struct {
  pthread_once_t once;
  pthread_key_t key;
} parallel_watches = { .once = PTHREAD_ONCE_INIT };

static void free_watch(void *watch)
{
  own_watch = NULL;
  free(watch);
}

static void make_watch_key(void) { pthread_key_create(&parallel_watches.key, free_watch); }

/* Returns this thread's data. NULL means that there is no memory, so accesses are not tracked. */
static parallel_watch *get_parallel_watch(void)
{
  if (own_watch) return own_watch;
  pthread_once(&parallel_watches.once, make_watch_key);
  own_watch = calloc(1, sizeof *own_watch);
  if (own_watch) pthread_setspecific(parallel_watches.key, own_watch);
  return own_watch;
}

void kn_begin_iteration(uint64_t number)
{
  parallel_watch *watch = get_parallel_watch();
  if (!watch) return;
  if (number == 0) watch->loop++;
  watch->iteration = (uint32_t)number + 1;
}

static parallel_cell *find_cell(parallel_watch *watch, uintptr_t word)
{
  uint64_t hash = word * UINT64_C(0x9e3779b97f4a7c15) >> 40;
  for (uint64_t i = 0; i < MOST_PROBES; i++) {
    parallel_cell *cell = &watch->cells[(hash + i) % PARALLEL_CELLS];
    if (cell->loop == watch->loop && cell->word == word) return cell;
    if (cell->loop == watch->loop) continue;
    *cell = (parallel_cell){ .word = word, .loop = watch->loop };
    return cell;
  }
  return NULL;
}

static const char *find_meeting(const parallel_cell *cell, unsigned byte, uint32_t iteration,
                                uint32_t how)
{
  uint32_t writer = cell->writers[byte], reader = cell->readers[byte];
  bool is_store = how & KJ_PARALLEL_STORE;
  if (is_store ? reader && reader != iteration : writer && writer != iteration)
    return "no iteration of a parallel loop reads what another one writes (else the kernel has a "
           "race, or the loop is not parallel)";
  if (writer == iteration && ((how & KJ_PARALLEL_FREE) || (cell->moves >> byte & 1)))
    return "an access that may be moved within its iteration meets no store before it";
  return NULL;
}

void kn_note_parallel_access(const char *place, const void *at, uint64_t size, uint32_t how)
{
  parallel_watch *watch = get_parallel_watch();
  for (uint64_t i = 0; watch && i < size; i++) {
    uintptr_t address = (uintptr_t)at + i;
    parallel_cell *cell = find_cell(watch, address / 8);
    unsigned byte = address % 8;
    if (!cell) return;
    const char *broken = find_meeting(cell, byte, watch->iteration, how);
    if (broken) {
      char fact[512];
      snprintf(fact, sizeof fact, "%s, in %s", broken, place);
      kn_report_fact(fact, address);
    }
    if (!(how & KJ_PARALLEL_STORE)) {
      uint32_t reader = cell->readers[byte];
      cell->readers[byte] =
        !reader || reader == watch->iteration ? watch->iteration : SEVERAL_READERS;
      continue;
    }
    cell->writers[byte] = watch->iteration;
    cell->moves &= (uint8_t) ~(1 << byte);
    if (how & KJ_PARALLEL_FREE) cell->moves |= (uint8_t)(1 << byte);
  }
}
#endif
