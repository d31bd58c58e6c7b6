/* Determines the points at which interruptible code polls for an interrupt
 * (docs/architecture/interrupts.md).
 *
 * Needs typed instances. Guarantees: .poll is set for every loop that can run for long, and the
 * polls of instances are set. A loop with a small constant number of iterations does not poll; its
 * cost is the number of iterations times the cost of its body. Every other loop polls about once in
 * BUDGET expressions: every n iterations, or in each iteration if its body contains a loop that
 * polls.
 *
 * A `while` loop without inner loops polls once every few iterations, and is unrolled by the same
 * number. Some short innermost loops are compiled in two versions: the version for few iterations
 * does not poll (lower/poll.c). On the CPU, only loops that cannot be divided into chunks have two
 * versions. */
#include "pass/pass.h"

enum {
  BUDGET = KJ_POLL_BUDGET,
  MOST_ITERATIONS = 1 << 13,
  MOST_COPIES = 8,
  COPIED = 400, /* maximum number of expressions in all copies of a body */
  /* maximum number of expressions in an iteration; in a larger iteration, the cost of a poll is
   * negligible */
  MOST_TWICE = 512,
  CALL_COST = BUDGET, /* cost of calling a function that polls in its own loops */
  BUILTIN_COST = 4,
  EXTERN_COST = 64,
  WAIT_COST = 1024, /* a wait takes a few microseconds */
  /* on a GPU, threads that print wait until a thread of the application has delivered their
   * lines */
  PRINT_COST = 1 << 20
};

/* The cost and the properties of code that is executed once. The cost is the number of expressions.
 * The flags tell whether the code contains a loop that polls, any loop, an operation that threads
 * must reach together, and warpgroup products. */
typedef struct cost {
  uint64_t size;
  bool polls, has_loops, meets, has_products;
} cost;

typedef struct marker {
  kt_compilation *c;
  cost *of; /* indexed by instance */
} marker;

static cost add(cost a, cost b)
{
  uint64_t size = a.size + b.size;
  return (cost){ size < a.size ? UINT64_MAX : size, a.polls || b.polls, a.has_loops || b.has_loops,
                 a.meets || b.meets, a.has_products || b.has_products };
}

static cost scale(cost a, uint64_t times)
{
  if (__builtin_mul_overflow(a.size, times, &a.size)) a.size = UINT64_MAX;
  return a;
}

/* ---- expressions ---- */

/* Returns whether the built-in is a warpgroup product, which runs asynchronously, or waits for such
 * products. */
static bool is_product(const ki_builtin *builtin)
{
  return builtin->id >= KJ_BUILTIN_WGMMA_F16 && builtin->id <= KJ_BUILTIN_WGMMA_WAIT;
}

/* Returns whether the built-in waits for another thread. */
static bool waits(const ki_builtin *builtin)
{
  return builtin->flags & KJ_WAITS || builtin->id == KJ_BUILTIN_GRID_SYNC;
}

/* Returns whether threads must execute the built-in together. In a loop with such a built-in, all
 * threads must run the same version of the loop. */
static bool meets(const ki_builtin *builtin)
{
  return builtin->flags & (KJ_BARRIER | KJ_WARP | KJ_WAITS) || builtin->id == KJ_BUILTIN_PTX ||
         builtin->id == KJ_BUILTIN_PTX_EFFECT || is_product(builtin);
}

static bool is_gpu(const marker *m) { return m->c->request->target.kind != KJ_TARGET_CPU; }

/* Estimates the cost of a call. On a GPU, a function that is not inlined counts the iterations of
 * its loops with a new counter, so CALL_COST is only an estimate. */
static cost measure_call(const marker *m, const kt_instance *callee)
{
  if (callee->function->is_extern) return (cost){ .size = EXTERN_COST, .meets = true };
  cost of = m->of[callee->id];
  if (of.polls && is_gpu(m)) of = add(of, (cost){ .size = CALL_COST });
  of.meets |= callee->has_barrier || callee->has_warp;
  return of;
}

static cost measure_expr(const marker *m, const kt_expr *e)
{
  cost sum = { .size = 1 };
  if (!e) return (cost){ 0 };
  for (size_t i = 0; i < kt_operand_count(e); i++)
    sum = add(sum, measure_expr(m, kt_operand(e, i)));
  if (e->kind == KJ_T_CALL) sum = add(sum, measure_call(m, e->instance));
  if (e->kind != KJ_T_BUILTIN) return sum;
  cost own =
    waits(e->builtin) ? (cost){ .size = WAIT_COST, .polls = true } : (cost){ .size = BUILTIN_COST };
  own.meets = meets(e->builtin);
  own.has_products = is_product(e->builtin);
  sum = add(sum, own);
  return sum;
}

/* ---- statements ---- */

static cost measure_list(const marker *m, const kt_stmts *list);

/* Returns the number of iterations if it is constant, otherwise 0. */
static uint64_t count_iterations(const kt_stmt *loop)
{
  if (loop->kind != KJ_TS_FOR || !kt_is_constant(loop->first) || !kt_is_constant(loop->stop) ||
      !kt_is_constant(loop->step))
    return 0;
  __int128 step = loop->step->integer, first = loop->first->integer, stop = loop->stop->integer;
  if (!step) return 1;
  __int128 distance = step > 0 ? stop - first : first - stop, size = step > 0 ? step : -step;
  __int128 count = distance > 0 ? (distance + size - 1) / size : 1;
  return count > UINT32_MAX ? UINT32_MAX : (uint64_t)count;
}

/* Returns how many copies of its body a `while` loop gets; each copy has an exit test. Loops with
 * @unroll are unrolled elsewhere. */
static uint32_t count_copies(const marker *m, const kt_stmt *loop, cost body)
{
  uint32_t copies = 1;
  if (loop->unroll != KJ_UNROLL_NONE || body.has_loops || (is_gpu(m) && body.meets)) return 1;
  while (copies < MOST_COPIES && copies * 2 * body.size <= COPIED) copies *= 2;
  return copies;
}

/* Returns the number of iterations between two polls. The number is a power of two, so that a
 * vectorized loop has no remainder within a chunk. */
static uint32_t iterations_between(const marker *m, const kt_stmt *loop, cost body)
{
  uint64_t size = body.size ? body.size : 1, most = BUDGET / size;
  uint32_t chunk = 1;
  if (body.polls) return 1;
  if (loop->kind == KJ_TS_WHILE) return count_copies(m, loop, body);
  while (chunk < MOST_ITERATIONS && (uint64_t)chunk * 2 <= most) chunk *= 2;
  return chunk;
}

/* Returns whether the loop also gets a version without polls. This requires that the number of
 * iterations can be computed before the loop, and that threads do not synchronize in the body. The
 * CPU divides loops into chunks, so only loops whose step is not constant need a second version. */
static bool is_made_twice(const marker *m, const kt_stmt *loop, cost body)
{
  kt_counter counter;
  if (m->c->request->debug || body.polls || body.meets || body.size > MOST_TWICE) return false;
  if (!is_gpu(m)) return loop->kind == KJ_TS_FOR && loop->step && !kt_is_constant(loop->step);
  return loop->kind != KJ_TS_WHILE || kt_find_counter(loop, &counter);
}

/* Returns whether the loop only waits for another thread. In C functions this is never assumed,
 * because the caller itself may run the thread for which the loop waits. */
static bool is_wait(const marker *m, const kt_stmt *loop)
{
  return !is_gpu(m) && !m->c->request->symbol && kp_only_waits(loop);
}

static cost measure_loop(const marker *m, kt_stmt *loop)
{
  cost body = add(measure_list(m, &loop->body), (cost){ .size = 2 });
  if (loop->kind == KJ_TS_WHILE) body = add(body, measure_expr(m, loop->value));
  uint64_t count = count_iterations(loop);
  loop->has_products = body.has_products && is_gpu(m);
  cost all = scale(body, count);
  all.has_loops = true;
  if (count && !body.polls && all.size <= BUDGET) return all;
  loop->only_waits = is_wait(m, loop);
  loop->poll = loop->only_waits ? 1 : iterations_between(m, loop, body);
  loop->poll_cost = body.size < BUDGET ? (uint32_t)body.size : BUDGET;
  loop->is_polled_twice = is_made_twice(m, loop, body);
  body.polls = body.has_loops = true;
  return body;
}

static cost measure_stmt(const marker *m, kt_stmt *stmt)
{
  cost sum = { .size = stmt->kind == KJ_TS_PRINT ? PRINT_COST : 1 };
  for (size_t i = 0; i < kt_stmt_operand_count(stmt); i++)
    sum = add(sum, measure_expr(m, kt_stmt_operand(stmt, i)));
  kt_flow flow = kt_flow_of(stmt);
  if (flow == KJ_FLOW_LOOP || flow == KJ_FLOW_RANGE) return add(sum, measure_loop(m, stmt));
  sum = add(sum, measure_list(m, &stmt->body));
  return add(sum, measure_list(m, &stmt->otherwise));
}

static cost measure_list(const marker *m, const kt_stmts *list)
{
  cost sum = { 0 };
  for (size_t i = 0; i < list->count; i++) sum = add(sum, measure_stmt(m, list->items[i]));
  return sum;
}

/* ---- the pass ---- */

/* Decides whether a function polls on entry. Recursive functions do: their depth is bounded, but
 * the number of calls can be exponential. In a chain of functions, each of which calls the next one
 * twice, the number of calls is exponential, too. So a function also polls on entry if its
 * estimated cost exceeds BUDGET. On a GPU every call of a polling function counts as CALL_COST,
 * because the called function starts with a new counter and may never poll if its loops are
 * short. */
static void mark_entry(const marker *m, kt_instance *instance)
{
  cost *of = &m->of[instance->id];
  bool is_long = of->size > BUDGET && !instance->is_kernel;
  of->polls |= is_long;
  instance->polls = of->polls;
  instance->polls_first = is_long || instance->is_recursive;
}

void kp_mark_polls(kt_compilation *c)
{
  KJ_ASSERT(c->state & KJ_TREE_FAILING && c->request->is_interruptible);
  size_t count = c->instances.count;
  marker m = { .c = c, .of = KJ_NEW_ARRAY(c->arena, cost, count) };
  for (size_t i = 0; i < count; i++) m.of[i].polls = c->instances.items[i]->is_recursive;
  for (size_t i = 1; i <= count; i++) { /* callees first, the kernel last */
    kt_instance *instance = c->instances.items[i % count];
    m.of[i % count] = add(m.of[i % count], measure_list(&m, &instance->body));
    mark_entry(&m, instance);
  }
  /* each block polls when it starts */
  if (c->request->target.kind == KJ_TARGET_CPU && !c->request->symbol)
    c->instances.items[0]->polls = true;
  c->code->is_interruptible = c->instances.items[0]->polls;
}
