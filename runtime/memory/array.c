/* Arrays that kjit allocates: their memory, its release, what they are made from. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory/array.h"
#include "stream/stream.h"

enum { ALIGNMENT = 64 };

/* ---- the end of memory ---- */

kjit_stream *kj_order_of(const kjit_array *owner)
{
  return owner->stream && owner->stream->slot >= KJ_SLOT_FIRST ? owner->stream : NULL;
}

static void release_block(kjit_array *array)
{
  kjit_stream *stream = kj_order_of(array);
  uint64_t own = (uint64_t)1 << (stream ? stream->slot : KJ_SLOT_DEFAULT),
           uses = atomic_load(&array->line.uses);
  kj_block *block = array->block;
  block->is_joined = uses & ~own;
  if (kj_join_uses(array, stream)) {
    kj_give_block(block, stream);
  } else if (uses >> KJ_SLOT_ELSEWHERE & 1) {
    kj_wait_uses(array);
    kj_give_idle_block(block);
  } else {
    kj_park_block(block);
  }
}

void kj_release_after_wait(kjit_array *array, void (*function)(kjit_array *array))
{
  kjit_device *device = array->object.device;
  kj_diagnostics ignored = { 0 };
  void *previous;
  if (!kj_is_cuda(device)) {
    function(array);
    return;
  }
  kj_wait_uses(array);
  if (array->object.generation == atomic_load(&device->generation) &&
      kj_enter_device(device, &ignored, &previous) == KJIT_OK) {
    function(array);
    kj_leave_device(device, previous);
  }
  kj_free_diagnostics(&ignored);
}

static void free_device(kjit_array *array)
{
  array->object.device->driver->cuMemFree((uint64_t)(uintptr_t)array->memory_data);
}
static void free_pinned(kjit_array *array)
{
  array->object.device->driver->cuMemFreeHost(array->memory_data);
}
static void release_device(kjit_array *array) { kj_release_after_wait(array, free_device); }
static void release_pinned(kjit_array *array) { kj_release_after_wait(array, free_pinned); }
static void release_host(kjit_array *array) { free(array->memory_data); }

static void destroy_array(kj_object *object)
{
  kjit_array *array = (kjit_array *)object;
  kjit_array *owner = array->owner;
  kjit_stream *stream = array->stream;
  if (owner != array) kjit_release_array(owner);
  else if (array->release) array->release(array);
  free(array);
  kj_release_stream(stream);
}

/* ---- memory of each kind ---- */

typedef kjit_status (*allocate_function)(kjit_array *array, size_t size_bytes,
                                         kj_diagnostics *diagnostics);

static kjit_status allocate_host(kjit_array *array, size_t size_bytes, kj_diagnostics *diagnostics)
{
  size_t rounded = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  array->memory_data = aligned_alloc(ALIGNMENT, rounded ? rounded : ALIGNMENT);
  array->release = release_host;
  return array->memory_data ? KJIT_OK
                            : kj_error(diagnostics, KJIT_ERROR_MEMORY,
                                       "out of memory: an array needs %zu bytes", size_bytes);
}

static kjit_status allocate_block(kjit_array *array, size_t size_bytes, kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_take_block(array->object.device, KJ_POOL_DEVICE, size_bytes, array->stream, diagnostics,
                       &array->block));
  array->memory_data = (void *)(uintptr_t)array->block->address;
  array->release = release_block;
  return KJIT_OK;
}

/* What the driver has said, asked twice where it was out of memory. */
static kjit_status check_allocation(const kjit_array *array, int result, const char *call,
                                    size_t size_bytes, kj_diagnostics *diagnostics)
{
  char place[24];
  kjit_device *device = array->object.device;
  bool is_pinned = array->memory == KJIT_MEMORY_PINNED || array->memory == KJIT_MEMORY_MAPPED;
  if (result != KJ_CU_OUT_OF_MEMORY)
    return kj_check_driver(device->driver, device, result, call, diagnostics);
  return kj_error(
    diagnostics, is_pinned ? KJIT_ERROR_MEMORY : KJIT_ERROR_DEVICE_MEMORY,
    "out of %s %s: %s cannot give %zu bytes, although the pools have given back what they kept",
    is_pinned ? "pinned host memory for" : "memory on", kj_device_text(device, place), call,
    size_bytes);
}

static kjit_status allocate_pinned(kjit_array *array, size_t size_bytes,
                                   kj_diagnostics *diagnostics)
{
  enum { PORTABLE = 1, MAPPED = 2 };
  unsigned flags = array->memory == KJIT_MEMORY_MAPPED ? PORTABLE | MAPPED : PORTABLE;
  int result;
  KJ_ASK_TWICE(result, array->object.device,
               cuMemHostAlloc(&array->memory_data, size_bytes ? size_bytes : 1, flags));
  KJ_TRY(check_allocation(array, result, "cuMemHostAlloc", size_bytes, diagnostics));
  array->release = release_pinned;
  array->tensor.device_type = KJ_DLPACK_PINNED;
  /* host and device share one address space on all 64-bit systems */
  array->is_in_place = array->memory == KJIT_MEMORY_MAPPED;
  return KJIT_OK;
}

static kjit_status allocate_managed(kjit_array *array, size_t size_bytes,
                                    kj_diagnostics *diagnostics)
{
  enum { ATTACH_GLOBAL = 1 };
  uint64_t address = 0;
  int result;
  KJ_ASK_TWICE(result, array->object.device,
               cuMemAllocManaged(&address, size_bytes ? size_bytes : 1, ATTACH_GLOBAL));
  KJ_TRY(check_allocation(array, result, "cuMemAllocManaged", size_bytes, diagnostics));
  array->memory_data = (void *)(uintptr_t)address;
  array->release = release_device;
  array->tensor.device_type = KJ_DLPACK_MANAGED;
  return KJIT_OK;
}

static kjit_status allocate_alone(kjit_array *array, size_t size_bytes, kj_diagnostics *diagnostics)
{
  uint64_t address = 0;
  int result;
  KJ_ASK_TWICE(result, array->object.device, cuMemAlloc(&address, size_bytes ? size_bytes : 1));
  KJ_TRY(check_allocation(array, result, "cuMemAlloc", size_bytes, diagnostics));
  array->memory_data = (void *)(uintptr_t)address;
  array->release = release_device;
  return KJIT_OK;
}

static void release_mapping(kjit_array *array)
{
  munmap(array->memory_data, array->memory_bytes);
  close(array->file);
}

static kjit_status allocate_mapping(kjit_array *array, size_t size_bytes,
                                    kj_diagnostics *diagnostics)
{
  array->memory_bytes = size_bytes ? size_bytes : 1;
  array->file = memfd_create("kjit array", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  void *memory = MAP_FAILED;
  /* Other processes open it to write: its size is not theirs to change, or touching the array would
   * be a fault here. */
  if (array->file >= 0 && !ftruncate(array->file, (off_t)array->memory_bytes) &&
      !fcntl(array->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    memory = mmap(NULL, array->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, array->file, 0);
  if (memory == MAP_FAILED) {
    if (array->file >= 0) close(array->file);
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory: a shared array needs %zu bytes",
                    size_bytes);
  }
  array->memory_data = memory;
  array->release = release_mapping;
  return KJIT_OK;
}

/* The pool enters the device itself, and only where it needs the driver. */
static kjit_status allocate(kjit_array *array, size_t size_bytes, kj_diagnostics *diagnostics)
{
  static const allocate_function on_cpu[] = { [KJIT_MEMORY_DEVICE] = allocate_host,
                                              [KJIT_MEMORY_PINNED] = allocate_host,
                                              [KJIT_MEMORY_MAPPED] = allocate_host,
                                              [KJIT_MEMORY_MANAGED] = allocate_host,
                                              [KJIT_MEMORY_SHARED] = allocate_mapping };
  static const allocate_function on_gpu[] = { [KJIT_MEMORY_PINNED] = allocate_pinned,
                                              [KJIT_MEMORY_MAPPED] = allocate_pinned,
                                              [KJIT_MEMORY_MANAGED] = allocate_managed,
                                              [KJIT_MEMORY_SHARED] = allocate_alone };
  kjit_device *device = array->object.device;
  void *previous;
  if (!kj_is_cuda(device)) return on_cpu[array->memory](array, size_bytes, diagnostics);
  if (array->memory == KJIT_MEMORY_DEVICE) return allocate_block(array, size_bytes, diagnostics);
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  kjit_status status = on_gpu[array->memory](array, size_bytes, diagnostics);
  kj_leave_device(device, previous);
  return status;
}

/* ---- making ---- */

kjit_status kj_measure_array(ki_types *types, kjit_type element, const int64_t *shape,
                             uint32_t rank, kj_diagnostics *diagnostics, size_t *size_bytes)
{
  bool is_empty = false;
  if (!ki_is_element(types, element))
    return kj_error(
      diagnostics, KJIT_ERROR_ARGUMENT,
      "the element type of an array is a scalar, vector, struct or pointer type, not %u", element);
  if (rank > KJ_MAX_RANK)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "an array has at most %d dimensions, not %u",
                    KJ_MAX_RANK, rank);
  if (rank && !shape)
    return kj_error(diagnostics, KJIT_ERROR_MISUSE, "the shape of the array is NULL");
  *size_bytes = kj_element_bytes(types, element);
  for (uint32_t i = 0; i < rank; i++) {
    if (shape[i] < 0)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "extent %lld of dimension %u is negative",
                      (long long)shape[i], i);
    is_empty = is_empty || shape[i] == 0;
    if (__builtin_mul_overflow(*size_bytes, shape[i] ? (size_t)shape[i] : 1, size_bytes) ||
        *size_bytes > PTRDIFF_MAX)
      return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the extents do not fit the address space");
  }
  if (is_empty) *size_bytes = 0;
  return KJIT_OK;
}

static void fill_column_strides(int64_t *strides, const int64_t *shape, uint32_t rank)
{
  int64_t stride = 1;
  for (uint32_t i = 0; i < rank; i++) {
    strides[i] = stride;
    stride *= shape[i] ? shape[i] : 1;
  }
}

kjit_array *kj_make_array(kjit_device *device, kjit_type element, const int64_t *shape,
                          const int64_t *strides, uint32_t rank, kjit_layout layout)
{
  kjit_array *array = aligned_alloc(_Alignof(kjit_array), sizeof *array);
  if (!array) return NULL;
  memset(array, 0, sizeof *array);
  if (rank) memcpy(array->shape, shape, rank * sizeof *shape);
  if (rank && strides) memcpy(array->strides, strides, rank * sizeof *strides);
  else if (layout == KJIT_LAYOUT_F) fill_column_strides(array->strides, array->shape, rank);
  else kj_fill_strides(array->strides, array->shape, rank);
  atomic_store(&array->references, 1);
  array->object.device = device;
  array->object.generation = atomic_load(&device->generation);
  array->element = element;
  array->owner = array;
  array->file = -1;
  kj_describe_element(device->context->types, element, &array->tensor);
  array->tensor.device_type = device->info.kind;
  array->tensor.device_id = device->info.ordinal;
  array->tensor.rank = (int32_t)rank;
  array->tensor.shape = array->shape;
  array->tensor.strides = array->strides;
  return array;
}

static void fill_line(kjit_array *array)
{
  const kjit_tensor *tensor = &array->tensor;
  kj_array_line *line = &array->line;
  uint32_t rank = (uint32_t)tensor->rank;
  uint64_t count = kj_count_dense(array->shape, array->strides, rank),
           element_bytes = tensor->bits / 8u * tensor->lanes;
  line->low = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  bool is_simple = count && line->low && ki_is_scalar(array->element) && !array->is_read_only &&
                   !array->is_in_place &&
                   line->low % kj_element_alignment(NULL, array->element) == 0;
  uint32_t facts = kj_find_array_facts(
    (kj_array_place){ .address = line->low,
                      .has_rows = rank > 1,
                      .row_bytes = rank ? (uint64_t)array->shape[rank - 1] * element_bytes : 0 });
  line->high = line->low + count * element_bytes;
  line->form = is_simple ? kj_array_form(array->element, rank, tensor->device_type, facts) : 0;
  line->extent = rank ? array->shape[0] : 1;
  line->place = kj_place(array->object.device, array->object.generation);
  line->owners_uses = &array->owner->line.uses;
}

void kj_publish_array(kjit_array *array)
{
  kj_add_object(array->object.device, &array->object, destroy_array);
  fill_line(array);
}

static kjit_status check_config(const kjit_array_config *config, kj_diagnostics *diagnostics)
{
  if (config->layout > KJIT_LAYOUT_F)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "there is no layout %d", (int)config->layout);
  if ((unsigned)config->memory > KJIT_MEMORY_SHARED)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "there is no kind of memory %d",
                    (int)config->memory);
  char here[24], there[24];
  if (config->stream && config->stream->object.device != config->device)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "the array is on %s, its stream on %s",
                    kj_device_text(config->device, here),
                    kj_device_text(config->stream->object.device, there));
  if (config->stream) KJ_TRY(kj_check_object(&config->stream->object, "stream", diagnostics));
  return KJIT_OK;
}

static kjit_status create_array(const kjit_array_config *config, kj_diagnostics *diagnostics,
                                kjit_array **array)
{
  size_t size_bytes = 0;
  KJ_TRY(check_config(config, diagnostics));
  KJ_TRY(kj_measure_array(config->device->context->types, config->element, config->shape,
                          config->rank, diagnostics, &size_bytes));
  kjit_array *made = kj_make_array(config->device, config->element, config->shape, NULL,
                                   config->rank, config->layout);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->memory = config->memory;
  made->stream = kj_retain_stream(config->stream);
  if (made->stream) atomic_store(&made->stream->is_used, true);
  kjit_status status = allocate(made, size_bytes, diagnostics);
  if (status != KJIT_OK) {
    kj_release_stream(made->stream);
    free(made);
    return status;
  }
  made->tensor.data = made->memory_data;
  kj_publish_array(made);
  *array = made;
  return KJIT_OK;
}

void kjit_init_array_config(kjit_array_config *config)
{
  if (config)
    *config = (kjit_array_config){ .size_bytes = sizeof *config, .layout = KJIT_LAYOUT_C };
}

/* A smaller size_bytes is an older header's: what it lacks keeps its default. */
static bool read_config(const kjit_array_config *given, kjit_array_config *config)
{
  kjit_init_array_config(config);
  if (given->size_bytes < offsetof(kjit_array_config, element) ||
      given->size_bytes > sizeof *config)
    return false;
  memcpy(config, given, given->size_bytes);
  config->size_bytes = sizeof *config;
  return true;
}

kjit_status kjit_create_configured_array(const kjit_array_config *config, kjit_array **array)
{
  kjit_array_config read;
  if (!config || !read_config(config, &read) || !read.device) return KJIT_ERROR_MISUSE;
  kjit_context *context = read.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!array)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_create_configured_array: array is NULL");
  kj_diagnostics diagnostics = { 0 };
  (void)create_array(&read, &diagnostics, array);
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_create_array(kjit_device *device, kjit_type element, const int64_t *shape,
                              uint32_t rank, kjit_array **array)
{
  kjit_array_config config;
  kjit_init_array_config(&config);
  config.device = device;
  config.element = element;
  config.shape = shape;
  config.rank = rank;
  return kjit_create_configured_array(&config, array);
}

kjit_status kjit_create_array_like(const kjit_array *model, kjit_array **array)
{
  if (!model) return KJIT_ERROR_MISUSE;
  kjit_array_config config;
  kjit_init_array_config(&config);
  config.device = model->object.device;
  config.element = model->element;
  config.shape = model->shape;
  config.rank = (uint32_t)model->tensor.rank;
  config.memory = model->owner->memory;
  config.stream = model->owner->stream;
  int64_t columns[KJ_MAX_RANK];
  fill_column_strides(columns, model->shape, config.rank);
  bool is_column_major =
    config.rank > 1 && !memcmp(columns, model->strides, config.rank * sizeof *columns);
  config.layout = is_column_major ? KJIT_LAYOUT_F : KJIT_LAYOUT_C;
  return kjit_create_configured_array(&config, array);
}

kjit_status kjit_create_array_from(kjit_device *device, const kjit_tensor *source,
                                   kjit_stream *stream, kjit_array **array)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!array || !source)
    return ki_fail_call(device->context, KJIT_ERROR_MISUSE, "kjit_create_array_from: %s is NULL",
                        array ? "source" : "array");
  kj_diagnostics diagnostics = { 0 };
  kj_view view;
  kjit_array *made = NULL;
  if (kj_view_tensor(device->context->types, source, KJIT_ANY, "the source", &diagnostics, &view) !=
      KJIT_OK)
    return ki_finish_call(device->context, &diagnostics);
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = view.element,
                               .shape = view.shape,
                               .rank = view.rank,
                               .layout = KJIT_LAYOUT_C,
                               .stream = kj_is_cuda(device) ? stream : NULL };
  if (create_array(&config, &diagnostics, &made) != KJIT_OK)
    return ki_finish_call(device->context, &diagnostics);
  kjit_arg to = kjit_arg_array(made), from = kjit_arg_tensor(source);
  kjit_status status = kjit_copy(device->context, &to, &from, stream);
  if (status == KJIT_OK) *array = made;
  else kjit_release_array(made);
  return status;
}

/* ---- references and what an array is ---- */

kjit_array *kjit_retain_array(kjit_array *array)
{
  if (array) atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
  return array;
}

void kjit_release_array(kjit_array *array)
{
  if (!array || ki_is_forked(array->object.device->context)) return;
  if (atomic_fetch_sub_explicit(&array->references, 1, memory_order_acq_rel) != 1) return;
  kj_remove_object(&array->object);
  destroy_array(&array->object);
}

const kjit_tensor *kjit_get_tensor(const kjit_array *array)
{
  return array ? &array->tensor : NULL;
}
kjit_type kjit_get_array_element(const kjit_array *array)
{
  return array ? array->element : KJIT_ANY;
}
kjit_device *kjit_get_array_device(const kjit_array *array)
{
  return array ? array->object.device : NULL;
}

kjit_status kj_view_array(const kjit_array *array, const char *what, kj_diagnostics *diagnostics,
                          kj_view *view)
{
  KJ_TRY(kj_check_object(&array->object, "array", diagnostics));
  return kj_view_tensor(array->object.device->context->types, &array->tensor, array->element, what,
                        diagnostics, view);
}

/* ---- memory of the host's own; managed memory ---- */

static kjit_status change_pinning(kjit_device *device, void *memory, size_t size_bytes, bool is_on)
{
  enum { PORTABLE = 1 };
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!memory || (is_on && !size_bytes))
    return ki_fail_call(device->context, KJIT_ERROR_ARGUMENT, "there is no memory to pin");
  if (!kj_is_cuda(device)) return KJIT_OK;
  kj_diagnostics diagnostics = { 0 };
  void *previous;
  if (kj_enter_device(device, &diagnostics, &previous) == KJIT_OK) {
    if (is_on)
      (void)KJ_DRIVER(device, &diagnostics, cuMemHostRegister, memory, size_bytes, PORTABLE);
    else (void)KJ_DRIVER(device, &diagnostics, cuMemHostUnregister, memory);
    kj_leave_device(device, previous);
  }
  return ki_finish_call(device->context, &diagnostics);
}

kjit_status kjit_pin_memory(kjit_device *device, void *memory, size_t size_bytes)
{
  return change_pinning(device, memory, size_bytes, true);
}
kjit_status kjit_unpin_memory(kjit_device *device, void *memory)
{
  return change_pinning(device, memory, 0, false);
}

static kjit_status prefetch(kjit_array *array, kjit_device *device, kjit_stream *stream,
                            kj_diagnostics *diagnostics)
{
  enum { TO_HOST = -1 };
  kjit_device *gpu = array->object.device;
  kj_view view;
  uint64_t low, high;
  void *previous;
  KJ_TRY(kj_view_array(array, "the array", diagnostics, &view));
  if (!kj_is_cuda(gpu) || array->memory != KJIT_MEMORY_MANAGED || !view.count) return KJIT_OK;
  KJ_TRY(kj_check_stream(stream ? stream->object.device : gpu, stream, false, diagnostics));
  if (stream) gpu = stream->object.device;
  kj_view_range(&view, &low, &high);
  kj_note_use(array, stream, gpu);
  KJ_TRY(kj_enter_device(gpu, diagnostics, &previous));
  kjit_status status = KJ_DRIVER(gpu, diagnostics, cuMemPrefetchAsync, low, high - low,
                                 kj_is_cuda(device) ? device->handle : TO_HOST, kj_native(stream));
  kj_leave_device(gpu, previous);
  return status;
}

kjit_status kjit_prefetch_array(kjit_array *array, kjit_device *device, kjit_stream *stream)
{
  if (!array || !device) return KJIT_ERROR_MISUSE;
  kjit_context *context = array->object.device->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (device->context != context || (stream && stream->object.device->context != context))
    return ki_fail_call(
      context, KJIT_ERROR_ARGUMENT,
      "kjit_prefetch_array: the array, the device and the stream belong to different contexts");
  kj_diagnostics diagnostics = { 0 };
  (void)prefetch(array, device, stream, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}
