/* kjit/launch.h: arguments, launches, specializations. See status.h for the rules that hold for
 * every function. */
#ifndef KJIT_LAUNCH_H
#define KJIT_LAUNCH_H

#include <kjit/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* memory with a shape, or a view of it; see memory.h */
typedef struct kjit_array kjit_array;
/* something that some launches are interrupted by, and no others */
typedef struct kjit_interrupter kjit_interrupter;
/* a kernel compiled for one tuple of argument types and facts on one kind of device */
typedef struct kjit_specialization kjit_specialization;

/* ---- arguments: small values, made inline, no allocation ---- */

/* Bit for bit DLPack's DLTensor, whose typedef has no tag and cannot be declared ahead. */
typedef struct kjit_tensor {
  void *data;                     /* host or device address */
  int32_t device_type, device_id; /* kjit_device_kind; ordinal */
  /* number of dimensions, 0 to 8 */
  int32_t rank;
  uint8_t code, bits; /* element: see types.def */
  uint16_t lanes;     /* 1; of vectors 2, 3, 4, 8 or 16 */
  int64_t *shape;     /* rank extents */
  int64_t *strides;   /* rank strides in elements; NULL: row-major, contiguous */
  /* from data to the first element */
  uint64_t byte_offset;
} kjit_tensor;

/* A tensor in host memory: elements of a scalar type, row-major without gaps. shape, rank extents,
 * is kept and not copied. Other types make a tensor that every function refuses, except through
 * kjit_arg_elements. For memory of a GPU set device_type and device_id, for other strides strides.
 */
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

/* What an argument is; the functions below make each of them. */
typedef enum kjit_arg_kind {
  /* value has a scalar or pointer of type */
  KJIT_ARG_VALUE = 1,
  /* a number without a type: value.f64 has it, or, if type is KJIT_I64 or KJIT_U64, value.i or
   * value.u */
  KJIT_ARG_NUMBER,
  /* value.tensor points to a tensor */
  KJIT_ARG_TENSOR,
  /* value.array is a kjit array */
  KJIT_ARG_ARRAY,
  /* value.function is a func */
  KJIT_ARG_FUNCTION,
  /* value.address points to a value of type */
  KJIT_ARG_BY_ADDRESS,
  /* value.items points to the arguments that the tuple is made of, as many as reserved says */
  KJIT_ARG_TUPLE
} kjit_arg_kind;
/* How a host array is copied for a launch on a GPU; AUTO: from what the kernel reads and writes.
 * OUT promises that the kernel writes every element. */
typedef enum kjit_access {
  /* as the kernel reads and writes it */
  KJIT_ACCESS_AUTO = 0,
  /* copied in only */
  KJIT_ACCESS_IN,
  /* copied out only */
  KJIT_ACCESS_OUT,
  /* copied in and out */
  KJIT_ACCESS_IN_OUT
} kjit_access;

/* One argument of a call; never grows. */
typedef struct kjit_arg {
  uint8_t kind;   /* of kjit_arg_kind */
  uint8_t access; /* of kjit_access */
  /* how many items a tuple has; else 0 */
  uint16_t reserved;
  /* of a value, or of a tensor's elements; KJIT_ANY: the tensor's own */
  kjit_type type;
  union {
    int64_t i;                    /* a signed integer */
    uint64_t u;                   /* an unsigned integer, a bool; the bits of f16 and bf16 */
    double f64;                   /* a value of that type; a number without a type */
    float f32;                    /* a value of that type */
    float c64[2];                 /* its parts */
    const void *address;          /* of a value that is larger; a pointer's value */
    const kjit_tensor *tensor;    /* borrowed until the call returns */
    kjit_array *array;            /* borrowed */
    kjit_function *function;      /* borrowed */
    const struct kjit_arg *items; /* a tuple's, borrowed until the call returns */
  } value;                        /* the one that kind and type say */
} kjit_arg;

/* An argument of a kind and type whose value is 0: what the functions below begin with. */
static inline kjit_arg kjit_make_arg(kjit_arg_kind kind, kjit_type type)
{
  kjit_arg a;
  a.kind = (uint8_t)kind;
  a.access = 0;
  a.reserved = 0;
  a.type = type;
  a.value.u = 0;
  return a;
}
/* clang-format off */
/* ---- scalars of every type; kjit_arg_value takes complex numbers, vectors and structs, too ---- */
/* A bool: whether v is not 0. */
static inline kjit_arg kjit_arg_bool(int v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_BOOL); a.value.u = v != 0; return a; }
/* An i8. */
static inline kjit_arg kjit_arg_i8(int8_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I8); a.value.i = v; return a; }
/* An i16. */
static inline kjit_arg kjit_arg_i16(int16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I16); a.value.i = v; return a; }
/* An i32. */
static inline kjit_arg kjit_arg_i32(int32_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I32); a.value.i = v; return a; }
/* An i64. */
static inline kjit_arg kjit_arg_i64(int64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_I64); a.value.i = v; return a; }
/* A u8. */
static inline kjit_arg kjit_arg_u8(uint8_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U8); a.value.u = v; return a; }
/* A u16. */
static inline kjit_arg kjit_arg_u16(uint16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U16); a.value.u = v; return a; }
/* A u32. */
static inline kjit_arg kjit_arg_u32(uint32_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U32); a.value.u = v; return a; }
/* A u64. */
static inline kjit_arg kjit_arg_u64(uint64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_U64); a.value.u = v; return a; }
/* An f16, by its bits (IEEE 754 binary16): C99 has no such type. */
static inline kjit_arg kjit_arg_f16(uint16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_F16); a.value.u = v; return a; }
/* A bf16, by its bits: the upper half of those of a float. */
static inline kjit_arg kjit_arg_bf16(uint16_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_BF16); a.value.u = v; return a; }
/* An f32. */
static inline kjit_arg kjit_arg_f32(float v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_F32); a.value.f32 = v; return a; }
/* An f64. */
static inline kjit_arg kjit_arg_f64(double v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_F64); a.value.f64 = v; return a; }
/* A c64, by its two parts. */
static inline kjit_arg kjit_arg_c64(float re, float im) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, KJIT_C64); a.value.c64[0] = re; a.value.c64[1] = im; return a; }
/* A number of a host that has only doubles: takes the annotated type, else the type of what it meets, as a literal does. 4 is an integer literal then, as all integers that fit i32
 * are, 4.5 a float literal. kjit_launch rejects an integer that does not fit an integer type that it meets in the kernel. */
static inline kjit_arg kjit_arg_number(double v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_ANY); a.value.f64 = v; return a; }
/* A number as kjit_arg_number, of a host that tells integers from floats: a float literal whatever its value, 4 is `4.0`. (Its integers: kjit_arg_integer.) */
static inline kjit_arg kjit_arg_real(double v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_F64); a.value.f64 = v; return a; }
/* An integer without a type, of a host that tells integers from floats. It takes the annotated type, else the type of what it meets, as a literal does, and kjit_launch rejects it if that
 * type does not hold it. An integer that meets no type is an i32, or an i64 if it needs more than 32 bits. */
static inline kjit_arg kjit_arg_integer(int64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_I64); a.value.i = v; return a; }
/* As kjit_arg_integer, for integers up to the largest u64. Those that need more than 63 bits are u64 if they meet no type. */
static inline kjit_arg kjit_arg_unsigned_integer(uint64_t v) { kjit_arg a = kjit_make_arg(KJIT_ARG_NUMBER, KJIT_U64); a.value.u = v; return a; }
/* A value of any scalar, vector, struct or pointer type at an address; read during the call only. */
static inline kjit_arg kjit_arg_value(kjit_type type, const void *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_BY_ADDRESS, type); a.value.address = v; return a; }
/* A DLTensor (or kjit_tensor), read during the call only; its memory must live until the stream has passed the launch. */
static inline kjit_arg kjit_arg_tensor(const void *dl_tensor) { kjit_arg a = kjit_make_arg(KJIT_ARG_TENSOR, KJIT_ANY); a.value.tensor = (const kjit_tensor *)dl_tensor; return a; }
/* A DLTensor as kjit_arg_tensor, with elements that DLPack cannot say: structs, pointers. element is what they are; the tensor's code, bits and lanes are not looked at, its strides count elements. */
static inline kjit_arg kjit_arg_elements(kjit_type element, const void *dl_tensor) { kjit_arg a = kjit_make_arg(KJIT_ARG_TENSOR, element); a.value.tensor = (const kjit_tensor *)dl_tensor; return a; }
/* A device address (on the CPU, one of this process), for a parameter that is a pointer: as it is, nothing is checked. type: of kjit_get_pointer_type; parameters that say `p: f32*` take
 * kjit_arg_u64 too. */
static inline kjit_arg kjit_arg_pointer(kjit_type type, const void *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_VALUE, type); a.value.address = v; return a; }
/* A kjit array; borrowed, and kept alive by kjit until launches with it are done. */
static inline kjit_arg kjit_arg_array(kjit_array *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_ARRAY, KJIT_ANY); a.value.array = v; return a; }
/* A func or built-in, for a parameter that takes a func; borrowed. */
static inline kjit_arg kjit_arg_function(kjit_function *v) { kjit_arg a = kjit_make_arg(KJIT_ARG_FUNCTION, KJIT_FUNC); a.value.function = v; return a; }
/* A tuple of arguments, tuples among them, read during the call only, as the items are; count up to 65535, items NULL for 0. For kernels whose parameters say that they take tuples, `box: (_, f32[:])`,
 * and launches, prepared ones too; kjit_set_prepared_argument counts the items one by one. */
static inline kjit_arg kjit_arg_tuple(const kjit_arg *items, uint16_t count) { kjit_arg a = kjit_make_arg(KJIT_ARG_TUPLE, KJIT_ANY); a.reserved = count; a.value.items = items; return a; }
/* The argument a with an access: how a host array is copied for a launch on a GPU. */
static inline kjit_arg kjit_with_access(kjit_arg a, kjit_access access) { a.access = (uint8_t)access; return a; }
/* clang-format on */

/* ---- launching ---- */

/* How a launch is made. */
typedef enum kjit_launch_flags {
  /* all blocks are resident at once, or the launch is refused; kernels that use grid_sync are
     always launched so */
  KJIT_LAUNCH_COOPERATIVE = 1,
  /* code that is not there yet is compiled in the background and the call returns KJIT_NOT_READY */
  KJIT_LAUNCH_NO_WAIT = 4,
  KJIT_LAUNCH_PROGRAMMATIC =
    8 /* GPUs from sm_90 on: the launch may be prepared while the one before it in the stream still
       * runs (programmatic dependent launch). Its threads wait for that one's end before they do
       * anything, so that results are the same; elsewhere it changes nothing */
} kjit_launch_flags;

/* All zero but size_bytes: the kernel's @block and @grid, else one thread an element of its
 * grid_range. */
typedef struct kjit_launch_config {
  uint32_t size_bytes;        /* sizeof(kjit_launch_config) */
  uint32_t flags;             /* of kjit_launch_flags */
  uint32_t grid[3], block[3]; /* 0 0 0: none is given; else 0 counts as 1 */
  uint64_t
    /* not 0 and grid 0: at least so many threads; without a block, the one that keeps most threads
       of the compiled kernel resident (CPU: 256 threads) */
    threads;
  uint64_t dynamic_shared_bytes; /* for `shared x: T[]` */
  kjit_stream *stream;           /* NULL: the device's default stream */
  /* NULL: where the array arguments are; none: the context's first device, CUDA before CPU */
  kjit_device *device;
  /* blocks of a cluster, in all at most 16; 0: the kernel's @cluster, else none. Needs sm_90 */
  uint32_t cluster[3];
  /* of the kernel in CUDA's sense, negative is higher; 0: the stream's. Means nothing on the CPU */
  int32_t priority;
  /* on the CPU, that this launch is spread over at most; 0, or more than kjit_config.cpu_threads:
   * that one's. 1: the calling thread runs it */
  uint32_t cpu_threads;
  /* not 0: the launch is interrupted when so much time has gone by since it was queued, which is
   * after its code was compiled; needs kjit_config.interruptible. KJIT_NO_LIMIT: any time */
  uint64_t time_limit_ns;
  /* what interrupts the launch, in place of its stream; kept until it has ended; NULL: the stream
   */
  kjit_interrupter *interrupter;
} kjit_launch_config;

/* Dispatches on the types and facts of the arguments; asynchronous on the stream. On a GPU, host
 * arrays are copied in and, if written, out (then the call is synchronous). config NULL: all zero.
 * A hit takes no lock, allocates nothing and asks the driver nothing but the launch. Errors:
 * NOT_READY (KJIT_LAUNCH_NO_WAIT only), MISUSE (flags that this kjit does not know), KERNEL (a
 * thread failed, and the call was synchronous, as on the CPU), ARGUMENT, TYPE, UNSUPPORTED,
 * COMPILE, LAUNCH, NO_DEVICE, NO_COMPILER, DEVICE, MEMORY, DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_launch(kjit_kernel *kernel, const kjit_launch_config *config,
                                            const kjit_arg *arguments, size_t count);

/* ---- interrupting launches ----
 *
 * Of contexts with kjit_config.interruptible; see kjit_interrupt, which ends all of a context. */

/* Makes an interrupter for launches on the device. Errors: MISUSE (the context is not
 * interruptible), LAUNCH (too many), MEMORY, DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_create_interrupter(kjit_device *device,
                                                        kjit_interrupter **interrupter);
/* Gives the interrupter up; NULL is fine. Launches under way go on. */
KJIT_API void kjit_destroy_interrupter(kjit_interrupter *interrupter);
/* The context that the interrupter belongs to. */
KJIT_API kjit_context *kjit_get_interrupter_context(const kjit_interrupter *interrupter);
/* Ends the launches that were given the interrupter so far, as kjit_interrupt does. From any thread
 * and from signal handlers. */
KJIT_API void kjit_interrupt_launches(kjit_interrupter *interrupter);
/* Interrupts what was launched on the stream so far, graphs too, but for launches that were given
 * an interrupter. */
KJIT_API void kjit_interrupt_stream(kjit_stream *stream);

/* ---- prepared launches ---- */

/* a launch with everything looked up; one thread at a time */
typedef struct kjit_prepared kjit_prepared;

/* Binds the arguments, compiles or loads the code and makes the parameter block. Tensors and values
 * are copied, kjit arrays retained; the memory behind tensors and the stream have to outlive the
 * prepared launch. Errors: as kjit_launch; NOT_READY with KJIT_LAUNCH_NO_WAIT (nothing is prepared
 * then). */
KJIT_API KJIT_CHECK kjit_status kjit_prepare_launch(kjit_kernel *kernel,
                                                    const kjit_launch_config *config,
                                                    const kjit_arg *arguments, size_t count,
                                                    kjit_prepared **prepared);
/* Gives the prepared launch up; NULL is fine. Launches under way go on. */
KJIT_API void kjit_destroy_prepared(kjit_prepared *prepared);
/* The context that the prepared launch belongs to. */
KJIT_API kjit_context *kjit_get_prepared_context(const kjit_prepared *prepared);
/* Replaces one argument by one of the same type and, for arrays, the same number of dimensions.
 * Extents, facts and compile-time values are looked at again at the next run, which uses another
 * specialization where the one at hand does not hold. On an error the argument stays. Errors:
 * ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_set_prepared_argument(kjit_prepared *prepared, size_t index,
                                                           const kjit_arg *argument);
/* Launches on the stream; NULL: the one it was prepared with. Errors: as kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_run_prepared(kjit_prepared *prepared, kjit_stream *stream);
/* The specialization that the next run takes as far as the arguments were looked at; borrowed from
 * the kernel. */
KJIT_API kjit_specialization *kjit_get_prepared_specialization(const kjit_prepared *prepared);

/* ---- what was compiled ---- */

/* Compiles or loads a kernel ahead of its launches, for a signature as kjit_compile takes it and
 * for a device (NULL: the context's first). The code takes arrays as fresh allocations are: aligned
 * to 16 bytes, rows of C order too; disjoint; offsets and grid in 32 bits; on the CPU for the block
 * of @block or the one that is chosen without one. Launches with such arguments find it, others are
 * compiled when they come. Borrowed from the kernel.
 *
 * The name of a struct in a signature means the struct that the kernel's module declares. If the
 * module declares none of that name, it means the context's struct of that name, and NAME is
 * returned if the context has several. kjit_get_result_type and the compiling calls read signatures
 * in the same way. Errors: NAME, SYNTAX, TYPE, ARGUMENT,
 * UNSUPPORTED, COMPILE, NO_DEVICE, NO_COMPILER, DEVICE, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_specialize(kjit_kernel *kernel, kjit_device *device,
                                                const char *signature,
                                                kjit_specialization **specialization);

/* What is known of a specialization. */
typedef struct kjit_specialization_info {
  uint32_t size_bytes;   /* sizeof(kjit_specialization_info), set by the host */
  const char *signature; /* "f32[:] C, f32, const f32[:] C"; borrowed */
  /* the facts of the key as text: "aligned16(r) offsets32 disjoint(r, x)"; borrowed */
  const char *facts;
  const char *target; /* "sm_90", "cpu"; borrowed */
  /* of a thread; this one and the next three: 0 where the target has no such thing */
  uint32_t registers;
  uint32_t shared_bytes;      /* of a block, without dynamic shared memory */
  uint32_t local_bytes;       /* of a thread: what does not fit its registers, and local arrays */
  uint32_t constant_bytes;    /* of the module */
  uint32_t max_threads;       /* of a block, by its registers and @launch_bounds */
  uint32_t elements_a_thread; /* of a vectorized grid_range; 0: none */
  /* how often it was launched */
  uint64_t launches;
  uint64_t parse_time_ns;    /* wall time of a stage, as the next five: the module's text is read */
  uint64_t infer_time_ns;    /* types are found, and kjit's passes run */
  uint64_t lower_time_ns;    /* LLVM IR is made */
  uint64_t optimize_time_ns; /* LLVM's passes run */
  uint64_t emit_time_ns;     /* PTX or machine code is written */
  uint64_t load_time_ns;     /* the driver, or the linker of the CPU, takes it */
  uint32_t max_dynamic_shared_bytes; /* that a launch may ask for */
  uint32_t cluster[3];               /* @cluster; 0: none */
  /* of the machine code, or of PTX where the driver was handed that */
  uint64_t code_bytes;
  /* 0: the code was unloaded (kjit_config.code_limit_bytes), and what it alone knows is 0 */
  int is_loaded;
  int is_cooperative; /* 1: it uses grid_sync */
  int is_from_disk;   /* 1: its code came from the disk cache */
  int is_imported;    /* 1: its code came from a blob */
  /* The CPU's. Stack of a thread of the machine, as all functions of the code need it together, but
     for what functions outside of the code take. On a GPU 0, or what recursion needs. */
  uint32_t stack_bytes;
  /* bits of the widest vectors that the code computes with, which a processor with narrower
     registers takes in parts; 0: it has none. On a GPU 0 */
  uint32_t vector_bits;
  /* memory that a block takes of the thread that runs it: its shared arrays, dynamic ones aside,
     and what its threads keep where they wait for each other. On a GPU 0 */
  uint64_t block_bytes;
} kjit_specialization_info;

/* The kernel's specializations in the order of their compilation; borrowed from the kernel; NULL
 * past the end. */
KJIT_API kjit_specialization *kjit_get_specialization(kjit_kernel *kernel, size_t index);
/* What is known of a specialization. Errors: MISUSE. */
KJIT_API kjit_status kjit_get_specialization_info(const kjit_specialization *specialization,
                                                  kjit_specialization_info *info);
/* The context that the specialization's kernel belongs to. */
KJIT_API kjit_context *kjit_get_specialization_context(const kjit_specialization *specialization);

#ifdef __cplusplus
}
#endif
#endif
