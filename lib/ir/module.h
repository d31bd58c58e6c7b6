/* The untyped kernel IR, which the parser and the builder create. A finished module is immutable,
 * so any thread can read it.
 *
 * All nodes are in the module's arena. An expression has only one parent, but many nodes can refer
 * to a declaration. Local names are resolved when their node is created. ki_finish_module resolves
 * the names of the module's functions and constants, so these can be used before their
 * declaration. */
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

/* ---- types as written in the source ---- */

typedef enum ki_type_expr_kind {
  /* .type: a scalar, vector, struct or pointer, or an array of these with [:] dimensions. It does
   * not depend on the caller. */
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
  KJ_TYPE_NAMED,    /* the name of a struct, .name; the verifier replaces it by FIXED */
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
  /* .type_expr: a type that is the callee of a cast, the argument of zero, or an operand of
   * `dtype(x) == f32` */
  KJ_EXPR_TYPE,
  KJ_EXPR_UNARY,  /* .op .x */
  KJ_EXPR_BINARY, /* .op .x .y; also comparisons, `and` and `or` */
  KJ_EXPR_COND,   /* .x ? .y : .z */
  /* .x callee (a DECL of a function or func parameter, a BUILTIN or a TYPE); .args */
  KJ_EXPR_CALL,
  KJ_EXPR_INDEX,    /* .x [ .args ]; each argument can be a SLICE */
  KJ_EXPR_SLICE,    /* .x : .y : .z, each may be NULL */
  KJ_EXPR_FIELD,    /* .x . .name */
  KJ_EXPR_TUPLE,    /* .args */
  KJ_EXPR_AGGREGATE /* .args: `{ 1, 2 }`, which can be nested; only in the value of a constant */
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
  /* The value. A weak integer can be any number of u64 or i64, but a literal is never negative. */
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
  KJ_DECL_LET,    /* .value; NULL if it is one of several names in a destructuring statement */
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
  const char *name; /* the name in the source; the printer makes names unique */
  kj_location location;
  /* Index for side tables; indices start at 0 and have no gaps. Parameters and locals are numbered
   * in their function, and other declarations in the module. */
  uint32_t index;
  bool is_const;
  /* is_func: the PARAM takes a func. is_type: the PARAM takes a type, which type expressions can
   * then name. */
  bool is_func, is_type;
  bool is_assigned; /* VAR: assigned after its declaration */
  /* PARAM of a kernel that is a tuple: its .fields are the kernel's actual parameters */
  bool is_split;
  /* VAR without a value in its declaration; its type is the common type of its assignments */
  bool is_open;
  ki_type_expr *type_expr;
  ki_expr *value;
  ki_attributes attributes;
  /* for a FUNCTION, itself; for a PARAM or a local, the function that contains it */
  ki_function *function;
  /* CONST that the builder has made from data: elements in row-major order, in the module's
   * arena */
  const void *data;
  kjit_type data_element;
  int64_t extents[KJ_MAX_RANK];
  uint32_t rank;
  /* STRUCT: its fields, in the form of parameters. PARAM of a kernel that is a tuple: its items,
   * which are the actual parameters; expressions refer only to the items. */
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
  /* kjit_parse_expression has created the func, which must not call functions that have effects */
  bool is_expression;
  ki_decls params;
  /* The parameters as written: one KI_SHAPE_ARGUMENT for each, with tuples in parentheses, for
   * example "-(--(-))()". The parser sets it for functions that have tuple parameters. */
  KJ_LIST(char) shape;
  bool has_tuples;
  /* the outermost tuples among the parameters as written, whose names are needed */
  ki_decls tuples;
  /* all LET, VAR, SHARED, LOCAL and LOOP declarations of the body, in order */
  ki_decls locals;
  ki_type_expr *result; /* annotation or NULL */
  ki_attributes attributes;
  ki_stmts body;
  /* params.count + locals.count, which is greater than all indices */
  uint32_t local_count;
  /* extern: the code that kjit_bind_extern has attached, or NULL */
  const struct ki_bound_extern *bound;
  /* Set if this object is the application's handle of a built-in; then only .decl and .module are
   * also set. NULL in the functions of a module. */
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
  uint64_t digest[2]; /* of the code */
  /* LINKED: the name of the function in the linked files, and these files */
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
  /* .places .op .value. Several places (lvalues) destructure the value, and .op is then STORE. */
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
  /* index of the importing source; its location can be in the source of a front end */
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
  ki_types *types;       /* of the context */
  kj_sources sources;    /* source 0 is the parsed text; in a built module, it has only a name */
  /* imports that ki_read_imports has not processed yet; empty in a finished module */
  KJ_LIST(ki_import) imports;
  /* functions, constants and structs in source order; the declarations of an importing source
   * precede the declarations of its imports */
  ki_decls decls;
  uint64_t parse_time_ns;
  _Atomic uint32_t references;
  void *kernels; /* the kjit_kernel objects, which the runtime creates when they are needed */
  void (*release_kernels)(kjit_module *module);
  ki_builtin_func *builtin_funcs; /* protected by the context's mutex; freed with the module */
  kjit_module *previous, *next;   /* neighbours in the context's list of published modules */
  bool is_published;
  /* The context was destroyed before the application released the module. Only the fields is_left,
   * forks, remains, references and context are then valid. forks is the value of kj_forks at that
   * time. */
  bool is_left;
  uint32_t forks;
  kj_remains remains;
  /* linked from several modules, so several declarations can have the same name */
  bool is_linked;
  /* it contains the code of built-ins (ki_text.builtin_func); its nodes have no locations, so that
   * messages and debug information refer to the call of the built-in */
  bool is_builtin_code;
  bool has_tensor_copies; /* it contains tensor copies, whose descriptors are large parameters */
  /* some call passes a built-in as an argument that modifies an lvalue or returns its address */
  bool hands_over_writer;
  bool
    /* it contains the declaration of a guest, so the whole module is compiled as guest code */
    has_guest;
  /* The modules from which this module was made. The module retains these modules, because it
   * shares their texts and data. The list is in the arena. */
  KJ_LIST(kjit_module *) bases;
  ki_later *later; /* allocated in the arena; NULL means that the module is already linked */
  /* In the arena; NULL means that the module has the bodies of all its funcs. The partial module of
   * an algorithm has only the headers of the funcs of lib/library that its own text names. */
  ki_partial *partial;
  /* Allocated with malloc. A string that determines the contents of the module for a given build of
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

/* ---- functions that create, verify and print modules ---- */

/* A struct type and a name that kjit has chosen for it. The generated sources of algorithms refer
 * to the application's structs by these names. The names distinguish types if several structs have
 * the same name, or if a declaration in lib/library has it. */
typedef struct ki_named_type {
  const char *name;
  kjit_type type;
} ki_named_type;

/* The options for parsing a text that is a single expression as a func. The caller must have
 * checked the names. */
typedef struct ki_expression {
  const char *function; /* name of the func */
  const char *const *names;
  /* the types of the names, KJIT_ANY for a name without a type; NULL if none of them has a type */
  const kjit_type *types;
  size_t count;
  /* The names are columns and can contain any characters. The tree is parsed but not verified:
   * comparisons can be chained, and names that are not columns are not resolved. */
  bool is_formula;
} ki_expression;

/* A source to parse, and its options. */
typedef struct ki_text {
  const char *name, *text;
  size_t size_bytes;
  bool is_guest;
  /* KJIT_RULE_...: attributes that the application has set as defaults */
  uint32_t rules;
  /* the texts of files that line directives name, if they are available */
  const kjit_quoted_text *quoted;
  size_t quoted_count;
  bool is_algorithm;          /* generated by runtime/algorithm */
  bool is_partial;            /* makes a partial module; only if is_algorithm */
  const ki_named_type *types; /* the structs that the text uses, under these names */
  size_t type_count;
  const ki_expression *expression; /* NULL means that the text is a module */
  /* If it is not NULL, the module consists of this func of the source `name` of lib/library, which
   * is the code of a built-in, and of the funcs that it uses. The text is not read. */
  const char *builtin_func;
} ki_text;
/* Returns whether code with this trust is guest code (untrusted). is_default is the result for
 * KJIT_TRUST_DEFAULT. */
bool ki_is_guest(kjit_trust trust, bool is_default);
/* Parses a text by recursive descent into a new module and calls ki_finish_module. On failure
 * *module is NULL, and diagnostics contains the errors. */
kjit_status ki_parse_module(kjit_context *context, ki_types *types, const ki_text *text,
                            kj_diagnostics *diagnostics, kjit_module **module);
/* Parses a text that runtime/algorithm has generated. If the module is partial, it has only the
 * headers of lib/library's funcs. Errors are reported to the context. */
kjit_status ki_parse_algorithm(kjit_context *context, const char *text, size_t size_bytes,
                               const ki_named_type *types, size_t type_count, bool is_partial,
                               kjit_module **module);
/* Maximum size of a source text. Lines and columns are 32-bit numbers. */
enum { KJ_MAX_SOURCE_BYTES = 64 << 20 };
/* maximum number of sources in a module, including the files that line directives name */
enum { KJ_MAX_SOURCES = 1000 };
/* Adds a source to the module; copies name and text. */
void ki_add_source(kjit_module *module, const ki_text *text);
/* Adds a source of lib/library; does not copy its text. */
struct kj_library_source;
void ki_add_library_source(kjit_module *module, const struct kj_library_source *source);
/* Adds a source without a text and returns its number. Line directives in the source `of` refer to
 * it by name. shown, the text for messages, can be NULL. The function copies name and shown. */
uint32_t ki_add_named_source(kjit_module *module, uint32_t of, const char *name, const char *shown,
                             size_t shown_bytes);
/* Parses a source and adds its declarations to the module. Reports errors. */
void ki_parse_source(kjit_module *module, uint32_t file, kj_diagnostics *diagnostics);
/* Parses a source that is one expression. The resulting func is the only declaration of the
 * module. */
void ki_parse_expression(kjit_module *module, uint32_t file, const ki_expression *expression,
                         kj_diagnostics *diagnostics);
/* The text of a declaration in a source, and the number of its first line. */
typedef struct ki_part {
  const char *start, *end;
  uint32_t line;
} ki_part;
/* Parses only the given declarations of a source of lib/library. In a partial module, the text of a
 * func is only its header. */
void ki_parse_parts(kjit_module *module, uint32_t file, const ki_part *parts, size_t count,
                    kj_diagnostics *diagnostics);
/* import.c: returns whether a source is the module of lib/library with this name. */
bool ki_is_of_library(const kjit_module *module, uint32_t file, const char *name);
/* import.c: finds, reads and parses the sources that are imported directly or indirectly, each
 * once. Reports errors. */
void ki_read_imports(kjit_module *module, kj_diagnostics *diagnostics);
/* import_reached.c: imports only declarations that are used, for sources that runtime/algorithm has
 * generated. A partial module gets only the headers of the funcs that its own text names. Reports
 * errors. If the module imports a source that is not in lib/library, the function has no effect and
 * returns false. */
bool ki_import_reached(kjit_module *module, kj_diagnostics *diagnostics);
/* import_reached.c: adds a source of lib/library to a new module, without the declarations that the
 * func with this name does not use. Reports errors. */
void ki_import_func(kjit_module *module, const char *source, const char *name,
                    kj_diagnostics *diagnostics);
/* partial.c: modules of algorithms that lack the bodies of lib/library's funcs. */
struct ki_partial {
  const ki_named_type *types; /* see ki_text.types */
  size_t type_count;
  bool has_grid_ranges;         /* an imported source of lib/library contains a grid_range */
  _Atomic(kjit_module *) whole; /* retained; NULL until ki_get_whole is called */
};
/* Makes the module a partial module. Must be called before its imports are read. */
void ki_begin_partial(kjit_module *module, const ki_text *text);
/* Returns the module with the bodies of all funcs. A partial module is parsed again at the first
 * call, and keeps the result. The declarations of the module's own text have the same order in
 * both. Reports errors. */
kjit_status ki_get_whole(kjit_module *module, kj_diagnostics *diagnostics, kjit_module **whole);
/* Returns the time that was spent on parsing the module, in nanoseconds. */
uint64_t ki_parse_time(const kjit_module *module);
/* Resolves built-ins and names of the module, and verifies the module: names, numbers of arguments,
 * lvalues, `break` and `return`, attributes, and features that are not supported. It is used for
 * built modules as well. If there are errors, reports them and jumps through
 * module->arena.on_failure. */
void ki_finish_module(kjit_module *module, kj_diagnostics *diagnostics);
/* Appends the canonical text of the module. */
void ki_print_module(const kjit_module *module, kj_buffer *buffer);
/* Appends the canonical text of the roots, which are different functions of the module. It contains
 * each root in order, followed by all functions, constants and structs that they use directly or
 * indirectly. A comment marks each declaration that is guest code. The text does not depend on the
 * comments, layout, order and unrelated declarations of the source. */
void ki_print_reachable(const kjit_module *module, const ki_decl *const *roots, size_t count,
                        kj_buffer *buffer);
/* Parses a type annotation. dtype() and static extents are errors. The name of a struct refers to a
 * struct of scope, which can be NULL, or otherwise to a struct of the table. A name that several
 * structs have is an error. */
kjit_status ki_parse_type(ki_types *types, const kjit_module *scope, const char *text,
                          kj_diagnostics *diagnostics, kjit_type *type);
/* Parses a module without ki_finish_module, so its names are not resolved. This is used for tests,
 * and to print sources that use unsupported features. */
kjit_status ki_read_module(ki_types *types, const char *name, const char *text, size_t size_bytes,
                           kj_diagnostics *diagnostics, kjit_module **module);
/* Parses the formula in text->expression. The result is a module with a single func that returns
 * the tree (ki_formula_tree). The module must not be used for any other purpose. */
kjit_status ki_read_formula(kjit_context *context, const ki_text *text, kj_diagnostics *diagnostics,
                            kjit_module **module);
const ki_expr *ki_formula_tree(const kjit_module *module);
/* struct_decl.c: declares the structs that a type contains in a built module, unless they are
 * already declared. */
void ki_declare_structs(kjit_module *module, kjit_type type, kj_location location);
/* struct_decl.c: declares a struct type under another name. A struct must be declared before the
 * structs that have it as a field. */
void ki_declare_struct_as(kjit_module *module, const char *name, kjit_type type);
/* Returns an empty module with one reference, or NULL when out of memory. Set arena.on_failure
 * before using its arena. */
kjit_module *ki_create_module(kjit_context *context, ki_types *types);
/* Specifies the func that replaces an open func of a module (an extern func without code). It can
 * be a func of any module. */
typedef struct ki_meaning {
  const ki_decl *open, *decl;
} ki_meaning;
enum { KI_MOST_MEANINGS = 16 };
/* derive_module.c: creates and publishes a copy of the module. The declarations of library, which
 * can be NULL, are added, and provide by name the code of open extern funcs. Then change, which can
 * be NULL, can modify the copy, report errors, and jump through the copy's arena. Reports
 * errors. */
typedef void (*ki_change)(kjit_module *copy, void *data, kj_diagnostics *diagnostics);
kjit_status ki_change_module(kjit_module *module, kjit_module *library, ki_change change,
                             void *data, kj_diagnostics *diagnostics, kjit_module **changed);
/* derive_module.c: gives a new function of the module the parameters of another function, but not
 * their defaults. */
void ki_copy_parameters(kjit_module *module, const ki_function *from, ki_function *to);
/* derived_func.c: creates a module with one additional kernel, *name, which is the adjoint of a
 * kernel with respect to the given parameters. If count is 0, these are all arrays that can contain
 * floats. Errors: MISUSE, MEMORY. */
kjit_status ki_derive_kernel(kjit_module *module, const ki_function *kernel,
                             const uint32_t *parameters, size_t count, kjit_module **derived,
                             const char **name);
/* bind_extern.c: returns whether the application has provided code for an extern func of the
 * module. */
bool ki_has_bound_extern(const kjit_module *module);
/* Appends the symbol of the function to which an extern func is bound: the function in its GPU code
 * if is_gpu, otherwise its C function. Two funcs of a module have the same symbol only if they are
 * bound to the same function in the same GPU code. */
void ki_append_extern_symbol(const ki_function *function, bool is_gpu, kj_buffer *text);
/* Checks that the module has an extern func with this name, and that all its declarations have the
 * same types. Reports errors. */
kjit_status ki_check_extern(kjit_module *module, const char *name);
/* Creates a copy of the module in which the func is bound. Copies the data to which `given`
 * points. */
kjit_status ki_bind_given(kjit_module *module, const char *name, const ki_bound_extern *given,
                          kjit_module **bound);
/* bind_linked.c: replaces symbol and linked by copies in the arena. */
void ki_copy_linked(kj_arena *arena, ki_bound_extern *given);
/* Appends the suffix of the symbols of all functions in the GPU code. */
void ki_append_extern_suffix(const ki_bound_extern *bound, kj_buffer *text);
/* link_later.c: modules that are linked when they are compiled. */
struct ki_later {
  const ki_meaning *meanings;
  size_t count;
  kjit_module *libraries[KI_MOST_MEANINGS]; /* modules that contain meanings[].decl, retained */
  size_t library_count;
};
/* derive_module.c: links base with the code of its open funcs, which can come from several modules.
 * Declarations that neither base's kernels nor these funcs use are omitted. The kernels come first,
 * in base's order. Reports errors. */
kjit_status ki_link_meanings(kjit_module *base, const ki_meaning *meanings, size_t count,
                             kj_diagnostics *diagnostics, kjit_module **linked);
/* Returns whether linking can wait until a kernel is compiled. This is not possible if the linked
 * modules have bound extern funcs. */
bool ki_can_link_later(const ki_meaning *meanings, size_t count);
/* Returns a published module that shares base's declarations and is linked when it is compiled.
 * Returns NULL when out of memory. */
kjit_module *ki_link_later(kjit_module *base, const ki_meaning *meanings, size_t count);
/* Returns the func that provides the code of an open func in a module from ki_link_later, or NULL
 * if there is none. */
const ki_function *ki_find_meaning(const kjit_module *module, const ki_decl *open);
/* Links a module from ki_link_later. `whole` is the result of ki_get_whole for its first base.
 * Reports errors. */
kjit_status ki_link_whole(const kjit_module *module, kjit_module *whole,
                          kj_diagnostics *diagnostics, kjit_module **linked);
/* Returns the kernel of `linked`, which is a result of ki_link_whole or ki_get_whole, that
 * corresponds to base's kernel. */
const ki_function *ki_find_linked_kernel(const kjit_module *base, const kjit_module *linked,
                                         const ki_decl *kernel);

/* Registers a finished module with the context. If the application does not release the module, the
 * context frees it. */
void ki_publish_module(kjit_module *module);
/* Destroys the module, even if references to it are left. */
void ki_destroy_module(kjit_module *module);

/* Returns whether the declaration is in a source of lib/library. */
static inline bool ki_is_library_decl(const kjit_module *module, const ki_decl *decl)
{
  uint32_t file = decl->location.file;
  return file < module->sources.count && module->sources.items[file].library;
}
/* Returns the function or constant with this name, or NULL. The module's own declarations take
 * precedence over those of lib/library. */
ki_decl *ki_find_decl(const kjit_module *module, const char *name);
/* Returns the func with this name that the application can pass as an argument: a func of the
 * module, or otherwise a built-in. If there is no such func, returns NULL and sets *reason to a
 * clause that explains why, for the end of an error message. *reason is NULL when out of memory. */
const ki_decl *ki_find_func(kjit_module *module, const char *name, const char **reason);
/* Returns whether a built-in can be passed to a func parameter. Returns false for built-ins that
 * take a type, a string or a func, and for built-ins that the module itself must call, such as
 * tensor copies. */
bool ki_can_hand_over(const ki_builtin *builtin);
/* Returns whether the built-in modifies its argument or returns the argument's address. */
bool ki_is_writer(const ki_builtin *builtin);

/* Determines for each array parameter of a kernel whether the kernel and the funcs that it may call
 * read or write its elements. Works on the untyped tree and is conservative: it can report too many
 * accesses. If an array is passed to a func parameter, it is assumed to be read. The array is also
 * assumed to be written if any func of the module writes to a parameter. The result is not valid
 * for calls that pass funcs of other modules. read and written have params.count elements. */
void ki_find_accesses(const kjit_module *module, const ki_function *function, bool *read,
                      bool *written);

#endif
