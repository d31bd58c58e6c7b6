/* Sparse matrices in files of scipy.sparse.save_npz: archives with `format`, `shape`, `data` and
 * the indices. */
#ifndef TOOL_SPARSE_FILE_H
#define TOOL_SPARSE_FILE_H

#include <driver/argument.h>

/* Whether it is an archive, named without one of its arrays, that has a format and a shape, and no
 * array that is called as the argument. */
bool tool_is_sparse_file(const char *path, const char *argument);
/* Adds the three arrays to the arguments; name: of the matrix. Formats are csr and coo. */
bool tool_read_sparse(tool_arguments *arguments, tool_error *error, const char *path,
                      const char *name, tool_sparse *sparse);

#endif
