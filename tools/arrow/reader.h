/* The interface of the module kjit-arrow.so, which reads Parquet and Arrow files with Arrow's C++
 * library. kjit-run loads the module when it reads such a file, so that the programs do not depend
 * on Arrow. */
#ifndef TOOL_ARROW_READER_H
#define TOOL_ARROW_READER_H

#include "c_data.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the interface, which changes whenever the struct changes. */
enum { KJIT_ARROW_INTERFACE = 1 };

/* The functions never throw. A message is allocated by malloc, and the caller frees it. */
typedef struct kjit_arrow_reader {
  int interface_version;
  /* Opens a file, or its contents if bytes is not NULL; the bytes must stay until the file is
   * closed. Returns NULL and a message if the file is damaged. */
  void *(*open)(const char *path, const void *bytes, uint64_t size_bytes, char **message);
  uint64_t (*column_count)(void *file);
  /* The name is valid until the file is closed. */
  const char *(*column_name)(void *file, uint64_t column);
  /* Reads all rows of a column as a stream of chunks. Returns 0, or 1 and a message. */
  int (*read)(void *file, uint64_t column, struct ArrowArrayStream *stream, char **message);
  void (*close)(void *file);
} kjit_arrow_reader;

extern const kjit_arrow_reader kjit_arrow;

#ifdef __cplusplus
}
#endif

#endif
