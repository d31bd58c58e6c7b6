/* Writes tables as text, and parses their files' names. */
#include <driver/cells.h>
#include <driver/table.h>
#include <string.h>

const char *tool_split_table(const char *text, const char **column)
{
  static const char *const endings[] = { ".csv", ".tsv" };
  *column = NULL;
  if (!strncmp(text, "-:", 2)) {
    *column = text + 2;
    return text + 1;
  }
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t own = strlen(endings[i]), length = strlen(text);
    for (const char *at = text + 1; *text && (at = strstr(at, endings[i])); at++) {
      if (at[own] != ':') continue;
      *column = at + own + 1;
      return at + own;
    }
    if (length > own && !strcmp(text + length - own, endings[i])) return text + length;
  }
  return NULL;
}

const char *tool_misfit_table(const tool_array *array)
{
  if (array->record.context || tool_elements[array->element].class_ == TOOL_COMPLEX)
    return "real numbers";
  return array->rank > 2 ? "at most two dimensions" : NULL;
}

/* Writes an empty cell for a null. If a null is alone in its line, it is quoted, because the reader
 * skips blank lines. */
static void put_element(FILE *file, const tool_array *array, uint64_t position, bool is_alone,
                        char separator)
{
  char text[TOOL_ELEMENT_TEXT];
  const void *element = tool_element_number(array, position);
  bool is_null = tool_is_null(array, element);
  if (!is_null && array->memory->has_texts) {
    tool_put_cell(file, tool_text_of(array, element), separator);
    return;
  }
  if (!is_null) tool_array_element_text(array, element, text);
  if (!is_null || is_alone) fputs(is_null ? "\"\"" : text, file);
}

bool tool_write_table(FILE *file, const tool_array *array, char separator)
{
  uint64_t count = tool_count(array),
           columns = array->rank == 2 && array->shape[1] ? (uint64_t)array->shape[1] : 1;
  for (uint64_t i = 0; i < count; i++) {
    put_element(file, array, i, columns == 1, separator);
    if (putc((i + 1) % columns ? separator : '\n', file) == EOF) return false;
  }
  return true;
}

bool tool_write_columns(FILE *file, const tool_named_array *arrays, size_t count, char separator)
{
  for (size_t k = 0; k < count; k++) {
    tool_put_cell(file, arrays[k].name, separator);
    putc(k + 1 < count ? separator : '\n', file);
  }
  uint64_t rows = tool_count(arrays[0].array);
  for (uint64_t i = 0; i < rows; i++)
    for (size_t k = 0; k < count; k++) {
      put_element(file, arrays[k].array, i, count == 1, separator);
      if (putc(k + 1 < count ? separator : '\n', file) == EOF) return false;
    }
  return true;
}
