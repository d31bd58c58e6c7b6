/* What the parts of the runtime share: the context's runtime object, devices, arrays, streams, events. */
#ifndef KJ_RUNTIME_H
#define KJ_RUNTIME_H

#include <kjit/runtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "compiler.h"
#include "cuda/driver.h"
#include "support/context.h"

typedef struct kj_runtime kj_runtime;
typedef struct kj_background kj_background;
typedef struct kj_disk kj_disk; /* dispatch/disk.h */

/* ---- errors ---- */

/* Reports an error without a source place and gives its status back: return kj_error(d, KJIT_ERROR_ARGUMENT, "...", ...). */
kjit_status kj_error(kj_diagnostics *diagnostics, kjit_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
kjit_status kj_error_at(kj_diagnostics *diagnostics, const kjit_module *module, kj_location location, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 5, 6)));

#define KJ_TRY(call) \
  do { \
    kjit_status status_ = (call); \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

/* ---- devices ---- */

/* A kernel that was launched on a device, for the message of a fault: faults arrive long after the launch that made them. Lives as long as the device. */
typedef struct kj_launch_mark {
  struct kj_launch_mark *next;
  char *name;
  _Atomic uint64_t epoch;   /* the device's when it was launched last */
  _Atomic uintptr_t stream; /* where; MIXED: on several since the last synchronization */
} kj_launch_mark;

enum { KJ_SCRATCH_SLOTS = 64 };

struct kjit_device {
  kjit_context *context;
  kj_runtime *runtime;
  kjit_device_info info;
  char name[256], target[16];
  /* CUDA */
  kj_driver *driver;
  int handle;
  void *primary;               /* CUcontext, retained */
  _Atomic uint32_t generation; /* counts resets: what was made in an earlier one is lost */
  _Atomic bool lost;
  char *fault;           /* why it is lost; written once before lost is set */
  pthread_mutex_t mutex; /* protects fault, the head of marks, and failure_slots */
  _Atomic(kj_launch_mark *) marks;
  _Atomic uint64_t epoch, synchronized_epoch;
  struct kj_failure_slot *failure_slots; /* of the loaded specializations whose threads may fail */
  uint32_t ptx_limit;                    /* the newest PTX that the driver takes, 90: PTX 9.0; 0: newer than any known */
  /* CPU */
  uint32_t workers;
  _Atomic(void *) scratch[KJ_SCRATCH_SLOTS]; /* buffers that no launch uses */
};

/* dispatch/failure.c: reports the failures of kernels that the device has recorded since the last call. KERNEL, or OK where there are none. */
kjit_status kj_take_failures(kjit_device *device, kj_diagnostics *diagnostics);

static inline bool kj_is_cuda(const kjit_device *device) { return device->info.kind == KJIT_DEVICE_CUDA; }
/* "cpu", "cuda:0" for messages. */
const char *kj_device_text(const kjit_device *device, char text[24]);

kjit_status kj_find_device(kj_runtime *runtime, kjit_device_kind kind, int32_t ordinal, kj_diagnostics *diagnostics, kjit_device **device);
/* The first CUDA device, else the CPU. */
kjit_status kj_default_device(kj_runtime *runtime, kj_diagnostics *diagnostics, kjit_device **device);

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

struct kjit_array {
  kj_object object;
  _Atomic uint32_t references;
  kjit_tensor tensor;
  kjit_type element;
  int64_t shape[KJ_MAX_RANK], strides[KJ_MAX_RANK];
};

struct kjit_stream {
  kj_object object;
  void *native; /* CUstream */
  bool is_owned;
};

struct kjit_event {
  kj_object object;
  void *native; /* CUevent */
  bool is_recorded;
  uint64_t time_ns; /* CPU */
};

/* ---- the runtime of a context ---- */

struct kj_runtime {
  kjit_context *context;
  kj_disk *disk; /* the disk cache; NULL: none */
  pthread_mutex_t objects_mutex;
  kj_object *objects;
  /* under context->runtime_mutex */
  kj_background *background; /* NULL: nothing was ever compiled beside the host's threads */
  kjit_device *cpu;
  kj_driver *driver; /* NULL: not opened, or there is none */
  uint32_t cuda_count;
  _Atomic(kjit_device *) *cuda; /* cuda_count devices, made when first asked for */
  _Atomic bool has_driver;      /* driver, cuda_count and cuda can be read without the lock */
  _Atomic bool lacks_driver;    /* opening it has failed: nobody who does not ask for CUDA tries again */
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
/* Another driver or compiler in place of the ones that would be loaded; before the first use of either. */
kjit_status kj_use_driver(kjit_context *context, void *(*find)(void *user, const char *symbol), void *user, kj_diagnostics *diagnostics);
kjit_status kj_use_compiler(kjit_context *context, const kj_compiler_interface *interface, kj_diagnostics *diagnostics);

/* Host clock for times and the CPU's events. */
uint64_t kj_clock_ns(void);

/* ---- scalar types as DLPack has them ---- */

/* KJIT_ANY: no type of kjit. */
kjit_type kj_type_of_dlpack(uint8_t code, uint8_t bits);
uint32_t kj_element_bytes(kjit_type type);
/* What an element's address is a multiple of: the part's size for complex numbers. */
uint32_t kj_element_alignment(kjit_type type);

/* What a tensor's device_type and device_id mean to a launch; false: none that kjit knows. Pinned memory is the host's, managed memory the GPU's. */
bool kj_locate_tensor(const kjit_tensor *tensor, kjit_device_kind *kind, int32_t *ordinal);

#endif
