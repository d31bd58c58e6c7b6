#include "step.h"

#include "call.h"
#include "formula.h"
#include "launch.h"
#include <driver/derived.h>
#include <stdlib.h>
#include <string.h>

run_operand *run_append_operand(run_step *step)
{
  run_operand *operands = tool_allocate((step->count + 1) * sizeof *operands);
  if (step->count) memcpy(operands, step->operands, step->count * sizeof *operands);
  free(step->operands);
  step->operands = operands;
  return &step->operands[step->count++];
}

bool run_scan_function(const run_maker *m, tool_scanner *scanner, run_operand *operand)
{
  tool_skip_blanks(scanner);
  if (tool_is_derivative(scanner))
    return tool_scan_derivative(scanner, m->context, m->module, &operand->function);
  const char *at = scanner->at;
  char *name;
  if (!tool_scan_name(scanner, "an argument", &name)) return false;
  bool found = kjit_get_function(m->module, name, &operand->function) == KJIT_OK;
  const kjit_diagnostic *reason = found ? NULL : kjit_get_diagnostic(m->context, 0);
  if (!found)
    tool_scan_fail(scanner, at, "'%s' is neither an --arg nor a func: %s", name,
                   reason ? reason->message : "no func has this name");
  free(name);
  return found;
}

bool run_check_nulls(tool_error *error, const tool_argument *argument, bool is_written)
{
  const tool_array *array = &argument->array;
  if (argument->is_array && array->memory->date.kind == TOOL_TIMESTAMP)
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "'%s' has dates, but kernels and algorithms take only numbers; --formula "
                     "'n = int64(%s)' converts them to counts of their unit",
                     argument->name, argument->name);
  if (argument->is_array && array->memory->has_texts && !array->memory->texts.count)
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "'%s' has texts, but kernels and algorithms take only numbers",
                     argument->name);
  if (argument->is_array && array->memory->has_texts)
    return tool_fail(
      error, TOOL_EXIT_USAGE,
      "'%s' has texts, such as \"%s\", but kernels and algorithms take only numbers; "
      "--formula 'x = %s == \"%s\"' compares them",
      argument->name, array->memory->texts.items[0], argument->name, array->memory->texts.items[0]);
  if (!argument->is_array || !array->memory->validity) return true;
  bool is_float = tool_elements[array->element].class_ >= TOOL_FLOAT;
  if (is_float && !is_written) return true;
  return tool_fail(error, TOOL_EXIT_USAGE,
                   "'%s' can have nulls, and %s; --formula '%s = fillna(%s, %s)' replaces them",
                   argument->name,
                   is_written ? "kernels and algorithms cannot write such an array"
                              : "kernels and algorithms support nulls only in float arrays, as NaN",
                   argument->name, argument->name, is_float ? "nan" : "0");
}

static bool make_step(const run_maker *m, const run_step_text *text, run_step *step)
{
  if (!text) return run_make_only_launch(m, step);
  switch (text->kind) {
  case RUN_STEP_CALL: return run_scan_call(m, text->text, step);
  case RUN_STEP_FORMULA: return run_scan_formula(m, text->text, step);
  case RUN_STEP_LAUNCH: break;
  }
  return run_scan_launch(m, text->text, step);
}

bool run_make_steps(const run_maker *m, const run_step_text *texts, size_t count, run_steps *steps)
{
  steps->count = count ? count : 1;
  steps->items = tool_allocate(steps->count * sizeof *steps->items);
  for (size_t i = 0; i < steps->count; i++) {
    run_step *step = &steps->items[i];
    step->config.size_bytes = sizeof step->config;
    if (!make_step(m, count ? &texts[i] : NULL, step)) return false;
    free(step->arguments);
    step->arguments = tool_allocate(step->count * sizeof *step->arguments);
  }
  return true;
}

void run_destroy_steps(run_steps *steps)
{
  for (size_t i = 0; i < steps->count; i++) {
    run_destroy_call(steps->items[i].call);
    run_destroy_formula(steps->items[i].formula);
    free(steps->items[i].name);
    kjit_release_module(steps->items[i].adjoint);
    free(steps->items[i].operands);
    free(steps->items[i].arguments);
  }
  free(steps->items);
}

const char *run_step_word(const run_steps *steps, bool is_plural)
{
  size_t calls = 0, launches = 0;
  for (size_t i = 0; i < steps->count; i++) {
    calls += steps->items[i].call != NULL;
    launches += steps->items[i].kernel != NULL;
  }
  if (launches == steps->count) return is_plural ? "launches" : "launch";
  if (calls == steps->count) return is_plural ? "calls" : "call";
  return is_plural ? "steps" : "step";
}

/* ---- arguments ---- */

static kjit_arg bind_array(run_operand *operand, const kjit_device_info *device)
{
  tool_array *array = &operand->argument.array;
  const tool_element *element = &tool_elements[array->element];
  void *base =
    array->memory->device ? kjit_get_tensor(array->memory->device)->data : array->memory->data;
  uint32_t rank = array->rank - (array->lanes ? 1 : 0), lanes = array->lanes ? array->lanes : 1;
  for (uint32_t d = 0; d < rank; d++) operand->strides[d] = array->strides[d] / lanes;
  operand->tensor = (kjit_tensor){
    .data = (void *)((uintptr_t)base + (uintptr_t)(array->offset * (int64_t)element->size_bytes)),
    .device_type = device->kind,
    .device_id = device->ordinal,
    .rank = (int32_t)rank,
    .code = element->code,
    .bits = element->bits,
    .lanes = (uint16_t)lanes,
    .shape = array->shape,
    .strides = operand->strides,
  };
  return array->record.context ? kjit_arg_elements(array->record.type, &operand->tensor)
                               : kjit_arg_tensor(&operand->tensor);
}

void run_bind_step(run_step *step, const kjit_device_info *device)
{
  for (size_t i = 0; i < step->count; i++) {
    run_operand *operand = &step->operands[i];
    step->arguments[i] = operand->function ? kjit_arg_function(operand->function)
                         : operand->argument.is_array
                           ? bind_array(operand, device)
                           : tool_scalar_argument(&operand->argument.value, operand->scalar.bytes);
  }
}

void run_bind_steps(run_steps *steps, kjit_device *device, uint64_t time_limit_ns)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_get_device_info(device, &info);
  for (size_t i = 0; i < steps->count; i++) {
    steps->items[i].config.device = device;
    steps->items[i].config.time_limit_ns = time_limit_ns;
    run_bind_step(&steps->items[i], &info);
  }
}
