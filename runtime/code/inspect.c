/* kjit_compile, which compiles for a signature without a device, and inspection of specializations:
 * code at a stage, machine code, occupancy. */
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
  is_given = is_given || block[0]; /* given in the facts */
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

/* Additional stages: inference without output; and only the result type, which needs no compiler if
 * it is in the disk cache. */
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

/* Makes a cubin: with nvJitLink if the PTX calls linked code, else with ptxas. */
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

/* Returns output that NVIDIA's programs make from the PTX. */
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

/* Makes the compile request. stage is a stage, CHECK_ONLY or RESULT_ONLY. */
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
  kj_diagnostics ignored = { 0 };
  bool is_kept = (kj_keeps_code(runtime->disk) || runtime->context->config.target ||
                  kj_has_named_code(runtime, &ignored)) &&
                 kj_make_disk_key(runtime->disk, NULL, wanted, &key);
  kj_free_diagnostics(&ignored);
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

/* Initializes a request without signature. close_request has to free it, even after an error. */
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

/* On return, *read may point to *limits. */
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

/* ---- specializations ---- */

kjit_specialization *kjit_get_specialization(kjit_kernel *kernel, size_t index)
{
  if (!kernel || ki_is_forked(kernel->context)) return NULL;
  kj_lock(&kernel->mutex, KJ_LOCK_KERNEL);
  kjit_specialization *found = index < kernel->order_count ? kernel->order[index] : NULL;
  kj_unlock(&kernel->mutex, KJ_LOCK_KERNEL);
  return found;
}

/* Fills in properties that are known only while the code is loaded. */
static void describe_code(const kjit_specialization *specialization, kjit_specialization_info *info)
{
  const kj_code *code = &specialization->code;
  const kj_device_code *loaded = &specialization->device_code;
  info->is_loaded = 1;
  info->registers = loaded->registers;
  info->shared_bytes = loaded->shared_bytes;
  info->local_bytes = loaded->local_bytes;
  info->constant_bytes = loaded->constant_bytes;
  info->max_threads = loaded->max_threads;
  info->max_dynamic_shared_bytes = loaded->max_dynamic_shared_bytes;
  info->elements_a_thread = code->elements_a_thread;
  info->stack_bytes = code->stack_bytes;
  info->vector_bits = code->vector_bits;
  info->block_bytes = code->scratch_bytes;
  info->is_cooperative = code->is_cooperative;
  info->is_plain = code->is_plain;
  memcpy(info->cluster, code->cluster, sizeof info->cluster);
  info->infer_time_ns = code->infer_time_ns;
  info->lower_time_ns = code->lower_time_ns;
  info->optimize_time_ns = code->optimize_time_ns;
  info->emit_time_ns = code->emit_time_ns;
  info->code_bytes = specialization->compiled_bytes;
  info->load_time_ns = specialization->load_time_ns;
  info->is_from_disk = specialization->is_from_disk;
  info->is_imported = specialization->is_imported;
}

kjit_status kjit_get_specialization_info(const kjit_specialization *specialization,
                                         kjit_specialization_info *info)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  /* inspection holds the specialization */
  kjit_specialization *held = (kjit_specialization *)specialization;
  kjit_specialization_info own = {
    .signature = specialization->signature,
    .facts = specialization->facts,
    .target = specialization->device->code_target,
    .launches = kj_count_launches(specialization),
    .parse_time_ns = ki_parse_time(specialization->kernel->module),
  };
  if (kj_hold(held)) {
    describe_code(specialization, &own);
    kj_release(held, false);
  }
  return ki_write_sized(specialization->kernel->context, "kjit_get_specialization_info",
                        KI_SPECIALIZATION_INFO, &own, info);
}

static kjit_context *context_of(const kjit_specialization *specialization)
{
  return specialization->kernel->context;
}

kjit_context *kjit_get_specialization_context(const kjit_specialization *specialization)
{
  return specialization ? context_of(specialization) : NULL;
}

kjit_context *kjit_get_kernel_context(const kjit_kernel *kernel)
{
  return kernel ? kernel->context : NULL;
}

kjit_context *kjit_get_function_context(const kjit_function *function)
{
  return function ? kj_function_of(function)->function->module->context : NULL;
}

/* ---- code ---- */

static kjit_status compile_stage(kjit_specialization *specialization, kjit_stage stage,
                                 kj_diagnostics *diagnostics, kj_code *code)
{
  return kj_compile_kernel(specialization->kernel, specialization->device,
                           &specialization->compiled_for, stage, diagnostics, code);
}

/* Copies the loaded machine code, or its disassembly. */
static kjit_status copy_binary(kjit_specialization *specialization, bool as_text,
                               kj_diagnostics *diagnostics, void **result, size_t *size_bytes)
{
  void *binary;
  size_t binary_bytes;
  KJ_TRY(kj_revive(specialization, diagnostics));
  kjit_status status = kj_copy_binary(specialization, diagnostics, &binary, &binary_bytes);
  kj_release(specialization, false);
  if (status != KJIT_OK) return status;
  if (as_text) {
    status = kj_disassemble(binary, binary_bytes, diagnostics, result, size_bytes);
    free(binary);
    return status;
  }
  *result = binary;
  *size_bytes = binary_bytes;
  return KJIT_OK;
}

static kjit_status copy_code(const char *call, kjit_specialization *specialization,
                             kjit_stage stage, bool is_binary, void **code, size_t *size_bytes)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  kjit_context *context = context_of(specialization);
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!code || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: %s is NULL", call,
                        code        ? "size_bytes"
                        : is_binary ? "binary"
                                    : "code");
  if ((unsigned)stage >= KJIT_STAGE_COUNT)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: stage %d is not a value of kjit_stage",
                        call, (int)stage);
  kj_target_kind target = specialization->device->operations->target;
  if (!is_binary && !kj_has_stage(target, stage))
    return ki_fail_call(context, KJIT_ERROR_UNSUPPORTED,
                        "code for %s does not have this stage; it has %s",
                        specialization->device->info.target, kj_get_code_format(target)->own_names);
  kj_diagnostics diagnostics = { 0 };
  kj_code made = { 0 };
  if (stage == KJIT_STAGE_CUBIN || stage == KJIT_STAGE_SASS) {
    (void)copy_binary(specialization, stage == KJIT_STAGE_SASS, &diagnostics, code, size_bytes);
  } else if (compile_stage(specialization, stage, &diagnostics, &made) == KJIT_OK) {
    *code = made.data;
    *size_bytes = made.size_bytes;
    made.data = NULL;
  }
  kj_free_code(&made);
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_copy_specialization_code(kjit_specialization *specialization, kjit_stage stage,
                                          void **code, size_t *size_bytes)
{
  return copy_code("kjit_copy_specialization_code", specialization, stage, false, code, size_bytes);
}

kjit_status kjit_copy_specialization_binary(kjit_specialization *specialization, void **binary,
                                            size_t *size_bytes)
{
  return copy_code("kjit_copy_specialization_binary", specialization, KJIT_STAGE_CUBIN, true,
                   binary, size_bytes);
}

/* ---- occupancy ---- */

static kjit_status refuse(const kjit_specialization *specialization, const char *what,
                          uint64_t given, uint64_t limit, kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_LAUNCH,
                  "kernel `%s`: kjit_get_occupancy: %s %llu; the maximum is %llu",
                  specialization->kernel->function->decl->name, what, (unsigned long long)given,
                  (unsigned long long)limit);
}

static kjit_status check_block(const kjit_specialization *specialization, const uint32_t block[3],
                               uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics)
{
  static const char *const extents[] = { "the number of threads in x is",
                                         "the number of threads in y is",
                                         "the number of threads in z is" };
  const kjit_device_info *info = &specialization->device->info;
  const kj_device_code *function = &specialization->device_code;
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2],
           most = function->max_threads ? function->max_threads : info->max_threads_per_block;
  for (int i = 0; i < 3; i++)
    if (!block[i] || block[i] > info->max_block[i])
      return refuse(specialization, extents[i], block[i], info->max_block[i], diagnostics);
  if (threads > most)
    return refuse(specialization, "the number of threads is", threads, most, diagnostics);
  uint64_t memory = function->max_dynamic_shared_bytes;
  return dynamic_shared_bytes > memory
           ? refuse(specialization, "the dynamic shared memory in bytes is", dynamic_shared_bytes,
                    memory, diagnostics)
           : KJIT_OK;
}

static kjit_status suggest_block(kjit_specialization *specialization, uint64_t dynamic_shared_bytes,
                                 kj_diagnostics *diagnostics, uint32_t block[3])
{
  const uint32_t *compiled = specialization->compiled_for.block;
  kjit_device *device = specialization->device;
  block[1] = block[2] = 1;
  if (compiled[0]) {
    memcpy(block, compiled, 3 * sizeof *block);
    return KJIT_OK;
  }
  return device->operations->choose_threads(device, &specialization->device_code,
                                            dynamic_shared_bytes,
                                            device->info.max_threads_per_block, diagnostics, block);
}

static kjit_status fill_occupancy(kjit_specialization *specialization, const uint32_t *given,
                                  uint64_t dynamic_shared_bytes, kj_diagnostics *diagnostics,
                                  kjit_occupancy *occupancy)
{
  kjit_device *device = specialization->device;
  kjit_occupancy found = { .blocks = 1 };
  if (given) {
    for (int i = 0; i < 3; i++) found.block[i] = i && given[0] && !given[i] ? 1 : given[i];
  } else {
    KJ_TRY(suggest_block(specialization, dynamic_shared_bytes, diagnostics, found.block));
  }
  KJ_TRY(check_block(specialization, found.block, dynamic_shared_bytes, diagnostics));
  uint32_t threads = found.block[0] * found.block[1] * found.block[2];
  KJ_TRY(device->operations->count_resident(device, &specialization->device_code, threads,
                                            dynamic_shared_bytes, diagnostics, &found.blocks));
  found.threads = found.blocks * threads;
  found.max_threads = device->multiprocessor_threads ? device->multiprocessor_threads : threads;
  found.max_cooperative_blocks = (uint64_t)found.blocks * device->info.multiprocessor_count;
  *occupancy = found;
  return KJIT_OK;
}

kjit_status kjit_get_occupancy(kjit_specialization *specialization, const uint32_t block[3],
                               uint64_t dynamic_shared_bytes, kjit_occupancy *occupancy)
{
  if (!specialization) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context_of(specialization))) return KJIT_ERROR_FORKED;
  kjit_context *context = context_of(specialization);
  static const char call[] = "kjit_get_occupancy";
  KJ_TRY(ki_check_sized(context, call, KI_OCCUPANCY, occupancy));
  kjit_occupancy own;
  kj_diagnostics diagnostics = { 0 };
  kjit_status status = kj_revive(specialization, &diagnostics);
  if (status == KJIT_OK) {
    status = fill_occupancy(specialization, block, dynamic_shared_bytes, &diagnostics, &own);
    kj_release(specialization, false);
  }
  if (status == KJIT_OK) status = ki_write_sized(context, call, KI_OCCUPANCY, &own, occupancy);
  kjit_status reported = ki_finish_call(context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}
