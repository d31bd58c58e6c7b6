/* match and reduce among the lanes of a warp, for targets that execute them. */
#include <string.h>

#include "lower/lower.h"

/* In 32, 64 or 128 bits. */
LLVMValueRef kj_comparable_bits(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  LLVMValueRef bits = kj_value_bits(l, type, value);
  unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(bits)), wanted = width <= 32   ? 32
                                                                   : width <= 64 ? 64
                                                                                 : 128;
  return width == wanted
           ? bits
           : LLVMBuildZExt(l->builder, bits, LLVMIntTypeInContext(l->context, wanted), "");
}

LLVMValueRef kj_build_reduction(kj_lowering *l, const char *op, kjit_type type, LLVMValueRef x,
                                LLVMValueRef y)
{
  static const struct {
    const char *name;
    kjit_op op;
  } ops[] = {
    { "add", KJIT_ADD }, { "and", KJIT_BIT_AND }, { "or", KJIT_BIT_OR }, { "xor", KJIT_BIT_XOR }
  };
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(ops[i].name, op) == 0)
      return kj_build_binary(l, ops[i].op, type, x, y, (kj_location){ 0 });
  return kj_build_minmax(l, strcmp(op, "max") == 0, type, x, y);
}

static LLVMValueRef match_bits(kj_lowering *l, bool is_any, LLVMValueRef mask, LLVMValueRef bits)
{
  LLVMValueRef args[2] = { mask, bits };
  const char *width = LLVMTypeOf(bits) == l->i64 ? "i64" : "i32";
  return kj_try_native(l,
                       kj_format(l->c->arena, is_any ? "match.any.sync.%s" : "match.all.sync.%sp",
                                 width),
                       0, args, 2);
}

/* What is equal in both halves; of match_all, where it holds of both. */
static LLVMValueRef join_matches(kj_lowering *l, bool is_any, LLVMValueRef x, LLVMValueRef y)
{
  LLVMBuilderRef b = l->builder;
  if (is_any) return LLVMBuildAnd(b, x, y, "");
  LLVMValueRef holds =
    LLVMBuildAnd(b, LLVMBuildExtractValue(b, x, 1, ""), LLVMBuildExtractValue(b, y, 1, ""), "");
  LLVMValueRef mask =
    LLVMBuildAnd(b, LLVMBuildExtractValue(b, x, 0, ""), LLVMBuildExtractValue(b, y, 0, ""), "");
  return LLVMBuildInsertValue(b, LLVMBuildInsertValue(b, x, mask, 0, ""), holds, 1, "");
}

LLVMValueRef kj_lower_match(kj_lowering *l, const kj_texpr *expr)
{
  const kj_texpr *x = expr->args.items[1];
  LLVMValueRef mask = kj_lower_index32(l, expr->args.items[0]),
               bits = kj_comparable_bits(l, x->type, kj_lower_expr(l, x));
  bool is_any = strcmp(expr->builtin->symbol, "any") == 0;
  if (LLVMGetIntTypeWidth(LLVMTypeOf(bits)) <= 64) return match_bits(l, is_any, mask, bits);
  LLVMValueRef low = LLVMBuildTrunc(l->builder, bits, l->i64, "");
  LLVMValueRef high =
    LLVMBuildTrunc(l->builder,
                   LLVMBuildLShr(l->builder, bits, LLVMConstInt(LLVMTypeOf(bits), 64, false), ""),
                   l->i64, "");
  return join_matches(l, is_any, match_bits(l, is_any, mask, low),
                      match_bits(l, is_any, mask, high));
}

/* ---- reductions: one instruction for 32-bit integers from sm_80 on, shuffles otherwise ---- */

static LLVMValueRef from_lane(kj_lowering *l, const kj_texpr *expr, const char *mode,
                              LLVMValueRef mask, LLVMValueRef value, LLVMValueRef lane)
{
  return kj_build_shuffle(l, expr->type, &(kj_shuffle){ .mode = mode, .mask = mask, .lane = lane },
                          value);
}

static LLVMValueRef reduce_all(kj_lowering *l, const kj_texpr *expr, LLVMValueRef mask,
                               LLVMValueRef value)
{
  for (int distance = 16; distance > 0; distance /= 2)
    value = kj_build_reduction(l, expr->builtin->symbol, expr->type, value,
                               from_lane(l, expr, "bfly", mask, value, kj_const32(l, distance)));
  return value;
}

static LLVMValueRef lowest_lane(kj_lowering *l, LLVMValueRef mask)
{
  LLVMTypeRef type = l->i32;
  LLVMValueRef reversed = kj_intrinsic1(l, "llvm.bitreverse", mask);
  return kj_intrinsic(l, "llvm.ctlz", &type, 1,
                      (LLVMValueRef[]){ reversed, LLVMConstInt(l->i1, 0, false) }, 2);
}

static LLVMValueRef without_lowest(kj_lowering *l, LLVMValueRef mask)
{
  return LLVMBuildAnd(l->builder, mask, LLVMBuildSub(l->builder, mask, kj_const32(l, 1), ""), "");
}

/* The lanes of the mask go around the loop together, from the lowest one up. */
static LLVMValueRef reduce_some(kj_lowering *l, const kj_texpr *expr, LLVMValueRef mask,
                                LLVMValueRef value)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef first = from_lane(l, expr, "idx", mask, value, lowest_lane(l, mask)),
               rest = without_lowest(l, mask);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), head = kj_new_block(l, "lanes"),
                    body = kj_new_block(l, "lane"), end = kj_new_block(l, "lanes.end");
  LLVMBuildBr(b, head);
  kj_move_to(l, head);
  LLVMValueRef left = LLVMBuildPhi(b, l->i32, ""), so_far = LLVMBuildPhi(b, LLVMTypeOf(value), "");
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, left, kj_const32(l, 0), ""), body, end);
  kj_move_to(l, body);
  LLVMValueRef next =
    kj_build_reduction(l, expr->builtin->symbol, expr->type, so_far,
                       from_lane(l, expr, "idx", mask, value, lowest_lane(l, left)));
  LLVMValueRef fewer = without_lowest(l, left);
  LLVMBasicBlockRef last = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, head);
  LLVMAddIncoming(left, (LLVMValueRef[]){ rest, fewer }, (LLVMBasicBlockRef[]){ before, last }, 2);
  LLVMAddIncoming(so_far, (LLVMValueRef[]){ first, next }, (LLVMBasicBlockRef[]){ before, last },
                  2);
  kj_move_to(l, end);
  l->has_loops = true;
  return so_far;
}

static LLVMValueRef reduce_by_shuffles(kj_lowering *l, const kj_texpr *expr, LLVMValueRef mask,
                                       LLVMValueRef value)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef is_full = LLVMBuildICmp(b, LLVMIntEQ, mask, kj_const32(l, -1), "");
  if (LLVMIsAConstantInt(is_full))
    return LLVMConstIntGetZExtValue(is_full) ? reduce_all(l, expr, mask, value)
                                             : reduce_some(l, expr, mask, value);
  LLVMBasicBlockRef full = kj_new_block(l, "full"), some = kj_new_block(l, "some"),
                    end = kj_new_block(l, "reduced");
  LLVMBuildCondBr(b, is_full, full, some);
  kj_move_to(l, full);
  LLVMValueRef of_all = reduce_all(l, expr, mask, value);
  LLVMBasicBlockRef full_end = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, end);
  kj_move_to(l, some);
  LLVMValueRef of_some = reduce_some(l, expr, mask, value);
  LLVMBasicBlockRef some_end = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, end);
  kj_move_to(l, end);
  LLVMValueRef result = LLVMBuildPhi(b, LLVMTypeOf(value), "");
  LLVMAddIncoming(result, (LLVMValueRef[]){ of_all, of_some },
                  (LLVMBasicBlockRef[]){ full_end, some_end }, 2);
  return result;
}

LLVMValueRef kj_lower_reduce(kj_lowering *l, const kj_texpr *expr)
{
  const char *op = expr->builtin->symbol;
  LLVMValueRef mask = kj_lower_index32(l, expr->args.items[0]),
               value = kj_lower_expr(l, expr->args.items[1]);
  if (expr->type != KJIT_I32 && expr->type != KJIT_U32)
    return reduce_by_shuffles(l, expr, mask, value);
  bool is_unsigned_order = expr->type == KJIT_U32 && op[0] == 'm';
  LLVMValueRef native =
    kj_try_native(l, kj_format(l->c->arena, "redux.sync.%s%s", is_unsigned_order ? "u" : "", op),
                  80, (LLVMValueRef[]){ value, mask }, 2);
  return native ? native : reduce_by_shuffles(l, expr, mask, value);
}
