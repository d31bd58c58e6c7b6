#include <driver/dictionary.h>

#include <stdlib.h>
#include <string.h>

static uint64_t hash(const char *text, size_t length)
{
  uint64_t value = 0xcbf29ce484222325; /* FNV-1a */
  for (size_t i = 0; i < length; i++) value = (value ^ (unsigned char)text[i]) * 0x100000001b3;
  return value ^ value >> 32;
}

static size_t *find_slot(const tool_dictionary *texts, const char *text, size_t length)
{
  size_t at = hash(text, length) & (texts->slot_count - 1);
  for (;; at = (at + 1) & (texts->slot_count - 1)) {
    const size_t index = texts->slots[at];
    if (!index) return &texts->slots[at];
    const char *item = texts->items[index - 1];
    if (!strncmp(item, text, length) && !item[length]) return &texts->slots[at];
  }
}

/* Doubles the capacity of the hash table and of the list of items. */
static void grow(tool_dictionary *texts)
{
  tool_dictionary larger = { .count = texts->count,
                             .slot_count = texts->slot_count ? 2 * texts->slot_count : 64 };
  larger.slots = tool_allocate(larger.slot_count * sizeof *larger.slots);
  larger.items = tool_allocate(larger.slot_count / 2 * sizeof *larger.items);
  for (size_t i = 0; i < texts->count; i++) {
    larger.items[i] = texts->items[i];
    *find_slot(&larger, larger.items[i], strlen(larger.items[i])) = i + 1;
  }
  free(texts->slots);
  free(texts->items);
  *texts = larger;
}

size_t tool_add_text(tool_dictionary *texts, const char *text, size_t length)
{
  if (2 * texts->count >= texts->slot_count) grow(texts);
  size_t *slot = find_slot(texts, text, length);
  if (!*slot) {
    texts->items[texts->count++] = tool_copy_text(text, length);
    *slot = texts->count;
  }
  return *slot - 1;
}

typedef struct ranked {
  char *text;
  size_t index;
} ranked;

static int compare(const void *x, const void *y)
{
  return strcmp(((const ranked *)x)->text, ((const ranked *)y)->text);
}

size_t *tool_sort_texts(tool_dictionary *texts)
{
  ranked *order = tool_allocate((texts->count + 1) * sizeof *order);
  size_t *ranks = tool_allocate((texts->count + 1) * sizeof *ranks);
  for (size_t i = 0; i < texts->count; i++) order[i] = (ranked){ texts->items[i], i };
  qsort(order, texts->count, sizeof *order, compare);
  for (size_t i = 0; i < texts->count; i++) {
    texts->items[i] = order[i].text;
    ranks[order[i].index] = i;
  }
  free(order);
  free(texts->slots);
  texts->slots = NULL;
  texts->slot_count = 0;
  return ranks;
}

void tool_free_texts(tool_dictionary *texts)
{
  for (size_t i = 0; i < texts->count; i++) free(texts->items[i]);
  free(texts->items);
  free(texts->slots);
  *texts = (tool_dictionary){ 0 };
}
