/* Reads lists of kernels for kjit-cache build. Each line of a list is a comment, a definition or a
 * step:
 *
 *   # a comment
 *   for T in f32 f64                   later lines with {T} stand for a line with each of the words
 *   arg x=zeros:{T}[1000]              an argument, as --arg of kjit-run
 *   module scale.kir                   the module of the lines that follow, relative to the list
 *   kernel scale(f32[:] C, f32)        a kernel and a signature
 *   launch scale(r, 2.0f32, x)         a launch, as --launch of kjit-run
 *   call r = sort(x)                   an algorithm, as --call of kjit-run */
#ifndef CACHE_LIST_H
#define CACHE_LIST_H

#include <driver/error.h>

typedef enum cache_step_kind { CACHE_KERNEL, CACHE_LAUNCH, CACHE_CALL } cache_step_kind;

/* A step, in which all names in braces are replaced. */
typedef struct cache_step {
  cache_step_kind kind;
  const char *text;
  const char *module; /* path of the module, or NULL */
  char **arguments;   /* arguments that the text names, such as "x=zeros:f32[1000]" */
  size_t argument_count;
} cache_step;

/* Reads the file and calls run for each step, until it returns false. An error begins with the path
 * and the number of the line. */
bool cache_read_list(tool_error *error, const char *path,
                     bool (*run)(void *user, const cache_step *step), void *user);

#endif
