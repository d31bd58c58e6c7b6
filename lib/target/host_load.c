/* Loads native objects into this process with ORC.
 *
 * Every object has its own JITDylib without a search order, so that the symbols of two
 * specializations of a kernel do not conflict. The JITDylibs of unloaded objects are reused. An
 * object can call only the functions in native/functions.def. */
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/LLJITUtils.h>
#include <llvm-c/Orc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "native/functions.h"
#include "target/host.h"
#include "target/llvm.h"

/* ---- the JIT ---- */

typedef struct dylib dylib;
struct dylib {
  dylib *next;
  LLVMOrcJITDylibRef handle;
};

struct kg_jit {
  LLVMOrcLLJITRef lljit;
  LLVMOrcExecutionSessionRef session;
  pthread_mutex_t mutex; /* protects the fields below */
  dylib *idle;
  unsigned dylib_count;
  bool tells_debuggers;
  /* A separate mutex protects the results of lookups, because LLVM may deliver the result of
   * another thread's lookup to a thread that holds the mutex above. */
  pthread_mutex_t answer_mutex;
  pthread_cond_t answered;
};

struct kj_loaded {
  kg_jit *jit;
  dylib *dylib;
  LLVMOrcResourceTrackerRef tracker;
};

/* Ignores an error report, because the failing call also returns the error. */
static void ignore_error(void *data, LLVMErrorRef error)
{
  (void)data;
  LLVMConsumeError(error);
}

static LLVMErrorRef define_functions(LLVMOrcDefinitionGeneratorRef generator, void *data,
                                     LLVMOrcLookupStateRef *state, LLVMOrcLookupKind kind,
                                     LLVMOrcJITDylibRef handle, LLVMOrcJITDylibLookupFlags flags,
                                     LLVMOrcCLookupSet set, size_t count)
{
  (void)generator, (void)data, (void)state, (void)kind, (void)flags;
  LLVMOrcCSymbolMapPair *pairs = calloc(count + 1, sizeof *pairs);
  size_t used = 0;
  if (!pairs) return LLVMErrorSuccess; /* the lookup then fails and reports the name */
  for (size_t i = 0; i < count; i++) {
    void *address = kn_find_library_function(LLVMOrcSymbolStringPoolEntryStr(set[i].Name));
    if (!address) continue;
    LLVMOrcRetainSymbolStringPoolEntry(set[i].Name);
    pairs[used].Name = set[i].Name;
    pairs[used].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)address;
    pairs[used++].Sym.Flags.GenericFlags =
      LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
  }
  LLVMErrorRef error =
    used ? LLVMOrcJITDylibDefine(handle, LLVMOrcAbsoluteSymbols(pairs, used)) : LLVMErrorSuccess;
  free(pairs);
  return error;
}

static kg_jit *create_jit(LLVMErrorRef *error)
{
  kg_jit *jit = calloc(1, sizeof *jit);
  if (!jit) return NULL;
  *error = LLVMOrcCreateLLJIT(&jit->lljit, NULL);
  if (*error) {
    free(jit);
    return NULL;
  }
  pthread_mutex_init(&jit->mutex, NULL);
  pthread_mutex_init(&jit->answer_mutex, NULL);
  pthread_cond_init(&jit->answered, NULL);
  jit->session = LLVMOrcLLJITGetExecutionSession(jit->lljit);
  LLVMOrcExecutionSessionSetErrorReporter(jit->session, ignore_error, NULL);
  return jit;
}

void kg_destroy_jit(kg_jit *jit)
{
  if (!jit) return;
  for (dylib *d = jit->idle, *next; d; d = next) {
    next = d->next;
    free(d);
  }
  LLVMConsumeError(LLVMOrcDisposeLLJIT(jit->lljit));
  pthread_mutex_destroy(&jit->mutex);
  pthread_mutex_destroy(&jit->answer_mutex);
  pthread_cond_destroy(&jit->answered);
  free(jit);
}

static dylib *take_dylib(kg_jit *jit)
{
  pthread_mutex_lock(&jit->mutex);
  dylib *found = jit->idle;
  if (found) jit->idle = found->next;
  unsigned number = found ? 0 : ++jit->dylib_count;
  pthread_mutex_unlock(&jit->mutex);
  if (found) return found;
  char name[32];
  snprintf(name, sizeof name, "object%u", number);
  dylib *created = calloc(1, sizeof *created);
  if (!created) return NULL;
  created->handle = LLVMOrcExecutionSessionCreateBareJITDylib(jit->session, name);
  LLVMOrcJITDylibAddGenerator(created->handle,
                              LLVMOrcCreateCustomCAPIDefinitionGenerator(define_functions, NULL,
                                                                         NULL));
  return created;
}

static void return_dylib(kg_jit *jit, dylib *d)
{
  LLVMConsumeError(LLVMOrcJITDylibClear(d->handle));
  pthread_mutex_lock(&jit->mutex);
  d->next = jit->idle;
  jit->idle = d;
  pthread_mutex_unlock(&jit->mutex);
}

/* ---- lookup ---- */

typedef struct lookup {
  kg_jit *jit;
  LLVMOrcExecutorAddress address;
  LLVMErrorRef error;
  bool is_over; /* protected by the JIT's answer_mutex, like the fields above */
} lookup;

static void take_result(LLVMErrorRef error, LLVMOrcCSymbolMapPairs result, size_t count, void *data)
{
  lookup *found = data;
  kg_jit *jit = found->jit;
  pthread_mutex_lock(&jit->answer_mutex);
  found->error = error;
  if (!error && count == 1) found->address = result[0].Sym.Address;
  found->is_over = true; /* after the unlock, look_up may return in the other thread, and *found is
                          * then no longer valid */
  pthread_cond_broadcast(&jit->answered);
  pthread_mutex_unlock(&jit->answer_mutex);
}

/* Looks up a name, and waits for the result. LLVM has one queue for the work of all lookups. So
 * another thread may do this lookup's work, and may call take_result after LLVM's function has
 * returned in this thread. */
static lookup look_up(kg_jit *jit, dylib *d, const char *name)
{
  lookup found = { .jit = jit };
  LLVMOrcCJITDylibSearchOrderElement order = { .JD = d->handle,
                                               .JDLookupFlags =
                                                 LLVMOrcJITDylibLookupFlagsMatchAllSymbols };
  LLVMOrcCLookupSetElement symbol = { .Name = LLVMOrcLLJITMangleAndIntern(jit->lljit, name),
                                      .LookupFlags = LLVMOrcSymbolLookupFlagsRequiredSymbol };
  LLVMOrcExecutionSessionLookup(jit->session, LLVMOrcLookupKindStatic, &order, 1, &symbol, 1,
                                take_result, &found);
  pthread_mutex_lock(&jit->answer_mutex);
  while (!found.is_over) pthread_cond_wait(&jit->answered, &jit->answer_mutex);
  pthread_mutex_unlock(&jit->answer_mutex);
  return found;
}

/* Defines the functions of the application. They take precedence over the functions in
 * functions.def, which are used only for names that are still undefined. pairs: memory with an
 * element for each function of the application. */
static LLVMErrorRef define_outside(kg_jit *jit, dylib *d, const kj_outside *outside,
                                   LLVMOrcCSymbolMapPair *pairs)
{
  size_t count = outside ? outside->count : 0;
  if (!count) return LLVMErrorSuccess;
  for (size_t i = 0; i < count; i++) {
    pairs[i].Name = LLVMOrcLLJITMangleAndIntern(jit->lljit, outside->items[i].name);
    pairs[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)outside->items[i].address;
    pairs[i].Sym.Flags.GenericFlags =
      LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
  }
  return LLVMOrcJITDylibDefine(d->handle, LLVMOrcAbsoluteSymbols(pairs, count));
}

static LLVMErrorRef add_object(kj_loaded *loaded, const kj_code *code)
{
  LLVMMemoryBufferRef buffer =
    LLVMCreateMemoryBufferWithMemoryRangeCopy(code->data, code->size_bytes, code->entry);
  return LLVMOrcLLJITAddObjectFileWithRT(loaded->jit->lljit, loaded->tracker, buffer);
}

static kjit_status report(kj_diagnostics *diagnostics, kjit_status status, const char *text)
{
  kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, status, "%s", text);
  return status;
}

static kjit_status report_llvm(kj_diagnostics *diagnostics, const char *entry, LLVMErrorRef error)
{
  char *message = LLVMGetErrorMessage(error);
  kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_COMPILE,
            "cannot load the native code of `%s`: %s", entry, message);
  LLVMDisposeErrorMessage(message);
  return KJIT_ERROR_COMPILE;
}

static kjit_status start_jit(kg_host *host, kj_diagnostics *diagnostics)
{
  LLVMErrorRef error = LLVMErrorSuccess;
  pthread_mutex_lock(&host->mutex);
  if (!host->jit) host->jit = create_jit(&error);
  bool is_made = host->jit != NULL;
  pthread_mutex_unlock(&host->mutex);
  if (error) return report_llvm(diagnostics, "the JIT", error);
  return is_made ? KJIT_OK : report(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* Registers every object that is loaded later with debuggers, which takes some milliseconds per
 * object. */
static LLVMErrorRef tell_debuggers(kg_jit *jit)
{
  pthread_mutex_lock(&jit->mutex);
  LLVMErrorRef error =
    jit->tells_debuggers ? LLVMErrorSuccess : LLVMOrcLLJITEnableDebugSupport(jit->lljit);
  jit->tells_debuggers |= !error;
  pthread_mutex_unlock(&jit->mutex);
  return error;
}

kjit_status kg_load_host(kg_state *state, const kj_code *code, const kj_outside *outside,
                         kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel)
{
  kg_host *host = state;
  kjit_status status = start_jit(host, diagnostics);
  if (status != KJIT_OK) return status;
  kj_loaded *created = calloc(1, sizeof *created);
  LLVMOrcCSymbolMapPair *pairs = calloc((outside ? outside->count : 0) + 1, sizeof *pairs);
  if (!created || !pairs || !(created->dylib = take_dylib(host->jit))) {
    free(created);
    free(pairs);
    return report(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  created->jit = host->jit;
  created->tracker = LLVMOrcJITDylibCreateResourceTracker(created->dylib->handle);
  LLVMErrorRef error = code->has_debug ? tell_debuggers(host->jit) : LLVMErrorSuccess;
  if (!error) error = define_outside(host->jit, created->dylib, outside, pairs);
  free(pairs);
  if (!error) error = add_object(created, code);
  if (!error) {
    lookup found = look_up(host->jit, created->dylib, code->entry);
    error = found.error;
    *kernel = (kj_cpu_kernel)(uintptr_t)found.address;
  }
  if (error) {
    kg_unload_host(created);
    return report_llvm(diagnostics, code->entry, error);
  }
  *loaded = created;
  return KJIT_OK;
}

void kg_unload_host(kj_loaded *loaded)
{
  if (!loaded) return;
  LLVMConsumeError(LLVMOrcResourceTrackerRemove(loaded->tracker));
  LLVMOrcReleaseResourceTracker(loaded->tracker);
  return_dylib(loaded->jit, loaded->dylib);
  free(loaded);
}
