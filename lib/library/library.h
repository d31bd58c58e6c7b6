/* The library modules: the .kir files of this folder, which are part of libkjit. A kernel module
 * imports a library module by its file name without the extension. */
#ifndef KJ_LIBRARY_LIBRARY_H
#define KJ_LIBRARY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kj_library_source {
  const char *name, *text;
  size_t size_bytes;
  bool has_tensor_copies,
    /* a func of the module contains a tensor copy, or a grid_range */
    has_grid_ranges;
  const char *const *imports; /* names of sources, then NULL */
} kj_library_source;

/* A func, const or struct: its module, first line, and position in the module's text. The text of a
 * declaration extends to the next declaration, whose preceding comment it includes. */
typedef struct kj_library_declaration {
  const char *name;
  uint32_t name_length, source, line, start, end;
} kj_library_declaration;

extern const kj_library_source kj_library[]; /* the last entry has a NULL name */
/* The declarations of all modules, sorted by name. Several modules can declare the same name. */
extern const kj_library_declaration kj_library_declarations[];
extern const size_t kj_library_count, kj_library_declaration_count;

#endif
