#include "signature.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *given_type(const compile_options *options, const char *name)
{
  size_t length = strlen(name);
  for (size_t i = 0; i < options->type_count; i++)
    if (!strncmp(options->types[i], name, length) && options->types[i][length] == '=')
      return options->types[i] + length + 1;
  return NULL;
}

static bool is_parameter(kjit_kernel *kernel, const char *name, size_t length)
{
  kjit_parameter_info info = { .size_bytes = sizeof info };
  for (size_t i = 0; kjit_get_parameter_info(kernel, i, &info) == KJIT_OK; i++)
    if (strlen(info.name) == length && !memcmp(info.name, name, length)) return true;
  return false;
}

static bool check_names(tool_error *error, kjit_kernel *kernel, const char *kernel_name,
                        const compile_options *options)
{
  for (size_t i = 0; i < options->type_count; i++) {
    const char *equals = strchr(options->types[i], '=');
    if (!equals)
      return tool_fail(error, TOOL_EXIT_USAGE, "--type: expected NAME=TYPE, not '%s'",
                       options->types[i]);
    int length = (int)(equals - options->types[i]);
    if (!is_parameter(kernel, options->types[i], (size_t)length))
      return tool_fail(error, TOOL_EXIT_USAGE, "--type: the kernel '%s' has no parameter '%.*s'",
                       kernel_name, length, options->types[i]);
    for (size_t k = 0; k < i; k++)
      if (!strncmp(options->types[k], options->types[i], (size_t)length + 1))
        return tool_fail(error, TOOL_EXIT_USAGE, "--type: the type of '%.*s' is given twice",
                         length, options->types[i]);
  }
  return true;
}

static char *parameter_type(kjit_context *context, const compile_options *options,
                            const kjit_parameter_info *info)
{
  const char *given = given_type(options, info->name);
  if (given) return tool_copy_text(given, strlen(given));
  if (info->annotation == KJIT_ANY || info->is_function || info->is_const) return NULL;
  char *text = kjit_copy_type_text(context, info->annotation),
       *copy = text ? tool_copy_text(text, strlen(text)) : NULL;
  kjit_free(context, text);
  return copy;
}

bool compile_make_signature(tool_error *error, kjit_context *context, kjit_kernel *kernel,
                            const char *kernel_name, const compile_options *options,
                            char **signature)
{
  if (options->signature) {
    *signature = tool_copy_text(options->signature, strlen(options->signature));
    return true;
  }
  if (!check_names(error, kernel, kernel_name, options)) return false;
  kjit_parameter_info info = { .size_bytes = sizeof info };
  char *text = tool_copy_text("", 0);
  for (size_t i = 0; kjit_get_parameter_info(kernel, i, &info) == KJIT_OK; i++) {
    char *type = parameter_type(context, options, &info);
    if (!type && info.has_default) break;
    if (!type) {
      free(text);
      return tool_fail(error, TOOL_EXIT_USAGE,
                       "parameter '%s' of the kernel '%s' has no type in the source: give "
                       "--signature or --type %s=%s",
                       info.name, kernel_name, info.name,
                       info.is_function ? "FUNC"
                       : info.is_const  ? "VALUE"
                                        : "TYPE");
    }
    char *longer = tool_format("%s%s%s", text, i ? ", " : "", type);
    free(type);
    free(text);
    text = longer;
  }
  *signature = text;
  return true;
}

static void list_parameter(kjit_context *context, const kjit_parameter_info *info, bool is_first)
{
  char *type = info->annotation == KJIT_ANY ? NULL : kjit_copy_type_text(context, info->annotation);
  printf("%s%s%s%s%s%s", is_first ? "" : ", ", info->is_const ? "const " : "", info->name,
         type                ? ": "
         : info->is_function ? ": func"
                             : "",
         type ? type : "", info->has_default ? " = default" : "");
  kjit_free(context, type);
}

void compile_list_kernels(kjit_context *context, kjit_module *module)
{
  const char *name;
  for (size_t k = 0; (name = kjit_get_kernel_name(module, k)); k++) {
    kjit_kernel *kernel;
    kjit_parameter_info info = { .size_bytes = sizeof info };
    if (kjit_get_kernel(module, name, &kernel) != KJIT_OK) continue;
    printf("%s(", name);
    for (size_t i = 0; kjit_get_parameter_info(kernel, i, &info) == KJIT_OK; i++)
      list_parameter(context, &info, i == 0);
    printf(")\n");
  }
}
