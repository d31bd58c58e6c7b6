/* kjit-compile's command line. */
#ifndef COMPILE_OPTIONS_H
#define COMPILE_OPTIONS_H

#include <driver/error.h>
#include <driver/module.h>

typedef struct compile_options {
  tool_module_options module;
  const char *path; /* path of the IR */
  const char *kernel, *function, *symbol, *signature, *arch, *facts, *output, *ptxas, *libdevice;
  const char **types; /* items of the form "NAME=TYPE" */
  size_t type_count;
  const char *after_pass;
  /* -1 means that the ending of the output's name determines the stage; for other endings the stage
   * is the last text stage of the target */
  int stage;
  uint32_t block[3], ptx_version, checks;
  kjit_debug debug;
  kjit_compile_limits limits; /* size_bytes 0 means that no limit was given */
  bool lists_kernels, is_quiet, is_interruptible;
} compile_options;

/* Exits with the usage status on a wrong command line, and with 0 after --help. */
void compile_parse_options(int argc, char **argv, compile_options *options);
void compile_destroy_options(compile_options *options);

#endif
