/* Interned types of values. Within one table (one per context), equal types have equal numbers. The
 * numbers of scalars are the public constants of kjit/module.h. */
#ifndef KJ_IR_TYPE_H
#define KJ_IR_TYPE_H

#include <kjit/module.h>
#include <stdbool.h>

#include "support/containers.h"

enum { KJ_MAX_RANK = 8, KJ_MAX_TYPE_LEVELS = 200 };

/* Types without a public name. A literal or an untyped number from the application has a weak type,
 * so that it takes the type of the other operand (docs/ir.md, Inference). */
enum {
  KJ_WEAK_INT = KJIT_TYPE + 1,
  KJ_WEAK_FLOAT,
  KJ_FIRST_COMPOSED /* this number, and all larger numbers, are indices into the table of types */
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

/* The kind of memory in which an array is. VALUE: the array is part of a value, as a field in a
 * struct with static extents. GENERIC: the program accesses the array through a pointer, so the
 * array can be in any memory. */
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
  /* size in memory of scalars, vectors, structs, pointers and VALUE arrays; 0 for other types,
   * which are never stored in memory as a whole */
  uint32_t size_bytes;
  /* alignment in memory, as in C for scalars, structs and pointers, and as in CUDA for vectors. For
   * arrays whose elements are fields of structs: the alignment of the elements, if it differs from
   * that of the element type; otherwise 0 */
  uint32_t alignment_bytes;
  const char *name; /* name of a scalar, void, func or struct */
  /* arrays, vectors, pointers */
  kjit_type element;
  uint32_t rank;
  kjit_layout layout;
  bool read_only;
  ki_space space;
  /* the extents are known at compile time, as in shared, local and const arrays; the layout is
   * row-major */
  bool is_static;
  int64_t extents[KJ_MAX_RANK];
  /* tuples and structs: the types and the number of the items; vectors: count is the number of
   * lanes, and items is unused */
  const kjit_type *items;
  uint32_t count;
  /* Both fields are computed when the type is interned, and types are compared without them. levels
   * is the depth of nested types; it is 1 if the type consists only of scalars. holds_pointer means
   * that the type is a pointer or contains one. */
  uint32_t levels;
  bool holds_pointer;
  /* for structs; both arrays have an element for each item */
  const char *const *field_names;
  const uint32_t *offsets_bytes;
  bool is_packed;
  bool is_own; /* see ki_struct_layout */
} ki_type_info;

/* An item in a struct, vector or complex number. */
typedef struct ki_component {
  uint32_t index;
  kjit_type type;
  uint32_t offset_bytes;
} ki_component;

/* The word `type`, which declares that a parameter takes a type. No struct can have this name. */
#define KJ_TYPE_WORD "type"

typedef struct ki_types ki_types;

/* Thread-safe. Returns NULL when out of memory. */
ki_types *ki_create_types(void);
void ki_destroy_types(ki_types *types);
/* Returns whether a value of the type can be an argument of a func. */
bool ki_is_argument_type(const ki_type_info *info);
/* Returns the description of a type, which lives as long as the table. type must be a scalar, or a
 * type that the table has returned. */
const ki_type_info *ki_type(const ki_types *types, kjit_type type);
/* Returns whether the number is a type in this table. The application can pass any number. */
bool ki_has_type(ki_types *types, kjit_type type);
/* The following functions intern a type. They return KJIT_ANY when out of memory. ki_intern_array
 * reads only the fields that arrays have. */
kjit_type ki_intern_array(ki_types *types, const ki_type_info *array);
kjit_type ki_intern_tuple(ki_types *types, const kjit_type *items, uint32_t count);
/* lanes: 2, 3, 4, 8 or 16; element: a scalar that is not complex. */
kjit_type ki_intern_vector(ki_types *types, kjit_type element, uint32_t lanes);
/* Returns whether there are vectors with this element type and this number of lanes. */
bool ki_has_vectors(const ki_types *types, kjit_type element, uint64_t lanes);
extern const char ki_no_vector[]; /* an error message that lists the vectors that exist */
kjit_type ki_intern_pointer(ki_types *types, kjit_type element, bool read_only);
/* Properties that determine a struct's layout in memory. */
typedef struct ki_struct_layout {
  bool is_packed; /* no padding, alignment 1 */
  /* minimum alignment from @align; 0 means that the fields determine the alignment */
  uint32_t alignment_bytes;
  /* The struct is declared by a text that runtime/algorithm has generated. Its type is never the
   * same as a type of the application, even if name and fields are the same, and ki_find_struct
   * does not find it. */
  bool is_own;
} ki_struct_layout;
/* Structs with the same name, fields and layout are the same type. The function copies name and
 * fields. Every item must have a size in memory. */
kjit_type ki_intern_struct(ki_types *types, const char *name, const char *const *field_names,
                           const kjit_type *items, uint32_t count, ki_struct_layout layout);
/* Returns whether a type that contains `part` would exceed KJ_MAX_TYPE_LEVELS. Callers must check
 * this, because structs and pointers could otherwise be nested without limit. */
bool ki_is_too_deep(const ki_types *types, kjit_type part);
/* Returns whether the type can be the type of an array element, of a field or of the target of a
 * pointer: it is stored in memory as a whole and is not an array. The application can pass any
 * number as a type. */
bool ki_is_element(ki_types *types, kjit_type type);
/* Returns whether the type is a pointer or contains one. */
bool ki_holds_pointer(const ki_types *types, kjit_type type);
/* Returns the application's struct type with this name, or KJIT_ANY if there is none. Sets
 * *is_ambiguous if several of its structs have this name. */
kjit_type ki_find_struct(ki_types *types, const char *name, bool *is_ambiguous);
/* Returns the alignment of a value of the type in memory, in bytes. */
uint32_t ki_alignment(const ki_types *types, kjit_type type);
/* Returns the alignment of a component at this offset in an aggregate of this alignment. */
uint32_t ki_alignment_at(uint32_t alignment_bytes, uint32_t offset_bytes);
/* ki_component_count returns the number of components of a struct, vector or complex type, and 0
 * for any other type. ki_get_component returns the component with number `index`, which must be
 * less than the number of components. */
uint32_t ki_component_count(const ki_types *types, kjit_type type);
ki_component ki_get_component(const ki_types *types, kjit_type type, uint32_t index);
/* Like the two functions above, but if a field in a struct is an array, each of its elements is a
 * component. */
uint32_t ki_value_part_count(const ki_types *types, kjit_type type);
ki_component ki_get_value_part(const ki_types *types, kjit_type type, uint32_t index);
/* Returns the number of elements in an array with static extents, for example a VALUE array. */
uint64_t ki_element_count(const ki_type_info *array);
/* Returns the type of a global array without static extents, as parameters have. */
kjit_type ki_array_type(ki_types *types, kjit_type element, uint32_t rank, kjit_layout layout,
                        bool read_only);
/* Only for composed_type.c and type.c. ki_intern interns any type without checks. ki_lay_out_array
 * computes the size and alignment of a VALUE array. */
kjit_type ki_intern(ki_types *types, const ki_type_info *wanted);
void ki_lay_out_array(const ki_types *types, ki_type_info *array);
/* Prints the type in the source's syntax. For shared, local and const arrays, the space comes
 * first: "shared f32[16, 17]". */
void ki_print_type(const ki_types *types, kjit_type type, kj_buffer *buffer);
/* Prints a type with names for its structs from the caller, because several structs can have the
 * same name. put_struct appends a struct's name. */
typedef struct ki_type_printer {
  const ki_types *types;
  kj_buffer *buffer;
  void (*put_struct)(const struct ki_type_printer *printer, kjit_type type);
  void *data; /* for put_struct */
} ki_type_printer;
void ki_print_type_by(const ki_type_printer *printer, kjit_type type);
/* Returns the scalar type with this name ("index" is i64), or KJIT_ANY if there is none. */
kjit_type ki_find_scalar(const char *name, size_t length);
/* Returns whether the name denotes a vector type, for example "f32x4". If so, sets *element and
 * *lanes. */
bool ki_split_vector(const char *name, size_t length, kjit_type *element, uint32_t *lanes);
/* Returns whether the name denotes a scalar or vector type. */
bool ki_is_type_name(const char *name, size_t length);
/* Sets *type to the scalar or vector type with this name, or to KJIT_ANY if there is none. Returns
 * false when out of memory. */
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
