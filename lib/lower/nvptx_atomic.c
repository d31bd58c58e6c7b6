/* nvptx: atomics at a scope other than the device's. LLVM's atomicrmw becomes an instruction at the
 * scope of the device whatever it says, so these are written as such. */
#include <string.h>

#include "lower/nvptx_parts.h"

/* The instruction's type, by what the operation looks at: signed and unsigned order, bits, numbers.
 * NULL: there is no such instruction. */
static const char *suffix_of(const char *op, kjit_type type)
{
  bool is_wide = type == KJIT_I64 || type == KJIT_U64 || type == KJIT_F64;
  bool is_float = type == KJIT_F32 || type == KJIT_F64 || type == KJIT_F16;
  if (type == KJIT_BF16) return NULL;
  if (strcmp(op, "exch") == 0) return is_wide ? "b64" : "b32";
  if (strcmp(op, "add") == 0 && is_float)
    return type == KJIT_F16 ? "noftz.f16" : type == KJIT_F32 ? "f32" : "f64";
  if (is_float) return NULL;
  if (strcmp(op, "add") == 0) return is_wide ? "u64" : "u32";
  if (strcmp(op, "inc") == 0 || strcmp(op, "dec") == 0) return is_wide ? NULL : "u32";
  if (strcmp(op, "min") == 0 || strcmp(op, "max") == 0)
    return type == KJIT_I32 ? "s32" : type == KJIT_U32 ? "u32" : type == KJIT_I64 ? "s64" : "u64";
  return is_wide ? "b64" : "b32";
}

static char constraint_of(kjit_type type)
{
  return type == KJIT_F16                       ? 'h'
         : type == KJIT_F32                     ? 'f'
         : type == KJIT_F64                     ? 'd'
         : type == KJIT_I64 || type == KJIT_U64 ? 'l'
                                                : 'r';
}

LLVMValueRef kj_nvptx_scoped_atomic(kj_lowering *l, const char *op, kjit_type type,
                                    const char *scope, LLVMValueRef pointer, LLVMValueRef value)
{
  if (strcmp(scope, "device") == 0) return NULL;
  const char *suffix = suffix_of(op, type);
  if (!suffix) return NULL;
  unsigned space = LLVMGetPointerAddressSpace(LLVMTypeOf(pointer));
  const char *where = space == 1 ? ".global" : space == 3 ? ".shared" : "";
  const char *text = kj_format(l->c->arena, "atom.relaxed.%s%s.%s.%s $0, [$1], $2;",
                               strcmp(scope, "block") == 0 ? "cta" : "sys", where, op, suffix);
  const char *constraints =
    kj_format(l->c->arena, "=%c,l,%c,~{memory}", constraint_of(type), constraint_of(type));
  LLVMTypeRef result = LLVMTypeOf(value), bits = type == KJIT_F16 ? l->i16 : result,
              params[2] = { LLVMTypeOf(pointer), bits };
  LLVMTypeRef function = LLVMFunctionType(bits, params, 2, false);
  LLVMValueRef code =
    LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), true, false,
                     LLVMInlineAsmDialectATT, false);
  LLVMValueRef args[2] = { pointer, LLVMBuildBitCast(l->builder, value, bits, "") };
  return LLVMBuildBitCast(l->builder, LLVMBuildCall2(l->builder, function, code, args, 2, ""),
                          result, "");
}

bool kj_nvptx_adds_small_float(kj_lowering *l, kjit_type type)
{
  return type == KJIT_F16 || l->c->request->target.arch >= 90;
}
