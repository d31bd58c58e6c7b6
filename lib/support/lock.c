#include "support/lock.h"

#include <stdint.h>

/* The mutexes that this thread holds, sorted by order. The thread has locked each of them while it
 * held the previous ones. */
static _Thread_local struct {
  unsigned count;
  uint8_t orders[KJ_LOCK_WORKERS + 1];
  const pthread_mutex_t *mutexes[KJ_LOCK_WORKERS + 1];
} held;

void kj_note_locked(const pthread_mutex_t *mutex, kj_lock_order order)
{
  KJ_ASSERT(order <= KJ_LOCK_WORKERS);
  KJ_ASSERT(!held.count || held.orders[held.count - 1] < order);
  held.orders[held.count] = (uint8_t)order;
  held.mutexes[held.count++] = mutex;
}

void kj_note_unlocked(const pthread_mutex_t *mutex, kj_lock_order order)
{
  unsigned i = 0;
  while (i < held.count && held.orders[i] != order) i++;
  KJ_ASSERT(i < held.count);
  KJ_ASSERT(held.mutexes[i] == mutex);
  for (held.count--; i < held.count; i++) {
    held.orders[i] = held.orders[i + 1];
    held.mutexes[i] = held.mutexes[i + 1];
  }
}

unsigned kj_count_locks(void) { return held.count; }

bool kj_is_locked_here(const pthread_mutex_t *mutex)
{
  unsigned i = 0;
  while (i < held.count && held.mutexes[i] != mutex) i++;
  return i < held.count;
}
