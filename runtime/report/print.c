/* Lines of kernels as text, their delivery, and the lines of a launch on the CPU. */
#include "report/print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

enum { F16_PRECISION = 11, BF16_PRECISION = 8, F32_PRECISION = 24, F64_PRECISION = 53 };

/* The word holds the bits of the type, and perhaps others above them. */
static double float_of(kjit_type type, uint64_t word)
{
  ki_value value;
  (void)ki_decode_value(type, &word, &value);
  return ki_number_of(value);
}

static void append_number(kj_buffer *text, double value, int precision, bool is_part)
{
  char number[KJ_NUMBER_BYTES];
  kj_format_number(value, precision, is_part, number);
  kj_append_text(text, number);
}

static void append_complex(kj_buffer *text, double real, double imaginary, int precision)
{
  kj_append_text(text, "(");
  append_number(text, real, precision, true);
  if (isnan(imaginary) || !signbit(imaginary)) kj_append_text(text, "+");
  append_number(text, imaginary, precision, true);
  kj_append_text(text, "j)");
}

/* How many words it took. */
static uint32_t append_value(kj_buffer *text, char letter, const uint64_t *words)
{
  uint64_t word = words[0];
  switch (letter) {
  case 'b': kj_append_text(text, word ? "true" : "false"); return 1;
  case 'i': kj_append_format(text, "%" PRId64, (int64_t)word); return 1;
  case 'u': kj_append_format(text, "%" PRIu64, word); return 1;
  case 'p': kj_append_format(text, "0x%" PRIx64, word); return 1;
  case 'h': append_number(text, float_of(KJIT_F16, word), F16_PRECISION, false); return 1;
  case 'y': append_number(text, float_of(KJIT_BF16, word), BF16_PRECISION, false); return 1;
  case 'f': append_number(text, float_of(KJIT_F32, word), F32_PRECISION, false); return 1;
  case 'd': append_number(text, float_of(KJIT_F64, word), F64_PRECISION, false); return 1;
  case 'F':
    append_complex(text, float_of(KJIT_F32, word), float_of(KJIT_F32, words[1]), F32_PRECISION);
    return 2;
  default:
    append_complex(text, float_of(KJIT_F64, word), float_of(KJIT_F64, words[1]), F64_PRECISION);
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

/* ---- delivery ---- */

static void warn_of_lost_lines(kjit_context *context, uint64_t lost, const char *where)
{
  kj_diagnostics diagnostics = { 0 };
  kj_report(&diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_WARNING, KJIT_OK,
            "%" PRIu64 " line%s that kernels printed on %s %s lost: there was no room; print less "
            "between two synchronizations, or set "
            "kjit_config.print_buffer_bytes",
            lost, lost == 1 ? "" : "s", where, lost == 1 ? "is" : "are");
  (void)ki_finish_call(context, &diagnostics);
}

void kj_deliver_prints(kjit_context *context, kj_buffer *text, uint64_t lost, const char *where)
{
  const kjit_config *config = &context->config;
  if (text->length && config->on_print) {
    pthread_mutex_lock(&context->print_mutex);
    config->on_print(config->user, text->text, text->length);
    pthread_mutex_unlock(&context->print_mutex);
  }
  kj_free_buffer(text);
  if (lost) warn_of_lost_lines(context, lost, where);
}

/* ---- CPU ---- */

/* The words of a line: block, header, values. */
static int compare_lines(const void *a, const void *b)
{
  const uint64_t *x = *(const uint64_t *const *)a, *y = *(const uint64_t *const *)b;
  if (*x != *y) return *x < *y ? -1 : 1;
  return x < y ? -1 : x > y;
}

static size_t line_words(const uint64_t *line) { return 2 + kn_print_count(line[1]); }

/* By block; a block's own lines are in the order in which they came, as one worker runs it. */
static void format_sorted(const kn_print_sink *sink, const char *prints, kj_buffer *text)
{
  size_t count = 0;
  for (size_t at = 0; at < sink->count; at += line_words(sink->words + at)) count++;
  const uint64_t **lines = malloc((count + 1) * sizeof *lines);
  for (size_t at = 0, i = 0; at < sink->count; at += line_words(sink->words + at)) {
    const uint64_t *line = sink->words + at;
    if (lines) lines[i++] = line;
    else kj_format_line(prints, line[1], line + 2, text); /* out of memory: as they came */
  }
  if (!lines) return;
  qsort(lines, count, sizeof *lines, compare_lines);
  for (size_t i = 0; i < count; i++) kj_format_line(prints, lines[i][1], lines[i] + 2, text);
  free(lines);
}

static void deliver_cpu(kn_print_sink *sink)
{
  kj_cpu_prints *prints = (kj_cpu_prints *)sink;
  kj_buffer text = { 0 };
  format_sorted(sink, prints->prints, &text);
  kj_deliver_prints(prints->context, &text, sink->lost, "the CPU");
  sink->count = 0;
  sink->lost = 0;
}

void kj_begin_cpu_prints(kj_cpu_prints *prints, kjit_context *context, const kj_code *code)
{
  *prints = (kj_cpu_prints){ .context = context, .prints = code->prints };
  prints->sink.deliver = deliver_cpu;
  pthread_mutex_init(&prints->sink.mutex, NULL);
}

void kj_end_cpu_prints(kj_cpu_prints *prints)
{
  if (prints->sink.count || prints->sink.lost) deliver_cpu(&prints->sink);
  pthread_mutex_destroy(&prints->sink.mutex);
  free(prints->sink.words);
}
