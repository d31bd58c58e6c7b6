/* Compiles funcs as C functions for calls by the application, or loads them from the disk cache,
 * and keeps the code in a list of the kernel object. With kjit_config.plain_code the first call may
 * run plain code, which is compiled with few optimizations. A background thread then compiles the
 * best code and puts it before the plain code in the list. Plain code stays in the list, because
 * calls may still run it. */
#include "launch/function_code.h"

#include <stdlib.h>
#include <string.h>

#include "code/compile_thread.h"
#include "report/report.h"

/* ---- the list ---- */

static bool is_same(const kj_argument *a, const kj_argument *b)
{
  if (a->kind != b->kind || a->type != b->type) return false;
  if (a->kind == KJ_ARGUMENT_FUNCTION) return a->function == b->function;
  return a->kind != KJ_ARGUMENT_CONST || a->integer == b->integer;
}

/* Returns the best code or, if there is none, plain code of an allowed kind, or NULL. */
static kj_function_code *find_code(const kjit_kernel *kernel, const kj_function_key *key,
                                   kj_plain allowed)
{
  for (kj_function_code *code = atomic_load_explicit(&kernel->functions, memory_order_acquire);
       code; code = code->next) {
    uint32_t i = 0;
    while (i < kernel->parameter_count && is_same(&code->arguments[i], &key->arguments[i])) i++;
    if (i == kernel->parameter_count && code->checks == key->checks &&
        code->is_interruptible == key->is_interruptible && code->plain_kind <= allowed)
      return code;
  }
  return NULL;
}

static void free_code(kj_runtime *runtime, kj_function_code *code)
{
  KJ_ASSERT(atomic_load(&code->best) != KJ_BEST_QUEUED);
  if (code->loaded) runtime->interface->unload(runtime->compiler, code->loaded);
  kj_unload_image(code->image);
  kj_free_code(&code->code);
  pthread_cond_destroy(&code->changed);
  free(code);
}

static void free_functions(kjit_kernel *kernel)
{
  for (kj_function_code *code = atomic_load(&kernel->functions), *next; code; code = next) {
    next = code->next;
    free_code(kj_get_runtime(kernel->context), code);
  }
}

/* Puts the code at the list's head. If another thread has added the same kind of code before, frees
 * the code and returns the other thread's code: the best code or, for plain code, plain code of the
 * same kind. */
static kj_function_code *keep(kjit_kernel *kernel, const kj_function_key *key,
                              kj_function_code *made)
{
  kj_lock(&kernel->mutex, KJ_LOCK_KERNEL);
  kj_function_code *kept = find_code(kernel, key, made->plain_kind);
  if (!kept) {
    kept = made;
    made->next = atomic_load_explicit(&kernel->functions, memory_order_relaxed);
    kernel->free_functions = free_functions;
    atomic_store_explicit(&kernel->functions, made, memory_order_release);
  }
  kj_unlock(&kernel->mutex, KJ_LOCK_KERNEL);
  if (kept != made) free_code(kj_get_runtime(kernel->context), made);
  return kept;
}

/* ---- one compilation ---- */

static kjit_status load(kjit_kernel *kernel, kj_runtime *runtime, kj_function_code *made,
                        kj_diagnostics *diagnostics)
{
  kj_outside outside;
  kj_cpu_kernel entry = NULL;
  KJ_TRY(kj_list_outside(kernel->module, diagnostics, &outside));
  kjit_status status =
    kj_call_loader(runtime, &made->code, &outside, diagnostics, &made->loaded, &entry);
  kj_free_outside(&outside);
  made->entry = (void (*)(void))entry;
  return status;
}

static kjit_status compile_and_load(const kj_compile_request *request, const kj_disk_key *key,
                                    kj_function_code *made, kj_diagnostics *diagnostics)
{
  kjit_kernel *kernel = made->kernel;
  kj_runtime *runtime = kj_get_runtime(kernel->context);
  KJ_TRY(kj_get_compiler(runtime, diagnostics));
  const size_t first = diagnostics->count;
  kjit_status status = kj_call_compiler(runtime, request, diagnostics, &made->code);
  if (status != KJIT_OK && key) kj_publish_error(request, key, diagnostics, first, status);
  KJ_TRY(status);
  /* a damaged child process may set is_plain */
  made->code.is_plain = made->code.is_plain && request->plain != KJ_PLAIN_NONE;
  made->plain_kind = made->code.is_plain ? request->plain : KJ_PLAIN_NONE;
  kj_note_made(&made->code);
  KJ_TRY(load(kernel, runtime, made, diagnostics));
  if (key && !made->code.is_plain) kj_publish_function(request, key, made);
  return KJIT_OK;
}

static void count_compilation(kjit_context *context, uint64_t start, kjit_status status)
{
  atomic_fetch_add_explicit(&context->counters.compile_time_ns, kj_clock_ns() - start,
                            memory_order_relaxed);
  if (status == KJIT_OK)
    atomic_fetch_add_explicit(&context->counters.compilations, 1, memory_order_relaxed);
}

/* Loads the code or the error of its compilation from the disk cache, or compiles it. */
static kjit_status fetch_or_compile(const kj_compile_request *request, kj_function_code *made,
                                    kj_diagnostics *diagnostics)
{
  kjit_kernel *kernel = made->kernel;
  kj_disk_key key = { 0 };
  kjit_status status = KJIT_OK;
  bool has_key = kj_make_function_key(kernel, request, &key);
  if (!has_key || !kj_fetch_function(request, &key, made, diagnostics, &status)) {
    const uint64_t start = kj_clock_ns();
    status = compile_and_load(request, has_key ? &key : NULL, made, diagnostics);
    count_compilation(kernel->context, start, status);
  }
  kj_free_disk_key(&key);
  free(made->code.data); /* the loaded code is a copy */
  made->code.data = NULL;
  return status;
}

/* Gets the code and puts it into the list. If several threads get the same code, only the first
 * result is kept. */
static kjit_status make_code(kjit_kernel *kernel, const kj_function_key *key, kj_plain allowed,
                             kj_diagnostics *diagnostics, kj_function_code **code)
{
  kj_runtime *runtime = kj_get_runtime(kernel->context);
  size_t argument_bytes = kernel->parameter_count * sizeof *key->arguments;
  kj_function_code *made = runtime ? calloc(1, sizeof *made + argument_bytes) : NULL;
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  made->kernel = kernel;
  made->checks = key->checks;
  made->is_interruptible = key->is_interruptible;
  memcpy(made->arguments, key->arguments, argument_bytes);
  pthread_cond_init(&made->changed, NULL);
  const kj_signature signature = { .arguments = made->arguments, .count = kernel->parameter_count };
  const kj_compile_request request = { .module = kernel->module,
                                       .kernel = kernel->function,
                                       .signature = &signature,
                                       .target = { .kind = KJ_TARGET_CPU },
                                       .stage = KJIT_STAGE_OBJECT,
                                       .checks = made->checks,
                                       .symbol = KJ_FUNCTION_SYMBOL,
                                       .is_interruptible = made->is_interruptible,
                                       .has_record = true,
                                       .plain = allowed };
  kjit_status status = fetch_or_compile(&request, made, diagnostics);
  if (status == KJIT_OK) *code = keep(kernel, key, made);
  else free_code(runtime, made);
  return status;
}

/* ---- the best code after plain code ---- */

static void set_best(kj_function_code *plain, kj_best best)
{
  kj_lock(&plain->kernel->mutex, KJ_LOCK_KERNEL);
  atomic_store_explicit(&plain->best, (int)best, memory_order_relaxed);
  pthread_cond_broadcast(&plain->changed);
  kj_unlock(&plain->kernel->mutex, KJ_LOCK_KERNEL);
}

static kjit_status compile_best(kj_function_code *plain)
{
  kj_diagnostics diagnostics = { 0 };
  kj_function_code *best;
  const kj_function_key key = { plain->arguments, plain->checks, plain->is_interruptible };
  kjit_status status = make_code(plain->kernel, &key, KJ_PLAIN_NONE, &diagnostics, &best);
  /* after an interrupt the next call tries to compile the best code again */
  if (status != KJIT_OK && status != KJIT_ERROR_INTERRUPTED)
    kj_warn_of_plain(plain->kernel, "function", "calls", &diagnostics);
  kj_free_diagnostics(&diagnostics);
  return status;
}

static void run_job(kj_job *job, bool is_given_up)
{
  kj_function_code *plain = (kj_function_code *)job;
  kjit_module *module = plain->kernel->module;
  kjit_status status = is_given_up ? KJIT_ERROR_INTERRUPTED : compile_best(plain);
  set_best(plain, status == KJIT_ERROR_INTERRUPTED ? KJ_BEST_WANTED : KJ_BEST_ENDED);
  kjit_release_module(module); /* may free the code */
}

/* Queues the compilation of the best code, unless another thread has done so. If no background
 * thread can be started, the next call tries again. */
static void queue_best(kj_runtime *runtime, kj_function_code *plain)
{
  kjit_kernel *kernel = plain->kernel;
  if (atomic_load_explicit(&plain->best, memory_order_relaxed) != KJ_BEST_WANTED) return;
  kj_lock(&kernel->mutex, KJ_LOCK_KERNEL);
  bool begins = atomic_load_explicit(&plain->best, memory_order_relaxed) == KJ_BEST_WANTED;
  if (begins) atomic_store_explicit(&plain->best, KJ_BEST_QUEUED, memory_order_relaxed);
  kj_unlock(&kernel->mutex, KJ_LOCK_KERNEL);
  if (!begins) return;
  plain->job.run = run_job;
  kjit_module *module = kjit_retain_module(kernel->module); /* the module owns the code */
  if (kj_queue_job(runtime, &plain->job)) return;
  set_best(plain, KJ_BEST_WANTED);
  kjit_release_module(module);
}

/* Waits until no thread compiles the best code, and compiles it in this thread if no thread has
 * begun. */
static void wait_for_best(kj_runtime *runtime, kj_function_code *plain)
{
  kj_hurry_job(runtime, &plain->job);
  kj_lock(&plain->kernel->mutex, KJ_LOCK_KERNEL);
  while (atomic_load_explicit(&plain->best, memory_order_relaxed) == KJ_BEST_QUEUED)
    kj_wait_for(&plain->changed, &plain->kernel->mutex);
  kj_unlock(&plain->kernel->mutex, KJ_LOCK_KERNEL);
}

/* Waits for the compilation of the best code that another call has queued. Returns the best code,
 * or NULL if no thread has compiled it. */
static kj_function_code *await_best(kjit_kernel *kernel, kj_runtime *runtime,
                                    const kj_function_key *key)
{
  kj_function_code *plain = find_code(kernel, key, KJ_PLAIN_ANY);
  if (plain && plain->plain_kind != KJ_PLAIN_NONE && !kj_is_in_background(runtime))
    wait_for_best(runtime, plain);
  return find_code(kernel, key, KJ_PLAIN_NONE);
}

kjit_status kj_get_function_code(kjit_kernel *kernel, const kj_function_key *key, kj_plain allowed,
                                 kj_diagnostics *diagnostics, kj_function_code **code)
{
  kj_runtime *runtime = kj_get_runtime(kernel->context);
  *code = find_code(kernel, key, allowed);
  if (!*code && runtime) *code = await_best(kernel, runtime, key);
  if (!*code && allowed != KJ_PLAIN_NONE && runtime && kj_is_background_stopped(runtime))
    allowed = KJ_PLAIN_NONE; /* the best code would never replace plain code */
  if (!*code) KJ_TRY(make_code(kernel, key, allowed, diagnostics, code));
  if ((*code)->plain_kind != KJ_PLAIN_NONE) queue_best(runtime, *code);
  return KJIT_OK;
}
