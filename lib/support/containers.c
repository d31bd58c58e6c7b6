/* Arenas, maps in arenas, and growing strings. */
#include "support/containers.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- formats ---- */

/* Writes text like snprintf: text that does not fit is not written, but is counted. */
typedef struct printer {
  char *at, *end;
  size_t length;
} printer;

static void put(printer *p, const char *text, size_t length)
{
  size_t room = (size_t)(p->end - p->at), fits = length < room ? length : room;
  if (fits) memcpy(p->at, text, fits);
  p->at += fits;
  p->length += length;
}

static void put_number(printer *p, uint64_t number, bool is_negative)
{
  char digits[24], *first = digits + sizeof digits;
  do *--first = (char)('0' + number % 10);
  while (number /= 10);
  if (is_negative) *--first = '-';
  put(p, first, (size_t)(digits + sizeof digits - first));
}

static void put_signed(printer *p, int64_t number)
{
  put_number(p, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, number < 0);
}

/* Formats strings and integers without calling the C library, whose functions would take several
 * times as long. Returns false if the format contains anything else. */
static bool print_plainly(printer *p, const char *format, va_list list)
{
  for (;;) {
    size_t plain = strcspn(format, "%");
    put(p, format, plain);
    format += plain;
    if (!*format) return true;
    format++;
    if (*format == 's') {
      const char *text = va_arg(list, const char *);
      put(p, text ? text : "(null)", text ? strlen(text) : strlen("(null)"));
    } else if (*format == 'u') put_number(p, va_arg(list, unsigned), false);
    else if (*format == 'd') put_signed(p, va_arg(list, int));
    else if (format[0] == 'z' && format[1] == 'u') put_number(p, va_arg(list, size_t), false);
    else return false;
    format += *format == 'z' ? 2 : 1;
  }
}

/* Like vsnprintf, but the result is never negative, because kjit's formats are valid. */
static size_t print(char *to, size_t room, const char *format, va_list list)
{
  va_list again;
  va_copy(again, list);
  printer p = { to, room ? to + room - 1 : to, 0 };
  bool is_plain = print_plainly(&p, format, list);
  if (is_plain && room) *p.at = 0;
  if (!is_plain) p.length = (size_t)vsnprintf(to, room, format, again);
  va_end(again);
  return p.length;
}

/* ---- arena ---- */

struct kj_arena_block {
  kj_arena_block *next;
  size_t size_bytes;
};

/* Each block is twice as large as the previous one, so that small arenas clear little memory. */
enum { ALIGNMENT = 16, LEAST_BYTES = KJ_SIZE(1 << 12, 1), MOST_BYTES = KJ_SIZE(1 << 16, 1) };
_Static_assert(sizeof(kj_arena_block) <= ALIGNMENT, "what a block holds is behind its head");

void kj_init_arena(kj_arena *arena, jmp_buf *on_failure)
{
  *arena = (kj_arena){ .on_failure = on_failure };
}

void kj_lend_memory(kj_arena *arena, void *memory, size_t size_bytes)
{
  KJ_ASSERT(!arena->blocks && arena->next == arena->end && (uintptr_t)memory % ALIGNMENT == 0);
  memset(memory, 0, size_bytes);
  arena->next = memory;
  arena->end = arena->next + size_bytes;
}

void kj_free_arena(kj_arena *arena)
{
  kj_arena_block *block = arena->blocks;
  while (block) {
    kj_arena_block *next = block->next;
    free(block);
    block = next;
  }
  kj_init_arena(arena, arena->on_failure);
}

/* Jumps to on_failure. If the limit was exceeded, removes the limit, because reporting the error
 * needs memory. */
static _Noreturn void fail(kj_arena *arena)
{
  int jump = arena->is_over ? KJ_JUMP_LIMIT : KJ_JUMP_MEMORY;
  if (arena->is_over) arena->most_bytes = 0;
  arena->is_over = false;
  longjmp(*arena->on_failure, jump);
}

static bool keeps_to_limit(kj_arena *arena, size_t more)
{
  arena->is_over = arena->most_bytes && arena->used_bytes + more > arena->most_bytes;
  return !arena->is_over;
}

static bool add_block(kj_arena *arena, size_t size_bytes)
{
  size_t payload = arena->blocks ? 2 * arena->blocks->size_bytes : LEAST_BYTES;
  if (payload > MOST_BYTES) payload = MOST_BYTES;
  if (payload < size_bytes) payload = size_bytes;
  if (!keeps_to_limit(arena, payload)) return false;
  kj_arena_block *block = calloc(1, ALIGNMENT + payload);
  if (!block) return false;
  arena->used_bytes += payload;
  block->next = arena->blocks;
  block->size_bytes = payload;
  arena->blocks = block;
  arena->next = (char *)block + ALIGNMENT;
  arena->end = arena->next + payload;
  return true;
}

/* Returns NULL when out of memory, or if the limit would be exceeded. */
static void *try_allocate(kj_arena *arena, size_t size_bytes)
{
  KJ_ASSERT(arena->next <= arena->end);
  if (size_bytes > SIZE_MAX / 2) return NULL;
  size_t rounded = (size_bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  if ((size_t)(arena->end - arena->next) < rounded && !add_block(arena, rounded)) return NULL;
  void *memory = arena->next;
  arena->next += rounded;
  return memory;
}

void *kj_allocate(kj_arena *arena, size_t size_bytes)
{
  KJ_ASSERT(arena->on_failure);
  void *memory = try_allocate(arena, size_bytes);
  if (!memory) fail(arena);
  return memory;
}

char *kj_copy_string(kj_arena *arena, const char *text, size_t length)
{
  KJ_ASSERT(text || !length);
  char *copy = kj_allocate(arena, length + 1);
  if (length) memcpy(copy, text, length);
  return copy;
}

char *kj_format(kj_arena *arena, const char *format, ...)
{
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  /* usually, the text fits into the current block and is written directly to its final address */
  char *place = arena->next;
  size_t room = (size_t)(arena->end - place), length = print(place, room, format, list);
  if (length >= room && room) memset(place, 0, room);
  char *text = kj_allocate(arena, length + 1);
  if (text != place || length >= room) (void)print(text, length + 1, format, again);
  va_end(again);
  va_end(list);
  return text;
}

void kj_grow_list(kj_arena *arena, void **items, size_t count, size_t *capacity, size_t item_bytes)
{
  KJ_ASSERT(count <= *capacity);
  if (count < *capacity) return;
  size_t wanted = KJ_GROWN(*capacity, 4); /* most lists have only a few items */
  void *grown = kj_allocate(arena, wanted * item_bytes);
  if (count) memcpy(grown, *items, count * item_bytes);
  *items = grown;
  *capacity = wanted;
}

/* ---- map ---- */

/* The FNV-1a hash, because keys are short identifiers. */
static uint64_t hash(const char *key, size_t length)
{
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)key[i]) * 0x100000001b3u;
  return h ^ (h >> 32);
}

static kj_map_entry **find_bucket(const kj_map *map, const char *key, size_t length)
{
  KJ_ASSERT(map->count < map->capacity); /* at least one bucket is free, so the search ends */
  KJ_ASSERT((map->capacity & (map->capacity - 1)) == 0);
  size_t at = hash(key, length) & (map->capacity - 1);
  while (map->buckets[at] &&
         (map->buckets[at]->length != length || memcmp(map->buckets[at]->key, key, length) != 0))
    at = (at + 1) & (map->capacity - 1);
  return &map->buckets[at];
}

static void grow(kj_map *map)
{
  kj_map old = *map;
  map->capacity = old.capacity ? old.capacity * 2 : KJ_SIZE(64, 2);
  map->buckets = KJ_NEW_ARRAY(map->arena, kj_map_entry *, map->capacity);
  for (size_t i = 0; i < old.capacity; i++)
    if (old.buckets[i])
      *find_bucket(map, old.buckets[i]->key, old.buckets[i]->length) = old.buckets[i];
}

void kj_init_map(kj_map *map, kj_arena *arena) { *map = (kj_map){ .arena = arena }; }

kj_map_entry *kj_find_entry(const kj_map *map, const char *key, size_t length)
{
  return map->capacity ? *find_bucket(map, key, length) : NULL;
}

kj_map_entry *kj_get_entry(kj_map *map, const char *key, size_t length)
{
  KJ_ASSERT(map->arena);
  if ((map->count + 1) * 2 > map->capacity) grow(map);
  kj_map_entry **bucket = find_bucket(map, key, length);
  if (*bucket) return *bucket;
  kj_map_entry *entry = KJ_NEW(map->arena, kj_map_entry);
  entry->key = kj_copy_string(map->arena, key, length);
  entry->length = length;
  map->count++;
  return *bucket = entry;
}

/* ---- buffer ---- */

static int reserve(kj_buffer *buffer, size_t more)
{
  if (buffer->failed) return 0;
  KJ_ASSERT(buffer->length < buffer->capacity || !buffer->text);
  if (buffer->length + more + 1 <= buffer->capacity) return 1;
  size_t wanted = KJ_GROWN(buffer->capacity, 256);
  while (wanted < buffer->length + more + 1) wanted = KJ_GROWN(wanted, 256);
  char *grown = realloc(buffer->text, wanted);
  if (!grown) {
    buffer->failed = 1;
    return 0;
  }
  buffer->text = grown;
  buffer->capacity = wanted;
  return 1;
}

void kj_append(kj_buffer *buffer, const char *text, size_t length)
{
  KJ_ASSERT(text || !length);
  if (!reserve(buffer, length)) return;
  if (length) memcpy(buffer->text + buffer->length, text, length);
  buffer->length += length;
  buffer->text[buffer->length] = 0;
}

void kj_append_text(kj_buffer *buffer, const char *text)
{
  KJ_ASSERT(text);
  kj_append(buffer, text, strlen(text));
}

void kj_append_list(kj_buffer *buffer, const char *format, va_list list)
{
  va_list again;
  size_t room = buffer->capacity - buffer->length;
  if (buffer->failed) return;
  va_copy(again, list);
  size_t length = print(room ? buffer->text + buffer->length : NULL, room, format, list);
  if (length < room) buffer->length += length;
  else if (reserve(buffer, length))
    buffer->length += print(buffer->text + buffer->length, length + 1, format, again);
  va_end(again);
}

void kj_append_format(kj_buffer *buffer, const char *format, ...)
{
  va_list list;
  va_start(list, format);
  kj_append_list(buffer, format, list);
  va_end(list);
}

char *kj_keep_text(kj_arena *arena, kj_buffer *buffer)
{
  KJ_ASSERT(arena->on_failure);
  char *text = buffer->failed ? NULL : try_allocate(arena, buffer->length + 1);
  if (text && buffer->length) memcpy(text, buffer->text, buffer->length);
  kj_free_buffer(buffer);
  if (!text) fail(arena);
  return text;
}

char *kj_take_text(kj_buffer *buffer)
{
  kj_append(buffer, "", 0);
  char *text = buffer->failed ? NULL : buffer->text;
  if (buffer->failed) free(buffer->text);
  *buffer = (kj_buffer){ 0 };
  return text;
}

void kj_free_buffer(kj_buffer *buffer)
{
  free(buffer->text);
  *buffer = (kj_buffer){ 0 };
}

/* Accepts only valid UTF-8 by RFC 3629: no overlong forms and no surrogates. */
size_t kj_character_bytes(const char *start, size_t left)
{
  const unsigned char *text = (const unsigned char *)start;
  unsigned char c = text[0];
  if (c && c < 0x80) return 1;
  size_t length = c >= 0xc2 && c < 0xe0   ? 2
                  : c >= 0xe0 && c < 0xf0 ? 3
                  : c >= 0xf0 && c < 0xf5 ? 4
                                          : 0;
  if (length == 0 || length > left) return 0;
  for (size_t i = 1; i < length; i++)
    if ((text[i] & 0xc0) != 0x80) return 0;
  if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] >= 0xa0) ||
      (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] >= 0x90))
    return 0;
  return length;
}
