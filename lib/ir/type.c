/* The table of types. Scalars are in a static table. Other types are interned: they are added under
 * a lock, and read without a lock. */
#include "ir/type.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Chunk k has space for FIRST_CHUNK << k types. Types never move, so readers need no lock. */
enum { FIRST_CHUNK = KJ_SIZE(32, 1), CHUNK_COUNT = KJ_SIZE(20, 25), FIRST_SLOTS = KJ_SIZE(128, 2) };

struct ki_types {
  pthread_mutex_t mutex;
  uint32_t count; /* number of composed types */
  _Atomic(ki_type_info *) chunks[CHUNK_COUNT];
  kjit_type *buckets; /* hash table of types; 0 marks a free entry */
  uint32_t bucket_count;
};

static const ki_type_info scalar_table[KJ_FIRST_COMPOSED] = {
  [KJIT_ANY] = { .class_ = KJ_CLASS_NONE, .name = "any" },
#define KJIT_ROW(NAME, text, size, class, code, bits) \
  [KJIT_##NAME] = { .class_ = KJ_CLASS_##class, .size_bytes = size, .name = text },
#include <kjit/types.def>
#undef KJIT_ROW
  [KJIT_VOID] = { .class_ = KJ_CLASS_VOID, .name = "void" },
  [KJIT_FUNC] = { .class_ = KJ_CLASS_FUNC, .name = "func" },
  [KJIT_TYPE] = { .class_ = KJ_CLASS_FUNC, .name = KJ_TYPE_WORD },
  [KJ_WEAK_INT] = { .class_ = KJ_CLASS_WEAK, .name = "weak int" },
  [KJ_WEAK_FLOAT] = { .class_ = KJ_CLASS_WEAK, .name = "weak float" },
};

ki_types *ki_create_types(void)
{
  ki_types *types = calloc(1, sizeof *types);
  if (types) pthread_mutex_init(&types->mutex, NULL);
  return types;
}

/* Returns the chunk that contains the type with this number, and sets *place to its index in the
 * chunk. */
static uint32_t find_chunk(uint32_t number, uint32_t *place)
{
  uint32_t chunk = 31 - (uint32_t)__builtin_clz(number / FIRST_CHUNK + 1);
  *place = number - ((uint32_t)FIRST_CHUNK << chunk) + FIRST_CHUNK;
  return chunk;
}

static ki_type_info *composed(const ki_types *types, uint32_t number)
{
  uint32_t place;
  uint32_t chunk = find_chunk(number, &place);
  return atomic_load_explicit(&types->chunks[chunk], memory_order_acquire) + place;
}

static void free_parts(ki_type_info *info)
{
  free((void *)info->items);
  /* a single block holds the pointers, the name of the type and the names of the fields */
  free((void *)info->field_names);
  free((void *)info->offsets_bytes);
}

void ki_destroy_types(ki_types *types)
{
  if (!types) return;
  for (uint32_t i = 0; i < types->count; i++) free_parts(composed(types, i));
  for (int i = 0; i < CHUNK_COUNT; i++) free(types->chunks[i]);
  free(types->buckets);
  pthread_mutex_destroy(&types->mutex);
  free(types);
}

const ki_type_info *ki_type(const ki_types *types, kjit_type type)
{
  KJ_ASSERT(types || type < KJ_FIRST_COMPOSED);
  return type < KJ_FIRST_COMPOSED ? &scalar_table[type] : composed(types, type - KJ_FIRST_COMPOSED);
}

bool ki_has_type(ki_types *types, kjit_type type)
{
  if (type < KJ_FIRST_COMPOSED) return true;
  pthread_mutex_lock(&types->mutex);
  bool known = type - KJ_FIRST_COMPOSED < types->count;
  pthread_mutex_unlock(&types->mutex);
  return known;
}

kjit_type ki_find_struct(ki_types *types, const char *name, bool *is_ambiguous)
{
  kjit_type found = KJIT_ANY;
  *is_ambiguous = false;
  pthread_mutex_lock(&types->mutex);
  for (uint32_t i = 0; i < types->count; i++) {
    const ki_type_info *info = composed(types, i);
    if (info->class_ != KJ_CLASS_STRUCT || info->is_own || strcmp(info->name, name) != 0) continue;
    *is_ambiguous |= found != KJIT_ANY;
    found = KJ_FIRST_COMPOSED + i;
  }
  pthread_mutex_unlock(&types->mutex);
  return found;
}

static uint64_t mix(uint64_t h, uint64_t value)
{
  h = (h ^ value) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

static uint64_t hash(const ki_type_info *info)
{
  uint64_t h = mix(info->class_, info->count);
  h = mix(h, info->element | (uint64_t)info->rank << 32);
  h = mix(h, (uint64_t)info->layout | (uint64_t)info->read_only << 8 | (uint64_t)info->space << 16 |
               (uint64_t)info->is_static << 24);
  for (uint32_t i = 0; i < info->rank && info->is_static; i++)
    h = mix(h, (uint64_t)info->extents[i]);
  for (uint32_t i = 0; i < info->count && info->items; i++) h = mix(h, info->items[i]);
  if (info->class_ == KJ_CLASS_STRUCT)
    for (const char *c = info->name; *c; c++) h = mix(h, (unsigned char)*c);
  return h;
}

static bool equal_names(const ki_type_info *a, const ki_type_info *b)
{
  if (a->is_packed != b->is_packed || a->is_own != b->is_own || strcmp(a->name, b->name) != 0)
    return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (strcmp(a->field_names[i], b->field_names[i]) != 0) return false;
  return true;
}

static bool equal(const ki_type_info *a, const ki_type_info *b)
{
  if (a->class_ != b->class_ || a->count != b->count || a->element != b->element ||
      a->rank != b->rank)
    return false;
  if (a->alignment_bytes != b->alignment_bytes || a->layout != b->layout ||
      a->read_only != b->read_only || a->space != b->space || a->is_static != b->is_static)
    return false;
  if (memcmp(a->extents, b->extents, sizeof a->extents) != 0) return false;
  if (a->class_ == KJ_CLASS_STRUCT && !equal_names(a, b)) return false;
  return a->count == 0 || !a->items || memcmp(a->items, b->items, a->count * sizeof *a->items) == 0;
}

static uint32_t find_bucket(const ki_types *types, const ki_type_info *wanted)
{
  uint32_t at = (uint32_t)hash(wanted) & (types->bucket_count - 1);
  while (types->buckets[at] && !equal(ki_type(types, types->buckets[at]), wanted))
    at = (at + 1) & (types->bucket_count - 1);
  return at;
}

static bool grow_buckets(ki_types *types)
{
  if ((types->count + 1) * 2 <= types->bucket_count) return true;
  kjit_type *old = types->buckets;
  uint32_t old_count = types->bucket_count;
  kjit_type *grown = calloc(old_count ? old_count * 2 : FIRST_SLOTS, sizeof *grown);
  if (!grown) return false;
  types->buckets = grown;
  types->bucket_count = old_count ? old_count * 2 : FIRST_SLOTS;
  for (uint32_t i = 0; i < old_count; i++)
    if (old[i]) types->buckets[find_bucket(types, ki_type(types, old[i]))] = old[i];
  free(old);
  return true;
}

/* Copies the names to a single block, which begins with the pointers to the names of the fields.
 * Sets *name to the copy of the type's name. */
static const char *const *copy_names(const ki_type_info *wanted, const char **name)
{
  size_t bytes = wanted->count * sizeof(char *) + strlen(wanted->name) + 1;
  for (uint32_t i = 0; i < wanted->count; i++) bytes += strlen(wanted->field_names[i]) + 1;
  const char **names = malloc(bytes);
  if (!names) return NULL;
  char *text = (char *)(names + wanted->count);
  *name = strcpy(text, wanted->name);
  for (uint32_t i = 0; i < wanted->count; i++) {
    text += strlen(text) + 1;
    names[i] = strcpy(text, wanted->field_names[i]);
  }
  return names;
}

static void *copy_block(const void *block, size_t bytes)
{
  void *copy = malloc(bytes ? bytes : 1);
  return copy ? memcpy(copy, block, bytes) : NULL;
}

/* Returns how deeply types are nested. Recursive functions visit types, so a caller that lets the
 * application or a source nest types must limit the depth. */
static uint32_t count_levels(const ki_types *types, const ki_type_info *info)
{
  uint32_t levels = info->element ? ki_type(types, info->element)->levels : 0;
  for (uint32_t i = 0; i < info->count && info->items; i++) {
    uint32_t own = ki_type(types, info->items[i])->levels;
    if (own > levels) levels = own;
  }
  return levels + 1;
}

static bool holds_pointer(const ki_types *types, const ki_type_info *info)
{
  bool holds = info->class_ == KJ_CLASS_POINTER ||
               (info->element && ki_type(types, info->element)->holds_pointer);
  for (uint32_t i = 0; i < info->count && info->items && !holds; i++)
    holds = ki_type(types, info->items[i])->holds_pointer;
  return holds;
}

/* Copies wanted to info, and also copies the memory to which wanted points. */
static bool copy_parts(ki_type_info *info, const ki_type_info *wanted)
{
  *info = *wanted;
  info->items = NULL;
  info->field_names = NULL;
  info->offsets_bytes = NULL;
  if (wanted->items &&
      !(info->items = copy_block(wanted->items, wanted->count * sizeof *wanted->items)))
    return false;
  if (wanted->class_ != KJ_CLASS_STRUCT) return true;
  info->field_names = copy_names(wanted, &info->name);
  info->offsets_bytes =
    copy_block(wanted->offsets_bytes, wanted->count * sizeof *wanted->offsets_bytes);
  return info->field_names && info->offsets_bytes;
}

/* Adds a type that is not in the table yet. The table copies the memory to which wanted points. */
static kjit_type add_type(ki_types *types, uint32_t bucket, const ki_type_info *wanted)
{
  uint32_t place;
  uint32_t chunk = find_chunk(types->count, &place);
  if (chunk >= CHUNK_COUNT) return KJIT_ANY;
  if (!types->chunks[chunk]) {
    ki_type_info *made = calloc((size_t)FIRST_CHUNK << chunk, sizeof *made);
    if (!made) return KJIT_ANY;
    atomic_store_explicit(&types->chunks[chunk], made, memory_order_release);
  }
  ki_type_info made;
  if (!copy_parts(&made, wanted)) {
    free_parts(&made);
    return KJIT_ANY;
  }
  made.levels = count_levels(types, wanted);
  made.holds_pointer = holds_pointer(types, wanted);
  *composed(types, types->count) = made;
  return types->buckets[bucket] = KJ_FIRST_COMPOSED + types->count++;
}

kjit_type ki_intern(ki_types *types, const ki_type_info *wanted)
{
  pthread_mutex_lock(&types->mutex);
  kjit_type type = KJIT_ANY;
  if (grow_buckets(types)) {
    uint32_t bucket = find_bucket(types, wanted);
    type = types->buckets[bucket];
    if (!type) type = add_type(types, bucket, wanted);
  }
  pthread_mutex_unlock(&types->mutex);
  return type;
}

kjit_type ki_intern_array(ki_types *types, const ki_type_info *array)
{
  ki_type_info wanted = { .class_ = KJ_CLASS_ARRAY,
                          .element = array->element,
                          .rank = array->rank,
                          .layout = array->layout,
                          .read_only = array->read_only };
  wanted.space = array->space;
  wanted.is_static = array->is_static;
  if (array->is_static)
    memcpy(wanted.extents, array->extents, array->rank * sizeof *array->extents);
  wanted.alignment_bytes =
    array->alignment_bytes == ki_alignment(types, array->element) ? 0 : array->alignment_bytes;
  if (array->space == KJ_SPACE_VALUE) ki_lay_out_array(types, &wanted);
  /* Represents equivalent layouts by one type: with one dimension, row-major and column-major are
   * the same, and without dimensions all layouts are. */
  if (wanted.rank == 0 || (wanted.rank == 1 && wanted.layout == KJIT_LAYOUT_F))
    wanted.layout = KJIT_LAYOUT_C;
  return ki_intern(types, &wanted);
}

kjit_type ki_intern_tuple(ki_types *types, const kjit_type *items, uint32_t count)
{
  return ki_intern(types,
                   &(ki_type_info){ .class_ = KJ_CLASS_TUPLE, .items = items, .count = count });
}

kjit_type ki_array_type(ki_types *types, kjit_type element, uint32_t rank, kjit_layout layout,
                        bool read_only)
{
  return ki_intern_array(types, &(ki_type_info){ .element = element,
                                                 .rank = rank,
                                                 .layout = layout,
                                                 .read_only = read_only });
}

static void print_array(const ki_type_printer *p, const ki_type_info *info)
{
  KJ_ASSERT(info->class_ == KJ_CLASS_ARRAY && info->rank <= KJ_MAX_RANK);
  static const char *const spaces[] = { "", "shared ", "local ", "", "", "" };
  kj_append_text(p->buffer, spaces[info->space]);
  if (info->read_only || info->space == KJ_SPACE_CONST) kj_append_text(p->buffer, "const ");
  ki_print_type_by(p, info->element);
  kj_append_text(p->buffer, "[");
  for (uint32_t i = 0; i < info->rank; i++) {
    if (i) kj_append_text(p->buffer, ", ");
    if (info->is_static) kj_append_format(p->buffer, "%lld", (long long)info->extents[i]);
    else kj_append_text(p->buffer, ":");
  }
  kj_append_text(p->buffer, "]");
  if (info->is_static || info->rank == 0) return;
  if (info->layout == KJIT_LAYOUT_C) kj_append_text(p->buffer, " C");
  if (info->layout == KJIT_LAYOUT_F) kj_append_text(p->buffer, " F");
}

static void print_tuple(const ki_type_printer *p, const ki_type_info *info)
{
  KJ_ASSERT(info->class_ == KJ_CLASS_TUPLE);
  kj_append_text(p->buffer, "(");
  for (uint32_t i = 0; i < info->count; i++) {
    if (i) kj_append_text(p->buffer, ", ");
    ki_print_type_by(p, info->items[i]);
  }
  kj_append_text(p->buffer, ")");
}

static void print_vector(const ki_type_printer *p, const ki_type_info *info)
{
  ki_print_type_by(p, info->element);
  kj_append_format(p->buffer, "x%u", info->count);
}

static void print_pointer(const ki_type_printer *p, const ki_type_info *info)
{
  if (info->read_only) kj_append_text(p->buffer, "const ");
  ki_print_type_by(p, info->element);
  kj_append_text(p->buffer, "*");
}

void ki_print_type_by(const ki_type_printer *printer, kjit_type type)
{
  const ki_type_info *info = ki_type(printer->types, type);
  switch (KJ_AMONG(info->class_)) {
  case KJ_CLASS_ARRAY: print_array(printer, info); break;
  case KJ_CLASS_TUPLE: print_tuple(printer, info); break;
  case KJ_CLASS_VECTOR: print_vector(printer, info); break;
  case KJ_CLASS_POINTER: print_pointer(printer, info); break;
  case KJ_CLASS_STRUCT: printer->put_struct(printer, type); break;
  default: kj_append_text(printer->buffer, info->name);
  }
}

static void put_own_name(const ki_type_printer *printer, kjit_type type)
{
  kj_append_text(printer->buffer, ki_type(printer->types, type)->name);
}

void ki_print_type(const ki_types *types, kjit_type type, kj_buffer *buffer)
{
  ki_print_type_by(
    &(ki_type_printer){ .types = types, .buffer = buffer, .put_struct = put_own_name }, type);
}

kjit_type ki_find_scalar(const char *name, size_t length)
{
  for (kjit_type type = KJIT_BOOL; type < KJIT_SCALAR_COUNT; type++)
    if (strlen(scalar_table[type].name) == length &&
        memcmp(scalar_table[type].name, name, length) == 0)
      return type;
  return length == 5 && memcmp(name, "index", 5) == 0 ? KJIT_INDEX : KJIT_ANY;
}

bool ki_is_argument_type(const ki_type_info *info)
{
  if (info->class_ == KJ_CLASS_ARRAY) return info->space == KJ_SPACE_GLOBAL && !info->is_static;
  return info->size_bytes || info->class_ == KJ_CLASS_TUPLE;
}
