/* How many threads a launch on the CPU is spread over: what was faster for launches of its size
 * before.
 *
 * For each size, in classes of a factor of 2, a specialization knows what a unit of work has taken,
 * by the clock: on one thread, and spread. The lesser one is chosen. That the figures are measured,
 * and not reckoned from instructions and bytes, makes them right where workers get in each other's
 * way, where memory is the limit, and where other processes have the cores; they follow what
 * changes. The other choice is tried now and then.
 *
 * A figure follows the median of what is measured: on a machine that does other things, too, single
 * launches take a thousand times as long as usual. */
#include "cpu/cpu.h"

#include <math.h>

#include "support/host_process.h"

#ifndef KJ_GRAIN_NS
#define KJ_GRAIN_NS 5000
#endif

/* To wake a thread takes some microseconds of the launching one, and some more until it begins: a
 * launch is not spread at first if it takes less than WORTH_NS. GRAIN_NS: a worker gets so much. */
static const double GRAIN_NS = KJ_GRAIN_NS, WORTH_NS = 2 * KJ_GRAIN_NS, LEAST_PIECE_NS = 1000,
                    /* launches that take longer are all timed: reading the clock costs under 1 % */
  LONG_NS = 20000,
                    /* one thread is tried with all of a launch that takes less, spread */
  SHORT_NS = 100000,
                    /* of an element of a vectorized loop, for the first launch */
  STATIC_ELEMENT_NS = 0.25;

enum {
  LEAD = 32,            /* a part of the work that is run before it is decided about the rest */
  PIECES = 8,           /* of a worker, where the runtime cuts */
  LEAST_ELEMENTS = 256, /* of a piece of a vectorized loop */
  TRY_EVERY = 256,      /* timed launches of a size: the other choice is tried */
  SAMPLE_EVERY = 32,    /* launches of a thread: one is timed, about */
  FEW = 4,              /* measurements, from which on a figure is to be trusted */
  MOST_SURPRISES = 48,
  SURPRISE = 16
};

/* 0: not measured. */
static double read_figure(const kj_cost *cost)
{
  return (double)atomic_load_explicit(&cost->unit_ns, memory_order_relaxed);
}

/* Towards the median, by an eighth; the least of the first few, as those are slow for reasons of
 * their own. Two threads that do it at once may lose one. */
static void follow(kj_cost *cost, double measured)
{
  const double STEP = 1.125;
  double known = read_figure(cost), next = measured;
  uint32_t count = atomic_load_explicit(&cost->count, memory_order_relaxed);
  if (count < FEW) atomic_store_explicit(&cost->count, count + 1, memory_order_relaxed);
  if (known > 0 && measured > known) next = count < FEW ? known : fmin(measured, known * STEP);
  else if (count >= FEW) next = fmax(measured, known / STEP);
  atomic_store_explicit(&cost->unit_ns, (float)next, memory_order_relaxed);
}

static bool is_new(const kj_cost *cost)
{
  return atomic_load_explicit(&cost->count, memory_order_relaxed) < FEW;
}

/* ---- when the clock is read ---- */

/* Whether it is this launch's turn. Not every n-th one: a host that launches the same few kernels
 * in turn would always time the same. */
static bool is_sampled(void)
{
  static _Thread_local uint32_t remaining, state;
  if (remaining--) return false;
  state = state * 1664525 + 1013904223;
  remaining = state >> 24 & (2 * SAMPLE_EVERY - 1);
  return true;
}

static uint32_t class_of(uint64_t size)
{
  uint32_t bits = size ? 63 - (uint32_t)__builtin_clzll(size) : 0;
  return bits < KJ_COST_CLASSES ? bits : KJ_COST_CLASSES - 1;
}

/* What one thread takes for a unit; where this size was never measured what the nearest one took;
 * 0: nothing is known. */
static double guess_alone(const kj_cpu_cost *cost, uint32_t class)
{
  for (uint32_t away = 1; away < KJ_COST_CLASSES; away++) {
    double below = class >= away ? read_figure(&cost->sizes[class - away].alone) : 0;
    if (below > 0) return below;
    double above =
      class + away < KJ_COST_CLASSES ? read_figure(&cost->sizes[class + away].alone) : 0;
    if (above > 0) return above;
  }
  return 0;
}

static uint32_t count_worth(double alone_ns, uint32_t most)
{
  double worth = alone_ns / GRAIN_NS;
  return worth >= most ? most : worth < 2 ? 2 : (uint32_t)worth;
}

static bool is_varied(const kj_cpu_cost *cost)
{
  return atomic_load_explicit(&cost->surprises, memory_order_relaxed) >= 2 * SURPRISE;
}

static bool is_turn_of_other(kj_cost_of_size *of)
{
  uint32_t count = atomic_load_explicit(&of->timed, memory_order_relaxed) + 1u;
  atomic_store_explicit(&of->timed, (uint16_t)count, memory_order_relaxed);
  return count % TRY_EVERY == 0;
}

/* Both choices are measured a few times before the better one is taken, but not one thread where
 * that would take long: it is only known by the first part of the work then. */
typedef enum choice { BY_FIGURES, FIRST_ALONE, FIRST_SPREAD } choice;

static choice choose_first(const kj_cost_of_size *of, const kj_cpu_work *work, double alone_ns)
{
  if (alone_ns < SHORT_NS && is_new(&of->alone)) return FIRST_ALONE;
  bool is_new_here = is_new(&of->spread) && !work->is_limited;
  return alone_ns >= WORTH_NS / 2 && is_new_here ? FIRST_SPREAD : BY_FIGURES;
}

static bool is_spread_better(const kj_cost_of_size *of, const kj_cpu_work *work, double alone_ns)
{
  double alone = read_figure(&of->alone), wide = read_figure(&of->spread);
  return alone > 0 && wide > 0 && !work->is_limited ? wide < alone : alone_ns >= WORTH_NS;
}

/* In place of what the figures say. */
static void try_other(kj_spread *spread, const kj_cost_of_size *of, bool *is_wide)
{
  double alone = read_figure(&of->alone), wide = read_figure(&of->spread);
  if (*is_wide && spread->alone_ns >= SHORT_NS) spread->has_lead = true;
  else if (*is_wide) *is_wide = false;
  else *is_wide = spread->alone_ns >= WORTH_NS / 4 && wide < 4 * alone;
}

/* Nothing is known: all threads, but where there are many units the first ones tell. */
static kj_spread explore(kj_spread spread, const kj_cpu_work *work, uint32_t most)
{
  spread.workers = most;
  spread.is_timed = true;
  spread.has_lead = work->units >= LEAD;
  return spread;
}

static uint32_t count_threads(const kj_cpu_work *work)
{
  return work->most > work->units ? (uint32_t)work->units : work->most;
}

kj_spread kj_choose_spread(kj_cpu_cost *cost, const kj_cpu_work *work)
{
  kj_spread spread = { .workers = 1, .class = class_of(work->size) };
  uint32_t most = count_threads(work);
  if (most <= 1) return spread;
  kj_cost_of_size *of = &cost->sizes[spread.class];
  double unit_ns = read_figure(&of->alone);
  if (unit_ns == 0) unit_ns = guess_alone(cost, spread.class);
  if (unit_ns == 0 && work->is_even) unit_ns = STATIC_ELEMENT_NS;
  if (unit_ns == 0) unit_ns = read_figure(&of->spread);
  if (unit_ns == 0) return explore(spread, work, most);
  spread.alone_ns = unit_ns * (double)work->size;
  choice first = choose_first(of, work, spread.alone_ns);
  bool is_wide =
    first == BY_FIGURES ? is_spread_better(of, work, spread.alone_ns) : first == FIRST_SPREAD;
  spread.is_timed = first != BY_FIGURES || spread.alone_ns >= LONG_NS || is_sampled();
  if (spread.is_timed && is_turn_of_other(of)) try_other(&spread, of, &is_wide);
  /* what this size takes on one thread is not known, and will not be tried */
  if (is_wide && read_figure(&of->alone) == 0) spread.has_lead = true;
  if (!is_wide && !work->is_even && is_varied(cost)) spread.has_lead = true;
  spread.has_lead = spread.has_lead && work->units >= LEAD;
  if (is_wide) spread.workers = count_worth(spread.alone_ns, most);
  return spread;
}

uint64_t kj_count_lead(const kj_spread *spread, uint64_t blocks)
{
  return spread->has_lead ? blocks / LEAD : 0;
}

void kj_follow_lead(kj_cpu_cost *cost, const kj_cpu_work *work, kj_spread *spread, double all_ns)
{
  bool was_unknown = spread->alone_ns == 0;
  uint32_t most = count_threads(work);
  follow(&cost->sizes[spread->class].alone, all_ns / (double)work->size);
  spread->alone_ns = all_ns;
  spread->is_timed = false; /* it was no launch of the usual kind */
  if (spread->workers > 1 && !was_unknown) return;
  spread->workers = all_ns >= WORTH_NS ? count_worth(all_ns, most) : 1;
}

void kj_note_time(kj_cpu_cost *cost, const kj_cpu_work *work, const kj_spread *spread,
                  uint64_t time_ns)
{
  kj_cost_of_size *of = &cost->sizes[spread->class];
  double measured = (double)time_ns / (double)work->size;
  if (spread->workers > 1) {
    if (!work->is_limited) follow(&of->spread, measured);
    return;
  }
  double known = read_figure(&of->alone);
  uint32_t surprises = atomic_load_explicit(&cost->surprises, memory_order_relaxed);
  if (known > 0 && (measured > 8 * known || measured < known / 8)) surprises += SURPRISE;
  else if (surprises) surprises--;
  if (surprises > MOST_SURPRISES) surprises = MOST_SURPRISES;
  atomic_store_explicit(&cost->surprises, surprises, memory_order_relaxed);
  follow(&of->alone, measured);
}

uint32_t kj_count_pieces(const kj_cpu_work *work, const kj_spread *spread)
{
  if (spread->workers == 1 && !spread->has_lead) return 1;
  uint64_t pieces = (uint64_t)(spread->has_lead ? work->most : spread->workers) * PIECES,
           units = work->units / (work->is_even ? LEAST_ELEMENTS : 1);
  double by_time = spread->alone_ns / LEAST_PIECE_NS;
  if (spread->alone_ns > 0 && by_time < (double)pieces) pieces = (uint64_t)by_time;
  if (spread->has_lead && pieces < LEAD) pieces = LEAD;
  if (pieces > units) pieces = units;
  return pieces ? (uint32_t)pieces : 1;
}
