/* The seed of a C test with random inputs. Each run has a new seed. The test prints the seed, so
 * that the output of a failed test shows it, and KJIT_TEST_SEED=N repeats the run. seeds.py does
 * the same for tests in Python. */
#ifndef KJIT_TEST_SEED_H
#define KJIT_TEST_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Returns a number of 32 bits, as srand takes it. */
static inline uint32_t kj_draw_seed(void)
{
  const char *given = getenv("KJIT_TEST_SEED");
  struct timespec now = { 0 };
  clock_gettime(CLOCK_REALTIME, &now);
  /* processes that begin in one nanosecond have different numbers */
  uint32_t drawn = (uint32_t)now.tv_sec * 1000003u ^ (uint32_t)now.tv_nsec ^
                   (uint32_t)getpid() * 2654435769u,
           seed = given && *given ? (uint32_t)strtoull(given, NULL, 10) : drawn;
  fprintf(stderr, "seed: KJIT_TEST_SEED=%u repeats the run\n", seed);
  return seed;
}

#endif
