/* The parts of the key of the disk cache, and the table of all inputs that code depends on.
 * key_inputs.def contains the rows. */
#ifndef KJ_CODE_KEY_INPUTS_H
#define KJ_CODE_KEY_INPUTS_H

#include <stddef.h>

typedef enum kj_key_part {
#define KJ_KEY_PART(NAME, word, what) KJ_KEY_##NAME,
#include "code/key_inputs.def"
  KJ_KEY_PART_COUNT,
  /* reasons why no part contains a field */
  KJ_KEY_ROWS = KJ_KEY_PART_COUNT,
  KJ_KEY_DERIVED,
  KJ_KEY_ONE_VALUE,
  KJ_KEY_REFUSES,
  KJ_KEY_NO_CODE,
  KJ_KEY_SOURCES,
  KJ_KEY_COMPILER
} kj_key_part;

/* A field in a struct in the compile request. */
typedef struct kj_key_input {
  const char *type, *field;
  kj_key_part where;
} kj_key_input;
extern const kj_key_input kj_key_inputs[];
extern const size_t kj_key_input_count;

/* disk_key.c: returns the word with which the line of a part begins. */
const char *kj_key_word(kj_key_part part);

#endif
