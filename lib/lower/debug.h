/* Lines and variables for debuggers. These functions do nothing if the request does not ask for
 * debug information. */
#ifndef KJ_LOWER_DEBUG_H
#define KJ_LOWER_DEBUG_H

#include "lower/lower.h"

void kl_begin_debug(kl_lowering *l);  /* before anything is lowered */
void kl_finish_debug(kl_lowering *l); /* after everything was */
void kl_end_debug(kl_lowering *l);    /* frees the state, after a failure too */
/* by kl_begin_body: l->function is that of l->frame */
void kl_begin_debug_function(kl_lowering *l);
/* A call that is inlined as a tree, from l->frame into frame; the result goes to
 * kl_end_debug_inline. */
LLVMMetadataRef kl_begin_debug_inline(kl_lowering *l, kl_frame *frame, kj_location call);
void kl_end_debug_inline(kl_lowering *l, LLVMMetadataRef before);
/* instructions from here on belong to it */
void kl_debug_statement(kl_lowering *l, kj_location location);
typedef struct kl_debug_block {
  LLVMMetadataRef scope, place;
} kl_debug_block;
kl_debug_block kl_begin_debug_block(kl_lowering *l, const kt_stmts *stmts);
void kl_end_debug_block(kl_lowering *l, const kl_debug_block *block);
bool kl_shows_variables(const kl_lowering *l);
/* A variable of l->frame: its memory was made; it has a new value; it was bound to an array; the
 * memory of a shared, local or constant array. */
void kl_debug_alloca(kl_lowering *l, const kt_var *var, LLVMValueRef memory, LLVMTypeRef type);
void kl_debug_value(kl_lowering *l, const kt_var *var, LLVMValueRef value);
void kl_debug_array(kl_lowering *l, const kt_var *var, const kl_array_value *array);
void kl_debug_storage(kl_lowering *l, const kt_var *var, LLVMValueRef pointer);
void kl_debug_parameters(kl_lowering *l); /* all of l->frame are bound */
void kl_debug_thread(kl_lowering *l);     /* the part of another thread starts: slots are its own */
/* threadIdx and its like, as a variable of the kernel; *shadow is made once. values: i32 or i64 */
void kl_debug_position(kl_lowering *l, const char *name, LLVMValueRef *shadow,
                       LLVMValueRef const *values);

#endif
