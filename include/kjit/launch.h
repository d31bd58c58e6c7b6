/* kjit/launch.h: arguments, launches and specializations. status.h has the rules that hold for
 * every function. */
#ifndef KJIT_LAUNCH_H
#define KJIT_LAUNCH_H

#include <kjit/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* memory with a shape, or a view of it; see memory.h */
typedef struct kjit_array kjit_array;
/* interrupts a set of launches and no others */
typedef struct kjit_interrupter kjit_interrupter;
/* kernel code for one tuple of argument types and facts on one device kind */
typedef struct kjit_specialization kjit_specialization;

/* ---- arguments: small values, made inline, no allocation ---- */

/* A tensor with DLPack's DLTensor memory layout. DLPack's typedef has no tag and cannot be declared
 * ahead. */
typedef struct kjit_tensor {
  void *data; /* host or device address */
  /* device_type: a kjit_device_kind, or a number of DLPack (see kjit_get_tensor); device_id:
   * ordinal of the device */
  int32_t device_type, device_id;
  /* number of dimensions, 0 to 8 */
  int32_t rank;
  uint8_t code, bits; /* element type, see types.def */
  uint16_t lanes;     /* 1, or 2, 3, 4, 8 or 16 for vectors */
  int64_t *shape;     /* extents, one for each dimension */
  /* strides in elements, one for each dimension; NULL means row-major and contiguous */
  int64_t *strides;
  /* offset from data to the first element */
  uint64_t byte_offset;
} kjit_tensor;

/* Returns a row-major, contiguous tensor in host memory with elements of a scalar type.
 *
 * kjit borrows shape, which has rank extents. If type is not a scalar type, every function rejects
 * the tensor, except through kjit_arg_elements. For GPU memory set device_type and device_id; for
 * other strides set strides. */
static inline kjit_tensor kjit_make_tensor(void *data, kjit_type type, uint32_t rank,
                                           const int64_t *shape)
{
  static const uint8_t elements[KJIT_SCALAR_COUNT][2] = {
    { 0, 0 },
#define KJIT_ROW(name, text, size, class_, code, bits) { code, bits },
#include <kjit/types.def>
#undef KJIT_ROW
  };
  kjit_tensor tensor;
  tensor.data = data;
  tensor.device_type = 1; /* KJIT_DEVICE_CPU */
  tensor.device_id = 0;
  tensor.rank = (int32_t)rank;
  tensor.code = type < KJIT_SCALAR_COUNT ? elements[type][0] : 0;
  tensor.bits = type < KJIT_SCALAR_COUNT ? elements[type][1] : 0;
  tensor.lanes = 1;
  tensor.shape = (int64_t *)shape;
  tensor.strides = NULL;
  tensor.byte_offset = 0;
  return tensor;
}

/* Kinds of arguments. The functions below create them. */
typedef enum kjit_arg_kind {
  /* value holds a scalar or pointer of type */
  KJIT_ARG_VALUE = 1,
  /* an untyped number in value.f64, or in value.i or value.u if type is KJIT_I64 or KJIT_U64 */
  KJIT_ARG_NUMBER,
  /* value.tensor points to a tensor */
  KJIT_ARG_TENSOR,
  /* value.array is a kjit array */
  KJIT_ARG_ARRAY,
  /* value.function is a func */
  KJIT_ARG_FUNCTION,
  /* value.address points to a value of type */
  KJIT_ARG_BY_ADDRESS,
  /* value.items points to the items of a tuple; their number is in count */
  KJIT_ARG_TUPLE
} kjit_arg_kind;
/* How a launch on a GPU copies a host array. AUTO follows the reads and writes of the kernel. OUT
 * promises that the kernel writes every element. */
typedef enum kjit_access {
  /* depends on the reads and writes of the kernel */
  KJIT_ACCESS_AUTO = 0,
  /* copied to the GPU before the launch */
  KJIT_ACCESS_IN,
  /* copied back after the launch */
  KJIT_ACCESS_OUT,
  /* copied in both directions */
  KJIT_ACCESS_IN_OUT
} kjit_access;

/* An argument of a call. This struct never grows. */
typedef struct kjit_arg {
  uint8_t kind;   /* see kjit_arg_kind */
  uint8_t access; /* see kjit_access */
  /* number of items in a tuple, otherwise 0 */
  uint16_t count;
  /* type of a value or of tensor elements; KJIT_ANY means the element type of the tensor */
  kjit_type type;
  union {
    int64_t i;                    /* a signed integer */
    uint64_t u;                   /* unsigned integer, bool, or the bits of f16 and bf16 */
    double f64;                   /* f64, or an untyped number */
    float f32;                    /* f32 */
    float c64[2];                 /* real and imaginary part */
    const void *address;          /* address of a larger value, or the value of a pointer */
    const kjit_tensor *tensor;    /* a tensor, borrowed until the call returns */
    kjit_array *array;            /* a kjit array, borrowed */
    kjit_function *function;      /* a func, borrowed */
    const struct kjit_arg *items; /* items of a tuple, borrowed until the call returns */
  } value;                        /* kind and type select the member */
} kjit_arg;

/* Returns an argument with a kind, a type and the value 0. The functions below call this function
 * and then set the value. */
static inline kjit_arg kjit_make_arg(kjit_arg_kind kind, kjit_type type)
{
  kjit_arg a;
  a.kind = (uint8_t)kind;
  a.access = 0;
  a.count = 0;
  a.type = type;
  a.value.u = 0;
  return a;
}
/* clang-format off */
/* ---- scalars of every type; kjit_arg_value takes complex numbers, vectors and structs, too ---- */
/* Returns a bool argument: true if v is not 0. */
static inline kjit_arg kjit_arg_bool(int v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_BOOL); a.value.u = v != 0; return a; }
/* Returns an i8 argument. */
static inline kjit_arg kjit_arg_i8(int8_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I8); a.value.i = v; return a; }
/* Returns an i16 argument. */
static inline kjit_arg kjit_arg_i16(int16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I16); a.value.i = v; return a; }
/* Returns an i32 argument. */
static inline kjit_arg kjit_arg_i32(int32_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I32); a.value.i = v; return a; }
/* Returns an i64 argument. */
static inline kjit_arg kjit_arg_i64(int64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I64); a.value.i = v; return a; }
/* Returns a u8 argument. */
static inline kjit_arg kjit_arg_u8(uint8_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U8); a.value.u = v; return a; }
/* Returns a u16 argument. */
static inline kjit_arg kjit_arg_u16(uint16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U16); a.value.u = v; return a; }
/* Returns a u32 argument. */
static inline kjit_arg kjit_arg_u32(uint32_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U32); a.value.u = v; return a; }
/* Returns a u64 argument. */
static inline kjit_arg kjit_arg_u64(uint64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U64); a.value.u = v; return a; }
/* Returns an f16 argument from its bits (IEEE 754 binary16), because C99 has no such type. */
static inline kjit_arg kjit_arg_f16(uint16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_F16); a.value.u = v; return a; }
/* Returns a bf16 argument from its bits, which are the upper half of a float. */
static inline kjit_arg kjit_arg_bf16(uint16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_BF16); a.value.u = v; return a; }
/* Returns an f32 argument. */
static inline kjit_arg kjit_arg_f32(float v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_F32); a.value.f32 = v; return a; }
/* Returns an f64 argument. */
static inline kjit_arg kjit_arg_f64(double v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_F64); a.value.f64 = v; return a; }
/* Returns a c64 argument for the real and imaginary part. */
static inline kjit_arg kjit_arg_c64(float re, float im) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_C64); a.value.c64[0] = re; a.value.c64[1] = im; return a; }
/* Returns an untyped number, for front ends that only have doubles. Like a literal, it takes the
 * annotated type of the parameter or the type of the other operand. Integers that fit i32 are
 * integer literals, other numbers are float literals. kjit_launch rejects an integer that does not
 * fit the integer type it is combined with. */
static inline kjit_arg kjit_arg_number(double v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_ANY); a.value.f64 = v; return a; }
/* Returns an untyped float literal, also for whole numbers: 4 is `4.0`. Front ends that distinguish
 * integers from floats use this function for floats, and kjit_arg_integer for integers. */
static inline kjit_arg kjit_arg_real(double v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_F64); a.value.f64 = v; return a; }
/* Returns an untyped integer, for front ends that distinguish integers from floats. Like a literal,
 * it takes the annotated type or the type of the other operand. kjit_launch rejects it if that type
 * cannot hold it. Without such a type it is an i32, or an i64 if it needs more than 32 bits. */
static inline kjit_arg kjit_arg_integer(int64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_I64); a.value.i = v; return a; }
/* Like kjit_arg_integer, for integers up to the largest u64. Without a type from the kernel,
 * integers that need more than 63 bits are u64. */
static inline kjit_arg kjit_arg_unsigned_integer(uint64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_U64); a.value.u = v; return a; }
/* Returns an argument for a value of any scalar, vector, struct or pointer type in memory. The call
 * reads the value before it returns. */
static inline kjit_arg kjit_arg_value(kjit_type type, const void *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_BY_ADDRESS, type); a.value.address = v; return a; }
/* Returns an argument for a DLTensor or kjit_tensor. The call reads the tensor before it returns.
 * The memory of the tensor must live until the stream has passed the launch. */
static inline kjit_arg kjit_arg_tensor(const void *dl_tensor) { kjit_arg a = kjit_make_arg(KJIT_ARG_TENSOR, KJIT_ANY); a.value.tensor = (const kjit_tensor *)dl_tensor; return a; }
/* Returns an argument for a DLTensor whose element type DLPack cannot express, such as a struct or
 * a pointer. kjit ignores code, bits and lanes of the tensor. Strides count elements. The argument
 * is otherwise like that of kjit_arg_tensor. */
static inline kjit_arg kjit_arg_elements(kjit_type element, const void *dl_tensor) { kjit_arg a = kjit_make_arg(KJIT_ARG_TENSOR, element); a.value.tensor = (const kjit_tensor *)dl_tensor; return a; }
/* Returns an argument with a device address for a pointer parameter. On the CPU the address is one
 * of this process. kjit does not check the address. type comes from kjit_get_pointer_type. A
 * parameter `p: f32*` also accepts kjit_arg_u64. */
static inline kjit_arg kjit_arg_pointer(kjit_type type, const void *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, type); a.value.address = v; return a; }
/* Returns an argument for a kjit array, which is borrowed. kjit keeps the array alive until
 * launches with it are done. */
static inline kjit_arg kjit_arg_array(kjit_array *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_ARRAY, KJIT_ANY); a.value.array = v; return a; }
/* Returns an argument for a func parameter: a func or a built-in, which is borrowed. */
static inline kjit_arg kjit_arg_function(kjit_function *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_FUNCTION, KJIT_FUNC); a.value.function = v; return a; }
/* Returns a tuple of up to 65535 arguments, which can be tuples. The call reads the items before it
 * returns; items can be NULL if count is 0. Kernels with tuple parameters such as `box: (_,
 * f32[:])` take tuples, in prepared launches as well. kjit_set_prepared_argument counts each item
 * of a tuple as an argument. */
static inline kjit_arg kjit_arg_tuple(const kjit_arg *items, uint16_t count) { kjit_arg a = kjit_make_arg(KJIT_ARG_TUPLE, KJIT_ANY); a.count = count; a.value.items = items; return a; }
/* Returns a copy of argument a with an access, which controls how a GPU launch copies a host
 * array. */
static inline kjit_arg kjit_with_access(kjit_arg a, kjit_access access) { a.access = (uint8_t)access; return a; }
/* clang-format on */

/* ---- launching ---- */

/* Flags of a launch. */
typedef enum kjit_launch_flags {
  /* All blocks must be resident at the same time. Otherwise the launch fails. Kernels that use
   * grid_sync are always launched in this way. */
  KJIT_LAUNCH_COOPERATIVE = 1,
  /* If the code does not exist yet, compile it in the background and return KJIT_NOT_READY. */
  KJIT_LAUNCH_NO_WAIT = 4,
  /* On GPUs from sm_90 on, prepare the launch while the preceding launch in the stream still runs
   * (programmatic dependent launch). The threads of the prepared launch first wait until the
   * preceding launch ends, so results do not change. Other devices ignore the flag. */
  KJIT_LAUNCH_PROGRAMMATIC = 8
} kjit_launch_flags;

/* Options of a launch. If only size_bytes is set, kjit uses @block and @grid of the kernel, or one
 * thread for each element of its grid_range. */
typedef struct kjit_launch_config {
  uint32_t size_bytes;        /* sizeof(kjit_launch_config) */
  uint32_t flags;             /* see kjit_launch_flags */
  uint32_t grid[3], block[3]; /* 0 0 0 means unset; otherwise a 0 counts as 1 */
  /* Minimum number of threads, used if grid is 0; 0 means unset. If block is 0 as well, kjit
   * chooses the block size with the highest occupancy (256 threads on the CPU). */
  uint64_t threads;
  uint64_t dynamic_shared_bytes; /* memory for `shared x: T[]` */
  kjit_stream *stream;           /* NULL means the device's default stream */
  /* NULL means the device of the array arguments. Without arrays it means the context's first
   * device, CUDA before CPU. */
  kjit_device *device;
  /* Blocks in a cluster, at most 16 in total. 0 means @cluster of the kernel, or no clusters.
   * Clusters need sm_90. */
  uint32_t cluster[3];
  /* Priority of the kernel as in CUDA; lower numbers have a higher priority. 0 means the stream's
   * priority. The CPU ignores it. */
  int32_t priority;
  /* Maximum number of CPU threads for this launch, including the calling thread. 0, or a value
   * above kjit_config.cpu_threads, means kjit_config.cpu_threads. */
  uint32_t cpu_threads;
  /* If not 0, the launch is interrupted when this time has passed since it was queued. Compilation
   * does not count. The option needs kjit_config.interruptible. KJIT_NO_LIMIT means no limit. */
  uint64_t time_limit_ns;
  /* Interrupter of the launch, which is retained until the launch ends. NULL means that the stream
   * interrupts the launch. */
  kjit_interrupter *interrupter;
} kjit_launch_config;

/* Launches a kernel. The call is asynchronous on the stream.
 *
 * kjit selects the code by the types and facts of the arguments and compiles it if necessary. If
 * config is NULL, all options are 0. On a GPU, kjit copies host arrays to the device and copies
 * written arrays back. The call is then synchronous. If the code exists already, the call takes no
 * lock, allocates no memory and makes no driver call other than the launch.
 *
 * Errors: NOT_READY (with KJIT_LAUNCH_NO_WAIT only), MISUSE (unknown flags), KERNEL (a thread
 * failed in a synchronous call, for example on the CPU), ARGUMENT, TYPE, UNSUPPORTED, COMPILE,
 * LAUNCH, NO_DEVICE, NO_COMPILER, DEVICE, MEMORY, DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_launch(kjit_kernel *kernel, const kjit_launch_config *config,
                                            const kjit_arg *arguments, size_t count);

/* ---- interrupting launches ----
 *
 * These functions need a context with kjit_config.interruptible. kjit_interrupt interrupts all
 * launches of a context at once. */

/* Creates an interrupter for launches on the device. Errors: MISUSE (the context is not
 * interruptible), LAUNCH (too many interrupters), MEMORY, DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_create_interrupter(kjit_device *device,
                                                        kjit_interrupter **interrupter);
/* Destroys an interrupter, which can be NULL. Running launches continue. */
KJIT_API void kjit_destroy_interrupter(kjit_interrupter *interrupter);
/* Returns the context that the interrupter belongs to. */
KJIT_API kjit_context *kjit_get_interrupter_context(const kjit_interrupter *interrupter);
/* Interrupts all launches that have used the interrupter so far, like kjit_interrupt. The function
 * can be called from any thread and from signal handlers. */
KJIT_API void kjit_interrupt_launches(kjit_interrupter *interrupter);
/* Interrupts all launches and graphs on the stream so far, except launches with their own
 * interrupter. */
KJIT_API void kjit_interrupt_stream(kjit_stream *stream);

/* ---- prepared launches ---- */

/* a launch that is ready to run; only one thread at a time may use it */
typedef struct kjit_prepared kjit_prepared;

/* Binds the arguments, compiles or loads the code and creates the parameter block.
 *
 * kjit copies tensors and values and retains kjit arrays and the interrupter. The memory of
 * tensors, and the stream, must outlive the prepared launch. Errors: see kjit_launch; NOT_READY
 * with KJIT_LAUNCH_NO_WAIT, in which case nothing is prepared. */
KJIT_API KJIT_CHECK kjit_status kjit_prepare_launch(kjit_kernel *kernel,
                                                    const kjit_launch_config *config,
                                                    const kjit_arg *arguments, size_t count,
                                                    kjit_prepared **prepared);
/* Destroys a prepared launch, which can be NULL. Running launches continue. */
KJIT_API void kjit_destroy_prepared(kjit_prepared *prepared);
/* Returns the context that the prepared launch belongs to. */
KJIT_API kjit_context *kjit_get_prepared_context(const kjit_prepared *prepared);
/* Replaces an argument by another argument with the same type and, for arrays, the same number of
 * dimensions.
 *
 * The next run checks extents, facts and compile-time values again and uses another specialization
 * if the current one does not match. If the function fails, the old argument stays. Errors:
 * ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_set_prepared_argument(kjit_prepared *prepared, size_t index,
                                                           const kjit_arg *argument);
/* Runs the launch on a stream. NULL means the stream of kjit_prepare_launch. Errors: see
 * kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_run_prepared(kjit_prepared *prepared, kjit_stream *stream);
/* Returns the specialization that the next run will use if the arguments have not changed since
 * kjit last checked them. It is borrowed from the kernel. */
KJIT_API kjit_specialization *kjit_get_prepared_specialization(const kjit_prepared *prepared);

/* ---- specializations ---- */

/* Compiles a kernel before its first launch, or loads it from the cache.
 *
 * signature has the format of kjit_compile. If device is NULL, kjit uses the first device in the
 * context. The code assumes freshly allocated arrays: addresses and rows aligned to 16 bytes, no
 * overlap, and 32-bit offsets and grid. On the CPU it also assumes the block size given by @block,
 * or the default block size. Launches that meet these assumptions use this code; for other launches
 * kjit compiles another variant. The specialization is borrowed from the kernel.
 *
 * A struct name in a signature refers to the struct that the kernel's module declares. If the
 * module declares no such struct, the name refers to the context's struct. If the context has
 * several structs with this name, the call returns NAME. kjit_get_result_type and the compiling
 * functions read signatures in the same way. Errors: NAME, SYNTAX, TYPE, ARGUMENT, UNSUPPORTED,
 * COMPILE, NO_DEVICE, NO_COMPILER, DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_specialize(kjit_kernel *kernel, kjit_device *device,
                                                const char *signature,
                                                kjit_specialization **specialization);

/* Properties of a specialization. Fields that a target does not have are 0. */
typedef struct kjit_specialization_info {
  uint32_t size_bytes;   /* sizeof(kjit_specialization_info), set by the application */
  const char *signature; /* "f32[:] C, f32, const f32[:] C"; borrowed */
  /* facts of the key, "aligned16(r) offsets32 disjoint(r, x)"; borrowed */
  const char *facts;
  const char *target; /* "sm_90", "cpu"; borrowed */
  /* registers of a thread */
  uint32_t registers;
  uint32_t shared_bytes;   /* static shared memory of a block */
  uint32_t local_bytes;    /* local memory of a thread: spilled registers and local arrays */
  uint32_t constant_bytes; /* constant memory of the module */
  uint32_t max_threads;    /* maximum block size, limited by registers and @launch_bounds */
  /* elements for each thread of a vectorized grid_range; 0 if it is not vectorized */
  uint32_t elements_a_thread;
  /* number of launches */
  uint64_t launches;
  /* wall time for parsing the module; the next five fields are wall times as well */
  uint64_t parse_time_ns;
  uint64_t infer_time_ns;            /* inferring types and running kjit's passes */
  uint64_t lower_time_ns;            /* creating LLVM IR */
  uint64_t optimize_time_ns;         /* running LLVM's passes */
  uint64_t emit_time_ns;             /* writing PTX or machine code */
  uint64_t load_time_ns;             /* loading by the driver, or linking on the CPU */
  uint32_t max_dynamic_shared_bytes; /* maximum dynamic shared memory of a launch */
  uint32_t cluster[3];               /* @cluster; 0 means no clusters */
  /* size of the machine code, or of the PTX that the driver received */
  uint64_t code_bytes;
  /* 0 means that the code was unloaded (kjit_config.code_limit_bytes); fields that describe loaded
   * code are then 0 */
  int is_loaded;
  int is_cooperative; /* 1 if it uses grid_sync */
  int is_from_disk;   /* 1 if the code came from the disk cache */
  int is_imported;    /* 1 if the code came from a blob */
  /* CPU: stack size that all functions of the code need together, without functions outside the
   * code. GPU: 0, or the stack size for recursion. */
  uint32_t stack_bytes;
  /* CPU: width of the widest vectors in the code, or 0. A processor with narrower registers splits
   * them. GPU: 0. */
  uint32_t vector_bits;
  /* CPU: memory that a block takes from the thread that runs it. It holds static shared arrays and
   * the state of threads that wait for each other. GPU: 0. */
  uint64_t block_bytes;
  /* 1 if the code is plain code (kjit_plain_code); the best code is a specialization of its own */
  int is_plain;
} kjit_specialization_info;

/* Returns a specialization of the kernel, in the order of compilation, or NULL if index is too
 * large. It is borrowed from the kernel. */
KJIT_API kjit_specialization *kjit_get_specialization(kjit_kernel *kernel, size_t index);
/* Describes a specialization. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_specialization_info(const kjit_specialization *specialization,
                                                  kjit_specialization_info *info);
/* Returns the context that the kernel of the specialization belongs to. */
KJIT_API kjit_context *kjit_get_specialization_context(const kjit_specialization *specialization);

#ifdef __cplusplus
}
#endif
#endif
