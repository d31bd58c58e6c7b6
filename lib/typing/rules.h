/* Rules of the built-ins: what their operands may be, and which type they give. */
#ifndef KJ_TYPING_RULES_H
#define KJ_TYPING_RULES_H

#include "typing/infer.h"

/* ---- rules.c, rules_sync.c, rules_instruction.c ---- */

/* Operands of a built-in. */
typedef struct kj_operands {
  const kj_builtin *builtin;
  kj_location location;
  kjit_type type_argument; /* KJ_TYPE_ARG; of `f32[n, m]` the element type */
  kj_texprs extents;       /* of such an argument: n, m */
  kj_place place;          /* KJ_PLACE */
  kj_texprs values;        /* the others, evaluated */
  const char *field;       /* KJ_XYZ: "x" */
  const kj_expr *text;     /* ptx: the string */
} kj_operands;
/* One for each rule named in builtins.def: gives the typed call, or a constant. */
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  kj_texpr *kj_rule_##rule(kj_scope *s, const kj_operands *o);
#include "ir/builtins.def"
#undef X
kj_texpr *kj_new_builtin(kj_scope *s, const kj_operands *o, kjit_type type);
/* bitcast to or from a pointer; NULL: it is neither. */
kj_texpr *kj_bitcast_pointer(kj_scope *s, const kj_operands *o);
kj_texpr *kj_apply_rule(kj_scope *s, const kj_operands *operands);

/* ---- rules_instruction.c ---- */

/* Fails where the target's architecture or PTX version is too old for `what`; suffix 'a': on that
 * architecture only. The CPU has everything. */
void kj_require_arch(kj_scope *s, const char *what, kj_location location, uint32_t arch,
                     char suffix, uint32_t ptx);
void kj_check_requirement(kj_scope *s, const kj_operands *o);

/* ---- rules_sync.c ---- */

/* An integer operand as one of the type; fails for anything else. */
kj_texpr *kj_take_integer(kj_scope *s, const kj_operands *o, kj_texpr *value, kjit_type type);
/* The address of a place in shared memory, i64; of an element as it would be loaded. `what` names
 * who wants it. */
kj_texpr *kj_make_shared_address(kj_scope *s, const char *what, const kj_place *place);
kj_texpr *kj_take_shared_address(kj_scope *s, const char *what, const kj_texpr *load);
/* The array is a view of another block's shared memory. */
bool kj_is_other_block(kj_scope *s, const kj_texpr *array);

#endif
