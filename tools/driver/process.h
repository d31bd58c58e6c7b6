/* Runs a program without a shell and collects what it writes. */
#ifndef TOOL_PROCESS_H
#define TOOL_PROCESS_H

#include <driver/error.h>

/* The first executable of that name in the given folder, on PATH, or in the places where CUDA toolkits are; NULL: none. malloc'd. */
char *tool_find_program(const char *name, const char *given);

/* Runs arguments[0] and waits. output (may be NULL) takes standard output, which is malloc'd and may hold 0 bytes; otherwise it is discarded.
 * A program that cannot be run or fails is an error with its name and what it wrote to stderr. */
bool tool_run_program(tool_error *error, const char *const *arguments, void **output, size_t *output_bytes);

#endif
