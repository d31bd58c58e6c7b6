/* Implements kjit_specialize, kjit_specialize_async and kjit_specialize_all, which compile code for
 * a signature before its first launch. The code relies on the properties of newly allocated arrays
 * (alignment, no overlap), so launches with such arrays use it. */
#include <kjit/code.h>
#include <stdlib.h>
#include <string.h>

#include "code/specialization.h"

/* Binds an array without memory, at an invented address that is disjoint from all other arguments.
 * Only the facts that are derived from the address matter, such as its alignment. */
static void assume_array(const kj_call *call, uint32_t index, kjit_type type, kj_bound *bound)
{
  enum { APART = 1 << 20 };
  const ki_type_info *info = ki_type(call->kernel->module->types, type);
  uint64_t address = (uint64_t)(index + 1) * APART;
  *bound = (kj_bound){ .kind = KJ_ARGUMENT_ARRAY,
                       .rank = (uint8_t)info->rank,
                       .layout = (uint8_t)info->layout,
                       .type = info->element,
                       .offsets_fit = true,
                       .count = 1,
                       .address = address,
                       .low = address,
                       .high = address + APART };
  if (call->kernel->parameters[index].is_general) return;
  bool has_rows = info->rank > 1 && info->layout == KJIT_LAYOUT_C;
  bound->facts = (uint8_t)kj_find_array_facts(
    (kj_array_place){ .address = address, .has_rows = has_rows, .row_bytes = 0 });
}

static void assume_arguments(kj_call *call, const kj_argument *arguments)
{
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    kj_bound *bound = &call->bound[i];
    const kj_argument *argument = &arguments[i];
    if (argument->kind == KJ_ARGUMENT_ARRAY) assume_array(call, i, argument->type, bound);
    if (argument->kind == KJ_ARGUMENT_VALUE || argument->kind == KJ_ARGUMENT_NUMBER)
      *bound = (kj_bound){ .kind = argument->kind, .type = argument->type };
  }
}

/* Chooses the block size that a launch would use if the application gives none. */
static kjit_status assume_block(kj_call *call, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = call->kernel;
  kj_scope scope = kj_call_scope(call, NULL);
  uint32_t bounds[3] = { KJ_DEFAULT_BLOCK };
  call->block[0] = call->block[1] = call->block[2] = 1;
  if (kernel->block && kj_knows_block(kernel, call->device))
    return kj_evaluate_attribute(kernel, &scope, kernel->block, diagnostics, call->block);
  /* for such a device, a call's key does not contain the block size */
  if (!call->device->operations->knows_block) return KJIT_OK;
  if (kernel->launch_bounds)
    KJ_TRY(kj_evaluate_attribute(kernel, &scope, kernel->launch_bounds, diagnostics, bounds));
  call->block[0] = kj_default_block(bounds[0]);
  return KJIT_OK;
}

static kjit_status specialize(kj_call *call, const char *signature, kj_argument *arguments,
                              kj_diagnostics *diagnostics, kjit_specialization **specialization)
{
  KJ_TRY(kj_check_device(call->device, diagnostics));
  KJ_TRY(kj_read_signature(call->kernel, signature, arguments, call->bound, diagnostics));
  assume_arguments(call, arguments);
  KJ_TRY(assume_block(call, diagnostics));
  call->grid[0] = call->grid[1] = call->grid[2] = 1;
  kj_make_key(call);
  uint64_t hash = kj_hash_key(call->key, call->key_count);
  *specialization = kj_look_up(call->kernel, call->key, call->key_count, hash);
  if (!*specialization) return kj_specialize(call, hash, diagnostics, specialization);
  kj_release(*specialization, false);
  return KJIT_OK;
}

static void note_explicit(kjit_specialization *specialization)
{
  kj_lock(&specialization->kernel->mutex, KJ_LOCK_KERNEL);
  specialization->is_explicit = true;
  kj_unlock(&specialization->kernel->mutex, KJ_LOCK_KERNEL);
}

static const kjit_launch_config no_config = { .size_bytes = sizeof no_config };

/* Compiles or loads a call's specialization. The caller does not hold the specialization
 * afterwards, and has to report the diagnostics. */
static kjit_status specialize_signature(kjit_kernel *kernel, kjit_device *device,
                                        const char *signature, kj_diagnostics *diagnostics,
                                        kjit_specialization **specialization)
{
  kjit_specialization *made = NULL;
  kj_call call = { .kernel = kernel,
                   .config = &no_config,
                   .runtime = kj_get_runtime(kernel->context),
                   .device = device };
  kj_argument *arguments = calloc(kernel->parameter_count + 1, sizeof *arguments);
  char *memory = calloc(1, kernel->call_bytes);
  kjit_status status = KJIT_ERROR_MEMORY;
  if (!call.runtime || !arguments || !memory) {
    kj_error(diagnostics, status, "out of memory");
  } else {
    (void)kj_divide_memory(&call, memory);
    status = device ? KJIT_OK : kj_default_device(call.runtime, diagnostics, &call.device);
    if (status == KJIT_OK) status = specialize(&call, signature, arguments, diagnostics, &made);
  }
  free(arguments);
  free(memory);
  if (status != KJIT_OK) return status;
  note_explicit(made);
  *specialization = made;
  return KJIT_OK;
}

/* Makes a call that has a key but no bound arguments, because the specialization stores everything
 * else that a new compilation needs. */
kjit_status kj_revive(kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  kjit_kernel *kernel = specialization->kernel;
  kj_call call = { .kernel = kernel,
                   .config = &no_config,
                   .runtime = kj_get_runtime(kernel->context),
                   .device = specialization->device };
  call.key = specialization->key;
  call.key_count = specialization->key_count;
  while (!kj_hold(specialization)) {
    KJ_TRY(kj_check_device(call.device, diagnostics));
    KJ_TRY(kj_specialize(&call, specialization->hash, diagnostics, &specialization));
  }
  return KJIT_OK;
}

static kjit_status check_request(kjit_kernel *kernel, kjit_device *device, const char *signature,
                                 const char *function)
{
  if (ki_is_forked(kernel->context)) return KJIT_ERROR_FORKED;
  if (!signature)
    return ki_fail_call(kernel->context, KJIT_ERROR_MISUSE, "%s: signature is NULL", function);
  if (device && device->context != kernel->context)
    return ki_fail_call(kernel->context, KJIT_ERROR_ARGUMENT,
                        "the device and the kernel belong to different contexts");
  return KJIT_OK;
}

kjit_status kjit_specialize(kjit_kernel *kernel, kjit_device *device, const char *signature,
                            kjit_specialization **specialization)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  if (!specialization)
    return ki_fail_call(kernel->context, KJIT_ERROR_MISUSE,
                        "kjit_specialize: specialization is NULL");
  KJ_TRY(check_request(kernel, device, signature, "kjit_specialize"));
  kj_diagnostics diagnostics = { 0 };
  (void)specialize_signature(kernel, device, signature, &diagnostics, specialization);
  return ki_finish_call(kernel->context, &diagnostics);
}

/* ---- background compilation ---- */

typedef struct signature_job {
  kj_job base;
  kjit_kernel *kernel;
  kjit_module *module; /* retained, because the module owns the kernel */
  kjit_device *device;
  void (*done)(void *user, kjit_status status, kjit_specialization *specialization);
  void *user;
  char signature[];
} signature_job;

static void run_signature(kj_job *base, bool is_given_up)
{
  signature_job *job = (signature_job *)base;
  kj_diagnostics diagnostics = { 0 };
  kjit_specialization *made = NULL;
  kjit_status status = KJIT_NOT_READY;
  if (!is_given_up) {
    status = specialize_signature(job->kernel, job->device, job->signature, &diagnostics, &made);
    (void)ki_finish_call(job->kernel->context, &diagnostics);
  }
  ki_host_code code;
  ki_enter_host(&code, job->kernel->context);
  job->done(job->user, status, status == KJIT_OK ? made : NULL);
  ki_leave_host(&code);
  kjit_release_module(job->module);
  free(job);
}

kjit_status kjit_specialize_async(kjit_kernel *kernel, kjit_device *device, const char *signature,
                                  void (*done)(void *user, kjit_status status,
                                               kjit_specialization *specialization),
                                  void *user)
{
  if (!kernel) return KJIT_ERROR_MISUSE;
  if (!done)
    return ki_fail_call(kernel->context, KJIT_ERROR_MISUSE, "kjit_specialize_async: done is NULL");
  KJ_TRY(check_request(kernel, device, signature, "kjit_specialize_async"));
  kj_runtime *runtime = kj_get_runtime(kernel->context);
  size_t bytes = strlen(signature) + 1;
  signature_job *job = runtime ? malloc(sizeof *job + bytes) : NULL;
  if (job) {
    *job = (signature_job){ .base.run = run_signature,
                            .kernel = kernel,
                            .module = kjit_retain_module(kernel->module),
                            .device = device,
                            .done = done,
                            .user = user };
    memcpy(job->signature, signature, bytes);
    if (kj_queue_job(runtime, &job->base)) return KJIT_OK;
    kjit_release_module(job->module);
    free(job);
  }
  return ki_fail_call(kernel->context, KJIT_ERROR_MEMORY,
                      "cannot start a compilation: out of memory, too many threads, or the context "
                      "is being destroyed");
}

/* ---- compiling many signatures at once ---- */

/* State shared by the compiling threads and the waiting thread. */
typedef struct batch {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  kjit_context *context;
  kjit_device *device;
  struct batch_job *first, **last; /* finished jobs that the waiting thread has not processed yet */
} batch;

typedef struct batch_job {
  kj_job base;
  batch *batch;
  kjit_specialize_item *item;
  kj_diagnostics diagnostics;
  struct batch_job *next; /* next job in the batch's list */
} batch_job;

static void run_item(kj_job *base, bool is_given_up)
{
  batch_job *job = (batch_job *)base;
  batch *b = job->batch;
  kjit_specialize_item *item = job->item;
  if (is_given_up)
    item->status = kj_error(&job->diagnostics, KJIT_NOT_READY, "the context is destroyed");
  else
    item->status = specialize_signature(item->kernel, b->device, item->signature, &job->diagnostics,
                                        &item->specialization);
  kj_lock(&b->mutex, KJ_LOCK_AHEAD);
  job->next = NULL;
  *b->last = job;
  b->last = &job->next;
  pthread_cond_signal(&b->changed);
  kj_unlock(&b->mutex, KJ_LOCK_AHEAD);
}

static batch_job *take_done(batch *b)
{
  kj_lock(&b->mutex, KJ_LOCK_AHEAD);
  while (!b->first) kj_wait_for(&b->changed, &b->mutex);
  batch_job *job = b->first;
  b->first = job->next;
  if (!b->first) b->last = &b->first;
  kj_unlock(&b->mutex, KJ_LOCK_AHEAD);
  return job;
}

/* Returns an item of the application's array. The items have the struct size in the application's
 * version of the headers. */
static kjit_specialize_item *item_at(kjit_specialize_item *items, size_t index)
{
  return (kjit_specialize_item *)((char *)items + index * items->size_bytes);
}

static kjit_status check_items(kjit_context *context, kjit_specialize_item *items, size_t count)
{
  static const char call[] = "kjit_specialize_all";
  for (size_t i = 0; i < count; i++) {
    kjit_specialize_item read, *item = item_at(items, i);
    /* if items had different sizes, the loop could read beyond the end of the array */
    if (item->size_bytes != items->size_bytes)
      return ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "%s: the size_bytes of item %zu is %u, but the size_bytes of the first "
                          "item is %u; both must be equal",
                          call, i, item->size_bytes, items->size_bytes);
    KJ_TRY(ki_read_sized(context, call, KI_SPECIALIZE_ITEM, item, &read));
    item->status = KJIT_NOT_READY;
    item->specialization = NULL;
    if (!item->kernel || !item->signature)
      return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: the %s of item %zu is NULL", call,
                          item->kernel ? "signature" : "kernel", i);
    if (item->kernel->context != context)
      return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                          "kjit_specialize_all: the kernel of item %zu belongs to another context",
                          i);
  }
  return KJIT_OK;
}

/* Reports the diagnostics of all items. The messages of the first failed item are reported last, so
 * that they are the call's messages. */
static kjit_status report_items(kjit_context *context, batch_job *jobs, size_t count)
{
  size_t failed = 0;
  while (failed < count && jobs[failed].item->status == KJIT_OK) failed++;
  for (size_t i = 0; i < count; i++)
    if (i != failed) (void)ki_finish_call(context, &jobs[i].diagnostics);
  if (failed == count) return KJIT_OK;
  (void)ki_finish_call(context, &jobs[failed].diagnostics);
  return jobs[failed].item->status;
}

kjit_status kjit_specialize_all(kjit_context *context, kjit_device *device,
                                kjit_specialize_item *items, size_t count,
                                void (*progress)(void *user, size_t done, size_t count,
                                                 const kjit_specialize_item *item),
                                void *user)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (count && !items)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_specialize_all: items is NULL");
  if (device && device->context != context)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                        "the device and the kernels belong to different contexts");
  KJ_TRY(check_items(context, items, count));
  kj_runtime *runtime = kj_get_runtime(context);
  batch_job *jobs = runtime ? calloc(count + 1, sizeof *jobs) : NULL;
  if (!jobs) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  batch b = { .context = context, .device = device };
  b.last = &b.first;
  pthread_mutex_init(&b.mutex, NULL);
  pthread_cond_init(&b.changed, NULL);
  for (size_t i = 0; i < count; i++) {
    jobs[i] = (batch_job){ .base = { .run = run_item }, .batch = &b, .item = item_at(items, i) };
    bool is_queued = !kj_is_in_background(runtime) && kj_queue_job(runtime, &jobs[i].base);
    /* no thread can be created, so this thread compiles */
    if (!is_queued) run_item(&jobs[i].base, false);
  }
  for (size_t done = 1; done <= count; done++) {
    const batch_job *job = take_done(&b);
    ki_host_code code;
    ki_enter_host(&code, context);
    if (progress) progress(user, done, count, job->item);
    ki_leave_host(&code);
  }
  kjit_status status = report_items(context, jobs, count);
  kj_destroy_mutex(&b.mutex);
  pthread_cond_destroy(&b.changed);
  free(jobs);
  return status;
}
