/* The CPU target: compiles a typed kernel, which pass/simt.c has converted to loops over threads,
 * to native code (position-independent, small code model) for this machine. */
#include "target/host.h"

#include <llvm-c/Core.h>
#include <stdlib.h>
#include <string.h>

#include "native/architecture.h"
#include "native/functions.h"
#include "target/emission.h"

/* ---- the state ---- */

static bool has_feature(const char *features, const char *name)
{
  size_t length = strlen(name);
  for (const char *at = features; (at = strstr(at, name)) != NULL; at += length)
    if ((at == features || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return true;
  return false;
}

/* Returns this machine's features. The result must be disposed like an LLVM message. */
static char *find_features(void)
{
  static const char own[] = KJ_OWN_FEATURES;
  char *found = LLVMGetHostCPUFeatures(), *joined = NULL;
  if (sizeof own == 1 || asprintf(&joined, "%s%s%s", found, *found ? "," : "", own) < 0)
    return found;
  LLVMDisposeMessage(found);
  char *features = LLVMCreateMessage(joined);
  free(joined);
  return features;
}

static bool has_function(const char *name) { return kn_find_library_function(name) != NULL; }

/* Describes the named processor levels (cpu_levels.def). LLVM has a processor with each level's
 * name, which has this level's features. */
static void describe_levels(kg_processor *processors)
{
#define KJ_CPU_LEVEL(NAME, text, name, avx, avx2, avx512, bytes) \
  processors[KJ_CPU_##NAME] = (kg_processor){ .cpu = (name), \
                                              .features = "", \
                                              .lowering = { .has_avx = (avx), \
                                                            .has_avx2 = (avx2), \
                                                            .has_avx512 = (avx512), \
                                                            .has_wide_atomics = true, \
                                                            .has_function = has_function }, \
                                              .vector_bytes = (bytes) };
#include "cpu_levels.def"
}

static void describe_own(const kg_host *host, kg_processor *own)
{
  own->cpu = host->cpu;
  own->features = host->features;
  own->lowering = (kl_cpu_features){
    .has_avx = has_feature(host->features, "+avx"),
    .has_avx2 = has_feature(host->features, "+avx2"),
    .has_avx512 = has_feature(host->features, "+avx512f") &&
                  has_feature(host->features, "+avx512vl") &&
                  has_feature(host->features, "+avx512bw"),
    .has_wide_atomics = KJ_HAS_WIDE_ATOMICS || has_feature(host->features, "+cx16"),
    .has_function = has_function,
  };
  own->vector_bytes = own->lowering.has_avx512 ? 64 : own->lowering.has_avx ? 32 : 16;
}

static kjit_status create(const char *libdevice_path, kj_diagnostics *diagnostics, kg_state **state)
{
  (void)libdevice_path;
  kg_start_llvm();
  *state = NULL;
  kg_host *created = calloc(1, sizeof *created);
  if (!created) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  pthread_mutex_init(&created->mutex, NULL);
  kg_init_machines(&created->machines);
  created->cpu = LLVMGetHostCPUName();
  created->features = find_features();
  describe_own(created, &created->processors[KJ_CPU_OWN]);
  describe_levels(created->processors);
  *state = created;
  return KJIT_OK;
}

/* Returns the size of a vector register. */
static uint32_t vector_bytes(const kg_state *state, const kj_target *target)
{
  const kg_host *host = state;
  KJ_ASSERT(target->level < KJ_CPU_LEVEL_COUNT);
  return host->processors[target->level].vector_bytes;
}

static void destroy(kg_state *state)
{
  kg_host *host = state;
  if (!host) return;
  kg_free_machines(&host->machines);
  kg_destroy_jit(host->jit);
  LLVMDisposeMessage(host->cpu);
  LLVMDisposeMessage(host->features);
  pthread_mutex_destroy(&host->mutex);
  free(host);
}

/* ---- one emission of a kernel ---- */

typedef struct host_emission {
  kg_emission e;
  kl_lowering unchecked;
  kl_cpu_state state, unchecked_state;
} host_emission;

static host_emission *own_of(kg_emission *e) { return (host_emission *)e; }

/* Inner loops are unrolled before the loop vectorizer runs. Loops over threads, and over the
 * elements of ranges, are left to the vectorizer. Full unrolling runs before the analysis of
 * induction variables: this analysis would take long on the loops, and finds the same properties in
 * the copies. The elements of thread-local arrays have constant indices only after early-cse has
 * simplified the counters of unrolled loops. The conditions of checks in the copies are then
 * constants, too. sccp removes the branches of all these checks at once. gvn would remove them one
 * by one, in a time that grows with the square of their number. */
#define SCALAR "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>"
#define UNROLLING \
  "loop-mssa(loop-rotate,licm,simple-loop-unswitch),simplifycfg,instcombine<no-verify-fixpoint>," \
  "loop(loop-idiom,loop-unroll-full,indvars,loop-deletion)"
#define UNROLLED \
  "sroa,early-cse<memssa>,sccp,sroa,instcombine<no-verify-fixpoint>,gvn,simplifycfg," \
  "loop-mssa(licm)"
#define VECTORS \
  "loop-vectorize,infer-alignment,sroa,instcombine<no-verify-fixpoint>,early-cse<memssa>,dse," \
  "loop-mssa(licm),simplifycfg,instcombine<no-verify-fixpoint>"
/* The pipeline of LARGE contains no pass whose time grows with the number of pairs of blocks or of
 * conditions. */
#define LARGE SCALAR ",early-cse<memssa>,simplifycfg"
#define HUGE_ "sroa,early-cse<memssa>,simplifycfg,instsimplify"
static const char *const pipelines[] = {
  [KJ_SIZE_USUAL] = "function(" SCALAR "," UNROLLING "," UNROLLED ")",
  [KJ_SIZE_LONG] = "function(" SCALAR "," UNROLLING "," UNROLLED "),globaldce",
  [KJ_SIZE_LARGE] = "function(" LARGE "),globaldce",
  [KJ_SIZE_HUGE] = "function(" HUGE_ "),globaldce",
};
/* The passes after unrolling. */
static const char *const remaining[] = {
  [KJ_SIZE_USUAL] = "function(" UNROLLED ")",
  [KJ_SIZE_LONG] = "function(" UNROLLED "),globaldce",
  [KJ_SIZE_LARGE] = "function(" LARGE "),globaldce",
  [KJ_SIZE_HUGE] = "function(" HUGE_ "),globaldce",
};

/* Adds the facts on which the unchecked version relies to the facts of the checked version, because
 * the code contains both. */
static void join_facts(kt_compilation *c, const kt_compilation *unchecked)
{
  c->used_aligned16 |= unchecked->used_aligned16;
  c->used_offsets32 |= unchecked->used_offsets32;
  c->used_grid32 |= unchecked->used_grid32;
  c->used_disjoint |= unchecked->used_disjoint;
  c->used_same |= unchecked->used_same;
  c->used_large |= unchecked->used_large;
  if (!c->code->elements_a_thread) c->code->elements_a_thread = unchecked->code->elements_a_thread;
}

static void lower_unchecked(host_emission *own)
{
  kg_emission *e = &own->e;
  own->unchecked_state.features = own->state.features;
  own->unchecked = (kl_lowering){ .c = e->c->unchecked,
                                  .context = e->context,
                                  .module = e->module,
                                  .layout = e->lowering.layout,
                                  .target = &kl_cpu_lowering,
                                  .target_state = &own->unchecked_state,
                                  .checked = &e->lowering };
  kl_lower(&own->unchecked);
  kl_give_tables_back(&own->unchecked);
  kl_finish_cpu_math(&own->unchecked);
  join_facts(e->c, e->c->unchecked);
  if (own->unchecked_state.scratch_bytes > own->state.scratch_bytes)
    own->state.scratch_bytes = own->unchecked_state.scratch_bytes;
}

static void finish_lowering(kg_emission *e)
{
  if (e->c->unchecked) lower_unchecked(own_of(e));
  kl_finish_cpu_math(&e->lowering);
  e->c->code->scratch_bytes = own_of(e)->state.scratch_bytes;
}

/* Simplifies the checked version of a kernel if it is large, and excludes it from later passes. The
 * checked version runs only at array edges and before a failure. A function of KJ_SIZE_LARGE or
 * more need not be excluded, because its module gets no further passes. */
static void settle_checked(kg_emission *e, const char *pipeline)
{
  enum { MOST_BLOCKS = 128, MOST_INSTRUCTIONS = 1024 };
  LLVMValueRef function = LLVMGetNamedFunction(e->module, e->lowering.kernel->symbol);
  if (!e->c->unchecked || kg_is_unoptimized(e) || kg_is_settled(function) ||
      kg_measure_function(function) >= KJ_SIZE_LARGE)
    return;
  if (LLVMCountBasicBlocks(function) > MOST_BLOCKS ||
      kg_count_function(function, MOST_INSTRUCTIONS) > MOST_INSTRUCTIONS)
    kg_settle_function(e, function, pipeline);
}

/* Runs the first passes. Returns the size class, which decides which passes follow. */
static kg_module_size simplify(kg_emission *e)
{
  LLVMTargetMachineRef machine = e->machine->machine;
  settle_checked(e, LARGE);
  kg_module_size size = kg_measure_emission(e);
  if (kg_is_unoptimized(e)) return size;
  if (size >= KJ_SIZE_LARGE || !kg_unrolls_much(e)) {
    kg_run_passes(e->c, e->module, machine, pipelines[size], &e->errors);
    return size;
  }
  kg_run_passes(e->c, e->module, machine, "function(" SCALAR "," UNROLLING ")", &e->errors);
  settle_checked(e, HUGE_);
  size = kg_measure_emission(e);
  kg_run_passes(e->c, e->module, machine, remaining[size], &e->errors);
  return size;
}

static void optimize(kg_emission *e)
{
  kg_module_size size = simplify(e);
  settle_checked(e, HUGE_);
  bool vectorizes = size == KJ_SIZE_USUAL && !kg_has_long_block(e->module);
  /* An untrusted kernel may have data races. A race only leads to wrong values in the kernel's own
   * results, but an assertion that fails because of these values would end the process. So
   * untrusted kernels have no assertions. */
  bool asserts = kl_asserts_facts(&e->lowering) && !e->c->module->has_guest;
  /* assertions make the code longer, so a module above KJ_SIZE_LONG gets none */
  if (!kg_is_unoptimized(e) && (vectorizes || (asserts && size <= KJ_SIZE_LONG)))
    kg_settle_parallel_loops(&e->lowering, asserts);
  if (!kg_is_unoptimized(e) && vectorizes && !kg_has_many_paths(e->c->arena, e->module)) {
    kg_freeze_wrapping_counters(e->context, e->module);
    kg_run_passes(e->c, e->module, e->machine->machine, "function(" VECTORS "),globaldce",
                  &e->errors);
    kg_stream_results(&e->lowering);
  }
  kg_narrow_products(e->module);
  kl_name_cpu_math(&e->lowering, e->module);
  e->c->code->vector_bits = kg_measure_vectors(e->module, e->machine->layout);
  kg_report_frames(e->context, e->module);
}

/* Returns whether plain code saves compile time. Plain code needs at most a third of the compile
 * time: loops are not optimized or vectorized, and code generation selects instructions block by
 * block and keeps values on the stack between blocks. Plain code saves no time for a module of
 * KJ_SIZE_LARGE or more, because such a module is always compiled in this way. */
static bool saves_time(const kg_emission *e) { return kg_measure_emission(e) < KJ_SIZE_LARGE; }

static void optimize_little(kg_emission *e)
{
  kg_run_passes(e->c, e->module, e->machine->machine, "function(" SCALAR ")", &e->errors);
  kg_narrow_products(e->module);
  kl_name_cpu_math(&e->lowering, e->module);
  e->c->code->vector_bits = kg_measure_vectors(e->module, e->machine->layout);
  kg_report_frames(e->context, e->module);
}

/* Returns whether code generation runs without optimization. This is so if a block has many loads
 * and stores, or very many uses of a value, because the scheduler would take too long. It is also
 * so if there are many blocks, because of the register allocator, which splits live ranges between
 * blocks. */
static bool is_emitted_unoptimized(const kg_emission *e)
{
  return kg_is_dense(e->module) || kg_has_frequent_value(e->c->arena, e->module) ||
         kg_measure_emission(e) >= KJ_SIZE_LARGE;
}

/* Computes the stack size of a thread that runs the code. The size is the sum of all frames plus
 * the limit for recursion, because a chain of calls contains each non-recursive function at most
 * once. */
static void bound_stack(kg_emission *e)
{
  const kl_lowering *lowerings[] = { &e->lowering, &own_of(e)->unchecked };
  uint64_t bytes = e->errors.stack_bytes;
  if (lowerings[0]->has_recursion || lowerings[1]->has_recursion)
    bytes += kl_recursion_bytes(&e->lowering);
  const ki_decl *root = e->c->instances.items[0]->function->decl;
  if (bytes > KJ_MOST_STACK_BYTES)
    kt_fail(e->c, root->location, KJIT_ERROR_UNSUPPORTED,
            "`%s` and the functions that it calls need %llu KiB of stack, but the limit is %d; use "
            "fewer or smaller local arrays and structs, or use shared arrays instead",
            root->name, (unsigned long long)(bytes / 1024), KJ_MOST_STACK_BYTES / 1024);
  e->c->code->stack_bytes = (uint32_t)bytes;
}

static void finish(kg_emission *e) { kl_end_lowering(&own_of(e)->unchecked); }

static void emit(kg_state *state, kt_compilation *c)
{
  static const kg_emission_steps steps = { .lowering = &kl_cpu_lowering,
                                           .finish_lowering = finish_lowering,
                                           .optimize = optimize,
                                           .saves_time = saves_time,
                                           .optimize_little = optimize_little,
                                           .is_emitted_unoptimized = is_emitted_unoptimized,
                                           .finish = finish };
  if (c->request->stage == KJIT_STAGE_PTX)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "the CPU target has no stage `ptx`; its last stages are `asm` and `object`");
  kg_host *host = state;
  const kg_processor *processor = &host->processors[c->request->target.level];
  host_emission *own = KJ_NEW(c->arena, host_emission);
  own->state.features = &processor->lowering;
  own->e =
    (kg_emission){ .c = c, .steps = &steps, .state = &own->state, .machines = &host->machines };
  own->e.kind = (kg_machine_kind){ .triple = KJ_HOST_TRIPLE,
                                   .cpu = processor->cpu,
                                   .features = processor->features,
                                   .level = LLVMCodeGenLevelDefault,
                                   .relocation = LLVMRelocPIC,
                                   .model = LLVMCodeModelSmall };
  kg_emit_code(&own->e);
  bound_stack(&own->e);
  if (own->state.asks_vector_functions) c->code->vector_functions = kn_identify_vector_functions();
}

const kg_target kg_host_target = {
  .create = create, .destroy = destroy, .vector_bytes = vector_bytes, .emit = emit
};
