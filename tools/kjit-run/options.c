#define _GNU_SOURCE
#include "options.h"

#include <argp.h>
#include <driver/checks.h>
#include <driver/limits.h>
#include <driver/emit.h>
#include <driver/similar.h>
#include <driver/file.h>
#include <driver/scan.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
KJIT_API const char *argp_program_version =
  "kjit-run " TEXT(KJIT_VERSION_MAJOR) "." TEXT(KJIT_VERSION_MINOR) "." TEXT(KJIT_VERSION_PATCH);

enum option_key {
  KEY_CALL = 256,
  KEY_FORMULA,
  KEY_RTOL,
  KEY_ATOL,
  KEY_IMAGE,
  KEY_RANGE,
  KEY_DEVICES,
  KEY_LIBDEVICE,
  KEY_INFO,
  KEY_CHECKS,
  KEY_TIME_LIMIT,
  KEY_INTERRUPTIBLE,
  KEY_IN_CHILD,
  KEY_COMPILE_LIMIT,
  KEY_PLAIN_CODE,
  KEY_CACHE,
  KEY_NO_CACHE,
  KEY_CACHE_LIMIT,
  KEY_LINEINFO,
  KEY_DEBUG,
  KEY_SWEEP,
  KEY_PLOT,
  KEY_PLOT_OF,
  KEY_CSV,
  KEY_BESIDE
};

static const char before_options[] =
  "Runs the kernels of a kernel IR file with arrays as arguments: "
  "on a GPU if the machine has one, otherwise on the CPU.\v";

static const char values[] =
  "VALUE of --arg is one of\n"
  "  @FILE.npy[:as=TYPE]      a numpy.save file, converted to TYPE if given;\n"
  "                           also .csv, .tsv, .png, .pgm, .ppm\n"
  "  @FILE.npz[:NAME]         an array from a numpy.savez file\n"
  "  @FILE.csv[:COLUMN]       a table, or its column with this name\n"
  "  @-[:COLUMN]              standard input: an array in .npy format, or a table\n"
  "  [1, 2.5, 3]              the elements; [[1, 2], [3, 4]] has two dimensions\n"
  "  zeros:TYPE[SHAPE]        also ones: and full:...:value=V\n"
  "  arange:TYPE[SHAPE]       0, 1, 2 ... in row-major order; :start=A:step=B\n"
  "  rand:TYPE[SHAPE]         uniform in [0, 1); :low=A:high=B:seed=N\n"
  "  randn:TYPE[SHAPE]        normal; :mean=M:std=S:seed=N\n"
  "  randint:TYPE[SHAPE]      integers in [0, 100); :low=A:high=B:seed=N\n"
  "  view:NAME[a:b:c, ...]    shares the memory of another --arg\n"
  "  view:NAME.T              the transpose; may follow another view\n"
  "  2.5f32 7u64 true f16(1)  a scalar of that type\n"
  "  8 2.5 1e-3               an untyped number, as in the IR\n"
  "SHAPE is 1000 or 20,30 or nothing (no dimensions). An array with :order=F is column-major.\n"
  "\n"
  "LAUNCH is KERNEL[GRID, BLOCK, SHARED](ARGUMENTS). GRID and BLOCK are shapes such as 64, 8x8 or "
  "4x4x4. SHARED is the dynamic shared memory in bytes (optional). "
  "KERNEL[N](...) launches at least N threads. KERNEL(...) uses @grid and @block of the kernel, or "
  "the extents of its grid_range. An argument is the name of an --arg, a view (x[1:], x.T), a "
  "value, or a func. Without (ARGUMENTS) each parameter receives the "
  "--arg with the same name. adjoint(KERNEL, 0, 2)(ARGUMENTS) launches the adjoint of a kernel "
  "with respect to parameters 0 and 2; without numbers, with respect to all arrays of floats. "
  "Without --launch, kjit-run launches the only kernel of the module and passes each parameter "
  "the --arg with the same name.\n"
  "\n"
  "CALL is RESULT = ALGORITHM(OPERANDS, OPTION=VALUE). An operand is an --arg, a view such as "
  "x[1:], or a func with arguments and shape, which computes the elements "
  "(distance(x, y, 2f32)[1000]). An operator is a func or a name such as add. The "
  "call creates RESULT unless an --arg has this name. You can omit FILE.kir without "
  "launches.\n"
  "\n"
  "EXPRESSION of --formula has the syntax of numexpr and pandas.eval, such as "
  "where(a > 0, a * sin(b), 0). The result is a new array.\n"
  "\n"
  "EXPECTED of --check is a file that --save could have written, a VALUE, or the name of another "
  "--arg. A single number stands for every element.\n"
  "\n"
  "Exit status:\n"
  "  0  success\n"
  "  1  a --check failed\n"
  "  2  the command line is wrong\n"
  "  3  the kernel IR has an error or needs a feature of another target\n"
  "  4  a file is missing or damaged\n"
  "  5  a device, a launch or a driver failed\n"
  "\n"
  "Examples:\n"
  "  kjit-run axpy.kir --arg r=zeros:f32[1000] --arg a=2.5f32 \\\n"
  "    --arg x=randn:f32[1000] --arg y=ones:f32[1000] --print r\n"
  "  kjit-run diffusion.kir --arg a=@start.npy --arg b=zeros:f32[2000,2000] \\\n"
  "    --launch 'diffusion[250x250, 8x8](b, a, 8)' \\\n"
  "    --launch 'diffusion[250x250, 8x8](a, b, 8)' \\\n"
  "    --repeat 5000 --image a=heat.ppm\n"
  "  kjit-run --arg x=@x.npy --call 'total = reduce(x, add)' --print total\n"
  "  kjit-run axpy.kir ... --device cuda --check r=expected.npy --bench 50 --time";

static const struct argp_option option_table[] = {
  { 0, 0, 0, 0, "Input", 1 },
  { "arg", 'a', "NAME=VALUE", 0, "Define an argument: an array or a scalar", 1 },
  { "launch", 'l', "LAUNCH", 0, "Launch a kernel. You can repeat --launch; launches run in order",
    1 },
  { "call", KEY_CALL, "CALL", 0,
    "Call an algorithm on whole arrays. Calls and launches run in order", 1 },
  { "formula", KEY_FORMULA, "NAME=EXPRESSION", 0,
    "Compute an array from arrays with one shape, element by element", 1 },
  TOOL_MODULE_HELP,
  { "repeat", 'r', "N", 0, "Run all launches N times", 1 },
  { "device", 'd', "cpu|cuda[:N]|auto", 0,
    "Device to run on. auto (default) is the first GPU, or the CPU without a GPU", 1 },
  { "checks", KEY_CHECKS, "usual|all|none|LIST", 0,
    "Enable run-time checks. LIST is a comma-separated list of bounds, division, assert, barrier, "
    "uninitialized, races, integer-division and float-division. usual (default) enables bounds, "
    "division and assert. With --bench or --sweep the default is none; with --formula, bounds and "
    "assert",
    1 },
  { "time-limit", KEY_TIME_LIMIT, "SECONDS", 0,
    "Stop each launch or call after SECONDS; the error shows the current source line", 1 },
  { "interruptible", KEY_INTERRUPTIBLE, "yes|no", 0,
    "Let Ctrl-C stop kernels and show the current source line (default no, or yes with "
    "--time-limit)",
    1 },
  { "compile-in-child", KEY_IN_CHILD, "yes|no", OPTION_ARG_OPTIONAL,
    "Compile in a child process; a crash of LLVM or the driver's assembler becomes an error "
    "(default no)",
    1 },
  TOOL_LIMIT_HELP(KEY_COMPILE_LIMIT, 1),
  { "plain-code", KEY_PLAIN_CODE, "never|equal|always", 0,
    "Run plain code, which compiles faster, until the best code is ready: equal only for kernels "
    "whose results have the same bits with both, always for all kernels (default never)",
    1 },
  { "lineinfo", KEY_LINEINFO, 0, 0, "Add source line numbers for debuggers and profilers", 1 },
  { "debug", KEY_DEBUG, 0, 0, "Add lines and variables for debuggers; do not optimize", 1 },
  { 0, 0, 0, 0, "Results", 2 },
  { "print", 'p', "NAME", 0, "Print an array or a view such as r[:10]", 2 },
  { "save", 's', "NAME=FILE", 0,
    "Write an array or a view to a .npy, .npz, .csv, .tsv, .png, .pgm or .ppm file", 2 },
  { "check", 'c', "NAME=EXPECTED", 0, "Compare an array; the exit status is 1 after a difference",
    2 },
  { "rtol", KEY_RTOL, "X", 0, "Relative tolerance of --check for floats (1e-5)", 2 },
  { "atol", KEY_ATOL, "X", 0, "Absolute tolerance of --check for floats (1e-8)", 2 },
  { "image", KEY_IMAGE, "NAME=FILE.png", 0,
    "Write a two-dimensional array as a picture: .png and .ppm in colour, .pgm in grey", 2 },
  { "image-range", KEY_RANGE, "LOW:HIGH", 0,
    "Show LOW as the first and HIGH as the last colour (default minimum and maximum)", 2 },
  { 0, 0, 0, 0, "Measurement and inspection", 3 },
  { "bench", 'b', "N", 0, "After the run, time N repetitions on the device: median, minimum, GB/s",
    3 },
  { "sweep", KEY_SWEEP, "NAME=FIRST:LAST[:*F|:+D]", 0,
    "Time each launch and call for several sizes. --arg, --launch and --call use the size as NAME. "
    "*F multiplies and +D increments the size; by default it doubles. --device can be a list: "
    "cpu,cuda:0",
    3 },
  { "plot", KEY_PLOT, "FILE.svg", 0, "Plot the times of --sweep over the sizes", 3 },
  { "plot-of", KEY_PLOT_OF, "time|bandwidth", 0, "Quantity that --plot shows (default time)", 3 },
  { "csv", KEY_CSV, "FILE", 0, "Write the rows of --sweep to FILE (default standard output)", 3 },
  { "beside", KEY_BESIDE, "FILE.csv[:X:Y[:NAME]]", 0,
    "Add curves from FILE.csv to the plot: rows of an earlier --csv file, or any columns X and Y",
    3 },
  { "time", 't', 0, 0,
    "Show the time of each phase: parse, infer, lower, optimize, emit, load, launch", 3 },
  { "info", KEY_INFO, 0, 0,
    "Show each specialization: signature, facts, registers, memory, stack, vectors, and tapes and "
    "atomic sums of derivatives",
    3 },
  { "emit", 'e', "STAGE[=FILE]", 0,
    "Show a stage of the compilation: kir, typed, llvm, llvm-opt, ptx, cubin, sass, asm, object or "
    "derivatives",
    3 },
  { "libdevice", KEY_LIBDEVICE, "FILE", 0,
    "File of LLVM bitcode with GPU math functions, or libclc for the functions that kjit includes",
    3 },
  { "devices", KEY_DEVICES, 0, 0, "List the devices and exit", 3 },
  { 0, 0, 0, 0, "Other", 4 },
  { "cache", KEY_CACHE, "DIR", 0, "Disk cache directory (default in the home directory)", 4 },
  { "cache-limit", KEY_CACHE_LIMIT, "SIZE", 0,
    "Maximum cache size, such as 500M (default 1G). kjit removes the least recently used entries "
    "first",
    4 },
  { "no-cache", KEY_NO_CACHE, 0, 0, "Do not use the disk cache", 4 },
  { "verbose", 'v', 0, 0, "Show each step and its device", 4 },
  { "quiet", 'q', 0, 0, "Do not show warnings, remarks or progress", 4 },
  { 0 },
};

static void append(run_texts *texts, const char *text)
{
  const char **items = realloc(texts->items, (texts->count + 1) * sizeof *items);
  if (!items) exit(TOOL_EXIT_DEVICE);
  texts->items = items;
  texts->items[texts->count++] = text;
}

static void append_step(run_options *options, run_step_kind kind, const char *text)
{
  run_step_text *steps = realloc(options->steps, (options->step_count + 1) * sizeof *steps);
  if (!steps) exit(TOOL_EXIT_DEVICE);
  options->steps = steps;
  options->steps[options->step_count++] = (run_step_text){ text, kind };
}

/* Returns whether a kernel IR file is required: for launches, or if there are no steps and no
 * arrays to show or write. */
static bool needs_file(const run_options *options)
{
  for (size_t i = 0; i < options->step_count; i++)
    if (options->steps[i].kind == RUN_STEP_LAUNCH) return true;
  bool has_output = options->output_count && !options->emits.count && !options->bench &&
                    !options->sweep && !options->shows_time && !options->shows_info;
  return !options->step_count && !options->lists_devices && !has_output;
}

static void append_output(run_options *options, run_output_kind kind, const char *text)
{
  run_output_text *outputs =
    realloc(options->outputs, (options->output_count + 1) * sizeof *outputs);
  if (!outputs) exit(TOOL_EXIT_DEVICE);
  options->outputs = outputs;
  options->outputs[options->output_count++] = (run_output_text){ kind, text };
}

static uint64_t parse_count(struct argp_state *state, const char *option, const char *text)
{
  tool_error ignored = { 0 };
  tool_scanner scanner = tool_scan(option, text, &ignored);
  int64_t value = 0;
  if (!tool_scan_integer(&scanner, "a number", &value) || !tool_at_end(&scanner) || value < 1)
    argp_error(state, "%s: expected a positive number, not '%s'", option, text);
  free(ignored.text);
  return (uint64_t)value;
}

static double parse_tolerance(struct argp_state *state, const char *option, const char *text)
{
  char *end;
  double value = strtod(text, &end);
  if (*end || end == text || !(value >= 0) || isinf(value))
    argp_error(state, "%s: expected a number of at least 0, not '%s'", option, text);
  return value;
}

/* Returns KJIT_PLAIN_DEFAULT for an unknown name. */
static kjit_plain_code parse_plain_code(const char *text)
{
  static const struct {
    const char *name;
    kjit_plain_code value;
  } rows[] = { { "never", KJIT_PLAIN_NEVER },
               { "equal", KJIT_PLAIN_EQUAL },
               { "always", KJIT_PLAIN_ALWAYS } };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, text)) return rows[i].value;
  return KJIT_PLAIN_DEFAULT;
}

static uint64_t parse_time(struct argp_state *state, const char *text)
{
  char *end;
  double seconds = strtod(text, &end);
  if (*end || end == text || !(seconds > 0) || seconds > 1e9)
    argp_error(state, "--time-limit: expected a number of seconds, not '%s'", text);
  uint64_t time_ns = (uint64_t)(seconds * 1e9);
  return time_ns ? time_ns : 1;
}

/* Handles options whose value is stored unchanged, or which a single function parses. */
static bool take_plain_option(run_options *options, int key, char *text, struct argp_state *state)
{
  switch (key) {
  case 'a': append(&options->arguments, text); return true;
  case 'l': append_step(options, RUN_STEP_LAUNCH, text); return true;
  case KEY_CALL: append_step(options, RUN_STEP_CALL, text); return true;
  case KEY_FORMULA: append_step(options, RUN_STEP_FORMULA, text); return true;
  case 'e': append(&options->emits, text); return true;
  case 'r': options->repeat = parse_count(state, "--repeat", text); return true;
  case 'b': options->bench = parse_count(state, "--bench", text); return true;
  case 'd': options->device = text; return true;
  case 'p': append_output(options, RUN_PRINT, text); return true;
  case 's': append_output(options, RUN_SAVE, text); return true;
  case 'c': append_output(options, RUN_CHECK, text); return true;
  case KEY_IMAGE: append_output(options, RUN_IMAGE, text); return true;
  case KEY_RANGE: options->range = text; return true;
  case KEY_RTOL: options->rtol = parse_tolerance(state, "--rtol", text); return true;
  case KEY_ATOL: options->atol = parse_tolerance(state, "--atol", text); return true;
  case KEY_LIBDEVICE: options->libdevice = text; return true;
  case KEY_SWEEP: options->sweep = text; return true;
  case KEY_PLOT: options->plot = text; return true;
  case KEY_CSV: options->csv = text; return true;
  case KEY_BESIDE: append(&options->besides, text); return true;
  case KEY_TIME_LIMIT: options->time_limit_ns = parse_time(state, text); return true;
  case KEY_COMPILE_LIMIT: tool_parse_limit(state, text, &options->limits); return true;
  case KEY_DEBUG: options->debug = KJIT_DEBUG_FULL; return true;
  case KEY_NO_CACHE: options->cache = ""; return true;
  case KEY_DEVICES: options->lists_devices = true; return true;
  case KEY_INFO: options->shows_info = true; return true;
  case 't': options->shows_time = true; return true;
  case 'v': options->is_verbose = true; return true;
  case 'q': options->is_quiet = true; return true;
  default: return false;
  }
}

/* Returns the default checks. Formulas have no division check. A formula computes both values of a
 * `where`, so a program may divide by 0 and not use the quotient. */
static uint32_t usual_checks(const run_options *options)
{
  if (options->bench || options->sweep) return KJIT_CHECK_NONE;
  for (size_t i = 0; i < options->step_count; i++)
    if (options->steps[i].kind == RUN_STEP_FORMULA)
      return KJIT_CHECK_USUAL & ~(uint32_t)KJIT_CHECK_DIVISION;
  return KJIT_CHECK_USUAL;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  run_options *options = state->input;
  if (tool_take_module_option(&options->module, key, text) ||
      take_plain_option(options, key, text, state))
    return 0;
  switch (key) {
  case KEY_CHECKS:
    if (!tool_parse_checks(text, &options->checks))
      argp_error(state, "--checks: expected " TOOL_CHECKS_EXPECTED ", not '%s'", text);
    options->has_checks = true;
    return 0;
  case KEY_PLOT_OF:
    options->plots_bandwidth = strcmp(text, "bandwidth") == 0;
    if (!options->plots_bandwidth && strcmp(text, "time") != 0)
      argp_error(state, "--plot-of: expected time or bandwidth, not '%s'", text);
    return 0;
  case KEY_INTERRUPTIBLE:
    options->interruptible = strcmp(text, "yes") == 0 ? 1 : strcmp(text, "no") == 0 ? 0 : -2;
    if (options->interruptible < 0)
      argp_error(state, "--interruptible: expected yes or no, not '%s'", text);
    return 0;
  case KEY_IN_CHILD:
    options->compiles_in_child = !text || strcmp(text, "yes") == 0;
    if (!options->compiles_in_child && strcmp(text, "no") != 0)
      argp_error(state, "--compile-in-child: expected yes or no, not '%s'", text);
    return 0;
  case KEY_PLAIN_CODE:
    options->plain_code = parse_plain_code(text);
    if (options->plain_code == KJIT_PLAIN_DEFAULT)
      argp_error(state, "--plain-code: expected never, equal or always, not '%s'", text);
    return 0;
  case KEY_LINEINFO:
    options->debug = options->debug == KJIT_DEBUG_FULL ? KJIT_DEBUG_FULL : KJIT_DEBUG_LINES;
    return 0;
  case KEY_CACHE:
    if (!*text)
      argp_error(state, "--cache: expected a directory (use --no-cache to disable the cache)");
    options->cache = text;
    return 0;
  case KEY_CACHE_LIMIT:
    if (!tool_parse_size(text, &options->cache_limit_bytes) || !options->cache_limit_bytes)
      argp_error(state,
                 "--cache-limit: expected a size such as 500M or 2G, not '%s' (use --no-cache to "
                 "disable the cache)",
                 text);
    return 0;
  case ARGP_KEY_ARG:
    if (options->path) argp_error(state, "expected only one kernel IR file, not also '%s'", text);
    options->path = text;
    return 0;
  case ARGP_KEY_END:
    if (options->time_limit_ns && !options->interruptible)
      argp_error(state, "--time-limit requires interruptible code: omit --interruptible no");
    if (options->interruptible < 0) options->interruptible = options->time_limit_ns != 0;
    if (!options->has_checks) options->checks = usual_checks(options);
    if (!options->path && needs_file(options))
      argp_error(state, "expected a kernel IR file ('-' is standard input)");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

void run_parse_options(int argc, char **argv, run_options *options)
{
  char *documentation = tool_format("%s%s", before_options, values);
  const struct argp parser = { option_table, parse_option, "FILE.kir", documentation,
                               NULL,         NULL,         NULL };
  *options =
    (run_options){ .repeat = 1, .rtol = 1e-5, .atol = 1e-8, .device = "auto", .interruptible = -1 };
  tool_parse_options(&parser, argc, argv, options);
  free(documentation);
}

void run_destroy_options(run_options *options)
{
  tool_destroy_module_options(&options->module);
  free(options->arguments.items);
  free(options->steps);
  free(options->emits.items);
  free(options->besides.items);
  free(options->outputs);
}
