/* A temporary directory for a test, and child processes. */
#ifndef CACHE_FOLDER_H
#define CACHE_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static inline void remove_tree(const char *path)
{
  DIR *directory = opendir(path);
  for (struct dirent *item; directory && (item = readdir(directory));) {
    char *inner;
    if (!strcmp(item->d_name, ".") || !strcmp(item->d_name, "..") ||
        asprintf(&inner, "%s/%s", path, item->d_name) < 0)
      continue;
    if (unlink(inner)) remove_tree(inner);
    free(inner);
  }
  if (directory) closedir(directory);
  (void)rmdir(path);
}

static inline int make_folder(void **state)
{
  (void)state;
  snprintf(folder, sizeof folder, P_tmpdir "/kjit-cache-test-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
  (void)state;
  remove_tree(folder);
  return 0;
}

static inline const char *path_in(const char *name)
{
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static inline size_t count_files(const char *prefix, const char *suffix)
{
  size_t count = 0;
  DIR *directory = opendir(folder);
  for (struct dirent *item; directory && (item = readdir(directory));) {
    size_t length = strlen(item->d_name), ending = strlen(suffix);
    count += !strncmp(item->d_name, prefix, strlen(prefix)) && length >= ending &&
             !strcmp(item->d_name + length - ending, suffix);
  }
  if (directory) closedir(directory);
  return count;
}
static inline size_t count_entries(void) { return count_files("", ".kjit"); }
static inline size_t count_unfinished(void) { return count_files("unfinished-", ""); }

/* Runs body in a child process; a nonzero result is a failure. */
static inline pid_t start_process(int (*body)(int number), int number)
{
  fflush(NULL);
  pid_t process = fork();
  if (process == 0) _exit(body(number));
  return process;
}

/* Returns the child's exit status, or -1 if the child was killed. */
static inline int end_process(pid_t process)
{
  int status = 0;
  while (waitpid(process, &status, 0) != process) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
