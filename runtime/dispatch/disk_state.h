/* What the files of the disk cache share about it. */
#ifndef KJ_DISK_STATE_H
#define KJ_DISK_STATE_H

#include "dispatch/disk.h"

struct kj_disk {
  char *directory;
  const char *libdevice_path; /* of the configuration */
  uint64_t limit_bytes;
  _Atomic bool is_read_only; /* writing has failed */
  pthread_mutex_t mutex;     /* protects what follows while it is made */
  _Atomic bool is_identified, knows_math_library;
  kj_digest build, processor, math_library; /* of libkjit; of this machine; for GPUs */
};

/* Fills in build and processor. */
void kj_identify_disk(kj_disk *disk);
/* Looked up once: a context's compiler reads libdevice once too. */
kj_digest kj_get_math_library(kj_disk *disk);

#endif
