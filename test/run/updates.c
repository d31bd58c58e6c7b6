/* kjit_update_at called by an application: as plans and in graphs, with an index out of bounds, and
 * calls that kjit rejects. test/algorithm compares the values for all types.
 * RUN: %programs/updates
 * RUN: %if cuda %{ %programs/updates cuda %}
 */
#include "algorithm_host.h"

enum { ROWS = 500, COUNT = 40000 };
static int32_t places[COUNT], values[COUNT];
static int64_t start[ROWS];

/* A plan that runs twice, and once in a graph. */
static void test_plan(void)
{
  int64_t wanted[ROWS], got[ROWS];
  kjit_array *x = make_line_of(KJIT_I64, ROWS, start, sizeof start),
             *p = make_line_of(KJIT_I32, COUNT, places, sizeof places),
             *v = make_line_of(KJIT_I32, COUNT, values, sizeof values);
  kjit_operand of_x = kjit_operand_array(x), of_places = kjit_operand_array(p),
               of_values = kjit_operand_array(v);
  kjit_operator add = kjit_operator_named("add");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_result_info info;
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  kjit_plan *plan = NULL;
  uint64_t bytes = 1;
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  options.results = &info;
  options.result_count = 1;
  REQUIRE(kjit_update_at(context, &of_x, &of_places, &of_values, &add, &options) == KJIT_OK);
  REQUIRE(info.element == KJIT_I64 && info.rank == 1 && info.shape[0] == ROWS);
  options.results = NULL;
  options.stream = stream;
  options.work_bytes = &bytes;
  REQUIRE(kjit_update_at(context, &of_x, &of_places, &of_values, &add, &options) == KJIT_OK);
  REQUIRE(bytes == 0);
  options.work_bytes = NULL;
  options.plan = &plan;
  REQUIRE(kjit_update_at(context, &of_x, &of_places, &of_values, &add, &options) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && kjit_run_plan(plan, NULL) == KJIT_OK);
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, stream) == KJIT_OK && kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
  memcpy(wanted, start, sizeof wanted);
  for (int i = 0; i < COUNT; i++)
    wanted[places[i] < 0 ? places[i] + ROWS : places[i]] += 3 * (int64_t)values[i];
  read_array(x, got, sizeof got);
  REQUIRE(!memcmp(got, wanted, sizeof got));
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_plan(plan);
  kjit_release_array(x);
  kjit_release_array(p);
  kjit_release_array(v);
  kjit_destroy_stream(stream);
}

/* An index out of bounds does not prevent the other updates. */
static void test_no_place(void)
{
  static const int32_t outside[] = { 0, ROWS, 1, -ROWS - 1, -1 };
  static const uint64_t large[] = { UINT64_MAX };
  enum { FEW = sizeof outside / sizeof *outside };
  int64_t got[ROWS];
  kjit_array *x = make_line_of(KJIT_I64, ROWS, start, sizeof start),
             *p = make_line_of(KJIT_I32, FEW, outside, sizeof outside),
             *q = make_line_of(KJIT_U64, 1, large, sizeof large);
  kjit_operand of_x = kjit_operand_array(x), of_p = kjit_operand_array(p),
               of_q = kjit_operand_array(q), one = kjit_operand_of(kjit_arg_number(1));
  kjit_operator add = kjit_operator_named("add");
  for (int i = 0; i < 2; i++) {
    kjit_status status = kjit_update_at(context, &of_x, i ? &of_q : &of_p, &one, &add, NULL);
    if (status == KJIT_OK) status = kjit_synchronize_device(device);
    REQUIRE(status == KJIT_ERROR_KERNEL && says("an index in `places` is out of bounds"));
  }
  read_array(x, got, sizeof got);
  REQUIRE(got[0] == start[0] + 1 && got[1] == start[1] + 1 && got[2] == start[2] &&
          got[ROWS - 1] == start[ROWS - 1] + 1);
  kjit_release_array(x);
  kjit_release_array(p);
  kjit_release_array(q);
}

/* Tests invalid indices among so many values that each core of a CPU updates a copy of x. The last
 * index is out of bounds, and the value for index 0 is in the first part of the values. */
static void test_no_place_of_many(void)
{
  enum { MANY = 1 << 18 };
  int32_t *outside = calloc(MANY, sizeof *outside);
  int64_t got[ROWS];
  REQUIRE(outside != NULL);
  for (int i = 0; i < MANY; i++) outside[i] = i % (ROWS - 1);
  outside[MANY - 1] = ROWS;
  kjit_array *x = make_line_of(KJIT_I64, ROWS, start, sizeof start),
             *p = make_line_of(KJIT_I32, MANY, outside, MANY * sizeof *outside);
  kjit_operand of_x = kjit_operand_array(x), of_p = kjit_operand_array(p),
               most = kjit_operand_of(kjit_arg_number(1 << 30));
  kjit_operator max = kjit_operator_named("max");
  kjit_status status = kjit_update_at(context, &of_x, &of_p, &most, &max, NULL);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  REQUIRE(status == KJIT_ERROR_KERNEL && says("an index in `places` is out of bounds"));
  read_array(x, got, sizeof got);
  for (int i = 0; i < ROWS - 1; i++) REQUIRE(got[i] == 1 << 30);
  REQUIRE(got[ROWS - 1] == start[ROWS - 1]);
  kjit_release_array(x);
  kjit_release_array(p);
  free(outside);
}

static void test_refused(kjit_module *module)
{
  int64_t extent = ROWS;
  kjit_array *x = make_line_of(KJIT_I64, ROWS, start, sizeof start),
             *p = make_line_of(KJIT_I32, COUNT, places, sizeof places),
             *f = make_line(KJIT_F64, COUNT), *few = make_line(KJIT_I64, 7),
             *none = make_array(KJIT_I64, NULL, 0);
  kjit_arg of_item = kjit_arg_array(x);
  kjit_operand of_x = kjit_operand_array(x), of_p = kjit_operand_array(p),
               of_f = kjit_operand_array(f), of_few = kjit_operand_array(few),
               of_none = kjit_operand_array(none), half = kjit_operand_of(kjit_arg_number(0.5)),
               item = kjit_operand_function(find(module, "item"), &of_item, 1, &extent, 1);
  kjit_operator add = kjit_operator_named("add"), mean = kjit_operator_named("mean"),
                own = kjit_operator_function(find(module, "own")), and = kjit_operator_named("and");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  const struct {
    kjit_operand *x, *places, *values;
    kjit_operator *operator_;
    kjit_status status;
    const char *text;
  } rows[] = {
    { &item, &of_p, &of_p, &add, KJIT_ERROR_ARGUMENT, "`x` is a function, but must be an array" },
    { &of_none, &of_p, &of_p, &add, KJIT_ERROR_ARGUMENT, "`x` has no axes" },
    { &of_x, &of_f, &of_p, &add, KJIT_ERROR_TYPE,
      "`places` has elements of type f64; expected integers" },
    { &of_x, &of_p, &of_f, &add, KJIT_ERROR_TYPE,
      "`values` has elements of type f64, but `x` has elements of type i64" },
    { &of_x, &of_p, &half, &add, KJIT_ERROR_ARGUMENT,
      "`values` is 0.5, which cannot be represented as i64" },
    { &of_x, &of_p, &of_few, &add, KJIT_ERROR_ARGUMENT,
      "`values` must have the shape of `places`" },
    { &of_x, &of_p, &of_p, &own, KJIT_ERROR_ARGUMENT, "the operator must be commutative" },
    { &of_x, &of_p, &of_p, &mean, KJIT_ERROR_NAME, "operator `mean` of two values does not exist" },
    { &of_f, &of_p, &of_p, &and, KJIT_ERROR_TYPE, "the operator `and` is not defined" },
    { &of_x, &of_x, &of_x, &add, KJIT_ERROR_ARGUMENT, "the output `x` overlaps `places`" },
    { &of_x, &of_few, &item, &add, KJIT_ERROR_ARGUMENT,
      "`values` must have the shape of `places`" },
    { &of_x, NULL, &of_p, &add, KJIT_ERROR_MISUSE, "`places` is NULL" },
    { &of_x, &of_p, &of_p, NULL, KJIT_ERROR_MISUSE,
      "the operator has neither a name nor a function" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    REQUIRE(kjit_update_at(context, rows[i].x, rows[i].places, rows[i].values, rows[i].operator_,
                           NULL) == rows[i].status);
    REQUIRE(says(rows[i].text));
  }
  options.flags = KJIT_ALGORITHM_DESCENDING;
  REQUIRE(kjit_update_at(context, &of_x, &of_p, &of_p, &add, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.flags: KJIT_ALGORITHM_DESCENDING is not an option of this algorithm"));
  kjit_array *all[] = { x, p, f, few, none };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) kjit_release_array(all[i]);
}

static void test_all(void)
{
  kjit_module *module = parse("func item(i, x) { return x[i] }\nfunc own(a, b) { return a + b }\n");
  for (int i = 0; i < ROWS; i++) start[i] = rand() % 100;
  for (int i = 0; i < COUNT; i++) {
    places[i] = rand() % (2 * ROWS) - ROWS;
    values[i] = rand() % 2001 - 1000;
  }
  test_plan();
  test_no_place();
  test_no_place_of_many();
  test_refused(module);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
