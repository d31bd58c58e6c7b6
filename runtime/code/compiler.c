/* Loads the compiler library, libkjit-compiler, and runs compilations on background threads. The
 * library is opened at the first cache miss, so a process in which all calls hit the cache never
 * loads LLVM. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/child.h"
#include "code/compile_thread.h"
#include "code/disk.h"
#include "support/paths.h"

static void *try_open(const char *path, kj_buffer *reasons)
{
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char *reason = dlerror();
  kj_append_format(reasons, "%s%s", reasons->length ? "; " : "", reason ? reason : path);
  return NULL;
}

/* Appends the path of the compiler library in the directory of libkjit, or nothing if that
 * directory is unknown. */
static void append_path_beside(kj_buffer *path)
{
  kj_append_own_folder(path);
  if (path->length) kj_append_text(path, kj_compiler_file);
}

static void *open_beside(kj_buffer *reasons)
{
  kj_buffer path = { 0 };
  append_path_beside(&path);
  void *library = path.length && !path.failed ? try_open(path.text, reasons) : NULL;
  reasons->failed |= path.failed;
  kj_free_buffer(&path);
  return library;
}

static kjit_status open_library(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  kj_buffer reasons = { 0 };
  const char *path = runtime->context->config.compiler_path;
  void *library = path ? try_open(path, &reasons) : open_beside(&reasons);
  if (!library && !path && !reasons.failed) library = try_open(kj_compiler_file, &reasons);
  if (!library) {
    kjit_status status = reasons.failed ? kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory")
                                        : kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                                                   "the compiler cannot be loaded: %s",
                                                   reasons.text ? reasons.text : kj_compiler_file);
    kj_free_buffer(&reasons);
    return status;
  }
  kj_free_buffer(&reasons);
  /* the library is never closed, because LLVM keeps process-wide state */
  runtime->compiler_library = library;
  return KJIT_OK;
}

static kjit_status check_interface(const kj_compiler_interface *interface,
                                   kj_diagnostics *diagnostics)
{
  enum { FIRST_WITH_BUILD = 5 };
  if (!interface)
    return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                    "the compiler library returned no interface");
  bool has_build = interface->version >= FIRST_WITH_BUILD && interface->build;
  if (interface->version == KJ_COMPILER_VERSION && interface->size_bytes == sizeof *interface &&
      has_build && !strcmp(interface->build, kj_build))
    return KJIT_OK;
  Dl_info own = { 0 }, other = { 0 };
  (void)dladdr(kj_build, &own);
  (void)dladdr(interface, &other);
  return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                  "libkjit and its compiler come from different builds: %s is build %s, %s is "
                  "build %s; install both from the same build",
                  own.dli_fname ? own.dli_fname : "libkjit", kj_build,
                  other.dli_fname ? other.dli_fname : "the compiler",
                  has_build ? interface->build : "of a version before 0.2");
}

/* Opens the library and finds its interface. */
static kjit_status find_interface(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  if (runtime->interface) return KJIT_OK;
  if (!runtime->compiler_library) KJ_TRY(open_library(runtime, diagnostics));
  const kj_compiler_interface *(*get)(void);
  *(void **)&get = dlsym(runtime->compiler_library, "kjit_get_compiler_interface");
  if (!get)
    return kj_error(
      diagnostics, KJIT_ERROR_NO_COMPILER,
      "the library at compiler_path is not kjit's compiler: it has no kjit_get_compiler_interface");
  const kj_compiler_interface *interface = get();
  KJ_TRY(check_interface(interface, diagnostics));
  runtime->interface = interface;
  return KJIT_OK;
}

kjit_status kj_get_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  if (atomic_load_explicit(&runtime->has_compiler, memory_order_acquire)) return KJIT_OK;
  kj_lock(&runtime->compiler_mutex, KJ_LOCK_COMPILER);
  bool is_child = runtime->context->config.compile_in_child && !runtime->interface;
  kjit_status status =
    is_child ? kj_open_children(runtime, diagnostics) : find_interface(runtime, diagnostics);
  if (status == KJIT_OK && !runtime->compiler) status = kj_create_compiler(runtime, diagnostics);
  if (status == KJIT_OK) atomic_store_explicit(&runtime->has_compiler, true, memory_order_release);
  kj_unlock(&runtime->compiler_mutex, KJ_LOCK_COMPILER);
  return status;
}

static bool identify_compiler_file(const kj_runtime *runtime, kj_digest *identity)
{
  const char *given = runtime->context->config.compiler_path;
  kj_buffer beside = { 0 };
  if (!given) append_path_beside(&beside);
  const char *path = given ? given : beside.failed ? NULL : beside.text;
  bool is_identified = path && kj_identify_file(path, identity);
  kj_free_buffer(&beside);
  return is_identified;
}

/* Computes the identity of the loaded compiler library or, if none is loaded, of the file that
 * would be loaded. Returns false if only the loader's search path could find the library. The file
 * is read only once. If another file replaces it before the library is loaded, launches still find
 * disk cache entries in the first file. After the library is loaded, they find only entries of the
 * loaded library. A context that compiles in child processes reads the file at each call, because a
 * child may load a new file at any time. */
bool kj_identify_compiler(kj_runtime *runtime, kj_digest *identity)
{
  bool is_child = runtime->context->config.compile_in_child;
  kj_lock(&runtime->compiler_mutex, KJ_LOCK_COMPILER);
  const kj_compiler_interface *interface = runtime->interface;
  bool is_loaded = interface && !is_child;
  kj_disk *disk = runtime->disk;
  if (!is_loaded && (is_child || !disk->knows_compiler_file))
    disk->knows_compiler_file = identify_compiler_file(runtime, &disk->compiler_file);
  bool is_identified = is_loaded || disk->knows_compiler_file;
  *identity = disk->compiler_file;
  kj_unlock(&runtime->compiler_mutex, KJ_LOCK_COMPILER);
  if (is_loaded) *identity = kj_identify_address((const void *)(uintptr_t)interface->compile);
  return is_identified;
}

kjit_status kj_use_compiler(kjit_context *context, const kj_compiler_interface *interface,
                            kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(check_interface(interface, diagnostics));
  kj_lock(&runtime->compiler_mutex, KJ_LOCK_COMPILER);
  runtime->interface = interface;
  kj_unlock(&runtime->compiler_mutex, KJ_LOCK_COMPILER);
  return KJIT_OK;
}

/* ---- background compilation ---- */

typedef struct job {
  kj_job base;
  kj_call call;
  kjit_specialization *entry;
  kjit_module *module; /* retained, because the module owns kernel and entry */
  kjit_launch_config config;
  int64_t *extents; /* for each parameter: KJ_MAX_RANK extents, then KJ_MAX_RANK strides */
} job;

enum { MOST_THREADS = 64 };

struct kj_background {
  kj_runtime *runtime;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  kj_large_thread threads[MOST_THREADS];
  uint32_t thread_count, idle, limit;
  size_t queued;
  size_t running; /* number of jobs that threads have taken from the queue and not completed */
  kj_job *first, **last;
  bool is_stopping;
  bool is_joining; /* true while a thread joins the background threads */
};

/* Checks that the queue length equals `queued` and that `last` points to the end of the queue. The
 * caller holds mutex. */
static void check_queue(const kj_background *background)
{
  size_t count = 0;
  kj_job *const *end = &background->first;
  if (!KJ_HAS_ASSERTIONS) return;
  KJ_ASSERT(kj_is_locked_here(&background->mutex));
  for (; *end; end = &(*end)->next) count++;
  KJ_ASSERT(end == background->last && count == background->queued);
  KJ_ASSERT(background->thread_count <= background->limit && background->limit <= MOST_THREADS);
  KJ_ASSERT(background->idle <= background->thread_count);
}

static void free_job(job *job)
{
  free(job->call.bound);
  free(job->extents);
  free(job);
}

static const int64_t *keep_extents(int64_t *place, const int64_t *extents, uint32_t rank)
{
  if (!extents) return NULL;
  memcpy(place, extents, rank * sizeof *place);
  return place;
}

static void run_job(kj_job *base, bool is_given_up);

/* Copies the data of a call that a background thread needs. The copy has no key, because the
 * specialization has it, and no parameter block, because the job launches nothing. */
static job *make_job(const kj_call *call, kjit_specialization *entry)
{
  uint32_t count = call->kernel->parameter_count;
  job *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->base.run = run_job;
  made->call = *call;
  made->entry = entry;
  made->config = *call->config;
  made->call.config = &made->config;
  made->call.key = NULL;
  made->call.parameters = made->call.own_parameters = NULL;
  made->call.bound = aligned_alloc(_Alignof(kj_bound), (count + 1) * sizeof(kj_bound));
  made->extents = calloc((size_t)count * 2 * KJ_MAX_RANK + 1, sizeof *made->extents);
  if (!made->call.bound || !made->extents) {
    free_job(made);
    return NULL;
  }
  for (uint32_t i = 0; i < count; i++) {
    kj_bound *bound = &made->call.bound[i];
    int64_t *place = made->extents + (size_t)i * 2 * KJ_MAX_RANK;
    *bound = call->bound[i];
    if (bound->kind != KJ_ARGUMENT_ARRAY || !bound->rank) continue;
    bound->shape = keep_extents(place, bound->shape, bound->rank);
    bound->strides = keep_extents(place + KJ_MAX_RANK, bound->strides, bound->rank);
  }
  KJ_ASSERT(entry->kernel == call->kernel && atomic_load(&entry->state) == KJ_PENDING);
  made->module = kjit_retain_module(call->kernel->module);
  return made;
}

void kj_warn_of_plain(const kjit_kernel *kernel, const char *kind, const char *callers,
                      const kj_diagnostics *diagnostics)
{
  kj_diagnostics warnings = { 0 };
  const char *reason = "";
  for (size_t i = diagnostics->count; i-- > 0;)
    if (diagnostics->items[i].severity == KJIT_SEVERITY_ERROR)
      reason = diagnostics->items[i].message;
  kj_report(&warnings, &kernel->module->sources, kernel->function->decl->location,
            KJIT_SEVERITY_WARNING, KJIT_OK,
            "%s `%s`: %s keep their plain code, because the best code cannot be compiled: %s", kind,
            kernel->function->decl->name, callers, reason);
  (void)ki_finish_call(kernel->context, &warnings);
  kj_free_diagnostics(&warnings);
}

static void run_job(kj_job *base, bool is_given_up)
{
  job *job = (struct job *)base;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = KJIT_NOT_READY;
  /* the compilation of the plain code has reported the warnings and remarks already */
  bool has_plain = job->entry->plain;
  if (is_given_up) kj_abandon_entry(job->entry);
  else status = kj_compile_entry(&job->call, job->entry, &diagnostics);
  if (status == KJIT_OK && !has_plain)
    (void)ki_finish_call(job->call.kernel->context, &diagnostics);
  /* after an interrupt, the next launch tries again */
  bool is_kept = status != KJIT_OK && status != KJIT_ERROR_INTERRUPTED;
  if (is_kept && has_plain && !is_given_up)
    kj_warn_of_plain(job->call.kernel, "kernel", "launches", &diagnostics);
  kj_free_diagnostics(&diagnostics); /* if the compilation failed, the next launch with this key
                                      * reports the error */
  kjit_module *module = job->module;
  free_job(job);
  kjit_release_module(module);
}

static kj_job *take_job(kj_background *background)
{
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  background->idle++;
  while (!background->first && !background->is_stopping)
    kj_wait_for(&background->changed, &background->mutex);
  background->idle--;
  kj_job *taken = background->is_stopping ? NULL : background->first;
  if (taken) background->first = taken->next;
  if (taken) background->queued--, background->running++;
  if (taken && !background->first) background->last = &background->first;
  check_queue(background);
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
  return taken;
}

/* The pool to which this thread belongs, or NULL if this is no background thread. */
static _Thread_local const kj_background *own_background;

bool kj_is_in_background(const kj_runtime *runtime)
{
  return own_background && own_background->runtime == runtime;
}

/* Runs a job that was taken from the queue. */
static void run_taken(kj_background *background, kj_job *job)
{
  job->run(job, false);
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  KJ_ASSERT(background->running);
  if (!--background->running) pthread_cond_broadcast(&background->changed);
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
}

static void *work(void *data)
{
  own_background = data;
  for (kj_job *job; (job = take_job(data));) run_taken(data, job);
  return NULL;
}

static uint32_t choose_limit(const kjit_context *context)
{
  enum { DEFAULT_MOST = 8 };
  uint32_t given = context->config.compile_threads;
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  if (given) return given < MOST_THREADS ? given : MOST_THREADS;
  return cores < 1 ? 1 : cores > DEFAULT_MOST ? DEFAULT_MOST : (uint32_t)cores;
}

static kj_background *make_background(kj_runtime *runtime)
{
  kj_background *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->runtime = runtime;
  made->last = &made->first;
  made->limit = choose_limit(runtime->context);
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->changed, NULL);
  return made;
}

static kj_background *get_background(kj_runtime *runtime)
{
  kj_lock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  if (!runtime->background) runtime->background = make_background(runtime);
  kj_background *background = runtime->background;
  kj_unlock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  return background;
}

/* Starts a thread if there are more queued jobs than idle threads. Returns false if no thread can
 * run the queued job. The caller holds mutex. */
static bool provide_thread(kj_background *background)
{
  if (background->idle >= background->queued || background->thread_count == background->limit)
    return true;
  if (kj_start_large_thread(&background->threads[background->thread_count], work, background))
    background->thread_count++;
  return background->thread_count > 0;
}

bool kj_queue_job(kj_runtime *runtime, kj_job *job)
{
  kj_background *background = get_background(runtime);
  if (!background) return false;
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  if (background->is_stopping) {
    kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
    return false;
  }
  kj_job **place = background->last;
  check_queue(background);
  job->next = NULL;
  *place = job;
  background->last = &job->next;
  background->queued++;
  bool is_queued = provide_thread(background);
  /* several kinds of waiting threads share the condition variable */
  if (is_queued) pthread_cond_broadcast(&background->changed);
  if (!is_queued) {
    *(background->last = place) = NULL;
    background->queued--;
  }
  check_queue(background);
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
  return is_queued;
}

bool kj_compile_later(const kj_call *call, kjit_specialization *entry)
{
  job *job = make_job(call, entry);
  if (!job) return false;
  if (kj_queue_job(call->runtime, &job->base)) return true;
  kjit_release_module(job->module);
  free_job(job);
  return false;
}

static bool is_job_of(const kj_job *job, const void *entry)
{
  return job->run == run_job && ((const struct job *)job)->entry == entry;
}

static bool is_same_job(const kj_job *job, const void *wanted) { return job == wanted; }

/* Removes a job from the queue and returns it, or NULL if the queue does not contain it. */
static kj_job *take_queued(kj_background *background,
                           bool (*is_wanted)(const kj_job *job, const void *wanted),
                           const void *wanted)
{
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  kj_job **at = &background->first;
  while (*at && !is_wanted(*at, wanted)) at = &(*at)->next;
  kj_job *taken = *at;
  if (taken) {
    *at = taken->next;
    if (background->last == &taken->next) background->last = at;
    background->queued--;
    background->running++;
  }
  check_queue(background);
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
  return taken;
}

static void hurry(kj_runtime *runtime, bool (*is_wanted)(const kj_job *job, const void *wanted),
                  const void *wanted)
{
  kj_lock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  kj_background *background = runtime->background;
  kj_unlock(&runtime->context->runtime_mutex, KJ_LOCK_RUNTIME);
  kj_job *taken = background ? take_queued(background, is_wanted, wanted) : NULL;
  if (taken) run_taken(background, taken);
}

void kj_hurry(kj_runtime *runtime, const kjit_specialization *entry)
{
  hurry(runtime, is_job_of, entry);
}

void kj_hurry_job(kj_runtime *runtime, const kj_job *job) { hurry(runtime, is_same_job, job); }

/* Cancels the jobs that have not begun, and ends the threads after their current jobs. If several
 * threads call this function at the same time, the first caller joins the threads, and the other
 * callers wait. */
static void end_threads(kj_background *background)
{
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  background->is_stopping = true; /* no further threads are added from now on */
  pthread_cond_broadcast(&background->changed);
  while (background->is_joining) kj_wait_for(&background->changed, &background->mutex);
  uint32_t count = background->thread_count;
  background->is_joining = count > 0;
  kj_job *jobs = background->first;
  background->first = NULL;
  background->last = &background->first;
  background->queued = 0;
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
  for (uint32_t i = 0; i < count; i++) kj_join_large_thread(&background->threads[i]);
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  background->thread_count -= count;
  background->is_joining = false;
  pthread_cond_broadcast(&background->changed);
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
  while (jobs) {
    kj_job *job = jobs;
    jobs = job->next;
    job->run(job, true);
  }
}

bool kj_is_background_stopped(kj_runtime *runtime)
{
  kj_background *background = get_background(runtime);
  if (!background) return false;
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  bool is_stopped = background->is_stopping;
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
  return is_stopped;
}

void kjit_stop_background(kjit_context *context)
{
  kj_runtime *runtime = context ? __atomic_load_n(&context->runtime, __ATOMIC_ACQUIRE) : NULL;
  if (!runtime || ki_is_forked(context)) return;
  kj_background *background = get_background(runtime);
  if (background) end_threads(background);
}

kjit_status kjit_wait_background(kjit_context *context)
{
  static const char name[] = "kjit_wait_background";
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  kj_runtime *runtime = __atomic_load_n(&context->runtime, __ATOMIC_ACQUIRE);
  if (!runtime) return KJIT_OK;
  if (kj_is_in_background(runtime))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s: a background thread cannot wait for itself", name);
  kj_background *background = get_background(runtime);
  if (!background) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_lock(&background->mutex, KJ_LOCK_BACKGROUND);
  while (background->queued || background->running)
    kj_wait_for(&background->changed, &background->mutex);
  kj_unlock(&background->mutex, KJ_LOCK_BACKGROUND);
  return KJIT_OK;
}

static void stop_background(kj_runtime *runtime)
{
  kj_background *background = runtime->background;
  if (!background) return;
  end_threads(background);
  kj_destroy_mutex(&background->mutex);
  pthread_cond_destroy(&background->changed);
  free(background);
  runtime->background = NULL;
}

/* ---- attachment of the code layer to a runtime ---- */

static void stop_code(kj_attachment *attachment) { stop_background(attachment->runtime); }

static void destroy_code(kj_attachment *attachment)
{
  kj_runtime *runtime = attachment->runtime;
  KJ_ASSERT(!runtime->background && !runtime->loaded);
  kj_close_compile_threads(runtime);
  if (runtime->compiler) runtime->interface->destroy(runtime->compiler);
  kj_free_imports(runtime);
  kj_close_disk(runtime->disk);
  kj_destroy_mutex(&runtime->loaded_mutex);
  kj_destroy_mutex(&runtime->compiler_mutex);
}

kjit_status kj_open_code(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .stop = stop_code, .destroy = destroy_code };
  pthread_mutex_init(&runtime->loaded_mutex, NULL);
  pthread_mutex_init(&runtime->compiler_mutex, NULL);
  kj_attach_to_runtime(runtime, &runtime->code_attachment, &class);
  runtime->disk = kj_open_disk(&runtime->context->config);
  if (runtime->disk) runtime->disk->context = runtime->context;
  if (runtime->disk && kj_open_compile_threads(runtime)) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}
