/* Element types on the host: sizes, conversion from and to numbers, text. Everything but the numpy
 * names comes from kjit/types.def. */
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
  const char *numpy;  /* "<f4"; NULL: numpy has no such type */
  int mantissa_bits;  /* of floats and of the parts of complex numbers, without the hidden one */
} tool_element;

/* By kjit_type, KJIT_BOOL to KJIT_SCALAR_COUNT - 1. */
extern const tool_element tool_elements[KJIT_SCALAR_COUNT];

/* A number before it has an element type, or read back from an element. */
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
  uint64_t u;    /* UNSIGNED: above INT64_MAX only */
  double re, im; /* REAL, COMPLEX */
} tool_number;

kjit_type tool_find_element(const char *text, size_t length); /* KJIT_ANY: none of that name */
char *tool_element_names(void);                               /* "bool, i8, ..." */

double tool_number_real(const tool_number *number);
tool_number tool_make_integer(int64_t value);
tool_number tool_make_real(double value);
/* Why the number is not a value of the type, or NULL when it is; floats round, so any real number
 * is an f16. Static storage. */
const char *tool_misfit(kjit_type type, const tool_number *number);
/* The number must fit, see tool_misfit. */
void tool_store(kjit_type type, void *element, const tool_number *number);
tool_number tool_load(kjit_type type, const void *element);
/* The shortest text that reads back as the same element; buffer of at least TOOL_ELEMENT_TEXT
 * bytes. */
enum { TOOL_ELEMENT_TEXT = 80 };
void tool_element_text(kjit_type type, const void *element, char *buffer);

#endif
