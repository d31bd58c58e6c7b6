/* kjit_top_k called by an application: by plans, with operands that are funcs, with many elements,
 * and calls that kjit rejects. test/algorithm/tops.py compares values with NumPy.
 * RUN: %programs/tops
 * RUN: %if cuda %{ %programs/tops cuda %}
 */
#include "functions.h"

static kjit_device_kind kind = KJIT_DEVICE_CPU;
static kjit_device *device;
static kjit_module *module;

static const char funcs[] = "struct Wide { a: u64; b: u32; c: u64[2] }\n"
                            "func by_b(x, y) { return x.b < y.b }\n"
                            "func at(i, shift) {\n"
                            "  let z = (u64(i) + 1) * 0x9e3779b97f4a7c15u64\n"
                            "  return u32((z ^ z >> 30) * 0xbf58476d1ce4e5b9u64 >> 32) >> shift\n"
                            "}\n"
                            "func keep(i, v, r) { r[i] = v }\n";

/* What `at` gives. */
static uint32_t element(int64_t i, uint32_t shift)
{
  uint64_t z = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15u;
  return (uint32_t)((z ^ z >> 30) * 0xbf58476d1ce4e5b9u >> 32) >> shift;
}

static kjit_array *make(kjit_type type, int64_t count)
{
  kjit_array *array = NULL;
  REQUIRE(kjit_create_array(device, type, &count, 1, &array) == KJIT_OK);
  return array;
}

/* ---- many elements ---- */

static bool is_before(uint32_t x, int64_t i, uint32_t y, int64_t j)
{
  return x < y || (x == y && i < j);
}

/* Checks that each element comes before the next one, and that at most k elements come before the
 * element after the last one. */
static void check(const uint32_t *r, const int64_t *places, int64_t k, int64_t n, uint32_t shift)
{
  int64_t before = 0;
  bool is_right = true;
  for (int64_t i = 0; i < k && is_right; i++) {
    is_right = places[i] >= 0 && places[i] < n && r[i] == element(places[i], shift);
    if (i && is_right) is_right = is_before(r[i - 1], places[i - 1], r[i], places[i]);
  }
  REQUIRE(is_right);
  if (!is_right) return;
  for (int64_t i = 0; i < n; i++)
    before += is_before(element(i, shift), i, r[k - 1], places[k - 1]);
  REQUIRE(before == k - 1);
}

/* Reads from a func and writes to a func, twice by a plan. */
static void test_many(int64_t n, int64_t k, uint32_t shift)
{
  kjit_array *r = make(KJIT_U32, k), *p = make(KJIT_I64, k);
  kjit_arg right = kjit_arg_u32(shift), places = kjit_arg_array(p);
  kjit_operand x = kjit_operand_function(find(module, "at"), &right, 1, &n, 1),
               result = kjit_operand_array(r),
               result_places = kjit_operand_function(find(module, "keep"), &places, 1, &k, 1);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  options.device = device;
  options.plan = &plan;
  REQUIRE(kjit_top_k(context, &result, &result_places, &x, k, NULL, &options) == KJIT_OK);
  uint32_t *found = malloc((size_t)k * sizeof *found);
  int64_t *found_places = malloc((size_t)k * sizeof *found_places);
  for (int run = 0; run < 2; run++) {
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
    REQUIRE(kjit_copy_to_host(r, found, (size_t)k * sizeof *found, NULL) == KJIT_OK);
    REQUIRE(kjit_copy_to_host(p, found_places, (size_t)k * sizeof *found_places, NULL) == KJIT_OK);
    check(found, found_places, k, n, shift);
  }
  free(found);
  free(found_places);
  kjit_destroy_plan(plan);
  kjit_release_array(r);
  kjit_release_array(p);
}

/* ---- rejected calls ---- */

static void test_refused(void)
{
  kjit_type wide;
  REQUIRE(kjit_parse_type(context, "Wide", &wide) == KJIT_OK);
  kjit_array *x = make(KJIT_I32, 10), *three = make(KJIT_I32, 3), *floats = make(KJIT_F32, 3),
             *structs = make(wide, 10), *part = NULL, *one = NULL;
  kjit_array_slice head = { 0, 3, 1 };
  REQUIRE(kjit_slice_array(x, &head, 1, &part) == KJIT_OK);
  REQUIRE(kjit_create_array(device, KJIT_I32, NULL, 0, &one) == KJIT_OK);
  kjit_operand ox = kjit_operand_array(x), othree = kjit_operand_array(three),
               ofloats = kjit_operand_array(floats), ostructs = kjit_operand_array(structs),
               opart = kjit_operand_array(part), oone = kjit_operand_array(one);
  kjit_algorithm_options exclusive = { .size_bytes = sizeof exclusive };
  exclusive.flags = KJIT_ALGORITHM_EXCLUSIVE;
  REQUIRE(kjit_top_k(context, &othree, NULL, &ox, 11, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("k is 11, but `x` has 10 elements along axis 0"));
  REQUIRE(kjit_top_k(context, &othree, NULL, &ox, -1, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("k is -1"));
  REQUIRE(kjit_top_k(context, &othree, NULL, &oone, 1, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` has no axes"));
  REQUIRE(kjit_top_k(context, &othree, NULL, &ox, 4, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` must have the shape of `x`, with k elements along the axis"));
  REQUIRE(kjit_top_k(context, NULL, &othree, &ox, 4, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result_places` must have the shape"));
  REQUIRE(kjit_top_k(context, &ofloats, NULL, &ox, 3, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`result` has elements of type f32: expected i32"));
  REQUIRE(kjit_top_k(context, NULL, &ofloats, &ox, 3, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`result_places` has elements of type f32, but positions are integers"));
  REQUIRE(kjit_top_k(context, &opart, NULL, &ox, 3, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result` overlaps `x`"));
  REQUIRE(kjit_top_k(context, &othree, &othree, &ox, 3, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the output `result_places` overlaps `result`"));
  REQUIRE(kjit_top_k(context, NULL, NULL, &ox, 3, NULL, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(says("`result` and `result_places` are both NULL; pass at least one"));
  REQUIRE(kjit_top_k(context, NULL, &othree, &ostructs, 3, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("elements of type Wide have no order; pass `less`"));
  REQUIRE(kjit_top_k(context, &othree, NULL, &ox, 3, NULL, &exclusive) == KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_top_k(context, NULL, &othree, &ostructs, 3, find(module, "by_b"), NULL) == KJIT_OK);
  kjit_array *arrays[] = { x, three, floats, structs, part, one };
  for (int i = 0; i < 6; i++) kjit_release_array(arrays[i]);
}

static void test_described(void)
{
  int64_t shape[] = { 2, 5 };
  int32_t axis = -2;
  kjit_array *x;
  kjit_result_info info[2];
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.results = info;
  options.result_count = 2;
  options.axes = &axis;
  options.axis_count = 1;
  REQUIRE(kjit_create_array(device, KJIT_U16, shape, 2, &x) == KJIT_OK);
  kjit_operand ox = kjit_operand_array(x);
  REQUIRE(kjit_top_k(context, NULL, NULL, &ox, 1, NULL, &options) == KJIT_OK);
  REQUIRE(info[0].element == KJIT_U16 && info[0].shape[0] == 1 && info[0].shape[1] == 5);
  REQUIRE(info[1].element == KJIT_I64 && info[1].rank == 2 && info[1].shape[0] == 1);
  kjit_release_array(x);
}

static void test_all(void)
{
  REQUIRE(kjit_get_device(context, kind, 0, &device) == KJIT_OK);
  module = parse(funcs);
  test_refused();
  test_described();
  test_many(300000, 1, 0);
  test_many(kind == KJIT_DEVICE_CPU ? 700001 : 1 << 24, 1000, 0);
  test_many(600001, 250, 20); /* many are equal */
  kjit_release_module(module);
}

int main(int argc, char **argv)
{
  (void)argv;
  if (argc > 1) kind = KJIT_DEVICE_CUDA;
  return run_tests(test_all);
}
