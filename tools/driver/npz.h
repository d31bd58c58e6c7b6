/* Files of numpy.savez and numpy.savez_compressed: archives in the ZIP format, in which an array x
 * is the entry x.npy. */
#ifndef TOOL_NPZ_H
#define TOOL_NPZ_H

#include <driver/record.h>
#include <stdio.h>

/* An array that gets a name in a file with others. */
typedef struct tool_named_array {
  const char *name;
  const tool_array *array;
} tool_named_array;

/* "data.npz:x" in two: the end of the archive's name, and the array's behind the colon or NULL.
 * NULL: the text names no such archive. */
const char *tool_split_npz(const char *text, const char **name);

/* NULL, or what a .npz file holds, where this kjit can write none. */
const char *tool_misfit_npz(const tool_array *array);

/* The array `name`, which has to be there; without one the array `usual`, or else the only one that
 * there is. leaves as of tool_read_npy. Memory is bounded by what the file's bytes can unpack to,
 * and what is unpacked has the checksum that the archive says, or it is an error. */
bool tool_read_npz(tool_error *error, const char *path, const char *name, const char *usual,
                   tool_array *array, tool_leaves *leaves);
/* Whether the file can be read and has such an array; nothing is said where not. */
bool tool_has_npz_array(const char *path, const char *name);
/* The text that an array without dimensions has, of bytes, as numpy.array(b"csr"); the caller
 * frees. NULL: an error. */
char *tool_read_npz_text(tool_error *error, const char *path, const char *name);
/* Uncompressed, as numpy.savez does. The stream has to be that of a regular file. false: see the
 * stream, or too many bytes for the format. */
bool tool_write_npz(FILE *file, const tool_named_array *arrays, size_t count);

#endif
