#include <driver/input.h>

#include <driver/file.h>
#include <sys/stat.h>

static tool_input standard; /* shared by all uses of standard input in the process */

tool_input *tool_standard_input(tool_error *error)
{
  if (!standard.text && !tool_read_input(error, "-", &standard)) return NULL;
  return &standard;
}

size_t tool_unread_input(void) { return standard.next ? standard.size_bytes - standard.next : 0; }

bool tool_is_stream(const char *path)
{
  struct stat status;
  return stat(path, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

bool tool_read_input(tool_error *error, const char *path, tool_input *input)
{
  *input = (tool_input){ 0 };
  return tool_read_whole_file(error, path, &input->text, &input->size_bytes);
}
