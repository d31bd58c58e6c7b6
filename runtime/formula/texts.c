/* Translates operations on columns of texts. Such a column holds indices into a dictionary. A
 * comparison with a literal is true for some texts of the dictionary. This file finds the index
 * ranges of these texts, and the kernel compares the index of a row with these ranges. */
#include <stdlib.h>
#include <string.h>

#include "formula/formula.h"

enum {
  MOST_RANGES = 1000, /* maximum number of ranges of one comparison */
  MOST_RANGES_OF_FORMULA = 4000,
  /* number of comparisons in one expression; it limits the expression's depth */
  RANGES_OF_STATEMENT = 16
};

/* ---- tests of texts ---- */

typedef struct text_test {
  const char *word; /* a function of functions.def, or NULL */
  kjit_op op;       /* a comparison, if word is NULL */
  const char *literal;
  const char **literals; /* isin: the literals in ascending order; NULL for other tests */
  size_t literal_count;
} text_test;

static int compare_texts(const void *x, const void *y)
{
  return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static bool compares(kjit_op op, int order)
{
  switch (KJ_AMONG(op)) {
  case KJIT_OP_EQ: return order == 0;
  case KJIT_OP_NE: return order != 0;
  case KJIT_OP_LT: return order < 0;
  case KJIT_OP_LE: return order <= 0;
  case KJIT_OP_GT: return order > 0;
  default: return order >= 0;
  }
}

static bool holds(const text_test *test, const char *text)
{
  if (test->literals)
    return bsearch(&text, test->literals, test->literal_count, sizeof text, compare_texts) != NULL;
  if (!test->word) return compares(test->op, strcmp(text, test->literal));
  size_t length = strlen(text), own = strlen(test->literal);
  if (!strcmp(test->word, "startswith")) return !strncmp(text, test->literal, own);
  if (!strcmp(test->word, "endswith"))
    return length >= own && !strcmp(text + length - own, test->literal);
  return strstr(text, test->literal) != NULL;
}

/* ---- ranges of indices ---- */

/* Returns the text of a condition that is true if the index is in one of the ranges. `index` is an
 * expression of type i64. */
static const char *range_text(kf_writer *w, const char *index, size_t first, size_t last)
{
  if (first == last) return kj_format(w->arena, "(%s == %zui64)", index, first);
  return kj_format(w->arena, "((%s >= %zui64) & (%s <= %zui64))", index, first, index, last);
}

/* Counts a range and rejects too many ranges, which would make the code of the formula large. */
static void count_range(kf_writer *w, size_t ranges, kj_location location)
{
  const bool is_large = ranges > MOST_RANGES;
  w->range_count++;
  if (is_large || w->range_count > MOST_RANGES_OF_FORMULA)
    kf_fail(w, location, KJIT_ERROR_LIMIT,
            "the texts that match are in more than %d ranges of the dictionary%s; sort the "
            "dictionary",
            is_large ? MOST_RANGES : MOST_RANGES_OF_FORMULA,
            is_large ? "" : " in all comparisons together");
}

static kf_value test_texts(kf_writer *w, const kf_value *x, const text_test *test,
                           kj_location location)
{
  const kjit_formula_texts *texts = x->texts;
  kf_value index = kf_let(w, KJIT_I64, x->valid, kf_convert(w, x, KJIT_I64));
  const char *any = "false";
  size_t ranges = 0;
  for (size_t i = 0; i < texts->count; i++) {
    if (!holds(test, texts->items[i])) continue;
    size_t first = i;
    while (i + 1 < texts->count && holds(test, texts->items[i + 1])) i++;
    count_range(w, ++ranges, location);
    const char *range = range_text(w, index.text, first, i);
    any = ranges == 1 ? range : kj_format(w->arena, "%s | %s", any, range);
    if (ranges % RANGES_OF_STATEMENT == 0) any = kf_let(w, KJIT_BOOL, x->valid, any).text;
  }
  return kf_let(w, KJIT_BOOL, x->valid, any);
}

/* ---- two columns ---- */

static bool is_same(const kjit_formula_texts *x, const kjit_formula_texts *y)
{
  if (x->count != y->count) return false;
  for (size_t i = 0; i < x->count && x->items != y->items; i++)
    if (strcmp(x->items[i], y->items[i]) != 0) return false;
  return true;
}

static bool is_ascending(const kjit_formula_texts *texts)
{
  for (size_t i = 1; i < texts->count; i++)
    if (strcmp(texts->items[i - 1], texts->items[i]) >= 0) return false;
  return true;
}

static kf_value compare_columns(kf_writer *w, kjit_op op, kf_value x, kf_value y,
                                kj_location location)
{
  if (!is_same(x.texts, y.texts) || !is_ascending(x.texts))
    kf_fail(w, location, KJIT_ERROR_TYPE,
            "two columns of texts can be compared only if they have the same dictionary and its "
            "texts ascend");
  x.kind = y.kind = KF_PLAIN;
  return kf_apply(w, op, x, y, location);
}

/* ---- one of several texts ---- */

bool kf_are_texts(const kf_value *items, size_t count)
{
  bool has_text = false;
  for (size_t i = 0; i < count; i++) {
    bool is_text = items[i].kind == KF_TEXT || items[i].kind == KF_STRING;
    if (!is_text && items[i].type != KJIT_ANY) return false;
    has_text = has_text || is_text;
  }
  return has_text;
}

/* Returns a text's index in a dictionary, or the number of texts if the dictionary does not contain
 * it. */
static size_t find_text(const kjit_formula_texts *texts, size_t first, const char *text)
{
  size_t i = first;
  while (i < texts->count && strcmp(texts->items[i], text) != 0) i++;
  return i < texts->count ? i : texts->count;
}

/* Returns the column's texts, which are the first texts in the value's dictionary. */
static kjit_formula_texts own_texts(const kf_value *x)
{
  return (kjit_formula_texts){ x->texts->items, x->own_count };
}

/* Returns the column's dictionary from which the values come, or an empty dictionary if there is no
 * such column. */
static kjit_formula_texts find_own(kf_writer *w, const kf_value *items, size_t count,
                                   kj_location location)
{
  kjit_formula_texts found = { 0 };
  for (size_t i = 0; i < count; i++) {
    if (items[i].kind != KF_TEXT || !items[i].own_count) continue;
    const kjit_formula_texts own = own_texts(&items[i]);
    if (found.count && !is_same(&found, &own))
      kf_fail(w, location, KJIT_ERROR_TYPE,
              "two columns of texts can be combined only if they have the same dictionary");
    found = own;
  }
  return found;
}

/* Makes the dictionary for all values: the column's texts, then the literals. */
static const kjit_formula_texts *join_texts(kf_writer *w, const kf_value *items, size_t count,
                                            size_t *own_count, kj_location location)
{
  const kjit_formula_texts own = find_own(w, items, count, location);
  kjit_formula_texts *all = KJ_NEW(w->arena, kjit_formula_texts);
  size_t most = own.count;
  for (size_t i = 0; i < count; i++)
    most += items[i].kind == KF_TEXT ? items[i].texts->count - items[i].own_count : 1;
  const char **list = KJ_NEW_ARRAY(w->arena, const char *, most + 1);
  if (own.count) memcpy(list, own.items, own.count * sizeof *list);
  *all = (kjit_formula_texts){ list, *own_count = own.count };
  for (size_t i = 0; i < count; i++) {
    const bool is_column = items[i].kind == KF_TEXT;
    if (!is_column && items[i].kind != KF_STRING) continue;
    for (size_t j = is_column ? items[i].own_count : 0; j < (is_column ? items[i].texts->count : 1);
         j++) {
      const char *text = is_column ? items[i].texts->items[j] : items[i].text;
      if (find_text(all, 0, text) == all->count) list[all->count++] = text;
    }
  }
  if (all->count > INT32_MAX)
    kf_fail(w, location, KJIT_ERROR_LIMIT, "the dictionary has more than %d texts", INT32_MAX);
  return all;
}

/* Converts a value's indices to indices into a dictionary that begins with the texts of the same
 * column. Every index that is not in the value's dictionary becomes -1. */
static kf_value renumber(kf_writer *w, const kf_value *x, const kjit_formula_texts *all,
                         kj_location location)
{
  const kf_value index = kf_let(w, KJIT_I64, x->valid, kf_convert(w, x, KJIT_I64));
  const char *text = index.text;
  for (size_t i = x->own_count, shift = 0; i < x->texts->count; i++) {
    const size_t place = find_text(all, 0, x->texts->items[i]);
    if (place - i == shift) continue;
    /* number to add to the index of a literal in the old dictionary; the unsigned sum can wrap
     * around */
    shift = place - i;
    count_range(w, 1, location);
    text = kj_format(w->arena, "select(%s >= %zui64, %s + (%lldi64), %s)", index.text, i,
                     index.text, (long long)shift, text);
    text = kf_let(w, KJIT_I64, x->valid, text).text;
  }
  text = kj_format(w->arena, "i32(select((%s >= 0i64) & (%s < %zui64), %s, -1i64))", index.text,
                   index.text, x->texts->count, text);
  return kf_let(w, KJIT_I32, x->valid, text);
}

void kf_unify_texts(kf_writer *w, kf_value *items, size_t count, kf_value *all,
                    kj_location location)
{
  *all = (kf_value){ .kind = KF_TEXT };
  all->texts = join_texts(w, items, count, &all->own_count, location);
  for (size_t i = 0; i < count; i++) {
    kf_value *x = &items[i];
    if (x->kind == KF_TEXT) *x = renumber(w, x, all->texts, location);
    else if (x->kind == KF_STRING)
      *x = (kf_value){ .type = KJIT_I32,
                       .text = kj_format(w->arena, "%zui32", find_text(all->texts, 0, x->text)) };
  }
}

/* ---- operators and functions ---- */

static kjit_op mirrored(kjit_op op)
{
  switch (KJ_AMONG(op)) {
  case KJIT_OP_LT: return KJIT_OP_GT;
  case KJIT_OP_LE: return KJIT_OP_GE;
  case KJIT_OP_GT: return KJIT_OP_LT;
  case KJIT_OP_GE: return KJIT_OP_LE;
  default: return op;
  }
}

kf_value kf_apply_texts(kf_writer *w, kjit_op op, kf_value x, kf_value y, kj_location location)
{
  bool is_comparison = ki_op_table[op].class_ == KJ_OP_COMPARE;
  if (is_comparison && x.kind == KF_TEXT && y.kind == KF_TEXT)
    return compare_columns(w, op, x, y, location);
  const kf_value *column = x.kind == KF_TEXT ? &x : &y, *other = x.kind == KF_TEXT ? &y : &x;
  if (is_comparison && other->type == KJIT_ANY) {
    kf_value null = kf_bool(false);
    null.valid = kf_join(w, column->valid, other->valid);
    return null;
  }
  if (!is_comparison || other->kind != KF_STRING)
    kf_fail(w, location, KJIT_ERROR_TYPE,
            "`%s` cannot be applied to %s and %s; texts can only be compared with texts",
            ki_op_table[op].text, kf_type_name(w, &x), kf_type_name(w, &y));
  const text_test test = { .op = column == &x ? op : mirrored(op), .literal = other->text };
  return test_texts(w, column, &test, location);
}

kf_value kf_match_texts(kf_writer *w, const char *word, kf_value x, kf_value y,
                        kj_location location)
{
  const text_test test = { .word = word, .literal = y.text };
  return test_texts(w, &x, &test, location);
}

kf_value kf_find_texts(kf_writer *w, kf_value x, const kf_value *literals, size_t count,
                       kj_location location)
{
  text_test test = { .literals = KJ_NEW_ARRAY(w->arena, const char *, count),
                     .literal_count = count };
  for (size_t i = 0; i < count; i++) test.literals[i] = literals[i].text;
  qsort(test.literals, count, sizeof *test.literals, compare_texts);
  return test_texts(w, &x, &test, location);
}
