/* kjit/compile.h: code for a signature, without a device. See status.h for the rules that hold for
 * every function. */
#ifndef KJIT_COMPILE_H
#define KJIT_COMPILE_H

#include <kjit/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Stages: ROW(NAME, "name in the tools", is_text, "what it is"). */
#define KJIT_STAGES(ROW) \
  ROW(KIR, "kir", 1, "canonical kernel IR") \
  ROW(TYPED, "typed", 1, "typed kernel IR of the specialization, after the passes of the target") \
  ROW(LLVM, "llvm", 1, "LLVM IR before optimization") \
  ROW(LLVM_OPT, "llvm-opt", 1, "LLVM IR after optimization") \
  ROW(PTX, "ptx", 1, "PTX; GPU targets") \
  ROW(ASM, "asm", 1, "assembly; CPU targets") \
  ROW(OBJECT, "object", 0, "ELF object; CPU targets") \
  ROW(CUBIN, "cubin", 0, "machine code; GPU targets; by ptxas, where no driver has made it") \
  ROW(SASS, "sass", 1, "the same disassembled; by nvdisasm or cuobjdump")

/* What a compilation can end with; KJIT_STAGES has what each is. */
typedef enum kjit_stage {
#define KJIT_STAGE_ENUM(name, text, is_text, what) KJIT_STAGE_##name,
  KJIT_STAGES(KJIT_STAGE_ENUM)
#undef KJIT_STAGE_ENUM
  /* how many there are: grows with versions */
  KJIT_STAGE_COUNT
} kjit_stage;

/* What kjit_compile and its kin compile for. */
typedef struct kjit_compile_options {
  uint32_t size_bytes; /* sizeof(kjit_compile_options) */
  const char *target;  /* "sm_75" and up, "cpu" (this machine). Default NULL: "cpu" */
  /* 78 for PTX 7.8; default 0: the least that kjit and the architecture need */
  uint32_t ptx_version;
  /* block shape known at compile time; 0: not known (CPU: the kernel's @block, else 256 x 1 x 1) */
  uint32_t block[3];
  /* Default NULL: none (always right); "all": every fact a fresh contiguous allocation has: aligned
   * to 16 bytes, disjoint, 32-bit offsets and grid. Or some of: "aligned16", "offsets32", "grid32",
   * "disjoint", separated by blanks, and of those that are no part of "all": "rows_aligned16", rows
   * of arrays of rank 2 and more are multiples of 16 bytes; "programmatic", launches have
   * KJIT_LAUNCH_PROGRAMMATIC. Or the facts of a specialization, as its info has them */
  const char *facts;
  uint32_t checks;  /* KJIT_CHECK_*; default KJIT_CHECK_NONE */
  kjit_debug debug; /* default KJIT_DEBUG_NONE */
  /* path of the assembler for CUBIN and SASS; default NULL: looked for as the disassembler is */
  const char *ptxas;
  /* stage TYPED only: the typed IR as this pass leaves it, "infer" for example; the names are in
   * docs/tools.md. Default NULL: after all passes */
  const char *after_pass;
  int32_t interruptible;             /* as in kjit_config; default 0 */
  const kjit_compile_limits *limits; /* default NULL: kjit_config.compile_limits */
} kjit_compile_options;

/* Compiles a kernel for a signature as text, a type or a value for each parameter, "f32[:] C, f32,
 * const f32[:] C, 16" (values for const parameters, func names for func parameters). Text stages
 * end in a 0 byte that size_bytes does not count. Free with kjit_free. CUBIN and SASS run NVIDIA's
 * programs ptxas, nvdisasm, cuobjdump as child processes, found on PATH, in bin of $CUDA_HOME and
 * $CUDA_PATH, or of a toolkit in /usr/local. Errors: NAME, SYNTAX, TYPE, ARGUMENT, UNSUPPORTED,
 * COMPILE (a program that fails, too: with what it wrote), NO_COMPILER (or a program is missing),
 * IO (a program cannot be run, or this process reaps children that are not its own), LIMIT,
 * INTERRUPTED (kjit_interrupt). */
KJIT_API KJIT_CHECK kjit_status kjit_compile(kjit_kernel *kernel, const char *signature,
                                             const kjit_compile_options *options, kjit_stage stage,
                                             void **code, size_t *size_bytes);

/* Whether a kernel compiles for a signature, as kjit_compile takes it: types are inferred and the
 * passes of the target run, but no code is made, so that a front end can show what is wrong while
 * its user types. Warnings and remarks of these stages go to on_diagnostic. What LLVM, an assembler
 * or the driver may refuse later is not found. Errors: NAME, SYNTAX, TYPE, ARGUMENT, UNSUPPORTED,
 * NO_COMPILER, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_check(kjit_kernel *kernel, const char *signature,
                                           const kjit_compile_options *options);

/* The work of a child process that compiles for another one (kjit_config.compile_in_child): what
 * the program kjit-compile-child does. socket: what that process has given to this one, its
 * descriptor
 * 3. Returns when that process has ended or wants no more; of another build of kjit it does
 * nothing. A program that has kjit inside may call this instead, as the first thing it does, and be
 * its own kjit_config.compile_child_path. Errors: MEMORY. */
KJIT_API kjit_status kjit_serve_compilations(int socket);

#ifdef __cplusplus
}
#endif
#endif
