#include "dispatch/background.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
  struct job *next;
  kj_call call;
  kjit_specialization *entry;
  kjit_module *module; /* retained: it owns kernel and entry */
  kjit_launch_config config;
  int64_t *extents; /* of the arrays: shape, then strides */
} job;

struct kj_background {
  kj_runtime *runtime;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_t thread;
  job *first, **last;
  bool is_stopping;
};

/* ---- jobs ---- */

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

/* The key and the parameter block are not needed: the entry has the one, nothing is launched. */
static job *make_job(const kj_call *call, kjit_specialization *entry)
{
  uint32_t count = call->kernel->parameter_count;
  job *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->call = *call;
  made->entry = entry;
  made->config = *call->config;
  made->call.config = &made->config;
  made->call.key = NULL;
  made->call.parameters = NULL;
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

static void finish_job(job *job, bool is_given_up)
{
  kj_diagnostics diagnostics = { 0 };
  if (is_given_up) kj_abandon_entry(job->entry);
  else if (kj_compile_entry(&job->call, job->entry, &diagnostics) == KJIT_OK) (void)kj_finish_call(job->call.kernel->context, &diagnostics);
  kj_free_diagnostics(&diagnostics); /* of a failure: the next launch of this key reports it */
  kjit_module *module = job->module;
  free_job(job);
  kjit_release_module(module);
}

/* ---- the worker ---- */

static job *take_job(kj_background *background)
{
  pthread_mutex_lock(&background->mutex);
  while (!background->first && !background->is_stopping) pthread_cond_wait(&background->changed, &background->mutex);
  job *taken = background->is_stopping ? NULL : background->first;
  if (taken) background->first = taken->next;
  if (taken && !background->first) background->last = &background->first;
  pthread_mutex_unlock(&background->mutex);
  return taken;
}

static void *work(void *data)
{
  for (job *job; (job = take_job(data));) finish_job(job, false);
  return NULL;
}

static kj_background *start(kj_runtime *runtime)
{
  kj_background *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->runtime = runtime;
  made->last = &made->first;
  pthread_mutex_init(&made->mutex, NULL);
  pthread_cond_init(&made->changed, NULL);
  if (!pthread_create(&made->thread, NULL, work, made)) return made;
  pthread_mutex_destroy(&made->mutex);
  pthread_cond_destroy(&made->changed);
  free(made);
  return NULL;
}

static kj_background *get_background(kj_runtime *runtime)
{
  pthread_mutex_lock(&runtime->context->runtime_mutex);
  if (!runtime->background) runtime->background = start(runtime);
  kj_background *background = runtime->background;
  pthread_mutex_unlock(&runtime->context->runtime_mutex);
  return background;
}

bool kj_compile_later(const kj_call *call, kjit_specialization *entry)
{
  kj_background *background = get_background(call->runtime);
  job *job = background ? make_job(call, entry) : NULL;
  if (!job) return false;
  pthread_mutex_lock(&background->mutex);
  *background->last = job;
  background->last = &job->next;
  pthread_cond_signal(&background->changed);
  pthread_mutex_unlock(&background->mutex);
  return true;
}

void kj_stop_background(kj_runtime *runtime)
{
  kj_background *background = runtime->background;
  if (!background) return;
  pthread_mutex_lock(&background->mutex);
  background->is_stopping = true;
  pthread_cond_signal(&background->changed);
  pthread_mutex_unlock(&background->mutex);
  pthread_join(background->thread, NULL);
  while (background->first) {
    job *job = background->first;
    background->first = job->next;
    finish_job(job, true);
  }
  pthread_mutex_destroy(&background->mutex);
  pthread_cond_destroy(&background->changed);
  free(background);
  runtime->background = NULL;
}
