/* CPU: matrix products of a warpgroup. Each warp computes its 16 rows when it reaches the product,
 * because these rows do not depend on the other three warps.
 *
 * A descriptor determines a matrix's layout as described in the PTX manual ("strides", "swizzling
 * modes"). Along the dimension other than k, the matrix consists of groups of 8 rows. A row has the
 * swizzle width, or 16 bytes if there is no swizzle. The swizzle permutes groups of 16 bytes
 * depending on address bits. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/cpu/cpu_matrix.h"
#include "typing/mma.h"

enum { WARPGROUP = 4 };

/* ---- descriptors ---- */

/* The fields of a descriptor, in bytes. All are i64. */
typedef struct described {
  LLVMValueRef start, leading, stride;
  LLVMValueRef width; /* width of a row with a swizzle; 16 if there is no swizzle */
  LLVMValueRef mask;  /* mask of the address bits that the swizzle changes */
} described;

static LLVMValueRef field(kl_lowering *l, LLVMValueRef word, int shift)
{
  LLVMValueRef bits = kl_and(l, kl_lshr(l, word, kl_const64(l, shift)), kl_const64(l, 0x3fff));
  return kl_shl(l, bits, kl_const64(l, 4));
}

/* Reads a descriptor. Swizzle kinds 0 to 3 mean: no swizzle, 128 bytes, 64 bytes, 32 bytes. */
static described read_descriptor(kl_lowering *l, LLVMValueRef word)
{
  LLVMValueRef kind = kl_lshr(l, word, kl_const64(l, 62)),
               is_none = kl_icmp(l, LLVMIntEQ, kind, kl_const64(l, 0));
  LLVMValueRef width =
    kl_select(l, is_none, kl_const64(l, 16), kl_lshr(l, kl_const64(l, 256), kind));
  return (described){ .start = field(l, word, 0),
                      .leading = field(l, word, 16),
                      .stride = field(l, word, 32),
                      .width = width,
                      .mask = kl_and(l, kl_sub(l, width, kl_const64(l, 1)), kl_const64(l, 0x70)) };
}

/* Returns an element's offset. `outer` counts rows in groups of 8, and `inner` counts elements
 * within rows of `width` bytes. If k is the inner dimension, `stride` is the distance between
 * groups, and `leading`, which is used only without a swizzle, is the distance along k. If k is the
 * outer dimension, `stride` is the distance along k, and `leading` is the distance along the other
 * dimension; without a swizzle, `stride` and `leading` are exchanged. */
static LLVMValueRef element_offset(kl_lowering *l, const described *d, LLVMValueRef outer,
                                   LLVMValueRef inner_bytes, bool is_transposed)
{
  LLVMValueRef eight = kl_const64(l, 8),
               is_plain = kl_icmp(l, LLVMIntEQ, d->width, kl_const64(l, 16));
  LLVMValueRef by_group = is_transposed ? kl_select(l, is_plain, d->leading, d->stride) : d->stride;
  LLVMValueRef by_row = is_transposed ? kl_select(l, is_plain, d->stride, d->leading) : d->leading;
  LLVMValueRef offset = kl_add(l, d->start, kl_mul(l, kl_udiv(l, outer, eight), by_group));
  offset = kl_add(l, offset, kl_mul(l, kl_urem(l, outer, eight), d->width));
  offset = kl_add(l, offset, kl_mul(l, kl_udiv(l, inner_bytes, d->width), by_row));
  offset = kl_add(l, offset, kl_urem(l, inner_bytes, d->width));
  LLVMValueRef exchange = kl_and(l, kl_lshr(l, offset, kl_const64(l, 3)), d->mask);
  return kl_xor(l, offset, exchange);
}

/* Loads element (row, k) of a, or element (column, k) of b, in the computation type. */
static LLVMValueRef load_operand(kl_lowering *l, const kt_wgmma *w, const described *d,
                                 LLVMValueRef row, LLVMValueRef k, bool is_transposed)
{
  LLVMValueRef size = kl_const64(l, kt_mma_elements[w->operand].bits / 8),
               outer = is_transposed ? k : row, inner = is_transposed ? row : k;
  LLVMValueRef offset = element_offset(l, d, outer, kl_mul(l, inner, size), is_transposed);
  LLVMValueRef at = kl_gep(l, l->i8, kl_cpu(l)->scratch, &offset, 1);
  LLVMValueRef value = kl_load(l, kl_memory_type(l, kt_mma_elements[w->operand].type), at);
  return kl_matrix_widen(l, w->operand, kl_from_memory(l, kt_mma_elements[w->operand].type, value),
                         0);
}

static void fill_from_shared(kl_lowering *l, const kt_wgmma *w, const kl_matrix *m,
                             LLVMValueRef word, LLVMValueRef first_row, bool is_second)
{
  bool is_transposed = w->transposed & (is_second ? KJ_WGMMA_TRANSPOSE_B : KJ_WGMMA_TRANSPOSE_A);
  described d = read_descriptor(l, word);
  uint32_t others = is_second ? m->columns : m->rows;
  kl_counted_loop rows, depth;
  kl_begin_vector_loop(l, &rows, kl_const32(l, 0), kl_const32(l, others));
  kl_begin_vector_loop(l, &depth, kl_const32(l, 0), kl_const32(l, w->k));
  LLVMValueRef row = kl_extend_position(l, kl_add(l, rows.counter, first_row));
  LLVMValueRef value =
    load_operand(l, w, &d, row, kl_extend_position(l, depth.counter), is_transposed);
  LLVMValueRef at = is_second ? kl_matrix_element_at(l, m, depth.counter, rows.counter)
                              : kl_matrix_element_at(l, m, rows.counter, depth.counter);
  kl_store(l, value, at);
  kl_end_vector_loop(l, &depth);
  kl_end_vector_loop(l, &rows);
}

/* ---- fragments ---- */

static LLVMValueRef place_at(kl_lowering *l, const kl_matrix *m, LLVMValueRef lane, uint32_t row,
                             uint32_t scale, uint32_t column)
{
  LLVMValueRef group = kl_lshr(l, lane, kl_const32(l, 2)), quad = kl_and(l, lane, kl_const32(l, 3));
  return kl_matrix_element_at(l, m, kl_add(l, group, kl_const32(l, row)),
                              kl_add(l, kl_mul(l, quad, kl_const32(l, scale)),
                                     kl_const32(l, column)));
}

static void fill_from_fragment(kl_lowering *l, const kt_wgmma *w, const kl_matrix *m,
                               LLVMValueRef fragment, LLVMValueRef lane)
{
  for (uint32_t i = 0; i < LLVMGetVectorSize(LLVMTypeOf(fragment)); i++) {
    kt_mma_place place = kt_place_operand(w->operand, KJ_WGMMA_WARP_ROWS, i);
    LLVMValueRef value =
      kl_matrix_widen(l, w->operand, kl_extract_element(l, fragment, kl_const32(l, i)), 0);
    kl_store(l, value, place_at(l, m, lane, place.row, place.scale, place.column));
  }
}

/* Returns the address of element i of d that belongs to a lane. Bit 0 of i selects one of two
 * adjacent columns, bit 1 adds 8 rows, and each further group of 4 elements adds 8 columns. */
static LLVMValueRef result_at(kl_lowering *l, const kl_matrix *m, LLVMValueRef lane, uint32_t i)
{
  return place_at(l, m, lane, 8 * (i / 2 % 2), 2, 8 * (i / 4) + i % 2);
}

static LLVMValueRef accumulator_at(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank,
                                   uint32_t i)
{
  kl_set_rank(l, rank);
  kl_array_value array = kl_lower_array(l, stmt->value->x);
  LLVMValueRef index = kl_const64(l, i);
  return kl_inbounds_gep(l, kl_memory_type(l, kl_type_info(l, array.type)->element), array.pointer,
                         &index, 1);
}

/* ---- the product ---- */

static void gather_lane(kl_lowering *l, const kt_stmt *stmt, const kt_wgmma *w, const kl_matrix *a,
                        const kl_matrix *d, LLVMValueRef rank)
{
  LLVMValueRef lane = kl_and(l, rank, kl_const32(l, KJ_WARP_THREADS - 1)),
               zero = LLVMConstNull(d->type);
  LLVMValueRef adds = kl_warp_operand(l, stmt, 2, rank);
  if (w->has_fragment) fill_from_fragment(l, w, a, kl_warp_operand(l, stmt, 0, rank), lane);
  kjit_type type = kt_mma_elements[w->result].type;
  for (uint32_t i = 0; i < w->n / 2; i++) {
    LLVMValueRef value = kl_load(l, kl_memory_type(l, type), accumulator_at(l, stmt, rank, i));
    value = kl_matrix_widen(l, w->result, kl_from_memory(l, type, value), 0);
    kl_store(l, kl_select(l, adds, value, zero), result_at(l, d, lane, i));
  }
}

static void hand_out_lane(kl_lowering *l, const kt_stmt *stmt, const kt_mma *mma, uint32_t count,
                          const kl_matrix *d, LLVMValueRef rank)
{
  LLVMValueRef lane = kl_and(l, rank, kl_const32(l, KJ_WARP_THREADS - 1));
  for (uint32_t i = 0; i < count; i++) {
    LLVMValueRef sum = kl_matrix_narrow(l, mma, kl_load(l, d->type, result_at(l, d, lane, i)));
    kl_store(l, kl_to_memory(l, kt_mma_elements[mma->c].type, sum),
             accumulator_at(l, stmt, rank, i));
  }
}

void kl_cpu_wgmma(kl_lowering *l, const kt_stmt *stmt)
{
  kt_wgmma w = kt_describe_wgmma(l->c->types, stmt->value);
  const kt_mma as_mma = {
    .m = KJ_WGMMA_WARP_ROWS, .n = w.n, .k = w.k, .a = w.operand, .b = w.operand, .c = w.result
  };
  kl_matrix a = kl_new_matrix(l, w.operand, KJ_WGMMA_WARP_ROWS, w.k),
            b = kl_new_matrix(l, w.operand, w.k, w.n),
            d = kl_new_matrix(l, w.result, KJ_WGMMA_WARP_ROWS, w.n);
  kl_counted_loop warps, loop;
  LLVMValueRef stop, first = kl_begin_warps(l, &warps, &stop);
  LLVMBasicBlockRef some = kl_new_block(l, "some"), none = kl_new_block(l, "none");
  /* the descriptors of a warp without active threads can be invalid */
  kl_go_on_if(l, kl_has_active_among(l, stmt, first, stop), some, none);
  LLVMValueRef warp = kl_urem(l, kl_lshr(l, first, kl_const32(l, 5)), kl_const32(l, WARPGROUP));
  kl_parallel p = kl_matrix_begin_dependent_lanes(l, &loop, first, stop);
  gather_lane(l, stmt, &w, &a, &d, loop.counter);
  kl_end_lanes(l, &loop, &p);
  if (!w.has_fragment)
    fill_from_shared(l, &w, &a, kl_warp_operand(l, stmt, 0, first),
                     kl_mul(l, warp, kl_const32(l, KJ_WGMMA_WARP_ROWS)), false);
  fill_from_shared(l, &w, &b, kl_warp_operand(l, stmt, 1, first), kl_const32(l, 0), true);
  kl_matrix_multiply(l, &as_mma, &a, &b, &d);
  p = kl_matrix_begin_dependent_lanes(l, &loop, first, stop);
  LLVMBasicBlockRef active = kl_new_block(l, "lane");
  kl_cond_br(l, kl_is_lane_active(l, stmt, loop.counter), active, loop.loop.next);
  kl_move_to(l, active);
  hand_out_lane(l, stmt, &as_mma, w.n / 2, &d, loop.counter);
  kl_branch(l, loop.loop.next);
  kl_end_lanes(l, &loop, &p);
  kl_go_on_in(l, none);
  kl_end_vector_loop(l, &warps);
}
