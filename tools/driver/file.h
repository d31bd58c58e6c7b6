/* Whole files: source texts in, compiled code out. */
#ifndef TOOL_FILE_H
#define TOOL_FILE_H

#include <driver/error.h>

/* "-" is standard input. The text ends in a 0 byte that size_bytes does not count. */
bool tool_read_file(tool_error *error, const char *path, char **text, size_t *size_bytes);
/* The same for data of any size up to half of the machine's memory. */
bool tool_read_whole_file(tool_error *error, const char *path, char **text, size_t *size_bytes);
/* NULL or "-" is standard output, whose errors tool_watch_output reports. */
bool tool_write_file(tool_error *error, const char *path, const void *data, size_t size_bytes);

/* A folder for the disk cache: one that is not there yet is made when something is kept. The
 * library goes without where there can be none; who names what is no folder, or one that cannot be
 * used, wants to know. */
bool tool_check_cache_folder(tool_error *error, const char *path);
/* A size as the cache's options take it, "100000", "500M", "2G": powers of 1024. false: it is none.
 */
bool tool_parse_size(const char *text, uint64_t *size_bytes);

#endif
