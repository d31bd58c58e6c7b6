/* Chooses how many threads run a launch on the CPU, by measuring which number was fastest for
 * earlier launches of a similar size.
 *
 * A width is a number of threads. Launches whose sizes differ by less than a factor of 2 form a
 * size class. For each size class, a specialization stores the measured time per unit of work for
 * three widths. The smallest width is one thread, and the largest is all threads. The third width
 * is the largest number of threads for which each share of the work is worth waking a thread
 * (GRAIN_NS). Launches use the fastest width. Measured times, unlike estimates from instructions
 * and bytes, account for contention between workers, memory bandwidth and other processes on the
 * cores, and they follow changes. Each width is first measured a few times, and later again from
 * time to time.
 *
 * A stored time is a running estimate of the median, because on a busy machine single launches can
 * take a thousand times longer than usual. */
#include "cpu/cpu.h"

#include <math.h>

#include "support/host_process.h"

#ifndef KJ_GRAIN_NS
#define KJ_GRAIN_NS 5000
#endif

/* Waking a thread costs the launching thread some microseconds, and the woken thread starts some
 * microseconds later. A launch that takes less than WORTH_NS initially runs on one thread. GRAIN_NS
 * is the minimum work for one worker. */
static const double GRAIN_NS = KJ_GRAIN_NS, WORTH_NS = 2 * KJ_GRAIN_NS, LEAST_PIECE_NS = 1000,
                    /* all longer launches are timed, because reading the clock costs less than 1 %
                     * of them */
  LONG_NS = 20000,
                    /* maximum estimated time of a launch that one thread runs as a trial */
  SHORT_NS = 100000,
                    /* assumed time of an element of a vectorized loop, for the first launch */
  STATIC_ELEMENT_NS = 0.25;

enum {
  LEAD = 32,  /* the lead: one thread first runs 1/LEAD of the blocks, to measure their time */
  PIECES = 8, /* number of chunks for each worker, if the runtime divides the range */
  LEAST_ELEMENTS = 256, /* minimum elements in a piece of a vectorized loop */
  /* another width is tried after this number of timed launches, then after twice that number, and
   * so on */
  FIRST_TRY = 8,
  TRY_EVERY = 256,   /* later, another width is tried after each TRY_EVERY timed launches */
  SAMPLE_EVERY = 32, /* about one of SAMPLE_EVERY launches of a thread is timed */
  FEW = 4,           /* number of measurements after which a stored time is trusted */
  MOST_SURPRISES = 48,
  SURPRISE = 16
};

/* Returns the stored time per unit, or 0 if not measured. */
static double read_figure(const kj_cost *cost)
{
  return (double)atomic_load_explicit(&cost->unit_ns, memory_order_relaxed);
}

/* Moves the stored time towards the median in steps of 1/16. Of the first FEW measurements, keeps
 * the smallest, because the caches are cold in first launches. Concurrent updates may lose a
 * measurement. */
static void follow(kj_cost *cost, double measured)
{
  const double STEP = 1.0625;
  KJ_ASSERT(measured >= 0);
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

/* Updates the time of a width that is tried only from time to time. The stored time may have been
 * measured while the cores were busy, so a much smaller measurement changes it by more than one
 * step. */
static void follow_trial(kj_cost *cost, double measured)
{
  double known = read_figure(cost);
  if (is_new(cost) || measured >= known / 2) follow(cost, measured);
  else atomic_store_explicit(&cost->unit_ns, (float)sqrt(measured * known), memory_order_relaxed);
}

/* ---- when the clock is read ---- */

/* Returns whether this launch is timed. The interval is random, because with a fixed interval an
 * application that launches the same few kernels in turn would always time the same kernel. */
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

/* Returns the time per unit on one thread, taken from the nearest measured size class. Returns 0 if
 * no size class was measured. */
static double guess_alone(const kj_cpu_cost *cost, uint32_t class)
{
  for (uint32_t away = 1; away < KJ_COST_CLASSES; away++) {
    double below = class >= away ? read_figure(&cost->sizes[class - away].widths[KJ_ALONE]) : 0;
    if (below > 0) return below;
    double above =
      class + away < KJ_COST_CLASSES ? read_figure(&cost->sizes[class + away].widths[KJ_ALONE]) : 0;
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

/* Returns a width other than `best` if this width should be measured again now, and otherwise NONE.
 * The width of one thread is measured often at first, because its first measurements may be bad. */
enum { NONE = KJ_WIDTHS };
static kj_width take_turn(kj_cost_of_size *of, kj_width best)
{
  uint32_t count = atomic_load_explicit(&of->timed, memory_order_relaxed) + 1u;
  atomic_store_explicit(&of->timed, (uint16_t)count, memory_order_relaxed);
  bool is_power = !(count & (count - 1));
  if (is_new(&of->widths[KJ_ALONE]) && is_power) return KJ_ALONE;
  bool is_early = is_power && count >= FIRST_TRY && count < TRY_EVERY;
  if (!is_early && count % TRY_EVERY) return (kj_width)NONE;
  uint32_t turn = is_early ? (uint32_t)__builtin_ctz(count) : count / TRY_EVERY;
  return (kj_width)((best + 1 + turn % (KJ_WIDTHS - 1)) % KJ_WIDTHS);
}

/* Returns whether a launch may use this width to measure it, although it is not measured yet or is
 * not the best width. The width of one thread is allowed only for short launches. If is_turn is
 * set, these launches may take ten times as long. */
static bool is_worth_trying(kj_width width, const kj_cpu_work *work, double alone_ns, uint32_t most,
                            bool is_turn)
{
  if (width == KJ_ALONE) return alone_ns < (is_turn ? 10 * SHORT_NS : SHORT_NS);
  if (work->is_limited || alone_ns < WORTH_NS / 4) return false;
  return width == KJ_ALL || count_worth(alone_ns, most) < most;
}

static kj_width choose_width(const kj_cost_of_size *of, const kj_cpu_work *work, double alone_ns,
                             uint32_t most, bool *is_first)
{
  kj_width best = alone_ns < WORTH_NS ? KJ_ALONE : KJ_SOME;
  double least = 0;
  if (work->is_limited) return best;
  for (kj_width width = KJ_ALONE; width < KJ_WIDTHS; width++) {
    double figure = read_figure(&of->widths[width]);
    *is_first = is_new(&of->widths[width]) && is_worth_trying(width, work, alone_ns, most, false) &&
                (width == KJ_ALONE || alone_ns >= WORTH_NS / 2);
    if (*is_first) return width;
    bool is_other = width != KJ_SOME || count_worth(alone_ns, most) < most;
    if (figure == 0 || (least > 0 && figure >= least) || !is_other) continue;
    least = figure;
    best = width;
  }
  return best;
}

/* Chooses the spread if no time is known: all threads, or a lead if the launch has many units. */
static kj_spread explore(kj_spread spread, const kj_cpu_work *work, uint32_t most)
{
  spread.width = KJ_ALL;
  spread.workers = most;
  spread.is_timed = true;
  spread.has_lead = work->units >= LEAD;
  return spread;
}

static uint32_t count_threads(const kj_cpu_work *work)
{
  return work->most > work->units ? (uint32_t)work->units : work->most;
}

static void set_width(kj_spread *spread, kj_width width, uint32_t most)
{
  spread->workers = width == KJ_ALONE ? 1
                    : width == KJ_ALL ? most
                                      : count_worth(spread->alone_ns, most);
  spread->width = width == KJ_SOME && spread->workers == most ? KJ_ALL : width;
  KJ_ASSERT(spread->workers && spread->workers <= most);
}

kj_spread kj_choose_spread(kj_cpu_cost *cost, const kj_cpu_work *work)
{
  kj_spread spread = { .workers = 1, .class = class_of(work->size) };
  KJ_ASSERT(cost && work->units && work->size && spread.class < KJ_COST_CLASSES);
  uint32_t most = count_threads(work);
  if (most <= 1) return spread;
  kj_cost_of_size *of = &cost->sizes[spread.class];
  const kj_cost *alone = &of->widths[KJ_ALONE];
  double unit_ns = read_figure(alone);
  if (unit_ns == 0) unit_ns = guess_alone(cost, spread.class);
  if (unit_ns == 0 && work->is_even) unit_ns = STATIC_ELEMENT_NS;
  if (unit_ns == 0) unit_ns = read_figure(&of->widths[KJ_ALL]);
  if (unit_ns == 0) return explore(spread, work, most);
  /* the limit ensures that the width of one thread is measured again after a single bad
   * measurement */
  double all = read_figure(&of->widths[KJ_ALL]);
  if (all > 0 && unit_ns > all * most) unit_ns = all * most;
  spread.alone_ns = unit_ns * (double)work->size;
  bool is_first = false;
  kj_width width = choose_width(of, work, spread.alone_ns, most, &is_first);
  spread.is_timed = is_first || spread.alone_ns >= LONG_NS || is_sampled();
  kj_width other = spread.is_timed && !is_first ? take_turn(of, width) : (kj_width)NONE;
  spread.is_trial =
    other != (kj_width)NONE && is_worth_trying(other, work, spread.alone_ns, most, true);
  if (spread.is_trial) width = other;
  /* the lead measures the time of one thread */
  spread.has_lead = (width != KJ_ALONE && (other == KJ_ALONE || read_figure(alone) == 0)) ||
                    (width == KJ_ALONE && !work->is_even && is_varied(cost));
  spread.has_lead = spread.has_lead && work->units >= LEAD;
  set_width(&spread, width, most);
  return spread;
}

uint64_t kj_count_lead(const kj_spread *spread, uint64_t blocks)
{
  return spread->has_lead ? blocks / LEAD : 0;
}

void kj_follow_lead(kj_cpu_cost *cost, const kj_cpu_work *work, kj_spread *spread, double all_ns)
{
  double expected_ns = spread->alone_ns;
  KJ_ASSERT(spread->has_lead && work->size && spread->class < KJ_COST_CLASSES);
  follow(&cost->sizes[spread->class].widths[KJ_ALONE], all_ns / (double)work->size);
  spread->alone_ns = all_ns;
  /* the time of a launch with a lead is not typical, so it is not recorded */
  spread->is_timed = false;
  bool is_surprise = expected_ns == 0 || (spread->workers == 1 && all_ns > 4 * expected_ns);
  if (is_surprise) set_width(spread, all_ns >= WORTH_NS ? KJ_SOME : KJ_ALONE, count_threads(work));
}

void kj_note_time(kj_cpu_cost *cost, const kj_cpu_work *work, const kj_spread *spread,
                  uint64_t time_ns)
{
  KJ_ASSERT(spread->width < KJ_WIDTHS && spread->class < KJ_COST_CLASSES && work->size);
  kj_cost_of_size *of = &cost->sizes[spread->class];
  double measured = (double)time_ns / (double)work->size;
  void (*note)(kj_cost *, double) = spread->is_trial ? follow_trial : follow;
  if (spread->width != KJ_ALONE) {
    if (!work->is_limited) note(&of->widths[spread->width], measured);
    return;
  }
  double known = read_figure(&of->widths[KJ_ALONE]);
  uint32_t surprises = atomic_load_explicit(&cost->surprises, memory_order_relaxed);
  bool is_known = !is_new(&of->widths[KJ_ALONE]);
  if (is_known && (measured > 8 * known || measured < known / 8)) surprises += SURPRISE;
  else if (surprises) surprises--;
  if (surprises > MOST_SURPRISES) surprises = MOST_SURPRISES;
  atomic_store_explicit(&cost->surprises, surprises, memory_order_relaxed);
  note(&of->widths[KJ_ALONE], measured);
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
  KJ_ASSERT(pieces <= UINT32_MAX);
  return pieces ? (uint32_t)pieces : 1;
}
