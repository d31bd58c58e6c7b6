/* The identity of this machine and its level, for x86-64: CPUID says what it has, XCR0 which
 * registers the system saves. */
#include <cpuid.h>
#include <gnu/libc-version.h>
#include <string.h>

#include "code/disk.h"

static uint64_t read_enabled_state(void)
{
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Leaves 1 and 7 and their like: vendor, family, model, stepping and every feature. Without what
 * differs between the cores of one machine. */
kj_digest kj_identify_processor(void)
{
  static const struct {
    uint32_t leaf, subleaf, masks[4];
  } leaves[] = {
    { 0, 0, { ~0u, ~0u, ~0u, ~0u } },    { 1, 0, { ~0u, 0, ~0u, ~0u } },
    { 7, 0, { ~0u, ~0u, ~0u, ~0u } },    { 7, 1, { ~0u, ~0u, ~0u, ~0u } },
    { 0xd, 1, { ~0u, 0, 0, 0 } },        { 0x14, 0, { 0, ~0u, 0, 0 } },
    { 0x19, 0, { 0, ~0u, 0, 0 } },       { 0x1e, 1, { ~0u, 0, 0, 0 } },
    { 0x24, 0, { 0, ~0u, 0, 0 } },       { 0x80000001, 0, { ~0u, 0, ~0u, ~0u } },
    { 0x80000008, 0, { 0, ~0u, 0, 0 } },
  };
  enum { LEAVES = sizeof leaves / sizeof *leaves, OSXSAVE = 1 << 27 };
  uint64_t words[LEAVES * 4 + 2] = { 0 };
  bool has_state = false;
  for (size_t i = 0; i < LEAVES; i++) {
    uint32_t r[4] = { 0 };
    if (!__get_cpuid_count(leaves[i].leaf, leaves[i].subleaf, &r[0], &r[1], &r[2], &r[3])) continue;
    if (leaves[i].leaf == 1) has_state = r[2] & OSXSAVE;
    for (size_t k = 0; k < 4; k++) words[i * 4 + k] = r[k] & leaves[i].masks[k];
  }
  if (has_state) words[LEAVES * 4] = read_enabled_state();
  const char *version = gnu_get_libc_version();
  kj_digest library = kj_digest_bytes(version, strlen(version));
  words[LEAVES * 4 + 1] = library.low;
  return kj_digest_bytes(words, sizeof words);
}

/* A bit of CPUID. */
typedef struct level_bit {
  uint32_t leaf, word, bit; /* word: of eax, ebx, ecx, edx */
  const char *name;
} level_bit;

enum { A, B, C, D, EXTENDED = 0x80000001, AVX_STATE = 6, AVX512_STATE = 0xe6 };

/* The levels as the psABI for x86-64 has them; each adds to the one before it. */
static const level_bit v2[] = { { 1, C, 13, "cx16" },   { EXTENDED, C, 0, "lahf" },
                                { 1, C, 23, "popcnt" }, { 1, C, 0, "sse3" },
                                { 1, C, 19, "sse4.1" }, { 1, C, 20, "sse4.2" },
                                { 1, C, 9, "ssse3" } },
                       v3[] = { { 1, C, 28, "avx" },    { 7, B, 5, "avx2" },
                                { 7, B, 3, "bmi1" },    { 7, B, 8, "bmi2" },
                                { 1, C, 29, "f16c" },   { 1, C, 12, "fma" },
                                { 1, C, 22, "movbe" },  { EXTENDED, C, 5, "lzcnt" },
                                { 1, C, 27, "osxsave" } },
                       v4[] = { { 7, B, 16, "avx512f" },
                                { 7, B, 17, "avx512dq" },
                                { 7, B, 28, "avx512cd" },
                                { 7, B, 30, "avx512bw" },
                                { 7, B, 31, "avx512vl" } };

/* Instructions of a level that v2, or v3, does not have, whose registers are wider. */
static const level_bit own_v3[] = { { 1, C, 28, "avx" } };
static const level_bit own_v4[] = { { 7, B, 16, "avx512f" },
                                    { 7, B, 30, "avx512bw" },
                                    { 7, B, 31, "avx512vl" } };

/* Returns the name of the first bit that is not set; NULL: all are. */
static const char *find_unset(const level_bit *bits, size_t count)
{
  for (size_t i = 0; i < count; i++) {
    uint32_t r[4] = { 0 };
    if (!__get_cpuid_count(bits[i].leaf, 0, &r[0], &r[1], &r[2], &r[3]) ||
        !(r[bits[i].word] >> bits[i].bit & 1))
      return bits[i].name;
  }
  return NULL;
}

#define FIND_UNSET(bits) find_unset(bits, sizeof(bits) / sizeof *(bits))
#define HAS(bits) (!FIND_UNSET(bits))

/* Which registers the system saves: XCR0. */
static uint64_t find_saved(void)
{
  static const level_bit saves[] = { { 1, C, 27, "osxsave" } };
  return HAS(saves) ? read_enabled_state() : 0;
}

kj_cpu_level kj_find_level(void)
{
  if (!HAS(v2)) return KJ_CPU_OWN;
  uint64_t state = find_saved();
  bool has_avx = (state & AVX_STATE) == AVX_STATE,
       has_avx512 = (state & AVX512_STATE) == AVX512_STATE;
  bool is_v3 = has_avx && HAS(v3), is_v4 = is_v3 && has_avx512 && HAS(v4);
  if (is_v4) return KJ_CPU_V4;
  if (has_avx512 && HAS(own_v4)) return KJ_CPU_OWN; /* code of its own would have wider registers */
  if (is_v3) return KJ_CPU_V3;
  return has_avx && HAS(own_v3) ? KJ_CPU_OWN : KJ_CPU_V2;
}

const char *kj_find_missing_feature(kj_cpu_level level)
{
  const char *missing = level >= KJ_CPU_V2 ? FIND_UNSET(v2) : NULL;
  uint64_t state = level >= KJ_CPU_V3 ? find_saved() : 0;
  if (!missing && level >= KJ_CPU_V3) missing = FIND_UNSET(v3);
  if (!missing && level >= KJ_CPU_V3 && (state & AVX_STATE) != AVX_STATE) missing = "avx";
  if (!missing && level >= KJ_CPU_V4) missing = FIND_UNSET(v4);
  if (!missing && level >= KJ_CPU_V4 && (state & AVX512_STATE) != AVX512_STATE) missing = "avx512f";
  return missing;
}
#undef HAS
#undef FIND_UNSET
