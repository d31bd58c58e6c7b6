/* The table of algorithms that --call supports. */
#ifndef RUN_ALGORITHMS_H
#define RUN_ALGORITHMS_H

#include <kjit/kjit.h>
#include <stdbool.h>

typedef enum run_role {
  RUN_NONE, /* ends the list of parameters */
  RUN_RESULT,
  RUN_INPUT,
  RUN_IN_PLACE, /* read and written */
  RUN_WRITTEN,  /* a result that the C function takes as a single operand, like an input */
  RUN_OPERATOR,
  RUN_FUNCTION,
  RUN_CALLED,  /* a func followed by its additional arguments */
  RUN_INTEGER, /* an integer argument of the C function, such as the number of bins */
  RUN_BITS,    /* a 64-bit integer with or without a sign, such as a seed */
  RUN_ELEMENT, /* an integer of the element type of the first operand */
  RUN_REAL,
  RUN_TEXT,  /* for example "ij,jk->ik" */
  RUN_MATRIX /* a sparse matrix */
} run_role;

typedef struct run_parameter {
  const char *name; /* name in the messages of the C function */
  run_role role;
  bool is_optional, is_repeated; /* is_repeated: the parameter takes all remaining arguments */
} run_parameter;

typedef enum run_option {
  RUN_AXIS,
  RUN_AXES,
  RUN_INITIAL,
  RUN_ACCUMULATOR,
  RUN_COMMUTES,
  RUN_EXCLUSIVE,
  RUN_DESCENDING,
  RUN_BEGIN_BIT,
  RUN_END_BIT,
  RUN_WHERE,
  RUN_SIGNATURE,
  RUN_OUTER,
  RUN_RIGHT,
  RUN_TF32,
  RUN_CHUNK,
  RUN_DEVICES,
  RUN_EPILOGUE,
  RUN_E4M3,
  RUN_E5M2,
  RUN_OPTION_COUNT
} run_option;
extern const char *const run_option_names[RUN_OPTION_COUNT];

/* A parameter's value. A count of 0 means that no value was given. */
typedef struct run_argument {
  const kjit_operand *operands;
  size_t count;
  kjit_operator operator_; /* the first operator */
  const kjit_operator *operators;
  kjit_function *function;
  int64_t integer;
  double real;
  const char *text;
  kjit_operand arrays[3]; /* arrays of the matrix */
  kjit_csr matrix;
} run_argument;

/* Returns whether the parameter is a number and not an operand. */
static inline bool run_is_number(run_role role)
{
  return role == RUN_INTEGER || role == RUN_BITS || role == RUN_ELEMENT || role == RUN_REAL;
}

enum { RUN_MOST_PARAMETERS = 8 };
typedef struct run_algorithm {
  const char *name;
  run_parameter parameters[RUN_MOST_PARAMETERS + 1]; /* results first */
  uint32_t options;                                  /* set of bits 1 << run_option */
  /* true if a call without results on its left side writes them to its first operands, as
   * `sort(keys, values)` does */
  bool is_in_place;
  kjit_status (*call)(kjit_context *context, const run_argument *arguments,
                      const kjit_algorithm_options *options);
  bool takes_no_plan; /* true if the call makes decisions on the host while it runs. A plan cannot
                         contain such decisions, so each run makes the call again. */
} run_algorithm;

/* Returns the algorithm with this name, or NULL if there is none. */
const run_algorithm *run_find_algorithm(const char *name, size_t length);
/* The name that NumPy or pandas has for an algorithm with an operator: sum(x) is reduce(x, add). */
typedef struct run_shorthand {
  const char *name, *algorithm, *operator_name;
} run_shorthand;
/* Returns the shorthand with this name, or NULL if there is none. */
const run_shorthand *run_find_shorthand(const char *name, size_t length);
struct tool_similar;
void run_offer_shorthands(struct tool_similar *similar);
/* Returns advice for a function that other libraries have under this name, which the caller frees,
 * or NULL if the name is unknown. */
char *run_advise(const char *name, size_t length);

/* Returns "; did you mean 'reduce'?" or "", which the caller frees. */
char *run_similar_algorithm(const char *name, size_t length);
char *run_list_algorithms(void); /* a list such as "reduce, scan", which the caller frees */

#endif
