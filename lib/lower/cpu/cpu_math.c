/* CPU: calls of the C library for the functions of <math.h>. Each call names the vector variants of
 * the function in libmvec, which the vectorizer can use.
 *
 * Until the code has been optimized, each function has a name that LLVM does not know, because LLVM
 * makes assumptions about functions such as `fmod`, `pow` and `sinf`. Some of these assumptions are
 * wrong, or change the results (docs/llvm-notes.md). The attribute `nobuiltin` would prevent the
 * assumptions, but the vectorizer would then not use the variants. So the attribute is added after
 * optimization, together with the real names.
 *
 * A call names its variants in the attribute vector-function-abi-variant
 * ("_ZGV<isa>N<lanes>v_<called name>(<symbol>)", x86-64 vector function ABI: b SSE, c AVX, d AVX2,
 * e AVX-512). llvm.compiler.used keeps the variants' declarations. Only variants that exist in this
 * C library and that this processor can execute are named. */
#include <stdio.h>
#include <string.h>

#include "lower/instruction.h"
#include "lower/cpu/cpu.h"
#include "native/functions.h"

/* The prefix of these names contains a `$`, so no kernel or func can have a name with this
 * prefix. */
#define MATH_PREFIX "kj$math_"

/* KJ_MOST_VECTOR_LANES is the number of f32 in an AVX-512 vector. MOST_PROPERTIES limits the number
 * of properties in a loop's metadata. */
enum { KJ_MOST_VECTOR_LANES = 16, MOST_PROPERTIES = 16 };

static bool runs_here(const kl_cpu_features *features, char isa)
{
  if (isa == 'e') return features->has_avx512;
  if (isa == 'd') return features->has_avx2;
  return isa == 'c' ? features->has_avx && !features->has_avx2 : true;
}

/* Declares a variant and prevents the declaration's removal. */
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
  const char *variants = ""; /* allocated in the arena, because an error can leave this function by
                              * longjmp */
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
  /* for LLVM, the function accesses no memory: it can write errno, but no code reads errno */
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

/* Returns 1 for angles whose exact cosine rounds to 1. For some of these angles, libmvec returns
 * the largest number below 1. */
static LLVMValueRef call_cosine(kl_lowering *l, LLVMValueRef *args)
{
  /* the largest x with x * x / 2 <= 2^-54 in f64 and 2^-25 in f32, which is half of the distance
   * from 1 to the next smaller number */
  static const double small_f64 = 0x1.6a09e667f3bccp-27, small_f32 = 0x1p-12;
  LLVMValueRef x = args[0], cosine = call_library(l, &ki_math_table[KJ_BUILTIN_COS], args, 1),
               small = kl_real_like(x, LLVMTypeOf(x) == l->f64 ? small_f64 : small_f32),
               is_small = kl_fcmp(l, LLVMRealOLE, kl_fabs(l, x), small);
  return kl_select(l, is_small, kl_real_like(x, 1), cosine);
}

LLVMValueRef kl_cpu_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                         LLVMTypeRef result)
{
  if (id == KJ_BUILTIN_COS || id == KJ_BUILTIN_FAST_COS) return call_cosine(l, args);
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

/* ---- after optimization ---- */

static LLVMValueRef function_around(LLVMValueRef instruction)
{
  return LLVMGetBasicBlockParent(LLVMGetInstructionParent(instruction));
}

static bool is_call_of(LLVMValueRef user, LLVMValueRef callee)
{
  return LLVMIsACallInst(user) && LLVMGetCalledValue(user) == callee;
}

static bool is_called_in(LLVMValueRef callee, LLVMValueRef function)
{
  for (LLVMUseRef use = LLVMGetFirstUse(callee); use; use = LLVMGetNextUse(use)) {
    LLVMValueRef user = LLVMGetUser(use);
    if (is_call_of(user, callee) && function_around(user) == function) return true;
  }
  return false;
}

static bool is_variant_of(LLVMValueRef function, const char *name)
{
  size_t length;
  const char *known = LLVMGetValueName2(function, &length), *last = strrchr(known, '_');
  return !strncmp(known, "_ZGV", 4) && last && !strcmp(last + 1, name);
}

/* Returns the number of lanes in a vector function, or 1 for a scalar function. */
static unsigned count_lanes(LLVMValueRef function)
{
  LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(function));
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetVectorSize(type) : 1;
}

/* Returns the variant with the most lanes among those that `function` calls, or NULL. */
static LLVMValueRef find_widest(LLVMModuleRef module, const char *name, LLVMValueRef function)
{
  LLVMValueRef found = NULL;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    if (is_variant_of(f, name) && (!found || count_lanes(f) > count_lanes(found)) &&
        is_called_in(f, function))
      found = f;
  return found;
}

/* Returns `count` lanes that repeat the first `period` lanes of x. */
static LLVMValueRef repeat_lanes(LLVMBuilderRef builder, LLVMValueRef x, unsigned period,
                                 unsigned count)
{
  LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(x)));
  LLVMValueRef mask[KJ_MOST_VECTOR_LANES];
  KJ_ASSERT(count <= KJ_MOST_VECTOR_LANES);
  for (unsigned i = 0; i < count; i++) mask[i] = LLVMConstInt(i32, i % period, false);
  LLVMValueRef poison = LLVMGetPoison(LLVMTypeOf(x));
  return LLVMBuildShuffleVector(builder, x, poison, LLVMConstVector(mask, count), "");
}

/* Replaces a call, of the scalar function or of a variant with fewer lanes, by a call of the
 * variant. */
static void call_variant(LLVMBuilderRef builder, LLVMValueRef call, LLVMValueRef variant)
{
  LLVMTypeRef type = LLVMGlobalGetValueType(variant), vector = LLVMGetReturnType(type);
  LLVMValueRef args[2], zero = LLVMConstNull(LLVMInt32TypeInContext(LLVMGetTypeContext(type)));
  unsigned given = count_lanes(LLVMGetCalledValue(call)), lanes = count_lanes(variant);
  unsigned count = LLVMGetNumArgOperands(call);
  KJ_ASSERT(count <= 2 && count == LLVMCountParamTypes(type));
  LLVMPositionBuilderBefore(builder, call);
  for (unsigned i = 0; i < count; i++) {
    LLVMValueRef x = LLVMGetOperand(call, i);
    if (given == 1) x = LLVMBuildInsertElement(builder, LLVMGetPoison(vector), x, zero, "");
    args[i] = repeat_lanes(builder, x, given, lanes);
  }
  LLVMValueRef all = LLVMBuildCall2(builder, type, variant, args, count, "");
  LLVMValueRef result = given == 1 ? LLVMBuildExtractElement(builder, all, zero, "")
                                   : repeat_lanes(builder, all, given, given);
  LLVMReplaceAllUsesWith(call, result);
  LLVMInstructionEraseFromParent(call);
}

/* Returns whether the basic block ends a loop that the vectorizer has split into a vectorized loop
 * and a remainder loop. */
static bool is_of_vectorized_loop(LLVMBasicBlockRef block)
{
  static const char key[] = "llvm.loop", wanted[] = "llvm.loop.isvectorized";
  LLVMValueRef branch = LLVMGetBasicBlockTerminator(block);
  LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(branch));
  LLVMValueRef id = LLVMGetMetadata(branch, LLVMGetMDKindIDInContext(context, key, sizeof key - 1));
  LLVMValueRef properties[MOST_PROPERTIES], parts[MOST_PROPERTIES];
  unsigned count = id ? LLVMGetMDNodeNumOperands(id) : 0, length;
  if (!count || count > MOST_PROPERTIES) return false;
  LLVMGetMDNodeOperands(id, properties);
  for (unsigned i = 1; i < count; i++) { /* operand 0 is the id itself */
    unsigned part_count = properties[i] ? LLVMGetMDNodeNumOperands(properties[i]) : 0;
    if (!part_count || part_count > MOST_PROPERTIES) continue;
    LLVMGetMDNodeOperands(properties[i], parts);
    const char *name = parts[0] ? LLVMGetMDString(parts[0], &length) : NULL;
    if (name && length == sizeof wanted - 1 && !memcmp(name, wanted, length)) return true;
  }
  return false;
}

/* Replaces the calls of a variant by calls of the widest variant that the calling function uses. If
 * callee is the scalar function, replaces only calls in remainder loops, and only if of_rest is
 * set. */
static void unite_calls(LLVMBuilderRef builder, LLVMModuleRef module, LLVMValueRef callee,
                        const char *name, bool of_rest)
{
  for (LLVMUseRef use = LLVMGetFirstUse(callee), next; use; use = next) {
    LLVMValueRef user = LLVMGetUser(use);
    next = LLVMGetNextUse(use);
    bool is_scalar = count_lanes(callee) == 1;
    if (!is_call_of(user, callee)) continue;
    if (is_scalar && !(of_rest && is_of_vectorized_loop(LLVMGetInstructionParent(user)))) continue;
    LLVMValueRef widest = find_widest(module, name, function_around(user));
    if (widest && widest != callee) call_variant(builder, user, widest);
  }
}

/* Changes remainder loops so that they call the variant with the most lanes that the function
 * calls. The scalar function and its variants round differently. Without this change, a vectorized
 * loop would compute its last elements by the scalar function or by a variant with fewer lanes, so
 * the results of equal elements would depend on their positions. Other loops still call the scalar
 * function, which is faster for a single element. */
static void unite_variants(LLVMBuilderRef builder, LLVMModuleRef module, LLVMValueRef scalar,
                           const char *name, bool of_rest)
{
  unite_calls(builder, module, scalar, name, of_rest);
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    if (is_variant_of(f, name)) unite_calls(builder, module, f, name, of_rest);
}

/* Returns whether the kernel has arrays with run-time strides. If such a stride is not 1, the
 * remainder loop computes all elements, and the scalar function is faster. */
static bool has_strides(const kl_lowering *l)
{
  const kt_instance *root = l->c->instances.items[0];
  for (size_t i = 0; i < root->params.count; i++) {
    kjit_type type = root->params.items[i]->type;
    const ki_type_info *info = ki_is_weak(type) ? NULL : ki_type(l->c->types, type);
    if (info && info->class_ == KJ_CLASS_ARRAY && info->layout == KJIT_LAYOUT_STRIDED) return true;
  }
  return false;
}

void kl_name_cpu_math(kl_lowering *l, LLVMModuleRef module)
{
  LLVMContextRef context = LLVMGetModuleContext(module);
  static const char prefix[] = MATH_PREFIX, attribute[] = "nobuiltin";
  unsigned kind = LLVMGetEnumAttributeKindForName(attribute, sizeof attribute - 1);
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  for (LLVMValueRef f = LLVMGetFirstFunction(module), next; f; f = next) {
    size_t length;
    const char *name = LLVMGetValueName2(f, &length);
    next = LLVMGetNextFunction(f);
    if (length < sizeof prefix || strncmp(name, prefix, sizeof prefix - 1) != 0) continue;
    unite_variants(builder, module, f, name + sizeof prefix - 1, !has_strides(l));
    LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(context, kind, 0));
    LLVMSetValueName2(f, name + sizeof prefix - 1, length - (sizeof prefix - 1));
  }
  LLVMDisposeBuilder(builder);
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
