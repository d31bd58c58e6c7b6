/* Reads and writes whole files, such as sources and compiled code. */
#ifndef TOOL_FILE_H
#define TOOL_FILE_H

#include <driver/error.h>

/* Reads a file; "-" is standard input. The text ends with an additional 0 byte, which size_bytes
 * does not count. */
bool tool_read_file(tool_error *error, const char *path, char **text, size_t *size_bytes);
/* Like tool_read_file, for data of any size up to half of the machine's memory. */
bool tool_read_whole_file(tool_error *error, const char *path, char **text, size_t *size_bytes);
/* Writes a file. NULL or "-" is standard output, whose errors tool_watch_output reports. */
bool tool_write_file(tool_error *error, const char *path, const void *data, size_t size_bytes);

/* Checks a directory for the disk cache. It may be missing, because it is created when an entry is
 * stored. The library would silently continue without a cache. The tools instead report a path that
 * is not a directory or cannot be used. */
bool tool_check_cache_folder(tool_error *error, const char *path);
/* Parses a size for the cache's options, such as "100000", "500M" or "2G", with powers of 1024.
 * Returns false if the text is not a size. */
bool tool_parse_size(const char *text, uint64_t *size_bytes);

#endif
