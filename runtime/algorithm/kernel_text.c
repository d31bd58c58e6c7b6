/* Writes the source of kernels. A kernel calls the family's func of lib/library and passes the
 * operands as funcs:
 *
 *     import "operators"
 *     import "reduce"
 *     func x_at(g0, x_0) @inline { return f32(x_0[g0]) }
 *     kernel run(x_0: const dtype(x_0)[:], ...) @block(THREADS) {
 *       reduce_all(bind_back(x_at, x_0), ...)
 *     }
 *
 * g0, g1, g2 are the linear indices of the groups (ka_arrange). */
#include <stdarg.h>
#include <string.h>

#include "algorithm/algorithm.h"
#include "code/kernel.h"
#include "ir/context.h"

void ka_begin_kernel(ka_call *call, const char *module, ka_kernel *kernel)
{
  ka_choose_device(call);
  ka_texts *texts = KJ_NEW(&call->arena, ka_texts);
  KJ_PUSH(&call->arena, &call->texts, texts);
  *kernel = (ka_kernel){ .call = call,
                         .module = module,
                         .funcs = &texts->funcs,
                         .parameters = &texts->parameters,
                         .constants = &texts->constants,
                         .body = &texts->body };
}

/* ---- parameters ---- */

static void add_parameter(ka_kernel *kernel, const char *name, const char *type,
                          const kjit_arg *argument)
{
  kj_append_format(kernel->parameters, "%s%s%s", kernel->arguments.count ? ", " : "", name, type);
  KJ_PUSH(&kernel->call->arena, &kernel->arguments, *argument);
}

static const char *numbered(ka_kernel *kernel, const char *letter)
{
  return kj_format(&kernel->call->arena, "%s%zu", letter, kernel->arguments.count);
}

const char *ka_use_value(ka_kernel *kernel, const kjit_arg *value)
{
  const char *name = numbered(kernel, "v");
  add_parameter(kernel, name, "", value);
  return name;
}

const char *ka_use_count(ka_kernel *kernel, uint64_t count)
{
  kjit_arg value =
    kernel->call->is_wide ? kjit_arg_i64((int64_t)count) : kjit_arg_i32((int32_t)count);
  return ka_use_value(kernel, &value);
}

const char *ka_use_work(ka_kernel *kernel, uint32_t work)
{
  /* kind 0 marks an index of temporary storage; perform.c replaces the argument by the array */
  kjit_arg argument = { .value.u = work };
  const char *name = numbered(kernel, "w");
  add_parameter(kernel, name, "", &argument);
  return name;
}

const char *ka_use_work_rows(ka_kernel *kernel, uint32_t work, kjit_type element)
{
  kjit_arg argument = { .value.u = work };
  const char *name = numbered(kernel, "w");
  add_parameter(kernel, name,
                kj_format(&kernel->call->arena, ": const %s[:, :, ::1]",
                          ka_use_type(kernel, element)),
                &argument);
  return name;
}

const char *ka_use_array(ka_kernel *kernel, const kjit_arg *array)
{
  const char *name = numbered(kernel, "w");
  add_parameter(kernel, name, "", array);
  return name;
}

/* Passes the value as an untyped number, which gets the type of the index with which the kernel
 * combines it. An i64 constant would make all indices of the kernel 64-bit; the compiler could then
 * no longer merge accesses to adjacent elements. */
const char *ka_use_constant(ka_kernel *kernel, int64_t value)
{
  const char *name = kj_format(&kernel->call->arena, "C%zu", kernel->constant_values.count);
  kj_append_format(kernel->constants, ", const %s", name);
  KJ_PUSH(&kernel->call->arena, &kernel->constant_values, kjit_arg_number((double)value));
  return name;
}

/* ---- structs of the application ---- */

/* Adds the structs that occur in a type to kernel->structs, each with a name. The structs of fields
 * come before the struct that contains them, because they must be declared first. */
static void name_structs(ka_kernel *kernel, kjit_type type)
{
  kj_arena *arena = &kernel->call->arena;
  const ki_type_info *info = ki_type(kernel->call->context->types, type);
  if (info->element) name_structs(kernel, info->element);
  if (info->class_ != KJ_CLASS_STRUCT) return;
  for (uint32_t i = 0; i < info->count; i++) name_structs(kernel, info->items[i]);
  for (size_t i = 0; i < kernel->structs.count; i++)
    if (kernel->structs.items[i].type == type) return;
  ki_named_type named = { kj_format(arena, "hosts_struct_%zu", kernel->structs.count), type };
  KJ_PUSH(arena, &kernel->structs, named);
}

static void put_struct(const ki_type_printer *printer, kjit_type type)
{
  const ka_kernel *kernel = printer->data;
  for (size_t i = 0; i < kernel->structs.count; i++)
    if (kernel->structs.items[i].type == type)
      kj_append_text(printer->buffer, kernel->structs.items[i].name);
}

const char *ka_use_type(ka_kernel *kernel, kjit_type type)
{
  kj_buffer text = { 0 };
  name_structs(kernel, type);
  ki_print_type_by(&(ki_type_printer){ kernel->call->context->types, &text, put_struct, kernel },
                   type);
  return kj_keep_text(&kernel->call->arena, &text);
}

ka_kernel_source ka_get_kernel_source(const ka_kernel *kernel, const char *text, size_t length)
{
  return (ka_kernel_source){ .text = text,
                             .length = length,
                             .functions = kernel->functions.items,
                             .function_count = kernel->functions.count,
                             .types = kernel->structs.items,
                             .type_count = kernel->structs.count };
}

/* ---- funcs of the application ---- */

/* Returns a func's name for the kernel text: a built-in has its own name, and another func is
 * declared as an extern func and linked. */
const char *ka_use_function(ka_kernel *kernel, kjit_function *function, size_t count,
                            const char *what)
{
  const ki_decl *decl = (const ki_decl *)function;
  ka_call *call = kernel->call;
  ka_check_arity(call, function, count, what);
  if (decl->function->builtin) return decl->name;
  if (decl->function->is_extern && !decl->function->bound)
    ka_fail(call, KJIT_ERROR_NAME, "the extern function `%s` is not linked; use kjit_link_module",
            decl->name);
  if (kernel->functions.count == KA_MOST_FUNCTIONS)
    ka_fail(call, KJIT_ERROR_UNSUPPORTED, "a call can use at most %d functions", KA_MOST_FUNCTIONS);
  const char *name = kj_format(&call->arena, "hosts_%zu", kernel->functions.count);
  kj_append_format(kernel->funcs, "extern func %s(", name);
  for (size_t i = 0; i < count; i++) kj_append_format(kernel->funcs, "%sa%zu", i ? ", " : "", i);
  kj_append_text(kernel->funcs, ")\n");
  KJ_PUSH(&call->arena, &kernel->functions, ((ka_function_name){ name, decl }));
  return name;
}

const char *ka_use_operand_function(ka_kernel *kernel, const ka_operand *operand)
{
  size_t count = operand->rank + operand->array_count + (operand->is_output ? 1 : 0);
  ka_check_operand_arity(kernel->call, operand);
  return ka_use_function(kernel, operand->function, count, "");
}

/* ---- operands ---- */

/* Adds parameters for the arrays and values of an operand, and returns their names, each after a
 * comma. */
const char *ka_use_arrays(ka_kernel *kernel, const ka_operand *operand)
{
  kj_arena *arena = &kernel->call->arena;
  const char *names = "";
  for (size_t i = 0; i < operand->array_count; i++) {
    const kjit_arg *argument = &operand->arrays[i];
    const char *name = kj_format(arena, "%s_%zu", operand->name, i), *type = "";
    bool is_array = argument->kind == KJIT_ARG_ARRAY || argument->kind == KJIT_ARG_TENSOR;
    if (is_array && !operand->is_output) {
      kj_buffer text = { 0 };
      uint32_t rank = argument->kind == KJIT_ARG_ARRAY
                        ? (uint32_t)kjit_get_tensor(argument->value.array)->rank
                        : (uint32_t)argument->value.tensor->rank;
      kj_append_format(&text, ": const dtype(%s)[", name);
      for (uint32_t k = 0; k < rank; k++) kj_append_text(&text, k ? ", :" : ":");
      kj_append_text(&text, "]");
      type = kj_keep_text(arena, &text);
    }
    add_parameter(kernel, name, type, argument);
    names = kj_format(arena, "%s, %s", names, name);
  }
  return names;
}

const char *ka_use_rows(ka_kernel *kernel, const ka_operand *operand)
{
  kj_arena *arena = &kernel->call->arena;
  const char *name = kj_format(arena, "%s_0", operand->name),
             *element = ka_use_type(kernel, operand->element);
  KJ_ASSERT(operand->array_count == 1 && !operand->function);
  add_parameter(kernel, name, kj_format(arena, ": const %s[:, :, ::1]", element),
                &operand->arrays[0]);
  return name;
}

/* Names for splitting linear indices into indices of axes. */
typedef struct indices {
  const char *extents;            /* extent parameters, each after a comma */
  const char *names[KJ_MAX_RANK]; /* index of each axis in the kernel's order */
} indices;

static void take_extents(ka_kernel *kernel, const ka_operand *operand, indices *found)
{
  uint32_t axis = 0;
  found->extents = "";
  for (uint32_t group = 0; group < operand->group_count; group++)
    for (uint32_t i = 0; i < operand->group_ranks[group]; i++, axis++) {
      if (i == 0) continue;
      found->names[axis] = ka_use_count(kernel, (uint64_t)operand->extents[axis]);
      found->extents =
        kj_format(&kernel->call->arena, "%s, %s", found->extents, found->names[axis]);
    }
}

/* Writes the statements that split the linear indices. names[axis] receives the name of the axis's
 * index. */
static void divide_indices(ka_kernel *kernel, const ka_operand *operand, indices *found)
{
  kj_arena *arena = &kernel->call->arena;
  for (uint32_t group = 0, first = 0; group < operand->group_count; group++) {
    uint32_t count = operand->group_ranks[group];
    const char *rest = kj_format(arena, "g%u", group);
    for (uint32_t i = count; i-- > 1;) {
      const char *extent = found->names[first + i];
      kj_append_format(kernel->funcs, "  let i%u = %s %% %s\n  let q%u = %s // %s\n", first + i,
                       rest, extent, first + i, rest, extent);
      rest = kj_format(arena, "q%u", first + i);
      found->names[first + i] = kj_format(arena, "i%u", first + i);
    }
    if (count) found->names[first] = rest;
    first += count;
  }
}

/* Lists an element's indices in the order of the operand's own axes. */
static const char *list_indices(ka_kernel *kernel, const ka_operand *operand, const indices *found)
{
  kj_arena *arena = &kernel->call->arena;
  const char *list = "";
  uint32_t count = 0;
  for (uint32_t group = 0; group < operand->group_count; group++)
    count += operand->group_ranks[group];
  if (!operand->function) {
    for (uint32_t i = 0; i < count; i++)
      list = kj_format(arena, "%s%s%s", list, i ? ", " : "", found->names[i]);
    return count ? list : "0";
  }
  for (uint32_t axis = 0; axis < operand->rank; axis++)
    for (uint32_t i = 0; i < count; i++)
      if (operand->axes[i] == axis)
        list = kj_format(arena, "%s%si64(%s)", list, axis ? ", " : "", found->names[i]);
  return list;
}

/* Writes the beginning of a func: `func x_at(g0, g1`, then the parameter v if the func stores, then
 * the operand's arrays. */
static void begin_function(ka_kernel *kernel, const ka_operand *operand, const char *suffix,
                           const char *more)
{
  kj_append_format(kernel->funcs, "func %s_%s(", operand->name, suffix);
  for (uint32_t group = 0; group < operand->group_count; group++)
    kj_append_format(kernel->funcs, "%sg%u", group ? ", " : "", group);
  kj_append_format(kernel->funcs, "%s) @inline {\n", more);
}

static const char *cast_of(ka_kernel *kernel, kjit_type from, kjit_type to)
{
  bool is_conversion = to != KJIT_ANY && from != to && ki_is_scalar(to);
  return is_conversion ? ki_type(kernel->call->context->types, to)->name : "";
}

/* Returns the expression of an element: a call of the operand's func, or an array element. */
static const char *element_text(ka_kernel *kernel, const ka_operand *operand, const char *callee,
                                const char *list, const char *value, const char *arrays)
{
  kj_arena *arena = &kernel->call->arena;
  if (!operand->function) return kj_format(arena, "%s_0[%s]", operand->name, list);
  const char *comma = *list ? ", " : "";
  const char *inside = *value ? kj_format(arena, "%s%s%s%s", list, comma, value, arrays)
                              : kj_format(arena, "%s%s", list, arrays);
  return kj_format(arena, "%s(%s)", callee, inside[0] == ',' ? inside + 2 : inside);
}

static const char *use_operand(ka_kernel *kernel, const ka_operand *operand, kjit_type accumulator)
{
  kj_arena *arena = &kernel->call->arena;
  bool writes = operand->is_output;
  const char *suffix = writes ? "put" : "at", *value = writes ? "v" : "", *callee = "";
  indices found = { 0 };
  const char *arrays = ka_use_arrays(kernel, operand);
  take_extents(kernel, operand, &found);
  if (operand->function) callee = ka_use_operand_function(kernel, operand);
  const char *more = kj_format(arena, "%s%s%s", writes ? ", v" : "", arrays, found.extents);
  begin_function(kernel, operand, suffix, more);
  divide_indices(kernel, operand, &found);
  const char *list = list_indices(kernel, operand, &found),
             *element = element_text(kernel, operand, callee, list, value, arrays);
  if (!writes)
    kj_append_format(kernel->funcs, "  return %s(%s)\n}\n",
                     cast_of(kernel, operand->element, accumulator), element);
  else if (operand->function) kj_append_format(kernel->funcs, "  %s\n}\n", element);
  else
    kj_append_format(kernel->funcs, "  %s = %s(v)\n}\n", element,
                     ki_is_scalar(operand->element)
                       ? ki_type(kernel->call->context->types, operand->element)->name
                       : "");
  return kj_format(arena, "bind_back(%s_%s%s%s)", operand->name, suffix, arrays, found.extents);
}

const char *ka_use_input(ka_kernel *kernel, const ka_operand *operand, kjit_type accumulator)
{
  KJ_ASSERT(!operand->is_output);
  return use_operand(kernel, operand, accumulator);
}

const char *ka_use_output(ka_kernel *kernel, const ka_operand *operand)
{
  KJ_ASSERT(operand->is_output);
  return use_operand(kernel, operand, KJIT_ANY);
}

const char *ka_use_changed(ka_kernel *kernel, const ka_operand *operand, const char *change,
                           const char *more)
{
  kj_arena *arena = &kernel->call->arena;
  indices found = { 0 };
  KJ_ASSERT(operand->is_output && !operand->function);
  const char *arrays = ka_use_arrays(kernel, operand);
  take_extents(kernel, operand, &found);
  begin_function(kernel, operand, "change", kj_format(arena, ", v%s%s", arrays, found.extents));
  divide_indices(kernel, operand, &found);
  kj_append_format(kernel->funcs, "  %s(%s_0, (%s,), v%s%s)\n}\n", change, operand->name,
                   list_indices(kernel, operand, &found), *more ? ", " : "", more);
  return kj_format(arena, "bind_back(%s_change%s%s)", operand->name, arrays, found.extents);
}

/* Wraps a user-defined operator, whose result type may differ from its parameter types. The wrapper
 * converts each result to the accumulator type. */
const char *ka_use_operator(ka_kernel *kernel, const ka_operator *operator_, kjit_type accumulator)
{
  kj_arena *arena = &kernel->call->arena;
  if (operator_->name) return kj_format(arena, "operator_%s", operator_->name);
  const char *callee = ka_use_function(kernel, operator_->function, 2, "two values"),
             *name = kj_format(arena, "combine_%u", kernel->operators++);
  kj_append_format(kernel->funcs, "func %s(x, y) @inline { return %s(%s(x, y)) }\n", name,
                   ki_is_scalar(accumulator)
                     ? ki_type(kernel->call->context->types, accumulator)->name
                     : "",
                   callee);
  return name;
}

const char *ka_use_identity(ka_kernel *kernel, const ka_operator *operator_, kjit_type accumulator)
{
  ka_call *call = kernel->call;
  const char *type = ka_use_type(kernel, accumulator);
  KJ_ASSERT(operator_->has_identity);
  if (operator_->name)
    return kj_format(&call->arena, "identity_%s(zero(%s))", operator_->name, type);
  const ki_decl *identity = ki_find_identity(kj_function_of(operator_->function)->function);
  return kj_format(&call->arena, "%s(%s(zero(%s)))", ki_is_scalar(accumulator) ? type : "",
                   ka_use_function(kernel, (kjit_function *)identity, 1, "one value"), type);
}

/* ---- the step ---- */

static kjit_launch_config configure(const ka_call *call, uint64_t blocks)
{
  kjit_launch_config config = { .size_bytes = sizeof config,
                                .stream = call->options.stream,
                                .device = call->device };
  config.grid[0] = (uint32_t)blocks;
  return config;
}

void ka_launch(ka_kernel *kernel, uint32_t threads, uint64_t blocks, const char *body, ...)
{
  ka_call *call = kernel->call;
  kj_buffer text = { 0 };
  if (blocks > INT32_MAX) /* maximum of the first grid dimension */
    ka_fail(call, KJIT_ERROR_UNSUPPORTED,
            "an operand of this shape needs more than %d blocks, the maximum of a launch",
            INT32_MAX);
  size_t own = kernel->arguments.count,
         all = own + kernel->constant_values.count + (threads ? 1 : 0);
  kj_append_format(&text, "import \"operators\"\nimport \"%s\"\n%s", kernel->module,
                   kernel->funcs->text ? kernel->funcs->text : "");
  kj_append_format(&text, "kernel run(%s%s%s%s)",
                   own && kernel->parameters->text ? kernel->parameters->text : "",
                   kernel->constants->text ? kernel->constants->text + (own ? 0 : 2) : "",
                   threads && all > 1 ? ", " : "", threads ? "const THREADS" : "");
  if (threads) kj_append_text(&text, " @block(THREADS)");
  if (kernel->blocks) kj_append_format(&text, " @launch_bounds(THREADS, %u)", kernel->blocks);
  if (kernel->cluster) kj_append_format(&text, " @cluster(%u)", kernel->cluster);
  kj_append_text(&text, " {\n  ");
  va_list list;
  va_start(list, body);
  kj_append_list(&text, body, list);
  va_end(list);
  kj_append_text(&text, "\n}\n");
  if (kernel->funcs->failed || kernel->parameters->failed || kernel->constants->failed)
    text.failed = 1;
  size_t length = text.length;
  const char *kept = kj_keep_text(&call->arena, &text);
  ka_step step = { .config = configure(call, blocks),
                   .arguments = KJ_NEW_ARRAY(&call->arena, kjit_arg, all + 1),
                   .count = all };
  if (own) memcpy(step.arguments, kernel->arguments.items, own * sizeof(kjit_arg));
  for (size_t i = 0; i < kernel->constant_values.count; i++)
    step.arguments[own + i] = kernel->constant_values.items[i];
  if (threads) step.arguments[all - 1] = kjit_arg_number((double)threads);
  KJ_PUSH(&call->arena, &call->steps, step);
  ka_step *added = &call->steps.items[call->steps.count - 1];
  const ka_kernel_source source = ka_get_kernel_source(kernel, kept, length);
  ka_try(call, ka_find_kernel(call->context, &source, &added->module, &added->kernel));
}
