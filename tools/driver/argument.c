#include <driver/argument.h>

#include <driver/generate.h>
#include <driver/array_file.h>
#include <driver/literal.h>
#include <driver/similar.h>
#include <driver/sparse_file.h>
#include <driver/record.h>
#include <stdlib.h>
#include <string.h>

static const char conversion_suffix[] = ":as=";

/* ---- the table ---- */

tool_argument *tool_find_argument(const tool_arguments *arguments, const char *name, size_t length)
{
  for (size_t i = 0; i < arguments->count; i++)
    if (strlen(arguments->items[i].name) == length &&
        !memcmp(arguments->items[i].name, name, length))
      return &arguments->items[i];
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
  arguments->memories =
    grow(arguments->memories, arguments->memory_count, sizeof *arguments->memories);
  arguments->memories[arguments->memory_count++] = memory;
}

void tool_destroy_arguments(tool_arguments *arguments)
{
  for (size_t i = 0; i < arguments->count; i++) {
    free(arguments->items[i].name);
    free(arguments->items[i].sparse);
  }
  for (size_t i = 0; i < arguments->memory_count; i++) tool_destroy_memory(arguments->memories[i]);
  free(arguments->items);
  free(arguments->memories);
  *arguments = (tool_arguments){ .context = arguments->context, .size = arguments->size };
}

/* ---- generators ---- */

/* Adds a dimension for the lanes of vectors. With this dimension, code that handles elements as
 * numbers needs no case for vectors. */
static bool add_lanes(tool_scanner *scanner, tool_shape *shape)
{
  if (!shape->lanes) return true;
  if (shape->rank == TOOL_MAX_RANK)
    return tool_scan_fail(scanner, scanner->at, "an array of vectors has at most %d dimensions",
                          TOOL_MAX_RANK - 1);
  shape->extents[shape->rank++] = shape->lanes;
  return true;
}

/* Scans "f32", "f32x4", or a struct of the module, whose elements are stored as bytes with one lane
 * for each byte. */
static bool scan_element(tool_scanner *scanner, kjit_type *element, uint32_t *lanes,
                         tool_record *record)
{
  size_t length = tool_name_length(scanner);
  *record = (tool_record){ 0 };
  if (!length || !tool_find_record(scanner->context, scanner->at, length, record)) {
    *record = (tool_record){ 0 };
    return tool_scan_array_type(scanner, element, lanes);
  }
  scanner->at += length;
  *element = KJIT_U8;
  *lanes = record->size_bytes;
  return true;
}

static bool scan_shape(tool_scanner *scanner, tool_shape *shape)
{
  if (!scan_element(scanner, &shape->element, &shape->lanes, &shape->record)) return false;
  if (!tool_accept(scanner, '[')) return tool_expected(scanner, "'[' and the shape");
  if (tool_accept(scanner, ']')) return add_lanes(scanner, shape);
  do {
    tool_skip_blanks(scanner);
    const char *at = scanner->at;
    int64_t extent;
    if (!tool_scan_integer(scanner, "an extent", &extent)) return false;
    if (extent < 0) return tool_scan_fail(scanner, at, "an extent must not be negative");
    if (shape->rank == TOOL_MAX_RANK)
      return tool_scan_fail(scanner, at, "an array has at most %d dimensions", TOOL_MAX_RANK);
    shape->extents[shape->rank++] = extent;
  } while (tool_accept(scanner, ','));
  return tool_accept(scanner, ']') ? add_lanes(scanner, shape)
                                   : tool_expected(scanner, "',' or ']'");
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

static bool scan_option_value(tool_scanner *scanner, const char *name,
                              tool_generator_options *options)
{
  if (!strcmp(name, "value")) options->has_value = true;
  const struct {
    const char *name;
    tool_number *number;
  } numbers[] = { { "value", &options->value },
                  { "start", &options->start },
                  { "step", &options->step },
                  { "low", &options->low },
                  { "high", &options->high } };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (!strcmp(numbers[i].name, name)) return scan_untyped(scanner, numbers[i].number);
  if (!strcmp(name, "mean")) return scan_real(scanner, &options->mean);
  if (!strcmp(name, "std")) return scan_real(scanner, &options->std);
  return tool_scan_bits(scanner, "the seed", &options->seed);
}

static bool scan_order(tool_scanner *scanner, tool_shape *shape)
{
  shape->is_fortran = tool_accept_word(scanner, "F");
  return shape->is_fortran || tool_accept_word(scanner, "C") ||
         tool_expected(scanner, "C (row-major) or F (column-major)");
}

/* Returns whether the option is already given in the text before `at`. Options follow ':'. */
static bool is_given(const char *text, const char *at, const char *name)
{
  size_t length = strlen(name);
  for (const char *from = text; from + 1 < at; from++)
    if (*from == ':' && !strncmp(from + 1, name, length) && from[1 + length] == '=' &&
        from + 1 != at)
      return true;
  return false;
}

static bool scan_option(tool_scanner *scanner, const tool_generator *generator,
                        tool_generator_options *options, tool_shape *shape)
{
  char *name;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_name(scanner, "an option such as order=F or seed=1", &name)) return false;
  bool is_order = !strcmp(name, "order"), ok = is_order || tool_generator_takes(generator, name);
  if (!ok) tool_scan_fail(scanner, at, "this value has no option '%s'; see kjit-run --help", name);
  if (ok && is_given(scanner->text, at, name))
    ok = tool_scan_fail(scanner, at, "the option '%s' is given twice", name);
  ok = ok && tool_expect(scanner, '=') &&
       (is_order ? scan_order(scanner, shape) : scan_option_value(scanner, name, options));
  free(name);
  return ok;
}

/* Returns the default seed, the FNV-1a hash of the argument's name, so that different arguments get
 * different numbers. */
static uint64_t name_seed(const char *name)
{
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
  return hash;
}

static bool scan_generated(tool_scanner *scanner, const tool_generator *generator, const char *name,
                           tool_array *array)
{
  const char *start = scanner->at;
  tool_generator_options options = tool_default_options(generator, name_seed(name));
  tool_shape shape = { 0 };
  if (!scan_shape(scanner, &shape)) return false;
  if (shape.record.context && generator != tool_find_generator("zeros", 5))
    return tool_scan_fail(scanner, start,
                          "arrays of structs can only be zeros or read from a .npy file");
  while (tool_accept(scanner, ':'))
    if (!scan_option(scanner, generator, &options, &shape)) return false;
  if (!tool_create_array(scanner->error, &shape, array))
    return tool_prefix(scanner->error, "%s %s", scanner->option, scanner->text);
  const char *misfit = tool_generator_misfit(generator, &options, array);
  if (misfit) {
    tool_destroy_memory(array->memory);
    return tool_scan_fail(scanner, start, "this array cannot be filled: %s", misfit);
  }
  tool_generate(generator, &options, array);
  return true;
}

/* ---- files ---- */

static bool convert_array(tool_scanner *scanner, const tool_array *from, kjit_type element,
                          tool_array *to)
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

/* Interprets the last dimension of a file as the lanes of vectors. */
static bool take_lanes(tool_scanner *scanner, tool_array *array, uint32_t lanes)
{
  if (!lanes) return true;
  bool fits = array->rank && array->shape[array->rank - 1] == lanes,
       is_dense = fits && array->strides[array->rank - 1] == 1;
  for (uint32_t d = 0; is_dense && d + 1 < array->rank; d++)
    is_dense = array->strides[d] % lanes == 0;
  array->lanes = lanes;
  if (fits && is_dense) return true;
  array->lanes = 0;
  char *shape = tool_shape_text(array);
  tool_scan_fail(
    scanner, scanner->at,
    "vectors of %u lanes need a contiguous last dimension of that length; the file has %s", lanes,
    shape);
  free(shape);
  tool_destroy_memory(array->memory);
  return false;
}

/* Applies a struct type to an array of a file. Fails if the file has structs but the type is no
 * struct, and if the type is a struct but the file has none. */
static bool take_struct(tool_scanner *scanner, tool_array *array, const tool_leaves *leaves,
                        const tool_record *record)
{
  bool ok;
  if (!record->context)
    ok =
      tool_scan_fail(scanner, scanner->at,
                     "the file holds structs; name the struct of the module, `@FILE.npy:as=NAME`");
  else if (!leaves->count)
    ok = tool_scan_fail(scanner, scanner->at, "the file holds numbers, not structs");
  else ok = tool_take_record(scanner, array, leaves, record);
  if (!ok) tool_destroy_memory(array->memory);
  return ok;
}

/* Scans a path, which extends to the end of the text or to ":as=TYPE". */
static bool scan_file(tool_scanner *scanner, tool_array *array)
{
  const char *path = scanner->at, *end = path + strlen(path),
             *suffix = strstr(path, conversion_suffix);
  kjit_type element = KJIT_ANY;
  uint32_t lanes = 0;
  tool_record record = { 0 };
  tool_leaves leaves = { 0 };
  const bool keeps_texts = suffix && !strcmp(suffix + strlen(conversion_suffix), "text");
  if (keeps_texts) {
    end = suffix;
    suffix = NULL;
  }
  if (suffix) {
    scanner->at = suffix + strlen(conversion_suffix);
    if (!scan_element(scanner, &element, &lanes, &record) || !tool_expect_end(scanner))
      return false;
    end = suffix;
  }
  char *copy = tool_copy_text(path, (size_t)(end - path));
  const tool_array_source source = { copy, scanner->array_name,
                                     lanes || record.context ? KJIT_ANY : element, keeps_texts };
  bool ok = tool_load_array(scanner->error, &source, array, &leaves),
       is_structured = leaves.count || record.context;
  free(copy);
  if (ok && keeps_texts && !array->memory->has_texts) {
    tool_destroy_memory(array->memory);
    return tool_scan_fail(
      scanner, end, "`:as=text` is supported only for table columns that contain texts or dates");
  }
  if (suffix) scanner->at = suffix;
  else if (leaves.count && scanner->record) record = *scanner->record;
  if (ok && is_structured) {
    ok = take_struct(scanner, array, &leaves, &record);
    scanner->at = path + strlen(path);
  }
  tool_destroy_leaves(&leaves);
  if (!ok || is_structured) return ok;
  if (ok && element != KJIT_ANY && element != array->element) {
    tool_array original = *array;
    scanner->at = suffix;
    ok = convert_array(scanner, &original, element, array);
    tool_destroy_memory(original.memory);
  }
  if (suffix) scanner->at = suffix;
  ok = ok && take_lanes(scanner, array, lanes);
  scanner->at = path + strlen(path);
  return ok;
}

bool tool_scan_file(tool_arguments *arguments, tool_scanner *scanner, tool_argument *argument)
{
  *argument = (tool_argument){ .is_array = true };
  if (!scan_file(scanner, &argument->array)) return false;
  keep_memory(arguments, argument->array.memory);
  return true;
}

/* ---- values ---- */

static bool no_such_argument(const tool_arguments *arguments, tool_scanner *scanner, const char *at,
                             size_t length)
{
  tool_similar similar = { .name = at, .length = length };
  for (size_t i = 0; i < arguments->count; i++) tool_offer_name(&similar, arguments->items[i].name);
  char *meant = tool_similar_text(&similar);
  tool_scan_fail(scanner, at, "no --arg has the name '%.*s'%s", (int)length, at, meant);
  free(meant);
  return false;
}

bool tool_scan_reference(const tool_arguments *arguments, tool_scanner *scanner,
                         tool_argument *argument)
{
  size_t length = tool_name_length(scanner);
  const char *at = scanner->at;
  if (!length) return tool_expected(scanner, "the name of an --arg");
  tool_argument *found = tool_find_argument(arguments, at, length);
  if (!found) return no_such_argument(arguments, scanner, at, length);
  found->is_used = true;
  scanner->at += length;
  if (found->sparse)
    return tool_scan_fail(
      scanner, at, "'%s' is a sparse matrix; only calls such as spmv and csr_to_dense accept one",
      found->name);
  *argument = *found;
  if (found->is_array) return tool_scan_view(scanner, &argument->array);
  tool_skip_blanks(scanner);
  if (*scanner->at != '[' && *scanner->at != '.') return true;
  return tool_scan_fail(scanner, scanner->at, "'%.*s' is a scalar: it has no views", (int)length,
                        at);
}

static bool expected_value(tool_scanner *scanner)
{
  size_t length = tool_name_length(scanner);
  char *similar = scanner->at[length] == ':' ? tool_similar_generator(scanner->at, length) : NULL;
  if (similar && *similar)
    tool_scan_fail(scanner, scanner->at, "there is no kind of array '%.*s'%s", (int)length,
                   scanner->at, similar);
  free(similar);
  if (scanner->error->text) return false;
  char *names = tool_generator_names(),
       *what = tool_format(
         "@FILE.npy, a number, [1, 2, 3], view:NAME, or a new array such as zeros:f32[100] (%s)",
         names);
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
  return argument->is_array ||
         tool_scan_fail(scanner, at, "a view needs an array, but this is a scalar");
}

/* Scans a vector such as "f32x4(1, 2, 3, 4)". */
static bool scan_vector(tool_scanner *scanner, tool_value *value)
{
  const char *start = scanner->at;
  kjit_type lane;
  uint32_t lanes;
  size_t length = tool_name_length(scanner);
  char *name = tool_copy_text(scanner->at, length);
  bool ok = tool_scan_array_type(scanner, &lane, &lanes);
  if (ok && kjit_parse_type(scanner->context, name, &value->type) != KJIT_OK)
    ok = tool_scan_fail(scanner, start, "`%s` is not a type", name);
  free(name);
  if (!ok || !tool_expect(scanner, '(')) return false;
  value->is_vector = true;
  for (uint32_t i = 0; i < lanes; i++) {
    tool_number number;
    tool_skip_blanks(scanner);
    const char *at = scanner->at;
    if ((i && !tool_expect(scanner, ',')) || !scan_untyped(scanner, &number) ||
        !tool_convert(scanner, at, &number, lane))
      return false;
    tool_store(lane, value->bytes + i * tool_elements[lane].size_bytes, &number);
  }
  return tool_expect(scanner, ')');
}

static bool is_vector(tool_scanner *scanner)
{
  kjit_type lane;
  uint32_t lanes;
  size_t length = tool_name_length(scanner);
  return scanner->context && tool_split_vector(scanner->at, length, &lane, &lanes) &&
         scanner->at[length] == '(';
}

bool tool_scan_argument_value(tool_arguments *arguments, tool_scanner *scanner, const char *name,
                              tool_argument *argument)
{
  *argument = (tool_argument){ .is_array = true };
  if (tool_accept(scanner, '@')) {
    if (!scanner->array_name) scanner->array_name = name;
    return tool_scan_file(arguments, scanner, argument);
  }
  if (is_vector(scanner)) {
    argument->is_array = false;
    return scan_vector(scanner, &argument->value);
  }
  if (tool_at_end(scanner)) return expected_value(scanner);
  if (*scanner->at == '[') {
    if (!tool_scan_literal(scanner, &argument->array)) return false;
    keep_memory(arguments, argument->array.memory);
    return true;
  }
  if (tool_is_value(scanner) || tool_is_size(scanner)) {
    argument->is_array = false;
    return tool_scan_value(scanner, &argument->value);
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

kjit_arg tool_scalar_argument(const tool_value *value, void *bytes)
{
  const tool_number *number = &value->number;
  if (value->is_vector) return kjit_arg_value(value->type, value->bytes);
  bool is_literal = value->type == KJIT_ANY;
  if (is_literal && number->kind == TOOL_NUMBER_REAL) return kjit_arg_real(number->re);
  if (is_literal && number->kind == TOOL_NUMBER_SIGNED) return kjit_arg_integer(number->i);
  if (is_literal) return kjit_arg_unsigned_integer(number->u);
  tool_store(value->type, bytes, number);
  return kjit_arg_value(value->type, bytes);
}

static void keep_argument(tool_arguments *arguments, const tool_argument *argument)
{
  arguments->items = grow(arguments->items, arguments->count, sizeof *arguments->items);
  arguments->items[arguments->count++] = *argument;
}

bool tool_add_array(tool_arguments *arguments, const char *name, size_t length,
                    const tool_shape *shape, tool_error *error)
{
  tool_argument argument = { .is_array = true, .is_used = true };
  if (!tool_create_array(error, shape, &argument.array)) return false;
  argument.name = tool_copy_text(name, length);
  keep_memory(arguments, argument.array.memory);
  keep_argument(arguments, &argument);
  return true;
}

void tool_keep_array(tool_arguments *arguments, const char *name, const tool_array *array)
{
  tool_argument argument = { .is_array = true, .is_used = true, .array = *array };
  argument.name = tool_copy_text(name, strlen(name));
  keep_memory(arguments, array->memory);
  keep_argument(arguments, &argument);
}

/* Adds a sparse matrix to the arguments, for the text "@FILE.npz". The file was written by
 * scipy.sparse.save_npz. */
static bool add_sparse(tool_arguments *arguments, tool_scanner *scanner, const char *name)
{
  tool_argument argument = { .name = tool_copy_text(name, strlen(name)) };
  size_t own = arguments->count;
  argument.sparse = tool_allocate(sizeof *argument.sparse);
  keep_argument(arguments, &argument);
  argument.sparse->first = own + 1;
  return tool_read_sparse(arguments, scanner->error, scanner->at + 1, name, argument.sparse) ||
         tool_prefix(scanner->error, "%s %s", scanner->option, scanner->text);
}

bool tool_add_argument(tool_arguments *arguments, const char *option, const char *text,
                       tool_error *error)
{
  tool_scanner scanner = tool_scan(option, text, error);
  tool_argument argument = { 0 };
  scanner.context = arguments->context;
  scanner.size = arguments->size;
  char *name = NULL;
  if (!tool_scan_name(&scanner, "NAME=VALUE", &name)) return false;
  bool ok = true;
  if (tool_find_argument(arguments, name, strlen(name)))
    ok = tool_scan_fail(&scanner, text, "'%s' is given twice", name);
  ok = ok && tool_expect(&scanner, '=');
  if (ok && *scanner.at == '@' && tool_is_sparse_file(scanner.at + 1, name)) {
    ok = add_sparse(arguments, &scanner, name);
    free(name);
    return ok;
  }
  ok = ok && tool_scan_argument_value(arguments, &scanner, name, &argument) &&
       tool_expect_end(&scanner);
  if (!ok) {
    free(name);
    return false;
  }
  argument.name = name;
  keep_argument(arguments, &argument);
  return true;
}
