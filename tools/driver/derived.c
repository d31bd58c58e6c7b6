/* Parses derivatives of funcs on the command line, such as `vjp(f)`, and creates them. */
#include "derived.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
  [KJIT_JVP] = "jvp", [KJIT_VJP] = "vjp", [KJIT_GRAD] = "grad"
};
enum { KIND_COUNT = sizeof kind_names / sizeof *kind_names, MOST_NUMBERS = 64 };

/* A parsed func: a func of the tool's module, or a derivative in its own module. */
typedef struct scanned {
  kjit_module *module;
  kjit_function *function;
  char *name;
} scanned;

/* Returns the kind of the derivative that follows, or KIND_COUNT if none follows. */
static int find_kind(tool_scanner *scanner)
{
  const size_t length = tool_name_length(scanner);
  const char *after = scanner->at + length;
  while (*after == ' ') after++;
  int kind = 0;
  while (kind < KIND_COUNT && (strlen(kind_names[kind]) != length ||
                               strncmp(scanner->at, kind_names[kind], length) != 0))
    kind++;
  return *after == '(' ? kind : KIND_COUNT;
}

bool tool_is_derivative(tool_scanner *scanner) { return find_kind(scanner) != KIND_COUNT; }

static bool scan_numbers(tool_scanner *scanner, uint32_t *numbers, size_t *count)
{
  while (tool_accept(scanner, ',')) {
    const char *at = scanner->at;
    int64_t number;
    if (!tool_scan_integer(scanner, "a parameter number", &number)) return false;
    if (number < 0 || number >= MOST_NUMBERS || *count == MOST_NUMBERS)
      return tool_scan_fail(scanner, at, "parameters are numbered from 0 to %d", MOST_NUMBERS - 1);
    numbers[(*count)++] = (uint32_t)number;
  }
  return tool_expect(scanner, ')');
}

/* Returns the name of the last func of the module, which is the one that kjit_derive has added. */
static char *last_name(kjit_module *module)
{
  size_t count = 0;
  while (kjit_get_function_name(module, count)) count++;
  const char *name = kjit_get_function_name(module, count - 1);
  return tool_copy_text(name, strlen(name));
}

static bool scan_func(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                      scanned *found);

static bool derive(tool_scanner *scanner, kjit_context *context, kjit_derivative kind,
                   kjit_module *module, scanned *found)
{
  scanned of = { 0 };
  uint32_t numbers[MOST_NUMBERS];
  size_t count = 0;
  const char *at = scanner->at;
  bool ok = scan_func(scanner, context, module, &of) && scan_numbers(scanner, numbers, &count);
  if (ok) {
    kjit_status status =
      kjit_derive(of.module, of.name, kind, numbers, count, &found->module, &found->function);
    ok = status == KJIT_OK || tool_scan_fail_kjit(scanner, at, context, status);
  }
  if (ok) found->name = last_name(found->module);
  if (of.module && of.module != module) kjit_release_module(of.module);
  free(of.name);
  return ok;
}

static bool scan_func(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                      scanned *found)
{
  const int kind = find_kind(scanner);
  const char *at = scanner->at;
  if (!tool_scan_name(scanner, "a func", &found->name)) return false;
  if (kind == KIND_COUNT) {
    found->module = module;
    kjit_status status = kjit_get_function(module, found->name, &found->function);
    return status == KJIT_OK || tool_scan_fail_kjit(scanner, at, context, status);
  }
  free(found->name);
  found->name = NULL;
  return tool_expect(scanner, '(') &&
         derive(scanner, context, (kjit_derivative)kind, module, found);
}

bool tool_scan_derivative(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                          kjit_function **function)
{
  scanned found = { 0 };
  bool ok = scan_func(scanner, context, module, &found);
  if (ok) *function = found.function;
  free(found.name);
  return ok;
}

/* ---- adjoints of kernels ---- */

bool tool_is_adjoint(tool_scanner *scanner)
{
  static const char word[] = "adjoint";
  const size_t length = tool_name_length(scanner);
  const char *after = scanner->at + length;
  while (*after == ' ') after++;
  return length == sizeof word - 1 && !strncmp(scanner->at, word, length) && *after == '(';
}

/* Returns the name of the last kernel of the module, which is the one that kjit_get_adjoint has
 * added. */
static const char *last_kernel_name(kjit_module *module)
{
  size_t count = 0;
  while (kjit_get_kernel_name(module, count)) count++;
  return kjit_get_kernel_name(module, count - 1);
}

bool tool_scan_adjoint(tool_scanner *scanner, kjit_context *context, kjit_module *module,
                       tool_adjoint *made)
{
  uint32_t numbers[MOST_NUMBERS];
  size_t count = 0;
  char *word = NULL, *name = NULL;
  kjit_kernel *kernel;
  kjit_status status = KJIT_OK;
  const char *at = scanner->at;
  bool ok = tool_scan_name(scanner, "adjoint", &word) && tool_expect(scanner, '(');
  if (ok) at = scanner->at;
  ok = ok && tool_scan_name(scanner, "a kernel", &name);
  if (ok) status = kjit_get_kernel(module, name, &kernel);
  ok = ok && status == KJIT_OK && scan_numbers(scanner, numbers, &count);
  if (ok) status = kjit_get_adjoint(kernel, numbers, count, &made->module, &made->kernel);
  if (ok && status == KJIT_OK) made->name = last_kernel_name(made->module);
  free(word);
  free(name);
  return status == KJIT_OK ? ok : tool_scan_fail_kjit(scanner, at, context, status);
}
