/* For LD_PRELOAD: fails the allocation of the list of two functions that the loader of the compiler
 * library defines. Other libraries, the dynamic linker among them, may allocate lists of the same
 * size. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

static int is_called_by_compiler(const void *caller)
{
  Dl_info info;
  return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "libkjit-compiler");
}

void *__libc_calloc(size_t count, size_t size);
void *calloc(size_t count, size_t size)
{
  enum {
    PAIRS = 3 /* one more than functions */,
    PAIR_BYTES = 24 /* of an LLVMOrcCSymbolMapPair */
  };
  if (count != PAIRS || size != PAIR_BYTES || !is_called_by_compiler(__builtin_return_address(0)))
    return __libc_calloc(count, size);
  errno = ENOMEM;
  return NULL;
}
