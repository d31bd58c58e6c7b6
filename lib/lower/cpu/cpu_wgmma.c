/* CPU: matrix products of a warpgroup. Each warp computes its own 16 rows when it comes there: what
 * the other three do makes no difference to it.
 *
 * Where a matrix lies follows from its descriptor as in the PTX manual ("strides", "swizzling
 * modes"): rows of 8 along the dimension that is not k, of 16 bytes or of the swizzle's width; the
 * swizzle exchanges groups of 16 bytes by bits of the address. */
#include <string.h>

#include "lower/cpu/cpu_matrix.h"
#include "typing/mma.h"

enum { WARP = 32, WARPGROUP = 4 };

/* ---- descriptors ---- */

/* What a descriptor says, in bytes; all i64. */
typedef struct described {
  LLVMValueRef start, leading, stride;
  LLVMValueRef width; /* of a swizzled row; 16 where nothing is swizzled */
  LLVMValueRef mask;  /* of the address bits that the swizzle changes */
} described;

static LLVMValueRef field(kj_lowering *l, LLVMValueRef word, int shift)
{
  LLVMValueRef bits =
    LLVMBuildAnd(l->builder, LLVMBuildLShr(l->builder, word, kj_const64(l, shift), ""),
                 kj_const64(l, 0x3fff), "");
  return LLVMBuildShl(l->builder, bits, kj_const64(l, 4), "");
}

/* Kinds 0 to 3: none, 128, 64, 32 bytes. */
static described read_descriptor(kj_lowering *l, LLVMValueRef word)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef kind = LLVMBuildLShr(b, word, kj_const64(l, 62), ""),
               is_none = LLVMBuildICmp(b, LLVMIntEQ, kind, kj_const64(l, 0), "");
  LLVMValueRef width = LLVMBuildSelect(b, is_none, kj_const64(l, 16),
                                       LLVMBuildLShr(b, kj_const64(l, 256), kind, ""), "");
  return (described){ .start = field(l, word, 0),
                      .leading = field(l, word, 16),
                      .stride = field(l, word, 32),
                      .width = width,
                      .mask = LLVMBuildAnd(b, LLVMBuildSub(b, width, kj_const64(l, 1), ""),
                                           kj_const64(l, 0x70), "") };
}

static LLVMValueRef udiv(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildUDiv(l->builder, x, y, "");
}
static LLVMValueRef urem(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildURem(l->builder, x, y, "");
}
static LLVMValueRef add(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildAdd(l->builder, x, y, "");
}
static LLVMValueRef mul(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildMul(l->builder, x, y, "");
}
static LLVMValueRef choose(kj_lowering *l, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildSelect(l->builder, c, x, y, "");
}

/* Groups of 8 along `outer`, rows of `width` bytes along `inner`. Where k is the inner dimension,
 * stride goes from group to group; without a swizzle the leading distance goes along k. Where k is
 * outer, the leading distance goes along the other one and stride along k; without a swizzle the
 * other way round. */
static LLVMValueRef element_offset(kj_lowering *l, const described *d, LLVMValueRef outer,
                                   LLVMValueRef inner_bytes, bool is_transposed)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef eight = kj_const64(l, 8),
               is_plain = LLVMBuildICmp(b, LLVMIntEQ, d->width, kj_const64(l, 16), "");
  LLVMValueRef by_group = is_transposed ? choose(l, is_plain, d->leading, d->stride) : d->stride;
  LLVMValueRef by_row = is_transposed ? choose(l, is_plain, d->stride, d->leading) : d->leading;
  LLVMValueRef offset = add(l, d->start, mul(l, udiv(l, outer, eight), by_group));
  offset = add(l, offset, mul(l, urem(l, outer, eight), d->width));
  offset = add(l, offset, mul(l, udiv(l, inner_bytes, d->width), by_row));
  offset = add(l, offset, urem(l, inner_bytes, d->width));
  LLVMValueRef exchange =
    LLVMBuildAnd(b, LLVMBuildLShr(b, offset, kj_const64(l, 3), ""), d->mask, "");
  return LLVMBuildXor(b, offset, exchange, "");
}

/* Element (row, k) of a, or (column, k) of b, as it is computed with. */
static LLVMValueRef load_operand(kj_lowering *l, const kj_wgmma *w, const described *d,
                                 LLVMValueRef row, LLVMValueRef k, bool is_transposed)
{
  LLVMValueRef size = kj_const64(l, kj_mma_elements[w->operand].bits / 8),
               outer = is_transposed ? k : row, inner = is_transposed ? row : k;
  LLVMValueRef offset = element_offset(l, d, outer, mul(l, inner, size), is_transposed);
  LLVMValueRef at = LLVMBuildGEP2(l->builder, l->i8, kj_cpu(l)->scratch, &offset, 1, "");
  LLVMValueRef value =
    LLVMBuildLoad2(l->builder, kj_memory_type(l, kj_mma_elements[w->operand].type), at, "");
  return kj_matrix_widen(l, w->operand, kj_from_memory(l, kj_mma_elements[w->operand].type, value),
                         0);
}

static void fill_from_shared(kj_lowering *l, const kj_wgmma *w, const kj_matrix *m,
                             LLVMValueRef word, LLVMValueRef first_row, bool is_second)
{
  bool is_transposed = w->transposed & (is_second ? KJ_WGMMA_TRANSPOSE_B : KJ_WGMMA_TRANSPOSE_A);
  described d = read_descriptor(l, word);
  uint32_t others = is_second ? m->columns : m->rows;
  kj_counted_loop rows, depth;
  kj_begin_vector_loop(l, &rows, kj_const32(l, 0), kj_const32(l, others));
  kj_begin_vector_loop(l, &depth, kj_const32(l, 0), kj_const32(l, w->k));
  LLVMValueRef row = kj_extend_position(l, add(l, rows.counter, first_row));
  LLVMValueRef value =
    load_operand(l, w, &d, row, kj_extend_position(l, depth.counter), is_transposed);
  LLVMValueRef at = is_second ? kj_matrix_element_at(l, m, depth.counter, rows.counter)
                              : kj_matrix_element_at(l, m, rows.counter, depth.counter);
  LLVMBuildStore(l->builder, value, at);
  kj_end_vector_loop(l, &depth);
  kj_end_vector_loop(l, &rows);
}

/* ---- fragments ---- */

static LLVMValueRef place_at(kj_lowering *l, const kj_matrix *m, LLVMValueRef lane, uint32_t row,
                             uint32_t scale, uint32_t column)
{
  LLVMValueRef group = LLVMBuildLShr(l->builder, lane, kj_const32(l, 2), ""),
               quad = LLVMBuildAnd(l->builder, lane, kj_const32(l, 3), "");
  return kj_matrix_element_at(l, m, add(l, group, kj_const32(l, row)),
                              add(l, mul(l, quad, kj_const32(l, scale)), kj_const32(l, column)));
}

static void fill_from_fragment(kj_lowering *l, const kj_wgmma *w, const kj_matrix *m,
                               LLVMValueRef fragment, LLVMValueRef lane)
{
  for (uint32_t i = 0; i < LLVMGetVectorSize(LLVMTypeOf(fragment)); i++) {
    kj_mma_place place = kj_place_operand(w->operand, KJ_WGMMA_WARP_ROWS, i);
    LLVMValueRef value =
      kj_matrix_widen(l, w->operand,
                      LLVMBuildExtractElement(l->builder, fragment, kj_const32(l, i), ""), 0);
    LLVMBuildStore(l->builder, value, place_at(l, m, lane, place.row, place.scale, place.column));
  }
}

/* A lane's elements of d: pairs of neighbours, then 8 rows further, then 8 columns further. */
static LLVMValueRef result_at(kj_lowering *l, const kj_matrix *m, LLVMValueRef lane, uint32_t i)
{
  return place_at(l, m, lane, 8 * (i / 2 % 2), 2, 8 * (i / 4) + i % 2);
}

static LLVMValueRef accumulator_at(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef rank,
                                   uint32_t i)
{
  kj_set_rank(l, rank);
  kj_array_value array = kj_lower_array(l, stmt->value->x);
  LLVMValueRef index = kj_const64(l, i);
  return LLVMBuildInBoundsGEP2(l->builder,
                               kj_memory_type(l, kj_type(l->c->types, array.type)->element),
                               array.pointer, &index, 1, "");
}

/* ---- the product ---- */

static void gather_lane(kj_lowering *l, const kj_tstmt *stmt, const kj_wgmma *w, const kj_matrix *a,
                        const kj_matrix *d, LLVMValueRef rank)
{
  LLVMValueRef lane = LLVMBuildAnd(l->builder, rank, kj_const32(l, WARP - 1), ""),
               zero = LLVMConstNull(d->type);
  LLVMValueRef adds = kj_warp_operand(l, stmt, 2, rank);
  if (w->has_fragment) fill_from_fragment(l, w, a, kj_warp_operand(l, stmt, 0, rank), lane);
  kjit_type type = kj_mma_elements[w->result].type;
  for (uint32_t i = 0; i < w->n / 2; i++) {
    LLVMValueRef value =
      LLVMBuildLoad2(l->builder, kj_memory_type(l, type), accumulator_at(l, stmt, rank, i), "");
    value = kj_matrix_widen(l, w->result, kj_from_memory(l, type, value), 0);
    LLVMBuildStore(l->builder, choose(l, adds, value, zero), result_at(l, d, lane, i));
  }
}

static void hand_out_lane(kj_lowering *l, const kj_tstmt *stmt, const kj_mma *mma, uint32_t count,
                          const kj_matrix *d, LLVMValueRef rank)
{
  LLVMValueRef lane = LLVMBuildAnd(l->builder, rank, kj_const32(l, WARP - 1), "");
  for (uint32_t i = 0; i < count; i++) {
    LLVMValueRef sum =
      kj_matrix_narrow(l, mma, LLVMBuildLoad2(l->builder, d->type, result_at(l, d, lane, i), ""));
    LLVMBuildStore(l->builder, kj_to_memory(l, kj_mma_elements[mma->c].type, sum),
                   accumulator_at(l, stmt, rank, i));
  }
}

void kj_cpu_wgmma(kj_lowering *l, const kj_tstmt *stmt)
{
  kj_wgmma w = kj_describe_wgmma(l->c->types, stmt->value);
  const kj_mma as_mma = {
    .m = KJ_WGMMA_WARP_ROWS, .n = w.n, .k = w.k, .a = w.operand, .b = w.operand, .c = w.result
  };
  kj_matrix a = kj_new_matrix(l, w.operand, KJ_WGMMA_WARP_ROWS, w.k),
            b = kj_new_matrix(l, w.operand, w.k, w.n),
            d = kj_new_matrix(l, w.result, KJ_WGMMA_WARP_ROWS, w.n);
  kj_counted_loop warps, loop;
  LLVMValueRef stop, first = kj_matrix_begin_warps(l, &warps, &stop);
  LLVMBasicBlockRef some = kj_new_block(l, "some"), none = kj_new_block(l, "none");
  /* descriptors of a warp that is not there may say anything */
  LLVMBuildCondBr(l->builder, kj_has_active_among(l, stmt, first, stop), some, none);
  kj_move_to(l, some);
  LLVMValueRef warp =
    urem(l, LLVMBuildLShr(l->builder, first, kj_const32(l, 5), ""), kj_const32(l, WARPGROUP));
  kj_parallel p = kj_matrix_begin_dependent_lanes(l, &loop, first, stop);
  gather_lane(l, stmt, &w, &a, &d, loop.counter);
  kj_end_lanes(l, &loop, &p);
  if (!w.has_fragment)
    fill_from_shared(l, &w, &a, kj_warp_operand(l, stmt, 0, first),
                     mul(l, warp, kj_const32(l, KJ_WGMMA_WARP_ROWS)), false);
  fill_from_shared(l, &w, &b, kj_warp_operand(l, stmt, 1, first), kj_const32(l, 0), true);
  kj_matrix_multiply(l, &as_mma, &a, &b, &d);
  p = kj_matrix_begin_dependent_lanes(l, &loop, first, stop);
  LLVMBasicBlockRef active = kj_new_block(l, "lane");
  LLVMBuildCondBr(l->builder, kj_is_lane_active(l, stmt, loop.counter), active, loop.loop.next);
  kj_move_to(l, active);
  hand_out_lane(l, stmt, &as_mma, w.n / 2, &d, loop.counter);
  kj_branch(l, loop.loop.next);
  kj_end_lanes(l, &loop, &p);
  LLVMBuildBr(l->builder, none);
  kj_move_to(l, none);
  kj_end_loop(l, &warps);
}
