/* Bitmaps of formulas on the CPU: they are copied from any bit on and back and compared bit by bit.
 * They end at a page that must not be accessed. */
#include "kj_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../seed.h"
#include "formula/formula.h"

enum { ROUNDS = 20000, MOST_ROWS = 1500, MOST_OFFSET = 200 };

static int64_t below(int64_t limit) { return rand() % limit; }

static int bit_of(const uint8_t *bits, int64_t at) { return bits[at >> 3] >> (at & 7) & 1; }
static int bit_in(const uint64_t *words, int64_t at) { return words[at >> 6] >> (at & 63) & 1; }

static uint8_t *end_of_memory;

static int set_up(void **state)
{
  (void)state;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *memory =
    mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE)) return -1;
  end_of_memory = memory + page;
  for (size_t i = 0; i < page; i++) memory[i] = (uint8_t)below(256);
  return 0;
}

static void compare_round(int64_t offset, int64_t rows)
{
  uint64_t words[(MOST_ROWS + 63) / 64], other[(MOST_ROWS + 63) / 64],
    joined[(MOST_ROWS + 63) / 64];
  const uint8_t *bits = end_of_memory - (offset + rows + 7) / 8;
  kf_read_bits(words, bits, offset, rows);
  for (int64_t i = 0; i < rows; i++) assert_int_equal(bit_in(words, i), bit_of(bits, offset + i));
  for (size_t i = 0; i < sizeof other / sizeof *other; i++) other[i] = (uint64_t)rand() << 20;
  memcpy(joined, other, sizeof joined);
  kf_join_bits(joined, words, rows);
  for (int64_t i = 0; i < rows; i++)
    assert_int_equal(bit_in(joined, i), bit_in(words, i) & bit_in(other, i));
  int64_t bytes = (rows + 7) / 8;
  uint8_t *result = end_of_memory - bytes, before = result[-1];
  kf_write_bits(result, joined, rows);
  for (int64_t i = 0; i < 8 * bytes; i++)
    assert_int_equal(bit_of(result, i), i < rows ? bit_in(joined, i) : 0);
  assert_int_equal(result[-1], before);
}

static void bits_are_copied(void **state)
{
  (void)state;
  for (int i = 0; i < ROUNDS; i++) compare_round(below(MOST_OFFSET), 1 + below(MOST_ROWS));
}

static void no_bitmap_has_ones(void **state)
{
  (void)state;
  uint64_t words[2] = { 0 };
  uint8_t result[9] = { 0 };
  kf_read_bits(words, NULL, 77, 67);
  kf_write_bits(result, words, 67);
  for (int i = 0; i < 72; i++) assert_int_equal(bit_of(result, i), i < 67);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(bits_are_copied),
                                      cmocka_unit_test(no_bitmap_has_ones) };
  srand(kj_draw_seed());
  return cmocka_run_group_tests(tests, set_up, NULL);
}
