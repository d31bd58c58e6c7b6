/* Machine code is bounded: what was not launched for long is unloaded. Its specialization stays,
 * and loads the code again when a launch needs it.
 *
 * A launch holds its specialization without a lock (specialization.h): it adds to the slot of its
 * thread and then looks at the state. Eviction takes the state away, has the kernel make every
 * running thread of the process pass a memory barrier, and then looks at the slots: one of the two
 * sees the other. So the barrier costs those who evict, and not those who launch. */
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "code/specialization.h"
#include "memory/pool.h"

uint64_t kj_count_launches(const kjit_specialization *specialization)
{
  uint64_t count = 0;
  for (uint32_t i = 0; i < KJ_SLOTS; i++)
    count += atomic_load_explicit(&specialization->holds[i].launched, memory_order_relaxed);
  return count;
}

/* The ends are read before the beginnings: equal sums are those of one moment. */
static bool is_held(kjit_specialization *specialization)
{
  uint64_t ended = 0, begun = 0;
  for (uint32_t i = 0; i < KJ_SLOTS; i++)
    ended += atomic_load(&specialization->holds[i].launched) +
             atomic_load(&specialization->holds[i].passed);
  for (uint32_t i = 0; i < KJ_SLOTS; i++) begun += atomic_load(&specialization->holds[i].begun);
  return begun != ended || atomic_load(&specialization->pins);
}

static uint64_t limit_of(const kj_runtime *runtime)
{
  enum { DEFAULT_LIMIT = 256 << 20 };
  uint64_t given = runtime->context->config.code_limit_bytes;
  return given ? given : DEFAULT_LIMIT;
}

/* Code whose threads may fail or print has records that the host has yet to look at. */
static bool can_go(const kjit_specialization *specialization)
{
  const kj_code *code = &specialization->code;
  if (kj_has_captures(specialization->device)) return false; /* unloading waits for the device */
  return !(kj_is_cuda(specialization->device) && (code->failures || code->prints));
}

/* False: the system has no such barrier, and nothing is ever unloaded. */
static bool pass_barrier(void)
{
  if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)) return true;
  return !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
         !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static bool try_unload(kjit_specialization *specialization)
{
  pthread_mutex_lock(&specialization->mutex);
  bool goes = atomic_load(&specialization->state) == KJ_READY && can_go(specialization);
  if (goes) {
    atomic_store(&specialization->state, KJ_FAILED);
    goes = pass_barrier() && !is_held(specialization);
    if (!goes) atomic_store(&specialization->state, KJ_READY);
  }
  if (goes) {
    free(atomic_exchange(&specialization->learned, NULL));
    atomic_store(&specialization->has_tried_learning, false);
    kj_unload_code(specialization);
  }
  pthread_mutex_unlock(&specialization->mutex);
  return goes;
}

static void append(kj_runtime *runtime, kjit_specialization *entry)
{
  kjit_specialization **end = &runtime->loaded;
  while (*end) end = &(*end)->next_loaded;
  *end = entry;
  entry->next_loaded = NULL;
}

/* Takes the one to unload next out of the list: from the one loaded first, one that was not
 * launched since the last look; the others move to the end. Two rounds find one unless all are
 * launched all the time. Under loaded_mutex. */
static kjit_specialization *take_victim(kj_runtime *runtime, const kjit_specialization *keep)
{
  size_t count = 0;
  for (const kjit_specialization *at = runtime->loaded; at; at = at->next_loaded) count++;
  for (size_t i = 0; i < 2 * count; i++) {
    kjit_specialization *entry = runtime->loaded;
    uint64_t launches = kj_count_launches(entry);
    runtime->loaded = entry->next_loaded;
    if (entry != keep && launches == entry->swept) return entry;
    entry->swept = launches;
    append(runtime, entry);
  }
  return NULL;
}

/* Those that cannot go now are taken out of the list for the time of the sweep. Under loaded_mutex.
 */
static void sweep(kj_runtime *runtime, const kjit_specialization *keep)
{
  uint64_t limit = limit_of(runtime);
  kjit_specialization *kept = NULL;
  for (kjit_specialization *entry;
       runtime->loaded_bytes > limit && (entry = take_victim(runtime, keep));) {
    if (try_unload(entry)) {
      runtime->loaded_bytes -= entry->code_bytes;
      entry->next_loaded = NULL;
      entry->code_bytes = 0;
      atomic_fetch_add_explicit(&runtime->context->counters.evictions, 1, memory_order_relaxed);
      continue;
    }
    entry->next_loaded = kept;
    kept = entry;
  }
  while (kept) {
    kjit_specialization *next = kept->next_loaded;
    append(runtime, kept);
    kept = next;
  }
}

void kj_note_loaded(kjit_specialization *specialization)
{
  kj_runtime *runtime = specialization->device->runtime;
  pthread_mutex_lock(&runtime->loaded_mutex);
  if (!specialization->code_bytes) {
    append(runtime, specialization);
    specialization->code_bytes = specialization->compiled_bytes;
    specialization->swept = UINT64_MAX; /* the first look is one chance */
    runtime->loaded_bytes += specialization->code_bytes;
  }
  sweep(runtime, specialization);
  pthread_mutex_unlock(&runtime->loaded_mutex);
}

void kj_forget_loaded(kjit_specialization *specialization)
{
  if (!specialization->device) return;
  kj_runtime *runtime = specialization->device->runtime;
  pthread_mutex_lock(&runtime->loaded_mutex);
  kjit_specialization **at = &runtime->loaded;
  while (*at && *at != specialization) at = &(*at)->next_loaded;
  if (*at) {
    *at = specialization->next_loaded;
    runtime->loaded_bytes -= specialization->code_bytes;
  }
  pthread_mutex_unlock(&runtime->loaded_mutex);
}
