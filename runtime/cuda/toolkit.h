/* Programs of a CUDA toolkit, for those who look at code: found, run without a shell, their output
 * collected. What runs goes through the driver (cuda_code.c). */
#ifndef KJ_CUDA_TOOLKIT_H
#define KJ_CUDA_TOOLKIT_H

#include <stdbool.h>

#include "support/diagnostics.h"

/* Returns the path of an executable file, malloc'd: from the folders of PATH, from bin of
 * $CUDA_HOME and $CUDA_PATH, or from a toolkit in /usr/local. NULL means that there is none.
 * Relative folders in these variables do not count. */
char *kj_find_program(const char *name);
/* Where kj_find_program looks, for messages. */
extern const char kj_program_places[];

/* How a program names the two files that it gets. They are in memory: nothing is left behind,
 * whoever is killed. */
#define KJ_PROCESS_INPUT "/proc/self/fd/3"
#define KJ_PROCESS_RESULT "/proc/self/fd/4"

typedef struct kj_process {
  const char *const *arguments; /* [0]: the path; NULL ends them */
  const void *input;
  size_t input_bytes;
  /* what it writes to KJ_PROCESS_RESULT is wanted; else its standard output */
  bool has_result;
  /* for how long it may run, how much it may write; then it is killed */
  uint32_t limit_ms, limit_bytes;
} kj_process;

/* Runs it and waits. *output is malloc'd and has a 0 byte behind it. The program gets nothing of
 * the host's but environment, working folder and limits: no descriptors, no ignored SIGPIPE, no
 * blocked signals. Errors: IO where it cannot be run, or the host took its exit status (SIGCHLD
 * ignored, a waitpid for any child); COMPILE where it fails, writes nothing, or exceeds a limit,
 * with what it wrote; MEMORY. */
kjit_status kj_run_process(const kj_process *process, kj_diagnostics *diagnostics, void **output,
                           size_t *output_bytes);

/* ---- PTX to machine code, and machine code to text ---- */

typedef struct kj_assembly {
  const char *ptxas;  /* NULL: looked for */
  const char *target; /* "sm_90a" */
  kjit_debug debug;
  bool is_part; /* functions that others call: what they are linked with is not there yet */
} kj_assembly;

/* Both: the result is malloc'd, with a 0 byte behind it. Errors: NO_COMPILER where the program is
 * not there, COMPILE where it fails, IO, MEMORY. */
kjit_status kj_assemble(const kj_assembly *assembly, const void *ptx, size_t ptx_bytes,
                        kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes);
kjit_status kj_disassemble(const void *cubin, size_t cubin_bytes, kj_diagnostics *diagnostics,
                           void **sass, size_t *sass_bytes);

#endif
