/* Path of the compiler in the build folder, because dlopen ignores the run path of a program under
 * a sanitizer. NULL if the path does not exist, as in an installation, which finds its own
 * compiler. */
#ifndef KJ_BUILT_COMPILER_H
#define KJ_BUILT_COMPILER_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline const char *find_built_compiler(void)
{
  static char path[4200];
  char self[4096] = { 0 }, *slash;
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0 || !(slash = strrchr(self, '/')))
    return NULL;
  *slash = 0;
  snprintf(path, sizeof path, "%s/../../lib/libkjit-compiler.so", self);
  return access(path, R_OK) == 0 ? path : NULL;
}

#endif
