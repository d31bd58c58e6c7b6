/* CPU: accesses of shared and local memory that are looked at (native/watch.h). A call before each
 * access says whether it may be done; a thread that may not fails there. */
#include "native/watch.h"

#include "lower/cpu.h"

static LLVMValueRef declare(kj_lowering *l, const char *name, LLVMTypeRef type)
{
  LLVMValueRef function = LLVMGetNamedFunction(l->module, name);
  if (function) return function;
  function = LLVMAddFunction(l->module, name, type);
  kj_add_attribute(l, function, (unsigned)LLVMAttributeFunctionIndex, "nounwind", 0);
  return function;
}

/* Bytes of the block's memory. */
static LLVMValueRef size_of_memory(kj_lowering *l)
{
  return LLVMBuildAdd(l->builder, kj_const64(l, (int64_t)kj_cpu(l)->scratch_bytes),
                      l->target->dynamic_shared_bytes(l), "");
}

/* Behind the block's memory, on a cache line: runtime/dispatch/launch.c makes room for it there. */
static LLVMValueRef find_watch(kj_lowering *l)
{
  enum { LINE = 64 };
  LLVMBuilderRef b = l->builder;
  LLVMValueRef end = LLVMBuildAdd(b, size_of_memory(l), kj_const64(l, LINE - 1), "");
  LLVMValueRef offset = LLVMBuildAnd(b, end, kj_const64(l, -LINE), "");
  return LLVMBuildInBoundsGEP2(b, l->i8, kj_cpu(l)->scratch, &offset, 1, "");
}

bool kj_is_watched(const kj_lowering *l) { return l->c->has_watched; }

static void call_with_watch(kj_lowering *l, const char *name)
{
  LLVMTypeRef type = LLVMFunctionType(l->void_, &l->pointer, 1, false);
  LLVMValueRef watch = find_watch(l);
  LLVMBuildCall2(l->builder, type, declare(l, name, type), &watch, 1, "");
}

void kj_watch_start_of_block(kj_lowering *l)
{
  if (!kj_is_watched(l)) return;
  LLVMTypeRef types[] = { l->pointer, l->i64 }, type = LLVMFunctionType(l->void_, types, 2, false);
  LLVMBuildCall2(l->builder, type, declare(l, KJ_WATCH_BLOCK_FUNCTION, type),
                 (LLVMValueRef[]){ find_watch(l), size_of_memory(l) }, 2, "");
}

void kj_watch_synchronization(kj_lowering *l, bool is_of_warps)
{
  if (kj_is_watched(l))
    call_with_watch(l, is_of_warps ? KJ_WATCH_WARPS_FUNCTION : KJ_WATCH_BARRIER_FUNCTION);
}

/* ---- accesses ---- */

static LLVMValueRef distance(kj_lowering *l, LLVMValueRef to, LLVMValueRef from)
{
  LLVMBuilderRef b = l->builder;
  return LLVMBuildSub(b, LLVMBuildPtrToInt(b, to, l->i64, ""),
                      LLVMBuildPtrToInt(b, from, l->i64, ""), "");
}

static uint32_t describe(kj_lowering *l, const kj_array_value *array, uint32_t how)
{
  uint32_t checks = l->c->request->checks;
  if (kj_type(l->c->types, array->type)->space == KJ_SPACE_LOCAL) how |= KJ_WATCH_LOCAL;
  if (checks & KJIT_CHECK_UNINITIALIZED) how |= KJ_WATCH_UNINITIALIZED;
  if (checks & KJIT_CHECK_RACES) how |= KJ_WATCH_RACES;
  return how;
}

static void fail_if(kj_lowering *l, LLVMValueRef condition, kj_failure_kind kind,
                    kj_location location, LLVMValueRef first, LLVMValueRef second)
{
  kj_failure failure = { .kind = kind,
                         .location = location,
                         .count = 2,
                         .types = { KJIT_I64, KJIT_I64 },
                         .values = { first, second } };
  kj_fail_if(l, condition, &failure);
}

/* pointer: to the element that the bytes at `at` are part of. */
static void watch_bytes(kj_lowering *l, kj_location location, const kj_array_value *array,
                        LLVMValueRef pointer, LLVMValueRef at, uint32_t bytes, uint32_t how)
{
  LLVMBuilderRef b = l->builder;
  LLVMTypeRef types[] = { l->pointer, l->i64, l->i64, l->i32, l->i32 },
              type = LLVMFunctionType(l->i64, types, 5, false);
  uint32_t size = kj_scalar_bytes(l, kj_type(l->c->types, array->type)->element);
  LLVMValueRef args[] = { find_watch(l), distance(l, at, kj_cpu(l)->scratch), kj_const64(l, bytes),
                          kj_const32(l, how), l->target->position(l, KJ_BUILTIN_THREAD_RANK, 0) };
  LLVMValueRef found =
    LLVMBuildCall2(b, type, declare(l, KJ_WATCH_ACCESS_FUNCTION, type), args, 5, "");
  LLVMValueRef kind = LLVMBuildAnd(b, found, kj_const64(l, (1 << KJ_WATCH_RESULT_BITS) - 1), "");
  LLVMValueRef element =
    LLVMBuildSDiv(b, distance(l, pointer, array->pointer), kj_const64(l, size ? size : 1), "");
  bool checks_reads = (how & KJ_WATCH_READ) && (how & KJ_WATCH_UNINITIALIZED),
       checks_races = (how & KJ_WATCH_RACES) && !(how & KJ_WATCH_LOCAL);
  if (checks_reads)
    fail_if(l, LLVMBuildICmp(b, LLVMIntEQ, kind, kj_const64(l, KJ_WATCH_UNWRITTEN), ""),
            KJ_FAILURE_UNINITIALIZED, location, element, element);
  if (checks_races)
    fail_if(l, LLVMBuildICmp(b, LLVMIntUGT, kind, kj_const64(l, KJ_WATCH_UNWRITTEN), ""),
            KJ_FAILURE_RACE, location, element,
            LLVMBuildOr(b, found, kj_const64(l, how & KJ_WATCH_WRITE ? (int64_t)1 << 32 : 0), ""));
}

/* What lies between the fields of a struct is nobody's. */
static void watch_parts(kj_lowering *l, kj_location location, const kj_array_value *array,
                        LLVMValueRef pointer, kjit_type type, uint32_t offset, uint32_t how)
{
  const kj_type_info *info = kj_type(l->c->types, type);
  bool has_gaps = info->class_ == KJ_CLASS_STRUCT ||
                  (info->class_ == KJ_CLASS_ARRAY &&
                   kj_type(l->c->types, info->element)->class_ == KJ_CLASS_STRUCT);
  if (!has_gaps) {
    watch_bytes(l, location, array, pointer, kj_byte_pointer(l, pointer, offset),
                kj_scalar_bytes(l, type), how);
    return;
  }
  uint32_t count = kj_part_count(l, type);
  for (uint32_t i = 0; i < count; i++) {
    kj_component part = kj_get_part_info(l, type, i);
    watch_parts(l, location, array, pointer, part.type, offset + part.offset_bytes, how);
  }
}

void kj_watch_access_at(kj_lowering *l, kj_location location, const kj_array_value *array,
                        LLVMValueRef pointer, uint32_t how)
{
  watch_parts(l, location, array, pointer, kj_type(l->c->types, array->type)->element, 0,
              describe(l, array, how));
}
