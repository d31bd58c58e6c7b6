/* CPU: the function table of the target (kl_lower_target), and small functions in this table. */
#include "lower/instruction.h"
#include "lower/cpu/cpu.h"

#include <string.h>

#include "native/architecture.h"
#include "native/support_routines.h"

/* The thread context: a struct that is passed to functions that are not inlined. It contains, for
 * example, the position of the calling thread, and the flag by which a function reports that the
 * thread has failed. */

enum { NUMBERS_FIELD, GRID_FIELD, SCRATCH_FIELD, RECORD_FIELD, LEFT_FIELD, SINK_FIELD };
enum {
  CONTEXT_THREAD = 0,
  CONTEXT_RANK = 3,
  CONTEXT_BLOCK = 4,
  CONTEXT_GRID = 7,
  CONTEXT_NUMBERS = 10
};

static LLVMTypeRef context_type(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  LLVMTypeRef fields[] = {
    LLVMArrayType2(l->i32, CONTEXT_NUMBERS), l->pointer, l->pointer, l->pointer, l->i32, l->pointer
  };
  if (!s->context_type)
    s->context_type =
      LLVMStructTypeInContext(l->context, fields, sizeof fields / sizeof *fields, false);
  return s->context_type;
}

static LLVMValueRef context_field(kl_lowering *l, LLVMValueRef context, unsigned field,
                                  uint64_t number)
{
  KJ_ASSERT(number < CONTEXT_NUMBERS);
  LLVMValueRef path[] = { kl_const32(l, 0), kl_const32(l, field), kl_const32(l, (int64_t)number) };
  return kl_inbounds_gep(l, context_type(l), context, path, field == NUMBERS_FIELD ? 3 : 2);
}

static void context_numbers(kl_cpu_state *s, LLVMValueRef **numbers)
{
  for (int d = 0; d < 3; d++) {
    numbers[CONTEXT_THREAD + d] = &s->thread[d];
    numbers[CONTEXT_BLOCK + d] = &s->block_index[d];
    numbers[CONTEXT_GRID + d] = &s->grid[d];
  }
  numbers[CONTEXT_RANK] = &s->rank;
}

LLVMValueRef kl_cpu_thread_context(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  /* a function passes its own context to its callees, because the callees need the same values */
  if (s->context) return s->context;
  LLVMValueRef context = kl_alloca(l, context_type(l), "context"), *numbers[CONTEXT_NUMBERS];
  context_numbers(s, numbers);
  for (uint64_t i = 0; i < CONTEXT_NUMBERS; i++)
    if (*numbers[i]) kl_store(l, *numbers[i], context_field(l, context, NUMBERS_FIELD, i));
  kl_store(l, s->grid_pointer, context_field(l, context, GRID_FIELD, 0));
  kl_store(l, s->scratch, context_field(l, context, SCRATCH_FIELD, 0));
  if (l->print_sink) kl_store(l, l->print_sink, context_field(l, context, SINK_FIELD, 0));
  if (l->failure_record) kl_store(l, l->failure_record, context_field(l, context, RECORD_FIELD, 0));
  if (l->kernel->may_fail) kl_store(l, kl_const32(l, 0), context_field(l, context, LEFT_FIELD, 0));
  return context;
}

void kl_cpu_use_thread_context(kl_lowering *l, LLVMValueRef context)
{
  kl_cpu_state *s = kl_cpu(l);
  LLVMValueRef *numbers[CONTEXT_NUMBERS];
  context_numbers(s, numbers);
  for (uint64_t i = 0; i < CONTEXT_NUMBERS; i++)
    *numbers[i] = kl_load(l, l->i32, context_field(l, context, NUMBERS_FIELD, i));
  s->grid_pointer = kl_load(l, l->pointer, context_field(l, context, GRID_FIELD, 0));
  s->scratch = kl_load(l, l->pointer, context_field(l, context, SCRATCH_FIELD, 0));
  s->context = context;
  if (l->has_print)
    l->print_sink = kl_load(l, l->pointer, context_field(l, context, SINK_FIELD, 0));
  if (kl_has_record(l))
    l->failure_record = kl_load(l, l->pointer, context_field(l, context, RECORD_FIELD, 0));
}

/* ---- failing threads ---- */

/* Makes the current thread leave the kernel. In a function, the code sets the flag in the context
 * and returns; each caller tests the flag and returns as well. In the kernel, the thread ends its
 * iteration of the thread loop and is inactive from then on. */
void kl_cpu_leave_kernel(kl_lowering *l)
{
  KJ_ASSERT(l->frame);
  kl_cpu_state *s = kl_cpu(l);
  kl_frame *inner = l->frame;
  while (l->frame->caller) l->frame = l->frame->caller;
  if (s->context) kl_store(l, kl_const32(l, 1), context_field(l, s->context, LEFT_FIELD, 0));
  else if (l->kernel->off) kl_set_variable(l, l->kernel->off, kl_const32(l, KJ_OFF_LEFT_KERNEL));
  kl_br(l, l->frame->leave);
  l->frame = inner;
}

/* Ends the code of an interrupted launch: calls a function of the runtime that does not return. */
static void leave_interrupted(kl_lowering *l)
{
  static const char *const attributes[] = { "noreturn", "nounwind", "cold" };
  LLVMValueRef grid = kl_cpu(l)->grid_pointer;
  LLVMTypeRef type = LLVMFunctionType(l->void_, &l->pointer, 1, false);
  LLVMValueRef leave = kl_load_grid(l, l->pointer, offsetof(kj_cpu_grid, leave)),
               call = kl_call(l, type, leave, &grid, 1);
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    kl_add_call_attribute(l, call, attributes[i]);
  LLVMBuildUnreachable(kl_next(l));
}

/* Returns the product of three extents of the launch. */
static LLVMValueRef load_volume(kl_lowering *l, size_t offset)
{
  LLVMValueRef volume = kl_const64(l, 1);
  for (unsigned d = 0; d < 3; d++) {
    LLVMValueRef extent = kl_load_grid(l, l->i32, offset + d * sizeof(uint32_t));
    volume = kl_mul(l, volume, kl_zext(l, extent, l->i64));
  }
  return volume;
}

/* Returns the number of iterations of a waiting loop after which the thread fails. In a launch with
 * one block, these iterations take about a tenth of a second. With several blocks they take a few
 * seconds: blocks run on several cores, and a block may have to wait while another block computes.
 * There is no limit in a launch with a single thread, which waits for the application or for
 * another launch. */
static LLVMValueRef most_turns(kl_lowering *l)
{
  enum { OF_BLOCK = 1 << 22, OF_GRID = 1 << 28 };
  LLVMValueRef blocks = load_volume(l, offsetof(kj_cpu_grid, grid)),
               threads = load_volume(l, offsetof(kj_cpu_grid, block)), one = kl_const64(l, 1);
  LLVMValueRef is_one_block = kl_icmp(l, LLVMIntULE, blocks, one),
               is_one_thread = kl_icmp(l, LLVMIntULE, kl_mul(l, blocks, threads), one);
  LLVMValueRef most = kl_select(l, is_one_block, kl_const64(l, OF_BLOCK), kl_const64(l, OF_GRID));
  return kl_select(l, is_one_thread, kl_const64(l, -1), most);
}

void kl_cpu_leave_after_call(kl_lowering *l, LLVMValueRef context)
{
  LLVMBasicBlockRef left = kl_new_block(l, "left"), stays = kl_new_block(l, "stays");
  LLVMValueRef flag = kl_load(l, l->i32, context_field(l, context, LEFT_FIELD, 0));
  kl_go_on_if(l, kl_icmp(l, LLVMIntNE, flag, kl_const32(l, 0)), left, stays);
  kl_cpu_leave_kernel(l);
  kl_move_to(l, stays);
}

/* ---- positions ---- */

static LLVMValueRef position(kl_lowering *l, ki_builtin_id id, uint32_t dimension)
{
  kl_cpu_state *s = kl_cpu(l);
  switch (KJ_AMONG(id)) {
  case KJ_BUILTIN_THREAD_IDX: return s->thread[dimension];
  case KJ_BUILTIN_BLOCK_IDX: return s->block_index[dimension];
  case KJ_BUILTIN_BLOCK_DIM: return kl_const32(l, s->block[dimension]);
  case KJ_BUILTIN_GRID_DIM: return s->grid[dimension];
  case KJ_BUILTIN_THREAD_RANK: return s->rank;
  case KJ_BUILTIN_WARP_RANK: return kl_lshr(l, s->rank, kl_const32(l, 5));
  case KJ_BUILTIN_LANEID: return kl_and(l, s->rank, kl_const32(l, KJ_WARP_THREADS - 1));
  case KJ_BUILTIN_CLUSTER_IDX:
  case KJ_BUILTIN_CLUSTER_DIM:
  case KJ_BUILTIN_CLUSTER_GRID_DIM:
  case KJ_BUILTIN_CLUSTER_BLOCK_IDX:
  case KJ_BUILTIN_CLUSTER_RANK:
  case KJ_BUILTIN_CLUSTER_SIZE: return kl_cpu_cluster_position(l, id, dimension);
  default:
    kt_fail(l->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
            "internal error: `%s` is not a thread or block index", ki_builtin_table[id].name);
  }
}

static LLVMValueRef stack_pointer(kl_lowering *l)
{
  LLVMValueRef frame =
    kl_intrinsic(l, "llvm.frameaddress", &l->pointer, 1, (LLVMValueRef[]){ kl_const32(l, 0) }, 1);
  return kl_ptrtoint(l, frame, l->i64);
}

/* ---- printing threads ---- */

/* Prints a line. The block number is passed as well, so that the lines can be output in the order
 * of the blocks. */
static void print(kl_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words)
{
  (void)count;
  kl_cpu_state *s = kl_cpu(l);
  LLVMTypeRef types[] = { l->pointer, l->i64, l->i64, l->pointer },
              type = LLVMFunctionType(l->void_, types, 4, false);
  if (!l->print_function) {
    l->print_function = kl_add_function(l, KJ_PRINT_FUNCTION, type);
    kl_add_attribute(l, l->print_function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
    kl_add_attribute(l, l->print_function, (unsigned)LLVMAttributeFunctionIndex, "cold", 0);
  }
  LLVMValueRef index[3], size[2];
  for (int d = 0; d < 3; d++) index[d] = kl_extend_position(l, s->block_index[d]);
  for (int d = 0; d < 2; d++) size[d] = kl_extend_position(l, s->grid[d]);
  LLVMValueRef row = kl_add(l, kl_mul(l, index[2], size[1]), index[1]);
  LLVMValueRef block = kl_add(l, kl_mul(l, row, size[0]), index[0]);
  kl_call(l, type, l->print_function,
          (LLVMValueRef[]){ l->print_sink, kl_const64(l, (int64_t)header), block, words }, 4);
}

/* ---- operations that do nothing, and operations that the SIMT pass has removed ---- */

static void no_barrier(kl_lowering *l)
{
  kt_fail(l->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
          "internal error: a synchronization is left in a thread loop");
}

static LLVMValueRef no_barrier_reduce(kl_lowering *l, ki_barrier_reduction reduction,
                                      LLVMValueRef predicate)
{
  (void)reduction;
  no_barrier(l);
  return predicate;
}

static void no_syncwarp(kl_lowering *l, LLVMValueRef mask)
{
  (void)mask;
  no_barrier(l);
}

static LLVMValueRef no_shuffle(kl_lowering *l, ki_shuffle_mode mode, LLVMValueRef mask,
                               LLVMValueRef value, LLVMValueRef lane, LLVMValueRef width)
{
  (void)mode, (void)mask, (void)lane, (void)width;
  no_barrier(l);
  return value;
}

static LLVMValueRef no_vote(kl_lowering *l, ki_vote mode, LLVMValueRef mask, LLVMValueRef predicate)
{
  (void)mode, (void)mask;
  no_barrier(l);
  return predicate;
}

static LLVMValueRef no_activemask(kl_lowering *l)
{
  no_barrier(l);
  return NULL;
}

/* Builds a fence. One worker thread runs a whole block, so program order is sufficient within a
 * block. */
static void fence(kl_lowering *l, ki_memory_scope scope)
{
  if (scope != KJ_SCOPE_BLOCK)
    LLVMBuildFence(kl_next(l), LLVMAtomicOrderingSequentiallyConsistent, false, "");
}

/* Returns whether the processor has 16-byte atomic instructions. Without them, LLVM would call
 * library functions. */
static bool has_wide_atomics(kl_lowering *l) { return kl_cpu(l)->features->has_wide_atomics; }
static bool has_unsigned_conversion(kl_lowering *l) { return kl_cpu(l)->features->has_avx512; }

static void prefetch(kl_lowering *l, ki_cache_level level, LLVMValueRef pointer)
{
  bool is_near = level == KJ_PREFETCH_L1;
  LLVMTypeRef type = LLVMTypeOf(pointer);
  kl_intrinsic(l, "llvm.prefetch", &type, 1,
               (LLVMValueRef[]){ pointer, kl_const32(l, 0), kl_const32(l, is_near ? 3 : 2),
                                 kl_const32(l, 1) },
               4);
}

/* Asynchronous copies and matrix products are executed immediately, in program order, so fences and
 * waits for them do nothing. */
static LLVMValueRef nothing(kl_lowering *l, const kt_expr *expr)
{
  (void)l, (void)expr;
  return NULL;
}

/* Returns the cycle counter, or the system clock, which a function of native/host_math.c reads. */
static LLVMValueRef clock_value(kl_lowering *l, ki_builtin_id clock)
{
  static const char timer[] = "kj_nanoseconds";
  if (clock == KJ_BUILTIN_CLOCK64) return kl_intrinsic(l, KJ_CYCLE_COUNTER, NULL, 0, NULL, 0);
  LLVMTypeRef type = LLVMFunctionType(l->i64, NULL, 0, false);
  LLVMValueRef function = LLVMGetNamedFunction(l->module, timer);
  if (!function) function = kl_add_function(l, timer, type);
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  return kl_call(l, type, function, NULL, 0);
}

const kl_lower_target kl_cpu_lowering = {
  .name = "the CPU",
  .global_space = 0,
  .shared_space = 0,
  .constant_space = 0,
  .scopes = { [KJ_SCOPE_DEVICE] = "", [KJ_SCOPE_BLOCK] = "singlethread", [KJ_SCOPE_SYSTEM] = "" },
  .begin_kernel = kl_cpu_begin_kernel,
  .begin_block = kl_cpu_begin_block,
  .end_kernel = kl_cpu_end_kernel,
  .begin_entry = kl_cpu_begin_entry,
  .position = position,
  .slot_pointer = kl_cpu_slot_pointer,
  .object_of = kl_cpu_object_of,
  .shared_pointer = kl_cpu_shared_pointer,
  .local_pointer = kl_cpu_local_pointer,
  .dynamic_shared_bytes = kl_cpu_dynamic_shared_bytes,
  .range = kl_cpu_range,
  .statement = kl_cpu_statement,
  .barrier = no_barrier,
  .barrier_reduce = no_barrier_reduce,
  .group_fence = nothing,
  .mbarrier = kl_cpu_mbarrier,
  .pending_count = kl_cpu_pending_count,
  .shared_address = kl_cpu_shared_address,
  .map_shared_rank = kl_cpu_map_shared_rank,
  .cp_async = kl_cpu_cp_async,
  .cp_async_bulk = kl_cpu_cp_async_bulk,
  .cp_async_tensor = kl_cpu_cp_async_tensor,
  .copy_group = nothing,
  .wgmma_group = nothing,
  .wgmma_commit = nothing,
  .has_plain_shared_atomics = true,
  .has_wide_atomics = has_wide_atomics,
  .syncwarp = no_syncwarp,
  .fence = fence,
  .shuffle = no_shuffle,
  .vote = no_vote,
  .activemask = no_activemask,
  .prefetch = prefetch,
  .clock = clock_value,
  .math = kl_cpu_math,
  .rsqrt = kl_cpu_rsqrt,
  .float_to_i32 = NULL,
  .has_unsigned_conversion = has_unsigned_conversion,
  .integer_abs = NULL,
  .recursion_bytes = 4096 * 1024,
  .fiber_recursion_bytes = 512 * 1024,
  .stack_limit_bytes = 1024 * 1024,
  .stack_pointer = stack_pointer,
  .has_print_parameter = true,
  .print = print,
  .leave_kernel = kl_cpu_leave_kernel,
  .leave_interrupted = leave_interrupted,
  .most_turns = most_turns,
  .context_has_positions = true,
  .thread_context = kl_cpu_thread_context,
  .leave_after_call = kl_cpu_leave_after_call,
  .use_thread_context = kl_cpu_use_thread_context,
  .finish_function = kl_cpu_finish_function,
};
