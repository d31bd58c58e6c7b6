#include <driver/sparse_file.h>

#include <driver/npz.h>
#include <stdlib.h>
#include <string.h>

bool tool_is_sparse_file(const char *path, const char *argument)
{
  const char *name;
  return tool_split_npz(path, &name) && !name && tool_has_npz_array(path, "format") &&
         tool_has_npz_array(path, "shape") && !tool_has_npz_array(path, argument);
}

static bool read_shape(tool_error *error, const char *path, int64_t *shape)
{
  tool_array array;
  if (!tool_read_npz(error, path, "shape", NULL, &array, NULL)) return false;
  bool ok = array.rank == 1 && array.shape[0] == 2;
  for (int64_t i = 0; ok && i < 2; i++) {
    tool_number number = tool_load(array.element, tool_element_at(&array, &i));
    ok = number.kind == TOOL_NUMBER_SIGNED;
    if (ok) shape[i] = number.i;
  }
  tool_destroy_memory(array.memory);
  return ok || tool_fail(error, TOOL_EXIT_FILE, "%s: shape: expected two integers", path);
}

/* Reads the arrays in the order of the fields in kjit_csr and kjit_coo. */
static bool read_arrays(tool_arguments *arguments, tool_error *error, const char *path,
                        const char *name, const char *const *names)
{
  for (size_t i = 0; i < 3; i++) {
    tool_array array;
    if (!tool_read_npz(error, path, names[i], NULL, &array, NULL)) return false;
    char *full = tool_format("%s.%s", name, names[i]);
    tool_keep_array(arguments, full, &array);
    free(full);
  }
  return true;
}

bool tool_read_sparse(tool_arguments *arguments, tool_error *error, const char *path,
                      const char *name, tool_sparse *sparse)
{
  static const char *const of_csr[] = { "data", "indices", "indptr" }, *const of_coo[] = { "data",
                                                                                           "row",
                                                                                           "col" };
  char *format = tool_read_npz_text(error, path, "format");
  if (!format) return false;
  bool is_csr = !strcmp(format, "csr");
  sparse->is_coo = !strcmp(format, "coo");
  bool ok = is_csr || sparse->is_coo ||
            tool_fail(error, TOOL_EXIT_FILE,
                      "%s: the matrix format '%s' is not supported; csr and coo are", path, format);
  free(format);
  return ok && read_shape(error, path, sparse->shape) &&
         read_arrays(arguments, error, path, name, is_csr ? of_csr : of_coo);
}
