/* Functions for front ends and bindings of other languages: arguments and tensors of every scalar
 * type, the names in a module, kjit_check, diagnostics that quote the front end's own source.
 * RUN: %programs/front_end
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

static kjit_context *context;
static kjit_device *cpu;

static void fail(const char *what, int line)
{
  char *text = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "line %d: %s\n%s", line, what, text ? text : "");
  exit(1);
}

static int says(const char *text)
{
  char *all = kjit_copy_diagnostics_text(context);
  int found = all && strstr(all, text);
  if (!found) fprintf(stderr, "%s", all ? all : "");
  kjit_free(context, all);
  return found;
}

static kjit_module *parse(const char *text)
{
  kjit_module *module = NULL;
  EXPECT(kjit_parse_module(context, "test.kir", text, strlen(text), &module) == KJIT_OK);
  return module;
}

static kjit_kernel *kernel_of(kjit_module *module, const char *name)
{
  kjit_kernel *kernel = NULL;
  EXPECT(kjit_get_kernel(module, name, &kernel) == KJIT_OK);
  return kernel;
}

/* Each kind of argument arrives with all its bits in an element of its type. */
static void test_arguments(void)
{
  const uint64_t one = 1;
  const float half[] = { 0.5f, -0.25f };
  const double third = 1 / 3.0;
  const struct {
    kjit_type type;
    kjit_arg argument;
    const void *expected;
    size_t bytes;
  } rows[] = {
    { KJIT_BOOL, kjit_arg_bool(17), &one, 1 },
    { KJIT_I8, kjit_arg_i8(-100), &(int8_t){ -100 }, 1 },
    { KJIT_I16, kjit_arg_i16(-30000), &(int16_t){ -30000 }, 2 },
    { KJIT_I32, kjit_arg_i32(INT32_MIN), &(int32_t){ INT32_MIN }, 4 },
    { KJIT_I64, kjit_arg_i64(INT64_MIN), &(int64_t){ INT64_MIN }, 8 },
    { KJIT_U8, kjit_arg_u8(200), &(uint8_t){ 200 }, 1 },
    { KJIT_U16, kjit_arg_u16(60000), &(uint16_t){ 60000 }, 2 },
    { KJIT_U32, kjit_arg_u32(UINT32_MAX), &(uint32_t){ UINT32_MAX }, 4 },
    { KJIT_U64, kjit_arg_u64(UINT64_MAX), &(uint64_t){ UINT64_MAX }, 8 },
    { KJIT_F16, kjit_arg_f16(0x3e01), &(uint16_t){ 0x3e01 }, 2 },
    { KJIT_BF16, kjit_arg_bf16(0xbf83), &(uint16_t){ 0xbf83 }, 2 },
    { KJIT_F32, kjit_arg_f32(0.5f), half, 4 },
    { KJIT_F64, kjit_arg_f64(third), &third, 8 },
    { KJIT_C64, kjit_arg_c64(0.5f, -0.25f), half, 8 },
  };
  kjit_module *module = parse("kernel k(r, a) { for i in grid_range(len(r)) { r[i] = a } }\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  int64_t shape[] = { 3 };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    /* the first launch compiles, the second finds the code, the third is prepared */
    for (int way = 0; way < 3; way++) {
      unsigned char data[3 * 16 + 1];
      memset(data, 0x5a, sizeof data);
      kjit_tensor tensor = kjit_make_tensor(data, rows[i].type, 1, shape);
      kjit_arg arguments[] = { kjit_arg_tensor(&tensor), rows[i].argument };
      kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu };
      kjit_prepared *prepared = NULL;
      if (way < 2) {
        EXPECT(kjit_launch(kernel, &config, arguments, 2) == KJIT_OK);
      } else {
        EXPECT(kjit_prepare_launch(kernel, &config, arguments, 2, &prepared) == KJIT_OK);
        memset(&arguments[1], 0, sizeof arguments[1]);
        EXPECT(kjit_run_prepared(prepared, NULL) == KJIT_OK);
        kjit_destroy_prepared(prepared);
      }
      for (int k = 0; k < 3; k++)
        EXPECT(!memcmp(data + (size_t)k * rows[i].bytes, rows[i].expected, rows[i].bytes));
      EXPECT(data[3 * rows[i].bytes] == 0x5a);
    }
  kjit_release_module(module);
}

/* Matrices, tensors of rank 0, and types that no tensor can have. */
static void test_tensors(void)
{
  kjit_module *module = parse("kernel k(m, s) { s[] = m[1, 2] + m.shape[0] * 10 }\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  float m[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } }, sum = 0;
  const int64_t shape[] = { 2, 3 };
  kjit_tensor tm = kjit_make_tensor(m, KJIT_F32, 2, shape),
              ts = kjit_make_tensor(&sum, KJIT_F32, 0, NULL);
  kjit_arg arguments[] = { kjit_arg_tensor(&tm), kjit_arg_tensor(&ts) };
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = cpu, .grid = { 1 }, .block = { 1 }
  };
  EXPECT(kjit_launch(kernel, &config, arguments, 2) == KJIT_OK);
  EXPECT(sum == 26);
  const kjit_type none[] = { KJIT_ANY, KJIT_VOID, KJIT_FUNC,
                             kjit_get_pointer_type(context, KJIT_F32, 0), UINT32_MAX };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    tm = kjit_make_tensor(m, none[i], 2, shape);
    EXPECT(kjit_launch(kernel, &config, arguments, 2) == KJIT_ERROR_ARGUMENT);
  }
  kjit_release_module(module);
}

static void test_names(void)
{
  static const char *const kernels[] = { "k", "l" }, *const functions[] = { "f", "g", "outside" },
                           *const constants[] = { "N", "M", "TABLE" };
  kjit_module *module = parse("const N = 3\nfunc f(x) { return x }\nkernel k(r) { r[0] = N }\n"
                              "const M = 2 * N\nfunc g(x) { return f(x) }\n"
                              "extern func outside(x: f32) -> f32\nkernel l(r) { r[0] = 1 }\n"
                              "const TABLE: f32[2] = { 1, 2 }\nstruct S { a: i32 }\n");
  for (size_t i = 0; i < 2; i++) EXPECT(!strcmp(kjit_get_kernel_name(module, i), kernels[i]));
  for (size_t i = 0; i < 3; i++) {
    EXPECT(!strcmp(kjit_get_function_name(module, i), functions[i]));
    EXPECT(!strcmp(kjit_get_constant_name(module, i), constants[i]));
  }
  EXPECT(!kjit_get_kernel_name(module, 2) && !kjit_get_function_name(module, 3) &&
         !kjit_get_constant_name(module, 3));
  EXPECT(!kjit_get_function_name(NULL, 0) && !kjit_get_constant_name(NULL, SIZE_MAX));
  kjit_release_module(module);
}

static void test_check(void)
{
  kjit_module *module = parse("kernel k(r, x) {\n  r[0] = x[0] + 1\n}\n");
  kjit_kernel *kernel = kernel_of(module, "k");
  kjit_compile_options options = { .size_bytes = sizeof options, .target = "sm_80" };
  EXPECT(kjit_check(kernel, "f32[:], f32[:]", NULL) == KJIT_OK);
  EXPECT(kjit_check(kernel, "f32[:], f32[:]", &options) == KJIT_OK);
  EXPECT(kjit_check(kernel, "f32[:], f32", NULL) == KJIT_ERROR_TYPE);
  EXPECT(says("test.kir:2:10: error: ") && says("  r[0] = x[0] + 1\n           ^\n"));
  EXPECT(kjit_check(kernel, "f32[:]", NULL) == KJIT_ERROR_ARGUMENT);
  EXPECT(kjit_check(kernel, "f32[:], nonsense", NULL) == KJIT_ERROR_NAME);
  EXPECT(kjit_check(kernel, NULL, NULL) == KJIT_ERROR_MISUSE);
  EXPECT(kjit_check(NULL, "", NULL) == KJIT_ERROR_MISUSE);
  options.target = "toaster";
  EXPECT(kjit_check(kernel, "f32[:], f32[:]", &options) != KJIT_OK && says("toaster"));
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  EXPECT(kjit_get_statistics(context, &statistics) == KJIT_OK);
  EXPECT(!kjit_get_specialization(kernel, 0));
  kjit_release_module(module);
}

/* Builds a kernel from `(set r (+ x 1))` of another language, which fails at the `+`. */
static void build_kernel(kjit_builder *b, const char *file)
{
  kjit_set_builder_location(b, file, 2, 1);
  kjit_build_begin_kernel(b, "k");
  kjit_node r = kjit_build_parameter(b, "r", KJIT_ANY), x = kjit_build_parameter(b, "x", KJIT_ANY);
  kjit_set_builder_location(b, file, 2, 13);
  kjit_node sum = kjit_build_binary(b, KJIT_OP_ADD, x, kjit_build_integer(b, 1)),
            zero = kjit_build_integer(b, 0);
  kjit_build_assign(b, kjit_build_index(b, r, &zero, 1), KJIT_OP_STORE, sum);
  kjit_build_end(b);
}

static void test_quotes(void)
{
  static const char text[] = "; text of its own\n(k (set r\t(+ x 1)))", other[] = "one line";
  const struct {
    const char *file, *text;
    size_t size_bytes;
    int is_late;
    const char *expected, *quote;
  } rows[] = {
    { "a.lisp", text, sizeof text - 1, 0, "a.lisp:2:13: error: ", "(k (set r\t(+ x 1)))\n" },
    { "a.lisp", text, sizeof text - 1, 1, "a.lisp:2:13: error: ", "         \t  ^\n" },
    { NULL, text, sizeof text - 1, 0, "made:2:13: error: ", "         \t  ^\n" },
    { "a.lisp", other, sizeof other - 1, 0, "a.lisp:2:13: error: ", NULL }, /* no such line */
    { "a.lisp", NULL, 0, 0, "a.lisp:2:13: error: ", NULL },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_builder *b;
    kjit_module *module;
    EXPECT(kjit_create_builder(context, "made", &b) == KJIT_OK);
    if (!rows[i].is_late)
      kjit_set_builder_source(b, rows[i].file, rows[i].text, rows[i].size_bytes);
    build_kernel(b, rows[i].file);
    if (rows[i].is_late) kjit_set_builder_source(b, rows[i].file, rows[i].text, rows[i].size_bytes);
    EXPECT(kjit_finish_builder(b, &module) == KJIT_OK);
    EXPECT(kjit_check(kernel_of(module, "k"), "f32[:], f32[:]", NULL) == KJIT_ERROR_TYPE);
    EXPECT(says(rows[i].expected));
    EXPECT(rows[i].quote ? says(rows[i].quote) : !kjit_get_diagnostic(context, 0)->source_line);
    kjit_release_module(module);
    kjit_destroy_builder(b);
  }
  kjit_builder *b;
  kjit_module *module;
  EXPECT(kjit_create_builder(context, "made", &b) == KJIT_OK);
  kjit_set_builder_source(b, "a", NULL, 3);
  EXPECT(kjit_finish_builder(b, &module) == KJIT_ERROR_MISUSE && says("text is NULL"));
  kjit_set_builder_source(NULL, "a", "", 0);
  kjit_destroy_builder(b);
}

/* Line directives in a text, with and without the front end's source, and in the text of a
 * builder's module. */
static void test_directives(void)
{
  static const char text[] = "@line(2, 13, \"a.py\") kernel k(r, x) { r[0] = x[0] + 1 }",
                    own[] = "def k(r, x):\n  r[0] = x[0] + 1\n";
  const kjit_quoted_text quoted[] = { { "b.py", NULL, 0 }, { "a.py", own, sizeof own - 1 } };
  kjit_parse_options options = { .size_bytes = sizeof options,
                                 .quoted = quoted,
                                 .quoted_count = 2 };
  for (int has_text = 0; has_text < 2; has_text++) {
    kjit_module *module;
    const kjit_parse_options *given = has_text ? &options : NULL;
    EXPECT(kjit_parse_module_with(context, given, "made", text, sizeof text - 1, &module) ==
           KJIT_OK);
    EXPECT(kjit_check(kernel_of(module, "k"), "f32[:], f32", NULL) == KJIT_ERROR_TYPE);
    EXPECT(says("a.py:2:13: error: "));
    EXPECT(has_text ? says("  r[0] = x[0] + 1\n              ^\n")
                    : !kjit_get_diagnostic(context, 0)->source_line);
    kjit_release_module(module);
  }
  kjit_module *module, *again;
  kjit_builder *b;
  char *printed;
  EXPECT(kjit_create_builder(context, "made", &b) == KJIT_OK);
  build_kernel(b, "a.lisp");
  EXPECT(kjit_finish_builder(b, &module) == KJIT_OK);
  EXPECT(kjit_copy_module_text(module, &printed) == KJIT_OK);
  EXPECT(kjit_parse_module(context, "printed", printed, strlen(printed), &again) == KJIT_OK);
  EXPECT(kjit_check(kernel_of(again, "k"), "f32[:], f32[:]", NULL) == KJIT_ERROR_TYPE);
  EXPECT(says("a.lisp:2:13: error: "));
  kjit_free(context, printed);
  kjit_release_module(again);
  kjit_release_module(module);
  kjit_destroy_builder(b);
  options.quoted = NULL;
  EXPECT(kjit_parse_module_with(context, &options, "made", text, sizeof text - 1, &module) ==
         KJIT_ERROR_MISUSE);
  EXPECT(says("kjit_parse_options.quoted is NULL"));
  options = (kjit_parse_options){ .size_bytes = sizeof options, .rules = 1u << 31 };
  EXPECT(kjit_parse_module_with(context, &options, "made", text, sizeof text - 1, &module) ==
         KJIT_ERROR_MISUSE);
  EXPECT(says("kjit_parse_options.rules contains unknown bits: 0x80000000"));
  options.rules = KJIT_RULE_WRAP;
  EXPECT(kjit_parse_module_with(context, &options, "made", text, sizeof text - 1, &module) ==
         KJIT_OK);
  EXPECT(kjit_copy_module_text(module, &printed) == KJIT_OK && strstr(printed, " @wrap {"));
  kjit_free(context, printed);
  kjit_release_module(module);
  options.rules = KJIT_RULE_WRAP | KJIT_RULE_NUMBA;
  EXPECT(kjit_parse_module_with(context, &options, "made", text, sizeof text - 1, &module) ==
         KJIT_OK);
  EXPECT(kjit_copy_module_text(module, &printed) == KJIT_OK && strstr(printed, " @wrap @numba {"));
  kjit_free(context, printed);
  kjit_release_module(module);
  options = (kjit_parse_options){ .size_bytes = sizeof options, .trust = (kjit_trust)9 };
  EXPECT(kjit_parse_module_with(context, &options, "made", text, sizeof text - 1, &module) ==
         KJIT_ERROR_MISUSE);
}

/* The fields of a diagnostic about a failed thread: kind, location, block, thread, and the message
 * in the kernel. */
static void test_failures(void)
{
  static const char text[] =
    "@line(1, \"prog.py\") kernel k(r, what) {\n"
    "  if blockIdx.x != 1 or threadIdx.y != 2 { return }\n"
    "  @line(10, 3)\n  if what == 0 { raise \"no\\nroom\" }\n"
    "  @line(11, 4)\n  if what == 1 { assert what == 0, \"what is zero\" }\n"
    "  @line(12)\n  if what == 2 { assert what == 0 }\n"
    "  @line(13, 6)\n  if what == 3 { r[what + 4] = 1 }\n"
    "  @line(14, 7)\n  if what == 4 { r[0] = what // r[1] }\n}";
  const struct {
    kjit_failure failure;
    uint32_t line, column;
    const char *text;
  } rows[] = { { KJIT_FAILURE_RAISE, 10, 3, "no\nroom" },
               { KJIT_FAILURE_ASSERT, 11, 4, "what is zero" },
               { KJIT_FAILURE_ASSERT, 12, 0, NULL },
               { KJIT_FAILURE_BOUNDS, 13, 6, NULL },
               { KJIT_FAILURE_DIVISION, 14, 7, NULL } };
  kjit_config config = { .size_bytes = sizeof config,
                         .checks = KJIT_CHECK_BOUNDS | KJIT_CHECK_DIVISION | KJIT_CHECK_ASSERT };
  kjit_context *checked, *outer = context;
  kjit_launch_config launch = { .size_bytes = sizeof launch, .grid = { 2 }, .block = { 1, 3 } };
  int32_t data[2] = { 0 };
  const int64_t extent = 2;
  kjit_tensor r = kjit_make_tensor(data, KJIT_I32, 1, &extent);
  EXPECT(kjit_create_context(&config, &checked) == KJIT_OK);
  context = checked;
  kjit_module *module = parse(text);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const kjit_arg arguments[] = { kjit_arg_tensor(&r), kjit_arg_i32((int32_t)i) };
    EXPECT(kjit_launch(kernel_of(module, "k"), &launch, arguments, 2) == KJIT_ERROR_KERNEL);
    const kjit_diagnostic *found = kjit_get_diagnostic(context, 0);
    EXPECT(found->failure == rows[i].failure && !strcmp(found->file, "prog.py"));
    EXPECT(found->line == rows[i].line && found->column == rows[i].column);
    EXPECT(found->block[0] == 1 && found->block[1] == 0 && found->block[2] == 0);
    EXPECT(found->thread[0] == 0 && found->thread[1] == 2 && !found->is_whole_block);
    EXPECT(rows[i].text ? found->failure_text && !strcmp(found->failure_text, rows[i].text)
                        : !found->failure_text);
  }
  kjit_kernel *none;
  EXPECT(kjit_get_kernel(module, "none", &none) == KJIT_ERROR_NAME);
  EXPECT(kjit_get_diagnostic(context, 0)->failure == KJIT_FAILURE_NONE);
  kjit_release_module(module);
  context = outer;
  EXPECT(kjit_destroy_context(checked) == KJIT_OK);
}

static void test_structs(void)
{
  kjit_module *module =
    parse("struct P { x: f32; n: i64 }\nstruct Q { p: P }\nkernel k(r) { r[0] = 1 }");
  kjit_type type = KJIT_ANY;
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  EXPECT(kjit_get_struct(module, "P", &type) == KJIT_OK);
  EXPECT(kjit_get_type_layout(context, type, &layout) == KJIT_OK && layout.type_bytes == 16);
  char *name = kjit_copy_type_text(context, type);
  EXPECT(name && !strcmp(name, "P"));
  kjit_free(context, name);
  EXPECT(!strcmp(kjit_get_struct_name(module, 1), "Q") && !kjit_get_struct_name(module, 2));
  EXPECT(kjit_get_struct(module, "k", &type) == KJIT_ERROR_NAME);
  EXPECT(says("module test.kir has no struct `k`"));
  EXPECT(kjit_get_struct(module, NULL, &type) == KJIT_ERROR_MISUSE);
  EXPECT(kjit_get_struct(NULL, "P", &type) == KJIT_ERROR_MISUSE);
  kjit_release_module(module);
}

int main(void)
{
  EXPECT(kjit_create_context(NULL, &context) == KJIT_OK);
  EXPECT(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  test_arguments();
  test_tensors();
  test_names();
  test_check();
  test_quotes();
  test_directives();
  test_failures();
  test_structs();
  kjit_destroy_context(context);
  return 0;
}
