/* Names of targets: what code is compiled for. */
#include <stdlib.h>
#include <string.h>

#include "base/device.h"

static const char *const level_names[] = {
  [KJ_CPU_OWN] = "cpu",
#define KJ_CPU_LEVEL(NAME, text, has_avx, has_avx2, has_avx512, vector_bytes) \
  [KJ_CPU_##NAME] = text,
#include "cpu_levels.def"
};

const char *kj_level_name(kj_cpu_level level)
{
  KJ_ASSERT(level < KJ_CPU_LEVEL_COUNT);
  return level_names[level];
}

bool kj_read_target(const char *text, kj_target *target)
{
  for (int level = 0; level < KJ_CPU_LEVEL_COUNT; level++) {
    if (strcmp(text, level_names[level])) continue;
    *target = (kj_target){ .kind = KJ_TARGET_CPU, .level = (kj_cpu_level)level };
    return true;
  }
  size_t digits = strncmp(text, "sm_", 3) ? 0 : strspn(text + 3, "0123456789");
  const char *suffix = text + 3 + digits;
  bool is_suffix = digits && (!*suffix || ((*suffix == 'a' || *suffix == 'f') && !suffix[1]));
  if (digits < 2 || digits > 3 || !is_suffix) return false;
  *target = (kj_target){ .kind = KJ_TARGET_NVPTX,
                         .arch = (uint32_t)strtoul(text + 3, NULL, 10),
                         .suffix = *suffix };
  return true;
}
