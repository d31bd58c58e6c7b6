/* accuracy [--device cpu|cuda] [--samples N] [--seed N] [--function NAME] [--type NAME] [--verbose]
 *
 * Runs every float built-in at special and random arguments and compares the results with MPFR. The
 * test fails if an error exceeds the limit in lib/ir/math.def, if an infinity, a NaN or the sign of
 * a zero differs from C's Annex F, or if a float built-in has no row in that table. On the CPU each
 * function runs twice: in a vectorized loop, and one element at a time. */
#include <kjit/kjit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "ir/builtin.h"

enum { LIBRARY_CPU, LIBRARY_LIBDEVICE, LIBRARY_LIBCLC, LIBRARY_COUNT };
static const char *const library_names[] = { "cpu", "libdevice", "libclc" };

#define NONE (-1.0)
typedef struct bounds {
  bool is_given;
  double ulp[LIBRARY_COUNT][2]; /* f32, f64 */
  double absolute[2];
} bounds;

static const bounds documented[KJ_BUILTIN_COUNT] = {
#define EXACT(id, ...) \
  [KJ_BUILTIN_##id] = { true, { { 0.5, 0.5 }, { 0.5, 0.5 }, { 0.5, 0.5 } }, { 0, 0 } },
#define MATH(id, fold, host, libdevice, fast, libclc, form, cpu32, cpu64, nv32, nv64, clc32, \
             clc64, absolute32, absolute64) \
  [KJ_BUILTIN_##id] = { true, \
                        { { cpu32, cpu64 }, { nv32, nv64 }, { clc32, clc64 } }, \
                        { absolute32, absolute64 } },
#define COMPLEX(id, f32, f64)
#include "ir/math.def"
#undef EXACT
#undef MATH
#undef COMPLEX
};

/* error limits of complex results in ULP; 0 means no row */
static const double documented_complex[KJ_BUILTIN_COUNT][2] = {
#define EXACT(...)
#define MATH(...)
#define COMPLEX(id, f32, f64) [KJ_BUILTIN_##id] = { f32, f64 },
#include "ir/math.def"
#undef EXACT
#undef MATH
#undef COMPLEX
};

static const char *const names[] = {
#define X(id, name, ...) name,
#include "ir/builtins.def"
#undef X
};

typedef struct run {
  kjit_context *context;
  kjit_device *device;
  kjit_module *module;
  bool is_cpu, is_verbose;
  int library;
  size_t samples;
  uint64_t seed;
  const char *function, *type;
  int failures, measured;
} run;

typedef struct worst {
  double error; /* error in ULP; INFINITY means that a special value is wrong */
  size_t at;
  bool is_wrong;
} worst;

static void stop(run *t, const char *what)
{
  char *text = t->context ? kjit_copy_diagnostics_text(t->context) : NULL;
  fprintf(stderr, "accuracy: %s\n%s", what, text ? text : "");
  kjit_free(t->context, text);
  exit(EXIT_FAILURE);
}

static void *allocate(size_t count, size_t bytes)
{
  void *memory = calloc(count ? count : 1, bytes);
  if (memory) return memory;
  fprintf(stderr, "accuracy: out of memory\n");
  exit(EXIT_FAILURE);
}

/* ---- kernels: two for each row ---- */

static void append(char **text, size_t *length, const char *format, size_t number,
                   const char *parameters, const char *statement)
{
  int more = snprintf(NULL, 0, format, number, parameters, statement);
  *text = realloc(*text, *length + (size_t)more + 1);
  if (!*text) exit(EXIT_FAILURE);
  snprintf(*text + *length, (size_t)more + 1, format, number, parameters, statement);
  *length += (size_t)more;
}

static void make_module(run *t)
{
  static const char *const parameters[] = { "", "r, x", "r, x, y", "r, x, y, z" };
  char *text = NULL;
  size_t length = 0;
  for (size_t i = 0; i < measured_count; i++) {
    const measured *m = &measured_functions[i];
    append(&text, &length,
           "kernel loop%zu(%s) {\n  for i in grid_range(len(r)) {\n    %s\n  }\n}\n", i,
           parameters[m->arguments], m->statement);
    append(&text, &length,
           "kernel single%zu(%s) {\n  let i = grid(1)\n  if i < len(r) {\n    %s\n  }\n}\n", i,
           parameters[m->arguments], m->statement);
  }
  for (size_t i = 0; i < complex_count; i++) {
    char statement[64];
    snprintf(statement, sizeof statement, "r[i] = %s", complex_functions[i].call);
    append(&text, &length,
           "kernel complex%zu(%s) {\n  for i in grid_range(len(r)) {\n    %s\n  }\n}\n", i,
           parameters[complex_functions[i].arguments], statement);
  }
  if (kjit_parse_module(t->context, "accuracy", text, length, &t->module) != KJIT_OK)
    stop(t, "parsing the kernels");
  free(text);
}

static kjit_kernel *get_kernel(run *t, const char *kind, size_t i)
{
  char name[32];
  kjit_kernel *kernel = NULL;
  snprintf(name, sizeof name, "%s%zu", kind, i);
  if (kjit_get_kernel(t->module, name, &kernel) != KJIT_OK) stop(t, name);
  return kernel;
}

/* ---- comparing ---- */

static double ulp_of(mpfr_srcptr exact, const format *f)
{
  long exponent = mpfr_zero_p(exact) ? f->least_exponent : (long)mpfr_get_exp(exact) - 1;
  if (exponent > f->most_exponent) exponent = f->most_exponent;
  return ldexp(1, (int)(exponent < f->least_exponent ? f->least_exponent : exponent) -
                    f->precision + 1);
}

/* Returns whether the exact result rounds to infinity. The smallest number that does so is the
 * largest finite number plus half an ULP. */
static bool overflows(mpfr_srcptr exact, const format *f)
{
  mpfr_t limit;
  mpfr_init2(limit, 64);
  mpfr_set_ui_2exp(limit, ((uint64_t)1 << (f->precision + 1)) - 1, f->most_exponent - f->precision,
                   MPFR_RNDN);
  bool does = mpfr_cmpabs(exact, limit) >= 0;
  mpfr_clear(limit);
  return does;
}

typedef struct limit {
  /* the limits including rounding, which adds half an ULP to the absolute limit */
  double ulp, absolute;
  bool is_rounded_again, is_sign_open;
} limit;

/* Returns the error of `got` in ULP. INFINITY means that a value is wrong for which only the exact
 * value is accepted. */
static double error_of(mpfr_srcptr exact, double got, const format *f, const limit *bound)
{
  if (mpfr_nan_p(exact)) return isnan(got) ? 0 : INFINITY;
  if (isnan(got)) return INFINITY;
  int sign = mpfr_signbit(exact) ? -1 : 1;
  if (mpfr_inf_p(exact) || (isinf(got) && overflows(exact, f)))
    return isinf(got) && (got < 0) == (sign < 0) ? 0 : INFINITY;
  if (mpfr_zero_p(exact) && got == 0)
    return bound->is_sign_open || (signbit(got) != 0) == (sign < 0) ? 0 : INFINITY;
  if (isinf(got))
    got = (got < 0 ? -1 : 1) *
          (f->most_exponent == 1023 ? 0x1.fffffffffffffp1023 : ldexp(1, f->most_exponent + 1));
  double ulp = ulp_of(exact, f);
  mpfr_t difference;
  mpfr_init2(difference, PRECISION);
  mpfr_d_sub(difference, got, exact, MPFR_RNDN);
  mpfr_abs(difference, difference, MPFR_RNDN);
  double distance = mpfr_get_d(difference, MPFR_RNDU);
  mpfr_div_d(difference, difference, ulp, MPFR_RNDN);
  double error = mpfr_get_d(difference, MPFR_RNDN);
  mpfr_clear(difference);
  return distance <=
             bound->absolute + (bound->absolute > 0 && bound->is_rounded_again ? ulp / 2 : 0)
           ? 0
           : error;
}

/* Compares the results of both ways to run the function. got[1] can be NULL. */
static void compare(const measured *m, const format *f, uint64_t *const *bits, void *const *got,
                    size_t count, const limit *bound, worst found[2])
{
  mpfr_t x[MOST_ARGUMENTS], exact;
  mpfr_init2(exact, PRECISION);
  for (unsigned k = 0; k < MOST_ARGUMENTS; k++) mpfr_init2(x[k], 53);
  for (size_t i = 0; i < count; i++) {
    for (unsigned k = 0; k < m->arguments; k++) mpfr_set_d(x[k], decode(f, bits[k][i]), MPFR_RNDN);
    m->exact(exact, x, f);
    for (int way = 0; way < 2 && got[way]; way++) {
      double error = error_of(exact, decode(f, load_bits(f, got[way], i)), f, bound);
      if (error > found[way].error)
        found[way] = (worst){ .error = error, .at = i, .is_wrong = error > bound->ulp };
    }
  }
  for (unsigned k = 0; k < MOST_ARGUMENTS; k++) mpfr_clear(x[k]);
  mpfr_clear(exact);
}

static void show(const measured *m, const format *f, const char *kind, uint64_t *const *bits,
                 const void *results, const worst *found, const limit *bound)
{
  printf("%s %-12s %-4s %-6s worst %.4g ULP of %.4g at", found->is_wrong ? "FAILED" : "ok    ",
         names[m->builtin], f->name, kind, found->error, bound->ulp);
  for (unsigned k = 0; k < m->arguments; k++)
    printf("%s %.17g (%a)", k ? "," : "", decode(f, bits[k][found->at]),
           decode(f, bits[k][found->at]));
  double got = decode(f, load_bits(f, results, found->at));
  printf(": %.17g (%a) from `%s`\n", got, got, m->statement);
}

/* ---- one row ---- */

static limit limit_of(const run *t, const measured *m, int which)
{
  const bounds *row = &documented[m->builtin];
  bool is_f64 = which == FORMAT_F64, is_small = which == FORMAT_F16 || which == FORMAT_BF16;
  limit bound = { .ulp = row->ulp[t->library][is_f64],
                  .absolute = row->absolute[is_f64],
                  .is_rounded_again = is_small,
                  .is_sign_open = m->flags & SIGN_OPEN };
  if (is_small)
    bound.ulp = 0.5 + ldexp(bound.ulp, formats[which].precision - formats[FORMAT_F32].precision);
  bound.ulp *= 1 + 1e-9;
  return bound;
}

typedef struct sample {
  size_t count;
  uint64_t *bits[MOST_ARGUMENTS];
  /* results of the loop, and of single elements (only on the CPU) */
  void *arguments[MOST_ARGUMENTS], *results[2];
} sample;

static sample make_sample(const run *t, const measured *m, const format *f, uint64_t seed)
{
  sample s = { .count = t->samples };
  if (m->flags & IS_SLOW) s.count /= 8;
  if (f->precision < 24) s.count /= 4;
  random_state random = { seed };
  for (unsigned k = 0; k < MOST_ARGUMENTS; k++) s.bits[k] = allocate(s.count, sizeof *s.bits[k]);
  for (unsigned k = 0; k < MOST_ARGUMENTS; k++) s.arguments[k] = allocate(s.count, f->bytes);
  for (int way = 0; way < (t->is_cpu ? 2 : 1); way++) s.results[way] = allocate(s.count, f->bytes);
  make_inputs(m, f, &random, s.bits, s.count);
  for (unsigned k = 0; k < m->arguments; k++)
    for (size_t i = 0; i < s.count; i++) store_bits(f, s.arguments[k], i, s.bits[k][i]);
  return s;
}

static void free_sample(sample *s)
{
  for (unsigned k = 0; k < MOST_ARGUMENTS; k++) free(s->bits[k]);
  for (unsigned k = 0; k < MOST_ARGUMENTS; k++) free(s->arguments[k]);
  for (int way = 0; way < 2; way++) free(s->results[way]);
}

static kjit_status launch(run *t, kjit_kernel *kernel, const measured *m, const format *f,
                          const sample *s, int way)
{
  int64_t extent = (int64_t)s->count;
  kjit_tensor tensors[1 + MOST_ARGUMENTS];
  kjit_arg arguments[1 + MOST_ARGUMENTS];
  for (unsigned k = 0; k <= m->arguments; k++) {
    tensors[k] = (kjit_tensor){ .data = k ? s->arguments[k - 1] : s->results[way],
                                .device_type = KJIT_DEVICE_CPU,
                                .rank = 1,
                                .code = f->code,
                                .bits = (uint8_t)(8 * f->bytes),
                                .lanes = 1,
                                .shape = &extent };
    arguments[k] = kjit_arg_tensor(&tensors[k]);
  }
  kjit_launch_config config = { .size_bytes = sizeof config, .device = t->device };
  if (way) config.grid[0] = (uint32_t)s->count, config.block[0] = 1;
  return kjit_launch(kernel, &config, arguments, 1 + m->arguments);
}

/* Checks that kjit rejects a function that the math library lacks. */
static void expect_refusal(run *t, const measured *m, const format *f, kjit_status status)
{
  if (status == KJIT_ERROR_UNSUPPORTED) return;
  printf("FAILED %s %s: math.def says that %s has none\n", names[m->builtin], f->name,
         library_names[t->library]);
  t->failures++;
}

static void measure(run *t, size_t row, int which)
{
  static const char *const ways[] = { "loop", "single" };
  const measured *m = &measured_functions[row];
  const format *f = &formats[which];
  limit bound = limit_of(t, m, which);
  sample s = make_sample(t, m, f, t->seed * 1000003 + row * FORMAT_COUNT + (size_t)which);
  worst found[2] = { 0 };
  for (int way = 0; way < 2 && s.results[way]; way++) {
    kjit_status status = launch(t, get_kernel(t, ways[way], row), m, f, &s, way);
    t->measured++;
    if (bound.ulp < 0) expect_refusal(t, m, f, status);
    else if (status != KJIT_OK) stop(t, m->statement);
  }
  if (bound.ulp >= 0) compare(m, f, s.bits, s.results, s.count, &bound, found);
  for (int way = 0; way < 2 && s.results[way]; way++) {
    t->failures += found[way].is_wrong;
    if (found[way].is_wrong || t->is_verbose)
      show(m, f, ways[way], s.bits, s.results[way], &found[way], &bound);
  }
  free_sample(&s);
}

/* ---- complex numbers: arguments of moderate size; the error in ULP of the result's absolute value
 * ---- */

static double distance_of(mpfr_t *exact, const double got[2], bool is_real, const format *f)
{
  mpfr_t difference[2], size;
  mpfr_inits2(PRECISION, difference[0], difference[1], size, (mpfr_ptr)0);
  mpfr_sub_d(difference[0], exact[0], got[0], MPFR_RNDN);
  mpfr_set_zero(difference[1], 1);
  if (!is_real) mpfr_sub_d(difference[1], exact[1], got[1], MPFR_RNDN);
  if (is_real) mpfr_abs(size, exact[0], MPFR_RNDN);
  else mpfr_hypot(size, exact[0], exact[1], MPFR_RNDN);
  mpfr_hypot(difference[0], difference[0], difference[1], MPFR_RNDN);
  mpfr_div_d(difference[0], difference[0], ulp_of(size, f), MPFR_RNDN);
  double error = mpfr_get_d(difference[0], MPFR_RNDN);
  mpfr_clears(difference[0], difference[1], size, (mpfr_ptr)0);
  return isnan(error) ? INFINITY : error;
}

static worst compare_complex(const measured_complex *m, const format *f, void *const *arrays,
                             size_t count)
{
  mpfr_t z[4], exact[2];
  worst found = { 0 };
  for (int i = 0; i < 4; i++) mpfr_init2(z[i], 53);
  for (int i = 0; i < 2; i++) mpfr_init2(exact[i], 600);
  for (size_t i = 0; i < count; i++) {
    for (unsigned k = 0; k < 2 * m->arguments; k++)
      mpfr_set_d(z[k], decode(f, load_bits(f, arrays[1 + k / 2], 2 * i + k % 2)), MPFR_RNDN);
    m->exact(exact, z);
    size_t at = m->is_real ? i : 2 * i;
    double got[2] = { decode(f, load_bits(f, arrays[0], at)),
                      m->is_real ? 0 : decode(f, load_bits(f, arrays[0], at + 1)) };
    double error = distance_of(exact, got, m->is_real, f);
    if (error > found.error) found = (worst){ .error = error, .at = i };
  }
  for (int i = 0; i < 4; i++) mpfr_clear(z[i]);
  for (int i = 0; i < 2; i++) mpfr_clear(exact[i]);
  return found;
}

static void fill_complex(const measured_complex *m, const format *f, random_state *random,
                         void *array, size_t count)
{
  for (size_t i = 0; i < 2 * count; i++) {
    uint64_t choice = next_random(random);
    double part = (double)(next_random(random) >> 11) * 0x1p-53,
           size = choice % 4 ? m->most * part : ldexp(1 + part, -(int)(choice / 4 % 20));
    store_bits(f, array, i, encode(f, choice / 128 % 2 ? -size : size));
  }
}

static kjit_status launch_complex(run *t, size_t row, const format *f, void *const *arrays,
                                  size_t count)
{
  const measured_complex *m = &complex_functions[row];
  enum { COMPLEX_CODE = 5 }; /* DLPack's */
  int64_t extent = (int64_t)count;
  kjit_tensor tensors[3];
  kjit_arg arguments[3];
  for (unsigned k = 0; k <= m->arguments; k++) {
    bool is_float = k == 0 && m->is_real;
    tensors[k] = (kjit_tensor){ .data = arrays[k],
                                .device_type = KJIT_DEVICE_CPU,
                                .rank = 1,
                                .code = is_float ? f->code : COMPLEX_CODE,
                                .bits = (uint8_t)(8 * f->bytes * (is_float ? 1 : 2)),
                                .lanes = 1,
                                .shape = &extent };
    arguments[k] = kjit_arg_tensor(&tensors[k]);
  }
  kjit_launch_config config = { .size_bytes = sizeof config, .device = t->device };
  return kjit_launch(get_kernel(t, "complex", row), &config, arguments, 1 + m->arguments);
}

static void measure_complex(run *t, size_t row, int which)
{
  const measured_complex *m = &complex_functions[row];
  const format *f = &formats[which];
  size_t count = t->samples / 8;
  random_state random = { t->seed * 1000033 + row * FORMAT_COUNT + (size_t)which };
  void *arrays[3];
  for (int k = 0; k < 3; k++) arrays[k] = allocate(2 * count, f->bytes);
  for (unsigned k = 1; k <= m->arguments; k++) fill_complex(m, f, &random, arrays[k], count);
  if (launch_complex(t, row, f, arrays, count) != KJIT_OK) stop(t, m->call);
  worst found = compare_complex(m, f, arrays, count);
  double bound = documented_complex[m->builtin][which == FORMAT_F64];
  found.is_wrong = found.error > bound;
  t->measured++;
  t->failures += found.is_wrong;
  if (found.is_wrong || t->is_verbose) {
    printf("%s %-12s complex of %s worst %.4g ULP of %.4g at", found.is_wrong ? "FAILED" : "ok    ",
           names[m->builtin], f->name, found.error, bound);
    for (unsigned k = 0; k < 2 * m->arguments; k++)
      printf(" %.17g", decode(f, load_bits(f, arrays[1 + k / 2], 2 * found.at + k % 2)));
    printf(" from `%s`\n", m->call);
  }
  for (int k = 0; k < 3; k++) free(arrays[k]);
}

static void measure_all_complex(run *t)
{
  for (size_t row = 0; row < complex_count; row++)
    for (int which = FORMAT_F32; which <= FORMAT_F64; which++) {
      if (t->function && strcmp(t->function, names[complex_functions[row].builtin])) continue;
      if (t->type && strcmp(t->type, formats[which].name)) continue;
      measure_complex(t, row, which);
    }
}

/* ---- the whole ---- */

/* Finds built-ins of the float groups that have no row in math.def or that no measurement
 * covers. */
static void find_gaps(run *t)
{
  for (int id = 0; id < KJ_BUILTIN_COUNT; id++) {
    bool is_float = id >= KJ_FIRST_FLOAT_BUILTIN, is_measured = false;
    for (size_t i = 0; i < measured_count; i++) is_measured |= measured_functions[i].builtin == id;
    bool has_complex = documented_complex[id][0] > 0, is_complex_measured = false;
    for (size_t i = 0; i < complex_count; i++)
      is_complex_measured |= complex_functions[i].builtin == id;
    if (has_complex != is_complex_measured) {
      printf("FAILED %s of complex numbers: %s\n", names[id],
             has_complex ? "not measured" : "no row in math.def");
      t->failures++;
    }
    if (!(is_float || documented[id].is_given) || (documented[id].is_given && is_measured))
      continue;
    printf("FAILED %s: %s\n", names[id], is_measured ? "no row in math.def" : "not measured");
    t->failures++;
  }
}

/* Determines which math library GPU code uses, with a function that libclc lacks. */
static int find_library(run *t)
{
  kjit_compile_options options = { .size_bytes = sizeof options };
  void *code = NULL;
  size_t bytes;
  if (t->is_cpu) return LIBRARY_CPU;
  options.target = "sm_75";
  for (size_t i = 0; i < measured_count; i++) {
    if (measured_functions[i].builtin != KJ_BUILTIN_ERFINV) continue;
    kjit_status status = kjit_compile(get_kernel(t, "loop", i), "f32[:] C, f32[:] C", &options,
                                      KJIT_STAGE_PTX, &code, &bytes);
    kjit_free(t->context, code);
    return status == KJIT_OK ? LIBRARY_LIBDEVICE : LIBRARY_LIBCLC;
  }
  return LIBRARY_LIBDEVICE;
}

static bool take_option(run *t, const char *name, const char *value)
{
  if (!strcmp(name, "--device")) t->is_cpu = strcmp(value, "cuda") != 0;
  else if (!strcmp(name, "--samples")) t->samples = strtoull(value, NULL, 10);
  else if (!strcmp(name, "--seed")) t->seed = strtoull(value, NULL, 10);
  else if (!strcmp(name, "--function")) t->function = value;
  else if (!strcmp(name, "--type")) t->type = value;
  else return false;
  return true;
}

static bool take_options(run *t, int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--verbose")) t->is_verbose = true;
    else if (i + 1 >= argc || !take_option(t, argv[i], argv[i + 1])) return false;
    else i++;
  }
  return true;
}

int main(int argc, char **argv)
{
  run t = { .is_cpu = true, .samples = 8000, .seed = 1 };
  if (!take_options(&t, argc, argv)) {
    fprintf(stderr, "usage: accuracy [--device cpu|cuda] [--samples N] [--seed N] [--function "
                    "NAME] [--type NAME] [--verbose]\n");
    return EXIT_FAILURE;
  }
  mpfr_set_emax(mpfr_get_emax_max()); /* exp(x * x) */
  mpfr_set_emin(mpfr_get_emin_min());
  kjit_config config = { .size_bytes = sizeof config };
  if (kjit_create_context(&config, &t.context) != KJIT_OK) stop(&t, "no context");
  if (kjit_get_device(t.context, t.is_cpu ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA, 0, &t.device) !=
      KJIT_OK)
    stop(&t, "opening the device");
  make_module(&t);
  t.library = find_library(&t);
  find_gaps(&t);
  for (size_t row = 0; row < measured_count; row++)
    for (int which = 0; which < FORMAT_COUNT; which++) {
      if (t.function && strcmp(t.function, names[measured_functions[row].builtin])) continue;
      if (measured_functions[row].flags & NO_SMALL && formats[which].precision < 24) continue;
      if (t.type && strcmp(t.type, formats[which].name)) continue;
      measure(&t, row, which);
    }
  measure_all_complex(&t);
  printf("%s: %d measurements of %zu arguments (functions with slow references and of complex "
         "numbers an eighth, f16 and bf16 a quarter), seed %llu: %d failed\n",
         library_names[t.library], t.measured, t.samples, (unsigned long long)t.seed, t.failures);
  kjit_release_module(t.module);
  kjit_destroy_context(t.context);
  mpfr_free_cache();
  return t.failures || !t.measured ? EXIT_FAILURE : EXIT_SUCCESS;
}
