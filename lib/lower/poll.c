/* Interruptible code: polls for interrupts, and loops divided into chunks
 * (docs/architecture/interrupts.md).
 *
 * A poll reads the launch's kj_interrupt_word with a volatile load, which is a relaxed load at
 * system scope in PTX. For LLVM, a poll reads only this address, so LLVM can move other accesses
 * across the poll and keep their values in registers.
 *
 * On the CPU a poll is only this load. On a GPU the word is in host memory, and reading it takes
 * about a microsecond. A GPU poll therefore subtracts the cost of the surrounding code from a
 * budget, which is in a register. When the budget is used up, the poll reads the clock. It reads
 * the word only if at least PERIOD cycles have passed since it last read the word or, before the
 * first read, since it first read the clock. */
#include "lower/instruction.h"
#include "lower/lower.h"

/* Constants for GPUs. BUDGET: number of expressions that a thread executes between two reads of the
 * clock. CHUNK: number of expressions in a chunk of a loop. PERIOD: number of cycles between two
 * reads of the word. SHORT: maximum number of expressions in a loop that runs without polls.
 * SAMPLE, SAMPLED: on entry to a recursive function, SAMPLE of SAMPLED calls, chosen at random,
 * read the word. */
enum {
  BUDGET = 1 << 20,
  CHUNK = KJ_POLL_BUDGET,
  PERIOD = 1 << 26,
  SHORT = 1 << 22,
  SAMPLED = 1 << 16,
  SAMPLE = 64
};

bool kl_has_record(const kl_lowering *l) { return l->kernel->may_fail || l->kernel->polls; }

/* ---- parameters ---- */

void kl_plan_interrupts(kl_lowering *l)
{
  if (!l->kernel->polls) return;
  kj_parameter word = { .kind = KJ_PARAMETER_INTERRUPT_WORD,
                        .argument = UINT16_MAX,
                        .size_bytes = 8 },
               number = { .kind = KJ_PARAMETER_INTERRUPT_NUMBER,
                          .argument = UINT16_MAX,
                          .size_bytes = 8 };
  l->c->code->interrupt_offset = kl_add_parameter(l, word, KJIT_VOID, 8);
  kl_add_parameter(l, number, KJIT_VOID, 8);
}

/* ---- polls ---- */

static LLVMValueRef load_volatile(kl_lowering *l, LLVMTypeRef type, unsigned alignment)
{
  LLVMValueRef load = kl_load(l, type, l->interrupt_word);
  LLVMSetVolatile(load, true);
  LLVMSetAlignment(load, alignment);
  return load;
}

static LLVMValueRef is_interrupted(kl_lowering *l)
{
  KJ_ASSERT(l->interrupt_word && l->interrupt_number);
  if (!l->target->counts_down)
    return kl_icmp(l, LLVMIntUGE, load_volatile(l, l->i64, 8), l->interrupt_number);
  LLVMValueRef both = load_volatile(l, LLVMVectorType(l->i64, 2), sizeof(kj_interrupt_word));
  LLVMValueRef up_to = kl_extract_element(l, both, kl_const32(l, 0)),
               base = kl_extract_element(l, both, kl_const32(l, 1));
  return kl_icmp(l, LLVMIntUGE, up_to, kl_add(l, base, l->interrupt_number));
}

/* Reads the word and leaves the kernel if the launch was interrupted. The code by which a thread
 * leaves first waits for the matrix products of its warpgroup. Otherwise ptxas would make every
 * product wait for its end immediately after its start (remark C7518). */
static void check_interrupt(kl_lowering *l, kj_location location)
{
  kl_failure failure = { .kind = KJ_FAILURE_INTERRUPTED, .location = location };
  if (!l->product_loops || !l->target->finish_products) {
    kl_fail_if(l, is_interrupted(l), &failure);
    return;
  }
  LLVMBasicBlockRef leaves = kl_new_block(l, "leaves"), stays = kl_new_block(l, "stays");
  kl_set_likely(l, kl_cond_br(l, is_interrupted(l), leaves, stays), false);
  kl_move_to(l, leaves);
  l->target->finish_products(l);
  kl_build_failure(l, &failure);
  kl_move_to(l, stays);
}

/* Returns the variable that holds the remaining budget. Each LLVM function has one such variable,
 * which all its loops use. budget and read_at are initialized with constants, so that they need no
 * registers before the first loop that polls. */
static LLVMValueRef get_budget(kl_lowering *l)
{
  if (l->budget_function == l->function) return l->budget;
  LLVMBasicBlockRef here = kl_here(l);
  LLVMMetadataRef place = LLVMGetCurrentDebugLocation2(l->builder);
  l->budget_function = l->function;
  l->budget = kl_alloca(l, l->i32, "budget");
  l->read_at = kl_alloca(l, l->i32, "read_at");
  LLVMPositionBuilderBefore(l->builder, l->alloca_end);
  LLVMSetCurrentDebugLocation2(l->builder, NULL);
  kl_store(l, kl_const32(l, BUDGET), l->budget);
  kl_store(l, kl_const32(l, 0), l->read_at);
  kl_move_to(l, here);
  LLVMSetCurrentDebugLocation2(l->builder, place);
  return l->budget;
}

/* Reads the low half of the clock. It wraps around after some seconds, which only delays a poll. */
static LLVMValueRef read_clock(kl_lowering *l)
{
  return kl_trunc(l, l->target->clock(l, KJ_BUILTIN_CLOCK64), l->i32);
}

/* Branches to `goes` if it is too early to read the word. The first call only records the time, as
 * an odd number, because 0 means that no time has been recorded. A thread that ends soon therefore
 * never reads the word: in a kernel of many short blocks, the reads would take longer than the
 * blocks. */
static void wait_for_period(kl_lowering *l, LLVMBasicBlockRef goes)
{
  LLVMBasicBlockRef reads = kl_new_block(l, "read");
  LLVMValueRef zero = kl_const32(l, 0), now = kl_or(l, read_clock(l), kl_const32(l, 1));
  LLVMValueRef before = kl_load(l, l->i32, l->read_at),
               is_first = kl_icmp(l, LLVMIntEQ, before, zero);
  LLVMValueRef elapsed = kl_select(l, is_first, zero, kl_sub(l, now, before)),
               is_over = kl_icmp(l, LLVMIntUGT, elapsed, kl_const32(l, PERIOD));
  LLVMValueRef notes = kl_or(l, is_first, is_over);
  kl_store(l, kl_select(l, notes, now, before), l->read_at);
  kl_store(l, kl_const32(l, BUDGET), l->budget);
  kl_set_likely(l, kl_cond_br(l, is_over, reads, goes), false);
  kl_move_to(l, reads);
}

/* Polls if the condition is true, which is rare. */
static void check_interrupt_if(kl_lowering *l, LLVMValueRef condition, kj_location location,
                               bool is_counted)
{
  LLVMBasicBlockRef looks = kl_new_block(l, "look"), goes = kl_new_block(l, "goes");
  kl_set_likely(l, kl_cond_br(l, condition, looks, goes), false);
  kl_move_to(l, looks);
  if (is_counted) wait_for_period(l, goes);
  check_interrupt(l, location);
  kl_go_on_in(l, goes);
}

void kl_poll(kl_lowering *l, kj_location location, uint32_t cost)
{
  if (!l->is_short_version) kl_poll_waiting(l, location, cost);
}

void kl_poll_waiting(kl_lowering *l, kj_location location, uint32_t cost)
{
  if (!l->target->counts_down) {
    check_interrupt(l, location);
    return;
  }
  LLVMValueRef budget = get_budget(l);
  LLVMValueRef left = kl_sub(l, kl_load(l, l->i32, budget), kl_const32(l, cost));
  kl_store(l, left, budget);
  check_interrupt_if(l, kl_icmp(l, LLVMIntSLT, left, kl_const32(l, 0)), location, true);
}

/* ---- loops that only wait ---- */

LLVMValueRef kl_begin_turns(kl_lowering *l)
{
  KJ_ASSERT(l->target->most_turns);
  LLVMValueRef turns = kl_alloca(l, l->i64, "turns");
  kl_store(l, kl_const64(l, 0), turns);
  return turns;
}

void kl_count_turn(kl_lowering *l, LLVMValueRef turns, kj_location location)
{
  LLVMValueRef next = kl_add(l, kl_load(l, l->i64, turns), kl_const64(l, 1));
  kl_failure failure = { .kind = KJ_FAILURE_WAIT, .location = location };
  kl_store(l, next, turns);
  kl_fail_if(l, kl_icmp(l, LLVMIntUGE, next, l->target->most_turns(l)), &failure);
}

/* ---- entries ---- */

void kl_poll_entry(kl_lowering *l, const kt_instance *instance)
{
  kj_location location = instance->function->decl->location;
  if (!instance->polls_first) return;
  if (!l->target->counts_down) {
    check_interrupt(l, location);
    return;
  }
  LLVMValueRef sample = kl_and(l, read_clock(l), kl_const32(l, SAMPLED - 1));
  check_interrupt_if(l, kl_icmp(l, LLVMIntULT, sample, kl_const32(l, SAMPLE)), location, false);
}

/* ---- chunks ----
 *
 * A loop is divided into chunks by an outer loop. The inner loop then runs only to the end of the
 * chunk. It has the form of the original loop, so that LLVM vectorizes and unrolls it in the same
 * way. */

/* Returns the number of iterations in a chunk. A loop that contains synchronizations (is_joint)
 * polls in each iteration. */
uint32_t kl_chunk_of(const kl_lowering *l, const kt_stmt *loop)
{
  bool is_around = loop->is_joint && kt_flow_of(loop) == KJ_FLOW_LOOP;
  if (l->is_short_version) return 0;
  return loop->poll && is_around ? 1 : loop->poll;
}

/* Subtracts the cost of a chunk from the budget. The last chunk counts as well, because the loops
 * around this one read the budget. */
static void count_chunk(kl_lowering *l, const kl_chunks *c, uint64_t span)
{
  if (!l->target->counts_down) return;
  LLVMTypeRef type = LLVMTypeOf(c->first);
  LLVMValueRef size = kl_sub(l, c->stop, c->first), budget = get_budget(l), spent;
  spent = span < CHUNK ? kl_mul(l, size, LLVMConstInt(type, CHUNK / span, false))
                       : kl_udiv(l, size, LLVMConstInt(type, span / CHUNK, false));
  if (LLVMGetIntTypeWidth(type) > 32) spent = kl_trunc(l, spent, l->i32);
  kl_store(l, kl_sub(l, kl_load(l, l->i32, budget), spent), budget);
}

void kl_begin_chunks(kl_lowering *l, kl_chunks *c, LLVMValueRef first, LLVMValueRef stop,
                     uint64_t span, LLVMBasicBlockRef leave)
{
  LLVMTypeRef type = LLVMTypeOf(first);
  LLVMBasicBlockRef before = kl_here(l);
  LLVMIntPredicate less = c->is_signed ? LLVMIntSLT : LLVMIntULT;
  c->head = kl_new_block(l, "chunk");
  c->leave = leave;
  c->end = kl_new_block(l, "chunk.end");
  c->all = stop;
  kl_cond_br(l, kl_icmp(l, less, first, stop), c->head, leave);
  kl_move_to(l, c->head);
  c->first = LLVMBuildPhi(kl_next(l), type, "chunk");
  LLVMAddIncoming(c->first, &first, &before, 1);
  c->other = c->other_type ? LLVMBuildPhi(kl_next(l), c->other_type, "first") : NULL;
  LLVMValueRef size = LLVMConstInt(type, span, false);
  LLVMValueRef is_long = kl_icmp(l, LLVMIntUGT, kl_sub(l, stop, c->first), size);
  c->stop = kl_select(l, is_long, kl_add(l, c->first, size), stop);
  count_chunk(l, c, span);
}

LLVMBasicBlockRef kl_end_chunks(kl_lowering *l, kl_chunks *c, LLVMValueRef at, kj_location location)
{
  LLVMBasicBlockRef more = kl_new_block(l, "chunk.next");
  kl_cond_br(l, kl_icmp(l, c->is_signed ? LLVMIntSLT : LLVMIntULT, at, c->all), more, c->leave);
  kl_move_to(l, more);
  kl_poll(l, location, 0);
  LLVMBasicBlockRef latch = kl_here(l);
  LLVMMetadataRef property = kl_no_unrolling(l);
  kl_set_metadata(l, kl_br(l, c->head), "llvm.loop", kl_loop_id(l, &property, 1));
  LLVMAddIncoming(c->first, &at, &latch, 1);
  return latch;
}

/* ---- loops that are compiled twice ----
 *
 * On the CPU, a loop whose step is not known would have to poll in each iteration. In a small loop
 * the poll would be a third of the instructions. Such a loop therefore has two versions, and only
 * the version for more iterations than a chunk polls.
 *
 * On a GPU, ptxas unrolls a loop less if the loop starts at a chunk or has a second exit, and
 * counting needs additional instructions. An innermost loop that can have few, short iterations
 * therefore has two versions. The version for few iterations does not poll and is the same as in
 * code that is not interruptible. The version for many iterations polls. Surrounding loops poll,
 * and count the cost of the version without polls. */

bool kl_is_polled_twice(const kl_lowering *l, const kt_stmt *loop)
{
  return loop->poll && loop->is_polled_twice && !loop->is_joint && !l->is_short_version &&
         !l->is_checked_version;
}

unsigned kl_few_iterations(const kl_lowering *l, const kt_stmt *loop)
{
  unsigned limit = 0;
  uint64_t most = l->target->counts_down ? SHORT : CHUNK;
  while (((uint64_t)loop->poll_cost << (limit + 1)) <= most) limit++;
  return limit;
}

/* Subtracts from the budget, but not below -1, so that many loops in sequence cannot make the
 * budget wrap around. */
static void spend(kl_lowering *l, LLVMValueRef spent)
{
  KJ_ASSERT(l->target->counts_down);
  LLVMValueRef budget = get_budget(l), left = kl_sub(l, kl_load(l, l->i32, budget), spent);
  kl_store(l, kl_intrinsic2(l, "llvm.smax", left, kl_const32(l, -1)), budget);
}

void kl_begin_short(kl_lowering *l, kl_polled_twice *t, LLVMValueRef is_short, LLVMValueRef spent)
{
  KJ_ASSERT(kl_is_polled_twice(l, t->loop));
  LLVMBasicBlockRef is_few = kl_new_block(l, "short");
  t->is_long = kl_new_block(l, "long");
  t->end = kl_new_block(l, "twice.end");
  kl_set_likely(l, kl_cond_br(l, is_short, is_few, t->is_long), true);
  kl_move_to(l, is_few);
  if (l->target->counts_down && l->polling_loops > 1)
    spend(l, spent ? spent : kl_const32(l, BUDGET / 4));
  l->is_short_version = true;
}

void kl_begin_short_of(kl_lowering *l, kl_polled_twice *t, LLVMValueRef count)
{
  LLVMTypeRef type = LLVMTypeOf(count);
  unsigned bits = LLVMGetIntTypeWidth(type), few = kl_few_iterations(l, t->loop);
  LLVMValueRef narrow = bits > 32 ? kl_trunc(l, count, l->i32) : kl_zext(l, count, l->i32),
               spent = kl_mul(l, narrow, kl_const32(l, t->loop->poll_cost)), rest;
  rest = few < bits ? kl_lshr(l, count, LLVMConstInt(type, few, false)) : LLVMConstNull(type);
  kl_begin_short(l, t, kl_icmp(l, LLVMIntEQ, rest, LLVMConstNull(type)), spent);
}

void kl_begin_long(kl_lowering *l, kl_polled_twice *t)
{
  KJ_ASSERT(l->is_short_version);
  l->is_short_version = false;
  l->is_long_version = true;
  kl_branch(l, t->end);
  kl_move_to(l, t->is_long);
}

void kl_end_long(kl_lowering *l, kl_polled_twice *t)
{
  l->is_long_version = false;
  kl_go_on_in(l, t->end);
}
