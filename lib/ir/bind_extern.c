/* Binding: attaches the application's code to `extern` funcs, and chooses the symbols of this code
 * in compiled kernels. */
#include <ctype.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ir/context.h"
#include "ir/module.h"
#include "ir/printer.h"
#include "support/host_process.h"

/* ---- symbols ---- */

/* ---- symbols of extern funcs ----
 *
 * The name of an extern func does not identify its code: linked modules can contain several extern
 * funcs with the same name, and a kernel, func or library function can have this name as well. In
 * compiled code, a bound function therefore has a symbol that contains `$extern`. No symbol of any
 * other function contains `$extern`.
 *
 * The address of a C function has no meaning in another process. The symbol of a C function
 * therefore contains the number of the binding among all bindings of this name in the module. The
 * disk cache's key maps the names in the canonical text (printer.c) to these symbols.
 *
 * If GPU code is given as text, the symbol contains the text's digest, so funcs that are bound to
 * the same function have the same symbol. Functions in linked code keep their names, because this
 * code can be binary and cannot be changed. */

bool ki_has_bound_extern(const kjit_module *module)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (decl->kind == KJ_DECL_FUNCTION && decl->function->bound) return true;
  }
  return false;
}

/* Returns how many bindings of the function's name the module contains, up to and including this
 * one. */
static unsigned count_bindings(const ki_function *function)
{
  const kjit_module *module = function->module;
  unsigned count = 0;
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    bool is_bound = decl->kind == KJ_DECL_FUNCTION && decl->function->bound;
    count += is_bound && strcmp(decl->name, function->decl->name) == 0;
    if (decl == function->decl) break;
  }
  KJ_ASSERT(count);
  return count;
}

void ki_append_extern_suffix(const ki_bound_extern *bound, kj_buffer *text)
{
  KJ_ASSERT(bound->kind != KJ_CODE_NONE && bound->kind != KJ_CODE_LINKED);
  kj_append_format(text, "$extern_%016llx%016llx", (unsigned long long)bound->digest[1],
                   (unsigned long long)bound->digest[0]);
}

void ki_append_extern_symbol(const ki_function *function, bool is_gpu, kj_buffer *text)
{
  KJ_ASSERT(function->is_extern && function->bound);
  if (is_gpu && function->bound->kind == KJ_CODE_LINKED) {
    kj_append_text(text, function->bound->symbol);
    return;
  }
  kj_append_text(text, function->decl->name);
  if (is_gpu) ki_append_extern_suffix(function->bound, text);
  else kj_append_format(text, "$extern%u", count_bindings(function));
}

/* ---- kinds of code ---- */

static bool starts_with(const unsigned char *code, size_t size_bytes, const char *magic,
                        size_t length)
{
  return size_bytes >= length && memcmp(code, magic, length) == 0;
}

/* Skips blanks and comments of C, which PTX also uses, and of LLVM IR. */
static const char *find_start(const char *at, const char *end)
{
  while (at < end) {
    bool is_line = *at == ';' || (end - at > 1 && at[0] == '/' && at[1] == '/'),
         is_block = end - at > 1 && at[0] == '/' && at[1] == '*';
    if (is_line) {
      const char *newline = memchr(at, '\n', (size_t)(end - at));
      at = newline ? newline : end;
    } else if (is_block) {
      /* skips the characters that open the comment, so that their `*` and a following `/` do not
       * end it */
      at += 3;
      while (at < end && !(at[-1] == '*' && at[0] == '/')) at++;
      at = at < end ? at + 1 : end;
    } else if (isspace((unsigned char)*at)) at++;
    else break;
  }
  return at;
}

static ki_code_kind find_text_kind(const char *code, size_t size_bytes)
{
  static const char *const words[] = {
    "source_filename", "target", "define", "declare", "%", "@", "!", "attributes", "$", "module asm"
  };
  const char *end = code + size_bytes, *at = find_start(code, end);
  if (memchr(code, 0, size_bytes)) return KJ_CODE_NONE;
  if (end - at > 8 && strncmp(at, ".version", 8) == 0) return KJ_CODE_PTX;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if ((size_t)(end - at) > strlen(words[i]) && strncmp(at, words[i], strlen(words[i])) == 0)
      return KJ_CODE_LLVM_TEXT;
  return KJ_CODE_NONE;
}

static ki_code_kind find_kind(const void *code, size_t size_bytes)
{
  if (starts_with(code, size_bytes, "BC\xC0\xDE", 4) ||
      starts_with(code, size_bytes, "\xDE\xC0\x17\x0B", 4))
    return KJ_CODE_BITCODE;
  return find_text_kind(code, size_bytes);
}

/* ---- binding ---- */

typedef struct binding {
  const char *name;
  ki_bound_extern given;
} binding;

static bool is_extern(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION && decl->function->is_extern;
}

/* Returns whether a binding of the name applies to decl. `found` is the func to which the name
 * refers. After linking, there can be several unbound extern funcs of the same name, from different
 * modules. A binding applies to all of them, because nothing but the name could distinguish
 * them. */
static bool is_meant(const ki_decl *decl, const ki_decl *found)
{
  return decl == found ||
         (is_extern(decl) && !decl->function->bound && strcmp(decl->name, found->name) == 0);
}

static void bind_function(kjit_module *copy, ki_function *function, const ki_bound_extern *given)
{
  ki_bound_extern *bound = KJ_NEW(&copy->arena, ki_bound_extern);
  if (function->bound) *bound = *function->bound;
  if (given->host_function) bound->host_function = given->host_function;
  if (given->kind != KJ_CODE_NONE) {
    void (*host_function)(void) = bound->host_function;
    *bound = *given;
    bound->host_function = host_function;
  }
  KJ_ASSERT(bound->host_function || bound->kind != KJ_CODE_NONE);
  function->bound = bound;
}

static void bind(kjit_module *copy, void *data, kj_diagnostics *diagnostics)
{
  const binding *b = data;
  ki_bound_extern given = b->given;
  const ki_decl *found = ki_find_decl(copy, b->name);
  (void)diagnostics;
  KJ_ASSERT(found && is_extern(found));
  if (given.code) {
    XXH128_hash_t digest = XXH3_128bits(given.code, given.size_bytes);
    given.code = kj_copy_string(&copy->arena, given.code, given.size_bytes);
    given.digest[0] = digest.low64;
    given.digest[1] = digest.high64;
  }
  if (given.kind == KJ_CODE_LINKED) ki_copy_linked(&copy->arena, &given);
  for (size_t i = 0; i < copy->decls.count; i++)
    if (is_meant(copy->decls.items[i], found))
      bind_function(copy, copy->decls.items[i]->function, &given);
}

static void append_type(ki_printer *p, const ki_type_expr *type)
{
  if (type) ki_put_type(p, type);
  ki_put(p, ";");
}

/* Appends the types of the parameters and of the result, without names. */
static void append_types(const ki_decl *decl, kj_buffer *text)
{
  const ki_function *function = decl->function;
  ki_printer printer = { .module = function->module, .buffer = text };
  for (size_t i = 0; i < function->params.count; i++)
    append_type(&printer, function->params.items[i]->type_expr);
  append_type(&printer, function->result);
}

/* Returns KJIT_OK if the types are equal, otherwise KJIT_ERROR_TYPE, or KJIT_ERROR_MEMORY when out
 * of memory. */
static kjit_status compare_types(const ki_decl *a, const ki_decl *b)
{
  kj_buffer texts[2] = { { 0 } };
  append_types(a, &texts[0]);
  append_types(b, &texts[1]);
  kjit_status status = texts[0].failed || texts[1].failed          ? KJIT_ERROR_MEMORY
                       : strcmp(texts[0].text, texts[1].text) == 0 ? KJIT_OK
                                                                   : KJIT_ERROR_TYPE;
  kj_free_buffer(&texts[0]);
  kj_free_buffer(&texts[1]);
  return status;
}

kjit_status ki_check_extern(kjit_module *module, const char *name)
{
  const ki_decl *found = ki_find_decl(module, name);
  const char *source = module->sources.count ? module->sources.items[0].name : "the module";
  if (!found || !is_extern(found))
    return ki_fail_call(
      module->context, KJIT_ERROR_NAME,
      found ? "`%s` in %s is not an extern function; declare it as `extern func %s(...)`"
            : "%2$s has no extern function `%1$s`",
      name, source, name);
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (decl == found || !is_meant(decl, found)) continue;
    kjit_status status = compare_types(decl, found);
    if (status == KJIT_ERROR_MEMORY) return ki_fail_call(module->context, status, "out of memory");
    if (status != KJIT_OK)
      return ki_fail_call(
        module->context, status,
        "%s has two extern functions `%s` with different types, which cannot be the "
        "same function; bind both before you link the modules",
        source, name);
  }
  return KJIT_OK;
}

kjit_status ki_bind_given(kjit_module *module, const char *name, const ki_bound_extern *given,
                          kjit_module **bound)
{
  binding b = { .name = name, .given = *given };
  kj_diagnostics diagnostics = { 0 };
  kjit_module *made = NULL;
  (void)ki_change_module(module, NULL, bind, &b, &diagnostics, &made);
  kjit_status status = ki_finish_call(module->context, &diagnostics);
  if (status == KJIT_OK) *bound = made;
  return status;
}

kjit_status kjit_bind_extern(kjit_module *module, const char *name, void (*host_function)(void),
                             const void *device_code, size_t size_bytes, kjit_module **bound)
{
  enum { MAX_CODE_BYTES = 256 << 20 };
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!name || !bound)
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_bind_extern: %s is NULL",
                        name ? "bound" : "name");
  if (!host_function && !device_code)
    return ki_fail_call(
      module->context, KJIT_ERROR_MISUSE,
      "kjit_bind_extern: pass a CPU function or GPU code for `%s`; both are missing", name);
  kjit_status status = ki_check_extern(module, name);
  if (status != KJIT_OK) return status;
  ki_bound_extern given = { .host_function = host_function,
                            .code = device_code,
                            .size_bytes = size_bytes };
  if (device_code) {
    /* a caller can include the terminating 0 byte in a text in the size */
    while (size_bytes && ((const char *)device_code)[size_bytes - 1] == 0) size_bytes--;
    given.kind = find_kind(device_code, size_bytes);
    if (given.kind != KJ_CODE_BITCODE) given.size_bytes = size_bytes;
    if (given.kind == KJ_CODE_NONE || size_bytes > MAX_CODE_BYTES)
      return ki_fail_call(
        module->context, KJIT_ERROR_SYNTAX, "the code for `%s` is %s", name,
        given.kind == KJ_CODE_NONE
          ? "neither PTX (text that begins with .version) nor LLVM IR (bitcode or text); "
            "kjit_bind_linked links CUDA C, cubins and object files"
          : "larger than 256 MiB");
  }
  return ki_bind_given(module, name, &given, bound);
}
