/* Launch configuration on a GPU: blocks by occupancy, cooperative and cluster launches, priorities,
 * programmatic launches, messages of rejected launches, queries; and blobs. The fake driver's
 * multiprocessors have 2048 threads and 65536 registers. */
#include "gpu_launches.h"

#include <kjit/code.h>

/* ---- by occupancy ---- */

static void test_threads(void **state)
{
  kjit_module *module = parse(*state, source);
  kjit_kernel *kernel = kernel_of(module, "set");
  kjit_launch_config config = { .size_bytes = sizeof config, .threads = 1000000 };
  expect_ok(*state, launch(*state, kernel, config));
  assert_int_equal(cuda.block[0], 256); /* 32 registers: 8 blocks of 256 are all 2048 threads */
  assert_int_equal(cuda.grid[0], 3907);
  int calls = cuda.calls;
  expect_ok(*state, launch(*state, kernel, config));
  /* the occupancy calculator is called only once */
  assert_int_equal(cuda.calls - calls, FAKE_DEFAULT_LAUNCH);
  /* at most two blocks are resident, so larger blocks are better; the kernel allows 512 threads */
  config.dynamic_shared_bytes = 100000;
  expect_ok(*state, launch(*state, kernel, config));
  assert_int_equal(cuda.block[0], 512);
  assert_int_equal(cuda.grid[0], 1954);
  config = (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                 .threads = 1000,
                                 .block = { 96 } };
  expect_ok(*state, launch(*state, kernel, config));
  assert_int_equal(cuda.block[0], 96);
  assert_int_equal(cuda.grid[0], 11);
  config = (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config), .threads = 1000 };
  expect_ok(*state, launch(*state, kernel_of(module, "bounded"), config));
  assert_int_equal(cuda.block[0], 128);
}

/* Each thread has 100 registers. So a multiprocessor has space for 5 blocks of 128 threads (640
 * threads), but only for 2 blocks of 256 threads (512 threads). */
static void test_registers(void **state)
{
  cuda.registers = 100;
  expect_ok(*state, launch(*state, kernel_of(parse(*state, source), "set"),
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                 .threads = 1000 }));
  assert_int_equal(cuda.block[0], 128);
  assert_int_equal(cuda.grid[0], 8);
}

/* A kernel with a grid_range gets a smaller block if the default block does not fit. */
static void test_small_blocks(void **state)
{
  cuda.registers = 400;
  kjit_kernel *kernel = kernel_of(parse(*state, source), "fill");
  expect_ok(*state, launch(*state, kernel,
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }));
  assert_int_equal(cuda.block[0], 32); /* five blocks of 32 are more than one block of 128 */
  assert_int_equal(cuda.grid[0], 31250);
  expect_refused(*state, kernel,
                 (kjit_launch_config){
                   .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 256 } },
                 "kernel `fill`: the launch has 256 threads per block, but the kernel uses 400 "
                 "registers per thread, which allows at most 160");
}

/* ---- attributes of a launch ---- */

static void test_cooperative(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  expect_ok(*state, launch(*state, kernel,
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                 .grid = { 80 },
                                                 .block = { 256 },
                                                 .flags = KJIT_LAUNCH_COOPERATIVE }));
  assert_int_equal(cuda.extended, 1);
  assert_int_equal(cuda.attribute_count, 1);
  assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_COOPERATIVE].value.number, 1);
  expect_refused(
    *state, kernel,
    (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                          .grid = { 81 },
                          .block = { 256 },
                          .flags = KJIT_LAUNCH_COOPERATIVE },
    "kernel `set`: all blocks of a cooperative launch must be resident at once, but the launch has "
    "81 blocks and cuda:0 can hold 80 (10 multiprocessors with 8 blocks each; a block has 256 "
    "threads with 32 registers each and 1000 bytes of shared memory)");
  expect_ok(*state,
            launch(*state, kernel,
                   (kjit_launch_config){
                     .size_bytes = sizeof(kjit_launch_config), .grid = { 81 }, .block = { 256 } }));
  assert_int_equal(cuda.extended, 1);
}

/* Code that synchronizes its grid is always launched cooperatively, and a grid that kjit chooses
 * for it fits. */
static void test_cooperative_code(void **state)
{
  fake.is_cooperative = true;
  kjit_module *module = parse(*state, source);
  expect_ok(*state, launch(*state, kernel_of(module, "fill"),
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }));
  assert_int_equal(cuda.grid[0], 80);
  assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_COOPERATIVE].value.number, 1);
  assert_int_equal(launch(*state, kernel_of(module, "set"),
                          (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                .grid = { 1000 },
                                                .block = { 32 } }),
                   KJIT_ERROR_LAUNCH);
}

static void test_clusters(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  expect_ok(*state, launch(*state, kernel,
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                 .grid = { 8, 2 },
                                                 .block = { 32 },
                                                 .cluster = { 4, 2 } }));
  assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_CLUSTER].value.cluster[0], 4);
  assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_CLUSTER].value.cluster[1], 2);
  assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_CLUSTER].value.cluster[2], 1);
  expect_refused(*state, kernel,
                 (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                       .grid = { 9 },
                                       .block = { 32 },
                                       .cluster = { 4 } },
                 "kernel `set`: the grid of 9 x 1 x 1 blocks is not a multiple of the cluster of 4 "
                 "x 1 x 1 blocks");
  expect_refused(
    *state, kernel,
    (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                          .grid = { 32 },
                          .block = { 32 },
                          .cluster = { 32 } },
    "kernel `set`: the launch has clusters of 32 blocks; the maximum on the device is 16");
  expect_ok(*state, launch(*state, kernel,
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                                 .threads = 1000,
                                                 .block = { 32 },
                                                 .cluster = { 4 } }));
  assert_int_equal(cuda.grid[0], 32); /* the grid has at least the requested threads */
}

static void test_cluster_of_kernel(void **state)
{
  fake.cluster[0] = 2;
  fake.cluster[1] = fake.cluster[2] = 1;
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  expect_ok(*state,
            launch(*state, kernel,
                   (kjit_launch_config){
                     .size_bytes = sizeof(kjit_launch_config), .grid = { 4 }, .block = { 32 } }));
  assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_CLUSTER].value.cluster[0], 2);
  expect_refused(
    *state, kernel,
    (kjit_launch_config){
      .size_bytes = sizeof(kjit_launch_config), .grid = { 4 }, .block = { 32 }, .cluster = { 4 } },
    "kernel `set`: @cluster is 2 x 1 x 1, but the launch requests a cluster of 4 x 1 x 1");
}

static void test_priority_and_programmatic(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 }, .priority = -3
  };
  expect_ok(*state, launch(*state, kernel, config));
  assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_PRIORITY].value.number, -3);
  assert_false(fake.signature.is_programmatic);
  config = (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config),
                                 .grid = { 1 },
                                 .block = { 32 },
                                 .flags = KJIT_LAUNCH_PROGRAMMATIC };
  expect_ok(*state, launch(*state, kernel, config));
  /* the kernel was compiled again; this code itself waits for the preceding launch */
  assert_true(fake.signature.is_programmatic);
  assert_int_equal(fake.compilations, 2);
  for (int i = 0; i < 2; i++) {
    expect_ok(*state, launch(*state, kernel, config));
    assert_int_equal(cuda.attributes[KJ_CU_LAUNCH_PROGRAMMATIC].value.number, 1);
  }
  int extended = cuda.extended;
  config.flags = 0;
  expect_ok(*state, launch(*state, kernel, config)); /* the code without the wait again */
  assert_int_equal(cuda.extended, extended);
  assert_int_equal(fake.compilations, 2);
}

/* ---- memory ---- */

static void test_dynamic_shared(void **state)
{
  fake.uses_dynamic_shared = true;
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  kjit_launch_config config = { .size_bytes = sizeof config, .grid = { 1 }, .block = { 32 } };
  expect_refused(*state, kernel, config,
                 "kernel `set`: the launch gives 0 bytes of dynamic shared memory to the kernel's "
                 "shared array without an extent, but one element needs 4 bytes");
  config.dynamic_shared_bytes = 100000; /* more than 48 KiB need an attribute of the function */
  expect_ok(*state, launch(*state, kernel, config));
  assert_int_equal(cuda.shared_bytes, 100000);
  config.dynamic_shared_bytes = 3;
  assert_int_equal(launch(*state, kernel, config), KJIT_ERROR_LAUNCH); /* also on the fast path */
}

/* ---- the fast path and the slow path, with changes between launches ---- */

static void test_changing_launches(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, source), "fill");
  kjit_tensor r = vector();
  kjit_arg argument = kjit_arg_tensor(&r);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = gpu(*state) };
  int64_t lengths[] = { 1000, 256, 257, 0, 5000, 1 };
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (int again = 0; again < 2; again++) {
      int launches = cuda.launches;
      r.shape = &lengths[i];
      expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
      assert_int_equal(cuda.launches - launches, lengths[i] != 0);
      if (!lengths[i]) continue;
      uint64_t address;
      int32_t extent;
      memcpy(&address, cuda.parameters, 8);
      memcpy(&extent, cuda.parameters + 8, 4);
      assert_true(address == (uint64_t)(uintptr_t)data);
      assert_int_equal(extent, lengths[i]);
      assert_int_equal(cuda.grid[0], (lengths[i] + 255) / 256);
    }
  int compilations = fake.compilations;
  r.byte_offset = 4; /* no longer aligned, so other code is needed */
  expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_int_equal(fake.compilations, compilations + 1);
  r.byte_offset = 2;
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_ARGUMENT);
  r.byte_offset = 0;
  r.data = NULL;
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_ARGUMENT);
  r.data = data;
  r.shape = NULL;
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_ARGUMENT);
  argument.value.tensor = NULL;
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_ARGUMENT);
}

/* ---- queries ---- */

static void test_occupancy(void **state)
{
  kjit_kernel *kernel = kernel_of(parse(*state, source), "set");
  kjit_specialization *made;
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_occupancy occupancy = { .size_bytes = sizeof occupancy };
  cuda.registers = 100;
  expect_ok(*state, kjit_specialize(kernel, gpu(*state), "f32[:] C", &made));
  kjit_get_specialization_info(made, &info);
  assert_int_equal(info.registers, 100);
  assert_int_equal(info.shared_bytes, 1000);
  assert_int_equal(info.max_threads, 640);
  assert_int_equal(info.max_dynamic_shared_bytes, 232448 - 1000);
  assert_true(info.is_loaded);
  expect_ok(*state, kjit_get_occupancy(made, NULL, 0, &occupancy));
  assert_int_equal(occupancy.block[0], 128);
  assert_int_equal(occupancy.blocks, 5);
  assert_int_equal(occupancy.threads, 640);
  assert_int_equal(occupancy.max_threads, 2048);
  assert_int_equal(occupancy.max_cooperative_blocks, 50);
  expect_ok(*state, kjit_get_occupancy(made, (uint32_t[3]){ 256 }, 0, &occupancy));
  assert_int_equal(occupancy.threads, 512);
  assert_int_equal(kjit_get_occupancy(made, (uint32_t[3]){ 1024 }, 0, &occupancy),
                   KJIT_ERROR_LAUNCH);
  assert_string_equal(
    last_message(*state),
    "kernel `set`: kjit_get_occupancy: the number of threads is 1024; the maximum is 640");
  assert_int_equal(kjit_get_occupancy(made, (uint32_t[3]){ 32 }, 1 << 20, &occupancy),
                   KJIT_ERROR_LAUNCH);
  assert_int_equal(kjit_get_occupancy(made, NULL, 0, NULL), KJIT_ERROR_MISUSE);
  assert_int_equal(kjit_get_occupancy(NULL, NULL, 0, &occupancy), KJIT_ERROR_MISUSE);
}

/* ---- blobs ---- */

static void export_all(kjit_context *context, kjit_module *module, void **blob, size_t *size_bytes)
{
  kjit_specialization *made;
  expect_ok(context, kjit_specialize(kernel_of(module, "fill"), gpu(context), "f32[:] C", &made));
  expect_ok(context, kjit_specialize(kernel_of(module, "set"), gpu(context), "f32[:] C", &made));
  expect_ok(context, kjit_export_code(module, blob, size_bytes));
}

static void test_blob(void **state)
{
  void *blob;
  size_t size_bytes;
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  export_all(*state, parse(*state, source), &blob, &size_bytes);
  kjit_destroy_context(*state);
  *state = make_context();
  expect_ok(*state, kjit_import_code(*state, blob, size_bytes));
  kjit_module *module = parse(*state, source);
  expect_ok(*state, launch(*state, kernel_of(module, "fill"),
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }));
  expect_ok(*state,
            launch(*state, kernel_of(module, "set"),
                   (kjit_launch_config){
                     .size_bytes = sizeof(kjit_launch_config), .grid = { 1 }, .block = { 32 } }));
  kjit_get_statistics(*state, &statistics);
  assert_int_equal(statistics.imports, 2);
  assert_int_equal(statistics.compilations, 0);
  assert_int_equal(fake.compilations, 0);
  /* not in it */
  expect_ok(*state, launch(*state, kernel_of(module, "bounded"),
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }));
  assert_int_equal(fake.compilations, 1);
  /* imported code is exported again */
  void *again;
  size_t again_bytes;
  expect_ok(*state, kjit_export_code(module, &again, &again_bytes));
  assert_true(again_bytes > size_bytes);
  kjit_free(*state, again);
  kjit_free(*state, blob);
}

/* Another kernel with the same name has another key. */
static void test_blob_of_other_text(void **state)
{
  void *blob;
  size_t size_bytes;
  export_all(*state, parse(*state, source), &blob, &size_bytes);
  int compilations = fake.compilations;
  expect_ok(*state, kjit_import_code(*state, blob, size_bytes));
  kjit_module *other =
    parse(*state, "kernel fill(r) { for i in grid_range(len(r)) { r[i] = 2 } }\n");
  expect_ok(*state, launch(*state, kernel_of(other, "fill"),
                           (kjit_launch_config){ .size_bytes = sizeof(kjit_launch_config) }));
  assert_int_equal(fake.compilations, compilations + 1);
  kjit_free(*state, blob);
}

/* Any changed byte and any other length is detected. */
static void test_damaged_blobs(void **state)
{
  void *blob;
  size_t size_bytes;
  export_all(*state, parse(*state, source), &blob, &size_bytes);
  unsigned char *bytes = blob;
  for (size_t i = 0; i < size_bytes; i++) {
    bytes[i] ^= 0x41;
    kjit_status status = kjit_import_code(*state, blob, size_bytes);
    if (status != KJIT_ERROR_IO) print_error("byte %zu: %s\n", i, kjit_get_status_name(status));
    assert_int_equal(status, KJIT_ERROR_IO);
    bytes[i] ^= 0x41;
  }
  for (size_t length = 0; length < size_bytes; length++) {
    unsigned char *part = malloc(length + 1); /* so that reads after the end are detected */
    memcpy(part, bytes, length);
    assert_int_equal(kjit_import_code(*state, part, length), KJIT_ERROR_IO);
    free(part);
  }
  assert_int_equal(kjit_import_code(*state, NULL, 0), KJIT_ERROR_MISUSE);
  expect_ok(*state, kjit_import_code(*state, blob, size_bytes));
  kjit_free(*state, blob);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_threads),
    TEST(test_registers),
    TEST(test_small_blocks),
    TEST(test_cooperative),
    TEST(test_cooperative_code),
    TEST(test_clusters),
    TEST(test_cluster_of_kernel),
    TEST(test_priority_and_programmatic),
    TEST(test_dynamic_shared),
    TEST(test_changing_launches),
    TEST(test_occupancy),
    TEST(test_blob),
    TEST(test_blob_of_other_text),
    TEST(test_damaged_blobs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
