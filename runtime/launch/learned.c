#include "cuda/cuda.h"
#include "launch/learned.h"

#include <string.h>

#include "code/kernel.h"
#include "launch/launch.h"
#include "launch/shape.h"
#include "launch/start.h"
#include "support/host_process.h"

/* ---- arguments ---- */

/* The bytes of each array, by its position among the arrays. */
typedef struct spans {
  uint64_t low[KJ_MOST_LEARNED], high[KJ_MOST_LEARNED];
} spans;

/* kind, access and type as one word. */
static inline uint64_t head_of(const kjit_arg *argument)
{
  uint64_t head;
  memcpy(&head, argument, sizeof head);
  return head;
}

_Static_assert(offsetof(kjit_arg, value) == sizeof(uint64_t), "a head is one word");

static __attribute__((noinline, cold)) void
note_uses(const kj_learned *learned, const kjit_stream *stream, const kjit_arg *arguments)
{
  for (uint32_t i = 0; i < learned->array_count; i++) {
    const kjit_arg *argument = &arguments[learned->arrays[i].index];
    if (argument->kind == KJIT_ARG_ARRAY)
      kj_note_use(argument->value.array, stream, learned->device);
  }
}

/* All arrays are kjit arrays that are neither named otherwise nor given an access; what may differ
 * is looked at once for all. has_one_written: the pairs are done with, and spans stay as they are.
 */
static inline __attribute__((always_inline)) bool
walk_arrays(const kj_learned *learned, const kjit_stream *stream, const kjit_arg *arguments,
            char *parameters, spans *spans, bool has_one_written)
{
  static const kjit_arg plain = { .kind = KJIT_ARG_ARRAY };
  const kj_learned_array *array = learned->arrays, *end = array + learned->array_count;
  uint64_t expected = head_of(&plain), place = learned->place, differs = 0, low = 0, high = 0,
           met = 0;
  kj_stream_id id = kj_id_of(stream, learned->device);
  bool is_known = true;
  for (uint32_t i = 0; array < end; array++, i++) {
    const kjit_arg *argument = &arguments[array->index];
    if (__builtin_expect(head_of(argument) != expected || !argument->value.array, 0)) return false;
    const kj_array_line *line = &argument->value.array->line;
    differs |= (line->form ^ array->form) | (line->place ^ place);
    is_known &= kj_is_recent_use(line->owners_use, id);
    memcpy(parameters + array->to, &line->low, sizeof line->low);
    if (has_one_written) {
      if (!i) low = line->low, high = line->high;
      met += kj_do_meet(low, high, line->low, line->high); /* the first one meets itself */
    } else {
      spans->low[i] = line->low;
      spans->high[i] = line->high;
    }
  }
  if (differs || met > 1) return false;
  if (!is_known && learned->notes_uses) note_uses(learned, stream, arguments);
  return true;
}

/* NULL: none that can be used without a look at the general rules. */
static const kjit_tensor *tensor_of(const kj_learned *learned, const kj_learned_array *row,
                                    const kjit_arg *argument, bool *has_kjits)
{
  static const kjit_arg plain = { .kind = KJIT_ARG_TENSOR };
  if (head_of(argument) == head_of(&plain)) return argument->value.tensor;
  if (argument->access > KJIT_ACCESS_IN_OUT) return NULL;
  /* what the host says of the elements */
  if (argument->kind == KJIT_ARG_TENSOR)
    return argument->type == KJIT_ANY || argument->type == (kjit_type)row->form
             ? argument->value.tensor
             : NULL;
  const kjit_array *array = argument->kind == KJIT_ARG_ARRAY ? argument->value.array : NULL;
  *has_kjits = true;
  bool is_here =
    array && array->line.place == learned->place && !array->is_read_only && !array->is_in_place;
  return is_here ? &array->tensor : NULL;
}

/* Bytes; 0: it is not as expected. */
static inline uint64_t measure(const kj_learned_array *array, const kj_learned_tensor *expected,
                               const kjit_tensor *tensor)
{
  uint64_t place, type, address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  memcpy(&place, &tensor->device_type, sizeof place);
  memcpy(&type, &tensor->rank, sizeof type);
  if ((place ^ expected->place) | (type ^ expected->type) | (address & (array->alignment - 1u)) |
      !address | (array->rank && !tensor->shape))
    return 0;
  uint64_t count = kj_count_dense(tensor->shape, tensor->strides, array->rank);
  bool has_rows = array->rank > 1;
  uint32_t facts = kj_find_array_facts((kj_array_place){
    .address = address,
    .has_rows = has_rows,
    .row_bytes = has_rows ? (uint64_t)tensor->shape[array->rank - 1] * array->element_bytes : 0 });
  return facts == array->facts ? count * array->element_bytes : 0;
}

/* Some are tensors of the host. */
static bool follow_tensors(const kj_learned *learned, const kjit_stream *stream,
                           const kjit_arg *arguments, char *parameters, spans *spans)
{
  bool has_kjits = false;
  for (uint32_t i = 0; i < learned->array_count; i++) {
    const kj_learned_array *array = &learned->arrays[i];
    const kjit_tensor *tensor = tensor_of(learned, array, &arguments[array->index], &has_kjits);
    uint64_t bytes = tensor ? measure(array, &learned->tensors[i], tensor) : 0;
    if (!bytes) return false;
    uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
    spans->low[i] = address;
    spans->high[i] = address + bytes;
    memcpy(parameters + array->to, &address, sizeof address);
  }
  if (has_kjits && learned->notes_uses) note_uses(learned, stream, arguments);
  return true;
}

static inline void write_scalar(char *to, uint64_t bits, uint32_t size_bytes)
{
  if (size_bytes == 4) memcpy(to, &bits, 4);
  else if (size_bytes == 8) memcpy(to, &bits, 8);
  else memcpy(to, &bits, size_bytes);
}

/* Plain numbers, and values that are given by their address or in another way. */
static __attribute__((noinline)) bool read_other(const kj_learned_scalar *scalar,
                                                 const kjit_arg *argument, uint64_t *bits)
{
  ki_value value;
  if (argument->kind == KJIT_ARG_NUMBER) {
    value = kj_argument_number(argument);
    if (scalar->is_annotated ? !ki_fit_argument(value, scalar->type, &value)
                             : value.type != scalar->type)
      return false;
    ki_encode_value(value, bits);
    return true;
  }
  if (argument->type != scalar->type) return false;
  if (argument->kind == KJIT_ARG_VALUE) return true;
  if (argument->kind != KJIT_ARG_BY_ADDRESS || !argument->value.address) return false;
  memcpy(bits, argument->value.address, scalar->size_bytes);
  return true;
}

static inline bool read_scalar(const kj_learned_scalar *scalar, const kjit_arg *argument,
                               uint64_t *bits)
{
  *bits = argument->value.u;
  if (head_of(argument) != scalar->head && !read_other(scalar, argument, bits)) return false;
  if (scalar->is_bool) *bits = (*bits & 255) != 0;
  return true;
}

static inline bool follow_scalars(const kj_learned *learned, const kjit_arg *arguments,
                                  char *parameters)
{
  const kj_learned_scalar *scalar = learned->scalars, *end = scalar + learned->scalar_count;
  for (; scalar < end; scalar++) {
    uint64_t bits;
    if (!read_scalar(scalar, &arguments[scalar->index], &bits)) return false;
    write_scalar(parameters + scalar->to, bits, scalar->size_bytes);
  }
  return true;
}

static inline bool follow_same(const kj_learned *learned, const kjit_arg *arguments)
{
  for (uint32_t i = 0; i < learned->same_count; i++) {
    const kj_learned_same *same = &learned->same[i];
    const kjit_arg *a = &arguments[same->index], *b = &same->argument;
    if (a->kind != b->kind || a->type != b->type || a->value.u != b->value.u) return false;
  }
  return true;
}

/* ---- bound arguments, where something is decided by the general rules ---- */

static const kjit_tensor *plain_tensor_of(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_TENSOR ? argument->value.tensor
                                           : &argument->value.array->tensor;
}

/* An argument that was followed. */
static void bind_array(const kj_learned *learned, const kj_learned_array *array,
                       const kjit_arg *argument, kj_bound *bound)
{
  const kjit_tensor *tensor = plain_tensor_of(argument);
  *bound = learned->bound[array->index];
  bound->access = argument->access;
  bound->shape = tensor->shape;
  bound->count = 1;
  for (uint32_t d = 0; d < array->rank; d++) bound->count *= (uint64_t)tensor->shape[d];
  bound->address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  bound->target = bound->low = bound->address;
  bound->high = bound->low + bound->count * array->element_bytes;
}

static void bind_scalar(const kj_learned *learned, const kj_learned_scalar *scalar,
                        const kjit_arg *argument, kj_bound *bound)
{
  *bound = learned->bound[scalar->index];
  bound->bits[0] = 0;
  (void)read_scalar(scalar, argument, &bound->bits[0]);
  (void)ki_decode_value(scalar->type, bound->bits, &bound->value);
}

static inline void bind(const kj_learned *learned, uint32_t index, const kjit_arg *arguments,
                        kj_bound *bound)
{
  for (uint32_t i = 0; i < learned->array_count; i++)
    if (learned->arrays[i].index == index) {
      bind_array(learned, &learned->arrays[i], &arguments[index], bound);
      return;
    }
  for (uint32_t i = 0; i < learned->scalar_count; i++)
    if (learned->scalars[i].index == index) {
      bind_scalar(learned, &learned->scalars[i], &arguments[index], bound);
      return;
    }
  *bound = learned->bound[index];
}

/* ---- arrays that are apart, or as they were ---- */

/* The first array is written, others are not: it meets itself only. */
static bool is_first_apart(const spans *spans, uint32_t count)
{
  uint32_t met = 0;
  for (uint32_t i = 0; i < count; i++)
    met += kj_do_meet(spans->low[0], spans->high[0], spans->low[i], spans->high[i]);
  return met == 1;
}

/* In the order that they had when the tables were made, each ends before the next begins: then no
 * two meet. */
static bool are_in_order(const kj_learned *learned, const spans *spans)
{
  for (uint32_t k = 1; k < learned->order_count; k++)
    if (spans->high[learned->order[k - 1]] > spans->low[learned->order[k]]) return false;
  return learned->order_count > 0;
}

static bool follow_pairs(const kj_learned *learned, const kjit_arg *arguments, const spans *spans)
{
  if (are_in_order(learned, spans)) return true;
  for (uint32_t k = 0; k < learned->pair_count; k++) {
    const kj_learned_pair *pair = &learned->pairs[k];
    bool do_meet = kj_do_meet(spans->low[pair->i], spans->high[pair->i], spans->low[pair->j],
                              spans->high[pair->j]);
    if (do_meet == (pair->relation == KJ_RELATION_DISJOINT)) return false;
    if (!do_meet) continue;
    kj_bound a, b;
    const kj_learned_array *x = &learned->arrays[pair->i], *y = &learned->arrays[pair->j];
    bind_array(learned, x, &arguments[x->index], &a);
    bind_array(learned, y, &arguments[y->index], &b);
    if (kj_relate(&a, &b) != (kj_relation)pair->relation) return false;
  }
  return true;
}

static __attribute__((noinline)) bool follow_any(const kj_learned *learned,
                                                 const kjit_stream *stream,
                                                 const kjit_arg *arguments, char *parameters)
{
  spans spans;
  if (!follow_tensors(learned, stream, arguments, parameters, &spans)) return false;
  return learned->has_one_written
           ? is_first_apart(&spans, learned->array_count)
           : !learned->pair_count || follow_pairs(learned, arguments, &spans);
}

/* The arrays are as expected and as far apart, and their addresses are in the parameter block. */
static __attribute__((noinline)) bool follow_arrays(const kj_learned *learned,
                                                    const kjit_stream *stream,
                                                    const kjit_arg *arguments, char *parameters)
{
  if (learned->has_one_written)
    return walk_arrays(learned, stream, arguments, parameters, NULL, true) ||
           follow_any(learned, stream, arguments, parameters);
  spans spans;
  if (!walk_arrays(learned, stream, arguments, parameters, &spans, false))
    return follow_any(learned, stream, arguments, parameters);
  return !learned->pair_count || follow_pairs(learned, arguments, &spans);
}

static inline int64_t extent_of(const kjit_arg *argument, uint32_t dimension)
{
  bool is_in_line = argument->kind == KJIT_ARG_ARRAY && !dimension;
  return is_in_line ? argument->value.array->line.extent
                    : plain_tensor_of(argument)->shape[dimension];
}

static inline void write_extents(const kj_learned *learned, const kjit_arg *arguments,
                                 char *parameters)
{
  const kj_learned_extent *extent = learned->extents, *end = extent + learned->extent_count;
  for (; extent < end; extent++)
    write_scalar(parameters + extent->to,
                 (uint64_t)extent_of(&arguments[extent->argument], extent->dimension),
                 extent->is_wide ? 8 : 4);
}

static inline bool is_on_device(const kjit_launch_config *config, const kj_learned *learned)
{
  const kjit_device *device = learned->device;
  const kjit_stream *stream = config->stream;
  uint32_t generation = atomic_load_explicit(&device->generation, memory_order_relaxed);
  if (generation != (uint32_t)learned->place ||
      atomic_load_explicit(&device->lost, memory_order_acquire) ||
      learned->forks != atomic_load_explicit(&kj_forks, memory_order_relaxed))
    return false;
  if (config->device ? config->device != device : !stream && !learned->is_default_device)
    return false;
  return !stream || (stream->object.device == device && stream->object.generation == generation);
}

/* The call has the key of the specialization, if its shape does; addresses and scalars are in the
 * parameter block. */
static inline bool follow_arguments(const kj_learned *learned, const kjit_launch_config *config,
                                    const kjit_arg *arguments, size_t count, char *parameters)
{
  if (!learned || count != learned->argument_count || (count && !arguments) ||
      !is_on_device(config, learned))
    return false;
  return (!learned->array_count || follow_arrays(learned, config->stream, arguments, parameters)) &&
         follow_scalars(learned, arguments, parameters) && follow_same(learned, arguments);
}

/* ---- plain launches: code on a queue that needs nothing beside its parameters ---- */

typedef struct shape {
  uint32_t grid[3], block[3];
  uint64_t blocks; /* of the key, which knows nothing of elements a thread */
} shape;

static inline bool read_shape(const uint32_t given[3], uint32_t shape[3])
{
  for (int i = 0; i < 3; i++) shape[i] = given[i] + !given[i];
  return given[0] | given[1] | given[2];
}

/* Clusters, priorities and attributes go the longer way, and so does whoever leaves the block to
 * the occupancy calculator. */
static inline bool has_plain_config(const kjit_launch_config *config)
{
  return !((config->flags & ~(uint32_t)KJIT_LAUNCH_NO_WAIT) | config->cluster[0] |
           config->cluster[1] | config->cluster[2] | (uint32_t)config->priority | config->threads);
}

/* False: block and grid are neither given nor those of one plain grid_range. */
static inline bool find_plain_shape(const kj_learned *learned, const kjit_launch_config *config,
                                    const kjit_arg *arguments, shape *shape)
{
  if (!learned->is_plain || !has_plain_config(config)) return false;
  bool has_block = read_shape(config->block, shape->block);
  if (__builtin_expect(read_shape(config->grid, shape->grid), 1)) {
    shape->blocks = kj_volume(shape->grid);
    return learned->is_shapeless && has_block;
  }
  if (!learned->has_plain_range) return false;
  if (!has_block) shape->block[0] = learned->default_threads;
  uint64_t threads = kj_volume(shape->block),
           elements =
             (uint64_t)extent_of(&arguments[learned->range_argument], learned->range_dimension);
  if (threads - 1 >= learned->most_threads) return false;
  shape->blocks = kj_count_blocks(learned->device, elements, threads);
  shape->grid[0] =
    learned->elements_a_thread == 1
      ? (uint32_t)shape->blocks
      : kj_count_blocks(learned->device, elements, threads * learned->elements_a_thread);
  return true;
}

static inline bool is_within_limits(const kj_learned *learned, const shape *shape,
                                    uint64_t shared_bytes)
{
  const uint32_t *most_grid = learned->device->info.max_grid, *block = shape->block,
                 *grid = shape->grid;
  uint64_t threads = kj_volume(block), least = learned->least_shared_bytes;
  bool fits = (threads - 1 < learned->most_threads) & (block[0] <= learned->most_threads) &
              (block[1] <= learned->most_threads) & (block[2] <= learned->most_block_z) &
              (grid[0] - 1 < most_grid[0]) & (grid[1] - 1 < most_grid[1]) &
              (grid[2] - 1 < most_grid[2]) &
              (shared_bytes - least <= learned->most_shared_bytes - least);
  uint32_t facts = kj_find_call_facts(
    (kj_call_place){ .has_small_offsets = true, .blocks = shape->blocks, .threads = threads });
  return fits && facts == learned->facts &&
         (!learned->knows_block || !memcmp(block, learned->block, sizeof learned->block));
}

static __attribute__((noinline, cold)) kjit_status retry(const kj_learned *learned,
                                                         kjit_specialization *specialization,
                                                         const kjit_launch_config *config,
                                                         shape shape, char *parameters, int result)
{
  kj_diagnostics diagnostics = { 0 };
  kj_device_launch launch = { .grid = shape.grid,
                              .block = shape.block,
                              .dynamic_shared_bytes = (uint32_t)config->dynamic_shared_bytes,
                              .stream = config->stream ? config->stream->native : NULL,
                              .parameters = parameters,
                              .parameter_bytes = learned->parameter_bytes };
  kjit_status status =
    kj_retry_launch(learned->device, &specialization->cuda, &launch, result, &diagnostics);
  return diagnostics.count ? ki_finish_call(learned->device->context, &diagnostics) : status;
}

static inline int start_plainly(kjit_kernel *kernel, kjit_specialization *specialization,
                                const kj_learned *learned, const kjit_launch_config *config,
                                const kjit_arg *arguments, const shape *shape, char *parameters)
{
  uint32_t shared_bytes = (uint32_t)config->dynamic_shared_bytes;
  if (!is_within_limits(learned, shape, config->dynamic_shared_bytes)) return KJ_OTHER_WAY;
  write_extents(learned, arguments, parameters);
  KJ_ASSERT(kj_agrees(&(kj_call){ .kernel = kernel,
                                  .config = config,
                                  .grid = { shape->grid[0], shape->grid[1], shape->grid[2] },
                                  .block = { shape->block[0], shape->block[1], shape->block[2] },
                                  .dynamic_shared_bytes = shared_bytes,
                                  .parameters = parameters },
                      specialization, arguments, learned->argument_count));
  int result =
    kj_launch_function(learned->device, learned->function, learned->mark, shape->grid, shape->block,
                       shared_bytes, config->stream ? config->stream->native : NULL, parameters,
                       learned->parameter_bytes);
  return __builtin_expect(result, 0)
           ? (int)retry(learned, specialization, config, *shape, parameters, result)
           : KJIT_OK;
}

/* ---- all others ---- */

/* The arguments were followed: bound, as far as anything looks at them, and the shape. */
static bool follow_shape(const kj_learned *learned, kj_call *call)
{
  if (kj_choose_shape(call, NULL) != KJIT_OK) return false;
  call->facts = kj_find_facts_of(call, true);
  return call->facts == learned->facts &&
         (!learned->knows_block || !memcmp(call->block, learned->block, sizeof learned->block));
}

static kjit_status run(const kj_learned *learned, kj_call *call,
                       kjit_specialization *specialization, const kjit_arg *arguments,
                       kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  KJ_TRY(kj_fit_shape(call, specialization, diagnostics));
  if (call->has_nothing) return KJIT_OK;
  write_extents(learned, arguments, call->parameters);
  for (uint32_t i = 0; i < learned->other_count; i++)
    kj_marshal_parameter(call, &code->parameters[learned->others[i]], call->parameters);
  if (code->failures)
    memcpy(call->parameters + code->failure_offset, &specialization->failure_address,
           sizeof specialization->failure_address);
  KJ_ASSERT(kj_agrees(call, specialization, arguments, learned->argument_count));
  return kj_start(call, specialization, diagnostics);
}

static __attribute__((noinline)) int launch_by_call(kjit_kernel *kernel,
                                                    kjit_specialization *specialization,
                                                    const kjit_launch_config *config,
                                                    const kjit_arg *arguments, char *parameters)
{
  const kj_learned *learned = atomic_load_explicit(&specialization->learned, memory_order_acquire);
  kj_diagnostics diagnostics = { 0 };
  kj_bound bound[KJ_MOST_LEARNED];
  kj_shared_size shared[KJ_MOST_SHARED_ARRAYS + 1];
  kj_call call = { .kernel = kernel,
                   .device = learned->device,
                   .stream = config->stream,
                   .config = config,
                   .bound = bound,
                   .shared = shared,
                   .parameters = parameters,
                   .parameter_room = KJ_LEARNED_BYTES };
  for (uint32_t i = 0; i < learned->shaping_count; i++)
    bind(learned, learned->shaping[i], arguments, &bound[learned->shaping[i]]);
  if (!follow_shape(learned, &call)) return KJ_OTHER_WAY;
  /* attributes have given block and grid: nothing is left to fit */
  if (learned->is_plain && has_plain_config(config) && !call.is_block_chosen && !call.is_chosen &&
      !call.has_nothing) {
    shape shape = { .blocks = kj_volume(call.grid) };
    memcpy(shape.grid, call.grid, sizeof shape.grid);
    memcpy(shape.block, call.block, sizeof shape.block);
    return start_plainly(kernel, specialization, learned, config, arguments, &shape, parameters);
  }
  kjit_status status = run(learned, &call, specialization, arguments, &diagnostics);
  bool is_told = diagnostics.count || diagnostics.status != KJIT_OK;
  return (int)(is_told ? ki_finish_call(kernel->context, &diagnostics) : status);
}

/* ---- the launch ---- */

/* The specialization is held. */
static inline int launch_held(kjit_kernel *kernel, kjit_specialization *specialization,
                              const kjit_launch_config *config, const kjit_arg *arguments,
                              size_t count)
{
  const kj_learned *learned = atomic_load_explicit(&specialization->learned, memory_order_acquire);
  _Alignas(16) char parameters[KJ_LEARNED_BYTES + sizeof(uint64_t)];
  shape shape;
  if (KJ_HAS_ASSERTIONS) memset(parameters, 0, sizeof parameters); /* they are compared */
  if (config->stream && atomic_load_explicit(&config->stream->capture, memory_order_relaxed))
    return KJ_OTHER_WAY; /* the graph keeps what the call has */
  if (config->flags & ~(uint32_t)KJ_LAUNCH_FLAGS ||
      !follow_arguments(learned, config, arguments, count, parameters))
    return KJ_OTHER_WAY;
  if (!find_plain_shape(learned, config, arguments, &shape))
    return launch_by_call(kernel, specialization, config, arguments, parameters);
  return start_plainly(kernel, specialization, learned, config, arguments, &shape, parameters);
}

int kj_launch_learned(kjit_kernel *kernel, const kjit_launch_config *config,
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

bool kj_follow_learned(kj_call *call, kjit_specialization *specialization,
                       const kjit_arg *arguments, size_t count)
{
  const kj_learned *learned = atomic_load_explicit(&specialization->learned, memory_order_acquire);
  char parameters[KJ_LEARNED_BYTES + sizeof(uint64_t)];
  if (!follow_arguments(learned, call->config, arguments, count, parameters)) return false;
  call->device = learned->device;
  call->stream = call->config->stream;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++)
    bind(learned, i, arguments, &call->bound[i]);
  return follow_shape(learned, call);
}
