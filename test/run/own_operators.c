/* Reductions with operators of the application: of arrays and funcs, with several types of elements
 * and results, compared with a loop on the host; the attributes @commutes and @identity of
 * operators. Operators that kjit rejects before it compiles: the message has the func's name and
 * location in the application's text.
 * RUN: %programs/own_operators
 * RUN: %if cuda %{ %programs/own_operators cuda %}
 */
#include "algorithm_host.h"
#include <math.h>

static const char funcs[] = "func longer(a, b) { return a > b ? a : b }\n"
                            "func square(i, x) { return x[i] * x[i] }\n"
                            "func is_longer(a, b) { return a > b }\n"
                            "func are_odd(a, b) { return a != b }\n"
                            "func three(a, b, c) { return a + b * c }\n"
                            "func scaled(a, b, c = 2) { return a + b * (c // 2) }\n"
                            "func both(a, b) { return a, b }\n"
                            "func nothing(a, b) { }\n"
                            "func count_both(a, b) { return i64(a > 0 and b > 0) }\n"
                            "func at_start(x) { return x }\n"
                            "func low(like) { return -inf }\n"
                            "func above(a, b) @commutes @identity(low) { return max(a, b) }\n"
                            "func two(like) { return 1, 2 }\n"
                            "func untrue(a, b) @identity(two) { return a + b }\n"
                            "func gap(x, y, i, j) { return y - x }\n";

enum { COUNT = 20000 };

static double to_type(double value, kjit_type type)
{
  return type == KJIT_I32   ? (double)(int32_t)value
         : type == KJIT_F32 ? (double)(float)value
                            : value;
}

static double result_in(const kjit_array *array, kjit_type type)
{
  union {
    double f64;
    float f32;
    int32_t i32;
  } bits = { 0 };
  read_array(array, &bits, type == KJIT_F64 ? 8 : 4);
  return type == KJIT_F64 ? bits.f64 : type == KJIT_F32 ? (double)bits.f32 : bits.i32;
}

static kjit_status reduce(const kjit_operand *result, const kjit_operand *x,
                          kjit_function *function, kjit_type accumulator)
{
  kjit_operator operator_ = kjit_operator_function(function);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .accumulator = accumulator };
  operator_.commutes = rand() % 2;
  return kjit_reduce(context, result, x, &operator_, &options);
}

/* Elements are converted to the accumulator type before the operator gets them, and the value is
 * then converted to the result type. */
static void test_types(kjit_module *module)
{
  static const kjit_type types[] = { KJIT_F32, KJIT_F64, KJIT_I32 };
  static float values[COUNT];
  int64_t n = 1 + rand() % COUNT;
  for (int64_t i = 0; i < n; i++) values[i] = (float)(rand() % 4001 - 2000) / 8;
  kjit_array *x = make_line_of(KJIT_F32, n, values, (size_t)n * sizeof *values);
  kjit_arg argument = kjit_arg_array(x);
  for (int way = 0; way < 2 * 3 * 2; way++) {
    bool is_func = way % 2, is_f32 = way / 6;
    kjit_type type = types[way / 2 % 3], computed = is_f32 ? KJIT_F32 : type;
    kjit_array *r = make_array(type, NULL, 0);
    kjit_operand to = kjit_operand_array(r), from = kjit_operand_array(x);
    if (is_func) from = kjit_operand_function(find(module, "square"), &argument, 1, &n, 1);
    double want = -1e30;
    for (int64_t i = 0; i < n; i++) {
      float value = is_func ? values[i] * values[i] : values[i];
      double cut = to_type(value, computed);
      want = cut > want ? cut : want;
    }
    REQUIRE(reduce(&to, &from, find(module, "longer"), is_f32 ? KJIT_F32 : KJIT_ANY) == KJIT_OK);
    REQUIRE(result_in(r, type) == to_type(want, type));
    kjit_release_array(r);
  }
  kjit_release_array(x);
}

/* 2.5 and 2.75 are both 2 to an operator that computes in i32. */
static void test_cut(kjit_module *module)
{
  static const float values[] = { 2.5f, 2.75f, -7.5f };
  kjit_array *x = make_line_of(KJIT_F32, 3, values, sizeof values),
             *r = make_array(KJIT_I32, NULL, 0);
  kjit_operand to = kjit_operand_array(r), from = kjit_operand_array(x);
  REQUIRE(reduce(&to, &from, find(module, "scaled"), KJIT_ANY) == KJIT_OK);
  REQUIRE(result_in(r, KJIT_I32) == 2 + 2 - 7);
  REQUIRE(reduce(&to, &from, find(module, "scaled"), KJIT_F32) == KJIT_OK);
  REQUIRE(result_in(r, KJIT_I32) == -2); /* -2.25 */
  kjit_release_array(x);
  kjit_release_array(r);
}

/* Comparisons of bools are operators: the parity. */
static void test_bools(kjit_module *module)
{
  static bool values[COUNT];
  int odd = 0;
  for (int i = 0; i < COUNT; i++) odd += values[i] = rand() % 2;
  kjit_array *x = make_line_of(KJIT_BOOL, COUNT, values, sizeof values),
             *r = make_array(KJIT_BOOL, NULL, 0), *number = make_array(KJIT_I32, NULL, 0);
  kjit_operand to = kjit_operand_array(r), to_number = kjit_operand_array(number),
               from = kjit_operand_array(x);
  bool parity = false;
  REQUIRE(reduce(&to, &from, find(module, "are_odd"), KJIT_ANY) == KJIT_OK);
  read_array(r, &parity, 1);
  REQUIRE(parity == odd % 2);
  REQUIRE(reduce(&to_number, &from, find(module, "are_odd"), KJIT_ANY) == KJIT_OK);
  REQUIRE(result_in(number, KJIT_I32) == odd % 2);
  kjit_release_array(x);
  kjit_release_array(r);
  kjit_release_array(number);
}

/* Makes each call twice. An accepted operator is not checked again, and a rejected one stays
 * rejected. */
static void test_refused(kjit_module *module)
{
  static const struct {
    const char *name, *message, *place;
  } cases[] = {
    { "is_longer", "kjit_reduce: operator `is_longer` returns bool for two values of type f64",
      "functions.kir:3:6: " },
    { "three", "kjit_reduce: `three` takes 3 arguments, but is called with 2 here: two values",
      "functions.kir:5:6: " },
    { "both", "operator `both` returns (f64, f64) for two values of type f64",
      "functions.kir:7:6: " },
    { "nothing", "operator `nothing` returns nothing for two values of type f64",
      "functions.kir:8:6: " },
    { "at_start", "`at_start` takes 1 argument, but is called with 2 here",
      "functions.kir:10:6: " },
  };
  double values[3] = { 1, 2, 3 };
  int64_t n = 3;
  kjit_array *x = make_line_of(KJIT_F64, n, values, sizeof values),
             *r = make_array(KJIT_F64, NULL, 0), *y = make_line(KJIT_F64, n),
             *b = make_array(KJIT_BOOL, NULL, 0);
  kjit_arg argument = kjit_arg_array(x);
  kjit_function *three = find(module, "three");
  kjit_operand to = kjit_operand_array(r), from = kjit_operand_array(x),
               line = kjit_operand_array(y), to_bool = kjit_operand_array(b),
               computed = kjit_operand_function(find(module, "square"), NULL, 0, &n, 1);
  REQUIRE(reduce(&to_bool, &from, find(module, "is_longer"), KJIT_ANY) == KJIT_OK);
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    kjit_function *function = find(module, cases[i / 2].name);
    REQUIRE(reduce(&to, &from, function, KJIT_ANY) == KJIT_ERROR_TYPE);
    REQUIRE(says(cases[i / 2].message) && says(cases[i / 2].place));
  }
  REQUIRE(reduce(&to, &from, find(module, "count_both"), KJIT_ANY) == KJIT_OK);
  REQUIRE(result_in(r, KJIT_F64) == 1);
  REQUIRE(reduce(&to, &computed, find(module, "longer"), KJIT_ANY) == KJIT_ERROR_TYPE);
  REQUIRE(says("functions.kir:2:6: ") && says("`square` takes 2 arguments, but is called with 1"));
  REQUIRE(kjit_sort(context, &line, &from, three, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(says("functions.kir:5:6: error: kjit_sort: `three` takes 3 arguments"));
  REQUIRE(kjit_search_sorted(context, &line, &from, &from, three, NULL) != KJIT_OK);
  kjit_operand store = kjit_operand_function(three, &argument, 1, NULL, 0);
  kjit_operator add = kjit_operator_named("add"), mean = kjit_operator_named("mean");
  REQUIRE(kjit_reduce(context, &store, &from, &add, NULL) == KJIT_ERROR_TYPE);
  REQUIRE(
    says("`three` takes 3 arguments, but is called with 2 here: 0 indices, the value to store"));
  REQUIRE(kjit_scan(context, &line, &from, &mean, NULL) == KJIT_ERROR_NAME);
  REQUIRE(says("kjit_scan: operator `mean` of two values does not exist; use add, mul"));
  kjit_array *arrays[] = { x, r, y, b };
  for (int i = 0; i < 4; i++) kjit_release_array(arrays[i]);
}

/* The identity element is used for an empty array, at the start of an exclusive scan, and for pairs
 * without rows of y, in the accumulator type. An operator with the same text but without the
 * attribute has no identity. */
static void test_identity(kjit_module *module)
{
  int64_t n = 1 + rand() % 300, none = 0;
  double values[300], scanned[300], low = -INFINITY;
  for (int64_t i = 0; i < n; i++) values[i] = rand() % 2001 - 1000;
  kjit_array *x = make_line_of(KJIT_F64, n, values, (size_t)n * sizeof *values),
             *r = make_array(KJIT_F64, NULL, 0), *y = make_line(KJIT_F64, n),
             *empty = make_line(KJIT_F64, none), *cut = make_array(KJIT_I32, NULL, 0);
  kjit_operand from = kjit_operand_array(x), nothing = kjit_operand_array(empty),
               to = kjit_operand_array(r), to_cut = kjit_operand_array(cut),
               line = kjit_operand_array(y),
               gap = kjit_operand_function(find(module, "gap"), NULL, 0, NULL, 0);
  kjit_operator above = kjit_operator_function(find(module, "above")),
                longer = kjit_operator_function(find(module, "longer"));
  kjit_algorithm_options exclusive = { .size_bytes = sizeof exclusive,
                                       .flags = KJIT_ALGORITHM_EXCLUSIVE };
  REQUIRE(kjit_reduce(context, &to, &nothing, &above, NULL) == KJIT_OK);
  REQUIRE(result_in(r, KJIT_F64) == low);
  REQUIRE(kjit_reduce(context, &to_cut, &nothing, &above, NULL) == KJIT_OK);
  REQUIRE(result_in(cut, KJIT_I32) == INT32_MIN);
  REQUIRE(kjit_scan(context, &line, &from, &above, &exclusive) == KJIT_OK);
  read_array(y, scanned, (size_t)n * sizeof *scanned);
  for (int64_t i = 0; i < n; i++) {
    REQUIRE(scanned[i] == low);
    low = values[i] > low ? values[i] : low;
  }
  REQUIRE(kjit_pairs(context, &line, &gap, &from, &nothing, 1, &above, NULL) == KJIT_OK);
  read_array(y, scanned, (size_t)n * sizeof *scanned);
  for (int64_t i = 0; i < n; i++) REQUIRE(scanned[i] == -INFINITY);
  REQUIRE(kjit_reduce(context, &to, &nothing, &longer, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` is empty and the operator has no identity element"));
  REQUIRE(kjit_scan(context, &line, &from, &longer, &exclusive) == KJIT_ERROR_ARGUMENT);
  REQUIRE(
    says("an exclusive scan starts with the operator's identity, and this operator has none"));
  REQUIRE(kjit_pairs(context, &line, &gap, &from, &nothing, 1, &longer, NULL) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`y0` has no rows, and the operator has no identity element"));
  kjit_operator untrue = kjit_operator_function(find(module, "untrue"));
  for (int i = 0; i < 2; i++) {
    REQUIRE(kjit_reduce(context, &to, &from, &untrue, NULL) == KJIT_ERROR_TYPE);
    REQUIRE(says("functions.kir:13:6: ") &&
            says("`two`, the identity of the operator `untrue`, returns (i32, i32) for a value of "
                 "type f64; it must return a value of that type"));
  }
  kjit_array *arrays[] = { x, r, y, empty, cut };
  for (int i = 0; i < 5; i++) kjit_release_array(arrays[i]);
}

/* kjit_update_at accepts an operator if the application or the func declares that it commutes. */
static void test_commutes(kjit_module *module)
{
  double values[2] = { 3, -4 };
  int32_t places[3] = { 1, 0, 1 };
  kjit_array *x = make_line_of(KJIT_F64, 2, values, sizeof values),
             *p = make_line_of(KJIT_I32, 3, places, sizeof places);
  kjit_operand to = kjit_operand_array(x), at = kjit_operand_array(p),
               two = kjit_operand_of(kjit_arg_f64(2));
  kjit_operator above = kjit_operator_function(find(module, "above")),
                longer = kjit_operator_function(find(module, "longer"));
  REQUIRE(kjit_update_at(context, &to, &at, &two, &longer, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the operator must be commutative and marked so"));
  REQUIRE(kjit_update_at(context, &to, &at, &two, &above, NULL) == KJIT_OK);
  read_array(x, values, sizeof values);
  REQUIRE(values[0] == 3 && values[1] == 2);
  longer.commutes = 1;
  two = kjit_operand_of(kjit_arg_f64(7));
  REQUIRE(kjit_update_at(context, &to, &at, &two, &longer, NULL) == KJIT_OK);
  read_array(x, values, sizeof values);
  REQUIRE(values[0] == 7 && values[1] == 7);
  kjit_release_array(x);
  kjit_release_array(p);
}

/* Tests an operand and an operator from different modules. A failure is located in the text of the
 * func that has failed, and a failure does not affect later calls. */
static void test_places(void)
{
  static const char operand[] = "# an operand\nfunc loud(i, x) {\n"
                                "  if x[i] > 7 { raise \"loud\" }\n  return x[i]\n}\n",
                    operator_text[] = "func meek(a, b) {\n  if b < -7 { raise \"meek\" }\n"
                                      "  return a + b\n}\n";
  static const double largest[] = { 7, 8, 7, 7 }, least[] = { -7, -7, -8, -7 };
  static const char *const places[] = { NULL, "operand.kir:3:", "operator.kir:2:", NULL };
  kjit_module *modules[2] = { NULL };
  REQUIRE(kjit_parse_module(context, "operand.kir", operand, strlen(operand), &modules[0]) ==
          KJIT_OK);
  REQUIRE(kjit_parse_module(context, "operator.kir", operator_text, strlen(operator_text),
                            &modules[1]) == KJIT_OK);
  for (int i = 0; i < 4; i++) {
    double values[] = { largest[i], least[i], 1 };
    int64_t n = 3;
    kjit_array *x = make_line_of(KJIT_F64, n, values, sizeof values),
               *r = make_array(KJIT_F64, NULL, 0);
    kjit_arg argument = kjit_arg_array(x);
    kjit_operand to = kjit_operand_array(r),
                 from = kjit_operand_function(find(modules[0], "loud"), &argument, 1, &n, 1);
    kjit_status status = reduce(&to, &from, find(modules[1], "meek"), KJIT_ANY);
    if (status == KJIT_OK) status = kjit_synchronize_device(device);
    REQUIRE(status == (places[i] ? KJIT_ERROR_KERNEL : KJIT_OK));
    if (places[i]) REQUIRE(says(places[i]));
    else REQUIRE(result_in(r, KJIT_F64) == values[0] + values[1] + 1);
    kjit_release_array(x);
    kjit_release_array(r);
  }
  for (int i = 0; i < 2; i++) kjit_release_module(modules[i]);
}

/* The message about an unknown name lists all operators. */
static void test_names(void)
{
  kjit_array *x = make_line(KJIT_F64, 3), *r = make_array(KJIT_F64, NULL, 0);
  kjit_operand to = kjit_operand_array(r), from = kjit_operand_array(x);
  kjit_operator unknown = kjit_operator_named("median");
  REQUIRE(kjit_reduce(context, &to, &from, &unknown, NULL) == KJIT_ERROR_NAME);
  const char *name;
  for (size_t i = 0; (name = kjit_get_operator_name(i)) != NULL; i++) REQUIRE(says(name));
  REQUIRE(says(", std"));
  kjit_release_array(x);
  kjit_release_array(r);
}

static void test_all(void)
{
  kjit_module *module = parse(funcs);
  test_types(module);
  test_cut(module);
  test_bools(module);
  test_refused(module);
  test_identity(module);
  test_commutes(module);
  test_places();
  test_names();
  kjit_release_module(module);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
