/* A compiler without LLVM for tests of the dispatcher. The code that it makes is the kernel's name,
 * and a launch runs a C function of the test. */
#ifndef FAKE_COMPILER_H
#define FAKE_COMPILER_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compiler.h"
#include "code/specialization.h"

typedef struct fake_compiler {
  _Atomic int compilations, loads, unloads, created, destroyed;
  _Atomic int fail; /* number of compilations that fail */
  _Atomic int running, most_running;
  int delay_ms;         /* of a compilation */
  _Atomic bool is_held; /* the next compilation waits until this is false */
  _Atomic bool has_held;
  int meeting;          /* compilations wait until this number of them has run at once */
  kj_cpu_kernel kernel; /* function that a CPU launch runs */
  bool is_range_only;
  uint32_t elements_a_thread, max_threads;
  uint64_t scratch_bytes;
  /* properties of the code; dynamic shared arrays have elements of 4 bytes */
  bool is_cooperative, uses_dynamic_shared;
  /* arrays in C order pass no strides, as with the real compiler */
  bool has_tight_plans;
  uint32_t cluster[3];
  const char *prints;   /* line that every kernel prints */
  const char *text;     /* the code; NULL means the kernel's name */
  const char *failures; /* message of the only site at which every kernel can fail */
  /* the first argument is a matrix that tensor copies take, in boxes of 4 x 4 */
  bool has_map;
  uint32_t stack_bytes;
  /* signature of the last compilation */
  kj_signature signature;
  kj_argument arguments[16];
  uint8_t relations[256];
  kj_target target;
} fake_compiler;

static fake_compiler fake;
/* protects the data about the last compilation */
static pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;

static void fake_pause(void) { nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); }

static kjit_status fake_create(const char *path, kj_diagnostics *diagnostics,
                               kj_compiler **compiler)
{
  (void)path;
  (void)diagnostics;
  fake.created++;
  *compiler = (kj_compiler *)&fake;
  return KJIT_OK;
}

static void fake_destroy(kj_compiler *compiler)
{
  (void)compiler;
  fake.destroyed++;
}

/* Lays out the parameter block: pointer, extents and strides of each array, and scalars aligned to
 * their size. */
static void fake_plan(const kj_compile_request *request, kj_code *code)
{
  const kj_signature *signature = request->signature;
  uint32_t offset = 0, count = 0;
  code->parameters = calloc(signature->count * 17 + 1, sizeof *code->parameters);
#define ADD(kind_, dimension_, size_) \
  do { \
    offset = (offset + (size_)-1) / (size_) * (size_); \
    code->parameters[count++] = (kj_parameter){ .kind = kind_, \
                                                .argument = (uint16_t)i, \
                                                .dimension = (uint8_t)(dimension_), \
                                                .size_bytes = (uint8_t)(size_), \
                                                .offset = offset, \
                                                .may_write = (kind_) == KJ_PARAMETER_POINTER }; \
    offset += (size_); \
  } while (0)
  for (uint32_t i = 0; i < signature->count; i++) {
    const kj_argument *argument = &signature->arguments[i];
    uint32_t index = signature->offsets32 ? 4 : 8;
    if (argument->kind == KJ_ARGUMENT_NUMBER) ADD(KJ_PARAMETER_SCALAR, 0, 8);
    if (argument->kind == KJ_ARGUMENT_VALUE)
      ADD(KJ_PARAMETER_SCALAR, 0, kj_element_bytes(NULL, argument->type));
    if (argument->kind != KJ_ARGUMENT_ARRAY) continue;
    uint32_t rank = ki_type(request->module->types, argument->type)->rank;
    ADD(KJ_PARAMETER_POINTER, 0, 8);
    for (uint32_t d = 0; d < rank; d++) ADD(KJ_PARAMETER_EXTENT, d, index);
    bool is_tight = fake.has_tight_plans &&
                    ki_type(request->module->types, argument->type)->layout == KJIT_LAYOUT_C;
    for (uint32_t d = 0; d < rank && !is_tight; d++) ADD(KJ_PARAMETER_STRIDE, d, index);
  }
  if (fake.has_map) {
    uint32_t i = 0;
    offset = (offset + KJ_MAP_BYTES - 1) / KJ_MAP_BYTES * KJ_MAP_BYTES;
    ADD(KJ_PARAMETER_TENSOR_MAP, 0, KJ_MAP_BYTES);
    code->tensor_maps[code->tensor_map_count++] =
      (kj_tensor_map){ .argument = 0, .rank = 2, .box = { 4, 4 } };
  }
#undef ADD
  if (fake.failures) {
    code->can_fail = true;
    code->failure_count = 1;
    code->failure_texts = strdup(fake.failures);
    code->failures = calloc(1, sizeof *code->failures);
    *code->failures = (kj_failure_site){ .kind = KJ_FAILURE_RAISE,
                                         .location = { .file = 0, .line = 1, .column = 1 },
                                         .text_bytes = (uint32_t)strlen(fake.failures) };
    code->failure_offset = offset = (offset + 7) / 8 * 8;
    offset += 8;
  }
  code->parameter_count = count;
  code->parameter_bytes = offset;
}

static kjit_status fake_compile(kj_compiler *compiler, const kj_compile_request *request,
                                kj_diagnostics *diagnostics, kj_code *code)
{
  (void)compiler;
  fake.compilations += request->stage != KJIT_STAGE_TYPED;
  int running = ++fake.running, most = fake.most_running;
  while (most < running && !atomic_compare_exchange_weak(&fake.most_running, &most, running)) {}
  if (fake.is_held && !atomic_exchange(&fake.has_held, true))
    while (fake.is_held) fake_pause();
  while (fake.most_running < fake.meeting) fake_pause();
  if (fake.delay_ms) nanosleep(&(struct timespec){ .tv_nsec = fake.delay_ms * 1000000L }, NULL);
  fake.running--;
  memset(code, 0, sizeof *code);
  if (fake.fail > 0) {
    fake.fail--;
    kj_report(diagnostics, &request->module->sources, request->kernel->decl->location,
              KJIT_SEVERITY_ERROR, KJIT_ERROR_TYPE, "the fake compiler refuses `%s`",
              request->kernel->decl->name);
    return KJIT_ERROR_TYPE;
  }
  pthread_mutex_lock(&fake_mutex);
  fake.signature = *request->signature;
  for (uint32_t i = 0; i < request->signature->count && i < 16; i++)
    fake.arguments[i] = request->signature->arguments[i];
  if (request->signature->relations)
    memcpy(fake.relations, request->signature->relations,
           request->signature->count * request->signature->count);
  fake.target = request->target;
  pthread_mutex_unlock(&fake_mutex);
  code->data = strdup(fake.text ? fake.text : request->kernel->decl->name);
  code->stack_bytes = fake.stack_bytes;
  code->size_bytes = strlen(code->data);
  code->entry = strdup(request->kernel->decl->name);
  code->facts = strdup("");
  if (request->stage == KJIT_STAGE_TYPED) code->result = KJIT_F32; /* kjit_get_result_type */
  code->is_range_only = fake.is_range_only && request->target.kind == KJ_TARGET_CPU;
  code->elements_a_thread = fake.elements_a_thread;
  code->max_threads = fake.max_threads;
  code->scratch_bytes = fake.scratch_bytes;
  code->is_cooperative = fake.is_cooperative;
  code->uses_dynamic_shared = fake.uses_dynamic_shared;
  code->dynamic_shared_element_bytes = 4;
  memcpy(code->cluster, fake.cluster, sizeof code->cluster);
  code->prints = fake.prints ? strdup(fake.prints) : NULL;
  fake_plan(request, code);
  return KJIT_OK;
}

static kjit_status fake_load(kj_compiler *compiler, const kj_code *code, const kj_outside *outside,
                             kj_diagnostics *diagnostics, kj_loaded **loaded, kj_cpu_kernel *kernel)
{
  (void)compiler;
  (void)code;
  (void)outside;
  (void)diagnostics;
  fake.loads++;
  *loaded = (kj_loaded *)&fake;
  *kernel = fake.kernel;
  return KJIT_OK;
}

static void fake_unload(kj_compiler *compiler, kj_loaded *loaded)
{
  (void)compiler;
  (void)loaded;
  fake.unloads++;
}

static const kj_compiler_interface fake_interface = {
  sizeof fake_interface, KJ_COMPILER_VERSION, kj_build,  fake_create,
  fake_destroy,          fake_compile,        fake_load, fake_unload
};

static inline kjit_context *make_fake_context(void)
{
  kj_diagnostics diagnostics = { 0 };
  kjit_context *context = NULL;
  memset(&fake, 0, sizeof fake);
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = ""; /* no disk cache, so that the test sees every compilation */
  if (kjit_create_context(&config, &context) != KJIT_OK ||
      kj_use_compiler(context, &fake_interface, &diagnostics) != KJIT_OK)
    abort();
  return context;
}

static inline kjit_module *parse(kjit_context *context, const char *text)
{
  kjit_module *module = NULL;
  if (kjit_parse_module(context, "test.kir", text, strlen(text), &module) == KJIT_OK) return module;
  char *messages = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s", messages ? messages : "out of memory");
  free(messages);
  abort();
}

static inline kjit_kernel *kernel_of(kjit_module *module, const char *name)
{
  kjit_kernel *kernel = NULL;
  if (kjit_get_kernel(module, name, &kernel) != KJIT_OK) abort();
  return kernel;
}

/* Returns the message of this thread's last failed call. */
static inline const char *last_message(kjit_context *context)
{
  const kjit_diagnostic *diagnostic = kjit_get_diagnostic(context, 0);
  return diagnostic ? diagnostic->message : "";
}

#endif
