#include "stream/record.h"

#include <stdlib.h>

kj_record *kj_make_record(void)
{
  kj_record *record = calloc(1, sizeof *record);
  if (!record) return NULL;
  atomic_store(&record->references, 1);
  return record;
}

/* For assertions: returns the number of owners of a record. Until the capture has ended, the
 * capture is the only owner. */
static uint32_t count_owners(const kj_record *record) { return atomic_load(&record->references); }

kj_record *kj_retain_record(kj_record *record)
{
  KJ_ASSERT(count_owners(record));
  atomic_fetch_add_explicit(&record->references, 1, memory_order_relaxed);
  return record;
}

void kj_release_record(kj_record *record)
{
  KJ_ASSERT(!record || count_owners(record));
  if (!record || atomic_fetch_sub_explicit(&record->references, 1, memory_order_acq_rel) != 1)
    return;
  kj_assert_no_locks(); /* releasing the objects may call application code */
  for (size_t i = 0; i < record->operations.count; i++) {
    kj_operation *operation = record->operations.items[i];
    operation->destroy(operation);
  }
  for (kj_kept *kept = record->kept, *next; kept; kept = next) {
    next = kept->next;
    kept->kind->release(kept->item);
    free(kept);
  }
  free(record->operations.items);
  free(record);
}

bool kj_add_kept(kj_record *record, const kj_kept_kind *kind, void *item)
{
  KJ_ASSERT(count_owners(record) == 1 && item && kind->retain && kind->release);
  for (const kj_kept *kept = record->kept; kept; kept = kept->next)
    if (kept->item == item) {
      KJ_ASSERT(kept->kind == kind);
      return true;
    }
  kj_kept *made = malloc(sizeof *made);
  if (!made) return false;
  *made = (kj_kept){ .next = record->kept, .kind = kind, .item = item };
  record->kept = made;
  kind->retain(item);
  return true;
}

bool kj_add_pointer(kj_pointers *pointers, void *item)
{
  KJ_ASSERT(pointers->count <= pointers->capacity && item);
  if (pointers->count == pointers->capacity) {
    size_t capacity = KJ_GROWN(pointers->capacity, 8);
    void **items = realloc(pointers->items, capacity * sizeof *items);
    if (!items) return false;
    pointers->items = items;
    pointers->capacity = capacity;
  }
  pointers->items[pointers->count++] = item;
  return true;
}

bool kj_has_form_of(const kj_record *a, const kj_record *b)
{
  if (a->operations.count != b->operations.count) return false;
  for (size_t i = 0; i < a->operations.count; i++) {
    const kj_operation *x = a->operations.items[i], *y = b->operations.items[i];
    if (x->run != y->run || x->form != y->form) return false;
  }
  return true;
}

kjit_status kj_run_record(kj_record *record, kjit_stream *stream)
{
  kjit_status first = KJIT_OK;
  KJ_ASSERT(count_owners(record));
  kj_assert_no_locks();
  for (size_t i = 0;
       i < record->operations.count && (first == KJIT_OK || first == KJIT_ERROR_KERNEL); i++) {
    kj_operation *operation = record->operations.items[i];
    kjit_status status = operation->run(operation, stream);
    if (status != KJIT_OK && first == KJIT_OK) first = status;
  }
  return first;
}
