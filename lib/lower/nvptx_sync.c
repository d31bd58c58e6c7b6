/* nvptx: barriers, fences, shuffles and votes as intrinsics. All of them are convergent by LLVM's
 * own declaration. */
#include <string.h>

#include "lower/nvptx_parts.h"

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
