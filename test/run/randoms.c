/* Random numbers called by an application: as plans and in graphs, parts by their offsets, calls
 * that differ only in a number, and calls that kjit rejects. test/algorithm compares the values.
 * RUN: %programs/randoms
 * RUN: %if cuda %{ %programs/randoms cuda %}
 */
#include "algorithm_host.h"

#include <math.h>

enum { COUNT = 30011 };
static float whole[COUNT], parts[COUNT];

static kjit_array *view_part(kjit_array *x, int64_t first, int64_t extent)
{
  kjit_array *part = NULL;
  const kjit_array_slice slice = { first, first + extent, 1 };
  REQUIRE(kjit_slice_array(x, &slice, 1, &part) == KJIT_OK);
  return part;
}

/* A plan runs repeatedly on an array that is changed in between, and once in a graph. */
static void test_plan(kjit_array *x)
{
  kjit_operand of_x = kjit_operand_array(x);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  kjit_plan *plan = NULL;
  uint64_t bytes = 1;
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  options.stream = stream;
  options.work_bytes = &bytes;
  REQUIRE(kjit_random_normal(context, &of_x, 5, 2, 0, 1, &options) == KJIT_OK && bytes == 0);
  options.work_bytes = NULL;
  options.plan = &plan;
  REQUIRE(kjit_random_normal(context, &of_x, 5, 2, 0, 1, &options) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && kjit_synchronize_stream(stream) == KJIT_OK);
  read_array(x, whole, sizeof whole);
  memset(parts, 0, sizeof parts);
  REQUIRE(kjit_copy_from_host(x, parts, sizeof parts, NULL) == KJIT_OK);
  REQUIRE(kjit_synchronize_device(device) == KJIT_OK);
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, stream) == KJIT_OK && kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
  read_array(x, parts, sizeof parts);
  REQUIRE(!memcmp(whole, parts, sizeof whole));
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_plan(plan);
  kjit_destroy_stream(stream);
}

static void fill(kjit_array *x, int law, uint64_t seed, uint64_t offset)
{
  kjit_operand of_x = kjit_operand_array(x);
  kjit_status status = law == 0   ? kjit_random_uniform(context, &of_x, seed, offset, -1, 1, NULL)
                       : law == 1 ? kjit_random_normal(context, &of_x, seed, offset, 3, 2, NULL)
                                  : kjit_random_exponential(context, &of_x, seed, offset, 1, NULL);
  REQUIRE(status == KJIT_OK);
}

/* The bits do not depend on how an array is cut. */
static void test_parts(kjit_array *x)
{
  for (int law = 0; law < 3; law++) {
    uint64_t seed = (uint64_t)rand(), offset = (uint64_t)rand();
    fill(x, law, seed, offset);
    read_array(x, whole, sizeof whole);
    memset(parts, 0, sizeof parts);
    REQUIRE(kjit_copy_from_host(x, parts, sizeof parts, NULL) == KJIT_OK);
    for (int64_t first = 0; first < COUNT;) {
      int64_t extent = 1 + rand() % 6000;
      if (extent > COUNT - first) extent = COUNT - first;
      kjit_array *part = view_part(x, first, extent);
      fill(part, law, seed, offset + (uint64_t)first);
      kjit_release_array(part);
      first += extent;
    }
    read_array(x, parts, sizeof parts);
    REQUIRE(!memcmp(whole, parts, sizeof whole));
    /* the steps of a call are kept, but a call with other numbers must not use its numbers */
    fill(x, law, seed + 1, offset);
    read_array(x, parts, sizeof parts);
    REQUIRE(memcmp(whole, parts, sizeof whole) != 0);
    fill(x, law, seed, offset + 1);
    read_array(x, parts, sizeof parts);
    REQUIRE(!memcmp(whole + 1, parts, sizeof whole - sizeof *whole));
  }
}

static void test_all_of_u64(void)
{
  uint64_t got[64], most = 0;
  kjit_array *x = make_line(KJIT_U64, 64);
  kjit_operand of_x = kjit_operand_array(x);
  REQUIRE(kjit_random_integers(context, &of_x, 1, 0, 0, (int64_t)UINT64_MAX, NULL) == KJIT_OK);
  read_array(x, got, sizeof got);
  for (int i = 0; i < 64; i++) most = got[i] > most ? got[i] : most;
  REQUIRE(most > (uint64_t)INT64_MAX);
  REQUIRE(kjit_random_integers(context, &of_x, 1, 0, -5, -3, NULL) == KJIT_OK);
  read_array(x, got, sizeof got);
  for (int i = 0; i < 64; i++) REQUIRE(got[i] >= UINT64_MAX - 4 && got[i] <= UINT64_MAX - 2);
  REQUIRE(kjit_random_integers(context, &of_x, 1, 0, -1, 5, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`greatest`, 5, is less than `least`, 18446744073709551615"));
  kjit_release_array(x);
}

/* An output func gets f32 numbers: those of an array, in row-major order. */
static void test_func(kjit_array *x)
{
  kjit_module *module = parse("func negated(i, j, v: f32, x) { x[i * 100 + j] = -v }\n");
  const kjit_arg of_x = kjit_arg_array(x);
  const int64_t shape[] = { 300, 100 };
  kjit_operand put = kjit_operand_function(find(module, "negated"), &of_x, 1, shape, 2);
  fill(x, 1, 77, 3);
  read_array(x, whole, sizeof whole);
  fill(x, 0, 1, 0);
  REQUIRE(kjit_random_normal(context, &put, 77, 3, 3, 2, NULL) == KJIT_OK);
  read_array(x, parts, sizeof parts);
  for (int i = 0; i < 300 * 100; i++) REQUIRE(parts[i] == -whole[i]);
}

static void test_refused(kjit_array *x)
{
  kjit_array *b = make_line(KJIT_BOOL, 4), *i = make_line(KJIT_I8, 4), *z = make_line(KJIT_C64, 4);
  kjit_operand real = kjit_operand_array(x), bools = kjit_operand_array(b),
               bytes = kjit_operand_array(i), complex_ = kjit_operand_array(z);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .accumulator = KJIT_F64 };
  REQUIRE(kjit_random_uniform(context, &bytes, 1, 0, 0, 1, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`x` has elements of type i8; expected f16, bf16, f32 or f64"));
  REQUIRE(kjit_random_normal(context, &complex_, 1, 0, 0, 1, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(kjit_random_integers(context, &real, 1, 0, 0, 1, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`x` has elements of type f32; expected integers"));
  REQUIRE(kjit_random_integers(context, &bools, 1, 0, 0, 1, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(kjit_random_integers(context, &bytes, 1, 0, -129, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`least` is -129, which cannot be represented as i8, the type of `x`"));
  REQUIRE(kjit_random_integers(context, &bytes, 1, 0, 3, 2, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`greatest`, 2, is less than `least`, 3"));
  REQUIRE(kjit_random_uniform(context, &real, 1, 0, 2, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`high`, 1, is less than `low`, 2"));
  REQUIRE(kjit_random_uniform(context, &real, 1, 0, -3e38, 3e38, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`high`, 3e+38, is too far from `low`, -3e+38"));
  REQUIRE(kjit_random_uniform(context, &real, 1, 0, (double)NAN, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`low` is nan, but must be a finite number"));
  REQUIRE(kjit_random_normal(context, &real, 1, 0, 0, -1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`deviation`, -1, is negative"));
  REQUIRE(kjit_random_exponential(context, &real, 1, 0, -2, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`scale`, -2, is negative"));
  REQUIRE(kjit_random_normal(context, &real, 1, INT64_MAX, 0, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`offset`, 9223372036854775807, plus the number of elements exceeds 2^63 - 1"));
  REQUIRE(kjit_random_normal(context, NULL, 1, 0, 0, 1, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("`x` is NULL"));
  REQUIRE(kjit_random_normal(context, &real, 1, 0, 0, 1, &options) == KJIT_ERROR_TYPE);
  REQUIRE(says("options.accumulator, f64, cannot choose another type"));
  kjit_release_array(b);
  kjit_release_array(i);
  kjit_release_array(z);
}

/* 16-bit types have a smaller range than f32, in which their numbers are computed. */
static void test_beyond_halves(void)
{
  kjit_array *h = make_line(KJIT_F16, 4), *b = make_line(KJIT_BF16, 4);
  kjit_operand half = kjit_operand_array(h), brain = kjit_operand_array(b);
  REQUIRE(kjit_random_uniform(context, &half, 1, 0, 0, 1e6, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`high` is 1e+06, which cannot be represented as f16, the type of the numbers"));
  REQUIRE(kjit_random_uniform(context, &half, 1, 0, -65505, 0, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_random_normal(context, &half, 1, 0, 1e5, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`mean` is 100000, which cannot be represented as f16, the type of the numbers"));
  REQUIRE(kjit_random_exponential(context, &half, 1, 0, 1e5, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_random_normal(context, &brain, 1, 0, 3.4e38, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("cannot be represented as bf16, the type of the numbers"));
  REQUIRE(kjit_random_uniform(context, &half, 1, 0, -65504, 65504, NULL) == KJIT_OK);
  kjit_release_array(h);
  kjit_release_array(b);
}

/* Every number is equally frequent at every position, and every order of four numbers is equally
 * frequent. The chi-square value over many seeds may differ from its mean by as much as happens by
 * chance once in 10**10 runs. Each seed gives every number one position, so that the value for
 * positions has 15 * 15 degrees of freedom and is larger by 16 / 15 than for independent draws. */
static void test_orders(void)
{
  enum { SEEDS = 2400, WIDTH = 16, ORDERS = 24 };
  kjit_array *x = make_line(KJIT_I32, WIDTH), *y = make_line(KJIT_I32, 4);
  kjit_operand of_x = kjit_operand_array(x), of_y = kjit_operand_array(y);
  double orders[ORDERS] = { 0 }, places[WIDTH][WIDTH] = { 0 }, sum = 0;
  for (int i = 0; i < SEEDS; i++) {
    int32_t got[WIDTH], four[4];
    uint64_t seed = (uint64_t)rand() << 32 | (uint64_t)rand();
    REQUIRE(kjit_random_permutation(context, &of_x, seed, NULL) == KJIT_OK);
    REQUIRE(kjit_random_permutation(context, &of_y, seed, NULL) == KJIT_OK);
    read_array(x, got, sizeof got);
    read_array(y, four, sizeof four);
    for (int k = 0; k < WIDTH; k++) places[k][got[k]]++;
    int order = 0;
    for (int k = 0; k < 3; k++) {
      int less = 0;
      for (int j = k + 1; j < 4; j++) less += four[j] < four[k];
      order = order * (4 - k) + less;
    }
    orders[order]++;
  }
  for (int i = 0; i < ORDERS; i++) sum += pow(orders[i] - SEEDS / ORDERS, 2) / (SEEDS / ORDERS);
  REQUIRE(sum < 100); /* 23 on average */
  sum = 0;
  for (int i = 0; i < WIDTH * WIDTH; i++)
    sum += pow(places[i / WIDTH][i % WIDTH] - SEEDS / WIDTH, 2) / (SEEDS / WIDTH);
  REQUIRE(sum > 120 && sum < 419); /* 240 on average */
  kjit_release_array(x);
  kjit_release_array(y);
}

static void test_refused_orders(kjit_array *x)
{
  kjit_array *i = make_line(KJIT_I8, 129), *j = make_line(KJIT_I8, 128);
  kjit_operand real = kjit_operand_array(x), bytes = kjit_operand_array(i),
               fit = kjit_operand_array(j);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .accumulator = KJIT_F64 };
  REQUIRE(kjit_random_permutation(context, &real, 1, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`x` has elements of type f32, but positions are integers"));
  REQUIRE(kjit_random_permutation(context, &bytes, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` has elements of type i8, which cannot represent positions up to 128"));
  REQUIRE(kjit_random_permutation(context, &fit, 1, NULL) == KJIT_OK);
  REQUIRE(kjit_random_permutation(context, &fit, 1, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.accumulator is not an option of this algorithm"));
  REQUIRE(kjit_random_shuffle(context, &fit, &bytes, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` must have the shape of `x`"));
  REQUIRE(kjit_random_shuffle(context, &bytes, &bytes, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result` overlaps `x`"));
  REQUIRE(kjit_random_shuffle(context, NULL, &bytes, 1, NULL) == KJIT_ERROR_MISUSE);
  kjit_release_array(i);
  kjit_release_array(j);
}

static void test_all(void)
{
  kjit_array *x = make_line(KJIT_F32, COUNT);
  test_plan(x);
  test_parts(x);
  test_all_of_u64();
  test_func(x);
  test_beyond_halves();
  test_refused(x);
  test_orders();
  test_refused_orders(x);
  kjit_release_array(x);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
