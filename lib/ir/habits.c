#include "ir/habits.h"

#include <string.h>

#include "ir/builtin.h"

typedef struct row {
  const char *word, *text;
} row;

static const row type_aliases[] = {
  { "float", "f32" },    { "double", "f64" },   { "half", "f16" },    { "__half", "f16" },    { "__nv_bfloat16", "bf16" }, { "bfloat16", "bf16" },
  { "float16", "f16" },  { "float32", "f32" },  { "float64", "f64" }, { "complex64", "c64" }, { "complex128", "c128" },    { "int", "i32" },
  { "unsigned", "u32" }, { "uint", "u32" },     { "int8", "i8" },     { "int16", "i16" },     { "int32", "i32" },          { "int64", "i64" },
  { "uint8", "u8" },     { "uint16", "u16" },   { "uint32", "u32" },  { "uint64", "u64" },    { "int8_t", "i8" },          { "int16_t", "i16" },
  { "int32_t", "i32" },  { "int64_t", "i64" },  { "uint8_t", "u8" },  { "uint16_t", "u16" },  { "uint32_t", "u32" },       { "uint64_t", "u64" },
  { "char", "i8" },      { "short", "i16" },    { "long", "i64" },    { "size_t", "index" },  { "intp", "index" },         { "ptrdiff_t", "index" },
  { "_Bool", "bool" },   { "boolean", "bool" }, { "bool_", "bool" },  { "isize", "index" },   { "usize", "index" },
};

static const row words[] = {
  { "True", "`True` is `true` here" },
  { "False", "`False` is `false` here" },
  { "None", "there is no `None`: leave the value out" },
  { "NULL", "there is no null: arrays are always there" },
  { "nullptr", "there is no null: arrays are always there" },
  { "elif", "`elif` is `else if` here" },
  { "__shared__", "shared memory is declared `shared s: f32[16]`" },
  { "__constant__", "constants are declared in the module: `const NAME: f32[3] = { 1, 2, 3 }`" },
  { "__global__", "a kernel is declared `kernel name(parameters) { }`" },
  { "__device__", "a function is declared `func name(parameters) { }`" },
  { "def", "a kernel is declared `kernel name(parameters) { }`, a function `func name(parameters) { }`" },
  { "fn", "a function is declared `func name(parameters) { }`" },
  { "function", "a function is declared `func name(parameters) { }`" },
  { "void", "a kernel is declared `kernel name(parameters) { }`, a function `func name(parameters) { }`" },
  { "auto", "a variable is declared `var x = value`, a name for a value `let x = value`" },
  { "static", "a constant is declared `const NAME = value`" },
  { "typedef", "there are no other names for types" },
  { "template", "a function without types on its parameters takes any" },
  { "class", "a struct is declared `struct name { field: type }`" },
  { "do", "a loop is `while condition { }` or `for i in range(n) { }`" },
  { "switch", "a choice is `if a { } else if b { } else { }`" },
  { "pass", "an empty block is `{ }`" },
  { "lambda", "a function is declared in the module: `func name(x) { return ... }`" },
  { "is", "equality is `==`" },
  { "goto", "there is no `goto`: loops end with `break`, a thread with `return`" },
  { "printf", "`printf` is `print` here: `print(x, y)`" },
};

/* Rows that only stand for themselves as the beginning of a dotted name. */
static const row dotted[] = {
  { "cuda.shared.array", "shared memory is declared `shared s: f32[16]`" },
  { "cuda.local.array", "an array of the thread's own is declared `local a: f32[16]`" },
  { "cuda.const.array_like", "constants are declared in the module: `const NAME: f32[3] = { 1, 2, 3 }`" },
  { "cuda.jit", "a kernel is declared `kernel name(parameters) { }`" },
};

/* Names that the language has and this version does not. */
static const char *const planned =
  " grid_sync cluster_sync real imag conj arg cp_async cp_async_commit cp_async_wait map_shared_rank ldmatrix mma_m16n8k16 wgmma pointer ";

static const char *find_row(const row *rows, size_t count, const char *word)
{
  for (size_t i = 0; i < count; i++)
    if (strcmp(rows[i].word, word) == 0) return rows[i].text;
  return NULL;
}
#define FIND(rows, word) find_row(rows, sizeof(rows) / sizeof *(rows), word)

const char *kj_find_type_alias(const char *name) { return FIND(type_aliases, name); }

const char *kj_explain_word(const char *word) { return FIND(words, word); }

/* "np.float32" and "cuda.float32" are "float32"; NULL: the name has no such prefix. */
static const char *skip_module(const char *name)
{
  static const char *const modules[] = { "np.", "numpy.", "numba.", "cuda.", "math.", "cupy.", "cp.", "torch.", "tl.", "std::" };
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
    if (strncmp(name, modules[i], strlen(modules[i])) == 0) return name + strlen(modules[i]);
  return NULL;
}

static const char *explain_own(kj_arena *arena, const char *written, const char *name)
{
  const kj_builtin *builtin = kj_find_builtin_alias(name);
  if (!builtin && name != written) builtin = kj_find_builtin(name);
  if (builtin) return kj_format(arena, "`%s` is `%s` here", written, builtin->name);
  const char *type = FIND(type_aliases, name);
  if (!type && name != written && kj_find_scalar(name, strlen(name)) != KJIT_ANY) type = name;
  return type ? kj_format(arena, "`%s` is `%s` here", written, type) : NULL;
}

const char *kj_explain_name(kj_arena *arena, const char *name)
{
  const char *sentence = FIND(words, name);
  if (!sentence) sentence = FIND(dotted, name);
  if (!sentence) sentence = explain_own(arena, name, name);
  const char *rest = skip_module(name);
  while (!sentence && rest) {
    sentence = explain_own(arena, name, rest);
    rest = skip_module(rest);
  }
  return sentence;
}

/* f32x4, i8x16: a scalar type, x, lanes. */
static bool is_vector_type(const char *name)
{
  const char *x = strrchr(name, 'x');
  return x && x[1] && strspn(x + 1, "0123456789") == strlen(x + 1) && kj_find_scalar(name, (size_t)(x - name)) != KJIT_ANY;
}

const char *kj_find_planned(kj_arena *arena, const char *name)
{
  if (is_vector_type(name)) return "vector types";
  size_t length = strlen(name);
  for (const char *at = strstr(planned, name); at && length; at = strstr(at + 1, name))
    if (at[-1] == ' ' && at[length] == ' ') return kj_format(arena, "`%s`", name);
  return NULL;
}

/* ---- near misses ---- */

enum { MAX_NEAR_LENGTH = 40 };

/* Levenshtein with one row; both at most MAX_NEAR_LENGTH long. */
static size_t edit_distance(const char *a, const char *b)
{
  size_t n = strlen(a), m = strlen(b), costs[MAX_NEAR_LENGTH + 1];
  for (size_t j = 0; j <= m; j++) costs[j] = j;
  for (size_t i = 1; i <= n; i++) {
    size_t diagonal = costs[0];
    costs[0] = i;
    for (size_t j = 1; j <= m; j++) {
      size_t replace = diagonal + ((a[i - 1] | 0x20) != (b[j - 1] | 0x20)), best = costs[j - 1] + 1;
      diagonal = costs[j];
      if (diagonal + 1 < best) best = diagonal + 1;
      costs[j] = replace < best ? replace : best;
    }
  }
  return costs[m];
}

void kj_consider(kj_near *near, const char *candidate)
{
  size_t length = strlen(near->name);
  if (!candidate || length < 2 || length > MAX_NEAR_LENGTH || strlen(candidate) > MAX_NEAR_LENGTH || strlen(candidate) < 2) return;
  size_t distance = edit_distance(near->name, candidate);
  size_t allowed = length < 4 ? 1 : length < 8 ? 2 : 3;
  if (distance > allowed || distance >= strlen(candidate) || (near->best && distance >= near->distance)) return;
  near->best = candidate;
  near->distance = distance;
}

void kj_fail_unknown_type(kj_lexer *lexer, const kj_type_expr *type)
{
  const char *alias = FIND(type_aliases, type->name), *later = kj_find_planned(lexer->arena, type->name);
  if (alias) kj_fail_at(lexer, type->location, KJIT_ERROR_NAME, "`%s` is `%s` here", type->name, alias);
  if (later) kj_fail_at(lexer, type->location, KJIT_ERROR_UNSUPPORTED, "%s are not supported yet", later);
  kj_fail_at(lexer, type->location, KJIT_ERROR_NAME, "`%s` is not a type", type->name);
}
