#define _GNU_SOURCE
#include <driver/scan.h>

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tool_scanner tool_scan(const char *option, const char *text, tool_error *error)
{
  return (tool_scanner){ .option = option, .text = text, .at = text, .error = error };
}

bool tool_scan_fail(tool_scanner *scanner, const char *at, const char *format, ...)
{
  va_list list;
  char *message;
  va_start(list, format);
  int length = vasprintf(&message, format, list);
  va_end(list);
  if (length < 0) return tool_fail(scanner->error, TOOL_EXIT_DEVICE, "out of memory");
  tool_fail(scanner->error, TOOL_EXIT_USAGE, "%s: %s\n  %s\n  %*s^", scanner->option, message,
            scanner->text, (int)(at - scanner->text), "");
  free(message);
  return false;
}

bool tool_scan_fail_kjit(tool_scanner *scanner, const char *at, kjit_context *context,
                         kjit_status status)
{
  tool_error *error = scanner->error, failed = { 0 };
  if (error->text) return false;
  tool_fail_kjit(&failed, context, status, scanner->option);
  error->exit_status = failed.exit_status;
  error->text =
    tool_format("%s\n  %s\n  %*s^", failed.text, scanner->text, (int)(at - scanner->text), "");
  free(failed.text);
  return false;
}

static bool is_name_start(char c) { return isalpha((unsigned char)c) || c == '_'; }

static bool is_name_part(char c) { return isalnum((unsigned char)c) || c == '_'; }

bool tool_expected(tool_scanner *scanner, const char *what)
{
  tool_skip_blanks(scanner);
  size_t length = 0;
  while (is_name_part(scanner->at[length])) length++;
  if (!*scanner->at)
    return tool_scan_fail(scanner, scanner->at, "expected %s, but the text ends", what);
  return tool_scan_fail(scanner, scanner->at, "expected %s, not '%.*s'", what,
                        (int)(length ? length : 1), scanner->at);
}

void tool_skip_blanks(tool_scanner *scanner)
{
  while (isspace((unsigned char)*scanner->at)) scanner->at++;
}

bool tool_at_end(tool_scanner *scanner)
{
  tool_skip_blanks(scanner);
  return !*scanner->at;
}

bool tool_accept(tool_scanner *scanner, char c)
{
  tool_skip_blanks(scanner);
  if (*scanner->at != c) return false;
  scanner->at++;
  return true;
}

bool tool_expect(tool_scanner *scanner, char c)
{
  char what[] = { '\'', c, '\'', 0 };
  return tool_accept(scanner, c) || tool_expected(scanner, what);
}

bool tool_expect_end(tool_scanner *scanner)
{
  return tool_at_end(scanner) || tool_expected(scanner, "the end of the text");
}

size_t tool_name_length(tool_scanner *scanner)
{
  tool_skip_blanks(scanner);
  size_t length = 0;
  if (is_name_start(*scanner->at))
    while (is_name_part(scanner->at[length])) length++;
  return length;
}

bool tool_accept_word(tool_scanner *scanner, const char *word)
{
  size_t length = tool_name_length(scanner);
  if (length != strlen(word) || memcmp(scanner->at, word, length)) return false;
  scanner->at += length;
  return true;
}

bool tool_scan_name(tool_scanner *scanner, const char *what, char **name)
{
  size_t length = tool_name_length(scanner);
  if (!length) return tool_expected(scanner, what);
  *name = tool_copy_text(scanner->at, length);
  scanner->at += length;
  return true;
}

/* Returns kjit's name for a type name of C, CUDA or NumPy, or NULL. */
static const char *element_of_others(const char *name, size_t length)
{
  static const struct {
    const char *theirs, *ours;
  } rows[] = { { "float", "f32" },     { "double", "f64" },     { "half", "f16" },
               { "int", "i32" },       { "long", "i64" },       { "short", "i16" },
               { "char", "i8" },       { "unsigned", "u32" },   { "uint", "u32" },
               { "float16", "f16" },   { "float32", "f32" },    { "float64", "f64" },
               { "bfloat16", "bf16" }, { "int8", "i8" },        { "int16", "i16" },
               { "int32", "i32" },     { "int64", "i64" },      { "uint8", "u8" },
               { "uint16", "u16" },    { "uint32", "u32" },     { "uint64", "u64" },
               { "complex64", "c64" }, { "complex128", "c128" } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strlen(rows[i].theirs) == length && !memcmp(rows[i].theirs, name, length))
      return rows[i].ours;
  return NULL;
}

static bool expected_element(tool_scanner *scanner, const char *others)
{
  size_t length = tool_name_length(scanner);
  const char *ours = element_of_others(scanner->at, length);
  if (ours)
    return tool_scan_fail(scanner, scanner->at, "kjit has no type '%.*s'; its name in kjit is %s",
                          (int)length, scanner->at, ours);
  char *names = tool_element_names(), *what = tool_format("an element type (%s)%s", names, others);
  tool_expected(scanner, what);
  free(names);
  free(what);
  return false;
}

bool tool_scan_element_type(tool_scanner *scanner, kjit_type *type)
{
  size_t length = tool_name_length(scanner);
  *type = tool_find_element(scanner->at, length);
  if (*type != KJIT_ANY) {
    scanner->at += length;
    return true;
  }
  return expected_element(scanner, "");
}

bool tool_split_vector(const char *text, size_t length, kjit_type *type, uint32_t *lanes)
{
  static const struct {
    const char *text;
    uint32_t lanes;
  } suffixes[] = { { "x2", 2 }, { "x3", 3 }, { "x4", 4 }, { "x8", 8 }, { "x16", 16 } };
  for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
    size_t suffix = strlen(suffixes[i].text);
    if (length <= suffix || memcmp(text + length - suffix, suffixes[i].text, suffix) != 0) continue;
    *type = tool_find_element(text, length - suffix);
    *lanes = suffixes[i].lanes;
    if (*type != KJIT_ANY && tool_elements[*type].class_ != TOOL_COMPLEX) return true;
  }
  return false;
}

bool tool_scan_array_type(tool_scanner *scanner, kjit_type *type, uint32_t *lanes)
{
  size_t length = tool_name_length(scanner);
  if (tool_split_vector(scanner->at, length, type, lanes)) {
    scanner->at += length;
    return true;
  }
  *lanes = 0;
  *type = tool_find_element(scanner->at, length);
  if (*type == KJIT_ANY)
    return expected_element(scanner,
                            scanner->context
                              ? ", a vector of them such as f32x4, or a struct of the module"
                              : " or a vector of them such as f32x4");
  scanner->at += length;
  return true;
}

/* ---- numbers ---- */

static int digit_value(char c)
{
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)tolower((unsigned char)c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* Scans an integer's digits in a base, with `_` allowed between them. Returns false if there is no
 * digit, or if the integer needs more than 64 bits. */
static bool scan_digits(const char **at, unsigned base, uint64_t *value)
{
  const char *p = *at;
  *value = 0;
  if (digit_value(*p) >= (int)base) return false;
  for (; digit_value(*p) < (int)base || (*p == '_' && digit_value(p[1]) < (int)base); p++) {
    if (*p == '_') continue;
    if (__builtin_mul_overflow(*value, base, value) ||
        __builtin_add_overflow(*value, (unsigned)digit_value(*p), value))
      return false;
  }
  *at = p;
  return true;
}

static unsigned number_base(const char *at)
{
  if (at[0] != '0') return 10;
  return at[1] == 'x' || at[1] == 'X' ? 16 : at[1] == 'b' || at[1] == 'B' ? 2 : 10;
}

/* Returns the length of a decimal number with a point or an exponent, or 0 for an integer or
 * anything else. */
static size_t real_length(const char *at)
{
  const char *p = at;
  bool real = false, digits = false;
  for (; isdigit((unsigned char)*p) || (*p == '_' && digits); p++) digits = true;
  if (*p == '.') {
    real = true;
    for (p++; isdigit((unsigned char)*p) || (*p == '_' && digits); p++) digits = true;
  }
  if (!digits) return 0;
  if (*p == 'e' || *p == 'E') {
    const char *e = p + 1;
    if (*e == '+' || *e == '-') e++;
    if (isdigit((unsigned char)*e)) {
      real = true;
      for (p = e; isdigit((unsigned char)*p); p++) {}
    }
  }
  return real ? (size_t)(p - at) : 0;
}

static bool scan_real(tool_scanner *scanner, size_t length, double *value)
{
  char *text = tool_copy_text(scanner->at, length), *to = text;
  for (const char *from = text; *from; from++)
    if (*from != '_') *to++ = *from;
  *to = 0;
  *value = strtod(text, NULL);
  free(text);
  if (isinf(*value)) return tool_scan_fail(scanner, scanner->at, "the number is too large for f64");
  scanner->at += length;
  return true;
}

static bool scan_unsigned(tool_scanner *scanner, const char *what, uint64_t *value)
{
  const char *p = scanner->at;
  unsigned base = number_base(p);
  if (base != 10) p += 2;
  if (digit_value(*p) >= (int)base) return tool_expected(scanner, what);
  if (!scan_digits(&p, base, value))
    return tool_scan_fail(scanner, scanner->at, "the number needs more than 64 bits");
  scanner->at = p;
  return true;
}

static bool negate(tool_scanner *scanner, const char *start, uint64_t magnitude, bool negative,
                   tool_number *number)
{
  if (!negative && magnitude > INT64_MAX) {
    *number = (tool_number){ .kind = TOOL_NUMBER_UNSIGNED, .u = magnitude };
    return true;
  }
  if (negative && magnitude > (uint64_t)INT64_MAX + 1)
    return tool_scan_fail(scanner, start, "the number needs more than 64 bits");
  *number = tool_make_integer(negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude);
  return true;
}

static bool scan_number(tool_scanner *scanner, tool_number *number)
{
  tool_skip_blanks(scanner);
  const char *start = scanner->at;
  bool negative = tool_accept(scanner, '-');
  if (!negative) tool_accept(scanner, '+');
  tool_skip_blanks(scanner);
  bool infinite = tool_accept_word(scanner, "inf");
  if (infinite || tool_accept_word(scanner, "nan")) {
    *number = tool_make_real(infinite ? (negative ? -INFINITY : INFINITY) : NAN);
    return true;
  }
  if (tool_is_size(scanner)) {
    int64_t value;
    if (!tool_scan_integer(scanner, "a number", &value)) return false;
    *number = tool_make_integer(negative ? -value : value);
    return true;
  }
  size_t length = number_base(scanner->at) == 10 ? real_length(scanner->at) : 0;
  if (length) {
    double value;
    if (!scan_real(scanner, length, &value)) return false;
    *number = tool_make_real(negative ? -value : value);
    return true;
  }
  uint64_t magnitude;
  return scan_unsigned(scanner, "a number", &magnitude) &&
         negate(scanner, start, magnitude, negative, number);
}

/* Finds an exponent such as "e6" or ".5e6" after decimal digits. *fraction receives the digits
 * after the point, *exponent the power of 10. Returns the end, or NULL if there is no exponent. */
static const char *find_exponent(const char *at, const char **fraction, uint32_t *exponent)
{
  *fraction = at;
  if (*at == '.' && isdigit((unsigned char)at[1]))
    for (at++, *fraction = at; isdigit((unsigned char)*at);) at++;
  if (*at != 'e' && *at != 'E') return NULL;
  at += at[1] == '+' ? 2 : 1;
  if (!isdigit((unsigned char)*at)) return NULL;
  for (*exponent = 0; isdigit((unsigned char)*at); at++)
    if (*exponent < 1000) *exponent = *exponent * 10 + (uint32_t)(*at - '0');
  return at;
}

/* Multiplies *value by the power of 10, so that "1e6" and "2.5e3" are integers. Fails if a fraction
 * remains. */
static bool scan_exponent(tool_scanner *scanner, const char *start, uint64_t *value)
{
  uint32_t exponent;
  const char *digit, *end = find_exponent(scanner->at, &digit, &exponent);
  if (!end || number_base(start) != 10) return true;
  bool fits = true, has_fraction = *scanner->at == '.';
  for (; exponent; exponent--) {
    bool is_digit = has_fraction && isdigit((unsigned char)*digit);
    fits = fits && !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, is_digit ? (uint64_t)(*digit - '0') : 0, value);
    digit += is_digit;
  }
  for (; has_fraction && *digit == '0';) digit++;
  if (has_fraction && isdigit((unsigned char)*digit))
    return tool_scan_fail(scanner, start, "expected an integer, not '%.*s'", (int)(end - start),
                          start);
  if (!fits) return tool_scan_fail(scanner, start, "the number needs more than 64 bits");
  scanner->at = end;
  return true;
}

/* Scans "^20" after an integer, and raises *value to this power. */
static bool scan_power(tool_scanner *scanner, const char *start, uint64_t *value)
{
  uint64_t base = *value, exponent;
  if (*scanner->at != '^') return true;
  scanner->at++;
  if (!scan_unsigned(scanner, "an exponent", &exponent)) return false;
  bool fits = base < 2 || exponent < 64;
  if (exponent) *value = base;
  else *value = 1;
  for (uint64_t i = 1; fits && base > 1 && i < exponent; i++)
    fits = !__builtin_mul_overflow(*value, base, value);
  return fits || tool_scan_fail(scanner, start, "the number needs more than 64 bits");
}

static bool scan_whole(tool_scanner *scanner, const char *what, tool_number *number)
{
  const char *start = scanner->at;
  bool negative = tool_accept(scanner, '-');
  uint64_t magnitude;
  tool_skip_blanks(scanner);
  const char *digits = scanner->at;
  return scan_unsigned(scanner, what, &magnitude) && scan_exponent(scanner, digits, &magnitude) &&
         scan_power(scanner, digits, &magnitude) &&
         negate(scanner, start, magnitude, negative, number);
}

static bool scan_plain_integer(tool_scanner *scanner, const char *what, int64_t *value)
{
  const char *start = scanner->at;
  tool_number number = tool_make_integer(0);
  if (!scan_whole(scanner, what, &number)) return false;
  if (number.kind == TOOL_NUMBER_UNSIGNED)
    return tool_scan_fail(scanner, start, "the number is too large for i64");
  *value = number.i;
  return true;
}

bool tool_is_size(tool_scanner *scanner)
{
  size_t length = tool_name_length(scanner);
  return scanner->size && strlen(scanner->size->name) == length &&
         !memcmp(scanner->size->name, scanner->at, length);
}

static bool scan_factor(tool_scanner *scanner, const char *what, int64_t *value)
{
  if (!tool_is_size(scanner)) return scan_plain_integer(scanner, what, value);
  scanner->at += strlen(scanner->size->name);
  scanner->size->is_used = true;
  *value = scanner->size->value;
  return true;
}

bool tool_scan_integer(tool_scanner *scanner, const char *what, int64_t *value)
{
  tool_skip_blanks(scanner);
  const char *start = scanner->at;
  if (!scan_factor(scanner, what, value)) return false;
  while (scanner->size) {
    int64_t factor;
    bool is_product = tool_accept(scanner, '*');
    if (!is_product && !tool_accept(scanner, '/')) break;
    tool_skip_blanks(scanner);
    if (!scan_factor(scanner, "an integer", &factor)) return false;
    if (is_product && __builtin_mul_overflow(*value, factor, value))
      return tool_scan_fail(scanner, start, "the number is too large for i64");
    if (is_product) continue;
    if (factor <= 0 || *value % factor != 0)
      return tool_scan_fail(scanner, start, "%lld is not a multiple of %lld; %s is %lld",
                            (long long)*value, (long long)factor, scanner->size->name,
                            (long long)scanner->size->value);
    *value /= factor;
  }
  return true;
}

bool tool_scan_bits(tool_scanner *scanner, const char *what, uint64_t *bits)
{
  tool_skip_blanks(scanner);
  const char *start = scanner->at;
  tool_number number = tool_make_integer(0);
  if (!tool_is_size(scanner)) {
    if (!scan_whole(scanner, what, &number)) return false;
    *bits = number.kind == TOOL_NUMBER_UNSIGNED ? number.u : (uint64_t)number.i;
    if (number.kind == TOOL_NUMBER_UNSIGNED || !scanner->size) return true;
  }
  int64_t value;
  scanner->at = start;
  if (!tool_scan_integer(scanner, what, &value)) return false;
  *bits = (uint64_t)value;
  return true;
}

/* ---- values ---- */

bool tool_convert(tool_scanner *scanner, const char *at, const tool_number *number, kjit_type type)
{
  const char *misfit = tool_misfit(type, number);
  return !misfit || tool_scan_fail(scanner, at, "the value does not fit %s: %s",
                                   tool_elements[type].text, misfit);
}

static bool scan_typed(tool_scanner *scanner, kjit_type type, tool_number *number)
{
  bool is_complex = tool_elements[type].class_ == TOOL_COMPLEX;
  tool_number im = tool_make_real(0);
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_expect(scanner, '(')) return false;
  bool is_true = tool_accept_word(scanner, "true");
  if (is_true || tool_accept_word(scanner, "false"))
    *number = (tool_number){ .kind = TOOL_NUMBER_BOOL, .i = is_true };
  else if (!scan_number(scanner, number)) return false;
  if (is_complex && tool_accept(scanner, ',') && !scan_number(scanner, &im)) return false;
  if (!tool_expect(scanner, ')') || !tool_convert(scanner, at, number, type)) return false;
  if (is_complex)
    *number = (tool_number){ .kind = TOOL_NUMBER_COMPLEX,
                             .re = tool_number_real(number),
                             .im = tool_number_real(&im) };
  return true;
}

bool tool_is_value(tool_scanner *scanner)
{
  static const char *const words[] = { "true", "false", "inf", "nan" };
  size_t length = tool_name_length(scanner);
  /* a number follows, or an invalid number, which the function that scans the value will report */
  if (!length) return true;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i]) == length && !memcmp(words[i], scanner->at, length)) return true;
  return tool_find_element(scanner->at, length) != KJIT_ANY && scanner->at[length] == '(';
}

bool tool_scan_value(tool_scanner *scanner, tool_value *value)
{
  tool_skip_blanks(scanner);
  const char *start = scanner->at;
  bool is_true = tool_accept_word(scanner, "true");
  value->type = KJIT_BOOL;
  value->number = (tool_number){ .kind = TOOL_NUMBER_BOOL, .i = is_true };
  if (is_true || tool_accept_word(scanner, "false")) return true;
  size_t length = tool_name_length(scanner);
  value->type = tool_find_element(scanner->at, length);
  if (value->type != KJIT_ANY) {
    scanner->at += length;
    return scan_typed(scanner, value->type, &value->number);
  }
  if (!scan_number(scanner, &value->number)) return false;
  if (!is_name_part(*scanner->at)) return true; /* untyped */
  return tool_scan_element_type(scanner, &value->type) &&
         tool_convert(scanner, start, &value->number, value->type);
}
