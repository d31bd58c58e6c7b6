/* Lines and variables for debuggers: all of it does nothing where the request asks for none. */
#ifndef KJ_LOWER_DEBUG_H
#define KJ_LOWER_DEBUG_H

#include "lower/lower.h"

void kj_begin_debug(kj_lowering *l);  /* before anything is lowered */
void kj_finish_debug(kj_lowering *l); /* after everything was */
void kj_end_debug(kj_lowering *l);    /* frees the state, after a failure too */
/* by kj_begin_body: l->function is that of l->frame */
void kj_begin_debug_function(kj_lowering *l);
/* A call that is inlined as a tree, from l->frame into frame; the result goes to
 * kj_end_debug_inline. */
LLVMMetadataRef kj_begin_debug_inline(kj_lowering *l, kj_frame *frame, kj_location call);
void kj_end_debug_inline(kj_lowering *l, LLVMMetadataRef before);
/* instructions from here on belong to it */
void kj_debug_statement(kj_lowering *l, kj_location location);
typedef struct kj_debug_block {
  LLVMMetadataRef scope, place;
} kj_debug_block;
kj_debug_block kj_begin_debug_block(kj_lowering *l, const kj_tstmts *stmts);
void kj_end_debug_block(kj_lowering *l, const kj_debug_block *block);
bool kj_shows_variables(const kj_lowering *l);
/* A variable of l->frame: its slot was made; it has a new value; it was bound to an array; the
 * memory of a shared, local or constant array. */
void kj_debug_slot(kj_lowering *l, const kj_tvar *var, LLVMValueRef slot, LLVMTypeRef type);
void kj_debug_value(kj_lowering *l, const kj_tvar *var, LLVMValueRef value);
void kj_debug_array(kj_lowering *l, const kj_tvar *var, const kj_array_value *array);
void kj_debug_storage(kj_lowering *l, const kj_tvar *var, LLVMValueRef pointer);
void kj_debug_parameters(kj_lowering *l); /* all of l->frame are bound */
void kj_debug_thread(kj_lowering *l);     /* the part of another thread starts: slots are its own */
/* threadIdx and its like, as a variable of the kernel; *shadow is made once. values: i32 or i64 */
void kj_debug_position(kj_lowering *l, const char *name, LLVMValueRef *shadow,
                       LLVMValueRef const *values);

#endif
