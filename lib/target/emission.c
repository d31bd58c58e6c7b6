/* The steps that all targets share: LLVM diagnostics, target machines, optimization and
 * emission. */
#include "target/emission.h"
#include "support/host_process.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "native/architecture.h"
#include "target/llvm.h"
#include "target/target.h"

/* ---- LLVM set-up ---- */

/* ---- protection against fatal errors ----
 *
 * LLVM ends the process if it cannot select instructions for an operation. kjit rejects all such
 * operations before it calls LLVM. If kjit misses one, only the compilation in this thread fails,
 * because of this protection. */

static _Thread_local struct {
  kt_compilation *c; /* NULL means that this thread is not calling LLVM */
  kg_llvm_errors *errors;
} running;

static void on_fatal_error(const char *reason)
{
  kt_compilation *c = running.c;
  kg_fault_guarded();
  if (!c) return;
  running.c = NULL;
  running.errors->is_fatal = true;
  kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_COMPILE, "%s: %s",
          running.errors->has_externs
            ? "the code bound to an extern function has a part that LLVM cannot compile for GPUs"
            : "internal error: LLVM failed",
          reason);
}

void kg_enter_llvm(kt_compilation *c, kg_llvm_errors *errors)
{
  running.c = c;
  running.errors = errors;
}

void kg_leave_llvm(void) { running.c = NULL; }

/* Sets LLVM options that LLVM-C offers in no other way.
 *
 * NVPTX code generation has a pass that reassociates sums in order to share equal parts. The pass
 * is disabled: it takes up to a tenth of the emission time and finds almost nothing, because other
 * passes of LLVM, and ptxas, do the same.
 *
 * By default, the scheduler of CPU code generation compares each load and store in a block with up
 * to 1000 earlier ones, which takes seconds. The option sets a smaller number: if a block has more
 * loads and stores than this number, the scheduler keeps the older half of them in order and does
 * not compare them. */
static void set_options(void)
{
  static const char *const options[] = { "kjit", "-opt-disable=nary-reassociate",
                                         "-dag-maps-huge-region=192" };
  LLVMParseCommandLineOptions(sizeof options / sizeof *options, options, NULL);
}

static void initialize(void)
{
  LLVMInstallFatalErrorHandler(on_fatal_error);
  set_options();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  KJ_LLVM_HOST(TargetInfo)();
  KJ_LLVM_HOST(Target)();
  KJ_LLVM_HOST(TargetMC)();
  KJ_LLVM_HOST(AsmPrinter)();
}

void kg_start_llvm(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialize);
}

/* ---- errors ---- */

/* Reads the size of a stack frame from a warning. LLVM-C reports the size only in the warning that
 * a frame exceeds a limit. */
static void note_frame(kg_llvm_errors *errors, const char *warning)
{
  /* bytes of stack that a call uses for the return address and alignment */
  enum { CALL_BYTES = 64 };
  static const char start[] = "stack frame size (";
  const char *at = strstr(warning, start);
  unsigned long long bytes = at ? strtoull(at + sizeof start - 1, NULL, 10) : 0;
  if (bytes) errors->stack_bytes += bytes + CALL_BYTES;
}

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
  kg_llvm_errors *errors = data;
  LLVMDiagnosticSeverity severity = LLVMGetDiagInfoSeverity(info);
  if (severity != LLVMDSError && severity != LLVMDSWarning) return;
  char *text = LLVMGetDiagInfoDescription(info);
  if (severity == LLVMDSWarning) {
    note_frame(errors, text);
  } else if (errors->count++ == 0) {
    strncpy(errors->first, text, sizeof errors->first - 1);
    errors->first[sizeof errors->first - 1] = 0;
  }
  LLVMDisposeMessage(text);
}

void kg_report_frames(LLVMContextRef context, LLVMModuleRef module)
{
  static const char name[] = "warn-stack-size";
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(context, name, sizeof name - 1, "0", 1);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f))
      LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

LLVMContextRef kg_create_llvm_context(kg_llvm_errors *errors, bool keeps_names)
{
  LLVMContextRef context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(context, on_diagnostic, errors);
  LLVMContextSetDiscardValueNames(context, !keeps_names);
  return context;
}

static const kj_location nowhere = { 0 };

void kg_check_llvm_errors(kt_compilation *c, const kg_llvm_errors *errors, const char *what)
{
  if (errors->count) kt_fail(c, nowhere, KJIT_ERROR_COMPILE, "%s: %s", what, errors->first);
}

void kg_check_llvm_error(kt_compilation *c, LLVMErrorRef error, const char *what)
{
  if (!error) return;
  char *message = LLVMGetErrorMessage(error);
  char *copy = kj_format(c->arena, "%s", message);
  LLVMDisposeErrorMessage(message);
  kt_fail(c, nowhere, KJIT_ERROR_COMPILE, "%s: %s", what, copy);
}

/* ---- stages ---- */

void kg_check_module(kt_compilation *c, LLVMModuleRef module)
{
#ifdef NDEBUG
  (void)c, (void)module;
#else
  char *message = NULL;
  if (!LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    LLVMDisposeMessage(message);
    return;
  }
  char *copy = kj_format(c->arena, "%s", message);
  LLVMDisposeMessage(message);
  kt_fail(c, nowhere, KJIT_ERROR_COMPILE, "internal error: invalid LLVM IR: %s", copy);
#endif
}

/* Returns the size class of the module. A module with many loops is treated as large, because
 * scalar evolution compares each value that depends on a loop with every loop. */
kg_module_size kg_measure_emission(const kg_emission *e)
{
  enum { MOST_LOOPS = 128 };
  kg_module_size size = kg_measure_module(e->module);
  return size < KJ_SIZE_LARGE && e->lowering.loop_count > MOST_LOOPS ? KJ_SIZE_LARGE : size;
}

bool kg_unrolls_much(const kg_emission *e)
{
  enum { MOST_EXPRESSIONS = 4096 };
  return e->lowering.unrolled_size > MOST_EXPRESSIONS;
}

void kg_settle_function(kg_emission *e, LLVMValueRef function, const char *pipeline)
{
  kg_run_function_passes(e->c, function, e->machine->machine, pipeline, &e->errors);
  kl_add_attribute(&e->lowering, function, (unsigned)LLVMAttributeFunctionIndex, "noinline", 0);
  kl_add_attribute(&e->lowering, function, (unsigned)LLVMAttributeFunctionIndex, "optnone", 0);
}

/* Copies LLVM's output to code->data. Returns false when out of memory; the caller then frees
 * LLVM's copy before it reports the error. */
static bool set_data(kt_compilation *c, const char *start, size_t size)
{
  char *copy = malloc(size + 1);
  if (!copy) return false;
  memcpy(copy, start, size);
  copy[size] = 0;
  c->code->data = copy;
  c->code->size_bytes = size;
  return true;
}

void kg_take_module_text(kt_compilation *c, LLVMModuleRef module)
{
  char *text = LLVMPrintModuleToString(module);
  bool is_kept = set_data(c, text, strlen(text));
  LLVMDisposeMessage(text);
  if (!is_kept) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
}

void kg_emit_module(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                    LLVMCodeGenFileType type, kg_llvm_errors *errors)
{
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  kt_begin_step(c, "LLVM's code generation");
  kg_enter_llvm(c, errors);
  LLVMBool has_failed =
    LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer);
  kg_leave_llvm();
  if (has_failed) {
    char *copy = kj_format(c->arena, "%s", message);
    LLVMDisposeMessage(message);
    kt_fail(c, nowhere, KJIT_ERROR_COMPILE, "emitting: %s", copy);
  }
  size_t size = LLVMGetBufferSize(buffer);
  bool is_large = size > c->budget->limits[KJ_LIMIT_CODE];
  bool is_kept = is_large || errors->count > 0 || set_data(c, LLVMGetBufferStart(buffer), size);
  LLVMDisposeMemoryBuffer(buffer);
  if (!is_kept) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
  kt_check_limit(c, KJ_LIMIT_CODE, size, c->request->kernel->decl->location,
                 "LLVM has generated this size from %llu instructions",
                 (unsigned long long)(is_large ? kg_count_instructions(module, UINT64_MAX) : 0));
  kg_check_llvm_errors(c, errors, "emitting");
}

/* ---- machine ---- */

static void destroy_machine(kg_machine *m)
{
  if (m->layout) LLVMDisposeTargetData(m->layout);
  if (m->machine) LLVMDisposeTargetMachine(m->machine);
  free(m->cpu);
  free(m->features);
  free(m);
}

static kg_machine *make_machine(const kg_machine_kind *kind)
{
  LLVMTargetRef target;
  char *message = NULL;
  kg_machine *m = calloc(1, sizeof *m);
  if (!m) return NULL;
  m->cpu = strdup(kind->cpu);
  m->features = strdup(kind->features);
  m->level = kind->level;
  if (!m->cpu || !m->features || LLVMGetTargetFromTriple(kind->triple, &target, &message)) {
    LLVMDisposeMessage(message);
    destroy_machine(m);
    return NULL;
  }
  m->machine = LLVMCreateTargetMachine(target, kind->triple, kind->cpu, kind->features, kind->level,
                                       kind->relocation, kind->model);
  m->layout = LLVMCreateTargetDataLayout(m->machine);
  return m;
}

static bool is_of_kind(const kg_machine *m, const kg_machine_kind *kind)
{
  return m->level == kind->level && strcmp(m->cpu, kind->cpu) == 0 &&
         strcmp(m->features, kind->features) == 0;
}

void kg_init_machines(kg_machines *machines)
{
  pthread_mutex_init(&machines->mutex, NULL);
  machines->idle = NULL;
}

void kg_free_machines(kg_machines *machines)
{
  for (kg_machine *m = machines->idle, *next; m; m = next) {
    next = m->next;
    destroy_machine(m);
  }
  pthread_mutex_destroy(&machines->mutex);
}

kg_machine *kg_take_machine(kg_machines *machines, const kg_machine_kind *kind)
{
  pthread_mutex_lock(&machines->mutex);
  kg_machine **at = &machines->idle;
  while (*at && !is_of_kind(*at, kind)) at = &(*at)->next;
  kg_machine *found = *at;
  if (found) *at = found->next;
  pthread_mutex_unlock(&machines->mutex);
  return found ? found : make_machine(kind);
}

void kg_return_machine(kg_machines *machines, kg_machine *machine)
{
  pthread_mutex_lock(&machines->mutex);
  machine->next = machines->idle;
  machines->idle = machine;
  pthread_mutex_unlock(&machines->mutex);
}

/* ---- emission ---- */

bool kg_is_unoptimized(const kg_emission *e) { return e->c->request->debug == KJIT_DEBUG_FULL; }

static void take_machine(kg_emission *e)
{
  e->machine = kg_take_machine(e->machines, &e->kind);
  if (!e->machine) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
}

static void prepare(kg_emission *e)
{
  bool is_dump =
    e->c->request->stage == KJIT_STAGE_LLVM || e->c->request->stage == KJIT_STAGE_LLVM_OPT;
  e->context = kg_create_llvm_context(&e->errors, is_dump);
  e->module = LLVMModuleCreateWithNameInContext("kjit", e->context);
  take_machine(e);
  LLVMSetTarget(e->module, e->kind.triple);
  LLVMSetModuleDataLayout(e->module, e->machine->layout);
}

/* Lowers the kernel. Lowering uses the data layout of the module, which no other compilation uses:
 * a data layout caches structs by address, and another LLVM context can have a different struct at
 * the same address. */
static void lower(kg_emission *e)
{
  e->lowering = (kl_lowering){ .c = e->c,
                               .context = e->context,
                               .module = e->module,
                               .layout = LLVMGetModuleDataLayout(e->module),
                               .target = e->steps->lowering,
                               .target_state = e->state };
  kl_lower(&e->lowering);
  if (e->steps->finish_lowering) e->steps->finish_lowering(e);
  kg_check_module(e->c, e->module);
}

/* Returns whether the request accepts plain code (code made with few optimizations) and plain code
 * saves compile time on the target. */
static bool is_plain(const kg_emission *e)
{
  const kj_compile_request *request = e->c->request;
  bool is_launched = request->stage == KJIT_STAGE_PTX || request->stage == KJIT_STAGE_OBJECT;
  if (request->plain == KJ_PLAIN_NONE || !is_launched || kg_is_unoptimized(e) ||
      !e->steps->saves_time || !e->steps->saves_time(e))
    return false;
  return request->plain == KJ_PLAIN_ANY || kg_has_one_result(e->module);
}

/* Selects the target machine for code generation: a machine without optimization if that is
 * sufficient, otherwise the machine that lowering has used. Only the optimization level differs. */
static void select_emission(kg_emission *e)
{
  if (!kg_is_unoptimized(e) && !e->c->code->is_plain && !e->steps->is_emitted_unoptimized(e))
    return;
  if (!kg_is_unoptimized(e) && e->steps->prepare_unoptimized) e->steps->prepare_unoptimized(e);
  kg_return_machine(e->machines, e->machine);
  e->machine = NULL;
  e->kind.level = LLVMCodeGenLevelNone;
  take_machine(e);
}

static void run(kg_emission *e)
{
  kjit_stage stage = e->c->request->stage;
  uint64_t start = kj_clock_ns();
  prepare(e);
  kt_begin_stage(e->c, KJIT_STAGE_LLVM);
  lower(e);
  uint64_t lowered = kj_clock_ns();
  e->c->code->lower_time_ns = lowered - start;
  kl_finish_code(&e->lowering);
  if (stage == KJIT_STAGE_LLVM) {
    kg_take_module_text(e->c, e->module);
    return;
  }
  kt_begin_stage(e->c, KJIT_STAGE_LLVM_OPT);
  e->c->code->is_plain = is_plain(e);
  if (e->c->code->is_plain) e->steps->optimize_little(e);
  else e->steps->optimize(e);
  uint64_t optimized = kj_clock_ns();
  e->c->code->optimize_time_ns = optimized - lowered;
  if (stage == KJIT_STAGE_LLVM_OPT) {
    kg_take_module_text(e->c, e->module);
    return;
  }
  kt_begin_stage(e->c, stage);
  select_emission(e);
  kg_emit_module(e->c, e->module, e->machine->machine,
                 stage == KJIT_STAGE_OBJECT ? LLVMObjectFile : LLVMAssemblyFile, &e->errors);
  e->c->code->emit_time_ns = kj_clock_ns() - optimized;
}

static void finish(kg_emission *e)
{
  if (e->errors.is_fatal) return;
  if (e->steps->finish) e->steps->finish(e);
  kl_end_lowering(&e->lowering);
  if (e->module) LLVMDisposeModule(e->module);
  if (e->context) LLVMContextDispose(e->context);
  if (e->machine) kg_return_machine(e->machines, e->machine);
}

void kg_emit_code(kg_emission *e)
{
  kt_compilation *c = e->c;
  jmp_buf *outer = c->on_failure, *outer_arena = c->arena->on_failure, here;
  c->on_failure = c->arena->on_failure = &here;
  if (c->unchecked) c->unchecked->on_failure = &here;
  int jump = setjmp(here);
  if (jump == 0) run(e);
  c->on_failure = outer;
  c->arena->on_failure = outer_arena;
  finish(e);
  if (jump) longjmp(*outer, jump);
}
