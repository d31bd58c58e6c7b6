/* nvptx: barriers, shuffles and votes, atomics with a scope, cache hints, clocks. */
#include <string.h>

#include "lower/nvptx/lower_nvptx.h"

/* nvptx: barriers, fences, shuffles and votes as intrinsics. All of them are convergent by LLVM's
 * own declaration. */

static LLVMValueRef call(kj_lowering *l, const char *name, LLVMValueRef *args, unsigned count)
{
  return kj_intrinsic(l, name, NULL, 0, args, count);
}
static LLVMValueRef first_barrier(kj_lowering *l) { return kj_const32(l, 0); }

void kj_nvptx_barrier(kj_lowering *l)
{
  call(l, "llvm.nvvm.barrier.cta.sync.aligned.all", (LLVMValueRef[]){ first_barrier(l) }, 1);
}

LLVMValueRef kj_nvptx_barrier_reduce(kj_lowering *l, kj_barrier_reduction reduction,
                                     LLVMValueRef predicate)
{
  static const char *const names[] = {
    [KJ_REDUCE_COUNT] = "popc", [KJ_REDUCE_AND] = "and", [KJ_REDUCE_OR] = "or"
  };
  return call(l,
              kj_format(l->c->arena, "llvm.nvvm.barrier.cta.red.%s.aligned.all", names[reduction]),
              (LLVMValueRef[]){ first_barrier(l), predicate }, 2);
}

void kj_nvptx_syncwarp(kj_lowering *l, LLVMValueRef mask)
{
  call(l, "llvm.nvvm.bar.warp.sync", &mask, 1);
}

void kj_nvptx_fence(kj_lowering *l, const char *symbol)
{
  bool is_block = strcmp(symbol, "block") == 0, is_device = strcmp(symbol, "device") == 0;
  call(l,
       is_block    ? "llvm.nvvm.membar.cta"
       : is_device ? "llvm.nvvm.membar.gl"
                   : "llvm.nvvm.membar.sys",
       NULL, 0);
}

/* The last operand: the lane bound in bits 0 to 4 (of `up` the lower one), and from bit 8 on which
 * bits of a lane's number name its part of the warp. */
static LLVMValueRef shuffle_bounds(kj_lowering *l, const char *mode, LLVMValueRef width)
{
  int bound = strcmp(mode, "up") == 0 ? 0 : 31;
  if (!width) return kj_const32(l, bound);
  LLVMValueRef part =
    LLVMBuildShl(l->builder, LLVMBuildSub(l->builder, kj_const32(l, 32), width, ""),
                 kj_const32(l, 8), "");
  return LLVMBuildOr(l->builder, part, kj_const32(l, bound), "");
}

LLVMValueRef kj_nvptx_shuffle(kj_lowering *l, const char *mode, LLVMValueRef mask,
                              LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width)
{
  LLVMValueRef args[4] = { mask, value, lane, shuffle_bounds(l, mode, width) };
  return call(l, kj_format(l->c->arena, "llvm.nvvm.shfl.sync.%s.i32", mode), args, 4);
}

LLVMValueRef kj_nvptx_vote(kj_lowering *l, const char *mode, LLVMValueRef mask,
                           LLVMValueRef predicate)
{
  return call(l, kj_format(l->c->arena, "llvm.nvvm.vote.%s.sync", mode),
              (LLVMValueRef[]){ mask, predicate }, 2);
}

LLVMValueRef kj_nvptx_activemask(kj_lowering *l)
{
  return call(l, "llvm.nvvm.activemask", NULL, 0);
}

/* nvptx: atomics at a scope other than the device's. LLVM's atomicrmw becomes an instruction at the
 * scope of the device whatever it says, so these are written as such. */

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

static char atomic_constraint(kjit_type type)
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
    kj_format(l->c->arena, "=%c,l,%c,~{memory}", atomic_constraint(type), atomic_constraint(type));
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

/* nvptx: cache hints and clocks. LLVM has no form for hints: they are written as instructions,
 * which order all memory accesses of the thread around them. */

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
