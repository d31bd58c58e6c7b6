/* Algorithms called by an application: operands that are arrays with any strides or funcs,
 * operators, plans, temporary storage, graphs; and calls that kjit rejects. test/algorithm compares
 * the values for all types and sizes.
 * RUN: %programs/algorithms
 * RUN: %if cuda %{ %programs/algorithms cuda %}
 */
#include "algorithm_host.h"

enum { COUNT = 100003 };
static double data[COUNT];

static const char funcs[] =
  "struct Affine { a: i64; b: i64 }\n"
  "func then(f, g) { return Affine(f.a * g.a, g.a * f.b + g.b) }\n"
  "func affine(i, x) { return Affine(i64(x[i]) % 3, i) }\n"
  "func largest(a, b) { return a > b ? a : b }\n"
  "func distance(i, x, to) { return abs(x[i] - to) }\n"
  "func product(i, j, x, y) { return x[i] * y[j] }\n"
  "func keep(v, r) { r[3] = 2 * v }\n"
  "func nothing(i) { let x = i }\n"
  "func never(a, b) { if a + b > 10 { raise \"too large\" }\n return a + b }\n";

static double number_in(const kjit_array *array)
{
  double value = -1;
  REQUIRE(kjit_copy_to_host(array, &value, sizeof value, NULL) == KJIT_OK);
  return value;
}

static kjit_array *fill_data(void)
{
  int64_t n = COUNT;
  kjit_array *x = make_array(KJIT_F64, &n, 1);
  for (int64_t i = 0; i < n; i++) data[i] = (double)(rand() % 2001 - 1000);
  REQUIRE(kjit_copy_from_host(x, data, sizeof data, NULL) == KJIT_OK);
  return x;
}

static void test_arrays(kjit_array *x)
{
  kjit_array *r = make_array(KJIT_F64, NULL, 0), *part = NULL, *square = NULL, *columns = NULL;
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  kjit_operator add = kjit_operator_named("add"), max = kjit_operator_named("max");
  double sum = 0, every_third = 0, most = -1e9, of_columns = 0;
  for (int i = 0; i < COUNT; i++) {
    sum += data[i];
    if (i % 3 == 1) every_third += data[i];
    if (data[i] > most) most = data[i];
  }
  REQUIRE(kjit_reduce(context, &result, &all, &add, NULL) == KJIT_OK);
  REQUIRE(number_in(r) == sum);
  REQUIRE(kjit_reduce(context, &result, &all, &max, NULL) == KJIT_OK);
  REQUIRE(number_in(r) == most);
  /* backwards, each third */
  kjit_array_slice slice = { 100000, 0, -3 };
  REQUIRE(kjit_slice_array(x, &slice, 1, &part) == KJIT_OK);
  kjit_operand strided = kjit_operand_array(part);
  REQUIRE(kjit_reduce(context, &result, &strided, &add, NULL) == KJIT_OK);
  REQUIRE(number_in(r) == every_third);
  /* some columns of a matrix, transposed: no axes can be joined */
  kjit_array_slice head = { 0, 100000, 1 }, inside[] = { { 0, 250, 2 }, { 3, 90, 1 } };
  int64_t shape[] = { 1000, 100 };
  kjit_array *line = NULL, *matrix = NULL;
  REQUIRE(kjit_slice_array(x, &head, 1, &line) == KJIT_OK);
  REQUIRE(kjit_reshape_array(line, shape, 2, &matrix) == KJIT_OK);
  REQUIRE(kjit_slice_array(matrix, inside, 2, &square) == KJIT_OK);
  REQUIRE(kjit_transpose_array(square, NULL, &columns) == KJIT_OK);
  for (int i = 0; i < 250; i += 2)
    for (int j = 3; j < 90; j++) of_columns += data[100 * i + j];
  kjit_operand transposed = kjit_operand_array(columns);
  REQUIRE(kjit_reduce(context, &result, &transposed, &add, NULL) == KJIT_OK);
  REQUIRE(number_in(r) == of_columns);
  kjit_array *arrays[] = { r, part, square, columns, line, matrix };
  for (int i = 0; i < 6; i++) kjit_release_array(arrays[i]);
}

static void test_funcs(kjit_module *module, kjit_array *x)
{
  int64_t four = 4, n = COUNT, shape[] = { 300, 500 };
  kjit_array *r = make_array(KJIT_F64, &four, 1), *one = make_array(KJIT_F64, NULL, 0);
  kjit_operator largest = kjit_operator_function(find(module, "largest")),
                add = kjit_operator_named("add");
  kjit_arg of_distance[] = { kjit_arg_array(x), kjit_arg_f64(7.5) },
           of_product[] = { kjit_arg_array(x), kjit_arg_array(x) }, of_keep = kjit_arg_array(r);
  kjit_operand distance = kjit_operand_function(find(module, "distance"), of_distance, 2, &n, 1),
               product = kjit_operand_function(find(module, "product"), of_product, 2, shape, 2),
               keep = kjit_operand_function(find(module, "keep"), &of_keep, 1, NULL, 0),
               result = kjit_operand_array(one);
  double most = 0, sum = 0;
  for (int i = 0; i < COUNT; i++)
    if (most < (data[i] > 7.5 ? data[i] - 7.5 : 7.5 - data[i]))
      most = data[i] > 7.5 ? data[i] - 7.5 : 7.5 - data[i];
  for (int i = 0; i < 300; i++)
    for (int j = 0; j < 500; j++) sum += data[i] * data[j];
  REQUIRE(kjit_reduce(context, &result, &distance, &largest, NULL) == KJIT_OK);
  REQUIRE(number_in(one) == most);
  REQUIRE(kjit_reduce(context, &keep, &product, &add, NULL) == KJIT_OK);
  double kept[4];
  REQUIRE(kjit_copy_to_host(r, kept, sizeof kept, NULL) == KJIT_OK && kept[3] == 2 * sum);
  kjit_release_array(r);
  kjit_release_array(one);
}

/* Composition of the maps x -> a x + b, which does not commute. */
static void test_structs(kjit_module *module, kjit_array *x)
{
  struct affine {
    int64_t a, b;
  } got, want = { 1, 0 }, first = { 5, 9 };
  kjit_type type;
  int64_t n = COUNT;
  kjit_array *hosts = NULL;
  kjit_tensor tensor = tensor_of(data, 2, 64, &n, 1);
  REQUIRE(kjit_parse_type(context, "Affine", &type) == KJIT_OK);
  REQUIRE(kjit_wrap_tensor(context, &tensor, &hosts) == KJIT_OK);
  kjit_array *r = make_array(type, NULL, 0);
  kjit_arg array = kjit_arg_array(chosen_kind == KJIT_DEVICE_CPU ? hosts : x),
           initial = kjit_arg_value(type, &first);
  kjit_operand result = kjit_operand_array(r),
               input = kjit_operand_function(find(module, "affine"), &array, 1, &n, 1);
  kjit_operator then = kjit_operator_function(find(module, "then"));
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.initial = &initial;
  for (int64_t i = 0; i < n; i++) { /* as unsigned: wraps */
    struct affine g = { (int64_t)data[i] % 3 + ((int64_t)data[i] % 3 < 0 ? 3 : 0), i };
    want = (struct affine){ (int64_t)((uint64_t)want.a * (uint64_t)g.a),
                            (int64_t)((uint64_t)g.a * (uint64_t)want.b + (uint64_t)g.b) };
  }
  REQUIRE(kjit_reduce(context, &result, &input, &then, NULL) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(r, &got, sizeof got, NULL) == KJIT_OK);
  REQUIRE(got.a == want.a && got.b == want.b);
  REQUIRE(kjit_reduce(context, &result, &input, &then, &options) == KJIT_OK);
  REQUIRE(kjit_copy_to_host(r, &got, sizeof got, NULL) == KJIT_OK);
  REQUIRE(got.a == (int64_t)((uint64_t)want.a * 5) &&
          got.b == (int64_t)((uint64_t)want.a * 9 + (uint64_t)want.b));
  kjit_release_array(hosts);
  kjit_release_array(r);
}

/* All algorithms can read read-only arrays, also through funcs that the library passes from one
 * func to the next. */
static void test_read_only(kjit_module *module, kjit_array *x)
{
  int64_t n = COUNT;
  kjit_managed_tensor_versioned *managed = NULL;
  kjit_array *same = NULL, *r = make_line(KJIT_F64, n), *places = make_line(KJIT_I64, n),
             *count = make_line(KJIT_I64, 1), *one = make_array(KJIT_F64, NULL, 0);
  REQUIRE(kjit_export_dlpack_versioned(x, NULL, &managed) == KJIT_OK);
  managed->flags |= KJIT_DLPACK_READ_ONLY;
  REQUIRE(kjit_take_dlpack_versioned(context, managed, NULL, &same) == KJIT_OK);
  kjit_arg of_distance[] = { kjit_arg_array(same), kjit_arg_f64(7.5) };
  kjit_operand inputs[] = { kjit_operand_array(same),
                            kjit_operand_function(find(module, "distance"), of_distance, 2, &n,
                                                  1) },
               all = kjit_operand_array(r), result = kjit_operand_array(one),
               where = kjit_operand_array(places), number = kjit_operand_array(count);
  kjit_operator add = kjit_operator_named("add"),
                largest = kjit_operator_function(find(module, "largest"));
  for (int i = 0; i < 2; i++) {
    REQUIRE(kjit_reduce(context, &result, &inputs[i], &largest, NULL) == KJIT_OK);
    REQUIRE(kjit_scan(context, &all, &inputs[i], &add, NULL) == KJIT_OK);
    REQUIRE(kjit_sort(context, &all, &inputs[i], NULL, NULL) == KJIT_OK);
    REQUIRE(kjit_nonzero(context, &where, &number, &inputs[i], NULL) == KJIT_OK);
    REQUIRE(kjit_map(context, &all, 1, find(module, "largest"), inputs, 2, NULL) == KJIT_OK);
  }
  kjit_operand written = kjit_operand_array(same);
  REQUIRE(kjit_sort(context, &written, &inputs[0], NULL, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`result` is an output, but its array is read-only"));
  kjit_array *made[] = { same, r, places, count, one };
  for (int i = 0; i < 5; i++) kjit_release_array(made[i]);
}

static void test_plans(kjit_array *x)
{
  kjit_array *r = make_array(KJIT_F64, NULL, 0), *work = NULL;
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  kjit_operator add = kjit_operator_named("add");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_plan *plan = NULL;
  kjit_stream *stream = NULL;
  kjit_graph *graph = NULL;
  kjit_executable_graph *executable = NULL;
  uint64_t bytes = 0;
  double sum = 0;
  for (int i = 0; i < COUNT; i++) sum += data[i];
  REQUIRE(kjit_create_stream(device, &stream) == KJIT_OK);
  options.stream = stream;
  options.work_bytes = &bytes;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_OK && bytes > 0);
  options.work_bytes = NULL;
  int64_t extent = (int64_t)bytes, less = extent - 1;
  work = make_array(KJIT_U8, &less, 1);
  options.work = work;
  options.plan = &plan;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("of u8 with ") && !plan);
  kjit_release_array(work);
  kjit_tensor within = *kjit_get_tensor(x);
  within.code = 1; /* u8 */
  within.bits = 8;
  within.shape = &extent;
  within.strides = NULL;
  REQUIRE(kjit_wrap_tensor(context, &within, &work) == KJIT_OK);
  options.work = work;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("the temporary storage, options.work, overlaps `x`") && !plan);
  kjit_release_array(work);
  options.work = work = make_array(KJIT_U8, &extent, 1);
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_OK);
  REQUIRE(kjit_get_plan_size(plan) == 1);
  kjit_specialization_info info = {
    .size_bytes = sizeof info
  }; /* its constants are literals, so that indices stay in 32 bits */
  kjit_get_specialization_info(kjit_get_prepared_specialization(kjit_get_plan_launch(plan, 0)),
                               &info);
  REQUIRE(!strstr(info.signature, "i64"));
  kjit_release_array(work);
  for (int i = 0; i < 3; i++) {
    REQUIRE(kjit_run_plan(plan, NULL) == KJIT_OK);
    REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK && number_in(r) == sum);
  }
  REQUIRE(kjit_begin_capture(stream) == KJIT_OK);
  REQUIRE(kjit_run_plan(plan, stream) == KJIT_OK && kjit_end_capture(stream, &graph) == KJIT_OK);
  REQUIRE(kjit_instantiate_graph(graph, &executable) == KJIT_OK);
  data[0] += 1000;
  REQUIRE(kjit_copy_from_host(x, data, sizeof data, NULL) == KJIT_OK);
  REQUIRE(kjit_launch_graph(executable, stream) == KJIT_OK);
  REQUIRE(kjit_synchronize_stream(stream) == KJIT_OK && number_in(r) == sum + 1000);
  kjit_destroy_executable_graph(executable);
  kjit_destroy_graph(graph);
  kjit_destroy_plan(plan);
  kjit_destroy_plan(NULL);
  kjit_destroy_stream(stream);
  kjit_release_array(r);
}

/* Tests the descriptions of results (options.results) and the launches of a plan. */
static void test_described(kjit_array *x)
{
  int64_t shape[] = { 3, 4, 5 };
  int32_t axes[] = { -1, 0 };
  kjit_array *halfs = make_array(KJIT_F16, shape, 3), *bytes = make_array(KJIT_U8, shape, 3);
  kjit_operand of_halfs = kjit_operand_array(halfs), of_bytes = kjit_operand_array(bytes);
  kjit_operator add = kjit_operator_named("add"), max = kjit_operator_named("max");
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_result_info info;
  options.results = &info;
  options.result_count = 1;
  REQUIRE(kjit_reduce(context, NULL, &of_halfs, &add, &options) == KJIT_OK);
  REQUIRE(info.element == KJIT_F16 && info.rank == 0);
  REQUIRE(kjit_reduce(context, NULL, &of_bytes, &max, &options) == KJIT_OK);
  REQUIRE(info.element == KJIT_U8);
  options.axes = axes;
  options.axis_count = 2;
  REQUIRE(kjit_reduce(context, NULL, &of_bytes, &add, &options) == KJIT_OK);
  REQUIRE(info.element == KJIT_U64 && info.rank == 1 && info.shape[0] == 4);
  options.accumulator = KJIT_F32;
  REQUIRE(kjit_reduce(context, NULL, &of_halfs, &add, &options) == KJIT_OK);
  REQUIRE(info.element == KJIT_F32);
  options.result_count = 0;
  REQUIRE(kjit_reduce(context, NULL, &of_halfs, &add, &options) == KJIT_ERROR_MISUSE);
  REQUIRE(!strcmp(kjit_get_operator_name(0), "add") && !kjit_get_operator_name(1000));

  kjit_array *r = make_array(KJIT_F64, NULL, 0);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x);
  kjit_plan *plan = NULL;
  kjit_specialization_info code = { .size_bytes = sizeof code };
  options = (kjit_algorithm_options){ .size_bytes = sizeof options };
  options.plan = &plan;
  REQUIRE(kjit_reduce(context, &result, &all, &add, &options) == KJIT_OK);
  const kjit_prepared *launch = kjit_get_plan_launch(plan, 0);
  REQUIRE(launch != NULL);
  kjit_get_specialization_info(kjit_get_prepared_specialization(launch), &code);
  REQUIRE(code.signature != NULL && !kjit_get_plan_launch(plan, kjit_get_plan_size(plan)));
  kjit_destroy_plan(plan);
  kjit_release_array(r);
  kjit_release_array(halfs);
  kjit_release_array(bytes);
}

static void test_empty(kjit_module *module)
{
  int64_t none = 0, shape[] = { 5, 0, 7 };
  kjit_array *x = make_array(KJIT_F64, &none, 1), *cube = make_array(KJIT_F64, shape, 3),
             *r = make_array(KJIT_F64, NULL, 0);
  kjit_operand empty = kjit_operand_array(x), hollow = kjit_operand_array(cube),
               result = kjit_operand_array(r);
  kjit_operator add = kjit_operator_named("add"), mul = kjit_operator_named("mul"),
                largest = kjit_operator_function(find(module, "largest"));
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  kjit_arg initial = kjit_arg_f64(2.5);
  options.initial = &initial;
  REQUIRE(kjit_reduce(context, &result, &empty, &mul, NULL) == KJIT_OK && number_in(r) == 1);
  REQUIRE(kjit_reduce(context, &result, &hollow, &add, NULL) == KJIT_OK && number_in(r) == 0);
  REQUIRE(kjit_reduce(context, &result, &empty, &largest, NULL) == KJIT_ERROR_ARGUMENT);
  REQUIRE(says("`x` is empty and the operator has no identity element"));
  REQUIRE(kjit_reduce(context, &result, &empty, &largest, &options) == KJIT_OK);
  REQUIRE(number_in(r) == 2.5);
  kjit_release_array(x);
  kjit_release_array(cube);
  kjit_release_array(r);
}

/* Repeated calls, whose steps kjit keeps: with other arrays, other alignments, in place, with other
 * values, and with other funcs that have the same names. */
static void test_again(void)
{
  enum { MOST = 700, ROUNDS = 16 };
  kjit_array *memory = make_array(KJIT_F64, &(int64_t){ 2 * MOST }, 1),
             *r = make_array(KJIT_F64, NULL, 0);
  double values[2 * MOST], got[2 * MOST];
  kjit_module *modules[] = { parse("func with(a, b) { return a + b }\n"),
                             parse("func with(a, b) { return a + b + 1 }\n") };
  for (int i = 0; i < ROUNDS; i++) {
    int n = 500 + i % 3, offset = i / 4 % 2, to = i % 4 ? i % 2 * MOST : 0, plus = i % 2;
    for (int k = 0; k < 2 * MOST; k++) values[k] = rand() % 1000;
    REQUIRE(kjit_copy_from_host(memory, values, sizeof values, NULL) == KJIT_OK);
    kjit_array_slice from_slice = { offset, offset + n, 1 }, to_slice = { to, to + n, 1 };
    if (to == 0) to_slice = from_slice;
    kjit_array *from_part, *to_part;
    REQUIRE(kjit_slice_array(memory, &from_slice, 1, &from_part) == KJIT_OK);
    REQUIRE(kjit_slice_array(memory, &to_slice, 1, &to_part) == KJIT_OK);
    kjit_operand x = kjit_operand_array(from_part), y = kjit_operand_array(to_part),
                 result = kjit_operand_array(r),
                 operands[] = { x, kjit_operand_of(kjit_arg_f64(i % 2)) };
    kjit_operator with = kjit_operator_function(find(modules[plus], "with"));
    double sum = -plus, running = -plus;
    int wrong = 0;
    for (int k = 0; k < n; k++) sum += values[offset + k] + plus;
    REQUIRE(kjit_reduce(context, &result, &x, &with, NULL) == KJIT_OK && number_in(r) == sum);
    REQUIRE(kjit_scan(context, &y, &x, &with, NULL) == KJIT_OK);
    read_array(memory, got, sizeof got);
    for (int k = 0; k < n; k++) {
      running += values[offset + k] + plus;
      wrong += got[to_slice.first + k] != running;
    }
    REQUIRE(!wrong);
    memcpy(values, got, sizeof values);
    REQUIRE(kjit_map(context, &y, 1, with.function, operands, 2, NULL) == KJIT_OK);
    read_array(memory, got, sizeof got);
    for (int k = 0; k < n; k++)
      wrong += got[to_slice.first + k] != values[offset + k] + i % 2 + plus;
    REQUIRE(!wrong);
    kjit_release_array(from_part);
    kjit_release_array(to_part);
  }
  for (int i = 0; i < 2; i++) kjit_release_module(modules[i]);
  kjit_release_array(memory);
  kjit_release_array(r);
}

/* One tensor is passed with two element types. */
static void test_tensor_twice(void)
{
  enum { N = 100 };
  double values[N], got[N];
  int64_t n = N;
  kjit_tensor tensor = tensor_of(values, 2, 64, &n, 1), to = tensor_of(got, 2, 64, &n, 1);
  kjit_module *module = parse("func numbers(a, b) { return a + f64(b) }\n");
  kjit_operand result = kjit_operand_of(kjit_arg_tensor(&to)),
               operands[] = { kjit_operand_of(kjit_arg_elements(KJIT_F64, &tensor)),
                              kjit_operand_of(kjit_arg_elements(KJIT_I64, &tensor)) };
  for (int i = 0; i < 3; i++) {
    int wrong = 0;
    for (int k = 0; k < N; k++) values[k] = rand() % 1000;
    REQUIRE(kjit_map(context, &result, 1, find(module, "numbers"), operands, 2, NULL) == KJIT_OK);
    for (int k = 0; k < N; k++) {
      int64_t bits;
      memcpy(&bits, &values[k], sizeof bits);
      wrong += got[k] != values[k] + (double)bits;
    }
    REQUIRE(!wrong);
  }
  kjit_release_module(module);
}

static void test_refused(kjit_module *module, kjit_array *x)
{
  int64_t n = COUNT, two = 2;
  kjit_array *r = make_array(KJIT_F64, NULL, 0), *pair = make_array(KJIT_F64, &two, 1), *own = NULL;
  kjit_array_slice third = { 2, 3, 1 };
  REQUIRE(kjit_slice_array(x, &third, 1, &own) == KJIT_OK);
  kjit_operand result = kjit_operand_array(r), all = kjit_operand_array(x),
               wide = kjit_operand_array(pair), inside = kjit_operand_array(own),
               nothing = kjit_operand_function(find(module, "nothing"), NULL, 0, &n, 1),
               value = kjit_operand_of(kjit_arg_f64(1));
  kjit_operator add = kjit_operator_named("add"), plus = kjit_operator_named("plus"),
                xor = kjit_operator_named("xor"), none = { 0 },
                never = kjit_operator_function(find(module, "never"));
  kjit_algorithm_options options = { .size_bytes = sizeof options }, of_complex, from_fraction;
  int32_t axes[] = { 1 };
  const float root[2] = { 0, 1 };
  kjit_arg i_ = kjit_arg_value(KJIT_C64, root), half = kjit_arg_number(0.5);
  of_complex = from_fraction = options;
  options.axes = axes;
  options.axis_count = 1;
  of_complex.initial = &i_;
  from_fraction.initial = &half;
  from_fraction.accumulator = KJIT_I64;
  const struct {
    const kjit_operand *result, *x;
    const kjit_operator *operator_;
    const kjit_algorithm_options *options;
    kjit_status status;
    const char *message;
  } cases[] = {
    { &result, &all, &plus, NULL, KJIT_ERROR_NAME, "operator `plus` does not exist; use add" },
    { &result, &all, &none, NULL, KJIT_ERROR_MISUSE,
      "the operator has neither a name nor a function" },
    { &result, &all, &xor, NULL, KJIT_ERROR_TYPE,
      "the operator `xor` is not defined for elements of type f64" },
    { &wide, &all, &add, NULL, KJIT_ERROR_ARGUMENT, "`result` must have the shape of `x`" },
    { &inside, &all, &add, NULL, KJIT_ERROR_ARGUMENT, "the output `result` overlaps `x`" },
    { &result, &nothing, &add, NULL, KJIT_ERROR_TYPE, "the function of `x` returns no value" },
    { &result, &value, &add, NULL, KJIT_ERROR_ARGUMENT, "`x` is a value" },
    { NULL, &all, &add, NULL, KJIT_ERROR_MISUSE, "`result` is NULL" },
    { &result, &all, &add, &options, KJIT_ERROR_ARGUMENT,
      "axis 1 is out of range: `x` has 1 axis" },
    { &result, &all, &add, &of_complex, KJIT_ERROR_TYPE,
      "options.initial, c64, cannot be converted to the type of the computation, f64" },
    { &result, &all, &add, &from_fraction, KJIT_ERROR_TYPE,
      "options.initial, a number, cannot be converted to the type of the computation, i64" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    REQUIRE(kjit_reduce(context, cases[i].result, cases[i].x, cases[i].operator_,
                        cases[i].options) == cases[i].status);
    REQUIRE(says(cases[i].message));
  }
  /* an operator that raises; the location is in the operator's own source */
  kjit_status status = kjit_reduce(context, &result, &all, &never, NULL);
  if (status == KJIT_OK) status = kjit_synchronize_device(device);
  REQUIRE(status == KJIT_ERROR_KERNEL && says("too large") && says("functions.kir:9:"));
  kjit_release_array(r);
  kjit_release_array(pair);
  kjit_release_array(own);
}

static void test_all(void)
{
  kjit_module *module = parse(funcs);
  kjit_array *x = fill_data();
  test_arrays(x);
  test_funcs(module, x);
  test_structs(module, x);
  test_read_only(module, x);
  test_plans(x);
  test_described(x);
  test_empty(module);
  test_again();
  test_tensor_twice();
  test_refused(module, x);
  kjit_release_array(x);
}

int main(int argc, char **argv) { return run_algorithm_tests(argc, argv, test_all); }
