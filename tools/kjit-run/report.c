#include "report.h"

#include "call.h"
#include "device.h"
#include <driver/emit.h>
#include <driver/output_file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether this is the first launch of its kernel. Further launches of a kernel list the
 * same specializations. */
static bool is_first_of_kernel(const run_steps *steps, size_t index)
{
  for (size_t i = 0; i < index; i++)
    if (steps->items[i].kernel == steps->items[index].kernel) return false;
  return true;
}

static kjit_specialization *of_launch(const kjit_plan *plan, size_t launch)
{
  return kjit_get_prepared_specialization(kjit_get_plan_launch(plan, launch));
}

/* Returns the specialization with this index, counting launches of the same code once. */
static kjit_specialization *find_of_plan(const kjit_plan *plan, size_t index)
{
  for (size_t i = 0; i < kjit_get_plan_size(plan); i++) {
    size_t first = 0;
    while (of_launch(plan, first) != of_launch(plan, i)) first++;
    if (first == i && index-- == 0) return of_launch(plan, i);
  }
  return NULL;
}

static kjit_specialization *find_specialization(const run_steps *steps, size_t step, size_t index)
{
  const run_step *found = &steps->items[step];
  if (found->formula) return NULL; /* the library provides no specialization of a formula */
  if (found->call) return find_of_plan(found->call->plan, index);
  return is_first_of_kernel(steps, step) ? kjit_get_specialization(found->kernel, index) : NULL;
}

typedef struct visit {
  const run_step *step;
  kjit_specialization *specialization;
  kjit_specialization_info info;
} visit;

/* Moves to the next specialization of a step, or to the first one of the next step. Returns false
 * after the last step. */
static bool next_specialization(const run_steps *steps, size_t *step, size_t *index, visit *v)
{
  for (; *step < steps->count; ++*step, *index = 0) {
    v->step = &steps->items[*step];
    kjit_specialization *s = find_specialization(steps, *step, *index);
    if (!s) continue;
    ++*index;
    v->specialization = s;
    v->info = (kjit_specialization_info){ .size_bytes = sizeof v->info };
    kjit_get_specialization_info(s, &v->info);
    return true;
  }
  return false;
}

void run_show_times(const run_steps *steps, const run_timing *timing)
{
  visit v;
  size_t step = 0, index = 0;
  printf("%-24s %10s %10s %10s %10s %10s %10s  ms\n", "time", "parse", "infer", "lower", "optimize",
         "emit", "load");
  while (next_specialization(steps, &step, &index, &v)) {
    const uint64_t times[] = { v.info.parse_time_ns,    v.info.infer_time_ns, v.info.lower_time_ns,
                               v.info.optimize_time_ns, v.info.emit_time_ns,  v.info.load_time_ns };
    printf("%-24s", v.step->name);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
      printf(" %10.3f", (double)times[i] / 1e6);
    printf("  (%s) on %s\n", v.info.signature, v.info.target);
  }
  printf("time: first pass over %zu %s %.3f ms, all %llu %s %.3f ms on the device\n", steps->count,
         run_step_word(steps, steps->count != 1), (double)timing->first_ns / 1e6,
         (unsigned long long)timing->steps, run_step_word(steps, true),
         (double)timing->device_ns / 1e6);
}

static void show_gpu_code(const kjit_specialization_info *i)
{
  printf("  registers %u, shared %u bytes, local %u bytes, constant %u bytes, at most %u threads "
         "a block%s\n",
         i->registers, i->shared_bytes, i->local_bytes, i->constant_bytes, i->max_threads,
         i->is_plain ? ", plain code" : "");
}

/* Shows CPU code without its register count, which would be of no use: every kernel can use all
 * registers. */
static void show_cpu_code(const kjit_specialization_info *i)
{
  printf("  object %llu bytes, stack %u bytes, memory of a block %llu bytes, ",
         (unsigned long long)i->code_bytes, i->stack_bytes, (unsigned long long)i->block_bytes);
  if (i->vector_bits) printf("vectors of up to %u bits", i->vector_bits);
  else printf("no vectors");
  printf("%s\n", i->is_plain ? ", plain code" : "");
}

/* Shows the tapes and sums of the derivatives in the code, if it has any. */
static bool show_derivatives(tool_error *error, kjit_context *context, const visit *v)
{
  const tool_emission emission = { .context = context, .specialization = v->specialization };
  void *text;
  size_t size_bytes;
  if (!tool_emit(error, &emission, KJIT_STAGE_DERIVATIVES, &text, &size_bytes))
    return tool_prefix(error, "--info");
  for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
    printf("  %.*s\n", (int)(end - line), line);
  free(text);
  return true;
}

bool run_show_info(tool_error *error, kjit_context *context, const run_steps *steps,
                   const kjit_device *device)
{
  bool is_gpu = run_get_device_kind(device) == KJIT_DEVICE_CUDA;
  visit v;
  size_t step = 0, index = 0;
  while (next_specialization(steps, &step, &index, &v)) {
    const kjit_specialization_info *i = &v.info;
    printf("info %s(%s) on %s\n", v.step->name, i->signature, i->target);
    printf("  facts: %s\n", i->facts && *i->facts ? i->facts : "none");
    if (is_gpu) show_gpu_code(i);
    else show_cpu_code(i);
    if (i->elements_a_thread) printf("  grid_range: %u elements a thread\n", i->elements_a_thread);
    printf("  launches: %llu\n", (unsigned long long)i->launches);
    if (!show_derivatives(error, context, &v)) return false;
  }
  return true;
}

/* ---- --emit STAGE[=FILE] ---- */

static bool parse_emit(tool_error *error, const char *text, kjit_stage *stage, const char **path)
{
  const char *equals = strchr(text, '=');
  char *name = tool_copy_text(text, equals ? (size_t)(equals - text) : strlen(text)),
       *names = tool_stage_names();
  *path = equals ? equals + 1 : NULL;
  bool known =
    tool_find_stage(name, stage) ||
    tool_fail(error, TOOL_EXIT_USAGE, "--emit: expected one of %s, not '%s'", names, name);
  free(name);
  free(names);
  if (known && *path && !**path)
    return tool_fail(error, TOOL_EXIT_USAGE, "--emit: expected STAGE or STAGE=FILE, not '%s'",
                     text);
  return known;
}

bool run_check_emits(tool_error *error, const run_options *options, kjit_device *device)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_get_device_info(device, &info);
  for (size_t i = 0; i < options->emits.count; i++) {
    kjit_stage stage;
    const char *path;
    if (!parse_emit(error, options->emits.items[i], &stage, &path)) return false;
    if (!tool_stage_fits(stage, info.kind == KJIT_DEVICE_CUDA))
      return tool_fail(error, TOOL_EXIT_USAGE, "--emit: the target %s has no stage %s", info.target,
                       tool_stage_name(stage));
    if (!path && !tool_stage_is_text(stage))
      return tool_fail(error, TOOL_EXIT_USAGE, "--emit: %s is binary: name a file, --emit %s=FILE",
                       tool_stage_name(stage), tool_stage_name(stage));
  }
  return true;
}

static bool emit_specialization(tool_error *error, tool_emission *emission, const visit *v,
                                kjit_stage stage, FILE *file)
{
  void *code;
  size_t size_bytes;
  emission->specialization = v->specialization;
  if (!tool_emit(error, emission, stage, &code, &size_bytes))
    return tool_prefix(error, "--emit %s", tool_stage_name(stage));
  fwrite(code, 1, size_bytes, file);
  free(code);
  return true;
}

static bool emit_stage(tool_error *error, tool_emission *emission, const run_steps *steps,
                       kjit_stage stage, const char *path)
{
  tool_output_file output;
  if (!tool_create_output(error, path, &output)) return tool_prefix(error, "--emit");
  visit v;
  size_t step = 0, index = 0;
  bool ok = true, has_module = false; /* the stage kir contains the whole module */
  while (ok && next_specialization(steps, &step, &index, &v)) {
    tool_emission of_step = *emission;
    if (v.step->call) of_step.module = NULL;
    else if (stage == KJIT_STAGE_KIR && has_module) continue;
    has_module = has_module || !v.step->call;
    ok = emit_specialization(error, &of_step, &v, stage, output.stream);
  }
  if (tool_finish_output(error, &output, ok)) return true;
  return ok ? tool_prefix(error, "--emit") : false;
}

bool run_emit(tool_error *error, const run_options *options, kjit_context *context,
              kjit_module *module, const run_steps *steps)
{
  for (size_t i = 0; i < options->emits.count; i++) {
    kjit_stage stage;
    const char *path;
    tool_emission emission = { .context = context, .module = module };
    if (!parse_emit(error, options->emits.items[i], &stage, &path) ||
        !emit_stage(error, &emission, steps, stage, path))
      return false;
  }
  return true;
}
