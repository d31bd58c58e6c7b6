#include "output.h"

#include <driver/array_file.h>
#include <driver/print.h>
#include <driver/record.h>
#include <driver/progress.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const option_names[] = {
  [RUN_PRINT] = "--print", [RUN_SAVE] = "--save", [RUN_IMAGE] = "--image", [RUN_CHECK] = "--check"
};

/* ---- before the run ---- */

static bool scan_array(const tool_arguments *arguments, tool_scanner *scanner, tool_array *array)
{
  tool_argument argument;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_reference(arguments, scanner, &argument)) return false;
  if (!argument.is_array)
    return tool_scan_fail(scanner, at, "expected an array, but this is a scalar");
  *array = argument.array;
  return true;
}

/* Makes an array of one element with strides of 0, so that a single value is compared with every
 * element. */
static bool broadcast(tool_scanner *scanner, tool_arguments *owner, const tool_value *value,
                      const tool_array *like, tool_argument *expected)
{
  const tool_number *number = &value->number;
  kjit_type type = value->type;
  if (type == KJIT_ANY)
    type = number->kind == TOOL_NUMBER_REAL       ? KJIT_F64
           : number->kind == TOOL_NUMBER_UNSIGNED ? KJIT_U64
                                                  : KJIT_I64;
  char *text = tool_format("expected%zu=zeros:%s[]", owner->count, tool_elements[type].text);
  bool ok = tool_add_argument(owner, scanner->option, text, scanner->error);
  free(text);
  if (!ok) return false;
  *expected = owner->items[owner->count - 1];
  tool_store(type, expected->array.memory->data, number);
  expected->array.rank = like->rank;
  memcpy(expected->array.shape, like->shape, sizeof like->shape);
  memset(expected->array.strides, 0, sizeof expected->array.strides);
  return true;
}

/* Gives a one-dimensional array of numbers the shape of the array it is compared with, because a
 * .csv file cannot distinguish a column from a one-dimensional array or a single number. */
static void take_shape_of_column(const tool_array *like, tool_array *column)
{
  bool is_column = like->rank == 0 || (like->rank == 2 && like->shape[1] == 1);
  if (column->rank != 1 || !is_column || tool_count(like) != tool_count(column)) return;
  column->rank = like->rank;
  memcpy(column->shape, like->shape, sizeof like->shape);
  column->strides[0] = column->strides[1] = 1;
}

/* Scans a table with the array's element type, because decimal digits denote different numbers in
 * f32 and f64. */
static bool scan_table(tool_scanner *scanner, run_outputs *outputs, run_output *output)
{
  const tool_element *element = &tool_elements[output->array.element];
  bool is_float = element->class_ == TOOL_FLOAT && !output->array.record.context;
  char *text =
    tool_format("%s%s%s", scanner->at, is_float ? ":as=" : "", is_float ? element->text : "");
  tool_scanner whole = tool_scan(scanner->option, text, scanner->error);
  bool ok = tool_scan_file(&outputs->expected, &whole, &output->expected);
  free(text);
  scanner->at += strlen(scanner->at);
  if (ok) take_shape_of_column(&output->array, &output->expected.array);
  return ok;
}

static bool scan_expected(const tool_arguments *arguments, tool_scanner *scanner,
                          run_outputs *outputs, run_output *output)
{
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (output->array.record.context) scanner->record = &output->array.record;
  scanner->array_name = output->label;
  if (tool_is_array_path(at)) {
    scanner->at += *at == '@';
    return tool_is_table_path(at) ? scan_table(scanner, outputs, output)
                                  : tool_scan_file(&outputs->expected, scanner, &output->expected);
  }
  size_t length = *at == '@' || tool_is_value(scanner) ? 0 : tool_name_length(scanner);
  bool is_reference = length && tool_find_argument(arguments, at, length) && at[length] != ':';
  if (!is_reference && *at != '@' && !tool_is_value(scanner) && strchr("./", at[length]) &&
      at[length])
    return tool_scan_fail(
      scanner, at, "'%s' is neither an --arg nor a file whose name ends in " TOOL_ARRAY_ENDINGS,
      at);
  if (is_reference
        ? !tool_scan_reference(arguments, scanner, &output->expected)
        : !tool_scan_argument_value(&outputs->expected, scanner, "expected", &output->expected))
    return false;
  if (output->expected.is_array) return true;
  if (output->expected.value.is_vector)
    return tool_scan_fail(scanner, at,
                          "expected a number, a file or an array, but this is a vector");
  if (output->array.record.context)
    return tool_scan_fail(
      scanner, at,
      "an array of structs can only be compared with structs, or by one field: `b.mass=1`");
  tool_value value = output->expected.value;
  return broadcast(scanner, &outputs->expected, &value, &output->array, &output->expected);
}

static bool check_shapes(tool_scanner *scanner, const run_output *output)
{
  if (output->array.memory->has_texts || output->expected.array.memory->has_texts)
    return tool_scan_fail(scanner, scanner->text,
                          "'%s' has texts, but --check compares only numbers", output->label);
  if (output->array.memory->date.kind == TOOL_TIMESTAMP ||
      output->expected.array.memory->date.kind == TOOL_TIMESTAMP)
    return tool_scan_fail(scanner, scanner->text,
                          "'%s' has dates, but --check compares only numbers", output->label);
  if (tool_same_shape(&output->array, &output->expected.array)) return true;
  char *got = tool_shape_text(&output->array), *expected = tool_shape_text(&output->expected.array);
  tool_scan_fail(scanner, scanner->text,
                 "the array has the shape %s, but the expected array has the shape %s", got,
                 expected);
  free(got);
  free(expected);
  return false;
}

static bool prepare_output(tool_error *error, const tool_arguments *arguments,
                           const run_output_text *text, run_outputs *outputs, run_output *output)
{
  tool_scanner scanner = tool_scan(option_names[text->kind], text->text, error);
  scanner.context = arguments->context; /* the struct type of `--check b=@b.npy:as=Body` */
  output->kind = text->kind;
  if (!scan_array(arguments, &scanner, &output->array)) return false;
  output->label = tool_copy_text(text->text, (size_t)(scanner.at - text->text));
  if (text->kind == RUN_PRINT) return tool_expect_end(&scanner);
  if (!tool_expect(&scanner, '=')) return false;
  if (text->kind == RUN_CHECK)
    return scan_expected(arguments, &scanner, outputs, output) && tool_expect_end(&scanner) &&
           check_shapes(&scanner, output);
  output->path = scanner.at;
  if (!*output->path) return tool_expected(&scanner, "a path");
  return text->kind == RUN_IMAGE ? tool_check_image(error, output->path, &output->array)
                                 : tool_check_save(error, "--save", output->path, &output->array);
}

static bool parse_range(tool_error *error, const char *text, tool_image_range *range)
{
  char *middle, *end;
  if (!text) return true;
  range->is_given = true;
  range->low = strtod(text, &middle);
  range->high = *middle == ':' ? strtod(middle + 1, &end) : 0;
  if (middle != text && *middle == ':' && end != middle + 1 && !*end && range->low < range->high &&
      isfinite(range->low) && isfinite(range->high))
    return true;
  return tool_fail(error, TOOL_EXIT_USAGE,
                   "--image-range: expected LOW:HIGH with LOW less than HIGH, not '%s'", text);
}

/* Checks that the arrays in one file have different names. */
static bool check_names(tool_error *error, const run_outputs *outputs)
{
  for (size_t i = 0; i < outputs->count; i++)
    for (size_t k = 0; k < i; k++) {
      const run_output *a = &outputs->items[k], *b = &outputs->items[i];
      if (a->kind != RUN_SAVE || b->kind != RUN_SAVE || !tool_is_same_archive(a->path, b->path))
        continue;
      if (!strcmp(tool_saved_name(a->path, a->label), tool_saved_name(b->path, b->label)))
        return tool_fail(error, TOOL_EXIT_USAGE,
                         "--save: %s: two arrays have the name '%s'; FILE:NAME sets another name",
                         b->path, tool_saved_name(b->path, b->label));
      if (!tool_check_together(error, b->path, &a->array, &b->array)) return false;
    }
  return true;
}

bool run_prepare_outputs(tool_error *error, const run_options *options,
                         const tool_arguments *arguments, run_outputs *outputs)
{
  outputs->tolerance = (tool_tolerance){ options->rtol, options->atol };
  outputs->count = options->output_count;
  outputs->items = tool_allocate(outputs->count * sizeof *outputs->items);
  if (!parse_range(error, options->range, &outputs->range)) return false;
  for (size_t i = 0; i < outputs->count; i++)
    if (!prepare_output(error, arguments, &options->outputs[i], outputs, &outputs->items[i]))
      return false;
  return check_names(error, outputs);
}

/* ---- after the run ---- */

/* Formats an index. rank is the number of dimensions to show. */
static char *index_text(const tool_array *array, uint64_t position, uint32_t rank)
{
  int64_t index[TOOL_MAX_RANK];
  char *text = tool_copy_text("[", 1);
  tool_index_of(array, position, index);
  for (uint32_t d = 0; d < rank; d++) {
    char *longer = tool_format("%s%s%lld", text, d ? ", " : "", (long long)index[d]);
    free(text);
    text = longer;
  }
  char *closed = tool_format("%s]", text);
  free(text);
  return closed;
}

/* Returns a number's position in an array of structs: the struct index, the field, and the index
 * within the field. */
static char *field_text(const tool_array *array, const tool_leaves *leaves, uint64_t position)
{
  uint64_t numbers = tool_count_numbers(leaves), within;
  const tool_leaf *leaf = tool_find_number(leaves, position % numbers, &within);
  char *index = index_text(array, position / numbers * array->record.size_bytes, array->rank - 1);
  char *text = leaf->count > 1
                 ? tool_format("%s.%s[%llu]", index, leaf->path, (unsigned long long)within)
                 : tool_format("%s.%s", index, leaf->path);
  free(index);
  return text;
}

static void number_text(const tool_array *array, const tool_leaves *leaves, uint64_t position,
                        char *buffer)
{
  if (!leaves->count) {
    tool_array_element_text(array, tool_element_number(array, position), buffer);
    return;
  }
  uint64_t numbers = tool_count_numbers(leaves), within;
  const tool_leaf *leaf = tool_find_number(leaves, position % numbers, &within);
  const char *element = tool_element_number(array, position / numbers * array->record.size_bytes);
  tool_element_text(leaf->element,
                    element + leaf->offset_bytes + within * tool_elements[leaf->element].size_bytes,
                    buffer);
}

static void print_difference(const run_output *output, const tool_comparison *c,
                             const tool_tolerance *tolerance)
{
  const tool_array *array = &output->array;
  bool is_record = array->record.context != NULL;
  tool_leaves leaves = is_record ? tool_list_leaves(&array->record) : (tool_leaves){ 0 };
  char got[TOOL_ELEMENT_TEXT], expected[TOOL_ELEMENT_TEXT];
  char *at =
    is_record ? field_text(array, &leaves, c->first) : index_text(array, c->first, array->rank);
  char *largest = is_record ? field_text(array, &leaves, c->largest_at)
                            : index_text(array, c->largest_at, array->rank);
  number_text(array, &leaves, c->first, got);
  number_text(&output->expected.array, &leaves, c->first, expected);
  printf("check %s: FAILED: %llu of %llu %s differ; the first is %s: got %s, expected %s; largest "
         "difference %.3g (relative %.3g) at %s; rtol %g, atol %g\n",
         output->label, (unsigned long long)c->different, (unsigned long long)c->count,
         is_record ? "numbers" : "elements", at, got, expected, c->largest_absolute, c->relative,
         largest, tolerance->relative, tolerance->absolute);
  free(at);
  free(largest);
  tool_destroy_leaves(&leaves);
}

static bool check(const run_output *output, const tool_tolerance *tolerance)
{
  tool_progress("checking", 0);
  tool_comparison c = tool_compare(&output->array, &output->expected.array, tolerance);
  tool_stop_progress();
  const char *what = output->array.record.context ? "numbers" : "elements";
  if (c.different) print_difference(output, &c, tolerance);
  else if (c.largest_absolute > 0)
    printf("check %s: ok: %llu %s, largest difference %.3g (relative %.3g)\n", output->label,
           (unsigned long long)c.count, what, c.largest_absolute, c.relative);
  else
    printf("check %s: ok: %llu %s, all equal\n", output->label, (unsigned long long)c.count, what);
  return !c.different;
}

/* Saves all arrays of a file if `output` is the first array of this file. For a later array of the
 * file, does nothing. Called for each array to save. */
static bool save(tool_error *error, const run_outputs *outputs, const run_output *output)
{
  size_t count = 0;
  const run_output *end = outputs->items + outputs->count;
  tool_named_array *arrays = tool_allocate(outputs->count * sizeof *arrays);
  arrays[count++] =
    (tool_named_array){ tool_saved_name(output->path, output->label), &output->array };
  for (const run_output *other = outputs->items; other < end; other++) {
    if (other->kind != RUN_SAVE || other == output ||
        !tool_is_same_archive(output->path, other->path))
      continue;
    if (other < output) {
      free(arrays);
      return true;
    }
    arrays[count++] =
      (tool_named_array){ tool_saved_name(other->path, other->label), &other->array };
  }
  bool ok = tool_save_arrays(error, output->path, arrays, count);
  free(arrays);
  return ok;
}

static bool write_file(tool_error *error, const run_outputs *outputs, const run_output *output)
{
  tool_progress("writing files", 0);
  bool ok = output->kind == RUN_SAVE
              ? save(error, outputs, output)
              : tool_write_image(error, output->path, &output->array, &outputs->range);
  tool_stop_progress();
  return ok;
}

/* Returns the stream for --print. It is standard error if an array or a table goes to standard
 * output, because the reader of standard output then expects nothing else. */
static FILE *choose_print_stream(const run_outputs *outputs)
{
  for (size_t i = 0; i < outputs->count; i++) {
    const run_output *output = &outputs->items[i];
    bool is_file = output->kind == RUN_SAVE || output->kind == RUN_IMAGE;
    if (is_file && output->path[0] == '-' && (!output->path[1] || output->path[1] == ':'))
      return stderr;
  }
  return stdout;
}

bool run_write_outputs(tool_error *error, const run_outputs *outputs, size_t *failed_checks)
{
  FILE *print_stream = choose_print_stream(outputs);
  *failed_checks = 0;
  for (size_t i = 0; i < outputs->count; i++) {
    const run_output *output = &outputs->items[i];
    switch (output->kind) {
    case RUN_PRINT: tool_print_array(print_stream, output->label, &output->array); break;
    case RUN_CHECK: *failed_checks += !check(output, &outputs->tolerance); break;
    case RUN_SAVE:
    case RUN_IMAGE:
      if (!write_file(error, outputs, output)) return false;
      break;
    }
  }
  return true;
}

void run_destroy_outputs(run_outputs *outputs)
{
  for (size_t i = 0; i < outputs->count; i++) free(outputs->items[i].label);
  free(outputs->items);
  tool_destroy_arguments(&outputs->expected);
}
