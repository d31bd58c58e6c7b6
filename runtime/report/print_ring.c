/* Lines that kernels print on a GPU: one ring a device in host memory that the GPU writes
 * (kn_print_ring), read whenever somebody has waited for the device. */
#include <stdlib.h>
#include <string.h>

#include "memory/pool.h"
#include "report/print.h"

/* A device's. The sources are the loaded specializations that print, by their numbers in headers,
 * from 1; NULL: free. */
struct kj_prints {
  kj_attachment attachment; /* to the device */
  /* protects all; held while lines are delivered, so that they stay in order */
  pthread_mutex_t mutex;
  kn_print_ring *ring; /* NULL: none yet */
  uint64_t address, next;
  uint64_t told; /* lost lines that the host knows of */
  uint32_t generation;
  kjit_specialization **sources;
  uint32_t count;
};

/* ---- reading ---- */

static uint64_t take_word(kn_print_ring *ring, uint64_t number)
{
  uint64_t *word = &ring->words[number & ring->mask], value = *word;
  *word = 0;
  return value;
}

/* The next line, if it is whole. A line whose source is not known is skipped. A header with more
 * words than any line has is none that kjit's code wrote: where the next line starts nobody can say
 * then, and reading stops there; what is printed from now on finds no room at some time, and is
 * counted as lost. */
static bool take_line(kj_prints *prints, kj_buffer *text)
{
  kn_print_ring *ring = prints->ring;
  uint64_t read = ring->read, values[KJ_MOST_PRINT_WORDS];
  uint64_t header = __atomic_load_n(&ring->words[read & ring->mask], __ATOMIC_ACQUIRE);
  uint32_t count = kn_print_count(header), source = kn_print_source(header);
  if (!header || count > KJ_MOST_PRINT_WORDS) return false;
  for (uint32_t i = 0; i < count; i++) values[i] = take_word(ring, read + 1 + i);
  (void)take_word(ring, read);
  __atomic_store_n(&ring->read, read + 1 + count, __ATOMIC_RELEASE);
  const kjit_specialization *from =
    source && source <= prints->count ? prints->sources[source - 1] : NULL;
  if (from) kj_format_line(from->code.prints, header, values, text);
  return true;
}

static void read_ring(kjit_device *device, kj_prints *prints)
{
  char place[24];
  kj_buffer text = { 0 };
  while (take_line(prints, &text)) {}
  uint64_t lost = __atomic_load_n(&prints->ring->lost, __ATOMIC_RELAXED),
           news = lost - prints->told;
  prints->told = lost;
  if (text.length || news)
    kj_deliver_prints(device->context, &text, news, kj_device_text(device, place));
}

void kj_take_prints(kjit_device *device)
{
  kj_prints *prints = atomic_load_explicit(&device->prints, memory_order_acquire);
  if (!prints) return;
  pthread_mutex_lock(&prints->mutex);
  if (prints->ring && prints->generation == atomic_load(&device->generation))
    read_ring(device, prints);
  pthread_mutex_unlock(&prints->mutex);
}

/* ---- the ring ---- */

/* At least room for some of the longest lines. */
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

static kjit_status make_counter(kjit_device *device, kj_diagnostics *diagnostics, uint64_t *address)
{
  static const uint64_t zero;
  KJ_TRY(kj_allocate_cuda(device, sizeof zero, diagnostics, address));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuMemcpyHtoDAsync, *address, &zero, sizeof zero, NULL);
  if (status == KJIT_OK) status = KJ_DRIVER(device, diagnostics, cuStreamSynchronize, NULL);
  if (status != KJIT_OK) device->driver->cuMemFree(*address);
  return status;
}

static kjit_status make_ring(kjit_device *device, kj_prints *prints, kj_diagnostics *diagnostics)
{
  enum { PORTABLE = 1, MAPPED = 2 };
  size_t words = choose_size(device->context) / sizeof(uint64_t),
         size = sizeof(kn_print_ring) + words * sizeof(uint64_t);
  void *memory = NULL;
  uint64_t address = 0, next = 0;
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuMemHostAlloc, &memory, size, PORTABLE | MAPPED));
  kjit_status status =
    KJ_DRIVER(device, diagnostics, cuMemHostGetDevicePointer, &address, memory, 0);
  if (status == KJIT_OK) status = make_counter(device, diagnostics, &next);
  if (status != KJIT_OK) {
    device->driver->cuMemFreeHost(memory);
    return status;
  }
  prints->ring = memset(memory, 0, size);
  prints->ring->next = prints->next = next;
  prints->ring->mask = words - 1;
  prints->address = address;
  prints->told = 0;
  prints->generation = atomic_load(&device->generation);
  return KJIT_OK;
}

/* After a reset the driver has taken the old one back. */
static kjit_status need_ring(kjit_device *device, kj_prints *prints, kj_diagnostics *diagnostics)
{
  if (prints->ring && prints->generation == atomic_load(&device->generation)) return KJIT_OK;
  return make_ring(device, prints, diagnostics);
}

/* Where the device's context is gone or faulty the driver frees the memory with it. */
static void free_prints(kj_attachment *attachment)
{
  kj_prints *prints = (kj_prints *)attachment;
  kjit_device *device = attachment->device;
  kj_diagnostics ignored = { 0 };
  void *previous;
  if (prints->ring && prints->generation == atomic_load(&device->generation) &&
      kj_enter_device(device, &ignored, &previous) == KJIT_OK) {
    device->driver->cuMemFree(prints->next);
    device->driver->cuMemFreeHost(prints->ring);
    kj_leave_device(device, previous);
  }
  kj_free_diagnostics(&ignored);
  pthread_mutex_destroy(&prints->mutex);
  free(prints->sources);
  free(prints);
  atomic_store(&device->prints, NULL);
}

static kj_prints *get_prints(kjit_device *device)
{
  static const kj_attachment_class class = { .destroy = free_prints };
  kj_prints *known = atomic_load_explicit(&device->prints, memory_order_acquire), *made;
  if (known || !(made = calloc(1, sizeof *made))) return known;
  pthread_mutex_init(&made->mutex, NULL);
  if (atomic_compare_exchange_strong(&device->prints, &known, made)) {
    kj_attach_to_device(device, &made->attachment, &class);
    return made;
  }
  pthread_mutex_destroy(&made->mutex);
  free(made);
  return known;
}

/* ---- specializations ---- */

/* The number of a new source; 0: out of memory. */
static uint32_t add_source(kj_prints *prints, kjit_specialization *specialization)
{
  uint32_t i = 0;
  while (i < prints->count && prints->sources[i]) i++;
  if (i == prints->count) {
    kjit_specialization **grown = realloc(prints->sources, (prints->count + 1) * sizeof *grown);
    if (!grown) return 0;
    prints->sources = grown;
    prints->count++;
  }
  prints->sources[i] = specialization;
  return i + 1;
}

static kjit_status write_port(kjit_specialization *specialization, const kn_print_port *port,
                              kj_diagnostics *diagnostics)
{
  kjit_device *device = specialization->device;
  uint64_t address = 0;
  size_t size = 0;
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuModuleGetGlobal, &address, &size,
                   specialization->cuda.module, KJ_PRINT_PORT));
  if (size < sizeof *port)
    return kj_error(diagnostics, KJIT_ERROR_COMPILE,
                    "internal error: the variable %s has %zu bytes", KJ_PRINT_PORT, size);
  KJ_TRY(KJ_DRIVER(device, diagnostics, cuMemcpyHtoDAsync, address, port, sizeof *port, NULL));
  return KJ_DRIVER(device, diagnostics, cuStreamSynchronize, NULL);
}

static kjit_status connect(kjit_specialization *specialization, kj_prints *prints,
                           kj_diagnostics *diagnostics)
{
  KJ_TRY(need_ring(specialization->device, prints, diagnostics));
  uint32_t number = add_source(prints, specialization);
  if (!number) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kn_print_port port = { .ring = prints->address, .source = (uint64_t)number << 32 };
  kjit_status status = write_port(specialization, &port, diagnostics);
  if (status != KJIT_OK) prints->sources[number - 1] = NULL;
  return status;
}

kjit_status kj_open_prints(kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  kjit_device *device = specialization->device;
  kj_prints *prints = get_prints(device);
  void *previous;
  if (!prints) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (kj_has_captures(device)) /* what follows waits, which ends a capture */
    return kj_error(diagnostics, KJIT_ERROR_MISUSE,
                    "a kernel that prints cannot be loaded while a stream is captured: launch or "
                    "kjit_specialize it before");
  KJ_TRY(kj_enter_device(device, diagnostics, &previous));
  pthread_mutex_lock(&prints->mutex);
  kjit_status status = connect(specialization, prints, diagnostics);
  pthread_mutex_unlock(&prints->mutex);
  kj_leave_device(device, previous);
  return status;
}

void kj_close_prints(kjit_specialization *specialization)
{
  kj_prints *prints = atomic_load(&specialization->device->prints);
  if (!prints || !specialization->code.prints) return;
  kj_take_prints(specialization->device);
  pthread_mutex_lock(&prints->mutex);
  for (uint32_t i = 0; i < prints->count; i++)
    if (prints->sources[i] == specialization) prints->sources[i] = NULL;
  pthread_mutex_unlock(&prints->mutex);
}
