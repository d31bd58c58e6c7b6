/* A device and its operations. runtime/cuda and runtime/cpu each provide a table of functions for
 * their kind of device. Higher layers call these functions and do not depend on the kind. A layer
 * can attach its own state to a device, with functions that run when kjit waits for the device,
 * resets it or destroys it. */
#ifndef KJ_DEVICE_H
#define KJ_DEVICE_H

#include <kjit/runtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/device_operations.h"
#include "base/status.h"
#include "compiler.h"
#include "support/assert.h"

/* ---- state that higher layers attach to a device, or to the runtime of a context ---- */

typedef struct kj_attachment kj_attachment;

/* The functions of a layer that is attached to a device or a runtime. Each function may be NULL.
 * They are called in the order of attachment, except stop and destroy, which are called in reverse
 * order. The caller holds no lock of the runtime. */
typedef struct kj_attachment_class {
  /* Called when the context ends. Joins the layer's threads and cancels its work. Modules and
   * objects are released after all attachments have stopped. */
  void (*stop)(kj_attachment *attachment);
  /* Frees the attachment. If the device is not lost, its driver context still exists. */
  void (*destroy)(kj_attachment *attachment);
  /* Called after a reset of the device, which has freed all its resources. */
  void (*forget)(kj_attachment *attachment);
  /* begin_wait and end_wait are called before and after a wait for the whole device. begin_wait
   * returns the part of the layer's state that the wait concerns, and end_wait receives it as
   * `covered`. is_done: whether the wait succeeded. */
  void *(*begin_wait)(kj_attachment *attachment);
  /* Called after begin_wait. Returns MISUSE if no call may wait for the device now. */
  kjit_status (*check_wait)(kj_attachment *attachment, kj_diagnostics *diagnostics);
  void (*end_wait)(kj_attachment *attachment, void *covered, bool is_done);
  /* Returns cached memory to the driver, which is out of memory. */
  void (*relieve)(kj_attachment *attachment);
  /* Called after a public call has waited for the device or for one of its streams. deliver passes
   * the lines that kernels have printed to the application. report reports failed kernels
   * (KERNEL). */
  void (*deliver)(kj_attachment *attachment);
  kjit_status (*report)(kj_attachment *attachment, kj_diagnostics *diagnostics);
} kj_attachment_class;

struct kj_attachment {
  const kj_attachment_class *class;
  kj_attachment *next; /* for an attachment of the runtime: next one in the list, made earlier */
  kjit_device *device; /* NULL for an attachment of the runtime */
  kj_runtime *runtime;
};

enum { KJ_MOST_ATTACHMENTS = 8 }; /* maximum number of attachments of one device */

/* Attaches a layer. The attachment has to live until its destroy function is called. */
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
  /* true for the device of a context with kjit_config.target: the device runs nothing, and the
   * cache keys of its code do not depend on this machine */
  bool is_target;
  /* True if this is the only device of its kind. Messages then omit the ordinal. If it is false for
   * a CPU, the context has several CPU devices, and each array belongs to one CPU device. */
  bool is_single;
  kj_cpu_level level; /* instruction set level of code for the CPU */
  /* compilation target, for example "sm_90a", and its suffix: 'a' if code may use features of this
   * architecture only, otherwise 0 */
  char code_target[20], suffix;
  /* limit for the PTX version of code if the driver is old: the newest version that it accepts (78
   * means 7.8); 0 means no limit */
  uint32_t ptx_limit;
  void *shared;    /* state that all devices of the kind use, see operations->count */
  uint32_t number; /* number of this object, unique in the process, starting with 1 */
  /* fields that every launch reads */
  /* the driver's launch function; NULL means that the device has no fast path */
  _Alignas(64) kj_driver_launch *start;
  /* Gets the driver context that is current on this thread. The default streams belong to that
   * context, see kj_is_elsewhere. NULL if start is NULL. */
  int (*get_context)(void **context);
  void *primary; /* the device's primary context, to which kjit has a reference */
  struct kj_driver *driver;
  _Atomic uint64_t epoch, synchronized_epoch;
  _Atomic uint32_t generation; /* number of resets so far; objects that were created before the last
                                  reset are lost */
  _Atomic bool lost;
  /* fields that few launches read */
  char *fault;           /* the reason why the device is lost; written once, before `lost` is set */
  pthread_mutex_t mutex; /* protects fault, the head of marks, and failure_slots */
  _Atomic(kj_launch_mark *) marks;
  /* a thread that adds a mark holds mutex; other threads read the marks without it */
  kj_attachment *attachments[KJ_MOST_ATTACHMENTS];
  _Atomic uint32_t attachment_count;
  _Atomic uint32_t captures; /* number of running captures on the device's streams; while it is not
                              * 0, no call can wait for the device */
  struct kj_memory *memory;  /* see memory/pool.h; NULL if work is not queued */
  kj_attachment *unloading;  /* see code/evict.c; NULL if code is unloaded
                              * immediately */
  _Atomic uint64_t failures; /* number of kernel failures detected so far */
  /* failure records of loaded specializations whose threads can fail */
  struct kj_failure_slot *failure_slots;
  struct kj_prints *prints;         /* see report/print.c; NULL if kernels run inside the
                                     * launch call */
  struct kj_interrupts *interrupts; /* see base/interrupt.c; NULL if code is not
                                     * interruptible */
  uint32_t multiprocessor_threads;  /* maximum number of resident threads */
  /* has_launch_attributes: a launch can have a priority, or begin before the preceding launch
   * ends */
  bool has_launch_attributes, has_cooperative_launch, has_clusters;
  /* bit mask of the devices of this kind, by ordinals below 64, whose memory the kernels of this
   * device can access */
  _Atomic uint64_t peers;
  kjit_stream *alive;                          /* live streams, for kj_assert_alive; protected by
                                                * mutex */
  kjit_stream *default_stream, *thread_stream; /* stream objects, created on request under mutex, or
                                                * NULL */
  /* CUDA */
  int handle;
  /* CPU */
  uint32_t workers;
  /* unused scratch buffers, which the next launches reuse */
  _Atomic(void *) scratch[KJ_SCRATCH_SLOTS];
};

/* Returns whether a launch on this stream needs a change of context. All default streams have the
 * same handle, which means the default stream of the current context. If a launch uses the default
 * stream of another context, CUDA's driver invalidates a capture in that context before it checks
 * to which context the kernel belongs (driver 580). So a launch checks the context first; if
 * another context is current, operations->retry launches the kernel. */
static inline bool kj_is_elsewhere(const kjit_device *device, const void *native)
{
  enum { PER_THREAD = 2 }; /* the handles 0 and 1 mean the legacy default stream */
  void *current = NULL;
  return (uintptr_t)native <= PER_THREAD &&
         (device->get_context(&current) || current != device->primary);
}
enum { KJ_ELSEWHERE = -1 }; /* a value that no driver returns as an error number */

static inline bool kj_is_linked(const kjit_device *device)
{
  return kj_get_code_format(device->operations->target)->is_linked;
}
/* Prints "cpu" or "cuda:0" for messages. */
const char *kj_device_text(const kjit_device *device, char text[24]);
/* Returns DEVICE with the cause if the device is lost. */
kjit_status kj_check_device(const kjit_device *device, kj_diagnostics *diagnostics);
/* Records a fault that the driver reported. The device is lost until it is reset. */
void kj_lose_device(kjit_device *device, const char *text);
/* Waits for a stream or for the whole device, and calls the wait functions of the attachments. */
kjit_status kj_synchronize(kjit_device *device, bool whole, void *stream,
                           kj_diagnostics *diagnostics);
/* Delivers printed lines to the application, also after a fault, because the lines help to find the
 * cause. Each public call that has waited calls this without holding a lock. */
void kj_deliver_lines(kjit_device *device);
/* Delivers printed lines like the function above, and reports failed kernels. Returns KERNEL, or OK
 * if no kernel failed. */
kjit_status kj_report_kernels(kjit_device *device, kj_diagnostics *diagnostics);
/* Called after the driver ran out of memory: returns all cached memory to the driver, so that the
 * caller can try again. The caller holds no lock. */
void kj_relieve_device(kjit_device *device);
/* Returns whether streams of the device are being captured. */
static inline bool kj_has_captures(const kjit_device *device)
{
  return atomic_load(&device->captures);
}
/* Returns MISUSE while streams of the device are being captured, because no call can wait for the
 * device then. */
kjit_status kj_check_captures(const kjit_device *device, kj_diagnostics *diagnostics);

/* ---- checks that native streams are alive; runtime.c, in builds with assertions ---- */

/* Returns whether a native stream is valid: it was created or wrapped and not destroyed, or it is a
 * default stream, which always exists. */
bool kj_is_alive(kjit_device *device, const void *native);
/* Asserts that a native stream is valid. Called before the stream is passed to a driver. */
static inline void kj_assert_alive(kjit_device *device, const void *native)
{
  if (KJ_HAS_ASSERTIONS) KJ_ASSERT(kj_is_alive(device, native));
}

/* ---- launch marks, for the messages of faults ---- */

/* Returns the mark of all kernels with a name, or NULL if out of memory. Kernels with the same name
 * have one mark, because an application may create many such kernels. */
kj_launch_mark *kj_get_mark(kjit_device *device, const char *name);
/* Records that all launches up to an epoch, on a stream or on the whole device, have ended. */
void kj_note_synchronized(kjit_device *device, bool whole, void *stream, uint64_t epoch);

/* Records that a kernel was launched. Stores only values that have changed, because many threads
 * may launch the same kernel, and its mark is one cache line. */
static inline void kj_mark_launch(kjit_device *device, kj_launch_mark *mark, void *stream)
{
  /* This value is not a stream's address: 1 is CUDA's handle of the legacy default stream, and
   * kj_wrap_stream replaces that handle by NULL. */
  enum { MIXED = 1 };
  uint64_t epoch = atomic_load_explicit(&device->epoch, memory_order_relaxed),
           marked = atomic_load_explicit(&mark->epoch, memory_order_relaxed);
  uintptr_t known = atomic_load_explicit(&mark->stream, memory_order_relaxed),
            here = (uintptr_t)stream;
  if (known == here && marked == epoch) return; /* usually the mark is up to date */
  bool is_pending =
    marked > atomic_load_explicit(&device->synchronized_epoch, memory_order_relaxed);
  if (known != here && known != MIXED)
    atomic_store_explicit(&mark->stream, is_pending ? MIXED : here, memory_order_relaxed);
  if (known == MIXED && !is_pending)
    atomic_store_explicit(&mark->stream, here, memory_order_relaxed);
  if (marked != epoch) atomic_store_explicit(&mark->epoch, epoch, memory_order_relaxed);
}

#endif
