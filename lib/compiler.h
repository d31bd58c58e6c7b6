/* The boundary between libkjit and libkjit-compiler: what the dispatcher knows about a call goes in, code and how to call it come out. No LLVM types, no driver types.
 *
 * libkjit finds the compiler by dlopen and its one exported function, kjit_get_compiler_interface. */
#ifndef KJ_COMPILER_H
#define KJ_COMPILER_H

#include <kjit/compile.h>
#include <stdbool.h>

#include "ir/module.h"

/* ---- in: a specialization ---- */

/* What the dispatcher has checked about an array argument for this very call. */
enum {
  KJ_FACT_ALIGNED16 = 1,     /* the address of element 0 is a multiple of 16 */
  KJ_FACT_ROWS_ALIGNED16 = 2 /* rank > 1, layout C: the bytes of the innermost extent are a multiple of 16: with ALIGNED16 every row starts aligned */
};

/* How the memory of two array arguments is related. */
typedef enum kj_relation {
  KJ_RELATION_ANY,      /* may overlap in any way */
  KJ_RELATION_DISJOINT, /* no byte in common */
  KJ_RELATION_SAME      /* equal address, extents and strides */
} kj_relation;

typedef enum kj_argument_kind {
  KJ_ARGUMENT_VALUE,   /* scalar of .type, passed at run time */
  KJ_ARGUMENT_NUMBER,  /* plain number, passed at run time: .type KJ_WEAK_INT (as i64) or KJ_WEAK_FLOAT (as f64) */
  KJ_ARGUMENT_ARRAY,   /* .type a global array; .facts */
  KJ_ARGUMENT_CONST,   /* compile-time value of a const parameter: .type weak or scalar; .integer or .number */
  KJ_ARGUMENT_FUNCTION /* .function */
} kj_argument_kind;

typedef struct kj_argument {
  kj_argument_kind kind;
  kjit_type type;
  uint32_t facts;
  __int128 integer; /* CONST of integer, bool and weak int type */
  double number;    /* CONST of float and weak float type */
  const kj_decl *function;
} kj_argument;

typedef struct kj_signature {
  const kj_argument *arguments; /* one for each parameter of the kernel; defaults filled in */
  uint32_t count;
  bool offsets32;           /* every element offset of every array argument, and every extent, is in the range of i32 */
  bool grid32;              /* gridDim * blockDim of every dimension, and the number of threads of the grid, are below 2^31 */
  const uint8_t *relations; /* kj_relation [count * count], symmetric; NULL: all ANY */
  uint32_t block[3];        /* block shape where it is known; 0: not known. Always known for the CPU */
} kj_signature;

typedef enum kj_target_kind { KJ_TARGET_CPU, KJ_TARGET_NVPTX } kj_target_kind;

typedef struct kj_target {
  kj_target_kind kind;
  uint32_t arch;        /* 90: sm_90 */
  char suffix;          /* 'a', 'f' or 0 */
  uint32_t ptx_version; /* 78: PTX 7.8; 0: the least that arch and the code need. A driver's limit otherwise */
} kj_target;

typedef struct kj_compile_request {
  const kjit_module *module;
  const kj_function *kernel;
  const kj_signature *signature;
  kj_target target;
  kjit_stage stage; /* where to stop: PTX or OBJECT to run, any other to look at */
  uint32_t checks;  /* KJIT_CHECK_* */
} kj_compile_request;

/* ---- out: code ---- */

/* One kernel parameter. They are laid out as a C struct with natural alignment, the same for cuLaunchKernel's parameter buffer and for the CPU. */
typedef struct kj_parameter {
  enum { KJ_PARAMETER_POINTER, KJ_PARAMETER_EXTENT, KJ_PARAMETER_STRIDE, KJ_PARAMETER_SCALAR, KJ_PARAMETER_FAILURE /* the compiler's own */ } kind;
  uint16_t argument;  /* index in the signature */
  uint8_t dimension;  /* EXTENT, STRIDE: strides in elements */
  uint8_t size_bytes; /* 8 for POINTER; 4 (i32) or 8 (i64) for EXTENT and STRIDE; the scalar's size */
  uint32_t offset;    /* in the parameter block */
} kj_parameter;

/* How the kernel is run on the CPU: blocks [first, last) of the grid, numbered x fastest. scratch: scratch_bytes (64-byte aligned) and then dynamic shared memory.
 * Several threads call it at once with different scratch. */
typedef struct kj_cpu_grid {
  uint32_t grid[3], block[3];
  uint64_t dynamic_shared_bytes;
} kj_cpu_grid;
typedef void (*kj_cpu_kernel)(const void *parameters, const kj_cpu_grid *grid, uint64_t first, uint64_t last, void *scratch);

/* ---- failing threads ---- */

typedef enum kj_failure_kind { KJ_FAILURE_RAISE, KJ_FAILURE_ASSERT, KJ_FAILURE_BOUNDS, KJ_FAILURE_DIVISION, KJ_FAILURE_KIND_COUNT } kj_failure_kind;

/* What the first thread that fails leaves behind: it turns state from FREE to TAKEN, fills in the rest, and turns state to WRITTEN. */
enum { KJ_FAILURE_FREE, KJ_FAILURE_TAKEN, KJ_FAILURE_WRITTEN };
typedef struct kj_failure_record {
  uint32_t state;
  uint32_t site; /* line of kj_code.failures */
  uint32_t block[3], thread[3];
  uint64_t values[2]; /* integers sign- or zero-extended; floats as the bits of a double */
} kj_failure_record;

/* The disk cache stores the struct as it is; a new text or other memory behind a pointer needs a line in runtime/dispatch/disk_entry.c. */
typedef struct kj_code {
  void *data; /* malloc'd: PTX or other text with a 0 byte after it, or an object */
  size_t size_bytes;
  char *entry;              /* malloc'd: symbol of the kernel */
  char *facts;              /* malloc'd: the facts that the code really uses, as text */
  kj_parameter *parameters; /* malloc'd */
  uint32_t parameter_count, parameter_bytes;
  uint32_t static_shared_bytes; /* GPU */
  /* Places where the kernel's threads may fail, one a line: "kind file line column formats message"; kind: kj_failure_kind; formats: one letter for each value (i signed,
   * u unsigned, f float), - for none; message without newlines: \1 stands for one. malloc'd; NULL: none of its threads can fail, and the next is not used. */
  char *failures;
  uint32_t failure_offset; /* in the parameter block: the address of a kj_failure_record, 8 bytes; in no kj_parameter */
  bool uses_dynamic_shared;
  uint32_t dynamic_shared_element_bytes;
  uint64_t scratch_bytes; /* CPU */
  bool
    is_range_only; /* CPU: the kernel is grid_ranges only and looks at no position: the runtime chooses a grid of one-thread blocks, as many as it wants pieces */
  uint32_t elements_a_thread; /* of the first vectorized grid_range; 0: none. Advice for the grid's size */
  uint32_t max_threads;       /* @launch_bounds; 0: none */
  uint64_t infer_time_ns, lower_time_ns, optimize_time_ns, emit_time_ns;
} kj_code;
void kj_free_code(kj_code *code);

/* ---- the interface ---- */

typedef struct kj_compiler kj_compiler; /* one per context; any number of threads at once */
typedef struct kj_loaded kj_loaded;     /* native code in this process */

typedef struct kj_compiler_interface {
  uint32_t size_bytes; /* of this struct: a libkjit and a compiler of different versions refuse each other */
  uint32_t version;    /* KJ_COMPILER_VERSION */
  kjit_status (*create)(const char *libdevice_path, kj_diagnostics *diagnostics, kj_compiler **compiler); /* path may be NULL */
  void (*destroy)(kj_compiler *compiler);
  /* Warnings and remarks go to diagnostics on success too. */
  kjit_status (*compile)(kj_compiler *compiler, const kj_compile_request *request, kj_diagnostics *diagnostics, kj_code *code);
  /* An OBJECT into this process, through ORC. */
  kjit_status (*load)(kj_compiler *compiler, const kj_code *code, kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel);
  void (*unload)(kj_compiler *compiler, kj_loaded *loaded);
} kj_compiler_interface;
enum { KJ_COMPILER_VERSION = 2 };

KJIT_API const kj_compiler_interface *kjit_get_compiler_interface(void);

#endif
