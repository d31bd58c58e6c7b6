/* kjit/memory.h: arrays and their memory, copies, other owners of memory (DLPack, other processes).
 * See status.h for the rules that hold for every function. */
#ifndef KJIT_MEMORY_H
#define KJIT_MEMORY_H

#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making arrays ---- */

/* Where an array's memory is. On the CPU's device DEVICE, PINNED, MAPPED and MANAGED are all the
 * machine's memory. */
typedef enum kjit_memory {
  /* the device's own, from the pool: allocated and released in the order of a stream */
  KJIT_MEMORY_DEVICE = 0,
  /* the host's, locked: copies to and from the device run beside the host; a launch on a GPU copies
     it as any host array */
  KJIT_MEMORY_PINNED,
  /* the same, but a launch on a GPU reads and writes it in place, over the bus */
  KJIT_MEMORY_MAPPED,
  /* moves between host and device as it is used; the host may touch it when no kernel runs that
     uses it */
  KJIT_MEMORY_MANAGED,
  /* the device's own, outside the pool, for kjit_export_array; on the CPU memory that another
     process can map */
  KJIT_MEMORY_SHARED
} kjit_memory;

/* What kjit_create_array_with makes. */
typedef struct kjit_array_config {
  uint32_t size_bytes;  /* sizeof(kjit_array_config) */
  kjit_device *device;  /* default NULL: MISUSE */
  kjit_type element;    /* a scalar, vector, struct or pointer type */
  uint32_t rank;        /* default 0: one element */
  const int64_t *shape; /* rank extents, none negative */
  kjit_layout
    layout; /* KJIT_LAYOUT_F: the first index runs fastest; else, as by default, the last one */
  kjit_memory memory; /* default KJIT_MEMORY_DEVICE */
  /* in whose order DEVICE memory is allocated and released; default NULL: the device's default
   * stream */
  kjit_stream *stream;
} kjit_array_config;

/* A new array, contiguous, contents undefined. DEVICE memory may have been released before by work
 * that is still queued on the stream: use it on other streams only after waiting for an event that
 * was recorded there after this call, as for anything else that the stream does. Errors:
 * DEVICE_MEMORY, MEMORY, ARGUMENT, UNSUPPORTED, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array_with(const kjit_array_config *config,
                                                       kjit_array **array);
/* Makes an array in memory of the device (KJIT_MEMORY_DEVICE), row-major, on the default stream:
 * what is in it is not defined. kjit_create_array_with makes all others. Errors: as there. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array(kjit_device *device, kjit_type element,
                                                  const int64_t *shape, uint32_t rank,
                                                  kjit_array **array);
/* Shape, element, order of dimensions, device, kind of memory and stream of the model, contents
 * undefined. The model of a strided view gives a row-major array. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array_like(const kjit_array *model, kjit_array **array);
/* A row-major array in DEVICE memory with the elements of a tensor, on the host or a device, of any
 * strides; returns when they are there. Errors: as kjit_copy's, too. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array_from(kjit_device *device,
                                                       const kjit_tensor *source,
                                                       kjit_stream *stream, kjit_array **array);

/* An array may be released while kernels on it are queued: its memory is used again, in the order
 * of its stream, after every launch that was given the kjit_array. What was launched with a tensor
 * that has the same address is not known to kjit. Releasing PINNED, MAPPED, MANAGED and SHARED
 * memory waits for the work that uses it. */
KJIT_API kjit_array *kjit_retain_array(kjit_array *array);
/* Gives up what creating, retaining or taking it gave. array NULL is fine. */
KJIT_API void kjit_release_array(kjit_array *array);
/* The array as a tensor; borrowed. device_type is DLPack's: 1 CPU, 2 CUDA, 3 pinned and mapped host
 * memory, 13 managed memory. */
KJIT_API const kjit_tensor *kjit_get_tensor(const kjit_array *array);
KJIT_API kjit_type kjit_get_array_element(const kjit_array *array);   /* KJIT_ANY for NULL */
KJIT_API kjit_device *kjit_get_array_device(const kjit_array *array); /* borrowed; NULL for NULL */
/* The context that the array belongs to. */
KJIT_API kjit_context *kjit_get_array_context(const kjit_array *array);

/* Memory of the host's own as an array: nothing is copied or freed; it has to outlive the array and
 * everything queued with it. The tensor's device_type says where it is. Errors: ARGUMENT,
 * NO_DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_wrap_tensor(kjit_context *context, const kjit_tensor *tensor,
                                                 kjit_array **array);

/* Makes existing host memory pinned, so that copies run beside the host, or unpins it again. On the
 * CPU's device both do nothing. Errors: DEVICE, ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_pin_memory(kjit_device *device, void *memory,
                                                size_t size_bytes);
/* Unpins what kjit_pin_memory has pinned. Errors: as above. */
KJIT_API KJIT_CHECK kjit_status kjit_unpin_memory(kjit_device *device, void *memory);
/* Moves MANAGED memory to a device ahead of its use: to a GPU, or to the host with the CPU's
 * device. stream: of the GPU. Other memory: nothing is done. Errors: ARGUMENT, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_prefetch_array(kjit_array *array, kjit_device *device,
                                                    kjit_stream *stream);

/* ---- views: arrays on the memory of another one, which they keep alive ---- */

/* first, first + step ... below last (above it for a negative step). An index `first` alone, which
 * takes the dimension away: step 0. Nothing wraps and nothing clamps: every position has to be
 * inside. */
typedef struct kjit_array_slice {
  /* positions, and elements from one to the next */
  int64_t first, last, step;
} kjit_array_slice;

/* a[first:last:step, ...]; slices[count], one a dimension from the first on; dimensions without one
 * stay whole. Errors: ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_slice_array(kjit_array *array, const kjit_array_slice *slices,
                                                 uint32_t count, kjit_array **view);
/* A view of the same elements, in row-major order, under another shape; one extent may be -1 and is
 * computed. Errors: ARGUMENT when the sizes differ, or where the strides allow no such view (copy
 * to a contiguous array first). */
KJIT_API KJIT_CHECK kjit_status kjit_reshape_array(kjit_array *array, const int64_t *shape,
                                                   uint32_t rank, kjit_array **view);
/* Dimension i of the view is dimension axes[i] of the array; axes NULL: in reverse order. Errors:
 * ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_transpose_array(kjit_array *array, const uint32_t *axes,
                                                     kjit_array **view);
/* Makes a view with any shape and strides. shape and strides have rank values; a stride is a number
 * of elements and may be 0 or negative. offset is the distance, in elements, from the first element
 * of the array to the first element of the view. A kernel must not write to a view of which two
 * indices have the same element. Errors: ARGUMENT when an extent is negative, or when an element of
 * the view is not between the lowest and the highest element of the array. */
KJIT_API KJIT_CHECK kjit_status kjit_restride_array(kjit_array *array, const int64_t *shape,
                                                    const int64_t *strides, uint32_t rank,
                                                    int64_t offset, kjit_array **view);

/* ---- contents ---- */

/* Copies elements between tensors or arrays of equal shape and element, host or any device, any
 * strides. Ordered on the stream (NULL: the default stream of the GPU involved, the destination's
 * where there are two); returns when the copy is done. Views that overlap on the host are copied as
 * if through a temporary; on a GPU strided ones must not overlap. Strided elements on a GPU are
 * moved by a kernel, which the first such copy compiles (errors: NO_COMPILER). Errors: ARGUMENT,
 * DEVICE, MEMORY, DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_copy(kjit_context *context, const kjit_arg *destination,
                                          const kjit_arg *source, kjit_stream *stream);
/* As kjit_copy, returning when the copy is queued. Memory on the host has to stay as it is until
 * the stream has passed; it is read or written beside the host only where it is pinned (the driver
 * waits for a copy of other host memory). On the CPU the copy is done when the call returns. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_async(kjit_context *context, const kjit_arg *destination,
                                                const kjit_arg *source, kjit_stream *stream);
/* All elements of an array, row-major without gaps, from or to host memory of size_bytes, which is
 * checked. Returns when done. Errors: as kjit_copy's. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_from_host(kjit_array *array, const void *memory,
                                                    size_t size_bytes, kjit_stream *stream);
/* The opposite; errors as above. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_to_host(const kjit_array *array, void *memory,
                                                  size_t size_bytes, kjit_stream *stream);
/* Every element of a tensor or array becomes the value: a scalar of the element's type, or a plain
 * number that it can hold. Queued on the stream; memory of the host is filled when the call
 * returns. Errors: ARGUMENT, TYPE, DEVICE; of strided elements on a GPU NO_COMPILER. */
KJIT_API KJIT_CHECK kjit_status kjit_fill(kjit_context *context, const kjit_arg *destination,
                                          const kjit_arg *value, kjit_stream *stream);

/* ---- the pool of a device ---- */

/* Memory of a GPU that kjit has from the driver, of one context. Blocks of released arrays are kept
 * and used again without the driver. Zero on the CPU. */
typedef struct kjit_memory_statistics {
  uint32_t size_bytes;         /* sizeof(kjit_memory_statistics), set by the host */
  uint64_t used_bytes;         /* of blocks in arrays and staged launches */
  uint64_t cached_bytes;       /* of released blocks that the pool keeps */
  uint64_t peak_bytes;         /* the most that used_bytes has been */
  uint64_t allocations;        /* blocks that were asked for */
  uint64_t hits;               /* of these, without the driver */
  uint64_t driver_allocations; /* calls that have given memory */
  /* times that the driver was out of memory and the pool gave back what it kept */
  uint64_t flushes;
  /* the same of host memory that copies go through */
  uint64_t pinned_used_bytes, pinned_cached_bytes;
} kjit_memory_statistics;

/* How much memory of the device is in use and kept for later arrays. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_memory_statistics(const kjit_device *device,
                                                kjit_memory_statistics *statistics);
/* Gives cached blocks back to the driver until at most keep_bytes of each kind are kept; waits for
 * work that still uses them. */
KJIT_API void kjit_trim_memory(kjit_device *device, uint64_t keep_bytes);
/* What the driver (on the CPU the system) says of all memory of the device. Errors: DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_get_memory_info(kjit_device *device, uint64_t *free_bytes,
                                                     uint64_t *total_bytes);

/* ---- DLPack ---- */

/* Bit for bit DLPack's DLManagedTensor and DLManagedTensorVersioned (version 1.x), which any
 * framework gives and takes. */
typedef struct kjit_managed_tensor {
  /* the tensor itself */
  kjit_tensor tensor;
  /* the producer's own */
  void *manager;
  /* called once by the consumer when it is done; NULL: nothing is to be done */
  void (*deleter)(struct kjit_managed_tensor *self);
} kjit_managed_tensor;

/* kjit_managed_tensor with a version and flags. */
typedef struct kjit_managed_tensor_versioned {
  /* of DLPack: 1 and 0 or more */
  uint32_t major, minor;
  /* the producer's own */
  void *manager;
  /* called once by the consumer when it is done; NULL: nothing is to be done */
  void (*deleter)(struct kjit_managed_tensor_versioned *self);
  uint64_t flags; /* of kjit_dlpack_flags */
  /* the tensor itself */
  kjit_tensor tensor;
} kjit_managed_tensor_versioned;

/* DLPack's flags. */
typedef enum kjit_dlpack_flags {
  /* the consumer must not write it */
  KJIT_DLPACK_READ_ONLY = 1,
  /* the producer made a copy for this */
  KJIT_DLPACK_IS_COPIED = 2
} kjit_dlpack_flags;

/* Takes a tensor of another library, on failure too: its deleter is called when the array and its
 * views are released, after work on the kjit_array that other streams have queued has been ordered
 * before what `stream` does next. stream: the one for which the producer has made the data ready
 * (NULL: the default stream). A read-only tensor cannot be given to kernels that write it. Errors:
 * ARGUMENT (a type that kjit has not), NO_DEVICE, UNSUPPORTED (a DLPack version other than 1). */
KJIT_API KJIT_CHECK kjit_status kjit_take_dlpack(kjit_context *context,
                                                 kjit_managed_tensor *managed, kjit_stream *stream,
                                                 kjit_array **array);
/* kjit_take_dlpack for the versioned form. */
KJIT_API KJIT_CHECK kjit_status kjit_take_dlpack_versioned(kjit_context *context,
                                                           kjit_managed_tensor_versioned *managed,
                                                           kjit_stream *stream, kjit_array **array);
/* Gives the array to another library, which calls the deleter when it has queued its last use on
 * the consumer's stream; the memory lives until then. consumer: the stream on which it will be
 * used: what was queued with the kjit_array is ordered before what the consumer's stream does next;
 * NULL: the default stream. Errors: MEMORY, DEVICE; of the unversioned form, UNSUPPORTED for a
 * read-only array. */
KJIT_API KJIT_CHECK kjit_status kjit_export_dlpack(kjit_array *array, kjit_stream *consumer,
                                                   kjit_managed_tensor **managed);
/* kjit_export_dlpack in the versioned form, which says that an array is read-only. */
KJIT_API KJIT_CHECK kjit_status kjit_export_dlpack_versioned(
  kjit_array *array, kjit_stream *consumer, kjit_managed_tensor_versioned **managed);

/* ---- other processes ---- */

/* An array for another process of this machine, as bytes to send there. */
typedef struct kjit_array_handle {
  /* kjit's own; of this version of kjit only */
  unsigned char bytes[320];
} kjit_array_handle;

/* The array's memory is the exporter's: it stays alive there until the importer has released its
 * array. Waits for the work queued with the array, so that the importer sees it; later work is for
 * the two processes to order. On a GPU DEVICE and SHARED memory, on the CPU SHARED only; elements
 * of a scalar type, since others are numbered by each context. Errors: UNSUPPORTED, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_export_array(kjit_array *array, kjit_array_handle *handle);
/* The array of another process, on the same device of this one. Errors: ARGUMENT (no handle, or of
 * this process), NO_DEVICE, IO (the exporter is gone), DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_import_array(kjit_context *context,
                                                  const kjit_array_handle *handle,
                                                  kjit_array **array);

#ifdef __cplusplus
}
#endif
#endif
