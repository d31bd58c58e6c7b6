#include "call.h"

#include <driver/record.h>
#include <stdlib.h>
#include <string.h>

/* ---- arguments of the C function ---- */

/* Returns whether a part has an operand. Numbers, built-in operators, and results that do not exist
 * yet have no operand. */
static bool has_operand(const run_call *call, const run_part *part)
{
  run_role role = call->algorithm->parameters[part->parameter].role;
  return !run_is_number(role) && role != RUN_TEXT && !part->operator_name && !part->new_length;
}

static kjit_operand bind_operand(const run_step *step, const run_part *part)
{
  const kjit_arg *value = &step->arguments[part->operand];
  kjit_function *function = step->operands[part->operand].function;
  if (!function) return kjit_operand_of(*value);
  return kjit_operand_function(function, value + 1, part->array_count, part->shape, part->rank);
}

/* Binds a matrix, which has three consecutive operands. */
static void bind_matrix(const run_step *step, const run_part *part, run_argument *argument)
{
  for (size_t i = 0; i < 3; i++)
    argument->arrays[i] = kjit_operand_of(step->arguments[part->operand + i]);
  argument->matrix = (kjit_csr){ &argument->arrays[0],
                                 &argument->arrays[1],
                                 &argument->arrays[2],
                                 { part->shape[0], part->shape[1] } };
}

/* Adds a part's operand to its parameter's value, which can consist of several parts. */
static void bind_part(const run_step *step, size_t index, run_argument *argument)
{
  const run_part *part = &step->call->parts[index];
  kjit_operand *operand = &step->call->operands[index];
  kjit_operator *operator_ = &step->call->operators[index];
  *operator_ = (kjit_operator){ part->operator_name, NULL, step->call->commutes };
  argument->integer = part->integer;
  argument->real = part->real;
  argument->text = part->text;
  if (step->call->algorithm->parameters[part->parameter].role == RUN_MATRIX)
    bind_matrix(step, part, argument);
  else if (has_operand(step->call, part)) {
    *operand = bind_operand(step, part);
    argument->function = operator_->function = step->operands[part->operand].function;
  }
  if (argument->count++) return;
  argument->operands = operand;
  argument->operators = operator_;
  argument->operator_ = *operator_;
}

static kjit_arg find_initial(const run_step *step)
{
  const run_call *call = step->call;
  const tool_array *array = &step->operands[call->initial].argument.array;
  if (!call->initial_bytes) return step->arguments[call->initial];
  return kjit_arg_value(array->record.context ? array->record.type : array->element,
                        call->initial_bytes);
}

static kjit_status perform(kjit_context *context, run_step *step)
{
  run_call *call = step->call;
  run_argument arguments[RUN_MOST_PARAMETERS] = { 0 };
  free(call->operands);
  free(call->operators);
  call->operands = tool_allocate((call->part_count + 1) * sizeof *call->operands);
  call->operators = tool_allocate((call->part_count + 1) * sizeof *call->operators);
  for (size_t i = 0; i < call->part_count; i++)
    bind_part(step, i, &arguments[call->parts[i].parameter]);
  if (call->option_at[RUN_INITIAL]) {
    call->initial_value = find_initial(step);
    call->options.initial = &call->initial_value;
  }
  if (call->option_at[RUN_WHERE]) {
    call->where_operand = bind_operand(step, &call->where);
    call->options.where = &call->where_operand;
  }
  if (call->option_at[RUN_EPILOGUE]) {
    for (size_t i = 0; i < call->extra_count; i++)
      call->extra_operands[i] = bind_operand(step, &call->extras[i]);
    call->options.epilogue = step->operands[call->epilogue].function;
    call->options.epilogue_operands = call->extra_operands;
    call->options.epilogue_operand_count = call->extra_count;
  }
  call->options.signature = call->signature;
  return call->algorithm->call(context, arguments, &call->options);
}

/* ---- errors ---- */

/* Returns the name that the library's messages give to an operand: "`x`", or "`x1`" for the second
 * of several operands x. */
static char *name_part(const run_call *call, size_t index)
{
  size_t parameter = call->parts[index].parameter, before = 0;
  const run_parameter *row = &call->algorithm->parameters[parameter];
  for (size_t i = 0; i < index; i++) before += call->parts[i].parameter == parameter;
  return row->is_repeated ? tool_format("`%s%zu`", row->name, before)
                          : tool_format("`%s`", row->name);
}

/* Searches the message for a name, and updates *first if it comes earlier than the names found so
 * far. */
static void look_for(const char *message, char *name, const char *name_at, const char **first,
                     const char **at)
{
  const char *found = strstr(message, name);
  if (found && (!*first || found < *first)) {
    *first = found;
    *at = name_at;
  }
  free(name);
}

/* Finds the position for the caret: the position of the operand (`x`) or option (options.axes) that
 * the library's message names first. */
static const char *find_culprit(const run_call *call, const char *message)
{
  const char *first = NULL, *at = call->scanner.at;
  for (size_t i = 0; i < call->part_count; i++)
    look_for(message, name_part(call, i), call->parts[i].at, &first, &at);
  for (size_t i = 0; i < call->extra_count; i++)
    look_for(message, tool_format("`e%zu`", i), call->extras[i].at, &first, &at);
  for (size_t i = 0; i < RUN_OPTION_COUNT; i++) {
    const char *found = call->option_at[i] ? strstr(message, run_option_names[i]) : NULL;
    if (!found || (first && found >= first)) continue;
    first = found;
    at = call->option_at[i];
  }
  return at;
}

static bool fail_call(kjit_context *context, run_call *call, kjit_status status)
{
  const kjit_diagnostic *diagnostic = kjit_get_diagnostic(context, 0);
  const char *at =
    diagnostic && !diagnostic->file ? find_culprit(call, diagnostic->message) : call->scanner.at;
  return tool_scan_fail_kjit(&call->scanner, at, context, status);
}

/* ---- results that the call creates ---- */

enum { MOST_RESULTS = 16 };

static bool create_result(const run_maker *m, run_step *step, run_part *part,
                          const kjit_result_info *info)
{
  run_call *call = step->call;
  tool_shape shape = { .rank = info->rank };
  if (info->element == KJIT_ANY)
    return tool_scan_fail(&call->scanner, part->at,
                          "the type of this result is unknown: define the result with --arg");
  memcpy(shape.extents, info->shape, sizeof shape.extents);
  if (!tool_shape_of_type(m->context, info->element, &shape)) {
    char *type = kjit_copy_type_text(m->context, info->element);
    tool_scan_fail(&call->scanner, part->at,
                   "kjit-run cannot hold the result, an array of %s with %u dimensions",
                   type ? type : "?", info->rank);
    kjit_free(m->context, type);
    return false;
  }
  if (!tool_add_array(m->arguments, part->at, part->new_length, &shape, m->error))
    return tool_prefix(m->error, "--call %s", call->scanner.text);
  part->new_length = 0;
  part->operand = step->count;
  run_append_operand(step)->argument = m->arguments->items[m->arguments->count - 1];
  return true;
}

/* Asks the library for the types and shapes of the call's results. */
static bool describe_results(const run_maker *m, run_step *step, kjit_result_info *infos)
{
  static const kjit_device_info host = { .size_bytes = sizeof host, .kind = KJIT_DEVICE_CPU };
  run_call *call = step->call;
  step->arguments = tool_allocate(step->count * sizeof *step->arguments);
  run_bind_step(step, &host);
  call->options.results = infos;
  call->options.result_count = MOST_RESULTS;
  kjit_status status = perform(m->context, step);
  call->options.results = NULL;
  return status == KJIT_OK || fail_call(m->context, call, status);
}

static bool create_results(const run_maker *m, run_step *step)
{
  run_call *call = step->call;
  kjit_result_info infos[MOST_RESULTS] = { 0 };
  size_t new_count = 0;
  for (size_t i = 0; i < call->part_count; i++) new_count += call->parts[i].new_length != 0;
  if (!new_count) return true;
  if (!describe_results(m, step, infos)) return false;
  for (size_t i = 0; i < call->part_count; i++) {
    run_part *part = &call->parts[i]; /* results come first among the parts */
    if (part->new_length && i == MOST_RESULTS)
      return tool_scan_fail(&call->scanner, part->at, "a call has at most %d results",
                            MOST_RESULTS);
    if (part->new_length && !create_result(m, step, part, &infos[i])) return false;
  }
  return true;
}

static bool check_written(const run_maker *m, const run_step *step)
{
  const run_call *call = step->call;
  for (size_t i = 0; i < call->part_count; i++) {
    const run_part *part = &call->parts[i];
    run_role role = call->algorithm->parameters[part->parameter].role;
    bool is_written = role == RUN_RESULT || role == RUN_IN_PLACE || role == RUN_WRITTEN;
    if (!has_operand(call, part) || !is_written) continue;
    for (size_t k = part->operand; k <= part->operand + part->array_count; k++)
      if (!run_check_nulls(m->error, &step->operands[k].argument, true)) return false;
  }
  return true;
}

static void count_traffic(run_step *step)
{
  const run_call *call = step->call;
  for (size_t i = 0; i < call->part_count; i++) {
    const run_part *part = &call->parts[i];
    run_role role = call->algorithm->parameters[part->parameter].role;
    if (!has_operand(call, part)) continue;
    for (size_t k = part->operand; k <= part->operand + part->array_count; k++)
      if (step->operands[k].argument.is_array)
        step->traffic_bytes +=
          tool_array_bytes(&step->operands[k].argument.array) * (role == RUN_IN_PLACE ? 2 : 1);
  }
}

bool run_scan_call(const run_maker *m, const char *text, run_step *step)
{
  step->call = tool_allocate(sizeof *step->call);
  step->call->scanner = tool_scan("--call", text, m->error);
  step->call->scanner.size = m->arguments->size;
  step->call->options = (kjit_algorithm_options){ .size_bytes = sizeof step->call->options };
  if (!run_scan_call_text(m, step) || !create_results(m, step)) return false;
  count_traffic(step);
  return check_written(m, step);
}

/* ---- running the call ---- */

/* Lists device_count devices of the same kind as the run's device. If the machine has fewer
 * devices, the list names them several times. */
static kjit_status choose_devices(kjit_context *context, run_call *call)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_status status = kjit_get_device_info(call->options.device, &info);
  uint32_t count = kjit_get_device_count(context, info.kind);
  for (size_t i = 0; i < call->device_count && status == KJIT_OK; i++) {
    int32_t ordinal = (int32_t)(((uint32_t)info.ordinal + i) % count);
    status = kjit_get_device(context, info.kind, ordinal, &call->devices[i]);
  }
  call->options.devices = call->devices;
  call->options.device_count = call->device_count;
  return status;
}

bool run_run_call(kjit_context *context, run_step *step)
{
  run_call *call = step->call;
  kjit_status status = KJIT_OK;
  call->options.device = step->config.device;
  if (call->device_count) status = choose_devices(context, call);
  if (status != KJIT_OK) return fail_call(context, call, status);
  if (call->algorithm->takes_no_plan) {
    status = perform(context, step);
    return status == KJIT_OK || fail_call(context, call, status);
  }
  if (!call->plan) {
    /* a call with chunks or several devices cannot be a plan */
    call->options.plan = call->options.chunk || call->device_count ? NULL : &call->plan;
    status = perform(context, step);
  }
  if (status == KJIT_OK && call->plan) status = kjit_run_plan(call->plan, NULL);
  return status == KJIT_OK || fail_call(context, call, status);
}

void run_destroy_call(run_call *call)
{
  if (!call) return;
  kjit_destroy_plan(call->plan);
  free(call->initial_bytes);
  free(call->signature);
  for (size_t i = 0; i < call->part_count; i++) free(call->parts[i].text);
  free(call->parts);
  free(call->operands);
  free(call->operators);
  free(call);
}
