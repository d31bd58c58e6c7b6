#include "ir/context.h"

#include <stdlib.h>
#include <string.h>

#include "ir/type.h"
#include "support/lock.h"

struct ki_thread_record {
  ki_thread_record *next;
  pthread_t thread;
  /* of the thread: a pthread_t is used again when its thread has ended, and its record with it */
  uint64_t number;
  kj_diagnostics diagnostics;
};

/* ---- status names ---- */

const char *kjit_get_status_name(kjit_status status)
{
  static const char *const names[] = {
#define X(name, text) "KJIT_" #name,
#include <kjit/status.def>
#undef X
  };
  return (unsigned)status < KJIT_STATUS_COUNT ? names[status] : "KJIT_STATUS_UNKNOWN";
}

/* ---- creation ---- */

void kjit_init_config(kjit_config *config)
{
  if (config) *config = (kjit_config){ .size_bytes = sizeof *config };
}

/* Makes the strings of the configuration the context's own. */
static bool copy_strings(kjit_config *config)
{
  const char **strings[] = { &config->compiler_path, &config->libdevice_path,
                             &config->cache_directory, &config->import_path };
  bool copied = true;
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
    if (!*strings[i]) continue;
    *strings[i] = strdup(*strings[i]);
    copied = copied && *strings[i];
  }
  return copied;
}

static void free_context(kjit_context *context)
{
  for (ki_thread_record *record = context->records, *next; record; record = next) {
    next = record->next;
    kj_free_diagnostics(&record->diagnostics);
    free(record);
  }
  ki_destroy_types(context->types);
  free((void *)context->config.compiler_path);
  free((void *)context->config.libdevice_path);
  free((void *)context->config.cache_directory);
  free((void *)context->config.import_path);
  pthread_mutex_destroy(&context->mutex);
  pthread_mutex_destroy(&context->runtime_mutex);
  free(context);
}

/* What a host brings has to be whole: a function that is missing would only be found when it is
 * called. */
static bool has_functions(const kjit_config *config)
{
  const kjit_device_allocator *allocator = config->device_allocator;
  bool has_executor = !config->executor || config->executor->run,
       has_store = !config->cache_store || config->cache_store->load;
  return has_executor && has_store && (!allocator || (allocator->allocate && allocator->release));
}

kjit_status kjit_create_context(const kjit_config *config, kjit_context **context)
{
  if (!context) return KJIT_ERROR_MISUSE;
  /* A smaller size_bytes is an older header's: what it lacks keeps its default. */
  size_t least = offsetof(kjit_config, executor), size = config ? config->size_bytes : least;
  if (size < least || size > sizeof *config) return KJIT_ERROR_MISUSE;
  kjit_context *made = calloc(1, sizeof *made);
  if (!made) return KJIT_ERROR_MEMORY;
  kjit_init_config(&made->config);
  if (config) memcpy(&made->config, config, size);
  made->config.size_bytes = sizeof *config;
  if (!has_functions(&made->config)) {
    free(made);
    return KJIT_ERROR_MISUSE;
  }
  kj_watch_forks();
  made->forks = atomic_load(&kj_forks);
  pthread_mutex_init(&made->mutex, NULL);
  pthread_mutex_init(&made->runtime_mutex, NULL);
  bool copied = copy_strings(&made->config);
  made->types = ki_create_types();
  if (!copied || !made->types) {
    free_context(made);
    return KJIT_ERROR_MEMORY;
  }
  *context = made;
  return KJIT_OK;
}

void kjit_destroy_context(kjit_context *context)
{
  /* threads that it would wait for, and the GPU, are the parent's */
  if (!context || ki_is_forked(context)) return;
  if (context->runtime && context->wait_runtime) context->wait_runtime(context->runtime);
  while (context->modules) context->destroy_module(context->modules);
  if (context->runtime && context->destroy_runtime) context->destroy_runtime(context->runtime);
  free_context(context);
}

ki_types *ki_context_types(kjit_context *context) { return context->types; }

void kjit_get_statistics(kjit_context *context, kjit_statistics *statistics)
{
  if (!statistics) return;
  *statistics = (kjit_statistics){ 0 };
  if (!context) return;
  ki_counters *counters = &context->counters;
  uint64_t missed = atomic_load_explicit(&counters->missed_launches, memory_order_relaxed);
  for (uint32_t i = 0; i < KJ_LAUNCH_COUNTERS; i++)
    statistics->launches += atomic_load_explicit(&context->launches[i].count, memory_order_relaxed);
  /* other threads launch meanwhile */
  statistics->memory_hits = statistics->launches > missed ? statistics->launches - missed : 0;
  statistics->compilations = atomic_load_explicit(&counters->compilations, memory_order_relaxed);
  statistics->compile_time_ns =
    atomic_load_explicit(&counters->compile_time_ns, memory_order_relaxed);
  statistics->disk_hits = atomic_load_explicit(&counters->disk_hits, memory_order_relaxed);
  statistics->disk_misses = atomic_load_explicit(&counters->disk_misses, memory_order_relaxed);
  statistics->evictions = atomic_load_explicit(&counters->evictions, memory_order_relaxed);
  statistics->imports = atomic_load_explicit(&counters->imports, memory_order_relaxed);
}

/* ---- diagnostics ---- */

/* From 1, never the same for two threads of the process. */
static uint64_t number_of_thread(void)
{
  static _Atomic uint64_t count;
  static _Thread_local uint64_t number;
  if (!number) number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
  return number;
}

/* The record of the calling thread's pthread_t or NULL. Only that thread reads or writes what a
 * record holds; the lock is for the list. */
static ki_thread_record *find_place(kjit_context *context)
{
  pthread_mutex_lock(&context->mutex);
  ki_thread_record *record = context->records;
  while (record && !pthread_equal(record->thread, pthread_self())) record = record->next;
  pthread_mutex_unlock(&context->mutex);
  return record;
}

/* What the calling thread has failed with, or NULL. */
static ki_thread_record *find_record(kjit_context *context)
{
  ki_thread_record *record = find_place(context);
  return record && record->number == number_of_thread() ? record : NULL;
}

static ki_thread_record *get_record(kjit_context *context)
{
  ki_thread_record *record = find_place(context);
  if (record) {
    record->number = number_of_thread();
    return record;
  }
  record = calloc(1, sizeof *record);
  if (!record) return NULL;
  record->thread = pthread_self();
  record->number = number_of_thread();
  pthread_mutex_lock(&context->mutex);
  record->next = context->records;
  context->records = record;
  pthread_mutex_unlock(&context->mutex);
  return record;
}

kjit_status ki_finish_call(kjit_context *context, kj_diagnostics *diagnostics)
{
  kjit_status status = diagnostics->status;
  kj_assert_no_locks();
  if (context && context->config.on_diagnostic)
    for (size_t i = 0; i < diagnostics->count; i++)
      context->config.on_diagnostic(context->config.user, &diagnostics->items[i]);
  ki_thread_record *record = context && status != KJIT_OK ? get_record(context) : NULL;
  if (record) {
    kj_free_diagnostics(&record->diagnostics);
    record->diagnostics = *diagnostics;
    *diagnostics = (kj_diagnostics){ 0 };
  }
  kj_free_diagnostics(diagnostics);
  return status;
}

kjit_status ki_fail_call(kjit_context *context, kjit_status status, const char *format, ...)
{
  if (context && ki_is_forked(context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  va_list list;
  va_start(list, format);
  kj_report_list(&diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, status, format, list);
  va_end(list);
  return ki_finish_call(context, &diagnostics);
}

const kjit_diagnostic *kjit_get_diagnostic(kjit_context *context, size_t index)
{
  if (context && ki_is_forked(context)) return index ? NULL : &kj_forked_diagnostic;
  const ki_thread_record *record = context ? find_record(context) : NULL;
  return record && index < record->diagnostics.count ? &record->diagnostics.items[index] : NULL;
}

char *kjit_copy_diagnostics_text(kjit_context *context)
{
  kj_buffer buffer = { 0 };
  if (context && ki_is_forked(context)) {
    kj_append_format(&buffer, "error: %s\n", kj_forked_diagnostic.message);
    return kj_take_text(&buffer);
  }
  const ki_thread_record *record = context ? find_record(context) : NULL;
  if (record) kj_print_diagnostics(&record->diagnostics, &buffer);
  return kj_take_text(&buffer);
}

char *kjit_copy_diagnostic_text(const kjit_diagnostic *diagnostic)
{
  kj_buffer buffer = { 0 };
  if (diagnostic && diagnostic->message && (unsigned)diagnostic->severity <= KJIT_SEVERITY_NOTE)
    kj_print_diagnostic(diagnostic, &buffer);
  return kj_take_text(&buffer);
}

void kjit_free(kjit_context *context, void *memory)
{
  (void)context;
  free(memory);
}
