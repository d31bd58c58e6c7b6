/* The actions of one process with a cache directory: everything that may differ between two
 * processes that share the directory. A struct with zeros is the default. */
#ifndef ONE_CHANGE_H
#define ONE_CHANGE_H

#include <kjit/kjit.h>
#include <stdbool.h>
#include <string.h>

#include "built_compiler.h"
#include "cache_folder.h"
#include "code/compile_thread.h"
#include "code/disk.h"
#include "code/key_inputs.h"
#include "launch/function_code.h"

enum { IMPORTS = 2, ELEMENTS = 8, FIELDS = 3, STRUCTS = 2, MOST_ARGUMENTS = 64 };

typedef struct import {
  const char *name, *text;
  bool is_guest;
} import;

typedef struct structure {
  const char *name;
  kjit_field fields[FIELDS];
  size_t count;
  bool is_packed;
} structure;

typedef struct world {
  const char *text; /* has kernel k(r, x), or (r, x, n) */
  bool is_guest;
import imports[IMPORTS];
  const char *linked; /* a second module, linked to the first */
  const char *kernel; /* NULL: k */
  kjit_type element;  /* element type of x; 0 means f64 */
  /* structs of the application; the last one is the element type of x */
  structure structs[STRUCTS];
  size_t shift_bytes;   /* distance from an aligned address to x */
  bool is_in_place;     /* x is r */
  uint32_t threads;     /* threads of a block; 0 means one */
  kjit_arg number;      /* the argument n, if it has a kind */
  const char *function; /* if not NULL, the argument n is this func of the module */
  uint32_t checks, rules;
  bool is_interruptible;
  const char *constant; /* name of the constant that gets the elements in `data` */
  const void *data;
  const char *extern_name; /* extern func to which `host` is bound; NULL means f */
  void (*host)(void);      /* function to which the extern func is bound */
  const char *device_code; /* code to which f is bound for GPUs */
  const char *libdevice;
  /* if not NULL, asks for the result type of func f for this signature, instead of a launch */
  const char *asked;
  bool reduces; /* if true, reduces x with func f, instead of a launch */
  bool is_call; /* if true, calls func f(r, x) or (r, x, n), instead of a launch */
  /* if not NULL, compiles for this GPU and signature, instead of a launch */
  const char *target, *signature, *facts;
  uint32_t ptx;
  uint32_t flips_processor, flips_build; /* changes the identity of the machine or of libkjit */
} world;

/* The outcome of one process. */
typedef struct outcome {
  kjit_status status;
  double results[ELEMENTS];
  uint64_t made[2]; /* digest of the code */
  char text[100];   /* name of a type */
  bool is_hit;
  kj_digest key; /* key of code for a GPU */
} outcome;

static kjit_context *context;

/* Code that goes from one process to the next as a blob. */
static struct {
  bool is_exported; /* the next process exports its code */
  void *bytes;      /* NULL: the next process imports nothing */
  size_t size_bytes;
  char copy[1 << 20];
} blob;

static kjit_status export_blob(kjit_module *module)
{
  void *made = NULL;
  KJ_TRY(kjit_export_code(module, &made, &blob.size_bytes));
  if (blob.size_bytes > sizeof blob.copy) return KJIT_ERROR_LIMIT;
  blob.bytes = memcpy(blob.copy, made, blob.size_bytes);
  kjit_free(context, made);
  return KJIT_OK;
}

static kjit_import_source imported(const world *w, const char *name, bool *is_found)
{
  for (size_t i = 0; i < IMPORTS; i++) {
    const import *known = &w->imports[i];
    *is_found = known->name && !strcmp(known->name, name);
    if (*is_found)
      return (kjit_import_source){ .size_bytes = sizeof(kjit_import_source),
                                   .name = known->name,
                                   .text = known->text,
                                   .text_bytes = strlen(known->text),
                                   .trust = known->is_guest ? KJIT_TRUST_GUEST : KJIT_TRUST_HOST };
  }
  return (kjit_import_source){ 0 };
}

static int find_import(void *user, const char *importer, const char *name,
                       kjit_import_source *source)
{
  bool is_found;
  (void)importer;
  kjit_import_source found = imported(user, name, &is_found);
  if (is_found) *source = found;
  return is_found;
}

static kjit_status start(const world *w, const char *directory)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.user = (void *)(uintptr_t)w;
  config.find_import = find_import;
  config.cache_directory = directory;
  config.compiler_path = find_built_compiler();
  config.checks = w->checks;
  config.interruptible = w->is_interruptible;
  config.libdevice_path = w->libdevice;
  KJ_TRY(kjit_create_context(&config, &context));
  kj_disk *disk = kj_get_runtime(context)->disk;
  kj_identify_disk(disk);
  disk->recheck_every = w->flips_processor || w->flips_build ? 0 : 1; /* with assertions, all */
  disk->processor.low ^= w->flips_processor;
  disk->build.low ^= w->flips_build;
  return KJIT_OK;
}

/* ---- the module ---- */

static kjit_status take(kjit_status status, kjit_module **made, kjit_module **module)
{
  if (status != KJIT_OK) return status;
  kjit_release_module(*module);
  *module = *made;
  return KJIT_OK;
}

static kjit_status bind(const world *w, kjit_module **module)
{
  kjit_module *made = NULL;
  size_t size = w->device_code ? strlen(w->device_code) : 0;
  kjit_status status = kjit_bind_extern(*module, w->extern_name ? w->extern_name : "f", w->host,
                                        w->device_code, size, &made);
  return take(status, &made, module);
}

static kjit_status give_constant(const world *w, kjit_module **module)
{
  int64_t length = 2;
  kjit_module *made = NULL;
  kjit_tensor data = kjit_make_tensor((void *)(uintptr_t)w->data, KJIT_F64, 1, &length);
  kjit_arg value = kjit_arg_tensor(&data);
  kjit_status status = kjit_set_constant(*module, w->constant, &value, &made);
  return take(status, &made, module);
}

static kjit_status link_other(const world *w, kjit_module **module)
{
  kjit_module *library = NULL, *made = NULL;
  KJ_TRY(kjit_parse_module(context, "linked", w->linked, strlen(w->linked), &library));
  kjit_status status = kjit_link_module(*module, library, &made);
  kjit_release_module(library);
  return take(status, &made, module);
}

static kjit_status parse(const world *w, kjit_module **module)
{
  const kjit_parse_options options = { .size_bytes = sizeof options,
                                       .trust = w->is_guest ? KJIT_TRUST_GUEST : KJIT_TRUST_HOST,
                                       .rules = w->rules };
  KJ_TRY(kjit_parse_module_with(context, &options, "t", w->text, strlen(w->text), module));
  if (w->host || w->device_code) KJ_TRY(bind(w, module));
  if (w->constant) KJ_TRY(give_constant(w, module));
  return w->linked ? link_other(w, module) : KJIT_OK;
}

/* ---- a launch ---- */

static kjit_type declare_structs(const world *w)
{
  kjit_type type = w->element ? w->element : KJIT_F64, made[STRUCTS] = { 0 };
  for (size_t i = 0; i < STRUCTS && w->structs[i].name; i++) {
    kjit_field fields[FIELDS];
    memcpy(fields, w->structs[i].fields, sizeof fields);
    for (size_t k = 0; k < w->structs[i].count; k++)
      if (fields[k].type == KJIT_ANY) fields[k].type = made[0]; /* the struct before this one */
    type = made[i] = kjit_get_struct_type(context, w->structs[i].name, fields, w->structs[i].count,
                                          w->structs[i].is_packed ? KJIT_STRUCT_PACKED : 0);
  }
  return type;
}

static void fill(void *memory, size_t size_bytes, bool has_numbers)
{
  for (size_t i = 0; i < size_bytes; i++)
    ((unsigned char *)memory)[i] = (unsigned char)(i * 37 + 1);
  for (size_t i = 0; has_numbers && i < size_bytes / sizeof(double); i++)
    ((double *)memory)[i] = (double)i + 1;
}

static kjit_status find_number(const world *w, kjit_module *module, kjit_arg *number)
{
  kjit_function *function = NULL;
  *number = w->number;
  if (!w->function) return KJIT_OK;
  KJ_TRY(kjit_get_function(module, w->function, &function));
  *number = kjit_arg_function(function);
  return KJIT_OK;
}

static kjit_status launch_kernel(const world *w, kjit_module *module, kjit_device *device,
                                 const kjit_arg *arguments, size_t count, outcome *o)
{
  kjit_kernel *kernel = NULL;
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device, .grid = { 1 } };
  KJ_TRY(kjit_get_kernel(module, w->kernel ? w->kernel : "k", &kernel));
  config.block[0] = w->threads ? w->threads : 1;
  kjit_status status = kjit_launch(kernel, &config, arguments, count);
  kjit_specialization *made = kjit_get_specialization(kernel, 0);
  if (made) memcpy(o->made, made->code.made, sizeof o->made);
  return status;
}

/* Calls func f, whose result is a number or, if the world says so, a composed value of at most 128
 * bytes. */
static kjit_status call_func(kjit_module *module, const kjit_arg *arguments, size_t count,
                             outcome *o)
{
  kjit_function *function = NULL;
  _Alignas(16) unsigned char composed[128] = { 0 };
  kjit_arg result = kjit_arg_value(KJIT_ANY, composed);
  KJ_TRY(kjit_get_function(module, "f", &function));
  kjit_status status = kjit_call_function(function, arguments, count, &result);
  const ki_decl *decl = kj_function_of(function);
  const kjit_kernel *kernel = kj_get_made_kernel(module, decl->index);
  const kj_function_code *made = kernel ? atomic_load(&kernel->functions) : NULL;
  if (made) memcpy(o->made, made->code.made, sizeof o->made);
  if (status != KJIT_OK) return status;
  char *type = kjit_copy_type_text(context, result.type);
  kj_digest digest = kj_digest_bytes(composed, sizeof composed);
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  (void)!kjit_get_type_layout(context, result.type, &layout); /* tuples have no layout */
  snprintf(o->text, sizeof o->text, "%s of %llu bytes %llx %llx", type ? type : "",
           (unsigned long long)layout.type_bytes,
           result.kind == KJIT_ARG_VALUE ? (unsigned long long)result.value.u : 0,
           (unsigned long long)digest.low);
  kjit_free(context, type);
  return status;
}

static kjit_status launch(const world *w, kjit_module *module, kjit_device *device, outcome *o)
{
  static _Alignas(64) unsigned char memory[1024];
  int64_t count = ELEMENTS;
  kjit_array *array = NULL;
  kjit_type element = declare_structs(w);
  kjit_arg arguments[3];
  kjit_tensor r = kjit_make_tensor(o->results, KJIT_F64, 1, &count), x = r;
  if (!w->structs[0].name && !w->is_in_place) {
    fill(memory + w->shift_bytes, 8 * ELEMENTS, element == KJIT_F64);
    x = kjit_make_tensor(memory + w->shift_bytes, element, 1, &count);
  }
  arguments[0] = kjit_arg_tensor(&r);
  arguments[1] = kjit_arg_tensor(&x);
  if (w->structs[0].name) {
    KJ_TRY(kjit_create_array(device, element, &count, 1, &array));
    kjit_type_layout layout = { .size_bytes = sizeof layout };
    KJ_TRY(kjit_get_type_layout(context, element, &layout));
    fill(kjit_get_tensor(array)->data, (size_t)layout.type_bytes * ELEMENTS, false);
    arguments[1] = kjit_arg_array(array);
  }
  KJ_TRY(find_number(w, module, &arguments[2]));
  bool has_number = w->function || w->number.type || w->number.kind;
  size_t given = has_number ? 3 : 2;
  kjit_status status = w->is_call ? call_func(module, arguments, given, o)
                                  : launch_kernel(w, module, device, arguments, given, o);
  kjit_release_array(array);
  return status;
}

/* ---- other things to do ---- */

static kjit_status ask(const world *w, kjit_module *module, outcome *o)
{
  kjit_function *function = NULL;
  kjit_type type = KJIT_ANY;
  KJ_TRY(kjit_get_function(module, "f", &function));
  KJ_TRY(kjit_get_result_type(function, w->asked, &type));
  char *name = kjit_copy_type_text(context, type);
  snprintf(o->text, sizeof o->text, "%s", name ? name : "");
  kjit_free(context, name);
  return KJIT_OK;
}

static kjit_status reduce(kjit_module *module, kjit_device *device, outcome *o)
{
  double values[ELEMENTS];
  int64_t count = ELEMENTS;
  kjit_function *function = NULL;
  fill(values, sizeof values, true);
  KJ_TRY(kjit_get_function(module, "f", &function));
  kjit_tensor x = kjit_make_tensor(values, KJIT_F64, 1, &count),
              r = kjit_make_tensor(o->results, KJIT_F64, 0, &count);
  kjit_operand from = kjit_operand_of(kjit_arg_tensor(&x)),
               to = kjit_operand_of(kjit_arg_tensor(&r));
  kjit_operator operator_ = kjit_operator_function(function);
  kjit_algorithm_options options = { .size_bytes = sizeof options, .device = device };
  return kjit_reduce(context, &to, &from, &operator_, &options);
}

static kj_target read_target(const world *w)
{
  const char *suffix = w->target + strspn(w->target, "sm_0123456789");
  return (kj_target){ .kind = KJ_TARGET_NVPTX,
                      .arch = (uint32_t)strtoul(w->target + strlen("sm_"), NULL, 10),
                      .suffix = *suffix,
                      .ptx_version = w->ptx };
}

/* Makes the request that a launch on a GPU would make. This needs no GPU. */
static kjit_status describe(const world *w, kjit_kernel *kernel, kj_argument *arguments,
                            uint8_t *relations, kj_signature *signature,
                            kj_diagnostics *diagnostics)
{
  kj_bound bound[MOST_ARGUMENTS];
  memset(bound, 0, sizeof bound);
  *signature = (kj_signature){ .arguments = arguments,
                               .count = kernel->parameter_count,
                               .relations = relations };
  KJ_TRY(kj_read_signature(kernel, w->signature, arguments, bound, diagnostics));
  if (!w->facts) return KJIT_OK;
  return kj_read_facts(kernel, w->facts, arguments, relations, signature, diagnostics);
}

static kjit_status run_request(const kj_compile_request *request, kj_diagnostics *diagnostics,
                               outcome *o)
{
  kj_runtime *runtime = kj_get_runtime(context);
  kj_code code = { 0 };
  kj_disk_key key = { 0 };
  if (!kj_make_disk_key(runtime->disk, NULL, request, &key)) return KJIT_ERROR_MEMORY;
  o->key = key.digest;
  kj_free_disk_key(&key);
  KJ_TRY(kj_get_compiler(runtime, diagnostics));
  KJ_TRY(kj_call_compiler(runtime, request, diagnostics, &code));
  kj_digest digest = kj_digest_bytes(code.data, code.size_bytes);
  memcpy(o->made, &digest, sizeof o->made);
  kj_free_code(&code);
  return KJIT_OK;
}

static kjit_status compile(const world *w, kjit_module *module, outcome *o)
{
  kjit_kernel *kernel = NULL;
  kj_diagnostics diagnostics = { 0 };
  kj_argument arguments[MOST_ARGUMENTS] = { 0 };
  uint8_t relations[MOST_ARGUMENTS * MOST_ARGUMENTS] = { 0 };
  kj_signature signature;
  KJ_TRY(kjit_get_kernel(module, w->kernel ? w->kernel : "k", &kernel));
  kjit_status status = describe(w, kernel, arguments, relations, &signature, &diagnostics);
  const kj_compile_request request = { .module = kernel->module,
                                       .kernel = kernel->function,
                                       .signature = &signature,
                                       .target = read_target(w),
                                       .stage = KJIT_STAGE_PTX,
                                       .checks = w->checks,
                                       .is_interruptible = w->is_interruptible };
  if (status == KJIT_OK) status = run_request(&request, &diagnostics, o);
  kjit_status reported = ki_finish_call(context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}

static kjit_status act(const world *w, outcome *o)
{
  kjit_module *module = NULL;
  kjit_device *device = NULL;
  kjit_status status = parse(w, &module);
  if (status == KJIT_OK) status = kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device);
  if (status == KJIT_OK)
    status = w->target    ? compile(w, module, o)
             : w->asked   ? ask(w, module, o)
             : w->reduces ? reduce(module, device, o)
                          : launch(w, module, device, o);
  if (blob.is_exported && status == KJIT_OK) status = export_blob(module);
  kjit_release_module(module);
  return status;
}

/* Creates a context with this cache directory and performs the actions; "" means no directory. */
static outcome live(const world *w, const char *directory)
{
  outcome o = { 0 };
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  o.status = start(w, directory);
  if (o.status != KJIT_OK) return o;
  if (!blob.is_exported && blob.bytes)
    o.status = kjit_import_code(context, blob.bytes, blob.size_bytes);
  if (o.status == KJIT_OK) o.status = act(w, &o);
  if (kjit_get_statistics(context, &statistics) == KJIT_OK)
    o.is_hit = statistics.disk_hits + statistics.imports > 0;
  (void)!kjit_destroy_context(context);
  return o;
}

static bool is_same_outcome(const outcome *a, const outcome *b)
{
  return a->status == b->status && !memcmp(a->results, b->results, sizeof a->results) &&
         !memcmp(a->made, b->made, sizeof a->made) && !strcmp(a->text, b->text);
}

#endif
