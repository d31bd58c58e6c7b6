/* nvptx: the math functions of a library of bitcode. */
#include <dlfcn.h>
#include <glob.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/nvptx.h"

/* ---- its questions ---- */

/* libdevice asks its environment by name. Answered here and not by LLVM's pass, which takes the
 * square root to be approximate. */
static bool is_about_gpu(const char *question, size_t length)
{
  static const char arch[] = "__CUDA_ARCH";
  return length >= sizeof arch - 1 && strncmp(question, arch, sizeof arch - 1) == 0;
}

static uint64_t answer(uint32_t gpu, const char *question, size_t length)
{
  static const char sqrt[] = "__CUDA_PREC_SQRT", division[] = "__CUDA_PREC_DIV";
  if (is_about_gpu(question, length)) return gpu * 10;
  if (length >= sizeof sqrt - 1 && strncmp(question, sqrt, sizeof sqrt - 1) == 0) return 1;
  /* __CUDA_FTZ: 0 */
  return length >= sizeof division - 1 && strncmp(question, division, sizeof division - 1) == 0;
}

static LLVMValueRef question_of(LLVMValueRef call)
{
  LLVMValueRef operand = LLVMGetOperand(call, 0);
  while (LLVMIsAConstantExpr(operand)) operand = LLVMGetOperand(operand, 0);
  LLVMValueRef text = LLVMIsAGlobalVariable(operand) ? LLVMGetInitializer(operand) : NULL;
  return text && LLVMIsConstantString(text) ? text : NULL;
}

/* gpu 0: not known; questions about it stay. */
static void answer_reflection(LLVMModuleRef module, uint32_t gpu)
{
  LLVMValueRef reflect = LLVMGetNamedFunction(module, "__nvvm_reflect");
  LLVMUseRef use = reflect ? LLVMGetFirstUse(reflect) : NULL;
  while (use) {
    LLVMValueRef call = LLVMGetUser(use), text = LLVMIsACallInst(call) ? question_of(call) : NULL;
    use = LLVMGetNextUse(use);
    if (!text) continue; /* LLVM's pass takes it */
    size_t length;
    const char *question = LLVMGetAsString(text, &length);
    if (!gpu && is_about_gpu(question, length)) continue;
    LLVMReplaceAllUsesWith(call,
                           LLVMConstInt(LLVMTypeOf(call), answer(gpu, question, length), false));
    LLVMInstructionEraseFromParent(call);
  }
}

/* Once a function and process: most of a function's code are answers that are not given. */
static void simplify(LLVMModuleRef module)
{
  answer_reflection(module, 0);
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMConsumeError(
    LLVMRunPasses(module, "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>)",
                  NULL, options));
  LLVMDisposePassBuilderOptions(options);
}

/* ---- where it is ---- */

static kj_bitcode *open_first(const char *pattern)
{
  glob_t found;
  const char *reason;
  kj_bitcode *library = NULL;
  if (glob(pattern, 0, NULL, &found) != 0) return NULL;
  /* the highest version comes last */
  for (size_t i = found.gl_pathc; i-- > 0 && !library;)
    library = kj_open_bitcode(found.gl_pathv[i], simplify, &reason);
  globfree(&found);
  return library;
}

/* In a bundle libclc's file lies beside the compiler library. */
static kj_bitcode *open_beside(const char *name)
{
  Dl_info info;
  const char *reason, *slash;
  char *path = NULL;
  if (!dladdr((void *)open_first, &info) || !info.dli_fname ||
      !(slash = strrchr(info.dli_fname, '/')))
    return NULL;
  if (asprintf(&path, "%.*s/clc/%s", (int)(slash - info.dli_fname), info.dli_fname, name) < 0)
    return NULL;
  kj_bitcode *library = kj_open_bitcode(path, simplify, &reason);
  free(path);
  return library;
}

static void look_for_library(kj_nvptx_library *library)
{
  static const struct {
    const char *pattern;
    kj_math_library kind;
  } places[] = {
#define PLACE(pattern, kind) { pattern, kind },
#include "target/math_libraries.def"
#undef PLACE
  };
  for (size_t i = 0; i < sizeof places / sizeof *places && !library->bitcode; i++) {
    library->bitcode = open_first(places[i].pattern);
    library->kind = places[i].kind;
  }
  if (library->bitcode) return;
  library->bitcode = open_beside("nvptx64--.bc");
  library->kind = KJ_LIBCLC;
}

/* By the name of libclc's file. */
static kj_math_library kind_of(const char *path)
{
  return strstr(path, "nvptx64--") ? KJ_LIBCLC : KJ_LIBDEVICE;
}

void kj_find_library(kj_nvptx_library *library)
{
  pthread_mutex_lock(&library->mutex);
  if (!library->has_looked && !library->bitcode) look_for_library(library);
  library->has_looked = true;
  pthread_mutex_unlock(&library->mutex);
}

kjit_status kj_open_library(kj_nvptx_library *library, const char *path,
                            kj_diagnostics *diagnostics)
{
  const char *reason = "";
  *library = (kj_nvptx_library){ 0 };
  if (path) {
    library->bitcode = kj_open_bitcode(path, simplify, &reason);
    library->kind = kind_of(path);
    if (!library->bitcode) {
      kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_IO,
                "libdevice: %s %s", path, reason);
      return KJIT_ERROR_IO;
    }
  }
  pthread_mutex_init(&library->mutex, NULL);
  return KJIT_OK;
}

void kj_close_library(kj_nvptx_library *library)
{
  kj_close_bitcode(library->bitcode);
  pthread_mutex_destroy(&library->mutex);
}

/* ---- linking ---- */

/* Functions that every driver has. */
static bool is_of_driver(const char *name)
{
  static const char *const names[] = { "vprintf", "malloc", "free", "__assertfail",
                                       "__nvvm_reflect" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static void check_calls(kj_emission *e, bool has_externs)
{
  for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f)) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    if (!LLVMIsDeclaration(f) || LLVMGetIntrinsicID(f) || is_of_driver(name) ||
        kj_is_extern(e->c, name))
      continue;
    if (!LLVMGetFirstUse(f)) continue;
    if (has_externs)
      kj_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
              "the code bound to an extern func calls `%s`, which nothing defines",
              kj_copy_string(e->c->arena, name, length));
    kj_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "the math library has no function `%s`", kj_copy_string(e->c->arena, name, length));
  }
}

bool kj_link_library(kj_emission *e, const kj_nvptx_library *library, kj_nvptx_lowering *state,
                     uint32_t arch)
{
  bool has_externs = kj_link_externs(e->c, e->module, &e->errors);
  if (!state->calls_library && !has_externs) return false;
  if (state->calls_library && !library->bitcode)
    kj_fail(e->c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "math functions need libdevice (CUDA toolkit) or libclc's nvptx library (package "
            "libclc-22); neither was found");
  if (library->bitcode) kj_link_bitcode(e->c, library->bitcode, e->module, &e->errors);
  state->calls_library = true;
  state->has_branches |= has_externs;
  check_calls(e, has_externs);
  answer_reflection(e->module, arch);
  return has_externs;
}
