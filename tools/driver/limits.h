/* Parses the option --compile-limit of the tools. */
#ifndef TOOL_LIMITS_H
#define TOOL_LIMITS_H

#include <argp.h>
#include <kjit/kjit.h>

/* The option's row for argp. key is the option key, and group its group in the help. */
#define TOOL_LIMIT_HELP(key, group) \
  { \
    "compile-limit", key, "NAME=N", 0, \
      "Limit each compilation. NAME is time (seconds), instances, expressions, unrolled, " \
      "instructions, memory (MiB) or code (KiB). N is a number, or none for no limit. May be " \
      "repeated", \
      group \
  }

/* Parses a limit. Calls argp_error, which ends the program, if the text is invalid. */
void tool_parse_limit(struct argp_state *state, const char *text, kjit_compile_limits *limits);

#endif
