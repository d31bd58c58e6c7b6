/* Writes the key of a disk cache entry. A key is a text: lines about the build, the target and the
 * signature, then the canonical text of the declarations that the kernel reaches. kjit-cache shows
 * these lines.
 *
 * The key is made from the compile request. key_inputs.def lists all fields of the request and of
 * the structs it points to, and the part of the key that contains each field. */
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"
#include "code/key_inputs.h"

/* ---- parts ---- */

static const char *const part_words[KJ_KEY_PART_COUNT] = {
#define KJ_KEY_PART(NAME, word, what) [KJ_KEY_##NAME] = word,
#include "code/key_inputs.def"
};

const char *kj_key_word(kj_key_part part) { return part_words[part]; }

/* State while a key is written. */
typedef struct writer {
  kj_buffer *text;
  const kj_compile_request *request;
  const ki_types *types;
  bool is_named;    /* the key is for any machine with a named target */
  uint32_t written; /* a bit for each part of the key that has been written */
} writer;

static void note_part(writer *w, kj_key_part part)
{
  KJ_ASSERT(part < KJ_KEY_PART_COUNT && !(w->written & 1u << part)); /* each part is written once */
  w->written |= 1u << part;
}

static void begin_part(writer *w, kj_key_part part)
{
  note_part(w, part);
  kj_append_text(w->text, part_words[part]);
  kj_append_text(w->text, " ");
}

static void put_number(writer *w, kj_key_part part, uint32_t number)
{
  begin_part(w, part);
  kj_append_format(w->text, "%u\n", number);
}

static void append_digest(writer *w, kj_digest digest)
{
  kj_append_format(w->text, "%016llx%016llx\n", (unsigned long long)digest.high,
                   (unsigned long long)digest.low);
}

static void put_digest(writer *w, kj_key_part part, kj_digest digest)
{
  begin_part(w, part);
  append_digest(w, digest);
}

/* Writes a name so that it cannot look like further lines in the key, which is necessary because a
 * builder accepts any text as a name. */
static void put_name(writer *w, const char *name)
{
  for (; *name; name++) {
    if (*name == '\n') kj_append_text(w->text, "\\n");
    else if (*name == '\\') kj_append_text(w->text, "\\\\");
    else kj_append(w->text, name, 1);
  }
}

/* ---- build, target, options ---- */

static void add_build(const kj_disk *disk, writer *w)
{
  kj_append_format(w->text, "kjit %d.%d.%d\n", KJIT_VERSION_MAJOR, KJIT_VERSION_MINOR,
                   KJIT_VERSION_PATCH);
  put_digest(w, KJ_KEY_BUILD, disk->build);
}

/* Adds the processor, which determines the size of vectors. Type inference can depend on this size
 * (`vector_bytes`). */
static void add_cpu(const kj_disk *disk, writer *w)
{
  kj_append_text(w->text, "cpu\n");
  kj_cpu_level level = w->request->target.level;
  begin_part(w, KJ_KEY_PROCESSOR);
  if (level) kj_append_format(w->text, "%s\n", kj_level_name(level));
  else append_digest(w, disk->processor);
  note_part(w, KJ_KEY_SUFFIX);
  note_part(w, KJ_KEY_PTX);
  note_part(w, KJ_KEY_LIBDEVICE);
  note_part(w, KJ_KEY_DRIVER);
}

/* Adds the lines about a GPU. The versions of libdevice and the driver affect only machine code. A
 * key for a named target contains neither of them: the driver of the other machine is unknown, and
 * the code itself records whether it needs libdevice (kj_has_own_math). */
static void add_gpu(kj_disk *disk, const kjit_device *device, writer *w)
{
  const kj_target *target = &w->request->target;
  bool has_code = w->request->stage != KJIT_STAGE_TYPED;
  kj_append_format(w->text, "sm_%u\n", target->arch);
  note_part(w, KJ_KEY_PROCESSOR);
  begin_part(w, KJ_KEY_SUFFIX);
  kj_append_format(w->text, "%c\n", target->suffix ? target->suffix : '-');
  put_number(w, KJ_KEY_PTX, target->ptx_version);
  if (has_code && !w->is_named) {
    w->text->failed |= !kj_identify_math_library(disk);
    put_digest(w, KJ_KEY_LIBDEVICE, disk->math_library);
  } else note_part(w, KJ_KEY_LIBDEVICE);
  if (device) put_number(w, KJ_KEY_DRIVER, (uint32_t)device->info.driver_version);
  else note_part(w, KJ_KEY_DRIVER);
}

static void add_target(kj_disk *disk, const kjit_device *device, writer *w)
{
  begin_part(w, KJ_KEY_TARGET);
  if (w->request->target.kind == KJ_TARGET_CPU) add_cpu(disk, w);
  else add_gpu(disk, device, w);
}

static const char *stage_name(const kj_compile_request *request)
{
  static const char *const names[] = {
#define STAGE_NAME(name, text, is_text, what) text,
    KJIT_STAGES(STAGE_NAME)
#undef STAGE_NAME
  };
  if (request->symbol) return "function";
  return request->is_check ? "result" : names[request->stage];
}

static void add_options(writer *w)
{
  const kj_compile_request *request = w->request;
  const kjit_module *module = request->module;
  begin_part(w, KJ_KEY_STAGE);
  kj_append_format(w->text, "%s\n", stage_name(request));
  begin_part(w, KJ_KEY_CHECKS);
  kj_append_format(w->text, "%x\n", request->checks);
  put_number(w, KJ_KEY_INTERRUPTIBLE, request->is_interruptible);
  put_number(w, KJ_KEY_GUEST, module->has_guest);
  put_number(w, KJ_KEY_TENSOR_COPIES, module->has_tensor_copies);
  begin_part(w, KJ_KEY_KERNEL);
  put_name(w, request->kernel->decl->name);
  kj_append_text(w->text, "\n");
}

/* ---- the signature ---- */

/* The kernel and the funcs among its arguments, each listed once. Built-ins are identified by
 * name. */
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

/* Several structs may have the same name, and a kernel that takes any type does not declare its
 * arguments' structs. So the signature has a number after a struct's name, followed by a line for
 * each struct with everything that distinguishes struct types. */
typedef struct structs {
  const ki_types *types;
  kjit_type *items;
  size_t count;
  bool failed;
} structs;

static size_t find_struct(structs *s, kjit_type type)
{
  size_t i = 0;
  while (i < s->count && s->items[i] != type) i++;
  if (i < s->count) return i;
  kjit_type *grown = realloc(s->items, (s->count + 1) * sizeof *grown);
  s->failed |= !grown;
  if (!grown) return 0;
  s->items = grown;
  s->items[s->count++] = type;
  return i;
}

static void put_struct(const ki_type_printer *printer, kjit_type type)
{
  size_t number = find_struct(printer->data, type);
  kj_append_format(printer->buffer, "%s#%zu", ki_type(printer->types, type)->name, number);
}

static void put_type(structs *s, kjit_type type, kj_buffer *text)
{
  ki_print_type_by(&(ki_type_printer){ s->types, text, put_struct, s }, type);
}

/* Adds a line for each struct, and for its fields' structs. */
static void add_structs(structs *s, kj_buffer *text)
{
  for (size_t k = 0; k < s->count; k++) {
    const ki_type_info *info = ki_type(s->types, s->items[k]);
    kj_append_format(text, "struct %s#%zu %u:%u%s", info->name, k, info->size_bytes,
                     info->alignment_bytes, info->is_packed ? " packed" : "");
    for (uint32_t i = 0; i < info->count; i++) {
      kj_append_format(text, ", %s %u ", info->field_names[i], info->offsets_bytes[i]);
      put_type(s, info->items[i], text);
    }
    kj_append_text(text, "\n");
  }
  text->failed |= s->failed;
}

void kj_describe_type(const ki_types *types, kjit_type type, kj_buffer *text)
{
  structs s = { .types = types };
  put_type(&s, type, text);
  kj_append_text(text, "\n");
  add_structs(&s, text);
  free(s.items);
}

static void add_constant(const kj_argument *argument, const char *type, kj_buffer *text)
{
  kj_append_format(text, "const %s %llx:%llx", type, (unsigned long long)(argument->integer >> 64),
                   (unsigned long long)argument->integer);
}

static void add_argument(const kj_argument *argument, const roots *r, structs *s, kj_buffer *text)
{
  kj_buffer type = { 0 };
  if (argument->kind == KJ_ARGUMENT_NUMBER) kj_append_text(&type, kj_number_text(argument->type));
  else if (ki_is_weak(argument->type))
    kj_append_text(&type, argument->type == KJ_WEAK_INT ? "integer" : "float");
  else if (argument->kind != KJ_ARGUMENT_FUNCTION) put_type(s, argument->type, &type);
  text->failed |= type.failed;
  const char *name = type.text ? type.text : "";
  if (argument->kind == KJ_ARGUMENT_FUNCTION && argument->function->function->builtin)
    kj_append_format(text, "built-in %s", argument->function->name);
  else if (argument->kind == KJ_ARGUMENT_FUNCTION)
    kj_append_format(text, "func %zu", find_root(r, argument->function));
  else if (argument->kind == KJ_ARGUMENT_CONST) add_constant(argument, name, text);
  else kj_append_text(text, name);
#define KJ_ARRAY_FACT(NAME, name, in_all, holds) \
  if (argument->facts & KJ_FACT_##NAME) kj_append_text(text, " " name);
#include "facts.def"
  kj_free_buffer(&type);
}

static void add_arguments(const roots *r, writer *w)
{
  const kj_signature *signature = w->request->signature;
  structs s = { .types = w->types };
  begin_part(w, KJ_KEY_ARGUMENTS);
  for (uint32_t i = 0; i < signature->count; i++) {
    if (i) kj_append_text(w->text, ", ");
    add_argument(&signature->arguments[i], r, &s, w->text);
  }
  kj_append_text(w->text, "\n");
  note_part(w, KJ_KEY_STRUCTS);
  add_structs(&s, w->text);
  free(s.items);
}

static void add_facts(writer *w)
{
  const kj_signature *signature = w->request->signature;
  begin_part(w, KJ_KEY_FACTS);
#define KJ_CALL_FACT(NAME, field, name, kind, holds) \
  if (signature->field) kj_append_text(w->text, name " ");
#include "facts.def"
  begin_part(w, KJ_KEY_BLOCK);
  kj_append_format(w->text, "(%u, %u, %u) ", signature->block[0], signature->block[1],
                   signature->block[2]);
  begin_part(w, KJ_KEY_RELATIONS);
  for (uint32_t i = 0; i < signature->count * signature->count; i++) {
    const uint8_t relation = signature->relations ? signature->relations[i] : 0;
    const char digit = (char)('0' + relation);
    KJ_ASSERT(relation < 10);
    /* written as single digits, because formatting 200 numbers would take as long as the rest of
     * the key */
    kj_append(w->text, &digit, 1);
  }
  kj_append_text(w->text, "\n");
}

/* ---- the complete key ---- */

static bool has_texts(const kj_sources *sources)
{
  for (size_t i = 0; i < sources->count; i++) {
    const kj_source *source = &sources->items[i];
    if (!source->name || (!source->text && !source->is_named)) return false;
  }
  return true;
}

kj_digest kj_digest_sources(const kj_disk_key *key)
{
  kj_digest sum[3] = { { 0 } };
  for (size_t i = 0; key->has_sources && key->sources && i < key->sources->count; i++) {
    const kj_source *source = &key->sources->items[i];
    sum[1] = kj_digest_bytes(source->name, strlen(source->name));
    /* the text of a library module is not needed: it is a part of the build, which every key
     * contains */
    sum[2] = source->library
               ? (kj_digest){ .low = 1 }
               : kj_digest_bytes(source->text ? source->text : "", source->size_bytes);
    sum[0] = kj_digest_bytes(sum, sizeof sum);
  }
  return sum[0];
}

/* Adds the canonical text of the declarations. For the kernel of an algorithm it adds the recipe
 * instead, which is a shorter text that determines the kernel. */
static void add_text(const kjit_device *device, const roots *r, writer *w)
{
  const kjit_module *module = w->request->module;
  /* without a recipe, the kernel's declarations must define it completely */
  KJ_ASSERT(module->recipe || (!module->later && !module->partial));
  begin_part(w, KJ_KEY_EXTERNS);
  kj_append_text(w->text, "of the host\n");
  kj_add_extern_key(module, kj_get_code_format(w->request->target.kind)->is_linked,
                    device ? device->info.driver_version : 0, w->text);
  kj_append_text(w->text, "\n");
  begin_part(w, KJ_KEY_TEXT);
  kj_append_text(w->text, module->recipe ? "algorithm\n" : "canonical\n");
  note_part(w, KJ_KEY_TRUST);
  if (module->recipe) kj_append_text(w->text, module->recipe);
  else ki_print_reachable(module, r->items, r->count, w->text);
}

static void add_all(kj_disk *disk, const kjit_device *device, const roots *r, writer *w)
{
  enum { ALL_PARTS = (1u << KJ_KEY_PART_COUNT) - 1 };
  add_build(disk, w);
  add_target(disk, device, w);
  add_options(w);
  add_arguments(r, w);
  add_facts(w);
  add_text(device, r, w);
  KJ_ASSERT(w->written == ALL_PARTS);
}

/* Collects the kernel and the funcs among its arguments. Returns false if out of memory. */
static bool find_roots(const kj_compile_request *request, roots *r)
{
  const kj_signature *signature = request->signature;
  *r = (roots){ .items = calloc(signature->count + 1, sizeof *r->items) };
  if (!r->items) return false;
  add_root(r, request->kernel->decl);
  for (uint32_t i = 0; i < signature->count; i++)
    if (signature->arguments[i].kind == KJ_ARGUMENT_FUNCTION &&
        !signature->arguments[i].function->function->builtin)
      add_root(r, signature->arguments[i].function);
  return true;
}

static bool take_key(kj_buffer *text, kj_disk_key *key)
{
  size_t length = text->length;
  key->text = kj_take_text(text);
  if (!key->text) return false;
  key->size_bytes = length;
  key->digest = kj_digest_bytes(key->text, length);
  return true;
}

static bool make_key(kj_disk *disk, const kjit_device *device, const kj_compile_request *request,
                     bool is_named, kj_disk_key *key)
{
  kj_buffer text = { 0 };
  writer w = {
    .text = &text, .request = request, .types = request->module->types, .is_named = is_named
  };
  roots r;
  /* the disk cache is used only if the fields have these values (see key_inputs.def) */
  KJ_ASSERT(!request->debug && request->plain == KJ_PLAIN_NONE);
  KJ_ASSERT(request->symbol ? request->has_record && request->stage == KJIT_STAGE_OBJECT &&
                                !strcmp(request->symbol, KJ_FUNCTION_SYMBOL)
                            : !request->has_record);
  KJ_ASSERT(request->is_check == request->is_ahead);
  if (!find_roots(request, &r)) return false;
  kj_identify_disk(disk);
  add_all(disk, device, &r, &w);
  free(r.items);
  if (!take_key(&text, key)) return false;
  key->sources = &request->module->sources;
  key->has_sources = has_texts(key->sources);
  return true;
}

bool kj_make_disk_key(kj_disk *disk, const kjit_device *device, const kj_compile_request *request,
                      kj_disk_key *key)
{
  return make_key(disk, device, request, false, key);
}

bool kj_make_named_key(kj_disk *disk, const kj_compile_request *request, kj_disk_key *key)
{
  kj_compile_request named = *request;
  bool is_cpu = named.target.kind == KJ_TARGET_CPU;
  if (request->module->has_guest) return false;
  if (is_cpu && !named.target.level) named.target.level = kj_find_level();
  named.target.ptx_version = 0; /* 0 means the lowest PTX version that the code needs; a driver that
                                   does not know this version rejects the code */
  return (!is_cpu || named.target.level) && make_key(disk, NULL, &named, true, key);
}

bool kj_make_device_key(kj_disk *disk, const kjit_device *device, const kj_compile_request *request,
                        kj_disk_key *key)
{
  return device->is_target ? kj_make_named_key(disk, request, key)
                           : kj_make_disk_key(disk, device, request, key);
}

void kj_free_disk_key(kj_disk_key *key)
{
  free(key->text);
  key->text = NULL;
}
