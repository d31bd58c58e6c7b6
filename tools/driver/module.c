#include "module.h"

#include "argument.h"
#include "array.h"
#include "file.h"

#include <dlfcn.h>
#include <kjit/function.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- options ---- */

static void add(tool_texts *texts, const char *text)
{
  const char **items = realloc(texts->items, (texts->count + 1) * sizeof *items);
  if (!items) exit(TOOL_EXIT_DEVICE);
  texts->items = items;
  texts->items[texts->count++] = text;
}

bool tool_take_module_option(tool_module_options *options, int key, const char *text)
{
  tool_texts *texts = key == 'I'               ? &options->folders
                      : key == TOOL_KEY_EXTERN ? &options->externs
                      : key == TOOL_KEY_CONST  ? &options->constants
                                               : NULL;
  if (texts) add(texts, text);
  if (key == TOOL_KEY_GUEST) options->is_guest = true;
  return texts || key == TOOL_KEY_GUEST;
}

void tool_destroy_module_options(tool_module_options *options)
{
  free(options->folders.items);
  free(options->externs.items);
  free(options->constants.items);
}

char *tool_import_path(const tool_module_options *options)
{
  char *path = NULL;
  for (size_t i = 0; i < options->folders.count; i++) {
    char *longer = path ? tool_format("%s:%s", path, options->folders.items[i])
                        : tool_format("%s", options->folders.items[i]);
    free(path);
    path = longer;
  }
  return path;
}

/* ---- externs and constants ---- */

/* Replaces the module by the module that a call has returned. */
static bool replace(tool_error *error, kjit_context *context, kjit_module **module,
                    kjit_status status, kjit_module *changed, const char *doing)
{
  if (status != KJIT_OK) return tool_fail_named(error, context, status, doing);
  kjit_release_module(*module);
  *module = changed;
  return true;
}

static bool divide(tool_error *error, const char *option, const char *text, const char *expected,
                   char **name, const char **rest)
{
  const char *equals = strchr(text, '=');
  if (!equals || equals == text || !equals[1])
    return tool_fail(error, TOOL_EXIT_USAGE, "%s: expected %s, not '%s'", option, expected, text);
  *name = tool_copy_text(text, (size_t)(equals - text));
  *rest = equals + 1;
  return true;
}

/* Returns whether the path names a shared library, also with a version such as "libm.so.6". */
static bool is_library(const char *path)
{
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  for (const char *at = name; (at = strstr(at, ".so")); at++) {
    size_t version = strspn(at + 3, ".0123456789");
    if (at > name && !at[3 + version] && (version == 0 || (version > 1 && at[3] == '.')))
      return true;
  }
  return false;
}

static bool bind_library(tool_error *error, kjit_context *context, const char *name,
                         const char *path, kjit_module **module)
{
  kjit_module *bound = NULL;
  void (*function)(void);
  /* The loader searches for a name without a slash, such as libm.so.6, in the system's directories.
   * It does not search in the current directory, which another user may control. */
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library && !strchr(path, '/') && access(path, F_OK) == 0)
    return tool_fail(error, TOOL_EXIT_FILE,
                     "--extern: %s; for the file in the current directory write ./%s", dlerror(),
                     path);
  if (!library) return tool_fail(error, TOOL_EXIT_FILE, "--extern: %s", dlerror());
  *(void **)&function = dlsym(library, name);
  if (!function)
    return tool_fail(error, TOOL_EXIT_FILE, "--extern: %s has no function '%s'", path, name);
  kjit_status status = kjit_bind_extern(*module, name, function, NULL, 0, &bound);
  return replace(error, context, module, status, bound, "--extern");
}

static bool bind_code(tool_error *error, kjit_context *context, const char *name, const char *path,
                      kjit_module **module)
{
  char *code;
  size_t size_bytes;
  kjit_module *bound = NULL;
  if (!tool_read_file(error, path, &code, &size_bytes)) return false;
  kjit_status status = kjit_bind_extern(*module, name, NULL, code, size_bytes, &bound);
  free(code);
  return replace(error, context, module, status, bound, "--extern");
}

static bool bind_extern(tool_error *error, kjit_context *context, const char *text,
                        kjit_module **module)
{
  char *name = NULL;
  const char *path = NULL;
  if (!divide(error, "--extern", text, "NAME=FILE", &name, &path)) return false;
  bool ok = is_library(path) ? bind_library(error, context, name, path, module)
                             : bind_code(error, context, name, path, module);
  free(name);
  return ok;
}

static kjit_tensor make_tensor(tool_array *array)
{
  const tool_element *element = &tool_elements[array->element];
  return (kjit_tensor){ .data = (char *)array->memory->data +
                                array->offset * (int64_t)element->size_bytes,
                        .device_type = 1,
                        .rank = (int32_t)array->rank,
                        .code = element->code,
                        .bits = element->bits,
                        .lanes = 1,
                        .shape = array->shape,
                        .strides = array->strides };
}

static bool set_constant(tool_error *error, kjit_context *context, const char *text,
                         kjit_module **module)
{
  _Alignas(8) char bytes[TOOL_SCALAR_BYTES];
  tool_arguments arguments = { 0 };
  kjit_module *changed = NULL;
  bool ok = tool_add_argument(&arguments, "--const", text, error);
  if (ok) {
    tool_argument *argument = &arguments.items[0];
    kjit_tensor tensor = argument->is_array ? make_tensor(&argument->array) : (kjit_tensor){ 0 };
    kjit_arg value =
      argument->is_array ? kjit_arg_tensor(&tensor) : tool_scalar_argument(&argument->value, bytes);
    kjit_status status = kjit_set_constant(*module, argument->name, &value, &changed);
    ok = replace(error, context, module, status, changed, "--const");
  }
  tool_destroy_arguments(&arguments);
  return ok;
}

bool tool_open_module(tool_error *error, kjit_context *context, const char *path,
                      const tool_module_options *options, kjit_module **module)
{
  char *text;
  size_t size_bytes = 0;
  if (!path) text = tool_copy_text("", 0);
  else if (!tool_read_file(error, path, &text, &size_bytes)) return false;
  kjit_status status =
    kjit_parse_module_as(context, options->is_guest ? KJIT_TRUST_GUEST : KJIT_TRUST_HOST,
                         path ? path : "(no FILE.kir)", text, size_bytes, module);
  free(text);
  if (status != KJIT_OK) return tool_fail_kjit(error, context, status, "parsing");
  for (size_t i = 0; i < options->externs.count; i++)
    if (!bind_extern(error, context, options->externs.items[i], module)) return false;
  for (size_t i = 0; i < options->constants.count; i++)
    if (!set_constant(error, context, options->constants.items[i], module)) return false;
  return true;
}
