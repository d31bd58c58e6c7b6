/* formula_first.c [FORMULA...]: the first run of formulas on the CPU, which compiles them, without
 * a disk cache. Prints a line for each formula: milliseconds of processor time for
 * kjit_create_formula and for the first run over 10,000 rows, without and with nulls, then the
 * formula. The first formula includes the time to load the compiler.
 *
 *   cc -O2 -Iinclude test/bench/formula_first.c -o formula_first -Lbuild/release/lib -lkjit
 *   LD_LIBRARY_PATH=build/release/lib ./formula_first
 *   LD_LIBRARY_PATH=build/release/lib valgrind --tool=callgrind ./formula_first 'a * b' */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 10000, COLUMNS = 3 };

static kjit_context *context;

#define TRY(call) try((call), __LINE__)
static void try(kjit_status status, int line)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "line %d: %s\n", line, kjit_copy_diagnostics_text(context));
  exit(EXIT_FAILURE);
}

static double now_ms(void)
{
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * (double)time.tv_sec + 1e-6 * (double)time.tv_nsec;
}

static double values[COLUMNS][ROWS], result[ROWS];
static uint8_t valid[ROWS / 8], result_valid[ROWS / 8];

static void measure(const char *text, uint32_t flags, double *create_ms, double *run_ms)
{
  const kjit_formula_column columns[COLUMNS] = { { "a", KJIT_F64, flags, 0 },
                                                 { "b", KJIT_F64, 0, 0 },
                                                 { "c", KJIT_F64, flags, 0 } };
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = columns,
                                         .column_count = COLUMNS };
  uint8_t *bits = flags ? valid : NULL;
  const kjit_column given[COLUMNS] = { { values[0], bits, 0 },
                                       { values[1], NULL, 0 },
                                       { values[2], bits, 0 } },
                    made = { result, result_valid, 0 };
  kjit_formula *formula;
  double start = now_ms();
  TRY(kjit_create_formula(context, &options, text, strlen(text), &formula));
  double created = now_ms();
  TRY(kjit_run_formula(formula, given, &made, ROWS, NULL));
  *run_ms = now_ms() - created;
  *create_ms = created - start;
  kjit_destroy_formula(formula);
}

int main(int argc, char **argv)
{
  static const char *const usual[] = { "a * 0.5 + b", "a * b", "a * sin(b) + where(c > 0, c, 0)",
                                       "sqrt(a * a + b * b) / (1 + abs(a))", "a > 0 and b > c" };
  const kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  size_t count = argc > 1 ? (size_t)argc - 1 : sizeof usual / sizeof *usual;
  TRY(kjit_create_context(&config, &context));
  memset(valid, 0xa5, sizeof valid);
  for (int i = 0; i < ROWS; i++)
    for (int k = 0; k < COLUMNS; k++) values[k][i] = i - 100 * k;
  for (size_t i = 0; i < count; i++) {
    double create, run, create_nulls, run_nulls;
    const char *text = argc > 1 ? argv[i + 1] : usual[i];
    measure(text, 0, &create, &run);
    measure(text, KJIT_COLUMN_NULLABLE, &create_nulls, &run_nulls);
    printf("%.3f\t%.3f\t%.3f\t%.3f\t%s\n", create, run, create_nulls, run_nulls, text);
  }
  kjit_destroy_context(context);
  return 0;
}
