/* The disk cache stores machine code of specializations in files of one directory, or in the
 * application's store, under a key that contains everything that the code depends on. A cache hit
 * needs no compiler. A blob that another process exports consists of entries in the same format.
 *
 * Any problem with a file, directory or disk is a cache miss, never an error of the launch. Any
 * number of threads and processes can use one directory at once. */
#ifndef KJ_DISK_H
#define KJ_DISK_H

#include <kjit/cache.h>
#include <time.h>

#include "code/specialization.h"

typedef struct kj_digest {
  uint64_t low, high;
} kj_digest;
kj_digest kj_digest_bytes(const void *data, size_t size_bytes);
static inline bool kj_same_digest(kj_digest a, kj_digest b)
{
  return a.low == b.low && a.high == b.high;
}

struct kj_disk {
  const kjit_context *context;   /* context that calls the application's store, or NULL */
  const kjit_cache_store *store; /* the application's store that replaces the directory, or NULL */
  char *directory;               /* NULL if there is no directory */
  const char *libdevice_path;    /* from the configuration */
  uint64_t limit_bytes;
  /* One of recheck_every cache hits is compiled again and compared with the stored code
   * (recheck.c). 0 means that no hit is compiled again. */
  uint32_t recheck_every;
  _Atomic bool is_read_only; /* set after a write has failed */
  /* kjit_config.shipped_cache; NULL means the file in the directory of libkjit, "" means none */
  const char *installed_path;
  pthread_mutex_t mutex; /* protects the creation of the fields below */
  _Atomic bool is_identified, knows_math_library, has_opened_installed;
  /* the opened file; NULL if no such file exists or if it cannot be used */
  struct kj_archive *installed;
  kj_diagnostics installed_reasons; /* why the file cannot be used */
  _Atomic bool has_warned;          /* of installed_reasons */
  struct kj_archive_writer *made;   /* code that a context with kjit_config.target has compiled */
  kj_digest build, processor, math_library; /* identity of libkjit, of this machine, and of the math
                                             * library for GPUs */
  /* protected by kj_runtime.compiler_mutex: identity of the compiler's file, see
   * kj_identify_compiler */
  kj_digest compiler_file;
  bool knows_compiler_file;
};

/* ---- disk_identity.c ---- */

/* Returns the identity of the library or program that contains the address. The identity is the
 * build id. If the file has no build id, the identity is its path, size and time. */
kj_digest kj_identify_address(const void *address);
/* Returns a file's identity, which need not be loaded. Returns false if the file cannot be read. */
bool kj_identify_file(const char *path, kj_digest *identity);
/* Computes the identity of the compiler that is loaded or would be loaded (compiler.c). Returns
 * false if no compiler library exists in the places where kjit looks for one. */
bool kj_identify_compiler(kj_runtime *runtime, kj_digest *identity);
/* Fills in build and processor. */
void kj_identify_disk(kj_disk *disk);
/* Fills in math_library. Returns false if out of memory or of file descriptors. */
bool kj_identify_math_library(kj_disk *disk);
/* Returns whether the compiler of this context uses the same math functions as code of a named
 * target. These are kjit's own libclc for a GPU, and the vector functions of the C library for the
 * CPU. */
bool kj_has_own_math(kj_disk *disk, const kj_code *code);

/* ---- processor_<architecture>.c ---- */

/* Returns a digest of the processor and the C library. Two machines with the same digest run the
 * same code with the same results. */
kj_digest kj_identify_processor(void);
/* Returns the highest named level (such as x86-64-v3) that this machine supports. Code for the
 * level must use vector registers of the same width as code for this specific machine, because
 * results may depend on the width. Returns OWN if there is no such level. */
kj_cpu_level kj_find_level(void);
/* Returns the name of an instruction set that the level requires and that programs cannot use here,
 * because the processor lacks it or the system does not save its registers. Returns NULL if nothing
 * is missing. The level OWN requires no instruction set. */
const char *kj_find_missing_feature(kj_cpu_level level);

/* ---- disk_key.c ---- */

/* The symbol of a func that the application calls, in the object file that contains the func; all
 * such funcs have the same symbol. A request with this symbol has has_record set and the stage
 * OBJECT, and its key has the stage "function". */
#define KJ_FUNCTION_SYMBOL "kjit_function"

/* An entry's key as text: everything that the code depends on, except the compiler. The compiler's
 * identity is not in the key but in the entry, so that a process without a compiler can find the
 * entry. */
typedef struct kj_disk_key {
  char *text;
  size_t size_bytes;
  kj_digest digest;
  /* The module's sources, borrowed from the module. Only code with line numbers depends on them,
   * see kj_digest_sources. has_sources is false if a source has no text; code whose threads can
   * fail is then not stored. */
  const kj_sources *sources;
  bool has_sources;
} kj_disk_key;
/* Returns the sources' digest, including their layout and comments, or zero without sources.
 * Callers compute it only when they need it, because long sources take time. */
kj_digest kj_digest_sources(const kj_disk_key *key);
/* Makes the key of the compiler's result for a request. device is the device that will run the
 * code. NULL means that the key is for the compiler's output as it is, without translation by a
 * driver. Returns false if out of memory. */
bool kj_make_disk_key(kj_disk *disk, const kjit_device *device, const kj_compile_request *request,
                      kj_disk_key *key);
/* Makes the key of code that runs on any machine with a named target, for the same request. The
 * named target is this machine's level for the CPU, and the architecture for a GPU. Returns false
 * if out of memory, if this machine has no level, or if the module contains guest declarations.
 * Code of guests (untrusted modules) must come from the compiler of this machine, never from a
 * file. */
bool kj_make_named_key(kj_disk *disk, const kj_compile_request *request, kj_disk_key *key);
/* Makes the key of code for a device. If the device is a named target, the key is for any machine,
 * otherwise for this machine. */
bool kj_make_device_key(kj_disk *disk, const kjit_device *device, const kj_compile_request *request,
                        kj_disk_key *key);
void kj_free_disk_key(kj_disk_key *key);

/* Appends a type's name, and a line for each struct in the type. The line contains everything that
 * distinguishes the struct from other structs. */
void kj_describe_type(const ki_types *types, kjit_type type, kj_buffer *text);

/* ---- disk_entry.c ---- */

typedef enum kj_entry_state {
  KJ_ENTRY_WHOLE,
  KJ_ENTRY_BROKEN, /* the bytes are not an entry, or the entry is damaged */
  KJ_ENTRY_OTHER /* the entry is valid, but belongs to another key or comes from another compiler */
} kj_entry_state;

/* Set digests in new code: kj_note_made sets kj_code.made, and kj_note_sources sets
 * kj_code.made_from. */
void kj_note_made(kj_code *code);
void kj_note_sources(kj_code *code, const kj_disk_key *key);
/* Packs an entry in a malloc'd buffer. Returns NULL if out of memory. */
void *kj_pack_entry(const kj_disk_key *key, kj_digest compiler, const kj_code *code,
                    size_t *size_bytes);
/* Unpacks an entry, and frees or keeps its bytes: a block from malloc of at least size_bytes + 1
 * bytes. compiler NULL accepts every compiler. Fills in code if the result is WHOLE; the caller
 * owns its memory. Returns OTHER if out of memory. */
kj_entry_state kj_take_entry(void *bytes, size_t size_bytes, const kj_disk_key *key,
                             const kj_digest *compiler, kj_code *code);
/* Checks the description of parameters and arrays in the code, so that a loader and a launch can
 * rely on it. */
bool kj_is_sound_code(const kj_code *code);
/* Returns the key text of a valid entry, for listings, or NULL if the entry is damaged. The text
 * points into bytes and is not 0-terminated. */
const char *kj_read_entry_key(const void *bytes, size_t size_bytes, size_t *key_bytes,
                              kj_digest *digest);

/* ---- blob.c ---- */

static inline bool kj_has_imports(const kj_runtime *runtime)
{
  return atomic_load_explicit(&runtime->imports, memory_order_acquire) != NULL;
}
/* Searches the blobs and files that the application has imported. compiler NULL accepts every
 * compiler. Returns true and fills in code if it finds an entry. */
bool kj_find_import(const kj_runtime *runtime, const kj_disk_key *key, const kj_digest *compiler,
                    kj_code *code);
/* Reports an error for a launch that finds neither code nor a compiler (blob.c). The error names
 * the kernel and describes how the most similar imported code differs. */
void kj_explain_miss(kj_runtime *runtime, const kj_disk_key *wanted, const char *kernel,
                     const char *signature, kj_diagnostics *diagnostics);
/* Searches the file that is installed with libkjit, which is opened at the first call. */
bool kj_find_installed(kj_runtime *runtime, const kj_disk_key *key, const kj_digest *compiler,
                       kj_code *code);
/* Returns whether the cache or imported files may contain code for a named target. */
bool kj_has_named_code(kj_runtime *runtime);
/* Reports a warning if the installed file cannot be used, and for each file or blob in which a
 * search found a damaged entry. Each warning comes once in a context. */
void kj_warn_of_damage(kj_runtime *runtime, kj_diagnostics *diagnostics);
/* Stores code for kjit_export_cache. The code was compiled in a context with kjit_config.target.
 * Code that other processes cannot use is not stored; a remark tells the reason. name: the kernel
 * name. key: NULL means that the code has no key. Errors: MEMORY. */
kjit_status kj_record_code(kj_runtime *runtime, const kj_disk_key *key, const char *name,
                           const kj_code *code, kj_diagnostics *diagnostics);
/* With kjit_config.ptxas and a GPU as target: assembles the PTX of the request and stores the
 * machine code under its own key, except for code that kj_record_code does not store. Errors:
 * MEMORY, and the errors from kj_assemble. */
kjit_status kj_record_machine_code(const kjit_device *device, const kj_compile_request *request,
                                   const kj_disk_key *key, const kj_code *ptx,
                                   kj_diagnostics *diagnostics);
void kj_free_imports(kj_runtime *runtime);
/* Copies the machine code of a held specialization to a malloc'd buffer. */
kjit_status kj_copy_binary(kjit_specialization *specialization, kj_diagnostics *diagnostics,
                           void **binary, size_t *size_bytes);

/* ---- target_code.c ---- */

/* Records code that was compiled for a target. Also compiles and records a version for the same
 * types that relies on no facts about the arrays, because their alignment and overlap on other
 * machines are unknown. Kernels of algorithms need no second version, because the algorithm
 * determines these facts. key: as in kj_record_code. Errors: the errors from the compiler and from
 * kj_record_machine_code. */
kjit_status kj_record_target(kj_call *call, const kj_compile_request *request,
                             const kj_disk_key *key, const kj_code *code,
                             kj_diagnostics *diagnostics);
/* Returns NO_COMPILER, with an error that names the missing code, if the process has imported code
 * and no compiler. */
kjit_status kj_expect_compiler(kj_call *call, const char *signature,
                               const kj_compile_request *request, kj_diagnostics *diagnostics);

/* ---- disk_result.c ---- */

/* Returns the text of a result type of the request's func, allocated with malloc. Returns NULL if
 * another process could not read the text, or if memory is exhausted. */
char *kj_print_result(const kj_compile_request *request, kjit_type type);
/* Reads a text that kj_print_result has returned in another process, for a request with the same
 * key. Returns false if the text does not name a type. */
bool kj_read_result(const kj_compile_request *request, const char *text, kjit_type *type);

/* Looks up the result type of a func. The request has is_check set. Returns true and sets type if
 * the cache contains the type. */
bool kj_fetch_result(kj_runtime *runtime, const kj_compile_request *request, const kj_disk_key *key,
                     kjit_type *type);
void kj_publish_result(kj_runtime *runtime, const kj_compile_request *request,
                       const kj_disk_key *key, kjit_type type);

/* ---- recheck.c: builds with assertions ---- */

/* Returns the value for kj_disk.recheck_every. The environment variable KJIT_RECHECK can set it to
 * a number, or with `all` to 1. */
uint32_t kj_read_recheck(void);
/* Returns whether code from the cache must be compiled again. This is so if its key is selected and
 * if it was made by this compiler from the same sources. */
bool kj_is_rechecked(kj_runtime *runtime, const kj_code *found, bool is_imported,
                     const kj_disk_key *key);
/* Compares code from the cache with the result of a second compilation. If they differ, an
 * assertion that names the key fails. */
void kj_compare_recheck(const kj_disk_key *key, const kj_code *found, const kj_code *made,
                        kjit_status status);
/* Compares the status of a stored error with the status of a second compilation in the same way. */
void kj_compare_status(const kj_disk_key *key, kjit_status found, kjit_status made);
/* If kj_is_rechecked selects a specialization's code from the cache, compiles it again and calls
 * kj_compare_recheck. */
void kj_recheck(kj_call *call, const kjit_specialization *found, const kj_disk_key *key);

/* ---- disk_store.c ---- */

enum { KJ_ENTRY_NAME_BYTES = 40 };
/* Returns the file name of an entry. */
void kj_name_entry(kj_digest digest, char name[KJ_ENTRY_NAME_BYTES]);
bool kj_is_entry_name(const char *name);
/* Returns whether an entry or a temporary file of the cache can have this name. The directory may
 * also contain files of the user. */
bool kj_is_disk_name(const char *name);
/* Reads a file of the directory. is_use marks the entry as used now. Errors: IO; MEMORY. */
kjit_status kj_read_disk_file(kj_disk *disk, const char *name, bool is_use, void **bytes,
                              size_t *size_bytes);
/* Removes a file of the cache. Returns false if the file could not be removed. */
bool kj_remove_disk_file(kj_disk *disk, const char *name);
/* Returns whether kjit does not use the directory because other users can write to it. */
bool kj_can_others_write(const kj_disk *disk);
/* Divides a key's text into version, target, stage, kernel and signature (disk_calls.c). text is
 * 0-terminated and is modified. */
void kj_read_key_lines(char *text, kjit_cache_entry *entry);

/* Creates the object for the disk cache without accessing a file. If the configuration disables the
 * cache, or if no directory can be used, the object has neither a store nor a directory; it
 * contains only this machine's identity. Returns NULL if out of memory. */
kj_disk *kj_open_disk(const kjit_config *config);
void kj_close_disk(kj_disk *disk);

static inline bool kj_keeps_code(const kj_disk *disk) { return disk->store || disk->directory; }
/* Returns true and fills in code if the cache contains the entry. */
bool kj_fetch_entry(kj_disk *disk, const kj_disk_key *key, const kj_digest *compiler,
                    kj_code *code);
/* Writes an entry, then removes old entries if the cache exceeds its limit. */
void kj_publish_entry(kj_disk *disk, const kj_disk_key *key, kj_digest compiler,
                      const kj_code *code);
/* Returns whether the cache still accepts entries. It does until a write fails. */
bool kj_can_publish(const kj_disk *disk);

typedef struct kj_disk_file {
  char name[80];
  uint64_t size_bytes, used_ns; /* used_ns: time of the last use, Unix time */
  bool is_entry; /* true for an entry, false for a temporary file that a killed process has left */
} kj_disk_file;
/* Returns whether a temporary file is left over from a process that was killed. This is decided by
 * the file's age, because a writer needs only milliseconds. */
static inline bool kj_is_left_over(const kj_disk_file *file)
{
  enum { OLD_S = 600 };
  return !file->is_entry && (uint64_t)time(NULL) > file->used_ns / 1000000000u + OLD_S;
}
/* Lists the cache's files in a malloc'd array, least recently used first. Errors: IO if the
 * directory cannot be read. */
kjit_status kj_list_disk(kj_disk *disk, kj_disk_file **files, size_t *count);
typedef struct kj_trimmed {
  uint64_t removed_count, removed_bytes;
  int refusal; /* errno of a file that could not be removed, or 0 */
} kj_trimmed;
/* Removes temporary files of killed writers and then the least recently used entries until at most
 * limit_bytes remain. */
kjit_status kj_trim_disk(kj_disk *disk, uint64_t limit_bytes, kj_trimmed *trimmed);

#endif
