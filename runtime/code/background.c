#include "code/background.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct job {
  kj_job base;
  kj_call call;
  kjit_specialization *entry;
  kjit_module *module; /* retained: it owns kernel and entry */
  kjit_launch_config config;
  int64_t *extents; /* of the arrays: shape, then strides */
} job;

enum { MOST_THREADS = 64 };

struct kj_background {
  kj_runtime *runtime;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t threads[MOST_THREADS];
  uint32_t thread_count, idle, limit;
  size_t queued;
  kj_job *first, **last;
  bool is_stopping;
};

/* ---- the compilation of an entry as a job ---- */

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

/* The key and the parameter block are not needed: the entry has the one, nothing is launched. */
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
  made->module = kjit_retain_module(call->kernel->module);
  return made;
}

static void run_job(kj_job *base, bool is_given_up)
{
  job *job = (struct job *)base;
  kj_diagnostics diagnostics = { 0 };
  if (is_given_up) kj_abandon_entry(job->entry);
  else if (kj_compile_entry(&job->call, job->entry, &diagnostics) == KJIT_OK)
    (void)ki_finish_call(job->call.kernel->context, &diagnostics);
  kj_free_diagnostics(&diagnostics); /* of a failure: the next launch of this key reports it */
  kjit_module *module = job->module;
  free_job(job);
  kjit_release_module(module);
}

/* ---- the threads ---- */

static kj_job *take_job(kj_background *background)
{
  pthread_mutex_lock(&background->mutex);
  background->idle++;
  while (!background->first && !background->is_stopping)
    pthread_cond_wait(&background->changed, &background->mutex);
  background->idle--;
  kj_job *taken = background->is_stopping ? NULL : background->first;
  if (taken) background->first = taken->next;
  if (taken) background->queued--;
  if (taken && !background->first) background->last = &background->first;
  pthread_mutex_unlock(&background->mutex);
  return taken;
}

/* What this thread works for, if it is one of these. */
static _Thread_local const kj_background *own_background;

bool kj_is_in_background(const kj_runtime *runtime)
{
  return own_background && own_background->runtime == runtime;
}

static void *work(void *data)
{
  own_background = data;
  for (kj_job *job; (job = take_job(data));) job->run(job, false);
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
  pthread_mutex_lock(&runtime->context->runtime_mutex);
  if (!runtime->background) runtime->background = make_background(runtime);
  kj_background *background = runtime->background;
  pthread_mutex_unlock(&runtime->context->runtime_mutex);
  return background;
}

/* Under mutex, with the job in the queue. False: it has nobody who would do it. */
static bool provide_thread(kj_background *background)
{
  if (background->idle >= background->queued || background->thread_count == background->limit)
    return true;
  if (!pthread_create(&background->threads[background->thread_count], NULL, work, background))
    background->thread_count++;
  return background->thread_count > 0;
}

bool kj_queue_job(kj_runtime *runtime, kj_job *job)
{
  kj_background *background = get_background(runtime);
  if (!background) return false;
  pthread_mutex_lock(&background->mutex);
  if (background->is_stopping) {
    pthread_mutex_unlock(&background->mutex);
    return false;
  }
  kj_job **place = background->last;
  job->next = NULL;
  *place = job;
  background->last = &job->next;
  background->queued++;
  bool is_queued = provide_thread(background);
  if (is_queued) pthread_cond_signal(&background->changed);
  if (!is_queued) {
    *(background->last = place) = NULL;
    background->queued--;
  }
  pthread_mutex_unlock(&background->mutex);
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

/* The job of an entry, taken out of the queue; NULL: it is not there (any more). */
static kj_job *take_job_of(kj_background *background, const kjit_specialization *entry)
{
  pthread_mutex_lock(&background->mutex);
  kj_job **at = &background->first;
  while (*at && !((*at)->run == run_job && ((job *)*at)->entry == entry)) at = &(*at)->next;
  kj_job *taken = *at;
  if (taken) {
    *at = taken->next;
    if (background->last == &taken->next) background->last = at;
    background->queued--;
  }
  pthread_mutex_unlock(&background->mutex);
  return taken;
}

void kj_hurry(kj_runtime *runtime, const kjit_specialization *entry)
{
  pthread_mutex_lock(&runtime->context->runtime_mutex);
  kj_background *background = runtime->background;
  pthread_mutex_unlock(&runtime->context->runtime_mutex);
  kj_job *taken = background ? take_job_of(background, entry) : NULL;
  if (taken) taken->run(taken, false);
}

void kj_stop_background(kj_runtime *runtime)
{
  kj_background *background = runtime->background;
  if (!background) return;
  pthread_mutex_lock(&background->mutex);
  background->is_stopping = true; /* no thread is added from now on */
  pthread_cond_broadcast(&background->changed);
  uint32_t count = background->thread_count;
  pthread_mutex_unlock(&background->mutex);
  for (uint32_t i = 0; i < count; i++) pthread_join(background->threads[i], NULL);
  while (background->first) {
    kj_job *job = background->first;
    background->first = job->next;
    job->run(job, true);
  }
  pthread_mutex_destroy(&background->mutex);
  pthread_cond_destroy(&background->changed);
  free(background);
  runtime->background = NULL;
}
