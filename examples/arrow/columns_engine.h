/* columns_engine.h: common declarations of the columns library's sources. */
#ifndef COLUMNS_ENGINE_H
#define COLUMNS_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "columns.h"

/* Maximum number of operands. A kjit call takes 16 funcs: the function itself, and two funcs for
 * each nullable boolean operand. */
enum { MOST_OPERANDS = 7 };

struct columns_engine {
  atomic_int references; /* number of references: one for the application, and one for each column,
                            function and exported array */
  kjit_context *context;
  kjit_device *device;
  bool is_cpu;
  kjit_module *module; /* columns.kir */
  char *error;
};

/* An element type of Arrow. */
typedef struct column_type {
  const char *format; /* Arrow's format string; if it ends in ':', a time zone follows */
  kjit_type element;
  uint32_t bits;
  bool is_time; /* true for a date, time, timestamp or duration */
} column_type;

/* Row i is element offset + i of values (for booleans, bit offset + i). It is valid if bit offset +
 * i of validity is set. */
struct column {
  columns_engine *engine;
  const column_type *type;
  char *format;
  int64_t length, offset; /* 0 to 7 */
  kjit_array *values;     /* number of elements, or of bytes for booleans */
  kjit_array *rows;       /* for all types except bool: view of the values from the offset on */
  kjit_array *validity;   /* array of bytes; NULL if all values are valid */
  int64_t null_count;     /* -1 means not known yet */
};

/* Stores the error message and returns status. */
kjit_status columns_fail(columns_engine *engine, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));
/* Stores kjit's message if status is not KJIT_OK. */
kjit_status columns_check(columns_engine *engine, kjit_status status, const char *what);
#define COLUMNS_TRY(call) \
  do { \
    kjit_status status_ = (call); \
    if (status_ != KJIT_OK) return status_; \
  } while (0)

void columns_retain(columns_engine *engine);

/* ---- columns ---- */

/* Returns the column type for a function's result type, or NULL if no column has this type. */
const column_type *column_find_type(kjit_type element);
/* Creates a column from these arrays, whose element 0 is row 0. validity is NULL if there are no
 * nulls. The column takes over the references to the arrays; if the call fails, the caller keeps
 * them. */
kjit_status column_make(columns_engine *engine, const char *format, int64_t length,
                        kjit_array *values, kjit_array *validity, column **made);
/* Allocates count elements, padded to a multiple of 64 bytes as Arrow recommends. */
kjit_status column_make_array(columns_engine *engine, kjit_type element, int64_t count,
                              kjit_array **array);
/* Returns a func of columns.kir. */
kjit_function *columns_find(const columns_engine *engine, const char *name);
/* Calls kjit_map with a func of columns.kir. */
kjit_status columns_map(columns_engine *engine, kjit_array *result, const char *function,
                        const kjit_operand *operands, size_t count);
/* Copies the array's first number to the host. */
kjit_status columns_read_number(columns_engine *engine, const kjit_array *array, int64_t *number);

/* Returns an operand with `extent` elements that a func with these arguments computes. */
typedef struct column_operand {
  kjit_operand operand;
  kjit_arg arguments[8];
  int64_t extent;
} column_operand;

void column_operand_set(const columns_engine *engine, column_operand *o, const char *function,
                        int64_t extent, const kjit_arg *arguments, size_t count);
/* Return the operands for a row's value and for a row's validity. */
void column_value_operand(const column *c, column_operand *o);
void column_validity_operand(const column *c, column_operand *o);

static inline int64_t bytes_of_bits(int64_t bits) { return bits / 8 + (bits % 8 != 0); }

/* Packs one bool for each row into bits. */
kjit_status columns_pack(columns_engine *engine, kjit_array *flags, int64_t length,
                         kjit_array **bits);
/* Returns a column of the same type with the rows at the given indices. */
kjit_status column_take_rows(const column *c, kjit_array *places, int64_t count, column **result);

#endif
