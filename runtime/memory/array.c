/* Arrays that kjit allocates: their memory, its release, what they are made from. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/cuda.h"
#include "memory/array.h"
#include "stream/stream.h"

enum { ALIGNMENT = 64 };

/* ---- the end of memory ---- */

void kj_free_by_driver(kj_block *block, int (*call)(const kj_driver *driver, uint64_t address))
{
  kj_diagnostics ignored = { 0 };
  void *previous;
  if (!kj_is_gone(block) && kj_enter_device(block->device, &ignored, &previous) == KJIT_OK) {
    (void)call(block->device->driver, block->address);
    kj_leave_device(block->device, previous);
  }
  kj_free_diagnostics(&ignored);
  kj_drop_block(block);
}

static int call_free(const kj_driver *driver, uint64_t address)
{
  return driver->cuMemFree(address);
}
static int call_free_host(const kj_driver *driver, uint64_t address)
{
  return driver->cuMemFreeHost((void *)(uintptr_t)address); /* NOLINT(performance-no-int-to-ptr) */
}
static void free_device(kj_block *block) { kj_free_by_driver(block, call_free); }
static void free_pinned(kj_block *block) { kj_free_by_driver(block, call_free_host); }
static void free_mapping(kj_block *block)
{
  munmap(block->data, block->size_bytes);
  close(block->file);
  kj_drop_block(block);
}

static const kj_block_kind device_kind = { .waits = true, .free = free_device },
                           pinned_kind = { .waits = true, .free = free_pinned },
                           host_kind = { .waits = true, .free = kj_drop_block };
const kj_block_kind kj_mapping_kind = { .waits = true, .free = free_mapping };

static void destroy_array(kj_object *object)
{
  kjit_array *array = (kjit_array *)object;
  if (array->owner != array) kjit_release_array(array->owner);
  if (array->block) {
    kj_copy_uses(&array->block->use, &array->line.use);
    kj_release_block(array->block);
  }
  free(array);
}

void kj_drop_array(kjit_array *array)
{
  kj_drop_block(array->block);
  free(array);
}

/* ---- memory of each kind ---- */

typedef kjit_status (*allocate_function)(kjit_array *array, size_t size_bytes,
                                         kj_diagnostics *diagnostics);

/* The elements lie behind their block, so that there is one allocation of both. */
static kjit_status allocate_host(kjit_array *array, size_t size_bytes, kj_diagnostics *diagnostics)
{
  const size_t before = (sizeof(kj_block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT,
               rounded = (size_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  kj_block *block = aligned_alloc(ALIGNMENT, before + (rounded ? rounded : ALIGNMENT));
  if (!block)
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory: an array needs %zu bytes",
                    size_bytes);
  *block = (kj_block){ .kind = &host_kind,
                       .device = array->object.device,
                       .address = (uint64_t)(uintptr_t)block + before,
                       .file = -1 };
  array->block = block;
  return KJIT_OK;
}

static kjit_status allocate_block(kjit_array *array, kjit_stream *stream, size_t size_bytes,
                                  kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_take_block(array->object.device, KJ_POOL_DEVICE, size_bytes, stream, diagnostics,
                       &array->block));
  array->line.use.streams[0] = array->block->stream;
  return KJIT_OK;
}

static kjit_status make_block(kjit_array *array, const kj_block_kind *kind,
                              kj_diagnostics *diagnostics)
{
  array->block = kj_make_block(array->object.device, kind);
  return array->block ? KJIT_OK : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
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
  void *memory = NULL;
  int result;
  KJ_TRY(make_block(array, &pinned_kind, diagnostics));
  KJ_ASK_TWICE(result, array->object.device,
               cuMemHostAlloc(&memory, size_bytes ? size_bytes : 1, flags));
  KJ_TRY(check_allocation(array, result, "cuMemHostAlloc", size_bytes, diagnostics));
  array->block->address = (uint64_t)(uintptr_t)memory;
  array->tensor.device_type = KJ_DLPACK_PINNED;
  /* host and device share one address space on all 64-bit systems */
  array->is_in_place = array->memory == KJIT_MEMORY_MAPPED;
  return KJIT_OK;
}

static kjit_status allocate_managed(kjit_array *array, size_t size_bytes,
                                    kj_diagnostics *diagnostics)
{
  enum { ATTACH_GLOBAL = 1 };
  int result;
  KJ_TRY(make_block(array, &device_kind, diagnostics));
  KJ_ASK_TWICE(result, array->object.device,
               cuMemAllocManaged(&array->block->address, size_bytes ? size_bytes : 1,
                                 ATTACH_GLOBAL));
  KJ_TRY(check_allocation(array, result, "cuMemAllocManaged", size_bytes, diagnostics));
  array->tensor.device_type = KJ_DLPACK_MANAGED;
  return KJIT_OK;
}

static kjit_status allocate_alone(kjit_array *array, size_t size_bytes, kj_diagnostics *diagnostics)
{
  int result;
  KJ_TRY(make_block(array, &device_kind, diagnostics));
  KJ_ASK_TWICE(result, array->object.device,
               cuMemAlloc(&array->block->address, size_bytes ? size_bytes : 1));
  KJ_TRY(check_allocation(array, result, "cuMemAlloc", size_bytes, diagnostics));
  return KJIT_OK;
}

static kjit_status allocate_mapping(kjit_array *array, size_t size_bytes,
                                    kj_diagnostics *diagnostics)
{
  KJ_TRY(make_block(array, &kj_mapping_kind, diagnostics));
  kj_block *block = array->block;
  block->size_bytes = size_bytes ? size_bytes : 1;
  block->file = memfd_create("kjit array", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  block->data = MAP_FAILED;
  /* Other processes open it to write: its size is not theirs to change, or touching the array would
   * be a fault here. */
  if (block->file >= 0 && !ftruncate(block->file, (off_t)block->size_bytes) &&
      !fcntl(block->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
    block->data = mmap(NULL, block->size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, block->file, 0);
  block->address = (uint64_t)(uintptr_t)block->data;
  if (block->data != MAP_FAILED) return KJIT_OK;
  if (block->file >= 0) close(block->file);
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory: a shared array needs %zu bytes",
                  size_bytes);
}

/* The pool enters the device itself, and only where it needs the driver. */
static kjit_status allocate(kjit_array *array, kjit_stream *stream, size_t size_bytes,
                            kj_diagnostics *diagnostics)
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
  if (array->memory == KJIT_MEMORY_DEVICE)
    return allocate_block(array, stream, size_bytes, diagnostics);
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
    if (__builtin_mul_overflow(stride, shape[i] ? shape[i] : 1, &stride)) stride = 1;
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
  line->owners_use = &array->owner->line.use;
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
  return kj_check_stream(config->device, config->stream, false, diagnostics);
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
  kjit_status status = allocate(made, config->stream, size_bytes, diagnostics);
  if (status != KJIT_OK) {
    kj_drop_array(made);
    return status;
  }
  made->tensor.data =
    (void *)(uintptr_t)made->block->address; /* NOLINT(performance-no-int-to-ptr) */
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

/* NULL: it is the default stream, or has gone. The host may destroy it meanwhile. */
static kjit_stream *hold_own_stream(const kjit_array *owner)
{
  kjit_stream *threads = NULL;
  if (!owner->block) return NULL;
  if (!(owner->block->stream & KJ_STREAM_THREADS)) return kj_hold_stream(owner->block);
  if (kjit_get_thread_stream(owner->object.device, &threads) == KJIT_OK)
    atomic_fetch_add_explicit(&threads->references, 1, memory_order_relaxed);
  return threads;
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
  config.stream = hold_own_stream(model->owner);
  int64_t columns[KJ_MAX_RANK];
  fill_column_strides(columns, model->shape, config.rank);
  bool is_column_major =
    config.rank > 1 && !memcmp(columns, model->strides, config.rank * sizeof *columns);
  config.layout = is_column_major ? KJIT_LAYOUT_F : KJIT_LAYOUT_C;
  kjit_status status = kjit_create_configured_array(&config, array);
  kj_release_stream(config.stream);
  return status;
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
  if (stream && atomic_load(&stream->capture)) KJ_TRY(kj_keep_array(stream, array, diagnostics));
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
