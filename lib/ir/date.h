/* Dates: NumPy's datetime64 and timedelta64 with their units, as structs.
 *
 * A struct whose only field is `count: i64` and whose name is that of such a dtype, `datetime64_D`
 * or `timedelta64_25s` for datetime64[D] and timedelta64[25s], is a date: it counts its unit, and
 * the lowest i64 is NaT, no time. Operators on dates are in lib/typing/dates.c. */
#ifndef KJ_IR_DATE_H
#define KJ_IR_DATE_H

#include "ir/type.h"

/* From the longest to the shortest; a generic timedelta64 takes the unit that it meets. */
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
  bool is_difference; /* timedelta64, else datetime64 */
  ki_unit unit;
  int64_t multiple; /* 25 for [25s] */
} ki_date;

/* The count of NaT. */
#define KI_NOT_A_TIME INT64_MIN

/* Whether a type is a date; then *date. */
bool ki_read_date(const ki_types *types, kjit_type type, ki_date *date);
/* The type of such dates; KJIT_ANY when out of memory. */
kjit_type ki_intern_date(ki_types *types, ki_date date);
/* Months and years, whose number of days depends on which they are. */
bool ki_is_of_calendar(ki_date date);
/* The unit that holds those of both, as NumPy finds it; common->is_difference is a's. false: there
 * is none, since months have no fixed number of days, or the units are too far apart for 64 bits.
 */
bool ki_find_common_unit(ki_date a, ki_date b, ki_date *common);
/* How many units of `to` one unit of `from` is, as a reduced fraction. Both are of the calendar, or
 * neither is, and neither is generic. false: it does not fit 64 bits. */
bool ki_find_date_ratio(ki_date from, ki_date to, int64_t *numerator, int64_t *denominator);
/* The name as NumPy writes it, "timedelta64[25s]". */
enum { KI_DATE_TEXT = 48 };
void ki_write_date(ki_date date, char text[KI_DATE_TEXT]);

#endif
