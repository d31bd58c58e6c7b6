/* Declarations for formulas that an application's users type. The parser of lib/ir reads a formula
 * as a tree. This folder translates the tree to funcs and kernels in the kernel IR, and determines
 * a type and a rule for nulls for each node.
 *
 *   read.c       the tree: columns, literals, operators
 *   call.c       the functions of functions.def
 *   value.c      values: types, conversions, nulls
 *   timestamps.c timestamps and durations
 *   texts.c      columns of texts
 *   kernels.c    the text of the kernels
 *   bitmaps.c    bitmaps on the CPU
 *   formula.c    the public functions that make and describe formulas
 *   compute.c    kjit_run_formula
 *   capture.c    a captured run on the CPU */
#ifndef KF_FORMULA_H
#define KF_FORMULA_H

#include <stdatomic.h>

#include <kjit/formula.h>

#include "ir/context.h"
#include "ir/module.h"

enum { KF_MOST_COLUMNS = 1000 };

/* ---- nulls ---- */

/* The conditions under which a value is not null; all of them must be true. A condition is a
 * number. A number below KF_FIRST_TERM is a column: the row's bit in the column's bitmap must be
 * set. Another number is a bool variable of the func, which must be true. */
enum { KF_FIRST_TERM = KF_MOST_COLUMNS, KF_ALWAYS_NULL = 0x7fffffff };
typedef struct kf_conditions {
  const uint32_t *items; /* in ascending order */
  size_t count;          /* 0 means that the value is never null */
} kf_conditions;

/* ---- values ---- */

/* The kind of a value, which determines the meaning of its number. */
typedef enum kf_kind {
  KF_PLAIN,     /* a number or bool */
  KF_TIMESTAMP, /* the time since 1970 */
  KF_DURATION,
  KF_TEXT,  /* a column of texts: an index into `texts` */
  KF_STRING /* a string literal, which is converted to a timestamp if the other operand is a
             * timestamp; `text` is the string */
} kf_kind;
typedef enum kf_unit {
  KF_DAYS,
  KF_SECONDS,
  KF_MILLISECONDS,
  KF_MICROSECONDS,
  KF_NANOSECONDS,
  KF_UNIT_COUNT
} kf_unit;

/* A node's value in the func that computes a row. */
typedef struct kf_value {
  /* a scalar type; KJ_WEAK_INT or KJ_WEAK_FLOAT for a literal, KJIT_ANY for `null` */
  kjit_type type;
  __int128 integer; /* value of a weak integer */
  double number;    /* value of a weak float */
  const char *text; /* for other values: the name or the literal in the kernel IR */
  kf_conditions valid;
  kf_kind kind;
  kf_unit unit;                    /* unit of a timestamp or duration */
  const kjit_formula_texts *texts; /* dictionary of a KF_TEXT */
  size_t own_count; /* for KF_TEXT: how many texts of the dictionary come from the column; literals
                       follow them */
} kf_value;

/* State while the func is written. The func is written twice: for columns with nulls, and for rows
 * without nulls. */
typedef struct kf_writer {
  kj_arena *arena;
  kjit_context *context;
  const kjit_module *source; /* module that contains the tree */
  kj_diagnostics *diagnostics;
  const kjit_formula_column *columns;
  const kjit_formula_texts *texts; /* texts of each column, or NULL */
  size_t column_count;
  uint32_t operation_limit;
  bool with_nulls;
  bool checks_division; /* true if a division by 0 raises an error, except in rows that are null */
  const char *file;     /* name of the formula's text in line directives, quoted */
  kj_buffer *body;      /* body of the func */
  uint32_t name_count, operation_count;
  uint32_t range_count; /* number of dictionary ranges with which the func compares indices */
  bool *is_used;        /* for each column: whether the func uses its value */
  /* for each column: whether the func tests its validity bit */
  bool *is_asked;
  kj_location location; /* location of the statement that is written next */
} kf_writer;

_Noreturn void kf_fail(kf_writer *w, kj_location location, kjit_status status, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));

/* ---- value.c ---- */

static inline bool kf_is_float(kjit_type type)
{
  return type == KJ_WEAK_FLOAT || (type >= KJIT_F16 && type <= KJIT_F64);
}
static inline bool kf_is_unsigned(kjit_type type) { return type >= KJIT_U8 && type <= KJIT_U64; }
static inline bool kf_is_integer(kjit_type type)
{
  return type == KJ_WEAK_INT || (type >= KJIT_I8 && type <= KJIT_U64);
}
const char *kf_type_name(const kf_writer *w, const kf_value *value);
/* Returns the type in which two numbers are combined, as in NumPy and numexpr, at least i32.
 * Returns KJIT_ANY if the values have no common type. */
kjit_type kf_find_common_type(const kf_value *x, const kf_value *y);
/* Returns the type of a value that is chosen from two values, such as the result of `where`. If
 * both values are bools, or have the same small integer type, the result has this type. */
kjit_type kf_find_joined_type(const kf_value *x, const kf_value *y);
/* Returns the type of a value that is not combined with another operand. For a literal this is i64,
 * u64 or f64. */
kjit_type kf_own_type(const kf_value *x);
/* Returns the source text of the value, converted to a scalar type. */
const char *kf_convert(kf_writer *w, const kf_value *value, kjit_type type);
/* Writes `let vN = text` and returns the value. */
kf_value kf_let(kf_writer *w, kjit_type type, kf_conditions valid, const char *text);
/* Returns the conjunction of two sets of conditions. */
kf_conditions kf_join(kf_writer *w, kf_conditions x, kf_conditions y);
bool kf_same_conditions(kf_conditions x, kf_conditions y);
/* Returns an expression of the kernel IR that is true if all conditions are true. */
const char *kf_condition_text(kf_writer *w, kf_conditions conditions);
/* Returns a condition whose value an expression computes. */
kf_conditions kf_let_condition(kf_writer *w, const char *text);
kf_value kf_bool(bool value);

/* ---- timestamps.c ---- */

/* Returns false if the flags do not specify exactly one kind and unit. */
bool kf_read_date_flags(uint32_t flags, kf_kind *kind, kf_unit *unit);
uint32_t kf_date_flags(const kf_value *value);
const char *kf_date_name(const kf_writer *w, const kf_value *value);
/* Applies an operator to values that include a timestamp, duration or string. */
kf_value kf_apply_dates(kf_writer *w, kjit_op op, kf_value x, kf_value y, kj_location location);
kf_value kf_negate_date(kf_writer *w, kf_value x, kj_location location);
/* Converts the values to i64 in the finest of their units and returns this unit. Nulls stay
 * nulls. */
kf_unit kf_unify(kf_writer *w, kf_value *items, size_t count, kf_kind *kind, kj_location location);
/* Implements the functions `days` and `as_days`, and the same functions for other units. */
kf_value kf_make_duration(kf_writer *w, const char *name, kf_value x);
kf_value kf_change_unit(kf_writer *w, const char *name, kf_value x, kj_location location);

/* ---- texts.c ---- */

/* Applies an operator to values that include a column of texts. */
kf_value kf_apply_texts(kf_writer *w, kjit_op op, kf_value x, kf_value y, kj_location location);
/* Applies a function on texts, which is given by its name. x is a column of texts and y a
 * literal. */
kf_value kf_match_texts(kf_writer *w, const char *word, kf_value x, kf_value y,
                        kj_location location);
/* Returns whether x, a column of texts, equals one of several literals. */
kf_value kf_find_texts(kf_writer *w, kf_value x, const kf_value *literals, size_t count,
                       kj_location location);

/* Returns whether all values are texts or null, and at least one value is a text. */
bool kf_are_texts(const kf_value *items, size_t count);
/* Converts texts to indices of type i32 into one dictionary, which *all then describes. Nulls stay
 * nulls. */
void kf_unify_texts(kf_writer *w, kf_value *items, size_t count, kf_value *all,
                    kj_location location);

/* ---- read.c ---- */

/* Adds `count` to the number of operations in the formula. Operators, calls, and all values of `in`
 * but the first are operations. Reports an error if the number exceeds the limit. */
void kf_count_operations(kf_writer *w, uint32_t count, kj_location location);
kf_value kf_read(kf_writer *w, const ki_expr *expr);
/* Applies an operator. */
kf_value kf_apply(kf_writer *w, kjit_op op, kf_value x, kf_value y, kj_location location);

/* ---- call.c ---- */

typedef enum kf_rule {
  KF_WHERE,
  KF_COALESCE,
  KF_IS_NULL,
  KF_IS_VALID,
  KF_NULL_IF,
  KF_IS_IN,
  KF_REAL,   /* converts integers to f64; floats to their common type */
  KF_TEST,   /* like REAL, but the result is bool */
  KF_NUMBER, /* converts to the common type */
  KF_POWER,  /* the operator ** */
  KF_CAST,   /* converts to the type in the row of functions.def */
  KF_MATCH,  /* tests whether a column of texts contains, begins or ends with a literal */
  KF_LENGTH, /* converts an integer to a duration */
  KF_IN_UNIT /* converts a timestamp or duration to another unit */
} kf_rule;

kf_value kf_call(kf_writer *w, const ki_expr *call);
/* Reads a name that is not a column: a constant. Any other name is an error. */
kf_value kf_read_name(kf_writer *w, const ki_expr *name);

/* ---- kernels.c ---- */

/* A kernel's parameters for one column. compute.c passes the arguments in the order of the
 * fields. */
typedef struct kf_parameter {
  uint32_t column;
  bool has_values, has_validity;
} kf_parameter;

/* The kernels of a formula for rows with nulls, or for rows without nulls. */
typedef struct kf_form {
  kjit_module *module;
  /* `values` computes whole elements. If `values` is NULL, the bits of several rows are in one
   * byte: `groups` computes 64 rows at a time, and on a GPU `warps` computes 32. */
  kjit_kernel *values, *groups, *warps;
  /* for a GPU: computes the result's bitmap from the columns' bitmaps. NULL if `groups` and `warps`
   * compute this bitmap, or if the result is never null. The CPU needs no kernel for this. */
  kjit_kernel *validity;
  bool writes_validity; /* `groups` and `warps` write the result's bitmap */
  kf_parameter *parameters, *validity_parameters; /* malloc'd */
  size_t parameter_count, validity_count;
} kf_form;

struct kjit_formula {
  kjit_context *context;
  _Atomic uint32_t references;  /* number of references by the application and by graphs */
  kjit_formula_column *columns; /* the columns; their names are NULL */
  size_t column_count;
  bool *is_used;
  kjit_type type;
  uint32_t flags;           /* flags of the result */
  kjit_formula_texts texts; /* dictionary of a result with KJIT_COLUMN_TEXT; one block of memory */
  uint32_t operation_count;
  kf_form plain, nulls; /* the kernels for rows without nulls and for rows with nulls; nulls.module
                           is NULL if no column can be null */
};

typedef struct kf_source {
  const char *name, *text;
  size_t size_bytes;
} kf_source;

/* Makes the kernels of a func. value is its result. has_bits means that the result's values are
 * bits. has_bitmap means that the result has a validity bitmap, even if no row of this form is
 * null. Errors are reported to the context. */
kjit_status kf_make_form(kf_writer *w, const kf_source *source, const kf_value *value,
                         kjit_type type, bool has_bits, bool has_bitmap, kf_form *form);
void kf_free_form(kf_form *form);

/* ---- capture.c ---- */

/* Adds a run to the graph that captures options->stream, a stream of the CPU. The graph retains the
 * formula. */
kjit_status kf_record_run(const kjit_formula *formula, const kjit_column *columns,
                          const kjit_column *result, int64_t rows, const kjit_formula_run *options);

/* ---- bitmaps.c ---- */

/* Copies the bits of `rows` rows (at least one), starting at bit `offset`, to words of 64 rows.
 * Bits after the last row are undefined. bits: NULL means that all bits are 1. */
void kf_read_bits(uint64_t *words, const uint8_t *bits, int64_t offset, int64_t rows);
/* Computes the bitwise and of two bitmaps. */
void kf_join_bits(uint64_t *words, const uint64_t *other, int64_t rows);
/* Copies words to a bitmap of (rows + 7) / 8 bytes. Clears the bits after the last row, also in the
 * words. */
void kf_write_bits(uint8_t *bits, uint64_t *words, int64_t rows);

#endif
