/* What a graph keeps: the things that its launches need, and the operations that kjit repeats. */
#ifndef KJ_RECORD_H
#define KJ_RECORD_H

#include "stream/stream.h"

typedef struct kj_pointers {
  void **items;
  size_t count, capacity;
} kj_pointers;

typedef struct kj_kept {
  struct kj_kept *next;
  const kj_kept_kind *kind;
  void *item;
} kj_kept;

/* Shared by a graph and what was instantiated from it; not changed after the capture. */
typedef struct kj_record {
  _Atomic uint32_t references;
  kj_kept *kept;
  kj_pointers operations;
} kj_record;

/* NULL: out of memory. */
kj_record *kj_make_record(void);
kj_record *kj_retain_record(kj_record *record);
/* The last reference gives back everything. */
void kj_release_record(kj_record *record);
/* Once each. false: out of memory, and nothing was added. */
bool kj_add_pointer(kj_pointers *pointers, void *item);
bool kj_add_kept(kj_record *record, const kj_kept_kind *kind, void *item);
/* Whether both hold the same operations on other arguments. */
bool kj_has_form_of(const kj_record *a, const kj_record *b);
/* Runs the operations in their order, which may call the host: no lock is held. A kernel that fails
 * does not keep the others from running, as on a GPU; anything else does. The first failure. */
kjit_status kj_run_record(kj_record *record, kjit_stream *stream);

#endif
