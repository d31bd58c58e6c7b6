/* Lowers while, for, and loops that other parts of lowering build.
 *
 * `for` visits the same values as Python's range for every first, stop and step, without overflow.
 * With a step of 1, the counter cannot overflow. With any other step it could overflow, so the loop
 * counts down the distance that remains to its stop. */
#include "lower/instruction.h"

/* ---- loops in two versions (pass/loop_versions.c) ----
 *
 * The first version omits the checks that are hoisted to the loop's start; the second version has
 * them.
 *
 * Both versions are lowered from the same tree. While the unchecked version is lowered, the marks
 * of its hoisted checks (is_checked) are removed. Functions that are not inlined are lowered after
 * all marks are restored. */

static void lower_version(kl_lowering *l, const kt_stmt *loop)
{
  if (loop->kind == KJ_TS_FOR) kl_lower_for(l, loop);
  else l->target->range(l, loop);
}

/* ---- marks of checks ---- */

/* Collects the marks to remove. In the unchecked version of a surrounding loop, some of these marks
 * have been removed already. */
static kt_loop_checks take_marks(kl_lowering *l, const kt_loop_checks *hoisted)
{
  kt_loop_checks taken = { 0 };
  for (size_t i = 0; i < hoisted->exprs.count; i++)
    if (hoisted->exprs.items[i]->is_checked)
      KJ_PUSH(l->c->arena, &taken.exprs, hoisted->exprs.items[i]);
  for (size_t i = 0; i < hoisted->stores.count; i++)
    if (hoisted->stores.items[i]->is_checked)
      KJ_PUSH(l->c->arena, &taken.stores, hoisted->stores.items[i]);
  return taken;
}

static void set_marks(const kt_loop_checks *checks, bool is_checked)
{
  for (size_t i = 0; i < checks->exprs.count; i++) {
    checks->exprs.items[i]->is_checked = is_checked;
    checks->exprs.items[i]->is_left_out = !is_checked;
  }
  for (size_t i = 0; i < checks->stores.count; i++) {
    checks->stores.items[i]->is_checked = is_checked;
    checks->stores.items[i]->is_left_out = !is_checked;
  }
}

/* ---- versions ---- */

static LLVMValueRef lower_conditions(kl_lowering *l, const kt_exprs *conditions)
{
  KJ_ASSERT(conditions->count);
  LLVMValueRef hold = LLVMConstInt(l->i1, 1, false);
  for (size_t i = 0; i < conditions->count; i++)
    hold = kl_and(l, hold, kl_lower_condition(l, conditions->items[i]));
  return hold;
}

void kl_lower_loop(kl_lowering *l, const kt_stmt *loop)
{
  KJ_ASSERT(loop->kind == KJ_TS_FOR || kt_flow_of(loop) == KJ_FLOW_RANGE);
  kt_loop_checks taken = { 0 };
  if (loop->hoisted && !l->is_checked_version) taken = take_marks(l, loop->hoisted);
  if (!taken.exprs.count && !taken.stores.count) {
    lower_version(l, loop);
    return;
  }
  LLVMValueRef hold = lower_conditions(l, &loop->indices);
  LLVMBasicBlockRef unchecked = kl_new_block(l, "unchecked"), checked = kl_new_block(l, "checked"),
                    end = kl_new_block(l, "versions.end");
  kl_set_likely(l, kl_cond_br(l, hold, unchecked, checked), true);
  kl_move_to(l, unchecked);
  set_marks(&taken, false);
  lower_version(l, loop);
  set_marks(&taken, true);
  kl_branch(l, end);
  kl_move_to(l, checked);
  l->is_checked_version = true;
  lower_version(l, loop);
  l->is_checked_version = false;
  kl_go_on_in(l, end);
}

/* ---- while ---- */

/* A `while` loop that is unrolled into rounds of `count` iterations, with one interrupt poll at the
 * end of each round. `head` starts a round; `at` is the index of the iteration within the round. */
typedef struct rounds {
  uint64_t count;
  LLVMBasicBlockRef head;
  LLVMValueRef at;
} rounds;

/* Begins rounds, unless the unrolling of surrounding loops already makes many copies of this
 * loop. */
static rounds begin_rounds(kl_lowering *l, const kt_stmt *stmt)
{
  enum { MOST_ROUNDS = 64 };
  rounds r = { .count = stmt->poll };
  if (l->is_short_version || stmt->poll <= 1 || l->copies * stmt->poll > MOST_ROUNDS)
    return (rounds){ 0 };
  LLVMValueRef zero = kl_const32(l, 0);
  r.head = kl_new_block(l, "while.round");
  kl_go_on_in(l, r.head);
  LLVMBasicBlockRef head = kl_new_block(l, "while");
  kl_go_on_in(l, head);
  r.at = LLVMBuildPhi(l->builder, l->i32, "round");
  LLVMAddIncoming(r.at, &zero, &r.head, 1);
  return r;
}

/* Ends an iteration and branches to the next iteration of the round. Returns the block in which the
 * next round begins. */
static LLVMBasicBlockRef end_rounds(kl_lowering *l, const rounds *r, LLVMBasicBlockRef head)
{
  LLVMBasicBlockRef here = kl_here(l), over = kl_new_block(l, "while.over");
  LLVMValueRef next = kl_add(l, r->at, kl_const32(l, 1));
  LLVMValueRef branch =
    kl_cond_br(l, kl_icmp(l, LLVMIntULT, next, kl_const32(l, (int64_t)r->count)), head, over);
  kl_mark_latch(l, branch, KJ_UNROLL_FULL);
  LLVMAddIncoming(r->at, &next, &here, 1);
  kl_move_to(l, over);
  return r->head;
}

static void lower_while_version(kl_lowering *l, const kt_stmt *stmt)
{
  rounds r = begin_rounds(l, stmt);
  LLVMBasicBlockRef head = r.count ? kl_here(l) : kl_new_block(l, "while"),
                    body = kl_new_block(l, "while.body"), end = kl_new_block(l, "while.end"),
                    latch = kl_new_block(l, "while.next"), again = head;
  kl_loop loop = { .outer = l->loop, .leave = end, .next = latch };
  LLVMValueRef turns = stmt->only_waits ? kl_begin_turns(l) : NULL;
  if (!r.count) kl_go_on_in(l, head);
  kl_go_on_if(l, kl_lower_condition(l, stmt->value), body, end);
  l->loop = &loop;
  kl_lower_stmts(l, &stmt->body);
  l->loop = loop.outer;
  kl_go_on_in(l, latch);
  if (r.count) again = end_rounds(l, &r, head);
  if (stmt->poll) kl_poll(l, stmt->location, stmt->poll_cost * (r.count ? r.count : 1));
  if (turns) kl_count_turn(l, turns, stmt->location);
  LLVMValueRef branch = kl_br(l, again);
  if (r.count) {
    LLVMMetadataRef property = kl_no_unrolling(l);
    kl_set_metadata(l, branch, "llvm.loop", kl_loop_id(l, &property, 1));
  } else kl_mark_latch(l, branch, stmt->unroll);
  kl_move_to(l, end);
}

/* Lowers a `while` loop in two versions. If the loop has no iterations, the computed distance wraps
 * around, which does not matter, because both versions are then correct. */
static void lower_while_twice(kl_lowering *l, const kt_stmt *stmt)
{
  kl_polled_twice t = { .loop = stmt };
  kt_counter counter;
  bool is_counted = kt_find_counter(stmt, &counter);
  KJ_ASSERT(is_counted);
  LLVMValueRef distance = kl_sub(l, kl_lower_expr(l, counter.stop), kl_lower_expr(l, counter.at));
  kl_begin_short_of(l, &t, distance);
  lower_while_version(l, stmt);
  kl_begin_long(l, &t);
  lower_while_version(l, stmt);
  kl_end_long(l, &t);
}

void kl_lower_while(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_WHILE);
  l->loop_count++;
  uint64_t copies = kl_enter_copies(l, stmt);
  if (kl_is_polled_twice(l, stmt)) lower_while_twice(l, stmt);
  else lower_while_version(l, stmt);
  l->copies = copies;
}

/* ---- counted loops ---- */

void kl_begin_loop(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first, LLVMValueRef stop,
                   LLVMValueRef step, const char *name)
{
  KJ_ASSERT(LLVMTypeOf(first) == LLVMTypeOf(stop) && LLVMTypeOf(first) == LLVMTypeOf(step));
  LLVMBasicBlockRef before = kl_here(l), body;
  loop->header = kl_new_block(l, name);
  body = kl_new_block(l, "body");
  loop->step = step;
  loop->loop =
    (kl_loop){ .outer = l->loop, .next = kl_new_block(l, "next"), .leave = kl_new_block(l, "end") };
  kl_go_on_in(l, loop->header);
  loop->counter = kl_phi(l, LLVMTypeOf(first));
  LLVMAddIncoming(loop->counter, &first, &before, 1);
  kl_cond_br(l, kl_icmp(l, loop->is_signed ? LLVMIntSLT : LLVMIntULT, loop->counter, stop), body,
             loop->loop.leave);
  kl_move_to(l, body);
  l->loop = &loop->loop;
}

void kl_end_loop(kl_lowering *l, kl_counted_loop *loop)
{
  KJ_ASSERT(l->loop == &loop->loop);
  if (kl_here(l) != loop->loop.next)
    /* in a thread loop, lower_threads has ended each thread, so the builder is already at the
     * end */
    kl_branch(l, loop->loop.next);
  l->loop = loop->loop.outer;
  kl_move_to(l, loop->loop.next);
  if (loop->polled && loop->polled->poll)
    kl_poll(l, loop->polled->location, loop->polled->poll_cost);
  LLVMBasicBlockRef latch = kl_here(l);
  LLVMValueRef more = kl_add(l, loop->counter, loop->step);
  if (LLVMIsAInstruction(more)) LLVMSetNUW(more, true);
  if (LLVMIsAInstruction(more)) LLVMSetNSW(more, loop->is_signed);
  LLVMAddIncoming(loop->counter, &more, &latch, 1);
  LLVMValueRef branch = kl_br(l, loop->header);
  if (loop->id) kl_set_metadata(l, branch, "llvm.loop", loop->id);
  kl_move_to(l, loop->loop.leave);
}

/* ---- for ---- */

typedef struct bounds {
  LLVMValueRef first, stop, step;
  bool is_signed;
} bounds;

static LLVMValueRef lower_bound(kl_lowering *l, const kt_stmt *stmt, const kt_expr *expr)
{
  return stmt->var->is_narrow ? kl_lower_index32(l, expr) : kl_lower_expr(l, expr);
}

static LLVMValueRef less(kl_lowering *l, const bounds *b, LLVMValueRef x, LLVMValueRef y)
{
  return kl_icmp(l, b->is_signed ? LLVMIntSLT : LLVMIntULT, x, y);
}

/* Lowers the body and returns the block in which an iteration ends. */
static LLVMBasicBlockRef lower_loop_body(kl_lowering *l, const kt_stmt *stmt, kl_loop *loop,
                                         LLVMValueRef value, bool polls)
{
  kl_set_variable(l, stmt->var, value);
  l->loop = loop;
  kl_lower_stmts(l, &stmt->body);
  l->loop = loop->outer;
  kl_go_on_in(l, loop->next);
  if (polls) kl_poll(l, stmt->location, stmt->poll_cost);
  return kl_here(l);
}

/* If the loop does not poll in each iteration, divides it into chunks and sets *b to the bounds of
 * a chunk. No chunks are needed if a chunk's span does not fit into the counter's type, because the
 * loop then has fewer iterations than a chunk. Returns the block to which the loop branches when it
 * reaches its stop. */
static LLVMBasicBlockRef begin_chunks(kl_lowering *l, const kt_stmt *stmt, bounds *b,
                                      LLVMBasicBlockRef leave, LLVMTypeRef other, kl_chunks *chunks)
{
  uint64_t chunk = kl_chunk_of(l, stmt), step = LLVMConstIntGetZExtValue(b->step), span;
  unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(b->first));
  *chunks = (kl_chunks){ .is_signed = b->is_signed, .other_type = other };
  if (chunk <= 1 || __builtin_mul_overflow(chunk, step, &span) || span >> (bits - 1)) return leave;
  kl_begin_chunks(l, chunks, b->first, b->stop, span, leave);
  b->first = chunks->first;
  b->stop = chunks->stop;
  return chunks->end;
}

/* Lowers for (i = first; i < stop; i += step). The step must not overflow the counter's type. */
static void lower_plain_for(kl_lowering *l, const kt_stmt *stmt, bounds *b)
{
  LLVMBasicBlockRef head = kl_new_block(l, "for"), body = kl_new_block(l, "for.body");
  kl_loop loop = { .outer = l->loop,
                   .next = kl_new_block(l, "for.next"),
                   .leave = kl_new_block(l, "for.end") };
  kl_chunks chunks;
  LLVMBasicBlockRef end = begin_chunks(l, stmt, b, loop.leave, NULL, &chunks), before = kl_here(l);
  kl_go_on_in(l, head);
  LLVMValueRef i = LLVMBuildPhi(kl_next(l), LLVMTypeOf(b->first), stmt->var->name);
  kl_cond_br(l, less(l, b, i, b->stop), body, end);
  kl_move_to(l, body);
  LLVMBasicBlockRef latch = lower_loop_body(l, stmt, &loop, i, kl_chunk_of(l, stmt) == 1);
  LLVMValueRef more = kl_add(l, i, b->step);
  if (b->is_signed) LLVMSetNSW(more, true);
  else LLVMSetNUW(more, true);
  kl_mark_latch(l, kl_br(l, head), kl_unrolling_of(l, stmt));
  LLVMAddIncoming(i, (LLVMValueRef[]){ b->first, more }, (LLVMBasicBlockRef[]){ before, latch }, 2);
  if (chunks.end) {
    kl_move_to(l, chunks.end);
    kl_end_chunks(l, &chunks, i, stmt->location);
  }
  kl_move_to(l, loop.leave);
}

/* Computes the distance to stop, and the absolute value of the step, as unsigned numbers; the
 * signed difference could overflow. */
static void measure(kl_lowering *l, const bounds *b, LLVMValueRef *runs, LLVMValueRef *distance,
                    LLVMValueRef *size)
{
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(b->step));
  LLVMValueRef up = less(l, b, zero, b->step),
               down = b->is_signed ? less(l, b, b->step, zero) : LLVMConstInt(l->i1, 0, false);
  LLVMValueRef runs_up = kl_and(l, up, less(l, b, b->first, b->stop)),
               runs_down = kl_and(l, down, less(l, b, b->stop, b->first));
  *runs = kl_or(l, runs_up, runs_down);
  *distance = kl_select(l, down, kl_sub(l, b->first, b->stop), kl_sub(l, b->stop, b->first));
  *size = kl_select(l, down, kl_sub(l, zero, b->step), b->step);
}

/* Lowers a loop with a constant step as i = first + counter * step, where the counter starts at 0.
 * Computing the number of iterations takes a division, which LLVM replaces by a multiplication. */
static void lower_counted_for(kl_lowering *l, const kt_stmt *stmt, const bounds *b)
{
  LLVMTypeRef type = LLVMTypeOf(b->first);
  LLVMValueRef runs, distance, size, one = LLVMConstInt(type, 1, false);
  measure(l, b, &runs, &distance, &size);
  LLVMValueRef steps = kl_add(l, kl_udiv(l, kl_sub(l, distance, one), size), one);
  LLVMValueRef count = kl_select(l, runs, steps, LLVMConstNull(type));
  bounds counter = { .first = LLVMConstNull(type), .stop = count, .step = one };
  LLVMBasicBlockRef head = kl_new_block(l, "for"), body = kl_new_block(l, "for.body");
  kl_loop loop = { .outer = l->loop,
                   .next = kl_new_block(l, "for.next"),
                   .leave = kl_new_block(l, "for.end") };
  kl_chunks chunks;
  LLVMBasicBlockRef outside = kl_here(l),
                    end = begin_chunks(l, stmt, &counter, loop.leave, type, &chunks),
                    before = kl_here(l);
  LLVMValueRef first = chunks.end ? chunks.other : b->first;
  kl_go_on_in(l, head);
  LLVMValueRef k = kl_phi(l, type), i = LLVMBuildPhi(kl_next(l), type, stmt->var->name);
  kl_cond_br(l, less(l, &counter, k, counter.stop), body, end);
  kl_move_to(l, body);
  LLVMBasicBlockRef latch = lower_loop_body(l, stmt, &loop, i, kl_chunk_of(l, stmt) == 1);
  LLVMValueRef next_k = kl_add(l, k, one), next_i = kl_add(l, i, b->step);
  LLVMSetNUW(next_k, true);
  kl_mark_latch(l, kl_br(l, head), kl_unrolling_of(l, stmt));
  LLVMBasicBlockRef from[2] = { before, latch };
  LLVMAddIncoming(k, (LLVMValueRef[]){ counter.first, next_k }, from, 2);
  LLVMAddIncoming(i, (LLVMValueRef[]){ first, next_i }, from, 2);
  if (chunks.end) {
    kl_move_to(l, chunks.end);
    LLVMBasicBlockRef chunk[2] = { outside, kl_end_chunks(l, &chunks, k, stmt->location) };
    LLVMAddIncoming(first, (LLVMValueRef[]){ b->first, i }, chunk, 2);
  }
  kl_move_to(l, loop.leave);
}

/* Lowers a loop whose step is not known. Compares the remaining distance with the step before each
 * iteration adds the step. */
static void lower_general_for(kl_lowering *l, const kt_stmt *stmt, const bounds *b)
{
  LLVMTypeRef type = LLVMTypeOf(b->first);
  LLVMValueRef runs, distance, size;
  measure(l, b, &runs, &distance, &size);
  LLVMBasicBlockRef before = kl_here(l), body = kl_new_block(l, "for.body"),
                    step = kl_new_block(l, "for.step");
  kl_loop loop = { .outer = l->loop,
                   .next = kl_new_block(l, "for.next"),
                   .leave = kl_new_block(l, "for.end") };
  kl_cond_br(l, runs, body, loop.leave);
  kl_move_to(l, body);
  LLVMValueRef i = LLVMBuildPhi(kl_next(l), type, stmt->var->name), left = kl_phi(l, type);
  lower_loop_body(l, stmt, &loop, i, stmt->poll != 0);
  kl_cond_br(l, kl_icmp(l, LLVMIntUGT, left, size), step, loop.leave);
  kl_move_to(l, step);
  LLVMValueRef next_left = kl_sub(l, left, size), next_i = kl_add(l, i, b->step);
  kl_mark_latch(l, kl_br(l, body), stmt->unroll);
  LLVMBasicBlockRef from[2] = { before, step };
  LLVMAddIncoming(i, (LLVMValueRef[]){ b->first, next_i }, from, 2);
  LLVMAddIncoming(left, (LLVMValueRef[]){ distance, next_left }, from, 2);
  kl_move_to(l, loop.leave);
}

/* Returns whether the counter's type can represent the last value plus the step, according to the
 * range that pass/range.c has found. */
static bool has_room(const kt_stmt *stmt, LLVMValueRef step)
{
  if (!LLVMIsAConstantInt(step) || !stmt->var->range.known) return false;
  int64_t by = LLVMConstIntGetSExtValue(step),
          most = LLVMGetIntTypeWidth(LLVMTypeOf(step)) == 32 ? INT32_MAX : INT64_MAX;
  return by > 0 && stmt->var->range.most <= most - by;
}

static void lower_for_version(kl_lowering *l, const kt_stmt *stmt, bounds b)
{
  if (kl_is_one(b.step) || (b.is_signed && has_room(stmt, b.step))) lower_plain_for(l, stmt, &b);
  else if (LLVMIsAConstantInt(b.step)) lower_counted_for(l, stmt, &b);
  else lower_general_for(l, stmt, &b);
}

/* Lowers the loop in two versions, one for few iterations and one for many (kl_polled_twice). The
 * number of iterations is the distance from the first value to the stop, divided by the step unless
 * the step is 1. If the loop has no iterations, both versions are correct. */
static void lower_for_twice(kl_lowering *l, const kt_stmt *stmt, const bounds *b)
{
  kl_polled_twice t = { .loop = stmt };
  if (kl_is_one(b->step)) kl_begin_short_of(l, &t, kl_sub(l, b->stop, b->first));
  else {
    LLVMValueRef runs, distance, size;
    measure(l, b, &runs, &distance, &size);
    LLVMTypeRef type = LLVMTypeOf(distance);
    unsigned few = kl_few_iterations(l, stmt);
    LLVMValueRef is_short =
      few < LLVMGetIntTypeWidth(type)
        ? kl_icmp(l, LLVMIntULT, kl_lshr(l, distance, LLVMConstInt(type, few, false)), size)
        : LLVMConstInt(l->i1, 1, false);
    kl_begin_short(l, &t, is_short, NULL);
  }
  lower_for_version(l, stmt, *b);
  kl_begin_long(l, &t);
  lower_for_version(l, stmt, *b);
  kl_end_long(l, &t);
}

void kl_lower_for(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_FOR);
  bounds b = { .first = lower_bound(l, stmt, stmt->first),
               .stop = lower_bound(l, stmt, stmt->stop),
               .is_signed = kl_is_signed_type(l, stmt->var->type) };
  b.step =
    stmt->step ? lower_bound(l, stmt, stmt->step) : LLVMConstInt(LLVMTypeOf(b.first), 1, false);
  if (LLVMIsNull(b.step)) return;
  l->loop_count++;
  uint64_t copies = kl_enter_copies(l, stmt);
  if (kl_is_polled_twice(l, stmt)) lower_for_twice(l, stmt, &b);
  else lower_for_version(l, stmt, b);
  l->copies = copies;
}
