/* Types of values, interned: equal types have equal numbers within one table (one per context).
 * Scalars are the public constants of kjit/module.h. */
#ifndef KJ_IR_TYPE_H
#define KJ_IR_TYPE_H

#include <kjit/module.h>
#include <stdbool.h>

#include "support/containers.h"

enum { KJ_MAX_RANK = 8, KJ_MAX_TYPE_LEVELS = 200 };

/* Types without a public name. Weak types are those of literals and of plain numbers of a host:
 * they take the type they meet (docs/ir.md, Inference). */
enum {
  KJ_WEAK_INT = KJIT_TYPE + 1,
  KJ_WEAK_FLOAT,
  KJ_FIRST_COMPOSED /* numbers from here on index the table */
};

typedef enum ki_type_class {
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
  KJ_CLASS_TUPLE,
  KJ_CLASS_VECTOR, /* f32x4 */
  KJ_CLASS_STRUCT,
  KJ_CLASS_POINTER
} ki_type_class;

/* Memory an array lives in. VALUE: it is part of a value: a member of a struct, with static
 * extents. GENERIC: what a pointer points to, which may be any. */
typedef enum ki_space {
  KJ_SPACE_GLOBAL,
  KJ_SPACE_SHARED,
  KJ_SPACE_LOCAL,
  KJ_SPACE_CONST,
  KJ_SPACE_VALUE,
  KJ_SPACE_GENERIC
} ki_space;

typedef struct ki_type_info {
  ki_type_class class_;
  /* in memory: scalars, vectors, structs, pointers, VALUE arrays; 0: it is never in memory as a
   * whole */
  uint32_t size_bytes;
  uint32_t
    /* of the same: C's, for vectors CUDA's. Of other arrays: what their elements have where it is
       not their type's (members of structs); else 0 */
    alignment_bytes;
  const char *name; /* scalars, void, func, structs */
  /* arrays, vectors, pointers */
  kjit_type element;
  uint32_t rank;
  kjit_layout layout;
  bool read_only;
  ki_space space;
  /* extents known at compile time: shared, local and const arrays; row-major then */
  bool is_static;
  int64_t extents[KJ_MAX_RANK];
  /* tuples, structs: types of the items; vectors: the number of lanes only */
  const kjit_type *items;
  uint32_t count;
  /* of types within types: 1 for those that are made of scalars only; set by interning, no part of
   * what makes types equal. So is whether it is a pointer, or one is somewhere in it */
  uint32_t levels;
  bool holds_pointer;
  /* structs, one for each item */
  const char *const *field_names;
  const uint32_t *offsets_bytes;
  bool is_packed;
  bool is_own; /* see ki_struct_layout */
} ki_type_info;

/* A part of a struct, vector or complex number. */
typedef struct ki_component {
  uint32_t index;
  kjit_type type;
  uint32_t offset_bytes;
} ki_component;

/* Behind the colon of a parameter: it takes a type. No struct has this name. */
#define KJ_TYPE_WORD "type"

typedef struct ki_types ki_types;

/* Thread safe. NULL when out of memory. */
ki_types *ki_create_types(void);
void ki_destroy_types(ki_types *types);
/* Valid for the table's life; type must be one that the table gave (scalars always are). */
/* Whether a value of the type can be an argument of a func. */
bool ki_is_argument_type(const ki_type_info *info);
const ki_type_info *ki_type(const ki_types *types, kjit_type type);
/* Whether the number is a type of this table: for numbers that come from a host. */
bool ki_has_type(ki_types *types, kjit_type type);
/* Intern. KJIT_ANY when out of memory. Only the fields of the class are read. */
kjit_type ki_intern_array(ki_types *types, const ki_type_info *array);
kjit_type ki_intern_tuple(ki_types *types, const kjit_type *items, uint32_t count);
/* lanes: 2, 3, 4, 8 or 16; element: a scalar that is not complex. KJIT_ANY: out of memory. */
kjit_type ki_intern_vector(ki_types *types, kjit_type element, uint32_t lanes);
/* Whether there are vectors of so many lanes of this type; the sentence that says which there are.
 */
bool ki_has_vectors(const ki_types *types, kjit_type element, uint64_t lanes);
extern const char ki_no_vector[];
kjit_type ki_intern_pointer(ki_types *types, kjit_type element, bool read_only);
/* How a struct is laid out. */
typedef struct ki_struct_layout {
  bool is_packed;           /* no padding, alignment 1 */
  uint32_t alignment_bytes; /* of @align: at least this; 0: the fields' */
  /* Declared by a text of runtime/algorithm. Such a type is never the application's type, even with
   * the same name and the same fields, and ki_find_struct does not find it. */
  bool is_own;
} ki_struct_layout;
/* The same name with the same fields is the same type; names and fields are copied. Every item has
 * a size in memory. */
kjit_type ki_intern_struct(ki_types *types, const char *name, const char *const *field_names,
                           const kjit_type *items, uint32_t count, ki_struct_layout layout);
/* Whether a type made of this one has more levels than are walked: for structs and pointers, which
 * are made of one another without end. */
bool ki_is_too_deep(const ki_types *types, kjit_type part);
/* Whether it can be the element of an array, a field, or what a pointer points to: it lies in
 * memory as a whole and is no array. For numbers from a host too. */
bool ki_is_element(ki_types *types, kjit_type type);
/* Whether it is a pointer, or one is somewhere in it. */
bool ki_holds_pointer(const ki_types *types, kjit_type type);
/* The application's struct type of that name, KJIT_ANY where there is none; *is_ambiguous where
 * there are several. */
kjit_type ki_find_struct(ki_types *types, const char *name, bool *is_ambiguous);
/* Of a value in memory, in bytes. */
uint32_t ki_alignment(const ki_types *types, kjit_type type);
/* What a component at this offset from something so aligned has. */
uint32_t ki_alignment_at(uint32_t alignment_bytes, uint32_t offset_bytes);
/* Component `index` of a struct, vector or complex type; index is below ki_component_count (0 for
 * all other types). */
uint32_t ki_component_count(const ki_types *types, kjit_type type);
ki_component ki_get_component(const ki_types *types, kjit_type type, uint32_t index);
/* The same of the elements of an array in a struct, too. */
uint32_t ki_value_part_count(const ki_types *types, kjit_type type);
ki_component ki_get_value_part(const ki_types *types, kjit_type type, uint32_t index);
/* Elements of an array with static extents, a VALUE array among them. */
uint64_t ki_element_count(const ki_type_info *array);
/* A global array without static extents, as a parameter has it. */
kjit_type ki_array_type(ki_types *types, kjit_type element, uint32_t rank, kjit_layout layout,
                        bool read_only);
/* composed_type.c and type.c only: any type as it is; and the size and alignment of a VALUE array.
 */
kjit_type ki_intern(ki_types *types, const ki_type_info *wanted);
void ki_lay_out_array(const ki_types *types, ki_type_info *array);
/* As the text form writes it; shared, local and const arrays print their space first: "shared
 * f32[16, 17]". */
void ki_print_type(const ki_types *types, kjit_type type, kj_buffer *buffer);
/* The same with other names for structs, of which several may have one name: put_struct appends
 * that of one of them. */
typedef struct ki_type_printer {
  const ki_types *types;
  kj_buffer *buffer;
  void (*put_struct)(const struct ki_type_printer *printer, kjit_type type);
  void *data; /* of put_struct */
} ki_type_printer;
void ki_print_type_by(const ki_type_printer *printer, kjit_type type);
/* KJIT_ANY: no scalar of that name ("index" is i64). */
kjit_type ki_find_scalar(const char *name, size_t length);
/* Whether a name is one of a vector, "f32x4": what it is made of. */
bool ki_split_vector(const char *name, size_t length, kjit_type *element, uint32_t *lanes);
/* A scalar or a vector. */
bool ki_is_type_name(const char *name, size_t length);
/* The same as a type of the table; KJIT_ANY: neither. False: out of memory. */
bool ki_find_type(ki_types *types, const char *name, size_t length, kjit_type *type);

static inline bool ki_is_scalar(kjit_type type)
{
  return type >= KJIT_BOOL && type < KJIT_SCALAR_COUNT;
}
static inline bool ki_is_weak(kjit_type type)
{
  return type == KJ_WEAK_INT || type == KJ_WEAK_FLOAT;
}

#endif
