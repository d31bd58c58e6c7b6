#define _GNU_SOURCE
#include <driver/emit.h>

#include <driver/file.h>
#include <driver/process.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct stage {
  const char *name, *ending, *what;
  bool is_text, on_gpu, on_cpu;
} stage;

static const char *const endings[KJIT_STAGE_COUNT] = {
  [KJIT_STAGE_KIR] = ".kir", [KJIT_STAGE_LLVM] = ".ll", [KJIT_STAGE_PTX] = ".ptx", [KJIT_STAGE_ASM] = ".s", [KJIT_STAGE_OBJECT] = ".o",
};

static stage describe(int index)
{
  static const stage stages[TOOL_STAGE_COUNT] = {
#define ROW(name, text, is_text, what) [KJIT_STAGE_##name] = { text, NULL, what, is_text, true, true },
    KJIT_STAGES(ROW)
#undef ROW
      [TOOL_STAGE_CUBIN] = { "cubin", ".cubin", "machine code of a GPU; needs ptxas", false, true, false },
    [TOOL_STAGE_SASS] = { "sass", ".sass", "the same disassembled; needs nvdisasm or cuobjdump too", true, true, false },
  };
  stage s = stages[index];
  if (index >= KJIT_STAGE_COUNT) return s;
  s.ending = endings[index];
  s.on_gpu = index != KJIT_STAGE_ASM && index != KJIT_STAGE_OBJECT;
  s.on_cpu = index != KJIT_STAGE_PTX;
  return s;
}

bool tool_find_stage(const char *name, int *index)
{
  for (*index = 0; *index < TOOL_STAGE_COUNT; ++*index)
    if (!strcmp(describe(*index).name, name)) return true;
  return false;
}

const char *tool_stage_name(int index) { return describe(index).name; }

bool tool_stage_is_text(int index) { return describe(index).is_text; }

bool tool_stage_fits(int index, bool is_gpu) { return is_gpu ? describe(index).on_gpu : describe(index).on_cpu; }

static char *join_stages(bool with_help)
{
  char *joined = tool_copy_text("", 0);
  for (int i = 0; i < TOOL_STAGE_COUNT; i++) {
    const char *separator = i && !with_help ? ", " : "";
    char *longer =
      with_help ? tool_format("%s  %-9s %s\n", joined, describe(i).name, describe(i).what) : tool_format("%s%s%s", joined, separator, describe(i).name);
    free(joined);
    joined = longer;
  }
  return joined;
}

char *tool_stage_names(void) { return join_stages(false); }

char *tool_stage_help(void) { return join_stages(true); }

int tool_stage_of_path(const char *path)
{
  const char *ending = strrchr(path, '.');
  for (int i = 0; ending && i < TOOL_STAGE_COUNT; i++)
    if (describe(i).ending && !strcmp(describe(i).ending, ending)) return i;
  return -1;
}

/* ---- the library's stages ---- */

static bool copy_module(tool_error *error, const tool_emission *emission, void **code, size_t *size_bytes)
{
  char *text;
  kjit_status status = kjit_copy_module_text(emission->module, &text);
  if (status != KJIT_OK) return tool_fail_kjit(error, emission->context, status, "printing the module");
  *size_bytes = strlen(text);
  *code = tool_copy_text(text, *size_bytes);
  kjit_free(emission->context, text);
  return true;
}

static bool compile(tool_error *error, const tool_emission *emission, kjit_stage index, void **code, size_t *size_bytes)
{
  void *compiled;
  kjit_status status = emission->function
                         ? kjit_compile_function(emission->function, emission->signature, emission->symbol, &emission->options, index, &compiled, size_bytes)
                         : kjit_compile(emission->kernel, emission->signature, &emission->options, index, &compiled, size_bytes);
  if (status != KJIT_OK) {
    char *doing = tool_format("compiling for \"%s\" on %s", emission->signature, emission->options.target);
    tool_fail_kjit(error, emission->context, status, doing);
    free(doing);
    return false;
  }
  *code = tool_copy_text(compiled, *size_bytes);
  kjit_free(emission->context, compiled);
  return true;
}

/* ---- NVIDIA's programs ---- */

typedef struct scratch {
  char *folder, *ptx, *cubin;
} scratch;

static bool open_scratch(tool_error *error, scratch *s)
{
  const char *temporary = getenv("TMPDIR");
  s->folder = tool_format("%s/kjit-XXXXXX", temporary && *temporary ? temporary : "/tmp");
  if (!mkdtemp(s->folder)) {
    tool_fail(error, TOOL_EXIT_FILE, "%s: %s", s->folder, strerror(errno));
    free(s->folder);
    return false;
  }
  s->ptx = tool_format("%s/kernel.ptx", s->folder);
  s->cubin = tool_format("%s/kernel.cubin", s->folder);
  return true;
}

static void close_scratch(scratch *s)
{
  unlink(s->ptx);
  unlink(s->cubin);
  rmdir(s->folder);
  free(s->ptx);
  free(s->cubin);
  free(s->folder);
}

static bool run_ptxas(tool_error *error, const tool_emission *emission, const scratch *s)
{
  char *ptxas = tool_find_program("ptxas", emission->ptxas);
  if (!ptxas && emission->ptxas) return tool_fail(error, TOOL_EXIT_DEVICE, "%s: expected the program ptxas: %s", emission->ptxas, strerror(errno));
  if (!ptxas) return tool_fail(error, TOOL_EXIT_DEVICE, "ptxas was not found on PATH, in $CUDA_HOME/bin or in /usr/local/cuda*/bin; --ptxas=PATH names it");
  char *architecture = tool_format("-arch=%s", emission->options.target);
  static const char *const debug_options[] = { [KJIT_DEBUG_LINES] = "-lineinfo", [KJIT_DEBUG_FULL] = "-g" };
  const char *debug = emission->options.debug == KJIT_DEBUG_NONE ? NULL : debug_options[emission->options.debug];
  const char *arguments[8] = { ptxas, architecture, "-o", s->cubin, s->ptx };
  size_t count = 5;
  if (debug) arguments[count++] = debug;
  if (emission->function) arguments[count++] = "-c"; /* what calls it is not there yet */
  bool ok = tool_run_program(error, arguments, NULL, NULL);
  if (!ok && error->exit_status == TOOL_EXIT_DEVICE) tool_prefix(error, "assembling the PTX");
  free(architecture);
  free(ptxas);
  return ok;
}

static bool disassemble(tool_error *error, const scratch *s, void **code, size_t *size_bytes)
{
  char *program = tool_find_program("nvdisasm", NULL);
  const char *option = "-c";
  if (!program) {
    program = tool_find_program("cuobjdump", NULL);
    option = "-sass";
  }
  if (!program) return tool_fail(error, TOOL_EXIT_DEVICE, "neither nvdisasm nor cuobjdump was found on PATH, in $CUDA_HOME/bin or in /usr/local/cuda*/bin");
  const char *arguments[] = { program, option, s->cubin, NULL };
  bool ok = tool_run_program(error, arguments, code, size_bytes);
  free(program);
  return ok;
}

static bool assemble(tool_error *error, const tool_emission *emission, int index, void **code, size_t *size_bytes)
{
  scratch s;
  void *ptx;
  size_t ptx_bytes;
  if (!compile(error, emission, KJIT_STAGE_PTX, &ptx, &ptx_bytes)) return false;
  bool ok = open_scratch(error, &s);
  if (ok) {
    ok = tool_write_file(error, s.ptx, ptx, ptx_bytes) && run_ptxas(error, emission, &s);
    if (ok && index == TOOL_STAGE_CUBIN) ok = tool_read_file(error, s.cubin, (char **)code, size_bytes);
    else if (ok) ok = disassemble(error, &s, code, size_bytes);
    close_scratch(&s);
  }
  free(ptx);
  return ok;
}

bool tool_emit(tool_error *error, const tool_emission *emission, int index, void **code, size_t *size_bytes)
{
  bool is_gpu = strcmp(emission->options.target, "cpu") != 0;
  if (index == KJIT_STAGE_KIR) return copy_module(error, emission, code, size_bytes);
  if (!tool_stage_fits(index, is_gpu))
    return tool_fail(error, TOOL_EXIT_USAGE, "the target %s has no stage %s", emission->options.target, tool_stage_name(index));
  if (index >= KJIT_STAGE_COUNT) return assemble(error, emission, index, code, size_bytes);
  return compile(error, emission, (kjit_stage)index, code, size_bytes);
}
