/* nvptx: the kernel function, positions, a block's memory, and ranges over the grid. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/nvptx/lower_nvptx.h"

enum { CALL_CONVENTION = 71, STATIC_SHARED_LIMIT = 48 * 1024, CONSTANT_LIMIT = 64 * 1024 };

static unsigned param_index(size_t i) { return (unsigned)i + 1; }
static const unsigned function_index = (unsigned)LLVMAttributeFunctionIndex;

static void add_text_attribute(kl_lowering *l, const char *name, const char *value)
{
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(l->context, name, (unsigned)strlen(name),
                                                         value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(l->function, function_index, attribute);
}

static LLVMAttributeRef range_attribute(kl_lowering *l, uint64_t lower, uint64_t upper,
                                        unsigned bits)
{
  unsigned kind = LLVMGetEnumAttributeKindForName("range", 5);
  return LLVMCreateConstantRangeAttribute(l->context, kind, bits, &lower, &upper);
}

/* ---- the kernel ---- */

static LLVMTypeRef parameter_type(kl_lowering *l, const kl_planned_parameter *p)
{
  switch (KJ_AMONG(p->parameter.kind)) {
  case KJ_PARAMETER_POINTER:
  case KJ_PARAMETER_INTERRUPT_WORD:
    return LLVMPointerTypeInContext(l->context, l->target->global_space);
  case KJ_PARAMETER_SCALAR: return kl_memory_type(l, p->type);
  case KJ_PARAMETER_TENSOR_MAP: return l->pointer;
  case KJ_PARAMETER_FAILURE: return l->pointer;
  default: return p->parameter.size_bytes == 4 ? l->i32 : l->i64;
  }
}

static const char *parameter_name(kl_lowering *l, const kl_planned_parameter *p)
{
  if (p->parameter.kind == KJ_PARAMETER_FAILURE) return "failure";
  if (p->parameter.kind == KJ_PARAMETER_INTERRUPT_WORD) return "interrupt";
  if (p->parameter.kind == KJ_PARAMETER_INTERRUPT_NUMBER) return "number";
  if (p->parameter.kind == KJ_PARAMETER_SHARED_OFFSET)
    return kj_format(l->c->arena, "shared%u_offset", p->parameter.argument);
  if (p->parameter.kind == KJ_PARAMETER_SHARED_EXTENT)
    return kj_format(l->c->arena, "shared%u_extent%u", p->parameter.argument,
                     p->parameter.dimension);
  const char *name = l->kernel->function->params.items[p->parameter.argument]->name;
  switch (KJ_AMONG(p->parameter.kind)) {
  case KJ_PARAMETER_EXTENT:
    return kj_format(l->c->arena, "%s_extent%u", name, p->parameter.dimension);
  case KJ_PARAMETER_STRIDE:
    return kj_format(l->c->arena, "%s_stride%u", name, p->parameter.dimension);
  case KJ_PARAMETER_TENSOR_MAP:
    return kj_format(l->c->arena, "%s_map%u", name, p->parameter.dimension);
  default: return name;
  }
}

/* Marks a tensor map as a grid constant, so that the kernel can use it in parameter memory. */
static void describe_map(kl_lowering *l, unsigned index)
{
  static const char constant[] = "nvvm.grid_constant";
  LLVMTypeRef bytes = LLVMArrayType2(l->i8, KJ_MAP_BYTES);
  LLVMAddAttributeAtIndex(l->function, index,
                          LLVMCreateTypeAttribute(l->context,
                                                  LLVMGetEnumAttributeKindForName("byval", 5),
                                                  bytes));
  LLVMAddAttributeAtIndex(l->function, index,
                          LLVMCreateStringAttribute(l->context, constant, sizeof constant - 1, "",
                                                    0));
  kl_add_attribute(l, l->function, index, "align", KJ_MAP_ALIGNMENT);
  kl_add_attribute(l, l->function, index, "readonly", 0);
}

/* Returns whether the array argument to which the parameter belongs has all facts in `facts`. */
static bool has_facts(const kl_lowering *l, const kl_planned_parameter *p, uint32_t facts)
{
  return (l->c->request->signature->arguments[p->parameter.argument].facts & facts) == facts;
}

/* Sets a parameter's attributes. noalias is used only for memory that the kernel does not write:
 * LLVM assumes that noalias memory does not change across barriers. */
static void describe_parameter(kl_lowering *l, size_t i)
{
  const kl_planned_parameter *p = &l->parameters.items[i];
  kl_add_attribute(l, l->function, param_index(i), "noundef", 0);
  if (p->parameter.kind == KJ_PARAMETER_EXTENT || p->parameter.kind == KJ_PARAMETER_SHARED_EXTENT ||
      p->parameter.kind == KJ_PARAMETER_SHARED_OFFSET) {
    unsigned bits = 8u * p->parameter.size_bytes;
    LLVMAddAttributeAtIndex(l->function, param_index(i),
                            range_attribute(l, 0, (uint64_t)1 << (bits - 1), bits));
  }
  if (p->parameter.kind == KJ_PARAMETER_TENSOR_MAP) describe_map(l, param_index(i));
  if (p->parameter.kind != KJ_PARAMETER_POINTER) return;
  if (has_facts(l, p, KJ_FACT_ALIGNED16)) {
    kl_add_attribute(l, l->function, param_index(i), "align", KJ_FACT_WIDTH);
    l->c->used_aligned16 = true;
  }
  if (!l->uses[p->parameter.argument].is_constant) return;
  kl_add_attribute(l, l->function, param_index(i), "noalias", 0);
  kl_add_attribute(l, l->function, param_index(i), "readonly", 0);
}

/* Assumes that each row's size is a multiple of 16 bytes: each stride parameter is a multiple of
 * the number of elements in 16 bytes. The assumption is useful only if the first row is aligned. */
static void assume_aligned_rows(kl_lowering *l)
{
  for (size_t i = 0; i < l->parameters.count; i++) {
    const kl_planned_parameter *p = &l->parameters.items[i];
    if (p->parameter.kind != KJ_PARAMETER_STRIDE ||
        !has_facts(l, p, KJ_FACT_ALIGNED16 | KJ_FACT_ROWS_ALIGNED16))
      continue;
    kjit_type type = l->c->request->signature->arguments[p->parameter.argument].type;
    /* power: the largest power of two that divides bytes */
    uint32_t bytes = kl_scalar_bytes(l, kl_type_info(l, type)->element), power = bytes & -bytes;
    if (power >= KJ_FACT_WIDTH) continue;
    LLVMValueRef mask = LLVMConstInt(LLVMTypeOf(p->value), KJ_FACT_WIDTH / power - 1, false),
                 rest = kl_and(l, p->value, mask),
                 holds = kl_icmp(l, LLVMIntEQ, rest, LLVMConstNull(LLVMTypeOf(rest)));
    kl_intrinsic(l, "llvm.assume", NULL, 0, &holds, 1);
    l->c->used_rows_aligned16 = true;
  }
}

static bool is_block_known(const kt_instance *kernel)
{
  return kernel->block[0] && kernel->block[1] && kernel->block[2];
}

static void limit_launch(kl_lowering *l)
{
  const kt_instance *k = l->kernel;
  kj_arena *arena = l->c->arena;
  if (is_block_known(k))
    add_text_attribute(l, "nvvm.reqntid",
                       kj_format(arena, "%u,%u,%u", k->block[0], k->block[1], k->block[2]));
  else if (l->c->code->max_threads)
    add_text_attribute(l, "nvvm.maxntid", kj_format(arena, "%u,1,1", l->c->code->max_threads));
  bool has_size = is_block_known(k) || l->c->code->max_threads;
  if (k->min_blocks && has_size)
    add_text_attribute(l, "nvvm.minctasm", kj_format(arena, "%u", k->min_blocks));
  if (k->max_registers)
    add_text_attribute(l, "nvvm.maxnreg", kj_format(arena, "%u", k->max_registers));
  if (l->c->code->cluster[0])
    add_text_attribute(l, "nvvm.cluster_dim",
                       kj_format(arena, "%u,%u,%u", l->c->code->cluster[0], l->c->code->cluster[1],
                                 l->c->code->cluster[2]));
  else if (k->max_cluster)
    add_text_attribute(l, "nvvm.maxclusterrank", kj_format(arena, "%u", k->max_cluster));
}

static void begin_kernel(kl_lowering *l)
{
  size_t count = l->parameters.count;
  LLVMTypeRef *types = KJ_NEW_ARRAY(l->c->arena, LLVMTypeRef, count + 1);
  for (size_t i = 0; i < count; i++) types[i] = parameter_type(l, &l->parameters.items[i]);
  l->function = kl_add_function(l, l->kernel->symbol,
                                LLVMFunctionType(l->void_, types, (unsigned)count, false));
  LLVMSetFunctionCallConv(l->function, CALL_CONVENTION);
  kl_add_attribute(l, l->function, function_index, "nounwind", 0);
  kl_add_attribute(l, l->function, function_index, "convergent", 0);
  limit_launch(l);
  for (size_t i = 0; i < count; i++) {
    kl_planned_parameter *p = &l->parameters.items[i];
    const char *name = parameter_name(l, p);
    p->value = LLVMGetParam(l->function, (unsigned)i);
    LLVMSetValueName2(p->value, name, strlen(name));
    describe_parameter(l, i);
  }
  kl_begin_body(l);
  assume_aligned_rows(l);
  if (!l->c->request->signature->is_programmatic) return;
  enum { PROGRAMMATIC_FROM = 90 };
  if (l->c->request->target.arch < PROGRAMMATIC_FROM)
    kt_fail(l->c, (kj_location){ 0 }, KJIT_ERROR_UNSUPPORTED,
            "programmatic launches need sm_%d, the target is sm_%u", PROGRAMMATIC_FROM,
            l->c->request->target.arch);
  /* The first instruction allows the next launch to start. The second waits until all earlier
   * launches have ended and their writes are visible. */
  kl_intrinsic(l, "llvm.nvvm.griddepcontrol.launch.dependents", NULL, 0, NULL, 0);
  kl_intrinsic(l, "llvm.nvvm.griddepcontrol.wait", NULL, 0, NULL, 0);
}

static void end_kernel(kl_lowering *l)
{
  if (kl_nvptx_counts_threads(l)) kl_nvptx_leave_grid(l);
  LLVMBuildRetVoid(kl_next(l));
}

/* ---- positions ---- */

static LLVMValueRef read_register(kl_lowering *l, const char *name, uint64_t least, uint64_t end)
{
  LLVMValueRef call = kl_intrinsic(l, name, NULL, 0, NULL, 0);
  LLVMAddCallSiteAttribute(call, LLVMAttributeReturnIndex, range_attribute(l, least, end, 32));
  return call;
}

static LLVMValueRef read_position(kl_lowering *l, const char *symbol, uint32_t dimension,
                                  uint64_t least, uint64_t end)
{
  return read_register(l,
                       kj_format(l->c->arena, "llvm.nvvm.read.ptx.sreg.%s.%c", symbol,
                                 "xyz"[dimension]),
                       least, end);
}

static uint32_t most_threads(kl_lowering *l, uint32_t dimension)
{
  KJ_ASSERT(dimension < 3);
  uint32_t known = l->kernel->block[dimension],
           bound = l->c->code->max_threads ? l->c->code->max_threads : 1024;
  if (known) return known;
  return dimension == 2 && bound > 64 ? 64 : bound;
}

static LLVMValueRef thread_index(kl_lowering *l, uint32_t d)
{
  KJ_ASSERT(d < 3);
  return l->kernel->block[d] == 1 ? kl_const32(l, 0)
                                  : read_position(l, "tid", d, 0, most_threads(l, d));
}

static LLVMValueRef block_size(kl_lowering *l, uint32_t d)
{
  KJ_ASSERT(d < 3);
  uint32_t known = l->kernel->block[d];
  return known ? kl_const32(l, known)
               : read_position(l, "ntid", d, 1, (uint64_t)most_threads(l, d) + 1);
}

static uint64_t most_blocks(uint32_t dimension) { return dimension ? 0xffff : 0x7fffffff; }
static LLVMValueRef block_index(kl_lowering *l, uint32_t d)
{
  return read_position(l, "ctaid", d, 0, most_blocks(d));
}
static LLVMValueRef grid_size(kl_lowering *l, uint32_t d)
{
  return read_position(l, "nctaid", d, 1, most_blocks(d) + 1);
}

static LLVMValueRef thread_rank(kl_lowering *l)
{
  LLVMValueRef plane =
    kl_nsw_add(l, kl_nsw_mul(l, thread_index(l, 2), block_size(l, 1)), thread_index(l, 1));
  return kl_nsw_add(l, kl_nsw_mul(l, plane, block_size(l, 0)), thread_index(l, 0));
}

static LLVMValueRef threads_of_block(kl_lowering *l)
{
  return kl_nsw_mul(l, kl_nsw_mul(l, block_size(l, 0), block_size(l, 1)), block_size(l, 2));
}

/* Reads a position with inline assembly, so that LLVM does not merge this read with other reads of
 * the register. In an interruptible Mandelbrot kernel, merged reads kept the position in six
 * registers during the loop, and a quarter fewer threads were resident. */
static LLVMValueRef failing_position(kl_lowering *l, ki_builtin_id id, uint32_t dimension)
{
  bool is_thread = id == KJ_BUILTIN_THREAD_IDX;
  if (is_thread && l->kernel->block[dimension] == 1) return kl_const32(l, 0);
  const char *text =
    kj_format(l->c->arena, "mov.u32 $0, %%%s.%c;", is_thread ? "tid" : "ctaid", "xyz"[dimension]);
  kl_asm code = { .text = text, .constraints = "=r", .result = l->i32 };
  return kl_build_asm(l, &code, NULL, 0);
}

static LLVMValueRef position(kl_lowering *l, ki_builtin_id id, uint32_t dimension)
{
  switch (KJ_AMONG(id)) {
  case KJ_BUILTIN_THREAD_IDX: return thread_index(l, dimension);
  case KJ_BUILTIN_BLOCK_IDX: return block_index(l, dimension);
  case KJ_BUILTIN_BLOCK_DIM: return block_size(l, dimension);
  case KJ_BUILTIN_GRID_DIM: return grid_size(l, dimension);
  case KJ_BUILTIN_THREAD_RANK: return thread_rank(l);
  case KJ_BUILTIN_WARP_RANK: return kl_lshr(l, thread_rank(l), kl_const32(l, 5));
  case KJ_BUILTIN_CLUSTER_IDX:
  case KJ_BUILTIN_CLUSTER_DIM:
  case KJ_BUILTIN_CLUSTER_GRID_DIM:
  case KJ_BUILTIN_CLUSTER_BLOCK_IDX:
  case KJ_BUILTIN_CLUSTER_RANK:
  case KJ_BUILTIN_CLUSTER_SIZE: return kl_nvptx_cluster_position(l, id, dimension);
  case KJ_BUILTIN_LANEID:
    return read_register(l, "llvm.nvvm.read.ptx.sreg.laneid", 0, KJ_WARP_THREADS);
  default:
    kt_fail(l->c, (kj_location){ 0 }, KJIT_ERROR_COMPILE,
            "internal error: `%s` is not a thread or block index", ki_builtin_table[id].name);
  }
}

/* ---- memory ---- */

static LLVMValueRef add_shared(kl_lowering *l, const kt_var *var, LLVMTypeRef type,
                               unsigned alignment)
{
  LLVMValueRef global = kl_add_variable(l, var->name, "shared", type, l->target->shared_space);
  LLVMSetAlignment(global, alignment);
  LLVMSetInitializer(global, LLVMGetUndef(type));
  ((kt_var *)var)->lowered = global;
  return global;
}

/* Returns an array's symbol in dynamic shared memory. All symbols without a size have the same
 * address, to which the code adds the array's offset. Each array has its own symbol, which tells
 * LLVM that the array does not overlap with others, as in static shared memory. Arrays whose size
 * the launch specifies do overlap, so they have the same symbol. */
static LLVMValueRef dynamic_shared(kl_lowering *l, const kt_var *var)
{
  size_t number = kl_dynamic_number(l, var);
  const char *name =
    number ? kj_format(l->c->arena, "kjit_dynamic_shared_%zu", number) : "kjit_dynamic_shared";
  LLVMValueRef known = LLVMGetNamedGlobal(l->module, name);
  if (known) return known;
  LLVMValueRef global =
    LLVMAddGlobalInAddressSpace(l->module, LLVMArrayType2(l->i8, 0), name, l->target->shared_space);
  LLVMSetAlignment(global, l->dynamic_alignment);
  return global;
}

static LLVMValueRef shared_pointer(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(var->kind == KJ_V_SHARED);
  if (var->lowered) return var->lowered;
  const ki_type_info *info = kl_type_info(l, var->type);
  if (kl_is_dynamic_shared(l, var)) {
    LLVMValueRef offset = kl_dynamic_offset(l, var), base = dynamic_shared(l, var);
    return LLVMIsNull(offset) ? base : kl_inbounds_gep(l, l->i8, base, &offset, 1);
  }
  uint64_t bytes = ki_element_count(info) * kl_scalar_bytes(l, info->element);
  unsigned alignment = kt_storage_alignment(l->c->types, var);
  uint64_t end =
    (l->c->code->static_shared_bytes + (uint64_t)alignment - 1) / alignment * alignment + bytes;
  l->c->code->static_shared_bytes = (uint32_t)end;
  return add_shared(l, var,
                    LLVMArrayType2(kl_memory_type(l, info->element), ki_element_count(info)),
                    alignment);
}

static LLVMValueRef local_pointer(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(var->kind == KJ_V_LOCAL);
  kl_variable_state *state = &l->frame->states[var->index];
  if (state->memory) return state->memory;
  const ki_type_info *info = kl_type_info(l, var->type);
  state->memory =
    kl_alloca_array(l, LLVMArrayType2(kl_memory_type(l, info->element), ki_element_count(info)),
                    var->name, kt_storage_alignment(l->c->types, var));
  return state->memory;
}

static LLVMValueRef dynamic_shared_bytes(kl_lowering *l)
{
  return kl_extend_position(l, kl_intrinsic(l, "llvm.nvvm.read.ptx.sreg.dynamic_smem_size", NULL, 0,
                                            NULL, 0));
}

/* ---- ranges ---- */

/* Numbers the threads in the grid first by block and then by thread. Threads that are adjacent in a
 * block have adjacent numbers for any block shape. */
static void number_grid_threads(kl_lowering *l, LLVMValueRef *rank, LLVMValueRef *count)
{
  bool is_small = l->c->request->signature->grid32;
  LLVMValueRef (*widen)(kl_lowering *, LLVMValueRef) = is_small ? kl_as_i32 : kl_extend_position;
  LLVMValueRef row =
    kl_nsw_add(l, kl_nsw_mul(l, widen(l, block_index(l, 2)), widen(l, grid_size(l, 1))),
               widen(l, block_index(l, 1)));
  LLVMValueRef block =
    kl_nsw_add(l, kl_nsw_mul(l, row, widen(l, grid_size(l, 0))), widen(l, block_index(l, 0)));
  LLVMValueRef blocks =
    kl_nsw_mul(l, kl_nsw_mul(l, widen(l, grid_size(l, 0)), widen(l, grid_size(l, 1))),
               widen(l, grid_size(l, 2)));
  LLVMValueRef threads = widen(l, threads_of_block(l));
  *rank = kl_nsw_add(l, kl_nsw_mul(l, block, threads), widen(l, thread_rank(l)));
  *count = kl_nsw_mul(l, blocks, threads);
  if (is_small) l->c->used_grid32 = true;
}

static void lower_range(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(kt_flow_of(stmt) == KJ_FLOW_RANGE);
  LLVMValueRef rank, count;
  if (stmt->kind == KJ_TS_GRID_FOR) {
    number_grid_threads(l, &rank, &count);
  } else {
    rank = thread_rank(l);
    count = threads_of_block(l);
  }
  kl_lower_strided_range(l, stmt, rank, count);
}

/* ---- recursion ---- */

/* Returns the stack pointer in local memory. */
static LLVMValueRef stack_pointer(kl_lowering *l)
{
  static const char text[] = "stacksave.u64 $0;", constraints[] = "=l";
  LLVMTypeRef type = LLVMFunctionType(l->i64, NULL, 0, false);
  LLVMValueRef assembly =
    LLVMGetInlineAsm(type, text, sizeof text - 1, constraints, sizeof constraints - 1, true, false,
                     LLVMInlineAsmDialectATT, false);
  return kl_call(l, type, assembly, NULL, 0);
}

/* ---- failing threads ---- */

/* Makes the thread exit. From then on, barriers do not wait for it. */
static void leave_kernel(kl_lowering *l)
{
  if (kl_nvptx_counts_threads(l)) kl_nvptx_leave_grid(l);
  kl_intrinsic(l, "llvm.nvvm.exit", NULL, 0, NULL, 0);
  LLVMBuildUnreachable(kl_next(l));
}

/* Returns from the kernel. If the kernel counts its threads, the thread exits immediately and does
 * not branch to the common end of the kernel. At a common end, lanes that have returned would wait
 * for the other lanes in their warp, while these wait for the returned lanes to exit. */
static void return_early(kl_lowering *l)
{
  if (kl_nvptx_counts_threads(l)) leave_kernel(l);
  else kl_br(l, l->frame->leave);
}

static void finish_products(kl_lowering *l)
{
  kl_asm wait = { .text = "wgmma.wait_group.sync.aligned 0;",
                  .constraints = "",
                  .result = LLVMVoidTypeInContext(l->context),
                  .is_convergent = true };
  kl_build_asm(l, &wait, NULL, 0);
}

static LLVMValueRef thread_context(kl_lowering *l) { return l->failure_record; }
static void use_thread_context(kl_lowering *l, LLVMValueRef context)
{
  l->failure_record = context;
}

const kl_lower_target kl_nvptx_lowering_target = {
  .name = "nvptx",
  .global_space = 1,
  .shared_space = 3,
  .constant_space = 4,
  .defines_outside = true,
  .most_static_shared_bytes = STATIC_SHARED_LIMIT,
  .most_constant_bytes = CONSTANT_LIMIT,
  .scopes = { [KJ_SCOPE_DEVICE] = "device", [KJ_SCOPE_BLOCK] = "block", [KJ_SCOPE_SYSTEM] = "" },
  .begin_kernel = begin_kernel,
  .begin_block = kl_nvptx_begin_block,
  .end_kernel = end_kernel,
  .position = position,
  .failing_position = failing_position,
  .shared_pointer = shared_pointer,
  .local_pointer = local_pointer,
  .dynamic_shared_bytes = dynamic_shared_bytes,
  .range = lower_range,
  .recursion_bytes = KJ_RECURSION_BYTES,
  .fiber_recursion_bytes = KJ_RECURSION_BYTES,
  .stack_pointer = stack_pointer,
  .print = kl_nvptx_print,
  .leave_kernel = leave_kernel,
  .return_early = return_early,
  .shares_failures = true,
  .counts_down = true,
  .finish_products = finish_products,
  .thread_context = thread_context,
  .use_thread_context = use_thread_context,
  .barrier = kl_nvptx_barrier,
#define F(family) .family = kl_nvptx_##family,
#include "lower/families.def"
#undef F
  .barrier_reduce = kl_nvptx_barrier_reduce,
  .hinted_load = kl_nvptx_hinted_load,
  .hinted_store = kl_nvptx_hinted_store,
  .prefetch = kl_nvptx_prefetch,
  .clock = kl_nvptx_clock,
  .nanosleep = kl_nvptx_nanosleep,
  .scoped_atomic = kl_nvptx_scoped_atomic,
  .small_cas = kl_nvptx_small_cas,
  .wide_load = kl_nvptx_wide_load,
  .wide_store = kl_nvptx_wide_store,
  .adds_small_float = kl_nvptx_adds_small_float,
  .has_brain_arithmetic = kl_nvptx_has_brain_arithmetic,
  .has_half_fma = kl_nvptx_has_half_fma,
  .syncwarp = kl_nvptx_syncwarp,
  .fence = kl_nvptx_fence,
  .shuffle = kl_nvptx_shuffle,
  .vote = kl_nvptx_vote,
  .activemask = kl_nvptx_activemask,
  .math = kl_nvptx_math,
  .native = kl_nvptx_native,
  .rsqrt = kl_nvptx_rsqrt,
  .float_to_i32 = kl_nvptx_float_to_i32,
  .integer_abs = kl_nvptx_integer_abs,
};
