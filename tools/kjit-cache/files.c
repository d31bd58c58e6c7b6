/* Merges, lists and writes files of compiled kernels (see kjit_open_cache). */
#include <driver/output_file.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tool.h"

static void list_archived(void *user, const kjit_cache_entry *entry)
{
  cache_tool *t = user;
  t->count++;
  t->bytes += entry->file_bytes;
  printf("%10" PRIu64 "  ", entry->file_bytes);
  if (entry->version)
    printf("%-9s %-6s %s(%s)  kjit %s  %s\n", entry->target, entry->stage, entry->kernel,
           entry->signature, entry->version, entry->name);
  else printf("damaged %s\n", entry->name);
  if (!entry->version) t->damaged++;
}

static void print_total(const cache_tool *t, const char *path)
{
  printf("%" PRIu64 " entr%s, ", t->count, t->count == 1 ? "y" : "ies");
  cache_print_size(t->bytes);
  printf(" in %s\n", path);
}

bool cache_list_file(cache_tool *t, const char *path)
{
  kjit_status status = kjit_visit_cache_file(t->context, path, list_archived, t);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, "list");
  print_total(t, path ? path : "the file that is installed with libkjit");
  return true;
}

/* Writes a file without write permission for the group. libkjit loads no other files, and the umask
 * of many systems gives the group this permission. */
static bool write_protected(cache_tool *t, const void *blob, size_t size_bytes)
{
  tool_output_file output;
  struct stat info;
  if (!tool_create_output(&t->error, t->options.output, &output)) return false;
  int file = fileno(output.stream);
  bool is_file = !output.is_standard && !fstat(file, &info) && S_ISREG(info.st_mode);
  bool ok = !is_file || !fchmod(file, info.st_mode & 07777 & ~(mode_t)(S_IWGRP | S_IWOTH));
  if (!ok) tool_fail(&t->error, TOOL_EXIT_FILE, "%s: %s", output.path, strerror(errno));
  fwrite(blob, 1, size_bytes, output.stream);
  return tool_finish_output(&t->error, &output, ok) && ok;
}

bool cache_write(cache_tool *t, kjit_context *context)
{
  void *blob;
  size_t size_bytes;
  kjit_status status = kjit_export_cache(context, &blob, &size_bytes);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, context, status, t->options.command);
  bool ok = write_protected(t, blob, size_bytes);
  kjit_free(context, blob);
  if (!ok || !strcmp(t->options.output, "-")) return ok;
  cache_print_size(size_bytes);
  printf(" in %s\n", t->options.output);
  return true;
}

bool cache_merge(cache_tool *t)
{
  const cache_texts *files = &t->options.operands;
  for (size_t i = 0; i < files->count; i++) {
    kjit_status status = kjit_open_cache(t->context, files->items[i]);
    if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, "merge");
  }
  return cache_write(t, t->context);
}
