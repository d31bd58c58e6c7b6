/* Dictionaries of columns of texts: each different text once. */
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

/* Returns the index of the text, which is added if it is new. */
size_t tool_add_text(tool_dictionary *texts, const char *text, size_t length);
/* Sorts the items by their bytes. Returns the new index of each old one, which the caller frees. */
size_t *tool_sort_texts(tool_dictionary *texts);
void tool_free_texts(tool_dictionary *texts);

#endif
