/* Implements kjit_compile and related functions, which compile for a signature without a device,
 * and the functions that return the types and code of funcs.
 */
#include <ctype.h>
#include <kjit/code.h>
#include <kjit/function.h>
#include <stdlib.h>
#include <string.h>

#include "code/compile_thread.h"
#include "code/disk.h"
#include "cuda/linker.h"
#include "cuda/toolkit.h"
#include "native/architecture.h"
#include "native/functions.h"

typedef struct request {
  kjit_kernel *kernel;
  kj_diagnostics *diagnostics;
  kj_bound *bound; /* const parameters, for evaluating @block */
  kj_argument *arguments;
  uint8_t *relations;
  kj_signature signature;
} request;

/* ---- options ---- */

static kjit_status read_target(request *r, const char *text, kj_target *target)
{
  if (kj_read_target(text, target)) return KJIT_OK;
  return kj_error(r->diagnostics, KJIT_ERROR_ARGUMENT,
                  "target: expected cpu, " KJ_LEVEL_NAMES ", or sm_75 and up, got `%s`", text);
}

static kjit_status choose_block(request *r, const kjit_compile_options *options, bool is_cpu)
{
  const kjit_kernel *kernel = r->kernel;
  uint32_t *block = r->signature.block, wanted[3];
  bool is_given = options->block[0] || options->block[1] || options->block[2];
  for (int i = 0; i < 3 && is_given; i++) block[i] = options->block[i] ? options->block[i] : 1;
  is_given = is_given || block[0]; /* the facts have set the block */
  if (kernel->block && (kernel->block_is_static || (is_cpu && !is_given))) {
    kj_scope scope = { .bound = r->bound,
                       .bound_count = kernel->parameter_count,
                       .bindings = kernel->bindings,
                       .binding_count = kernel->binding_count };
    KJ_TRY(kj_evaluate_attribute(kernel, &scope, kernel->block, r->diagnostics, wanted));
    if (is_given && memcmp(block, wanted, sizeof wanted))
      return kj_error_at(
        r->diagnostics, kernel->module, kernel->block->location, KJIT_ERROR_ARGUMENT,
        "kernel `%s`: @block is %u x %u x %u, but the options request %u x %u x %u",
        kernel->function->decl->name, wanted[0], wanted[1], wanted[2], block[0], block[1],
        block[2]);
    memcpy(block, wanted, sizeof wanted);
    is_given = true;
  }
  if (is_cpu && !is_given)
    memcpy(block, (const uint32_t[3]){ KJ_DEFAULT_BLOCK, 1, 1 }, sizeof wanted);
  if (!block[0]) return KJIT_OK;
  uint64_t threads = (uint64_t)block[0] * block[1];
  bool is_valid = block[1] && block[2] && block[0] <= 1024 && block[1] <= 1024 && block[2] <= 64 &&
                  threads * block[2] <= 1024;
  if (!is_valid && kernel->block)
    return kj_error_at(
      r->diagnostics, kernel->module, kernel->block->location, KJIT_ERROR_ARGUMENT,
      "kernel `%s`: a block has at most 1024 threads, in a shape of at most 1024 x 1024 x 64, got "
      "%u x %u x %u",
      kernel->function->decl->name, block[0], block[1], block[2]);
  return is_valid
           ? KJIT_OK
           : kj_error(
               r->diagnostics, KJIT_ERROR_ARGUMENT,
               "block: expected at most 1024 threads, in a shape of at most 1024 x 1024 x 64, "
               "got %u x %u x %u",
               block[0], block[1], block[2]);
}

/* ---- stages ---- */

/* ---- the compilation ---- */

/* Stages in addition to kjit_stage. CHECK_ONLY: type inference without output. RESULT_ONLY: only
 * the result type, which the disk cache may contain, so that no compiler is needed. */
enum { CHECK_ONLY = KJIT_STAGE_COUNT, RESULT_ONLY };

/* Makes a cubin of the kernel and the code that is linked with it. */
static kjit_status link_inputs(const kjit_compile_options *options, const kj_link_inputs *inputs,
                               kj_diagnostics *diagnostics, void **cubin, size_t *cubin_bytes)
{
  kj_prepared_inputs prepared;
  const kj_link_target target = { .name = options->target, .debug = options->debug };
  KJ_TRY(kj_prepare_inputs(&target, inputs->items, inputs->count, diagnostics, &prepared));
  kjit_status status =
    kj_link_by_library(&target, prepared.items, prepared.count, diagnostics, cubin, cubin_bytes);
  kj_free_prepared(&prepared);
  return status;
}

/* Makes a cubin. Uses nvJitLink if the PTX calls linked code, otherwise ptxas. */
static kjit_status make_cubin(const kjit_module *module, const kjit_compile_options *options,
                              bool is_part, kj_diagnostics *diagnostics, const kj_code *made,
                              void **cubin, size_t *cubin_bytes)
{
  const kj_assembly assembly = {
    .ptxas = options->ptxas, .target = options->target, .debug = options->debug, .is_part = is_part
  };
  kj_link_inputs inputs;
  KJ_TRY(kj_list_link_inputs(module, made, diagnostics, &inputs));
  kjit_status status =
    inputs.count > 1 && !is_part
      ? link_inputs(options, &inputs, diagnostics, cubin, cubin_bytes)
      : kj_assemble(&assembly, made->data, made->size_bytes, diagnostics, cubin, cubin_bytes);
  kj_free_link_inputs(&inputs);
  return status;
}

/* Replaces PTX by the output that NVIDIA's programs create from it. */
static kjit_status run_assembler(const kjit_module *module, const kjit_compile_options *options,
                                 bool is_part, kjit_stage stage, kj_diagnostics *diagnostics,
                                 kj_code *made)
{
  void *cubin, *result;
  size_t cubin_bytes, result_bytes;
  KJ_TRY(make_cubin(module, options, is_part, diagnostics, made, &cubin, &cubin_bytes));
  result = cubin;
  result_bytes = cubin_bytes;
  kjit_status status = stage == KJIT_STAGE_SASS
                         ? kj_disassemble(cubin, cubin_bytes, diagnostics, &result, &result_bytes)
                         : KJIT_OK;
  if (status != KJIT_OK || result != cubin) free(cubin);
  if (status != KJIT_OK) return status;
  free(made->data);
  made->data = result;
  made->size_bytes = result_bytes;
  return KJIT_OK;
}

static kjit_status check_stage(request *r, const kjit_compile_options *options, kjit_stage stage,
                               kj_target_kind target)
{
  static const char *const names[] = {
#define STAGE_NAME(name, text, is_text, what) text,
    KJIT_STAGES(STAGE_NAME)
#undef STAGE_NAME
  };
  if (kj_has_stage(target, stage)) return KJIT_OK;
  return kj_error(r->diagnostics, KJIT_ERROR_ARGUMENT,
                  "stage: %s exists only for %s targets, but the target is %s", names[stage],
                  target == KJ_TARGET_CPU ? "GPU" : "CPU",
                  options->target ? options->target : "cpu");
}

/* Makes the compile request. stage is a kjit_stage, CHECK_ONLY or RESULT_ONLY. */
static kjit_status make_request(request *r, const char *symbol, const kjit_compile_options *options,
                                kjit_stage stage, kj_compile_request *made)
{
  bool is_check = (int)stage == CHECK_ONLY || (int)stage == RESULT_ONLY;
  if (is_check) stage = KJIT_STAGE_TYPED;
  bool is_assembled = stage == KJIT_STAGE_CUBIN || stage == KJIT_STAGE_SASS;
  *made = (kj_compile_request){ .module = r->kernel->module,
                                .kernel = r->kernel->function,
                                .signature = &r->signature,
                                .stage = is_assembled ? KJIT_STAGE_PTX : stage,
                                .after_pass = options->after_pass,
                                .checks = options->checks,
                                .debug = options->debug,
                                .is_interruptible = options->interruptible != 0,
                                .symbol = symbol,
                                .is_ahead = true,
                                .is_check = is_check };
  if (options->limits) made->limits = *options->limits;
  KJ_TRY(read_target(r, options->target ? options->target : "cpu", &made->target));
  KJ_TRY(check_stage(r, options, stage, made->target.kind));
  made->target.ptx_version = options->ptx_version;
  if (options->facts)
    KJ_TRY(kj_read_facts(r->kernel, options->facts, r->arguments, r->relations, &r->signature,
                         r->diagnostics));
  return choose_block(r, options, made->target.kind == KJ_TARGET_CPU);
}

static kjit_status run_compiler(request *r, const kj_compile_request *wanted, kj_code *made)
{
  kj_runtime *runtime = kj_get_runtime(r->kernel->context);
  if (!runtime) return kj_error(r->diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(kj_get_compiler(runtime, r->diagnostics));
  return kj_call_compiler(runtime, wanted, r->diagnostics, made);
}

static kjit_status find_result(request *r, const kj_compile_request *wanted, kj_code *made)
{
  kj_disk_key key = { 0 };
  kj_runtime *runtime = kj_get_runtime(r->kernel->context);
  if (!runtime) return kj_error(r->diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  bool is_kept = (kj_keeps_code(runtime->disk) || runtime->context->config.target ||
                  kj_has_named_code(runtime)) &&
                 kj_make_disk_key(runtime->disk, NULL, wanted, &key);
  bool is_found = is_kept && kj_fetch_result(runtime, wanted, &key, &made->result);
  kjit_status status = is_found ? KJIT_OK : run_compiler(r, wanted, made);
  if (status == KJIT_OK && is_kept && !is_found)
    kj_publish_result(runtime, wanted, &key, made->result);
  kj_free_disk_key(&key);
  return status;
}

static void close_request(request *r)
{
  free(r->bound);
  free(r->arguments);
  free(r->relations);
}

/* Initializes a request without a signature. The caller must free it by close_request, also after
 * an error. */
static kjit_status open_request(request *r, kjit_kernel *kernel, kj_diagnostics *diagnostics)
{
  uint32_t count = kernel->parameter_count;
  *r = (request){ .kernel = kernel, .diagnostics = diagnostics };
  r->bound = calloc(count + 1, sizeof *r->bound);
  r->arguments = calloc(count + 1, sizeof *r->arguments);
  r->relations = calloc((size_t)count * count + 1, sizeof *r->relations);
  r->signature.arguments = r->arguments;
  r->signature.count = count;
  if (r->bound && r->arguments && r->relations) return KJIT_OK;
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

static kjit_status make_stage(request *r, const char *symbol, const kjit_compile_options *options,
                              kjit_stage stage, kj_code *made)
{
  kj_compile_request wanted;
  KJ_TRY(make_request(r, symbol, options, stage, &wanted));
  if ((int)stage == RESULT_ONLY) return find_result(r, &wanted, made);
  KJ_TRY(run_compiler(r, &wanted, made));
  bool is_assembled = stage == KJIT_STAGE_CUBIN || stage == KJIT_STAGE_SASS;
  return is_assembled
           ? run_assembler(r->kernel->module, options, symbol != NULL, stage, r->diagnostics, made)
           : KJIT_OK;
}

static kjit_status compile(kjit_kernel *kernel, const char *signature, const char *symbol,
                           const kjit_compile_options *options, kjit_stage stage,
                           kj_diagnostics *diagnostics, kj_code *made)
{
  request r;
  kjit_status status = open_request(&r, kernel, diagnostics);
  if (status == KJIT_OK)
    status = kj_read_signature(kernel, signature, r.arguments, r.bound, diagnostics);
  if (status == KJIT_OK) status = make_stage(&r, symbol, options, stage, made);
  close_request(&r);
  return status;
}

/* Reads the options. On return, *read may point to *limits. */
static kjit_status read_options(kjit_context *context, const char *call,
                                const kjit_compile_options *options, kjit_compile_options *read,
                                kjit_compile_limits *limits)
{
  KJ_TRY(ki_read_sized(context, call, KI_COMPILE_OPTIONS, options, read));
  KJ_TRY(ki_read_limits(context, call, read->limits, context->config.compile_limits, limits));
  read->limits = limits;
  return ki_verify_checks(context, call, read->checks);
}

static kjit_status compile_as(const char *call, kjit_kernel *kernel, const char *signature,
                              const char *symbol, const kjit_compile_options *options,
                              kjit_stage stage, void **code, size_t *size_bytes)
{
  kjit_compile_options read;
  kjit_compile_limits limits;
  kjit_context *context = kernel->context;
  if (!signature || !code || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: %s is NULL", call,
                        !signature ? "signature"
                        : !code    ? "code"
                                   : "size_bytes");
  if ((unsigned)stage >= KJIT_STAGE_COUNT)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: stage %d is not a value of kjit_stage",
                        call, (int)stage);
  KJ_TRY(read_options(context, call, options, &read, &limits));
  if (read.after_pass && stage != KJIT_STAGE_TYPED)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: after_pass requires the stage TYPED",
                        call);
  KJ_TRY(ki_verify_debug(context, call, read.debug));
  kj_diagnostics diagnostics = { 0 };
  kj_code made = { 0 };
  kjit_status status = compile(kernel, signature, symbol, &read, stage, &diagnostics, &made);
  if (status == KJIT_OK) {
    *code = made.data;
    *size_bytes = made.size_bytes;
    made.data = NULL;
  }
  kj_free_code(&made);
  kjit_status reported = ki_finish_call(context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}

kjit_status kjit_compile(kjit_kernel *kernel, const char *signature,
                         const kjit_compile_options *options, kjit_stage stage, void **code,
                         size_t *size_bytes)
{
  if (kernel && ki_is_forked(kernel->context)) return KJIT_ERROR_FORKED;
  return kernel
           ? compile_as("kjit_compile", kernel, signature, NULL, options, stage, code, size_bytes)
           : KJIT_ERROR_MISUSE;
}

kjit_status kjit_check(kjit_kernel *kernel, const char *signature,
                       const kjit_compile_options *options)
{
  static const char call[] = "kjit_check";
  kjit_compile_options read;
  kjit_compile_limits limits;
  kj_diagnostics diagnostics = { 0 };
  kj_code made = { 0 };
  KJ_TRY(kj_check_call(kernel ? kernel->context : NULL, call, signature ? NULL : "signature"));
  KJ_TRY(read_options(kernel->context, call, options, &read, &limits));
  kjit_status status =
    compile(kernel, signature, NULL, &read, (kjit_stage)CHECK_ONLY, &diagnostics, &made);
  kj_free_code(&made);
  kjit_status reported = ki_finish_call(kernel->context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}

/* ---- result types of funcs ---- */

static kjit_status open_result(request *r, kjit_function *function, kj_diagnostics *diagnostics)
{
  const ki_decl *decl = kj_function_of(function);
  *r = (request){ 0 };
  if (decl->function->is_extern || decl->function->builtin)
    return kj_error(diagnostics, KJIT_ERROR_ARGUMENT,
                    "`%s` is %s, so kjit cannot infer its result type", decl->name,
                    decl->function->builtin ? "a built-in" : "extern");
  kjit_kernel *kernel = kj_get_kernel_object(decl->function->module, decl->index);
  if (!kernel) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  return open_request(r, kernel, diagnostics);
}

static kjit_status close_result(request *r, kjit_status status, const kjit_device *device,
                                kjit_type *type)
{
  const kjit_compile_options options = { .target = device ? device->code_target : NULL,
                                         .ptx_version = device ? device->ptx_limit : 0,
                                         .after_pass = "infer" };
  kj_code made = { 0 };
  if (status == KJIT_OK) status = make_stage(r, NULL, &options, (kjit_stage)RESULT_ONLY, &made);
  if (status == KJIT_OK) *type = made.result;
  kj_free_code(&made);
  close_request(r);
  return status;
}

kjit_status kj_find_result_type(kjit_function *function, const kjit_device *device,
                                const kjit_type *types, size_t count, kj_diagnostics *diagnostics,
                                kjit_type *type)
{
  request r;
  kjit_status status = open_result(&r, function, diagnostics);
  if (status == KJIT_OK)
    status = kj_read_types(r.kernel, types, count, r.arguments, r.bound, diagnostics);
  return close_result(&r, status, device, type);
}

kjit_status kjit_get_result_type(kjit_function *function, const char *signature, kjit_type *type)
{
  if (!function) return KJIT_ERROR_MISUSE;
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = kj_function_of(function)->function->module->context;
  KJ_TRY(kj_check_call(context, "kjit_get_result_type",
                       !signature ? "signature"
                       : !type    ? "type"
                                  : NULL));
  request r;
  kjit_status status = open_result(&r, function, &diagnostics);
  if (status == KJIT_OK)
    status = kj_read_signature(r.kernel, signature, r.arguments, r.bound, &diagnostics);
  status = close_result(&r, status, NULL, type);
  kjit_status reported = ki_finish_call(context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}

/* ---- C functions ---- */

/* Returns whether the name is valid in C, PTX and assemblers. */
static bool is_symbol(const char *name)
{
  if (!isalpha((unsigned char)*name) && *name != '_') return false;
  while (isalnum((unsigned char)*name) || *name == '_' || *name == '$') name++;
  return !*name;
}

kjit_status kjit_compile_function(kjit_function *function, const char *signature,
                                  const char *symbol, const kjit_compile_options *options,
                                  kjit_stage stage, void **code, size_t *size_bytes)
{
  if (!function) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(kj_function_of(function)->function->module->context)) return KJIT_ERROR_FORKED;
  const ki_decl *decl = kj_function_of(function);
  kjit_module *module = decl->function->module;
  const char *name = symbol ? symbol : decl->name;
  if (!is_symbol(name))
    return ki_fail_call(module->context, KJIT_ERROR_NAME,
                        "`%s` is not a valid name of a C function: use letters, digits, `_` and "
                        "`$`, and do not start with a digit",
                        name);
  if (kn_is_library_name(name))
    return ki_fail_call(module->context, KJIT_ERROR_NAME,
                        "`%s` is also the name of a function that generated code calls; choose "
                        "another symbol for the C function",
                        name);
  if (decl->function->is_extern || decl->function->builtin)
    return ki_fail_call(module->context, KJIT_ERROR_ARGUMENT,
                        "`%s` is %s, so there is no code to compile", decl->name,
                        decl->function->builtin ? "a built-in" : "extern");
  kjit_kernel *kernel = kj_get_kernel_object(module, decl->index);
  if (!kernel) return ki_fail_call(module->context, KJIT_ERROR_MEMORY, "out of memory");
  return compile_as("kjit_compile_function", kernel, signature, name, options, stage, code,
                    size_bytes);
}
