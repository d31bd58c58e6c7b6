#include "ir/foreign_syntax.h"

#include <string.h>

#include "ir/builtin.h"
#include "library/library.h"

typedef struct row {
  const char *word, *text;
} row;

static const row type_aliases[] = {
  { "float", "f32" },
  { "double", "f64" },
  { "half", "f16" },
  { "__half", "f16" },
  { "__nv_bfloat16", "bf16" },
  { "bfloat16", "bf16" },
  { "float16", "f16" },
  { "float32", "f32" },
  { "float64", "f64" },
  { "complex64", "c64" },
  { "complex128", "c128" },
  { "int", "i32" },
  { "unsigned", "u32" },
  { "uint", "u32" },
  { "int8", "i8" },
  { "int16", "i16" },
  { "int32", "i32" },
  { "int64", "i64" },
  { "uint8", "u8" },
  { "uint16", "u16" },
  { "uint32", "u32" },
  { "uint64", "u64" },
  { "int8_t", "i8" },
  { "int16_t", "i16" },
  { "int32_t", "i32" },
  { "int64_t", "i64" },
  { "uint8_t", "u8" },
  { "uint16_t", "u16" },
  { "uint32_t", "u32" },
  { "uint64_t", "u64" },
  { "char", "i8" },
  { "short", "i16" },
  { "long", "i64" },
  { "size_t", "index" },
  { "intp", "index" },
  { "ptrdiff_t", "index" },
  { "float2", "f32x2" },
  { "float3", "f32x3" },
  { "float4", "f32x4" },
  { "double2", "f64x2" },
  { "double3", "f64x3" },
  { "double4", "f64x4" },
  { "char2", "i8x2" },
  { "char3", "i8x3" },
  { "char4", "i8x4" },
  { "uchar2", "u8x2" },
  { "uchar3", "u8x3" },
  { "uchar4", "u8x4" },
  { "short2", "i16x2" },
  { "short4", "i16x4" },
  { "ushort2", "u16x2" },
  { "ushort4", "u16x4" },
  { "int2", "i32x2" },
  { "int3", "i32x3" },
  { "int4", "i32x4" },
  { "uint2", "u32x2" },
  { "uint3", "u32x3" },
  { "uint4", "u32x4" },
  { "longlong2", "i64x2" },
  { "ulonglong2", "u64x2" },
  { "half2", "f16x2" },
  { "__half2", "f16x2" },
  { "__nv_bfloat162", "bf16x2" },
  { "make_float2", "f32x2" },
  { "make_float3", "f32x3" },
  { "make_float4", "f32x4" },
  { "make_double2", "f64x2" },
  { "make_int2", "i32x2" },
  { "make_int3", "i32x3" },
  { "make_int4", "i32x4" },
  { "make_uint2", "u32x2" },
  { "make_uint4", "u32x4" },
  { "make_uchar4", "u8x4" },
  { "make_half2", "f16x2" },
  { "float32x4", "f32x4" },
  { "float32x2", "f32x2" },
  { "float64x2", "f64x2" },
  { "cuFloatComplex", "c64" },
  { "cuComplex", "c64" },
  { "cuDoubleComplex", "c128" },
  { "make_cuFloatComplex", "c64" },
  { "make_cuDoubleComplex", "c128" },
  { "complex", "c128" },
  { "_Bool", "bool" },
  { "boolean", "bool" },
  { "bool_", "bool" },
  { "isize", "index" },
  { "usize", "index" },
};

static const row words[] = {
  { "True", "`True` is `true` here" },
  { "False", "`False` is `false` here" },
  { "None", "kernel IR has no `None`; omit the value" },
  { "NULL", "kernel IR has no null value; an array argument is always present" },
  { "nullptr", "kernel IR has no null value; an array argument is always present" },
  { "elif", "`elif` is `else if` here" },
  { "__shared__", "declare shared memory with `shared s: f32[16]`" },
  { "__constant__", "constants are declared in the module: `const NAME: f32[3] = { 1, 2, 3 }`" },
  { "__global__", "a kernel is declared `kernel name(parameters) { }`" },
  { "__device__", "a function is declared `func name(parameters) { }`" },
  { "def",
    "a kernel is declared `kernel name(parameters) { }`, a function `func name(parameters) { }`" },
  { "fn", "a function is declared `func name(parameters) { }`" },
  { "function", "a function is declared `func name(parameters) { }`" },
  { "void",
    "a kernel is declared `kernel name(parameters) { }`, a function `func name(parameters) { }`" },
  { "auto", "a variable is declared `var x = value`, a name for a value `let x = value`" },
  { "static", "a constant is declared `const NAME = value`" },
  { "typedef", "kernel IR has no type aliases" },
  { "template",
    "kernel IR has no templates; a function whose parameters have no types accepts any types" },
  { "class", "a struct is declared `struct name { field: type }`" },
  { "do", "a loop is `while condition { }` or `for i in range(n) { }`" },
  { "switch", "a choice is `if a { } else if b { } else { }`" },
  { "pass", "an empty block is `{ }`" },
  { "lambda", "a function is declared in the module: `func name(x) { return ... }`" },
  { "is", "equality is `==`" },
  { "goto", "kernel IR has no `goto`; `break` ends a loop and `return` ends the thread" },
  { "isgreater", "`isgreater(x, y)` is `x > y`" },
  { "isgreaterequal", "`isgreaterequal(x, y)` is `x >= y`" },
  { "isless", "`isless(x, y)` is `x < y`" },
  { "islessequal", "`islessequal(x, y)` is `x <= y`" },
  { "islessgreater", "`islessgreater(x, y)` is `x < y or x > y`" },
  { "isunordered", "`isunordered(x, y)` is `isnan(x) or isnan(y)`" },
  { "fpclassify",
    "kernel IR has no `fpclassify`; use isnan, isinf, isnormal and a comparison with 0" },
  { "printf", "`printf` is `print` here: `print(x, y)`" },
};

/* These rows match only at the beginning of a dotted name. */
static const row dotted[] = {
  { "cuda.shared.array", "declare shared memory with `shared s: f32[16]`" },
  { "cuda.local.array", "declare an array that belongs to one thread with `local a: f32[16]`" },
  { "cuda.const.array_like",
    "constants are declared in the module: `const NAME: f32[3] = { 1, 2, 3 }`" },
  { "cuda.jit", "a kernel is declared `kernel name(parameters) { }`" },
};

/* Names of functions and structs in other libraries, for which lib/library has a declaration with
 * another name. */
static const row library_aliases[] = {
  { "xoroshiro128p_type", "xoroshiro128p" },
  { "create_xoroshiro128p_states", "xoroshiro128p_init" },
  { "init_xoroshiro128p_state", "xoroshiro128p_init" },
  { "init_xoroshiro128p_states", "xoroshiro128p_init" },
  { "xoroshiro128p_next", "xoroshiro128p_u64" },
  { "xoroshiro128p_uniform_float32", "xoroshiro128p_uniform_f32" },
  { "xoroshiro128p_uniform_float64", "xoroshiro128p_uniform_f64" },
  { "xoroshiro128p_normal_float32", "xoroshiro128p_normal_f32" },
  { "xoroshiro128p_normal_float64", "xoroshiro128p_normal_f64" },
  { "curandState", "philox" },
  { "curandState_t", "philox" },
  { "curandStatePhilox4_32_10_t", "philox" },
  { "curand_init", "philox_init" },
  { "curand", "philox_u32" },
  { "curand_uniform", "philox_uniform_f32" },
  { "curand_uniform_double", "philox_uniform_f64" },
  { "curand_normal", "philox_normal_f32" },
  { "curand_normal_double", "philox_normal_f64" },
};

static const char *find_row(const row *rows, size_t count, const char *word)
{
  for (size_t i = 0; i < count; i++)
    if (strcmp(rows[i].word, word) == 0) return rows[i].text;
  return NULL;
}
#define FIND(rows, word) find_row(rows, sizeof(rows) / sizeof *(rows), word)

const char *ki_find_type_alias(const char *name) { return FIND(type_aliases, name); }

const char *ki_explain_word(const char *word) { return FIND(words, word); }

/* Removes a module prefix: "np.float32" and "cuda.float32" become "float32". Returns NULL if the
 * name has no known prefix. */
static const char *skip_module(const char *name)
{
  static const char *const modules[] = { "np.",   "numpy.", "numba.", "cuda.", "math.",
                                         "cupy.", "cp.",    "torch.", "tl.",   "std::" };
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
    if (strncmp(name, modules[i], strlen(modules[i])) == 0) return name + strlen(modules[i]);
  return NULL;
}

static const char *explain_own(kj_arena *arena, const char *written, const char *name)
{
  const ki_builtin *builtin = ki_find_builtin_alias(name);
  if (!builtin && name != written) builtin = ki_find_builtin(name);
  if (builtin) return kj_format(arena, "`%s` is `%s` here", written, builtin->name);
  const char *type = FIND(type_aliases, name);
  if (!type && name != written && ki_is_type_name(name, strlen(name))) type = name;
  return type ? kj_format(arena, "`%s` is `%s` here", written, type) : NULL;
}

/* Returns whether the line declares the name: "func name(", "struct name " or "const name". */
static bool declares(const char *line, const char *name)
{
  static const char *const keywords[] = { "func ", "struct ", "const " };
  size_t length = strlen(name);
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
    const char *at = line + strlen(keywords[i]);
    if (!strncmp(line, keywords[i], strlen(keywords[i])) && !strncmp(at, name, length) &&
        strchr("( :", at[length]))
      return true;
  }
  return false;
}

/* Returns the name of the module in lib/library that declares the name, or NULL. */
static const char *find_module(const char *name)
{
  for (const kj_library_source *source = kj_library; source->name; source++)
    for (const char *line = source->text; line; line = strchr(line, '\n')) {
      line += *line == '\n';
      if (declares(line, name)) return source->name;
    }
  return NULL;
}

static const char *explain_library(kj_arena *arena, const char *written)
{
  const char *own = FIND(library_aliases, written), *module = find_module(own ? own : written);
  if (!module) return NULL;
  if (own)
    return kj_format(arena, "`%s` is `%s` here, after `import \"%s\"`", written, own, module);
  return kj_format(arena, "`%s` is available after `import \"%s\"`", written, module);
}

const char *ki_explain_name(kj_arena *arena, const char *name)
{
  const char *sentence = FIND(words, name);
  if (!sentence) sentence = FIND(dotted, name);
  if (!sentence) sentence = explain_own(arena, name, name);
  if (!sentence) sentence = explain_library(arena, name);
  const char *rest = skip_module(name);
  while (!sentence && rest) {
    sentence = explain_own(arena, name, rest);
    rest = skip_module(rest);
  }
  return sentence;
}

void ki_fail_unknown_type(ki_lexer *lexer, const ki_type_expr *type)
{
  const char *alias = FIND(type_aliases, type->name);
  if (alias)
    ki_fail_at(lexer, type->location, KJIT_ERROR_NAME, "`%s` is `%s` here", type->name, alias);
  ki_fail_at(lexer, type->location, KJIT_ERROR_NAME, "`%s` is not a type", type->name);
}
