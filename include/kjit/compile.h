/* kjit/compile.h: compilation for a signature, without a device. status.h has the rules that hold
 * for every function. */
#ifndef KJIT_COMPILE_H
#define KJIT_COMPILE_H

#include <kjit/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stages, one row each: name, "name in the tools", is_text, "description". */
#define KJIT_STAGES(ROW) \
  ROW(KIR, "kir", 1, "canonical kernel IR") \
  ROW(TYPED, "typed", 1, "typed kernel IR of the specialization, after the passes of the target") \
  ROW(LLVM, "llvm", 1, "LLVM IR before optimization") \
  ROW(LLVM_OPT, "llvm-opt", 1, "LLVM IR after optimization") \
  ROW(PTX, "ptx", 1, "PTX; GPU targets") \
  ROW(ASM, "asm", 1, "assembly; CPU targets") \
  ROW(OBJECT, "object", 0, "ELF object; CPU targets") \
  ROW(CUBIN, "cubin", 0, "machine code; GPU targets; made by the driver or by ptxas") \
  ROW(SASS, "sass", 1, "disassembled machine code; GPU targets; by nvdisasm or cuobjdump") \
  ROW(DERIVATIVES, "derivatives", 1, \
      "tapes, bytes and atomic sums of derivatives; empty without them")

/* Results of a compilation; KJIT_STAGES describes each stage. */
typedef enum kjit_stage {
#define KJIT_STAGE_ENUM(name, text, is_text, what) KJIT_STAGE_##name,
  KJIT_STAGES(KJIT_STAGE_ENUM)
#undef KJIT_STAGE_ENUM
  /* number of stages, which grows with versions */
  KJIT_STAGE_COUNT
} kjit_stage;

/* Options of kjit_compile and the other functions that compile for a signature. */
typedef struct kjit_compile_options {
  uint32_t size_bytes; /* sizeof(kjit_compile_options) */
  const char *target;  /* "sm_75" and up, or "cpu" (this machine). Default NULL: "cpu" */
  /* 78 means PTX 7.8; default 0: the lowest version that kjit and the architecture need */
  uint32_t ptx_version;
  /* Block shape known at compile time. 0 means that it is not known. On the CPU this means @block
   * of the kernel, or 256 x 1 x 1. */
  uint32_t block[3];
  /* Facts that the code relies on. The default NULL means no facts. The code is then correct for
   * all arguments.
   *
   * "all" means all facts that hold for a freshly allocated contiguous array: aligned to 16 bytes,
   * disjoint, with 32-bit offsets and grid. A list contains any of "aligned16", "offsets32",
   * "grid32" and "disjoint", separated by blanks. Three facts are not part of "all":
   * "rows_aligned16" means that the rows of multi-dimensional arrays are multiples of 16 bytes.
   * "large" means that an array has 32 MiB or more; CPU code then bypasses the caches, where
   * possible, when it writes the array. "programmatic" means that launches may set
   * KJIT_LAUNCH_PROGRAMMATIC. The facts of a kjit_specialization_info are accepted as well. */
  const char *facts;
  uint32_t checks;  /* KJIT_CHECK_*; default KJIT_CHECK_NONE */
  kjit_debug debug; /* debug information; default KJIT_DEBUG_NONE */
  /* path of the assembler for CUBIN and SASS; default NULL: search as described in kjit_compile */
  const char *ptxas;
  /* For stage TYPED only: print the typed IR after this pass, for example "infer". docs/tools.md
   * lists the passes. Default NULL: after all passes. */
  const char *after_pass;
  int32_t interruptible;             /* as in kjit_config; default 0 */
  const kjit_compile_limits *limits; /* default NULL: kjit_config.compile_limits */
} kjit_compile_options;

/* Compiles a kernel for a signature: a string with a type or a value for each parameter, such as
 * "f32[:] C, f32, const f32[:] C, 16". Const parameters have values, and func parameters have func
 * names.
 *
 * An extern constant without a value becomes a variable in constant memory. The program that loads
 * the code must set it. Code for a GPU defines the variable, and code for the CPU declares it. A
 * remark names the constant.
 *
 * Stages that are text end in a 0 byte, which size_bytes does not count. Free code with kjit_free.
 * For CUBIN and SASS, kjit runs NVIDIA's programs ptxas, nvdisasm and cuobjdump as child processes.
 * It searches PATH, bin of $CUDA_HOME and $CUDA_PATH, and toolkits in /usr/local.
 *
 * Errors: NAME, SYNTAX, TYPE, ARGUMENT, UNSUPPORTED, COMPILE (also if a program fails, with its
 * output), NO_COMPILER (also if a program is missing), IO (a program cannot be run, or other code
 * in this process has reaped the child process), LIMIT, INTERRUPTED (kjit_interrupt). */
KJIT_API KJIT_CHECK kjit_status kjit_compile(kjit_kernel *kernel, const char *signature,
                                             const kjit_compile_options *options, kjit_stage stage,
                                             void **code, size_t *size_bytes);

/* Checks whether a kernel compiles for a signature in kjit_compile format. kjit infers types and
 * runs the target's passes, but generates no code, so a front end can show errors while the user
 * types. on_diagnostic receives warnings and remarks of these stages. Errors that only LLVM, an
 * assembler or the driver would find are not detected. Errors: NAME, SYNTAX, TYPE, ARGUMENT,
 * UNSUPPORTED, NO_COMPILER, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_check(kjit_kernel *kernel, const char *signature,
                                           const kjit_compile_options *options);

/* Does the work of a child process that compiles for another process
 * (kjit_config.compile_in_child), as the program kjit-compile-child does.
 *
 * socket is descriptor 3, which the other process passes to the child. The function returns when
 * the other process has ended or needs no more compilations. It does nothing if the other process
 * has another build of kjit. A program that contains kjit can call it first in main and name itself
 * in kjit_config.compile_child_path. Errors: MEMORY. */
KJIT_API kjit_status kjit_serve_compilations(int socket);

#ifdef __cplusplus
}
#endif
#endif
