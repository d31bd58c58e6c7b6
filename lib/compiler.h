/* The interface between libkjit and libkjit-compiler. The runtime passes the compiler a request
 * with the facts that it knows about a call. The compiler returns code and the information that is
 * needed to launch the code. The interface contains no types of LLVM or of the driver.
 *
 * libkjit loads the compiler with dlopen. The compiler exports a single function,
 * kjit_get_compiler_interface. */
#ifndef KJ_COMPILER_H
#define KJ_COMPILER_H

#include <kjit/compile.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ir/module.h"

/* ---- input: a specialization ---- */

/* Size in bytes of the widest access of a thread, to which the facts about alignment refer. */
enum { KJ_FACT_WIDTH = 16 };

/* An output array of at least this number of bytes is assumed not to fit into the last-level cache.
 * A group of cores usually shares 16 to 32 MiB of this cache, and the inputs need part of it. */
enum { KJ_LARGE_BYTES = 1 << 25 };

/* Facts that the runtime has checked for this call's arguments. They are bit positions in
 * kj_argument.facts. */
enum {
#define KJ_ARRAY_FACT(NAME, text, in_all, holds) KJ_FACT_AT_##NAME,
#include "facts.def"
  KJ_ARRAY_FACT_COUNT
};
enum {
#define KJ_ARRAY_FACT(NAME, text, in_all, holds) KJ_FACT_##NAME = 1 << KJ_FACT_AT_##NAME,
#include "facts.def"
};

/* How the memory of two array arguments is related. */
typedef enum kj_relation {
  KJ_RELATION_ANY,      /* may overlap in any way */
  KJ_RELATION_DISJOINT, /* no byte in common */
  KJ_RELATION_SAME      /* equal address, extents and strides */
} kj_relation;

typedef enum kj_argument_kind {
  KJ_ARGUMENT_VALUE, /* the value of a scalar parameter, whose type is .type; it is passed at run
                      * time */
  /* An untyped number that is passed at run time: .type is KJ_WEAK_INT (passed as i64) or
   * KJ_WEAK_FLOAT (passed as f64). For an integer that needs more than 32 bits, .type is KJIT_I64,
   * or KJIT_U64 if i64 is too small. The kernel gives the number this type unless another operand
   * determines the type. */
  KJ_ARGUMENT_NUMBER,
  KJ_ARGUMENT_ARRAY, /* .type is a global array; .facts contains the facts about it */
  /* the value of a const parameter, known at compile time: .type is weak or scalar, and .integer is
   * as in ki_value */
  KJ_ARGUMENT_CONST,
  KJ_ARGUMENT_FUNCTION /* .function */
} kj_argument_kind;

typedef struct kj_argument {
  kj_argument_kind kind;
  kjit_type type;
  uint32_t facts;
  __int128 integer; /* CONST: the integer, or the bits of a float */
  const ki_decl *function;
} kj_argument;

typedef struct kj_signature {
  /* one for each parameter of the kernel; parameters that were not passed have their defaults */
  const kj_argument *arguments;
  uint32_t count;
  /* the facts about the whole call */
#define KJ_CALL_FACT(NAME, field, text, kind, holds) bool field;
#include "facts.def"
  /* kj_relation [count * count], symmetric; NULL means that all relations are ANY */
  const uint8_t *relations;
  /* The block shape; 0 means that it is not known. The CPU target always knows it. */
  uint32_t block[3];
} kj_signature;

typedef enum kj_target_kind { KJ_TARGET_CPU, KJ_TARGET_NVPTX } kj_target_kind;

/* The processor for which CPU code is compiled: this machine's processor, or a named level that
 * several processors have. */
typedef enum kj_cpu_level {
  KJ_CPU_OWN,
#define KJ_CPU_LEVEL(NAME, text, cpu, has_avx, has_avx2, has_avx512, vector_bytes) KJ_CPU_##NAME,
#include "cpu_levels.def"
  KJ_CPU_LEVEL_COUNT
} kj_cpu_level;

typedef struct kj_target {
  kj_target_kind kind;
  kj_cpu_level level; /* CPU only */
  uint32_t arch;      /* 90 means sm_90 */
  char suffix;        /* 'a', 'f' or 0 */
  /* 78 means PTX 7.8. 0 means the minimum that arch and the code need. Any other value is the
   * highest version that the driver accepts. */
  uint32_t ptx_version;
  uint32_t vector_bytes; /* size of the widest access or register, which the compiler sets */
} kj_target;

/* The kinds of plain code that a compilation is allowed to return. Plain code is made with few
 * optimizations and takes much less time to compile than fully optimized code. Only code that the
 * application launches or calls can be plain. */
typedef enum kj_plain {
  KJ_PLAIN_NONE,  /* only the best code */
  KJ_PLAIN_EQUAL, /* plain code, if it computes the same bits as fully optimized code */
  KJ_PLAIN_ANY    /* plain code, even if its float results are rounded differently */
} kj_plain;

typedef struct kj_compile_request kj_compile_request;
struct kj_compile_request {
  const kjit_module *module;
  const ki_function *kernel;
  const kj_signature *signature;
  kj_target target;
  /* the last stage to run: PTX or OBJECT if the code is to be executed, or any other stage in order
   * to inspect its output */
  kjit_stage stage;
  /* for the stage TYPED: returns the trees after this pass; NULL means after the last pass */
  const char *after_pass;
  uint32_t checks; /* KJIT_CHECK_*; the compiler replaces DIVISION */
  /* NULL if kernel is a kernel; otherwise kernel is a func, which is compiled as a C function with
   * this name */
  const char *symbol;
  /* For a func that can fail or polls: its first parameter is the address of a kj_failure_record.
   * If this is false, a failure traps. */
  bool has_record;
  /* The code polls for interrupts. A func polls only if has_record is set. The address of a
   * kj_interruptible_call is then a parameter after the failure record. */
  bool is_interruptible;
  /* the code will run in another process, so the functions of the application may not exist yet */
  bool is_ahead;
  kjit_debug debug; /* whether debug information is generated for debuggers and profilers */
  bool is_check;    /* TYPED: returns only diagnostics and code.result, not the text */
  /* if plain code of this kind saves time for the target, the compiler makes it and sets
   * kj_code.is_plain */
  kj_plain plain;
  /* Each field is a number or KJIT_NO_LIMIT. In libkjit, a size_bytes of 0 means the limits of the
   * context. kj_call_compiler fills in these limits and the fields below. */
  kjit_compile_limits limits;
  /* the compilation stops when this counter differs from interrupts_before; NULL means that the
   * compilation cannot be interrupted */
  const _Atomic uint64_t *interrupts;
  uint64_t interrupts_before;
  /* Called at the beginning of each stage, except for the first stage, TYPED, which the caller
   * reports. Can be NULL. */
  void (*on_stage)(const kj_compile_request *request, kjit_stage stage);
};

/* ---- output: code ---- */

/* A limit for the values of an untyped number. The reason for the limit is that the kernel converts
 * the number to `type` at this source location. */
typedef struct kj_number_limit {
  int64_t value;  /* the value; for KJIT_U64, the bits of a uint64_t */
  kjit_type type; /* KJIT_ANY means that there is no limit */
  /* file is an index into kjit_module.sources; line 0 means that the location is not known */
  uint32_t file, line, column;
} kj_number_limit;

/* One kernel parameter. Parameters are laid out like a C struct with natural alignment, both in
 * cuLaunchKernel's parameter buffer and for the CPU. */
typedef struct kj_parameter {
  enum {
    KJ_PARAMETER_POINTER,
    KJ_PARAMETER_EXTENT,
    KJ_PARAMETER_STRIDE,
    KJ_PARAMETER_SCALAR,
    KJ_PARAMETER_TENSOR_MAP,
    KJ_PARAMETER_SHARED_OFFSET,
    KJ_PARAMETER_SHARED_EXTENT,
    KJ_PARAMETER_FAILURE,
    KJ_PARAMETER_PRINT,
    KJ_PARAMETER_INTERRUPT_WORD,
    KJ_PARAMETER_INTERRUPT_NUMBER /* used only inside the compiler */
  } kind;
  uint16_t argument; /* index in the signature; for SHARED, index in kj_code.shared_arrays */
  /* EXTENT, STRIDE: the dimension (strides are in elements). TENSOR_MAP: index in
   * kj_code.tensor_maps */
  uint8_t dimension;
  /* 8 for POINTER; 4 (i32) or 8 (i64) for EXTENT and STRIDE; the scalar's size */
  uint8_t size_bytes;
  uint32_t offset; /* offset in the parameter block */
  bool may_write;  /* POINTER: the code can write to the array */
  /* SCALAR, if it is a component of an aggregate: 1 + the component's offset in bytes; 0 means the
   * whole value */
  uint32_t part;
  kj_number_limit least, most; /* SCALAR, if it is an untyped integer */
} kj_parameter;

enum { KJ_SHARED_NEEDS = 5 };

/* A shared array whose extents the runtime evaluates at launch. Dynamic shared memory consists of
 * three parts, in this order: fixed_shared_bytes bytes, these arrays in order, and the array whose
 * size the launch specifies. Each array is aligned. */
enum { KJ_MOST_SHARED_ARRAYS = 16 };
typedef struct kj_shared_array {
  uint32_t declaration; /* index of its declaration within the kernel */
  uint32_t element_bytes, alignment;
} kj_shared_array;

/* The grid of a CPU launch. A call of the kernel runs the blocks [first, last) of the grid. Blocks
 * are numbered with x fastest. scratch points to scratch_bytes bytes, which are aligned to 64
 * bytes. Dynamic shared memory follows these bytes. Several threads call the kernel at the same
 * time, each with its own scratch. */
typedef struct kj_cpu_grid kj_cpu_grid;

/* If the blocks or warps in a kernel wait for each other, each runs as a fiber. A fiber is a call
 * of the kernel, for one block or one warp, on a stack of its own. The fibers take turns. */
typedef enum kj_cpu_fibers { KJ_FIBERS_NONE, KJ_FIBERS_BLOCKS, KJ_FIBERS_WARPS } kj_cpu_fibers;
/* The event for which a fiber waits, or which it signals. The comments say which of id, count,
 * address and value the event uses. The result is 0 unless the comment specifies another result. */
typedef enum kj_cpu_wait {
  /* waits for all fibers of the block that have not ended; returns the sum of their values */
  KJ_WAIT_BLOCK,
  /* waits until `count` threads in the block have reached named barrier `id` */
  KJ_WAIT_NAMED,
  KJ_WAIT_NAMED_ARRIVE,   /* arrives at named barrier `id` and does not wait */
  KJ_WAIT_CLUSTER_ARRIVE, /* arrives at the cluster's barrier and does not wait */
  KJ_WAIT_CLUSTER,        /* waits until all fibers of the cluster have arrived */
  KJ_WAIT_GRID,           /* waits for all fibers of the grid */
  /* waits until the top bit in the word at `address` differs from `value` */
  KJ_WAIT_PHASE,
  /* like KJ_WAIT_PHASE, but if no other fiber can run, returns 0 without waiting; otherwise returns
   * 1 */
  KJ_WAIT_TRY_PHASE,
  KJ_WAIT_COUNT
} kj_cpu_wait;
struct kj_cpu_grid {
  uint32_t grid[3], block[3];
  uint64_t dynamic_shared_bytes;
  uint32_t cluster[3]; /* number of blocks in a cluster in x, y and z; 1 if there are no clusters */
  /* only for kernels with fibers */
  uint32_t warp; /* WARPS: the number of the fiber's warp within its block */
  /* distance in bytes between the scratch memory of adjacent blocks in a cluster */
  uint64_t scratch_stride;
  uint64_t (*wait)(const kj_cpu_grid *part, uint32_t what, uint32_t id, uint32_t count,
                   const void *address, uint64_t value);
  /* Interruptible code calls this if the launch was interrupted. The failure record then contains
   * the location. Does not return. */
  void (*leave)(const kj_cpu_grid *grid);
};

/* ---- interrupts ---- */

/* Each launch of interruptible code has a number, which is larger than the numbers of earlier
 * launches. The launch also has the address of a kj_interrupt_word, and is interrupted if up_to >=
 * base + number. Outside of graphs, base is 0. A launch in a graph has the number 0. Instead, each
 * launch in the whole graph writes its own number to base, in stream order. */
typedef struct kj_interrupt_word {
  _Alignas(16) uint64_t up_to;
  uint64_t base;
} kj_interrupt_word;

/* The argument of a CPU func that polls, after the failure record. The word's base is always 0. */
typedef struct kj_interruptible_call {
  kj_cpu_grid grid; /* only the field `leave` is used */
  const kj_interrupt_word *word;
  uint64_t number;
} kj_interruptible_call;
typedef void (*kj_cpu_kernel)(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                              uint64_t last, void *scratch);

/* ---- failing threads ---- */

typedef enum kj_failure_kind {
  KJ_FAILURE_RAISE,
  KJ_FAILURE_ASSERT,
  KJ_FAILURE_BOUNDS,
  KJ_FAILURE_DIVISION,
  KJ_FAILURE_BARRIER,
  KJ_FAILURE_UNINITIALIZED,
  KJ_FAILURE_RACE,
  KJ_FAILURE_VIEW_SIZE,
  KJ_FAILURE_VIEW_START,
  KJ_FAILURE_STEP,
  KJ_FAILURE_INTERRUPTED,
  KJ_FAILURE_RECURSION,
  KJ_FAILURE_WAIT,
  KJ_FAILURE_KIND_COUNT
} kj_failure_kind;
/* The text in a BOUNDS site if negative indices count from the end. The extent has then already
 * been added to the index that is reported. */
#define KJ_WRAPPED_INDEX "w"
/* The text in a STEP site if the step belongs to a slice and not to a `range`. */
#define KJ_SLICE_STEP "s"

/* The failure record. The first thread that fails writes it: the thread changes state from FREE to
 * TAKEN, writes the other fields, and then changes state to WRITTEN. */
enum { KJ_FAILURE_FREE, KJ_FAILURE_TAKEN, KJ_FAILURE_WRITTEN };
enum { KJ_NO_THREAD = -1 };
typedef struct kj_failure_record {
  uint32_t state;
  uint32_t site;                /* index in kj_code.failures */
  uint32_t block[3], thread[3]; /* thread is KJ_NO_THREAD if the whole block has failed */
  /* integers are sign- or zero-extended; floats are stored as the bits of a double */
  uint64_t values[2];
} kj_failure_record;

/* A position in the code at which threads can fail. */
typedef struct kj_failure_site {
  kj_failure_kind kind;
  kj_location location;
  /* how to interpret each value in the record: i signed, u unsigned, f float; 0 means that there is
   * no value */
  char formats[2];
  /* position of the message in kj_code.failure_texts, without a terminating 0 byte; it can be
   * empty */
  uint32_t text_offset, text_bytes;
} kj_failure_site;

/* A tensor map, which describes how tensor copies access an array argument. A tensor copy copies a
 * box of elements. Elements of the box that are outside of the array become zeros. The driver's
 * descriptor of the map is a kernel parameter of 128 bytes that is aligned to 64 bytes. */
enum { KJ_MOST_MAPS = 16, KJ_MAP_RANK = 5, KJ_MAP_BYTES = 128, KJ_MAP_ALIGNMENT = 64 };
/* Coordinates of elements are i32, even those in a box that starts at the largest extent. */
enum { KJ_MAP_MOST_BOX = 256, KJ_MAP_MOST_EXTENT = INT32_MAX - (KJ_MAP_MOST_BOX - 1) };
typedef struct kj_tensor_map {
  uint16_t argument;
  uint8_t rank, swizzle_bytes;
  uint32_t box[KJ_MAP_RANK]; /* the box extents, in the order of the array's dimensions */
} kj_tensor_map;

/* The GPU math library on which the code depends. */
typedef enum kj_math_library {
  KJ_MATH_NONE,
  KJ_MATH_LIBDEVICE, /* libdevice, from a CUDA toolkit */
  KJ_MATH_LIBCLC     /* libclc, from the compiler library or from kjit_config.libdevice_path */
} kj_math_library;

/* The result of a compilation. The disk cache stores the bytes in this struct: a new string or
 * other pointer needs a line in runtime/code/disk_entry.c, and every field needs a line in
 * runtime/code/code_fields.def. */
typedef struct kj_code {
  void *data; /* allocated with malloc: an object, or PTX or other text with a terminating 0 byte */
  size_t size_bytes;
  /* Digest of data as the compiler has made it. It is kept because machine code can replace the PTX
   * in data. libkjit sets it for the code of specializations. 0 means that it is not known. */
  uint64_t made[2];
  /* Digest of the sources, if the disk cache is allowed to store the code. 0 means that it is not
   * known. */
  uint64_t made_from[2];
  char *entry; /* allocated with malloc: the kernel name in the code */
  /* allocated with malloc: a list of the facts on which the code relies */
  char *facts;
  kj_parameter *parameters; /* malloc'd */
  uint32_t parameter_count, parameter_bytes;
  uint32_t static_shared_bytes; /* GPU */
  /* GPU: the kernel has local arrays, calls, checks or prints. The use of local memory by such a
   * kernel does not mean that registers are spilled. */
  bool uses_local;
  /* The positions at which threads can fail, and their messages one after the other with a 0 byte
   * at the end; both are allocated with malloc. can_fail means that the code takes the address of a
   * failure record. If can_fail is false, no thread can fail, and failure_offset is unused. */
  kj_failure_site *failures;
  uint32_t failure_count;
  bool can_fail;
  char *failure_texts;
  /* The 8 bytes at this offset in the parameter block hold the address of a kj_failure_record. No
   * kj_parameter describes these bytes. */
  uint32_t failure_offset;
  /* The code polls for interrupts. At interrupt_offset, the parameter block holds the address of a
   * kj_interrupt_word and then the number of the launch, 8 bytes each. No kj_parameter describes
   * these bytes. */
  bool is_interruptible;
  uint32_t interrupt_offset;
  bool has_debug; /* the code has at least source line information */
  bool is_guest;  /* the module has untrusted declarations */
  /* the code was made with few optimizations (kj_compile_request.plain), so no cache stores it */
  bool is_plain;
  /* allocated with malloc: the formats of the lines that the kernel prints
   * (native/support_routines.h); NULL means that the kernel prints nothing */
  char *prints;
  /* CPU: the 8 bytes at this offset in the parameter block hold the address of a kn_print_sink. No
   * kj_parameter describes these bytes. */
  uint32_t print_offset;
  /* the kernel has shared arrays whose size the launch specifies; all these arrays start at the
   * same address */
  bool uses_dynamic_shared;
  /* the size of the smallest element type and the largest alignment of these arrays */
  uint32_t dynamic_shared_element_bytes, dynamic_shared_alignment;
  /* The minimum dynamic shared memory that every launch uses, in elements of
   * dynamic_shared_element_bytes. It is the maximum of five numbers: entry [0], [1] + blockDim.x -
   * 1, [2] + blockDim.y - 1, [3] + blockDim.z - 1, and [4] + (number of threads in a block) - 1. A
   * number whose entry is 0 is ignored. */
  uint32_t own_shared_need[KJ_SHARED_NEEDS];
  /* GPU: size of the static arrays that do not fit into static shared memory */
  uint32_t fixed_shared_bytes;
  uint32_t shared_array_count;
  kj_shared_array shared_arrays[KJ_MOST_SHARED_ARRAYS];
  kj_tensor_map tensor_maps[KJ_MOST_MAPS]; /* GPU */
  uint32_t tensor_map_count;
  kj_math_library math_library; /* GPU */
  /* CPU: a digest of the C library's vector functions, or 0 if the code does not depend on them */
  uint64_t vector_functions;
  uint64_t scratch_bytes; /* CPU */
  /* CPU: the width of the widest vectors in the optimized LLVM IR; 0 means that the code has no
   * vectors */
  uint32_t vector_bits;
  uint32_t cpu_fibers; /* CPU: kj_cpu_fibers */
  /* CPU: the code reports its accesses to a kn_watch (native/watch.h), which is in memory after the
   * scratch memory and the dynamic shared memory. It must be zeroed for each worker thread. */
  bool is_watched;
  /* CPU: the kernel consists of grid_ranges and reads no position. The runtime chooses the number
   * of parts into which the ranges are divided, and launches a block of one thread for each
   * part. */
  bool is_range_only;
  /* The number of elements that a thread of the first vectorized grid_range processes at once; 0
   * means that the kernel has no such loop. The number is a hint for the grid size. */
  uint32_t elements_a_thread;
  uint32_t max_threads; /* @launch_bounds; 0 means none */
  kjit_type result;     /* result type of a func */
  /* allocated with malloc: the result type as text if it is a composed type, whose number differs
   * between processes. Only code in the disk cache and code that comes from it has this text. */
  char *result_text;
  /* CPU: the stack size that a thread needs, not counting called functions that are not part of the
   * code. GPU: the stack size of a thread if there is recursion; 0 means that the driver computes
   * it. */
  uint32_t stack_bytes;
  /* the kernel uses grid_sync, so all blocks in the grid must be resident at the same time */
  bool is_cooperative;
  uint32_t cluster[3]; /* @cluster; 0 means none */
  uint64_t infer_time_ns, lower_time_ns, optimize_time_ns, emit_time_ns;
} kj_code;
static inline void kj_free_code(kj_code *code)
{
  free(code->data);
  free(code->entry);
  free(code->facts);
  free(code->failures);
  free(code->failure_texts);
  free(code->prints);
  free(code->result_text);
  free(code->parameters);
  *code = (kj_code){ 0 };
}

/* Stack size of a GPU thread in recursive code. The part above KJ_RECURSION_BYTES is reserved for
 * functions that the recursive functions call. */
enum { KJ_STACK_BYTES = 8 * 1024, KJ_RECURSION_BYTES = 7 * 1024 };
/* Maximum stack of a CPU thread; code that needs more is rejected. */
enum { KJ_MOST_STACK_BYTES = 16 << 20 };

/* ---- the interface ---- */

/* one for each context; any number of threads can use it at the same time */
typedef struct kj_compiler kj_compiler;
typedef struct kj_loaded kj_loaded; /* native code that has been loaded into this process */

/* A function of the application that an object can call, in addition to the functions in
 * native/functions.def. */
typedef struct kj_outside_function {
  const char *name;
  void *address;
} kj_outside_function;
typedef struct kj_outside {
  const kj_outside_function *items;
  size_t count;
} kj_outside;
/* Returns the address of the function with this name, or NULL if there is none. outside can be
 * NULL. */
static inline void *kj_find_outside(const kj_outside *outside, const char *name)
{
  for (size_t i = 0; outside && i < outside->count; i++)
    if (__builtin_strcmp(outside->items[i].name, name) == 0) return outside->items[i].address;
  return NULL;
}

/* As the path of the GPU math library, this string selects the libclc in the compiler library. */
#define KJ_OWN_LIBCLC "libclc"
static inline bool kj_is_own_libclc(const char *libdevice_path)
{
  return __builtin_strcmp(libdevice_path, KJ_OWN_LIBCLC) == 0;
}

typedef struct kj_compiler_interface {
  uint32_t size_bytes; /* size of this struct */
  uint32_t version;    /* KJ_COMPILER_VERSION */
  const char *build;   /* kj_build of the compiler; it is at this offset in all versions since 5 */
  /* libdevice_path is a file, KJ_OWN_LIBCLC or NULL */
  kjit_status (*create)(const char *libdevice_path, kj_diagnostics *diagnostics,
                        kj_compiler **compiler);
  void (*destroy)(kj_compiler *compiler);
  /* Writes warnings and remarks to diagnostics, even if it succeeds. */
  kjit_status (*compile)(kj_compiler *compiler, const kj_compile_request *request,
                         kj_diagnostics *diagnostics, kj_code *code);
  /* Loads an OBJECT into this process with ORC. */
  kjit_status (*load)(kj_compiler *compiler, const kj_code *code, const kj_outside *outside,
                      kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
  void (*unload)(kj_compiler *compiler, kj_loaded *loaded);
} kj_compiler_interface;
enum { KJ_COMPILER_VERSION = 6 };

/* Version and build of the library that contains this variable. libkjit does not work together with
 * a compiler of another build. They must agree on structs, on the numbers of types and built-ins,
 * and on the functions that generated code calls. */
extern const char kj_build[];
/* The name of the file that contains libkjit-compiler of this version. */
extern const char kj_compiler_file[];

KJIT_API const kj_compiler_interface *kjit_get_compiler_interface(void);

#endif
