/* Typing rules of the built-ins: the types of their operands and results. */
#ifndef KJ_TYPING_RULES_H
#define KJ_TYPING_RULES_H

#include "typing/infer.h"

/* ---- rules*.c ---- */

/* The evaluated operands of a call of a built-in. */
typedef struct kt_operands {
  const ki_builtin *builtin;
  kj_location location;
  /* KJ_TYPE_ARG: the type; for `f32[n, m]` the element type. Unevaluated operands: their type. */
  kjit_type type_argument;
  kt_exprs extents;    /* extents of a type argument such as `f32[n, m]` */
  kt_place place;      /* KJ_PLACE: the lvalue */
  kt_exprs values;     /* all other operands */
  const char *field;   /* KJ_XYZ: the field, such as "x" */
  const ki_expr *text; /* ptx: the string */
  const ki_expr *call; /* KJ_OPERATOR: the call, whose operands are not evaluated */
} kt_operands;
/* One function for each rule in builtins.def. Returns the typed call or a constant. */
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  kt_expr *kt_rule_##rule(kt_scope *s, const kt_operands *o);
#include "ir/builtins.def"
#undef X
kt_expr *kt_new_builtin(kt_scope *s, const kt_operands *o, kjit_type type);
/* Like kt_new_builtin, with other operands. */
kt_expr *kt_new_builtin_of(kt_scope *s, const kt_operands *o, kt_exprs values, kjit_type type);
/* Returns a bitcast to or from a pointer, or NULL if neither type is a pointer. */
kt_expr *kt_bitcast_pointer(kt_scope *s, const kt_operands *o);
/* Describes bytes of a type that belong to no number or address, such as "4 bytes of padding behind
 * `id`". Returns NULL if there are none. */
const char *kt_find_gap(kt_scope *s, kjit_type type);
kt_expr *kt_apply_rule(kt_scope *s, const kt_operands *operands);

/* ---- rules_instruction.c ---- */

/* Fails if the target's compute capability or PTX version is too old for `what`. suffix 'a': only
 * this architecture supports it. The CPU target supports everything. */
void kt_require_arch(kt_scope *s, const char *what, kj_location location, uint32_t arch,
                     char suffix, uint32_t ptx);
void kt_check_requirement(kt_scope *s, const kt_operands *o);

/* ---- rules_sync.c ---- */

/* Converts an integer operand to the type. Fails for other operands. */
kt_expr *kt_take_integer(kt_scope *s, const kt_operands *o, kt_expr *value, kjit_type type);
/* Return the address of an lvalue in shared memory as i64; the second function takes the lvalue in
 * the form of a LOAD. `what` is the name of the operation in messages. */
kt_expr *kt_make_shared_address(kt_scope *s, const char *what, const kt_place *place);
kt_expr *kt_take_shared_address(kt_scope *s, const char *what, const kt_expr *load);
/* Whether the array is a view of another block's shared memory. */
bool kt_is_other_block(kt_scope *s, const kt_expr *array);

#endif
