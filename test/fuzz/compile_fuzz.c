/* Parses, infers and lowers for both targets. For any text, compiling ends with code or with a
 * diagnostic, and the context stays usable. Signatures are chosen by the input's bytes, so an input
 * always has the same outcome. LLVM's verifier checks the lowered code. */
#include <kjit/kjit.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const array_types[] = { "f32[:] C",    "f64[:] C",  "i32[:] C",    "u8[:] C",
                                           "f32[:, :] C", "f32[:, :]", "f32[:, :] F", "i64[:] C",
                                           "bool[:] C",   "f16[:]",    "bf16[:] C",   "u64[]",
                                           "f32x4[:] C",  "c64[:] C",  "i32x3[:]",    "f16x2[:] C",
                                           "c128[:]" };
static const char *const scalar_types[] = { "f32", "i32",  "f64", "u32",
                                            "i64", "bool", "c64", "f32x2" };
static const char *const values[] = { "16", "4", "1", "0", "-1", "2.5", "8" };

static uint32_t draw(uint32_t *state, uint32_t count)
{
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 16) % count;
}

#define PICK(state, list) (list)[draw(state, (uint32_t)(sizeof(list) / sizeof *(list)))]

static const char *draw_argument(const kjit_parameter_info *info, const char *array,
                                 uint32_t *state)
{
  if (info->is_const) return PICK(state, values);
  if (info->is_read || info->is_written) return draw(state, 8) ? array : PICK(state, array_types);
  return draw(state, 4) ? PICK(state, scalar_types) : array;
}

/* Chooses a signature. Most arguments get one array type, so that type inference succeeds for many
 * kernels. A func parameter gets the first plausible name in the module; a wrong name gives a
 * diagnostic. */
static int draw_signature(kjit_kernel *kernel, uint32_t *state, char *text, size_t capacity)
{
  const char *array = PICK(state, array_types);
  size_t length = 0;
  kjit_parameter_info info = { .size_bytes = sizeof info };
  text[0] = 0;
  for (size_t i = 0; kjit_get_parameter_info(kernel, i, &info) == KJIT_OK; i++) {
    const char *argument = info.is_function ? "add" : draw_argument(&info, array, state);
    int written = snprintf(text + length, capacity - length, "%s%s", i ? ", " : "", argument);
    if (written < 0 || (size_t)written >= capacity - length) return 0;
    length += (size_t)written;
  }
  return 1;
}

static void compile_both(kjit_kernel *kernel, const char *signature, uint32_t *state)
{
  static const char *const targets[] = { "cpu", "sm_75", "sm_90" };
  kjit_compile_options options = { .size_bytes = sizeof options };
  options.target = draw(state, 2) ? targets[0] : targets[1 + draw(state, 2)];
  options.facts = draw(state, 2) ? "all" : NULL;
  void *code;
  size_t size;
  if (kjit_compile(kernel, signature, &options, KJIT_STAGE_LLVM, &code, &size) == KJIT_OK)
    kjit_free(NULL, code);
}

/* Imports open no files: every name refers to one of two small sources, which import each other. */
static int find_import(void *user, const char *importer, const char *name,
                       kjit_import_source *import)
{
  static const char first[] = "import \"second\"\nfunc imported(x) { return other(x) + 1 }\n",
                    second[] = "import \"first\"\nfunc other(x) { return 2 * x }\n";
  (void)user, (void)importer;
  int is_first = name[0] % 2;
  import->name = is_first ? "first" : "second";
  import->text = is_first ? first : second;
  import->text_bytes = is_first ? sizeof first - 1 : sizeof second - 1;
  return name[0] != 'n';
}

static kjit_context *create_context(void)
{
  kjit_context *context = NULL;
  kjit_config config = { .size_bytes = sizeof config };
  config.find_import = find_import;
  if (kjit_create_context(&config, &context) != KJIT_OK) abort();
  return context;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  /* one context for all inputs, because an error must not affect later inputs */
  static kjit_context *context;
  if (!context) context = create_context();
  uint32_t state = 1;
  for (size_t i = 0; i < size; i++) state = state * 31 + data[i];

  kjit_module *module;
  if (kjit_parse_module(context, "fuzz", (const char *)data, size, &module) != KJIT_OK) {
    if (!kjit_get_diagnostic(context, 0)) abort(); /* rejected without a reason */
    return 0;
  }
  const char *name;
  for (size_t i = 0; i < 4 && (name = kjit_get_kernel_name(module, i)); i++) {
    kjit_kernel *kernel;
    char signature[1024];
    if (kjit_get_kernel(module, name, &kernel) != KJIT_OK) abort();
    for (int round = 0; round < 2; round++)
      if (draw_signature(kernel, &state, signature, sizeof signature))
        compile_both(kernel, signature, &state);
  }
  kjit_release_module(module);
  return 0;
}
