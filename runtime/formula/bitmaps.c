/* Copies validity bitmaps for runs on the CPU. Kernels use 64-bit words, starting with row 0. An
 * application's bitmaps may begin at any bit and end at any byte, so kjit copies them to words. The
 * copy needs one byte for eight rows. Kernels do not handle arbitrary bitmaps themselves, because
 * the code for this would take longer to compile than the formula. */
#include <string.h>

#include "formula/formula.h"
#include "support/assert.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a word has its lowest bit first");

/* Reads the 64 bits that begin `shift` bits after the start of `bits`, an array of `bytes` bytes.
 * Bits after the end of the array are 0. */
static uint64_t read_word(const uint8_t *bits, int64_t bytes, uint32_t shift)
{
  uint64_t word = 0;
  KJ_ASSERT(bytes > 0 && shift < 8);
  memcpy(&word, bits, bytes < 8 ? (size_t)bytes : 8);
  word >>= shift;
  if (shift && bytes > 8) word |= (uint64_t)bits[8] << (64 - shift);
  return word;
}

void kf_read_bits(uint64_t *words, const uint8_t *bits, int64_t offset, int64_t rows)
{
  int64_t count = (rows + 63) >> 6;
  KJ_ASSERT(rows > 0 && offset >= 0);
  if (!bits) {
    memset(words, 0xff, (size_t)count * sizeof *words);
    return;
  }
  const uint8_t *first = bits + (offset >> 3);
  const uint32_t shift = (uint32_t)(offset & 7);
  const int64_t bytes = (rows + shift + 7) >> 3;
  for (int64_t i = 0; i < count; i++) words[i] = read_word(first + 8 * i, bytes - 8 * i, shift);
}

void kf_join_bits(uint64_t *words, const uint64_t *other, int64_t rows)
{
  for (int64_t i = 0; i < (rows + 63) >> 6; i++) words[i] &= other[i];
}

void kf_write_bits(uint8_t *bits, uint64_t *words, int64_t rows)
{
  KJ_ASSERT(rows > 0);
  if (rows & 63) words[rows >> 6] &= ((uint64_t)1 << (rows & 63)) - 1;
  memcpy(bits, words, (size_t)((rows + 7) >> 3));
}
