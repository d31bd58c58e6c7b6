/* while and for.
 *
 * `for` visits what Python's range does, for every first, stop and step, without overflow: a step
 * of 1 cannot; other steps count down what is left. */
#include "lower/lower.h"

/* ---- properties ---- */

static LLVMMetadataRef unroll_property(kj_lowering *l, int unroll)
{
  if (unroll == KJ_UNROLL_FULL) {
    LLVMMetadataRef full = kj_metadata_string(l, "llvm.loop.unroll.full");
    return LLVMMDNodeInContext2(l->context, &full, 1);
  }
  return LLVMMDNodeInContext2(l->context,
                              (LLVMMetadataRef[]){ kj_metadata_string(l, "llvm.loop.unroll.count"),
                                                   kj_metadata_int(l, unroll) },
                              2);
}

/* A version that runs only to fail is not copied. */
static LLVMMetadataRef no_unrolling(kj_lowering *l)
{
  LLVMMetadataRef text = kj_metadata_string(l, "llvm.loop.unroll.disable");
  return LLVMMDNodeInContext2(l->context, &text, 1);
}

static void mark_latch(kj_lowering *l, LLVMValueRef branch, int unroll)
{
  if (unroll == KJ_UNROLL_NONE && !l->is_checked_version) return;
  LLVMMetadataRef property =
    unroll == KJ_UNROLL_NONE ? no_unrolling(l) : unroll_property(l, unroll);
  kj_set_metadata(l, branch, "llvm.loop", kj_loop_id(l, &property, 1));
}

/* In expressions, all copies together: what is unrolled without being asked, and what @unroll may
 * ask for. */
enum { MOST_UNROLLED = 1024, MOST_ITERATIONS = 64, MOST_COPIED = 1 << 15 };

static void count_expr(void *data, kj_texpr **expr)
{
  (void)expr;
  ++*(uint64_t *)data;
}

/* Loops within and calls may be far larger than they look. */
static void count_stmt(void *data, kj_tstmt *stmt)
{
  *(uint64_t *)data += stmt->kind == KJ_TS_FOR || stmt->kind == KJ_TS_WHILE ? MOST_UNROLLED : 1;
}

static bool is_constant(const kj_texpr *expr) { return expr->kind == KJ_T_CONST; }

static bool has_constant_bounds(const kj_tstmt *stmt)
{
  return stmt->kind == KJ_TS_FOR && is_constant(stmt->first) && is_constant(stmt->stop) &&
         (!stmt->step || is_constant(stmt->step));
}

static uint64_t count_iterations(const kj_tstmt *stmt)
{
  __int128 step = stmt->step ? stmt->step->integer : 1,
           distance = step > 0 ? (__int128)stmt->stop->integer - stmt->first->integer
                               : (__int128)stmt->first->integer - stmt->stop->integer;
  __int128 size = step > 0 ? step : -step;
  return size && distance > 0 ? (uint64_t)((distance + size - 1) / size) : 0;
}

static void count_plain_stmt(void *data, kj_tstmt *stmt)
{
  (void)stmt;
  ++*(uint64_t *)data;
}

/* Called before a loop is lowered: loops in loops multiply. Returns what to put back into l->copies
 * after it. */
static uint64_t enter_copies(kj_lowering *l, const kj_tstmt *stmt)
{
  uint64_t outer = l->copies ? l->copies : 1,
           copies = stmt->unroll > 0 ? (uint64_t)stmt->unroll : 1, size = 0;
  l->copies = outer;
  if (stmt->unroll == KJ_UNROLL_NONE) return outer;
  if (has_constant_bounds(stmt)) {
    uint64_t count = count_iterations(stmt);
    if (stmt->unroll == KJ_UNROLL_FULL || count < copies) copies = count ? count : 1;
  }
  if (copies == 1) return outer;
  kj_walk_tstmts(&((kj_tstmt *)stmt)->body, count_plain_stmt, count_expr, &size);
  if (__builtin_mul_overflow(outer, copies, &l->copies) || l->copies > MOST_COPIED ||
      l->copies * size > MOST_COPIED)
    kj_fail(l->c, stmt->location, KJIT_ERROR_UNSUPPORTED,
            "@unroll makes %llu copies of this loop's body of %llu expressions, %llu times by the "
            "loops around it; the limit is %d expressions: unroll by a factor",
            (unsigned long long)copies, (unsigned long long)size, (unsigned long long)outer,
            MOST_COPIED);
  return outer;
}

/* Small loops with constant bounds are unrolled without being asked: LLVM's own threshold is lower,
 * and the addresses of a tile's rows become constants. */
static int unrolling_of(const kj_tstmt *stmt)
{
  if (stmt->unroll != KJ_UNROLL_NONE || !has_constant_bounds(stmt)) return stmt->unroll;
  uint64_t count = count_iterations(stmt);
  if (count > MOST_ITERATIONS) return KJ_UNROLL_NONE;
  uint64_t size = 0;
  kj_walk_tstmts(&((kj_tstmt *)stmt)->body, count_stmt, count_expr, &size);
  return count * size <= MOST_UNROLLED ? KJ_UNROLL_FULL : KJ_UNROLL_NONE;
}

/* ---- while ---- */

void kj_lower_while(kj_lowering *l, const kj_tstmt *stmt)
{
  l->has_loops = true;
  uint64_t copies = enter_copies(l, stmt);
  LLVMBasicBlockRef head = kj_new_block(l, "while"), body = kj_new_block(l, "while.body"),
                    end = kj_new_block(l, "while.end");
  LLVMBasicBlockRef latch = kj_new_block(l, "while.next");
  kj_loop loop = { .outer = l->loop, .leave = end, .next = latch };
  LLVMBuildBr(l->builder, head);
  kj_move_to(l, head);
  LLVMBuildCondBr(l->builder, kj_lower_condition(l, stmt->value), body, end);
  kj_move_to(l, body);
  l->loop = &loop;
  kj_lower_stmts(l, &stmt->body);
  l->loop = loop.outer;
  kj_branch(l, latch);
  kj_move_to(l, latch);
  mark_latch(l, LLVMBuildBr(l->builder, head), stmt->unroll);
  kj_move_to(l, end);
  l->copies = copies;
}

/* ---- counted loops ---- */

void kj_begin_loop(kj_lowering *l, kj_counted_loop *loop, LLVMValueRef first, LLVMValueRef stop,
                   LLVMValueRef step, const char *name)
{
  LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder), body;
  loop->header = kj_new_block(l, name);
  body = kj_new_block(l, "body");
  loop->step = step;
  loop->loop =
    (kj_loop){ .outer = l->loop, .next = kj_new_block(l, "next"), .leave = kj_new_block(l, "end") };
  LLVMBuildBr(l->builder, loop->header);
  kj_move_to(l, loop->header);
  loop->counter = LLVMBuildPhi(l->builder, LLVMTypeOf(first), "");
  LLVMAddIncoming(loop->counter, &first, &before, 1);
  LLVMBuildCondBr(l->builder, LLVMBuildICmp(l->builder, LLVMIntULT, loop->counter, stop, ""), body,
                  loop->loop.leave);
  kj_move_to(l, body);
  l->loop = &loop->loop;
}

void kj_end_loop(kj_lowering *l, kj_counted_loop *loop)
{
  kj_branch(l, loop->loop.next);
  l->loop = loop->loop.outer;
  kj_move_to(l, loop->loop.next);
  LLVMValueRef more = LLVMBuildAdd(l->builder, loop->counter, loop->step, "");
  if (LLVMIsAInstruction(more)) LLVMSetNUW(more, true);
  LLVMBasicBlockRef from = loop->loop.next;
  LLVMAddIncoming(loop->counter, &more, &from, 1);
  LLVMValueRef branch = LLVMBuildBr(l->builder, loop->header);
  if (loop->id) kj_set_metadata(l, branch, "llvm.loop", loop->id);
  kj_move_to(l, loop->loop.leave);
}

/* ---- for ---- */

typedef struct bounds {
  LLVMValueRef first, stop, step;
  bool is_signed;
} bounds;

static LLVMValueRef lower_bound(kj_lowering *l, const kj_tstmt *stmt, const kj_texpr *expr)
{
  return stmt->var->is_narrow ? kj_lower_index32(l, expr) : kj_lower_expr(l, expr);
}

static LLVMValueRef less(kj_lowering *l, const bounds *b, LLVMValueRef x, LLVMValueRef y)
{
  return LLVMBuildICmp(l->builder, b->is_signed ? LLVMIntSLT : LLVMIntULT, x, y, "");
}

static void lower_loop_body(kj_lowering *l, const kj_tstmt *stmt, kj_loop *loop, LLVMValueRef value)
{
  kj_set_variable(l, stmt->var, value);
  l->loop = loop;
  kj_lower_stmts(l, &stmt->body);
  l->loop = loop->outer;
  kj_branch(l, loop->next);
  kj_move_to(l, loop->next);
}

/* Steps up by what cannot pass the largest number of the type: for (i = first; i < stop; i +=
 * step). */
static void lower_plain_for(kj_lowering *l, const kj_tstmt *stmt, const bounds *b)
{
  LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder), head = kj_new_block(l, "for"),
                    body = kj_new_block(l, "for.body");
  kj_loop loop = { .outer = l->loop,
                   .next = kj_new_block(l, "for.next"),
                   .leave = kj_new_block(l, "for.end") };
  LLVMBuildBr(l->builder, head);
  kj_move_to(l, head);
  LLVMValueRef i = LLVMBuildPhi(l->builder, LLVMTypeOf(b->first), stmt->var->name);
  LLVMBuildCondBr(l->builder, less(l, b, i, b->stop), body, loop.leave);
  kj_move_to(l, body);
  lower_loop_body(l, stmt, &loop, i);
  LLVMValueRef more = LLVMBuildAdd(l->builder, i, b->step, "");
  if (b->is_signed) LLVMSetNSW(more, true);
  else LLVMSetNUW(more, true);
  mark_latch(l, LLVMBuildBr(l->builder, head), unrolling_of(stmt));
  LLVMAddIncoming(i, (LLVMValueRef[]){ b->first, more }, (LLVMBasicBlockRef[]){ before, loop.next },
                  2);
  kj_move_to(l, loop.leave);
}

/* How far it is to stop, and the size of a step, as unsigned numbers: they fit even where the
 * signed difference does not. */
static void measure(kj_lowering *l, const bounds *b, LLVMValueRef *runs, LLVMValueRef *distance,
                    LLVMValueRef *size)
{
  LLVMBuilderRef at = l->builder;
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(b->step));
  LLVMValueRef up = less(l, b, zero, b->step),
               down = b->is_signed ? less(l, b, b->step, zero) : LLVMConstInt(l->i1, 0, false);
  LLVMValueRef runs_up = LLVMBuildAnd(at, up, less(l, b, b->first, b->stop), ""),
               runs_down = LLVMBuildAnd(at, down, less(l, b, b->stop, b->first), "");
  *runs = LLVMBuildOr(at, runs_up, runs_down, "");
  *distance = LLVMBuildSelect(at, down, LLVMBuildSub(at, b->first, b->stop, ""),
                              LLVMBuildSub(at, b->stop, b->first, ""), "");
  *size = LLVMBuildSelect(at, down, LLVMBuildSub(at, zero, b->step, ""), b->step, "");
}

/* A constant step: the number of iterations by a division that becomes a multiplication, a counter
 * from 0, i = first + counter * step. */
static void lower_counted_for(kj_lowering *l, const kj_tstmt *stmt, const bounds *b)
{
  LLVMTypeRef type = LLVMTypeOf(b->first);
  LLVMValueRef runs, distance, size, one = LLVMConstInt(type, 1, false);
  measure(l, b, &runs, &distance, &size);
  LLVMValueRef steps =
    LLVMBuildAdd(l->builder,
                 LLVMBuildUDiv(l->builder, LLVMBuildSub(l->builder, distance, one, ""), size, ""),
                 one, "");
  LLVMValueRef count = LLVMBuildSelect(l->builder, runs, steps, LLVMConstNull(type), "");
  bounds counter = { .first = LLVMConstNull(type), .stop = count, .step = one };
  LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder), head = kj_new_block(l, "for"),
                    body = kj_new_block(l, "for.body");
  kj_loop loop = { .outer = l->loop,
                   .next = kj_new_block(l, "for.next"),
                   .leave = kj_new_block(l, "for.end") };
  LLVMBuildBr(l->builder, head);
  kj_move_to(l, head);
  LLVMValueRef k = LLVMBuildPhi(l->builder, type, ""),
               i = LLVMBuildPhi(l->builder, type, stmt->var->name);
  LLVMBuildCondBr(l->builder, less(l, &counter, k, counter.stop), body, loop.leave);
  kj_move_to(l, body);
  lower_loop_body(l, stmt, &loop, i);
  LLVMValueRef next_k = LLVMBuildAdd(l->builder, k, one, ""),
               next_i = LLVMBuildAdd(l->builder, i, b->step, "");
  LLVMSetNUW(next_k, true);
  mark_latch(l, LLVMBuildBr(l->builder, head), unrolling_of(stmt));
  LLVMBasicBlockRef from[2] = { before, loop.next };
  LLVMAddIncoming(k, (LLVMValueRef[]){ counter.first, next_k }, from, 2);
  LLVMAddIncoming(i, (LLVMValueRef[]){ b->first, next_i }, from, 2);
  kj_move_to(l, loop.leave);
}

/* Any step: tested before it is taken. */
static void lower_general_for(kj_lowering *l, const kj_tstmt *stmt, const bounds *b)
{
  LLVMTypeRef type = LLVMTypeOf(b->first);
  LLVMValueRef runs, distance, size;
  measure(l, b, &runs, &distance, &size);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder), body = kj_new_block(l, "for.body"),
                    step = kj_new_block(l, "for.step");
  kj_loop loop = { .outer = l->loop,
                   .next = kj_new_block(l, "for.next"),
                   .leave = kj_new_block(l, "for.end") };
  LLVMBuildCondBr(l->builder, runs, body, loop.leave);
  kj_move_to(l, body);
  LLVMValueRef i = LLVMBuildPhi(l->builder, type, stmt->var->name),
               left = LLVMBuildPhi(l->builder, type, "");
  lower_loop_body(l, stmt, &loop, i);
  LLVMBuildCondBr(l->builder, LLVMBuildICmp(l->builder, LLVMIntUGT, left, size, ""), step,
                  loop.leave);
  kj_move_to(l, step);
  LLVMValueRef next_left = LLVMBuildSub(l->builder, left, size, ""),
               next_i = LLVMBuildAdd(l->builder, i, b->step, "");
  mark_latch(l, LLVMBuildBr(l->builder, body), stmt->unroll);
  LLVMBasicBlockRef from[2] = { before, step };
  LLVMAddIncoming(i, (LLVMValueRef[]){ b->first, next_i }, from, 2);
  LLVMAddIncoming(left, (LLVMValueRef[]){ distance, next_left }, from, 2);
  kj_move_to(l, loop.leave);
}

static bool is_one(LLVMValueRef value)
{
  return LLVMIsAConstantInt(value) && LLVMConstIntGetZExtValue(value) == 1;
}

/* The range that pass/range.c found leaves room for one more step. */
static bool has_room(const kj_tstmt *stmt, LLVMValueRef step)
{
  if (!LLVMIsAConstantInt(step) || !stmt->var->range.known) return false;
  int64_t by = LLVMConstIntGetSExtValue(step),
          most = LLVMGetIntTypeWidth(LLVMTypeOf(step)) == 32 ? INT32_MAX : INT64_MAX;
  return by > 0 && stmt->var->range.most <= most - by;
}

void kj_lower_for(kj_lowering *l, const kj_tstmt *stmt)
{
  bounds b = { .first = lower_bound(l, stmt, stmt->first),
               .stop = lower_bound(l, stmt, stmt->stop),
               .is_signed = kj_is_signed_type(l, stmt->var->type) };
  b.step =
    stmt->step ? lower_bound(l, stmt, stmt->step) : LLVMConstInt(LLVMTypeOf(b.first), 1, false);
  if (LLVMIsNull(b.step)) return;
  l->has_loops = true;
  uint64_t copies = enter_copies(l, stmt);
  if (is_one(b.step) || (b.is_signed && has_room(stmt, b.step))) lower_plain_for(l, stmt, &b);
  else if (LLVMIsAConstantInt(b.step)) lower_counted_for(l, stmt, &b);
  else lower_general_for(l, stmt, &b);
  l->copies = copies;
}
