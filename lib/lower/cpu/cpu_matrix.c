/* CPU: matrix products of a warp, and loads and stores of fragments in shared memory. The fragments
 * of all lanes are gathered into matrices, which are multiplied by ordinary loops. The result is
 * distributed to the lanes.
 *
 * Products of 16-bit, tf32 and FP8 elements are added in f32, in the order of k, to the element of
 * c. An f16 result is rounded only at the end. Integers are added exactly and then wrapped or
 * clamped. */
#include "lower/instruction.h"
#include "lower/cpu/cpu_matrix.h"

#include <string.h>

static LLVMValueRef mul32(kl_lowering *l, LLVMValueRef x, uint32_t y)
{
  return kl_mul(l, x, kl_const32(l, y));
}
static LLVMValueRef and32(kl_lowering *l, LLVMValueRef x, uint32_t y)
{
  return kl_and(l, x, kl_const32(l, y));
}

/* ---- elements ---- */

static bool is_float(ki_mma_kind kind)
{
  return kind == KJ_MMA_F16 || kind == KJ_MMA_BF16 || kind == KJ_MMA_TF32 || kind == KJ_MMA_F32 ||
         kind == KJ_MMA_E4M3 || kind == KJ_MMA_E5M2;
}

/* Returns the type in which products are computed: f32, f64, i64, or 32-bit words for single-bit
 * elements. */
static LLVMTypeRef compute_type(kl_lowering *l, ki_mma_kind kind)
{
  return is_float(kind) ? l->f32 : kind == KJ_MMA_F64 ? l->f64 : l->i64;
}

static LLVMValueRef half_to_float(kl_lowering *l, LLVMValueRef bits, int shift)
{
  LLVMValueRef moved = kl_shl(l, bits, LLVMConstInt(l->i16, (unsigned)shift, false));
  return kl_fpext(l, kl_bitcast(l, moved, l->f16), l->f32);
}

/* Converts an FP8 byte. e5m2 is the upper half of an f16. The exponent bias of e4m3 is 7 instead of
 * 15, and the NaN of e4m3 has all bits below the sign set. */
static LLVMValueRef small_to_float(kl_lowering *l, ki_mma_kind kind, LLVMValueRef byte)
{
  LLVMValueRef wide = kl_zext(l, byte, l->i16);
  if (kind == KJ_MMA_E5M2) return half_to_float(l, wide, 8);
  LLVMValueRef magnitude = kl_and(l, wide, LLVMConstInt(l->i16, 0x7f, false));
  LLVMValueRef value = kl_fmul(l, half_to_float(l, magnitude, 7), LLVMConstReal(l->f32, 256));
  LLVMValueRef is_negative = kl_icmp(l, LLVMIntSLT, byte, LLVMConstNull(l->i8));
  value = kl_select(l, is_negative, kl_fneg(l, value), value);
  LLVMValueRef is_nan = kl_icmp(l, LLVMIntEQ, magnitude, LLVMConstInt(l->i16, 0x7f, false));
  return kl_select(l, is_nan, kl_fdiv(l, LLVMConstReal(l->f32, 0), LLVMConstReal(l->f32, 0)),
                   value);
}

static LLVMValueRef drop_low_bits(kl_lowering *l, LLVMValueRef x)
{
  LLVMValueRef bits = kl_bitcast(l, x, l->i32);
  return kl_bitcast(l, and32(l, bits, 0xffffe000u), l->f32);
}

/* Converts an element of a fragment to the computation type. If several elements are packed, `part`
 * selects one. */
LLVMValueRef kl_matrix_widen(kl_lowering *l, ki_mma_kind kind, LLVMValueRef x, uint32_t part)
{
  switch (KJ_AMONG(kind)) {
  case KJ_MMA_F16: return kl_fpext(l, x, l->f32);
  case KJ_MMA_BF16: return kl_to_compute(l, KJIT_BF16, x);
  case KJ_MMA_TF32: return drop_low_bits(l, x);
  case KJ_MMA_E4M3:
  case KJ_MMA_E5M2: return small_to_float(l, kind, x);
  case KJ_MMA_S8:
  case KJ_MMA_S32: return kl_sext(l, x, l->i64);
  case KJ_MMA_U8:
  case KJ_MMA_B1: return kl_zext(l, x, l->i64);
  case KJ_MMA_S4:
    x = kl_shl(l, x, kl_const32(l, 28 - 4 * (int64_t)part));
    return kl_sext(l, kl_ashr(l, x, kl_const32(l, 28)), l->i64);
  case KJ_MMA_U4:
    return kl_zext(l, and32(l, kl_lshr(l, x, kl_const32(l, 4 * (int64_t)part)), 15), l->i64);
  default: KJ_ASSERT(kind == KJ_MMA_F32 || kind == KJ_MMA_F64); return x;
  }
}

static LLVMValueRef clamp(kl_lowering *l, LLVMValueRef sum)
{
  return kl_intrinsic2(l, "llvm.smax", kl_intrinsic2(l, "llvm.smin", sum, kl_const64(l, INT32_MAX)),
                       kl_const64(l, INT32_MIN));
}

LLVMValueRef kl_matrix_narrow(kl_lowering *l, const kt_mma *mma, LLVMValueRef sum)
{
  if (mma->c == KJ_MMA_F16) return kl_fptrunc(l, sum, l->f16);
  if (mma->c != KJ_MMA_S32) return sum;
  return kl_trunc(l, mma->variant == KJ_MMA_SAT ? clamp(l, sum) : sum, l->i32);
}

static LLVMValueRef multiply_add(kl_lowering *l, const kt_mma *mma, LLVMValueRef x, LLVMValueRef y,
                                 LLVMValueRef sum)
{
  if (mma->a == KJ_MMA_B1) {
    LLVMValueRef bits = mma->variant == KJ_MMA_AND ? kl_and(l, x, y) : kl_xor(l, x, y);
    return kl_add(l, sum, kl_intrinsic1(l, "llvm.ctpop", bits));
  }
  if (mma->c == KJ_MMA_S32) return kl_add(l, sum, kl_mul(l, x, y));
  return kl_intrinsic3(l, "llvm.fma", x, y, sum);
}

/* ---- matrices in memory ---- */

kl_matrix kl_new_matrix(kl_lowering *l, ki_mma_kind kind, uint32_t rows, uint32_t columns)
{
  KJ_ASSERT(rows && columns);
  kl_matrix m = { .kind = kind, .rows = rows, .columns = columns, .type = compute_type(l, kind) };
  m.memory = kl_alloca(l, LLVMArrayType2(m.type, (uint64_t)rows * columns), "matrix");
  return m;
}

LLVMValueRef kl_matrix_element_at(kl_lowering *l, const kl_matrix *m, LLVMValueRef row,
                                  LLVMValueRef column)
{
  LLVMValueRef index = kl_extend_position(l, kl_add(l, mul32(l, row, m->columns), column));
  return kl_inbounds_gep(l, m->type, m->memory, &index, 1);
}

LLVMValueRef kl_matrix_load_at(kl_lowering *l, const kl_matrix *m, LLVMValueRef row,
                               LLVMValueRef column)
{
  return kl_load(l, m->type, kl_matrix_element_at(l, m, row, column));
}

/* Returns the address of a lane's element. If is_transposed is set, `place` belongs to an n by k
 * matrix, but the matrix in memory is k by n. */
static LLVMValueRef place_at(kl_lowering *l, const kl_matrix *m, kt_mma_place place,
                             LLVMValueRef lane, bool is_transposed)
{
  LLVMValueRef group = kl_lshr(l, lane, kl_const32(l, 2)), quad = and32(l, lane, 3);
  LLVMValueRef row = kl_add(l, group, kl_const32(l, place.row)),
               column = kl_add(l, mul32(l, quad, place.scale), kl_const32(l, place.column));
  return is_transposed ? kl_matrix_element_at(l, m, column, row)
                       : kl_matrix_element_at(l, m, row, column);
}

static LLVMValueRef lane_element(kl_lowering *l, LLVMValueRef fragment, uint32_t i)
{
  bool is_vector = LLVMGetTypeKind(LLVMTypeOf(fragment)) == LLVMVectorTypeKind;
  return is_vector ? kl_extract_element(l, fragment, kl_const32(l, i)) : fragment;
}

static uint32_t count_elements(LLVMTypeRef fragment)
{
  return LLVMGetTypeKind(fragment) == LLVMVectorTypeKind ? LLVMGetVectorSize(fragment) : 1;
}

/* ---- products ---- */

typedef enum operand_role { ROLE_A, ROLE_B, ROLE_C } operand_role;

static kt_mma_place place_of(const kt_mma *mma, operand_role role, ki_mma_kind kind,
                             uint32_t element)
{
  return role == ROLE_C ? kt_place_result(element)
                        : kt_place_operand(kind, role == ROLE_A ? mma->m : mma->n, element);
}

static void gather(kl_lowering *l, const kt_stmt *stmt, const kt_mma *mma, operand_role role,
                   const kl_matrix *m, LLVMValueRef rank)
{
  LLVMValueRef fragment = kl_warp_operand(l, stmt, role, rank),
               lane = and32(l, rank, KJ_WARP_THREADS - 1);
  uint32_t count = count_elements(LLVMTypeOf(fragment)),
           parts = m->kind == KJ_MMA_S4 || m->kind == KJ_MMA_U4 ? 8 : 1;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t part = 0; part < parts; part++) {
      LLVMValueRef value = kl_matrix_widen(l, m->kind, lane_element(l, fragment, i), part);
      kl_store(l, value,
               place_at(l, m, place_of(mma, role, m->kind, i * parts + part), lane,
                        role == ROLE_B));
    }
}

void kl_matrix_multiply(kl_lowering *l, const kt_mma *mma, const kl_matrix *a, const kl_matrix *b,
                        const kl_matrix *c)
{
  kl_counted_loop rows, depth, columns;
  kl_begin_vector_loop(l, &rows, kl_const32(l, 0), kl_const32(l, a->rows));
  kl_begin_vector_loop(l, &depth, kl_const32(l, 0), kl_const32(l, a->columns));
  LLVMValueRef x = kl_matrix_load_at(l, a, rows.counter, depth.counter);
  kl_begin_vector_loop(l, &columns, kl_const32(l, 0), kl_const32(l, b->columns));
  LLVMValueRef y = kl_matrix_load_at(l, b, depth.counter, columns.counter),
               sum = kl_matrix_load_at(l, c, rows.counter, columns.counter);
  kl_store(l, multiply_add(l, mma, x, y, sum),
           kl_matrix_element_at(l, c, rows.counter, columns.counter));
  kl_end_vector_loop(l, &columns);
  kl_end_vector_loop(l, &depth);
  kl_end_vector_loop(l, &rows);
}

static void hand_out(kl_lowering *l, const kt_stmt *stmt, const kt_mma *mma, const kl_matrix *c,
                     LLVMValueRef rank)
{
  LLVMTypeRef type = kl_register_type(l, stmt->value->type);
  LLVMValueRef lane = and32(l, rank, KJ_WARP_THREADS - 1), fragment = LLVMGetPoison(type);
  for (uint32_t i = 0; i < count_elements(type); i++) {
    LLVMValueRef sum = kl_load(l, c->type, place_at(l, c, kt_place_result(i), lane, false));
    fragment = kl_insert_element(l, fragment, kl_matrix_narrow(l, mma, sum), kl_const32(l, i));
  }
  /* inactive lanes leave their part of the matrices undefined (kl_load_value), so guest code gets a
   * fixed value */
  if (l->c->module->has_guest) fragment = LLVMBuildFreeze(l->builder, fragment, "");
  kl_set_lane_result(l, stmt, rank, fragment);
}

kl_parallel kl_matrix_begin_dependent_lanes(kl_lowering *l, kl_counted_loop *loop,
                                            LLVMValueRef first, LLVMValueRef stop)
{
  kl_parallel p = kl_begin_lanes(l, loop, first, stop);
  l->parallel_loop = NULL; /* the lanes share the matrices, so the iterations are not independent */
  return p;
}

void kl_cpu_mma(kl_lowering *l, const kt_stmt *stmt)
{
  if (!stmt->var) return;
  const kt_exprs *args = &stmt->value->args;
  const kt_mma *mma = kt_find_mma(l->c->types, stmt->value->builtin, args->items[0]->type,
                                  args->items[1]->type, args->items[2]->type);
  uint32_t depth = mma->a == KJ_MMA_B1 ? mma->k / 32 : mma->k;
  kl_matrix operands[3] = { kl_new_matrix(l, mma->a, mma->m, depth),
                            kl_new_matrix(l, mma->b, depth, mma->n),
                            kl_new_matrix(l, mma->c, mma->m, mma->n) };
  kl_counted_loop warps, loop;
  LLVMValueRef stop, first = kl_begin_warps(l, &warps, &stop);
  kl_parallel p = kl_matrix_begin_dependent_lanes(l, &loop, first, stop);
  for (int role = ROLE_A; role <= ROLE_C; role++)
    gather(l, stmt, mma, (operand_role)role, &operands[role], loop.counter);
  kl_end_lanes(l, &loop, &p);
  kl_matrix_multiply(l, mma, &operands[0], &operands[1], &operands[2]);
  p = kl_matrix_begin_dependent_lanes(l, &loop, first, stop);
  hand_out(l, stmt, mma, &operands[2], loop.counter);
  kl_end_lanes(l, &loop, &p);
  kl_end_vector_loop(l, &warps);
}

/* ---- fragments from and to shared memory ---- */

/* Returns the address of the 4 bytes of matrix `index` that belong to lane `lane`. If the matrix is
 * transposed, returns the address of 2 of these bytes, which `half` selects. The address of the row
 * comes from another lane. */
static LLVMValueRef fragment_pointer(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef first,
                                     LLVMValueRef lane, uint32_t index, uint32_t half)
{
  bool is_transposed = stmt->value->builtin->operation & KJ_TRANSPOSED;
  LLVMValueRef group = kl_lshr(l, lane, kl_const32(l, 2)), quad = and32(l, lane, 3);
  LLVMValueRef row = is_transposed ? kl_add(l, mul32(l, quad, 2), kl_const32(l, half)) : group,
               bytes = is_transposed ? mul32(l, group, 2) : mul32(l, quad, 4);
  LLVMValueRef giver = kl_add(l, first, kl_add(l, row, kl_const32(l, 8 * index)));
  giver = kl_intrinsic2(l, "llvm.umin", giver, kl_const32(l, kl_cpu(l)->thread_count - 1));
  LLVMValueRef address =
    kl_add(l, kl_warp_operand(l, stmt, 0, giver), kl_extend_position(l, bytes));
  return kl_gep(l, l->i8, kl_cpu(l)->scratch, &address, 1);
}

static LLVMTypeRef words_type(kl_lowering *l, uint32_t count, bool are_halves)
{
  return LLVMVectorType(are_halves ? l->i16 : l->i32, are_halves ? 2 * count : count);
}

static LLVMValueRef load_words(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef first,
                               LLVMValueRef lane, uint32_t count)
{
  bool are_halves = stmt->value->builtin->operation & KJ_TRANSPOSED;
  LLVMTypeRef type = words_type(l, count, are_halves), word = LLVMGetElementType(type);
  LLVMValueRef words = LLVMGetPoison(type);
  for (uint32_t i = 0; i < LLVMGetVectorSize(type); i++) {
    LLVMValueRef at = are_halves ? fragment_pointer(l, stmt, first, lane, i / 2, i % 2)
                                 : fragment_pointer(l, stmt, first, lane, i, 0);
    LLVMValueRef value = kl_load(l, word, at);
    LLVMSetAlignment(value, 1);
    words = kl_insert_element(l, words, value, kl_const32(l, i));
  }
  return words;
}

static void store_words(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef first, LLVMValueRef lane,
                        LLVMValueRef fragment, uint32_t count)
{
  bool are_halves = stmt->value->builtin->operation & KJ_TRANSPOSED;
  LLVMTypeRef type = words_type(l, count, are_halves);
  LLVMValueRef words = kl_bitcast(l, fragment, type);
  for (uint32_t i = 0; i < LLVMGetVectorSize(type); i++) {
    LLVMValueRef at = are_halves ? fragment_pointer(l, stmt, first, lane, i / 2, i % 2)
                                 : fragment_pointer(l, stmt, first, lane, i, 0);
    LLVMSetAlignment(kl_store(l, kl_extract_element(l, words, kl_const32(l, i)), at), 1);
  }
}

void kl_cpu_fragment(kl_lowering *l, const kt_stmt *stmt)
{
  const kt_expr *e = stmt->value;
  uint32_t count = e->builtin->operation & KJ_MATRIX_COUNT;
  bool is_store = e->type == KJIT_VOID;
  if (!is_store && !stmt->var) return;
  kl_counted_loop warps, loop;
  LLVMValueRef stop, first = kl_begin_warps(l, &warps, &stop);
  kl_parallel p = kl_matrix_begin_dependent_lanes(l, &loop, first, stop);
  LLVMValueRef rank = loop.counter, lane = and32(l, rank, KJ_WARP_THREADS - 1);
  LLVMBasicBlockRef active = kl_new_block(l, "lane");
  kl_cond_br(l, kl_is_lane_active(l, stmt, rank), active, loop.loop.next);
  kl_move_to(l, active);
  if (is_store) store_words(l, stmt, first, lane, kl_warp_operand(l, stmt, 1, rank), count);
  else
    kl_set_lane_result(l, stmt, rank,
                       kl_bitcast(l, load_words(l, stmt, first, lane, count),
                                  kl_register_type(l, e->type)));
  kl_branch(l, loop.loop.next);
  kl_end_lanes(l, &loop, &p);
  kl_end_vector_loop(l, &warps);
}
