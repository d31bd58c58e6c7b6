#include "ir/pack_ir.h"

#include <stdlib.h>
#include <string.h>

/* ---- the outlines: positions of pointers and types in the structs of module.h ---- */

/* State of ki_pack or ki_unpack, except for the bytes. */
typedef struct type_numbers {
  const ki_types *types; /* table of this process */
  kj_arena *arena;
  /* maps the numbers of types in the writing process to the numbers in this process */
  kj_map known;
  /* writing: the types in the data that have an entry in the table of types; scalars have none */
  KJ_LIST(kjit_type) met;
} type_numbers;

#define POINTER(type, field, to) \
  { \
    .kind = KJ_FIELD_POINTER, .offset = offsetof(type, field), .outline = &(to) \
  }
#define TEXT(type, field) \
  { \
    .kind = KJ_FIELD_TEXT, .offset = offsetof(type, field) \
  }
#define NUMBER(type, field) \
  { \
    .kind = KJ_FIELD_NUMBER, .offset = offsetof(type, field) \
  }
#define ROW(type, field, table) \
  { \
    .kind = KJ_FIELD_ROW, .offset = offsetof(type, field), .rows = &(table) \
  }
#define LIST(list_kind, type, field, to) \
  { \
    .kind = KJ_FIELD_##list_kind, .offset = offsetof(type, field.items), .outline = &(to), \
    KJ_FIELD_COUNT_OF(type, field.count) \
  }
#define DROPPED(type, field) \
  { \
    .kind = KJ_FIELD_DROPPED, .offset = offsetof(type, field), \
    .size_bytes = sizeof(((type *)0)->field) \
  }
#define MEASURED(field_kind, type, field, unit_bytes, function) \
  { \
    .kind = KJ_FIELD_##field_kind, .offset = offsetof(type, field), .size_bytes = (unit_bytes), \
    .measure = (function) \
  }

static const kj_static_rows builtin_rows = { ki_builtin_table, sizeof(ki_builtin),
                                             KJ_BUILTIN_COUNT };
static const kj_static_rows attribute_rows = { ki_attribute_table, sizeof(ki_attribute_info),
                                               KJ_ATTRIBUTE_COUNT };

static const kj_outline expr_outline, type_expr_outline, stmt_outline, attribute_outline;

static const kj_field expr_outline_fields[] = {
  POINTER(ki_expr, x, expr_outline),
  POINTER(ki_expr, y, expr_outline),
  POINTER(ki_expr, z, expr_outline),
  LIST(POINTERS, ki_expr, args, expr_outline),
  POINTER(ki_expr, decl, ki_decl_outline),
  ROW(ki_expr, builtin, builtin_rows),
  POINTER(ki_expr, type_expr, type_expr_outline),
  NUMBER(ki_expr, type),
  TEXT(ki_expr, name),
};
static KJ_OUTLINE(expr_outline, ki_expr);

static const kj_field type_expr_outline_fields[] = {
  NUMBER(ki_type_expr, type),
  POINTER(ki_type_expr, expr, expr_outline),
  POINTER(ki_type_expr, element, type_expr_outline),
  LIST(POINTERS, ki_type_expr, extents, expr_outline),
  LIST(POINTERS, ki_type_expr, items, type_expr_outline),
  TEXT(ki_type_expr, name),
  POINTER(ki_type_expr, decl, ki_decl_outline),
};
static KJ_OUTLINE(type_expr_outline, ki_type_expr);

static const kj_field attribute_outline_fields[] = {
  ROW(ki_attribute, info, attribute_rows),
  LIST(POINTERS, ki_attribute, values, expr_outline),
};
static KJ_OUTLINE(attribute_outline, ki_attribute);

/* Returns the size of a constant's data. The element type must have been unpacked already. */
static size_t measure_data(const void *item, const void *user)
{
  const ki_decl *decl = item;
  const type_numbers *numbers = user;
  size_t bytes = ki_type(numbers->types, decl->data_element)->size_bytes;
  for (uint32_t i = 0; i < decl->rank && i < KJ_MAX_RANK; i++) bytes *= (size_t)decl->extents[i];
  return bytes;
}

static const kj_field ki_decl_outline_fields[] = {
  TEXT(ki_decl, name),
  POINTER(ki_decl, type_expr, type_expr_outline),
  POINTER(ki_decl, value, expr_outline),
  LIST(ITEMS, ki_decl, attributes, attribute_outline),
  POINTER(ki_decl, function, ki_function_outline),
  NUMBER(ki_decl, data_element),
  MEASURED(BYTES, ki_decl, data, 1, measure_data),
  LIST(POINTERS, ki_decl, fields, ki_decl_outline),
  NUMBER(ki_decl, struct_type),
};
KJ_OUTLINE(ki_decl_outline, ki_decl);

static size_t measure_code(const void *item, const void *user)
{
  (void)user;
  return ((const ki_bound_extern *)item)->size_bytes + 1;
}

/* host_function keeps its value, because the compiler only checks whether it is NULL. Linked code
 * is omitted, because the runtime passes it to the linker. */
static const kj_field bound_outline_fields[] = {
  MEASURED(BYTES, ki_bound_extern, code, 1, measure_code),
  TEXT(ki_bound_extern, symbol),
  DROPPED(ki_bound_extern, linked),
  DROPPED(ki_bound_extern, linked_count),
};
static KJ_OUTLINE(bound_outline, ki_bound_extern);

static const kj_field ki_function_outline_fields[] = {
  POINTER(ki_function, decl, ki_decl_outline),
  POINTER(ki_function, module, ki_module_outline),
  LIST(POINTERS, ki_function, params, ki_decl_outline),
  DROPPED(ki_function, shape),
  DROPPED(ki_function, tuples),
  LIST(POINTERS, ki_function, locals, ki_decl_outline),
  POINTER(ki_function, result, type_expr_outline),
  LIST(ITEMS, ki_function, attributes, attribute_outline),
  LIST(POINTERS, ki_function, body, stmt_outline),
  POINTER(ki_function, bound, bound_outline),
  ROW(ki_function, builtin, builtin_rows),
};
KJ_OUTLINE(ki_function_outline, ki_function);

static const kj_field stmt_outline_fields[] = {
  LIST(POINTERS, ki_stmt, decls, ki_decl_outline),
  LIST(POINTERS, ki_stmt, places, expr_outline),
  LIST(POINTERS, ki_stmt, args, expr_outline),
  POINTER(ki_stmt, value, expr_outline),
  TEXT(ki_stmt, message),
  LIST(POINTERS, ki_stmt, body, stmt_outline),
  LIST(POINTERS, ki_stmt, otherwise, stmt_outline),
  LIST(ITEMS, ki_stmt, attributes, attribute_outline),
};
static KJ_OUTLINE(stmt_outline, ki_stmt);

static size_t measure_text(const void *item, const void *user)
{
  (void)user;
  return ((const kj_source *)item)->size_bytes + 1;
}

static const kj_field source_outline_fields[] = {
  TEXT(kj_source, name),
  MEASURED(BYTES, kj_source, text, 1, measure_text),
  { .kind = KJ_FIELD_BYTES,
    .offset = offsetof(kj_source, shown),
    .size_bytes = 1,
    KJ_FIELD_COUNT_OF(kj_source, shown_bytes) },
  DROPPED(kj_source, library),
};
static KJ_OUTLINE(source_outline, kj_source);

/* imports is omitted, because it is empty in a finished module. */
static const kj_field ki_module_outline_fields[] = {
  DROPPED(kjit_module, arena),         DROPPED(kjit_module, context),
  DROPPED(kjit_module, types),         LIST(ITEMS, kjit_module, sources, source_outline),
  DROPPED(kjit_module, imports),       LIST(POINTERS, kjit_module, decls, ki_decl_outline),
  DROPPED(kjit_module, kernels),       DROPPED(kjit_module, release_kernels),
  DROPPED(kjit_module, builtin_funcs), DROPPED(kjit_module, previous),
  DROPPED(kjit_module, next),          DROPPED(kjit_module, bases),
  DROPPED(kjit_module, remains),       DROPPED(kjit_module, later),
  DROPPED(kjit_module, recipe),
};
KJ_OUTLINE(ki_module_outline, kjit_module);

/* ---- types ---- */

/* Returns the number of elements in items. For vectors, items is empty and count is the number of
 * lanes. */
static size_t measure_items(const void *item, const void *user)
{
  const ki_type_info *info = item;
  (void)user;
  return info->class_ == KJ_CLASS_TUPLE || info->class_ == KJ_CLASS_STRUCT ? info->count : 0;
}

static size_t measure_fields(const void *item, const void *user)
{
  return ((const ki_type_info *)item)->class_ == KJ_CLASS_STRUCT ? measure_items(item, user) : 0;
}

static const kj_field info_outline_fields[] = {
  TEXT(ki_type_info, name),
  MEASURED(BYTES, ki_type_info, items, sizeof(kjit_type), measure_items),
  MEASURED(TEXTS, ki_type_info, field_names, 0, measure_fields),
  MEASURED(BYTES, ki_type_info, offsets_bytes, sizeof(uint32_t), measure_fields),
};
static KJ_OUTLINE(info_outline, ki_type_info);

/* The types of the data, ordered by their numbers, so that the components of a type precede it. */
typedef struct type_list {
  const kjit_type *numbers; /* the numbers of these types in the writing process */
  ki_type_info *infos;
  uint64_t count;
} type_list;

static const kj_field list_outline_fields[] = {
  { .kind = KJ_FIELD_BYTES,
    .offset = offsetof(type_list, numbers),
    .size_bytes = sizeof(kjit_type),
    KJ_FIELD_COUNT_OF(type_list, count) },
  { .kind = KJ_FIELD_ITEMS,
    .offset = offsetof(type_list, infos),
    .outline = &info_outline,
    KJ_FIELD_COUNT_OF(type_list, count) },
};
static KJ_OUTLINE(list_outline, type_list);

static kj_map_entry *find_number(const type_numbers *numbers, kjit_type type)
{
  return kj_find_entry(&numbers->known, (const char *)&type, sizeof type);
}

static void start_numbers(type_numbers *numbers, const ki_types *types, kj_arena *arena)
{
  *numbers = (type_numbers){ .types = types, .arena = arena };
  kj_init_map(&numbers->known, arena);
}

static bool meet_type(void *user, uint32_t *number)
{
  type_numbers *numbers = user;
  if (*number < KJ_FIRST_COMPOSED || find_number(numbers, *number)) return true;
  const ki_type_info *info = ki_type(numbers->types, *number);
  size_t items = measure_items(info, NULL);
  kjit_type element = info->element;
  (void)kj_get_entry(&numbers->known, (const char *)number, sizeof *number);
  KJ_PUSH(numbers->arena, &numbers->met, *number);
  (void)meet_type(user, &element);
  for (size_t i = 0; i < items; i++) (void)meet_type(user, &(kjit_type){ info->items[i] });
  return true;
}

static int compare_numbers(const void *a, const void *b)
{
  kjit_type x = *(const kjit_type *)a, y = *(const kjit_type *)b;
  return (x > y) - (x < y);
}

static bool is_known_number(void *user, uint32_t *number)
{
  const type_numbers *numbers = user;
  if (*number < KJ_FIRST_COMPOSED) return true;
  const kj_map_entry *entry = find_number(numbers, *number);
  if (entry) *number = (kjit_type)(uintptr_t)entry->value;
  return entry != NULL;
}

/* ---- writing and reading: the number of types, the types, and the other data ---- */

void ki_pack(const ki_types *types, const void *root, const kj_outline *outline, kj_arena *arena,
             kj_buffer *bytes)
{
  type_numbers numbers;
  kj_buffer rest = { 0 };
  start_numbers(&numbers, types, arena);
  kj_pack(root, outline, &(kj_pack_numbers){ meet_type, &numbers }, arena, &rest);
  size_t count = numbers.met.count, start = bytes->length;
  if (count) qsort(numbers.met.items, count, sizeof *numbers.met.items, compare_numbers);
  type_list list = { numbers.met.items, KJ_NEW_ARRAY(arena, ki_type_info, count + 1), count };
  for (size_t i = 0; i < count; i++) list.infos[i] = *ki_type(types, list.numbers[i]);
  uint64_t list_bytes = 0;
  kj_append(bytes, (const char *)&list_bytes, sizeof list_bytes);
  kj_pack(&list, &list_outline, &(kj_pack_numbers){ 0 }, arena, bytes);
  list_bytes = bytes->length - start - sizeof list_bytes;
  if (!bytes->failed) memcpy(bytes->text + start, &list_bytes, sizeof list_bytes);
  kj_append(bytes, rest.text, rest.length);
  bytes->failed |= rest.failed;
  kj_free_buffer(&rest);
}

/* Interns a type from another process. Returns false if one of its components is unknown, which
 * means that the bytes are invalid. */
static bool add_type(ki_types *types, type_numbers *numbers, ki_type_info *info, kjit_type number)
{
  bool is_known = info->class_ >= KJ_CLASS_ARRAY && info->class_ <= KJ_CLASS_POINTER &&
                  info->rank <= KJ_MAX_RANK && is_known_number(numbers, &info->element);
  size_t count = measure_items(info, NULL), fields = measure_fields(info, NULL);
  if (!is_known || (count && !info->items) ||
      (fields && (!info->field_names || !info->offsets_bytes || !info->name)))
    return false;
  for (size_t i = 0; i < count; i++)
    if (!is_known_number(numbers, (kjit_type *)&info->items[i])) return false;
  for (size_t i = 0; i < fields; i++)
    if (!info->field_names[i]) return false;
  kjit_type made = ki_intern(types, info);
  if (!made) longjmp(*numbers->arena->on_failure, KJ_JUMP_MEMORY);
  kj_get_entry(&numbers->known, (const char *)&number, sizeof number)->value =
    (void *)(uintptr_t)made;
  return true;
}

void *ki_unpack(ki_types *types, const void *bytes, size_t size_bytes, const kj_outline *outline,
                kj_arena *arena)
{
  type_numbers numbers;
  uint64_t list_bytes;
  const char *at = bytes;
  if (size_bytes < sizeof list_bytes) return NULL;
  memcpy(&list_bytes, at, sizeof list_bytes);
  at += sizeof list_bytes;
  size_bytes -= sizeof list_bytes;
  if (list_bytes > size_bytes) return NULL;
  start_numbers(&numbers, types, arena);
  const type_list *list = kj_unpack(at, list_bytes, &list_outline, &(kj_pack_numbers){ 0 }, arena);
  if (!list || (list->count && (!list->numbers || !list->infos))) return NULL;
  for (uint64_t i = 0; i < list->count; i++)
    if (!add_type(types, &numbers, &list->infos[i], list->numbers[i])) return NULL;
  return kj_unpack(at + list_bytes, size_bytes - list_bytes, outline,
                   &(kj_pack_numbers){ is_known_number, &numbers }, arena);
}
