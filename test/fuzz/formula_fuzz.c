/* For any bytes, creating a formula ends with a formula or with an error that has a location. A
 * formula has a type that results can have. Some formulas run, over columns that end at a page
 * without access. */
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kjit/kjit.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 77, COLUMNS = 9, ONE_IN = 64 };
static kjit_context *context;
static kjit_formula_column columns[COLUMNS] = {
  { "a", KJIT_F64, KJIT_COLUMN_NULLABLE, 0 },
  { "b", KJIT_I32, 0, 0 },
  { "c d", KJIT_BOOL, KJIT_COLUMN_NULLABLE | KJIT_COLUMN_BITS, 0 },
  { "t", KJIT_I64, KJIT_COLUMN_TIMESTAMP | KJIT_COLUMN_MILLISECONDS, 0 },
  { "u", KJIT_I32, KJIT_COLUMN_TIMESTAMP | KJIT_COLUMN_DAYS | KJIT_COLUMN_NULLABLE, 0 },
  { "w", KJIT_I64, KJIT_COLUMN_DURATION | KJIT_COLUMN_NANOSECONDS, 0 },
  { "s", KJIT_I8, KJIT_COLUMN_TEXT | KJIT_COLUMN_NULLABLE, 0 },
  { "v", KJIT_U64, KJIT_COLUMN_TEXT, 0 },
  { "e", KJIT_I32, KJIT_COLUMN_TEXT | KJIT_COLUMN_NULLABLE, 0 },
};
/* Dictionaries: most rows have an index outside of them, and the last one is empty. */
static const char *const words[] = { "", "1970-01-01", "Oslo", "Rome", "a\"b", "x", "\xc3\xa9" };
static const kjit_formula_texts texts[COLUMNS] = { [6] = { words, sizeof words / sizeof *words },
                                                   [7] = { words, sizeof words / sizeof *words },
                                                   [8] = { NULL, 0 } };
static kjit_column rows[COLUMNS];

static void check(int holds, const char *what, const uint8_t *data, size_t size)
{
  if (holds) return;
  fprintf(stderr, "%s\n%.*s\n", what, (int)size, (const char *)data);
  abort();
}

/* Allocates memory that ends at a page without access. It is never freed, because all results are
 * written to the same memory. */
static void *allocate(size_t size_bytes)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size_bytes + page - 1) / page * page;
  char *memory =
    mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + whole, page, PROT_NONE)) abort();
  return memory + whole - size_bytes;
}

static void start(void)
{
  static const size_t bytes[COLUMNS] = { 8, 4, 0, 8, 4, 8, 1, 8, 4 };
  if (kjit_create_context(NULL, &context) != KJIT_OK) abort();
  for (int i = 0; i < COLUMNS; i++) {
    size_t size_bytes = bytes[i] ? ROWS * bytes[i] : (ROWS + 7) / 8;
    rows[i].values = allocate(size_bytes);
    for (size_t k = 0; k < size_bytes; k++) ((uint8_t *)rows[i].values)[k] = (uint8_t)(k * 37 + 11);
    if (!(columns[i].flags & KJIT_COLUMN_NULLABLE)) continue;
    rows[i].validity = allocate((ROWS + 7) / 8);
    memset(rows[i].validity, 0x5d, (ROWS + 7) / 8);
  }
}

static void run(const kjit_formula *formula, const kjit_formula_info *info)
{
  static uint8_t *values, *validity;
  if (!values) values = allocate(ROWS * sizeof(int64_t)), validity = allocate((ROWS + 7) / 8);
  size_t bytes = info->type == KJIT_BOOL || info->type == KJIT_I8 || info->type == KJIT_U8    ? 1
                 : info->type == KJIT_I16 || info->type == KJIT_U16 || info->type == KJIT_F16 ? 2
                 : info->type == KJIT_BF16                                                    ? 2
                 : info->type == KJIT_I32 || info->type == KJIT_U32 || info->type == KJIT_F32 ? 4
                                                                                              : 8;
  const kjit_column result = { values + ROWS * (sizeof(int64_t) - bytes), validity, 0 };
  kjit_status status = kjit_run_formula(formula, rows, &result, ROWS, NULL);
  kjit_print_error(context, status, "a formula that was made does not run");
  if (status != KJIT_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static unsigned made;
  if (!context) start();
  const kjit_formula_options options = {
    .size_bytes = sizeof options, .columns = columns, .column_count = COLUMNS, .texts = texts
  };
  kjit_formula *formula = NULL;
  kjit_status status = kjit_create_formula(context, &options, (const char *)data, size, &formula);
  if (status != KJIT_OK) {
    const kjit_diagnostic *first = kjit_get_diagnostic(context, 0);
    check(first && first->message && *first->message, "an error without a message", data, size);
    check(first->line || status == KJIT_ERROR_LIMIT, "an error without a place", data, size);
    return 0;
  }
  kjit_formula_info info = { .size_bytes = sizeof info };
  check(kjit_get_formula_info(formula, &info) == KJIT_OK, "no description", data, size);
  check(info.type >= KJIT_BOOL && info.type <= KJIT_F64, "a type without results", data, size);
  check(info.used_count <= COLUMNS, "more columns than there are", data, size);
  if (made++ % ONE_IN == 0) run(formula, &info);
  kjit_destroy_formula(formula);
  return 0;
}
