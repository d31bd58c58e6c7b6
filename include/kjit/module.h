/* kjit/module.h: types and modules. status.h has the rules that hold for every function. */
#ifndef KJIT_MODULE_H
#define KJIT_MODULE_H

#include <kjit/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* parsed text or the result of a builder; never changes */
typedef struct kjit_module kjit_module;
/* a module's untyped kernel; owns its specializations */
typedef struct kjit_kernel kjit_kernel;
/* a module's func, which can be a kernel argument */
typedef struct kjit_function kjit_function;

/* ---- types: small values; equal types have equal values within a context ---- */

/* A type: one of the constants below, or a result of the functions below. */
typedef uint32_t kjit_type;
/* Scalar types and special values. The functions below return further types. */
enum {
  KJIT_ANY = 0, /* no annotation; the type of the argument is used */
#define KJIT_ROW(name, text, size, class_, code, bits) KJIT_##name,
#include <kjit/types.def>
#undef KJIT_ROW
  KJIT_SCALAR_COUNT, /* number of scalar types plus one */
  /* no value: the result type of a func without a result; after an error, functions that return a
   * type return KJIT_VOID */
  KJIT_VOID = KJIT_SCALAR_COUNT,
  KJIT_FUNC,            /* a func parameter */
  KJIT_TYPE,            /* a type parameter */
  KJIT_INDEX = KJIT_I64 /* extents and indices; the same as i64 */
};

/* Order of array elements in memory. */
typedef enum kjit_layout {
  KJIT_LAYOUT_STRIDED, /* any order, with a stride for each dimension */
  KJIT_LAYOUT_C,       /* contiguous, last index fastest */
  KJIT_LAYOUT_F        /* contiguous, first index fastest */
} kjit_layout;

/* Returns an array type with 0 to 8 dimensions. element is a scalar, vector, struct or pointer
 * type. If read_only is not 0, the type is const: `const f32[:]`. Returns KJIT_VOID with a
 * diagnostic if element or rank is invalid. */
KJIT_API kjit_type kjit_get_array_type(kjit_context *context, kjit_type element, uint32_t rank,
                                       kjit_layout layout, int read_only);

/* Returns a type for a pointer to one or more elements, `f32*`. element and errors are as for
 * kjit_get_array_type. As a kernel argument, the pointer is a device address, or an address of this
 * process on the CPU. kjit neither checks nor copies the memory. */
KJIT_API kjit_type kjit_get_pointer_type(kjit_context *context, kjit_type element, int read_only);

/* A struct field. This struct never grows. */
typedef struct kjit_field {
  const char *name; /* name of the field; copied */
  kjit_type type;   /* scalar, vector, struct or pointer type */
  uint32_t rank;    /* 0 for one value, otherwise rank of a row-major array in the struct */
  int64_t shape[8]; /* extents of the array */
} kjit_field;

/* Struct type flags. */
enum {
  KJIT_STRUCT_PACKED = 1 /* no padding, alignment 1 */
};
/* Returns a struct type with these fields in order and C layout.
 *
 * Two types with the same name, fields and flags are the same type, also if one comes from
 * a `struct` declaration. All names must be kernel IR identifiers. flags is 0 or
 * KJIT_STRUCT_PACKED (no padding, alignment 1). Returns KJIT_VOID with a diagnostic if a parameter
 * is invalid. */
KJIT_API kjit_type kjit_get_struct_type(kjit_context *context, const char *name,
                                        const kjit_field *fields, size_t count, unsigned flags);

/* A type's size and alignment in memory. */
typedef struct kjit_type_layout {
  uint32_t size_bytes;                  /* sizeof(kjit_type_layout), set by the application */
  uint32_t type_bytes, alignment_bytes; /* size and alignment */
  uint32_t field_count;                 /* number of struct fields, otherwise 0 */
} kjit_type_layout;
/* Returns size and alignment of a scalar, vector, struct or pointer type. Errors: ARGUMENT for
 * other types. */
KJIT_API KJIT_CHECK kjit_status kjit_get_type_layout(kjit_context *context, kjit_type type,
                                                     kjit_type_layout *layout);
/* Returns a struct field's name, type and offset. For an array in a struct, the type is its
 * element type. The name is borrowed from the context. Either result can be NULL. Errors: ARGUMENT
 * for other types, or if index is too large. */
KJIT_API KJIT_CHECK kjit_status kjit_get_type_field(kjit_context *context, kjit_type type,
                                                    uint32_t index, kjit_field *field,
                                                    uint32_t *offset_bytes);

/* Parses a type: "f32[:, :] C", "const u8[:]", "f32*", or the name of a struct in this context.
 * Errors: SYNTAX, NAME, UNSUPPORTED. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_type(kjit_context *context, const char *text,
                                                kjit_type *type);

/* Returns a type as text. Free the text with kjit_free. Returns NULL only if memory is
 * exhausted. */
KJIT_API char *kjit_copy_type_text(kjit_context *context, kjit_type type);

/* ---- modules ---- */

/* Parses kernel IR text with size_bytes bytes. name is the source's name in diagnostics. The call
 * does not load the compiler.
 *
 * `import "file"` adds the declarations of another source, at most once. kjit looks for the source
 * with kjit_config.find_import, or else in the importing source's folder and in
 * kjit_config.import_path. For text that the application passes, that folder is the folder part of
 * name. Errors: SYNTAX, NAME, TYPE, UNSUPPORTED, IO (an import that cannot be read), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_module(kjit_context *context, const char *name,
                                                  const char *text, size_t size_bytes,
                                                  kjit_module **module);
/* Parses text like kjit_parse_module, with an explicit trust in its author.
 *
 * A guest's text (KJIT_TRUST_GUEST) can import only kjit's modules and sources from
 * kjit_config.find_import, but no files. Imported sources are untrusted as well, unless find_import
 * says otherwise. If a module has a guest's declarations, all its kernels are compiled with
 * KJIT_CHECK_BOUNDS. Errors: see kjit_parse_module; REFUSED (code that guests may not use); MISUSE
 * (an unknown trust). */
KJIT_API KJIT_CHECK kjit_status kjit_parse_module_as(kjit_context *context, kjit_trust trust,
                                                     const char *name, const char *text,
                                                     size_t size_bytes, kjit_module **module);
/* A front end's source text, from which messages quote lines. This struct never grows. */
typedef struct kjit_quoted_text {
  const char *file;  /* file name, as in line directives and builder locations */
  const char *text;  /* any text, used only in messages; NULL only if it is empty */
  size_t text_bytes; /* length of text without a terminating 0 */
} kjit_quoted_text;

/* Rules for all kernels and funcs in a source, like attributes on each one. */
enum {
  KJIT_RULE_WRAP = 1, /* `@wrap`: negative indices and slices as in Python */
  KJIT_RULE_NUMBA = 2 /* `@numba`: Numba's types, and indices as with `@wrap` */
};

/* Options for kjit_parse_module_with. If all fields except size_bytes are 0, the call works like
 * kjit_parse_module. */
typedef struct kjit_parse_options {
  uint32_t size_bytes; /* sizeof(kjit_parse_options), set by the application */
  kjit_trust trust;    /* as in kjit_parse_module_as */
  /* Sources for line directives such as `@line(12, 5, "prog.py")`. A message about code after a
   * directive names the location in the directive. If the file is in this array, the message quotes
   * the line with a caret. kjit reads the array until the call returns. Default: none. */
  const kjit_quoted_text *quoted;
  size_t quoted_count; /* number of quoted sources */
  /* KJIT_RULE_... combined with |. The text is parsed as if it began with `default` and these
   * attributes; imported sources are not affected. Default 0. */
  uint32_t rules;
  uint32_t reserved; /* 0 */
} kjit_parse_options;
/* Parses text like kjit_parse_module, with options. NULL means the defaults. Errors: see
 * kjit_parse_module_as; MISUSE (a quoted text without a name, or an unknown rule). */
KJIT_API KJIT_CHECK kjit_status kjit_parse_module_with(kjit_context *context,
                                                       const kjit_parse_options *options,
                                                       const char *name, const char *text,
                                                       size_t size_bytes, kjit_module **module);
/* Options for kjit_parse_expression. */
typedef struct kjit_expression_options {
  uint32_t size_bytes; /* sizeof(kjit_expression_options), set by the application */
  /* trust in the author of the text; KJIT_TRUST_DEFAULT means KJIT_TRUST_GUEST */
  kjit_trust trust;
  const char *name; /* the text's name in messages; NULL (default) means "expression" */
  /* The func's name, which appears in messages and in kernel texts. NULL (default)
   * means "expression". The text cannot use this name. It must not be the name of a built-in or a
   * type. */
  const char *function_name;
  /* Names of the parameters, in order. Each must be a kernel IR identifier, without
   * duplicates. A parameter hides a built-in with the same name. */
  const char *const *parameters;
  /* Parameter types; KJIT_ANY accepts any type. Default NULL: all parameters accept any
   * type. */
  const kjit_type *types;
  uint32_t parameter_count; /* number of parameters, at most 255; default 0 */
  uint32_t reserved;        /* 0 */
  /* Maximum size of the text. Default 0: 65536. Whatever the maximum is, operands nest at most 200
   * deep, and the tree of the expression has at most 400 levels. */
  uint64_t text_limit_bytes;
} kjit_expression_options;

/* Parses a single expression, such as a formula from a user, and returns a func that computes it.
 * An example is `a * x + b` with the parameters a, x and b. The func can be used in maps and as an
 * operator of algorithms. A func parameter of a kernel takes only funcs of the kernel's module:
 * link the kernel's module with the new module (kjit_link_module), and use the kernel and the func
 * of the linked module.
 *
 * The text is never inserted into other text, so it cannot end the func and add other code. It is
 * one kernel IR expression and can have several lines. It cannot contain statements,
 * declarations, comments or line directives. It can use the parameters and call built-ins without
 * side effects. Messages have the text's lines and columns.
 *
 * options can be NULL for an expression without parameters. kjit reads options and text until the
 * call returns. module receives a new module with this func, which the caller releases
 * (kjit_release_module). function receives the func, borrowed from the module. After an error
 * neither is set.
 *
 * Any number of threads can call it at the same time. Errors: SYNTAX (not a single expression),
 * NAME (unknown name), TYPE, REFUSED (a built-in with a side effect, or code that guests may not
 * use), LIMIT (text_limit_bytes, or the memory limit in kjit_config.compile_limits), MISUSE (a
 * parameter name that is invalid or occurs twice, too many parameters, a func name that is invalid
 * or belongs to a built-in, a type that parameters cannot have, an unknown trust, text, module or
 * function is NULL), MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_parse_expression(kjit_context *context,
                                                      const kjit_expression_options *options,
                                                      const char *text, size_t size_bytes,
                                                      kjit_module **module,
                                                      kjit_function **function);
/* Adds an owner and returns module, which can be NULL. Any thread may call it. */
KJIT_API kjit_module *kjit_retain_module(kjit_module *module);
/* Removes an owner of a module, which can be NULL. When the last owner is removed, kjit frees the
 * module and its kernels as soon as running launches have ended. Any thread may call it. */
KJIT_API void kjit_release_module(kjit_module *module);
/* Returns the context that the module belongs to. */
KJIT_API kjit_context *kjit_get_module_context(const kjit_module *module);

/* Returns the module as canonical text. Parsing the text gives an equal module. Free the text with
 * kjit_free. Errors: MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_copy_module_text(kjit_module *module, char **text);

/* Returns a kernel by name, borrowed from the module. Errors: NAME. */
KJIT_API KJIT_CHECK kjit_status kjit_get_kernel(kjit_module *module, const char *name,
                                                kjit_kernel **kernel);
/* Returns a func by name, borrowed from the module. If the module has no func with this name, the
 * function returns the built-in with this name, for example `max`, for use as an argument to
 * kernels in this module. Built-ins with a type or string parameter, or built-ins that change an
 * argument, cannot be passed as funcs. Errors: NAME. */
KJIT_API KJIT_CHECK kjit_status kjit_get_function(kjit_module *module, const char *name,
                                                  kjit_function **function);
/* Returns the context that the kernel's module belongs to. */
KJIT_API kjit_context *kjit_get_kernel_context(const kjit_kernel *kernel);
/* Returns the context to which the func's module belongs. */
KJIT_API kjit_context *kjit_get_function_context(const kjit_function *function);

/* Links two modules: creates a module with the declarations in module and library.
 *
 * If module declares `extern func name(...)` without a binding or `extern const name: type` without
 * a value, it uses library's func or constant with that name. All other declarations keep
 * their meaning: two funcs, kernels, structs or bound extern funcs with the same name stay
 * separate. If the application looks up a name, it finds module's declaration. Errors: TYPE
 * (different numbers of parameters), ARGUMENT (different contexts), MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_link_module(kjit_module *module, kjit_module *library,
                                                 kjit_module **linked);

/* Creates a copy of a module in which `extern func name` is bound to an application function.
 *
 * host_function is a C function with the declared types. On the CPU, kernels call it from any
 * thread. device_code is code for GPUs with size_bytes bytes: PTX, or LLVM IR for nvptx64 (bitcode
 * or text, of LLVM 22 or older). It defines a function called name with the C ABI. kjit copies the
 * code. If host_function or device_code is NULL, an earlier binding for that device stays
 * unchanged. An array is passed as a pointer, an int64_t for each extent and, if no layout is
 * declared, an int64_t for each stride in elements.
 *
 * An extern func's name has no meaning in compiled code. Linked modules can have extern funcs with
 * the same name and different bindings, and a kernel, a built-in or a C library function can have
 * the same name. Other functions and variables in the GPU code are private. If linked modules have
 * an unbound extern func with this name, it is bound as well.
 *
 * The code is part of the key of all kernels that use it, and is trusted like the application.
 * Errors: NAME (no such extern func), SYNTAX (invalid code), TYPE (two unbound extern funcs with
 * this name have different types), MEMORY. Errors inside the code (COMPILE) are returned by the
 * call that uses it first. */
KJIT_API KJIT_CHECK kjit_status kjit_bind_extern(kjit_module *module, const char *name,
                                                 void (*host_function)(void),
                                                 const void *device_code, size_t size_bytes,
                                                 kjit_module **bound);

/* GPU code formats that kjit_bind_linked links. The values are stable. */
typedef enum kjit_link_format {
  KJIT_LINK_DETECT = 0,  /* found by the first bytes; text in no other format is CUDA C */
  KJIT_LINK_CUDA_C = 1,  /* text that NVRTC compiles */
  KJIT_LINK_PTX = 2,     /* relocatable PTX text, from nvcc -rdc=true --ptx */
  KJIT_LINK_CUBIN = 3,   /* relocatable machine code for one architecture */
  KJIT_LINK_FATBIN = 4,  /* code for several architectures */
  KJIT_LINK_OBJECT = 5,  /* host object file from nvcc -rdc=true */
  KJIT_LINK_ARCHIVE = 6, /* archive of host object files from nvcc -rdc=true */
  KJIT_LINK_LTOIR = 7    /* code from nvcc -dlto or NVRTC, which nvJitLink links */
} kjit_link_format;

/* One file that a GPU's linker links with a kernel. */
typedef struct kjit_link_input {
  kjit_link_format format; /* format of data */
  const char *name;        /* the file's name in messages; NULL means "the linked code" */
  const void *data;        /* content of the file */
  size_t data_bytes;       /* content size; a 0 byte after text may be counted or not */
  /* CUDA C only: options for NVRTC, one on each line, for example "-I/opt/include". NULL means
   * none. kjit sets the architecture, relocatable code, debug information and the folders of the
   * toolkit's headers. */
  const char *options;
} kjit_link_input;

/* Creates a copy of a module in which GPU code finds `extern func name` in linked code.
 *
 * The function has the C ABI and is called symbol in the linked code; NULL means name. One of the
 * count inputs defines the function. Inputs may call functions of other inputs. kjit copies the
 * inputs. Unlike code of kjit_bind_extern, linked code keeps its own names: a kernel cannot be
 * linked with two functions that have the same symbol. Several extern funcs of a kernel may use the
 * same input, which is then linked once. A C function that kjit_bind_extern has bound for the CPU
 * stays bound.
 *
 * The CUDA driver links the kernel before it is loaded. CUDA C needs the library NVRTC. LTO-IR, PTX
 * that is newer than the driver, and kjit_compile for a CUBIN need the library nvJitLink. kjit
 * finds both libraries in a CUDA toolkit, on the loader's path, or in the Python packages
 * nvidia-cuda-nvrtc and nvidia-nvjitlink that are installed in the same place as the package kjit.
 *
 * The code is part of the key of all kernels that use it, and is trusted like the application. The
 * disk cache's key has a digest of the files that CUDA C includes, so a changed file is compiled
 * again. The cache does not keep kernels whose CUDA C includes files by a macro, or uses
 * __has_include. Errors: NAME (no such extern func, or symbol is no identifier), ARGUMENT (no
 * inputs, an unknown format, or an input that does not have its format), TYPE as for
 * kjit_bind_extern, MEMORY. Errors in the code (COMPILE) and missing libraries (NO_COMPILER) are
 * returned by the call that links it first. */
KJIT_API KJIT_CHECK kjit_status kjit_bind_linked(kjit_module *module, const char *name,
                                                 const char *symbol, const kjit_link_input *inputs,
                                                 size_t count, kjit_module **bound);

/* The kinds of derivatives of a func f. See docs/derivatives.md. */
typedef enum kjit_derivative {
  /* forward: takes f's parameters and a derivative for each chosen parameter, and returns
   * f's value and its directional derivative */
  KJIT_JVP,
  /* reverse: takes f's parameters and the derivative with respect to its result, and returns
   * f's value and the derivative with respect to each chosen parameter */
  KJIT_VJP,
  /* reverse, for a func that returns a single float: returns only the derivatives */
  KJIT_GRAD
} kjit_derivative;

/* Creates a module in which a func computes the derivative of one func in the module.
 *
 * The new func for f is called `jvp_f`, `vjp_f` or `grad_f`. If the module already has this name,
 * the new func gets the first free name among `jvp_f_2`, `jvp_f_3` and so on. The func can be used
 * like any other func: with kjit_call_function, in algorithms, in kernels that declare `extern func
 * jvp_f(x, dx)` (see kjit_link_module), and with kjit_derive for the second derivative.
 *
 * parameters holds the indices, from 0, of the count parameters to differentiate by; kjit reads it
 * during the call. If count is 0, these are all parameters that hold floats. Types are not known
 * yet. For KJIT_JVP, every parameter is therefore chosen unless its declared type holds no floats.
 * A call that passes an integer for a chosen parameter fails (TYPE).
 *
 * A reverse derivative takes additional arrays after the other parameters, one for each chosen
 * array of floats, and adds the derivatives to them. A parameter without a type counts as an array
 * if f indexes it or passes it to a derivative. A vector or number that f uses in this way needs a
 * type.
 *
 * derived receives the new module, which the caller releases (kjit_release_module). function
 * receives its new func, borrowed from derived. After an error neither is set. Whether f has a
 * derivative is checked when the new func is compiled for the first time.
 *
 * Any thread may call it. Errors: NAME (the module has no such func), UNSUPPORTED (a built-in),
 * MISUSE (a NULL, an unknown kind, a parameter that does not exist, occurs twice or is const, a
 * func or a type), MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_derive(kjit_module *module, const char *name,
                                            kjit_derivative kind, const uint32_t *parameters,
                                            size_t count, kjit_module **derived,
                                            kjit_function **function);

/* Creates a module with the declarations of k's module and one more kernel, the adjoint of the
 * kernel k. The adjoint computes the reverse derivative of k. It is called `adjoint_k` or, if the
 * module already has that name, `adjoint_k_2` and so on. It takes the parameters of k, followed by
 * an array of derivatives for each chosen parameter. These arrays hold the derivatives of one
 * number, such as a loss, that depends on the arrays that k stores to. For the arrays that k stores
 * to, a launch reads the derivatives. For the other parameters, the launch adds the derivatives
 * with respect to the values that k loads. See docs/derivatives.md.
 *
 * kernel is k; its body consists of loops over a grid_range. parameters holds the indices, from 0,
 * of the count chosen parameters, which include the arrays that k stores to. kjit reads parameters
 * only during the call. The derivative of a scalar is an array of one element. If count is 0, all
 * arrays that may hold floats are chosen. An integer array needs a declared type in this case. A
 * parameter without a type counts as an array if k indexes it.
 *
 * derived receives the new module, which the application releases (kjit_release_module). adjoint
 * receives its new kernel, borrowed from derived. If the call fails, neither is set. kjit checks
 * that k has an adjoint when it compiles the new kernel. If k has none, the launch fails with
 * UNSUPPORTED or TYPE.
 *
 * Any thread may call it. Errors: MISUSE (a NULL, or a parameter that does not exist, is chosen
 * twice, or is const, a func or a type), MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_get_adjoint(kjit_kernel *kernel, const uint32_t *parameters,
                                                 size_t count, kjit_module **derived,
                                                 kjit_kernel **adjoint);

/* Returns the name of the kernel with this index, borrowed from the module, or NULL if index is too
 * large. */
KJIT_API const char *kjit_get_kernel_name(kjit_module *module, size_t index);
/* Returns the func name with this index, for kjit_get_function, or NULL. Extern funcs are included.
 * Here and below, imported declarations follow the module's own. */
KJIT_API const char *kjit_get_function_name(kjit_module *module, size_t index);
/* Returns the constant's name with this index, for kjit_set_constant, or NULL. */
KJIT_API const char *kjit_get_constant_name(kjit_module *module, size_t index);

/* Returns the type for a struct that the module declares or imports. Errors: NAME. */
KJIT_API KJIT_CHECK kjit_status kjit_get_struct(kjit_module *module, const char *name,
                                                kjit_type *type);
/* Returns the struct name with this index, for kjit_get_struct, or NULL. */
KJIT_API const char *kjit_get_struct_name(kjit_module *module, size_t index);

/* A parameter's properties in its kernel's declaration. */
typedef struct kjit_parameter_info {
  uint32_t size_bytes; /* sizeof(kjit_parameter_info), set by the application */
  /* KJIT_ANY without an annotation, or if the annotation depends on another parameter */
  kjit_type annotation;
  const char *name;    /* borrowed from the module */
  uint8_t is_const;    /* 1 for a compile-time value, which is part of the key */
  uint8_t has_default; /* 1 if the argument can be omitted at the end of the list */
  uint8_t is_function; /* 1 for a func parameter */
  /* for arrays: whether the kernel, and funcs that it calls, may read and write elements;
   * independent of types */
  uint8_t is_read, is_written;
  uint8_t reserved[3]; /* 0 */
} kjit_parameter_info;

/* Describes a kernel parameter, for front ends and tools that bind arguments by name. Errors:
 * ARGUMENT if index is too large. */
KJIT_API KJIT_CHECK kjit_status kjit_get_parameter_info(kjit_kernel *kernel, size_t index,
                                                        kjit_parameter_info *info);
/* Describes a func parameter, like kjit_get_parameter_info. Errors: ARGUMENT also for
 * built-ins and extern funcs, because their bodies are not known. */
KJIT_API KJIT_CHECK kjit_status kjit_get_function_parameter_info(kjit_function *function,
                                                                 size_t index,
                                                                 kjit_parameter_info *info);

#ifdef __cplusplus
}
#endif
#endif
