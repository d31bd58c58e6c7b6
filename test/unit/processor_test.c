/* The levels of this processor, compared with the features that the system's /proc/cpuinfo lists;
 * and its identity, which is the same in every thread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"
#include "kj_test.h"

/* The features of each level, by the names of the Linux kernel. A system that saves no wide
 * registers has no `avx` in the list. */
typedef struct row {
  const char *level, *features;
} row;
static const row rows[] = {
  { "x86-64-v2", "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3" },
  { "x86-64-v3", "avx avx2 bmi1 bmi2 f16c fma movbe abm xsave" },
  { "x86-64-v4", "avx512f avx512dq avx512cd avx512bw avx512vl" },
  { "armv8-a", "fp asimd" },
};

/* Returns the words of the first line of features, each enclosed in blanks. */
static char *read_features(void)
{
#if defined __aarch64__
  static const char title[] = "Features";
#else
  static const char title[] = "flags";
#endif
  char *line = NULL;
  size_t capacity = 0;
  FILE *file = fopen("/proc/cpuinfo", "r");
  assert_non_null(file);
  while (getline(&line, &capacity, file) > 0) {
    char *colon = strchr(line, ':'), *end = strchr(line, '\n');
    if (!colon || strncmp(line, title, sizeof title - 1) != 0) continue;
    if (end) *end = ' ';
    char *features = strdup(colon + 1);
    free(line);
    fclose(file);
    return features;
  }
  free(line);
  fclose(file);
  return NULL;
}

static bool has_all(const char *features, const char *wanted)
{
  char *words = strdup(wanted), *rest = NULL, padded[32];
  bool has = true;
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    snprintf(padded, sizeof padded, " %s ", word);
    has &= strstr(features, padded) != NULL;
  }
  free(words);
  return has;
}

static void test_levels(void **state)
{
  (void)state;
  char *features = read_features();
  if (!features) skip(); /* an emulator may show /proc/cpuinfo of another processor */
  bool has = true;       /* a level includes those before it */
  kj_cpu_level highest = KJ_CPU_OWN;
  for (int level = KJ_CPU_OWN + 1; level < KJ_CPU_LEVEL_COUNT; level++) {
    size_t i = 0;
    while (strcmp(rows[i].level, kj_level_name((kj_cpu_level)level)) != 0)
      assert_true(++i < sizeof rows / sizeof *rows);
    has &= has_all(features, rows[i].features);
    const char *missing = kj_find_missing_feature((kj_cpu_level)level);
    assert_int_equal(has, missing == NULL);
    if (has) highest = (kj_cpu_level)level;
  }
  free(features);
  assert_null(kj_find_missing_feature(KJ_CPU_OWN));
  /* OWN means that registers are wider than those of the named level */
  kj_cpu_level found = kj_find_level();
  assert_true(found == highest || found == KJ_CPU_OWN);
}

static void *identify(void *identity)
{
  *(kj_digest *)identity = kj_identify_processor();
  return NULL;
}

static void test_identity(void **state)
{
  (void)state;
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  kj_digest identities[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, identify, &identities[i]), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < THREADS; i++) {
    assert_true(identities[i].low || identities[i].high);
    assert_memory_equal(&identities[i], &identities[0], sizeof *identities);
  }
}

int main(void)
{
  /* this test comes first, so that its threads are the first to read the processor's identity */
  const struct CMUnitTest tests[] = { cmocka_unit_test(test_identity),
                                      cmocka_unit_test(test_levels) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
