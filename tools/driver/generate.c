#include <driver/generate.h>

#include <driver/similar.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARALLEL_COUNT = 1 << 16 };

struct tool_generator {
  /* options: names of the options, with a blank before and after each, such as " seed " */
  const char *name, *options;
  const char *(*misfit)(const tool_generator_options *options, const tool_array *array);
  void (*element)(const tool_generator_options *options, kjit_type type, uint64_t position,
                  tool_number *number);
  bool is_constant; /* all elements are equal */
  int64_t high;     /* default value of the option */
};

/* ---- random bits: splitmix64 (Steele, Lea, Flood 2014) as a function of seed and counter ---- */

static uint64_t mix(uint64_t z)
{
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static uint64_t random_bits(uint64_t seed, uint64_t counter)
{
  return mix(mix(seed + 0x9e3779b97f4a7c15u) + (counter + 1) * 0x9e3779b97f4a7c15u);
}

/* Returns a number in [0, 1) with the type's precision, so that rounding to the type cannot give
 * 1. */
static double uniform(uint64_t seed, uint64_t counter, int bits)
{
  return ldexp((double)(random_bits(seed, counter) >> (64 - bits)), -bits);
}

/* Box-Muller method: two uniform numbers give two normal numbers, for counters 2k and 2k + 1. */
static double normal(uint64_t seed, uint64_t counter)
{
  uint64_t first = counter & ~(uint64_t)1;
  double radius = sqrt(-2 * log1p(-uniform(seed, first, 53))),
         angle = 2 * 3.14159265358979323846 * uniform(seed, first + 1, 53);
  return radius * (counter & 1 ? sin(angle) : cos(angle));
}

/* ---- the generators ---- */

static void zero_element(const tool_generator_options *options, kjit_type type, uint64_t position,
                         tool_number *number)
{
  (void)options, (void)type, (void)position;
  *number = tool_make_integer(0);
}

static void one_element(const tool_generator_options *options, kjit_type type, uint64_t position,
                        tool_number *number)
{
  (void)options, (void)type, (void)position;
  *number = tool_make_integer(1);
}

static void full_element(const tool_generator_options *options, kjit_type type, uint64_t position,
                         tool_number *number)
{
  (void)type, (void)position;
  *number = options->value;
}

static void ramp_element(const tool_generator_options *options, kjit_type type, uint64_t position,
                         tool_number *number)
{
  (void)type;
  if (options->start.kind == TOOL_NUMBER_SIGNED && options->step.kind == TOOL_NUMBER_SIGNED)
    *number = tool_make_integer(
      (int64_t)((uint64_t)options->start.i + position * (uint64_t)options->step.i));
  else
    *number = tool_make_real(tool_number_real(&options->start) +
                             (double)position * tool_number_real(&options->step));
}

static void uniform_element(const tool_generator_options *options, kjit_type type,
                            uint64_t position, tool_number *number)
{
  double low = tool_number_real(&options->low), range = tool_number_real(&options->high) - low;
  int bits = tool_elements[type].mantissa_bits + 1;
  bool is_complex = tool_elements[type].class_ == TOOL_COMPLEX;
  *number = tool_make_real(
    low + range * uniform(options->seed, is_complex ? 2 * position : position, bits));
  if (!is_complex) return;
  number->kind = TOOL_NUMBER_COMPLEX;
  number->im = low + range * uniform(options->seed, 2 * position + 1, bits);
}

static void normal_element(const tool_generator_options *options, kjit_type type, uint64_t position,
                           tool_number *number)
{
  bool is_complex = tool_elements[type].class_ == TOOL_COMPLEX;
  *number = tool_make_real(
    options->mean + options->std * normal(options->seed, is_complex ? 2 * position : position));
  if (!is_complex) return;
  number->kind = TOOL_NUMBER_COMPLEX;
  number->im = options->mean + options->std * normal(options->seed, 2 * position + 1);
}

static void integer_element(const tool_generator_options *options, kjit_type type,
                            uint64_t position, tool_number *number)
{
  (void)type;
  uint64_t range = (uint64_t)options->high.i - (uint64_t)options->low.i;
  uint64_t scaled =
    (uint64_t)((unsigned __int128)random_bits(options->seed, position) * range >> 64);
  *number = tool_make_integer((int64_t)((uint64_t)options->low.i + scaled));
}

/* ---- checks whether a generator fits an array ---- */

static const char *misfit_value(const tool_generator_options *options, const tool_array *array)
{
  if (!options->has_value) return "full needs a value, as in full:f32[8]:value=0.5";
  return tool_misfit(array->element, &options->value) ? "the value does not fit the element type"
                                                      : NULL;
}

static const char *misfit_nothing(const tool_generator_options *options, const tool_array *array)
{
  (void)options, (void)array;
  return NULL;
}

static const char *misfit_ramp(const tool_generator_options *options, const tool_array *array)
{
  uint64_t count = tool_count(array);
  int64_t distance, end;
  tool_number last;
  if (!isfinite(tool_number_real(&options->start)) || !isfinite(tool_number_real(&options->step)))
    return "start and step must be finite";
  if (!count) return NULL;
  if (options->start.kind == TOOL_NUMBER_SIGNED && options->step.kind == TOOL_NUMBER_SIGNED &&
      (__builtin_mul_overflow((int64_t)count - 1, options->step.i, &distance) ||
       __builtin_add_overflow(options->start.i, distance, &end)))
    return "its last element needs more than 64 bits";
  ramp_element(options, array->element, count - 1, &last);
  if (tool_misfit(array->element, &options->start))
    return tool_misfit(array->element, &options->start);
  return tool_misfit(array->element, &last) ? "its last element does not fit the type" : NULL;
}

static const char *misfit_random_real(const tool_generator_options *options,
                                      const tool_array *array)
{
  double range = tool_number_real(&options->high) - tool_number_real(&options->low);
  if (!isfinite(range) || range < 0)
    return "low and high must be finite, and high not less than low";
  if (!isfinite(options->mean) || !isfinite(options->std) || options->std < 0)
    return "mean and std must be finite, and std not negative";
  tool_class class_ = tool_elements[array->element].class_;
  return class_ == TOOL_FLOAT || class_ == TOOL_COMPLEX
           ? NULL
           : "the elements are not floats; use randint for integers";
}

static const char *misfit_integer(const tool_generator_options *options, const tool_array *array)
{
  tool_number largest = options->high;
  if (options->low.kind != TOOL_NUMBER_SIGNED || options->high.kind != TOOL_NUMBER_SIGNED)
    return "low and high must be integers of i64";
  if (options->low.i >= options->high.i)
    return "low must be less than high (which is not drawn itself)";
  largest.i--;
  if (tool_misfit(array->element, &options->low)) return "low does not fit the element type";
  return tool_misfit(array->element, &largest) ? "high - 1 does not fit the element type" : NULL;
}

static const tool_generator generators[] = {
  { "zeros", " ", misfit_nothing, zero_element, true, 1 },
  { "ones", " ", misfit_nothing, one_element, true, 1 },
  { "full", " value ", misfit_value, full_element, true, 1 },
  { "arange", " start step ", misfit_ramp, ramp_element, false, 1 },
  { "rand", " seed low high ", misfit_random_real, uniform_element, false, 1 },
  { "randn", " seed mean std ", misfit_random_real, normal_element, false, 1 },
  { "randint", " seed low high ", misfit_integer, integer_element, false, 100 },
};
enum { GENERATOR_COUNT = sizeof generators / sizeof *generators };

const tool_generator *tool_find_generator(const char *name, size_t length)
{
  for (size_t i = 0; i < GENERATOR_COUNT; i++)
    if (strlen(generators[i].name) == length && !memcmp(generators[i].name, name, length))
      return &generators[i];
  return NULL;
}

char *tool_similar_generator(const char *name, size_t length)
{
  tool_similar similar = { .name = name, .length = length };
  for (size_t i = 0; i < GENERATOR_COUNT; i++) tool_offer_name(&similar, generators[i].name);
  return tool_similar_text(&similar);
}

char *tool_generator_names(void)
{
  char *names = tool_copy_text("", 0);
  for (size_t i = 0; i < GENERATOR_COUNT; i++) {
    char *longer = tool_format("%s%s%s", names, i ? ", " : "", generators[i].name);
    free(names);
    names = longer;
  }
  return names;
}

bool tool_generator_takes(const tool_generator *generator, const char *option)
{
  char *blanked = tool_format(" %s ", option);
  bool takes = strstr(generator->options, blanked) != NULL;
  free(blanked);
  return takes;
}

tool_generator_options tool_default_options(const tool_generator *generator, uint64_t seed)
{
  return (tool_generator_options){
    .step = tool_make_integer(1), .high = tool_make_integer(generator->high), .std = 1, .seed = seed
  };
}

const char *tool_generator_misfit(const tool_generator *generator,
                                  const tool_generator_options *options, const tool_array *array)
{
  return generator->misfit(options, array);
}

/* Fills memory by doubling the filled part. */
static void fill_constant(const tool_memory *memory, const tool_number *number)
{
  uint64_t size = memory->size_bytes, done = tool_elements[memory->element].size_bytes;
  if (!size) return;
  tool_store(memory->element, memory->data, number);
  for (; done < size; done *= 2)
    memcpy((char *)memory->data + done, memory->data, done < size - done ? done : size - done);
}

void tool_generate(const tool_generator *generator, const tool_generator_options *options,
                   const tool_array *array)
{
  tool_number constant;
  uint64_t count = tool_count(array), size = tool_elements[array->element].size_bytes;
  bool contiguous = tool_is_contiguous(array);
  if (generator->is_constant) {
    generator->element(options, array->element, 0, &constant);
    /* nothing to do, because newly allocated memory is zeroed */
    if (generator->element != zero_element) fill_constant(array->memory, &constant);
    return;
  }
#pragma omp parallel for schedule(static) if (count >= PARALLEL_COUNT)
  for (uint64_t i = 0; i < count; i++) {
    tool_number number;
    generator->element(options, array->element, i, &number);
    tool_store(array->element,
               contiguous ? (char *)array->memory->data + i * size : tool_element_number(array, i),
               &number);
  }
}
