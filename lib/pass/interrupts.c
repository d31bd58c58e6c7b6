/* Marks where interruptible code looks whether it has been interrupted (docs/architecture/
 * interrupts.md).
 *
 * Needs typed instances. Guarantees .poll of every loop that may run for long, and polls of
 * instances. A loop with a constant number of iterations that is soon over has none: it is counted
 * as that many statements of what it is in. Each other one looks once for about BUDGET expressions:
 * every so many iterations, or in each where another loop in it looks too. A `while` without loops
 * in it looks every few iterations, which become copies of each other. A short innermost loop, on
 * the CPU one that cannot be cut into chunks, is made twice, without looks for where its iterations
 * are few (lower/poll.c). */
#include "pass/pass.h"

enum {
  BUDGET = KJ_POLL_BUDGET,
  MOST_ITERATIONS = 1 << 13,
  MOST_COPIES = 8,
  COPIED = 400,       /* expressions, all copies together */
  MOST_TWICE = 512,   /* expressions of an iteration: beside more a look costs nothing */
  CALL_COST = BUDGET, /* of what a called function executes in loops that look by themselves */
  BUILTIN_COST = 4,
  EXTERN_COST = 64,
  WAIT_COST = 1024,    /* some microseconds */
  PRINT_COST = 1 << 20 /* threads of a GPU wait for the host, which writes their lines */
};

/* What is executed once, in expressions; whether any loop in it looks, and whether there is any;
 * whether threads meet in it, and whether it has products of a warpgroup. */
typedef struct cost {
  uint64_t size;
  bool polls, has_loops, meets, has_products;
} cost;

typedef struct marker {
  kt_compilation *c;
  cost *of; /* by instance */
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

/* Of a warpgroup, which go on while it does something else. */
static bool is_product(const ki_builtin *builtin)
{
  return builtin->id >= KJ_BUILTIN_WGMMA_F16 && builtin->id <= KJ_BUILTIN_WGMMA_WAIT;
}

/* What another thread has to do something for. */
static bool waits(const ki_builtin *builtin)
{
  return builtin->flags & KJ_WAITS || builtin->id == KJ_BUILTIN_GRID_SYNC;
}

/* Threads that meet must do so in the same place of the code, in whatever version of a loop. */
static bool meets(const ki_builtin *builtin)
{
  return builtin->flags & (KJ_BARRIER | KJ_WARP | KJ_WAITS) || builtin->id == KJ_BUILTIN_PTX ||
         builtin->id == KJ_BUILTIN_PTX_EFFECT || is_product(builtin);
}

static bool is_gpu(const marker *m) { return m->c->request->target.kind != KJ_TARGET_CPU; }

/* On a GPU a function that is not inlined counts by itself what its loops do; here it is a guess.
 */
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

/* 0: not known. */
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

/* A `while` may end before each; what @unroll asks for is copied already. */
static uint32_t count_copies(const marker *m, const kt_stmt *loop, cost body)
{
  uint32_t copies = 1;
  if (loop->unroll != KJ_UNROLL_NONE || body.has_loops || (is_gpu(m) && body.meets)) return 1;
  while (copies < MOST_COPIES && copies * 2 * body.size <= COPIED) copies *= 2;
  return copies;
}

/* At a power of two of iterations, so that a vectorized loop has no rest in a chunk. */
static uint32_t iterations_between(const marker *m, const kt_stmt *loop, cost body)
{
  uint64_t size = body.size ? body.size : 1, most = BUDGET / size;
  uint32_t chunk = 1;
  if (body.polls) return 1;
  if (loop->kind == KJ_TS_WHILE) return count_copies(m, loop, body);
  while (chunk < MOST_ITERATIONS && (uint64_t)chunk * 2 <= most) chunk *= 2;
  return chunk;
}

/* Not where threads meet, and only where the number of iterations can be told. On the CPU loops
 * are cut into chunks, but for those whose step is not known before they run. */
static bool is_made_twice(const marker *m, const kt_stmt *loop, cost body)
{
  kt_counter counter;
  if (m->c->request->debug || body.polls || body.meets || body.size > MOST_TWICE) return false;
  if (!is_gpu(m)) return loop->kind == KJ_TS_FOR && loop->step && !kt_is_constant(loop->step);
  return loop->kind != KJ_TS_WHILE || kt_find_counter(loop, &counter);
}

/* In kernels: who calls a func may run the thread that it waits for. */
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

/* A function that calls itself looks whenever it is called: its calls are few at a time, but may be
 * exponentially many. So may those of functions that call the next one twice, and that one the
 * next: such one looks, too, if it executes more than a budget, as which a GPU counts each call of
 * one that looks. There that one's own looks are none where its loops are short: each call of it
 * starts with a budget of its own. */
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
  /* each block, where it begins */
  if (c->request->target.kind == KJ_TARGET_CPU && !c->request->symbol)
    c->instances.items[0]->polls = true;
  c->code->is_interruptible = c->instances.items[0]->polls;
}
