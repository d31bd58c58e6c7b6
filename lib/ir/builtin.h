/* The table of built-ins (builtins.def) and the table of math functions (math.def) in C. The
 * parser, type inference, lowering and the documentation share these tables. */
#ifndef KJ_IR_BUILTIN_H
#define KJ_IR_BUILTIN_H

#include <stdint.h>

/* Number of threads in a warp: the value of `warpsize`, on every target. */
enum { KJ_WARP_THREADS = 32 };

typedef enum ki_builtin_id {
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  KJ_BUILTIN_##id,
#include "ir/builtins.def"
#undef X
  KJ_BUILTIN_COUNT,
  /* this and the following built-ins are functions of floats */
  KJ_FIRST_FLOAT_BUILTIN = KJ_BUILTIN_SQRT
} ki_builtin_id;

/* flags */
enum {
  KJ_PURE = 1,      /* no side effects, and the result depends only on the arguments */
  KJ_BARRIER = 2,   /* synchronizes the threads in a block; splits thread loops on the CPU */
  KJ_WARP = 4,      /* exchanges data within a warp; the CPU runs it on KJ_WARP_THREADS lanes */
  KJ_PLACE = 8,     /* the first argument is an lvalue */
  KJ_TYPE_ARG = 16, /* the first argument is a type */
  /* used without a call, such as laneid and pi; positions with fields have KJ_XYZ instead */
  KJ_NAME = 32,
  KJ_XYZ = 64,          /* has .x .y .z */
  KJ_UNEVALUATED = 128, /* uses only the types of the arguments, for example dtype and sizeof */
  KJ_THREAD = 256,      /* the result can differ between the threads in a block (positions) */
  KJ_ORDER = 512,       /* atomic operation; a memory order can follow the arguments */
  /* the first argument is an element that the built-in loads itself: an lvalue in the typed IR, but
   * an ordinary value in the source */
  KJ_READS = 1024,
  /* waits for actions of threads in other warps, so the CPU runs each warp as a fiber */
  KJ_WAITS = 2048,
  /* the first argument is an lvalue in shared memory; in the typed IR its address is the first
   * operand */
  KJ_ADDRESS = 4096,
  KJ_ARRAY = 8192, /* the first argument is a whole local array */
  /* Untrusted code (a guest) may use it (verify_guest.c). If the checks of guest code are enabled,
   * no arguments of the built-in can make it access memory other than its operands, end the process
   * or break the device. */
  KJ_GUEST = 16384,
  KJ_OPERATOR = 32768 /* the first argument is a func whose `@identity` the built-in uses */
};

/* The set of threads that see an atomic operation or a fence in order. */
typedef enum ki_memory_scope { KJ_SCOPE_DEVICE, KJ_SCOPE_BLOCK, KJ_SCOPE_SYSTEM } ki_memory_scope;

/* ---- operations: they distinguish rows of builtins.def that share a lowering function ---- */

/* The operation of min and max, of reductions and of atomics. */
typedef enum ki_combine {
  KJ_COMBINE_ADD,
  KJ_COMBINE_SUB,
  KJ_COMBINE_MIN,
  KJ_COMBINE_MAX,
  KJ_COMBINE_AND,
  KJ_COMBINE_OR,
  KJ_COMBINE_XOR,
  KJ_COMBINE_INC,
  KJ_COMBINE_DEC,
  KJ_COMBINE_EXCHANGE
} ki_combine;

typedef enum ki_barrier_reduction {
  KJ_REDUCE_COUNT,
  KJ_REDUCE_AND,
  KJ_REDUCE_OR
} ki_barrier_reduction;

typedef enum ki_shuffle_mode {
  KJ_SHUFFLE_IDX,
  KJ_SHUFFLE_UP,
  KJ_SHUFFLE_DOWN,
  KJ_SHUFFLE_XOR
} ki_shuffle_mode;

/* Warp votes and matches. */
typedef enum ki_vote { KJ_VOTE_ALL, KJ_VOTE_ANY, KJ_VOTE_SAME, KJ_VOTE_BALLOT } ki_vote;

/* How long a wait for the phase of an mbarrier lasts: TEST returns at once, TRY waits for a limited
 * time, WAIT waits until the phase is complete. */
typedef enum ki_phase_wait { KJ_PHASE_TEST, KJ_PHASE_TRY, KJ_PHASE_WAIT } ki_phase_wait;

/* Cache hints of loads and stores, with PTX's names. NC is the read-only (non-coherent) cache. */
typedef enum ki_cache_hint {
  KJ_CACHE_CA,
  KJ_CACHE_CG,
  KJ_CACHE_CS,
  KJ_CACHE_LU,
  KJ_CACHE_CV,
  KJ_CACHE_NC,
  KJ_CACHE_WB,
  KJ_CACHE_WT
} ki_cache_hint;

/* The cache that a prefetch fills. */
typedef enum ki_cache_level { KJ_PREFETCH_L1, KJ_PREFETCH_L2 } ki_cache_level;

/* ldmatrix and stmatrix: a mask for the number of matrices, and the flag for transposed
 * matrices. */
enum { KJ_MATRIX_COUNT = 7, KJ_TRANSPOSED = 8 };

/* Element types of the matrix instructions. They also describe operands of wgmma and formats of
 * FP8. */
typedef enum ki_mma_kind {
  KJ_MMA_F16,
  KJ_MMA_BF16,
  KJ_MMA_TF32,
  KJ_MMA_F32,
  KJ_MMA_F64,
  KJ_MMA_S8,
  KJ_MMA_U8,
  KJ_MMA_S4,
  KJ_MMA_U4,
  KJ_MMA_B1,
  KJ_MMA_E4M3,
  KJ_MMA_E5M2,
  KJ_MMA_S32,
  KJ_MMA_KIND_COUNT
} ki_mma_kind;

/* ---- the tables ---- */

typedef struct ki_builtin {
  ki_builtin_id id;
  const char *name;
  uint8_t least, most;
  uint8_t operation; /* an enumeration value whose meaning depends on the lowering function */
  uint8_t scope;     /* ki_memory_scope of atomics and fences */
  /* Minimum compute capability and PTX version; 0 means any. suffix 'a': only this architecture has
   * the built-in. */
  uint16_t arch, ptx;
  char suffix;
  uint16_t flags;
  /* names in other languages, separated by blanks; error messages use them for hints */
  const char *aliases;
} ki_builtin;

extern const ki_builtin ki_builtin_table[KJ_BUILTIN_COUNT];
/* Returns the built-in with this name, or NULL. */
const ki_builtin *ki_find_builtin(const char *name);
/* Returns the built-in that has this name in another language, or NULL: `sqrt` for "sqrtf". */
const ki_builtin *ki_find_builtin_alias(const char *name);

/* properties of the implementations of math functions */
enum {
  KJ_MATH_STRAIGHT = 1,     /* branch-free in every library */
  KJ_MATH_STRAIGHT_F32 = 2, /* branch-free for f32 */
  KJ_MATH_LONG = 4,         /* has branches and at least 100 instructions */
  KJ_MATH_LOOPS = 8,        /* has loops */
  KJ_MATH_APPROXIMATE = 16, /* uses libdevice's f32 approximation even without @fastmath */
  KJ_MATH_VECTOR = 32,      /* libmvec has vector variants of the host function */
  KJ_MATH_LONG_F32 = 64     /* KJ_MATH_LONG holds for the f32 function as well */
};

/* The names of a math function in the libraries, from math.def. NULL means that the library does
 * not have the function. */
typedef struct ki_math {
  const char *host, *libdevice, *fast, *libclc;
  uint8_t form;
} ki_math;
/* All fields are 0 for built-ins that are not in math.def. */
extern const ki_math ki_math_table[KJ_BUILTIN_COUNT];

#endif
