/* Formulas and expressions of an attacker: each text ends at a page without access, without a
 * terminating zero. Every call returns a status, with a message and a position if it fails, and
 * neither reads after the text nor exhausts the stack. Formulas that are accepted run over columns
 * that end at such a page, too.
 * RUN: %programs/hostile_formulas | FileCheck %s
 * CHECK: right
 */
#define _DEFAULT_SOURCE
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS = 77, COLUMNS = 3 };
static kjit_context *context;
static int failures;

static void check(int holds, const char *what, const char *text, size_t size)
{
  if (holds) return;
  fprintf(stderr, "%s: %.*s\n", what, (int)(size < 60 ? size : 60), text);
  failures++;
}

/* Memory that ends at a page without access. */
static char *allocate(size_t size)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size / page + 1) * page;
  char *made = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED || mprotect(made + whole, page, PROT_NONE)) abort();
  return made + whole - size;
}

/* Every failure has a message. Its position is in the text, unless a limit is exceeded. */
static void check_failure(kjit_status status, const char *text, size_t size)
{
  const kjit_diagnostic *first = kjit_get_diagnostic(context, 0);
  check(first && first->message && *first->message, "a failure without a message", text, size);
  check(first && (first->line || status == KJIT_ERROR_LIMIT), "without a position", text, size);
}

static void run_formula(const kjit_formula *formula, const char *text, size_t size)
{
  static kjit_column columns[COLUMNS];
  static char *values, *validity;
  if (!values) {
    for (int i = 0; i < COLUMNS; i++) {
      columns[i].values = allocate(ROWS * sizeof(double));
      if (i != 1) columns[i].validity = (uint8_t *)allocate((ROWS + 7) / 8);
    }
    values = allocate(ROWS * sizeof(double)), validity = allocate((ROWS + 7) / 8);
  }
  kjit_formula_info info = { .size_bytes = sizeof info };
  if (kjit_get_formula_info(formula, &info) != KJIT_OK) abort();
  size_t unused = info.type == KJIT_BOOL ? 7 * ROWS : info.type == KJIT_I32 ? 4 * ROWS : 0;
  const kjit_column result = { values + unused, (uint8_t *)validity, 0 };
  check(kjit_run_formula(formula, columns, &result, ROWS, NULL) == KJIT_OK, "no run", text, size);
}

static kjit_status try_formula(const char *text, size_t size)
{
  static const kjit_formula_column columns[COLUMNS] = { { "a", KJIT_F64, KJIT_COLUMN_NULLABLE, 0 },
                                                        { "for", KJIT_F64, 0, 0 },
                                                        { "c d", KJIT_F64, KJIT_COLUMN_NULLABLE,
                                                          0 } };
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = columns,
                                         .column_count = COLUMNS };
  kjit_formula *formula = NULL;
  kjit_status status = kjit_create_formula(context, &options, text, size, &formula);
  if (status == KJIT_OK) run_formula(formula, text, size);
  else check_failure(status, text, size);
  kjit_destroy_formula(formula);
  return status;
}

/* Maximum for try_expression; 0 means the default. */
static uint64_t text_limit_bytes;

static kjit_status try_expression(const char *text, size_t size)
{
  static const char *const names[] = { "a", "b" };
  const kjit_expression_options options = { .size_bytes = sizeof options,
                                            .parameters = names,
                                            .parameter_count = 2,
                                            .text_limit_bytes = text_limit_bytes };
  kjit_module *module = NULL;
  kjit_function *function = NULL;
  kjit_status status = kjit_parse_expression(context, &options, text, size, &module, &function);
  if (status != KJIT_OK) check_failure(status, text, size);
  kjit_release_module(module);
  return status;
}

static void try_both(const char *text, size_t size, kjit_status formula, kjit_status expression)
{
  char *copy = allocate(size);
  memcpy(copy, text, size);
  kjit_status found = try_formula(copy, size);
  check(found == formula, kjit_get_status_name(found), text, size);
  found = try_expression(copy, size);
  check(found == expression, kjit_get_status_name(found), text, size);
}

/* ---- the attacks ---- */

/* Texts `first` + n times `part` + `middle` + n times `last`. All limits reject them for large n.
 */
static const struct nest {
  const char *first, *part, *middle, *last;
} nests[] = { { "", "(", "a", ")" },
              { "", "-", "a", "" },
              { "", "not ", "a > 0", "" },
              { "", "~", "(a > 0)", "" },
              { "", "sin(", "a", ")" },
              { "a", "+a", "", "" },
              { "a", "**a", "", "" },
              { "a", "<a", "", "" },
              { "a > 0", " and a > 0", "", "" },
              { "", "where(a>0,a,", "a", ")" },
              { "a in (1", ",1", ")", "" },
              { "max(a", ",a", ")", "" },
              { "", "9", "", "" },
              { "", "x", "", "" },
              { "`", "x", "`", "" },
              { "a == '", "x", "'", "" },
              { "", "(", "", "" },
              { "1e", "9", "", "" },
              { "0x", "f", "", "" },
              { "a", "[0", "", "]" },
              { "1", "<<1", "", "" },
              { "a", " ? a : a", "", "" },
              { "", "[", "a", "]" },
              { "", "a.", "a", "" } };

static char *append(char *at, const char *text, size_t count)
{
  size_t size = strlen(text);
  for (size_t i = 0; i < count; i++, at += size) memcpy(at, text, size);
  return at;
}

/* The parser itself rejects these texts, because the limit of their size is off. */
static void check_nests(void)
{
  text_limit_bytes = UINT64_MAX;
  static const size_t counts[] = { 3000, 50000, 200000 };
  for (size_t i = 0; i < sizeof nests / sizeof *nests; i++)
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
      const struct nest *n = &nests[i];
      size_t size =
        strlen(n->first) + strlen(n->middle) + counts[k] * (strlen(n->part) + strlen(n->last));
      char *text = allocate(size), *at = append(text, n->first, 1);
      at = append(at, n->part, counts[k]);
      at = append(at, n->middle, 1);
      (void)append(at, n->last, counts[k]);
      check(try_formula(text, size) != KJIT_OK, "accepted as a formula", text, size);
      check(try_expression(text, size) != KJIT_OK, "accepted as an expression", text, size);
    }
  text_limit_bytes = 0;
}

/* ---- the limits ---- */

/* Tries `first` + n times `part` + `middle` + n times `last`. */
static void try_repeated(struct nest n, size_t count, kjit_status expression)
{
  size_t size = strlen(n.first) + strlen(n.middle) + count * (strlen(n.part) + strlen(n.last));
  char *text = allocate(size), *at = append(text, n.first, 1);
  at = append(at, n.part, count);
  at = append(at, n.middle, 1);
  (void)append(at, n.last, count);
  kjit_status found = try_expression(text, size);
  check(found == expression, kjit_get_status_name(found), text, size);
}

static kjit_status try_parameters(uint32_t count)
{
  enum { MOST = 300 };
  static char texts[MOST][12];
  const char *names[MOST];
  for (uint32_t i = 0; i < count; i++) {
    snprintf(texts[i], sizeof texts[i], "p%u", i);
    names[i] = texts[i];
  }
  const kjit_expression_options options = { .size_bytes = sizeof options,
                                            .parameters = names,
                                            .parameter_count = count };
  kjit_module *module = NULL;
  kjit_function *function = NULL;
  kjit_status status = kjit_parse_expression(context, &options, "p0", 2, &module, &function);
  kjit_release_module(module);
  return status;
}

/* The documented limits of expressions: the greatest value is accepted, and the next one is not. */
static void check_limits(void)
{
  const struct nest spaces = { "", " ", "a", "" }, sums = { "a", "+a", "", "" },
                    brackets = { "", "(", "a", ")" };
  try_repeated(spaces, 65535, KJIT_OK);
  try_repeated(spaces, 65536, KJIT_ERROR_LIMIT);
  text_limit_bytes = 3;
  try_repeated(sums, 1, KJIT_OK);
  try_repeated(spaces, 3, KJIT_ERROR_LIMIT);
  text_limit_bytes = 1 << 20;
  try_repeated(spaces, 65536, KJIT_OK);
  text_limit_bytes = 0;
  try_repeated(sums, 399, KJIT_OK);
  try_repeated(sums, 400, KJIT_ERROR_SYNTAX);
  try_repeated(brackets, 150, KJIT_OK);
  try_repeated(brackets, 200, KJIT_ERROR_SYNTAX);
  check(try_parameters(255) == KJIT_OK, "255 parameters", "p0", 2);
  check(try_parameters(256) == KJIT_ERROR_MISUSE, "256 parameters", "p0", 2);
}

#define BOTH(text, formula, expression) \
  try_both(text, sizeof(text) - 1, KJIT_##formula, KJIT_##expression)

static void check_texts(void)
{
  BOTH("", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("\0", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a + 1\0", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a\0+ a", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a + \xff", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a + \xe2\x82", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a + \xc3\xa9", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("\xe2\x80\xae"
       "a",
       ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a } func x() { return 1", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a\n}\nkernel evil(x) {\n x[0] = 1", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a ; a", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a = 1", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("a # comment", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("'", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("`", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("1e400", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("99999999999999999999", ERROR_SYNTAX, ERROR_SYNTAX);
  BOTH("syncthreads()", ERROR_NAME, ERROR_REFUSED);
  BOTH("print(a)", ERROR_NAME, ERROR_SYNTAX);
  BOTH("`c d` + 1", OK, ERROR_SYNTAX);
  BOTH("for + 1", OK, ERROR_SYNTAX);
  BOTH("9223372036854775807 + 1", OK, OK);
  BOTH("-9223372036854775808 // -1 + 0 // 0", OK, OK);
  BOTH("1 << 64", OK, OK);
}

int main(void)
{
  const kjit_config config = { .size_bytes = sizeof config };
  if (kjit_create_context(&config, &context) != KJIT_OK) return 1;
  check_texts();
  check_nests();
  check_limits();
  if (kjit_destroy_context(context) != KJIT_OK) failures++;
  printf("%s\n", failures ? "wrong" : "right");
  return failures != 0;
}
