/* Messages between the runtime and its child processes. A module has the same meaning in a context
 * with other type numbers. Damaged bytes are rejected or read as other values, but never lead to
 * accesses outside of the message. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <string.h>

#include "code/child.h"
#include "ir/context.h"

static const char text[] =
  "struct pair @align(16) { a: f32x4; b: i32[3]; c: f64* }\n"
  "const table: f32[2, 2] = { { 1, 2 }, { 3, -4 } }\n"
  "func twice(x, f: func) { return f(x) + f(x) }\n"
  "func both(a, b) { return a // b, a % b }\n"
  "kernel k(y, p: const pair[:, :] F, const n: i32 = 3) @launch_bounds(128) {\n"
  "  shared s: pair[4]\n"
  "  var t = 0.5\n"
  "  for i in range(0, n) @unroll(2) {\n"
  "    if i > 1 { t += twice(table[i % 2, 0], sqrt) } else { t = select(i == 0, t, 2.0) }\n"
  "  }\n"
  "  let u, v = both(7, n)\n"
  "  assert t > 0.0, \"t\"\n"
  "  print(\"t is\", t)\n"
  "  y[0] = f32x2(t, u + v)[0]\n"
  "}\n";

static kjit_context *make_context(void)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  kjit_context *context;
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  return context;
}

static char *print(const kjit_module *module)
{
  kj_buffer buffer = { 0 };
  ki_print_module(module, &buffer);
  return kj_take_text(&buffer);
}

/* Returns the bytes of a request to compile the kernel. */
static kj_buffer pack_kernel(kjit_module *module)
{
  kj_buffer bytes = { 0 };
  const kj_argument arguments[] = { { .kind = KJ_ARGUMENT_ARRAY,
                                      .type = ki_array_type(module->types, KJIT_F32, 1,
                                                            KJIT_LAYOUT_C, false) } };
  const kj_signature signature = { .arguments = arguments,
                                   .count = 1,
                                   .relations = (const uint8_t[]){ KJ_RELATION_SAME } };
  const kj_compile_request compile = { .module = module,
                                       .kernel = ki_find_decl(module, "k")->function,
                                       .signature = &signature,
                                       .symbol = "name" };
  assert_true(kj_pack_request(module->types, &(kj_child_request){ .compile = &compile }, &bytes));
  return bytes;
}

static kjit_module *parse(kjit_context *context)
{
  kjit_module *module;
  if (kjit_parse_module(context, "t.kir", text, strlen(text), &module) == KJIT_OK) return module;
  fail_msg("%s", kjit_copy_diagnostics_text(context));
  return NULL;
}

static void test_module(void **state)
{
  (void)state;
  jmp_buf on_failure;
  kj_arena arena;
  kjit_context *context = make_context(), *other = make_context();
  kjit_module *module = parse(context);
  (void)ki_intern_tuple(other->types, (kjit_type[]){ KJIT_F32, KJIT_I64 }, 2);
  kj_buffer bytes = pack_kernel(module);
  kj_init_arena(&arena, &on_failure);
  assert_int_equal(setjmp(on_failure), 0);
  const kj_child_request *request = kj_unpack_request(other, bytes.text, bytes.length, &arena);
  assert_non_null(request);
  assert_string_equal(request->compile->symbol, "name");
  assert_int_equal(request->compile->signature->relations[0], KJ_RELATION_SAME);
  assert_ptr_equal(request->compile->kernel->module, request->compile->module);
  const kjit_type array = request->compile->signature->arguments[0].type;
  assert_int_equal(array, ki_array_type(other->types, KJIT_F32, 1, KJIT_LAYOUT_C, false));
  char *before = print(module), *after = print(request->compile->module);
  assert_string_equal(before, after);
  assert_string_equal(request->compile->module->sources.items[0].text, text);
  free(before);
  free(after);
  kj_free_arena(&arena);
  kj_free_buffer(&bytes);
  kjit_release_module(module);
  kjit_destroy_context(context);
  kjit_destroy_context(other);
}

static uint64_t draw(void)
{
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static kj_buffer pack_answer(const ki_types *types)
{
  kj_buffer bytes = { 0 };
  char code[] = "code";
  kj_parameter parameters[2] = { { .size_bytes = 8 }, { .offset = 8, .size_bytes = 8 } };
  kjit_diagnostic said[] = { { .severity = KJIT_SEVERITY_WARNING,
                               .status = KJIT_OK,
                               .file = "f",
                               .line = 1,
                               .message = "m",
                               .source_line = "s" } };
  kj_child_answer answer = { .diagnostics = said, .diagnostic_count = 1 };
  answer.code = (kj_code){ .data = code,
                           .size_bytes = strlen(code),
                           .entry = (char[]){ "k" },
                           .facts = (char[]){ "" },
                           .parameters = parameters,
                           .parameter_count = 2,
                           .parameter_bytes = 16,
                           .result = ki_find_scalar("f32", 3) };
  assert_true(kj_pack_answer(types, &answer, &bytes));
  return bytes;
}

static void test_answer(void **state)
{
  (void)state;
  kjit_context *context = make_context();
  kj_buffer bytes = pack_answer(context->types);
  kj_diagnostics diagnostics = { 0 };
  kj_code code = { 0 };
  kjit_status status;
  assert_true(
    kj_take_answer(context->types, bytes.text, bytes.length, &diagnostics, &code, &status));
  assert_int_equal(status, KJIT_OK);
  assert_string_equal(code.data, "code");
  assert_string_equal(code.entry, "k");
  assert_null(code.failure_texts);
  assert_int_equal(code.parameters[1].offset, 8);
  assert_int_equal(diagnostics.count, 1);
  assert_string_equal(diagnostics.items[0].source_line, "s");
  kj_free_code(&code);
  kj_free_diagnostics(&diagnostics);
  for (size_t length = 0; length < bytes.length; length++)
    if (kj_take_answer(context->types, bytes.text, length, &diagnostics, &code, &status)) {
      kj_free_code(&code);
      kj_free_diagnostics(&diagnostics);
    }
  kj_free_buffer(&bytes);
  kjit_destroy_context(context);
}

/* Overwrites words by offsets, lengths and random bits. The damaged copy is a separate allocation,
 * so the address sanitizer reports reads after its end. */
static void test_damage(void **state)
{
  enum { ROUNDS = 20000 };
  (void)state;
  kjit_context *context = make_context();
  kj_buffer bytes = pack_answer(context->types);
  int refused = 0;
  for (int i = 0; i < ROUNDS; i++) {
    char *damaged = malloc(bytes.length);
    kj_diagnostics diagnostics = { 0 };
    kj_code code = { 0 };
    kjit_status status;
    memcpy(damaged, bytes.text, bytes.length);
    for (uint64_t words = 1 + draw() % 3; words--;) {
      const uint64_t values[] = { draw() % bytes.length / 16 * 16, draw() % 64, draw(),
                                  UINT64_MAX - draw() % 64, (uint64_t)1 << draw() % 64 };
      memcpy(damaged + draw() % (bytes.length / 8) * 8, &values[draw() % 5], sizeof *values);
    }
    refused += !kj_take_answer(context->types, damaged, bytes.length, &diagnostics, &code, &status);
    kj_free_code(&code);
    kj_free_diagnostics(&diagnostics);
    free(damaged);
  }
  assert_in_range(refused, ROUNDS / 10, ROUNDS);
  kj_free_buffer(&bytes);
  kjit_destroy_context(context);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_module),
    cmocka_unit_test(test_answer),
    cmocka_unit_test(test_damage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
