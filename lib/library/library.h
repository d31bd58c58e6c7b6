/* Modules in the kernel IR that kjit includes: the .kir files of this folder. A module imports them
 * by their file names without the extension. */
#ifndef KJ_LIBRARY_LIBRARY_H
#define KJ_LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kj_library_source {
  const char *name, *text;
  size_t size_bytes;
  bool has_tensor_copies,
    has_grid_ranges;          /* whether a func contains a tensor copy, or a grid_range */
  const char *const *imports; /* names of sources, then NULL */
} kj_library_source;

/* A func, const or struct: its source, first line, and place in the text. A comment before the next
 * declaration belongs to it. */
typedef struct kj_library_declaration {
  const char *name;
  uint32_t name_length, source, line, start, end;
} kj_library_declaration;

extern const kj_library_source kj_library[]; /* the last entry has the name NULL */
/* The declarations of all sources in the order of their names. Several sources can declare a
 * name. */
extern const kj_library_declaration kj_library_declarations[];
extern const size_t kj_library_count, kj_library_declaration_count;

#endif
