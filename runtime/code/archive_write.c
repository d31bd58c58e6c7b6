/* Writes archives. The entries keep the order in which they were added, because neighbouring
 * entries are similar and compress well together. */
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "code/archive.h"
#include "code/archive_format.h"

static kjit_status fail_memory(kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* ---- collecting ---- */

kjit_status kj_add_to_archive(kj_archive_writer *writer, kj_archived item,
                              kj_diagnostics *diagnostics)
{
  if (!item.entry) return fail_memory(diagnostics);
  if (writer->count == writer->capacity) {
    size_t wanted = KJ_GROWN(writer->capacity, 64);
    kj_archived *grown = realloc(writer->items, wanted * sizeof *grown);
    if (!grown) {
      free(item.entry);
      return fail_memory(diagnostics);
    }
    writer->items = grown;
    writer->capacity = wanted;
  }
  writer->items[writer->count++] = item;
  return KJIT_OK;
}

kjit_status kj_copy_archived(kj_archive_writer *writer, const kj_archived *item,
                             kj_diagnostics *diagnostics)
{
  kj_archived made = *item;
  made.entry = malloc(item->size_bytes + 1);
  if (made.entry) memcpy(made.entry, item->entry, item->size_bytes);
  return kj_add_to_archive(writer, made, diagnostics);
}

void kj_free_archive_writer(kj_archive_writer *writer)
{
  for (size_t i = 0; i < writer->count; i++) free(writer->items[i].entry);
  free(writer->items);
  *writer = (kj_archive_writer){ 0 };
}

/* ---- repeated entries ---- */

static int compare_items(const void *a, const void *b)
{
  const kj_archived *const *x = a, *const *y = b;
  int order = kj_compare_digests(&(*x)->digest, &(*y)->digest);
  /* of entries with equal keys, the entry that was added first comes first */
  return order ? order : (*x > *y) - (*x < *y);
}

/* Keeps the first of several entries with the same key. Returns false if out of memory. */
static bool drop_repeated(kj_archive_writer *writer)
{
  kj_archived **sorted = malloc((writer->count + 1) * sizeof *sorted);
  if (!sorted) return false;
  for (size_t i = 0; i < writer->count; i++) sorted[i] = &writer->items[i];
  qsort(sorted, writer->count, sizeof *sorted, compare_items);
  for (size_t i = 1; i < writer->count; i++) {
    if (!kj_same_digest(sorted[i - 1]->digest, sorted[i]->digest)) continue;
    free(sorted[i]->entry);
    sorted[i]->entry = NULL;
  }
  free(sorted);
  size_t kept = 0;
  for (size_t i = 0; i < writer->count; i++)
    if (writer->items[i].entry) writer->items[kept++] = writer->items[i];
  writer->count = kept;
  return true;
}

/* ---- blocks and rows ---- */

enum { BLOCK_BYTES = 1 << 18 };

/* The header, rows and blocks in an archive before they are joined. */
typedef struct layout {
  kj_archive_block *blocks;
  kj_archive_row *rows;
  size_t block_count;
  kj_buffer packed; /* compressed blocks */
} layout;

/* Assigns each entry a block and an offset. */
static void place_entries(const kj_archive_writer *writer, layout *l)
{
  for (size_t i = 0; i < writer->count; i++) {
    const kj_archived *item = &writer->items[i];
    kj_archive_block *last = l->block_count ? &l->blocks[l->block_count - 1] : NULL;
    if (!last || last->size_bytes + item->size_bytes > BLOCK_BYTES)
      *(last = &l->blocks[l->block_count++]) = (kj_archive_block){ 0 };
    l->rows[i] = (kj_archive_row){ .digest = item->digest,
                                   .block = l->block_count - 1,
                                   .offset = last->size_bytes,
                                   .size_bytes = item->size_bytes };
    last->size_bytes += item->size_bytes;
  }
}

/* Compresses a block and appends it to `packed`. Compression at level 9 takes less time than
 * compiling the code. Level 19 takes twenty times as long as level 9 and saves a tenth of the size.
 * Returns false if out of memory. */
static bool compress_block(const char *bytes, kj_archive_block *block, kj_buffer *packed)
{
  enum { LEVEL = 9 };
  size_t most = ZSTD_compressBound(block->size_bytes);
  char *made = malloc(most);
  size_t made_bytes = made ? ZSTD_compress(made, most, bytes, block->size_bytes, LEVEL) : 0;
  bool is_made = made && !ZSTD_isError(made_bytes);
  if (is_made) {
    block->offset = packed->length;
    block->packed_bytes = made_bytes;
    block->checksum = kj_digest_bytes(made, made_bytes);
    kj_append(packed, made, made_bytes);
  }
  free(made);
  return is_made && !packed->failed;
}

/* Packs a block of consecutive items, starting with item `first`. *next receives the item after
 * them. */
static bool pack_block(const kj_archive_writer *writer, layout *l, size_t index, size_t first,
                       size_t *next)
{
  kj_archive_block *block = &l->blocks[index];
  char *bytes = malloc(block->size_bytes + 1), *at = bytes;
  size_t i = first;
  for (; bytes && i < writer->count && l->rows[i].block == index; i++) {
    memcpy(at, writer->items[i].entry, writer->items[i].size_bytes);
    at += writer->items[i].size_bytes;
  }
  bool is_packed = bytes && compress_block(bytes, block, &l->packed);
  free(bytes);
  *next = i;
  return is_packed;
}

static int compare_rows(const void *a, const void *b)
{
  const kj_archive_row *x = a, *y = b;
  return kj_compare_digests(&x->digest, &y->digest);
}

static bool lay_out(const kj_archive_writer *writer, layout *l)
{
  l->blocks = malloc((writer->count + 1) * sizeof *l->blocks);
  l->rows = malloc((writer->count + 1) * sizeof *l->rows);
  if (!l->blocks || !l->rows) return false;
  place_entries(writer, l);
  for (size_t i = 0, item = 0; i < l->block_count; i++)
    if (!pack_block(writer, l, i, item, &item)) return false;
  qsort(l->rows, writer->count, sizeof *l->rows, compare_rows);
  return true;
}

static char *put(char *at, const void *data, size_t size_bytes)
{
  if (size_bytes) memcpy(at, data, size_bytes);
  return at + size_bytes;
}

/* Returns the archive in a malloc'd buffer, or NULL if out of memory. */
static char *join(layout *l, size_t count, kj_digest build, size_t *size_bytes)
{
  kj_archive_header h = { .block_count = l->block_count, .entry_count = count, .build = build };
  const size_t blocks_bytes = l->block_count * sizeof *l->blocks,
               rows_bytes = count * sizeof *l->rows,
               index_end = sizeof h + blocks_bytes + rows_bytes;
  memcpy(h.magic, KJ_ARCHIVE_MAGIC, sizeof h.magic);
  h.size_bytes = index_end + l->packed.length;
  for (size_t i = 0; i < l->block_count; i++) l->blocks[i].offset += index_end;
  char *bytes = malloc(h.size_bytes);
  if (!bytes) return NULL;
  char *at = put(bytes + sizeof h, l->blocks, blocks_bytes);
  at = put(at, l->rows, rows_bytes);
  put(at, l->packed.text, l->packed.length);
  memcpy(bytes, &h, sizeof h);
  h.checksum =
    kj_digest_bytes(bytes + KJ_ARCHIVE_CHECKED_FROM, index_end - KJ_ARCHIVE_CHECKED_FROM);
  memcpy(bytes, &h, sizeof h);
  *size_bytes = h.size_bytes;
  return bytes;
}

kjit_status kj_finish_archive(kj_archive_writer *writer, kj_digest build,
                              kj_diagnostics *diagnostics, void **bytes, size_t *size_bytes)
{
  layout l = { 0 };
  bool is_laid_out = drop_repeated(writer) && lay_out(writer, &l);
  char *made = is_laid_out ? join(&l, writer->count, build, size_bytes) : NULL;
  free(l.blocks);
  free(l.rows);
  kj_free_buffer(&l.packed);
  if (!made) return fail_memory(diagnostics);
  *bytes = made;
  return KJIT_OK;
}
