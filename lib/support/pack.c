/* Serialization of structs. The offset of each struct, array and string is a multiple of 16 bytes.
 * A pointer is stored as this offset. The total length is stored at offset 0, so the offset 0
 * represents NULL. Structs that have not been processed yet are in a list, so that long chains of
 * pointers need no stack. */
#include "support/pack.h"

#include <string.h>

enum { UNIT_BYTES = 16 };

typedef struct step {
  const void *item; /* writing: the struct in memory */
  char *copy;       /* reading: its copy in the arena */
  size_t place;     /* writing: its bytes' offset */
  const kj_outline *outline;
} step;

typedef KJ_LIST(step) steps;

static size_t count_of(const kj_field *field, const void *item, const kj_pack_numbers *numbers)
{
  const char *at = (const char *)item + field->count_offset;
  uint32_t narrow;
  uint64_t wide;
  if (field->measure) return field->measure(item, numbers->user);
  if (field->count_bytes == sizeof wide) {
    memcpy(&wide, at, sizeof wide);
    return wide;
  }
  KJ_ASSERT(field->count_bytes == sizeof narrow);
  memcpy(&narrow, at, sizeof narrow);
  return narrow;
}

static uint64_t get_slot(const void *item, size_t offset)
{
  uint64_t slot;
  memcpy(&slot, (const char *)item + offset, sizeof slot);
  return slot;
}

static void set_slot(void *item, size_t offset, uint64_t slot)
{
  memcpy((char *)item + offset, &slot, sizeof slot);
}

/* ---- writing ---- */

typedef struct packer {
  kj_buffer *bytes;
  size_t start; /* index of the byte at which the serialized data begin */
  kj_arena *arena;
  const kj_pack_numbers *numbers;
  kj_map places; /* maps addresses to offsets */
  steps left;
} packer;

static size_t add_bytes(packer *p, const void *data, size_t size_bytes)
{
  static const char padding[UNIT_BYTES];
  size_t place = p->bytes->length - p->start;
  kj_append(p->bytes, data, size_bytes);
  kj_append(p->bytes, padding, (UNIT_BYTES - size_bytes % UNIT_BYTES) % UNIT_BYTES);
  return place;
}

/* Adds a struct, or a string if outline is NULL. Pointers to the same object share its bytes. */
static size_t add_shared(packer *p, const void *item, const kj_outline *outline)
{
  if (!item) return 0;
  kj_map_entry *entry = kj_get_entry(&p->places, (const char *)&item, sizeof item);
  if (entry->value) return (size_t)(uintptr_t)entry->value;
  size_t place = add_bytes(p, item, outline ? outline->size_bytes : strlen(item) + 1);
  entry->value = (void *)(uintptr_t)place;
  if (outline)
    KJ_PUSH(p->arena, &p->left, ((step){ .item = item, .place = place, .outline = outline }));
  return place;
}

static void put_slot(packer *p, size_t place, uint64_t slot)
{
  if (!p->bytes->failed) memcpy(p->bytes->text + p->start + place, &slot, sizeof slot);
}

static size_t add_pointers(packer *p, const kj_field *field, const void *const *items, size_t count)
{
  const kj_outline *outline = field->kind == KJ_FIELD_TEXTS ? NULL : field->outline;
  size_t place = add_bytes(p, items, count * sizeof *items);
  for (size_t i = 0; i < count; i++)
    put_slot(p, place + i * sizeof *items, add_shared(p, items[i], outline));
  return place;
}

static size_t add_items(packer *p, const kj_outline *outline, const char *items, size_t count)
{
  size_t place = add_bytes(p, items, count * outline->size_bytes);
  for (size_t i = 0; i < count; i++)
    KJ_PUSH(p->arena, &p->left,
            ((step){ .item = items + i * outline->size_bytes,
                     .place = place + i * outline->size_bytes,
                     .outline = outline }));
  return place;
}

static uint64_t add_row(const kj_static_rows *rows, const char *row)
{
  size_t index = (size_t)(row - (const char *)rows->first) / rows->row_bytes;
  KJ_ASSERT(index < rows->count);
  return index + 1;
}

static void pack_field(packer *p, const step *s, const kj_field *field)
{
  const char *at = (const char *)s->item + field->offset;
  size_t place = s->place + field->offset, count;
  if (field->kind == KJ_FIELD_DROPPED) {
    if (!p->bytes->failed) memset(p->bytes->text + p->start + place, 0, field->size_bytes);
    return;
  }
  if (field->kind == KJ_FIELD_NUMBER) {
    uint32_t number;
    memcpy(&number, at, sizeof number);
    (void)p->numbers->map(p->numbers->user, &number);
    return;
  }
  const void *pointer = (const void *)(uintptr_t)get_slot(s->item, field->offset);
  if (!pointer) return;
  switch (KJ_AMONG(field->kind)) {
  case KJ_FIELD_POINTER: put_slot(p, place, add_shared(p, pointer, field->outline)); break;
  case KJ_FIELD_TEXT: put_slot(p, place, add_shared(p, pointer, NULL)); break;
  case KJ_FIELD_ROW: put_slot(p, place, add_row(field->rows, pointer)); break;
  default:
    count = count_of(field, s->item, p->numbers);
    if (!count) put_slot(p, place, 0);
    else if (field->kind == KJ_FIELD_ITEMS)
      put_slot(p, place, add_items(p, field->outline, pointer, count));
    else if (field->kind == KJ_FIELD_BYTES)
      put_slot(p, place, add_bytes(p, pointer, count * field->size_bytes));
    else put_slot(p, place, add_pointers(p, field, pointer, count));
  }
}

void kj_pack(const void *root, const kj_outline *outline, const kj_pack_numbers *numbers,
             kj_arena *arena, kj_buffer *bytes)
{
  static const char head[UNIT_BYTES];
  packer p = { .bytes = bytes, .start = bytes->length, .arena = arena, .numbers = numbers };
  kj_init_map(&p.places, arena);
  kj_append(bytes, head, sizeof head);
  (void)add_shared(&p, root, outline);
  while (p.left.count && !bytes->failed) {
    step s = p.left.items[--p.left.count];
    for (size_t i = 0; i < s.outline->field_count; i++) pack_field(&p, &s, &s.outline->fields[i]);
  }
}

/* ---- reading ---- */

typedef struct unpacker {
  const char *bytes;
  size_t size_bytes, left_bytes; /* left_bytes: limit for further copies */
  kj_arena *arena;
  const kj_pack_numbers *numbers;
  kj_map copies; /* maps an offset and an outline to the copy of the struct */
  steps left;
} unpacker;

/* Copies bytes to the arena. In valid data, each byte belongs to a single object, so all copies
 * together are not larger than the data. */
static char *copy_bytes(unpacker *u, uint64_t place, uint64_t count, size_t each_bytes)
{
  bool is_in = place >= UNIT_BYTES && place % UNIT_BYTES == 0 && place <= u->size_bytes &&
               count <= (u->size_bytes - place) / each_bytes && count * each_bytes <= u->left_bytes;
  if (!is_in) return NULL;
  u->left_bytes -= count * each_bytes;
  return memcpy(kj_allocate(u->arena, count * each_bytes), u->bytes + place, count * each_bytes);
}

static char *copy_text(unpacker *u, uint64_t place)
{
  if (place < UNIT_BYTES || place >= u->size_bytes) return NULL;
  const char *end = memchr(u->bytes + place, 0, u->size_bytes - place);
  return end ? copy_bytes(u, place, (uint64_t)(end - (u->bytes + place)) + 1, 1) : NULL;
}

static bool get_shared(unpacker *u, uint64_t place, const kj_outline *outline, void *slots,
                       size_t offset)
{
  if (!place) return true;
  struct {
    uint64_t place;
    const kj_outline *outline;
  } key = { place, outline };
  kj_map_entry *entry = kj_get_entry(&u->copies, (const char *)&key, sizeof key);
  if (!entry->value) {
    char *copy = outline ? copy_bytes(u, place, 1, outline->size_bytes) : copy_text(u, place);
    if (!copy) return false;
    entry->value = copy;
    if (outline) KJ_PUSH(u->arena, &u->left, ((step){ .copy = copy, .outline = outline }));
  }
  set_slot(slots, offset, (uint64_t)(uintptr_t)entry->value);
  return true;
}

static bool get_array(unpacker *u, const step *s, const kj_field *field, uint64_t place)
{
  bool is_pointers = field->kind == KJ_FIELD_POINTERS || field->kind == KJ_FIELD_TEXTS;
  size_t each_bytes = is_pointers                     ? sizeof(uint64_t)
                      : field->kind == KJ_FIELD_ITEMS ? field->outline->size_bytes
                                                      : field->size_bytes;
  size_t count = count_of(field, s->copy, u->numbers);
  const kj_outline *outline = field->kind == KJ_FIELD_TEXTS ? NULL : field->outline;
  char *copy = copy_bytes(u, place, count, each_bytes);
  if (!copy) return false;
  for (size_t i = 0; i < count && is_pointers; i++)
    if (!get_shared(u, get_slot(copy, i * each_bytes), outline, copy, i * each_bytes)) return false;
  for (size_t i = 0; i < count && field->kind == KJ_FIELD_ITEMS; i++)
    KJ_PUSH(u->arena, &u->left, ((step){ .copy = copy + i * each_bytes, .outline = outline }));
  set_slot(s->copy, field->offset, (uint64_t)(uintptr_t)copy);
  return true;
}

/* Returns whether the pointer to an array is allowed to be NULL, because the array has 0
 * elements. */
static bool has_no_array(unpacker *u, const step *s, const kj_field *field)
{
  bool is_array = field->kind == KJ_FIELD_POINTERS || field->kind == KJ_FIELD_ITEMS ||
                  field->kind == KJ_FIELD_TEXTS;
  return !is_array || !count_of(field, s->copy, u->numbers);
}

static bool unpack_field(unpacker *u, const step *s, const kj_field *field)
{
  if (field->kind == KJ_FIELD_DROPPED) {
    memset(s->copy + field->offset, 0, field->size_bytes);
    return true;
  }
  if (field->kind == KJ_FIELD_NUMBER) {
    uint32_t number;
    memcpy(&number, s->copy + field->offset, sizeof number);
    bool is_known = u->numbers->map(u->numbers->user, &number);
    memcpy(s->copy + field->offset, &number, sizeof number);
    return is_known;
  }
  uint64_t place = get_slot(s->copy, field->offset);
  if (!place) return has_no_array(u, s, field);
  switch (KJ_AMONG(field->kind)) {
  case KJ_FIELD_POINTER: return get_shared(u, place, field->outline, s->copy, field->offset);
  case KJ_FIELD_TEXT: return get_shared(u, place, NULL, s->copy, field->offset);
  case KJ_FIELD_ROW:
    set_slot(s->copy, field->offset,
             (uint64_t)(uintptr_t)field->rows->first + (place - 1) * field->rows->row_bytes);
    return place <= field->rows->count;
  default: return get_array(u, s, field, place);
  }
}

void *kj_unpack(const void *bytes, size_t size_bytes, const kj_outline *outline,
                const kj_pack_numbers *numbers, kj_arena *arena)
{
  unpacker u = { .bytes = bytes,
                 .size_bytes = size_bytes,
                 .left_bytes = size_bytes,
                 .arena = arena,
                 .numbers = numbers };
  void *root = NULL;
  kj_init_map(&u.copies, arena);
  if (!get_shared(&u, UNIT_BYTES, outline, &root, 0)) return NULL;
  while (u.left.count) {
    step s = u.left.items[--u.left.count];
    for (size_t i = 0; i < s.outline->field_count; i++)
      if (!unpack_field(&u, &s, &s.outline->fields[i])) return NULL;
  }
  return root;
}
