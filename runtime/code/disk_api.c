/* The public functions of the disk cache. */
#include <kjit/cache.h>
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"

/* NULL: none, and diagnostics say so only when out of memory. */
static kj_disk *get_disk(kjit_context *context, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) (void)kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  /* a host's own store is the host's */
  bool has_directory = runtime && runtime->disk && kj_disk_directory(runtime->disk);
  return has_directory ? runtime->disk : NULL;
}

static kjit_status report(kj_disk *disk, kjit_status status, kj_diagnostics *diagnostics)
{
  if (status == KJIT_ERROR_IO)
    return kj_error(diagnostics, status, "the directory of the disk cache cannot be read: %s",
                    kj_disk_directory(disk));
  return status == KJIT_OK ? KJIT_OK : kj_error(diagnostics, status, "out of memory");
}

/* ---- visiting ---- */

/* What the lines of a key say; text is 0-terminated and is taken apart. */
static void read_lines(char *text, kjit_cache_entry *entry)
{
  const struct {
    const char *word;
    const char **value;
  } rows[] = { { "kjit ", &entry->version },
               { "target ", &entry->target },
               { "kernel ", &entry->kernel },
               { "signature ", &entry->signature } };
  for (char *line = text, *end; *line && *line != '\n'; line = end + 1) {
    end = strchr(line, '\n');
    if (!end) return;
    *end = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      if (!strncmp(line, rows[i].word, strlen(rows[i].word)))
        *rows[i].value = line + strlen(rows[i].word);
  }
}

/* The name of a file belongs to its key: a whole entry under another name is of no use to anybody.
 */
static char *copy_key(kj_disk *disk, const char *name)
{
  void *bytes;
  size_t size_bytes, key_bytes;
  kj_digest digest;
  char *copy = NULL;
  if (!kj_read_disk_file(disk, name, false, &bytes, &size_bytes)) return NULL;
  const char *key = kj_read_entry_key(bytes, size_bytes, &key_bytes, &digest);
  if (key && kj_is_entry_of(name, digest)) copy = strndup(key, key_bytes);
  free(bytes);
  return copy;
}

static void visit_file(kj_disk *disk, const kj_disk_file *file,
                       void (*visit)(void *user, const kjit_cache_entry *entry), void *user)
{
  if (!file->is_entry && !kj_is_left(file)) return; /* being written */
  kjit_cache_entry entry = { .name = file->name,
                             .size_bytes = file->size_bytes,
                             .used_ns = file->used_ns };
  char *key = file->is_entry ? copy_key(disk, file->name) : NULL;
  if (key) read_lines(key, &entry);
  visit(user, &entry);
  free(key);
}

kjit_status kjit_visit_cache(kjit_context *context,
                             void (*visit)(void *user, const kjit_cache_entry *entry), void *user)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!visit) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_visit_cache: visit is NULL");
  kj_diagnostics diagnostics = { 0 };
  kj_disk_file *files = NULL;
  size_t count = 0;
  kj_disk *disk = get_disk(context, &diagnostics);
  if (disk && report(disk, kj_list_disk(disk, &files, &count), &diagnostics) == KJIT_OK)
    for (size_t i = 0; i < count; i++) visit_file(disk, &files[i], visit, user);
  free(files);
  return ki_finish_call(context, &diagnostics);
}

/* ---- removing ---- */

const char *kjit_get_cache_directory(kjit_context *context)
{
  kj_runtime *runtime = context && !ki_is_forked(context) ? kj_get_runtime(context) : NULL;
  return runtime && runtime->disk ? kj_disk_directory(runtime->disk) : NULL;
}

kjit_status kjit_remove_cache_entry(kjit_context *context, const char *name)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!name)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_remove_cache_entry: name is NULL");
  if (!kj_is_disk_name(name))
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT, "`%s` is no name of a file of the disk cache",
                        name);
  kj_diagnostics diagnostics = { 0 };
  kj_disk *disk = get_disk(context, &diagnostics);
  if (diagnostics.status == KJIT_OK && !(disk && kj_remove_disk_file(disk, name)))
    (void)kj_error(&diagnostics, KJIT_ERROR_IO, "`%s` cannot be removed from the disk cache%s%s",
                   name, disk ? " " : "", disk ? kj_disk_directory(disk) : "");
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_trim_cache(kjit_context *context, uint64_t limit_bytes, uint64_t *removed,
                            uint64_t *removed_bytes)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  uint64_t count = 0, bytes = 0;
  kj_disk *disk = get_disk(context, &diagnostics);
  if (disk) (void)report(disk, kj_trim_disk(disk, limit_bytes, &count, &bytes), &diagnostics);
  if (removed) *removed = count;
  if (removed_bytes) *removed_bytes = bytes;
  return ki_finish_call(context, &diagnostics);
}
