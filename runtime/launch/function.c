/* Implements calls of funcs by the application, through libffi. function_code.c compiles the funcs
 * as C functions.
 *
 * A func that can fail has an additional first parameter: the address of a failure record, which
 * kjit_call_function passes. Function pointers are available only for funcs that cannot fail. */
#include <ffi.h>
#include <kjit/function.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "support/stack.h"
#include "code/specialization.h"
#include "launch/function_code.h"
#include "report/report.h"

static kjit_kernel *kernel_of(kjit_function *function)
{
  const ki_decl *decl = kj_function_of(function);
  return kj_get_kernel_object(decl->function->module, decl->index);
}

/* Returns whether the func is a built-in or an extern func, which has no compiled code of its
 * own. */
static bool is_elsewhere(kjit_function *function)
{
  const ki_function *called = kj_function_of(function)->function;
  return called->is_extern || called->builtin;
}

static kjit_status refuse_elsewhere(kjit_context *context, kjit_function *function)
{
  return ki_fail_call(context, KJIT_ERROR_ARGUMENT,
                      kj_function_of(function)->function->builtin
                        ? "`%s` is a built-in; call a function that calls it"
                        : "`%s` is an extern function, which the application provides itself; call "
                          "a function of the module that calls it",
                      kj_function_of(function)->name);
}

/* ---- a call ---- */

/* A C argument as libffi needs it. An array takes the largest number of C arguments: a pointer,
 * extents and strides. */
enum { MOST_PARTS = 1 + 2 * KJ_MAX_RANK };
typedef struct frame {
  ffi_type **types;
  void **values;
  uint64_t *words;
  unsigned count;
} frame;

static ffi_type *ffi_type_of(kjit_type type)
{
  switch (type) {
  case KJIT_BOOL:
  case KJIT_U8: return &ffi_type_uint8;
  case KJIT_I8: return &ffi_type_sint8;
  case KJIT_I16: return &ffi_type_sint16;
  case KJIT_F16:
  case KJIT_BF16:
  case KJIT_U16: return &ffi_type_uint16;
  case KJIT_I32: return &ffi_type_sint32;
  case KJIT_U32: return &ffi_type_uint32;
  case KJIT_I64:
  case KJ_WEAK_INT: return &ffi_type_sint64;
  case KJIT_U64: return &ffi_type_uint64;
  case KJIT_F32: return &ffi_type_float;
  case KJIT_F64:
  case KJ_WEAK_FLOAT: return &ffi_type_double;
  case KJIT_VOID: return &ffi_type_void;
  default: return &ffi_type_pointer;
  }
}

static void push(frame *f, ffi_type *type, uint64_t word)
{
  f->types[f->count] = type;
  f->words[f->count] = word;
  f->values[f->count] = &f->words[f->count];
  f->count++;
}

static void push_argument(frame *f, const kj_bound *bound)
{
  if (bound->kind == KJ_ARGUMENT_VALUE || bound->kind == KJ_ARGUMENT_NUMBER)
    push(f, ffi_type_of(bound->type), bound->bits[0]);
  if (bound->kind != KJ_ARGUMENT_ARRAY) return;
  push(f, &ffi_type_pointer, bound->target);
  for (uint32_t d = 0; d < bound->rank; d++) push(f, &ffi_type_sint64, (uint64_t)bound->shape[d]);
  for (uint32_t d = 0; d < bound->rank && bound->layout == KJIT_LAYOUT_STRIDED; d++)
    push(f, &ffi_type_sint64, (uint64_t)kj_stride_of(bound, d));
}

static kjit_arg read_result(kjit_type type, uint64_t word)
{
  kjit_arg result = kjit_make_arg(KJIT_ARG_VALUE, type);
  switch (type) { /* libffi returns small integers in a full register */
  case KJIT_BOOL: result.value.u = (uint8_t)word != 0; break;
  case KJIT_I8: result.value.i = (int8_t)word; break;
  case KJIT_I16: result.value.i = (int16_t)word; break;
  case KJIT_I32: result.value.i = (int32_t)word; break;
  case KJIT_U8: result.value.u = (uint8_t)word; break;
  case KJIT_F16:
  case KJIT_BF16:
  case KJIT_U16: result.value.u = (uint16_t)word; break;
  case KJIT_U32:
  case KJIT_F32: result.value.u = (uint32_t)word; break;
  case KJIT_VOID: break;
  default: result.value.u = word; break;
  }
  return result;
}

/* Returns whether the type is an aggregate, which functions for kjit_call_function pass and return
 * by address. */
static bool is_by_address(const ki_type_info *info)
{
  return info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_STRUCT ||
         info->class_ == KJ_CLASS_COMPLEX || info->class_ == KJ_CLASS_TUPLE;
}

/* The destination of a result. */
typedef struct destination {
  kjit_arg *result;   /* NULL if the caller does not read the result */
  size_t *size_bytes; /* size of the memory for a result by address */
} destination;

typedef struct value_layout {
  size_t size_bytes, alignment_bytes;
} value_layout;

static size_t round_up(size_t size_bytes, size_t alignment_bytes)
{
  KJ_ASSERT(alignment_bytes);
  return (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

/* Returns a result's layout in memory. A tuple has the layout of a C struct of its items, as in
 * lib/lower/abi.c. */
static value_layout lay_out(const ki_types *types, kjit_type type)
{
  const size_t weak_bytes = 8;
  if (ki_is_weak(type)) return (value_layout){ weak_bytes, weak_bytes };
  const ki_type_info *info = ki_type(types, type);
  if (info->class_ != KJ_CLASS_TUPLE)
    return (value_layout){ info->size_bytes,
                           info->alignment_bytes ? info->alignment_bytes : info->size_bytes };
  value_layout whole = { 0, 1 };
  for (uint32_t i = 0; i < info->count; i++) {
    value_layout item = lay_out(types, info->items[i]);
    whole.size_bytes = round_up(whole.size_bytes, item.alignment_bytes) + item.size_bytes;
    if (item.alignment_bytes > whole.alignment_bytes) whole.alignment_bytes = item.alignment_bytes;
  }
  whole.size_bytes = round_up(whole.size_bytes, whole.alignment_bytes);
  return whole;
}

/* Checks that the destination has room for a result by address. Otherwise stores the size that the
 * result needs. */
static kjit_status check_size(const kjit_kernel *kernel, kjit_type type, size_t *size_bytes,
                              kj_diagnostics *diagnostics)
{
  size_t given_bytes = *size_bytes, needed_bytes = lay_out(kernel->module->types, type).size_bytes;
  if (needed_bytes <= given_bytes) return KJIT_OK;
  *size_bytes = needed_bytes;
  const ki_decl *decl = kernel->function->decl;
  return kj_error_at(diagnostics, kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "function `%s` returns %zu bytes, but the destination has %zu bytes",
                     decl->name, needed_bytes, given_bytes);
}

static kjit_status refuse_result(const kjit_kernel *kernel, kjit_type type,
                                 kj_diagnostics *diagnostics)
{
  kj_buffer text = { 0 };
  const ki_decl *decl = kernel->function->decl;
  ki_print_type(kernel->module->types, type, &text);
  kjit_status status = kj_error_at(
    diagnostics, kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
    "function `%s` returns %s; pass a KJIT_ARG_BY_ADDRESS as result that points to the destination",
    decl->name, text.text ? text.text : "several values");
  kj_free_buffer(&text);
  return status;
}

/* A call of interruptible code, which can be left by longjmp. */
typedef struct interruptible_call {
  kj_interruptible_call call; /* must be the first member: the code passes a pointer to this grid to
                                 the function `leave` */
  jmp_buf left;
} interruptible_call;

static void leave_call(const kj_cpu_grid *grid)
{
  longjmp(((interruptible_call *)(uintptr_t)grid)->left, 1);
}

typedef struct foreign_call {
  ffi_cif interface;
  void (*entry)(void);
  void *returned, **values;
  interruptible_call *interruptible; /* NULL if the code cannot be interrupted */
} foreign_call;

static void run_foreign(void *data)
{
  foreign_call *f = data;
  if (f->interruptible) {
    f->interruptible->call.grid.leave = leave_call;
    if (setjmp(f->interruptible->left)) return;
  }
  ffi_call(&f->interface, f->entry, f->returned, f->values);
}

static kjit_status run(const kjit_kernel *kernel, kjit_device *device, const kj_function_code *code,
                       const kj_bound *bound, frame *f, kj_diagnostics *diagnostics,
                       const destination *to)
{
  kjit_arg *result = to->result;
  kj_failure_record record = { .state = KJ_FAILURE_FREE };
  union {
    ffi_arg integer;
    uint64_t word;
  } returned = { 0 };
  const ki_type_info *returns = ki_type(kernel->module->types, code->code.result);
  bool is_composed = is_by_address(returns);
  if (is_composed && (!result || result->kind != KJIT_ARG_BY_ADDRESS || !result->value.address))
    return refuse_result(kernel, code->code.result, diagnostics);
  if (is_composed) KJ_TRY(check_size(kernel, code->code.result, to->size_bytes, diagnostics));
  interruptible_call call;
  kj_interruptible_launch begun = { 0 };
  bool is_interruptible = code->code.is_interruptible;
  if (code->code.can_fail) push(f, &ffi_type_pointer, (uint64_t)(uintptr_t)&record);
  memset(&call.call, 0, sizeof call.call);
  if (is_interruptible) push(f, &ffi_type_pointer, (uint64_t)(uintptr_t)&call);
  if (is_composed) push(f, &ffi_type_pointer, (uint64_t)(uintptr_t)result->value.address);
  for (uint32_t i = 0; i < kernel->parameter_count; i++) push_argument(f, &bound[i]);
  foreign_call foreign = { .entry = code->entry, .returned = &returned, .values = f->values };
  if (ffi_prep_cif(&foreign.interface, FFI_DEFAULT_ABI, f->count,
                   is_composed ? &ffi_type_void : ffi_type_of(code->code.result),
                   f->types) != FFI_OK)
    return kj_error(diagnostics, KJIT_ERROR_UNSUPPORTED,
                    "function `%s`: libffi cannot make this call", kernel->function->decl->name);
  if (is_interruptible) {
    KJ_TRY(kj_begin_interruptible(device, 0, 0, diagnostics, &begun));
    call.call.word = (const kj_interrupt_word *)(uintptr_t)begun.word;
    call.call.number = begun.number;
    foreign.interruptible = &call;
  }
  ki_host_code host_code; /* the func may call extern funcs, which are code of the application */
  ki_enter_host(&host_code, kernel->context);
  bool has_run = kj_call_with_stack(code->code.stack_bytes, run_foreign, &foreign);
  ki_leave_host(&host_code);
  if (!has_run)
    return kj_error(diagnostics, KJIT_ERROR_MEMORY,
                    "function `%s`: out of memory: it needs %u bytes of stack",
                    kernel->function->decl->name, code->code.stack_bytes);
  if (record.state == KJ_FAILURE_WRITTEN)
    return kj_report_failure(kernel, &code->code, true, &record, diagnostics);
  if (is_composed) result->type = code->code.result;
  else if (result) *result = read_result(code->code.result, returned.word);
  return KJIT_OK;
}

/* Decides which plain code the call may run; see choose_plain in launch.c. */
static kj_plain choose_plain(const kj_call *call)
{
  const kjit_context *context = call->kernel->context;
  bool can_use = !call->device->is_target && context->config.debug == KJIT_DEBUG_NONE;
  return can_use ? kj_get_plain_kind(context) : KJ_PLAIN_NONE;
}

static kjit_status call_function(kj_call *call, const kjit_arg *arguments, size_t count,
                                 kj_argument *described, frame *f, kj_diagnostics *diagnostics,
                                 const destination *to)
{
  kjit_kernel *kernel = call->kernel;
  kj_function_code *code;
  kjit_launch_config config = { .size_bytes = sizeof config };
  call->config = &config;
  KJ_TRY(kj_find_device(call->runtime, KJIT_DEVICE_CPU, 0, diagnostics, &config.device));
  KJ_TRY(kj_bind_arguments(call, arguments, count, diagnostics));
  KJ_TRY(kj_choose_device(call, arguments, diagnostics)); /* rejects arrays that are not in host
                                                           * memory */
  for (uint32_t i = 0; i < kernel->parameter_count; i++) {
    kj_bound *bound = &call->bound[i];
    if (bound->kind == KJ_ARGUMENT_ARRAY) bound->target = bound->address;
    /* an untyped integer is an i64 here, because no other operand determines its type */
    if (bound->kind == KJ_ARGUMENT_NUMBER && bound->type == KJ_WEAK_INT) bound->type = KJIT_I64;
    if (!kj_describe_argument(kernel, bound, &described[i]))
      return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
    described[i].facts = 0;
  }
  const kjit_config *options = &kernel->context->config;
  const kj_function_key key = { described, options->checks, options->interruptible != 0 };
  KJ_TRY(kj_get_function_code(kernel, &key, choose_plain(call), diagnostics, &code));
  KJ_TRY(kj_check_limits(call, &code->code, diagnostics));
  if (call->has_read_only) KJ_TRY(kj_check_writes(call, arguments, &code->code, diagnostics));
  return run(kernel, config.device, code, call->bound, f, diagnostics, to);
}

static kjit_status call_in_memory(kjit_context *context, kjit_function *function,
                                  const kjit_arg *arguments, size_t count, const destination *to)
{
  kjit_kernel *kernel = kernel_of(function);
  /* the additional arguments: failure record, interruptible call, address of the result */
  size_t most = kernel ? 3 + (size_t)kernel->parameter_count * MOST_PARTS : 0;
  kj_argument *described = kernel ? calloc(kernel->parameter_count + 1, sizeof *described) : NULL;
  frame f = { .types = malloc(most * sizeof *f.types + 1),
              .values = malloc(most * sizeof *f.values + 1),
              .words = malloc(most * sizeof *f.words + 1) };
  char *memory = kernel ? calloc(1, kernel->call_bytes) : NULL;
  kj_diagnostics diagnostics = { 0 };
  kj_call call = { .kernel = kernel, .runtime = kj_get_runtime(context) };
  kjit_status status = KJIT_ERROR_MEMORY;
  if (described && f.types && f.values && f.words && memory && call.runtime) {
    (void)kj_divide_memory(&call, memory);
    status = call_function(&call, arguments, count, described, &f, &diagnostics, to);
  } else kj_error(&diagnostics, status, "out of memory");
  free(described);
  free(f.types);
  free(f.values);
  free(f.words);
  free(memory);
  kjit_status reported = ki_finish_call(context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}

kjit_status kjit_call_function_into(kjit_function *function, const kjit_arg *arguments,
                                    size_t count, size_t *result_bytes, kjit_arg *result)
{
  if (!function) return KJIT_ERROR_MISUSE;
  kjit_context *context = kj_function_of(function)->function->module->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!arguments && count)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_call_function: arguments is NULL");
  if (!result_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE,
                        "kjit_call_function_into: result_bytes is NULL");
  if (is_elsewhere(function)) return refuse_elsewhere(context, function);
  uint32_t own = kj_slot();
  kj_count_up(&context->launches[own].begun, own);
  const destination to = { result, result_bytes };
  kjit_status status = call_in_memory(context, function, arguments, count, &to);
  /* another thread may destroy the context after this statement */
  kj_count_up(&context->launches[own].ended, own);
  return status;
}

/* Does not check the destination size, because the caller knows the result type. */
kjit_status kjit_call_function(kjit_function *function, const kjit_arg *arguments, size_t count,
                               kjit_arg *result)
{
  size_t most = SIZE_MAX;
  return kjit_call_function_into(function, arguments, count, &most, result);
}

/* ---- C function pointers ---- */

/* Rejects types that C functions cannot pass. Only kjit_call_function can pass values of these
 * types. */
static kjit_status check_c_type(const kjit_kernel *kernel, kjit_type type, const char *what,
                                kj_diagnostics *diagnostics)
{
  const ki_decl *decl = kernel->function->decl;
  if (ki_is_weak(type)) return KJIT_OK;
  const ki_type_info *info = ki_type(kernel->module->types, type);
  if (!is_by_address(info) && !(info->class_ == KJ_CLASS_FLOAT && info->size_bytes < 4))
    return KJIT_OK;
  return kj_error_at(
    diagnostics, kernel->module, decl->location, KJIT_ERROR_UNSUPPORTED,
    "function `%s`: %s has a type that a C function cannot pass or return; use a pointer to it",
    decl->name, what);
}

/* Splits "f64(f64, i32)" into the result type and a copy of the text between the parentheses. */
static kjit_status divide_signature(const kjit_kernel *kernel, const char *text,
                                    kj_diagnostics *diagnostics, kjit_type *result, char **inside)
{
  const char *start = strchr(text, '('), *end = strrchr(text, ')');
  const char *name = kernel->function->decl->name;
  /* skip the parentheses of a tuple type */
  while (start && start == text + strspn(text, " ")) start = strchr(start + 1, '(');
  bool is_closed = start && end && end > start && end[1 + strspn(end + 1, " ")] == 0;
  if (!is_closed)
    return kj_error(diagnostics, KJIT_ERROR_SYNTAX,
                    "function `%s`: expected a signature such as \"f64(f64, i32)\", got \"%s\"",
                    name, text);
  while (start > text && start[-1] == ' ') start--;
  char *type = strndup(text + strspn(text, " "), (size_t)(start - (text + strspn(text, " "))));
  start = strchr(start, '(') + 1;
  *inside = strndup(start, (size_t)(end - start));
  kjit_status status =
    type && *inside ? KJIT_OK : kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  if (status == KJIT_OK && strcmp(type, "void") == 0) *result = KJIT_VOID;
  else if (status == KJIT_OK)
    status = ki_parse_type(kernel->module->types, kernel->module, type, diagnostics, result);
  free(type);
  return status;
}

static kjit_status check_result(const kjit_kernel *kernel, kjit_type wanted, kjit_type has,
                                kj_diagnostics *diagnostics)
{
  if (wanted == has) return KJIT_OK;
  kj_buffer wants = { 0 }, returns = { 0 };
  ki_print_type(kernel->module->types, wanted, &wants);
  ki_print_type(kernel->module->types, has, &returns);
  const ki_decl *decl = kernel->function->decl;
  kjit_status status =
    kj_error_at(diagnostics, kernel->module, decl->location, KJIT_ERROR_TYPE,
                "function `%s` returns %s for these arguments, but the signature says %s",
                decl->name, has == KJIT_VOID ? "nothing" : returns.text,
                wanted == KJIT_VOID ? "void" : wants.text);
  kj_free_buffer(&wants);
  kj_free_buffer(&returns);
  return status;
}

static kjit_status get_pointer(kjit_kernel *kernel, const char *signature, kj_argument *arguments,
                               kj_bound *bound, char **inside, kj_diagnostics *diagnostics,
                               void (**pointer)(void))
{
  kjit_type result;
  kj_function_code *code;
  const ki_decl *decl = kernel->function->decl;
  KJ_TRY(divide_signature(kernel, signature, diagnostics, &result, inside));
  KJ_TRY(kj_read_signature(kernel, *inside, arguments, bound, diagnostics));
  for (uint32_t i = 0; i < kernel->parameter_count; i++)
    if (arguments[i].kind == KJ_ARGUMENT_VALUE)
      KJ_TRY(
        check_c_type(kernel, arguments[i].type, kernel->parameters[i].decl->name, diagnostics));
  const kj_function_key key = { arguments, KJIT_CHECK_NONE, false };
  KJ_TRY(kj_get_function_code(kernel, &key, KJ_PLAIN_NONE, diagnostics, &code));
  KJ_TRY(check_result(kernel, result, code->code.result, diagnostics));
  KJ_TRY(check_c_type(kernel, result, "its result", diagnostics));
  if (code->code.can_fail)
    return kj_error_at(
      diagnostics, kernel->module, decl->location, KJIT_ERROR_UNSUPPORTED,
      "function `%s` can fail (`raise`, or recursion that may be too deep), which a C "
      "function cannot report; use kjit_call_function",
      decl->name);
  *pointer = code->entry;
  return KJIT_OK;
}

kjit_status kjit_get_function_pointer(kjit_function *function, const char *signature,
                                      void (**pointer)(void))
{
  if (!function) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(kj_function_of(function)->function->module->context)) return KJIT_ERROR_FORKED;
  kjit_context *context = kj_function_of(function)->function->module->context;
  if (!signature || !pointer)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_get_function_pointer: %s is NULL",
                        signature ? "pointer" : "signature");
  if (is_elsewhere(function)) return refuse_elsewhere(context, function);
  kjit_kernel *kernel = kernel_of(function);
  kj_argument *arguments = kernel ? calloc(kernel->parameter_count + 1, sizeof *arguments) : NULL;
  kj_bound *bound = kernel ? calloc(kernel->parameter_count + 1, sizeof *bound) : NULL;
  char *inside = NULL;
  kj_diagnostics diagnostics = { 0 };
  void (*found)(void) = NULL;
  kjit_status status = KJIT_ERROR_MEMORY;
  if (arguments && bound)
    status = get_pointer(kernel, signature, arguments, bound, &inside, &diagnostics, &found);
  else kj_error(&diagnostics, status, "out of memory");
  free(arguments);
  free(bound);
  free(inside);
  if (status == KJIT_OK) *pointer = found;
  kjit_status reported = ki_finish_call(context, &diagnostics);
  return status != KJIT_OK ? status : reported;
}
