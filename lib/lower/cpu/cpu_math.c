/* CPU: the functions of <math.h> as calls of the C library. Each call names libmvec's variants for
 * the vectorizer.
 *
 * Until the code is optimized, each function has a name that LLVM does not know. About `fmod`,
 * `pow` or `sinf` LLVM makes assumptions, some of which are wrong or differ from the results of the
 * function (docs/llvm-notes.md). The attribute `nobuiltin` would prevent the assumptions too, but
 * then the vectorizer would not use the variants. The attribute is added together with the real
 * names.
 *
 * A call site names its variants in the attribute vector-function-abi-variant
 * ("_ZGV<isa>N<lanes>v_<called name>(<symbol>)", x86-64 vector function ABI: b SSE, c AVX, d AVX2,
 * e AVX-512). llvm.compiler.used keeps their declarations. Only variants that this C library has
 * and this processor can run are named. */
#include <stdio.h>
#include <string.h>

#include "lower/instruction.h"
#include "lower/cpu/cpu.h"
#include "native/functions.h"

/* Contains a `$`, so that the name of no kernel or func begins with it. */
#define MATH_PREFIX "kj$math_"

static bool runs_here(const kl_cpu_features *features, char isa)
{
  if (isa == 'e') return features->has_avx512;
  if (isa == 'd') return features->has_avx2;
  return isa == 'c' ? features->has_avx && !features->has_avx2 : true;
}

/* Declares a variant and keeps the declaration from being removed. */
static void keep(kl_lowering *l, const char *name, LLVMTypeRef element, unsigned lanes,
                 unsigned count)
{
  if (LLVMGetNamedFunction(l->module, name)) return;
  kl_cpu_state *s = kl_cpu(l);
  LLVMTypeRef vector = LLVMVectorType(element, lanes), params[2] = { vector, vector };
  if (s->kept_count == s->kept_capacity) {
    unsigned capacity = KJ_GROWN(s->kept_capacity, 16);
    LLVMValueRef *more = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, capacity);
    if (s->kept_count) memcpy(more, s->kept, s->kept_count * sizeof *more);
    s->kept = more;
    s->kept_capacity = capacity;
  }
  s->kept[s->kept_count++] =
    kl_add_function(l, name, LLVMFunctionType(vector, params, count, false));
}

static void name_variants(kl_lowering *l, LLVMValueRef call, const char *name, bool is_f64,
                          unsigned count)
{
  const kl_cpu_features *features = kl_cpu(l)->features;
  const char *variants = ""; /* in the arena, because a failure may jump out of this function */
  kl_cpu(l)->asks_vector_functions = true;
  for (int v = 0; v < KJ_VECTOR_VARIANTS; v++) {
    const kn_vector_variant *variant = &kn_vector_variants[v];
    char symbol[KJ_VECTOR_NAME_BYTES], mangled[KJ_VECTOR_NAME_BYTES];
    kn_format_vector_name(symbol, variant, is_f64, count, name);
    kn_format_vector_name(mangled, variant, is_f64, count,
                          kj_format(l->c->arena, MATH_PREFIX "%s", name));
    if (!runs_here(features, variant->isa) || !features->has_function(symbol)) continue;
    keep(l, symbol, is_f64 ? l->f64 : l->f32, variant->bytes / (is_f64 ? 8 : 4), count);
    variants =
      kj_format(l->c->arena, "%s%s%s(%s)", variants, *variants ? "," : "", mangled, symbol);
  }
  static const char key[] = "vector-function-abi-variant";
  if (!*variants) return;
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(l->context, key, sizeof key - 1, variants,
                                                         (unsigned)strlen(variants));
  LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

static LLVMValueRef declare(kl_lowering *l, const char *name, LLVMTypeRef type)
{
  LLVMValueRef function = LLVMGetNamedFunction(l->module, name);
  if (function) return function;
  function = kl_add_function(l, name, type);
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "willreturn", 0);
  /* no memory access: nothing reads errno */
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "memory", 0);
  return function;
}

static LLVMValueRef call_library(kl_lowering *l, const ki_math *math, LLVMValueRef *args,
                                 unsigned count)
{
  KJ_ASSERT(count >= 1 && count <= 3);
  /* the first argument may be an integer */
  LLVMTypeRef params[3], result = LLVMTypeOf(args[count - 1]);
  bool is_f64 = result == l->f64;
  for (unsigned i = 0; i < count; i++) params[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef type = LLVMFunctionType(result, params, count, false);
  const char *symbol = kj_format(l->c->arena, MATH_PREFIX "%s%s", math->host, is_f64 ? "" : "f");
  LLVMValueRef call = kl_call(l, type, declare(l, symbol, type), args, count);
  if (math->form & KJ_MATH_VECTOR) name_variants(l, call, math->host, is_f64, count);
  return call;
}

LLVMValueRef kl_cpu_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                         LLVMTypeRef result)
{
  if (id != KJ_BUILTIN_SINCOS) return call_library(l, &ki_math_table[id], args, count);
  LLVMValueRef both =
    kl_insert_value(l, LLVMGetPoison(result),
                    kl_cpu_math(l, KJ_BUILTIN_SIN, args, 1, LLVMTypeOf(args[0])), 0);
  return kl_insert_value(l, both, kl_cpu_math(l, KJ_BUILTIN_COS, args, 1, LLVMTypeOf(args[0])), 1);
}

LLVMValueRef kl_cpu_rsqrt(kl_lowering *l, LLVMValueRef x)
{
  LLVMValueRef root = kl_fast(l, kl_intrinsic1(l, "llvm.sqrt", x));
  return kl_fast(l, kl_fdiv(l, LLVMConstReal(LLVMTypeOf(x), 1), root));
}

void kl_name_cpu_math(LLVMContextRef context, LLVMModuleRef module)
{
  static const char prefix[] = MATH_PREFIX, attribute[] = "nobuiltin";
  unsigned kind = LLVMGetEnumAttributeKindForName(attribute, sizeof attribute - 1);
  for (LLVMValueRef f = LLVMGetFirstFunction(module), next; f; f = next) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    next = LLVMGetNextFunction(f);
    if (length < sizeof prefix || strncmp(name, prefix, sizeof prefix - 1) != 0) continue;
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, kind, 0));
    LLVMSetValueName2(f, name + sizeof prefix - 1, length - (sizeof prefix - 1));
  }
}

void kl_finish_cpu_math(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  if (!s->kept_count) return;
  LLVMTypeRef type = LLVMArrayType2(l->pointer, s->kept_count);
  LLVMValueRef used = LLVMAddGlobal(l->module, type, "llvm.compiler.used");
  LLVMSetLinkage(used, LLVMAppendingLinkage);
  LLVMSetSection(used, "llvm.metadata");
  LLVMSetInitializer(used, LLVMConstArray2(l->pointer, s->kept, s->kept_count));
}
