#include "base/last_use.h"

#include "support/assert.h"

_Thread_local uint64_t kj_own_thread;

uint64_t kj_take_thread(void)
{
  static _Atomic uint64_t count;
  return kj_own_thread = atomic_fetch_add(&count, 1) + 1;
}

/* Checks that the set has no gaps and contains each stream once. Reads the entries from the last to
 * the first, because another thread that adds a stream at the same time writes to the first free
 * entry. */
static void check_uses(const kj_last_use *use)
{
  bool has_later = false;
  for (uint32_t i = KJ_MOST_USES; KJ_HAS_ASSERTIONS && i-- > 0;) {
    kj_stream_id stream = kj_read_use(use, i);
    KJ_ASSERT(stream || !has_later);
    has_later = stream;
    for (uint32_t k = i + 1; k < KJ_MOST_USES && stream; k++)
      KJ_ASSERT(kj_read_use(use, k) != stream || kj_read_use(use, i) != stream);
  }
}

void kj_add_use(kj_last_use *use, kj_stream_id stream)
{
  KJ_ASSERT(stream != KJ_STREAM_NONE);
  check_uses(use);
  for (uint32_t i = 0; i < KJ_MOST_USES; i++) {
    kj_stream_id known = kj_read_use(use, i);
    if (!known && atomic_compare_exchange_strong(&use->streams[i], &known, stream)) return;
    if (known == stream || known == KJ_STREAM_ALL) return;
  }
  atomic_store(&use->streams[KJ_MOST_USES - 1], KJ_STREAM_ALL);
}

void kj_copy_uses(kj_last_use *to, const kj_last_use *from)
{
  check_uses(from);
  KJ_ASSERT(!kj_read_use(to, 0) || (kj_read_use(from, 0) && !kj_read_use(to, 1)));
  for (uint32_t i = 0; i < KJ_MOST_USES && kj_read_use(from, i); i++)
    atomic_store_explicit(&to->streams[i], kj_read_use(from, i), memory_order_relaxed);
}

bool kj_is_only_use(const kj_last_use *use, kj_stream_id stream)
{
  check_uses(use);
  for (uint32_t i = 0; i < KJ_MOST_USES && kj_read_use(use, i); i++)
    if (kj_read_use(use, i) != stream) return false;
  return true;
}
