#include <driver/file.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 1 << 14, MAX_BYTES = 1 << 28 };

static bool read_all(FILE *file, char **text, size_t *size_bytes)
{
  size_t capacity = FIRST_BYTES, size = 0;
  char *buffer = malloc(capacity);
  while (buffer) {
    size += fread(buffer + size, 1, capacity - 1 - size, file);
    if (size < capacity - 1 || capacity >= MAX_BYTES) break;
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

bool tool_read_file(tool_error *error, const char *path, char **text, size_t *size_bytes)
{
  bool is_standard = !strcmp(path, "-");
  FILE *file = is_standard ? stdin : fopen(path, "rb");
  if (!file) return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path, strerror(errno));
  errno = 0;
  bool ok = read_all(file, text, size_bytes), failed = ferror(file) || !ok;
  bool too_large = ok && !failed && !feof(file);
  if (failed) tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path, strerror(errno ? errno : ENOMEM));
  if (too_large) tool_fail(error, TOOL_EXIT_FILE, "%s: larger than the %d bytes that a source may have", path, MAX_BYTES);
  if (!is_standard) fclose(file);
  if (!failed && !too_large) return true;
  if (ok) free(*text);
  return false;
}

bool tool_write_file(tool_error *error, const char *path, const void *data, size_t size_bytes)
{
  bool is_standard = !path || !strcmp(path, "-");
  FILE *file = is_standard ? stdout : fopen(path, "wb");
  if (!file) return tool_fail(error, TOOL_EXIT_FILE, "%s: %s", path, strerror(errno));
  bool ok = fwrite(data, 1, size_bytes, file) == size_bytes;
  ok &= (is_standard ? fflush(file) : fclose(file)) == 0;
  return ok || tool_fail(error, TOOL_EXIT_FILE, "%s: writing failed: %s", is_standard ? "standard output" : path, strerror(errno));
}
