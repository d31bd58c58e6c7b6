/* Implements the public functions that create and describe formulas. */
#include <stdlib.h>
#include <string.h>

#include "support/stack.h"
#include "base/status.h"
#include "formula/formula.h"
#include "ir/lexer.h"

enum {
  USUAL_OPERATIONS = 2000,
  USUAL_TEXT_BYTES = 65536,
  STACK_BYTES = 1 << 20 /* stack for a formula's tree, which has at most 400 levels */
};

static const char usual_name[] = "formula";

/* ---- options ---- */

static bool is_name(const char *name)
{
  return name && *name && ki_is_utf8(name) && !strpbrk(name, "`\n\r");
}

static kjit_status check_texts(kjit_context *context, const kjit_formula_options *options,
                               uint32_t index)
{
  const kjit_formula_column *column = &options->columns[index];
  const kjit_formula_texts *texts = options->texts ? &options->texts[index] : NULL;
  static const char call[] = "kjit_create_formula";
  if (column->type < KJIT_I8 || column->type > KJIT_U64 || column->flags >= 2 * KJIT_COLUMN_TEXT ||
      (column->flags & ~(uint32_t)(KJIT_COLUMN_TEXT | KJIT_COLUMN_NULLABLE)))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s: columns[%u]: `%s` has texts, so its type must be an integer type, and "
                        "KJIT_COLUMN_NULLABLE is the only other flag that it can have",
                        call, index, column->name);
  if (!texts || (texts->count && !texts->items))
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: texts[%u], of `%s`, is NULL", call, index,
                        column->name);
  for (size_t i = 0; i < texts->count; i++)
    if (!texts->items[i] || !ki_is_utf8(texts->items[i]))
      return ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "%s: texts[%u].items[%zu], of `%s`, is not UTF-8 text", call, index, i,
                          column->name);
  return KJIT_OK;
}

static kjit_status check_column(kjit_context *context, const kjit_formula_options *options,
                                uint32_t index)
{
  const kjit_formula_column *column = &options->columns[index];
  static const char field[] = "kjit_create_formula: columns";
  if (!is_name(column->name))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s[%u].name must be UTF-8 text without backticks and line breaks", field,
                        index);
  if (!ki_is_scalar(column->type) || column->type > KJIT_F64)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s[%u]: the type of `%s` must be a scalar type that is not complex", field,
                        index, column->name);
  if (column->flags >= 2 * KJIT_COLUMN_TEXT || column->reserved)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s[%u]: `%s` has unknown flags", field, index,
                        column->name);
  kf_kind kind;
  kf_unit unit;
  if (!kf_read_date_flags(column->flags, &kind, &unit))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s[%u]: `%s` needs one flag such as KJIT_COLUMN_TIMESTAMP together with "
                        "one unit",
                        field, index, column->name);
  if (kind != KF_PLAIN && column->type != KJIT_I32 && column->type != KJIT_I64)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s[%u]: `%s` is a timestamp or duration, so its type must be i32 or i64",
                        field, index, column->name);
  if (column->flags & KJIT_COLUMN_TEXT) KJ_TRY(check_texts(context, options, index));
  if ((column->flags & KJIT_COLUMN_BITS) && column->type != KJIT_BOOL)
    return ki_fail_call(
      context, KJIT_ERROR_MISUSE,
      "%s[%u]: `%s` has the flag KJIT_COLUMN_BITS, which is only for columns of type bool", field,
      index, column->name);
  return KJIT_OK;
}

static int compare_names(const void *x, const void *y)
{
  return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static kjit_status check_duplicates(kjit_context *context, const kjit_formula_options *options)
{
  const char *names[KF_MOST_COLUMNS];
  for (uint32_t i = 0; i < options->column_count; i++) names[i] = options->columns[i].name;
  qsort(names, options->column_count, sizeof *names, compare_names);
  for (uint32_t i = 1; i < options->column_count; i++)
    if (!strcmp(names[i - 1], names[i]))
      return ki_fail_call(context, KJIT_ERROR_MISUSE,
                          "kjit_create_formula: two columns have the name `%s`", names[i]);
  return KJIT_OK;
}

static kjit_status read_options(kjit_context *context, const kjit_formula_options *given,
                                kjit_formula_options *own)
{
  static const char call[] = "kjit_create_formula";
  KJ_TRY(ki_read_sized(context, call, KI_FORMULA_OPTIONS, given, own));
  if (!own->name) own->name = usual_name;
  if (!own->operation_limit) own->operation_limit = USUAL_OPERATIONS;
  if (!own->text_limit_bytes) own->text_limit_bytes = USUAL_TEXT_BYTES;
  if (own->flags & ~(uint32_t)KJIT_COLUMN_BITS)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: flags 0x%x is not supported", call,
                        own->flags);
  if (!is_name(own->name))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s: name must be UTF-8 text without backticks and line breaks", call);
  if (own->column_count > KF_MOST_COLUMNS)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s: column_count is %u; a formula has at most %d columns", call,
                        own->column_count, KF_MOST_COLUMNS);
  if (own->column_count && !own->columns)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: columns is NULL", call);
  for (uint32_t i = 0; i < own->column_count; i++) KJ_TRY(check_column(context, own, i));
  return check_duplicates(context, own);
}

/* ---- reading ---- */

typedef struct making {
  kjit_context *context;
  kjit_formula_options options;
  kf_source source;
  kjit_module *tree;
  kj_arena arena;
  kjit_formula *formula;
  kjit_status status;
} making;

static kjit_status read_tree(making *m)
{
  const char **names = calloc((size_t)m->options.column_count + 1, sizeof *names);
  if (!names) return ki_fail_call(m->context, KJIT_ERROR_MEMORY, "out of memory");
  for (uint32_t i = 0; i < m->options.column_count; i++) names[i] = m->options.columns[i].name;
  const ki_expression expression = {
    .function = usual_name, .names = names, .count = m->options.column_count, .is_formula = true
  };
  const ki_text text = { .name = m->source.name,
                         .text = m->source.text,
                         .size_bytes = m->source.size_bytes,
                         .is_guest = true,
                         .expression = &expression };
  kj_diagnostics diagnostics = { 0 };
  (void)ki_read_formula(m->context, &text, &diagnostics, &m->tree);
  free(names);
  return ki_finish_call(m->context, &diagnostics);
}

/* Returns a string literal of the kernel IR. */
static const char *quote(kj_arena *arena, const char *name)
{
  kj_buffer text = { 0 };
  kj_append_text(&text, "\"");
  for (; *name; name++) {
    if (*name == '"' || *name == '\\') kj_append_text(&text, "\\");
    kj_append(&text, *name == '\t' ? "\\t" : name, *name == '\t' ? 2 : 1);
  }
  kj_append_text(&text, "\"");
  return kj_keep_text(arena, &text);
}

static uint32_t checked_divisions(const kjit_context *context)
{
  return context->config.checks & KJIT_CHECK_DIVISION;
}

static void start_writer(making *m, kj_buffer *body, kj_diagnostics *diagnostics, bool with_nulls,
                         kf_writer *w)
{
  size_t count = m->options.column_count;
  *w = (kf_writer){ .arena = &m->arena,
                    .context = m->context,
                    .source = m->tree,
                    .diagnostics = diagnostics,
                    .columns = m->options.columns,
                    .texts = m->options.texts,
                    .column_count = count,
                    .operation_limit = m->options.operation_limit,
                    .with_nulls = with_nulls,
                    .checks_division = checked_divisions(m->context) != 0,
                    .file = quote(&m->arena, m->source.name),
                    .body = body };
  w->is_used = KJ_NEW_ARRAY(&m->arena, bool, count + 1);
  w->is_asked = KJ_NEW_ARRAY(&m->arena, bool, count + 1);
}

/* ---- making ---- */

static bool has_nullable_column(const kjit_formula_options *options)
{
  for (uint32_t i = 0; i < options->column_count; i++)
    if (options->columns[i].flags & KJIT_COLUMN_NULLABLE) return true;
  return false;
}

/* Copies a dictionary to one block of memory. */
static bool copy_texts(const kjit_formula_texts *texts, kjit_formula_texts *copy)
{
  size_t bytes = 1;
  for (size_t i = 0; i < texts->count; i++)
    bytes += sizeof *texts->items + strlen(texts->items[i]) + 1;
  const char **items = malloc(bytes);
  if (!items) return false;
  char *at = (char *)(items + texts->count);
  for (size_t i = 0; i < texts->count; i++) {
    const size_t size_bytes = strlen(texts->items[i]) + 1;
    items[i] = memcpy(at, texts->items[i], size_bytes);
    at += size_bytes;
  }
  *copy = (kjit_formula_texts){ items, texts->count };
  return true;
}

static void describe(making *m, kf_writer *w, const kf_value *value)
{
  kjit_formula *formula = m->formula;
  formula->type = kf_own_type(value);
  if (value->kind == KF_STRING)
    kf_fail(w, ki_formula_tree(m->tree)->location, KJIT_ERROR_TYPE,
            "the formula is a text, but a text can be combined only with a timestamp or a column "
            "of texts");
  if (value->kind == KF_TEXT) {
    formula->flags |= KJIT_COLUMN_TEXT;
    if (!copy_texts(value->texts, &formula->texts)) longjmp(*m->arena.on_failure, KJ_JUMP_MEMORY);
  }
  formula->flags |= kf_date_flags(value);
  if (formula->type == KJIT_ANY)
    kf_fail(w, ki_formula_tree(m->tree)->location, KJIT_ERROR_TYPE,
            "the formula is null in all rows, so its result has no type");
  formula->operation_count = w->operation_count;
  memcpy(formula->is_used, w->is_used, w->column_count * sizeof *w->is_used);
  if (value->valid.count) formula->flags |= KJIT_COLUMN_NULLABLE;
  if (formula->type == KJIT_BOOL) formula->flags |= m->options.flags & KJIT_COLUMN_BITS;
}

/* Writes the func of one form and makes its kernels. The form with nulls comes first, because it
 * determines whether the result can be null. */
static void make_form(making *m, bool with_nulls, kf_form *form)
{
  kj_buffer body = { 0 };
  kj_diagnostics diagnostics = { 0 };
  kf_writer w;
  jmp_buf on_failure;
  m->arena.on_failure = &on_failure;
  int jump = setjmp(on_failure);
  if (jump == 0) {
    start_writer(m, &body, &diagnostics, with_nulls, &w);
    kf_value value = kf_read(&w, ki_formula_tree(m->tree));
    if (m->formula->type == KJIT_ANY) describe(m, &w, &value);
    m->status = kf_make_form(&w, &m->source, &value, m->formula->type,
                             (m->formula->flags & KJIT_COLUMN_BITS) != 0,
                             (m->formula->flags & KJIT_COLUMN_NULLABLE) != 0, form);
  }
  kj_free_buffer(&body);
  if (jump == KJ_JUMP_MEMORY || jump == KJ_JUMP_LIMIT)
    (void)kj_error(&diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (jump) m->status = ki_finish_call(m->context, &diagnostics);
}

static void make(void *data)
{
  making *m = data;
  m->status = read_tree(m);
  if (m->status == KJIT_OK && has_nullable_column(&m->options))
    make_form(m, true, &m->formula->nulls);
  if (m->status == KJIT_OK) make_form(m, false, &m->formula->plain);
}

static kjit_formula *allocate(const making *m)
{
  size_t count = m->options.column_count;
  kjit_formula *formula = calloc(1, sizeof *formula);
  if (!formula) return NULL;
  formula->context = m->context;
  atomic_init(&formula->references, 1);
  formula->column_count = count;
  formula->columns = calloc(count + 1, sizeof *formula->columns);
  formula->is_used = calloc(count + 1, sizeof *formula->is_used);
  if (!formula->columns || !formula->is_used) {
    kjit_destroy_formula(formula);
    return NULL;
  }
  for (size_t i = 0; i < count; i++) {
    formula->columns[i] = m->options.columns[i];
    formula->columns[i].name = NULL;
  }
  return formula;
}

kjit_status kjit_create_formula(kjit_context *context, const kjit_formula_options *options,
                                const char *text, size_t size_bytes, kjit_formula **formula)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!text || !formula)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_create_formula: %s is NULL",
                        text ? "formula" : "text");
  making m = { .context = context };
  KJ_TRY(read_options(context, options, &m.options));
  if (size_bytes > m.options.text_limit_bytes)
    return ki_fail_call(context, KJIT_ERROR_LIMIT,
                        "the formula has %zu bytes; text_limit_bytes allows %llu", size_bytes,
                        (unsigned long long)m.options.text_limit_bytes);
  m.source = (kf_source){ m.options.name, text, size_bytes };
  m.formula = allocate(&m);
  if (!m.formula || !kj_call_with_stack(STACK_BYTES, make, &m))
    m.status = ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_free_arena(&m.arena);
  kjit_release_module(m.tree);
  if (m.status == KJIT_OK) *formula = m.formula;
  else kjit_destroy_formula(m.formula);
  return m.status;
}

void kjit_destroy_formula(kjit_formula *formula)
{
  if (!formula) return;
  if (atomic_fetch_sub_explicit(&formula->references, 1, memory_order_acq_rel) != 1) return;
  kf_free_form(&formula->plain);
  kf_free_form(&formula->nulls);
  free(formula->columns);
  free(formula->is_used);
  free((void *)formula->texts.items);
  free(formula);
}

/* ---- describing ---- */

kjit_context *kjit_get_formula_context(const kjit_formula *formula)
{
  return formula ? formula->context : NULL;
}

kjit_status kjit_get_formula_info(const kjit_formula *formula, kjit_formula_info *info)
{
  if (!formula) return KJIT_ERROR_MISUSE;
  kjit_formula_info own = { .type = formula->type,
                            .flags = formula->flags,
                            .operation_count = formula->operation_count };
  for (size_t i = 0; i < formula->column_count; i++) own.used_count += formula->is_used[i];
  return ki_write_sized(formula->context, "kjit_get_formula_info", KI_FORMULA_INFO, &own, info);
}

const kjit_formula_texts *kjit_get_formula_texts(const kjit_formula *formula)
{
  return formula && (formula->flags & KJIT_COLUMN_TEXT) ? &formula->texts : NULL;
}

int kjit_uses_column(const kjit_formula *formula, size_t column)
{
  return formula && column < formula->column_count && formula->is_used[column];
}
