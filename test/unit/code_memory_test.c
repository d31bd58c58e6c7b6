/* Lets every allocation of the caches fail in turn. The steps cover misses and hits of the disk
 * cache and of an application's store, eviction, and inspection. They also cover compilation ahead
 * of launches and in the background, blobs, and the functions of the disk cache. A call succeeds
 * with the correct result, or returns the error for memory. The same call works afterwards, no
 * memory is leaked, and no entry has a wrong key. */
#include <kjit/cache.h>
#include <kjit/code.h>
#include <kjit/function.h>
#include <sched.h>

#include "cache_folder.h"
#include "failing_memory.h"
#include "gpu_test.h"

static const char source[] =
  "const SCALE = 2\n"
  "func twice(x) { return x * SCALE }\n"
  "kernel one(x, a, const n = 3) @block(32) { for i in grid_range(len(x)) { x[i] = twice(a) } }\n"
  "kernel two(x, a) { for i in grid_range(len(x)) { x[i] = a } }\n";

static kjit_status compile(kj_compiler *compiler, const kj_compile_request *request,
                           kj_diagnostics *diagnostics, kj_code *code)
{
  paused = true;
  kjit_status status = fake_interface.compile(compiler, request, diagnostics, code);
  /* the tests expect that the driver's linker has produced machine code from it */
  free(code->data);
  code->size_bytes =
    (size_t)asprintf((char **)&code->data, "\177ELF%s", request->kernel->decl->name);
  paused = false;
  return status;
}

/* ---- a store of the application ---- */

enum { MOST_STORED = 8, MOST_BYTES = 8192 };
static struct {
  uint8_t key[32];
  char data[MOST_BYTES];
  size_t size_bytes;
} stored[MOST_STORED];
static size_t stored_count;
static int borrowed;

static int load(void *user, const uint8_t *key, const void **data, size_t *size_bytes)
{
  (void)user;
  for (size_t i = 0; i < stored_count; i++)
    if (!memcmp(stored[i].key, key, sizeof stored[i].key)) {
      *data = stored[i].data;
      *size_bytes = stored[i].size_bytes;
      borrowed++;
      return 1;
    }
  return 0;
}

static void release(void *user, const void *data)
{
  (void)user, (void)data;
  borrowed--;
}

static void store(void *user, const uint8_t *key, const void *data, size_t size_bytes)
{
  (void)user;
  for (size_t i = 0; i < stored_count; i++)
    if (!memcmp(stored[i].key, key, sizeof stored[i].key)) return;
  assert_true(stored_count < MOST_STORED && size_bytes <= MOST_BYTES);
  memcpy(stored[stored_count].key, key, sizeof stored->key);
  memcpy(stored[stored_count].data, data, size_bytes);
  stored[stored_count++].size_bytes = size_bytes;
}

/* ---- the calls of an application ---- */

enum { N = 64 };

typedef struct world {
  kjit_context *context;
  kjit_module *module;
  kjit_device *device;
  kjit_kernel *kernels[2];
  kjit_array *array;
  kjit_specialization *specialization;
  void *blob;
  size_t blob_bytes;
} world;

static kjit_status launch(world *w, int kernel, uint32_t flags)
{
  kjit_launch_config config = { .size_bytes = sizeof config, .device = w->device, .flags = flags };
  kjit_arg arguments[] = { kjit_arg_array(w->array), kjit_arg_f32(2) };
  return kjit_launch(w->kernels[kernel], &config, arguments, 2);
}

static kjit_status launch_one(world *w) { return launch(w, 0, 0); }
static kjit_status launch_two(world *w) { return launch(w, 1, 0); }

static kjit_status launch_later(world *w)
{
  kjit_status status;
  while ((status = launch(w, 0, KJIT_LAUNCH_NO_WAIT)) == KJIT_NOT_READY) sched_yield();
  return status;
}

static kjit_status specialize(world *w)
{
  return kjit_specialize(w->kernels[0], w->device, "f32[:] C, f32, 16", &w->specialization);
}

static void count_progress(void *user, size_t done, size_t count, const kjit_specialize_item *item)
{
  (void)item;
  assert_true(done <= count);
  ++*(size_t *)user;
}

static kjit_status specialize_all(world *w)
{
  kjit_specialize_item items[] = {
    { .size_bytes = sizeof items[0], .kernel = w->kernels[0], .signature = "f32[:] C, f32" },
    { .size_bytes = sizeof items[0], .kernel = w->kernels[1], .signature = "f64[:], f64" },
    { .size_bytes = sizeof items[0], .kernel = w->kernels[1], .signature = "i32[:] C, 2" }
  };
  enum { COUNT = sizeof items / sizeof *items };
  size_t done = 0;
  kjit_status status =
    kjit_specialize_all(w->context, w->device, items, COUNT, count_progress, &done);
  for (size_t i = 0; i < COUNT && done; i++) {
    assert_true(items[i].status == KJIT_OK || items[i].status == KJIT_ERROR_MEMORY);
    assert_int_equal(items[i].status == KJIT_OK, items[i].specialization != NULL);
  }
  if (status == KJIT_OK) assert_int_equal(done, COUNT);
  return status;
}

typedef struct outcome {
  _Atomic bool is_done;
  kjit_status status;
} outcome;

static void note_outcome(void *user, kjit_status status, kjit_specialization *specialization)
{
  outcome *o = user;
  assert_int_equal(status == KJIT_OK, specialization != NULL);
  o->status = status;
  o->is_done = true;
}

/* Failures in background threads have no message here. */
static kjit_status specialize_async(world *w)
{
  outcome o = { 0 };
  KJ_TRY(kjit_specialize_async(w->kernels[1], w->device, "u8[:], u8", note_outcome, &o));
  while (!o.is_done) sched_yield();
  assert_true(o.status == KJIT_OK || o.status == KJIT_ERROR_MEMORY);
  return KJIT_OK;
}

static kjit_status copy_code(world *w, kjit_stage stage)
{
  void *code = NULL;
  size_t size_bytes = 0;
  KJ_TRY(kjit_copy_specialization_code(w->specialization, stage, &code, &size_bytes));
  assert_true(size_bytes >= 7 && !memcmp(code, "\177ELFone", 7));
  kjit_free(w->context, code);
  return KJIT_OK;
}
static kjit_status copy_ptx(world *w) { return copy_code(w, KJIT_STAGE_PTX); }
static kjit_status copy_cubin(world *w) { return copy_code(w, KJIT_STAGE_CUBIN); }

static kjit_status inspect(world *w)
{
  kjit_occupancy occupancy = { .size_bytes = sizeof occupancy };
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_get_specialization_info(w->specialization, &info);
  assert_string_equal(info.signature, "f32[:] C, f32, 16");
  KJ_TRY(kjit_get_occupancy(w->specialization, NULL, 0, &occupancy));
  assert_true(occupancy.threads > 0);
  return KJIT_OK;
}

static kjit_status export_code(world *w)
{
  kjit_free(w->context, w->blob);
  w->blob = NULL;
  return kjit_export_code(w->module, &w->blob, &w->blob_bytes);
}

static kjit_status import_code(world *w)
{
  return kjit_import_code(w->context, w->blob, w->blob_bytes);
}

static size_t count_kept(void)
{
  paused = true;
  size_t count = count_entries();
  paused = false;
  return count;
}

static void count_entry(void *user, const kjit_cache_entry *entry)
{
  size_t *counts = user;
  assert_true(!entry->kernel || !strcmp(entry->kernel, "one") || !strcmp(entry->kernel, "two"));
  counts[entry->kernel != NULL]++;
}

/* Visits the entries of the cache. A valid entry must be reported as valid. */
static kjit_status visit(world *w)
{
  size_t counts[2] = { 0 }, entries = count_kept();
  KJ_TRY(kjit_visit_cache(w->context, count_entry, counts));
  assert_int_equal(counts[0], 0);
  assert_int_equal(counts[1], entries);
  return KJIT_OK;
}

static void take_name(void *user, const kjit_cache_entry *entry)
{
  snprintf(user, 80, "%s", entry->name);
}

static kjit_status remove_one(world *w)
{
  char name[80] = "";
  size_t before = count_kept();
  KJ_TRY(kjit_visit_cache(w->context, take_name, name));
  if (!*name) return KJIT_OK;
  KJ_TRY(kjit_remove_cache_entry(w->context, name));
  assert_int_equal(count_kept(), before - 1);
  return KJIT_OK;
}

static kjit_status trim(world *w)
{
  uint64_t removed, removed_bytes;
  size_t before = count_kept();
  KJ_TRY(kjit_trim_cache(w->context, 0, &removed, &removed_bytes));
  assert_int_equal(removed, before);
  assert_int_equal(count_kept(), 0);
  return KJIT_OK;
}

static kjit_status compile_text(world *w)
{
  kjit_compile_options options = { .size_bytes = sizeof options };
  void *code;
  size_t size_bytes;
  options.target = "sm_90";
  options.facts = "aligned16(x) block(32, 1, 1)";
  KJ_TRY(kjit_compile(w->kernels[0], "f32[:] C, 2.5f32, 7", &options, KJIT_STAGE_PTX, &code,
                      &size_bytes));
  kjit_free(w->context, code);
  return KJIT_OK;
}

static kjit_status compile_function(world *w)
{
  kjit_function *function;
  void *code;
  size_t size_bytes;
  KJ_TRY(kjit_get_function(w->module, "twice", &function));
  KJ_TRY(kjit_compile_function(function, "f32", NULL, NULL, KJIT_STAGE_OBJECT, &code, &size_bytes));
  kjit_free(w->context, code);
  return KJIT_OK;
}

static kjit_status set_constant(world *w)
{
  kjit_module *changed;
  kjit_arg value = kjit_arg_f32(1.5f);
  KJ_TRY(kjit_set_constant(w->module, "SCALE", &value, &changed));
  kjit_release_module(changed);
  return KJIT_OK;
}

/* ---- one allocation fails ---- */

typedef kjit_status step(world *w);

/* Steps in one context. The steps after NULL run in a second context with the same folder and
 * store. */
typedef struct group {
  const char *name;
  step *steps[16];
  bool has_store, counts_threads;
} group;

static const group groups[] = {
  { .name = "disk", .steps = { launch_one, launch_two, launch_one, NULL, launch_one, launch_two } },
  { .name = "store",
    .steps = { launch_one, launch_two, launch_one, NULL, launch_one },
    .has_store = true },
  { .name = "ahead", .steps = { specialize, specialize_all }, .counts_threads = true },
  { .name = "async", .steps = { specialize_async, launch_later }, .counts_threads = true },
  { .name = "inspect",
    .steps = { specialize, copy_ptx, copy_cubin, launch_two, inspect, launch_two, copy_cubin } },
  { .name = "blob", .steps = { launch_one, export_code, NULL, import_code, launch_one } },
  { .name = "functions", .steps = { launch_one, launch_two, visit, remove_one, visit, trim } },
  { .name = "text", .steps = { compile_text, compile_function, set_constant } },
};

static const kjit_cache_store host_store = {
  .size_bytes = sizeof host_store, .load = load, .release = release, .store = store
};

static void open_world(world *w, const group *g)
{
  static kj_compiler_interface interface;
  int64_t length = N;
  kj_diagnostics diagnostics = { 0 };
  kjit_config config = { .size_bytes = sizeof config };
  memset(&fake, 0, sizeof fake);
  interface = fake_interface;
  interface.compile = compile;
  config.cache_directory = folder;
  config.cache_store = g->has_store ? &host_store : NULL;
  config.code_limit_bytes = 1;
  config.compile_threads = 1;
  config.variant_limit = 1;
  assert_int_equal(kjit_create_context(&config, &w->context), KJIT_OK);
  assert_int_equal(kj_use_compiler(w->context, &interface, &diagnostics), KJIT_OK);
  assert_int_equal(kj_use_driver(w->context, find_fake, NULL, &diagnostics), KJIT_OK);
  w->device = gpu(w->context, 0);
  w->module = parse(w->context, source);
  w->kernels[0] = kernel_of(w->module, "one");
  w->kernels[1] = kernel_of(w->module, "two");
  expect_ok(w->context, kjit_create_array(w->device, KJIT_F32, &length, 1, &w->array));
}

static void close_world(world *w)
{
  kjit_release_array(w->array);
  kjit_release_module(w->module);
  kjit_destroy_context(w->context);
  assert_int_equal(cuda.allocations + cuda.pinned + cuda.modules + cuda.links + borrowed, 0);
  *w = (world){ .blob = w->blob, .blob_bytes = w->blob_bytes };
}

static void expect_told(world *w, const group *g, size_t step, kjit_status status)
{
  char *text = kjit_copy_diagnostics_text(w->context);
  if (status != KJIT_ERROR_MEMORY || !text || !strstr(text, "memory"))
    print_error("%s, step %zu: %s: %s\n", g->name, step, kjit_get_status_name(status),
                text ? text : "");
  assert_int_equal(status, KJIT_ERROR_MEMORY);
  assert_non_null(text);
  assert_non_null(strstr(text, "memory"));
  free(text);
}

/* ---- keys: a trial without failures shows all valid keys ---- */

enum { MOST_NAMES = 16 };
static char names[MOST_NAMES][256];
static size_t name_count;

static void check_name(const char *name, bool is_first)
{
  size_t i = 0;
  while (i < name_count && strcmp(names[i], name)) i++;
  if (i < name_count) return;
  if (!is_first) print_error("an entry with another key: %s\n", name);
  assert_true(is_first && name_count < MOST_NAMES);
  snprintf(names[name_count++], sizeof *names, "%s", name);
}

/* Checks the file names in the folder, and empties the folder. */
static void check_names(bool is_first)
{
  char text[80];
  DIR *directory = opendir(folder);
  for (struct dirent *item; directory && (item = readdir(directory));)
    if (strstr(item->d_name, ".kjit")) check_name(item->d_name, is_first);
  if (directory) closedir(directory);
  for (size_t i = 0; i < stored_count; i++) {
    for (size_t k = 0; k < sizeof stored->key; k++)
      snprintf(text + 2 * k, 3, "%02x", stored[i].key[k]);
    check_name(text, is_first);
  }
  remove_tree(folder);
  stored_count = 0;
}

/* Lets an allocation fail. Returns false if the steps made fewer allocations, so none has
 * failed. */
static bool try_allocation(const group *g, long number)
{
  world w = { 0 };
  long before = live;
  cuda = (fake_driver){ .devices = 1 };
  assert_int_equal(mkdir(folder, 0700), 0);
  open_world(&w, g);
  has_failed = false;
  counts_all = g->counts_threads;
  left = number;
  for (size_t i = 0; g->steps[i] || g->steps[i + 1]; i++) {
    long rest = left;
    if (!g->steps[i]) {
      left = 0;
      close_world(&w);
      open_world(&w, g);
      left = rest;
      continue;
    }
    kjit_status status = g->steps[i](&w);
    rest = left;
    left = 0;
    if (status != KJIT_OK) {
      expect_told(&w, g, i, status);
      expect_ok(w.context, g->steps[i](&w)); /* nothing is broken */
    }
    left = rest;
  }
  left = 0;
  kjit_free(w.context, w.blob);
  w.blob = NULL;
  close_world(&w);
  check_names(!number);
  fake_delete_all();
  long blocks = count_left(number, before);
  if (blocks) print_error("%s, allocation %ld: %ld blocks are left\n", g->name, number, blocks);
  assert_int_equal(blocks, 0);
  return has_failed;
}

static void test_every_allocation(void **state)
{
  enum { LEAST = 20 };
  (void)state;
  is_tester = true;
  remove_tree(folder);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    long number = 1;
    name_count = 0;
    for (int k = 0; k < 2; k++) assert_false(try_allocation(&groups[i], 0));
    while (try_allocation(&groups[i], number)) number++;
    assert_true(number > LEAST);
  }
}

/* Creating a context either succeeds with its cache or fails. A context without its cache would
 * look as if the cache were empty. */
static bool try_opening(long number)
{
  kjit_config config = { .size_bytes = sizeof config };
  kjit_context *context = NULL;
  long before = live;
  config.cache_directory = folder;
  has_failed = false;
  left = number;
  kjit_status status = kjit_create_context(&config, &context);
  if (status == KJIT_OK) status = kjit_trim_cache(context, 1, NULL, NULL);
  left = 0;
  assert_true(status == KJIT_OK || status == KJIT_ERROR_MEMORY);
  if (context) {
    expect_ok(context, kjit_trim_cache(context, 1, NULL, NULL));
    assert_string_equal(kjit_get_cache_directory(context), folder);
  }
  kjit_destroy_context(context);
  assert_int_equal(count_left(number, before), 0);
  return has_failed;
}

static void test_opening(void **state)
{
  long number = 1;
  (void)state;
  is_tester = true;
  for (int i = 0; i < 2; i++) assert_false(try_opening(0));
  while (try_opening(number)) number++;
  assert_true(number > 3);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(test_every_allocation, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(test_opening, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
