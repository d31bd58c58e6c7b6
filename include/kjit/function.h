/* kjit/function.h: calls of funcs from C, and funcs compiled as C functions. status.h has the rules
 * that hold for every function.
 *
 * Parameters and results of a C function have these types. Scalars have the corresponding C types:
 * bool for bool, the integers of stdint.h for i8 to u64, float for f32 and double for f64. Pointers
 * are pointers in C, too. An array becomes several parameters: the pointer to its first element, an
 * int64_t for each extent and, unless its type has layout C or F, an int64_t for each stride in
 * elements. `x: f32[:, :] C` becomes `float *x, int64_t rows, int64_t columns`. A const parameter
 * or a func is part of the code and not a parameter. Other types (f16, bf16, complex numbers,
 * vectors, structs, tuples) cannot be passed by value, only by pointer; kjit_call_function takes
 * all of them. */
#ifndef KJIT_FUNCTION_H
#define KJIT_FUNCTION_H

#include <kjit/compile.h>
#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls a func on the CPU, on this thread. The first call with new argument types compiles it, with
 * the checks of the configuration (see also kjit_plain_code). An untyped integer (kjit_arg_number,
 * kjit_arg_integer) is an i64 if no other operand gives it a type.
 *
 * Arrays are in host memory or are arrays of the CPU device. result can be NULL. Otherwise kjit
 * sets it to a VALUE with the result type; KJIT_VOID means no result, and f16 and bf16 return their
 * bits in value.u. A struct, vector, complex number or tuple (as a C struct of its items) is
 * written to result->value.address. For these, result must be a KJIT_ARG_BY_ADDRESS, and kjit sets
 * result->type. Any number of threads can call the function at the same time.
 *
 * Errors: KERNEL (raise, assert, a check, too deep recursion), ARGUMENT, TYPE, UNSUPPORTED (code
 * that needs threads or blocks, views as results), NAME (an extern func without a host function),
 * COMPILE, NO_COMPILER, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_call_function(kjit_function *function,
                                                   const kjit_arg *arguments, size_t count,
                                                   kjit_arg *result);

/* Calls a func like kjit_call_function, for callers that do not know the size of its result.
 *
 * *result_bytes is the size of the memory at result->value.address. If the result is a struct,
 * vector, complex number or tuple that needs more bytes, kjit does not run the func: it sets
 * *result_bytes to the size that the result needs, and returns ARGUMENT. Errors: see
 * kjit_call_function. */
KJIT_API KJIT_CHECK kjit_status kjit_call_function_into(kjit_function *function,
                                                        const kjit_arg *arguments, size_t count,
                                                        size_t *result_bytes, kjit_arg *result);

/* Returns a C function for one signature, such as "f64(f64, i32)" or "void(f32[:] C, f32)". The
 * signature has the result type, then a type or a value for each parameter in kjit_compile format.
 *
 * The function is compiled without checks, cannot be interrupted, may be called from any thread and
 * is valid as long as the module. A func that can fail (raise, recursion) has no function pointer,
 * because a C function cannot report the failure. Errors: see kjit_call_function; also SYNTAX, and
 * TYPE if the result has another type. */
KJIT_API KJIT_CHECK kjit_status kjit_get_function_pointer(kjit_function *function,
                                                          const char *signature,
                                                          void (**pointer)(void));

/* Compiles a func to a C function called symbol. NULL means the func's name.
 *
 * The result is a `.visible .func` in PTX, LLVM IR, or an object file or assembly for this
 * processor. Device code of nvcc -rdc=true can declare the PTX function as extern "C", and CUDA's
 * linker finds it. signature has parameter types and values in kjit_compile format.
 *
 * The code calls each extern func as a function with the same name, unless LLVM IR is linked for
 * the extern func. Two different extern funcs with the same name are rejected. A failing thread
 * cannot be reported: `raise` and enabled checks trap. The recursion depth is not limited. Free
 * code with kjit_free. Errors: see kjit_compile; also NAME for symbols that generated code calls
 * itself (`sinf`, `memcpy`), and UNSUPPORTED for types that C functions cannot have. */
KJIT_API KJIT_CHECK kjit_status kjit_compile_function(kjit_function *function,
                                                      const char *signature, const char *symbol,
                                                      const kjit_compile_options *options,
                                                      kjit_stage stage, void **code,
                                                      size_t *size_bytes);

/* Returns the func's result type for parameter types and values, in kjit_compile format; KJIT_VOID
 * means no result. Nothing is compiled. Errors: see kjit_compile_function. */
KJIT_API KJIT_CHECK kjit_status kjit_get_result_type(kjit_function *function, const char *signature,
                                                     kjit_type *type);

/* Creates a copy of a module in which a constant has another value. The constant is `const` or
 * `extern const`, in the module or a module that it imports.
 *
 * value is a number or scalar for a scalar constant, or an array in host memory, which is copied.
 * If the constant has a declared type, it keeps this type. The value must then fit the type
 * exactly, except that a float is rounded to a float type. Declared extents do not change either.
 * The value is part of the key of all code that uses the constant. If linked modules have a
 * constant with this name and without a value, it receives the value as well. Errors: NAME (no such
 * constant), TYPE (the value does not fit, or the layout of a struct depends on the constant),
 * ARGUMENT, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_set_constant(kjit_module *module, const char *name,
                                                  const kjit_arg *value, kjit_module **changed);

#ifdef __cplusplus
}
#endif
#endif
