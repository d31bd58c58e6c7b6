/* Slots of the threads of this process: a thread keeps its slot until it ends. */
#include "code/kernel.h"

_Thread_local uint32_t kj_own_slot;

static _Atomic uint64_t taken; /* one bit for each slot but the shared one */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

_Static_assert(KJ_SLOTS == 64, "a bit for each slot");

/* Whoever takes the slot next sees what was counted there. */
static void give_back(void *data)
{
  uint32_t slot = (uint32_t)(uintptr_t)data - 1;
  kj_own_slot = 0;
  atomic_fetch_and_explicit(&taken, ~((uint64_t)1 << slot), memory_order_release);
}

static void make_key(void) { has_key = !pthread_key_create(&key, give_back); }

/* Threads that end later must not call into a library that is gone. */
__attribute__((destructor)) static void drop_key(void)
{
  if (has_key) pthread_key_delete(key);
}

static uint32_t take_free(void)
{
  uint64_t known = atomic_load_explicit(&taken, memory_order_relaxed);
  for (;;) {
    uint32_t slot = ~known ? (uint32_t)__builtin_ctzll(~known) : KJ_SHARED_SLOT;
    if (slot == KJ_SHARED_SLOT) return slot;
    if (atomic_compare_exchange_weak_explicit(&taken, &known, known | (uint64_t)1 << slot,
                                              memory_order_acquire, memory_order_relaxed))
      return slot;
  }
}

uint32_t kj_take_slot(void)
{
  pthread_once(&once, make_key);
  uint32_t slot = has_key ? take_free() : KJ_SHARED_SLOT;
  if (slot != KJ_SHARED_SLOT && pthread_setspecific(key, (void *)(uintptr_t)(slot + 1))) {
    atomic_fetch_and_explicit(&taken, ~((uint64_t)1 << slot), memory_order_release);
    slot = KJ_SHARED_SLOT;
  }
  kj_own_slot = slot + 1;
  return slot;
}
