/* What the parts of the runtime share: the context's runtime object, devices, arrays, streams,
 * events. */
#ifndef KJ_RUNTIME_H
#define KJ_RUNTIME_H

#include <stddef.h>

#include "base/device.h"
#include "base/fact.h"
#include "base/last_use.h"
#include "support/lock.h"
#include "ir/arithmetic.h"
#include "support/host_process.h"

typedef struct kj_background kj_background;
typedef struct kj_compile_threads kj_compile_threads; /* code/compile_thread.c */
typedef struct kj_disk kj_disk;                       /* code/disk.h */

/* ---- devices ---- */

kjit_status kj_find_device(kj_runtime *runtime, kjit_device_kind kind, int32_t ordinal,
                           kj_diagnostics *diagnostics, kjit_device **device);
/* The first device of the first of kj_device_kinds that has any. */
kjit_status kj_default_device(kj_runtime *runtime, kj_diagnostics *diagnostics,
                              kjit_device **device);

/* ---- objects of a host: so that the context's end frees what those have that were not released.
 * Their memory stays for the release: whoever holds references to others gives them back at the
 * context's end as ever, so that only the host's are left. ---- */

typedef struct kj_object {
  union {
    struct {
      struct kj_object *previous, *next;
      void (*destroy)(
        struct kj_object *object); /* ends with kj_free_object; it is in no list then */
    };
    kj_remains remains; /* behind kj_free_object, where is_left */
  };
  kjit_device *device; /* one that is none, where its context has ended */
  uint32_t generation; /* of the device when it was made; behind the context's end kj_forks then */
  bool is_left;        /* its context ends, or has ended, before the host's release */
} kj_object;

void kj_add_object(kjit_device *device, kj_object *object, void (*destroy)(kj_object *object));
/* The host's release: takes the object out of the context's list for what destroys it. false: there
 * is nothing to destroy, as its context has ended, or is another process's. */
bool kj_take_object(kj_object *object);
/* The last step of destroying. memory: the object's, malloc's. */
void kj_free_object(kj_object *object, void *memory);
/* For a host that asks; object NULL: NULL. */
static inline kjit_context *kj_told_context(const kj_object *object)
{
  return object ? ki_told_context(object->device->context) : NULL;
}
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

/* Type, rank, kind of memory and facts of an array in C order, as one word; never 0. */
static inline uint64_t kj_array_form(kjit_type element, uint32_t rank, int32_t device_type,
                                     uint32_t facts)
{
  KJ_ASSERT(rank <= KJ_MAX_RANK && facts < 1u << 15); /* each has bits of its own in the word */
  return (uint64_t)element | (uint64_t)(rank & 255) << 32 | (uint64_t)(device_type & 255) << 40 |
         (uint64_t)facts << 48 | (uint64_t)1 << 63;
}

/* A device in one of its generations, among all devices of the process. */
static inline uint64_t kj_place(const kjit_device *device, uint32_t generation)
{
  return (uint64_t)device->number << 32 | generation;
}

/* What a launch looks at, in one line of the cache; of an array whose memory more than two streams
 * use, the next line, too. */
typedef struct kj_array_line {
  /* kj_array_form; 0: of an array that launches have to look at closely */
  _Alignas(64) uint64_t form;
  uint64_t place;          /* kj_place of its device when it was made */
  uint64_t low, high;      /* addresses of its bytes */
  int64_t extent;          /* of the first dimension */
  kj_last_use *owners_use; /* of the array whose memory it is */
  kj_last_use use;         /* of its own memory */
} kj_array_line;
_Static_assert(sizeof(kj_array_line) == 128 && offsetof(kj_array_line, use) == 48,
               "two lines of the cache");

struct kjit_array {
  kj_object object;
  _Atomic uint32_t references;
  bool is_read_only;
  bool is_in_place;       /* host memory that a launch on a GPU uses where it is */
  kjit_array *owner;      /* whose memory it is: itself, or what a view was made of, retained */
  struct kj_block *block; /* of an owner; NULL: memory that others free */
  kj_array_line line;     /* made by kj_publish_array */
  kjit_tensor tensor;
  kjit_type element;
  kjit_memory memory;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
};

struct kjit_stream {
  kj_object object;
  _Atomic uint32_t references;
  void *native;    /* NULL: the device's default stream, and all streams of some kinds */
  kj_stream_id id; /* of all threads' own streams without the number of a thread */
  /* is_borrowed: the device's, never destroyed by the host; is_closing: kjit_destroy_stream waits
   * for it */
  bool is_owned, is_borrowed, is_closing;
  _Atomic(struct kj_capture *) capture; /* graph.c; NULL: what is queued runs */
  _Atomic uint32_t interrupts;          /* base/interrupt.h; 0: no word yet, or the device's own */
  kjit_stream *next_of_device;          /* under streams_mutex */
  kjit_stream *next_alive;              /* kjit_device.alive */
};

struct kjit_event {
  kj_object object;
  void *native;
  bool is_wrapped; /* the host's */
  bool is_recorded;
  uint64_t capture; /* number of the capture that it was recorded in; 0: none */
};

/* From when it has its native stream on, until that is destroyed or, a host's own, given back. */
void kj_note_alive(kjit_stream *stream);
void kj_note_destroyed(kjit_stream *stream);

/* stream NULL: the device's default stream. */
static inline kj_stream_id kj_id_of(const kjit_stream *stream, const kjit_device *device)
{
  if (!stream) return (kj_stream_id)device->number << KJ_STREAM_BITS;
  KJ_ASSERT(stream->id >> KJ_STREAM_BITS == stream->object.device->number);
  return stream->id & KJ_STREAM_THREADS ? kj_of_this_thread(stream->id) : stream->id;
}

/* Notes that the array's memory is used on a stream: before it is used again, what is queued there
 * now has to pass. No lock, no allocation. */
static inline void kj_note_use(kjit_array *array, const kjit_stream *stream,
                               const kjit_device *device)
{
  kj_stream_id id = kj_id_of(stream, device);
  if (!kj_is_recent_use(array->line.owners_use, id)) kj_add_use(array->line.owners_use, id);
}

/* ---- the runtime of a context ---- */

/* Devices of one kind. */
typedef struct kj_kind {
  const kj_device_operations *operations;
  /* under context->runtime_mutex, and without it once is_open is set */
  _Atomic bool is_open;
  /* opening it has failed: nobody who does not ask for this kind tries again */
  _Atomic bool is_absent;
  void *shared; /* see operations->count */
  uint32_t count;
  _Atomic(kjit_device *) *devices; /* made when first asked for */
} kj_kind;

enum { KJ_MOST_KINDS = 4 };

/* What a layer above adds to each runtime and to each device, by attaching to it. NULL: nothing. */
typedef struct kj_layer {
  kjit_status (*open_runtime)(kj_runtime *runtime, kj_diagnostics *diagnostics);
  kjit_status (*open_device)(kjit_device *device, kj_diagnostics *diagnostics);
} kj_layer;

/* runtime/layers.c: the layers from the ground up, and the kinds of devices, the one first that a
 * launch prefers. Both end with a row of NULL. */
extern const kj_layer kj_layers[];
extern const kj_device_operations *const kj_device_kinds[];
/* Returns the operations that replace a kind of devices in a context. target is
 * kjit_config.target; NULL means this machine's own devices. */
typedef const kj_device_operations *kj_kind_choice(const kj_device_operations *kind,
                                                   const char *target);
extern kj_kind_choice *const kj_choose_kind;

struct kj_runtime {
  kjit_context *context;
  pthread_mutex_t objects_mutex; /* protects objects, parked and attachments */
  kj_object *objects;
  kj_attachment *attachments;
  /* ---- memory/, stream/ ---- */
  _Atomic(struct kj_block *) parked; /* memory/pool.h */
  /* counts waits for whole devices: what was queued before one began has passed when it ends */
  _Atomic uint64_t waits;
  pthread_mutex_t streams_mutex; /* protects the streams of all devices and what is captured */
  pthread_cond_t waits_changed;  /* a wait for a device has ended */
  struct kj_capture *captures;   /* under way */
  /* The host has had streams that it may capture by itself: its own, or a thread's. */
  _Atomic bool has_hosts_streams;
  kj_attachment order_attachment, capture_attachment, code_attachment;
  /* lines that kernels have printed and the host does not have yet; report/print.c */
  pthread_mutex_t print_mutex;
  kj_buffer lines;
  bool is_delivering;
  kj_kind kinds[KJ_MOST_KINDS];
  uint32_t kind_count;
  /* ---- code/ ---- */
  kj_disk *disk;                        /* the disk cache, switched off or not */
  _Atomic(struct kj_archive *) imports; /* code from blobs and files, see code/blob.c */
  /* specializations with code, the one loaded first at the front; see code/evict.c */
  pthread_mutex_t loaded_mutex;
  struct kjit_specialization *loaded;
  uint64_t loaded_bytes;
  _Atomic(kjit_module *) library; /* kernels of kjit itself; NULL: not needed yet */
  /* ---- algorithm/ ---- */
  struct ka_cache *algorithms;
  /* ---- launch/: kjit_launch as part of another call, which reports what it says ---- */
  kjit_status (*launch)(kjit_kernel *kernel, const kjit_launch_config *config,
                        const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics);
  /* under context->runtime_mutex */
  kj_background *background; /* NULL: nothing was ever compiled beside the host's threads */
  /* under compiler_mutex */
  pthread_mutex_t compiler_mutex;
  void *compiler_library;
  const kj_compiler_interface *interface;
  kj_compiler *compiler;
  _Atomic bool has_compiler; /* interface and compiler can be read without the lock */
  kj_compile_threads *compile_threads;
};

/* NULL only when out of memory. */
kj_runtime *kj_get_runtime(kjit_context *context);
/* The devices of a kind, or NULL. */
kj_kind *kj_find_kind(kj_runtime *runtime, kjit_device_kind kind);
/* Another kind of device, which a host then gets as any other; before anybody asks for one of it.
 */
kjit_status kj_add_kind(kjit_context *context, const kj_device_operations *operations,
                        kj_diagnostics *diagnostics);
/* Another driver in place of the system's; before the first use of it. */
kjit_status kj_use_driver(kjit_context *context, void *(*find)(void *user, const char *symbol),
                          void *user, kj_diagnostics *diagnostics);

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

/* A plain number of a host: weak int when it is integral and fits i32, else weak float. */
ki_value kj_number_value(double number);
/* The literal that an argument of kind KJIT_ARG_NUMBER is: of kjit_arg_real always a weak float. */
ki_value kj_argument_number(const kjit_arg *argument);
/* The type of a KJ_ARGUMENT_NUMBER for that number: an integer of more than 32 bits has another
 * one than a smaller integer. */
kjit_type kj_number_type(ki_value number);

/* DLPack's device type for extensions: memory of one of several CPU devices. */
enum { KJ_DLPACK_PLACED = 12 };

/* What a tensor's device_type and device_id mean to a launch; false: none that kjit knows. Pinned
 * memory is the host's, managed memory the GPU's. Memory of the host has ordinal 0. */
bool kj_locate_tensor(const kjit_tensor *tensor, kjit_device_kind *kind, int32_t *ordinal);

#endif
