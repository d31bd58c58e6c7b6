/* columns.h: columns with nulls, computed with by functions in the kernel IR, exchanged through
 * Arrow's C data interface.
 *
 * A column is what Arrow calls a primitive array: integers, floats, booleans, and dates, times,
 * timestamps and durations, which are integers to functions. On the CPU it is used where it lies;
 * on a GPU it is copied there once, and what is computed stays there until it is exported.
 *
 * Functions return a kjit_status and write their results only on KJIT_OK; columns_get_error then
 * says what went wrong. One engine belongs to one thread at a time. Columns, and arrays that were
 * exported, may be released by any thread, also after columns_close. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include <kjit/kjit.h>

#include "arrow_c_data.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct columns_engine columns_engine; /* a context of kjit, and a device of it */
typedef struct column column;
typedef struct column_function column_function;

/* device: "cpu", "cuda"; folder: where columns.kir is. Errors: ARGUMENT; those of kjit_get_device
 * and kjit_parse_module. What a failed call says is in *engine also then, which the caller closes,
 * unless it is NULL: out of memory. */
KJIT_API KJIT_CHECK kjit_status columns_open(const char *device, const char *folder,
                                             columns_engine **engine);
/* The context goes when columns, functions and exported arrays are released, too. */
KJIT_API void columns_close(columns_engine *engine);
/* Of the last call that failed; borrowed until the next one. */
KJIT_API const char *columns_get_error(const columns_engine *engine);

/* ---- exchange ---- */

/* Moves an array of another library into a column, as the specification has it: the two structs are
 * marked as released, on failure too, and the producer's callbacks are called when nothing uses the
 * memory any more. Errors: UNSUPPORTED (strings, nested types, dictionaries: the message has the
 * format string), ARGUMENT (a released struct, buffers, lengths or offsets that cannot be), MEMORY,
 * DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status columns_take(columns_engine *engine, struct ArrowSchema *schema,
                                             struct ArrowArray *array, column **taken);
/* The column as Arrow's structs, whose release callbacks the consumer calls once each. Buffers
 * begin at multiples of 64 bytes and are padded to them, but for those of a column that was taken.
 * On the CPU they are the column's own memory. */
KJIT_API KJIT_CHECK kjit_status columns_export(column *exported, struct ArrowSchema *schema,
                                               struct ArrowArray *array);
KJIT_API void column_release(column *released); /* NULL is fine */

KJIT_API int64_t column_get_length(const column *c);
/* Counts them the first time where nobody has. */
KJIT_API KJIT_CHECK kjit_status column_count_nulls(column *c, int64_t *count);

/* ---- functions ---- */

typedef enum column_nulls {
  /* The function has the values as parameters. Where an operand is null, the result is, and the
   * function is not called. */
  COLUMN_NULLS_PROPAGATE,
  /* The same, but the function is called for nulls, too, with whatever is there, and what it
   * returns for them is not looked at: vector code, for a function that cannot fail. */
  COLUMN_NULLS_COMPUTED,
  /* The function has a pair (value, is_valid) for each operand, and returns one. Of a null the
   * value may be anything. */
  COLUMN_NULLS_HANDLED
} column_nulls;

/* A func of the text, of so many columns, as a function of columns: generic, compiled for the types
 * that it meets. Errors: those of kjit_parse_module, NAME, TYPE (another number of parameters). */
KJIT_API KJIT_CHECK kjit_status columns_define(columns_engine *engine, const char *text,
                                               const char *name, size_t operand_count,
                                               column_nulls nulls, column_function **function);
KJIT_API void column_function_release(column_function *function); /* NULL is fine */

/* The function of each row of the operands. Errors: ARGUMENT (another number of operands, lengths
 * that differ), TYPE (what it returns is no element of a column), KERNEL (it raises), those of
 * kjit_map. */
KJIT_API KJIT_CHECK kjit_status columns_apply(columns_engine *engine,
                                              const column_function *function,
                                              column *const *operands, column **result);

/* ---- filters ---- */

/* The rows of the columns for which the predicate, a function of the operands, is true: false and
 * null are not, as WHERE of SQL has it. Errors: as columns_apply; TYPE (it returns no bool). */
KJIT_API KJIT_CHECK kjit_status columns_filter(columns_engine *engine,
                                               const column_function *predicate,
                                               column *const *operands, column *const *columns,
                                               size_t column_count, column **results);

/* ---- groups ---- */

/* What becomes of the values of a group that are not null: their sum, in 64 bits, number, least,
 * greatest, mean. Of none of them it is null, but their number is 0. */
typedef enum column_aggregation {
  COLUMN_SUM,
  COLUMN_COUNT,
  COLUMN_MIN,
  COLUMN_MAX,
  COLUMN_MEAN,
  COLUMN_AGGREGATION_COUNT
} column_aggregation;

typedef struct column_aggregate {
  column *values;
  column_aggregation aggregation;
} column_aggregate;

typedef enum column_group_flags {
  COLUMN_DROP_NULL_KEYS = 1 /* rows with a null among their keys; else nulls are equal to each
                             * other, and a group, as SQL's GROUP BY and pyarrow have it */
} column_group_flags;

/* Groups of the rows that have the same keys, in ascending order of the keys, the first one first,
 * nulls behind values; NaNs are one key, and so are the two zeros. results become the keys of the
 * groups, then the aggregates. Sums of signed integers are i64, of others and booleans u64, of
 * floats f64, in the order of rows within fixed pieces; means f64. Least and greatest of floats are
 * NaN only where all are. Errors: ARGUMENT (no keys, lengths that differ), UNSUPPORTED (of times
 * and dates there are counts, least and greatest only); those of kjit_sort_pairs. */
KJIT_API KJIT_CHECK kjit_status columns_group(columns_engine *engine, column *const *keys,
                                              size_t key_count, const column_aggregate *aggregates,
                                              size_t aggregate_count, uint32_t flags,
                                              column **results);

#ifdef __cplusplus
}
#endif
#endif
