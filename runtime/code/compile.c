/* kjit_compile: a signature as text, and code for it without a device. */
#include <ctype.h>
#include <math.h>
#include <kjit/function.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/assemble.h"
#include "code/key.h"
#include "code/specialization.h"
#include "ir/number.h"
#include "native/functions.h"

typedef struct request {
  kjit_kernel *kernel;
  ki_types *types;
  kj_diagnostics *diagnostics;
  kj_bound *bound; /* what evaluating defaults and @block sees: const parameters */
  kj_argument *arguments;
  uint8_t *relations;
  kj_signature signature;
} request;

void kjit_init_compile_options(kjit_compile_options *options)
{
  if (options) *options = (kjit_compile_options){ .size_bytes = sizeof *options, .target = "cpu" };
}

/* ---- the text of one argument ---- */

static kjit_status fail(request *r, uint32_t index, kjit_status status, const char *expected,
                        const char *text)
{
  const ki_decl *decl = r->kernel->parameters[index].decl;
  return kj_error_at(r->diagnostics, r->kernel->module, decl->location, status,
                     "parameter `%s`: expected %s, got `%s`", decl->name, expected, text);
}

/* Digits of a literal up to its type suffix: the suffix starts at a letter that is no part of a
 * number. */
static size_t literal_length(const char *text)
{
  bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  size_t i = is_hex ? 2 : 0;
  for (; text[i]; i++) {
    char c = text[i];
    bool is_exponent =
      !is_hex && (c == 'e' || c == 'E') &&
      (isdigit((unsigned char)text[i + 1]) || text[i + 1] == '-' || text[i + 1] == '+');
    bool is_sign =
      (c == '-' || c == '+') && i && (text[i - 1] == 'e' || text[i - 1] == 'E') && !is_hex;
    bool is_digit = is_hex ? isxdigit((unsigned char)c) != 0 : isdigit((unsigned char)c) != 0;
    if (!is_digit && !is_exponent && !is_sign && c != '.' && c != '_') break;
  }
  return i;
}

static bool read_integer(const char *digits, size_t length, __int128 *integer)
{
  bool is_hex = length > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  *integer = 0;
  for (size_t i = is_hex ? 2 : 0; i < length; i++) {
    if (digits[i] == '_') continue;
    int digit = isdigit((unsigned char)digits[i]) ? digits[i] - '0'
                                                  : tolower((unsigned char)digits[i]) - 'a' + 10;
    *integer = *integer * (is_hex ? 16 : 10) + digit;
    if (*integer > (__int128)UINT64_MAX) return false;
  }
  return true;
}

/* "16", "-3", "0x10", "2.5f32", "7u64", "true", "-inf", "nan". false: no value. */
static bool read_value(char *text, ki_value *value)
{
  bool is_negative = *text == '-';
  char *digits = text + is_negative;
  if (!strcmp(text, "true") || !strcmp(text, "false")) {
    *value = (ki_value){ .type = KJIT_BOOL, .integer = *text == 't' };
    return true;
  }
  if (!strcmp(digits, "inf") || !strcmp(digits, "nan")) {
    double magnitude = *digits == 'i' ? INFINITY : NAN;
    *value = ki_float_value(KJ_WEAK_FLOAT, is_negative ? -magnitude : magnitude);
    return true;
  }
  if (!isdigit((unsigned char)*digits) && *digits != '.') return false;
  size_t length = literal_length(digits);
  bool is_hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'),
       is_float = !is_hex && strcspn(digits, ".eE") < length;
  kjit_type suffix =
    digits[length] ? ki_find_scalar(digits + length, strlen(digits + length)) : KJIT_ANY;
  if (digits[length] && suffix == KJIT_ANY) return false;
  ki_value read = { .type = is_float ? KJ_WEAK_FLOAT : KJ_WEAK_INT };
  char end = digits[length];
  digits[length] = 0; /* for ki_read_float */
  if (is_float)
    read = ki_float_value(ki_is_floating(suffix) ? suffix : KJ_WEAK_FLOAT,
                          ki_read_float(digits, suffix));
  digits[length] = end;
  bool is_read = is_float || read_integer(digits, length, &read.integer);
  if (is_negative) (void)ki_compute_unary(KJIT_NEG, read, &read);
  if (!is_read || !(is_float || ki_integer_fits(KJ_WEAK_INT, read.integer))) return false;
  *value = read;
  return suffix == KJIT_ANY || ki_fit_argument(read, suffix, value);
}

static kjit_status read_const(request *r, uint32_t index, char *text)
{
  const kj_annotation *annotation = &r->kernel->parameters[index].annotation;
  ki_value value, converted;
  if (!read_value(text, &value))
    return fail(r, index, KJIT_ERROR_ARGUMENT, "a value, as the parameter is const", text);
  if (annotation->kind == KJ_ANNOTATION_SCALAR) {
    if (!ki_fit_argument(value, annotation->type, &converted))
      return fail(r, index, KJIT_ERROR_ARGUMENT, ki_type(r->types, annotation->type)->name, text);
    value = converted;
  }
  r->arguments[index] =
    (kj_argument){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .integer = value.integer };
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .value = value };
  return KJIT_OK;
}

static kjit_status read_function(request *r, uint32_t index, const char *text)
{
  const ki_decl *decl = ki_find_decl(r->kernel->module, text);
  if (!decl || decl->kind != KJ_DECL_FUNCTION || decl->function->is_kernel)
    return fail(r, index, KJIT_ERROR_NAME, "the name of a func", text);
  r->arguments[index] =
    (kj_argument){ .kind = KJ_ARGUMENT_FUNCTION, .type = KJIT_FUNC, .function = decl };
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_FUNCTION, .function = decl };
  return KJIT_OK;
}

/* A type annotation of the parameter that the type given cannot have. What dtype() names is left to
 * inference. */
static kjit_status check_annotation(request *r, uint32_t index, const ki_type_info *info,
                                    const char *text)
{
  const kj_annotation *annotation = &r->kernel->parameters[index].annotation;
  if (annotation->kind != KJ_ANNOTATION_ARRAY && annotation->kind != KJ_ANNOTATION_SCALAR)
    return KJIT_OK;
  bool wants_array = annotation->kind == KJ_ANNOTATION_ARRAY,
       is_array = info->class_ == KJ_CLASS_ARRAY;
  bool fits = wants_array == is_array;
  if (fits && is_array)
    fits = info->rank == annotation->rank &&
           (annotation->type == KJIT_ANY || annotation->type == info->element) &&
           (annotation->layout == KJIT_LAYOUT_STRIDED || annotation->layout == info->layout);
  if (fits) return KJIT_OK;
  kj_buffer expected = { 0 };
  const ki_type_expr *written = r->kernel->parameters[index].decl->type_expr;
  if (written->kind == KJ_TYPE_FIXED) ki_print_type(r->types, written->type, &expected);
  else kj_append_format(&expected, "an array of %u dimensions", annotation->rank);
  kjit_status status =
    fail(r, index, KJIT_ERROR_ARGUMENT, expected.text ? expected.text : "its annotation", text);
  kj_free_buffer(&expected);
  return status;
}

static kjit_status read_typed(request *r, uint32_t index, char *text)
{
  ki_value value;
  kjit_type type;
  /* as a specialization prints its signature */
  bool is_integer_number = !strcmp(text, "integer number");
  if (is_integer_number || !strcmp(text, "number")) {
    r->arguments[index] = (kj_argument){ .kind = KJ_ARGUMENT_NUMBER,
                                         .type = is_integer_number ? KJ_WEAK_INT : KJ_WEAK_FLOAT };
    /* a value for a parameter that takes it at run time: only its type counts */
  } else if (read_value(text, &value)) {
    r->arguments[index] =
      (kj_argument){ .kind = ki_is_weak(value.type) ? KJ_ARGUMENT_NUMBER : KJ_ARGUMENT_VALUE,
                     .type = value.type };
  } else {
    KJ_TRY(ki_parse_type(r->types, text, r->diagnostics, &type));
    const ki_type_info *info = ki_type(r->types, type);
    KJ_TRY(check_annotation(r, index, info, text));
    if (info->class_ != KJ_CLASS_ARRAY && !info->size_bytes)
      return fail(r, index, KJIT_ERROR_ARGUMENT, "the type of an array or of a value in memory",
                  text);
    r->arguments[index] =
      (kj_argument){ .kind = info->class_ == KJ_CLASS_ARRAY ? KJ_ARGUMENT_ARRAY : KJ_ARGUMENT_VALUE,
                     .type = type };
  }
  const kj_annotation *annotation = &r->kernel->parameters[index].annotation;
  /* as a launch converts it */
  if (r->arguments[index].kind != KJ_ARGUMENT_ARRAY && annotation->kind == KJ_ANNOTATION_SCALAR) {
    r->arguments[index].kind = KJ_ARGUMENT_VALUE;
    r->arguments[index].type = annotation->type;
  }
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_FUNCTION }; /* nothing that can be evaluated */
  return KJIT_OK;
}

static kjit_status read_argument(request *r, uint32_t index, char *text)
{
  const kj_parameter_row *row = &r->kernel->parameters[index];
  if (row->is_func) return read_function(r, index, text);
  return row->is_const ? read_const(r, index, text) : read_typed(r, index, text);
}

static kjit_status read_default(request *r, uint32_t index)
{
  const ki_decl *decl = r->kernel->parameters[index].decl;
  kj_scope scope = { .bound = r->bound, .bound_count = index };
  ki_value value;
  if (!kj_evaluate(&scope, decl->value, &value))
    return kj_error_at(r->diagnostics, r->kernel->module, scope.location, KJIT_ERROR_ARGUMENT,
                       "the default of parameter `%s` cannot be evaluated: this %s", decl->name,
                       scope.reason);
  r->arguments[index] =
    (kj_argument){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .integer = value.integer };
  r->bound[index] = (kj_bound){ .kind = KJ_ARGUMENT_CONST, .type = value.type, .value = value };
  return KJIT_OK;
}

/* ---- the signature ---- */

/* The end of an argument's text: a comma outside brackets, or the end. */
static const char *find_end(const char *text)
{
  int depth = 0;
  for (; *text; text++) {
    if (*text == '[' || *text == '(') depth++;
    if (*text == ']' || *text == ')') depth--;
    if (*text == ',' && depth <= 0) break;
  }
  return text;
}

static char *copy_trimmed(const char *start, const char *end)
{
  while (start < end && isspace((unsigned char)*start)) start++;
  while (end > start && isspace((unsigned char)end[-1])) end--;
  return strndup(start, (size_t)(end - start));
}

static kjit_status report_count(request *r, uint32_t given)
{
  const ki_decl *decl = r->kernel->function->decl;
  return kj_error_at(r->diagnostics, r->kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "kernel `%s`: expected %u arguments in the signature, got %u", decl->name,
                     r->kernel->parameter_count, given);
}

static kjit_status read_signature(request *r, const char *text)
{
  uint32_t count = 0;
  const char *at = text + strspn(text, " \t\n");
  while (*at) {
    const char *end = find_end(at);
    if (count == r->kernel->parameter_count) {
      while (*end) end = find_end(end + 1), count++;
      return report_count(r, count + 1);
    }
    char *argument = copy_trimmed(at, end);
    if (!argument) return kj_error(r->diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    kjit_status status = *argument ? read_argument(r, count, argument)
                                   : fail(r, count, KJIT_ERROR_SYNTAX, "a type or a value", "");
    free(argument);
    if (status != KJIT_OK) return status;
    count++;
    at = *end ? end + 1 : end;
    if (*end && !*(at + strspn(at, " \t\n"))) break; /* a comma at the end */
  }
  for (; count < r->kernel->parameter_count; count++) {
    if (!r->kernel->parameters[count].decl->value) return report_count(r, count);
    KJ_TRY(read_default(r, count));
  }
  return KJIT_OK;
}

kjit_status kj_read_signature(kjit_kernel *kernel, const char *text, kj_argument *arguments,
                              kj_bound *bound, kj_diagnostics *diagnostics)
{
  request r = { .kernel = kernel,
                .types = kernel->module->types,
                .diagnostics = diagnostics,
                .bound = bound,
                .arguments = arguments };
  return read_signature(&r, text);
}

/* ---- options ---- */

static kjit_status read_target(request *r, const char *text, kj_target *target)
{
  *target = (kj_target){ .kind = KJ_TARGET_CPU };
  if (!strcmp(text, "cpu")) return KJIT_OK;
  size_t digits = strncmp(text, "sm_", 3) ? 0 : strspn(text + 3, "0123456789");
  const char *suffix = text + 3 + digits;
  bool is_suffix = digits && (!*suffix || ((*suffix == 'a' || *suffix == 'f') && !suffix[1]));
  if (digits < 2 || digits > 3 || !is_suffix)
    return kj_error(r->diagnostics, KJIT_ERROR_ARGUMENT,
                    "target: expected cpu, or sm_75 and up, got `%s`", text);
  target->kind = KJ_TARGET_NVPTX;
  target->arch = (uint32_t)strtoul(text + 3, NULL, 10);
  target->suffix = *suffix;
  return KJIT_OK;
}

static kjit_status choose_block(request *r, const kjit_compile_options *options, bool is_cpu)
{
  const kjit_kernel *kernel = r->kernel;
  uint32_t *block = r->signature.block, wanted[3];
  bool is_given = options->block[0] || options->block[1] || options->block[2];
  for (int i = 0; i < 3 && is_given; i++) block[i] = options->block[i] ? options->block[i] : 1;
  is_given = is_given || block[0]; /* by the facts */
  if (kernel->block && (kernel->block_is_static || (is_cpu && !is_given))) {
    kj_scope scope = { .bound = r->bound,
                       .bound_count = kernel->parameter_count,
                       .bindings = kernel->bindings,
                       .binding_count = kernel->binding_count };
    KJ_TRY(kj_evaluate_attribute(kernel, &scope, kernel->block, r->diagnostics, wanted));
    if (is_given && memcmp(block, wanted, sizeof wanted))
      return kj_error_at(r->diagnostics, kernel->module, kernel->block->location,
                         KJIT_ERROR_ARGUMENT,
                         "kernel `%s`: @block is %u x %u x %u, the options give %u x %u x %u",
                         kernel->function->decl->name, wanted[0], wanted[1], wanted[2], block[0],
                         block[1], block[2]);
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
      "kernel `%s`: a block has at most 1024 x 1024 x 64 and 1024 threads, got %u x %u x %u",
      kernel->function->decl->name, block[0], block[1], block[2]);
  return is_valid
           ? KJIT_OK
           : kj_error(r->diagnostics, KJIT_ERROR_ARGUMENT,
                      "block: expected at most 1024 x 1024 x 64 and 1024 threads, got %u x %u x %u",
                      block[0], block[1], block[2]);
}

/* ---- stages ---- */

bool kj_has_stage(kjit_stage stage, bool is_gpu)
{
  enum { GPU = 1, CPU };
  static const uint8_t own[KJIT_STAGE_COUNT] = { [KJIT_STAGE_PTX] = GPU,
                                                 [KJIT_STAGE_CUBIN] = GPU,
                                                 [KJIT_STAGE_SASS] = GPU,
                                                 [KJIT_STAGE_ASM] = CPU,
                                                 [KJIT_STAGE_OBJECT] = CPU };
  return !own[stage] || own[stage] == (is_gpu ? GPU : CPU);
}

const char *kj_own_stages(bool is_gpu) { return is_gpu ? "ptx, cubin and sass" : "asm and object"; }

/* ---- the compilation ---- */

/* What NVIDIA's programs make of the PTX. */
static kjit_status run_assembler(const kjit_compile_options *options, bool is_part,
                                 kjit_stage stage, kj_diagnostics *diagnostics, kj_code *made)
{
  kj_assembly assembly = {
    .ptxas = options->ptxas, .target = options->target, .debug = options->debug, .is_part = is_part
  };
  void *cubin, *result;
  size_t cubin_bytes, result_bytes;
  KJ_TRY(kj_assemble(&assembly, made->data, made->size_bytes, diagnostics, &cubin, &cubin_bytes));
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

static kjit_status run_compiler(request *r, const char *symbol, const kjit_compile_options *options,
                                kjit_stage stage, kj_code *made)
{
  static const char *const names[] = {
#define X(name, text, is_text, what) text,
    KJIT_STAGES(X)
#undef X
  };
  bool is_assembled = stage == KJIT_STAGE_CUBIN || stage == KJIT_STAGE_SASS;
  kj_compile_request request = { .module = r->kernel->module,
                                 .kernel = r->kernel->function,
                                 .signature = &r->signature,
                                 .stage = is_assembled ? KJIT_STAGE_PTX : stage,
                                 .after_pass = options->after_pass,
                                 .checks = options->checks,
                                 .debug = options->debug,
                                 .symbol = symbol,
                                 .is_ahead = true };
  KJ_TRY(read_target(r, options->target ? options->target : "cpu", &request.target));
  bool is_cpu = request.target.kind == KJ_TARGET_CPU;
  if (!kj_has_stage(stage, !is_cpu))
    return kj_error(r->diagnostics, KJIT_ERROR_ARGUMENT,
                    "stage: %s is there for %s targets only, the target is %s", names[stage],
                    is_cpu ? "GPU" : "CPU", options->target ? options->target : "cpu");
  request.target.ptx_version = options->ptx_version;
  if (options->facts)
    KJ_TRY(kj_read_facts(r->kernel, options->facts, r->arguments, r->relations, &r->signature,
                         r->diagnostics));
  KJ_TRY(choose_block(r, options, is_cpu));
  kj_runtime *runtime = kj_get_runtime(r->kernel->context);
  if (!runtime) return kj_error(r->diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  KJ_TRY(kj_get_compiler(runtime, r->diagnostics));
  KJ_TRY(runtime->interface->compile(runtime->compiler, &request, r->diagnostics, made));
  return is_assembled ? run_assembler(options, symbol != NULL, stage, r->diagnostics, made)
                      : KJIT_OK;
}

static kjit_status compile(kjit_kernel *kernel, const char *signature, const char *symbol,
                           const kjit_compile_options *options, kjit_stage stage,
                           kj_diagnostics *diagnostics, kj_code *made)
{
  uint32_t count = kernel->parameter_count;
  request r = { .kernel = kernel, .types = kernel->module->types, .diagnostics = diagnostics };
  r.bound = calloc(count + 1, sizeof *r.bound);
  r.arguments = calloc(count + 1, sizeof *r.arguments);
  r.relations = calloc((size_t)count * count + 1, sizeof *r.relations);
  r.signature.arguments = r.arguments;
  r.signature.count = count;
  kjit_status status = KJIT_ERROR_MEMORY;
  if (!r.bound || !r.arguments || !r.relations)
    kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  else status = read_signature(&r, signature);
  if (status == KJIT_OK) status = run_compiler(&r, symbol, options, stage, made);
  free(r.bound);
  free(r.arguments);
  free(r.relations);
  return status;
}

/* A smaller size_bytes is an older header's: what it lacks keeps its default. */
static bool read_options(const kjit_compile_options *given, kjit_compile_options *options)
{
  kjit_init_compile_options(options);
  if (!given) return true;
  size_t least = offsetof(kjit_compile_options, target);
  if (given->size_bytes < least || given->size_bytes > sizeof *options) return false;
  memcpy(options, given, given->size_bytes);
  options->size_bytes = sizeof *options;
  return true;
}

static kjit_status compile_as(const char *call, kjit_kernel *kernel, const char *signature,
                              const char *symbol, const kjit_compile_options *options,
                              kjit_stage stage, void **code, size_t *size_bytes)
{
  kjit_compile_options read;
  kjit_context *context = kernel->context;
  if (!signature || !code || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: %s is NULL", call,
                        !signature ? "signature"
                        : !code    ? "code"
                                   : "size_bytes");
  if ((unsigned)stage >= KJIT_STAGE_COUNT)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: there is no stage %d", call, (int)stage);
  if (!read_options(options, &read))
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "%s: options.size_bytes is unknown: set it with kjit_init_compile_options",
                        call);
  if (read.after_pass && stage != KJIT_STAGE_TYPED)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: after_pass is for the stage TYPED", call);
  if ((unsigned)read.debug > KJIT_DEBUG_FULL)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: there is no debug %d", call,
                        (int)read.debug);
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

/* ---- C functions ---- */

/* A name that C, PTX and assemblers take. */
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
    return ki_fail_call(
      module->context, KJIT_ERROR_NAME,
      "`%s` is no name for a C function: letters, digits, `_` and `$`, no digit first", name);
  if (kn_is_library_name(name))
    return ki_fail_call(module->context, KJIT_ERROR_NAME,
                        "`%s` is the name of a function that generated code calls: the C function "
                        "needs another symbol",
                        name);
  if (decl->function->is_extern)
    return ki_fail_call(module->context, KJIT_ERROR_ARGUMENT,
                        "`%s` is extern: there is nothing to compile", decl->name);
  kjit_kernel *kernel = kj_get_kernel_object(module, decl->index);
  if (!kernel) return ki_fail_call(module->context, KJIT_ERROR_MEMORY, "out of memory");
  return compile_as("kjit_compile_function", kernel, signature, name, options, stage, code,
                    size_bytes);
}
