/* A C program that calls the functions that kjit compiled from library.kir. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

float k_hypot2(float, float);
int16_t k_small(int8_t, uint16_t, bool);
float k_total(const float *, int64_t);
void k_fill(float *, int64_t, int64_t, int64_t, int64_t, float);
int64_t k_fib(int32_t);
bool k_even(int32_t);
double k_root(double);
int32_t k_times7(int32_t);

int main(void)
{
  float x[] = { 1, 2, 3, 4, 5, 6 };
  printf("%g %d %d %g %lld %d %d %g %d\n", k_hypot2(3, 4), k_small(-3, 65535, true),
         k_small(-3, 65535, false), k_total(x, 6), (long long)k_fib(20), k_even(4), k_even(5),
         k_root(9), k_times7(6));
  k_fill(x, 2, 3, 1, 2, 0.5f);
  for (int i = 0; i < 6; i++) printf("%g ", x[i]);
  puts("");
  return 0;
}
