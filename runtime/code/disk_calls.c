/* Implements the public functions of the disk cache (kjit/cache.h), which list, remove and trim its
 * entries. */
#include <kjit/cache.h>
#include <stdlib.h>
#include <string.h>

#include "code/disk.h"

static bool is_entry_of(const char *name, kj_digest digest)
{
  char expected[KJ_ENTRY_NAME_BYTES];
  kj_name_entry(digest, expected);
  return !strcmp(name, expected);
}

/* Returns the disk cache if it has a directory, otherwise NULL. If memory is exhausted, returns
 * NULL and reports the error in diagnostics. */
static kj_disk *get_disk(kjit_context *context, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) (void)kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  /* a store belongs to the application, which manages its entries itself */
  bool has_directory = runtime && runtime->disk->directory;
  return has_directory ? runtime->disk : NULL;
}

static kjit_status report(kj_disk *disk, kjit_status status, kj_diagnostics *diagnostics)
{
  if (status == KJIT_ERROR_IO)
    return kj_error(diagnostics, status, "the disk cache's directory cannot be read: %s%s",
                    disk->directory,
                    kj_can_others_write(disk)
                      ? ": it is not used, because other users can write to it"
                      : "");
  return status == KJIT_OK ? KJIT_OK : kj_error(diagnostics, status, "out of memory");
}

void kj_read_key_lines(char *text, kjit_cache_entry *entry)
{
  const char *processor = NULL;
  const struct {
    const char *word;
    const char **value;
  } rows[] = { { "kjit ", &entry->version },  { "target ", &entry->target },
               { "processor ", &processor },  { "stage ", &entry->stage },
               { "kernel ", &entry->kernel }, { "signature ", &entry->signature } };
  for (char *line = text, *end; *line && *line != '\n'; line = end + 1) {
    end = strchr(line, '\n');
    if (!end) break;
    *end = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      if (!strncmp(line, rows[i].word, strlen(rows[i].word)))
        *rows[i].value = line + strlen(rows[i].word);
  }
  if (processor && kj_read_level(processor, strlen(processor))) entry->target = processor;
}

/* Copies an entry's key. *copy is NULL if the entry is damaged. The file name is a digest of the
 * key, so an entry in a file with another name counts as damaged. Errors: MEMORY. */
static kjit_status copy_key(kj_disk *disk, const char *name, char **copy)
{
  void *bytes;
  size_t size_bytes, key_bytes;
  kj_digest digest;
  *copy = NULL;
  kjit_status status = kj_read_disk_file(disk, name, false, &bytes, &size_bytes);
  if (status != KJIT_OK) return status == KJIT_ERROR_MEMORY ? status : KJIT_OK;
  const char *key = kj_read_entry_key(bytes, size_bytes, &key_bytes, &digest);
  bool is_whole = key && is_entry_of(name, digest);
  if (is_whole) *copy = strndup(key, key_bytes);
  free(bytes);
  return is_whole && !*copy ? KJIT_ERROR_MEMORY : KJIT_OK;
}

static kjit_status visit_file(const kjit_context *context, kj_disk *disk, const kj_disk_file *file,
                              void (*visit)(void *user, const kjit_cache_entry *entry), void *user)
{
  char *key = NULL;
  /* another process is writing this temporary file */
  if (!file->is_entry && !kj_is_left_over(file)) return KJIT_OK;
  if (file->is_entry) KJ_TRY(copy_key(disk, file->name, &key));
  kjit_cache_entry entry = { .size_bytes = sizeof entry,
                             .name = file->name,
                             .file_bytes = file->size_bytes,
                             .used_ns = file->used_ns };
  if (key) kj_read_key_lines(key, &entry);
  ki_host_code code;
  ki_enter_host(&code, context);
  visit(user, &entry);
  ki_leave_host(&code);
  free(key);
  return KJIT_OK;
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
  kjit_status status = disk ? kj_list_disk(disk, &files, &count) : KJIT_OK;
  for (size_t i = 0; i < count && status == KJIT_OK; i++)
    status = visit_file(context, disk, &files[i], visit, user);
  free(files);
  if (disk) (void)report(disk, status, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}

const char *kjit_get_cache_directory(kjit_context *context)
{
  kj_runtime *runtime = context && !ki_is_forked(context) ? kj_get_runtime(context) : NULL;
  return runtime ? runtime->disk->directory : NULL;
}

kjit_status kjit_remove_cache_entry(kjit_context *context, const char *name)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!name)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_remove_cache_entry: name is NULL");
  if (!kj_is_disk_name(name))
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT, "`%s` is not the name of a disk cache entry",
                        name);
  kj_diagnostics diagnostics = { 0 };
  kj_disk *disk = get_disk(context, &diagnostics);
  if (diagnostics.status == KJIT_OK && !(disk && kj_remove_disk_file(disk, name)))
    (void)kj_error(&diagnostics, KJIT_ERROR_IO, "`%s` cannot be removed from the disk cache%s%s",
                   name, disk ? " " : "", disk ? disk->directory : "");
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_trim_cache(kjit_context *context, uint64_t limit_bytes, uint64_t *removed,
                            uint64_t *removed_bytes)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  kj_diagnostics diagnostics = { 0 };
  kj_trimmed trimmed = { 0 };
  kj_disk *disk = get_disk(context, &diagnostics);
  if (disk) (void)report(disk, kj_trim_disk(disk, limit_bytes, &trimmed), &diagnostics);
  if (trimmed.refusal)
    (void)kj_error(&diagnostics, KJIT_ERROR_IO,
                   "%s: a file of the disk cache cannot be removed: %s", disk->directory,
                   strerror(trimmed.refusal));
  if (removed) *removed = trimmed.removed_count;
  if (removed_bytes) *removed_bytes = trimmed.removed_bytes;
  return ki_finish_call(context, &diagnostics);
}
