/* Implements plans (kjit_plan): the launches of a call, which are prepared once and can run any
 * number of times. */
#include <stdlib.h>

#include "algorithm/algorithm.h"
#include "stream/stream.h"

struct kjit_plan {
  kj_object object;
  kjit_context *context;
  kjit_stream *stream; /* stream of the options */
  /* Each run leaves zeros in temporary storage that must start with zeros, except a run that fails;
   * after such a run, the storage is cleared before the next run. failures: number of failed
   * kernels of the device at the last check. */
  bool is_clear;
  _Atomic(const char *) runner; /* own_thread of the thread that is in kjit_run_plan, or NULL */
  uint64_t failures;
  kjit_array **zeros;
  size_t zero_count, count;
  ka_part parts[]; /* plans of inner calls are not listed as objects of the device */
};

static void destroy_plan(kj_object *object)
{
  kjit_plan *plan = (kjit_plan *)object;
  kj_assert_no_locks();
  for (size_t i = 0; i < plan->count; i++) {
    const ka_part *part = &plan->parts[i];
    kjit_destroy_prepared(part->prepared);
    if (part->module) kjit_release_module(part->module);
    if (part->plan) destroy_plan(&part->plan->object);
    if (part->array) kjit_release_array(part->array);
  }
  for (size_t i = 0; i < plan->zero_count; i++) kjit_release_array(plan->zeros[i]);
  free(plan->zeros);
  plan->count = 0;
  kj_free_object(&plan->object, plan);
}

kjit_context *kjit_get_plan_context(const kjit_plan *plan)
{
  return kj_told_context(plan ? &plan->object : NULL);
}

void kjit_destroy_plan(kjit_plan *plan)
{
  if (plan && kj_take_object(&plan->object)) destroy_plan(&plan->object);
}

/* Returns the number of launches of a part. */
static size_t count_launches(const ka_part *part)
{
  return part->prepared ? 1 : kjit_get_plan_size(part->plan);
}

size_t kjit_get_plan_size(const kjit_plan *plan)
{
  size_t count = 0;
  for (size_t i = 0; plan && i < plan->count; i++) count += count_launches(&plan->parts[i]);
  return count;
}

const kjit_prepared *kjit_get_plan_launch(const kjit_plan *plan, size_t index)
{
  for (size_t i = 0; plan && i < plan->count; i++) {
    const ka_part *part = &plan->parts[i];
    size_t count = count_launches(part);
    if (index < count)
      return part->prepared ? part->prepared : kjit_get_plan_launch(part->plan, index);
    index -= count;
  }
  return NULL;
}

/* Returns whether the stream is captured, by kjit or by the application. If so, queued work runs
 * when the graph is launched. */
bool ka_is_captured(const kjit_stream *stream)
{
  kj_diagnostics ignored = { 0 };
  bool is_captured = false;
  bool is_known = kj_ask_capture(stream, &ignored, &is_captured) == KJIT_OK;
  kj_free_diagnostics(&ignored);
  return !is_known || is_captured;
}

/* Clears the temporary storage on the stream before a run. */
static kjit_status clear_work(kjit_plan *plan, kjit_stream *stream, uint64_t failures)
{
  const kjit_arg zero = kjit_arg_number(0);
  for (size_t i = 0; i < plan->zero_count; i++) {
    kjit_arg array = kjit_arg_array(plan->zeros[i]);
    KJ_TRY(kjit_fill(plan->context, &array, &zero, stream));
  }
  KJ_ASSERT(plan->failures <= failures); /* the device's count never decreases */
  plan->is_clear = !ka_is_captured(stream);
  plan->failures = failures;
  return KJIT_OK;
}

static kjit_status run_part(const kjit_plan *plan, const ka_part *part, kjit_stream *stream)
{
  if (part->prepared) return kjit_run_prepared(part->prepared, stream);
  if (part->plan) return kjit_run_plan(part->plan, stream);
  kjit_arg array = kjit_arg_array(part->array), number = kjit_arg_number(part->number);
  return kjit_fill(plan->context, &array, &number, stream ? stream : plan->stream);
}

static kjit_status run_parts(kjit_plan *plan, kjit_stream *stream)
{
  uint64_t failures = atomic_load(&plan->object.device->failures);
  if (!plan->is_clear || plan->failures != failures)
    KJ_TRY(clear_work(plan, stream ? stream : plan->stream, failures));
  for (size_t i = 0; i < plan->count; i++) {
    kjit_status status = run_part(plan, &plan->parts[i], stream);
    if (status == KJIT_OK) continue;
    plan->is_clear = false;
    return status;
  }
  return KJIT_OK;
}

/* The address of this variable identifies a thread. */
static _Thread_local char own_thread;

/* Rejects a run of a plan that is already running, because both runs would write to the same
 * temporary storage. */
kjit_status kjit_run_plan(kjit_plan *plan, kjit_stream *stream)
{
  if (!plan) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(plan->context)) return KJIT_ERROR_FORKED;
  const char *runner = NULL;
  if (!atomic_compare_exchange_strong_explicit(&plan->runner, &runner, &own_thread,
                                               memory_order_acquire, memory_order_relaxed))
    return ki_fail_call(plan->context, KJIT_ERROR_MISUSE,
                        runner == &own_thread
                          ? "kjit_run_plan: a function that is called during a run of the plan "
                            "runs the same plan again"
                          : "kjit_run_plan: another thread is running the plan");
  kjit_status status = run_parts(plan, stream);
  atomic_store_explicit(&plan->runner, NULL, memory_order_release);
  return status;
}

static void keep_zeros(ka_call *call, kjit_plan *plan)
{
  for (size_t i = 0; i < call->works.count; i++)
    if (call->works.items[i].starts_zero) {
      KJ_ASSERT(plan->zero_count < call->works.count && call->works.items[i].array);
      plan->zeros[plan->zero_count++] = kjit_retain_array(call->works.items[i].array);
    }
}

/* Adds the launch of a step. */
static kjit_status add_launch(const ka_step *step, kjit_plan *plan)
{
  ka_part *part = &plan->parts[plan->count++];
  KJ_TRY(kjit_prepare_launch(step->kernel, &step->config, step->arguments, step->count,
                             &part->prepared));
  part->module = kjit_retain_module(step->module);
  return KJIT_OK;
}

/* Removes the inner plans from the context's list of objects, because the outer plan destroys
 * them. */
static void keep_parts(ka_call *call, kjit_plan *plan)
{
  for (size_t i = 0; i < call->parts.count; i++) {
    ka_part *part = call->parts.items[i];
    if (!part->plan && !part->array) continue;
    KJ_ASSERT(!part->plan || !part->array);
    if (part->plan) (void)kj_take_object(&part->plan->object);
    plan->parts[plan->count++] = *part;
    *part = (ka_part){ 0 };
  }
}

void ka_prepare_plan(ka_call *call)
{
  size_t most = call->steps.count + call->parts.count;
  kjit_plan *plan = calloc(1, sizeof *plan + most * sizeof plan->parts[0]);
  if (plan) plan->zeros = calloc(call->works.count + 1, sizeof(kjit_array *));
  if (!plan || !plan->zeros) {
    free(plan);
    ka_fail(call, KJIT_ERROR_MEMORY, "out of memory");
  }
  plan->context = call->context;
  plan->stream = call->options.stream;
  keep_zeros(call, plan);
  for (size_t i = 0; i < call->steps.count; i++) {
    kjit_status status = add_launch(&call->steps.items[i], plan);
    if (status == KJIT_OK) continue;
    destroy_plan(&plan->object);
    ka_try(call, status);
  }
  keep_parts(call, plan);
  kj_add_object(call->device, &plan->object, destroy_plan);
  *call->options.plan = plan;
}
