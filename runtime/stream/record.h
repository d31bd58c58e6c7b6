/* A graph's record: the objects that its launches need, and the operations that kjit repeats if the
 * driver does not capture them. */
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

/* Shared by a graph and its executable graphs; not changed after the capture. */
typedef struct kj_record {
  _Atomic uint32_t references;
  kj_kept *kept;
  kj_pointers operations;
} kj_record;

struct kjit_graph {
  kj_object object;
  kj_record *record;
  void *native; /* NULL means that the record contains the whole graph */
  size_t size;
};

/* Releases a native graph unless a reset of the device has freed it. */
static inline void kj_release_native(const kj_object *object,
                                     void (*release)(kjit_device *device, void *native),
                                     void *native)
{
  if (native && object->generation == atomic_load(&object->device->generation))
    release(object->device, native);
}

/* Creates an empty record. Returns NULL if out of memory. */
kj_record *kj_make_record(void);
kj_record *kj_retain_record(kj_record *record);
/* Releases the record. With the last reference all its objects are released. */
void kj_release_record(kj_record *record);
/* Adds a pointer once. Returns false without a change if out of memory. */
bool kj_add_pointer(kj_pointers *pointers, void *item);
bool kj_add_kept(kj_record *record, const kj_kept_kind *kind, void *item);
/* Returns whether both records contain the same operations, possibly with other arguments. */
bool kj_has_form_of(const kj_record *a, const kj_record *b);
/* Runs the operations in their order. They may call the application, so the caller holds no lock.
 * As on a GPU, the operations after a failing kernel still run. Any other failure ends the run.
 * Returns the first failure. */
kjit_status kj_run_record(kj_record *record, kjit_stream *stream);

#endif
