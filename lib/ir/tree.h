/* The untyped kernel IR, which the parser and the builder create. A finished module is immutable,
 * so any thread can read it.
 *
 * All nodes are in the module's arena. An expression has only one parent, but many nodes can refer
 * to a declaration. Local names are resolved when their node is created. ki_finish_module resolves
 * the names of the module's functions and constants, so these can be used before their
 * declaration. */
#ifndef KJ_IR_TREE_H
#define KJ_IR_TREE_H

#include <kjit/builder.h>
#include <stdbool.h>

#include "ir/builtin.h"
#include "ir/type.h"
#include "support/host_process.h"
#include "support/diagnostics.h"

typedef struct ki_module ki_module; /* = kjit_module */
typedef struct ki_expr ki_expr;
typedef struct ki_stmt ki_stmt;
typedef struct ki_decl ki_decl;
typedef struct ki_function ki_function;

typedef KJ_LIST(ki_expr *) ki_exprs;
typedef KJ_LIST(ki_stmt *) ki_stmts;
typedef KJ_LIST(ki_decl *) ki_decls;

/* ---- types as written in the source ---- */

typedef enum ki_type_expr_kind {
  /* .type: a scalar, vector, struct or pointer, or an array of these with [:] dimensions. The type
   * does not depend on the caller. */
  KJ_TYPE_FIXED,
  KJ_TYPE_DTYPE,  /* dtype(.expr) */
  KJ_TYPE_VECTOR, /* vector(.element, .extents[0]) */
  /* an array with .rank `:` dimensions and .layout, if its element type .element is not FIXED, for
   * example dtype(A)[:, :] */
  KJ_TYPE_ARRAY,
  /* .element[.extents ...]; without extents, shared memory whose size the launch determines */
  KJ_TYPE_STATIC_ARRAY,
  KJ_TYPE_TUPLE,    /* .items */
  KJ_TYPE_POINTER,  /* .element*, if the type .element is not FIXED: dtype(A)* */
  KJ_TYPE_NAMED,    /* a struct's name, .name; the verifier replaces it by FIXED */
  KJ_TYPE_PARAMETER /* the type that the caller passes for the type parameter .decl */
} ki_type_expr_kind;

typedef struct ki_type_expr ki_type_expr;
struct ki_type_expr {
  ki_type_expr_kind kind;
  kj_location location;
  kjit_type type;
  ki_expr *expr;
  ki_type_expr *element;
  uint32_t rank;
  kjit_layout layout;
  bool read_only;
  ki_exprs extents;
  KJ_LIST(ki_type_expr *) items;
  const char *name;
  ki_decl *decl;
};

/* ---- expressions ---- */

typedef enum ki_expr_kind {
  KJ_EXPR_INT,    /* .type: KJ_WEAK_INT or an integer type (suffix); .integer */
  KJ_EXPR_FLOAT,  /* .type: KJ_WEAK_FLOAT or a float type; .number */
  KJ_EXPR_BOOL,   /* .integer 0 or 1 */
  KJ_EXPR_STRING, /* .name */
  KJ_EXPR_DECL,   /* a parameter, variable, constant or function: .decl */
  KJ_EXPR_NAME,   /* .name that is not resolved yet; does not occur in a finished module */
  /* a built-in used as a name: .builtin (threadIdx, laneid, pi, grid before its call) */
  KJ_EXPR_BUILTIN,
  /* .type_expr: a type that is a cast's callee, the argument of zero, or an operand of `dtype(x) ==
   * f32` */
  KJ_EXPR_TYPE,
  KJ_EXPR_UNARY,  /* .op .x */
  KJ_EXPR_BINARY, /* .op .x .y; also comparisons, `and` and `or` */
  KJ_EXPR_COND,   /* .x ? .y : .z */
  /* .x callee (a DECL of a function or func parameter, a BUILTIN or a TYPE); .args */
  KJ_EXPR_CALL,
  KJ_EXPR_INDEX, /* .x [ .args ]; each argument can be a SLICE */
  KJ_EXPR_SLICE, /* .x : .y : .z, each may be NULL */
  KJ_EXPR_FIELD, /* .x . .name */
  KJ_EXPR_TUPLE, /* .args */
  /* .args: a list in braces, `{ 1, 2 }`, which can be nested; only in a constant's value */
  KJ_EXPR_AGGREGATE
} ki_expr_kind;

/* Limits for the height of expressions and for the nesting of blocks, which bound the recursion of
 * all passes. */
enum { KJ_MAX_HEIGHT = 400, KJ_MAX_NESTING = 200 };

struct ki_expr {
  ki_expr_kind kind;
  kjit_op op;
  uint32_t height; /* height of the tree; a leaf has height 1 */
  kj_location location;
  ki_expr *x, *y, *z;
  ki_exprs args;
  ki_decl *decl;
  const ki_builtin *builtin;
  ki_type_expr *type_expr;
  kjit_type type;
  /* The value. A weak integer can have any value of u64 or i64, but a literal is never negative. */
  __int128 integer;
  double number;
  const char *name;
  bool is_enclosed; /* the expression is in parentheses; set only in formulas */
};

/* ---- declarations ---- */

typedef enum ki_decl_kind {
  KJ_DECL_FUNCTION, /* kernel, func: .function */
  /* constant of a module: .type_expr or NULL; .value, which can be an AGGREGATE, or .data */
  KJ_DECL_CONST,
  KJ_DECL_STRUCT, /* .fields, .attributes, .struct_type */
  /* .is_const, .type_expr or NULL, .value (the default) or NULL; .is_func, .is_type */
  KJ_DECL_PARAM,
  /* .value; NULL if the declaration is one of several in a destructuring statement */
  KJ_DECL_LET,
  KJ_DECL_VAR,    /* like LET; also .type_expr or NULL */
  KJ_DECL_SHARED, /* .type_expr: a STATIC_ARRAY or a scalar */
  KJ_DECL_LOCAL,
  KJ_DECL_LOOP /* variable of a for */
} ki_decl_kind;

typedef struct ki_attribute {
  const struct ki_attribute_info *info; /* the attribute's row of attributes.def */
  kj_location location;
  ki_exprs values;
} ki_attribute;
typedef KJ_LIST(ki_attribute) ki_attributes;

struct ki_decl {
  ki_decl_kind kind;
  const char *name; /* the name in the source; several declarations can have the same name */
  kj_location location;
  /* Index for side tables; indices start at 0 and have no gaps. Parameters and locals are numbered
   * in their function, and other declarations in the module. */
  uint32_t index;
  bool is_const;
  /* is_func: the PARAM takes a func. is_type: the PARAM takes a type, and type expressions can name
   * the PARAM. */
  bool is_func, is_type;
  bool is_assigned; /* VAR: assigned after its declaration */
  /* PARAM of a kernel that is a tuple: its .fields are the kernel's actual parameters */
  bool is_split;
  /* VAR without a value in its declaration; its type is the common type of all assigned values */
  bool is_open;
  ki_type_expr *type_expr;
  ki_expr *value;
  ki_attributes attributes;
  /* for a FUNCTION, this function; for a PARAM or a local, the function that contains the
   * declaration */
  ki_function *function;
  /* for a CONST that the builder has made from data: the elements in row-major order, in the
   * module's arena */
  const void *data;
  kjit_type data_element;
  int64_t extents[KJ_MAX_RANK];
  uint32_t rank;
  /* STRUCT: its fields, in the form of parameters. For a PARAM of a kernel that is a tuple: its
   * items. The items are the actual parameters of the kernel, and expressions refer only to the
   * items. */
  ki_decls fields;
  kjit_type struct_type; /* STRUCT: set by the verifier or the builder */
  bool is_guest;         /* declared in the source of a guest (verify_guest.c) */
};

enum { KI_SHAPE_ARGUMENT = '-', KI_SHAPE_OPEN = '(', KI_SHAPE_CLOSE = ')' };

struct ki_function {
  ki_decl *decl;
  kjit_module *module; /* set when the module is finished */
  bool is_kernel, is_extern;
  /* a func of lib/library in a partial module; its body was not parsed and is empty */
  bool is_header;
  /* the func was created by kjit_parse_expression, so the verifier rejects effects in it */
  bool is_expression;
  ki_decls params;
  /* How the source groups the parameters into tuples: one KI_SHAPE_ARGUMENT for each parameter,
   * with parentheses around the items in a tuple, for example "-(--(-))()". The parser sets it for
   * functions that have tuple parameters. */
  KJ_LIST(char) shape;
  bool has_tuples;
  /* the kernel's parameters in the source that are tuples, without nested tuples; the printer needs
   * their names */
  ki_decls tuples;
  /* all LET, VAR, SHARED, LOCAL and LOOP declarations in the body, in order */
  ki_decls locals;
  ki_type_expr *result; /* annotation or NULL */
  ki_attributes attributes;
  ki_stmts body;
  /* the number of parameters and locals, which is greater than all their indices */
  uint32_t local_count;
  /* extern: the code that kjit_bind_extern has attached, or NULL */
  const struct ki_bound_extern *bound;
  /* The built-in, if this object is the application's handle of a built-in; of the other fields,
   * only .decl and .module are then set. NULL for the functions in a module. */
  const ki_builtin *builtin;
};

/* Returns the minimum number of arguments in a call. Trailing parameters that have a default are
 * optional. */
static inline size_t ki_least_arguments(const ki_function *function)
{
  size_t count = function->params.count;
  while (count && function->params.items[count - 1]->value) count--;
  return count;
}

/* A handle of a built-in, which the application has requested as a func of a module. */
typedef struct ki_builtin_func {
  ki_decl decl;
  ki_function function;
  struct ki_builtin_func *next;
} ki_builtin_func;

/* The kind of code that the application provides for an extern func. */
typedef enum ki_code_kind {
  KJ_CODE_NONE,
  KJ_CODE_PTX,
  KJ_CODE_BITCODE,
  KJ_CODE_LLVM_TEXT,
  KJ_CODE_LINKED
} ki_code_kind;
/* A file that the GPU linker combines with a kernel. */
typedef struct ki_linked_code {
  kjit_link_format format; /* not DETECT */
  bool has_includes;       /* it is CUDA C that includes other files */
  const char *name, *options;
  const char *data; /* followed by a 0 byte */
  size_t size_bytes;
  /* digest of all fields, including the name, because debug information contains the name */
  uint64_t digest[2];
} ki_linked_code;
typedef struct ki_bound_extern {
  void (*host_function)(void); /* code for the CPU, or NULL */
  ki_code_kind kind;           /* kind of the code for GPUs */
  const char *code;            /* followed by a 0 byte; LINKED: NULL */
  size_t size_bytes;
  uint64_t digest[2]; /* digest of the GPU code */
  /* LINKED: the function name in the linked files, and these files */
  const char *symbol;
  const ki_linked_code *linked;
  size_t linked_count;
} ki_bound_extern;

/* ---- statements ---- */

typedef enum ki_stmt_kind {
  /* let, var: .decls and .value. Several decls destructure the value. A NULL value means vars
   * without a value. */
  KJ_STMT_DECLARE,
  KJ_STMT_STORAGE, /* shared, local: .decls[0] */
  /* .places .op .value. If there are several places (lvalues), the items of the value are assigned
   * to them, and .op is STORE. */
  KJ_STMT_ASSIGN,
  KJ_STMT_EVALUATE, /* .value: a call */
  KJ_STMT_IF,       /* .value .body .otherwise */
  KJ_STMT_WHILE,    /* .value .body .attributes */
  /* .decls loop variables; .range; .args: 1 to 3 for RANGE, the sequence for ITEMS, otherwise the
   * extents; .body; .attributes */
  KJ_STMT_FOR,
  KJ_STMT_BREAK,
  KJ_STMT_CONTINUE,
  KJ_STMT_RETURN, /* .value may be NULL */
  KJ_STMT_ASSERT, /* .value .message */
  KJ_STMT_RAISE,  /* .message */
  KJ_STMT_PRINT   /* .args */
} ki_stmt_kind;

/* ITEMS: the loop iterates over the items of a value instead of a range. */
typedef enum ki_range { KJ_RANGE, KJ_GRID_RANGE, KJ_BLOCK_RANGE, KJ_ITEMS } ki_range;
enum { KJ_RANGE_COUNT = 3 }; /* number of ranges that have a name */
extern const char *const ki_range_names[KJ_RANGE_COUNT];
/* Returns whether the loop distributes its iterations over threads. */
static inline bool ki_is_shared_out(ki_range range)
{
  return range == KJ_GRID_RANGE || range == KJ_BLOCK_RANGE;
}

struct ki_stmt {
  ki_stmt_kind kind;
  kj_location location;
  ki_decls decls;
  ki_exprs places, args;
  kjit_op op;
  ki_expr *value;
  const char *message;
  ki_range range;
  ki_stmts body, otherwise;
  ki_attributes attributes;
};

/* ---- modules ---- */

typedef struct ki_import {
  const char *name;
  kj_location location;
  /* index of the importing source. The import's location can be in another source, if a front end
   * generated the text. */
  uint32_t importer;
} ki_import;

/* How to link a module when one of its kernels is compiled (link_later.c). Until then the module
 * uses the declarations of its first base. */
typedef struct ki_later ki_later;
/* The data with which a partial module can be parsed completely (ki_get_whole). */
typedef struct ki_partial ki_partial;

struct kjit_module {
  kj_arena arena;
  kjit_context *context; /* not owned */
  ki_types *types;       /* table of types of the context */
  kj_sources sources;    /* source 0 is the parsed text; in a built module, it has only a name */
  /* imports that ki_read_imports has not processed yet; empty in a finished module */
  KJ_LIST(ki_import) imports;
  /* functions, constants and structs in source order; the declarations of an importing source
   * precede its imports' declarations */
  ki_decls decls;
  uint64_t parse_time_ns;
  _Atomic uint32_t references;
  void *kernels; /* the kjit_kernel objects, which the runtime creates when they are needed */
  void (*release_kernels)(kjit_module *module);
  ki_builtin_func *builtin_funcs; /* protected by the context's mutex; freed with the module */
  kjit_module *previous, *next;   /* neighbours in the context's list of published modules */
  bool is_published;
  /* The context was destroyed before the application released the module. Only the fields is_left,
   * forks, remains, references and context are then valid. forks is the value that kj_forks had
   * when the context was destroyed. */
  bool is_left;
  uint32_t forks;
  kj_remains remains;
  /* linked from several modules, so several declarations can have the same name */
  bool is_linked;
  /* the module contains the code of built-ins (ki_text.builtin_func); the nodes of this code have
   * no locations, so messages and debug information refer to the call of the built-in */
  bool is_builtin_code;
  bool has_tensor_copies; /* the module contains tensor copies, whose descriptors are large
                           * parameters */
  /* some call passes, as an argument, a built-in that modifies an lvalue or returns its address */
  bool hands_over_writer;
  bool
    /* the module contains a declaration of guest code, so the whole module is compiled as guest
     * code */
    has_guest;
  /* The modules from which this module was made. The module retains these modules, because it
   * shares their texts and data. The list is in the arena. */
  KJ_LIST(kjit_module *) bases;
  ki_later *later; /* allocated in the arena; NULL means that the module is already linked */
  /* In the arena; NULL means that the module has the bodies of all its funcs. The partial module of
   * an algorithm has only the headers of the funcs of lib/library that its own text names. */
  ki_partial *partial;
  /* Allocated with malloc. A string that determines the module's contents for a given build of
   * libkjit, or NULL if there is none. Keys of the disk cache contain it instead of the canonical
   * text of the declarations that a kernel uses. */
  char *recipe;
};

typedef struct ki_attribute_info {
  const char *name, *doc;
  int least, most;
  unsigned places;
} ki_attribute_info;
enum {
  KJ_PLACE_KERNEL = 1,
  KJ_PLACE_FUNC = 2,
  KJ_PLACE_LOOP = 4,
  KJ_PLACE_ARRAY = 8,
  KJ_PLACE_STRUCT = 16,
  KJ_PLACE_PARAMETER = 32
};
typedef enum ki_attribute_id {
#define X(name, text, least, most, places, doc) KJ_ATTRIBUTE_##name,
#include "ir/attributes.def"
#undef X
  KJ_ATTRIBUTE_COUNT
} ki_attribute_id;
extern const ki_attribute_info ki_attribute_table[KJ_ATTRIBUTE_COUNT];
/* The attributes that the application can set with kjit_parse_options.rules. */
enum { KI_RULE_COUNT = 2, KI_ALL_RULES = KJIT_RULE_WRAP | KJIT_RULE_NUMBA };
typedef struct ki_rule {
  uint32_t rule;
  ki_attribute_id attribute;
} ki_rule;
extern const ki_rule ki_rule_table[KI_RULE_COUNT];
/* Returns the attribute with this name, or NULL if there is none. */
const ki_attribute_info *ki_find_attribute(const char *name);
/* Returns the first attribute with this id in the list, or NULL. */
const ki_attribute *ki_get_attribute(const ki_attributes *attributes, ki_attribute_id id);
/* Returns the func that the function's `@identity` attribute names, or NULL. */
const ki_decl *ki_find_identity(const ki_function *function);
/* Returns the func that the function's attribute IDENTITY or JVP names, or NULL. */
const ki_decl *ki_find_named_func(const ki_function *function, ki_attribute_id id);
/* Returns whether the built-in maps a func to its derivative. */
bool ki_is_derivative(const ki_builtin *builtin);
/* Returns whether negative indices count from the end because of the attributes `@wrap` or
 * `@numba`. */
bool ki_wraps_indices(const ki_attributes *attributes);
/* Returns whether a call of the function is a value: the function has a result type, or one of its
 * `return` statements has a value. */
bool ki_gives_value(const ki_function *function);

typedef struct ki_op_info {
  const char *name, *text;
  int precedence;
  enum {
    KJ_OP_ARITH,
    KJ_OP_DIVIDE,
    KJ_OP_INT,
    KJ_OP_SHIFT,
    KJ_OP_POWER,
    KJ_OP_COMPARE,
    KJ_OP_LOGIC,
    KJ_OP_UNARY,
    KJ_OP_STORE
  } class_;
} ki_op_info;
extern const ki_op_info ki_op_table[KJIT_OP_COUNT];

#endif
