/* The GPU math library: finds libdevice or libclc, and links the functions that a kernel calls.
 * libclc is part of the compiler library, so GPU math functions are always available. */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/paths.h"
#include "target/llvm.h"
#include "target/target.h"
#include "target/nvptx.h"

/* ---- bitcode libraries ----
 *
 * A library has hundreds of functions, of which a kernel calls only a few. When a kernel calls a
 * function for the first time, this file extracts a small module (a piece) that contains the
 * function and its dependencies. Later kernels read only this piece. */

typedef struct piece piece;
struct piece {
  piece *next;
  char *name;
  LLVMMemoryBufferRef bitcode; /* NULL means that the library has no such function */
  const char *reason; /* NULL or, if the library cannot be read, a static string or `text` */
  char text[sizeof((kg_llvm_errors *)NULL)->first];
};

struct kg_bitcode {
  char *path; /* for messages */
  LLVMMemoryBufferRef library;
  void (*simplify)(LLVMModuleRef module);
  pthread_mutex_t mutex; /* protects pieces; it is held while a piece is extracted */
  piece *pieces;
};

/* Takes ownership of the buffer. Returns NULL when out of memory. */
static kg_bitcode *make_bitcode(LLVMMemoryBufferRef library, const char *path,
                                void (*simplify)(LLVMModuleRef module))
{
  kg_bitcode *bitcode = calloc(1, sizeof *bitcode);
  if (bitcode) bitcode->path = strdup(path);
  if (!bitcode || !bitcode->path) {
    free(bitcode);
    LLVMDisposeMemoryBuffer(library);
    return NULL;
  }
  bitcode->library = library;
  bitcode->simplify = simplify;
  pthread_mutex_init(&bitcode->mutex, NULL);
  return bitcode;
}

/* Copies a buffer, which may be a mapping of a file. An access to a mapping raises a signal if
 * another process has truncated the file, for example to replace it. */
static LLVMMemoryBufferRef copy_buffer(LLVMMemoryBufferRef mapped)
{
  LLVMMemoryBufferRef copy =
    LLVMCreateMemoryBufferWithMemoryRangeCopy(LLVMGetBufferStart(mapped), LLVMGetBufferSize(mapped),
                                              "library");
  LLVMDisposeMemoryBuffer(mapped);
  return copy;
}

kg_bitcode *kg_open_bitcode(const char *path, void (*simplify)(LLVMModuleRef module),
                            const char **reason)
{
  LLVMMemoryBufferRef library;
  char *message = NULL;
  if (LLVMCreateMemoryBufferWithContentsOfFile(path, &library, &message)) {
    LLVMDisposeMessage(message);
    *reason = "cannot be read";
    return NULL;
  }
  library = copy_buffer(library);
  if (LLVMGetBufferSize(library) < 4 || memcmp(LLVMGetBufferStart(library), "BC\xC0\xDE", 4) != 0) {
    LLVMDisposeMemoryBuffer(library);
    *reason = "is not LLVM bitcode";
    return NULL;
  }
  *reason = "cannot be opened: out of memory";
  return make_bitcode(library, path, simplify);
}

void kg_close_bitcode(kg_bitcode *bitcode)
{
  if (!bitcode) return;
  for (piece *p = bitcode->pieces, *next; p; p = next) {
    next = p->next;
    if (p->bitcode) LLVMDisposeMemoryBuffer(p->bitcode);
    free(p->name);
    free(p);
  }
  free(bitcode->path);
  LLVMDisposeMemoryBuffer(bitcode->library);
  pthread_mutex_destroy(&bitcode->mutex);
  free(bitcode);
}

/* ---- extraction ---- */

/* Reads the library lazily: LLVM parses a function's body only when the linker needs the
 * function. */
static LLVMModuleRef read_library(const kg_bitcode *bitcode, LLVMContextRef context)
{
  const char *start = LLVMGetBufferStart(bitcode->library);
  LLVMMemoryBufferRef view =
    LLVMCreateMemoryBufferWithMemoryRange(start, LLVMGetBufferSize(bitcode->library), "library",
                                          false);
  LLVMModuleRef module = NULL;
  return LLVMGetBitcodeModuleInContext2(context, view, &module) ? NULL : module;
}

/* Makes functions link-once, so that they are linked only if they are called. If several pieces
 * contain the same helper function or constant, only one copy is linked. */
static void make_droppable(LLVMModuleRef module)
{
  for (LLVMValueRef g = LLVMGetFirstGlobal(module); g; g = LLVMGetNextGlobal(g))
    if (!LLVMIsDeclaration(g) && LLVMGetLinkage(g) == LLVMExternalLinkage)
      LLVMSetLinkage(g, LLVMLinkOnceODRLinkage);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f)) continue;
    if (LLVMGetLinkage(f) == LLVMExternalLinkage) LLVMSetLinkage(f, LLVMLinkOnceODRLinkage);
    LLVMRemoveStringAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                     "target-cpu", 10);
    LLVMRemoveStringAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                     "target-features", 15);
  }
}

/* The extraction of a function. */
typedef struct cut {
  const kg_bitcode *bitcode;
  piece *piece;
} cut;

/* Moves the function and its dependencies to a new module. A temporary array of pointers refers to
 * the function, so that linking does not remove it. Takes ownership of the library's module.
 * Returns NULL after an error. */
static LLVMModuleRef extract(LLVMModuleRef library, LLVMValueRef function, const char *name)
{
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext(name, LLVMGetModuleContext(library));
  LLVMSetTarget(module, LLVMGetTarget(library));
  LLVMSetDataLayout(module, LLVMGetDataLayoutStr(library));
  LLVMValueRef wanted = LLVMAddFunction(module, name, LLVMGlobalGetValueType(function));
  LLVMValueRef anchor = LLVMAddGlobal(module, LLVMTypeOf(wanted), "anchor");
  LLVMSetInitializer(anchor, wanted);
  make_droppable(library);
  if (LLVMLinkModules2(module, library)) {
    LLVMDisposeModule(module);
    return NULL;
  }
  LLVMDeleteGlobal(LLVMGetNamedGlobal(module, "anchor"));
  return module;
}

static void note_error(piece *p, const kg_llvm_errors *errors)
{
  snprintf(p->text, sizeof p->text, "%s", errors->count ? errors->first : "it is damaged");
  p->reason = p->text;
}

/* Extracts the function p->name from the library. If the library has no such function, leaves
 * p->bitcode NULL. */
static void cut_out(void *data)
{
  const cut *c = data;
  const kg_bitcode *bitcode = c->bitcode;
  piece *p = c->piece;
  kg_llvm_errors errors = { 0 };
  LLVMContextRef context = kg_create_llvm_context(&errors, false);
  LLVMModuleRef library = read_library(bitcode, context), module = NULL;
  LLVMValueRef function = library ? LLVMGetNamedFunction(library, p->name) : NULL;
  bool is_defined = function && !LLVMIsDeclaration(function);
  if (is_defined) module = extract(library, function, p->name);
  else if (library) LLVMDisposeModule(library);
  bool is_whole = library && (module || !is_defined) && !errors.count &&
                  (!module || !LLVMVerifyModule(module, LLVMReturnStatusAction, NULL));
  if (!is_whole) note_error(p, &errors);
  if (module && is_whole && bitcode->simplify) bitcode->simplify(module);
  if (module && is_whole) p->bitcode = LLVMWriteBitcodeToMemoryBuffer(module);
  if (module) LLVMDisposeModule(module);
  LLVMContextDispose(context);
}

static const piece *get_piece(kg_bitcode *bitcode, const char *name)
{
  pthread_mutex_lock(&bitcode->mutex);
  piece *p = bitcode->pieces;
  while (p && strcmp(p->name, name) != 0) p = p->next;
  if (!p && (p = calloc(1, sizeof *p))) {
    p->name = strdup(name);
    if (p->name) {
      cut c = { bitcode, p };
      /* LLVM's reader trusts its input, so a damaged file can make it follow an invalid pointer */
      if (!kg_run_guarded(cut_out, &c)) p->reason = "it is damaged";
      p->next = bitcode->pieces;
      bitcode->pieces = p;
    } else {
      free(p);
      p = NULL;
    }
  }
  pthread_mutex_unlock(&bitcode->mutex);
  return p;
}

/* ---- linking ---- */

static void link_piece(kt_compilation *c, const piece *p, LLVMModuleRef module,
                       kg_llvm_errors *errors)
{
  const char *start = LLVMGetBufferStart(p->bitcode);
  LLVMMemoryBufferRef view =
    LLVMCreateMemoryBufferWithMemoryRange(start, LLVMGetBufferSize(p->bitcode), p->name, false);
  LLVMModuleRef source = NULL;
  bool is_read = !LLVMParseBitcodeInContext2(LLVMGetModuleContext(module), view, &source);
  LLVMDisposeMemoryBuffer(view);
  if (!is_read)
    kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
            "internal error: the library's `%s` cannot be read", p->name);
  LLVMSetTarget(source, LLVMGetTarget(module));
  LLVMSetDataLayout(source, LLVMGetDataLayoutStr(module));
  if (LLVMLinkModules2(module, source)) kg_check_llvm_errors(c, errors, "linking the math library");
}

void kg_link_bitcode(kt_compilation *c, kg_bitcode *bitcode, LLVMModuleRef module,
                     kg_llvm_errors *errors)
{
  KJ_LIST(const char *) names = { 0 };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    if (LLVMIsDeclaration(f) && LLVMGetIntrinsicID(f) == 0)
      KJ_PUSH(c->arena, &names, kj_copy_string(c->arena, name, length));
  }
  for (size_t i = 0; i < names.count; i++) {
    const piece *p = get_piece(bitcode, names.items[i]);
    if (!p) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
    if (p->reason)
      kt_fail(c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
              "the math library %s cannot be read: %s: %s", bitcode->path, p->name, p->reason);
    if (p->bitcode) link_piece(c, p, module, errors);
  }
}

/* ---- nvptx: the math functions of a bitcode library ---- */

/* ---- calls of __nvvm_reflect ---- */

static bool is_about_gpu(const char *question, size_t length)
{
  static const char arch[] = "__CUDA_ARCH";
  return length >= sizeof arch - 1 && strncmp(question, arch, sizeof arch - 1) == 0;
}

/* Returns the answer to a query of libdevice about its environment (__nvvm_reflect). question: the
 * query name. LLVM's own pass for these queries is not used, because it assumes that square roots
 * are approximate. */
static uint64_t answer(uint32_t gpu, const char *question, size_t length)
{
  static const char sqrt[] = "__CUDA_PREC_SQRT", division[] = "__CUDA_PREC_DIV";
  if (is_about_gpu(question, length)) return gpu * 10;
  if (length >= sizeof sqrt - 1 && strncmp(question, sqrt, sizeof sqrt - 1) == 0) return 1;
  /* __CUDA_FTZ is 0 */
  return length >= sizeof division - 1 && strncmp(question, division, sizeof division - 1) == 0;
}

static LLVMValueRef question_of(LLVMValueRef call)
{
  LLVMValueRef operand = LLVMGetOperand(call, 0);
  while (LLVMIsAConstantExpr(operand)) operand = LLVMGetOperand(operand, 0);
  LLVMValueRef text = LLVMIsAGlobalVariable(operand) ? LLVMGetInitializer(operand) : NULL;
  return text && LLVMIsConstantString(text) ? text : NULL;
}

/* Replaces the queries by their answers. If `gpu` is 0, the GPU is not known, and queries about the
 * GPU are not replaced. */
static void answer_reflection(LLVMModuleRef module, uint32_t gpu)
{
  LLVMValueRef reflect = LLVMGetNamedFunction(module, "__nvvm_reflect");
  LLVMUseRef use = reflect ? LLVMGetFirstUse(reflect) : NULL;
  while (use) {
    LLVMValueRef call = LLVMGetUser(use), text = LLVMIsACallInst(call) ? question_of(call) : NULL;
    use = LLVMGetNextUse(use);
    if (!text) continue; /* a later pass of LLVM answers this query */
    size_t length;
    const char *question = LLVMGetAsString(text, &length);
    if (!gpu && is_about_gpu(question, length)) continue;
    LLVMReplaceAllUsesWith(call,
                           LLVMConstInt(LLVMTypeOf(call), answer(gpu, question, length), false));
    LLVMInstructionEraseFromParent(call);
  }
}

/* Simplifies a function, once per process. The answers to the function's queries about the target
 * have become constants, so most of its code is never reached and is removed. */
static void simplify(LLVMModuleRef module)
{
  answer_reflection(module, 0);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMConsumeError(
    LLVMRunPasses(module, "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>)",
                  NULL, options));
  kg_flatten_branches(module);
  LLVMConsumeError(LLVMRunPasses(module, "function(simplifycfg)", NULL, options));
  LLVMDisposePassBuilderOptions(options);
}

/* ---- location of the library ---- */

/* Created by cmake/Libclc.cmake. */
extern const char kg_libclc[], kg_libclc_end[];

static kg_bitcode *open_first(const char *pattern)
{
  kj_paths found = { 0 };
  const char *reason;
  kg_bitcode *library = NULL;
  (void)kj_find_paths(&found, pattern);
  /* the last file in the list has the highest version */
  for (size_t i = found.count; i-- > 0 && !library;)
    library = kg_open_bitcode(found.items[i], simplify, &reason);
  kj_free_paths(&found);
  return library;
}

static kg_bitcode *open_libclc(void)
{
  size_t size_bytes = (size_t)(kg_libclc_end - kg_libclc);
  return make_bitcode(LLVMCreateMemoryBufferWithMemoryRange(kg_libclc, size_bytes, "libclc", false),
                      "libclc", simplify);
}

static void look_for_library(kg_nvptx_library *library)
{
  static const char *const patterns[] = {
#define PLACE(pattern) pattern,
#include "native/math_libraries.def"
#undef PLACE
  };
  library->kind = KJ_MATH_LIBDEVICE;
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns && !library->bitcode; i++)
    library->bitcode = open_first(patterns[i]);
  if (library->bitcode) return;
  library->bitcode = open_libclc();
  library->kind = KJ_MATH_LIBCLC;
}

void kg_find_library(kg_nvptx_library *library)
{
  pthread_mutex_lock(&library->mutex);
  if (!library->has_looked && !library->bitcode) look_for_library(library);
  library->has_looked = true;
  pthread_mutex_unlock(&library->mutex);
}

kjit_status kg_open_library(kg_nvptx_library *library, const char *path,
                            kj_diagnostics *diagnostics)
{
  const char *reason = "";
  *library = (kg_nvptx_library){ 0 };
  if (path) {
    bool is_own = kj_is_own_libclc(path);
    library->bitcode = is_own ? open_libclc() : kg_open_bitcode(path, simplify, &reason);
    library->kind = is_own || strstr(path, "nvptx64--") ? KJ_MATH_LIBCLC : KJ_MATH_LIBDEVICE;
    if (is_own) reason = "cannot be opened: out of memory";
    if (!library->bitcode) {
      kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_IO,
                "libdevice: %s %s", path, reason);
      return KJIT_ERROR_IO;
    }
  }
  pthread_mutex_init(&library->mutex, NULL);
  return KJIT_OK;
}

void kg_close_library(kg_nvptx_library *library)
{
  kg_close_bitcode(library->bitcode);
  pthread_mutex_destroy(&library->mutex);
}

/* ---- linking ---- */

/* Returns whether every CUDA driver provides the function. */
static bool is_of_driver(const char *name)
{
  static const char *const names[] = { "vprintf", "malloc", "free", "__assertfail",
                                       "__nvvm_reflect" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* Rejects variables that the application's code uses but does not define. The kernel itself
 * declares only dynamic shared memory, which the application's code can use as well. */
static void check_variables(const kg_emission *e)
{
  enum { SHARED_SPACE = 3 };
  for (LLVMValueRef g = LLVMGetFirstGlobal(e->module); g; g = LLVMGetNextGlobal(g)) {
    size_t length;
    const char *name = LLVMGetValueName2(g, &length);
    if (LLVMIsDeclaration(g) && LLVMGetFirstUse(g) &&
        LLVMGetPointerAddressSpace(LLVMTypeOf(g)) != SHARED_SPACE)
      kt_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
              "the code bound to an extern function uses the variable `%s`, which is not defined",
              kj_copy_string(e->c->arena, name, length));
  }
}

static bool is_call_of(LLVMValueRef user, LLVMValueRef function)
{
  return (LLVMIsACallInst(user) || LLVMIsAInvokeInst(user)) && LLVMGetCalledValue(user) == function;
}

/* Makes each call use the calling convention of the function that it calls. On GPUs all conventions
 * pass values alike, but for LLVM a call with another convention is undefined behaviour, and LLVM
 * deletes the code that reaches such a call. A kernel cannot be called. */
static void adopt_conventions(const kg_emission *e)
{
  for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
    unsigned convention = LLVMGetFunctionCallConv(f);
    for (LLVMUseRef use = LLVMGetFirstUse(f); use; use = LLVMGetNextUse(use)) {
      LLVMValueRef user = LLVMGetUser(use);
      size_t length;
      const char *name = LLVMGetValueName2(f, &length);
      if (!is_call_of(user, f)) continue;
      if (convention == LLVMPTXKernelCallConv)
        kt_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
                "the code bound to an extern function calls the kernel `%s`",
                kj_copy_string(e->c->arena, name, length));
      LLVMSetInstructionCallConv(user, convention);
    }
  }
}

static void check_calls(kg_emission *e, bool has_externs)
{
  for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    if (!LLVMIsDeclaration(f) || LLVMGetIntrinsicID(f) || is_of_driver(name) ||
        kg_is_extern(e->c, name))
      continue;
    if (!LLVMGetFirstUse(f)) continue;
    if (has_externs)
      kt_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
              "the code bound to an extern function calls `%s`, which is not defined",
              kj_copy_string(e->c->arena, name, length));
    kt_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "the math library has no function `%s`", kj_copy_string(e->c->arena, name, length));
  }
}

bool kg_link_library(kg_emission *e, const kg_nvptx_library *library, kl_nvptx_lowering *state,
                     uint32_t arch)
{
  bool has_externs = e->errors.has_externs = kg_link_externs(e->c, e->module, &e->errors);
  if (!state->calls_library && !has_externs) return false;
  if (state->calls_library && !library->bitcode) longjmp(*e->c->on_failure, KJ_JUMP_MEMORY);
  if (library->bitcode) kg_link_bitcode(e->c, library->bitcode, e->module, &e->errors);
  state->calls_library = true;
  state->has_branches |= has_externs;
  check_calls(e, has_externs);
  if (has_externs) {
    check_variables(e);
    adopt_conventions(e);
  }
  answer_reflection(e->module, arch);
  return has_externs;
}
