/* What the files of ki_finish_module share: verifier.c is the whole. */
#ifndef KJ_IR_VERIFY_H
#define KJ_IR_VERIFY_H

#include "ir/module.h"
#include "support/containers.h"

typedef struct ki_call_site {
  ki_decl *callee;
  kj_location location;
  const ki_stmt *range; /* the grid_range or block_range around it, or NULL */
} ki_call_site;

/* What a function does, for the rules that reach through calls. */
typedef struct ki_summary {
  KJ_LIST(ki_call_site) calls; /* also functions handed over as arguments */
  /* the first thing in it, or in what it calls, that no grid_range may hold: "`syncthreads`"; or
   * NULL */
  const char *forbidden;
  kj_location forbidden_at;
  uint32_t height; /* of the calls below, from 1 */
  uint8_t state;   /* of the walk over the calls: 0 new, 1 under way, 2 done */
} ki_summary;

typedef struct ki_verifier {
  kjit_module *module;
  kj_diagnostics *diagnostics;
  kj_arena *arena; /* the module's */
  /* name -> ki_decl: what a name of the module may mean; declarations of lib/library are apart */
  kj_map decls, library_decls;
  ki_summary *summaries; /* by index of the declaration */
  bool is_text;          /* parsed: every name is one of the source */
  ki_decl *decl;         /* being verified */
  ki_function *function; /* the same, or NULL */
  /* what is evaluated before a launch: "a constant", "an attribute"; NULL in a body */
  const char *fixed;
  bool takes_kernel;           /* what is verified is the operand of `adjoint` */
  const ki_stmt *loop, *range; /* innermost loop; innermost grid_range or block_range */
  bool *visible;               /* by index of the local declaration */
  KJ_LIST(uint32_t) shown;
  bool in_parameters;     /* types of parameters see all of them */
  uint8_t *struct_states; /* by index of the declaration; struct_decl.c's own */
  uint32_t struct_depth;
} ki_verifier;

/* Where an expression stands decides what it may be. */
typedef enum ki_role {
  KJ_ROLE_VALUE,
  KJ_ROLE_CALLEE,
  KJ_ROLE_ARGUMENT, /* of a func: a value or a func */
  KJ_ROLE_COMPARED, /* of == and !=: a value or a type */
  KJ_ROLE_TYPE
} ki_role;

/* ---- verifier.c ---- */

/* Reports an error and goes on; jumps out at the tenth. */
void ki_fail_verify(ki_verifier *v, kj_location location, kjit_status status, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
void ki_note_verify(ki_verifier *v, kj_location location, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* ---- verifier.c, verify_decl.c ---- */

void ki_verify_function(ki_verifier *v, ki_decl *decl);
void ki_verify_constant(ki_verifier *v, ki_decl *decl);
/* A constant may be made from others, not from itself. */
void ki_verify_constant_cycles(ki_verifier *v);

/* ---- verify_stmt.c, verifier.c ---- */

void ki_verify_body(ki_verifier *v, const ki_stmts *body);
/* The local declaration is visible from here to the end of its block. */
void ki_show_local(ki_verifier *v, const ki_decl *decl);
/* place: what they are of, KJ_PLACE_KERNEL and so on. */
void ki_verify_attributes(ki_verifier *v, ki_attributes *attributes, unsigned place);

/* ---- verify_expr.c, verify_stmt.c ---- */

/* Resolves the names in the expression and checks it. */
void ki_verify_expr(ki_verifier *v, ki_expr *expr, ki_role role);
void ki_verify_exprs(ki_verifier *v, ki_exprs *list, ki_role role);
void ki_verify_call(ki_verifier *v, ki_expr *call);
/* What an assignment, or an atomic, changes. */
void ki_verify_place(ki_verifier *v, ki_expr *place, bool is_atomic);

/* ---- verify_decl.c ---- */

/* static_extents: whether `f32[16]` may stand here. */
void ki_verify_type(ki_verifier *v, ki_type_expr *type, bool static_extents);
/* The operand of zero, sizeof, bitcast: an expression that is to be a type. */
void ki_convert_to_type(ki_verifier *v, ki_expr *expr);

/* ---- verify_name.c ---- */

/* A NAME becomes what it means; an unknown one is reported and stays. */
/* The declaration of the module that a name at this place means, or NULL. In a source of
 * lib/library it is one of lib/library: what the module around declares changes no source of
 * kjit's. Elsewhere the module's own come first. */
ki_decl *ki_find_visible(const ki_verifier *v, kj_location location, const char *name);
void ki_resolve_name(ki_verifier *v, ki_expr *expr);
/* A declaration, a built-in, a field, where they stand. */
void ki_verify_decl(ki_verifier *v, ki_expr *expr, ki_role role);
void ki_verify_builtin(ki_verifier *v, const ki_expr *expr, ki_role role);
void ki_verify_field(ki_verifier *v, ki_expr *expr);
/* Of the module, built in, or a type. */
bool ki_is_known_name(const ki_verifier *v, kj_location location, const char *name);
/* name may be dotted. */
void ki_fail_unknown(ki_verifier *v, kj_location location, const char *name, bool is_assigned);
/* A function, or a parameter that is one. */
bool ki_is_func_value(const ki_expr *expr);
/* Of a parameter that takes a type, as an expression: it is a type. */
void ki_name_type_parameter(ki_verifier *v, ki_expr *expr);
/* A built module's literals and casts mean the built-in even where a kernel has its name: the text
 * could not say that, and a kernel keeps its name. */
void ki_refuse_hidden(ki_verifier *v, const ki_expr *expr, const char *name);

/* ---- struct_decl.c ---- */

/* Gives every struct its type, and those that it holds theirs; twice does no harm. */
void ki_resolve_structs(ki_verifier *v);
void ki_resolve_struct(ki_verifier *v, ki_decl *decl);

/* ---- verifier.c: what holds across functions ---- */

/* Recursion, call depth, barriers in ranges through calls. */
void ki_verify_calls(ki_verifier *v);

/* ---- verify_guest.c ---- */

/* That what is a guest's asks for nothing that guests may not do. Names are resolved. */
void ki_verify_guests(ki_verifier *v);
/* What the text of kjit_parse_expression may not do, whoever wrote it. */
void ki_verify_expressions(ki_verifier *v);

#endif
