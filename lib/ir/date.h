/* Dates: NumPy's datetime64 and timedelta64 with their units, represented as structs.
 *
 * A struct is a date if its only field is `count: i64` and its name encodes a NumPy dtype:
 * `datetime64_D` for datetime64[D], `timedelta64_25s` for timedelta64[25s]. The field counts units;
 * INT64_MIN is NaT (not a time). Operators on dates are in lib/typing/dates.c. */
#ifndef KJ_IR_DATE_H
#define KJ_IR_DATE_H

#include "ir/type.h"

/* Units from the longest to the shortest. A GENERIC timedelta64 takes the unit of the other
 * operand. */
typedef enum ki_unit {
  KI_UNIT_YEAR,
  KI_UNIT_MONTH,
  KI_UNIT_WEEK,
  KI_UNIT_DAY,
  KI_UNIT_HOUR,
  KI_UNIT_MINUTE,
  KI_UNIT_SECOND,
  KI_UNIT_MILLISECOND,
  KI_UNIT_MICROSECOND,
  KI_UNIT_NANOSECOND,
  KI_UNIT_PICOSECOND,
  KI_UNIT_FEMTOSECOND,
  KI_UNIT_ATTOSECOND,
  KI_UNIT_GENERIC,
  KI_UNIT_COUNT
} ki_unit;

typedef struct ki_date {
  bool is_difference; /* timedelta64; false means datetime64 */
  ki_unit unit;
  int64_t multiple; /* 25 for [25s] */
} ki_date;

/* The count that represents NaT. */
#define KI_NOT_A_TIME INT64_MIN

/* Returns whether a type is a date. If so, sets *date. */
bool ki_read_date(const ki_types *types, kjit_type type, ki_date *date);
/* Returns the struct type of dates with this unit, or KJIT_ANY when out of memory. */
kjit_type ki_intern_date(ki_types *types, ki_date date);
/* Returns whether the unit is months or years, which have no fixed length in days. */
bool ki_is_of_calendar(ki_date date);
/* Determines the coarsest unit that represents both dates exactly, as NumPy does;
 * common->is_difference is set to a.is_difference. Returns false if there is no such unit: months
 * and years have no fixed length in days, and the ratio of two units can exceed 64 bits. */
bool ki_find_common_unit(ki_date a, ki_date b, ki_date *common);
/* Computes the number of units of `to` in one unit of `from`, as a reduced fraction. Either both
 * units are months or years, or neither is. No unit may be generic. Returns false if the fraction
 * does not fit in 64 bits. */
bool ki_find_date_ratio(ki_date from, ki_date to, int64_t *numerator, int64_t *denominator);
/* Writes the name of a date's dtype in NumPy's form, for example "timedelta64[25s]". */
enum { KI_DATE_TEXT = 48 };
void ki_write_date(ki_date date, char text[KI_DATE_TEXT]);

#endif
