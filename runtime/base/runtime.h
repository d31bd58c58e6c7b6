/* Definitions that the parts of the runtime share: the runtime object of a context, devices,
 * arrays, streams and events. */
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
/* Returns the first device of the first kind in kj_device_kinds that has a device. */
kjit_status kj_default_device(kj_runtime *runtime, kj_diagnostics *diagnostics,
                              kjit_device **device);

/* ---- objects of the application: when the context ends, it frees the resources of the objects
 * that the application has not released. The memory of such an object stays valid until the
 * application releases it. The object also releases its references to other objects, so only
 * references of the application remain. ---- */

typedef struct kj_object {
  union {
    struct {
      struct kj_object *previous, *next;
      void (*destroy)(struct kj_object *object); /* called when the object is in no list any more;
                                                    the function ends with kj_free_object */
    };
    kj_remains remains; /* used instead after kj_free_object, if is_left is set */
  };
  kjit_device *device; /* after the context's end, a device without operations */
  uint32_t generation; /* generation of the device when the object was made; after the context's
                          end, the argument of kj_drop_remains */
  bool is_left; /* true if the context ended, or is ending, before the application released the
                   object */
} kj_object;

void kj_add_object(kjit_device *device, kj_object *object, void (*destroy)(kj_object *object));
/* Removes the object from the context's list when the application releases it, so that the caller
 * can destroy it. Returns false if the caller has nothing to destroy, because the context has ended
 * or belongs to another process. */
bool kj_take_object(kj_object *object);
/* Last step of destroying an object: frees its malloc'd memory. If the application has not released
 * the object yet, the memory stays until the application does. */
void kj_free_object(kj_object *object, void *memory);
/* Returns the object's context for the application: NULL if object is NULL or the context has
 * ended. */
static inline kjit_context *kj_told_context(const kj_object *object)
{
  return object ? ki_told_context(object->device->context) : NULL;
}
/* Returns DEVICE if the device is lost, or was reset after the object was made. */
kjit_status kj_check_object(const kj_object *object, const char *what, kj_diagnostics *diagnostics);

/* Returns the number of elements in an array in C order. Returns 0 for any other order, an empty
 * array, or an array too large for 32-bit offsets. strides: NULL means C order. */
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

enum { KJ_FORM_FACTS_AT = 48 };

/* Encodes type, rank, kind of memory and facts of an array in C order as one nonzero word. */
static inline uint64_t kj_array_form(kjit_type element, uint32_t rank, int32_t device_type,
                                     uint32_t facts)
{
  KJ_ASSERT(rank <= KJ_MAX_RANK && facts < 1u << 15); /* each value has its own bits in the word */
  return (uint64_t)element | (uint64_t)(rank & 255) << 32 | (uint64_t)(device_type & 255) << 40 |
         (uint64_t)facts << KJ_FORM_FACTS_AT | (uint64_t)1 << 63;
}

/* Encodes a device and one of its generations as a number that is unique in the process. */
static inline uint64_t kj_place(const kjit_device *device, uint32_t generation)
{
  return (uint64_t)device->number << 32 | generation;
}

/* The fields in an array that a launch reads, in one cache line. If more than two streams use the
 * memory, the launch also reads the next cache line. */
typedef struct kj_array_line {
  /* see kj_array_form; 0 if launches with the array must take the slow path */
  _Alignas(64) uint64_t form;
  uint64_t place;          /* kj_place of the device when the array was made */
  uint64_t low, high;      /* byte addresses: the first byte, and the byte after the last one */
  int64_t extent;          /* extent of the first dimension */
  kj_last_use *owners_use; /* last use of the memory: the owner's field `use` */
  kj_last_use use;         /* last use of the array's own memory */
} kj_array_line;
_Static_assert(sizeof(kj_array_line) == 128 && offsetof(kj_array_line, use) == 48,
               "two lines of the cache");

struct kjit_array {
  kj_object object;
  _Atomic uint32_t references;
  bool is_read_only;
  bool is_in_place;  /* host memory that a launch on a GPU uses without a copy */
  kjit_array *owner; /* the array that owns the memory: the array itself or, for a view, the viewed
                        array, which the view retains */
  struct kj_block *block; /* the owner's memory block, or NULL if kjit does not free the memory */
  kj_array_line line;     /* the fields that a launch reads; kj_publish_array sets them */
  kjit_tensor tensor;
  kjit_type element;
  kjit_memory memory;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
};

struct kjit_stream {
  kj_object object;
  _Atomic uint32_t references;
  void *native;    /* driver handle; NULL for the device's default stream, and for all streams of a
                      device without native streams */
  kj_stream_id id; /* a per-thread default stream has an id without a thread number */
  /* is_borrowed: the stream belongs to the device, and the application must not destroy it.
   * is_closing: kjit_destroy_stream waits for the stream */
  bool is_owned, is_borrowed, is_closing;
  _Atomic(struct kj_capture *) capture; /* the capture that records the operations on the stream
                                           (graph.c); NULL if the operations run */
  _Atomic uint32_t interrupts;          /* see base/interrupt.c; 0 if the stream has no interrupt
                                         * word yet, or uses the device's */
  kjit_stream *next_of_device;          /* protected by streams_mutex */
  kjit_stream *next_alive;              /* see kjit_device.alive */
};

struct kjit_event {
  kj_object object;
  void *native;
  bool is_wrapped; /* the native event belongs to the application */
  bool is_recorded;
  uint64_t capture; /* number of the capture in which the event was recorded, or 0 */
};

/* Mark the beginning and the end of the time in which kjit uses a native stream. kj_note_alive is
 * called after the stream was created or wrapped. kj_note_destroyed is called when the stream, or
 * the object that wraps the application's stream, is destroyed. */
void kj_note_alive(kjit_stream *stream);
void kj_note_destroyed(kjit_stream *stream);

/* Returns the id of a stream. NULL means the device's default stream. */
static inline kj_stream_id kj_id_of(const kjit_stream *stream, const kjit_device *device)
{
  if (!stream) return (kj_stream_id)device->number << KJ_STREAM_BITS;
  KJ_ASSERT(stream->id >> KJ_STREAM_BITS == stream->object.device->number);
  return stream->id & KJ_STREAM_THREADS ? kj_of_this_thread(stream->id) : stream->id;
}

/* Records that a stream uses the array's memory. Later work of other streams on this memory waits
 * for the work that is queued on this stream now. Takes no lock and allocates nothing. */
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
  /* The fields below change under context->runtime_mutex. After is_open is set, threads read them
   * without the mutex. */
  _Atomic bool is_open;
  /* true if opening the devices of this kind has failed; only calls that explicitly name the kind
   * try again */
  _Atomic bool is_absent;
  void *shared; /* see operations->count */
  uint32_t count;
  /* devices; a device is created when it is requested for the first time */
  _Atomic(kjit_device *) *devices;
} kj_kind;

enum { KJ_MOST_KINDS = 4 };

/* Functions with which a higher layer attaches its state to each runtime and each device. A
 * function is NULL if the layer has no such state. */
typedef struct kj_layer {
  kjit_status (*open_runtime)(kj_runtime *runtime, kj_diagnostics *diagnostics);
  kjit_status (*open_device)(kjit_device *device, kj_diagnostics *diagnostics);
} kj_layer;

/* runtime/layers.c: the layers in the order of their dependencies, and the kinds of devices in the
 * order in which a launch prefers them. A NULL row ends each table. */
extern const kj_layer kj_layers[];
extern const kj_device_operations *const kj_device_kinds[];
/* A function that returns the operations for a kind of device in a context; they can differ from
 * the usual operations. target is kjit_config.target; NULL means this machine's devices. */
typedef const kj_device_operations *kj_kind_choice(const kj_device_operations *kind,
                                                   const char *target);
extern kj_kind_choice *const kj_choose_kind;

struct kj_runtime {
  kjit_context *context;
  pthread_mutex_t objects_mutex; /* protects objects, parked and attachments */
  kj_object *objects;
  kj_attachment *attachments;
  /* ---- memory/, stream/ ---- */
  _Atomic(struct kj_block *) parked; /* see memory/pool.h */
  /* number of waits for whole devices so far; when such a wait ends, all work has ended that was
   * queued before the wait */
  _Atomic uint64_t waits;
  pthread_mutex_t streams_mutex; /* protects the streams of all devices, and captures */
  pthread_cond_t waits_changed;  /* signalled when a wait for a device ends */
  struct kj_capture *captures;   /* list of running captures */
  /* true if the application has used streams that it can capture without kjit's knowledge: its own
   * streams, or per-thread default streams */
  _Atomic bool has_hosts_streams;
  kj_attachment order_attachment, capture_attachment, code_attachment;
  /* printed lines that on_print has not received yet; see report/print.c */
  pthread_mutex_t print_mutex;
  kj_buffer lines;
  bool is_delivering;
  kj_kind kinds[KJ_MOST_KINDS];
  uint32_t kind_count;
  /* ---- code/ ---- */
  kj_disk *disk; /* the disk cache; not NULL even if the disk cache is disabled */
  _Atomic(struct kj_archive *) imports; /* code from blobs and files, see code/blob.c */
  /* specializations with loaded code, oldest first; see code/evict.c */
  pthread_mutex_t loaded_mutex;
  struct kjit_specialization *loaded;
  uint64_t loaded_bytes;
  _Atomic(kjit_module *) library; /* module with kjit's own kernels (fills and copies); created when
                                     a call first needs it */
  /* ---- algorithm/ ---- */
  struct ka_cache *algorithms;
  /* ---- launch/: kjit_launch for use inside another call, which reports the messages ---- */
  kjit_status (*launch)(kjit_kernel *kernel, const kjit_launch_config *config,
                        const kjit_arg *arguments, size_t count, kj_diagnostics *diagnostics);
  /* created under context->runtime_mutex */
  kj_background *background; /* background compilation, or NULL if it was never used */
  /* protected by compiler_mutex */
  pthread_mutex_t compiler_mutex;
  void *compiler_library;
  const kj_compiler_interface *interface;
  kj_compiler *compiler;
  _Atomic bool has_compiler; /* true if interface and compiler are set; they can then be read
                                without the lock */
  kj_compile_threads *compile_threads;
};

/* Returns a context's runtime, created at the first call, or NULL if out of memory. */
kj_runtime *kj_get_runtime(kjit_context *context);
/* Returns the devices of a kind, or NULL. */
kj_kind *kj_find_kind(kj_runtime *runtime, kjit_device_kind kind);
/* Adds a kind of device to a context. The application can then use devices of this kind like other
 * devices. Must be called before the first use of the kind. */
kjit_status kj_add_kind(kjit_context *context, const kj_device_operations *operations,
                        kj_diagnostics *diagnostics);
/* Sets the function that finds the driver's entry points, in place of the system's CUDA driver.
 * Must be called before the first use of CUDA. */
kjit_status kj_use_driver(kjit_context *context, void *(*find)(void *user, const char *symbol),
                          void *user, kj_diagnostics *diagnostics);

/* ---- element.c: array elements ---- */

/* Returns a scalar type, or KJIT_ANY if kjit has no such type. */
kjit_type kj_type_of_dlpack(uint8_t code, uint8_t bits);
/* Returns the element type of a tensor. given is the type that the application specified, or
 * KJIT_ANY. Returns KJIT_ANY if kjit has no type for the elements. */
kjit_type kj_type_of_tensor(ki_types *types, const kjit_tensor *tensor, kjit_type given);
/* Returns an element's size in bytes. types may be NULL for scalar types. */
uint32_t kj_element_bytes(const ki_types *types, kjit_type type);
/* Returns the alignment of an element in bytes. For a complex number this is the size of its real
 * part. */
uint32_t kj_element_alignment(const ki_types *types, kjit_type type);
/* Sets code, bits and lanes of the tensor for an element type. */
void kj_describe_element(const ki_types *types, kjit_type element, kjit_tensor *tensor);

/* Converts an untyped number of the application to a weak int if it is integral and fits i32, and
 * otherwise to a weak float. */
ki_value kj_number_value(double number);
/* Returns an argument of kind KJIT_ARG_NUMBER as a literal. kjit_arg_real always gives a weak
 * float. */
ki_value kj_argument_number(const kjit_arg *argument);
/* Returns the type of the KJ_ARGUMENT_NUMBER for an untyped number: i64 or u64 for an integer that
 * does not fit i32, and the weak type of the number otherwise. */
kjit_type kj_number_type(ki_value number);

/* DLPack's device type for extensions, used for memory of one of several CPU devices. */
enum { KJ_DLPACK_PLACED = 12 };

/* Finds the device to which the tensor's memory belongs in a launch. Pinned memory belongs to the
 * host, managed memory to the GPU. Host memory has ordinal 0. Returns false if kjit does not know
 * the device type. */
bool kj_locate_tensor(const kjit_tensor *tensor, kjit_device_kind *kind, int32_t *ordinal);

#endif
