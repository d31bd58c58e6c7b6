#include "launch.h"

#include <ctype.h>
#include <driver/similar.h>
#include <stdlib.h>
#include <string.h>

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

/* Scans extents such as "64", "8x8" or "4x4x4". */
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

/* Scans "[threads]", a number that may exceed the maximum grid. Returns false without an error for
 * anything else. */
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

/* Scans "[grid, block]", "[grid, block, dynamic shared bytes]" or "[threads]". */
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
      scanner, at,
      "expected [GRID, BLOCK] or the number of threads without brackets: the block is missing");
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

static bool scan_operand(const run_maker *m, tool_scanner *scanner, run_step *step)
{
  if (tool_accept(scanner, '(')) return run_scan_operands(m, scanner, step); /* items in a tuple */
  run_operand *operand = run_append_operand(step);
  tool_skip_blanks(scanner);
  bool is_number =
    isdigit((unsigned char)*scanner->at) || (*scanner->at && strchr("+-.", *scanner->at));
  if (!is_number && !tool_name_length(scanner))
    return tool_expected(scanner, "an argument: the name of an --arg, a value, or a func");
  if (tool_is_value(scanner)) return tool_scan_value(scanner, &operand->argument.value);
  if (tool_find_argument(m->arguments, scanner->at, tool_name_length(scanner)))
    return tool_scan_reference(m->arguments, scanner, &operand->argument) &&
           run_check_nulls(m->error, &operand->argument, false);
  if (tool_is_size(scanner)) return tool_scan_value(scanner, &operand->argument.value);
  return run_scan_function(m, scanner, operand);
}

bool run_scan_operands(const run_maker *m, tool_scanner *scanner, run_step *step)
{
  if (tool_accept(scanner, ')')) return true;
  do {
    if (!scan_operand(m, scanner, step)) return false;
  } while (tool_accept(scanner, ','));
  return tool_accept(scanner, ')') || tool_expected(scanner, "',' or ')'");
}

/* Binds the size of --sweep to a parameter with the same name, unless an --arg has this name. */
static bool bind_size(const run_maker *m, const char *name, run_step *step)
{
  tool_size *size = m->arguments->size;
  if (!size || strcmp(size->name, name) != 0) return false;
  size->is_used = true;
  run_append_operand(step)->argument.value =
    (tool_value){ .type = KJIT_ANY, .number = tool_make_integer(size->value) };
  return true;
}

static bool bind_by_name(const run_maker *m, run_step *step)
{
  kjit_parameter_info info = { .size_bytes = sizeof info };
  for (size_t i = 0; kjit_get_parameter_info(step->kernel, i, &info) == KJIT_OK; i++) {
    tool_argument *found = tool_find_argument(m->arguments, info.name, strlen(info.name));
    if (found) found->is_used = true;
    if (!found && bind_size(m, info.name, step)) continue;
    if (!found && info.has_default) return true;
    if (!found && info.is_function)
      return tool_fail(
        m->error, TOOL_EXIT_USAGE,
        "parameter '%s' of the kernel '%s' takes a func: name it in --launch '%s(...)'", info.name,
        step->name, step->name);
    if (!found)
      return tool_fail(m->error, TOOL_EXIT_USAGE,
                       "the kernel '%s' has a parameter '%s', but there is no --arg %s=...",
                       step->name, info.name, info.name);
    if (!run_check_nulls(m->error, found, false)) return false;
    run_append_operand(step)->argument = *found;
  }
  return true;
}

/* ---- launches ---- */

static bool check_written(const run_maker *m, const run_step *step)
{
  kjit_parameter_info info = { .size_bytes = sizeof info };
  for (size_t i = 0; i < step->count && kjit_get_parameter_info(step->kernel, i, &info) == KJIT_OK;
       i++) {
    const run_operand *operand = &step->operands[i];
    if (!operand->function && info.is_written &&
        !run_check_nulls(m->error, &operand->argument, true))
      return false;
  }
  return true;
}

static void count_traffic(run_step *step)
{
  kjit_parameter_info info = { .size_bytes = sizeof info };
  for (size_t i = 0; i < step->count && kjit_get_parameter_info(step->kernel, i, &info) == KJIT_OK;
       i++) {
    const run_operand *operand = &step->operands[i];
    if (!operand->function && operand->argument.is_array)
      step->traffic_bytes += tool_array_bytes(&operand->argument.array) *
                             (uint64_t)((info.is_read != 0) + (info.is_written != 0));
  }
}

/* The kernel and the parameter numbers of "adjoint(kernel, 0, 2)", for which derivatives are
 * computed. */
enum { MOST_CHOSEN = 64 };
typedef struct adjoint {
  bool is_asked;
  uint32_t parameters[MOST_CHOSEN];
  size_t count;
} adjoint;

static bool find_kernel(const run_maker *m, tool_scanner *scanner, run_step *step, adjoint *of);

static bool scan_adjoint(const run_maker *m, tool_scanner *scanner, run_step *step, adjoint *of)
{
  adjoint inner = { 0 };
  free(step->name);
  of->is_asked = true;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!find_kernel(m, scanner, step, &inner)) return false;
  if (inner.is_asked)
    return tool_scan_fail(scanner, at, "expected the name of a kernel: `adjoint` cannot be nested");
  while (tool_accept(scanner, ',')) {
    int64_t number;
    tool_skip_blanks(scanner);
    at = scanner->at;
    if (!tool_scan_integer(scanner, "a parameter number", &number)) return false;
    if (number < 0 || number >= MOST_CHOSEN || of->count == MOST_CHOSEN)
      return tool_scan_fail(scanner, at, "expected a parameter number, from 0, not %lld",
                            (long long)number);
    of->parameters[of->count++] = (uint32_t)number;
  }
  return tool_expect(scanner, ')');
}

static bool is_array_of_floats(const tool_argument *argument)
{
  return argument && argument->is_array &&
         tool_elements[argument->array.element].class_ == TOOL_FLOAT;
}

/* Without numbers, chooses all parameters that are arrays of floats. */
static void choose_arrays(const run_maker *m, const run_step *step, adjoint *of)
{
  kjit_parameter_info info = { .size_bytes = sizeof info };
  for (size_t i = 0; kjit_get_parameter_info(step->kernel, i, &info) == KJIT_OK; i++) {
    const tool_argument *argument =
      step->count > i ? &step->operands[i].argument
                      : tool_find_argument(m->arguments, info.name, strlen(info.name));
    bool is_func = step->count > i && step->operands[i].function;
    if (!is_func && is_array_of_floats(argument) && of->count < MOST_CHOSEN)
      of->parameters[of->count++] = (uint32_t)i;
  }
}

/* Replaces the kernel of the step by its adjoint. */
static bool make_adjoint(const run_maker *m, run_step *step, adjoint *of)
{
  if (!of->is_asked) return true;
  if (!of->count) choose_arrays(m, step, of);
  kjit_status status =
    kjit_get_adjoint(step->kernel, of->parameters, of->count, &step->adjoint, &step->kernel);
  return status == KJIT_OK ||
         tool_fail_kjit(m->error, m->context, status, "making the adjoint of a kernel");
}

static bool find_kernel(const run_maker *m, tool_scanner *scanner, run_step *step, adjoint *of)
{
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_name(scanner, "the name of a kernel", &step->name)) return false;
  if (strcmp(step->name, "adjoint") == 0 && tool_accept(scanner, '('))
    return scan_adjoint(m, scanner, step, of);
  if (kjit_get_kernel(m->module, step->name, &step->kernel) == KJIT_OK) return true;
  const char *first = kjit_get_kernel_name(m->module, 0), *name;
  tool_similar similar = { .name = step->name, .length = strlen(step->name) };
  for (size_t i = 0; (name = kjit_get_kernel_name(m->module, i)); i++)
    tool_offer_name(&similar, name);
  char *meant = similar.nearest ? tool_similar_text(&similar)
                : first         ? tool_format("; its first one is %s", first)
                                : tool_copy_text(" and no kernel at all", 21);
  tool_scan_fail(scanner, at, "the module has no kernel '%s'%s", step->name, meant);
  free(meant);
  return false;
}

bool run_scan_launch(const run_maker *m, const char *text, run_step *step)
{
  tool_scanner scanner = tool_scan("--launch", text, m->error);
  scanner.size = m->arguments->size;
  adjoint of = { 0 };
  if (!find_kernel(m, &scanner, step, &of)) return false;
  if (tool_accept(&scanner, '[') && !scan_configuration(&scanner, &step->config)) return false;
  bool is_by_name = tool_at_end(&scanner);
  if (!is_by_name && !tool_accept(&scanner, '('))
    return tool_expected(&scanner, "[GRID, BLOCK], (ARGUMENTS) or the end");
  bool ok = is_by_name ? make_adjoint(m, step, &of) && bind_by_name(m, step)
                       : run_scan_operands(m, &scanner, step) && tool_expect_end(&scanner) &&
                           make_adjoint(m, step, &of);
  if (ok) count_traffic(step);
  return ok && check_written(m, step);
}

bool run_make_only_launch(const run_maker *m, run_step *step)
{
  const char *name = kjit_get_kernel_name(m->module, 0);
  if (!name) return tool_fail(m->error, TOOL_EXIT_IR, "the module has no kernel");
  if (kjit_get_kernel_name(m->module, 1))
    return tool_fail(m->error, TOOL_EXIT_USAGE,
                     "the module has more than one kernel (%s, %s ...); choose one with --launch",
                     name, kjit_get_kernel_name(m->module, 1));
  step->name = tool_copy_text(name, strlen(name));
  kjit_status status = kjit_get_kernel(m->module, name, &step->kernel);
  if (status != KJIT_OK) return tool_fail_kjit(m->error, m->context, status, "getting the kernel");
  bool ok = bind_by_name(m, step);
  if (ok) count_traffic(step);
  return ok && check_written(m, step);
}
