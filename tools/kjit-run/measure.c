#define _GNU_SOURCE
#include "measure.h"

#include "call.h"
#include "device.h"
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

/* A call makes launches of its own, which have no limits of theirs. */
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

static bool measure(runner *r, uint64_t repeat, uint64_t count, uint64_t *device_ns,
                    uint64_t *host_ns)
{
  if (!measure_one(r, repeat, &device_ns[0], &host_ns[0])) return false; /* warms up */
  tool_progress("benchmarking, repetition", count);
  for (uint64_t i = 0; i < count; i++) {
    tool_progress_at(i);
    if (!measure_one(r, repeat, &device_ns[i], &host_ns[i])) return false;
  }
  return true;
}

static void report(const runner *r, uint64_t repeat, uint64_t count, uint64_t *device_ns,
                   uint64_t *host_ns)
{
  uint64_t bytes = 0, steps = repeat * r->steps->count, middle = median(device_ns, count);
  const char *step = run_step_word(r->steps, false);
  for (size_t i = 0; i < r->steps->count; i++) bytes += r->steps->items[i].traffic_bytes * repeat;
  char *device = run_device_text(r->device);
  printf("bench: %llu repetitions of %llu %s on %s: median %.2f us, min %.2f us",
         (unsigned long long)count, (unsigned long long)steps, run_step_word(r->steps, steps != 1),
         device, (double)middle / 1e3, (double)device_ns[0] / 1e3);
  if (steps > 1) printf(", %.2f us a %s", (double)middle / 1e3 / (double)steps, step);
  if (bytes && middle)
    printf(", %.1f GB/s (%llu bytes)", (double)bytes / (double)middle, (unsigned long long)bytes);
  printf(", host %.2f us a %s\n", (double)median(host_ns, count) / 1e3, step);
  free(device);
}

bool run_bench(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps,
               uint64_t repeat, uint64_t count)
{
  runner r = { error, context, device, steps, NULL, NULL };
  uint64_t *device_ns = calloc(count, sizeof *device_ns), *host_ns = calloc(count, sizeof *host_ns);
  bool ok = device_ns && host_ns
              ? open_events(&r) && measure(&r, repeat, count, device_ns, host_ns)
              : tool_fail(error, TOOL_EXIT_DEVICE, "no memory for the times of %llu repetitions",
                          (unsigned long long)count);
  tool_stop_progress();
  if (ok) report(&r, repeat, count, device_ns, host_ns);
  close_events(&r);
  free(device_ns);
  free(host_ns);
  return ok;
}
