/* An archive contains many entries of the disk cache in one read-only sequence of bytes. It is
 * either a blob from kjit_export_code or a file from kjit-cache build. */
#ifndef KJ_ARCHIVE_H
#define KJ_ARCHIVE_H

#include "code/disk.h"

/* ---- writing ---- */

/* A packed entry from kj_pack_entry. */
typedef struct kj_archived {
  kj_digest digest; /* digest of its key */
  void *entry;      /* malloc'd, owned by the writer */
  size_t size_bytes;
  bool is_machine_code; /* GPU machine code; such entries are written after all others */
} kj_archived;

/* Collects the entries in an archive. Initialize it with { 0 }. */
typedef struct kj_archive_writer {
  kj_archived *items;
  size_t count, capacity;
} kj_archive_writer;

/* Adds an entry and takes ownership of item.entry, also on failure. item.entry is NULL if packing
 * it ran out of memory. Errors: MEMORY. */
kjit_status kj_add_to_archive(kj_archive_writer *writer, kj_archived item,
                              kj_diagnostics *diagnostics);
/* Adds a copy of an entry of another writer. Errors: MEMORY. */
kjit_status kj_copy_archived(kj_archive_writer *writer, const kj_archived *item,
                             kj_diagnostics *diagnostics);
/* Writes the archive to a malloc'd buffer. Of several entries with the same key, the archive
 * contains the one that was added first. Errors: MEMORY. */
kjit_status kj_finish_archive(kj_archive_writer *writer, kj_digest build,
                              kj_diagnostics *diagnostics, void **bytes, size_t *size_bytes);
void kj_free_archive_writer(kj_archive_writer *writer);

/* ---- reading ---- */

typedef struct kj_archive kj_archive;
struct kj_archive {
  kj_archive *next;
  /* name for messages: the function that the application called, or the path; part of the archive's
   * malloc'd block */
  const char *name;
  char *bytes; /* copy of a blob, or NULL for a file */
  void *index; /* malloc'd; contains the blocks and rows */
  const struct kj_archive_block *blocks;
  const struct kj_archive_row *rows; /* sorted by digest */
  uint64_t block_count, count;
  bool is_installed; /* installed in the directory of libkjit */
  /* has_damage: a search found an entry that is damaged or cannot be read; has_warned: the warning
   * about this was reported */
  _Atomic bool has_damage, has_warned;
};

/* Opens a copy of a blob. call names the function in messages. Errors: IO if the blob is damaged,
 * UNSUPPORTED if another build has made it, MEMORY. */
kjit_status kj_open_blob(const char *call, const void *blob, size_t size_bytes, kj_digest build,
                         kj_diagnostics *diagnostics, kj_archive **archive);
/* Opens a file and reads its index. The file and its directory must belong to this user or to root,
 * and no other user may have write permission. is_installed: the file is installed with libkjit, so
 * users who can write to the directory of libkjit may also write to the file. Errors: the errors
 * from kj_open_blob, and IO if the file cannot be read or is not trusted. */
kjit_status kj_open_archive_file(const char *path, bool is_installed, kj_digest build,
                                 kj_diagnostics *diagnostics, kj_archive **archive);
void kj_close_archives(kj_archive *first);

/* Returns the unpacked entry at an index, malloc'd with one more byte. Returns NULL if the entry is
 * damaged or cannot be read now, or when out of memory. */
void *kj_read_archived(const kj_archive *archive, uint64_t index, size_t *size_bytes);
/* kj_name_archived stores the file name that the entry would have in the disk cache.
 * kj_archived_bytes returns the entry's share of the compressed size of its block. */
void kj_name_archived(const kj_archive *archive, uint64_t index, char name[KJ_ENTRY_NAME_BYTES]);
uint64_t kj_archived_bytes(const kj_archive *archive, uint64_t index);
/* Returns the indices of all entries in the order in which the writer added them, malloc'd, or NULL
 * if out of memory. */
uint64_t *kj_order_archived(const kj_archive *archive);
/* Searches the archive and all archives after it in the list for the key. For `compiler`, see
 * kj_take_entry. */
bool kj_find_archived(kj_archive *first, const kj_disk_key *key, const kj_digest *compiler,
                      kj_code *code);

/* Reports that a launch has neither a compiler nor code (missing.c). The error names the kernel and
 * describes how the wanted key differs from the most similar entry in this archive and all archives
 * after it. */
void kj_report_missing(const kj_archive *first, const kj_disk_key *wanted, const char *kernel,
                       const char *signature, kj_diagnostics *diagnostics);

#endif
