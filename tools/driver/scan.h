/* Scanner for short texts on the command line, such as argument values and launches. Error messages
 * show the text with a caret. */
#ifndef TOOL_SCAN_H
#define TOOL_SCAN_H

#include <driver/element.h>

/* A name that stands for an integer, such as `n` of --sweep. */
typedef struct tool_size {
  const char *name;
  int64_t value;
  bool is_used; /* true if a text uses the name */
} tool_size;

typedef struct tool_scanner {
  const char *option; /* name of the option for errors, for example "--arg" */
  const char *text, *at;
  tool_error *error;
  kjit_context *context; /* context whose structs can be named, or NULL */
  /* struct type for elements in a file if the text has no `:as=`; NULL means that the text must
   * name the type */
  const struct tool_record *record;
  /* name of the array that is read from a .npz file if the text does not name one; NULL means that
   * the file must have a single array */
  const char *array_name;
  tool_size *size; /* name that texts may use, or NULL */
} tool_scanner;

/* A typed value such as "2.5f32", "true", "f16(2)" or "c64(1, -2)", or with type KJIT_ANY an
 * untyped number such as "8" or "1e-3". */
typedef struct tool_value {
  kjit_type type;
  tool_number number;
  bool is_vector;                 /* a vector such as "f32x4(1, 2, 3, 4)", stored in bytes; only for
                                   * --arg */
  _Alignas(8) uint8_t bytes[128]; /* enough for 16 lanes of f64 */
} tool_value;

tool_scanner tool_scan(const char *option, const char *text, tool_error *error);
/* Records "option: message" with the text and a caret under `at`. Returns false. */
__attribute__((format(printf, 3, 4))) bool tool_scan_fail(tool_scanner *scanner, const char *at,
                                                          const char *format, ...);
/* Like tool_scan_fail, for a failed kjit call. Records the context's diagnostics, then the text and
 * the caret. */
bool tool_scan_fail_kjit(tool_scanner *scanner, const char *at, kjit_context *context,
                         kjit_status status);
/* Records "expected WHAT, not 'REST'", where REST is the next word of the text. Returns false. */
bool tool_expected(tool_scanner *scanner, const char *what);

void tool_skip_blanks(tool_scanner *scanner);
bool tool_at_end(tool_scanner *scanner);
/* Skips blanks, and then the character if it follows. Returns whether it followed. */
bool tool_accept(tool_scanner *scanner, char c);
bool tool_expect(tool_scanner *scanner, char c);
bool tool_expect_end(tool_scanner *scanner);
/* Skips a word if it follows and no name character comes after it. */
bool tool_accept_word(tool_scanner *scanner, const char *word);
/* Returns the identifier length after blanks, or 0 if there is none. */
size_t tool_name_length(tool_scanner *scanner);
bool tool_scan_name(tool_scanner *scanner, const char *what, char **name);
/* Returns whether the name of the size (see tool_size) follows. */
bool tool_is_size(tool_scanner *scanner);
/* Scans an integer with an optional sign; "1e6", "2.5e3" and "2^20" are integers, too. If the
 * scanner has a size, the size's name and products and quotients of it are integers as well. A
 * division must have no remainder. */
bool tool_scan_integer(tool_scanner *scanner, const char *what, int64_t *value);
/* Like tool_scan_integer, for 64-bit patterns such as seeds. A number without a sign can be up to
 * 2^64 - 1. */
bool tool_scan_bits(tool_scanner *scanner, const char *what, uint64_t *bits);
bool tool_scan_element_type(tool_scanner *scanner, kjit_type *type);
/* Returns whether the text is the name of a vector type, and stores its type and lanes. */
bool tool_split_vector(const char *text, size_t length, kjit_type *type, uint32_t *lanes);
/* Scans the element type of an array, which may be a vector: "f32x4" is f32 with 4 lanes. For a
 * scalar *lanes is 0. */
bool tool_scan_array_type(tool_scanner *scanner, kjit_type *type, uint32_t *lanes);
/* Returns whether a value follows, not a name. */
bool tool_is_value(tool_scanner *scanner);
bool tool_scan_value(tool_scanner *scanner, tool_value *value);
/* Checks that the number fits the type; fails at `at` otherwise. */
bool tool_convert(tool_scanner *scanner, const char *at, const tool_number *number, kjit_type type);

#endif
