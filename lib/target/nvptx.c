/* The nvptx target: compiles a typed kernel to PTX.
 *
 *   lower (lib/lower) -> link the called math functions -> optimize (a short pipeline) -> emit
 *
 * LLVM ends the process on operations that a target does not support, so this file rejects them
 * first. */
#include "target/nvptx.h"

#include <stdio.h>
#include <stdlib.h>

#include "target/target.h"

/* ---- architectures and PTX versions ----
 *
 * LLVM ends the process if an architecture is unknown or does not match the PTX version. This table
 * allows kjit to reject such requests before it calls LLVM. */

/* In ascending order. Code for an architecture without a suffix runs on all newer architectures. */
static const kg_nvptx_arch arches[] = {
  { 75, 0, 63 },    { 80, 0, 70 },    { 86, 0, 71 },    { 87, 0, 74 },    { 88, 0, 90 },
  { 89, 0, 78 },    { 90, 0, 78 },    { 90, 'a', 80 },  { 100, 0, 86 },   { 100, 'a', 86 },
  { 100, 'f', 88 }, { 101, 0, 86 },   { 103, 0, 88 },   { 103, 'a', 88 }, { 103, 'f', 88 },
  { 110, 0, 90 },   { 110, 'a', 90 }, { 110, 'f', 90 }, { 120, 0, 87 },   { 120, 'a', 87 },
  { 120, 'f', 88 }, { 121, 0, 88 },   { 121, 'a', 88 }, { 121, 'f', 88 },
};
enum { ARCH_COUNT = sizeof arches / sizeof *arches };

/* The PTX versions that LLVM can write, in ascending order. */
static const uint32_t ptx_versions[] = { 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77,
                                         78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90 };
enum { PTX_COUNT = sizeof ptx_versions / sizeof *ptx_versions };

static const kg_nvptx_arch *find_arch(uint32_t arch, char suffix)
{
  for (int i = 0; i < ARCH_COUNT; i++)
    if (arches[i].arch == arch && arches[i].suffix == suffix) return &arches[i];
  return NULL;
}

/* Returns the architecture for a GPU that is newer than the table: the newest architecture without
 * a suffix that the PTX version supports. */
static const kg_nvptx_arch *newest_arch(uint32_t ptx_limit)
{
  const kg_nvptx_arch *best = NULL;
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

static const kg_nvptx_arch *select_arch(kt_compilation *c)
{
  const kj_target *target = &c->request->target;
  const char suffix[2] = { target->suffix, 0 };
  const kg_nvptx_arch *row = find_arch(target->arch, target->suffix);
  if (!row && target->arch > arches[ARCH_COUNT - 1].arch && !target->suffix)
    row = newest_arch(target->ptx_version);
  if (!row)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "unknown architecture sm_%u%s: kjit compiles for sm_75 and newer", target->arch,
            suffix);
  if (target->ptx_version && highest_version(target->ptx_version) < row->least_ptx)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "sm_%u%s needs PTX %u.%u or later, but PTX %u.%u was requested", row->arch, suffix,
            row->least_ptx / 10, row->least_ptx % 10, target->ptx_version / 10,
            target->ptx_version % 10);
  return row;
}

static bool has_recursion(const kt_compilation *c)
{
  for (size_t i = 0; i < c->instances.count; i++)
    if (c->instances.items[i]->is_recursive) return true;
  return false;
}

/* Returns an upper bound for the size of the parameters. The exact size is determined only
 * later. */
static uint64_t count_parameter_bytes(const kt_compilation *c)
{
  enum { OTHERS = 1024 /* bytes for the parameters of shared arrays, failures and print */ };
  uint64_t bytes = OTHERS + (c->module->has_tensor_copies ? KJ_MOST_MAPS * KJ_MAP_BYTES : 0);
  for (uint32_t i = 0; i < c->request->signature->count; i++) {
    const kj_argument *argument = &c->request->signature->arguments[i];
    const ki_type_info *info = ki_type(c->types, argument->type);
    bool is_array = argument->kind == KJ_ARGUMENT_ARRAY;
    bytes += is_array ? 8 + 16 * (uint64_t)info->rank : info->size_bytes + 8;
  }
  return bytes;
}

/* PTX version of stacksave */
enum { STACK_PTX = 73 };

/* Chooses the architecture and the PTX version. Built-ins and facts need at most PTX 6.2, which
 * every supported architecture has. The labels in debug sections need PTX 7.5. */
kg_nvptx_choice kg_choose_nvptx(kt_compilation *c)
{
  enum { LEAST_FOR_DEBUG = 75 };
  const kg_nvptx_arch *row = select_arch(c);
  uint32_t limit = c->request->target.ptx_version, least = row->least_ptx;
  bool is_full = c->request->debug == KJIT_DEBUG_FULL;
  if (is_full && least < LEAST_FOR_DEBUG) least = LEAST_FOR_DEBUG;
  if (is_full && limit && highest_version(limit) < LEAST_FOR_DEBUG)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "full debug information needs PTX 7.5 or later, but PTX %u.%u was requested",
            limit / 10, limit % 10);
  if (has_recursion(c) && least < STACK_PTX) least = STACK_PTX;
  /* if the limit were lower, inference would have reported an error with the name of the
   * built-in */
  if (c->least_ptx > least) least = c->least_ptx;
  if (!limit && least < KJ_LARGE_PARAMETER_PTX &&
      count_parameter_bytes(c) > KJ_SMALL_PARAMETER_BYTES)
    least = KJ_LARGE_PARAMETER_PTX;
  if (limit && highest_version(limit) < least)
    kt_fail(
      c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
      "recursion needs PTX %u.%u or later (a driver for CUDA 11.3), but PTX %u.%u was requested",
      least / 10, least % 10, limit / 10, limit % 10);
  return (kg_nvptx_choice){ .arch = row, .ptx = limit ? highest_version(limit) : least };
}

static void check(kt_compilation *c)
{
  const kg_nvptx_arch *row = select_arch(c);
  if (row->arch < c->request->target.arch)
    kt_warn(c, (kj_location){ 0 }, KJIT_SEVERITY_REMARK,
            "this version of kjit does not know sm_%u and compiles for sm_%u instead",
            c->request->target.arch, row->arch);
}

/* ---- the state ---- */

typedef struct kg_nvptx {
  kg_machines machines;
  kg_nvptx_library library;
} kg_nvptx;

static kjit_status create(const char *libdevice_path, kj_diagnostics *diagnostics, kg_state **state)
{
  *state = NULL;
  kg_start_llvm();
  kg_nvptx *created = calloc(1, sizeof *created);
  if (!created) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  kjit_status status = kg_open_library(&created->library, libdevice_path, diagnostics);
  if (status) {
    free(created);
    return status;
  }
  kg_init_machines(&created->machines);
  *state = created;
  return KJIT_OK;
}

static void destroy(kg_state *state)
{
  kg_nvptx *nvptx = state;
  if (!nvptx) return;
  kg_free_machines(&nvptx->machines);
  kg_close_library(&nvptx->library);
  free(nvptx);
}

/* ---- one emission of a kernel ---- */

typedef struct nvptx_emission {
  kg_emission e;
  kg_nvptx *nvptx;
  kg_nvptx_choice choice;
  char cpu[16], features[16];
  kl_nvptx_lowering state;
  bool is_large; /* see kg_module_size */
  bool is_dense; /* see kg_is_dense, kg_has_many_addresses and kg_is_lengthy */
} nvptx_emission;

/* ---- pipelines ----
 *
 * default<O3> takes two to three times as long and gives no better code for kernels, because kjit
 * has already inlined functions and ptxas optimizes again.
 *
 * Code generation with optimization does not improve the code of a kernel without loops and shared
 * memory, such as an element-wise kernel. The pipeline already combines its loads and stores, and
 * kg_widen_offsets uses wide products for its offsets. Emission without optimization takes only a
 * third of the time. Optimization also does not improve calls of a library's f32 functions, unless
 * the function contains a loop. A comparison of the machine code of each function has shown
 * this. */

#define EARLY "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>"
/* The vectorizer combines accesses only if it knows the alignment of the first access.
 * infer-alignment runs twice: the run before infer-address-spaces finds the alignment that an
 * `assume` states for a generic pointer, and the run after it finds the alignment of the
 * parameters. */
#define ALIGNMENT "infer-alignment,infer-address-spaces,infer-alignment"
/* Full unrolling runs before the analysis of induction variables: this analysis would take long on
 * the loops, and finds the same properties in the copies. The elements of thread-local arrays have
 * constant indices only after early-cse has simplified the counters of unrolled loops. */
#define UNROLLING "loop-mssa(loop-rotate,licm),loop(loop-unroll-full,indvars,loop-deletion)"
#define UNROLLED_BY(options) \
  "sroa,early-cse<memssa>,sroa,gvn,dse,loop-unroll<O2" options ">," ALIGNMENT \
  ",instcombine<no-verify-fixpoint>,simplifycfg"
#define UNROLLED UNROLLED_BY("")
/* The pipeline does not unroll loops whose trip count is known only at launch. In a kernel with
 * many loops, most of the code would otherwise be copies of their bodies, and ptxas unrolls such
 * loops as well. */
#define UNROLLED_LITTLE UNROLLED_BY(";no-runtime")
#define LOOPS UNROLLING "," UNROLLED
#define MANY_LOOPS UNROLLING "," UNROLLED_LITTLE
/* the pipeline for large modules, without passes whose time grows with the number of pairs of
 * blocks or conditions */
#define LARGE EARLY ",early-cse<memssa>,simplifycfg"
#define HUGE_ "sroa,early-cse<memssa>,simplifycfg,instsimplify"
#define STRAIGHT \
  "loop-mssa(loop-rotate,licm)," ALIGNMENT ",separate-const-offset-from-gep,early-cse<memssa>," \
  "load-store-vectorizer,nvptx-tag-invariant-loads"
/* The passes that LLVM's code generation runs to optimize accesses, without straight-line strength
 * reduction. Strength reduction searches for addresses that differ by a multiple of a value, and
 * compares each address with all earlier addresses. */
#define DENSE "early-cse<memssa>,load-store-vectorizer,nvptx-tag-invariant-loads"
/* Removes equal addresses before code generation. Code generation itself first moves the addresses
 * of guarded accesses before the branches, then searches for addresses that differ by a multiple of
 * a value, and only then removes equal addresses. For the tiles in a matrix product, which have
 * many unrolled guarded accesses, that search took 0.8 s of 0.9 s of compile time. */
#define SPECULATED "speculative-execution,separate-const-offset-from-gep,early-cse"
#define LIBRARY "nvvm-reflect,always-inline,"

static bool is_straight(const nvptx_emission *own)
{
  const kl_lowering *l = &own->e.lowering;
  return !l->loop_count && !own->state.has_branches && !l->pending.count && !l->shared_places.count;
}

static bool has_many_loops(const nvptx_emission *own)
{
  enum { MOST_LOOPS = 32 };
  return own->e.lowering.loop_count > MOST_LOOPS;
}

static void run(kg_emission *e, const char *pipeline)
{
  kg_run_passes(e->c, e->module, e->machine->machine, pipeline, &e->errors);
}

/* Runs the passes that follow the unrolling of loops. */
static void finish_unrolled(nvptx_emission *own)
{
  kg_module_size size = kg_measure_emission(&own->e);
  own->is_large = size >= KJ_SIZE_LARGE;
  run(&own->e, size == KJ_SIZE_HUGE    ? "function(" HUGE_ "),globaldce"
               : size == KJ_SIZE_LARGE ? "function(" LARGE "),globaldce"
               : has_many_loops(own)   ? "function(" UNROLLED_LITTLE "),globaldce"
                                       : "function(" UNROLLED "),globaldce");
}

/* Links the math library. Returns whether the module contains functions of other languages, which
 * must be inlined. */
static bool link_functions(nvptx_emission *own)
{
  kg_emission *e = &own->e;
  bool has_externs = kg_link_library(e, &own->nvptx->library, &own->state, own->choice.arch->arch);
  if (own->state.asks_library || own->state.calls_library)
    e->c->code->math_library = own->nvptx->library.kind;
  if (e->lowering.kernel->modes.is_fastmath) kg_flush_subnormals(e->module);
  return has_externs;
}

/* Runs the pipeline. If there are extern functions, inlines them first. */
static void run_after_inlining(nvptx_emission *own, bool has_externs, const char *pipeline)
{
  run(&own->e, has_externs ? kj_format(own->e.c->arena, "cgscc(inline),%s", pipeline) : pipeline);
}

/* Returns whether plain code saves compile time and is safe. Plain code saves compile time, because
 * it does not optimize loops and does not move local arrays to registers. It saves no time in a
 * kernel without loops. It is not safe in two kinds of kernels: the accumulators of wgmma must be
 * in registers; and the blocks of a cooperative launch or of a cluster must be resident together,
 * which more registers for each thread could prevent. */
static bool saves_time(const kg_emission *e)
{
  const nvptx_emission *own = (const nvptx_emission *)e;
  return !is_straight(own) && !own->state.has_wgmma && !e->c->code->is_cooperative &&
         !e->c->code->cluster[0] && kg_measure_emission(e) < KJ_SIZE_LARGE;
}

static void optimize_little(kg_emission *e)
{
  nvptx_emission *own = (nvptx_emission *)e;
  bool has_externs = link_functions(own);
  run_after_inlining(own, has_externs, LIBRARY "function(" EARLY "),globaldce");
  kg_rewrite_for_ptx(e->module);
}

static void optimize(kg_emission *e)
{
  nvptx_emission *own = (nvptx_emission *)e;
  enum { WITH_LOOPS, WITH_MANY_LOOPS, STRAIGHT_ON };
  static const char *const pipelines[][2] = {
    /* [kind][calls_library] */
    { "function(" EARLY "," LOOPS "),globaldce",
      LIBRARY "function(" EARLY "," LOOPS "),globaldce" },
    { "function(" EARLY "," MANY_LOOPS "),globaldce",
      LIBRARY "function(" EARLY "," MANY_LOOPS "),globaldce" },
    { "function(" EARLY "," STRAIGHT ")", LIBRARY "function(" EARLY "," STRAIGHT "),globaldce" },
  };
  bool has_externs = link_functions(own);
  int kind = is_straight(own) ? STRAIGHT_ON : has_many_loops(own) ? WITH_MANY_LOOPS : WITH_LOOPS;
  const char *pipeline = pipelines[kind][own->state.calls_library];
  kg_module_size size = kg_measure_emission(e);
  own->is_large = size >= KJ_SIZE_LARGE;
  bool is_measured_again = !own->is_large && !kg_is_unoptimized(e) && kg_unrolls_much(e);
  if (is_measured_again) pipeline = LIBRARY "function(" EARLY "," UNROLLING ")";
  if (size == KJ_SIZE_LARGE) pipeline = LIBRARY "function(" LARGE "),globaldce";
  if (size == KJ_SIZE_HUGE) pipeline = LIBRARY "function(" HUGE_ "),globaldce";
  if (kg_is_unoptimized(e)) pipeline = LIBRARY "globaldce";
  run_after_inlining(own, has_externs, pipeline);
  if (is_measured_again) finish_unrolled(own);
  own->is_dense =
    !own->is_large && !is_straight(own) &&
    (kg_is_dense(e->module) || kg_has_many_addresses(e->module) || kg_is_lengthy(e->module));
  if (!kg_is_unoptimized(e) && !own->is_large && kind != STRAIGHT_ON)
    run(e, own->is_dense ? "function(" DENSE ")" : "function(" SPECULATED ")");
  kg_rewrite_for_ptx(e->module);
}

/* Returns whether code generation runs at level 0 (see the comment on pipelines above). */
static bool is_emitted_unoptimized(const kg_emission *e)
{
  const nvptx_emission *own = (const nvptx_emission *)e;
  return is_straight(own) || own->is_large || own->is_dense;
}

static void prepare_unoptimized(kg_emission *e) { kg_widen_offsets(e->module); }

static uint32_t vector_bytes(const kg_state *state, const kj_target *target)
{
  enum { WIDEST_ACCESS = 16 };
  (void)state, (void)target;
  return WIDEST_ACCESS;
}

static void emit(kg_state *state, kt_compilation *c)
{
  static const kg_emission_steps steps = { .lowering = &kl_nvptx_lowering_target,
                                           .optimize = optimize,
                                           .saves_time = saves_time,
                                           .optimize_little = optimize_little,
                                           .is_emitted_unoptimized = is_emitted_unoptimized,
                                           .prepare_unoptimized = prepare_unoptimized };
  if (c->request->stage == KJIT_STAGE_ASM || c->request->stage == KJIT_STAGE_OBJECT)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "a GPU target has no stage `%s`; its last stage is PTX",
            c->request->stage == KJIT_STAGE_ASM ? "asm" : "object");
  nvptx_emission *own = KJ_NEW(c->arena, nvptx_emission);
  kg_nvptx *nvptx = state;
  own->nvptx = nvptx;
  own->choice = kg_choose_nvptx(c);
  c->ptx = own->choice.ptx;
  kg_find_library(&nvptx->library);
  own->state.library = nvptx->library.kind;
  snprintf(own->cpu, sizeof own->cpu, "sm_%u%.1s", own->choice.arch->arch,
           (const char[2]){ own->choice.arch->suffix, 0 });
  snprintf(own->features, sizeof own->features, "+ptx%u", own->choice.ptx);
  own->e =
    (kg_emission){ .c = c, .steps = &steps, .state = &own->state, .machines = &nvptx->machines };
  own->e.kind = (kg_machine_kind){ .triple = "nvptx64-nvidia-cuda",
                                   .cpu = own->cpu,
                                   .features = own->features,
                                   .level = LLVMCodeGenLevelDefault,
                                   .relocation = LLVMRelocDefault,
                                   .model = LLVMCodeModelDefault };
  kg_emit_code(&own->e);
}

const kg_target kg_nvptx_target = {
  .create = create, .destroy = destroy, .vector_bytes = vector_bytes, .check = check, .emit = emit
};
