/* Many entries of the disk cache as one piece of bytes that is only read: a blob of
 * kjit_export_code, or a file of kjit-cache build. */
#ifndef KJ_ARCHIVE_H
#define KJ_ARCHIVE_H

#include "code/disk.h"

/* ---- writing ---- */

/* An entry as kj_pack_entry makes it. */
typedef struct kj_archived {
  kj_digest digest; /* of its key */
  void *entry;      /* malloc'd, of the writer */
  size_t size_bytes;
  bool is_machine_code; /* of a GPU; such entries are written after the others */
} kj_archived;

/* Entries that are to become an archive. { 0 } before the first one. */
typedef struct kj_archive_writer {
  kj_archived *items;
  size_t count, capacity;
} kj_archive_writer;

/* Takes item.entry, also where it fails; NULL is out of memory. Errors: MEMORY. */
kjit_status kj_add_to_archive(kj_archive_writer *writer, kj_archived item,
                              kj_diagnostics *diagnostics);
/* Adds a copy of an entry of another writer. Errors: MEMORY. */
kjit_status kj_copy_archived(kj_archive_writer *writer, const kj_archived *item,
                             kj_diagnostics *diagnostics);
/* Of several entries with one key the one that was added first stays. malloc'd. Errors: MEMORY. */
kjit_status kj_finish_archive(kj_archive_writer *writer, kj_digest build,
                              kj_diagnostics *diagnostics, void **bytes, size_t *size_bytes);
void kj_free_archive_writer(kj_archive_writer *writer);

/* ---- reading ---- */

typedef struct kj_archive kj_archive;
struct kj_archive {
  kj_archive *next;
  const char *name; /* of the caller, for messages: a function or a path; in itself */
  char *bytes;      /* of a blob; NULL: a file */
  void *index;      /* malloc'd; the blocks and rows are in it */
  const struct kj_archive_block *blocks;
  const struct kj_archive_row *rows; /* sorted by digest */
  uint64_t block_count, count;
  bool is_installed; /* a file beside libkjit */
};

/* Copies the blob. Errors: IO where it is damaged, UNSUPPORTED where another build has made it,
 * MEMORY. call: for messages. */
kjit_status kj_open_blob(const char *call, const void *blob, size_t size_bytes, kj_digest build,
                         kj_diagnostics *diagnostics, kj_archive **archive);
/* Opens a file and reads its index. The file and its directory have to belong to this user or to
 * root, and no other user may write to them. is_installed: the file is installed with libkjit, so
 * that users who may write to the folder of libkjit may write to the file as well. Errors: those of
 * kj_open_blob; IO also if the file cannot be read or is not trusted. */
kjit_status kj_open_archive_file(const char *path, bool is_installed, kj_digest build,
                                 kj_diagnostics *diagnostics, kj_archive **archive);
void kj_close_archives(kj_archive *first);

/* The entry at an index, unpacked; malloc'd. NULL: it is damaged, cannot be read now, or out of
 * memory. */
void *kj_read_archived(const kj_archive *archive, uint64_t index, size_t *size_bytes);
/* The name that the entry would have as a file, and its share of what its block takes in the
 * archive. */
void kj_name_archived(const kj_archive *archive, uint64_t index, char name[KJ_ENTRY_NAME_BYTES]);
uint64_t kj_archived_bytes(const kj_archive *archive, uint64_t index);
/* The indexes of all entries in the order in which the writer added them; malloc'd. NULL: out of
 * memory. */
uint64_t *kj_order_archived(const kj_archive *archive);
/* Looks for the key in the archive and all that follow it. compiler as in kj_unpack_entry. */
bool kj_find_archived(const kj_archive *first, const kj_disk_key *key, const kj_digest *compiler,
                      kj_code *code);

/* Reports that there is neither a compiler nor code for a launch: an error that names the kernel,
 * and what is different in the entry that comes nearest to the wanted key, of those in the archive
 * and in all that follow it. missing.c */
void kj_report_missing(const kj_archive *first, const kj_disk_key *wanted, const char *kernel,
                       const char *signature, kj_diagnostics *diagnostics);

#endif
