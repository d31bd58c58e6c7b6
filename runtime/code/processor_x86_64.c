/* Determines the identity and this machine's level on x86-64. CPUID returns the features, and XCR0
 * tells which registers the system saves. */
#include <cpuid.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <string.h>

#include "code/disk.h"

/* ---- CPUID ---- */

/* The CPUID leaves that describe the vendor, family, model, stepping and all features. The masks
 * exclude bits that differ between the cores of one machine. */
enum { FEATURES = 1, MORE_FEATURES = 2, EXTENDED = 9 };
static const struct {
  uint32_t leaf, subleaf, masks[4];
} leaves[] = {
  { 0, 0, { ~0u, ~0u, ~0u, ~0u } },
  [FEATURES] = { 1, 0, { ~0u, 0, ~0u, ~0u } },
  [MORE_FEATURES] = { 7, 0, { ~0u, ~0u, ~0u, ~0u } },
  { 7, 1, { ~0u, ~0u, ~0u, ~0u } },
  { 0xd, 1, { ~0u, 0, 0, 0 } },
  { 0x14, 0, { 0, ~0u, 0, 0 } },
  { 0x19, 0, { 0, ~0u, 0, 0 } },
  { 0x1e, 1, { ~0u, 0, 0, 0 } },
  { 0x24, 0, { 0, ~0u, 0, 0 } },
  [EXTENDED] = { 0x80000001, 0, { ~0u, 0, ~0u, ~0u } },
  { 0x80000008, 0, { 0, ~0u, 0, 0 } },
};
enum { LEAVES = sizeof leaves / sizeof *leaves };

/* In a virtual machine each CPUID instruction calls the hypervisor, which takes up to about ten
 * microseconds, so a process reads each leaf only once. */
static struct {
  pthread_once_t once;
  uint32_t registers[LEAVES][4]; /* eax to edx; 0 if the processor does not have the leaf */
  uint64_t saved;                /* XCR0, the registers that the system saves, or 0 if there is no
                                  * XCR0 */
} processor = { .once = PTHREAD_ONCE_INIT };

static uint64_t read_enabled_state(void)
{
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

static void read_processor(void)
{
  enum { EXTENDED_LEAVES = 0x80000000, OSXSAVE = 1 << 27 };
  uint32_t last, last_extended, unused[3];
  __cpuid(0, last, unused[0], unused[1], unused[2]);
  __cpuid(EXTENDED_LEAVES, last_extended, unused[0], unused[1], unused[2]);
  for (size_t i = 0; i < LEAVES; i++) {
    uint32_t leaf = leaves[i].leaf, *r = processor.registers[i];
    if (leaf <= (leaf < EXTENDED_LEAVES ? last : last_extended))
      __cpuid_count(leaf, leaves[i].subleaf, r[0], r[1], r[2], r[3]);
  }
  if (processor.registers[FEATURES][2] & OSXSAVE) processor.saved = read_enabled_state();
}

kj_digest kj_identify_processor(void)
{
  uint64_t words[LEAVES * 4 + 2] = { 0 };
  pthread_once(&processor.once, read_processor);
  for (size_t i = 0; i < LEAVES; i++)
    for (size_t k = 0; k < 4; k++)
      words[i * 4 + k] = processor.registers[i][k] & leaves[i].masks[k];
  words[LEAVES * 4] = processor.saved;
  const char *version = gnu_get_libc_version();
  kj_digest library = kj_digest_bytes(version, strlen(version));
  words[LEAVES * 4 + 1] = library.low;
  return kj_digest_bytes(words, sizeof words);
}

/* ---- levels ---- */

/* A feature bit of CPUID. */
typedef struct level_bit {
  uint32_t leaf, word, bit; /* leaf: index into `leaves`; word: 0 to 3 for eax, ebx, ecx, edx */
  const char *name;
} level_bit;

enum { A, B, C, D, AVX_STATE = 6, AVX512_STATE = 0xe6 };

/* Levels of the x86-64 psABI. Each list has the features that a level requires in addition to those
 * of the level before it. */
static const level_bit v2[] = { { FEATURES, C, 13, "cx16" },   { EXTENDED, C, 0, "lahf" },
                                { FEATURES, C, 23, "popcnt" }, { FEATURES, C, 0, "sse3" },
                                { FEATURES, C, 19, "sse4.1" }, { FEATURES, C, 20, "sse4.2" },
                                { FEATURES, C, 9, "ssse3" } },
                       v3[] = { { FEATURES, C, 28, "avx" },      { MORE_FEATURES, B, 5, "avx2" },
                                { MORE_FEATURES, B, 3, "bmi1" }, { MORE_FEATURES, B, 8, "bmi2" },
                                { FEATURES, C, 29, "f16c" },     { FEATURES, C, 12, "fma" },
                                { FEATURES, C, 22, "movbe" },    { EXTENDED, C, 5, "lzcnt" },
                                { FEATURES, C, 27, "osxsave" } },
                       v4[] = { { MORE_FEATURES, B, 16, "avx512f" },
                                { MORE_FEATURES, B, 17, "avx512dq" },
                                { MORE_FEATURES, B, 28, "avx512cd" },
                                { MORE_FEATURES, B, 30, "avx512bw" },
                                { MORE_FEATURES, B, 31, "avx512vl" } };

/* Features with which code for this specific machine uses wider registers, although the machine
 * does not reach the level v3 or v4. */
static const level_bit own_v3[] = { { FEATURES, C, 28, "avx" } };
static const level_bit own_v4[] = { { MORE_FEATURES, B, 16, "avx512f" },
                                    { MORE_FEATURES, B, 30, "avx512bw" },
                                    { MORE_FEATURES, B, 31, "avx512vl" } };

/* Returns the name of the first bit that is not set, or NULL if all are set. */
static const char *find_unset(const level_bit *bits, size_t count)
{
  pthread_once(&processor.once, read_processor);
  for (size_t i = 0; i < count; i++)
    if (!(processor.registers[bits[i].leaf][bits[i].word] >> bits[i].bit & 1)) return bits[i].name;
  return NULL;
}

#define FIND_UNSET(bits) find_unset(bits, sizeof(bits) / sizeof *(bits))
#define HAS(bits) (!FIND_UNSET(bits))

kj_cpu_level kj_find_level(void)
{
  if (!HAS(v2)) return KJ_CPU_OWN;
  uint64_t state = processor.saved;
  bool has_avx = (state & AVX_STATE) == AVX_STATE,
       has_avx512 = (state & AVX512_STATE) == AVX512_STATE;
  bool is_v3 = has_avx && HAS(v3), is_v4 = is_v3 && has_avx512 && HAS(v4);
  if (is_v4) return KJ_CPU_V4;
  /* machine-specific code would use wider registers */
  if (has_avx512 && HAS(own_v4)) return KJ_CPU_OWN;
  if (is_v3) return KJ_CPU_V3;
  return has_avx && HAS(own_v3) ? KJ_CPU_OWN : KJ_CPU_V2;
}

const char *kj_find_missing_feature(kj_cpu_level level)
{
  const char *missing = level >= KJ_CPU_V2 ? FIND_UNSET(v2) : NULL;
  uint64_t state = processor.saved; /* FIND_UNSET has read the leaf */
  if (!missing && level >= KJ_CPU_V3) missing = FIND_UNSET(v3);
  if (!missing && level >= KJ_CPU_V3 && (state & AVX_STATE) != AVX_STATE) missing = "avx";
  if (!missing && level >= KJ_CPU_V4) missing = FIND_UNSET(v4);
  if (!missing && level >= KJ_CPU_V4 && (state & AVX512_STATE) != AVX512_STATE) missing = "avx512f";
  return missing;
}
#undef HAS
#undef FIND_UNSET
