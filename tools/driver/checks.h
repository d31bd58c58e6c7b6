/* Parses the option --checks of the tools. */
#ifndef TOOL_CHECKS_H
#define TOOL_CHECKS_H

#include <kjit/kjit.h>
#include <stdbool.h>

#define TOOL_CHECKS_EXPECTED \
  "usual, all, none, or some of bounds,division,assert,barrier,uninitialized,races," \
  "integer-division,float-division"
/* Converts a list of checks to flags. Returns false if the text is invalid. */
bool tool_parse_checks(const char *text, uint32_t *checks);

#endif
