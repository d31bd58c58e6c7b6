/* Kernel errors: raise, assert, and the run-time checks of indices and divisors.
 *
 * An operation that can fail branches to a separate basic block. This block passes the details to a
 * function, or on a GPU to a common block of the current function. There, only the first failing
 * thread writes the failure record, and all failing threads leave the kernel. A kernel that cannot
 * fail contains none of this code and has no parameter for the record. */
#include <string.h>

#include "lower/cpu/cpu.h"
#include "lower/instruction.h"
#include "native/watch.h"

/* CPU: the checks for uninitialized memory and races, which monitor accesses of shared and local
 * memory (native/watch.h). Before each access, the code calls a function that returns whether the
 * access is correct. If the access is not correct, the thread fails. */

static LLVMValueRef declare(kl_lowering *l, const char *name, LLVMTypeRef type)
{
  LLVMValueRef function = LLVMGetNamedFunction(l->module, name);
  if (function) return function;
  function = kl_add_function(l, name, type);
  kl_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  return function;
}

/* Returns the size in bytes of a block's memory. */
static LLVMValueRef size_of_memory(kl_lowering *l)
{
  return kl_add(l, kl_const64(l, (int64_t)kl_cpu(l)->scratch_bytes),
                l->target->dynamic_shared_bytes(l));
}

/* Returns the address of the watch, the data that monitors accesses. runtime/cpu/run.c allocates it
 * directly after the block's memory, aligned to a cache line. */
static LLVMValueRef find_watch(kl_lowering *l)
{
  KJ_ASSERT(kl_is_watched(l));
  enum { LINE = 64 };
  LLVMValueRef end = kl_add(l, size_of_memory(l), kl_const64(l, LINE - 1));
  LLVMValueRef offset = kl_and(l, end, kl_const64(l, -LINE));
  return kl_inbounds_gep(l, l->i8, kl_cpu(l)->scratch, &offset, 1);
}

bool kl_is_watched(const kl_lowering *l) { return l->c->code->is_watched; }

void kl_watch_start_of_block(kl_lowering *l)
{
  if (!kl_is_watched(l)) return;
  uint32_t threads = kl_cpu(l)->thread_count,
           unit = l->c->has_part_barrier ? threads : KJ_WARP_THREADS;
  LLVMTypeRef types[] = { l->pointer, l->i64, l->i32, l->i32 },
              type = LLVMFunctionType(l->void_, types, 4, false);
  LLVMValueRef args[] = { find_watch(l), size_of_memory(l), kl_const32(l, threads),
                          kl_const32(l, unit) };
  kl_call(l, type, declare(l, KJ_WATCH_BLOCK_FUNCTION, type), args, 4);
}

void kl_watch_synchronization(kl_lowering *l, const char *function, LLVMValueRef threads)
{
  KJ_ASSERT(kl_is_watched(l));
  LLVMTypeRef types[] = { l->pointer, l->pointer },
              type = LLVMFunctionType(l->void_, types, 2, false);
  LLVMValueRef args[] = { find_watch(l), threads ? threads : LLVMConstNull(l->pointer) };
  kl_call(l, type, declare(l, function, type), args, 2);
}

/* ---- accesses ---- */

static LLVMValueRef distance(kl_lowering *l, LLVMValueRef to, LLVMValueRef from)
{
  return kl_sub(l, kl_ptrtoint(l, to, l->i64), kl_ptrtoint(l, from, l->i64));
}

static uint32_t describe(kl_lowering *l, const kl_array_value *array, uint32_t how)
{
  uint32_t checks = l->c->request->checks;
  if (kl_type_info(l, array->type)->space == KJ_SPACE_LOCAL) how |= KJ_WATCH_LOCAL;
  if (checks & KJIT_CHECK_UNINITIALIZED) how |= KJ_WATCH_UNINITIALIZED;
  if (checks & KJIT_CHECK_RACES) how |= KJ_WATCH_RACES;
  return how;
}

static void fail_if(kl_lowering *l, LLVMValueRef condition, kj_failure_kind kind,
                    kj_location location, LLVMValueRef first, LLVMValueRef second)
{
  kl_failure failure = { .kind = kind,
                         .location = location,
                         .count = 2,
                         .types = { KJIT_I64, KJIT_I64 },
                         .values = { first, second } };
  kl_fail_if(l, condition, &failure);
}

/* Monitors an access to the bytes at `at`, which are part of the element at `pointer`. */
static void watch_bytes(kl_lowering *l, kj_location location, const kl_array_value *array,
                        LLVMValueRef pointer, LLVMValueRef at, uint32_t bytes, uint32_t how)
{
  LLVMTypeRef types[] = { l->pointer, l->i64, l->i64, l->i32, l->i32 },
              type = LLVMFunctionType(l->i64, types, 5, false);
  uint32_t size = kl_scalar_bytes(l, kl_type_info(l, array->type)->element);
  LLVMValueRef args[] = { find_watch(l), distance(l, at, kl_cpu(l)->scratch), kl_const64(l, bytes),
                          kl_const32(l, how), l->target->position(l, KJ_BUILTIN_THREAD_RANK, 0) };
  LLVMValueRef found = kl_call(l, type, declare(l, KJ_WATCH_ACCESS_FUNCTION, type), args, 5);
  LLVMValueRef kind = kl_and(l, found, kl_const64(l, (1 << KJ_WATCH_RESULT_BITS) - 1));
  LLVMValueRef element =
    kl_sdiv(l, distance(l, pointer, array->pointer), kl_const64(l, size ? size : 1));
  bool checks_reads = (how & KJ_WATCH_READ) && (how & KJ_WATCH_UNINITIALIZED),
       checks_races = (how & KJ_WATCH_RACES) && !(how & KJ_WATCH_LOCAL);
  if (checks_reads)
    fail_if(l, kl_icmp(l, LLVMIntEQ, kind, kl_const64(l, KJ_WATCH_UNWRITTEN)),
            KJ_FAILURE_UNINITIALIZED, location, element, element);
  if (checks_races)
    fail_if(l, kl_icmp(l, LLVMIntUGT, kind, kl_const64(l, KJ_WATCH_UNWRITTEN)), KJ_FAILURE_RACE,
            location, element,
            kl_or(l, found, kl_const64(l, how & KJ_WATCH_WRITE ? (int64_t)1 << 32 : 0)));
}

/* Monitors the access to each component of an element separately, because the access does not
 * include the padding between the fields in a struct. */
static void watch_parts(kl_lowering *l, kj_location location, const kl_array_value *array,
                        LLVMValueRef pointer, kjit_type type, uint32_t offset, uint32_t how)
{
  const ki_type_info *info = kl_type_info(l, type);
  bool has_gaps =
    info->class_ == KJ_CLASS_STRUCT ||
    (info->class_ == KJ_CLASS_ARRAY && kl_type_info(l, info->element)->class_ == KJ_CLASS_STRUCT);
  if (!has_gaps) {
    watch_bytes(l, location, array, pointer, kl_byte_pointer(l, pointer, offset),
                kl_scalar_bytes(l, type), how);
    return;
  }
  uint32_t count = kl_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = kl_get_part_info(l, type, i);
    watch_parts(l, location, array, pointer, part.type, offset + part.offset_bytes, how);
  }
}

void kl_watch_access_at(kl_lowering *l, kj_location location, const kl_array_value *array,
                        LLVMValueRef pointer, uint32_t how)
{
  KJ_ASSERT(kl_is_watched(l));
  watch_parts(l, location, array, pointer, kl_type_info(l, array->type)->element, 0,
              describe(l, array, how));
}

/* ---- the parameter ---- */

void kl_plan_failures(kl_lowering *l)
{
  if (!kl_has_record(l)) return;
  kj_parameter record = { .kind = KJ_PARAMETER_FAILURE, .argument = UINT16_MAX, .size_bytes = 8 };
  l->c->code->failure_offset = kl_add_parameter(l, record, KJIT_VOID, 8);
}

/* ---- the function that writes the record ---- */

enum {
  WRITER_RECORD,
  WRITER_SITE,
  WRITER_BLOCK,
  WRITER_THREAD = WRITER_BLOCK + 3,
  WRITER_VALUES = WRITER_THREAD + 3,
  WRITER_COUNT = WRITER_VALUES + 2
};

static LLVMValueRef field_at(kl_lowering *l, LLVMValueRef record, size_t offset)
{
  LLVMValueRef at = kl_const64(l, (int64_t)offset);
  return kl_inbounds_gep(l, l->i8, record, &at, 1);
}

/* Adds the thread's position. The code reads the position only when a check fails, because failures
 * are rare. */
static void add_position(kl_lowering *l, LLVMValueRef *args)
{
  const kl_lower_target *target = l->target;
  LLVMValueRef (*read)(kl_lowering *, ki_builtin_id, uint32_t) =
    target->failing_position ? target->failing_position : target->position;
  for (unsigned d = 0; d < 3; d++) {
    args[WRITER_BLOCK + d] = read(l, KJ_BUILTIN_BLOCK_IDX, d);
    args[WRITER_THREAD + d] = read(l, KJ_BUILTIN_THREAD_IDX, d);
    /* on the CPU outside of thread loops, a failure belongs to the whole block */
    if (!args[WRITER_THREAD + d]) args[WRITER_THREAD + d] = kl_const32(l, KJ_NO_THREAD);
  }
}

static void write_fields(kl_lowering *l, LLVMValueRef const *args)
{
  LLVMValueRef record = args[WRITER_RECORD];
  kl_store(l, args[WRITER_SITE], field_at(l, record, offsetof(kj_failure_record, site)));
  for (unsigned d = 0; d < 3; d++) {
    kl_store(l, args[WRITER_BLOCK + d],
             field_at(l, record, offsetof(kj_failure_record, block) + d * sizeof(uint32_t)));
    kl_store(l, args[WRITER_THREAD + d],
             field_at(l, record, offsetof(kj_failure_record, thread) + d * sizeof(uint32_t)));
  }
  for (unsigned i = 0; i < 2; i++)
    kl_store(l, args[WRITER_VALUES + i],
             field_at(l, record, offsetof(kj_failure_record, values) + i * sizeof(uint64_t)));
  /* The state is stored last, with release order, because the application can read the record while
   * the kernel runs, and it reads the state before the other fields. */
  LLVMValueRef store = kl_store(l, kl_const32(l, KJ_FAILURE_WRITTEN),
                                field_at(l, record, offsetof(kj_failure_record, state)));
  LLVMSetOrdering(store, LLVMAtomicOrderingRelease);
  LLVMSetAlignment(store, 4);
}

/* Writes the failure record and moves the builder to the basic block after the write. If args has
 * no position, writes the position of the current thread. */
static void write_record(kl_lowering *l, LLVMValueRef *args)
{
  LLVMValueRef function = LLVMGetBasicBlockParent(kl_here(l));
  LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(l->context, function, "first"),
                    end = LLVMAppendBasicBlockInContext(l->context, function, "end");
  LLVMAtomicOrdering relaxed = LLVMAtomicOrderingMonotonic;
  LLVMValueRef state = field_at(l, args[WRITER_RECORD], offsetof(kj_failure_record, state));
  LLVMValueRef pair =
    LLVMBuildAtomicCmpXchgSyncScope(kl_next(l), state, kl_const32(l, KJ_FAILURE_FREE),
                                    kl_const32(l, KJ_FAILURE_TAKEN), relaxed, relaxed,
                                    kl_sync_scope(l, KJ_SCOPE_DEVICE));
  kl_go_on_if(l, kl_extract_value(l, pair, 1), first, end);
  if (!args[WRITER_BLOCK]) add_position(l, args);
  write_fields(l, args);
  kl_go_on_in(l, end);
}

static void fill_writer(kl_lowering *l, LLVMValueRef writer)
{
  LLVMBasicBlockRef here = kl_here(l);
  LLVMValueRef args[WRITER_COUNT];
  for (unsigned i = 0; i < WRITER_COUNT; i++) args[i] = LLVMGetParam(writer, i);
  kl_move_to(l, LLVMAppendBasicBlockInContext(l->context, writer, "entry"));
  write_record(l, args);
  LLVMBuildRetVoid(kl_next(l));
  kl_move_to(l, here);
}

static LLVMValueRef get_writer(kl_lowering *l)
{
  if (l->failure_writer) return l->failure_writer;
  LLVMTypeRef params[WRITER_COUNT];
  params[WRITER_RECORD] = l->pointer;
  for (int i = WRITER_SITE; i < WRITER_VALUES; i++) params[i] = l->i32;
  for (int i = WRITER_VALUES; i < WRITER_COUNT; i++) params[i] = l->i64;
  l->failure_writer = kl_add_function(l, "kjit_write_failure",
                                      LLVMFunctionType(l->void_, params, WRITER_COUNT, false));
  LLVMSetLinkage(l->failure_writer, LLVMInternalLinkage);
  static const char *const attributes[] = { "nounwind", "noinline", "cold" };
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    kl_add_attribute(l, l->failure_writer, (unsigned)LLVMAttributeFunctionIndex, attributes[i], 0);
  fill_writer(l, l->failure_writer);
  return l->failure_writer;
}

/* ---- failure sites ---- */

static void describe_site(kl_lowering *l, const kl_failure *failure)
{
  kj_failure_site site;
  /* initializes the padding as well, because the disk cache stores all bytes in the struct */
  memset(&site, 0, sizeof site);
  site.kind = failure->kind;
  site.location = failure->location;
  for (unsigned i = 0; i < failure->count; i++) {
    bool is_float = kl_is_float_type(l, failure->types[i]),
         is_signed = !is_float && kl_is_signed_type(l, failure->types[i]);
    site.formats[i] = is_float ? 'f' : is_signed ? 'i' : 'u';
  }
  site.text_offset = (uint32_t)l->failure_texts.length;
  if (failure->message) kj_append_text(&l->failure_texts, failure->message);
  site.text_bytes = (uint32_t)(l->failure_texts.length - site.text_offset);
  kj_append(&l->failures, (const char *)&site, sizeof site);
}

/* Converts a value to 64 bits, which libkjit prints according to a format letter. */
static LLVMValueRef widen(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (!kl_is_float_type(l, type))
    return kl_build_convert(l, type, kl_is_signed_type(l, type) ? KJIT_I64 : KJIT_U64, value);
  return kl_bitcast(l, kl_build_convert(l, type, KJIT_F64, value), l->i64);
}

static void call_writer(kl_lowering *l, LLVMValueRef site, LLVMValueRef const *values,
                        bool leaves_launch)
{
  LLVMValueRef args[WRITER_COUNT] = { l->failure_record, site }, writer = get_writer(l);
  add_position(l, args);
  for (unsigned i = 0; i < 2; i++) args[WRITER_VALUES + i] = values[i];
  kl_call(l, LLVMGlobalGetValueType(writer), writer, args, WRITER_COUNT);
  if (leaves_launch && l->target->leave_interrupted) l->target->leave_interrupted(l);
  else l->target->leave_kernel(l);
}

/* CPU: returns the values that the failure code uses. Failure sites can share code only if these
 * values are the same. */
static struct kl_failing find_failing(kl_lowering *l)
{
  struct kl_failing found = { 0 };
  if (l->target->shares_failures) return found;
  LLVMValueRef args[WRITER_COUNT];
  const kl_frame *outer = l->frame;
  while (outer->caller) outer = outer->caller;
  add_position(l, args);
  memcpy(found.position, args + WRITER_BLOCK, sizeof found.position);
  found.leave = outer->leave;
  found.rank = kl_cpu(l)->rank;
  found.context = kl_cpu(l)->context;
  found.record = l->failure_record;
  return found;
}

/* Maximum number of sites that branch to one block. LLVM compares the values from each predecessor
 * with those from every other predecessor, which takes quadratic time. */
enum { MOST_PLACES = 256 };

/* Begins the failure block that several failure sites share. On a GPU this is a basic block instead
 * of a function, because a call would force the kernel's registers into the calling convention. */
static void begin_shared_failure(kl_lowering *l)
{
  struct kl_failing failing = find_failing(l);
  if (l->failure_function == l->function && !memcmp(&failing, &l->failing, sizeof failing) &&
      l->failure_places++ < MOST_PLACES)
    return;
  LLVMBasicBlockRef here = kl_here(l);
  l->failure_function = l->function;
  l->failing = failing;
  l->failure_places = 1;
  l->failure_block = kl_new_block(l, "failure");
  kl_move_to(l, l->failure_block);
  l->failure_site = LLVMBuildPhi(kl_next(l), l->i32, "site");
  for (unsigned i = 0; i < 2; i++) l->failure_values[i] = LLVMBuildPhi(kl_next(l), l->i64, "value");
  if (l->target->shares_failures) {
    LLVMValueRef args[WRITER_COUNT] = { l->failure_record, l->failure_site };
    for (unsigned i = 0; i < 2; i++) args[WRITER_VALUES + i] = l->failure_values[i];
    write_record(l, args);
    l->target->leave_kernel(l);
  } else call_writer(l, l->failure_site, l->failure_values, false);
  kl_move_to(l, here);
}

static void share_failure(kl_lowering *l, LLVMValueRef site, LLVMValueRef *values)
{
  begin_shared_failure(l);
  LLVMBasicBlockRef here = kl_here(l);
  kl_br(l, l->failure_block);
  LLVMAddIncoming(l->failure_site, &site, &here, 1);
  for (unsigned i = 0; i < 2; i++) LLVMAddIncoming(l->failure_values[i], &values[i], &here, 1);
}

/* Returns whether failure sites share one block. Failure code is cold, and a shared copy saves
 * compile time. A GPU has one copy for each function. The CPU has one copy if a kernel has more
 * than MOST_CALLS sites. With fewer sites, CPU code calls the failure function at each site, which
 * gives better hot code. With more sites, these calls would be slow to compile: register allocation
 * for the thread indices that they pass takes superlinear time. */
static bool is_shared(const kl_lowering *l)
{
  enum { MOST_CALLS = 32 };
  return !l->debug && (l->target->shares_failures || l->failure_count > MOST_CALLS);
}

void kl_build_failure(kl_lowering *l, const kl_failure *failure)
{
  KJ_ASSERT(failure->count <= 2);
  if (!l->failure_record) { /* there is no failure record to write */
    kl_intrinsic(l, "llvm.trap", NULL, 0, NULL, 0);
    LLVMBuildUnreachable(kl_next(l));
    return;
  }
  LLVMValueRef values[2], site = kl_const32(l, l->failure_count++);
  for (unsigned i = 0; i < 2; i++)
    values[i] =
      i < failure->count ? widen(l, failure->types[i], failure->values[i]) : kl_const64(l, 0);
  describe_site(l, failure);
  bool leaves_launch = failure->kind == KJ_FAILURE_INTERRUPTED || failure->kind == KJ_FAILURE_WAIT;
  if (is_shared(l) && !(leaves_launch && l->target->leave_interrupted))
    share_failure(l, site, values);
  else call_writer(l, site, values, leaves_launch);
}

void kl_set_likely(kl_lowering *l, LLVMValueRef branch, bool is_first)
{
  enum { UNLIKELY = 1, LIKELY = 1000000 };
  LLVMMetadataRef weights[] = { kl_metadata_string(l, "branch_weights"),
                                kl_metadata_int(l, is_first ? LIKELY : UNLIKELY),
                                kl_metadata_int(l, is_first ? UNLIKELY : LIKELY) };
  kl_set_metadata(l, branch, "prof", LLVMMDNodeInContext2(l->context, weights, 3));
}

kl_check kl_check_of(const kl_lowering *l, bool is_checked, bool is_left_out)
{
  KJ_ASSERT(!(is_checked && is_left_out));
  if (is_checked) return KJ_CHECK_MADE;
  return is_left_out && kl_asserts_facts(l) ? KJ_CHECK_ASSERTED : KJ_CHECK_NONE;
}

kl_check kl_check_of_expr(const kl_lowering *l, const kt_expr *expr)
{
  return kl_check_of(l, expr->is_checked, expr->is_left_out);
}

static void assert_passes(kl_lowering *l, LLVMValueRef fails, const kl_failure *failure)
{
  kl_assert_fact(l, kl_not(l, fails), widen(l, failure->types[0], failure->values[0]),
                 failure->kind == KJ_FAILURE_BOUNDS
                   ? "an index whose check was left out is in bounds"
                   : "the divisor of a value, whose check was left out, is not 0");
}

void kl_fail_if(kl_lowering *l, LLVMValueRef condition, const kl_failure *failure)
{
  if (failure->is_asserted) {
    assert_passes(l, condition, failure);
    return;
  }
  LLVMBasicBlockRef fails = kl_new_block(l, "fails"), passes = kl_new_block(l, "passes");
  kl_set_likely(l, kl_cond_br(l, condition, fails, passes), false);
  kl_move_to(l, fails);
  kl_build_failure(l, failure);
  kl_move_to(l, passes);
}

/* ---- raise and assert ---- */

void kl_lower_fail(kl_lowering *l, const kt_stmt *stmt)
{
  KJ_ASSERT(stmt->kind == KJ_TS_FAIL && stmt->indices.count <= 2);
  kl_failure failure = { .kind = stmt->failure,
                         .location = stmt->location,
                         .message = stmt->message,
                         .count = (unsigned)stmt->indices.count };
  for (unsigned i = 0; i < failure.count; i++) {
    failure.types[i] = stmt->indices.items[i]->type;
    failure.values[i] = kl_lower_expr(l, stmt->indices.items[i]);
  }
  kl_build_failure(l, &failure);
  /* the remaining statements of an inlined body are lowered, too, although they are unreachable */
  kl_move_to(l, kl_new_block(l, "never"));
}

/* ---- bounds ---- */

static kl_failure describe_index(const kl_lowering *l, const kt_expr *index, LLVMValueRef value,
                                 LLVMValueRef extent)
{
  kl_failure failure = {
    .kind = KJ_FAILURE_BOUNDS, .location = index->location, .count = 2, .values = { value, extent }
  };
  if (ki_wraps_indices(&l->frame->instance->function->attributes))
    failure.message = KJ_WRAPPED_INDEX;
  failure.types[0] = index->type == KJIT_U64 ? KJIT_U64 : KJIT_I64;
  failure.types[1] = KJIT_I64;
  return failure;
}

static LLVMValueRef is_outside(kl_lowering *l, LLVMValueRef value, LLVMValueRef extent)
{
  KJ_ASSERT(LLVMTypeOf(value) == LLVMTypeOf(extent));
  return kl_icmp(l, LLVMIntUGE, value, extent);
}

void kl_check_index(kl_lowering *l, kl_check check, const kt_expr *index, LLVMValueRef value,
                    LLVMValueRef extent)
{
  KJ_ASSERT(check != KJ_CHECK_NONE);
  kl_failure failure = describe_index(l, index, value, extent);
  failure.is_asserted = check == KJ_CHECK_ASSERTED;
  kl_fail_if(l, is_outside(l, value, extent), &failure);
}

/* Checks all indices of an access with a single branch. The failure code finds out which index is
 * out of bounds. */
static void check_together(kl_lowering *l, const kt_exprs *indices, LLVMValueRef const *values,
                           LLVMValueRef const *extents)
{
  KJ_ASSERT(indices->count > 1 && indices->count <= KJ_MAX_RANK);
  LLVMValueRef outside[KJ_MAX_RANK], any = NULL;
  for (size_t i = 0; i < indices->count; i++) {
    outside[i] = is_outside(l, values[i], extents[i]);
    any = any ? kl_or(l, any, outside[i]) : outside[i];
  }
  LLVMBasicBlockRef fails = kl_new_block(l, "fails"), passes = kl_new_block(l, "passes");
  kl_set_likely(l, kl_cond_br(l, any, fails, passes), false);
  kl_move_to(l, fails);
  for (size_t i = 0; i < indices->count; i++) {
    kl_failure failure = describe_index(l, indices->items[i], values[i], extents[i]);
    if (i + 1 < indices->count) kl_fail_if(l, outside[i], &failure);
    else kl_build_failure(l, &failure);
  }
  kl_move_to(l, passes);
}

void kl_check_indices(kl_lowering *l, kl_check check, const kt_exprs *indices,
                      LLVMValueRef const *values, LLVMValueRef const *extents)
{
  if (check == KJ_CHECK_MADE && indices->count > 1 && l->target->shares_failures)
    check_together(l, indices, values, extents);
  else
    for (size_t i = 0; i < indices->count; i++)
      kl_check_index(l, check, indices->items[i], values[i], extents[i]);
}

/* Checks the first and the last element of a slice that is not empty. */
void kl_check_slice(kl_lowering *l, const kl_checked_slice *slice)
{
  KJ_ASSERT(LLVMTypeOf(slice->first) == l->i64 && LLVMTypeOf(slice->count) == l->i64);
  LLVMValueRef last = kl_sub(l, slice->count, kl_const64(l, 1));
  if (slice->step) last = kl_mul(l, last, slice->step);
  last = kl_add(l, slice->first, last);
  LLVMValueRef is_first_out = kl_icmp(l, LLVMIntUGE, slice->first, slice->extent);
  LLVMValueRef is_out = kl_or(l, is_first_out, kl_icmp(l, LLVMIntUGE, last, slice->extent));
  LLVMValueRef has_any = kl_icmp(l, LLVMIntSGT, slice->count, kl_const64(l, 0));
  kl_failure failure = { .kind = KJ_FAILURE_BOUNDS,
                         .location = slice->location,
                         .count = 2,
                         .types = { KJIT_I64, KJIT_I64 } };
  failure.values[0] = kl_select(l, is_first_out, slice->first, last);
  failure.values[1] = slice->extent;
  kl_fail_if(l, kl_and(l, has_any, is_out), &failure);
}

/* ---- division ---- */

static LLVMValueRef is_zero(kl_lowering *l, kjit_type type, LLVMValueRef value)
{
  if (!kl_is_float_type(l, type))
    return kl_icmp(l, LLVMIntEQ, value, LLVMConstNull(LLVMTypeOf(value)));
  LLVMValueRef number = kl_to_compute(l, type, value);
  return kl_fcmp(l, LLVMRealOEQ, number, LLVMConstNull(LLVMTypeOf(number)));
}

/* Checks a complex divisor, which is zero if both of its parts are. The failure record contains
 * only the real part of the dividend. */
static void check_complex_divisor(kl_lowering *l, const kt_expr *expr, kjit_type type,
                                  LLVMValueRef x, LLVMValueRef y)
{
  KJ_ASSERT(kl_is_complex_type(l, type));
  kjit_type part = kl_part_of(l, type);
  LLVMValueRef is_real_zero = is_zero(l, part, kl_get_part(l, type, y, 0)),
               is_other_zero = is_zero(l, part, kl_get_part(l, type, y, 1));
  kl_failure failure = { .kind = KJ_FAILURE_DIVISION,
                         .location = expr->location,
                         .is_asserted = kl_check_of_expr(l, expr) == KJ_CHECK_ASSERTED,
                         .count = 1,
                         .types = { part },
                         .values = { kl_get_part(l, type, x, 0) } };
  kl_fail_if(l, kl_and(l, is_real_zero, is_other_zero), &failure);
}

void kl_check_divisor(kl_lowering *l, const kt_expr *expr, kjit_type type, LLVMValueRef x,
                      LLVMValueRef y)
{
  kl_check check = kl_check_of_expr(l, expr);
  if (check == KJ_CHECK_NONE) return;
  if (kl_is_complex_type(l, type)) {
    check_complex_divisor(l, expr, type, x, y);
    return;
  }
  for (uint32_t i = 0; kl_is_vector_type(l, type) && i < kl_part_count(l, type); i++)
    kl_check_divisor(l, expr, kl_part_of(l, type), kl_get_part(l, type, x, i),
                     kl_get_part(l, type, y, i));
  if (kl_is_vector_type(l, type)) return;
  kl_failure failure = { .kind = expr->step_of ? KJ_FAILURE_STEP : KJ_FAILURE_DIVISION,
                         .location = expr->location,
                         .message = expr->step_of == KT_STEP_OF_SLICE ? KJ_SLICE_STEP : NULL,
                         .is_asserted = check == KJ_CHECK_ASSERTED,
                         .count = 1,
                         .types = { type },
                         .values = { x } };
  LLVMValueRef zero_test = is_zero(l, type, y);
  if (check == KJ_CHECK_MADE && l->bad_divisor && kl_is_float_type(l, type))
    kl_note_bad_divisor(l, zero_test);
  else kl_fail_if(l, zero_test, &failure);
}
