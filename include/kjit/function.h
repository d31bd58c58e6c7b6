/* kjit/function.h: funcs that the host calls, funcs as C functions for elsewhere. See status.h for
 * the rules that hold for every function.
 *
 * What a C function takes and gives. Scalars go as C's types: bool as bool, i8 to u64 as the
 * integers of stdint.h, f32 and f64 as float and double; a pointer as a pointer. An array goes as
 * its parts: the pointer to its first element, an int64_t for each extent and, where its type has
 * neither layout C nor F, an int64_t for each stride in elements: `x: f32[:, :] C` is `float *x,
 * int64_t rows, int64_t columns`. A const parameter and a func are part of the code and no
 * parameters. Other types (f16, bf16, complex numbers, vectors, structs, tuples) do not go by
 * value; pointers to them do. kjit_call_function passes them all the same. */
#ifndef KJIT_FUNCTION_H
#define KJIT_FUNCTION_H

#include <kjit/compile.h>
#include <kjit/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls a func on the CPU, on this thread, through the types of its arguments; the first call for
 * some types compiles it, with the checks of the configuration. An integer without a type
 * (kjit_arg_number, kjit_arg_integer) is an i64 if it meets no type. Arrays are in host memory or
 * arrays of the CPU. result becomes a VALUE of the result's type (KJIT_VOID: it returns nothing;
 * f16 and bf16: their bits in value.u); may be NULL. A struct, vector, complex number or tuple (as
 * a C struct of its items) is written to result->value.address instead: result has to be a
 * KJIT_ARG_BY_ADDRESS then, and gets the type. Any number of threads at once. Errors: KERNEL
 * (raise, assert, a check, recursion that is too deep), ARGUMENT, TYPE, UNSUPPORTED (what needs
 * threads or blocks; views as results), NAME (an extern func without a function of the host),
 * COMPILE, NO_COMPILER, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_call_function(kjit_function *function,
                                                   const kjit_arg *arguments, size_t count,
                                                   kjit_arg *result);

/* A C function for one signature, "f64(f64, i32)" or "void(f32[:] C, f32)": the result's type, then
 * a type or a value for each parameter as kjit_compile takes them. Compiled without checks; called
 * from any thread; valid as long as the module, and never interrupted: there is
 * nobody to go back to. A func that may fail all the same (`raise`, recursion) has no such pointer,
 * since nobody would hear of it. Errors: as kjit_call_function; SYNTAX; TYPE also where the result
 * is of another type. */
KJIT_API KJIT_CHECK kjit_status kjit_get_function_pointer(kjit_function *function,
                                                          const char *signature,
                                                          void (**pointer)(void));

/* Compiles a func to a C function called symbol (NULL: the func's name) for elsewhere: a `.visible
 * .func` of PTX, which device code of nvcc -rdc=true declares extern "C" and the linker of CUDA
 * finds; LLVM IR; an object or assembly of this processor. signature: types and values of the
 * parameters, as kjit_compile takes them. extern funcs stay calls of functions of their names,
 * unless LLVM IR is bound to them; two different ones of one name are refused. Nobody hears of a
 * thread that fails: `raise`, and checks where options have some, trap. Recursion is not bounded.
 * Free code with kjit_free. Errors: as kjit_compile; NAME also for symbols that generated code
 * itself calls (`sinf`, `memcpy`); UNSUPPORTED also for what C functions do not have. */
KJIT_API KJIT_CHECK kjit_status kjit_compile_function(kjit_function *function,
                                                      const char *signature, const char *symbol,
                                                      const kjit_compile_options *options,
                                                      kjit_stage stage, void **code,
                                                      size_t *size_bytes);

/* What the func returns for these types and values of its parameters, as kjit_compile takes them:
 * KJIT_VOID for nothing. Nothing is compiled. Errors: as kjit_compile_function's. */
KJIT_API KJIT_CHECK kjit_status kjit_get_result_type(kjit_function *function, const char *signature,
                                                     kjit_type *type);

/* A new module in which the constant has another value: `const` or `extern const`, of the module or
 * one that it imports. value: a number or scalar for a scalar, or an array in host memory, whose
 * elements are copied now. A declared type stays: the value must fit it exactly, or be rounded from
 * float to float; declared extents too. Part of every key. Constants of
 * that name that linked modules have left without a value get it as well. Errors: NAME (no such
 * constant), TYPE (it does not fit, or a
 * struct's layout depends on it), ARGUMENT, MEMORY. */
KJIT_API KJIT_CHECK kjit_status kjit_set_constant(kjit_module *module, const char *name,
                                                  const kjit_arg *value, kjit_module **changed);

#ifdef __cplusplus
}
#endif
#endif
