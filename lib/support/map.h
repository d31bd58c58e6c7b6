/* A hash map from strings to pointers, in an arena. */
#ifndef KJ_SUPPORT_MAP_H
#define KJ_SUPPORT_MAP_H

#include "support/arena.h"

typedef struct kj_map_entry {
  const char *key; /* 0-terminated, in the map's arena or the caller's; NULL: a free slot */
  size_t length;
  void *value;
} kj_map_entry;

typedef struct kj_map {
  kj_arena *arena;
  kj_map_entry **slots;
  size_t count, capacity;
} kj_map;

void kj_init_map(kj_map *map, kj_arena *arena);
/* NULL: no such key. */
kj_map_entry *kj_find_entry(const kj_map *map, const char *key, size_t length);
/* The entry of the key, made with value NULL and a copy of the key where it is new. Entries never
 * move. */
kj_map_entry *kj_get_entry(kj_map *map, const char *key, size_t length);

#endif
