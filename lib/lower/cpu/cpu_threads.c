/* CPU: loops over the threads of a block, and loops over a grid_range or block_range, of which each
 * block processes a part.
 *
 * A thread loop is a nest of loops over z, y and x with constant trip counts. x is innermost and
 * consecutive, so that LLVM's vectorizer accepts the loop. The loop must not be unrolled before it
 * is vectorized, and between two barriers no thread may read memory that another thread writes.
 *
 * Accesses that are known to be independent of other iterations carry the id of a parallel loop
 * (kl_annotate_access). Two kinds of accesses have no such id, because iterations share the memory:
 * accesses to the local arrays of a single region, and the plain loads and stores by which atomics
 * access shared memory. Lowering only proposes that the loop is parallel; target/host_parallel.c
 * decides this. */
#include "lower/instruction.h"
#include "lower/cpu/cpu.h"
#include "lower/debug.h"
#include "native/architecture.h"

/* ---- loops ---- */

/* Returns the id of a loop that may be vectorized. may_unroll: the loop may also be unrolled, so
 * that the vectorizer can interleave its iterations. Callers set may_unroll if the trip count is
 * not constant, because no pass then unrolls the loop before the vectorizer. */
static LLVMMetadataRef parallel_loop_id(kl_lowering *l, bool may_unroll)
{
  LLVMMetadataRef properties[] = { kl_flag_property(l, "llvm.loop.vectorize.enable", true),
                                   kl_no_unrolling(l) };
  return kl_loop_id(l, properties, may_unroll ? 1 : 2);
}

static LLVMMetadataRef plain_loop_id(kl_lowering *l)
{
  LLVMMetadataRef property = kl_no_unrolling(l);
  return kl_loop_id(l, &property, 1);
}

kl_parallel kl_begin_parallel(kl_lowering *l, LLVMMetadataRef id)
{
  KJ_ASSERT(!l->parallel_loop); /* parallel loops are not nested */
  kl_parallel p = { .outer = l->parallel_loop, .id = id };
  l->parallel_loop = id;
  return p;
}

LLVMMetadataRef kl_end_parallel(kl_lowering *l, const kl_parallel *p)
{
  LLVMMetadataRef proposal[] = { kl_metadata_string(l, KJ_PARALLEL_PROPOSAL), p->id };
  LLVMMetadataRef properties[] = { kl_no_unrolling(l),
                                   LLVMMDNodeInContext2(l->context, proposal, 2) };
  l->parallel_loop = p->outer;
  return kl_loop_id(l, properties, 2);
}

static kl_parallel begin_parallel(kl_lowering *l, bool may_unroll)
{
  return kl_begin_parallel(l, parallel_loop_id(l, may_unroll));
}

void kl_begin_vector_loop(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first,
                          LLVMValueRef stop)
{
  *loop = (kl_counted_loop){ .is_signed = true };
  kl_begin_loop(l, loop, first, stop, LLVMConstInt(LLVMTypeOf(first), 1, false), "loop");
}

void kl_end_vector_loop(kl_lowering *l, kl_counted_loop *loop)
{
  if (!loop->id) loop->id = plain_loop_id(l);
  kl_end_loop(l, loop);
}

/* ---- thread loops ---- */

/* A loop nest over the threads in a block. A dimension with a single thread has no loop. */
typedef struct thread_nest {
  kl_counted_loop loops[3];
  bool has_loop[3];
} thread_nest;

void kl_set_rank(kl_lowering *l, LLVMValueRef rank) { kl_cpu(l)->rank = rank; }

LLVMValueRef kl_is_active(kl_lowering *l)
{
  KJ_ASSERT(l->kernel->off);
  LLVMValueRef off = kl_get_variable(l, l->kernel->off);
  return kl_icmp(l, LLVMIntEQ, off, kl_const32(l, 0));
}

static LLVMValueRef no_wrap(LLVMValueRef value)
{
  if (LLVMIsAInstruction(value)) {
    LLVMSetNSW(value, true);
    LLVMSetNUW(value, true);
  }
  return value;
}

static LLVMValueRef scale_and_add(kl_lowering *l, LLVMValueRef base, uint32_t scale,
                                  LLVMValueRef more)
{
  LLVMValueRef scaled = no_wrap(kl_mul(l, base, kl_const32(l, scale)));
  return no_wrap(kl_add(l, scaled, more));
}

/* Begins one loop over the threads in a warp. The threads can have any coordinates in the block. */
static void begin_warp(kl_lowering *l, thread_nest *nest)
{
  kl_cpu_state *s = kl_cpu(l);
  nest->has_loop[0] = true;
  kl_begin_vector_loop(l, &nest->loops[0], s->unit_first, s->unit_stop);
  LLVMValueRef rest = nest->loops[0].counter;
  for (int d = 0; d < 3; d++) {
    LLVMValueRef size = kl_const32(l, s->block[d]);
    s->thread[d] = d < 2 ? kl_urem(l, rest, size) : rest;
    if (d < 2) rest = kl_udiv(l, rest, size);
  }
  kl_set_rank(l, nest->loops[0].counter);
}

static void begin_nest(kl_lowering *l, thread_nest *nest)
{
  kl_cpu_state *s = kl_cpu(l);
  if (s->has_warps) {
    begin_warp(l, nest);
    return;
  }
  LLVMValueRef zero = kl_const32(l, 0), rank = zero;
  for (int d = 2; d >= 0; d--) {
    s->thread[d] = zero;
    nest->has_loop[d] = s->block[d] > 1;
    if (nest->has_loop[d]) {
      kl_begin_vector_loop(l, &nest->loops[d], zero, kl_const32(l, s->block[d]));
      s->thread[d] = nest->loops[d].counter;
    }
    rank = d == 2 ? s->thread[2] : scale_and_add(l, rank, s->block[d], s->thread[d]);
  }
  kl_set_rank(l, rank);
}

/* Returns the dimension of the innermost loop. This is x or, if x has no loop, the next
 * dimension. */
static int innermost(const thread_nest *nest)
{
  for (int d = 0; d < 3; d++)
    if (nest->has_loop[d]) return d;
  return -1;
}

static void end_nest(kl_lowering *l, thread_nest *nest, LLVMMetadataRef id)
{
  kl_cpu_state *s = kl_cpu(l);
  for (int d = 0; d < 3; d++) {
    if (!nest->has_loop[d]) continue;
    nest->loops[d].id = d == innermost(nest) ? id : NULL;
    kl_end_vector_loop(l, &nest->loops[d]);
  }
  if (s->thread_count == 1) return;
  s->rank = s->thread[0] = s->thread[1] = s->thread[2] = NULL;
}

static void guard(kl_lowering *l, LLVMBasicBlockRef otherwise)
{
  LLVMBasicBlockRef active = kl_new_block(l, "active");
  kl_go_on_if(l, kl_is_active(l), active, otherwise);
}

/* Returns the basic block in which the iteration of a thread ends: the loop's latch if there is a
 * loop. */
static LLVMBasicBlockRef end_of_thread(kl_lowering *l, const thread_nest *nest)
{
  int d = innermost(nest);
  return d < 0 ? kl_new_block(l, "thread.end") : nest->loops[d].loop.next;
}

static void end_thread(kl_lowering *l, const thread_nest *nest, LLVMBasicBlockRef end)
{
  kl_branch(l, end);
  if (innermost(nest) < 0) kl_move_to(l, end);
}

static void show_positions(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  kl_debug_position(l, "threadIdx", &s->shown_thread, s->thread);
  kl_debug_position(l, "blockIdx", &s->shown_block, s->block_index);
}

static void lower_threads(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_THREADS);
  thread_nest nest = { 0 };
  LLVMBasicBlockRef outer_leave = l->frame->leave;
  begin_nest(l, &nest);
  kl_parallel p = begin_parallel(l, false);
  LLVMBasicBlockRef end = end_of_thread(l, &nest);
  l->frame->leave = end;
  if (stmt->is_guarded) guard(l, end);
  kl_debug_thread(l);
  show_positions(l);
  kl_lower_stmts(l, &stmt->body);
  end_thread(l, &nest, end);
  l->frame->leave = outer_leave;
  end_nest(l, &nest, kl_end_parallel(l, &p));
}

void kl_cpu_statement(kl_lowering *l, const kt_stmt *stmt)
{
  if (stmt->kind == KJ_TS_THREADS) lower_threads(l, stmt);
  else if (stmt->kind == KJ_TS_WARP) kl_cpu_warp(l, stmt);
  else kl_cpu_reduce(l, stmt);
}

/* ---- ranges ---- */

enum { MAX_RANGE_RANK = 3, ROUNDED_PIECE = 64, LEAST_ROUNDED = 1024 };

typedef struct range {
  const kt_stmt *stmt;
  uint32_t rank;
  LLVMValueRef extents[MAX_RANGE_RANK]; /* i64, nonnegative */
  LLVMValueRef total;
  /* i64; first and last element that the block processes, in linear order */
  LLVMValueRef first, last;
} range;

static LLVMValueRef select_less(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_intrinsic2(l, "llvm.smin", x, y);
}
static LLVMValueRef mul64(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return no_wrap(kl_mul(l, x, y));
}

/* Multiplies two extents and saturates at 2^63 - 1. A loop with more elements would never end. */
static LLVMValueRef multiply_extents(kl_lowering *l, LLVMValueRef x, LLVMValueRef y)
{
  return kl_intrinsic(l, "llvm.smul.fix.sat", &l->i64, 1,
                      (LLVMValueRef[]){ x, y, kl_const32(l, 0) }, 3);
}

/* Computes the range of elements that the block processes. If a call processes its blocks together
 * (joins_blocks), the range covers all of them, because their ranges are adjacent. Large ranges
 * start at multiples of 64 elements, so that no two worker threads write to the same cache line.
 * There can be up to 2^63 - 1 elements, so rounded numbers and sums are computed as unsigned
 * numbers. */
static void find_piece(kl_lowering *l, range *r)
{
  const kl_cpu_state *s = kl_cpu(l);
  LLVMValueRef blocks = kl_const64(l, 1);
  for (int d = 0; d < 3; d++) blocks = mul64(l, blocks, kl_zext(l, s->grid[d], l->i64));
  LLVMValueRef whole = kl_udiv(l, r->total, blocks), rest = kl_urem(l, r->total, blocks);
  LLVMValueRef size =
    kl_add(l, whole, kl_zext(l, kl_icmp(l, LLVMIntNE, rest, kl_const64(l, 0)), l->i64));
  LLVMValueRef rounded =
    kl_and(l, kl_add(l, size, kl_const64(l, ROUNDED_PIECE - 1)), kl_const64(l, -ROUNDED_PIECE));
  size = kl_select(l, kl_icmp(l, LLVMIntUGE, whole, kl_const64(l, LEAST_ROUNDED)), rounded, size);
  r->first = kl_intrinsic2(l, "llvm.umin", kl_mul(l, size, s->block_number), r->total);
  LLVMValueRef next = s->joins_blocks ? kl_mul(l, size, s->last) : kl_add(l, r->first, size);
  r->last = kl_intrinsic2(l, "llvm.umin", next, r->total);
}

static range start_range(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->extents.count == stmt->vars.count && stmt->extents.count <= MAX_RANGE_RANK);
  range r = { .stmt = stmt, .rank = (uint32_t)stmt->extents.count };
  for (uint32_t d = 0; d < r.rank; d++) {
    r.extents[d] =
      kl_intrinsic2(l, "llvm.smax", kl_lower_expr(l, stmt->extents.items[d]), kl_const64(l, 0));
    r.total = d ? multiply_extents(l, r.total, r.extents[d]) : r.extents[d];
  }
  r.first = kl_const64(l, 0);
  r.last = r.total;
  if (stmt->kind == KJ_TS_GRID_FOR) find_piece(l, &r);
  return r;
}

/* Sets the outer loop variables from the number of a row. */
static void set_row(kl_lowering *l, const range *r, LLVMValueRef row)
{
  KJ_ASSERT(r->rank > 1);
  for (uint32_t d = r->rank - 1; d-- > 0;) {
    LLVMValueRef at = d > 0 ? kl_urem(l, row, r->extents[d]) : row;
    kl_set_variable(l, r->stmt->vars.items[d], at);
    if (d > 0) row = kl_udiv(l, row, r->extents[d]);
  }
}

/* Runs the first failing iteration again with its checks. A check of this iteration then fails, so
 * the code after it is not reached. */
static void run_failing(kl_lowering *l, const range *r, const kl_speculation *speculation)
{
  LLVMValueRef has_any, first = kl_find_failing(l, speculation, &has_any);
  LLVMBasicBlockRef again = kl_new_block(l, "again"), none = kl_new_block(l, "none");
  kl_go_on_if(l, has_any, again, none);
  kl_set_variable(l, r->stmt->vars.items[r->rank - 1], first);
  kl_lower_stmts(l, &r->stmt->body);
  kl_go_on_in(l, none);
}

/* Lowers a row. The loop variable itself is the counter and keeps its width. LLVM then recognizes
 * that accesses with this index are consecutive. */
static void lower_row(kl_lowering *l, const range *r, LLVMValueRef first, LLVMValueRef last)
{
  const kt_var *var = r->stmt->vars.items[r->rank - 1];
  kl_counted_loop loop;
  if (var->is_narrow) {
    first = kl_as_i32(l, first);
    last = kl_as_i32(l, last);
  }
  kl_speculation speculation;
  kl_chunks chunks = { .is_signed = true };
  uint32_t chunk = kl_chunk_of(l, r->stmt);
  bool is_speculated = kl_can_speculate(l, &r->stmt->body);
  if (is_speculated) kl_begin_speculation(l, &speculation, LLVMTypeOf(first));
  LLVMBasicBlockRef end = chunk > 1 ? kl_new_block(l, "row.end") : NULL;
  if (chunk > 1) {
    kl_begin_chunks(l, &chunks, first, last, chunk, end);
    first = chunks.first;
    last = chunks.stop;
  }
  kl_begin_vector_loop(l, &loop, first, last);
  loop.polled = chunk == 1 ? r->stmt : NULL;
  kl_parallel p = begin_parallel(l, true);
  kl_set_variable(l, var, loop.counter);
  if (is_speculated) kl_begin_speculated(l, &speculation);
  kl_lower_stmts(l, &r->stmt->body);
  if (is_speculated) kl_end_speculated(l, &speculation, loop.counter);
  kl_branch(l, loop.loop.next);
  loop.id = kl_end_parallel(l, &p);
  kl_end_vector_loop(l, &loop);
  if (chunk > 1) {
    kl_go_on_in(l, chunks.end);
    kl_end_chunks(l, &chunks, last, r->stmt->location);
    kl_move_to(l, end);
  }
  if (is_speculated) run_failing(l, r, &speculation);
}

/* Returns the number of elements from `first` to the first whole cache line of the first large
 * output array. Returns NULL if the kernel writes no large array, or if the code has no
 * non-temporal stores. */
static LLVMValueRef find_lead(kl_lowering *l, LLVMValueRef first)
{
  enum { CACHE_LINE = 64 };
  if (!*KJ_STORE_FENCE) return NULL;
  const kj_argument *arguments = l->c->request->signature->arguments;
  for (size_t i = 0; i < l->kernel->params.count; i++) {
    const kt_var *param = l->kernel->params.items[i];
    if (!kl_is_array_type(l, param->type) || !l->uses[param->argument].is_written ||
        !(arguments[param->argument].facts & KJ_FACT_LARGE))
      continue;
    kl_array_value array = kl_get_array(l, param);
    uint32_t size = kl_scalar_bytes(l, kl_type_info(l, array.type)->element);
    if (!size || CACHE_LINE % size) return NULL;
    l->c->used_large = true;
    LLVMValueRef at = kl_udiv(l, kl_ptrtoint(l, array.pointer, l->i64), kl_const64(l, size));
    return kl_and(l, kl_sub(l, kl_const64(l, 0), kl_add(l, at, first)),
                  kl_const64(l, CACHE_LINE / size - 1));
  }
  return NULL;
}

/* Lowers a part of a one-dimensional range. If there is a large output array, emits two loops: one
 * up to the array's first whole cache line, and one for the rest. The stores of whole vectors are
 * then aligned (target/host_streams.c). */
static void lower_line(kl_lowering *l, const range *r)
{
  LLVMValueRef lead = find_lead(l, r->first);
  if (!lead) {
    lower_row(l, r, r->first, r->last);
    return;
  }
  LLVMValueRef middle = kl_intrinsic2(l, "llvm.umin", kl_add(l, r->first, lead), r->last);
  kl_counted_loop parts = { 0 };
  kl_begin_loop(l, &parts, kl_const32(l, 0), kl_const32(l, 2), kl_const32(l, 1), "parts");
  LLVMValueRef is_lead = kl_icmp(l, LLVMIntEQ, parts.counter, kl_const32(l, 0));
  lower_row(l, r, kl_select(l, is_lead, r->first, middle), kl_select(l, is_lead, middle, r->last));
  parts.id = kl_one_copy_id(l);
  kl_end_loop(l, &parts);
}

/* Lowers the rows of a part as plain loops over elements, which belong to no particular thread. The
 * first and the last row can be incomplete. */
static void lower_rows(kl_lowering *l, const range *r)
{
  if (r->rank == 1) {
    lower_line(l, r);
    return;
  }
  LLVMValueRef width = kl_intrinsic2(l, "llvm.smax", r->extents[r->rank - 1], kl_const64(l, 1)),
               zero = kl_const64(l, 0);
  LLVMValueRef first_row = kl_udiv(l, r->first, width);
  LLVMValueRef last_row = kl_udiv(l, kl_add(l, r->last, kl_sub(l, width, kl_const64(l, 1))), width);
  kl_counted_loop rows;
  kl_begin_vector_loop(l, &rows, first_row, last_row);
  rows.polled = r->stmt;
  LLVMValueRef start = kl_mul(l, rows.counter, width);
  LLVMValueRef first = kl_intrinsic2(l, "llvm.smax", kl_sub(l, r->first, start), zero);
  LLVMValueRef last = select_less(l, kl_sub(l, r->last, start), width);
  set_row(l, r, rows.counter);
  lower_row(l, r, first, last);
  kl_end_vector_loop(l, &rows);
}

static void set_element(kl_lowering *l, const range *r, LLVMValueRef element)
{
  const kt_var *var = r->stmt->vars.items[r->rank - 1];
  if (r->rank == 1) {
    kl_set_variable(l, var, element);
    return;
  }
  kl_set_variable(l, var, kl_urem(l, element, r->extents[r->rank - 1]));
  set_row(l, r, kl_udiv(l, element, r->extents[r->rank - 1]));
}

/* Returns base + rank in the width of the loop variable. */
static LLVMValueRef add_rank(kl_lowering *l, const range *r, LLVMValueRef base)
{
  LLVMValueRef rank = kl_cpu(l)->rank;
  if (r->rank == 1 && r->stmt->vars.items[0]->is_narrow)
    return no_wrap(kl_add(l, kl_as_i32(l, base), rank));
  return no_wrap(kl_add(l, base, kl_extend_position(l, rank)));
}

/* Lowers the body. Code for a failing thread branches to `end`. */
static void lower_range_body(kl_lowering *l, const range *r, LLVMBasicBlockRef end)
{
  LLVMBasicBlockRef leave = l->frame->leave;
  l->frame->leave = end;
  kl_lower_stmts(l, &r->stmt->body);
  l->frame->leave = leave;
}

/* Lowers one round of a one-dimensional block, in which each thread processes an element. In the
 * last round, the number of threads is the number of elements that are left. */
static void lower_linear_round(kl_lowering *l, const range *r, LLVMValueRef base)
{
  kl_cpu_state *s = kl_cpu(l);
  LLVMValueRef left = kl_sub(l, r->last, base), zero = kl_const32(l, 0);
  LLVMValueRef count = kl_as_i32(l, select_less(l, left, kl_const64(l, s->thread_count)));
  kl_counted_loop loop;
  if (s->has_warps) count = kl_intrinsic2(l, "llvm.umin", count, s->unit_stop);
  kl_begin_vector_loop(l, &loop, s->unit_first, count);
  s->thread[0] = loop.counter;
  s->thread[1] = s->thread[2] = zero;
  kl_set_rank(l, loop.counter);
  kl_parallel p = begin_parallel(l, true);
  if (r->stmt->is_guarded) guard(l, loop.loop.next);
  set_element(l, r, add_rank(l, r, base));
  lower_range_body(l, r, loop.loop.next);
  kl_branch(l, loop.loop.next);
  loop.id = kl_end_parallel(l, &p);
  kl_end_vector_loop(l, &loop);
  if (s->thread_count > 1) s->rank = s->thread[0] = s->thread[1] = s->thread[2] = NULL;
}

static void lower_nested_round(kl_lowering *l, const range *r, LLVMValueRef base)
{
  thread_nest nest = { 0 };
  begin_nest(l, &nest);
  kl_parallel p = begin_parallel(l, false);
  LLVMBasicBlockRef end = end_of_thread(l, &nest), inside = kl_new_block(l, "inside");
  LLVMValueRef element = kl_add(l, base, kl_extend_position(l, kl_cpu(l)->rank));
  kl_go_on_if(l, kl_icmp(l, LLVMIntSLT, element, r->last), inside, end);
  if (r->stmt->is_guarded) guard(l, end);
  set_element(l, r, r->rank == 1 ? add_rank(l, r, base) : element);
  lower_range_body(l, r, end);
  end_thread(l, &nest, end);
  end_nest(l, &nest, kl_end_parallel(l, &p));
}

/* Leaves the loop over the rounds if no thread is active. Threads can fail in any round; without
 * this test the remaining rounds would run without threads. */
static void leave_rounds_unless_any(kl_lowering *l, const range *r, const kl_counted_loop *rounds)
{
  if (!r->stmt->is_guarded || !l->kernel->may_fail) return;
  LLVMBasicBlockRef some = kl_new_block(l, "some");
  kl_cond_br(l, kl_has_active_lane(l, r->stmt), some, rounds->loop.leave);
  kl_move_to(l, some);
}

/* Lowers a block_range. Element first + k belongs to thread k modulo the number of threads. */
static void lower_rounds(kl_lowering *l, const range *r)
{
  kl_cpu_state *s = kl_cpu(l);
  kl_counted_loop rounds = { .polled = r->stmt };
  kl_begin_loop(l, &rounds, r->first, r->last, kl_const64(l, s->thread_count), "rounds");
  leave_rounds_unless_any(l, r, &rounds);
  if (s->block[1] * s->block[2] == 1) lower_linear_round(l, r, rounds.counter);
  else lower_nested_round(l, r, rounds.counter);
  rounds.id = plain_loop_id(l);
  kl_end_loop(l, &rounds);
}

void kl_cpu_range(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(kt_flow_of(stmt) == KJ_FLOW_RANGE);
  range r = start_range(l, stmt);
  if (l->c->code->is_range_only || stmt->is_threadless) lower_rows(l, &r);
  else lower_rounds(l, &r);
}
