/* Reports failed threads: reads the failure records of kernels on a GPU, and formats the error
 * messages. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/lock.h"
#include "native/watch.h"
#include "report/report.h"

/* ---- the message ---- */

typedef struct site {
  kj_failure_site at;
  const char *message; /* at.text_bytes bytes */
} site;

static bool find_site(const kj_code *code, uint32_t number, site *found)
{
  if (number >= code->failure_count) return false;
  *found = (site){ .at = code->failures[number] };
  found->message = code->failure_texts + found->at.text_offset;
  return true;
}

static void append_value(kj_buffer *text, char format, uint64_t value)
{
  double number;
  memcpy(&number, &value, sizeof number);
  if (format == 'f') kj_append_format(text, "%.9g", number);
  else if (format == 'u') kj_append_format(text, "%" PRIu64, value);
  else kj_append_format(text, "%" PRId64, (int64_t)value);
}

static void append_message(kj_buffer *text, const site *site)
{
  kj_append(text, site->message, site->at.text_bytes);
}

/* Appends the message of a failure that is not a failed check: a raise, whose message is in the
 * program, or a recursion that is too deep, whose message the compiler writes. */
static void say_raise(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)record;
  append_message(text, site);
}

static void say_assert(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  kj_append_text(text, "assertion failed");
  if (site->at.text_bytes) kj_append_text(text, ": ");
  append_message(text, site);
  if (!site->at.formats[0]) return;
  kj_append_text(text, " (");
  append_value(text, site->at.formats[0], record->values[0]);
  kj_append_text(text, " and ");
  append_value(text, site->at.formats[1], record->values[1]);
  kj_append_text(text, ")");
}

static void say_bounds(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  int64_t extent = (int64_t)record->values[1];
  bool is_negative = site->at.formats[0] == 'i' && (int64_t)record->values[0] < 0;
  bool wraps = site->at.text_bytes > 0; /* KJ_WRAPPED_INDEX */
  kj_append_text(text, "index ");
  append_value(text, site->at.formats[0],
               record->values[0] - (wraps && is_negative ? (uint64_t)extent : 0));
  if (wraps && extent > 0) {
    kj_append_format(text, " of %" PRId64 "..%" PRId64, -extent, extent - 1);
    return;
  }
  if (extent > 0) kj_append_format(text, " of 0..%" PRId64, extent - 1);
  else kj_append_text(text, " is out of bounds: the extent is 0");
  if (is_negative) kj_append_text(text, "; negative indices do not wrap");
}

static void say_division(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  kj_append_text(text, "division of ");
  append_value(text, site->at.formats[0], record->values[0]);
  kj_append_text(text, " by zero");
}

static void say_barrier(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)site, (void)record;
  kj_append_text(text,
                 "divergent barrier: other threads of the block wait here, but this thread took "
                 "another path; all threads that have not left the kernel must reach the barrier");
}

static void say_uninitialized(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  if (site->at.text_bytes) { /* a variable */
    kj_append_text(text, "`");
    append_message(text, site);
    kj_append_text(text, "` is read before it is assigned");
    return;
  }
  kj_append_format(text, "element %" PRId64 " is read before it is written",
                   (int64_t)record->values[0]);
}

/* Appends a race's message. values[1] contains the result of kn_watch_access for the failing
 * access; bit 32 is set if that access is a write. */
static void say_race(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)site;
  uint64_t found = record->values[1];
  uint32_t other = (uint32_t)(found >> KJ_WATCH_RESULT_BITS & 0xffffff);
  bool writes = found >> 32 & 1, was_written = (found & 0xff) == KJ_WATCH_WAS_WRITTEN;
  kj_append_format(text, "a race: element %" PRId64 " is %s here, and ", (int64_t)record->values[0],
                   writes ? "written" : "read");
  if (other < KJ_WATCH_SEVERAL) kj_append_format(text, "thread number %u of the block", other);
  else kj_append_text(text, "several other threads");
  kj_append_format(text, " %s it; there is no barrier between", was_written ? "wrote" : "read");
}

static void say_view_size(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)site;
  kj_append_format(text, "a view of %" PRIu64 " bytes in %" PRIu64, record->values[0],
                   record->values[1]);
}

static void say_view_start(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)site;
  kj_append_format(text,
                   "a view whose elements are aligned to %" PRIu64 " bytes begins %" PRIu64
                   " after a multiple of that",
                   record->values[0], record->values[1]);
}

static void say_step(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)record;
  bool is_slice = site->at.text_bytes > 0; /* KJ_SLICE_STEP */
  kj_append_format(text, "the step of %s is 0", is_slice ? "the slice" : "`range`");
}

static void say_interrupted(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)site, (void)record;
  kj_append_text(text, "interrupted here");
}

static void say_wait(kj_buffer *text, const site *site, const kj_failure_record *record)
{
  (void)site, (void)record;
  kj_append_text(text, "deadlock: this loop waits for another thread, but the CPU runs the threads "
                       "of a block one after the other between block barriers");
}

static void (*const say[])(kj_buffer *, const site *, const kj_failure_record *) = {
  [KJ_FAILURE_RAISE] = say_raise,
  [KJ_FAILURE_ASSERT] = say_assert,
  [KJ_FAILURE_BOUNDS] = say_bounds,
  [KJ_FAILURE_DIVISION] = say_division,
  [KJ_FAILURE_BARRIER] = say_barrier,
  [KJ_FAILURE_UNINITIALIZED] = say_uninitialized,
  [KJ_FAILURE_RACE] = say_race,
  [KJ_FAILURE_VIEW_SIZE] = say_view_size,
  [KJ_FAILURE_VIEW_START] = say_view_start,
  [KJ_FAILURE_STEP] = say_step,
  [KJ_FAILURE_INTERRUPTED] = say_interrupted,
  [KJ_FAILURE_RECURSION] = say_raise,
  [KJ_FAILURE_WAIT] = say_wait
};

static const kjit_failure failure_of[] = { [KJ_FAILURE_RAISE] = KJIT_FAILURE_RAISE,
                                           [KJ_FAILURE_ASSERT] = KJIT_FAILURE_ASSERT,
                                           [KJ_FAILURE_BOUNDS] = KJIT_FAILURE_BOUNDS,
                                           [KJ_FAILURE_DIVISION] = KJIT_FAILURE_DIVISION,
                                           [KJ_FAILURE_BARRIER] = KJIT_FAILURE_BARRIER,
                                           [KJ_FAILURE_UNINITIALIZED] = KJIT_FAILURE_UNINITIALIZED,
                                           [KJ_FAILURE_RACE] = KJIT_FAILURE_RACE,
                                           [KJ_FAILURE_VIEW_SIZE] = KJIT_FAILURE_VIEW_SIZE,
                                           [KJ_FAILURE_VIEW_START] = KJIT_FAILURE_VIEW_START,
                                           [KJ_FAILURE_STEP] = KJIT_FAILURE_STEP,
                                           [KJ_FAILURE_INTERRUPTED] = KJIT_FAILURE_INTERRUPTED,
                                           [KJ_FAILURE_RECURSION] = KJIT_FAILURE_RECURSION,
                                           [KJ_FAILURE_WAIT] = KJIT_FAILURE_WAIT };
_Static_assert(sizeof failure_of / sizeof *failure_of == KJ_FAILURE_KIND_COUNT, "all kinds");

/* Returns whether the message comes from the kernel's source. */
static bool has_text(const site *site)
{
  bool is_given = site->at.text_bytes;
  return site->at.kind == KJ_FAILURE_RAISE || (site->at.kind == KJ_FAILURE_ASSERT && is_given);
}

static void describe(const kj_failing *failing, const site *site, const kj_failure_record *record,
                     kj_diagnostics *diagnostics)
{
  static const uint32_t none[3] = { 0 };
  kj_buffer text = { 0 };
  kj_append(&text, "", 0);
  if (has_text(site)) append_message(&text, site);
  bool is_whole = !failing->is_func && record->thread[0] == (uint32_t)KJ_NO_THREAD;
  kj_describe_failure(diagnostics, failure_of[site->at.kind],
                      failing->is_func ? none : record->block,
                      failing->is_func ? none : record->thread, is_whole,
                      has_text(site) ? text.text : NULL);
  kj_free_buffer(&text);
}

/* Returns "kernel" or "func". */
static const char *kind_of(const kj_failing *failing)
{
  return failing->is_func ? "function" : "kernel";
}

kjit_status kj_report_record(const kj_failing *failing, const kj_failure_record *record,
                             kj_diagnostics *diagnostics)
{
  const uint32_t *block = record->block, *thread = record->thread;
  site site;
  if (!find_site(failing->code, record->site, &site))
    return kj_error(diagnostics, KJIT_ERROR_KERNEL, "%s `%s` failed at an unknown position",
                    kind_of(failing), failing->name);
  kj_buffer where = { 0 }, text = { 0 };
  kj_append_format(&where, "%s `%s`", kind_of(failing), failing->name);
  if (!failing->is_func)
    kj_append_format(&where, ", block (%u, %u, %u)", block[0], block[1], block[2]);
  if (!failing->is_func && thread[0] != (uint32_t)KJ_NO_THREAD)
    kj_append_format(&where, ", thread (%u, %u, %u)", thread[0], thread[1], thread[2]);
  KJ_ASSERT(site.at.kind < KJ_FAILURE_KIND_COUNT && say[site.at.kind]);
  say[site.at.kind](&text, &site, record);
  kjit_status status =
    site.at.kind == KJ_FAILURE_INTERRUPTED ? KJIT_ERROR_INTERRUPTED : KJIT_ERROR_KERNEL;
  (void)kj_error_at(diagnostics, failing->module, site.at.location, status,
                    KJ_PHRASE(FAILED_THREAD, "%s") ": %s", where.text ? where.text : failing->name,
                    text.text ? text.text : "out of memory");
  describe(failing, &site, record, diagnostics);
  kj_free_buffer(&where);
  kj_free_buffer(&text);
  return status;
}

/* ---- failure records of a device ---- */

/* A failure record. The record is in host memory that the device can write, so the host reads the
 * record without a driver call. */
struct kj_failure_slot {
  kj_failure_slot *next;
  kj_failing failing;
  kj_failure_record *record;
  uint32_t generation; /* generation of the device */
};

kjit_status kj_open_failure_slot(kjit_device *device, const kj_failing *failing,
                                 kj_diagnostics *diagnostics, kj_failure_slot **slot,
                                 uint64_t *address)
{
  void *record;
  kj_failure_slot *made = calloc(1, sizeof *made);
  KJ_ASSERT(device->operations->is_queued && failing->name && failing->code->can_fail);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status =
    device->operations->map(device, sizeof *made->record, diagnostics, &record, address);
  if (status != KJIT_OK) {
    free(made);
    return status;
  }
  KJ_ASSERT(record && *address);
  made->failing = *failing;
  made->record = record;
  made->generation = atomic_load(&device->generation);
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  kj_failure_slot **at = &device->failure_slots; /* slots are in the order of registration, and
                                                    failures are reported in this order */
  while (*at) at = &(*at)->next;
  *at = made;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  *slot = made;
  return KJIT_OK;
}

void *kj_close_failure_slot(kjit_device *device, kj_failure_slot *slot)
{
  if (!slot) return NULL;
  void *record = slot->record;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  kj_failure_slot **at = &device->failure_slots;
  while (*at && *at != slot) at = &(*at)->next;
  KJ_ASSERT(*at);
  if (*at) *at = slot->next;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  free(slot);
  return record;
}

kjit_status kj_take_failures(kjit_device *device, kj_diagnostics *diagnostics)
{
  kjit_status status = KJIT_OK;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  uint32_t generation = atomic_load(&device->generation);
  for (kj_failure_slot *slot = device->failure_slots; slot; slot = slot->next) {
    if (slot->generation != generation) continue;
    if (__atomic_load_n(&slot->record->state, __ATOMIC_ACQUIRE) != KJ_FAILURE_WRITTEN) continue;
    kj_failure_record record = *slot->record;
    __atomic_store_n(&slot->record->state, KJ_FAILURE_FREE, __ATOMIC_RELEASE);
    status = kj_report_record(&slot->failing, &record, diagnostics);
    atomic_fetch_add(&device->failures, 1);
  }
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  return status;
}
