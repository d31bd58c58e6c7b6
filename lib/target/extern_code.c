/* Reads, checks and links the LLVM IR that the application provides for extern funcs. Catches
 * faults of LLVM's reader. */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "target/llvm.h"
#include "target/target.h"

/* ---- reading untrusted input ----
 *
 * LLVM's bitcode reader trusts its input, so a damaged file can make it follow an invalid pointer.
 * So this file catches faults while LLVM reads input, as LLVM's own tools do. A fault in this
 * thread becomes an error, and the reader's memory is leaked. Faults of other threads are passed to
 * the previous handlers. */

/* a signal handler for stack overflows needs its own stack */
enum { STACK_BYTES = 64 * 1024 };

static const int signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
enum { SIGNALS = sizeof signals / sizeof *signals };

/* held while kjit's handlers are installed */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction previous[SIGNALS];
static bool is_installed;
static _Thread_local sigjmp_buf *target;

void kg_fault_guarded(void)
{
  if (target) siglongjmp(*target, 1);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
  (void)context;
  kg_fault_guarded();
  for (int i = 0; i < SIGNALS; i++)
    if (signals[i] == signal) sigaction(signal, &previous[i], NULL);
  /* an instruction that has raised a signal raises it again when the handler has returned, but a
   * call such as abort, raise or kill does not */
  if (info->si_code <= 0) raise(signal);
}

static bool run_guarded(void (*run)(void *data), void *data)
{
  sigjmp_buf here;
  bool has_returned = false;
  if (sigsetjmp(here, 1) == 0) {
    target = &here;
    run(data);
    has_returned = true;
  }
  target = NULL;
  return has_returned;
}

static void install(void)
{
  struct sigaction ours = { .sa_sigaction = on_fault,
                            .sa_flags = SA_ONSTACK | SA_NODEFER | SA_SIGINFO };
  sigemptyset(&ours.sa_mask);
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], NULL, &previous[i]);
  is_installed = true;
  for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &ours, NULL);
}

/* Restores the previous handlers. If another thread has installed a handler meanwhile, leaves that
 * handler in place. */
static void uninstall(void)
{
  struct sigaction now;
  for (int i = 0; i < SIGNALS; i++)
    if (!sigaction(signals[i], NULL, &now) && (now.sa_flags & SA_SIGINFO) &&
        now.sa_sigaction == on_fault)
      sigaction(signals[i], &previous[i], NULL);
  is_installed = false;
}

/* Runs in a child process after a fork. Another thread of the parent may have held the mutex and
 * installed the handlers. This thread does not exist in the child. */
static void begin_child(void)
{
  pthread_mutex_init(&mutex, NULL);
  if (is_installed && !target) uninstall();
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, begin_child); }

bool kg_run_guarded(void (*run)(void *data), void *data)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  stack_t stack = { .ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES }, outer;
  bool has_stack = stack.ss_sp && sigaltstack(&stack, &outer) == 0;
  pthread_once(&once, watch_forks);
  pthread_mutex_lock(&mutex);
  install();
  bool has_returned = run_guarded(run, data);
  uninstall();
  pthread_mutex_unlock(&mutex);
  if (has_stack) sigaltstack(&outer, NULL);
  free(stack.ss_sp);
  return has_returned;
}

/* ---- linking ----
 *
 * Reads the application's LLVM IR for extern funcs, checks it and links it into the kernel's
 * module.
 *
 * LLVM's reader reports input that it does not support, such as bitcode of a newer version, and
 * LLVM's verifier checks the module. This file compares the types of the function with the
 * declaration, because a call with other types would be undefined behaviour. All symbols of the
 * application's module become internal, so that functions that are not called are removed. */

typedef struct linking {
  kt_compilation *c;
  LLVMModuleRef module;
  kg_llvm_errors *errors;
  const kt_instance *instance;
  LLVMModuleRef source; /* the module that is being checked, which this struct owns */
} linking;

static _Noreturn void fail(linking *k, const char *what, const char *detail)
{
  const ki_decl *decl = k->instance->function->decl;
  if (k->source) LLVMDisposeModule(k->source);
  kt_fail(k->c, decl->location, KJIT_ERROR_COMPILE, "the code bound to `%s` %s%s%s", decl->name,
          what, *detail ? ": " : "", detail);
}

/* Returns the first line of LLVM's message, which is copied to the arena. Disposes the message. */
static const char *take_message(linking *k, char *message)
{
  if (!message) return "";
  const char *copy = kj_copy_string(k->c->arena, message, strcspn(message, "\n"));
  LLVMDisposeMessage(message);
  return copy;
}

/* The data of one attempt to read and verify the code in a separate LLVM context. */
typedef struct trial {
  ki_code_kind kind;
  LLVMContextRef context;
  LLVMMemoryBufferRef buffer;
  LLVMModuleRef module;
  char *message; /* message of the reader */
  char *invalid; /* message of the verifier */
  LLVMBool has_failed, is_invalid;
} trial;

static void read_code(trial *t)
{
  if (t->kind == KJ_CODE_LLVM_TEXT) {
    /* the parser of text needs value names */
    LLVMBool discards = LLVMContextShouldDiscardValueNames(t->context);
    LLVMContextSetDiscardValueNames(t->context, false);
    t->has_failed = LLVMParseIRInContext2(t->context, t->buffer, &t->module, &t->message);
    LLVMContextSetDiscardValueNames(t->context, discards);
  } else t->has_failed = LLVMParseBitcodeInContext2(t->context, t->buffer, &t->module);
  if (t->has_failed) t->module = NULL;
}

static void read_and_verify(void *data)
{
  trial *t = data;
  read_code(t);
  if (t->has_failed) return;
  t->is_invalid = LLVMVerifyModule(t->module, LLVMReturnStatusAction, &t->invalid);
  LLVMDisposeModule(t->module);
}

static LLVMMemoryBufferRef make_buffer(const linking *k, const ki_bound_extern *bound)
{
  return LLVMCreateMemoryBufferWithMemoryRange(bound->code, bound->size_bytes, k->instance->symbol,
                                               bound->kind == KJ_CODE_LLVM_TEXT);
}

/* Tries to read the code in a separate context. A fault leaks only this context. If there is no
 * fault, it is safe to read the code again into the kernel's context. */
static void try_source(linking *k, const ki_bound_extern *bound)
{
  kg_llvm_errors *errors = KJ_NEW(k->c->arena, kg_llvm_errors);
  trial t = { .kind = bound->kind,
              .context = kg_create_llvm_context(errors, true),
              .buffer = make_buffer(k, bound) };
  bool has_returned = kg_run_guarded(read_and_verify, &t);
  if (!has_returned) fail(k, "is damaged: LLVM cannot read it", "");
  const char *reason = t.message ? take_message(k, t.message) : errors->first,
             *invalid = take_message(k, t.invalid);
  LLVMDisposeMemoryBuffer(t.buffer);
  LLVMContextDispose(t.context);
  if (t.has_failed) fail(k, "is not LLVM IR that LLVM 22 can read", reason);
  if (t.is_invalid) fail(k, "is not valid LLVM IR", invalid);
}

static void read_source(linking *k, const ki_bound_extern *bound)
{
  try_source(k, bound);
  trial t = { .kind = bound->kind,
              .context = LLVMGetModuleContext(k->module),
              .buffer = make_buffer(k, bound) };
  read_code(&t);
  LLVMDisposeMemoryBuffer(t.buffer);
  LLVMDisposeMessage(t.message);
  k->source = t.module;
  if (t.has_failed) fail(k, "is not LLVM IR that LLVM 22 can read", "");
}

static bool starts_with(const char *text, const char *start)
{
  return strncmp(text, start, strlen(start)) == 0;
}

static void check_target(linking *k)
{
  const char *target = LLVMGetTarget(k->source);
  if (*target && !starts_with(target, "nvptx64"))
    fail(k, "is not for GPUs (nvptx64-nvidia-cuda) but for",
         kj_copy_string(k->c->arena, target, strlen(target)));
}

static void check_types(linking *k, LLVMValueRef function)
{
  LLVMValueRef declared = LLVMGetNamedFunction(k->module, k->instance->symbol);
  if (!declared || LLVMGlobalGetValueType(function) == LLVMGlobalGetValueType(declared)) return;
  char *has = LLVMPrintTypeToString(LLVMGlobalGetValueType(function)),
       *wants = LLVMPrintTypeToString(LLVMGlobalGetValueType(declared));
  const char *detail =
    kj_format(k->c->arena, "its type is %s, but the declaration has the type %s", has, wants);
  LLVMDisposeMessage(has);
  LLVMDisposeMessage(wants);
  fail(k, "has another type than its declaration", detail);
}

/* Returns whether an attribute changes how the parameter is passed, so that the type alone does not
 * determine this. An example is byval, which passes a copy of a struct. */
static bool is_passed_otherwise(LLVMValueRef function, unsigned parameter)
{
  static const char *const names[] = { "byval", "inalloca", "preallocated" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (LLVMGetEnumAttributeAtIndex(function, parameter + 1,
                                    LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]))))
      return true;
  return false;
}

/* Rejects a kernel, which no function can call, and a function with parameters that are passed
 * otherwise than its declaration says. */
static void check_passing(linking *k, LLVMValueRef function)
{
  if (LLVMGetFunctionCallConv(function) == LLVMPTXKernelCallConv)
    fail(k, "is a kernel (`__global__` in CUDA C), which no function can call", "");
  for (unsigned i = 0; i < LLVMCountParams(function); i++)
    if (is_passed_otherwise(function, i))
      fail(k, "has another type than its declaration",
           kj_format(k->c->arena, "parameter %u is passed as a copy of a struct", i + 1));
}

/* Removes the attributes that specify the processor for which the code was compiled. LLVM would not
 * inline a function for another processor into a caller for this processor. */
static void forget_processor(LLVMValueRef function)
{
  static const char *const names[] = { "target-cpu", "target-features" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    LLVMRemoveStringAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                     names[i], (unsigned)strlen(names[i]));
}

/* Rejects a call of a function that the code does not define. Otherwise LLVM could link the
 * declaration to a function in the kernel's module that has the same name, or to the kernel
 * itself. */
static void check_call(linking *k, LLVMValueRef declaration)
{
  size_t length;
  const char *name = LLVMGetValueName2(declaration, &length);
  LLVMValueRef met = LLVMGetNamedFunction(k->module, name);
  if (met && !LLVMIsDeclaration(met) && LLVMGetFirstUse(declaration))
    fail(k, kj_format(k->c->arena, "calls `%s`, which is not defined", name), "");
}

/* Rejects variables that a kernel cannot have. A declaration must not be linked to a function in
 * the kernel's module that has the same name. */
static void check_variable(linking *k, LLVMValueRef variable)
{
  size_t length;
  const char *name = LLVMGetValueName2(variable, &length);
  if (!LLVMGetFirstUse(variable)) return;
  if (LLVMIsThreadLocal(variable))
    fail(k, kj_format(k->c->arena, "uses `%s`, but GPUs have no thread-local variables", name), "");
  if (LLVMIsDeclaration(variable) && LLVMGetNamedFunction(k->module, name))
    fail(k, kj_format(k->c->arena, "uses the variable `%s`, which is not defined", name), "");
}

/* Rejects functions that must run before or after the program, because nothing runs them. */
static void check_start(linking *k)
{
  static const char *const names[] = { "llvm.global_ctors", "llvm.global_dtors" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    LLVMValueRef list = LLVMGetNamedGlobal(k->source, names[i]);
    if (list && !LLVMIsDeclaration(list) && LLVMGetNumOperands(LLVMGetInitializer(list)) > 0)
      fail(k, "has constructors or destructors of variables, which GPUs do not run", names[i]);
  }
}

static void hide(LLVMValueRef value)
{
  if (!LLVMIsDeclaration(value) && LLVMGetLinkage(value) != LLVMAppendingLinkage &&
      LLVMGetLinkage(value) != LLVMPrivateLinkage)
    LLVMSetLinkage(value, LLVMInternalLinkage);
}

/* Makes all symbols of the application's module internal. Equal names in two such modules, or in
 * the kernel, belong to unrelated functions and variables. The linker renames internal symbols. */
static void hide_source(linking *k)
{
  check_start(k);
  for (LLVMValueRef f = LLVMGetFirstFunction(k->source); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f)) check_call(k, f);
    else forget_processor(f);
    hide(f);
  }
  for (LLVMValueRef g = LLVMGetFirstGlobal(k->source); g; g = LLVMGetNextGlobal(g)) {
    check_variable(k, g);
    hide(g);
  }
  for (LLVMValueRef a = LLVMGetFirstGlobalAlias(k->source); a; a = LLVMGetNextGlobalAlias(a))
    hide(a);
}

static bool is_same_code(const ki_bound_extern *a, const ki_bound_extern *b)
{
  return a->kind == b->kind && a->size_bytes == b->size_bytes && a->digest[0] == b->digest[0] &&
         a->digest[1] == b->digest[1];
}

static bool is_llvm_ir(const ki_bound_extern *bound)
{
  return bound && (bound->kind == KJ_CODE_BITCODE || bound->kind == KJ_CODE_LLVM_TEXT);
}

/* Makes the function of the instance visible under the instance's symbol. If two extern funcs are
 * bound to the same function, the function may have this symbol already. */
static void show_function(linking *k)
{
  const char *name = k->instance->function->decl->name, *symbol = k->instance->symbol;
  KJ_ASSERT(strcmp(name, symbol) != 0);
  LLVMValueRef function = LLVMGetNamedFunction(k->source, symbol);
  if (!function) function = LLVMGetNamedFunction(k->source, name);
  if (!function || LLVMIsDeclaration(function))
    fail(k, "does not define a function with that name", "");
  check_types(k, function);
  check_passing(k, function);
  LLVMSetValueName2(function, symbol, strlen(symbol));
  LLVMSetLinkage(function, LLVMExternalLinkage);
}

/* Calls `call` for this instance and for all later instances that are bound to the same code. */
static void for_each_bound(linking *k, size_t first, void (*call)(linking *k))
{
  const ki_bound_extern *bound = k->c->instances.items[first]->function->bound;
  for (size_t i = first; i < k->c->instances.count; i++) {
    k->instance = k->c->instances.items[i];
    const ki_bound_extern *other = k->instance->function->bound;
    if (other && is_same_code(bound, other)) call(k);
  }
  k->instance = k->c->instances.items[first];
}

static void hide_linked(linking *k)
{
  LLVMValueRef function = LLVMGetNamedFunction(k->module, k->instance->symbol);
  KJ_ASSERT(function && !LLVMIsDeclaration(function));
  LLVMSetLinkage(function, LLVMInternalLinkage);
}

static void link_source(linking *k)
{
  LLVMSetTarget(k->source, LLVMGetTarget(k->module));
  LLVMSetDataLayout(k->source, LLVMGetDataLayoutStr(k->module));
  LLVMModuleRef source = k->source;
  k->source = NULL; /* from here on, the linker owns the module */
  kg_llvm_errors before = *k->errors;
  LLVMBool has_failed = LLVMLinkModules2(k->module, source);
  const char *detail = kj_copy_string(k->c->arena, k->errors->first, strlen(k->errors->first));
  if (has_failed) *k->errors = before;
  if (has_failed) fail(k, "cannot be linked", detail);
}

/* Returns whether the code has already been linked for an earlier instance. Several funcs can be
 * bound to the same code. */
static bool is_linked(const kt_compilation *c, size_t index)
{
  const ki_bound_extern *bound = c->instances.items[index]->function->bound;
  for (size_t i = 0; i < index; i++) {
    const ki_bound_extern *other = c->instances.items[i]->function->bound;
    if (other && is_same_code(bound, other)) return true;
  }
  return false;
}

bool kg_link_externs(kt_compilation *c, LLVMModuleRef module, kg_llvm_errors *errors)
{
  bool has_any = false;
  for (size_t i = 0; i < c->instances.count; i++) {
    linking k = { .c = c, .module = module, .errors = errors, .instance = c->instances.items[i] };
    const ki_bound_extern *bound = k.instance->function->bound;
    if (!is_llvm_ir(bound)) continue;
    has_any = true;
    if (is_linked(c, i)) continue;
    read_source(&k, bound);
    check_target(&k);
    hide_source(&k);
    for_each_bound(&k, i, show_function);
    link_source(&k);
    for_each_bound(&k, i, hide_linked);
  }
  return has_any;
}

bool kg_is_extern(const kt_compilation *c, const char *symbol)
{
  for (size_t i = 0; i < c->instances.count; i++)
    if (c->instances.items[i]->function->is_extern &&
        strcmp(c->instances.items[i]->symbol, symbol) == 0)
      return true;
  return false;
}
