/* nvptx: math functions. This file implements sine and cosine of f32; libdevice or libclc provide
 * the other functions. */
#include <math.h>
#include <string.h>

#include "lower/instruction.h"
#include "lower/nvptx/lower_nvptx.h"

/* Sine and cosine of f32 with an error of at most 1.6 ULP. The libraries reduce large arguments by
 * a loop with local memory, and ptxas needs more time for this loop than for the rest of an
 * element-wise kernel. The reduction in this file takes only a few instructions.
 *
 * x = quarters * pi/2 + rest, with rest in [-pi/4, pi/4]; a polynomial then gives the sine or
 * cosine of rest. */

enum { DIGIT_WORDS = 7 };

typedef struct turn {
  LLVMValueRef quarters; /* i32, modulo 4 */
  LLVMValueRef rest;     /* f32 */
} turn;

static LLVMValueRef number(kl_lowering *l, double value) { return LLVMConstReal(l->f32, value); }
static LLVMValueRef fused(kl_lowering *l, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
  return kl_intrinsic3(l, "llvm.fma", x, y, z);
}
static LLVMValueRef and32(kl_lowering *l, LLVMValueRef x, uint32_t mask)
{
  return kl_and(l, x, kl_const32(l, mask));
}
static LLVMValueRef to_bits(kl_lowering *l, LLVMValueRef x) { return kl_bitcast(l, x, l->i32); }

/* Reduces arguments below 2^16 quarter turns. Adding 1.5 * 2^23 moves the nearest integer to the
 * low bits. pi/2 is split into three parts. The parts are truncated instead of rounded, so that the
 * sign of a zero is preserved; the first difference is exact. */
static turn turn_near(kl_lowering *l, LLVMValueRef x)
{
  static const double parts[] = { 0x1.921fb4p+0, 0x1.4442dp-24, 0x1.84698ap-48 };
  LLVMValueRef shift = number(l, 0x1.8p23), shifted = fused(l, x, number(l, M_2_PI), shift),
               rest = x;
  LLVMValueRef whole = kl_fsub(l, shifted, shift);
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    rest = fused(l, whole, number(l, -parts[i]), rest);
  return (turn){ .quarters = to_bits(l, shifted), .rest = rest };
}

/* Returns a table of 2 / pi in 32-bit words, which starts with a word of zeros. */
static LLVMValueRef digits(kl_lowering *l, LLVMTypeRef type)
{
  static const char name[] = "kjit_two_over_pi";
  static const uint32_t words[DIGIT_WORDS] = { 0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                               0xf534ddc0, 0xdb629599, 0x3c439041 };
  LLVMValueRef known = LLVMGetNamedGlobal(l->module, name), values[DIGIT_WORDS];
  if (known) return known;
  for (int i = 0; i < DIGIT_WORDS; i++) values[i] = kl_const32(l, words[i]);
  LLVMValueRef global = LLVMAddGlobalInAddressSpace(l->module, type, name, l->target->global_space);
  LLVMSetInitializer(global, LLVMConstArray2(l->i32, values, DIGIT_WORDS));
  LLVMSetLinkage(global, LLVMInternalLinkage);
  LLVMSetGlobalConstant(global, true);
  LLVMSetAlignment(global, 4);
  return global;
}

/* Loads 96 bits of 2 / pi from the table, whose first word is zero. The 96 bits start at bit
 * (biased exponent - 128), which is from 15 to 127. Earlier bits would only contribute multiples of
 * 4 quarter turns. The caller multiplies the 96 bits by the mantissa. Of the lower 96 bits of the
 * product, the upper 64 represent the angle, with 2^62 for a quarter turn. */
static void load_digits(kl_lowering *l, LLVMValueRef exponent, LLVMValueRef window[3])
{
  LLVMTypeRef type = LLVMArrayType2(l->i32, DIGIT_WORDS);
  LLVMValueRef table = digits(l, type), words[4], bit = kl_sub(l, exponent, kl_const32(l, 128));
  LLVMValueRef first = kl_extend_position(l, kl_lshr(l, bit, kl_const32(l, 5)));
  for (int i = 0; i < 4; i++) {
    LLVMValueRef at[] = { kl_const64(l, 0), kl_add(l, first, kl_const64(l, i)) };
    words[i] = kl_load(l, l->i32, kl_inbounds_gep(l, type, table, at, 2));
  }
  for (int i = 0; i < 3; i++)
    window[i] = kl_intrinsic3(l, "llvm.fshl", words[i], words[i + 1], bit);
}

/* Reduces large arguments: computes the product of mantissa and 2 / pi modulo 4 in 64 bits, where
 * 2^62 is a quarter turn. The upper two bits, rounded, are `quarters`; the lower bits are
 * `rest`. */
static turn turn_far(kl_lowering *l, LLVMValueRef x)
{
  LLVMValueRef bits = to_bits(l, x), window[3],
               is_negative = kl_icmp(l, LLVMIntSLT, bits, kl_const32(l, 0));
  load_digits(l, and32(l, kl_lshr(l, bits, kl_const32(l, 23)), 0xff), window);
  LLVMValueRef mantissa = kl_or(l, kl_shl(l, bits, kl_const32(l, 8)), kl_const32(l, 0x80000000));
  LLVMValueRef wide = kl_zext(l, mantissa, l->i64), products[3];
  for (int i = 0; i < 3; i++) products[i] = kl_mul(l, wide, kl_zext(l, window[i], l->i64));
  LLVMValueRef sum = kl_add(l, kl_shl(l, products[0], kl_const64(l, 32)), products[1]);
  sum = kl_add(l, sum, kl_lshr(l, products[2], kl_const64(l, 32)));
  LLVMValueRef rounded = kl_add(l, sum, kl_const64(l, (int64_t)1 << 61));
  LLVMValueRef quarters = kl_trunc(l, kl_lshr(l, rounded, kl_const64(l, 62)), l->i32);
  LLVMValueRef turned = kl_sitofp(l, kl_shl(l, sum, kl_const64(l, 2)), l->f64);
  LLVMValueRef rest =
    kl_fptrunc(l, kl_fmul(l, turned, LLVMConstReal(l->f64, M_PI_2 * 0x1p-64)), l->f32);
  LLVMValueRef is_finite =
    kl_fcmp(l, LLVMRealOLT, kl_intrinsic1(l, "llvm.fabs", x), number(l, INFINITY));
  rest = kl_select(l, is_finite, kl_select(l, is_negative, kl_fneg(l, rest), rest), number(l, NAN));
  return (turn){ .quarters = kl_select(l, is_negative, kl_neg(l, quarters), quarters),
                 .rest = rest };
}

static turn find_turn(kl_lowering *l, LLVMValueRef x)
{
  LLVMBasicBlockRef far = kl_new_block(l, "far"), end = kl_new_block(l, "turn"),
                    from[] = { kl_here(l), far };
  turn near = turn_near(l, x), both;
  LLVMValueRef is_near =
    kl_fcmp(l, LLVMRealOLT, kl_intrinsic1(l, "llvm.fabs", x), number(l, 0x1p16));
  kl_cond_br(l, is_near, end, far);
  kl_move_to(l, far);
  turn exact = turn_far(l, x);
  kl_go_on_in(l, end);
  both.quarters = kl_join(l, near.quarters, from[0], exact.quarters, from[1]);
  both.rest = kl_join(l, near.rest, from[0], exact.rest, from[1]);
  return both;
}

/* Returns the sine. If `quarters` is odd, the sine is the cosine of the rest. The polynomials
 * minimize the maximum relative error. If the rest is -0, its product with the square is -0, too;
 * adding 0 makes the product +0, so that the sine of -0 is -0. */
static LLVMValueRef sine(kl_lowering *l, LLVMValueRef quarters, LLVMValueRef rest)
{
  LLVMValueRef is_odd = kl_icmp(l, LLVMIntNE, and32(l, quarters, 1), kl_const32(l, 0));
  LLVMValueRef square = kl_fmul(l, rest, rest), base = kl_select(l, is_odd, number(l, 1), rest);
  LLVMValueRef last = fused(l, square, number(l, 0x1.9914cep-16), number(l, -0x1.6c07eap-10));
  LLVMValueRef sum = kl_select(l, is_odd, last, number(l, -0x1.994222p-13));
  sum =
    fused(l, sum, square, kl_select(l, is_odd, number(l, 0x1.55553cp-5), number(l, 0x1.110736p-7)));
  sum = fused(l, sum, square, kl_select(l, is_odd, number(l, -0.5), number(l, -0x1.555546p-3)));
  LLVMValueRef value = fused(l, sum, fused(l, square, base, number(l, 0)), base);
  LLVMValueRef sign = and32(l, kl_shl(l, quarters, kl_const32(l, 30)), 0x80000000);
  return kl_bitcast(l, kl_xor(l, to_bits(l, value), sign), l->f32);
}

static LLVMValueRef next_quarter(kl_lowering *l, LLVMValueRef quarters)
{
  return kl_add(l, quarters, kl_const32(l, 1));
}

LLVMValueRef kl_nvptx_sine(kl_lowering *l, LLVMValueRef x)
{
  turn at = find_turn(l, x);
  return sine(l, at.quarters, at.rest);
}

LLVMValueRef kl_nvptx_cosine(kl_lowering *l, LLVMValueRef x)
{
  turn at = find_turn(l, x);
  return sine(l, next_quarter(l, at.quarters), at.rest);
}

void kl_nvptx_sine_and_cosine(kl_lowering *l, LLVMValueRef x, LLVMValueRef values[2])
{
  turn at = find_turn(l, x);
  values[0] = sine(l, at.quarters, at.rest);
  values[1] = sine(l, next_quarter(l, at.quarters), at.rest);
}

/* Calls math functions of libdevice or, if it is not available, of libclc by name.
 * lib/target/math_library.c links the library. */

static kl_nvptx_lowering *state_of(kl_lowering *l) { return l->target_state; }

static const char *libdevice_name(kl_lowering *l, const ki_math *math, bool is_float)
{
  bool is_fast = l->frame->instance->modes.is_fastmath || (math->form & KJ_MATH_APPROXIMATE);
  bool has_fast = is_float && is_fast && math->fast;
  return kj_format(l->c->arena, "__nv_%s%s", has_fast ? math->fast : math->libdevice,
                   is_float ? "f" : "");
}

/* Returns the function name in OpenCL C, mangled by the Itanium ABI. */
static const char *libclc_name(kl_lowering *l, const char *name, unsigned count, bool is_float)
{
  KJ_ASSERT(count <= 3);
  char types[4] = { 0 };
  memset(types, is_float ? 'f' : 'd', count);
  return kj_format(l->c->arena, "_Z%zu%s%s", strlen(name), name, types);
}

/* Returns whether libdevice is used, and records that the code depends on it. */
static bool has_libdevice(kl_lowering *l)
{
  state_of(l)->asks_library = true;
  return state_of(l)->library == KJ_MATH_LIBDEVICE;
}

static LLVMValueRef call_library(kl_lowering *l, const char *name, LLVMValueRef *args,
                                 unsigned count, LLVMTypeRef result)
{
  KJ_ASSERT(count <= 4);
  LLVMTypeRef types[4];
  for (unsigned i = 0; i < count; i++) types[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef type = LLVMFunctionType(result, types, count, false);
  LLVMValueRef function = LLVMGetNamedFunction(l->module, name);
  if (!function) function = kl_add_function(l, name, type);
  state_of(l)->calls_library = true;
  return kl_fast(l, kl_call(l, type, function, args, count));
}

/* Returns whether neither the loop passes nor optimized code generation improve the function's code
 * in a kernel. Returns true for f32 functions of libdevice without loops, and for functions that
 * have no branches in any library. */
static bool is_simple(const ki_math *math, bool is_libdevice)
{
  return (math->form & KJ_MATH_STRAIGHT) || (is_libdevice && !(math->form & KJ_MATH_LOOPS));
}

static LLVMValueRef call_one(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                             LLVMTypeRef result)
{
  KJ_ASSERT(count >= 1);
  const ki_math *math = &ki_math_table[id];
  /* the first argument may be an integer */
  bool is_float = LLVMTypeOf(args[count - 1]) == l->f32;
  bool is_libdevice = has_libdevice(l);
  state_of(l)->has_branches |= !is_float || !is_simple(math, is_libdevice);
  if (is_libdevice) return call_library(l, libdevice_name(l, math, is_float), args, count, result);
  if (id == KJ_BUILTIN_RCBRT)
    return kl_fast(l, kl_fdiv(l, LLVMConstReal(result, 1),
                              call_one(l, KJ_BUILTIN_CBRT, args, count, result)));
  if (!math->libclc)
    kt_fail(l->c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "`%s` on a GPU needs libdevice of the CUDA toolkit; kjit found no toolkit and uses "
            "libclc, which lacks this function",
            ki_builtin_table[id].name);
  return call_library(l, libclc_name(l, math->libclc, count, is_float), args, count, result);
}

/* Returns whether this file implements the function. With @fastmath, the function comes from
 * libdevice, which has faster approximations. */
static bool has_own_form(kl_lowering *l, ki_builtin_id id, LLVMTypeRef type)
{
  if (type != l->f32 || (has_libdevice(l) && l->frame->instance->modes.is_fastmath)) return false;
  return id == KJ_BUILTIN_SIN || id == KJ_BUILTIN_COS;
}

/* Lowers sincos. libdevice's function returns its results through two pointers. */
static LLVMValueRef call_sincos(kl_lowering *l, LLVMValueRef x, LLVMTypeRef result)
{
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef values[2];
  if (has_own_form(l, KJ_BUILTIN_SIN, type)) {
    kl_nvptx_sine_and_cosine(l, x, values);
  } else if (has_libdevice(l)) {
    state_of(l)->has_branches = true;
    LLVMValueRef args[3] = { x, kl_alloca(l, type, "sine"), kl_alloca(l, type, "cosine") };
    call_library(l, libdevice_name(l, &ki_math_table[KJ_BUILTIN_SINCOS], type == l->f32), args, 3,
                 l->void_);
    for (int i = 0; i < 2; i++) values[i] = kl_load(l, type, args[1 + i]);
  } else {
    values[0] = call_one(l, KJ_BUILTIN_SIN, &x, 1, type);
    values[1] = call_one(l, KJ_BUILTIN_COS, &x, 1, type);
  }
  LLVMValueRef both = kl_insert_value(l, LLVMGetPoison(result), values[0], 0);
  return kl_insert_value(l, both, values[1], 1);
}

/* Lowers jn. libdevice's recurrence overflows for small x and gives NaN. For such x, the first term
 * of the series, (x / 2)^n / n!, is accurate enough. */
static LLVMValueRef call_jn(kl_lowering *l, LLVMValueRef *args, LLVMTypeRef type)
{
  bool is_float = type == l->f32;
  LLVMValueRef limit = LLVMConstReal(type, is_float ? 0x1p-10 : 0x1p-26),
               n = kl_sitofp(l, args[0], type);
  LLVMValueRef is_small = kl_fcmp(l, LLVMRealOLT, kl_intrinsic1(l, "llvm.fabs", args[1]), limit);
  LLVMValueRef is_high = kl_icmp(l, LLVMIntSGT, args[0], kl_const32(l, 1));
  LLVMBasicBlockRef series = kl_new_block(l, "series"), recurrence = kl_new_block(l, "recurrence"),
                    end = kl_new_block(l, "jn");
  kl_go_on_if(l, kl_and(l, is_small, is_high), series, recurrence);
  LLVMValueRef base[] = { kl_fmul(l, args[1], LLVMConstReal(type, 0.5)), n },
               next = kl_fadd(l, n, LLVMConstReal(type, 1));
  LLVMValueRef power = call_one(l, KJ_BUILTIN_POW, base, 2, type),
               factorial = call_one(l, KJ_BUILTIN_TGAMMA, &next, 1, type);
  LLVMValueRef values[] = { kl_fdiv(l, power, factorial), NULL };
  LLVMBasicBlockRef from[] = { kl_here(l), NULL };
  kl_br(l, end);
  kl_move_to(l, recurrence);
  values[1] = call_one(l, KJ_BUILTIN_JN, args, 2, type);
  from[1] = kl_here(l);
  kl_go_on_in(l, end);
  return kl_join(l, values[0], from[0], values[1], from[1]);
}

/* Lowers yn. For -0, libdevice returns an infinity with the wrong sign; C defines the same value as
 * for +0. */
static LLVMValueRef call_yn(kl_lowering *l, LLVMValueRef *args, LLVMTypeRef type)
{
  LLVMValueRef is_zero = kl_fcmp(l, LLVMRealOEQ, args[1], LLVMConstNull(type));
  LLVMValueRef positive[] = { args[0], kl_select(l, is_zero, LLVMConstNull(type), args[1]) };
  return call_one(l, KJ_BUILTIN_YN, positive, 2, type);
}

LLVMValueRef kl_nvptx_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef *args, unsigned count,
                           LLVMTypeRef result)
{
  if (id == KJ_BUILTIN_SINCOS) return call_sincos(l, args[0], result);
  if (id == KJ_BUILTIN_JN) return call_jn(l, args, result);
  if (id == KJ_BUILTIN_YN) return call_yn(l, args, result);
  if (has_own_form(l, id, result))
    return id == KJ_BUILTIN_SIN ? kl_nvptx_sine(l, args[0]) : kl_nvptx_cosine(l, args[0]);
  return call_one(l, id, args, count, result);
}

LLVMValueRef kl_nvptx_native(kl_lowering *l, const char *name, uint32_t least_arch,
                             LLVMValueRef *args, unsigned count)
{
  if (l->c->request->target.arch < least_arch) return NULL;
  const char *full = kj_format(l->c->arena, "llvm.nvvm.%s", name);
  LLVMTypeRef overload = count ? LLVMTypeOf(args[0]) : NULL;
  return kl_intrinsic(l, full, &overload,
                      LLVMIntrinsicIsOverloaded(LLVMLookupIntrinsicID(full, strlen(full))), args,
                      count);
}

LLVMValueRef kl_nvptx_rsqrt(kl_lowering *l, LLVMValueRef x)
{
  return kl_intrinsic(l,
                      LLVMTypeOf(x) == l->f32 ? "llvm.nvvm.rsqrt.approx.f"
                                              : "llvm.nvvm.rsqrt.approx.d",
                      NULL, 0, &x, 1);
}

LLVMValueRef kl_nvptx_float_to_i32(kl_lowering *l, LLVMValueRef x, bool is_unsigned)
{
  return kl_intrinsic(l, is_unsigned ? "llvm.nvvm.f2ui.rz" : "llvm.nvvm.f2i.rz", NULL, 0, &x, 1);
}

/* Builds inline assembly that has one operand, a result of the same type, and no effect. LLVM
 * cannot see through it. */
static LLVMValueRef opaque(kl_lowering *l, const char *text32, const char *text64, LLVMValueRef x)
{
  LLVMTypeRef type = LLVMTypeOf(x), function = LLVMFunctionType(type, &type, 1, false);
  const char *text = type == l->i64 ? text64 : text32,
             *constraints = type == l->i64 ? "=l,l" : "=r,r";
  LLVMValueRef code =
    LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), false, false,
                     LLVMInlineAsmDialectATT, false);
  return kl_call(l, function, code, &x, 1);
}

/* Returns the absolute value. ptxas assumes that the result of PTX's abs, and of common
 * equivalents, is not negative, and then converts the minimum to a positive number. For the maximum
 * of x, -x and a third number, ptxas 13.0 emits on sm_90 a single 32-bit instruction without the
 * negation. This function avoids both defects: it multiplies 32-bit values by 1 or -1. */
LLVMValueRef kl_nvptx_integer_abs(kl_lowering *l, LLVMValueRef x)
{
  return opaque(l, "{ .reg .b32 s; shr.s32 s, $1, 31; or.b32 s, s, 1; mul.lo.s32 $0, $1, s; }",
                "{ .reg .s64 negated; sub.s64 negated, 0, $1; max.s64 $0, $1, negated; }", x);
}

/* Returns whether the target has instructions for bf16 sums and products with a single rounding.
 * sm_90 has all of these instructions; for sm_80, LLVM builds them from a conversion to bf16 and an
 * fma on bf16. */
bool kl_nvptx_has_brain_arithmetic(kl_lowering *l) { return l->c->request->target.arch >= 80; }

bool kl_nvptx_has_half_fma(kl_lowering *l, kjit_type type)
{
  return type == KJIT_F16 || l->c->request->target.arch >= 80;
}
