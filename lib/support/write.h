/* Writing to files that a library opens in its host's process. */
#ifndef KJ_SUPPORT_WRITE_H
#define KJ_SUPPORT_WRITE_H

#include <stdbool.h>
#include <stddef.h>

/* All of it, or false with errno. A file larger than the process may write gives EFBIG and no
 * signal. */
bool kj_write_quietly(int file, const void *bytes, size_t size_bytes);

#endif
