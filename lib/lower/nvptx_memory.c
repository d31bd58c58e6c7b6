/* nvptx: cache hints and clocks. LLVM has no form for hints: they are written as instructions,
 * which order all memory accesses of the thread around them. */
#include <string.h>

#include "lower/nvptx_parts.h"

static LLVMValueRef call_text(kj_lowering *l, const char *text, const char *constraints,
                              LLVMTypeRef result, LLVMValueRef *args, unsigned count)
{
  LLVMTypeRef params[2];
  for (unsigned i = 0; i < count; i++) params[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef type = LLVMFunctionType(result, params, count, false);
  LLVMValueRef code = LLVMGetInlineAsm(type, text, strlen(text), constraints, strlen(constraints),
                                       true, false, LLVMInlineAsmDialectATT, false);
  return LLVMBuildCall2(l->builder, type, code, args, count, "");
}

static unsigned bits_of(kj_lowering *l, LLVMTypeRef type)
{
  return (unsigned)LLVMSizeOfTypeInBits(l->layout, type);
}

/* Bytes are kept in registers of 16 bits. */
static unsigned register_bits(unsigned bits) { return bits < 16 ? 16 : bits; }
static char constraint_of(unsigned bits) { return bits == 64 ? 'l' : bits == 32 ? 'r' : 'h'; }
static const char *space_of(LLVMValueRef pointer)
{
  return LLVMGetPointerAddressSpace(LLVMTypeOf(pointer)) == 1 ? ".global" : "";
}

LLVMValueRef kj_nvptx_hinted_load(kj_lowering *l, const char *hint, LLVMTypeRef type,
                                  LLVMValueRef pointer)
{
  unsigned bits = bits_of(l, type), held = register_bits(bits);
  const char *text = kj_format(l->c->arena, "ld%s.%s.b%u $0, [$1];", space_of(pointer), hint, bits);
  const char *constraints = kj_format(l->c->arena, "=%c,l,~{memory}", constraint_of(held));
  LLVMValueRef value =
    call_text(l, text, constraints, LLVMIntTypeInContext(l->context, held), &pointer, 1);
  if (held != bits)
    value = LLVMBuildTrunc(l->builder, value, LLVMIntTypeInContext(l->context, bits), "");
  return LLVMBuildBitCast(l->builder, value, type, "");
}

void kj_nvptx_hinted_store(kj_lowering *l, const char *hint, LLVMValueRef pointer,
                           LLVMValueRef value)
{
  unsigned bits = bits_of(l, LLVMTypeOf(value)), held = register_bits(bits);
  const char *text = kj_format(l->c->arena, "st%s.%s.b%u [$0], $1;", space_of(pointer), hint, bits);
  const char *constraints = kj_format(l->c->arena, "l,%c,~{memory}", constraint_of(held));
  value = LLVMBuildBitCast(l->builder, value, LLVMIntTypeInContext(l->context, bits), "");
  if (held != bits)
    value = LLVMBuildZExt(l->builder, value, LLVMIntTypeInContext(l->context, held), "");
  call_text(l, text, constraints, l->void_, (LLVMValueRef[]){ pointer, value }, 2);
}

void kj_nvptx_prefetch(kj_lowering *l, const char *level, LLVMValueRef pointer)
{
  call_text(l, kj_format(l->c->arena, "prefetch%s.%s [$0];", space_of(pointer), level), "l",
            l->void_, &pointer, 1);
}

LLVMValueRef kj_nvptx_clock(kj_lowering *l, const char *name)
{
  return kj_intrinsic(l, kj_format(l->c->arena, "llvm.nvvm.read.ptx.sreg.%s", name), NULL, 0, NULL,
                      0);
}
void kj_nvptx_nanosleep(kj_lowering *l, LLVMValueRef duration)
{
  kj_intrinsic(l, "llvm.nvvm.nanosleep", NULL, 0, &duration, 1);
}
