#include "support/assert.h"

#include <stdio.h>
#include <stdlib.h>

void kj_fail_assertion(const char *condition, const char *file, int line, const char *function)
{
  fprintf(stderr, "%s:%d: %s: kjit's assertion does not hold: %s\n", file, line, function,
          condition);
  abort();
}
