/* Short functions that append LLVM instructions without a name at the builder's position: kl_add(l,
 * x, y) is LLVMBuildAdd(kl_next(l), x, y, ""). Their names are those of LLVM IR. */
#ifndef KJ_LOWER_INSTRUCTION_H
#define KJ_LOWER_INSTRUCTION_H

#include <math.h>

#include "lower/lower.h"
#include "lower/lower_target.h"

/* Increments the instruction count, by the number of copies of the instruction that unrolling will
 * make. Returns the builder for appending the instruction. */
static inline LLVMBuilderRef kl_next(kl_lowering *l)
{
  l->instruction_count += l->copies;
  return l->builder;
}

#define KL_ONE(name, Name) \
  static inline LLVMValueRef kl_##name(kl_lowering *l, LLVMValueRef x) \
  { \
    return LLVMBuild##Name(kl_next(l), x, ""); \
  }
KL_ONE(neg, Neg)
KL_ONE(not, Not)
KL_ONE(fneg, FNeg)
#undef KL_ONE

#define KL_TWO(name, Name) \
  static inline LLVMValueRef kl_##name(kl_lowering *l, LLVMValueRef x, LLVMValueRef y) \
  { \
    return LLVMBuild##Name(kl_next(l), x, y, ""); \
  }
KL_TWO(add, Add)
KL_TWO(sub, Sub)
KL_TWO(mul, Mul)
KL_TWO(nuw_add, NUWAdd)
KL_TWO(nsw_add, NSWAdd)
KL_TWO(nuw_mul, NUWMul)
KL_TWO(nsw_mul, NSWMul)
KL_TWO(udiv, UDiv)
KL_TWO(sdiv, SDiv)
KL_TWO(urem, URem)
KL_TWO(fadd, FAdd)
KL_TWO(fsub, FSub)
KL_TWO(fmul, FMul)
KL_TWO(fdiv, FDiv)
KL_TWO(and, And)
KL_TWO(or, Or)
KL_TWO(xor, Xor)
KL_TWO(shl, Shl)
KL_TWO(lshr, LShr)
KL_TWO(ashr, AShr)
KL_TWO(extract_element, ExtractElement)
#undef KL_TWO

#define KL_CAST(name, Name) \
  static inline LLVMValueRef kl_##name(kl_lowering *l, LLVMValueRef x, LLVMTypeRef type) \
  { \
    return LLVMBuild##Name(kl_next(l), x, type, ""); \
  }
KL_CAST(bitcast, BitCast)
KL_CAST(zext, ZExt)
KL_CAST(sext, SExt)
KL_CAST(trunc, Trunc)
KL_CAST(fpext, FPExt)
KL_CAST(fptrunc, FPTrunc)
KL_CAST(sitofp, SIToFP)
KL_CAST(uitofp, UIToFP)
KL_CAST(ptrtoint, PtrToInt)
KL_CAST(inttoptr, IntToPtr)
KL_CAST(addrspacecast, AddrSpaceCast)
#undef KL_CAST

static inline LLVMValueRef kl_icmp(kl_lowering *l, LLVMIntPredicate predicate, LLVMValueRef x,
                                   LLVMValueRef y)
{
  return LLVMBuildICmp(kl_next(l), predicate, x, y, "");
}

static inline LLVMValueRef kl_fcmp(kl_lowering *l, LLVMRealPredicate predicate, LLVMValueRef x,
                                   LLVMValueRef y)
{
  return LLVMBuildFCmp(kl_next(l), predicate, x, y, "");
}

static inline LLVMValueRef kl_select(kl_lowering *l, LLVMValueRef condition, LLVMValueRef x,
                                     LLVMValueRef y)
{
  return LLVMBuildSelect(kl_next(l), condition, x, y, "");
}

static inline LLVMValueRef kl_phi(kl_lowering *l, LLVMTypeRef type)
{
  return LLVMBuildPhi(kl_next(l), type, "");
}

static inline LLVMValueRef kl_load(kl_lowering *l, LLVMTypeRef type, LLVMValueRef pointer)
{
  return LLVMBuildLoad2(kl_next(l), type, pointer, "");
}

static inline LLVMValueRef kl_store(kl_lowering *l, LLVMValueRef value, LLVMValueRef pointer)
{
  return LLVMBuildStore(kl_next(l), value, pointer);
}

static inline LLVMValueRef kl_gep(kl_lowering *l, LLVMTypeRef type, LLVMValueRef pointer,
                                  LLVMValueRef *indices, unsigned count)
{
  return LLVMBuildGEP2(kl_next(l), type, pointer, indices, count, "");
}

static inline LLVMValueRef kl_inbounds_gep(kl_lowering *l, LLVMTypeRef type, LLVMValueRef pointer,
                                           LLVMValueRef *indices, unsigned count)
{
  return LLVMBuildInBoundsGEP2(kl_next(l), type, pointer, indices, count, "");
}

static inline LLVMValueRef kl_extract_value(kl_lowering *l, LLVMValueRef whole, unsigned index)
{
  return LLVMBuildExtractValue(kl_next(l), whole, index, "");
}

static inline LLVMValueRef kl_insert_value(kl_lowering *l, LLVMValueRef whole, LLVMValueRef part,
                                           unsigned index)
{
  return LLVMBuildInsertValue(kl_next(l), whole, part, index, "");
}

static inline LLVMValueRef kl_insert_element(kl_lowering *l, LLVMValueRef vector, LLVMValueRef lane,
                                             LLVMValueRef index)
{
  return LLVMBuildInsertElement(kl_next(l), vector, lane, index, "");
}

static inline LLVMValueRef kl_call(kl_lowering *l, LLVMTypeRef type, LLVMValueRef function,
                                   LLVMValueRef *arguments, unsigned count)
{
  return LLVMBuildCall2(kl_next(l), type, function, arguments, count, "");
}

static inline LLVMValueRef kl_br(kl_lowering *l, LLVMBasicBlockRef to)
{
  return LLVMBuildBr(kl_next(l), to);
}

static inline LLVMValueRef kl_cond_br(kl_lowering *l, LLVMValueRef condition,
                                      LLVMBasicBlockRef holds, LLVMBasicBlockRef fails)
{
  return LLVMBuildCondBr(kl_next(l), condition, holds, fails);
}

static inline LLVMBasicBlockRef kl_here(kl_lowering *l) { return LLVMGetInsertBlock(l->builder); }

/* Returns a phi: the value is x if control comes from basic block x_from, and y if it comes from
 * y_from. */
static inline LLVMValueRef kl_join(kl_lowering *l, LLVMValueRef x, LLVMBasicBlockRef x_from,
                                   LLVMValueRef y, LLVMBasicBlockRef y_from)
{
  KJ_ASSERT(LLVMTypeOf(x) == LLVMTypeOf(y));
  LLVMValueRef phi = kl_phi(l, LLVMTypeOf(x));
  LLVMAddIncoming(phi, (LLVMValueRef[]){ x, y }, (LLVMBasicBlockRef[]){ x_from, y_from }, 2);
  return phi;
}

static inline bool kl_is_one(LLVMValueRef value)
{
  return LLVMIsAConstantInt(value) && LLVMConstIntGetZExtValue(value) == 1;
}

/* Returns a floating-point constant with the type of `like`. */
static inline LLVMValueRef kl_real_like(LLVMValueRef like, double value)
{
  return LLVMConstReal(LLVMTypeOf(like), value);
}

static inline LLVMValueRef kl_fabs(kl_lowering *l, LLVMValueRef x)
{
  return kl_intrinsic1(l, "llvm.fabs", x);
}

static inline LLVMValueRef kl_is_infinite(kl_lowering *l, LLVMValueRef x)
{
  return kl_fcmp(l, LLVMRealOEQ, kl_fabs(l, x), kl_real_like(x, INFINITY));
}

static inline LLVMValueRef kl_is_finite(kl_lowering *l, LLVMValueRef x)
{
  return kl_fcmp(l, LLVMRealOLT, kl_fabs(l, x), kl_real_like(x, INFINITY));
}

static inline LLVMValueRef kl_ldexp(kl_lowering *l, LLVMValueRef x, LLVMValueRef exponent)
{
  LLVMTypeRef overloads[2] = { LLVMTypeOf(x), l->i32 };
  return kl_intrinsic(l, "llvm.ldexp", overloads, 2, (LLVMValueRef[]){ x, exponent }, 2);
}

static inline unsigned kl_bits_of(kl_lowering *l, LLVMTypeRef type)
{
  return (unsigned)LLVMSizeOfTypeInBits(l->layout, type);
}

/* Returns the integer type that has the size of a scalar type. */
static inline LLVMTypeRef kl_bits_type(kl_lowering *l, kjit_type type)
{
  return LLVMIntTypeInContext(l->context, 8 * kl_scalar_bytes(l, type));
}

/* Calls a math function that has two arguments. */
static inline LLVMValueRef kl_call_math(kl_lowering *l, ki_builtin_id id, LLVMValueRef x,
                                        LLVMValueRef y)
{
  return l->target->math(l, id, (LLVMValueRef[]){ x, y }, 2, LLVMTypeOf(x));
}

static inline LLVMValueRef kl_lower_arg(kl_lowering *l, const kt_expr *expr, size_t i)
{
  return kl_lower_expr(l, expr->args.items[i]);
}

static inline const ki_type_info *kl_type_info(const kl_lowering *l, kjit_type type)
{
  return ki_type(l->c->types, type);
}

static inline kj_relation kl_relation(const kj_signature *signature, uint32_t a, uint32_t b)
{
  return signature->relations ? (kj_relation)signature->relations[a * signature->count + b]
                              : KJ_RELATION_ANY;
}

#endif
