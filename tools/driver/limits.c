#include "limits.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t offset;
  uint64_t scale;
} rows[] = {
#define KJIT_ROW(NAME, field, value, name, unit, scale, what) \
  { name, offsetof(kjit_compile_limits, field), scale },
#include <kjit/limits.def>
#undef KJIT_ROW
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

static uint64_t parse_amount(struct argp_state *state, const char *text, const char *amount,
                             uint64_t scale)
{
  char *end;
  double number = strtod(amount, &end), scaled = number * (double)scale;
  if (!strcmp(amount, "none")) return KJIT_NO_LIMIT;
  /* 0 is rejected, because the library takes it as the default */
  if (end == amount || *end || !(scaled >= 1 && scaled < 1e19))
    argp_error(state,
               "--compile-limit: expected a number above 0, or the word none, after = in '%s'",
               text);
  return (uint64_t)scaled;
}

void tool_parse_limit(struct argp_state *state, const char *text, kjit_compile_limits *limits)
{
  size_t length = strcspn(text, "="), row = 0;
  while (row < ROW_COUNT &&
         (strlen(rows[row].name) != length || strncmp(rows[row].name, text, length) != 0))
    row++;
  if (row == ROW_COUNT || !text[length])
    argp_error(state,
               "--compile-limit: expected NAME=NUMBER with the NAME time, instances, expressions, "
               "unrolled, instructions, memory or code, not '%s'",
               text);
  uint64_t value = parse_amount(state, text, text + length + 1, rows[row].scale);
  limits->size_bytes = sizeof *limits;
  memcpy((char *)limits + rows[row].offset, &value, sizeof value);
}
