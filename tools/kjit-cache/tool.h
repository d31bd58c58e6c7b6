/* Declarations that the source files of kjit-cache share. */
#ifndef CACHE_TOOL_H
#define CACHE_TOOL_H

#include <driver/error.h>
#include <inttypes.h>

typedef struct cache_texts {
  char **items; /* borrowed from argv */
  size_t count;
} cache_texts;

typedef struct cache_options {
  const char *directory, *command, *output;
  const char *ptxas; /* see kjit_config; NULL means that no machine code is made */
  cache_texts operands, targets;
  bool is_shipped;
} cache_options;

typedef struct cache_tool {
  cache_options options;
  tool_error error;
  kjit_context *context;
  uint64_t count, bytes, damaged;
} cache_tool;

/* Creates a context that neither reads nor writes a disk cache. For target see kjit_config; NULL
 * means this machine. */
bool cache_create_context(cache_tool *t, const char *target, kjit_context **context);
void cache_print_size(uint64_t size_bytes);

/* ---- build.c ---- */

/* Compiles the lists for each target and writes one file. */
bool cache_build(cache_tool *t);

/* ---- files.c ---- */

/* Writes the entries of several files into one. */
bool cache_merge(cache_tool *t);
/* Lists the entries in a file. path NULL means the file that is installed with libkjit. */
bool cache_list_file(cache_tool *t, const char *path);
/* Writes the context's entries to --output, with write permission only for this user. */
bool cache_write(cache_tool *t, kjit_context *context);

#endif
