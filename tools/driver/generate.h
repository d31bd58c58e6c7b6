/* Fills arrays with constants, ramps or random numbers. Each element depends only on its position
 * and the seed, so the result is the same on all machines and in all layouts. */
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
/* Returns the generator with this name, or NULL if there is none. */
const tool_generator *tool_find_generator(const char *name, size_t length);
/* Returns "; did you mean 'zeros'?" or an empty text, which the caller frees. */
char *tool_similar_generator(const char *name, size_t length);
char *tool_generator_names(void); /* Returns the list "zeros, ones, ...", which the caller frees. */
/* Returns whether the generator has an option with this name. */
bool tool_generator_takes(const tool_generator *generator, const char *option);
tool_generator_options tool_default_options(const tool_generator *generator, uint64_t seed);
/* Returns the reason why the generator cannot fill the array, in static storage, or NULL. */
const char *tool_generator_misfit(const tool_generator *generator,
                                  const tool_generator_options *options, const tool_array *array);
void tool_generate(const tool_generator *generator, const tool_generator_options *options,
                   const tool_array *array);

#endif
