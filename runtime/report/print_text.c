/* Formats printed lines of kernels, the same on every target. Floats have the fewest digits that
 * read back as the same number, in Python's format. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/arithmetic.h"
#include "report/report.h"
#include "support/decimal.h"

/* ---- numbers ---- */

void kj_format_number(double value, kjit_type type, bool is_part, char text[KJ_NUMBER_BYTES])
{
  enum { MOST_POINT = 16 };
  if (isnan(value)) {
    memcpy(text, "nan", sizeof "nan");
    return;
  }
  if (signbit(value)) *text++ = '-';
  if (isinf(value)) {
    memcpy(text, "inf", sizeof "inf");
    return;
  }
  kj_decimal decimal = kj_find_shortest(fabs(value), type);
  kj_lay_out_decimal(&decimal, MOST_POINT, text);
  if (!is_part && !strpbrk(text, ".e")) strcat(text, ".0");
}

/* ---- values ---- */

/* Returns a float from the low bits in the word; higher bits are ignored. */
static double float_of(kjit_type type, uint64_t word)
{
  ki_value value;
  (void)ki_decode_value(type, &word, &value);
  return ki_number_of(value);
}

static void append_number(kj_buffer *text, double value, kjit_type type, bool is_part)
{
  char number[KJ_NUMBER_BYTES];
  kj_format_number(value, type, is_part, number);
  kj_append_text(text, number);
}

static void append_complex(kj_buffer *text, double real, double imaginary, kjit_type part)
{
  kj_append_text(text, "(");
  append_number(text, real, part, true);
  if (isnan(imaginary) || !signbit(imaginary)) kj_append_text(text, "+");
  append_number(text, imaginary, part, true);
  kj_append_text(text, "j)");
}

/* Appends a value and returns the number of words that it took. */
static uint32_t append_value(kj_buffer *text, char letter, const uint64_t *words)
{
  uint64_t word = words[0];
  switch (letter) {
  case 'b': kj_append_text(text, word ? "true" : "false"); return 1;
  case 'B': kj_append_text(text, word ? "True" : "False"); return 1;
  case 'i': kj_append_format(text, "%" PRId64, (int64_t)word); return 1;
  case 'u': kj_append_format(text, "%" PRIu64, word); return 1;
  case 'p': kj_append_format(text, "0x%" PRIx64, word); return 1;
  case 'h': append_number(text, float_of(KJIT_F16, word), KJIT_F16, false); return 1;
  case 'y': append_number(text, float_of(KJIT_BF16, word), KJIT_BF16, false); return 1;
  case 'f': append_number(text, float_of(KJIT_F32, word), KJIT_F32, false); return 1;
  case 'd': append_number(text, float_of(KJIT_F64, word), KJIT_F64, false); return 1;
  case 'F':
    append_complex(text, float_of(KJIT_F32, word), float_of(KJIT_F32, words[1]), KJIT_F32);
    return 2;
  default:
    append_complex(text, float_of(KJIT_F64, word), float_of(KJIT_F64, words[1]), KJIT_F64);
    return 2;
  }
}

/* ---- lines ---- */

static const char *find_line(const char *prints, uint32_t site)
{
  for (; site && prints; site--) prints = (prints = strchr(prints, '\n')) ? prints + 1 : NULL;
  return prints;
}

static uint32_t words_of(char letter) { return letter == 'F' || letter == 'D' ? 2 : 1; }

void kj_format_line(const char *prints, uint64_t header, const uint64_t *values, kj_buffer *text)
{
  enum { ESCAPE = 1, VALUE = 2, SHIFT = 64 };
  const char *at = find_line(prints, kn_print_site(header));
  uint32_t left = kn_print_count(header);
  for (; at && *at && *at != '\n'; at++) {
    bool is_mark = (*at == ESCAPE || *at == VALUE) && at[1] && at[1] != '\n';
    if (!is_mark) {
      kj_append(text, at, 1);
    } else if (*at++ == ESCAPE) {
      kj_append_format(text, "%c", *at - SHIFT);
    } else if (words_of(*at) <= left) {
      uint32_t taken = append_value(text, *at, values);
      values += taken;
      left -= taken;
    }
  }
  kj_append_text(text, "\n");
}
