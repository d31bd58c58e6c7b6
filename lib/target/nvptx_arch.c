/* nvptx: architectures and PTX versions. LLVM ends the process on those that it does not know or
 * that do not fit, so a table of our own refuses them first. */
#include "target/nvptx.h"

#include "target/target.h"

/* Ascending; those without a suffix run on everything newer of their kind. */
static const kj_nvptx_arch arches[] = {
  { 75, 0, 63 },    { 80, 0, 70 },    { 86, 0, 71 },    { 87, 0, 74 },    { 88, 0, 90 },
  { 89, 0, 78 },    { 90, 0, 78 },    { 90, 'a', 80 },  { 100, 0, 86 },   { 100, 'a', 86 },
  { 100, 'f', 88 }, { 101, 0, 86 },   { 103, 0, 88 },   { 103, 'a', 88 }, { 103, 'f', 88 },
  { 110, 0, 90 },   { 110, 'a', 90 }, { 110, 'f', 90 }, { 120, 0, 87 },   { 120, 'a', 87 },
  { 120, 'f', 88 }, { 121, 0, 88 },   { 121, 'a', 88 }, { 121, 'f', 88 },
};
enum { ARCH_COUNT = sizeof arches / sizeof *arches };

/* The versions that LLVM can write, ascending. */
static const uint32_t ptx_versions[] = { 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
                                         78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90 };
enum { PTX_COUNT = sizeof ptx_versions / sizeof *ptx_versions };

static const kj_nvptx_arch *find_arch(uint32_t arch, char suffix)
{
  for (int i = 0; i < ARCH_COUNT; i++)
    if (arches[i].arch == arch && arches[i].suffix == suffix) return &arches[i];
  return NULL;
}

/* Newer than the table: the newest without suffix that the PTX version allows. */
static const kj_nvptx_arch *newest_arch(uint32_t ptx_limit)
{
  const kj_nvptx_arch *best = NULL;
  for (int i = 0; i < ARCH_COUNT; i++)
    if (!arches[i].suffix && (!ptx_limit || arches[i].least_ptx <= ptx_limit)) best = &arches[i];
  return best;
}

static uint32_t highest_version(uint32_t limit)
{
  uint32_t best = 0;
  for (int i = 0; i < PTX_COUNT; i++)
    if (ptx_versions[i] <= limit) best = ptx_versions[i];
  return best;
}

static const kj_nvptx_arch *select_arch(kj_compilation *c)
{
  const kj_target *target = &c->request->target;
  const char suffix[2] = { target->suffix, 0 };
  const kj_nvptx_arch *row = find_arch(target->arch, target->suffix);
  if (!row && target->arch > arches[ARCH_COUNT - 1].arch && !target->suffix)
    row = newest_arch(target->ptx_version);
  if (!row)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "unknown architecture sm_%u%s: kjit compiles for sm_75 and newer", target->arch,
            suffix);
  if (target->ptx_version && highest_version(target->ptx_version) < row->least_ptx)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "sm_%u%s needs PTX %u.%u; PTX %u.%u was asked for", row->arch, suffix,
            row->least_ptx / 10, row->least_ptx % 10, target->ptx_version / 10,
            target->ptx_version % 10);
  return row;
}

static bool has_recursion(const kj_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++)
    if (c->instances.items[i]->is_recursive) return true;
  return false;
}

/* stacksave */
enum { STACK_PTX = 73 };

/* Built-ins and facts of the language need PTX 6.2 at most, which every architecture here has; the
 * labels in the sections of debug information need 7.5. */
kj_nvptx_choice kj_choose_nvptx(kj_compilation *c)
{
  enum { LEAST_FOR_DEBUG = 75 };
  const kj_nvptx_arch *row = select_arch(c);
  uint32_t limit = c->request->target.ptx_version, least = row->least_ptx;
  bool is_full = c->request->debug == KJIT_DEBUG_FULL;
  if (is_full && least < LEAST_FOR_DEBUG) least = LEAST_FOR_DEBUG;
  if (is_full && limit && highest_version(limit) < LEAST_FOR_DEBUG)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "full debug information needs PTX 7.5; PTX %u.%u was asked for", limit / 10,
            limit % 10);
  if (has_recursion(c) && least < STACK_PTX) least = STACK_PTX;
  if (c->least_ptx > least) least = c->least_ptx; /* a lower limit was refused by name */
  if (limit && highest_version(limit) < least)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "recursion needs PTX %u.%u (a driver for CUDA 11.3); PTX %u.%u was asked for",
            least / 10, least % 10, limit / 10, limit % 10);
  return (kj_nvptx_choice){ .arch = row, .ptx = limit ? highest_version(limit) : least };
}

void kj_check_nvptx(kj_compilation *c)
{
  const kj_nvptx_arch *row = select_arch(c);
  if (row->arch < c->request->target.arch)
    kj_warn(c, (kj_location){ 0 }, KJIT_SEVERITY_REMARK,
            "sm_%u is newer than this kjit knows: compiled for sm_%u", c->request->target.arch,
            row->arch);
}
