#define _GNU_SOURCE
#include "measure.h"

#include "call.h"
#include "device.h"
#include "formula.h"
#include "interrupt.h"
#include <driver/progress.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct runner {
  tool_error *error;
  kjit_context *context;
  kjit_device *device;
  run_steps *steps;
  kjit_event *first, *last;
} runner;

static uint64_t clock_ns(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool passed(runner *r, kjit_status status, const char *doing)
{
  return status == KJIT_OK || tool_fail_kjit(r->error, r->context, status, doing);
}

/* Runs a call with a time limit. The launches of a call have no time limits, so an alarm interrupts
 * them. */
static bool run_limited_call(runner *r, run_step *step)
{
  uint64_t limit = step->config.time_limit_ns;
  if (!limit) return run_run_call(r->context, step);
  run_set_alarm(limit);
  bool ok = run_run_call(r->context, step) &&
            passed(r, kjit_synchronize_device(r->device), "waiting for the call");
  run_set_alarm(0);
  return ok;
}

static bool run_step_once(runner *r, run_step *step)
{
  if (run_was_interrupted())
    return tool_fail(r->error, TOOL_EXIT_INTERRUPTED, "interrupted before %s", step->name);
  if (step->call) return run_limited_call(r, step);
  if (step->formula) return run_run_formula(r->error, r->context, step);
  kjit_status status = kjit_launch(step->kernel, &step->config, step->arguments, step->count);
  if (status == KJIT_OK) return true;
  char *doing = tool_format("launching %s", step->name);
  tool_fail_kjit(r->error, r->context, status, doing);
  free(doing);
  return false;
}

static bool run_steps_times(runner *r, uint64_t repeat, uint64_t progress_base)
{
  for (uint64_t n = 0; n < repeat; n++) {
    for (size_t i = 0; i < r->steps->count; i++)
      if (!run_step_once(r, &r->steps->items[i])) return false;
    tool_progress_at(progress_base + n + 1);
  }
  return true;
}

static bool open_events(runner *r)
{
  return passed(r, kjit_create_event(r->device, &r->first), "creating an event") &&
         passed(r, kjit_create_event(r->device, &r->last), "creating an event");
}

static void close_events(runner *r)
{
  kjit_destroy_event(r->first);
  kjit_destroy_event(r->last);
}

/* ---- the run ---- */

static bool run_timed(runner *r, uint64_t repeat, run_timing *timing)
{
  if (!passed(r, kjit_record_event(r->first, NULL), "recording an event")) return false;
  uint64_t start = clock_ns();
  if (!run_steps_times(r, 1, 0)) return false;
  timing->first_ns = clock_ns() - start;
  if (!run_steps_times(r, repeat - 1, 1) ||
      !passed(r, kjit_record_event(r->last, NULL), "recording an event"))
    return false;
  timing->steps = repeat * r->steps->count;
  return passed(r, kjit_synchronize_device(r->device), "waiting for the launches") &&
         passed(r, kjit_get_elapsed_time(r->first, r->last, &timing->device_ns), "reading events");
}

bool run_all_steps(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
                   uint64_t repeat, run_timing *timing)
{
  runner r = { error, context, device, steps, NULL, NULL };
  *timing = (run_timing){ 0 };
  tool_progress(repeat > 1 ? "running, repetition" : "compiling and running",
                repeat > 1 ? repeat : 0);
  bool ok = open_events(&r) && run_timed(&r, repeat, timing);
  close_events(&r);
  return ok;
}

/* ---- the benchmark ---- */

static int compare_times(const void *a, const void *b)
{
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t median(uint64_t *times, uint64_t count)
{
  qsort(times, count, sizeof *times, compare_times);
  return count % 2 ? times[count / 2] : (times[count / 2 - 1] + times[count / 2]) / 2;
}

static bool measure_one(runner *r, uint64_t repeat, uint64_t *device_ns, uint64_t *host_ns)
{
  if (!passed(r, kjit_synchronize_device(r->device), "waiting for the device") ||
      !passed(r, kjit_record_event(r->first, NULL), "recording an event"))
    return false;
  uint64_t start = clock_ns();
  if (!run_steps_times(r, repeat, 0)) return false;
  *host_ns = (clock_ns() - start) / (repeat * r->steps->count);
  return passed(r, kjit_record_event(r->last, NULL), "recording an event") &&
         passed(r, kjit_synchronize_event(r->last), "waiting for the launches") &&
         passed(r, kjit_get_elapsed_time(r->first, r->last, device_ns), "reading events");
}

/* A growing list of times of repetitions. */
typedef struct times {
  uint64_t *device_ns, *host_ns;
  uint64_t count, capacity;
} times;

static bool make_room(tool_error *error, times *t, uint64_t capacity)
{
  uint64_t *device_ns = realloc(t->device_ns, capacity * sizeof *device_ns);
  if (device_ns) t->device_ns = device_ns;
  uint64_t *host_ns = realloc(t->host_ns, capacity * sizeof *host_ns);
  if (host_ns) t->host_ns = host_ns;
  t->capacity = capacity;
  return (device_ns && host_ns) ||
         tool_fail(error, TOOL_EXIT_DEVICE, "no memory for the times of %llu repetitions",
                   (unsigned long long)capacity);
}

static bool measure_next(runner *r, uint64_t repeat, times *t)
{
  if (t->count == t->capacity && !make_room(r->error, t, 2 * t->capacity)) return false;
  if (!measure_one(r, repeat, &t->device_ns[t->count], &t->host_ns[t->count])) return false;
  t->count++;
  return true;
}

/* Measures at least FEWEST repetitions. Then continues until MOMENT_NS have passed or MOST
 * repetitions have been measured. */
static bool measure_moment(runner *r, uint64_t repeat, times *t)
{
  enum { FEWEST = 5, MOST = 1000, MOMENT_NS = 200000000 };
  uint64_t start = clock_ns();
  while (t->count < FEWEST || (t->count < MOST && clock_ns() - start < MOMENT_NS))
    if (!measure_next(r, repeat, t)) return false;
  return true;
}

static bool measure_times(runner *r, uint64_t repeat, uint64_t count, times *t)
{
  if (!make_room(r->error, t, count ? count : 16) || !measure_next(r, repeat, t) ||
      !passed(r, kjit_wait_background(r->context), "waiting for the best code"))
    return false;
  t->count = 0; /* the first repetition only warms up, and its time is discarded */
  if (!count) return measure_moment(r, repeat, t);
  tool_progress("benchmarking, repetition", count);
  for (uint64_t i = 0; i < count; i++) {
    tool_progress_at(i);
    if (!measure_next(r, repeat, t)) return false;
  }
  return true;
}

bool run_measure(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
                 uint64_t repeat, uint64_t count, run_measurement *result)
{
  runner r = { error, context, device, steps, NULL, NULL };
  times t = { 0 };
  bool ok = open_events(&r) && measure_times(&r, repeat, count, &t);
  if (ok) {
    *result = (run_measurement){ .repetitions = t.count,
                                 .median_ns = median(t.device_ns, t.count),
                                 .least_ns = t.device_ns[0],
                                 .lower_ns = t.device_ns[(t.count - 1) / 4],
                                 .upper_ns = t.device_ns[t.count - 1 - (t.count - 1) / 4],
                                 .host_ns = median(t.host_ns, t.count) };
    for (size_t i = 0; i < steps->count; i++)
      result->bytes += steps->items[i].traffic_bytes * repeat;
  }
  close_events(&r);
  free(t.device_ns);
  free(t.host_ns);
  return ok;
}

static void report(kjit_device *measured, const run_steps *all, uint64_t repeat,
                   const run_measurement *m)
{
  uint64_t steps = repeat * all->count;
  const char *step = run_step_word(all, false);
  char *device = run_device_text(measured);
  printf("bench: %llu repetitions of %llu %s on %s: median %.2f us, min %.2f us",
         (unsigned long long)m->repetitions, (unsigned long long)steps,
         run_step_word(all, steps != 1), device, (double)m->median_ns / 1e3,
         (double)m->least_ns / 1e3);
  if (steps > 1) printf(", %.2f us a %s", (double)m->median_ns / 1e3 / (double)steps, step);
  if (m->bytes && m->median_ns)
    printf(", %.1f GB/s (%llu bytes)", (double)m->bytes / (double)m->median_ns,
           (unsigned long long)m->bytes);
  printf(", host %.2f us a %s\n", (double)m->host_ns / 1e3, step);
  free(device);
}

bool run_bench(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
               uint64_t repeat, uint64_t count)
{
  run_measurement result;
  bool ok = run_measure(error, context, device, steps, repeat, count, &result);
  tool_stop_progress();
  if (ok) report(device, steps, repeat, &result);
  return ok;
}
