/* Sorts of segments called by an application: by plans, with wrong offsets, without segments, and
 * calls that kjit rejects. test/algorithm/segment_sorts.py compares values with NumPy.
 * RUN: %programs/segment_sorts
 * RUN: %if cuda %{ %programs/segment_sorts cuda %}
 */
#include "algorithm_host.h"

enum { N = 20000 };

static kjit_array *x, *r;

static kjit_array *make_offsets(const int64_t *offsets, int64_t count)
{
  return make_line_of(KJIT_I64, count, offsets, (size_t)count * sizeof *offsets);
}

/* Checks the result of a sort of x, whose elements fall from N to 1. */
static void check(const int64_t *offsets, int64_t count)
{
  static int32_t found[N];
  bool is_right = true;
  read_array(r, found, sizeof found);
  for (int32_t i = 0; i < N; i++) {
    int32_t want = N - i;
    for (int64_t s = 0; s + 1 < count; s++)
      if (i >= offsets[s] && i < offsets[s + 1])
        want = N - (int32_t)(offsets[s] + offsets[s + 1] - 1 - i);
    is_right &= found[i] == want;
  }
  REQUIRE(is_right);
}

/* ---- plans, offsets that are wrong ---- */

static void test_plan(void)
{
  const int64_t right[] = { 3, 10, 10, 15000, N }, falling[] = { 0, 500, 400, 800, N },
                outside[] = { -5, 10, 20, 30, N }, behind[] = { 0, 10, 20, 30, N + 1 };
  const struct {
    const int64_t *offsets;
    const char *message;
  } wrong[] = { { falling, "less than the preceding one" },
                { outside, "is negative or more than the number of elements" },
                { behind, "is negative or more than the number of elements" } };
  kjit_array *o = make_offsets(right, 5);
  kjit_operand from = kjit_operand_array(x), to = kjit_operand_array(r),
               offsets = kjit_operand_array(o);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  options.plan = &plan;
  REQUIRE(kjit_sort_segments(context, &to, NULL, &from, NULL, &offsets, NULL, &options) == KJIT_OK);
  for (size_t i = 0; i < 2 * (sizeof wrong / sizeof *wrong); i++) {
    bool is_right = i % 2 == 0;
    REQUIRE(kjit_copy_from_host(o, is_right ? right : wrong[i / 2].offsets, sizeof right, NULL) ==
            KJIT_OK);
    /* The failure may be reported by the run itself or by the next wait. */
    kjit_status status = kjit_run_plan(plan, NULL);
    if (status == KJIT_OK) status = kjit_synchronize_device(device);
    REQUIRE(status == (is_right ? KJIT_OK : KJIT_ERROR_KERNEL));
    if (is_right) check(right, 5);
    else REQUIRE(says(wrong[i / 2].message));
  }
  kjit_destroy_plan(plan);
  kjit_release_array(o);
}

/* With temporary storage of the application. */
static void test_shapes(void)
{
  static const int64_t all[] = { 0, N }, one[] = { 7 }, empty[] = { 5, 5, 5, 5 };
  const struct {
    const int64_t *offsets;
    int64_t count;
  } cases[] = { { all, 2 }, { one, 1 }, { empty, 4 } };
  kjit_operand from = kjit_operand_array(x), to = kjit_operand_array(r);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kjit_array *o = make_offsets(cases[i].offsets, cases[i].count), *work;
    kjit_operand offsets = kjit_operand_array(o);
    kjit_algorithm_options options = { .size_bytes = sizeof options };
    uint64_t bytes = 0;
    options.work_bytes = &bytes;
    REQUIRE(kjit_sort_segments(context, &to, NULL, &from, NULL, &offsets, NULL, &options) ==
            KJIT_OK);
    work = make_line(KJIT_U8, (int64_t)bytes);
    options.work_bytes = NULL;
    options.work = work;
    REQUIRE(kjit_sort_segments(context, &to, NULL, &from, NULL, &offsets, NULL, &options) ==
            KJIT_OK);
    check(cases[i].offsets, cases[i].count);
    kjit_release_array(o);
    kjit_release_array(work);
  }
}

/* Sorts by the order that x has already. */
static void test_less(void)
{
  static const int64_t two[] = { 10, N - 10 }, none[] = { 0, 0 };
  kjit_module *module = parse("func greater(a, b) { return a > b }\n");
  kjit_array *o = make_offsets(two, 2);
  kjit_operand from = kjit_operand_array(x), to = kjit_operand_array(r),
               offsets = kjit_operand_array(o);
  REQUIRE(kjit_sort_segments(context, &to, NULL, &from, NULL, &offsets, find(module, "greater"),
                             NULL) == KJIT_OK);
  check(none, 2);
  kjit_release_array(o);
  kjit_release_module(module);
}

/* ---- rejected calls ---- */

static void test_refused(void)
{
  static const int64_t two[] = { 0, N }, shape[] = { 2, 5 };
  kjit_array *o = make_offsets(two, 2), *none = make_line(KJIT_I32, 0),
             *floats = make_line(KJIT_F32, 2), *square = make_array(KJIT_I32, shape, 2),
             *part = NULL;
  kjit_array_slice head = { 0, 2, 1 };
  REQUIRE(kjit_slice_array(r, &head, 1, &part) == KJIT_OK);
  kjit_operand from = kjit_operand_array(x), to = kjit_operand_array(r),
               right = kjit_operand_array(o), empty = kjit_operand_array(none),
               real = kjit_operand_array(floats), axes = kjit_operand_array(square),
               inside = kjit_operand_array(part);
  const struct {
    const kjit_operand *result, *result_values, *x, *values, *offsets;
    kjit_status status;
    const char *message;
  } cases[] = {
    { &to, NULL, &from, NULL, &empty, KJIT_ERROR_ARGUMENT, "`offsets` has no elements" },
    { &to, NULL, &from, NULL, &real, KJIT_ERROR_TYPE, "`offsets` has elements of type f32" },
    { &to, NULL, &from, NULL, &axes, KJIT_ERROR_ARGUMENT, "`offsets` has 2 axes" },
    { &to, NULL, &from, NULL, &inside, KJIT_ERROR_ARGUMENT,
      "the output `result` overlaps `offsets`" },
    { &axes, NULL, &axes, NULL, &right, KJIT_ERROR_ARGUMENT, "`x` has 2 axes; segments need one" },
    { &real, NULL, &from, NULL, &right, KJIT_ERROR_ARGUMENT,
      "`result` must have the shape of `x`" },
    { &to, &to, &from, NULL, &right, KJIT_ERROR_MISUSE, "`values` is NULL" },
    { &to, &to, &from, &from, &right, KJIT_ERROR_ARGUMENT, "overlaps `result`" },
    { &to, &from, &from, &axes, &right, KJIT_ERROR_ARGUMENT, "`values` must have the shape" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    REQUIRE(kjit_sort_segments(context, cases[i].result, cases[i].result_values, cases[i].x,
                               cases[i].values, cases[i].offsets, NULL, NULL) == cases[i].status);
    REQUIRE(says(cases[i].message));
  }
  kjit_array *arrays[] = { o, none, floats, square, part };
  for (int i = 0; i < 5; i++) kjit_release_array(arrays[i]);
}

static void test_all(void)
{
  static int32_t falling[N];
  for (int32_t i = 0; i < N; i++) falling[i] = N - i;
  x = make_line_of(KJIT_I32, N, falling, sizeof falling);
  r = make_line(KJIT_I32, N);
  test_refused();
  test_shapes();
  test_less();
  test_plan();
  kjit_release_array(x);
  kjit_release_array(r);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
