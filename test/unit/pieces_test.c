/* Kernels of grid_ranges on many workers of the CPU: each iteration runs once, however the range is
 * divided into pieces and however many pieces a call of the code has. The workers run one after the
 * other. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"
#include "built_compiler.h"

enum { MOST = 200000, ROUNDS = 60, WORKERS = 256 };

static const char text[] =
  "kernel two(r, q, n, m) {\n"
  "  let offset = 3 * n\n"
  "  for i in grid_range(n) { r[i] += i32(i + offset) }\n"
  "  for j in grid_range(m) {\n"
  "    if j % 3 == 0 { continue }\n"
  "    q[j] += i32(2 * j)\n"
  "  }\n"
  "}\n"
  "kernel rows(r, a, b) { for i, j in grid_range(a, b) { r[i * b + j] += i32(i - j) } }\n"
  "kernel boxes(r, a, b, c) {\n"
  "  for i, j, k in grid_range(a, b, c) { r[(i * b + j) * c + k] += i32(i - 2 * j + 5 * k) }\n"
  "}\n"
  "kernel rounds(r, n, count) {\n"
  "  for k in range(count) { for i in grid_range(n) { r[i] += i32(k) + 1 } }\n"
  "  if count > 2 { return }\n"
  "  for i in grid_range(n) { r[i] += 100 }\n"
  "}\n";

static kjit_context *context;
static kjit_module *module;
static int32_t r[MOST], q[MOST], expected_r[MOST], expected_q[MOST];

static void expect_ok(kjit_status status)
{
  if (status != KJIT_OK) fail_msg("%s", kjit_copy_diagnostics_text(context));
}

static void run_in_order(void *user, size_t count, void (*body)(void *data, size_t index),
                         void *data)
{
  (void)user;
  for (size_t i = 0; i < count; i++) body(data, i);
}

static int set_up(void **state)
{
  (void)state;
  const kjit_executor executor = { .size_bytes = sizeof executor,
                                   .concurrency = WORKERS,
                                   .run = run_in_order };
  const kjit_config config = { .size_bytes = sizeof config,
                               .cache_directory = "",
                               .executor = &executor,
                               .compiler_path = find_built_compiler() };
  if (kjit_create_context(&config, &context) != KJIT_OK) return -1;
  return kjit_parse_module(context, "pieces", text, strlen(text), &module);
}

static int tear_down(void **state)
{
  (void)state;
  kjit_release_module(module);
  return kjit_destroy_context(context);
}

static int64_t below(int64_t limit) { return rand() % limit; }

/* Sizes of all magnitudes, including 0. */
static int64_t draw_size(void)
{
  static const int64_t limits[] = { 2, 40, 300, 3000, 40000, MOST };
  return below(limits[below(6)]);
}

static kjit_arg array_of(kjit_tensor *tensor, int32_t *data)
{
  static int64_t shape[] = { MOST };
  *tensor = (kjit_tensor){
    .data = data, .device_type = KJIT_DEVICE_CPU, .rank = 1, .bits = 32, .lanes = 1, .shape = shape
  };
  return kjit_arg_tensor(tensor);
}

/* Runs the kernel with the array r, then q if has_q, and numbers. */
static void launch(const char *name, int has_q, const int64_t *numbers, size_t count)
{
  kjit_kernel *kernel;
  kjit_tensor tensors[2];
  kjit_arg arguments[5];
  size_t used = 0;
  arguments[used++] = array_of(&tensors[0], r);
  if (has_q) arguments[used++] = array_of(&tensors[1], q);
  for (size_t i = 0; i < count; i++) arguments[used++] = kjit_arg_i64(numbers[i]);
  expect_ok(kjit_get_kernel(module, name, &kernel));
  expect_ok(kjit_launch(kernel, NULL, arguments, used));
}

static void begin(void)
{
  for (int i = 0; i < MOST; i++) r[i] = expected_r[i] = i, q[i] = expected_q[i] = -i;
}

static void compare(void)
{
  assert_memory_equal(r, expected_r, sizeof r);
  assert_memory_equal(q, expected_q, sizeof q);
}

static void two_ranges(void **state)
{
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    const int64_t n = draw_size(), m = draw_size();
    begin();
    for (int64_t i = 0; i < n; i++) expected_r[i] += (int32_t)(i + 3 * n);
    for (int64_t j = 0; j < m; j++) expected_q[j] += j % 3 ? (int32_t)(2 * j) : 0;
    launch("two", 1, (int64_t[]){ n, m }, 2);
    compare();
  }
}

static void several_dimensions(void **state)
{
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    const int64_t b = 1 + below(70), c = 1 + below(70), a = draw_size() / (b * c);
    begin();
    for (int64_t i = 0; i < a; i++)
      for (int64_t j = 0; j < b; j++)
        for (int64_t k = 0; k < c; k++)
          expected_r[(i * b + j) * c + k] += (int32_t)(i - 2 * j + 5 * k);
    launch("boxes", 0, (int64_t[]){ a, b, c }, 3);
    compare();
    begin();
    for (int64_t i = 0; i < a; i++)
      for (int64_t j = 0; j < b; j++) expected_r[i * b + j] += (int32_t)(i - j);
    launch("rows", 0, (int64_t[]){ a, b }, 2);
    compare();
  }
}

static void ranges_in_loops(void **state)
{
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    const int64_t n = draw_size(), count = below(5);
    begin();
    for (int64_t i = 0; i < n; i++)
      expected_r[i] += (int32_t)(count * (count + 1) / 2 + (count > 2 ? 0 : 100));
    launch("rounds", 0, (int64_t[]){ n, count }, 2);
    compare();
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(two_ranges),
                                      cmocka_unit_test(several_dimensions),
                                      cmocka_unit_test(ranges_in_loops) };
  srand(kj_draw_seed());
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
