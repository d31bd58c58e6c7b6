/* Constants are identified by their bits. NaNs with different signs or payloads, and zeros of both
 * signs, have different texts and different code in the cache, and a sealed kernel distinguishes
 * them.
 * RUN: %programs/nan_constants cpu %t.cache
 * RUN: %if cuda %{ %programs/nan_constants cuda %t.cuda.cache %}
 */
#include <kjit/kjit.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kjit_context *context;
static kjit_device *device;
static int failures;

#define REQUIRE(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

static void fail(const char *what, int line)
{
  char *said = kjit_copy_diagnostics_text(context);
  printf("line %d: %s\n%s\n", line, what, said ? said : "");
  kjit_free(context, said);
  failures++;
}

static kjit_module *parse(const char *text)
{
  kjit_module *module = NULL;
  REQUIRE(kjit_parse_module(context, "nan.kir", text, strlen(text), &module) == KJIT_OK);
  return module;
}

/* Returns a tensor of one unsigned integer in host memory. */
static kjit_tensor tensor_of(void *data, uint32_t bytes)
{
  static int64_t one = 1;
  return (kjit_tensor){ .data = data,
                        .device_type = 1,
                        .rank = 1,
                        .code = 1,
                        .bits = (uint8_t)(8 * bytes),
                        .lanes = 1,
                        .shape = &one };
}

/* Returns the bits that kernel `name` writes to r[0]. */
static uint64_t run(kjit_module *module, const char *name, uint32_t bytes, const kjit_arg *more)
{
  uint64_t result = 0;
  kjit_kernel *kernel;
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  kjit_tensor r = tensor_of(&result, bytes);
  kjit_arg arguments[2] = { kjit_arg_tensor(&r) };
  if (more) arguments[1] = *more;
  REQUIRE(kjit_get_kernel(module, name, &kernel) == KJIT_OK &&
          kjit_launch(kernel, &config, arguments, more ? 2 : 1) == KJIT_OK &&
          kjit_synchronize_device(device) == KJIT_OK);
  return result;
}

/* Expects the bits in the module with the constant, and in the module that is parsed from its
 * text. */
static char *expect_constant(const kjit_module *module, const char *name, const char *kernel,
                             kjit_type type, uint32_t bytes, uint64_t bits)
{
  kjit_module *changed = NULL, *parsed = NULL;
  char *text = NULL, *again = NULL;
  kjit_arg value = kjit_arg_value(type, &bits);
  REQUIRE(kjit_set_constant((kjit_module *)module, name, &value, &changed) == KJIT_OK);
  REQUIRE(run(changed, kernel, bytes, NULL) == bits);
  REQUIRE(kjit_copy_module_text(changed, &text) == KJIT_OK);
  parsed = parse(text);
  REQUIRE(kjit_copy_module_text(parsed, &again) == KJIT_OK && strcmp(text, again) == 0);
  REQUIRE(run(parsed, kernel, bytes, NULL) == bits);
  kjit_release_module(parsed);
  kjit_release_module(changed);
  kjit_free(context, again);
  return text;
}

/* The condition is not known before the launch, so that the constant reaches the code. */
static void test_constants(void)
{
  static const struct {
    const char *name, *kernel;
    kjit_type type;
    uint32_t bytes;
    uint64_t bits[5];
  } rows[] = {
    { "S", "single", KJIT_F32, 4, { 0x7fc00000, 0x7fc00001, 0xffc00000, 0xffd55555, 0x80000000 } },
    { "H", "half", KJIT_F16, 2, { 0x7e00, 0x7e01, 0xfe00, 0xff55, 0x8000 } },
    { "B", "brain", KJIT_BF16, 2, { 0x7fc0, 0x7fc1, 0xffc0, 0xffd5, 0x8000 } },
    { "D",
      "real",
      KJIT_F64,
      8,
      { 0x7ff8000000000000, 0x7ff8000000000001, 0xfff8000000000000, 0xfff8123456789abc,
        0x8000000000000000 } },
  };
  kjit_module *module =
    parse("const S: f32 = 0\nconst H: f16 = 0\nconst B: bf16 = 0\nconst D: f64 = 0\n"
          "kernel single(r) @grid(1) @block(1) { r[0] = bitcast(u32, blockIdx.x > 5 ? 0.0 : S) }\n"
          "kernel half(r) @grid(1) @block(1) { r[0] = bitcast(u16, blockIdx.x > 5 ? 0.0 : H) }\n"
          "kernel brain(r) @grid(1) @block(1) { r[0] = bitcast(u16, blockIdx.x > 5 ? 0.0 : B) }\n"
          "kernel real(r) @grid(1) @block(1) { r[0] = bitcast(u64, blockIdx.x > 5 ? 0.0 : D) }\n");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *texts[5];
    for (size_t k = 0; k < 5; k++)
      texts[k] = expect_constant(module, rows[i].name, rows[i].kernel, rows[i].type, rows[i].bytes,
                                 rows[i].bits[k]);
    for (size_t k = 1; k < 5; k++) REQUIRE(strcmp(texts[0], texts[k]) != 0);
    for (size_t k = 0; k < 5; k++) kjit_free(context, texts[k]);
  }
  kjit_release_module(module);
}

static void test_const_parameters(void)
{
  kjit_module *module =
    parse("kernel k(r, const C) @grid(1) @block(1) { r[0] = bitcast(u32, C) }\n");
  const uint32_t bits[] = { 0x7fc00000, 0x7fc00001, 0xffc00000, 0, 0x80000000 };
  for (size_t i = 0; i < sizeof bits / sizeof *bits; i++) {
    kjit_arg value = kjit_arg_value(KJIT_F32, &bits[i]);
    REQUIRE(run(module, "k", 4, &value) == bits[i]);
  }
  kjit_release_module(module);
}

static void test_sealed(void)
{
  kjit_module *module =
    parse("kernel k(r, const C: f32) @grid(1) @block(1) { r[0] = bitcast(u32, C) }\n");
  kjit_kernel *kernel;
  kjit_specialization *made;
  REQUIRE(kjit_get_kernel(module, "k", &kernel) == KJIT_OK);
  REQUIRE(kjit_specialize(kernel, device, "u32[:] C, nan", &made) == KJIT_OK);
  REQUIRE(kjit_specialize(kernel, device, "u32[:] C, 0.0", &made) == KJIT_OK);
  REQUIRE(kjit_seal_kernel(kernel) == KJIT_OK);
  const struct {
    uint32_t bits;
    kjit_status status;
  } rows[] = { { 0x7fc00000, KJIT_OK },
               { 0, KJIT_OK },
               { 0x80000000, KJIT_ERROR_ARGUMENT },
               { 0x7fc00001, KJIT_ERROR_ARGUMENT } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t result = 1;
    kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
    kjit_tensor r = tensor_of(&result, 4);
    kjit_arg arguments[2] = { kjit_arg_tensor(&r), kjit_arg_value(KJIT_F32, &rows[i].bits) };
    REQUIRE(kjit_launch(kernel, &config, arguments, 2) == rows[i].status);
    REQUIRE(kjit_synchronize_device(device) == KJIT_OK);
    REQUIRE(rows[i].status != KJIT_OK || result == rows[i].bits);
  }
  kjit_release_module(module);
}

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  kjit_device_kind kind = strcmp(argv[1], "cuda") == 0 ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = argv[2];
  if (kjit_create_context(&config, &context) != KJIT_OK ||
      kjit_get_device(context, kind, 0, &device) != KJIT_OK)
    return EXIT_FAILURE;
  test_constants();
  test_const_parameters();
  test_sealed();
  kjit_destroy_context(context);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
