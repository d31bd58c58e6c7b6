/* Modules that the application changes: extern funcs that it binds, linked modules, constants that
 * it sets, imports that it resolves.
 * RUN: %programs/modules
 */
#include "functions.h"

/* ---- extern funcs of the application ---- */

static double scaled(double x, int32_t n) { return x * n; }
static double shifted(double x, int32_t n) { return x + n; }
static float sum_of(const float *x, int64_t count)
{
  float sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i];
  return sum;
}

static void test_externs(void)
{
  kjit_module *open_module = parse(
                "extern func step(x: f64, n: i32) -> f64\n"
                "extern func sum_of(x: const f32[:] C) -> f32\n"
                "func twice(x) { return step(step(x, 3), 3) }\n"
                "kernel k(out, x) { for i in grid_range(len(out)) { out[i] = step(x[i], 10) } }\n"
                "kernel sums(out, x) { for i in grid_range(len(out)) { out[i] = sum_of(x) } }\n"),
              *first = NULL, *second = NULL, *both = NULL;
  kjit_arg r, x = kjit_arg_f64(2);
  REQUIRE(kjit_call_function(find(open_module, "twice"), &x, 1, &r) == KJIT_ERROR_NAME &&
          says("the extern function `step` has no function on the CPU"));
  REQUIRE(kjit_bind_extern(open_module, "step", (void (*)(void))scaled, NULL, 0, &first) ==
          KJIT_OK);
  REQUIRE(kjit_bind_extern(open_module, "step", (void (*)(void))shifted, NULL, 0, &second) ==
          KJIT_OK);
  kjit_release_module(open_module);
  REQUIRE(kjit_call_function(find(first, "twice"), &x, 1, &r) == KJIT_OK && r.value.f64 == 18);
  REQUIRE(kjit_call_function(find(second, "twice"), &x, 1, &r) == KJIT_OK && r.value.f64 == 8);
  REQUIRE(kjit_bind_extern(second, "sum_of", (void (*)(void))sum_of, NULL, 0, &both) == KJIT_OK);
  double values[3] = { 1, 2, 3 }, out[3] = { 0 };
  float floats[5] = { 1, 2, 3, 4, 5 }, sums[2] = { 0 };
  int64_t three = 3, five = 5, two = 2;
  kjit_tensor to = tensor_of(out, 2, 64, &three, 1), from = tensor_of(values, 2, 64, &three, 1),
              floats_tensor = tensor_of(floats, 2, 32, &five, 1),
              sums_tensor = tensor_of(sums, 2, 32, &two, 1);
  kjit_kernel *kernel;
  kjit_device *cpu;
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu };
  kjit_arg args[2] = { kjit_arg_tensor(&to), kjit_arg_tensor(&from) },
           more[2] = { kjit_arg_tensor(&sums_tensor), kjit_arg_tensor(&floats_tensor) };
  REQUIRE(kjit_get_kernel(first, "k", &kernel) == KJIT_OK &&
          kjit_launch(kernel, &config, args, 2) == KJIT_OK && out[0] == 10 && out[2] == 30);
  REQUIRE(kjit_get_kernel(both, "k", &kernel) == KJIT_OK &&
          kjit_launch(kernel, &config, args, 2) == KJIT_OK && out[0] == 11 && out[2] == 13);
  REQUIRE(kjit_get_kernel(both, "sums", &kernel) == KJIT_OK &&
          kjit_launch(kernel, &config, more, 2) == KJIT_OK && sums[0] == 15 && sums[1] == 15);
  REQUIRE(kjit_get_kernel(second, "sums", &kernel) == KJIT_OK &&
          kjit_launch(kernel, &config, more, 2) == KJIT_ERROR_NAME);
  kjit_module *none = NULL;
  void (*pointer)(void);
  kjit_arg step[2] = { kjit_arg_f64(1), kjit_arg_i32(2) };
  REQUIRE(kjit_call_function(find(both, "step"), step, 2, &r) == KJIT_ERROR_ARGUMENT &&
          says("`step` is an extern function"));
  REQUIRE(kjit_get_function_pointer(find(both, "step"), "f64(f64, i32)", &pointer) ==
          KJIT_ERROR_ARGUMENT);
  REQUIRE(kjit_bind_extern(both, "twice", (void (*)(void))scaled, NULL, 0, &none) ==
            KJIT_ERROR_NAME &&
          says("is not an extern function"));
  REQUIRE(kjit_bind_extern(both, "nothing", (void (*)(void))scaled, NULL, 0, &none) ==
          KJIT_ERROR_NAME);
  REQUIRE(kjit_bind_extern(both, "step", NULL, NULL, 0, &none) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_bind_extern(both, "step", NULL, "int step(void);", 15, &none) == KJIT_ERROR_SYNTAX &&
          says("neither PTX"));
  REQUIRE(kjit_bind_extern(both, "step", NULL, "", 0, &none) == KJIT_ERROR_SYNTAX);
  kjit_release_module(both);
  kjit_release_module(first);
  kjit_release_module(second);
}

static kjit_module *build_caller(const char *name, int has_statement)
{
  kjit_builder *b;
  kjit_module *module = NULL;
  const double table[3] = { 0.5, 1.5, 2.5 };
  const int64_t three = 3;
  if (kjit_create_builder(context, "built", &b) != KJIT_OK) return NULL;
  kjit_node weights = kjit_build_constant(b, "weights", KJIT_F64, table, &three, 1);
  kjit_build_begin_extern(b, name, KJIT_F64);
  kjit_build_parameter(b, "x", KJIT_F64);
  kjit_build_parameter(b, "n", KJIT_I32);
  if (has_statement) kjit_build_return(b, kjit_build_float(b, 1));
  kjit_build_end(b);
  kjit_build_begin_function(b, "caller", KJIT_F64);
  kjit_build_attribute(b, "strict", NULL, 0);
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY), last = kjit_build_integer(b, 2),
            args[2] = { x, kjit_build_integer(b, 4) };
  kjit_build_return(b, kjit_build_binary(b, KJIT_OP_ADD, kjit_build_call(b, name, args, 2),
                                         kjit_build_index(b, weights, &last, 1)));
  kjit_build_end(b);
  (void)!kjit_finish_builder(b, &module);
  kjit_destroy_builder(b);
  return module;
}

static void test_builder(void)
{
  kjit_module *built = build_caller("step", 0), *bound = NULL, *changed = NULL;
  kjit_arg r, x = kjit_arg_f64(3);
  char *text = NULL;
  REQUIRE(built && kjit_copy_module_text(built, &text) == KJIT_OK &&
          strstr(text, "extern func step(x: f64, n: i32) -> f64"));
  kjit_free(context, text);
  REQUIRE(kjit_bind_extern(built, "step", (void (*)(void))scaled, NULL, 0, &bound) == KJIT_OK);
  REQUIRE(kjit_call_function(find(bound, "caller"), &x, 1, &r) == KJIT_OK && r.value.f64 == 14.5);
  double more[4] = { 0, 0, 100, 0 };
  int64_t four = 4;
  kjit_tensor tensor = tensor_of(more, 2, 64, &four, 1);
  kjit_arg value = kjit_arg_tensor(&tensor);
  REQUIRE(kjit_set_constant(bound, "weights", &value, &changed) == KJIT_OK);
  REQUIRE(kjit_call_function(find(changed, "caller"), &x, 1, &r) == KJIT_OK && r.value.f64 == 112);
  REQUIRE(!build_caller("no name", 0) && says("`no name` is not a valid name of a C function"));
  REQUIRE(!build_caller("step", 1) && says("the extern function `step` cannot have a body"));
  kjit_release_module(built);
  kjit_release_module(bound);
  kjit_release_module(changed);
}

/* ---- linked modules ---- */

static void test_link(void)
{
  kjit_module *module = parse("extern func blend(a, b, t)\n"
                              "extern const WEIGHT: f32\n"
                              "func clamp(x) { return min(max(x, 0), 1) }\n"
                              "func mix(t) { return blend(0., 10., clamp(t)) * WEIGHT }\n"),
              *library = parse("const WEIGHT: f32 = 2\n"
                               "func clamp(x) { return x > 100 ? 100 : x }\n"
                               "func blend(a, b, t = 0.5) { return clamp(a + (b - a) * t) }\n"
                               "kernel unused(x) { x[0] = clamp(x[0]) }\n"),
              *other = parse("func blend(a) { return a }\n"), *linked = NULL, *none = NULL;
  kjit_arg r, t = kjit_arg_f32(0.25f);
  REQUIRE(kjit_call_function(find(module, "mix"), &t, 1, &r) == KJIT_ERROR_TYPE &&
          says("`blend` is extern"));
  REQUIRE(kjit_link_module(module, library, &linked) == KJIT_OK);
  REQUIRE(kjit_call_function(find(linked, "mix"), &t, 1, &r) == KJIT_OK && r.type == KJIT_F32 &&
          r.value.f32 == 5);
  t = kjit_arg_f32(7);
  REQUIRE(kjit_call_function(find(linked, "mix"), &t, 1, &r) == KJIT_OK && r.value.f32 == 20);
  /* the name finds the module's declaration; the library's calls still use its own declaration */
  t = kjit_arg_f32(50);
  REQUIRE(kjit_call_function(find(linked, "clamp"), &t, 1, &r) == KJIT_OK && r.value.f32 == 1);
  char *text = NULL;
  kjit_module *again = NULL;
  REQUIRE(kjit_copy_module_text(linked, &text) == KJIT_OK &&
          kjit_parse_module(context, "again", text, strlen(text), &again) == KJIT_OK);
  t = kjit_arg_f32(0.25f);
  REQUIRE(kjit_call_function(find(again, "mix"), &t, 1, &r) == KJIT_OK && r.value.f32 == 5);
  kjit_free(context, text);
  REQUIRE(kjit_link_module(module, other, &none) == KJIT_ERROR_TYPE &&
          says("`blend` is declared with 3 parameters, but has 1 in the linked library"));
  REQUIRE(kjit_link_module(module, NULL, &none) == KJIT_ERROR_MISUSE);
  kjit_release_module(module);
  kjit_release_module(library);
  kjit_release_module(again);
  kjit_release_module(other);
  REQUIRE(kjit_call_function(find(linked, "mix"), &t, 1, &r) == KJIT_OK && r.value.f32 == 5);
  kjit_release_module(linked);
}

/* ---- constants ---- */

static void test_constants(void)
{
  kjit_module *module = parse(
                "const N = 4\nconst SCALE: f32 = 1\nconst FLAG = false\nextern const TABLE: "
                "f64[3]\nextern const ANY: i32\nconst DOUBLE = 2 * N\n"
                "const ROWS = { { 1, 2 }, { 3, 4 } }\nstruct s { a: f32[N] }\n"
                "func get(x) { return FLAG ? x * SCALE : x + SCALE }\n"
                "func twice(x) { return x + DOUBLE }\n"
                "func pick(i: i64) { return TABLE[i] }\n"
                "func corner(i: i64) { return ROWS[i, i] }\n"
                "func static_if(x) { if FLAG { return x } else { return missing_types(x) } }\n"
                "func missing_types(x) { return x[0, 0] }\n"),
              *scaled_module = NULL, *flagged = NULL, *tabled = NULL, *rows = NULL, *none = NULL;
  kjit_arg r, x = kjit_arg_f32(3), index = kjit_arg_i64(2), value = kjit_arg_number(2.5);
  REQUIRE(kjit_call_function(find(module, "get"), &x, 1, &r) == KJIT_OK && r.value.f32 == 4);
  REQUIRE(kjit_call_function(find(module, "pick"), &index, 1, &r) == KJIT_ERROR_NAME &&
          says("extern constant `TABLE` has no value"));
  REQUIRE(kjit_set_constant(module, "SCALE", &value, &scaled_module) == KJIT_OK);
  REQUIRE(kjit_call_function(find(scaled_module, "get"), &x, 1, &r) == KJIT_OK &&
          r.type == KJIT_F32 && r.value.f32 == 5.5f);
  REQUIRE(kjit_call_function(find(module, "get"), &x, 1, &r) == KJIT_OK && r.value.f32 == 4);
  value = kjit_arg_bool(1);
  REQUIRE(kjit_set_constant(scaled_module, "FLAG", &value, &flagged) == KJIT_OK);
  REQUIRE(kjit_call_function(find(flagged, "get"), &x, 1, &r) == KJIT_OK && r.value.f32 == 7.5f);
  REQUIRE(kjit_call_function(find(flagged, "static_if"), &x, 1, &r) == KJIT_OK && r.value.f32 == 3);
  REQUIRE(kjit_call_function(find(scaled_module, "static_if"), &x, 1, &r) == KJIT_ERROR_TYPE);
  double table[6] = { 1, 0, 2, 0, 4, 0 };
  int64_t three = 3, stride = 2, four = 4, shape[2] = { 3, 2 };
  kjit_tensor tensor = tensor_of(table, 2, 64, &three, 1),
              matrix = tensor_of(table, 2, 64, shape, 2);
  tensor.strides = &stride;
  value = kjit_arg_tensor(&tensor);
  REQUIRE(kjit_set_constant(flagged, "TABLE", &value, &tabled) == KJIT_OK);
  memset(table, 0, sizeof table); /* kjit has copied it */
  REQUIRE(kjit_call_function(find(tabled, "pick"), &index, 1, &r) == KJIT_OK &&
          r.type == KJIT_F64 && r.value.f64 == 4);
  value = kjit_arg_tensor(&matrix);
  table[3] = 9;
  REQUIRE(kjit_set_constant(module, "ROWS", &value, &rows) == KJIT_OK);
  kjit_arg one = kjit_arg_i64(1);
  REQUIRE(kjit_call_function(find(rows, "corner"), &one, 1, &r) == KJIT_OK && r.type == KJIT_F64 &&
          r.value.f64 == 9);
  /* A value that does not fit is rejected. */
  tensor.shape = &four;
  value = kjit_arg_tensor(&tensor);
  REQUIRE(kjit_set_constant(module, "TABLE", &value, &none) == KJIT_ERROR_TYPE &&
          says("dimension 0 has 3 elements in its type, but 4 in the array"));
  REQUIRE(kjit_set_constant(module, "SCALE", &value, &none) == KJIT_ERROR_TYPE &&
          says("expected a scalar, got an array"));
  value = kjit_arg_number(1.5);
  REQUIRE(kjit_set_constant(module, "ANY", &value, &none) == KJIT_ERROR_TYPE &&
          says("constant `ANY`: expected i32"));
  REQUIRE(kjit_set_constant(module, "TABLE", &value, &none) == KJIT_ERROR_TYPE);
  REQUIRE(kjit_set_constant(module, "N", &value, &none) == KJIT_ERROR_TYPE &&
          says("the layout of struct `s` depends on it"));
  REQUIRE(kjit_set_constant(module, "get", &value, &none) == KJIT_ERROR_NAME);
  REQUIRE(kjit_set_constant(module, "nothing", &value, &none) == KJIT_ERROR_NAME);
  REQUIRE(kjit_set_constant(module, "SCALE", NULL, &none) == KJIT_ERROR_MISUSE);
  kjit_release_module(rows);
  kjit_release_module(tabled);
  kjit_release_module(module);
  kjit_release_module(flagged);
  kjit_release_module(scaled_module);
}

/* ---- imports ---- */

static int asked;
static int answer(void *user, const char *importer, const char *name, kjit_import_source *import)
{
  static const struct {
    const char *name, *text;
  } sources[] = { { "a", "import \"b\"\nimport \"main\"\nfunc a(x) { return b(x) + 1 }\n" },
                  { "b", "import \"a\"\nfunc b(x) { return 2 * x }\n" },
                  { "broken", "func (\n" } };
  (void)user, (void)importer;
  asked++;
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
    if (!strcmp(sources[i].name, name)) {
      import->name = name;
      import->text = sources[i].text;
      import->text_bytes = strlen(sources[i].text);
    }
  if (!strcmp(name, "main")) import->name = "main.kir"; /* the source that the application parses */
  return import->name != NULL;
}

static void test_imports(void)
{
  static const char text[] = "import \"a\"\nimport \"b\"\nfunc top(x) { return a(x) + b(x) }\n",
                    bad[] = "import \"broken\"\n", missing[] = "import \"a\"\nimport \"absent\"\n";
  kjit_config config = { .size_bytes = sizeof config };
  kjit_context *outer = context;
  kjit_module *module = NULL;
  kjit_arg r, x = kjit_arg_i32(5);
  config.find_import = answer;
  config.cache_directory = "";
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  REQUIRE(kjit_parse_module(context, "main.kir", text, strlen(text), &module) == KJIT_OK &&
          asked == 5);
  REQUIRE(kjit_call_function(find(module, "top"), &x, 1, &r) == KJIT_OK && r.value.i == 21);
  REQUIRE(kjit_parse_module(context, "main.kir", bad, strlen(bad), &module) == KJIT_ERROR_SYNTAX &&
          says("broken:1:6"));
  REQUIRE(kjit_parse_module(context, "main.kir", missing, strlen(missing), &module) ==
            KJIT_ERROR_NAME &&
          says("main.kir:2:8") && says("`absent`"));
  kjit_destroy_context(context);
  context = outer;
}

static void test_modules(void)
{
  test_externs();
  test_builder();
  test_link();
  test_constants();
  test_imports();
}

int main(void) { return run_tests(test_modules); }
