/* Functions that work on a single device: its attachments, waits for its work, faults of kernels,
 * and its properties. */
#include "base/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/assert.h"
#include "support/lock.h"

/* ---- attachments ---- */

void kj_attach_to_device(kjit_device *device, kj_attachment *attachment,
                         const kj_attachment_class *class)
{
  *attachment = (kj_attachment){ .class = class, .device = device, .runtime = device->runtime };
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  uint32_t count = atomic_load(&device->attachment_count);
  KJ_ASSERT(count < KJ_MOST_ATTACHMENTS);
  for (uint32_t i = 0; i < count; i++) KJ_ASSERT(device->attachments[i] != attachment);
  device->attachments[count] = attachment;
  atomic_store_explicit(&device->attachment_count, count + 1, memory_order_release);
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
}

static uint32_t count_attachments(const kjit_device *device)
{
  return atomic_load_explicit(&device->attachment_count, memory_order_acquire);
}

void kj_relieve_device(kjit_device *device)
{
  kj_assert_no_locks();
  for (uint32_t i = 0; i < count_attachments(device); i++) {
    kj_attachment *at = device->attachments[i];
    if (at->class->relieve) at->class->relieve(at);
  }
}

void kj_deliver_lines(kjit_device *device)
{
  kj_assert_no_locks(); /* the deliver functions call the application's on_print */
  for (uint32_t i = 0; i < count_attachments(device); i++) {
    kj_attachment *at = device->attachments[i];
    if (at->class->deliver) at->class->deliver(at);
  }
}

kjit_status kj_report_kernels(kjit_device *device, kj_diagnostics *diagnostics)
{
  kjit_status status = KJIT_OK;
  kj_deliver_lines(device);
  for (uint32_t i = 0; i < count_attachments(device); i++) {
    kj_attachment *at = device->attachments[i];
    kjit_status found = at->class->report ? at->class->report(at, diagnostics) : KJIT_OK;
    if (found != KJIT_OK) status = found;
  }
  return status;
}

static void forget_attached(kjit_device *device)
{
  for (uint32_t i = 0; i < count_attachments(device); i++) {
    kj_attachment *at = device->attachments[i];
    if (at->class->forget) at->class->forget(at);
  }
}

/* ---- waiting ---- */

kjit_status kj_synchronize(kjit_device *device, bool whole, void *stream,
                           kj_diagnostics *diagnostics)
{
  void *covered[KJ_MOST_ATTACHMENTS];
  if (whole) kj_assert_no_locks();
  KJ_TRY(kj_check_device(device, diagnostics));
  uint32_t count = whole ? count_attachments(device) : 0;
  KJ_ASSERT(count <= KJ_MOST_ATTACHMENTS);
  for (uint32_t i = 0; i < count; i++) {
    kj_attachment *at = device->attachments[i];
    covered[i] = at->class->begin_wait ? at->class->begin_wait(at) : NULL;
  }
  uint64_t epoch = atomic_fetch_add(&device->epoch, 1);
  /* no capture can begin between this check and the end of the wait, because kjit_begin_capture
   * waits for that end */
  kjit_status status = whole ? kj_check_captures(device, diagnostics) : KJIT_OK;
  for (uint32_t i = 0; i < count && status == KJIT_OK; i++) {
    kj_attachment *at = device->attachments[i];
    if (at->class->check_wait) status = at->class->check_wait(at, diagnostics);
  }
  if (status == KJIT_OK)
    status = device->operations->synchronize(device, whole, stream, diagnostics);
  if (status == KJIT_OK) kj_note_synchronized(device, whole, stream, epoch);
  for (uint32_t i = 0; i < count; i++) {
    kj_attachment *at = device->attachments[i];
    if (at->class->end_wait) at->class->end_wait(at, covered[i], status == KJIT_OK);
  }
  return status;
}

kjit_status kj_check_captures(const kjit_device *device, kj_diagnostics *diagnostics)
{
  char place[24];
  if (!kj_has_captures(device)) return KJIT_OK;
  return kj_error(
    diagnostics, KJIT_ERROR_MISUSE,
    "a stream of %s is being captured; nothing can wait for the device before kjit_end_capture",
    kj_device_text(device, place));
}

kjit_status kjit_synchronize_device(kjit_device *device)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!device->operations->is_queued) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_check_captures(device, &diagnostics);
  if (status == KJIT_OK) status = kj_synchronize(device, true, NULL, &diagnostics);
  if (status == KJIT_OK) (void)kj_report_kernels(device, &diagnostics);
  else kj_deliver_lines(device);
  return ki_finish_call(device->context, &diagnostics);
}

/* ---- launch marks ---- */

kj_launch_mark *kj_get_mark(kjit_device *device, const char *name)
{
  KJ_ASSERT(name);
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  kj_launch_mark *mark = atomic_load(&device->marks);
  while (mark && strcmp(mark->name, name)) mark = mark->next;
  if (!mark && (mark = calloc(1, sizeof *mark))) {
    mark->name = strdup(name);
    mark->next = atomic_load(&device->marks);
    if (mark->name) {
      atomic_store(&device->marks, mark);
    } else {
      free(mark);
      mark = NULL;
    }
  }
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  return mark;
}

void kj_note_synchronized(kjit_device *device, bool whole, void *stream, uint64_t epoch)
{
  KJ_ASSERT(epoch && epoch < atomic_load(&device->epoch)); /* begin_wait has started a new epoch */
  if (whole) {
    uint64_t known = atomic_load(&device->synchronized_epoch);
    while (known < epoch &&
           !atomic_compare_exchange_weak(&device->synchronized_epoch, &known, epoch)) {}
    return;
  }
  for (kj_launch_mark *mark = atomic_load(&device->marks); mark; mark = mark->next)
    if (atomic_load(&mark->stream) == (uintptr_t)stream && atomic_load(&mark->epoch) <= epoch)
      atomic_store(&mark->epoch, 0);
}

/* Appends text such as "; launched since the last synchronization: `a`, `b`". */
static void append_pending(const kjit_device *device, kj_buffer *buffer)
{
  uint64_t synchronized = atomic_load(&device->synchronized_epoch);
  const char *separator = "; launched since the last synchronization: ";
  for (const kj_launch_mark *mark = atomic_load(&device->marks); mark; mark = mark->next) {
    if (atomic_load_explicit(&mark->epoch, memory_order_relaxed) <= synchronized) continue;
    kj_append_format(buffer, "%s`%s`", separator, mark->name);
    separator = ", ";
  }
}

/* ---- faults and reset ---- */

void kj_lose_device(kjit_device *device, const char *text)
{
  char place[24];
  kj_buffer buffer = { 0 };
  kj_append_format(&buffer, "%s has failed: %s", kj_device_text(device, place), text);
  append_pending(device, &buffer);
  kj_append_text(&buffer, "; it stays lost until kjit_reset_device");
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  if (!atomic_load(&device->lost)) {
    free(device->fault);
    device->fault = kj_take_text(&buffer);
    atomic_store(&device->lost, true);
  }
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  kj_free_buffer(&buffer);
}

kjit_status kj_check_device(const kjit_device *device, kj_diagnostics *diagnostics)
{
  if (!atomic_load_explicit(&device->lost, memory_order_acquire)) return KJIT_OK;
  /* the text is copied while the mutex is held, because a reset by another thread may replace it */
  pthread_mutex_t *mutex = (pthread_mutex_t *)&device->mutex;
  kj_lock(mutex, KJ_LOCK_DEVICE);
  kj_error(diagnostics, KJIT_ERROR_DEVICE, "%s",
           device->fault ? device->fault : "the device is lost until kjit_reset_device");
  kj_unlock(mutex, KJ_LOCK_DEVICE);
  return KJIT_ERROR_DEVICE;
}

/* Marks the device as lost for the rest of the process. Tests with driver 580 on an H200 show that
 * after a fault every order of reset, release and retain fails again in the same process. */
static void give_up(kjit_device *device, const kj_diagnostics *reasons)
{
  char place[24];
  kj_buffer text = { 0 };
  kj_append_format(&text,
                   "this process cannot use %s again: after the fault the driver does not allow a "
                   "new context (%s)",
                   kj_device_text(device, place),
                   reasons->count ? reasons->items[0].message : "out of memory");
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  free(device->fault);
  device->fault = kj_take_text(&text);
  atomic_store(&device->lost, true);
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
}

static kjit_status reset(kjit_device *device, kj_diagnostics *diagnostics)
{
  kj_diagnostics reasons = { 0 };
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  atomic_store(&device->lost, false);
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  atomic_fetch_add(&device->generation, 1);
  atomic_store(&device->captures, 0);
  atomic_store(&device->peers, 0);
  kj_assert_no_locks();
  forget_attached(device);
  uint64_t epoch = atomic_fetch_add(&device->epoch, 1);
  kj_note_synchronized(device, true, NULL, epoch);
  kjit_status status = device->operations->reset(device, &reasons);
  if (status != KJIT_OK) {
    give_up(device, &reasons);
    status = kj_check_device(device, diagnostics);
  }
  kj_free_diagnostics(&reasons);
  return status;
}

kjit_status kjit_reset_device(kjit_device *device)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!device->operations->reset) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  (void)reset(device, &diagnostics);
  (void)kj_report_kernels(device, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}

/* ---- properties ---- */

const char *kj_device_text(const kjit_device *device, char text[24])
{
  if (device->is_single) return device->operations->name;
  KJ_ASSERT(device->info.ordinal >= 0);
  snprintf(text, 24, "%s:%d", device->operations->name, device->info.ordinal);
  return text;
}

kjit_status kjit_get_device_info(const kjit_device *device, kjit_device_info *info)
{
  if (!device) return KJIT_ERROR_MISUSE;
  return ki_write_sized(device->context, "kjit_get_device_info", KI_DEVICE_INFO, &device->info,
                        info);
}

kjit_status kjit_get_device_attribute(const kjit_device *device, kjit_device_attribute attribute,
                                      int64_t *value)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!value)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_get_device_attribute: value is NULL");
  kj_diagnostics diagnostics = { 0 };
  /* the pointer is not const, because a fault marks the device as lost */
  kjit_device *asked = (kjit_device *)(uintptr_t)device;
  if ((unsigned)attribute >= KJIT_DEVICE_ATTRIBUTE_COUNT)
    (void)kj_error(&diagnostics, KJIT_ERROR_ARGUMENT, "device attribute %d does not exist",
                   (int)attribute);
  else if (kj_check_device(device, &diagnostics) == KJIT_OK)
    (void)device->operations->read_attribute(asked, attribute, &diagnostics, value);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_get_device_uuid(const kjit_device *device, unsigned char uuid[16])
{
  unsigned char read[16] = { 0 };
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!uuid)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_get_device_uuid: uuid is NULL");
  kj_diagnostics diagnostics = { 0 };
  kjit_device *asked = (kjit_device *)(uintptr_t)device;
  if (kj_check_device(device, &diagnostics) == KJIT_OK &&
      device->operations->read_uuid(asked, &diagnostics, read) == KJIT_OK)
    memcpy(uuid, read, sizeof read);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_get_memory_info(kjit_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
  uint64_t unused = 0, total = 0;
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  if (device->operations->read_memory(device, &diagnostics, &unused, &total) == KJIT_OK) {
    if (free_bytes) *free_bytes = unused;
    if (total_bytes) *total_bytes = total;
  }
  return ki_finish_call(device->context, &diagnostics);
}

/* ---- peer access ---- */

static kjit_status check_pair(const kjit_device *device, const kjit_device *peer,
                              kj_diagnostics *diagnostics)
{
  if (device->context != peer->context)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the devices belong to different contexts");
  KJ_TRY(kj_check_device(device, diagnostics));
  return kj_check_device(peer, diagnostics);
}

/* Returns whether the devices are different devices of the same kind. */
static bool are_peers(const kjit_device *device, const kjit_device *peer)
{
  return device != peer && device->operations == peer->operations;
}

static kjit_status can_access(kjit_device *device, kjit_device *peer, kj_diagnostics *diagnostics,
                              bool *can)
{
  *can = false;
  KJ_TRY(check_pair(device, peer, diagnostics));
  return are_peers(device, peer)
           ? device->operations->can_access_peer(device, peer, diagnostics, can)
           : KJIT_OK;
}

kjit_status kjit_can_access_peer(const kjit_device *device, const kjit_device *peer, int *can)
{
  bool result = false;
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!peer)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_can_access_peer: peer is NULL");
  if (!can)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_can_access_peer: can_access is NULL");
  kj_diagnostics diagnostics = { 0 };
  if (can_access((kjit_device *)(uintptr_t)device, (kjit_device *)(uintptr_t)peer, &diagnostics,
                 &result) == KJIT_OK)
    *can = result;
  return ki_finish_call(device->context, &diagnostics);
}

static kjit_status change_access(kjit_device *device, kjit_device *peer, bool is_on,
                                 kj_diagnostics *diagnostics)
{
  enum { MOST_PEERS = 64 };
  char here[24], there[24];
  bool can = false;
  KJ_TRY(check_pair(device, peer, diagnostics));
  if (!are_peers(device, peer))
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "peer access needs two different GPUs");
  if (peer->info.ordinal >= MOST_PEERS)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "peer access is supported only between the first %d GPUs", MOST_PEERS);
  KJ_ASSERT(peer->info.ordinal >= 0);
  uint64_t bit = (uint64_t)1 << peer->info.ordinal;
  if (!is_on) {
    KJ_TRY(device->operations->change_peer_access(device, peer, false, diagnostics));
    atomic_fetch_and(&device->peers, ~bit);
    return KJIT_OK;
  }
  KJ_TRY(can_access(device, peer, diagnostics, &can));
  if (!can)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "%s cannot access the memory of %s, because the driver does not allow peer "
                    "access between them; use kjit_copy",
                    kj_device_text(device, here), kj_device_text(peer, there));
  KJ_TRY(device->operations->change_peer_access(device, peer, true, diagnostics));
  atomic_fetch_or(&device->peers, bit);
  return KJIT_OK;
}

static kjit_status set_peer_access(const char *call, kjit_device *device, kjit_device *peer,
                                   bool is_on)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!peer) return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "%s: peer is NULL", call);
  kj_diagnostics diagnostics = { 0 };
  (void)change_access(device, peer, is_on, &diagnostics);
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_enable_peer_access(kjit_device *device, kjit_device *peer)
{
  return set_peer_access("kjit_enable_peer_access", device, peer, true);
}
kjit_status kjit_disable_peer_access(kjit_device *device, kjit_device *peer)
{
  return set_peer_access("kjit_disable_peer_access", device, peer, false);
}
