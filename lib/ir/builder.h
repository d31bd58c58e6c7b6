/* State of a builder, shared by builder.c (declarations), build_stmt.c and build_expr.c
 * (expressions). */
#ifndef KJ_IR_BUILDER_H
#define KJ_IR_BUILDER_H

#include "ir/module.h"

typedef struct kj_node {
  kj_expr *expr;         /* an expression: used once; or */
  kj_decl *decl;         /* a name: used any number of times */
  kj_function *function; /* that it was made in; NULL: outside of functions */
  bool is_used;
  kj_location used_at;
} kj_node;

typedef enum kj_frame_kind {
  KJ_FRAME_FUNCTION,
  KJ_FRAME_IF,
  KJ_FRAME_ELSE,
  KJ_FRAME_LOOP
} kj_frame_kind;

/* An open block. */
typedef struct kj_frame {
  kj_frame_kind kind;
  kj_stmt *stmt; /* NULL: the function */
  kj_stmts *body;
} kj_frame;

struct kjit_builder {
  kjit_context *context;
  char *name;
  kjit_module *module; /* under construction; NULL: could not be made */
  kj_diagnostics diagnostics;
  jmp_buf on_failure;     /* set by every entry point */
  kj_location location;   /* of the nodes made from now on */
  KJ_LIST(kj_node) nodes; /* node n is item n - 1 */
  KJ_LIST(kj_frame) frames;
  KJ_LIST(kj_source) sources;
  kj_function *function; /* being built, or NULL */
};

/* Opens a public call: false when there is nothing to do, because the builder is NULL or has
 * failed. A jump from inside comes back to the macro with false as well. */
#define KJ_ENTER_BUILDER(builder) \
  (kj_begin_call(builder) && kj_catch((builder), setjmp((builder)->on_failure)))
bool kj_begin_call(const kjit_builder *builder);
bool kj_catch(kjit_builder *builder, int jump);

/* Records the builder's first error and jumps out of the public call. */
_Noreturn void kj_fail_build(kjit_builder *builder, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

static inline kj_arena *kj_builder_arena(kjit_builder *builder) { return &builder->module->arena; }

/* A text that comes with the kernel: a message, an item of a print. */
const char *kj_copy_text(kjit_builder *builder, const char *text);
/* The innermost open block; fails where no function is open. */
kj_frame *kj_top_frame(kjit_builder *builder);
void kj_push_frame(kjit_builder *builder, kj_frame_kind kind, kj_stmt *stmt, kj_stmts *body);
/* A local declaration of the function; name NULL: made from the letter and its number. */
kj_decl *kj_build_local(kjit_builder *builder, kj_decl_kind kind, const char *name,
                        const char *letter);

/* The next node for an expression or a declaration. */
kjit_node kj_add_expr(kjit_builder *builder, kj_expr *expr);
kjit_node kj_add_decl(kjit_builder *builder, kj_decl *decl);
kj_expr *kj_make_expr(kjit_builder *builder, kj_expr_kind kind);
/* The node as an operand: expressions are consumed. Jumps out with an error on a node that is none
 * or used already. */
kj_expr *kj_use_node(kjit_builder *builder, kjit_node node);
void kj_use_nodes(kjit_builder *builder, const kjit_node *nodes, size_t count, kj_exprs *list);
/* The declaration that the node names, or NULL for an expression. Does not consume. */
kj_decl *kj_get_named(kjit_builder *builder, kjit_node node);
/* A type given by the host as the text form would write it; NULL for KJIT_ANY. */
kj_type_expr *kj_use_type(kjit_builder *builder, kjit_type type);
/* A literal of a scalar type, or KJ_WEAK_INT from an int64_t. */
kj_expr *kj_make_literal(kjit_builder *builder, kjit_type type, const void *value);

#endif
