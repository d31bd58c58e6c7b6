/* Tests kjit_create_formula and kjit_run_formula. Random formulas over columns with nulls are
 * compared with an interpreter in this file. Also tests hostile texts, messages and misuse.
 * RUN: %programs/formulas
 * RUN: %programs/formulas checks
 */
#include <kjit/kjit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"

#define REQUIRE(condition) require((condition), #condition, __LINE__)
static const char *current = "";
static unsigned long long seed;
static void require(int holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s (formula `%s`, seed %llu)\n", line, what, current, seed);
  exit(EXIT_FAILURE);
}

static kjit_context *context;

static uint64_t next_random(void)
{
  static uint64_t state;
  if (!state) state = seed * 2 + 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state * 0x2545f4914f6cdd1du >> 16;
}
static int below(int limit) { return (int)(next_random() % (uint64_t)limit); }

/* ---- columns ---- */

enum { COLUMNS = 8, MOST_ROWS = 700 };
static const struct {
  const char *name, *spelled;
  kjit_type type;
  uint32_t flags;
} table[COLUMNS] = {
  { "x", "x", KJIT_F64, KJIT_COLUMN_NULLABLE },
  { "y", "y", KJIT_F64, 0 },
  { "trip distance", "float64(`trip distance`)", KJIT_F32, KJIT_COLUMN_NULLABLE },
  { "n", "n", KJIT_I64, KJIT_COLUMN_NULLABLE },
  { "local", "int64(local)", KJIT_I32, 0 },
  { "small", "int64(small)", KJIT_I8, KJIT_COLUMN_NULLABLE },
  { "flag", "flag", KJIT_BOOL, KJIT_COLUMN_NULLABLE | KJIT_COLUMN_BITS },
  { "sin", "sin", KJIT_BOOL, KJIT_COLUMN_NULLABLE },
};

/* A value of a row, or null. kjit may round differently, because it may fuse a product with a sum.
 * A result that depends on the last bits of an inexact number, such as a comparison for equality,
 * counts as unknown. */
typedef struct value {
  double number;
  int64_t integer;
  int is_null, is_inexact, is_unknown;
} value;

static value rows[COLUMNS][MOST_ROWS];
static unsigned char memory[COLUMNS][MOST_ROWS * 8 + 64], bitmaps[COLUMNS][MOST_ROWS / 8 + 16];

static void set_bit(unsigned char *bits, int64_t at, int is_set)
{
  if (is_set) bits[at >> 3] |= (unsigned char)(1 << (at & 7));
  else bits[at >> 3] &= (unsigned char)~(1 << (at & 7));
}

static void store_value(unsigned char *to, kjit_type type, int64_t at, const value *v)
{
  if (type == KJIT_F64) memcpy(to + 8 * at, &v->number, 8);
  else if (type == KJIT_F32) memcpy(to + 4 * at, &(float){ (float)v->number }, 4);
  else if (type == KJIT_I64) memcpy(to + 8 * at, &v->integer, 8);
  else if (type == KJIT_I32) memcpy(to + 4 * at, &(int32_t){ (int32_t)v->integer }, 4);
  else to[at] = (unsigned char)v->integer;
}

/* Fills a column with random rows, which begin at a random offset. Null rows and the bits before
 * the first row have random values. */
static void fill_column(int c, int count, int nulls, kjit_column *column)
{
  static const double special[] = { 0, -0.0, 1, -1, 0.5, INFINITY, -INFINITY, NAN };
  const int bits = (table[c].flags & KJIT_COLUMN_BITS) != 0;
  column->offset = below(20);
  column->values = memory[c];
  column->validity = (table[c].flags & KJIT_COLUMN_NULLABLE) && nulls ? bitmaps[c] : NULL;
  for (size_t i = 0; i < sizeof bitmaps[c]; i++) bitmaps[c][i] = (unsigned char)below(256);
  for (size_t i = 0; i < sizeof memory[c] && bits; i++) memory[c][i] = (unsigned char)below(256);
  for (int i = 0; i < count; i++) {
    value *v = &rows[c][i];
    v->number = below(8) ? (float)(below(2000) - 1000) / 64 : special[below(8)];
    v->integer = table[c].type == KJIT_BOOL ? below(2) : below(21) - 10;
    v->is_null = column->validity && (nulls == 2 || (nulls == 1 && below(3) == 0));
    if (bits) set_bit(memory[c], column->offset + i, (int)v->integer);
    else store_value(memory[c], table[c].type, column->offset + i, v);
    set_bit(bitmaps[c], column->offset + i, !v->is_null);
  }
}

/* ---- random formulas, and their values ---- */

typedef enum kind { REAL, WHOLE, TRUTH } kind;
/* OPERATION(name, kind of the result, kinds of the operands, text with # for an operand) */
#define OPERATIONS(X) \
  X(ADD, REAL, "rr", "(# + #)") \
  X(SUB, REAL, "rr", "(# - #)") \
  X(MUL, REAL, "rr", "(# * #)") \
  X(DIV, REAL, "rr", "(# / #)") \
  X(WHOLE_DIV, REAL, "ww", "(# / #)") \
  X(FLOORDIV, REAL, "rr", "(# // #)") \
  X(MIXED, REAL, "rw", "(# + #)") \
  X(NEG, REAL, "r", "(-#)") \
  X(SQRT, REAL, "r", "sqrt(#)") \
  X(ABS, REAL, "r", "abs(#)") \
  X(MINIMUM, REAL, "rr", "minimum(#, #)") \
  X(SQUARE, REAL, "r", "(# ** 2)") \
  X(WHERE, REAL, "trr", "where(#, #, #)") \
  X(FILLNA, REAL, "rr", "fillna(#, #)") \
  X(NULLIF, REAL, "rr", "nullif(#, #)") \
  X(OR_NULL, REAL, "tr", "where(#, #, null)") \
  X(TO_REAL, REAL, "w", "float64(#)") \
  X(WHOLE_ADD, WHOLE, "ww", "(# + #)") \
  X(WHOLE_SUB, WHOLE, "ww", "(# - #)") \
  X(WHOLE_MUL, WHOLE, "ww", "(# * #)") \
  X(WHOLE_FLOORDIV, WHOLE, "ww", "(# // #)") \
  X(WHOLE_MOD, WHOLE, "ww", "(# % #)") \
  X(WHOLE_AND, WHOLE, "ww", "(# & #)") \
  X(WHOLE_INVERT, WHOLE, "w", "(~#)") \
  X(WHOLE_WHERE, WHOLE, "tww", "where(#, #, #)") \
  X(WHOLE_COALESCE, WHOLE, "www", "coalesce(#, #, #)") \
  X(LT, TRUTH, "rr", "(# < #)") \
  X(GE, TRUTH, "ww", "(# >= #)") \
  X(EQ, TRUTH, "ww", "(# == #)") \
  X(NE, TRUTH, "rr", "(# != #)") \
  X(CHAIN, TRUTH, "www", "(# <= # < #)") \
  X(AND, TRUTH, "tt", "(# and #)") \
  X(OR, TRUTH, "tt", "(# or #)") \
  X(AMPERSAND, TRUTH, "tt", "(# & #)") \
  X(BAR, TRUTH, "tt", "(# | #)") \
  X(XOR, TRUTH, "tt", "(# ^ #)") \
  X(NOT, TRUTH, "t", "(not #)") \
  X(INVERT, TRUTH, "t", "(~#)") \
  X(IS_NULL, TRUTH, "r", "is_null(#)") \
  X(IS_VALID, TRUTH, "t", "is_valid(#)") \
  X(ISNAN, TRUTH, "r", "isnan(#)") \
  X(ISIN, TRUTH, "www", "isin(#, #, #)") \
  X(TRUTH_FILLNA, TRUTH, "tt", "fillna(#, #)")

typedef enum operation {
#define X(name, kind, kinds, text) name,
  OPERATIONS(X)
#undef X
    OPERATION_COUNT,
  COLUMN,
  LITERAL
} operation;

static const struct {
  kind kind;
  const char *kinds, *text;
} operations[] = {
#define X(name, kind, kinds, text) { kind, kinds, text },
  OPERATIONS(X)
#undef X
};

typedef struct node {
  operation op;
  kind kind;
  int column;
  value literal;
  struct node *items[3];
} node;

enum { MOST_NODES = 500 };
static node nodes[MOST_NODES];
static int node_count;
static char text[30000];

static void put(const char *added)
{
  REQUIRE(strlen(text) + strlen(added) + 1 < sizeof text);
  strcat(text, added);
}

static void put_leaf(node *made)
{
  char digits[40];
  static const int columns[3][3] = { { 0, 1, 2 }, { 3, 4, 5 }, { 6, 7, 6 } };
  made->op = below(3) ? COLUMN : LITERAL;
  made->column = columns[made->kind][below(3)];
  made->literal = (value){ .number = (below(64) + 1) / 4.0,
                           .integer = made->kind == TRUTH ? below(2) : below(12) };
  snprintf(digits, sizeof digits, made->kind == REAL ? "%.2f" : "%.0f",
           made->kind == REAL ? made->literal.number : (double)made->literal.integer);
  if (made->op == COLUMN) put(table[made->column].spelled);
  else if (made->kind == TRUTH) put(made->literal.integer ? "True" : "false");
  else put(digits);
}

/* Appends the formula to text. */
static node *generate(kind kind, int depth)
{
  node *made = &nodes[node_count++];
  REQUIRE(node_count < MOST_NODES);
  *made = (node){ .kind = kind };
  if (depth == 0 || below(5) == 0) {
    put_leaf(made);
    return made;
  }
  do made->op = (operation)below(OPERATION_COUNT);
  while (operations[made->op].kind != kind);
  const char *kinds = operations[made->op].kinds;
  int count = 0;
  for (const char *at = operations[made->op].text; *at; at++) {
    if (*at == '#') {
      made->items[count] = generate(kinds[count] == 'r'   ? REAL
                                    : kinds[count] == 'w' ? WHOLE
                                                          : TRUTH,
                                    depth - 1);
      count++;
    } else {
      put((char[]){ *at, 0 });
    }
  }
  return made;
}

static int64_t floor_quotient(int64_t x, int64_t y)
{
  if (y == 0) return 0;
  if (y == -1) return (int64_t)(0 - (uint64_t)x);
  int64_t quotient = x / y;
  return quotient * y != x && (x < 0) != (y < 0) ? quotient - 1 : quotient;
}

/* Computes x // y as Python and NumPy define it. The result is exact, while floor(x / y) would
 * round twice. */
static double floor_quotient_of_reals(double x, double y)
{
  if (y == 0) return x / y;
  double rest = fmod(x, y), quotient = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0 || isnan(quotient)) return quotient;
  double whole = floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

/* Computes an operation whose result is null if an operand is null. */
static value compute(operation op, const value *a)
{
  const double x = a[0].number, y = a[1].number;
  const int64_t i = a[0].integer, j = a[1].integer, k = a[2].integer;
  const uint64_t u = (uint64_t)i, w = (uint64_t)j;
  value v = { 0 };
  int decides = 0; /* the result depends on the last bits */
  for (int at = 0; at < 3; at++) v.is_inexact |= a[at].is_inexact;
  switch (op) {
  case ADD: v.number = x + y; break;
  case SUB: v.number = x - y; break;
  case MUL: v.number = x * y; break;
  case SQUARE: v.number = x * x; break;
  case DIV: v.number = x / y; break;
  case WHOLE_DIV: v.number = (double)i / (double)j; break;
  case FLOORDIV:
    v.number = floor_quotient_of_reals(x, y);
    decides = 1;
    break;
  case MIXED: v.number = x + (double)j; break;
  case NEG: v.number = -x; break;
  case SQRT: v.number = sqrt(x); break;
  case ABS: v.number = fabs(x); break;
  case MINIMUM: v.number = x < y || x != x ? x : y; break;
  case TO_REAL: v.number = (double)i; break;
  case WHOLE_ADD: v.integer = (int64_t)(u + w); break;
  case WHOLE_SUB: v.integer = (int64_t)(u - w); break;
  case WHOLE_MUL: v.integer = (int64_t)(u * w); break;
  case WHOLE_FLOORDIV: v.integer = floor_quotient(i, j); break;
  case WHOLE_MOD: v.integer = j ? (int64_t)(u - (uint64_t)floor_quotient(i, j) * w) : 0; break;
  case WHOLE_AND: v.integer = i & j; break;
  case WHOLE_INVERT: v.integer = ~i; break;
  case LT:
    v.integer = x < y;
    decides = 1;
    break;
  case GE: v.integer = i >= j; break;
  case EQ: v.integer = i == j; break;
  case NE:
    v.integer = x != y;
    decides = 1;
    break;
  case XOR: v.integer = i ^ j; break;
  case NOT:
  case INVERT: v.integer = !i; break;
  case ISNAN:
    v.integer = isnan(x);
    decides = 1;
    break;
  case ISIN: v.integer = i == j || i == k; break;
  default: REQUIRE(0);
  }
  if (decides && v.is_inexact) v.is_unknown = 1;
  if (op == DIV || op == SQRT || op == WHOLE_DIV || op == FLOORDIV || fabs(v.number) > 1e9)
    v.is_inexact = 1;
  return v;
}

static value evaluate(const node *n, int row);

static value logic(operation op, value a, value b)
{
  const int stops = op == OR || op == BAR;
  const int a_decides = !a.is_null && a.integer == stops,
            b_decides = !b.is_null && b.integer == stops;
  value v = { .is_unknown = a.is_unknown || b.is_unknown };
  if (a_decides || b_decides) v.integer = stops;
  else v.is_null = a.is_null || b.is_null, v.integer = !stops;
  return v;
}

static value choose(const node *n, int row)
{
  value condition = evaluate(n->items[0], row), v = { .is_null = 1 };
  if (n->op == OR_NULL && !condition.is_null && condition.integer) v = evaluate(n->items[1], row);
  if (n->op != OR_NULL) v = evaluate(n->items[condition.integer ? 1 : 2], row);
  if (condition.is_null) v = (value){ .is_null = 1 };
  v.is_unknown |= condition.is_unknown;
  return v;
}

static value fill(const node *n, int row)
{
  value v = { .is_null = 1 };
  int is_unknown = 0;
  for (int i = 0; i < 3 && n->items[i] && v.is_null; i++) {
    v = evaluate(n->items[i], row);
    is_unknown |= v.is_unknown;
  }
  v.is_unknown = is_unknown;
  return v;
}

/* A chain of comparisons is null if one comparison is null, unless the other one is false. */
static value chain(const value *a)
{
  value first = { .integer = a[0].integer <= a[1].integer,
                  .is_null = a[0].is_null || a[1].is_null },
        second = { .integer = a[1].integer < a[2].integer,
                   .is_null = a[1].is_null || a[2].is_null };
  value v = logic(AND, first, second);
  for (int i = 0; i < 3; i++) v.is_unknown |= a[i].is_unknown;
  return v;
}

/* Computes (x == y) or (x == z). */
static value is_in(const value *a)
{
  value first = { .integer = a[0].integer == a[1].integer,
                  .is_null = a[0].is_null || a[1].is_null },
        second = { .integer = a[0].integer == a[2].integer,
                   .is_null = a[0].is_null || a[2].is_null };
  value v = logic(OR, first, second);
  for (int i = 0; i < 3; i++) v.is_unknown |= a[i].is_unknown;
  return v;
}

static value evaluate(const node *n, int row)
{
  value a[3] = { 0 }, v;
  int is_null = 0, is_unknown = 0;
  if (n->op == COLUMN) return rows[n->column][row];
  if (n->op == LITERAL) return n->literal;
  if (n->op == WHERE || n->op == WHOLE_WHERE || n->op == OR_NULL) return choose(n, row);
  if (n->op == FILLNA || n->op == TRUTH_FILLNA || n->op == WHOLE_COALESCE) return fill(n, row);
  for (int i = 0; i < 3 && n->items[i]; i++) {
    a[i] = evaluate(n->items[i], row);
    is_null |= a[i].is_null;
    is_unknown |= a[i].is_unknown;
  }
  if (n->op == AND || n->op == OR || n->op == AMPERSAND || n->op == BAR)
    return logic(n->op, a[0], a[1]);
  if (n->op == CHAIN) return chain(a);
  if (n->op == ISIN) return is_in(a);
  if (n->op == IS_NULL || n->op == IS_VALID)
    return (value){ .integer = a[0].is_null == (n->op == IS_NULL), .is_unknown = is_unknown };
  if (n->op == NULLIF) {
    v = a[0];
    is_unknown |= !is_null && (a[0].is_inexact || a[1].is_inexact);
    v.is_null |= !is_null && a[0].number == a[1].number;
  } else {
    v = compute(n->op, a);
    v.is_null = is_null;
  }
  v.is_unknown |= is_unknown;
  return v;
}

/* ---- runs ---- */

static void describe_columns(kjit_formula_column *columns)
{
  for (int c = 0; c < COLUMNS; c++)
    columns[c] = (kjit_formula_column){ table[c].name, table[c].type, table[c].flags, 0 };
}

static kjit_status create(const char *formula, uint32_t flags, kjit_formula **made)
{
  kjit_formula_column columns[COLUMNS];
  describe_columns(columns);
  const kjit_formula_options options = {
    .size_bytes = sizeof options, .flags = flags, .columns = columns, .column_count = COLUMNS
  };
  current = formula;
  return kjit_create_formula(context, &options, formula, strlen(formula), made);
}

static int is_close(double x, double y)
{
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  return x == y || fabs(x - y) <= 1e-9 * (fabs(x) + fabs(y)) || fabs(x - y) < 1e-9;
}

static int is_right(const value *v, const kjit_formula_info *info, const unsigned char *result,
                    int row)
{
  double number;
  int64_t integer;
  if (info->type == KJIT_F64) {
    memcpy(&number, result + 8 * row, 8);
    return is_close(number, v->number) || (v->is_inexact && fabs(v->number) > 1e15) ||
           (v->is_inexact && !isfinite(v->number));
  }
  if (info->type == KJIT_I64) memcpy(&integer, result + 8 * row, 8);
  else if (info->flags & KJIT_COLUMN_BITS) integer = result[row >> 3] >> (row & 7) & 1;
  else integer = result[row];
  return integer == v->integer;
}

/* Compares the results of a formula, and returns the number of compared rows. */
static int compare(const node *root, const kjit_formula_info *info, const unsigned char *result,
                   const unsigned char *validity, int count)
{
  int compared = 0;
  for (int i = 0; i < count; i++) {
    value v = evaluate(root, i);
    int is_null = (info->flags & KJIT_COLUMN_NULLABLE) && !(validity[i >> 3] >> (i & 7) & 1);
    if (v.is_unknown) continue;
    compared++;
    if (is_null != v.is_null || (!is_null && !is_right(&v, info, result, i)))
      printf("row %d of %d: null %d, %g; expected null %d, %g, %lld\n", i, count, is_null,
             info->type == KJIT_F64 ? ((const double *)(const void *)result)[i] : result[i],
             v.is_null, v.number, (long long)v.integer);
    REQUIRE(is_null == v.is_null);
    REQUIRE(is_null || is_right(&v, info, result, i));
  }
  for (int i = count; i < (count + 7) / 8 * 8; i++)
    REQUIRE(!(info->flags & KJIT_COLUMN_NULLABLE) || !(validity[i >> 3] >> (i & 7) & 1));
  return compared;
}

static int run_chunk(const kjit_formula *formula, const node *root, const kjit_formula_info *info)
{
  static const int counts[] = { 0, 1, 7, 8, 63, 64, 65, 128, 600 };
  static unsigned char result[MOST_ROWS * 8 + 64], validity[MOST_ROWS / 8 + 64];
  int count = below(2) ? counts[below(9)] : below(MOST_ROWS - 40), nulls = below(4) % 3;
  kjit_column columns[COLUMNS];
  for (int c = 0; c < COLUMNS; c++) fill_column(c, count, below(3) ? nulls : below(3), &columns[c]);
  for (int c = 0; c < COLUMNS; c++)
    if (!kjit_uses_column(formula, (size_t)c)) columns[c] = (kjit_column){ NULL, NULL, -1 };
  memset(result, 0xa5, sizeof result);
  memset(validity, 0xa5, sizeof validity);
  const kjit_column out = { result, validity, 0 };
  REQUIRE(kjit_run_formula(formula, columns, &out, count, NULL) == KJIT_OK);
  const int bytes = info->flags & KJIT_COLUMN_BITS ? (count + 7) / 8
                    : info->type == KJIT_BOOL      ? count
                                                   : 8 * count;
  for (int i = bytes; i < (int)sizeof result; i++) REQUIRE(result[i] == 0xa5);
  int bitmap = info->flags & KJIT_COLUMN_NULLABLE ? (count + 7) / 8 : 0;
  for (int i = bitmap; i < (int)sizeof validity; i++) REQUIRE(validity[i] == 0xa5);
  return compare(root, info, result, validity, count);
}

static void test_random(int formulas)
{
  int compared = 0;
  for (int i = 0; i < formulas; i++) {
    kjit_formula *formula = NULL;
    kjit_formula_info info = { .size_bytes = sizeof info };
    node_count = 0;
    text[0] = 0;
    const node *root = generate((kind)below(3), 1 + below(4));
    REQUIRE(create(text, below(2) ? KJIT_COLUMN_BITS : 0, &formula) == KJIT_OK);
    REQUIRE(kjit_get_formula_info(formula, &info) == KJIT_OK);
    REQUIRE(info.type == (root->kind == REAL    ? KJIT_F64
                          : root->kind == WHOLE ? KJIT_I64
                                                : KJIT_BOOL));
    for (int chunk = 0; chunk < 5; chunk++) compared += run_chunk(formula, root, &info);
    kjit_destroy_formula(formula);
  }
  REQUIRE(compared > formulas * 100);
}

/* ---- rejected texts ---- */

static void test_messages(void)
{
  static const struct {
    const char *text;
    kjit_status status;
    uint32_t column;
    const char *words;
  } cases[] = {
    { "x + distance", KJIT_ERROR_NAME, 5, "no column `distance`" },
    { "x + locall", KJIT_ERROR_NAME, 5, "did you mean `local`?" },
    { "sqr(x)", KJIT_ERROR_NAME, 1, "did you mean `sqrt`?" },
    { "x + `trip distance` + `trip`", KJIT_ERROR_NAME, 23, "`trip`" },
    { "x + `trip distance", KJIT_ERROR_SYNTAX, 5, "unterminated" },
    { "sum(x)", KJIT_ERROR_NAME, 1, "kjit_reduce" },
    { "x & flag", KJIT_ERROR_TYPE, 3, "`&` of f64 and bool" },
    { "x and flag", KJIT_ERROR_TYPE, 3, "`and` of f64 and bool" },
    { "flag + sin", KJIT_ERROR_TYPE, 6, "`+` of bool and bool" },
    { "where(x, x, y)", KJIT_ERROR_TYPE, 7, "argument 1 of `where` is f64" },
    { "where(flag, x)", KJIT_ERROR_TYPE, 1, "takes 3 arguments" },
    { "x > 0 & n > 0", KJIT_ERROR_SYNTAX, 7, "`&` has higher precedence than `>`" },
    { "x << 2", KJIT_ERROR_TYPE, 3, "two integers" },
    { "x if flag else y", KJIT_ERROR_SYNTAX, 3, "where(c, a, b)" },
    { "flag ? x : y", KJIT_ERROR_SYNTAX, 6, "where(c, a, b)" },
    { "x[0]", KJIT_ERROR_SYNTAX, 1, "indices" },
    { "x.shape", KJIT_ERROR_SYNTAX, 3, "attributes" },
    { "null", KJIT_ERROR_TYPE, 1, "null in all rows" },
    { "10 ** 30", KJIT_ERROR_TYPE, 4, "64 bits" },
    { "", KJIT_ERROR_SYNTAX, 1, "found nothing" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    kjit_formula *formula = NULL;
    kjit_status status = create(cases[i].text, 0, &formula);
    const kjit_diagnostic *said = kjit_get_diagnostic(context, 0);
    if (status != cases[i].status || !said || said->column != cases[i].column ||
        !strstr(said->message, cases[i].words))
      printf("%s at %u: %s\n", kjit_get_status_name(status), said ? said->column : 0,
             said ? said->message : "");
    REQUIRE(status == cases[i].status && !formula);
    REQUIRE(said && said->line == 1 && said->column == cases[i].column);
    REQUIRE(!strcmp(said->file, "formula") && strstr(said->message, cases[i].words));
  }
}

enum { LARGE_BYTES = 200000, LARGE_TEXTS = 6 };

static void write_large_text(size_t number, char large[LARGE_BYTES])
{
  large[0] = 0;
  switch (number) {
  case 0: memset(large, '(', 60000), large[60000] = 0; break;
  case 1: memset(large, '-', 60000), large[60000] = 0; break;
  case 2:
    for (int k = 0; k < 250; k++) strcat(large, "sin("); /* too deep */
    break;
  case 3: /* the middle operand of each chain counts twice */
    for (int k = 0; k < 150; k++) strcat(large, "(x<");
    strcat(large, "x");
    for (int k = 0; k < 150; k++) strcat(large, "<x)");
    break;
  case 4:
    strcat(large, "coalesce(x");
    for (int k = 0; k < 254; k++) strcat(large, ",where(flag,null,x)");
    strcat(large, ")");
    break;
  default: memset(large, 'x', LARGE_BYTES - 1), large[LARGE_BYTES - 1] = 0; /* text_limit_bytes */
  }
}

/* Hostile texts: each must give an error, or a formula that computes. */
static void test_hostile(void)
{
  static const char *const texts[] = {
    "x; y",
    "x } kernel k(r) { r[0] = 1",
    "x\n}\nkernel k(r) { r[0] = 1 }",
    "x # y",
    "@line(1, 1, \"other\") x",
    "x = 1",
    "atomic_add(x, 1)",
    "syncthreads()",
    "pointer(x)[9]",
    "ptx(\"trap;\")",
    "import \"block\"",
    "formula_row(x)",
    "formula_store(x, 1, 2, 3)",
    "\"text\"",
    "x \xff",
    "threadIdx.x",
    "len(x)",
    "dtype(x)(1)",
    "f32x4(x)",
    "x, y",
    "(x,)",
    "()",
    "()()",
    "where",
    "where()",
    "sin(sin)",
    "`x",
    "``",
    "`x\ny`",
    "1 << 99999999999",
    "n << 1000",
    "n ** 9223372036854775807",
    "n // 0 + n % 0",
    "2 ** 2 ** 2 ** 2 ** 2",
    "-9223372036854775808",
    "n - 9223372036854775808",
    "18446744073709551615 + n",
    "1e400",
    "n == 18446744073709551615",
    "int8(1e300 * x) ** int8(-1e300 * x)",
    "uint64(-x) % n",
    "isin(n)",
    "zero(x)",
    "x as y",
  };
  const size_t count = sizeof texts / sizeof *texts;
  static char large[LARGE_BYTES];
  for (size_t i = 0; i < count + LARGE_TEXTS; i++) {
    const char *formula = i < count ? texts[i] : large;
    if (i >= count) write_large_text(i - count, large);
    kjit_formula *made = NULL;
    if (create(formula, 0, &made) != KJIT_OK) {
      REQUIRE(!made && kjit_get_diagnostic(context, 0));
      continue;
    }
    static unsigned char result[MOST_ROWS * 8], validity[MOST_ROWS];
    const kjit_column out = { result, validity, 0 };
    kjit_column columns[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) fill_column(c, 100, 1, &columns[c]);
    kjit_status status = kjit_run_formula(made, columns, &out, 100, NULL);
    REQUIRE(status == KJIT_OK || status == KJIT_ERROR_KERNEL);
    kjit_destroy_formula(made);
  }
}

static void test_limits(void)
{
  kjit_formula *formula = NULL;
  kjit_formula_column column = { "x", KJIT_F64, 0, 0 };
  kjit_formula_options options = { .size_bytes = sizeof options,
                                   .name = "price \"net\"",
                                   .columns = &column,
                                   .column_count = 1,
                                   .operation_limit = 3 };
  current = "x + x + x + x + x";
  REQUIRE(kjit_create_formula(context, &options, "x + x + x + x", 13, &formula) == KJIT_OK);
  kjit_destroy_formula(formula);
  REQUIRE(kjit_create_formula(context, &options, current, strlen(current), &formula) ==
          KJIT_ERROR_LIMIT);
  REQUIRE(!strcmp(kjit_get_diagnostic(context, 0)->file, "price \"net\""));
  options.operation_limit = 0;
  options.text_limit_bytes = 16;
  REQUIRE(kjit_create_formula(context, &options, current, strlen(current), &formula) ==
          KJIT_ERROR_LIMIT);
}

/* ---- misuse ---- */

static kjit_status create_with(const char *name, kjit_type type, uint32_t flags)
{
  kjit_formula *formula = NULL;
  const kjit_formula_column columns[] = { { "x", KJIT_F64, 0, 0 }, { name, type, flags, 0 } };
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .columns = columns,
                                         .column_count = 2 };
  kjit_status status = kjit_create_formula(context, &options, "x", 1, &formula);
  kjit_destroy_formula(formula);
  return status;
}

/* Types of x + y for columns of two integer types, as in NumPy, except that small types give i32.
 */
static void test_unsigned(void)
{
  static const struct {
    kjit_type x, y, sum;
  } rows[] = {
    { KJIT_U64, KJIT_U64, KJIT_U64 },  { KJIT_U64, KJIT_U32, KJIT_U64 },
    { KJIT_U16, KJIT_U64, KJIT_U64 },  { KJIT_U64, KJIT_U8, KJIT_U64 },
    { KJIT_U64, KJIT_BOOL, KJIT_U64 }, { KJIT_U64, KJIT_I8, KJIT_F64 },
    { KJIT_I64, KJIT_U64, KJIT_F64 },  { KJIT_U32, KJIT_U32, KJIT_I64 },
    { KJIT_U32, KJIT_I32, KJIT_I64 },  { KJIT_U8, KJIT_U16, KJIT_I32 },
    { KJIT_BOOL, KJIT_I16, KJIT_I32 }, { KJIT_I64, KJIT_U8, KJIT_I64 },
  };
  current = "integer types";
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_formula *formula = NULL;
    kjit_formula_info info = { .size_bytes = sizeof info };
    const kjit_formula_column columns[] = { { "x", rows[i].x, 0, 0 }, { "y", rows[i].y, 0, 0 } };
    const kjit_formula_options options = { .size_bytes = sizeof options,
                                           .columns = columns,
                                           .column_count = 2 };
    REQUIRE(kjit_create_formula(context, &options, "x + y", 5, &formula) == KJIT_OK);
    REQUIRE(kjit_get_formula_info(formula, &info) == KJIT_OK);
    REQUIRE(info.type == rows[i].sum);
    if (info.type == KJIT_U64) {
      /* The first bytes of y are the same number in each unsigned type and in bool. */
      const uint64_t top = UINT64_C(1) << 63;
      uint64_t x = top | next_random(), y = next_random() & 1;
      const kjit_column large = { &x, NULL, 0 }, small = { &y, NULL, 0 };
      const int is_first = rows[i].x == KJIT_U64;
      const kjit_column given[] = { is_first ? large : small, is_first ? small : large };
      uint64_t sum;
      const kjit_column out = { &sum, NULL, 0 };
      REQUIRE(kjit_run_formula(formula, given, &out, 1, NULL) == KJIT_OK);
      REQUIRE(sum == x + y);
    }
    kjit_destroy_formula(formula);
  }
}

static void test_misuse(void)
{
  kjit_formula *formula = NULL;
  double values[4] = { 0 };
  current = "misuse";
  REQUIRE(create_with("y", KJIT_F64, 0) == KJIT_OK);
  REQUIRE(create_with("x", KJIT_F64, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with(NULL, KJIT_F64, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("", KJIT_F64, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("a`b", KJIT_F64, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("a\nb", KJIT_F64, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("\xff", KJIT_F64, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("y", KJIT_C64, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("y", KJIT_ANY, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("y", 12345, 0) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("y", KJIT_F64, KJIT_COLUMN_BITS) == KJIT_ERROR_MISUSE);
  REQUIRE(create_with("y", KJIT_F64, 8) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_create_formula(context, NULL, NULL, 0, &formula) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_create_formula(context, NULL, "1", 1, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(create("x + y", 0, &formula) == KJIT_OK);
  unsigned char validity[1];
  kjit_column columns[COLUMNS] = { { values, NULL, 0 }, { values, NULL, 0 } },
              out = { values, validity, 0 };
  REQUIRE(kjit_run_formula(formula, columns, NULL, 1, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_run_formula(formula, NULL, &out, 1, NULL) == KJIT_ERROR_MISUSE);
  REQUIRE(kjit_run_formula(formula, columns, &out, -1, NULL) == KJIT_ERROR_ARGUMENT);
  columns[1].validity = validity; /* y has no nulls */
  REQUIRE(kjit_run_formula(formula, columns, &out, 1, NULL) == KJIT_ERROR_ARGUMENT);
  columns[1] = (kjit_column){ values, NULL, -1 };
  REQUIRE(kjit_run_formula(formula, columns, &out, 1, NULL) == KJIT_ERROR_ARGUMENT);
  columns[1] = (kjit_column){ NULL, NULL, 0 };
  REQUIRE(kjit_run_formula(formula, columns, &out, 1, NULL) == KJIT_ERROR_MISUSE);
  columns[1].values = values;
  out.offset = 1;
  REQUIRE(kjit_run_formula(formula, columns, &out, 1, NULL) == KJIT_ERROR_ARGUMENT);
  out = (kjit_column){ values + 1, NULL, 0 };
  REQUIRE(kjit_run_formula(formula, columns, &out, 1, NULL) == KJIT_ERROR_MISUSE);
  kjit_destroy_formula(formula);
  kjit_destroy_formula(NULL);
}

/* Compiles the kernels for GPUs without running them. */
static void test_gpu(void)
{
  static const char *const texts[] = { "x * 2 + y", "where(flag, x, n)", "flag and sin",
                                       "fillna(x, 0) > y" };
  kjit_context *own = context;
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "", .target = "sm_80" };
  kjit_device *gpu;
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  REQUIRE(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &gpu) == KJIT_OK);
  const kjit_formula_run options = { .size_bytes = sizeof options, .device = gpu };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    static unsigned char result[MOST_ROWS * 8], validity[MOST_ROWS];
    const kjit_column out = { result, validity, 0 };
    kjit_column columns[COLUMNS];
    kjit_formula *formula = NULL;
    for (int c = 0; c < COLUMNS; c++) fill_column(c, 100, 1, &columns[c]);
    REQUIRE(create(texts[i], KJIT_COLUMN_BITS, &formula) == KJIT_OK);
    REQUIRE(kjit_run_formula(formula, columns, &out, 100, &options) == KJIT_OK);
    kjit_destroy_formula(formula);
  }
  REQUIRE(kjit_destroy_context(context) == KJIT_OK);
  context = own;
}

int main(int argc, char **argv)
{
  const int has_checks = argc > 1;
  seed = argc > 2 ? strtoull(argv[2], NULL, 0) : kj_draw_seed();
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = "",
                         .checks = has_checks ? KJIT_CHECK_BOUNDS | KJIT_CHECK_ASSERT : 0 };
  printf("seed %llu\n", seed);
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  test_random(argc > 3 ? atoi(argv[3]) : has_checks ? 5 : 20);
  test_messages();
  test_hostile();
  test_limits();
  test_unsigned();
  test_misuse();
  if (!has_checks) test_gpu();
  REQUIRE(kjit_destroy_context(context) == KJIT_OK);
  return EXIT_SUCCESS;
}
