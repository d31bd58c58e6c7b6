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

/* Ends the program where the command line has a long option that is none, and one that is near it;
 * all else is argp's to say, which runs next. */
void tool_check_option_names(const struct argp_option *table, int argc, char **argv);

#endif
