#include "launch/direct.h"

#include <string.h>

#include "launch/plan.h"
#include "support/host_process.h"

/* ---- arguments ---- */

/* The bytes of each array, by its position among the arrays. */
typedef struct spans {
  uint64_t low[KJ_MOST_DIRECT], high[KJ_MOST_DIRECT];
} spans;

enum { WIDTH = 16 };

/* kind, access and type as one word. */
static inline uint64_t head_of(const kjit_arg *argument)
{
  uint64_t head;
  memcpy(&head, argument, sizeof head);
  return head;
}

_Static_assert(offsetof(kjit_arg, value) == sizeof(uint64_t), "a head is one word");

static __attribute__((noinline, cold)) void
note_uses(const kj_direct *tables, const kjit_stream *stream, const kjit_arg *arguments)
{
  for (uint32_t i = 0; i < tables->array_count; i++) {
    const kjit_arg *argument = &arguments[tables->arrays[i].index];
    if (argument->kind == KJIT_ARG_ARRAY)
      kj_note_use(argument->value.array, stream, tables->device);
  }
}

/* All arrays are kjit arrays that are neither named otherwise nor given an access; what may differ
 * is looked at once for all. has_one_written: the pairs are done with, and spans stay as they are.
 */
static inline __attribute__((always_inline)) bool
walk_arrays(const kj_direct *tables, const kjit_stream *stream, const kjit_arg *arguments,
            char *parameters, spans *spans, bool has_one_written)
{
  static const kjit_arg plain = { .kind = KJIT_ARG_ARRAY };
  const kj_direct_array *array = tables->arrays, *end = array + tables->array_count;
  uint64_t expected = head_of(&plain), place = tables->place, differs = 0, known = UINT64_MAX,
           low = 0, high = 0, met = 0;
  for (uint32_t i = 0; array < end; array++, i++) {
    const kjit_arg *argument = &arguments[array->index];
    if (__builtin_expect(head_of(argument) != expected || !argument->value.array, 0)) return false;
    const kj_array_line *line = &argument->value.array->line;
    differs |= (line->form ^ array->form) | (line->place ^ place);
    known &= atomic_load_explicit(line->owners_uses, memory_order_relaxed);
    memcpy(parameters + array->to, &line->low, sizeof line->low);
    if (has_one_written) {
      if (!i) low = line->low, high = line->high;
      met += (high > line->low) & (line->high > low); /* the first one meets itself */
    } else {
      spans->low[i] = line->low;
      spans->high[i] = line->high;
    }
  }
  if (differs || met > 1) return false;
  bool is_known = known >> (stream ? stream->slot : KJ_SLOT_DEFAULT) & 1;
  if (!is_known || (stream && tables->array_count &&
                    !atomic_load_explicit(&stream->is_used, memory_order_relaxed)))
    note_uses(tables, stream, arguments);
  return true;
}

/* NULL: none that can be used without a look at the general rules. */
static const kjit_tensor *tensor_of(const kj_direct *tables, const kjit_arg *argument,
                                    bool *has_kjits)
{
  static const kjit_arg plain = { .kind = KJIT_ARG_TENSOR };
  if (head_of(argument) == head_of(&plain)) return argument->value.tensor;
  bool is_array = argument->kind == KJIT_ARG_ARRAY && argument->type == KJIT_ANY &&
                  argument->access <= KJIT_ACCESS_IN_OUT;
  const kjit_array *array = is_array ? argument->value.array : NULL;
  *has_kjits = true;
  bool is_here = array && array->line.place == tables->place && !array->is_read_only;
  return is_here ? &array->tensor : NULL;
}

/* Bytes; 0: it is not as expected. */
static inline uint64_t measure(const kj_direct_array *array, const kj_direct_tensor *expected,
                               const kjit_tensor *tensor)
{
  uint64_t place, type, address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  memcpy(&place, &tensor->device_type, sizeof place);
  memcpy(&type, &tensor->rank, sizeof type);
  uint64_t differs = (place ^ expected->place) | (type ^ expected->type) |
                     ((address ^ kj_form_low_bits(array->form)) & (WIDTH - 1)) | !address;
  if (differs || (array->rank && !tensor->shape)) return 0;
  /* most arrays */
  bool is_line = array->rank == 1 && (!tensor->strides || tensor->strides[0] == 1);
  uint64_t count = is_line ? (uint64_t)tensor->shape[0]
                           : kj_count_dense(tensor->shape, tensor->strides, array->rank);
  if (count - 1 >= INT32_MAX) return 0;
  if (array->rank > 1 && array->has_aligned_rows != !((uint64_t)tensor->shape[array->rank - 1] *
                                                      array->element_bytes % WIDTH))
    return 0;
  return count * array->element_bytes;
}

/* Some are tensors of the host. */
static bool follow_tensors(const kj_direct *tables, const kjit_stream *stream,
                           const kjit_arg *arguments, char *parameters, spans *spans)
{
  bool has_kjits = false;
  for (uint32_t i = 0; i < tables->array_count; i++) {
    const kj_direct_array *array = &tables->arrays[i];
    const kjit_tensor *tensor = tensor_of(tables, &arguments[array->index], &has_kjits);
    uint64_t bytes = tensor ? measure(array, &tables->tensors[i], tensor) : 0;
    if (!bytes) return false;
    uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    spans->low[i] = address;
    spans->high[i] = address + bytes;
    memcpy(parameters + array->to, &address, sizeof address);
  }
  if (has_kjits) note_uses(tables, stream, arguments);
  return true;
}

static inline void write_scalar(char *to, uint64_t bits, uint32_t size_bytes)
{
  if (size_bytes == 4) memcpy(to, &bits, 4);
  else if (size_bytes == 8) memcpy(to, &bits, 8);
  else memcpy(to, &bits, size_bytes);
}

static inline bool follow_scalars(const kj_direct *tables, const kjit_arg *arguments,
                                  char *parameters)
{
  const kj_direct_scalar *scalar = tables->scalars, *end = scalar + tables->scalar_count;
  for (; scalar < end; scalar++) {
    const kjit_arg *argument = &arguments[scalar->index];
    if (head_of(argument) != scalar->head) return false;
    write_scalar(parameters + scalar->to,
                 scalar->is_bool ? (argument->value.u & 255) != 0 : argument->value.u,
                 scalar->size_bytes);
  }
  return true;
}

static bool is_same(const kjit_arg *a, const kjit_arg *b)
{
  return a->kind == b->kind && a->type == b->type && a->value.u == b->value.u;
}

static inline bool follow_same(const kj_direct *tables, const kjit_arg *arguments)
{
  for (uint32_t i = 0; i < tables->same_count; i++) {
    uint32_t index = tables->same[i];
    if (!is_same(&arguments[index], &tables->plan->same[index].argument)) return false;
  }
  return true;
}

/* The first array is written, others are not: it meets itself only. */
static bool is_first_apart(const spans *spans, uint32_t count)
{
  uint32_t met = 0;
  for (uint32_t i = 0; i < count; i++)
    met += (spans->high[0] > spans->low[i]) & (spans->high[i] > spans->low[0]);
  return met == 1;
}

/* In the order that they had when the tables were made, each ends before the next begins: then no
 * two meet. */
static bool are_in_order(const kj_direct *tables, const spans *spans)
{
  for (uint32_t k = 1; k < tables->order_count; k++)
    if (spans->high[tables->order[k - 1]] > spans->low[tables->order[k]]) return false;
  return tables->order_count > 0;
}

static bool follow_pairs(const kj_direct *tables, const spans *spans)
{
  if (are_in_order(tables, spans)) return true;
  for (uint32_t k = 0; k < tables->pair_count; k++) {
    uint32_t i = tables->pairs[k].i, j = tables->pairs[k].j;
    if (spans->high[i] > spans->low[j] && spans->high[j] > spans->low[i]) return false;
  }
  return true;
}

static __attribute__((noinline)) bool follow_any(const kj_direct *tables, const kjit_stream *stream,
                                                 const kjit_arg *arguments, char *parameters)
{
  spans spans;
  if (!follow_tensors(tables, stream, arguments, parameters, &spans)) return false;
  return tables->has_one_written ? is_first_apart(&spans, tables->array_count)
                                 : !tables->pair_count || follow_pairs(tables, &spans);
}

/* The arrays are as expected and as far apart, and their addresses are in the parameter block. */
static __attribute__((noinline)) bool follow_arrays(const kj_direct *tables,
                                                    const kjit_stream *stream,
                                                    const kjit_arg *arguments, char *parameters)
{
  if (tables->has_one_written)
    return walk_arrays(tables, stream, arguments, parameters, NULL, true) ||
           follow_any(tables, stream, arguments, parameters);
  spans spans;
  if (!walk_arrays(tables, stream, arguments, parameters, &spans, false))
    return follow_any(tables, stream, arguments, parameters);
  return !tables->pair_count || follow_pairs(tables, &spans);
}

static const int64_t *shape_of(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_TENSOR ? argument->value.tensor->shape
                                           : argument->value.array->shape;
}

static inline int64_t extent_of(const kjit_arg *argument, uint32_t dimension)
{
  bool is_in_line = argument->kind == KJIT_ARG_ARRAY && !dimension;
  return is_in_line ? argument->value.array->line.extent : shape_of(argument)[dimension];
}

static inline void write_extents(const kj_direct *tables, const kjit_arg *arguments,
                                 char *parameters)
{
  const kj_direct_extent *extent = tables->extents, *end = extent + tables->extent_count;
  for (; extent < end; extent++)
    write_scalar(parameters + extent->to,
                 (uint64_t)extent_of(&arguments[extent->argument], extent->dimension),
                 extent->is_wide ? 8 : 4);
}

/* ---- block and grid, as kj_configure_quickly and kj_fit_grid have them ---- */

typedef struct shape {
  uint32_t grid[3], block[3];
  uint64_t blocks; /* what the width of indices is chosen by */
} shape;

static inline uint64_t product(const uint32_t v[3]) { return (uint64_t)v[0] * v[1] * v[2]; }

static inline bool read_shape(const uint32_t given[3], uint32_t shape[3])
{
  for (int i = 0; i < 3; i++) shape[i] = given[i] + !given[i];
  return given[0] | given[1] | given[2];
}

/* What the kernel's programs look at: extents, their product, scalars. */
static void bind(const kj_direct *tables, const kjit_arg *arguments, kj_bound *bound)
{
  const kj_plan *plan = tables->plan;
  for (uint32_t k = 0; k < tables->shaping_count; k++) {
    uint32_t index = tables->shaping[k].index;
    const kj_plan_row *row = &plan->rows[index];
    kj_bound *b = &bound[index];
    if (tables->shaping[k].mode == KJ_PLAN_SAME) {
      *b = plan->same[index].bound;
      continue;
    }
    memcpy(b, row->head, sizeof row->head);
    b->bits[0] = row->type == KJIT_BOOL ? (arguments[index].value.u & row->mask) != 0
                                        : arguments[index].value.u & row->mask;
    if (row->mode != KJ_PLAN_ARRAY) continue;
    b->shape = shape_of(&arguments[index]);
    b->strides = NULL;
    b->count = 1;
    for (uint32_t i = 0; i < row->rank; i++) b->count *= (uint64_t)b->shape[i];
  }
}

static bool run_shape(const kj_bound *bound, const kj_programs *programs, const uint32_t *block,
                      uint32_t shape[3])
{
  shape[0] = shape[1] = shape[2] = 1;
  for (uint32_t i = 0; i < programs->count && i < 3; i++) {
    int64_t value;
    if (!kj_run_program(&programs->items[i], bound, block, &value) || value < 1 ||
        value > INT32_MAX)
      return false;
    shape[i] = (uint32_t)value;
  }
  return true;
}

static bool count_range(const kj_bound *bound, const uint32_t *block, const kj_programs *programs,
                        uint64_t *count)
{
  *count = 1;
  for (uint32_t i = 0; i < programs->count; i++) {
    int64_t value;
    if (!kj_run_program(&programs->items[i], bound, block, &value) || value <= 0 ||
        __builtin_mul_overflow(*count, (uint64_t)value, count))
      return false;
  }
  return programs->is_complete;
}

/* One dimension, as many blocks as the largest grid_range needs. */
static bool choose_grid(const kjit_kernel *kernel, const kjit_specialization *specialization,
                        const kj_bound *bound, shape *shape)
{
  uint64_t elements = 0, threads = product(shape->block),
           each = specialization->code.elements_a_thread;
  if (!kernel->range_count || kernel->has_callee_range) return false;
  for (uint32_t i = 0; i < kernel->range_count; i++) {
    uint64_t count;
    if (!count_range(bound, shape->block, &kernel->range_programs[i], &count)) return false;
    if (count > elements) elements = count;
  }
  uint64_t share = threads * (each > 1 ? each : 1),
           blocks = elements / share + (elements % share != 0);
  shape->blocks = elements / threads + (elements % threads != 0); /* with one element a thread */
  if (shape->blocks > specialization->device->info.max_grid[0]) return false;
  shape->grid[0] = (uint32_t)blocks;
  return true;
}

/* Block and grid that the kernel or its grid_ranges decide. */
static __attribute__((noinline)) bool evaluate_shape(const kjit_kernel *kernel,
                                                     const kjit_specialization *specialization,
                                                     const kjit_launch_config *config,
                                                     const kjit_arg *arguments, shape *shape)
{
  const kj_direct *tables = specialization->direct;
  kj_bound bound[KJ_MOST_DIRECT];
  bool is_block_given = read_shape(config->block, shape->block),
       is_grid_given = read_shape(config->grid, shape->grid);
  bind(tables, arguments, bound);
  if (kernel->block
        ? is_block_given || !run_shape(bound, &kernel->block_program, NULL, shape->block)
        : !is_block_given && !tables->default_threads)
    return false;
  if (!kernel->block && !is_block_given) shape->block[0] = tables->default_threads;
  if (kernel->grid &&
      (is_grid_given || !run_shape(bound, &kernel->grid_program, shape->block, shape->grid)))
    return false;
  if (product(shape->block) - 1 >= tables->most_threads) return false;
  shape->blocks = product(shape->grid);
  return kernel->grid || is_grid_given || choose_grid(kernel, specialization, bound, shape);
}

static inline shape read_config(const kjit_launch_config *config)
{
  shape shape;
  (void)read_shape(config->block, shape.block);
  (void)read_shape(config->grid, shape.grid);
  shape.blocks = product(shape.grid);
  return shape;
}

/* As evaluate_shape, for most kernels that are launched without a grid. */
static inline bool shape_range(const kj_direct *tables, const kjit_launch_config *config,
                               const kjit_arg *arguments, shape *shape)
{
  if (!read_shape(config->block, shape->block)) shape->block[0] = tables->default_threads;
  uint64_t threads = product(shape->block),
           elements =
             (uint64_t)extent_of(&arguments[tables->range_argument], tables->range_dimension);
  if (threads - 1 >= tables->most_threads) return false;
  /* both below 2^31 */
  uint32_t share = (uint32_t)threads * tables->elements_a_thread, count = (uint32_t)elements;
  shape->grid[0] = count / share + (count % share != 0);
  shape->grid[1] = shape->grid[2] = 1;
  shape->blocks = count / (uint32_t)threads + (count % (uint32_t)threads != 0);
  return shape->blocks <= tables->device->info.max_grid[0];
}

static inline bool fits(const kj_direct *tables, const shape *shape, uint64_t shared_bytes)
{
  const uint32_t *most_grid = tables->device->info.max_grid, *block = shape->block,
                 *grid = shape->grid;
  uint64_t threads = product(block), least = tables->least_shared_bytes;
  bool fits = (threads - 1 < tables->most_threads) & (block[0] <= tables->most_threads) &
              (block[1] <= tables->most_threads) & (block[2] <= tables->most_block_z) &
              (grid[0] - 1 < most_grid[0]) & (grid[1] - 1 < most_grid[1]) &
              (grid[2] - 1 < most_grid[2]) &
              (shared_bytes - least <= tables->most_shared_bytes - least);
  bool is_grid32 = (shape->blocks <= INT32_MAX) & (shape->blocks * threads <= INT32_MAX);
  return fits && is_grid32 == tables->is_grid32 &&
         (!tables->knows_block || !memcmp(block, tables->block, sizeof tables->block));
}

/* ---- the launch ---- */

/* Flags, clusters, priorities and captures go the longer way, and so does whoever leaves the block
 * to the occupancy calculator. */
static inline bool is_plain(const kjit_launch_config *config)
{
  return !((config->flags & ~(uint32_t)KJIT_LAUNCH_NO_WAIT) | config->cluster[0] |
           config->cluster[1] | config->cluster[2] | (uint32_t)config->priority | config->threads);
}

static inline bool is_on_device(const kjit_launch_config *config, const kj_direct *tables)
{
  const kjit_device *device = tables->device;
  const kjit_stream *stream = config->stream;
  uint32_t generation = atomic_load_explicit(&device->generation, memory_order_relaxed);
  if (generation != (uint32_t)tables->place ||
      atomic_load_explicit(&device->lost, memory_order_acquire))
    return false;
  if (config->device ? config->device != device : !stream && !tables->is_default_device)
    return false;
  return !stream || (stream->object.device == device && stream->object.generation == generation &&
                     !atomic_load_explicit(&stream->capture, memory_order_relaxed));
}

static __attribute__((noinline, cold)) kjit_status retry(const kjit_specialization *specialization,
                                                         const kjit_launch_config *config,
                                                         shape shape, char *parameters, int result)
{
  kjit_device *device = specialization->device;
  kj_diagnostics diagnostics = { 0 };
  kj_cuda_launch launch = { .grid = shape.grid,
                            .block = shape.block,
                            .dynamic_shared_bytes = (uint32_t)config->dynamic_shared_bytes,
                            .stream = config->stream ? config->stream->native : NULL,
                            .parameters = parameters,
                            .parameter_bytes = specialization->code.parameter_bytes };
  kjit_status status =
    kj_retry_launch(device, &specialization->cuda, &launch, result, &diagnostics);
  return diagnostics.count ? ki_finish_call(device->context, &diagnostics) : status;
}

/* The specialization is held. */
static inline int launch_held(const kjit_kernel *kernel, const kjit_specialization *specialization,
                              const kjit_launch_config *config, const kjit_arg *arguments,
                              size_t count)
{
  enum { BUFFER_POINTER = 1, BUFFER_SIZE = 2 };
  const kj_direct *tables = atomic_load_explicit(&specialization->direct, memory_order_acquire);
  _Alignas(16) char parameters[KJ_DIRECT_BYTES + sizeof(uint64_t)];
  if (!tables || count != tables->argument_count || (count && !arguments) || !is_plain(config) ||
      !is_on_device(config, tables))
    return KJ_OTHER_WAY;
  if (tables->forks != atomic_load_explicit(&kj_forks, memory_order_relaxed)) return KJ_OTHER_WAY;
  const kjit_stream *stream = config->stream;
  if ((tables->array_count && !follow_arrays(tables, stream, arguments, parameters)) ||
      !follow_scalars(tables, arguments, parameters) || !follow_same(tables, arguments))
    return KJ_OTHER_WAY;
  shape shape, evaluated;
  if (__builtin_expect(tables->is_shapeless && config->block[0] && config->grid[0], 1)) {
    shape = read_config(config);
  } else if (tables->has_plain_range && !(config->grid[0] | config->grid[1] | config->grid[2])) {
    if (!shape_range(tables, config, arguments, &shape)) return KJ_OTHER_WAY;
  } else {
    if (!evaluate_shape(kernel, specialization, config, arguments, &evaluated)) return KJ_OTHER_WAY;
    shape = evaluated;
  }
  if (!fits(tables, &shape, config->dynamic_shared_bytes)) return KJ_OTHER_WAY;
  write_extents(tables, arguments, parameters);
  size_t parameter_bytes = tables->parameter_bytes;
  void *native = stream ? stream->native : NULL;
  void *block_and_size[] = { (void *)(uintptr_t)BUFFER_POINTER, parameters,
                             (void *)(uintptr_t)BUFFER_SIZE, &parameter_bytes, NULL };
  kj_mark_launch(tables->device, tables->mark, native);
  int result =
    tables->device->driver->cuLaunchKernel(tables->function, shape.grid[0], shape.grid[1],
                                           shape.grid[2], shape.block[0], shape.block[1],
                                           shape.block[2], (unsigned)config->dynamic_shared_bytes,
                                           native, NULL,
                                           tables->parameter_bytes ? block_and_size : NULL);
  return __builtin_expect(result, 0) ? (int)retry(specialization, config, shape, parameters, result)
                                     : KJIT_OK;
}

int kj_launch_directly(kjit_kernel *kernel, const kjit_launch_config *config,
                       const kjit_arg *arguments, size_t count)
{
  static const kjit_launch_config defaults;
  uint32_t own = kj_slot();
  kjit_specialization *recent =
    atomic_load_explicit(&kernel->recent[own].specialization, memory_order_acquire);
  if (!recent || !kj_hold_of(recent, own)) return KJ_OTHER_WAY;
  int status = launch_held(kernel, recent, config ? config : &defaults, arguments, count);
  if (status == KJIT_OK) kj_count_up(&kernel->context->launches[own].count, own);
  kj_release_of(recent, own, status == KJIT_OK);
  return status;
}
