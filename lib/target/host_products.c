/* CPU: rewrites products of 16-bit numbers if only their high bits are used.
 *
 * LLVM up to 22.1 translates `trunc <n x i16> (lshr (mul x, y), c)` to a multiplication that
 * returns the high 16 of 32 bits (pmulhw), and shifts the result right by c - 16. This translation
 * is correct for a 32-bit product. In a 64-bit product, the upper 32 bits are copies of the sign,
 * but the translated shift inserts zeros. If c is 32 or more, the result of the shift is undefined
 * (llvm-project issue 218844, fixed by LLVM's pull request 219996). An example is the high half of
 * an i16 product, `i16(mulhi(a[i], b[i]))`.
 *
 * This file replaces such a product by a product of 32 bits, which are sufficient, and an
 * arithmetic shift. An operand is treated as a 16-bit number if it is a constant in the range of
 * i16, or if it is extended from a type in which all values are in this range. */
#include "target/host.h"

enum { NARROW_BITS = 16, PRODUCT_BITS = 32 };

static bool has_opcode(LLVMValueRef value, LLVMOpcode opcode)
{
  return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == opcode;
}

/* Returns the lane type if the value is a vector of integers, otherwise NULL. */
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

/* Returns whether every lane of the value is a signed 16-bit number. */
static bool is_narrow(LLVMValueRef value)
{
  if (LLVMIsConstant(value)) return is_narrow_constant(value);
  bool is_signed = LLVMIsASExtInst(value), is_unsigned = LLVMIsAZExtInst(value);
  if (!is_signed && !is_unsigned) return false;
  return LLVMGetIntTypeWidth(integer_lanes(LLVMGetOperand(value, 0))) + is_unsigned <= NARROW_BITS;
}

/* Finds the number to which all lanes of a constant are equal. Returns false if the lanes
 * differ. */
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

/* If the truncation takes the high bits of a product, returns the product and sets *count to the
 * shift count. Returns NULL for any other value, and for products that LLVM translates
 * correctly. */
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

/* Returns a vector of `count` lanes that are all equal to the number. */
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
  /* sets the bits to 0 that the logical shift would have set to 0 */
  if (bits < NARROW_BITS)
    high = LLVMBuildAnd(builder, high, make_splat(i32, lanes, (1u << bits) - 1), "");
  return kg_replace(i, LLVMBuildTrunc(builder, high, LLVMTypeOf(i), ""));
}

void kg_narrow_products(LLVMModuleRef module) { kg_rewrite_each(module, multiply_in_32_bits); }
