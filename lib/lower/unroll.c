/* Decides how loops are unrolled: sets the properties of loops for LLVM, and limits the number of
 * copies. */
#include "lower/instruction.h"

static LLVMMetadataRef unroll_property(kl_lowering *l, int unroll)
{
  KJ_ASSERT(unroll != KJ_UNROLL_NONE && unroll != KJ_UNROLL_NEVER);
  if (unroll == KJ_UNROLL_FULL) {
    LLVMMetadataRef full = kl_metadata_string(l, "llvm.loop.unroll.full");
    return LLVMMDNodeInContext2(l->context, &full, 1);
  }
  return LLVMMDNodeInContext2(l->context,
                              (LLVMMetadataRef[]){ kl_metadata_string(l, "llvm.loop.unroll.count"),
                                                   kl_metadata_int(l, unroll) },
                              2);
}

LLVMMetadataRef kl_no_unrolling(kl_lowering *l)
{
  LLVMMetadataRef text = kl_metadata_string(l, "llvm.loop.unroll.disable");
  return LLVMMDNodeInContext2(l->context, &text, 1);
}

/* Returns the id of a loop that must not be copied. It must not be vectorized either, because
 * vectorization adds a copy for the remaining iterations. */
LLVMMetadataRef kl_one_copy_id(kl_lowering *l)
{
  LLVMMetadataRef properties[] = { kl_no_unrolling(l),
                                   kl_flag_property(l, "llvm.loop.vectorize.enable", false) };
  return kl_loop_id(l, properties, 2);
}

void kl_mark_latch(kl_lowering *l, LLVMValueRef branch, int unroll)
{
  if (unroll == KJ_UNROLL_NONE && !l->is_checked_version) return;
  if (unroll == KJ_UNROLL_NONE || unroll == KJ_UNROLL_NEVER) {
    kl_set_metadata(l, branch, "llvm.loop", kl_one_copy_id(l));
    return;
  }
  LLVMMetadataRef property = unroll_property(l, unroll);
  kl_set_metadata(l, branch, "llvm.loop", kl_loop_id(l, &property, 1));
}

/* Limits for unrolling loops without @unroll. MOST_UNROLLED is the maximum number of expressions in
 * all copies. */
enum { MOST_UNROLLED = 1024, MOST_ITERATIONS = 64 };

static void count_expr(void *data, kt_expr **expr)
{
  (void)expr;
  ++*(uint64_t *)data;
}

/* Counts statements. An inner loop counts as MOST_UNROLLED, because its number of iterations is not
 * known here. */
static void count_stmt(void *data, kt_stmt *stmt)
{
  *(uint64_t *)data += stmt->kind == KJ_TS_FOR || stmt->kind == KJ_TS_WHILE ? MOST_UNROLLED : 1;
}

static bool is_constant(const kt_expr *expr) { return expr->kind == KJ_T_CONST; }

static bool has_constant_bounds(const kt_stmt *stmt)
{
  return stmt->kind == KJ_TS_FOR && is_constant(stmt->first) && is_constant(stmt->stop) &&
         (!stmt->step || is_constant(stmt->step));
}

static uint64_t count_iterations(const kt_stmt *stmt)
{
  KJ_ASSERT(has_constant_bounds(stmt));
  __int128 step = stmt->step ? stmt->step->integer : 1,
           distance = step > 0 ? (__int128)stmt->stop->integer - stmt->first->integer
                               : (__int128)stmt->first->integer - stmt->stop->integer;
  __int128 size = step > 0 ? step : -step;
  return size && distance > 0 ? (uint64_t)((distance + size - 1) / size) : 0;
}

static void count_plain_stmt(void *data, kt_stmt *stmt)
{
  (void)stmt;
  ++*(uint64_t *)data;
}

uint64_t kl_enter_copies(kl_lowering *l, const kt_stmt *stmt)
{
  uint64_t outer = l->copies, copies = stmt->unroll > 0 ? (uint64_t)stmt->unroll : 1, size = 0,
           most = l->c->budget->limits[KJ_LIMIT_UNROLLED], made;
  if (stmt->unroll == KJ_UNROLL_NONE) return outer;
  if (has_constant_bounds(stmt)) {
    uint64_t count = count_iterations(stmt);
    if (stmt->unroll == KJ_UNROLL_FULL || count < copies) copies = count ? count : 1;
  }
  if (copies == 1) return outer;
  kt_walk_tstmts(&((kt_stmt *)stmt)->body, count_plain_stmt, count_expr, &size);
  if (__builtin_mul_overflow(outer, copies, &l->copies) ||
      __builtin_mul_overflow(l->copies, size ? size : 1, &made))
    l->copies = made = UINT64_MAX - 1;
  if (made > most)
    kt_check_limit(l->c, KJ_LIMIT_UNROLLED, made, stmt->location,
                   "@unroll makes %llu copies of a loop body with %llu expressions, and the "
                   "unrolled loops around it multiply them by %llu; unroll by a smaller factor",
                   (unsigned long long)copies, (unsigned long long)size, (unsigned long long)outer);
  if (made > l->unrolled_size) l->unrolled_size = made;
  return outer;
}

/* Returns whether this version of the kernel does not unroll the loop. If the kernel also has an
 * unchecked version, the checked version runs only at array edges and for failing threads, so large
 * loops are unrolled only in the unchecked version. */
static bool is_left_whole(const kl_lowering *l, const kt_stmt *stmt)
{
  uint64_t size = 0;
  if (!l->c->unchecked || stmt->unroll == KJ_UNROLL_NONE || l->copies == 1) return false;
  kt_walk_tstmts(&((kt_stmt *)stmt)->body, count_plain_stmt, count_expr, &size);
  return size && l->copies > MOST_UNROLLED / size;
}

int kl_unrolling_of(const kl_lowering *l, const kt_stmt *stmt)
{
  if (is_left_whole(l, stmt)) return KJ_UNROLL_NEVER;
  if (stmt->unroll != KJ_UNROLL_NONE || !has_constant_bounds(stmt)) return stmt->unroll;
  uint64_t count = count_iterations(stmt);
  if (count > MOST_ITERATIONS) return KJ_UNROLL_NONE;
  uint64_t size = 0;
  kt_walk_tstmts(&((kt_stmt *)stmt)->body, count_stmt, count_expr, &size);
  return count * size <= MOST_UNROLLED ? KJ_UNROLL_FULL : KJ_UNROLL_NONE;
}
