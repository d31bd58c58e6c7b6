#include <driver/argument.h>

#include <driver/generate.h>
#include <driver/npy.h>
#include <stdlib.h>
#include <string.h>

static const char conversion_suffix[] = ":as=";

/* ---- the table ---- */

tool_argument *tool_find_argument(const tool_arguments *arguments, const char *name, size_t length)
{
  for (size_t i = 0; i < arguments->count; i++)
    if (strlen(arguments->items[i].name) == length && !memcmp(arguments->items[i].name, name, length)) return &arguments->items[i];
  return NULL;
}

static void *grow(void *items, size_t count, size_t item_bytes)
{
  void *larger = tool_allocate((count + 1) * item_bytes);
  if (count) memcpy(larger, items, count * item_bytes);
  free(items);
  return larger;
}

static void keep_memory(tool_arguments *arguments, tool_memory *memory)
{
  arguments->memories = grow(arguments->memories, arguments->memory_count, sizeof *arguments->memories);
  arguments->memories[arguments->memory_count++] = memory;
}

void tool_destroy_arguments(tool_arguments *arguments)
{
  for (size_t i = 0; i < arguments->count; i++) free(arguments->items[i].name);
  for (size_t i = 0; i < arguments->memory_count; i++) tool_destroy_memory(arguments->memories[i]);
  free(arguments->items);
  free(arguments->memories);
  *arguments = (tool_arguments){ 0 };
}

/* ---- generators ---- */

static bool scan_shape(tool_scanner *scanner, tool_shape *shape)
{
  if (!tool_scan_element_type(scanner, &shape->element)) return false;
  if (!tool_accept(scanner, '[')) return tool_expected(scanner, "'[' and the shape");
  if (tool_accept(scanner, ']')) return true;
  do {
    tool_skip_blanks(scanner);
    const char *at = scanner->at;
    int64_t extent;
    if (!tool_scan_integer(scanner, "an extent", &extent)) return false;
    if (extent < 0) return tool_scan_fail(scanner, at, "an extent must not be negative");
    if (shape->rank == TOOL_MAX_RANK) return tool_scan_fail(scanner, at, "an array has at most %d dimensions", TOOL_MAX_RANK);
    shape->extents[shape->rank++] = extent;
  } while (tool_accept(scanner, ','));
  return tool_accept(scanner, ']') || tool_expected(scanner, "',' or ']'");
}

static bool scan_untyped(tool_scanner *scanner, tool_number *number)
{
  tool_value value;
  if (!tool_scan_value(scanner, &value)) return false;
  *number = value.number;
  return true;
}

static bool scan_real(tool_scanner *scanner, double *real)
{
  tool_number number;
  if (!scan_untyped(scanner, &number)) return false;
  *real = tool_number_real(&number);
  return true;
}

static bool scan_option_value(tool_scanner *scanner, const char *name, tool_generator_options *options)
{
  const struct {
    const char *name;
    tool_number *number;
  } numbers[] = {
    { "value", &options->value }, { "start", &options->start }, { "step", &options->step }, { "low", &options->low }, { "high", &options->high }
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!strcmp(numbers[i].name, name)) return scan_untyped(scanner, numbers[i].number);
  if (!strcmp(name, "mean")) return scan_real(scanner, &options->mean);
  if (!strcmp(name, "std")) return scan_real(scanner, &options->std);
  int64_t seed;
  if (!tool_scan_integer(scanner, "the seed", &seed)) return false;
  options->seed = (uint64_t)seed;
  return true;
}

static bool scan_order(tool_scanner *scanner, tool_shape *shape)
{
  shape->is_fortran = tool_accept_word(scanner, "F");
  return shape->is_fortran || tool_accept_word(scanner, "C") || tool_expected(scanner, "C (row-major) or F (column-major)");
}

static bool scan_option(tool_scanner *scanner, const tool_generator *generator, tool_generator_options *options, tool_shape *shape)
{
  char *name;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_name(scanner, "an option such as order=F or seed=1", &name)) return false;
  bool is_order = !strcmp(name, "order"), ok = is_order || tool_generator_takes(generator, name);
  if (!ok) tool_scan_fail(scanner, at, "no option '%s' here; see kjit-run --help", name);
  ok = ok && tool_expect(scanner, '=') && (is_order ? scan_order(scanner, shape) : scan_option_value(scanner, name, options));
  free(name);
  return ok;
}

/* The seed of an argument without one, so that two arguments differ: FNV-1a of the name. */
static uint64_t name_seed(const char *name)
{
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
  return hash;
}

static bool scan_generated(tool_scanner *scanner, const tool_generator *generator, const char *name, tool_array *array)
{
  const char *start = scanner->at;
  tool_generator_options options = tool_default_options(generator, name_seed(name));
  tool_shape shape = { 0 };
  if (!scan_shape(scanner, &shape)) return false;
  while (tool_accept(scanner, ':'))
    if (!scan_option(scanner, generator, &options, &shape)) return false;
  if (!tool_create_array(scanner->error, &shape, array)) return tool_prefix(scanner->error, "%s %s", scanner->option, scanner->text);
  const char *misfit = tool_generator_misfit(generator, &options, array);
  if (misfit) {
    tool_destroy_memory(array->memory);
    return tool_scan_fail(scanner, start, "this array cannot be filled: %s", misfit);
  }
  tool_generate(generator, &options, array);
  return true;
}

/* ---- files ---- */

static bool convert_array(tool_scanner *scanner, const tool_array *from, kjit_type element, tool_array *to)
{
  tool_shape shape = { .element = element, .rank = from->rank };
  memcpy(shape.extents, from->shape, sizeof shape.extents);
  if (!tool_create_array(scanner->error, &shape, to)) return false;
  uint64_t count = tool_count(from);
  for (uint64_t i = 0; i < count; i++) {
    tool_number number = tool_load(from->element, tool_element_number(from, i));
    if (!tool_convert(scanner, scanner->at, &number, element)) {
      tool_destroy_memory(to->memory);
      return false;
    }
    tool_store(element, tool_element_number(to, i), &number);
  }
  return true;
}

/* The rest of the text is a path, but for ":as=TYPE" at its end. */
static bool scan_file(tool_scanner *scanner, tool_array *array)
{
  const char *path = scanner->at, *end = path + strlen(path), *suffix = strstr(path, conversion_suffix);
  kjit_type element = KJIT_ANY;
  if (suffix) {
    scanner->at = suffix + strlen(conversion_suffix);
    if (!tool_scan_element_type(scanner, &element) || !tool_expect_end(scanner)) return false;
    end = suffix;
  }
  char *copy = tool_copy_text(path, (size_t)(end - path));
  bool ok = tool_read_npy(scanner->error, copy, array);
  free(copy);
  if (ok && element != KJIT_ANY && element != array->element) {
    tool_array original = *array;
    scanner->at = suffix;
    ok = convert_array(scanner, &original, element, array);
    tool_destroy_memory(original.memory);
  }
  scanner->at = path + strlen(path);
  return ok;
}

/* ---- values ---- */

bool tool_scan_reference(const tool_arguments *arguments, tool_scanner *scanner, tool_argument *argument)
{
  size_t length = tool_name_length(scanner);
  const char *at = scanner->at;
  if (!length) return tool_expected(scanner, "the name of an --arg");
  const tool_argument *found = tool_find_argument(arguments, at, length);
  if (!found) return tool_scan_fail(scanner, at, "no --arg has the name '%.*s'", (int)length, at);
  scanner->at += length;
  *argument = *found;
  if (found->is_array) return tool_scan_view(scanner, &argument->array);
  tool_skip_blanks(scanner);
  if (*scanner->at != '[' && *scanner->at != '.') return true;
  return tool_scan_fail(scanner, scanner->at, "'%.*s' is a scalar: it has no views", (int)length, at);
}

static bool expected_value(tool_scanner *scanner)
{
  char *names = tool_generator_names(), *what = tool_format("@FILE.npy, a number, view:NAME, or one of %s and ':'", names);
  tool_expected(scanner, what);
  free(names);
  free(what);
  return false;
}

static bool scan_view_of(tool_arguments *arguments, tool_scanner *scanner, tool_argument *argument)
{
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_reference(arguments, scanner, argument)) return false;
  return argument->is_array || tool_scan_fail(scanner, at, "a view needs an array, and this is a scalar");
}

bool tool_scan_argument_value(tool_arguments *arguments, tool_scanner *scanner, const char *name, tool_argument *argument)
{
  *argument = (tool_argument){ .is_array = true };
  if (tool_accept(scanner, '@')) {
    if (!scan_file(scanner, &argument->array)) return false;
    keep_memory(arguments, argument->array.memory);
    return true;
  }
  if (tool_is_value(scanner)) {
    argument->is_array = false;
    return tool_scan_scalar(scanner, &argument->value);
  }
  size_t length = tool_name_length(scanner);
  const char *word = scanner->at;
  const tool_generator *generator = tool_find_generator(word, length);
  bool is_view = length == 4 && !memcmp(word, "view", 4);
  if ((!generator && !is_view) || word[length] != ':') return expected_value(scanner);
  scanner->at += length + 1;
  if (is_view) return scan_view_of(arguments, scanner, argument);
  if (!scan_generated(scanner, generator, name, &argument->array)) return false;
  keep_memory(arguments, argument->array.memory);
  return true;
}

bool tool_add_argument(tool_arguments *arguments, const char *option, const char *text, tool_error *error)
{
  tool_scanner scanner = tool_scan(option, text, error);
  tool_argument argument = { 0 };
  char *name = NULL;
  if (!tool_scan_name(&scanner, "NAME=VALUE", &name)) return false;
  bool ok = true;
  if (tool_find_argument(arguments, name, strlen(name))) ok = tool_scan_fail(&scanner, text, "'%s' is given twice", name);
  ok = ok && tool_expect(&scanner, '=') && tool_scan_argument_value(arguments, &scanner, name, &argument) && tool_expect_end(&scanner);
  if (!ok) {
    free(name);
    return false;
  }
  argument.name = name;
  arguments->items = grow(arguments->items, arguments->count, sizeof *arguments->items);
  arguments->items[arguments->count++] = argument;
  return true;
}
