/* The CPU target: a typed kernel, made into loops over threads, to native code of this machine.
 *
 *   lower (lib/lower) -> optimize (a short pipeline with the loop vectorizer) -> emit (PIC, small code model) */
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "native/functions.h"
#include "target/host.h"
#include "target/llvm.h"

/* ---- target machines: a pool ---- */

struct kj_host_worker {
  kj_host_worker *next;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef layout;
};

static const char triple[] = "x86_64-unknown-linux-gnu";

static kj_host_worker *make_worker(const kj_host *host, LLVMCodeGenOptLevel level)
{
  LLVMTargetRef target;
  char *message = NULL;
  kj_host_worker *w = calloc(1, sizeof *w);
  if (!w || LLVMGetTargetFromTriple(triple, &target, &message)) {
    LLVMDisposeMessage(message);
    free(w);
    return NULL;
  }
  w->machine = LLVMCreateTargetMachine(target, triple, host->cpu, host->features, level, LLVMRelocPIC, LLVMCodeModelSmall);
  w->layout = LLVMCreateTargetDataLayout(w->machine);
  return w;
}

static void destroy_worker(kj_host_worker *w)
{
  LLVMDisposeTargetData(w->layout);
  LLVMDisposeTargetMachine(w->machine);
  free(w);
}

static kj_host_worker *take_worker(kj_host *host)
{
  pthread_mutex_lock(&host->mutex);
  kj_host_worker *found = host->idle;
  if (found) host->idle = found->next;
  pthread_mutex_unlock(&host->mutex);
  return found ? found : make_worker(host, LLVMCodeGenLevelDefault);
}

static void return_worker(kj_host *host, kj_host_worker *w)
{
  pthread_mutex_lock(&host->mutex);
  w->next = host->idle;
  host->idle = w;
  pthread_mutex_unlock(&host->mutex);
}

/* ---- the state ---- */

static bool has_feature(const char *features, const char *name)
{
  size_t length = strlen(name);
  for (const char *at = features; (at = strstr(at, name)) != NULL; at += length)
    if ((at == features || at[-1] == ',') && (at[length] == 0 || at[length] == ',')) return true;
  return false;
}

static bool has_function(const char *name) { return kj_find_library_function(name) != NULL; }

kjit_status kj_create_host(kj_diagnostics *diagnostics, kj_host **host)
{
  kj_start_llvm();
  *host = NULL;
  kj_host *created = calloc(1, sizeof *created);
  if (!created) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY, "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  pthread_mutex_init(&created->mutex, NULL);
  created->cpu = LLVMGetHostCPUName();
  created->features = LLVMGetHostCPUFeatures();
  created->lowering = (kj_cpu_features){
    .has_avx = has_feature(created->features, "+avx"),
    .has_avx2 = has_feature(created->features, "+avx2"),
    .has_avx512 = has_feature(created->features, "+avx512f") && has_feature(created->features, "+avx512vl") && has_feature(created->features, "+avx512bw"),
    .has_function = has_function,
  };
  *host = created;
  return KJIT_OK;
}

void kj_destroy_host(kj_host *host)
{
  if (!host) return;
  for (kj_host_worker *w = host->idle, *next; w; w = next) {
    next = w->next;
    destroy_worker(w);
  }
  kj_destroy_jit(host->jit);
  LLVMDisposeMessage(host->cpu);
  LLVMDisposeMessage(host->features);
  pthread_mutex_destroy(&host->mutex);
  free(host);
}

/* ---- one emission ---- */

typedef struct emission {
  kj_host *host;
  kj_compilation *c;
  kj_code *code;
  kj_host_worker *worker;
  kj_llvm_errors errors;
  LLVMContextRef context;
  LLVMModuleRef module;
  kj_lowering lowering, fast;
  kj_cpu_state state, fast_state;
  bool is_unoptimized, owns_worker; /* owns: not of the pool */
} emission;

/* Inner loops are unrolled before the loop vectorizer, loops over threads and pieces by nobody before it. */
#define SCALAR "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>"
#define LOOPS \
  "loop-mssa(loop-rotate,licm,simple-loop-unswitch),simplifycfg,instcombine<no-verify-fixpoint>,loop(loop-idiom,indvars,loop-deletion,loop-unroll-full),sroa," \
  "early-cse<memssa>,instcombine<no-verify-fixpoint>,gvn,simplifycfg,loop-mssa(licm)"
#define VECTORS \
  "loop-vectorize,infer-alignment,instcombine<no-verify-fixpoint>,early-cse<memssa>,dse,loop-mssa(licm),simplifycfg,instcombine<no-verify-fixpoint>"
static const char *const pipelines[] = {
  [KJ_SIZE_USUAL] = "function(" SCALAR "," LOOPS "," VECTORS "),globaldce",
  [KJ_SIZE_LONG] = "function(" SCALAR "," LOOPS "),globaldce",
  [KJ_SIZE_LARGE] = "function(" SCALAR ",gvn),globaldce",
};

static void prepare(emission *e)
{
  bool is_dump = e->c->request->stage == KJIT_STAGE_LLVM || e->c->request->stage == KJIT_STAGE_LLVM_OPT;
  e->context = kj_create_llvm_context(&e->errors, is_dump);
  e->module = LLVMModuleCreateWithNameInContext("kjit", e->context);
  e->is_unoptimized = e->c->request->debug == KJIT_DEBUG_FULL;
  e->owns_worker = e->is_unoptimized;
  e->worker = e->is_unoptimized ? make_worker(e->host, LLVMCodeGenLevelNone) : take_worker(e->host);
  if (!e->worker) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
  LLVMSetTarget(e->module, triple);
  LLVMSetModuleDataLayout(e->module, e->worker->layout);
  e->state.features = &e->host->lowering;
}

/* What it relies on the whole relies on. */
static void join_facts(kj_compilation *c, const kj_compilation *fast)
{
  c->used_aligned16 |= fast->used_aligned16;
  c->used_offsets32 |= fast->used_offsets32;
  c->used_grid32 |= fast->used_grid32;
  c->used_disjoint |= fast->used_disjoint;
  c->used_same |= fast->used_same;
  if (!c->elements_a_thread) c->elements_a_thread = fast->elements_a_thread;
}

static void lower_fast(emission *e)
{
  e->fast_state.features = &e->host->lowering;
  e->fast = (kj_lowering){ .c = e->c->fast,
                           .context = e->context,
                           .module = e->module,
                           .layout = e->lowering.layout,
                           .target = &kj_cpu_lowering,
                           .target_state = &e->fast_state,
                           .like = &e->lowering };
  kj_lower(&e->fast);
  kj_give_tables_back(&e->fast);
  kj_finish_cpu_math(&e->fast);
  join_facts(e->c, e->c->fast);
  if (e->fast_state.scratch_bytes > e->state.scratch_bytes) e->state.scratch_bytes = e->fast_state.scratch_bytes;
}

/* The layout is the module's: it remembers structs by their address, which another context may use again. */
static void lower(emission *e)
{
  e->lowering = (kj_lowering){
    .c = e->c, .context = e->context, .module = e->module, .layout = LLVMGetModuleDataLayout(e->module), .target = &kj_cpu_lowering, .target_state = &e->state
  };
  kj_lower(&e->lowering);
  if (e->c->fast) lower_fast(e);
  kj_finish_cpu_math(&e->lowering);
  kj_check_module(e->c, e->module);
}

/* Code of many loads and stores in one block is generated without scheduling. */
static void select_emission(emission *e)
{
  if (e->owns_worker || !kj_is_dense(e->module)) return;
  return_worker(e->host, e->worker);
  e->owns_worker = true;
  e->worker = make_worker(e->host, LLVMCodeGenLevelNone);
  if (!e->worker) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
}

static void run(emission *e)
{
  kjit_stage stage = e->c->request->stage;
  uint64_t start = kj_now_ns();
  prepare(e);
  lower(e);
  uint64_t lowered = kj_now_ns();
  e->code->lower_time_ns = lowered - start;
  if (!kj_describe_code(&e->lowering, e->code)) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
  e->code->scratch_bytes = e->state.scratch_bytes;
  if (stage == KJIT_STAGE_LLVM) {
    kj_take_module_text(e->c, e->module, e->code);
    return;
  }
  if (!e->is_unoptimized) kj_run_passes(e->c, e->module, e->worker->machine, pipelines[kj_measure_module(e->module)], &e->errors);
  uint64_t optimized = kj_now_ns();
  e->code->optimize_time_ns = optimized - lowered;
  if (stage == KJIT_STAGE_LLVM_OPT) {
    kj_take_module_text(e->c, e->module, e->code);
    return;
  }
  select_emission(e);
  kj_emit_module(e->c, e->module, e->worker->machine, stage == KJIT_STAGE_ASM ? LLVMAssemblyFile : LLVMObjectFile, &e->errors, e->code);
  e->code->emit_time_ns = kj_now_ns() - optimized;
}

static void finish(emission *e)
{
  kj_end_lowering(&e->fast);
  kj_end_lowering(&e->lowering);
  if (e->module) LLVMDisposeModule(e->module);
  if (e->context) LLVMContextDispose(e->context);
  if (!e->worker) return;
  if (e->owns_worker) destroy_worker(e->worker);
  else return_worker(e->host, e->worker);
}

/* Failures jump; LLVM's objects must be freed on the way. */
void kj_emit_host(kj_host *host, kj_compilation *c, kj_code *code)
{
  if (c->request->stage == KJIT_STAGE_PTX)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED, "the CPU target has no stage `ptx`; `asm` and `object` are its last ones");
  emission *e = KJ_NEW(c->arena, emission);
  *e = (emission){ .host = host, .c = c, .code = code };
  jmp_buf *outer = c->on_failure, *outer_arena = c->arena->on_failure, here;
  c->on_failure = c->arena->on_failure = &here;
  if (c->fast) c->fast->on_failure = &here;
  int jump = setjmp(here);
  if (jump == 0) run(e);
  c->on_failure = outer;
  c->arena->on_failure = outer_arena;
  finish(e);
  if (jump) longjmp(*outer, jump);
}
