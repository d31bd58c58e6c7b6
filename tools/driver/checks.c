#include "checks.h"

#include <string.h>

static const struct {
  const char *name;
  uint32_t checks;
} rows[] = {
  { "none", KJIT_CHECK_NONE },
  { "usual", KJIT_CHECK_USUAL },
  { "all", KJIT_CHECK_ALL },
  { "bounds", KJIT_CHECK_BOUNDS },
  { "division", KJIT_CHECK_DIVISION },
  { "assert", KJIT_CHECK_ASSERT },
  { "integer-division", KJIT_CHECK_INTEGER_DIVISION },
  { "float-division", KJIT_CHECK_FLOAT_DIVISION },
  { "barrier", KJIT_CHECK_BARRIER },
  { "uninitialized", KJIT_CHECK_UNINITIALIZED },
  { "races", KJIT_CHECK_RACES },
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

bool tool_parse_checks(const char *text, uint32_t *checks)
{
  *checks = KJIT_CHECK_NONE;
  for (const char *at = text;; at++) {
    size_t length = strcspn(at, ","), i = 0;
    while (i < ROW_COUNT && (strlen(rows[i].name) != length || strncmp(rows[i].name, at, length)))
      i++;
    if (i == ROW_COUNT) return false;
    *checks |= rows[i].checks;
    at += length;
    if (!*at) return true;
  }
}
