/* Modules in the kernel IR that kjit includes: the .kir files of this folder. A module imports them
 * by their file names without the extension. */
#ifndef KJ_LIBRARY_LIBRARY_H
#define KJ_LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kj_library_source {
  const char *name, *text;
  size_t size_bytes;
  bool has_tensor_copies, has_grid_ranges; /* whether some func has one */
} kj_library_source;

extern const kj_library_source kj_library[]; /* the last entry has the name NULL */

#endif
