/* kjit-compile: compiles a kernel of a kernel IR file for a signature, ahead of time and without a
 * device. */
#include "options.h"
#include "signature.h"

#include <driver/derived.h>
#include <driver/emit.h>
#include <driver/file.h>
#include <driver/remark.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct compilation {
  compile_options options;
  tool_error error;
  kjit_context *context;
  kjit_module *module;
  kjit_kernel *kernel;
  tool_adjoint adjoint;    /* module that owns the kernel, if --kernel names an adjoint */
  kjit_function *function; /* the func of --func, compiled instead of the kernel */
  const char *kernel_name;
  char *signature;
} compilation;

static bool create_context(compilation *c)
{
  kjit_config config = { .size_bytes = sizeof config };
  if (!c->options.is_quiet) config.on_diagnostic = tool_show_remark;
  config.libdevice_path = c->options.libdevice;
  if (c->options.limits.size_bytes) config.compile_limits = &c->options.limits;
  char *import_path = tool_import_path(&c->options.module);
  config.import_path = import_path;
  kjit_status status = kjit_create_context(&config, &c->context);
  free(import_path);
  return status == KJIT_OK || tool_fail(&c->error, TOOL_EXIT_DEVICE, "creating a context: %s",
                                        kjit_get_status_name(status));
}

static bool parse_module(compilation *c)
{
  return tool_open_module(&c->error, c->context, c->options.path, &c->options.module, &c->module);
}

/* Chooses the stage. Refuses to write a binary to a terminal, because that is usually a mistake. */
static bool choose_stage(compilation *c)
{
  compile_options *o = &c->options;
  bool is_gpu = strcmp(o->arch, "cpu") != 0;
  if (o->stage < 0 && o->output) o->stage = tool_stage_of_path(o->output);
  if (o->stage < 0) o->stage = is_gpu ? KJIT_STAGE_PTX : KJIT_STAGE_ASM;
  if (!tool_stage_fits(o->stage, is_gpu))
    return tool_fail(&c->error, TOOL_EXIT_USAGE, "the target %s has no stage %s%s", o->arch,
                     tool_stage_name(o->stage),
                     is_gpu ? "" : "; --arch sm_NN names a GPU architecture");
  if (!tool_stage_is_text(o->stage) && !o->output && isatty(STDOUT_FILENO))
    return tool_fail(&c->error, TOOL_EXIT_USAGE,
                     "%s is binary and standard output is a terminal: name a file with -o",
                     tool_stage_name(o->stage));
  return true;
}

static bool choose_adjoint(compilation *c, tool_scanner *scanner)
{
  bool ok =
    tool_scan_adjoint(scanner, c->context, c->module, &c->adjoint) && tool_expect_end(scanner);
  c->kernel = c->adjoint.kernel;
  c->kernel_name = c->adjoint.name;
  return ok;
}

static bool choose_kernel(compilation *c)
{
  tool_scanner scanner = tool_scan("--kernel", c->options.kernel, &c->error);
  if (c->options.kernel && tool_is_adjoint(&scanner)) return choose_adjoint(c, &scanner);
  const char *first = kjit_get_kernel_name(c->module, 0);
  c->kernel_name = c->options.kernel ? c->options.kernel : first;
  if (!c->kernel_name) return tool_fail(&c->error, TOOL_EXIT_IR, "the module has no kernel");
  if (!c->options.kernel && kjit_get_kernel_name(c->module, 1))
    return tool_fail(&c->error, TOOL_EXIT_USAGE,
                     "the module has more than one kernel (%s, %s ...); choose one with --kernel",
                     first, kjit_get_kernel_name(c->module, 1));
  kjit_status status = kjit_get_kernel(c->module, c->kernel_name, &c->kernel);
  return status == KJIT_OK || tool_fail_named(&c->error, c->context, status, "--kernel");
}

static bool find_function(compilation *c)
{
  tool_scanner scanner = tool_scan("--func", c->options.function, &c->error);
  if (tool_is_derivative(&scanner))
    return tool_scan_derivative(&scanner, c->context, c->module, &c->function) &&
           tool_expect_end(&scanner);
  kjit_status status = kjit_get_function(c->module, c->options.function, &c->function);
  return status == KJIT_OK || tool_fail_named(&c->error, c->context, status, "--func");
}

static bool choose_function(compilation *c)
{
  if (!find_function(c)) return false;
  const char *signature = c->options.signature ? c->options.signature : "";
  c->signature = tool_copy_text(signature, strlen(signature));
  return true;
}

static bool emit(compilation *c)
{
  void *code;
  size_t size_bytes;
  tool_emission emission = { .context = c->context,
                             .module = c->adjoint.module ? c->adjoint.module : c->module,
                             .kernel = c->kernel,
                             .signature = c->signature };
  emission.options = (kjit_compile_options){ .size_bytes = sizeof emission.options };
  emission.function = c->function;
  emission.symbol = c->options.symbol;
  emission.options.target = c->options.arch;
  emission.options.ptx_version = c->options.ptx_version;
  emission.options.facts = c->options.facts;
  emission.options.checks = c->options.checks;
  emission.options.interruptible = c->options.is_interruptible;
  emission.options.debug = c->options.debug;
  emission.options.ptxas = c->options.ptxas;
  emission.options.after_pass = c->options.after_pass;
  memcpy(emission.options.block, c->options.block, sizeof c->options.block);
  if (!tool_emit(&c->error, &emission, c->options.stage, &code, &size_bytes)) return false;
  bool ok = tool_write_file(&c->error, c->options.output, code, size_bytes);
  free(code);
  return ok;
}

static bool compile_module(compilation *c)
{
  if (!parse_module(c)) return false;
  if (c->options.lists_kernels) {
    compile_list_kernels(c->context, c->module);
    return true;
  }
  if (!choose_stage(c)) return false;
  /* emits the whole module, for which no signature is needed */
  if (c->options.stage == KJIT_STAGE_KIR) return emit(c);
  if (c->options.function) return choose_function(c) && emit(c);
  return choose_kernel(c) &&
         compile_make_signature(&c->error, c->context, c->kernel, c->kernel_name, &c->options,
                                &c->signature) &&
         emit(c);
}

int main(int argc, char **argv)
{
  compilation c = { 0 };
  tool_watch_output();
  /* the parent process may have ignored SIGCHLD, and then the tool could not wait for child
   * processes */
  signal(SIGCHLD, SIG_DFL);
  compile_parse_options(argc, argv, &c.options);
  if (create_context(&c)) compile_module(&c);
  tool_exit exit_status = tool_report(&c.error);
  free(c.signature);
  if (c.adjoint.module) kjit_release_module(c.adjoint.module);
  if (c.module) kjit_release_module(c.module);
  if (c.context) kjit_destroy_context(c.context);
  compile_destroy_options(&c.options);
  return exit_status;
}
