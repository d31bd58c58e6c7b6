/* Types of values, interned: equal types have equal numbers within one table (one per context). Scalars are the public constants of kjit/module.h. */
#ifndef KJ_IR_TYPE_H
#define KJ_IR_TYPE_H

#include <kjit/module.h>
#include <stdbool.h>

#include "support/buffer.h"

enum { KJ_MAX_RANK = 8 };

/* Types without a public name. Weak types are those of literals and of plain numbers of a host: they take the type they meet (kernel-ir.md, Inference). */
enum {
  KJ_WEAK_INT = KJIT_FUNC + 1,
  KJ_WEAK_FLOAT,
  KJ_FIRST_COMPOSED /* numbers from here on index the table */
};

typedef enum kj_type_class {
  KJ_CLASS_NONE,
  KJ_CLASS_BOOL,
  KJ_CLASS_SIGNED,
  KJ_CLASS_UNSIGNED,
  KJ_CLASS_FLOAT,
  KJ_CLASS_COMPLEX,
  KJ_CLASS_WEAK, /* weak int, weak float */
  KJ_CLASS_VOID,
  KJ_CLASS_FUNC,
  KJ_CLASS_ARRAY,
  KJ_CLASS_TUPLE
} kj_type_class;

/* Memory an array lives in. */
typedef enum kj_space { KJ_SPACE_GLOBAL, KJ_SPACE_SHARED, KJ_SPACE_LOCAL, KJ_SPACE_CONST } kj_space;

typedef struct kj_type_info {
  kj_type_class class_;
  uint32_t size_bytes; /* scalars */
  const char *name;    /* scalars, void, func */
  /* arrays */
  kjit_type element;
  uint32_t rank;
  kjit_layout layout;
  bool read_only;
  kj_space space;
  bool is_static; /* extents known at compile time: shared, local and const arrays; row-major then */
  int64_t extents[KJ_MAX_RANK];
  /* tuples */
  const kjit_type *items;
  uint32_t count;
} kj_type_info;

typedef struct kj_types kj_types;

/* Thread safe. NULL when out of memory. */
kj_types *kj_create_types(void);
void kj_destroy_types(kj_types *types);
/* Valid for the table's life; type must be one that the table gave (scalars always are). */
const kj_type_info *kj_type(const kj_types *types, kjit_type type);
/* Whether the number is a type of this table: for numbers that come from a host. */
bool kj_has_type(kj_types *types, kjit_type type);
/* Intern. KJIT_ANY when out of memory. Only the fields of the class are read. */
kjit_type kj_intern_array(kj_types *types, const kj_type_info *array);
kjit_type kj_intern_tuple(kj_types *types, const kjit_type *items, uint32_t count);
/* A global array without static extents, as a parameter has it. */
kjit_type kj_array_type(kj_types *types, kjit_type element, uint32_t rank, kjit_layout layout, bool read_only);
/* As the text form writes it; shared, local and const arrays print their space first: "shared f32[16, 17]". */
void kj_print_type(const kj_types *types, kjit_type type, kj_buffer *buffer);
/* KJIT_ANY: no scalar of that name ("index" is i64). */
kjit_type kj_find_scalar(const char *name, size_t length);

static inline bool kj_is_scalar(kjit_type type) { return type >= KJIT_BOOL && type < KJIT_SCALAR_COUNT; }
static inline bool kj_is_weak(kjit_type type) { return type == KJ_WEAK_INT || type == KJ_WEAK_FLOAT; }

#endif
