/* What the files of the disk cache share about it. */
#ifndef KJ_DISK_STATE_H
#define KJ_DISK_STATE_H

#include "code/disk.h"

struct kj_disk {
  const kjit_cache_store *store; /* the host's, instead of a directory: store.c; NULL: none */
  char *directory;               /* NULL: none */
  const char *libdevice_path;    /* of the configuration */
  uint64_t limit_bytes;
  _Atomic bool is_read_only; /* writing has failed */
  pthread_mutex_t mutex;     /* protects what follows while it is made */
  _Atomic bool is_identified, knows_math_library;
  kj_digest build, processor, math_library; /* of libkjit; of this machine; for GPUs */
};

/* As kj_fetch_entry and kj_publish_entry, of a disk with a store. */
bool kj_fetch_stored(kj_disk *disk, const kj_disk_key *key, const kj_digest *compiler,
                     kj_code *code);
void kj_publish_stored(kj_disk *disk, const kj_disk_key *key, kj_digest compiler,
                       const kj_code *code);
/* Fills in build and processor. */
void kj_identify_disk(kj_disk *disk);
/* Looked up once: a context's compiler reads libdevice once too. */
kj_digest kj_get_math_library(kj_disk *disk);

#endif
