/* nvptx: grid_sync, which synchronizes the threads in the grid that have not left the kernel.
 *
 * Single threads, the first thread in a block, whole warps and whole blocks can leave the kernel
 * early, by a `return` or a failure. The remaining threads must not wait for a thread that has
 * left. A kernel with a grid_sync therefore counts arrivals and departures on two levels, in the
 * block and in the grid. The thread that completes a round, by arriving or by leaving, does the
 * remaining work of the round for all threads.
 *
 * Each block has a word of shared memory. The lower half of the word counts the threads that have
 * arrived, and the upper half the threads that have left. A thread counts itself as left before it
 * exits. grid_sync starts with a barrier, which a thread passes only when every other thread in the
 * block has arrived at it or has exited. So no thread counts itself as left while other threads
 * count themselves as arrived.
 *
 * The last thread in the block is the thread that makes the sum of both counts equal to the number
 * of threads in the block. It arrives at the grid for the whole block. The thread that leaves last
 * removes the block from the grid.
 *
 * The grid has a word of global memory, which the driver provides for each cooperative launch:
 *
 *   bit 31      the phase, which changes when a round is complete
 *   bits 16-30 a count, which at the start of each round is 2^15 minus the number of blocks that
 *               have not left; each of these blocks adds 1 when it arrives or leaves, and the carry
 *               of the last addition changes the phase
 *   bits 0-15   the number of blocks that have left
 *
 * The block that has changed the phase then adds the start value of the next round. Other blocks
 * need not wait for this addition, because the count cannot reach its maximum before the addition.
 * After all blocks have left, bits 0 to 30 are 0 again. A grid whose blocks are all resident has
 * far fewer than 2^15 blocks. */
#include "lower/instruction.h"
#include "lower/nvptx/lower_nvptx.h"

enum { COUNT_SHIFT = 16, FULL_COUNT = 1 << 15, LEFT_SHIFT = 16 };

/* Environment registers 1 and 2 contain a record's address, as in CUDA's own headers. The second
 * word of the record is the launch's word. */
#define WORD_ADDRESS \
  ".reg .b32 lo, hi; .reg .b64 at; mov.u32 lo, %envreg2; mov.u32 hi, %envreg1; " \
  "mov.b64 at, {lo, hi}; "

bool kl_nvptx_counts_threads(kl_lowering *l)
{
  /* C functions follow CUDA's protocol (sync_grid_of_others). */
  return l->c->code->is_cooperative && !l->c->request->symbol;
}

static LLVMValueRef product(kl_lowering *l, ki_builtin_id position)
{
  LLVMValueRef all = l->target->position(l, position, 0);
  for (uint32_t d = 1; d < 3; d++) all = kl_mul(l, all, l->target->position(l, position, d));
  return all;
}

static LLVMValueRef is_first_block(kl_lowering *l)
{
  LLVMValueRef any = l->target->position(l, KJ_BUILTIN_BLOCK_IDX, 0);
  for (uint32_t d = 1; d < 3; d++)
    any = kl_or(l, any, l->target->position(l, KJ_BUILTIN_BLOCK_IDX, d));
  return kl_icmp(l, LLVMIntEQ, any, kl_const32(l, 0));
}

static LLVMValueRef is_first_thread(kl_lowering *l)
{
  LLVMValueRef rank = l->target->position(l, KJ_BUILTIN_THREAD_RANK, 0);
  return kl_icmp(l, LLVMIntEQ, rank, kl_const32(l, 0));
}

static LLVMValueRef build(kl_lowering *l, const char *text, const char *constraints,
                          LLVMTypeRef result, LLVMValueRef *args, unsigned count)
{
  const kl_asm code = {
    .text = text, .constraints = constraints, .result = result, .is_convergent = true
  };
  return kl_build_asm(l, &code, args, count);
}

/* ---- the block ---- */

static LLVMValueRef block_word(kl_lowering *l)
{
  return kl_shared_window(l, kl_nvptx_shared_words(l, "kjit_grid_threads", l->i32, 1, 4));
}

/* Adds $2 to the word for each thread that executes the assembly. Returns the word in the thread of
 * the block that is counted last, and 0 in all other threads. The lanes that execute the assembly
 * together form a set, and one lane in the set adds for all of them. The masks of sets are
 * disjoint, so no lane is counted twice. */
static const char count_threads[] =
  "{ .reg .pred other, last; .reg .b32 mask, before, lanes, word, come; mov.u32 $0, 0; "
  "activemask.b32 mask; mov.u32 before, %lanemask_lt; and.b32 before, before, mask; "
  "setp.ne.u32 other, before, 0; @other bra counted; "
  "popc.b32 lanes, mask; mul.lo.u32 lanes, lanes, $2; "
  "atom.acq_rel.cta.shared.add.u32 word, [$1], lanes; add.u32 word, word, lanes; "
  "and.b32 come, word, 0xffff; shr.u32 before, word, 16; add.u32 come, come, before; "
  "setp.eq.u32 last, come, $3; selp.u32 $0, word, 0, last; counted: }";

static LLVMValueRef count_here(kl_lowering *l, int64_t each)
{
  LLVMValueRef args[] = { block_word(l), kl_const32(l, each), product(l, KJ_BUILTIN_BLOCK_DIM) };
  return build(l, count_threads, "=&r,r,r,r", l->i32, args, 3);
}

static void go_on_if_last(kl_lowering *l, LLVMValueRef word, LLVMBasicBlockRef last,
                          LLVMBasicBlockRef others)
{
  kl_go_on_if(l, kl_icmp(l, LLVMIntNE, word, kl_const32(l, 0)), last, others);
}

/* ---- the grid ---- */

/* Computes the start value of a round, shifted to its bits, if `left` of the blocks have left. */
#define NEXT_START(blocks) \
  "sub.u32 start, 0x8000, " blocks "; add.u32 start, start, left; shl.b32 start, start, 16; "

/* Arrives at the grid and returns the word before the arrival. */
static const char arrive_text[] =
  "{ .reg .pred same; .reg .b32 left, start, now; " WORD_ADDRESS
  "atom.acq_rel.gpu.global.add.u32 $0, [at+4], 0x10000; add.u32 now, $0, 0x10000; "
  "xor.b32 now, now, $0; setp.ge.s32 same, now, 0; @same bra came; "
  "and.b32 left, $0, 0xffff; " NEXT_START("$1") "red.relaxed.gpu.global.add.u32 [at+4], start; "
                                                "came: }";

/* Leaves the grid. If this completes the round, adds the start value of the next round. If all
 * remaining blocks have arrived in the next round by then, this addition completes the next round
 * as well, and the loop continues. */
static const char leave_text[] =
  "{ .reg .pred same, all; .reg .b32 left, start, now, before, more; " WORD_ADDRESS
  "mov.u32 more, 0x10001; "
  "again: atom.acq_rel.gpu.global.add.u32 before, [at+4], more; add.u32 now, before, more; "
  "and.b32 left, now, 0xffff; setp.eq.u32 all, left, $0; @all bra last; "
  "xor.b32 before, before, now; setp.ge.s32 same, before, 0; @same bra over; " NEXT_START(
    "$0") "mov.u32 more, start; bra again; "
          "last: red.relaxed.gpu.global.and.b32 [at+4], 0x80000000; over: }";

static const char wait_text[] =
  "{ .reg .pred same; .reg .b32 now; " WORD_ADDRESS
  "again: ld.acquire.gpu.global.u32 now, [at+4]; xor.b32 now, now, $0; setp.ge.s32 same, now, 0; "
  "@same bra again; }";

static const char ask_text[] =
  "{ .reg .pred same; .reg .b32 now; " WORD_ADDRESS
  "ld.acquire.gpu.global.u32 now, [at+4]; xor.b32 now, now, $1; setp.lt.s32 same, now, 0; "
  "selp.u32 $0, 1, 0, same; }";

static const char start_text[] = "{ " WORD_ADDRESS "red.relaxed.gpu.global.add.u32 [at+4], $0; }";

static void wait_for_grid(kl_lowering *l, kj_location location, LLVMValueRef old)
{
  if (!l->interrupt_word) {
    build(l, wait_text, "r", l->void_, &old, 1);
    return;
  }
  const kl_asm ask = {
    .text = ask_text, .constraints = "=r,r", .result = l->i32, .is_convergent = true
  };
  kl_nvptx_wait_until(l, location, &ask, &old, 1);
}

/* ---- kernels of kjit's own ---- */

void kl_nvptx_begin_grid(kl_lowering *l)
{
  LLVMBasicBlockRef first = kl_new_block(l, "first"), leader = kl_new_block(l, "begin.grid"),
                    begun = kl_new_block(l, "begun");
  kl_go_on_if(l, is_first_thread(l), first, begun);
  LLVMValueRef zero = kl_const32(l, 0);
  kl_store(l, zero, kl_nvptx_shared_words(l, "kjit_grid_threads", l->i32, 1, 4));
  kl_cond_br(l, is_first_block(l), leader, begun);
  kl_move_to(l, leader);
  LLVMValueRef count = kl_sub(l, kl_const32(l, FULL_COUNT), product(l, KJ_BUILTIN_GRID_DIM));
  LLVMValueRef start = kl_shl(l, count, kl_const32(l, COUNT_SHIFT));
  build(l, start_text, "r", l->void_, &start, 1);
  kl_go_on_in(l, begun);
  l->target->barrier(l);
}

void kl_nvptx_leave_grid(kl_lowering *l)
{
  LLVMBasicBlockRef last = kl_new_block(l, "last.thread"), left = kl_new_block(l, "left");
  go_on_if_last(l, count_here(l, 1 << LEFT_SHIFT), last, left);
  LLVMValueRef blocks = product(l, KJ_BUILTIN_GRID_DIM);
  build(l, leave_text, "r", l->void_, &blocks, 1);
  kl_go_on_in(l, left);
}

static void sync_grid(kl_lowering *l, kj_location location)
{
  LLVMBasicBlockRef last = kl_new_block(l, "last.thread"), met = kl_new_block(l, "met");
  l->target->barrier(l);
  LLVMValueRef word = count_here(l, 1);
  go_on_if_last(l, word, last, met);
  /* The count is cleared before the wait, because an interrupted thread exits during the wait. */
  LLVMValueRef args[] = { block_word(l), kl_and(l, word, kl_const32(l, (1 << LEFT_SHIFT) - 1)) };
  args[1] = kl_sub(l, kl_const32(l, 0), args[1]);
  build(l, "red.relaxed.cta.shared.add.u32 [$0], $1;", "r,r", l->void_, args, 2);
  LLVMValueRef blocks = product(l, KJ_BUILTIN_GRID_DIM);
  wait_for_grid(l, location, build(l, arrive_text, "=&r,r", l->i32, &blocks, 1));
  kl_go_on_in(l, met);
  l->target->barrier(l);
}

/* ---- C functions ---- */

/* Synchronizes the grid in a C function. Its caller is a kernel that kjit has not compiled, and
 * this kernel can use the word as well. The C function therefore follows the protocol of CUDA's
 * headers, in which the first thread in each block acts for the block. Each block adds 1, except
 * that the first block adds the number that makes the sum 2^31. When all blocks have arrived, the
 * top bit has changed and the word is ready for the next round. */
static void sync_grid_of_others(kl_lowering *l, kj_location location)
{
  LLVMBasicBlockRef leader = kl_new_block(l, "leader"), end = kl_new_block(l, "grid");
  l->target->barrier(l);
  kl_go_on_if(l, is_first_thread(l), leader, end);
  LLVMValueRef others = kl_sub(l, product(l, KJ_BUILTIN_GRID_DIM), kl_const32(l, 1));
  LLVMValueRef rest = kl_sub(l, LLVMConstInt(l->i32, 0x80000000u, false), others);
  LLVMValueRef step = kl_select(l, is_first_block(l), rest, kl_const32(l, 1));
  wait_for_grid(l, location,
                build(l, "{ " WORD_ADDRESS "atom.acq_rel.gpu.global.add.u32 $0, [at+4], $1; }",
                      "=&r,r", l->i32, &step, 1));
  kl_go_on_in(l, end);
  l->target->barrier(l);
}

void kl_nvptx_sync_grid(kl_lowering *l, kj_location location)
{
  if (kl_nvptx_counts_threads(l)) sync_grid(l, location);
  else sync_grid_of_others(l, location);
  l->loop_count++;
}
