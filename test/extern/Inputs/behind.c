/* Writes an array that it was handed before, through a type that does not say so. */
#include <stdint.h>

static float *kept;

void keep(const float *x, int64_t n)
{
  (void)n;
  kept = (float *)x;
}
float bump(void) { return kept[0] += 1; }
