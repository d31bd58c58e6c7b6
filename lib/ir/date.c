/* Units of dates: their names, common units and ratios. Type inference uses them to convert an
 * operator's operands on dates to one unit. */
#include "ir/date.h"

#include <stdio.h>
#include <string.h>

/* One unit of this row consists of `next` units of the next row. It is 0 for months, because months
 * have no fixed length in days. */
static const struct {
  const char *name;
  int64_t next;
} units[KI_UNIT_COUNT] = {
  [KI_UNIT_YEAR] = { "Y", 12 },
  [KI_UNIT_MONTH] = { "M", 0 },
  [KI_UNIT_WEEK] = { "W", 7 },
  [KI_UNIT_DAY] = { "D", 24 },
  [KI_UNIT_HOUR] = { "h", 60 },
  [KI_UNIT_MINUTE] = { "m", 60 },
  [KI_UNIT_SECOND] = { "s", 1000 },
  [KI_UNIT_MILLISECOND] = { "ms", 1000 },
  [KI_UNIT_MICROSECOND] = { "us", 1000 },
  [KI_UNIT_NANOSECOND] = { "ns", 1000 },
  [KI_UNIT_PICOSECOND] = { "ps", 1000 },
  [KI_UNIT_FEMTOSECOND] = { "fs", 1000 },
  [KI_UNIT_ATTOSECOND] = { "as", 0 },
  [KI_UNIT_GENERIC] = { "generic", 0 },
};
static const char *const words[] = { "datetime64", "timedelta64" };

/* ---- names ---- */

static bool read_unit(const char *text, ki_date *date)
{
  date->multiple = 0;
  for (; *text >= '0' && *text <= '9'; text++) {
    date->multiple = date->multiple * 10 + (*text - '0');
    if (date->multiple > INT32_MAX) return false;
  }
  if (!date->multiple) date->multiple = 1;
  for (size_t i = 0; i < KI_UNIT_COUNT; i++) {
    date->unit = (ki_unit)i;
    if (!strcmp(text, units[i].name)) return true;
  }
  return false;
}

bool ki_read_date(const ki_types *types, kjit_type type, ki_date *date)
{
  const ki_type_info *info = ki_type(types, type);
  bool may_be = info->class_ == KJ_CLASS_STRUCT && info->count == 1 && info->items[0] == KJIT_I64 &&
                !strcmp(info->field_names[0], "count");
  for (size_t i = 0; may_be && i < 2; i++) {
    size_t length = strlen(words[i]);
    date->is_difference = i == 1;
    if (!strncmp(info->name, words[i], length) && info->name[length] == '_')
      return read_unit(info->name + length + 1, date);
  }
  return false;
}

static void write_name(ki_date date, const char *format, char text[KI_DATE_TEXT])
{
  char multiple[16] = "";
  if (date.multiple != 1) snprintf(multiple, sizeof multiple, "%d", (int)date.multiple);
  snprintf(text, KI_DATE_TEXT, format, words[date.is_difference], multiple, units[date.unit].name);
}

void ki_write_date(ki_date date, char text[KI_DATE_TEXT]) { write_name(date, "%s[%s%s]", text); }

kjit_type ki_intern_date(ki_types *types, ki_date date)
{
  char name[KI_DATE_TEXT];
  const char *field = "count";
  const kjit_type item = KJIT_I64;
  write_name(date, "%s_%s%s", name);
  return ki_intern_struct(types, name, &field, &item, 1, (ki_struct_layout){ 0 });
}

/* ---- units ---- */

bool ki_is_of_calendar(ki_date date)
{
  return date.unit == KI_UNIT_YEAR || date.unit == KI_UNIT_MONTH;
}

/* Computes the number of shorter units in one longer unit. Returns false if the number does not fit
 * in 64 bits or is not fixed. */
static bool find_factor(ki_unit longer, ki_unit shorter, int64_t *factor)
{
  *factor = 1;
  for (int unit = longer; unit < (int)shorter; unit++)
    if (!units[unit].next || __builtin_mul_overflow(*factor, units[unit].next, factor))
      return false;
  return true;
}

static int64_t find_divisor(int64_t a, int64_t b)
{
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

bool ki_find_common_unit(ki_date a, ki_date b, ki_date *common)
{
  *common = a;
  common->unit = a.unit == KI_UNIT_GENERIC ? b.unit : a.unit;
  if (a.unit == KI_UNIT_GENERIC) common->multiple = b.multiple;
  if (a.unit == KI_UNIT_GENERIC || b.unit == KI_UNIT_GENERIC) return true;
  ki_date longer = a.unit < b.unit ? a : b, shorter = a.unit < b.unit ? b : a;
  int64_t factor = 1;
  if (ki_is_of_calendar(longer) && !ki_is_of_calendar(shorter)) {
    /* the months in a timedelta have no fixed length */
    if (longer.is_difference) return false;
  } else if (!find_factor(longer.unit, shorter.unit, &factor)) {
    return false;
  }
  if (__builtin_mul_overflow(longer.multiple, factor, &longer.multiple)) return false;
  common->unit = shorter.unit;
  common->multiple = find_divisor(longer.multiple, shorter.multiple);
  return common->multiple <= INT32_MAX;
}

bool ki_find_date_ratio(ki_date from, ki_date to, int64_t *numerator, int64_t *denominator)
{
  int64_t factor;
  bool shrinks = from.unit > to.unit;
  if (!find_factor(shrinks ? to.unit : from.unit, shrinks ? from.unit : to.unit, &factor))
    return false;
  *numerator = from.multiple;
  *denominator = to.multiple;
  if (__builtin_mul_overflow(shrinks ? to.multiple : from.multiple, factor,
                             shrinks ? denominator : numerator))
    return false;
  int64_t divisor = find_divisor(*numerator, *denominator);
  *numerator /= divisor;
  *denominator /= divisor;
  return true;
}
