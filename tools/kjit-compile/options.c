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
  KEY_AFTER
};

static const char before_options[] = "Compiles a kernel of a kernel IR file for a signature, ahead "
                                     "of time and without a GPU.\vSTAGE is one of\n";

static const char after_stages[] =
  "Without --emit the ending of FILE decides (.kir .ll .ptx .cubin .sass .s .o), else it is ptx "
  "for a GPU and asm for the CPU.\n"
  "\n"
  "SIGNATURE has a type for each parameter, separated by commas: a scalar (f32), an array with its "
  "dimensions and layout (f32[:], const f32[:, :] C, f64[:] "
  "F), "
  "a value for a const parameter (16), the name of a func for a parameter that takes one. Defaults "
  "at the end may be left out, and the whole signature where "
  "every parameter has a type in the source.\n"
  "\n"
  "Facts are what the code may rely on: all, or some of aligned16, offsets32, grid32 and disjoint, "
  "separated by blanks. Without any the code is right for all "
  "arguments of these types. Not in all: rows_aligned16, rows of arrays of rank 2 and more are "
  "multiples of 16 bytes; programmatic, the kernel may be launched with KJIT_LAUNCH_PROGRAMMATIC "
  "(sm_90 and up).\n"
  "\n"
  "Exit status: 0 success; 2 wrong command line, or a name that the module does not have; 3 the "
  "kernel IR or its types are wrong, the target cannot do it, or "
  "ptxas or the disassembler fails; 4 a file is missing, broken or cannot be written, standard "
  "output too; 5 the compiler library, ptxas or a disassembler is "
  "missing.\n"
  "\n"
  "Examples:\n"
  "  kjit-compile axpy.kir --arch sm_90 --facts all -o axpy.ptx \\\n"
  "    --signature 'f32[:] C, f32, const f32[:] C, const f32[:] C'\n"
  "  kjit-compile matmul.kir --arch sm_80 -o matmul.cubin \\\n"
  "    --type C='f32[:, :] C' --type A='const f32[:, :] C' \\\n"
  "    --type B='const f32[:, :] C'\n"
  "  kjit-compile axpy.kir --emit llvm-opt -s 'f64[:], f64, f64[:], f64[:]'";

static const struct argp_option option_table[] = {
  { 0, 0, 0, 0, "What to compile", 1 },
  { "kernel", 'k', "NAME", 0, "The kernel; default: the module's only one", 1 },
  { "signature", 's', "SIGNATURE", 0, "Types of the parameters", 1 },
  { "type", 't', "NAME=TYPE", 0, "Type of one parameter, instead of --signature", 1 },
  { "func", KEY_FUNC, "NAME", 0, "Instead of a kernel: a func, made a C function for elsewhere",
    1 },
  { "symbol", KEY_SYMBOL, "NAME", 0, "Name of that C function; default: the func's", 1 },
  TOOL_MODULE_HELP,
  { "list", KEY_LIST, 0, 0, "List the kernels and their parameters and exit", 1 },
  { 0, 0, 0, 0, "For what", 2 },
  { "arch", 'a', "sm_NN|cpu", 0, "The target: sm_75 and up, or this machine's CPU (default)", 2 },
  { "block", 'b', "XxYxZ", 0, "The block shape, when it is known", 2 },
  { "facts", KEY_FACTS, "FACTS", 0, "What the code may assume of the arguments", 2 },
  { "checks", KEY_CHECKS, "usual|all|none|LIST", 0,
    "What the code checks: some of bounds,division,assert,barrier,uninitialized,races and "
    "the halves of division, integer-division,float-division; default: "
    "none",
    2 },
  { "interruptible", KEY_INTERRUPTIBLE, 0, 0,
    "The code looks now and then whether its launch was interrupted", 2 },
  TOOL_LIMIT_HELP(KEY_COMPILE_LIMIT, 2),
  { "lineinfo", KEY_LINEINFO, 0, 0,
    "Tell debuggers and profilers which line each instruction is of", 2 },
  { "debug", KEY_DEBUG, 0, 0, "Tell debuggers lines and variables; the code is not optimized", 2 },
  { "ptx-version", KEY_PTX_VERSION, "M.N", 0,
    "The PTX version, 7.8 for example; default: the least that does", 2 },
  { "libdevice", KEY_LIBDEVICE, "FILE", 0,
    "Math functions for GPUs, LLVM bitcode, or libclc, which kjit brings along; default: the "
    "CUDA toolkit's, else libclc",
    2 },
  { 0, 0, 0, 0, "Result", 3 },
  { "emit", 'e', "STAGE", 0, "How far to go; see below", 3 },
  { "after", KEY_AFTER, "PASS", 0,
    "With --emit typed: as this pass leaves it; a wrong name lists those that there are", 3 },
  { "output", 'o', "FILE", 0, "Where to write; default: standard output", 3 },
  { "ptxas", KEY_PTXAS, "PATH", 0,
    "The assembler for cubin and sass; default: looked for on PATH and where toolkits are", 3 },
  { "quiet", 'q', 0, 0, "No warnings and no remarks", 3 },
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

/* By its form: whether there is such an architecture is the library's to say. */
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
    if (options->path) argp_error(state, "expected one file of kernel IR, not also '%s'", text);
    options->path = text;
    return 0;
  case ARGP_KEY_END:
    if (!options->path) argp_error(state, "expected a file of kernel IR ('-' is standard input)");
    if (options->function && options->kernel)
      argp_error(state, "--func and --kernel cannot be combined");
    if (options->symbol && !options->function)
      argp_error(state, "--symbol names the C function that --func makes");
    if (options->function && options->type_count)
      argp_error(state, "--func takes --signature, not --type");
    if (options->after_pass && options->stage != KJIT_STAGE_TYPED)
      argp_error(state, "--after goes with --emit typed");
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
