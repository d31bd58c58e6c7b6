/* CPU: lowers a kernel to a function that runs a range of blocks on one worker thread. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/cpu/cpu.h"

/* ---- layout of the variables in scratch memory ----
 *
 * Each worker thread has its own scratch memory. Scratch memory holds slots (variables with an
 * element for each thread in the block), local arrays that are used after a synchronization, and
 * static shared arrays. Each variable starts at a cache line. Dynamic shared memory follows after
 * all variables. */

/* ---- assigning offsets ---- */

/* Reserves size bytes and returns their offset. The offset is a multiple of `alignment`, because a
 * kernel sees the offset as the address in shared memory. */
static uint64_t take_scratch(kl_lowering *l, uint64_t size, uint32_t alignment)
{
  KJ_ASSERT((alignment & (alignment - 1)) == 0);
  kl_cpu_state *s = kl_cpu(l);
  if (alignment > KJ_SCRATCH_ALIGNMENT)
    s->scratch_bytes = (s->scratch_bytes + alignment - 1) / alignment * alignment;
  uint64_t offset = s->scratch_bytes;
  s->scratch_bytes =
    (offset + size + KJ_SCRATCH_ALIGNMENT - 1) / KJ_SCRATCH_ALIGNMENT * KJ_SCRATCH_ALIGNMENT;
  return offset;
}

static uint64_t array_bytes(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(kl_type_info(l, var->type)->is_static);
  const ki_type_info *info = kl_type_info(l, var->type);
  return ki_element_count(info) * kl_scalar_bytes(l, info->element);
}

static LLVMTypeRef slot_type(kl_lowering *l, const kt_var *var)
{
  if (var->is_narrow) return l->i32;
  return ki_is_scalar(var->type) && !kl_is_composed_type(l, var->type)
           ? kl_memory_type(l, var->type)
           : kl_register_type(l, var->type);
}

static uint64_t slot_bytes(kl_lowering *l, const kt_var *var)
{
  if (var->kind != KJ_V_LOCAL) return LLVMABISizeOfType(l->layout, slot_type(l, var));
  uint64_t align = var->alignment > 16 ? var->alignment : 16;
  return (array_bytes(l, var) + align - 1) / align * align;
}

static bool is_static(kl_lowering *l, const kt_var *var)
{
  return kl_type_info(l, var->type)->is_static;
}

static void place(kt_var *var, uint64_t offset) { var->lowered = (void *)(uintptr_t)(offset + 1); }
static uint64_t offset_of(const kt_var *var)
{
  KJ_ASSERT(var->lowered);
  return (uint64_t)(uintptr_t)var->lowered - 1;
}

/* Returns whether local arrays that are not slots are in scratch memory. Monitored arrays must be
 * in scratch memory, because the watch identifies memory by its offset there. Arrays of recursive
 * functions cannot be in scratch memory, because several calls can be active at the same time. */
static bool is_kept_in_scratch(kl_lowering *l, const kt_instance *instance)
{
  return kl_is_watched(l) && !kl_is_recursive(l, instance);
}

static void add_scope(kl_lowering *l, const char *name)
{
  if (!l->memory_scopes.count) kl_cpu(l)->memory_domain = kl_make_domain(l, "scratch");
  KJ_PUSH(l->c->arena, &l->memory_scopes, kl_make_scope(l, kl_cpu(l)->memory_domain, name));
}

/* Gives the array an alias scope. The number of arrays with a scope is limited, because each access
 * lists the scopes of all other arrays. */
static void add_array(kl_lowering *l, const kt_var *var)
{
  enum { MOST_ARRAYS = 60 };
  kl_cpu_state *s = kl_cpu(l);
  if (s->scratch_arrays.count == MOST_ARRAYS) return;
  KJ_PUSH(l->c->arena, &s->scratch_arrays, var);
  add_scope(l, var->name);
}

uint32_t kl_cpu_object_of(kl_lowering *l, const kt_var *var)
{
  const kl_cpu_state *s = kl_cpu(l);
  if (var->is_slot && var->kind != KJ_V_LOCAL) return KJ_OBJECT_APART + 1;
  for (uint32_t i = 0; i < s->scratch_arrays.count; i++)
    if (s->scratch_arrays.items[i] == var) return KJ_OBJECT_APART + 2 + i;
  return var->is_slot ? KJ_OBJECT_APART : kl_object_of_type(l, var->type);
}

void kl_lay_out_scratch(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  add_scope(l, "slots");
  for (size_t i = 0; i < l->c->instances.count; i++) {
    const kt_vars *locals = &l->c->instances.items[i]->locals;
    for (size_t k = 0; k < locals->count; k++) {
      kt_var *var = locals->items[k];
      if (var->is_slot) place(var, take_scratch(l, slot_bytes(l, var) * s->thread_count, 0));
      if (var->is_slot && var->kind == KJ_V_LOCAL) add_array(l, var);
      else if (var->kind == KJ_V_LOCAL && !var->is_slot &&
               is_kept_in_scratch(l, l->c->instances.items[i]))
        place(var, take_scratch(l, slot_bytes(l, var), 0));
      if (var->kind == KJ_V_SHARED && is_static(l, var)) {
        uint64_t bytes = array_bytes(l, var);
        place(var, take_scratch(l, bytes, var->alignment));
        l->c->code->static_shared_bytes += (uint32_t)bytes;
        add_array(l, var);
      }
    }
  }
}

/* ---- pointers to scratch memory ---- */

static LLVMValueRef scratch_at(kl_lowering *l, uint64_t offset)
{
  LLVMValueRef at = kl_const64(l, (int64_t)offset);
  return offset ? kl_inbounds_gep(l, l->i8, kl_cpu(l)->scratch, &at, 1) : kl_cpu(l)->scratch;
}

static LLVMValueRef rank64(kl_lowering *l)
{
  KJ_ASSERT(kl_cpu(l)->rank); /* the builder is inside a loop over threads */
  return kl_extend_position(l, kl_cpu(l)->rank);
}

LLVMValueRef kl_cpu_slot_pointer(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(var->is_slot);
  LLVMValueRef rank = rank64(l);
  return kl_inbounds_gep(l, slot_type(l, var), scratch_at(l, offset_of(var)), &rank, 1);
}

LLVMValueRef kl_cpu_shared_pointer(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(var->kind == KJ_V_SHARED);
  if (is_static(l, var)) return scratch_at(l, offset_of(var));
  LLVMValueRef offset = kl_dynamic_offset(l, var), base = scratch_at(l, kl_cpu(l)->scratch_bytes);
  return LLVMIsNull(offset) ? base : kl_inbounds_gep(l, l->i8, base, &offset, 1);
}

LLVMValueRef kl_cpu_local_pointer(kl_lowering *l, const kt_var *var)
{
  KJ_ASSERT(var->kind == KJ_V_LOCAL);
  if (var->is_slot) {
    LLVMValueRef offset = kl_nuw_mul(l, rank64(l), kl_const64(l, (int64_t)slot_bytes(l, var)));
    return kl_inbounds_gep(l, l->i8, scratch_at(l, offset_of(var)), &offset, 1);
  }
  if (var->lowered) return scratch_at(l, offset_of(var));
  kl_variable_state *state = &l->frame->states[var->index];
  if (!state->memory)
    state->memory = kl_alloca_array(l, LLVMArrayType2(l->i8, array_bytes(l, var)), var->name,
                                    var->alignment > 16 ? var->alignment : 16);
  return state->memory;
}

LLVMValueRef kl_cpu_dynamic_shared_bytes(kl_lowering *l)
{
  return kl_load_grid(l, l->i64, offsetof(kj_cpu_grid, dynamic_shared_bytes));
}

LLVMValueRef kl_load_grid(kl_lowering *l, LLVMTypeRef type, size_t offset)
{
  KJ_ASSERT(offset < sizeof(kj_cpu_grid));
  LLVMValueRef at = kl_const64(l, (int64_t)offset);
  LLVMValueRef load = kl_load(l, type, kl_inbounds_gep(l, l->i8, kl_cpu(l)->grid_pointer, &at, 1));
  kl_set_metadata(l, load, "invariant.load", LLVMMDNodeInContext2(l->context, NULL, 0));
  return load;
}

/* ---- the function ---- */

static void add_string_attribute(kl_lowering *l, LLVMValueRef function, const char *name,
                                 const char *value)
{
  LLVMAttributeRef attribute = LLVMCreateStringAttribute(l->context, name, (unsigned)strlen(name),
                                                         value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, attribute);
}

void kl_cpu_finish_function(kl_lowering *l, LLVMValueRef function)
{
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  if (kl_cpu(l)->features->has_avx512)
    add_string_attribute(l, function, "prefer-vector-width", "512");
}

static LLVMTypeRef kernel_type(kl_lowering *l)
{
  LLVMTypeRef params[5] = { l->pointer, l->pointer, l->i64, l->i64, l->pointer };
  return LLVMFunctionType(l->void_, params, 5, false);
}

/* Returns the LLVM function for the version of the kernel without hoisted checks. Declares this
 * function at the first call; a separate lowering creates its body. */
static LLVMValueRef unchecked_function(kl_lowering *l)
{
  const char *name = kj_format(l->c->arena, "%s.unchecked", l->kernel->symbol);
  LLVMValueRef known = LLVMGetNamedFunction(l->module, name);
  if (known) return known;
  LLVMValueRef function = kl_add_function(l, name, kernel_type(l));
  LLVMSetLinkage(function, LLVMInternalLinkage);
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "noinline", 0);
  return function;
}

static void make_function(kl_lowering *l)
{
  l->function =
    l->checked ? unchecked_function(l) : kl_add_function(l, l->kernel->symbol, kernel_type(l));
  kl_cpu_finish_function(l, l->function);
  /* with fibers, one fiber reads scratch memory that another fiber writes, so the scratch pointer
   * cannot be noalias */
  static const unsigned pointers[] = { 0, 1, 4 };
  bool has_fibers = l->c->code->cpu_fibers != KJ_FIBERS_NONE;
  for (size_t i = 0; i < sizeof pointers / sizeof *pointers - has_fibers; i++)
    kl_add_attribute(l, l->function, pointers[i] + 1, "noalias", 0);
  kl_add_attribute(l, l->function, 1, "readonly", 0);
  kl_add_attribute(l, l->function, 2, "readonly", 0);
  kl_add_attribute(l, l->function, 5, "align", KJ_SCRATCH_ALIGNMENT);
}

static LLVMTypeRef parameter_type(kl_lowering *l, const kl_planned_parameter *planned)
{
  switch (KJ_AMONG(planned->parameter.kind)) {
  case KJ_PARAMETER_POINTER:
  case KJ_PARAMETER_FAILURE:
  case KJ_PARAMETER_INTERRUPT_WORD:
  case KJ_PARAMETER_PRINT: return l->pointer;
  case KJ_PARAMETER_SCALAR: return kl_memory_type(l, planned->type);
  default: return planned->parameter.size_bytes == 4 ? l->i32 : l->i64;
  }
}

static void load_parameters(kl_lowering *l)
{
  LLVMValueRef block = LLVMGetParam(l->function, 0);
  for (size_t i = 0; i < l->parameters.count; i++) {
    kl_planned_parameter *planned = &l->parameters.items[i];
    LLVMValueRef at = kl_const64(l, planned->parameter.offset);
    planned->value =
      kl_load(l, parameter_type(l, planned), kl_inbounds_gep(l, l->i8, block, &at, 1));
  }
}

/* ---- the loop over blocks ---- */

/* Computes the coordinates of block `first`. For each further block, step_block_index adds one,
 * with carries. */
static void start_block_index(kl_lowering *l, LLVMValueRef first)
{
  kl_cpu_state *s = kl_cpu(l);
  LLVMValueRef rest = first;
  for (int d = 0; d < 3; d++) {
    s->index_allocas[d] = kl_alloca(l, l->i32, "block");
    LLVMValueRef size = kl_zext(l, s->grid[d], l->i64);
    LLVMValueRef at = d < 2 ? kl_urem(l, rest, size) : rest;
    kl_store(l, kl_as_i32(l, at), s->index_allocas[d]);
    if (d < 2) rest = kl_udiv(l, rest, size);
  }
}

/* Returns the number of the block's coordinates that must be computed, starting with x: the
 * coordinates that the body uses, and all coordinates before these, because of the carries. For
 * debuggers, all coordinates are computed. */
static int count_used_coordinates(kl_lowering *l)
{
  int count = 3;
  if (l->c->request->debug != KJIT_DEBUG_NONE) return count;
  while (count && !LLVMGetFirstUse(kl_cpu(l)->block_index[count - 1])) count--;
  return count;
}

/* Advances the block index. Coordinates that are not computed are not advanced either, because LLVM
 * would not remove these additions. */
static void step_block_index(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  LLVMValueRef carry = kl_const32(l, 1);
  for (int d = 0, count = count_used_coordinates(l); d < count; d++) {
    LLVMValueRef next = kl_add(l, s->block_index[d], carry);
    LLVMValueRef is_over = kl_icmp(l, LLVMIntEQ, next, s->grid[d]);
    kl_store(l, d < 2 ? kl_select(l, is_over, kl_const32(l, 0), next) : next, s->index_allocas[d]);
    carry = kl_zext(l, is_over, l->i32);
  }
}

/* Sets the range of threads that a call runs: all threads in the block, or the threads in one
 * warp. */
static void bound_unit(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  s->has_warps = l->c->code->cpu_fibers == KJ_FIBERS_WARPS && s->thread_count > KJ_WARP_THREADS;
  s->unit_first = kl_const32(l, 0);
  s->unit_stop = kl_const32(l, s->thread_count);
  if (!s->has_warps) return;
  s->unit_first = kl_nuw_mul(l, kl_load_grid(l, l->i32, offsetof(kj_cpu_grid, warp)),
                             kl_const32(l, KJ_WARP_THREADS));
  s->unit_stop = kl_end_of_warp(l, s->unit_first);
}

/* Returns whether the kernel function needs no loop over its blocks. If the kernel consists only of
 * ranges, its blocks process adjacent parts of a grid_range, and the runtime chooses the number of
 * blocks. The loop over the blocks would add a fifth to the code that LLVM compiles. A block that
 * can fail or be interrupted skips its remaining iterations, so such blocks need the loop. Blocks
 * that have an unchecked version need it, too. */
static bool can_join_blocks(kl_lowering *l)
{
  const kt_compilation *c = l->c;
  kt_effects effects = { 0 };
  if (!c->code->is_range_only || l->checked || c->unchecked || c->request->is_interruptible ||
      c->request->debug != KJIT_DEBUG_NONE)
    return false;
  for (size_t i = 0; i < l->kernel->body.count; i++)
    kt_add_stmt_effects(c, l->kernel->body.items[i], &effects);
  return !effects.acts && !effects.may_fail;
}

static void begin_block_loop(kl_lowering *l, LLVMValueRef first)
{
  kl_cpu_state *s = kl_cpu(l);
  start_block_index(l, first);
  LLVMBasicBlockRef before = kl_here(l), body = kl_new_block(l, "block");
  s->head = kl_new_block(l, "blocks");
  s->exit = kl_new_block(l, "exit");
  kl_go_on_in(l, s->head);
  s->block_number = s->number_phi = LLVMBuildPhi(kl_next(l), l->i64, "number");
  LLVMAddIncoming(s->number_phi, &first, &before, 1);
  kl_cond_br(l, kl_icmp(l, LLVMIntULT, s->number_phi, s->last), body, s->exit);
  kl_move_to(l, body);
  for (int d = 0; d < 3; d++) s->block_index[d] = kl_load(l, l->i32, s->index_allocas[d]);
}

void kl_cpu_begin_kernel(kl_lowering *l)
{
  KJ_ASSERT(l->kernel && !l->function);
  kl_cpu_state *s = kl_cpu(l);
  for (int d = 0; d < 3; d++)
    s->block[d] = l->c->code->is_range_only ? 1
                  : l->kernel->block[d]     ? l->kernel->block[d]
                                            : l->c->request->signature->block[d];
  for (int d = 0; d < 3; d++)
    if (!s->block[d]) s->block[d] = 1;
  s->thread_count = s->block[0] * s->block[1] * s->block[2];
  kl_lay_out_scratch(l);
  make_function(l);
  kl_begin_body(l);
  s->grid_pointer = LLVMGetParam(l->function, 1);
  s->scratch = LLVMGetParam(l->function, 4);
  s->last = LLVMGetParam(l->function, 3);
  bound_unit(l);
  load_parameters(l);
  for (size_t d = 0; d < 3; d++)
    s->grid[d] = kl_load_grid(l, l->i32, offsetof(kj_cpu_grid, grid) + d * sizeof(uint32_t));
  LLVMValueRef first = LLVMGetParam(l->function, 2);
  s->joins_blocks = can_join_blocks(l);
  if (s->joins_blocks) {
    s->block_number = first;
    /* the kernel does not read the block indices */
    for (int d = 0; d < 3; d++) s->block_index[d] = kl_const32(l, 0);
  } else begin_block_loop(l, first);
  if (s->thread_count == 1) {
    s->rank = kl_const32(l, 0);
    for (int d = 0; d < 3; d++) s->thread[d] = s->rank;
  }
  kl_watch_start_of_block(l);
}

/* Begins the code for a block. Interruptible code polls here, once for each block. If the block's
 * hoisted checks cannot fail, the code calls the version of the kernel without these checks. */
void kl_cpu_begin_block(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  const kt_exprs *conditions = &l->c->hoisted;
  if (l->interrupt_word && !l->checked && l->kernel->polls)
    kl_poll(l, l->kernel->function->decl->location, 0);
  if (!l->c->unchecked) return;
  LLVMValueRef holds = LLVMConstInt(l->i1, 1, false);
  for (size_t i = 0; i < conditions->count; i++)
    holds = kl_and(l, holds, kl_lower_condition(l, conditions->items[i]));
  LLVMBasicBlockRef unchecked = kl_new_block(l, "unchecked"), checked = kl_new_block(l, "checked");
  kl_go_on_if(l, holds, unchecked, checked);
  LLVMValueRef next = kl_nuw_add(l, s->number_phi, kl_const64(l, 1));
  LLVMValueRef args[] = { LLVMGetParam(l->function, 0), s->grid_pointer, s->number_phi, next,
                          s->scratch };
  kl_call(l, kernel_type(l), unchecked_function(l), args, 5);
  kl_br(l, l->frame->leave);
  kl_move_to(l, checked);
}

void kl_cpu_end_kernel(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  if (s->joins_blocks) {
    LLVMBuildRetVoid(kl_next(l));
    return;
  }
  step_block_index(l);
  LLVMValueRef next = kl_nuw_add(l, s->number_phi, kl_const64(l, 1));
  LLVMBasicBlockRef latch = kl_here(l);
  LLVMAddIncoming(s->number_phi, &next, &latch, 1);
  LLVMValueRef branch = kl_br(l, s->head);
  if (s->thread_count > 1 || l->c->code->is_range_only)
    kl_set_metadata(l, branch, "llvm.loop", kl_one_copy_id(l));
  kl_move_to(l, s->exit);
  LLVMBuildRetVoid(kl_next(l));
}

static LLVMValueRef load_call_field(kl_lowering *l, LLVMTypeRef type, size_t offset)
{
  LLVMValueRef at = kl_const64(l, (int64_t)offset);
  return kl_load(l, type, kl_inbounds_gep(l, l->i8, kl_cpu(l)->grid_pointer, &at, 1));
}

/* Begins a C function, which has no block and no thread. Sets all positions to 0, so that the
 * thread context that the function passes to its callees is complete. */
void kl_cpu_begin_entry(kl_lowering *l)
{
  kl_cpu_state *s = kl_cpu(l);
  s->rank = s->grid[0] = s->grid[1] = s->grid[2] = kl_const32(l, 0);
  for (int d = 0; d < 3; d++) s->thread[d] = s->block_index[d] = s->rank;
  s->grid_pointer = s->scratch = LLVMConstNull(l->pointer);
  if (!l->kernel->polls) return;
  s->grid_pointer = LLVMGetParam(l->function, 1);
  l->interrupt_word = load_call_field(l, l->pointer, offsetof(kj_interruptible_call, word));
  l->interrupt_number = load_call_field(l, l->i64, offsetof(kj_interruptible_call, number));
}
