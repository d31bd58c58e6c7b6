/* Failing threads: raise, assert and the checks of subscripts and divisors.
 *
 * A place that may fail is a branch to a block of its own, which hands what it knows to one function that only the first failing thread gets through, and makes the thread
 * leave the kernel. Where nothing may fail, nothing of this is built, nor is there a parameter for it. */
#include <string.h>

#include "lower/lower.h"

/* ---- the parameter ---- */

void kj_plan_failures(kj_lowering *l)
{
  if (!l->kernel->may_fail) return;
  uint32_t offset = (l->parameter_bytes + 7) / 8 * 8;
  kj_planned_parameter planned = { .parameter = { .kind = KJ_PARAMETER_FAILURE, .argument = UINT16_MAX, .size_bytes = 8, .offset = offset } };
  KJ_PUSH(l->c->arena, &l->parameters, planned);
  l->failure_offset = offset;
  l->parameter_bytes = offset + 8;
}

/* ---- the function that writes the record ---- */

enum { WRITER_RECORD, WRITER_SITE, WRITER_BLOCK, WRITER_THREAD = WRITER_BLOCK + 3, WRITER_VALUES = WRITER_THREAD + 3, WRITER_COUNT = WRITER_VALUES + 2 };

static LLVMValueRef field_at(kj_lowering *l, LLVMValueRef record, size_t offset)
{
  LLVMValueRef at = kj_const64(l, (int64_t)offset);
  return LLVMBuildInBoundsGEP2(l->builder, l->i8, record, &at, 1, "");
}

static unsigned scope_of(kj_lowering *l) { return LLVMGetSyncScopeID(l->context, l->target->device_scope, strlen(l->target->device_scope)); }

static void write_fields(kj_lowering *l, LLVMValueRef writer)
{
  LLVMValueRef record = LLVMGetParam(writer, WRITER_RECORD);
  LLVMBuildStore(l->builder, LLVMGetParam(writer, WRITER_SITE), field_at(l, record, offsetof(kj_failure_record, site)));
  for (unsigned d = 0; d < 3; d++) {
    LLVMBuildStore(l->builder, LLVMGetParam(writer, WRITER_BLOCK + d), field_at(l, record, offsetof(kj_failure_record, block) + d * sizeof(uint32_t)));
    LLVMBuildStore(l->builder, LLVMGetParam(writer, WRITER_THREAD + d), field_at(l, record, offsetof(kj_failure_record, thread) + d * sizeof(uint32_t)));
  }
  for (unsigned i = 0; i < 2; i++)
    LLVMBuildStore(l->builder, LLVMGetParam(writer, WRITER_VALUES + i), field_at(l, record, offsetof(kj_failure_record, values) + i * sizeof(uint64_t)));
  /* The host looks at the state first, and not only when the kernel has ended. */
  LLVMValueRef store = LLVMBuildStore(l->builder, kj_const32(l, KJ_FAILURE_WRITTEN), field_at(l, record, offsetof(kj_failure_record, state)));
  LLVMSetOrdering(store, LLVMAtomicOrderingRelease);
  LLVMSetAlignment(store, 4);
}

static void fill_writer(kj_lowering *l, LLVMValueRef writer)
{
  LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(l->context, writer, "entry");
  LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(l->context, writer, "first"), end = LLVMAppendBasicBlockInContext(l->context, writer, "end");
  LLVMBasicBlockRef here = LLVMGetInsertBlock(l->builder);
  LLVMAtomicOrdering relaxed = LLVMAtomicOrderingMonotonic;
  LLVMPositionBuilderAtEnd(l->builder, entry);
  LLVMValueRef state = field_at(l, LLVMGetParam(writer, WRITER_RECORD), offsetof(kj_failure_record, state));
  LLVMValueRef pair =
    LLVMBuildAtomicCmpXchgSyncScope(l->builder, state, kj_const32(l, KJ_FAILURE_FREE), kj_const32(l, KJ_FAILURE_TAKEN), relaxed, relaxed, scope_of(l));
  LLVMBuildCondBr(l->builder, LLVMBuildExtractValue(l->builder, pair, 1, ""), first, end);
  LLVMPositionBuilderAtEnd(l->builder, first);
  write_fields(l, writer);
  LLVMBuildBr(l->builder, end);
  LLVMPositionBuilderAtEnd(l->builder, end);
  LLVMBuildRetVoid(l->builder);
  LLVMPositionBuilderAtEnd(l->builder, here);
}

static LLVMValueRef get_writer(kj_lowering *l)
{
  if (l->failure_writer) return l->failure_writer;
  LLVMTypeRef params[WRITER_COUNT];
  params[WRITER_RECORD] = l->pointer;
  for (int i = WRITER_SITE; i < WRITER_VALUES; i++) params[i] = l->i32;
  for (int i = WRITER_VALUES; i < WRITER_COUNT; i++) params[i] = l->i64;
  l->failure_writer = LLVMAddFunction(l->module, "kjit_write_failure", LLVMFunctionType(l->void_, params, WRITER_COUNT, false));
  LLVMSetLinkage(l->failure_writer, LLVMInternalLinkage);
  static const char *const attributes[] = { "nounwind", "noinline", "cold" };
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    kj_add_attribute(l, l->failure_writer, (unsigned)LLVMAttributeFunctionIndex, attributes[i], 0);
  fill_writer(l, l->failure_writer);
  return l->failure_writer;
}

/* ---- a place that may fail ---- */

static void describe_site(kj_lowering *l, const kj_failure *failure)
{
  kj_buffer *text = &l->failures;
  kj_append_format(text, "%d %u %u %u ", (int)failure->kind, failure->location.file, failure->location.line, failure->location.column);
  for (unsigned i = 0; i < failure->count; i++) {
    bool is_float = kj_is_float_type(l, failure->types[i]), is_signed = !is_float && kj_is_signed_type(l, failure->types[i]);
    kj_append_text(text, is_float ? "f" : is_signed ? "i" : "u");
  }
  if (!failure->count) kj_append_text(text, "-");
  kj_append_text(text, " ");
  for (const char *at = failure->message ? failure->message : ""; *at; at++) kj_append_format(text, "%c", *at == '\n' ? 1 : *at);
  kj_append_text(text, "\n");
}

/* 64 bits that the host can print without knowing the type. */
static LLVMValueRef widen(kj_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (!kj_is_float_type(l, type)) return kj_build_convert(l, type, kj_is_signed_type(l, type) ? KJIT_I64 : KJIT_U64, value);
  return LLVMBuildBitCast(l->builder, kj_build_convert(l, type, KJIT_F64, value), l->i64, "");
}

void kj_build_failure(kj_lowering *l, const kj_failure *failure)
{
  LLVMValueRef args[WRITER_COUNT];
  if (!l->failure_record) { /* nobody to tell */
    kj_intrinsic(l, "llvm.trap", NULL, 0, NULL, 0);
    LLVMBuildUnreachable(l->builder);
    return;
  }
  LLVMValueRef writer = get_writer(l);
  args[WRITER_RECORD] = l->failure_record;
  args[WRITER_SITE] = kj_const32(l, l->failure_count++);
  for (unsigned d = 0; d < 3; d++) {
    args[WRITER_BLOCK + d] = l->target->position(l, KJ_BUILTIN_BLOCK_IDX, d);
    args[WRITER_THREAD + d] = l->target->position(l, KJ_BUILTIN_THREAD_IDX, d);
  }
  for (unsigned i = 0; i < 2; i++) args[WRITER_VALUES + i] = i < failure->count ? widen(l, failure->types[i], failure->values[i]) : kj_const64(l, 0);
  describe_site(l, failure);
  LLVMBuildCall2(l->builder, LLVMGlobalGetValueType(writer), writer, args, WRITER_COUNT, "");
  l->target->leave_kernel(l);
}

void kj_fail_if(kj_lowering *l, LLVMValueRef condition, const kj_failure *failure)
{
  enum { UNLIKELY = 1, LIKELY = 1000000 };
  LLVMBasicBlockRef fails = kj_new_block(l, "fails"), passes = kj_new_block(l, "passes");
  LLVMValueRef branch = LLVMBuildCondBr(l->builder, condition, fails, passes);
  LLVMMetadataRef weights[] = { kj_metadata_string(l, "branch_weights"), kj_metadata_int(l, UNLIKELY), kj_metadata_int(l, LIKELY) };
  kj_set_metadata(l, branch, "prof", LLVMMDNodeInContext2(l->context, weights, 3));
  kj_move_to(l, fails);
  kj_build_failure(l, failure);
  kj_move_to(l, passes);
}

/* ---- raise and assert ---- */

void kj_lower_fail(kj_lowering *l, const kj_tstmt *stmt)
{
  kj_failure failure = { .kind = stmt->failure, .location = stmt->location, .message = stmt->message, .count = (unsigned)stmt->indices.count };
  for (unsigned i = 0; i < failure.count; i++) {
    failure.types[i] = stmt->indices.items[i]->type;
    failure.values[i] = kj_lower_expr(l, stmt->indices.items[i]);
  }
  kj_build_failure(l, &failure);
  kj_move_to(l, kj_new_block(l, "never")); /* what follows in an inlined body is built all the same */
}

/* ---- bounds ---- */

void kj_check_index(kj_lowering *l, const kj_texpr *index, LLVMValueRef value, LLVMValueRef extent)
{
  kj_failure failure = { .kind = KJ_FAILURE_BOUNDS, .location = index->location, .count = 2, .values = { value, extent } };
  failure.types[0] = index->type == KJIT_U64 ? KJIT_U64 : KJIT_I64;
  failure.types[1] = KJIT_I64;
  kj_fail_if(l, LLVMBuildICmp(l->builder, LLVMIntUGE, value, extent, ""), &failure);
}

/* The first and the last element of a slice that has any. */
void kj_check_slice(kj_lowering *l, const kj_slice *slice)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef last = LLVMBuildSub(b, slice->count, kj_const64(l, 1), "");
  if (slice->step) last = LLVMBuildMul(b, last, slice->step, "");
  last = LLVMBuildAdd(b, slice->first, last, "");
  LLVMValueRef is_first_out = LLVMBuildICmp(b, LLVMIntUGE, slice->first, slice->extent, "");
  LLVMValueRef is_out = LLVMBuildOr(b, is_first_out, LLVMBuildICmp(b, LLVMIntUGE, last, slice->extent, ""), "");
  LLVMValueRef has_any = LLVMBuildICmp(b, LLVMIntSGT, slice->count, kj_const64(l, 0), "");
  kj_failure failure = { .kind = KJ_FAILURE_BOUNDS, .location = slice->location, .count = 2, .types = { KJIT_I64, KJIT_I64 } };
  failure.values[0] = LLVMBuildSelect(b, is_first_out, slice->first, last, "");
  failure.values[1] = slice->extent;
  kj_fail_if(l, LLVMBuildAnd(b, has_any, is_out, ""), &failure);
}

/* ---- division ---- */

void kj_check_divisor(kj_lowering *l, const kj_texpr *expr, kjit_type type, LLVMValueRef x, LLVMValueRef y)
{
  kj_failure failure = { .kind = KJ_FAILURE_DIVISION, .location = expr->location, .count = 1, .types = { type }, .values = { x } };
  LLVMValueRef zero_test;
  if (kj_is_float_type(l, type)) {
    LLVMValueRef divisor = kj_to_compute(l, type, y);
    zero_test = LLVMBuildFCmp(l->builder, LLVMRealOEQ, divisor, LLVMConstNull(LLVMTypeOf(divisor)), "");
    if (l->bad_divisor) {
      kj_note_bad_divisor(l, zero_test);
      return;
    }
  } else {
    zero_test = LLVMBuildICmp(l->builder, LLVMIntEQ, y, LLVMConstNull(LLVMTypeOf(y)), "");
  }
  kj_fail_if(l, zero_test, &failure);
}
