/* kjit-run's command line. */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <driver/error.h>
#include <driver/module.h>

typedef struct run_texts {
  const char **items; /* borrowed from argv */
  size_t count;
} run_texts;

typedef enum run_step_kind { RUN_STEP_LAUNCH, RUN_STEP_CALL, RUN_STEP_FORMULA } run_step_kind;
typedef struct run_step_text {
  const char *text;
  run_step_kind kind;
} run_step_text;

typedef enum run_output_kind { RUN_PRINT, RUN_SAVE, RUN_IMAGE, RUN_CHECK } run_output_kind;
typedef struct run_output_text {
  run_output_kind kind;
  const char *text;
} run_output_text;

typedef struct run_options {
  tool_module_options module;
  /* path of the kernel IR file; NULL if none was given, and no step is then a launch */
  const char *path;
  run_texts arguments, emits;
  /* NULL if the option was not given; without --csv the rows go to standard output */
  const char *sweep, *plot, *csv;
  run_texts besides;
  bool plots_bandwidth; /* false if the plot shows times */
  run_step_text *steps; /* steps in the order of the command line */
  size_t step_count;
  run_output_text *outputs; /* outputs in the order of the command line */
  size_t output_count;
  const char *device, *range, *libdevice;
  const char *cache;          /* directory of the disk cache; NULL means the user's default
                               * directory, "" no cache */
  uint64_t cache_limit_bytes; /* 0 means the library's default */
  double rtol, atol;
  uint64_t repeat, bench; /* bench 0 means no benchmark */
  uint32_t checks;        /* KJIT_CHECK_*; default: the usual checks, or none for benchmarks */
  bool has_checks;
  kjit_debug debug;
  kjit_plain_code plain_code;
  kjit_compile_limits limits; /* size_bytes 0 means that no limit was given */
  uint64_t time_limit_ns;     /* time limit of a launch or call; 0 means none */
  int interruptible;          /* 0 or 1; -1 if not given */
  bool compiles_in_child;
  bool lists_devices, shows_time, shows_info, is_verbose, is_quiet;
} run_options;

/* Exits with the usage status on a wrong command line, and with 0 after --help. */
void run_parse_options(int argc, char **argv, run_options *options);
void run_destroy_options(run_options *options);

#endif
