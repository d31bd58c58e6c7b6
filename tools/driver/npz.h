/* Reads and writes files of numpy.savez and numpy.savez_compressed. They are ZIP archives in which
 * array x is the entry x.npy. */
#ifndef TOOL_NPZ_H
#define TOOL_NPZ_H

#include <driver/record.h>
#include <stdio.h>

/* An array, and its name in the file. */
typedef struct tool_named_array {
  const char *name;
  const tool_array *array;
} tool_named_array;

/* Splits "data.npz:x": returns the end of the archive's name and stores the array's name after the
 * colon, or NULL. Returns NULL if the text names no .npz file. */
const char *tool_split_npz(const char *text, const char **name);

/* Returns NULL if this build of kjit can write the array to a .npz file, otherwise a description of
 * the arrays that such a file can contain. */
const char *tool_misfit_npz(const tool_array *array);

/* Reads the array `name`, which must exist. If name is NULL, reads the array `usual`, or else the
 * only array. For leaves see tool_read_npy. The function allocates no more memory than the file's
 * bytes can fill when they are unpacked. The checksum of the archive is verified. */
bool tool_read_npz(tool_error *error, const char *path, const char *name, const char *usual,
                   tool_array *array, tool_leaves *leaves);
/* Returns whether the file can be read and contains such an array, without reporting errors. */
bool tool_has_npz_array(const char *path, const char *name);
/* Returns the text of a zero-dimensional byte array such as numpy.array(b"csr"), which the caller
 * frees. Returns NULL after an error. */
char *tool_read_npz_text(tool_error *error, const char *path, const char *name);
/* Writes arrays uncompressed, as numpy.savez does. The stream must belong to a regular file.
 * Returns false if the stream has an error, or if there are too many bytes for the format. */
bool tool_write_npz(FILE *file, const tool_named_array *arrays, size_t count);

#endif
