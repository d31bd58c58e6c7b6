#include "support/map.h"

#include <stdint.h>
#include <string.h>

/* FNV-1a: keys are short identifiers. */
static uint64_t hash(const char *key, size_t length)
{
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)key[i]) * 0x100000001b3u;
  return h ^ (h >> 32);
}

static kj_map_entry **find_slot(const kj_map *map, const char *key, size_t length)
{
  size_t at = hash(key, length) & (map->capacity - 1);
  while (map->slots[at] &&
         (map->slots[at]->length != length || memcmp(map->slots[at]->key, key, length) != 0))
    at = (at + 1) & (map->capacity - 1);
  return &map->slots[at];
}

static void grow(kj_map *map)
{
  kj_map old = *map;
  map->capacity = old.capacity ? old.capacity * 2 : 64;
  map->slots = KJ_NEW_ARRAY(map->arena, kj_map_entry *, map->capacity);
  for (size_t i = 0; i < old.capacity; i++)
    if (old.slots[i]) *find_slot(map, old.slots[i]->key, old.slots[i]->length) = old.slots[i];
}

void kj_init_map(kj_map *map, kj_arena *arena) { *map = (kj_map){ .arena = arena }; }

kj_map_entry *kj_find_entry(const kj_map *map, const char *key, size_t length)
{
  return map->capacity ? *find_slot(map, key, length) : NULL;
}

kj_map_entry *kj_get_entry(kj_map *map, const char *key, size_t length)
{
  if ((map->count + 1) * 2 > map->capacity) grow(map);
  kj_map_entry **slot = find_slot(map, key, length);
  if (*slot) return *slot;
  kj_map_entry *entry = KJ_NEW(map->arena, kj_map_entry);
  entry->key = kj_copy_string(map->arena, key, length);
  entry->length = length;
  map->count++;
  return *slot = entry;
}
