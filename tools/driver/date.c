#include <driver/date.h>

#include <ctype.h>
#include <kjit/formula.h>
#include <stdio.h>
#include <string.h>

static const struct {
  uint32_t flag;
  const char *date, *duration; /* names of the element types */
  int digits;                  /* number of digits after the point of the seconds */
} units[TOOL_DATE_UNITS] = {
  [TOOL_DATE_DAYS] = { KJIT_COLUMN_DAYS, "date", "days", 0 },
  [TOOL_DATE_SECONDS] = { KJIT_COLUMN_SECONDS, "time", "seconds", 0 },
  [TOOL_DATE_MILLISECONDS] = { KJIT_COLUMN_MILLISECONDS, "time", "milliseconds", 3 },
  [TOOL_DATE_MICROSECONDS] = { KJIT_COLUMN_MICROSECONDS, "time", "microseconds", 6 },
  [TOOL_DATE_NANOSECONDS] = { KJIT_COLUMN_NANOSECONDS, "time", "nanoseconds", 9 },
};
enum { DAY_SECONDS = 86400, MOST_DIGITS = 9 };

typedef struct parts {
  /* days since 1970-01-01, seconds of the day, nanoseconds of the second */
  int64_t days, seconds, nanoseconds;
  bool has_time;
  int digits; /* number of digits after the decimal point of the seconds */
} parts;

/* ---- the calendar ---- */

static int days_of_month(int64_t year, int month)
{
  static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
  const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return days[month - 1] + (month == 2 && is_leap);
}

/* Returns the days since 1970-01-01. The computation uses years that begin in March, so that the
 * leap day is the last day of a year. */
static int64_t days_since_1970(int64_t year, int month, int day)
{
  const int64_t y = month <= 2 ? year - 1 : year, era = (y >= 0 ? y : y - 399) / 400;
  const int64_t of_era = y - 400 * era,
                of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return 146097 * era + 365 * of_era + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of_days(int64_t days, int64_t *year, int *month, int *day)
{
  const int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
  const int64_t of_era = z - 146097 * era;
  const int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t of_year = of_era - (365 * y + y / 4 - y / 100), m = (5 * of_year + 2) / 153;
  *day = (int)(of_year - (153 * m + 2) / 5 + 1);
  *month = (int)(m < 10 ? m + 3 : m - 9);
  *year = y + 400 * era + (*month <= 2);
}

/* ---- texts ---- */

/* Takes a number with this many digits. Returns false if there are fewer. */
static bool take_digits(const char **at, int digits, int *value)
{
  *value = 0;
  for (int i = 0; i < digits; i++, (*at)++) {
    if (!isdigit((unsigned char)**at)) return false;
    *value = 10 * *value + **at - '0';
  }
  return true;
}

static bool take_char(const char **at, char expected)
{
  if (**at != expected) return false;
  (*at)++;
  return true;
}

/* Takes the digits after the point of the seconds. */
static bool take_fraction(const char **at, parts *p)
{
  for (; isdigit((unsigned char)**at); (*at)++) {
    if (p->digits == MOST_DIGITS) return false;
    p->nanoseconds = 10 * p->nanoseconds + **at - '0';
    p->digits++;
  }
  for (int i = p->digits; i < MOST_DIGITS; i++) p->nanoseconds *= 10;
  return p->digits > 0;
}

static bool take_time(const char **at, parts *p)
{
  int hour, minute, second = 0;
  if (!take_digits(at, 2, &hour) || !take_char(at, ':') || !take_digits(at, 2, &minute))
    return false;
  if (take_char(at, ':')) {
    if (!take_digits(at, 2, &second)) return false;
    if (take_char(at, '.') && !take_fraction(at, p)) return false;
  }
  (void)take_char(at, 'Z');
  p->has_time = true;
  p->seconds = 3600 * hour + 60 * minute + second;
  return hour < 24 && minute < 60 && second < 60;
}

static bool parse(const char *text, parts *p)
{
  int year, month, day;
  *p = (parts){ 0 };
  if (!take_digits(&text, 4, &year) || !take_char(&text, '-') || !take_digits(&text, 2, &month) ||
      !take_char(&text, '-') || !take_digits(&text, 2, &day))
    return false;
  if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month)) return false;
  p->days = days_since_1970(year, month, day);
  if (!*text) return true;
  if (!take_char(&text, 'T') && !take_char(&text, ' ')) return false;
  return take_time(&text, p) && !*text;
}

bool tool_find_date_unit(const char *text, tool_date_unit *unit)
{
  parts p;
  if (!parse(text, &p)) return false;
  *unit = p.has_time ? TOOL_DATE_SECONDS : TOOL_DATE_DAYS;
  while (units[*unit].digits < p.digits) (*unit)++;
  return true;
}

static int64_t per_second(tool_date_unit unit)
{
  int64_t number = 1;
  for (int i = 0; i < units[unit].digits; i++) number *= 10;
  return number;
}

bool tool_parse_date(const char *text, tool_date_unit unit, int64_t *count)
{
  parts p;
  if (!parse(text, &p)) return false;
  if (unit == TOOL_DATE_DAYS) {
    *count = p.days;
    return true;
  }
  const int64_t number = per_second(unit);
  const __int128 whole = (__int128)(p.days * DAY_SECONDS + p.seconds) * number +
                         p.nanoseconds / (per_second(TOOL_DATE_NANOSECONDS) / number);
  *count = (int64_t)whole;
  return whole == *count;
}

void tool_date_text(int64_t count, tool_date_unit unit, char *buffer)
{
  int64_t days = count, rest = 0, year;
  int month, day;
  if (unit != TOOL_DATE_DAYS) {
    const int64_t per_day = DAY_SECONDS * per_second(unit);
    days = count / per_day;
    rest = count % per_day;
    if (rest < 0) {
      days--;
      rest += per_day;
    }
  }
  /* A 64-bit count of days can exceed the range of the computation below. */
  if (days > INT64_MAX / 2 || days < INT64_MIN / 2) {
    snprintf(buffer, TOOL_DATE_TEXT, "%lld days", (long long)days);
    return;
  }
  date_of_days(days, &year, &month, &day);
  int length = snprintf(buffer, TOOL_DATE_TEXT, "%04lld-%02d-%02d", (long long)year, month, day);
  if (unit == TOOL_DATE_DAYS) return;
  const int64_t number = per_second(unit), seconds = rest / number;
  length += snprintf(buffer + length, TOOL_DATE_TEXT - (size_t)length, "T%02d:%02d:%02d",
                     (int)(seconds / 3600), (int)(seconds / 60 % 60), (int)(seconds % 60));
  if (number == 1) return;
  char fraction[24]; /* a value with an additional leading digit, so that the zeros at the beginning
                        of the fraction are printed */
  const long long beside = number + rest % number;
  snprintf(fraction, sizeof fraction, "%lld", beside);
  snprintf(buffer + length, TOOL_DATE_TEXT - (size_t)length, ".%s", fraction + 1);
}

/* ---- flags and names ---- */

uint32_t tool_date_flags(const tool_date *date)
{
  if (date->kind == TOOL_NO_DATE) return 0;
  const uint32_t kind = date->kind == TOOL_TIMESTAMP ? KJIT_COLUMN_TIMESTAMP : KJIT_COLUMN_DURATION;
  return kind | units[date->unit].flag;
}

tool_date tool_date_of_flags(uint32_t flags)
{
  tool_date date = { .kind = flags & KJIT_COLUMN_TIMESTAMP  ? TOOL_TIMESTAMP
                             : flags & KJIT_COLUMN_DURATION ? TOOL_DURATION
                                                            : TOOL_NO_DATE };
  for (tool_date_unit unit = 0; unit < TOOL_DATE_UNITS; unit++)
    if (flags & units[unit].flag) date.unit = unit;
  return date;
}

const char *tool_date_name(const tool_date *date)
{
  return date->kind == TOOL_TIMESTAMP ? units[date->unit].date : units[date->unit].duration;
}
