/* Searches and histograms called by an application, and calls that kjit rejects.
 * RUN: %programs/search
 * RUN: %if cuda %{ %programs/search cuda %}
 */
#include "algorithm_host.h"

enum { COUNT = 50021, BINS = 300, SORTED = 1000 };
static int32_t data[COUNT], weights[COUNT];
static float reals[COUNT];

static void test_bincount(void)
{
  int64_t got[BINS], sums[BINS] = { 0 }, counts[BINS] = { 0 };
  kjit_array *x = make_line_of(KJIT_I32, COUNT, data, sizeof data),
             *w = make_line_of(KJIT_I32, COUNT, weights, sizeof weights),
             *r = make_line(KJIT_I64, BINS);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x),
               weight = kjit_operand_array(w);
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  for (int i = 0; i < COUNT; i++) {
    counts[data[i]]++;
    sums[data[i]] += weights[i];
  }
  options = (kjit_algorithm_options){ .size_bytes = sizeof options };
  options.plan = &plan;
  REQUIRE(kjit_bincount(context, &result, &all, BINS, NULL, &options) == KJIT_OK);
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
    REQUIRE(kjit_copy_to_host(r, got, sizeof got, NULL) == KJIT_OK);
    REQUIRE(!memcmp(got, counts, sizeof got));
  }
  kjit_destroy_plan(plan);
  REQUIRE(kjit_bincount(context, &result, &all, BINS, &weight, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(r, got, sizeof got, NULL) == KJIT_OK);
  REQUIRE(!memcmp(got, sums, sizeof got));
  /* an element without a bin */
  kjit_array *fewer = make_line(KJIT_I64, BINS - 1);
  kjit_operand shorter = kjit_operand_array(fewer);
  kjit_status status = kjit_bincount(context, &shorter, &all, BINS - 1, NULL, NULL);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  REQUIRE(status == KJIT_ERROR_KERNEL && says("has no bin"));
  kjit_release_array(x);
  kjit_release_array(w);
  kjit_release_array(r);
  kjit_release_array(fewer);
}

static void test_histogram(void)
{
  enum { FEW = 4 };
  static const float of_edges[FEW + 1] = { -2, -0.5f, 0, 3, 8 };
  int32_t got[FEW], even[FEW] = { 0 }, between[FEW] = { 0 };
  kjit_array *x = make_line_of(KJIT_F32, COUNT, reals, sizeof reals),
             *e = make_line_of(KJIT_F32, FEW + 1, of_edges, sizeof of_edges),
             *r = make_line(KJIT_I32, FEW);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x),
               edges = kjit_operand_array(e);
  for (int i = 0; i < COUNT; i++)
    for (int b = 0; b < FEW; b++) {
      float low = -2 + 2.5f * (float)b, high = low + 2.5f, v = reals[i];
      even[b] += v >= low && (v < high || (b == FEW - 1 && v == high));
      between[b] +=
        v >= of_edges[b] && (v < of_edges[b + 1] || (b == FEW - 1 && v == of_edges[b + 1]));
    }
  REQUIRE(kjit_histogram(context, &result, &all, FEW, -2, 8, NULL, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(r, got, sizeof got, NULL) == KJIT_OK);
  REQUIRE(!memcmp(got, even, sizeof got));
  REQUIRE(kjit_histogram_edges(context, &result, &all, &edges, NULL, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(r, got, sizeof got, NULL) == KJIT_OK);
  REQUIRE(!memcmp(got, between, sizeof got));
  kjit_release_array(x);
  kjit_release_array(e);
  kjit_release_array(r);
}

static void test_search(kjit_module *module)
{
  static int32_t sorted[SORTED], backwards[SORTED], got[COUNT];
  kjit_algorithm_options right = { .size_bytes = sizeof right };
  right.flags = KJIT_ALGORITHM_RIGHT;
  for (int i = 0; i < SORTED; i++) sorted[i] = i / 4;
  for (int i = 0; i < SORTED; i++) backwards[i] = sorted[SORTED - 1 - i];
  kjit_array *s = make_line_of(KJIT_I32, SORTED, sorted, sizeof sorted),
             *b = make_line_of(KJIT_I32, SORTED, backwards, sizeof backwards),
             *x = make_line_of(KJIT_I32, COUNT, data, sizeof data), *r = make_line(KJIT_I32, COUNT);
  kjit_operand result = kjit_operand_array(r), values = kjit_operand_array(x),
               up = kjit_operand_array(s), down = kjit_operand_array(b);
  for (int way = 0; way < 3; way++) {
    REQUIRE(kjit_search_sorted(context, &result, way < 2 ? &up : &down, &values,
                               way < 2 ? NULL : find(module, "greater"),
                               way == 1 ? &right : NULL) == KJIT_OK);
    REQUIRE(kjit_copy_to_host(r, got, sizeof got, NULL) == KJIT_OK);
    for (int i = 0; i < COUNT; i++) {
      int v = data[i] < 250 ? data[i] : 250, above = v == 250 ? 0 : 4;
      REQUIRE(got[i] == (way == 0 ? 4 * v : way == 1 ? 4 * v + above : SORTED - 4 * v - above));
    }
  }
  kjit_release_array(s);
  kjit_release_array(b);
  kjit_release_array(x);
  kjit_release_array(r);
}

static void test_refused(void)
{
  kjit_array *x = make_line_of(KJIT_I32, COUNT, data, sizeof data), *r = make_line(KJIT_I32, BINS),
             *f = make_line_of(KJIT_F32, COUNT, reals, sizeof reals), *z = make_line(KJIT_C64, 8);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x),
               real = kjit_operand_array(f), complex_ = kjit_operand_array(z);
  REQUIRE(kjit_bincount(context, &result, &real, BINS, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`x` has elements of type f32; expected integers"));
  REQUIRE(kjit_bincount(context, &result, &all, 7, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("an element for each of the 7 bins"));
  REQUIRE(kjit_bincount(context, &result, &all, 0, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("0 bins"));
  REQUIRE(kjit_bincount(context, &result, &all, BINS, &real, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says(
    "`result` has elements of type i32, but the new values have the type a sum of weights, f64"));
  REQUIRE(kjit_bincount(context, &result, &all, BINS, &result, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`weights` must have the shape of `x`"));
  REQUIRE(kjit_histogram(context, &result, &real, BINS, 2, 1, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the range of the bins, 2 to 1"));
  REQUIRE(kjit_search_sorted(context, &result, &complex_, &result, NULL, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("`sorted` has elements of type c64, which have no order; pass `less`"));
  REQUIRE(kjit_search_sorted(context, &result, &all, &all, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` must have the shape of `values`"));
  kjit_release_array(x);
  kjit_release_array(r);
  kjit_release_array(f);
  kjit_release_array(z);
}

static void test_all(void)
{
  for (int i = 0; i < COUNT; i++) {
    data[i] = rand() % BINS;
    weights[i] = rand() % 2001 - 1000;
    reals[i] = (float)(rand() % 101 - 20) / 8;
  }
  data[7] = BINS - 1;
  kjit_module *module = parse("func greater(a, b) { return a > b }\n");
  test_bincount();
  test_histogram();
  test_search(module);
  test_refused();
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
