/* no_driver.c: a CUDA driver that does nothing. With it, the time of a first call or of a call from
 * the disk cache is kjit's part alone, also on a machine without a GPU:
 *
 *   gcc -O1 -shared -fPIC -Iruntime -Ilib -Iinclude -Itest/unit test/bench/no_driver.c \
 *     -o DIR/libcuda.so.1 -lpthread
 *   LD_LIBRARY_PATH=DIR COMMAND      # algorithms_first cuda, products_first.py
 *
 * It is the driver of the unit tests, one GPU of sm_90 with memory on the host. It writes the code
 * that it loads into the folder LOADED_CODE of the environment: 0-best.ptx, 1-plain.ptx and so on.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_cuda.h"

#define X(name, symbol, parameters) \
  __attribute__((visibility("default"), \
                 alias("fake_" #name))) int kj_exported_##name parameters __asm__(symbol);
#undef X_OPTIONAL
#include "cuda/driver.def"

static void keep_code(const char *image, int level)
{
  static _Atomic int number;
  const char *folder = getenv("LOADED_CODE");
  char path[4096];
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%d-%s.ptx", folder, number++, level < 0 ? "best" : "plain");
  FILE *file = fopen(path, "w");
  if (!file || fputs(image, file) < 0 || fclose(file)) abort();
}

__attribute__((constructor)) static void start(void)
{
  cuda.on_load = keep_code;
  (void)find_fake;
  cuda.devices = 1;
  cuda.limit = (size_t)1 << 36;
}
