/* pairs_loop.c: pairs_loop ROWS POINTS [repetitions]: measures plain C loops with OpenMP. They
 * compute the sum over j of exp(-|x_i - y_j|^2), and the nearest j. The program prints a line with
 * the median ms of each. pairs.py compiles it with gcc -O3 -march=native -ffast-math -fopenmp; with
 * these options exp is vectorized.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_REPETITIONS = 100 };

/* Stored by columns, so that points with adjacent j are adjacent in memory. */
typedef struct points {
  float *x, *y, *z;
  int count;
} points;

static float *draw(int count)
{
  float *numbers = malloc((size_t)count * sizeof *numbers);
  for (int i = 0; numbers && i < count; i++) numbers[i] = (float)rand() / (float)RAND_MAX;
  return numbers;
}

static points draw_points(int count)
{
  points p = { draw(count), draw(count), draw(count), count };
  if (p.x && p.y && p.z) return p;
  fprintf(stderr, "out of memory\n");
  exit(EXIT_FAILURE);
}

static float squared(const points *a, int i, const points *b, int j)
{
  float x = a->x[i] - b->x[j], y = a->y[i] - b->y[j], z = a->z[i] - b->z[j];
  return x * x + y * y + z * z;
}

static void sum(const points *a, const points *b, float *result)
{
#pragma omp parallel for
  for (int i = 0; i < a->count; i++) {
    float s = 0;
    for (int j = 0; j < b->count; j++) s += expf(-squared(a, i, b, j));
    result[i] = s;
  }
}

static void nearest(const points *a, const points *b, float *result)
{
#pragma omp parallel for
  for (int i = 0; i < a->count; i++) {
    float least = squared(a, i, b, 0);
    int place = 0;
    for (int j = 1; j < b->count; j++) {
      float d = squared(a, i, b, j);
      if (d < least) {
        least = d;
        place = j;
      }
    }
    result[i] = (float)place;
  }
}

static int compare(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_ms(void (*run)(const points *, const points *, float *), const points *a,
                        const points *b, float *result, int repetitions)
{
  double times[MOST_REPETITIONS];
  for (int i = -1; i < repetitions; i++) {
    struct timespec first, last;
    clock_gettime(CLOCK_MONOTONIC, &first);
    run(a, b, result);
    clock_gettime(CLOCK_MONOTONIC, &last);
    if (i >= 0)
      times[i] =
        1e3 * (double)(last.tv_sec - first.tv_sec) + 1e-6 * (double)(last.tv_nsec - first.tv_nsec);
  }
  qsort(times, (size_t)repetitions, sizeof *times, compare);
  return times[repetitions / 2];
}

int main(int argc, char **argv)
{
  int rows = argc > 1 ? atoi(argv[1]) : 20000, count = argc > 2 ? atoi(argv[2]) : 100000,
      repetitions = argc > 3 ? atoi(argv[3]) : 5;
  if (rows < 1 || count < 1 || repetitions < 1 || repetitions > MOST_REPETITIONS) {
    fprintf(stderr, "usage: pairs_loop ROWS POINTS [1 to %d repetitions]\n", MOST_REPETITIONS);
    return EXIT_FAILURE;
  }
  points a = draw_points(rows), b = draw_points(count);
  float *result = draw(rows);
  double sums = median_ms(sum, &a, &b, result, repetitions),
         places = median_ms(nearest, &a, &b, result, repetitions);
  printf("%.3f %.3f %g\n", sums, places, (double)result[rows / 2]);
  return EXIT_SUCCESS;
}
