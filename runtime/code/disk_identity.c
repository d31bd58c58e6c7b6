/* Identities of builds and of libdevice for the key of the disk cache; the machine's identity is in
 * processor_*.c. The functions do not load the libraries and files that they identify. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/disk.h"
#include "native/functions.h"
#include "support/paths.h"

/* ---- builds ---- */

/* Reads the build id in the notes of an ELF file. Returns false if the file has no build id. */
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

/* ---- libdevice ---- */

static void add_file(kj_digest *sum, const char *path)
{
  kj_digest parts[3] = { *sum, kj_digest_bytes(path, strlen(path)), { 0 } };
  if (identify_by_time(path, &parts[2])) *sum = kj_digest_bytes(parts, sizeof parts);
}

/* Adds all files that match a pattern. Returns false if memory or file descriptors are exhausted:
 * the compiler could then find other files than this function. */
static bool add_pattern(kj_digest *sum, const char *pattern)
{
  kj_paths paths = { 0 };
  bool is_whole = kj_find_paths(&paths, pattern);
  for (size_t i = 0; i < paths.count; i++) add_file(sum, paths.items[i]);
  kj_free_paths(&paths);
  return is_whole;
}

/* Computes the digest of all libdevice files. The compiler uses the first file that it can read. A
 * change to any of the files can cause the compiler to use another file. */
static bool identify_math_library(const char *given_path, kj_digest *sum)
{
  static const char *const patterns[] = {
#define PLACE(pattern) pattern,
#include "native/math_libraries.def"
#undef PLACE
  };
  *sum = (kj_digest){ 0 };
  if (given_path && kj_is_own_libclc(given_path)) {
    sum->low = 1; /* libclc is part of the compiler library, whose build is in the key */
    return true;
  }
  if (given_path) {
    add_file(sum, given_path);
    return true;
  }
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
    if (!add_pattern(sum, patterns[i])) return false;
  return true;
}

/* Code that uses a toolkit's libdevice is not stored for other machines, because the key of a named
 * target does not identify the version of libdevice. */
bool kj_has_own_math(kj_disk *disk, const kj_code *code)
{
  const char *path = disk->libdevice_path;
  if (code->vector_functions && code->vector_functions != kn_identify_vector_functions())
    return false;
  if (code->math_library == KJ_MATH_NONE) return true;
  if (code->math_library != KJ_MATH_LIBCLC) return false;
  if (path) return kj_is_own_libclc(path);
  /* if no toolkit is found, the compiler uses libclc */
  return kj_identify_math_library(disk) && !disk->math_library.low && !disk->math_library.high;
}

void kj_identify_disk(kj_disk *disk)
{
  if (atomic_load_explicit(&disk->is_identified, memory_order_acquire)) return;
  kj_lock(&disk->mutex, KJ_LOCK_DISK);
  if (!atomic_load(&disk->is_identified)) {
    disk->build = kj_identify_address((const void *)(uintptr_t)kj_identify_disk);
    disk->processor = kj_identify_processor();
    atomic_store_explicit(&disk->is_identified, true, memory_order_release);
  }
  kj_unlock(&disk->mutex, KJ_LOCK_DISK);
}

/* Looks up the files once, because the compiler of a context reads libdevice once, too. */
bool kj_identify_math_library(kj_disk *disk)
{
  if (atomic_load_explicit(&disk->knows_math_library, memory_order_acquire)) return true;
  kj_lock(&disk->mutex, KJ_LOCK_DISK);
  bool is_known = atomic_load(&disk->knows_math_library) ||
                  identify_math_library(disk->libdevice_path, &disk->math_library);
  atomic_store_explicit(&disk->knows_math_library, is_known, memory_order_release);
  kj_unlock(&disk->mutex, KJ_LOCK_DISK);
  return is_known;
}
