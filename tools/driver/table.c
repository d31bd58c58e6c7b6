#include <driver/table.h>

#include <ctype.h>
#include <driver/cells.h>
#include <driver/similar.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one cell ---- */

typedef enum cell_kind { CELL_NUMBER, CELL_NULL, CELL_TEXT, CELL_LARGE } cell_kind;

static bool is_word(const char *text, size_t length, const char *word)
{
  return strlen(word) == length && !memcmp(text, word, length);
}

/* Returns whether the text is one that pandas or R write for a missing value. */
static bool is_null_word(const char *text, size_t length)
{
  static const char *const words[] = { "NA", "N/A", "n/a", "<NA>", "#N/A", "NULL", "null", "None" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (is_word(text, length, words[i])) return true;
  return false;
}

/* Parses `true`, `True`, `TRUE` and the same for false. Returns false for other texts. */
static bool parse_bool(const char *text, size_t length, tool_number *number)
{
  static const char *const words[] = { "false", "False", "FALSE", "true", "True", "TRUE" };
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (!is_word(text, length, words[i])) continue;
    *number = (tool_number){ .kind = TOOL_NUMBER_BOOL, .i = i >= 3 };
    return true;
  }
  return false;
}

/* Parses an integer of 64 bits. Returns false for another text, and for an integer that is too
 * large, which sets *is_large. */
static bool parse_integer(const char *text, size_t length, tool_number *number, bool *is_large)
{
  bool is_negative = *text == '-';
  size_t i = is_negative || *text == '+';
  uint64_t magnitude = 0;
  *is_large = false;
  if (i == length) return false;
  for (; i < length; i++) {
    if (!isdigit((unsigned char)text[i])) return false;
    *is_large = *is_large || __builtin_mul_overflow(magnitude, 10, &magnitude) ||
                __builtin_add_overflow(magnitude, (uint64_t)(text[i] - '0'), &magnitude);
  }
  if (is_negative && magnitude > (uint64_t)INT64_MAX + 1) *is_large = true;
  if (*is_large) return false;
  *number = is_negative             ? tool_make_integer((int64_t)(0 - magnitude))
            : magnitude > INT64_MAX ? (tool_number){ .kind = TOOL_NUMBER_UNSIGNED, .u = magnitude }
                                    : tool_make_integer((int64_t)magnitude);
  return true;
}

static cell_kind parse_real(const char *text, size_t length, tool_number *number)
{
  enum { MOST = 400 };
  char copy[MOST + 1], *end;
  if (length > MOST || memchr(text, 'x', length) || memchr(text, 'X', length)) return CELL_TEXT;
  memcpy(copy, text, length);
  copy[length] = 0;
  const char *start = copy + (*copy == '-' || *copy == '+');
  if (!isdigit((unsigned char)*start) && !strchr(".iInN", *start)) return CELL_TEXT;
  errno = 0;
  *number = tool_make_real(strtod(copy, &end));
  if (*end || end == copy) return CELL_TEXT;
  return errno == ERANGE && isinf(number->re) ? CELL_LARGE : CELL_NUMBER;
}

static cell_kind parse_cell(const tool_cells *c, tool_number *number)
{
  const char *text = c->text, *end = text + c->length;
  bool is_large;
  while (text < end && (*text == ' ' || *text == '\t')) text++;
  while (end > text && (end[-1] == ' ' || end[-1] == '\t')) end--;
  size_t length = (size_t)(end - text);
  if (!length) return CELL_NULL;
  if (parse_integer(text, length, number, &is_large)) return CELL_NUMBER;
  if (is_large) {
    parse_real(text, length, number); /* converts the integer for a floating-point type */
    return CELL_LARGE;
  }
  if (parse_bool(text, length, number)) return CELL_NUMBER;
  if (is_null_word(text, length)) return CELL_NULL;
  return parse_real(text, length, number);
}

/* ---- the values ---- */

/* The kind of the numbers so far. Each kind includes the values of the kinds before it, except that
 * unsigned integers exclude negative integers. */
typedef enum value_kind { OF_NOTHING, OF_BOOL, OF_SIGNED, OF_UNSIGNED, OF_REAL } value_kind;
static const kjit_type kind_types[] = { [OF_NOTHING] = KJIT_F64,
                                        [OF_BOOL] = KJIT_BOOL,
                                        [OF_SIGNED] = KJIT_I64,
                                        [OF_UNSIGNED] = KJIT_U64,
                                        [OF_REAL] = KJIT_F64 };

typedef union value {
  int64_t i;
  uint64_t u;
  double re;
} value;

typedef struct table {
  tool_cells cells;
  const tool_table_request *request;
  char **names; /* names in the first row; owned */
  size_t columns, name_count;
  size_t chosen; /* index of the requested column */
  uint64_t first_line;
  value *values;  /* values of all rows; owned */
  uint8_t *nulls; /* 1 for each empty value; NULL until the first empty value */
  size_t count, capacity, null_count;
  value_kind kind;
  bool has_negative;
  bool has_texts; /* the values are indices into `texts` */
  tool_dictionary texts;
  uint64_t large_line; /* line of the first integer that f64 cannot represent exactly, or 0 */
} table;

static bool make_room(table *t)
{
  if (t->count < t->capacity) return true;
  size_t capacity = t->capacity ? 2 * t->capacity : 1024;
  value *values = realloc(t->values, capacity * sizeof *values);
  if (values) t->values = values;
  uint8_t *nulls = !values || !t->nulls ? t->nulls : realloc(t->nulls, capacity);
  if (!values || (t->nulls && !nulls))
    return tool_fail(t->cells.error, TOOL_EXIT_DEVICE, "%s: no memory for %zu numbers",
                     t->cells.path, capacity);
  if (nulls) memset(nulls + t->capacity, 0, capacity - t->capacity);
  t->nulls = nulls;
  t->capacity = capacity;
  return true;
}

static bool append_null(table *t)
{
  if (!make_room(t)) return false;
  if (!t->nulls) t->nulls = calloc(t->capacity, 1);
  if (!t->nulls)
    return tool_fail(t->cells.error, TOOL_EXIT_DEVICE, "%s: no memory for %zu flags", t->cells.path,
                     t->capacity);
  t->nulls[t->count] = 1;
  t->values[t->count++] = (value){ 0 };
  t->null_count++;
  return true;
}

static double as_real(value_kind kind, value v)
{
  return kind == OF_REAL ? v.re : kind == OF_UNSIGNED ? (double)v.u : (double)v.i;
}

static void widen(table *t, value_kind kind)
{
  if (kind == OF_REAL && t->kind != OF_REAL)
    for (size_t i = 0; i < t->count; i++) t->values[i].re = as_real(t->kind, t->values[i]);
  t->kind = kind;
}

static value_kind kind_of(const tool_number *number)
{
  switch (number->kind) {
  case TOOL_NUMBER_BOOL: return OF_BOOL;
  case TOOL_NUMBER_SIGNED: return OF_SIGNED;
  case TOOL_NUMBER_UNSIGNED: return OF_UNSIGNED;
  default: return OF_REAL;
  }
}

static const char *name_of(const table *t)
{
  return t->cells.column < t->name_count ? t->names[t->cells.column] : NULL;
}

/* Returns whether f64 can represent the integer exactly. */
static bool fits_double(const tool_number *number)
{
  uint64_t limit = (uint64_t)1 << 53;
  if (number->kind == TOOL_NUMBER_UNSIGNED) return false;
  return (number->i < 0 ? 0 - (uint64_t)number->i : (uint64_t)number->i) <= limit;
}

static bool append_number(table *t, const tool_number *number)
{
  if (!make_room(t)) return false;
  value_kind kind = kind_of(number);
  bool is_integer = kind == OF_SIGNED || kind == OF_UNSIGNED;
  t->has_negative = t->has_negative || (kind == OF_SIGNED && number->i < 0);
  if (is_integer && !t->large_line && !fits_double(number)) t->large_line = t->cells.line;
  if (kind > t->kind) widen(t, kind);
  if (t->kind == OF_UNSIGNED && t->has_negative)
    return tool_fail_cell(&t->cells, name_of(t),
                          "the column has negative numbers and numbers of 2^63 and more, which no "
                          "integer type holds; `:as=f64` rounds them");
  value *to = &t->values[t->count++];
  if (t->kind == OF_REAL) to->re = tool_number_real(number);
  else if (kind == OF_UNSIGNED) to->u = number->u;
  else to->i = number->i;
  return true;
}

/* ---- cells as numbers ---- */

static bool fail_text(const table *t)
{
  char *shown = tool_shown_text(t->cells.text, t->cells.length);
  bool is_named = t->request->column || !t->name_count;
  tool_fail_cell(&t->cells, name_of(t), "expected a number, not '%s'%s%s", shown,
                 is_named ? "" : "; `:NAME` reads one column, also of texts, as in @FILE.csv:",
                 is_named ? "" : t->names[0]);
  free(shown);
  return false;
}

static bool fail_large(const table *t)
{
  char *shown = tool_shown_text(t->cells.text, t->cells.length);
  bool is_real = false;
  for (size_t i = 0; i < t->cells.length; i++) is_real |= strchr(".eE", t->cells.text[i]) != NULL;
  tool_fail_cell(&t->cells, name_of(t),
                 is_real ? "the number %s is too large for f64"
                         : "the integer %s needs more than 64 bits; `:as=f64` rounds it",
                 shown);
  free(shown);
  return false;
}

static bool is_float(kjit_type element)
{
  return element != KJIT_ANY && tool_elements[element].class_ >= TOOL_FLOAT;
}

/* Stores a number, which must fit the requested type. The message names the cell. */
static bool take_number(table *t, tool_number number)
{
  kjit_type element = t->request->element;
  if (element == KJIT_ANY) return append_number(t, &number);
  const char *misfit = tool_misfit(element, &number);
  if (misfit)
    return tool_fail_cell(&t->cells, name_of(t), "the value does not fit %s: %s",
                          tool_elements[element].text, misfit);
  if (is_float(element)) number = tool_make_real(tool_number_real(&number));
  return append_number(t, &number);
}

static bool take_text(table *t)
{
  if (!make_room(t)) return false;
  t->has_texts = true;
  const size_t index = tool_add_text(&t->texts, t->cells.text, t->cells.length);
  if (index >= INT32_MAX)
    return tool_fail_cell(&t->cells, name_of(t), "the column has more than 2^31 different texts");
  t->values[t->count++].i = (int64_t)index;
  return true;
}

/* Returns whether the column becomes a column of texts because its first value, which is in this
 * cell, is a text. */
static bool begins_texts(const table *t, cell_kind kind)
{
  return kind == CELL_TEXT && t->request->column && t->request->element == KJIT_ANY &&
         t->count == t->null_count;
}

static bool take_cell(table *t)
{
  tool_number number;
  if (t->request->column && t->cells.column != t->chosen) return true;
  cell_kind kind = parse_cell(&t->cells, &number);
  if (kind != CELL_NULL && (t->has_texts || begins_texts(t, kind))) return take_text(t);
  switch (kind) {
  case CELL_NUMBER: return take_number(t, number);
  case CELL_NULL: return append_null(t);
  case CELL_LARGE:
    if (!is_float(t->request->element) || isinf(number.re)) return fail_large(t);
    return take_number(t, number);
  default: return fail_text(t);
  }
}

/* ---- names ---- */

static bool append_name(table *t)
{
  size_t count = t->name_count;
  if ((count & (count - 1)) == 0) {
    char **names = realloc(t->names, (count ? 2 * count : 1) * sizeof *names);
    if (!names)
      return tool_fail(t->cells.error, TOOL_EXIT_DEVICE, "%s: no memory for the names",
                       t->cells.path);
    t->names = names;
  }
  t->names[t->name_count++] = tool_copy_text(t->cells.text, t->cells.length);
  return true;
}

/* Reads the cells in the first row as names. *is_head tells whether the row contains a text and no
 * number. */
static bool read_names(table *t, bool *is_head)
{
  bool has_number = false, has_text = false;
  tool_number ignored;
  do {
    if (!tool_next_cell(&t->cells)) return t->cells.error->text == NULL;
    cell_kind kind = parse_cell(&t->cells, &ignored);
    has_number = has_number || kind == CELL_NUMBER || kind == CELL_LARGE;
    has_text = has_text || kind == CELL_TEXT;
    if (!append_name(t)) return false;
  } while (!t->cells.is_last);
  *is_head = has_text && !has_number;
  t->columns = t->name_count;
  t->first_line = t->cells.line;
  return true;
}

static bool fail_column(const table *t)
{
  enum { SHOWN = 12 };
  const char *column = t->request->column;
  tool_similar similar = { .name = column, .length = strlen(column) };
  for (size_t i = 0; i < t->name_count; i++) tool_offer_name(&similar, t->names[i]);
  char *meant = tool_similar_text(&similar), *list = tool_copy_text("", 0);
  for (size_t i = 0; !*meant && i < t->name_count && i < SHOWN; i++) {
    char *shown = tool_shown_text(t->names[i], strlen(t->names[i])),
         *longer = tool_format("%s%s%s", list, i ? ", " : "; the columns are ", shown);
    free(shown);
    free(list);
    list = longer;
  }
  tool_fail(t->cells.error, TOOL_EXIT_FILE, "%s: there is no column '%s'%s%s%s", t->cells.path,
            column, meant, list, !*meant && t->name_count > SHOWN ? " ..." : "");
  free(meant);
  free(list);
  return false;
}

static bool choose_column(table *t)
{
  size_t found = 0;
  for (size_t i = 0; i < t->name_count; i++) {
    if (strcmp(t->names[i], t->request->column) != 0) continue;
    t->chosen = i;
    found++;
  }
  if (found == 1) return true;
  if (!found) return fail_column(t);
  return tool_fail(t->cells.error, TOOL_EXIT_FILE, "%s: %zu columns have the name '%s'",
                   t->cells.path, found, t->request->column);
}

/* ---- rows ---- */

static bool check_row(const table *t)
{
  size_t columns = t->cells.column + 1;
  if (columns == t->columns) return true;
  return tool_fail(t->cells.error, TOOL_EXIT_FILE,
                   "%s: line %llu: expected %zu cells, as in line %llu, not %zu", t->cells.path,
                   (unsigned long long)t->cells.line, t->columns, (unsigned long long)t->first_line,
                   columns);
}

static bool read_rows(table *t)
{
  bool is_head = false;
  tool_cells start = t->cells;
  if (!read_names(t, &is_head)) return false;
  if (t->request->column) {
    if (!choose_column(t)) return false;
  } else if (!is_head) {
    /* the first row contains numbers, so the cursor moves back to its start and the row is read as
     * values */
    char *buffer = t->cells.buffer;
    size_t capacity = t->cells.capacity;
    t->cells = start;
    t->cells.buffer = buffer;
    t->cells.capacity = capacity;
    for (size_t i = 0; i < t->name_count; i++) free(t->names[i]);
    t->name_count = 0;
  }
  while (tool_next_cell(&t->cells)) {
    if (!take_cell(t) || (t->cells.is_last && !check_row(t))) return false;
  }
  if (t->cells.error->text) return false;
  bool has_rows = t->request->column || t->count || !t->columns;
  return has_rows ||
         tool_fail(
           t->cells.error, TOOL_EXIT_FILE,
           "%s: line %llu: expected numbers, but the line has texts, and no row of numbers follows",
           t->cells.path, (unsigned long long)t->first_line);
}

/* ---- the array ---- */

/* Returns the number in cell i. An empty cell is NaN, or 0 if the type is not a float. */
static tool_number number_at(const table *t, size_t i, kjit_type element)
{
  if (t->nulls && t->nulls[i])
    return tool_elements[element].class_ < TOOL_FLOAT ? tool_make_integer(0) : tool_make_real(NAN);
  value v = t->values[i];
  if (t->kind == OF_REAL) return tool_make_real(v.re);
  if (t->kind == OF_UNSIGNED && v.u > INT64_MAX)
    return (tool_number){ .kind = TOOL_NUMBER_UNSIGNED, .u = v.u };
  return tool_make_integer(v.i);
}

/* Returns whether all texts are dates, and the unit for all of them. */
static bool find_date_unit(const table *t, tool_date_unit *unit)
{
  tool_date_unit own;
  *unit = TOOL_DATE_DAYS;
  for (size_t i = 0; i < t->texts.count; i++) {
    if (!tool_find_date_unit(t->texts.items[i], &own)) return false;
    if (own > *unit) *unit = own;
  }
  return t->texts.count > 0;
}

/* Replaces the indices of texts by their dates' counts, if all texts are dates. */
static bool take_dates(table *t, tool_date *date)
{
  tool_date_unit unit;
  *date = (tool_date){ 0 };
  if (!t->has_texts || t->request->keeps_texts || !find_date_unit(t, &unit)) return true;
  int64_t *counts = malloc(t->texts.count * sizeof *counts);
  bool ok =
    counts != NULL || tool_fail(t->cells.error, TOOL_EXIT_DEVICE, "%s: no memory for %zu dates",
                                t->cells.path, t->texts.count);
  for (size_t i = 0; ok && i < t->texts.count; i++)
    ok = tool_parse_date(t->texts.items[i], unit, &counts[i]) ||
         tool_fail(t->cells.error, TOOL_EXIT_FILE,
                   "%s: column '%s': the date %s does not fit into 64 bits in the unit of the "
                   "column, %s; `:as=text` keeps the texts",
                   t->cells.path, t->request->column, t->texts.items[i],
                   tool_date_name(&(tool_date){ TOOL_DURATION, unit }));
  for (size_t i = 0; ok && i < t->count; i++)
    if (!t->nulls || !t->nulls[i]) t->values[i].i = counts[t->values[i].i];
  free(counts);
  if (!ok) return false;
  *date = (tool_date){ TOOL_TIMESTAMP, unit };
  t->has_texts = false;
  t->kind = OF_SIGNED;
  return true;
}

static bool choose_element(const table *t, const tool_date *date, kjit_type *element)
{
  if (date->kind) {
    /* 32-bit counts of days can be converted to seconds exactly */
    *element = date->unit == TOOL_DATE_DAYS ? KJIT_I32 : KJIT_I64;
    return true;
  }
  *element = t->has_texts ? KJIT_I32 : t->request->element;
  if (*element != KJIT_ANY) return true;
  *element = t->null_count ? KJIT_F64 : kind_types[t->kind];
  bool is_rounded = t->null_count && t->kind != OF_REAL && t->large_line;
  if (!is_rounded) return true;
  return tool_fail(t->cells.error, TOOL_EXIT_FILE,
                   "%s: line %llu: the column has empty cells, so its type is f64, which cannot "
                   "hold this integer; `:as=i64` keeps integers, `:as=f64` rounds them",
                   t->cells.path, (unsigned long long)t->large_line);
}

/* Sorts the dictionary, adapts the indices to the new order, and moves the dictionary to the
 * array's memory. */
static void give_texts(table *t, tool_memory *memory)
{
  size_t *ranks = tool_sort_texts(&t->texts);
  for (size_t i = 0; i < t->count; i++) t->values[i].i = (int64_t)ranks[t->values[i].i];
  free(ranks);
  memory->has_texts = true;
  memory->texts = t->texts;
  t->texts = (tool_dictionary){ 0 };
}

static bool make_array(table *t, tool_array *array)
{
  tool_shape shape = { 0 };
  size_t columns = t->request->column || !t->columns ? 1 : t->columns;
  tool_date date;
  if (!take_dates(t, &date) || !choose_element(t, &date, &shape.element)) return false;
  shape.rank = columns > 1 ? 2 : 1;
  shape.extents[0] = (int64_t)(t->count / columns);
  shape.extents[1] = (int64_t)columns;
  if (!tool_create_array(t->cells.error, &shape, array)) return false;
  if (t->null_count && !tool_add_validity(t->cells.error, array)) return false;
  if (t->has_texts) give_texts(t, array->memory);
  array->memory->date = date;
  for (size_t i = 0; i < t->count; i++) {
    tool_number number = number_at(t, i, shape.element);
    tool_store(shape.element, tool_element_number(array, i), &number);
    if (t->nulls && t->nulls[i]) tool_set_null(array->memory, i);
  }
  return true;
}

bool tool_read_table(tool_error *error, const char *path, const char *text, size_t size,
                     const tool_table_request *request, tool_array *array)
{
  table t = { .cells = tool_open_cells(error, path, text, size), .request = request };
  bool ok = read_rows(&t) && make_array(&t, array);
  for (size_t i = 0; i < t.name_count; i++) free(t.names[i]);
  free(t.names);
  free(t.values);
  free(t.nulls);
  tool_free_texts(&t.texts);
  tool_close_cells(&t.cells);
  return ok;
}
