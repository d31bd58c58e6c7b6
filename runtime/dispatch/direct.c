/* The shortest way of a launch on a GPU: what a plan expects of the arguments, in 32 bytes each, and the parameter block written straight from them. Between two launches the driver has
 * used the cache for itself, so that what a launch reads and writes counts more than what it computes.
 *
 * Whatever is not as expected is left to kj_follow_plan, and what that cannot settle to the general way. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/plan.h"

/* ---- arguments ---- */

/* A launch on this way. */
typedef struct direct {
  const kjit_kernel *kernel;
  const kj_plan *plan;
  const kjit_launch_config *config;
  kjit_device *device;
  uint32_t grid[3], block[3];
  kj_bound *bound;  /* of parameters that block or grid depend on */
  char *parameters; /* the block */
} direct;

/* NULL: none that can be used without a look at the general rules. The device is known to be there in its present generation. */
static const kjit_tensor *tensor_of_array(const direct *d, const kjit_arg *argument)
{
  kjit_array *array = argument->kind == KJIT_ARG_ARRAY && argument->type == KJIT_ANY ? argument->value.array : NULL;
  bool is_here = array && array->object.device == d->device && !array->is_read_only &&
                 array->object.generation == atomic_load_explicit(&d->device->generation, memory_order_relaxed);
  if (!is_here) return NULL;
  kj_note_use(array, d->config->stream, d->device);
  return &array->tensor;
}

/* kind, access and type as one word: a tensor that is neither named otherwise nor given an access. */
static inline const kjit_tensor *tensor_of(const direct *d, const kjit_arg *argument)
{
  static const kjit_arg plain = { .kind = KJIT_ARG_TENSOR };
  return memcmp(argument, &plain, offsetof(kjit_arg, value)) ? tensor_of_array(d, argument) : argument->value.tensor;
}

/* Elements of an array in C order; 0: in another one, empty, or too large. */
static uint64_t count_elements(const kjit_tensor *tensor, uint32_t rank)
{
  uint64_t count = 1;
  for (uint32_t i = rank; i-- > 0;) {
    uint64_t extent = (uint64_t)tensor->shape[i];
    if (extent - 1 >= INT32_MAX || (tensor->strides && tensor->strides[i] != (int64_t)count)) return 0;
    count *= extent;
    if (count > INT32_MAX) return 0;
  }
  return count;
}

/* The bytes of each argument; none of scalars. */
typedef struct spans {
  uint64_t low[KJ_MOST_DIRECT], high[KJ_MOST_DIRECT];
} spans;

enum { WIDTH = 16 };

/* 0: not as expected. */
static uint64_t count_of_rank(const kj_direct_row *row, const kjit_tensor *tensor)
{
  if (row->rank && !tensor->shape) return 0;
  uint64_t count = count_elements(tensor, row->rank);
  bool has_aligned_rows = row->rank > 1 && (uint64_t)tensor->shape[row->rank - 1] * row->element_bytes % WIDTH == 0;
  return has_aligned_rows == row->has_aligned_rows ? count : 0;
}

static inline bool follow_array(const direct *d, const kj_direct_row *row, const kjit_arg *argument, uint32_t index, spans *spans)
{
  uint64_t place, form, count;
  const kjit_tensor *tensor = tensor_of(d, argument);
  if (__builtin_expect(!tensor, 0)) return false;
  memcpy(&place, &tensor->device_type, sizeof place);
  memcpy(&form, &tensor->rank, sizeof form);
  uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset,
           differs = (place ^ row->place) | (form ^ row->form) | ((address ^ row->low_bits) & (WIDTH - 1));
  if (__builtin_expect(differs || !address, 0)) return false;
  bool is_line = row->rank == 1 && tensor->shape && (!tensor->strides || tensor->strides[0] == 1); /* most arrays */
  count = __builtin_expect(is_line, 1) ? (uint64_t)tensor->shape[0] : count_of_rank(row, tensor);
  if (__builtin_expect(count - 1 >= INT32_MAX, 0)) return false;
  spans->low[index] = address;
  spans->high[index] = address + count * row->element_bytes;
  memcpy(d->parameters + row->to, &address, sizeof address);
  return true;
}

static inline bool follow_scalar(const direct *d, const kj_direct_row *row, const kjit_arg *argument, uint64_t *bits)
{
  if (argument->kind != KJIT_ARG_VALUE || argument->type != row->type) return false;
  *bits = argument->value.u & row->mask;
  if (row->type == KJIT_BOOL) *bits = *bits != 0;
  char *to = d->parameters + row->to;
  if (row->element_bytes == 4) memcpy(to, bits, 4);
  else if (row->element_bytes == 8) memcpy(to, bits, 8);
  else memcpy(to, bits, row->element_bytes);
  return true;
}

static bool is_same(const kjit_arg *a, const kjit_arg *b) { return a->kind == b->kind && a->type == b->type && a->value.u == b->value.u; }

static const int64_t *shape_of(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_TENSOR ? argument->value.tensor->shape : argument->value.array->tensor.shape;
}

/* What a program looks at: extents, their product, a scalar. */
static void bind(const direct *d, uint32_t index, const kjit_arg *argument, const spans *spans, uint64_t bits)
{
  const kj_direct_row *row = &d->plan->direct[index];
  kj_bound *bound = &d->bound[index];
  if (row->mode == KJ_PLAN_SAME) {
    *bound = d->plan->same[index].bound;
    return;
  }
  memcpy(bound, d->plan->rows[index].head, sizeof d->plan->rows[index].head);
  bound->bits[0] = bits;
  if (row->mode != KJ_PLAN_ARRAY) return;
  bound->shape = shape_of(argument);
  bound->strides = NULL;
  bound->count = (spans->high[index] - spans->low[index]) / row->element_bytes;
}

static bool follow_arguments(const direct *d, const kjit_arg *arguments, spans *spans)
{
  const kj_plan *plan = d->plan;
  uint32_t count = plan->argument_count;
  for (uint32_t i = 0; i < count; i++) {
    const kj_direct_row *row = &plan->direct[i];
    uint64_t bits = 0;
    if (row->mode == KJ_PLAN_ARRAY) {
      if (!follow_array(d, row, &arguments[i], i, spans)) return false;
    } else {
      spans->low[i] = spans->high[i] = 0;
      if (row->mode == KJ_PLAN_SCALAR ? !follow_scalar(d, row, &arguments[i], &bits) : !is_same(&arguments[i], &plan->same[i].argument)) return false;
    }
    if (row->is_shaping) bind(d, i, &arguments[i], spans, bits);
  }
  return true;
}

/* Of one array that is written beside others that are not: it meets itself only. */
static bool is_apart(const spans *spans, uint32_t count, uint32_t written)
{
  uint64_t low = spans->low[written], high = spans->high[written];
  uint32_t met = 0;
  for (uint32_t i = 0; i < count; i++) met += (high > spans->low[i]) & (spans->high[i] > low);
  return met == 1;
}

/* In the order that they had when the plan was made, each ends before the next begins: then no two meet. */
static bool are_in_order(const kj_plan *plan, const spans *spans)
{
  for (uint32_t k = 1; k < plan->order_count; k++)
    if (spans->high[plan->order[k - 1]] > spans->low[plan->order[k]]) return false;
  return plan->order_count > 0;
}

static inline bool follow_pairs(const kj_plan *plan, const spans *spans)
{
  if (plan->has_one_written) return is_apart(spans, plan->argument_count, plan->written);
  if (are_in_order(plan, spans)) return true;
  for (uint32_t k = 0; k < plan->pair_count; k++) {
    uint32_t i = plan->pairs[k].i, j = plan->pairs[k].j;
    if (spans->high[i] > spans->low[j] && spans->high[j] > spans->low[i]) return false;
  }
  return true;
}

static void write_extents(const direct *d, const kjit_arg *arguments)
{
  const kj_direct_extent *extent = d->plan->extents, *end = extent + d->plan->extent_count;
  for (; extent < end; extent++) {
    int64_t value = shape_of(&arguments[extent->argument])[extent->dimension];
    int32_t narrow = (int32_t)value;
    if (extent->is_wide) memcpy(d->parameters + extent->to, &value, sizeof value);
    else memcpy(d->parameters + extent->to, &narrow, sizeof narrow);
  }
}

/* ---- block and grid, as kj_configure_quickly and kj_fit_grid have them ---- */

static uint64_t product(const uint32_t v[3]) { return (uint64_t)v[0] * v[1] * v[2]; }

static bool run_shape(const direct *d, const kj_programs *programs, const uint32_t *block, uint32_t shape[3])
{
  shape[0] = shape[1] = shape[2] = 1;
  for (uint32_t i = 0; i < programs->count && i < 3; i++) {
    int64_t value;
    if (!kj_run_program(&programs->items[i], d->bound, block, &value) || value < 1 || value > INT32_MAX) return false;
    shape[i] = (uint32_t)value;
  }
  return true;
}

static inline bool read_shape(const uint32_t given[3], uint32_t shape[3])
{
  for (int i = 0; i < 3; i++) shape[i] = given[i] ? given[i] : 1;
  return given[0] | given[1] | given[2];
}

static bool count_range(const direct *d, const kj_programs *programs, uint64_t *count)
{
  *count = 1;
  for (uint32_t i = 0; i < programs->count; i++) {
    int64_t value;
    if (!kj_run_program(&programs->items[i], d->bound, d->block, &value) || value <= 0 || __builtin_mul_overflow(*count, (uint64_t)value, count)) return false;
  }
  return programs->is_complete;
}

/* One dimension, as many blocks as the largest grid_range needs. wide: with one element a thread. */
static bool choose_grid(direct *d, const kjit_specialization *specialization, uint64_t *wide)
{
  const kjit_kernel *kernel = d->kernel;
  uint64_t elements = 0, threads = product(d->block), each = specialization->code.elements_a_thread, most = d->device->info.max_grid[0];
  if (!kernel->range_count || kernel->has_callee_range) return false;
  for (uint32_t i = 0; i < kernel->range_count; i++) {
    uint64_t count;
    if (!count_range(d, &kernel->range_programs[i], &count)) return false;
    if (count > elements) elements = count;
  }
  uint64_t share = threads * (each > 1 ? each : 1), blocks = elements / share + (elements % share != 0);
  *wide = elements / threads + (elements % threads != 0);
  if (*wide > most) return false;
  d->grid[0] = (uint32_t)blocks;
  return true;
}

static inline bool configure(direct *d, const kjit_specialization *specialization)
{
  const kjit_kernel *kernel = d->kernel;
  const kjit_device_info *info = &d->device->info;
  const kj_cuda_function *function = &specialization->cuda;
  uint64_t blocks, shared = d->config->dynamic_shared_bytes;
  bool is_block_given = read_shape(d->config->block, d->block), is_grid_given = read_shape(d->config->grid, d->grid);
  if (kernel->block ? is_block_given || !run_shape(d, &kernel->block_program, NULL, d->block) : !is_block_given && !d->plan->default_threads) return false;
  if (!kernel->block && !is_block_given) d->block[0] = d->plan->default_threads;
  if (kernel->grid && (is_grid_given || !run_shape(d, &kernel->grid_program, d->block, d->grid))) return false;
  uint64_t threads = product(d->block);
  if (!threads || threads > d->plan->most_threads) return false;
  if (kernel->grid || is_grid_given) blocks = product(d->grid);
  else if (!choose_grid(d, specialization, &blocks)) return false;
  bool fits = shared <= function->max_dynamic_shared_bytes && shared >= d->plan->least_shared_bytes,
       is_grid32 = blocks <= INT32_MAX && blocks * threads <= INT32_MAX;
  for (int i = 0; i < 3; i++) fits = fits && d->block[i] <= info->max_block[i] && d->grid[i] - 1 < info->max_grid[i];
  return fits && is_grid32 == d->plan->grid32 && (!d->plan->knows_block || !memcmp(d->block, d->plan->block, sizeof d->block));
}

/* ---- the launch ---- */

/* Flags, clusters, priorities and captures go the longer way, and so does whoever leaves the block to the occupancy calculator. */
static inline bool is_plain(const kjit_launch_config *config)
{
  if (config->stream && atomic_load_explicit(&config->stream->capture, memory_order_relaxed)) return false;
  return !((config->flags & ~(uint32_t)KJIT_LAUNCH_NO_WAIT) | config->cluster[0] | config->cluster[1] | config->cluster[2] | (uint32_t)config->priority) &&
         !config->threads;
}

static inline bool is_on_device(const kjit_launch_config *config, const kjit_specialization *specialization, const kj_plan *plan)
{
  kjit_device *device = specialization->device;
  uint32_t generation = atomic_load_explicit(&device->generation, memory_order_relaxed);
  if (generation != specialization->generation || atomic_load_explicit(&device->lost, memory_order_acquire)) return false;
  if (config->device ? config->device != device : !config->stream && !plan->is_default_device) return false;
  return !config->stream || (config->stream->object.device == device && config->stream->object.generation == generation &&
                             !atomic_load_explicit(&config->stream->capture, memory_order_relaxed));
}

static bool launch_held(kjit_kernel *kernel, kjit_specialization *specialization, const kjit_launch_config *config, const kjit_arg *arguments, size_t count,
                        kj_diagnostics *diagnostics)
{
  const kj_plan *plan = atomic_load_explicit(&specialization->plan, memory_order_acquire);
  spans spans;
  kj_bound bound[KJ_MOST_DIRECT];
  _Alignas(16) char parameters[KJ_DIRECT_BYTES + sizeof(uint64_t)];
  if (!plan || !plan->is_direct || count != plan->argument_count || !is_plain(config) || !is_on_device(config, specialization, plan)) return false;
  direct d = { .kernel = kernel, .plan = plan, .config = config, .device = specialization->device, .bound = bound, .parameters = parameters };
  if (!follow_arguments(&d, arguments, &spans) || !follow_pairs(plan, &spans) || !configure(&d, specialization)) return false;
  write_extents(&d, arguments);
  kj_cuda_launch launch = { .grid = d.grid,
                            .block = d.block,
                            .dynamic_shared_bytes = (uint32_t)config->dynamic_shared_bytes,
                            .stream = config->stream ? config->stream->native : NULL,
                            .parameters = parameters,
                            .parameter_bytes = specialization->code.parameter_bytes };
  (void)kj_launch_cuda(specialization->device, &specialization->cuda, &launch, diagnostics);
  return true;
}

bool kj_launch_directly(kjit_kernel *kernel, const kjit_launch_config *config, const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics)
{
  kjit_specialization *recent = atomic_load_explicit(&kernel->recent[kj_slot()].specialization, memory_order_acquire);
  if (!recent || !kj_hold(recent)) return false;
  bool is_done = launch_held(kernel, recent, config, arguments, count, diagnostics), is_launched = is_done && !diagnostics->count;
  kj_release(recent, is_launched);
  if (is_launched) kj_count_launch(kernel->context);
  return is_done;
}

/* ---- learning ---- */

static bool shapes_launch(const kj_programs *programs, uint32_t index)
{
  for (uint32_t i = 0; i < programs->count; i++)
    for (uint32_t k = 0; k < programs->items[i].count; k++) {
      const kj_step *step = &programs->items[i].steps[k];
      bool has_parameter = step->op == KJ_STEP_SCALAR || step->op == KJ_STEP_EXTENT || step->op == KJ_STEP_COUNT;
      if (has_parameter && step->parameter == index) return true;
    }
  return false;
}

static bool is_shaping(const kjit_kernel *kernel, uint32_t index)
{
  bool is_used = shapes_launch(&kernel->block_program, index) || shapes_launch(&kernel->grid_program, index);
  for (uint32_t i = 0; i < kernel->range_count; i++) is_used = is_used || shapes_launch(&kernel->range_programs[i], index);
  return is_used;
}

static kj_direct_row learn_row(const kj_call *call, const kj_plan *plan, uint32_t index)
{
  const kj_plan_row *row = &plan->rows[index];
  kj_direct_row direct = { .mode = row->mode, .type = row->type, .element_bytes = row->element_bytes, .to = KJ_DIRECT_BYTES };
  direct.is_shaping = is_shaping(call->kernel, index);
  if (row->mode == KJ_PLAN_SCALAR) direct.mask = row->mask;
  if (row->mode != KJ_PLAN_ARRAY) return direct;
  direct.place = row->place;
  direct.form = row->form;
  direct.rank = row->rank;
  direct.low_bits = (uint8_t)(call->bound[index].address % WIDTH);
  direct.has_aligned_rows = (row->facts & KJ_FACT_ROWS_ALIGNED16) != 0;
  return direct;
}

/* False: the parameter is none that can be written straight from an argument. */
static bool learn_parameter(const kj_parameter *parameter, kj_plan *plan)
{
  kj_direct_row *row = &plan->direct[parameter->argument];
  switch (parameter->kind) {
  case KJ_PARAMETER_POINTER:
  case KJ_PARAMETER_SCALAR:
    if (row->to != KJ_DIRECT_BYTES || parameter->part || row->mode == KJ_PLAN_SAME) return false;
    if (parameter->kind == KJ_PARAMETER_SCALAR && (parameter->size_bytes != row->element_bytes || parameter->size_bytes > sizeof(uint64_t))) return false;
    row->to = (uint16_t)parameter->offset;
    return true;
  case KJ_PARAMETER_EXTENT:
    if (row->mode != KJ_PLAN_ARRAY) return false;
    plan->extents[plan->extent_count++] = (kj_direct_extent){
      .argument = (uint8_t)parameter->argument, .dimension = parameter->dimension, .to = (uint16_t)parameter->offset, .is_wide = parameter->size_bytes == 8
    };
    return true;
  default: return false;
  }
}

/* Arrays that are never written need not be apart: all pairs have the one that is. Without a pair there is nothing to look at. */
static void learn_written(const kj_call *call, kj_plan *plan)
{
  uint32_t written = 0, arrays = 0;
  for (uint32_t i = 0; i < plan->argument_count; i++) {
    bool is_array = plan->direct[i].mode == KJ_PLAN_ARRAY;
    arrays += is_array;
    if (!is_array || !call->kernel->parameters[i].is_written) continue;
    written++;
    plan->written = (uint8_t)i;
  }
  plan->has_one_written = written == 1 && plan->pair_count == arrays - 1 && arrays > 1;
}

/* Worth it where it spares comparing each with each. */
static void learn_order(const kj_call *call, kj_plan *plan)
{
  uint32_t count = 0;
  for (uint32_t k = 0; k < plan->pair_count; k++)
    if (plan->pairs[k].relation != KJ_RELATION_DISJOINT) return;
  for (uint32_t i = 0; i < plan->argument_count; i++) {
    if (plan->direct[i].mode != KJ_PLAN_ARRAY) continue;
    uint32_t at = count++;
    for (; at && call->bound[plan->order[at - 1]].low > call->bound[i].low; at--) plan->order[at] = plan->order[at - 1];
    plan->order[at] = (uint8_t)i;
  }
  plan->order_count = plan->pair_count > count ? count : 0;
}

static void learn_limits(const kj_call *call, const kjit_specialization *specialization, kj_plan *plan)
{
  enum { DEFAULT_BLOCK = 256 };
  uint32_t most = call->device->info.max_threads_per_block, own = specialization->cuda.max_threads;
  plan->most_threads = own && own < most ? own : most;
  plan->default_threads = plan->most_threads >= DEFAULT_BLOCK ? DEFAULT_BLOCK : 0;
  plan->least_shared_bytes = kj_own_shared_need(&specialization->code, (const uint32_t[3]){ 0 });
}

/* Code that a launch has to do nothing for but to pass its parameters. */
static bool is_simple(const kj_code *code)
{
  return !code->failures && !code->prints && !code->shared_array_count && !code->fixed_shared_bytes && !kj_needs_shared_by_block(code) &&
         !code->is_cooperative && !code->cluster[0] && code->parameter_bytes <= KJ_DIRECT_BYTES;
}

bool kj_learn_direct(const kj_call *call, const kjit_specialization *specialization, kj_plan *plan)
{
  const kj_code *code = &specialization->code;
  const kjit_kernel *kernel = call->kernel;
  bool is_plain = kj_is_cuda(call->device) && plan->argument_count == kernel->parameter_count && plan->argument_count <= KJ_MOST_DIRECT && kernel->is_quick &&
                  !kernel->launch_bounds && !call->is_programmatic && is_simple(code);
  for (uint32_t k = 0; k < plan->pair_count; k++) is_plain = is_plain && plan->pairs[k].relation == KJ_RELATION_DISJOINT;
  for (uint32_t i = 0; i < plan->argument_count; i++) is_plain = is_plain && plan->rows[i].mode != KJ_PLAN_NUMBER;
  if (!is_plain) return true;
  plan->direct = aligned_alloc(_Alignof(kj_direct_row), (plan->argument_count + 1) * sizeof *plan->direct);
  plan->extents = calloc(code->parameter_count + 1, sizeof *plan->extents);
  if (!plan->direct || !plan->extents) return false;
  for (uint32_t i = 0; i < plan->argument_count; i++) plan->direct[i] = learn_row(call, plan, i);
  for (uint32_t i = 0; i < code->parameter_count && is_plain; i++) is_plain = learn_parameter(&code->parameters[i], plan);
  learn_written(call, plan);
  learn_order(call, plan);
  learn_limits(call, specialization, plan);
  plan->is_direct = is_plain;
  return true;
}
