/* CPU: matrix products of a warp, and fragments from and to shared memory: the lanes' fragments are
 * gathered into matrices, multiplied as C would, and handed out again.
 *
 * Products of 16-bit, tf32 and fp8 elements are summed in f32, in the order of k after what c
 * holds; a result in f16 is rounded at the end. Integers are summed exactly, then wrapped or
 * clamped. */
#include "lower/cpu/cpu_matrix.h"

#include <string.h>

enum { WARP = 32 };

static LLVMValueRef add32(kj_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildAdd(l->builder, x, y, "");
}
static LLVMValueRef mul32(kj_lowering *l, LLVMValueRef x, uint32_t y)
{
  return LLVMBuildMul(l->builder, x, kj_const32(l, y), "");
}
static LLVMValueRef and32(kj_lowering *l, LLVMValueRef x, uint32_t y)
{
  return LLVMBuildAnd(l->builder, x, kj_const32(l, y), "");
}

/* ---- elements ---- */

static bool is_float(kj_mma_kind kind)
{
  return kind == KJ_MMA_F16 || kind == KJ_MMA_BF16 || kind == KJ_MMA_TF32 || kind == KJ_MMA_F32 ||
         kind == KJ_MMA_E4M3 || kind == KJ_MMA_E5M2;
}

/* What is computed with: f32, f64, or i64 (bits: words of 32). */
static LLVMTypeRef compute_type(kj_lowering *l, kj_mma_kind kind)
{
  return is_float(kind) ? l->f32 : kind == KJ_MMA_F64 ? l->f64 : l->i64;
}

static LLVMValueRef half_to_float(kj_lowering *l, LLVMValueRef bits, int shift)
{
  LLVMValueRef moved =
    LLVMBuildShl(l->builder, bits, LLVMConstInt(l->i16, (unsigned)shift, false), "");
  return LLVMBuildFPExt(l->builder, LLVMBuildBitCast(l->builder, moved, l->f16, ""), l->f32, "");
}

/* Bytes: e5m2 is the upper half of an f16; e4m3 has its exponent 8 lower, and a NaN where both are
 * all ones. */
static LLVMValueRef small_to_float(kj_lowering *l, kj_mma_kind kind, LLVMValueRef byte)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef wide = LLVMBuildZExt(b, byte, l->i16, "");
  if (kind == KJ_MMA_E5M2) return half_to_float(l, wide, 8);
  LLVMValueRef magnitude = LLVMBuildAnd(b, wide, LLVMConstInt(l->i16, 0x7f, false), "");
  LLVMValueRef value =
    LLVMBuildFMul(b, half_to_float(l, magnitude, 7), LLVMConstReal(l->f32, 256), "");
  LLVMValueRef is_negative = LLVMBuildICmp(b, LLVMIntSLT, byte, LLVMConstNull(l->i8), "");
  value = LLVMBuildSelect(b, is_negative, LLVMBuildFNeg(b, value, ""), value, "");
  LLVMValueRef is_nan =
    LLVMBuildICmp(b, LLVMIntEQ, magnitude, LLVMConstInt(l->i16, 0x7f, false), "");
  return LLVMBuildSelect(b, is_nan,
                         LLVMBuildFDiv(b, LLVMConstReal(l->f32, 0), LLVMConstReal(l->f32, 0), ""),
                         value, "");
}

static LLVMValueRef drop_low_bits(kj_lowering *l, LLVMValueRef x)
{
  LLVMValueRef bits = LLVMBuildBitCast(l->builder, x, l->i32, "");
  return LLVMBuildBitCast(l->builder, and32(l, bits, 0xffffe000u), l->f32, "");
}

/* Element `part` of a fragment's element, where that is packed. */
LLVMValueRef kj_matrix_widen(kj_lowering *l, kj_mma_kind kind, LLVMValueRef x, uint32_t part)
{
  LLVMBuilderRef b = l->builder;
  switch (KJ_AMONG(kind)) {
  case KJ_MMA_F16: return LLVMBuildFPExt(b, x, l->f32, "");
  case KJ_MMA_BF16: return kj_to_compute(l, KJIT_BF16, x);
  case KJ_MMA_TF32: return drop_low_bits(l, x);
  case KJ_MMA_E4M3:
  case KJ_MMA_E5M2: return small_to_float(l, kind, x);
  case KJ_MMA_S8:
  case KJ_MMA_S32: return LLVMBuildSExt(b, x, l->i64, "");
  case KJ_MMA_U8:
  case KJ_MMA_B1: return LLVMBuildZExt(b, x, l->i64, "");
  case KJ_MMA_S4:
    x = LLVMBuildShl(b, x, kj_const32(l, 28 - 4 * (int64_t)part), "");
    return LLVMBuildSExt(b, LLVMBuildAShr(b, x, kj_const32(l, 28), ""), l->i64, "");
  case KJ_MMA_U4:
    return LLVMBuildZExt(b, and32(l, LLVMBuildLShr(b, x, kj_const32(l, 4 * (int64_t)part), ""), 15),
                         l->i64, "");
  default: return x;
  }
}

static LLVMValueRef clamp(kj_lowering *l, LLVMValueRef sum)
{
  return kj_intrinsic2(l, "llvm.smax", kj_intrinsic2(l, "llvm.smin", sum, kj_const64(l, INT32_MAX)),
                       kj_const64(l, INT32_MIN));
}

LLVMValueRef kj_matrix_narrow(kj_lowering *l, const kj_mma *mma, LLVMValueRef sum)
{
  if (mma->c == KJ_MMA_F16) return LLVMBuildFPTrunc(l->builder, sum, l->f16, "");
  if (mma->c != KJ_MMA_S32) return sum;
  return LLVMBuildTrunc(l->builder, mma->variant == KJ_MMA_SAT ? clamp(l, sum) : sum, l->i32, "");
}

static LLVMValueRef multiply_add(kj_lowering *l, const kj_mma *mma, LLVMValueRef x, LLVMValueRef y,
                                 LLVMValueRef sum)
{
  LLVMBuilderRef b = l->builder;
  if (mma->a == KJ_MMA_B1) {
    LLVMValueRef bits =
      mma->variant == KJ_MMA_AND ? LLVMBuildAnd(b, x, y, "") : LLVMBuildXor(b, x, y, "");
    return LLVMBuildAdd(b, sum, kj_intrinsic1(l, "llvm.ctpop", bits), "");
  }
  if (mma->c == KJ_MMA_S32) return LLVMBuildAdd(b, sum, LLVMBuildMul(b, x, y, ""), "");
  return kj_intrinsic3(l, "llvm.fma", x, y, sum);
}

/* ---- matrices in memory ---- */

kj_matrix kj_new_matrix(kj_lowering *l, kj_mma_kind kind, uint32_t rows, uint32_t columns)
{
  kj_matrix m = { .kind = kind, .rows = rows, .columns = columns, .type = compute_type(l, kind) };
  m.memory = kj_alloca(l, LLVMArrayType2(m.type, (uint64_t)rows * columns), "matrix");
  return m;
}

LLVMValueRef kj_matrix_element_at(kj_lowering *l, const kj_matrix *m, LLVMValueRef row,
                                  LLVMValueRef column)
{
  LLVMValueRef index = kj_extend_position(l, add32(l, mul32(l, row, m->columns), column));
  return LLVMBuildInBoundsGEP2(l->builder, m->type, m->memory, &index, 1, "");
}

LLVMValueRef kj_matrix_load_at(kj_lowering *l, const kj_matrix *m, LLVMValueRef row,
                               LLVMValueRef column)
{
  return LLVMBuildLoad2(l->builder, m->type, kj_matrix_element_at(l, m, row, column), "");
}

/* Where a lane's element is. transposed: an operand that lies k by n is described n by k. */
static LLVMValueRef place_at(kj_lowering *l, const kj_matrix *m, kj_mma_place place,
                             LLVMValueRef lane, bool is_transposed)
{
  LLVMValueRef group = LLVMBuildLShr(l->builder, lane, kj_const32(l, 2), ""),
               quad = and32(l, lane, 3);
  LLVMValueRef row = add32(l, group, kj_const32(l, place.row)),
               column = add32(l, mul32(l, quad, place.scale), kj_const32(l, place.column));
  return is_transposed ? kj_matrix_element_at(l, m, column, row)
                       : kj_matrix_element_at(l, m, row, column);
}

static uint32_t parts_of(kj_mma_kind kind)
{
  return kind == KJ_MMA_S4 || kind == KJ_MMA_U4 ? 8 : 1;
}

static LLVMValueRef lane_element(kj_lowering *l, LLVMValueRef fragment, uint32_t i)
{
  bool is_vector = LLVMGetTypeKind(LLVMTypeOf(fragment)) == LLVMVectorTypeKind;
  return is_vector ? LLVMBuildExtractElement(l->builder, fragment, kj_const32(l, i), "") : fragment;
}

static uint32_t count_elements(LLVMTypeRef fragment)
{
  return LLVMGetTypeKind(fragment) == LLVMVectorTypeKind ? LLVMGetVectorSize(fragment) : 1;
}

/* ---- products ---- */

typedef enum operand_role { ROLE_A, ROLE_B, ROLE_C } operand_role;

static kj_mma_place place_of(const kj_mma *mma, operand_role role, kj_mma_kind kind,
                             uint32_t element)
{
  return role == ROLE_C ? kj_place_result(element)
                        : kj_place_operand(kind, role == ROLE_A ? mma->m : mma->n, element);
}

static void gather(kj_lowering *l, const kj_tstmt *stmt, const kj_mma *mma, operand_role role,
                   const kj_matrix *m, LLVMValueRef rank)
{
  LLVMValueRef fragment = kj_warp_operand(l, stmt, role, rank), lane = and32(l, rank, WARP - 1);
  uint32_t count = count_elements(LLVMTypeOf(fragment)), parts = parts_of(m->kind);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t part = 0; part < parts; part++) {
      LLVMValueRef value = kj_matrix_widen(l, m->kind, lane_element(l, fragment, i), part);
      LLVMBuildStore(l->builder, value,
                     place_at(l, m, place_of(mma, role, m->kind, i * parts + part), lane,
                              role == ROLE_B));
    }
}

void kj_matrix_multiply(kj_lowering *l, const kj_mma *mma, const kj_matrix *a, const kj_matrix *b,
                        const kj_matrix *c)
{
  kj_counted_loop rows, depth, columns;
  kj_begin_vector_loop(l, &rows, kj_const32(l, 0), kj_const32(l, a->rows));
  kj_begin_vector_loop(l, &depth, kj_const32(l, 0), kj_const32(l, a->columns));
  LLVMValueRef x = kj_matrix_load_at(l, a, rows.counter, depth.counter);
  kj_begin_vector_loop(l, &columns, kj_const32(l, 0), kj_const32(l, b->columns));
  LLVMValueRef y = kj_matrix_load_at(l, b, depth.counter, columns.counter),
               sum = kj_matrix_load_at(l, c, rows.counter, columns.counter);
  LLVMBuildStore(l->builder, multiply_add(l, mma, x, y, sum),
                 kj_matrix_element_at(l, c, rows.counter, columns.counter));
  kj_end_vector_loop(l, &columns);
  kj_end_vector_loop(l, &depth);
  kj_end_vector_loop(l, &rows);
}

static void hand_out(kj_lowering *l, const kj_tstmt *stmt, const kj_mma *mma, const kj_matrix *c,
                     LLVMValueRef rank)
{
  LLVMTypeRef type = kj_register_type(l, stmt->value->type);
  LLVMValueRef lane = and32(l, rank, WARP - 1), fragment = LLVMGetPoison(type);
  for (uint32_t i = 0; i < count_elements(type); i++) {
    LLVMValueRef sum =
      LLVMBuildLoad2(l->builder, c->type, place_at(l, c, kj_place_result(i), lane, false), "");
    fragment = LLVMBuildInsertElement(l->builder, fragment, kj_matrix_narrow(l, mma, sum),
                                      kj_const32(l, i), "");
  }
  kj_set_lane_result(l, stmt, rank, fragment);
}

/* A loop over the warps that the call runs, and one over the lanes of each. */
LLVMValueRef kj_matrix_begin_warps(kj_lowering *l, kj_counted_loop *warps, LLVMValueRef *stop)
{
  *warps = (kj_counted_loop){ 0 };
  kj_begin_loop(l, warps, kj_cpu(l)->unit_first, kj_cpu(l)->unit_stop, kj_const32(l, WARP),
                "warps");
  *stop = kj_intrinsic2(l, "llvm.umin", add32(l, warps->counter, kj_const32(l, WARP)),
                        kj_cpu(l)->unit_stop);
  return warps->counter;
}

kj_parallel kj_matrix_begin_dependent_lanes(kj_lowering *l, kj_counted_loop *loop,
                                            LLVMValueRef first, LLVMValueRef stop)
{
  kj_parallel p = kj_begin_lanes(l, loop, first, stop);
  l->parallel_loop = NULL; /* the lanes have the matrices in common */
  return p;
}

void kj_cpu_mma(kj_lowering *l, const kj_tstmt *stmt)
{
  if (!stmt->var) return;
  const kj_texprs *args = &stmt->value->args;
  const kj_mma *mma = kj_find_mma(l->c->types, stmt->value->builtin, args->items[0]->type,
                                  args->items[1]->type, args->items[2]->type);
  uint32_t depth = mma->a == KJ_MMA_B1 ? mma->k / 32 : mma->k;
  kj_matrix operands[3] = { kj_new_matrix(l, mma->a, mma->m, depth),
                            kj_new_matrix(l, mma->b, depth, mma->n),
                            kj_new_matrix(l, mma->c, mma->m, mma->n) };
  kj_counted_loop warps, loop;
  LLVMValueRef stop, first = kj_matrix_begin_warps(l, &warps, &stop);
  kj_parallel p = kj_matrix_begin_dependent_lanes(l, &loop, first, stop);
  for (int role = ROLE_A; role <= ROLE_C; role++)
    gather(l, stmt, mma, (operand_role)role, &operands[role], loop.counter);
  kj_end_lanes(l, &loop, &p);
  kj_matrix_multiply(l, mma, &operands[0], &operands[1], &operands[2]);
  p = kj_matrix_begin_dependent_lanes(l, &loop, first, stop);
  hand_out(l, stmt, mma, &operands[2], loop.counter);
  kj_end_lanes(l, &loop, &p);
  kj_end_loop(l, &warps);
}

/* ---- fragments from and to shared memory ---- */

/* Where lane `lane` has its 4 bytes of matrix `index` (16 bits of them, `half`, where it is
 * transposed): in the row that another lane has given. */
static LLVMValueRef fragment_pointer(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef first,
                                     LLVMValueRef lane, uint32_t index, uint32_t half)
{
  bool is_transposed = stmt->value->builtin->operation & KJ_TRANSPOSED;
  LLVMValueRef group = LLVMBuildLShr(l->builder, lane, kj_const32(l, 2), ""),
               quad = and32(l, lane, 3);
  LLVMValueRef row = is_transposed ? add32(l, mul32(l, quad, 2), kj_const32(l, half)) : group,
               bytes = is_transposed ? mul32(l, group, 2) : mul32(l, quad, 4);
  LLVMValueRef giver = add32(l, first, add32(l, row, kj_const32(l, 8 * index)));
  giver = kj_intrinsic2(l, "llvm.umin", giver, kj_const32(l, kj_cpu(l)->thread_count - 1));
  LLVMValueRef address =
    LLVMBuildAdd(l->builder, kj_warp_operand(l, stmt, 0, giver), kj_extend_position(l, bytes), "");
  return LLVMBuildGEP2(l->builder, l->i8, kj_cpu(l)->scratch, &address, 1, "");
}

static LLVMTypeRef words_type(kj_lowering *l, uint32_t count, bool are_halves)
{
  return LLVMVectorType(are_halves ? l->i16 : l->i32, are_halves ? 2 * count : count);
}

static LLVMValueRef load_words(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef first,
                               LLVMValueRef lane, uint32_t count)
{
  bool are_halves = stmt->value->builtin->operation & KJ_TRANSPOSED;
  LLVMTypeRef type = words_type(l, count, are_halves), word = LLVMGetElementType(type);
  LLVMValueRef words = LLVMGetPoison(type);
  for (uint32_t i = 0; i < LLVMGetVectorSize(type); i++) {
    LLVMValueRef at = are_halves ? fragment_pointer(l, stmt, first, lane, i / 2, i % 2)
                                 : fragment_pointer(l, stmt, first, lane, i, 0);
    LLVMValueRef value = LLVMBuildLoad2(l->builder, word, at, "");
    LLVMSetAlignment(value, 1);
    words = LLVMBuildInsertElement(l->builder, words, value, kj_const32(l, i), "");
  }
  return words;
}

static void store_words(kj_lowering *l, const kj_tstmt *stmt, LLVMValueRef first, LLVMValueRef lane,
                        LLVMValueRef fragment, uint32_t count)
{
  bool are_halves = stmt->value->builtin->operation & KJ_TRANSPOSED;
  LLVMTypeRef type = words_type(l, count, are_halves);
  LLVMValueRef words = LLVMBuildBitCast(l->builder, fragment, type, "");
  for (uint32_t i = 0; i < LLVMGetVectorSize(type); i++) {
    LLVMValueRef at = are_halves ? fragment_pointer(l, stmt, first, lane, i / 2, i % 2)
                                 : fragment_pointer(l, stmt, first, lane, i, 0);
    LLVMSetAlignment(
      LLVMBuildStore(l->builder, LLVMBuildExtractElement(l->builder, words, kj_const32(l, i), ""),
                     at),
      1);
  }
}

void kj_cpu_fragment(kj_lowering *l, const kj_tstmt *stmt)
{
  const kj_texpr *e = stmt->value;
  uint32_t count = e->builtin->operation & KJ_MATRIX_COUNT;
  bool is_store = e->type == KJIT_VOID;
  if (!is_store && !stmt->var) return;
  kj_counted_loop warps, loop;
  LLVMValueRef stop, first = kj_matrix_begin_warps(l, &warps, &stop);
  kj_parallel p = kj_matrix_begin_dependent_lanes(l, &loop, first, stop);
  LLVMValueRef rank = loop.counter, lane = and32(l, rank, WARP - 1);
  LLVMBasicBlockRef active = kj_new_block(l, "lane");
  LLVMBuildCondBr(l->builder, kj_is_lane_active(l, stmt, rank), active, loop.loop.next);
  kj_move_to(l, active);
  if (is_store) store_words(l, stmt, first, lane, kj_warp_operand(l, stmt, 1, rank), count);
  else
    kj_set_lane_result(l, stmt, rank,
                       LLVMBuildBitCast(l->builder, load_words(l, stmt, first, lane, count),
                                        kj_register_type(l, e->type), ""));
  kj_branch(l, loop.loop.next);
  kj_end_lanes(l, &loop, &p);
  kj_end_loop(l, &warps);
}
