/* Timestamps and durations in formulas: random columns of all units with nulls, compared with
 * integers of 128 bits; columns that end at a page without access; messages.
 * RUN: %programs/formula_dates
 */
#define _DEFAULT_SOURCE
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../seed.h"

static unsigned long long seed;
static const char *current = "";
#define REQUIRE(condition) require((condition), #condition, __LINE__)
static void require(int holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s (formula `%s`, seed %llu)\n", line, what, current, seed);
  exit(EXIT_FAILURE);
}

static uint64_t next_random(void)
{
  static uint64_t state;
  if (!state) state = seed * 2 + 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1du >> 16;
}

enum { ROWS = 333, COLUMNS = 6 };
static const uint32_t units[] = { KJIT_COLUMN_DAYS, KJIT_COLUMN_SECONDS, KJIT_COLUMN_MILLISECONDS,
                                  KJIT_COLUMN_MICROSECONDS, KJIT_COLUMN_NANOSECONDS };
static const int64_t in_ns[] = { 86400000000000, 1000000000, 1000000, 1000, 1 };
static const char *const names[COLUMNS] = { "day", "second", "other", "fine", "length", "small" };
static const int unit_of[COLUMNS] = { 0, 1, 2, 4, 2, 0 };
static kjit_context *context;
static kjit_formula_column columns[COLUMNS];
static kjit_column rows[COLUMNS];
static int64_t values[COLUMNS][ROWS];
static int is_null[COLUMNS][ROWS];

/* Allocates memory that ends at a page without access. */
static void *allocate(size_t size_bytes)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t whole = (size_bytes + page - 1) / page * page;
  char *memory =
    mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED && !mprotect(memory + whole, page, PROT_NONE));
  return memory + whole - size_bytes;
}

/* Chooses values near the limits, and values that are close to each other in different units. */
static int64_t choose(int column)
{
  int64_t near = (int64_t)(next_random() % 5) * 86400 - 172800; /* seconds */
  switch (next_random() % 4) {
  case 0:
    if (columns[column].type == KJIT_I32) return next_random() % 2 ? INT32_MAX : INT32_MIN;
    return next_random() % 2 ? INT64_MAX : INT64_MIN;
  case 1:
    return (int64_t)((__int128)near * 1000000000 / in_ns[unit_of[column]]) +
           (int64_t)(next_random() % 3) - 1;
  default: return (int64_t)((__int128)near * 1000000000 / in_ns[unit_of[column]]);
  }
}

static void fill(void)
{
  for (int c = 0; c < COLUMNS; c++) {
    columns[c] =
      (kjit_formula_column){ .name = names[c], .type = c == 0 || c == 5 ? KJIT_I32 : KJIT_I64 };
    columns[c].flags = (c < 4 ? KJIT_COLUMN_TIMESTAMP : KJIT_COLUMN_DURATION) | units[unit_of[c]] |
                       (c % 2 ? KJIT_COLUMN_NULLABLE : 0);
    size_t bytes = columns[c].type == KJIT_I32 ? 4 : 8;
    rows[c].values = allocate(ROWS * bytes);
    if (c % 2) rows[c].validity = allocate((ROWS + 7) / 8);
    for (int i = 0; i < ROWS; i++) {
      values[c][i] = choose(c);
      if (bytes == 4) ((int32_t *)rows[c].values)[i] = (int32_t)values[c][i];
      else ((int64_t *)rows[c].values)[i] = values[c][i];
      is_null[c][i] = c % 2 && next_random() % 3 == 0;
      if (c % 2 && !is_null[c][i]) rows[c].validity[i / 8] |= (uint8_t)(1 << i % 8);
    }
  }
}

typedef struct outcome {
  kjit_formula_info info;
  void *values;
  uint8_t *validity;
} outcome;

static kjit_status compute(const char *text, outcome *o)
{
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = columns,
                                         .column_count = COLUMNS };
  kjit_formula *formula;
  current = text;
  kjit_status status = kjit_create_formula(context, &options, text, strlen(text), &formula);
  if (status != KJIT_OK) return status;
  o->info.size_bytes = sizeof o->info;
  REQUIRE(kjit_get_formula_info(formula, &o->info) == KJIT_OK);
  o->values = allocate(ROWS * (o->info.type == KJIT_BOOL ? 1 : 8));
  o->validity = allocate((ROWS + 7) / 8);
  memset(o->validity, 0xff, (ROWS + 7) / 8);
  const kjit_column result = { o->values, o->validity, 0 };
  status = kjit_run_formula(formula, rows, &result, ROWS, NULL);
  kjit_print_error(context, status, text);
  REQUIRE(status == KJIT_OK);
  kjit_destroy_formula(formula);
  return KJIT_OK;
}

static int has_value(const outcome *o, int row) { return o->validity[row / 8] >> row % 8 & 1; }
static __int128 ns(int column, int row)
{
  return (__int128)values[column][row] * in_ns[unit_of[column]];
}

static int compare(int op, __int128 x, __int128 y)
{
  return op == 0   ? x < y
         : op == 1 ? x <= y
         : op == 2 ? x > y
         : op == 3 ? x >= y
         : op == 4 ? x == y
                   : x != y;
}

/* All pairs of timestamps, and of durations, by all comparisons. */
static void check_comparisons(void)
{
  static const char *const ops[] = { "<", "<=", ">", ">=", "==", "!=" };
  for (int x = 0; x < COLUMNS; x++)
    for (int y = 0; y < COLUMNS; y++) {
      if ((x < 4) != (y < 4)) continue;
      int op = (int)(next_random() % 6);
      char text[60];
      outcome o = { { 0 }, NULL, NULL };
      snprintf(text, sizeof text, "%s %s %s", names[x], ops[op], names[y]);
      REQUIRE(compute(text, &o) == KJIT_OK && o.info.type == KJIT_BOOL);
      for (int i = 0; i < ROWS; i++) {
        REQUIRE(has_value(&o, i) == !(is_null[x][i] || is_null[y][i]));
        if (has_value(&o, i)) REQUIRE(((uint8_t *)o.values)[i] == compare(op, ns(x, i), ns(y, i)));
      }
    }
}

/* A formula with one column of i32, whose exact result is `scale` times the value plus `offset`. */
static void check_counts(const char *text, uint32_t flags, int column, int64_t scale,
                         int64_t offset)
{
  outcome o = { { 0 }, NULL, NULL };
  REQUIRE(compute(text, &o) == KJIT_OK && o.info.type == KJIT_I64);
  REQUIRE((o.info.flags & ~(uint32_t)KJIT_COLUMN_NULLABLE) == flags);
  for (int i = 0; i < ROWS; i++)
    if (has_value(&o, i)) REQUIRE(((int64_t *)o.values)[i] == values[column][i] * scale + offset);
    else REQUIRE(is_null[column][i]);
}

static void check_arithmetic(void)
{
  const uint32_t time = KJIT_COLUMN_TIMESTAMP, length = KJIT_COLUMN_DURATION;
  check_counts("day + seconds(5)", time | KJIT_COLUMN_SECONDS, 0, 86400, 5);
  check_counts("milliseconds(7) + day", time | KJIT_COLUMN_MILLISECONDS, 0, 86400000, 7);
  check_counts("day - '1970-01-03'", length | KJIT_COLUMN_DAYS, 0, 1, -2);
  check_counts("day - \"1970-01-01T00:00:01\"", length | KJIT_COLUMN_SECONDS, 0, 86400, -1);
  check_counts("small * 3", length | KJIT_COLUMN_DAYS, 5, 3, 0);
  check_counts("-small", length | KJIT_COLUMN_DAYS, 5, -1, 0);
  check_counts("as_seconds(day)", time | KJIT_COLUMN_SECONDS, 0, 86400, 0);
  check_counts("int64(day)", 0, 0, 1, 0);
  check_counts("where(day < '2024-02-29', day, day) + days(1)", time | KJIT_COLUMN_DAYS, 0, 1, 1);
  check_counts("fillna(small, days(0)) + small", length | KJIT_COLUMN_DAYS, 5, 2, 0);
  outcome o = { { 0 }, NULL, NULL };
  REQUIRE(compute("as_days(second)", &o) == KJIT_OK);
  for (int i = 0; i < ROWS; i++) {
    int64_t v = values[1][i], whole = v / 86400 - (v % 86400 < 0);
    if (has_value(&o, i)) REQUIRE(((int64_t *)o.values)[i] == whole);
  }
  REQUIRE(compute("is_null(second) or second in_ < 1", &o) == KJIT_ERROR_SYNTAX);
  REQUIRE(compute("isin(day, '1970-01-02', '1969-12-31T00:00:00.000')", &o) == KJIT_OK);
  for (int i = 0; i < ROWS; i++)
    REQUIRE(((uint8_t *)o.values)[i] == (values[0][i] == 1 || values[0][i] == -1));
}

static void check_message(const char *text, kjit_status status, const char *message)
{
  outcome o = { { 0 }, NULL, NULL };
  REQUIRE(compute(text, &o) == status);
  char *found = kjit_copy_diagnostics_text(context);
  if (!strstr(found, message)) fprintf(stderr, "%s\n", found);
  REQUIRE(strstr(found, message) != NULL);
  kjit_free(context, found);
}

static void check_messages(void)
{
  check_message("second - fine", KJIT_ERROR_TYPE,
                "a number of seconds can be too large to count in nanosec");
  check_message("day + 1", KJIT_ERROR_TYPE, "write seconds(n) or days(n)");
  check_message("day + second", KJIT_ERROR_TYPE, "`+` of timestamp[D] and timestamp[s]");
  check_message("day < length", KJIT_ERROR_TYPE, "`<` of timestamp[D] and duration[ms]");
  check_message("day == 3", KJIT_ERROR_TYPE, "`==` of timestamp[D] and an integer literal");
  check_message("sqrt(day)", KJIT_ERROR_TYPE, "argument 1 of `sqrt` is timestamp[D]");
  check_message("day > '2023-02-29'", KJIT_ERROR_TYPE, "\"2023-02-29\" is not a timestamp such as");
  check_message("day > '2023-02'", KJIT_ERROR_TYPE, "is not a timestamp such as");
  check_message("'2023-02-01'", KJIT_ERROR_TYPE, "the formula is a text");
  check_message("1 + '2023-02-01'", KJIT_ERROR_TYPE, "a text");
  check_message("length * 1.5", KJIT_ERROR_TYPE, "`*` of duration[ms] and a float literal");
  check_message("not day", KJIT_ERROR_TYPE, "`not` of timestamp[D]");
  check_message("where(day, 1, 2)", KJIT_ERROR_TYPE, "a bool");
  check_message("where(day > second, day, small)", KJIT_ERROR_TYPE, "cannot be combined");
  check_message("day > 'x", KJIT_ERROR_SYNTAX, "unterminated string");
  columns[0].flags |= KJIT_COLUMN_SECONDS;
  check_message("day", KJIT_ERROR_MISUSE, "needs one flag such as KJIT_COLUMN_TIMESTAMP");
  columns[0].flags = KJIT_COLUMN_SECONDS;
  check_message("day", KJIT_ERROR_MISUSE, "together with one unit");
  columns[0] =
    (kjit_formula_column){ "day", KJIT_F64, KJIT_COLUMN_TIMESTAMP | KJIT_COLUMN_DAYS, 0 };
  check_message("day", KJIT_ERROR_MISUSE, "so its type must be i32 or i64");
}

int main(int argc, char **argv)
{
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : kj_draw_seed();
  REQUIRE(kjit_create_context(NULL, &context) == KJIT_OK);
  fill();
  check_comparisons();
  check_arithmetic();
  check_messages();
  kjit_destroy_context(context);
  return 0;
}
