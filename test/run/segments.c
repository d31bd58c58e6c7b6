/* Reductions and scans of segments and by key, called by an application: random segments, as plans,
 * as graphs, in temporary storage of the application; wrong offsets, which raise a kernel error;
 * and calls that kjit rejects.
 * RUN: %programs/segments
 * RUN: %if cuda %{ %programs/segments cuda %}
 */
#include "algorithm_host.h"

static const char funcs[] = "func last(x, y) { return y != 0 ? y : x }\n"
                            "func near(x, y) { return x - y < 3 and y - x < 3 }\n"
                            "func put_half(i, v, r) { r[i] = v >> 1 }\n"
                            "struct Wide { a: f64[16] }\n"
                            "func wide(i) { return zero(Wide) }\n"
                            "func first(x, y) { return x }\n";

enum { MOST = 100000, SEGMENTS = 3000 };

static int32_t values[MOST], keys[MOST], places[SEGMENTS + 1];
static int64_t n, segments;
static const kjit_operator add = { .name = "add" }, max = { .name = "max" };

static kjit_algorithm_options all_defaults(void)
{
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  return options;
}

typedef struct arrays {
  kjit_array *x, *keys, *offsets, *sums, *scan, *runs, *run_sums, *count;
} arrays;

static arrays draw(int64_t elements, int64_t lines)
{
  n = elements;
  segments = lines;
  places[0] = rand() % 3;
  for (int64_t i = 0; i < segments; i++) {
    int64_t left = n - places[i],
            length = rand() % 4 ? rand() % (1 + 2 * n / (segments + 1)) : rand() % 2 * left / 2;
    places[i + 1] = (int32_t)(places[i] + (length < left ? length : left));
  }
  for (int64_t i = 0; i < n; i++) {
    values[i] = rand() % 3 ? 0 : rand() % 2001 - 1000;
    keys[i] = i && rand() % 20 ? keys[i - 1] : rand() % 1000;
  }
  arrays a = { make_line_of(KJIT_I32, n, values, (size_t)n * 4),
               make_line_of(KJIT_I32, n, keys, (size_t)n * 4),
               make_line_of(KJIT_I32, segments + 1, places, (size_t)(segments + 1) * 4),
               make_line(KJIT_I64, segments),
               make_line(KJIT_I64, n),
               make_line(KJIT_I32, n),
               make_line(KJIT_I64, n),
               make_array(KJIT_I64, NULL, 0) };
  return a;
}

static void release(arrays *a)
{
  kjit_array *all[] = {
    a->x, a->keys, a->offsets, a->sums, a->scan, a->runs, a->run_sums, a->count
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) kjit_release_array(all[i]);
}

/* ---- the expected values, computed by loops ---- */

static void check_sums(const arrays *a)
{
  static int64_t got[SEGMENTS];
  int64_t wrong = 0;
  read_array(a->sums, got, (size_t)segments * 8);
  for (int64_t s = 0; s < segments; s++) {
    int64_t sum = 0;
    for (int64_t i = places[s]; i < places[s + 1]; i++) sum += values[i];
    wrong += sum != got[s];
  }
  REQUIRE(!wrong);
}

static void check_scan(const arrays *a)
{
  static int64_t got[MOST];
  int64_t wrong = 0;
  read_array(a->scan, got, (size_t)n * 8);
  for (int64_t s = 0; s < segments; s++) {
    int64_t sum = 0;
    for (int64_t i = places[s]; i < places[s + 1]; i++) wrong += (sum += values[i]) != got[i];
  }
  REQUIRE(!wrong);
}

static bool starts_run(int64_t i, bool is_near)
{
  return !i || (is_near ? abs(keys[i] - keys[i - 1]) >= 3 : keys[i] != keys[i - 1]);
}

static void check_runs(const arrays *a, bool is_near, bool is_last)
{
  static int64_t got[MOST];
  static int32_t got_keys[MOST];
  int64_t run = -1, value = 0, wrong = 0;
  read_array(a->run_sums, got, (size_t)n * 8);
  read_array(a->runs, got_keys, (size_t)n * 4);
  for (int64_t i = 0; i < n; i++) {
    if (starts_run(i, is_near)) {
      if (run >= 0) wrong += value != got[run];
      wrong += got_keys[++run] != keys[i];
      value = values[i];
    } else {
      value = !is_last ? value + values[i] : values[i] ? values[i] : value;
    }
  }
  if (run >= 0) wrong += value != got[run];
  REQUIRE(!wrong && integer_in(a->count) == run + 1);
}

/* ---- calls ---- */

static void test_calls(kjit_module *module, const arrays *a)
{
  kjit_operand x = kjit_operand_array(a->x), offsets = kjit_operand_array(a->offsets),
               by = kjit_operand_array(a->keys), sums = kjit_operand_array(a->sums),
               scan = kjit_operand_array(a->scan), runs = kjit_operand_array(a->runs),
               run_sums = kjit_operand_array(a->run_sums), count = kjit_operand_array(a->count);
  kjit_operator last = kjit_operator_function(find(module, "last"));
  kjit_function *near = find(module, "near");
  REQUIRE(kjit_reduce_segments(context, &sums, &x, &offsets, &add, NULL) == KJIT_OK);
  check_sums(a);
  REQUIRE(kjit_scan_segments(context, &scan, &x, &offsets, &add, NULL) == KJIT_OK);
  check_scan(a);
  REQUIRE(kjit_reduce_by_key(context, &runs, &run_sums, &count, &by, &x, &add, NULL, NULL) ==
          KJIT_OK);
  check_runs(a, false, false);
  REQUIRE(kjit_reduce_by_key(context, &runs, &run_sums, &count, &by, &x, &last, near, NULL) ==
          KJIT_OK);
  check_runs(a, true, true);
}

/* A plan runs many times, with the application's temporary storage, and in a graph that is launched
 * twice. */
static void test_plans(const arrays *a)
{
  kjit_operand x = kjit_operand_array(a->x), offsets = kjit_operand_array(a->offsets),
               by = kjit_operand_array(a->keys), sums = kjit_operand_array(a->sums),
               scan = kjit_operand_array(a->scan), runs = kjit_operand_array(a->runs),
               run_sums = kjit_operand_array(a->run_sums), count = kjit_operand_array(a->count);
  kjit_plan *plans[3] = { NULL };
  uint64_t bytes = 0;
  kjit_algorithm_options options = all_defaults();
  options.work_bytes = &bytes;
  REQUIRE(kjit_reduce_segments(context, &sums, &x, &offsets, &add, &options) == KJIT_OK);
  REQUIRE(bytes > 0 && bytes < 64 * (uint64_t)MOST);
  kjit_array *work = make_line(KJIT_U8, (int64_t)bytes);
  options = all_defaults();
  options.work = work;
  options.plan = &plans[0];
  REQUIRE(kjit_reduce_segments(context, &sums, &x, &offsets, &add, &options) == KJIT_OK);
  options.work = NULL;
  options.plan = &plans[1];
  REQUIRE(kjit_scan_segments(context, &scan, &x, &offsets, &add, &options) == KJIT_OK);
  options.plan = &plans[2];
  REQUIRE(kjit_reduce_by_key(context, &runs, &run_sums, &count, &by, &x, &add, NULL, &options) ==
          KJIT_OK);
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  for (int i = 0; i < 3; i++) REQUIRE(kjit_run_plan(plans[i], stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
  check_sums(a);
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  for (int i = 0; i < 3; i++) REQUIRE(kjit_run_plan(plans[i], stream) == KJIT_OK);
  REQUIRE(kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  for (int launch = 0; launch < 2; launch++) {
    const kjit_arg zero = kjit_arg_number(0),
                   cleared[] = { kjit_arg_array(a->sums), kjit_arg_array(a->scan),
                                 kjit_arg_array(a->run_sums) };
    for (int i = 0; i < 3; i++) REQUIRE(kjit_fill(context, &cleared[i], &zero, NULL) == KJIT_OK);
    REQUIRE(kjit_synchronize_device(device) == KJIT_OK);
    REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
    REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK);
    check_sums(a);
    check_scan(a);
    check_runs(a, false, false);
  }
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  for (int i = 0; i < 3; i++) kjit_destroy_plan(plans[i]);
  kjit_destroy_stream(stream);
  kjit_release_array(work);
}

/* ---- offsets that are wrong, segments without a value ---- */

/* Returns whether the call has failed with this message. On the CPU the call itself has waited for
 * its kernels. */
static bool fails(kjit_status status, const char *message)
{
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  return status == KJIT_ERROR_KERNEL && says(message);
}

static void test_failing(kjit_module *module, const arrays *a)
{
  static const char descend[] = "an element of `offsets` is less than the preceding one, negative, "
                                "or more than the number of elements";
  const int32_t wrong[] = { -1, INT32_MIN, (int32_t)n + 1, INT32_MAX };
  kjit_operand x = kjit_operand_array(a->x), offsets = kjit_operand_array(a->offsets),
               sums = kjit_operand_array(a->sums), scan = kjit_operand_array(a->scan);
  const size_t size = (size_t)(segments + 1) * sizeof *places;
  kjit_plan *plan = NULL;
  kjit_algorithm_options options = all_defaults();
  options.plan = &plan;
  REQUIRE(kjit_reduce_segments(context, &sums, &x, &offsets, &add, &options) == KJIT_OK);
  for (size_t i = 0; i < 2 * sizeof wrong / sizeof *wrong; i++) {
    int64_t at = rand() % (segments + 1);
    int32_t right = places[at];
    places[at] = wrong[i / 2];
    REQUIRE(kjit_copy_from_host(a->offsets, places, size, NULL) == KJIT_OK);
    if (i % 2) REQUIRE(fails(kjit_run_plan(plan, NULL), descend));
    else REQUIRE(fails(kjit_scan_segments(context, &scan, &x, &offsets, &add, NULL), descend));
    places[at] = right;
  }
  /* the plan runs as before; for an empty segment the last element has no value, and the smallest
   * element has no index */
  REQUIRE(kjit_copy_from_host(a->offsets, places, size, NULL) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && kjit_synchronize_device(device) == KJIT_OK);
  check_sums(a);
  kjit_destroy_plan(plan);
  places[1] = places[0];
  REQUIRE(kjit_copy_from_host(a->offsets, places, size, NULL) == KJIT_OK);
  const kjit_operator lacking[] = { kjit_operator_function(find(module, "last")),
                                    kjit_operator_named("argmin") };
  for (int i = 0; i < 2; i++)
    REQUIRE(fails(kjit_reduce_segments(context, &sums, &x, &offsets, &lacking[i], NULL),
                  "a segment is empty"));
}

/* ---- rejected calls ---- */

static void test_refused(const arrays *a)
{
  int64_t shape[] = { 2, 2 };
  int32_t axis = 0;
  kjit_array *matrix = make_array(KJIT_I32, shape, 2), *few = make_line(KJIT_I32, 3),
             *none = make_line(KJIT_I32, 0), *real = make_line(KJIT_F32, 4);
  kjit_operand x = kjit_operand_array(a->x), offsets = kjit_operand_array(a->offsets),
               by = kjit_operand_array(a->keys), sums = kjit_operand_array(a->sums),
               scan = kjit_operand_array(a->scan), count = kjit_operand_array(a->count),
               grid = kjit_operand_array(matrix), short_ = kjit_operand_array(few),
               empty = kjit_operand_array(none), fraction = kjit_operand_array(real),
               runs = kjit_operand_array(a->runs);
  kjit_algorithm_options options = all_defaults();
  const struct {
    const kjit_operand *result, *x, *offsets;
    const char *message;
  } rows[] = {
    { &sums, &grid, &offsets, "`x` has 2 axes; it must have one" },
    { &sums, &x, &grid, "`offsets` has 2 axes; it must have one" },
    { &sums, &x, &empty,
      "`offsets` has no elements; it needs one more than the number of segments" },
    { &sums, &x, &fraction, "`offsets` has elements of type f32; expected integers" },
    { &short_, &x, &offsets, "`result` needs one element for each segment" },
    { &grid, &x, &offsets, "`result` has 2 axes; it must have one" },
    { &sums, NULL, &offsets, "`x` is NULL" },
    { &sums, &x, NULL, "`offsets` is NULL" },
    { NULL, &x, &offsets, "`result` is NULL" },
    { &offsets, &x, &x, "`result` needs one element for each segment" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_status status =
      kjit_reduce_segments(context, rows[i].result, rows[i].x, rows[i].offsets, &add, NULL);
    REQUIRE(status == KJIT_ERROR_ARGUMENT || status == KJIT_ERROR_TYPE ||
            status == KJIT_ERROR_MISUSE);
    REQUIRE(says(rows[i].message));
  }
  REQUIRE(kjit_scan_segments(context, &short_, &x, &offsets, &add, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` needs one element for each element of `x`"));
  REQUIRE(kjit_scan_segments(context, &scan, &x, &offsets, NULL, NULL) == KJIT_ERROR_MISUSE);
  options.flags = KJIT_ALGORITHM_EXCLUSIVE;
  REQUIRE(kjit_scan_segments(context, &scan, &x, &offsets, &max, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("starts with the operator's identity, and this operator has none"));
  REQUIRE(kjit_scan_by_key(context, &scan, &by, &x, &max, NULL, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("starts with the operator's identity, and this operator has none"));
  REQUIRE(kjit_reduce_segments(context, &sums, &x, &offsets, &add, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.flags: KJIT_ALGORITHM_EXCLUSIVE is not an option"));
  options = all_defaults();
  options.axes = &axis;
  options.axis_count = 1;
  REQUIRE(kjit_reduce_by_key(context, &runs, &scan, &count, &by, &x, &add, NULL, &options) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.axes is not an option of this algorithm"));
  REQUIRE(kjit_reduce_by_key(context, &by, &scan, &count, &by, &x, &add, NULL, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result_keys` overlaps `keys`"));
  REQUIRE(kjit_reduce_by_key(context, &runs, &runs, &count, &by, &x, &add, NULL, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result_keys` overlaps `result`"));
  REQUIRE(kjit_reduce_by_key(context, &runs, &short_, &count, &by, &x, &add, NULL, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` needs "));
  REQUIRE(kjit_scan_by_key(context, &by, &by, &x, &add, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result` overlaps `keys`"));
  REQUIRE(kjit_scan_by_key(context, &scan, &short_, &x, &add, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("both must have the same number of elements"));
  kjit_array *made[] = { matrix, few, none, real };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) kjit_release_array(made[i]);
}

/* Elements are structs that are too large for a shuffle. */
static void test_wide_values(kjit_module *module)
{
  int64_t four = 4;
  kjit_type type = KJIT_ANY;
  kjit_operand wide = kjit_operand_function(find(module, "wide"), NULL, 0, &four, 1);
  kjit_operator first = kjit_operator_function(find(module, "first"));
  REQUIRE(kjit_get_result_type(find(module, "wide"), "i64", &type) == KJIT_OK);
  kjit_array *structs = make_line(type, 4), *few = make_line(KJIT_I32, 3),
             *enough = make_line(KJIT_F32, 4);
  kjit_operand all = kjit_operand_array(structs), short_ = kjit_operand_array(few),
               keys = kjit_operand_array(enough);
  kjit_status status = kjit_scan_by_key(context, &all, &short_, &wide, &first, NULL, NULL);
  REQUIRE(status == KJIT_ERROR_ARGUMENT);
  status = kjit_scan_by_key(context, &all, &keys, &wide, &first, NULL, NULL);
  REQUIRE(status == (chosen_kind == KJIT_DEVICE_CPU ? KJIT_OK : KJIT_ERROR_UNSUPPORTED));
  kjit_array *made[] = { structs, few, enough };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) kjit_release_array(made[i]);
}

/* Asks for the descriptions of the results (options.results). */
static void test_described(const arrays *a)
{
  kjit_operand x = kjit_operand_array(a->x), offsets = kjit_operand_array(a->offsets),
               by = kjit_operand_array(a->keys);
  kjit_result_info info[3];
  const kjit_operator mean = kjit_operator_named("mean"), place = kjit_operator_named("argmax");
  kjit_algorithm_options options = all_defaults();
  options.results = info;
  options.result_count = 3;
  REQUIRE(kjit_reduce_segments(context, NULL, &x, &offsets, &add, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_I64 && info[0].rank == 1 && info[0].shape[0] == segments);
  REQUIRE(kjit_reduce_segments(context, NULL, &x, &offsets, &mean, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_F64);
  REQUIRE(kjit_reduce_segments(context, NULL, &x, &offsets, &place, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_I64);
  REQUIRE(kjit_scan_segments(context, NULL, &x, &offsets, &max, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_I32 && info[0].rank == 1 && info[0].shape[0] == n);
  REQUIRE(kjit_scan_by_key(context, NULL, &by, &x, &add, NULL, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_I64 && info[0].shape[0] == n);
  REQUIRE(kjit_reduce_by_key(context, NULL, NULL, NULL, &by, &x, &add, NULL, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_I32 && info[0].shape[0] == n && info[1].element == KJIT_I64 &&
          info[1].shape[0] == n && info[2].element == KJIT_I64 && info[2].rank == 0);
}

static void test_all(void)
{
  kjit_module *module = parse(funcs);
  arrays a = draw(MOST - rand() % 1000, rand() % SEGMENTS + 1);
  test_calls(module, &a);
  test_plans(&a);
  test_described(&a);
  test_refused(&a);
  test_wide_values(module);
  test_failing(module, &a);
  release(&a);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
