#include "launch.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct maker {
  tool_error *error;
  kjit_context *context;
  kjit_module *module;
  const tool_arguments *arguments;
} maker;

static run_operand *append_operand(run_launch *launch)
{
  run_operand *operands = tool_allocate((launch->count + 1) * sizeof *operands);
  if (launch->count) memcpy(operands, launch->operands, launch->count * sizeof *operands);
  free(launch->operands);
  launch->operands = operands;
  return &launch->operands[launch->count++];
}

/* ---- configuration ---- */

static bool scan_dimension(tool_scanner *scanner, const char *what, uint32_t *extent)
{
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  int64_t value;
  if (!tool_scan_integer(scanner, what, &value)) return false;
  if (value < 1 || value > UINT32_MAX)
    return tool_scan_fail(scanner, at, "expected %s from 1 to 4294967295, not %lld", what,
                          (long long)value);
  *extent = (uint32_t)value;
  return true;
}

/* "64", "8x8", "4x4x4" */
static bool scan_extents(tool_scanner *scanner, const char *what, uint32_t extents[3],
                         uint32_t *rank)
{
  *rank = 0;
  do {
    if (*rank == 3)
      return tool_scan_fail(scanner, scanner->at, "a grid or a block has at most 3 dimensions");
    if (!scan_dimension(scanner, what, &extents[(*rank)++])) return false;
  } while (tool_accept(scanner, 'x'));
  return true;
}

/* "[threads]", which may be more than a grid has blocks; false, without an error: something else.
 */
static bool scan_threads(tool_scanner *scanner, kjit_launch_config *config)
{
  tool_error ignored = { 0 };
  tool_scanner trial = *scanner;
  int64_t threads;
  trial.error = &ignored;
  bool ok = tool_scan_integer(&trial, "a number of threads", &threads) && threads > 0 &&
            tool_accept(&trial, ']');
  free(ignored.text);
  if (!ok) return false;
  scanner->at = trial.at;
  config->threads = (uint64_t)threads;
  return true;
}

/* "[grid, block]", "[grid, block, dynamic shared bytes]", "[threads]" */
static bool scan_configuration(tool_scanner *scanner, kjit_launch_config *config)
{
  uint32_t rank, block_rank;
  int64_t shared_bytes;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (scan_threads(scanner, config)) return true;
  if (!scan_extents(scanner, "an extent of the grid", config->grid, &rank)) return false;
  if (tool_accept(scanner, ']'))
    return tool_scan_fail(
      scanner, at, "expected [GRID, BLOCK], or the number of threads alone: there is no block");
  if (!tool_expect(scanner, ',') ||
      !scan_extents(scanner, "an extent of the block", config->block, &block_rank))
    return false;
  for (uint32_t d = rank; d < 3; d++) config->grid[d] = 1;
  for (uint32_t d = block_rank; d < 3; d++) config->block[d] = 1;
  if (tool_accept(scanner, ']')) return true;
  if (!tool_expect(scanner, ',')) return false;
  tool_skip_blanks(scanner);
  at = scanner->at;
  if (!tool_scan_integer(scanner, "the bytes of dynamic shared memory", &shared_bytes))
    return false;
  if (shared_bytes < 0)
    return tool_scan_fail(scanner, at, "the bytes of dynamic shared memory must not be negative");
  config->dynamic_shared_bytes = (uint64_t)shared_bytes;
  return tool_expect(scanner, ']');
}

/* ---- operands ---- */

static bool scan_function(const maker *m, tool_scanner *scanner, run_operand *operand)
{
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  char *name;
  if (!tool_scan_name(scanner, "an argument", &name)) return false;
  bool found = kjit_get_function(m->module, name, &operand->function) == KJIT_OK;
  const kjit_diagnostic *reason = found ? NULL : kjit_get_diagnostic(m->context, 0);
  if (!found)
    tool_scan_fail(scanner, at, "'%s' is no --arg, and %s", name,
                   reason ? reason->message : "no func");
  free(name);
  return found;
}

static bool scan_operands(const maker *m, tool_scanner *scanner, run_launch *launch);

static bool scan_operand(const maker *m, tool_scanner *scanner, run_launch *launch)
{
  if (tool_accept(scanner, '(')) return scan_operands(m, scanner, launch); /* a tuple's items */
  run_operand *operand = append_operand(launch);
  tool_skip_blanks(scanner);
  bool is_number =
    isdigit((unsigned char)*scanner->at) || (*scanner->at && strchr("+-.", *scanner->at));
  if (!is_number && !tool_name_length(scanner))
    return tool_expected(scanner, "an argument: the name of an --arg, a value, or a func");
  if (tool_is_value(scanner)) return tool_scan_value(scanner, &operand->argument.value);
  if (tool_find_argument(m->arguments, scanner->at, tool_name_length(scanner)))
    return tool_scan_reference(m->arguments, scanner, &operand->argument);
  return scan_function(m, scanner, operand);
}

static bool scan_operands(const maker *m, tool_scanner *scanner, run_launch *launch)
{
  if (tool_accept(scanner, ')')) return true;
  do {
    if (!scan_operand(m, scanner, launch)) return false;
  } while (tool_accept(scanner, ','));
  return tool_accept(scanner, ')') || tool_expected(scanner, "',' or ')'");
}

static bool bind_by_name(const maker *m, run_launch *launch)
{
  kjit_parameter_info info;
  for (size_t i = 0; kjit_get_parameter_info(launch->kernel, i, &info) == KJIT_OK; i++) {
    tool_argument *found = tool_find_argument(m->arguments, info.name, strlen(info.name));
    if (found) found->is_used = true;
    if (!found && info.has_default) return true;
    if (!found && info.is_function)
      return tool_fail(
        m->error, TOOL_EXIT_USAGE,
        "parameter '%s' of the kernel '%s' takes a func: name it in --launch '%s(...)'", info.name,
        launch->kernel_name, launch->kernel_name);
    if (!found)
      return tool_fail(m->error, TOOL_EXIT_USAGE,
                       "the kernel '%s' has a parameter '%s', but there is no --arg %s=...",
                       launch->kernel_name, info.name, info.name);
    append_operand(launch)->argument = *found;
  }
  return true;
}

/* ---- launches ---- */

static bool find_kernel(const maker *m, tool_scanner *scanner, run_launch *launch)
{
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_name(scanner, "the name of a kernel", &launch->kernel_name)) return false;
  if (kjit_get_kernel(m->module, launch->kernel_name, &launch->kernel) == KJIT_OK) return true;
  const char *first = kjit_get_kernel_name(m->module, 0);
  return tool_scan_fail(scanner, at, "the module has no kernel '%s'%s%s", launch->kernel_name,
                        first ? "; its first one is " : " and no kernel at all",
                        first ? first : "");
}

static bool scan_launch(const maker *m, const char *text, run_launch *launch)
{
  tool_scanner scanner = tool_scan("--launch", text, m->error);
  if (!find_kernel(m, &scanner, launch)) return false;
  if (tool_accept(&scanner, '[') && !scan_configuration(&scanner, &launch->config)) return false;
  if (tool_at_end(&scanner)) return bind_by_name(m, launch);
  if (!tool_accept(&scanner, '(')) return tool_expected(&scanner, "'[', '(' or the end");
  return scan_operands(m, &scanner, launch) && tool_expect_end(&scanner);
}

static bool make_only_launch(const maker *m, run_launch *launch)
{
  const char *name = kjit_get_kernel_name(m->module, 0);
  if (!name) return tool_fail(m->error, TOOL_EXIT_IR, "the module has no kernel");
  if (kjit_get_kernel_name(m->module, 1))
    return tool_fail(
      m->error, TOOL_EXIT_USAGE,
      "the module has more than one kernel (%s, %s ...): --launch says which to launch", name,
      kjit_get_kernel_name(m->module, 1));
  launch->kernel_name = tool_copy_text(name, strlen(name));
  kjit_status status = kjit_get_kernel(m->module, name, &launch->kernel);
  if (status != KJIT_OK) return tool_fail_kjit(m->error, m->context, status, "getting the kernel");
  return bind_by_name(m, launch);
}

static void count_traffic(run_launch *launch)
{
  kjit_parameter_info info;
  for (size_t i = 0;
       i < launch->count && kjit_get_parameter_info(launch->kernel, i, &info) == KJIT_OK; i++) {
    const run_operand *operand = &launch->operands[i];
    if (!operand->function && operand->argument.is_array)
      launch->traffic_bytes += tool_array_bytes(&operand->argument.array) *
                               (uint64_t)((info.is_read != 0) + (info.is_written != 0));
  }
}

bool run_make_launches(tool_error *error, kjit_context *context, kjit_module *module,
                       const tool_arguments *arguments, const char *const *texts, size_t count,
                       run_launches *launches)
{
  maker m = { error, context, module, arguments };
  launches->count = count ? count : 1;
  launches->items = tool_allocate(launches->count * sizeof *launches->items);
  for (size_t i = 0; i < launches->count; i++) {
    run_launch *launch = &launches->items[i];
    if (!(count ? scan_launch(&m, texts[i], launch) : make_only_launch(&m, launch))) return false;
    launch->arguments = tool_allocate(launch->count * sizeof *launch->arguments);
    count_traffic(launch);
  }
  return true;
}

void run_destroy_launches(run_launches *launches)
{
  for (size_t i = 0; i < launches->count; i++) {
    free(launches->items[i].kernel_name);
    free(launches->items[i].operands);
    free(launches->items[i].arguments);
  }
  free(launches->items);
}

/* ---- arguments of kjit_launch ---- */

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

void run_bind_launches(run_launches *launches, kjit_device *device)
{
  kjit_device_info info;
  kjit_get_device_info(device, &info);
  for (size_t i = 0; i < launches->count; i++) {
    run_launch *launch = &launches->items[i];
    launch->config.device = device;
    for (size_t k = 0; k < launch->count; k++) {
      run_operand *operand = &launch->operands[k];
      launch->arguments[k] =
        operand->function ? kjit_arg_function(operand->function)
        : operand->argument.is_array
          ? bind_array(operand, &info)
          : tool_scalar_argument(&operand->argument.value, operand->scalar.bytes);
    }
  }
}
