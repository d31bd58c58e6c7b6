/* The functions that outside.kir declares, as an application defines them. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

float scale(float x, int32_t n) { return fabsf(2 * x) * 2.5f * (float)n; }
int16_t pick(bool which, int8_t a, uint16_t b) { return which ? a : (int16_t)b; }
float window(const float *x, int64_t n, int64_t i) { return x[i] + x[i < n - 1 ? i + 1 : i]; }
void put(double *x, int64_t rows, int64_t columns, int64_t stride0, int64_t stride1, int64_t i,
         int64_t j, double v)
{
  if (i < rows && j < columns) x[i * stride0 + j * stride1] = v;
}
