/* Dictionaries for columns of texts. A dictionary contains each different text once. */
#ifndef TOOL_DICTIONARY_H
#define TOOL_DICTIONARY_H

#include <driver/error.h>
#include <stdint.h>

typedef struct tool_dictionary {
  char **items; /* owned */
  size_t count;
  size_t *slots; /* hash table: index of an item plus 1, or 0; owned */
  size_t slot_count;
} tool_dictionary;

/* Returns the text index. Adds the text if it is new. */
size_t tool_add_text(tool_dictionary *texts, const char *text, size_t length);
/* Sorts the items by their bytes. Returns an array that maps old indices to new ones; the caller
 * frees it. */
size_t *tool_sort_texts(tool_dictionary *texts);
void tool_free_texts(tool_dictionary *texts);

#endif
