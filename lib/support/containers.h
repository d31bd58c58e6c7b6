/* Arenas and what lies in them, lists and maps; growing texts in malloc'd memory. */
#ifndef KJ_SUPPORT_CONTAINERS_H
#define KJ_SUPPORT_CONTAINERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/assert.h"
#include "support/hostile.h"

/* Region allocation: everything of one lifetime (a module, one compilation) is freed at once. */

typedef struct kj_arena_block kj_arena_block;

/* One thread at a time. Out of memory jumps to *on_failure with value KJ_JUMP_MEMORY, so that
 * callers never test for NULL: an entry point sets on_failure before it allocates. */
typedef struct kj_arena {
  kj_arena_block *blocks;
  char *next, *end;
  jmp_buf *on_failure;
  /* of all blocks; most_bytes 0: any number. What would be more jumps with KJ_JUMP_LIMIT */
  size_t used_bytes, most_bytes;
  bool is_over; /* on the way to that */
} kj_arena;

enum { KJ_JUMP_ERROR = 1, KJ_JUMP_MEMORY = 2, KJ_JUMP_LIMIT = 3 };

void kj_init_arena(kj_arena *arena, jmp_buf *on_failure);
void kj_free_arena(kj_arena *arena); /* frees all blocks; the arena can be used again */
/* Zeroed memory, aligned for any type. */
void *kj_allocate(kj_arena *arena, size_t size_bytes);
char *kj_copy_string(kj_arena *arena, const char *text, size_t length); /* adds a 0 byte */
char *kj_format(kj_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define KJ_NEW(arena, type) ((type *)kj_allocate((arena), sizeof(type)))
#define KJ_NEW_ARRAY(arena, type, count) \
  ((type *)kj_allocate((arena), sizeof(type) * (size_t)(count)))

/* A growing array in an arena: KJ_LIST(ki_stmt *) list; KJ_PUSH(arena, &list, x). Old storage stays
 * in the arena. */
#define KJ_LIST(type) \
  struct { \
    type *items; \
    size_t count, capacity; \
  }
#define KJ_PUSH(arena, list, item) \
  (kj_grow_list((arena), (void **)&(list)->items, (list)->count, &(list)->capacity, \
                sizeof *(list)->items), \
   (list)->items[(list)->count++] = (item))
void kj_grow_list(kj_arena *arena, void **items, size_t count, size_t *capacity, size_t item_bytes);

/* A hash map from strings to pointers, in an arena. */

typedef struct kj_map_entry {
  const char *key; /* 0-terminated, in the map's arena or the caller's; NULL: a free bucket */
  size_t length;
  void *value;
} kj_map_entry;

typedef struct kj_map {
  kj_arena *arena;
  kj_map_entry **buckets;
  size_t count, capacity;
} kj_map;

void kj_init_map(kj_map *map, kj_arena *arena);
/* NULL: no such key. */
kj_map_entry *kj_find_entry(const kj_map *map, const char *key, size_t length);
/* The entry of the key, made with value NULL and a copy of the key where it is new. Entries never
 * move. */
kj_map_entry *kj_get_entry(kj_map *map, const char *key, size_t length);

/* A growing text in malloc'd memory, handed to the host by kjit_copy_* functions. */

/* Out of memory sets failed and makes every further call do nothing: test it once at the end. */
typedef struct kj_buffer {
  char *text; /* 0-terminated once anything was appended */
  size_t length, capacity;
  int failed;
} kj_buffer;

void kj_append(kj_buffer *buffer, const char *text, size_t length);
void kj_append_text(kj_buffer *buffer, const char *text);
void kj_append_format(kj_buffer *buffer, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
void kj_append_list(kj_buffer *buffer, const char *format, va_list list)
  __attribute__((format(printf, 2, 0)));
/* The text, owned by the caller (free()); NULL when out of memory. The buffer is empty afterwards.
 */
char *kj_take_text(kj_buffer *buffer);
/* The text in an arena; the buffer is freed, also when the arena is out of memory and jumps. */
char *kj_keep_text(kj_arena *arena, kj_buffer *buffer);
void kj_free_buffer(kj_buffer *buffer);

/* Bytes of the UTF-8 character at text; 0 where there is none, or a 0 byte. left: at least 1. */
size_t kj_character_bytes(const char *text, size_t left);

#endif
