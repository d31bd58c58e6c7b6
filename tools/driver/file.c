#include <driver/file.h>

#include <driver/output_file.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BYTES = 1 << 14, MAX_BYTES = 1 << 28 };

static bool read_all(FILE *file, size_t limit, char **text, size_t *size_bytes)
{
  size_t capacity = FIRST_BYTES, size = 0;
  char *buffer = malloc(capacity);
  while (buffer) {
    size += fread(buffer + size, 1, capacity - 1 - size, file);
    if (size < capacity - 1 || capacity >= limit) break;
    char *larger = realloc(buffer, capacity *= 2);
    if (!larger) free(buffer);
    buffer = larger;
  }
  if (!buffer) return false;
  buffer[size] = 0;
  *text = buffer;
  *size_bytes = size;
  return true;
}

static bool fail_open(tool_error *error, const char *path)
{
  return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", *path ? path : "the file name is empty",
                   strerror(errno));
}

static bool read_up_to(tool_error *error, const char *path, size_t limit, char **text,
                       size_t *size_bytes)
{
  bool is_standard = !strcmp(path, "-");
  FILE *file = is_standard ? stdin : fopen(path, "rb");
  if (!file) return fail_open(error, path);
  errno = 0;
  bool ok = read_all(file, limit, text, size_bytes), failed = ferror(file) || !ok;
  bool too_large = ok && !failed && !feof(file);
  if (failed) tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path, strerror(errno ? errno : ENOMEM));
  if (too_large)
    tool_fail(error, TOOL_EXIT_FILE,
              "%s: the file has more than %zu bytes, the maximum for this use", path, limit);
  if (!is_standard) fclose(file);
  if (!failed && !too_large) return true;
  if (ok) free(*text);
  return false;
}

bool tool_read_file(tool_error *error, const char *path, char **text, size_t *size_bytes)
{
  return read_up_to(error, path, MAX_BYTES, text, size_bytes);
}

bool tool_read_whole_file(tool_error *error, const char *path, char **text, size_t *size_bytes)
{
  size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  return read_up_to(error, path, memory / 2, text, size_bytes);
}

bool tool_write_file(tool_error *error, const char *path, const void *data, size_t size_bytes)
{
  tool_output_file output;
  if (!tool_create_output(error, path, &output)) return false;
  fwrite(data, 1, size_bytes, output.stream);
  return tool_finish_output(error, &output, true);
}

bool tool_check_cache_folder(tool_error *error, const char *path)
{
  struct stat status;
  if (!*path)
    return tool_fail(error, TOOL_EXIT_USAGE, "--cache: expected a directory, not an empty name");
  if (stat(path, &status) != 0)
    return errno == ENOENT ||
           tool_fail(error, TOOL_EXIT_FILE, "--cache: %s: %s", path, strerror(errno));
  return S_ISDIR(status.st_mode) ||
         tool_fail(error, TOOL_EXIT_FILE, "--cache: %s: expected a directory", path);
}

bool tool_parse_size(const char *text, uint64_t *size_bytes)
{
  static const char units[] = " KMGT";
  char *end;
  double value = strtod(text, &end);
  const char *unit = *end ? strchr(units + 1, *end) : units;
  if (end == text || !(value >= 0) || !unit || (*end && end[1])) return false;
  for (; unit > units; unit--) value *= 1024;
  if (value > 1e18) return false;
  *size_bytes = (uint64_t)value;
  return true;
}
