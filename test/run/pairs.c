/* Reductions over pairs called by an application: as plans and in graphs, descriptions of results,
 * rows of many kinds, and calls that kjit rejects. test/algorithm compares the values.
 * RUN: %programs/pairs
 * RUN: %if cuda %{ %programs/pairs cuda %}
 */
#include "algorithm_host.h"

enum { M = 700, N = 5000, WIDTH = 3 };
static float of_x[M][WIDTH], of_y[N][WIDTH], got[M], want[M];

static kjit_array *make_rows(kjit_type element, int64_t rows, int64_t width)
{
  const int64_t shape[] = { rows, width };
  return make_array(element, shape, 2);
}

static void draw(float *numbers, size_t count)
{
  for (size_t i = 0; i < count; i++) numbers[i] = (float)rand() / (float)RAND_MAX - 0.5f;
}

static float least_squared(int i)
{
  float least = 1e30f;
  for (int j = 0; j < N; j++) {
    float sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += (of_x[i][k] - of_y[j][k]) * (of_x[i][k] - of_y[j][k]);
    if (sum < least) least = sum;
  }
  return least;
}

static void check(kjit_array *r)
{
  read_array(r, got, sizeof got);
  for (int i = 0; i < M; i++) REQUIRE(got[i] >= want[i] * 0.99999f && got[i] <= want[i] * 1.00001f);
}

static const char *const funcs = "func squared(x, y, i, j) {\n"
                                 "  var d = zero(dtype(x))\n"
                                 "  for k in range(len(x)) { d += (x[k] - y[k]) * (x[k] - y[k]) }\n"
                                 "  return d\n}\n"
                                 "func nothing(x, y, i, j) { }\n"
                                 "func complex_(x, y, i, j) { return c64(x[0], y[0]) }\n"
                                 "func whole(x, y, i, j) { return x }\n"
                                 "func scaled(x, y, i, j, s) { return x[0] * y[0] * s }\n"
                                 "func weight(x, y, w, i, j) { return w }\n"
                                 "func both(x, y, i, j) { return (x[0], i + j) }\n"
                                 "func nested(x, y, i, j) { return (x[0], (i, j)) }\n"
                                 "func many(x, y, i, j) { let a = x[0]\n"
                                 "  return (a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a) }\n"
                                 "func row(j, k, y) { return 2 * y[j, k] }\n"
                                 "func first(a, b) { return a }\n";

typedef struct operands {
  kjit_module *module;
  kjit_array *x, *y, *r, *places;
  kjit_operand of_x, of_y, of_r, of_places, squared;
} operands;

static kjit_operand called(const operands *o, const char *name)
{
  return kjit_operand_function(find(o->module, name), NULL, 0, NULL, 0);
}

static void test_plan(const operands *o)
{
  const kjit_operator min = kjit_operator_named("min");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  kjit_plan *plan = NULL;
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  options.stream = stream;
  options.plan = &plan;
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &o->of_y, 1, &min, &options) ==
          KJIT_OK);
  REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && kjit_synchronize_stream(stream) == KJIT_OK);
  check(o->r);
  memset(got, 0, sizeof got);
  REQUIRE(kjit_copy_from_host(o->r, got, sizeof got, NULL) == KJIT_OK);
  REQUIRE(kjit_synchronize_device(device) == KJIT_OK);
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, stream) == KJIT_OK && kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
  check(o->r);
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_plan(plan);
  kjit_destroy_stream(stream);
}

static void test_results(const operands *o)
{
  kjit_result_info info[2];
  kjit_algorithm_options options = { .size_bytes = sizeof options,
                                     .results = info,
                                     .result_count = 2 };
  const kjit_operator argmin = kjit_operator_named("argmin");
  REQUIRE(kjit_pairs(context, NULL, &o->squared, &o->of_x, &o->of_y, 1, &argmin, &options) ==
          KJIT_OK);
  REQUIRE(info[0].element == KJIT_I64 && info[0].rank == 1 && info[0].shape[0] == M);
  REQUIRE(kjit_pairs_smallest(context, NULL, NULL, &o->squared, &o->of_x, &o->of_y, 1, 4,
                              &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_F32 && info[0].rank == 2 && info[0].shape[1] == 4);
  REQUIRE(info[1].element == KJIT_I64 && info[1].rank == 2 && info[1].shape[0] == M);
}

static kjit_status pairs_of(const operands *o, const kjit_operand *function, const char *name)
{
  const kjit_operator operator_ = kjit_operator_named(name);
  return kjit_pairs(context, &o->of_r, function, &o->of_x, &o->of_y, 1, &operator_, NULL);
}

static void test_refused_funcs(const operands *o)
{
  kjit_operand nothing = called(o, "nothing"), complex_ = called(o, "complex_"),
               whole = called(o, "whole"), scaled = called(o, "scaled"), shaped = o->squared;
  const int64_t shape[] = { 4 };
  const kjit_arg untyped = kjit_arg_number(2);
  REQUIRE(pairs_of(o, &nothing, "add") == KJIT_ERROR_TYPE);
  REQUIRE(says("`nothing` returns no value for a row of x and a row of y"));
  REQUIRE(pairs_of(o, &whole, "add") == KJIT_ERROR_TYPE);
  REQUIRE(pairs_of(o, &complex_, "min") == KJIT_ERROR_TYPE);
  REQUIRE(says("the operator `min` is not defined for elements of type c64"));
  REQUIRE(pairs_of(o, &scaled, "add") == KJIT_ERROR_TYPE); /* one argument is missing */
  scaled.arrays = &untyped;
  scaled.array_count = 1;
  REQUIRE(pairs_of(o, &scaled, "add") == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("a number passed to `func` needs a type"));
  shaped.shape = shape;
  shaped.rank = 1;
  REQUIRE(pairs_of(o, &shaped, "add") == KJIT_ERROR_ARGUMENT &&
          says("`func` must not have a shape"));
  REQUIRE(pairs_of(o, &o->of_x, "add") == KJIT_ERROR_ARGUMENT && says("`func` is not a function"));
  REQUIRE(pairs_of(o, NULL, "add") == KJIT_ERROR_MISUSE && says("`func` is NULL"));
  REQUIRE(pairs_of(o, &o->squared, "sum") == KJIT_ERROR_NAME &&
          says("operator `sum` does not exist"));
  REQUIRE(kjit_pairs_smallest(context, &o->of_r, NULL, &complex_, &o->of_x, &o->of_y, 1, 2, NULL) ==
          KJIT_ERROR_TYPE);
  REQUIRE(says("`func` returns c64, and values of this type cannot be ordered"));
}

static kjit_status several_of(const operands *o, const char *name, const kjit_operand *results,
                              size_t count)
{
  const kjit_operator add = kjit_operator_named("add");
  kjit_operand function = called(o, name);
  return kjit_pairs_several(context, results, count, &function, &o->of_x, &o->of_y, 1, &add, NULL);
}

static void test_several(const operands *o)
{
  kjit_array *sums = make_line(KJIT_I64, M);
  kjit_operand results[] = { o->of_r, kjit_operand_array(sums) }, same[] = { o->of_r, o->of_r },
               both = called(o, "both");
  static int64_t places[M];
  kjit_result_info info[3];
  const kjit_operator add = kjit_operator_named("add");
  kjit_algorithm_options options = { .size_bytes = sizeof options,
                                     .results = info,
                                     .result_count = 3 };
  REQUIRE(several_of(o, "both", results, 2) == KJIT_OK);
  read_array(sums, places, sizeof places);
  for (int64_t i = 0; i < M; i++) REQUIRE(places[i] == N * i + (int64_t)N * (N - 1) / 2);
  REQUIRE(several_of(o, "both", results, 1) == KJIT_ERROR_TYPE);
  REQUIRE(says("`func` returns 2 values, but 1 result is given"));
  REQUIRE(several_of(o, "squared", results, 2) == KJIT_ERROR_TYPE);
  REQUIRE(says("`func` returns 1 value, but 2 results are given"));
  REQUIRE(several_of(o, "nested", results, 2) == KJIT_ERROR_TYPE);
  REQUIRE(says("item 1 of the tuple that `func` returns has the type (i64, i64), which an "
               "array cannot hold"));
  REQUIRE(several_of(o, "many", results, 2) == KJIT_ERROR_UNSUPPORTED);
  REQUIRE(says("`func` returns a tuple of 17 values; the maximum is 16"));
  REQUIRE(several_of(o, "both", same, 2) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `r1` overlaps `r0`"));
  REQUIRE(several_of(o, "both", NULL, 2) == KJIT_ERROR_MISUSE && says("results is NULL"));
  REQUIRE(pairs_of(o, &both, "add") == KJIT_ERROR_TYPE);
  REQUIRE(says("`func` returns a value that an array cannot hold"));
  REQUIRE(kjit_pairs_several(context, NULL, 0, &both, &o->of_x, &o->of_y, 1, &add, &options) ==
          KJIT_OK);
  REQUIRE(info[0].element == KJIT_F32 && info[1].element == KJIT_I64 && info[1].shape[0] == M);
  kjit_release_array(sums);
}

static kjit_status pairs_with(const operands *o, const kjit_operand *r, const kjit_operand *x,
                              const kjit_operand *y, size_t count)
{
  const kjit_operator add = kjit_operator_named("add");
  return kjit_pairs(context, r, &o->squared, x, y, count, &add, NULL);
}

static void test_refused_rows(const operands *o)
{
  kjit_array *wide = make_rows(KJIT_F32, 2, 1025), *none = make_rows(KJIT_F32, 0, WIDTH),
             *narrow = make_rows(KJIT_F32, 9, 0), *few = make_rows(KJIT_F32, 9, WIDTH);
  kjit_operand of_wide = kjit_operand_array(wide), of_none = kjit_operand_array(none),
               of_narrow = kjit_operand_array(narrow),
               both[9] = { o->of_y, kjit_operand_array(few) };
  const kjit_operator min = kjit_operator_named("min"),
                      first = kjit_operator_function(find(o->module, "first"));
  REQUIRE(pairs_with(o, &o->of_r, &of_wide, &o->of_y, 1) == KJIT_ERROR_UNSUPPORTED);
  REQUIRE(says("rows of `x` have 4100 bytes; the maximum is 4096"));
  REQUIRE(pairs_with(o, &o->of_r, &of_narrow, &o->of_y, 1) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("rows of `x` have no elements"));
  REQUIRE(pairs_with(o, &o->of_r, &o->of_x, both, 2) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`y1` has 9 rows, but `y0` has 5000"));
  REQUIRE(pairs_with(o, &o->of_r, &o->of_x, both, 9) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("got 9 operands with rows of y; the call takes 1 to 8"));
  REQUIRE(pairs_with(o, &o->of_r, &o->of_x, both, 0) == KJIT_ERROR_ARGUMENT);
  REQUIRE(pairs_with(o, &o->of_r, &o->of_x, NULL, 1) == KJIT_ERROR_MISUSE && says("y is NULL"));
  REQUIRE(pairs_with(o, &o->of_r, &o->of_y, &o->of_x, 1) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` must have one axis and 5000 elements, one for each row of `x`"));
  REQUIRE(pairs_with(o, &o->of_x, &o->of_x, &o->of_y, 1) == KJIT_ERROR_ARGUMENT);
  REQUIRE(pairs_with(o, NULL, &o->of_x, &o->of_y, 1) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &of_none, 1, &min, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`y0` has no rows, and the operator has no identity element"));
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &of_none, 1, &first, NULL) ==
          KJIT_ERROR_ARGUMENT);
  kjit_release_array(wide);
  kjit_release_array(none);
  kjit_release_array(narrow);
  kjit_release_array(few);
}

static void test_refused_k(const operands *o)
{
  const int64_t ks[] = { 0, 65, 10 };
  kjit_array *few = make_rows(KJIT_F32, 9, WIDTH), *floats = make_rows(KJIT_F32, M, 3),
             *least = make_rows(KJIT_F32, M, 3);
  kjit_operand of_few = kjit_operand_array(few), of_floats = kjit_operand_array(floats),
               of_least = kjit_operand_array(least);
  const char *texts[] = { "`k` is 0, but must be from 1 to 64",
                          "`k` is 65, but must be from 1 to 64",
                          "`k` is 10, but `y0` has only 9 rows" };
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_pairs_smallest(context, &of_least, NULL, &o->squared, &o->of_x, &of_few, 1, ks[i],
                                NULL) == KJIT_ERROR_ARGUMENT);
    REQUIRE(says(texts[i]));
  }
  REQUIRE(kjit_pairs_smallest(context, &of_least, NULL, &o->squared, &o->of_x, &of_few, 1, 4,
                              NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` must have two axes: 700 rows, as many as `x`, of 4 elements"));
  REQUIRE(kjit_pairs_smallest(context, &of_least, &of_floats, &o->squared, &o->of_x, &of_few, 1, 3,
                              NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`result_places` has elements of type f32, but positions are integers"));
  kjit_release_array(few);
  kjit_release_array(floats);
  kjit_release_array(least);
}

/* ---- y in chunks ---- */

/* Rows with gaps in host memory, in reverse order. */
enum { APART = 5 };
static float apart[N][APART], weights[N];

static kjit_tensor tensor_of_y(int64_t *shape, int64_t *strides)
{
  shape[0] = N;
  shape[1] = WIDTH;
  strides[0] = -APART;
  strides[1] = 1;
  for (int j = 0; j < N; j++) memcpy(apart[N - 1 - j], of_y[j], sizeof of_y[j]);
  kjit_tensor tensor = kjit_make_tensor(apart[N - 1], KJIT_F32, 2, shape);
  tensor.strides = strides;
  return tensor;
}

static void test_pieces(const operands *o)
{
  const kjit_operator min = kjit_operator_named("min"), add = kjit_operator_named("add");
  const uint64_t chunks[] = { 333, 1000, N - 1, N, 2 * N };
  int64_t shape[2], strides[2], line = N;
  kjit_tensor y = tensor_of_y(shape, strides), w = kjit_make_tensor(weights, KJIT_F32, 1, &line);
  kjit_operand of_tensors[] = { kjit_operand_of(kjit_arg_tensor(&y)),
                                kjit_operand_of(kjit_arg_tensor(&w)) },
               weight = called(o, "weight");
  kjit_algorithm_options options = { .size_bytes = sizeof options, .device = device };
  double sum = 0;
  for (int j = 0; j < N; j++) sum += weights[j] = (float)(rand() % 100);
  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
    memset(got, 0, sizeof got);
    REQUIRE(kjit_copy_from_host(o->r, got, sizeof got, NULL) == KJIT_OK);
    options.chunk = chunks[i];
    REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, of_tensors, 1, &min, &options) ==
            KJIT_OK);
    check(o->r);
    REQUIRE(kjit_pairs(context, &o->of_r, &weight, &o->of_x, of_tensors, 2, &add, &options) ==
            KJIT_OK);
    read_array(o->r, got, sizeof got);
    for (int k = 0; k < M; k++) REQUIRE(got[k] == (float)sum);
  }
}

static void test_refused_pieces(const operands *o)
{
  const kjit_operator min = kjit_operator_named("min"), none = kjit_operator_named("sum");
  kjit_plan *plan = NULL;
  uint64_t bytes = 0;
  const kjit_arg of_y = kjit_arg_array(o->y);
  const int64_t shape[] = { N, WIDTH };
  kjit_operand twice = kjit_operand_function(find(o->module, "row"), &of_y, 1, shape, 2);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .chunk = 100, .plan = &plan };
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &o->of_y, 1, &min, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.plan: a call with options.chunk cannot be prepared"));
  options.plan = NULL;
  options.work_bytes = &bytes;
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &o->of_y, 1, &min, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.work_bytes: a call with options.chunk cannot be prepared"));
  options.work_bytes = NULL;
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &twice, 1, &min, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`y0` is a function; with options.chunk it must be an array"));
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &o->of_y, 1, &none, &options) ==
          KJIT_ERROR_NAME);
  REQUIRE(kjit_reduce(context, &o->of_r, &o->of_x, &min, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.chunk is not an option of this algorithm"));
}

/* ---- x in shares ---- */

/* The device is listed several times. Tests the rows, results and chunks of all shares, and results
 * in any memory. */
static void test_shares(const operands *o)
{
  const kjit_operator min = kjit_operator_named("min");
  kjit_device *const devices[] = { device, device, device };
  const uint64_t chunks[] = { 0, 700 };
  int64_t shape[2], strides[2], line = M;
  kjit_tensor y = tensor_of_y(shape, strides), r = kjit_make_tensor(got, KJIT_F32, 1, &line);
  const kjit_operand of_tensor = kjit_operand_of(kjit_arg_tensor(&y)),
                     of_host = kjit_operand_of(kjit_arg_tensor(&r));
  kjit_algorithm_options options = { .size_bytes = sizeof options, .devices = devices };
  for (options.device_count = 1; options.device_count <= 3; options.device_count++)
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
      options.chunk = chunks[i];
      memset(got, 0, sizeof got);
      REQUIRE(kjit_copy_from_host(o->r, got, sizeof got, NULL) == KJIT_OK);
      REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, &o->of_x, &o->of_y, 1, &min, &options) ==
              KJIT_OK);
      check(o->r);
      memset(got, 0, sizeof got);
      REQUIRE(kjit_pairs(context, &of_host, &o->squared, &o->of_x, &of_tensor, 1, &min, &options) ==
              KJIT_OK);
      for (int k = 0; k < M; k++)
        REQUIRE(got[k] >= want[k] * 0.99999f && got[k] <= want[k] * 1.00001f);
    }
}

static void refuse_shares(const operands *o, const kjit_operand *x,
                          const kjit_algorithm_options *options, kjit_status status,
                          const char *text)
{
  const kjit_operator min = kjit_operator_named("min");
  REQUIRE(kjit_pairs(context, &o->of_r, &o->squared, x, &o->of_y, 1, &min, options) == status);
  REQUIRE(says(text));
}

static void test_refused_shares(const operands *o)
{
  kjit_context *other = NULL;
  kjit_device *none = NULL, *others = NULL;
  kjit_stream *stream = NULL;
  kjit_plan *plan = NULL;
  const kjit_operator min = kjit_operator_named("min");
  const kjit_arg of_x_array = kjit_arg_array(o->x);
  const int64_t shape[] = { M, WIDTH };
  kjit_operand twice = kjit_operand_function(find(o->module, "row"), &of_x_array, 1, shape, 2);
  REQUIRE(kjit_create_context(NULL, &other) == KJIT_OK);
  REQUIRE(kjit_get_device(other, KJIT_DEVICE_CPU, 0, &others) == KJIT_OK);
  REQUIRE(kjit_get_default_stream(device, &stream) == KJIT_OK);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .device_count = 1 };
  refuse_shares(o, &o->of_x, &options, KJIT_ERROR_MISUSE, "options.devices is NULL");
  options.devices = &none;
  refuse_shares(o, &o->of_x, &options, KJIT_ERROR_MISUSE, "options.devices[0] is NULL");
  options.devices = &others;
  refuse_shares(o, &o->of_x, &options, KJIT_ERROR_ARGUMENT,
                "options.devices[0] belongs to another context");
  options.devices = &device;
  refuse_shares(o, &twice, &options, KJIT_ERROR_ARGUMENT,
                "`x` is a function; with options.devices it must be an array");
  options.stream = stream;
  refuse_shares(o, &o->of_x, &options, KJIT_ERROR_ARGUMENT,
                "options.stream: a call with options.devices takes the default stream of each");
  options.stream = NULL;
  options.plan = &plan;
  refuse_shares(o, &o->of_x, &options, KJIT_ERROR_ARGUMENT,
                "options.plan: a call with options.devices cannot be prepared");
  options.plan = NULL;
  REQUIRE(kjit_reduce(context, &o->of_r, &o->of_x, &min, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.devices is not an option of this algorithm"));
  kjit_destroy_context(other);
}

static void test_all(void)
{
  operands o = { .module = parse(funcs) };
  draw(of_x[0], M * WIDTH);
  draw(of_y[0], N * WIDTH);
  for (int i = 0; i < M; i++) want[i] = least_squared(i);
  o.x = make_rows(KJIT_F32, M, WIDTH);
  o.y = make_rows(KJIT_F32, N, WIDTH);
  o.r = make_line(KJIT_F32, M);
  REQUIRE(kjit_copy_from_host(o.x, of_x, sizeof of_x, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_from_host(o.y, of_y, sizeof of_y, NULL) == KJIT_OK);
  o.of_x = kjit_operand_array(o.x);
  o.of_y = kjit_operand_array(o.y);
  o.of_r = kjit_operand_array(o.r);
  o.squared = called(&o, "squared");
  test_plan(&o);
  test_results(&o);
  test_refused_funcs(&o);
  test_several(&o);
  test_refused_rows(&o);
  test_refused_k(&o);
  test_pieces(&o);
  test_refused_pieces(&o);
  test_shares(&o);
  test_refused_shares(&o);
  kjit_release_array(o.x);
  kjit_release_array(o.y);
  kjit_release_array(o.r);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
