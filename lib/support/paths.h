/* Finds files by patterns. */
#ifndef KJ_SUPPORT_PATHS_H
#define KJ_SUPPORT_PATHS_H

#include <dirent.h>
#include <stdbool.h>

#include "support/containers.h"

/* The result of kj_find_paths. Initialize it with { 0 }. */
typedef struct kj_paths {
  char **items; /* sorted in the order of strcmp */
  size_t count;
  kj_arena arena; /* contains the paths */
  DIR *folder;    /* the folder that is being read, or NULL */
} kj_paths;

/* Stands for the folder of kj_append_own_folder at the beginning of a pattern. */
#define KJ_OWN_FOLDER "$ORIGIN"

/* Finds the paths that match an absolute pattern. The pattern's components can contain `*`, as for
 * glob(3). Names that begin with a dot do not match, and folders that cannot be read are treated as
 * empty. When out of memory or of file descriptors, returns false, and items is empty. Call
 * kj_free_paths in both cases. (glob itself is not used: in glibc 2.39 it frees memory twice if an
 * allocation fails.) */
bool kj_find_paths(kj_paths *paths, const char *pattern);
void kj_free_paths(kj_paths *paths);

/* Appends the absolute path of the folder that contains the file of this code: libkjit, or a
 * program that is statically linked with it. The path ends with a slash. If the path is not known,
 * appends nothing. The path never depends on the current directory, because that directory can
 * contain files of another user. */
void kj_append_own_folder(kj_buffer *path);

#endif
