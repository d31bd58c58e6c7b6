/* Implements arrays that kjit allocates: their creation, their release, and their properties. */
#include <stdlib.h>
#include <string.h>

#include "memory/array.h"
#include "memory/pool.h"
#include "stream/stream.h"
#include "support/aligned.h"

/* ---- the array object ---- */

static kjit_array *allocate_array(void)
{
  _Static_assert(_Alignof(kjit_array) == KJ_ALIGNMENT, "arrays are aligned to cache lines");
  kjit_array *array = kj_allocate_aligned(sizeof *array);
  if (array) memset(array, 0, sizeof *array);
  return array;
}

void kj_drop_array(kjit_array *array)
{
  KJ_ASSERT(!array->object.next && !array->object.previous && !array->block);
  free(kj_block_of_aligned(array));
}

/* Checks an array to which the application, a view or a graph refers. */
static void check_array(const kjit_array *array)
{
  const kj_array_line *line = &array->line;
  if (!KJ_HAS_ASSERTIONS) return;
  KJ_ASSERT((uintptr_t)array % _Alignof(kjit_array) == 0);
  KJ_ASSERT(array->tensor.rank >= 0 && array->tensor.rank <= KJ_MAX_RANK);
  KJ_ASSERT(array->tensor.shape == array->shape && array->tensor.strides == array->strides);
  /* the owner of a view is not a view itself and lives at least as long as the view */
  KJ_ASSERT(array->owner && array->owner->owner == array->owner);
  KJ_ASSERT(array->owner == array || (!array->block && atomic_load(&array->owner->references)));
  KJ_ASSERT(line->owners_use == &array->owner->line.use && line->low <= line->high);
  KJ_ASSERT(!line->form || !(array->is_read_only || array->is_in_place));
}

/* For assertions: returns whether all elements of a view lie in its owner's memory. */
static bool is_within_owner(const kjit_array *array)
{
  const kj_block *block = array->owner->block;
  uint64_t low, high;
  kj_view view;
  if (!block || !block->address) return true; /* memory of the application, whose size is unknown */
  kj_view_tensor(array->object.device->context->types, &array->tensor, array->element, "", NULL,
                 &view);
  kj_view_range(&view, &low, &high);
  return low == high || (low >= block->address && high - block->address <= block->size_bytes);
}

static void destroy_array(kj_object *object)
{
  kjit_array *array = (kjit_array *)object;
  check_array(array);
  if (array->owner != array) kjit_release_array(array->owner);
  if (array->block) {
    kj_copy_uses(&array->block->use, &array->line.use);
    kj_release_block(array->block);
  }
  array->block = NULL;
  array->tensor.data = NULL;
  array->line.form = 0;
  kj_free_object(object, kj_block_of_aligned(array));
}

/* ---- memory ---- */

/* Allocates an array's memory. On a device that queues work, device memory comes from the pool. If
 * `content` is not 0, the array may get a block that already has this content. */
static kjit_status allocate(kjit_array *array, kjit_stream *stream, size_t size_bytes,
                            kj_diagnostics *diagnostics)
{
  static const int32_t dlpack_types[] = { [KJIT_MEMORY_PINNED] = KJ_DLPACK_PINNED,
                                          [KJIT_MEMORY_MAPPED] = KJ_DLPACK_PINNED,
                                          [KJIT_MEMORY_MANAGED] = KJ_DLPACK_MANAGED,
                                          [KJIT_MEMORY_SHARED] = 0 };
  kjit_device *device = array->object.device;
  KJ_ASSERT(!array->block || (device->memory && array->memory == KJIT_MEMORY_DEVICE));
  if (device->memory && array->memory == KJIT_MEMORY_DEVICE) {
    if (!array->block)
      KJ_TRY(kj_take_block(device, KJ_POOL_DEVICE, size_bytes, stream, diagnostics, &array->block));
    array->line.use.streams[0] = array->block->stream;
  } else {
    KJ_TRY(kj_allocate_block(device, array->memory, size_bytes, diagnostics, &array->block));
  }
  KJ_ASSERT(array->block->size_bytes >= size_bytes && array->block->address);
  array->tensor.data =
    (void *)(uintptr_t)array->block->address; /* NOLINT(performance-no-int-to-ptr) */
  if (!device->operations->has_memory) {
    if (dlpack_types[array->memory]) array->tensor.device_type = KJIT_DEVICE_CPU;
    return KJIT_OK;
  }
  if (dlpack_types[array->memory]) array->tensor.device_type = dlpack_types[array->memory];
  array->is_in_place = array->memory == KJIT_MEMORY_MAPPED;
  return KJIT_OK;
}

/* ---- creating arrays ---- */

/* Returns the size of a contiguous array in bytes, or 0 if it is empty. */
static kjit_status measure(ki_types *types, kjit_type element, const int64_t *shape, uint32_t rank,
                           kj_diagnostics *diagnostics, size_t *size_bytes)
{
  bool is_empty = false;
  if (!ki_is_element(types, element))
    return kj_error(
      diagnostics, KJIT_ERROR_ARGUMENT,
      "the element type of an array must be a scalar, vector, struct or pointer type, not %u",
      element);
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
  kjit_array *array = allocate_array();
  KJ_ASSERT(rank <= KJ_MAX_RANK && (!rank || shape));
  if (!array) return NULL;
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
  bool is_there = device->operations->has_memory;
  bool is_placed = !is_there && device->info.kind == KJIT_DEVICE_CPU && !device->is_single;
  array->tensor.device_type = is_there    ? (int32_t)device->info.kind
                              : is_placed ? KJ_DLPACK_PLACED
                                          : KJIT_DEVICE_CPU;
  array->tensor.device_id = is_there || is_placed ? device->info.ordinal : 0;
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
                      .row_bytes = rank ? (uint64_t)array->shape[rank - 1] * element_bytes : 0,
                      .result_bytes = count * element_bytes });
  line->high = line->low + count * element_bytes;
  line->form = is_simple ? kj_array_form(array->element, rank, tensor->device_type, facts) : 0;
  line->extent = rank ? array->shape[0] : 1;
  line->place = kj_place(array->object.device, array->object.generation);
  line->owners_use = &array->owner->line.use;
}

void kj_publish_array(kjit_array *array)
{
  KJ_ASSERT(atomic_load(&array->references) == 1 && !array->line.owners_use);
  kj_add_object(array->object.device, &array->object, destroy_array);
  fill_line(array);
  check_array(array);
  KJ_ASSERT(is_within_owner(array));
}

static kjit_status check_config(const kjit_array_config *config, kj_diagnostics *diagnostics)
{
  if (config->layout > KJIT_LAYOUT_F)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT, "layout %d is not a value of kjit_layout",
                    (int)config->layout);
  if ((unsigned)config->memory > KJIT_MEMORY_SHARED)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "memory kind %d is not a value of kjit_memory", (int)config->memory);
  return kj_check_stream(config->device, config->stream, false, diagnostics);
}

kjit_status kj_create_array_with(const kjit_array_config *config, uint64_t content,
                                 kj_diagnostics *diagnostics, kjit_array **array, bool *has_content)
{
  size_t size_bytes = 0;
  KJ_TRY(check_config(config, diagnostics));
  KJ_TRY(measure(config->device->context->types, config->element, config->shape, config->rank,
                 diagnostics, &size_bytes));
  kjit_array *made = kj_make_array(config->device, config->element, config->shape, NULL,
                                   config->rank, config->layout);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->memory = config->memory;
  kjit_status status = KJIT_OK;
  if (content && config->device->memory)
    status = kj_take_content(config->device, content, size_bytes, config->stream, diagnostics,
                             &made->block);
  *has_content = made->block != NULL;
  if (status == KJIT_OK) status = allocate(made, config->stream, size_bytes, diagnostics);
  if (status != KJIT_OK) {
    kj_drop_array(made);
    return status;
  }
  kj_publish_array(made);
  *array = made;
  return KJIT_OK;
}

kjit_status kjit_create_array_with(const kjit_array_config *config, kjit_array **array)
{
  static const char call[] = "kjit_create_array_with";
  kjit_array_config read = { 0 };
  if (!config) return KJIT_ERROR_MISUSE;
  if (ki_read_sized(NULL, call, KI_ARRAY_CONFIG, config, &read) != KJIT_OK) {
    /* size_bytes 0 means that the application has forgotten to set it; its other fields are valid,
     * so the error is reported to the context of config->device. If size_bytes has another invalid
     * value, the other fields may be invalid as well. */
    kjit_device *device = config->size_bytes ? read.device : config->device;
    return device ? ki_read_sized(device->context, call, KI_ARRAY_CONFIG, config, &read)
                  : KJIT_ERROR_MISUSE;
  }
  if (!read.device) return KJIT_ERROR_MISUSE;
  kjit_context *context = read.device->context;
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_call(context, call, array ? NULL : "array"));
  bool has_content;
  (void)kj_create_array_with(&read, 0, &diagnostics, array, &has_content);
  return ki_finish_call(context, &diagnostics);
}

void kj_release_array_with(kjit_array *array, uint64_t content)
{
  KJ_ASSERT(content && atomic_load(&array->references) == 1 && array->owner == array);
  if (array->block) array->block->content = content;
  kjit_release_array(array);
}

kjit_status kjit_create_array(kjit_device *device, kjit_type element, const int64_t *shape,
                              uint32_t rank, kjit_array **array)
{
  kjit_array_config config = {
    .size_bytes = sizeof config, .device = device, .element = element, .rank = rank, .shape = shape
  };
  return kjit_create_array_with(&config, array);
}

/* Returns the stream and retains it, because the application may destroy the stream at the same
 * time. Returns NULL for the default stream or a destroyed stream. */
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
  KJ_TRY(kj_check_array_call(model, "kjit_create_array_like", array ? NULL : "array"));
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = model->object.device,
                               .element = model->element,
                               .rank = (uint32_t)model->tensor.rank,
                               .shape = model->shape,
                               .memory = model->owner->memory,
                               .stream = hold_own_stream(model->owner) };
  int64_t columns[KJ_MAX_RANK];
  fill_column_strides(columns, model->shape, config.rank);
  bool is_column_major =
    config.rank > 1 && !memcmp(columns, model->strides, config.rank * sizeof *columns);
  config.layout = is_column_major ? KJIT_LAYOUT_F : KJIT_LAYOUT_C;
  kjit_status status = kjit_create_array_with(&config, array);
  kj_release_stream(config.stream);
  return status;
}

kjit_status kjit_create_array_from(kjit_device *device, const kjit_tensor *source,
                                   kjit_stream *stream, kjit_array **array)
{
  if (!device) return KJIT_ERROR_MISUSE;
  KJ_TRY(kj_check_call(device->context, "kjit_create_array_from",
                       !array   ? "array"
                       : source ? NULL
                                : "source"));
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
                               .stream = device->operations->is_queued ? stream : NULL };
  bool has_content;
  if (kj_create_array_with(&config, 0, &diagnostics, &made, &has_content) != KJIT_OK)
    return ki_finish_call(device->context, &diagnostics);
  kjit_arg to = kjit_arg_array(made), from = kjit_arg_tensor(source);
  kjit_status status = kjit_copy(device->context, &to, &from, stream);
  if (status == KJIT_OK) *array = made;
  else kjit_release_array(made);
  return status;
}

/* ---- references and properties ---- */

kjit_array *kjit_retain_array(kjit_array *array)
{
  if (array) atomic_fetch_add_explicit(&array->references, 1, memory_order_relaxed);
  return array;
}

void kjit_release_array(kjit_array *array)
{
  if (!array || (!array->object.is_left && ki_is_forked(array->object.device->context))) return;
  if (atomic_fetch_sub_explicit(&array->references, 1, memory_order_acq_rel) != 1) return;
  if (kj_take_object(&array->object)) destroy_array(&array->object);
}

kjit_context *kjit_get_array_context(const kjit_array *array)
{
  return kj_told_context(array ? &array->object : NULL);
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

/* ---- the device of an address ---- */

/* Returns the ordinal of the CPU device with an array that contains the address, or -1. */
static int32_t find_placed(kj_runtime *runtime, uint64_t address)
{
  int32_t ordinal = -1;
  kj_lock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  for (const kj_object *at = runtime->objects; at && ordinal < 0; at = at->next) {
    const kjit_array *array = (const kjit_array *)at;
    if (at->destroy != destroy_array || array->tensor.device_type != KJ_DLPACK_PLACED) continue;
    const kj_block *block = array->owner->block;
    bool is_there =
      block && block->address <= address && address < block->address + block->size_bytes;
    if (is_there) ordinal = array->tensor.device_id;
  }
  kj_unlock(&runtime->objects_mutex, KJ_LOCK_OBJECTS);
  return ordinal;
}

static kjit_status locate(kj_runtime *runtime, uint64_t address, kj_diagnostics *diagnostics,
                          kjit_device **device)
{
  int32_t placed = find_placed(runtime, address);
  if (placed >= 0) return kj_find_device(runtime, KJIT_DEVICE_CPU, placed, diagnostics, device);
  for (uint32_t i = 0; i < runtime->kind_count; i++) {
    kj_kind *kind = &runtime->kinds[i];
    kjit_device *first = NULL;
    if (!kind->operations->locate || !atomic_load(&kind->is_open)) continue;
    KJ_TRY(kj_find_device(runtime, kind->operations->kind, 0, diagnostics, &first));
    int32_t ordinal = kind->operations->locate(first, address);
    if (ordinal >= 0)
      return kj_find_device(runtime, kind->operations->kind, ordinal, diagnostics, device);
  }
  return KJIT_OK;
}

kjit_status kjit_locate_memory(kjit_context *context, const void *memory, kjit_device **device)
{
  kj_diagnostics diagnostics = { 0 };
  KJ_TRY(kj_check_call(context, "kjit_locate_memory", device ? NULL : "device"));
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  *device = NULL;
  (void)locate(runtime, (uint64_t)(uintptr_t)memory, &diagnostics, device);
  return ki_finish_call(context, &diagnostics);
}

/* ---- pinning the application's memory; managed memory ---- */

static kjit_status change_pinning(kjit_device *device, void *memory, size_t size_bytes, bool is_on)
{
  if (!device) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(device->context)) return KJIT_ERROR_FORKED;
  if (!memory || (is_on && !size_bytes))
    return ki_fail_call(device->context, KJIT_ERROR_ARGUMENT,
                        "the host memory to pin is NULL or empty");
  kj_diagnostics diagnostics = { 0 };
  const kj_device_operations *operations = device->operations;
  (void)(is_on ? operations->pin(device, memory, size_bytes, &diagnostics)
               : operations->unpin(device, memory, &diagnostics));
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

static kjit_status prefetch(kjit_array *array, kjit_device *to, kjit_stream *stream,
                            kj_diagnostics *diagnostics)
{
  kjit_device *device = array->object.device;
  kj_view view;
  uint64_t low, high;
  KJ_TRY(kj_view_array(array, "the array", diagnostics, &view));
  bool is_managed = device->operations->has_memory && array->memory == KJIT_MEMORY_MANAGED;
  if (!is_managed || !view.count) return KJIT_OK;
  if (stream) device = stream->object.device;
  KJ_TRY(kj_check_stream(device, stream, false, diagnostics));
  if (!device->operations->has_memory)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "kjit_prefetch_array: expected a stream of a GPU, got a stream of the CPU");
  kj_view_range(&view, &low, &high);
  kj_note_use(array, stream, device);
  if (stream && atomic_load(&stream->capture)) KJ_TRY(kj_keep_array(stream, array, diagnostics));
  return device->operations->prefetch(device, low, high - low,
                                      to->operations->has_memory ? to : NULL, kj_native(stream),
                                      diagnostics);
}

kjit_status kjit_prefetch_array(kjit_array *array, kjit_device *device, kjit_stream *stream)
{
  if (!device) return KJIT_ERROR_MISUSE;
  KJ_TRY(kj_check_array_call(array, "kjit_prefetch_array", NULL));
  kjit_context *context = array->object.device->context;
  if (device->context != context || (stream && stream->object.device->context != context))
    return ki_fail_call(
      context, KJIT_ERROR_ARGUMENT,
      "kjit_prefetch_array: the array, the device and the stream belong to different contexts");
  kj_diagnostics diagnostics = { 0 };
  (void)prefetch(array, device, stream, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}
