/* The tables from builtins.def, math.def, attributes.def and ops.def, and lookups by name. */
#include <pthread.h>
#include <string.h>

#include "ir/module.h"

#define ANY 0, 0, 0
#define SM(arch, ptx) arch, ptx, 0
#define SM_A(arch, ptx) arch, ptx, 'a'
const ki_builtin ki_builtin_table[KJ_BUILTIN_COUNT] = {
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  { KJ_BUILTIN_##id, name, least, most, operation, scope, needs, flags, aliases },
#include "ir/builtins.def"
#undef X
};

#define NONE NULL
const ki_math ki_math_table[KJ_BUILTIN_COUNT] = {
#define EXACT(id, fold, host, libdevice, fast, libclc, form) \
  [KJ_BUILTIN_##id] = { host, libdevice, fast, libclc, form },
#define MATH(id, fold, host, libdevice, fast, libclc, form, ...) \
  EXACT(id, fold, host, libdevice, fast, libclc, form)
#define COMPLEX(id, f32, f64)
#include "ir/math.def"
#undef EXACT
#undef MATH
#undef COMPLEX
};

#define KERNEL KJ_PLACE_KERNEL
#define FUNC KJ_PLACE_FUNC
#define LOOP KJ_PLACE_LOOP
#define ARRAY KJ_PLACE_ARRAY
#define STRUCT KJ_PLACE_STRUCT
const ki_attribute_info ki_attribute_table[KJ_ATTRIBUTE_COUNT] = {
#define X(name, text, least, most, places, doc) { text, doc, least, most, places },
#include "ir/attributes.def"
#undef X
};

const ki_rule ki_rule_table[KI_RULE_COUNT] = { { KJIT_RULE_WRAP, KJ_ATTRIBUTE_WRAP },
                                               { KJIT_RULE_NUMBA, KJ_ATTRIBUTE_NUMBA } };

const ki_op_info ki_op_table[KJIT_OP_COUNT] = {
#define KJIT_ROW(name, text, precedence, class_) { #name, text, precedence, KJ_OP_##class_ },
#include <kjit/ops.def>
#undef KJIT_ROW
};

const char *const ki_range_names[KJ_RANGE_COUNT] = { "range", "grid_range", "block_range" };

/* Hash table: the first built-in in each bucket, and for each built-in the next one in its bucket.
 * KJ_BUILTIN_COUNT ends a list. */
enum { BUCKETS = 256 };
static uint16_t first_builtins[BUCKETS], next_builtins[KJ_BUILTIN_COUNT];

/* Returns the bucket for a name, which depends on its first two characters. */
static unsigned bucket_of(const char *name)
{
  unsigned first = (unsigned char)name[0], second = first ? (unsigned char)name[1] : 0;
  return (first * 29 + second) % BUCKETS;
}

static void fill_buckets(void)
{
  for (size_t i = 0; i < BUCKETS; i++) first_builtins[i] = KJ_BUILTIN_COUNT;
  for (int i = KJ_BUILTIN_COUNT - 1; i >= 0; i--) {
    uint16_t *first = &first_builtins[bucket_of(ki_builtin_table[i].name)];
    next_builtins[i] = *first;
    *first = (uint16_t)i;
  }
}

const ki_builtin *ki_find_builtin(const char *name)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_buckets);
  for (int i = first_builtins[bucket_of(name)]; i < KJ_BUILTIN_COUNT; i = next_builtins[i])
    if (strcmp(ki_builtin_table[i].name, name) == 0) return &ki_builtin_table[i];
  return NULL;
}

/* Returns whether word is one of the words in list, which are separated by blanks. */
static int has_word(const char *list, const char *word)
{
  size_t length = strlen(word);
  for (const char *at = strstr(list, word); length && at; at = strstr(at + 1, word))
    if ((at == list || at[-1] == ' ') && (at[length] == 0 || at[length] == ' ')) return 1;
  return 0;
}

const ki_builtin *ki_find_builtin_alias(const char *name)
{
  for (int i = 0; i < KJ_BUILTIN_COUNT; i++)
    if (has_word(ki_builtin_table[i].aliases, name)) return &ki_builtin_table[i];
  return NULL;
}

const ki_attribute_info *ki_find_attribute(const char *name)
{
  for (int i = 0; i < KJ_ATTRIBUTE_COUNT; i++)
    if (strcmp(ki_attribute_table[i].name, name) == 0) return &ki_attribute_table[i];
  return NULL;
}

const ki_attribute *ki_get_attribute(const ki_attributes *attributes, ki_attribute_id id)
{
  /* compare the names, because libkjit and the compiler library each have a copy of the table */
  for (size_t i = 0; i < attributes->count; i++)
    if (strcmp(attributes->items[i].info->name, ki_attribute_table[id].name) == 0)
      return &attributes->items[i];
  return NULL;
}

const ki_decl *ki_find_named_func(const ki_function *function, ki_attribute_id id)
{
  const ki_attribute *attribute = ki_get_attribute(&function->attributes, id);
  return attribute ? attribute->values.items[0]->decl : NULL;
}

const ki_decl *ki_find_identity(const ki_function *function)
{
  return ki_find_named_func(function, KJ_ATTRIBUTE_IDENTITY);
}

bool ki_is_derivative(const ki_builtin *builtin)
{
  return builtin->id == KJ_BUILTIN_JVP || builtin->id == KJ_BUILTIN_VJP ||
         builtin->id == KJ_BUILTIN_GRAD || builtin->id == KJ_BUILTIN_ADJOINT;
}

bool ki_wraps_indices(const ki_attributes *attributes)
{
  return ki_get_attribute(attributes, KJ_ATTRIBUTE_WRAP) ||
         ki_get_attribute(attributes, KJ_ATTRIBUTE_NUMBA);
}
