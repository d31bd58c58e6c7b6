/* Sets the variables that a function of the kernel IR reads. */
#include <stdint.h>
#include <stdio.h>

struct {
  float factor;
  int16_t offsets[4];
} scale = { 2, { 1, 2, 3, -5 } };
int32_t places[2] = { 0, 2 };

float scaled(float x);

int main(void)
{
  printf("%g ", (double)scaled(10));
  scale.factor = 4;
  printf("%g ", (double)scaled(10));
  places[1] = 3;
  printf("%g\n", (double)scaled(0));
  return 0;
}
