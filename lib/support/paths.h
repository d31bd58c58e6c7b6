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

/* At the beginning of a pattern, this stands for the folder of kj_append_own_folder. */
#define KJ_OWN_FOLDER "$ORIGIN"

/* Finds the paths that match an absolute pattern, whose components can contain `*`, like glob(3).
 * Names that begin with a dot do not match, and unreadable folders count as empty. Returns false
 * when out of memory or file descriptors; items is then empty. Call kj_free_paths in both cases.
 * (glob itself is not used: in glibc 2.39 it frees memory twice if an allocation fails.) */
bool kj_find_paths(kj_paths *paths, const char *pattern);
void kj_free_paths(kj_paths *paths);

/* Appends the absolute path of the folder that contains this code's file: libkjit, or a program
 * that is linked statically with it. The path ends with a slash. Appends nothing if the path is
 * unknown. The path never depends on the current directory, which can contain files of another
 * user. */
void kj_append_own_folder(kj_buffer *path);

#endif
