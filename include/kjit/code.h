/* kjit/code.h: compiled code: signatures ahead of time and in the background, what a specialization
 * is made of, occupancy, code for other processes. See status.h for the rules that hold for every
 * function. */
#ifndef KJIT_CODE_H
#define KJIT_CODE_H

#include <kjit/compile.h>
#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- signatures ahead of time ---- */

/* kjit_specialize in the background. done (not NULL) is called exactly once on a thread of the
 * context, with KJIT_OK and the specialization (borrowed from the kernel), or with the error and
 * NULL; NOT_READY and NULL where the context is destroyed first. While it runs, kjit_get_diagnostic
 * on that thread, which takes no signals, has the messages of the failure. It may call anything but
 * kjit_destroy_context. signature is copied; kernel's module is retained meanwhile. Errors: MEMORY
 * (done is not called then), ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_specialize_async(
  kjit_kernel *kernel, kjit_device *device, const char *signature,
  void (*done)(void *user, kjit_status status, kjit_specialization *specialization), void *user);

/* A kernel and a signature for kjit_specialize_all, and how it went. */
typedef struct kjit_specialize_item {
  uint32_t size_bytes; /* sizeof(kjit_specialize_item), the same in all items of an array */
  /* which kernel */
  kjit_kernel *kernel;
  /* for which types, as kjit_compile takes them */
  const char *signature;
  /* filled in */
  kjit_status status;
  kjit_specialization *specialization; /* borrowed from the kernel; NULL unless status is KJIT_OK */
} kjit_specialize_item;

/* Compiles or loads all items on kjit_config.compile_threads threads at once and returns when all
 * are done; every item says how it went. progress may be NULL; it is called on the calling thread
 * after each item, in the order in which they are done: so many of count, and which one that was.
 * All kernels are of this context; device NULL: its first. Errors: those of the first item that
 * failed, with its messages; the others are done all the same. */
KJIT_API KJIT_CHECK kjit_status kjit_specialize_all(
  kjit_context *context, kjit_device *device, kjit_specialize_item *items, size_t count,
  void (*progress)(void *user, size_t done, size_t count, const kjit_specialize_item *item),
  void *user);

/* From now on the kernel takes no types but those of the signatures that were given to
 * kjit_specialize and its kin for the device of a launch, before this call or after: a launch takes
 * the best match and converts its scalars to it. Arrays match by element, rank and, where the
 * signature has one, layout; scalars by value: one of the same type before one that only becomes
 * wider, before any that holds its values exactly, before one that rounds; compile-time values and
 * funcs have to be the same. Facts about the arguments are no part of this: code without them is
 * compiled when it is needed. A launch gives ARGUMENT where no signature takes the arguments, or
 * where two take them equally well; the message lists them. A launch that was prepared before keeps
 * its code until it looks at its arguments again: when one is replaced by more than another value
 * of a scalar, or the device was reset. */
KJIT_API KJIT_CHECK kjit_status kjit_seal_kernel(kjit_kernel *kernel);

/* ---- what a specialization is made of ---- */

/* The code of a specialization at a stage, as kjit_compile gives it: compiled again for the same
 * types and facts, which takes as long as it did. CUBIN is the machine code that runs, as
 * kjit_copy_specialization_binary gives it, and SASS that code as text: neither is compiled again,
 * nor needs ptxas. Free with kjit_free. Errors: UNSUPPORTED for a stage that the target does not
 * have, COMPILE, NO_COMPILER, MEMORY; of CUBIN those of kjit_copy_specialization_binary; of SASS
 * both these and NO_COMPILER where there is no disassembler, IO (see kjit_compile). */
KJIT_API KJIT_CHECK kjit_status kjit_copy_specialization_code(kjit_specialization *specialization,
                                                              kjit_stage stage, void **code,
                                                              size_t *size_bytes);
/* The machine code: a cubin on a GPU, an ELF object on the CPU. Free with kjit_free. Errors:
 * COMPILE where the driver cannot link the PTX, DEVICE, MEMORY, and those of loading code again
 * that was unloaded. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_specialization_binary(kjit_specialization *specialization,
                                                                void **binary, size_t *size_bytes);

/* How many blocks and threads a multiprocessor has at once. */
typedef struct kjit_occupancy {
  uint32_t size_bytes; /* sizeof(kjit_occupancy), set by the host */
  uint32_t block[3];   /* what this is about */
  /* resident on a multiprocessor at once; CPU: 1, a core runs one block after the other */
  uint32_t blocks;
  /* resident, and at most resident on a multiprocessor of the device; their ratio is the occupancy.
   * CPU: those of one block */
  uint32_t threads, max_threads;
  uint64_t max_cooperative_blocks; /* of a cooperative launch: blocks of all multiprocessors */
} kjit_occupancy;

/* How many threads of the specialization are resident with a block and so many bytes of dynamic
 * shared memory. block NULL: the one that a launch of kjit_launch_config.threads takes. Errors:
 * LAUNCH for a block that no launch could have, DEVICE, and those of loading code again that was
 * unloaded. */
KJIT_API KJIT_CHECK kjit_status kjit_get_occupancy(kjit_specialization *specialization,
                                                   const uint32_t block[3],
                                                   uint64_t dynamic_shared_bytes,
                                                   kjit_occupancy *occupancy);

/* ---- code for other processes ---- */

/* What was compiled or loaded for the module's kernels so far, machine code with its key, as one
 * blob. Free with kjit_free. Left out is what could not be loaded elsewhere: code whose threads may
 * fail, of a module whose sources are not known, and code that was unloaded. Errors: COMPILE where
 * the driver cannot link PTX, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_export_code(kjit_module *module, void **blob,
                                                 size_t *size_bytes);
/* Takes in a blob, which is copied: launches and kjit_specialize on any module of this context load
 * from it what has the same key (kernel, types, facts, target, driver, build of kjit), and need no
 * compiler for that. So rank 0 of an MPI program compiles and the others import. What nothing asks
 * for costs its memory only, until the context is destroyed. Errors: IO for a damaged blob,
 * UNSUPPORTED for one of another build of kjit, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_import_code(kjit_context *context, const void *blob,
                                                 size_t size_bytes);
/* Returns the code of a context with kjit_config.target as one blob: all code that the context
 * compiled, imported or opened, including the kernels of algorithms. kjit_import_code takes the
 * blob, and kjit_open_cache a file that holds the blob. Other machines find the code by its target.
 * Free the blob with kjit_free.
 *
 * The blob leaves out code of modules with a guest's declarations, code whose threads may fail if
 * the text of its source is not known, and code with math functions of a CUDA toolkit. Set
 * kjit_config.libdevice_path to "libclc" to compile with math functions that ship with kjit.
 * Errors: IO (a file that was opened can no longer be read), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_export_cache(kjit_context *context, void **blob,
                                                  size_t *size_bytes);
/* Opens a file of compiled code that kjit-cache build or kjit_export_cache made; launches then find
 * its code as they find the code of kjit_import_code. This call reads only the index of the file,
 * and a launch reads the entry that it needs.
 *
 * kjit runs the code in the file. So the file and its directory must belong to this user or to
 * root, and no other user may write to them. If the file changes later, its entries are misses.
 * Errors: IO (the file cannot be read, is damaged, or others may write to it), UNSUPPORTED (another
 * build of kjit made it), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_open_cache(kjit_context *context, const char *path);

#ifdef __cplusplus
}
#endif
#endif
