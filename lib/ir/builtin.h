/* The table of built-ins, builtins.def, as the C enum and rows that the parser, typing, lowering
 * and the documentation share, and the table of math functions, math.def. */
#ifndef KJ_IR_BUILTIN_H
#define KJ_IR_BUILTIN_H

#include <stdint.h>

typedef enum ki_builtin_id {
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  KJ_BUILTIN_##id,
#include "ir/builtins.def"
#undef X
  KJ_BUILTIN_COUNT,
  KJ_FIRST_FLOAT_BUILTIN = KJ_BUILTIN_SQRT /* the rest of the table: functions on floats */
} ki_builtin_id;

/* flags */
enum {
  KJ_PURE = 1,      /* no effect, result depends on the arguments only */
  KJ_BARRIER = 2,   /* all threads of the block meet: splits CPU loops */
  KJ_WARP = 4,      /* threads of a warp exchange: runs on 32-lane slices on the CPU */
  KJ_PLACE = 8,     /* the first argument is a place */
  KJ_TYPE_ARG = 16, /* the first argument is a type */
  /* used as a name, not called: laneid, pi; grid-like positions with fields have KJ_XYZ */
  KJ_NAME = 32,
  KJ_XYZ = 64,          /* has .x .y .z */
  KJ_UNEVALUATED = 128, /* the arguments are looked at for their type only: dtype, sizeof */
  KJ_THREAD = 256,      /* the result may differ between the threads of a block (positions) */
  KJ_ORDER = 512,       /* an atomic: a memory order may follow the arguments */
  /* the first argument is an element that is read in a way of its own: a place in the typed IR, a
     value before */
  KJ_READS = 1024,
  /* waits for what threads of other warps do later: the CPU then runs each warp on its own */
  KJ_WAITS = 2048,
  /* the first argument is a place in shared memory: its address is the first operand in the typed
     IR */
  KJ_ADDRESS = 4096,
  KJ_ARRAY = 8192, /* the first argument is a local array as a whole */
  /* guests may use it (verify_guest.c): with the checks that their code has, it reaches no memory
     but its operands', and ends no process and no device, whatever its arguments are */
  KJ_GUEST = 16384,
  KJ_OPERATOR = 32768 /* the first argument is a func, of which `@identity` is asked */
};

/* Whose threads see an atomic operation or a fence in one order. */
typedef enum ki_memory_scope { KJ_SCOPE_DEVICE, KJ_SCOPE_BLOCK, KJ_SCOPE_SYSTEM } ki_memory_scope;

/* ---- operations: what tells the rows of one lowering function apart ---- */

/* How two values become one: min and max, reductions, atomics. */
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

/* Votes and matches. */
typedef enum ki_vote { KJ_VOTE_ALL, KJ_VOTE_ANY, KJ_VOTE_SAME, KJ_VOTE_BALLOT } ki_vote;

/* How long to wait for a phase of an mbarrier: not at all, for a while, until it is over. */
typedef enum ki_phase_wait { KJ_PHASE_TEST, KJ_PHASE_TRY, KJ_PHASE_WAIT } ki_phase_wait;

/* Cache hints of loads and stores, by the letters of PTX; NC: the read-only cache. */
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

/* ldmatrix and stmatrix: how many matrices, and whether they are transposed. */
enum { KJ_MATRIX_COUNT = 7, KJ_TRANSPOSED = 8 };

/* Elements of matrices as the instructions see them: operands of wgmma, formats of 8-bit floats. */
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
  uint8_t operation; /* of the enumeration that its lowering function knows */
  uint8_t scope;     /* ki_memory_scope, of atomics and fences */
  /* What it needs of a GPU, 0: nothing; suffix 'a': of that architecture only. */
  uint16_t arch, ptx;
  char suffix;
  uint16_t flags;
  /* what else it is known as, separated by blanks: only the error path reads it */
  const char *aliases;
} ki_builtin;

extern const ki_builtin ki_builtin_table[KJ_BUILTIN_COUNT];
/* NULL: none of that name. */
const ki_builtin *ki_find_builtin(const char *name);
/* The built-in known elsewhere under this name, or NULL: "`sqrtf` is `sqrt` here". */
const ki_builtin *ki_find_builtin_alias(const char *name);

/* forms of math functions */
enum {
  KJ_MATH_STRAIGHT = 1,     /* straight code in every library */
  KJ_MATH_STRAIGHT_F32 = 2, /* straight code for f32 */
  KJ_MATH_LONG = 4,         /* a hundred instructions and more, with branches */
  KJ_MATH_LOOPS = 8,        /* has loops */
  KJ_MATH_APPROXIMATE = 16, /* libdevice's approximation for f32, also without @fastmath */
  KJ_MATH_VECTOR = 32       /* libmvec has variants of the host's */
};

/* Names of a math function, as math.def has them; NULL: there is none. */
typedef struct ki_math {
  const char *host, *libdevice, *fast, *libclc;
  uint8_t form;
} ki_math;
/* Of built-ins that are not in math.def, all is 0. */
extern const ki_math ki_math_table[KJ_BUILTIN_COUNT];

#endif
