/* Handles the code that the application has bound to the extern funcs in a module. CPU code calls C
 * functions, and GPU kernels are linked with code. This file also writes the lines about this code
 * in the keys of the disk cache. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "code/kernel.h"
#include "code/include_files.h"
#include "cuda/ptx_symbols.h"
#include "ir/printer.h"

static const ki_bound_extern *bound_of(const ki_decl *decl)
{
  return decl->kind == KJ_DECL_FUNCTION ? decl->function->bound : NULL;
}

static bool has_host_function(const ki_decl *decl)
{
  const ki_bound_extern *bound = bound_of(decl);
  return bound && bound->host_function;
}

/* ---- C functions ---- */

static kjit_status out_of_memory(kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

static char *make_symbol(const ki_decl *decl, bool is_gpu)
{
  kj_buffer text = { 0 };
  ki_append_extern_symbol(decl->function, is_gpu, &text);
  return kj_take_text(&text);
}

kjit_status kj_list_outside(const kjit_module *module, kj_diagnostics *diagnostics,
                            kj_outside *outside)
{
  size_t count = 0;
  for (size_t i = 0; i < module->decls.count; i++)
    count += has_host_function(module->decls.items[i]);
  *outside = (kj_outside){ 0 };
  if (!count) return KJIT_OK;
  kj_outside_function *items = calloc(count, sizeof *items);
  if (!items) return out_of_memory(diagnostics);
  outside->items = items;
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (!has_host_function(decl)) continue;
    const char *symbol = make_symbol(decl, false);
    if (!symbol) {
      kj_free_outside(outside);
      return out_of_memory(diagnostics);
    }
    KJ_ASSERT(!kj_find_outside(outside, symbol));
    items[outside->count++] =
      (kj_outside_function){ symbol, (void *)(uintptr_t)decl->function->bound->host_function };
  }
  KJ_ASSERT(outside->count == count);
  return KJIT_OK;
}

void kj_free_outside(kj_outside *outside)
{
  for (size_t i = 0; i < outside->count; i++) free((void *)outside->items[i].name);
  free((void *)outside->items);
  *outside = (kj_outside){ 0 };
}

/* ---- code for the linker ---- */

static bool is_name_part(char c)
{
  return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Returns whether the text contains the name as a whole word. */
static bool mentions(const char *text, const char *name)
{
  size_t length = strlen(name);
  for (const char *at = text; (at = strstr(at, name)) != NULL; at++)
    if ((at == text || !is_name_part(at[-1])) && !is_name_part(at[length])) return true;
  return false;
}

static bool is_outside(const ki_bound_extern *bound)
{
  return bound && (bound->kind == KJ_CODE_PTX || bound->kind == KJ_CODE_LINKED);
}

static bool is_called(const ki_decl *decl, const char *ptx)
{
  char *symbol = is_outside(bound_of(decl)) ? make_symbol(decl, true) : NULL;
  bool is_there = symbol && mentions(ptx, symbol);
  free(symbol);
  return is_there;
}

static bool is_same_code(const ki_bound_extern *a, const ki_bound_extern *b)
{
  return a->kind == b->kind && a->digest[0] == b->digest[0] && a->digest[1] == b->digest[1];
}

/* Returns whether the bound code of a func is listed already, because the PTX calls an earlier func
 * that is bound to the same code. */
static bool is_listed(const kjit_module *module, size_t index, const char *ptx)
{
  const ki_bound_extern *bound = bound_of(module->decls.items[index]);
  for (size_t i = 0; i < index; i++) {
    const ki_bound_extern *other = bound_of(module->decls.items[i]);
    if (other && is_same_code(bound, other) && is_called(module->decls.items[i], ptx)) return true;
  }
  return false;
}

kj_link_input kj_link_own(const kj_code *code)
{
  return (kj_link_input){ KJIT_LINK_PTX, code->entry, code->data, code->size_bytes, NULL };
}

/* Adds PTX. Its symbols get the suffix that the kernel uses. */
static kjit_status add_ptx(const ki_decl *decl, kj_diagnostics *diagnostics, kj_link_inputs *inputs)
{
  kj_buffer suffix = { 0 };
  ki_append_extern_suffix(decl->function->bound, &suffix);
  size_t size_bytes = 0;
  char *text = suffix.failed
                 ? NULL
                 : kj_rename_ptx_symbols(decl->function->bound->code, suffix.text, &size_bytes);
  kj_free_buffer(&suffix);
  if (!text) return out_of_memory(diagnostics);
  KJ_ASSERT(inputs->count == 1 + inputs->renamed);
  inputs->items[inputs->count++] =
    (kj_link_input){ KJIT_LINK_PTX, decl->name, text, size_bytes, NULL };
  inputs->renamed++;
  return KJIT_OK;
}

/* Adds linked code. Funcs may share files, which are added once. */
static void add_linked(const ki_bound_extern *bound, kj_link_inputs *inputs)
{
  for (size_t i = 0; i < bound->linked_count; i++) {
    const ki_linked_code *code = &bound->linked[i];
    bool is_there = false;
    for (size_t k = 1 + inputs->renamed; k < inputs->count; k++) {
      const kj_link_input *other = &inputs->items[k];
      is_there |= other->format == code->format && other->size_bytes == code->size_bytes &&
                  strcmp(other->options, code->options) == 0 &&
                  memcmp(other->data, code->data, code->size_bytes) == 0;
    }
    if (!is_there)
      inputs->items[inputs->count++] =
        (kj_link_input){ code->format, code->name, code->data, code->size_bytes, code->options };
  }
}

/* Returns the maximum number of inputs. */
static size_t count_inputs(const kjit_module *module)
{
  size_t count = 1;
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_bound_extern *bound = bound_of(module->decls.items[i]);
    if (is_outside(bound)) count += bound->kind == KJ_CODE_PTX ? 1 : bound->linked_count;
  }
  return count;
}

kjit_status kj_list_link_inputs(const kjit_module *module, const kj_code *code,
                                kj_diagnostics *diagnostics, kj_link_inputs *inputs)
{
  const char *ptx = code->data;
  *inputs = (kj_link_inputs){ .items = calloc(count_inputs(module), sizeof *inputs->items) };
  if (!inputs->items) return out_of_memory(diagnostics);
  inputs->items[inputs->count++] = kj_link_own(code);
  kjit_status status = KJIT_OK;
  for (size_t i = 0; i < module->decls.count && status == KJIT_OK; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (is_called(decl, ptx) && bound_of(decl)->kind == KJ_CODE_PTX && !is_listed(module, i, ptx))
      status = add_ptx(decl, diagnostics, inputs);
  }
  for (size_t i = 0; i < module->decls.count && status == KJIT_OK; i++) {
    const ki_decl *decl = module->decls.items[i];
    if (is_called(decl, ptx) && bound_of(decl)->kind == KJ_CODE_LINKED)
      add_linked(bound_of(decl), inputs);
  }
  if (status != KJIT_OK) kj_free_link_inputs(inputs);
  return status;
}

void kj_free_link_inputs(kj_link_inputs *inputs)
{
  for (size_t i = 0; i < inputs->renamed; i++) free((void *)inputs->items[1 + i].data);
  free(inputs->items);
  *inputs = (kj_link_inputs){ 0 };
}

bool kj_has_outside_code(const kjit_module *module)
{
  for (size_t i = 0; i < module->decls.count; i++)
    if (is_outside(bound_of(module->decls.items[i]))) return true;
  return false;
}

/* ---- keys ---- */

static const char unknown_includes[] = " including unknown files";

/* Adds a digest of the files that each linked CUDA C source includes, or a note if these files are
 * unknown. */
static void add_includes(const ki_bound_extern *bound, int driver_version, kj_buffer *text)
{
  for (size_t i = 0; i < bound->linked_count; i++) {
    kj_digest digest;
    const ki_linked_code *code = &bound->linked[i];
    const kj_link_input input = { code->format, code->name, code->data, code->size_bytes,
                                  code->options };
    if (!code->has_includes) continue;
    if (kj_digest_includes(&input, driver_version, &digest))
      kj_append_format(text, " including %016llx%016llx", (unsigned long long)digest.high,
                       (unsigned long long)digest.low);
    else kj_append_text(text, unknown_includes);
  }
}

/* Adds a line for each bound func: its name in the canonical text, and its symbol in the code. So
 * the key contains the symbol to which each call in the text is bound. */
static void add_lines(const kjit_module *module, const ki_naming *naming, bool is_linked,
                      int driver_version, kj_buffer *text)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_decl *decl = module->decls.items[i];
    const ki_bound_extern *bound = bound_of(decl);
    bool is_used = bound && (is_linked ? bound->kind != KJ_CODE_NONE : has_host_function(decl));
    if (!is_used) continue;
    kj_append_format(text, "extern %s is ", ki_printed_name(naming, decl));
    ki_append_extern_symbol(decl->function, is_linked, text);
    if (is_linked && bound->kind == KJ_CODE_LINKED) {
      kj_append_format(text, " of %016llx%016llx", (unsigned long long)bound->digest[1],
                       (unsigned long long)bound->digest[0]);
      add_includes(bound, driver_version, text);
    }
    kj_append_text(text, "\n");
  }
}

void kj_add_extern_key(const kjit_module *module, bool is_linked, int driver_version,
                       kj_buffer *text)
{
  jmp_buf on_failure;
  kj_arena arena;
  if (!ki_has_bound_extern(module)) return;
  kj_init_arena(&arena, &on_failure);
  if (setjmp(on_failure) == 0) {
    ki_naming naming;
    ki_choose_names(&naming, module, &arena);
    add_lines(module, &naming, is_linked, driver_version, text);
  } else text->failed = 1;
  kj_free_arena(&arena);
}

static bool has_includes(const kjit_module *module)
{
  for (size_t i = 0; i < module->decls.count; i++) {
    const ki_bound_extern *bound = bound_of(module->decls.items[i]);
    for (size_t k = 0; bound && k < bound->linked_count; k++)
      if (bound->linked[k].has_includes) return true;
  }
  return false;
}

bool kj_is_extern_key_current(const kjit_module *module, int driver_version, const char *key)
{
  kj_buffer text = { 0 };
  if (!has_includes(module)) return true;
  kj_add_extern_key(module, true, driver_version, &text);
  bool is_current = !text.failed && text.text && !strstr(text.text, unknown_includes) &&
                    strstr(key, text.text) != NULL;
  kj_free_buffer(&text);
  return is_current;
}
