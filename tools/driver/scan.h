/* Reads the small texts of the command line piece by piece: argument values, launches. Failures
 * show the text with a caret. */
#ifndef TOOL_SCAN_H
#define TOOL_SCAN_H

#include <driver/element.h>

/* A name that stands for an integer: `n` of --sweep. */
typedef struct tool_size {
  const char *name;
  int64_t value;
  bool is_used; /* a text names it */
} tool_size;

typedef struct tool_scanner {
  const char *option; /* "--arg": what the error names */
  const char *text, *at;
  tool_error *error;
  kjit_context *context; /* whose structs can be named; NULL: none */
  /* what the structs of a file are that comes without `:as=`; NULL: it has to be said */
  const struct tool_record *record;
  /* which array of a .npz file is read where the text names none; NULL: only one that is alone */
  const char *array_name;
  tool_size *size; /* which texts may name; NULL: none */
} tool_scanner;

/* A typed value ("2.5f32", "true", "f16(2)", "c64(1, -2)") or, with type KJIT_ANY, an untyped
 * number ("8", "1e-3"). */
typedef struct tool_value {
  kjit_type type;
  tool_number number;
  bool is_vector;                 /* "f32x4(1, 2, 3, 4)": in bytes; of --arg only */
  _Alignas(8) uint8_t bytes[128]; /* 16 lanes of f64 */
} tool_value;

tool_scanner tool_scan(const char *option, const char *text, tool_error *error);
/* Records "option: message", the text and a caret under `at`; returns false. */
__attribute__((format(printf, 3, 4))) bool tool_scan_fail(tool_scanner *scanner, const char *at,
                                                          const char *format, ...);
/* The same of a failed kjit call: the diagnostics of the context, then the text and the caret. */
bool tool_scan_fail_kjit(tool_scanner *scanner, const char *at, kjit_context *context,
                         kjit_status status);
/* "expected WHAT, not 'what stands here'". */
bool tool_expected(tool_scanner *scanner, const char *what);

void tool_skip_blanks(tool_scanner *scanner);
bool tool_at_end(tool_scanner *scanner);
bool tool_accept(tool_scanner *scanner, char c); /* also skips blanks before it */
bool tool_expect(tool_scanner *scanner, char c);
bool tool_expect_end(tool_scanner *scanner);
/* a word that no name character follows */
bool tool_accept_word(tool_scanner *scanner, const char *word);
/* of the identifier here, after blanks; 0: none */
size_t tool_name_length(tool_scanner *scanner);
bool tool_scan_name(tool_scanner *scanner, const char *what, char **name);
/* Whether the name of the scanner's size stands here. */
bool tool_is_size(tool_scanner *scanner);
/* With sign; "1e6", "2.5e3" and "2^20" are integers too. Where there is a size also its name, and
 * products and quotients of it, of which no division may have a remainder. */
bool tool_scan_integer(tool_scanner *scanner, const char *what, int64_t *value);
/* The same for what is 64 bits, as a seed is: with a sign, or up to 2^64 - 1 without. */
bool tool_scan_bits(tool_scanner *scanner, const char *what, uint64_t *bits);
bool tool_scan_element_type(tool_scanner *scanner, kjit_type *type);
/* Whether a text is the name of a vector: of what type and how many its lanes are. */
bool tool_split_vector(const char *text, size_t length, kjit_type *type, uint32_t *lanes);
/* The same of an array, which may be vectors: "f32x4" is f32 with 4 lanes. A scalar: 0. */
bool tool_scan_array_type(tool_scanner *scanner, kjit_type *type, uint32_t *lanes);
/* Whether a value, rather than a name, stands here. */
bool tool_is_value(tool_scanner *scanner);
bool tool_scan_value(tool_scanner *scanner, tool_value *value);
/* The value as an element of the type; fails at `at` when it does not fit. */
bool tool_convert(tool_scanner *scanner, const char *at, const tool_number *number, kjit_type type);

#endif
