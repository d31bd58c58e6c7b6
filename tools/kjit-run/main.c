/* kjit-run: runs kernels in a kernel IR file, algorithms and formulas over arrays. main() contains
 * the sequence of a run; other files implement the steps. */
#include "device.h"
#include "interrupt.h"
#include "measure.h"
#include "options.h"
#include "output.h"
#include "report.h"
#include "sparse.h"
#include "step.h"
#include "sweep.h"

#include <driver/file.h>
#include <driver/input.h>
#include <driver/progress.h>
#include <driver/remark.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct run {
  run_options options;
  tool_error error;
  kjit_context *context;
  kjit_module *module;
  kjit_device *device;
  tool_arguments arguments;
  run_steps steps;
  run_outputs outputs;
  run_timing timing;
  size_t failed_checks;
} run;

static bool create_context(run *r)
{
  const char *cache = r->options.cache;
  if (cache && *cache && !tool_check_cache_folder(&r->error, cache)) return false;
  kjit_config config = { .size_bytes = sizeof config };
  if (!r->options.is_quiet) config.on_diagnostic = tool_show_remark;
  config.on_print = tool_show_print;
  config.libdevice_path = r->options.libdevice;
  config.checks = r->options.checks;
  config.interruptible = r->options.interruptible;
  config.debug = r->options.debug;
  config.plain_code = r->options.plain_code;
  config.compile_in_child = r->options.compiles_in_child;
  if (r->options.limits.size_bytes) config.compile_limits = &r->options.limits;
  config.cache_directory = cache;
  config.cache_limit_bytes = r->options.cache_limit_bytes;
  char *import_path = tool_import_path(&r->options.module);
  config.import_path = import_path;
  kjit_status status = kjit_create_context(&config, &r->context);
  free(import_path);
  return status == KJIT_OK || tool_fail(&r->error, TOOL_EXIT_DEVICE, "creating a context: %s",
                                        kjit_get_status_name(status));
}

static bool parse_module(run *r)
{
  return tool_open_module(&r->error, r->context, r->options.path, &r->options.module, &r->module);
}

static bool make_arguments(run *r)
{
  tool_progress("making the arguments", r->options.arguments.count);
  r->arguments.context = r->outputs.expected.context = r->context;
  for (size_t i = 0; i < r->options.arguments.count; i++) {
    if (!tool_add_argument(&r->arguments, "--arg", r->options.arguments.items[i], &r->error))
      return false;
    tool_progress_at(i + 1);
  }
  return true;
}

static bool prepare(run *r)
{
  const run_options *o = &r->options;
  const run_maker maker = { &r->error, r->context, r->module, &r->arguments };
  bool has_steps = o->path || o->step_count;
  return make_arguments(r) &&
         (!has_steps || run_make_steps(&maker, o->steps, o->step_count, &r->steps)) &&
         run_prepare_outputs(&r->error, o, &r->arguments, &r->outputs) &&
         (!has_steps || run_open_device(&r->error, r->context, o->device, &r->device)) &&
         (!has_steps || run_check_emits(&r->error, o, r->device));
}

static void say_device(const run *r)
{
  char *text = run_device_text(r->device);
  fprintf(stderr, "kjit-run: %zu %s, %llu time%s, on %s\n", r->steps.count,
          run_step_word(&r->steps, r->steps.count != 1), (unsigned long long)r->options.repeat,
          r->options.repeat == 1 ? "" : "s", text);
  free(text);
}

static bool execute(run *r)
{
  if (!r->steps.count) return true;
  if (!run_upload(&r->error, r->context, r->device, &r->steps)) return false;
  run_bind_steps(&r->steps, r->device, r->options.time_limit_ns);
  if (r->options.interruptible) run_begin_interrupts(r->context);
  bool ok =
    run_all_steps(&r->error, r->context, r->device, &r->steps, r->options.repeat, &r->timing);
  if (r->options.interruptible) run_end_interrupts();
  if (!ok && run_was_interrupted()) r->error.exit_status = TOOL_EXIT_INTERRUPTED;
  return ok && run_download(&r->error, r->context, &r->arguments);
}

static bool show(run *r)
{
  tool_stop_progress();
  if (!run_write_outputs(&r->error, &r->outputs, &r->failed_checks)) return false;
  if (r->options.bench &&
      !run_bench(&r->error, r->context, r->device, &r->steps, r->options.repeat, r->options.bench))
    return false;
  if (r->options.shows_time) run_show_times(&r->steps, &r->timing);
  if (r->options.shows_info && !run_show_info(&r->error, r->context, &r->steps, r->device))
    return false;
  return run_emit(&r->error, &r->options, r->context, r->module, &r->steps);
}

/* Warns about arguments that nothing uses. Such a name may be misspelled, and if the parameter that
 * was meant has a default value, there is no other message. */
static void warn_of_unused(const run *r)
{
  for (size_t i = 0; i < r->arguments.count; i++)
    if (!r->arguments.items[i].is_used)
      fprintf(stderr,
              "kjit-run: warning: --arg %s is not used: no %s and no other option names it\n",
              r->arguments.items[i].name, run_step_word(&r->steps, false));
  if (tool_unread_input())
    fprintf(stderr,
            "kjit-run: warning: standard input has %zu more bytes than the --args have read\n",
            tool_unread_input());
}

static bool sweep(run *r)
{
  const run_sweeper sweeper = { &r->error, r->context, r->module, &r->options };
  if (r->options.interruptible) run_begin_interrupts(r->context);
  bool ok = run_make_sweep(&sweeper);
  if (r->options.interruptible) run_end_interrupts();
  if (!ok && run_was_interrupted()) r->error.exit_status = TOOL_EXIT_INTERRUPTED;
  return ok;
}

static bool run_module(run *r)
{
  if (!run_check_sweep(&r->error, &r->options) || !parse_module(r)) return false;
  if (r->options.sweep) return sweep(r);
  if (!prepare(r)) return false;
  if (!r->options.is_quiet) warn_of_unused(r);
  if (r->options.is_verbose && r->steps.count) say_device(r);
  return execute(r) && show(r);
}

static void destroy(run *r)
{
  run_destroy_outputs(&r->outputs);
  run_destroy_steps(&r->steps);
  tool_destroy_arguments(&r->arguments);
  if (r->module) kjit_release_module(r->module);
  if (r->context) kjit_destroy_context(r->context);
  run_destroy_options(&r->options);
}

int main(int argc, char **argv)
{
  run r = { 0 };
  tool_watch_output();
  /* the parent process may have ignored SIGCHLD, and then the tool could not wait for child
   * processes */
  signal(SIGCHLD, SIG_DFL);
  run_parse_options(argc, argv, &r.options);
  if (r.options.is_quiet) {
    tool_silence_progress();
    run_silence_solvers();
  }
  bool ok = create_context(&r);
  if (ok && r.options.lists_devices) run_list_devices(r.context);
  if (ok && (r.options.path || r.options.step_count || r.options.output_count)) ok = run_module(&r);
  tool_stop_progress();
  tool_exit exit_status = tool_report(&r.error);
  if (exit_status == TOOL_EXIT_OK && r.failed_checks) exit_status = TOOL_EXIT_CHECK;
  destroy(&r);
  return exit_status;
}
