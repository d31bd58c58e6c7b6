/* What the targets share of LLVM. */
#include "target/llvm.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "target/guard.h"

uint64_t kj_now_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- the last net ----
 * LLVM ends the process on what it cannot select. kjit refuses all of that beforehand; should
 * something have been missed, the compilation in this thread fails instead. */

static _Thread_local struct {
  kj_compilation *c; /* NULL: none is inside LLVM */
  kj_llvm_errors *errors;
} running;

static void on_fatal_error(const char *reason)
{
  kj_compilation *c = running.c;
  kj_fault_guarded();
  if (!c) return;
  running.c = NULL;
  running.errors->is_fatal = true;
  kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_COMPILE, "internal error: LLVM gave up: %s", reason);
}

static void enter_llvm(kj_compilation *c, kj_llvm_errors *errors)
{
  running.c = c;
  running.errors = errors;
}

static void leave_llvm(void) { running.c = NULL; }

static void initialize(void)
{
  LLVMInstallFatalErrorHandler(on_fatal_error);
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

void kj_start_llvm(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, initialize);
}

/* ---- errors ---- */

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
  kj_llvm_errors *errors = data;
  if (LLVMGetDiagInfoSeverity(info) != LLVMDSError) return;
  char *text = LLVMGetDiagInfoDescription(info);
  if (errors->count++ == 0) {
    strncpy(errors->first, text, sizeof errors->first - 1);
    errors->first[sizeof errors->first - 1] = 0;
  }
  LLVMDisposeMessage(text);
}

LLVMContextRef kj_create_llvm_context(kj_llvm_errors *errors, bool keeps_names)
{
  LLVMContextRef context = LLVMContextCreate();
  LLVMContextSetDiagnosticHandler(context, on_diagnostic, errors);
  LLVMContextSetDiscardValueNames(context, !keeps_names);
  return context;
}

static const kj_location nowhere = { 0 };

void kj_check_llvm_errors(kj_compilation *c, const kj_llvm_errors *errors, const char *what)
{
  if (errors->count) kj_fail(c, nowhere, KJIT_ERROR_COMPILE, "%s: %s", what, errors->first);
}

void kj_check_llvm_error(kj_compilation *c, LLVMErrorRef error, const char *what)
{
  if (!error) return;
  char *message = LLVMGetErrorMessage(error);
  char *copy = kj_format(c->arena, "%s", message);
  LLVMDisposeErrorMessage(message);
  kj_fail(c, nowhere, KJIT_ERROR_COMPILE, "%s: %s", what, copy);
}

/* ---- stages ---- */

void kj_check_module(kj_compilation *c, LLVMModuleRef module)
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
  kj_fail(c, nowhere, KJIT_ERROR_COMPILE, "internal error: invalid LLVM IR: %s", copy);
#endif
}

static kj_module_size measure_function(LLVMValueRef function)
{
  enum { MOST_BLOCKS = 1024, MOST_INSTRUCTIONS = 4096 };
  uint32_t blocks = 0, instructions = 0;
  for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b; b = LLVMGetNextBasicBlock(b)) {
    blocks++;
    for (LLVMValueRef i = LLVMGetFirstInstruction(b); i && instructions <= MOST_INSTRUCTIONS;
         i = LLVMGetNextInstruction(i))
      instructions++;
  }
  return blocks > MOST_BLOCKS               ? KJ_SIZE_LARGE
         : instructions > MOST_INSTRUCTIONS ? KJ_SIZE_LONG
                                            : KJ_SIZE_USUAL;
}

static bool is_dense(LLVMBasicBlockRef block)
{
  enum { MOST_ACCESSES = 1024 };
  uint32_t accesses = 0;
  for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && accesses <= MOST_ACCESSES;
       i = LLVMGetNextInstruction(i))
    accesses += LLVMGetInstructionOpcode(i) == LLVMLoad || LLVMGetInstructionOpcode(i) == LLVMStore;
  return accesses > MOST_ACCESSES;
}

bool kj_is_dense(LLVMModuleRef module)
{
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      if (is_dense(b)) return true;
  return false;
}

kj_module_size kj_measure_module(LLVMModuleRef module)
{
  kj_module_size most = KJ_SIZE_USUAL;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    kj_module_size size = measure_function(f);
    if (size > most) most = size;
  }
  return most;
}

void kj_run_passes(kj_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                   const char *pipeline, kj_llvm_errors *errors)
{
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  enter_llvm(c, errors);
  LLVMErrorRef error = LLVMRunPasses(module, pipeline, machine, options);
  leave_llvm();
  LLVMDisposePassBuilderOptions(options);
  kj_check_llvm_error(c, error, "optimizing");
  kj_check_llvm_errors(c, errors, "optimizing");
}

static void set_data(kj_compilation *c, kj_code *code, const char *start, size_t size)
{
  char *copy = malloc(size + 1);
  if (!copy) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
  memcpy(copy, start, size);
  copy[size] = 0;
  code->data = copy;
  code->size_bytes = size;
}

void kj_take_module_text(kj_compilation *c, LLVMModuleRef module, kj_code *code)
{
  char *text = LLVMPrintModuleToString(module);
  char *copy = strdup(text);
  LLVMDisposeMessage(text);
  if (!copy) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
  code->data = copy;
  code->size_bytes = strlen(copy);
}

void kj_emit_module(kj_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                    LLVMCodeGenFileType type, kj_llvm_errors *errors, kj_code *code)
{
  char *message = NULL;
  LLVMMemoryBufferRef buffer = NULL;
  enter_llvm(c, errors);
  LLVMBool has_failed =
    LLVMTargetMachineEmitToMemoryBuffer(machine, module, type, &message, &buffer);
  leave_llvm();
  if (has_failed) {
    char *copy = kj_format(c->arena, "%s", message);
    LLVMDisposeMessage(message);
    kj_fail(c, nowhere, KJIT_ERROR_COMPILE, "emitting: %s", copy);
  }
  if (errors->count == 0) set_data(c, code, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
  LLVMDisposeMemoryBuffer(buffer);
  kj_check_llvm_errors(c, errors, "emitting");
}
