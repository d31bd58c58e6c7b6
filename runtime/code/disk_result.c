/* Stores result types of funcs in the disk cache, so that a process that needs a stored type does
 * not load the compiler. Such an entry contains the name of the type in place of code. The name of
 * a struct does not identify it. So if the type is the struct of an argument, the entry contains
 * the index of the argument, such as "=0". */
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

static bool read_result(ki_types *types, const kj_signature *signature, const char *text,
                        kjit_type *type)
{
  kj_diagnostics diagnostics = { 0 };
  if (*text == '=') {
    char *end;
    unsigned long index = strtoul(text + 1, &end, 10);
    bool is_argument = end != text + 1 && !*end && index < signature->count;
    if (is_argument) *type = signature->arguments[index].type;
    return is_argument;
  }
  bool is_read = ki_parse_type(types, NULL, text, &diagnostics, type) == KJIT_OK;
  kj_free_diagnostics(&diagnostics);
  return is_read;
}

/* Returns the text of the type. Returns NULL if the text would not identify the type for another
 * process, or if memory is exhausted. */
static char *print_result(ki_types *types, const kj_signature *signature, kjit_type type)
{
  kj_buffer text = { 0 };
  kjit_type read;
  uint32_t index = 0;
  while (index < signature->count && signature->arguments[index].type != type) index++;
  if (index < signature->count && !ki_is_weak(type)) {
    kj_append_format(&text, "=%u", index);
    return kj_take_text(&text);
  }
  if (names_struct(types, type)) return NULL;
  ki_print_type(types, type, &text);
  char *printed = kj_take_text(&text);
  if (printed && read_result(types, signature, printed, &read) && read == type) return printed;
  free(printed);
  return NULL;
}

/* Searches the archives that the application has imported, and the installed file. */
static bool find_named(kj_runtime *runtime, const kj_compile_request *request,
                       const kj_digest *compiler, kj_code *code)
{
  kj_disk_key named = { 0 };
  kj_diagnostics ignored = { 0 }; /* the next launch reports why a file cannot be used */
  bool is_found = kj_has_named_code(runtime, &ignored) &&
                  kj_make_named_key(runtime->disk, request, &named) &&
                  (kj_find_import(runtime, &named, NULL, code) ||
                   kj_find_installed(runtime, &named, compiler, &ignored, code));
  kj_free_disk_key(&named);
  kj_free_diagnostics(&ignored);
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
  is_found = is_found && read_result(request->module->types, request->signature, code.data, type);
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
  char *text = print_result(request->module->types, request->signature, type);
  kj_code code = { .entry = entry, .data = text, .size_bytes = text ? strlen(text) : 0 };
  if (text && kj_can_publish(runtime->disk) && kj_identify_compiler(runtime, &compiler))
    kj_publish_entry(runtime->disk, key, compiler, &code);
  if (text && is_target) record_result(runtime, request, &code);
  free(text);
}
