/* Tests the driver calls for extern funcs and recursion. PTX of the application is linked once, and
 * only if a kernel calls it. The stack limit grows and does not shrink. Also tests the arguments of
 * bindings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cuda/ptx_symbols.h"
#include "code/specialization.h"
#include "cuda/linker.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

static int set_up(void **state)
{
  kj_diagnostics diagnostics = { 0 };
  cuda = (fake_driver){ .devices = 1, .stack_bytes = 1024 };
  fake_delete_all();
  kjit_context *context = make_fake_context();
  cuda.current = NULL;
  kjit_status status = kj_use_driver(context, find_fake, NULL, &diagnostics);
  kj_free_diagnostics(&diagnostics);
  *state = context;
  return status == KJIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(cuda.modules, 0);
  assert_int_equal(cuda.links, 0);
  return 0;
}

static const char text[] = "extern func step(x: f32) -> f32\n"
                           "extern func other(x: f32) -> f32\n"
                           "kernel k(x: f32) @block(1) @grid(1) { let y = step(x) }\n";
static const char ptx[] = "// of nvcc\n/* a\n comment */ .version 7.8\n.target sm_80\n.visible "
                          ".func (.param .b32 r) step(.param .b32 x) { ret; }\n";

static kjit_module *open_module(kjit_context *context)
{
  kjit_module *module = NULL;
  assert_int_equal(kjit_parse_module(context, "test", text, strlen(text), &module), KJIT_OK);
  return module;
}

static kjit_module *bind(kjit_module *module, const char *name, const char *code, size_t size_bytes)
{
  kjit_module *bound = NULL;
  assert_int_equal(kjit_bind_extern(module, name, NULL, code, size_bytes, &bound), KJIT_OK);
  kjit_release_module(module);
  return bound;
}

static kjit_status launch(kjit_context *context, kjit_module *module)
{
  kjit_kernel *kernel = NULL;
  kjit_device *gpu = NULL;
  kjit_arg x = kjit_arg_f32(1);
  assert_int_equal(kjit_get_kernel(module, "k", &kernel), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &gpu), KJIT_OK);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = gpu };
  return kjit_launch(kernel, &config, &x, 1);
}

/* PTX of a kernel that calls the func, as the compiler makes it: with the symbol of the func's
 * binding. */
static char calling[256];
static void call(const kjit_module *module, const char *name)
{
  kj_buffer symbol = { 0 };
  ki_append_extern_symbol(ki_find_decl(module, name)->function, true, &symbol);
  snprintf(calling, sizeof calling, ".version 7.8\n.extern .func %s;\n.entry k { call %s; }\n",
           symbol.text, symbol.text);
  kj_free_buffer(&symbol);
  fake.text = calling;
}

static void test_link(void **state)
{
  /* the code is the same whether the 0 byte is counted or not */
  kjit_module *module =
    bind(bind(open_module(*state), "step", ptx, strlen(ptx)), "other", ptx, sizeof ptx);
  call(module, "step");
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.inputs, 2);
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.inputs, 2);
  kjit_release_module(module);
}

static void test_uncalled(void **state)
{
  fake.text = ".version 7.8\n.entry k { call step; call a_step; call step$extern_; }\n";
  kjit_module *module = bind(open_module(*state), "step", ptx, strlen(ptx));
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.inputs, 1);
  kjit_release_module(module);
}

static void test_refused(void **state)
{
  kjit_module *module = bind(open_module(*state), "step", ptx, strlen(ptx));
  call(module, "step");
  cuda.refuse_ptx = true;
  kjit_status status = launch(*state, module);
  assert_true(status != KJIT_OK);
  assert_non_null(strstr(last_message(*state), "cuLinkAddData"));
  cuda.refuse_ptx = false;
  assert_int_equal(launch(*state, module), KJIT_OK);
  kjit_release_module(module);
}

static void expect_renamed(const char *text, const char *expected)
{
  size_t size_bytes;
  char *renamed = kj_rename_ptx_symbols(text, "$x", &size_bytes);
  assert_non_null(renamed);
  assert_string_equal(renamed, expected);
  assert_int_equal(size_bytes, strlen(expected));
  free(renamed);
}

/* Renames the symbols that the PTX defines for other PTX, and no text that only looks like them. */
static void test_renamed(void **state)
{
  (void)state;
  expect_renamed(".visible .func (.param .b32 r) f(.param .b32 f_0)\n{ call (r), f, (f_0); ret; }",
                 ".visible .func (.param .b32 r) f$x(.param .b32 f_0)\n"
                 "{ call (r), f$x, (f_0); ret; }");
  expect_renamed(".weak .func g();.func local(){call g;}", ".weak .func g$x();.func local(){call "
                                                           "g$x;}");
  expect_renamed(".visible .global .attribute(.managed) .align 4 .u32 v[2] = {1, 2};\n"
                 "mov.u64 %rd1, v; ld.u32 %v, [v+4]; // v\n",
                 ".visible .global .attribute(.managed) .align 4 .u32 v$x[2] = {1, 2};\n"
                 "mov.u64 %rd1, v$x; ld.u32 %v, [v$x+4]; // v\n");
  expect_renamed(".common .global .f32 f40; .extern .func h; mul.f32 a.f40, 0f40200000, f40;",
                 ".common .global .f32 f40$x; .extern .func h; mul.f32 a.f40, 0f40200000, f40$x;");
  expect_renamed("/* .visible .func c() */ .file 1 \"a \\\" e.cu\"\n.visible .entry e(){}",
                 "/* .visible .func c() */ .file 1 \"a \\\" e.cu\"\n.visible .entry e$x(){}");
  /* instructions are not symbols, but functions may have their names */
  expect_renamed(".visible .func (.param .b64 r) add(.param .b64 x)\n{ .loc 1 2 3\n"
                 "add.f64 %a, %b, %c; @!%p add.f64 %a, %b, {%c}; call (r), add, (x);\n"
                 "L: add.f64 %a, %b, %c; // add\n{ add.f64 %a, %b, %c; } add : bra add; }",
                 ".visible .func (.param .b64 r) add$x(.param .b64 x)\n{ .loc 1 2 3\n"
                 "add.f64 %a, %b, %c; @!%p add.f64 %a, %b, {%c}; call (r), add$x, (x);\n"
                 "L: add.f64 %a, %b, %c; // add\n{ add.f64 %a, %b, %c; } add$x : bra add$x; }");
  expect_renamed(".visible .func exit() .noreturn { call exit; @%p exit; exit; }\n"
                 ".global .u64 t[2] = { exit, exit }; .func f() { exit; }",
                 ".visible .func exit$x() .noreturn { call exit$x; @%p exit; exit; }\n"
                 ".global .u64 t[2] = { exit$x, exit$x }; .func f() { exit; }");
  expect_renamed(".visible", ".visible");
  expect_renamed(".visible .func (", ".visible .func (");
  expect_renamed("\"no end", "\"no end");
  expect_renamed("/*", "/*");
}

/* Two codes that define a function of one name are linked under different symbols. */
static void test_two_codes(void **state)
{
  static const char second[] = ".version 7.8\n.visible .func step(.param .b32 x) { trap; }\n";
  kjit_module *module = bind(open_module(*state), "step", ptx, strlen(ptx)), *library, *linked;
  library = bind(open_module(*state), "step", second, strlen(second));
  assert_int_equal(kjit_link_module(module, library, &linked), KJIT_OK);
  kj_link_inputs inputs;
  kj_diagnostics diagnostics = { 0 };
  kj_buffer all = { 0 }, symbols[2] = { { 0 } };
  const ki_function *steps[2];
  for (size_t i = 0, found = 0; i < linked->decls.count && found < 2; i++)
    if (!strcmp(linked->decls.items[i]->name, "step"))
      steps[found++] = linked->decls.items[i]->function;
  for (size_t i = 0; i < 2; i++) {
    ki_append_extern_symbol(steps[i], true, &symbols[i]);
    kj_append_format(&all, "call %s;\n", symbols[i].text);
  }
  const kj_code code = { .entry = (char *)"k", .data = all.text, .size_bytes = all.length };
  assert_int_equal(kj_list_link_inputs(linked, &code, &diagnostics, &inputs), KJIT_OK);
  assert_int_equal(inputs.count, 3);
  assert_ptr_equal(inputs.items[0].data, all.text);
  for (size_t i = 0; i < 2; i++) {
    const kj_link_input *input = &inputs.items[1 + i];
    assert_non_null(strstr(input->data, symbols[i].text));
    assert_null(strstr(input->data, symbols[1 - i].text));
    assert_int_equal(input->data[input->size_bytes], 0);
  }
  for (size_t i = 0; i < 2; i++) kj_free_buffer(&symbols[i]);
  kj_free_link_inputs(&inputs);
  kj_free_buffer(&all);
  kjit_release_module(linked);
  kjit_release_module(library);
  kjit_release_module(module);
}

static void test_stack(void **state)
{
  kjit_module *module = open_module(*state), *again = open_module(*state);
  fake.text = NULL;
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.limits_set, 0);
  kjit_release_module(module);
  fake.stack_bytes = 8192;
  assert_int_equal(launch(*state, again), KJIT_OK);
  assert_int_equal(cuda.stack_bytes, 8192);
  module = open_module(*state);
  cuda.stack_bytes = 65536; /* the application sets a larger limit */
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.stack_bytes, 65536);
  assert_int_equal(cuda.limits_set, 1);
  fake.stack_bytes = 0;
  kjit_release_module(module);
  kjit_release_module(again);
}

static void test_kinds(void **state)
{
  static const struct {
    const char *code;
    size_t size_bytes;
    ki_code_kind kind;
  } cases[] = {
    { ptx, sizeof ptx - 1, KJ_CODE_PTX },
    { "BC\xC0\xDE....", 8, KJ_CODE_BITCODE },
    { "\xDE\xC0\x17\x0B....", 8, KJ_CODE_BITCODE },
    { "; a comment\n\ntarget triple = \"nvptx64\"\n", 39, KJ_CODE_LLVM_TEXT },
    { "define float @f() { ret float 0.0 }", 35, KJ_CODE_LLVM_TEXT },
    { "%t = type { i32 }\n", 18, KJ_CODE_LLVM_TEXT },
    { "\x7f"
      "ELF....",
      8, KJ_CODE_NONE },
    { "// only a comment", 17, KJ_CODE_NONE },
    { "/* no end", 9, KJ_CODE_NONE },
    { "/*/ .version 7.8\n", 17, KJ_CODE_NONE },
    { ".version", 8, KJ_CODE_NONE },
    { ".version 7.8\n\0.target", 21, KJ_CODE_NONE },
    { "", 0, KJ_CODE_NONE },
  };
  kjit_module *module = open_module(*state);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kjit_module *bound = NULL;
    kjit_status status =
      kjit_bind_extern(module, "step", NULL, cases[i].code, cases[i].size_bytes, &bound);
    assert_int_equal(status, cases[i].kind == KJ_CODE_NONE ? KJIT_ERROR_SYNTAX : KJIT_OK);
    if (bound) assert_int_equal(ki_find_decl(bound, "step")->function->bound->kind, cases[i].kind);
    kjit_release_module(bound);
  }
  kjit_release_module(module);
}

/* ---- linked code ---- */

static const char cubin[] = "\177ELF..............\xBE\0 of a GPU";

static kjit_module *bind_linked(kjit_module *module, const char *name, const char *symbol,
                                const kjit_link_input *inputs, size_t count)
{
  kjit_module *bound = NULL;
  assert_int_equal(kjit_bind_linked(module, name, symbol, inputs, count, &bound), KJIT_OK);
  kjit_release_module(module);
  return bound;
}

/* Both funcs use the cubin, which is linked once. The functions keep their names. */
static void test_linked(void **state)
{
  const kjit_link_input inputs[] = { { .name = "a.cubin", .data = cubin, .data_bytes = 30 },
                                     { .name = "b.ptx", .data = ptx, .data_bytes = sizeof ptx } };
  kjit_module *module = bind_linked(open_module(*state), "step", "first", inputs, 2);
  module = bind_linked(module, "other", NULL, inputs, 1);
  fake.text = ".version 7.8\n.extern .func first;\n.entry k { call first; call other; }\n";
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.inputs, 3);
  assert_int_equal(cuda.input_types[0], 1); /* CUjitInputType: PTX, cubin, PTX */
  assert_int_equal(cuda.input_types[1], 0);
  assert_int_equal(cuda.input_types[2], 1);
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.inputs, 3);
  kjit_release_module(module);
}

/* Rejected, because it would be undefined which of the two functions is called. `.weak` allows
 * either. */
static void test_defined_twice(void **state)
{
  static const char weak[] = ".version 7.8\n.weak .func both { ret; }\n.weak .func both { ret; }\n";
  static const char again[] = "  .version 7.8\n.visible .func step(.param .b32 x) { ret; }\n";
  kjit_link_input twice[] = { { .name = "a.ptx", .data = ptx, .data_bytes = sizeof ptx },
                              { .name = "b.ptx", .data = weak, .data_bytes = sizeof weak },
                              { .name = "d.ptx", .data = weak, .data_bytes = 40 },
                              { .name = "b.ptx", .data = weak, .data_bytes = sizeof weak } };
  kjit_module *module = bind_linked(open_module(*state), "step", NULL, twice, 4);
  fake.text = ".version 7.8\n.entry k { call step; }\n";
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.inputs, 4);
  twice[3] = (kjit_link_input){ .name = "c.ptx", .data = again, .data_bytes = sizeof again };
  module = bind_linked(module, "step", NULL, twice, 4);
  assert_int_equal(launch(*state, module), KJIT_ERROR_COMPILE);
  assert_non_null(strstr(last_message(*state), "`step` is defined twice in the code that is "
                                               "linked: by `a.ptx` and by `c.ptx`"));
  kjit_release_module(module);
}

static void test_linked_uncalled(void **state)
{
  const kjit_link_input input = { .data = "no CUDA C at all", .data_bytes = 16 };
  kjit_module *module = bind_linked(open_module(*state), "step", NULL, &input, 1);
  fake.text = ".version 7.8\n.entry k { ret; }\n";
  assert_int_equal(launch(*state, module), KJIT_OK);
  assert_int_equal(cuda.inputs, 1);
  kjit_release_module(module);
}

/* Each part of the linked code changes the part of the key about the func. */
static void test_linked_keys(void **state)
{
  const kjit_link_input inputs[] = {
    { .name = "a.cu", .data = "int a;", .data_bytes = 6 },
    { .name = "b.cu", .data = "int a;", .data_bytes = 6 },
    { .name = "a.cu", .data = "int b;", .data_bytes = 6 },
    { .name = "a.cu", .data = "int a;", .data_bytes = 6, .options = "-DA" },
    { .name = "a.cu", .data = cubin, .data_bytes = 30 },
    { .name = "a.cu", .data = cubin, .data_bytes = 30, .format = KJIT_LINK_LTOIR },
  };
  enum { COUNT = sizeof inputs / sizeof *inputs };
  kj_buffer keys[COUNT + 1] = { { 0 } };
  for (size_t i = 0; i < COUNT + 1; i++) {
    kjit_module *module =
      bind_linked(open_module(*state), "step", i == COUNT ? "f" : NULL, &inputs[i % COUNT], 1);
    kj_add_extern_key(module, true, 0, &keys[i]);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(keys[i].text, keys[k].text);
    kjit_release_module(module);
  }
  for (size_t i = 0; i < COUNT + 1; i++) kj_free_buffer(&keys[i]);
}

/* Returns whether code with a text of CUDA C is kept in the disk cache. *key is its key. */
static bool is_kept(kjit_module *module, const char *text, const char *options, char **key)
{
  const kjit_link_input input = {
    .name = "f.cu", .data = text, .data_bytes = strlen(text), .options = options
  };
  kj_buffer made = { 0 };
  kjit_module *bound = bind_linked(module, "step", NULL, &input, 1);
  kj_add_extern_key(bound, true, 0, &made);
  bool is_current = kj_is_extern_key_current(bound, 0, made.text);
  kjit_release_module(bound);
  if (key) *key = kj_take_text(&made);
  else kj_free_buffer(&made);
  return is_current;
}

static bool has_nvrtc(void)
{
  kj_buffer folders = { 0 };
  bool has = kj_list_toolkit_headers(0, &folders);
  kj_free_buffer(&folders);
  return has;
}

/* Code is kept if all files that it includes can be found. */
static void test_includes(void **state)
{
  static const struct {
    const char *text, *options;
    bool is_kept;
  } cases[] = { { "int a;", "", true },
                { "#define A 1\nint include;", "", true },
                { "#include <not_there.h>\n", "-I/nowhere\n-DA=1", true },
                { "int a;\n #\t include \"not_there.h\"", "", true },
                { "#if __has_include(<a.h>)\n#endif", "", false },
                { "#define A <a.h>\n#include A\n", "", false },
                { "#include /**/ <a.h>\n", "", false },
                { "#/**/include <a.h>\n#include <b.h>\n", "", false },
                { "#inc\\\nlude <a.h>\n#include <b.h>\n", "", false },
                { "#include <a.h\n", "", false },
                { "#include <b.h>\n#include_next <a.h>\n", "", false },
                { "#include <b.h>\n#import <a.h>\n", "", false },
                { "#include <b.h>\n", "--pre-include=a.h", false },
                { "#include <b.h>\n", "-I", false },
                { "#include \"/dev/null\"\n", "", false },
                { "%:include A\n#include <b.h>\n", "", false } };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    bool wanted = cases[i].is_kept && (has_nvrtc() || i < 2);
    assert_int_equal(is_kept(open_module(*state), cases[i].text, cases[i].options, NULL), wanted);
  }
}

static void write_file(const char *folder, const char *name, const char *text)
{
  char path[200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  fclose(file);
}

/* The key changes with each file that is included, also by an included file, and with a file that
 * becomes the one that NVRTC finds. */
static void test_included_files(void **state)
{
  static const struct {
    const char *name, *text;
  } steps[] = { { "a.cuh", "#include \"b.cuh\"\n" },
                { "b.cuh", "int b;\n" },
                { "b.cuh", "int c;\n" },
                { "second/a.cuh", "int d;\n" },
                { "c.cuh", "#include \"a.cuh\"\n" } };
  enum { COUNT = sizeof steps / sizeof *steps };
  char folder[] = "/tmp/kjit-includes-XXXXXX", second[100], options[300], *keys[COUNT + 1];
  if (!has_nvrtc()) return;
  assert_non_null(mkdtemp(folder));
  snprintf(second, sizeof second, "%s/second", folder);
  assert_int_equal(mkdir(second, 0700), 0);
  snprintf(options, sizeof options, "-I%s\n-I%s", folder, second);
  static const char text[] = "#include <a.cuh>\n#include <c.cuh>\n";
  for (size_t i = 0; i <= COUNT; i++) {
    if (i) write_file(folder, steps[i - 1].name, steps[i - 1].text);
    assert_true(is_kept(open_module(*state), text, options, &keys[i]));
    char *again;
    assert_true(is_kept(open_module(*state), text, options, &again));
    assert_string_equal(again, keys[i]);
    free(again);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(keys[i], keys[k]);
  }
  for (size_t i = 0; i <= COUNT; i++) free(keys[i]);
  static const char *const made[] = { "a.cuh", "b.cuh", "c.cuh", "second/a.cuh", "second", "." };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, made[i]);
    assert_int_equal(remove(strcmp(made[i], ".") ? path : folder), 0);
  }
}

static void test_link_formats(void **state)
{
  static const struct {
    const char *data;
    size_t data_bytes;
    kjit_link_format given, found; /* found DETECT: refused */
  } cases[] = {
    { ptx, sizeof ptx, KJIT_LINK_DETECT, KJIT_LINK_PTX },
    { ptx, sizeof ptx - 1, KJIT_LINK_PTX, KJIT_LINK_PTX },
    { ptx, sizeof ptx, KJIT_LINK_CUDA_C, KJIT_LINK_DETECT },
    { "__device__ int f;", 18, KJIT_LINK_DETECT, KJIT_LINK_CUDA_C },
    { "__device__ int f;", 17, KJIT_LINK_PTX, KJIT_LINK_DETECT },
    { "", 0, KJIT_LINK_CUDA_C, KJIT_LINK_CUDA_C },
    { "/* no end", 9, KJIT_LINK_DETECT, KJIT_LINK_CUDA_C },
    { "int\0f;", 6, KJIT_LINK_DETECT, KJIT_LINK_DETECT },
    { cubin, 30, KJIT_LINK_DETECT, KJIT_LINK_CUBIN },
    { cubin, 30, KJIT_LINK_OBJECT, KJIT_LINK_DETECT },
    { cubin, 19, KJIT_LINK_DETECT, KJIT_LINK_DETECT },
    { "\177ELF..............>\0 of a CPU", 30, KJIT_LINK_DETECT, KJIT_LINK_OBJECT },
    { "\x50\xED\x55\xBA....", 8, KJIT_LINK_DETECT, KJIT_LINK_FATBIN },
    { "!<arch>\n", 8, KJIT_LINK_DETECT, KJIT_LINK_ARCHIVE },
    { "!<arch>", 7, KJIT_LINK_ARCHIVE, KJIT_LINK_DETECT },
    { "\xED\x43\x4E\x7F....", 8, KJIT_LINK_DETECT, KJIT_LINK_LTOIR },
    { ptx, sizeof ptx, (kjit_link_format)8, KJIT_LINK_DETECT },
    { NULL, 0, KJIT_LINK_DETECT, KJIT_LINK_DETECT },
  };
  kjit_module *module = open_module(*state);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kjit_module *bound = NULL;
    const kjit_link_input input = { .format = cases[i].given,
                                    .data = cases[i].data,
                                    .data_bytes = cases[i].data_bytes };
    kjit_status status = kjit_bind_linked(module, "step", NULL, &input, 1, &bound);
    assert_int_equal(status, cases[i].found ? KJIT_OK : KJIT_ERROR_ARGUMENT);
    if (bound)
      assert_int_equal(ki_find_decl(bound, "step")->function->bound->linked[0].format,
                       cases[i].found);
    kjit_release_module(bound);
  }
  kjit_release_module(module);
}

static void test_link_calls(void **state)
{
  const kjit_link_input input = { .data = ptx, .data_bytes = sizeof ptx };
  kjit_module *module = open_module(*state), *bound = NULL;
  assert_int_equal(kjit_bind_linked(NULL, "step", NULL, &input, 1, &bound), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_bind_linked(module, NULL, NULL, &input, 1, &bound), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_bind_linked(module, "step", NULL, &input, 1, NULL), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_bind_linked(module, "step", NULL, NULL, 1, &bound), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_bind_linked(module, "step", NULL, &input, 0, &bound), KJIT_ERROR_ARGUMENT);
  assert_int_equal(kjit_bind_linked(module, "k", NULL, &input, 1, &bound), KJIT_ERROR_NAME);
  assert_int_equal(kjit_bind_linked(module, "step", "a b", &input, 1, &bound), KJIT_ERROR_NAME);
  assert_int_equal(kjit_bind_linked(module, "step", "", &input, 1, &bound), KJIT_ERROR_NAME);
  assert_null(bound);
  kjit_release_module(module);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = { TEST(test_link),           TEST(test_uncalled),
                                      TEST(test_refused),        TEST(test_renamed),
                                      TEST(test_two_codes),      TEST(test_stack),
                                      TEST(test_kinds),          TEST(test_linked),
                                      TEST(test_defined_twice),  TEST(test_linked_uncalled),
                                      TEST(test_linked_keys),    TEST(test_includes),
                                      TEST(test_included_files), TEST(test_link_formats),
                                      TEST(test_link_calls) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
