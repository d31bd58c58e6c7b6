#define _GNU_SOURCE
#include "options.h"

#include <argp.h>
#include <driver/checks.h>
#include <driver/limits.h>
#include <driver/emit.h>
#include <driver/similar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
KJIT_API const char *argp_program_version = "kjit-compile " TEXT(KJIT_VERSION_MAJOR) "." TEXT(
  KJIT_VERSION_MINOR) "." TEXT(KJIT_VERSION_PATCH);

enum option_key {
  KEY_FACTS = 256,
  KEY_PTX_VERSION,
  KEY_PTXAS,
  KEY_LIBDEVICE,
  KEY_LIST,
  KEY_CHECKS,
  KEY_INTERRUPTIBLE,
  KEY_COMPILE_LIMIT,
  KEY_LINEINFO,
  KEY_DEBUG,
  KEY_FUNC,
  KEY_SYMBOL,
  KEY_AFTER,
  KEY_INFO
};

static const char before_options[] =
  "Compiles a kernel from a kernel IR file for a signature. No GPU "
  "is needed.\vSTAGE is one of\n";

static const char after_stages[] =
  "Without --emit the suffix of FILE selects the stage (.kir .ll .ptx .cubin .sass .s .o). With "
  "another suffix or without FILE the stage is ptx for a GPU and asm for the CPU.\n"
  "\n"
  "SIGNATURE has an entry for each parameter, separated by commas. An entry is a scalar type "
  "(f32), an array "
  "type with dimensions and layout (f32[:], const f32[:, :] C, f64[:] F), a value for a const "
  "parameter (16), or a func name for a func parameter. You can omit trailing parameters "
  "with a default, and the whole signature if the source gives every parameter a type.\n"
  "\n"
  "FACTS are argument properties that the code relies on: all, or a list of aligned16, "
  "offsets32, grid32 and disjoint, separated by blanks. Without facts the code works for all "
  "arguments with these types. all does not include rows_aligned16, large and programmatic. "
  "rows_aligned16 means that each row stride in a multi-dimensional array is a multiple of 16 "
  "bytes. large(r) means that r has 32 MiB or more; CPU code then writes r past the caches if "
  "possible. programmatic means that launches may set KJIT_LAUNCH_PROGRAMMATIC (sm_90 and up).\n"
  "\n"
  "Exit status:\n"
  "  0  success\n"
  "  2  the command line is wrong, or contains a name unknown to the module\n"
  "  3  the kernel IR has an error or needs a feature of another target, or ptxas or the "
  "disassembler failed\n"
  "  4  a file is missing, damaged or cannot be written\n"
  "  5  the compiler library, ptxas or a disassembler is missing\n"
  "\n"
  "Examples:\n"
  "  kjit-compile axpy.kir --arch sm_90 --facts all -o axpy.ptx \\\n"
  "    --signature 'f32[:] C, f32, const f32[:] C, const f32[:] C'\n"
  "  kjit-compile matmul.kir --arch sm_80 -o matmul.cubin \\\n"
  "    --type C='f32[:, :] C' --type A='const f32[:, :] C' \\\n"
  "    --type B='const f32[:, :] C'\n"
  "  kjit-compile axpy.kir --emit llvm-opt -s 'f64[:], f64, f64[:], f64[:]'";

static const struct argp_option option_table[] = {
  { 0, 0, 0, 0, "Input", 1 },
  { "kernel", 'k', "NAME", 0,
    "Kernel to compile (default: the only kernel). adjoint(NAME) or adjoint(NAME, 0, 2) is the "
    "adjoint of a kernel with respect to all float arrays or to parameters 0 and 2. A remark says "
    "how it sums derivatives",
    1 },
  { "signature", 's', "SIGNATURE", 0, "Types of all parameters", 1 },
  { "type", 't', "NAME=TYPE", 0, "Type of a parameter, if --signature is not given", 1 },
  { "func", KEY_FUNC, "NAME", 0, "Compile a func as a C function instead of a kernel", 1 },
  { "symbol", KEY_SYMBOL, "NAME", 0, "Name of the C function (default: the func name)", 1 },
  TOOL_MODULE_HELP,
  { "list", KEY_LIST, 0, 0, "List the kernels and their parameters and exit", 1 },
  { 0, 0, 0, 0, "Target", 2 },
  { "arch", 'a', "sm_NN|cpu", 0, "Target: sm_75 and up, or the CPU of this machine (default)", 2 },
  { "block", 'b', "XxYxZ", 0, "Block shape, if known", 2 },
  { "facts", KEY_FACTS, "FACTS", 0, "Argument properties that the code relies on", 2 },
  { "checks", KEY_CHECKS, "usual|all|none|LIST", 0,
    "Enable run-time checks. LIST is a comma-separated list of bounds, division, assert, barrier, "
    "uninitialized, races, integer-division and float-division. usual enables bounds, division and "
    "assert. The default is none",
    2 },
  { "interruptible", KEY_INTERRUPTIBLE, 0, 0,
    "Let running kernels check whether the application interrupts their launch", 2 },
  TOOL_LIMIT_HELP(KEY_COMPILE_LIMIT, 2),
  { "lineinfo", KEY_LINEINFO, 0, 0, "Add source line numbers for debuggers and profilers", 2 },
  { "debug", KEY_DEBUG, 0, 0, "Add lines and variables for debuggers; do not optimize", 2 },
  { "ptx-version", KEY_PTX_VERSION, "M.N", 0,
    "PTX version, such as 7.8 (default: the lowest version that supports the code)", 2 },
  { "libdevice", KEY_LIBDEVICE, "FILE", 0,
    "File of LLVM bitcode with GPU math functions, or libclc for the functions that kjit includes. "
    "The default is libdevice of a CUDA toolkit, or libclc without a toolkit",
    2 },
  { 0, 0, 0, 0, "Result", 3 },
  { "emit", 'e', "STAGE", 0, "Last stage of the compilation; see below", 3 },
  { "after", KEY_AFTER, "PASS", 0,
    "Print the typed IR after PASS (with --emit typed). An unknown name lists all passes", 3 },
  { "info", KEY_INFO, 0, 0,
    "List tapes, bytes and atomic sums of the kernel's derivatives, like --emit derivatives", 3 },
  { "output", 'o', "FILE", 0, "Output file (default standard output)", 3 },
  { "ptxas", KEY_PTXAS, "PATH", 0,
    "Assembler for cubin and sass (default ptxas on PATH or in a CUDA toolkit)", 3 },
  { "quiet", 'q', 0, 0, "Do not show warnings or remarks", 3 },
  { 0 },
};

static void append_type(compile_options *options, const char *text)
{
  const char **types = realloc(options->types, (options->type_count + 1) * sizeof *types);
  if (!types) exit(TOOL_EXIT_DEVICE);
  options->types = types;
  options->types[options->type_count++] = text;
}

static void parse_block(struct argp_state *state, compile_options *options, const char *text)
{
  const char *at = text;
  for (int rank = 0; rank < 3; rank++) options->block[rank] = 1;
  for (int rank = 0; rank < 3; rank++) {
    char *end;
    unsigned long extent = *at >= '0' && *at <= '9' ? strtoul(at, &end, 10) : 0;
    if (extent == 0 || extent > UINT16_MAX || (*end && *end != 'x')) break;
    options->block[rank] = (uint32_t)extent;
    if (!*end) return;
    at = end + 1;
  }
  argp_error(state, "--block: expected a shape such as 256 or 16x16, not '%s'", text);
}

static uint32_t parse_version(struct argp_state *state, const char *text)
{
  unsigned major = 0, minor = 0;
  int end = 0;
  if (sscanf(text, "%2u.%1u%n", &major, &minor, &end) != 2 || text[end])
    argp_error(state, "--ptx-version: expected a version such as 7.8, not '%s'", text);
  return major * 10 + minor;
}

/* Checks the form only; the library checks whether the architecture exists. */
static bool is_target(const char *text)
{
  static const char prefix[] = "sm_";
  const char *number = text + strlen(prefix);
  if (strncmp(text, prefix, strlen(prefix))) return !strcmp(text, "cpu");
  size_t digits = strspn(number, "0123456789");
  return digits && (!number[digits] || (strchr("af", number[digits]) && !number[digits + 1]));
}

static int parse_stage(struct argp_state *state, const char *text)
{
  kjit_stage stage;
  if (tool_find_stage(text, &stage)) return stage;
  char *names = tool_stage_names();
  argp_error(state, "--emit: expected one of %s, not '%s'", names, text);
  free(names);
  return -1;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  compile_options *options = state->input;
  if (tool_take_module_option(&options->module, key, text)) return 0;
  switch (key) {
  case 'k': options->kernel = text; return 0;
  case KEY_FUNC: options->function = text; return 0;
  case KEY_SYMBOL: options->symbol = text; return 0;
  case 's': options->signature = text; return 0;
  case 't': append_type(options, text); return 0;
  case 'a':
    if (!is_target(text))
      argp_error(state, "--arch: expected cpu, or sm_NN such as sm_90, not '%s'", text);
    options->arch = text;
    return 0;
  case 'b': parse_block(state, options, text); return 0;
  case 'e': options->stage = parse_stage(state, text); return 0;
  case KEY_INFO: options->stage = KJIT_STAGE_DERIVATIVES; return 0;
  case 'o': options->output = text; return 0;
  case 'q': options->is_quiet = true; return 0;
  case KEY_FACTS: options->facts = text; return 0;
  case KEY_CHECKS:
    if (!tool_parse_checks(text, &options->checks))
      argp_error(state, "--checks: expected " TOOL_CHECKS_EXPECTED ", not '%s'", text);
    return 0;
  case KEY_INTERRUPTIBLE: options->is_interruptible = true; return 0;
  case KEY_COMPILE_LIMIT: tool_parse_limit(state, text, &options->limits); return 0;
  case KEY_LINEINFO:
    options->debug = options->debug == KJIT_DEBUG_FULL ? KJIT_DEBUG_FULL : KJIT_DEBUG_LINES;
    return 0;
  case KEY_DEBUG: options->debug = KJIT_DEBUG_FULL; return 0;
  case KEY_PTX_VERSION: options->ptx_version = parse_version(state, text); return 0;
  case KEY_PTXAS: options->ptxas = text; return 0;
  case KEY_AFTER: options->after_pass = text; return 0;
  case KEY_LIBDEVICE: options->libdevice = text; return 0;
  case KEY_LIST: options->lists_kernels = true; return 0;
  case ARGP_KEY_ARG:
    if (options->path) argp_error(state, "expected only one kernel IR file, not also '%s'", text);
    options->path = text;
    return 0;
  case ARGP_KEY_END:
    if (!options->path) argp_error(state, "expected a kernel IR file ('-' is standard input)");
    if (options->function && options->kernel)
      argp_error(state, "--func and --kernel cannot be combined");
    if (options->symbol && !options->function) argp_error(state, "--symbol requires --func");
    if (options->function && options->type_count)
      argp_error(state, "--func takes --signature, not --type");
    if (options->after_pass && options->stage != KJIT_STAGE_TYPED)
      argp_error(state, "--after requires --emit typed");
    if (options->signature && options->type_count)
      argp_error(state, "--signature and --type cannot be combined");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

void compile_parse_options(int argc, char **argv, compile_options *options)
{
  char *stages = tool_stage_help(),
       *documentation = tool_format("%s%s%s", before_options, stages, after_stages);
  const struct argp parser = { option_table, parse_option, "FILE.kir", documentation,
                               NULL,         NULL,         NULL };
  *options = (compile_options){ .stage = -1, .arch = "cpu" };
  tool_parse_options(&parser, argc, argv, options);
  free(documentation);
  free(stages);
}

void compile_destroy_options(compile_options *options)
{
  free(options->types);
  tool_destroy_module_options(&options->module);
}
