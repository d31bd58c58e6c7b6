/* Stores result types of funcs in the disk cache, so that a process that needs a stored type does
 * not load the compiler. In place of code, the entry contains the type as text.
 *
 * Several structs can have the same name, so a name does not identify a struct. If the result type
 * is an argument's type, the text is this argument's index, such as "=0". Any other type that
 * contains structs is followed by a description of each struct; the reader compares the description
 * with the struct that has this name. */
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"
#include "ir/context.h"

static bool names_struct(const ki_types *types, kjit_type type)
{
  const ki_type_info *info = ki_type(types, type);
  bool is_named = info->class_ == KJ_CLASS_STRUCT;
  if (info->element && !is_named) is_named = names_struct(types, info->element);
  for (uint32_t i = 0; i < info->count && info->items && !is_named; i++)
    is_named = names_struct(types, info->items[i]);
  return is_named;
}

static bool read_argument_type(const kj_signature *signature, const char *text, kjit_type *type)
{
  char *end;
  unsigned long index = strtoul(text, &end, 10);
  bool is_argument = end != text && !*end && index < signature->count;
  if (is_argument) *type = signature->arguments[index].type;
  return is_argument;
}

/* Reads the name of a type with the module's structs. */
static bool read_name(const kj_compile_request *request, const char *name, size_t length,
                      kjit_type *type)
{
  kj_diagnostics diagnostics = { 0 };
  char *copy = strndup(name, length);
  bool is_read = copy && ki_parse_type(request->module->types, request->module, copy, &diagnostics,
                                       type) == KJIT_OK;
  kj_free_diagnostics(&diagnostics);
  free(copy);
  return is_read;
}

static bool is_described(const ki_types *types, kjit_type type, const char *description)
{
  kj_buffer text = { 0 };
  kj_describe_type(types, type, &text);
  bool is_same = !text.failed && text.text && !strcmp(text.text, description);
  kj_free_buffer(&text);
  return is_same;
}

bool kj_read_result(const kj_compile_request *request, const char *text, kjit_type *type)
{
  if (*text == '=') return read_argument_type(request->signature, text + 1, type);
  size_t length = strcspn(text, "\n");
  if (!read_name(request, text, length, type)) return false;
  return !text[length] || is_described(request->module->types, *type, text + length + 1);
}

char *kj_print_result(const kj_compile_request *request, kjit_type type)
{
  kj_buffer text = { 0 };
  kjit_type read;
  uint32_t index = 0;
  const ki_types *types = request->module->types;
  const kj_signature *signature = request->signature;
  while (index < signature->count && signature->arguments[index].type != type) index++;
  if (index < signature->count && !ki_is_weak(type)) {
    kj_append_format(&text, "=%u", index);
    return kj_take_text(&text);
  }
  ki_print_type(types, type, &text);
  if (names_struct(types, type)) {
    kj_append_text(&text, "\n");
    kj_describe_type(types, type, &text);
  }
  char *printed = kj_take_text(&text);
  if (printed && kj_read_result(request, printed, &read) && read == type) return printed;
  free(printed);
  return NULL;
}

/* Searches the archives that the application has imported, and the installed file. */
static bool find_named(kj_runtime *runtime, const kj_compile_request *request,
                       const kj_digest *compiler, kj_code *code)
{
  kj_disk_key named = { 0 };
  bool is_found = kj_has_named_code(runtime) && kj_make_named_key(runtime->disk, request, &named) &&
                  (kj_find_import(runtime, &named, NULL, code) ||
                   kj_find_installed(runtime, &named, compiler, code));
  kj_free_disk_key(&named);
  return is_found;
}

bool kj_fetch_result(kj_runtime *runtime, const kj_compile_request *request, const kj_disk_key *key,
                     kjit_type *type)
{
  kj_digest compiler;
  kj_code code = { 0 };
  bool knows_compiler = kj_identify_compiler(runtime, &compiler);
  const kj_digest *wanted = knows_compiler ? &compiler : NULL;
  bool is_found =
    (kj_keeps_code(runtime->disk) && kj_fetch_entry(runtime->disk, key, wanted, &code)) ||
    find_named(runtime, request, wanted, &code);
  is_found = is_found && kj_read_result(request, code.data, type);
  kj_free_code(&code);
  return is_found;
}

/* Records a result. Errors are ignored, because another process can ask the compiler again. */
static void record_result(kj_runtime *runtime, const kj_compile_request *request,
                          const kj_code *code)
{
  kj_disk_key named = { 0 };
  kj_diagnostics ignored = { 0 };
  if (kj_make_named_key(runtime->disk, request, &named))
    (void)kj_record_code(runtime, &named, code->entry, code, &ignored);
  kj_free_disk_key(&named);
  kj_free_diagnostics(&ignored);
}

void kj_publish_result(kj_runtime *runtime, const kj_compile_request *request,
                       const kj_disk_key *key, kjit_type type)
{
  kj_digest compiler;
  static char entry[] = "result";
  bool is_target = runtime->context->config.target != NULL;
  if (!kj_can_publish(runtime->disk) && !is_target) return;
  char *text = kj_print_result(request, type);
  kj_code code = { .entry = entry, .data = text, .size_bytes = text ? strlen(text) : 0 };
  if (text && kj_can_publish(runtime->disk) && kj_identify_compiler(runtime, &compiler))
    kj_publish_entry(runtime->disk, key, compiler, &code);
  if (text && is_target) record_result(runtime, request, &code);
  free(text);
}
