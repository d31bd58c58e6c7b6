/* Arenas, lists and maps in arenas, and growing strings that use malloc. */
#ifndef KJ_SUPPORT_CONTAINERS_H
#define KJ_SUPPORT_CONTAINERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "support/assert.h"
#include "support/hostile.h"

/* ---- arenas: all objects with one lifetime (a module, a compilation) are freed at once ---- */

typedef struct kj_arena_block kj_arena_block;

/* An arena must be used by only one thread at a time. When out of memory, an allocation jumps to
 * *on_failure with the value KJ_JUMP_MEMORY, so callers never test for NULL. A public function must
 * set on_failure before it allocates. */
typedef struct kj_arena {
  kj_arena_block *blocks;
  char *next, *end;
  jmp_buf *on_failure;
  /* The total size of all blocks, and the limit for it; 0 means that there is no limit. Exceeding
   * the limit jumps with KJ_JUMP_LIMIT. */
  size_t used_bytes, most_bytes;
  bool is_over; /* the current allocation would exceed the limit */
} kj_arena;

enum { KJ_JUMP_ERROR = 1, KJ_JUMP_MEMORY = 2, KJ_JUMP_LIMIT = 3 };

void kj_init_arena(kj_arena *arena, jmp_buf *on_failure);
/* Clears memory that the caller provides. The arena uses it before it allocates blocks. */
void kj_lend_memory(kj_arena *arena, void *memory, size_t size_bytes);
void kj_free_arena(kj_arena *arena); /* frees all blocks; the arena can be used again */
/* Returns zeroed memory that is aligned for every type. */
void *kj_allocate(kj_arena *arena, size_t size_bytes);
char *kj_copy_string(kj_arena *arena, const char *text, size_t length); /* adds a 0 byte */
char *kj_format(kj_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define KJ_NEW(arena, type) ((type *)kj_allocate((arena), sizeof(type)))
#define KJ_NEW_ARRAY(arena, type, count) \
  ((type *)kj_allocate((arena), sizeof(type) * (size_t)(count)))

/* A growing array in an arena: KJ_LIST(ki_stmt *) list; KJ_PUSH(arena, &list, x). When the list
 * grows, its previous memory remains allocated until the arena is freed. */
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

/* ---- hash maps from strings to pointers, in an arena ---- */

typedef struct kj_map_entry {
  /* 0-terminated string in the arena of the map or of the caller; NULL means that the bucket is
   * free */
  const char *key;
  size_t length;
  void *value;
} kj_map_entry;

typedef struct kj_map {
  kj_arena *arena;
  kj_map_entry **buckets;
  size_t count, capacity;
} kj_map;

void kj_init_map(kj_map *map, kj_arena *arena);
/* Returns the entry for the key, or NULL if the map does not contain the key. */
kj_map_entry *kj_find_entry(const kj_map *map, const char *key, size_t length);
/* Returns the entry for the key. A new entry has the value NULL and a copy of the key. Entries
 * never move. */
kj_map_entry *kj_get_entry(kj_map *map, const char *key, size_t length);

/* ---- growing strings in memory from malloc ----
 *
 * The kjit_copy_* functions give them to the application. */

/* When out of memory, a call sets `failed`, and further calls have no effect. Callers therefore
 * need to test `failed` only once, at the end. */
typedef struct kj_buffer {
  char *text; /* 0-terminated after the first append; NULL before */
  size_t length, capacity;
  int failed;
} kj_buffer;

void kj_append(kj_buffer *buffer, const char *text, size_t length);
void kj_append_text(kj_buffer *buffer, const char *text);
void kj_append_format(kj_buffer *buffer, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
void kj_append_list(kj_buffer *buffer, const char *format, va_list list)
  __attribute__((format(printf, 2, 0)));
/* Returns the text, which the caller must free with free(), or NULL when out of memory. Empties the
 * buffer. */
char *kj_take_text(kj_buffer *buffer);
/* Moves the text to an arena and frees the buffer. Also frees the buffer if the arena is out of
 * memory and jumps. */
char *kj_keep_text(kj_arena *arena, kj_buffer *buffer);
void kj_free_buffer(kj_buffer *buffer);

/* Returns the number of bytes of the UTF-8 character at text, or 0 for an invalid character or a 0
 * byte. left, the number of available bytes, must be at least 1. */
size_t kj_character_bytes(const char *text, size_t left);

#endif
