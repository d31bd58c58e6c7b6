/* CPU: products of 16-bit numbers whose high bits are taken.
 *
 * LLVM up to 22.1 makes `trunc <n x i16> (lshr (mul x, y), c)` a multiplication that keeps the high
 * 16 bits of 32 (pmulhw), and shifts its result by the rest of c. That is right for a product of 32
 * bits. Of a product of 64 bits, bits above 32 are copies of the sign, which that shift replaces by
 * zeros, and a shift by 32 and more has no defined result (llvm-project issue 218844, mended in
 * LLVM's pull request 219996). The high half of products of i16 is such a value:
 * `i16(mulhi(a[i], b[i]))`. So the product is computed in 32 bits, which hold it, and shifted
 * arithmetically. Operands count as numbers of 16 bits if they are extended from such or constant.
 */
#include "target/host.h"

enum { NARROW_BITS = 16, PRODUCT_BITS = 32 };

static bool has_opcode(LLVMValueRef value, LLVMOpcode opcode)
{
  return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode;
}

/* The type of the lanes; NULL: no vector of integers. */
static LLVMTypeRef integer_lanes(LLVMValueRef value)
{
  LLVMTypeRef type = LLVMTypeOf(value);
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return NULL;
  LLVMTypeRef lane = LLVMGetElementType(type);
  return LLVMGetTypeKind(lane) == LLVMIntegerTypeKind ? lane : NULL;
}

static bool is_narrow_constant(LLVMValueRef value)
{
  unsigned count = LLVMGetVectorSize(LLVMTypeOf(value));
  for (unsigned i = 0; i < count; i++) {
    LLVMValueRef lane = LLVMGetAggregateElement(value, i);
    if (!lane || !LLVMIsAConstantInt(lane)) return false;
    long long number = LLVMConstIntGetSExtValue(lane);
    if (number < INT16_MIN || number > INT16_MAX) return false;
  }
  return true;
}

/* Whether every lane is a signed number of 16 bits. */
static bool is_narrow(LLVMValueRef value)
{
  if (LLVMIsConstant(value)) return is_narrow_constant(value);
  bool is_signed = LLVMIsASExtInst(value), is_unsigned = LLVMIsAZExtInst(value);
  if (!is_signed && !is_unsigned) return false;
  return LLVMGetIntTypeWidth(integer_lanes(LLVMGetOperand(value, 0))) + is_unsigned <= NARROW_BITS;
}

/* The number that all lanes of a constant are; false: there is none. */
static bool find_splat(LLVMValueRef value, unsigned long long *number)
{
  if (!LLVMIsConstant(value)) return false;
  unsigned count = LLVMGetVectorSize(LLVMTypeOf(value));
  for (unsigned i = 0; i < count; i++) {
    LLVMValueRef lane = LLVMGetAggregateElement(value, i);
    if (!lane || !LLVMIsAConstantInt(lane)) return false;
    unsigned long long own = LLVMConstIntGetZExtValue(lane);
    if (i && own != *number) return false;
    *number = own;
  }
  return true;
}

/* The product whose high bits the truncation has, and by how many bits it is shifted; NULL: it is
 * something else, or LLVM is right about it. */
static LLVMValueRef find_product(LLVMValueRef truncation, unsigned long long *count)
{
  LLVMTypeRef narrow = LLVMIsATruncInst(truncation) ? integer_lanes(truncation) : NULL;
  if (!narrow || LLVMGetIntTypeWidth(narrow) != NARROW_BITS) return NULL;
  LLVMValueRef shift = LLVMGetOperand(truncation, 0);
  unsigned bits = LLVMGetIntTypeWidth(integer_lanes(shift));
  if (!has_opcode(shift, LLVMLShr) || bits <= PRODUCT_BITS || bits > 64) return NULL;
  if (!find_splat(LLVMGetOperand(shift, 1), count) || *count <= NARROW_BITS) return NULL;
  LLVMValueRef product = LLVMGetOperand(shift, 0);
  return has_opcode(product, LLVMMul) && is_narrow(LLVMGetOperand(product, 0)) &&
             is_narrow(LLVMGetOperand(product, 1))
           ? product
           : NULL;
}

/* A vector of as many lanes as the value has, all of them the number. */
static LLVMValueRef make_splat(LLVMTypeRef lane, unsigned count, unsigned long long number)
{
  enum { MOST_LANES = 1024 };
  LLVMValueRef lanes[MOST_LANES];
  KJ_ASSERT(count <= MOST_LANES);
  for (unsigned i = 0; i < count; i++) lanes[i] = LLVMConstInt(lane, number, false);
  return LLVMConstVector(lanes, count);
}

static LLVMValueRef multiply_in_32_bits(LLVMBuilderRef builder, LLVMValueRef i)
{
  unsigned long long count = 0;
  LLVMValueRef product = find_product(i, &count);
  if (!product) return LLVMGetNextInstruction(i);
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(i)),
           bits = LLVMGetIntTypeWidth(integer_lanes(product)) - (unsigned)count;
  LLVMTypeRef i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(LLVMTypeOf(i))),
              type = LLVMVectorType(i32, lanes);
  LLVMPositionBuilderBefore(builder, i);
  LLVMValueRef x = LLVMBuildTrunc(builder, LLVMGetOperand(product, 0), type, ""),
               y = LLVMBuildTrunc(builder, LLVMGetOperand(product, 1), type, ""),
               by = make_splat(i32, lanes, count < PRODUCT_BITS ? count : PRODUCT_BITS - 1),
               high = LLVMBuildAShr(builder, LLVMBuildMul(builder, x, y, ""), by, "");
  /* what the logical shift has brought in from above */
  if (bits < NARROW_BITS)
    high = LLVMBuildAnd(builder, high, make_splat(i32, lanes, (1u << bits) - 1), "");
  return kg_replace(i, LLVMBuildTrunc(builder, high, LLVMTypeOf(i), ""));
}

void kg_narrow_products(LLVMModuleRef module) { kg_rewrite_each(module, multiply_in_32_bits); }
