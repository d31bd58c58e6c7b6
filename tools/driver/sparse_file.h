/* Reads sparse matrices from files of scipy.sparse.save_npz: .npz archives with `format`, `shape`,
 * `data` and indices. */
#ifndef TOOL_SPARSE_FILE_H
#define TOOL_SPARSE_FILE_H

#include <driver/argument.h>

/* Returns whether the path names a .npz archive, without an array in it, and the archive contains
 * `format` and `shape` but no array with the argument name. */
bool tool_is_sparse_file(const char *path, const char *argument);
/* Adds the three arrays to the arguments. name is the matrix name. Supports the formats csr and
 * coo. */
bool tool_read_sparse(tool_arguments *arguments, tool_error *error, const char *path,
                      const char *name, tool_sparse *sparse);

#endif
