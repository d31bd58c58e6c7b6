/* Runs a public call: reads options, allocates temporary storage, and launches the steps or stores
 * them in a plan. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm/kept_call.h"
#include "ir/number.h"
#include "ir/context.h"
#include "stream/stream.h"

/* ---- failures ---- */

/* Returns a format that begins with the name of the public function, or NULL when out of memory.
 * The caller frees it. */
static char *add_name(const char *name, const char *format)
{
  char *made = NULL;
  KJ_ASSERT(!strncmp(name, "kjit_", 5) && !strchr(name, '%'));
  int length =
    asprintf(&made, KJ_PHRASE(CALL, "kjit_" KJ_PHRASE_ARGUMENT("%s")) ": %s", name + 5, format);
  return length < 0 ? NULL : made;
}

void ka_fail(ka_call *call, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  char *full = add_name(call->name, format);
  call->status = ki_fail_call_list(call->context, status, full ? full : "out of memory", list);
  va_end(list);
  free(full);
  longjmp(call->on_failure, KJ_JUMP_ERROR);
}

void ka_fail_at(ka_call *call, const ki_decl *decl, kjit_status status, const char *format, ...)
{
  kj_diagnostics diagnostics = { 0 };
  va_list list;
  va_start(list, format);
  char *full = add_name(call->name, format);
  kj_report_list(&diagnostics, &decl->function->module->sources, decl->location,
                 KJIT_SEVERITY_ERROR, status, full ? full : "out of memory", list);
  va_end(list);
  free(full);
  call->status = ki_finish_call(call->context, &diagnostics);
  longjmp(call->on_failure, KJ_JUMP_ERROR);
}

kjit_status ka_fail_memory(kjit_context *context, const char *name)
{
  return ki_fail_call(context, KJIT_ERROR_MEMORY,
                      KJ_PHRASE(CALL, "kjit_" KJ_PHRASE_ARGUMENT("%s")) ": out of memory",
                      name + 5);
}

void ka_try(ka_call *call, kjit_status status)
{
  if (status == KJIT_OK) return;
  call->status = status;
  longjmp(call->on_failure, KJ_JUMP_ERROR);
}

/* ---- the device ---- */

const kjit_device *ka_likely_device(ka_call *call)
{
  kjit_device *device = call->device;
  if (device) return device;
  kj_runtime *runtime = kj_get_runtime(call->context);
  if (!runtime) ka_fail(call, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  (void)kj_default_device(runtime, &diagnostics, &device);
  ka_try(call, ki_finish_call(call->context, &diagnostics));
  return device;
}

void ka_choose_device(ka_call *call) { call->device = (kjit_device *)ka_likely_device(call); }

const char *ka_type_text(ka_call *call, kjit_type type)
{
  kj_buffer text = { 0 };
  ki_print_type(call->context->types, type, &text);
  return kj_keep_text(&call->arena, &text);
}

const char *ka_number_text(ka_call *call, ki_value number)
{
  kj_buffer text = { 0 };
  ki_print_value(number, false, &text);
  return kj_keep_text(&call->arena, &text);
}

bool ka_is_cpu(const ka_call *call) { return call->device->info.kind == KJIT_DEVICE_CPU; }

uint32_t ka_core_count(const ka_call *call) { return call->device->info.multiprocessor_count; }

uint32_t ka_fit_threads(const ka_call *call, uint32_t threads, uint64_t bytes_a_thread)
{
  enum { OTHERS = 1024 }; /* bytes of other, small shared arrays in the same kernels */
  while (threads > KJ_WARP_THREADS &&
         threads * bytes_a_thread + OTHERS > call->device->info.max_shared_bytes)
    threads /= 2;
  return threads;
}

/* ---- temporary storage ---- */

/* Alignment of blocks of temporary storage, suitable for any element and for vector accesses. */
enum { WORK_ALIGNMENT = 64 };

uint32_t ka_add_work(ka_call *call, kjit_type element, uint64_t count, bool starts_zero)
{
  KJ_ASSERT(ki_is_element(call->context->types, element));
  ka_work work = { .element = element, .count = count ? count : 1, .starts_zero = starts_zero };
  KJ_PUSH(&call->arena, &call->works, work);
  return (uint32_t)call->works.count - 1;
}

uint32_t ka_add_work_matrices(ka_call *call, kjit_type element, const int64_t shape[3])
{
  uint32_t number =
    ka_add_work(call, element, (uint64_t)shape[0] * (uint64_t)shape[1] * (uint64_t)shape[2], false);
  ka_work *work = &call->works.items[number];
  work->rank = 3;
  memcpy(work->shape, shape, sizeof work->shape);
  return number;
}

static uint64_t work_bytes(const ka_call *call, const ka_work *work)
{
  uint64_t bytes = work->count * kj_element_bytes(call->context->types, work->element);
  return (bytes + WORK_ALIGNMENT - 1) / WORK_ALIGNMENT * WORK_ALIGNMENT;
}

static uint64_t all_work_bytes(const ka_call *call)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < call->works.count; i++) bytes += work_bytes(call, &call->works.items[i]);
  return bytes;
}

static void check_work(ka_call *call, const kj_view *view)
{
  const kjit_array *given = call->options.work;
  unsigned long long needed = all_work_bytes(call), bytes = view->count;
  bytes *= view->element_bytes;
  if (given->object.device != call->device)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the temporary storage, " KJ_OPTION("work") ", is on another device");
  if (view->element_bytes != 1)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("work") " has elements of type %s; it must be an array of u8",
            ka_type_text(call, view->element));
  if (!kj_is_line(view) || view->count < needed)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("work") " must be a one-dimensional array of u8 with %llu bytes, got %llu",
            needed, bytes);
  if (view->address % WORK_ALIGNMENT)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            "the temporary storage, " KJ_OPTION("work") ", must be aligned to %d bytes",
            WORK_ALIGNMENT);
  for (size_t i = 0; i < call->given.count; i++)
    if (kj_do_overlap(view, &call->given.items[i].view))
      ka_fail(call, KJIT_ERROR_ARGUMENT,
              "the temporary storage, " KJ_OPTION("work") ", overlaps `%s`",
              call->given.items[i].name);
}

/* Makes a block of temporary storage in the application's array, which the block keeps alive. */
static void cut_work(ka_call *call, ka_work *work, uint64_t offset)
{
  kj_diagnostics diagnostics = { 0 };
  const int64_t extent = (int64_t)work->count, *shape = work->rank ? work->shape : &extent;
  KJ_ASSERT(offset % WORK_ALIGNMENT == 0 &&
            offset + work_bytes(call, work) <= all_work_bytes(call));
  const int64_t strides[] = { work->shape[1] * work->shape[2], work->shape[2], 1 }, one = 1;
  kjit_array *piece = NULL;
  (void)kj_make_view(call->options.work, work->element, shape, work->rank ? strides : &one,
                     work->rank ? work->rank : 1, (int64_t)offset, &diagnostics, &piece);
  work->array = piece;
  ka_try(call, ki_finish_call(call->context, &diagnostics));
}

static void allocate_work(ka_call *call)
{
  uint64_t offset = 0;
  kj_view view;
  kj_diagnostics diagnostics = { 0 };
  if (call->options.work) {
    (void)kj_view_array(call->options.work, "work", &diagnostics, &view);
    ka_try(call, ki_finish_call(call->context, &diagnostics));
    check_work(call, &view);
  }
  for (size_t i = 0; i < call->works.count; i++) {
    ka_work *work = &call->works.items[i];
    int64_t extent = (int64_t)work->count;
    kjit_array_config config = { .size_bytes = sizeof config,
                                 .device = call->device,
                                 .element = work->element,
                                 .rank = work->rank ? (int32_t)work->rank : 1,
                                 .shape = work->rank ? work->shape : &extent,
                                 .stream = call->options.stream };
    bool is_ready = false;
    if (call->options.work) {
      cut_work(call, work, offset);
    } else {
      (void)kj_create_array_with(&config, work->content, &diagnostics, &work->array, &is_ready);
      ka_try(call, ki_finish_call(call->context, &diagnostics));
    }
    offset += work_bytes(call, work);
    /* plan.c clears a plan's storage before the first run */
    if (!work->starts_zero || is_ready || call->options.plan) continue;
    kjit_arg array = kjit_arg_array(work->array), zero = kjit_arg_number(0);
    ka_try(call, kjit_fill(call->context, &array, &zero, call->options.stream));
  }
}

/* Replaces each argument that is an index of temporary storage by the array with this storage. */
static void place_work(ka_call *call)
{
  for (size_t i = 0; i < call->steps.count; i++) {
    ka_step *step = &call->steps.items[i];
    for (size_t j = 0; j < step->count; j++) {
      kjit_arg *argument = &step->arguments[j];
      if (argument->kind) continue;
      KJ_ASSERT(argument->value.u < call->works.count);
      KJ_ASSERT(call->works.items[argument->value.u].array);
      *argument = kjit_arg_array(call->works.items[argument->value.u].array);
    }
  }
}

/* ---- results ---- */

bool ka_describe(ka_call *call, size_t index, kjit_type element, uint32_t rank,
                 const int64_t *shape)
{
  if (!call->options.results) return false;
  if (index >= call->options.result_count)
    ka_fail(call, KJIT_ERROR_MISUSE,
            KJ_OPTION("result_count") " is %zu, but the algorithm has more results",
            call->options.result_count);
  kjit_result_info *info = &call->options.results[index];
  *info = (kjit_result_info){ .element = element, .rank = rank };
  if (rank) memcpy(info->shape, shape, rank * sizeof *shape);
  return true;
}

/* ---- the call ---- */

static void refuse_others(ka_call *call, uint32_t takes)
{
  const kjit_algorithm_options *o = &call->options;
  const struct {
    ka_option option;
    bool is_given;
    const char *name;
  } rows[] = {
    { KA_AXES, o->axes != NULL, "axes" },
    { KA_ACCUMULATOR, o->accumulator != KJIT_ANY, "accumulator" },
    { KA_INITIAL, o->initial != NULL, "initial" },
    { KA_EXCLUSIVE, o->flags & KJIT_ALGORITHM_EXCLUSIVE, "flags: KJIT_ALGORITHM_EXCLUSIVE" },
    { KA_DESCENDING, o->flags & KJIT_ALGORITHM_DESCENDING, "flags: KJIT_ALGORITHM_DESCENDING" },
    { KA_OUTER, o->flags & KJIT_ALGORITHM_OUTER, "flags: KJIT_ALGORITHM_OUTER" },
    { KA_RIGHT, o->flags & KJIT_ALGORITHM_RIGHT, "flags: KJIT_ALGORITHM_RIGHT" },
    { KA_TF32, o->flags & KJIT_ALGORITHM_TF32, "flags: KJIT_ALGORITHM_TF32" },
    { KA_FORMAT, o->flags & KJIT_ALGORITHM_E4M3, "flags: KJIT_ALGORITHM_E4M3" },
    { KA_FORMAT, o->flags & KJIT_ALGORITHM_E5M2, "flags: KJIT_ALGORITHM_E5M2" },
    { KA_BITS, o->begin_bit || o->end_bit, o->begin_bit ? "begin_bit" : "end_bit" },
    { KA_WHERE, o->where != NULL, "where" },
    { KA_SIGNATURE, o->signature != NULL, "signature" },
    { KA_CHUNK, o->chunk != 0, "chunk" },
    { KA_DEVICES, o->device_count != 0, "devices" },
    { KA_EPILOGUE, o->epilogue != NULL, "epilogue" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].is_given && !(takes & rows[i].option))
      ka_fail(call, KJIT_ERROR_ARGUMENT, KJ_OPTION("%s") " is not an option of this algorithm",
              rows[i].name);
}

static void read_options(ka_call *call, const kjit_algorithm_options *given)
{
  ka_try(call,
         ki_read_sized(call->context, call->name, KI_ALGORITHM_OPTIONS, given, &call->options));
  if (!given) return;
  const kjit_stream *stream = call->options.stream;
  call->device = call->options.device;
  if (!call->device && stream) call->device = stream->object.device;
  if (call->device && call->device->context != call->context)
    ka_fail(call, KJIT_ERROR_ARGUMENT, "the %s belongs to another context",
            call->options.device ? "device" : "stream");
  if (stream && stream->object.device != call->device)
    ka_fail(call, KJIT_ERROR_ARGUMENT,
            KJ_OPTION("stream") " is on another device than " KJ_OPTION("device"));
  const uint32_t known = KJIT_ALGORITHM_EXCLUSIVE | KJIT_ALGORITHM_DESCENDING |
                         KJIT_ALGORITHM_OUTER | KJIT_ALGORITHM_RIGHT | KJIT_ALGORITHM_TF32 |
                         KJIT_ALGORITHM_E4M3 | KJIT_ALGORITHM_E5M2;
  if (call->options.flags & ~known)
    ka_fail(call, KJIT_ERROR_MISUSE,
            KJ_OPTION("flags") ": 0x%x contains bits that this version of kjit does not know",
            call->options.flags);
  if (call->options.axis_count && !call->options.axes)
    ka_fail(call, KJIT_ERROR_MISUSE,
            KJ_OPTION("axes") " is NULL, but " KJ_OPTION("axis_count") " is %u",
            call->options.axis_count);
  if (!ki_has_type(call->context->types, call->options.accumulator))
    ka_fail(call, KJIT_ERROR_TYPE, KJ_OPTION("accumulator") " is not a type of this context");
  ka_check_initial(call);
  if (call->options.epilogue_operand_count &&
      (!call->options.epilogue || !call->options.epilogue_operands))
    ka_fail(call, KJIT_ERROR_MISUSE,
            KJ_OPTION("%s") " is NULL, but " KJ_OPTION("epilogue_operand_count") " is %zu",
            call->options.epilogue ? "epilogue_operands" : "epilogue",
            call->options.epilogue_operand_count);
}

static bool is_first_of_kernel(const ka_call *call, size_t index)
{
  for (size_t i = 0; i < index; i++)
    if (call->steps.items[i].kernel == call->steps.items[index].kernel) return false;
  return true;
}

/* If a call has several kernels that are not compiled, background threads compile all but the first
 * one. If such a compilation fails, the launch of the kernel compiles it again and reports the
 * error. */
static void compile_ahead(ka_call *call)
{
  if (call->kept || kj_capture_number(call->options.stream)) return;
  for (size_t i = 1; i < call->steps.count; i++) {
    const ka_step *step = &call->steps.items[i];
    kjit_launch_config config = step->config;
    kjit_prepared *prepared = NULL;
    config.flags |= KJIT_LAUNCH_NO_WAIT;
    if (is_first_of_kernel(call, i) && kjit_prepare_launch(step->kernel, &config, step->arguments,
                                                           step->count, &prepared) == KJIT_OK)
      kjit_destroy_prepared(prepared);
  }
}

/* Returns temporary storage to the pool, from which the next call of the same kind takes it; the
 * stream orders both calls.
 */
static void leave_work(ka_call *call)
{
  bool has_content = false;
  for (size_t i = 0; i < call->works.count; i++)
    has_content = has_content || call->works.items[i].content;
  if (!has_content || !call->device->memory || !ka_leaves_work(call) ||
      ka_is_captured(call->options.stream))
    return;
  for (size_t i = 0; i < call->works.count; i++) {
    ka_work *work = &call->works.items[i];
    if (!work->content) continue;
    KJ_ASSERT(work->starts_zero && work->array && !call->options.work && !call->options.plan);
    kj_release_array_with(work->array, work->content);
    work->array = NULL;
  }
}

static void finish(ka_call *call)
{
  if (call->options.results) return; /* ka_describe has described the results */
  if (call->options.work_bytes) {
    *call->options.work_bytes = all_work_bytes(call);
    return;
  }
  KJ_ASSERT(call->device || !call->steps.count);
  allocate_work(call);
  place_work(call);
  compile_ahead(call);
  if (call->options.plan) {
    ka_prepare_plan(call);
    return;
  }
  for (size_t i = 0; i < call->steps.count; i++) {
    const ka_step *step = &call->steps.items[i];
    KJ_ASSERT(step->kernel && (step->module || call->kept));
    ka_try(call, kjit_launch(step->kernel, &step->config, step->arguments, step->count));
  }
  leave_work(call);
}

static void drop_steps(ka_call *call)
{
  for (size_t i = 0; i < call->steps.count; i++)
    if (call->steps.items[i].module) kjit_release_module(call->steps.items[i].module);
  call->steps.count = call->works.count = call->viewed.count = 0;
}

static void end_call(ka_call *call)
{
  for (size_t i = 0; i < call->works.count; i++)
    if (call->works.items[i].array) kjit_release_array(call->works.items[i].array);
  for (size_t i = 0; i < call->parts.count; i++) {
    kjit_destroy_plan(call->parts.items[i]->plan);
    if (call->parts.items[i]->array) kjit_release_array(call->parts.items[i]->array);
  }
  for (size_t i = 0; i < call->views.count; i++) kjit_release_array(call->views.items[i]);
  for (size_t i = 0; i < call->texts.count; i++) {
    ka_texts *texts = call->texts.items[i];
    kj_free_buffer(&texts->funcs);
    kj_free_buffer(&texts->parameters);
    kj_free_buffer(&texts->constants);
    kj_free_buffer(&texts->body);
  }
  drop_steps(call);
  if (call->kept) ka_release_kept(call->kept);
  kj_free_arena(&call->arena);
}

/* Adds the steps that were kept for an earlier call with the same key. If there is no such call,
 * calls build to add the steps, and keeps them. */
static void add_steps(ka_call *call, ka_build *build, const void *data, const ka_inputs *inputs)
{
  ka_key key;
  bool has_key = inputs && ka_make_key(call, build, inputs, &key);
  if (has_key && KJ_HAS_ASSERTIONS) {
    build(call, data);
    KJ_ASSERT(ka_agrees_with_kept(call, &key));
    ka_keep_call(call, &key);
    drop_steps(call);
  }
  if (has_key && ka_take_kept(call, &key)) return;
  build(call, data);
  if (has_key) ka_keep_call(call, &key);
}

kjit_status ka_perform_kept(kjit_context *context, const char *name, uint32_t takes,
                            const kjit_algorithm_options *options, ka_build *build,
                            const void *data, const ka_inputs *inputs)
{
  KJ_TRY(kj_check_call(context, name, NULL));
  ka_call call = { .context = context, .name = name };
  /* enough for a kept call with a few arrays, which then allocates nothing */
  _Alignas(max_align_t) char memory[KJ_SIZE(2048, 16)];
  kj_init_arena(&call.arena, &call.on_failure);
  kj_lend_memory(&call.arena, memory, sizeof memory);
  int jump = setjmp(call.on_failure);
  if (jump == 0) {
    read_options(&call, options);
    refuse_others(&call, takes);
    add_steps(&call, build, data, inputs);
    finish(&call);
  } else if (jump == KJ_JUMP_MEMORY) {
    call.status = ka_fail_memory(context, name);
  }
  kjit_status status = call.status;
  end_call(&call);
  return status;
}
