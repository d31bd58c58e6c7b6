/* State of a builder, which builder.c (declarations), build_stmt.c (statements) and build_expr.c
 * (expressions) share. */
#ifndef KJ_IR_BUILDER_H
#define KJ_IR_BUILDER_H

#include "ir/module.h"

typedef struct ki_node {
  ki_expr *expr; /* an expression, which can be used once; or NULL */
  /* the declaration that the node names, or NULL; a node that names a declaration can be used any
   * number of times */
  ki_decl *decl;
  ki_function *function; /* the function that contains the node; NULL means the module level */
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
  ki_stmt *stmt; /* NULL means that the block is the function body */
  ki_stmts *body;
} ki_open_block;

struct kjit_builder {
  kjit_context *context;
  char *name;
  kjit_module *module; /* the module under construction; NULL when out of memory */
  kj_diagnostics diagnostics;
  jmp_buf on_failure;     /* each public function sets it */
  kj_location location;   /* the location of new nodes */
  KJ_LIST(ki_node) nodes; /* node n is items[n - 1] */
  KJ_LIST(ki_open_block) frames;
  KJ_LIST(kj_source) sources;
  ki_function *function; /* the function under construction, or NULL */
  kjit_trust trust;      /* trust of the module */
};

/* Begins a public call. Returns false if the call must do nothing, because the builder is NULL or
 * has failed. An error jumps to this macro through on_failure; the macro then returns false as
 * well. */
#define KJ_ENTER_BUILDER(builder) \
  (ki_begin_call(builder) && ki_catch((builder), setjmp((builder)->on_failure)))
bool ki_begin_call(const kjit_builder *builder);
bool ki_catch(kjit_builder *builder, int jump);

/* Records the builder's first error and jumps out of the public call. */
_Noreturn void ki_fail_build(kjit_builder *builder, kjit_status status, const char *format, ...)
  __attribute__((format(printf, 3, 4)));

static inline kj_arena *ki_builder_arena(kjit_builder *builder) { return &builder->module->arena; }

/* Copies a string from the application that the kernel contains: a message, or an item of a
 * print. */
const char *ki_copy_text(kjit_builder *builder, const char *text);
/* Returns the innermost open block. Reports an error if no function is open. */
ki_open_block *ki_top_frame(kjit_builder *builder);
void ki_push_frame(kjit_builder *builder, ki_frame_kind kind, ki_stmt *stmt, ki_stmts *body);
/* Adds a local declaration to the function. If name is NULL, the name consists of the letter and a
 * number. */
ki_decl *ki_build_local(kjit_builder *builder, ki_decl_kind kind, const char *name,
                        const char *letter);

/* Adds the expression or the declaration to the builder's nodes and returns the new node. */
kjit_node ki_add_expr(kjit_builder *builder, ki_expr *expr);
kjit_node ki_add_decl(kjit_builder *builder, ki_decl *decl);
ki_expr *ki_make_expr(kjit_builder *builder, ki_expr_kind kind);
/* Returns the expression of a node as an operand and marks an expression node as used. Reports an
 * error, which jumps, if the node is invalid or has been used already. */
ki_expr *ki_use_node(kjit_builder *builder, kjit_node node);
void ki_use_nodes(kjit_builder *builder, const kjit_node *nodes, size_t count, ki_exprs *list);
/* Returns whether the type comes from kjit_build_type_of. Such a type is valid only in its
 * builder. */
bool ki_is_type_of_node(kjit_type type);
/* Converts the application's type to the form that the parser creates. Returns NULL for
 * KJIT_ANY. */
ki_type_expr *ki_use_type(kjit_builder *builder, kjit_type type);
/* Returns a literal. *value has the scalar type, or int64_t for KJ_WEAK_INT. */
ki_expr *ki_make_literal(kjit_builder *builder, kjit_type type, const void *value);

#endif
