/* Files of numpy.save: format versions 1.0 to 3.0, little-endian scalars of the kernel IR, row- or
 * column-major. */
#ifndef TOOL_NPY_H
#define TOOL_NPY_H

#include <driver/record.h>
#include <stdio.h>

/* What a .npy file's bytes come from: a file, or an entry of a .npz file. */
typedef struct tool_bytes {
  const char *path; /* for errors */
  uint64_t size_bytes;
  void *state;
  /* The next `size` bytes, all of them, or an error. */
  bool (*read)(const struct tool_bytes *bytes, tool_error *error, void *to, uint64_t size);
  bool may_continue; /* other bytes may follow the array, as on a pipe with several arrays */
} tool_bytes;

/* Opens a regular file for reading: a pipe is refused, not waited for. */
bool tool_open_regular(tool_error *error, const char *path, int *file, uint64_t *size_bytes);

/* Nothing is allocated before the header has been compared with the file's real size. An array of
 * structs comes as one of bytes with as many lanes as an element has bytes, and its numbers are
 * added to *leaves, which stays empty for all others; leaves NULL: they are refused. */
bool tool_read_npy(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);
bool tool_read_npy_bytes(tool_error *error, const tool_bytes *bytes, tool_array *array,
                         tool_leaves *leaves);
/* Elements in row-major order; bf16, which numpy does not have, is written as f32. */
bool tool_write_npy_stream(FILE *file, const tool_array *array); /* false: see the stream */
bool tool_write_npy(tool_error *error, const char *path, const tool_array *array);

#endif
