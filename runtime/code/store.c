/* A host's own store for compiled code in place of the directory. Its bytes are those of a file,
 * and are checked as those. */
#include <stdlib.h>
#include <string.h>

#include "code/disk_state.h"

enum { KEY_BYTES = 32, MOST_BYTES = 1 << 28 };

/* Two digests of the text that says what the code depends on: the second leaves its first byte out.
 */
static void make_key(const kj_disk_key *key, uint8_t bytes[KEY_BYTES])
{
  kj_digest second = kj_digest_bytes(key->text + 1, key->size_bytes ? key->size_bytes - 1 : 0);
  memcpy(bytes, &key->digest, sizeof key->digest);
  memcpy(bytes + sizeof key->digest, &second, sizeof second);
}

bool kj_fetch_stored(kj_disk *disk, const kj_disk_key *key, const kj_digest *compiler,
                     kj_code *code)
{
  const kjit_cache_store *store = disk->store;
  uint8_t bytes[KEY_BYTES];
  const void *data = NULL;
  size_t size_bytes = 0;
  make_key(key, bytes);
  if (store->load(store->user, bytes, &data, &size_bytes) != 1 || !data) return false;
  /* entries are read as structs, and the host's memory may lie anywhere */
  void *copy = size_bytes <= MOST_BYTES ? malloc(size_bytes + 1) : NULL;
  if (copy) memcpy(copy, data, size_bytes);
  if (store->release) store->release(store->user, data);
  kj_entry_state state =
    copy ? kj_unpack_entry(copy, size_bytes, key, compiler, code) : KJ_ENTRY_OTHER;
  free(copy);
  return state == KJ_ENTRY_WHOLE;
}

void kj_publish_stored(kj_disk *disk, const kj_disk_key *key, kj_digest compiler,
                       const kj_code *code)
{
  const kjit_cache_store *store = disk->store;
  uint8_t bytes[KEY_BYTES];
  size_t size_bytes;
  if (!store->store) return;
  void *entry = kj_pack_entry(key, compiler, code, &size_bytes);
  make_key(key, bytes);
  if (entry) store->store(store->user, bytes, entry, size_bytes);
  free(entry);
}
