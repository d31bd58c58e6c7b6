/* nvptx: makes ptxas treat the bits of floats as integers. */
#include <string.h>

#include "target/nvptx.h"

/* LLVM stores the low bits of a float as a narrow store of the register that holds the float
 * (`st.b16` or `st.b8` of an f32). ptxas 13.0 treats this as a conversion and stores the integer
 * value of the float. A move instruction before the store makes the register an integer register.
 * The move does not become a machine instruction, but it prevents LLVM's optimizations, so it is
 * inserted only if a part of the bits may be stored. */

static bool is_float_kind(LLVMTypeKind kind)
{
  return kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind || kind == LLVMFloatTypeKind ||
         kind == LLVMDoubleTypeKind;
}

static LLVMTypeRef lane_type(LLVMTypeRef type)
{
  return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

/* Returns the number of bits of an integer, a float, or a vector of these, and 0 for other
 * types. */
static unsigned count_bits(LLVMModuleRef module, LLVMTypeRef type)
{
  LLVMTypeKind kind = LLVMGetTypeKind(lane_type(type));
  if (kind != LLVMIntegerTypeKind && !is_float_kind(kind)) return 0;
  return (unsigned)LLVMSizeOfTypeInBits(LLVMGetModuleDataLayout(module), type);
}

/* Returns whether LLVM splits the store. It does so if the alignment is less than the size. */
static bool is_stored_in_pieces(LLVMValueRef store)
{
  LLVMModuleRef module =
    LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(store)));
  return 8 * LLVMGetAlignment(store) < count_bits(module, LLVMTypeOf(LLVMGetOperand(store, 0)));
}

static bool may_store_piece(LLVMValueRef value, bool is_cut, unsigned *most_uses);

/* Returns whether this use may store a part of a float's bits. is_cut: the used value is narrower
 * than the float from which it comes. */
static bool use_may_store_piece(LLVMUseRef use, bool is_cut, unsigned *most_uses)
{
  LLVMValueRef user = LLVMGetUser(use);
  switch ((int)LLVMGetInstructionOpcode(user)) {
  case LLVMICmp:
  case LLVMLoad:
  case LLVMBr:
  case LLVMSwitch: return false;
  case LLVMStore: return is_cut || is_stored_in_pieces(user);
  case LLVMCall:
  case LLVMRet: return is_cut;
  case LLVMTrunc:
  case LLVMExtractElement: return may_store_piece(user, true, most_uses);
  case LLVMBitCast: {
    bool has_lanes = LLVMGetTypeKind(LLVMTypeOf(user)) == LLVMVectorTypeKind,
         is_float = is_float_kind(LLVMGetTypeKind(LLVMTypeOf(user)));
    return !is_float && may_store_piece(user, is_cut || has_lanes, most_uses);
  }
  default: return may_store_piece(user, is_cut, most_uses);
  }
}

/* Returns whether a part of the value may be stored. Returns true if there are too many uses to
 * follow, because true is always safe. */
static bool may_store_piece(LLVMValueRef value, bool is_cut, unsigned *most_uses)
{
  for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
    if (!*most_uses) return true;
    --*most_uses;
    if (use_may_store_piece(use, is_cut, most_uses)) return true;
  }
  return false;
}

/* Builds a move of an integer of 16, 32 or 64 bits. */
static LLVMValueRef build_move(LLVMBuilderRef builder, LLVMValueRef bits)
{
  LLVMTypeRef type = LLVMTypeOf(bits), i32 = LLVMInt32TypeInContext(LLVMGetTypeContext(type));
  if (LLVMGetIntTypeWidth(type) < 32)
    return LLVMBuildTrunc(builder, build_move(builder, LLVMBuildZExt(builder, bits, i32, "")), type,
                          "");
  bool is_wide = LLVMGetIntTypeWidth(type) == 64;
  const char *text = is_wide ? "mov.b64 $0, $1;" : "mov.b32 $0, $1;",
             *constraints = is_wide ? "=l,l" : "=r,r";
  LLVMTypeRef function = LLVMFunctionType(type, &type, 1, false);
  LLVMValueRef code =
    LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), false, false,
                     LLVMInlineAsmDialectATT, false);
  return LLVMBuildCall2(builder, function, code, &bits, 1, "");
}

static LLVMValueRef move_float_bits(LLVMBuilderRef builder, LLVMValueRef x, unsigned width)
{
  LLVMTypeRef type = LLVMIntTypeInContext(LLVMGetTypeContext(LLVMTypeOf(x)), width);
  return build_move(builder, LLVMBuildBitCast(builder, x, type, ""));
}

/* If the instruction extracts or stores a part of the bits of a float, or of a vector of floats,
 * returns this float, otherwise NULL. */
static LLVMValueRef find_float_in_pieces(LLVMModuleRef module, LLVMValueRef i)
{
  enum { MOST_USES = 64 };
  bool is_store = LLVMIsAStoreInst(i);
  if (!is_store && !LLVMIsABitCastInst(i)) return NULL;
  LLVMValueRef x = LLVMGetOperand(i, 0);
  unsigned width = count_bits(module, LLVMTypeOf(x)), most_uses = MOST_USES;
  if ((width != 16 && width != 32 && width != 64) || LLVMIsConstant(x) ||
      !is_float_kind(LLVMGetTypeKind(lane_type(LLVMTypeOf(x)))))
    return NULL;
  if (is_store) return is_stored_in_pieces(i) ? x : NULL;
  if (is_float_kind(LLVMGetTypeKind(lane_type(LLVMTypeOf(i))))) return NULL;
  bool has_lanes = LLVMGetTypeKind(LLVMTypeOf(i)) == LLVMVectorTypeKind;
  return may_store_piece(i, has_lanes, &most_uses) ? x : NULL;
}

/* If the float is a condition that was converted to 1 or 0, returns the condition, otherwise
 * NULL. */
static LLVMValueRef find_condition(LLVMValueRef x)
{
  if (!LLVMIsAUIToFPInst(x) && !LLVMIsASIToFPInst(x)) return NULL;
  LLVMValueRef from = LLVMGetOperand(x, 0);
  bool is_widened = LLVMIsAZExtInst(from) != NULL;
  if (is_widened) from = LLVMGetOperand(from, 0);
  LLVMTypeRef type = LLVMTypeOf(from);
  bool is_condition =
    LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 1;
  return is_condition && (is_widened || LLVMIsAUIToFPInst(x)) ? from : NULL;
}

/* If a condition is converted to a float, replaces the conversion by a select of the float's bits.
 * ptxas up to 13.5 can omit the conversion between `selp 1, 0` and `cvt.u64.u32` in kernels with a
 * 64-bit remainder. The float 1 then has the bits of the integer 1 instead of 1.0. A move would not
 * prevent this error. The select also saves an instruction. */
static LLVMValueRef select_float_bits(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMValueRef x = LLVMIsABitCastInst(i) ? LLVMGetOperand(i, 0) : NULL;
  LLVMValueRef condition = x ? find_condition(x) : NULL;
  if (!condition) return LLVMGetNextInstruction(i);
  LLVMTypeRef type = LLVMTypeOf(i);
  LLVMPositionBuilderBefore(builder, i);
  LLVMValueRef one = LLVMConstBitCast(LLVMConstReal(LLVMTypeOf(x), 1), type);
  LLVMValueRef next =
    kg_replace(i, LLVMBuildSelect(builder, condition, one, LLVMConstNull(type), ""));
  if (!LLVMGetFirstUse(x)) LLVMInstructionEraseFromParent(x);
  return next;
}

static LLVMValueRef keep_float_bits(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMModuleRef module = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInstructionParent(i)));
  LLVMValueRef x = find_float_in_pieces(module, i);
  if (!x) return LLVMGetNextInstruction(i);
  LLVMPositionBuilderBefore(builder, i);
  LLVMValueRef bits = move_float_bits(builder, x, count_bits(module, LLVMTypeOf(x)));
  if (!LLVMIsAStoreInst(i))
    return kg_replace(i, LLVMBuildBitCast(builder, bits, LLVMTypeOf(i), ""));
  LLVMSetOperand(i, 0, bits);
  return LLVMGetNextInstruction(i);
}

static LLVMValueRef build_splat(LLVMTypeRef type, double number)
{
  enum { MOST_LANES = 64 };
  if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return LLVMConstReal(type, number);
  LLVMValueRef lanes[MOST_LANES];
  unsigned count = LLVMGetVectorSize(type);
  KJ_ASSERT(count <= MOST_LANES);
  for (unsigned n = 0; n < count; n++) lanes[n] = LLVMConstReal(LLVMGetElementType(type), number);
  return LLVMConstVector(lanes, count);
}

/* If a condition is converted, as a signed integer, to bf16, replaces the conversion by a select of
 * -1 or 0. On sm_90 and newer, LLVM 22 converts a true condition to 1 instead of -1 if the type is
 * bf16. */
static LLVMValueRef keep_sign_of_condition(LLVMBuilderRef builder, LLVMValueRef i)
{
  LLVMTypeRef type = LLVMTypeOf(i);
  bool is_bf16 = LLVMIsASIToFPInst(i) && LLVMGetTypeKind(lane_type(type)) == LLVMBFloatTypeKind;
  LLVMTypeRef from = is_bf16 ? lane_type(LLVMTypeOf(LLVMGetOperand(i, 0))) : NULL;
  if (!is_bf16 || LLVMGetIntTypeWidth(from) != 1) return LLVMGetNextInstruction(i);
  LLVMPositionBuilderBefore(builder, i);
  return kg_replace(i, LLVMBuildSelect(builder, LLVMGetOperand(i, 0), build_splat(type, -1),
                                       LLVMConstNull(type), ""));
}

void kg_keep_float_bits(LLVMModuleRef module)
{
  kg_rewrite_each(module, keep_sign_of_condition);
  kg_rewrite_each(module, select_float_bits);
  kg_rewrite_each(module, keep_float_bits);
}
