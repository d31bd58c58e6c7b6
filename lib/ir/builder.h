/* State of a builder, shared by builder.c (declarations), build_stmt.c and build_expr.c
 * (expressions). */
#ifndef KJ_IR_BUILDER_H
#define KJ_IR_BUILDER_H

#include "ir/module.h"

typedef struct ki_node {
  ki_expr *expr;         /* an expression: used once; or */
  ki_decl *decl;         /* a name: used any number of times */
  ki_function *function; /* that it was made in; NULL: outside of functions */
  bool is_used;
  kj_location used_at;
} ki_node;

typedef enum ki_frame_kind {
  KJ_FRAME_FUNCTION,
  KJ_FRAME_IF,
  KJ_FRAME_ELSE,
  KJ_FRAME_LOOP
} ki_frame_kind;

/* An open block. */
typedef struct ki_open_block {
  ki_frame_kind kind;
  ki_stmt *stmt; /* NULL: the function */
  ki_stmts *body;
} ki_open_block;

struct kjit_builder {
  kjit_context *context;
  char *name;
  kjit_module *module; /* under construction; NULL: could not be made */
  kj_diagnostics diagnostics;
  jmp_buf on_failure;     /* set by every entry point */
  kj_location location;   /* of the nodes made from now on */
  KJ_LIST(ki_node) nodes; /* node n is item n - 1 */
  KJ_LIST(ki_open_block) frames;
  KJ_LIST(kj_source) sources;
  ki_function *function; /* being built, or NULL */
  kjit_trust trust;      /* of the module */
};

/* Opens a public call: false when there is nothing to do, because the builder is NULL or has
 * failed. A jump from inside comes back to the macro with false as well. */
#define KJ_ENTER_BUILDER(builder) \
  (ki_begin_call(builder) && ki_catch((builder), setjmp((builder)->on_failure)))
bool ki_begin_call(const kjit_builder *builder);
bool ki_catch(kjit_builder *builder, int jump);

/* Records the builder's first error and jumps out of the public call. */
_Noreturn void ki_fail_build(kjit_builder *builder, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

static inline kj_arena *ki_builder_arena(kjit_builder *builder) { return &builder->module->arena; }

/* A text that comes with the kernel: a message, an item of a print. */
const char *ki_copy_text(kjit_builder *builder, const char *text);
/* The innermost open block; fails where no function is open. */
ki_open_block *ki_top_frame(kjit_builder *builder);
void ki_push_frame(kjit_builder *builder, ki_frame_kind kind, ki_stmt *stmt, ki_stmts *body);
/* A local declaration of the function; name NULL: made from the letter and its number. */
ki_decl *ki_build_local(kjit_builder *builder, ki_decl_kind kind, const char *name,
                        const char *letter);

/* Adds the expression or the declaration to the builder's nodes and returns the new node. */
kjit_node ki_add_expr(kjit_builder *builder, ki_expr *expr);
kjit_node ki_add_decl(kjit_builder *builder, ki_decl *decl);
ki_expr *ki_make_expr(kjit_builder *builder, ki_expr_kind kind);
/* The node as an operand: expressions are consumed. Jumps out with an error on a node that is none
 * or used already. */
ki_expr *ki_use_node(kjit_builder *builder, kjit_node node);
void ki_use_nodes(kjit_builder *builder, const kjit_node *nodes, size_t count, ki_exprs *list);
/* By kjit_build_type_of: no type of the context. */
bool ki_is_type_of_node(kjit_type type);
/* A type given by the host as the text form would write it; NULL for KJIT_ANY. */
ki_type_expr *ki_use_type(kjit_builder *builder, kjit_type type);
/* A literal of a scalar type, or KJ_WEAK_INT from an int64_t. */
ki_expr *ki_make_literal(kjit_builder *builder, kjit_type type, const void *value);

#endif
