/* Region allocation: everything of one lifetime (a module, one compilation) is freed at once. */
#ifndef KJ_SUPPORT_ARENA_H
#define KJ_SUPPORT_ARENA_H

#include <setjmp.h>
#include <stddef.h>

typedef struct kj_arena_block kj_arena_block;

/* One thread at a time. Out of memory jumps to *on_failure with value KJ_JUMP_MEMORY, so that
 * callers never test for NULL: an entry point sets on_failure before it allocates. */
typedef struct kj_arena {
  kj_arena_block *blocks;
  char *next, *end;
  jmp_buf *on_failure;
} kj_arena;

enum { KJ_JUMP_ERROR = 1, KJ_JUMP_MEMORY = 2 };

void kj_init_arena(kj_arena *arena, jmp_buf *on_failure);
void kj_free_arena(kj_arena *arena); /* frees all blocks; the arena can be used again */
/* Zeroed memory, aligned for any type. */
void *kj_allocate(kj_arena *arena, size_t size_bytes);
char *kj_copy_string(kj_arena *arena, const char *text, size_t length); /* adds a 0 byte */
char *kj_format(kj_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define KJ_NEW(arena, type) ((type *)kj_allocate((arena), sizeof(type)))
#define KJ_NEW_ARRAY(arena, type, count) \
  ((type *)kj_allocate((arena), sizeof(type) * (size_t)(count)))

/* A growing array in an arena: KJ_LIST(kj_stmt *) list; KJ_PUSH(arena, &list, x). Old storage stays
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

#endif
