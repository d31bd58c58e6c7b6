/* Tests compactions that an application calls. They select by flags or by funcs, and divide
 * elements into two and three parts. They return indices, run lengths, or one element of each run,
 * with and without values. Also tests plans, graphs, inputs without elements, and calls that kjit
 * rejects.
 * RUN: %programs/selects
 * RUN: %if cuda %{ %programs/selects cuda %}
 */
#include "algorithm_host.h"

static const char funcs[] = "func large(i, x, than) { return x[i] > than }\n"
                            "func half(i, x) { return x[i] // 2 }\n"
                            "func rest(i, x) { return x[i] % 3 }\n"
                            "func near(a, b) { return abs(a - b) <= 1 }\n";

enum { MOST = 200000 };
static int32_t x_values[MOST], got[MOST], rest[MOST];
static double y_values[MOST], of_values[MOST];
static int64_t places[MOST], lengths[MOST], starts[MOST];
static int64_t n;

static void read_back(const kjit_array *array, void *to, size_t bytes)
{
  read_array(array, to, (size_t)n * bytes);
}

typedef struct arrays {
  kjit_array *x, *y, *r, *s, *values, *lengths, *starts, *places, *count;
} arrays;

/* Fills the arrays with runs of 1 to 5 equal numbers. */
static arrays draw(int64_t count)
{
  n = count;
  for (int64_t i = 0, left = 0; i < n; i++, left--) {
    if (!left) left = rand() % 5 + 1;
    x_values[i] = i && left != 1 && rand() % 2 ? x_values[i - 1] : rand() % 100 - 50;
    y_values[i] = rand();
  }
  arrays a = { make_line(KJIT_I32, n), make_line(KJIT_F64, n), make_line(KJIT_I32, n),
               make_line(KJIT_I32, n), make_line(KJIT_F64, n), make_line(KJIT_I64, n),
               make_line(KJIT_I64, n), make_line(KJIT_I64, n), make_line(KJIT_I64, 1) };
  REQUIRE(kjit_copy_from_host(a.x, x_values, (size_t)n * sizeof *x_values, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_from_host(a.y, y_values, (size_t)n * sizeof *y_values, NULL) == KJIT_OK);
  return a;
}

static void release(arrays *a)
{
  kjit_array *all[] = { a->x,       a->y,      a->r,      a->s,    a->values,
                        a->lengths, a->starts, a->places, a->count };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) kjit_release_array(all[i]);
}

/* ---- kept by flags ---- */

static void test_select(kjit_module *module, const arrays *a)
{
  kjit_arg of_large[] = { kjit_arg_array(a->x), kjit_arg_i32(rand() % 100 - 50) };
  kjit_operand x = kjit_operand_array(a->x), r = kjit_operand_array(a->r),
               s = kjit_operand_array(a->s), count = kjit_operand_array(a->count),
               large = kjit_operand_function(find(module, "large"), of_large, 2, &n, 1);
  int32_t than = (int32_t)of_large[1].value.i;
  int64_t kept = 0, others = 0, wrong = 0;
  REQUIRE(kjit_partition(context, &r, &s, &count, &x, &large, NULL) == KJIT_OK);
  read_back(a->r, got, sizeof *got);
  read_back(a->s, rest, sizeof *rest);
  for (int64_t i = 0; i < n; i++) {
    if (x_values[i] > than) wrong += got[kept++] != x_values[i];
    else wrong += rest[others++] != x_values[i];
  }
  REQUIRE(integer_in(a->count) == kept && !wrong);
  /* numbers as flags, which keep the elements whose number is not 0; a func doubles the elements as
   * they are read */
  kjit_arg of_half = kjit_arg_array(a->x);
  kjit_operand half = kjit_operand_function(find(module, "half"), &of_half, 1, &n, 1);
  REQUIRE(kjit_select(context, &r, &count, &half, &x, NULL) == KJIT_OK);
  read_back(a->r, got, sizeof *got);
  kept = wrong = 0;
  for (int64_t i = 0; i < n; i++)
    if (x_values[i]) wrong += got[kept++] != (x_values[i] - (x_values[i] & 1)) / 2;
  REQUIRE(integer_in(a->count) == kept && !wrong);
}

/* Tests a selection into three parts, as a plan and in a graph. */
static void test_three(kjit_module *module, const arrays *a)
{
  static int32_t of_third[MOST];
  kjit_arg of_rest = kjit_arg_array(a->x);
  kjit_array *t = make_line(KJIT_I32, n), *c = make_line(KJIT_I64, 2);
  kjit_operand x = kjit_operand_array(a->x), r = kjit_operand_array(a->r),
               s = kjit_operand_array(a->s), third = kjit_operand_array(t),
               counts = kjit_operand_array(c),
               classes = kjit_operand_function(find(module, "rest"), &of_rest, 1, &n, 1);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  options.plan = &plan;
  options.stream = stream;
  REQUIRE(kjit_partition_three(context, &r, &s, &third, &counts, &x, &classes, &options) ==
          KJIT_OK);
  REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, stream) == KJIT_OK && kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
  int64_t found[2] = { -1, -1 }, kept[3] = { 0 }, wrong = 0;
  const int32_t *parts[] = { got, rest, of_third };
  read_back(a->r, got, sizeof *got);
  read_back(a->s, rest, sizeof *rest);
  read_back(t, of_third, sizeof *of_third);
  read_array(c, found, sizeof found);
  for (int64_t i = 0; i < n; i++) {
    int part = (x_values[i] % 3 + 3) % 3;
    wrong += parts[part][kept[part]++] != x_values[i];
  }
  REQUIRE(found[0] == kept[0] && found[1] == kept[1] && !wrong);
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_plan(plan);
  kjit_release_array(t);
  kjit_release_array(c);
  kjit_destroy_stream(stream);
}

static void test_nonzero(const arrays *a)
{
  kjit_operand x = kjit_operand_array(a->x), r = kjit_operand_array(a->places),
               count = kjit_operand_array(a->count);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  int64_t kept = 0, wrong = 0;
  options.plan = &plan;
  REQUIRE(kjit_nonzero(context, &r, &count, &x, &options) == KJIT_OK);
  for (int i = 0; i < 3; i++) REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
  read_back(a->places, places, sizeof *places);
  for (int64_t i = 0; i < n; i++)
    if (x_values[i]) wrong += places[kept++] != i;
  REQUIRE(integer_in(a->count) == kept && !wrong);
  kjit_destroy_plan(plan);
}

/* ---- runs ---- */

static bool starts_run(int64_t i, bool near)
{
  return !i || (near ? abs(x_values[i] - x_values[i - 1]) > 1 : x_values[i] != x_values[i - 1]);
}

static void test_runs(kjit_module *module, const arrays *a, bool near)
{
  kjit_function *equal = near ? find(module, "near") : NULL;
  kjit_operand x = kjit_operand_array(a->x), y = kjit_operand_array(a->y),
               r = kjit_operand_array(a->r), values = kjit_operand_array(a->values),
               count = kjit_operand_array(a->count), length = kjit_operand_array(a->lengths),
               start = kjit_operand_array(a->starts);
  int64_t kept = 0, wrong = 0;
  REQUIRE(kjit_unique_pairs(context, &r, &values, &count, &x, &y, equal, NULL) == KJIT_OK);
  read_back(a->r, got, sizeof *got);
  read_back(a->values, of_values, sizeof *of_values);
  for (int64_t i = 0; i < n; i++) {
    if (!starts_run(i, near)) continue;
    wrong += got[kept] != x_values[i] || of_values[kept] != y_values[i];
    kept++;
  }
  REQUIRE(integer_in(a->count) == kept && !wrong);
  REQUIRE(kjit_unique(context, &r, &count, &x, equal, NULL) == KJIT_OK);
  REQUIRE(integer_in(a->count) == kept);
  REQUIRE(kjit_run_lengths(context, &r, &length, &start, &count, &x, equal, NULL) == KJIT_OK);
  REQUIRE(integer_in(a->count) == kept);
  read_back(a->r, got, sizeof *got);
  read_back(a->lengths, lengths, sizeof *lengths);
  read_back(a->starts, starts, sizeof *starts);
  for (int64_t i = 0, k = 0, next = 0; k < kept; k++, i = next) {
    for (next = i + 1; next < n && !starts_run(next, near);) next++;
    wrong += got[k] != x_values[i] || starts[k] != i || lengths[k] != next - i;
  }
  REQUIRE(!wrong);
}

/* ---- rejected calls ---- */

static void test_refused(const arrays *a)
{
  kjit_array *fewer = make_line(KJIT_I32, n - 1);
  kjit_operand x = kjit_operand_array(a->x), r = kjit_operand_array(a->r),
               few = kjit_operand_array(fewer), count = kjit_operand_array(a->count);
  REQUIRE(kjit_select(context, &r, &count, &x, &few, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` and `flags` must have the same number of elements"));
  REQUIRE(kjit_select(context, &few, &count, &x, &x, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` needs "));
  REQUIRE(kjit_unique(context, &x, &count, &x, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result` overlaps `x`"));
  REQUIRE(kjit_nonzero(context, &r, NULL, &x, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("`count` is NULL"));
  kjit_operand s = kjit_operand_array(a->s), y = kjit_operand_array(a->y),
               t = kjit_operand_array(a->places);
  REQUIRE(kjit_partition_three(context, &r, &s, &t, &count, &x, &x, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`counts` needs 2 elements; it has 1"));
  REQUIRE(kjit_partition_three(context, &r, &s, &t, &t, &x, &y, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`classes` has elements of type f64; expected integers"));
  REQUIRE(kjit_partition_three(context, &r, &few, &t, &t, &x, &x, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`second` needs "));
  REQUIRE(kjit_partition_three(context, &r, &r, &s, &t, &x, &x, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `second` overlaps `first`"));
  REQUIRE(kjit_partition_three(context, &r, &s, NULL, &t, &x, &x, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("`rest` is NULL"));
  kjit_release_array(fewer);
}

/* An element with another class is written to the rest and raises a kernel error. */
static void test_no_class(const arrays *a)
{
  kjit_array *t = make_line(KJIT_I32, n), *c = make_line(KJIT_I64, 2);
  kjit_operand x = kjit_operand_array(a->x), r = kjit_operand_array(a->r),
               s = kjit_operand_array(a->s), third = kjit_operand_array(t),
               counts = kjit_operand_array(c);
  kjit_status status = kjit_partition_three(context, &r, &s, &third, &counts, &x, &x, NULL);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  REQUIRE(status == KJIT_ERROR_KERNEL && says("an element of `classes` is not 0, 1 or 2"));
  kjit_release_array(t);
  kjit_release_array(c);
}

static void test_all(void)
{
  kjit_module *module = parse(funcs);
  const int64_t sizes[] = { 0, 1, 2, 4096, rand() % 10000 + 1, MOST - rand() % 1000 };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    arrays a = draw(sizes[i]);
    test_select(module, &a);
    if (i != 1) test_three(module, &a);
    test_nonzero(&a);
    test_runs(module, &a, false);
    test_runs(module, &a, true);
    if (n > 1) test_refused(&a);
    if (n == 4096) test_no_class(&a);
    release(&a);
  }
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
