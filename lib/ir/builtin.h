/* The table of built-ins, builtins.def, as the C enum and rows that the parser, typing, lowering
 * and the documentation share. */
#ifndef KJ_IR_BUILTIN_H
#define KJ_IR_BUILTIN_H

#include <stdint.h>

typedef enum kj_builtin_id {
#define X(id, name, least, most, rule, lower, symbol, flags, aliases, group, doc) KJ_BUILTIN_##id,
#include "ir/builtins.def"
#undef X
  KJ_BUILTIN_COUNT
} kj_builtin_id;

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
  KJ_ORDER = 512,       /* a memory order may follow the arguments */
  /* the first argument is an element that is read in a way of its own: a place in the typed IR, a
     value before */
  KJ_READS = 1024,
  /* waits for what threads of other warps do later: the CPU then runs each warp on its own */
  KJ_WAITS = 2048,
  /* the first argument is a place in shared memory: its address is the first operand in the typed
     IR */
  KJ_ADDRESS = 4096,
  KJ_ARRAY = 8192 /* the first argument is a local array as a whole */
};

typedef struct kj_builtin {
  kj_builtin_id id;
  const char *name;
  uint8_t least, most;
  uint16_t flags;
  const char *symbol; /* base name for lowering: C's for math, LLVM's for intrinsics */
  /* what else it is known as, separated by blanks: only the error path reads it */
  const char *aliases;
  const char *group; /* heading in docs/ir.md */
  const char *doc;   /* "parameters: sentence" */
} kj_builtin;

extern const kj_builtin kj_builtin_table[KJ_BUILTIN_COUNT];
/* NULL: none of that name. */
const kj_builtin *kj_find_builtin(const char *name);
/* The built-in known elsewhere under this name, or NULL: "`sqrtf` is `sqrt` here". */
const kj_builtin *kj_find_builtin_alias(const char *name);

#endif
