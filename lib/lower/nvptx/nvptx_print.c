/* nvptx: print. Lines are written to the device's ring buffer (kn_print_ring). libkjit stores the
 * address of the ring buffer in a variable of the module. */
#include <string.h>

#include "lower/instruction.h"
#include "lower/nvptx/lower_nvptx.h"
#include "native/support_routines.h"

enum { PARAM_HEADER, PARAM_COUNT, PARAM_WORDS };

static const unsigned function_index = (unsigned)LLVMAttributeFunctionIndex;

static LLVMValueRef at_offset(kl_lowering *l, LLVMValueRef base, size_t offset)
{
  LLVMValueRef at = kl_const64(l, (int64_t)offset);
  return kl_inbounds_gep(l, l->i8, base, &at, 1);
}

static LLVMValueRef load_word(kl_lowering *l, LLVMValueRef base, size_t offset)
{
  return kl_load(l, l->i64, at_offset(l, base, offset));
}

/* Returns the variable of the module that holds the address of the ring buffer. The variable is
 * externally initialized, because libkjit writes it and the module does not. */
static LLVMValueRef port_of(kl_lowering *l)
{
  LLVMValueRef known = LLVMGetNamedGlobal(l->module, KJ_PRINT_PORT);
  if (known) return known;
  LLVMTypeRef type = LLVMArrayType2(l->i64, sizeof(kn_print_port) / sizeof(uint64_t));
  LLVMValueRef port =
    LLVMAddGlobalInAddressSpace(l->module, type, KJ_PRINT_PORT, l->target->global_space);
  LLVMSetInitializer(port, LLVMConstNull(type));
  LLVMSetExternallyInitialized(port, true);
  LLVMSetAlignment(port, 8);
  return port;
}

static void set_atomic(LLVMValueRef access, LLVMAtomicOrdering ordering)
{
  LLVMSetOrdering(access, ordering);
  LLVMSetAlignment(access, 8);
}

static LLVMValueRef place_of(kl_lowering *l, LLVMValueRef ring, LLVMValueRef mask,
                             LLVMValueRef number)
{
  LLVMValueRef index = kl_and(l, number, mask);
  return kl_inbounds_gep(l, l->i64, at_offset(l, ring, offsetof(kn_print_ring, words)), &index, 1);
}

/* Reserves the words in a line in the ring buffer and returns their position. Branches to `full` if
 * there is no space. Leaves the builder in the block `taken`. */
static LLVMValueRef take_place(kl_lowering *l, LLVMValueRef ring, LLVMValueRef mask,
                               LLVMValueRef needed, LLVMBasicBlockRef full, LLVMBasicBlockRef taken)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef function = LLVMGetBasicBlockParent(taken);
  LLVMBasicBlockRef try = LLVMAppendBasicBlockInContext(l->context, function, "try"),
                    fits = LLVMAppendBasicBlockInContext(l->context, function, "fits");
  LLVMValueRef next = kl_inttoptr(l, load_word(l, ring, offsetof(kn_print_ring, next)), l->pointer);
  LLVMValueRef first = kl_load(l, l->i64, next);
  set_atomic(first, LLVMAtomicOrderingMonotonic);
  LLVMBasicBlockRef before = kl_here(l);
  kl_go_on_in(l, try);
  LLVMValueRef place = LLVMBuildPhi(b, l->i64, "place");
  LLVMValueRef read = load_word(l, ring, offsetof(kn_print_ring, read));
  set_atomic(read, LLVMAtomicOrderingAcquire);
  LLVMValueRef used = kl_sub(l, kl_add(l, place, needed), read);
  kl_cond_br(l, kl_icmp(l, LLVMIntUGT, kl_sub(l, used, kl_const64(l, 1)), mask), full, fits);
  kl_move_to(l, fits);
  unsigned scope = kl_sync_scope(l, KJ_SCOPE_DEVICE);
  LLVMAtomicOrdering relaxed = LLVMAtomicOrderingMonotonic;
  LLVMValueRef pair = LLVMBuildAtomicCmpXchgSyncScope(b, next, place, kl_add(l, place, needed),
                                                      relaxed, relaxed, scope);
  LLVMValueRef found = kl_extract_value(l, pair, 0);
  kl_cond_br(l, kl_extract_value(l, pair, 1), taken, try);
  LLVMAddIncoming(place, (LLVMValueRef[]){ first, found }, (LLVMBasicBlockRef[]){ before, fits },
                  2);
  kl_move_to(l, taken);
  return place;
}

static void copy_words(kl_lowering *l, LLVMValueRef function, LLVMValueRef ring, LLVMValueRef mask,
                       LLVMValueRef place, LLVMBasicBlockRef done)
{
  LLVMBuilderRef b = l->builder;
  LLVMValueRef zero = kl_const64(l, 0), one = kl_const64(l, 1),
               count = LLVMGetParam(function, PARAM_COUNT);
  LLVMBasicBlockRef before = kl_here(l),
                    head = LLVMAppendBasicBlockInContext(l->context, function, "head");
  LLVMBasicBlockRef copy = LLVMAppendBasicBlockInContext(l->context, function, "copy");
  kl_go_on_in(l, head);
  LLVMValueRef i = LLVMBuildPhi(b, l->i64, "i");
  kl_go_on_if(l, kl_icmp(l, LLVMIntULT, i, count), copy, done);
  LLVMValueRef word =
    kl_load(l, l->i64, kl_inbounds_gep(l, l->i64, LLVMGetParam(function, PARAM_WORDS), &i, 1));
  LLVMValueRef more = kl_add(l, i, one);
  kl_store(l, word, place_of(l, ring, mask, kl_add(l, place, more)));
  kl_br(l, head);
  LLVMAddIncoming(i, (LLVMValueRef[]){ zero, more }, (LLVMBasicBlockRef[]){ before, copy }, 2);
}

static void fill_function(kl_lowering *l, LLVMValueRef function)
{
  LLVMBuilderRef b = l->builder;
  LLVMBasicBlockRef here = kl_here(l);
  static const char *const names[] = { "entry", "open", "full", "taken", "written", "end" };
  enum { ENTRY, OPEN, FULL, TAKEN, WRITTEN, END, COUNT };
  LLVMBasicBlockRef blocks[COUNT];
  for (int i = 0; i < COUNT; i++)
    blocks[i] = LLVMAppendBasicBlockInContext(l->context, function, names[i]);
  kl_move_to(l, blocks[ENTRY]);
  LLVMValueRef port = port_of(l), address = load_word(l, port, offsetof(kn_print_port, ring)),
               source = load_word(l, port, offsetof(kn_print_port, source));
  kl_cond_br(l, kl_icmp(l, LLVMIntNE, address, kl_const64(l, 0)), blocks[OPEN], blocks[END]);

  kl_move_to(l, blocks[OPEN]);
  LLVMValueRef ring = kl_inttoptr(l, address, l->pointer),
               mask = load_word(l, ring, offsetof(kn_print_ring, mask));
  LLVMValueRef needed = kl_add(l, LLVMGetParam(function, PARAM_COUNT), kl_const64(l, 1));
  LLVMValueRef place = take_place(l, ring, mask, needed, blocks[FULL], blocks[TAKEN]);
  copy_words(l, function, ring, mask, place, blocks[WRITTEN]);

  kl_move_to(l, blocks[WRITTEN]);
  LLVMValueRef header = kl_or(l, LLVMGetParam(function, PARAM_HEADER), source);
  set_atomic(kl_store(l, header, place_of(l, ring, mask, place)), LLVMAtomicOrderingRelease);
  kl_br(l, blocks[END]);

  kl_move_to(l, blocks[FULL]);
  unsigned scope = kl_sync_scope(l, KJ_SCOPE_DEVICE);
  LLVMBuildAtomicRMWSyncScope(b, LLVMAtomicRMWBinOpAdd,
                              at_offset(l, ring, offsetof(kn_print_ring, lost)), kl_const64(l, 1),
                              LLVMAtomicOrderingMonotonic, scope);
  kl_br(l, blocks[END]);

  kl_move_to(l, blocks[END]);
  LLVMBuildRetVoid(b);
  kl_move_to(l, here);
}

static LLVMValueRef get_function(kl_lowering *l)
{
  if (l->print_function) return l->print_function;
  LLVMTypeRef params[] = { l->i64, l->i64, l->pointer };
  l->print_function =
    kl_add_function(l, "kjit_print_line", LLVMFunctionType(l->void_, params, 3, false));
  LLVMSetLinkage(l->print_function, LLVMInternalLinkage);
  static const char *const attributes[] = { "nounwind", "noinline", "cold" };
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    kl_add_attribute(l, l->print_function, function_index, attributes[i], 0);
  fill_function(l, l->print_function);
  return l->print_function;
}

void kl_nvptx_print(kl_lowering *l, uint64_t header, uint32_t count, LLVMValueRef words)
{
  KJ_ASSERT(count <= KJ_MOST_PRINT_WORDS);
  LLVMValueRef function = get_function(l);
  LLVMValueRef args[] = { kl_const64(l, (int64_t)header), kl_const64(l, count), words };
  kl_call(l, LLVMGlobalGetValueType(function), function, args, 3);
}
