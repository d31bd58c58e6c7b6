/* Finds the addresses of functions that CPU code calls. A function can belong to kjit itself, to
 * libm, to another part of the C library, or, with several lanes, to libmvec. libm and libmvec are
 * opened when they are first needed. */
#include "native/functions.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "ir/builtin.h"
#include "native/support_routines.h"
#include "native/watch.h"

const kn_vector_variant kn_vector_variants[KJ_VECTOR_VARIANTS] = {
  { 'b', 16 }, { 'c', 32 }, { 'd', 32 }, { 'e', 64 }
};

/* Functions whose f32 version has the suffix f. They are listed without the suffix, and with the
 * number of arguments of their variants in libmvec. 0 means that libmvec has no variant. */
static const struct {
  const char *name;
  unsigned arguments;
} math_functions[] = {
#define NONE 0
#define ONE(f) 1
#define TWO(f) 2
#define THREE(f) 3
#define EXACT(id, fold, host, libdevice, fast, libclc, form) \
  { host, (form)&KJ_MATH_VECTOR ? fold : 0 },
#define MATH(id, fold, host, libdevice, fast, libclc, form, ...) \
  { host, (form)&KJ_MATH_VECTOR ? fold : 0 },
#define COMPLEX(...)
#include "ir/math.def"
#undef EXACT
#undef MATH
#undef COMPLEX
#define MATH(name) { #name, 0 },
#define OTHER(name)
#include "native/functions.def"
#undef MATH
#undef OTHER
};
enum { MATH_COUNT = sizeof math_functions / sizeof *math_functions };

static const char *const other_functions[] = {
#define MATH(name)
#define OTHER(name) #name,
#include "native/functions.def"
#undef MATH
#undef OTHER
};

/* Functions of kjit itself, except for math functions. */
static const kn_host_function own_functions[] = {
  { KJ_PRINT_FUNCTION, (void *)kn_print_line },
  { KJ_WATCH_BLOCK_FUNCTION, (void *)kn_watch_block },
  { KJ_WATCH_BARRIER_FUNCTION, (void *)kn_watch_barrier },
  { KJ_WATCH_WARPS_FUNCTION, (void *)kn_watch_warps },
  { KJ_WATCH_ACCESS_FUNCTION, (void *)kn_watch_access },
#ifndef NDEBUG
  { KJ_FACT_FUNCTION, (void *)kn_report_fact },
  { KJ_ITERATION_FUNCTION, (void *)kn_begin_iteration },
  { KJ_PARALLEL_FUNCTION, (void *)kn_note_parallel_access },
#endif
  { NULL, NULL }
};

static const kn_host_function *const tables[] = { own_functions, kn_host_functions,
                                                  kn_conversions };
enum { TABLES = sizeof tables / sizeof *tables };

/* The libraries stay open until the process ends, because generated code calls their functions. */
static struct {
  pthread_once_t once;
  void *handle;
} libm = { .once = PTHREAD_ONCE_INIT }, libmvec = { .once = PTHREAD_ONCE_INIT };

static void open_libm(void) { libm.handle = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL); }
static void open_libmvec(void) { libmvec.handle = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL); }

/* Returns the index of the function with this name, or MATH_COUNT if there is none. */
static size_t find_math(const char *name, size_t length)
{
  size_t i = 0;
  for (; i < MATH_COUNT; i++) {
    const char *known = math_functions[i].name;
    if (known && !strncmp(known, name, length) && !known[length]) break;
  }
  return i;
}

static unsigned count_arguments(const char *name, size_t length)
{
  size_t found = find_math(name, length);
  return found < MATH_COUNT ? math_functions[found].arguments : 0;
}

void kn_format_vector_name(char *text, const kn_vector_variant *variant, bool is_f64,
                           unsigned arguments, const char *name)
{
  snprintf(text, KJ_VECTOR_NAME_BYTES, "_ZGV%cN%u%s_%s%s", variant->isa,
           variant->bytes / (is_f64 ? 8 : 4), arguments == 2 ? "vv" : "v", name, is_f64 ? "" : "f");
}

/* ---- lookup ---- */

static bool is_scalar_name(const char *name)
{
  size_t length = strlen(name);
  bool is_known = find_math(name, length) < MATH_COUNT ||
                  (length && name[length - 1] == 'f' && find_math(name, length - 1) < MATH_COUNT);
  for (size_t i = 0; i < sizeof other_functions / sizeof *other_functions && !is_known; i++)
    is_known = !strcmp(other_functions[i], name);
  return is_known;
}

static void *find_scalar(const char *name)
{
  if (!is_scalar_name(name)) return NULL;
  pthread_once(&libm.once, open_libm);
  return libm.handle ? dlsym(libm.handle, name) : NULL;
}

/* Returns whether kn_format_vector_name can produce this name. */
static bool is_vector_name(const char *name)
{
  const char *underscore = strchr(name + 1, '_'), *base = underscore ? underscore + 1 : "";
  size_t length = strlen(base);
  char expected[KJ_VECTOR_NAME_BYTES];
  for (int is_f64 = 0; is_f64 < 2 && length; is_f64++) {
    size_t base_length = is_f64 ? length : length - 1;
    unsigned arguments = is_f64 || base[length - 1] == 'f' ? count_arguments(base, base_length) : 0;
    char copy[16];
    if (!arguments || base_length >= sizeof copy) continue;
    snprintf(copy, sizeof copy, "%.*s", (int)base_length, base);
    for (int v = 0; v < KJ_VECTOR_VARIANTS; v++) {
      kn_format_vector_name(expected, &kn_vector_variants[v], is_f64, arguments, copy);
      if (!strcmp(expected, name)) return true;
    }
  }
  return false;
}

static void *find_vector(const char *name)
{
  if (!is_vector_name(name)) return NULL;
  pthread_once(&libmvec.once, open_libmvec);
  return libmvec.handle ? dlsym(libmvec.handle, name) : NULL;
}

static uint64_t vector_functions; /* digest of the vector variants that the library contains */

static void add_vector_function(const char *name, unsigned arguments)
{
  enum { PRIME = 31, SHAPES = 2 * KJ_VECTOR_VARIANTS };
  for (int i = 0; i < SHAPES; i++) {
    char symbol[KJ_VECTOR_NAME_BYTES];
    kn_format_vector_name(symbol, &kn_vector_variants[i / 2], i % 2, arguments, name);
    vector_functions = vector_functions * PRIME + (find_vector(symbol) ? 2 : 1);
  }
}

static void look_for_vector_functions(void)
{
  vector_functions = 1;
  for (size_t i = 0; i < MATH_COUNT; i++)
    if (math_functions[i].arguments)
      add_vector_function(math_functions[i].name, math_functions[i].arguments);
  vector_functions |= (uint64_t)1 << 63;
}

uint64_t kn_identify_vector_functions(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look_for_vector_functions);
  return vector_functions;
}

static void *find_in_tables(const char *name)
{
  for (size_t i = 0; i < TABLES; i++)
    for (const kn_host_function *row = tables[i]; row->name; row++)
      if (!strcmp(row->name, name)) return row->address;
  return NULL;
}

static const char vector_prefix[] = "_ZGV";

bool kn_is_library_name(const char *name)
{
  /* kj_ is the prefix of own_functions. The names from vprintf to __assertfail are functions that
   * every CUDA device provides. */
  static const char *const prefixes[] = { vector_prefix, "__nv", "llvm.", "kj_", "kjit_" };
  static const char *const of_devices[] = { "vprintf", "malloc", "free", "__assertfail" };
  bool is_taken = is_scalar_name(name);
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    is_taken |= !strncmp(name, prefixes[i], strlen(prefixes[i]));
  for (size_t i = 0; i < sizeof of_devices / sizeof *of_devices; i++)
    is_taken |= !strcmp(name, of_devices[i]);
  return is_taken || find_in_tables(name) != NULL;
}

void *kn_find_library_function(const char *name)
{
  if (!strncmp(name, vector_prefix, sizeof vector_prefix - 1)) return find_vector(name);
  void *own = find_in_tables(name);
  return own ? own : find_scalar(name);
}
