/* The module that a tool works on: its source, its imports, and the externs and constants given on
 * the command line. */
#ifndef TOOL_MODULE_H
#define TOOL_MODULE_H

#include "error.h"

typedef struct tool_texts {
  const char **items; /* borrowed from argv */
  size_t count;
} tool_texts;

/* Rows for argp of the options that kjit-run and kjit-compile share. */
typedef struct tool_module_options {
  tool_texts folders;   /* --import-path DIR */
  tool_texts externs;   /* --extern NAME=FILE */
  tool_texts constants; /* --const NAME=VALUE */
  bool is_guest;        /* --guest */
} tool_module_options;

#define TOOL_MODULE_HELP \
  { "import-path", \
    'I', \
    "DIR", \
    0, \
    "Search DIR for imported files that are not in the folder of the importing file. May be " \
    "repeated", \
    1 }, \
    { "extern", \
      TOOL_KEY_EXTERN, \
      "NAME=FILE", \
      0, \
      "Take extern func NAME from FILE: PTX or LLVM IR (.ptx .bc .ll) for GPUs, a shared library " \
      "(.so, .so.6) with a C function of that name for the CPU", \
      1 }, \
    { "const", \
      TOOL_KEY_CONST, \
      "NAME=VALUE", \
      0, \
      "Set a constant to a number, true, false or a scalar such as 2.5f32", \
      1 }, \
  { \
    "guest", TOOL_KEY_GUEST, 0, 0, \
      "Treat FILE.kir as untrusted: check all array bounds and reject code that could access " \
      "memory other than the arguments", \
      1 \
  }
enum { TOOL_KEY_EXTERN = 1000, TOOL_KEY_CONST, TOOL_KEY_GUEST };

/* Stores one of these options. Returns false for any other key. Exits if out of memory. */
bool tool_take_module_option(tool_module_options *options, int key, const char *text);
void tool_destroy_module_options(tool_module_options *options);

/* Returns the directories in the format of kjit_config.import_path, which the caller frees, or
 * NULL. */
char *tool_import_path(const tool_module_options *options);
/* Parses the file, or an empty module if path is NULL, and applies the options. Libraries that it
 * opens stay open. */
bool tool_open_module(tool_error *error, kjit_context *context, const char *path,
                      const tool_module_options *options, kjit_module **module);

#endif
