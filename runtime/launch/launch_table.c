/* Makes the tables for the fast path of launches, from a call on the slow path. */
#include <stdlib.h>
#include <string.h>

#include "launch/fast_path.h"
#include "code/kernel.h"
#include "launch/steps.h"

/* ---- arguments ---- */

/* Accepts only non-empty arrays of scalars in C order with 32-bit offsets. DLPack's element
 * description cannot distinguish two structs. */
static bool record_array(const kj_call *call, uint32_t index, const kjit_arg *argument,
                         kj_launch_table *made)
{
  const kj_bound *bound = &call->bound[index];
  const kj_parameter_row *row = &call->kernel->parameters[index];
  const kjit_tensor *tensor = kj_tensor_of(argument);
  /* the fields of a tensor do not say whether a GPU accesses its memory in place */
  bool is_in_place = argument->kind == KJIT_ARG_ARRAY && argument->value.array->is_in_place;
  /* access to another device's memory may be revoked */
  bool is_peers =
    (tensor->device_type == KJIT_DEVICE_CUDA || tensor->device_type == KJ_DLPACK_PLACED) &&
    tensor->device_id != call->device->info.ordinal;
  if (is_in_place || is_peers || row->is_general || bound->on_host || bound->is_empty ||
      bound->layout != KJIT_LAYOUT_C || !bound->offsets_fit || !ki_is_scalar(bound->type) ||
      (row->annotation.kind == KJ_ANNOTATION_ARRAY && row->annotation.layout == KJIT_LAYOUT_F))
    return false;
  kj_table_tensor *kept = &made->tensors[made->array_count];
  /* the application may have specified another element type than the tensor's */
  kjit_tensor form = { .rank = bound->rank };
  bool is_result =
    row->is_written && call->kernel->is_range_only && call->device->info.kind == KJIT_DEVICE_CPU;
  kj_describe_element(NULL, bound->type, &form);
  memcpy(&kept->place, &tensor->device_type, sizeof kept->place);
  memcpy(&kept->type, &form.rank, sizeof kept->type);
  made->arrays[made->array_count++] =
    (kj_table_array){ .form =
                        kj_array_form(bound->type, bound->rank, tensor->device_type, bound->facts),
                      .mask = ~((uint64_t)(is_result ? 0 : KJ_FACT_LARGE) << KJ_FORM_FACTS_AT),
                      .to = KJ_TABLE_NOWHERE,
                      .extent_to = KJ_TABLE_NOWHERE,
                      .index = (uint8_t)index,
                      .element_bytes = (uint8_t)kj_element_bytes(NULL, bound->type),
                      .alignment = (uint8_t)kj_element_alignment(NULL, bound->type),
                      .rank = bound->rank,
                      .facts = bound->facts,
                      .is_result = is_result };
  return true;
}

static bool record_scalar(const kj_call *call, uint32_t index, kj_launch_table *made)
{
  const kj_bound *bound = &call->bound[index];
  bool is_number = bound->kind == KJ_ARGUMENT_NUMBER;
  if (!is_number && (!ki_is_scalar(bound->type) || bound->type >= KJIT_C64)) return false;
  kjit_arg argument = kjit_make_arg(KJIT_ARG_VALUE, bound->type);
  kj_table_scalar *scalar = &made->scalars[made->scalar_count++];
  *scalar = (kj_table_scalar){
    .head = KJ_TABLE_NUMBER,
    .span = UINT64_MAX,
    .to = KJ_TABLE_NOWHERE,
    .index = (uint8_t)index,
    .size_bytes = is_number ? sizeof(uint64_t) : (uint8_t)kj_element_bytes(NULL, bound->type),
    .is_bool = bound->type == KJIT_BOOL,
    .is_annotated = call->kernel->parameters[index].annotation.kind == KJ_ANNOTATION_SCALAR,
    .type = bound->type
  };
  if (!is_number) memcpy(&scalar->head, &argument, sizeof scalar->head);
  return true;
}

/* Returns whether the default value is a literal. Other default values may depend on other
 * arguments and are not supported on the fast path. */
static bool is_literal(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_INT || expr->kind == KJ_EXPR_FLOAT || expr->kind == KJ_EXPR_BOOL;
}

static bool record_argument(const kj_call *call, uint32_t index, const kjit_arg *argument,
                            kj_launch_table *made)
{
  const kj_parameter_row *row = &call->kernel->parameters[index];
  made->bound[index] = call->bound[index];
  switch ((kj_argument_kind)call->bound[index].kind) {
  case KJ_ARGUMENT_ARRAY: return record_array(call, index, argument, made);
  case KJ_ARGUMENT_VALUE:
  case KJ_ARGUMENT_NUMBER: return record_scalar(call, index, made);
  case KJ_ARGUMENT_CONST:
  case KJ_ARGUMENT_FUNCTION: break;
  }
  if (!argument) return is_literal(row->decl->value);
  made->same[made->same_count++] =
    (kj_table_same){ .argument = *argument, .index = (uint8_t)index };
  return argument->kind != KJIT_ARG_BY_ADDRESS;
}

/* ---- the parameter block ---- */

static kj_table_array *find_array(uint32_t index, const kj_launch_table *made)
{
  for (uint32_t i = 0; i < made->array_count; i++)
    if (made->arrays[i].index == index) return &made->arrays[i];
  return NULL;
}

static kj_table_scalar *find_scalar(uint32_t index, const kj_launch_table *made)
{
  for (uint32_t i = 0; i < made->scalar_count; i++)
    if (made->scalars[i].index == index) return &made->scalars[i];
  return NULL;
}

static bool place(uint16_t *to, uint32_t offset)
{
  bool is_free = *to == KJ_TABLE_NOWHERE;
  if (is_free) *to = (uint16_t)offset;
  return is_free;
}

static void place_extent(uint32_t argument, uint8_t dimension, uint32_t offset, bool is_wide,
                         kj_launch_table *made)
{
  if (!dimension && !is_wide && place(&find_array(argument, made)->extent_to, offset)) return;
  made->extents[made->extent_count++] = (kj_table_extent){ .argument = (uint8_t)argument,
                                                           .dimension = dimension,
                                                           .to = (uint16_t)offset,
                                                           .is_wide = is_wide };
}

static void limit_scalar(const kj_parameter *parameter, kj_table_scalar *scalar)
{
  bool is_unsigned = scalar->type == KJIT_U64;
  uint64_t least = is_unsigned ? 0 : (uint64_t)INT64_MIN,
           most = is_unsigned ? UINT64_MAX : (uint64_t)INT64_MAX;
  if (parameter->least.type) least = (uint64_t)parameter->least.value;
  if (parameter->most.type) most = (uint64_t)parameter->most.value;
  scalar->least = least;
  scalar->span = most - least;
}

/* Records the offset at which the fast path writes a parameter. Returns false if the parameter
 * cannot be copied directly from an argument. */
static bool place_parameter(const kj_parameter *parameter, kj_launch_table *made)
{
  uint32_t index = parameter->argument;
  KJ_ASSERT(parameter->kind == KJ_PARAMETER_TENSOR_MAP ||
            parameter->offset + parameter->size_bytes <= KJ_TABLE_BYTES);
  kj_table_array *array =
    parameter->kind < KJ_PARAMETER_SHARED_OFFSET ? find_array(index, made) : NULL;
  kj_table_scalar *scalar =
    parameter->kind == KJ_PARAMETER_SCALAR ? find_scalar(index, made) : NULL;
  if (parameter->kind == KJ_PARAMETER_POINTER) return array && place(&array->to, parameter->offset);
  if (scalar && kj_has_limits(parameter)) limit_scalar(parameter, scalar);
  if (parameter->kind == KJ_PARAMETER_SCALAR)
    return scalar && !parameter->part && parameter->size_bytes == scalar->size_bytes &&
           place(&scalar->to, parameter->offset);
  if (parameter->kind != KJ_PARAMETER_EXTENT || !array) return false;
  place_extent(index, parameter->dimension, parameter->offset, parameter->size_bytes == 8, made);
  return true;
}

/* Assigns offsets in the memory after the parameter block to the inputs of the launch shape.
 * Returns false if there are too many inputs. */
static bool place_inputs(const kjit_kernel *kernel, kj_launch_table *made)
{
  uint32_t scalars = made->scalar_count, count = 0;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    const kj_table_array *array = find_array(i, made);
    const kj_table_scalar *scalar = find_scalar(i, made);
    if (!kernel->parameters[i].is_shaping) continue;
    made->shaping[made->shaping_count++] = (uint8_t)i;
    uint32_t more = array ? array->rank : scalar != NULL,
             to = KJ_TABLE_INPUTS + count * (uint32_t)sizeof(uint64_t);
    count += more;
    if (count > KJ_MOST_SHAPE_INPUTS) continue;
    for (uint8_t d = 0; array && d < array->rank; d++)
      place_extent(i, d, to + d * (uint32_t)sizeof(uint64_t), true, made);
    if (!scalar) continue;
    made->scalars[scalars] = *scalar;
    made->scalars[scalars++].to = (uint16_t)to;
  }
  made->scalar_count = (uint8_t)scalars;
  made->input_count = (uint8_t)(count <= KJ_MOST_SHAPE_INPUTS ? count : 0);
  return count <= KJ_MOST_SHAPE_INPUTS;
}

static void need_bound(uint32_t index, kj_launch_table *made)
{
  for (uint32_t i = 0; i < made->shaping_count; i++)
    if (made->shaping[i] == index) return;
  made->shaping[made->shaping_count++] = (uint8_t)index;
}

static void record_parameters(const kj_code *code, kj_launch_table *made)
{
  for (uint32_t i = 0; i < code->parameter_count; i++) {
    const kj_parameter *parameter = &code->parameters[i];
    if (place_parameter(parameter, made)) continue;
    made->others[made->other_count++] = (uint16_t)i;
    if (parameter->kind < KJ_PARAMETER_SHARED_OFFSET) need_bound(parameter->argument, made);
  }
}

/* ---- relations between arrays ---- */

/* Records the arrays in the order of their addresses if comparing each array with the next one is
 * cheaper than comparing all pairs. */
static void record_order(const kj_call *call, kj_launch_table *made)
{
  uint8_t count = 0;
  if (made->has_overlaps || made->pair_count <= made->array_count) return;
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

static void record_pairs(const kj_call *call, kj_launch_table *made)
{
  for (uint8_t i = 0; i < made->array_count; i++)
    for (uint8_t j = (uint8_t)(i + 1); j < made->array_count; j++) {
      uint32_t a = made->arrays[i].index, b = made->arrays[j].index;
      if (!kj_has_relation(call, a, b)) continue;
      kj_relation relation = kj_relate(&call->bound[a], &call->bound[b]);
      made->has_overlaps = made->has_overlaps || relation != KJ_RELATION_DISJOINT;
      made->pairs[made->pair_count++] = (kj_table_pair){ i, j, (uint8_t)relation };
    }
  record_order(call, made);
}

/* ---- the launch ---- */

/* Returns whether a launch of this code only has to pass its parameters. */
static bool is_plain(const kj_call *call, const kj_code *code, const kj_launch_table *made)
{
  return call->device->operations->is_queued && call->device->start && !code->can_fail &&
         !made->other_count;
}

/* Returns whether a call without device and stream would run on this device, because the memory of
 * all its arrays belongs to this device. */
static bool is_default_device(const kj_call *call, const kjit_arg *arguments)
{
  const kjit_device_info *info = &call->device->info;
  bool has_array = false;
  if (!call->config->device && !call->config->stream) return true;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    kjit_device_kind kind;
    int32_t ordinal;
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    has_array = true;
    /* false, for example, for an array in managed memory of another device */
    if (!kj_locate_tensor(kj_tensor_of(&arguments[i]), &kind, &ordinal) || kind != info->kind ||
        ordinal != info->ordinal)
      return false;
  }
  return has_array;
}

static void record_launch(const kj_call *call, const kjit_specialization *specialization,
                          const kjit_arg *arguments, kj_launch_table *made)
{
  const kjit_kernel *kernel = call->kernel;
  made->is_default_device = is_default_device(call, arguments);
  made->knows_block = kj_knows_block(kernel, call->device);
  made->notes_uses = call->device->operations->is_queued;
  made->facts = (uint16_t)call->facts;
  memcpy(made->block, call->block, sizeof made->block);
  made->device = specialization->device;
  made->place = kj_place(specialization->device, specialization->generation);
  made->forks = kernel->context->forks;
}

/* ---- tables ---- */

static size_t round_up(size_t bytes)
{
  enum { LINE = 64 };
  return (bytes + LINE - 1) / LINE * LINE;
}

static kj_launch_table *make(uint32_t count, uint32_t parameters)
{
  size_t pairs = (size_t)count * count / 2, scalars = count + KJ_MOST_SHAPE_INPUTS,
         extents = parameters + KJ_MOST_SHAPE_INPUTS,
         bytes = count * (sizeof(kj_table_array) + sizeof(kj_table_tensor) + sizeof(kj_table_same) +
                          sizeof(kj_bound) + 2) +
                 scalars * sizeof(kj_table_scalar) + extents * sizeof(kj_table_extent) +
                 parameters * sizeof(uint16_t) + pairs * sizeof(kj_table_pair) + _Alignof(kj_bound);
  kj_launch_table *made = aligned_alloc(_Alignof(kj_launch_table), round_up(sizeof *made + bytes));
  if (!made) return NULL;
  memset(made, 0, sizeof *made);
  /* first the tables that launches read most; tables of 64-bit words precede tables of smaller
   * items, so that all are aligned */
  made->arrays = (kj_table_array *)made->memory;
  made->scalars = (kj_table_scalar *)(made->arrays + count);
  made->tensors = (kj_table_tensor *)(made->scalars + scalars);
  made->same = (kj_table_same *)(made->tensors + count);
  uintptr_t end = (uintptr_t)(made->same + count), alignment = _Alignof(kj_bound);
  made->bound = (kj_bound *)((end + alignment - 1) / alignment * alignment);
  made->extents = (kj_table_extent *)(made->bound + count);
  made->others = (uint16_t *)(made->extents + extents);
  made->pairs = (kj_table_pair *)(made->others + parameters);
  made->shaping = (uint8_t *)(made->pairs + pairs);
  made->order = made->shaping + count;
  return made;
}

/* Checks that no table is longer than its memory, and that each offset is inside the parameter
 * block or inside the space for shape inputs after it. */
static void check_table(const kj_launch_table *made, uint32_t parameters, const kj_code *code)
{
  if (!KJ_HAS_ASSERTIONS) return;
  KJ_ASSERT(made->array_count <= parameters && made->same_count <= parameters);
  KJ_ASSERT(made->scalar_count <= parameters + KJ_MOST_SHAPE_INPUTS);
  KJ_ASSERT(made->extent_count <= code->parameter_count + KJ_MOST_SHAPE_INPUTS);
  KJ_ASSERT(made->other_count <= code->parameter_count && made->shaping_count <= parameters);
  KJ_ASSERT(made->pair_count <= parameters * parameters / 2);
  KJ_ASSERT((uintptr_t)made->bound % _Alignof(kj_bound) == 0);
  for (uint32_t i = 0; i < made->array_count; i++) {
    const kj_table_array *array = &made->arrays[i];
    KJ_ASSERT(array->index < parameters && made->bound[array->index].kind == KJ_ARGUMENT_ARRAY);
    KJ_ASSERT(array->to == KJ_TABLE_NOWHERE ||
              array->to + sizeof(uint64_t) <= code->parameter_bytes);
    KJ_ASSERT(array->extent_to == KJ_TABLE_NOWHERE ||
              array->extent_to + sizeof(uint32_t) <= code->parameter_bytes);
  }
  for (uint32_t i = 0; i < made->scalar_count; i++)
    KJ_ASSERT(made->scalars[i].to + made->scalars[i].size_bytes <= KJ_TABLE_ROOM);
  for (uint32_t i = 0; i < made->extent_count; i++)
    KJ_ASSERT(made->extents[i].to + (made->extents[i].is_wide ? 8 : 4) <= KJ_TABLE_ROOM);
}

static kj_launch_table *record_call(const kj_call *call, const kjit_specialization *specialization,
                                    const kjit_arg *arguments, size_t count)
{
  const kj_code *code = &specialization->code;
  uint32_t parameters = call->kernel->parameter_count;
  /* counts of extents have one byte, which must be sufficient for all parameters and shape
   * inputs */
  if (parameters > KJ_MOST_TABLE_ARRAYS || code->parameter_bytes > KJ_TABLE_BYTES ||
      code->parameter_count > UINT8_MAX - KJ_MOST_SHAPE_INPUTS)
    return NULL;
  kj_launch_table *made = make(parameters, code->parameter_count);
  if (!made) return NULL;
  made->argument_count = (uint8_t)count;
  for (uint32_t i = 0; i < parameters; i++)
    if (!record_argument(call, i, i < count ? &arguments[i] : NULL, made)) {
      free(made);
      return NULL;
    }
  bool has_room = place_inputs(call->kernel, made);
  record_parameters(code, made);
  record_pairs(call, made);
  record_launch(call, specialization, arguments, made);
  made->is_plain = has_room && is_plain(call, code, made);
  check_table(made, parameters, code);
  return made;
}

void kj_make_launch_table(const kj_call *call, kjit_specialization *specialization,
                          const kjit_arg *arguments, size_t count)
{
  /* no tables for calls whose bound arguments differ from the given arguments: calls without facts,
   * calls of sealed kernels, calls with host arrays */
  if (call->is_fallback || call->is_general || call->has_host_arrays || call->has_nothing) return;
  KJ_ASSERT(kj_is_held_here(specialization));
  if (atomic_load_explicit(&specialization->has_tried_table, memory_order_relaxed) ||
      atomic_exchange_explicit(&specialization->has_tried_table, true, memory_order_acq_rel))
    return;
  KJ_ASSERT(!atomic_load(&specialization->table));
  atomic_store_explicit(&specialization->table, record_call(call, specialization, arguments, count),
                        memory_order_release);
}

/* ---- comparison of both paths, for assertions ---- */

static bool are_same(const kj_call *call, const kj_call *decided,
                     const kjit_specialization *specialization)
{
  const kj_code *code = &specialization->code;
  bool has_same_cluster = !memcmp(call->cluster, decided->cluster, sizeof call->cluster);
  return !memcmp(call->grid, decided->grid, sizeof call->grid) &&
         !memcmp(call->block, decided->block, sizeof call->block) && has_same_cluster &&
         call->dynamic_shared_bytes == decided->dynamic_shared_bytes &&
         call->is_cooperative == decided->is_cooperative &&
         !memcmp(call->parameters, decided->parameters, code->parameter_bytes);
}

static kjit_status decide_again(kj_call *call, kjit_specialization *specialization,
                                const kjit_arg *arguments, size_t count,
                                kj_diagnostics *diagnostics, bool *has_key)
{
  KJ_TRY(kj_shape_call(call, arguments, count, diagnostics));
  kj_make_key(call);
  *has_key = call->key_count == specialization->key_count &&
             !memcmp(call->key, specialization->key, call->key_count * sizeof *call->key);
  if (!*has_key) return KJIT_OK;
  KJ_TRY(kj_fit_shape(call, specialization, diagnostics));
  return kj_marshal(call, specialization, diagnostics);
}

bool kj_agrees(const kj_call *decided, kjit_specialization *specialization,
               const kjit_arg *arguments, size_t count)
{
  kjit_kernel *kernel = decided->kernel;
  kj_diagnostics diagnostics = { 0 };
  char *memory = aligned_alloc(KJ_CALL_ALIGNMENT, (kernel->call_bytes + KJ_CALL_ALIGNMENT - 1) /
                                                    KJ_CALL_ALIGNMENT * KJ_CALL_ALIGNMENT);
  kj_call call = { .kernel = kernel,
                   .config = decided->config,
                   .runtime = kj_get_runtime(kernel->context) };
  if (!memory) return true;
  (void)kj_divide_memory(&call, memory);
  bool has_key = false;
  kjit_status status =
    decide_again(&call, specialization, arguments, count, &diagnostics, &has_key);
  /* another thread has sealed the kernel, the device was lost, or memory is low */
  bool is_other = call.is_sealed || status == KJIT_ERROR_DEVICE || status == KJIT_ERROR_MEMORY;
  bool agrees = status == KJIT_OK ? has_key && are_same(&call, decided, specialization) : is_other;
  kj_free_diagnostics(&diagnostics);
  free(call.own_parameters);
  free(memory);
  return agrees || (is_other && !has_key);
}
