/* Reads archives, which contain many entries of the disk cache in one file or blob.
 *
 * kjit opens a file again for each entry that it reads, so a file that another process has
 * replaced, shortened or removed causes a cache miss. kjit does not map files, because access to a
 * page after the end of a shortened file would end the process. */
#include "code/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "code/archive_format.h"
#include "support/paths.h"

static const uint64_t most_block_bytes = (uint64_t)1 << 28, most_archive_bytes = (uint64_t)1 << 36;

static kjit_status fail_memory(kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* ---- opening ---- */

/* Returns an archive and its name in one malloc'd block. */
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
    free(first->index);
    free(first);
    first = next;
  }
}

static kjit_status refuse(const char *name, const char *why, kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_IO, "%s: the compiled code is damaged: %s", name, why);
}

/* Checks the header before the rows are read. */
static kjit_status check_header(const char *name, const kj_archive_header *h, uint64_t size_bytes,
                                kj_diagnostics *diagnostics)
{
  uint64_t most = (size_bytes - sizeof *h) / sizeof(kj_archive_row);
  _Static_assert(sizeof(kj_archive_row) == sizeof(kj_archive_block), "one limit for both");
  if (memcmp(h->magic, KJ_ARCHIVE_MAGIC, sizeof h->magic))
    return refuse(name, "it was not made by kjit_export_code or kjit-cache", diagnostics);
  if (h->size_bytes != size_bytes || size_bytes > most_archive_bytes)
    return refuse(name, "its header states another size than the file has", diagnostics);
  if (h->entry_count > most || h->block_count > most - h->entry_count)
    return refuse(name, "its index does not fit in the file", diagnostics);
  return KJIT_OK;
}

static bool are_sound_blocks(const kj_archive *archive, uint64_t size_bytes)
{
  for (uint64_t i = 0; i < archive->block_count; i++) {
    const kj_archive_block *block = &archive->blocks[i];
    if (block->offset > size_bytes || block->packed_bytes > size_bytes - block->offset ||
        block->size_bytes > most_block_bytes)
      return false;
  }
  return true;
}

static bool are_sound_rows(const kj_archive *archive)
{
  for (uint64_t i = 0; i < archive->count; i++) {
    const kj_archive_row *row = &archive->rows[i];
    bool is_sorted = !i || kj_compare_digests(&row[-1].digest, &row->digest) < 0;
    if (!is_sorted || row->block >= archive->block_count) return false;
    uint64_t block_bytes = archive->blocks[row->block].size_bytes;
    if (row->offset > block_bytes || row->size_bytes > block_bytes - row->offset) return false;
  }
  return true;
}

/* Computes the checksum over header and rows, which are contiguous. */
static kjit_status check_index(kj_archive *archive, const kj_archive_header *h, size_t index_bytes,
                               kj_diagnostics *diagnostics)
{
  size_t checked_bytes = sizeof *h - KJ_ARCHIVE_CHECKED_FROM + index_bytes;
  char *checked = malloc(checked_bytes + 1);
  if (!checked) return fail_memory(diagnostics);
  memcpy(checked, (const char *)h + KJ_ARCHIVE_CHECKED_FROM, sizeof *h - KJ_ARCHIVE_CHECKED_FROM);
  memcpy(checked + sizeof *h - KJ_ARCHIVE_CHECKED_FROM, archive->index, index_bytes);
  bool is_right = kj_same_digest(h->checksum, kj_digest_bytes(checked, checked_bytes));
  free(checked);
  if (!is_right) return refuse(archive->name, "its checksum is wrong", diagnostics);
  if (!are_sound_blocks(archive, h->size_bytes) || !are_sound_rows(archive))
    return refuse(archive->name, "an entry is out of bounds", diagnostics);
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
  kj_archive_header h;
  if (size_bytes < sizeof h || !read_part(archive, file, 0, &h, sizeof h))
    return refuse(archive->name, "it is shorter than its header", diagnostics);
  KJ_TRY(check_header(archive->name, &h, size_bytes, diagnostics));
  size_t blocks_bytes = h.block_count * sizeof *archive->blocks,
         index_bytes = blocks_bytes + h.entry_count * sizeof *archive->rows;
  archive->index = malloc(index_bytes + 1);
  if (!archive->index) return fail_memory(diagnostics);
  if (!read_part(archive, file, sizeof h, archive->index, index_bytes))
    return refuse(archive->name, "it is shorter than its index", diagnostics);
  archive->blocks = archive->index;
  archive->rows = (const kj_archive_row *)((const char *)archive->index + blocks_bytes);
  archive->block_count = h.block_count;
  archive->count = h.entry_count;
  KJ_TRY(check_index(archive, &h, index_bytes, diagnostics));
  /* the build is compared after the checksum, because a damaged header contains no valid build */
  if (kj_same_digest(h.build, build)) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                  "%s: the compiled code was made by another build of kjit", archive->name);
}

/* Checks the blocks of a blob when it is opened, so that the application is informed of damage at
 * once. The check takes little time, because the bytes are in memory already. */
static kjit_status check_blocks(const kj_archive *archive, kj_diagnostics *diagnostics)
{
  for (uint64_t i = 0; i < archive->block_count; i++) {
    const kj_archive_block *block = &archive->blocks[i];
    kj_digest sum = kj_digest_bytes(archive->bytes + block->offset, block->packed_bytes);
    if (!kj_same_digest(sum, block->checksum))
      return refuse(archive->name, "the checksum of a block is wrong", diagnostics);
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
  if (status == KJIT_OK) status = check_blocks(made, diagnostics);
  if (status == KJIT_OK) *archive = made;
  else kj_close_archives(made);
  return status;
}

/* ---- files ---- */

static bool is_only_ours(const struct stat *info)
{
  return (info->st_uid == geteuid() || info->st_uid == 0) && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* Returns whether only users who can replace libkjit itself can change the file. Its owner must be
 * root, this user or the owner of libkjit's directory. A group or other users may have write
 * permission for the file only if they have it for that directory. */
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

/* Opens the directory of an absolute path, and stores the file name. */
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

/* Opens a file if it can be trusted. path has no symbolic links, and the file is opened relative to
 * the directory that was checked. On failure, returns -1 and sets *why to the reason, or to NULL if
 * errno has the reason. */
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
  char *resolved = realpath(path, NULL); /* an absolute path, which stays valid if the process
                                          * changes its directory */
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

/* Unpacks a block up to the end of the entry. */
static bool unpack_part(const void *packed, size_t packed_bytes, void *to, size_t bytes)
{
  ZSTD_DStream *stream = ZSTD_createDStream();
  ZSTD_inBuffer in = { packed, packed_bytes, 0 };
  ZSTD_outBuffer out = { to, bytes, 0 };
  size_t left = stream ? ZSTD_initDStream(stream) : 0;
  while (stream && !ZSTD_isError(left) && out.pos < out.size) {
    size_t taken = in.pos, given = out.pos;
    left = ZSTD_decompressStream(stream, &out, &in);
    if (in.pos == taken && out.pos == given) break;
  }
  ZSTD_freeDStream(stream);
  return out.pos == out.size;
}

static char *unpack_row(const kj_archive *archive, int file, const kj_archive_row *row)
{
  const kj_archive_block *block = &archive->blocks[row->block];
  size_t unpacked_bytes = row->offset + row->size_bytes;
  char *packed = malloc(block->packed_bytes + 1), *bytes = malloc(unpacked_bytes + 1);
  bool is_read = packed && bytes &&
                 read_part(archive, file, block->offset, packed, block->packed_bytes) &&
                 kj_same_digest(block->checksum, kj_digest_bytes(packed, block->packed_bytes)) &&
                 unpack_part(packed, block->packed_bytes, bytes, unpacked_bytes);
  free(packed);
  if (is_read) return memmove(bytes, bytes + row->offset, row->size_bytes);
  free(bytes);
  return NULL;
}

void *kj_read_archived(const kj_archive *archive, uint64_t index, size_t *size_bytes)
{
  struct stat info;
  const char *why;
  const kj_archive_row *row = &archive->rows[index];
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
  const kj_archive_row *row = &archive->rows[index];
  const kj_archive_block *block = &archive->blocks[row->block];
  double part = block->size_bytes ? (double)row->size_bytes / (double)block->size_bytes : 0;
  return (uint64_t)(part * (double)block->packed_bytes);
}

static int compare_places(const void *a, const void *b)
{
  const kj_archive_row *const *x = a, *const *y = b;
  if ((*x)->block != (*y)->block) return (*x)->block < (*y)->block ? -1 : 1;
  return ((*x)->offset > (*y)->offset) - ((*x)->offset < (*y)->offset);
}

uint64_t *kj_order_archived(const kj_archive *archive)
{
  const kj_archive_row **sorted = malloc((archive->count + 1) * sizeof *sorted);
  uint64_t *order = malloc((archive->count + 1) * sizeof *order);
  if (sorted && order) {
    for (uint64_t i = 0; i < archive->count; i++) sorted[i] = &archive->rows[i];
    qsort(sorted, archive->count, sizeof *sorted, compare_places);
    for (uint64_t i = 0; i < archive->count; i++) order[i] = (uint64_t)(sorted[i] - archive->rows);
  } else {
    free(order);
    order = NULL;
  }
  free(sorted);
  return order;
}

/* Returns the row of the entry, or the number of rows if the archive does not contain the entry. */
static uint64_t find_row(const kj_archive *archive, const kj_digest *digest)
{
  uint64_t low = 0, high = archive->count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    int order = kj_compare_digests(&archive->rows[middle].digest, digest);
    if (!order) return middle;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return archive->count;
}

bool kj_find_archived(kj_archive *first, const kj_disk_key *key, const kj_digest *compiler,
                      kj_code *code)
{
  for (kj_archive *at = first; at; at = at->next) {
    uint64_t index = find_row(at, &key->digest);
    if (index == at->count) continue;
    size_t size_bytes;
    void *entry = kj_read_archived(at, index, &size_bytes);
    kj_entry_state state =
      entry ? kj_take_entry(entry, size_bytes, key, compiler, code) : KJ_ENTRY_BROKEN;
    if (state == KJ_ENTRY_WHOLE) return true;
    if (state == KJ_ENTRY_BROKEN)
      atomic_store_explicit(&at->has_damage, true, memory_order_relaxed);
  }
  return false;
}
