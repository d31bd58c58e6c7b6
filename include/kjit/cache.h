/* kjit/cache.h: the disk cache. status.h has the rules that hold for every function.
 *
 * The disk cache keeps the machine code of specializations as files in one directory
 * (kjit_config.cache_directory). The key of a file covers everything that the code depends on: the
 * canonical text of the kernel and of all code that it uses, the key of the specialization, the
 * target, and the build of kjit. A later process that needs the same code loads it without the
 * compiler.
 *
 * A launch never fails because of the cache. A damaged file, a full disk or a directory that cannot
 * be read or written counts as a miss; kjit removes damaged files. The compiler reports warnings
 * and remarks only when it compiles, not when code comes from the cache. Any number of processes
 * and versions of kjit can share a directory. For a context without a disk cache (directory "", or
 * no home directory) the functions below behave as if the cache were empty. kjit_get_statistics
 * counts hits and misses.
 *
 * kjit runs the code in the cache, and its checksums only detect accidents. Therefore kjit uses the
 * directory only if this user or root owns it and neither the group nor others can write to it,
 * even if the sticky bit is set. The same holds for each file. kjit does not read, write or remove
 * anything in other directories; every lookup there counts as a miss. If a path is a symbolic link,
 * these rules apply to its target. Parent directories are not checked. Only the user can access
 * directories and files that kjit creates. A setuid program has no default directory. */
#ifndef KJIT_CACHE_H
#define KJIT_CACHE_H

#include <kjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file of the cache. All pointers are borrowed and valid until visit returns. */
typedef struct kjit_cache_entry {
  uint32_t size_bytes; /* size of this struct, set by kjit */
  const char *name;    /* file name without the directory */
  /* version of kjit that wrote the file, for example "0.2.0". This field and the next three are
   * NULL if the file is damaged, or if its writer was killed. */
  const char *version;
  /* kernel name; types and facts; target, such as "sm_90", "cpu" or "x86-64-v3" */
  const char *kernel, *signature, *target;
  uint64_t file_bytes; /* size of the file */
  uint64_t used_ns;    /* time of the last write or read, Unix time */
  /* kind of code: "ptx", "cubin" (GPU machine code that ptxas generated ahead of time), "object",
   * "function" for the object of a func that the application calls, or "result" for the result type
   * of a func. NULL if version is NULL. A "ptx" entry in the disk
   * cache of the user also has the machine code that the driver generated. */
  const char *stage;
} kjit_cache_entry;

/* Returns the directory, borrowed from the context, or NULL without a disk cache. It never
 * fails. */
KJIT_API const char *kjit_get_cache_directory(kjit_context *context);
/* Calls visit for every file of the cache, least recently used first.
 *
 * visit may remove the file that it receives. The function reads every file, but this does not
 * count as a use. A directory that does not exist counts as empty. Errors: IO, also for a directory
 * that others can write to; MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_visit_cache(
  kjit_context *context, void (*visit)(void *user, const kjit_cache_entry *entry), void *user);
/* Removes a file by its name. Errors: ARGUMENT if the name is not the name of an entry, IO if the
 * file does not exist or cannot be removed. */
KJIT_API KJIT_CHECK kjit_status kjit_remove_cache_entry(kjit_context *context, const char *name);
/* Removes the least recently used entries until the remaining entries have at most limit_bytes; 0
 * removes all entries. The function does not wait for other processes that write to the cache.
 * removed and removed_bytes can be NULL; they are also set after an error. Errors: IO, also if a
 * file cannot be removed, in which case the other files are still removed; MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_trim_cache(kjit_context *context, uint64_t limit_bytes,
                                                uint64_t *removed, uint64_t *removed_bytes);

/* Calls visit for every entry of a file that kjit_open_cache can open. If path is NULL, it is the
 * file installed with libkjit.
 *
 * An entry has the name that it would have in a directory. file_bytes is its compressed size, and
 * used_ns is 0. Errors: see kjit_open_cache; IO also if path is NULL and no file is installed. */
KJIT_API KJIT_CHECK kjit_status kjit_visit_cache_file(kjit_context *context, const char *path,
                                                      void (*visit)(void *user,
                                                                    const kjit_cache_entry *entry),
                                                      void *user);

#ifdef __cplusplus
}
#endif
#endif
