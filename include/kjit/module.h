/* kjit/module.h: types; modules from text; the builder. See status.h for the rules that hold for
 * every function. */
#ifndef KJIT_MODULE_H
#define KJIT_MODULE_H

#include <kjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* immutable once made: parsed text or a finished builder */
typedef struct kjit_module kjit_module;
typedef struct kjit_builder kjit_builder; /* a module under construction */
/* one kernel of a module, untyped; owns its specializations */
typedef struct kjit_kernel kjit_kernel;
typedef struct kjit_function kjit_function; /* one func of a module: an argument of a kernel */

/* ---- types: small values; equal types have equal values within a context ---- */

/* A type: one of the constants below, or what a function below has given. */
typedef uint32_t kjit_type;
/* Scalar types and what stands in the place of a type; further types are made by the functions
 * below. */
enum {
  KJIT_ANY = 0, /* no annotation: the type of the argument */
#define KJIT_ROW(name, text, size, class_, code, bits) KJIT_##name,
#include <kjit/types.def>
#undef KJIT_ROW
  KJIT_SCALAR_COUNT, /* one past the last scalar */
  /* no value: what a func without a result returns, and a type that could not be made */
  KJIT_VOID = KJIT_SCALAR_COUNT,
  KJIT_FUNC,            /* a parameter that takes a func */
  KJIT_TYPE,            /* a parameter that takes a type */
  KJIT_INDEX = KJIT_I64 /* extents and positions: i64 to every typing rule */
};

/* How an array's elements lie in memory. */
typedef enum kjit_layout {
  KJIT_LAYOUT_STRIDED, /* in any way: a stride for each dimension */
  KJIT_LAYOUT_C,       /* without gaps, the last index runs fastest */
  KJIT_LAYOUT_F        /* without gaps, the first index runs fastest */
} kjit_layout;

/* An array of rank dimensions, 0 to 8. element: a scalar, vector, struct or pointer. read_only not
 * 0: `const f32[:]`. Returns KJIT_VOID and leaves a diagnostic when element is none of these or
 * rank is too large. */
KJIT_API kjit_type kjit_get_array_type(kjit_context *context, kjit_type element, uint32_t rank,
                                       kjit_layout layout, int read_only);

/* A pointer to one or more elements of that type, `f32*`; element and errors as for arrays. As an
 * argument of a kernel it is a device address (for the CPU, an address of this process), handed
 * over as it is: nothing is checked or copied. */
KJIT_API kjit_type kjit_get_pointer_type(kjit_context *context, kjit_type element, int read_only);

/* A field of a struct; never grows. */
typedef struct kjit_field {
  const char *name; /* copied */
  kjit_type type;   /* a scalar, vector, struct or pointer */
  uint32_t rank;    /* 0: one value; else an array inside the struct, row-major, */
  int64_t shape[8]; /* of these extents */
} kjit_field;

/* Flags of a struct type. */
enum {
  KJIT_STRUCT_PACKED = 1 /* no padding, alignment 1 */
};
/* A struct with C's layout for these fields, in order; the same name with the same fields and flags
 * is the same type, and that of a `struct` declaration of the same kind. name and the fields' names
 * are names of the language. flags: 0, or KJIT_STRUCT_PACKED (no padding, alignment 1). Returns
 * KJIT_VOID and leaves a diagnostic otherwise. */
KJIT_API kjit_type kjit_get_struct_type(kjit_context *context, const char *name,
                                        const kjit_field *fields, size_t count, unsigned flags);

/* How a type lies in memory. */
typedef struct kjit_type_layout {
  uint32_t size_bytes;                  /* sizeof(kjit_type_layout), set by the host */
  uint32_t type_bytes, alignment_bytes; /* of the type in memory */
  uint32_t field_count;                 /* structs; 0: no struct */
} kjit_type_layout;
/* How a scalar, vector, struct or pointer lies in memory. Errors: ARGUMENT for other types. */
KJIT_API KJIT_CHECK kjit_status kjit_get_type_layout(kjit_context *context, kjit_type type,
                                                     kjit_type_layout *layout);
/* Name (borrowed, for the context's life), type and offset of a struct's field; arrays inside
 * structs with the type of their elements. Either result may be NULL. Errors: ARGUMENT for other
 * types and past the last field. */
KJIT_API KJIT_CHECK kjit_status kjit_get_type_field(kjit_context *context, kjit_type type,
                                                    uint32_t index, kjit_field *field,
                                                    uint32_t *offset_bytes);

/* Any type as the text form writes it: "f32[:, :] C", "const u8[:]", "f32*"; structs by their name,
 * when this context has one of that name. Errors: SYNTAX, NAME, UNSUPPORTED. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_type(kjit_context *context, const char *text,
                                                kjit_type *type);

/* The text form of a type; free with kjit_free. NULL only when out of memory. */
KJIT_API char *kjit_copy_type_text(kjit_context *context, kjit_type type);

/* ---- modules ---- */

/* Parses size_bytes bytes of text; name is what diagnostics call the source. No compiler is loaded.
 * `import "file"` brings in the declarations of another source, each once: what
 * kjit_config.find_import says, else a file in the folder of the importing source (of name, for a
 * text that is the host's), else in kjit_config.import_path. Errors: SYNTAX, NAME, TYPE,
 * UNSUPPORTED, IO (an import that cannot be read), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_module(kjit_context *context, const char *name,
                                                  const char *text, size_t size_bytes,
                                                  kjit_module **module);
/* As kjit_parse_module, and who wrote the text. What a text of a guest (KJIT_TRUST_GUEST) imports
 * is kjit's own modules and what kjit_config.find_import answers, no file; what that answers is a
 * guest's, too, unless it says otherwise. Every kernel of a module that has declarations of a guest
 * is compiled
 * with KJIT_CHECK_BOUNDS. Errors: those of kjit_parse_module; REFUSED: what guests may not do;
 * MISUSE: no such trust. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_module_as(kjit_context *context, kjit_trust trust,
                                                     const char *name, const char *text,
                                                     size_t size_bytes, kjit_module **module);
/* The text of a front end's own source, of which messages quote lines; never grows. */
typedef struct kjit_quoted_text {
  const char *file;  /* as line directives and builders' locations name it */
  const char *text;  /* any text; nothing reads it but messages; NULL only if it is empty */
  size_t text_bytes; /* of text */
} kjit_quoted_text;

/* Rules that all kernels and funcs of a source have; the same as attributes of each of them. */
enum {
  KJIT_RULE_WRAP = 1, /* `@wrap`: negative indices and slices as in Python */
  KJIT_RULE_NUMBA = 2 /* `@numba`: the types of Numba, and the indices of `@wrap` */
};

/* How a text is parsed. All 0: as kjit_parse_module does it. */
typedef struct kjit_parse_options {
  uint32_t size_bytes; /* sizeof(kjit_parse_options), set by the host */
  kjit_trust trust;    /* as for kjit_parse_module_as */
  /* the texts behind line directives, `@line(12, 5, "prog.py")`: messages about what follows a
   * directive name that place, and quote its line, with a caret, where the file is one of these.
   * quoted_count of them, read until the call returns; default: none */
  const kjit_quoted_text *quoted;
  size_t quoted_count; /* of quoted */
  /* KJIT_RULE_... joined with |: as if the text began with `default` and these attributes; what it
   * imports is not touched. default 0 */
  uint32_t rules;
  uint32_t reserved; /* 0 */
} kjit_parse_options;
/* kjit_parse_module with options, NULL: none. Errors: those of kjit_parse_module_as; MISUSE: a
 * quoted text without a name; no such rule. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_module_with(kjit_context *context,
                                                       const kjit_parse_options *options,
                                                       const char *name, const char *text,
                                                       size_t size_bytes, kjit_module **module);
/* How a text is parsed that is one expression. */
typedef struct kjit_expression_options {
  uint32_t size_bytes; /* sizeof(kjit_expression_options), set by the host */
  kjit_trust trust;    /* who wrote the text; KJIT_TRUST_DEFAULT means KJIT_TRUST_GUEST here */
  const char *name;    /* of the text in messages; default NULL: "expression" */
  /* The func's name, which the texts of kernels and messages show; default NULL: "expression". The
   * text does not know this name. It is no name of a built-in or a type. */
  const char *function_name;
  /* The names of the func's parameters, in their order: parameter_count of them. Each is a name of
   * the kernel IR, and none comes twice. A parameter hides a built-in of the same name. */
  const char *const *parameters;
  /* The type of each parameter, KJIT_ANY for one that takes any type. Default NULL: all of them
   * take any type. */
  const kjit_type *types;
  uint32_t parameter_count; /* of parameters; default 0 */
  uint32_t reserved;        /* 0 */
} kjit_expression_options;

/* Parses a text that is one expression, such as a formula that a user has typed, and returns a func
 * of the given parameters that computes it: `a * x + b` for the parameters a, x and b. The func is
 * handed to maps and to algorithms as an operator. A kernel takes it for a func parameter after
 * kjit_link_module with the kernel's module.
 *
 * The text is never part of another text, so that it cannot end the func and go on with something
 * else. It is one expression of the kernel IR, over several lines if need be: no statement, no
 * declaration, no comment, no line directive. It knows the parameters and the built-ins, and calls
 * only built-ins without effects. Messages name the lines and columns of the text.
 *
 * options: NULL for an expression without parameters. Read during the call only, as the text is.
 * module: a new module with this one func; the caller releases it (kjit_release_module). function:
 * its func, borrowed from the module. On an error neither is set.
 *
 * Any thread, several at once. Errors: SYNTAX (it is no expression, or something follows it), NAME
 * (it uses an unknown name), TYPE, REFUSED (a built-in with an effect, or what guests may not use),
 * LIMIT (the memory of kjit_config.compile_limits), MISUSE (a parameter that is no name or comes
 * twice, a func's name that is none or that a built-in has, a type that is none of a parameter, no
 * such trust, a NULL text, module or function),
 * MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_expression(kjit_context *context,
                                                      const kjit_expression_options *options,
                                                      const char *text, size_t size_bytes,
                                                      kjit_module **module,
                                                      kjit_function **function);
/* One owner more; returns module, which may be NULL. Any thread. */
KJIT_API kjit_module *kjit_retain_module(kjit_module *module);
/* One owner less; the last one frees it with its kernels, after launches under way. module NULL is
 * fine. Any thread. */
KJIT_API void kjit_release_module(kjit_module *module);
/* The context that the module belongs to. */
KJIT_API kjit_context *kjit_get_module_context(const kjit_module *module);

/* Canonical text: parsing it gives an equal module. Free with kjit_free. Errors: MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_module_text(kjit_module *module, char **text);

/* A kernel or func by name; borrowed from the module. Where the module has no func of a name, the
 * built-in of that name, to be handed to a func parameter of this module's kernels: `max`.
 * Built-ins that take a type or a text, or that change what they are given, are not handed over so.
 * Errors: NAME. */
KJIT_API KJIT_CHECK kjit_status kjit_get_kernel(kjit_module *module, const char *name,
                                                kjit_kernel **kernel);
/* A func by its name, or a built-in, as above; borrowed from the module. Errors: NAME. */
KJIT_API KJIT_CHECK kjit_status kjit_get_function(kjit_module *module, const char *name,
                                                  kjit_function **function);
/* The context that the kernel's module belongs to. */
KJIT_API kjit_context *kjit_get_kernel_context(const kjit_kernel *kernel);
/* The context that the module belongs to that the func was asked for. */
KJIT_API kjit_context *kjit_get_function_context(const kjit_function *function);

/* Makes a new module of module and of all declarations of library. Where module declares
 * `extern func name(...)` without a binding or `extern const name: type` without a value, and the
 * library has a func or a constant of that name, module uses the library's.
 *
 * All other declarations go on meaning what they meant: two funcs, kernels, structs or bound extern
 * funcs of one name stay two. A name that the application looks up finds the declaration of module.
 *
 * Errors: TYPE (another number of parameters), ARGUMENT (another context), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_link_module(kjit_module *module, kjit_module *library,
                                                 kjit_module **linked);

/* Makes a new module in which `extern func name` is a function of the application. host_function is
 * a C function of the declared types, which the CPU calls from any thread at any time; it is not
 * copied, and NULL means that there is none. device_code is code for GPUs, which is copied:
 * size_bytes of PTX or of LLVM IR (bitcode or text, of LLVM 22 or older) for nvptx64 that defines a
 * function of that name with the C ABI. NULL means that there is none. A binding that is NULL stays
 * as it was before.
 *
 * An array is passed as a pointer, an int64_t for each extent and, if no layout is declared, an
 * int64_t for each stride in elements.
 *
 * An extern func is what it is bound to, and its name means nothing in compiled code: linked
 * modules may each have an extern func of that name with a binding of its own, and a kernel, a
 * built-in or a function of the C library may have the name, too. Other functions and variables of
 * the code for GPUs are not visible outside of it. Extern funcs of that name that linked modules
 * have left without a binding are bound as well.
 *
 * The code is part of every key. It is trusted as the application itself is. Errors: NAME (no such
 * extern func), SYNTAX (no such code), TYPE (two extern funcs of that name without a binding have
 * different types), MEMORY. Mistakes inside the code are an error (COMPILE) of the call that uses
 * the code first. */
KJIT_API KJIT_CHECK kjit_status kjit_bind_extern(kjit_module *module, const char *name,
                                                 void (*host_function)(void),
                                                 const void *device_code, size_t size_bytes,
                                                 kjit_module **bound);

/* The kinds of derivatives of a func f. See docs/derivatives.md. */
typedef enum kjit_derivative {
  KJIT_JVP, /* forward: the parameters of f, then a derivative for each chosen parameter; returns
             * the value of f and its derivative along these */
  KJIT_VJP, /* reverse: the parameters of f, then the derivative by the result of f; returns the
             * value of f and the derivative by each chosen parameter */
  KJIT_GRAD /* reverse, of a func that returns one float: the derivatives alone */
} kjit_derivative;

/* Makes a new module in which a func computes the derivative of a func of the module. It is called
 * `jvp_f`, `vjp_f` or `grad_f` for a func f; if the module has that name already, the first free
 * one of `jvp_f_2`, `jvp_f_3` and so on. The func goes wherever a func goes: to
 * kjit_call_function, to algorithms, by kjit_link_module to kernels that declare it
 * `extern func jvp_f(x, dx)`, and to kjit_derive, which makes the second derivative.
 *
 * parameters: the numbers, from 0, of the count parameters by which f is derived; read during the
 * call only. With count 0 these are all parameters that hold floats. Types are not known yet: for
 * KJIT_JVP a parameter counts unless its declared type holds no floats, and a call that gives an
 * integer for it fails (TYPE).
 *
 * In a reverse derivative each chosen array of floats has one more array behind the other
 * parameters, to which the call adds the derivatives. A parameter without a type counts as an array
 * if f indexes it or hands it to a derivative: a vector or number of which that is true needs its
 * type.
 *
 * derived: the new module; the caller releases it (kjit_release_module). function: its new func,
 * borrowed from derived. On an error neither is set. Whether f has a derivative is known when the
 * func is compiled first.
 *
 * Any thread. Errors: NAME (the module has no such func), UNSUPPORTED (a built-in), MISUSE (a NULL,
 * no such kind, a parameter that does not exist, comes twice or is const, a func or a type),
 * MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_derive(kjit_module *module, const char *name,
                                            kjit_derivative kind, const uint32_t *parameters,
                                            size_t count, kjit_module **derived,
                                            kjit_function **function);

/* Names of the module's kernels in order; NULL past the end; borrowed. */
KJIT_API const char *kjit_get_kernel_name(kjit_module *module, size_t index);
/* Names of its funcs, those of the host (`extern func`) among them, for kjit_get_function; as
 * above. What imports brought in comes behind the module's own, here and below. */
KJIT_API const char *kjit_get_function_name(kjit_module *module, size_t index);
/* Names of its constants, for kjit_set_constant; as above. */
KJIT_API const char *kjit_get_constant_name(kjit_module *module, size_t index);

/* The type of a struct that the module, or what it imports, declares. Errors: NAME. */
KJIT_API KJIT_CHECK kjit_status kjit_get_struct(kjit_module *module, const char *name,
                                                kjit_type *type);
/* Names of its structs, for kjit_get_struct; as for kernels. */
KJIT_API const char *kjit_get_struct_name(kjit_module *module, size_t index);

/* What a kernel's declaration says of a parameter. */
typedef struct kjit_parameter_info {
  uint32_t size_bytes;  /* sizeof(kjit_parameter_info), set by the host */
  kjit_type annotation; /* KJIT_ANY: none, or one that depends on another parameter */
  const char *name;     /* borrowed from the module */
  uint8_t is_const;     /* a compile-time value: part of the key */
  uint8_t has_default;  /* may be left out at the end of the arguments */
  uint8_t is_function;  /* takes a func */
  /* arrays: whether this kernel, and what it calls, may read and write elements; needs no types */
  uint8_t is_read, is_written;
  uint8_t reserved[3]; /* 0 */
} kjit_parameter_info;

/* What a front end or a tool needs to bind arguments by name. Errors: ARGUMENT past the end. */
KJIT_API KJIT_CHECK kjit_status kjit_get_parameter_info(kjit_kernel *kernel, size_t index,
                                                        kjit_parameter_info *info);
/* As kjit_get_parameter_info, of a func. Errors: ARGUMENT also for built-ins, and funcs that are
 * extern: their bodies are not known. */
KJIT_API KJIT_CHECK kjit_status kjit_get_function_parameter_info(kjit_function *function,
                                                                 size_t index,
                                                                 kjit_parameter_info *info);

/* ---- builder: one call a node, the text form's tree ----
 * What makes a part of the module is called kjit_build_*; create, destroy, finish, get and set are
 * about the builder itself. Errors are recorded on the builder, never returned: the first one is
 * kept with its location, the failing call returns node 0, and every call takes node 0 quietly.
 * Check once, at kjit_finish_builder. An expression node is evaluated where it is used, as in the
 * text (so `?:`, `and`, `or` are lazy), and is consumed by its parent: using it twice is an error
 * that names both places. Names may be used any number of times: parameters, constants, loop
 * variables, what kjit_build_let, kjit_build_var, kjit_build_shared and kjit_build_local return.
 * Statements go to the innermost open block. Names need not be unique or valid identifiers: the
 * printer renames. NULL as a name: kjit makes one. */

/* An expression or a name of the module under construction; 0: none, or one that failed. */
typedef uint32_t kjit_node;
/* Operators; ops.def has the text of each. */
typedef enum kjit_op {
#define KJIT_ROW(name, text, precedence, class_) KJIT_OP_##name,
#include <kjit/ops.def>
#undef KJIT_ROW
  /* how many there are: grows with versions */
  KJIT_OP_COUNT
} kjit_op;

/* A builder of an empty module. module_name is what diagnostics call it; copied, NULL: "module".
 * Errors: MISUSE, MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_create_builder(kjit_context *context, const char *module_name,
                                                    kjit_builder **builder);
/* Drops what was not finished. builder NULL is fine; finished modules live on. */
KJIT_API void kjit_destroy_builder(kjit_builder *builder);
/* The context that the builder makes modules for; it has to be there. */
KJIT_API kjit_context *kjit_get_builder_context(const kjit_builder *builder);
/* Verifies and makes the module; the builder is empty afterwards and can be used again, also after
 * an error. Errors: the first recorded one; those of the verifier. */
KJIT_API KJIT_CHECK kjit_status kjit_finish_builder(kjit_builder *builder, kjit_module **module);
/* Whose declarations the module has that is being built: a front end for guests says GUEST, and
 * kjit_finish_builder refuses what they may not do (REFUSED). Until the module is finished; DEFAULT
 * is kjit_config.trust. Recorded error: MISUSE, no such trust. */
KJIT_API void kjit_set_builder_trust(kjit_builder *builder, kjit_trust trust);
/* Status of the first recorded error, or KJIT_OK: to stop a long front end early. */
KJIT_API kjit_status kjit_get_builder_status(const kjit_builder *builder);
/* Location of the nodes made from now on, in the front end's own source; diagnostics name it. file
 * is copied; NULL: the module's name. */
KJIT_API void kjit_set_builder_location(kjit_builder *builder, const char *file, uint32_t line,
                                        uint32_t column);

/* The text of a source that kjit_set_builder_location names, so that diagnostics quote its lines
 * with a caret; it may come before the locations or behind them. size_bytes bytes, copied. Any
 * text: nothing reads it but messages. file NULL: the module's name. Nodes that were made without a
 * location stay without one. */
KJIT_API void kjit_set_builder_source(kjit_builder *builder, const char *file, const char *text,
                                      size_t size_bytes);

/* Open a kernel or func; parameters and attributes come first, then statements; kjit_build_end
 * closes it. result KJIT_ANY: inferred. */
KJIT_API void kjit_build_begin_kernel(kjit_builder *builder, const char *name);
/* Opens a func, likewise; result: what it returns, KJIT_ANY: inferred. */
KJIT_API void kjit_build_begin_function(kjit_builder *builder, const char *name, kjit_type result);
/* Opens `extern func name(...) -> result`, result KJIT_VOID: none. Parameters of given types
 * follow, then kjit_build_end. See kjit_bind_extern. */
KJIT_API void kjit_build_begin_extern(kjit_builder *builder, const char *name, kjit_type result);
/* KJIT_ANY: type from the call; KJIT_FUNC: takes a func; KJIT_TYPE, of a func: takes a type. */
KJIT_API kjit_node kjit_build_parameter(kjit_builder *builder, const char *name, kjit_type type);
/* A compile-time parameter; default_value 0: none. */
KJIT_API kjit_node kjit_build_const_parameter(kjit_builder *builder, const char *name,
                                              kjit_node default_value);
/* `@name(values)` of the function or loop just begun. */
KJIT_API void kjit_build_attribute(kjit_builder *builder, const char *name, const kjit_node *values,
                                   size_t count);
/* A module constant of a scalar, vector or struct type without pointers (rank 0), or an array of
 * one, row-major; data is copied, NULL where there are no elements. Call outside functions. */
KJIT_API kjit_node kjit_build_constant(kjit_builder *builder, const char *name, kjit_type element,
                                       const void *data, const int64_t *shape, uint32_t rank);
/* A module constant made from an expression of literals and other constants: a tuple, `2 * N`. type
 * KJIT_ANY: the value's own. Call outside functions. */
KJIT_API kjit_node kjit_build_constant_value(kjit_builder *builder, const char *name,
                                             kjit_type type, kjit_node value);

/* Expressions. */
KJIT_API kjit_node kjit_build_integer(kjit_builder *builder, int64_t value); /* weak literal */
KJIT_API kjit_node kjit_build_float(kjit_builder *builder, double value);    /* weak literal */
KJIT_API kjit_node kjit_build_string(kjit_builder *builder,
                                     const char *text); /* an item of kjit_build_print */
KJIT_API kjit_node kjit_build_bool(kjit_builder *builder, int value); /* true unless 0 */
/* typed literal of a scalar type, read at once */
KJIT_API kjit_node kjit_build_value(kjit_builder *builder, kjit_type type, const void *value);
/* op x: KJIT_OP_NEG, KJIT_OP_POS, KJIT_OP_INVERT, KJIT_OP_NOT. */
KJIT_API kjit_node kjit_build_unary(kjit_builder *builder, kjit_op op, kjit_node x);
/* x op y: any other operator but KJIT_OP_STORE. */
KJIT_API kjit_node kjit_build_binary(kjit_builder *builder, kjit_op op, kjit_node x, kjit_node y);
/* `condition ? x : y`: only one of them is evaluated. */
KJIT_API kjit_node kjit_build_conditional(kjit_builder *builder, kjit_node condition, kjit_node x,
                                          kjit_node y);
/* `T(x)`: x converted to a scalar or vector type. */
KJIT_API kjit_node kjit_build_cast(kjit_builder *builder, kjit_type type, kjit_node x);
/* `T(parts)`: a struct from all of its fields, a vector or complex number from its parts. */
KJIT_API kjit_node kjit_build_construct(kjit_builder *builder, kjit_type type,
                                        const kjit_node *parts, size_t count);
/* A type of this builder alone, for the calls below that take one, any number of times: what a
 * parameter that takes a type is given; of any other name, `dtype(x)`. As an argument of a call
 * such a parameter is handed over as its node; other types are `kjit_build_function_value(b,
 * "f32")`. Returns KJIT_VOID where node is no name. */
KJIT_API kjit_type kjit_build_type_of(kjit_builder *builder, kjit_node node);
/* A built-in, func or func parameter by name; `T(x)` of a parameter that takes a type; positions
 * too: kjit_build_call(b, "threadIdx.x", NULL, 0),
 * "laneid". Funcs may be called before they are begun. */
KJIT_API kjit_node kjit_build_call(kjit_builder *builder, const char *function,
                                   const kjit_node *arguments, size_t count);
/* The func called name as a value: an argument of a call. */
KJIT_API kjit_node kjit_build_function_value(kjit_builder *builder, const char *name);
/* `array[indices]`: an element, or with slices a view. Also a place for kjit_build_assign. */
KJIT_API kjit_node kjit_build_index(kjit_builder *builder, kjit_node array,
                                    const kjit_node *indices, size_t count);
/* `first:stop:step`: one of the indices of kjit_build_index, which then makes a view. 0: left out.
 */
KJIT_API kjit_node kjit_build_slice(kjit_builder *builder, kjit_node first, kjit_node stop,
                                    kjit_node step);
/* field: "shape", "strides", "size", "ndim", "T"; a field of a struct, "x" of a vector. Also a
 * place. */
KJIT_API kjit_node kjit_build_select_field(kjit_builder *builder, kjit_node x, const char *field);
/* `(items)`; none: `()`. */
KJIT_API kjit_node kjit_build_tuple(kjit_builder *builder, const kjit_node *items, size_t count);

/* Statements. */
KJIT_API kjit_node kjit_build_let(kjit_builder *builder, const char *name, kjit_node value);
/* type KJIT_ANY: from the value. value 0: none, `var x`; with KJIT_ANY its type is then what all of
 * its assignments join to. */
KJIT_API kjit_node kjit_build_var(kjit_builder *builder, const char *name, kjit_type type,
                                  kjit_node value);
/* extents: compile-time expressions. kjit_build_shared with rank 1 and extents NULL: the launch's
 * dynamic shared memory. */
KJIT_API kjit_node kjit_build_shared(kjit_builder *builder, const char *name, kjit_type element,
                                     const kjit_node *extents, size_t rank);
/* `local name: element[extents]`: an array of each thread's own, of compile-time extents. */
KJIT_API kjit_node kjit_build_local(kjit_builder *builder, const char *name, kjit_type element,
                                    const kjit_node *extents, size_t rank);
/* place: an index node, a field of one or of a var, or a var. op: KJIT_OP_STORE, or the op of a
 * compound assignment. */
KJIT_API void kjit_build_assign(kjit_builder *builder, kjit_node place, kjit_op op,
                                kjit_node value);
/* A call as a statement: its result is dropped. */
KJIT_API void kjit_build_evaluate(kjit_builder *builder, kjit_node call);
/* `print(items)`: values and strings, one line. kjit_build_assert: message NULL: none. */
KJIT_API void kjit_build_print(kjit_builder *builder, const kjit_node *items, size_t count);
/* `assert condition, message`: compiled where KJIT_CHECK_ASSERT is on. message NULL: none. */
KJIT_API void kjit_build_assert(kjit_builder *builder, kjit_node condition, const char *message);
/* `raise message`: the thread fails. */
KJIT_API void kjit_build_raise(kjit_builder *builder, const char *message);
/* Opens `if condition`; kjit_build_end closes it, and kjit_build_else before that opens its else.
 */
KJIT_API void kjit_build_if(kjit_builder *builder, kjit_node condition);
/* The other branch of the innermost open if. */
KJIT_API void kjit_build_else(kjit_builder *builder);
/* Opens `while condition`, which is evaluated anew before each round. */
KJIT_API void kjit_build_while(kjit_builder *builder, kjit_node condition);
/* first 0: from 0; step 0: by 1; stop a tuple of extents: all positions in them, row-major, of
 * which the loop variable is a tuple. Returns the loop variable. */
KJIT_API kjit_node kjit_build_for_range(kjit_builder *builder, const char *name, kjit_node first,
                                        kjit_node stop, kjit_node step);
/* `for name in value`: through the items of a tuple, a copy of the body for each, or along the
 * first dimension of an array. Returns the loop variable. */
KJIT_API kjit_node kjit_build_for_items(kjit_builder *builder, const char *name, kjit_node value);
/* grid_range and block_range over 1 to 3 extents; writes the loop variables to variables[rank]. */
KJIT_API void kjit_build_for_grid(kjit_builder *builder, const kjit_node *extents, size_t rank,
                                  kjit_node *variables);
/* As kjit_build_for_grid, for block_range. */
KJIT_API void kjit_build_for_block(kjit_builder *builder, const kjit_node *extents, size_t rank,
                                   kjit_node *variables);
/* Closes the innermost kernel, func, if or loop. */
KJIT_API void kjit_build_end(kjit_builder *builder);
/* Leaves the innermost loop. */
KJIT_API void kjit_build_break(kjit_builder *builder);
/* Goes on with the next round of the innermost loop. */
KJIT_API void kjit_build_continue(kjit_builder *builder);
KJIT_API void kjit_build_return(kjit_builder *builder, kjit_node value); /* 0: no value */

#ifdef __cplusplus
}
#endif
#endif
