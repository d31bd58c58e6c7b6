/* Modules in the kernel IR that kjit brings along: the .kir files of this folder, imported by their
 * names without ending. */
#ifndef KJ_LIBRARY_LIBRARY_H
#define KJ_LIBRARY_LIBRARY_H

#include <stddef.h>

typedef struct kj_library_source {
  const char *name, *text;
  size_t size_bytes;
} kj_library_source;

extern const kj_library_source kj_library[]; /* ends with a name of NULL */

#endif
