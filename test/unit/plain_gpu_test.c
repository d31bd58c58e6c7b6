/* Plain code for GPUs (kjit_config.plain_code): PTX of few passes, which the driver translates with
 * few optimizations, runs until the best code is loaded in the background. The tests check which
 * kernels and launches have plain code. They also check blocks that are too large for its
 * registers, and a driver that refuses it. They use the real compiler and a fake driver. */
#include "kj_test.h"

#include <kjit/kjit.h>

#include "built_compiler.h"
#include "code/specialization.h"
#include "fake_cuda.h"
#include "fake_cuda_memory.h"

enum { LENGTH = 4096, NONE = -1 };

static const char source[] =
  "kernel sums(r, x) { for i in grid_range(len(r)) {\n"
  "  var s = x[i]\n  for k in range(len(x)) { s = s + x[(i + k) % len(x)] }\n  r[i] = s } }\n"
  "kernel fused(r, x) { for i in grid_range(len(r)) {\n"
  "  var s = x[i]\n  for k in range(len(x)) { s = s + s * x[(i + k) % len(x)] }\n  r[i] = s } }\n"
  "kernel straight(r, x) { for i in grid_range(len(r)) { r[i] = x[i] + 1 } }\n"
  "kernel together(r, x) { for k in range(len(x)) { r[0] = x[k]\n  grid_sync() } }\n"
  "kernel clustered(r, x) @cluster(2) { for k in range(len(x)) { r[k] = x[k] } }\n"
  "kernel ranked(r, x) { for k in range(len(x)) { r[k] = f32(cluster_rank) } }\n"
  "kernel tensor(r, x) @block(128) {\n"
  "  shared s: f16[64, 64] @align(1024)\n  local d: f32[32]\n"
  "  let a = matrix_descriptor(s[0, 0], 16, 1024, 128)\n"
  "  for k in range(len(x)) {\n    wgmma_fence(d)\n"
  "    wgmma_f16(d, a, a, k > 0, false, true)\n    wgmma_commit()\n    wgmma_wait(d)\n  }\n"
  "  r[threadIdx.x] = d[0] + d[31]\n}\n";

/* ---- a context with the fake GPU, and what the driver has loaded ---- */

static _Atomic int loads[2]; /* number of loads of the best code and of plain code */
static _Atomic int last_level;

static void note_load(const char *image, int level)
{
  assert_non_null(strstr(image, ".entry"));
  loads[level >= 0]++;
  if (level >= 0) last_level = level;
}

typedef struct world {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  kjit_array *r, *x;
} world;

static world begin(kjit_config config)
{
  const int64_t length = LENGTH;
  kj_diagnostics diagnostics = { 0 };
  world w = { 0 };
  cuda = (fake_driver){ .devices = 1, .limit = (size_t)1 << 30, .on_load = note_load };
  loads[0] = loads[1] = 0;
  last_level = NONE;
  config.size_bytes = sizeof config;
  config.cache_directory = config.shipped_cache = "";
  config.compiler_path = find_built_compiler();
  config.libdevice_path = "libclc";
  assert_int_equal(kjit_create_context(&config, &w.context), KJIT_OK);
  assert_int_equal(kj_use_driver(w.context, find_fake, NULL, &diagnostics), KJIT_OK);
  assert_int_equal(kjit_get_device(w.context, KJIT_DEVICE_CUDA, 0, &w.device), KJIT_OK);
  assert_int_equal(kjit_parse_module(w.context, "s.kir", source, strlen(source), &w.module),
                   KJIT_OK);
  assert_int_equal(kjit_create_array(w.device, KJIT_F32, &length, 1, &w.r), KJIT_OK);
  assert_int_equal(kjit_create_array(w.device, KJIT_F32, &length, 1, &w.x), KJIT_OK);
  return w;
}

static void end(world *w)
{
  kjit_release_array(w->r);
  kjit_release_array(w->x);
  kjit_release_module(w->module);
  assert_int_equal(kjit_destroy_context(w->context), KJIT_OK);
  assert_int_equal(cuda.modules, 0);
  fake_delete_all();
}

static kjit_kernel *kernel_of(const world *w, const char *name)
{
  kjit_kernel *kernel = NULL;
  assert_int_equal(kjit_get_kernel(w->module, name, &kernel), KJIT_OK);
  return kernel;
}

static void launch(const world *w, const char *name, kjit_launch_config config)
{
  config.size_bytes = sizeof config;
  config.device = w->device;
  const kjit_arg arguments[] = { kjit_arg_array(w->r), kjit_arg_array(w->x) };
  kjit_status status = kjit_launch(kernel_of(w, name), &config, arguments, 2);
  char *text = status == KJIT_OK ? NULL : kjit_copy_diagnostics_text(w->context);
  if (text) print_error("%s: %s\n", name, text);
  free(text);
  assert_int_equal(status, KJIT_OK);
}

/* Expects these numbers of launches of plain code and of the best code; NONE means that there is no
 * such code. If the background thread was faster, launches may have run the best code in place of
 * plain code, which was loaded all the same. */
static void expect_launches(const world *w, const char *name, int64_t plain, int64_t best)
{
  int64_t found[2] = { NONE, NONE };
  kjit_specialization *specialization;
  for (size_t i = 0; (specialization = kjit_get_specialization(kernel_of(w, name), i)); i++) {
    kjit_specialization_info info = { .size_bytes = sizeof info };
    assert_int_equal(kjit_get_specialization_info(specialization, &info), KJIT_OK);
    found[info.is_plain] = (int64_t)info.launches;
  }
  assert_int_equal(found[1] == NONE, plain == NONE);
  assert_int_equal(found[0] == NONE, best == NONE);
  assert_true(found[1] <= plain);
  assert_int_equal(found[1] + found[0], plain + best);
}

static void wait_for_best(const world *w)
{
  assert_int_equal(kjit_wait_background(w->context), KJIT_OK);
}

static const kjit_config equal = { .plain_code = KJIT_PLAIN_EQUAL },
                         always = { .plain_code = KJIT_PLAIN_ALWAYS };
static const kjit_launch_config usual = { .grid = { 4 }, .block = { 64 } };

/* ---- tests ---- */

static void test_taken_over(void **state)
{
  (void)state;
  world w = begin(equal);
  launch(&w, "sums", usual);
  assert_int_equal(loads[1], 1);
  assert_int_equal(last_level, 1);
  wait_for_best(&w);
  assert_int_equal(loads[0], 1);
  launch(&w, "sums", usual);
  launch(&w, "sums", usual);
  expect_launches(&w, "sums", 1, 2);
  assert_int_equal(loads[0] + loads[1], 2);
  end(&w);
}

/* Launches once and expects plain code, or the best code alone. */
static void expect_plain(const world *w, const char *name, kjit_launch_config config, bool is_plain)
{
  launch(w, name, config);
  wait_for_best(w);
  if (is_plain) expect_launches(w, name, 1, 0);
  else expect_launches(w, name, NONE, 1);
}

static void test_kernels(void **state)
{
  (void)state;
  world w = begin(equal);
  expect_plain(&w, "fused", usual, false);
  end(&w);
  w = begin(always);
  expect_plain(&w, "fused", usual, true);
  expect_plain(&w, "straight", usual, false);
  expect_plain(&w, "together", usual, false);
  expect_plain(&w, "tensor", (kjit_launch_config){ .grid = { 1 }, .block = { 128 } }, false);
  end(&w);
}

static void test_clusters(void **state)
{
  (void)state;
  world w = begin(always);
  expect_plain(&w, "clustered", usual, false);
  expect_plain(&w, "ranked", usual, true); /* each block forms a cluster */
  kjit_launch_config cluster = usual;
  cluster.cluster[0] = 2;
  expect_plain(&w, "sums", cluster, false);
  end(&w);
}

static void test_launches(void **state)
{
  (void)state;
  kjit_launch_config cooperative = usual;
  cooperative.flags = KJIT_LAUNCH_COOPERATIVE;
  world w = begin(always);
  expect_plain(&w, "sums", cooperative, false);
  expect_plain(&w, "fused", (kjit_launch_config){ .threads = 1000 }, true);
  end(&w);
  w = begin(equal);
  expect_plain(&w, "sums", (kjit_launch_config){ .threads = 1000 }, false);
  end(&w);
  w = begin((kjit_config){ .plain_code = KJIT_PLAIN_ALWAYS, .debug = KJIT_DEBUG_LINES });
  expect_plain(&w, "sums", usual, false);
  end(&w);
}

/* Threads of plain code have so many registers that blocks of 512 cannot start. */
static void test_registers(void **state)
{
  (void)state;
  const kjit_launch_config large = { .grid = { 4 }, .block = { 512 } };
  world w = begin(equal);
  cuda.plain_registers = 200;
  launch(&w, "sums", large);
  expect_launches(&w, "sums", 0, 1);
  end(&w);
  w = begin(equal);
  cuda.plain_registers = 200;
  launch(&w, "sums", usual);
  launch(&w, "sums", large);
  wait_for_best(&w);
  launch(&w, "sums", usual);
  expect_launches(&w, "sums", 1, 2);
  end(&w);
}

static void test_refused(void **state)
{
  (void)state;
  world w = begin(equal);
  cuda.refuse_plain = true;
  launch(&w, "sums", usual);
  expect_launches(&w, "sums", NONE, 1);
  assert_int_equal(loads[1], 0);
  end(&w);
}

static void test_set(void **state)
{
  (void)state;
  world w = begin((kjit_config){ 0 });
  expect_plain(&w, "sums", usual, false);
  assert_int_equal(kjit_set_plain_code(w.context, KJIT_PLAIN_ALWAYS), KJIT_OK);
  expect_plain(&w, "fused", usual, true);
  assert_int_equal(kjit_set_plain_code(w.context, (kjit_plain_code)4), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_set_plain_code(NULL, KJIT_PLAIN_NEVER), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_set_plain_code(w.context, KJIT_PLAIN_DEFAULT), KJIT_OK);
  expect_plain(&w, "ranked", usual, false);
  end(&w);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_taken_over), cmocka_unit_test(test_kernels),
    cmocka_unit_test(test_clusters),   cmocka_unit_test(test_launches),
    cmocka_unit_test(test_registers),  cmocka_unit_test(test_refused),
    cmocka_unit_test(test_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
