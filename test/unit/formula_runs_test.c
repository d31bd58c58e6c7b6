/* Runs formulas on the CPU over columns whose bitmaps begin at any bit, and compares the results
 * row by row. Also tests runs that a graph repeats. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"
#include "built_compiler.h"

enum {
  MOST_OFFSET = 71,
  MOST_ROWS = 300,
  ALL = MOST_OFFSET + MOST_ROWS,
  ROUNDS = 400,
  CANARY = 0x5a
};

/* The columns a and b are i32, p has bits. A row of the result: its value and whether it has one.
 */
typedef struct row {
  bool has_a, has_b, has_p, p;
  int32_t a, b;
} row;
typedef struct outcome {
  bool is_valid;
  int32_t value;
} outcome;

static outcome add(row r) { return (outcome){ r.has_a && r.has_b, r.a + 3 * r.b }; }
static outcome ask(row r) { return (outcome){ true, !r.has_a }; }
static outcome join(row r)
{
  bool has_less = r.has_a && r.has_b, less = r.a < r.b;
  bool is_false = (r.has_p && !r.p) || (has_less && !less);
  return (outcome){ is_false || (r.has_p && has_less), !is_false };
}

typedef struct formula_case {
  const char *text;
  outcome (*compute)(row);
  bool has_bits; /* the result */
} formula_case;

static const formula_case cases[] = { { "a + 3 * b", add, false },
                                      { "is_null(a)", ask, true },
                                      { "p and a < b", join, true } };
enum { CASES = sizeof cases / sizeof *cases };

static kjit_context *context;
static kjit_formula *formulas[CASES];

static int32_t a[ALL], b[ALL], result[MOST_ROWS + 1];
static uint8_t p[ALL / 8 + 1], valid[3][ALL / 8 + 1], result_valid[MOST_ROWS / 8 + 2];

static void expect_ok(kjit_status status)
{
  if (status != KJIT_OK) fail_msg("%s", kjit_copy_diagnostics_text(context));
}

static int64_t below(int64_t limit) { return rand() % limit; }
static bool bit_of(const void *bits, int64_t at)
{
  return ((const uint8_t *)bits)[at >> 3] >> (at & 7) & 1;
}

static int set_up(void **state)
{
  (void)state;
  const kjit_config config = { .size_bytes = sizeof config,
                               .cache_directory = "",
                               .cpu_threads = 4,
                               .compiler_path = find_built_compiler() };
  static const kjit_formula_column columns[] = {
    { .name = "a", .type = KJIT_I32, .flags = KJIT_COLUMN_NULLABLE },
    { .name = "b", .type = KJIT_I32, .flags = KJIT_COLUMN_NULLABLE },
    { .name = "p", .type = KJIT_BOOL, .flags = KJIT_COLUMN_NULLABLE | KJIT_COLUMN_BITS }
  };
  if (kjit_create_context(&config, &context) != KJIT_OK) return -1;
  for (size_t i = 0; i < CASES; i++) {
    const kjit_formula_options options = { .size_bytes = sizeof options,
                                           .flags = cases[i].has_bits ? KJIT_COLUMN_BITS : 0,
                                           .columns = columns,
                                           .column_count = 3 };
    expect_ok(
      kjit_create_formula(context, &options, cases[i].text, strlen(cases[i].text), &formulas[i]));
  }
  return 0;
}

static int tear_down(void **state)
{
  (void)state;
  for (size_t i = 0; i < CASES; i++) kjit_destroy_formula(formulas[i]);
  return kjit_destroy_context(context);
}

static void fill_randomly(void)
{
  for (int i = 0; i < ALL; i++) a[i] = (int32_t)below(9), b[i] = (int32_t)below(9);
  for (size_t i = 0; i < sizeof p; i++) p[i] = (uint8_t)below(256);
  for (int k = 0; k < 3; k++) {
    /* 0: no value is null; 1: all values are null; otherwise some values are null */
    int kind = (int)below(4);
    for (size_t i = 0; i < sizeof valid[k]; i++)
      valid[k][i] = (uint8_t)(kind == 0 ? 0xff : kind == 1 ? 0 : below(256));
  }
}

static void clear_result(void)
{
  memset(result, CANARY, sizeof result);
  memset(result_valid, CANARY, sizeof result_valid);
}

/* Draws where the columns begin, and which of them have bitmaps. */
static void draw_columns(kjit_column columns[3])
{
  void *const values[] = { a, b, p };
  for (int k = 0; k < 3; k++)
    columns[k] = (kjit_column){ values[k], below(4) ? valid[k] : NULL, below(MOST_OFFSET) };
}

static row row_at(const kjit_column columns[3], int64_t i)
{
  bool has[3];
  for (int k = 0; k < 3; k++)
    has[k] = !columns[k].validity || bit_of(columns[k].validity, columns[k].offset + i);
  return (row){ .has_a = has[0],
                .has_b = has[1],
                .has_p = has[2],
                .p = bit_of(p, columns[2].offset + i),
                .a = a[columns[0].offset + i],
                .b = b[columns[1].offset + i] };
}

/* Bits after the last row are 0, and the byte after them is not written. */
static void check_end(const void *bits, int64_t rows)
{
  int64_t bytes = (rows + 7) / 8;
  for (int64_t i = rows; i < 8 * bytes; i++) assert_false(bit_of(bits, i));
  assert_int_equal(((const uint8_t *)bits)[bytes], CANARY);
}

static void compare(size_t number, const kjit_column columns[3], int64_t rows)
{
  const formula_case *it = &cases[number];
  kjit_formula_info info = { .size_bytes = sizeof info };
  expect_ok(kjit_get_formula_info(formulas[number], &info));
  bool can_be_null = (info.flags & KJIT_COLUMN_NULLABLE) != 0;
  for (int64_t i = 0; i < rows; i++) {
    outcome expected = it->compute(row_at(columns, i));
    if (can_be_null) assert_int_equal(bit_of(result_valid, i), expected.is_valid);
    if (!expected.is_valid) continue;
    assert_int_equal(it->has_bits ? bit_of(result, i) : result[i], expected.value);
  }
  if (can_be_null) check_end(result_valid, rows);
  if (it->has_bits) check_end(result, rows);
}

static void runs_have_the_values_of_their_rows(void **state)
{
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    size_t number = (size_t)below(CASES);
    int64_t rows = below(MOST_ROWS);
    kjit_column columns[3], to = { result, result_valid, 0 };
    kjit_formula_run options = { .size_bytes = sizeof options, .cpu_threads = (uint32_t)below(5) };
    fill_randomly();
    clear_result();
    draw_columns(columns);
    expect_ok(kjit_run_formula(formulas[number], columns, &to, rows, &options));
    compare(number, columns, rows);
  }
}

/* ---- graphs ---- */

static kjit_stream *make_stream(void)
{
  kjit_device *cpu;
  kjit_stream *stream;
  expect_ok(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu));
  expect_ok(kjit_create_stream(cpu, &stream));
  return stream;
}

static kjit_graph *capture(kjit_stream *stream, const kjit_formula *formula,
                           const kjit_column columns[3], int64_t rows)
{
  const kjit_column to = { result, result_valid, 0 };
  kjit_formula_run options = { .size_bytes = sizeof options, .stream = stream };
  kjit_graph *graph;
  expect_ok(kjit_begin_capture(stream));
  expect_ok(kjit_run_formula(formula, columns, &to, rows, &options));
  expect_ok(kjit_end_capture(stream, &graph));
  return graph;
}

static void launch_and_compare(kjit_executable_graph *executable, size_t number,
                               const kjit_column columns[3], int64_t rows)
{
  fill_randomly();
  clear_result();
  expect_ok(kjit_launch_graph(executable, NULL));
  compare(number, columns, rows);
}

/* A captured run reads the columns and writes the result when the graph is launched. */
static void a_graph_repeats_runs(void **state)
{
  (void)state;
  kjit_stream *stream = make_stream();
  for (size_t number = 0; number < CASES; number++) {
    kjit_column columns[3], given[3];
    kjit_executable_graph *executable;
    draw_columns(columns);
    columns[0].validity = valid[0];
    memcpy(given, columns, sizeof given);
    clear_result();
    kjit_graph *graph = capture(stream, formulas[number], given, 203);
    memset(given, 0, sizeof given); /* kjit has copied them */
    for (size_t i = 0; i < sizeof result; i++) assert_int_equal(((char *)result)[i], CANARY);
    for (size_t i = 0; i < sizeof result_valid; i++) assert_int_equal(result_valid[i], CANARY);
    expect_ok(kjit_instantiate_graph(graph, &executable));
    for (int k = 0; k < 3; k++) launch_and_compare(executable, number, columns, 203);
    kjit_destroy_graph(graph);
    draw_columns(columns);
    graph = capture(stream, formulas[number], columns, 77);
    expect_ok(kjit_update_graph(executable, graph));
    launch_and_compare(executable, number, columns, 77);
    kjit_destroy_graph(graph);
    kjit_destroy_executable_graph(executable);
  }
  kjit_destroy_stream(stream);
}

/* The graph retains the formula. It may be destroyed after the context. */
static void a_graph_outlives_its_formula(void **state)
{
  (void)state;
  kjit_context *usual = context;
  kjit_formula *kept[CASES];
  kjit_column columns[3];
  kjit_executable_graph *executable;
  memcpy(kept, formulas, sizeof kept);
  assert_int_equal(set_up(NULL), 0);
  kjit_stream *stream = make_stream();
  draw_columns(columns);
  columns[0].validity = valid[0];
  kjit_graph *graph = capture(stream, formulas[0], columns, 100);
  kjit_formula_info info = { .size_bytes = sizeof info };
  expect_ok(kjit_instantiate_graph(graph, &executable));
  kjit_destroy_formula(formulas[0]);
  kjit_destroy_stream(stream);
  formulas[0] = kept[0]; /* which describes the result equally */
  expect_ok(kjit_get_formula_info(formulas[0], &info));
  launch_and_compare(executable, 0, columns, 100);
  kjit_destroy_executable_graph(executable);
  for (size_t i = 1; i < CASES; i++) kjit_destroy_formula(formulas[i]);
  assert_int_equal(kjit_destroy_context(context), KJIT_OK);
  kjit_destroy_graph(graph);
  context = usual;
  memcpy(formulas, kept, sizeof formulas);
}

int main(void)
{
  const struct CMUnitTest tests[] = { cmocka_unit_test(runs_have_the_values_of_their_rows),
                                      cmocka_unit_test(a_graph_repeats_runs),
                                      cmocka_unit_test(a_graph_outlives_its_formula) };
  srand(kj_draw_seed());
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
