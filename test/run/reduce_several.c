/* Several reductions in one pass, called by an application: as plans, in graphs, into funcs,
 * without elements, descriptions of results; and calls that kjit rejects. test/algorithm compares
 * the values for all types and axes.
 * RUN: %programs/reduce_several
 * RUN: %if cuda %{ %programs/reduce_several cuda %}
 */
#include "algorithm_host.h"

enum { COUNT = 70001, RESULTS = 5 };
static float data[COUNT];

static const char funcs[] = "struct Pair { a: f32; b: f32 }\n"
                            "func first(a, b) { return a }\n"
                            "func pair(i, x) { return Pair(x[i], f32(i)) }\n"
                            "func ends(p, q) { return Pair(p.a, q.b) }\n"
                            "func sums(p, q) { return Pair(p.a + q.a, max(p.b, q.b)) }\n"
                            "func keep(v, r) { r[2] = v }\n";

typedef struct expectation {
  float least, most, first;
  int64_t place;
  double sum;
} expectation;

static expectation walk(void)
{
  expectation e = { data[0], data[0], data[0], 0, 0 };
  for (int i = 0; i < COUNT; i++) {
    if (data[i] < e.least) e.least = data[i];
    if (data[i] > e.most) {
      e.most = data[i];
      e.place = i;
    }
    e.sum += data[i];
  }
  return e;
}

static void check(kjit_array *const *arrays, expectation e)
{
  expectation got;
  float kept[4];
  read_array(arrays[0], &got.least, sizeof got.least);
  read_array(arrays[1], &got.sum, sizeof got.sum);
  read_array(arrays[2], kept, sizeof kept);
  read_array(arrays[3], &got.first, sizeof got.first);
  read_array(arrays[4], &got.place, sizeof got.place);
  REQUIRE(got.least == e.least && got.sum == e.sum && kept[2] == e.most && got.first == e.first &&
          got.place == e.place);
}

/* A plan that runs three times, and once in a graph. */
static void test_plan(kjit_module *module)
{
  for (int i = 0; i < COUNT; i++) data[i] = (float)(rand() % 2001 - 1000);
  kjit_array *x = make_line_of(KJIT_F32, COUNT, data, sizeof data),
             *arrays[] = { make_array(KJIT_F32, NULL, 0), make_array(KJIT_F64, NULL, 0),
                           make_line(KJIT_F32, 4), make_array(KJIT_F32, NULL, 0),
                           make_array(KJIT_I64, NULL, 0) };
  kjit_arg of_keep = kjit_arg_array(arrays[2]);
  kjit_operand all = kjit_operand_array(x), results[RESULTS];
  const kjit_operator operators[] = { kjit_operator_named("min"), kjit_operator_named("add"),
                                      kjit_operator_named("max"),
                                      kjit_operator_function(find(module, "first")),
                                      kjit_operator_named("argmax") };
  for (int i = 0; i < RESULTS; i++) results[i] = kjit_operand_array(arrays[i]);
  results[2] = kjit_operand_function(find(module, "keep"), &of_keep, 1, NULL, 0);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  options.stream = stream;
  options.plan = &plan;
  REQUIRE(kjit_reduce_several(context, results, &all, operators, RESULTS, &options) == KJIT_OK);
  REQUIRE(kjit_get_plan_size(plan) == 1);
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && kjit_synchronize_stream(stream) == KJIT_OK);
    check(arrays, walk());
  }
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, stream) == KJIT_OK && kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  data[0] = 4000;
  REQUIRE(kjit_copy_from_host(x, data, sizeof data, NULL) == KJIT_OK);
  REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
  check(arrays, walk());
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_plan(plan);
  kjit_destroy_stream(stream);
  kjit_release_array(x);
  for (int i = 0; i < RESULTS; i++) kjit_release_array(arrays[i]);
}

/* Elements that are structs of the application. */
static void test_structs(kjit_module *module)
{
  struct pair {
    float a, b;
  } ends, sums;
  kjit_type type;
  int64_t n = COUNT;
  double sum = 0;
  REQUIRE(kjit_parse_type(context, "Pair", &type) == KJIT_OK);
  for (int i = 0; i < COUNT; i++) data[i] = (float)(rand() % 101); /* sums below 2^24 are exact */
  for (int i = 0; i < COUNT; i++) sum += data[i];
  kjit_array *x = make_line_of(KJIT_F32, COUNT, data, sizeof data),
             *arrays[] = { make_array(type, NULL, 0), make_array(type, NULL, 0) };
  kjit_arg of_pair = kjit_arg_array(x);
  kjit_operand pairs = kjit_operand_function(find(module, "pair"), &of_pair, 1, &n, 1),
               results[] = { kjit_operand_array(arrays[0]), kjit_operand_array(arrays[1]) };
  const kjit_operator operators[] = { kjit_operator_function(find(module, "ends")),
                                      kjit_operator_function(find(module, "sums")) };
  REQUIRE(kjit_reduce_several(context, results, &pairs, operators, 2, NULL) == KJIT_OK);
  read_array(arrays[0], &ends, sizeof ends);
  read_array(arrays[1], &sums, sizeof sums);
  REQUIRE(ends.a == data[0] && ends.b == COUNT - 1 && sums.a == sum && sums.b == COUNT - 1);
  kjit_release_array(x);
  kjit_release_array(arrays[0]);
  kjit_release_array(arrays[1]);
}

static void test_described_and_empty(void)
{
  int64_t shape[] = { 3, 0 };
  int32_t last = -1;
  kjit_array *x = make_array(KJIT_F16, shape, 2), *sums = make_line(KJIT_F32, 3),
             *places = make_line(KJIT_I64, 3);
  kjit_operand all = kjit_operand_array(x),
               results[] = { kjit_operand_array(sums), kjit_operand_array(places) };
  kjit_operator operators[] = { kjit_operator_named("add"), kjit_operator_named("count_nonzero") };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_result_info infos[2];
  options.axes = &last;
  options.axis_count = 1;
  options.results = infos;
  options.result_count = 2;
  REQUIRE(kjit_reduce_several(context, NULL, &all, operators, 2, &options) == KJIT_OK);
  REQUIRE(infos[0].element == KJIT_F16 && infos[1].element == KJIT_I64);
  REQUIRE(infos[1].rank == 1 && infos[1].shape[0] == 3);
  options.result_count = 1;
  REQUIRE(kjit_reduce_several(context, NULL, &all, operators, 2, &options) == KJIT_ERROR_MISUSE);
  options.results = NULL;
  options.result_count = 0;
  REQUIRE(kjit_reduce_several(context, results, &all, operators, 2, &options) == KJIT_OK);
  float sum[3];
  int64_t count[3];
  read_array(sums, sum, sizeof sum);
  read_array(places, count, sizeof count);
  for (int i = 0; i < 3; i++) REQUIRE(sum[i] == 0 && count[i] == 0);
  operators[1] = kjit_operator_named("max");
  REQUIRE(kjit_reduce_several(context, results, &all, operators, 2, &options) == KJIT_ERROR_TYPE);
  REQUIRE(says("`r1` has elements of type i64, but the computed values, of type f16"));
  operators[0] = kjit_operator_named("max");
  operators[1] = kjit_operator_named("count_nonzero");
  REQUIRE(kjit_reduce_several(context, results, &all, operators, 2, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` is empty, and the operator of `r0` has no identity element"));
  operators[0] = kjit_operator_named("add");
  operators[1] = kjit_operator_named("argmin");
  REQUIRE(kjit_reduce_several(context, results, &all, operators, 2, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`argmin` is undefined"));
  kjit_release_array(x);
  kjit_release_array(sums);
  kjit_release_array(places);
}

static void test_refused(void)
{
  enum { MANY = 40 };
  kjit_array *x = make_line(KJIT_F32, COUNT), *r = make_line(KJIT_F64, 1),
             *two = make_line(KJIT_F64, 2), *both[MANY];
  kjit_operand all = kjit_operand_array(x), of_r = kjit_operand_array(r),
               results[MANY] = { of_r, kjit_operand_array(two) }, same[] = { of_r, of_r };
  kjit_arg initial = kjit_arg_f32(1);
  kjit_operator operators[MANY] = { kjit_operator_named("min"), kjit_operator_named("mean") };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  REQUIRE(kjit_reduce_several(context, results, &all, operators, 2, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`r1` must have the shape of `x` without the reduced axes"));
  REQUIRE(kjit_reduce_several(context, same, &all, operators, 2, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `r1` overlaps `r0`"));
  results[0] = all;
  REQUIRE(kjit_reduce_several(context, results, &all, operators, 1, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `r0` overlaps `x`"));
  REQUIRE(kjit_reduce_several(context, results, &all, operators, 0, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the number of operators is 0"));
  REQUIRE(kjit_reduce_several(context, NULL, &all, operators, 1, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("results is NULL"));
  REQUIRE(kjit_reduce_several(context, same, &all, NULL, 1, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("operators is NULL"));
  options.initial = &initial;
  REQUIRE(kjit_reduce_several(context, same, &all, operators, 1, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.initial is not an option of this algorithm"));
  operators[0] = kjit_operator_named("plus");
  REQUIRE(kjit_reduce_several(context, same, &all, operators, 1, NULL) == KJIT_ERROR_NAME);
  REQUIRE(says("operator `plus` does not exist"));
  operators[0] = (kjit_operator){ 0 };
  REQUIRE(kjit_reduce_several(context, same, &all, operators, 1, NULL) == KJIT_ERROR_MISUSE);
  for (int i = 0; i < MANY; i++) {
    both[i] = make_array(KJIT_F32, NULL, 0);
    results[i] = kjit_operand_array(both[i]);
    operators[i] = kjit_operator_named("max");
  }
  REQUIRE(kjit_reduce_several(context, results, &all, operators, MANY, NULL) ==
          KJIT_ERROR_UNSUPPORTED);
  REQUIRE(says("the combined values of these reductions together need more than 128 bytes"));
  for (int i = 0; i < MANY; i++) kjit_release_array(both[i]);
  kjit_release_array(x);
  kjit_release_array(r);
  kjit_release_array(two);
}

static void test_all(void)
{
  kjit_module *module = parse(funcs);
  test_plan(module);
  test_described_and_empty();
  test_structs(module);
  test_refused();
  kjit_release_module(module);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
