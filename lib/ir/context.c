#include "ir/context.h"

#include <kjit/kjit.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/type.h"
#include "support/lock.h"

struct ki_thread_record {
  ki_thread_record *next;
  pthread_t thread;
  /* number of the thread (number_of_thread). The pthread_t does not identify a thread: a new thread
   * can have the pthread_t of a thread that has ended, and would then find the old thread's
   * record */
  uint64_t number;
  kj_diagnostics diagnostics;
};

/* ---- version, status names ---- */

uint32_t kjit_get_version(void) { return KJIT_VERSION_NUMBER; }

const char *kjit_get_error_code_name(kjit_error_code code)
{
  static const char *const names[] = {
#define KJIT_ROW(name, text) #name,
#include <kjit/error_codes.def>
#undef KJIT_ROW
  };
  return code >= 0 && code < KJIT_CODE_COUNT ? names[code] : NULL;
}

const char *kjit_get_phrase_name(kjit_phrase_code code)
{
  static const char *const names[] = {
#define KJIT_ROW(name, text) #name,
#include <kjit/phrases.def>
#undef KJIT_ROW
  };
  return code >= 0 && code < KJIT_PHRASE_COUNT ? names[code] : NULL;
}

const char *kjit_get_status_name(kjit_status status)
{
  static const char *const names[] = {
#define KJIT_ROW(name, text) "KJIT_" #name,
#include <kjit/status.def>
#undef KJIT_ROW
  };
  return (unsigned)status < KJIT_STATUS_COUNT ? names[status] : "KJIT_STATUS_UNKNOWN";
}

/* ---- structs that may grow ---- */

/* Maximum of size_bytes. A larger value is probably garbage, and kjit would read memory far after
 * the struct. */
enum { MOST_BYTES = 4096 };

typedef struct sized_row {
  const char *name;
  uint32_t size_bytes, oldest_bytes, alignment;
} sized_row;

#define END_OF(type, field) (offsetof(type, field) + sizeof(((type *)NULL)->field))

static const sized_row sized_rows[] = {
#define X(name, type, last) { #type, sizeof(type), END_OF(type, last), alignof(type) },
#include "ir/sized.def"
#undef X
};

/* The oldest version of a struct must not end with padding. An application could leave the padding
 * uninitialized, and kjit would read it as a later field. */
#define X(name, type, last) \
  _Static_assert(offsetof(type, size_bytes) == 0 && sizeof(type) <= MOST_BYTES && \
                   END_OF(type, last) % alignof(type) == 0, \
                 #type);
#include "ir/sized.def"
#undef X

static kjit_status check_size(kjit_context *context, const char *call, const sized_row *row,
                              uint32_t size_bytes)
{
  if (size_bytes < row->oldest_bytes || size_bytes > MOST_BYTES || size_bytes % row->alignment)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s: the size_bytes of a %s is %u: set it to sizeof(%s)", call, row->name,
                        size_bytes, row->name);
  return KJIT_OK;
}

static uint32_t size_of(const void *given)
{
  uint32_t size_bytes;
  memcpy(&size_bytes, given, sizeof size_bytes);
  return size_bytes;
}

kjit_status ki_read_sized(kjit_context *context, const char *call, ki_sized which,
                          const void *given, void *own)
{
  const sized_row *row = &sized_rows[which];
  uint32_t size_bytes = given ? size_of(given) : row->size_bytes,
           known = size_bytes < row->size_bytes ? size_bytes : row->size_bytes;
  KJ_TRY(check_size(context, call, row, size_bytes));
  memset(own, 0, row->size_bytes);
  if (given) memcpy(own, given, known);
  memcpy(own, &row->size_bytes, sizeof row->size_bytes);
  for (uint32_t i = known; i < size_bytes; i++)
    if (((const char *)given)[i])
      return ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "%s: byte %u of the %s is not 0, but this version of kjit knows only the "
                          "fields in its first %u bytes; set the other bytes to 0",
                          call, i, row->name, row->size_bytes);
  return KJIT_OK;
}

kjit_status ki_check_sized(kjit_context *context, const char *call, ki_sized which,
                           const void *given)
{
  const sized_row *row = &sized_rows[which];
  if (!given)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: the %s is NULL", call, row->name);
  return check_size(context, call, row, size_of(given));
}

kjit_status ki_write_sized(kjit_context *context, const char *call, ki_sized which, const void *own,
                           void *given)
{
  const sized_row *row = &sized_rows[which];
  const uint32_t first = sizeof(uint32_t);
  KJ_TRY(ki_check_sized(context, call, which, given));
  uint32_t size_bytes = size_of(given),
           known = size_bytes < row->size_bytes ? size_bytes : row->size_bytes;
  memcpy((char *)given + first, (const char *)own + first, known - first);
  memset((char *)given + known, 0, size_bytes - known);
  return KJIT_OK;
}

/* ---- limits ---- */

/* Checks at compile time that every field has a row. */
enum {
  LIMIT_COUNT = 0
#define KJIT_ROW(name, field, value, text, unit, scale, what) +1
#include <kjit/limits.def>
#undef KJIT_ROW
};
_Static_assert(sizeof(kjit_compile_limits) == (1 + LIMIT_COUNT) * sizeof(uint64_t), "limits.def");

static const kjit_compile_limits default_limits = {
#define KJIT_ROW(name, field, value, text, unit, scale, what) .field = value,
#include <kjit/limits.def>
#undef KJIT_ROW
};

kjit_status ki_read_limits(kjit_context *context, const char *call,
                           const kjit_compile_limits *given, const kjit_compile_limits *defaults,
                           kjit_compile_limits *own)
{
  if (!defaults) defaults = &default_limits;
  KJ_TRY(ki_read_sized(context, call, KI_COMPILE_LIMITS, given, own));
#define KJIT_ROW(name, field, value, text, unit, scale, what) \
  if (!own->field) own->field = defaults->field;
#include <kjit/limits.def>
#undef KJIT_ROW
  return KJIT_OK;
}

/* ---- creation ---- */

/* Replaces the configuration's strings by copies that the context owns. */
static bool copy_strings(kjit_config *config)
{
  const char **strings[] = { &config->compiler_path,      &config->libdevice_path,
                             &config->cache_directory,    &config->import_path,
                             &config->compile_child_path, &config->target,
                             &config->shipped_cache,      &config->ptxas };
  bool copied = true;
  for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
    if (!*strings[i]) continue;
    *strings[i] = strdup(*strings[i]);
    copied = copied && *strings[i];
  }
  return copied;
}

_Thread_local const ki_host_code *ki_own_host_code;

kjit_context ki_ended_context = { .forks = UINT32_MAX };

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
  free((void *)context->config.compile_child_path);
  free((void *)context->config.target);
  free((void *)context->config.shipped_cache);
  free((void *)context->config.ptxas);
  pthread_mutex_destroy(&context->mutex);
  pthread_mutex_destroy(&context->runtime_mutex);
  free(context);
}

bool ki_is_trust(kjit_trust trust)
{
  return trust == KJIT_TRUST_DEFAULT || trust == KJIT_TRUST_HOST || trust == KJIT_TRUST_GUEST;
}

kjit_status ki_verify_checks(kjit_context *context, const char *call, uint32_t checks)
{
  const uint32_t unknown = checks & ~(uint32_t)KJIT_CHECK_ALL;
  if (!unknown) return KJIT_OK;
  return ki_fail_call(
    context, KJIT_ERROR_MISUSE,
    "%s: the checks 0x%x contain bits, 0x%x, that this version of kjit does not know", call, checks,
    unknown);
}

kjit_status ki_verify_debug(kjit_context *context, const char *call, kjit_debug debug)
{
  if ((unsigned)debug <= KJIT_DEBUG_FULL) return KJIT_OK;
  return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: debug %d is not a value of kjit_debug", call,
                      (int)debug);
}

kjit_status ki_verify_plain(kjit_context *context, const char *call, kjit_plain_code plain)
{
  if ((unsigned)plain <= KJIT_PLAIN_ALWAYS) return KJIT_OK;
  return ki_fail_call(context, KJIT_ERROR_MISUSE,
                      "%s: plain_code %d is not a value of kjit_plain_code", call, (int)plain);
}

/* Copies the configuration and the structs that it points to into the context. Rejects a struct of
 * callbacks in which a function is missing, because otherwise the error would occur only when kjit
 * calls the function. */
static kjit_status read_config(kjit_context *made, const kjit_config *given)
{
  static const char call[] = "kjit_create_context";
  kjit_config *config = &made->config;
  KJ_TRY(ki_read_sized(made, call, KI_CONFIG, given, config));
  if (config->executor) {
    KJ_TRY(ki_read_sized(made, call, KI_EXECUTOR, config->executor, &made->executor));
    config->executor = &made->executor;
    if (!made->executor.run)
      return ki_fail_call(made, KJIT_ERROR_MISUSE, "%s: executor->run is NULL", call);
  }
  if (config->device_allocator) {
    kjit_device_allocator *own = &made->device_allocator;
    KJ_TRY(ki_read_sized(made, call, KI_DEVICE_ALLOCATOR, config->device_allocator, own));
    config->device_allocator = own;
    if (!own->allocate || !own->release)
      return ki_fail_call(made, KJIT_ERROR_MISUSE,
                          "%s: device_allocator->allocate or device_allocator->release is NULL",
                          call);
  }
  if (config->cache_store) {
    KJ_TRY(ki_read_sized(made, call, KI_CACHE_STORE, config->cache_store, &made->cache_store));
    config->cache_store = &made->cache_store;
    if (!made->cache_store.load)
      return ki_fail_call(made, KJIT_ERROR_MISUSE, "%s: cache_store->load is NULL", call);
  }
  KJ_TRY(ki_read_limits(made, call, config->compile_limits, NULL, &made->compile_limits));
  config->compile_limits = &made->compile_limits;
  KJ_TRY(ki_verify_checks(made, call, config->checks));
  KJ_TRY(ki_verify_debug(made, call, config->debug));
  KJ_TRY(ki_verify_plain(made, call, config->plain_code));
  atomic_store(&made->plain_code, config->plain_code);
  if (ki_is_trust(config->trust)) return KJIT_OK;
  return ki_fail_call(made, KJIT_ERROR_MISUSE, "%s: trust %d is not a value of kjit_trust", call,
                      (int)config->trust);
}

kjit_status kjit_create_context(const kjit_config *config, kjit_context **context)
{
  if (!context) return KJIT_ERROR_MISUSE;
  kjit_context *made = calloc(1, sizeof *made);
  if (!made) return KJIT_ERROR_MEMORY;
  kj_watch_forks();
  made->forks = atomic_load(&kj_forks);
  atomic_store(&made->owners, 1);
  pthread_mutex_init(&made->mutex, NULL);
  pthread_mutex_init(&made->runtime_mutex, NULL);
  kjit_status status = read_config(made, config);
  if (status != KJIT_OK) {
    /* if this call fails, the strings still belong to the application */
    made->config = (kjit_config){ 0 };
    free_context(made);
    return status;
  }
  bool copied = copy_strings(&made->config);
  made->types = ki_create_types();
  if (!copied || !made->types) {
    free_context(made);
    return KJIT_ERROR_MEMORY;
  }
  *context = made;
  return KJIT_OK;
}

kjit_status kjit_set_plain_code(kjit_context *context, kjit_plain_code plain_code)
{
  static const char call[] = "kjit_set_plain_code";
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  KJ_TRY(ki_verify_plain(context, call, plain_code));
  atomic_store_explicit(&context->plain_code, plain_code, memory_order_relaxed);
  return KJIT_OK;
}

kjit_context *kjit_retain_context(kjit_context *context)
{
  if (context) atomic_fetch_add_explicit(&context->owners, 1, memory_order_relaxed);
  return context;
}

/* Destroys a context that no owner refers to. Disables the cancellation of this thread, because no
 * other thread could complete the destruction. */
static void end_context(kjit_context *context)
{
  int state;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  if (context->runtime && context->wait_runtime) context->wait_runtime(context->runtime);
  while (context->modules) context->end_module(context->modules);
  if (context->runtime && context->destroy_runtime) context->destroy_runtime(context->runtime);
  free_context(context);
  pthread_setcancelstate(state, NULL);
}

static const ki_host_code *find_host_code(const kjit_context *context, bool is_diagnostic)
{
  const ki_host_code *at = ki_own_host_code;
  while (at && (at->context != context || at->is_diagnostic < is_diagnostic)) at = at->outer;
  return at;
}

kjit_status kjit_destroy_context(kjit_context *context)
{
  if (!context) return KJIT_OK;
  /* a child process must not wait: the GPU and the threads belong to the parent process */
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  uint32_t owners = atomic_load(&context->owners);
  do {
    if (owners == 1 && find_host_code(context, false))
      return ki_fail_call(
        context, KJIT_ERROR_MISUSE,
        "kjit_destroy_context was called from a callback inside another call on this context and "
        "would deadlock; destroy the context after that call has returned");
  } while (!atomic_compare_exchange_weak(&context->owners, &owners, owners - 1));
  if (owners == 1) end_context(context);
  return KJIT_OK;
}

ki_types *ki_context_types(kjit_context *context) { return context->types; }

kjit_status kjit_get_statistics(kjit_context *context, kjit_statistics *given)
{
  if (!context) return KJIT_ERROR_MISUSE;
  kjit_statistics own = { 0 }, *statistics = &own;
  ki_counters *counters = &context->counters;
  uint64_t missed = atomic_load_explicit(&counters->missed_launches, memory_order_relaxed);
  for (uint32_t i = 0; i < KJ_LAUNCH_COUNTERS; i++)
    statistics->launches += atomic_load_explicit(&context->launches[i].count, memory_order_relaxed);
  /* other threads can launch between the reads of the two counters, so `launches` can be less than
   * `missed` */
  statistics->memory_hits = statistics->launches > missed ? statistics->launches - missed : 0;
  statistics->compilations = atomic_load_explicit(&counters->compilations, memory_order_relaxed);
  statistics->compile_time_ns =
    atomic_load_explicit(&counters->compile_time_ns, memory_order_relaxed);
  statistics->disk_hits = atomic_load_explicit(&counters->disk_hits, memory_order_relaxed);
  statistics->disk_misses = atomic_load_explicit(&counters->disk_misses, memory_order_relaxed);
  statistics->evictions = atomic_load_explicit(&counters->evictions, memory_order_relaxed);
  statistics->imports = atomic_load_explicit(&counters->imports, memory_order_relaxed);
  return ki_write_sized(context, "kjit_get_statistics", KI_STATISTICS, &own, given);
}

/* ---- diagnostics ---- */

/* Returns the number of the calling thread. Numbers start at 1 and are unique within the
 * process. */
static uint64_t number_of_thread(void)
{
  static _Atomic uint64_t count;
  static _Thread_local uint64_t number;
  if (!number) number = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
  return number;
}

/* Returns the record for the calling thread's pthread_t, or NULL. Only this thread accesses the
 * record's contents; the lock protects the list. */
static ki_thread_record *find_place(kjit_context *context)
{
  pthread_mutex_lock(&context->mutex);
  ki_thread_record *record = context->records;
  while (record && !pthread_equal(record->thread, pthread_self())) record = record->next;
  pthread_mutex_unlock(&context->mutex);
  return record;
}

/* Returns the record of the calling thread's last failed call, or NULL. */
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

/* Passes all messages to on_diagnostic. Skips the messages of calls that on_diagnostic itself
 * makes, because reporting them would recurse endlessly. */
static void report_all(kjit_context *context, const kj_diagnostics *diagnostics)
{
  ki_host_code code;
  if (find_host_code(context, true)) return;
  ki_enter_host(&code, context);
  code.is_diagnostic = true;
  for (size_t i = 0; i < diagnostics->count; i++)
    context->config.on_diagnostic(context->config.user, &diagnostics->items[i]);
  ki_leave_host(&code);
}

kjit_status ki_finish_call(kjit_context *context, kj_diagnostics *diagnostics)
{
  kjit_status status = diagnostics->status;
  kj_assert_no_locks();
  if (context && context->config.on_diagnostic) report_all(context, diagnostics);
  ki_thread_record *record = context && status != KJIT_OK ? get_record(context) : NULL;
  if (record) {
    kj_free_diagnostics(&record->diagnostics);
    record->diagnostics = *diagnostics;
    *diagnostics = (kj_diagnostics){ 0 };
  }
  kj_free_diagnostics(diagnostics);
  return status;
}

kjit_status ki_fail_call_list(kjit_context *context, kjit_status status, const char *format,
                              va_list list)
{
  if (context && ki_is_forked(context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  kj_report_list(&diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, status, format, list);
  return ki_finish_call(context, &diagnostics);
}

kjit_status ki_fail_call(kjit_context *context, kjit_status status, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  status = ki_fail_call_list(context, status, format, list);
  va_end(list);
  return status;
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

void kjit_print_error(kjit_context *context, kjit_status status, const char *action)
{
  if (status == KJIT_OK) return;
  char *text = kjit_copy_diagnostics_text(context);
  /* one call prints everything, so that messages of different threads are not interleaved */
  fprintf(stderr, "%s%s%s\n%s", action ? action : "", action ? ": " : "",
          kjit_get_status_name(status), text ? text : "");
  kjit_free(context, text);
}

char *kjit_copy_diagnostic_text(const kjit_diagnostic *diagnostic)
{
  kj_buffer buffer = { 0 };
  kjit_diagnostic own;
  if (!diagnostic || ki_read_sized(NULL, "", KI_DIAGNOSTIC, diagnostic, &own) != KJIT_OK)
    return NULL;
  if (own.message && (unsigned)own.severity <= KJIT_SEVERITY_NOTE)
    kj_print_diagnostic(&own, &buffer);
  return kj_take_text(&buffer);
}

void kjit_free(kjit_context *context, void *memory)
{
  (void)context;
  free(memory);
}
