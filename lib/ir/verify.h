/* What the files of kj_finish_module share: verifier.c is the whole. */
#ifndef KJ_IR_VERIFY_H
#define KJ_IR_VERIFY_H

#include "ir/module.h"
#include "support/containers.h"

typedef struct kj_call_site {
  kj_decl *callee;
  kj_location location;
  const kj_stmt *range; /* the grid_range or block_range around it, or NULL */
} kj_call_site;

/* What a function does, for the rules that reach through calls. */
typedef struct kj_summary {
  KJ_LIST(kj_call_site) calls; /* also functions handed over as arguments */
  /* the first thing in it, or in what it calls, that no grid_range may hold: "`syncthreads`"; or
   * NULL */
  const char *forbidden;
  kj_location forbidden_at;
  uint32_t height; /* of the calls below, from 1 */
  uint8_t state;   /* of the walk over the calls: 0 new, 1 under way, 2 done */
} kj_summary;

typedef struct kj_verifier {
  kjit_module *module;
  kj_diagnostics *diagnostics;
  kj_arena *arena;       /* the module's */
  kj_map decls;          /* name -> kj_decl: what a name of the module may mean */
  kj_summary *summaries; /* by index of the declaration */
  bool is_text;          /* parsed: every name is one of the source */
  kj_decl *decl;         /* being verified */
  kj_function *function; /* the same, or NULL */
  /* what is evaluated before a launch: "a constant", "an attribute"; NULL in a body */
  const char *fixed;
  const kj_stmt *loop, *range; /* innermost loop; innermost grid_range or block_range */
  bool *visible;               /* by index of the local declaration */
  KJ_LIST(uint32_t) shown;
  bool in_parameters;     /* types of parameters see all of them */
  uint8_t *struct_states; /* by index of the declaration; struct_decl.c's own */
  uint32_t struct_depth;
} kj_verifier;

/* Where an expression stands decides what it may be. */
typedef enum kj_role {
  KJ_ROLE_VALUE,
  KJ_ROLE_CALLEE,
  KJ_ROLE_ARGUMENT, /* of a func: a value or a func */
  KJ_ROLE_COMPARED, /* of == and !=: a value or a type */
  KJ_ROLE_TYPE
} kj_role;

/* ---- verifier.c ---- */

/* Reports an error and goes on; jumps out at the tenth. */
void kj_fail_verify(kj_verifier *v, kj_location location, kjit_status status, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));
void kj_note_verify(kj_verifier *v, kj_location location, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

/* ---- verifier.c, verify_decl.c ---- */

void kj_verify_function(kj_verifier *v, kj_decl *decl);
void kj_verify_constant(kj_verifier *v, kj_decl *decl);
/* A constant may be made from others, not from itself. */
void kj_verify_constant_cycles(kj_verifier *v);

/* ---- verify_stmt.c, verifier.c ---- */

void kj_verify_body(kj_verifier *v, const kj_stmts *body);
/* The local declaration is visible from here to the end of its block. */
void kj_show_local(kj_verifier *v, const kj_decl *decl);
/* place: what they are of, KJ_PLACE_KERNEL and so on. */
void kj_verify_attributes(kj_verifier *v, kj_attributes *attributes, unsigned place);

/* ---- verify_expr.c, verify_stmt.c ---- */

/* Resolves the names in the expression and checks it. */
void kj_verify_expr(kj_verifier *v, kj_expr *expr, kj_role role);
void kj_verify_exprs(kj_verifier *v, kj_exprs *list, kj_role role);
void kj_verify_call(kj_verifier *v, kj_expr *call);
/* What an assignment, or an atomic, changes. */
void kj_verify_place(kj_verifier *v, kj_expr *place, bool is_atomic);

/* ---- verify_decl.c ---- */

/* static_extents: whether `f32[16]` may stand here. */
void kj_verify_type(kj_verifier *v, kj_type_expr *type, bool static_extents);
/* The operand of zero, sizeof, bitcast: an expression that is to be a type. */
void kj_convert_to_type(kj_verifier *v, kj_expr *expr);

/* ---- verify_name.c ---- */

/* A NAME becomes what it means; an unknown one is reported and stays. */
void kj_resolve_name(kj_verifier *v, kj_expr *expr);
/* A declaration, a built-in, a field, where they stand. */
void kj_verify_decl(kj_verifier *v, kj_expr *expr, kj_role role);
void kj_verify_builtin(kj_verifier *v, const kj_expr *expr, kj_role role);
void kj_verify_field(kj_verifier *v, kj_expr *expr);
/* Of the module, built in, or a type. */
bool kj_is_known_name(const kj_verifier *v, const char *name);
/* name may be dotted. */
void kj_fail_unknown(kj_verifier *v, kj_location location, const char *name, bool is_assigned);
/* A function, or a parameter that is one. */
bool kj_is_func_value(const kj_expr *expr);
/* A built module's literals and casts mean the built-in even where a kernel has its name: the text
 * could not say that, and a kernel keeps its name. */
void kj_refuse_hidden(kj_verifier *v, const kj_expr *expr, const char *name);

/* ---- struct_decl.c ---- */

/* Gives every struct its type, and those that it holds theirs; twice does no harm. */
void kj_resolve_structs(kj_verifier *v);
void kj_resolve_struct(kj_verifier *v, kj_decl *decl);

/* ---- verifier.c: what holds across functions ---- */

/* Recursion, call depth, barriers in ranges through calls. */
void kj_verify_calls(kj_verifier *v);

#endif
