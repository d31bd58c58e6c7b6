/* Element types on the host: sizes, conversion from and to numbers and text. kjit/types.def defines
 * everything except the NumPy names. */
#ifndef TOOL_ELEMENT_H
#define TOOL_ELEMENT_H

#include <driver/error.h>

typedef enum tool_class {
  TOOL_BOOL,
  TOOL_SIGNED,
  TOOL_UNSIGNED,
  TOOL_FLOAT,
  TOOL_COMPLEX
} tool_class;

typedef struct tool_element {
  const char *text; /* "f32" */
  uint32_t size_bytes;
  tool_class class_;
  uint8_t code, bits; /* DLPack */
  const char *numpy;  /* "<f4"; NULL means that NumPy has no such type */
  int mantissa_bits;  /* number of mantissa bits without the hidden bit, for floats and the parts of
                         complex numbers */
} tool_element;

/* indexed by kjit_type, from KJIT_BOOL to KJIT_SCALAR_COUNT - 1 */
extern const tool_element tool_elements[KJIT_SCALAR_COUNT];

/* A number without an element type, or an element's value. */
typedef enum tool_number_kind {
  TOOL_NUMBER_SIGNED,
  TOOL_NUMBER_UNSIGNED,
  TOOL_NUMBER_REAL,
  TOOL_NUMBER_COMPLEX,
  TOOL_NUMBER_BOOL
} tool_number_kind;
typedef struct tool_number {
  tool_number_kind kind;
  int64_t i;     /* SIGNED, BOOL */
  uint64_t u;    /* for the kind UNSIGNED, which only integers above INT64_MAX have */
  double re, im; /* REAL, COMPLEX */
} tool_number;

/* Returns the type with this name, or KJIT_ANY if there is none. */
kjit_type tool_find_element(const char *text, size_t length);
char *tool_element_names(void); /* Returns the list "bool, i8, ...", which the caller frees. */

double tool_number_real(const tool_number *number);
tool_number tool_make_integer(int64_t value);
tool_number tool_make_real(double value);
/* Returns the reason why the number is not a value of the type, in static storage, or NULL if it
 * is. Floats round, so every real number is a value of f16. */
const char *tool_misfit(kjit_type type, const tool_number *number);
/* Stores a number, which must fit the type (see tool_misfit). */
void tool_store(kjit_type type, void *element, const tool_number *number);
tool_number tool_load(kjit_type type, const void *element);
/* Writes the shortest text that reads back as the same element. The buffer has at least
 * TOOL_ELEMENT_TEXT bytes. */
enum { TOOL_ELEMENT_TEXT = 80 };
void tool_element_text(kjit_type type, const void *element, char *buffer);

#endif
