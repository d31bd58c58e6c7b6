/* Archives: many entries of the disk cache in one file or blob, which is only read.
 *
 *   header | index: a row for each entry, sorted by the digest of its key | the entries, compressed
 *
 * The checksum of the header is over all of header and index that follows it, and each row has the
 * checksum of its compressed entry. A file is opened again for each entry that is read, so that a
 * file that is replaced, shortened or removed meanwhile is a miss. Nothing maps it: touching a page
 * behind the end of a file that has become shorter would end the process. */
#include "code/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "support/paths.h"

typedef struct archive_header {
  char magic[8];
  kj_digest checksum;
  uint64_t size_bytes, count;
  kj_digest build; /* of libkjit: entries are structs as it has them in memory */
} archive_header;

typedef struct kj_archive_row {
  kj_digest digest, checksum; /* of the key; of the compressed entry */
  uint64_t offset, packed_bytes, size_bytes;
} archive_row;

static const char magic[8] = { 'k', 'j', 'i', 't', 'a', 'r', 'c', '1' };
enum { CHECKED_FROM = sizeof magic + sizeof(kj_digest) };
static const uint64_t most_entry_bytes = (uint64_t)1 << 28, most_archive_bytes = (uint64_t)1 << 36;

static int compare_digests(const kj_digest *a, const kj_digest *b)
{
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  return (a->low > b->low) - (a->low < b->low);
}

/* ---- writing ---- */

static kjit_status fail_memory(kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* Level 9 packs PTX to a seventh and takes as long as reading it; higher ones gain a tenth. */
static bool compress_entry(const void *entry, size_t size_bytes, kj_archived *made)
{
  enum { LEVEL = 9 };
  size_t most = ZSTD_compressBound(size_bytes);
  char *packed = malloc(most), *fitting;
  size_t packed_bytes = packed ? ZSTD_compress(packed, most, entry, size_bytes, LEVEL) : 0;
  if (!packed || ZSTD_isError(packed_bytes)) {
    free(packed);
    return false;
  }
  fitting = realloc(packed, packed_bytes);
  made->packed = fitting ? fitting : packed;
  made->packed_bytes = packed_bytes;
  made->size_bytes = size_bytes;
  return true;
}

static kjit_status make_room(kj_archive_writer *writer, kj_diagnostics *diagnostics)
{
  if (writer->count == writer->capacity) {
    size_t wanted = KJ_GROWN(writer->capacity, 64);
    kj_archived *grown = realloc(writer->items, wanted * sizeof *grown);
    if (!grown) return fail_memory(diagnostics);
    writer->items = grown;
    writer->capacity = wanted;
  }
  return KJIT_OK;
}

kjit_status kj_add_to_archive(kj_archive_writer *writer, kj_digest digest, const void *entry,
                              size_t size_bytes, kj_diagnostics *diagnostics)
{
  kj_archived made = { .digest = digest };
  KJ_TRY(make_room(writer, diagnostics));
  if (!compress_entry(entry, size_bytes, &made)) return fail_memory(diagnostics);
  writer->items[writer->count++] = made;
  return KJIT_OK;
}

kjit_status kj_copy_archived(kj_archive_writer *writer, const kj_archived *item,
                             kj_diagnostics *diagnostics)
{
  kj_archived made = *item;
  KJ_TRY(make_room(writer, diagnostics));
  made.packed = malloc(item->packed_bytes + 1);
  if (!made.packed) return fail_memory(diagnostics);
  memcpy(made.packed, item->packed, item->packed_bytes);
  writer->items[writer->count++] = made;
  return KJIT_OK;
}

void kj_free_archive_writer(kj_archive_writer *writer)
{
  for (size_t i = 0; i < writer->count; i++) free(writer->items[i].packed);
  free(writer->items);
  *writer = (kj_archive_writer){ 0 };
}

static int compare_archived(const void *a, const void *b)
{
  const kj_archived *const *x = a, *const *y = b;
  int order = compare_digests(&(*x)->digest, &(*y)->digest);
  return order ? order : (*x > *y) - (*x < *y); /* the one that was added first */
}

static size_t drop_repeated(const kj_archived **items, size_t count)
{
  size_t kept = 0;
  for (size_t i = 0; i < count; i++)
    if (!kept || !kj_same_digest(items[kept - 1]->digest, items[i]->digest))
      items[kept++] = items[i];
  return kept;
}

static char *lay_out(const kj_archived **items, size_t count, kj_digest build, size_t *size_bytes)
{
  archive_header h = { .count = count, .build = build };
  memcpy(h.magic, magic, sizeof magic);
  uint64_t at = sizeof h + count * sizeof(archive_row);
  const uint64_t index_end = at;
  for (size_t i = 0; i < count; i++) at += items[i]->packed_bytes;
  h.size_bytes = at;
  char *bytes = malloc(at);
  if (!bytes) return NULL;
  at = index_end;
  for (size_t i = 0; i < count; i++) {
    archive_row row = { .digest = items[i]->digest,
                        .checksum = kj_digest_bytes(items[i]->packed, items[i]->packed_bytes),
                        .offset = at,
                        .packed_bytes = items[i]->packed_bytes,
                        .size_bytes = items[i]->size_bytes };
    memcpy(bytes + sizeof h + i * sizeof row, &row, sizeof row);
    memcpy(bytes + at, items[i]->packed, items[i]->packed_bytes);
    at += items[i]->packed_bytes;
  }
  memcpy(bytes, &h, sizeof h);
  h.checksum = kj_digest_bytes(bytes + CHECKED_FROM, index_end - CHECKED_FROM);
  memcpy(bytes, &h, sizeof h);
  *size_bytes = h.size_bytes;
  return bytes;
}

kjit_status kj_finish_archive(kj_archive_writer *writer, kj_digest build,
                              kj_diagnostics *diagnostics, void **bytes, size_t *size_bytes)
{
  const kj_archived **items = calloc(writer->count + 1, sizeof *items);
  if (!items) return fail_memory(diagnostics);
  for (size_t i = 0; i < writer->count; i++) items[i] = &writer->items[i];
  qsort(items, writer->count, sizeof *items, compare_archived);
  *bytes = lay_out(items, drop_repeated(items, writer->count), build, size_bytes);
  free(items);
  return *bytes ? KJIT_OK : fail_memory(diagnostics);
}

/* ---- opening ---- */

/* malloc'd in one piece with its name. */
static kj_archive *make_archive(const char *name)
{
  size_t bytes = strlen(name) + 1;
  kj_archive *made = malloc(sizeof *made + bytes);
  if (!made) return NULL;
  char *copy = (char *)(made + 1);
  memcpy(copy, name, bytes);
  *made = (kj_archive){ .name = copy };
  return made;
}

void kj_close_archives(kj_archive *first)
{
  while (first) {
    kj_archive *next = first->next;
    free(first->bytes);
    free(first->rows);
    free(first);
    first = next;
  }
}

static kjit_status refuse(const char *name, const char *why, kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_IO, "%s: the compiled code is damaged: %s", name, why);
}

/* Checks the header alone, before the rows are read. */
static kjit_status check_header(const char *name, const archive_header *h, uint64_t size_bytes,
                                kj_diagnostics *diagnostics)
{
  if (memcmp(h->magic, magic, sizeof magic))
    return refuse(name, "it was not made by kjit_export_code or kjit-cache", diagnostics);
  if (h->size_bytes != size_bytes || size_bytes > most_archive_bytes)
    return refuse(name, "its size is not the size that its header says", diagnostics);
  if (h->count > (size_bytes - sizeof *h) / sizeof(archive_row))
    return refuse(name, "its index is longer than itself", diagnostics);
  return KJIT_OK;
}

/* The checksum is over bytes that lie one behind the other. */
static kjit_status check_index(kj_archive *archive, const archive_header *h,
                               kj_diagnostics *diagnostics)
{
  size_t index_bytes = h->count * sizeof *archive->rows,
         checked_bytes = sizeof *h - CHECKED_FROM + index_bytes;
  char *checked = malloc(checked_bytes + 1);
  if (!checked) return fail_memory(diagnostics);
  memcpy(checked, (const char *)h + CHECKED_FROM, sizeof *h - CHECKED_FROM);
  memcpy(checked + sizeof *h - CHECKED_FROM, archive->rows, index_bytes);
  bool is_right = kj_same_digest(h->checksum, kj_digest_bytes(checked, checked_bytes));
  free(checked);
  if (!is_right) return refuse(archive->name, "its checksum is wrong", diagnostics);
  for (uint64_t i = 0; i < h->count; i++) {
    const archive_row *row = &archive->rows[i];
    bool is_sorted = !i || compare_digests(&row[-1].digest, &row->digest) < 0;
    if (!is_sorted || row->offset > h->size_bytes ||
        row->packed_bytes > h->size_bytes - row->offset || row->size_bytes > most_entry_bytes)
      return refuse(archive->name, "an entry lies outside of it", diagnostics);
  }
  archive->count = h->count;
  archive->size_bytes = h->size_bytes;
  return KJIT_OK;
}

/* Copies a part of a blob or reads a part of an open file. */
static bool read_part(const kj_archive *archive, int file, uint64_t offset, void *to, size_t bytes)
{
  if (archive->bytes) {
    memcpy(to, archive->bytes + offset, bytes);
    return true;
  }
  for (char *at = to; bytes;) {
    ssize_t count = pread(file, at, bytes, (off_t)offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    offset += (uint64_t)count;
    bytes -= (size_t)count;
  }
  return true;
}

static kjit_status read_index(kj_archive *archive, int file, uint64_t size_bytes, kj_digest build,
                              kj_diagnostics *diagnostics)
{
  archive_header h;
  if (size_bytes < sizeof h || !read_part(archive, file, 0, &h, sizeof h))
    return refuse(archive->name, "it is shorter than its header", diagnostics);
  KJ_TRY(check_header(archive->name, &h, size_bytes, diagnostics));
  size_t index_bytes = h.count * sizeof *archive->rows;
  archive->rows = malloc(index_bytes + 1);
  if (!archive->rows) return fail_memory(diagnostics);
  if (!read_part(archive, file, sizeof h, archive->rows, index_bytes))
    return refuse(archive->name, "it is shorter than its index", diagnostics);
  KJ_TRY(check_index(archive, &h, diagnostics));
  /* last: a damaged header is damage, and names no build */
  if (kj_same_digest(h.build, build)) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                  "%s: another build of kjit has made the compiled code", archive->name);
}

/* The bytes are in memory anyway, and an application learns of the damage now. */
static kjit_status check_entries(const kj_archive *archive, kj_diagnostics *diagnostics)
{
  for (uint64_t i = 0; i < archive->count; i++) {
    const archive_row *row = &archive->rows[i];
    kj_digest sum = kj_digest_bytes(archive->bytes + row->offset, row->packed_bytes);
    if (!kj_same_digest(sum, row->checksum))
      return refuse(archive->name, "the checksum of an entry is another", diagnostics);
  }
  return KJIT_OK;
}

kjit_status kj_open_blob(const char *call, const void *blob, size_t size_bytes, kj_digest build,
                         kj_diagnostics *diagnostics, kj_archive **archive)
{
  kj_archive *made = make_archive(call);
  if (!made) return fail_memory(diagnostics);
  made->bytes = malloc(size_bytes + 1);
  if (made->bytes) memcpy(made->bytes, blob, size_bytes);
  kjit_status status =
    made->bytes ? read_index(made, -1, size_bytes, build, diagnostics) : fail_memory(diagnostics);
  if (status == KJIT_OK) status = check_entries(made, diagnostics);
  if (status == KJIT_OK) *archive = made;
  else kj_close_archives(made);
  return status;
}

/* ---- files ---- */

static bool is_only_ours(const struct stat *info)
{
  return (info->st_uid == geteuid() || info->st_uid == 0) && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* A user who may write to the folder of libkjit may replace libkjit. */
static bool is_as_libkjit(const struct stat *info)
{
  struct stat folder;
  kj_buffer path = { 0 };
  kj_append_own_folder(&path);
  bool is_known = path.length && !path.failed && !stat(path.text, &folder);
  kj_free_buffer(&path);
  if (!is_known) return false;
  mode_t more = info->st_mode & ~folder.st_mode & (S_IWGRP | S_IWOTH);
  bool has_group = !(info->st_mode & S_IWGRP) || info->st_gid == folder.st_gid;
  return (info->st_uid == folder.st_uid || info->st_uid == geteuid() || info->st_uid == 0) &&
         !more && has_group;
}

static bool is_trusted(const struct stat *info, bool is_installed)
{
  return is_only_ours(info) || (is_installed && is_as_libkjit(info));
}

/* Opens the directory of an absolute path, and finds the name in it. */
static int open_folder(const char *path, const char **name)
{
  const char *slash = strrchr(path, '/');
  KJ_ASSERT(*path == '/');
  char *folder = strndup(path, slash == path ? 1 : (size_t)(slash - path));
  int opened = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  free(folder);
  *name = slash + 1;
  return opened;
}

/* Returns -1 if the file cannot be used. Then *why is the reason, or NULL if errno is. path has no
 * symbolic links, and the file is opened in the directory that was checked. */
static int open_trusted(const char *path, bool is_installed, struct stat *info, const char **why)
{
  const char *name;
  int folder = open_folder(path, &name), file = -1;
  *why = NULL;
  if (folder < 0) return -1;
  if (fstat(folder, info) || !is_trusted(info, is_installed))
    *why = "its directory belongs to another user, or other users may write to it";
  else file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
  close(folder);
  if (file < 0) return -1;
  if (fstat(file, info) || !S_ISREG(info->st_mode)) *why = "it is not a regular file";
  else if (!is_trusted(info, is_installed))
    *why = "it belongs to another user, or other users may write to it";
  if (!*why) return file;
  close(file);
  return -1;
}

kjit_status kj_open_archive_file(const char *path, bool is_installed, kj_digest build,
                                 kj_diagnostics *diagnostics, kj_archive **archive)
{
  struct stat info;
  const char *why = NULL;
  char *resolved = realpath(path, NULL); /* stays the same when the process changes its directory */
  int file = resolved ? open_trusted(resolved, is_installed, &info, &why) : -1;
  if (file < 0) {
    const char *reason = why ? why : strerror(errno);
    free(resolved);
    return kj_error(diagnostics, KJIT_ERROR_IO, "%s: the compiled code cannot be used: %s", path,
                    reason);
  }
  kj_archive *made = make_archive(resolved);
  free(resolved);
  if (made) made->is_installed = is_installed;
  kjit_status status = made ? read_index(made, file, (uint64_t)info.st_size, build, diagnostics)
                            : fail_memory(diagnostics);
  close(file);
  if (status == KJIT_OK) *archive = made;
  else kj_close_archives(made);
  return status;
}

/* ---- entries ---- */

static char *unpack_row(const kj_archive *archive, int file, const archive_row *row)
{
  char *packed = malloc(row->packed_bytes + 1), *bytes = malloc(row->size_bytes + 1);
  bool is_read =
    packed && bytes && read_part(archive, file, row->offset, packed, row->packed_bytes) &&
    kj_same_digest(row->checksum, kj_digest_bytes(packed, row->packed_bytes)) &&
    ZSTD_decompress(bytes, row->size_bytes, packed, row->packed_bytes) == row->size_bytes;
  free(packed);
  if (is_read) return bytes;
  free(bytes);
  return NULL;
}

void *kj_read_archived(const kj_archive *archive, uint64_t index, size_t *size_bytes)
{
  struct stat info;
  const char *why;
  const archive_row *row = &archive->rows[index];
  KJ_ASSERT(index < archive->count);
  int file = archive->bytes ? -1 : open_trusted(archive->name, archive->is_installed, &info, &why);
  bool is_there = archive->bytes || file >= 0;
  char *bytes = is_there ? unpack_row(archive, file, row) : NULL;
  if (file >= 0) close(file);
  *size_bytes = row->size_bytes;
  return bytes;
}

void kj_name_archived(const kj_archive *archive, uint64_t index, char name[KJ_ENTRY_NAME_BYTES])
{
  kj_name_entry(archive->rows[index].digest, name);
}

uint64_t kj_archived_bytes(const kj_archive *archive, uint64_t index)
{
  return archive->rows[index].packed_bytes;
}

/* count: there is none. */
static uint64_t find_row(const kj_archive *archive, const kj_digest *digest)
{
  uint64_t low = 0, high = archive->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    int order = compare_digests(&archive->rows[middle].digest, digest);
    if (!order) return middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return archive->count;
}

bool kj_find_archived(const kj_archive *first, const kj_disk_key *key, const kj_digest *compiler,
                      kj_code *code)
{
  for (const kj_archive *at = first; at; at = at->next) {
    uint64_t index = find_row(at, &key->digest);
    size_t size_bytes;
    void *entry = index < at->count ? kj_read_archived(at, index, &size_bytes) : NULL;
    bool is_found =
      entry && kj_unpack_entry(entry, size_bytes, key, compiler, code) == KJ_ENTRY_WHOLE;
    free(entry);
    if (is_found) return true;
  }
  return false;
}
