#include "base/last_use.h"

_Thread_local uint64_t kj_own_thread;

uint64_t kj_take_thread(void)
{
  static _Atomic uint64_t count;
  return kj_own_thread = atomic_fetch_add(&count, 1) + 1;
}

void kj_add_use(kj_last_use *use, kj_stream_id stream)
{
  for (uint32_t i = 0; i < KJ_MOST_USES; i++) {
    kj_stream_id known = kj_read_use(use, i);
    if (!known && atomic_compare_exchange_strong(&use->streams[i], &known, stream)) return;
    if (known == stream || known == KJ_STREAM_ALL) return;
  }
  atomic_store(&use->streams[KJ_MOST_USES - 1], KJ_STREAM_ALL);
}

void kj_copy_uses(kj_last_use *to, const kj_last_use *from)
{
  for (uint32_t i = 0; i < KJ_MOST_USES && kj_read_use(from, i); i++)
    atomic_store_explicit(&to->streams[i], kj_read_use(from, i), memory_order_relaxed);
}

bool kj_is_only_use(const kj_last_use *use, kj_stream_id stream)
{
  for (uint32_t i = 0; i < KJ_MOST_USES && kj_read_use(use, i); i++)
    if (kj_read_use(use, i) != stream) return false;
  return true;
}
