/* Source lines and variables for debuggers. If the request does not ask for debug information,
 * these functions do nothing. */
#ifndef KJ_LOWER_DEBUG_H
#define KJ_LOWER_DEBUG_H

#include "lower/lower.h"

void kl_begin_debug(kl_lowering *l);  /* must be called before any lowering */
void kl_finish_debug(kl_lowering *l); /* must be called after all lowering */
void kl_end_debug(kl_lowering *l);    /* frees the state; must also be called after an error */
/* called by kl_begin_body if l->function is the function of l->frame */
void kl_begin_debug_function(kl_lowering *l);
/* kl_begin_debug_inline is called before a call from l->frame is inlined into `frame`.
 * kl_end_debug_inline is called after it, with the result of the first call. */
LLVMMetadataRef kl_begin_debug_inline(kl_lowering *l, kl_frame *frame, kj_location call);
void kl_end_debug_inline(kl_lowering *l, LLVMMetadataRef before);
/* sets the location of the following instructions */
void kl_debug_statement(kl_lowering *l, kj_location location);
typedef struct kl_debug_block {
  LLVMMetadataRef scope, place;
} kl_debug_block;
kl_debug_block kl_begin_debug_block(kl_lowering *l, const kt_stmts *stmts);
void kl_end_debug_block(kl_lowering *l, const kl_debug_block *block);
bool kl_shows_variables(const kl_lowering *l);
/* Report an event of a variable of l->frame: it has got memory, it has got a new value, or it has
 * been bound to an array. kl_debug_storage reports that a shared, local or constant array has got
 * memory. */
void kl_debug_alloca(kl_lowering *l, const kt_var *var, LLVMValueRef memory, LLVMTypeRef type);
void kl_debug_value(kl_lowering *l, const kt_var *var, LLVMValueRef value);
void kl_debug_array(kl_lowering *l, const kt_var *var, const kl_array_value *array);
void kl_debug_storage(kl_lowering *l, const kt_var *var, LLVMValueRef pointer);
void kl_debug_parameters(kl_lowering *l); /* called when all parameters of l->frame are bound */
/* called when another thread's iteration starts, because each thread has its own slots */
void kl_debug_thread(kl_lowering *l);
/* Describes threadIdx or a similar position as a variable of the kernel. *shadow is created at the
 * first call. values are i32 or i64. */
void kl_debug_position(kl_lowering *l, const char *name, LLVMValueRef *shadow,
                       LLVMValueRef const *values);

#endif
