/* Rules of the built-ins: what their operands may be, and which type they give. */
#ifndef KJ_TYPING_RULES_H
#define KJ_TYPING_RULES_H

#include "typing/infer.h"

/* ---- rules*.c ---- */

/* Operands of a built-in. */
typedef struct kt_operands {
  const ki_builtin *builtin;
  kj_location location;
  /* KJ_TYPE_ARG; of `f32[n, m]` the element type; of what is not evaluated its type */
  kjit_type type_argument;
  kt_exprs extents;    /* of such an argument: n, m */
  kt_place place;      /* KJ_PLACE */
  kt_exprs values;     /* the others, evaluated */
  const char *field;   /* KJ_XYZ: "x" */
  const ki_expr *text; /* ptx: the string */
  const ki_expr *call; /* KJ_OPERATOR: nothing of it is evaluated */
} kt_operands;
/* One for each rule named in builtins.def: gives the typed call, or a constant. */
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  kt_expr *kt_rule_##rule(kt_scope *s, const kt_operands *o);
#include "ir/builtins.def"
#undef X
kt_expr *kt_new_builtin(kt_scope *s, const kt_operands *o, kjit_type type);
/* The same with other operands. */
kt_expr *kt_new_builtin_of(kt_scope *s, const kt_operands *o, kt_exprs values, kjit_type type);
/* bitcast to or from a pointer; NULL: it is neither. */
kt_expr *kt_bitcast_pointer(kt_scope *s, const kt_operands *o);
/* What of the bytes of a value is not a number's or an address's, "4 bytes of padding behind `id`";
 * NULL: nothing. */
const char *kt_find_gap(kt_scope *s, kjit_type type);
kt_expr *kt_apply_rule(kt_scope *s, const kt_operands *operands);

/* ---- rules_instruction.c ---- */

/* Fails where the target's architecture or PTX version is too old for `what`; suffix 'a': on that
 * architecture only. The CPU has everything. */
void kt_require_arch(kt_scope *s, const char *what, kj_location location, uint32_t arch,
                     char suffix, uint32_t ptx);
void kt_check_requirement(kt_scope *s, const kt_operands *o);

/* ---- rules_sync.c ---- */

/* An integer operand as one of the type; fails for anything else. */
kt_expr *kt_take_integer(kt_scope *s, const kt_operands *o, kt_expr *value, kjit_type type);
/* The address of a place in shared memory, i64; of an element as it would be loaded. `what` names
 * who wants it. */
kt_expr *kt_make_shared_address(kt_scope *s, const char *what, const kt_place *place);
kt_expr *kt_take_shared_address(kt_scope *s, const char *what, const kt_expr *load);
/* The array is a view of another block's shared memory. */
bool kt_is_other_block(kt_scope *s, const kt_expr *array);

#endif
