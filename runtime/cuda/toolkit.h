/* Finds programs of a CUDA toolkit (ptxas, disassemblers), runs them without a shell and collects
 * their output, for users who inspect code. Code that runs is translated by the driver instead
 * (cuda_code.c). */
#ifndef KJ_CUDA_TOOLKIT_H
#define KJ_CUDA_TOOLKIT_H

#include <stdbool.h>

#include "support/diagnostics.h"

/* Returns the malloc'd path of an executable file, or NULL if none is found. Searches the
 * directories of PATH, then bin of $CUDA_HOME and $CUDA_PATH, then toolkits in /usr/local. Ignores
 * relative directories in these variables. */
char *kj_find_program(const char *name);
/* Text for messages that names the directories that kj_find_program searches. */
extern const char kj_program_places[];

/* Paths by which the program opens its input and its result. Both are files in memory, so no file
 * remains if a process is killed. */
#define KJ_PROCESS_INPUT "/proc/self/fd/3"
#define KJ_PROCESS_RESULT "/proc/self/fd/4"

typedef struct kj_process {
  const char *const *arguments; /* arguments[0] is the path; NULL ends the list */
  const void *input;
  size_t input_bytes;
  /* the output is the file KJ_PROCESS_RESULT; if false, it is standard output */
  bool has_result;
  /* maximum run time and output size; the program is killed if it exceeds them */
  uint32_t limit_ms, limit_bytes;
} kj_process;

/* Runs the program and waits for it. *output is malloc'd and followed by a 0 byte. The program
 * inherits only environment, working directory and resource limits: no file descriptors, no ignored
 * SIGPIPE and no blocked signals. Errors: IO if the program cannot be run, or if the application
 * took its exit status (by ignoring SIGCHLD or waiting for any child); COMPILE if it fails, writes
 * nothing or exceeds a limit, with its output in the message; MEMORY. */
kjit_status kj_run_process(const kj_process *process, kj_diagnostics *diagnostics, void **output,
                           size_t *output_bytes);

/* ---- PTX to machine code, and machine code to text ---- */

typedef struct kj_assembly {
  const char *ptxas;  /* path of ptxas, or NULL to search for it */
  const char *target; /* for example "sm_90a" */
  kjit_debug debug;
  bool is_part; /* the code consists of functions that other code calls, so it is linked later */
} kj_assembly;

/* kj_assemble converts PTX to machine code, and kj_disassemble converts machine code to text. The
 * result is malloc'd and followed by a 0 byte. Errors: NO_COMPILER if the program is not found,
 * COMPILE if it fails, IO, MEMORY. */
kjit_status kj_assemble(const kj_assembly *assembly, const void *ptx, size_t ptx_bytes,
                        kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes);
kjit_status kj_disassemble(const void *cubin, size_t cubin_bytes, kj_diagnostics *diagnostics,
                           void **sass, size_t *sass_bytes);

#endif
