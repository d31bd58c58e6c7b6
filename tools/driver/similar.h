/* "Did you mean" hints: finds the known name that is most similar to an unknown name. */
#ifndef TOOL_SIMILAR_H
#define TOOL_SIMILAR_H

#include <argp.h>
#include <stddef.h>

typedef struct tool_similar {
  const char *name; /* the unknown name, with `length` bytes */
  size_t length;
  const char *nearest; /* most similar name so far, or NULL if no name is similar */
  size_t distance;
} tool_similar;

/* Stores a known name if it is more similar than the names offered before. Call this for each known
 * name. An edit inserts, deletes or changes a letter, or swaps two letters. A name is similar if at
 * most a third of its letters are edited. */
void tool_offer_name(tool_similar *similar, const char *name);
/* Returns "; did you mean 'NAME'?" or "", malloc'd. */
char *tool_similar_text(const tool_similar *similar);

/* Calls argp_parse, which exits if the command line is wrong or asks for help. The error for an
 * unknown long option suggests a similar option. */
void tool_parse_options(const struct argp *parser, int argc, char **argv, void *input);

#endif
