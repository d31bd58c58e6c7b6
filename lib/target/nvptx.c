/* The nvptx target: a typed kernel to PTX.
 *
 *   lower (lib/lower) -> link the math functions called -> optimize (a short pipeline) -> emit
 *
 * LLVM ends the process on what a target cannot do, so everything of that kind is refused here
 * first. */
#include "target/nvptx.h"

#include <stdio.h>
#include <stdlib.h>

#include "target/target.h"

/* ---- the state ---- */

struct kj_nvptx {
  kj_machines machines;
  kj_nvptx_library library;
};

kjit_status kj_create_nvptx(const char *libdevice_path, kj_diagnostics *diagnostics,
                            kj_nvptx **nvptx)
{
  *nvptx = NULL;
  kj_start_llvm();
  kj_nvptx *created = calloc(1, sizeof *created);
  if (!created) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  kjit_status status = kj_open_library(&created->library, libdevice_path, diagnostics);
  if (status) {
    free(created);
    return status;
  }
  kj_init_machines(&created->machines);
  *nvptx = created;
  return KJIT_OK;
}

void kj_destroy_nvptx(kj_nvptx *nvptx)
{
  if (!nvptx) return;
  kj_free_machines(&nvptx->machines);
  kj_close_library(&nvptx->library);
  free(nvptx);
}

/* ---- one emission ---- */

typedef struct nvptx_emission {
  kj_emission e;
  kj_nvptx *nvptx;
  kj_nvptx_choice choice;
  char cpu[16], features[16];
  kj_nvptx_lowering state;
  bool is_large; /* see kj_module_size */
} nvptx_emission;

/* ---- pipelines ----
 * default<O3> takes two to three times as long and gives no better code for kernels: the trees were
 * inlined already, and ptxas optimizes once more.
 *
 * A kernel without loops of its own and without shared memory (element-wise ones are) gains nothing
 * from code generation's optimizing level either: what it needs of it, the joining of loads and
 * stores, is in the pipeline, wide products for offsets are made by nvptx_offsets.c, and emission
 * then takes a third of the time. So with f32 functions of a library but for those with loops: the
 * machine code of each was compared, with and without. */

#define EARLY "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>"
#define LOOPS \
  "loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion,loop-unroll-full),sroa,gvn,dse,loop-" \
  "unroll<O2>,infer-alignment,instcombine<no-verify-fixpoint>," \
  "simplifycfg"
#define STRAIGHT \
  "loop-mssa(loop-rotate,licm),infer-address-spaces,separate-const-offset-from-gep,early-cse<" \
  "memssa>,load-store-vectorizer,nvptx-tag-invariant-loads"
#define LIBRARY "nvvm-reflect,always-inline,"

static bool is_straight(const nvptx_emission *own)
{
  const kj_lowering *l = &own->e.lowering;
  return !l->has_loops && !own->state.has_branches && !l->pending.count && !l->shared_places.count;
}

static void optimize(kj_emission *e)
{
  nvptx_emission *own = (nvptx_emission *)e;
  static const char *const pipelines[2][2] = {
    /* [is_straight][calls_library] */
    { "function(" EARLY "," LOOPS "),globaldce",
      LIBRARY "function(" EARLY "," LOOPS "),globaldce" },
    { "function(" EARLY "," STRAIGHT ")", LIBRARY "function(" EARLY "," STRAIGHT "),globaldce" },
  };
  bool has_externs = kj_link_library(e, &own->nvptx->library, &own->state, own->choice.arch->arch);
  const char *pipeline = pipelines[is_straight(own)][own->state.calls_library];
  own->is_large = kj_measure_module(e->module) == KJ_SIZE_LARGE;
  if (own->is_large) pipeline = LIBRARY "function(" EARLY ",gvn),globaldce";
  if (kj_is_unoptimized(e)) pipeline = LIBRARY "globaldce";
  if (has_externs) pipeline = kj_format(e->c->arena, "cgscc(inline),%s", pipeline);
  kj_run_passes(e->c, e->module, e->machine->machine, pipeline, &e->errors);
}

/* codegen level 0, see above */
static bool is_emitted_fast(const kj_emission *e)
{
  const nvptx_emission *own = (const nvptx_emission *)e;
  return is_straight(own) || own->is_large;
}

static void prepare_fast(kj_emission *e) { kj_widen_offsets(e->module); }

void kj_emit_nvptx(kj_nvptx *nvptx, kj_compilation *c, kj_code *code)
{
  static const kj_emission_steps steps = { .lowering = &kj_nvptx_lowering_target,
                                           .optimize = optimize,
                                           .is_emitted_fast = is_emitted_fast,
                                           .prepare_fast = prepare_fast };
  if (c->request->stage == KJIT_STAGE_ASM || c->request->stage == KJIT_STAGE_OBJECT)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "GPU targets have no stage `%s`; PTX is the last one",
            c->request->stage == KJIT_STAGE_ASM ? "asm" : "object");
  nvptx_emission *own = KJ_NEW(c->arena, nvptx_emission);
  own->nvptx = nvptx;
  own->choice = kj_choose_nvptx(c);
  kj_find_library(&nvptx->library);
  own->state.library = nvptx->library.kind;
  snprintf(own->cpu, sizeof own->cpu, "sm_%u%.1s", own->choice.arch->arch,
           (const char[2]){ own->choice.arch->suffix, 0 });
  snprintf(own->features, sizeof own->features, "+ptx%u", own->choice.ptx);
  own->e = (kj_emission){
    .c = c, .code = code, .steps = &steps, .state = &own->state, .machines = &nvptx->machines
  };
  own->e.kind = (kj_machine_kind){ .triple = "nvptx64-nvidia-cuda",
                                   .cpu = own->cpu,
                                   .features = own->features,
                                   .level = LLVMCodeGenLevelDefault,
                                   .relocation = LLVMRelocDefault,
                                   .model = LLVMCodeModelDefault };
  kj_emit_code(&own->e);
}
