/* What a module leaves open, `extern` declarations, is given a meaning: by another module's
 * declarations, or by code of the host. */
#include <ctype.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ir/module.h"
#include "support/context.h"
#include "support/fork.h"

/* ---- another module ---- */

static bool takes(const kj_function *function, size_t count)
{
  size_t least = function->params.count;
  while (least && function->params.items[least - 1]->value) least--;
  return count >= least && count <= function->params.count;
}

static void check_meaning(const kjit_module *module, const kjit_module *library,
                          const kj_decl *decl, kj_diagnostics *diagnostics)
{
  bool is_extern =
    decl->kind == KJ_DECL_FUNCTION && decl->function->is_extern && !decl->function->bound;
  const kj_decl *found = is_extern ? kj_find_decl(library, decl->name) : NULL;
  if (!found || found->kind != KJ_DECL_FUNCTION) return;
  size_t declared = decl->function->params.count, taken = found->function->params.count;
  if (found->function->is_kernel)
    kj_report(diagnostics, &module->sources, decl->location, KJIT_SEVERITY_ERROR, KJIT_ERROR_TYPE,
              "`%s` is a kernel of the library: only funcs are called", decl->name);
  else if (!takes(found->function, declared))
    kj_report(diagnostics, &module->sources, decl->location, KJIT_SEVERITY_ERROR, KJIT_ERROR_TYPE,
              "`%s` is declared with %zu parameter%s, in the library it has %zu", decl->name,
              declared, declared == 1 ? "" : "s", taken);
}

kjit_status kjit_link_module(kjit_module *module, kjit_module *library, kjit_module **linked)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (kj_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!library || !linked)
    return kj_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_link_module: %s is NULL",
                        library ? "linked" : "library");
  if (library->context != module->context)
    return kj_fail_call(module->context, KJIT_ERROR_ARGUMENT,
                        "the library is a module of another context");
  kj_diagnostics diagnostics = { 0 };
  kjit_module *made = NULL;
  for (size_t i = 0; i < module->decls.count; i++)
    check_meaning(module, library, module->decls.items[i], &diagnostics);
  if (!diagnostics.error_count)
    (void)kj_change_module(module, library, NULL, NULL, &diagnostics, &made);
  kjit_status status = kj_finish_call(module->context, &diagnostics);
  if (status == KJIT_OK) *linked = made;
  return status;
}

/* ---- code of the host ---- */

static bool starts_with(const unsigned char *code, size_t size_bytes, const char *magic,
                        size_t length)
{
  return size_bytes >= length && memcmp(code, magic, length) == 0;
}

/* Behind blanks and comments of C, which PTX has, and of LLVM's text. */
static const char *find_start(const char *at, const char *end)
{
  while (at < end) {
    bool is_line = *at == ';' || (end - at > 1 && at[0] == '/' && at[1] == '/'),
         is_block = end - at > 1 && at[0] == '/' && at[1] == '*';
    if (is_line) {
      const char *newline = memchr(at, '\n', (size_t)(end - at));
      at = newline ? newline : end;
    } else if (is_block) {
      at += 3; /* the star of its start ends nothing */
      while (at < end && !(at[-1] == '*' && at[0] == '/')) at++;
      at = at < end ? at + 1 : end;
    } else if (isspace((unsigned char)*at)) at++;
    else break;
  }
  return at;
}

static kj_code_kind find_text_kind(const char *code, size_t size_bytes)
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

static kj_code_kind find_kind(const void *code, size_t size_bytes)
{
  if (starts_with(code, size_bytes, "BC\xC0\xDE", 4) ||
      starts_with(code, size_bytes, "\xDE\xC0\x17\x0B", 4))
    return KJ_CODE_BITCODE;
  return find_text_kind(code, size_bytes);
}

typedef struct binding {
  const char *name;
  kj_bound_extern given;
} binding;

static void bind(kjit_module *copy, void *data, kj_diagnostics *diagnostics)
{
  const binding *b = data;
  kj_bound_extern *bound = KJ_NEW(&copy->arena, kj_bound_extern);
  kj_function *function = kj_find_decl(copy, b->name)->function;
  (void)diagnostics;
  if (function->bound) *bound = *function->bound;
  if (b->given.host_function) bound->host_function = b->given.host_function;
  if (b->given.code) {
    XXH128_hash_t digest = XXH3_128bits(b->given.code, b->given.size_bytes);
    bound->kind = b->given.kind;
    bound->code = kj_copy_string(&copy->arena, b->given.code, b->given.size_bytes);
    bound->size_bytes = b->given.size_bytes;
    bound->digest[0] = digest.low64;
    bound->digest[1] = digest.high64;
  }
  function->bound = bound;
}

static kjit_status check_extern(kjit_module *module, const char *name)
{
  const kj_decl *decl = kj_find_decl(module, name);
  const char *source = module->sources.count ? module->sources.items[0].name : "the module";
  if (decl && decl->kind == KJ_DECL_FUNCTION && decl->function->is_extern) return KJIT_OK;
  return kj_fail_call(module->context, KJIT_ERROR_NAME,
                      decl ? "`%s` in %s is no extern func: it is declared `extern func %s(...)`"
                           : "%2$s has no extern func `%1$s`",
                      name, source, name);
}

kjit_status kjit_bind_extern(kjit_module *module, const char *name, void (*host_function)(void),
                             const void *device_code, size_t size_bytes, kjit_module **bound)
{
  enum { MAX_CODE_BYTES = 256 << 20 };
  if (!module) return KJIT_ERROR_MISUSE;
  if (kj_is_forked(module->context)) return KJIT_ERROR_FORKED;
  if (!name || !bound)
    return kj_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_bind_extern: %s is NULL",
                        name ? "bound" : "name");
  if (!host_function && !device_code)
    return kj_fail_call(module->context, KJIT_ERROR_MISUSE,
                        "kjit_bind_extern: neither a host function nor code is given for `%s`",
                        name);
  kjit_status status = check_extern(module, name);
  if (status != KJIT_OK) return status;
  binding b = { .name = name,
                .given = {
                  .host_function = host_function, .code = device_code, .size_bytes = size_bytes } };
  if (device_code) {
    /* of a text whose 0 byte was counted */
    while (size_bytes && ((const char *)device_code)[size_bytes - 1] == 0) size_bytes--;
    b.given.kind = find_kind(device_code, size_bytes);
    if (b.given.kind != KJ_CODE_BITCODE) b.given.size_bytes = size_bytes;
    if (b.given.kind == KJ_CODE_NONE || size_bytes > MAX_CODE_BYTES)
      return kj_fail_call(
        module->context, KJIT_ERROR_SYNTAX, "the code for `%s` is %s", name,
        b.given.kind == KJ_CODE_NONE
          ? "neither PTX (text that begins with .version) nor LLVM IR (bitcode or text)"
          : "larger than 256 MiB");
  }
  kj_diagnostics diagnostics = { 0 };
  kjit_module *made = NULL;
  (void)kj_change_module(module, NULL, bind, &b, &diagnostics, &made);
  status = kj_finish_call(module->context, &diagnostics);
  if (status == KJIT_OK) *bound = made;
  return status;
}
