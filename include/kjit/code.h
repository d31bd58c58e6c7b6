/* kjit/code.h: compilation ahead of launches and in the background, inspection of compiled code,
 * occupancy, and code for other processes. status.h has the rules that hold for every function. */
#ifndef KJIT_CODE_H
#define KJIT_CODE_H

#include <kjit/compile.h>
#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- signatures ahead of time ---- */

/* Runs kjit_specialize in the background.
 *
 * kjit calls done exactly once on a thread of the context, with KJIT_OK and the specialization
 * (borrowed from the kernel), or with an error and NULL. If the context is destroyed first, done
 * receives NOT_READY and NULL. In done, kjit_get_diagnostic returns the messages of the failure.
 * done must not be NULL, may call any function except kjit_destroy_context, and runs on a thread
 * that takes no signals. kjit copies signature and retains the kernel's module. Errors: MEMORY
 * (done is not called), ARGUMENT. */
KJIT_API KJIT_CHECK kjit_status kjit_specialize_async(
  kjit_kernel *kernel, kjit_device *device, const char *signature,
  void (*done)(void *user, kjit_status status, kjit_specialization *specialization), void *user);

/* A kernel and a signature for kjit_specialize_all, and the result. */
typedef struct kjit_specialize_item {
  uint32_t size_bytes; /* sizeof(kjit_specialize_item), equal in all items of an array */
  /* kernel to compile */
  kjit_kernel *kernel;
  /* types, in kjit_compile format */
  const char *signature;
  /* result, set by kjit */
  kjit_status status;
  kjit_specialization *specialization; /* borrowed from the kernel; NULL unless status is KJIT_OK */
} kjit_specialize_item;

/* Compiles or loads all items on kjit_config.compile_threads threads and returns when all are done.
 *
 * Every item receives its own result. If progress is not NULL, kjit calls it on the calling thread
 * after each item, in the order of completion, with the number of finished items and the item. All
 * kernels belong to this context. If device is NULL, kjit uses the first device. Errors: the error
 * of the first item that failed, with its messages. The other items are still processed. */
KJIT_API KJIT_CHECK kjit_status kjit_specialize_all(
  kjit_context *context, kjit_device *device, kjit_specialize_item *items, size_t count,
  void (*progress)(void *user, size_t done, size_t count, const kjit_specialize_item *item),
  void *user);

/* Restricts a kernel to the signatures that the application gives, before or after this call, to
 * kjit_specialize, kjit_specialize_async and kjit_specialize_all for the device of a launch.
 *
 * A launch selects the signature that matches best and converts its scalar arguments to the types
 * in this signature. Arrays match by element type, rank and, if the signature has one, layout. For
 * scalars, the best type is the same type, then a wider type, then another type that holds the
 * value exactly, and last a type to which the value must be rounded. Compile-time values and funcs
 * must be equal. Facts are not part of the match. If the arguments lack facts that the compiled
 * code relies on, kjit compiles a variant.
 *
 * A launch returns ARGUMENT if no signature matches, or if two match equally well. The message
 * lists the signatures. A launch that was prepared earlier keeps its code until it checks its
 * arguments again. It checks them after the application has replaced an argument other than a
 * scalar value, and after a device reset. */
KJIT_API KJIT_CHECK kjit_status kjit_seal_kernel(kjit_kernel *kernel);

/* ---- inspection of a specialization ---- */

/* Returns the code of a specialization at a stage, as kjit_compile does.
 *
 * kjit compiles the kernel again for the same types and facts, which takes as long as the first
 * time. CUBIN is an exception: it is the machine code that runs, as in
 * kjit_copy_specialization_binary. SASS is the disassembly of that code and does not need ptxas.
 * Free code with kjit_free. Errors: UNSUPPORTED if the target does not have the stage, COMPILE,
 * NO_COMPILER, MEMORY. For CUBIN and SASS, also errors from kjit_copy_specialization_binary. For
 * SASS, also NO_COMPILER without a disassembler, and IO (see kjit_compile). */
KJIT_API KJIT_CHECK kjit_status kjit_copy_specialization_code(kjit_specialization *specialization,
                                                              kjit_stage stage, void **code,
                                                              size_t *size_bytes);
/* Returns the machine code: a cubin on a GPU, an ELF object on the CPU. Free binary with kjit_free.
 * If the code was unloaded, the call first loads it again. Errors: COMPILE if the driver cannot
 * link the PTX, DEVICE, MEMORY, and errors of loading. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_specialization_binary(kjit_specialization *specialization,
                                                                void **binary, size_t *size_bytes);

/* Number of blocks and threads that are resident on a multiprocessor. */
typedef struct kjit_occupancy {
  uint32_t size_bytes; /* sizeof(kjit_occupancy), set by the application */
  uint32_t block[3];   /* shape of a block */
  /* resident blocks on a multiprocessor; 1 on the CPU, where a core runs one block after the
   * other */
  uint32_t blocks;
  /* Resident threads, and maximum number of resident threads on a multiprocessor of the device. The
   * ratio is the occupancy. On the CPU both are the threads of one block. */
  uint32_t threads, max_threads;
  /* maximum number of blocks in a cooperative launch, on all multiprocessors */
  uint64_t max_cooperative_blocks;
} kjit_occupancy;

/* Returns how many threads of the specialization are resident with a block shape and a size of
 * dynamic shared memory. If block is NULL, the shape is the one that kjit chooses for a launch with
 * kjit_launch_config.threads. If the code was unloaded, the call first loads it again. Errors:
 * LAUNCH for an impossible block, DEVICE, and errors of loading. */
KJIT_API KJIT_CHECK kjit_status kjit_get_occupancy(kjit_specialization *specialization,
                                                   const uint32_t block[3],
                                                   uint64_t dynamic_shared_bytes,
                                                   kjit_occupancy *occupancy);

/* ---- code for other processes ---- */

/* Returns all code compiled or loaded for the module's kernels so far as one blob of machine code
 * and keys. Free the blob with kjit_free.
 *
 * The blob omits code that other processes could not load: code whose threads may fail if the
 * source of the module is not known, and unloaded code. Errors: COMPILE if the driver cannot link
 * PTX, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_export_code(kjit_module *module, void **blob,
                                                 size_t *size_bytes);
/* Imports a blob, which is copied. Launches and kjit_specialize on any module of this context then
 * load code from the blob, without the compiler, if the key matches (kernel, types, facts, target,
 * driver, build of kjit).
 *
 * In an MPI program, for example, rank 0 compiles and the other ranks import. Unused code occupies
 * memory until the context is destroyed and has no other effect. Errors: IO for a damaged blob,
 * UNSUPPORTED for a blob of another build of kjit, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_import_code(kjit_context *context, const void *blob,
                                                 size_t size_bytes);
/* Returns the code of a context with kjit_config.target as one blob: all code that the context
 * compiled, imported or opened, including the kernels of algorithms. kjit_import_code takes the
 * blob, and kjit_open_cache takes a file that holds the blob. Other machines find the code by its
 * target. Free the blob with kjit_free.
 *
 * The blob omits code of modules with untrusted declarations (KJIT_TRUST_GUEST), code whose threads
 * may fail if its source text is not known, and code with math functions of a CUDA toolkit. Set
 * kjit_config.libdevice_path to "libclc" to compile with the math functions of kjit. Errors: IO (an
 * opened file can no longer be read), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_export_cache(kjit_context *context, void **blob,
                                                  size_t *size_bytes);
/* Opens a file of compiled code from kjit-cache build or kjit_export_cache. Launches then find its
 * code like the code of kjit_import_code. This call reads only the index of the file. A launch
 * reads the entry that it needs.
 *
 * kjit runs the code in the file. Therefore the file and its directory must belong to this user or
 * to root, and no other user may write to them. If the file changes later, its entries count as
 * misses. Errors: IO (the file cannot be read, is damaged, or others may write to it), UNSUPPORTED
 * (a file of another build of kjit), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_open_cache(kjit_context *context, const char *path);

#ifdef __cplusplus
}
#endif
#endif
