/* Writes the kernels of a formula as kernel IR:
 *
 *     import "formula"
 *     func formula_row(c0, c2, k2) { ... return v7, k2 & n5 }
 *     kernel formula_values(r, c0, c2) { for i in grid_range(len(r)) { r[i] = formula_row(...) } }
 *
 * c0 is the value of column 0, and k0 is true if this value is valid (not null). If neither the
 * func nor the result uses bits in a row, `formula_values` computes the values, and on a GPU
 * `formula_validity` computes the result's bitmap, 8 rows at a time. Otherwise one iteration
 * handles all rows whose bits are in the same word: on the CPU an iteration of `formula_groups`
 * computes the 64 rows in a word, and on a GPU a warp of `formula_warps` computes 32 rows. */
#include <stdlib.h>
#include <string.h>

#include "formula/formula.h"

typedef struct kernel_text {
  kf_writer *w;
  kf_conditions valid;
  kf_form *form;
  const char *value; /* value of the row */
  bool has_bits;     /* the result is a bitmap */
  bool writes_validity;
  kj_buffer *text;
} kernel_text;

/* ---- the func ---- */

static bool has_term(kf_conditions conditions)
{
  return conditions.count && conditions.items[conditions.count - 1] >= KF_FIRST_TERM;
}

static bool is_bits(const kf_writer *w, size_t column)
{
  return (w->columns[column].flags & KJIT_COLUMN_BITS) != 0;
}

/* Writes the parameters or arguments of a row, such as "c0, c2, k2". `value`, `bit` and `validity`
 * are patterns for a column's value, for a value that is a bit, and for validity. Each # stands for
 * the number of the column. */
static void write_row_arguments(const kernel_text *t, const char *value, const char *bit,
                                const char *validity)
{
  const kf_writer *w = t->w;
  const char *separator = "";
  for (size_t i = 0; i < w->column_count; i++) {
    const char *form = is_bits(w, i) ? bit : value;
    if (w->is_used[i]) {
      kj_append_text(t->text, separator);
      for (const char *at = form; *at; at++)
        if (*at == '#') kj_append_format(t->text, "%zu", i);
        else kj_append(t->text, at, 1);
      separator = ", ";
    }
    if (!w->is_asked[i]) continue;
    kj_append_text(t->text, separator);
    for (const char *at = validity; *at; at++)
      if (*at == '#') kj_append_format(t->text, "%zu", i);
      else kj_append(t->text, at, 1);
    separator = ", ";
  }
}

static void write_row(const kernel_text *t, const char *body)
{
  kj_append_text(t->text, "func formula_row(");
  write_row_arguments(t, "c#", "c#", "k#");
  kj_append_format(t->text, ") @inline {\n%s  @line() return %s", body, t->value);
  if (t->writes_validity) kj_append_format(t->text, ", %s", kf_condition_text(t->w, t->valid));
  kj_append_text(t->text, "\n}\n");
}

/* ---- kernels ---- */

/* Writes the parameters for the columns, in the order of form->parameters; they follow the result's
 * parameters. A bitmap that is not passed as words is followed by a parameter with the bit position
 * of row 0. */
static void write_parameters(const kernel_text *t, bool has_words)
{
  const kf_writer *w = t->w;
  for (size_t i = 0; i < w->column_count; i++) {
    if (w->is_used[i]) kj_append_format(t->text, ", c%zu", i);
    if (w->is_used[i] && is_bits(w, i) && !has_words) kj_append_format(t->text, ", p%zu", i);
    if (w->is_asked[i]) kj_append_format(t->text, ", k%zu", i);
    if (w->is_asked[i] && !has_words) kj_append_format(t->text, ", o%zu", i);
  }
  kj_append_text(t->text, ")");
}

static void write_values(const kernel_text *t)
{
  kj_append_text(t->text, "kernel formula_values(r");
  write_parameters(t, false);
  kj_append_text(t->text, " {\n  for i in grid_range(len(r)) { r[i] = formula_row(");
  write_row_arguments(t, "c#[i]", "", "");
  kj_append_text(t->text, ") }\n}\n");
}

static void write_begin(const kernel_text *t, const char *name, bool has_words)
{
  kj_append_format(t->text, "kernel %s(r%s, rows: i64", name, t->writes_validity ? ", rv" : "");
  write_parameters(t, has_words);
}

/* Writes the statements in a row: its value, and whether it is valid. */
static void write_outcome(const kernel_text *t, const char *index, const char *bit,
                          const char *valid)
{
  kj_append_format(t->text, ")\n");
  if (t->has_bits) kj_append_format(t->text, "      %s\n", bit);
  else kj_append_format(t->text, "      r[%s] = v\n", index);
  if (t->writes_validity) kj_append_format(t->text, "      %s\n", valid);
}

static void write_groups(const kernel_text *t)
{
  const kf_writer *w = t->w;
  write_begin(t, "formula_groups", true);
  kj_append_text(t->text, " {\n  for g in grid_range((rows + 63) >> 6) {\n    let first = g * 64\n"
                          "    let count = min(rows - first, 64)\n");
  for (size_t i = 0; i < w->column_count; i++) {
    if (w->is_used[i] && is_bits(w, i)) kj_append_format(t->text, "    let b%zu = c%zu[g]\n", i, i);
    if (w->is_asked[i]) kj_append_format(t->text, "    let w%zu = k%zu[g]\n", i, i);
  }
  kj_append_text(t->text,
                 "    var valid = 0u64\n    var bits = 0u64\n    for j in range(count) {\n");
  kj_append_format(t->text, "      let v%s = formula_row(", t->writes_validity ? ", k" : "");
  write_row_arguments(t, "c#[first + j]", "(b# >> u64(j)) & 1 != 0", "(w# >> u64(j)) & 1 != 0");
  write_outcome(t, "first + j", "bits |= u64(v) << u64(j)", "valid |= u64(k) << u64(j)");
  kj_append_text(t->text, "    }\n");
  if (t->has_bits) kj_append_text(t->text, "    r[g] = bits\n");
  if (t->writes_validity) kj_append_text(t->text, "    rv[g] = valid\n");
  kj_append_text(t->text, "  }\n}\n");
}

static void write_warps(const kernel_text *t)
{
  write_begin(t, "formula_warps", false);
  kj_append_text(t->text,
                 " @block(256) {\n  var base = i64(blockIdx.x) * 256\n  while base < rows {\n"
                 "    let i = base + i64(threadIdx.x)\n    var valid = false\n    var bit = false\n"
                 "    if i < rows {\n");
  kj_append_format(t->text, "      let v%s = formula_row(", t->writes_validity ? ", k" : "");
  write_row_arguments(t, "c#[i]", "formula_bit(c#, p# + i)", "formula_bit(k#, o# + i)");
  write_outcome(t, "i", "bit = v", "valid = k");
  kj_append_text(t->text, "    }\n");
  static const char store[] =
    "    if laneid == 0 and i < rows { formula_store(%s, i >> 3, u64(%s), "
    "min(rows - i, 32)) }\n";
  if (t->has_bits) {
    kj_append_text(t->text, "    let bits = ballot_sync(0xffffffffu32, bit)\n");
    kj_append_format(t->text, store, "r", "bits");
  }
  if (t->writes_validity) {
    kj_append_text(t->text, "    let flags = ballot_sync(0xffffffffu32, valid)\n");
    kj_append_format(t->text, store, "rv", "flags");
  }
  kj_append_text(t->text, "    base += 256 * i64(gridDim.x)\n  }\n}\n");
}

/* Writes the kernel that computes the result's bitmap, if the validity of the result depends only
 * on the validity of columns. */
static void write_validity(const kernel_text *t)
{
  const char *all = "255u8";
  kj_append_text(t->text, "kernel formula_validity(rv, rows: i64");
  for (size_t i = 0; i < t->valid.count; i++) {
    uint32_t column = t->valid.items[i];
    kj_append_format(t->text, ", k%u, o%u", column, column);
    all = kj_format(t->w->arena, "%s%sformula_byte(k%u, o%u, g)", i ? all : "", i ? " & " : "",
                    column, column);
  }
  kj_append_format(
    t->text, ") {\n  for g in grid_range(len(rv)) { rv[g] = formula_last_byte(%s, g, rows) }\n}\n",
    all);
}

/* ---- the module ---- */

static bool list_parameters(const kernel_text *t)
{
  const kf_writer *w = t->w;
  kf_form *form = t->form;
  form->parameters = calloc(w->column_count + 1, sizeof *form->parameters);
  form->validity_parameters = calloc(t->valid.count + 1, sizeof *form->validity_parameters);
  if (!form->parameters || !form->validity_parameters) return false;
  for (uint32_t i = 0; i < w->column_count; i++)
    if (w->is_used[i] || w->is_asked[i])
      form->parameters[form->parameter_count++] =
        (kf_parameter){ i, w->is_used[i], w->is_asked[i] };
  for (size_t i = 0; i < t->valid.count && !t->writes_validity; i++)
    form->validity_parameters[form->validity_count++] =
      (kf_parameter){ t->valid.items[i], false, true };
  return true;
}

static kjit_status find_kernel(kf_form *form, const char *name, bool is_written,
                               kjit_kernel **kernel)
{
  return is_written ? kjit_get_kernel(form->module, name, kernel) : KJIT_OK;
}

static kjit_status parse(const kernel_text *t, const kf_source *source, const char *text,
                         bool has_rows, bool has_validity)
{
  kjit_context *context = t->w->context;
  const kjit_quoted_text quoted = { source->name, source->text, source->size_bytes };
  const ki_text given = { .name = "<formula>",
                          .text = text,
                          .size_bytes = strlen(text),
                          .is_algorithm = true,
                          .quoted = &quoted,
                          .quoted_count = 1 };
  kj_diagnostics diagnostics = { 0 };
  (void)ki_parse_module(context, context->types, &given, &diagnostics, &t->form->module);
  KJ_TRY(ki_finish_call(context, &diagnostics));
  KJ_TRY(find_kernel(t->form, "formula_values", !has_rows, &t->form->values));
  KJ_TRY(find_kernel(t->form, "formula_groups", has_rows, &t->form->groups));
  KJ_TRY(find_kernel(t->form, "formula_warps", has_rows, &t->form->warps));
  return find_kernel(t->form, "formula_validity", has_validity, &t->form->validity);
}

kjit_status kf_make_form(kf_writer *w, const kf_source *source, const kf_value *value,
                         kjit_type type, bool has_bits, bool has_bitmap, kf_form *form)
{
  kj_buffer text = { 0 };
  const char *body = kj_keep_text(w->arena, w->body);
  kernel_text t = {
    .w = w, .valid = value->valid, .form = form, .has_bits = has_bits, .text = &text
  };
  t.value = kf_convert(w, value, type);
  t.writes_validity = has_term(t.valid);
  /* called for its side effect, which is to mark the columns that the condition uses */
  if (t.writes_validity) (void)kf_condition_text(w, t.valid);
  bool has_rows = has_bits || t.writes_validity, has_validity = has_bitmap && !t.writes_validity;
  for (size_t i = 0; i < w->column_count; i++)
    has_rows = has_rows || w->is_asked[i] || (w->is_used[i] && is_bits(w, i));
  kj_append_text(&text, "import \"formula\"\n");
  write_row(&t, body);
  if (has_rows) {
    write_groups(&t);
    write_warps(&t);
  } else write_values(&t);
  if (has_validity) write_validity(&t);
  form->writes_validity = t.writes_validity;
  char *all = kj_take_text(&text);
  kjit_status status = all && list_parameters(&t)
                         ? parse(&t, source, all, has_rows, has_validity)
                         : ki_fail_call(w->context, KJIT_ERROR_MEMORY, "out of memory");
  free(all);
  if (status != KJIT_OK) kf_free_form(form);
  return status;
}

void kf_free_form(kf_form *form)
{
  kjit_release_module(form->module);
  free(form->parameters);
  free(form->validity_parameters);
  *form = (kf_form){ 0 };
}
