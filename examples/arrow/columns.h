/* columns.h: a library of columns with nulls. Functions in the kernel IR compute with them, and
 * Arrow's C data interface exchanges them with other libraries.
 *
 * A column is a primitive array of Arrow: integers, floats, booleans, and dates, times, timestamps
 * and durations, which functions receive as integers. The CPU uses a column without a copy. A GPU
 * receives one copy, and results stay in GPU memory until they are exported.
 *
 * Functions return a kjit_status and write their results only on KJIT_OK; columns_get_error then
 * returns the message. One engine belongs to one thread at a time. Columns, and arrays that were
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

/* Creates an engine. device is "cpu" or "cuda". folder is the folder that contains columns.kir.
 * Errors: ARGUMENT, and the errors from kjit_get_device and kjit_parse_module. After a failure
 * *engine has the message, and the caller closes it; NULL means out of memory. */
KJIT_API KJIT_CHECK kjit_status columns_open(const char *device, const char *folder,
                                             columns_engine **engine);
/* Closes the engine. Its context is destroyed when columns, functions and exported arrays are
 * released as well. */
KJIT_API void columns_close(columns_engine *engine);
/* Returns the message of the last failed call, borrowed until the next failed call. */
KJIT_API const char *columns_get_error(const columns_engine *engine);

/* ---- exchange ---- */

/* Moves an array from another library into a column, as the specification requires. The two structs
 * are marked as released, even on failure, and the producer's callbacks are called after the last
 * use of the memory. Errors: UNSUPPORTED (strings, nested types, dictionaries: the message has the
 * format string), ARGUMENT (a released struct, buffers, lengths or offsets that cannot be), MEMORY,
 * DEVICE_MEMORY. */
KJIT_API KJIT_CHECK kjit_status columns_take(columns_engine *engine, struct ArrowSchema *schema,
                                             struct ArrowArray *array, column **taken);
/* Exports the column as Arrow's structs. The consumer calls each release callback once. Buffers
 * begin at multiples of 64 bytes and are padded to such multiples, except buffers that came from
 * another library. On the CPU the buffers are the column's own memory. */
KJIT_API KJIT_CHECK kjit_status columns_export(column *exported, struct ArrowSchema *schema,
                                               struct ArrowArray *array);
KJIT_API void column_release(column *released); /* NULL is fine */

KJIT_API int64_t column_get_length(const column *c);
/* Returns the number of nulls. The first call counts them if the producer has not. */
KJIT_API KJIT_CHECK kjit_status column_count_nulls(column *c, int64_t *count);

/* ---- functions ---- */

typedef enum column_nulls {
  /* The function receives the values. If an operand is null, the result is null, and the function
   * is not called. */
  COLUMN_NULLS_PROPAGATE,
  /* The function is also called for nulls, with undefined values, and its results for nulls are
   * ignored. This allows vector code for functions that cannot fail. */
  COLUMN_NULLS_COMPUTED,
  /* The function receives a pair (value, is_valid) for each operand and returns such a pair. The
   * value of a null is undefined. */
  COLUMN_NULLS_HANDLED
} column_nulls;

/* Creates a function of the given number of columns from a func in the text. The function is
 * generic: kjit compiles it for each combination of column types. Errors: NAME, TYPE (another
 * number of parameters), and the errors from kjit_parse_module. */
KJIT_API KJIT_CHECK kjit_status columns_define(columns_engine *engine, const char *text,
                                               const char *name, size_t operand_count,
                                               column_nulls nulls, column_function **function);
KJIT_API void column_function_release(column_function *function); /* NULL is fine */

/* Calls the function for each row of the operands. Errors: ARGUMENT (another number of operands,
 * lengths that differ), TYPE (a column cannot hold the result), KERNEL (the function raises), and
 * the errors from kjit_map. */
KJIT_API KJIT_CHECK kjit_status columns_apply(columns_engine *engine,
                                              const column_function *function,
                                              column *const *operands, column **result);

/* ---- filters ---- */

/* Selects the rows of the columns for which the predicate, a function of the operands, is true. As
 * in SQL's WHERE, rows with false or null are dropped. Errors: TYPE (the predicate does not return
 * a bool), and the errors from columns_apply. */
KJIT_API KJIT_CHECK kjit_status columns_filter(columns_engine *engine,
                                               const column_function *predicate,
                                               column *const *operands, column *const *columns,
                                               size_t column_count, column **results);

/* ---- groups ---- */

/* The aggregates of a group's non-null values: sum (64 bits), count, minimum, maximum and mean. For
 * a group with only nulls the count is 0, and the other aggregates are null. */
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
  COLUMN_DROP_NULL_KEYS = 1 /* drops rows with a null key; otherwise null keys form a group, as in
                               SQL's GROUP BY and pyarrow */
} column_group_flags;

/* Groups the rows with equal keys. Groups are in ascending order of the first key, then of the next
 * one; nulls follow values. All NaNs are one key, and the two zeros are one key. results receives
 * the groups' keys, followed by the aggregates. Sums are i64 for signed integers, u64 for unsigned
 * integers and booleans, and f64 for floats, which are added in row order within fixed chunks.
 * Means are f64. The minimum or maximum of floats is NaN only if all values are NaN. Errors:
 * ARGUMENT (no keys, lengths that differ), UNSUPPORTED (times and dates have only count, minimum
 * and maximum), and the errors from kjit_sort_pairs. */
KJIT_API KJIT_CHECK kjit_status columns_group(columns_engine *engine, column *const *keys,
                                              size_t key_count, const column_aggregate *aggregates,
                                              size_t aggregate_count, uint32_t flags,
                                              column **results);

#ifdef __cplusplus
}
#endif
#endif
