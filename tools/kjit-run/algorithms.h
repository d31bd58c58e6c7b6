/* The algorithms that --call knows: one row each. */
#ifndef RUN_ALGORITHMS_H
#define RUN_ALGORITHMS_H

#include <kjit/kjit.h>
#include <stdbool.h>

typedef enum run_role {
  RUN_NONE, /* behind the last parameter */
  RUN_RESULT,
  RUN_INPUT,
  RUN_IN_PLACE, /* read and written */
  RUN_WRITTEN,  /* a result among the operands */
  RUN_OPERATOR,
  RUN_FUNCTION,
  RUN_CALLED,  /* a func with its last arguments */
  RUN_INTEGER, /* of the call itself: the number of bins */
  RUN_BITS,    /* an integer of 64 bits, with or without a sign: a seed */
  RUN_ELEMENT, /* an integer of the type of the first operand's elements */
  RUN_REAL,
  RUN_TEXT,  /* "ij,jk->ik" */
  RUN_MATRIX /* sparse */
} run_role;

typedef struct run_parameter {
  const char *name; /* as the C function's messages call it */
  run_role role;
  bool is_optional, is_repeated; /* repeated: takes all that follow */
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

/* What a parameter was given; count 0: nothing. */
typedef struct run_argument {
  const kjit_operand *operands;
  size_t count;
  kjit_operator operator_; /* the first one */
  const kjit_operator *operators;
  kjit_function *function;
  int64_t integer;
  double real;
  const char *text;
  kjit_operand arrays[3]; /* of the matrix */
  kjit_csr matrix;
} run_argument;

/* A number of the call itself, and no operand. */
static inline bool run_is_number(run_role role)
{
  return role == RUN_INTEGER || role == RUN_BITS || role == RUN_ELEMENT || role == RUN_REAL;
}

enum { RUN_MOST_PARAMETERS = 8 };
typedef struct run_algorithm {
  const char *name;
  run_parameter parameters[RUN_MOST_PARAMETERS + 1]; /* results first */
  uint32_t options;                                  /* 1 << run_option */
  /* without results on the left they are the first operands: `sort(keys, values)` */
  bool is_in_place;
  kjit_status (*call)(kjit_context *context, const run_argument *arguments,
                      const kjit_algorithm_options *options);
  bool takes_no_plan; /* the host decides on the way: it is called anew in each run */
} run_algorithm;

/* NULL: none */
const run_algorithm *run_find_algorithm(const char *name, size_t length);
/* NumPy's and pandas' name for an algorithm with an operator: sum(x) is reduce(x, add). */
typedef struct run_shorthand {
  const char *name, *algorithm, *operator_name;
} run_shorthand;
const run_shorthand *run_find_shorthand(const char *name, size_t length); /* NULL: none */
struct tool_similar;
void run_offer_shorthands(struct tool_similar *similar);
/* How to compute something that another library has as a function of this name; free. NULL: the
 * name is unknown. */
char *run_advise(const char *name, size_t length);

/* "; did you mean 'reduce'?", or the empty text; free */
char *run_similar_algorithm(const char *name, size_t length);
char *run_list_algorithms(void); /* "reduce, scan"; free */

#endif
