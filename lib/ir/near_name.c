#include "ir/near_name.h"

#include <string.h>

enum { MAX_NEAR_LENGTH = 40 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Returns the optimal string alignment distance, in which swapping two neighbouring letters is one
 * edit. Row i is for the first i characters of a. Only the last three rows are kept. Both strings
 * have at most MAX_NEAR_LENGTH characters. */
static size_t edit_distance(const char *a, const char *b)
{
  size_t n = strlen(a), m = strlen(b), rows[3][MAX_NEAR_LENGTH + 1];
  for (size_t j = 0; j <= m; j++) rows[0][j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= m; j++) {
      row[j] = least(least(row[j - 1], above[j]) + 1,
                     above[j - 1] + ((a[i - 1] | 0x20) != (b[j - 1] | 0x20)));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], before[j - 2] + 1);
    }
  }
  return rows[n % 3][m];
}

void ki_consider(ki_near *near, const char *candidate)
{
  /* candidates that are too long are skipped: there are hundreds of candidates, and a malicious
   * name can have millions of characters */
  size_t length = strnlen(near->name, MAX_NEAR_LENGTH + 1);
  if (!candidate || length < 2 || length > MAX_NEAR_LENGTH || strlen(candidate) > MAX_NEAR_LENGTH ||
      strlen(candidate) < 2)
    return;
  size_t distance = edit_distance(near->name, candidate);
  size_t allowed = length < 4 ? 1 : length < 8 ? 2 : 3;
  if (distance > allowed || distance >= strlen(candidate) ||
      (near->best && distance >= near->distance))
    return;
  near->best = candidate;
  near->distance = distance;
}
