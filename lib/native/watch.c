/* Detects reads of uninitialized memory and data races (watch.h).
 *
 * For each byte, the watch stores only the last plain write, and the reads and atomic accesses
 * since that write. This is sufficient to report the first race. If a plain write was not part of a
 * race, all earlier accesses happen before it. A later access that is not ordered after one of
 * these earlier accesses is not ordered after the write either, so it races with the write. */
#include "native/watch.h"

#include <stdlib.h>
#include <string.h>

#include "ir/builtin.h"
#include "support/assert.h"

enum { MOST_THREADS = 1024, MANY = KJ_WATCH_SEVERAL };

/* ---- order ---- */

static uint32_t *knowledge_of(const kn_watch *watch, uint32_t thread)
{
  KJ_ASSERT(thread < watch->threads);
  return watch->knows + (size_t)thread * watch->unit;
}

/* Returns whether the access of thread `who` at time `then` happens before the current access of
 * `thread`. */
static bool is_ordered(const kn_watch *watch, uint32_t then, uint32_t who, uint32_t thread)
{
  if (then < watch->barrier || who == thread) return true;
  return who / watch->unit == thread / watch->unit &&
         then < knowledge_of(watch, thread)[who % watch->unit];
}

/* Synchronizes the threads of one unit (see kn_watch). All accesses that these threads have made so
 * far, and all accesses that happen before them, now happen before the next access of each of these
 * threads. */
static void bring_together(kn_watch *watch, const uint16_t *threads, size_t count)
{
  uint32_t all[MOST_THREADS] = { 0 };
  for (size_t i = 0; i < count; i++) {
    const uint32_t *own = knowledge_of(watch, threads[i]);
    KJ_ASSERT(threads[i] / watch->unit == threads[0] / watch->unit);
    for (uint32_t a = 0; a < watch->unit; a++) all[a] = own[a] > all[a] ? own[a] : all[a];
  }
  for (size_t i = 0; i < count; i++) all[threads[i] % watch->unit] = watch->time;
  for (size_t i = 0; i < count; i++)
    memcpy(knowledge_of(watch, threads[i]), all, watch->unit * sizeof *all);
}

/* ---- sets of accesses ---- */

static bool is_empty(const kn_watch *watch, const kn_watch_set *set)
{
  return set->time < watch->barrier || !set->time;
}

static uint32_t *times_of(const kn_watch *watch, const kn_watch_set *set)
{
  KJ_ASSERT(set->members == KJ_WATCH_VECTOR && set->where < watch->vector_count);
  return watch->vectors + (size_t)set->where * watch->unit;
}

/* Returns a new vector of times, or NULL when out of memory. */
static uint32_t *take_vector(kn_watch *watch)
{
  enum { FIRST = 64 };
  if (watch->vector_count == watch->vector_capacity) {
    size_t capacity = watch->vector_capacity ? 2 * watch->vector_capacity : FIRST;
    uint32_t *grown = realloc(watch->vectors, capacity * watch->unit * sizeof *grown);
    if (!grown) return NULL;
    watch->vectors = grown;
    watch->vector_capacity = capacity;
  }
  uint32_t *times = watch->vectors + watch->vector_count++ * watch->unit;
  memset(times, 0, watch->unit * sizeof *times);
  return times;
}

/* Returns the thread in the set whose access does not happen before the current access of `thread`.
 * Returns MANY if there are several, and -1 if there is none. */
static int32_t find_unordered(const kn_watch *watch, const kn_watch_set *set, uint32_t thread)
{
  int32_t found = -1;
  if (is_empty(watch, set)) return -1;
  if (set->members == KJ_WATCH_UNITS) return MANY;
  if (set->members == KJ_WATCH_ONE)
    return is_ordered(watch, set->time, set->where, thread) ? -1 : (int32_t)set->where;
  const uint32_t *times = times_of(watch, set);
  for (uint32_t a = 0; a < watch->unit; a++) {
    uint32_t who = set->unit * watch->unit + a;
    if (!times[a] || is_ordered(watch, times[a], who, thread)) continue;
    if (found >= 0) return MANY;
    found = (int32_t)who;
  }
  return found;
}

static kn_watch_set one_access(const kn_watch *watch, uint32_t thread)
{
  return (kn_watch_set){ .time = watch->time,
                         .where = thread,
                         .unit = (uint16_t)(thread / watch->unit),
                         .members = KJ_WATCH_ONE };
}

/* Adds the current access to the set. Removes the accesses that happen before the current access: a
 * later access that races with a removed access also races with the current access. If there is no
 * memory for several members, the set keeps only this access. */
static void add_to_set(kn_watch *watch, kn_watch_set *set, uint32_t thread)
{
  kn_watch_set one = one_access(watch, thread);
  if (find_unordered(watch, set, thread) < 0) {
    *set = one;
    return;
  }
  if (set->unit != one.unit) set->members = KJ_WATCH_UNITS;
  if (set->members == KJ_WATCH_ONE) {
    uint32_t *times = take_vector(watch), other = set->where % watch->unit;
    if (!times) {
      *set = one;
      return;
    }
    times[other] = set->time;
    set->members = KJ_WATCH_VECTOR;
    set->where = (uint32_t)(watch->vector_count - 1);
  }
  set->time = watch->time;
  if (set->members == KJ_WATCH_UNITS) return;
  uint32_t *times = times_of(watch, set);
  for (uint32_t a = 0; a < watch->unit; a++)
    if (times[a] && is_ordered(watch, times[a], set->unit * watch->unit + a, thread)) times[a] = 0;
  times[thread % watch->unit] = watch->time;
}

/* ---- synchronization ---- */

/* Makes all accesses so far happen before all later ones. */
static void meet_all(kn_watch *watch)
{
  watch->barrier = ++watch->time;
  watch->vector_count = 0;
}

/* Resets the times before they overflow. At a barrier of the whole block, the only relevant
 * information is whether a byte was written in this block. */
static void restart(kn_watch *watch)
{
  for (uint64_t i = 0; i < watch->size_bytes; i++) {
    kn_watch_cell *cell = &watch->cells[i];
    bool is_written = cell->written && cell->written >= watch->block;
    *cell = (kn_watch_cell){ .written = is_written, .writer = cell->writer };
  }
  if (watch->knows) memset(watch->knows, 0, watch->threads * watch->unit * sizeof *watch->knows);
  watch->block = watch->time = 1;
}

static void meet_whole_block(kn_watch *watch)
{
  const uint32_t late = UINT32_C(1) << 31;
  if (watch->time >= late) restart(watch);
  meet_all(watch);
}

void kn_watch_block(kn_watch *watch, uint64_t size_bytes, uint32_t threads, uint32_t unit)
{
  KJ_ASSERT(threads <= MOST_THREADS && unit <= MOST_THREADS);
  KJ_ASSERT(!watch->time || (watch->threads == threads && watch->unit == unit));
  if (!watch->time) {
    size_t units = (threads + unit - 1) / unit;
    watch->threads = threads;
    watch->unit = unit;
    watch->knows = calloc(units * unit * unit, sizeof *watch->knows);
    watch->is_exhausted = !watch->knows;
  }
  watch->size_bytes = size_bytes;
  meet_whole_block(watch);
  watch->block = watch->time;
}

void kn_watch_barrier(kn_watch *watch, const uint32_t *meets)
{
  uint16_t there[MOST_THREADS];
  size_t count = 0;
  for (uint32_t b = 0; meets && b < watch->threads; b++)
    if (meets[b]) there[count++] = (uint16_t)b;
  if (!meets || count == watch->threads) {
    meet_whole_block(watch);
    return;
  }
  KJ_ASSERT(watch->unit >= watch->threads);
  ++watch->time;
  if (count && !watch->is_exhausted) bring_together(watch, there, count);
}

void kn_watch_warps(kn_watch *watch, const uint32_t *masks)
{
  ++watch->time;
  if (watch->is_exhausted) return;
  for (uint32_t base = 0; base < watch->threads; base += KJ_WARP_THREADS) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < KJ_WARP_THREADS && base + i < watch->threads; i++)
      left |= masks[base + i] & UINT32_C(1) << i;
    while (left) {
      uint16_t there[KJ_WARP_THREADS];
      size_t count = 0;
      uint32_t mask = masks[base + (uint32_t)__builtin_ctz(left)];
      for (uint32_t i = 0; i < KJ_WARP_THREADS; i++)
        if ((left >> i & 1) && masks[base + i] == mask) there[count++] = (uint16_t)(base + i);
      bring_together(watch, there, count);
      for (size_t i = 0; i < count; i++) left &= ~(UINT32_C(1) << there[i] % KJ_WARP_THREADS);
    }
  }
}

void kn_end_watch(kn_watch *watch)
{
  free(watch->knows);
  free(watch->vectors);
  watch->knows = watch->vectors = NULL;
}

/* ---- accesses ---- */

static uint64_t result(kn_watch_result kind, int32_t who)
{
  return (uint64_t)kind | (uint64_t)who << KJ_WATCH_RESULT_BITS;
}

static bool is_unwritten(const kn_watch *watch, const kn_watch_cell *cell, uint32_t how,
                         uint32_t thread)
{
  return cell->written < watch->block || ((how & KJ_WATCH_LOCAL) && cell->writer != thread);
}

static uint64_t find_race(const kn_watch *watch, const kn_watch_cell *cell, uint32_t how,
                          uint32_t thread)
{
  bool is_atomic = how & KJ_WATCH_ATOMIC, writes = how & KJ_WATCH_WRITE;
  int32_t writer = -1, reader = -1;
  if (watch->is_exhausted) return KJ_WATCH_FINE;
  if (cell->stored && !is_ordered(watch, cell->stored, cell->storer, thread)) writer = cell->storer;
  else if (!is_atomic) writer = find_unordered(watch, &cell->atomic_writes, thread);
  if (writer >= 0) return result(KJ_WATCH_WAS_WRITTEN, writer);
  if (writes) reader = find_unordered(watch, &cell->reads, thread);
  if (reader < 0 && writes && !is_atomic)
    reader = find_unordered(watch, &cell->atomic_reads, thread);
  return reader >= 0 ? result(KJ_WATCH_WAS_READ, reader) : KJ_WATCH_FINE;
}

static bool is_looked_at_for_races(uint32_t how)
{
  return (how & KJ_WATCH_RACES) && !(how & KJ_WATCH_LOCAL);
}

static uint64_t look(const kn_watch *watch, const kn_watch_cell *cell, uint32_t how,
                     uint32_t thread)
{
  if ((how & KJ_WATCH_UNINITIALIZED) && (how & KJ_WATCH_READ) &&
      is_unwritten(watch, cell, how, thread))
    return result(KJ_WATCH_UNWRITTEN, 0);
  return is_looked_at_for_races(how) ? find_race(watch, cell, how, thread) : KJ_WATCH_FINE;
}

/* Records an access for the detection of races. An atomic read-modify-write counts only as a
 * write. */
static void note_for_races(kn_watch *watch, kn_watch_cell *cell, uint32_t how, uint32_t thread)
{
  bool is_atomic = how & KJ_WATCH_ATOMIC, writes = how & KJ_WATCH_WRITE;
  if (is_atomic) add_to_set(watch, writes ? &cell->atomic_writes : &cell->atomic_reads, thread);
  else if (!writes) add_to_set(watch, &cell->reads, thread);
  else {
    cell->stored = watch->time;
    cell->storer = (uint16_t)thread;
    cell->reads = cell->atomic_reads = cell->atomic_writes = (kn_watch_set){ 0 };
  }
}

static void note(kn_watch *watch, kn_watch_cell *cell, uint32_t how, uint32_t thread)
{
  if (how & KJ_WATCH_WRITE) {
    cell->written = watch->time;
    cell->writer = (uint16_t)thread;
  }
  if (is_looked_at_for_races(how) && !watch->is_exhausted) note_for_races(watch, cell, how, thread);
}

uint64_t kn_watch_access(kn_watch *watch, uint64_t offset, uint64_t size, uint32_t how,
                         uint32_t thread)
{
  /* the address is outside of the monitored memory, for example because an index is out of
   * bounds */
  if (offset > watch->size_bytes || size > watch->size_bytes - offset) return KJ_WATCH_FINE;
  for (uint64_t i = 0; i < size; i++) {
    uint64_t found = look(watch, &watch->cells[offset + i], how, thread);
    if (found) return found;
  }
  for (uint64_t i = 0; i < size; i++) note(watch, &watch->cells[offset + i], how, thread);
  return KJ_WATCH_FINE;
}
