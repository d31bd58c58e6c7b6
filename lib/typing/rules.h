/* Typing rules of the built-ins: the types of their operands and results. */
#ifndef KJ_TYPING_RULES_H
#define KJ_TYPING_RULES_H

#include "typing/infer.h"

/* ---- rules*.c ---- */

/* The evaluated operands of a call to a built-in. */
typedef struct kt_operands {
  const ki_builtin *builtin;
  kj_location location;
  /* KJ_TYPE_ARG: the type argument; for `f32[n, m]`, the element type. If the built-in does not
   * evaluate its operand, the operand type. */
  kjit_type type_argument;
  kt_exprs extents;    /* extents of a type argument such as `f32[n, m]` */
  kt_place place;      /* KJ_PLACE: the lvalue */
  kt_exprs values;     /* all other operands */
  const char *field;   /* KJ_XYZ: the field, such as "x" */
  const ki_expr *text; /* ptx: the string */
  const ki_expr *call; /* the call itself, for KJ_OPERATOR and `pointer` */
} kt_operands;
/* The functions for the rules in builtins.def. Each returns the typed call or a constant. */
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  kt_expr *kt_rule_##rule(kt_scope *s, const kt_operands *o);
#include "ir/builtins.def"
#undef X
kt_expr *kt_new_builtin(kt_scope *s, const kt_operands *o, kjit_type type);
/* Like kt_new_builtin, with `values` in place of o->values. */
kt_expr *kt_new_builtin_of(kt_scope *s, const kt_operands *o, kt_exprs values, kjit_type type);
/* Returns a bitcast to or from a pointer, or NULL if neither type is a pointer. */
kt_expr *kt_bitcast_pointer(kt_scope *s, const kt_operands *o);
/* If a type has bytes that belong to no number or address, returns a description of them, such as
 * "4 bytes of padding after `id`". Otherwise returns NULL. */
const char *kt_find_gap(kt_scope *s, kjit_type type);
kt_expr *kt_apply_rule(kt_scope *s, const kt_operands *operands);

/* ---- rules_instruction.c ---- */

/* Reports an error if the target's compute capability or PTX version is too low for `what`. suffix
 * 'a': the feature exists only on exactly this architecture. The CPU target supports everything. */
void kt_require_arch(kt_scope *s, const char *what, kj_location location, uint32_t arch,
                     char suffix, uint32_t ptx);
void kt_check_requirement(kt_scope *s, const kt_operands *o);

/* ---- rules_memory.c ---- */

/* Returns the argument of a wait for asynchronous copies or products: the number of groups, at most
 * `most`, as u32. If the call has no argument, the number is 0. */
kt_expr *kt_take_group_count(kt_scope *s, const kt_operands *o, int most);

/* ---- rules_sync.c ---- */

/* Converts an integer operand to the type. Reports an error for any other operand. */
kt_expr *kt_take_integer(kt_scope *s, const kt_operands *o, kt_expr *value, kjit_type type);
/* Return an lvalue's address in shared memory as i64. kt_take_shared_address gets the lvalue as a
 * LOAD. `what` is the operation name in messages. */
kt_expr *kt_make_shared_address(kt_scope *s, const char *what, const kt_place *place);
kt_expr *kt_take_shared_address(kt_scope *s, const char *what, const kt_expr *load);
/* Returns whether the array is a view of the shared memory of another block. */
bool kt_is_other_block(kt_scope *s, const kt_expr *array);

#endif
