/* The format of an archive, for the files that write and read it:
 *
 *     header | a row for each block | a row for each entry, sorted by the digest of its key |
 * blocks
 *
 * A block contains several entries, compressed together, because kernels of one family are similar:
 * a compressed block of 256 KiB needs only two thirds of the space of separately compressed
 * entries. An entry that exceeds the usual block size has its own block. The checksum in the header
 * covers the rest of the header and the rows; the row of a block contains the checksum of the
 * compressed block. */
#ifndef KJ_ARCHIVE_FORMAT_H
#define KJ_ARCHIVE_FORMAT_H

#include "code/disk.h"

typedef struct kj_archive_header {
  char magic[8];
  kj_digest checksum;
  uint64_t size_bytes, block_count, entry_count;
  /* the build of libkjit: entries contain structs as they are in this build's memory */
  kj_digest build;
} kj_archive_header;

typedef struct kj_archive_block {
  kj_digest checksum; /* checksum of the compressed bytes */
  uint64_t offset, packed_bytes, size_bytes;
} kj_archive_block;

typedef struct kj_archive_row {
  kj_digest digest;                   /* digest of the key */
  uint64_t block, offset, size_bytes; /* offset: position in the unpacked block */
} kj_archive_row;

#define KJ_ARCHIVE_MAGIC "kjitarc2"
enum {
  KJ_ARCHIVE_MAGIC_BYTES = 8,
  KJ_ARCHIVE_CHECKED_FROM = KJ_ARCHIVE_MAGIC_BYTES + sizeof(kj_digest)
};

static inline int kj_compare_digests(const kj_digest *a, const kj_digest *b)
{
  if (a->high != b->high) return a->high < b->high ? -1 : 1;
  return (a->low > b->low) - (a->low < b->low);
}

#endif
