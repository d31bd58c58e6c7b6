#include "cuda/assemble.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/process.h"
#include "base/status.h"

/* The assembler may take minutes for a kernel of very many statements; the disassembler does not.
 */
enum { ASSEMBLER_MS = 3600 * 1000, DISASSEMBLER_MS = 300 * 1000, MOST_BYTES = 1 << 30 };

/* *path is malloc'd. */
static kjit_status find_assembler(const char *given, kj_diagnostics *diagnostics, char **path)
{
  struct stat about;
  bool is_missing = given && (access(given, X_OK) < 0 || stat(given, &about) < 0),
       is_other = given && !is_missing && !S_ISREG(about.st_mode);
  if (is_missing || is_other)
    return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER, "`%s`: expected the program ptxas: %s",
                    given, is_missing ? strerror(errno) : "this is no file");
  *path = given ? strdup(given) : kj_find_program("ptxas");
  if (*path) return KJIT_OK;
  if (given) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                  "ptxas, which makes machine code of PTX, was not found %s", kj_program_places);
}

kjit_status kj_assemble(const kj_assembly *assembly, const void *ptx, size_t ptx_bytes,
                        kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  static const char *const debug_options[] = {
    [KJIT_DEBUG_LINES] = "-lineinfo", [KJIT_DEBUG_FULL] = "-g"
  };
  char *path;
  KJ_TRY(find_assembler(assembly->ptxas, diagnostics, &path));
  kj_buffer architecture = { 0 };
  kj_append_format(&architecture, "-arch=%s", assembly->target);
  const char *arguments[8] = { path, architecture.text, "-o", KJ_PROCESS_RESULT, KJ_PROCESS_INPUT };
  size_t count = 5;
  if (assembly->debug != KJIT_DEBUG_NONE) arguments[count++] = debug_options[assembly->debug];
  if (assembly->is_part) arguments[count++] = "-c";
  kj_process process = { .arguments = arguments,
                         .input = ptx,
                         .input_bytes = ptx_bytes,
                         .has_result = true,
                         .limit_ms = ASSEMBLER_MS,
                         .limit_bytes = MOST_BYTES };
  kjit_status status = architecture.failed
                         ? kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory")
                         : kj_run_process(&process, diagnostics, cubin, cubin_bytes);
  kj_free_buffer(&architecture);
  free(path);
  return status;
}

kjit_status kj_disassemble(const void *cubin, size_t cubin_bytes, kj_diagnostics *diagnostics,
                           void **sass, size_t *sass_bytes)
{
  static const char *const programs[][2] = { { "nvdisasm", "-c" }, { "cuobjdump", "-sass" } };
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    char *path = kj_find_program(programs[i][0]);
    if (!path) continue;
    const char *arguments[] = { path, programs[i][1], KJ_PROCESS_INPUT, NULL };
    kj_process process = { .arguments = arguments,
                           .input = cubin,
                           .input_bytes = cubin_bytes,
                           .limit_ms = DISASSEMBLER_MS,
                           .limit_bytes = MOST_BYTES };
    kjit_status status = kj_run_process(&process, diagnostics, sass, sass_bytes);
    free(path);
    return status;
  }
  return kj_error(diagnostics, KJIT_ERROR_NO_COMPILER,
                  "neither nvdisasm nor cuobjdump, which show machine code as SASS, was found %s",
                  kj_program_places);
}
