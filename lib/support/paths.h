/* Paths of files by a pattern. */
#ifndef KJ_SUPPORT_PATHS_H
#define KJ_SUPPORT_PATHS_H

#include <dirent.h>
#include <stdbool.h>

#include "support/containers.h"

/* { 0 } before kj_find_paths. */
typedef struct kj_paths {
  char **items; /* sorted as strcmp does */
  size_t count;
  kj_arena arena; /* has them */
  DIR *folder;    /* that is being read */
} kj_paths;

/* A pattern may begin with this, which stands for the folder of kj_append_own_folder. */
#define KJ_OWN_FOLDER "$ORIGIN"

/* What there is under an absolute path of which components may have `*`, as glob(3) finds it: names
 * that begin with a dot are not meant, and folders that may not be read have nothing. false: out of
 * memory or of files to open, and items is empty. (glob itself frees twice where an allocation
 * fails, glibc 2.39.) Free with kj_free_paths either way. */
bool kj_find_paths(kj_paths *paths, const char *pattern);
void kj_free_paths(kj_paths *paths);

/* Appends the absolute path, with a slash at its end, of the folder of the file that this code is
 * in: libkjit, or a program that has it inside. Appends nothing if the system does not say. The
 * folder never depends on the current directory, which may have files of somebody else. */
void kj_append_own_folder(kj_buffer *path);

#endif
