/* Handles a cache miss: describes the call as a signature, gets its code from the disk cache or the
 * compiler, and loads the code for the device. */
#include <stdlib.h>
#include <string.h>

#include "code/child.h"
#include "code/compile_thread.h"
#include "code/disk.h"
#include "report/report.h"

/* ---- the signature ---- */

bool kj_describe_argument(const kjit_kernel *kernel, const kj_bound *bound, kj_argument *argument)
{
  *argument = (kj_argument){ .kind = (kj_argument_kind)bound->kind,
                             .type = bound->type,
                             .facts = bound->facts };
  if (bound->kind == KJ_ARGUMENT_FUNCTION) argument->function = bound->function;
  if (bound->kind == KJ_ARGUMENT_CONST) argument->integer = bound->value.integer;
  if (bound->kind != KJ_ARGUMENT_ARRAY) return true;
  argument->type = ki_array_type(kernel->module->types, bound->type, bound->rank,
                                 (kjit_layout)bound->layout, false);
  return argument->type != KJIT_ANY;
}

static void fill_relations(const kj_call *call, uint8_t *relations)
{
  uint32_t count = call->kernel->parameter_count;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t j = 0; j < count; j++) {
      uint8_t *relation = &relations[i * count + j];
      *relation = KJ_RELATION_ANY;
      if (i == j && call->bound[i].kind == KJ_ARGUMENT_ARRAY) *relation = KJ_RELATION_SAME;
      else if (i != j && kj_has_relation(call, i, j))
        *relation = (uint8_t)kj_relate(&call->bound[i], &call->bound[j]);
    }
  }
}

/* ---- texts ---- */

static char *print_signature(const kj_call *call)
{
  kj_buffer text = { 0 };
  kj_append_text(&text, "");
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    if (i) kj_append_text(&text, ", ");
    kj_print_bound(call, &call->bound[i], &text);
  }
  return kj_take_text(&text);
}

/* ---- compile and load ---- */

kj_compile_request kj_make_request(const kjit_kernel *kernel, const kjit_device *device,
                                   const kj_signature *signature, kjit_stage stage)
{
  const kjit_config *config = &kernel->context->config;
  return (kj_compile_request){
    .module = kernel->module,
    .kernel = kernel->function,
    .signature = signature,
    .target = { .kind = device->operations->target,
                .level = device->level,
                .arch = device->info.compute_capability,
                .suffix = device->suffix,
                .ptx_version = device->ptx_limit },
    .stage = stage,
    .checks = config->checks,
    .debug = config->debug,
    .is_interruptible = config->interruptible != 0,
  };
}

/* Completes the kernel's module: parses the declarations that were not parsed before, and links the
 * module. Only the compilation needs the linked module. */
static kjit_status link_kernel(const kjit_kernel *kernel, kj_compile_request *request,
                               kj_diagnostics *diagnostics, kjit_module **linked)
{
  const ki_later *later = kernel->module->later;
  kjit_module *base = later ? kernel->module->bases.items[0] : kernel->module, *whole;
  *linked = NULL;
  KJ_TRY(ki_get_whole(base, diagnostics, &whole));
  if (whole == kernel->module) return KJIT_OK;
  if (later) KJ_TRY(ki_link_whole(kernel->module, whole, diagnostics, linked));
  request->module = later ? *linked : whole;
  request->kernel = ki_find_linked_kernel(base, request->module, kernel->function->decl);
  return KJIT_OK;
}

typedef struct compile_mode {
  kj_plain plain;
  bool is_unseen; /* true for a compilation without messages and statistics */
} compile_mode;

static kjit_status compile_kernel(const kjit_kernel *kernel, const kjit_device *device,
                                  const kj_signature *signature, kjit_stage stage,
                                  compile_mode mode, kj_diagnostics *diagnostics, kj_code *code)
{
  kj_compile_request request = kj_make_request(kernel, device, signature, stage);
  kjit_module *linked;
  request.plain = mode.plain;
  KJ_TRY(kj_get_compiler(device->runtime, diagnostics));
  KJ_TRY(link_kernel(kernel, &request, diagnostics, &linked));
  kjit_status status = mode.is_unseen
                         ? kj_call_compiler_unseen(device->runtime, &request, diagnostics, code)
                         : kj_call_compiler(device->runtime, &request, diagnostics, code);
  kjit_release_module(linked);
  /* a damaged child process may have set the field */
  if (mode.plain == KJ_PLAIN_NONE) code->is_plain = false;
  return status;
}

kjit_status kj_compile_kernel(const kjit_kernel *kernel, const kjit_device *device,
                              const kj_signature *signature, kjit_stage stage,
                              kj_diagnostics *diagnostics, kj_code *code)
{
  return compile_kernel(kernel, device, signature, stage, (compile_mode){ 0 }, diagnostics, code);
}

kjit_status kj_compile_again(const kj_call *call, const kj_signature *signature,
                             kj_diagnostics *diagnostics, kj_code *code)
{
  KJ_TRY(compile_kernel(call->kernel, call->device, signature, kj_code_stage(call->device),
                        (compile_mode){ .is_unseen = true }, diagnostics, code));
  kj_note_made(code);
  return KJIT_OK;
}

kjit_stage kj_code_stage(const kjit_device *device)
{
  return kj_get_code_format(device->operations->target)->stage;
}

static kjit_status load_code(kj_call *call, kjit_specialization *specialization, bool is_compiled,
                             kj_diagnostics *diagnostics)
{
  kjit_device *device = call->device;
  kj_runtime *runtime = call->runtime;
  bool is_linked = kj_is_linked(device);
  uint64_t start = kj_clock_ns();
  kj_outside outside = { 0 };
  kj_cpu_kernel kernel = NULL;
  kjit_status status;
  KJ_ASSERT(atomic_load(&specialization->state) == KJ_PENDING && specialization->code.data);
  KJ_TRY(kj_expect_unloading(specialization, diagnostics));
  if (!is_linked) KJ_TRY(kj_list_outside(call->kernel->module, diagnostics, &outside));
  if (is_compiled && !is_linked && !device->is_target) {
    /* the compiler's loader is used, because it tells debuggers about the debug information */
    status = kj_call_loader(runtime, &specialization->code, &outside, diagnostics,
                            &specialization->loaded, &kernel);
    if (status == KJIT_OK) {
      specialization->device_code =
        (kj_device_code){ .max_dynamic_shared_bytes = (uint32_t)device->info.max_shared_bytes };
      memcpy(&specialization->device_code.function, &kernel, sizeof kernel);
    }
  } else {
    status =
      device->operations->load(device, &specialization->code, call->kernel->function->decl->name,
                               &outside, diagnostics, &specialization->device_code);
  }
  kj_free_outside(&outside);
  specialization->load_time_ns = kj_clock_ns() - start;
  return status;
}

/* ---- the disk cache ---- */

/* Loads code from the disk cache. Code that cannot be loaded counts as a miss. */
static bool keep_fetched(kj_call *call, kjit_specialization *specialization)
{
  kj_diagnostics ignored = { 0 };
  bool is_loaded = load_code(call, specialization, false, &ignored) == KJIT_OK;
  kj_free_diagnostics(&ignored);
  if (!is_loaded) kj_free_code(&specialization->code);
  return is_loaded;
}

static bool fetch(kj_call *call, kjit_specialization *specialization, const kj_disk_key *key)
{
  kj_digest compiler;
  bool knows_compiler = kj_identify_compiler(call->runtime, &compiler);
  return kj_fetch_entry(call->runtime->disk, key, knows_compiler ? &compiler : NULL,
                        &specialization->code) &&
         keep_fetched(call, specialization);
}

/* Links PTX to machine code before the code is loaded. This is done if the cache stores the machine
 * code, if the kernel is linked with PTX of the application, or if the driver's assembler runs in a
 * child process. */
static kjit_status link_code(kj_call *call, kj_code *code, kj_diagnostics *diagnostics)
{
  void *cubin;
  size_t size_bytes;
  kj_link_inputs inputs;
  KJ_TRY(kj_list_link_inputs(call->kernel->module, code, diagnostics, &inputs));
  kjit_status status =
    kj_link(call->device, inputs.items, inputs.count, diagnostics, &cubin, &size_bytes);
  kj_free_link_inputs(&inputs);
  if (status != KJIT_OK) return status;
  KJ_ASSERT(cubin && size_bytes);
  free(code->data);
  code->data = cubin;
  code->size_bytes = size_bytes;
  return KJIT_OK;
}

/* Returns whether linking succeeds. A failure is not reported here, because loading the PTX then
 * fails as well and reports the reason. If an earlier kernel has faulted, the driver may report the
 * fault at this call. */
static bool can_link(kj_call *call, kj_code *code)
{
  kj_diagnostics ignored = { 0 };
  bool is_linked = link_code(call, code, &ignored) == KJIT_OK;
  kj_free_diagnostics(&ignored);
  return is_linked;
}

/* Returns whether the device's own loader accepts the object. If not, the object is not stored. */
static bool can_be_loaded(kj_call *call, const kj_code *code)
{
  kjit_device *device = call->device;
  kj_device_code loaded;
  kj_outside outside = { 0 };
  kj_diagnostics ignored = { 0 };
  bool is_loaded =
    kj_list_outside(call->kernel->module, &ignored, &outside) == KJIT_OK &&
    device->operations->load(device, code, code->entry, &outside, &ignored, &loaded) == KJIT_OK;
  kj_free_outside(&outside);
  kj_free_diagnostics(&ignored);
  if (is_loaded) device->operations->unload(device, loaded.module);
  return is_loaded;
}

/* Loads compiled code, and stores it in the cache if possible. */
static kjit_status load_and_keep(kj_call *call, kjit_specialization *specialization,
                                 const kj_disk_key *key, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = call->runtime;
  kj_code *code = &specialization->code;
  bool is_linked = kj_is_linked(call->device), has_linker = call->device->operations->link;
  const kjit_module *module = call->kernel->module;
  bool is_kept = key && kj_can_publish(runtime->disk) && (key->has_sources || !code->can_fail);
  bool needs_link = is_linked && (kj_has_outside_code(module) ||
                                  (has_linker && runtime->context->config.compile_in_child));
  if (needs_link && !has_linker)
    return kj_error(
      diagnostics, KJIT_ERROR_UNSUPPORTED,
      "kernel `%s` cannot be compiled for `%s` (kjit_config.target), because it calls "
      "code that the application has bound, and only a driver can link it",
      call->kernel->function->decl->name, call->device->code_target);
  if (needs_link) KJ_TRY(link_code(call, code, diagnostics));
  else if (is_kept && is_linked && has_linker) is_kept = can_link(call, code);
  KJ_TRY(load_code(call, specialization, true, diagnostics));
  kj_digest compiler;
  if (is_kept && is_linked)
    is_kept = kj_is_extern_key_current(module, call->device->info.driver_version, key->text);
  if (is_kept && (is_linked || can_be_loaded(call, code)) &&
      kj_identify_compiler(runtime, &compiler))
    kj_publish_entry(runtime->disk, key, compiler, code);
  return KJIT_OK;
}

/* Compiles, and loads the code unless it is plain code. The driver may need as much time to
 * translate PTX as the compiler needs to create it. */
static kjit_status compile_and_load(kj_call *call, kjit_specialization *specialization,
                                    const kj_signature *signature, const kj_disk_key *key,
                                    kj_diagnostics *diagnostics)
{
  kjit_context *context = call->kernel->context;
  const char *name = call->kernel->function->decl->name;
  bool is_linked = kj_is_linked(call->device);
  KJ_TRY(compile_kernel(call->kernel, call->device, signature, kj_code_stage(call->device),
                        (compile_mode){ .plain = call->plain }, diagnostics,
                        &specialization->code));
  if (specialization->code.is_plain) return KJIT_OK;
  kj_note_made(&specialization->code);
  if (key) kj_note_sources(&specialization->code, key);
  if (is_linked) kj_tell_stage(context, name, KJIT_STAGE_CUBIN);
  kjit_status status = load_and_keep(call, specialization, key, diagnostics);
  if (is_linked) kj_tell_stage(context, name, KJIT_STAGE_COUNT);
  return status;
}

/* Remarks that prints have no effect. This is not an error, because an application may leave prints
 * in its kernels. */
static void remark_silence(const kjit_kernel *kernel, const kj_code *code,
                           kj_diagnostics *diagnostics)
{
  if (!code->prints || kernel->context->config.on_print) return;
  const ki_decl *decl = kernel->function->decl;
  kj_report(diagnostics, &kernel->module->sources, decl->location, KJIT_SEVERITY_REMARK, KJIT_OK,
            "kernel `%s` prints, but kjit_config.on_print is NULL, so the lines would be lost",
            decl->name);
}

static void remark_spills(const kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  const kj_device_code *function = &specialization->device_code;
  const kjit_kernel *kernel = specialization->kernel;
  if (specialization->code.uses_local || !function->local_bytes) return;
  kj_report(
    diagnostics, &kernel->module->sources, kernel->function->decl->location, KJIT_SEVERITY_REMARK,
    KJIT_OK,
    "kernel `%s` spills registers on %s: each thread uses %u bytes of local memory in addition to "
    "%u registers; less unrolling, or @launch_bounds with fewer threads or blocks, may help",
    kernel->function->decl->name, specialization->device->target, function->local_bytes,
    function->registers);
}

/* Returns the number of earlier specializations of the kernel for the same types on the same
 * device. Returns 0 if this specialization is in the list already, because its code was evicted and
 * compiled again. The fields that this function compares do not change while a specialization is in
 * the list. */
static size_t count_before(const kjit_specialization *specialization)
{
  kjit_kernel *kernel = specialization->kernel;
  size_t count = 0;
  kj_lock(&kernel->mutex, KJ_LOCK_KERNEL);
  for (size_t i = 0; i < kernel->order_count && !specialization->is_listed; i++) {
    const kjit_specialization *other = kernel->order[i];
    count += other->key[0] == specialization->key[0] && !kj_is_for_plain(other) &&
             !strcmp(other->signature, specialization->signature);
  }
  kj_unlock(&kernel->mutex, KJ_LOCK_KERNEL);
  return count;
}

/* Returns whether kjit has written the kernel for an algorithm, so the application cannot change
 * it. */
static bool is_of_algorithm(const kjit_kernel *kernel)
{
  const kj_sources *sources = &kernel->module->sources;
  uint32_t file = kernel->function->decl->location.file;
  return file < sources->count && sources->items[file].is_algorithm;
}

/* Remarks that a kernel is compiled again for the same types. Compilations for other types are
 * expected. */
static void remark_variant(const kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  const kjit_kernel *kernel = specialization->kernel;
  size_t before = count_before(specialization);
  if (!before || is_of_algorithm(kernel)) return;
  kj_report(diagnostics, &kernel->module->sources, kernel->function->decl->location,
            KJIT_SEVERITY_REMARK, KJIT_OK, "kernel `%s`: variant %zu for (%s) is compiled%s%s",
            kernel->function->decl->name, before + 1, specialization->signature,
            *specialization->facts ? ", facts " : "", specialization->facts);
}

static void remark_compiled(const kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  remark_silence(specialization->kernel, &specialization->code, diagnostics);
  remark_spills(specialization, diagnostics);
  remark_variant(specialization, diagnostics);
}

static kj_failing describe_failing(const kjit_kernel *kernel, const kj_code *code, bool is_func)
{
  return (kj_failing){
    .is_func = is_func, .name = kernel->function->decl->name, .module = kernel->module, .code = code
  };
}

kjit_status kj_report_failure(const kjit_kernel *kernel, const kj_code *code, bool is_func,
                              const kj_failure_record *record, kj_diagnostics *diagnostics)
{
  kj_failing failing = describe_failing(kernel, code, is_func);
  return kj_report_record(&failing, record, diagnostics);
}

static kjit_status open_failures(kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  KJ_ASSERT(!specialization->failure_slot);
  kj_failing failing = describe_failing(specialization->kernel, &specialization->code, false);
  return kj_open_failure_slot(specialization->device, &failing, diagnostics,
                              &specialization->failure_slot, &specialization->failure_address);
}

/* Finds code that runs on any machine with a named target. */
static bool find_named(kj_runtime *runtime, const kj_compile_request *request, kjit_stage stage,
                       kj_code *code)
{
  kj_disk_key named = { 0 };
  kj_digest compiler;
  kj_compile_request wanted = *request;
  wanted.stage = stage;
  if (!kj_make_named_key(runtime->disk, &wanted, &named)) return false;
  bool knows_compiler = kj_identify_compiler(runtime, &compiler);
  bool is_found = kj_find_import(runtime, &named, NULL, code) ||
                  kj_find_installed(runtime, &named, knows_compiler ? &compiler : NULL, code);
  kj_free_disk_key(&named);
  if (!is_found || kj_has_own_math(runtime->disk, code)) return is_found;
  kj_free_code(code);
  return false;
}

/* Fetches code for a named target: machine code or, if there is none, PTX, which is linked here and
 * stored like compiled code. A driver that is too old for the machine code rejects it. */
static bool fetch_named(kj_call *call, kjit_specialization *specialization,
                        const kj_compile_request *request, const kj_disk_key *key)
{
  kj_runtime *runtime = call->runtime;
  kj_code *code = &specialization->code;
  bool is_linked = kj_is_linked(call->device);
  if (call->device->is_target || !kj_has_named_code(runtime)) return false;
  if (is_linked && find_named(runtime, request, KJIT_STAGE_CUBIN, code) &&
      keep_fetched(call, specialization))
    return true;
  if (!find_named(runtime, request, request->stage, code)) return false;
  if (!is_linked || !kj_keeps_code(runtime->disk)) return keep_fetched(call, specialization);
  kj_diagnostics ignored = { 0 };
  bool is_loaded = load_and_keep(call, specialization, key, &ignored) == KJIT_OK;
  kj_free_diagnostics(&ignored);
  if (!is_loaded) kj_free_code(code);
  return is_loaded;
}

typedef enum code_source { COMPILER, IMPORT, DISK, NAMED } code_source;

static code_source fetch_code(kj_call *call, kjit_specialization *specialization,
                              const kj_compile_request *request, const kj_disk_key *key)
{
  kj_runtime *runtime = call->runtime;
  if (kj_find_import(runtime, key, NULL, &specialization->code) &&
      keep_fetched(call, specialization))
    return IMPORT;
  if (kj_keeps_code(runtime->disk) && fetch(call, specialization, key)) return DISK;
  return fetch_named(call, specialization, request, key) ? NAMED : COMPILER;
}

static void count_source(kj_call *call, kjit_specialization *specialization, code_source source)
{
  ki_counters *counters = &call->kernel->context->counters;
  specialization->is_imported = source == IMPORT || source == NAMED;
  specialization->is_from_disk = source == DISK;
  _Atomic uint64_t *counter = specialization->is_imported ? &counters->imports
                              : source == DISK            ? &counters->disk_hits
                                                          : &counters->disk_misses;
  if (source != COMPILER || kj_keeps_code(call->runtime->disk))
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Returns whether the code may be in a cache or will be stored, so that it needs a key. Code with
 * debug information is not stored, because its files and lines belong to one program. */
static bool needs_key(kj_call *call)
{
  return call->kernel->context->config.debug == KJIT_DEBUG_NONE &&
         (kj_keeps_code(call->runtime->disk) || call->device->is_target ||
          kj_has_named_code(call->runtime));
}

static kjit_status open_code(kj_call *call, kjit_specialization *specialization,
                             kj_diagnostics *diagnostics)
{
  const kj_device_operations *operations = call->device->operations;
  kj_code *code = &specialization->code;
  if (code->can_fail && operations->is_queued) KJ_TRY(open_failures(specialization, diagnostics));
  if (code->stack_bytes)
    KJ_TRY(operations->provide_stack(call->device, code->stack_bytes, diagnostics));
  return code->prints && operations->is_queued
           ? kj_open_prints(call->device, &specialization->device_code, code->prints, diagnostics,
                            &specialization->print_source)
           : KJIT_OK;
}

/* Fills in a signature, whose relations and arguments are malloc'd. */
kjit_status kj_describe_call(const kj_call *call, kj_diagnostics *diagnostics,
                             kj_signature *signature)
{
  uint32_t count = call->kernel->parameter_count;
  kj_argument *arguments = calloc(count + 1, sizeof *arguments);
  uint8_t *relations = calloc((size_t)count * count + 1, sizeof *relations);
  *signature = (kj_signature){ .arguments = arguments, .count = count, .relations = relations };
  bool has_all = arguments && relations;
  for (uint32_t i = 0; i < count && has_all; i++)
    has_all = kj_describe_argument(call->kernel, &call->bound[i], &arguments[i]);
  if (!has_all) {
    free(arguments);
    free(relations);
    *signature = (kj_signature){ 0 };
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  fill_relations(call, relations);
#define KJ_CALL_FACT(NAME, field, name, kind, holds) \
  signature->field = call->facts & KJ_CALL_FACT_##NAME;
#include "facts.def"
  if (kj_knows_block(call->kernel, call->device))
    memcpy(signature->block, call->block, sizeof signature->block);
  return KJIT_OK;
}

static kjit_status find_code(kj_call *call, kjit_specialization *specialization,
                             const kj_signature *signature, kj_diagnostics *diagnostics)
{
  kj_disk_key key = { 0 };
  kj_runtime *runtime = call->runtime;
  const kj_compile_request request =
    kj_make_request(call->kernel, call->device, signature, kj_code_stage(call->device));
  bool has_key = needs_key(call) && kj_make_device_key(runtime->disk, call->device, &request, &key);
  code_source source = has_key ? fetch_code(call, specialization, &request, &key) : COMPILER;
  kj_warn_of_damage(runtime, diagnostics);
  if (has_key) count_source(call, specialization, source);
  bool is_found = source != COMPILER;
  kjit_status status =
    is_found ? KJIT_OK : kj_expect_compiler(call, specialization->signature, &request, diagnostics);
  if (status == KJIT_OK && !is_found)
    status = compile_and_load(call, specialization, signature, has_key ? &key : NULL, diagnostics);
  if (status == KJIT_OK && call->device->is_target)
    status =
      kj_record_target(call, &request, has_key ? &key : NULL, &specialization->code, diagnostics);
  if (KJ_HAS_ASSERTIONS && is_found && source != NAMED) kj_recheck(call, specialization, &key);
  kj_free_disk_key(&key);
  if (status == KJIT_OK && specialization->code.is_plain) return KJIT_OK;
  if (status == KJIT_OK) status = open_code(call, specialization, diagnostics);
  if (status == KJIT_OK && !is_found) remark_compiled(specialization, diagnostics);
  specialization->compiled_bytes =
    specialization->code.size_bytes ? specialization->code.size_bytes : 1;
  return status;
}

/* Formats the signature and the facts as strings. If the specialization has strings already,
 * because its code was evicted, it keeps them: the application may have borrowed these strings. */
static kjit_status print_texts(const kj_call *call, kjit_specialization *specialization,
                               kj_diagnostics *diagnostics)
{
  if (!specialization->signature) specialization->signature = print_signature(call);
  if (!specialization->facts)
    specialization->facts = kj_print_facts(call, &specialization->compiled_for);
  return specialization->signature && specialization->facts
           ? KJIT_OK
           : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* Records the device and the call's signature. */
static kjit_status describe(const kj_call *call, kjit_specialization *specialization,
                            kj_diagnostics *diagnostics)
{
  uint32_t generation = atomic_load(&call->device->generation);
  /* written only once, because other threads can read this field while evicted code is loaded
   * again */
  if (specialization->device != call->device) specialization->device = call->device;
  if (specialization->generation != generation) specialization->generation = generation;
  return specialization->compiled_for.arguments
           ? KJIT_OK
           : kj_describe_call(call, diagnostics, &specialization->compiled_for);
}

static kjit_status unload_failed(const kj_call *call, kjit_specialization *specialization,
                                 kjit_status status)
{
  if (status == KJIT_OK) return KJIT_OK;
  kj_unload_code(specialization);
  kj_unload_listed(call->runtime);
  return status;
}

kjit_status kj_compile_call(kj_call *call, kjit_specialization *specialization,
                            kj_diagnostics *diagnostics)
{
  kjit_status status = describe(call, specialization, diagnostics);
  if (status == KJIT_OK) status = print_texts(call, specialization, diagnostics);
  if (status == KJIT_OK)
    status = find_code(call, specialization, &specialization->compiled_for, diagnostics);
  return unload_failed(call, specialization, status);
}

kjit_status kj_load_plain(kj_call *call, kjit_specialization *specialization, kj_code *code,
                          kj_diagnostics *diagnostics)
{
  KJ_ASSERT(code->is_plain && kj_is_for_plain(specialization) && !specialization->code.data);
  specialization->code = *code;
  *code = (kj_code){ 0 };
  specialization->is_from_disk = specialization->is_imported = false;
  kjit_status status = describe(call, specialization, diagnostics);
  if (status == KJIT_OK) status = print_texts(call, specialization, diagnostics);
  if (status == KJIT_OK) status = load_code(call, specialization, true, diagnostics);
  if (status == KJIT_OK) status = open_code(call, specialization, diagnostics);
  if (status == KJIT_OK) remark_silence(call->kernel, &specialization->code, diagnostics);
  specialization->compiled_bytes = specialization->code.size_bytes;
  return unload_failed(call, specialization, status);
}

void kj_free_texts(kjit_specialization *specialization)
{
  free(specialization->signature);
  free(specialization->facts);
  free((void *)specialization->compiled_for.arguments);
  free((void *)specialization->compiled_for.relations);
  specialization->signature = specialization->facts = NULL;
  specialization->compiled_for = (kj_signature){ 0 };
}
