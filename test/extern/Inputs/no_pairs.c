/* For LD_PRELOAD: fails the allocation of the list of two functions that the loader of the compiler
 * library defines. */
#include <errno.h>
#include <stddef.h>

void *__libc_calloc(size_t count, size_t size);
void *calloc(size_t count, size_t size)
{
  enum {
    PAIRS = 3 /* one more than functions */,
    PAIR_BYTES = 24 /* of an LLVMOrcCSymbolMapPair */
  };
  if (count != PAIRS || size != PAIR_BYTES) return __libc_calloc(count, size);
  errno = ENOMEM;
  return NULL;
}
