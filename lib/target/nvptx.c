/* The nvptx target: a typed kernel to PTX.
 *
 *   lower (lib/lower) -> link the math functions called -> optimize (a short pipeline) -> emit
 *
 * LLVM ends the process on what a target cannot do, so everything of that kind is refused here first: architectures and PTX versions by a table of our own. */
#include <dlfcn.h>
#include <glob.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower/nvptx.h"
#include "target/llvm.h"
#include "target/target.h"

/* ---- architectures ---- */

typedef struct arch_row {
  uint32_t arch;
  char suffix;
  uint32_t least_ptx; /* what LLVM asks for; a lower version ends the process */
} arch_row;

/* Ascending; those without a suffix run on everything newer of their kind. */
static const arch_row arches[] = {
  { 75, 0, 63 },    { 80, 0, 70 },    { 86, 0, 71 },    { 87, 0, 74 },    { 88, 0, 90 },    { 89, 0, 78 },    { 90, 0, 78 },    { 90, 'a', 80 },
  { 100, 0, 86 },   { 100, 'a', 86 }, { 100, 'f', 88 }, { 101, 0, 86 },   { 103, 0, 88 },   { 103, 'a', 88 }, { 103, 'f', 88 }, { 110, 0, 90 },
  { 110, 'a', 90 }, { 110, 'f', 90 }, { 120, 0, 87 },   { 120, 'a', 87 }, { 120, 'f', 88 }, { 121, 0, 88 },   { 121, 'a', 88 }, { 121, 'f', 88 },
};
enum { ARCH_COUNT = sizeof arches / sizeof *arches };

/* The versions that LLVM can write, ascending. */
static const uint32_t ptx_versions[] = { 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88, 90 };
enum { PTX_COUNT = sizeof ptx_versions / sizeof *ptx_versions };

/* What code is made for. */
typedef struct machine_key {
  const arch_row *arch;
  uint32_t ptx;
  bool is_fast_emission; /* codegen level 0, see emission_of */
} machine_key;

static const arch_row *find_arch(uint32_t arch, char suffix)
{
  for (int i = 0; i < ARCH_COUNT; i++)
    if (arches[i].arch == arch && arches[i].suffix == suffix) return &arches[i];
  return NULL;
}

/* Newer than the table: the newest without suffix that the PTX version allows. */
static const arch_row *newest_arch(uint32_t ptx_limit)
{
  const arch_row *best = NULL;
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

static const arch_row *select_arch(kj_compilation *c)
{
  const kj_target *target = &c->request->target;
  const char suffix[2] = { target->suffix, 0 };
  const arch_row *row = find_arch(target->arch, target->suffix);
  if (!row && target->arch > arches[ARCH_COUNT - 1].arch && !target->suffix) row = newest_arch(target->ptx_version);
  if (!row) kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED, "unknown architecture sm_%u%s: kjit compiles for sm_75 and newer", target->arch, suffix);
  if (target->ptx_version && highest_version(target->ptx_version) < row->least_ptx)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED, "sm_%u%s needs PTX %u.%u; PTX %u.%u was asked for", row->arch, suffix, row->least_ptx / 10,
            row->least_ptx % 10, target->ptx_version / 10, target->ptx_version % 10);
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

/* Built-ins and facts of the language need PTX 6.2 at most, which every architecture here has; the labels in the sections of debug information need 7.5. */
static machine_key select_machine(kj_compilation *c)
{
  enum { LEAST_FOR_DEBUG = 75 };
  const arch_row *row = select_arch(c);
  uint32_t limit = c->request->target.ptx_version, least = row->least_ptx;
  bool is_full = c->request->debug == KJIT_DEBUG_FULL;
  if (is_full && least < LEAST_FOR_DEBUG) least = LEAST_FOR_DEBUG;
  if (is_full && limit && highest_version(limit) < LEAST_FOR_DEBUG)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED, "full debug information needs PTX 7.5; PTX %u.%u was asked for", limit / 10, limit % 10);
  if (has_recursion(c) && least < STACK_PTX) least = STACK_PTX;
  if (c->least_ptx > least) least = c->least_ptx; /* a lower limit was refused by name */
  if (limit && highest_version(limit) < least)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED, "recursion needs PTX %u.%u (a driver for CUDA 11.3); PTX %u.%u was asked for", least / 10,
            least % 10, limit / 10, limit % 10);
  return (machine_key){ .arch = row, .ptx = limit ? highest_version(limit) : least };
}

void kj_check_nvptx(kj_compilation *c)
{
  const arch_row *row = select_arch(c);
  if (row->arch < c->request->target.arch)
    kj_warn(c, (kj_location){ 0 }, KJIT_SEVERITY_REMARK, "sm_%u is newer than this kjit knows: compiled for sm_%u", c->request->target.arch, row->arch);
}

/* ---- target machines: a pool, since making one takes as long as compiling a small kernel ---- */

typedef struct worker worker;
struct worker {
  worker *next;
  machine_key key;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef layout;
};

struct kj_nvptx {
  pthread_mutex_t mutex; /* protects what follows */
  worker *idle;
  char *given_path; /* of libdevice; NULL: looked for */
  kj_bitcode *library;
  kj_math_library library_kind;
  bool has_looked;
};

static const char triple[] = "nvptx64-nvidia-cuda";

static bool is_same(machine_key a, machine_key b) { return a.arch == b.arch && a.ptx == b.ptx && a.is_fast_emission == b.is_fast_emission; }

static worker *make_worker(machine_key key)
{
  LLVMTargetRef target;
  char *message = NULL, cpu[16], features[16];
  worker *w = calloc(1, sizeof *w);
  if (!w || LLVMGetTargetFromTriple(triple, &target, &message)) {
    LLVMDisposeMessage(message);
    free(w);
    return NULL;
  }
  snprintf(cpu, sizeof cpu, "sm_%u%.1s", key.arch->arch, (const char[2]){ key.arch->suffix, 0 });
  snprintf(features, sizeof features, "+ptx%u", key.ptx);
  LLVMCodeGenOptLevel level = key.is_fast_emission ? LLVMCodeGenLevelNone : LLVMCodeGenLevelDefault;
  w->key = key;
  w->machine = LLVMCreateTargetMachine(target, triple, cpu, features, level, LLVMRelocDefault, LLVMCodeModelDefault);
  w->layout = LLVMCreateTargetDataLayout(w->machine);
  return w;
}

static void destroy_worker(worker *w)
{
  LLVMDisposeTargetData(w->layout);
  LLVMDisposeTargetMachine(w->machine);
  free(w);
}

static worker *take_worker(kj_nvptx *nvptx, machine_key key)
{
  worker *found = NULL;
  pthread_mutex_lock(&nvptx->mutex);
  for (worker **at = &nvptx->idle; *at; at = &(*at)->next) {
    if (!is_same((*at)->key, key)) continue;
    found = *at;
    *at = found->next;
    break;
  }
  pthread_mutex_unlock(&nvptx->mutex);
  return found ? found : make_worker(key);
}

static void return_worker(kj_nvptx *nvptx, worker *w)
{
  pthread_mutex_lock(&nvptx->mutex);
  w->next = nvptx->idle;
  nvptx->idle = w;
  pthread_mutex_unlock(&nvptx->mutex);
}

/* ---- the math library ---- */

static kj_bitcode *open_first(const char *pattern)
{
  glob_t found;
  const char *reason;
  kj_bitcode *library = NULL;
  if (glob(pattern, 0, NULL, &found) != 0) return NULL;
  for (size_t i = found.gl_pathc; i-- > 0 && !library;) library = kj_open_bitcode(found.gl_pathv[i], &reason); /* the highest version comes last */
  globfree(&found);
  return library;
}

/* In a bundle libclc's file lies beside the compiler library. */
static kj_bitcode *open_beside(const char *name)
{
  Dl_info info;
  const char *reason, *slash;
  char *path = NULL;
  if (!dladdr((void *)open_first, &info) || !info.dli_fname || !(slash = strrchr(info.dli_fname, '/'))) return NULL;
  if (asprintf(&path, "%.*s/clc/%s", (int)(slash - info.dli_fname), info.dli_fname, name) < 0) return NULL;
  kj_bitcode *library = kj_open_bitcode(path, &reason);
  free(path);
  return library;
}

static void look_for_library(kj_nvptx *nvptx)
{
  static const struct {
    const char *pattern;
    kj_math_library kind;
  } places[] = {
#define PLACE(pattern, kind) { pattern, kind },
#include "target/math_libraries.def"
#undef PLACE
  };
  for (size_t i = 0; i < sizeof places / sizeof *places && !nvptx->library; i++) {
    nvptx->library = open_first(places[i].pattern);
    nvptx->library_kind = places[i].kind;
  }
  if (nvptx->library) return;
  nvptx->library = open_beside("nvptx64--.bc");
  nvptx->library_kind = KJ_LIBCLC;
}

/* By the name of libclc's file. */
static kj_math_library kind_of(const char *path) { return strstr(path, "nvptx64--") ? KJ_LIBCLC : KJ_LIBDEVICE; }

static kj_bitcode *get_library(kj_nvptx *nvptx)
{
  pthread_mutex_lock(&nvptx->mutex);
  if (!nvptx->has_looked && !nvptx->library) look_for_library(nvptx);
  nvptx->has_looked = true;
  kj_bitcode *library = nvptx->library;
  pthread_mutex_unlock(&nvptx->mutex);
  return library;
}

kjit_status kj_create_nvptx(const char *libdevice_path, kj_diagnostics *diagnostics, kj_nvptx **nvptx)
{
  const char *reason = "";
  *nvptx = NULL;
  kj_start_llvm();
  kj_nvptx *created = calloc(1, sizeof *created);
  if (!created) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY, "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  if (libdevice_path) {
    created->library = kj_open_bitcode(libdevice_path, &reason);
    created->library_kind = kind_of(libdevice_path);
    if (!created->library) {
      kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_IO, "libdevice: %s %s", libdevice_path, reason);
      free(created);
      return KJIT_ERROR_IO;
    }
  }
  pthread_mutex_init(&created->mutex, NULL);
  *nvptx = created;
  return KJIT_OK;
}

void kj_destroy_nvptx(kj_nvptx *nvptx)
{
  if (!nvptx) return;
  for (worker *w = nvptx->idle, *next; w; w = next) {
    next = w->next;
    destroy_worker(w);
  }
  kj_close_bitcode(nvptx->library);
  pthread_mutex_destroy(&nvptx->mutex);
  free(nvptx);
}

/* ---- one emission ---- */

typedef struct emission {
  kj_nvptx *nvptx;
  kj_compilation *c;
  kj_code *code;
  machine_key key;
  worker *worker;
  kj_llvm_errors errors;
  LLVMContextRef context;
  LLVMModuleRef module;
  kj_lowering lowering;
  kj_nvptx_lowering state;
  bool has_externs; /* code of the host is linked in */
  bool is_large;    /* see kj_module_size */
} emission;

static void prepare(emission *e)
{
  bool is_dump = e->c->request->stage == KJIT_STAGE_LLVM || e->c->request->stage == KJIT_STAGE_LLVM_OPT;
  e->key = select_machine(e->c);
  get_library(e->nvptx);
  e->context = kj_create_llvm_context(&e->errors, is_dump);
  e->module = LLVMModuleCreateWithNameInContext("kjit", e->context);
  e->worker = take_worker(e->nvptx, e->key);
  if (!e->worker) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
  LLVMSetTarget(e->module, triple);
  LLVMSetModuleDataLayout(e->module, e->worker->layout);
  e->state.library = e->nvptx->library_kind;
}

/* The layout is the module's: it remembers structs by their address, which another context may use again. */
static void lower(emission *e)
{
  e->lowering = (kj_lowering){ .c = e->c,
                               .context = e->context,
                               .module = e->module,
                               .layout = LLVMGetModuleDataLayout(e->module),
                               .target = &kj_nvptx_lowering_target,
                               .target_state = &e->state };
  kj_lower(&e->lowering);
  kj_check_module(e->c, e->module);
}

/* libdevice asks its environment by name. Answered here and not by LLVM's pass, which takes the square root to be approximate. */
static uint64_t answer(const emission *e, const char *question, size_t length)
{
  static const char arch[] = "__CUDA_ARCH", sqrt[] = "__CUDA_PREC_SQRT", division[] = "__CUDA_PREC_DIV";
  if (length >= sizeof arch - 1 && strncmp(question, arch, sizeof arch - 1) == 0) return e->key.arch->arch * 10;
  if (length >= sizeof sqrt - 1 && strncmp(question, sqrt, sizeof sqrt - 1) == 0) return 1;
  return length >= sizeof division - 1 && strncmp(question, division, sizeof division - 1) == 0; /* __CUDA_FTZ: 0 */
}

static LLVMValueRef question_of(LLVMValueRef call)
{
  LLVMValueRef operand = LLVMGetOperand(call, 0);
  while (LLVMIsAConstantExpr(operand)) operand = LLVMGetOperand(operand, 0);
  LLVMValueRef text = LLVMIsAGlobalVariable(operand) ? LLVMGetInitializer(operand) : NULL;
  return text && LLVMIsConstantString(text) ? text : NULL;
}

static void answer_reflection(emission *e)
{
  LLVMValueRef reflect = LLVMGetNamedFunction(e->module, "__nvvm_reflect");
  LLVMUseRef use = reflect ? LLVMGetFirstUse(reflect) : NULL;
  while (use) {
    LLVMValueRef call = LLVMGetUser(use), text = LLVMIsACallInst(call) ? question_of(call) : NULL;
    use = LLVMGetNextUse(use);
    if (!text) continue; /* LLVM's pass takes it */
    size_t length;
    const char *question = LLVMGetAsString(text, &length);
    LLVMReplaceAllUsesWith(call, LLVMConstInt(LLVMTypeOf(call), answer(e, question, length), false));
    LLVMInstructionEraseFromParent(call);
  }
}

/* Functions that every driver has. */
static bool is_of_driver(const char *name)
{
  static const char *const names[] = { "vprintf", "malloc", "free", "__assertfail", "__nvvm_reflect" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static void check_calls(emission *e)
{
  for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    if (!LLVMIsDeclaration(f) || LLVMGetIntrinsicID(f) || is_of_driver(name) || kj_is_extern(e->c, name)) continue;
    if (!LLVMGetFirstUse(f)) continue;
    if (e->has_externs)
      kj_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE, "the code bound to an extern func calls `%s`, which nothing defines",
              kj_copy_string(e->c->arena, name, length));
    kj_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED, "the math library has no function `%s`", kj_copy_string(e->c->arena, name, length));
  }
}

static void link_math(emission *e)
{
  e->has_externs = kj_link_externs(e->c, e->module, &e->errors);
  if (!e->state.calls_library && !e->has_externs) return;
  if (e->state.calls_library && !e->nvptx->library)
    kj_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "math functions need libdevice (CUDA toolkit) or libclc's nvptx library (package libclc-22); neither was found");
  if (e->nvptx->library) kj_link_bitcode(e->c, e->nvptx->library, e->module, &e->errors);
  e->state.calls_library = true;
  e->state.has_branches |= e->has_externs;
  check_calls(e);
  answer_reflection(e);
}

/* ---- pipelines ----
 * default<O3> takes two to three times as long and gives no better code for kernels: the trees were inlined already, and ptxas optimizes once more.
 *
 * A kernel without loops of its own and without shared memory (element-wise ones are) gains nothing from code generation's optimizing level either: what it needs of it, the joining of loads and
 * stores, is in the pipeline, and emission then takes a third of the time. */

#define EARLY "sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>"
#define LOOPS \
  "loop-mssa(loop-rotate,licm),loop(indvars,loop-deletion,loop-unroll-full),sroa,gvn,dse,loop-unroll<O2>,infer-alignment,instcombine<no-verify-fixpoint>," \
  "simplifycfg"
#define STRAIGHT \
  "loop-mssa(loop-rotate,licm),infer-address-spaces,separate-const-offset-from-gep,early-cse<memssa>,load-store-vectorizer,nvptx-tag-invariant-loads"
#define LIBRARY "nvvm-reflect,always-inline,"

static bool is_straight(const emission *e)
{
  const kj_lowering *l = &e->lowering;
  return !l->has_loops && !e->state.has_branches && !l->pending.count && !l->shared_places.count;
}

static bool is_unoptimized(const emission *e) { return e->c->request->debug == KJIT_DEBUG_FULL; }

static void optimize(emission *e)
{
  static const char *const pipelines[2][2] = {
    /* [is_straight][calls_library] */
    { "function(" EARLY "," LOOPS "),globaldce", LIBRARY "function(" EARLY "," LOOPS "),globaldce" },
    { "function(" EARLY "," STRAIGHT ")", LIBRARY "function(" EARLY "," STRAIGHT "),globaldce" },
  };
  const char *pipeline = pipelines[is_straight(e)][e->state.calls_library];
  e->is_large = kj_measure_module(e->module) == KJ_SIZE_LARGE;
  if (e->is_large) pipeline = LIBRARY "function(" EARLY ",gvn),globaldce";
  if (is_unoptimized(e)) pipeline = LIBRARY "globaldce";
  if (e->has_externs) pipeline = kj_format(e->c->arena, "cgscc(inline),%s", pipeline);
  kj_run_passes(e->c, e->module, e->worker->machine, pipeline, &e->errors);
}

/* The machine for emission differs from that for lowering in its level only. */
static void select_emission(emission *e)
{
  if (!is_straight(e) && !is_unoptimized(e) && !e->is_large) return;
  return_worker(e->nvptx, e->worker);
  e->key.is_fast_emission = true;
  e->worker = take_worker(e->nvptx, e->key);
  if (!e->worker) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
}

static void run(emission *e)
{
  kjit_stage stage = e->c->request->stage;
  uint64_t start = kj_now_ns(), lowered, optimized;
  prepare(e);
  lower(e);
  lowered = kj_now_ns();
  e->code->lower_time_ns = lowered - start;
  if (!kj_describe_code(&e->lowering, e->code)) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
  if (stage == KJIT_STAGE_LLVM) {
    kj_take_module_text(e->c, e->module, e->code);
    return;
  }
  link_math(e);
  optimize(e);
  optimized = kj_now_ns();
  e->code->optimize_time_ns = optimized - lowered;
  if (stage == KJIT_STAGE_LLVM_OPT) {
    kj_take_module_text(e->c, e->module, e->code);
    return;
  }
  select_emission(e);
  kj_emit_module(e->c, e->module, e->worker->machine, LLVMAssemblyFile, &e->errors, e->code);
  e->code->emit_time_ns = kj_now_ns() - optimized;
}

static void finish(emission *e)
{
  if (e->errors.is_fatal) return;
  kj_end_lowering(&e->lowering);
  if (e->module) LLVMDisposeModule(e->module);
  if (e->context) LLVMContextDispose(e->context);
  if (e->worker) return_worker(e->nvptx, e->worker);
}

/* Failures jump; LLVM's objects must be freed on the way. */
void kj_emit_nvptx(kj_nvptx *nvptx, kj_compilation *c, kj_code *code)
{
  if (c->request->stage == KJIT_STAGE_ASM || c->request->stage == KJIT_STAGE_OBJECT)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED, "GPU targets have no stage `%s`; PTX is the last one",
            c->request->stage == KJIT_STAGE_ASM ? "asm" : "object");
  emission *e = KJ_NEW(c->arena, emission);
  *e = (emission){ .nvptx = nvptx, .c = c, .code = code };
  jmp_buf *outer = c->on_failure, *outer_arena = c->arena->on_failure, here;
  c->on_failure = c->arena->on_failure = &here;
  int jump = setjmp(here);
  if (jump == 0) run(e);
  c->on_failure = outer;
  c->arena->on_failure = outer_arena;
  finish(e);
  if (jump) longjmp(*outer, jump);
}
