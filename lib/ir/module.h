/* The untyped kernel IR: what the parser and the builder make. A module is immutable once finished;
 * any thread may read it.
 *
 * Everything lives in the module's arena. Declarations are shared by reference; an expression has
 * one parent. Local names are resolved when they are made; names of functions and constants of the
 * module are resolved by ki_finish_module, so that they may be used before they are declared. */
#ifndef KJ_IR_MODULE_H
#define KJ_IR_MODULE_H

#include <kjit/module.h>
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

/* ---- types as written ---- */

typedef enum ki_type_expr_kind {
  /* .type: a scalar, vector, struct or pointer, or an array of these with [:] dimensions */
  KJ_TYPE_FIXED,
  KJ_TYPE_DTYPE,  /* dtype(.expr) */
  KJ_TYPE_VECTOR, /* vector(.element, .extents[0]) */
  /* .element with .rank `:` dimensions and .layout; only where the element is not fixed:
     dtype(A)[:, :] */
  KJ_TYPE_ARRAY,
  KJ_TYPE_STATIC_ARRAY, /* .element[.extents ...]; no extents: shared memory of the launch's size */
  KJ_TYPE_TUPLE,        /* .items */
  KJ_TYPE_POINTER,      /* .element*; only where the element is not fixed: dtype(A)* */
  KJ_TYPE_NAMED,        /* .name of a struct; the verifier turns it into FIXED */
  KJ_TYPE_PARAMETER     /* what .decl, a parameter that takes a type, is given */
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
  KJ_EXPR_NAME,   /* not resolved yet: .name. None is left in a finished module */
  /* a built-in used as a name: .builtin (threadIdx, laneid, pi, grid before its call) */
  KJ_EXPR_BUILTIN,
  /* a type used as a value: callee of a cast, argument of zero, operand of `dtype(x) == f32`:
     .type_expr */
  KJ_EXPR_TYPE,
  KJ_EXPR_UNARY,    /* .op .x */
  KJ_EXPR_BINARY,   /* .op .x .y ; compare, and, or too */
  KJ_EXPR_COND,     /* .x ? .y : .z */
  KJ_EXPR_CALL,     /* .x callee (DECL of a function or func parameter, BUILTIN, TYPE); .args */
  KJ_EXPR_INDEX,    /* .x [ .args ]; an argument may be a SLICE */
  KJ_EXPR_SLICE,    /* .x : .y : .z, each may be NULL */
  KJ_EXPR_FIELD,    /* .x . .name */
  KJ_EXPR_TUPLE,    /* .args */
  KJ_EXPR_AGGREGATE /* .args: `{ 1, 2 }`, rows of it too; only as the value of a constant */
} ki_expr_kind;

/* Trees are no higher, blocks nest no deeper than this: every pass may recurse. */
enum { KJ_MAX_HEIGHT = 400, KJ_MAX_NESTING = 200 };

struct ki_expr {
  ki_expr_kind kind;
  kjit_op op;
  uint32_t height; /* of the tree below, from 1 */
  kj_location location;
  ki_expr *x, *y, *z;
  ki_exprs args;
  ki_decl *decl;
  const ki_builtin *builtin;
  ki_type_expr *type_expr;
  kjit_type type;
  /* weak integers up to the range of u64 and i64 together; literals themselves are never negative
   */
  __int128 integer;
  double number;
  const char *name;
  bool is_enclosed; /* in parentheses: of formulas only */
};

/* ---- declarations ---- */

typedef enum ki_decl_kind {
  KJ_DECL_FUNCTION, /* kernel, func: .function */
  /* module constant: .type_expr may be NULL, .value an expression or an AGGREGATE, or .data */
  KJ_DECL_CONST,
  KJ_DECL_STRUCT, /* .fields, .attributes, .struct_type */
  KJ_DECL_PARAM,  /* .is_const, .type_expr or NULL, .value default or NULL; .is_func, .is_type */
  KJ_DECL_LET,    /* .value, or NULL when one of several names of a destructuring statement */
  KJ_DECL_VAR,    /* the same; .type_expr or NULL */
  KJ_DECL_SHARED, /* .type_expr: a STATIC_ARRAY or a scalar */
  KJ_DECL_LOCAL,
  KJ_DECL_LOOP /* variable of a for */
} ki_decl_kind;

typedef struct ki_attribute {
  const struct ki_attribute_info *info; /* row of attributes.def */
  kj_location location;
  ki_exprs values;
} ki_attribute;
typedef KJ_LIST(ki_attribute) ki_attributes;

struct ki_decl {
  ki_decl_kind kind;
  const char *name; /* as given; printed names are made unique by the printer */
  kj_location location;
  /* parameters and locals: dense from 0 within their function, for side tables; module level: dense
   * in the module */
  uint32_t index;
  bool is_const;
  bool is_func, is_type; /* PARAM: takes a func; takes a type, which expressions then name */
  bool is_assigned;      /* VAR: assigned after its declaration */
  bool is_split;         /* PARAM of a kernel: a tuple, .fields are parameters instead of it */
  bool is_open; /* VAR: declared without a value; its type is what its assignments join to */
  ki_type_expr *type_expr;
  ki_expr *value;
  ki_attributes attributes;
  ki_function *function; /* FUNCTION: itself; PARAM and locals: the owner */
  /* CONST made from data (builder): row-major elements in the module's arena */
  const void *data;
  kjit_type data_element;
  int64_t extents[KJ_MAX_RANK];
  uint32_t rank;
  /* STRUCT: PARAM-like decls. PARAM of a kernel that is a tuple: its items, which are the
   * parameters instead of it: expressions name those only */
  ki_decls fields;
  kjit_type struct_type; /* STRUCT: set by the verifier or the builder */
  bool is_guest;         /* a declaration of the module from a guest source, see verify_guest.c */
};

enum { KI_SHAPE_ARGUMENT = '-', KI_SHAPE_OPEN = '(', KI_SHAPE_CLOSE = ')' };

struct ki_function {
  ki_decl *decl;
  kjit_module *module; /* set when the module is finished */
  bool is_kernel, is_extern;
  bool is_expression; /* of kjit_parse_expression: it calls nothing that has an effect */
  ki_decls params;
  /* The parameters as they were written, a sign each, tuples in parentheses: "-(--(-))()". Of
   * functions that were parsed; who has no tuples needs none of it. */
  KJ_LIST(char) shape;
  bool has_tuples;
  ki_decls tuples; /* of these parameters the tuples, for their names; not those in tuples */
  /* every LET, VAR, SHARED, LOCAL, LOOP of the body, in order of declaration */
  ki_decls locals;
  ki_type_expr *result; /* annotation or NULL */
  ki_attributes attributes;
  ki_stmts body;
  uint32_t local_count;                /* params.count + locals.count: decl->index is below it */
  const struct ki_bound_extern *bound; /* extern: what kjit_bind_extern gave; NULL: nothing yet */
  /* What the host handles a built-in by: .decl and .module alone; NULL: a function of the module.
   */
  const ki_builtin *builtin;
};

/* Parameters that a call must give: those before the last ones with a default. */
static inline size_t ki_least_arguments(const ki_function *function)
{
  size_t count = function->params.count;
  while (count && function->params.items[count - 1]->value) count--;
  return count;
}

/* A built-in that somebody has asked for as a func of a module. */
typedef struct ki_builtin_func {
  ki_decl decl;
  ki_function function;
  struct ki_builtin_func *next;
} ki_builtin_func;

/* What an extern func is, given by the host. Lives in a module's arena. */
typedef enum ki_code_kind {
  KJ_CODE_NONE,
  KJ_CODE_PTX,
  KJ_CODE_BITCODE,
  KJ_CODE_LLVM_TEXT,
  KJ_CODE_LINKED
} ki_code_kind;
/* A file that a GPU's linker puts together with the kernel. */
typedef struct ki_linked_code {
  kjit_link_format format; /* not DETECT */
  bool has_includes;       /* CUDA C that depends on other files */
  const char *name, *options;
  const char *data; /* followed by a 0 byte */
  size_t size_bytes;
  uint64_t digest[2]; /* of all of it: names are in debug information */
} ki_linked_code;
typedef struct ki_bound_extern {
  void (*host_function)(void); /* CPU; NULL: none */
  ki_code_kind kind;           /* of the code for GPUs */
  const char *code;            /* followed by a 0 byte; LINKED: NULL */
  size_t size_bytes;
  uint64_t digest[2]; /* of the code */
  /* LINKED: the function's name in the code, and the code */
  const char *symbol;
  const ki_linked_code *linked;
  size_t linked_count;
} ki_bound_extern;

/* ---- statements ---- */

typedef enum ki_stmt_kind {
  /* let, var: .decls (several: destructures .value), .value; NULL: vars without one */
  KJ_STMT_DECLARE,
  KJ_STMT_STORAGE,  /* shared, local: .decls[0] */
  KJ_STMT_ASSIGN,   /* .places .op .value (several places: destructures; op STORE then) */
  KJ_STMT_EVALUATE, /* .value: a call */
  KJ_STMT_IF,       /* .value .body .otherwise */
  KJ_STMT_WHILE,    /* .value .body .attributes */
  /* .decls loop variables, .range, .args (1..3 for range; ITEMS: the value; else extents), .body,
     .attributes */
  KJ_STMT_FOR,
  KJ_STMT_BREAK,
  KJ_STMT_CONTINUE,
  KJ_STMT_RETURN, /* .value may be NULL */
  KJ_STMT_ASSERT, /* .value .message */
  KJ_STMT_RAISE,  /* .message */
  KJ_STMT_PRINT   /* .args */
} ki_stmt_kind;

/* ITEMS: what the loop goes through is a value and no range. */
typedef enum ki_range { KJ_RANGE, KJ_GRID_RANGE, KJ_BLOCK_RANGE, KJ_ITEMS } ki_range;
enum { KJ_RANGE_COUNT = 3 }; /* of those with a name */
extern const char *const ki_range_names[KJ_RANGE_COUNT];
/* Whether threads share out the iterations. */
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
  uint32_t importer; /* the source that imports; location may name a front end's */
} ki_import;

/* What a module is linked from when somebody compiles one of its kernels; its first base has the
 * declarations. */
typedef struct ki_later ki_later;

struct kjit_module {
  kj_arena arena;
  kjit_context *context; /* not owned */
  ki_types *types;       /* of the context */
  kj_sources sources;    /* file 0 is the text parsed, or the builder's module name */
  /* what ki_read_imports has not brought in: none are left in a finished module */
  KJ_LIST(ki_import) imports;
  /* functions, constants, structs in order; those of imported sources behind those of the importing
   * one */
  ki_decls decls;
  uint64_t parse_time_ns;
  _Atomic uint32_t references;
  void *kernels; /* kjit_kernel objects, made by the runtime on demand */
  void (*release_kernels)(kjit_module *module);
  ki_builtin_func *builtin_funcs; /* under the context's mutex; they stay as long as the module */
  kjit_module *previous, *next;   /* in the context's list of published modules */
  bool is_published;
  /* its context has ended before the host's release: nothing but these, references and context
   * means anything any more; forks: kj_forks then */
  bool is_left;
  uint32_t forks;
  kj_remains remains;
  bool is_linked;         /* of several modules: names may be there twice */
  bool has_tensor_copies; /* somewhere: their descriptors are large parameters */
  /* a built-in that changes a place, or gives its address away, is an argument somewhere */
  bool hands_over_writer;
  bool has_guest; /* some declaration is a guest's: all of it is compiled as guests' code is */
  /* that it was made from, retained; their texts and data are its own too. In its arena */
  KJ_LIST(kjit_module *) bases;
  ki_later *later; /* in its arena; NULL: it is whole */
  /* malloc'd: a text that decides all of it, given the build of libkjit; NULL: none is known. The
   * key of the disk cache has it in place of the canonical text of what a kernel reaches */
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
/* The attributes that a host asks for with kjit_parse_options.rules. */
enum { KI_RULE_COUNT = 2, KI_ALL_RULES = KJIT_RULE_WRAP | KJIT_RULE_NUMBA };
typedef struct ki_rule {
  uint32_t rule;
  ki_attribute_id attribute;
} ki_rule;
extern const ki_rule ki_rule_table[KI_RULE_COUNT];
/* NULL: none of that name. */
const ki_attribute_info *ki_find_attribute(const char *name);
/* The attribute among those given, or NULL. */
const ki_attribute *ki_get_attribute(const ki_attributes *attributes, ki_attribute_id id);
/* The func that `@identity` of this one names, or NULL. */
const ki_decl *ki_find_identity(const ki_function *function);
/* The func that an attribute of the function names, IDENTITY or JVP. NULL: it has none. */
const ki_decl *ki_find_named_func(const ki_function *function, ki_attribute_id id);
/* It makes a func of a func: its derivative. */
bool ki_is_derivative(const ki_builtin *builtin);
/* Whether negative indices count from the end: `@wrap`, or `@numba`. */
bool ki_wraps_indices(const ki_attributes *attributes);
/* Whether a call of it is a value: it has a result type, or returns one somewhere. */
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

/* ---- the parts that make, check and print modules ---- */

/* A struct type under a name of kjit's own. The texts of algorithms name the application's structs
 * so: several of these may have one name, or that of a declaration in lib/library. */
typedef struct ki_named_type {
  const char *name;
  kjit_type type;
} ki_named_type;

/* How a text that is one expression becomes a func; the names are checked. */
typedef struct ki_expression {
  const char *function; /* its name */
  const char *const *names;
  const kjit_type *types; /* KJIT_ANY: none; NULL: all of them */
  size_t count;
  /* The names are columns, which can have any characters. The tree is read and not verified:
   * comparisons chain, and names that are no columns stay as they are. */
  bool is_formula;
} ki_expression;

/* A source as somebody hands it over. */
typedef struct ki_text {
  const char *name, *text;
  size_t size_bytes;
  bool is_guest;
  uint32_t rules;                 /* KJIT_RULE_...: defaults that the host gives */
  const kjit_quoted_text *quoted; /* what its line directives name, where the host has the texts */
  size_t quoted_count;
  bool is_algorithm;          /* runtime/algorithm has written it */
  const ki_named_type *types; /* structs that the text uses by these names */
  size_t type_count;
  const ki_expression *expression; /* NULL: the text is that of a module */
} ki_text;
/* Whether a trust that somebody has given is that of a guest; is_default: what DEFAULT is. */
bool ki_is_guest(kjit_trust trust, bool is_default);
/* Text to a finished module: parse (recursive descent straight into the arena), then
 * ki_finish_module. On failure *module is NULL and diagnostics say why. */
kjit_status ki_parse_module(kjit_context *context, ki_types *types, const ki_text *text,
                            kj_diagnostics *diagnostics, kjit_module **module);
/* The same of a text that runtime/algorithm has written. Reports to the context. */
kjit_status ki_parse_algorithm(kjit_context *context, const char *text, size_t size_bytes,
                               const ki_named_type *types, size_t type_count, kjit_module **module);
/* A source is a program somebody wrote or emitted; columns and lines are 32 bits. */
enum { KJ_MAX_SOURCE_BYTES = 64 << 20 };
enum { KJ_MAX_SOURCES = 1000 }; /* of a module, those among them that line directives name */
/* Another source of the module; name and text are copied. */
void ki_add_source(kjit_module *module, const ki_text *text);
/* Another source that kjit brings along: its text is not copied. */
struct kj_library_source;
void ki_add_library_source(kjit_module *module, const struct kj_library_source *source);
/* Another source without a text, which directives of the source `of` name: its number. shown may be
 * NULL; it and name are copied. */
uint32_t ki_add_named_source(kjit_module *module, uint32_t of, const char *name, const char *shown,
                             size_t shown_bytes);
/* The declarations of a source into the module. Errors are reported. */
void ki_parse_source(kjit_module *module, uint32_t file, kj_diagnostics *diagnostics);
/* The func that the expression in a source is, the only declaration of the module. */
void ki_parse_expression(kjit_module *module, uint32_t file, const ki_expression *expression,
                         kj_diagnostics *diagnostics);
/* A declaration in the text of a source, from the line on which it begins. */
typedef struct ki_part {
  const char *start, *end;
  uint32_t line;
} ki_part;
/* The same of some declarations only, of a source that kjit brings along. */
void ki_parse_parts(kjit_module *module, uint32_t file, const ki_part *parts, size_t count,
                    kj_diagnostics *diagnostics);
/* import.c: whether a source is the module of lib/library of that name. */
bool ki_is_of_library(const kjit_module *module, uint32_t file, const char *name);
/* import.c: finds, reads and parses what the module imports, and what that imports, each source
 * once. Errors are reported. */
void ki_read_imports(kjit_module *module, kj_diagnostics *diagnostics);
/* import_reached.c: of what a text of kjit's algorithms imports, the declarations that it uses.
 * Errors are reported. False, and nothing is done: it imports what kjit does not bring along. */
bool ki_import_reached(kjit_module *module, kj_diagnostics *diagnostics);
/* Resolves module-level names and built-ins, then verifies: names, arity where known, places, break
 * and return, attributes, what is not supported yet. The builder ends here too. Jumps through
 * module->arena.on_failure on errors after reporting them. */
void ki_finish_module(kjit_module *module, kj_diagnostics *diagnostics);
/* Canonical text of a module, or of one type expression or expression for messages. */
void ki_print_module(const kjit_module *module, kj_buffer *buffer);
/* Appends the canonical text of the roots, which are functions of the module, none twice: each root
 * in order, then every function, constant and struct that they use, directly or through others. A
 * declaration of a guest has a comment before it that says so. The text does not depend on
 * comments, layout, order and on the other declarations of the module. */
void ki_print_reachable(const kjit_module *module, const ki_decl *const *roots, size_t count,
                        kj_buffer *buffer);
/* A type annotation as text: the same parser, but dtype() and static extents are errors. A struct's
 * name is that of a struct of scope (may be NULL), else that of a struct of the table. Several
 * structs of one name in either are an error. */
kjit_status ki_parse_type(ki_types *types, const kjit_module *scope, const char *text,
                          kj_diagnostics *diagnostics, kjit_type *type);
/* Parses without ki_finish_module: names of the module stay unresolved. For printing what is not
 * supported yet, and for tests. */
kjit_status ki_read_module(ki_types *types, const char *name, const char *text, size_t size_bytes,
                           kj_diagnostics *diagnostics, kjit_module **module);
/* Reads a formula, text->expression: a module that nobody may use, whose only func returns the
 * tree, see ki_formula_tree. */
kjit_status ki_read_formula(kjit_context *context, const ki_text *text, kj_diagnostics *diagnostics,
                            kjit_module **module);
const ki_expr *ki_formula_tree(const kjit_module *module);
/* struct_decl.c: declares the structs that a type of the table is made of, where the module does
 * not yet: for modules that are built. */
void ki_declare_structs(kjit_module *module, kjit_type type, kj_location location);
/* struct_decl.c: declares a struct type under another name than its own. Of several, those that
 * others have as fields come first. */
void ki_declare_struct_as(kjit_module *module, const char *name, kjit_type type);
/* An empty module with one reference; NULL when out of memory. Set arena.on_failure before its
 * arena is used. */
kjit_module *ki_create_module(kjit_context *context, ki_types *types);
/* What an open func of a module stands for: a func of any other module. */
typedef struct ki_meaning {
  const ki_decl *open, *decl;
} ki_meaning;
enum { KI_MOST_MEANINGS = 16 };
/* derive_module.c: a published module like module, in which what module leaves open (extern
 * declarations without a meaning) has the meaning that library (may be NULL) gives it by its name,
 * and library's declarations are there too; then changed by change (may be NULL), which may report
 * errors and jump through the copy's arena. Errors are reported. */
typedef void (*ki_change)(kjit_module *copy, void *data, kj_diagnostics *diagnostics);
kjit_status ki_change_module(kjit_module *module, kjit_module *library, ki_change change,
                             void *data, kj_diagnostics *diagnostics, kjit_module **changed);
/* derive_module.c: gives a new function of the module the parameters of another one, without their
 * defaults. */
void ki_copy_parameters(kjit_module *module, const ki_function *from, ki_function *to);
/* derived_func.c: a new module in which one more kernel, *name, is the adjoint of a kernel by these
 * parameters; count 0: by all arrays that may hold floats. Errors: MISUSE, MEMORY. */
kjit_status ki_derive_kernel(kjit_module *module, const ki_function *kernel,
                             const uint32_t *parameters, size_t count, kjit_module **derived,
                             const char **name);
/* bind_extern.c: whether the application has given code for an extern func of the module. */
bool ki_has_bound_extern(const kjit_module *module);
/* The symbol by which compiled code knows what an extern func is bound to. is_gpu: its code for
 * GPUs, else its C function. Two funcs of a module have the same symbol only if they are bound to
 * the same function of the same code for GPUs. */
void ki_append_extern_symbol(const ki_function *function, bool is_gpu, kj_buffer *text);
/* Whether there is such an extern func, and only one of its types. Errors are reported. */
kjit_status ki_check_extern(kjit_module *module, const char *name);
/* A copy of the module in which the func is bound. What given points to is copied. */
kjit_status ki_bind_given(kjit_module *module, const char *name, const ki_bound_extern *given,
                          kjit_module **bound);
/* bind_linked.c: replaces symbol and linked by copies in the arena. */
void ki_copy_linked(kj_arena *arena, ki_bound_extern *given);
/* The end of the symbols of all functions in the code for GPUs. */
void ki_append_extern_suffix(const ki_bound_extern *bound, kj_buffer *text);
/* link_later.c: modules that are linked where they are compiled. */
struct ki_later {
  const ki_meaning *meanings;
  size_t count;
  kjit_module *libraries[KI_MOST_MEANINGS]; /* of the meanings, retained */
  size_t library_count;
};
/* derive_module.c: base with the meanings of its open funcs, of however many modules; what base's
 * kernels and these funcs do not reach is left out. The kernels come first, in base's order. Errors
 * are reported. */
kjit_status ki_link_meanings(kjit_module *base, const ki_meaning *meanings, size_t count,
                             kj_diagnostics *diagnostics, kjit_module **linked);
/* Whether all that is asked of a kernel before it is compiled is in base. */
bool ki_can_link_later(const ki_meaning *meanings, size_t count);
/* A published module that shares base's declarations, and is linked where it is compiled. NULL: out
 * of memory. */
kjit_module *ki_link_later(kjit_module *base, const ki_meaning *meanings, size_t count);
/* What an open func of such a module stands for; NULL: of any other. */
const ki_function *ki_find_meaning(const kjit_module *module, const ki_decl *open);
/* The kernel of base in what ki_link_meanings has made of it. */
const ki_function *ki_find_linked_kernel(const kjit_module *base, const kjit_module *linked,
                                         const ki_decl *kernel);

/* Hands a finished module to the host: from now on the context frees it if the host does not. */
void ki_publish_module(kjit_module *module);
/* Whatever the count of references says. */
void ki_destroy_module(kjit_module *module);

/* Whether lib/library declares it. */
static inline bool ki_is_library_decl(const kjit_module *module, const ki_decl *decl)
{
  uint32_t file = decl->location.file;
  return file < module->sources.count && module->sources.items[file].library;
}
/* The function or constant named, or NULL. One of the module's own comes before one of
 * lib/library. */
ki_decl *ki_find_decl(const kjit_module *module, const char *name);
/* The func of that name that a host may hand over: one of the module, or else a built-in. NULL:
 * there is none, and *reason says why, as the end of a sentence that says so; NULL: out of memory.
 */
const ki_decl *ki_find_func(kjit_module *module, const char *name, const char **reason);
/* Whether a built-in can be handed to a func parameter: the others take a type or a text, or the
 * module has to say that it is called. */
bool ki_can_hand_over(const ki_builtin *builtin);
/* Whether it changes the place that it is given, or gives its address away. */
bool ki_is_writer(const ki_builtin *builtin);

/* What a kernel, and the funcs it may call, do with the elements of each array parameter;
 * conservative: what is handed to a func parameter is read, and written where any func of the
 * module writes to a parameter (so a func of another module must not be an argument). read and
 * written have params.count entries. Needs no types: made on the untyped tree. */
void ki_find_accesses(const kjit_module *module, const ki_function *function, bool *read,
                      bool *written);

#endif
