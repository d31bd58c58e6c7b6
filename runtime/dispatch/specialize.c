/* One miss: the call as a signature, its code from the disk cache or from the compiler, loaded for the device. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/disk.h"

/* ---- the signature ---- */

static kj_argument describe_argument(const kj_call *call, const kj_bound *bound)
{
  kj_argument argument = { .kind = (kj_argument_kind)bound->kind, .type = bound->type, .facts = bound->facts };
  if (bound->kind == KJ_ARGUMENT_FUNCTION) argument.function = bound->function;
  if (bound->kind == KJ_ARGUMENT_ARRAY) argument.type = kj_array_type(call->kernel->module->types, bound->type, bound->rank, (kjit_layout)bound->layout, false);
  if (bound->kind == KJ_ARGUMENT_CONST) {
    argument.integer = bound->value.integer;
    argument.number = bound->value.number;
  }
  return argument;
}

static void fill_relations(const kj_call *call, uint8_t *relations)
{
  const kjit_kernel *kernel = call->kernel;
  uint32_t count = kernel->parameter_count;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t j = 0; j < count; j++) {
      uint8_t *relation = &relations[i * count + j];
      const kjit_kernel *k = kernel;
      *relation = KJ_RELATION_ANY;
      if (call->bound[i].kind != KJ_ARGUMENT_ARRAY || call->bound[j].kind != KJ_ARGUMENT_ARRAY) continue;
      if (i == j) *relation = KJ_RELATION_SAME;
      else if ((k->parameters[i].is_written || k->parameters[j].is_written) && !k->parameters[i].is_general && !k->parameters[j].is_general)
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

static void print_aligned(const kj_call *call, uint32_t fact, const char *name, kj_buffer *text)
{
  const char *separator = "(";
  uint32_t count = 0;
  for (uint32_t i = 0; i < call->kernel->parameter_count; i++) {
    const kj_bound *bound = &call->bound[i];
    if (bound->kind != KJ_ARGUMENT_ARRAY || !(bound->facts & fact)) continue;
    kj_append_format(text, "%s%s%s%s", count ? "" : text->length ? " " : "", count ? "" : name, separator, call->kernel->parameters[i].decl->name);
    separator = ", ";
    count++;
  }
  if (count) kj_append_text(text, ")");
}

static void print_relations(const kj_call *call, const uint8_t *relations, kj_buffer *text)
{
  uint32_t count = call->kernel->parameter_count;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t j = i + 1; j < count; j++) {
      uint8_t relation = relations[i * count + j];
      if (relation == KJ_RELATION_ANY) continue;
      kj_append_format(text, "%s%s(%s, %s)", text->length ? " " : "", relation == KJ_RELATION_SAME ? "same" : "disjoint",
                       call->kernel->parameters[i].decl->name, call->kernel->parameters[j].decl->name);
    }
}

static char *print_facts(const kj_call *call, const kj_signature *signature)
{
  kj_buffer text = { 0 };
  kj_append_text(&text, "");
  print_aligned(call, KJ_FACT_ALIGNED16, "aligned16", &text);
  print_aligned(call, KJ_FACT_ROWS_ALIGNED16, "rows_aligned16", &text);
  if (signature->offsets32) kj_append_format(&text, "%soffsets32", text.length ? " " : "");
  if (signature->grid32) kj_append_format(&text, "%sgrid32", text.length ? " " : "");
  print_relations(call, signature->relations, &text);
  if (signature->block[0])
    kj_append_format(&text, "%sblock(%u, %u, %u)", text.length ? " " : "", signature->block[0], signature->block[1], signature->block[2]);
  return kj_take_text(&text);
}

/* ---- compile and load ---- */

uint32_t kj_limit_ptx(const kjit_device *device)
{
  enum { ALWAYS_ENOUGH = 80 }; /* a driver that knows a newer GPU knows the version that this GPU needs */
  return kj_is_cuda(device) && device->ptx_limit && device->ptx_limit < ALWAYS_ENOUGH ? device->ptx_limit : 0;
}

static kjit_status run_compiler(kj_call *call, kjit_specialization *specialization, const kj_signature *signature, kj_diagnostics *diagnostics)
{
  bool is_cuda = kj_is_cuda(call->device);
  kj_compile_request request = {
    .module = call->kernel->module,
    .kernel = call->kernel->function,
    .signature = signature,
    .target = { .kind = is_cuda ? KJ_TARGET_NVPTX : KJ_TARGET_CPU, .arch = call->device->info.compute_capability, .ptx_version = kj_limit_ptx(call->device) },
    .stage = is_cuda ? KJIT_STAGE_PTX : KJIT_STAGE_OBJECT,
    .checks = call->kernel->context->config.checks,
  };
  kj_runtime *runtime = call->runtime;
  return runtime->interface->compile(runtime->compiler, &request, diagnostics, &specialization->code);
}

static kjit_status load_code(kj_call *call, kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = call->runtime;
  kj_code *code = &specialization->code;
  uint64_t start = kj_clock_ns();
  kjit_status status = kj_is_cuda(call->device)
                         ? kj_load_cuda(call->device, code->data, code->entry, call->kernel->function->decl->name, diagnostics, &specialization->cuda)
                         : runtime->interface->load(runtime->compiler, code, diagnostics, &specialization->loaded, &specialization->run);
  specialization->load_time_ns = kj_clock_ns() - start;
  return status;
}

/* ---- the disk cache ---- */

/* Code from the disk that cannot be loaded is a miss like any other. */
static bool load_fetched(kj_call *call, kjit_specialization *specialization)
{
  const kj_code *code = &specialization->code;
  const char *reason;
  kj_diagnostics ignored = { 0 };
  uint64_t start = kj_clock_ns();
  bool is_loaded = kj_is_cuda(call->device)
                     ? kj_load_cuda(call->device, code->data, code->entry, call->kernel->function->decl->name, &ignored, &specialization->cuda) == KJIT_OK
                     : kj_load_image(code->data, code->size_bytes, code->entry, &specialization->image, &specialization->run, &reason);
  specialization->load_time_ns = kj_clock_ns() - start;
  kj_free_diagnostics(&ignored);
  return is_loaded;
}

static bool fetch(kj_call *call, kjit_specialization *specialization, const kj_disk_key *key)
{
  kj_digest compiler;
  bool knows_compiler = kj_identify_compiler(call->runtime, &compiler);
  if (!kj_fetch_entry(call->runtime->disk, key, knows_compiler ? &compiler : NULL, &specialization->code)) return false;
  if (load_fetched(call, specialization)) return true;
  kj_free_code(&specialization->code);
  specialization->code = (kj_code){ 0 };
  return false;
}

/* PTX becomes machine code before it is loaded, so that this is what is kept. Where the driver cannot, loading the PTX says why. */
static bool link_code(kj_call *call, kj_code *code)
{
  void *cubin;
  size_t size_bytes;
  if (!kj_link_cuda(call->device, code->data, code->size_bytes, code->entry, &cubin, &size_bytes)) return false;
  free(code->data);
  code->data = cubin;
  code->size_bytes = size_bytes;
  return true;
}

/* An object that the cache's own loader does not take would be of no use to anybody. */
static bool can_be_loaded(const kj_code *code)
{
  kj_image *image;
  kj_cpu_kernel kernel;
  const char *reason;
  if (!kj_load_image(code->data, code->size_bytes, code->entry, &image, &kernel, &reason)) return false;
  kj_unload_image(image);
  return true;
}

static kjit_status compile_and_load(kj_call *call, kjit_specialization *specialization, const kj_signature *signature, const kj_disk_key *key,
                                    kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = call->runtime;
  kj_code *code = &specialization->code;
  KJ_TRY(kj_get_compiler(runtime, diagnostics));
  KJ_TRY(run_compiler(call, specialization, signature, diagnostics));
  bool is_cuda = kj_is_cuda(call->device), is_kept = key && kj_can_publish(runtime->disk) && (key->has_sources || !code->failures);
  if (is_kept && is_cuda) is_kept = link_code(call, code);
  KJ_TRY(load_code(call, specialization, diagnostics));
  if (is_kept && (is_cuda || can_be_loaded(code)))
    kj_publish_entry(runtime->disk, key, kj_identify_address((const void *)(uintptr_t)runtime->interface->compile), code);
  return KJIT_OK;
}

static kjit_status find_code(kj_call *call, kjit_specialization *specialization, const kj_signature *signature, kj_diagnostics *diagnostics)
{
  kj_counters *counters = &call->kernel->context->counters;
  kj_disk_key key = { 0 };
  bool has_key = call->runtime->disk && kj_make_disk_key(call->runtime->disk, call, signature, &key);
  specialization->is_from_disk = has_key && fetch(call, specialization, &key);
  if (has_key) atomic_fetch_add_explicit(specialization->is_from_disk ? &counters->disk_hits : &counters->disk_misses, 1, memory_order_relaxed);
  kjit_status status = specialization->is_from_disk ? KJIT_OK : compile_and_load(call, specialization, signature, has_key ? &key : NULL, diagnostics);
  if (status == KJIT_OK && specialization->code.failures && kj_is_cuda(call->device)) status = kj_open_failures(specialization, diagnostics);
  kj_free_disk_key(&key);
  free(specialization->code.data); /* loaded: nobody reads it again */
  specialization->code.data = NULL;
  return status;
}

static kjit_status compile_signature(kj_call *call, kjit_specialization *specialization, kj_signature *signature, kj_diagnostics *diagnostics)
{
  specialization->signature = print_signature(call);
  specialization->facts = print_facts(call, signature);
  if (!specialization->signature || !specialization->facts) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  return find_code(call, specialization, signature, diagnostics);
}

kjit_status kj_compile_call(kj_call *call, kjit_specialization *specialization, kj_diagnostics *diagnostics)
{
  uint32_t count = call->kernel->parameter_count;
  bool knows_block = !kj_is_cuda(call->device) || call->kernel->block_is_static;
  kj_argument *arguments = calloc(count + 1, sizeof *arguments);
  uint8_t *relations = calloc((size_t)count * count + 1, sizeof *relations);
  kjit_status status;
  specialization->device = call->device;
  specialization->generation = atomic_load(&call->device->generation);
  if (arguments && relations) {
    for (uint32_t i = 0; i < count; i++) arguments[i] = describe_argument(call, &call->bound[i]);
    fill_relations(call, relations);
    kj_signature signature = { .arguments = arguments, .count = count, .offsets32 = call->offsets32, .grid32 = call->grid32, .relations = relations };
    if (knows_block) memcpy(signature.block, call->block, sizeof signature.block);
    status = compile_signature(call, specialization, &signature, diagnostics);
  } else {
    status = kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  }
  if (status != KJIT_OK) kj_unload_specialization(specialization);
  free(arguments);
  free(relations);
  return status;
}

void kj_unload_specialization(kjit_specialization *specialization)
{
  if (!specialization->device) return;
  kj_runtime *runtime = specialization->device->runtime;
  if (specialization->cuda.module) kj_unload_cuda(specialization->device, specialization->generation, &specialization->cuda);
  kj_close_failures(specialization);
  if (specialization->loaded) runtime->interface->unload(runtime->compiler, specialization->loaded);
  kj_unload_image(specialization->image);
  specialization->loaded = NULL;
  specialization->image = NULL;
  specialization->run = NULL;
  kj_free_code(&specialization->code);
  free(specialization->signature);
  free(specialization->facts);
  specialization->signature = specialization->facts = NULL;
}
