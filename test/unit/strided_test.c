/* The library's kernels that move strided elements on a GPU: their values on the CPU, by the real
 * compiler, and that they compile for GPUs. */
#include "kj_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "built_compiler.h"
#include "memory/array.h"

static kjit_context *context;
static kjit_device *cpu;

static int set_up(void **state)
{
  (void)state;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  config.compiler_path = find_built_compiler();
  return kjit_create_context(&config, &context) == KJIT_OK &&
             kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK
           ? 0
           : -1;
}

static int tear_down(void **state)
{
  (void)state;
  kjit_destroy_context(context);
  return 0;
}

static void expect_ok(kjit_status status)
{
  char *text = status == KJIT_OK ? NULL : kjit_copy_diagnostics_text(context);
  if (text) print_error("%s\n", text);
  free(text);
  assert_int_equal(status, KJIT_OK);
}

static uint32_t seed = 7;
static uint32_t draw(uint32_t below)
{
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

enum { ROOM = 1 << 20, MOST_SHIFT = 64 };

/* Returns a view inside an allocation, whose dimensions are in any order and have gaps. */
static kj_view make_view(uint32_t rank, const int64_t *shape, uint32_t element_bytes,
                         const unsigned char *room)
{
  kj_view view = {
    .kind = KJIT_DEVICE_CPU, .rank = rank, .element_bytes = element_bytes, .count = 1
  };
  uint32_t order[KJ_MAX_RANK];
  int64_t stride = 1 + draw(2), offset = 0;
  for (uint32_t i = 0; i < rank; i++) order[i] = i;
  for (uint32_t i = rank; i-- > 1;) {
    uint32_t k = draw(i + 1), kept = order[i];
    order[i] = order[k];
    order[k] = kept;
  }
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t d = order[i];
    bool is_backwards = draw(3) == 0;
    view.shape[d] = shape[d];
    view.strides[d] = is_backwards ? -stride : stride;
    if (is_backwards) offset += (shape[d] - 1) * stride;
    stride = stride * shape[d] + draw(2);
    view.count *= (uint64_t)shape[d];
  }
  assert_true(stride * element_bytes < ROOM);
  view.address = (uint64_t)(uintptr_t)room + (uint64_t)offset * element_bytes;
  return view;
}

static void test_copies(void **state)
{
  (void)state;
  static const uint32_t sizes[] = { 1, 2, 4, 8, 16, 12, 3, 20 };
  unsigned char *rooms[3];
  for (int i = 0; i < 3; i++) rooms[i] = aligned_alloc(64, ROOM);
  for (int way = 0; way < 60; way++) {
    int64_t shape[KJ_MAX_RANK];
    uint32_t rank = way % 9, size = sizes[draw(8)];
    for (uint32_t i = 0; i < rank; i++) shape[i] = 1 + draw(rank > 4 ? 3 : 7);
    for (int i = 0; i < ROOM; i++) rooms[0][i] = (unsigned char)draw(256);
    memset(rooms[1], 0xee, ROOM);
    memset(rooms[2], 0xee, ROOM);
    kj_view from = make_view(rank, shape, size, rooms[0]),
            to = make_view(rank, shape, size, rooms[1]), expected = to;
    kj_diagnostics diagnostics = { 0 };
    expected.address = (uint64_t)(uintptr_t)rooms[2] + (to.address - (uint64_t)(uintptr_t)rooms[1]);
    assert_int_equal(kj_copy_host(&expected, &from, &diagnostics), KJIT_OK);
    expect_ok(kj_copy_strided(cpu, &to, &from, NULL, &diagnostics));
    assert_memory_equal(rooms[1], rooms[2], ROOM);
    kj_free_diagnostics(&diagnostics);
  }
  for (int i = 0; i < 3; i++) free(rooms[i]);
}

/* The elements need not be aligned: a complex number is aligned to its real part. */
static void test_fills(void **state)
{
  (void)state;
  static const uint32_t sizes[] = { 1, 2, 4, 8, 16 };
  unsigned char *room = aligned_alloc(64, ROOM + MOST_SHIFT),
                *pattern = aligned_alloc(64, ROOM + MOST_SHIFT),
                *expected = aligned_alloc(64, ROOM + MOST_SHIFT);
  const uint64_t bits[2] = { 0x0807060504030201, 0x100f0e0d0c0b0a09 };
  for (int way = 0; way < 30; way++) {
    int64_t shape[KJ_MAX_RANK];
    uint32_t rank = 1 + way % 8, size = sizes[draw(5)];
    for (uint32_t i = 0; i < rank; i++) shape[i] = 1 + draw(4);
    memset(room, 0xee, ROOM + MOST_SHIFT);
    memset(expected, 0xee, ROOM + MOST_SHIFT);
    kj_view to = make_view(rank, shape, size, room), other = to,
            from = kj_dense_view(&to, (uint64_t)(uintptr_t)pattern);
    kj_diagnostics diagnostics = { 0 };
    /* every third address is not a multiple of the element size */
    to.address += way % 3 == 2 ? (uint64_t)way % size : 0;
    for (uint64_t i = 0; i < to.count; i++) memcpy(pattern + i * size, bits, size);
    other.address = (uint64_t)(uintptr_t)expected + (to.address - (uint64_t)(uintptr_t)room);
    assert_int_equal(kj_copy_host(&other, &from, &diagnostics), KJIT_OK);
    expect_ok(kj_fill_strided(cpu, &to, bits, NULL, &diagnostics));
    assert_memory_equal(room, expected, ROOM + MOST_SHIFT);
    kj_free_diagnostics(&diagnostics);
  }
  free(room);
  free(pattern);
  free(expected);
}

/* Compiles the kernels for every rank, for contiguous and other views, for an old and a new GPU. */
static void test_gpus(void **state)
{
  (void)state;
  unsigned char memory[64] = { 0 };
  int64_t shape[] = { 2, 2 };
  kj_view view = make_view(2, shape, 4, memory), other = view;
  kj_diagnostics diagnostics = { 0 };
  expect_ok(kj_copy_strided(cpu, &view, &other, NULL, &diagnostics)); /* parses the library */
  kj_free_diagnostics(&diagnostics);
  kjit_module *library =
    context->runtime ? atomic_load(&((kj_runtime *)context->runtime)->library) : NULL;
  assert_non_null(library);
  static const struct {
    const char *kernel, *signature;
  } rows[] = {
    { "copy", "u8[:], u8[:]" },
    { "copy", "u32[:] C, u32[:]" },
    { "copy", "u16[:, :], u16[:, :] C" },
    { "copy", "u64[:, :, :], u64[:, :, :]" },
    { "copy_any", "u32[:, :, :, :, :, :, :, :], u32[:, :, :, :, :, :, :, :]" },
    { "fill", "u64[:, :, :], u64" },
    { "fill_any", "u8[:, :, :, :, :, :, :, :], u8" },
  };
  static const char *const targets[] = { "sm_75", "sm_90" };
  for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
    kjit_kernel *kernel;
    kjit_compile_options options = { .size_bytes = sizeof options };
    void *code = NULL;
    size_t size_bytes = 0;
    options.target = targets[i % 2];
    expect_ok(kjit_get_kernel(library, rows[i / 2].kernel, &kernel));
    expect_ok(
      kjit_compile(kernel, rows[i / 2].signature, &options, KJIT_STAGE_PTX, &code, &size_bytes));
    assert_non_null(strstr(code, ".entry"));
    kjit_free(context, code);
  }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = { TEST(test_copies), TEST(test_fills), TEST(test_gpus) };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
