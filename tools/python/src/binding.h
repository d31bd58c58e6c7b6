/* Declarations that the source files of the extension kjit._kjit share. The source files, by
 * subject:
 *
 *   module.c                     the module, errors, forks
 *   context.c                    contexts, devices, modules of kernel IR
 *   array.c, array_view.c        kjit's arrays
 *   exchange.c, import.c,        memory shared with other libraries
 *   direct.c
 *   place.c                      the devices of threads and launches
 *   message_queue.c              printed lines and warnings
 *   argument.c, parameter.c      Python objects as arguments, in the order of parameters
 *   record.c                     records
 *   stream.c, follow.c,          streams, events, graphs, callbacks of streams
 *   callback.c
 *   memory.c                     device properties, memory of other processes
 *   kernel.c, launcher.c         kernels and their launches
 *   code.c                       inspection of compiled code
 *   configured.c, route.c,       launches of kjit.cuda
 *   form.c, number.c,
 *   numpy_layout.c
 *   function.c                   calls of funcs
 *   formula.c                    formulas of users
 *   figure.c                     plots
 *   recorded_sources.c           the source of functions that exec creates
 *   random_state.c               random numbers of njit
 *   progress.c, interrupt.c      long calls
 *
 * algorithm.h lists the files of algorithms over whole arrays. expression.h lists the files of
 * array operators, which record operations and compute them when a value is needed.
 *
 * Each object holds a reference to the Python object of its context, so a kjit_context ends after
 * all objects made from it. Contexts hold no references to these objects. */
#ifndef KJIT_PYTHON_BINDING_H
#define KJIT_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <patchlevel.h>
#include <pyconfig.h>
/* The buffer protocol joined the limited API in Python 3.11. Python 3.10 has the same functions and
 * slots, so an extension that is compiled with headers of 3.11 or later also runs with 3.10. With
 * headers of 3.10 or of a free-threaded Python, which has no stable ABI, the extension runs only
 * with that version (tools/python/CMakeLists.txt chooses the file name). */
#if !defined Py_GIL_DISABLED && PY_VERSION_HEX >= 0x030b0000
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>
#include <kjit/kjit.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define BINDING_MAX_RANK 8

typedef struct binding_message_queue binding_message_queue;

/* A stream of another library, and the kjit stream that wraps it. */
typedef struct binding_wrap {
  uint64_t handle;
  kjit_device *device;
  kjit_stream *stream;
} binding_wrap;

enum { BINDING_MOST_WRAPS = 16 };

typedef struct context_object {
  PyObject_HEAD kjit_context *context;
  binding_message_queue *messages; /* printed lines and warnings that are not delivered to Python
                                    * yet */
  unsigned generation;             /* value of binding_generation when the context was made */
  int is_interruptible;            /* whether the code polls for interrupts */
  atomic_int calls; /* number of threads in a call of libkjit without the interpreter lock */
  binding_wrap wraps[BINDING_MOST_WRAPS]; /* cache of wrapped streams, see stream.c */
  int wrap_count;
  PyObject *records; /* dictionary: NumPy dtype or name -> number of the struct, see record.c */
  /* number of GPUs; 0 if it was not determined yet, or if the machine has no GPU */
  uint32_t gpu_count;
  PyObject *device_memory; /* object that allocates GPU memory, see memory.c; NULL if libkjit
                            * allocates it */
} context_object;

typedef struct device_object {
  PyObject_HEAD context_object *context;
  kjit_device *device; /* owned by the context */
} device_object;

typedef struct stream_object {
  PyObject_HEAD context_object *context;
  kjit_stream *stream;
  kjit_device *device;
} stream_object;

typedef struct module_object {
  PyObject_HEAD context_object *context;
  kjit_module *module;
} module_object;

/* The stream on which another library continues to use an array: a CUstream, 0 or 1 for the default
 * stream, or 2 for the per-thread default stream. */
typedef struct binding_producer {
  int is_known;
  int lives_on; /* the library never destroys its streams */
  int device;   /* ordinal of the GPU */
  uint64_t handle;
  const void *library; /* the library to ask for its current stream, see direct.c; NULL if `handle`
                        * is the stream */
} binding_producer;

typedef struct binding_block binding_block;     /* see expression.h */
typedef struct binding_pending binding_pending; /* see expression.h */

/* Tells whether Python code may write to an array. If integers for all axes select an element, the
 * element is a copy, like a scalar of NumPy. A write to this copy would be lost, so it is an error.
 * The copy has its own memory. Views of the copy, and other libraries, may write to this memory. */
typedef enum binding_protection {
  BINDING_WRITABLE,
  BINDING_READ_ONLY,
  BINDING_ELEMENT
} binding_protection;

typedef struct array_object {
  PyObject_HEAD context_object *context;
  kjit_array *array; /* NULL while the array is pending (see expression.h) */
  /* The kjit_array of this object before the object became read-only, or NULL. Calls on other
   * threads may still use it. */
  kjit_array *unprotected;
  kjit_device *device;
  int is_read_only; /* a binding_protection */
  /* true for a copied element whose memory no view, launch or other library has used, so that
   * quick_scalars.c can reuse the memory */
  int is_alone;
  int is_result;      /* true for a result without dimensions, for which NumPy returns a scalar; an
                         operator such as += then makes a new array */
  int is_interrupted; /* true if Ctrl-C ended the last request for a buffer */
  binding_producer producer; /* producer of an imported array */
  binding_block *block; /* the memory block that the array shares with its views; NULL if the array
                           has no views and no pending array reads it */
  binding_pending *pending; /* the recorded operation that computes the array when it is first
                             * needed; NULL if it has memory */
  /* For kjit.explain: how an array that was pending has been computed. */
  PyObject *key; /* key of its expression */
  int launch_count, was_fused;
  PyObject *weak_references; /* list of weak references to the object; Python maintains it */
} array_object;

/* Copies an array, whose elements can be records, dates and other types that a tensor cannot
 * describe. */
kjit_status binding_copy_array(kjit_device *device, kjit_array *source, kjit_array **array);

/* Converts an array that has memory to an argument for libkjit. libkjit may read the memory after
 * the Python object is released. */
static inline kjit_arg binding_pass_array(array_object *array)
{
  array->is_alone = 0;
  return kjit_arg_array(array->array);
}

/* Returns the array as a tensor, or NULL with an exception. Computes a pending array. */
const kjit_tensor *binding_get_tensor(PyObject *array);
/* Methods and properties that depend on strides, in array_view.c. */
PyObject *binding_restride(PyObject *array, PyObject *args);
PyObject *binding_get_item(PyObject *array, PyObject *key);
PyObject *binding_get_at(PyObject *array, Py_ssize_t index);
int binding_set_item(PyObject *array, PyObject *key, PyObject *value);
PyObject *binding_get_basic(PyObject *array, PyObject *key);
PyObject *binding_set_indexing(PyObject *module, PyObject *args);
PyObject *binding_get_part(PyObject *array, PyObject *args);
PyObject *binding_protect(PyObject *array, PyObject *unused);
/* Makes an array that has memory read-only for libkjit. Returns 0, or -1 with an exception. */
int binding_protect_memory(array_object *array);
PyObject *binding_mark_element(PyObject *array, PyObject *unused);
PyObject *binding_mark_result(PyObject *array, PyObject *unused);
PyObject *binding_mark_array(PyObject *array, PyObject *unused);
/* Returns whether NumPy would have a scalar, which cannot change, in place of the array. */
static inline int binding_is_scalar(const array_object *array)
{
  return array->is_result || array->is_read_only == BINDING_ELEMENT;
}
PyObject *binding_relate(PyObject *array, PyObject *other);
PyObject *binding_get_strides(PyObject *array, void *unused);
/* The view that a key selects; strides and offset are in elements. */
typedef struct binding_layout {
  int64_t extents[BINDING_MAX_RANK], steps[BINDING_MAX_RANK], offset;
  uint32_t rank;
} binding_layout;
/* Reads a key of integers, slices, None and Ellipsis, and computes a pending array. Returns 0,
 * possibly with an exception, if the key has other items or if there is no such view. */
int binding_read_key(PyObject *array, PyObject *key, binding_layout *made);

extern PyTypeObject *binding_context_type, *binding_device_type, *binding_stream_type,
  *binding_module_type, *binding_array_type, *binding_kernel_type, *binding_launcher_type;

/* Stores value in *place and releases the old value. Takes over the reference to value. */
static inline void binding_set(PyObject **place, PyObject *value)
{
  PyObject *old = *place;
  *place = value;
  Py_XDECREF(old);
}

/* ---- module.c ---- */

/* Number of forks between this process and the process that imported kjit. Objects made under
 * another number belong to a parent process. */
extern unsigned binding_generation;

/* Raises the exception of a status, with the context's diagnostics of this thread. Returns NULL. */
PyObject *binding_raise(context_object *context, kjit_status status);
/* Delivers printed lines and warnings. Returns 0, or -1 with an exception: that of the status, or
 * one raised during the delivery. */
int binding_finish(context_object *context, kjit_status status);
/* Raises the exception class of the status with a message that this extension provides. Returns
 * NULL. */
PyObject *binding_fail(kjit_status status, const char *format, ...);
/* Looks up an attribute. Returns 1 and a new reference in *found, or 0 if the object has no such
 * attribute. Returns -1 if a property or __getattr__ raises an exception other than
 * AttributeError. */
int binding_look_up(PyObject *object, const char *name, PyObject **found);
/* Returns whether the current exception is a kjit exception. */
int binding_is_error(void);
PyTypeObject *binding_make_type(PyObject *module, PyType_Spec *spec);
/* Create and free an object whose fields are zeroed. Instances of heap types own a reference to
 * their type. */
void *binding_new_object(PyTypeObject *type);
void binding_free_object(PyObject *object);
/* Runs a call without the interpreter lock. */
#define BINDING_UNLOCKED(context, statement) \
  do { \
    atomic_fetch_add(&(context)->calls, 1); \
    Py_BEGIN_ALLOW_THREADS statement; \
    Py_END_ALLOW_THREADS atomic_fetch_sub(&(context)->calls, 1); \
  } while (0)

/* ---- memory.c ---- */

/* Allocator of a context with device_memory, which calls the methods of
 * kjit.cuda.memory.WorkMemory. */
extern const kjit_device_allocator binding_device_allocator;

/* ---- progress.c ---- */

/* A call of libkjit that may take long, on the stack of the calling thread. The fields describe its
 * subject: a kernel, a func, an algorithm's name, or a device. */
typedef struct binding_call {
  context_object *context;
  const char *what, *name;
  PyObject *object; /* borrowed, like the other pointers */
  kjit_device *device;
  const kjit_arg *args; /* arguments of a launch, from which the device is determined; NULL for
                         * other calls */
  size_t arg_count;
  /* set by binding_list_call */
  struct binding_call *next, **place;
  uint64_t number; /* 0 if the call is not listed */
  unsigned generation;
  enum { BINDING_NO_LINE, BINDING_LINE_OF_TERMINAL, BINDING_LINE_OF_THREAD } line;
} binding_call;

extern int binding_shows_progress; /* whether calls are listed */
void binding_list_call(binding_call *call);
void binding_unlist_call(binding_call *call);
/* Called when a kernel object is freed. */
void binding_forget_launched(PyObject *kernel);
int binding_add_progress(PyObject *module);
int binding_add_callbacks(PyObject *module);
/* BINDING_UNLOCKED for a call that may take long. The initializers of its binding_call follow the
 * statement. */
#define BINDING_LONG(owner, statement, ...) \
  do { \
    binding_call long_call; \
    long_call.number = 0; \
    if (binding_shows_progress) { \
      long_call = (binding_call){ .context = (owner), __VA_ARGS__ }; \
      binding_list_call(&long_call); \
    } \
    BINDING_UNLOCKED(owner, statement); \
    if (long_call.number) binding_unlist_call(&long_call); \
  } while (0)

/* ---- interrupt.c ---- */

typedef struct binding_interruptible {
  int is_begun;
  struct sigaction before;
} binding_interruptible;

/* Between begin and end, Ctrl-C interrupts calls of libkjit on the context that run interruptible
 * code or compile. On threads other than the main thread both functions do nothing. */
int binding_begin_interruptible(context_object *context, binding_interruptible *saved);
/* Returns 0, or -1 with the exception that Python's signal handler has raised. */
int binding_end_interruptible(binding_interruptible *saved);
/* Like binding_finish, for a call that Ctrl-C may have interrupted; the exception is then
 * KeyboardInterrupt. */
int binding_finish_interruptible(context_object *context, kjit_status status,
                                 binding_interruptible *saved);

/* ---- context.c ---- */

int binding_add_context(PyObject *module);
/* Returns the context's device for an argument `device`, which is a Device of any context, a string
 * such as "cuda:1", or None. None means the thread's current device, or else the first GPU, or else
 * the CPU. Returns NULL with an exception. */
kjit_device *binding_get_device(context_object *context, PyObject *object);
kjit_device *binding_open_device(context_object *context, kjit_device_kind kind, int ordinal);
PyObject *binding_wrap_device(context_object *context, kjit_device *device);

/* ---- place.c ---- */

/* Whether a context of the process has several devices of one kind. */
extern int binding_has_several;
/* binding_has_current returns whether the thread has a current device. binding_get_current returns
 * this device, or NULL with an exception; call it only if the thread has one. */
int binding_has_current(void);
kjit_device *binding_get_current(context_object *context);
/* Return a string such as "cpu", "cpu:1" or "cuda:1" for a device, or for a tensor's device. */
PyObject *binding_name_place(context_object *context, kjit_device_kind kind, int ordinal);
PyObject *binding_name_home(const kjit_tensor *tensor);
/* DLPack device type of arrays that belong to one of several CPU devices. */
enum { BINDING_PLACED = 12 };
static inline int binding_is_on_cpu(const kjit_tensor *tensor)
{
  return tensor->device_type == KJIT_DEVICE_CPU || tensor->device_type == BINDING_PLACED;
}
/* Device.__enter__ and __exit__. */
PyObject *binding_enter_device(PyObject *device, PyObject *unused);
PyObject *binding_leave_device(PyObject *device, PyObject *unused);
int binding_add_places(PyObject *module);

/* ---- memory.c ---- */

int binding_add_memory(PyObject *module);
PyObject *binding_get_memory_info(PyObject *device, PyObject *unused);
PyObject *binding_get_attribute(PyObject *device, PyObject *text);
PyObject *binding_get_uuid(PyObject *device, void *unused);
PyObject *binding_trim_memory(PyObject *device, PyObject *unused);

/* ---- stream.c ---- */

int binding_add_streams(PyObject *module);
PyObject *binding_create_stream(PyObject *device, PyObject *args, PyObject *names);
PyObject *binding_create_event(PyObject *device, PyObject *unused);
/* Reads an argument `stream`: None, a Stream of the context, or a stream of another library, given
 * as its handle, as an object with `__cuda_stream__`, or as an object with the attribute of
 * PyTorch's, CuPy's or Numba's streams. A foreign stream belongs to device; NULL means the
 * context's first device. *keeper receives a new reference to an object that keeps the stream
 * alive, or NULL. Returns 0, or -1 with an exception. */
int binding_get_stream(context_object *context, PyObject *object, kjit_device *device,
                       PyObject **keeper, kjit_stream **stream);
/* Opens the stream of another library's handle. *is_own tells whether the caller has to destroy
 * it. */
kjit_status binding_open_handle(kjit_device *device, uint64_t handle, kjit_stream **stream,
                                int *is_own);

/* ---- follow.c ---- */

/* A stream of a launch that follows its arguments' streams. */
typedef struct binding_follow {
  kjit_stream *stream;
  kjit_device *device;
  int is_own; /* whether the stream has to be destroyed after the launch */
} binding_follow;
/* The streams of one launch. `more` has the memory if there are more streams than `first` holds,
 * otherwise it is NULL. */
typedef struct binding_followed {
  int count, capacity;
  binding_follow *more, first[4];
} binding_followed;
static inline binding_follow *binding_follows(binding_followed *followed)
{
  return followed->more ? followed->more : followed->first;
}
struct binding_argument;
/* Prepares a launch without an explicit stream. It selects the stream on which the library that
 * owns the launch's arrays continues, and makes this stream wait for the other streams that produce
 * these arrays. Returns 0, or -1 with an exception. */
int binding_begin_following(context_object *context, const struct binding_argument *arguments,
                            Py_ssize_t count, kjit_launch_config *config,
                            binding_followed *followed);
/* Makes the other streams of the arguments wait for the launch. Must be called after every call of
 * binding_begin_following. */
kjit_status binding_end_following(binding_followed *followed);
/* Waits for queued work of other libraries on arrays of other devices, which the kernel uses by
 * peer access. Returns the number of waits, or -1 with an exception. If the number is not 0, the
 * caller has to wait for the launch as well. */
int binding_wait_for_peers(context_object *context, const struct binding_argument *arguments,
                           Py_ssize_t count, const kjit_device *device);
/* Makes the stream wait for the work on the arguments that other libraries have queued. Returns 0,
 * or -1 with an exception. */
int binding_wait_for_producers(context_object *context, const struct binding_argument *arguments,
                               Py_ssize_t count, kjit_stream *stream);
/* Frees the cache of wrapped streams. */
void binding_free_wraps(context_object *context);

/* ---- array.c, exchange.c ---- */

int binding_add_array(PyObject *module);
/* Like binding_finish, for a call that has made an array if the status is KJIT_OK. Releases the
 * array if the delivery of messages raises an exception. */
int binding_finish_array(context_object *context, kjit_status status, kjit_array *array);
/* Wraps a kjit array and takes over its reference. On failure, releases the array and returns NULL
 * with an exception. */
PyObject *binding_wrap_array(context_object *context, kjit_array *array, int is_read_only);
/* Raises an exception if an array is read-only or a copy of an element. Returns 0, or -1 with an
 * exception.
 */
int binding_refuse_write(const array_object *array);
/* Wraps a view of an array. The view is also read-only if the array is read-only. */
PyObject *binding_wrap_view(array_object *owner, kjit_array *view, int is_read_only);
/* Wraps an array that has the elements of its owner in another shape. The result is a view. If the
 * owner is a NumPy scalar (binding_is_scalar), the result is a scalar if it has no dimensions, and
 * otherwise a copy, as in NumPy. */
PyObject *binding_wrap_shape(array_object *owner, kjit_array *view);
/* Wraps an array whose memory other libraries write, see binding_open_block. */
PyObject *binding_wrap_foreign(context_object *context, kjit_array *array, int is_read_only);
/* Returns the NumPy name of a type, such as "float32", or NULL if NumPy has no such type. */
const char *binding_get_numpy_name(kjit_type type);
PyObject *binding_parse_element(context_object *context, PyObject *text, kjit_type *element);
/* Reads extents from an int or a sequence of ints. Returns 0, or -1 with an exception. */
int binding_parse_shape(PyObject *object, int64_t *shape, uint32_t *rank);
int binding_get_buffer(PyObject *self, Py_buffer *view, int flags);
void binding_release_buffer(PyObject *self, Py_buffer *view);
PyObject *binding_export_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                PyObject *names);
PyObject *binding_get_dlpack_device(PyObject *self, PyObject *unused);
PyObject *binding_get_cuda_interface(PyObject *self, void *unused);
struct binding_argument;
/* Reads arrays of known libraries without a DLPack capsule. Returns 1 if it has set storage->tensor
 * and storage->producer, which are valid as long as object and storage exist. Returns 0 for other
 * objects, or -1 with an exception. */
int binding_look(context_object *context, PyObject *object, struct binding_argument *storage);
/* Asks the producer's library for its current stream and stores the handle. Returns 0, or -1 with
 * an exception. */
int binding_ask_stream(binding_producer *producer);
int binding_init_direct(void);
/* Imports an object with __dlpack__ or __cuda_array_interface__ as an array of the context. Returns
 * a new reference, or NULL. NULL without an exception means that the object has neither
 * attribute. */
PyObject *binding_import(context_object *context, PyObject *object);
/* Reads an object's __cuda_array_interface__ for a program with one device of this kind
 * (kjit_device_kind). On the CPU the addresses are host addresses. Returns 1 and the tensor, whose
 * device is the first one. Returns 0 if the object has no such attribute, or if its array is
 * read-only, has a stream or is not aligned. The caller or binding_import then handles the object.
 * If an exception is set, the caller must not discard it. */
int binding_read_interface(PyObject *object, int32_t device_kind, struct binding_argument *storage);
/* Clears the current exception, unless it is KeyboardInterrupt or another one that does not derive
 * from Exception. Called before another way of reading an object is tried. */
void binding_clear_usual(void);
/* Raises an exception that describes the error in an object's array. Returns NULL. */
PyObject *binding_refuse(PyObject *object, const char *what);
/* Checks a tensor: 0 to 8 dimensions, no negative extents, an address. Returns the error, or NULL
 * if the tensor is valid. */
const char *binding_find_flaw(const kjit_tensor *tensor, long device_type, long device_id);
/* Parses an element type such as "<f4". Returns 0, or -1 if kjit has no such type. */
int binding_parse_typestr(const char *text, kjit_tensor *tensor);
/* Reads `count` integers from a tuple. Returns 0 on success, and -1 on failure; an exception may be
 * set then. */
int binding_parse_integers(PyObject *tuple, int64_t *values, int count);
/* Wraps a tensor as an array that keeps a reference to owner as long as kjit may use the memory. If
 * buffer is not NULL, the function also takes over buffer, even on failure. stream: see
 * kjit_take_dlpack_versioned. Returns NULL with an exception. */
PyObject *binding_take_tensor(context_object *context, PyObject *owner, const kjit_tensor *tensor,
                              kjit_stream *stream, int is_read_only, const Py_buffer *buffer);

/* ---- block.c, expression.c, evaluate.c ---- */

/* Returns shape, element type and device of an array as a tensor without an address. Does not
 * compute a pending array. Returns NULL with an exception. */
const kjit_tensor *binding_look_at_array(PyObject *array);
kjit_type binding_get_element(const array_object *array);
/* Computes a pending array. Returns 0, or -1 with an exception. */
int binding_evaluate(array_object *array);
/* Computes all pending arrays. Returns 0, or -1 with an exception. */
int binding_evaluate_all(void);
/* Must be called before the array's memory is written: computes the array and all pending arrays
 * that read its memory. Returns 0, or -1 with an exception. */
int binding_before_write(array_object *array);
/* Number of pending arrays that were ever recorded. */
extern uint64_t binding_recorded;
/* Computes the pending arrays that read the memory of an array and were recorded after the call of
 * binding_before_write. The conversion of other arguments can run Python code that records such
 * arrays. Returns 0, or -1 with an exception. */
int binding_compute_late_readers(array_object *array);
/* Does the same for all arrays among a call's arguments. */
int binding_compute_all_late_readers(PyObject *const *args, Py_ssize_t count);
/* Declare that other code may write the memory from now on. After binding_open_block, this remains
 * so; after binding_lend_block, it ends when the other code returns the memory. Return 0, or -1
 * with an exception. */
int binding_open_block(array_object *array);
int binding_lend_block(array_object *array);
void binding_return_block(array_object *array);
/* Makes a view share the block of its owner. Returns 0, or -1 with an exception. */
int binding_share_block(array_object *view, array_object *owner);
void binding_release_block(binding_block *block);
/* Called when an array object is freed. */
void expression_drop(array_object *array);

/* ---- operator.c ---- */

PyObject *binding_compare(PyObject *a, PyObject *b, int op);
/* Returns the number of operator slots and, if slots is not NULL, copies them. */
size_t binding_copy_operators(PyType_Slot *slots);
int binding_add_expressions(PyObject *module);

/* ---- argument.c ---- */

/* An argument of a call, and the data that it needs until the call is over. */
typedef struct binding_argument {
  binding_producer producer;
  Py_buffer buffer; /* the object's buffer; buffer.obj is NULL if there is none */
  PyObject *keep;   /* array that was made for the call, or NULL */
  kjit_tensor tensor;
  int64_t strides[BINDING_MAX_RANK], shape[BINDING_MAX_RANK];
  double value[2];
  int is_foreign; /* a GPU array of another context */
} binding_argument;

static inline void binding_begin_argument(binding_argument *storage)
{
  storage->buffer.obj = NULL;
  storage->keep = NULL;
  storage->is_foreign = 0;
  storage->producer.is_known = 0;
}

/* Converts a Python object to an argument. name is the parameter's name for messages, or NULL.
 * Returns 0, or -1 with an exception and nothing to free. */
int binding_take_argument(context_object *context, PyObject *object, const char *name,
                          binding_argument *storage, kjit_arg *arg);
void binding_free_argument(binding_argument *storage);
int binding_init_arguments(void);
/* Returns a value of a scalar type as a Python object. */
PyObject *binding_make_value(kjit_type type, const void *bytes);

/* Returns whether kjit.Kernel has to convert the argument first: a tuple, a record or a
 * function. */
int binding_find_composed(PyObject *object);
extern PyTypeObject *binding_plain_type; /* the type of the last object for which
                                            binding_find_composed has returned 0 */
static inline int binding_is_composed(PyObject *object)
{
  PyTypeObject *type = Py_TYPE(object);
  return type != binding_array_type && type != binding_plain_type && type != &PyFloat_Type &&
         type != &PyLong_Type && binding_find_composed(object);
}

/* ---- record.c: NumPy dtypes with fields, and date dtypes, as structs ---- */

/* Return whether a struct with this name was made by kjit._records, and whether it is the struct of
 * a date. */
int binding_names_record(const char *name);
int binding_names_date(const char *name);
/* Returns the NumPy date scalar with this count, for the struct type with this name; a new
 * reference. */
PyObject *binding_make_date(const char *name, int64_t count);

/* Returns the struct type for the elements of an object with a record or date dtype. KJIT_VOID
 * without an exception means that the object has no such dtype. */
kjit_type binding_find_record(context_object *context, PyObject *object);
/* Returns the struct with this name, which kjit._records has made, or KJIT_VOID with an
 * exception. */
kjit_type binding_find_named_record(context_object *context, PyObject *name);
/* For a NumPy array whose dtype has no buffer, returns a view that has a buffer. For any other
 * object, returns None. Returns a new reference, or NULL with an exception. */
PyObject *binding_view_plainly(PyObject *object);
/* Returns the dtype of the struct with this name. Returns a new reference, or NULL with an
 * exception. */
PyObject *binding_get_record_dtype(const char *name);
int binding_add_records(PyObject *module);

/* ---- parameter.c ---- */

/* The parameters of a kernel or func. Initialize it with zeros. */
typedef struct binding_parameters {
  PyObject *names; /* tuple of the names, or NULL if not known yet */
  /* number of names; -1 means that calling `defaults` arranges each call's arguments */
  Py_ssize_t count;
  PyObject *defaults; /* tuple of default values of the last parameters, or a callable that takes
                       * the arguments */
  int is_typed;       /* true if Python numbers are i64 and f64, as in Numba */
  PyObject *name;     /* name in messages, for example "add()" */
} binding_parameters;

void binding_set_parameters(binding_parameters *self, PyObject *owner, PyObject *names,
                            PyObject *defaults, int is_typed);
void binding_clear_parameters(binding_parameters *self);
/* Returns the arguments in the order of the parameters, as a new tuple that includes keyword
 * arguments and default values. keywords: a dictionary, a tuple of names whose values follow the
 * args, or NULL. Returns NULL with an exception. */
PyObject *binding_arrange(const binding_parameters *self, PyObject *const *args, Py_ssize_t given,
                          PyObject *keywords);
/* Describes a parameter of a kernel or func. */
typedef kjit_status binding_describe_parameter(void *callee, size_t index,
                                               kjit_parameter_info *info);
/* Raises an exception if the callee writes to an argument that is a read-only array, or a copy of
 * an element, to which a write would be lost. Returns 0, or -1 with an exception. */
int binding_check_protection(binding_describe_parameter *describe, void *callee,
                             const binding_parameters *self, PyObject *const *args,
                             Py_ssize_t count);
/* Like binding_take_argument, for the parameter with this index. */
int binding_take_parameter(context_object *context, const binding_parameters *self,
                           Py_ssize_t index, PyObject *object, binding_argument *storage,
                           kjit_arg *arg);

/* ---- kernel.c, function.c, algorithm.c, code.c ---- */

/* Maximum number of threads for launches of this thread on the CPU; 0 means the default. */
extern _Thread_local uint32_t binding_cpu_threads;

int binding_add_kernel(PyObject *module);
int binding_add_launcher(PyObject *module);
int binding_add_configured(PyObject *module);
int binding_add_functions(PyObject *module);
int binding_add_algorithms(PyObject *module);
int binding_add_code(PyObject *module);
int binding_add_formulas(PyObject *module);
int binding_add_figures(PyObject *module);
int binding_add_recorded_sources(PyObject *module);

#endif
