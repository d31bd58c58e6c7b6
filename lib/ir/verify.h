/* Declarations that the files in the module verifier share. ki_finish_module runs the verifier
 * (verifier.c) over a parsed or built module. The verifier resolves names, determines which
 * expressions are types, and reports errors that do not depend on the types of arguments. */
#ifndef KJ_IR_VERIFY_H
#define KJ_IR_VERIFY_H

#include "ir/module.h"
#include "support/containers.h"

typedef struct ki_call_site {
  ki_decl *callee;
  kj_location location;
  const ki_stmt *range; /* the grid_range or block_range that contains the call, or NULL */
} ki_call_site;

/* Properties of a function, for the rules that depend on the functions that it calls. */
typedef struct ki_summary {
  KJ_LIST(ki_call_site) calls; /* includes functions passed as arguments */
  /* the first operation in the function, or in a function that it calls, that a grid_range must not
   * contain, for example "`syncthreads`"; NULL if there is none */
  const char *forbidden;
  kj_location forbidden_at;
  uint32_t height; /* number of functions in the longest chain of calls */
  uint8_t state;   /* state of the walk over the calls: 0 new, 1 in progress, 2 done */
} ki_summary;

typedef struct ki_verifier {
  kjit_module *module;
  kj_diagnostics *diagnostics;
  kj_arena *arena; /* the module's */
  /* map each name to its ki_decl; the declarations of lib/library have their own map */
  kj_map decls, library_decls;
  ki_summary *summaries; /* each declaration's summary; indexed by declaration */
  bool is_text;          /* the module was parsed, so every name comes from the source */
  ki_decl *decl;         /* the declaration that is being verified */
  ki_function *function; /* the function that is being verified, or NULL */
  /* describes the expression if it is evaluated before a launch: "a constant", "an attribute"; NULL
   * in a body */
  const char *fixed;
  bool takes_kernel;           /* the expression is the operand of `adjoint` */
  const ki_stmt *loop, *range; /* innermost loop; innermost grid_range or block_range */
  /* whether each local declaration is visible; indexed by declaration */
  bool *visible;
  KJ_LIST(uint32_t) shown;
  /* a parameter's type is being verified, which can refer to all parameters */
  bool in_parameters;
  /* state of each declaration; indexed by declaration; used only by struct_decl.c */
  uint8_t *struct_states;
  uint32_t struct_depth;
} ki_verifier;

/* An expression's role, which determines whether it can be a value, a type or a func. */
typedef enum ki_role {
  KJ_ROLE_VALUE,
  KJ_ROLE_CALLEE,
  KJ_ROLE_ARGUMENT, /* argument of a func: a value or a func */
  KJ_ROLE_COMPARED, /* operand of == or !=: a value or a type */
  KJ_ROLE_TYPE
} ki_role;

/* ---- verifier.c ---- */

/* Reports an error. Returns, except after the tenth error, which ends the verification. */
void ki_fail_verify(ki_verifier *v, kj_location location, kjit_status status, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
void ki_note_verify(ki_verifier *v, kj_location location, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* ---- verifier.c, verify_decl.c ---- */

void ki_verify_function(ki_verifier *v, ki_decl *decl);
void ki_verify_constant(ki_verifier *v, ki_decl *decl);
/* Reports constants whose values depend on themselves. */
void ki_verify_constant_cycles(ki_verifier *v);

/* ---- verify_stmt.c, verifier.c ---- */

void ki_verify_body(ki_verifier *v, const ki_stmts *body);
/* Makes the local declaration visible until the end of its block. */
void ki_show_local(ki_verifier *v, const ki_decl *decl);
/* Checks the attributes. `place` says to which kind of declaration or statement they belong:
 * KJ_PLACE_KERNEL and others. */
void ki_verify_attributes(ki_verifier *v, ki_attributes *attributes, unsigned place);

/* ---- verify_expr.c, verify_stmt.c ---- */

/* Resolves the names in the expression and checks the expression. */
void ki_verify_expr(ki_verifier *v, ki_expr *expr, ki_role role);
void ki_verify_exprs(ki_verifier *v, ki_exprs *list, ki_role role);
void ki_verify_call(ki_verifier *v, ki_expr *call);
/* Checks an expression that an assignment or an atomic function modifies. */
void ki_verify_place(ki_verifier *v, ki_expr *place, bool is_atomic);

/* ---- verify_decl.c ---- */

/* Checks a type. static_extents: the type can have extents, as in `f32[16]`. */
void ki_verify_type(ki_verifier *v, ki_type_expr *type, bool static_extents);
/* Converts an expression to a type, for the operand of zero, sizeof or bitcast. */
void ki_convert_to_type(ki_verifier *v, ki_expr *expr);

/* ---- verify_name.c ---- */

/* Returns the module's declaration to which a name at this location refers, or NULL. In a source of
 * lib/library, names refer to lib/library, so that declarations of the user's module cannot change
 * kjit's own sources. In other sources, the module's own declarations take precedence. */
ki_decl *ki_find_visible(const ki_verifier *v, kj_location location, const char *name);
/* Replaces a NAME by its meaning. If the name is unknown, reports that and does not replace it. */
void ki_resolve_name(ki_verifier *v, ki_expr *expr);
/* Check the use of a declaration, a built-in or a field. */
void ki_verify_decl(ki_verifier *v, ki_expr *expr, ki_role role);
void ki_verify_builtin(ki_verifier *v, const ki_expr *expr, ki_role role);
void ki_verify_field(ki_verifier *v, ki_expr *expr);
/* Returns whether the name is declared in the module, is a built-in or is a type. */
bool ki_is_known_name(const ki_verifier *v, kj_location location, const char *name);
/* Reports an unknown name, which can be dotted. */
void ki_fail_unknown(ki_verifier *v, kj_location location, const char *name, bool is_assigned);
/* Returns whether the expression is a function or a func parameter. */
bool ki_is_func_value(const ki_expr *expr);
/* Turns an expression that names a type parameter into a type. */
void ki_name_type_parameter(ki_verifier *v, ki_expr *expr);
/* Reports an error if a literal or conversion of a built module refers to a built-in and a kernel
 * has the same name as the built-in. Printed text could not distinguish the two. */
void ki_refuse_hidden(ki_verifier *v, const ki_expr *expr, const char *name);

/* ---- struct_decl.c: layouts of structs ---- */

/* Gives every struct and the structs in its fields their types. A second call has no effect. */
void ki_resolve_structs(ki_verifier *v);
void ki_resolve_struct(ki_verifier *v, ki_decl *decl);

/* ---- verifier.c: rules that depend on several functions ---- */

/* Checks recursion, the depth of calls, and barriers that the body of a range executes through
 * calls. */
void ki_verify_calls(ki_verifier *v);

/* ---- verify_guest.c ---- */

/* Reports operations that guest code (untrusted code) must not use. All names must be resolved. */
void ki_verify_guests(ki_verifier *v);
/* Reports operations that kjit_parse_expression does not allow, both for guests and for trusted
 * sources. */
void ki_verify_expressions(ki_verifier *v);

#endif
