/* The tables of the shortest way of a launch, from a call that went the general way. */
#include <stdlib.h>
#include <string.h>

#include "launch/direct.h"
#include "launch/plan.h"

enum { MOST_ELEMENTS = 1 << 16 }; /* of a thread: with a block of 1024, less than 2^31 */

static bool shapes_launch(const kj_programs *programs, uint32_t index)
{
  for (uint32_t i = 0; i < programs->count; i++)
    for (uint32_t k = 0; k < programs->items[i].count; k++) {
      const kj_step *step = &programs->items[i].steps[k];
      bool has_parameter =
        step->op == KJ_STEP_SCALAR || step->op == KJ_STEP_EXTENT || step->op == KJ_STEP_COUNT;
      if (has_parameter && step->parameter == index) return true;
    }
  return false;
}

static bool is_shaping(const kjit_kernel *kernel, uint32_t index)
{
  bool is_used =
    shapes_launch(&kernel->block_program, index) || shapes_launch(&kernel->grid_program, index);
  for (uint32_t i = 0; i < kernel->range_count; i++)
    is_used = is_used || shapes_launch(&kernel->range_programs[i], index);
  return is_used;
}

/* ---- arguments ---- */

static void learn_array(const kj_call *call, const kj_plan *plan, uint32_t index, kj_direct *made)
{
  const kj_plan_row *row = &plan->rows[index];
  bool has_aligned_rows = (row->facts & KJ_FACT_ROWS_ALIGNED16) != 0;
  int32_t device_type;
  memcpy(&device_type, &row->place, sizeof device_type);
  made->tensors[made->array_count] = (kj_direct_tensor){ .place = row->place, .type = row->form };
  made->arrays[made->array_count++] =
    (kj_direct_array){ .form = kj_array_form(row->type, row->rank, device_type,
                                             call->bound[index].address, has_aligned_rows),
                       .to = KJ_DIRECT_NOWHERE,
                       .index = (uint8_t)index,
                       .element_bytes = row->element_bytes,
                       .rank = row->rank,
                       .has_aligned_rows = has_aligned_rows };
}

static void learn_scalar(const kj_plan_row *row, uint32_t index, kj_direct *made)
{
  kjit_arg argument = kjit_make_arg(KJIT_ARG_VALUE, row->type);
  kj_direct_scalar *scalar = &made->scalars[made->scalar_count++];
  *scalar = (kj_direct_scalar){ .to = KJ_DIRECT_NOWHERE,
                                .index = (uint8_t)index,
                                .size_bytes = row->element_bytes,
                                .is_bool = row->type == KJIT_BOOL };
  memcpy(&scalar->head, &argument, sizeof scalar->head);
}

/* False: a plain number, whose type depends on its value. */
static bool learn_argument(const kj_call *call, const kj_plan *plan, uint32_t index,
                           kj_direct *made)
{
  uint8_t mode = plan->rows[index].mode;
  if (mode == KJ_PLAN_NUMBER) return false;
  if (mode == KJ_PLAN_ARRAY) learn_array(call, plan, index, made);
  else if (mode == KJ_PLAN_SCALAR) learn_scalar(&plan->rows[index], index, made);
  else made->same[made->same_count++] = (uint8_t)index;
  if (is_shaping(call->kernel, index))
    made->shaping[made->shaping_count++] =
      (kj_direct_shaping){ .index = (uint8_t)index, .mode = mode };
  return true;
}

/* ---- the parameter block ---- */

static bool place_address(const kj_parameter *parameter, kj_direct *made)
{
  for (uint32_t i = 0; i < made->array_count; i++) {
    kj_direct_array *array = &made->arrays[i];
    if (array->index != parameter->argument) continue;
    if (array->to != KJ_DIRECT_NOWHERE) return false;
    array->to = (uint16_t)parameter->offset;
    return true;
  }
  return false;
}

static bool place_scalar(const kj_parameter *parameter, kj_direct *made)
{
  for (uint32_t i = 0; i < made->scalar_count; i++) {
    kj_direct_scalar *scalar = &made->scalars[i];
    if (scalar->index != parameter->argument) continue;
    if (scalar->to != KJ_DIRECT_NOWHERE || parameter->size_bytes != scalar->size_bytes ||
        parameter->size_bytes > sizeof(uint64_t))
      return false;
    scalar->to = (uint16_t)parameter->offset;
    return true;
  }
  return false;
}

/* False: the parameter is none that can be written straight from an argument. */
static bool learn_parameter(const kj_parameter *parameter, const kj_plan *plan, kj_direct *made)
{
  if (parameter->part) return false;
  if (parameter->kind == KJ_PARAMETER_POINTER) return place_address(parameter, made);
  if (parameter->kind == KJ_PARAMETER_SCALAR) return place_scalar(parameter, made);
  if (parameter->kind != KJ_PARAMETER_EXTENT ||
      plan->rows[parameter->argument].mode != KJ_PLAN_ARRAY)
    return false;
  made->extents[made->extent_count++] =
    (kj_direct_extent){ .argument = (uint8_t)parameter->argument,
                        .dimension = parameter->dimension,
                        .to = (uint16_t)parameter->offset,
                        .is_wide = parameter->size_bytes == 8 };
  return true;
}

/* ---- arrays that must be apart ---- */

static uint8_t position_of(const kj_direct *made, uint32_t index)
{
  uint8_t i = 0;
  while (made->arrays[i].index != index) i++;
  return i;
}

/* Arrays that are never written need not be apart: all pairs have the one that is, which comes
 * first. */
static bool put_written_first(const kjit_kernel *kernel, kj_direct *made)
{
  uint32_t written = 0, at = 0;
  for (uint32_t i = 0; i < made->array_count; i++) {
    if (!kernel->parameters[made->arrays[i].index].is_written) continue;
    written++;
    at = i;
  }
  if (written != 1) return false;
  kj_direct_array array = made->arrays[0];
  kj_direct_tensor tensor = made->tensors[0];
  made->arrays[0] = made->arrays[at];
  made->tensors[0] = made->tensors[at];
  made->arrays[at] = array;
  made->tensors[at] = tensor;
  return true;
}

/* Worth it where it spares comparing each with each. */
static void learn_order(const kj_call *call, kj_direct *made)
{
  uint8_t count = 0;
  if (made->pair_count <= made->array_count) return;
  for (uint8_t i = 0; i < made->array_count; i++) {
    uint8_t at = count++;
    for (; at && call->bound[made->arrays[made->order[at - 1]].index].low >
                   call->bound[made->arrays[i].index].low;
         at--)
      made->order[at] = made->order[at - 1];
    made->order[at] = i;
  }
  made->order_count = count;
}

/* False: some are not apart. */
static bool learn_pairs(const kj_call *call, const kj_plan *plan, kj_direct *made)
{
  bool is_one_written = put_written_first(call->kernel, made);
  for (uint32_t k = 0; k < plan->pair_count; k++) {
    if (plan->pairs[k].relation != KJ_RELATION_DISJOINT) return false;
    made->pairs[made->pair_count++] = (kj_direct_pair){ .i = position_of(made, plan->pairs[k].i),
                                                        .j = position_of(made, plan->pairs[k].j) };
  }
  made->has_one_written =
    is_one_written && made->array_count > 1 && made->pair_count == made->array_count - 1u;
  learn_order(call, made);
  return true;
}

/* ---- all ---- */

static void learn_limits(const kj_call *call, const kjit_specialization *specialization,
                         kj_direct *made)
{
  enum { DEFAULT_BLOCK = 256 };
  const kjit_device_info *info = &call->device->info;
  uint32_t most = info->max_threads_per_block, own = specialization->cuda.max_threads;
  made->most_threads = own && own < most ? own : most;
  made->most_block_z = info->max_block[2];
  /* without one a block has to be given */
  bool has_range = call->kernel->range_count || call->kernel->has_callee_range;
  made->default_threads = has_range && made->most_threads >= DEFAULT_BLOCK ? DEFAULT_BLOCK : 0;
  made->most_shared_bytes = specialization->cuda.max_dynamic_shared_bytes;
}

static void learn_range(const kjit_kernel *kernel, const kj_code *code, const kj_plan *plan,
                        kj_direct *made)
{
  const kj_programs *programs = kernel->range_count == 1 ? &kernel->range_programs[0] : NULL;
  made->elements_a_thread = code->elements_a_thread > 1 ? code->elements_a_thread : 1;
  if (!made->is_shapeless || kernel->has_callee_range || !programs || !programs->is_complete ||
      programs->count != 1 || programs->items[0].count != 1)
    return;
  const kj_step *step = &programs->items[0].steps[0];
  if (step->op != KJ_STEP_EXTENT || plan->rows[step->parameter].mode != KJ_PLAN_ARRAY ||
      made->elements_a_thread > MOST_ELEMENTS)
    return;
  int64_t rank = plan->rows[step->parameter].rank,
          dimension = step->number < 0 ? step->number + rank : step->number;
  if (dimension < 0 || dimension >= rank) return;
  made->has_plain_range = true;
  made->range_argument = (uint8_t)step->parameter;
  made->range_dimension = (uint8_t)dimension;
}

static void learn_launch(const kj_call *call, const kjit_specialization *specialization,
                         const kj_plan *plan, kj_direct *made)
{
  made->is_shapeless = !call->kernel->block && !call->kernel->grid;
  made->is_default_device = plan->is_default_device;
  made->knows_block = plan->knows_block;
  made->is_grid32 = plan->grid32;
  memcpy(made->block, plan->block, sizeof made->block);
  made->function = specialization->cuda.function;
  made->mark = specialization->cuda.mark;
  made->device = specialization->device;
  made->place = kj_place(specialization->device, specialization->generation);
  made->forks = call->kernel->context->forks;
  made->argument_count = plan->argument_count;
  made->parameter_bytes = (uint32_t)specialization->code.parameter_bytes;
  made->plan = plan;
  learn_limits(call, specialization, made);
  learn_range(call->kernel, &specialization->code, plan, made);
}

/* Code that a launch has to do nothing for but to pass its parameters, on a device whose limits the
 * short way knows. */
static bool is_simple(const kj_call *call, const kjit_specialization *specialization)
{
  const kj_code *code = &specialization->code;
  const kjit_device_info *info = &call->device->info;
  bool is_code_simple =
    !code->failures && !code->prints && !code->shared_array_count && !code->fixed_shared_bytes &&
    !kj_needs_shared_by_block(code) && !code->is_cooperative && !code->cluster[0] &&
    code->parameter_bytes <= KJ_DIRECT_BYTES && code->parameter_count <= UINT8_MAX;
  bool is_limit_simple = info->max_block[0] >= info->max_threads_per_block &&
                         info->max_block[1] >= info->max_threads_per_block;
  uint64_t least_shared = kj_own_shared_need(code, (const uint32_t[3]){ 0 });
  return is_code_simple && is_limit_simple &&
         least_shared <= specialization->cuda.max_dynamic_shared_bytes;
}

static kj_direct *make(const kj_plan *plan, uint32_t extents)
{
  uint32_t count = plan->argument_count;
  size_t line = _Alignof(kj_direct),
         bytes = count * (sizeof(kj_direct_array) + sizeof(kj_direct_tensor) +
                          sizeof(kj_direct_scalar) + sizeof(kj_direct_shaping) + 2) +
                 extents * sizeof(kj_direct_extent) + plan->pair_count * sizeof(kj_direct_pair);
  kj_direct *made = aligned_alloc(line, (sizeof *made + bytes + line - 1) / line * line);
  if (!made) return NULL;
  memset(made, 0, sizeof *made);
  /* the tables of words first, so that all are aligned */
  made->arrays = (kj_direct_array *)made->memory;
  made->scalars = (kj_direct_scalar *)(made->arrays + count);
  made->tensors = (kj_direct_tensor *)(made->scalars + count);
  made->extents = (kj_direct_extent *)(made->tensors + count);
  made->pairs = (kj_direct_pair *)(made->extents + extents);
  made->shaping = (kj_direct_shaping *)(made->pairs + plan->pair_count);
  made->order = (uint8_t *)(made->shaping + count);
  made->same = made->order + count;
  return made;
}

kj_direct *kj_learn_direct(const kj_call *call, const kjit_specialization *specialization,
                           const kj_plan *plan)
{
  const kj_code *code = &specialization->code;
  const kjit_kernel *kernel = call->kernel;
  if (!kj_is_cuda(call->device) || plan->argument_count != kernel->parameter_count ||
      plan->argument_count > KJ_MOST_DIRECT || !kernel->is_quick || kernel->launch_bounds ||
      call->is_programmatic || !is_simple(call, specialization))
    return NULL;
  kj_direct *made = make(plan, code->parameter_count);
  if (!made) return NULL;
  bool is_direct = true;
  learn_launch(call, specialization, plan, made);
  made->least_shared_bytes = (uint32_t)kj_own_shared_need(code, (const uint32_t[3]){ 0 });
  for (uint32_t i = 0; i < plan->argument_count && is_direct; i++)
    is_direct = learn_argument(call, plan, i, made);
  for (uint32_t i = 0; i < code->parameter_count && is_direct; i++)
    is_direct = learn_parameter(&code->parameters[i], plan, made);
  if (is_direct && learn_pairs(call, plan, made)) return made;
  free(made);
  return NULL;
}
