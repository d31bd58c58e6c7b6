/* The disk cache: machine code of specializations in files of one directory, or in a store of the
 * host's, found by everything that it depends on. A hit needs no compiler. The same entries, one
 * after the other, are the blobs that another process takes in.
 *
 * Whatever goes wrong with a file, a directory or a disk is a miss, never an error of the launch.
 * Any number of threads and processes use one directory at once. */
#ifndef KJ_DISK_H
#define KJ_DISK_H

#include <kjit/cache.h>

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
  const kjit_context *context;   /* whose calls call the store; NULL: none */
  const kjit_cache_store *store; /* the host's, instead of a directory; NULL: none */
  char *directory;               /* NULL: none */
  const char *libdevice_path;    /* of the configuration */
  uint64_t limit_bytes;
  /* One hit of this number is compiled again and compared, see recheck.c. 0: none */
  uint32_t recheck_every;
  _Atomic bool is_read_only; /* writing has failed */
  /* of kjit_config.shipped_cache; NULL: the one in the folder of libkjit; "": none */
  const char *installed_path;
  pthread_mutex_t mutex; /* protects what follows while it is made */
  _Atomic bool is_identified, knows_math_library, has_opened_installed;
  struct kj_archive *installed;             /* NULL: none, or none that can be used */
  struct kj_archive_writer *made;           /* of a context with kjit_config.target */
  kj_digest build, processor, math_library; /* of libkjit; of this machine; for GPUs */
};

/* ---- disk_identity.c ---- */

/* Of the library or program that the address is in: its build id, else path, size and time of its
 * file. */
kj_digest kj_identify_address(const void *address);
/* The same of a file that is not loaded. false: it cannot be read. */
bool kj_identify_file(const char *path, kj_digest *identity);
/* Of the compiler that is loaded or would be. false: there is none where it belongs. compiler.c */
bool kj_identify_compiler(kj_runtime *runtime, kj_digest *identity);
/* Fills in build and processor. */
void kj_identify_disk(kj_disk *disk);
/* Fills in math_library. false: out of memory, or of files to open. */
bool kj_identify_math_library(kj_disk *disk);
/* Whether the compiler of this context would give code of a named target the same math functions:
 * for a GPU kjit's own libclc, for the CPU the same vector functions of the C library. */
bool kj_has_own_math(kj_disk *disk, const kj_code *code);

/* ---- processor_<architecture>.c ---- */

/* A digest of the processor and of the C library: two machines with the same digest run the same
 * code with the same results. */
kj_digest kj_identify_processor(void);
/* The highest named level that this machine has, if code for it has registers as wide as code for
 * this very machine: what code computes may depend on their size. OWN: none. */
kj_cpu_level kj_find_level(void);
/* The name of an instruction set of a level that this processor lacks, or whose registers the
 * system does not save; NULL: none. OWN has no such instruction set. */
const char *kj_find_missing_feature(kj_cpu_level level);

/* ---- disk_key.c ---- */

/* All that the code depends on, as text, except for the compiler: an entry says which one made it,
 * so that it is found where there is none. */
typedef struct kj_disk_key {
  char *text;
  size_t size_bytes;
  kj_digest digest;
  /* Of the module's sources, layout and comments too. Only code whose threads may fail depends on
   * it: it knows lines. false: not every source has a text, and such code is not kept. */
  kj_digest sources;
  bool has_sources;
} kj_disk_key;
/* Makes the key of what the compiler makes of the request. device is the device that the code is
 * for; NULL means that only the compiler's own output counts, because no driver makes machine code
 * of it. Returns false when out of memory. */
bool kj_make_disk_key(kj_disk *disk, const kjit_device *device, const kj_compile_request *request,
                      kj_disk_key *key);
/* Makes the key under which code for the same request is kept that any machine with a named target
 * can run: for the CPU the level of this machine, for a GPU its architecture. Returns false when
 * out of memory, if this machine has no level, and if the module has a declaration of a guest: code
 * for guests comes from the compiler, never from a file that others have made. */
bool kj_make_named_key(kj_disk *disk, const kj_compile_request *request, kj_disk_key *key);
/* The key of code for a device: of this machine, or for any machine where it is a target's. */
bool kj_make_device_key(kj_disk *disk, const kjit_device *device, const kj_compile_request *request,
                        kj_disk_key *key);
void kj_free_disk_key(kj_disk_key *key);

/* ---- disk_entry.c ---- */

typedef enum kj_entry_state {
  KJ_ENTRY_WHOLE,
  KJ_ENTRY_BROKEN, /* no entry, or a damaged one */
  KJ_ENTRY_OTHER   /* whole, and for another key or by another compiler */
} kj_entry_state;

/* malloc'd; NULL: out of memory. */
void *kj_pack_entry(const kj_disk_key *key, kj_digest compiler, const kj_code *code,
                    size_t *size_bytes);
/* compiler NULL: any. code is filled in when the state is WHOLE; its memory is the caller's. Out of
 * memory is OTHER. */
kj_entry_state kj_unpack_entry(const void *bytes, size_t size_bytes, const kj_disk_key *key,
                               const kj_digest *compiler, kj_code *code);
/* Whether a loader and a launch may go by what it says of parameters and arrays. */
bool kj_is_sound_code(const kj_code *code);
/* The text of the key of a whole entry, for listings; borrowed from bytes, not 0-terminated. NULL:
 * broken. */
const char *kj_read_entry_key(const void *bytes, size_t size_bytes, size_t *key_bytes,
                              kj_digest *digest);

/* ---- blob.c ---- */

static inline bool kj_has_imports(const kj_runtime *runtime)
{
  return atomic_load_explicit(&runtime->imports, memory_order_acquire) != NULL;
}
/* Looks for an entry of the compiler, or of any compiler where compiler is NULL, in what the host
 * has given. Returns true when code is filled in. */
bool kj_find_import(const kj_runtime *runtime, const kj_disk_key *key, const kj_digest *compiler,
                    kj_code *code);
/* An error for a launch that finds neither code nor a compiler: which kernel it is, and what is
 * different in the code that the host has given and that comes nearest. blob.c */
void kj_explain_miss(kj_runtime *runtime, const kj_disk_key *wanted, const char *kernel,
                     const char *signature, kj_diagnostics *diagnostics);
/* The same in the file that is installed with libkjit, which is opened at the first call. Why it
 * cannot be used is a remark, once. */
bool kj_find_installed(kj_runtime *runtime, const kj_disk_key *key, const kj_digest *compiler,
                       kj_diagnostics *diagnostics, kj_code *code);
/* Whether there may be code of a named target. */
bool kj_has_named_code(kj_runtime *runtime, kj_diagnostics *diagnostics);
/* Keeps code that was compiled in a context with kjit_config.target for kjit_export_cache. A remark
 * says why code that other processes cannot use is left out. name is the kernel's; key NULL means
 * that the code has no key. Errors: MEMORY. */
kjit_status kj_record_code(kj_runtime *runtime, const kj_disk_key *key, const char *name,
                           const kj_code *code, kj_diagnostics *diagnostics);
/* With kjit_config.ptxas and a GPU as target: makes machine code of the PTX of the request, and
 * keeps it under a key of its own, unless kj_record_code leaves out the PTX. Errors: MEMORY; those
 * of kj_assemble. */
kjit_status kj_record_machine_code(const kjit_device *device, const kj_compile_request *request,
                                   const kj_disk_key *key, const kj_code *ptx,
                                   kj_diagnostics *diagnostics);
void kj_free_imports(kj_runtime *runtime);
/* The machine code of a held specialization; malloc'd. */
kjit_status kj_copy_binary(kjit_specialization *specialization, kj_diagnostics *diagnostics,
                           void **binary, size_t *size_bytes);

/* ---- target_code.c ---- */

/* Records code that was compiled for a target, and in addition code for the same types that needs
 * no facts: other machines launch the kernel with arrays whose alignment and overlap nobody knows
 * yet. The kernel of an algorithm has no second form, because the algorithm decides the facts. key
 * as in kj_record_code. Errors: those of the compiler and of kj_record_machine_code. */
kjit_status kj_record_target(kj_call *call, const kj_compile_request *request,
                             const kj_disk_key *key, const kj_code *code,
                             kj_diagnostics *diagnostics);
/* Returns NO_COMPILER, with an error that says which code is missing, if the process has code for
 * other processes and no compiler. */
kjit_status kj_expect_compiler(kj_call *call, const char *signature,
                               const kj_compile_request *request, kj_diagnostics *diagnostics);

/* ---- disk_result.c ---- */

/* The request is for a func, with is_check. Returns true when type is the type that the func
 * returns. */
bool kj_fetch_result(kj_runtime *runtime, const kj_compile_request *request, const kj_disk_key *key,
                     kjit_type *type);
void kj_publish_result(kj_runtime *runtime, const kj_compile_request *request,
                       const kj_disk_key *key, kjit_type type);

/* ---- recheck.c: builds with assertions ---- */

/* What kj_disk.recheck_every is by default and by the environment: KJIT_RECHECK=all or a number. */
uint32_t kj_read_recheck(void);
/* Compiles code that was found in the cache again, if the key is one of those that are chosen, and
 * fails an assertion that names the key if the code differs. */
void kj_recheck(kj_call *call, const kjit_specialization *found, const kj_disk_key *key);

/* ---- disk_store.c ---- */

enum { KJ_ENTRY_NAME_BYTES = 40 };
/* The name of an entry's file. */
void kj_name_entry(kj_digest digest, char name[KJ_ENTRY_NAME_BYTES]);
/* Fills in version, target, stage, kernel and signature. text: of a key, 0-terminated; it is taken
 * apart.
 */
void kj_read_key_lines(char *text, kjit_cache_entry *entry);

/* Touches no file. Where the configuration switches the cache off, or there is no place for it, it
 * has neither store nor directory, and only knows this machine. NULL: out of memory. */
kj_disk *kj_open_disk(const kjit_config *config);
void kj_close_disk(kj_disk *disk);

static inline bool kj_keeps_code(const kj_disk *disk) { return disk->store || disk->directory; }
/* true: code is filled in. */
bool kj_fetch_entry(kj_disk *disk, const kj_disk_key *key, const kj_digest *compiler,
                    kj_code *code);
/* Writes an entry, then removes old ones where there is too much. */
void kj_publish_entry(kj_disk *disk, const kj_disk_key *key, kj_digest compiler,
                      const kj_code *code);
/* Whether publishing may succeed: it has not failed yet. */
bool kj_can_publish(const kj_disk *disk);

typedef struct kj_disk_file {
  char name[80];
  uint64_t size_bytes, used_ns; /* when it was last used; Unix time */
  bool is_entry;                /* else what a writer that was killed has left */
} kj_disk_file;
/* The files of the cache, least recently used first; malloc'd. Errors: IO where there is a
 * directory that cannot be read. */
kjit_status kj_list_disk(kj_disk *disk, kj_disk_file **files, size_t *count);
/* Removes what is left of writers and the least recently used entries until the rest is at most
 * limit_bytes. */
kjit_status kj_trim_disk(kj_disk *disk, uint64_t limit_bytes, uint64_t *removed_count,
                         uint64_t *removed_bytes);

#endif
