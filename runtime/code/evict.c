/* Evicts code that was not launched recently when the loaded code exceeds its limit. The
 * specialization stays and loads the code again when a launch needs it.
 *
 * A launch holds its specialization without a lock (specialization.h): it increments the slot of
 * its thread and then reads the state. Eviction clears the state, makes every running thread in the
 * process execute a memory barrier, and then reads the slots. So either the launch sees the cleared
 * state, or the eviction sees the incremented slot. Only eviction executes the expensive barrier; a
 * launch executes none. */
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "code/specialization.h"
#include "stream/stream.h"
#include "support/assert.h"

/* ---- slots: a thread keeps its slot until it ends ---- */

_Thread_local uint32_t kj_own_slot;

static _Atomic uint64_t taken; /* one bit for each slot except the shared slot */
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t slot_key;
static bool has_key;

_Static_assert(KJ_SLOTS == 64, "a bit for each slot");

/* Frees the slot of a thread that ends. The counts stay in the slot, and the next thread that gets
 * the slot continues them. */
static void give_back(void *data)
{
  uint32_t slot = (uint32_t)(uintptr_t)data - 1;
  KJ_ASSERT(slot < KJ_SHARED_SLOT && atomic_load(&taken) >> slot & 1);
  kj_own_slot = 0;
  atomic_fetch_and_explicit(&taken, ~((uint64_t)1 << slot), memory_order_release);
}

static void make_key(void) { has_key = !pthread_key_create(&slot_key, give_back); }

/* Deletes the thread-specific key, so that threads that end after the library was unloaded do not
 * call give_back. */
__attribute__((destructor)) static void drop_key(void)
{
  if (has_key) pthread_key_delete(slot_key);
}

static uint32_t take_free(void)
{
  uint64_t known = atomic_load_explicit(&taken, memory_order_relaxed);
  for (;;) {
    uint32_t slot = ~known ? (uint32_t)__builtin_ctzll(~known) : KJ_SHARED_SLOT;
    if (slot == KJ_SHARED_SLOT) return slot;
    if (atomic_compare_exchange_weak_explicit(&taken, &known, known | (uint64_t)1 << slot,
                                              memory_order_acquire, memory_order_relaxed))
      return slot;
  }
}

uint32_t kj_take_slot(void)
{
  pthread_once(&key_once, make_key);
  uint32_t slot = has_key ? take_free() : KJ_SHARED_SLOT;
  if (slot != KJ_SHARED_SLOT && pthread_setspecific(slot_key, (void *)(uintptr_t)(slot + 1))) {
    atomic_fetch_and_explicit(&taken, ~((uint64_t)1 << slot), memory_order_release);
    slot = KJ_SHARED_SLOT;
  }
  kj_own_slot = slot + 1;
  return slot;
}

/* ---- unloading ---- */

/* Code that no new launch uses, but that queued launches can still run. The struct also has the
 * memory to which the threads of these launches can still write: the failure record and the lines
 * in the print ring. It is allocated before the code is loaded, so that unloading cannot fail. */
typedef struct kj_unloading {
  struct kj_unloading *next;
  uint32_t generation;   /* generation of the device */
  void *module, *record; /* either of them can be NULL */
  uint32_t print_source;
} kj_unloading;

/* The list of a device's code that will be unloaded after the next wait for the device. */
typedef struct unloading_list {
  kj_attachment attachment;
  kj_unloading *first; /* protected by the device's mutex */
} unloading_list;

static kj_unloading *take_all(unloading_list *list)
{
  kjit_device *device = list->attachment.device;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  kj_unloading *taken = list->first;
  list->first = NULL;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  return taken;
}

static void add_to_list(unloading_list *list, kj_unloading *unloading)
{
  kjit_device *device = list->attachment.device;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  for (const kj_unloading *at = list->first; at; at = at->next)
    KJ_ASSERT(at != unloading && (!at->module || at->module != unloading->module));
  unloading->next = list->first;
  list->first = unloading;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
}

/* Takes the code that was listed before the wait begins. Only this code can be unloaded after the
 * wait, because launches of code that is listed later may still be queued. */
static void *begin_wait(kj_attachment *attachment)
{
  return take_all((unloading_list *)attachment);
}

static void unload(kjit_device *device, kj_unloading *unloading)
{
  /* if the generation has changed, the driver has already discarded the code */
  bool is_there = unloading->generation == atomic_load(&device->generation);
  if (is_there && unloading->module) device->operations->unload(device, unloading->module);
  if (is_there && unloading->record) device->operations->release_mapped(device, unloading->record);
  kj_close_prints(device, unloading->print_source);
  free(unloading);
}

static void end_wait(kj_attachment *attachment, void *covered, bool is_done)
{
  for (kj_unloading *at = covered, *next; at; at = next) {
    next = at->next;
    if (is_done) unload(attachment->device, at);
    else add_to_list((unloading_list *)attachment, at);
  }
}

bool kj_has_listed(kjit_device *device)
{
  const unloading_list *list = (const unloading_list *)device->unloading;
  if (!list) return false;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  bool has_some = list->first != NULL;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  return has_some;
}

/* Does nothing during a capture, because no call can wait for the device then. */
static void unload_listed(kjit_device *device)
{
  kj_diagnostics ignored = { 0 };
  if (kj_has_listed(device) && !kj_has_captures(device))
    (void)kj_synchronize(device, true, NULL, &ignored);
  kj_free_diagnostics(&ignored);
}

static void relieve(kj_attachment *attachment) { unload_listed(attachment->device); }

/* Unloads the list after a last wait. The device does not call this attachment any more. Code on a
 * lost device is freed with the device's context. */
static void destroy_list(kj_attachment *attachment)
{
  kj_diagnostics ignored = { 0 };
  kj_unloading *left = take_all((unloading_list *)attachment);
  bool is_done = left && kj_synchronize(attachment->device, true, NULL, &ignored) == KJIT_OK;
  kj_free_diagnostics(&ignored);
  for (kj_unloading *at = left, *next; at; at = next) {
    next = at->next;
    if (is_done) unload(attachment->device, at);
    else free(at);
  }
  KJ_ASSERT(attachment->device->unloading == attachment && !kj_has_listed(attachment->device));
  attachment->device->unloading = NULL;
  free(attachment);
}

kjit_status kj_open_unloading(kjit_device *device, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = {
    .destroy = destroy_list, .begin_wait = begin_wait, .end_wait = end_wait, .relieve = relieve
  };
  if (!device->operations->is_queued) return KJIT_OK;
  unloading_list *list = calloc(1, sizeof *list);
  if (!list) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kj_attach_to_device(device, &list->attachment, &class);
  device->unloading = &list->attachment;
  return KJIT_OK;
}

void kj_unload_listed(kj_runtime *runtime)
{
  for (uint32_t i = 0; i < runtime->kind_count; i++) {
    kj_kind *kind = &runtime->kinds[i];
    bool is_open = atomic_load_explicit(&kind->is_open, memory_order_acquire);
    for (uint32_t j = 0; is_open && j < kind->count; j++) {
      kjit_device *device = atomic_load_explicit(&kind->devices[j], memory_order_acquire);
      if (device) unload_listed(device);
    }
  }
}

kjit_status kj_expect_unloading(kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  if (specialization->unloading || !specialization->device->unloading) return KJIT_OK;
  specialization->unloading = calloc(1, sizeof *specialization->unloading);
  return specialization->unloading ? KJIT_OK
                                   : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* Unloads the code: after the next wait for the device if the device queues work, otherwise
 * immediately. */
static void unload_machine_code(kjit_specialization *specialization, void *record)
{
  kjit_device *device = specialization->device;
  kj_unloading *unloading = specialization->unloading;
  kj_runtime *runtime = device->runtime;
  void *module = specialization->device_code.module;
  /* a failure record exists only for code that has a kj_unloading struct */
  KJ_ASSERT(unloading || !record);
  if (unloading) {
    *unloading = (kj_unloading){ .generation = specialization->generation,
                                 .module = module,
                                 .record = record,
                                 .print_source = specialization->print_source };
    if (module || record) add_to_list((unloading_list *)device->unloading, unloading);
    else free(unloading);
  } else if (module) {
    device->operations->unload(device, module);
  }
  if (specialization->loaded) runtime->interface->unload(runtime->compiler, specialization->loaded);
  specialization->unloading = NULL;
  specialization->failure_slot = NULL;
  specialization->print_source = 0;
  specialization->loaded = NULL;
  specialization->device_code = (kj_device_code){ .function = KJ_UNLOADED };
}

void kj_unload_code(kjit_specialization *specialization)
{
  if (!specialization->device) return;
  unload_machine_code(specialization,
                      kj_close_failure_slot(specialization->device, specialization->failure_slot));
  kj_free_code(&specialization->code);
  atomic_store(&specialization->chosen_threads, 0);
  atomic_store(&specialization->resident_blocks, 0);
}

/* ---- code that is in use ---- */

uint64_t kj_count_launches(const kjit_specialization *specialization)
{
  uint64_t count = 0;
  for (uint32_t i = 0; i < KJ_SLOTS; i++)
    count += atomic_load_explicit(&specialization->holds[i].launched, memory_order_relaxed);
  return count;
}

/* Returns whether a launch or a pin uses the code. The counts of ended launches are read before the
 * counts of begun launches, so if the two sums are equal, there was a moment at which no launch was
 * running. */
static bool is_held(kjit_specialization *specialization)
{
  uint64_t ended = 0, begun = 0;
  for (uint32_t i = 0; i < KJ_SLOTS; i++)
    ended += atomic_load(&specialization->holds[i].launched) +
             atomic_load(&specialization->holds[i].passed);
  for (uint32_t i = 0; i < KJ_SLOTS; i++) begun += atomic_load(&specialization->holds[i].begun);
  KJ_ASSERT(begun >= ended);
  return begun != ended || atomic_load(&specialization->pins);
}

/* ---- code in graphs ---- */

static void pin_code(void *item)
{
  kjit_specialization *specialization = item;
  KJ_ASSERT(kj_is_held_here(specialization) || atomic_load(&specialization->pins));
  atomic_fetch_add(&specialization->pins, 1);
  (void)kjit_retain_module(specialization->kernel->module);
}

static void unpin_code(void *item)
{
  kjit_specialization *specialization = item;
  KJ_ASSERT(atomic_load(&specialization->pins));
  atomic_fetch_sub(&specialization->pins, 1);
  kjit_release_module(specialization->kernel->module);
}

static kjit_status mark_code(void *item, kjit_device *device, kjit_stream *stream,
                             kj_diagnostics *diagnostics)
{
  (void)diagnostics;
  KJ_ASSERT(atomic_load(&((kjit_specialization *)item)->pins));
  kj_mark_launch(device, ((kjit_specialization *)item)->device_code.mark, kj_native(stream));
  return KJIT_OK;
}

kjit_status kj_keep_code(kjit_stream *stream, kjit_specialization *specialization,
                         kj_diagnostics *diagnostics)
{
  static const kj_kept_kind kind = { pin_code, unpin_code, mark_code };
  return kj_keep(stream, &kind, specialization, diagnostics);
}

/* ---- the bound ---- */

static uint64_t limit_of(const kj_runtime *runtime)
{
  enum { DEFAULT_LIMIT = 256 << 20 };
  uint64_t given = runtime->context->config.code_limit_bytes;
  return given ? given : DEFAULT_LIMIT;
}

/* Returns whether code can be evicted. On a device that queues launches, code whose threads can
 * fail or print is never evicted, because the host may not have read its records yet. */
static bool can_go(const kjit_specialization *specialization)
{
  const kj_code *code = &specialization->code;
  if (kj_has_captures(specialization->device)) return false; /* unloading waits for the device */
  return !(specialization->device->operations->is_queued && (code->can_fail || code->prints));
}

/* Executes a memory barrier on all running threads. Returns false if the system does not support
 * this; kjit then never unloads code. */
static bool pass_barrier(void)
{
  if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)) return true;
  return !syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
         !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static bool try_unload(kjit_specialization *specialization)
{
  kj_lock(&specialization->mutex, KJ_LOCK_SPECIALIZATION);
  bool goes = atomic_load(&specialization->state) == KJ_READY && can_go(specialization);
  if (goes) {
    atomic_store(&specialization->state, KJ_FAILED);
    goes = pass_barrier() && !is_held(specialization);
    if (!goes) atomic_store(&specialization->state, KJ_READY);
  }
  if (goes) {
    free(atomic_exchange(&specialization->table, NULL));
    atomic_store(&specialization->has_tried_table, false);
    kj_unload_code(specialization);
  }
  kj_unlock(&specialization->mutex, KJ_LOCK_SPECIALIZATION);
  return goes;
}

static void append(kj_runtime *runtime, kjit_specialization *entry)
{
  kjit_specialization **end = &runtime->loaded;
  KJ_ASSERT(kj_is_locked_here(&runtime->loaded_mutex));
  for (; *end; end = &(*end)->next_loaded) KJ_ASSERT(*end != entry);
  *end = entry;
  entry->next_loaded = NULL;
}

/* Checks that the list contains exactly the loaded code and that the sum of its bytes is
 * correct. */
static void check_loaded(const kj_runtime *runtime)
{
  uint64_t bytes = 0;
  if (!KJ_HAS_ASSERTIONS) return;
  KJ_ASSERT(kj_is_locked_here(&runtime->loaded_mutex));
  for (const kjit_specialization *at = runtime->loaded; at; at = at->next_loaded) {
    KJ_ASSERT(at->code_bytes);
    bytes += at->code_bytes;
  }
  KJ_ASSERT(bytes == runtime->loaded_bytes);
}

/* Removes the next specialization to evict from the list (second-chance algorithm): the oldest
 * specialization that was not launched since the previous sweep. Specializations that were launched
 * since then move to the end of the list. Returns NULL if two passes over the list find no such
 * specialization. The caller holds loaded_mutex. */
static kjit_specialization *take_victim(kj_runtime *runtime, const kjit_specialization *keep)
{
  size_t count = 0;
  for (const kjit_specialization *at = runtime->loaded; at; at = at->next_loaded) count++;
  for (size_t i = 0; i < 2 * count; i++) {
    kjit_specialization *entry = runtime->loaded;
    uint64_t launches = kj_count_launches(entry);
    runtime->loaded = entry->next_loaded;
    if (entry != keep && launches == entry->swept) return entry;
    entry->swept = launches;
    append(runtime, entry);
  }
  return NULL;
}

/* Evicts code until the size of the loaded code is within the limit. Code that cannot be unloaded
 * now is removed from the list until the sweep ends. The caller holds loaded_mutex. */
static void sweep(kj_runtime *runtime, const kjit_specialization *keep)
{
  uint64_t limit = limit_of(runtime);
  check_loaded(runtime);
  kjit_specialization *kept = NULL;
  for (kjit_specialization *entry;
       runtime->loaded_bytes > limit && (entry = take_victim(runtime, keep));) {
    if (try_unload(entry)) {
      runtime->loaded_bytes -= entry->code_bytes;
      entry->next_loaded = NULL;
      entry->code_bytes = 0;
      atomic_fetch_add_explicit(&runtime->context->counters.evictions, 1, memory_order_relaxed);
      continue;
    }
    entry->next_loaded = kept;
    kept = entry;
  }
  while (kept) {
    kjit_specialization *next = kept->next_loaded;
    append(runtime, kept);
    kept = next;
  }
  check_loaded(runtime);
}

void kj_note_loaded(kjit_specialization *specialization)
{
  kj_runtime *runtime = specialization->device->runtime;
  kj_lock(&runtime->loaded_mutex, KJ_LOCK_LOADED);
  if (!specialization->code_bytes) {
    KJ_ASSERT(specialization->compiled_bytes); /* 0 means that the code is not in the list */
    append(runtime, specialization);
    specialization->code_bytes = specialization->compiled_bytes;
    specialization->swept = UINT64_MAX; /* the first sweep never evicts new code */
    runtime->loaded_bytes += specialization->code_bytes;
  }
  sweep(runtime, specialization);
  kj_unlock(&runtime->loaded_mutex, KJ_LOCK_LOADED);
  kj_unload_listed(runtime); /* waits for the device */
}

void kj_forget_loaded(kjit_specialization *specialization)
{
  if (!specialization->device) return;
  kj_runtime *runtime = specialization->device->runtime;
  kj_lock(&runtime->loaded_mutex, KJ_LOCK_LOADED);
  kjit_specialization **at = &runtime->loaded;
  while (*at && *at != specialization) at = &(*at)->next_loaded;
  KJ_ASSERT(!*at == !specialization->code_bytes);
  if (*at) {
    *at = specialization->next_loaded;
    runtime->loaded_bytes -= specialization->code_bytes;
    specialization->code_bytes = 0;
  }
  check_loaded(runtime);
  kj_unlock(&runtime->loaded_mutex, KJ_LOCK_LOADED);
}
