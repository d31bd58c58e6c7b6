/* Barriers, fences and warp functions: what is common to the targets that execute them as
 * instructions. */
#include <string.h>

#include "lower/lower.h"

static LLVMValueRef arg(kj_lowering *l, const kj_texpr *expr, size_t i)
{
  return kj_lower_expr(l, expr->args.items[i]);
}

static LLVMValueRef arg32(kj_lowering *l, const kj_texpr *expr, size_t i)
{
  return kj_lower_index32(l, expr->args.items[i]);
}

LLVMValueRef kj_lower_barrier(kj_lowering *l, const kj_texpr *expr)
{
  (void)expr;
  l->target->barrier(l);
  return NULL;
}

LLVMValueRef kj_lower_barrier_reduce(kj_lowering *l, const kj_texpr *expr)
{
  kj_barrier_reduction how = expr->builtin->id == KJ_BUILTIN_SYNCTHREADS_COUNT ? KJ_REDUCE_COUNT
                             : expr->builtin->id == KJ_BUILTIN_SYNCTHREADS_AND ? KJ_REDUCE_AND
                                                                               : KJ_REDUCE_OR;
  return l->target->barrier_reduce(l, how, kj_lower_condition(l, expr->args.items[0]));
}

LLVMValueRef kj_lower_syncwarp(kj_lowering *l, const kj_texpr *expr)
{
  l->target->syncwarp(l, expr->args.count ? arg32(l, expr, 0) : kj_const32(l, -1));
  return NULL;
}

LLVMValueRef kj_lower_fence(kj_lowering *l, const kj_texpr *expr)
{
  l->target->fence(l, expr->builtin->symbol);
  return NULL;
}

/* ---- shuffles, in 32-bit pieces ---- */

enum { MOST_WORDS = 4 };

static LLVMValueRef shuffle_word(kj_lowering *l, const kj_shuffle *s, LLVMValueRef word)
{
  return l->target->shuffle(l, s->mode, s->mask, word, s->lane, s->width);
}

/* Lanes that fill whole words stay in them. */
static LLVMValueRef shuffle_vector(kj_lowering *l, const kj_shuffle *s, LLVMValueRef value,
                                   uint32_t count)
{
  LLVMTypeRef words = LLVMVectorType(l->i32, count);
  LLVMValueRef given = LLVMBuildBitCast(l->builder, value, words, ""), moved = LLVMGetPoison(words);
  for (uint32_t i = 0; i < count; i++) {
    LLVMValueRef word =
      shuffle_word(l, s, LLVMBuildExtractElement(l->builder, given, kj_const32(l, i), ""));
    moved = LLVMBuildInsertElement(l->builder, moved, word, kj_const32(l, i), "");
  }
  return LLVMBuildBitCast(l->builder, moved, LLVMTypeOf(value), "");
}

static bool has_whole_words(kj_lowering *l, kjit_type type)
{
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++)
    if (kj_scalar_bytes(l, kj_get_part_info(l, type, i).type) % 4) return false;
  return count > 0;
}

LLVMValueRef kj_build_shuffle(kj_lowering *l, kjit_type type, const kj_shuffle *s,
                              LLVMValueRef value)
{
  bool is_vector = kj_is_vector_type(l, type),
       has_parts = !is_vector && kj_is_composed_type(l, type) && has_whole_words(l, type);
  if (is_vector && kj_part_of(l, type) != KJIT_BOOL && kj_scalar_bytes(l, type) % 4 == 0)
    return shuffle_vector(l, s, value, kj_scalar_bytes(l, type) / 4);
  for (uint32_t i = 0; has_parts && i < kj_part_count(l, type); i++)
    value = kj_set_part(l, type, value,
                        kj_build_shuffle(l, kj_get_part_info(l, type, i).type, s,
                                         kj_get_part(l, type, value, i)),
                        i);
  if (has_parts) return value;
  LLVMValueRef bits = kj_value_bits(l, type, value), words[MOST_WORDS];
  uint32_t count = kj_count_words(LLVMTypeOf(bits));
  for (uint32_t i = 0; i < count && i < MOST_WORDS; i++)
    words[i] = shuffle_word(l, s, kj_get_word(l, bits, i));
  return kj_value_of_bits(l, type, kj_join_words(l, LLVMTypeOf(bits), words, count));
}

LLVMValueRef kj_lower_shuffle(kj_lowering *l, const kj_texpr *expr)
{
  kj_shuffle s = { .mode = expr->builtin->symbol, .mask = arg32(l, expr, 0) };
  LLVMValueRef value = arg(l, expr, 1);
  s.lane = arg32(l, expr, 2);
  if (expr->args.count == 4) s.width = arg32(l, expr, 3);
  return kj_build_shuffle(l, expr->type, &s, value);
}

LLVMValueRef kj_lower_vote(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef mask = arg32(l, expr, 0);
  return l->target->vote(l, expr->builtin->symbol, mask,
                         kj_lower_condition(l, expr->args.items[1]));
}

LLVMValueRef kj_lower_activemask(kj_lowering *l, const kj_texpr *expr)
{
  (void)expr;
  return l->target->activemask(l);
}

/* Lanes by their relation to this one: lt, le, eq, ge, gt. */
static LLVMValueRef lanemask(kj_lowering *l, const char *relation)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef native =
    kj_try_native(l, kj_format(l->c->arena, "read.ptx.sreg.lanemask.%s", relation), 0, NULL, 0);
  if (native) return native;
  LLVMValueRef bit = LLVMBuildShl(b, kj_const32(l, 1),
                                  kj_as_i32(l, l->target->position(l, KJ_BUILTIN_LANEID, 0)), "");
  LLVMValueRef below = LLVMBuildSub(b, bit, kj_const32(l, 1), "");
  if (strcmp(relation, "eq") == 0) return bit;
  if (strcmp(relation, "lt") == 0) return below;
  if (strcmp(relation, "ge") == 0) return LLVMBuildNot(b, below, "");
  LLVMValueRef at_most = LLVMBuildOr(b, below, bit, "");
  return strcmp(relation, "le") == 0 ? at_most : LLVMBuildNot(b, at_most, "");
}

LLVMValueRef kj_lower_lanemask(kj_lowering *l, const kj_texpr *expr)
{
  return lanemask(l, expr->builtin->symbol);
}

/* The lowest lane of the mask, the same on all targets. */
LLVMValueRef kj_lower_elect(kj_lowering *l, const kj_texpr *expr)
{
  LLVMValueRef mask = arg32(l, expr, 0),
               lanes = LLVMBuildAnd(l->builder, mask, lanemask(l, "le"), "");
  return LLVMBuildICmp(l->builder, LLVMIntEQ, lanes, lanemask(l, "eq"), "");
}
