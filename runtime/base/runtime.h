/* What the parts of the runtime share: the context's runtime object, devices, arrays, streams,
 * events. */
#ifndef KJ_RUNTIME_H
#define KJ_RUNTIME_H

#include <kjit/runtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "compiler.h"
#include "cuda/driver.h"
#include "ir/context.h"
#include "support/host_process.h"

typedef struct kj_runtime kj_runtime;
typedef struct kj_background kj_background;
typedef struct kj_disk kj_disk;     /* code/disk.h */
typedef struct kj_prints kj_prints; /* report/print_ring.c */

/* ---- errors ---- */

/* Reports an error without a source place and gives its status back: return kj_error(d,
 * KJIT_ERROR_ARGUMENT, "...", ...). */
kjit_status kj_error(kj_diagnostics *diagnostics, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
kjit_status kj_error_at(kj_diagnostics *diagnostics, const kjit_module *module,
                        kj_location location, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 5, 6)));

#define KJ_TRY(call) \
  do { \
    kjit_status status_ = (call); \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

/* ---- devices ---- */

/* A kernel that was launched on a device, for the message of a fault: faults arrive long after the
 * launch that made them. Lives as long as the device. */
typedef struct kj_launch_mark {
  struct kj_launch_mark *next;
  char *name;
  _Atomic uint64_t epoch;   /* the device's when it was launched last */
  _Atomic uintptr_t stream; /* where; MIXED: on several since the last synchronization */
} kj_launch_mark;

/* Code that nobody launches any more, or pinned memory that only such code writes, to be given
 * back; see cuda/load.c. */
typedef struct kj_parked {
  struct kj_parked *next;
  void *module, *pinned; /* one of them */
  uint32_t generation;   /* of the device */
} kj_parked;

enum { KJ_SCRATCH_SLOTS = 64 };

struct kjit_device {
  kjit_context *context;
  kj_runtime *runtime;
  kjit_device_info info;
  char name[256], target[16];
  /* what is compiled for it, "sm_90a": 'a' where code may use what only this very architecture has,
   * else 0 */
  char code_target[20], suffix;
  /* CUDA */
  uint32_t number; /* of this object, from 1: no other one of the process has it */
  int handle;
  void *primary; /* CUcontext, retained */
  /* what every launch looks at */
  _Alignas(64) kj_driver *driver;
  _Atomic uint64_t epoch, synchronized_epoch;
  _Atomic uint32_t generation; /* counts resets: what was made in an earlier one is lost */
  _Atomic bool lost;
  /* what few do */
  char *fault;           /* why it is lost; written once before lost is set */
  pthread_mutex_t mutex; /* protects fault, the head of marks, failure_slots and parked */
  _Atomic(kj_launch_mark *) marks;
  kj_parked *parked;
  struct kj_failure_slot *failure_slots; /* of the loaded specializations whose threads may fail */
  _Atomic(kj_prints *) prints;           /* of kernels that print; NULL: none was ever loaded */
  /* the newest PTX that the driver takes, 90: PTX 9.0; 0: newer than any known */
  uint32_t ptx_limit;
  uint32_t multiprocessor_threads; /* resident at most */
  bool has_cooperative_launch, has_clusters;
  struct kj_memory *memory; /* device_memory.h: the pools */
  /* ordinals of GPUs whose memory its kernels reach, a bit for each up to 64 */
  _Atomic uint64_t peers;
  kjit_stream *default_stream, *thread_stream; /* as objects, under mutex; NULL: nobody has asked */
  /* CPU */
  uint32_t workers;
  _Atomic(void *) scratch[KJ_SCRATCH_SLOTS]; /* buffers that no launch uses */
};

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
  bool is_pending =
    marked > atomic_load_explicit(&device->synchronized_epoch, memory_order_relaxed);
  if (known != here && known != MIXED)
    atomic_store_explicit(&mark->stream, is_pending ? MIXED : here, memory_order_relaxed);
  if (known == MIXED && !is_pending)
    atomic_store_explicit(&mark->stream, here, memory_order_relaxed);
  if (marked != epoch) atomic_store_explicit(&mark->epoch, epoch, memory_order_relaxed);
}

/* report/failure.c: reports the failures of kernels that the device has recorded since the last
 * call. KERNEL, or OK where there are none. */
kjit_status kj_take_failures(kjit_device *device, kj_diagnostics *diagnostics);
/* report/print_ring.c: delivers the lines that kernels have printed so far. Part of every wait
 * for the device. */
void kj_take_prints(kjit_device *device);
void kj_free_prints(kjit_device *device);

static inline bool kj_is_cuda(const kjit_device *device)
{
  return device->info.kind == KJIT_DEVICE_CUDA;
}
/* "cpu", "cuda:0" for messages. */
const char *kj_device_text(const kjit_device *device, char text[24]);

kjit_status kj_find_device(kj_runtime *runtime, kjit_device_kind kind, int32_t ordinal,
                           kj_diagnostics *diagnostics, kjit_device **device);
/* The first CUDA device, else the CPU. */
kjit_status kj_default_device(kj_runtime *runtime, kj_diagnostics *diagnostics,
                              kjit_device **device);

/* ---- objects of a host: so that destroying the context frees those that were not released ---- */

typedef struct kj_object {
  struct kj_object *previous, *next;
  kjit_device *device;
  uint32_t generation;                       /* of the device when it was made */
  void (*destroy)(struct kj_object *object); /* frees it; the object is in no list then */
} kj_object;

void kj_add_object(kjit_device *device, kj_object *object, void (*destroy)(kj_object *object));
void kj_remove_object(kj_object *object);
/* DEVICE when the device is lost, or was reset after the object was made. */
kjit_status kj_check_object(const kj_object *object, const char *what, kj_diagnostics *diagnostics);

/* Elements of an array in C order; 0: in another one, empty, or too large for offsets of 32 bits.
 * strides NULL: in C order. */
static inline uint64_t kj_count_dense(const int64_t *shape, const int64_t *strides, uint32_t rank)
{
  uint64_t count = 1;
  for (uint32_t i = rank; i-- > 0;) {
    uint64_t extent = (uint64_t)shape[i];
    if (extent - 1 >= INT32_MAX || (strides && strides[i] != (int64_t)count)) return 0;
    count *= extent;
    if (count > INT32_MAX) return 0;
  }
  return count;
}

/* Type, rank, kind of memory, alignment of the address and of the rows of an array in C order, as
 * one word; never 0. */
static inline uint64_t kj_array_form(kjit_type element, uint32_t rank, int32_t device_type,
                                     uint64_t address, bool has_aligned_rows)
{
  return (uint64_t)element | (uint64_t)(rank & 255) << 32 | (uint64_t)(device_type & 255) << 40 |
         (address & 15) << 48 | (uint64_t)has_aligned_rows << 52 | (uint64_t)1 << 53;
}
static inline uint64_t kj_form_low_bits(uint64_t form) { return form >> 48 & 15; }

/* A device in one of its generations, among all devices of the process. */
static inline uint64_t kj_place(const kjit_device *device, uint32_t generation)
{
  return (uint64_t)device->number << 32 | generation;
}

/* What a launch looks at. */
typedef struct kj_array_line {
  /* kj_array_form; 0: of an array that launches have to look at closely */
  _Alignas(64) uint64_t form;
  uint64_t place;                /* kj_place of its device when it was made */
  uint64_t low, high;            /* addresses of its bytes */
  _Atomic uint64_t *owners_uses; /* of the array whose memory it is */
  /* of its own memory: streams that it was used on, a bit for each kjit_stream.slot */
  _Atomic uint64_t uses;
  int64_t extent; /* of the first dimension */
} kj_array_line;
_Static_assert(sizeof(kj_array_line) == 64, "one line of the cache");

struct kjit_array {
  kj_object object;
  _Atomic uint32_t references;
  bool is_read_only;
  bool is_in_place;   /* host memory that a launch on a GPU uses where it is */
  kjit_array *owner;  /* whose memory it is: itself, or what a view was made of, retained */
  kj_array_line line; /* made by kj_publish_array */
  kjit_tensor tensor;
  kjit_type element;
  kjit_memory memory;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
  /* the owner's */
  /* in whose order its memory is released, retained; NULL: the default stream */
  kjit_stream *stream;
  struct kj_block *block; /* of the pool; NULL: memory that release knows how to free */
  /* frees the memory, after everything that used it was ordered or waited for; NULL: nothing does
   */
  void (*release)(kjit_array *);
  void *memory_data; /* of release */
  size_t memory_bytes;
  int file; /* of release: the CPU's shared memory */
};

/* Bits of kj_array_line.uses. */
/* ELSEWHERE: on a stream of another device */
enum { KJ_SLOT_DEFAULT, KJ_SLOT_PER_THREAD, KJ_SLOT_FIRST, KJ_SLOT_ELSEWHERE = 63 };

struct kjit_stream {
  kj_object object;
  _Atomic uint32_t references;
  void *native; /* CUstream */
  /* is_borrowed: the device's, never destroyed by the host; is_blocking: ordered with the default
   * stream */
  bool is_owned, is_borrowed, is_blocking;
  uint8_t slot;
  _Atomic bool is_used;                 /* memory of kjit arrays was used on it */
  _Atomic(struct kj_capture *) capture; /* graph.c; NULL: what is queued runs */
  kjit_stream *next_of_device;          /* under the order mutex of the device's memory */
};

struct kjit_event {
  kj_object object;
  void *native;    /* CUevent */
  bool is_wrapped; /* the host's */
  bool is_recorded;
  uint64_t capture; /* number of the capture that it was recorded in; 0: none */
  uint64_t time_ns; /* CPU */
};

/* Notes that the array's memory is used on a stream: before it is used again, what is queued there
 * now has to pass. No lock, no allocation. */
static inline void kj_note_use(kjit_array *array, const kjit_stream *stream,
                               const kjit_device *device)
{
  kjit_array *owner = array->owner;
  uint32_t slot = owner->object.device != device ? KJ_SLOT_ELSEWHERE
                  : stream                       ? stream->slot
                                                 : KJ_SLOT_DEFAULT;
  uint64_t bit = (uint64_t)1 << slot;
  if (!(atomic_load_explicit(&owner->line.uses, memory_order_relaxed) & bit))
    atomic_fetch_or_explicit(&owner->line.uses, bit, memory_order_relaxed);
  if (stream && !atomic_load_explicit(&stream->is_used, memory_order_relaxed))
    atomic_store_explicit(&((kjit_stream *)stream)->is_used, true, memory_order_relaxed);
}

/* ---- the runtime of a context ---- */

struct kj_runtime {
  kjit_context *context;
  kj_disk *disk; /* the disk cache; NULL: none */
  /* of builds and of this machine: disk, or one without a directory */
  kj_disk *identities;
  _Atomic(struct kj_carried *) imports; /* code from blobs, see code/blob.h */
  /* specializations with code, the one loaded first at the front; see code/evict.c */
  pthread_mutex_t loaded_mutex;
  struct kjit_specialization *loaded;
  uint64_t loaded_bytes;
  pthread_mutex_t objects_mutex;
  kj_object *objects;
  struct kj_capture *captures;    /* under way */
  _Atomic(kjit_module *) library; /* kernels of kjit itself; NULL: not needed yet */
  /* under context->runtime_mutex */
  kj_background *background; /* NULL: nothing was ever compiled beside the host's threads */
  kjit_device *cpu;
  kj_driver *driver; /* NULL: not opened, or there is none */
  uint32_t cuda_count;
  _Atomic(kjit_device *) *cuda; /* cuda_count devices, made when first asked for */
  _Atomic bool has_driver;      /* driver, cuda_count and cuda can be read without the lock */
  /* opening it has failed: nobody who does not ask for CUDA tries again */
  _Atomic bool lacks_driver;
  /* under compiler_mutex */
  pthread_mutex_t compiler_mutex;
  void *compiler_library;
  const kj_compiler_interface *interface;
  kj_compiler *compiler;
  _Atomic bool has_compiler; /* interface and compiler can be read without the lock */
};

/* NULL only when out of memory. */
kj_runtime *kj_get_runtime(kjit_context *context);
/* Loads the compiler where that has not been done. */
kjit_status kj_get_compiler(kj_runtime *runtime, kj_diagnostics *diagnostics);
/* Another driver or compiler in place of the ones that would be loaded; before the first use of
 * either. */
kjit_status kj_use_driver(kjit_context *context, void *(*find)(void *user, const char *symbol),
                          void *user, kj_diagnostics *diagnostics);
kjit_status kj_use_compiler(kjit_context *context, const kj_compiler_interface *interface,
                            kj_diagnostics *diagnostics);

/* Host clock for times and the CPU's events. */
uint64_t kj_clock_ns(void);

/* ---- element.c: elements of arrays ---- */

/* A scalar. KJIT_ANY: no type of kjit. */
kjit_type kj_type_of_dlpack(uint8_t code, uint8_t bits);
/* given: what the host says, KJIT_ANY: nothing. KJIT_ANY: the elements have no type of kjit. */
kjit_type kj_type_of_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type given);
/* types may be NULL for scalars. */
uint32_t kj_element_bytes(const ki_types *types, kjit_type type);
/* What an element's address is a multiple of: the part's size for complex numbers. */
uint32_t kj_element_alignment(const ki_types *types, kjit_type type);
/* Sets code, bits and lanes. */
void kj_describe_element(const ki_types *types, kjit_type element, kjit_tensor *tensor);

/* What a tensor's device_type and device_id mean to a launch; false: none that kjit knows. Pinned
 * memory is the host's, managed memory the GPU's. */
bool kj_locate_tensor(const kjit_tensor *tensor, kjit_device_kind *kind, int32_t *ordinal);

#endif
