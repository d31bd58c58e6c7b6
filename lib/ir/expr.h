/* Making expression nodes: for the parser and the builder. */
#ifndef KJ_IR_EXPR_H
#define KJ_IR_EXPR_H

#include "ir/module.h"

/* A leaf, height 1. */
ki_expr *ki_new_expr(kj_arena *arena, ki_expr_kind kind, kj_location location);
/* Sets and returns the height from those of the children, which are sealed. */
uint32_t ki_measure_expr(ki_expr *expr);
uint32_t ki_measure_type(const ki_type_expr *type);
/* The type as written for a type of the table: a scalar, an array argument, a tuple of these. */
ki_type_expr *ki_spell_type(kj_arena *arena, const ki_types *types, kjit_type type,
                            kj_location location);

#endif
