/* formulas.c: computes a formula over the columns of a CSV file.
 *
 *   formulas trips.csv 'fare / distance + fillna(tip, 0)'
 *
 * The first line of the file has the names of the columns. All cells are numbers, and an empty cell
 * is null. The program computes 1000 rows at a time and prints a line for each row. */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COLUMNS = 64, CHUNK = 1000, MOST_LINE = 4096 };

typedef struct table {
  FILE *file;
  size_t column_count;
  char names[MOST_LINE];
  kjit_formula_column columns[MOST_COLUMNS];
  double values[MOST_COLUMNS][CHUNK];
  uint8_t validity[MOST_COLUMNS][CHUNK / 8 + 1];
} table;

static table t;

/* Returns the cell at *at, ends it with a 0, and moves *at to the next one. */
static char *take_cell(char **at)
{
  char *cell = *at, *end = cell + strcspn(cell, ",\r\n");
  *at = *end == ',' ? end + 1 : NULL;
  *end = 0;
  return cell;
}

static int read_names(void)
{
  char *at = t.names;
  if (!fgets(t.names, sizeof t.names, t.file)) return 0;
  while (at && t.column_count < MOST_COLUMNS)
    t.columns[t.column_count++] =
      (kjit_formula_column){ take_cell(&at), KJIT_F64, KJIT_COLUMN_NULLABLE, 0 };
  return at == NULL;
}

/* Returns the number of rows. */
static int64_t read_chunk(void)
{
  char line[MOST_LINE];
  int64_t row = 0;
  memset(t.validity, 0, sizeof t.validity);
  for (; row < CHUNK && fgets(line, sizeof line, t.file); row++) {
    char *at = line;
    for (size_t c = 0; c < t.column_count && at; c++) {
      const char *cell = take_cell(&at);
      t.values[c][row] = strtod(cell, NULL);
      if (*cell) t.validity[c][row / 8] |= (uint8_t)(1 << row % 8);
    }
  }
  return row;
}

static void print_chunk(const kjit_formula_info *info, const void *values, const uint8_t *validity,
                        int64_t rows)
{
  for (int64_t i = 0; i < rows; i++) {
    int can_be_null = (info->flags & KJIT_COLUMN_NULLABLE) != 0;
    if (can_be_null && !(validity[i / 8] >> i % 8 & 1)) printf("\n");
    else if (info->type == KJIT_BOOL) printf("%d\n", ((const uint8_t *)values)[i]);
    else printf("%.17g\n", ((const double *)values)[i]);
  }
}

static kjit_status compute(const kjit_formula *formula)
{
  static double values[CHUNK];
  static uint8_t validity[CHUNK / 8 + 1];
  const kjit_column result = { values, validity, 0 };
  kjit_column columns[MOST_COLUMNS];
  kjit_formula_info info = { .size_bytes = sizeof info };
  kjit_status status = kjit_get_formula_info(formula, &info);
  if (status == KJIT_OK && info.type != KJIT_F64 && info.type != KJIT_BOOL) {
    fprintf(stderr, "the result is neither a float nor a bool; use float64(...)\n");
    return KJIT_ERROR_TYPE;
  }
  for (size_t c = 0; c < t.column_count; c++)
    columns[c] = (kjit_column){ t.values[c], t.validity[c], 0 };
  for (int64_t rows; status == KJIT_OK && (rows = read_chunk()) > 0;) {
    status = kjit_run_formula(formula, columns, &result, rows, NULL);
    if (status == KJIT_OK) print_chunk(&info, values, validity, rows);
  }
  return status;
}

int main(int argc, char **argv)
{
  kjit_context *context = NULL;
  kjit_formula *formula = NULL;
  if (argc != 3 || !(t.file = fopen(argv[1], "r")) || !read_names()) {
    fprintf(stderr, "usage: formulas FILE.csv FORMULA\n");
    return EXIT_FAILURE;
  }
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = t.columns,
                                         .column_count = (uint32_t)t.column_count };
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  kjit_status status = kjit_create_formula(context, &options, argv[2], strlen(argv[2]), &formula);
  if (status == KJIT_OK) status = compute(formula);
  if (status != KJIT_OK) {
    char *message = kjit_copy_diagnostics_text(context);
    fprintf(stderr, "%s", message ? message : "");
    kjit_free(context, message);
  }
  kjit_destroy_formula(formula);
  kjit_destroy_context(context);
  fclose(t.file);
  return status == KJIT_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
