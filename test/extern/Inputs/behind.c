/* Writes to an array that it received in an earlier call, although the parameter types of this call
 * do not show it. */
#include <stdint.h>

static float *kept;

void keep(const float *x, int64_t n)
{
  (void)n;
  kept = (float *)x;
}
float bump(void) { return kept[0] += 1; }
