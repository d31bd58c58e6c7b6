#include "base/interrupt.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 256, PAGES = 256 };

/* The host's data for one interrupt word. Threads read `number` and `listens` without holding the
 * mutex. */
typedef struct slot {
  _Atomic uint64_t number; /* number of the launch that owns the word */
  /* 1 + the index of the word that interrupts this launch; 0 means none */
  _Atomic uint32_t listens;
  uint64_t deadline_ns; /* 0 means no deadline */
  uint64_t closed_at;   /* number of waits for the device that had begun when the slot was closed */
  kj_interrupt_slot next; /* next slot in the list of free or closed slots; 0 means none */
  bool ends_with_time;    /* the slot is freed when its time limit has passed */
  bool is_listed;         /* the slot is in the list of free or closed slots */
} slot;

typedef struct page {
  kj_interrupt_word *words; /* mapped into the address space of the device */
  uint64_t address;         /* address on the device */
  slot slots[SLOTS];
} page;

struct kj_interrupts {
  kj_attachment attachment;
  kjit_device *device;
  _Atomic uint64_t newest; /* number of the last launch */
  _Atomic uint32_t page_count;
  _Atomic(page *) pages[PAGES];
  /* protects the fields below, and the fields of slots that are not atomic */
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t watchdog;
  bool has_watchdog, is_stopping;
  uint64_t wakes_at_ns, waits;
  kj_interrupt_slot free, closed;
};

static void lock(struct kj_interrupts *all) { kj_lock(&all->mutex, KJ_LOCK_INTERRUPTS); }
static void unlock(struct kj_interrupts *all) { kj_unlock(&all->mutex, KJ_LOCK_INTERRUPTS); }

static page *page_of(struct kj_interrupts *all, kj_interrupt_slot number)
{
  return atomic_load_explicit(&all->pages[number / SLOTS], memory_order_acquire);
}

static slot *slot_of(struct kj_interrupts *all, kj_interrupt_slot number)
{
  KJ_ASSERT(number < SLOTS * PAGES && page_of(all, number));
  return &page_of(all, number)->slots[number % SLOTS];
}

static uint64_t address_of(struct kj_interrupts *all, kj_interrupt_slot number)
{
  KJ_ASSERT(number < SLOTS * PAGES && page_of(all, number) && page_of(all, number)->address);
  return page_of(all, number)->address + number % SLOTS * sizeof(kj_interrupt_word);
}

/* ---- interrupting; signal handlers call these functions, too ---- */

static void raise_to(kj_interrupt_word *word, uint64_t number)
{
  uint64_t known = __atomic_load_n(&word->up_to, __ATOMIC_RELAXED);
  while (known < number && !__atomic_compare_exchange_n(&word->up_to, &known, number, false,
                                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
}

static void raise_slot(struct kj_interrupts *all, kj_interrupt_slot number, uint64_t up_to)
{
  page *page = page_of(all, number);
  if (page) raise_to(&page->words[number % SLOTS], up_to);
}

static uint32_t count_slots(struct kj_interrupts *all)
{
  return atomic_load_explicit(&all->page_count, memory_order_acquire) * SLOTS;
}

void kj_interrupt_slot_now(kjit_device *device, kj_interrupt_slot number)
{
  struct kj_interrupts *all = device->interrupts;
  if (!all) return;
  uint64_t newest = atomic_load(&all->newest);
  uint32_t count = count_slots(all);
  if (number < count) raise_slot(all, number, newest);
  for (kj_interrupt_slot i = 0; i < count; i++) {
    slot *slot = slot_of(all, i);
    uint64_t own = atomic_load(&slot->number);
    /* another launch can get the slot in the meantime; its number is larger, so it is not
     * interrupted */
    if (own && atomic_load(&slot->listens) == number + 1) raise_slot(all, i, own);
  }
}

void kj_interrupt_device(kjit_device *device)
{
  struct kj_interrupts *all = device->interrupts;
  if (!all) return;
  uint64_t newest = atomic_load(&all->newest);
  for (kj_interrupt_slot i = 0, count = count_slots(all); i < count; i++)
    raise_slot(all, i, newest);
}

/* ---- words; under the mutex ---- */

static void push(struct kj_interrupts *all, kj_interrupt_slot *list, kj_interrupt_slot number)
{
  slot *pushed = slot_of(all, number);
  KJ_ASSERT(kj_is_locked_here(&all->mutex));
  /* word 0 belongs to the default stream and is never freed */
  KJ_ASSERT(number && !pushed->is_listed);
  pushed->next = *list;
  pushed->is_listed = true;
  *list = number;
}

/* Removes the first slot from a list that is not empty. */
static slot *pop(struct kj_interrupts *all, kj_interrupt_slot *list)
{
  slot *first = slot_of(all, *list);
  KJ_ASSERT(kj_is_locked_here(&all->mutex));
  KJ_ASSERT(*list && first->is_listed);
  *list = first->next;
  first->is_listed = false;
  return first;
}

static kjit_status add_page(struct kj_interrupts *all, kj_diagnostics *diagnostics)
{
  uint32_t count = atomic_load(&all->page_count);
  void *words = NULL;
  KJ_ASSERT(kj_is_locked_here(&all->mutex) && !all->free);
  if (count == PAGES)
    return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                    "the device already has %d interruptible streams, interrupters, graphs and "
                    "launches with a time limit in use, which is the maximum; wait for the device",
                    PAGES * SLOTS);
  page *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status = all->device->operations->map(all->device, SLOTS * sizeof(kj_interrupt_word),
                                                    diagnostics, &words, &made->address);
  if (status != KJIT_OK) {
    free(made);
    return status;
  }
  made->words = words;
  KJ_ASSERT(count < PAGES && !atomic_load(&all->pages[count]));
  atomic_store_explicit(&all->pages[count], made, memory_order_release);
  for (uint32_t i = SLOTS; i-- > 0;)
    if (count || i) push(all, &all->free, count * SLOTS + i);
  atomic_store_explicit(&all->page_count, count + 1, memory_order_release);
  return KJIT_OK;
}

static kjit_status take(struct kj_interrupts *all, kj_diagnostics *diagnostics,
                        kj_interrupt_slot *number)
{
  if (!all->free) KJ_TRY(add_page(all, diagnostics));
  *number = all->free;
  slot *taken = pop(all, &all->free);
  KJ_ASSERT(!atomic_load(&taken->number) && !atomic_load(&taken->listens));
  KJ_ASSERT(!taken->deadline_ns);
  taken->ends_with_time = false;
  page_of(all, *number)->words[*number % SLOTS].base = 0;
  return KJIT_OK;
}

static void give(struct kj_interrupts *all, kj_interrupt_slot number)
{
  slot *slot = slot_of(all, number);
  atomic_store(&slot->listens, 0);
  atomic_store(&slot->number, 0);
  slot->deadline_ns = 0;
  push(all, &all->free, number);
}

static kjit_status refuse(kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                  "this call needs a context that was created with kjit_config.interruptible");
}

kjit_status kj_open_interrupt_slot(kjit_device *device, kj_diagnostics *diagnostics,
                                   kj_interrupt_slot *number)
{
  struct kj_interrupts *all = device->interrupts;
  if (!all) return refuse(diagnostics);
  lock(all);
  kjit_status status = take(all, diagnostics, number);
  unlock(all);
  return status;
}

/* Closes a slot. Queued launches may still poll its word. The slot is not reused before these
 * launches have ended, because an interruption of its next owner would also interrupt them. */
void kj_close_interrupt_slot(kjit_device *device, kj_interrupt_slot number)
{
  struct kj_interrupts *all = device->interrupts;
  if (!all || !number) return;
  lock(all);
  bool is_there = number < count_slots(all); /* false after a reset, because the device has no such
                                              * word then */
  if (is_there && device->operations->is_queued) {
    KJ_ASSERT(slot_of(all, number)->closed_at <= all->waits);
    slot_of(all, number)->closed_at = all->waits;
    push(all, &all->closed, number);
  } else if (is_there) give(all, number);
  unlock(all);
}

/* ---- time limits ---- */

/* Interrupts the launches whose time is over, and returns the time of the next deadline. The caller
 * holds the mutex. */
static uint64_t look_at_deadlines(struct kj_interrupts *all, uint64_t now)
{
  uint64_t next = UINT64_MAX;
  KJ_ASSERT(kj_is_locked_here(&all->mutex));
  for (kj_interrupt_slot i = 1, count = count_slots(all); i < count; i++) {
    slot *slot = slot_of(all, i);
    if (!slot->deadline_ns) continue;
    if (slot->deadline_ns > now) {
      if (slot->deadline_ns < next) next = slot->deadline_ns;
      continue;
    }
    KJ_ASSERT(!slot->is_listed && atomic_load(&slot->number));
    slot->deadline_ns = 0;
    raise_slot(all, i, atomic_load(&slot->number));
    if (slot->ends_with_time) give(all, i);
  }
  return next;
}

static void *watch(void *data)
{
  enum { SECOND = 1000000000 };
  struct kj_interrupts *all = data;
  lock(all);
  while (!all->is_stopping) {
    all->wakes_at_ns = look_at_deadlines(all, kj_clock_ns());
    struct timespec until = { .tv_sec = (time_t)(all->wakes_at_ns / SECOND),
                              .tv_nsec = (long)(all->wakes_at_ns % SECOND) };
    if (all->wakes_at_ns == UINT64_MAX) kj_wait_for(&all->changed, &all->mutex);
    else pthread_cond_timedwait(&all->changed, &all->mutex, &until);
  }
  unlock(all);
  return NULL;
}

/* Starts the thread that watches time limits. The thread blocks all signals, because signals belong
 * to the application's threads. */
static kjit_status start_watchdog(struct kj_interrupts *all, kj_diagnostics *diagnostics)
{
  sigset_t none, before;
  if (all->has_watchdog) return KJIT_OK;
  sigfillset(&none);
  pthread_sigmask(SIG_SETMASK, &none, &before);
  all->has_watchdog = pthread_create(&all->watchdog, NULL, watch, all) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return all->has_watchdog
           ? KJIT_OK
           : kj_error(diagnostics, KJIT_ERROR_MEMORY, "cannot create a thread for time limits");
}

static kjit_status begin_limited(struct kj_interrupts *all, kj_interrupt_slot listens,
                                 uint64_t time_limit_ns, kj_diagnostics *diagnostics,
                                 kj_interruptible_launch *launch)
{
  uint64_t deadline = kj_deadline_ns(time_limit_ns);
  KJ_TRY(start_watchdog(all, diagnostics));
  KJ_TRY(take(all, diagnostics, &launch->own));
  slot *own = slot_of(all, launch->own);
  KJ_ASSERT(listens < count_slots(all) && all->has_watchdog);
  launch->number = atomic_fetch_add(&all->newest, 1) + 1;
  launch->word = address_of(all, launch->own);
  atomic_store(&own->number, launch->number);
  atomic_store(&own->listens, listens + 1);
  own->deadline_ns = deadline;
  own->ends_with_time = all->device->operations->is_queued;
  if (deadline < all->wakes_at_ns) pthread_cond_signal(&all->changed);
  return KJIT_OK;
}

/* ---- launches ---- */

/* Maps the first page, which has the word of the default stream. */
static kjit_status open_first(struct kj_interrupts *all, kj_diagnostics *diagnostics)
{
  if (atomic_load_explicit(&all->page_count, memory_order_acquire)) return KJIT_OK;
  lock(all);
  kjit_status status = atomic_load(&all->page_count) ? KJIT_OK : add_page(all, diagnostics);
  unlock(all);
  return status;
}

kjit_status kj_begin_interruptible(kjit_device *device, kj_interrupt_slot listens,
                                   uint64_t time_limit_ns, kj_diagnostics *diagnostics,
                                   kj_interruptible_launch *launch)
{
  struct kj_interrupts *all = device->interrupts;
  if (!all) return refuse(diagnostics);
  KJ_TRY(open_first(all, diagnostics));
  *launch = (kj_interruptible_launch){ 0 };
  if (time_limit_ns) {
    lock(all);
    kjit_status status = begin_limited(all, listens, time_limit_ns, diagnostics, launch);
    unlock(all);
    return status;
  }
  launch->number = atomic_fetch_add_explicit(&all->newest, 1, memory_order_relaxed) + 1;
  launch->word = address_of(all, listens);
  KJ_ASSERT(launch->number && launch->word && !launch->own);
  return KJIT_OK;
}

void kj_end_interruptible(kjit_device *device, const kj_interruptible_launch *launch)
{
  struct kj_interrupts *all = device->interrupts;
  if (!launch->own || !all) return;
  lock(all);
  if (launch->own < count_slots(all) &&
      atomic_load(&slot_of(all, launch->own)->number) == launch->number)
    give(all, launch->own);
  unlock(all);
}

/* Returns whether the stream is the default stream. The native handle does not tell this, because
 * no stream of the CPU has a native handle. */
static bool is_default(const kjit_stream *stream)
{
  return !stream->native && (stream->object.device->operations->is_queued || stream->is_borrowed);
}

kjit_status kj_find_stream_slot(kjit_device *device, kjit_stream *stream,
                                kj_diagnostics *diagnostics, kj_interrupt_slot *number)
{
  *number = 0;
  if (!stream || !device->interrupts || stream->object.device != device) return KJIT_OK;
  if (is_default(stream) ||
      (*number = atomic_load_explicit(&stream->interrupts, memory_order_acquire)))
    return KJIT_OK;
  KJ_TRY(open_first(device->interrupts, diagnostics));
  KJ_TRY(kj_open_interrupt_slot(device, diagnostics, number));
  uint32_t none = 0;
  if (atomic_compare_exchange_strong(&stream->interrupts, &none, *number)) return KJIT_OK;
  /* another thread has allocated a word for the stream meanwhile */
  kj_end_interruptible(device, &(kj_interruptible_launch){ .own = *number });
  *number = none;
  return KJIT_OK;
}

/* ---- graphs ---- */

kjit_status kj_find_graph_word(kjit_device *device, kj_interrupt_slot own,
                               kj_diagnostics *diagnostics, kj_interruptible_launch *launch)
{
  if (!device->interrupts) return refuse(diagnostics);
  KJ_ASSERT(own && own < count_slots(device->interrupts));
  *launch = (kj_interruptible_launch){ .word = address_of(device->interrupts, own) };
  return KJIT_OK;
}

/* Writes the number of a graph's launch. The upper half is written first, so that a kernel that
 * reads the number between the two writes sees a number that is too large instead of one that is
 * too small. */
kjit_status kj_number_graph(kjit_device *device, kj_interrupt_slot own, kj_interrupt_slot listens,
                            void *stream, kj_diagnostics *diagnostics)
{
  struct kj_interrupts *all = device->interrupts;
  uint64_t number = atomic_fetch_add(&all->newest, 1) + 1,
           base = address_of(all, own) + offsetof(kj_interrupt_word, base);
  slot *slot = slot_of(all, own);
  KJ_ASSERT(own && !slot->is_listed && atomic_load(&slot->number) < number);
  KJ_ASSERT(listens < count_slots(all) && listens != own);
  atomic_store(&slot->listens, 0);
  atomic_store(&slot->number, number);
  atomic_store(&slot->listens, listens + 1);
  KJ_TRY(
    device->operations->set(device, base + 4, (uint32_t)(number >> 32), 4, 1, stream, diagnostics));
  return device->operations->set(device, base, (uint32_t)number, 4, 1, stream, diagnostics);
}

/* ---- a device ---- */

/* Stops the watchdog thread after the last launch has ended, because time limits apply until
 * then. */
static void stop_watchdog(struct kj_interrupts *all)
{
  lock(all);
  bool has_watchdog = all->has_watchdog;
  all->is_stopping = true;
  all->has_watchdog = false;
  pthread_cond_signal(&all->changed);
  unlock(all);
  if (has_watchdog) pthread_join(all->watchdog, NULL);
}

static void drop_pages(struct kj_interrupts *all, bool releases)
{
  for (uint32_t i = 0; i < PAGES; i++) {
    page *page = atomic_exchange(&all->pages[i], NULL);
    if (page && releases) all->device->operations->release_mapped(all->device, page->words);
    free(page);
  }
}

static void destroy(kj_attachment *attachment)
{
  struct kj_interrupts *all = (struct kj_interrupts *)attachment;
  stop_watchdog(all);
  KJ_ASSERT(all->device->interrupts == all && !all->has_watchdog);
  all->device->interrupts = NULL;
  drop_pages(all, !atomic_load(&all->device->lost));
  kj_destroy_mutex(&all->mutex);
  pthread_cond_destroy(&all->changed);
  free(all);
}

/* Discards all words after a reset, which has freed them together with the device's memory. Streams
 * from before the reset cannot be used, so they do not request new words. */
static void forget(kj_attachment *attachment)
{
  struct kj_interrupts *all = (struct kj_interrupts *)attachment;
  lock(all);
  atomic_store(&all->page_count, 0);
  all->free = all->closed = 0;
  drop_pages(all, false);
  unlock(all);
}

static void *begin_wait(kj_attachment *attachment)
{
  struct kj_interrupts *all = (struct kj_interrupts *)attachment;
  lock(all);
  uint64_t begun = ++all->waits;
  unlock(all);
  return (void *)(uintptr_t)begun; /* NOLINT(performance-no-int-to-ptr) */
}

static void end_wait(kj_attachment *attachment, void *covered, bool is_done)
{
  struct kj_interrupts *all = (struct kj_interrupts *)attachment;
  if (!is_done) return;
  lock(all);
  KJ_ASSERT((uintptr_t)covered && (uintptr_t)covered <= all->waits);
  kj_interrupt_slot closed = all->closed;
  all->closed = 0;
  while (closed) {
    kj_interrupt_slot number = closed;
    const slot *slot = pop(all, &closed);
    KJ_ASSERT(slot->closed_at <= all->waits);
    if (slot->closed_at < (uintptr_t)covered) give(all, number);
    else push(all, &all->closed, number);
  }
  unlock(all);
}

kjit_status kj_open_interrupts(kjit_device *device, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = {
    .destroy = destroy, .forget = forget, .begin_wait = begin_wait, .end_wait = end_wait
  };
  if (!device->context->config.interruptible) return KJIT_OK;
  struct kj_interrupts *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&made->changed, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&made->mutex, NULL);
  made->device = device;
  device->interrupts = made;
  kj_attach_to_device(device, &made->attachment, &class);
  return KJIT_OK;
}

/* ---- functions that the application calls ---- */

void kjit_interrupt(kjit_context *context)
{
  if (context && !ki_is_forked(context)) atomic_fetch_add(&context->interrupts, 1);
  kj_runtime *runtime = context ? __atomic_load_n(&context->runtime, __ATOMIC_ACQUIRE) : NULL;
  if (!runtime || ki_is_forked(context)) return;
  for (uint32_t i = 0; i < runtime->kind_count; i++) {
    kj_kind *kind = &runtime->kinds[i];
    if (!atomic_load_explicit(&kind->is_open, memory_order_acquire)) continue;
    for (uint32_t k = 0; k < kind->count; k++) {
      kjit_device *device = atomic_load_explicit(&kind->devices[k], memory_order_acquire);
      if (device) kj_interrupt_device(device);
    }
  }
}

void kjit_interrupt_stream(kjit_stream *stream)
{
  if (!stream || ki_is_forked(stream->object.device->context)) return;
  kjit_device *device = stream->object.device;
  kj_interrupt_slot slot = atomic_load_explicit(&stream->interrupts, memory_order_acquire);
  KJ_ASSERT(!slot || !is_default(stream)); /* the default stream has word 0 */
  if (slot || is_default(stream)) kj_interrupt_slot_now(device, slot);
}

kjit_interrupter *kj_retain_interrupter(kjit_interrupter *interrupter)
{
  if (interrupter) atomic_fetch_add_explicit(&interrupter->references, 1, memory_order_relaxed);
  return interrupter;
}

void kj_release_interrupter(kjit_interrupter *interrupter)
{
  if (!interrupter ||
      atomic_fetch_sub_explicit(&interrupter->references, 1, memory_order_acq_rel) != 1)
    return;
  kj_object *object = &interrupter->object;
  bool is_there = object->generation == atomic_load(&object->device->generation);
  if (is_there) kj_close_interrupt_slot(object->device, interrupter->slot);
  kj_free_object(object, interrupter);
}

/* Called when the application destroys the interrupter, or when the context ends. */
static void end_interrupter(kj_object *object)
{
  kj_release_interrupter((kjit_interrupter *)object);
}

kjit_status kj_create_interrupter(kjit_device *device, kj_diagnostics *diagnostics,
                                  kjit_interrupter **interrupter)
{
  kjit_interrupter *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status = kj_open_interrupt_slot(device, diagnostics, &made->slot);
  if (status == KJIT_OK) {
    atomic_store(&made->references, 1);
    kj_add_object(device, &made->object, end_interrupter);
    *interrupter = made;
  } else {
    free(made);
  }
  return status;
}

kjit_status kjit_create_interrupter(kjit_device *device, kjit_interrupter **interrupter)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!interrupter)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE,
                        "kjit_create_interrupter: interrupter is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)kj_create_interrupter(device, &diagnostics, interrupter);
  return ki_finish_call(device->context, &diagnostics);
}

void kjit_interrupt_launches(kjit_interrupter *interrupter)
{
  if (!interrupter || ki_is_forked(interrupter->object.device->context)) return;
  if (interrupter->object.generation == atomic_load(&interrupter->object.device->generation))
    kj_interrupt_slot_now(interrupter->object.device, interrupter->slot);
}

kjit_context *kjit_get_interrupter_context(const kjit_interrupter *interrupter)
{
  return kj_told_context(interrupter ? &interrupter->object : NULL);
}

void kjit_destroy_interrupter(kjit_interrupter *interrupter)
{
  if (interrupter && kj_take_object(&interrupter->object)) end_interrupter(&interrupter->object);
}
