#include "launch/plan.h"

#include <stdlib.h>
#include <string.h>

#include "launch/direct.h"

/* ---- following ---- */

static inline const kjit_tensor *tensor_of(const kj_call *call, const kjit_arg *argument)
{
  if (argument->kind == KJIT_ARG_TENSOR) return argument->value.tensor;
  const kjit_array *array = argument->kind == KJIT_ARG_ARRAY ? argument->value.array : NULL;
  if (!array || array->object.device->context != call->kernel->context) return NULL;
  /* the general rules know whether that matters */
  if (array->is_read_only || array->is_in_place) return NULL;
  if (kj_is_cuda(call->device)) kj_note_use(argument->value.array, call->stream, call->device);
  bool is_current = array->object.generation ==
                    atomic_load_explicit(&array->object.device->generation, memory_order_relaxed);
  return is_current && !atomic_load_explicit(&array->object.device->lost, memory_order_relaxed)
           ? &array->tensor
           : NULL;
}

static inline bool has_facts_of(const kj_plan_row *row, const kjit_tensor *tensor, uint64_t address)
{
  enum { WIDTH = 16 };
  if ((address % WIDTH == 0) != row->is_aligned) return false;
  if (row->rank < 2) return true;
  bool has_aligned_rows = (uint64_t)tensor->shape[row->rank - 1] * row->element_bytes % WIDTH == 0;
  return has_aligned_rows == ((row->facts & KJ_FACT_ROWS_ALIGNED16) != 0);
}

static inline bool follow_array(const kj_call *call, const kj_plan_row *row,
                                const kjit_arg *argument, kj_bound *bound)
{
  uint64_t place, form;
  const kjit_tensor *tensor = tensor_of(call, argument);
  if (!tensor || argument->access > KJIT_ACCESS_IN_OUT) return false;
  memcpy(&place, &tensor->device_type, sizeof place);
  memcpy(&form, &tensor->rank, sizeof form);
  if (place != row->place || form != row->form || (row->rank && !tensor->shape)) return false;
  /* what the host says of the elements */
  if (argument->kind == KJIT_ARG_TENSOR && argument->type != KJIT_ANY &&
      argument->type != row->type)
    return false;
  uint64_t count = kj_count_dense(tensor->shape, tensor->strides, row->rank),
           address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  if (!count || !address || address & (row->alignment - 1u) || !has_facts_of(row, tensor, address))
    return false;
  memcpy(bound, row->head, sizeof row->head); /* kind, rank, type, facts: what the key has of it */
  bound->access = argument->access;
  bound->shape = tensor->shape;
  bound->strides = NULL;
  bound->address = bound->low = bound->target = address;
  bound->high = address + count * row->element_bytes;
  bound->count = count;
  return true;
}

static bool convert_number(const kj_plan_row *row, double number, uint64_t *bits)
{
  ki_value converted;
  if (!ki_fit_argument(kj_number_value(number), row->type, &converted)) return false;
  ki_encode_value(converted, bits);
  return true;
}

static inline bool follow_scalar(const kj_plan_row *row, const kjit_arg *argument, kj_bound *bound)
{
  memcpy(bound, row->head, sizeof row->head);
  if (argument->kind == KJIT_ARG_NUMBER)
    return row->is_annotated && convert_number(row, argument->value.f64, &bound->bits[0]);
  if (argument->type != row->type) return false;
  if (argument->kind == KJIT_ARG_VALUE && row->element_bytes <= sizeof argument->value) {
    bound->bits[0] = argument->value.u & row->mask;
  } else if (argument->kind == KJIT_ARG_BY_ADDRESS && argument->value.address) {
    bound->bits[0] = 0;
    memcpy(bound->bits, argument->value.address, row->element_bytes);
  } else {
    return false;
  }
  if (row->type == KJIT_BOOL) bound->bits[0] = bound->bits[0] != 0;
  return true;
}

static bool follow_number(const kj_plan_row *row, const kjit_arg *argument, kj_bound *bound)
{
  if (argument->kind != KJIT_ARG_NUMBER) return false;
  ki_value value = kj_argument_number(argument);
  *bound = (kj_bound){ .kind = KJ_ARGUMENT_NUMBER, .type = value.type, .value = value };
  ki_encode_value(value, &bound->bits[0]);
  return value.type == row->type;
}

static bool is_same(const kjit_arg *a, const kjit_arg *b)
{
  return a->kind == b->kind && a->type == b->type && a->value.u == b->value.u;
}

static bool follow_same(const kj_plan_same *same, const kjit_arg *argument, kj_bound *bound)
{
  if (argument && !is_same(argument, &same->argument)) return false;
  *bound = same->bound;
  return true;
}

static inline bool follow_argument(const kj_call *call, const kj_plan *plan, uint32_t index,
                                   const kjit_arg *argument, kj_bound *bound)
{
  const kj_plan_row *row = &plan->rows[index];
  switch ((kj_plan_mode)row->mode) {
  case KJ_PLAN_ARRAY: return follow_array(call, row, argument, bound);
  case KJ_PLAN_SCALAR: return follow_scalar(row, argument, bound);
  case KJ_PLAN_NUMBER: return follow_number(row, argument, bound);
  default: return follow_same(&plan->same[index], argument, bound);
  }
}

static inline bool follow_device(kj_call *call, const kjit_specialization *specialization)
{
  kjit_device *device = specialization->device;
  const kjit_launch_config *config = call->config;
  uint32_t generation = atomic_load_explicit(&device->generation, memory_order_relaxed);
  call->stream = config->stream;
  call->device = device;
  if (generation != specialization->generation ||
      atomic_load_explicit(&device->lost, memory_order_acquire))
    return false;
  if (config->device ? config->device != device
                     : !config->stream && !specialization->plan->is_default_device)
    return false;
  return !config->stream || (config->stream->object.device == device &&
                             config->stream->object.generation == generation);
}

static inline bool follow_pairs(const kj_call *call, const kj_plan *plan)
{
  for (uint32_t k = 0; k < plan->pair_count; k++) {
    const kj_plan_pair *pair = &plan->pairs[k];
    const kj_bound *a = &call->bound[pair->i], *b = &call->bound[pair->j];
    bool are_disjoint = a->high <= b->low || b->high <= a->low;
    if (are_disjoint != (pair->relation == KJ_RELATION_DISJOINT)) return false;
    if (!are_disjoint && kj_relate(a, b) != (kj_relation)pair->relation) return false;
  }
  return true;
}

static bool follow_arguments(kj_call *call, const kj_plan *plan, const kjit_arg *arguments,
                             size_t count)
{
  uint32_t parameter_count = call->kernel->parameter_count;
  for (uint32_t i = 0; i < parameter_count; i++)
    if (!follow_argument(call, plan, i, i < count ? &arguments[i] : NULL, &call->bound[i]))
      return false;
  return follow_pairs(call, plan);
}

bool kj_follow_plan(kj_call *call, const kjit_specialization *specialization,
                    const kjit_arg *arguments, size_t count)
{
  const kj_plan *plan = atomic_load_explicit(&specialization->plan, memory_order_acquire);
  if (!plan || count != plan->argument_count || !follow_device(call, specialization)) return false;
  if (!follow_arguments(call, plan, arguments, count)) return false;
  if (!kj_configure_quickly(call) || call->grid32 != plan->grid32 ||
      kj_is_programmatic(call) != plan->is_programmatic)
    return false;
  call->is_programmatic = plan->is_programmatic;
  call->offsets32 = true;
  return !plan->knows_block || !memcmp(call->block, plan->block, sizeof plan->block);
}

void kj_marshal_by_plan(const kj_call *call, const kj_plan *plan, const kj_code *code, char *block)
{
  const char *bound = (const char *)call->bound;
  const kj_plan_copy *end = plan->copies + plan->copy_count;
  for (const kj_plan_copy *copy = plan->copies; copy < end; copy++) {
    const char *from = bound + copy->from;
    char *to = block + copy->to;
    const int64_t *extents;
    int32_t narrow;
    switch ((kj_plan_copy_op)copy->op) {
    case KJ_COPY_8: memcpy(to, from, 8); break;
    case KJ_COPY_4: memcpy(to, from, 4); break;
    case KJ_COPY_EXTENT_8:
      memcpy(&extents, from, sizeof extents);
      memcpy(to, &extents[copy->dimension], 8);
      break;
    case KJ_COPY_EXTENT_4:
      memcpy(&extents, from, sizeof extents);
      narrow = (int32_t)extents[copy->dimension];
      memcpy(to, &narrow, sizeof narrow);
      break;
    default: kj_marshal_parameter(call, &code->parameters[copy - plan->copies], block);
    }
  }
}

/* ---- learning ---- */

static kj_plan_copy plan_copy(const kj_parameter *parameter)
{
  uint32_t base = (uint32_t)(parameter->argument * sizeof(kj_bound));
  bool is_wide = parameter->size_bytes == 8,
       is_word = (is_wide || parameter->size_bytes == 4) && !parameter->part;
  kj_plan_copy copy = { .to = parameter->offset,
                        .op = KJ_COPY_OTHER,
                        .dimension = parameter->dimension };
  if (!is_word) return copy;
  switch (parameter->kind) {
  case KJ_PARAMETER_POINTER: copy.from = base + (uint32_t)offsetof(kj_bound, target); break;
  case KJ_PARAMETER_SCALAR: copy.from = base + (uint32_t)offsetof(kj_bound, bits); break;
  case KJ_PARAMETER_EXTENT: copy.from = base + (uint32_t)offsetof(kj_bound, shape); break;
  default: return copy;
  }
  if (parameter->kind == KJ_PARAMETER_EXTENT)
    copy.op = is_wide ? KJ_COPY_EXTENT_8 : KJ_COPY_EXTENT_4;
  else copy.op = is_wide ? KJ_COPY_8 : KJ_COPY_4;
  return copy;
}

static bool learn_copies(const kj_code *code, kj_plan *plan)
{
  plan->copies = calloc(code->parameter_count + 1, sizeof *plan->copies);
  if (!plan->copies) return false;
  plan->copy_count = code->parameter_count;
  for (uint32_t i = 0; i < code->parameter_count; i++)
    plan->copies[i] = plan_copy(&code->parameters[i]);
  return true;
}

static bool learn_array(const kj_call *call, uint32_t index, const kjit_arg *argument,
                        kj_plan_row *row)
{
  const kj_bound *bound = &call->bound[index];
  const kj_annotation *annotation = &call->kernel->parameters[index].annotation;
  const kjit_tensor *tensor =
    argument->kind == KJIT_ARG_TENSOR ? argument->value.tensor : &argument->value.array->tensor;
  /* the tensor alone does not say so */
  bool is_in_place = argument->kind == KJIT_ARG_ARRAY && argument->value.array->is_in_place;
  /* access may be taken back */
  bool is_peers =
    tensor->device_type == KJIT_DEVICE_CUDA && tensor->device_id != call->device->info.ordinal;
  if (is_in_place || is_peers || call->kernel->parameters[index].is_general || bound->on_host ||
      bound->is_empty || bound->layout != KJIT_LAYOUT_C ||
      (annotation->kind == KJ_ANNOTATION_ARRAY && annotation->layout == KJIT_LAYOUT_F))
    return false;
  /* what DLPack says of an element does not tell two structs from each other */
  if (!ki_is_scalar(bound->type)) return false;
  row->mode = KJ_PLAN_ARRAY;
  row->facts = bound->facts;
  row->is_aligned = (bound->facts & KJ_FACT_ALIGNED16) != 0;
  row->rank = bound->rank;
  row->element_bytes = (uint8_t)kj_element_bytes(NULL, bound->type);
  row->alignment = (uint8_t)kj_element_alignment(NULL, bound->type);
  memcpy(&row->place, &tensor->device_type, sizeof row->place);
  /* not the tensor's: the host may have said that its elements are others */
  kjit_tensor form = { .rank = bound->rank };
  kj_describe_element(NULL, bound->type, &form);
  memcpy(&row->form, &form.rank, sizeof row->form);
  return true;
}

static bool learn_scalar(const kj_call *call, uint32_t index, kj_plan_row *row)
{
  const kj_bound *bound = &call->bound[index];
  if (!ki_is_scalar(bound->type) || bound->type >= KJIT_C64) return false;
  row->mode = KJ_PLAN_SCALAR;
  row->is_annotated = call->kernel->parameters[index].annotation.kind == KJ_ANNOTATION_SCALAR &&
                      bound->type < KJIT_C64;
  row->element_bytes = (uint8_t)kj_element_bytes(NULL, bound->type);
  row->mask = row->element_bytes >= 8 ? UINT64_MAX : ((uint64_t)1 << 8 * row->element_bytes) - 1;
  return true;
}

/* Defaults that other arguments decide are worth no plan. */
static bool is_literal(const ki_expr *expr)
{
  return expr->kind == KJ_EXPR_INT || expr->kind == KJ_EXPR_FLOAT || expr->kind == KJ_EXPR_BOOL;
}

static bool learn_same(const kj_call *call, uint32_t index, const kjit_arg *argument, kj_plan *plan)
{
  kj_plan_same *same = &plan->same[index];
  plan->rows[index].mode = KJ_PLAN_SAME;
  same->bound = call->bound[index];
  if (!argument) return is_literal(call->kernel->parameters[index].decl->value);
  same->argument = *argument;
  return argument->kind != KJIT_ARG_BY_ADDRESS;
}

static bool learn_argument(const kj_call *call, uint32_t index, const kjit_arg *argument,
                           kj_plan *plan)
{
  const kj_bound *bound = &call->bound[index];
  kj_plan_row *row = &plan->rows[index];
  memset(row, 0, sizeof *row);
  memcpy(row->head, bound, sizeof row->head);
  row->type = bound->type;
  switch ((kj_argument_kind)bound->kind) {
  case KJ_ARGUMENT_ARRAY: return learn_array(call, index, argument, row);
  case KJ_ARGUMENT_VALUE: return learn_scalar(call, index, row);
  case KJ_ARGUMENT_NUMBER: row->mode = KJ_PLAN_NUMBER; return true;
  default: return learn_same(call, index, argument, plan);
  }
}

/* The pairs that the key has a relation for. */
static void learn_pairs(const kj_call *call, kj_plan *plan)
{
  const kjit_kernel *kernel = call->kernel;
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    for (uint32_t j = i + 1; j < kernel->parameter_count; j++) {
      const kj_parameter_row *a = &kernel->parameters[i], *b = &kernel->parameters[j];
      bool are_arrays =
        call->bound[i].kind == KJ_ARGUMENT_ARRAY && call->bound[j].kind == KJ_ARGUMENT_ARRAY;
      if (!are_arrays || !(a->is_written || b->is_written) || a->is_general || b->is_general)
        continue;
      plan->pairs[plan->pair_count++] =
        (kj_plan_pair){ .i = (uint16_t)i,
                        .j = (uint16_t)j,
                        .relation = (uint8_t)kj_relate(&call->bound[i], &call->bound[j]) };
    }
  }
}

/* Whether the arrays alone lead here: every one of them is where the device is. */
static bool is_default_device(const kj_call *call, const kjit_arg *arguments)
{
  const kjit_device_info *info = &call->device->info;
  bool has_array = false;
  if (!call->config->device && !call->config->stream) return true;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    kjit_device_kind kind;
    int32_t ordinal;
    if (call->bound[i].kind != KJ_ARGUMENT_ARRAY) continue;
    const kjit_tensor *tensor = arguments[i].kind == KJIT_ARG_TENSOR
                                  ? arguments[i].value.tensor
                                  : &arguments[i].value.array->tensor;
    has_array = true;
    /* managed memory of another device */
    if (!kj_locate_tensor(tensor, &kind, &ordinal) || kind != info->kind ||
        ordinal != info->ordinal)
      return false;
  }
  return has_array;
}

static kj_plan *make_plan(const kj_call *call, const kjit_specialization *specialization,
                          const kjit_arg *arguments, size_t count)
{
  const kj_code *code = &specialization->code;
  uint32_t parameters = call->kernel->parameter_count;
  kj_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return NULL;
  plan->rows = aligned_alloc(_Alignof(kj_plan_row), (parameters + 1) * sizeof *plan->rows);
  plan->same = aligned_alloc(_Alignof(kj_plan_same), (parameters + 1) * sizeof *plan->same);
  plan->pairs = calloc((size_t)parameters * parameters / 2 + 1, sizeof *plan->pairs);
  plan->argument_count = (uint32_t)count;
  plan->is_default_device = is_default_device(call, arguments);
  plan->knows_block = !kj_is_cuda(call->device) || call->kernel->block_is_static;
  plan->grid32 = call->grid32;
  plan->is_programmatic = call->is_programmatic;
  memcpy(plan->block, call->block, sizeof plan->block);
  bool is_made = plan->rows && plan->same && plan->pairs && learn_copies(code, plan);
  if (is_made) learn_pairs(call, plan);
  for (uint32_t i = 0; i < parameters && is_made; i++)
    is_made = learn_argument(call, i, i < count ? &arguments[i] : NULL, plan);
  if (is_made) return plan;
  kj_free_plan(plan);
  return NULL;
}

void kj_free_plan(kj_plan *plan)
{
  if (!plan) return;
  free(plan->rows);
  free(plan->same);
  free(plan->copies);
  free(plan->pairs);
  free(plan);
}

void kj_learn_plan(const kj_call *call, kjit_specialization *specialization,
                   const kjit_arg *arguments, size_t count)
{
  bool has_arrays = false;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++)
    has_arrays = has_arrays || call->bound[i].kind == KJ_ARGUMENT_ARRAY;
  if (call->has_host_arrays || call->has_nothing || (has_arrays && !call->offsets32)) return;
  if (atomic_exchange_explicit(&specialization->has_tried_plan, true, memory_order_acq_rel)) return;
  kj_plan *plan = make_plan(call, specialization, arguments, count);
  if (!plan) return;
  atomic_store_explicit(&specialization->direct, kj_learn_direct(call, specialization, plan),
                        memory_order_release);
  atomic_store_explicit(&specialization->plan, plan, memory_order_release);
}
