/* For each option, scans the value after `NAME=` in a --call. */
#include "call.h"

#include <stdlib.h>
#include <string.h>

static bool scan_axis(run_call *call, tool_scanner *scanner)
{
  int64_t axis;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_integer(scanner, "an axis", &axis)) return false;
  if (call->options.axis_count == TOOL_MAX_RANK || axis < -TOOL_MAX_RANK || axis >= TOOL_MAX_RANK)
    return tool_scan_fail(scanner, at, "an array has at most %d axes", TOOL_MAX_RANK);
  call->axes[call->options.axis_count++] = (int32_t)axis;
  call->options.axes = call->axes;
  return true;
}

/* Scans a tuple of axes: "(0, 2)", "(1,)", or "()" for none. */
static bool scan_axes(run_call *call, tool_scanner *scanner)
{
  if (!tool_expect(scanner, '(')) return false;
  call->options.axes = call->axes;
  while (!tool_accept(scanner, ')')) {
    if (!scan_axis(call, scanner)) return false;
    if (!tool_accept(scanner, ','))
      return tool_accept(scanner, ')') || tool_expected(scanner, "',' or ')'");
  }
  return true;
}

static bool scan_initial(const run_maker *m, tool_scanner *scanner, run_step *step)
{
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  run_part part = { 0 };
  step->call->initial = step->count;
  if (!tool_is_value(scanner) && !tool_find_argument(m->arguments, at, tool_name_length(scanner)))
    return tool_expected(scanner, "a value, or an --arg that has one");
  if (!run_scan_operand(m, scanner, step, &part)) return false;
  const tool_argument *argument = &step->operands[part.operand].argument;
  const tool_array *array = &argument->array;
  if (!argument->is_array) return true;
  if (array->lanes && !array->record.context)
    return tool_scan_fail(scanner, at, "expected a scalar or a struct, but this is a vector");
  if (tool_count(array) != (array->lanes ? array->lanes : 1))
    return tool_scan_fail(scanner, at,
                          "expected one value, but this array does not have exactly one");
  step->call->initial_bytes =
    tool_copy_text(tool_element_number(array, 0), tool_array_bytes(array));
  return true;
}

static bool scan_type(const run_maker *m, tool_scanner *scanner, kjit_type *type)
{
  char *name;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_name(scanner, "a type such as f64", &name)) return false;
  bool ok = kjit_parse_type(m->context, name, type) == KJIT_OK ||
            tool_scan_fail(scanner, at, "there is no type '%s'", name);
  free(name);
  return ok;
}

static bool scan_flag(tool_scanner *scanner, bool *flag)
{
  *flag = tool_accept_word(scanner, "true");
  return *flag || tool_accept_word(scanner, "false") || tool_expected(scanner, "true or false");
}

static bool scan_flag_of(run_call *call, tool_scanner *scanner, kjit_algorithm_flags flag)
{
  bool is_set = false;
  if (!scan_flag(scanner, &is_set)) return false;
  if (is_set) call->options.flags |= flag;
  return true;
}

static bool scan_bit(tool_scanner *scanner, uint32_t *bit)
{
  int64_t number;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_integer(scanner, "the number of a bit", &number)) return false;
  if (number < 0 || number > 64)
    return tool_scan_fail(scanner, at, "a bit number must be from 0 to 64");
  *bit = (uint32_t)number;
  return true;
}

static bool scan_chunk(tool_scanner *scanner, uint64_t *rows)
{
  int64_t number;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_integer(scanner, "a number of rows", &number)) return false;
  if (number < 0) return tool_scan_fail(scanner, at, "a number of rows must not be negative");
  *rows = (uint64_t)number;
  return true;
}

static bool scan_devices(tool_scanner *scanner, size_t *count)
{
  int64_t number;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_integer(scanner, "a number of devices", &number)) return false;
  if (number < 1 || number > RUN_MOST_DEVICES)
    return tool_scan_fail(scanner, at, "a call can use 1 to %d devices", RUN_MOST_DEVICES);
  *count = (size_t)number;
  return true;
}

static bool scan_where(const run_maker *m, tool_scanner *scanner, run_step *step)
{
  tool_skip_blanks(scanner);
  step->call->where = (run_part){ .at = scanner->at };
  return run_scan_operand(m, scanner, step, &step->call->where);
}

/* Scans a signature in quotation marks such as "\"(n),(n)->()\"". */
static bool scan_signature(run_call *call, tool_scanner *scanner)
{
  if (!tool_accept(scanner, '"')) return tool_expected(scanner, "core dimensions in quotes");
  const char *end = strchr(scanner->at, '"');
  if (!end) return tool_scan_fail(scanner, scanner->at, "the quotes are not closed");
  call->signature = tool_copy_text(scanner->at, (size_t)(end - scanner->at));
  scanner->at = end + 1;
  return true;
}

/* Scans "gelu" or "gelu(bias, 0.5)". */
static bool scan_epilogue(const run_maker *m, tool_scanner *scanner, run_step *step)
{
  run_call *call = step->call;
  call->epilogue = step->count;
  if (!run_scan_function(m, scanner, run_append_operand(step))) return false;
  if (!tool_accept(scanner, '(') || tool_accept(scanner, ')')) return true;
  do {
    tool_skip_blanks(scanner);
    if (call->extra_count == RUN_MOST_EXTRAS)
      return tool_scan_fail(scanner, scanner->at, "an epilogue has at most %d operands",
                            RUN_MOST_EXTRAS);
    run_part *part = &call->extras[call->extra_count++];
    *part = (run_part){ .at = scanner->at };
    if (!run_scan_operand(m, scanner, step, part)) return false;
  } while (tool_accept(scanner, ','));
  return tool_accept(scanner, ')') || tool_expected(scanner, "',' or ')'");
}

bool run_scan_option(const run_maker *m, tool_scanner *scanner, run_step *step, run_option option)
{
  run_call *call = step->call;
  switch (option) {
  case RUN_AXIS: return scan_axis(call, scanner);
  case RUN_AXES: return scan_axes(call, scanner);
  case RUN_INITIAL: return scan_initial(m, scanner, step);
  case RUN_ACCUMULATOR: return scan_type(m, scanner, &call->options.accumulator);
  case RUN_COMMUTES: return scan_flag(scanner, &call->commutes);
  case RUN_EXCLUSIVE: return scan_flag_of(call, scanner, KJIT_ALGORITHM_EXCLUSIVE);
  case RUN_DESCENDING: return scan_flag_of(call, scanner, KJIT_ALGORITHM_DESCENDING);
  case RUN_BEGIN_BIT: return scan_bit(scanner, &call->options.begin_bit);
  case RUN_END_BIT: return scan_bit(scanner, &call->options.end_bit);
  case RUN_WHERE: return scan_where(m, scanner, step);
  case RUN_SIGNATURE: return scan_signature(call, scanner);
  case RUN_OUTER: return scan_flag_of(call, scanner, KJIT_ALGORITHM_OUTER);
  case RUN_TF32: return scan_flag_of(call, scanner, KJIT_ALGORITHM_TF32);
  case RUN_E4M3: return scan_flag_of(call, scanner, KJIT_ALGORITHM_E4M3);
  case RUN_E5M2: return scan_flag_of(call, scanner, KJIT_ALGORITHM_E5M2);
  case RUN_RIGHT: return scan_flag_of(call, scanner, KJIT_ALGORITHM_RIGHT);
  case RUN_CHUNK: return scan_chunk(scanner, &call->options.chunk);
  case RUN_DEVICES: return scan_devices(scanner, &call->device_count);
  case RUN_EPILOGUE: return scan_epilogue(m, scanner, step);
  case RUN_OPTION_COUNT: break;
  }
  return false;
}
