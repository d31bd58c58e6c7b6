/* Reads and writes files of numpy.save: format versions 1.0 to 3.0, with little-endian elements
 * whose types the kernel IR has, in row- or column-major order. */
#ifndef TOOL_NPY_H
#define TOOL_NPY_H

#include <driver/record.h>
#include <stdio.h>

/* Source of the bytes of a .npy file: a file, or an entry of a .npz file. */
typedef struct tool_bytes {
  const char *path; /* name of the file for error messages */
  uint64_t size_bytes;
  void *state;
  /* Reads the next `size` bytes completely, or fails. */
  bool (*read)(const struct tool_bytes *bytes, tool_error *error, void *to, uint64_t size);
  bool may_continue; /* other bytes may follow the array, as on a pipe with several arrays */
} tool_bytes;

/* Opens a regular file for reading. Rejects pipes instead of waiting for data. */
bool tool_open_regular(tool_error *error, const char *path, int *file, uint64_t *size_bytes);

/* Reads a file. Allocates memory only after comparing the header with the file size. An array of
 * structs becomes a byte array with one lane for each byte of an element, and its numbers are
 * appended to *leaves. *leaves stays empty for other arrays. leaves NULL means that arrays of
 * structs are rejected. */
bool tool_read_npy(tool_error *error, const char *path, tool_array *array, tool_leaves *leaves);
bool tool_read_npy_bytes(tool_error *error, const tool_bytes *bytes, tool_array *array,
                         tool_leaves *leaves);
/* Writes elements in row-major order. bf16, which NumPy does not have, is written as f32. */
/* returns false if the stream has an error */
bool tool_write_npy_stream(FILE *file, const tool_array *array);
bool tool_write_npy(tool_error *error, const char *path, const tool_array *array);

#endif
