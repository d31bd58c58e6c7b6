#include "support/paths.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <link.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/assert.h"

typedef KJ_LIST(char *) path_list;

static void add_path(kj_paths *paths, path_list *list, const char *folder, const char *name,
                     size_t length)
{
  char *path = kj_format(&paths->arena, "%s/%.*s", folder, (int)length, name);
  KJ_PUSH(&paths->arena, list, path);
}

static bool is_unreadable(int error)
{
  return error == ENOENT || error == ENOTDIR || error == EACCES;
}

static bool add_matches(kj_paths *paths, path_list *list, const char *folder, const char *pattern)
{
  paths->folder = opendir(*folder ? folder : "/");
  if (!paths->folder) return is_unreadable(errno);
  struct dirent *item;
  while (errno = 0, (item = readdir(paths->folder)))
    if (fnmatch(pattern, item->d_name, FNM_PERIOD) == 0)
      add_path(paths, list, folder, item->d_name, strlen(item->d_name));
  bool is_whole = errno == 0;
  closedir(paths->folder);
  paths->folder = NULL;
  return is_whole;
}

/* Replaces each folder in the list by its entries that match the next component of the pattern. */
static bool descend(kj_paths *paths, path_list *list, const char *component, size_t length)
{
  path_list next = { 0 };
  const char *pattern = kj_copy_string(&paths->arena, component, length);
  bool is_whole = true;
  for (size_t i = 0; i < list->count && is_whole; i++) {
    if (!strchr(pattern, '*')) add_path(paths, &next, list->items[i], pattern, length);
    else is_whole = add_matches(paths, &next, list->items[i], pattern);
  }
  *list = next;
  return is_whole;
}

static int compare(const void *a, const void *b)
{
  return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the folder at which the pattern starts: the root folder, or the folder of this code if it is
 * known. Returns the rest of the pattern. */
static const char *start(kj_paths *paths, path_list *list, const char *pattern)
{
  size_t length = strlen(KJ_OWN_FOLDER);
  if (strncmp(pattern, KJ_OWN_FOLDER, length) != 0) {
    KJ_PUSH(&paths->arena, list, kj_copy_string(&paths->arena, "", 0));
    return pattern;
  }
  kj_buffer folder = { 0 };
  kj_append_own_folder(&folder);
  if (folder.text || folder.failed) {
    size_t end = folder.length - 1; /* without the slash */
    char *path = kj_keep_text(&paths->arena, &folder);
    path[end] = 0;
    KJ_PUSH(&paths->arena, list, path);
  }
  return pattern + length;
}

static bool find(kj_paths *paths, const char *pattern)
{
  path_list list = { 0 };
  for (const char *at = start(paths, &list, pattern); *at == '/';) {
    size_t length = strcspn(++at, "/");
    if (!descend(paths, &list, at, length)) return false;
    at += length;
  }
  for (size_t i = 0; i < list.count; i++) {
    struct stat about;
    if (stat(list.items[i], &about) == 0) list.items[paths->count++] = list.items[i];
  }
  if (paths->count) qsort(list.items, paths->count, sizeof *list.items, compare);
  paths->items = list.items;
  return true;
}

bool kj_find_paths(kj_paths *paths, const char *pattern)
{
  jmp_buf on_failure;
  kj_init_arena(&paths->arena, &on_failure);
  if (setjmp(on_failure) == 0 && find(paths, pattern)) return true;
  if (paths->folder) closedir(paths->folder);
  paths->folder = NULL;
  paths->count = 0;
  return false;
}

void kj_free_paths(kj_paths *paths) { kj_free_arena(&paths->arena); }

/* ---- the folder of this code ---- */

static void append_folder_of(kj_buffer *path, const char *file)
{
  const char *slash = strrchr(file, '/');
  KJ_ASSERT(*file == '/' && slash);
  kj_append(path, file, (size_t)(slash + 1 - file));
}

/* Searches /proc/self/maps, which contains absolute paths, for the mapping of the address. */
static void append_mapped_folder(kj_buffer *path, uintptr_t address)
{
  char *line = NULL;
  size_t size_bytes = 0;
  bool is_found = false;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps && !is_found && getline(&line, &size_bytes, maps) > 0) {
    uintptr_t begin, end;
    const char *file = strchr(line, '/');
    is_found = sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) == 2 && begin <= address &&
               address < end;
    if (is_found && file) append_folder_of(path, file);
  }
  free(line);
  if (maps) fclose(maps);
}

/* The loader's name of a library can be relative to an earlier current directory, and its name of
 * the program is empty. In both cases this function takes the path from the memory mappings. */
void kj_append_own_folder(kj_buffer *path)
{
  static const char anchor = 0;
  Dl_info info;
  struct link_map *map = NULL;
  bool is_known = dladdr1(&anchor, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map;
  if (is_known && map->l_name && *map->l_name == '/') append_folder_of(path, map->l_name);
  else append_mapped_folder(path, (uintptr_t)&anchor);
}
