/* The key of an entry of the disk cache: lines about builds, target and signature, then the
 * canonical text of what the kernel reaches. kjit-cache shows the lines. Before it, what tells
 * builds, machines and libraries apart, without loading any of them. */
#include <cpuid.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/disk.h"
#include "support/paths.h"

/* ---- builds ---- */

/* The build id in the notes of an ELF file; false: none. */
static bool find_build_id(const char *notes, size_t size_bytes, kj_digest *identity)
{
  enum { BUILD_ID = 3 };
  for (size_t at = 0; size_bytes - at >= sizeof(ElfW(Nhdr));) {
    ElfW(Nhdr) note;
    memcpy(&note, notes + at, sizeof note);
    at += sizeof note;
    uint64_t name_bytes = ((uint64_t)note.n_namesz + 3) & ~(uint64_t)3,
             bytes = ((uint64_t)note.n_descsz + 3) & ~(uint64_t)3;
    if (name_bytes > size_bytes - at || bytes > size_bytes - at - name_bytes) return false;
    if (note.n_type == BUILD_ID && note.n_namesz == 4 && !memcmp(notes + at, "GNU", 4)) {
      *identity = kj_digest_bytes(notes + at + name_bytes, note.n_descsz);
      return true;
    }
    at += name_bytes + bytes;
  }
  return false;
}

static bool identify_by_time(const char *path, kj_digest *identity)
{
  struct stat info;
  if (stat(path, &info)) return false;
  uint64_t words[] = { (uint64_t)info.st_dev, info.st_ino, (uint64_t)info.st_size,
                       (uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec };
  *identity = kj_digest_bytes(words, sizeof words);
  return true;
}

static bool read_notes(int file, const Elf64_Phdr *header, kj_digest *identity)
{
  enum { MOST = 65536 };
  if (header->p_type != PT_NOTE || header->p_filesz > MOST) return false;
  char *notes = malloc(header->p_filesz + 1);
  bool is_found =
    notes &&
    pread(file, notes, header->p_filesz, (off_t)header->p_offset) == (ssize_t)header->p_filesz &&
    find_build_id(notes, header->p_filesz, identity);
  free(notes);
  return is_found;
}

static bool identify_open_file(int file, kj_digest *identity)
{
  Elf64_Ehdr header;
  if (pread(file, &header, sizeof header, 0) != sizeof header ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phentsize != sizeof(Elf64_Phdr))
    return false;
  for (size_t i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    if (pread(file, &segment, sizeof segment, (off_t)(header.e_phoff + i * sizeof segment)) !=
        sizeof segment)
      return false;
    if (read_notes(file, &segment, identity)) return true;
  }
  return false;
}

bool kj_identify_file(const char *path, kj_digest *identity)
{
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  bool is_identified = identify_open_file(file, identity);
  close(file);
  return is_identified || identify_by_time(path, identity);
}

typedef struct search {
  uintptr_t address;
  bool is_found;
  kj_digest identity;
} search;

static bool contains(const struct dl_phdr_info *info, uintptr_t address)
{
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_LOAD &&
        address - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
      return true;
  }
  return false;
}

static int look_at_library(struct dl_phdr_info *info, size_t size_bytes, void *data)
{
  (void)size_bytes;
  search *s = data;
  if (!contains(info, s->address)) return 0;
  for (size_t i = 0; i < info->dlpi_phnum && !s->is_found; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type == PT_NOTE)
      s->is_found = find_build_id((const char *)(info->dlpi_addr + segment->p_vaddr),
                                  segment->p_memsz, &s->identity);
  }
  return 1;
}

kj_digest kj_identify_address(const void *address)
{
  search s = { .address = (uintptr_t)address };
  Dl_info info;
  dl_iterate_phdr(look_at_library, &s);
  if (!s.is_found && dladdr(address, &info) && info.dli_fname)
    (void)identify_by_time(info.dli_fname, &s.identity);
  return s.identity;
}

/* ---- the machine ---- */

static uint64_t read_enabled_state(void)
{
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Leaves 1 and 7 and their like: vendor, family, model, stepping and every feature. Without what
 * differs between the cores of one machine. */
static kj_digest identify_processor(void)
{
  static const struct {
    uint32_t leaf, subleaf, masks[4];
  } leaves[] = {
    { 0, 0, { ~0u, ~0u, ~0u, ~0u } },
    { 1, 0, { ~0u, 0, ~0u, ~0u } },
    { 7, 0, { ~0u, ~0u, ~0u, ~0u } },
    { 7, 1, { ~0u, ~0u, ~0u, ~0u } },
    { 0xd, 1, { ~0u, 0, 0, 0 } },
    { 0x14, 0, { 0, ~0u, 0, 0 } },
    { 0x19, 0, { 0, ~0u, 0, 0 } },
    { 0x24, 0, { 0, ~0u, 0, 0 } },
    { 0x80000001, 0, { ~0u, 0, ~0u, ~0u } },
    { 0x80000008, 0, { 0, ~0u, 0, 0 } },
  };
  enum { LEAVES = sizeof leaves / sizeof *leaves, OSXSAVE = 1 << 27 };
  uint64_t words[LEAVES * 4 + 2] = { 0 };
  bool has_state = false;
  for (size_t i = 0; i < LEAVES; i++) {
    uint32_t r[4] = { 0 };
    if (!__get_cpuid_count(leaves[i].leaf, leaves[i].subleaf, &r[0], &r[1], &r[2], &r[3])) continue;
    if (leaves[i].leaf == 1) has_state = r[2] & OSXSAVE;
    for (size_t k = 0; k < 4; k++) words[i * 4 + k] = r[k] & leaves[i].masks[k];
  }
  if (has_state) words[LEAVES * 4] = read_enabled_state();
  const char *version = gnu_get_libc_version();
  kj_digest library = kj_digest_bytes(version, strlen(version));
  words[LEAVES * 4 + 1] = library.low;
  return kj_digest_bytes(words, sizeof words);
}

/* ---- libdevice ---- */

static void add_file(kj_digest *sum, const char *path)
{
  kj_digest parts[3] = { *sum, kj_digest_bytes(path, strlen(path)), { 0 } };
  if (identify_by_time(path, &parts[2])) *sum = kj_digest_bytes(parts, sizeof parts);
}

/* False: out of memory, or of files to open. What is found then is not what the compiler finds. */
static bool add_pattern(kj_digest *sum, const char *pattern)
{
  kj_paths paths = { 0 };
  bool is_whole = kj_find_paths(&paths, pattern);
  for (size_t i = 0; i < paths.count; i++) add_file(sum, paths.items[i]);
  kj_free_paths(&paths);
  return is_whole;
}

/* The compiler takes the first of them that it can read: any change to any of them may change which
 * one. */
static bool identify_math_library(const char *given_path, kj_digest *sum)
{
  static const char *const patterns[] = {
#define PLACE(pattern, kind) pattern,
#include "native/math_libraries.def"
#undef PLACE
  };
  *sum = (kj_digest){ 0 };
  if (given_path) {
    add_file(sum, given_path);
    return true;
  }
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    if (!add_pattern(sum, patterns[i])) return false;
  Dl_info info;
  const char *slash = dladdr((const void *)add_pattern, &info) && info.dli_fname
                        ? strrchr(info.dli_fname, '/')
                        : NULL;
  if (!slash) return true;
  kj_buffer beside = { 0 };
  kj_append_format(&beside, "%.*s/clc/nvptx64--.bc", (int)(slash - info.dli_fname), info.dli_fname);
  bool is_known = !beside.failed;
  if (is_known) add_file(sum, beside.text);
  kj_free_buffer(&beside);
  return is_known;
}

void kj_identify_disk(kj_disk *disk)
{
  if (atomic_load_explicit(&disk->is_identified, memory_order_acquire)) return;
  kj_lock(&disk->mutex, KJ_LOCK_DISK);
  if (!atomic_load(&disk->is_identified)) {
    disk->build = kj_identify_address((const void *)(uintptr_t)kj_identify_disk);
    disk->processor = identify_processor();
    atomic_store_explicit(&disk->is_identified, true, memory_order_release);
  }
  kj_unlock(&disk->mutex, KJ_LOCK_DISK);
}

/* Looked up once: a context's compiler reads libdevice once too. */
static bool find_math_library(kj_disk *disk)
{
  if (atomic_load_explicit(&disk->knows_math_library, memory_order_acquire)) return true;
  kj_lock(&disk->mutex, KJ_LOCK_DISK);
  bool is_known = atomic_load(&disk->knows_math_library) ||
                  identify_math_library(disk->libdevice_path, &disk->math_library);
  atomic_store_explicit(&disk->knows_math_library, is_known, memory_order_release);
  kj_unlock(&disk->mutex, KJ_LOCK_DISK);
  return is_known;
}

/* ---- the target ---- */

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
  text->failed |= !find_math_library(disk);
  add_digest(text, "libdevice", disk->math_library);
}

/* ---- the signature ---- */

/* The kernel and then the funcs among its arguments, each once. Built-ins are known by name. */
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

/* A struct's name says nothing of its fields, of which a kernel that takes any type declares none,
 * and several structs may have one name: types are followed by the number of the struct in them. */
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

/* Fields may lead to further ones. */
static void add_structs(structs *s, kj_buffer *text)
{
  for (size_t k = 0; k < s->count; k++) {
    const ki_type_info *info = ki_type(s->types, s->items[k]);
    kj_append_format(text, "struct %s#%zu %u:%u", info->name, k, info->size_bytes,
                     info->alignment_bytes);
    for (uint32_t i = 0; i < info->count; i++) {
      kj_append_format(text, ", %s %u ", info->field_names[i], info->offsets_bytes[i]);
      put_type(s, info->items[i], text);
    }
    kj_append_text(text, "\n");
  }
  text->failed |= s->failed;
}

static void add_constant(const kj_argument *argument, const char *type, kj_buffer *text)
{
  kj_append_format(text, "const %s %llx:%llx", type, (unsigned long long)(argument->integer >> 64),
                   (unsigned long long)argument->integer);
}

static void add_argument(const kj_argument *argument, const roots *r, structs *s, kj_buffer *text)
{
  kj_buffer type = { 0 };
  if (argument->kind == KJ_ARGUMENT_NUMBER)
    kj_append_text(&type, argument->type == KJ_WEAK_INT ? "integer number" : "number");
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

static void add_signature(const kj_call *call, const kj_signature *signature, const roots *r,
                          kj_buffer *text)
{
  structs s = { .types = call->kernel->module->types };
  kj_append_text(text, "signature ");
  for (uint32_t i = 0; i < signature->count; i++) {
    if (i) kj_append_text(text, ", ");
    add_argument(&signature->arguments[i], r, &s, text);
  }
  kj_append_text(text, "\n");
  add_structs(&s, text);
  free(s.items);
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
    key->has_sources =
      key->has_sources && source->name && (source->text != NULL || source->is_named);
    if (!key->has_sources) return;
    sum[1] = kj_digest_bytes(source->name, strlen(source->name));
    sum[2] = kj_digest_bytes(source->text ? source->text : "", source->size_bytes);
    sum[0] = kj_digest_bytes(sum, sizeof sum);
  }
  key->sources = sum[0];
}

static void add_build(const kj_disk *disk, kj_buffer *text)
{
  kj_append_format(text, "kjit %d.%d.%d\n", KJIT_VERSION_MAJOR, KJIT_VERSION_MINOR,
                   KJIT_VERSION_PATCH);
  add_digest(text, "build", disk->build);
}

static void add_all(kj_disk *disk, const kj_call *call, const kj_signature *signature,
                    const roots *r, kj_buffer *text)
{
  const ki_decl *kernel = call->kernel->function->decl;
  const kjit_config *config = &call->kernel->context->config;
  add_build(disk, text);
  add_target(disk, call->device, text);
  kj_append_format(text, "ptx %u\nchecks %x\nguest %d\ninterruptible %d\nkernel %s\n",
                   call->device->ptx_limit, kj_spell_out_checks(config->checks),
                   call->kernel->module->has_guest, config->interruptible != 0, kernel->name);
  add_signature(call, signature, r, text);
  kj_add_extern_key(call->kernel->module, call->device->operations->takes_ptx, text);
  kj_append_text(text, "\n");
  const kjit_module *module = call->kernel->module;
  KJ_ASSERT(!module->later || module->recipe); /* its declarations are not all that it is */
  if (module->recipe) kj_append_text(text, module->recipe);
  else ki_print_reachable(module, r->items, r->count, text);
}

static void add_result(const kj_disk *disk, const kj_call *call, const kj_signature *signature,
                       const roots *r, kj_buffer *text)
{
  const kjit_module *module = call->kernel->module;
  add_build(disk, text);
  kj_append_format(text, "target any\nguest %d\nkernel %s\n", module->has_guest,
                   call->kernel->function->decl->name);
  add_signature(call, signature, r, text);
  kj_append_text(text, "what it returns\n\n");
  ki_print_reachable(module, r->items, r->count, text);
}

/* false: out of memory. */
static bool find_roots(const kj_call *call, const kj_signature *signature, roots *r)
{
  *r = (roots){ .items = calloc(signature->count + 1, sizeof *r->items) };
  if (!r->items) return false;
  add_root(r, call->kernel->function->decl);
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

bool kj_make_disk_key(kj_disk *disk, const kj_call *call, const kj_signature *signature,
                      kj_disk_key *key)
{
  kj_buffer text = { 0 };
  roots r;
  if (!find_roots(call, signature, &r)) return false;
  kj_identify_disk(disk);
  add_all(disk, call, signature, &r, &text);
  free(r.items);
  if (!take_key(&text, key)) return false;
  digest_sources(&call->kernel->module->sources, key);
  return true;
}

bool kj_make_result_key(kj_disk *disk, const kjit_kernel *function, const kj_signature *signature,
                        kj_disk_key *key)
{
  kj_buffer text = { 0 };
  const kj_call call = { .kernel = (kjit_kernel *)function };
  roots r;
  if (!find_roots(&call, signature, &r)) return false;
  kj_identify_disk(disk);
  add_result(disk, &call, signature, &r, &text);
  free(r.items);
  return take_key(&text, key);
}

void kj_free_disk_key(kj_disk_key *key)
{
  free(key->text);
  key->text = NULL;
}
