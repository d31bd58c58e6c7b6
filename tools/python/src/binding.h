/* What the files of the extension kjit._kjit share. One file a subject: module.c (the module,
 * errors, printed lines, forks), context.c (contexts, devices, streams, modules of kernel IR),
 * array.c (kjit's own arrays), exchange.c, import.c and direct.c (memory of and for others),
 * place.c (the devices of threads and launches), mailbox.c (printed lines), argument.c (objects of
 * Python as arguments), record.c (records), stream.c and follow.c (streams, events, graphs),
 * memory.c (what devices say, other processes), parameter.c (arguments in the order of parameters),
 * kernel.c and launcher.c (kernels and their launches), code.c (compiled code to look at),
 * configured.c, route.c, form.c, number.c and numpy_layout.c (launches of kjit.cuda), function.c
 * (calls of funcs), heard.c (the source of functions that exec makes), algorithm.c and what
 * algorithm.h names (algorithms over whole arrays), progress.c and interrupt.c (calls that take
 * long), and what expression.h names (operators of arrays, which are computed when their results
 * are needed).
 *
 * Lifetimes: each object holds a reference to the context object of Python that it belongs to, so
 * that a kjit_context ends after everything that was made from it. Contexts refer to nothing. */
#ifndef KJIT_PYTHON_BINDING_H
#define KJIT_PYTHON_BINDING_H

#define PY_SSIZE_T_CLEAN
#include <patchlevel.h>
#include <pyconfig.h>
/* The buffer protocol joined the limited API in Python 3.11. Python 3.10 has the same functions and
 * slots, so an extension that is compiled with headers of 3.11 or later runs with 3.10, too. With
 * headers of 3.10, and of free-threaded builds of Python, which have no stable ABI, the extension
 * is for that version only (tools/python/CMakeLists.txt gives the file its name). */
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

typedef struct binding_mailbox binding_mailbox;

/* A stream of another library, as an object of kjit's that is kept. */
typedef struct binding_wrap {
  uint64_t handle;
  kjit_device *device;
  kjit_stream *stream;
} binding_wrap;

enum { BINDING_MOST_WRAPS = 16 };

typedef struct context_object {
  PyObject_HEAD kjit_context *context;
  binding_mailbox *mailbox; /* lines and warnings that wait for the interpreter */
  unsigned generation;      /* of the process, see binding_generation */
  int is_interruptible;     /* its code looks now and then whether it is to end */
  atomic_int calls; /* threads that are in a call of libkjit, without the interpreter's lock */
  binding_wrap wraps[BINDING_MOST_WRAPS]; /* see stream.c */
  int wrap_count;
  PyObject *records; /* dictionary: dtype of NumPy, or name -> number of the struct, see record.c */
  uint32_t gpu_count;      /* 0: nobody has asked yet, or there is none */
  PyObject *device_memory; /* gives the memory of GPUs, see memory.c; NULL: libkjit does */
} context_object;

typedef struct device_object {
  PyObject_HEAD context_object *context;
  kjit_device *device; /* borrowed from the context */
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

/* The stream on which another library goes on with an array: a CUstream, 0 and 1 for the default
 * stream, 2 for the thread's. */
typedef struct binding_producer {
  int is_known;
  int lives_on; /* its streams are never destroyed */
  int device;   /* number of the GPU */
  uint64_t handle;
  const void *library; /* that is asked for its current stream, see direct.c; NULL: handle has it */
} binding_producer;

typedef struct binding_block binding_block;     /* see expression.h */
typedef struct binding_pending binding_pending; /* see expression.h */

typedef struct array_object {
  PyObject_HEAD context_object *context;
  kjit_array *array; /* NULL: pending */
  kjit_device *device;
  int is_read_only;
  binding_producer producer; /* of an array that was imported */
  binding_block *block;      /* of its memory; NULL: it has no views, and nothing reads it later */
  binding_pending *pending;  /* how it is computed when it is first needed; NULL: it has memory */
  /* What kjit.explain tells of an array that was pending. */
  PyObject *key; /* of the expression */
  int launch_count, was_fused;
} array_object;

/* The array as a tensor, or NULL with an exception. A pending array is computed. */
const kjit_tensor *binding_get_tensor(PyObject *array);
/* Methods and properties of arrays that look at strides, in array_view.c. */
PyObject *binding_restride(PyObject *array, PyObject *args);
PyObject *binding_get_part(PyObject *array, PyObject *args);
PyObject *binding_protect(PyObject *array, PyObject *unused);
PyObject *binding_relate(PyObject *array, PyObject *other);
PyObject *binding_get_strides(PyObject *array, void *unused);

extern PyTypeObject *binding_context_type, *binding_device_type, *binding_stream_type,
  *binding_module_type, *binding_array_type, *binding_kernel_type, *binding_launcher_type;

/* *place becomes value, whose reference it takes over. */
static inline void binding_set(PyObject **place, PyObject *value)
{
  PyObject *old = *place;
  *place = value;
  Py_XDECREF(old);
}

/* ---- module.c ---- */

/* How often the process was forked on the way from the one that imported kjit: what was made under
 * another number belongs to the parent. */
extern unsigned binding_generation;

/* Sets the exception of a status, with the context's diagnostics of this thread. Returns NULL. */
PyObject *binding_raise(context_object *context, kjit_status status);
/* 0, or -1 with an exception set: of the status, or one that handing over lines and warnings gave.
 */
int binding_finish(context_object *context, kjit_status status);
/* An exception of kjit's of the class that belongs to the status, with a text of the binding's own.
 * Returns NULL. */
PyObject *binding_fail(kjit_status status, const char *format, ...);
/* Whether the exception that is set is one of kjit's. */
int binding_is_error(void);
PyTypeObject *binding_make_type(PyObject *module, PyType_Spec *spec);
/* An object whose fields are 0, and its end: heap types own a reference to their type. */
void *binding_new_object(PyTypeObject *type);
void binding_free_object(PyObject *object);
/* Calls run without the interpreter's lock. */
#define BINDING_UNLOCKED(context, statement) \
  do { \
    atomic_fetch_add(&(context)->calls, 1); \
    Py_BEGIN_ALLOW_THREADS statement; \
    Py_END_ALLOW_THREADS atomic_fetch_sub(&(context)->calls, 1); \
  } while (0)

/* ---- memory.c ---- */

/* Of a context with device_memory, an object with the methods of kjit.cuda.memory.WorkMemory. */
extern const kjit_device_allocator binding_device_allocator;

/* ---- progress.c ---- */

/* A call of libkjit that may take long, on the stack of the thread that makes it. What it is of: a
 * kernel or func, or the name of an algorithm, or a device. */
typedef struct binding_call {
  context_object *context;
  const char *what, *name;
  PyObject *object; /* borrowed, as all of it is */
  kjit_device *device;
  const kjit_arg *args; /* of a launch, whose arrays say where it runs; NULL: it is none */
  size_t arg_count;
  /* filled in when it is listed */
  struct binding_call *next, **place;
  uint64_t number; /* 0: it is not listed */
  unsigned generation;
  enum { BINDING_NO_LINE, BINDING_LINE_OF_TERMINAL, BINDING_LINE_OF_THREAD } line;
} binding_call;

extern int binding_shows_progress; /* whether calls are listed */
void binding_list_call(binding_call *call);
void binding_unlist_call(binding_call *call);
/* A kernel that ends. */
void binding_forget_launched(PyObject *kernel);
int binding_add_progress(PyObject *module);
int binding_add_callbacks(PyObject *module);
/* BINDING_UNLOCKED for a call that may take long; the fields of its binding_call follow. */
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

/* Between begin and end, Ctrl-C ends calls of libkjit on the context that run interruptible code or
 * compile. On other threads than the main one both functions do nothing. */
int binding_begin_interruptible(context_object *context, binding_interruptible *saved);
/* Returns 0, or -1 with the exception that Python's handler of the signal has raised. */
int binding_end_interruptible(binding_interruptible *saved);
/* binding_finish for a call that Ctrl-C may have ended: then its exception is KeyboardInterrupt. */
int binding_finish_interruptible(context_object *context, kjit_status status,
                                 binding_interruptible *saved);

/* ---- context.c ---- */

int binding_add_context(PyObject *module);
/* The device of an argument `device`: a Device of the context, a text such as "cuda:1", None for
 * the current one of the thread, or else the context's first. NULL: an exception is set. */
kjit_device *binding_get_device(context_object *context, PyObject *object);
kjit_device *binding_open_device(context_object *context, kjit_device_kind kind, int ordinal);
PyObject *binding_wrap_device(context_object *context, kjit_device *device);

/* ---- place.c ---- */

/* Whether a context of the process has several devices of a kind. */
extern int binding_has_several;
/* The current device of the thread; binding_get_current is for threads that have one. NULL: an
 * exception is set. */
int binding_has_current(void);
kjit_device *binding_get_current(context_object *context);
/* "cpu", "cpu:1", "cuda:1": a device, and where a tensor is. */
PyObject *binding_name_place(context_object *context, kjit_device_kind kind, int ordinal);
PyObject *binding_name_home(const kjit_tensor *tensor);
/* DLPack's device type of arrays that belong to one of several CPU devices. */
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
/* Of an argument `stream`: None, a Stream of the context, or a stream of another library: its
 * number, or an object with `__cuda_stream__` or with the attribute that PyTorch's, CuPy's or
 * Numba's have. That one is on device, NULL: the context's first. keeper becomes a new reference to
 * what the stream needs, or NULL. 0, or -1 with an exception. */
int binding_get_stream(context_object *context, PyObject *object, kjit_device *device,
                       PyObject **keeper, kjit_stream **stream);
/* The stream of a handle of another library; is_own: to be destroyed by the caller. */
kjit_status binding_open_handle(kjit_device *device, uint64_t handle, kjit_stream **stream,
                                int *is_own);

/* ---- follow.c ---- */

/* The streams of a launch that follows those of its arguments. */
typedef struct binding_followed {
  kjit_stream *streams[4];
  kjit_device *devices[4];
  int is_own[4], count;
} binding_followed;
struct binding_argument;
/* A launch without a stream of its own goes to the one on which the library of its arrays goes on,
 * and waits for others that its arrays come from. 0, or -1 with an exception. */
int binding_begin_following(context_object *context, const struct binding_argument *arguments,
                            Py_ssize_t count, kjit_launch_config *config,
                            binding_followed *followed);
/* Those others wait for the launch. Always to be called after the function above. */
kjit_status binding_end_following(binding_followed *followed);
/* Waits for what the libraries have queued of arrays on other devices than the launch, which peer
 * access lets kernels use. Returns the number of waits: the launch is waited for as well if it is
 * not 0. -1: an exception is set. */
int binding_wait_for_peers(context_object *context, const struct binding_argument *arguments,
                           Py_ssize_t count, const kjit_device *device);
/* What the libraries of the arguments have queued comes before what the stream does next. 0, or -1
 * with an exception. */
int binding_wait_for_producers(context_object *context, const struct binding_argument *arguments,
                               Py_ssize_t count, kjit_stream *stream);
/* The streams of others that were kept. */
void binding_free_wraps(context_object *context);

/* ---- array.c, exchange.c ---- */

int binding_add_array(PyObject *module);
/* Takes over the reference to the kjit array; NULL: an exception is set, and it is released. */
PyObject *binding_wrap_array(context_object *context, kjit_array *array, int is_read_only);
/* A view of an array; read-only also where the array is. */
PyObject *binding_wrap_view(array_object *owner, kjit_array *view, int is_read_only);
/* An array whose memory others write; see binding_open_block. */
PyObject *binding_wrap_foreign(context_object *context, kjit_array *array, int is_read_only);
/* "float32"; NULL: NumPy has no such element. */
const char *binding_get_numpy_name(kjit_type type);
PyObject *binding_parse_element(context_object *context, PyObject *text, kjit_type *element);
/* extents from an int or a sequence of ints; 0, or -1 with an exception. */
int binding_parse_shape(PyObject *object, int64_t *shape, uint32_t *rank);
int binding_get_buffer(PyObject *self, Py_buffer *view, int flags);
void binding_release_buffer(PyObject *self, Py_buffer *view);
PyObject *binding_export_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t count,
                                PyObject *names);
PyObject *binding_get_dlpack_device(PyObject *self, PyObject *unused);
PyObject *binding_get_cuda_interface(PyObject *self, void *unused);
struct binding_argument;
/* Objects of libraries whose arrays are read without a capsule. 1: done, and what tensor and
 * producer of storage then say holds as long as the object and storage; 0: of another library; -1:
 * an exception is set. */
int binding_look(context_object *context, PyObject *object, struct binding_argument *storage);
/* The handle of a producer whose library is asked. 0, or -1 with an exception. */
int binding_ask_stream(binding_producer *producer);
int binding_init_direct(void);
/* Objects with __dlpack__ or __cuda_array_interface__ as an array of the context; a new reference.
 * NULL without an exception: the object has neither. */
PyObject *binding_import(context_object *context, PyObject *object);
/* What an object's __cuda_array_interface__ says, as a tensor of the host's memory: on the CPU
 * target that is what addresses mean. 0: it has none, or one that binding_import or its caller has
 * to look at: read-only, with a stream, not aligned. */
int binding_read_interface(PyObject *object, struct binding_argument *storage);
/* What is wrong with an object's memory, as an exception. Returns NULL. */
PyObject *binding_refuse(PyObject *object, const char *what);
/* What a tensor says must be possible: 0 to 8 dimensions, extents that are not negative, an
 * address. NULL: it is. */
const char *binding_find_flaw(const kjit_tensor *tensor, long device_type, long device_id);
/* The element of "<f4"; -1: kjit has none such. */
int binding_parse_typestr(const char *text, kjit_tensor *tensor);
/* 0, or -1, with an exception or not. */
int binding_parse_integers(PyObject *tuple, int64_t *values, int count);
/* A tensor in memory that belongs to owner as an array, which keeps a reference to owner as long as
 * kjit may use the memory, and its buffer if it is not NULL (taken over, on failure too). stream:
 * see kjit_take_dlpack_versioned. NULL: an exception is set. */
PyObject *binding_take_tensor(context_object *context, PyObject *owner, const kjit_tensor *tensor,
                              kjit_stream *stream, int is_read_only, const Py_buffer *buffer);

/* ---- block.c, expression.c, evaluate.c ---- */

/* Shape, element and device of an array, which need not be computed for that; no address. NULL with
 * an exception. */
const kjit_tensor *binding_look_at_array(PyObject *array);
kjit_type binding_get_element(const array_object *array);
/* Computes a pending array. 0, or -1 with an exception. */
int binding_evaluate(array_object *array);
/* Computes all pending arrays. 0, or -1 with an exception. */
int binding_evaluate_all(void);
/* Computes the array, and the pending arrays that read its memory, which is written next. 0, or -1
 * with an exception. */
int binding_before_write(array_object *array);
/* The memory is written by others from now on: always, or until it is returned. 0, or -1 with an
 * exception. */
int binding_open_block(array_object *array);
int binding_lend_block(array_object *array);
void binding_return_block(array_object *array);
/* A view has the memory of its owner. 0, or -1 with an exception. */
int binding_share_block(array_object *view, array_object *owner);
void binding_release_block(binding_block *block);
/* An array that ends. */
void expression_drop(array_object *array);

/* ---- operator.c ---- */

PyObject *binding_compare(PyObject *a, PyObject *b, int op);
/* The number of slots of operators; slots, if it is not NULL, is filled with them. */
size_t binding_copy_operators(PyType_Slot *slots);
int binding_add_expressions(PyObject *module);

/* ---- argument.c ---- */

/* One argument of a call, and what it keeps until the call is over. */
typedef struct binding_argument {
  binding_producer producer;
  Py_buffer buffer; /* buffer.obj NULL: none */
  PyObject *keep;   /* an array that was made for the call, or NULL */
  kjit_tensor tensor;
  int64_t strides[BINDING_MAX_RANK], shape[BINDING_MAX_RANK];
  double value[2];
  int is_foreign; /* an array of another context, on a GPU */
} binding_argument;

static inline void binding_begin_argument(binding_argument *storage)
{
  storage->buffer.obj = NULL;
  storage->keep = NULL;
  storage->is_foreign = 0;
  storage->producer.is_known = 0;
}

/* name: of the parameter, for messages, or NULL. 0, or -1 with an exception and nothing to free. */
int binding_take_argument(context_object *context, PyObject *object, const char *name,
                          binding_argument *storage, kjit_arg *arg);
void binding_free_argument(binding_argument *storage);
int binding_init_arguments(void);
/* A value of a scalar type as an object of Python. */
PyObject *binding_make_value(kjit_type type, const void *bytes);

/* Whether an argument is not handed over as it is, but by kjit.Kernel: a tuple, a record, a
 * function. */
int binding_find_composed(PyObject *object);
extern PyTypeObject *binding_plain_type; /* of what was neither, last */
static inline int binding_is_composed(PyObject *object)
{
  PyTypeObject *type = Py_TYPE(object);
  return type != binding_array_type && type != binding_plain_type && type != &PyFloat_Type &&
         type != &PyLong_Type && binding_find_composed(object);
}

/* ---- record.c: dtypes of NumPy with fields, and for dates, as structs ---- */

/* Whether a name is that of a struct that kjit._records gives; of one of dates. */
int binding_names_record(const char *name);
int binding_names_date(const char *name);
/* The scalar of NumPy with the count of a date of that type's name; a new reference. */
PyObject *binding_make_date(const char *name, int64_t count);

/* The struct that the elements of an object with such a dtype are; KJIT_VOID without an exception:
 * it has no dtype of that kind. */
kjit_type binding_find_record(context_object *context, PyObject *object);
/* The struct of that name, which kjit._records has given; KJIT_VOID: an exception is set. */
kjit_type binding_find_named_record(context_object *context, PyObject *name);
/* An array of NumPy whose dtype has no buffer as a view that has one, None for anything else; a new
 * reference, or NULL with an exception. */
PyObject *binding_view_plainly(PyObject *object);
/* The dtype behind the name of a struct; a new reference, or NULL with an exception. */
PyObject *binding_get_record_dtype(const char *name);
int binding_add_records(PyObject *module);

/* ---- parameter.c ---- */

/* The parameters of a kernel or func; all 0 at first. */
typedef struct binding_parameters {
  PyObject *names;    /* tuple of their names, NULL: not known yet */
  Py_ssize_t count;   /* of names; -1: `defaults` arranges the arguments of each call */
  PyObject *defaults; /* tuple of the values of the last of them, or what to call with arguments */
  int is_typed;       /* numbers of Python are i64 and f64, as Numba has it */
  PyObject *name;     /* for messages: "add()" */
} binding_parameters;

void binding_set_parameters(binding_parameters *self, PyObject *owner, PyObject *names,
                            PyObject *defaults, int is_typed);
void binding_clear_parameters(binding_parameters *self);
/* The arguments in the order of the parameters: a new tuple, with keywords and defaults filled in.
 * keywords: a dictionary, or a tuple of names whose values stand behind the args, or NULL. NULL: an
 * exception is set. */
PyObject *binding_arrange(const binding_parameters *self, PyObject *const *args, Py_ssize_t given,
                          PyObject *keywords);
/* binding_take_argument for the parameter of that number. */
int binding_take_parameter(context_object *context, const binding_parameters *self,
                           Py_ssize_t index, PyObject *object, binding_argument *storage,
                           kjit_arg *arg);

/* ---- kernel.c, function.c, algorithm.c, code.c ---- */

/* That launches of this thread on the CPU are spread over at most; 0: the usual ones. */
extern _Thread_local uint32_t binding_cpu_threads;

int binding_add_kernel(PyObject *module);
int binding_add_launcher(PyObject *module);
int binding_add_configured(PyObject *module);
int binding_add_functions(PyObject *module);
int binding_add_algorithms(PyObject *module);
int binding_add_code(PyObject *module);
int binding_add_formulas(PyObject *module);
int binding_add_figures(PyObject *module);
int binding_add_heard(PyObject *module);

#endif
