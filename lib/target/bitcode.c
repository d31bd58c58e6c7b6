/* Libraries of bitcode: libdevice, libclc. A library has hundreds of functions, of which a kernel
 * calls a few: for each function ever called, a small module of its own (the function and what it
 * needs) is cut out once and kept; later kernels read only that. */
#include <llvm-c/BitReader.h>
#include <llvm-c/BitWriter.h>
#include <llvm-c/Linker.h>
#include <stdlib.h>
#include <string.h>

#include "target/llvm.h"

typedef struct piece piece;
struct piece {
  piece *next;
  char *name;
  LLVMMemoryBufferRef bitcode; /* NULL: the library has no such function */
};

struct kj_bitcode {
  LLVMMemoryBufferRef library;
  void (*simplify)(LLVMModuleRef module);
  pthread_mutex_t mutex; /* protects pieces; held while one is cut out */
  piece *pieces;
};

kj_bitcode *kj_open_bitcode(const char *path, void (*simplify)(LLVMModuleRef module),
                            const char **reason)
{
  kj_bitcode *bitcode = calloc(1, sizeof *bitcode);
  char *message = NULL;
  *reason = "out of memory";
  if (!bitcode) return NULL;
  if (LLVMCreateMemoryBufferWithContentsOfFile(path, &bitcode->library, &message)) {
    LLVMDisposeMessage(message);
    free(bitcode);
    *reason = "cannot be read";
    return NULL;
  }
  if (LLVMGetBufferSize(bitcode->library) < 4 ||
      memcmp(LLVMGetBufferStart(bitcode->library), "BC\xC0\xDE", 4) != 0) {
    LLVMDisposeMemoryBuffer(bitcode->library);
    free(bitcode);
    *reason = "is not LLVM bitcode";
    return NULL;
  }
  bitcode->simplify = simplify;
  pthread_mutex_init(&bitcode->mutex, NULL);
  return bitcode;
}

void kj_close_bitcode(kj_bitcode *bitcode)
{
  if (!bitcode) return;
  for (piece *p = bitcode->pieces, *next; p; p = next) {
    next = p->next;
    if (p->bitcode) LLVMDisposeMemoryBuffer(p->bitcode);
    free(p->name);
    free(p);
  }
  LLVMDisposeMemoryBuffer(bitcode->library);
  pthread_mutex_destroy(&bitcode->mutex);
  free(bitcode);
}

/* ---- cutting out ---- */

/* Read lazily: bodies are parsed only when the linker asks for them. */
static LLVMModuleRef read_library(const kj_bitcode *bitcode, LLVMContextRef context)
{
  const char *start = LLVMGetBufferStart(bitcode->library);
  LLVMMemoryBufferRef view =
    LLVMCreateMemoryBufferWithMemoryRange(start, LLVMGetBufferSize(bitcode->library), "library",
                                          false);
  LLVMModuleRef module = NULL;
  return LLVMGetBitcodeModuleInContext2(context, view, &module) ? NULL : module;
}

/* Functions that may be dropped when nobody calls them are linked on demand. Several pieces may
 * hold the same helpers and constants: those of any of them do. */
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

/* A reference keeps the function alive through linking: an array of pointers, deleted afterwards.
 */
static LLVMMemoryBufferRef cut_out(const kj_bitcode *bitcode, const char *name)
{
  kj_llvm_errors errors = { 0 };
  LLVMContextRef context = kj_create_llvm_context(&errors, false);
  LLVMModuleRef library = read_library(bitcode, context), module = NULL;
  LLVMMemoryBufferRef result = NULL;
  LLVMValueRef function = library ? LLVMGetNamedFunction(library, name) : NULL;
  if (function && !LLVMIsDeclaration(function)) {
    module = LLVMModuleCreateWithNameInContext(name, context);
    LLVMSetTarget(module, LLVMGetTarget(library));
    LLVMSetDataLayout(module, LLVMGetDataLayoutStr(library));
    LLVMValueRef wanted = LLVMAddFunction(module, name, LLVMGlobalGetValueType(function));
    LLVMValueRef anchor = LLVMAddGlobal(module, LLVMTypeOf(wanted), "anchor");
    LLVMSetInitializer(anchor, wanted);
    make_droppable(library);
    bool is_linked = !LLVMLinkModules2(module, library);
    library = NULL; /* taken */
    if (is_linked && errors.count == 0) {
      LLVMDeleteGlobal(LLVMGetNamedGlobal(module, "anchor"));
      if (bitcode->simplify) bitcode->simplify(module);
      result = LLVMWriteBitcodeToMemoryBuffer(module);
    }
  }
  if (module) LLVMDisposeModule(module);
  if (library) LLVMDisposeModule(library);
  LLVMContextDispose(context);
  return result;
}

static const piece *get_piece(kj_bitcode *bitcode, const char *name)
{
  pthread_mutex_lock(&bitcode->mutex);
  piece *p = bitcode->pieces;
  while (p && strcmp(p->name, name) != 0) p = p->next;
  if (!p && (p = calloc(1, sizeof *p))) {
    p->name = strdup(name);
    if (p->name) {
      p->bitcode = cut_out(bitcode, name);
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

static void link_piece(kj_compilation *c, const piece *p, LLVMModuleRef module,
                       kj_llvm_errors *errors)
{
  const char *start = LLVMGetBufferStart(p->bitcode);
  LLVMMemoryBufferRef view =
    LLVMCreateMemoryBufferWithMemoryRange(start, LLVMGetBufferSize(p->bitcode), p->name, false);
  LLVMModuleRef source = NULL;
  bool is_read = !LLVMParseBitcodeInContext2(LLVMGetModuleContext(module), view, &source);
  LLVMDisposeMemoryBuffer(view);
  if (!is_read)
    kj_fail(c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
            "internal error: the library's `%s` cannot be read", p->name);
  LLVMSetTarget(source, LLVMGetTarget(module));
  LLVMSetDataLayout(source, LLVMGetDataLayoutStr(module));
  if (LLVMLinkModules2(module, source)) kj_check_llvm_errors(c, errors, "linking the math library");
}

static bool is_wanted(LLVMValueRef function)
{
  return LLVMIsDeclaration(function) && LLVMGetIntrinsicID(function) == 0;
}

void kj_link_bitcode(kj_compilation *c, kj_bitcode *bitcode, LLVMModuleRef module,
                     kj_llvm_errors *errors)
{
  KJ_LIST(const char *) names = { 0 };
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    if (is_wanted(f)) KJ_PUSH(c->arena, &names, kj_copy_string(c->arena, name, length));
  }
  for (size_t i = 0; i < names.count; i++) {
    const piece *p = get_piece(bitcode, names.items[i]);
    if (!p) longjmp(*c->on_failure, KJ_JUMP_MEMORY);
    if (p->bitcode) link_piece(c, p, module, errors);
  }
}
