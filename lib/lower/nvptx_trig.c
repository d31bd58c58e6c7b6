/* nvptx: sine and cosine of f32, at most 1.6 ULP from the exact result. A library's reduce large
 * arguments by a loop and local memory, which assemblers take longer for than for all the rest of
 * an element-wise kernel; here that is a few instructions.
 *
 * x = quarters * pi/2 + rest, with rest in [-pi/4, pi/4]; then a polynomial for the sine or the
 * cosine of the rest. */
#include <math.h>

#include "lower/nvptx_parts.h"

enum { DIGIT_WORDS = 7 };

typedef struct turn {
  LLVMValueRef quarters; /* i32, modulo 4 */
  LLVMValueRef rest;     /* f32 */
} turn;

static LLVMValueRef number(kj_lowering *l, double value) { return LLVMConstReal(l->f32, value); }
static LLVMValueRef fused(kj_lowering *l, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
  return kj_intrinsic3(l, "llvm.fma", x, y, z);
}
static LLVMValueRef choose(kj_lowering *l, LLVMValueRef condition, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildSelect(l->builder, condition, x, y, "");
}
static LLVMValueRef and32(kj_lowering *l, LLVMValueRef x, uint32_t mask)
{
  return LLVMBuildAnd(l->builder, x, kj_const32(l, mask), "");
}
static LLVMValueRef to_bits(kj_lowering *l, LLVMValueRef x)
{
  return LLVMBuildBitCast(l->builder, x, l->i32, "");
}

/* Quarters below 2^16. The sum with 1.5 * 2^23 has the nearest integer in its last bits. pi/2 comes
 * in three parts that are cut off, not rounded, so that the sign of a zero stays; the first
 * difference is exact. */
static turn turn_near(kj_lowering *l, LLVMValueRef x)
{
  static const double parts[] = { 0x1.921fb4p+0, 0x1.4442dp-24, 0x1.84698ap-48 };
  LLVMValueRef shift = number(l, 0x1.8p23), shifted = fused(l, x, number(l, M_2_PI), shift),
               rest = x;
  LLVMValueRef whole = LLVMBuildFSub(l->builder, shifted, shift, "");
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    rest = fused(l, whole, number(l, -parts[i]), rest);
  return (turn){ .quarters = to_bits(l, shifted), .rest = rest };
}

/* 2 / pi in words of 32 bits after a word of zeros. */
static LLVMValueRef digits(kj_lowering *l, LLVMTypeRef type)
{
  static const char name[] = "kjit_two_over_pi";
  static const uint32_t words[DIGIT_WORDS] = { 0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                               0xf534ddc0, 0xdb629599, 0x3c439041 };
  LLVMValueRef known = LLVMGetNamedGlobal(l->module, name), values[DIGIT_WORDS];
  if (known) return known;
  for (int i = 0; i < DIGIT_WORDS; i++) values[i] = kj_const32(l, words[i]);
  LLVMValueRef global = LLVMAddGlobalInAddressSpace(l->module, type, name, l->target->global_space);
  LLVMSetInitializer(global, LLVMConstArray2(l->i32, values, DIGIT_WORDS));
  LLVMSetLinkage(global, LLVMInternalLinkage);
  LLVMSetGlobalConstant(global, true);
  LLVMSetAlignment(global, 4);
  return global;
}

/* 96 bits of 2 / pi, such that the upper 64 of the lower 96 bits of the product with the mantissa
 * have 2^62 a quarter: what is before gives multiples of 4 quarters. With a word of zeros before,
 * they start at the biased exponent - 128, which is from 15 to 127. */
static void load_digits(kj_lowering *l, LLVMValueRef exponent, LLVMValueRef window[3])
{
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef type = LLVMArrayType2(l->i32, DIGIT_WORDS);
  LLVMValueRef table = digits(l, type), words[4],
               bit = LLVMBuildSub(b, exponent, kj_const32(l, 128), "");
  LLVMValueRef first = kj_extend_position(l, LLVMBuildLShr(b, bit, kj_const32(l, 5), ""));
  for (int i = 0; i < 4; i++) {
    LLVMValueRef at[] = { kj_const64(l, 0), LLVMBuildAdd(b, first, kj_const64(l, i), "") };
    words[i] = LLVMBuildLoad2(b, l->i32, LLVMBuildInBoundsGEP2(b, type, table, at, 2, ""), "");
  }
  for (int i = 0; i < 3; i++)
    window[i] = kj_intrinsic3(l, "llvm.fshl", words[i], words[i + 1], bit);
}

/* The product of mantissa and 2 / pi modulo 4 in 64 bits, 2^62 a quarter: its upper two bits,
 * rounded, are the quarters, all others the rest. */
static turn turn_far(kj_lowering *l, LLVMValueRef x)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef bits = to_bits(l, x), window[3],
               is_negative = LLVMBuildICmp(b, LLVMIntSLT, bits, kj_const32(l, 0), "");
  load_digits(l, and32(l, LLVMBuildLShr(b, bits, kj_const32(l, 23), ""), 0xff), window);
  LLVMValueRef mantissa =
    LLVMBuildOr(b, LLVMBuildShl(b, bits, kj_const32(l, 8), ""), kj_const32(l, 0x80000000), "");
  LLVMValueRef wide = LLVMBuildZExt(b, mantissa, l->i64, ""), products[3];
  for (int i = 0; i < 3; i++)
    products[i] = LLVMBuildMul(b, wide, LLVMBuildZExt(b, window[i], l->i64, ""), "");
  LLVMValueRef sum =
    LLVMBuildAdd(b, LLVMBuildShl(b, products[0], kj_const64(l, 32), ""), products[1], "");
  sum = LLVMBuildAdd(b, sum, LLVMBuildLShr(b, products[2], kj_const64(l, 32), ""), "");
  LLVMValueRef rounded = LLVMBuildAdd(b, sum, kj_const64(l, (int64_t)1 << 61), "");
  LLVMValueRef quarters =
    LLVMBuildTrunc(b, LLVMBuildLShr(b, rounded, kj_const64(l, 62), ""), l->i32, "");
  LLVMValueRef turned = LLVMBuildSIToFP(b, LLVMBuildShl(b, sum, kj_const64(l, 2), ""), l->f64, "");
  LLVMValueRef rest =
    LLVMBuildFPTrunc(b, LLVMBuildFMul(b, turned, LLVMConstReal(l->f64, M_PI_2 * 0x1p-64), ""),
                     l->f32, "");
  LLVMValueRef is_finite =
    LLVMBuildFCmp(b, LLVMRealOLT, kj_intrinsic1(l, "llvm.fabs", x), number(l, INFINITY), "");
  rest =
    choose(l, is_finite, choose(l, is_negative, LLVMBuildFNeg(b, rest, ""), rest), number(l, NAN));
  return (turn){ .quarters = choose(l, is_negative, LLVMBuildNeg(b, quarters, ""), quarters),
                 .rest = rest };
}

static turn find_turn(kj_lowering *l, LLVMValueRef x)
{
  LLVMBuilderRef b = l->builder;
  LLVMBasicBlockRef far = kj_new_block(l, "far"), end = kj_new_block(l, "turn"),
                    from[] = { LLVMGetInsertBlock(b), far };
  turn near = turn_near(l, x), both;
  LLVMValueRef is_near =
    LLVMBuildFCmp(b, LLVMRealOLT, kj_intrinsic1(l, "llvm.fabs", x), number(l, 0x1p16), "");
  LLVMBuildCondBr(b, is_near, end, far);
  kj_move_to(l, far);
  turn exact = turn_far(l, x);
  LLVMBuildBr(b, end);
  kj_move_to(l, end);
  both.quarters = LLVMBuildPhi(b, l->i32, "");
  LLVMAddIncoming(both.quarters, (LLVMValueRef[]){ near.quarters, exact.quarters }, from, 2);
  both.rest = LLVMBuildPhi(b, l->f32, "");
  LLVMAddIncoming(both.rest, (LLVMValueRef[]){ near.rest, exact.rest }, from, 2);
  return both;
}

/* Odd quarters: the cosine of the rest. The polynomials have the least relative error at worst. The
 * sum with 0 makes the product of a zero positive, so that the sine of -0 is -0. */
static LLVMValueRef sine(kj_lowering *l, LLVMValueRef quarters, LLVMValueRef rest)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef is_odd = LLVMBuildICmp(b, LLVMIntNE, and32(l, quarters, 1), kj_const32(l, 0), "");
  LLVMValueRef square = LLVMBuildFMul(b, rest, rest, ""),
               base = choose(l, is_odd, number(l, 1), rest);
  LLVMValueRef last = fused(l, square, number(l, 0x1.9914cep-16), number(l, -0x1.6c07eap-10));
  LLVMValueRef sum = choose(l, is_odd, last, number(l, -0x1.994222p-13));
  sum =
    fused(l, sum, square, choose(l, is_odd, number(l, 0x1.55553cp-5), number(l, 0x1.110736p-7)));
  sum = fused(l, sum, square, choose(l, is_odd, number(l, -0.5), number(l, -0x1.555546p-3)));
  LLVMValueRef value = fused(l, sum, fused(l, square, base, number(l, 0)), base);
  LLVMValueRef sign = and32(l, LLVMBuildShl(b, quarters, kj_const32(l, 30), ""), 0x80000000);
  return LLVMBuildBitCast(b, LLVMBuildXor(b, to_bits(l, value), sign, ""), l->f32, "");
}

static LLVMValueRef next_quarter(kj_lowering *l, LLVMValueRef quarters)
{
  return LLVMBuildAdd(l->builder, quarters, kj_const32(l, 1), "");
}

LLVMValueRef kj_nvptx_sine(kj_lowering *l, LLVMValueRef x)
{
  turn at = find_turn(l, x);
  return sine(l, at.quarters, at.rest);
}

LLVMValueRef kj_nvptx_cosine(kj_lowering *l, LLVMValueRef x)
{
  turn at = find_turn(l, x);
  return sine(l, next_quarter(l, at.quarters), at.rest);
}

void kj_nvptx_sine_and_cosine(kj_lowering *l, LLVMValueRef x, LLVMValueRef values[2])
{
  turn at = find_turn(l, x);
  values[0] = sine(l, at.quarters, at.rest);
  values[1] = sine(l, next_quarter(l, at.quarters), at.rest);
}
