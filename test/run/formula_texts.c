/* Columns of texts in formulas: random dictionaries and indices of several types with nulls,
 * compared with the texts; indices outside of the dictionary; messages.
 * RUN: %programs/formula_texts
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

enum { ROWS = 500, MOST_TEXTS = 100, OFFSET = 3 };
static kjit_context *context;
static char storage[MOST_TEXTS][4];
static const char *items[MOST_TEXTS];
static kjit_formula_texts texts[3];
static uint8_t codes[ROWS + OFFSET];
static int32_t others[ROWS + OFFSET];
static uint8_t bits[(ROWS + OFFSET + 7) / 8];
static const kjit_formula_column columns[] = {
  { "s", KJIT_U8, KJIT_COLUMN_TEXT | KJIT_COLUMN_NULLABLE, 0 },
  { "t", KJIT_I32, KJIT_COLUMN_TEXT, 0 },
  { "x", KJIT_F64, 0, 0 },
};

static int compare_texts(const void *x, const void *y) { return strcmp(x, y); }

/* Fills a dictionary with different texts of up to 3 letters, sorted or not. */
static void fill(int is_ordered)
{
  size_t count = 0;
  for (int i = 0; i < MOST_TEXTS; i++) {
    char text[4] = { 0 };
    size_t same = 0, length = next_random() % 4;
    for (size_t k = 0; k < length; k++) text[k] = (char)('a' + next_random() % 4);
    while (same < count && strcmp(storage[same], text) != 0) same++;
    if (same == count) memcpy(storage[count++], text, sizeof text);
  }
  if (is_ordered) qsort(storage, count, sizeof *storage, compare_texts);
  for (size_t i = 0; i < count; i++) items[i] = storage[i];
  texts[0] = texts[1] = (kjit_formula_texts){ items, count };
  for (int i = 0; i < ROWS + OFFSET; i++) {
    int is_outside = next_random() % 50 == 0;
    codes[i] = (uint8_t)(is_outside ? 255 : next_random() % count);
    others[i] = is_outside ? -1 : (int32_t)(next_random() % count);
    if (next_random() % 4) bits[i / 8] |= (uint8_t)(1 << i % 8);
    else bits[i / 8] &= (uint8_t) ~(1 << i % 8);
  }
}

static kjit_status make(const char *text, kjit_formula **formula)
{
  const kjit_formula_options options = {
    .size_bytes = sizeof options, .columns = columns, .column_count = 3, .texts = texts
  };
  current = text;
  return kjit_create_formula(context, &options, text, strlen(text), formula);
}

static void compute(const char *text, uint8_t *values, uint8_t *validity)
{
  kjit_formula *formula;
  static double x[ROWS + OFFSET];
  kjit_status status = make(text, &formula);
  kjit_print_error(context, status, text);
  REQUIRE(status == KJIT_OK);
  const kjit_column given[] = { { codes, bits, OFFSET },
                                { others, NULL, OFFSET },
                                { x, NULL, OFFSET } };
  const kjit_column result = { values, validity, 0 };
  memset(validity, 0xff, (ROWS + 7) / 8);
  REQUIRE(kjit_run_formula(formula, given, &result, ROWS, NULL) == KJIT_OK);
  kjit_destroy_formula(formula);
}

static int compare(int op, int order)
{
  return op == 0   ? order < 0
         : op == 1 ? order <= 0
         : op == 2 ? order > 0
         : op == 3 ? order >= 0
         : op == 4 ? order == 0
                   : order != 0;
}

static const char *const operators[] = { "<", "<=", ">", ">=", "==", "!=" };

static int is_valid(const uint8_t *validity, int row) { return validity[row / 8] >> row % 8 & 1; }

static void test_literal(void)
{
  uint8_t values[ROWS], validity[(ROWS + 7) / 8];
  for (int op = 0; op < 6; op++)
    for (int form = 0; form < 3; form++) {
      const char *literal = next_random() % 5 ? items[next_random() % texts[0].count] : "bbbb";
      char text[64];
      snprintf(text, sizeof text, form == 2 ? "'%s' %s t" : "%s %s '%s'",
               form == 2   ? literal
               : form == 1 ? "t"
                           : "s",
               operators[op], literal);
      compute(text, values, validity);
      for (int i = 0; i < ROWS; i++) {
        const int32_t code = form ? others[i + OFFSET] : codes[i + OFFSET];
        const int is_null = !form && !(bits[(i + OFFSET) / 8] >> (i + OFFSET) % 8 & 1);
        REQUIRE(is_valid(validity, i) == !is_null);
        if (is_null) continue;
        const int is_inside = code >= 0 && code < (int)texts[0].count;
        const int order = is_inside ? strcmp(items[code], literal) : 0;
        REQUIRE(values[i] == (is_inside && compare(op, form == 2 ? -order : order)));
      }
    }
}

static void test_words(void)
{
  uint8_t values[ROWS], validity[(ROWS + 7) / 8];
  static const char *const forms[] = { "startswith(t, 'ab')", "endswith(t, 'b')",
                                       "contains(t, 'c')", "t in ('zz', 'bc', 'a', 'bc')",
                                       "t not in ['', 'd']" };
  for (int form = 0; form < 5; form++) {
    compute(forms[form], values, validity);
    for (int i = 0; i < ROWS; i++) {
      const int32_t code = others[i + OFFSET];
      if (code < 0) continue;
      const char *own = items[code];
      const size_t length = strlen(own);
      const int holds = form == 0   ? !strncmp(own, "ab", 2)
                        : form == 1 ? length && own[length - 1] == 'b'
                        : form == 2 ? strchr(own, 'c') != NULL
                        : form == 3 ? !strcmp(own, "a") || !strcmp(own, "bc")
                                    : length != 0 && strcmp(own, "d") != 0;
      REQUIRE(values[i] == holds);
    }
  }
}

static void test_columns(void)
{
  uint8_t values[ROWS], validity[(ROWS + 7) / 8];
  for (int op = 0; op < 6; op++) {
    char text[16];
    snprintf(text, sizeof text, "s %s t", operators[op]);
    compute(text, values, validity);
    for (int i = 0; i < ROWS; i++) {
      const int code = codes[i + OFFSET], other = others[i + OFFSET];
      if (!is_valid(validity, i) || code == 255 || other < 0) continue;
      REQUIRE(values[i] == compare(op, strcmp(items[code], items[other])));
    }
  }
}

/* Returns the text that a formula computes for a row, computed here from the columns. */
static const char *text_of(int form, int row)
{
  const int code = codes[row + OFFSET], other = others[row + OFFSET];
  const char *s = bits[(row + OFFSET) / 8] >> (row + OFFSET) % 8 & 1 ? items[code] : NULL;
  const char *t = other < 0 ? "" : items[other];
  switch (form) {
  case 0: return s;
  case 1: return t[0] == 'a' ? "yes" : "no";
  case 2: return s ? s : "none";
  case 3: return s && !strcmp(s, "a") ? NULL : s;
  case 4: return t[0] == 'a' ? s : t[0] == 'b' ? "new" : t[0] == 'c' ? "a" : NULL;
  case 5: return !s ? "x" : !strcmp(s, "b") ? "y" : "z";
  default: return t[0] == 'a' ? (s ? s : "y") : t[0] == 'b' ? "x" : (s ? s : "w");
  }
}

/* Formulas whose results are texts: indices into the dictionary of the formula. */
static void test_results(void)
{
  static const char *const forms[] = {
    "s",
    "where(startswith(t, 'a'), 'yes', 'no')",
    "fillna(s, 'none')",
    "nullif(s, 'a')",
    "where(startswith(t, 'a'), s, where(startswith(t, 'b'), 'new', where(startswith(t, 'c'), 'a', "
    "null)))",
    "where(where(is_null(s), 'x', where(s == 'b', 'y', s)) in ('x', 'y'), "
    "where(is_null(s), 'x', 'y'), 'z')",
    "where(startswith(t, 'a'), fillna(s, 'y'), where(startswith(t, 'b'), 'x', coalesce(s, 'w')))",
  };
  for (int form = 0; form < 7; form++) {
    int64_t words[ROWS];
    uint8_t validity[(ROWS + 7) / 8];
    kjit_formula *formula;
    compute(forms[form], (uint8_t *)words, validity);
    REQUIRE(make(forms[form], &formula) == KJIT_OK);
    kjit_formula_info info = { .size_bytes = sizeof info };
    REQUIRE(kjit_get_formula_info(formula, &info) == KJIT_OK);
    REQUIRE((info.flags & KJIT_COLUMN_TEXT) != 0);
    REQUIRE(info.type == (form == 0 || form == 3 ? KJIT_U8 : KJIT_I32));
    const kjit_formula_texts *made = kjit_get_formula_texts(formula);
    for (int i = 0; i < ROWS; i++) {
      if (codes[i + OFFSET] >= texts[0].count || others[i + OFFSET] >= (int)texts[1].count)
        continue;
      const char *wanted = text_of(form, i);
      const int is_null = (info.flags & KJIT_COLUMN_NULLABLE) && !is_valid(validity, i);
      const int64_t index = info.type == KJIT_U8 ? ((uint8_t *)words)[i] : ((int32_t *)words)[i];
      REQUIRE(is_null == !wanted);
      REQUIRE(!wanted || (index >= 0 && index < (int64_t)made->count));
      REQUIRE(!wanted || !strcmp(made->items[index], wanted));
    }
    for (size_t i = 0; i < made->count; i++)
      for (size_t j = 0; j < i; j++) REQUIRE(strcmp(made->items[i], made->items[j]) != 0);
    kjit_destroy_formula(formula);
  }
  kjit_formula *number;
  REQUIRE(make("x + 1", &number) == KJIT_OK && !kjit_get_formula_texts(number));
  kjit_destroy_formula(number);
}

/* An index outside of a dictionary is also outside of a longer dictionary that contains its
 * texts. */
static void test_outside(void)
{
  static const char *const words[] = { "a", "b" };
  const kjit_formula_texts two = { words, 2 };
  const kjit_formula_column column = { "s", KJIT_I32, KJIT_COLUMN_TEXT, 0 };
  const kjit_formula_options options = {
    .size_bytes = sizeof options, .columns = &column, .column_count = 1, .texts = &two
  };
  static const char text[] = "where(s == 'a', 'c', s)";
  int32_t given[] = { 0, 1, 2, -1, 1 << 30 }, found[5];
  kjit_formula *formula;
  const kjit_column chunk = { given, NULL, 0 }, result = { found, NULL, 0 };
  REQUIRE(kjit_create_formula(context, &options, text, sizeof text - 1, &formula) == KJIT_OK);
  REQUIRE(kjit_get_formula_texts(formula)->count == 3);
  REQUIRE(kjit_run_formula(formula, &chunk, &result, 5, NULL) == KJIT_OK);
  REQUIRE(found[0] == 2 && found[1] == 1);
  for (int i = 2; i < 5; i++) REQUIRE(found[i] == -1);
  kjit_destroy_formula(formula);
}

static void refuse(const char *text, kjit_status expected, const char *message)
{
  kjit_formula *formula = NULL;
  REQUIRE(make(text, &formula) == expected);
  const kjit_diagnostic *first = kjit_get_diagnostic(context, 0);
  if (!strstr(first->message, message)) fprintf(stderr, "%s\n", first->message);
  REQUIRE(strstr(first->message, message) != NULL && first->line == 1);
}

static void test_refused(void)
{
  refuse("s + 1", KJIT_ERROR_TYPE,
         "`+` cannot be applied to a column of texts and an integer literal");
  refuse("s == 1", KJIT_ERROR_TYPE, "texts can only be compared with texts");
  refuse("where(x > 1, s, 1)", KJIT_ERROR_TYPE, "argument 2 of `where` is a column of texts");
  refuse("where(x > 1, 'a', x)", KJIT_ERROR_TYPE, "a text can be combined only with");
  refuse("where(s, 'a', 'b')", KJIT_ERROR_TYPE, "argument 1 of `where` is a column of texts");
  refuse("'a'", KJIT_ERROR_TYPE, "the formula is a text");
  refuse("contains(x, 'a')", KJIT_ERROR_TYPE, "a column of texts is expected");
  refuse("contains(s, x)", KJIT_ERROR_TYPE, "argument 2 of `contains` is f64; a text is expected");
  refuse("nullif('a', s) == s", KJIT_ERROR_TYPE, "argument 1 of `nullif` is a text; a column is");
  refuse("s == t in ('a')", KJIT_ERROR_SYNTAX, "parentheses around `x in (1, 2)` next to `==`");
  refuse("'a' < s < 'b' in ('a')", KJIT_ERROR_SYNTAX, "around `x in (1, 2)` next to `and`");
  refuse("s in ('a') == t", KJIT_ERROR_SYNTAX, "parentheses around `x in (1, 2)` next to `==`");
  refuse("s in ('a') in ('b')", KJIT_ERROR_SYNTAX, "around `x in (1, 2)` next to `in`");
  refuse("x in (1) + 1", KJIT_ERROR_SYNTAX, "parentheses around `x in (1, 2)` next to `+`");
  refuse("(x > 1) & s in ('a')", KJIT_ERROR_SYNTAX, "around `x in (1, 2)` next to `&`");
  refuse("s in 'a'", KJIT_ERROR_SYNTAX, "expected values in parentheses after `in`");
  refuse("s not 3", KJIT_ERROR_SYNTAX, "expected `in` after `not`");
  refuse("'a' == 'b'", KJIT_ERROR_TYPE,
         "a text can be combined only with a timestamp or a column of texts");
  texts[1].count--;
  refuse("where(x > 1, s, t)", KJIT_ERROR_TYPE, "combined only if they have the same dictionary");
  refuse("s == t", KJIT_ERROR_TYPE, "only if they have the same dictionary and its texts ascend");
  texts[1].items = NULL;
  kjit_formula *formula;
  REQUIRE(make("x", &formula) == KJIT_ERROR_MISUSE);
  REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, "texts[1], of `t`, is NULL") != NULL);
}

static void test_count(void)
{
  enum { VALUES = 2500, MOST_BYTES = 16 + 4 * VALUES };
  static char text[MOST_BYTES];
  for (int is_number = 0; is_number < 2; is_number++) {
    size_t length = (size_t)snprintf(text, MOST_BYTES, is_number ? "x in (0" : "s in (''");
    for (int i = 0; i < VALUES; i++) {
      if (i == 1000) {
        kjit_formula *formula;
        strcpy(text + length, ")");
        REQUIRE(make(text, &formula) == KJIT_OK);
        kjit_destroy_formula(formula);
      }
      length += (size_t)snprintf(text + length, MOST_BYTES - length, is_number ? ",%d" : ",'%c'",
                                 is_number ? i % 9 : 'a');
    }
    strcpy(text + length, ")");
    refuse(text, KJIT_ERROR_LIMIT, "more than 2000 operators, calls and values of `in`");
  }
}

/* The size of a formula's code is limited, however the matches are distributed in the
 * dictionary. */
static void test_limits(void)
{
  enum { COUNT = 2002 };
  static char words[COUNT][16];
  static const char *list[COUNT];
  kjit_formula_texts many = { list, COUNT };
  const kjit_formula_column column = { "k", KJIT_I32, KJIT_COLUMN_TEXT, 0 };
  const kjit_formula_options options = {
    .size_bytes = sizeof options, .columns = &column, .column_count = 1, .texts = &many
  };
  static const char one[] = "contains(k, 'a')";
  static const char five[] = "contains(k, 'a') | contains(k, 'b') | contains(k, 'a') | "
                             "contains(k, 'b') | contains(k, 'a')";
  const size_t four_bytes = strlen(five) - strlen(" | ") - strlen(one);
  kjit_formula *formula;
  for (int i = 0; i < COUNT; i++) {
    snprintf(words[i], sizeof words[i], "%c%d", "ab"[i % 2], i);
    list[i] = words[i];
  }
  REQUIRE(kjit_create_formula(context, &options, one, strlen(one), &formula) == KJIT_ERROR_LIMIT);
  REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, "more than 1000 ranges") != NULL);
  many.count = 2000;
  REQUIRE(kjit_create_formula(context, &options, five, four_bytes, &formula) == KJIT_OK);
  kjit_destroy_formula(formula);
  REQUIRE(kjit_create_formula(context, &options, five, strlen(five), &formula) == KJIT_ERROR_LIMIT);
  REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, "in all comparisons together") != NULL);
  list[1999] = "\xff";
  REQUIRE(kjit_create_formula(context, &options, "1", 1, &formula) == KJIT_ERROR_MISUSE);
  REQUIRE(strstr(kjit_get_diagnostic(context, 0)->message, "items[1999], of `k`, is not UTF-8") !=
          NULL);
}

int main(int argc, char **argv)
{
  seed = argc > 1 ? strtoull(argv[1], NULL, 10) : kj_draw_seed();
  REQUIRE(kjit_create_context(NULL, &context) == KJIT_OK);
  for (int i = 0; i < 4; i++) {
    fill(i % 2);
    test_literal();
    test_words();
    if (i % 2) test_columns();
    if (i % 2) test_results();
  }
  test_outside();
  test_count();
  test_refused();
  test_limits();
  kjit_destroy_context(context);
  puts("ok");
  return EXIT_SUCCESS;
}
