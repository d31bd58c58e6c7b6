/* Launch configuration on a GPU: blocks by occupancy, cooperative and cluster launches, priorities,
 * programmatic launches, messages of rejected launches, queries; and blobs. The fake driver's
 * multiprocessors have 2048 threads and 65536 registers. */
#include "kj_test.h"

#include <kjit/code.h>
#include <stdio.h>

#include "launch/fast_path.h"
#include "fake_compiler.h"
#include "fake_cuda.h"

static kjit_context *make_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = make_fake_context();
  cuda.current = NULL;
  if (kj_use_driver(context, find_fake, NULL, &diagnostics) != KJIT_OK) abort();
  return context;
}

static int set_up_devices(void **state, int devices)
{
  cuda = (fake_driver){ .devices = devices };
  *state = make_context();
  fake.has_tight_plans = true;
  return 0;
}
static int set_up(void **state) { return set_up_devices(state, 1); }
static int set_up_two(void **state) { return set_up_devices(state, 2); }

static int tear_down(void **state)
{
  kjit_destroy_context(*state);
  assert_int_equal(cuda.modules, 0);
  fake_delete_all();
  return 0;
}

static kjit_device *gpu(kjit_context *context)
{
  kjit_device *device = NULL;
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), KJIT_OK);
  return device;
}

static void expect_ok(kjit_context *context, kjit_status status)
{
  if (status != KJIT_OK) print_error("%s\n", last_message(context));
  assert_int_equal(status, KJIT_OK);
}

_Alignas(256) static float data[4096];
static int64_t length[] = { 1000000 };

static kjit_tensor vector(void)
{
  return (kjit_tensor){
    .data = data, .device_type = 2, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = length
  };
}

static const char source[] =
  "kernel fill(r) { for i in grid_range(len(r)) { r[i] = 1 } }\n"
  "kernel set(r) { r[threadIdx.x] = 1 }\n"
  "kernel bounded(r) @launch_bounds(128) { for i in grid_range(len(r)) { r[i] = 1 } }\n";

static kjit_status launch(kjit_context *context, kjit_kernel *kernel, kjit_launch_config config)
{
  kjit_tensor r = vector();
  kjit_arg argument = kjit_arg_tensor(&r);
  config.device = gpu(context);
  return kjit_launch(kernel, &config, &argument, 1);
}

static void expect_refused(kjit_context *context, kjit_kernel *kernel, kjit_launch_config config,
                           const char *message)
{
  int launches = cuda.launches;
  assert_int_equal(launch(context, kernel, config), KJIT_ERROR_LAUNCH);
  assert_string_equal(last_message(context), message);
  assert_int_equal(cuda.launches, launches);
}

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

/* ---- random launches: the fast path and the slow path pass the same parameters, and the code
 * relies only on facts that hold ---- */

static const char random_source[] = "kernel mix(r, s, a, x, y) {\n  for i in grid_range(len(r)) { "
                                    "r[i] = a * x[i, 0] + y[0, 0]\n    s[i] = r[i] }\n}\n"
                                    /* one array is written */
                                    "kernel one(r, s, a, x, y) {\n  for i in grid_range(len(r)) { "
                                    "r[i] = a * x[i, 0] + y[0, 0] + s[0] }\n}\n";

static uint32_t random_state = 12345;
static uint32_t draw(uint32_t below)
{
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % below;
}

typedef struct drawn {
  kjit_tensor tensors[4];
  int64_t shapes[4][2], strides[4][2];
  kjit_array *arrays[4]; /* kjit arrays for some of the tensors */
  kjit_arg arguments[5];
} drawn;

/* Returns an argument: a tensor of the application or a kjit array. */
static kjit_arg draw_way(kjit_context *context, drawn *d, int i, bool prefers_arrays)
{
  if (draw(8) ? !prefers_arrays : prefers_arrays) return kjit_arg_tensor(&d->tensors[i]);
  expect_ok(context, kjit_wrap_tensor(context, &d->tensors[i], &d->arrays[i]));
  return kjit_arg_array(d->arrays[i]);
}

static void release_arguments(drawn *d)
{
  for (int i = 0; i < 4; i++) kjit_release_array(d->arrays[i]);
}

/* Often keeps the previous arguments, so that the launch takes the fast path; otherwise changes a
 * property of one argument. */
static void draw_arguments(kjit_context *context, drawn *d)
{
  bool prefers_arrays = draw(2);
  memset(d->arrays, 0, sizeof d->arrays);
  for (int i = 0; i < 4; i++) {
    uint32_t rank = i < 2 ? 1 : 2, kind = draw(8);
    d->shapes[i][0] = (int64_t[]){ 16, 16, 32, 5 }[draw(4)];
    d->shapes[i][1] = (int64_t[]){ 8, 8, 3 }[draw(3)];
    d->strides[i][0] = rank == 1 ? 1 : d->shapes[i][1] + (kind == 1);
    d->strides[i][1] = 1;
    if (kind == 2 && rank == 2) d->strides[i][0] = 1, d->strides[i][1] = d->shapes[i][0];
    size_t at = (size_t)i * 512 + (draw(4) ? 0 : draw(2) ? 1 : 4); /* elements */
    /* the address of another array */
    if (draw(6) == 0) at = draw(4) * 512;
    d->tensors[i] = (kjit_tensor){ .data = data + at,
                                   .device_type = 2,
                                   .rank = (int32_t)rank,
                                   .code = 2,
                                   .bits = 32,
                                   .lanes = 1,
                                   .shape = d->shapes[i] };
    if (kind == 1 || kind == 2 || kind == 3) d->tensors[i].strides = d->strides[i];
  }
  d->arguments[0] = draw_way(context, d, 0, prefers_arrays);
  d->arguments[1] = draw_way(context, d, 1, prefers_arrays);
  d->arguments[2] = draw(4)   ? kjit_arg_f32((float)draw(100))
                    : draw(2) ? kjit_arg_f64(draw(100))
                              : kjit_arg_number(draw(100));
  d->arguments[3] = draw_way(context, d, 2, prefers_arrays);
  d->arguments[4] = draw_way(context, d, 3, prefers_arrays);
}

/* Returns whether every fact in one text, such as "aligned16(r, x) disjoint(r, x)", is also in the
 * other text. */
static bool has_fact(const char *facts, const char *name, size_t name_length, const char *operand,
                     size_t operand_length)
{
  for (const char *at = facts; (at = strstr(at, name)); at += name_length) {
    bool is_whole = (at == facts || at[-1] == ' ') &&
                    (at[name_length] == '(' || at[name_length] == ' ' || !at[name_length]);
    const char *end = is_whole && at[name_length] == '(' ? strchr(at, ')') : NULL;
    if (is_whole && !operand) return true;
    for (const char *o = at + name_length + 1; end && o < end; o++)
      if ((o[-1] == '(' || o[-1] == ' ') && !strncmp(o, operand, operand_length) &&
          (o[operand_length] == ',' || o[operand_length] == ')'))
        return true;
  }
  return false;
}

static void expect_facts_hold(const char *relied_on, const char *hold)
{
  for (const char *at = relied_on; *at; at += strspn(at, " ")) {
    char name[64];
    size_t length = strcspn(at, " (");
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    const char *operands = at[length] == '(' ? at + length + 1 : NULL,
               *end = operands ? strchr(operands, ')') : at + length;
    bool holds = true;
    if (!operands) holds = has_fact(hold, name, length, NULL, 0);
    else if (strstr(name, "aligned16"))
      for (const char *o = operands; o < end;
           o += strcspn(o, ",)") + (o[strcspn(o, ",)")] == ',' ? 2 : 1))
        holds = holds && has_fact(hold, name, length, o, strcspn(o, ",)"));
    else {
      char whole[128];
      snprintf(whole, sizeof whole, "%.*s", (int)(end + 1 - at), at);
      holds = strstr(hold, whole) != NULL;
    }
    if (!holds) print_error("`%s` relies on %s, and what holds is `%s`\n", relied_on, name, hold);
    assert_true(holds);
    at = operands ? end + 1 : end;
  }
}

static const kjit_specialization *launched_since(kjit_kernel *kernel, uint64_t *counts, size_t most)
{
  kjit_specialization *found = NULL, *one;
  for (size_t i = 0; i < most && (one = kjit_get_specialization(kernel, i)); i++) {
    uint64_t launches = kj_count_launches(one);
    if (launches != counts[i]) found = one;
    counts[i] = launches;
  }
  return found;
}

static void launch_randomly(void **state, const char *name)
{
  enum { TIMES = 3000, MOST = 4096 };
  static uint64_t counts[MOST], fresh_counts[MOST];
  char parameters[sizeof cuda.parameters];
  uint32_t direct = 0;
  kjit_kernel *kernel = kernel_of(parse(*state, random_source), name);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = gpu(*state) };
  memset(counts, 0, sizeof counts);
  for (int time = 0; time < TIMES; time++) {
    drawn d;
    draw_arguments(*state, &d);
    for (uint32_t again = draw(3) + 1; again; again--) {
      memset(cuda.parameters, 0, sizeof cuda.parameters);
      expect_ok(*state, kjit_launch(kernel, &config, d.arguments, 5));
    }
    memcpy(parameters, cuda.parameters, sizeof parameters);
    uint32_t grid = cuda.grid[0], block = cuda.block[0];
    size_t bytes = cuda.parameter_bytes;
    const kjit_specialization *ran = launched_since(kernel, counts, MOST);
    direct += ran && ran->table;
    /* compared with the first launch of an equal kernel, which takes the slow path */
    kjit_module *module = parse(*state, random_source);
    kjit_kernel *fresh = kernel_of(module, name);
    memset(cuda.parameters, 0, sizeof cuda.parameters);
    memset(fresh_counts, 0, sizeof fresh_counts);
    expect_ok(*state, kjit_launch(fresh, &config, d.arguments, 5));
    const kjit_specialization *exact = launched_since(fresh, fresh_counts, MOST);
    assert_non_null(ran);
    assert_non_null(exact);
    assert_string_equal(ran->signature, exact->signature);
    expect_facts_hold(ran->facts, exact->facts);
    assert_int_equal(grid, cuda.grid[0]);
    assert_int_equal(block, cuda.block[0]);
    if (!strcmp(ran->facts, exact->facts)) {
      assert_int_equal(bytes, cuda.parameter_bytes);
      /* the bytes between parameters are undefined */
      for (uint32_t i = 0; i < ran->code.parameter_count; i++) {
        const kj_parameter *p = &ran->code.parameters[i];
        assert_memory_equal(parameters + p->offset, cuda.parameters + p->offset, p->size_bytes);
      }
    }
    kjit_release_module(module);
    release_arguments(&d);
  }
  assert_true(direct > TIMES / 10); /* many of them took the fast path */
}

static void test_random_launches(void **state)
{
  launch_randomly(state, "mix");
  launch_randomly(state, "one");
}

/* Arrays that look like those of earlier launches but are on another device, or were lost by a
 * reset, are rejected. */
static void test_arrays_elsewhere(void **state)
{
  kjit_device *here = gpu(*state), *there;
  kjit_array *array, *other;
  kjit_kernel *kernel = kernel_of(parse(*state, source), "fill");
  kjit_launch_config config = { .size_bytes = sizeof config, .device = here };
  int64_t extent = 64;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CUDA, 1, &there));
  expect_ok(*state, kjit_create_array(here, KJIT_F32, &extent, 1, &array));
  expect_ok(*state, kjit_create_array(there, KJIT_F32, &extent, 1, &other));
  kjit_arg argument = kjit_arg_array(array), elsewhere = kjit_arg_array(other),
           nothing = kjit_arg_array(NULL);
  for (int i = 0; i < 4; i++) expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_non_null(kjit_get_specialization(kernel, 0)->table);
  int launches = cuda.launches;
  assert_int_equal(kjit_launch(kernel, &config, &elsewhere, 1), KJIT_ERROR_ARGUMENT);
  assert_int_equal(kjit_launch(kernel, &config, &nothing, 1), KJIT_ERROR_ARGUMENT);
  kjit_release_array(other);
  kjit_trim_memory(there, 0); /* the fake driver's reset takes the memory of all devices */
  expect_ok(*state, kjit_reset_device(here));
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_DEVICE);
  kjit_release_array(array);
  expect_ok(*state, kjit_create_array(here, KJIT_F32, &extent, 1, &array));
  argument = kjit_arg_array(array);
  assert_int_equal(cuda.launches, launches);
  for (int i = 0; i < 4; i++) expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_int_equal(cuda.launches, launches + 4);
  kjit_release_array(array);
}

/* Tests the checks of the random launches. */
static void test_facts_of_random_launches(void **state)
{
  (void)state;
  assert_true(has_fact("aligned16(r, x) offsets32", "aligned16", 9, "x", 1));
  assert_false(has_fact("aligned16(r, x) offsets32", "aligned16", 9, "y", 1));
  assert_false(has_fact("rows_aligned16(y) offsets32", "aligned16", 9, "y", 1));
  expect_facts_hold("aligned16(r, x) disjoint(r, x)",
                    "aligned16(r, s, x) offsets32 disjoint(r, s) disjoint(r, x)");
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
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
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
    TEST(test_facts_of_random_launches),
    TEST(test_random_launches),
    cmocka_unit_test_setup_teardown(test_arrays_elsewhere, set_up_two, tear_down),
    TEST(test_occupancy),
    TEST(test_blob),
    TEST(test_blob_of_other_text),
    TEST(test_damaged_blobs),
#undef TEST
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
