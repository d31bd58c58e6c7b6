/* The boundary between libkjit and libkjit-compiler: what the dispatcher knows about a call goes
 * in, code and how to call it come out. No LLVM types, no driver types.
 *
 * libkjit finds the compiler by dlopen and its one exported function, kjit_get_compiler_interface.
 */
#ifndef KJ_COMPILER_H
#define KJ_COMPILER_H

#include <kjit/compile.h>
#include <stdbool.h>
#include <stdlib.h>

#include "ir/module.h"

enum { KJ_WARP_THREADS = 32 };

/* ---- in: a specialization ---- */

/* Bytes of the widest access of a thread, which facts about alignment are of. */
enum { KJ_FACT_WIDTH = 16 };

/* What the dispatcher has checked for this very call: bits of kj_argument.facts, positions of
 * facts. */
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
  KJ_ARGUMENT_VALUE, /* scalar of .type, passed at run time */
  /* plain number, passed at run time: .type KJ_WEAK_INT (as i64) or KJ_WEAK_FLOAT (as f64). An
   * integer of more than 32 bits has the .type that it takes if it meets none: KJIT_I64, or
   * KJIT_U64 if it needs 64 bits without a sign */
  KJ_ARGUMENT_NUMBER,
  KJ_ARGUMENT_ARRAY, /* .type a global array; .facts */
  /* compile-time value of a const parameter: .type weak or scalar; .integer as in ki_value */
  KJ_ARGUMENT_CONST,
  KJ_ARGUMENT_FUNCTION /* .function */
} kj_argument_kind;

typedef struct kj_argument {
  kj_argument_kind kind;
  kjit_type type;
  uint32_t facts;
  __int128 integer; /* CONST: the number, or a float's bits */
  const ki_decl *function;
} kj_argument;

typedef struct kj_signature {
  const kj_argument *arguments; /* one for each parameter of the kernel; defaults filled in */
  uint32_t count;
  /* facts of the whole call */
#define KJ_CALL_FACT(NAME, field, text, kind, holds) bool field;
#include "facts.def"
  const uint8_t *relations; /* kj_relation [count * count], symmetric; NULL: all ANY */
  /* block shape where it is known; 0: not known. Always known for the CPU */
  uint32_t block[3];
} kj_signature;

typedef enum kj_target_kind { KJ_TARGET_CPU, KJ_TARGET_NVPTX } kj_target_kind;

/* The processor that code for the CPU is compiled for: this machine's, or any that has a named
 * level. */
typedef enum kj_cpu_level {
  KJ_CPU_OWN,
#define KJ_CPU_LEVEL(NAME, text, cpu, has_avx, has_avx2, has_avx512, vector_bytes) KJ_CPU_##NAME,
#include "cpu_levels.def"
  KJ_CPU_LEVEL_COUNT
} kj_cpu_level;

typedef struct kj_target {
  kj_target_kind kind;
  kj_cpu_level level; /* CPU */
  uint32_t arch;      /* 90: sm_90 */
  char suffix;        /* 'a', 'f' or 0 */
  /* 78: PTX 7.8; 0: the least that arch and the code need. A driver's limit otherwise */
  uint32_t ptx_version;
  uint32_t vector_bytes; /* of the widest access or register; filled in by the compiler */
} kj_target;

/* The checks with KJIT_CHECK_DIVISION as the two that it stands for, so that the same checks are the
 * same bits in keys and in the compiler. */
enum { KJ_CHECK_DIVISIONS = KJIT_CHECK_INTEGER_DIVISION | KJIT_CHECK_FLOAT_DIVISION };
static inline uint32_t kj_spell_out_checks(uint32_t checks)
{
  if (checks & KJIT_CHECK_DIVISION) checks |= KJ_CHECK_DIVISIONS;
  return checks & ~(uint32_t)KJIT_CHECK_DIVISION;
}

typedef struct kj_compile_request kj_compile_request;
struct kj_compile_request {
  const kjit_module *module;
  const ki_function *kernel;
  const kj_signature *signature;
  kj_target target;
  kjit_stage stage; /* where to stop: PTX or OBJECT to run, any other to look at */
  const char
    *after_pass;      /* TYPED: the trees as this pass leaves them; NULL: as the last one does */
  uint32_t checks;    /* KJIT_CHECK_*, DIVISION spelled out by the compiler */
  const char *symbol; /* NULL: kernel is one. Else it is a func, made a C function of that name */
  /* of a func: its first parameter is the address of a kj_failure_record, if it may fail; else
   * failing traps */
  bool has_record;
  /* it looks now and then whether its launch was interrupted; of a func: only with has_record, and
   * then the first parameter is the address of a kj_interruptible_call where anything looks */
  bool is_interruptible;
  bool is_ahead;    /* for elsewhere: functions of the host may be missing */
  kjit_debug debug; /* what debuggers and profilers are told */
  bool is_check;    /* TYPED: nobody wants the text, but what is wrong, and code.result */
  /* every field a number, or KJIT_NO_LIMIT; size_bytes 0: none. In libkjit that means the
   * context's, which kj_call_compiler fills in with what follows */
  kjit_compile_limits limits;
  /* it is interrupted when this is no longer interrupts_before; NULL: never */
  const _Atomic uint64_t *interrupts;
  uint64_t interrupts_before;
  /* told of each stage before what makes it begins; the first one, TYPED, is the caller's to tell;
   * NULL: nobody wants to know */
  void (*on_stage)(const kj_compile_request *request, kjit_stage stage);
};

/* ---- out: code ---- */

/* A bound of the values that a plain number may have, because the kernel converts the number to
 * type at this place of its source. */
typedef struct kj_number_limit {
  int64_t value;               /* of a number whose type is KJIT_U64: the bits of a uint64_t */
  kjit_type type;              /* KJIT_ANY: there is no bound */
  uint32_t file, line, column; /* file: index in kjit_module.sources; line 0: not known */
} kj_number_limit;

/* One kernel parameter. They are laid out as a C struct with natural alignment, the same for
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
    KJ_PARAMETER_INTERRUPT_NUMBER /* the compiler's own */
  } kind;
  uint16_t argument; /* index in the signature; SHARED: in kj_code.shared_arrays */
  /* EXTENT, STRIDE: strides in elements; TENSOR_MAP: position in kj_code.tensor_maps */
  uint8_t dimension;
  /* 8 for POINTER; 4 (i32) or 8 (i64) for EXTENT and STRIDE; the scalar's size */
  uint8_t size_bytes;
  uint32_t offset; /* in the parameter block */
  /* SCALAR of a value that is made of others: 1 + where in it this one lies, in bytes; 0: all of
   * the value */
  uint32_t part;
  kj_number_limit least, most; /* SCALAR of a plain number, an integer */
} kj_parameter;

enum { KJ_SHARED_NEEDS = 5 };

/* A shared array whose extents the dispatcher evaluates. Dynamic shared memory is:
 * fixed_shared_bytes, these arrays in their order, the array of the launch's own size; each
 * aligned. */
enum { KJ_MOST_SHARED_ARRAYS = 16 };
typedef struct kj_shared_array {
  uint32_t declaration; /* index of its declaration in the kernel */
  uint32_t element_bytes, alignment;
} kj_shared_array;

/* How the kernel is run on the CPU: blocks [first, last) of the grid, numbered x fastest. scratch:
 * scratch_bytes (64-byte aligned) and then dynamic shared memory. Several threads call it at once
 * with different scratch. */
typedef struct kj_cpu_grid kj_cpu_grid;

/* Kernels whose blocks or warps wait for one another run as parts that take turns: each is a call
 * of the kernel for its one block (and warp), on a stack of its own. */
typedef enum kj_cpu_parts { KJ_PARTS_NONE, KJ_PARTS_BLOCKS, KJ_PARTS_WARPS } kj_cpu_parts;
/* What a part waits for, or does for others that wait. id, count, address and value as said; the
 * result is 0 where nothing is said. */
typedef enum kj_cpu_wait {
  KJ_WAIT_BLOCK,          /* all parts of the block that have not ended; the sum of their values */
  KJ_WAIT_NAMED,          /* count threads of the block at barrier id */
  KJ_WAIT_NAMED_ARRIVE,   /* counts there, does not wait */
  KJ_WAIT_CLUSTER_ARRIVE, /* counts at the cluster's barrier, does not wait */
  KJ_WAIT_CLUSTER,        /* all parts of the cluster have arrived */
  KJ_WAIT_GRID,           /* all parts of the grid */
  KJ_WAIT_PHASE,          /* the top bit of the word at address differs from value */
  KJ_WAIT_TRY_PHASE,      /* the same, but the wait returns 0 if no other part can run; else 1 */
  KJ_WAIT_COUNT
} kj_cpu_wait;
struct kj_cpu_grid {
  uint32_t grid[3], block[3];
  uint64_t dynamic_shared_bytes;
  uint32_t cluster[3]; /* blocks of a cluster; 1 where there are none */
  /* of kernels with parts */
  uint32_t warp;           /* the part's; WARPS */
  uint64_t scratch_stride; /* from a block's scratch to that of the next one in its cluster */
  uint64_t (*wait)(const kj_cpu_grid *part, uint32_t what, uint32_t id, uint32_t count,
                   const void *address, uint64_t value);
  /* of interruptible code: the launch was interrupted, and the failure record says where; does not
   * return */
  void (*leave)(const kj_cpu_grid *grid);
};

/* ---- interrupts ---- */

/* Every launch of interruptible code has a number, later ones larger ones, and the address of one
 * of these. It is interrupted when up_to >= base + number. base is 0 but for launches of a graph,
 * which have the number 0: what launches the graph writes it, in the order of the stream. */
typedef struct kj_interrupt_word {
  _Alignas(16) uint64_t up_to;
  uint64_t base;
} kj_interrupt_word;

/* What a func that looks is handed on the CPU, where base is always 0. */
typedef struct kj_interruptible_call {
  kj_cpu_grid grid; /* leave */
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
/* What a site of BOUNDS says beside its kind where negative indices count from the end: the index
 * that is told has the extent added to it already. */
#define KJ_WRAPPED_INDEX "w"

/* What the first thread that fails leaves behind: it turns state from FREE to TAKEN, fills in the
 * rest, and turns state to WRITTEN. */
enum { KJ_FAILURE_FREE, KJ_FAILURE_TAKEN, KJ_FAILURE_WRITTEN };
enum { KJ_NO_THREAD = -1 };
typedef struct kj_failure_record {
  uint32_t state;
  uint32_t site;                /* line of kj_code.failures */
  uint32_t block[3], thread[3]; /* thread KJ_NO_THREAD: all of the block */
  uint64_t values[2]; /* integers sign- or zero-extended; floats as the bits of a double */
} kj_failure_record;

/* How tensor copies take an array argument: in boxes of elements, with zeros where a box leaves it.
 * The driver's descriptor, 128 bytes at a multiple of 64, is a parameter. */
enum { KJ_MOST_MAPS = 16, KJ_MAP_RANK = 5, KJ_MAP_BYTES = 128, KJ_MAP_ALIGNMENT = 64 };
/* Coordinates of elements are i32. A box that starts at the largest extent has coordinates, too. */
enum { KJ_MAP_MOST_BOX = 256, KJ_MAP_MOST_EXTENT = INT32_MAX - (KJ_MAP_MOST_BOX - 1) };
typedef struct kj_tensor_map {
  uint16_t argument;
  uint8_t rank, swizzle_bytes;
  uint32_t box[KJ_MAP_RANK]; /* in the order of the array's dimensions */
} kj_tensor_map;

/* The library of math functions for GPUs that code depends on. */
typedef enum kj_math_library {
  KJ_MATH_NONE,
  KJ_MATH_LIBDEVICE, /* of a CUDA toolkit */
  KJ_MATH_LIBCLC     /* of the compiler library, or of a path in kjit_config.libdevice_path */
} kj_math_library;

/* The disk cache stores the struct as it is; a new text or other memory behind a pointer needs a
 * line in runtime/code/disk_entry.c, and every field needs one in runtime/code/code_fields.def. */
typedef struct kj_code {
  void *data; /* malloc'd: PTX or other text with a 0 byte after it, or an object */
  size_t size_bytes;
  /* Digest of data as the compiler made it, since machine code may replace PTX. libkjit fills it in
   * for the code of specializations. 0: not known */
  uint64_t made[2];
  /* Digest of the sources that it was compiled from, where the disk cache may keep the code. 0: not
   * known */
  uint64_t made_from[2];
  char *entry;              /* malloc'd: symbol of the kernel */
  char *facts;              /* malloc'd: the facts that the code really uses, as text */
  kj_parameter *parameters; /* malloc'd */
  uint32_t parameter_count, parameter_bytes;
  uint32_t static_shared_bytes; /* GPU */
  /* GPU: local arrays, calls, checks or lines that are printed: what local memory it takes is no
   * sign of register spills */
  bool uses_local;
  /* Places where the kernel's threads may fail, one a line: "kind file line column formats
   * message"; kind: kj_failure_kind; formats: one letter for each value (i signed, u unsigned, f
   * float), - for none; message without newlines: \1 stands for one. malloc'd; NULL: none of its
   * threads can fail, and the next is not used. */
  char *failures;
  /* in the parameter block: the address of a kj_failure_record, 8 bytes; in no kj_parameter */
  uint32_t failure_offset;
  /* It looks whether its launch was interrupted. In the parameter block: the address of a
   * kj_interrupt_word and the launch's number, 8 bytes each; in no kj_parameter */
  bool is_interruptible;
  uint32_t interrupt_offset;
  bool has_debug; /* lines at least */
  bool is_guest;  /* of a module with a guest's declarations */
  /* lines that the kernel prints, see native/support_routines.h; malloc'd; NULL: none */
  char *prints;
  /* CPU: in the parameter block: the address of a kn_print_sink, 8 bytes; in no kj_parameter */
  uint32_t print_offset;
  bool uses_dynamic_shared; /* arrays of the launch's own size, all of them the same memory */
  /* of the smallest element, and the largest alignment */
  uint32_t dynamic_shared_element_bytes, dynamic_shared_alignment;
  /* Elements of that size that every launch uses, 0: not known. [0] so many; [1] to [3] so many,
   * less 1, behind blockDim.x to .z; [4] behind the number of threads of a block. */
  uint32_t own_shared_need[KJ_SHARED_NEEDS];
  /* GPU: of static arrays for which static shared memory has no room */
  uint32_t fixed_shared_bytes;
  uint32_t shared_array_count;
  kj_shared_array shared_arrays[KJ_MOST_SHARED_ARRAYS];
  kj_tensor_map tensor_maps[KJ_MOST_MAPS]; /* GPU */
  uint32_t tensor_map_count;
  kj_math_library math_library; /* GPU */
  uint64_t vector_functions;    /* CPU: the C library's, if the code depends on them; else 0 */
  uint64_t scratch_bytes;       /* CPU */
  uint32_t vector_bits;         /* CPU: of the widest vectors in the optimized LLVM IR; 0: none */
  uint32_t cpu_parts;           /* CPU: kj_cpu_parts */
  /* CPU: behind the scratch memory, dynamic shared memory included, comes a kn_watch, zeroed for
   * each worker (native/watch.h) */
  bool is_watched;
  bool
    /* CPU: the kernel is grid_ranges only and looks at no position: the runtime chooses a grid of
       one-thread blocks, as many as it wants pieces */
    is_range_only;
  /* of the first vectorized grid_range; 0: none. Advice for the grid's size */
  uint32_t elements_a_thread;
  uint32_t max_threads; /* @launch_bounds; 0: none */
  kjit_type result;     /* of a func */
  /* CPU: all that a thread needs, but for what functions outside of the code take. GPU: what one
   * needs where there is recursion; 0: the driver finds out by itself */
  uint32_t stack_bytes;
  bool is_cooperative; /* grid_sync: all blocks of the grid have to be resident at once */
  uint32_t cluster[3]; /* @cluster; 0: none */
  uint64_t infer_time_ns, lower_time_ns, optimize_time_ns, emit_time_ns;
} kj_code;
static inline void kj_free_code(kj_code *code)
{
  free(code->data);
  free(code->entry);
  free(code->facts);
  free(code->failures);
  free(code->prints);
  free(code->parameters);
  *code = (kj_code){ 0 };
}

/* Of a GPU thread, where functions call themselves; some of it is left for what they call. */
enum { KJ_STACK_BYTES = 8 * 1024, KJ_RECURSION_BYTES = 7 * 1024 };
/* Of a thread of the CPU; what needs more is refused. */
enum { KJ_MOST_STACK_BYTES = 16 << 20 };

/* ---- the interface ---- */

typedef struct kj_compiler kj_compiler; /* one per context; any number of threads at once */
typedef struct kj_loaded kj_loaded;     /* native code in this process */

/* Functions of the host that an object may call, beside those of native/functions.def. */
typedef struct kj_outside_function {
  const char *name;
  void *address;
} kj_outside_function;
typedef struct kj_outside {
  const kj_outside_function *items;
  size_t count;
} kj_outside;
/* NULL: none of that name. outside may be NULL. */
static inline void *kj_find_outside(const kj_outside *outside, const char *name)
{
  for (size_t i = 0; outside && i < outside->count; i++)
    if (__builtin_strcmp(outside->items[i].name, name) == 0) return outside->items[i].address;
  return NULL;
}

/* In place of the path of a file with math functions for GPUs: the compiler library's own. */
#define KJ_OWN_LIBCLC "libclc"
static inline bool kj_is_own_libclc(const char *libdevice_path)
{
  return __builtin_strcmp(libdevice_path, KJ_OWN_LIBCLC) == 0;
}

typedef struct kj_compiler_interface {
  uint32_t size_bytes; /* of this struct */
  uint32_t version;    /* KJ_COMPILER_VERSION */
  const char *build;   /* kj_build of the compiler; here in all versions from 5 on */
  /* libdevice_path: a file, KJ_OWN_LIBCLC, or NULL */
  kjit_status (*create)(const char *libdevice_path, kj_diagnostics *diagnostics,
                        kj_compiler **compiler);
  void (*destroy)(kj_compiler *compiler);
  /* Warnings and remarks go to diagnostics on success too. */
  kjit_status (*compile)(kj_compiler *compiler, const kj_compile_request *request,
                         kj_diagnostics *diagnostics, kj_code *code);
  /* An OBJECT into this process, through ORC. */
  kjit_status (*load)(kj_compiler *compiler, const kj_code *code, const kj_outside *outside,
                      kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
  void (*unload)(kj_compiler *compiler, kj_loaded *loaded);
} kj_compiler_interface;
enum { KJ_COMPILER_VERSION = 6 };

/* Version and build of the library that this is in. A libkjit and a compiler of different builds
 * refuse each other: they share structs, numbers of types and built-ins, and what code calls. */
extern const char kj_build[];
/* The file that libkjit-compiler of this version is in. */
extern const char kj_compiler_file[];

KJIT_API const kj_compiler_interface *kjit_get_compiler_interface(void);

#endif
