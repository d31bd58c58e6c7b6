/* kjit/memory.h: arrays, copies, and memory of other owners (DLPack, other processes). status.h has
 * the rules that hold for every function. */
#ifndef KJIT_MEMORY_H
#define KJIT_MEMORY_H

#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- making arrays ---- */

/* Kinds of memory. On the CPU device, DEVICE, PINNED, MAPPED and MANAGED are all host memory. */
typedef enum kjit_memory {
  /* device memory from the pool, allocated and released in stream order */
  KJIT_MEMORY_DEVICE = 0,
  /* page-locked host memory; copies to and from the device are asynchronous; a GPU launch copies it
   * like any host array */
  KJIT_MEMORY_PINNED,
  /* page-locked host memory that a GPU launch accesses in place, over the bus */
  KJIT_MEMORY_MAPPED,
  /* memory that moves between host and device on demand; the host may access it if no running
   * kernel uses it */
  KJIT_MEMORY_MANAGED,
  /* device memory outside the pool, for kjit_export_array; on the CPU, memory that another process
   * can map */
  KJIT_MEMORY_SHARED
} kjit_memory;

/* Options of kjit_create_array_with. */
typedef struct kjit_array_config {
  uint32_t size_bytes;  /* sizeof(kjit_array_config) */
  kjit_device *device;  /* required; NULL returns MISUSE */
  kjit_type element;    /* scalar, vector, struct or pointer type */
  uint32_t rank;        /* number of dimensions; default 0: an array of one element */
  const int64_t *shape; /* extents, one for each dimension, not negative */
  kjit_layout layout;   /* KJIT_LAYOUT_F means column-major, any other value row-major (default) */
  kjit_memory memory;   /* kind of memory; default KJIT_MEMORY_DEVICE */
  /* stream in whose order DEVICE memory is allocated and released; default NULL: the device's
   * default stream */
  kjit_stream *stream;
} kjit_array_config;

/* Creates a contiguous array with undefined contents.
 *
 * DEVICE memory may come from an array that was released while work on the stream was still queued.
 * Before another stream uses the array, it must wait for an event that was recorded on `stream`
 * after this call. Errors: DEVICE_MEMORY, MEMORY, ARGUMENT, UNSUPPORTED, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array_with(const kjit_array_config *config,
                                                       kjit_array **array);
/* Creates a row-major array in device memory (KJIT_MEMORY_DEVICE) on the default stream. Its
 * contents are undefined. For other arrays use kjit_create_array_with. Errors: see there. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array(kjit_device *device, kjit_type element,
                                                  const int64_t *shape, uint32_t rank,
                                                  kjit_array **array);
/* Creates an array with the shape, element type, dimension order, device, memory kind and stream of
 * the model. Its contents are undefined. For a strided view the new array is row-major. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array_like(const kjit_array *model, kjit_array **array);
/* Creates a row-major array in DEVICE memory and copies a tensor to it. The tensor can have any
 * strides and can be on the host or a device. The call returns when the copy is done. Errors: see
 * kjit_create_array_with and kjit_copy. */
KJIT_API KJIT_CHECK kjit_status kjit_create_array_from(kjit_device *device,
                                                       const kjit_tensor *source,
                                                       kjit_stream *stream, kjit_array **array);

/* Retains an array.
 *
 * An array can be released while kernels that use it are queued. Its memory is reused, in the order
 * of its stream, after all launches that received the kjit_array. kjit does not know of launches
 * with a tensor that has the same address. Releasing PINNED, MAPPED, MANAGED and SHARED memory
 * waits for the work that uses it. */
KJIT_API kjit_array *kjit_retain_array(kjit_array *array);
/* Releases an array that was created, retained or taken. array can be NULL. */
KJIT_API void kjit_release_array(kjit_array *array);
/* Returns the array as a tensor, which is borrowed. device_type has DLPack's numbers: 1 CPU, 2
 * CUDA, 3 pinned and mapped host memory, 12 one of several CPU devices, 13 managed memory. */
KJIT_API const kjit_tensor *kjit_get_tensor(const kjit_array *array);
/* Returns the element type, or KJIT_ANY for NULL. */
KJIT_API kjit_type kjit_get_array_element(const kjit_array *array);
/* Returns the device, borrowed, or NULL for NULL. */
KJIT_API kjit_device *kjit_get_array_device(const kjit_array *array);
/* Returns the context that the array belongs to. */
KJIT_API kjit_context *kjit_get_array_context(const kjit_array *array);

/* Creates an array for memory of the application, without copying. The memory must outlive the
 * array and all queued work that uses it. device_type of the tensor tells where the memory is.
 * Errors: ARGUMENT, NO_DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_wrap_tensor(kjit_context *context, const kjit_tensor *tensor,
                                                 kjit_array **array);

/* Returns the device that an address in its memory belongs to, or NULL for host memory. The device
 * is borrowed. If the context has several CPU devices (kjit_config.cpu_devices), kjit searches all
 * arrays of the context for the address. Errors: NO_DEVICE, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_locate_memory(kjit_context *context, const void *memory,
                                                   kjit_device **device);

/* Page-locks existing host memory so that copies are asynchronous. For the CPU device the function
 * has no effect. Errors: DEVICE, ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_pin_memory(kjit_device *device, void *memory,
                                                size_t size_bytes);
/* Unpins memory that kjit_pin_memory pinned. Errors: DEVICE, ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_unpin_memory(kjit_device *device, void *memory);
/* Moves MANAGED memory to a device before its use: to a GPU, or to the host if device is the CPU.
 * stream belongs to the GPU. The function has no effect on other memory. Errors: ARGUMENT,
 * DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_prefetch_array(kjit_array *array, kjit_device *device,
                                                    kjit_stream *stream);

/* ---- views: arrays that share the memory of another array and keep it alive ---- */

/* Selects the indices first, first + step, ... up to but not including last; step may be negative.
 * A step of 0 selects the single index first and removes the dimension. Unlike in Python, negative
 * indices do not count from the end and bounds are not clamped: every selected index must be
 * valid. */
typedef struct kjit_array_slice {
  /* first index; end of the range, which is not selected; distance between two indices */
  int64_t first, last, step;
} kjit_array_slice;

/* Creates the view a[first:last:step, ...]. slices has one entry for each of the first `count`
 * dimensions. The other dimensions stay whole. Errors: ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_slice_array(kjit_array *array, const kjit_array_slice *slices,
                                                 uint32_t count, kjit_array **view);
/* Creates a view of the same elements, in row-major order, with another shape. One extent may be
 * -1; kjit then computes this extent. Errors: ARGUMENT if the sizes differ, or if the strides do
 * not allow such a view. In that case copy to a contiguous array first. */
KJIT_API KJIT_CHECK kjit_status kjit_reshape_array(kjit_array *array, const int64_t *shape,
                                                   uint32_t rank, kjit_array **view);
/* Creates a view in which dimension i is dimension axes[i] of the array. If axes is NULL, the order
 * is reversed. Errors: ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_transpose_array(kjit_array *array, const uint32_t *axes,
                                                     kjit_array **view);
/* Creates a view with any shape and strides.
 *
 * shape and strides have rank values. A stride is a number of elements and may be 0 or negative.
 * offset is the distance, in elements, from the first element of the array to the first element of
 * the view. A kernel must not write to a view in which two indices refer to the same element.
 * Errors: ARGUMENT if an extent is negative, if an element of the view is before the array's first
 * or after its last element in memory, or if the view has 2^63 bytes or more. */
KJIT_API KJIT_CHECK kjit_status kjit_restride_array(kjit_array *array, const int64_t *shape,
                                                    const int64_t *strides, uint32_t rank,
                                                    int64_t offset, kjit_array **view);
/* Creates a view with the same shape whose elements have another scalar type.
 *
 * An element of the array contains one or several elements of the new type. part selects one of
 * them: for complex numbers part 0 is the real part and part 1 the imaginary part. Errors: ARGUMENT
 * if the new type is not a scalar type, if the size of the array's elements is not a multiple of
 * the new size, or if part is too large. */
KJIT_API KJIT_CHECK kjit_status kjit_retype_array(kjit_array *array, kjit_type element,
                                                  uint32_t part, kjit_array **view);
/* Creates a view of all elements that is read-only. Views of the view are read-only, too.
 *
 * A launch of a kernel whose code can write to the view fails with ARGUMENT. An algorithm, a copy
 * or a fill with the view as its result fails in the same way. The array itself and its other views
 * can still be written, and so can the memory through the tensor of the view. A launch with a
 * read-only array takes longer, because it is checked each time. Errors: MISUSE if an argument is
 * NULL, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_protect_array(kjit_array *array, kjit_array **view);

/* ---- contents ---- */

/* Copies elements between tensors or arrays with the same shape and element type, on the host or
 * any device, with any strides.
 *
 * The copy is ordered on the stream. NULL means the default stream of the GPU; with two GPUs it is
 * the GPU of the destination. The call returns when the copy is done. Overlapping views on the host
 * are copied correctly. On a GPU strided views must not overlap. A kernel copies strided elements
 * on a GPU, and the first such copy compiles it (errors: NO_COMPILER). Errors: ARGUMENT, DEVICE,
 * MEMORY, DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_copy(kjit_context *context, const kjit_arg *destination,
                                          const kjit_arg *source, kjit_stream *stream);
/* Like kjit_copy, but returns when the copy is queued. Host memory must stay unchanged until the
 * stream has passed the copy. The copy is asynchronous only if host memory is pinned, because the
 * driver waits for copies of other host memory. On the CPU the copy is done when the call
 * returns. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_async(kjit_context *context, const kjit_arg *destination,
                                                const kjit_arg *source, kjit_stream *stream);
/* Copies all elements of an array from host memory in row-major order without gaps. size_bytes must
 * be the size of the elements. The call returns when the copy is done. Errors: see kjit_copy. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_from_host(kjit_array *array, const void *memory,
                                                    size_t size_bytes, kjit_stream *stream);
/* Copies all elements of an array to host memory, like kjit_copy_from_host. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_to_host(const kjit_array *array, void *memory,
                                                  size_t size_bytes, kjit_stream *stream);
/* Sets every element of a tensor or array to a value: a scalar of the element type, or an untyped
 * number that the type can hold. The work is queued on the stream; host memory is filled when the
 * call returns. Errors: ARGUMENT, TYPE, DEVICE; NO_COMPILER for strided elements on a GPU. */
KJIT_API KJIT_CHECK kjit_status kjit_fill(kjit_context *context, const kjit_arg *destination,
                                          const kjit_arg *value, kjit_stream *stream);

/* ---- the pool of a device ---- */

/* GPU memory that one context has allocated. kjit keeps the blocks of released arrays and reuses
 * them without calling the driver. All fields are 0 on the CPU. */
typedef struct kjit_memory_statistics {
  uint32_t size_bytes;         /* sizeof(kjit_memory_statistics), set by the application */
  uint64_t used_bytes;         /* in use by arrays and launches with host arrays */
  uint64_t cached_bytes;       /* in released blocks that the pool keeps */
  uint64_t peak_bytes;         /* maximum of used_bytes so far */
  uint64_t allocations;        /* number of allocated blocks */
  uint64_t hits;               /* number of allocations without a driver call */
  uint64_t driver_allocations; /* number of driver calls that returned memory */
  /* number of times that the driver was out of memory and the pool returned its cached blocks */
  uint64_t flushes;
  /* used and cached bytes of the host memory that copies use as a buffer */
  uint64_t pinned_used_bytes, pinned_cached_bytes;
} kjit_memory_statistics;

/* Returns how much memory of the device is in use and how much is cached. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_memory_statistics(const kjit_device *device,
                                                kjit_memory_statistics *statistics);
/* Returns cached blocks to the driver until at most keep_bytes of each kind are cached. The
 * function waits for work that still uses the blocks. */
KJIT_API void kjit_trim_memory(kjit_device *device, uint64_t keep_bytes);
/* Returns the free and total memory of the device as reported by the driver, or by the system for
 * the CPU. Errors: DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_get_memory_info(kjit_device *device, uint64_t *free_bytes,
                                                     uint64_t *total_bytes);

/* ---- DLPack ---- */

/* A tensor with the layout of DLPack's DLManagedTensor or DLManagedTensorVersioned (version 1.x),
 * for exchange with any framework. */
typedef struct kjit_managed_tensor {
  /* the tensor */
  kjit_tensor tensor;
  /* private to the producer */
  void *manager;
  /* called once by the consumer when it no longer needs the tensor; can be NULL */
  void (*deleter)(struct kjit_managed_tensor *self);
} kjit_managed_tensor;

/* A kjit_managed_tensor with a version and flags. */
typedef struct kjit_managed_tensor_versioned {
  /* DLPack version: major is 1, minor is 0 or more */
  uint32_t major, minor;
  /* private to the producer */
  void *manager;
  /* called once by the consumer when it no longer needs the tensor; can be NULL */
  void (*deleter)(struct kjit_managed_tensor_versioned *self);
  uint64_t flags; /* see kjit_dlpack_flags */
  /* the tensor */
  kjit_tensor tensor;
} kjit_managed_tensor_versioned;

/* Flags of DLPack. */
typedef enum kjit_dlpack_flags {
  /* the consumer must not write the tensor */
  KJIT_DLPACK_READ_ONLY = 1,
  /* the producer made a copy for the consumer */
  KJIT_DLPACK_IS_COPIED = 2
} kjit_dlpack_flags;

/* Creates an array from a tensor of another library and takes ownership, even if the call fails.
 *
 * stream is the stream on which the producer made the data ready. NULL means the default stream.
 * kjit calls the deleter when the array and its views are released. Before that, kjit makes later
 * work on `stream` wait for pending work on the array from other streams. Kernels that write cannot
 * take a read-only tensor. Errors: ARGUMENT (an element type that kjit does not have), NO_DEVICE,
 * UNSUPPORTED (a DLPack version other than 1). */
KJIT_API KJIT_CHECK kjit_status kjit_take_dlpack(kjit_context *context,
                                                 kjit_managed_tensor *managed, kjit_stream *stream,
                                                 kjit_array **array);
/* Like kjit_take_dlpack, for the versioned struct. */
KJIT_API KJIT_CHECK kjit_status kjit_take_dlpack_versioned(kjit_context *context,
                                                           kjit_managed_tensor_versioned *managed,
                                                           kjit_stream *stream, kjit_array **array);
/* Passes the array to another library. The memory lives until the consumer calls the deleter, after
 * it has queued its last use.
 *
 * consumer is the stream on which the other library uses the array. NULL means the default stream.
 * kjit orders pending work on the array before later work on this stream. Errors: MEMORY, DEVICE;
 * UNSUPPORTED if the array is read-only, which the unversioned struct cannot express. */
KJIT_API KJIT_CHECK kjit_status kjit_export_dlpack(kjit_array *array, kjit_stream *consumer,
                                                   kjit_managed_tensor **managed);
/* Like kjit_export_dlpack, in the versioned struct, which can mark an array as read-only. */
KJIT_API KJIT_CHECK kjit_status kjit_export_dlpack_versioned(
  kjit_array *array, kjit_stream *consumer, kjit_managed_tensor_versioned **managed);

/* ---- other processes ---- */

/* Describes an array for another process on this machine. The bytes can be sent to that process. */
typedef struct kjit_array_handle {
  /* private; valid only for the same version of kjit */
  unsigned char bytes[320];
} kjit_array_handle;

/* Exports an array to another process.
 *
 * The exporter owns the memory and must keep the array until the importer has released its array.
 * The call waits for work that uses the array, so the importer sees the results. The two processes
 * must order later work themselves. On a GPU, DEVICE and SHARED memory can be exported. On the CPU
 * only SHARED memory. Elements must have a scalar type, because contexts number other types
 * differently. Errors: UNSUPPORTED, DEVICE. */
KJIT_API KJIT_CHECK kjit_status kjit_export_array(kjit_array *array, kjit_array_handle *handle);
/* Imports an array of another process on the same device. Errors: ARGUMENT (not a valid handle, or
 * a handle of this process), NO_DEVICE, IO (the exporter no longer exists), DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_import_array(kjit_context *context,
                                                  const kjit_array_handle *handle,
                                                  kjit_array **array);

#ifdef __cplusplus
}
#endif
#endif
