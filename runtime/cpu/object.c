/* Loads the object files that the compiler emits for the CPU (ELF, position-independent code, small
 * code model): maps the sections, applies relocations and sets execute permission.
 * relocate_<architecture>.c implements the relocations.
 *
 *     [ code sections | stubs of outside functions ]       read and execute
 *     [ data sections | addresses of outside functions ]   read only; kernels have no variables
 *
 * A function of the C library may be too far away for a call, so calls go to a stub in the mapping
 * that jumps to its address. Every offset, index and size of the object is checked before it is
 * used. */
#include "cpu/cpu.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/object.h"
#include "native/architecture.h"
#include "native/functions.h"

struct kj_image {
  char *memory;
  size_t size_bytes;
};

typedef struct section {
  const Elf64_Shdr *header;
  size_t offset; /* offset in the mapping */
  bool is_placed;
} section;

typedef struct outside {
  const char *name; /* NULL for a symbol defined in the object */
  uint64_t address;
  size_t stub, slot; /* offsets in the mapping */
} outside;

typedef struct loader {
  const char *object;
  size_t size_bytes;
  section *sections;
  size_t section_count;
  const Elf64_Sym *symbols;
  size_t symbol_count;
  const char *strings;
  size_t strings_bytes;
  outside *outsides; /* an entry for each symbol */
  size_t outside_count;
  const kj_outside *outside; /* the functions outside of the object that the object may call */
  char *memory;
  size_t code_bytes, total_bytes; /* code_bytes is the offset of the first page with data */
  const char *reason, *unknown;   /* unknown: the name of a function that does not exist, or NULL */
} loader;

enum {
  SLOT_BYTES = 8,
  MOST_BYTES = 1 << 30 /* with this limit, 32-bit offsets reach every address in the mapping */
};

static bool refuse(loader *l, const char *reason)
{
  l->reason = reason;
  return false;
}

/* ---- reading the object ---- */

static bool is_inside(const loader *l, uint64_t offset, uint64_t size)
{
  return offset <= l->size_bytes && size <= l->size_bytes - offset;
}

static bool read_header(loader *l)
{
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)l->object;
  if (l->size_bytes < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG))
    return refuse(l, "it is not an ELF file");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
      header->e_machine != KJ_OBJECT_MACHINE || header->e_type != ET_REL)
    return refuse(l, "it is not a relocatable object for " KJ_OBJECT_NAME);
  if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % _Alignof(Elf64_Shdr) ||
      !is_inside(l, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)))
    return refuse(l, "its section table is out of bounds");
  const Elf64_Shdr *headers = (const Elf64_Shdr *)(l->object + header->e_shoff);
  l->section_count = header->e_shnum;
  l->sections = calloc(l->section_count + 1, sizeof *l->sections);
  if (!l->sections) return refuse(l, "out of memory");
  for (size_t i = 0; i < l->section_count; i++) {
    l->sections[i].header = &headers[i];
    if (headers[i].sh_type != SHT_NOBITS && headers[i].sh_type != SHT_NULL &&
        !is_inside(l, headers[i].sh_offset, headers[i].sh_size))
      return refuse(l, "a section is out of bounds of the file");
  }
  return true;
}

static bool read_symbols(loader *l)
{
  for (size_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *header = l->sections[i].header;
    if (header->sh_type != SHT_SYMTAB) continue;
    if (l->symbols) return refuse(l, "it has more than one symbol table");
    if (header->sh_entsize != sizeof(Elf64_Sym) || header->sh_offset % _Alignof(Elf64_Sym) ||
        header->sh_link >= l->section_count)
      return refuse(l, "its symbol table is broken");
    const Elf64_Shdr *strings = l->sections[header->sh_link].header;
    if (strings->sh_type != SHT_STRTAB || !strings->sh_size ||
        l->object[strings->sh_offset + strings->sh_size - 1])
      return refuse(l, "its names are broken");
    l->symbols = (const Elf64_Sym *)(l->object + header->sh_offset);
    l->symbol_count = header->sh_size / sizeof(Elf64_Sym);
    l->strings = l->object + strings->sh_offset;
    l->strings_bytes = strings->sh_size;
  }
  return l->symbols || refuse(l, "it has no symbols");
}

/* For assertions: returns whether the range lies in the mapping. */
static bool is_in_mapping(const loader *l, size_t offset, size_t size_bytes)
{
  return offset <= l->total_bytes && size_bytes <= l->total_bytes - offset;
}

static const char *name_of(const loader *l, const Elf64_Sym *symbol)
{
  return symbol->st_name < l->strings_bytes ? l->strings + symbol->st_name : NULL;
}

/* ---- the mapping ---- */

/* Returns whether a section is loaded. Tables for unwinding and for debuggers are not loaded,
 * because no code unwinds through a kernel or a func. */
static bool is_loaded(const section *s)
{
  return (s->header->sh_flags & SHF_ALLOC) && s->header->sh_type != SHT_X86_64_UNWIND &&
         s->header->sh_type != SHT_NULL && s->header->sh_type != SHT_NOTE;
}

static bool place_section(loader *l, section *s, size_t *end)
{
  uint64_t alignment = s->header->sh_addralign ? s->header->sh_addralign : 1,
           size = s->header->sh_size;
  if (alignment & (alignment - 1) || alignment > 4096 || size > MOST_BYTES)
    return refuse(l, "a section is too large");
  s->offset = (*end + alignment - 1) & ~(alignment - 1);
  s->is_placed = true;
  *end = s->offset + size;
  return *end <= MOST_BYTES || refuse(l, "its sections are too large");
}

/* Rejects writable sections, whose contents would change at run time. Tables of addresses are
 * allowed, because only relocation writes them. */
static bool check_section(loader *l, const section *s)
{
  uint64_t flags = s->header->sh_flags;
  if (flags & SHF_TLS) return refuse(l, "it has thread-local variables");
  if ((flags & SHF_WRITE) && (flags & SHF_EXECINSTR))
    return refuse(l, "it has self-modifying code");
  if (s->header->sh_type != SHT_PROGBITS && s->header->sh_type != SHT_NOBITS)
    return refuse(l, "it has a section of an unknown kind");
  if (!(flags & SHF_WRITE)) return true;
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)l->object;
  const Elf64_Shdr *names =
    header->e_shstrndx < l->section_count ? l->sections[header->e_shstrndx].header : NULL;
  bool has_name = names && names->sh_type == SHT_STRTAB && s->header->sh_name < names->sh_size &&
                  !l->object[names->sh_offset + names->sh_size - 1];
  static const char constant[] = ".data.rel.ro";
  bool is_constant = has_name && !strncmp(l->object + names->sh_offset + s->header->sh_name,
                                          constant, sizeof constant - 1);
  return is_constant || !s->header->sh_size || refuse(l, "it has variables");
}

static bool place_sections(loader *l, bool is_code, size_t *end)
{
  for (size_t i = 0; i < l->section_count; i++) {
    section *s = &l->sections[i];
    if (!is_loaded(s) || ((s->header->sh_flags & SHF_EXECINSTR) != 0) != is_code) continue;
    if (!check_section(l, s) || !place_section(l, s, end)) return false;
  }
  return true;
}

static bool find_outsides(loader *l)
{
  l->outsides = calloc(l->symbol_count + 1, sizeof *l->outsides);
  if (!l->outsides) return refuse(l, "out of memory");
  for (size_t i = 1; i < l->symbol_count; i++) {
    const Elf64_Sym *symbol = &l->symbols[i];
    if (symbol->st_shndx != SHN_UNDEF) continue;
    const char *name = name_of(l, symbol);
    if (!name) return refuse(l, "a symbol has no name");
    l->outsides[i].name = name;
    void *own = kj_find_outside(l->outside, name);
    l->outsides[i].address = (uint64_t)(uintptr_t)(own ? own : kn_find_library_function(name));
    if (!l->outsides[i].address) {
      l->unknown = name;
      return refuse(l, "it calls an unknown function");
    }
    l->outside_count++;
  }
  return true;
}

static bool lay_out(loader *l)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE), end = 0;
  if (!find_outsides(l) || !place_sections(l, true, &end)) return false;
  end = (end + kj_stub_bytes - 1) & ~(kj_stub_bytes - 1);
  for (size_t i = 0; i < l->symbol_count; i++) {
    if (!l->outsides[i].name) continue;
    l->outsides[i].stub = end;
    end += kj_stub_bytes;
  }
  end = l->code_bytes = (end + page - 1) & ~(page - 1);
  if (!place_sections(l, false, &end)) return false;
  end = (end + SLOT_BYTES - 1) & ~(size_t)(SLOT_BYTES - 1);
  for (size_t i = 0; i < l->symbol_count; i++) {
    if (!l->outsides[i].name) continue;
    l->outsides[i].slot = end;
    end += SLOT_BYTES;
  }
  l->total_bytes = (end + page - 1) & ~(page - 1);
  return l->code_bytes || refuse(l, "it has no code");
}

static bool map(loader *l)
{
  void *memory =
    mmap(NULL, l->total_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return refuse(l, "out of memory");
  l->memory = memory;
  for (size_t i = 0; i < l->section_count; i++) {
    const section *s = &l->sections[i];
    KJ_ASSERT(!s->is_placed || is_in_mapping(l, s->offset, s->header->sh_size));
    if (s->is_placed && s->header->sh_type == SHT_PROGBITS)
      memcpy(l->memory + s->offset, l->object + s->header->sh_offset, s->header->sh_size);
  }
  for (size_t i = 0; i < l->symbol_count; i++) {
    const outside *o = &l->outsides[i];
    if (!o->name) continue;
    KJ_ASSERT(o->stub + kj_stub_bytes <= l->code_bytes && o->slot >= l->code_bytes);
    KJ_ASSERT(is_in_mapping(l, o->slot, SLOT_BYTES) && o->slot % SLOT_BYTES == 0);
    kj_write_stub(l->memory + o->stub, l->memory + o->slot);
    memcpy(l->memory + o->slot, &o->address, sizeof o->address);
  }
  return true;
}

/* ---- relocation ---- */

/* Finds the address of a symbol in the object, or of the stub of an outside function. */
static bool find_address(loader *l, uint32_t index, uint64_t *address)
{
  if (index >= l->symbol_count || !index) return refuse(l, "a relocation has no symbol");
  const Elf64_Sym *symbol = &l->symbols[index];
  if (l->outsides[index].name) {
    *address = (uint64_t)(uintptr_t)(l->memory + l->outsides[index].stub);
    return true;
  }
  if (symbol->st_shndx >= l->section_count || !l->sections[symbol->st_shndx].is_placed)
    return refuse(l, "a symbol is in a section that is not loaded");
  const section *s = &l->sections[symbol->st_shndx];
  if (symbol->st_value > s->header->sh_size) return refuse(l, "a symbol is outside of its section");
  *address = (uint64_t)(uintptr_t)(l->memory + s->offset) + symbol->st_value;
  return true;
}

static bool relocate(loader *l, const section *target, const Elf64_Rela *r)
{
  uint64_t symbol;
  uint32_t index = ELF64_R_SYM(r->r_info);
  if (r->r_offset > target->header->sh_size || !find_address(l, index, &symbol))
    return l->reason ? false : refuse(l, "a relocation is outside of its section");
  if (r->r_addend > MOST_BYTES || r->r_addend < -MOST_BYTES)
    return refuse(l, "a relocation is outside of its section");
  kj_relocation relocation = { .type = ELF64_R_TYPE(r->r_info),
                               .section = l->memory + target->offset,
                               .section_bytes = target->header->sh_size,
                               .offset = r->r_offset,
                               .symbol = symbol,
                               .addend = r->r_addend };
  if (l->outsides[index].name) relocation.slot = l->memory + l->outsides[index].slot;
  KJ_ASSERT(is_in_mapping(l, target->offset, target->header->sh_size));
  const char *reason = kj_relocate(&relocation);
  return !reason || refuse(l, reason);
}

static bool relocate_section(loader *l, const Elf64_Shdr *header)
{
  if (header->sh_info >= l->section_count) return refuse(l, "its relocations are broken");
  const section *target = &l->sections[header->sh_info];
  if (!target->is_placed) return true;
  if (header->sh_type == SHT_REL || header->sh_entsize != sizeof(Elf64_Rela) ||
      header->sh_offset % _Alignof(Elf64_Rela) || target->header->sh_type != SHT_PROGBITS)
    return refuse(l, "its relocations are broken");
  const Elf64_Rela *relocations = (const Elf64_Rela *)(l->object + header->sh_offset);
  for (size_t i = 0; i < header->sh_size / sizeof *relocations; i++)
    if (!relocate(l, target, &relocations[i])) return false;
  return true;
}

static bool relocate_all(loader *l)
{
  for (size_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *header = l->sections[i].header;
    if ((header->sh_type == SHT_RELA || header->sh_type == SHT_REL) && !relocate_section(l, header))
      return false;
  }
  return true;
}

/* ---- finishing ---- */

static bool find_entry(loader *l, const char *entry, kj_cpu_kernel *kernel)
{
  for (size_t i = 1; i < l->symbol_count; i++) {
    const Elf64_Sym *symbol = &l->symbols[i];
    const char *name = name_of(l, symbol);
    if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || !name ||
        strcmp(name, entry))
      continue;
    uint64_t address;
    if (!find_address(l, (uint32_t)i, &address)) return false;
    if (!(l->sections[symbol->st_shndx].header->sh_flags & SHF_EXECINSTR) ||
        symbol->st_value >= l->sections[symbol->st_shndx].header->sh_size)
      return refuse(l, "the kernel's symbol is not code");
    KJ_ASSERT(address - (uint64_t)(uintptr_t)l->memory < l->code_bytes);
    *kernel = (kj_cpu_kernel)(uintptr_t)address;
    return true;
  }
  return refuse(l, "it does not contain the kernel");
}

static bool protect(loader *l)
{
  /* required on architectures whose instruction cache is not coherent */
  __builtin___clear_cache(l->memory, l->memory + l->code_bytes);
  bool is_done = !mprotect(l->memory, l->code_bytes, PROT_READ | PROT_EXEC) &&
                 (l->total_bytes == l->code_bytes ||
                  !mprotect(l->memory + l->code_bytes, l->total_bytes - l->code_bytes, PROT_READ));
  return is_done || refuse(l, "memory cannot be made executable");
}

static bool load(loader *l, const char *entry, kj_image *image, kj_cpu_kernel *kernel)
{
  if (!read_header(l) || !read_symbols(l) || !lay_out(l) || !map(l)) return false;
  if (!relocate_all(l) || !find_entry(l, entry, kernel) || !protect(l)) return false;
  *image = (kj_image){ l->memory, l->total_bytes };
  return true;
}

/* The name comes from the object, which is untrusted, so only printable characters are copied. */
static void write_reason(const loader *l, char reason[KJ_IMAGE_REASON_BYTES])
{
  int length =
    snprintf(reason, KJ_IMAGE_REASON_BYTES, "%s", l->reason ? l->reason : "out of memory");
  if (!l->unknown) return;
  snprintf(reason + length, KJ_IMAGE_REASON_BYTES - (size_t)length, ", `%.64s`", l->unknown);
  for (; *reason; reason++)
    if (*reason < ' ' || *reason > '~') *reason = '?';
}

bool kj_load_image(const void *object, size_t size_bytes, const char *entry,
                   const kj_outside *outside, kj_image **image, kj_cpu_kernel *kernel,
                   char reason[KJ_IMAGE_REASON_BYTES])
{
  loader l = { .object = object, .size_bytes = size_bytes, .outside = outside };
  kj_image *made = calloc(1, sizeof *made);
  bool is_made =
    made && (uintptr_t)object % _Alignof(Elf64_Ehdr) == 0 && load(&l, entry, made, kernel);
  free(l.sections);
  free(l.outsides);
  if (is_made) {
    *image = made;
    return true;
  }
  if (l.memory) munmap(l.memory, l.total_bytes);
  free(made);
  write_reason(&l, reason);
  return false;
}

void kj_unload_image(kj_image *image)
{
  if (!image) return;
  munmap(image->memory, image->size_bytes);
  free(image);
}
