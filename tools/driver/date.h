/* Dates and times of the Gregorian calendar as counts of a unit since 1970-01-01, in UTC. */
#ifndef TOOL_DATE_H
#define TOOL_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Units from the longest to the shortest. */
typedef enum tool_date_unit {
  TOOL_DATE_DAYS,
  TOOL_DATE_SECONDS,
  TOOL_DATE_MILLISECONDS,
  TOOL_DATE_MICROSECONDS,
  TOOL_DATE_NANOSECONDS,
  TOOL_DATE_UNITS /* number of units */
} tool_date_unit;

/* The kind and unit of an array's times. */
typedef enum tool_date_kind { TOOL_NO_DATE, TOOL_TIMESTAMP, TOOL_DURATION } tool_date_kind;
typedef struct tool_date {
  tool_date_kind kind;
  tool_date_unit unit;
} tool_date;

enum { TOOL_DATE_TEXT = 48 };

/* Parses a text such as "2024-01-31", "2024-01-31T12:30" or "2024-01-31 12:30:00.123", which may
 * end in Z, and finds the longest unit in which this time is a whole number. Returns false for
 * other texts, and for dates that do not exist. */
bool tool_find_date_unit(const char *text, tool_date_unit *unit);
/* Converts a text that tool_find_date_unit accepts to a count of the unit. Returns false if the
 * count does not fit into 64 bits. */
bool tool_parse_date(const char *text, tool_date_unit unit, int64_t *count);
/* Writes a date's text. buffer: TOOL_DATE_TEXT bytes. */
void tool_date_text(int64_t count, tool_date_unit unit, char *buffer);
/* Returns the flags of kjit_formula_column for a column with this kind and unit. */
uint32_t tool_date_flags(const tool_date *date);
/* Returns the description of a formula's result with these flags. */
tool_date tool_date_of_flags(uint32_t flags);
/* Returns the name of the element type for messages, such as "date" or "milliseconds". */
const char *tool_date_name(const tool_date *date);

#endif
