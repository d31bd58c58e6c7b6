/* The key of an entry: lines about builds, target and signature, then the canonical text of what
 * the kernel reaches. kjit-cache shows the lines. */
#include <stdlib.h>
#include <string.h>

#include "code/disk_state.h"

static void add_digest(kj_buffer *text, const char *what, kj_digest digest)
{
  kj_append_format(text, "%s %016llx%016llx\n", what, (unsigned long long)digest.high,
                   (unsigned long long)digest.low);
}

static void add_target(kj_disk *disk, const kjit_device *device, kj_buffer *text)
{
  if (!device->operations->takes_ptx) {
    kj_append_text(text, "target cpu\n");
    add_digest(text, "processor", disk->processor);
    return;
  }
  kj_append_format(text, "target sm_%u\ndriver %d\n", device->info.compute_capability,
                   device->info.driver_version);
  add_digest(text, "libdevice", kj_get_math_library(disk));
}

/* ---- the signature ---- */

/* The kernel and then the funcs among its arguments, each once. */
typedef struct roots {
  const ki_decl **items;
  size_t count;
} roots;

static size_t find_root(const roots *r, const ki_decl *decl)
{
  size_t i = 0;
  while (i < r->count && r->items[i] != decl) i++;
  return i;
}

static void add_root(roots *r, const ki_decl *decl)
{
  if (find_root(r, decl) == r->count) r->items[r->count++] = decl;
}

static void add_constant(const kj_argument *argument, const char *type, kj_buffer *text)
{
  kj_append_format(text, "const %s %llx:%llx", type, (unsigned long long)(argument->integer >> 64),
                   (unsigned long long)argument->integer);
}

static void add_argument(const kj_call *call, const kj_argument *argument, const roots *r,
                         kj_buffer *text)
{
  kj_buffer type = { 0 };
  if (argument->kind == KJ_ARGUMENT_NUMBER)
    kj_append_text(&type, argument->type == KJ_WEAK_INT ? "integer number" : "number");
  else if (ki_is_weak(argument->type))
    kj_append_text(&type, argument->type == KJ_WEAK_INT ? "integer" : "float");
  else if (argument->kind != KJ_ARGUMENT_FUNCTION)
    ki_print_type(call->kernel->module->types, argument->type, &type);
  text->failed |= type.failed;
  const char *name = type.text ? type.text : "";
  if (argument->kind == KJ_ARGUMENT_FUNCTION)
    kj_append_format(text, "func %zu", find_root(r, argument->function));
  else if (argument->kind == KJ_ARGUMENT_CONST) add_constant(argument, name, text);
  else kj_append_text(text, name);
#define KJ_ARRAY_FACT(NAME, name, in_all, holds) \
  if (argument->facts & KJ_FACT_##NAME) kj_append_text(text, " " name);
#include "facts.def"
  kj_free_buffer(&type);
}

/* A struct's name says nothing of its fields, and a kernel that takes any type does not declare
 * them. */
typedef struct struct_writer {
  const ki_types *types;
  kj_buffer *text;
  kjit_type *seen;
  size_t count;
} struct_writer;

static bool is_new(struct_writer *w, kjit_type type)
{
  for (size_t i = 0; i < w->count; i++)
    if (w->seen[i] == type) return false;
  kjit_type *grown = realloc(w->seen, (w->count + 1) * sizeof *grown);
  w->text->failed |= !grown;
  if (!grown) return false;
  w->seen = grown;
  w->seen[w->count++] = type;
  return true;
}

static void add_fields(struct_writer *w, kjit_type type)
{
  const ki_type_info *info = ki_type(w->types, type);
  if (info->element) add_fields(w, info->element);
  if (info->class_ != KJ_CLASS_STRUCT || !is_new(w, type)) return;
  kj_append_format(w->text, "struct %s %u:%u", info->name, info->size_bytes, info->alignment_bytes);
  for (uint32_t i = 0; i < info->count; i++) {
    kj_append_format(w->text, ", %s %u ", info->field_names[i], info->offsets_bytes[i]);
    ki_print_type(w->types, info->items[i], w->text);
  }
  kj_append_text(w->text, "\n");
  for (uint32_t i = 0; i < info->count; i++) add_fields(w, info->items[i]);
}

static void add_structs(const kj_call *call, const kj_signature *signature, kj_buffer *text)
{
  struct_writer w = { .types = call->kernel->module->types, .text = text };
  for (uint32_t i = 0; i < signature->count; i++)
    if (!ki_is_weak(signature->arguments[i].type)) add_fields(&w, signature->arguments[i].type);
  free(w.seen);
}

static void add_signature(const kj_call *call, const kj_signature *signature, const roots *r,
                          kj_buffer *text)
{
  kj_append_text(text, "signature ");
  for (uint32_t i = 0; i < signature->count; i++) {
    if (i) kj_append_text(text, ", ");
    add_argument(call, &signature->arguments[i], r, text);
  }
  kj_append_text(text, "\n");
  add_structs(call, signature, text);
  kj_append_text(text, "facts");
#define KJ_CALL_FACT(NAME, field, name, kind, holds) \
  if (signature->field) kj_append_text(text, " " name);
#include "facts.def"
  kj_append_format(text, " block(%u, %u, %u) relations ", signature->block[0], signature->block[1],
                   signature->block[2]);
  for (uint32_t i = 0; i < signature->count * signature->count; i++)
    kj_append_format(text, "%u", signature->relations ? signature->relations[i] : 0);
  kj_append_text(text, "\n");
}

/* ---- the whole ---- */

static void digest_sources(const kj_sources *sources, kj_disk_key *key)
{
  kj_digest sum[3] = { { 0 } };
  key->has_sources = true;
  for (size_t i = 0; i < sources->count; i++) {
    const kj_source *source = &sources->items[i];
    key->has_sources = key->has_sources && source->name && source->text;
    if (!key->has_sources) return;
    sum[1] = kj_digest_bytes(source->name, strlen(source->name));
    sum[2] = kj_digest_bytes(source->text, source->size_bytes);
    sum[0] = kj_digest_bytes(sum, sizeof sum);
  }
  key->sources = sum[0];
}

static void add_all(kj_disk *disk, const kj_call *call, const kj_signature *signature,
                    const roots *r, kj_buffer *text)
{
  const ki_decl *kernel = call->kernel->function->decl;
  kj_append_format(text, "kjit %d.%d.%d\n", KJIT_VERSION_MAJOR, KJIT_VERSION_MINOR,
                   KJIT_VERSION_PATCH);
  add_digest(text, "build", disk->build);
  add_target(disk, call->device, text);
  kj_append_format(text, "ptx %u\nchecks %x\nkernel %s\n", call->device->ptx_limit,
                   call->kernel->context->config.checks, kernel->name);
  add_signature(call, signature, r, text);
  kj_add_extern_key(call->kernel->module, call->device->operations->takes_ptx, text);
  kj_append_text(text, "\n");
  ki_print_reachable(call->kernel->module, r->items, r->count, text);
}

bool kj_make_disk_key(kj_disk *disk, const kj_call *call, const kj_signature *signature,
                      kj_disk_key *key)
{
  kj_buffer text = { 0 };
  roots r = { .items = calloc(signature->count + 1, sizeof *r.items) };
  if (!r.items) return false;
  kj_identify_disk(disk);
  add_root(&r, call->kernel->function->decl);
  for (uint32_t i = 0; i < signature->count; i++)
    if (signature->arguments[i].kind == KJ_ARGUMENT_FUNCTION)
      add_root(&r, signature->arguments[i].function);
  add_all(disk, call, signature, &r, &text);
  free(r.items);
  size_t length = text.length;
  key->text = kj_take_text(&text);
  if (!key->text) return false;
  key->size_bytes = length;
  key->digest = kj_digest_bytes(key->text, length);
  digest_sources(&call->kernel->module->sources, key);
  return true;
}

void kj_free_disk_key(kj_disk_key *key)
{
  free(key->text);
  key->text = NULL;
}
