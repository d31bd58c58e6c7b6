/* Functions of the parser and the builder that create expression nodes. */
#ifndef KJ_IR_EXPR_H
#define KJ_IR_EXPR_H

#include "ir/module.h"

/* Returns a new leaf with height 1. */
ki_expr *ki_new_expr(kj_arena *arena, ki_expr_kind kind, kj_location location);
/* Computes, stores and returns the height. The children's heights must be known. */
uint32_t ki_measure_expr(ki_expr *expr);
uint32_t ki_measure_type(const ki_type_expr *type);
/* Returns a type in the form in which the source would contain it. type is a scalar, an array as a
 * parameter has it, or a tuple of these. */
ki_type_expr *ki_spell_type(kj_arena *arena, const ki_types *types, kjit_type type,
                            kj_location location);

#endif
