/* Sources of guests next to sources of the application: which source is trusted, depending on the
 * call, the import and the default; and that code of one is never used for the other.
 * RUN: rm -rf %t && %if assertions %{ env FACTS_ARE_ASSERTED=1 %} %programs/guests %t
 */
#include <stdlib.h>

#include "functions.h"

static const char *cache;
static const char peek[] = "kernel k(r, i) @block(1) @grid(1) { r[0] = r[i] }\n"
                           "func at(x, i) { return x[i] }\n"
                           "func half(x) { return x * 0.5 }\n",
                  address[] =
                    "kernel k(r) @block(1) @grid(1) { r[0] = bitcast(f32*, u64(8))[0] }\n";

static kjit_status parse_as(kjit_trust trust, const char *text, kjit_module **module)
{
  *module = NULL;
  return kjit_parse_module_as(context, trust, "guest.kir", text, strlen(text), module);
}

/* Computes r[0] = r[i] for an array of 4 elements, which is a part of a larger array. */
static kjit_status launch(kjit_module *module, int64_t i)
{
  static float values[64];
  int64_t four = 4;
  kjit_tensor tensor = tensor_of(values, 2, 32, &four, 1);
  kjit_kernel *kernel = NULL;
  kjit_device *cpu = NULL;
  if (kjit_get_kernel(module, "k", &kernel) != KJIT_OK ||
      kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) != KJIT_OK)
    return KJIT_ERROR_NAME;
  kjit_launch_config config = { .size_bytes = sizeof config, .device = cpu };
  kjit_arg args[2] = { kjit_arg_tensor(&tensor), kjit_arg_i64(i) };
  return kjit_launch(kernel, &config, args, 2);
}

/* Resolves imports to a source of the application and a source of another guest. */
static int find_import(void *user, const char *importer, const char *name,
                       kjit_import_source *import)
{
  (void)user;
  (void)importer;
  import->name = name;
  if (!strcmp(name, "host")) {
    import->text = "import \"deeper\"\n"
                   "extern func scaled(x: f32) -> f32\n"
                   "func low(x: f32[:]) { return (bitcast(u64, pointer(x[0])) & 15) == 0 }\n"
                   "func address_of(x: f32[:]) { return pointer(x[0]) }\n"
                   "struct node { next: f32* }\n";
    import->trust = KJIT_TRUST_HOST;
  } else if (!strcmp(name, "deeper")) {
    /* trusted like its importer, the application's source */
    import->text = "func deeper(x: f32*) { return x[0] }\n";
  } else if (!strcmp(name, "guest")) {
    import->text = "func stolen(x) { return pointer(x[0]) }\n";
  } else if (!strcmp(name, "nobody")) {
    import->text = "";
    import->trust = (kjit_trust)7;
  } else return 0;
  import->text_bytes = strlen(import->text);
  return 1;
}

static void open_context(kjit_trust trust, bool answers)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = cache;
  config.trust = trust;
  if (answers) config.find_import = find_import;
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
}

static void test_trust(void)
{
  kjit_module *module = NULL;
  kjit_config config = { .size_bytes = sizeof config, .trust = (kjit_trust)3 };
  kjit_context *none = NULL;
  REQUIRE(kjit_create_context(&config, &none) == KJIT_ERROR_MISUSE);
  open_context(KJIT_TRUST_DEFAULT, false);
  REQUIRE(parse_as((kjit_trust)-1, peek, &module) == KJIT_ERROR_MISUSE &&
          says("-1 is not a value of kjit_trust"));
  REQUIRE(parse_as(KJIT_TRUST_GUEST, address, &module) == KJIT_ERROR_REFUSED &&
          says("guest code must not use pointers"));
  REQUIRE(parse_as(KJIT_TRUST_DEFAULT, address, &module) == KJIT_OK);
  kjit_release_module(module);
  REQUIRE(parse_as(KJIT_TRUST_HOST, address, &module) == KJIT_OK);
  kjit_release_module(module);
  kjit_destroy_context(context);
  open_context(KJIT_TRUST_GUEST, false);
  REQUIRE(parse_as(KJIT_TRUST_DEFAULT, address, &module) == KJIT_ERROR_REFUSED);
  REQUIRE(kjit_parse_module(context, "a", address, strlen(address), &module) == KJIT_ERROR_REFUSED);
  REQUIRE(parse_as(KJIT_TRUST_HOST, address, &module) == KJIT_OK);
  kjit_release_module(module);
  kjit_destroy_context(context);
}

/* Both have the same text, in one context and with one disk cache. Only the guest's code is
 * checked. In builds that assert facts, the application's code must not break a fact either. */
static void test_code(void)
{
  int64_t beyond = getenv("FACTS_ARE_ASSERTED") ? 3 : 40;
  for (int round = 0; round < 2; round++) {
    kjit_module *host = NULL, *guest = NULL;
    open_context(KJIT_TRUST_DEFAULT, false);
    REQUIRE(parse_as(KJIT_TRUST_HOST, peek, &host) == KJIT_OK && launch(host, beyond) == KJIT_OK);
    REQUIRE(parse_as(KJIT_TRUST_GUEST, peek, &guest) == KJIT_OK && launch(guest, 3) == KJIT_OK);
    REQUIRE(launch(guest, 40) == KJIT_ERROR_KERNEL && says("index 40 of 0..3"));
    REQUIRE(launch(guest, INT64_MIN) == KJIT_ERROR_KERNEL);
    kjit_release_module(host);
    kjit_release_module(guest);
    kjit_destroy_context(context);
  }
}

static void test_functions(void)
{
  kjit_module *guest = NULL;
  void (*pointer)(void) = NULL;
  float values[2] = { 5, 6 };
  int64_t two = 2;
  open_context(KJIT_TRUST_DEFAULT, false);
  REQUIRE(parse_as(KJIT_TRUST_GUEST, peek, &guest) == KJIT_OK);
  kjit_tensor tensor = tensor_of(values, 2, 32, &two, 1);
  kjit_arg args[2] = { kjit_arg_tensor(&tensor), kjit_arg_i64(1) }, r;
  REQUIRE(kjit_call_function(find(guest, "at"), args, 2, &r) == KJIT_OK && r.value.f32 == 6);
  args[1] = kjit_arg_i64(-1);
  REQUIRE(kjit_call_function(find(guest, "at"), args, 2, &r) == KJIT_ERROR_KERNEL);
  REQUIRE(kjit_get_function_pointer(find(guest, "at"), "f32(f32[:], i64)", &pointer) ==
            KJIT_ERROR_UNSUPPORTED &&
          says("can fail"));
  REQUIRE(kjit_get_function_pointer(find(guest, "half"), "f64(f64)", &pointer) == KJIT_OK &&
          ((double (*)(double))pointer)(3) == 1.5);
  kjit_release_module(guest);
  kjit_destroy_context(context);
}

static float scaled(float x) { return 10 * x; }

static void test_imports(void)
{
  kjit_module *module = NULL, *bound = NULL;
  open_context(KJIT_TRUST_DEFAULT, true);
  REQUIRE(parse_as(KJIT_TRUST_GUEST, "import \"guest\"\n", &module) == KJIT_ERROR_REFUSED &&
          says("guest code must not use `pointer`"));
  REQUIRE(parse_as(KJIT_TRUST_HOST, "import \"guest\"\n", &module) == KJIT_OK);
  kjit_release_module(module);
  REQUIRE(parse_as(KJIT_TRUST_HOST, "import \"nobody\"\n", &module) == KJIT_ERROR_MISUSE &&
          says("unknown trust"));
  REQUIRE(parse_as(KJIT_TRUST_GUEST, "import \"other\"\n", &module) == KJIT_ERROR_NAME);
  REQUIRE(parse_as(KJIT_TRUST_GUEST, "import \"host\"\nfunc f(n: node) { return 1 }\n", &module) ==
            KJIT_ERROR_REFUSED &&
          says("guest code must not use pointers"));
  REQUIRE(
    parse_as(KJIT_TRUST_GUEST,
             "import \"host\"\n"
             "kernel k(r: f32[:], i) @block(1) @grid(1) { if low(r) { r[0] = scaled(r[i]) } }\n"
             "kernel bad(r: f32[:]) @block(1) @grid(1) { r[0] = address_of(r)[100] }\n",
             &module) == KJIT_OK);
  REQUIRE(launch(module, 3) == KJIT_ERROR_NAME && says("`scaled` has no function on the CPU"));
  REQUIRE(kjit_bind_extern(module, "scaled", (void (*)(void))scaled, NULL, 0, &bound) == KJIT_OK);
  REQUIRE(launch(bound, 3) == KJIT_OK);
  REQUIRE(launch(bound, 4) == KJIT_ERROR_KERNEL);
  kjit_kernel *bad;
  REQUIRE(kjit_get_kernel(bound, "bad", &bad) == KJIT_OK &&
          kjit_check(bad, "f32[:]", NULL) == KJIT_ERROR_REFUSED && says("this is f32*"));
  kjit_release_module(module);
  kjit_release_module(bound);
  kjit_destroy_context(context);
}

/* Code that is linked with a guest's module is compiled like the guest's. */
static void test_linked(void)
{
  kjit_module *open_module = NULL, *guest = NULL, *linked = NULL;
  open_context(KJIT_TRUST_DEFAULT, false);
  REQUIRE(parse_as(KJIT_TRUST_HOST,
                   "extern func place(i)\n"
                   "kernel k(r, i) @block(1) @grid(1) { r[0] = r[place(i)] }\n",
                   &open_module) == KJIT_OK);
  REQUIRE(parse_as(KJIT_TRUST_GUEST, "func place(i) { return i * 16 }\n", &guest) == KJIT_OK);
  REQUIRE(kjit_link_module(open_module, guest, &linked) == KJIT_OK);
  REQUIRE(launch(linked, 0) == KJIT_OK && launch(linked, 1) == KJIT_ERROR_KERNEL);
  kjit_release_module(open_module);
  kjit_release_module(guest);
  kjit_release_module(linked);
  kjit_destroy_context(context);
}

static kjit_status build(kjit_trust trust)
{
  kjit_builder *b = NULL;
  kjit_module *module = NULL;
  if (kjit_create_builder(context, "built", &b) != KJIT_OK) return KJIT_ERROR_MEMORY;
  kjit_set_builder_trust(b, trust);
  kjit_build_begin_kernel(b, "k");
  kjit_node r = kjit_build_parameter(b, "r", KJIT_ANY), zero = kjit_build_integer(b, 0);
  kjit_node place = kjit_build_index(b, r, &zero, 1);
  kjit_build_let(b, "p", kjit_build_call(b, "pointer", &place, 1));
  kjit_build_end(b);
  kjit_status status = kjit_finish_builder(b, &module);
  kjit_release_module(module);
  kjit_destroy_builder(b);
  return status;
}

static void test_builder(void)
{
  open_context(KJIT_TRUST_GUEST, false);
  REQUIRE(build(KJIT_TRUST_HOST) == KJIT_OK);
  REQUIRE(build(KJIT_TRUST_DEFAULT) == KJIT_ERROR_REFUSED && says("must not use `pointer`"));
  REQUIRE(build((kjit_trust)9) == KJIT_ERROR_MISUSE);
  kjit_destroy_context(context);
  open_context(KJIT_TRUST_DEFAULT, false);
  REQUIRE(build(KJIT_TRUST_DEFAULT) == KJIT_OK);
  REQUIRE(build(KJIT_TRUST_GUEST) == KJIT_ERROR_REFUSED);
  kjit_destroy_context(context);
}

int main(int argc, char **argv)
{
  cache = argc > 1 ? argv[1] : "";
  test_trust();
  test_code();
  test_functions();
  test_imports();
  test_linked();
  test_builder();
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
