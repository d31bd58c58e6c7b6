/* Determines the identity and this machine's level on AArch64. The system (AT_HWCAP) tells which
 * instruction sets programs may use. /proc/cpuinfo names the cores; LLVM reads it as well. */
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "code/disk.h"

/* ---- identity ---- */

/* /proc/cpuinfo has lines with the implementer, part and revision of each core. A machine may have
 * different cores, so the digests of all different lines are collected. There are only a few
 * different lines. */
enum { MOST_LINES = 64 };

static bool is_known(const kj_digest *lines, size_t count, kj_digest line)
{
  for (size_t i = 0; i < count; i++)
    if (lines[i].low == line.low && lines[i].high == line.high) return true;
  return false;
}

static size_t read_cores(kj_digest *lines)
{
  static const char prefix[] = "CPU ";
  size_t count = 0, capacity = 0;
  char *text = NULL;
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file) return 0;
  for (ssize_t length; count < MOST_LINES && (length = getline(&text, &capacity, file)) > 0;) {
    if (strncmp(text, prefix, sizeof prefix - 1) != 0) continue;
    kj_digest line = kj_digest_bytes(text, (size_t)length);
    if (!is_known(lines, count, line)) lines[count++] = line;
  }
  free(text);
  fclose(file);
  return count;
}

kj_digest kj_identify_processor(void)
{
  kj_digest words[MOST_LINES + 2] = { 0 };
  const char *version = gnu_get_libc_version();
  words[0] = kj_digest_bytes(version, strlen(version));
  words[1] = (kj_digest){ .low = getauxval(AT_HWCAP), .high = getauxval(AT_HWCAP2) };
  size_t count = read_cores(words + 2);
  return kj_digest_bytes(words, (count + 2) * sizeof *words);
}

/* ---- levels ---- */

/* A bit of AT_HWCAP. */
typedef struct level_bit {
  unsigned long bit;
  const char *name;
} level_bit;

static const level_bit armv8[] = { { HWCAP_FP, "fp" }, { HWCAP_ASIMD, "asimd" } };

const char *kj_find_missing_feature(kj_cpu_level level)
{
  unsigned long has = getauxval(AT_HWCAP);
  for (size_t i = 0; level >= KJ_CPU_ARMV8 && i < sizeof armv8 / sizeof *armv8; i++)
    if (!(has & armv8[i].bit)) return armv8[i].name;
  return NULL;
}

/* Code for this specific machine also has 16-byte registers, because it does not use SVE. */
kj_cpu_level kj_find_level(void)
{
  return kj_find_missing_feature(KJ_CPU_ARMV8) ? KJ_CPU_OWN : KJ_CPU_ARMV8;
}
