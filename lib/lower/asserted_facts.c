/* In builds of kjit with assertions, this file adds assertions to CPU code, which check at run time
 * the facts on which the code relies. These are the facts that the passes derive and pass to the
 * optimizer: value ranges, relations between arguments, alignments, and conditions of checks that
 * were omitted. If a fact does not hold, the process stops with a message; otherwise the code could
 * compute a wrong result later. */
#include "support/assert.h"

#include "lower/instruction.h"
#include "native/support_routines.h"

/* Returns whether the code asserts facts. Code for other processes does not assert facts, because
 * those processes may not contain kjit's functions that report a failure. */
bool kl_asserts_facts(const kl_lowering *l)
{
  const kj_compile_request *request = l->c->request;
  return KJ_HAS_ASSERTIONS && request->target.kind == KJ_TARGET_CPU &&
         request->stage == KJIT_STAGE_OBJECT && !request->is_ahead;
}

/* ---- one fact ---- */

static void call_report(kl_lowering *l, const char *fact, LLVMValueRef value)
{
  LLVMTypeRef types[] = { l->pointer, l->i64 }, type = LLVMFunctionType(l->void_, types, 2, false);
  LLVMValueRef function = LLVMGetNamedFunction(l->module, KJ_FACT_FUNCTION);
  if (!function) {
    function = kl_add_function(l, KJ_FACT_FUNCTION, type);
    static const char *const attributes[] = { "nounwind", "noreturn", "cold" };
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
      kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, attributes[i], 0);
  }
  LLVMValueRef args[] = { LLVMBuildGlobalString(kl_next(l), fact, "fact"), value };
  kl_call(l, type, function, args, 2);
  LLVMBuildUnreachable(kl_next(l));
}

/* Returns the location of the current statement as a string, or NULL if there is no statement. */
static const char *place_text(kl_lowering *l)
{
  const kj_location *at = &l->location;
  const char *name = at->line ? l->c->module->sources.items[at->file].name : NULL;
  return name ? kj_format(l->c->arena, "the statement at %s:%u:%u", name, at->line, at->column)
              : NULL;
}

void kl_note_place(kl_lowering *l, LLVMValueRef access)
{
  const char *place = kl_asserts_facts(l) ? place_text(l) : NULL;
  if (!place) return;
  LLVMMetadataRef text = kl_metadata_string(l, place);
  kl_set_metadata(l, access, KJ_PLACE_METADATA, LLVMMDNodeInContext2(l->context, &text, 1));
}

void kl_assert_fact(kl_lowering *l, LLVMValueRef holds, LLVMValueRef value, const char *fact)
{
  KJ_ASSERT(LLVMTypeOf(holds) == l->i1 && LLVMTypeOf(value) == l->i64);
  if (!kl_asserts_facts(l) || LLVMIsPoison(holds)) return;
  if (LLVMIsAConstantInt(holds) && !LLVMIsNull(holds)) return;
  const char *place = place_text(l),
             *text = place ? kj_format(l->c->arena, "%s, in %s", fact, place) : fact;
  LLVMBasicBlockRef broken = kl_new_block(l, "broken"), intact = kl_new_block(l, "intact");
  kl_set_likely(l, kl_cond_br(l, holds, intact, broken), true);
  kl_move_to(l, broken);
  call_report(l, text, value);
  kl_move_to(l, intact);
}

/* ---- ranges ---- */

static const char *number_text(kl_lowering *l, __int128 value)
{
  return value > INT64_MAX ? kj_format(l->c->arena, "%llu", (unsigned long long)value)
                           : kj_format(l->c->arena, "%lld", (long long)value);
}

void kl_assert_range(kl_lowering *l, kt_interval range, kjit_type type, LLVMValueRef value)
{
  if (!kl_asserts_facts(l) || !range.known || LLVMIsConstant(value)) return;
  LLVMBuilderRef b = l->builder;
  uint64_t size = (uint64_t)(range.most - range.least),
           all = UINT64_MAX >> (64 - LLVMGetIntTypeWidth(LLVMTypeOf(value)));
  if (size == all) return;
  bool is_signed = type != KJIT_BOOL && kl_is_signed_type(l, type);
  LLVMValueRef wide = LLVMBuildFreeze(b, value, "");
  if (LLVMTypeOf(value) != l->i64)
    wide = is_signed ? kl_sext(l, wide, l->i64) : kl_zext(l, wide, l->i64);
  LLVMValueRef above = kl_sub(l, wide, LLVMConstInt(l->i64, (uint64_t)range.least, false));
  LLVMValueRef holds = kl_icmp(l, LLVMIntULE, above, LLVMConstInt(l->i64, size, false));
  kl_assert_fact(l, holds, wide,
                 kj_format(l->c->arena, "a value is in %s..%s", number_text(l, range.least),
                           number_text(l, range.most)));
}

/* ---- arguments ---- */

static const char *name_of(kl_lowering *l, uint32_t argument)
{
  return l->kernel->function->params.items[argument]->name;
}

/* Asserts the alignment of an argument. CPU code does not rely on the alignment. The assertion
 * finds errors of the runtime, which passes arguments to GPU kernels in the same way: a GPU kernel
 * would fault if the alignment were wrong. */
static void assert_alignment(kl_lowering *l, uint32_t argument, LLVMValueRef start,
                             const kl_array_value *array)
{
  uint32_t facts = l->c->request->signature->arguments[argument].facts;
  const ki_type_info *info = kl_type_info(l, array->type);
  LLVMValueRef zero = kl_const64(l, 0), mask = kl_const64(l, KJ_FACT_WIDTH - 1),
               size = kl_const64(l, kl_scalar_bytes(l, info->element));
  if (facts & KJ_FACT_ALIGNED16)
    kl_assert_fact(l, kl_icmp(l, LLVMIntEQ, kl_and(l, start, mask), zero), start,
                   kj_format(l->c->arena, "the argument `%s` lies at a multiple of %d bytes",
                             name_of(l, argument), KJ_FACT_WIDTH));
  for (uint32_t d = 0; (facts & KJ_FACT_ROWS_ALIGNED16) && d + 1 < info->rank; d++) {
    LLVMValueRef bytes = kl_mul(l, kl_as_i64(l, array->strides[d]), size);
    kl_assert_fact(l, kl_icmp(l, LLVMIntEQ, kl_and(l, bytes, mask), zero), bytes,
                   kj_format(l->c->arena, "rows of the argument `%s` are multiples of %d bytes",
                             name_of(l, argument), KJ_FACT_WIDTH));
  }
}

/* Computes the bytes [low, high) that the elements of an array argument occupy. */
static void find_ends(kl_lowering *l, const kt_var *param)
{
  KJ_ASSERT(param->argument < l->c->request->signature->count);
  kl_array_value array = kl_get_array(l, param);
  const ki_type_info *info = kl_type_info(l, param->type);
  LLVMValueRef zero = kl_const64(l, 0), least = zero, most = zero,
               is_empty = LLVMConstInt(l->i1, 0, false);
  for (uint32_t d = 0; d < info->rank; d++) {
    LLVMValueRef extent = kl_as_i64(l, array.extents[d]);
    kl_assert_fact(l, kl_icmp(l, LLVMIntSGE, extent, zero), extent,
                   "an extent of an argument is not negative");
    LLVMValueRef last = kl_sub(l, extent, kl_const64(l, 1)),
                 reach = kl_mul(l, last, kl_as_i64(l, array.strides[d]));
    is_empty = kl_or(l, is_empty, kl_icmp(l, LLVMIntEQ, extent, zero));
    least = kl_add(l, least, kl_intrinsic2(l, "llvm.smin", reach, zero));
    most = kl_add(l, most, kl_intrinsic2(l, "llvm.smax", reach, zero));
  }
  LLVMValueRef size = kl_const64(l, kl_scalar_bytes(l, info->element)),
               start = kl_ptrtoint(l, array.pointer, l->i64),
               end = kl_add(l, most, kl_const64(l, 1));
  assert_alignment(l, param->argument, start, &array);
  LLVMValueRef *ends = &l->argument_ends[2 * param->argument];
  ends[0] = kl_add(l, start, kl_mul(l, least, size));
  ends[1] = kl_add(l, start, kl_mul(l, end, size));
  ends[1] = kl_select(l, is_empty, ends[0], ends[1]);
}

static void assert_relation(kl_lowering *l, uint32_t a, uint32_t b)
{
  KJ_ASSERT(a != b);
  const kj_signature *signature = l->c->request->signature;
  LLVMValueRef *x = &l->argument_ends[2 * a], *y = &l->argument_ends[2 * b];
  int relation =
    signature->relations ? signature->relations[a * signature->count + b] : KJ_RELATION_ANY;
  if (!x[0] || !y[0] || relation == KJ_RELATION_ANY) return;
  bool is_disjoint = relation == KJ_RELATION_DISJOINT;
  LLVMValueRef before = kl_icmp(l, LLVMIntULE, x[1], y[0]),
               behind = kl_icmp(l, LLVMIntULE, y[1], x[0]),
               nothing =
                 kl_or(l, kl_icmp(l, LLVMIntEQ, x[0], x[1]), kl_icmp(l, LLVMIntEQ, y[0], y[1])),
               apart = kl_or(l, kl_or(l, before, behind), nothing),
               same = kl_icmp(l, LLVMIntEQ, x[0], y[0]);
  kl_assert_fact(l, is_disjoint ? apart : same, x[0],
                 kj_format(l->c->arena, "the arguments `%s` and `%s` %s", name_of(l, a),
                           name_of(l, b), is_disjoint ? "do not overlap" : "are the same memory"));
}

static void assert_grid(kl_lowering *l)
{
  LLVMValueRef threads = kl_const64(l, 1);
  for (uint32_t d = 0; d < 3; d++) {
    LLVMValueRef blocks = l->target->position(l, KJ_BUILTIN_GRID_DIM, d),
                 size = l->target->position(l, KJ_BUILTIN_BLOCK_DIM, d);
    threads = kl_mul(l, threads, kl_extend_position(l, blocks));
    threads = kl_mul(l, threads, kl_extend_position(l, size));
  }
  kl_assert_fact(l, kl_icmp(l, LLVMIntULE, threads, kl_const64(l, INT32_MAX)), threads,
                 "the number of threads of the grid is below 2^31");
}

void kl_assert_arguments(kl_lowering *l)
{
  uint32_t count = l->c->request->signature->count;
  if (!kl_asserts_facts(l)) return;
  l->location = (kj_location){ 0 };
  l->argument_ends = KJ_NEW_ARRAY(l->c->arena, LLVMValueRef, 2 * count + 1);
  if (l->c->request->signature->grid32) assert_grid(l);
  for (size_t i = 0; i < l->kernel->params.count; i++) {
    const kt_var *param = l->kernel->params.items[i];
    if (kl_is_array_type(l, param->type) &&
        (l->uses[param->argument].is_read || l->uses[param->argument].is_written))
      find_ends(l, param);
  }
  for (uint32_t a = 0; a < count; a++)
    for (uint32_t b = 0; b < a; b++) assert_relation(l, a, b);
  l->asserted_function = l->function;
}

/* ---- accesses ---- */

void kl_assert_access(kl_lowering *l, LLVMValueRef pointer, uint32_t bytes, uint32_t alignment,
                      uint32_t object)
{
  if (!kl_asserts_facts(l)) return;
  LLVMValueRef at = kl_ptrtoint(l, pointer, l->i64), zero = kl_const64(l, 0),
               rest = kl_and(l, at, kl_const64(l, (int64_t)alignment - 1));
  if (alignment > 1)
    kl_assert_fact(l, kl_icmp(l, LLVMIntEQ, rest, zero), at,
                   kj_format(l->c->arena, "an access is at a multiple of %u bytes", alignment));
  /* the memory can be an argument of the kernel, but a function that is not inlined does not know
   * which one */
  if (!kl_is_argument(object) || l->function != l->asserted_function) return;
  LLVMValueRef *ends = &l->argument_ends[2 * (object - 1)];
  if (!ends[0]) return;
  LLVMValueRef end = kl_add(l, at, kl_const64(l, bytes));
  LLVMValueRef holds =
    kl_and(l, kl_icmp(l, LLVMIntUGE, at, ends[0]), kl_icmp(l, LLVMIntULE, end, ends[1]));
  kl_assert_fact(l, holds, kl_sub(l, at, ends[0]),
                 kj_format(l->c->arena,
                           "an access, in bytes from the start, is of the argument `%s`",
                           name_of(l, object - 1)));
}
