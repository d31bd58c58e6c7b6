#include "support/lock.h"

#include <stdint.h>

/* Sorted: each was taken with those before it held. */
static _Thread_local struct {
  unsigned count;
  uint8_t orders[KJ_LOCK_WORKERS + 1];
} held;

void kj_note_locked(kj_lock_order order)
{
  KJ_ASSERT(!held.count || held.orders[held.count - 1] < order);
  held.orders[held.count++] = (uint8_t)order;
}

void kj_note_unlocked(kj_lock_order order)
{
  unsigned i = 0;
  while (i < held.count && held.orders[i] != order) i++;
  KJ_ASSERT(i < held.count);
  for (held.count--; i < held.count; i++) held.orders[i] = held.orders[i + 1];
}

unsigned kj_count_locks(void) { return held.count; }
