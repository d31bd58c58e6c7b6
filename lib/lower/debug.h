/* Lines and variables for debuggers. These functions do nothing if the request does not ask for
 * debug information. */
#ifndef KJ_LOWER_DEBUG_H
#define KJ_LOWER_DEBUG_H

#include "lower/lower.h"

void kl_begin_debug(kl_lowering *l);  /* call it before any lowering */
void kl_finish_debug(kl_lowering *l); /* call it after all lowering */
void kl_end_debug(kl_lowering *l);    /* frees the state; call it after a failure as well */
/* kl_begin_body calls it when l->function is the function of l->frame */
void kl_begin_debug_function(kl_lowering *l);
/* Begin and end a call from l->frame that is inlined as a tree into frame. The result of the first
 * is the argument of the second. */
LLVMMetadataRef kl_begin_debug_inline(kl_lowering *l, kl_frame *frame, kj_location call);
void kl_end_debug_inline(kl_lowering *l, LLVMMetadataRef before);
/* the following instructions belong to this location */
void kl_debug_statement(kl_lowering *l, kj_location location);
typedef struct kl_debug_block {
  LLVMMetadataRef scope, place;
} kl_debug_block;
kl_debug_block kl_begin_debug_block(kl_lowering *l, const kt_stmts *stmts);
void kl_end_debug_block(kl_lowering *l, const kl_debug_block *block);
bool kl_shows_variables(const kl_lowering *l);
/* Report events of a variable of l->frame: its memory was allocated; it has a new value; it was
 * bound to an array; the memory of a shared, local or constant array was allocated. */
void kl_debug_alloca(kl_lowering *l, const kt_var *var, LLVMValueRef memory, LLVMTypeRef type);
void kl_debug_value(kl_lowering *l, const kt_var *var, LLVMValueRef value);
void kl_debug_array(kl_lowering *l, const kt_var *var, const kl_array_value *array);
void kl_debug_storage(kl_lowering *l, const kt_var *var, LLVMValueRef pointer);
void kl_debug_parameters(kl_lowering *l); /* all parameters of l->frame are bound */
/* another thread's iteration starts, which has its own slots */
void kl_debug_thread(kl_lowering *l);
/* Describes threadIdx or a similar position as a variable of the kernel. *shadow is created once.
 * values are i32 or i64. */
void kl_debug_position(kl_lowering *l, const char *name, LLVMValueRef *shadow,
                       LLVMValueRef const *values);

#endif
