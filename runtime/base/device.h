/* A device, and what it can do: one table of functions for each kind of device, filled in by
 * runtime/cuda and runtime/cpu. The layers above ask the table and know no kind. What they keep of
 * a device they hang off it, with functions for its waits, its reset and its end. */
#ifndef KJ_DEVICE_H
#define KJ_DEVICE_H

#include <kjit/runtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"
#include "compiler.h"
#include "support/assert.h"

typedef struct kj_runtime kj_runtime;

/* ---- what the functions of the table take ---- */

/* One allocation. */
typedef struct kj_allocation {
  kjit_memory memory;
  size_t size_bytes;
  uint64_t address;
  int file;         /* SHARED on the CPU: the file that the memory is; else -1 */
  const char *call; /* of the driver, for the message of whoever reports that there is none left */
} kj_allocation;

/* Bytes that are copied: a line, or rows the same distance apart. */
typedef struct kj_transfer {
  uint64_t to, from;
  bool to_host, from_host;
  kjit_device *source;      /* of the same kind, whose memory FROM is; NULL: this device's */
  size_t width_bytes, rows; /* rows 1: a line */
  size_t to_pitch_bytes, from_pitch_bytes; /* from row to row; not looked at for a line */
} kj_transfer;

/* What another process needs to open an allocation: the device's own, not to be believed. */
typedef struct kj_memory_name {
  uint64_t process, offset_bytes, size_bytes; /* of the address; of the whole allocation */
  unsigned char uuid[16];
  char native[64];
  /* the CPU's: descriptor of the exporter, and the file that it has to be */
  uint64_t file, file_number, file_device;
} kj_memory_name;

/* A kernel that was launched on a device, for the message of a fault: faults arrive long after the
 * launch that made them. Lives as long as the device. */
typedef struct kj_launch_mark {
  struct kj_launch_mark *next;
  char *name;
  _Atomic uint64_t epoch;   /* the device's when it was launched last */
  _Atomic uintptr_t stream; /* where; MIXED: on several since the last synchronization */
} kj_launch_mark;

/* Machine code of a kernel, ready to run on a device. */
typedef struct kj_device_code {
  void *module, *function; /* the CPU's: kj_image or kj_loaded; kj_cpu_kernel */
  uint32_t registers, shared_bytes, local_bytes, constant_bytes, max_threads;
  uint32_t max_dynamic_shared_bytes;
  kj_launch_mark *mark;
} kj_device_code;

/* The function of code that was unloaded: no launch may have it.
 * NOLINTNEXTLINE(performance-no-int-to-ptr) */
#define KJ_UNLOADED ((void *)(uintptr_t)0x6b6a676f6e652121)

/* Code that is linked together, each with a 0 byte after it. */
typedef struct kj_link_input {
  kjit_link_format format;
  const char *name, *data;
  size_t size_bytes;
  const char *options; /* CUDA C: for NVRTC, one on each line; NULL: none */
} kj_link_input;

/* What launches of a specialization on the CPU have taken, by how widely they were spread and by
 * the logarithm of their size, for a unit of it. See cpu/spread.c. */
enum { KJ_COST_CLASSES = 40 };
typedef enum kj_width { KJ_ALONE, KJ_SOME, KJ_ALL, KJ_WIDTHS } kj_width;
typedef struct kj_cost {
  _Atomic float unit_ns;  /* 0: not measured */
  _Atomic uint32_t count; /* of the first measurements */
} kj_cost;
typedef struct kj_cost_of_size {
  kj_cost widths[KJ_WIDTHS];
  _Atomic uint16_t timed; /* counts launches whose time was taken */
} kj_cost_of_size;
typedef struct kj_cpu_cost {
  _Atomic uint32_t surprises; /* launches of one size took very different times */
  kj_cost_of_size sizes[KJ_COST_CLASSES];
} kj_cpu_cost;

/* A launch whose parameters are marshalled. */
typedef struct kj_device_launch {
  const uint32_t *grid, *block;
  uint32_t dynamic_shared_bytes;
  void *stream;     /* native */
  void *parameters; /* as one block of parameter_bytes */
  size_t parameter_bytes;
  void **pointers;         /* or the address of each; NULL: the block */
  bool has_attributes;     /* any of: */
  const uint32_t *cluster; /* x 0: none */
  bool is_cooperative, is_programmatic;
  int32_t priority; /* 0: the stream's */
  /* advice for a device that cuts the grid itself: elements of the largest grid_range */
  bool has_elements;
  uint64_t elements;
  kj_cpu_cost *cost;    /* of its code; NULL where launches are queued */
  uint32_t cpu_threads; /* it is spread over at most so many; 0: no limit of its own */
} kj_device_launch;

/* Where a driver's functions are, in place of the system's; for tests. */
typedef struct kj_driver_source {
  void *(*find)(void *user, const char *symbol);
  void *user;
} kj_driver_source;

/* ---- names of targets: target.c ---- */

/* "cpu", "x86-64-v3", "sm_90a"; false: no target has that name. */
bool kj_read_target(const char *text, kj_target *target);
const char *kj_level_name(kj_cpu_level level);
/* The level of that name; KJ_CPU_OWN: it is the name of none. */
kj_cpu_level kj_read_level(const char *text, size_t size_bytes);

/* ---- the table ---- */

/* Each function returns a status that it has reported, unless it says otherwise. Any context of the
 * driver may be current before, and the same one is afterwards. Native streams, events and graphs
 * are the device's own; stream NULL: its default stream. A function that says so may be NULL. */
typedef struct kj_device_operations {
  kjit_device_kind kind;
  const char *name; /* "cuda" */
  /* Messages leave the ordinal out where there is one device of the kind. */
  bool is_usually_single;
  /* Its code is PTX for a driver; else an object for the cores of this machine. */
  bool takes_ptx;
  /* What is queued runs later, in the order of streams; else it is done when the call returns, and
   * a host has neither streams nor events of its own. */
  bool is_queued;
  /* Its kernels have memory of their own: the host's is copied there and back. */
  bool has_memory;
  /* Code is compiled for the shape of the block. */
  bool knows_block;
  /* Native streams that are always there: what the default stream is called beside NULL, and the
   * name of each thread's own. 0: none. */
  uintptr_t default_stream, thread_stream;

  /* Finds the devices; *shared is what they have in common. source NULL: the system's driver.
   * Errors: NO_DEVICE. */
  kjit_status (*count)(const kjit_context *context, const kj_driver_source *source,
                       kj_diagnostics *diagnostics, void **shared, uint32_t *count);
  void (*forget)(void *shared); /* after the last device was closed */
  /* Fills in device->info and what is the kind's own; ordinal, kind and shared are set. On failure
   * close follows. */
  kjit_status (*open)(kjit_device *device, kj_diagnostics *diagnostics);
  void (*close)(kjit_device *device);
  /* Gives the device back to a process whose kernels made it fail; all that it had is lost. */
  kjit_status (*reset)(kjit_device *device, kj_diagnostics *diagnostics);
  /* Waits for a stream, or for all that is queued; faults arrive here. Called by kj_synchronize. */
  kjit_status (*synchronize)(kjit_device *device, bool whole, void *stream,
                             kj_diagnostics *diagnostics);

  /* ---- what it says of itself ---- */
  kjit_status (*read_attribute)(kjit_device *device, kjit_device_attribute attribute,
                                kj_diagnostics *diagnostics, int64_t *value);
  kjit_status (*read_uuid)(kjit_device *device, kj_diagnostics *diagnostics,
                           unsigned char uuid[16]);
  kjit_status (*read_memory)(kjit_device *device, kj_diagnostics *diagnostics, uint64_t *free_bytes,
                             uint64_t *total_bytes);
  /* Of two devices of the kind. */
  kjit_status (*can_access_peer)(kjit_device *device, kjit_device *peer,
                                 kj_diagnostics *diagnostics, bool *can);
  kjit_status (*change_peer_access)(kjit_device *device, kjit_device *peer, bool is_on,
                                    kj_diagnostics *diagnostics);
  kjit_status (*tell_profiler)(kjit_device *device, bool is_start, kj_diagnostics *diagnostics);

  /* ---- memory ---- */
  /* Of allocation->memory and size_bytes, the rest is filled in. Where there is none left it is
   * DEVICE_MEMORY or MEMORY without a report: who keeps memory gives it back and asks again. */
  kjit_status (*allocate)(kjit_device *device, kj_allocation *allocation,
                          kj_diagnostics *diagnostics);
  /* false: it cannot be given back now. */
  bool (*release)(kjit_device *device, const kj_allocation *allocation);
  kjit_status (*copy)(kjit_device *device, const kj_transfer *transfer, void *stream,
                      kj_diagnostics *diagnostics);
  /* The ordinal of the device of the kind whose memory an address is in, -1: of none. NULL: memory
   * says nothing of that. */
  int32_t (*locate)(kjit_device *device, uint64_t address);
  /* count words of 1, 2 or 4 bytes */
  kjit_status (*set)(kjit_device *device, uint64_t address, uint32_t bits, uint32_t word_bytes,
                     size_t count, void *stream, kj_diagnostics *diagnostics);
  /* Managed memory to a device, NULL: to the host. */
  kjit_status (*prefetch)(kjit_device *device, uint64_t address, size_t size_bytes, kjit_device *to,
                          void *stream, kj_diagnostics *diagnostics);
  kjit_status (*pin)(kjit_device *device, void *memory, size_t size_bytes,
                     kj_diagnostics *diagnostics);
  kjit_status (*unpin)(kjit_device *device, void *memory, kj_diagnostics *diagnostics);
  /* Host memory that the device writes, at *address for its kernels. Freed by release_mapped. */
  kjit_status (*map)(kjit_device *device, size_t size_bytes, kj_diagnostics *diagnostics,
                     void **memory, uint64_t *address);
  void (*release_mapped)(kjit_device *device, void *memory);
  /* Memory of other processes. name: of an address in the allocation. A name comes from outside:
   * what open_memory gives is as large as it says, stays so, and close_memory closes it. */
  kjit_status (*name_memory)(kjit_device *device, uint64_t address, const kj_allocation *allocation,
                             kj_diagnostics *diagnostics, kj_memory_name *name);
  kjit_status (*open_memory)(kjit_device *device, const kj_memory_name *name,
                             kj_diagnostics *diagnostics, kj_allocation *allocation);
  bool (*close_memory)(kjit_device *device, const kj_allocation *allocation);

  /* ---- streams and events ---- */
  kjit_status (*read_priorities)(kjit_device *device, kj_diagnostics *diagnostics, int32_t *least,
                                 int32_t *greatest);
  /* flags: KJIT_STREAM_... A priority that is out of range is the nearest in it. */
  kjit_status (*create_stream)(kjit_device *device, int32_t priority, uint32_t flags,
                               kj_diagnostics *diagnostics, void **stream);
  void (*destroy_stream)(kjit_device *device, void *stream);
  /* NOT_READY, which is no report, while something is queued. */
  kjit_status (*query_stream)(kjit_device *device, void *stream, kj_diagnostics *diagnostics);
  kjit_status (*call_host)(kjit_device *device, void *stream, void (*function)(void *user),
                           void *user, kj_diagnostics *diagnostics);
  kjit_status (*create_event)(kjit_device *device, bool has_time, kj_diagnostics *diagnostics,
                              void **event);
  void (*destroy_event)(kjit_device *device, void *event);
  kjit_status (*record_event)(kjit_device *device, void *event, void *stream,
                              kj_diagnostics *diagnostics);
  /* The stream is the device's; the event may be another's of the kind. */
  kjit_status (*wait_event)(kjit_device *device, void *stream, void *event,
                            kj_diagnostics *diagnostics);
  kjit_status (*query_event)(kjit_device *device, void *event, kj_diagnostics *diagnostics);
  kjit_status (*synchronize_event)(kjit_device *device, void *event, kj_diagnostics *diagnostics);
  kjit_status (*read_elapsed)(kjit_device *device, void *first, void *last,
                              kj_diagnostics *diagnostics, uint64_t *time_ns);

  /* ---- captures and graphs; begin_capture NULL: kjit records what is queued and repeats it ----
   */
  kjit_status (*begin_capture)(kjit_device *device, void *stream, kj_diagnostics *diagnostics);
  /* graph NULL: it is dropped, whatever comes of it, and whichever context is current. */
  kjit_status (*end_capture)(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                             void **graph, size_t *size);
  kjit_status (*ask_capture)(kjit_device *device, void *stream, kj_diagnostics *diagnostics,
                             bool *is_captured);
  void (*destroy_graph)(kjit_device *device, void *graph);
  kjit_status (*instantiate_graph)(kjit_device *device, void *graph, kj_diagnostics *diagnostics,
                                   void **executable);
  /* ARGUMENT without a report: the graph has another form. */
  kjit_status (*update_graph)(kjit_device *device, void *executable, void *graph,
                              kj_diagnostics *diagnostics);
  kjit_status (*launch_graph)(kjit_device *device, void *executable, void *stream,
                              kj_diagnostics *diagnostics);
  void (*destroy_executable)(kjit_device *device, void *executable);

  /* ---- code ---- */
  /* Code of kernel name; outside is what an object may call. Errors: COMPILE. The code's module
   * belongs to the device until unload. */
  kjit_status (*load)(kjit_device *device, const kj_code *code, const char *name,
                      const kj_outside *outside, kj_diagnostics *diagnostics,
                      kj_device_code *loaded);
  /* Nothing that is queued uses it any more. */
  void (*unload)(kjit_device *device, void *module);
  /* PTX, and what is linked with it, to machine code; malloc'd. NULL: there is nothing to link. */
  kjit_status (*link)(kjit_device *device, const kj_link_input *inputs, size_t count,
                      kj_diagnostics *diagnostics, void **binary, size_t *binary_bytes);
  /* Of a variable of the module, for a kernel. */
  kjit_status (*find_variable)(kjit_device *device, const kj_device_code *loaded, const char *name,
                               kj_diagnostics *diagnostics, uint64_t *address, size_t *size_bytes);
  /* The stack of each thread is at least so large. */
  kjit_status (*provide_stack)(kjit_device *device, uint32_t bytes, kj_diagnostics *diagnostics);
  /* Blocks of so many threads that are resident on a multiprocessor at once. */
  kjit_status (*count_resident)(kjit_device *device, const kj_device_code *loaded, uint32_t threads,
                                uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics,
                                uint32_t *blocks);
  /* The block of one dimension, at most `most` threads, that keeps most threads resident; 0: none
   * fits. */
  kjit_status (*choose_threads)(kjit_device *device, const kj_device_code *loaded,
                                uint64_t dynamic_shared_bytes, uint32_t most,
                                kj_diagnostics *diagnostics, uint32_t *threads);
  kjit_status (*launch)(kjit_device *device, const kj_device_code *loaded, const kj_code *code,
                        const kj_device_launch *launch, kj_diagnostics *diagnostics);
} kj_device_operations;

/* ---- what layers above hang off a device, or off the runtime of a context ---- */

typedef struct kj_attachment kj_attachment;

/* Each function may be NULL. They are called in the order in which things were attached, but for
 * stop and destroy, which come in the reverse order. No lock of the runtime's is held. */
typedef struct kj_attachment_class {
  /* The context ends: threads of its own go, what is under way is dropped. Modules and objects are
   * released after all have stopped. */
  void (*stop)(kj_attachment *attachment);
  /* Frees it; a device's context is still there, if it is not lost. */
  void (*destroy)(kj_attachment *attachment);
  /* The device was reset: what was had of it is gone. */
  void (*forget)(kj_attachment *attachment);
  /* Before and after a wait for the whole device: what begin_wait gives is what the wait covers;
   * is_done: it has succeeded. */
  void *(*begin_wait)(kj_attachment *attachment);
  /* After begin_wait: MISUSE where the device cannot be waited for now. */
  kjit_status (*check_wait)(kj_attachment *attachment, kj_diagnostics *diagnostics);
  void (*end_wait)(kj_attachment *attachment, void *covered, bool is_done);
  /* The driver is out of memory: gives it what is kept. */
  void (*relieve)(kj_attachment *attachment);
  /* A public call has waited for the device, or for a stream of it: calls the host back with what
   * kernels have printed, and reports those that have failed (KERNEL). */
  void (*deliver)(kj_attachment *attachment);
  kjit_status (*report)(kj_attachment *attachment, kj_diagnostics *diagnostics);
} kj_attachment_class;

struct kj_attachment {
  const kj_attachment_class *class;
  kj_attachment *next; /* the runtime's: attached before it */
  kjit_device *device; /* NULL: the runtime's */
  kj_runtime *runtime;
};

enum { KJ_MOST_ATTACHMENTS = 8 }; /* of a device */

/* It lives until its destroy is called. */
void kj_attach_to_device(kjit_device *device, kj_attachment *attachment,
                         const kj_attachment_class *class);
void kj_attach_to_runtime(kj_runtime *runtime, kj_attachment *attachment,
                          const kj_attachment_class *class);

/* ---- devices ---- */

enum { KJ_SCRATCH_SLOTS = 64 };

struct kjit_device {
  kjit_context *context;
  kj_runtime *runtime;
  const kj_device_operations *operations;
  kjit_device_info info;
  char name[256], target[16];
  /* nothing runs on it: kjit_config.target; its code is kept under keys of any machine */
  bool is_target;
  /* Messages leave its ordinal out; else, on the CPU, arrays belong to one of several devices. */
  bool is_single;
  kj_cpu_level level; /* that code for the CPU is compiled for */
  /* what is compiled for it, "sm_90a": 'a' where code may use what only this very architecture has,
   * else 0 */
  char code_target[20], suffix;
  /* the newest PTX that its driver takes where that may be less than what the code needs, 78: PTX
   * 7.8; 0: the compiler chooses */
  uint32_t ptx_limit;
  void *shared;    /* of all devices of the kind; see operations->count */
  uint32_t number; /* of this object, from 1: no other one of the process has it */
  /* what every launch looks at */
  _Alignas(64) struct kj_driver *driver;
  _Atomic uint64_t epoch, synchronized_epoch;
  _Atomic uint32_t generation; /* counts resets: what was made in an earlier one is lost */
  _Atomic bool lost;
  /* what few do */
  char *fault;           /* why it is lost; written once before lost is set */
  pthread_mutex_t mutex; /* protects fault, the head of marks, failure_slots */
  _Atomic(kj_launch_mark *) marks;
  kj_attachment *attachments[KJ_MOST_ATTACHMENTS]; /* added to under mutex, read without */
  _Atomic uint32_t attachment_count;
  _Atomic uint32_t captures;             /* under way on its streams: nothing can wait for it */
  struct kj_memory *memory;              /* memory/pool.h; NULL: its work is never queued */
  kj_attachment *unloading;              /* code/evict.c; NULL: code goes at once */
  _Atomic uint64_t failures;             /* of kernels, as far as they are known */
  struct kj_failure_slot *failure_slots; /* of the loaded specializations whose threads may fail */
  struct kj_prints *prints;              /* report/print.c; NULL: kernels run in the call */
  struct kj_interrupts *interrupts;      /* base/interrupt.c; NULL: code is not interruptible */
  uint32_t multiprocessor_threads;       /* resident at most */
  /* has_launch_attributes: launches may have a priority, or begin before the one before them ends
   */
  bool has_launch_attributes, has_cooperative_launch, has_clusters;
  /* ordinals of devices of its kind whose memory its kernels reach, a bit for each up to 64 */
  _Atomic uint64_t peers;
  kjit_stream *alive;                          /* for kj_assert_alive, under mutex */
  kjit_stream *default_stream, *thread_stream; /* as objects, under mutex; NULL: nobody has asked */
  /* CUDA */
  int handle;
  void *primary; /* CUcontext, retained */
  /* CPU */
  uint32_t workers;
  _Atomic(void *) scratch[KJ_SCRATCH_SLOTS]; /* buffers that no launch uses */
};

/* "cpu", "cuda:0" for messages. */
const char *kj_device_text(const kjit_device *device, char text[24]);
/* DEVICE with what happened when the device is lost. */
kjit_status kj_check_device(const kjit_device *device, kj_diagnostics *diagnostics);
/* What the driver says is a fault: the device is lost until it is reset. */
void kj_lose_device(kjit_device *device, const char *text);
/* Waits for a stream, or for the whole device with all that its attachments have to say of that. */
kjit_status kj_synchronize(kjit_device *device, bool whole, void *stream,
                           kj_diagnostics *diagnostics);
/* Part of every public call that has waited, with no lock held. The host gets what kernels have
 * printed; after a fault too, as lines show the way there. */
void kj_deliver_lines(kjit_device *device);
/* The same, and reports which kernels have failed: KERNEL, or OK where there are none. */
kjit_status kj_report_kernels(kjit_device *device, kj_diagnostics *diagnostics);
/* The driver has refused something for want of memory: all that is kept goes back to it, so that
 * asking once more is worth it. Not under any lock. */
void kj_relieve_device(kjit_device *device);
/* Streams of the device are being captured. */
static inline bool kj_has_captures(const kjit_device *device)
{
  return atomic_load(&device->captures);
}
/* MISUSE where streams of the device are being captured: nothing can wait for the device then. */
kjit_status kj_check_captures(const kjit_device *device, kj_diagnostics *diagnostics);

/* ---- native streams that may be used; runtime.c, in builds with assertions ---- */

/* It was made, or wrapped, and has not gone; or it is one of those that are always there. */
bool kj_is_alive(kjit_device *device, const void *native);
/* Before each use by a driver. */
static inline void kj_assert_alive(kjit_device *device, const void *native)
{
  if (KJ_HAS_ASSERTIONS) KJ_ASSERT(kj_is_alive(device, native));
}

/* ---- marks of launches ---- */

/* One mark for all kernels of a name: a fault names kernels, and a host may make very many of one
 * name. NULL: out of memory. */
kj_launch_mark *kj_get_mark(kjit_device *device, const char *name);
/* All that was launched up to an epoch, on a stream or at all, has passed. */
void kj_note_synchronized(kjit_device *device, bool whole, void *stream, uint64_t epoch);

/* Notes that a kernel was launched, for the message of a fault. Stores only when something changes:
 * many threads launch one kernel, and its mark is one cache line. */
static inline void kj_mark_launch(kjit_device *device, kj_launch_mark *mark, void *stream)
{
  /* no stream has this address, except CUDA's name for the legacy default stream, which
   * kj_wrap_stream makes NULL */
  enum { MIXED = 1 };
  uint64_t epoch = atomic_load_explicit(&device->epoch, memory_order_relaxed),
           marked = atomic_load_explicit(&mark->epoch, memory_order_relaxed);
  uintptr_t known = atomic_load_explicit(&mark->stream, memory_order_relaxed),
            here = (uintptr_t)stream;
  if (known == here && marked == epoch) return; /* nearly always */
  bool is_pending =
    marked > atomic_load_explicit(&device->synchronized_epoch, memory_order_relaxed);
  if (known != here && known != MIXED)
    atomic_store_explicit(&mark->stream, is_pending ? MIXED : here, memory_order_relaxed);
  if (known == MIXED && !is_pending)
    atomic_store_explicit(&mark->stream, here, memory_order_relaxed);
  if (marked != epoch) atomic_store_explicit(&mark->epoch, epoch, memory_order_relaxed);
}

#endif
