/* Fills arrays: constants, ramps, random numbers. Every element depends on its position and the
 * seed only: the same on all machines, in any layout. */
#ifndef TOOL_GENERATE_H
#define TOOL_GENERATE_H

#include <driver/array.h>

typedef struct tool_generator_options {
  tool_number value, start, step, low, high;
  double mean, std;
  uint64_t seed;
  bool has_value;
} tool_generator_options;

typedef struct tool_generator tool_generator;
const tool_generator *tool_find_generator(const char *name, size_t length); /* NULL: none */
/* "; did you mean 'zeros'?", or the empty text; free */
char *tool_similar_generator(const char *name, size_t length);
char *tool_generator_names(void); /* "zeros, ones, ..." */
/* Whether the generator takes the option of that name. */
bool tool_generator_takes(const tool_generator *generator, const char *option);
tool_generator_options tool_default_options(const tool_generator *generator, uint64_t seed);
/* Why the generator cannot fill the array, or NULL; static storage. */
const char *tool_generator_misfit(const tool_generator *generator,
                                  const tool_generator_options *options, const tool_array *array);
void tool_generate(const tool_generator *generator, const tool_generator_options *options,
                   const tool_array *array);

#endif
