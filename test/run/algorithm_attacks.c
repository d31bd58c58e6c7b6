/* Incorrect and unusual calls of algorithms: objects that are destroyed early, meaningless
 * arguments, funcs of other modules, names that algorithms use themselves. test/algorithm compares
 * the values of algorithms.
 * RUN: %programs/algorithm_attacks
 * RUN: %if cuda %{ %programs/algorithm_attacks cuda %}
 */
#include "algorithm_host.h"

#include <pthread.h>

static const char funcs[] =
  "import \"block\"\n"
  "import \"operators\"\n"
  "import \"reduce\"\n"
  "func combine(a, b) { return a + b }\n"
  "func x_at(i, x) { return x[i] }\n"
  "func hosts_0(i, j) { return i * 3 + j }\n"
  "func result_put(v, r) { r[0] = v }\n"
  "func scaled(i, x, by) { return x[i] * by }\n"
  "func one(i) { return 1i64 }\n"
  "func careful(a, b) { if a == 13 or b == 13 { raise \"thirteen\" }\n return a + b }\n"
  "func wide_max(a, b) { return f64(a > b ? a : b) }\n"
  "func deep(a, b) { return down(3) + a + b - 3 }\n"
  "func down(n: i32) -> i32 { if n == 0 { return 0 }\n return 1 + down(n - 1) }\n"
  "func seven() { return 7i32 }\n"
  "extern func nowhere(a, b)\n";

static kjit_array *make_range(int64_t count)
{
  kjit_array *array = make_array(KJIT_I64, &count, 1);
  int64_t *values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++) values[i] = i;
  REQUIRE(kjit_copy_from_host(array, values, (size_t)count * sizeof *values, NULL) == KJIT_OK);
  free(values);
  return array;
}

static const kjit_operator add = { .name = "add" };

static kjit_algorithm_options all_defaults(void)
{
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  return options;
}

/* ---- objects that end early ---- */

/* A plan ends with its context. */
static void test_context_ends(void)
{
  kjit_context *outer = context;
  kjit_device *outer_device = device;
  kjit_plan *plan = NULL;
  kjit_algorithm_options options = all_defaults();
  options.plan = &plan;
  REQUIRE(kjit_create_context(NULL, &context) == KJIT_OK);
  REQUIRE(kjit_get_device(context, chosen_kind, 0, &device) == KJIT_OK);
  kjit_module *module = parse(funcs);
  kjit_array *x = make_range(1000), *r = make_array(KJIT_I64, NULL, 0);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  kjit_operator own = kjit_operator_function(find(module, "combine"));
  REQUIRE(kjit_reduce(context, &result, &all, &own, &options) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
  kjit_destroy_context(context);
  context = outer;
  device = outer_device;
}

/* A plan keeps the objects that it needs: arrays, its views of them, the application's funcs. */
static void test_plan_keeps(void)
{
  kjit_plan *plan = NULL;
  int64_t shape[] = { 40, 25 };
  kjit_algorithm_options options = all_defaults();
  options.plan = &plan;
  kjit_module *module = parse(funcs);
  kjit_array *x = make_range(1000), *r = make_array(KJIT_I64, NULL, 0), *matrix = NULL;
  REQUIRE(kjit_reshape_array(x, shape, 2, &matrix) == KJIT_OK);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(matrix);
  kjit_operator own = kjit_operator_function(find(module, "combine"));
  REQUIRE(kjit_reduce(context, &result, &all, &own, &options) == KJIT_OK);
  kjit_release_array(x);
  kjit_release_array(matrix);
  kjit_release_module(module);
  /* more kernels than the cache keeps */
  for (int i = 0; i < 300; i++) {
    char text[100];
    uint64_t bytes;
    kjit_array *y = make_range(100);
    kjit_algorithm_options sizes = all_defaults();
    sizes.work_bytes = &bytes;
    snprintf(text, sizeof text, "func f(a, b) { return a + b + %d - %d }\n", i, i);
    module = parse(text);
    kjit_operand in = kjit_operand_array(y);
    own = kjit_operator_function(find(module, "f"));
    REQUIRE(kjit_reduce(context, &result, &in, &own, &sizes) == KJIT_OK);
    kjit_release_module(module);
    kjit_release_array(y);
  }
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
    REQUIRE(kjit_synchronize_device(device) == KJIT_OK && integer_in(r) == 999 * 500);
  }
  kjit_destroy_plan(plan);
  kjit_release_array(r);
}

/* An interrupted run does not affect the next run. */
static void test_stopped_plan(void)
{
  enum { N = 100000 };
  kjit_plan *plan = NULL;
  kjit_algorithm_options options = all_defaults();
  options.plan = &plan;
  kjit_module *module = parse(funcs);
  int64_t count = N;
  static int32_t values[N];
  kjit_array *x = make_array(KJIT_I32, &count, 1), *r = make_array(KJIT_I64, NULL, 0);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  kjit_operator careful = kjit_operator_function(find(module, "careful"));
  REQUIRE(kjit_reduce(context, &result, &all, &careful, &options) == KJIT_OK);
  for (int at = 0; at < N; at += N / 5) {
    int64_t sum = 0;
    for (int i = 0; i < N; i++) sum += values[i] = 20 + (i + at) % 100;
    values[at] = 13;
    REQUIRE(kjit_copy_from_host(x, values, sizeof values, NULL) == KJIT_OK);
    kjit_status status = kjit_run_plan(plan, NULL);
    if (status == KJIT_OK) status = kjit_synchronize_device(device);
    REQUIRE(status == KJIT_ERROR_KERNEL && says("thirteen"));
    values[at] = 20 + 2 * at % 100;
    REQUIRE(kjit_copy_from_host(x, values, sizeof values, NULL) == KJIT_OK);
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
    REQUIRE(kjit_synchronize_device(device) == KJIT_OK);
    REQUIRE(integer_in(r) == sum);
  }
  kjit_destroy_plan(plan);
  kjit_release_array(r);
  kjit_release_array(x);
}

/* ---- tensors of the application ---- */

static void test_tensors(void)
{
  int64_t shape[8] = { 3, 1, 2, 1, 5, 2, 1, 4 }, strides[8] = { 1, 7, 3, 0, 6, 30, 9, 60 };
  int64_t values[240], sum = 0;
  for (int i = 0; i < 240; i++) sum += values[i] = i * i;
  kjit_tensor dense = tensor_of(values, 0, 64, shape, 8), mixed = dense, backwards = dense,
              repeated = dense, empty = dense;
  mixed.strides = strides;
  int64_t line = 240, back = -1, still = 0, hostile[2] = { INT64_MAX, INT64_MAX },
          hollow[2] = { 0, 5 };
  backwards.rank = repeated.rank = 1;
  backwards.shape = repeated.shape = &line;
  backwards.data = values + 239;
  backwards.strides = &back;
  repeated.strides = &still;
  repeated.data = values + 3;
  empty.rank = 2;
  empty.shape = hollow;
  empty.strides = hostile;
  kjit_tensor single = tensor_of(values + 5, 0, 64, NULL, 0);
  const struct {
    const kjit_tensor *x;
    int64_t sum;
  } cases[] = { { &dense, sum },        { &mixed, sum }, { &backwards, sum },
                { &repeated, 240 * 9 }, { &empty, 0 },   { &single, 25 } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t got = -1;
    kjit_plan *plan = NULL;
    kjit_algorithm_options options = all_defaults();
    options.device = device;
    kjit_tensor r = tensor_of(&got, 0, 64, NULL, 0);
    kjit_operand result = kjit_operand_of(kjit_arg_tensor(&r)),
                 x = kjit_operand_of(kjit_arg_tensor(cases[i].x));
    REQUIRE(kjit_reduce(context, &result, &x, &add, &options) == KJIT_OK);
    REQUIRE(got == cases[i].sum);
    got = -1;
    options.plan = &plan;
    REQUIRE(kjit_reduce(context, &result, &x, &add, &options) == KJIT_OK);
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && got == cases[i].sum);
    kjit_destroy_plan(plan);
  }
}

/* ---- rejected calls ---- */

static void test_hostile_operands(void)
{
  kjit_module *module = parse(funcs), *elsewhere = NULL;
  kjit_context *other = NULL;
  kjit_array *x = make_range(100), *r = make_array(KJIT_I64, NULL, 0);
  int64_t hundred = 100, negative = -1, huge[9] = { INT64_MAX, 3 };
  REQUIRE(kjit_create_context(NULL, &other) == KJIT_OK);
  REQUIRE(kjit_parse_module(other, "other", funcs, strlen(funcs), &elsewhere) == KJIT_OK);
  kjit_arg number[] = { kjit_arg_array(x), kjit_arg_number(2) }, nothing[2] = { { 0 }, { 0 } },
           unknown[2] = { { .kind = 99 }, { .kind = 99 } },
           handed[] = { kjit_arg_array(x), kjit_arg_function(find(module, "one")) },
           nulls[] = { kjit_arg_array(NULL), kjit_arg_tensor(NULL) },
           typeless[] = { kjit_arg_array(x), kjit_arg_value(KJIT_ANY, &hundred) },
           valueless[] = { kjit_arg_array(x), kjit_arg_value(KJIT_I64, NULL) },
           strange[] = { kjit_arg_array(x), kjit_arg_value(0xfffffff, &hundred) };
  nothing[1].value.u = unknown[1].value.u = 12345;
  kjit_function *scaled = find(module, "scaled"), *foreign = find(elsewhere, "one"),
                *foreign_operator = find(elsewhere, "combine");
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  const struct {
    kjit_operand x;
    kjit_status status;
    const char *message;
  } inputs[] = {
    { kjit_operand_function(scaled, number, 2, &hundred, 1), KJIT_ERROR_ARGUMENT, "needs a type" },
    { kjit_operand_function(scaled, nothing, 2, &hundred, 1), KJIT_ERROR_ARGUMENT, "`x`" },
    { kjit_operand_function(scaled, unknown, 2, &hundred, 1), KJIT_ERROR_ARGUMENT, "`x`" },
    { kjit_operand_function(scaled, handed, 2, &hundred, 1), KJIT_ERROR_UNSUPPORTED, "a func" },
    { kjit_operand_function(scaled, nulls, 2, &hundred, 1), KJIT_ERROR_MISUSE, "`x` is NULL" },
    { kjit_operand_function(scaled, typeless, 2, &hundred, 1), KJIT_ERROR_ARGUMENT, "`x`" },
    { kjit_operand_function(scaled, valueless, 2, &hundred, 1), KJIT_ERROR_ARGUMENT, "NULL" },
    { kjit_operand_function(scaled, strange, 2, &hundred, 1), KJIT_ERROR_ARGUMENT, "`x`" },
    { kjit_operand_function(scaled, NULL, 2, &hundred, 1), KJIT_ERROR_MISUSE, "arrays is NULL" },
    { kjit_operand_function(scaled, number, 2, NULL, 1), KJIT_ERROR_MISUSE, "shape is NULL" },
    { kjit_operand_function(scaled, number, 2, &negative, 1), KJIT_ERROR_ARGUMENT, "negative" },
    { kjit_operand_function(scaled, number, 2, huge, 2), KJIT_ERROR_ARGUMENT, "too large" },
    { kjit_operand_function(scaled, number, 2, huge, 9), KJIT_ERROR_ARGUMENT, "9 axes" },
    { kjit_operand_function(NULL, number, 2, &hundred, 1), KJIT_ERROR_MISUSE, "`x` is NULL" },
    { kjit_operand_function(foreign, NULL, 0, &hundred, 1), KJIT_ERROR_ARGUMENT,
      "another context" },
    { kjit_operand_of(kjit_arg_elements(0xfffffff, kjit_get_tensor(x))), KJIT_ERROR_ARGUMENT,
      "x: DLPack" },
    { kjit_operand_array(NULL), KJIT_ERROR_MISUSE, "`x` is NULL" },
    { kjit_operand_of(nothing[0]), KJIT_ERROR_ARGUMENT, "`x` is a value" },
  };
  for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
    kjit_status status = kjit_reduce(context, &result, &inputs[i].x, &add, NULL);
    if (status != inputs[i].status) printf("input %zu: %s\n", i, kjit_get_status_name(status));
    REQUIRE(status == inputs[i].status);
    REQUIRE(says(inputs[i].message));
  }
  kjit_operator of_elsewhere = kjit_operator_function(foreign_operator),
                open = kjit_operator_function(find(module, "nowhere")),
                two = { "add", find(module, "combine"), 0 };
  REQUIRE(kjit_reduce(context, &result, &all, &of_elsewhere, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("another context"));
  REQUIRE(kjit_reduce(context, &result, &all, &open, NULL) == KJIT_ERROR_NAME);
  REQUIRE(says("nowhere"));
  REQUIRE(kjit_reduce(context, &result, &all, &two, NULL) == KJIT_ERROR_MISUSE);
  kjit_release_array(x);
  kjit_release_array(r);
  kjit_destroy_context(other);
}

static void test_hostile_options(void)
{
  kjit_module *module = parse(funcs);
  kjit_context *other = NULL;
  kjit_array *x = make_range(100), *r = make_array(KJIT_I64, NULL, 0);
  int32_t least = INT32_MIN, most = INT32_MAX;
  REQUIRE(kjit_create_context(NULL, &other) == KJIT_OK);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  kjit_algorithm_options options = all_defaults();
  options.axis_count = 2;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_MISUSE);
  REQUIRE(says("axes is NULL"));
  options.axis_count = 1;
  options.axes = &least;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_ARGUMENT);
  options.axes = &most;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_ARGUMENT);
  options = all_defaults();
  options.flags = 1u << 31;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_MISUSE);
  kjit_device *others_device = NULL;
  kjit_stream *others_stream = NULL;
  REQUIRE(kjit_get_device(other, KJIT_DEVICE_CPU, 0, &others_device) == KJIT_OK);
  REQUIRE(kjit_create_stream(others_device, &others_stream) == KJIT_OK);
  options = all_defaults();
  options.stream = others_stream;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the stream belongs to another context"));
  options.device = device;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("on another device"));
  kjit_arg initials[] = { { 0 },
                          kjit_arg_array(x),
                          kjit_arg_array(NULL),
                          kjit_arg_function(find(module, "one")),
                          kjit_arg_value(KJIT_I64, NULL),
                          { .kind = 99 } };
  for (size_t i = 0; i < sizeof initials / sizeof *initials; i++) {
    options = all_defaults();
    options.initial = &initials[i];
    kjit_status status = kjit_reduce(context, &result, &all, &add, &options);
    if (status == KJIT_OK || !says("initial")) printf("initial %zu\n", i);
    REQUIRE(status == KJIT_ERROR_ARGUMENT || status == KJIT_ERROR_MISUSE);
  }
  options = all_defaults();
  options.accumulator = 0xfffffff;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_TYPE);
  options.accumulator = KJIT_VOID;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_TYPE);
  options.size_bytes = 3;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_reduce(context, &result, &all, &add, NULL) == KJIT_OK && integer_in(r) == 4950);
  REQUIRE(kjit_reduce(NULL, &result, &all, &add, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_run_plan(NULL, NULL) == KJIT_ERROR_MISUSE);
  kjit_release_array(x);
  kjit_release_array(r);
  kjit_destroy_context(other);
}

/* Results with two axes and random strides are rejected if two of their elements have the same
 * address.
 */
static void test_strides(void)
{
  enum { ROOM = 4096, SIDE = 4 };
  int64_t room = ROOM;
  kjit_array *x = make_array(KJIT_F32, &room, 1), *all = make_array(KJIT_F32, &room, 1);
  kjit_operator add = kjit_operator_named("add");
  int refused = 0, accepted = 0;
  for (int round = 0; round < 300; round++) {
    int64_t shape[2], strides[2];
    bool is_taken[ROOM] = { false }, meets = false;
    for (int i = 0; i < 2; i++) {
      shape[i] = 1 + rand() % SIDE;
      strides[i] = (1 + rand() % 12) * (rand() % 3 ? 1 : -1);
    }
    for (int64_t i = 0; i < shape[0]; i++)
      for (int64_t j = 0; j < shape[1]; j++) {
        bool *place = &is_taken[ROOM / 2 + i * strides[0] + j * strides[1]];
        meets |= *place;
        *place = true;
      }
    kjit_tensor from = *kjit_get_tensor(all), to = *kjit_get_tensor(x);
    from.rank = to.rank = 2;
    from.shape = to.shape = shape;
    from.strides = NULL;
    to.strides = strides;
    to.data = (char *)to.data + ROOM / 2 * sizeof(float);
    kjit_operand result = kjit_operand_of(kjit_arg_tensor(&to)),
                 input = kjit_operand_of(kjit_arg_tensor(&from));
    kjit_status status = kjit_scan(context, &result, &input, &add, NULL);
    REQUIRE(status == (meets ? KJIT_ERROR_ARGUMENT : KJIT_OK));
    *(meets ? &refused : &accepted) += 1;
  }
  REQUIRE(refused > 5 && accepted > 5); /* about 36 of 300 are rejected, by chance */
  kjit_release_array(x);
  kjit_release_array(all);
}

static void test_options_not_taken(void)
{
  int64_t hundred = 100;
  int32_t axis = 0;
  kjit_array *x = make_range(100), *r = make_array(KJIT_I64, &hundred, 1),
             *n = make_array(KJIT_I64, NULL, 0);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x),
               one = kjit_operand_array(n);
  kjit_arg seven = kjit_arg_i64(7);
  const struct {
    kjit_algorithm_options given;
    const char *name;
  } cases[] = {
    { { .axes = &axis, .axis_count = 1 }, "options.axes" },
    { { .accumulator = KJIT_F64 }, "options.accumulator" },
    { { .initial = &seven }, "options.initial" },
    { { .flags = KJIT_ALGORITHM_EXCLUSIVE }, "KJIT_ALGORITHM_EXCLUSIVE" },
    { { .flags = KJIT_ALGORITHM_DESCENDING }, "KJIT_ALGORITHM_DESCENDING" },
    { { .flags = KJIT_ALGORITHM_OUTER }, "KJIT_ALGORITHM_OUTER" },
    { { .flags = KJIT_ALGORITHM_RIGHT }, "KJIT_ALGORITHM_RIGHT" },
    { { .end_bit = 8 }, "options.end_bit" },
    { { .where = &all }, "options.where" },
    { { .signature = "(n)->(n)" }, "options.signature" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kjit_algorithm_options options = cases[i].given;
    options.size_bytes = sizeof options;
    REQUIRE(kjit_nonzero(context, &result, &one, &all, &options) == KJIT_ERROR_ARGUMENT);
    REQUIRE(says("is not an option of this algorithm") && says(cases[i].name));
  }
  kjit_algorithm_options options = all_defaults();
  options.where = &all;
  REQUIRE(kjit_reduce(context, &one, &all, &add, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("options.where is not an option of this algorithm"));
  /* several elements of the result have one address; test_strides has other strides */
  int64_t stride = 0;
  kjit_tensor same = *kjit_get_tensor(n);
  same.rank = 1;
  same.shape = &hundred;
  same.strides = &stride;
  kjit_operand at_one_place = kjit_operand_of(kjit_arg_tensor(&same));
  REQUIRE(kjit_scan(context, &at_one_place, &all, &add, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("has overlapping elements"));
  REQUIRE(kjit_sort(context, &at_one_place, &all, NULL, NULL) == KJIT_ERROR_ARGUMENT);
  test_strides();
  kjit_release_array(x);
  kjit_release_array(r);
  kjit_release_array(n);
}

static void test_result_types(void)
{
  kjit_module *module = parse(funcs);
  kjit_function *seven = find(module, "seven"), *combine = find(module, "combine");
  kjit_type type = KJIT_ANY;
  const char *wrong[] = { "i32", "i32,", ",",       "i32, , i32",   "f32[:]",      "i32, i32, i32",
                          "(",   "\xff", "i32 i32", "i32, nothing", "block, block" };
  REQUIRE(kjit_get_result_type(seven, "", &type) == KJIT_OK && type == KJIT_I32);
  REQUIRE(kjit_get_result_type(combine, "i32, f64", &type) == KJIT_OK && type == KJIT_F64);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    REQUIRE(kjit_get_result_type(combine, wrong[i], &type) != KJIT_OK);
  REQUIRE(kjit_get_result_type(combine, NULL, &type) != KJIT_OK);
  REQUIRE(kjit_get_result_type(combine, "i32, f64", NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_get_result_type(NULL, "i32", &type) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_get_result_type(find(module, "nowhere"), "i32, i32", &type) != KJIT_OK);
  REQUIRE(kjit_get_result_type(find(module, "max"), "i32, f32", &type) != KJIT_ERROR_MISUSE);
}

/* ---- names ---- */

static void test_names(void)
{
  kjit_module *module = parse(funcs);
  int64_t n = 5000, one = 1, shape[] = { 70, 70 }, sum = 0;
  kjit_array *x = make_range(n), *r = make_array(KJIT_I64, &one, 1);
  kjit_arg array = kjit_arg_array(x), out = kjit_arg_array(r);
  kjit_operator combine = kjit_operator_function(find(module, "combine")),
                max = kjit_operator_function(find(module, "max")),
                wide = kjit_operator_function(find(module, "wide_max")),
                deep = kjit_operator_function(find(module, "deep")),
                of_library = kjit_operator_function(find(module, "operator_add"));
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x),
               at = kjit_operand_function(find(module, "x_at"), &array, 1, &n, 1),
               index = kjit_operand_function(find(module, "hosts_0"), NULL, 0, shape, 2),
               put = kjit_operand_function(find(module, "result_put"), &out, 1, NULL, 0);
  REQUIRE(kjit_reduce(context, &result, &at, &combine, NULL) == KJIT_OK);
  REQUIRE(integer_in(r) == 4999 * 2500);
  for (int64_t i = 0; i < 70; i++)
    for (int64_t j = 0; j < 70; j++) sum += i * 3 + j;
  REQUIRE(kjit_reduce(context, &put, &index, &combine, NULL) == KJIT_OK && integer_in(r) == sum);
  REQUIRE(kjit_reduce(context, &result, &all, &max, NULL) == KJIT_OK && integer_in(r) == 4999);
  REQUIRE(kjit_reduce(context, &result, &at, &wide, NULL) == KJIT_OK && integer_in(r) == 4999);
  REQUIRE(kjit_reduce(context, &result, &all, &of_library, NULL) == KJIT_OK);
  REQUIRE(integer_in(r) == 4999 * 2500);
  REQUIRE(kjit_reduce(context, &result, &all, &deep, NULL) == KJIT_OK);
  REQUIRE(integer_in(r) == 4999 * 2500);
  kjit_release_array(x);
  kjit_release_array(r);
}

/* ---- many threads ---- */

enum { THREADS = 4, ROUNDS = 6 };

static void *reduce_often(void *data)
{
  kjit_module *module = data;
  kjit_array *x = make_range(1000), *r = make_array(KJIT_I64, NULL, 0);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  for (int i = 0; i < ROUNDS; i++) {
    char text[100];
    snprintf(text, sizeof text, "func f(a, b) { return a + b + %d - %d }\n", i, i);
    kjit_module *own = parse(text);
    kjit_operator op = kjit_operator_function(find(i % 2 ? own : module, i % 2 ? "f" : "combine"));
    kjit_plan *plan = NULL;
    kjit_algorithm_options options = all_defaults();
    REQUIRE(kjit_reduce(context, &result, &all, &op, NULL) == KJIT_OK && integer_in(r) == 499500);
    options.plan = &plan;
    REQUIRE(kjit_reduce(context, &result, &all, &op, &options) == KJIT_OK);
    kjit_release_module(own);
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK && kjit_synchronize_device(device) == KJIT_OK);
    kjit_destroy_plan(plan);
  }
  kjit_release_array(x);
  kjit_release_array(r);
  return NULL;
}

static void test_threads(void)
{
  pthread_t threads[THREADS];
  kjit_module *module = parse(funcs);
  for (int i = 0; i < THREADS; i++)
    REQUIRE(pthread_create(&threads[i], NULL, reduce_often, module) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static void test_all(void)
{
  test_tensors();
  test_hostile_operands();
  test_hostile_options();
  test_options_not_taken();
  test_result_types();
  test_names();
  test_plan_keeps();
  test_stopped_plan();
  test_context_ends();
  test_threads();
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
