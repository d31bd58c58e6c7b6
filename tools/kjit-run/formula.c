#include "formula.h"

#include <stdlib.h>
#include <string.h>

typedef struct run_formula {
  kjit_formula *formula;
  kjit_column *columns; /* columns of the formula; owned */
  size_t *operands;     /* for each column: index of its operand in the step plus 1, or 0 if it is
                         * not used */
  size_t column_count;
  size_t result;       /* index of the operand in the step that receives the result */
  int64_t count;       /* number of elements */
  kjit_module *module; /* module with the kernel `fill`, or NULL if no nulls of the result are
                          replaced by NaN */
  kjit_kernel *fill;
} run_formula;

/* Source of the kernel that sets null elements to a value that kernels and files can use. */
static const char fill_text[] = "kernel fill(values, validity) {\n"
                                "  for i in grid_range(len(values)) {\n"
                                "    if ((validity[i >> 3] >> u8(i & 7)) & 1) == 0 {\n"
                                "      values[i] = nan\n"
                                "    }\n"
                                "  }\n"
                                "}\n";

/* ---- columns ---- */

/* Returns whether a formula can use the argument as a column. */
static bool is_column(const tool_argument *argument)
{
  const tool_array *array = &argument->array;
  return argument->is_array && !argument->sparse && *argument->name && !array->lanes &&
         !array->record.context && tool_elements[array->element].class_ != TOOL_COMPLEX &&
         tool_is_contiguous(array);
}

/* Adds a note that names the arguments that are not columns, because the library's message only
 * says that a column does not exist. */
static void note_others(const run_maker *m)
{
  char *list = tool_copy_text("", 0), *text = m->error->text;
  for (size_t i = 0; i < m->arguments->count; i++) {
    const tool_argument *argument = &m->arguments->items[i];
    if (!*argument->name || is_column(argument) || strchr(argument->name, '.')) continue;
    char *longer = tool_format("%s%s'%s'", list, *list ? ", " : "", argument->name);
    free(list);
    list = longer;
  }
  if (*list)
    m->error->text = tool_format("%s\na formula uses contiguous arrays of bools, integers and "
                                 "floats; these arguments are none: %s",
                                 text, list);
  if (m->error->text != text) free(text);
  free(list);
}

/* Lists the columns. *arguments receives the index of the argument of each column. */
static kjit_formula_column *list_columns(const run_maker *m, size_t *arguments,
                                         kjit_formula_texts *texts, size_t *count)
{
  kjit_formula_column *columns = tool_allocate((m->arguments->count + 1) * sizeof *columns);
  *count = 0;
  for (size_t i = 0; i < m->arguments->count; i++) {
    const tool_argument *argument = &m->arguments->items[i];
    if (!is_column(argument)) continue;
    uint32_t flags = argument->array.memory->validity ? KJIT_COLUMN_NULLABLE : 0;
    const tool_memory *memory = argument->array.memory;
    flags |= tool_date_flags(&memory->date);
    if (memory->has_texts) {
      flags |= KJIT_COLUMN_TEXT;
      texts[*count] =
        (kjit_formula_texts){ (const char *const *)memory->texts.items, memory->texts.count };
    }
    columns[*count] = (kjit_formula_column){ .name = argument->name,
                                             .type = argument->array.element,
                                             .flags = flags };
    arguments[(*count)++] = i;
  }
  return columns;
}

static bool fail_shapes(tool_scanner *scanner, const tool_argument *a, const tool_argument *b)
{
  char *first = tool_shape_text(&a->array), *second = tool_shape_text(&b->array);
  tool_scan_fail(scanner, scanner->at,
                 "a formula needs arrays of one shape, but '%s' is %s and '%s' is %s", a->name,
                 first, b->name, second);
  free(first);
  free(second);
  return false;
}

static bool have_same_extents(const tool_array *a, const tool_array *b)
{
  bool same = a->rank == b->rank;
  for (uint32_t d = 0; same && d < a->rank; d++) same = a->shape[d] == b->shape[d];
  return same;
}

/* Adds the columns that the formula uses to the step's operands. */
static bool take_columns(const run_maker *m, tool_scanner *scanner, run_step *step,
                         const size_t *arguments)
{
  run_formula *f = step->formula;
  for (size_t i = 0; i < f->column_count; i++) {
    if (!kjit_uses_column(f->formula, i)) continue;
    tool_argument *argument = &m->arguments->items[arguments[i]];
    if (step->count && !have_same_extents(&step->operands[0].argument.array, &argument->array))
      return fail_shapes(scanner, &step->operands[0].argument, argument);
    argument->is_used = true;
    run_append_operand(step)->argument = *argument;
    f->operands[i] = step->count;
    step->traffic_bytes += tool_array_bytes(&argument->array);
  }
  return step->count || tool_scan_fail(scanner, scanner->at,
                                       "the formula names no --arg, so its result has no shape");
}

/* ---- the result ---- */

static bool make_fill(const run_maker *m, run_formula *f)
{
  kjit_status status =
    kjit_parse_module(m->context, "fill", fill_text, sizeof fill_text - 1, &f->module);
  if (status == KJIT_OK) status = kjit_get_kernel(f->module, "fill", &f->fill);
  return status == KJIT_OK || tool_fail_kjit(m->error, m->context, status, "--formula");
}

/* Copies the dictionary of a result of texts. */
static void take_texts(const kjit_formula *formula, tool_memory *memory)
{
  const kjit_formula_texts *texts = kjit_get_formula_texts(formula);
  memory->has_texts = texts != NULL;
  for (size_t i = 0; texts && i < texts->count; i++)
    (void)tool_add_text(&memory->texts, texts->items[i], strlen(texts->items[i]));
}

static bool make_result(const run_maker *m, run_step *step)
{
  run_formula *f = step->formula;
  const tool_array *like = &step->operands[0].argument.array;
  kjit_formula_info info = { .size_bytes = sizeof info };
  kjit_status status = kjit_get_formula_info(f->formula, &info);
  if (status != KJIT_OK) return tool_fail_kjit(m->error, m->context, status, "--formula");
  tool_shape shape = { .element = info.type, .rank = like->rank };
  memcpy(shape.extents, like->shape, sizeof shape.extents);
  f->count = (int64_t)tool_count(like);
  tool_argument *before = tool_find_argument(m->arguments, step->name, strlen(step->name));
  if (before) *before->name = 0;
  if (!tool_add_array(m->arguments, step->name, strlen(step->name), &shape, m->error))
    return tool_prefix(m->error, "--formula");
  tool_argument *made = &m->arguments->items[m->arguments->count - 1];
  bool is_nullable = info.flags & KJIT_COLUMN_NULLABLE,
       is_float = tool_elements[info.type].class_ == TOOL_FLOAT;
  take_texts(f->formula, made->array.memory);
  made->array.memory->date = tool_date_of_flags(info.flags);
  if (is_nullable && !tool_add_validity(m->error, &made->array)) return false;
  if (is_nullable && is_float && !make_fill(m, f)) return false;
  f->result = step->count;
  run_append_operand(step)->argument = *made;
  step->traffic_bytes += tool_array_bytes(&made->array);
  return true;
}

/* ---- the text ---- */

static bool check_text(const run_maker *m, tool_scanner *scanner, run_formula *f, size_t *arguments)
{
  kjit_formula_texts *texts = tool_allocate((m->arguments->count + 1) * sizeof *texts);
  kjit_formula_column *columns = list_columns(m, arguments, texts, &f->column_count);
  const kjit_formula_options options = { .size_bytes = sizeof options,
                                         .name = "--formula",
                                         .columns = columns,
                                         .column_count = (uint32_t)f->column_count,
                                         .texts = texts };
  kjit_status status =
    kjit_create_formula(m->context, &options, scanner->at, strlen(scanner->at), &f->formula);
  free(columns);
  free(texts);
  if (status == KJIT_OK) return true;
  tool_fail_kjit(m->error, m->context, status, "--formula");
  if (status == KJIT_ERROR_SYNTAX || status == KJIT_ERROR_NAME)
    m->error->exit_status = TOOL_EXIT_USAGE;
  if (status == KJIT_ERROR_NAME) note_others(m);
  return false;
}

bool run_scan_formula(const run_maker *m, const char *text, run_step *step)
{
  tool_scanner scanner = tool_scan("--formula", text, m->error);
  if (!tool_scan_name(&scanner, "NAME=EXPRESSION", &step->name) || !tool_expect(&scanner, '='))
    return false;
  if (*scanner.at == '=')
    return tool_scan_fail(&scanner, scanner.at, "expected NAME=EXPRESSION, not a comparison");
  tool_skip_blanks(&scanner);
  size_t *arguments = tool_allocate((m->arguments->count + 1) * sizeof *arguments);
  run_formula *f = step->formula = tool_allocate(sizeof *f);
  f->columns = tool_allocate((m->arguments->count + 1) * sizeof *f->columns);
  f->operands = tool_allocate((m->arguments->count + 1) * sizeof *f->operands);
  bool ok = check_text(m, &scanner, f, arguments) && take_columns(m, &scanner, step, arguments) &&
            make_result(m, step);
  free(arguments);
  return ok;
}

void run_destroy_formula(run_formula *f)
{
  if (!f) return;
  kjit_destroy_formula(f->formula);
  if (f->module) kjit_release_module(f->module);
  free(f->columns);
  free(f->operands);
  free(f);
}

/* ---- the run ---- */

/* Returns the column for the operand's memory on the device of the run. */
static kjit_column column_of(const run_operand *operand)
{
  const tool_memory *memory = operand->argument.array.memory;
  bool is_on_device = memory->device != NULL;
  return (kjit_column){
    .values = is_on_device ? kjit_get_tensor(memory->device)->data : memory->data,
    .validity = !memory->validity ? NULL
                : is_on_device    ? kjit_get_tensor(memory->device_validity)->data
                                  : memory->validity,
    .offset = operand->argument.array.offset,
  };
}

static kjit_status fill_nulls(run_step *step, kjit_column result)
{
  run_formula *f = step->formula;
  int64_t bytes = (f->count + 7) / 8;
  kjit_tensor values = step->operands[f->result].tensor, validity = values;
  validity.data = result.validity;
  validity.code = tool_elements[KJIT_U8].code;
  validity.bits = tool_elements[KJIT_U8].bits;
  values.rank = validity.rank = 1;
  values.shape = &f->count;
  validity.shape = &bytes;
  values.strides = validity.strides = NULL;
  const kjit_arg arguments[] = { kjit_arg_tensor(&values), kjit_arg_tensor(&validity) };
  return kjit_launch(f->fill, &step->config, arguments, 2);
}

bool run_run_formula(tool_error *error, kjit_context *context, run_step *step)
{
  run_formula *f = step->formula;
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_status status = kjit_get_device_info(step->config.device, &info);
  for (size_t i = 0; i < f->column_count; i++)
    if (f->operands[i]) f->columns[i] = column_of(&step->operands[f->operands[i] - 1]);
  kjit_column result = column_of(&step->operands[f->result]);
  const kjit_formula_run options = {
    .size_bytes = sizeof options,
    .device = step->config.device,
    .memory = info.kind == KJIT_DEVICE_CUDA ? step->config.device : NULL,
    .time_limit_ns = step->config.time_limit_ns,
  };
  if (status == KJIT_OK)
    status = kjit_run_formula(f->formula, f->columns, &result, f->count, &options);
  if (status == KJIT_OK && f->fill && f->count) status = fill_nulls(step, result);
  if (status == KJIT_OK) return true;
  char *doing = tool_format("computing the formula of '%s'", step->name);
  tool_fail_kjit(error, context, status, doing);
  free(doing);
  return false;
}
