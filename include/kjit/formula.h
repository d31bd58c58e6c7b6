/* kjit/formula.h: formulas that an application's users type, computed over columns with nulls.
 *
 * status.h has the rules that hold for every function. docs/howto/formulas.md has a complete
 * program and the syntax, functions and rules for nulls.
 *
 * A formula such as `a * sin(b) + where(c > 0, c, 0)` computes one value for each row of a table.
 * Formulas can come from untrusted users: a formula can only combine columns by operators and the
 * functions that the page lists. It cannot store, loop, or call anything else. */
#ifndef KJIT_FORMULA_H
#define KJIT_FORMULA_H

#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* a checked formula; it never changes, and any number of threads can use it */
typedef struct kjit_formula kjit_formula;

/* Column flags. */
enum {
  /* rows can be null: a bitmap says which rows have a value, as in Apache Arrow */
  KJIT_COLUMN_NULLABLE = 1,
  /* bool only: the values are bits, the lowest bit first, as in Apache Arrow; otherwise a bool is a
   * byte */
  KJIT_COLUMN_BITS = 2,
  /* i32 or i64: the values are times since 1970-01-01, counted in a unit (one of the flags below).
   * Comparisons and differences of columns with different units are exact. */
  KJIT_COLUMN_TIMESTAMP = 4,
  KJIT_COLUMN_DURATION = 8,      /* i32 or i64: the values are lengths of time, counted in a unit */
  KJIT_COLUMN_DAYS = 16,         /* unit of a timestamp or duration: a day of 86400 seconds */
  KJIT_COLUMN_SECONDS = 32,      /* unit of a timestamp or duration */
  KJIT_COLUMN_MILLISECONDS = 64, /* unit of a timestamp or duration */
  KJIT_COLUMN_MICROSECONDS = 128, /* unit of a timestamp or duration */
  KJIT_COLUMN_NANOSECONDS = 256,  /* unit of a timestamp or duration */
  /* an integer type: the values are indices into a dictionary of texts, kjit_formula_options.texts,
   * as in dictionary-encoded arrays of Apache Arrow */
  KJIT_COLUMN_TEXT = 512
};

/* A column that a formula can use. This struct never grows. */
typedef struct kjit_formula_column {
  /* Name of the column: any UTF-8 text without line breaks and backticks. If the name is not an
   * identifier, a formula writes it in backticks, as in pandas: `trip distance`. */
  const char *name;
  kjit_type type;    /* a scalar type that is not complex */
  uint32_t flags;    /* KJIT_COLUMN_... combined with |, or 0 */
  uint32_t reserved; /* 0 */
} kjit_formula_column;

/* The dictionary of a column with KJIT_COLUMN_TEXT. This struct never grows. */
typedef struct kjit_formula_texts {
  /* different texts in UTF-8; a value of the column is an index of this array */
  const char *const *items;
  size_t count; /* number of texts */
} kjit_formula_texts;

/* Options for kjit_create_formula. */
typedef struct kjit_formula_options {
  uint32_t size_bytes; /* sizeof(kjit_formula_options), set by the application */
  /* KJIT_COLUMN_BITS: if the result is bool, kjit_run_formula writes it as bits; default 0 */
  uint32_t flags;
  const char *name; /* name in messages; default NULL: "formula" */
  /* columns of the table, which kjit reads until the call returns; default NULL */
  const kjit_formula_column *columns;
  uint32_t column_count; /* number of columns, at most 1000; default 0 */
  /* Maximum number of operations in the text: operators, calls, and the values of each `in` list
   * except the first. Default 0: 2000. */
  uint32_t operation_limit;
  /* Maximum text size. Default 0: 65536. */
  uint64_t text_limit_bytes;
  /* One dictionary for each column, used only for columns with KJIT_COLUMN_TEXT. kjit reads them
   * until the call returns; default NULL. */
  const kjit_formula_texts *texts;
} kjit_formula_options;

/* Checks a formula. The call does not load the compiler; the first run compiles the formula.
 *
 * Messages have the lines and columns in the text and the names from the options.
 * options can be NULL for a formula without columns. Destroy the formula with
 * kjit_destroy_formula. Errors: SYNTAX, NAME (a name that is neither a column nor a function),
 * TYPE, LIMIT (operation_limit, text_limit_bytes, or kjit_config.compile_limits.memory_bytes),
 * MISUSE (invalid columns or flags), MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_create_formula(kjit_context *context,
                                                    const kjit_formula_options *options,
                                                    const char *text, size_t size_bytes,
                                                    kjit_formula **formula);
/* Destroys a formula, which can be NULL. No other thread may be in a call with the formula. */
KJIT_API void kjit_destroy_formula(kjit_formula *formula);
/* Returns the context that the formula belongs to. */
KJIT_API kjit_context *kjit_get_formula_context(const kjit_formula *formula);

/* Properties of a formula and of its result. */
typedef struct kjit_formula_info {
  uint32_t size_bytes;      /* sizeof(kjit_formula_info), set by the application */
  kjit_type type;           /* the result's scalar type */
  uint32_t flags;           /* KJIT_COLUMN_... for the result, combined with | */
  uint32_t operation_count; /* number of operations: operators, calls, and the values of each `in`
                               list except the first */
  uint32_t used_count;      /* number of columns that the formula uses */
  uint32_t reserved;        /* 0 */
} kjit_formula_info;
/* Describes a formula. Errors: MISUSE. */
KJIT_API KJIT_CHECK kjit_status kjit_get_formula_info(const kjit_formula *formula,
                                                      kjit_formula_info *info);
/* Returns the dictionary of a result with KJIT_COLUMN_TEXT in kjit_formula_info.flags, otherwise
 * NULL. The values that kjit_run_formula writes are indices into the dictionary, as in
 * dictionary-encoded arrays of Apache Arrow. The dictionary belongs to the formula. */
KJIT_API const kjit_formula_texts *kjit_get_formula_texts(const kjit_formula *formula);
/* Returns 1 if the formula uses this column of kjit_formula_options.columns, otherwise 0. Columns
 * that the formula does not use need no memory in kjit_run_formula. */
KJIT_API int kjit_uses_column(const kjit_formula *formula, size_t column);
/* Returns a function name that formulas can call, or NULL if index is too large. */
KJIT_API const char *kjit_get_formula_function(size_t index);

/* A column's rows in Apache Arrow's memory layout. Row i has values[offset + i], and it is null if
 * bit offset + i in validity is 0. Bit k in a bitmap is bit k % 8 in byte k / 8.
 * This struct never grows. */
typedef struct kjit_column {
  void *values;      /* elements, or bits (KJIT_COLUMN_BITS) */
  uint8_t *validity; /* bitmap; NULL if no row in this chunk is null */
  int64_t offset;    /* first row in values and validity, not negative */
} kjit_column;

/* Options for kjit_run_formula. */
typedef struct kjit_formula_run {
  uint32_t size_bytes; /* sizeof(kjit_formula_run), set by the application */
  /* CPU threads, as in kjit_launch_config */
  uint32_t cpu_threads;
  kjit_device *device; /* Device that computes. Default NULL: the CPU, or the stream's device. */
  kjit_stream *stream; /* default NULL: the device's default stream */
  /* Device whose memory the columns and the result are in. Default NULL: host memory, which a GPU
   * run copies to the GPU and back. A run on the CPU needs memory of the CPU. */
  kjit_device *memory;
  /* as in kjit_launch_config; only for an interruptible context */
  uint64_t time_limit_ns;
} kjit_formula_run;

/* Computes a formula for row_count rows, for example a table's chunk.
 *
 * columns has one entry for each kjit_formula_options.columns entry. The first run compiles the
 * formula, and later runs with other row counts use the same code. result->values receives the
 * values. If the result can be null (kjit_formula_info.flags), result->validity receives its
 * bitmap; otherwise it is not written. The result's offset must be 0. Its bitmaps
 * have (row_count + 7) / 8 bytes, and kjit clears the bits after the last row. A null row's value
 * is undefined. The result must not overlap a column.
 *
 * options can be NULL. The call is asynchronous on the stream of a GPU if the memory is the GPU's.
 * A capture of a CPU stream records the call: a launch of the graph repeats it, with the columns
 * and the result at the same addresses. The graph retains the formula. Errors: MISUSE (a NULL),
 * ARGUMENT (negative row_count or offset, result->offset is not 0, a run on the CPU with memory of
 * another device), and errors of kjit_launch. */
KJIT_API KJIT_CHECK kjit_status kjit_run_formula(const kjit_formula *formula,
                                                 const kjit_column *columns,
                                                 const kjit_column *result, int64_t row_count,
                                                 const kjit_formula_run *options);

#ifdef __cplusplus
}
#endif
#endif
