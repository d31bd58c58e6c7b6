/* Tests set operations that an application calls: as plans, in graphs, and with temporary storage
 * of the application. Also tests descriptions of results, inputs without elements, and calls that
 * kjit rejects. test/algorithm compares the values for all types.
 * RUN: %programs/sets
 * RUN: %if cuda %{ %programs/sets cuda %}
 */
#include "algorithm_host.h"

typedef kjit_status set_function(kjit_context *, const kjit_operand *, const kjit_operand *,
                                 const kjit_operand *, const kjit_operand *, kjit_function *,
                                 const kjit_algorithm_options *);
enum { UNION, INTERSECTION, DIFFERENCE, SYMMETRIC, KINDS };
static set_function *const functions[KINDS] = { kjit_set_union, kjit_set_intersection,
                                                kjit_set_difference,
                                                kjit_set_symmetric_difference };

enum { MOST = 60000 };
static int32_t x_values[MOST], y_values[MOST], got[2 * MOST], wanted[2 * MOST];

/* Sorted, with repeats. */
static kjit_array *draw(int32_t *values, int64_t count)
{
  for (int64_t i = 0; i < count; i++) values[i] = (i ? values[i - 1] : -9) + rand() % 3 / 2;
  return make_line_of(KJIT_I32, count, values, (size_t)count * sizeof *values);
}

/* Computes the expected result by a merge of both inputs. */
static int64_t walk(int operation, int64_t n, int64_t m)
{
  int64_t count = 0, i = 0, j = 0;
  while (i < n || j < m) {
    bool is_x = i < n && (j >= m || x_values[i] < y_values[j]),
         is_y = j < m && (i >= n || y_values[j] < x_values[i]);
    const bool keeps[KINDS] = { true, !is_x && !is_y, is_x, is_x || is_y };
    if (keeps[operation]) wanted[count++] = is_y ? y_values[j] : x_values[i];
    i += !is_y;
    j += !is_x;
  }
  return count;
}

static void check(kjit_array *result, const kjit_array *count, int64_t expected)
{
  REQUIRE(integer_in(count) == expected);
  if (!expected) return;
  size_t bytes = (size_t)expected * sizeof *got;
  kjit_array *front = NULL;
  kjit_array_slice slice = { 0, expected, 1 };
  REQUIRE(kjit_slice_array(result, &slice, 1, &front) == KJIT_OK);
  read_array(front, got, bytes);
  REQUIRE(!memcmp(got, wanted, bytes));
  kjit_release_array(front);
}

static int64_t room_of(int operation, int64_t n, int64_t m)
{
  const int64_t rooms[KINDS] = { n + m, n < m ? n : m, n, n + m };
  return rooms[operation];
}

/* A plan that runs three times, and once in a graph. */
static void test_plan(int operation, int64_t n, int64_t m, kjit_function *less)
{
  kjit_array *x = draw(x_values, n), *y = draw(y_values, m), *count = make_line(KJIT_I64, 1),
             *result = make_line(KJIT_I32, room_of(operation, n, m)), *work = NULL;
  kjit_operand of_x = kjit_operand_array(x), of_y = kjit_operand_array(y),
               of_result = kjit_operand_array(result), of_count = kjit_operand_array(count);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_result_info infos[2];
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  kjit_plan *plan = NULL;
  uint64_t bytes = 0;
  int64_t expected = walk(operation, n, m);
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  options.results = infos;
  options.result_count = 2;
  REQUIRE(functions[operation](context, NULL, NULL, &of_x, &of_y, less, &options) == KJIT_OK);
  REQUIRE(infos[0].element == KJIT_I32 && infos[0].rank == 1 && infos[1].element == KJIT_I64 &&
          infos[0].shape[0] == room_of(operation, n, m) && infos[1].rank == 0);
  options.results = NULL;
  options.stream = stream;
  options.work_bytes = &bytes;
  REQUIRE(functions[operation](context, &of_result, &of_count, &of_x, &of_y, less, &options) ==
          KJIT_OK);
  int64_t extent = (int64_t)bytes;
  options.work_bytes = NULL;
  options.work = work = make_line(KJIT_U8, extent);
  options.plan = &plan;
  REQUIRE(functions[operation](context, &of_result, &of_count, &of_x, &of_y, less, &options) ==
          KJIT_OK);
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && kjit_synchronize_stream(stream) == KJIT_OK);
    check(result, count, expected);
  }
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, stream) == KJIT_OK && kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
  check(result, count, expected);
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_plan(plan);
  kjit_array *all[] = { x, y, result, count, work };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) kjit_release_array(all[i]);
  kjit_destroy_stream(stream);
}

static void test_refused(void)
{
  kjit_array *x = draw(x_values, 100), *f = make_line(KJIT_F32, 100), *r = make_line(KJIT_I32, 150),
             *z = make_line(KJIT_C64, 8), *c = make_line(KJIT_I64, 1);
  int64_t shape[] = { 10, 10 };
  kjit_array *both = make_array(KJIT_I32, shape, 2);
  kjit_operand of_x = kjit_operand_array(x), of_f = kjit_operand_array(f),
               of_r = kjit_operand_array(r), of_z = kjit_operand_array(z),
               count = kjit_operand_array(c), of_both = kjit_operand_array(both);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  REQUIRE(kjit_set_union(context, &of_r, &count, &of_x, &of_x, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` needs 200 elements; it has 150"));
  REQUIRE(kjit_set_difference(context, &of_x, &count, &of_x, &of_x, NULL, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result` overlaps `x`"));
  REQUIRE(kjit_set_difference(context, &of_r, &count, &of_x, &of_f, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`x` has elements of type i32, but `y` has elements of type f32"));
  REQUIRE(kjit_set_difference(context, &of_f, &count, &of_x, &of_x, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`result` has elements of type f32: expected i32"));
  REQUIRE(kjit_set_union(context, &of_z, &count, &of_z, &of_z, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("elements of type c64 have no order; pass `less`"));
  REQUIRE(kjit_set_intersection(context, &of_r, &of_f, &of_x, &of_x, NULL, NULL) ==
          KJIT_ERROR_TYPE);
  REQUIRE(says("`count` has elements of type f32; expected an integer type"));
  REQUIRE(kjit_set_intersection(context, &of_r, &of_r, &of_x, &of_x, NULL, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `count` overlaps `result`"));
  REQUIRE(kjit_set_union(context, &of_r, &count, &of_both, &of_x, NULL, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` has 2 axes; a sorted array must have one"));
  REQUIRE(kjit_set_union(context, &of_r, NULL, &of_x, NULL, NULL, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("`y` is NULL"));
  options.flags = KJIT_ALGORITHM_RIGHT;
  REQUIRE(kjit_set_symmetric_difference(context, &of_r, &count, &of_x, &of_x, NULL, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.flags: KJIT_ALGORITHM_RIGHT is not an option of this algorithm"));
  kjit_array *all[] = { x, f, r, z, c, both };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) kjit_release_array(all[i]);
}

static void test_all(void)
{
  kjit_function *less = find(parse("func less(a, b) { return a < b }\n"), "less");
  const int64_t sizes[][2] = { { 0, 0 }, { 0, 40 }, { 700, 0 }, { 1, 1 } };
  int large = rand() % KINDS, small = rand() % KINDS;
  test_plan(large, MOST - rand() % 9000, MOST - rand() % 9000, NULL);
  test_plan((large + 1) % KINDS, rand() % 9000 + 1, MOST, less);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    test_plan(small, sizes[i][0], sizes[i][1], NULL);
  test_refused();
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
