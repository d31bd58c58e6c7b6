/* kjit/cache.h: the disk cache. See status.h for the rules that hold for every function.
 *
 * Machine code of specializations is kept in files of one directory (kjit_config.cache_directory),
 * found by everything that it depends on: the canonical text of the kernel and of what it reaches,
 * the key of the specialization, the target, and the builds of kjit. A later process that needs the
 * same code loads it without a compiler. A damaged file, a full disk, a directory that cannot be
 * read or written are misses, never errors of a launch; a damaged file is removed. Warnings and
 * remarks of the compiler come when it compiles, not when code comes from the disk. Any number of
 * processes and versions of kjit may share a directory; a context without a disk cache (directory
 * "", or no home directory) is one with an empty one. kjit_get_statistics counts hits and misses.
 * What lies there is run as it is, and checksums keep out accidents only. So the directory is used
 * only if this user or root owns it and neither its group nor others can write to it, sticky or
 * not; the same holds for each entry. Other directories and entries are misses: kjit neither reads
 * nor writes nor removes anything there. A link is followed, and its target is what counts. The
 * folders above the directory do not count. Directories and files that kjit makes are the user's
 * alone. A program with other rights than its caller's (setuid) has no default directory. */
#ifndef KJIT_CACHE_H
#define KJIT_CACHE_H

#include <kjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One file. Everything is borrowed and lives as long as the call of visit. */
typedef struct kjit_cache_entry {
  uint32_t size_bytes; /* of this struct, set by kjit */
  const char *name;    /* of the file, without the directory */
  /* of kjit, "0.2.0"; NULL: the file is damaged, or was left by a writer that was killed; so are
   * the next three */
  const char *version;
  /* what the code is for: a kernel's name, types and facts, "sm_90", "cpu" or "x86-64-v3" */
  const char *kernel, *signature, *target;
  uint64_t file_bytes; /* size of the file */
  uint64_t used_ns;    /* when it was written or last read, Unix time */
  /* what the code is: "ptx", "cubin" (machine code of a GPU that ptxas made ahead), "object", or
   * "result" for the type that a func returns; NULL as version is. An entry of the user's disk
   * cache with the stage "ptx" has the machine code that the driver made of the PTX. */
  const char *stage;
} kjit_cache_entry;

/* The directory, or NULL without a disk cache; borrowed from the context. Never fails. */
KJIT_API const char *kjit_get_cache_directory(kjit_context *context);
/* Calls visit for every file of the cache, least recently used first; visit may remove the file
 * that it is called for. Reads every file and does not count as using it. A directory that does not
 * exist is empty. Errors: IO, also for a directory that others can write to; MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_visit_cache(
  kjit_context *context, void (*visit)(void *user, const kjit_cache_entry *entry), void *user);
/* Removes one file by its name. Errors: ARGUMENT when it is no name of an entry, IO when it is not
 * there or cannot be removed. */
KJIT_API KJIT_CHECK kjit_status kjit_remove_cache_entry(kjit_context *context, const char *name);
/* Removes the least recently used entries until the rest has at most limit_bytes; 0 removes all.
 * Processes that write meanwhile are not waited for. removed and removed_bytes may be NULL. Errors:
 * IO, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_trim_cache(kjit_context *context, uint64_t limit_bytes,
                                                uint64_t *removed, uint64_t *removed_bytes);

/* Calls visit for every entry of a file that kjit_open_cache would open. path NULL means the file
 * that is installed with libkjit. An entry has the name that it would have in a directory.
 * file_bytes is its compressed size, and used_ns is 0. Errors: those of kjit_open_cache; IO also if
 * path is NULL and no file is installed. */
KJIT_API KJIT_CHECK kjit_status kjit_visit_cache_file(kjit_context *context, const char *path,
                                                      void (*visit)(void *user,
                                                                    const kjit_cache_entry *entry),
                                                      void *user);

#ifdef __cplusplus
}
#endif
#endif
