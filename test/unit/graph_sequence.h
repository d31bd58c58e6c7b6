/* A sequence of calls that a graph captures, for tests of streams and graphs. */
#ifndef GRAPH_SEQUENCE_H
#define GRAPH_SEQUENCE_H

#include "gpu_test.h"

#include "compiler.h"

static inline void count_call(void *user) { ++*(int *)user; }

static inline void run_on_cpu(const void *parameters, const kj_cpu_grid *grid, uint64_t first,
                              uint64_t last, void *scratch)
{
  (void)grid, (void)scratch;
  if (first == 0 && last) run_add_one(parameters); /* the first block computes all elements */
}

typedef struct sequence {
  kjit_context *context;
  kjit_device *device;
  kjit_kernel *kernel;
  kjit_stream *stream, *side;
  kjit_event *forked, *joined;
  kjit_array *x, *y;
  float *x_data, *y_data;
  int calls;
} sequence;

static inline void begin(sequence *s, kjit_context *context, kjit_device *device)
{
  *s = (sequence){ .context = context, .device = device };
  fake.kernel = run_on_cpu;
  cuda.kernel = run_add_one;
  s->kernel = kernel_of(parse(context, add_one), "add_one");
  expect_ok(context, kjit_create_stream(device, &s->stream));
  expect_ok(context, kjit_create_stream(device, &s->side));
  expect_ok(context, kjit_create_event(device, &s->forked));
  expect_ok(context, kjit_create_event(device, &s->joined));
  s->x = make_vector(device, 100, NULL);
  s->y = make_vector(device, 100, NULL);
  s->x_data = address_of(s->x);
  s->y_data = address_of(s->y);
}

static inline void end(sequence *s)
{
  kjit_destroy_event(s->forked);
  kjit_destroy_event(s->joined);
  kjit_destroy_stream(s->stream);
  kjit_destroy_stream(s->side);
}

/* Captures these operations: x = value; x += 1 twice, the second time as a prepared launch; y = x
 * on another stream; a host callback. */
static inline kjit_graph *capture(sequence *s, double value)
{
  kjit_graph *graph = NULL;
  kjit_prepared *prepared;
  kjit_arg x = kjit_arg_array(s->x), y = kjit_arg_array(s->y), number = kjit_arg_number(value);
  kjit_launch_config config = { .size_bytes = sizeof config, .stream = s->stream };
  expect_ok(s->context, kjit_prepare_launch(s->kernel, &config, &x, 1, &prepared));
  for (int i = 0; i < 100; i++) s->x_data[i] = s->y_data[i] = -5;
  expect_ok(s->context, kjit_begin_capture(s->stream));
  assert_int_equal(kjit_is_capturing(s->stream), 1);
  assert_int_equal(kjit_is_capturing(s->side), 0);
  expect_ok(s->context, kjit_fill(s->context, &x, &number, s->stream));
  expect_ok(s->context, kjit_launch(s->kernel, &config, &x, 1));
  expect_ok(s->context, kjit_run_prepared(prepared, NULL));
  expect_ok(s->context, kjit_record_event(s->forked, s->stream));
  expect_ok(s->context, kjit_wait_event(s->side, s->forked));
  assert_int_equal(kjit_is_capturing(s->side), 1);
  expect_ok(s->context, kjit_copy_async(s->context, &y, &x, s->side));
  expect_ok(s->context, kjit_record_event(s->joined, s->side));
  expect_ok(s->context, kjit_wait_event(s->stream, s->joined));
  expect_ok(s->context, kjit_add_host_callback(s->device, s->stream, count_call, &s->calls));
  kjit_destroy_prepared(prepared);
  expect_ok(s->context, kjit_end_capture(s->stream, &graph));
  assert_int_equal(kjit_is_capturing(s->stream) + kjit_is_capturing(s->side), 0);
  assert_int_equal(kjit_get_graph_size(graph), 5);
  assert_true(s->x_data[0] == -5 && s->y_data[0] == -5); /* nothing has run */
  return graph;
}

static inline void expect_values(const sequence *s, float value)
{
  for (int i = 0; i < 100; i++) assert_true(s->x_data[i] == value && s->y_data[i] == value);
}

#endif
