/* Compilation targets: the format of their code, and their names. */
#include <stdlib.h>
#include <string.h>

#include "base/device.h"

#define STAGE(name) (1u << KJIT_STAGE_##name)
static const kj_code_format formats[] = { [KJ_TARGET_CPU] = { .stage = KJIT_STAGE_OBJECT,
                                                              .own = STAGE(ASM) | STAGE(OBJECT),
                                                              .own_names = "asm and object" },
                                          [KJ_TARGET_NVPTX] = { .stage = KJIT_STAGE_PTX,
                                                                .own = STAGE(PTX) | STAGE(CUBIN) |
                                                                       STAGE(SASS),
                                                                .own_names = "ptx, cubin and sass",
                                                                .is_linked = true } };
#undef STAGE
enum { TARGETS = sizeof formats / sizeof *formats };

const kj_code_format *kj_get_code_format(kj_target_kind target)
{
  KJ_ASSERT((unsigned)target < TARGETS);
  return &formats[target];
}

bool kj_has_stage(kj_target_kind target, kjit_stage stage)
{
  uint32_t others = 0;
  for (size_t i = 0; i < TARGETS; i++) others |= i != target ? formats[i].own : 0;
  return !(others >> stage & 1);
}

static const char *const level_names[] = {
  [KJ_CPU_OWN] = "cpu",
#define KJ_CPU_LEVEL(NAME, text, cpu, has_avx, has_avx2, has_avx512, vector_bytes) \
  [KJ_CPU_##NAME] = text,
#include "cpu_levels.def"
};

const char *kj_level_name(kj_cpu_level level)
{
  KJ_ASSERT(level < KJ_CPU_LEVEL_COUNT);
  return level_names[level];
}

kj_cpu_level kj_read_level(const char *text, size_t size_bytes)
{
  for (int level = KJ_CPU_OWN + 1; level < KJ_CPU_LEVEL_COUNT; level++)
    if (strlen(level_names[level]) == size_bytes && !memcmp(text, level_names[level], size_bytes))
      return (kj_cpu_level)level;
  return KJ_CPU_OWN;
}

bool kj_read_target(const char *text, kj_target *target)
{
  kj_cpu_level level = kj_read_level(text, strlen(text));
  if (level || !strcmp(text, level_names[KJ_CPU_OWN])) {
    *target = (kj_target){ .kind = KJ_TARGET_CPU, .level = level };
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
