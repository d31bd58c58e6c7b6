/* Making expression nodes: for the parser and the builder. */
#ifndef KJ_IR_EXPR_H
#define KJ_IR_EXPR_H

#include "ir/module.h"

/* A leaf, height 1. */
kj_expr *kj_new_expr(kj_arena *arena, kj_expr_kind kind, kj_location location);
/* Sets and returns the height from those of the children, which are sealed. */
uint32_t kj_measure_expr(kj_expr *expr);
uint32_t kj_measure_type(const kj_type_expr *type);
/* The type as written for a type of the table: a scalar, an array argument, a tuple of these. */
kj_type_expr *kj_spell_type(kj_arena *arena, const kj_types *types, kjit_type type,
                            kj_location location);

#endif
