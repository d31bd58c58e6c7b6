#include "launch/fast_path.h"

#include <string.h>

#include "code/kernel.h"
#include "launch/steps.h"
#include "support/host_process.h"

/* ---- arguments ---- */

/* The byte range of an array. */
typedef struct span {
  uint64_t low, high;
} span;

/* Returns kind, access and type as one word. */
static inline uint64_t head_of(const kjit_arg *argument)
{
  uint64_t head;
  memcpy(&head, argument, sizeof head);
  return head;
}

_Static_assert(offsetof(kjit_arg, value) == sizeof(uint64_t), "a head is one word");

static __attribute__((noinline, cold)) void
note_uses(const kj_launch_table *table, const kjit_stream *stream, const kjit_arg *arguments)
{
  for (uint32_t i = 0; i < table->array_count; i++) {
    const kjit_arg *argument = &arguments[table->arrays[i].index];
    if (argument->kind == KJIT_ARG_ARRAY) kj_note_use(argument->value.array, stream, table->device);
  }
}

/* Compares the arrays with the table if all of them are kjit arrays that were passed without an
 * explicit type or access. Combines the differences of all arrays with `or`, and tests the
 * combination once. */
static inline bool walk_arrays(const kj_launch_table *table, const kjit_stream *stream,
                               const kjit_arg *arguments, char *parameters, span *spans)
{
  static const kjit_arg plain = { .kind = KJIT_ARG_ARRAY };
  const kj_table_array *array = table->arrays, *end = array + table->array_count;
  uint64_t expected = head_of(&plain), place = table->place, differs = 0;
  kj_stream_id id = kj_id_of(stream, table->device);
  bool is_known = true;
  for (; array < end; array++, spans++) {
    const kjit_arg *argument = &arguments[array->index];
    if (__builtin_expect(head_of(argument) != expected || !argument->value.array, 0)) return false;
    const kj_array_line *line = &argument->value.array->line;
    differs |= ((line->form ^ array->form) & array->mask) | (line->place ^ place);
    is_known &= kj_is_recent_use(line->owners_use, id);
    *spans = (span){ line->low, line->high };
    memcpy(parameters + array->to, &line->low, sizeof line->low);
    memcpy(parameters + array->extent_to, &line->extent, sizeof(uint32_t));
  }
  if (differs) return false;
  if (!is_known && table->notes_uses) note_uses(table, stream, arguments);
  return true;
}

/* Returns an argument's tensor, or NULL if only the slow path can handle the argument. */
static const kjit_tensor *tensor_of(const kj_launch_table *table, const kj_table_array *row,
                                    const kjit_arg *argument, bool *has_kjits)
{
  static const kjit_arg plain = { .kind = KJIT_ARG_TENSOR };
  if (head_of(argument) == head_of(&plain)) return argument->value.tensor;
  if (argument->access > KJIT_ACCESS_IN_OUT) return NULL;
  /* the caller has overridden the element type */
  if (argument->kind == KJIT_ARG_TENSOR)
    return argument->type == KJIT_ANY || argument->type == (kjit_type)row->form
             ? argument->value.tensor
             : NULL;
  const kjit_array *array = argument->kind == KJIT_ARG_ARRAY ? argument->value.array : NULL;
  *has_kjits = true;
  bool is_here =
    array && array->line.place == table->place && !array->is_read_only && !array->is_in_place;
  return is_here ? &array->tensor : NULL;
}

/* Returns an array's size in bytes, or 0 if the array does not match its row in the table. */
static inline uint64_t measure(const kj_table_array *array, const kj_table_tensor *expected,
                               const kjit_tensor *tensor, uint64_t address)
{
  uint64_t place, type;
  bool has_rows = array->rank > 1;
  memcpy(&place, &tensor->device_type, sizeof place);
  memcpy(&type, &tensor->rank, sizeof type);
  if ((place ^ expected->place) | (type ^ expected->type) | (address & (array->alignment - 1u)) |
      !address | (array->rank && !tensor->shape))
    return 0;
  uint64_t count = kj_count_dense(tensor->shape, tensor->strides, array->rank);
  uint32_t facts = kj_find_array_facts((kj_array_place){
    .address = address,
    .has_rows = has_rows,
    .row_bytes = has_rows ? (uint64_t)tensor->shape[array->rank - 1] * array->element_bytes : 0,
    .result_bytes = array->is_result ? count * array->element_bytes : 0 });
  return facts == array->facts ? count * array->element_bytes : 0;
}

/* Matches the arrays if some of them are tensors of the application. */
static bool follow_tensors(const kj_launch_table *table, const kjit_stream *stream,
                           const kjit_arg *arguments, char *parameters, span *spans)
{
  const kj_table_array *array = table->arrays, *end = array + table->array_count;
  const kj_table_tensor *expected = table->tensors;
  bool has_kjits = false;
  for (; array < end; array++, expected++, spans++) {
    const kjit_tensor *tensor = tensor_of(table, array, &arguments[array->index], &has_kjits);
    if (!tensor) return false;
    uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset,
             bytes = measure(array, expected, tensor, address);
    if (!bytes) return false;
    *spans = (span){ address, address + bytes };
    memcpy(parameters + array->to, &address, sizeof address);
    if (array->rank) memcpy(parameters + array->extent_to, tensor->shape, sizeof(uint32_t));
  }
  if (has_kjits && table->notes_uses) note_uses(table, stream, arguments);
  return true;
}

static inline void write_scalar(char *to, uint64_t bits, uint32_t size_bytes)
{
  if (size_bytes == 4) memcpy(to, &bits, 4);
  else if (size_bytes == 8) memcpy(to, &bits, 8);
  else memcpy(to, &bits, size_bytes);
}

/* Reads a scalar argument that is an untyped number, an aggregate, or a value passed by address. */
static __attribute__((noinline)) bool read_other(const kj_table_scalar *scalar,
                                                 const kjit_arg *argument, uint64_t *bits)
{
  ki_value value;
  bool is_number = scalar->head == KJ_TABLE_NUMBER;
  if (argument->kind == KJIT_ARG_NUMBER) {
    value = kj_argument_number(argument);
    if (scalar->is_annotated ? !ki_fit_argument(value, scalar->type, &value)
                             : !is_number || kj_number_type(value) != scalar->type)
      return false;
    ki_encode_value(value, bits);
    return true;
  }
  if (is_number || argument->type != scalar->type) return false;
  if (argument->kind == KJIT_ARG_VALUE) return true;
  if (argument->kind != KJIT_ARG_BY_ADDRESS || !argument->value.address) return false;
  memcpy(bits, argument->value.address, scalar->size_bytes);
  return true;
}

static inline bool read_scalar(const kj_table_scalar *scalar, const kjit_arg *argument,
                               uint64_t *bits)
{
  *bits = argument->value.u;
  if (head_of(argument) != scalar->head && !read_other(scalar, argument, bits)) return false;
  if (scalar->is_bool) *bits = (*bits & 255) != 0;
  return true;
}

static inline bool follow_scalars(const kj_launch_table *table, const kjit_arg *arguments,
                                  char *parameters)
{
  const kj_table_scalar *scalar = table->scalars, *end = scalar + table->scalar_count;
  for (; scalar < end; scalar++) {
    uint64_t bits;
    if (!read_scalar(scalar, &arguments[scalar->index], &bits)) return false;
    if (bits - scalar->least > scalar->span) return false; /* the slow path reports the error */
    write_scalar(parameters + scalar->to, bits, scalar->size_bytes);
  }
  return true;
}

static inline bool follow_same(const kj_launch_table *table, const kjit_arg *arguments)
{
  for (uint32_t i = 0; i < table->same_count; i++) {
    const kj_table_same *same = &table->same[i];
    const kjit_arg *a = &arguments[same->index], *b = &same->argument;
    if (a->kind != b->kind || a->type != b->type || a->value.u != b->value.u) return false;
  }
  return true;
}

/* ---- bound arguments, for decisions that need the general rules ---- */

/* Binds an array argument that has matched its table row. */
static void bind_array(const kj_launch_table *table, const kj_table_array *array,
                       const kjit_arg *argument, kj_bound *bound)
{
  const kjit_tensor *tensor = kj_tensor_of(argument);
  *bound = table->bound[array->index];
  bound->access = argument->access;
  bound->shape = tensor->shape;
  bound->count = 1;
  for (uint32_t d = 0; d < array->rank; d++) bound->count *= (uint64_t)tensor->shape[d];
  bound->address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  bound->target = bound->low = bound->address;
  bound->high = bound->low + bound->count * array->element_bytes;
}

static void bind_scalar(const kj_launch_table *table, const kj_table_scalar *scalar,
                        const kjit_arg *argument, kj_bound *bound)
{
  *bound = table->bound[scalar->index];
  bound->bits[0] = 0;
  (void)read_scalar(scalar, argument, &bound->bits[0]);
  (void)ki_decode_value(scalar->type, bound->bits, &bound->value);
  /* an untyped number has a weak type */
  bound->value.type = table->bound[scalar->index].value.type;
}

static inline void bind(const kj_launch_table *table, uint32_t index, const kjit_arg *arguments,
                        kj_bound *bound)
{
  for (uint32_t i = 0; i < table->array_count; i++)
    if (table->arrays[i].index == index) {
      bind_array(table, &table->arrays[i], &arguments[index], bound);
      return;
    }
  for (uint32_t i = 0; i < table->scalar_count; i++)
    if (table->scalars[i].index == index) {
      bind_scalar(table, &table->scalars[i], &arguments[index], bound);
      return;
    }
  *bound = table->bound[index];
}

/* ---- relations between arrays ---- */

/* Fast test for disjoint arrays: goes through the arrays in the recorded order of their addresses,
 * and tests whether each array ends before the next one begins. */
static bool are_in_order(const kj_launch_table *table, const span *spans)
{
  KJ_ASSERT(!table->order_count || table->order_count == table->array_count);
  for (uint32_t k = 1; k < table->order_count; k++)
    if (spans[table->order[k - 1]].high > spans[table->order[k]].low) return false;
  return table->order_count > 0;
}

static inline bool do_meet(const kj_table_pair *pair, const span *spans)
{
  const span *a = &spans[pair->i], *b = &spans[pair->j];
  return kj_do_meet(a->low, a->high, b->low, b->high);
}

/* Compares the relations of all pairs, for a table in which some pairs overlap. */
static __attribute__((noinline)) bool follow_overlaps(const kj_launch_table *table,
                                                      const kjit_arg *arguments, const span *spans)
{
  for (uint32_t k = 0; k < table->pair_count; k++) {
    const kj_table_pair *pair = &table->pairs[k];
    bool has_met = do_meet(pair, spans);
    if (has_met == (pair->relation == KJ_RELATION_DISJOINT)) return false;
    if (!has_met) continue;
    kj_bound a, b;
    const kj_table_array *x = &table->arrays[pair->i], *y = &table->arrays[pair->j];
    bind_array(table, x, &arguments[x->index], &a);
    bind_array(table, y, &arguments[y->index], &b);
    if (kj_relate(&a, &b) != (kj_relation)pair->relation) return false;
  }
  return true;
}

static inline bool follow_pairs(const kj_launch_table *table, const kjit_arg *arguments,
                                const span *spans)
{
  bool have_met = false;
  if (table->has_overlaps) return follow_overlaps(table, arguments, spans);
  if (are_in_order(table, spans)) return true;
  for (uint32_t k = 0; k < table->pair_count; k++) have_met |= do_meet(&table->pairs[k], spans);
  return !have_met;
}

/* Returns whether the arrays match the tables and have the recorded relations. Writes their
 * addresses to the parameter block. */
static __attribute__((noinline)) bool follow_arrays(const kj_launch_table *table,
                                                    const kjit_stream *stream,
                                                    const kjit_arg *arguments, char *parameters)
{
  span spans[KJ_MOST_TABLE_ARRAYS];
  KJ_ASSERT(table->array_count <= KJ_MOST_TABLE_ARRAYS);
  return (walk_arrays(table, stream, arguments, parameters, spans) ||
          follow_tensors(table, stream, arguments, parameters, spans)) &&
         (!table->pair_count || follow_pairs(table, arguments, spans));
}

static inline int64_t extent_of(const kjit_arg *argument, uint32_t dimension)
{
  bool is_in_line = argument->kind == KJIT_ARG_ARRAY && !dimension;
  return is_in_line ? argument->value.array->line.extent : kj_tensor_of(argument)->shape[dimension];
}

static inline void write_extents(const kj_launch_table *table, const kjit_arg *arguments,
                                 char *parameters)
{
  const kj_table_extent *extent = table->extents, *end = extent + table->extent_count;
  for (; extent < end; extent++)
    write_scalar(parameters + extent->to,
                 (uint64_t)extent_of(&arguments[extent->argument], extent->dimension),
                 extent->is_wide ? 8 : 4);
}

static inline bool is_on_device(const kjit_launch_config *config, const kj_launch_table *table)
{
  const kjit_device *device = table->device;
  const kjit_stream *stream = config->stream;
  return kj_is_usable(device, (uint32_t)table->place, table->forks, stream) &&
         (config->device ? config->device == device : stream || table->is_default_device);
}

/* Returns whether the arguments match the specialization key. Does not compare the launch shape.
 * Writes addresses, scalars and extents to the parameter block, and the shape's inputs after it. */
static inline bool follow_arguments(const kj_launch_table *table, const kjit_launch_config *config,
                                    const kjit_arg *arguments, size_t count, char *parameters)
{
  /* assertions compare whole parameter blocks, padding included */
  if (KJ_HAS_ASSERTIONS) memset(parameters, 0, KJ_TABLE_ROOM);
  if (!table || count != table->argument_count || (count && !arguments) ||
      config->flags & ~(uint32_t)KJ_LAUNCH_FLAGS || !is_on_device(config, table))
    return false;
  memset(parameters + KJ_TABLE_INPUTS, 0, KJ_TABLE_ROOM - KJ_TABLE_INPUTS);
  if ((table->array_count && !follow_arrays(table, config->stream, arguments, parameters)) ||
      !follow_scalars(table, arguments, parameters) || !follow_same(table, arguments))
    return false;
  write_extents(table, arguments, parameters);
  return true;
}

/* ---- the launch shape ---- */

/* Returns whether the stored shape applies to this launch. The stored shape applies if the launch
 * that stored it had an equal configuration struct and equal inputs of the shape. */
static inline bool is_known(const kj_known_shape *known, const kjit_specialization *specialization,
                            const kj_launch_table *table, const kjit_launch_config *config,
                            const char *parameters)
{
  const kjit_launch_config *before = &known->config;
  const size_t first = offsetof(kjit_launch_config, stream),
               rest = offsetof(kjit_launch_config, cluster),
               end = offsetof(kjit_launch_config, priority) + sizeof before->priority;
  uint64_t differs = 0, value;
  KJ_ASSERT(table->input_count <= KJ_MOST_SHAPE_INPUTS);
  for (uint32_t i = 0; i < table->input_count; i++) {
    memcpy(&value, parameters + KJ_TABLE_INPUTS + i * sizeof value, sizeof value);
    differs |= value ^ known->inputs[i];
  }
  return known->specialization == specialization && !differs && !memcmp(before, config, first) &&
         !memcmp(&before->cluster, &config->cluster, end - rest) && !kj_has_interrupts(config);
}

static void note_shape(kj_known_shape *known, const kjit_specialization *specialization,
                       const kj_call *call, const char *parameters)
{
  kj_take_shape(known, specialization, call);
  known->specialization = specialization;
  known->config = *call->config;
  memcpy(known->inputs, parameters + KJ_TABLE_INPUTS, sizeof known->inputs);
}

/* Computes the launch shape in the same way as the slow path, for arguments that have matched the
 * tables. Binds the arguments that this computation needs. If the launch needs only its shape and
 * its parameters, sets *is_plain and stores the shape in *known. Returns OTHER_WAY if the call has
 * a different key or no valid shape. */
static int decide(const kj_launch_table *table, kjit_specialization *specialization, kj_call *call,
                  const kjit_arg *arguments, kj_known_shape *known, kj_diagnostics *diagnostics,
                  bool *is_plain)
{
  for (uint32_t i = 0; i < table->shaping_count; i++)
    bind(table, table->shaping[i], arguments, &call->bound[table->shaping[i]]);
  if (kj_choose_shape(call, NULL) != KJIT_OK) return KJ_OTHER_WAY;
  call->facts = kj_find_facts_of(call, true);
  if (call->facts != table->facts ||
      (table->knows_block && memcmp(call->block, table->block, sizeof table->block)))
    return KJ_OTHER_WAY;
  KJ_TRY(kj_fit_shape(call, specialization, diagnostics));
  *is_plain = table->is_plain && !call->has_nothing && !kj_has_interrupts(call->config) &&
              !kj_has_attributes(call);
  if (*is_plain) note_shape(known, specialization, call, call->parameters);
  return KJIT_OK;
}

/* Memory that decide() uses. */
typedef struct memory {
  kj_bound bound[KJ_MOST_TABLE_ARRAYS];
  kj_shared_size shared[KJ_MOST_SHARED_ARRAYS + 1];
} memory;

static kj_call make_call(kjit_kernel *kernel, const kj_launch_table *table,
                         const kjit_launch_config *config, char *parameters, memory *memory)
{
  return (kj_call){ .kernel = kernel,
                    .device = table->device,
                    .stream = config->stream,
                    .config = config,
                    .bound = memory->bound,
                    .shared = memory->shared,
                    .parameters = parameters,
                    .parameter_room = KJ_TABLE_BYTES };
}

/* For assertions: returns whether the slow path would start the same launch. */
static bool is_right(const kj_known_shape *known, kjit_specialization *specialization,
                     const kjit_launch_config *config, const kjit_arg *arguments, size_t count,
                     char *parameters)
{
  kj_call decided = { .kernel = specialization->kernel,
                      .config = config,
                      .dynamic_shared_bytes = known->shared_bytes,
                      .parameters = parameters };
  memcpy(decided.grid, known->grid, sizeof decided.grid);
  memcpy(decided.block, known->block, sizeof decided.block);
  return kj_agrees(&decided, specialization, arguments, count);
}

/* ---- the launch ---- */

static inline int start_plainly(const kj_launch_table *table, kjit_specialization *specialization,
                                const kj_known_shape *known, const kjit_launch_config *config,
                                const kjit_arg *arguments, char *parameters,
                                kj_diagnostics *diagnostics)
{
  KJ_ASSERT(is_right(known, specialization, config, arguments, table->argument_count, parameters));
  int result = kj_start_plainly(specialization, known, config->stream, parameters);
  return __builtin_expect(result, 0) ? (int)kj_retry_plainly(specialization, known, config->stream,
                                                             parameters, result, diagnostics)
                                     : KJIT_OK;
}

static kjit_status start(const kj_launch_table *table, kj_call *call,
                         kjit_specialization *specialization, const kjit_arg *arguments,
                         kj_diagnostics *diagnostics)
{
  const kj_code *code = &specialization->code;
  if (call->has_nothing) return KJIT_OK;
  for (uint32_t i = 0; i < table->other_count; i++)
    kj_marshal_parameter(call, &code->parameters[table->others[i]], call->parameters);
  kj_pass_failure_record(code, specialization->failure_address, call->parameters);
  KJ_ASSERT(kj_agrees(call, specialization, arguments, table->argument_count));
  return kj_start(call, specialization, diagnostics);
}

/* Launches a call for which no shape is stored. */
static __attribute__((noinline)) int
launch_by_rules(const kj_launch_table *table, kjit_specialization *specialization,
                const kjit_launch_config *config, const kjit_arg *arguments, char *parameters,
                kj_known_shape *known, kj_diagnostics *diagnostics)
{
  memory memory;
  kjit_kernel *kernel = specialization->kernel;
  /* the application was compiled with another version of the headers */
  if (config->size_bytes != sizeof *config) return KJ_OTHER_WAY;
  kj_call call = make_call(kernel, table, config, parameters, &memory);
  kj_known_shape unshared;
  bool is_plain = false;
  KJ_ASSERT(kernel->parameter_count <= KJ_MOST_TABLE_ARRAYS);
  if (known == &kernel->recent[KJ_SHARED_SLOT].shape) known = &unshared;
  int status = decide(table, specialization, &call, arguments, known, diagnostics, &is_plain);
  if (status != KJIT_OK) return status;
  return is_plain
           ? start_plainly(table, specialization, known, config, arguments, parameters, diagnostics)
           : (int)start(table, &call, specialization, arguments, diagnostics);
}

/* Tries to launch a specialization that the caller holds (see specialization.h). */
static inline int launch_held(kjit_specialization *specialization, const kjit_launch_config *config,
                              const kjit_arg *arguments, size_t count, kj_known_shape *known,
                              kj_diagnostics *diagnostics)
{
  const kj_launch_table *table = atomic_load_explicit(&specialization->table, memory_order_acquire);
  _Alignas(16) char parameters[KJ_TABLE_ROOM];
  KJ_ASSERT(kj_is_held_here(specialization));
  KJ_ASSERT(!table || table->device == specialization->device);
  /* captured launches take the slow path, because a graph keeps the call's arguments */
  if (kj_is_captured(config->stream) ||
      !follow_arguments(table, config, arguments, count, parameters))
    return KJ_OTHER_WAY;
  return is_known(known, specialization, table, config, parameters)
           ? start_plainly(table, specialization, known, config, arguments, parameters, diagnostics)
           : launch_by_rules(table, specialization, config, arguments, parameters, known,
                             diagnostics);
}

int kj_launch_by_table(kjit_kernel *kernel, const kjit_launch_config *config,
                       const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics)
{
  static const kjit_launch_config defaults = { .size_bytes = sizeof defaults };
  uint32_t own = kj_slot();
  kj_recent_slot *slot = &kernel->recent[own];
  kjit_specialization *recent = atomic_load_explicit(&slot->specialization, memory_order_acquire);
  if (!recent || !kj_hold_of(recent, own)) return KJ_OTHER_WAY;
  int status =
    launch_held(recent, config ? config : &defaults, arguments, count, &slot->shape, diagnostics);
  if (status == KJIT_OK) kj_count_up(&kernel->context->launches[own].count, own);
  kj_release_of(recent, own, status == KJIT_OK);
  return status;
}

bool kj_follow_table(kjit_specialization *specialization, const kjit_launch_config *config,
                     const kjit_arg *arguments, size_t count, kj_known_shape *known, char *block)
{
  const kj_launch_table *table = atomic_load_explicit(&specialization->table, memory_order_acquire);
  _Alignas(16) char parameters[KJ_TABLE_ROOM];
  KJ_ASSERT(kj_is_held_here(specialization));
  if (!table || !table->is_plain || !follow_arguments(table, config, arguments, count, parameters))
    return false;
  if (!is_known(known, specialization, table, config, parameters)) {
    kj_diagnostics ignored = { 0 };
    memory memory;
    kj_call call = make_call(specialization->kernel, table, config, parameters, &memory);
    bool is_plain = false;
    (void)decide(table, specialization, &call, arguments, known, &ignored, &is_plain);
    kj_free_diagnostics(&ignored);
    if (!is_plain) return false;
  }
  KJ_ASSERT(is_right(known, specialization, config, arguments, count, parameters));
  KJ_ASSERT(known->parameter_bytes <= KJ_TABLE_BYTES);
  memcpy(block, parameters, known->parameter_bytes);
  return true;
}
