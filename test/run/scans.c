/* Tests scans that an application calls, along each axis of arrays with random shapes. The scanned
 * elements are adjacent in memory or not. Scans are in place, exclusive, or have initial values.
 * Also tests scans of funcs, plans, and calls that kjit rejects.
 * RUN: %programs/scans
 * RUN: %if cuda %{ %programs/scans cuda %}
 */
#include "algorithm_host.h"

static const char funcs[] = "struct Affine { a: i64; b: i64 }\n"
                            "func then(f, g) { return Affine(f.a * g.a, g.a * f.b + g.b) }\n"
                            "func affine(i, x) { return Affine(i64(x[i]) % 5, i) }\n"
                            "func keep_b(i, v, r) { r[i] = v.b }\n"
                            "func last(x, y) { return y != 0 ? y : x }\n";

/* ---- along the axes of arrays ---- */

typedef struct drawn {
  int64_t shape[3], count;
  int32_t *values;
  kjit_array *array;
} drawn;

static drawn draw(int64_t a, int64_t b, int64_t c)
{
  drawn d = { { a, b, c }, a * b * c, NULL, NULL };
  d.values = malloc((size_t)d.count * sizeof *d.values + 1);
  for (int64_t i = 0; i < d.count; i++) d.values[i] = rand() % 3 ? 0 : rand() % 2001 - 1000;
  d.array = make_array(KJIT_I32, d.shape, 3);
  REQUIRE(kjit_copy_from_host(d.array, d.values, (size_t)d.count * sizeof *d.values, NULL) ==
          KJIT_OK);
  return d;
}

/* Way 0 is the sum. Way 1 is the last value that is not 0. */
static int64_t combine(int way, int64_t x, int64_t y) { return way ? (y ? y : x) : x + y; }

static void expect(const drawn *d, int axis, int way, bool is_exclusive, const int64_t *start,
                   int64_t *want)
{
  int64_t step = axis == 2 ? 1 : axis == 1 ? d->shape[2] : d->shape[1] * d->shape[2];
  for (int64_t i = 0; i < d->count; i++) {
    int64_t place = i / step % d->shape[axis], before = start ? *start : 0;
    if (is_exclusive) {
      want[i] = place ? combine(way, want[i - step], d->values[i - step]) : before;
      continue;
    }
    want[i] = place   ? combine(way, want[i - step], d->values[i])
              : start ? combine(way, before, d->values[i])
                      : d->values[i];
  }
}

static void test_axis(kjit_module *module, const drawn *d, int axis)
{
  int64_t *want = malloc((size_t)d->count * 8 + 1), *got = malloc((size_t)d->count * 8 + 1);
  int64_t start = rand() % 1000 + 1;
  kjit_array *r = make_array(KJIT_I64, d->shape, 3);
  kjit_operand result = kjit_operand_array(r), x = kjit_operand_array(d->array);
  kjit_operator operators[] = { kjit_operator_named("add"),
                                kjit_operator_function(find(module, "last")) };
  kjit_arg initial = kjit_arg_i64(start);
  int32_t axes[] = { rand() % 2 ? axis : axis - 3 };
  for (int k = 0; k < 8; k++) {
    int way = k & 1;
    bool is_exclusive = k & 2, starts = (k & 4) || (way && is_exclusive);
    kjit_algorithm_options options = { .size_bytes = sizeof options };
    options.axes = axes;
    options.axis_count = 1;
    options.initial = starts ? &initial : NULL;
    options.flags = is_exclusive ? KJIT_ALGORITHM_EXCLUSIVE : 0;
    REQUIRE(kjit_scan(context, &result, &x, &operators[way], &options) == KJIT_OK);
    REQUIRE(kjit_copy_to_host(r, got, (size_t)d->count * 8, NULL) == KJIT_OK);
    expect(d, axis, way, is_exclusive, starts ? &start : NULL, want);
    REQUIRE(!memcmp(got, want, (size_t)d->count * 8));
  }
  kjit_release_array(r);
  free(want);
  free(got);
}

static void test_arrays(kjit_module *module)
{
  const int64_t shapes[][3] = {
    { 1, 1, 1 + rand() % 200000 },
    { 1, 1 + rand() % 90, 1 + rand() % 70 },
    { 3, 1 + rand() % 3000, 1 + rand() % 40 },
    { 40 + rand() % 9, 31, 1 },
    { 2, 1, 66000 + rand() % 10000 },
    { 1, 1, 1 },
    { 0, 4, 5 },
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    drawn d = draw(shapes[i][0], shapes[i][1], shapes[i][2]);
    for (int axis = 0; axis < 3; axis++) test_axis(module, &d, axis);
    kjit_release_array(d.array);
    free(d.values);
  }
}

/* Scans every second element, backwards; then in place. */
static void test_strides(void)
{
  drawn d = draw(1, 1, 50001);
  int32_t got[50001];
  int64_t sum = 0;
  kjit_array *part = NULL;
  kjit_array_slice slices[] = { { 0, 1, 1 }, { 0, 1, 1 }, { 50000, 0, -2 } };
  REQUIRE(kjit_slice_array(d.array, slices, 3, &part) == KJIT_OK);
  kjit_operand x = kjit_operand_array(part);
  kjit_operator add = kjit_operator_named("add");
  REQUIRE(kjit_scan(context, &x, &x, &add, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(d.array, got, sizeof got, NULL) == KJIT_OK);
  for (int i = 50000, wrong = 0; i > 0 && !wrong; i -= 2) {
    sum += d.values[i];
    wrong = got[i] != (int32_t)sum || got[i - 1] != d.values[i - 1];
    REQUIRE(!wrong);
  }
  kjit_release_array(part);
  kjit_release_array(d.array);
  free(d.values);
}

/* ---- funcs, plans ---- */

static void test_funcs(kjit_module *module)
{
  drawn d = draw(1, 1, 30007);
  int64_t n = d.count, got[30007];
  kjit_array *line = NULL, *r = make_array(KJIT_I64, &n, 1);
  kjit_operator then = kjit_operator_function(find(module, "then"));
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  REQUIRE(kjit_reshape_array(d.array, &n, 1, &line) == KJIT_OK);
  kjit_arg of_x = kjit_arg_array(line), of_r = kjit_arg_array(r);
  kjit_operand x = kjit_operand_function(find(module, "affine"), &of_x, 1, &n, 1),
               result = kjit_operand_function(find(module, "keep_b"), &of_r, 1, &n, 1);
  options = (kjit_algorithm_options){ .size_bytes = sizeof options };
  options.plan = &plan;
  REQUIRE(kjit_scan(context, &result, &x, &then, &options) == KJIT_OK);
  for (int i = 0; i < 3; i++) REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(r, got, sizeof got, NULL) == KJIT_OK);
  uint64_t b = 0;
  for (int64_t i = 0, wrong = 0; i < n && !wrong; i++) {
    uint64_t a = (uint64_t)((d.values[i] % 5 + 5) % 5);
    b = i ? a * b + (uint64_t)i : 0;
    wrong = (uint64_t)got[i] != b;
    REQUIRE(!wrong);
  }
  kjit_destroy_plan(plan);
  kjit_release_array(line);
  kjit_release_array(r);
  kjit_release_array(d.array);
  free(d.values);
}

static void test_described(const kjit_operand *x)
{
  kjit_result_info info;
  kjit_operator add = kjit_operator_named("add"), max = kjit_operator_named("max");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.results = &info;
  options.result_count = 1;
  REQUIRE(kjit_scan(context, NULL, x, &add, &options) == KJIT_OK);
  REQUIRE(info.element == KJIT_I64 && info.rank == 2 && info.shape[0] == 6 && info.shape[1] == 7);
  REQUIRE(kjit_scan(context, NULL, x, &max, &options) == KJIT_OK && info.element == KJIT_I32);
}

static void test_refused(kjit_module *module)
{
  int64_t shape[] = { 6, 7 }, other[] = { 7, 6 };
  int32_t axes[] = { 0, 1 };
  kjit_array *array = make_array(KJIT_I32, shape, 2), *turned = make_array(KJIT_I32, other, 2),
             *part = NULL, *one = make_array(KJIT_I32, NULL, 0), *rest = NULL;
  kjit_array_slice first = { 0, 5, 1 }, second = { 1, 6, 1 };
  REQUIRE(kjit_slice_array(array, &first, 1, &part) == KJIT_OK);
  REQUIRE(kjit_slice_array(array, &second, 1, &rest) == KJIT_OK);
  kjit_operand x = kjit_operand_array(array), wrong = kjit_operand_array(turned),
               before = kjit_operand_array(part), after = kjit_operand_array(rest),
               none = kjit_operand_array(one);
  kjit_operator add = kjit_operator_named("add"),
                last = kjit_operator_function(find(module, "last"));
  kjit_algorithm_options both = { .size_bytes = sizeof both },
                         exclusive = { .size_bytes = sizeof exclusive };
  both = (kjit_algorithm_options){ .size_bytes = sizeof both };
  exclusive = (kjit_algorithm_options){ .size_bytes = sizeof exclusive };
  both.axes = axes;
  both.axis_count = 2;
  exclusive.flags = KJIT_ALGORITHM_EXCLUSIVE;
  test_described(&x);
  REQUIRE(kjit_scan(context, &x, &x, &add, &both) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("axes; a scan takes one"));
  REQUIRE(kjit_scan(context, &wrong, &x, &add, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` must have the shape of `x`"));
  REQUIRE(kjit_scan(context, &before, &after, &add, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result` overlaps `x`"));
  REQUIRE(kjit_scan(context, &none, &none, &add, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` has no axis"));
  REQUIRE(kjit_scan(context, &x, &x, &last, &exclusive) == KJIT_ERROR_ARGUMENT);
  REQUIRE(
    says("an exclusive scan starts with the operator's identity, and this operator has none"));
  kjit_array *arrays[] = { array, turned, part, rest, one };
  for (int i = 0; i < 5; i++) kjit_release_array(arrays[i]);
}

static void test_index_refused(kjit_module *module)
{
  int64_t shape[] = { 300 };
  kjit_array *array = make_array(KJIT_I32, shape, 1), *reals = make_array(KJIT_F32, shape, 1),
             *bytes = make_array(KJIT_I8, shape, 1), *complex = make_array(KJIT_C64, shape, 1);
  kjit_operand x = kjit_operand_array(array), r = kjit_operand_array(reals),
               b = kjit_operand_array(bytes), c = kjit_operand_array(complex);
  kjit_operator add = kjit_operator_named("add"), max = kjit_operator_named("max"),
                last = kjit_operator_function(find(module, "last"));
  kjit_result_info infos[2];
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.results = infos;
  options.result_count = 2;
  REQUIRE(kjit_scan_with_index(context, NULL, NULL, &r, &max, &options) == KJIT_OK);
  REQUIRE(infos[0].element == KJIT_F32 && infos[1].element == KJIT_I64 && infos[1].shape[0] == 300);
  REQUIRE(kjit_scan_with_index(context, NULL, NULL, &x, &max, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("`result` and `result_places` are both NULL"));
  REQUIRE(kjit_scan_with_index(context, &x, NULL, &x, &add, NULL) == KJIT_ERROR_UNSUPPORTED);
  REQUIRE(
    says("the operator `add` is not supported here, because it has no index; use max or min"));
  REQUIRE(kjit_scan_with_index(context, &x, NULL, &x, &last, NULL) == KJIT_ERROR_UNSUPPORTED);
  REQUIRE(says("the operator that is a function is not supported here, because it has no index; "
               "use max or min"));
  REQUIRE(kjit_scan_with_index(context, NULL, &x, &c, &max, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`x` has elements of type c64, which have no order"));
  REQUIRE(kjit_scan_with_index(context, NULL, &r, &x, &max, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`result_places` has elements of type f32, but positions are integers"));
  REQUIRE(kjit_scan_with_index(context, NULL, &b, &x, &max, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(
    says("`result_places` has elements of type i8, which cannot represent positions up to 299"));
  REQUIRE(kjit_scan_with_index(context, &x, &x, &x, &max, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("overlaps"));
  kjit_array *arrays[] = { array, reals, bytes, complex };
  for (int i = 0; i < 4; i++) kjit_release_array(arrays[i]);
}

static void test_all(void)
{
  kjit_module *module = parse(funcs);
  test_index_refused(module);
  test_arrays(module);
  test_strides();
  test_funcs(module);
  test_refused(module);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
