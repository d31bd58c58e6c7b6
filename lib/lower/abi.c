/* The C ABI: calls of the application's C functions, and funcs that are compiled as C functions.
 *
 * Scalars are passed as in C. An array is passed as several parameters: the pointer, an i64 for
 * each extent and, if its type does not determine the layout, an i64 for each stride in elements. A
 * function that kjit_call_function calls has hidden parameters, which precede all others. If the
 * function may fail, the first hidden parameter is the address of a kj_failure_record. If the
 * result is an aggregate, the next hidden parameter is the result address. Such a function takes
 * aggregate arguments by address, and small floats as their bits. In other GPU functions, small
 * floats and complex numbers are passed and returned as in CUDA C++. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/debug.h"

static bool has_strides(const ki_type_info *array) { return array->layout == KJIT_LAYOUT_STRIDED; }

/* ---- types ---- */

static bool is_cuda(const kl_lowering *l)
{
  return l->c->request->target.kind == KJ_TARGET_NVPTX && !l->c->request->has_record;
}

/* Returns whether a complex type is passed as cuFloatComplex or cuDoubleComplex. These CUDA types
 * are aligned to their size, like vectors. */
static bool is_cuda_complex(kl_lowering *l, kjit_type type)
{
  return is_cuda(l) && !ki_is_weak(type) && kl_type_info(l, type)->class_ == KJ_CLASS_COMPLEX;
}

/* Returns whether the type is an aggregate. Only functions that kjit_call_function calls have
 * arguments or results of such types, which are passed by address. */
static bool is_composed(kl_lowering *l, kjit_type type)
{
  if (is_cuda_complex(l, type)) return false;
  ki_type_class class_ = ki_is_weak(type) ? KJ_CLASS_WEAK : kl_type_info(l, type)->class_;
  return class_ == KJ_CLASS_VECTOR || class_ == KJ_CLASS_STRUCT || class_ == KJ_CLASS_COMPLEX ||
         class_ == KJ_CLASS_TUPLE;
}

static bool is_small_float(kl_lowering *l, kjit_type type)
{
  return !ki_is_weak(type) && kl_type_info(l, type)->class_ == KJ_CLASS_FLOAT &&
         kl_type_info(l, type)->size_bytes < 4;
}

static LLVMTypeRef bits_type(kl_lowering *l, kjit_type type)
{
  return LLVMIntTypeInContext(l->context, 8 * kl_type_info(l, type)->size_bytes);
}

static LLVMTypeRef scalar_type(kl_lowering *l, kjit_type type)
{
  if (is_composed(l, type)) return l->pointer;
  if (is_cuda_complex(l, type)) return LLVMVectorType(kl_memory_type(l, kl_part_of(l, type)), 2);
  if (is_small_float(l, type)) {
    LLVMTypeRef bits = bits_type(l, type); /* __half and __nv_bfloat16 are structs of their bits */
    return is_cuda(l) ? LLVMStructTypeInContext(l->context, &bits, 1, false) : bits;
  }
  if (ki_is_weak(type)) return type == KJ_WEAK_INT ? l->i64 : l->f64;
  if (type == KJIT_BOOL) return l->i1; /* as in clang, a bool is an i1 that is extended to a byte */
  return kl_type_info(l, type)->class_ == KJ_CLASS_POINTER ? l->pointer : kl_memory_type(l, type);
}

/* Convert a scalar between its register type and the type in which C passes it. */
static LLVMValueRef to_c(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_BOOL) return value;
  if (is_cuda_complex(l, type)) {
    kl_complex_value z = kl_split_complex(l, value);
    LLVMValueRef both = LLVMGetPoison(scalar_type(l, type));
    both = kl_insert_element(l, both, z.real, kl_const32(l, 0));
    return kl_insert_element(l, both, z.imaginary, kl_const32(l, 1));
  }
  value = kl_to_memory(l, type, value);
  if (!is_small_float(l, type)) return value;
  value = kl_bitcast(l, value, bits_type(l, type));
  return is_cuda(l) ? kl_insert_value(l, LLVMGetPoison(scalar_type(l, type)), value, 0) : value;
}

static LLVMValueRef from_c(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (type == KJIT_BOOL) return value;
  if (is_cuda_complex(l, type))
    return kl_join_complex(l, type,
                           (kl_complex_value){ kl_extract_element(l, value, kl_const32(l, 0)),
                                               kl_extract_element(l, value, kl_const32(l, 1)) });
  if (is_small_float(l, type) && is_cuda(l)) value = kl_extract_value(l, value, 0);
  if (is_small_float(l, type)) value = kl_bitcast(l, value, kl_memory_type(l, type));
  return kl_from_memory(l, type, value);
}

static bool has_result_address(kl_lowering *l, const kt_instance *instance)
{
  return instance->result != KJIT_VOID && is_composed(l, instance->result);
}

static LLVMTypeRef function_type(kl_lowering *l, const kt_instance *instance, unsigned hidden)
{
  LLVMTypeRef *params =
    KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, 3 + instance->params.count * (1 + 2 * KJ_MAX_RANK));
  unsigned count = 0;
  while (count < hidden) params[count++] = l->pointer;
  if (has_result_address(l, instance)) params[count++] = l->pointer;
  for (size_t i = 0; i < instance->params.count; i++) {
    const ki_type_info *info = kl_type_info(l, instance->params.items[i]->type);
    if (info->class_ != KJ_CLASS_ARRAY) {
      params[count++] = scalar_type(l, instance->params.items[i]->type);
      continue;
    }
    params[count++] = l->pointer;
    for (uint32_t d = 0; d < info->rank * (has_strides(info) ? 2 : 1); d++)
      params[count++] = l->i64;
  }
  LLVMTypeRef result = instance->result == KJIT_VOID || has_result_address(l, instance)
                         ? l->void_
                         : scalar_type(l, instance->result);
  return LLVMFunctionType(result, params, count, false);
}

/* Gives a parameter or result that is narrower than a register the attribute for sign or zero
 * extension, because callers and callees extend such values. */
static void describe_scalar(kl_lowering *l, LLVMValueRef function, unsigned index, kjit_type type)
{
  const ki_type_info *info = kl_type_info(l, type);
  bool is_integer = info->class_ == KJ_CLASS_BOOL || info->class_ == KJ_CLASS_SIGNED ||
                    info->class_ == KJ_CLASS_UNSIGNED || (is_small_float(l, type) && !is_cuda(l));
  if (is_integer && info->size_bytes < 4)
    kl_add_attribute(l, function, index, info->class_ == KJ_CLASS_SIGNED ? "signext" : "zeroext",
                     0);
}

static LLVMValueRef declare(kl_lowering *l, const kt_instance *instance, const char *symbol,
                            unsigned hidden)
{
  LLVMValueRef function = kl_add_function(l, symbol, function_type(l, instance, hidden));
  unsigned at = 1 + hidden + has_result_address(l, instance);
  for (size_t i = 0; i < instance->params.count; i++) {
    const ki_type_info *info = kl_type_info(l, instance->params.items[i]->type);
    if (info->class_ == KJ_CLASS_ARRAY) at += 1 + info->rank * (has_strides(info) ? 2 : 1);
    else describe_scalar(l, function, at++, instance->params.items[i]->type);
  }
  if (instance->result != KJIT_VOID && !has_result_address(l, instance))
    describe_scalar(l, function, 0, instance->result);
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "convergent", 0);
  return function;
}

/* ---- calls of external functions ---- */

static LLVMValueRef as_pointer(kl_lowering *l, LLVMValueRef pointer, LLVMTypeRef type)
{
  return LLVMTypeOf(pointer) == type ? pointer : kl_addrspacecast(l, pointer, type);
}

static unsigned pass_array(kl_lowering *l, const kt_expr *arg, const ki_type_info *info,
                           LLVMValueRef *args)
{
  kl_array_value array = kl_lower_array(l, arg);
  unsigned count = 0;
  args[count++] = as_pointer(l, array.pointer, l->pointer);
  for (uint32_t d = 0; d < info->rank; d++) args[count++] = kl_as_i64(l, array.extents[d]);
  for (uint32_t d = 0; d < info->rank && has_strides(info); d++)
    args[count++] = kl_as_i64(l, array.strides[d]);
  return count;
}

LLVMValueRef kl_call_extern(kl_lowering *l, const kt_expr *expr)
{
  const kt_instance *instance = expr->instance;
  KJ_ASSERT(instance->function->bound || l->c->request->is_ahead);
  LLVMValueRef *args = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef,
                                    expr->args.count * (1 + 2 * KJ_MAX_RANK) + 1),
               *function = &l->functions[instance->id];
  unsigned count = 0;
  for (size_t i = 0; i < expr->args.count; i++) {
    kjit_type type = instance->params.items[i]->type;
    const ki_type_info *info = kl_type_info(l, type);
    if (info->class_ == KJ_CLASS_ARRAY)
      count += pass_array(l, expr->args.items[i], info, args + count);
    else if (info->class_ == KJ_CLASS_POINTER)
      args[count++] = as_pointer(l, kl_lower_expr(l, expr->args.items[i]), l->pointer);
    else args[count++] = to_c(l, type, kl_lower_expr(l, expr->args.items[i]));
  }
  /* the function may have been declared already: by another lowering into this module, or for
   * another extern func with the same binding */
  if (!*function) *function = LLVMGetNamedFunction(l->module, instance->symbol);
  if (!*function) {
    *function = declare(l, instance, instance->symbol, 0);
    /* LLVM must not take a function of the application for a C library function of the same name,
     * such as `labs`. */
    kl_add_attribute(l, *function, (unsigned)LLVMAttributeFunctionIndex, "nobuiltin", 0);
  }
  KJ_ASSERT(LLVMGlobalGetValueType(*function) == function_type(l, instance, 0));
  LLVMValueRef call = kl_call(l, LLVMGlobalGetValueType(*function), *function, args, count);
  kl_add_call_attribute(l, call, "convergent");
  kl_add_call_attribute(l, call, "nobuiltin");
  if (instance->result == KJIT_VOID) return NULL;
  if (kl_type_info(l, instance->result)->class_ == KJ_CLASS_POINTER)
    return as_pointer(l, call, kl_register_type(l, instance->result));
  return from_c(l, instance->result, call);
}

/* ---- funcs that the application calls as C functions ---- */

static kl_array_value take_array(kl_lowering *l, kjit_type type, unsigned *at)
{
  const ki_type_info *info = kl_type_info(l, type);
  kl_array_value array = { .type = type };
  LLVMTypeRef pointer = LLVMPointerTypeInContext(l->context, l->target->global_space);
  array.pointer = as_pointer(l, LLVMGetParam(l->function, (*at)++), pointer);
  for (uint32_t d = 0; d < info->rank; d++) array.extents[d] = LLVMGetParam(l->function, (*at)++);
  for (uint32_t d = 0; d < info->rank && has_strides(info); d++)
    array.strides[d] = LLVMGetParam(l->function, (*at)++);
  if (has_strides(info)) return array;
  LLVMValueRef stride = kl_const64(l, 1);
  for (uint32_t i = 0; i < info->rank; i++) {
    uint32_t d = info->layout == KJIT_LAYOUT_C ? info->rank - 1 - i : i;
    array.strides[d] = stride;
    stride = kl_mul(l, stride, array.extents[d]);
  }
  return array;
}

static void bind_parameters(kl_lowering *l, unsigned hidden)
{
  unsigned at = hidden + has_result_address(l, l->kernel);
  for (size_t i = 0; i < l->kernel->params.count; i++) {
    const kt_var *param = l->kernel->params.items[i];
    const ki_type_info *info = kl_type_info(l, param->type);
    if (info->class_ == KJ_CLASS_ARRAY) {
      kl_array_value array = take_array(l, param->type, &at);
      kl_set_array(l, param, &array);
      continue;
    }
    LLVMValueRef value = LLVMGetParam(l->function, at++);
    /* the application's memory can have any alignment */
    if (is_composed(l, param->type))
      value = kl_load_value(l, param->type, value, 1, KJ_OBJECT_UNKNOWN);
    else if (info->class_ == KJ_CLASS_POINTER)
      value = as_pointer(l, value, kl_register_type(l, param->type));
    else if (!ki_is_weak(param->type)) value = from_c(l, param->type, value);
    l->frame->states[param->index].value = param->is_narrow ? kl_as_i32(l, value) : value;
  }
}

static uint32_t tuple_alignment(kl_lowering *l, kjit_type type)
{
  const ki_type_info *info = kl_type_info(l, type);
  if (info->class_ != KJ_CLASS_TUPLE) return kl_type_alignment(l, type);
  uint32_t most = 1;
  for (uint32_t i = 0; i < info->count; i++) {
    uint32_t alignment = tuple_alignment(l, info->items[i]);
    if (alignment > most) most = alignment;
  }
  return most;
}

/* Stores a value at the given offset from the address, and returns the offset of the value's end. A
 * tuple has the layout of a C struct of its items. */
static uint32_t store_composed(kl_lowering *l, kjit_type type, LLVMValueRef value,
                               LLVMValueRef address, uint32_t offset)
{
  const ki_type_info *info = kl_type_info(l, type);
  if (info->class_ != KJ_CLASS_TUPLE) {
    uint32_t alignment = kl_type_alignment(l, type),
             at = (offset + alignment - 1) / alignment * alignment;
    kl_store_value(l, type, kl_byte_pointer(l, address, at), value, 1, KJ_OBJECT_UNKNOWN);
    return at + kl_scalar_bytes(l, type);
  }
  uint32_t alignment = tuple_alignment(l, type),
           end = (offset + alignment - 1) / alignment * alignment;
  for (uint32_t i = 0; i < info->count; i++)
    end = store_composed(l, info->items[i], kl_get_part(l, type, value, i), address, end);
  return (end + alignment - 1) / alignment * alignment;
}

/* Returns the number of hidden parameters that precede all others: the failure record and the
 * kj_interruptible_call. */
static unsigned count_hidden(const kl_lowering *l) { return kl_has_record(l) + l->kernel->polls; }

static void return_result(kl_lowering *l)
{
  kjit_type type = l->kernel->result;
  if (type == KJIT_VOID) {
    LLVMBuildRetVoid(kl_next(l));
    return;
  }
  LLVMValueRef value = kl_load(l, kl_register_type(l, type), l->frame->result_alloca);
  if (has_result_address(l, l->kernel)) {
    (void)store_composed(l, type, value, LLVMGetParam(l->function, count_hidden(l)), 0);
    LLVMBuildRetVoid(kl_next(l));
    return;
  }
  bool is_pointer = kl_type_info(l, type)->class_ == KJ_CLASS_POINTER;
  LLVMBuildRet(kl_next(l), is_pointer ? as_pointer(l, value, l->pointer) : to_c(l, type, value));
}

void kl_lower_entry(kl_lowering *l)
{
  bool has_record = kl_has_record(l);
  l->function = declare(l, l->kernel, l->kernel->symbol, count_hidden(l));
  if (l->target->finish_function) l->target->finish_function(l, l->function);
  kl_begin_body(l);
  if (l->target->begin_entry) l->target->begin_entry(l);
  if (has_record) l->failure_record = LLVMGetParam(l->function, 0);
  bind_parameters(l, count_hidden(l));
  kl_debug_parameters(l);
  l->frame->leave = kl_new_block(l, "return");
  if (l->kernel->result != KJIT_VOID) {
    LLVMTypeRef type = kl_register_type(l, l->kernel->result);
    l->frame->result_alloca = kl_alloca(l, type, "result");
    /* the result is 0 if the call fails */
    if (has_record) kl_store(l, LLVMConstNull(type), l->frame->result_alloca);
  }
  kl_poll_entry(l, l->kernel);
  kl_lower_stmts(l, &l->kernel->body);
  kl_go_on_in(l, l->frame->leave);
  return_result(l);
}
