/* The runtime object of a context: the kinds of devices and their devices, the application's
 * objects, and the calls that end the attachments of other layers. */
#include "base/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- attachments ---- */

/* For assertions: returns whether the runtime's list contains the attachment. The caller holds
 * objects_mutex. */
static bool is_attached(const kj_runtime *runtime, const kj_attachment *attachment)
{
  const kj_attachment *at = runtime->attachments;
  while (at && at != attachment) at = at->next;
  return at;
}

void kj_attach_to_runtime(kj_runtime *runtime, kj_attachment *attachment,
                          const kj_attachment_class *class)
{
  *attachment = (kj_attachment){ .class = class, .runtime = runtime };
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  KJ_ASSERT(!is_attached(runtime, attachment));
  /* attachments are stopped and destroyed in reverse order */
  attachment->next = runtime->attachments;
  runtime->attachments = attachment;
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
}

/* stop_attachments and destroy_attachments process the most recent attachment first. */
static void stop_attachments(kj_runtime *runtime)
{
  kj_assert_no_locks();
  for (kj_attachment *at = runtime->attachments, *next; at; at = next) {
    next = at->next;
    if (at->class->stop) at->class->stop(at);
  }
}

static void destroy_attachments(kj_runtime *runtime)
{
  for (kj_attachment *at = runtime->attachments, *next; at; at = next) {
    next = at->next;
    if (at->class->destroy) at->class->destroy(at);
  }
  runtime->attachments = NULL;
}

/* ---- devices ---- */

static void close_device(kjit_device *device)
{
  if (!device) return;
  for (uint32_t i = atomic_load(&device->attachment_count); i-- > 0;) {
    kj_attachment *at = device->attachments[i];
    /* attachments with a smaller index are not stopped yet and may still wait for the device */
    atomic_store(&device->attachment_count, i);
    KJ_ASSERT(at->device == device && at->runtime == device->runtime);
    if (at->class->destroy) at->class->destroy(at);
  }
  KJ_ASSERT(!device->memory && !device->prints && !device->interrupts && !device->unloading);
  KJ_ASSERT(!device->failure_slots && !device->alive);
  device->operations->close(device);
  for (kj_launch_mark *mark = atomic_load(&device->marks), *next; mark; mark = next) {
    next = mark->next;
    free(mark->name);
    free(mark);
  }
  free(device->fault);
  kj_destroy_mutex(&device->mutex);
  free(device);
}

/* Checks that a kind has the operations that base/device.h does not allow to be NULL. */
static void check_operations(const kj_device_operations *operations)
{
  KJ_ASSERT(operations->name && operations->count && operations->forget && operations->open &&
            operations->close && operations->synchronize);
  KJ_ASSERT(operations->allocate && operations->release && operations->copy && operations->set);
  KJ_ASSERT(operations->load && operations->unload && operations->launch);
  KJ_ASSERT(!operations->begin_capture == !operations->end_capture);
}

/* Checks the fields that the `open` function and the layers have set. */
static void check_device(const kjit_device *device)
{
  const kj_device_operations *operations = device->operations;
  KJ_ASSERT(device->info.kind == operations->kind && device->info.name == device->name);
  KJ_ASSERT(device->info.target == device->target && device->target[0]);
  KJ_ASSERT(!device->start == !device->get_context);
  KJ_ASSERT(!device->start || (operations->is_queued && operations->retry));
  KJ_ASSERT(!device->memory == !operations->is_queued);
  KJ_ASSERT(!device->prints == !operations->is_queued);
  KJ_ASSERT(!device->interrupts == !device->context->config.interruptible);
  KJ_ASSERT(device->info.max_threads_per_block && device->info.max_grid[0]);
}

static kjit_status open_device_layers(kjit_device *device, kj_diagnostics *diagnostics)
{
  for (const kj_layer *layer = kj_layers; layer->open_runtime || layer->open_device; layer++)
    if (layer->open_device) KJ_TRY(layer->open_device(device, diagnostics));
  return KJIT_OK;
}

static kjit_status open_device(kj_runtime *runtime, const kj_kind *kind, int32_t ordinal,
                               kj_diagnostics *diagnostics, kjit_device **device)
{
  const kj_device_operations *operations = kind->operations;
  static _Atomic uint32_t last_number;
  kjit_device *made = aligned_alloc(_Alignof(kjit_device), sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  memset(made, 0, sizeof *made);
  made->number = atomic_fetch_add(&last_number, 1) + 1;
  check_operations(operations);
  made->context = runtime->context;
  made->runtime = runtime;
  made->operations = operations;
  made->shared = kind->shared;
  made->is_single = operations->is_usually_single && kind->count == 1;
  made->info.kind = operations->kind;
  made->info.ordinal = ordinal;
  made->info.name = made->name;
  made->info.target = made->target;
  atomic_store(&made->epoch, 1);
  pthread_mutex_init(&made->mutex, NULL);
  kjit_status status = operations->open(made, diagnostics);
  if (status == KJIT_OK) status = open_device_layers(made, diagnostics);
  if (status == KJIT_OK) check_device(made);
  if (status == KJIT_OK) *device = made;
  else close_device(made);
  return status;
}

/* ---- creation and end ---- */

/* Waits for launches of other threads, because a kernel on the CPU runs inside its launch call.
 * Reads `ended` before `begun`, so that it does not miss a running call. */
static void wait_for_calls(const kjit_context *context)
{
  enum { FIRST_NS = 20000, MOST_NS = 1000000 };
  for (long wait_ns = FIRST_NS;; wait_ns = wait_ns < MOST_NS ? 2 * wait_ns : MOST_NS) {
    uint64_t under_way = 0;
    for (uint32_t i = 0; i < KJ_LAUNCH_COUNTERS; i++) {
      uint64_t ended = atomic_load_explicit(&context->launches[i].ended, memory_order_acquire);
      under_way += atomic_load_explicit(&context->launches[i].begun, memory_order_acquire) - ended;
    }
    if (!under_way) return;
    (void)nanosleep(&(struct timespec){ .tv_nsec = wait_ns }, NULL);
  }
}

/* For assertions: returns whether the neighbours in the list point to the object. The caller holds
 * objects_mutex. */
static bool is_listed(const kj_runtime *runtime, const kj_object *object)
{
  return (object->previous ? object->previous->next : runtime->objects) == object &&
         (!object->next || object->next->previous == object);
}

static void unlink_object(kj_runtime *runtime, kj_object *object)
{
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  KJ_ASSERT(!object->is_left && is_listed(runtime, object));
  if (object->previous) object->previous->next = object->next;
  if (!object->previous) runtime->objects = object->next;
  if (object->next) object->next->previous = object->previous;
  object->previous = object->next = NULL;
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
}

static void end_objects(kj_runtime *runtime)
{
  /* the release of the objects below waits for the devices, and these waits unload the module's
   * code */
  kjit_release_module(atomic_exchange(&runtime->library, NULL));
  while (runtime->objects) {
    kj_object *object = runtime->objects;
    unlink_object(runtime, object);
    object->is_left = true;
    kj_assert_no_locks();
    object->destroy(object);
    KJ_ASSERT(runtime->objects != object);
  }
}

static void stop_runtime(void *data)
{
  kj_runtime *runtime = data;
  wait_for_calls(runtime->context);
  stop_attachments(runtime);
  for (uint32_t i = 0; i < runtime->kind_count; i++) {
    kj_kind *kind = &runtime->kinds[i];
    for (uint32_t j = 0; j < kind->count; j++) {
      kjit_device *device = atomic_load(&kind->devices[j]);
      kj_diagnostics ignored = { 0 };
      if (device) (void)kj_synchronize(device, true, NULL, &ignored);
      if (device) (void)kj_report_kernels(device, &ignored);
      kj_free_diagnostics(&ignored);
    }
  }
  end_objects(runtime);
}

static void close_kind(kj_kind *kind)
{
  for (uint32_t i = 0; i < kind->count; i++) close_device(atomic_load(&kind->devices[i]));
  free(kind->devices);
  if (atomic_load(&kind->is_open)) kind->operations->forget(kind->shared);
}

static void destroy_runtime(void *data)
{
  kj_runtime *runtime = data;
  for (uint32_t i = 0; i < runtime->kind_count; i++) close_kind(&runtime->kinds[i]);
  destroy_attachments(runtime);
  KJ_ASSERT(!runtime->objects && !runtime->captures && !runtime->loaded);
  KJ_ASSERT(!runtime->loaded_bytes && !atomic_load(&runtime->parked));
  KJ_ASSERT(!runtime->is_delivering);
  kj_destroy_mutex(&runtime->objects_mutex);
  kj_destroy_mutex(&runtime->print_mutex);
  kj_free_buffer(&runtime->lines);
  free(runtime);
}

static kjit_status open_layers(kj_runtime *runtime)
{
  kjit_status status = KJIT_OK;
  kj_diagnostics ignored = { 0 };
  for (const kj_layer *layer = kj_layers; layer->open_runtime || layer->open_device; layer++)
    if (status == KJIT_OK && layer->open_runtime) status = layer->open_runtime(runtime, &ignored);
  kj_free_diagnostics(&ignored);
  return status;
}

static kj_runtime *make_runtime(kjit_context *context)
{
  kj_runtime *runtime = calloc(1, sizeof *runtime);
  if (!runtime) return NULL;
  runtime->context = context;
  pthread_mutex_init(&runtime->objects_mutex, NULL);
  pthread_mutex_init(&runtime->print_mutex, NULL);
  while (kj_device_kinds[runtime->kind_count]) {
    KJ_ASSERT(runtime->kind_count < KJ_MOST_KINDS);
    runtime->kinds[runtime->kind_count].operations =
      kj_choose_kind(kj_device_kinds[runtime->kind_count], context->config.target);
    runtime->kind_count++;
  }
  if (open_layers(runtime) == KJIT_OK) return runtime;
  destroy_runtime(runtime);
  return NULL;
}

kj_runtime *kj_get_runtime(kjit_context *context)
{
  kj_runtime *runtime = __atomic_load_n(&context->runtime, __ATOMIC_ACQUIRE);
  if (runtime) return runtime;
  kj_lock(&context->runtime_mutex, KJ_LOCK_RUNTIME);
  runtime = context->runtime;
  if (!runtime && (runtime = make_runtime(context))) {
    context->wait_runtime = stop_runtime;
    context->destroy_runtime = destroy_runtime;
    __atomic_store_n(&context->runtime, runtime, __ATOMIC_RELEASE);
  }
  kj_unlock(&context->runtime_mutex, KJ_LOCK_RUNTIME);
  return runtime;
}

/* ---- objects ---- */

void kj_add_object(kjit_device *device, kj_object *object, void (*destroy)(kj_object *object))
{
  kj_runtime *runtime = device->runtime;
  object->device = device;
  object->generation = atomic_load(&device->generation);
  object->destroy = destroy;
  KJ_ASSERT(runtime && destroy && !object->is_left);
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  KJ_ASSERT(runtime->objects != object);
  object->previous = NULL;
  object->next = runtime->objects;
  if (object->next) object->next->previous = object;
  runtime->objects = object;
  KJ_ASSERT(is_listed(runtime, object));
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
}

bool kj_take_object(kj_object *object)
{
  bool is_ours = !object->is_left && !ki_is_forked(object->device->context);
  if (object->is_left) kj_drop_remains(&object->remains, object->generation);
  if (is_ours) unlink_object(object->device->runtime, object);
  return is_ours;
}

/* The device of objects whose context has ended. Every call on such an object fails. */
static const kj_device_operations no_operations;
static kjit_device ended_device = { .context = &ki_ended_context, .operations = &no_operations };

void kj_free_object(kj_object *object, void *memory)
{
  KJ_ASSERT(!object->previous && !object->next && object->device != &ended_device);
  if (!object->is_left) {
    free(memory);
    return;
  }
  object->device = &ended_device;
  object->generation = kj_keep_remains(&object->remains, memory);
}

kjit_status kj_check_object(const kj_object *object, const char *what, kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_check_device(object->device, diagnostics));
  if (object->generation == atomic_load_explicit(&object->device->generation, memory_order_relaxed))
    return KJIT_OK;
  char place[24];
  return kj_error(diagnostics, KJIT_ERROR_DEVICE, "the %s was lost when %s was reset", what,
                  kj_device_text(object->device, place));
}

/* ---- native streams that may be used ---- */

void kj_note_alive(kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  if (!KJ_HAS_ASSERTIONS) return;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  for (const kjit_stream *at = device->alive; at; at = at->next_alive) KJ_ASSERT(at != stream);
  stream->next_alive = device->alive;
  device->alive = stream;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
}

void kj_note_destroyed(kjit_stream *stream)
{
  kjit_device *device = stream->object.device;
  if (!KJ_HAS_ASSERTIONS) return;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  kjit_stream **at = &device->alive;
  while (*at && *at != stream) at = &(*at)->next_alive;
  KJ_ASSERT(*at || !stream->is_owned);
  /* the device's own streams (default streams) are not in the list */
  if (*at) *at = stream->next_alive;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
}

bool kj_is_alive(kjit_device *device, const void *native)
{
  const kj_device_operations *operations = device->operations;
  uintptr_t name = (uintptr_t)native;
  if (!name || name == operations->default_stream || name == operations->thread_stream) return true;
  kj_lock(&device->mutex, KJ_LOCK_DEVICE);
  const kjit_stream *stream = device->alive;
  while (stream && stream->native != native) stream = stream->next_alive;
  kj_unlock(&device->mutex, KJ_LOCK_DEVICE);
  return stream;
}

/* ---- kinds of devices, which change only while context->runtime_mutex is held ---- */

kj_kind *kj_find_kind(kj_runtime *runtime, kjit_device_kind kind)
{
  for (uint32_t i = 0; i < runtime->kind_count; i++)
    if (runtime->kinds[i].operations->kind == kind) return &runtime->kinds[i];
  return NULL;
}

static kjit_status open_kind(kj_runtime *runtime, kj_kind *kind, const kj_driver_source *source,
                             kj_diagnostics *diagnostics)
{
  KJ_ASSERT(kj_is_locked_here(&runtime->context->runtime_mutex));
  if (atomic_load(&kind->is_open)) return KJIT_OK;
  KJ_ASSERT(!kind->devices && !kind->shared && !kind->count);
  uint32_t count = 0;
  void *shared = NULL;
  KJ_TRY(kind->operations->count(runtime->context, source, diagnostics, &shared, &count));
  _Atomic(kjit_device *) *devices = calloc(count ? count : 1, sizeof *devices);
  if (!devices) {
    kind->operations->forget(shared);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  kind->devices = devices;
  kind->count = count;
  kind->shared = shared;
  atomic_store(&kind->is_absent, false);
  atomic_store_explicit(&kind->is_open, true, memory_order_release);
  return KJIT_OK;
}

static kjit_status make_device(kj_runtime *runtime, kj_kind *kind, int32_t ordinal,
                               kj_diagnostics *diagnostics, kjit_device **device)
{
  const char *name = kind->operations->name;
  KJ_ASSERT(kj_is_locked_here(&runtime->context->runtime_mutex));
  KJ_TRY(open_kind(runtime, kind, NULL, diagnostics));
  if (ordinal < 0 || (uint32_t)ordinal >= kind->count)
    return kind->operations->is_usually_single && kind->count == 1
             ? kj_error(
                 diagnostics, KJIT_ERROR_NO_DEVICE,
                 "device %s:%d does not exist; the only device of this kind has the number 0", name,
                 ordinal)
             : kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                        "device %s:%d does not exist; the %s %u devices", name, ordinal,
                        kind->operations->is_usually_single ? "context has" : "driver reports",
                        kind->count);
  *device = atomic_load_explicit(&kind->devices[ordinal], memory_order_acquire);
  if (*device) return KJIT_OK;
  KJ_TRY(open_device(runtime, kind, ordinal, diagnostics, device));
  KJ_ASSERT((*device)->info.ordinal == ordinal && !atomic_load(&kind->devices[ordinal]));
  atomic_store_explicit(&kind->devices[ordinal], *device, memory_order_release);
  return KJIT_OK;
}

kjit_status kj_find_device(kj_runtime *runtime, kjit_device_kind kind, int32_t ordinal,
                           kj_diagnostics *diagnostics, kjit_device **device)
{
  kj_kind *found = kj_find_kind(runtime, kind);
  if (!found)
    return kj_error(diagnostics, KJIT_ERROR_NO_DEVICE,
                    "device kind %d does not exist: 1 is the CPU, 2 is CUDA", (int)kind);
  bool is_known = atomic_load_explicit(&found->is_open, memory_order_acquire) && ordinal >= 0 &&
                  (uint32_t)ordinal < found->count;
  if (is_known && (*device = atomic_load_explicit(&found->devices[ordinal], memory_order_acquire)))
    return KJIT_OK;
  kj_lock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  kjit_status status = make_device(runtime, found, ordinal, diagnostics, device);
  kj_unlock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  return status;
}

static uint32_t count_devices(kj_runtime *runtime, kj_kind *kind)
{
  kj_diagnostics ignored = { 0 };
  if (atomic_load_explicit(&kind->is_open, memory_order_acquire)) return kind->count;
  if (atomic_load_explicit(&kind->is_absent, memory_order_relaxed)) return 0;
  kj_lock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  bool is_there = open_kind(runtime, kind, NULL, &ignored) == KJIT_OK;
  if (!is_there) atomic_store(&kind->is_absent, true);
  kj_unlock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  kj_free_diagnostics(&ignored);
  return is_there ? kind->count : 0;
}

kjit_status kj_default_device(kj_runtime *runtime, kj_diagnostics *diagnostics,
                              kjit_device **device)
{
  uint32_t i = 0;
  KJ_ASSERT(runtime->kind_count);
  while (i + 1 < runtime->kind_count && !count_devices(runtime, &runtime->kinds[i])) i++;
  return kj_find_device(runtime, runtime->kinds[i].operations->kind, 0, diagnostics, device);
}

static kjit_status add_kind(kj_runtime *runtime, const kj_device_operations *operations,
                            kj_diagnostics *diagnostics)
{
  KJ_ASSERT(kj_is_locked_here(&runtime->context->runtime_mutex));
  if (kj_find_kind(runtime, operations->kind) || runtime->kind_count == KJ_MOST_KINDS)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "device kind %d is already registered",
                    (int)operations->kind);
  runtime->kinds[runtime->kind_count++].operations = operations;
  return KJIT_OK;
}

kjit_status kj_add_kind(kjit_context *context, const kj_device_operations *operations,
                        kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kj_lock(&context->runtime_mutex, KJ_LOCK_RUNTIME);
  kjit_status status = add_kind(runtime, operations, diagnostics);
  kj_unlock(&context->runtime_mutex, KJ_LOCK_RUNTIME);
  return status;
}

kjit_status kj_use_driver(kjit_context *context, void *(*find)(void *user, const char *symbol),
                          void *user, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kj_driver_source source = { .find = find, .user = user };
  kj_lock(&context->runtime_mutex, KJ_LOCK_RUNTIME);
  kjit_status status =
    open_kind(runtime, kj_find_kind(runtime, KJIT_DEVICE_CUDA), &source, diagnostics);
  kj_unlock(&context->runtime_mutex, KJ_LOCK_RUNTIME);
  return status;
}

/* ---- the public functions ---- */

kjit_status kjit_get_device(kjit_context *context, kjit_device_kind kind, int32_t ordinal,
                            kjit_device **device)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!device) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_get_device: device is NULL");
  kj_diagnostics diagnostics = { 0 };
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  (void)kj_find_device(runtime, kind, ordinal, &diagnostics, device);
  return ki_finish_call(context, &diagnostics);
}

kjit_context *kjit_get_device_context(const kjit_device *device)
{
  return device ? device->context : NULL;
}

uint32_t kjit_get_device_count(kjit_context *context, kjit_device_kind kind)
{
  kj_runtime *runtime = context && !ki_is_forked(context) ? kj_get_runtime(context) : NULL;
  kj_kind *found = runtime ? kj_find_kind(runtime, kind) : NULL;
  return found ? count_devices(runtime, found) : 0;
}
