/* kjit-cache build: compiles the kernels in the lists with a context for each target, without
 * running anything. */
#include <device.h>
#include <call.h>
#include <driver/progress.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "tool.h"

/* The state while one target is built. */
typedef struct builder {
  cache_tool *tool;
  kjit_context *context;
  kjit_device *device;
  char *path; /* path of the current module; NULL means an empty module */
  kjit_module *module;
} builder;

/* ---- modules ---- */

static bool is_open(const builder *b, const char *path)
{
  return b->module && (path && b->path ? !strcmp(path, b->path) : path == b->path);
}

static bool open_module(builder *b, const char *path)
{
  static const tool_module_options options;
  if (is_open(b, path)) return true;
  kjit_release_module(b->module);
  free(b->path);
  b->module = NULL;
  b->path = path ? tool_copy_text(path, strlen(path)) : NULL;
  return tool_open_module(&b->tool->error, b->context, path, &options, &b->module);
}

/* ---- steps ---- */

/* Compiles the kernel of a line such as "scale(f32[:] C, f32)". */
static bool compile_kernel(builder *b, const char *text)
{
  const char *open = strchr(text, '('), *close = strrchr(text, ')');
  tool_error *error = &b->tool->error;
  kjit_kernel *kernel = NULL;
  kjit_specialization *made;
  if (!open || open == text || !close || close < open || close[1])
    return tool_fail(error, TOOL_EXIT_USAGE, "expected `kernel NAME(SIGNATURE)`");
  char *name = tool_copy_text(text, (size_t)(open - text)),
       *signature = tool_copy_text(open + 1, (size_t)(close - open - 1));
  kjit_status status = kjit_get_kernel(b->module, name, &kernel);
  if (status == KJIT_OK) status = kjit_specialize(kernel, b->device, signature, &made);
  free(name);
  free(signature);
  return status == KJIT_OK || tool_fail_kjit(error, b->context, status, text);
}

static bool make_arguments(builder *b, const cache_step *step, tool_arguments *arguments)
{
  arguments->context = b->context;
  for (size_t i = 0; i < step->argument_count; i++)
    if (!tool_add_argument(arguments, "arg", step->arguments[i], &b->tool->error)) return false;
  return true;
}

static bool perform(builder *b, run_step *step, const char *text)
{
  if (step->call) return run_run_call(b->context, step);
  kjit_status status = kjit_launch(step->kernel, &step->config, step->arguments, step->count);
  return status == KJIT_OK || tool_fail_kjit(&b->tool->error, b->context, status, text);
}

/* Runs a step. Each step has its own arguments, so several steps can use the same name for a
 * result. */
static bool run_step_line(builder *b, const cache_step *step)
{
  tool_arguments arguments = { 0 };
  run_steps steps = { 0 };
  tool_error *error = &b->tool->error;
  const run_maker maker = { error, b->context, b->module, &arguments };
  const run_step_text text = { step->text,
                               step->kind == CACHE_CALL ? RUN_STEP_CALL : RUN_STEP_LAUNCH };
  bool ok = make_arguments(b, step, &arguments) && run_make_steps(&maker, &text, 1, &steps) &&
            run_upload(error, b->context, b->device, &steps);
  if (ok) run_bind_steps(&steps, b->device, 0);
  ok = ok && perform(b, &steps.items[0], step->text);
  run_destroy_steps(&steps);
  tool_destroy_arguments(&arguments);
  return ok;
}

static bool take_step(void *user, const cache_step *step)
{
  builder *b = user;
  if (!open_module(b, step->module)) return false;
  return step->kind == CACHE_KERNEL ? compile_kernel(b, step->text) : run_step_line(b, step);
}

/* ---- targets ---- */

/* Reads all lists and adds the code to the context that writes the file. */
static bool build_lists(builder *b, kjit_context *all)
{
  const cache_texts *lists = &b->tool->options.operands;
  tool_error *error = &b->tool->error;
  void *blob;
  size_t size_bytes;
  for (size_t i = 0; i < lists->count; i++)
    if (!cache_read_list(error, lists->items[i], take_step, b)) return false;
  kjit_status status = kjit_export_cache(b->context, &blob, &size_bytes);
  if (status != KJIT_OK) return tool_fail_kjit(error, b->context, status, "build");
  status = kjit_import_code(all, blob, size_bytes);
  kjit_free(b->context, blob);
  return status == KJIT_OK || tool_fail_kjit(error, all, status, "build");
}

static bool open_device(builder *b, const char *target)
{
  bool is_gpu = !strncmp(target, "sm_", strlen("sm_"));
  kjit_status status =
    kjit_get_device(b->context, is_gpu ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &b->device);
  if (status == KJIT_OK) return true;
  tool_fail_kjit(&b->tool->error, b->context, status, "--target");
  b->tool->error.exit_status = TOOL_EXIT_USAGE;
  return false;
}

static void say_target(const builder *b, const char *target)
{
  kjit_statistics counts = { .size_bytes = sizeof counts };
  if (kjit_get_statistics(b->context, &counts) == KJIT_OK)
    printf("%s: %" PRIu64 " kernel%s\n", target, counts.compilations,
           counts.compilations == 1 ? "" : "s");
}

static bool build_target(cache_tool *t, const char *target, kjit_context *all)
{
  builder b = { .tool = t };
  if (!cache_create_context(t, target, &b.context)) return false;
  bool ok = open_device(&b, target) && build_lists(&b, all);
  if (ok) say_target(&b, target);
  kjit_release_module(b.module);
  kjit_destroy_context(b.context);
  free(b.path);
  return ok;
}

bool cache_build(cache_tool *t)
{
  const cache_texts *targets = &t->options.targets;
  kjit_context *all;
  if (!targets->count)
    return tool_fail(&t->error, TOOL_EXIT_USAGE,
                     "build: expected --target: sm_75 and up, or a level of processors such as "
                     "x86-64-v2 or armv8-a");
  /* progress lines are switched off, because arrays for another target have no memory and nothing
   * is filled */
  tool_silence_progress();
  if (!cache_create_context(t, NULL, &all)) return false;
  bool ok = true;
  for (size_t i = 0; i < targets->count && ok; i++) ok = build_target(t, targets->items[i], all);
  ok = ok && cache_write(t, all);
  kjit_destroy_context(all);
  return ok;
}
