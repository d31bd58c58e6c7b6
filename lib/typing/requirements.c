/* What built-ins need of a GPU: architecture and PTX version. LLVM ends the process on some of what
 * an architecture lacks and hands the rest to ptxas: so it is refused here, by name. */
#include "typing/rules.h"

typedef struct requirement {
  kj_builtin_id id;
  uint16_t arch, ptx;
  char suffix; /* 'a': of that architecture only */
} requirement;

static const requirement requirements[] = {
  { KJ_BUILTIN_GRID_SYNC, 70, 60, 0 },
  { KJ_BUILTIN_CLUSTER_SYNC, 90, 78, 0 },
  { KJ_BUILTIN_CLUSTER_ARRIVE, 90, 78, 0 },
  { KJ_BUILTIN_CLUSTER_WAIT, 90, 78, 0 },
  { KJ_BUILTIN_BARRIER_SYNC, 70, 60, 0 },
  { KJ_BUILTIN_BARRIER_ARRIVE, 70, 60, 0 },
  { KJ_BUILTIN_FENCE_PROXY_ASYNC, 90, 80, 0 },
  { KJ_BUILTIN_FENCE_MBARRIER_INIT, 90, 80, 0 },
  { KJ_BUILTIN_MBARRIER_INIT, 80, 70, 0 },
  { KJ_BUILTIN_MBARRIER_INVAL, 80, 70, 0 },
  { KJ_BUILTIN_MBARRIER_ARRIVE, 80, 70, 0 },
  { KJ_BUILTIN_MBARRIER_EXPECT_TX, 90, 80, 0 },
  { KJ_BUILTIN_MBARRIER_ARRIVE_EXPECT_TX, 90, 80, 0 },
  { KJ_BUILTIN_MBARRIER_TEST_WAIT, 80, 70, 0 },
  { KJ_BUILTIN_MBARRIER_TEST_WAIT_PARITY, 80, 71, 0 },
  { KJ_BUILTIN_MBARRIER_TRY_WAIT, 90, 78, 0 },
  { KJ_BUILTIN_MBARRIER_TRY_WAIT_PARITY, 90, 78, 0 },
  { KJ_BUILTIN_MBARRIER_WAIT, 80, 70, 0 },
  { KJ_BUILTIN_MBARRIER_WAIT_PARITY, 80, 71, 0 },
  { KJ_BUILTIN_MBARRIER_PENDING_COUNT, 80, 70, 0 },
  { KJ_BUILTIN_MAP_SHARED_RANK, 90, 78, 0 },
  { KJ_BUILTIN_CP_ASYNC, 80, 70, 0 },
  { KJ_BUILTIN_CP_ASYNC_COMMIT, 80, 70, 0 },
  { KJ_BUILTIN_CP_ASYNC_WAIT, 80, 70, 0 },
  { KJ_BUILTIN_CP_ASYNC_ARRIVE, 80, 70, 0 },
  { KJ_BUILTIN_CP_ASYNC_BULK, 90, 80, 0 },
  { KJ_BUILTIN_CP_ASYNC_TENSOR, 90, 80, 0 },
  { KJ_BUILTIN_CP_ASYNC_TENSOR_STORE, 90, 80, 0 },
  { KJ_BUILTIN_CP_ASYNC_BULK_COMMIT, 90, 80, 0 },
  { KJ_BUILTIN_CP_ASYNC_BULK_WAIT, 90, 80, 0 },
  { KJ_BUILTIN_CP_ASYNC_BULK_WAIT_READ, 90, 80, 0 },
  { KJ_BUILTIN_WGMMA_F16, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_BF16, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_TF32, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_S8, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_U8, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_E4M3, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_E5M2, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_FENCE, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_COMMIT, 90, 80, 'a' },
  { KJ_BUILTIN_WGMMA_WAIT, 90, 80, 'a' },
  { KJ_BUILTIN_MATRIX_DESCRIPTOR, 90, 80, 'a' },
};

static const char *version_text(kj_compilation *c, uint32_t ptx)
{
  return kj_format(c->arena, "PTX %u.%u", ptx / 10, ptx % 10);
}

void kj_require_arch(kj_scope *s, const char *what, kj_location location, uint32_t arch,
                     char suffix, uint32_t ptx)
{
  kj_compilation *c = s->c;
  const kj_target *target = &c->request->target;
  if (target->kind == KJ_TARGET_CPU || s->is_quiet) return;
  const char given[2] = { target->suffix, 0 }, wanted[2] = { suffix, 0 };
  bool fits = suffix ? target->arch == arch && target->suffix == suffix : target->arch >= arch;
  if (!fits && suffix)
    kj_fail(c, location, KJIT_ERROR_UNSUPPORTED, "%s works on sm_%u%s only; this is sm_%u%s", what,
            arch, wanted, target->arch, given);
  if (!fits)
    kj_fail(c, location, KJIT_ERROR_UNSUPPORTED,
            "%s works from sm_%u on; this is sm_%u%s (`if arch >= %u` keeps it from older ones)",
            what, arch, target->arch, given, arch);
  if (target->ptx_version && target->ptx_version < ptx)
    kj_fail(c, location, KJIT_ERROR_UNSUPPORTED, "%s needs %s; %s is what the driver takes", what,
            version_text(c, ptx), version_text(c, target->ptx_version));
  if (c->least_ptx < ptx) c->least_ptx = ptx;
}

void kj_check_requirement(kj_scope *s, const kj_operands *o)
{
  for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++) {
    const requirement *r = &requirements[i];
    if (r->id != o->builtin->id) continue;
    kj_require_arch(s, kj_format(s->arena, "`%s`", o->builtin->name), o->location, r->arch,
                    r->suffix, r->ptx);
    return;
  }
}
