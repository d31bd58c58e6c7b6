/* The state of type inference: the meanings of names, the guesses about them, the instances of
 * functions, and the scope of the function that is being inferred.
 *
 * A function's body is inferred in rounds, each of which infers the whole body. A round uses
 * guesses and can change them: the type of a `var` that depends on its assignments
 * (variable_type.c), the result type, and which variables differ between threads. Each guess can
 * only change in one direction, so the number of rounds is finite. The last round changes no guess;
 * its typed tree is the result. A weak type is the type of a literal or an untyped number. Another
 * operand determines the final type of a weak value (promote.c). */
#ifndef KJ_TYPING_INFERENCE_H
#define KJ_TYPING_INFERENCE_H

#include "typing/typed.h"

/* The scope in which a value is the same in all threads: the whole grid, a block, or only a single
 * thread. An expression's level is the highest level of its operands. */
typedef enum kt_level { KJ_LEVEL_GRID, KJ_LEVEL_BLOCK, KJ_LEVEL_THREAD } kt_level;

static inline kt_level kt_higher_level(kt_level a, kt_level b) { return a > b ? a : b; }

/* A callee is either a function or a built-in; exactly one of these two fields is not NULL. */
typedef struct kt_captured kt_captured;
typedef struct kt_derived kt_derived;
typedef struct kt_callee {
  const ki_function *function;
  const ki_builtin *builtin;
  const kt_captured *captured; /* arguments that bind_back has added, or NULL */
  const kt_derived *derived;   /* set if the callee is a derivative of .function, otherwise NULL */
} kt_callee;

/* A derivative: jvp(of), vjp(of) or grad(of). */
struct kt_derived {
  ki_builtin_id kind;
  kt_callee of;
  /* the source lists the chosen parameters; otherwise all parameters that hold floats are chosen */
  bool is_chosen;
  uint64_t chosen; /* the listed parameters: bit i for parameter i */
};

typedef enum kt_meaning_kind {
  KJ_MEANS_NOTHING,
  KJ_MEANS_VARIABLE, /* .var */
  /* .value: a constant, a weak expression, or a tuple of constants, weak expressions and variables;
   * each use gets a copy */
  KJ_MEANS_VALUE,
  KJ_MEANS_CALLEE, /* .callee */
  KJ_MEANS_TYPE,   /* .type */
  KJ_MEANS_FIELDS, /* .fields: a field of all elements of an array of structs */
  KJ_MEANS_UNTYPED /* a var to which no typed value has been assigned so far, in any round */
} kt_meaning_kind;

/* The meaning of a declared name in the instance that is being inferred. */
typedef struct kt_meaning {
  kt_meaning_kind kind;
  kt_var *var;
  kt_expr *value;
  kt_callee callee;
  kjit_type type;
  const ki_expr *fields;
  /* a shared scalar; the name means the only element of the variable, which is an array */
  bool is_scalar;
  /* for a var whose type depends on its assignments: the annotation that each value must fit;
   * KJIT_ANY means that there is none */
  kjit_type annotation;
  /* a variable that records whether the var has been assigned, if the request enables this check;
   * otherwise NULL */
  kt_var *is_set;
} kt_meaning;

/* The guesses about a declared name. They are kept between rounds. */
typedef struct kt_guess {
  /* for a VAR whose type depends on its assignments: the common type of the assigned values */
  kjit_type type;
  kj_location location; /* location of the assigned value that led to this type */
  kt_level level;
  bool was_read;   /* the variable was read in this round */
  bool is_default; /* only literals have been assigned */
} kt_guess;

typedef enum kt_bound_kind {
  KJ_BOUND_NONE,
  KJ_BOUND_VALUE,
  KJ_BOUND_WEAK,
  KJ_BOUND_CONST,
  KJ_BOUND_CALLEE,
  KJ_BOUND_TYPE
} kt_bound_kind;

/* Describes the argument for a parameter: the properties on which an instance depends. The bounds
 * of all parameters are the key by which an instance is found. */
typedef struct kt_bound {
  kt_bound_kind kind;
  kjit_type type;   /* VALUE, CONST: the value's type; WEAK: the weak type; TYPE: the type itself */
  kjit_type wide;   /* WEAK: like kt_var.wide; otherwise KJIT_ANY */
  __int128 integer; /* CONST: as in ki_value */
  /* VALUE, if it is a byte array in shared or local memory: the alignment of its start; otherwise
   * 0 */
  uint32_t start;
  kt_callee callee;
  /* VALUE, if it is an array of structs: the field that the parameter stands for, as an expression
   * whose innermost operand is a placeholder for the element. NULL means that the parameter stands
   * for the whole structs. */
  const ki_expr *fields;
} kt_bound;

/* The arguments that bind_back appends to each call of a func. If the func is passed to another
 * func, the bounds are part of the key of the other func's instance. A value that is known only at
 * run time becomes an additional parameter of this instance; the source of the other func does not
 * declare this parameter. */
struct kt_captured {
  size_t count;
  kt_bound *bounds;
  /* the values, as expressions in the function that is being inferred; NULL for a callee or a
   * type */
  kt_expr **values;
};

typedef struct kt_message {
  kj_location location;
  kjit_severity severity;
  const char *text;
} kt_message;

/* An instance with the data that only inference uses. */
typedef struct kt_inferred kt_inferred;
typedef struct kt_scope kt_scope;
struct kt_inferred {
  kt_instance *instance;
  const kt_bound *bounds; /* the bound of each parameter of the function */
  bool is_done;
  bool is_reentered; /* the function calls itself while its body is being inferred */
  /* instance->result is known before the body is inferred, so recursive calls can use it */
  bool has_fixed_result;
  /* the guess, which can be weak; KJIT_ANY means that no return has been inferred yet */
  kjit_type result;
  /* the first guess of the result type that a call in another function has used; KJIT_ANY means
   * that there is none */
  kjit_type taken_result;
  kt_scope *scope; /* not NULL while the body is being inferred */
  /* lib/derive: the record that this record is the derivative of; NULL if this record is not a
   * derivative */
  kt_inferred *derived_of;
  ki_builtin_id derivative;
  kt_vars chosen; /* the parameters with respect to which derived_of is differentiated */
  /* this is a transpose (kd_get_transpose): derived_of must be linear in the chosen parameters */
  bool is_transpose;
  /* types of the arguments that hold derivatives with respect to the chosen parameters */
  kjit_type *derivative_types;
  kt_expr *constant_result; /* the constant, if the body consists only of returning it */
  kt_level result_level;
  bool has_grid_range, has_block_range;
  KJ_LIST(kt_message) messages;   /* the messages from the last round */
  KJ_LIST(kt_inferred *) callees; /* the instances that the last round has called */
  bool is_reached;
  uint64_t work; /* number of inferred statements and expressions in all rounds */
};

/* A copy of the body of a static loop, which is expanded at compile time. The names that the body
 * declares have a different meaning, and separate guesses, in each copy. */
typedef struct kt_copy kt_copy;
struct kt_copy {
  const ki_stmt *loop;
  uint32_t number; /* number of the copy */
  /* the copy that contains the loop; the outermost copy is the whole function */
  kt_copy *outer;
  /* index of the first declaration in the loop body, and the number of these declarations */
  uint32_t first, count;
  /* the guesses about these declarations while another copy is being inferred */
  kt_guess *guesses;
  KJ_LIST(kt_copy *) inner;
};

/* The elements of a constant of the module before their type is known. */
typedef struct kt_constant {
  const char *name;
  kjit_type element; /* can be weak */
  bool is_array;
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK];
  KJ_LIST(kt_expr *) elements; /* the elements in row-major order; empty if is_outside */
  bool is_being_made;
  bool is_outside; /* a variable that is defined by the program that loads the code */
} kt_constant;

typedef struct kt_inference {
  kt_compilation *c;
  KJ_LIST(kt_inferred *) records; /* during inference, instance->id is an index into this list */
  /* the constant for each declaration of the module; indexed by declaration */
  kt_constant **constants;
  size_t constant_count;
  uint32_t block[3]; /* block shape of the kernel, if its @block is constant; 0 means unknown */
  uint32_t depth;
  bool has_double; /* an argument is f64, so remarks about f64 arithmetic are disabled */
  uint32_t remark_count;
} kt_inference;

/* A constant array that an instance uses with a certain element type. */
typedef struct kt_constant_use {
  const kt_constant *constant;
  kjit_type element;
  kt_var *var;
} kt_constant_use;

/* State of inference for one function. */
struct kt_scope {
  kt_inference *inference;
  kt_compilation *c;
  kj_arena *arena;
  kt_inferred *record;
  kt_instance *instance;
  const ki_function *function;
  kt_meaning *meanings; /* the meaning of each declaration; indexed by declaration, like guesses */
  kt_guess *guesses;
  kt_copy *copy; /* the copy that is being inferred; NULL outside of functions */
  kt_stmts *out; /* receives the typed statements */
  kjit_type result_annotation;
  bool is_changed;  /* a guess has changed in this round */
  bool may_wait;    /* statements whose types are not known yet are skipped in this round */
  jmp_buf *on_wait; /* where to jump to skip a statement */
  /* the reason for the first skipped statement in this round: a var, or a function that is being
   * inferred and whose result type is unknown; NULL if no statement was skipped */
  const ki_decl *waits_for;
  kj_location waits_at;
  /* No further types can be determined from other statements, so the statements inside of skipped
   * statements are inferred as well. */
  bool looks_inside;
  bool is_quiet;       /* the expression that is being inferred will not be evaluated */
  kt_level level;      /* level of the control flow at the current statement */
  kt_level left_level; /* highest level of the control flow at a `return` so far */
  /* highest level of the control flow at a `break` or `continue` so far, in the current iteration
   * of the innermost loop */
  kt_level skipped_level;
  uint32_t range_count;   /* number of enclosing grid_range and block_range loops */
  bool is_range_body;     /* the innermost loop is a grid_range or block_range */
  uint32_t runtime_count; /* number of shared arrays whose extents are determined at launch */
  uint64_t local_bytes, shared_bytes;
  bool wraps;           /* the function has `@wrap` or `@numba` */
  bool has_numba_types; /* the function is `@numba` */
  bool is_cast;         /* inside of an explicit conversion of an untyped number */
  /* A call of `pointer` whose result is only converted to an integer. It may return the address of
   * a field that is not aligned. */
  const ki_expr *address_call;
  KJ_LIST(kt_level) levels; /* each variable's level; indexed by variable */
  KJ_LIST(kt_constant_use) constant_uses;
  uint32_t temporary_count;
};

#endif
