/* Parser for the text of a --call:
 *
 *     [RESULT {, RESULT} =] ALGORITHM(OPERAND {, OPERAND} {, OPTION=VALUE})
 *
 * An operand is an --arg, a view of an --arg, a value, or a func with its arguments and its
 * shape. */
#include "call.h"

#include "launch.h"
#include "sparse.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static run_part *append_part(run_call *call, size_t parameter, const char *at)
{
  run_part *parts = tool_allocate((call->part_count + 1) * sizeof *parts);
  if (call->part_count) memcpy(parts, call->parts, call->part_count * sizeof *parts);
  free(call->parts);
  call->parts = parts;
  call->parts[call->part_count] = (run_part){ .parameter = parameter, .at = at };
  return &call->parts[call->part_count++];
}

static bool is_given(const run_call *call, size_t parameter)
{
  for (size_t i = 0; i < call->part_count; i++)
    if (call->parts[i].parameter == parameter) return true;
  return false;
}

/* ---- operands ---- */

/* Scans the shape of an operand that a func computes, such as "[1000, 50]". */
static bool scan_shape(tool_scanner *scanner, run_part *part)
{
  if (!tool_accept(scanner, '['))
    return tool_expected(scanner, "'[' and the shape that the func is computed over");
  if (tool_accept(scanner, ']')) return true;
  do {
    tool_skip_blanks(scanner);
    const char *at = scanner->at;
    if (part->rank == TOOL_MAX_RANK)
      return tool_scan_fail(scanner, at, "a shape has at most %d dimensions", TOOL_MAX_RANK);
    int64_t *extent = &part->shape[part->rank++];
    if (!tool_scan_integer(scanner, "an extent", extent)) return false;
    if (*extent < 0) return tool_scan_fail(scanner, at, "an extent must not be negative");
  } while (tool_accept(scanner, ','));
  return tool_accept(scanner, ']') || tool_expected(scanner, "',' or ']'");
}

/* Scans a func with arguments such as "distance(x, y, 2.0f32)". */
static bool scan_called(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part)
{
  part->operand = step->count;
  if (!run_scan_function(m, scanner, run_append_operand(step))) return false;
  if (tool_accept(scanner, '(') && !run_scan_operands(m, scanner, step)) return false;
  part->array_count = step->count - part->operand - 1;
  return true;
}

/* Scans a func with arguments and shape such as "distance(x, y, 2.0f32)[1000, 50]". */
static bool scan_computed(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part)
{
  return scan_called(m, scanner, step, part) && scan_shape(scanner, part);
}

bool run_scan_operand(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part)
{
  size_t length = tool_name_length(scanner);
  part->operand = step->count;
  if (tool_is_value(scanner)) {
    run_operand *operand = run_append_operand(step);
    return tool_scan_value(scanner, &operand->argument.value);
  }
  if (tool_find_argument(m->arguments, scanner->at, length)) {
    tool_argument *argument = &run_append_operand(step)->argument;
    return tool_scan_reference(m->arguments, scanner, argument) &&
           run_check_nulls(m->error, argument, false);
  }
  if (tool_is_size(scanner))
    return tool_scan_value(scanner, &run_append_operand(step)->argument.value);
  return scan_computed(m, scanner, step, part);
}

/* ---- operators ---- */

static char *list_operators(void)
{
  char *list = tool_copy_text("", 0);
  for (size_t i = 0; kjit_get_operator_name(i); i++) {
    char *longer = tool_format("%s%s%s", list, i ? ", " : "", kjit_get_operator_name(i));
    free(list);
    list = longer;
  }
  return list;
}

static const char *find_operator(const char *name)
{
  for (size_t i = 0; kjit_get_operator_name(i); i++)
    if (!strcmp(kjit_get_operator_name(i), name)) return kjit_get_operator_name(i);
  return NULL;
}

/* Returns whether the module or one of its imports declares the name. Built-ins do not count,
 * because they are found without any module. */
static bool is_of_module(const run_maker *m, const char *name)
{
  kjit_function *function;
  kjit_module *nothing;
  if (kjit_get_function(m->module, name, &function) != KJIT_OK ||
      kjit_parse_module(m->context, "", "", 0, &nothing) != KJIT_OK)
    return false;
  bool is_builtin = kjit_get_function(nothing, name, &function) == KJIT_OK;
  kjit_release_module(nothing);
  return !is_builtin;
}

/* Scans an operator. A name means a func of the module, or else an operator of kjit, or else a
 * built-in function. */
static bool scan_operator(const run_maker *m, tool_scanner *scanner, run_step *step, run_part *part)
{
  char *name;
  tool_skip_blanks(scanner);
  const char *at = scanner->at;
  if (!tool_scan_name(scanner, "an operator: a func or a name such as add", &name)) return false;
  if (!is_of_module(m, name)) part->operator_name = find_operator(name);
  bool ok = part->operator_name != NULL;
  if (!ok) {
    part->operand = step->count;
    ok = kjit_get_function(m->module, name, &run_append_operand(step)->function) == KJIT_OK;
  }
  if (!ok) {
    char *list = list_operators();
    tool_scan_fail(scanner, at,
                   "'%s' is neither a func of the module nor an operator; the operators are %s",
                   name, list);
    free(list);
  }
  free(name);
  return ok;
}

static bool scan_real(tool_scanner *scanner, double *real)
{
  tool_value value;
  if (!tool_is_value(scanner)) return tool_expected(scanner, "a number");
  if (!tool_scan_value(scanner, &value)) return false;
  *real = tool_number_real(&value.number);
  return true;
}

static bool scan_bits(tool_scanner *scanner, const char *name, int64_t *integer)
{
  uint64_t bits;
  if (!tool_scan_bits(scanner, name, &bits)) return false;
  *integer = (int64_t)bits;
  return true;
}

/* Returns whether the first operand is an array of u64. */
static bool is_of_u64(const run_step *step)
{
  const run_part *part = step->call->parts;
  if (part->parameter) return false;
  const run_operand *operand = &step->operands[part->operand];
  return operand->argument.is_array && operand->argument.array.element == KJIT_U64;
}

/* Scans a number that elements of u64 can represent. */
static bool scan_u64(tool_scanner *scanner, const char *name, int64_t *integer)
{
  const char *start = scanner->at;
  if (!scan_bits(scanner, name, integer)) return false;
  return *start != '-' || !*integer ||
         tool_scan_fail(scanner, start, "%s is negative, but the elements are u64", name);
}

/* Scans a text in quotation marks such as "ij,jk->ik". */
static bool scan_text(tool_scanner *scanner, char **text)
{
  if (*scanner->at != '"')
    return tool_expected(scanner, "a text in quotation marks, \"ij,jk->ik\"");
  const char *end = strchr(scanner->at + 1, '"');
  if (!end) return tool_scan_fail(scanner, scanner->at, "the quotes are not closed");
  *text = tool_copy_text(scanner->at + 1, (size_t)(end - scanner->at - 1));
  scanner->at = end + 1;
  return true;
}

static bool scan_part(const run_maker *m, tool_scanner *scanner, run_step *step, size_t parameter)
{
  tool_skip_blanks(scanner);
  run_part *part = append_part(step->call, parameter, scanner->at);
  const char *name = step->call->algorithm->parameters[parameter].name;
  switch (step->call->algorithm->parameters[parameter].role) {
  case RUN_OPERATOR: return scan_operator(m, scanner, step, part);
  case RUN_FUNCTION:
    part->operand = step->count;
    return run_scan_function(m, scanner, run_append_operand(step));
  case RUN_CALLED: return scan_called(m, scanner, step, part);
  case RUN_INTEGER: return tool_scan_integer(scanner, name, &part->integer);
  case RUN_BITS: return scan_bits(scanner, name, &part->integer);
  case RUN_ELEMENT:
    return is_of_u64(step) ? scan_u64(scanner, name, &part->integer)
                           : tool_scan_integer(scanner, name, &part->integer);
  case RUN_TEXT: return scan_text(scanner, &part->text);
  case RUN_MATRIX: return run_scan_matrix(m, scanner, step, part);
  case RUN_REAL: return scan_real(scanner, &part->real);
  default: return run_scan_operand(m, scanner, step, part);
  }
}

/* ---- options ---- */

static void add_to_list(char **list, const char *name)
{
  char *longer = tool_format("%s%s%s", *list, **list ? ", " : "", name);
  free(*list);
  *list = longer;
}

/* Lists the names that a call can give a value: parameters that are numbers, then options. */
static char *list_options(const run_algorithm *algorithm)
{
  char *list = tool_copy_text("", 0);
  for (const run_parameter *p = algorithm->parameters; p->role; p++)
    if (run_is_number(p->role)) add_to_list(&list, p->name);
  for (size_t i = 0; i < RUN_OPTION_COUNT; i++)
    if (algorithm->options >> i & 1) add_to_list(&list, run_option_names[i]);
  return list;
}

static bool is_word(const char *word, const char *at, size_t length)
{
  return strlen(word) == length && !memcmp(word, at, length);
}

static bool fail_option(tool_scanner *scanner, const run_algorithm *algorithm, const char *at,
                        size_t length)
{
  char *list = list_options(algorithm);
  tool_scan_fail(scanner, at, "%s has no option '%.*s'%s%s", algorithm->name, (int)length, at,
                 *list ? "; it has " : "", list);
  free(list);
  return false;
}

/* Scans `axis=-1`, or a parameter given by name. */
static bool scan_named(const run_maker *m, tool_scanner *scanner, run_step *step, size_t length)
{
  run_call *call = step->call;
  const run_algorithm *algorithm = call->algorithm;
  const char *at = scanner->at;
  scanner->at += length;
  if (!tool_expect(scanner, '=')) return false;
  for (size_t i = 0; algorithm->parameters[i].role; i++) {
    if (algorithm->parameters[i].role == RUN_RESULT ||
        !is_word(algorithm->parameters[i].name, at, length))
      continue;
    if (is_given(call, i))
      return tool_scan_fail(scanner, at, "'%s' is given twice", algorithm->parameters[i].name);
    return scan_part(m, scanner, step, i);
  }
  for (run_option i = 0; i < RUN_OPTION_COUNT; i++) {
    if (!(algorithm->options >> i & 1) || !is_word(run_option_names[i], at, length)) continue;
    bool is_twice = call->option_at[i] || ((i == RUN_AXIS || i == RUN_AXES) && call->options.axes);
    if (is_twice)
      return tool_scan_fail(scanner, at, "the option '%.*s' is given twice", (int)length, at);
    call->option_at[i] = at;
    return run_scan_option(m, scanner, step, i);
  }
  return fail_option(scanner, algorithm, at, length);
}

/* ---- the call ---- */

static bool is_named(tool_scanner *scanner, size_t *length)
{
  *length = tool_name_length(scanner);
  const char *end = scanner->at + *length;
  while (isspace((unsigned char)*end)) end++;
  return *length && *end == '=';
}

/* Returns whether the next name can only be a func. This means that an optional operand before it
 * is omitted. */
static bool is_function(const run_maker *m, tool_scanner *scanner)
{
  size_t length = tool_name_length(scanner);
  const char *end = scanner->at + length;
  while (isspace((unsigned char)*end)) end++;
  return length && (*end == ',' || *end == ')') && !tool_is_value(scanner) &&
         !tool_find_argument(m->arguments, scanner->at, length);
}

static bool scan_positional(const run_maker *m, tool_scanner *scanner, run_step *step, size_t *next)
{
  const run_parameter *parameter = &step->call->algorithm->parameters[*next];
  tool_skip_blanks(scanner);
  if (parameter->role == RUN_INPUT && parameter->is_optional && !parameter->is_repeated &&
      parameter[1].role == RUN_FUNCTION && is_function(m, scanner))
    parameter = &step->call->algorithm->parameters[++*next];
  if (!parameter->role ||
      (parameter->role == RUN_OPERATOR && !parameter->is_repeated && is_given(step->call, *next)))
    return tool_scan_fail(scanner, scanner->at, "%s takes no more operands", step->name);
  if (!scan_part(m, scanner, step, *next)) return false;
  if (!parameter->is_repeated) ++*next;
  return true;
}

static bool check_complete(tool_scanner *scanner, const run_call *call, const char *name)
{
  const run_parameter *parameters = call->algorithm->parameters;
  for (size_t i = 0; parameters[i].role; i++)
    if (!parameters[i].is_optional && parameters[i].role != RUN_RESULT && !is_given(call, i))
      return tool_scan_fail(scanner, scanner->at, "%s needs '%s'", name, parameters[i].name);
  return true;
}

/* Scans the arguments after the name: "(x, add, axis=-1)". */
static bool scan_arguments(const run_maker *m, tool_scanner *scanner, run_step *step)
{
  size_t next = 0, length;
  while (step->call->algorithm->parameters[next].role == RUN_RESULT) next++;
  if (!tool_expect(scanner, '(')) return false;
  tool_skip_blanks(scanner);
  bool is_empty = *scanner->at == ')', has_options = false;
  while (!is_empty) {
    bool is_option = is_named(scanner, &length);
    if (!is_option && has_options)
      return tool_scan_fail(scanner, scanner->at, "operands come before options");
    has_options = is_option;
    if (!(is_option ? scan_named(m, scanner, step, length)
                    : scan_positional(m, scanner, step, &next)))
      return false;
    if (!tool_accept(scanner, ',')) break;
  }
  tool_skip_blanks(scanner);
  if (*scanner->at != ')') return tool_expected(scanner, "',' or ')'");
  if (!check_complete(scanner, step->call, step->name)) return false;
  scanner->at++;
  return tool_expect_end(scanner);
}

/* ---- results ---- */

/* Returns the text after the `=` of the results, or the beginning of the text if there are no
 * results. */
static const char *find_right_side(const char *text)
{
  int depth = 0;
  for (const char *at = text; *at; at++) {
    depth += *at == '(' || *at == '[';
    depth -= *at == ')' || *at == ']';
    if (*at == '=' && !depth) return at + 1;
  }
  return text;
}

/* Scans a result: an array, a func that writes, or the name of a new array. */
static bool scan_result(const run_maker *m, tool_scanner *scanner, run_step *step, size_t parameter)
{
  size_t length = tool_name_length(scanner);
  if (!length) return tool_expected(scanner, "the name of a result");
  const char *end = scanner->at + length;
  while (isspace((unsigned char)*end)) end++;
  bool is_new =
    !tool_find_argument(m->arguments, scanner->at, length) && *end != '(' && *end != '[';
  if (!is_new) return scan_part(m, scanner, step, parameter);
  append_part(step->call, parameter, scanner->at)->new_length = length;
  scanner->at += length;
  return true;
}

/* Reports results on the left side of an algorithm that has none. */
static bool fail_results(tool_scanner *scanner, const run_algorithm *algorithm)
{
  const run_parameter *first = algorithm->parameters;
  bool writes = first->role == RUN_WRITTEN || first->role == RUN_IN_PLACE;
  if (!writes)
    return tool_scan_fail(scanner, scanner->at, "%s has no result; write %s(...)", algorithm->name,
                          algorithm->name);
  return tool_scan_fail(scanner, scanner->at,
                        "%s has no result, because it writes '%s'; write %s(%s, ...)",
                        algorithm->name, first->name, algorithm->name, first->name);
}

static bool scan_results(const run_maker *m, tool_scanner *scanner, run_step *step)
{
  const run_algorithm *algorithm = step->call->algorithm;
  size_t parameter = 0;
  tool_skip_blanks(scanner);
  if (algorithm->parameters[0].role != RUN_RESULT) return fail_results(scanner, algorithm);
  do {
    tool_skip_blanks(scanner);
    if (algorithm->parameters[parameter].role != RUN_RESULT)
      return tool_scan_fail(scanner, scanner->at, "%s has %zu result%s", algorithm->name, parameter,
                            parameter == 1 ? "" : "s");
    if (!scan_result(m, scanner, step, parameter)) return false;
    if (!algorithm->parameters[parameter].is_repeated) parameter++;
  } while (tool_accept(scanner, ','));
  return tool_accept(scanner, '=') || tool_expected(scanner, "',' or '='");
}

/* For calls such as `sort(keys, values)` without results: uses the operands as results in the same
 * positions. */
static void take_places(run_call *call)
{
  size_t results = 0;
  while (call->algorithm->parameters[results].role == RUN_RESULT) results++;
  for (size_t i = 0, count = call->part_count; i < count; i++) {
    run_part part = call->parts[i];
    if (part.parameter < results || part.parameter >= 2 * results ||
        call->algorithm->parameters[part.parameter].role != RUN_INPUT)
      continue;
    *append_part(call, part.parameter - results, part.at) = part;
    call->parts[call->part_count - 1].parameter -= results;
  }
}

/* Checks that optional results and their operands are given together. */
static bool check_pairs(tool_scanner *scanner, const run_call *call)
{
  const run_parameter *parameters = call->algorithm->parameters;
  size_t results = 0;
  while (parameters[results].role == RUN_RESULT) results++;
  for (size_t i = 0; i < results; i++)
    if (is_given(call, i) != is_given(call, results + i))
      return tool_scan_fail(scanner, scanner->at, "%s returns '%s' only together with '%s'",
                            call->algorithm->name, parameters[i].name,
                            parameters[results + i].name);
  return true;
}

/* Returns the names of the results that a call must have, for example "NAME" or "values, count". */
static char *list_results(const run_parameter *parameters)
{
  char *list = tool_copy_text("", 0);
  size_t count = 0;
  for (size_t i = 0; parameters[i].role == RUN_RESULT; i++) {
    if (parameters[i].is_optional) continue;
    char *longer = tool_format("%s%s%s", list, count++ ? ", " : "", parameters[i].name);
    free(list);
    list = longer;
  }
  if (count != 1) return list;
  free(list);
  return tool_copy_text("NAME", 4);
}

static bool check_results(tool_scanner *scanner, const run_call *call, const char *name)
{
  const run_parameter *parameters = call->algorithm->parameters;
  for (size_t i = 0; parameters[i].role == RUN_RESULT; i++) {
    if (parameters[i].is_optional || is_given(call, i)) continue;
    char *results = list_results(parameters);
    tool_scan_fail(scanner, scanner->text, "%s gives '%s': %s = %s(...)", name, parameters[i].name,
                   results, name);
    free(results);
    return false;
  }
  return true;
}

static size_t count_parts(const run_call *call, size_t parameter)
{
  size_t count = 0;
  for (size_t i = 0; i < call->part_count; i++) count += call->parts[i].parameter == parameter;
  return count;
}

/* Checks that there is one result for each operator. */
static bool check_operators(tool_scanner *scanner, const run_call *call)
{
  const run_parameter *parameters = call->algorithm->parameters;
  for (size_t i = 0; parameters[i].role; i++) {
    if (parameters[i].role != RUN_OPERATOR || !parameters[i].is_repeated) continue;
    size_t operators = count_parts(call, i), results = count_parts(call, 0);
    if (operators != results)
      return tool_scan_fail(scanner, scanner->at, "%s has %zu operator%s for %zu result%s",
                            call->algorithm->name, operators, operators == 1 ? "" : "s", results,
                            results == 1 ? "" : "s");
  }
  return true;
}

static bool fail_algorithm(tool_scanner *scanner, size_t length)
{
  char *advice = run_advise(scanner->at, length);
  if (advice) {
    tool_scan_fail(scanner, scanner->at, "there is no algorithm '%.*s'; %s", (int)length,
                   scanner->at, advice);
    free(advice);
    return false;
  }
  char *list = run_list_algorithms(), *similar = run_similar_algorithm(scanner->at, length);
  tool_scan_fail(scanner, scanner->at, "there is no algorithm '%.*s'%s%s", (int)length, scanner->at,
                 *similar ? similar : ": there are ", *similar ? "" : list);
  free(similar);
  free(list);
  return false;
}

/* Adds the operator that a shorthand implies to the operands. */
static void give_operator(run_call *call, const run_shorthand *shorthand)
{
  const run_parameter *parameters = call->algorithm->parameters;
  size_t parameter = 0;
  while (parameters[parameter].role != RUN_OPERATOR) parameter++;
  append_part(call, parameter, call->scanner.at)->operator_name =
    find_operator(shorthand->operator_name);
}

bool run_scan_call_text(const run_maker *m, run_step *step)
{
  run_call *call = step->call;
  tool_scanner results = call->scanner, *scanner = &call->scanner;
  scanner->context = results.context = m->context;
  scanner->at = find_right_side(scanner->text);
  size_t length = tool_name_length(scanner);
  if (!length) return tool_expected(scanner, "the name of an algorithm");
  const run_shorthand *shorthand = run_find_shorthand(scanner->at, length);
  call->algorithm = shorthand
                      ? run_find_algorithm(shorthand->algorithm, strlen(shorthand->algorithm))
                      : run_find_algorithm(scanner->at, length);
  if (!call->algorithm) return fail_algorithm(scanner, length);
  step->name = tool_copy_text(scanner->at, length);
  bool has_results = find_right_side(scanner->text) != scanner->text;
  bool takes_places = !has_results && call->algorithm->is_in_place;
  if (has_results && !scan_results(m, &results, step)) return false;
  if (!takes_places && !check_results(scanner, call, step->name)) return false;
  if (shorthand) give_operator(call, shorthand);
  tool_scanner arguments = *scanner;
  arguments.at += length;
  if (!scan_arguments(m, &arguments, step)) return false;
  if (takes_places) take_places(call);
  return check_operators(scanner, call) &&
         (!call->algorithm->is_in_place || check_pairs(scanner, call));
}
