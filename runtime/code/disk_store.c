/* Reads and writes entries of the disk cache, in its directory or in the application's store, which
 * can replace the directory.
 *
 * An entry is written to a temporary file and renamed, so a reader sees the complete entry or none.
 * kjit removes damaged files, but it removes nothing if the system refuses access. The file `usage`
 * contains the total size of all entries. A lock protects this file, but no thread waits for the
 * lock. The process that holds the lock counts the entries and removes old entries, also for
 * processes that found the lock taken. From time to time a process counts all entries again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <kjit/cache.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "code/disk.h"
#include "support/host_process.h"

static const char entry_suffix[] = ".kjit", unfinished_prefix[] = "unfinished-",
                  usage_name[] = "usage", hex_digits[] = "0123456789abcdef";
enum {
  DIGEST_DIGITS = 32,
  ENTRY_NAME_BYTES = DIGEST_DIGITS + sizeof entry_suffix,
  UNFINISHED_DIGITS = 16
};
_Static_assert((int)ENTRY_NAME_BYTES <= (int)KJ_ENTRY_NAME_BYTES, "a name fits");
static const uint64_t default_limit = (uint64_t)1 << 30, most_bytes = (uint64_t)1 << 28;

/* ---- the disk ---- */

/* Sets *directory to the directory of the disk cache, or to NULL if the process has no disk cache.
 * Returns false if memory is exhausted. secure_getenv returns NULL in a program with other rights
 * than its caller's, so such a program has no cache. */
static bool find_directory(const char *given, char **directory)
{
  const char *base = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
  kj_buffer path = { 0 };
  if (given) kj_append_text(&path, given);
  else if (base && *base == '/') kj_append_format(&path, "%s/kjit", base);
  else if (home && *home == '/') kj_append_format(&path, "%s/.cache/kjit", home);
  bool is_found = path.length && !path.failed, has_failed = path.failed;
  *directory = is_found ? kj_take_text(&path) : NULL;
  if (!is_found) kj_free_buffer(&path);
  return !has_failed;
}

kj_disk *kj_open_disk(const kjit_config *config)
{
  kj_disk *disk = calloc(1, sizeof *disk);
  if (!disk) return NULL;
  pthread_mutex_init(&disk->mutex, NULL);
  disk->store = config->cache_store;
  disk->recheck_every = kj_read_recheck();
  disk->libdevice_path = config->libdevice_path;
  /* if the application disables the disk cache, the installed file is not used either, because its
   * code comes from other processes */
  bool is_off = config->cache_directory && !*config->cache_directory && !config->cache_store;
  disk->installed_path = is_off && !config->shipped_cache ? "" : config->shipped_cache;
  disk->limit_bytes = config->cache_limit_bytes ? config->cache_limit_bytes : default_limit;
  if (disk->store || find_directory(config->cache_directory, &disk->directory)) return disk;
  kj_close_disk(disk);
  return NULL;
}

void kj_close_disk(kj_disk *disk)
{
  if (!disk) return;
  kj_destroy_mutex(&disk->mutex);
  free(disk->directory);
  free(disk);
}

bool kj_can_publish(const kj_disk *disk)
{
  return kj_keeps_code(disk) && !atomic_load_explicit(&disk->is_read_only, memory_order_relaxed);
}

/* ---- files ---- */

/* Returns whether kjit may use a file or directory. Code in the directory is executed, so files and
 * directory must belong to this user or to root, and no other user may have write permission.
 * Checksums would not protect against an attacker. The permissions of parent directories do not
 * matter: an attacker who can write to them could replace the cache directory, but only by another
 * directory that belongs to this user or to root. */
static bool is_trusted(const struct stat *info)
{
  return (info->st_uid == geteuid() || info->st_uid == 0) && !(info->st_mode & (S_IWGRP | S_IWOTH));
}

/* Opens the directory of the cache and checks its owner and permissions. Files are opened relative
 * to the result. Returns -1 and sets errno; EPERM means that other users can write to the
 * directory. */
static int open_directory(const kj_disk *disk)
{
  struct stat info;
  KJ_ASSERT(disk->directory);
  int directory = open(disk->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0 || (!fstat(directory, &info) && is_trusted(&info))) return directory;
  close(directory);
  errno = EPERM;
  return -1;
}

bool kj_can_others_write(const kj_disk *disk)
{
  struct stat info;
  return !stat(disk->directory, &info) && S_ISDIR(info.st_mode) && !is_trusted(&info);
}

static void close_directory(int directory)
{
  int failure = errno;
  if (directory >= 0) close(directory);
  errno = failure;
}

void kj_name_entry(kj_digest digest, char name[KJ_ENTRY_NAME_BYTES])
{
  snprintf(name, KJ_ENTRY_NAME_BYTES, "%016llx%016llx%s", (unsigned long long)digest.high,
           (unsigned long long)digest.low, entry_suffix);
  KJ_ASSERT(kj_is_entry_name(name));
}

bool kj_is_entry_name(const char *name)
{
  return strlen(name) == ENTRY_NAME_BYTES - 1 && strspn(name, hex_digits) == DIGEST_DIGITS &&
         !strcmp(name + DIGEST_DIGITS, entry_suffix);
}

/* Returns whether a temporary file of the cache can have this name. */
static bool is_unfinished_name(const char *name)
{
  const size_t prefix = sizeof unfinished_prefix - 1;
  return !strncmp(name, unfinished_prefix, prefix) && strlen(name) == prefix + UNFINISHED_DIGITS &&
         strspn(name + prefix, hex_digits) == UNFINISHED_DIGITS;
}

bool kj_is_disk_name(const char *name)
{
  return kj_is_entry_name(name) || is_unfinished_name(name);
}

static bool read_all(int file, char *bytes, size_t size_bytes)
{
  while (size_bytes) {
    ssize_t count = read(file, bytes, size_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size_bytes -= (size_t)count;
  }
  return true;
}

/* Reads an open file into new memory. Returns IO if the file is not a regular file, is too large or
 * cannot be read, or if its code will be used and other users could have changed it. */
static kjit_status read_open_file(int file, bool is_use, void **bytes, size_t *size_bytes)
{
  struct stat info;
  if (fstat(file, &info) || !S_ISREG(info.st_mode) || (uint64_t)info.st_size > most_bytes ||
      (is_use && !is_trusted(&info)))
    return KJIT_ERROR_IO;
  *size_bytes = (size_t)info.st_size;
  *bytes = malloc(*size_bytes + 1);
  if (!*bytes) return KJIT_ERROR_MEMORY;
  if (read_all(file, *bytes, *size_bytes)) return KJIT_OK;
  free(*bytes);
  return KJIT_ERROR_IO;
}

kjit_status kj_read_disk_file(kj_disk *disk, const char *name, bool is_use, void **bytes,
                              size_t *size_bytes)
{
  int directory = open_directory(disk);
  int file =
    directory >= 0 ? openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
  close_directory(directory);
  if (file < 0) return KJIT_ERROR_IO;
  kjit_status status = read_open_file(file, is_use, bytes, size_bytes);
  /* Sets the time of the last use. This fails for a file of another user, which then keeps its
   * time. */
  if (status == KJIT_OK && is_use) (void)futimens(file, NULL);
  close(file);
  return status;
}

bool kj_remove_disk_file(kj_disk *disk, const char *name)
{
  int directory = open_directory(disk);
  bool is_removed = directory >= 0 && !unlinkat(directory, name, 0);
  close_directory(directory);
  return is_removed;
}

/* ---- writing ---- */

/* Creates the directory and its parents, which only this user can access. Returns false and sets
 * errno. */
static bool make_directory(const char *directory)
{
  if (!mkdir(directory, 0700) || errno == EEXIST) return true;
  if (errno != ENOENT) return false;
  const char *slash = strrchr(directory, '/');
  char *above =
    slash && slash != directory ? strndup(directory, (size_t)(slash - directory)) : NULL;
  bool is_made = above && make_directory(above) && (!mkdir(directory, 0700) || errno == EEXIST);
  int failure = errno;
  free(above);
  errno = failure;
  return is_made;
}

enum { UNFINISHED_NAME_BYTES = sizeof unfinished_prefix + UNFINISHED_DIGITS };

/* Creates a temporary file with a unique name. Returns -1 on failure. */
static int open_unfinished(int directory, char name[UNFINISHED_NAME_BYTES])
{
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
    number = kj_clock_ns() ^ (uint64_t)getpid() << 40 ^ (uint64_t)(uintptr_t)&number;
  snprintf(name, UNFINISHED_NAME_BYTES, "%s%0*llx", unfinished_prefix, UNFINISHED_DIGITS,
           (unsigned long long)number);
  return openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
}

/* Writes a file of the cache and returns whether this succeeded. Sets *refusal to the error if no
 * file could be created in the directory, otherwise to 0. */
static bool write_file(const kj_disk *disk, const char *name, const void *bytes, size_t size_bytes,
                       int *refusal)
{
  char unfinished[UNFINISHED_NAME_BYTES];
  int directory = open_directory(disk),
      file = directory >= 0 ? open_unfinished(directory, unfinished) : -1;
  *refusal = file >= 0 ? 0 : errno;
  bool is_written = file >= 0 && kj_write_quietly(file, bytes, size_bytes);
  if (file >= 0) is_written = !close(file) && is_written;
  if (is_written) is_written = !renameat(directory, unfinished, directory, name);
  if (file >= 0 && !is_written) (void)unlinkat(directory, unfinished, 0);
  close_directory(directory);
  return is_written;
}

/* ---- total size of the entries ---- */

typedef struct usage {
  /* total_check must be ~total_bytes; otherwise the total is unknown */
  uint64_t total_bytes, total_check;
  uint64_t counted_s; /* Unix time of the last complete count */
} usage;

static int compare_use(const void *a, const void *b)
{
  uint64_t x = ((const kj_disk_file *)a)->used_ns, y = ((const kj_disk_file *)b)->used_ns;
  return (x > y) - (x < y);
}

static bool add_file(kj_disk_file **files, size_t *count, size_t *capacity, const char *name,
                     const struct stat *info)
{
  if (*count == *capacity) {
    size_t wanted = KJ_GROWN(*capacity, 64);
    kj_disk_file *grown = realloc(*files, wanted * sizeof *grown);
    if (!grown) return false;
    *files = grown;
    *capacity = wanted;
  }
  kj_disk_file *file = &(*files)[(*count)++];
  *file =
    (kj_disk_file){ .size_bytes = (uint64_t)info->st_size, .is_entry = kj_is_entry_name(name) };
  file->used_ns = (uint64_t)info->st_mtim.tv_sec * 1000000000u + (uint64_t)info->st_mtim.tv_nsec;
  KJ_ASSERT(strlen(name) < sizeof file->name); /* is_disk_name */
  memcpy(file->name, name, strlen(name) + 1);
  return true;
}

kjit_status kj_list_disk(kj_disk *disk, kj_disk_file **files, size_t *count)
{
  size_t capacity = 0;
  *files = NULL;
  *count = 0;
  int opened = open_directory(disk);
  DIR *directory = opened >= 0 ? fdopendir(opened) : NULL;
  if (!directory) close_directory(opened);
  if (!directory)
    return errno == ENOENT || errno == ENOTDIR ? KJIT_OK
           : errno == ENOMEM                   ? KJIT_ERROR_MEMORY
                                               : KJIT_ERROR_IO;
  kjit_status status = KJIT_OK;
  for (struct dirent *item; status == KJIT_OK && (item = readdir(directory));) {
    struct stat info;
    if (!kj_is_disk_name(item->d_name)) continue;
    if (fstatat(dirfd(directory), item->d_name, &info, AT_SYMLINK_NOFOLLOW) ||
        !S_ISREG(info.st_mode))
      continue;
    if (!add_file(files, count, &capacity, item->d_name, &info)) status = KJIT_ERROR_MEMORY;
  }
  closedir(directory);
  if (status != KJIT_OK) {
    free(*files);
    *files = NULL;
    return status;
  }
  if (*count) qsort(*files, *count, sizeof **files, compare_use);
  return KJIT_OK;
}

static kjit_status trim(kj_disk *disk, uint64_t limit_bytes, uint64_t *kept_bytes,
                        kj_trimmed *trimmed)
{
  kj_disk_file *files;
  size_t count;
  uint64_t total = 0;
  *trimmed = (kj_trimmed){ 0 };
  KJ_TRY(kj_list_disk(disk, &files, &count));
  for (size_t i = 0; i < count; i++) total += files[i].size_bytes;
  for (size_t i = 0; i < count; i++) {
    bool is_unwanted = (files[i].is_entry && total > limit_bytes) || kj_is_left_over(&files[i]) ||
                       (!files[i].is_entry && !limit_bytes);
    if (!is_unwanted) continue;
    if (!kj_remove_disk_file(disk, files[i].name)) {
      /* another process may have removed the file */
      if (errno != ENOENT) trimmed->refusal = errno;
      continue;
    }
    total -= files[i].size_bytes;
    trimmed->removed_bytes += files[i].size_bytes;
    trimmed->removed_count++;
  }
  free(files);
  *kept_bytes = total;
  return KJIT_OK;
}

/* Returns whether the file can be the `usage` file that kjit wrote. Another process of the user
 * could have replaced it by a link or another file. */
static bool is_usage_file(int file)
{
  struct stat info;
  return !fstat(file, &info) && S_ISREG(info.st_mode) && info.st_nlink <= 1 &&
         (uint64_t)info.st_size <= sizeof(usage);
}

/* Opens and locks the file `usage` without waiting. Returns -1 if another process has the lock or
 * the file cannot be created. */
static int lock_usage(const kj_disk *disk)
{
  int directory = open_directory(disk);
  int file = directory >= 0
               ? openat(directory, usage_name,
                        O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600)
               : -1;
  close_directory(directory);
  if (file < 0 || (is_usage_file(file) && !flock(file, LOCK_EX | LOCK_NB))) return file;
  close(file);
  return -1;
}

static void write_usage(int file, uint64_t total_bytes, uint64_t counted_s)
{
  usage known = { total_bytes, ~total_bytes, counted_s };
  /* after a failed write the total is unknown, and the next process counts again */
  if (pwrite(file, &known, sizeof known, 0) != sizeof known) (void)!ftruncate(file, 0);
}

/* Adds to the total size, and removes old entries if the limit is exceeded. Removes an eighth more
 * than necessary, so that the next entries do not cause another removal. */
static void account(kj_disk *disk, uint64_t added_bytes)
{
  enum { COUNT_EVERY_S = 24 * 3600 };
  int file = lock_usage(disk);
  if (file < 0) return;
  usage known;
  kj_trimmed trimmed;
  uint64_t now = (uint64_t)time(NULL), total;
  bool is_known = pread(file, &known, sizeof known, 0) == sizeof known &&
                  known.total_check == ~known.total_bytes && now - known.counted_s < COUNT_EVERY_S;
  if (is_known && known.total_bytes + added_bytes <= disk->limit_bytes)
    write_usage(file, known.total_bytes + added_bytes, known.counted_s);
  else if (trim(disk, UINT64_MAX, &total, &trimmed) == KJIT_OK &&
           (total <= disk->limit_bytes ||
            trim(disk, disk->limit_bytes - disk->limit_bytes / 8, &total, &trimmed) == KJIT_OK))
    write_usage(file, total, now);
  close(file);
}

/* Returns whether the same error will also occur for the next entry. A full disk may have space
 * again later, and a process may close files. */
static bool is_lasting(int refusal)
{
  static const int transient[] = { ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EINTR, EAGAIN, EIO };
  for (size_t i = 0; i < sizeof transient / sizeof *transient; i++)
    if (refusal == transient[i]) return false;
  return refusal != 0;
}

kjit_status kj_trim_disk(kj_disk *disk, uint64_t limit_bytes, kj_trimmed *trimmed)
{
  uint64_t kept_bytes;
  KJ_TRY(trim(disk, limit_bytes, &kept_bytes, trimmed));
  int file = lock_usage(disk);
  if (file < 0) return KJIT_OK;
  write_usage(file, kept_bytes, (uint64_t)time(NULL));
  close(file);
  return KJIT_OK;
}

/* ---- the application's store ---- */

/* An entry in a store has the same bytes as a file, and the same checks apply. */
enum { KEY_BYTES = 32 };

/* Makes the store key from two digests of the key text. The second digest omits the first byte. */
static void make_store_key(const kj_disk_key *key, uint8_t bytes[KEY_BYTES])
{
  kj_digest second = kj_digest_bytes(key->text + 1, key->size_bytes ? key->size_bytes - 1 : 0);
  memcpy(bytes, &key->digest, sizeof key->digest);
  memcpy(bytes + sizeof key->digest, &second, sizeof second);
}

static bool fetch_stored(kj_disk *disk, const kj_disk_key *key, const kj_digest *compiler,
                         kj_code *code)
{
  const kjit_cache_store *store = disk->store;
  uint8_t bytes[KEY_BYTES];
  const void *data = NULL;
  size_t size_bytes = 0;
  make_store_key(key, bytes);
  ki_host_code host_code;
  ki_enter_host(&host_code, disk->context);
  bool is_found = store->load(store->user, bytes, &data, &size_bytes) == 1 && data;
  ki_leave_host(&host_code);
  if (!is_found) return false;
  /* entries are read as structs, but the application's memory can have any alignment */
  void *copy = size_bytes <= most_bytes ? malloc(size_bytes + 1) : NULL;
  if (copy) memcpy(copy, data, size_bytes);
  ki_enter_host(&host_code, disk->context);
  if (store->release) store->release(store->user, data);
  ki_leave_host(&host_code);
  kj_entry_state state =
    copy ? kj_take_entry(copy, size_bytes, key, compiler, code) : KJ_ENTRY_OTHER;
  return state == KJ_ENTRY_WHOLE;
}

static void publish_stored(kj_disk *disk, const kj_disk_key *key, kj_digest compiler,
                           const kj_code *code)
{
  const kjit_cache_store *store = disk->store;
  uint8_t bytes[KEY_BYTES];
  size_t size_bytes;
  if (!store->store) return;
  void *entry = kj_pack_entry(key, compiler, code, &size_bytes);
  make_store_key(key, bytes);
  ki_host_code host_code;
  ki_enter_host(&host_code, disk->context);
  if (entry) store->store(store->user, bytes, entry, size_bytes);
  ki_leave_host(&host_code);
  free(entry);
}

/* ---- entries ---- */

bool kj_fetch_entry(kj_disk *disk, const kj_disk_key *key, const kj_digest *compiler, kj_code *code)
{
  char name[KJ_ENTRY_NAME_BYTES];
  void *bytes;
  size_t size_bytes;
  if (disk->store) return fetch_stored(disk, key, compiler, code);
  kj_name_entry(key->digest, name);
  if (kj_read_disk_file(disk, name, true, &bytes, &size_bytes) != KJIT_OK) return false;
  kj_entry_state state = kj_take_entry(bytes, size_bytes, key, compiler, code);
  if (state == KJ_ENTRY_BROKEN) (void)kj_remove_disk_file(disk, name);
  return state == KJ_ENTRY_WHOLE;
}

void kj_publish_entry(kj_disk *disk, const kj_disk_key *key, kj_digest compiler,
                      const kj_code *code)
{
  size_t size_bytes;
  char name[KJ_ENTRY_NAME_BYTES];
  if (disk->store) {
    publish_stored(disk, key, compiler, code);
    return;
  }
  kj_name_entry(key->digest, name);
  void *bytes = kj_can_publish(disk) ? kj_pack_entry(key, compiler, code, &size_bytes) : NULL;
  if (bytes && size_bytes <= most_bytes && size_bytes <= disk->limit_bytes) {
    int refusal;
    bool is_published = write_file(disk, name, bytes, size_bytes, &refusal);
    if (refusal && make_directory(disk->directory))
      is_published = write_file(disk, name, bytes, size_bytes, &refusal);
    /* the directory could not be created; errno has the reason */
    else if (refusal == ENOENT) refusal = errno;
    if (is_published) account(disk, size_bytes);
    if (is_lasting(refusal)) atomic_store_explicit(&disk->is_read_only, true, memory_order_relaxed);
  }
  free(bytes);
}
