/* Delivers lines printed by kernels to the application. Lines come from a launch on the CPU, or
 * from a ring buffer in host memory that the kernels of a device write (kn_print_ring), and go to
 * one queue for each context. The application's function is called by a thread that is in a public
 * call and holds no lock. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "support/lock.h"
#include "report/report.h"

/* ---- the queue ---- */

/* Adds lines to the queue. Only one thread at a time delivers lines, so that they stay in order.
 * Other threads add their lines to the queue and do not wait, because on_print may wait for a lock
 * of the application that one of these threads holds. */
static void queue_lines(kj_runtime *runtime, kj_buffer *text)
{
  kj_lock(&runtime->print_mutex, KJ_LOCK_LINES);
  if (text->length) kj_append(&runtime->lines, text->text, text->length);
  kj_unlock(&runtime->print_mutex, KJ_LOCK_LINES);
  kj_free_buffer(text);
}

static kj_buffer take_lines(kj_runtime *runtime, bool is_first)
{
  kj_buffer taken = { 0 };
  kj_lock(&runtime->print_mutex, KJ_LOCK_LINES);
  KJ_ASSERT(is_first || runtime->is_delivering); /* true while this thread delivers lines */
  if (!is_first || !runtime->is_delivering) {
    taken = runtime->lines;
    runtime->lines = (kj_buffer){ 0 };
    runtime->is_delivering = taken.length != 0;
  }
  kj_unlock(&runtime->print_mutex, KJ_LOCK_LINES);
  return taken;
}

/* Calls on_print for all queued lines. Disables cancellation, because on_print usually contains a
 * cancellation point, and after a cancellation is_delivering would stay set and no later line would
 * be delivered. */
static void deliver_lines(kj_runtime *runtime)
{
  const kjit_config *config = &runtime->context->config;
  int state;
  kj_assert_no_locks();
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  kj_buffer text = take_lines(runtime, true);
  while (text.length) {
    ki_host_code code;
    ki_enter_host(&code, runtime->context);
    if (config->on_print) config->on_print(config->user, text.text, text.length);
    ki_leave_host(&code);
    kj_free_buffer(&text);
    text = take_lines(runtime, false);
  }
  kj_free_buffer(&text);
  pthread_setcancelstate(state, NULL);
}

static void warn_of_lost_lines(kjit_context *context, uint64_t lost, const char *where)
{
  kj_diagnostics diagnostics = { 0 };
  if (!lost) return;
  kj_report(&diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_WARNING, KJIT_OK,
            "%" PRIu64 " line%s that kernels printed on %s %s lost because the buffer was full; "
            "print less between two synchronizations, or increase "
            "kjit_config.print_buffer_bytes",
            lost, lost == 1 ? "" : "s", where, lost == 1 ? "is" : "are");
  (void)ki_finish_call(context, &diagnostics);
}

/* ---- CPU ---- */

/* Orders lines by block, then by their address. The words in a line are block, header and
 * values. */
static int compare_lines(const void *a, const void *b)
{
  const uint64_t *x = *(const uint64_t *const *)a, *y = *(const uint64_t *const *)b;
  if (*x != *y) return *x < *y ? -1 : 1;
  return x < y ? -1 : x > y;
}

static size_t line_words(const uint64_t *line) { return 2 + kn_print_count(line[1]); }

/* Formats lines sorted by block. The lines in a block stay in order, because a single worker runs
 * the whole block. */
static void format_sorted(const kn_print_sink *sink, const char *prints, kj_buffer *text)
{
  size_t count = 0;
  for (size_t at = 0; at < sink->count; at += line_words(sink->words + at)) {
    KJ_ASSERT(sink->count - at >= line_words(sink->words + at));
    KJ_ASSERT(kn_print_count(sink->words[at + 1]) <= KJ_MOST_PRINT_WORDS);
    count++;
  }
  const uint64_t **lines = malloc((count + 1) * sizeof *lines);
  for (size_t at = 0, i = 0; at < sink->count; at += line_words(sink->words + at)) {
    const uint64_t *line = sink->words + at;
    if (lines) lines[i++] = line;
    else kj_format_line(prints, line[1], line + 2, text); /* out of memory: not sorted */
  }
  if (!lines) return;
  qsort(lines, count, sizeof *lines, compare_lines);
  for (size_t i = 0; i < count; i++) kj_format_line(prints, lines[i][1], lines[i] + 2, text);
  free(lines);
}

/* Takes the words of a sink, after the launch has ended or when the sink has become large. */
static kn_print_sink take_words(kn_print_sink *sink)
{
  kj_lock(&sink->mutex, KJ_LOCK_SINK);
  KJ_ASSERT(sink->count <= sink->capacity && (sink->words || !sink->count));
  kn_print_sink taken = { .words = sink->words, .count = sink->count, .lost = sink->lost };
  sink->words = NULL;
  sink->count = sink->capacity = sink->lost = 0;
  kj_unlock(&sink->mutex, KJ_LOCK_SINK);
  return taken;
}

/* Delivers only on the launching thread, because other threads are not in a call of the
 * application. The lines of other threads stay in the sink until the launching thread prints or the
 * launch ends. */
static void deliver_cpu(kn_print_sink *sink)
{
  kj_cpu_prints *prints = (kj_cpu_prints *)sink;
  kj_buffer text = { 0 };
  if (!pthread_equal(pthread_self(), prints->launcher)) return;
  kn_print_sink taken = take_words(sink);
  format_sorted(&taken, prints->prints, &text);
  free(taken.words);
  queue_lines(prints->runtime, &text);
  deliver_lines(prints->runtime);
  warn_of_lost_lines(prints->runtime->context, taken.lost, "the CPU");
}

void kj_begin_cpu_prints(kj_cpu_prints *prints, kj_runtime *runtime, const kj_code *code)
{
  *prints =
    (kj_cpu_prints){ .runtime = runtime, .prints = code->prints, .launcher = pthread_self() };
  prints->sink.deliver = deliver_cpu;
  pthread_mutex_init(&prints->sink.mutex, NULL);
}

void kj_end_cpu_prints(kj_cpu_prints *prints)
{
  KJ_ASSERT(pthread_equal(pthread_self(), prints->launcher));
  deliver_cpu(&prints->sink);
  KJ_ASSERT(!prints->sink.words && !prints->sink.count);
  kj_destroy_mutex(&prints->sink.mutex);
}

/* ---- the ring buffer of a device ---- */

/* Print state of a device. sources contains the line templates of each loaded code that prints. The
 * index is the source number in the header of a line, minus 1. NULL marks a free number. */
typedef struct kj_prints {
  kj_attachment attachment; /* attachment to the device */
  pthread_mutex_t mutex;
  kn_print_ring *ring; /* NULL until code that prints is loaded */
  uint64_t address;
  kj_allocation next; /* write counter in device memory */
  uint64_t told;      /* number of lost lines already reported */
  uint32_t generation;
  char **sources;
  uint32_t count;
} kj_prints;

static uint64_t take_word(kn_print_ring *ring, uint64_t number)
{
  uint64_t *word = &ring->words[number & ring->mask], value = *word;
  *word = 0;
  return value;
}

/* Reads the next line if it is complete. Skips lines of unknown sources. A header with more words
 * than a line can have was not written by kjit's code. Then the start of the next line is unknown
 * and reading stops, so the ring eventually fills up and further lines are counted as lost. */
static bool take_line(kj_prints *prints, kj_buffer *text)
{
  kn_print_ring *ring = prints->ring;
  KJ_ASSERT(kj_is_locked_here(&prints->mutex) && (ring->mask & (ring->mask + 1)) == 0);
  uint64_t read = ring->read, values[KJ_MOST_PRINT_WORDS];
  uint64_t header = __atomic_load_n(&ring->words[read & ring->mask], __ATOMIC_ACQUIRE);
  uint32_t count = kn_print_count(header), source = kn_print_source(header);
  if (!header || count > KJ_MOST_PRINT_WORDS) return false;
  for (uint32_t i = 0; i < count; i++) values[i] = take_word(ring, read + 1 + i);
  (void)take_word(ring, read);
  __atomic_store_n(&ring->read, read + 1 + count, __ATOMIC_RELEASE);
  const char *from = source && source <= prints->count ? prints->sources[source - 1] : NULL;
  if (from) kj_format_line(from, header, values, text);
  return true;
}

static bool has_ring(const kj_prints *prints)
{
  const kjit_device *device = prints->attachment.device;
  return prints->ring && prints->generation == atomic_load(&device->generation);
}

/* Reads all complete lines into the queue. The mutex keeps them in order. Returns the number of
 * lines that were lost since the last call. */
static uint64_t read_ring(kj_prints *prints)
{
  kj_buffer text = { 0 };
  KJ_ASSERT(kj_is_locked_here(&prints->mutex));
  if (!has_ring(prints)) return 0;
  while (take_line(prints, &text)) {}
  uint64_t lost = __atomic_load_n(&prints->ring->lost, __ATOMIC_RELAXED),
           news = lost - prints->told;
  prints->told = lost;
  queue_lines(prints->attachment.runtime, &text);
  return news;
}

static void deliver(kj_attachment *attachment)
{
  kj_prints *prints = (kj_prints *)attachment;
  char place[24];
  kj_lock(&prints->mutex, KJ_LOCK_PRINTS);
  uint64_t lost = read_ring(prints);
  kj_unlock(&prints->mutex, KJ_LOCK_PRINTS);
  deliver_lines(attachment->runtime);
  warn_of_lost_lines(attachment->runtime->context, lost, kj_device_text(attachment->device, place));
}

/* Returns the ring size in bytes: a power of two, large enough for several lines of maximum
 * length. */
static size_t choose_size(const kjit_context *context)
{
  enum { DEFAULT_BYTES = 1 << 20, LEAST_BYTES = 1 << 14 };
  const size_t most = (size_t)1 << 30;
  size_t wanted = context->config.print_buffer_bytes ? (size_t)context->config.print_buffer_bytes
                                                     : DEFAULT_BYTES,
         size = LEAST_BYTES;
  while (size < wanted && size < most) size *= 2;
  return size;
}

/* Copies words of the host to the device and waits for the copy. */
static kjit_status write_words(kjit_device *device, uint64_t address, const void *words,
                               size_t size_bytes, kj_diagnostics *diagnostics)
{
  kj_transfer transfer = { .to = address,
                           .from = (uint64_t)(uintptr_t)words,
                           .from_host = true,
                           .width_bytes = size_bytes,
                           .rows = 1 };
  KJ_TRY(device->operations->copy(device, &transfer, NULL, diagnostics));
  return device->operations->synchronize(device, false, NULL, diagnostics);
}

static kjit_status make_counter(kjit_device *device, kj_diagnostics *diagnostics,
                                kj_allocation *made)
{
  static const uint64_t zero;
  char place[24];
  kj_allocation counter = { .memory = KJIT_MEMORY_DEVICE, .size_bytes = sizeof zero };
  kjit_status status = device->operations->allocate(device, &counter, diagnostics);
  if (status == KJIT_ERROR_DEVICE_MEMORY && !diagnostics->count)
    return kj_error(diagnostics, status, "out of memory on %s: %s cannot allocate %zu bytes",
                    kj_device_text(device, place), counter.call, counter.size_bytes);
  KJ_TRY(status);
  status = write_words(device, counter.address, &zero, sizeof zero, diagnostics);
  if (status != KJIT_OK) device->operations->release(device, &counter);
  else *made = counter;
  return status;
}

/* Creates the ring if it does not exist. It does not exist before the first code that prints, or
 * after a reset, which frees the ring. */
static kjit_status need_ring(kjit_device *device, kj_prints *prints, kj_diagnostics *diagnostics)
{
  size_t words = choose_size(device->context) / sizeof(uint64_t);
  KJ_ASSERT(words > KJ_MOST_PRINT_WORDS && (words & (words - 1)) == 0);
  KJ_ASSERT(kj_is_locked_here(&prints->mutex));
  void *memory;
  uint64_t address;
  if (has_ring(prints)) return KJIT_OK;
  KJ_TRY(device->operations->map(device, sizeof(kn_print_ring) + words * sizeof(uint64_t),
                                 diagnostics, &memory, &address));
  kjit_status status = make_counter(device, diagnostics, &prints->next);
  if (status != KJIT_OK) {
    device->operations->release_mapped(device, memory);
    return status;
  }
  prints->ring = memory;
  prints->ring->next = prints->next.address;
  prints->ring->mask = words - 1;
  prints->address = address;
  prints->told = 0;
  prints->generation = atomic_load(&device->generation);
  return KJIT_OK;
}

/* Adds the line templates of loaded code as a source. Returns the number of the source, or 0 if out
 * of memory. */
static uint32_t add_source(kj_prints *prints, const char *lines)
{
  uint32_t i = 0;
  KJ_ASSERT(kj_is_locked_here(&prints->mutex));
  while (i < prints->count && prints->sources[i]) i++;
  if (i == prints->count) {
    char **grown = realloc(prints->sources, (prints->count + 1) * sizeof *grown);
    if (!grown) return 0;
    prints->sources = grown;
    prints->sources[prints->count++] = NULL;
  }
  prints->sources[i] = strdup(lines);
  return prints->sources[i] ? i + 1 : 0;
}

static void remove_source(kj_prints *prints, uint32_t source)
{
  KJ_ASSERT(kj_is_locked_here(&prints->mutex));
  KJ_ASSERT(source && source <= prints->count && prints->sources[source - 1]);
  free(prints->sources[source - 1]);
  prints->sources[source - 1] = NULL;
}

static kjit_status connect(kjit_device *device, const kj_device_code *loaded, const char *lines,
                           kj_diagnostics *diagnostics, uint32_t *source)
{
  kj_prints *prints = device->prints;
  kn_print_port port;
  uint64_t address = 0;
  size_t size_bytes = 0;
  KJ_TRY(need_ring(device, prints, diagnostics));
  KJ_TRY(device->operations->find_variable(device, loaded, KJ_PRINT_PORT, diagnostics, &address,
                                           &size_bytes));
  if (size_bytes < sizeof port)
    return kj_error(diagnostics, KJIT_ERROR_COMPILE,
                    "internal error: the variable %s has %zu bytes", KJ_PRINT_PORT, size_bytes);
  uint32_t number = add_source(prints, lines);
  if (!number) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  port = (kn_print_port){ .ring = prints->address, .source = (uint64_t)number << 32 };
  kjit_status status = write_words(device, address, &port, sizeof port, diagnostics);
  if (status != KJIT_OK) remove_source(prints, number);
  else *source = number;
  return status;
}

kjit_status kj_open_prints(kjit_device *device, const kj_device_code *loaded, const char *prints,
                           kj_diagnostics *diagnostics, uint32_t *source)
{
  if (kj_has_captures(device)) /* the following calls wait for the device, which would invalidate
                                * the capture */
    return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                    "a kernel that prints cannot be loaded during a stream capture; launch it or "
                    "call kjit_specialize before the capture");
  kj_lock(&device->prints->mutex, KJ_LOCK_PRINTS);
  kjit_status status = connect(device, loaded, prints, diagnostics, source);
  kj_unlock(&device->prints->mutex, KJ_LOCK_PRINTS);
  return status;
}

void kj_close_prints(kjit_device *device, uint32_t source)
{
  kj_prints *prints = device->prints;
  if (!source) return;
  kj_lock(&prints->mutex, KJ_LOCK_PRINTS);
  uint64_t news = read_ring(prints);
  prints->told -= news; /* the next delivery reports the newly lost lines */
  remove_source(prints, source);
  kj_unlock(&prints->mutex, KJ_LOCK_PRINTS);
}

/* ---- attachment to a device ---- */

static kjit_status report(kj_attachment *attachment, kj_diagnostics *diagnostics)
{
  return kj_take_failures(attachment->device, diagnostics);
}

/* If the device's context is gone or faulty, the driver has freed the memory together with the
 * context. */
static void destroy(kj_attachment *attachment)
{
  kj_prints *prints = (kj_prints *)attachment;
  kjit_device *device = attachment->device;
  if (has_ring(prints)) {
    device->operations->release(device, &prints->next);
    device->operations->release_mapped(device, prints->ring);
  }
  /* all code that prints is unloaded */
  KJ_ASSERT(device->prints == prints && !device->failure_slots);
  for (uint32_t i = 0; i < prints->count; i++) free(prints->sources[i]);
  kj_destroy_mutex(&prints->mutex);
  device->prints = NULL;
  free(prints->sources);
  free(prints);
}

kjit_status kj_open_reports(kjit_device *device, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .destroy = destroy,
                                             .deliver = deliver,
                                             .report = report };
  if (!device->operations->is_queued) return KJIT_OK;
  kj_prints *made = calloc(1, sizeof *made);
  if (!made) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  pthread_mutex_init(&made->mutex, NULL);
  device->prints = made;
  kj_attach_to_device(device, &made->attachment, &class);
  return KJIT_OK;
}
