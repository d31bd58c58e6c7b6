/* One thing differs between two processes that share a cache directory. Each of them gets the same
 * results as with a separate directory, in both orders. one_change_rows.h has a row for each part
 * of the key. */
#include "kj_test.h"

#include "one_change.h"
#include "one_change_rows.h"

static size_t failures;

static void fail_row(const change *row, const char *what)
{
  print_error("the row `%s`: %s\n", row->name, what);
  failures++;
}

/* Computes the results of both worlds without a cache. A row whose worlds give the same results
 * could not fail. */
static void live_alone(const change *row, outcome alone[2])
{
  for (int i = 0; i < 2; i++) alone[i] = live(&row->worlds[i], "");
  if (alone[0].status != KJIT_OK && alone[1].status != KJIT_OK) fail_row(row, "neither works");
  bool is_same = is_same_outcome(&alone[0], &alone[1]);
  if (is_same && !row->is_key_only) fail_row(row, "nothing differs between its worlds");
  if (!is_same && row->is_key_only) fail_row(row, "something differs: it is not about keys alone");
}

static void live_together(const change *row, const outcome alone[2], int first)
{
  int second = 1 - first;
  outcome a = live(&row->worlds[first], folder), b = live(&row->worlds[second], folder),
          again = live(&row->worlds[first], folder);
  if (!is_same_outcome(&a, &alone[first])) fail_row(row, "the first process gets something else");
  if (!is_same_outcome(&b, &alone[second]) || b.is_hit)
    fail_row(row, "the second process gets what is the first one's");
  if (row->is_key_only && count_entries() != 2) fail_row(row, "both have one key");
  if (!is_same_outcome(&again, &alone[first])) fail_row(row, "the third process gets another code");
  bool is_kept = alone[first].made[0] && alone[first].status == KJIT_OK;
  if (is_kept && !again.is_hit) fail_row(row, "nothing was kept");
}

static void test_rows(void **state)
{
  (void)state;
  failures = 0;
  for (size_t i = 0; i < change_count; i++) {
    const change *row = &changes[i];
    outcome alone[2];
    live_alone(row, alone);
    if (row->worlds[0].target) {
      if (kj_same_digest(alone[0].key, alone[1].key)) fail_row(row, "both have one key");
      continue;
    }
    for (int first = 0; first < 2; first++) {
      live_together(row, alone, first);
      remove_tree(folder);
    }
  }
  assert_int_equal(failures, 0);
}

/* The other world must not use a blob of one world. */
static void test_blobs(void **state)
{
  (void)state;
  failures = 0;
  for (size_t i = 0; i < 2 * change_count; i++) {
    const change *row = &changes[i / 2];
    const world *from = &row->worlds[i % 2], *to = &row->worlds[1 - i % 2];
    if (from->target || from->asked || from->reduces || from->is_call || row->is_key_only) continue;
    outcome alone = live(to, "");
    blob.is_exported = true;
    (void)live(from, "");
    blob.is_exported = false;
    outcome with_blob = live(to, "");
    if (blob.bytes && (with_blob.is_hit || !is_same_outcome(&alone, &with_blob)))
      fail_row(row, "the code of a blob is used for something else");
    if (blob.bytes && !live(from, "").is_hit) fail_row(row, "the blob is not used");
    blob.bytes = NULL;
  }
  assert_int_equal(failures, 0);
}

/* If a part of the key had no row, no test would notice that the part is missing. */
static void test_every_part_has_a_row(void **state)
{
  static const char *const names[] = {
#define KJ_KEY_PART(NAME, word, what) #NAME,
#include "code/key_inputs.def"
  };
  (void)state;
  for (size_t part = 0; part < KJ_KEY_PART_COUNT; part++) {
    size_t rows = 0;
    for (size_t i = 0; i < change_count; i++) rows += changes[i].part == part;
    if (!rows && part != KJ_KEY_DRIVER) fail_msg("the part %s of the key has no row", names[part]);
  }
}

/* Two worlds with different layout, comments or unreached declarations have the same key, in both
 * orders. */
static void test_what_does_not_count(void **state)
{
  (void)state;
  static const world worlds[] = {
    { .text = "kernel k(r, x) { r[0] = f(x[0]) }\nfunc f(v) { return v + C }\nconst C = 2\n" },
    { .text = "# a comment\nconst C = 2\nfunc f(v) {\n  return v + C }\nkernel k(r, x) {\n\n"
              "  r[0] = f(x[0]) }\nfunc unreached(v) { return v }\n" },
    { .text = "import \"b\"\nconst C = 2\nkernel k(r, x) { r[0] = f(x[0]) }\n",
      .imports = { { "b", "func f(v) { return v + C }\n", false } } },
  };
  for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++)
    assert_int_equal(live(&worlds[i], folder).is_hit, i > 0);
}

/* The name of the result's struct does not identify it: the module of the second process declares
 * another struct with this name, which the func does not use. */
static void test_structs_with_one_name(void **state)
{
  (void)state;
  static const char *const texts[] = {
    "func f(r, x) { return x[0] }\n",
    "struct P { a: f64; b: f64 }\nfunc f(r, x) { return x[0] }\nfunc g() { return P(1, 2) }\n"
  };
  world worlds[2] = { 0 };
  for (int i = 0; i < 2; i++)
    worlds[i] = (world){ .text = texts[i],
                         .structs = { { "P", HAS_BOTH(a, b), 2, false } },
                         .is_call = true };
  outcome first = live(&worlds[0], folder), second = live(&worlds[1], folder),
          again = live(&worlds[0], folder);
  assert_int_equal(first.status, KJIT_OK);
  assert_true(is_same_outcome(&first, &second)); /* the module's own struct has 16 bytes */
  assert_true(is_same_outcome(&first, &again) && again.is_hit);
}

/* ---- the second compilation of builds with assertions ---- */

static const world plain = { .text = COPY };

/* Writes an entry that differs in one field from what the compiler makes. */
static void spoil_entry(kjit_module *module)
{
  kjit_kernel *kernel = NULL;
  kj_disk_key key = { 0 };
  kj_digest compiler;
  assert_int_equal(kjit_get_kernel(module, "k", &kernel), KJIT_OK);
  const kjit_specialization *made = kjit_get_specialization(kernel, 0);
  assert_non_null(made);
  const kj_compile_request request =
    kj_make_request(kernel, made->device, &made->compiled_for, kj_code_stage(made->device));
  kj_runtime *runtime = kj_get_runtime(context);
  kj_code code = made->code;
  /* this field is only a hint, so a build without assertions can run the code */
  code.elements_a_thread++;
  assert_true(kj_make_disk_key(runtime->disk, made->device, &request, &key));
  assert_true(kj_identify_compiler(runtime, &compiler));
  kj_publish_entry(runtime->disk, &key, compiler, &code);
  kj_free_disk_key(&key);
}

static int hit_once(void)
{
  outcome o = live(&plain, folder);
  return o.status == KJIT_OK && o.is_hit ? 0 : 1;
}

/* Runs in a child process, which aborts in builds with assertions. */
static void test_a_difference_is_found(void **state)
{
  (void)state;
  kjit_module *module = NULL;
  kjit_device *device = NULL;
  outcome o = { 0 };
  assert_int_equal(start(&plain, folder), KJIT_OK);
  assert_int_equal(parse(&plain, &module), KJIT_OK);
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device), KJIT_OK);
  assert_int_equal(launch(&plain, module, device, &o), KJIT_OK);
  spoil_entry(module);
  kjit_release_module(module);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  char command[4300], self[4096] = { 0 };
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(command, sizeof command, "'%s' hit '%s' 2>/dev/null", self, folder);
  int status = system(command);
  assert_true(WIFEXITED(status));
  assert_true((WEXITSTATUS(status) == 0) == !KJ_HAS_ASSERTIONS);
}

int main(int argc, char **argv)
{
  if (argc == 3 && !strcmp(argv[1], "hit")) {
    snprintf(folder, sizeof folder, "%s", argv[2]);
    return hit_once();
  }
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)
  const struct CMUnitTest tests[] = { TEST(test_rows),
                                      TEST(test_blobs),
                                      TEST(test_every_part_has_a_row),
                                      TEST(test_what_does_not_count),
                                      TEST(test_structs_with_one_name),
                                      TEST(test_a_difference_is_found) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
