/* Finds the files that CUDA C includes. The key of the disk cache contains a digest of these files,
 * so that stored code is not used after a file has changed.
 *
 * kjit does not preprocess the text. It follows every #include in the source, also in comments and
 * in untaken branches, to every folder in which NVRTC may search. The digest therefore also depends
 * on files that NVRTC does not read, but it always changes if a file that NVRTC reads has changed.
 * Headers of the toolkit are identified by their path, size and time, and are not followed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/disk.h"
#include "code/include_files.h"
#include "cuda/linker.h"

enum { MOST_FILES = 2000, MOST_FILE_BYTES = 1 << 24 };

/* Paths as one string, each followed by a 0 byte. */
typedef struct path_list {
  kj_buffer text;
  size_t count;
} path_list;

typedef struct scan {
  path_list folders, toolkit; /* folders named by options, and folders with NVRTC's own headers */
  path_list files;            /* the files that were found, which are read in this order */
  kj_digest sum;
  bool is_unknown; /* true if the source may include a file that the scan cannot find */
} scan;

static void add_path(path_list *list, const char *path, size_t length)
{
  kj_append(&list->text, path, length);
  kj_append(&list->text, "", 1);
  list->count++;
}

static bool has_path(const path_list *list, const char *path)
{
  const char *at = list->text.text;
  for (size_t i = 0; i < list->count; i++, at += strlen(at) + 1)
    if (strcmp(at, path) == 0) return true;
  return false;
}

static void add_to_sum(scan *s, const void *data, size_t size_bytes)
{
  kj_digest parts[2] = { s->sum, kj_digest_bytes(data, size_bytes) };
  s->sum = kj_digest_bytes(parts, sizeof parts);
}

/* ---- options ---- */

/* Returns whether an option names files or folders in a form that this scan does not read. */
static bool names_files(const char *option, size_t length)
{
  static const char *const forms[] = {
    "--pre-include", "-include", "--include-path", "-isystem", "--options-file",
    "-optf",         "@",        "--pch",          "-pch",     "--use-pch",
    "--create-pch",  "-I"
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    size_t form = strlen(forms[i]);
    if (length >= form && strncmp(option, forms[i], form) == 0) return true;
  }
  return false;
}

static void read_options(scan *s, const char *options)
{
  enum { PREFIX = 2 }; /* length of "-I" */
  while (options && *options) {
    size_t length = strcspn(options, "\n");
    if (length > PREFIX && strncmp(options, "-I", PREFIX) == 0)
      add_path(&s->folders, options + PREFIX, length - PREFIX);
    else s->is_unknown |= names_files(options, length);
    options += length + (options[length] == '\n');
  }
}

/* ---- files ---- */

/* Adds a path that exists to the list of files, or its description to the digest if it is a header
 * of the toolkit. Returns whether the path exists. */
static bool try_path(scan *s, const char *folder, size_t length, const char *name,
                     size_t name_length, bool is_toolkit)
{
  struct stat about;
  kj_buffer path = { 0 };
  if (length) kj_append_format(&path, "%.*s/", (int)length, folder);
  kj_append(&path, name, name_length);
  bool is_there = !path.failed && stat(path.text, &about) == 0 && !S_ISDIR(about.st_mode);
  s->is_unknown |= path.failed;
  if (is_there && is_toolkit) {
    int64_t known[] = { about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec };
    add_to_sum(s, path.text, path.length);
    add_to_sum(s, known, sizeof known);
  } else if (is_there && !has_path(&s->files, path.text))
    add_path(&s->files, path.text, path.length);
  kj_free_buffer(&path);
  return is_there;
}

static bool try_folders(scan *s, const path_list *folders, const char *name, size_t length,
                        bool is_toolkit)
{
  bool is_there = false;
  const char *folder = folders->text.text;
  for (size_t i = 0; i < folders->count; i++, folder += strlen(folder) + 1)
    is_there |= try_path(s, folder, strlen(folder), name, length, is_toolkit);
  return is_there;
}

/* Finds an included file in all folders. NVRTC would choose one of the files that this search
 * finds. The digest also contains the name of a file that does not exist, because this file may be
 * built into NVRTC, or belong to a branch that is not taken. */
static void find_file(scan *s, const char *includer, const char *name, size_t length)
{
  const char *slash = strrchr(includer, '/');
  bool is_there =
    try_path(s, includer, slash ? (size_t)(slash - includer) : 0, name, length, false);
  if (*name != '/') {
    is_there |= try_folders(s, &s->folders, name, length, false);
    is_there |= try_folders(s, &s->toolkit, name, length, true);
  }
  if (!is_there) add_to_sum(s, name, length);
}

/* ---- texts ---- */

static const char *skip_blanks(const char *at)
{
  while (*at == ' ' || *at == '\t') at++;
  return at;
}

/* Reads the directive after `#`. The scan cannot read comments and line ends inside of a directive,
 * macros in place of a file name, and rare directives. */
static void read_directive(scan *s, const char *includer, const char *at)
{
  static const char *const rare[] = { "import", "embed", "include_next" };
  at = skip_blanks(at);
  s->is_unknown |= *at == '/' || *at == '\\';
  for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
    s->is_unknown |= strncmp(at, rare[i], strlen(rare[i])) == 0;
  size_t word = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
  /* the scan does not read a directive that continues on the next line */
  s->is_unknown |= at[word] == '\\';
  if (word != strlen("include") || strncmp(at, "include", word) != 0) return;
  at = skip_blanks(at + word);
  const char *end = *at == '"' ? "\"\n" : *at == '<' ? ">\n" : NULL;
  size_t length = end ? strcspn(at + 1, end) : 0;
  if (!length || at[1 + length] != *end || memchr(at + 1, '\\', length)) s->is_unknown = true;
  else find_file(s, includer, at + 1, length);
}

static void read_text(scan *s, const char *includer, const char *text)
{
  s->is_unknown |= strstr(text, "__has_include") || strstr(text, "__has_embed");
  for (const char *at = text; *at && !s->is_unknown; at++) {
    if (*at == '#') read_directive(s, includer, at + 1);
    else if (at[0] == '%' && at[1] == ':') read_directive(s, includer, at + 2);
    else if (strncmp(at, "?\?=", 3) == 0) read_directive(s, includer, at + 3);
  }
}

/* Returns the content of a file with a 0 byte after it, or NULL. */
static char *read_file(const char *path, size_t *size_bytes)
{
  struct stat about;
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return NULL;
  bool is_fine = fstat(file, &about) == 0 && S_ISREG(about.st_mode) && about.st_size >= 0 &&
                 about.st_size <= MOST_FILE_BYTES;
  char *text = is_fine ? malloc((size_t)about.st_size + 1) : NULL;
  size_t length = 0;
  while (text && length < (size_t)about.st_size) {
    ssize_t got = read(file, text + length, (size_t)about.st_size - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += (size_t)got;
  }
  close(file);
  bool is_whole = text && length == (size_t)about.st_size;
  if (is_whole) text[length] = 0;
  else free(text);
  *size_bytes = length;
  return is_whole ? text : NULL;
}

/* Reads the files in the order in which they were found. Reading a file may find more files. */
static void read_files(scan *s)
{
  size_t offset = 0;
  for (size_t i = 0; i < s->files.count && !s->is_unknown; i++) {
    size_t size_bytes = 0;
    /* a copy of the path, because the list may move */
    char *path = s->files.text.failed ? NULL : strdup(s->files.text.text + offset);
    char *text = path && i < MOST_FILES ? read_file(path, &size_bytes) : NULL;
    s->is_unknown |= !text || strlen(text) != size_bytes;
    if (!s->is_unknown) {
      add_to_sum(s, path, strlen(path));
      add_to_sum(s, text, size_bytes);
      read_text(s, path, text);
      offset += strlen(path) + 1;
    }
    free(text);
    free(path);
  }
}

bool kj_digest_includes(const kj_link_input *input, int driver_version, kj_digest *digest)
{
  scan s = { 0 };
  kj_buffer toolkit = { 0 };
  read_options(&s, input->options);
  s.is_unknown |= !kj_list_toolkit_headers(driver_version, &toolkit);
  for (const char *at = toolkit.text; !s.is_unknown && at && *at; at += strcspn(at, "\n") + 1)
    add_path(&s.toolkit, at, strcspn(at, "\n"));
  if (!s.is_unknown) {
    add_to_sum(&s, toolkit.text, toolkit.length);
    read_text(&s, input->name, input->data);
    read_files(&s);
  }
  bool is_known = !s.is_unknown && !toolkit.failed && !s.folders.text.failed &&
                  !s.toolkit.text.failed && !s.files.text.failed;
  *digest = s.sum;
  kj_free_buffer(&toolkit);
  kj_free_buffer(&s.folders.text);
  kj_free_buffer(&s.toolkit.text);
  kj_free_buffer(&s.files.text);
  return is_known;
}
