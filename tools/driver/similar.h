/* "Did you mean": the name that is nearest to one that nothing has. */
#ifndef TOOL_SIMILAR_H
#define TOOL_SIMILAR_H

#include <argp.h>
#include <stddef.h>

typedef struct tool_similar {
  const char *name; /* of length */
  size_t length;
  const char *nearest; /* of what was offered; NULL: nothing is near */
  size_t distance;
} tool_similar;

/* For each name that there is: takes it where it is nearer than those before. An edit is a letter
 * more, less or changed, or two that change places; up to a third of the name may be edited. */
void tool_offer_name(tool_similar *similar, const char *name);
/* "; did you mean 'NAME'?", or the empty text; malloc'd. */
char *tool_similar_text(const tool_similar *similar);

/* argp_parse, which ends the program where the command line is wrong, or asks for help. Of a long
 * option that is none the message says which one is near it. */
void tool_parse_options(const struct argp *parser, int argc, char **argv, void *input);

#endif
