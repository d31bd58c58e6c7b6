/* kjit/builder.h: builds a module without text, with a call for each node of the syntax tree.
 * status.h has the rules that hold for every function.
 *
 * Functions that create parts of the module are called kjit_build_*; create, destroy, finish, get
 * and set functions manage the builder.
 *
 * Errors. The functions do not return errors. The builder records the first error with its
 * location, the failing call returns node 0, and every call accepts node 0 silently. Check the
 * status once, at kjit_finish_builder.
 *
 * Nodes. An expression node is evaluated where it is used, as in text, so `?:`, `and` and `or` are
 * lazy. Its parent consumes it, and a second use is an error that names both locations. A name can
 * be used any number of times: parameters, constants, loop variables, and the results of
 * kjit_build_let, kjit_build_var, kjit_build_shared and kjit_build_local.
 *
 * Statements are added to the innermost open block. Names need not be unique or valid identifiers,
 * because the printer renames them. If a name is NULL, kjit creates one. */
#ifndef KJIT_BUILDER_H
#define KJIT_BUILDER_H

#include <kjit/module.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kjit_builder kjit_builder; /* a module under construction */
/* An expression or a name of the module under construction; 0 means none or an error. */
typedef uint32_t kjit_node;
/* Operators; ops.def has the text of each. */
typedef enum kjit_op {
#define KJIT_ROW(name, text, precedence, class_) KJIT_OP_##name,
#include <kjit/ops.def>
#undef KJIT_ROW
  /* number of operators, which grows with versions */
  KJIT_OP_COUNT
} kjit_op;

/* Creates a builder with an empty module. module_name is the name in diagnostics and is copied.
 * NULL means "module". Errors: MISUSE, MEMORY, FORKED. */
KJIT_API KJIT_CHECK kjit_status kjit_create_builder(kjit_context *context, const char *module_name,
                                                    kjit_builder **builder);
/* Destroys a builder, which can be NULL, and discards its unfinished module. Finished modules stay
 * valid. */
KJIT_API void kjit_destroy_builder(kjit_builder *builder);
/* Returns the builder's context, which must still exist. */
KJIT_API kjit_context *kjit_get_builder_context(const kjit_builder *builder);
/* Verifies and creates the module. Afterwards the builder is empty and can be used again, also
 * after an error. Errors: the first recorded error, or the verifier's errors. */
KJIT_API KJIT_CHECK kjit_status kjit_finish_builder(kjit_builder *builder, kjit_module **module);
/* Sets the trust in the module under construction, until it is finished. DEFAULT means
 * kjit_config.trust. A front end for guests sets GUEST, and kjit_finish_builder then rejects code
 * that guests may not use (REFUSED). Recorded error: MISUSE (unknown trust). */
KJIT_API void kjit_set_builder_trust(kjit_builder *builder, kjit_trust trust);
/* Returns the first recorded error's status, or KJIT_OK, so that a long front end can stop
 * early. */
KJIT_API kjit_status kjit_get_builder_status(const kjit_builder *builder);
/* Sets the following nodes' location in the front end's source; diagnostics name it. file is
 * copied. NULL means the module's name. */
KJIT_API void kjit_set_builder_location(kjit_builder *builder, const char *file, uint32_t line,
                                        uint32_t column);

/* Sets the text for a source that kjit_set_builder_location names, so that diagnostics quote its
 * lines with a caret. It can be called before or after the locations are set. The text, size_bytes
 * bytes of any content, is copied and used only in messages. If file is NULL, it is the source with
 * the module's name. Nodes without a location stay without a location. */
KJIT_API void kjit_set_builder_source(kjit_builder *builder, const char *file, const char *text,
                                      size_t size_bytes);

/* Begins a kernel. Add parameters and attributes first, then statements. kjit_build_end ends it. */
KJIT_API void kjit_build_begin_kernel(kjit_builder *builder, const char *name);
/* Begins a func, like kjit_build_begin_kernel. result is the result type; KJIT_ANY means that it is
 * inferred. */
KJIT_API void kjit_build_begin_function(kjit_builder *builder, const char *name, kjit_type result);
/* Begins `extern func name(...) -> result`; KJIT_VOID means no result. Add parameters with types
 * and call kjit_build_end. See kjit_bind_extern. */
KJIT_API void kjit_build_begin_extern(kjit_builder *builder, const char *name, kjit_type result);
/* Adds a parameter. The type KJIT_ANY means that each call determines it. KJIT_FUNC declares a func
 * parameter, and KJIT_TYPE a type parameter (funcs only). */
KJIT_API kjit_node kjit_build_parameter(kjit_builder *builder, const char *name, kjit_type type);
/* Adds a compile-time parameter; default_value 0 means no default. */
KJIT_API kjit_node kjit_build_const_parameter(kjit_builder *builder, const char *name,
                                              kjit_node default_value);
/* Adds the attribute `@name(values)` to the current function or loop. */
KJIT_API void kjit_build_attribute(kjit_builder *builder, const char *name, const kjit_node *values,
                                   size_t count);
/* Adds a module constant: a scalar, vector or struct without pointers (rank 0), or a row-major
 * array. data is copied. It can be NULL if there are no elements. The call must be outside kernels
 * and funcs. */
KJIT_API kjit_node kjit_build_constant(kjit_builder *builder, const char *name, kjit_type element,
                                       const void *data, const int64_t *shape, uint32_t rank);
/* Adds a module constant with the value of an expression of literals and other constants, such as a
 * tuple or `2 * N`. If type is KJIT_ANY, the value determines the type. The call must be outside
 * kernels and funcs. */
KJIT_API kjit_node kjit_build_constant_value(kjit_builder *builder, const char *name,
                                             kjit_type type, kjit_node value);

/* Returns an integer literal, which is untyped. This and the following functions create
 * expressions. */
KJIT_API kjit_node kjit_build_integer(kjit_builder *builder, int64_t value);
KJIT_API kjit_node kjit_build_float(kjit_builder *builder, double value); /* untyped literal */
/* Returns a string, which can be an item of kjit_build_print. */
KJIT_API kjit_node kjit_build_string(kjit_builder *builder, const char *text);
/* Returns true, or false if value is 0. */
KJIT_API kjit_node kjit_build_bool(kjit_builder *builder, int value);
/* Returns a typed literal of a scalar type; value is read immediately. */
KJIT_API kjit_node kjit_build_value(kjit_builder *builder, kjit_type type, const void *value);
/* Returns `op x`: KJIT_OP_NEG, KJIT_OP_POS, KJIT_OP_INVERT or KJIT_OP_NOT. */
KJIT_API kjit_node kjit_build_unary(kjit_builder *builder, kjit_op op, kjit_node x);
/* Returns `x op y`, for any other operator except KJIT_OP_STORE. */
KJIT_API kjit_node kjit_build_binary(kjit_builder *builder, kjit_op op, kjit_node x, kjit_node y);
/* Returns `condition ? x : y`, which evaluates only x or y. */
KJIT_API kjit_node kjit_build_conditional(kjit_builder *builder, kjit_node condition, kjit_node x,
                                          kjit_node y);
/* Returns `T(x)`: x converted to a scalar or vector type. */
KJIT_API kjit_node kjit_build_cast(kjit_builder *builder, kjit_type type, kjit_node x);
/* Returns `T(parts)`: a struct from its fields, or a vector or complex number from its parts. */
KJIT_API kjit_node kjit_build_construct(kjit_builder *builder, kjit_type type,
                                        const kjit_node *parts, size_t count);
/* Returns the type of a name. Any number of other calls of this builder can use the type. For a
 * type parameter this is the type passed by the caller; for any other name x it is `dtype(x)`. To
 * pass a type as a call's argument, pass the type parameter's node, or kjit_build_function_value(b,
 * "f32") for a fixed type. Returns KJIT_VOID if node is not a name. */
KJIT_API kjit_type kjit_build_type_of(kjit_builder *builder, kjit_node node);
/* Returns a call to a built-in, func or func parameter by name, or `T(x)` for a type parameter. The
 * names of thread indices are accepted as well: kjit_build_call(b, "threadIdx.x", NULL, 0), or
 * "laneid". A func can be called before it is begun. */
KJIT_API kjit_node kjit_build_call(kjit_builder *builder, const char *function,
                                   const kjit_node *arguments, size_t count);
/* Returns the func called name as a value, for use as an argument to a call. */
KJIT_API kjit_node kjit_build_function_value(kjit_builder *builder, const char *name);
/* Returns `array[indices]`: an element, or a view if an index is a slice. It can be the target of
 * kjit_build_assign. */
KJIT_API kjit_node kjit_build_index(kjit_builder *builder, kjit_node array,
                                    const kjit_node *indices, size_t count);
/* Returns `first:stop:step` for use as an index in kjit_build_index, which then returns a view.
 * Node 0 omits first, stop or step. */
KJIT_API kjit_node kjit_build_slice(kjit_builder *builder, kjit_node first, kjit_node stop,
                                    kjit_node step);
/* Returns a field: "shape", "strides", "size", "ndim" or "T" for an array, a struct field, or
 * "x" for a vector. It can be the target of kjit_build_assign. */
KJIT_API kjit_node kjit_build_select_field(kjit_builder *builder, kjit_node x, const char *field);
/* Returns `(items)`; without items `()`. */
KJIT_API kjit_node kjit_build_tuple(kjit_builder *builder, const kjit_node *items, size_t count);

/* Adds `let name = value` and returns the name. This and the following functions add statements. */
KJIT_API kjit_node kjit_build_let(kjit_builder *builder, const char *name, kjit_node value);
/* Adds `var name`. If type is KJIT_ANY, the value determines the type. value 0 means `var x`
 * without a value; with KJIT_ANY the type of x is then the common type of its assignments. */
KJIT_API kjit_node kjit_build_var(kjit_builder *builder, const char *name, kjit_type type,
                                  kjit_node value);
/* Adds a shared array with compile-time extents. If rank is 1 and extents is NULL, the array is the
 * dynamic shared memory of the launch. */
KJIT_API kjit_node kjit_build_shared(kjit_builder *builder, const char *name, kjit_type element,
                                     const kjit_node *extents, size_t rank);
/* Adds `local name: element[extents]`: an array for each thread, with compile-time extents. */
KJIT_API kjit_node kjit_build_local(kjit_builder *builder, const char *name, kjit_type element,
                                    const kjit_node *extents, size_t rank);
/* Adds an assignment. place is an index node, a field of an element or a var, or a var. op is
 * KJIT_OP_STORE or a compound assignment's operator. */
KJIT_API void kjit_build_assign(kjit_builder *builder, kjit_node place, kjit_op op,
                                kjit_node value);
/* Adds a call as a statement. Its result is discarded. */
KJIT_API void kjit_build_evaluate(kjit_builder *builder, kjit_node call);
/* Adds `print(items)`: one line with values and strings. */
KJIT_API void kjit_build_print(kjit_builder *builder, const kjit_node *items, size_t count);
/* Adds `assert condition, message`, which is compiled if KJIT_CHECK_ASSERT is on. message can be
 * NULL. */
KJIT_API void kjit_build_assert(kjit_builder *builder, kjit_node condition, const char *message);
/* Adds `raise message`: the thread fails. */
KJIT_API void kjit_build_raise(kjit_builder *builder, const char *message);
/* Begins `if condition`. kjit_build_end ends it; kjit_build_else begins its else branch. */
KJIT_API void kjit_build_if(kjit_builder *builder, kjit_node condition);
/* Begins the else branch for the innermost open if. */
KJIT_API void kjit_build_else(kjit_builder *builder);
/* Begins `while condition`. The condition is evaluated before each iteration. */
KJIT_API void kjit_build_while(kjit_builder *builder, kjit_node condition);
/* Begins `for name in range(...)` and returns the loop variable. first 0 means from 0, and step 0
 * means by 1. If stop is a tuple of extents, the loop runs over all indices in row-major order, and
 * the loop variable is a tuple. */
KJIT_API kjit_node kjit_build_for_range(kjit_builder *builder, const char *name, kjit_node first,
                                        kjit_node stop, kjit_node step);
/* Begins `for name in value` and returns the loop variable. The loop runs over the items in a
 * tuple, with a copy of the body for each item, or along the first dimension of an array. */
KJIT_API kjit_node kjit_build_for_items(kjit_builder *builder, const char *name, kjit_node value);
/* Begins a grid_range over 1 to 3 extents and writes the rank loop variables to variables. */
KJIT_API void kjit_build_for_grid(kjit_builder *builder, const kjit_node *extents, size_t rank,
                                  kjit_node *variables);
/* Begins a block_range, like kjit_build_for_grid. */
KJIT_API void kjit_build_for_block(kjit_builder *builder, const kjit_node *extents, size_t rank,
                                   kjit_node *variables);
/* Ends the innermost kernel, func, if or loop. */
KJIT_API void kjit_build_end(kjit_builder *builder);
/* Leaves the innermost loop. */
KJIT_API void kjit_build_break(kjit_builder *builder);
/* Continues with the innermost loop's next iteration. */
KJIT_API void kjit_build_continue(kjit_builder *builder);
/* Adds `return value`; value 0 means no value. */
KJIT_API void kjit_build_return(kjit_builder *builder, kjit_node value);

#ifdef __cplusplus
}
#endif
#endif
