/* Defines the table of key inputs, and checks at compile time that it contains all fields. For each
 * struct in key_inputs.def, this file declares a second struct with the listed fields, which must
 * have the same size and offsets, and an initializer with one value for each row. If a row is
 * missing, a member has no value, which is a compile error in every build. */
#include "code/key_inputs.h"

#include "code/disk.h"
#include "ir/context.h"

#pragma GCC diagnostic error "-Wmissing-field-initializers"

/* ---- check of fields and order ---- */

#define KJ_KEY_STRUCT(type) typedef struct listed_##type {
#define KJ_KEY_FIELD(type, field, WHERE) __typeof__(((type *)0)->field) field;
#define KJ_KEY_BLOCK(type, field, WHERE) KJ_KEY_FIELD(type, field, WHERE)
#define KJ_KEY_END(type) \
  } \
  listed_##type; \
  _Static_assert(sizeof(listed_##type) == sizeof(type), #type " has other fields");
#include "code/key_inputs.def"

#define KJ_KEY_STRUCT(type)
#define KJ_KEY_FIELD(type, field, WHERE) \
  _Static_assert(offsetof(listed_##type, field) == offsetof(type, field), #field " is elsewhere");
#define KJ_KEY_BLOCK(type, field, WHERE) KJ_KEY_FIELD(type, field, WHERE)
#define KJ_KEY_END(type)
#include "code/key_inputs.def"

/* ---- check of the number of fields ---- */

#define KJ_KEY_STRUCT(type) static const type zero_##type __attribute__((unused)) = {
#define KJ_KEY_FIELD(type, field, WHERE) 0,
#define KJ_KEY_BLOCK(type, field, WHERE) { 0 },
#define KJ_KEY_END(type) \
  } \
  ;
#include "code/key_inputs.def"

/* ---- the table ---- */

const kj_key_input kj_key_inputs[] = {
#define KJ_KEY_STRUCT(type)
#define KJ_KEY_FIELD(type, field, WHERE) { #type, #field, KJ_KEY_##WHERE },
#define KJ_KEY_BLOCK(type, field, WHERE) KJ_KEY_FIELD(type, field, WHERE)
#define KJ_KEY_END(type)
#include "code/key_inputs.def"
};
const size_t kj_key_input_count = sizeof kj_key_inputs / sizeof *kj_key_inputs;
