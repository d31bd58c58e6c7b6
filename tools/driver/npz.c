#define _GNU_SOURCE
#include <driver/npz.h>

#include <driver/npy.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef TOOL_HAS_NPZ
#include <minizip/unzip.h>
#include <minizip/zip.h>
#endif

static const char ending[] = ".npz";

const char *tool_split_npz(const char *text, const char **name)
{
  size_t length = strlen(text), own = sizeof ending - 1;
  const char *colon = strstr(text, ".npz:");
  *name = NULL;
  if (colon && colon > text) {
    *name = colon + own + 1;
    return colon + own;
  }
  return length > own && !strcmp(text + length - own, ending) ? text + length : NULL;
}

#ifdef TOOL_HAS_NPZ

const char *tool_misfit_npz(const tool_array *array)
{
  (void)array;
  return NULL;
}

/* ---- reading ---- */

/* MOST_RATIO: maximum ratio of unpacked bytes to bytes of a deflated stream.
 * MOST_LISTED_BYTES: maximum length of the list of names in an error message. */
enum { MOST_NAME_BYTES = 1 << 16, MOST_RATIO = 1032, MOST_LISTED_BYTES = 200 };

typedef struct archive {
  tool_error *error;
  const char *path;
  uint64_t size_bytes; /* size of the file */
  unzFile zip;
  char *entry; /* name of the current entry, without .npy */
  unz_file_info64 info;
} archive;

static bool broken(archive *a, const char *what)
{
  return tool_fail(a->error, TOOL_EXIT_FILE, "%s: broken .npz file: %s", a->path, what);
}

static bool open_archive(archive *a)
{
  int file;
  if (!tool_open_regular(a->error, a->path, &file, &a->size_bytes)) return false;
  close(file);
  a->zip = unzOpen64(a->path);
  return a->zip ||
         tool_fail(a->error, TOOL_EXIT_FILE,
                   "%s: not a .npz file: it does not end with the directory of an archive",
                   a->path);
}

/* Stores whether the current entry is an array. An archive may contain other files as well. */
static bool is_array_entry(archive *a, bool *is_array)
{
  if (unzGetCurrentFileInfo64(a->zip, &a->info, a->entry, MOST_NAME_BYTES, NULL, 0, NULL, 0) !=
      UNZ_OK)
    return broken(a, "its directory has a damaged entry");
  size_t length = strlen(a->entry);
  *is_array =
    length == a->info.size_filename && length >= 4 && !strcmp(a->entry + length - 4, ".npy");
  if (*is_array) a->entry[length - 4] = 0;
  return true;
}

/* Returns the length of the UTF-8 character at the text, or 0 if it is invalid or a control
 * character. */
static size_t character_bytes(const char *text)
{
  static const struct {
    uint8_t low, high, second_low, second_high; /* range of the first byte, range of the second
                                                 * byte */
    size_t size;
  } forms[] = { { 0xc2, 0xc2, 0xa0, 0xbf, 2 }, { 0xc3, 0xdf, 0x80, 0xbf, 2 },
                { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
                { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
                { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 },
                { 0xf4, 0xf4, 0x80, 0x8f, 4 } };
  const uint8_t *at = (const uint8_t *)text;
  if (*at >= ' ' && *at < 0x7f) return 1;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (*at < forms[i].low || *at > forms[i].high) continue;
    if (at[1] < forms[i].second_low || at[1] > forms[i].second_high) return 0;
    for (size_t k = 2; k < forms[i].size; k++)
      if ((at[k] & 0xc0) != 0x80) return 0;
    return forms[i].size;
  }
  return 0;
}

/* Returns an entry's name for an error message, which the caller frees. */
static char *shown_name(const char *name)
{
  char *shown = tool_copy_text(name, strlen(name));
  for (char *at = shown; *at;) {
    size_t size = character_bytes(at);
    if (!size) *at = '?';
    at += size ? size : 1;
  }
  return shown;
}

typedef struct found {
  uint64_t arrays, named, usual; /* the number of all arrays, of arrays with the requested name, and
                                    of arrays with the usual name */
  unz64_file_pos first, at_named, at_usual;
  char names[MOST_LISTED_BYTES + 8];
  bool is_cut; /* true if the list does not contain all names */
} found;

static void list_name(found *f, const char *name)
{
  size_t used = strlen(f->names);
  if (f->is_cut) return;
  char *shown = shown_name(name);
  f->is_cut = used + strlen(shown) + 2 > MOST_LISTED_BYTES;
  if (f->is_cut) strcpy(f->names + used, used ? ", ..." : "...");
  else sprintf(f->names + used, "%s%s", used ? ", " : "", shown);
  free(shown);
}

static void count_entry(archive *a, const char *name, const char *usual, found *f)
{
  unz64_file_pos at;
  unzGetFilePos64(a->zip, &at);
  if (!f->arrays++) f->first = at;
  if (name && !strcmp(a->entry, name) && !f->named++) f->at_named = at;
  if (usual && !strcmp(a->entry, usual) && !f->usual++) f->at_usual = at;
  list_name(f, a->entry);
}

static bool list_entries(archive *a, const char *name, const char *usual, found *f)
{
  unz_global_info64 global;
  if (unzGetGlobalInfo64(a->zip, &global) != UNZ_OK) return broken(a, "no directory");
  int status = global.number_entry ? unzGoToFirstFile(a->zip) : UNZ_END_OF_LIST_OF_FILE;
  for (; status == UNZ_OK; status = unzGoToNextFile(a->zip)) {
    bool is_array;
    if (!is_array_entry(a, &is_array)) return false;
    if (is_array) count_entry(a, name, usual, f);
  }
  return status == UNZ_END_OF_LIST_OF_FILE || broken(a, "its directory has a damaged entry");
}

static bool find_entry(archive *a, const char *name, const char *usual)
{
  found f = { 0 };
  if (!list_entries(a, name, usual, &f)) return false;
  if (!f.arrays) return tool_fail(a->error, TOOL_EXIT_FILE, "%s: the file has no array", a->path);
  if (f.named > 1 || (!name && f.usual > 1))
    return tool_fail(a->error, TOOL_EXIT_FILE, "%s: there are %llu arrays named '%s'", a->path,
                     (unsigned long long)(name ? f.named : f.usual), name ? name : usual);
  unz64_file_pos *at = name            ? (f.named ? &f.at_named : NULL)
                       : f.usual       ? &f.at_usual
                       : f.arrays == 1 ? &f.first
                                       : NULL;
  bool is_array;
  if (at)
    return (unzGoToFilePos64(a->zip, at) == UNZ_OK ||
            broken(a, "its directory has a damaged entry")) &&
           is_array_entry(a, &is_array);
  if (name)
    return tool_fail(a->error, TOOL_EXIT_FILE, "%s: the file has no array '%s'; it has %s", a->path,
                     name, f.names);
  return tool_fail(a->error, TOOL_EXIT_FILE,
                   "%s: the file has several arrays; name one of them, `%s:NAME`: %s", a->path,
                   a->path, f.names);
}

/* Checks the sizes that the archive's directory states for the entry against the file size, before
 * other functions use these sizes. */
static bool check_entry(archive *a)
{
  const unz_file_info64 *info = &a->info;
  if (info->flag & 1) return broken(a, "an entry is encrypted");
  if (info->compression_method != 0 && info->compression_method != Z_DEFLATED)
    return tool_fail(
      a->error, TOOL_EXIT_FILE,
      "%s: an array is compressed by method %lu; only stored and deflated arrays are supported",
      a->path, info->compression_method);
  bool fits =
    info->compressed_size <= a->size_bytes &&
    (info->compression_method ? info->uncompressed_size / MOST_RATIO <= info->compressed_size
                              : info->uncompressed_size == info->compressed_size);
  return fits || broken(a, "the sizes of an entry are impossible");
}

static bool read_entry(const tool_bytes *bytes, tool_error *error, void *to, uint64_t size)
{
  archive *a = bytes->state;
  for (uint64_t done = 0; done < size;) {
    uint64_t left = size - done;
    int got =
      unzReadCurrentFile(a->zip, (char *)to + done, left > 1u << 30 ? 1u << 30 : (unsigned)left);
    if (got <= 0)
      return tool_fail(error, TOOL_EXIT_FILE, "%s: broken .npz file: it cannot be unpacked",
                       bytes->path);
    done += (uint64_t)got;
  }
  return true;
}

static bool unpack(archive *a, tool_array *array, tool_leaves *leaves)
{
  if (!check_entry(a)) return false;
  if (unzOpenCurrentFile(a->zip) != UNZ_OK)
    return broken(a, "an entry differs from the archive's directory");
  char *entry = shown_name(a->entry), *label = tool_format("%s:%s", a->path, entry);
  free(entry);
  const tool_bytes bytes = { label, a->info.uncompressed_size, a, read_entry, false };
  bool ok = tool_read_npy_bytes(a->error, &bytes, array, leaves);
  if (unzCloseCurrentFile(a->zip) != UNZ_OK && ok) { /* verifies the checksum */
    tool_destroy_memory(array->memory);
    ok = tool_fail(a->error, TOOL_EXIT_FILE, "%s: broken .npz file: a wrong checksum", label);
  }
  free(label);
  return ok;
}

bool tool_read_npz(tool_error *error, const char *path, const char *name, const char *usual,
                   tool_array *array, tool_leaves *leaves)
{
  archive a = { .error = error, .path = path };
  if (!open_archive(&a)) return false;
  a.entry = tool_allocate(MOST_NAME_BYTES + 1);
  bool ok = find_entry(&a, name, usual) && unpack(&a, array, leaves);
  unzClose(a.zip);
  free(a.entry);
  return ok;
}

bool tool_has_npz_array(const char *path, const char *name)
{
  tool_error ignored = { 0 };
  archive a = { .error = &ignored, .path = path };
  found f = { 0 };
  if (!open_archive(&a)) {
    free(ignored.text);
    return false;
  }
  a.entry = tool_allocate(MOST_NAME_BYTES + 1);
  bool has = list_entries(&a, name, NULL, &f) && f.named == 1;
  unzClose(a.zip);
  free(a.entry);
  free(ignored.text);
  return has;
}

/* Returns the text of a byte array in .npy format, after the header of version 1.0, whose length
 * has two bytes. Returns NULL for other arrays. */
static char *text_of(const char *npy, size_t size)
{
  size_t header = size >= 10 ? 10 + (uint8_t)npy[8] + 256 * (size_t)(uint8_t)npy[9] : size;
  bool is_text = size > header && !memcmp(npy, "\x93NUMPY\x01", 7) &&
                 memmem(npy, header, "'descr': '|S", 12) && memmem(npy, header, "'shape': ()", 11);
  return is_text ? tool_copy_text(npy + header, size - header) : NULL;
}

char *tool_read_npz_text(tool_error *error, const char *path, const char *name)
{
  enum { MOST_TEXT = 4096 };
  archive a = { .error = error, .path = path };
  char *text = NULL, npy[MOST_TEXT];
  if (!open_archive(&a)) return NULL;
  a.entry = tool_allocate(MOST_NAME_BYTES + 1);
  if (find_entry(&a, name, NULL) && check_entry(&a)) {
    uint64_t size = a.info.uncompressed_size;
    const tool_bytes bytes = { path, size, &a, read_entry, false };
    bool is_open = size <= MOST_TEXT && unzOpenCurrentFile(a.zip) == UNZ_OK,
         ok = is_open && read_entry(&bytes, error, npy, size);
    if (is_open) ok = unzCloseCurrentFile(a.zip) == UNZ_OK && ok;
    text = ok ? text_of(npy, size) : NULL;
    if (!text && !error->text)
      tool_fail(error, TOOL_EXIT_FILE, "%s:%s: expected an array of bytes with text", path, name);
  }
  unzClose(a.zip);
  free(a.entry);
  return text;
}

/* ---- writing: minizip uses the stream of the output file ---- */

static voidpf ZCALLBACK open_stream(voidpf stream, const void *name, int mode)
{
  (void)name, (void)mode;
  return stream;
}

static uLong ZCALLBACK read_stream(voidpf opaque, voidpf stream, void *to, uLong size)
{
  (void)opaque;
  return fread(to, 1, size, stream);
}

static uLong ZCALLBACK write_stream(voidpf opaque, voidpf stream, const void *from, uLong size)
{
  (void)opaque;
  return ferror(stream) ? 0 : fwrite(from, 1, size, stream);
}

static ZPOS64_T ZCALLBACK tell_stream(voidpf opaque, voidpf stream)
{
  (void)opaque;
  return (ZPOS64_T)ftello(stream);
}

static long ZCALLBACK seek_stream(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin)
{
  (void)opaque;
  return fseeko(stream, (off_t)offset,
                origin == ZLIB_FILEFUNC_SEEK_CUR   ? SEEK_CUR
                : origin == ZLIB_FILEFUNC_SEEK_END ? SEEK_END
                                                   : SEEK_SET);
}

static int ZCALLBACK leave_stream(voidpf opaque, voidpf stream)
{
  (void)opaque, (void)stream;
  return 0;
}

static int ZCALLBACK stream_error(voidpf opaque, voidpf stream)
{
  (void)opaque;
  return ferror(stream);
}

static ssize_t write_entry_bytes(void *zip, const char *from, size_t size)
{
  size_t piece = size > 1u << 30 ? 1u << 30 : size;
  return zipWriteInFileInZip(zip, from, (unsigned)piece) == ZIP_OK ? (ssize_t)piece : 0;
}

static bool write_array(zipFile zip, const tool_named_array *named)
{
  /* the entry's time is constant, so that the same arrays produce the same file */
  const zip_fileinfo info = { .tmz_date = { .tm_mday = 1, .tm_mon = 0, .tm_year = 1980 } };
  enum { UTF8_NAME = 1 << 11, MOST_HEADER_BYTES = 1 << 24 };
  bool is_large = tool_array_bytes(named->array) * 2 >= UINT32_MAX - MOST_HEADER_BYTES;
  char *entry = tool_format("%s.npy", named->name);
  int status =
    zipOpenNewFileInZip4_64(zip, entry, &info, NULL, 0, NULL, 0, NULL, 0, 0, 0, -MAX_WBITS,
                            DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0, 0, UTF8_NAME, is_large);
  free(entry);
  if (status != ZIP_OK) return false;
  FILE *file = fopencookie(zip, "w", (cookie_io_functions_t){ .write = write_entry_bytes });
  bool ok = file && tool_write_npy_stream(file, named->array);
  if (file) ok = fclose(file) == 0 && ok;
  return zipCloseFileInZip(zip) == ZIP_OK && ok;
}

bool tool_write_npz(FILE *file, const tool_named_array *arrays, size_t count)
{
  zlib_filefunc64_def functions = { open_stream, read_stream,  write_stream, tell_stream,
                                    seek_stream, leave_stream, stream_error, file };
  zipFile zip = zipOpen2_64("", APPEND_STATUS_CREATE, NULL, &functions);
  if (!zip) return false;
  bool ok = true;
  for (size_t i = 0; ok && i < count; i++) ok = write_array(zip, &arrays[i]);
  return zipClose(zip, NULL) == ZIP_OK && ok;
}

#else

const char *tool_misfit_npz(const tool_array *array)
{
  (void)array;
  return "nothing, since this kjit was built without minizip";
}

bool tool_read_npz(tool_error *error, const char *path, const char *name, const char *usual,
                   tool_array *array, tool_leaves *leaves)
{
  (void)name, (void)usual, (void)array, (void)leaves;
  return tool_fail(error, TOOL_EXIT_FILE, "%s: this kjit was built without minizip", path);
}

bool tool_has_npz_array(const char *path, const char *name)
{
  (void)path, (void)name;
  return false; /* tool_read_npz reports the reason */
}

char *tool_read_npz_text(tool_error *error, const char *path, const char *name)
{
  (void)name;
  tool_fail(error, TOOL_EXIT_FILE, "%s: this kjit was built without minizip", path);
  return NULL;
}

bool tool_write_npz(FILE *file, const tool_named_array *arrays, size_t count)
{
  (void)file, (void)arrays, (void)count;
  return false; /* tool_misfit_npz has rejected it */
}

#endif
