#include "support/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kj_arena_block {
  kj_arena_block *next;
};

enum { ALIGNMENT = 16, BLOCK_BYTES = 1 << 16 };

void kj_init_arena(kj_arena *arena, jmp_buf *on_failure)
{
  *arena = (kj_arena){ .on_failure = on_failure };
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

static _Noreturn void fail(kj_arena *arena) { longjmp(*arena->on_failure, KJ_JUMP_MEMORY); }

static void add_block(kj_arena *arena, size_t size_bytes)
{
  size_t payload = size_bytes > BLOCK_BYTES ? size_bytes : BLOCK_BYTES;
  kj_arena_block *block = calloc(1, ALIGNMENT + payload);
  if (!block) fail(arena);
  block->next = arena->blocks;
  arena->blocks = block;
  arena->next = (char *)block + ALIGNMENT;
  arena->end = arena->next + payload;
}

void *kj_allocate(kj_arena *arena, size_t size_bytes)
{
  if (size_bytes > SIZE_MAX / 2) fail(arena);
  size_t rounded = (size_bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  if ((size_t)(arena->end - arena->next) < rounded) add_block(arena, rounded);
  void *memory = arena->next;
  arena->next += rounded;
  return memory;
}

char *kj_copy_string(kj_arena *arena, const char *text, size_t length)
{
  char *copy = kj_allocate(arena, length + 1);
  if (length) memcpy(copy, text, length);
  return copy;
}

char *kj_format(kj_arena *arena, const char *format, ...)
{
  va_list list, again;
  va_start(list, format);
  va_copy(again, list);
  int length = vsnprintf(NULL, 0, format, list);
  char *text = kj_allocate(arena, (size_t)length + 1);
  vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  va_end(list);
  return text;
}

void kj_grow_list(kj_arena *arena, void **items, size_t count, size_t *capacity, size_t item_bytes)
{
  if (count < *capacity) return;
  size_t wanted = *capacity ? *capacity * 2 : 8;
  void *grown = kj_allocate(arena, wanted * item_bytes);
  if (count) memcpy(grown, *items, count * item_bytes);
  *items = grown;
  *capacity = wanted;
}
