/* Tests kjit_pairs_gradient for rows and cotangents of f16 and bf16. kjit adds in f32 and rounds
 * once. This file computes the expected sums in double. The sums for arguments of f16 and bf16 are
 * also in f32.
 * RUN: %programs/half_pair_gradients
 */
#include <kjit/kjit.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"

#define REQUIRE(condition) require((condition), #condition, __LINE__)
static void require(int holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  exit(EXIT_FAILURE);
}

static kjit_context *context;
static unsigned seed;

enum { M = 70, N = 900, WIDTH = 3 };

static const char text[] = "func squared(x, y, i, j) {\n"
                           "  var d = zero(dtype(x))\n"
                           "  for k in range(len(x)) { d += (x[k] - y[k]) * (x[k] - y[k]) }\n"
                           "  return d\n"
                           "}\n"
                           "func gauss(x, y, i, j) { return exp(-0.5f32 * squared(x, y, i, j)) }\n"
                           "func scaled(x, y, i, j, s, t) {\n"
                           "  return 4096 * x[0] * y[0] * s[0] * s[1] * s[1] + t * x[1]\n"
                           "}\n";

/* ---- numbers of 16 bits ---- */

/* Decodes a number that is not infinite or NaN. */
static double decode(uint16_t bits, kjit_type type)
{
  int digits = type == KJIT_F16 ? 10 : 7, bias = type == KJIT_F16 ? 15 : 127;
  int exponent = (bits & 0x7fff) >> digits, fraction = bits & ((1 << digits) - 1);
  double value = exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits)
                          : ldexp(fraction, 1 - bias - digits);
  return bits & 0x8000 ? -value : value;
}

/* Returns random bits of a number with an absolute value from 1/8 to 2. */
static uint16_t draw(kjit_type type)
{
  int digits = type == KJIT_F16 ? 10 : 7, bias = type == KJIT_F16 ? 15 : 127;
  unsigned bits = (unsigned)rand_r(&seed);
  unsigned exponent = (unsigned)(bias - 3) + bits % 4;
  return (uint16_t)((bits & 0x8000) | exponent << digits | (bits >> 5 & ((1u << digits) - 1)));
}

/* ---- the arrays of a call ---- */

typedef struct halves {
  kjit_type type;
  uint16_t x[M * WIDTH], y[N * WIDTH], cotangents[M], by_x[M * WIDTH], by_y[N * WIDTH];
  double result[M];  /* of the reduction */
  float rounded[M];  /* the same as an operand */
  int64_t places[M]; /* of the largest values */
} halves;

static double at(const halves *h, const uint16_t *rows, int row, int k)
{
  return decode(rows[row * WIDTH + k], h->type);
}

static double distance(const halves *h, int i, int j)
{
  double d = 0;
  for (int k = 0; k < WIDTH; k++) d += pow(at(h, h->x, i, k) - at(h, h->y, j, k), 2);
  return d;
}

typedef enum way { ADD, LOGADDEXP, MAX, WAYS } way;
static const char *const names[] = { "add", "logaddexp", "max" };

/* Returns the value of a pair: for `add` gauss, otherwise squared. */
static double value_of(const halves *h, way w, int i, int j)
{
  return w == ADD ? exp(-0.5 * distance(h, i, j)) : distance(h, i, j);
}

static void reduce(halves *h, way w)
{
  for (int i = 0; i < M; i++) {
    double r = w == ADD ? 0 : -INFINITY, sum = 0;
    for (int j = 0; j < N; j++) {
      double v = value_of(h, w, i, j);
      if (w == MAX && v > r) h->places[i] = j;
      if (w == ADD) r += v;
      else r = fmax(r, v);
    }
    for (int j = 0; w == LOGADDEXP && j < N; j++) sum += exp(value_of(h, w, i, j) - r);
    h->result[i] = w == LOGADDEXP ? r + log(sum) : r;
    h->rounded[i] = (float)h->result[i];
  }
}

/* Returns the derivative by x[i, k] of the pair's term times its cotangent. The derivative by
 * y[j, k] is the negative of it. */
static double term(const halves *h, way w, int i, int j, int k)
{
  double slope = 2 * (at(h, h->x, i, k) - at(h, h->y, j, k)), v = value_of(h, w, i, j);
  double weight = w == ADD         ? -0.5 * v
                  : w == LOGADDEXP ? exp(v - h->result[i])
                                   : (double)(h->places[i] == j);
  return decode(h->cotangents[i], h->type) * weight * slope;
}

/* A result of 16 bits has half a unit of error, and the sums in f32 have less than 2^-16 of the sum
 * of all absolute values. */
static void check(const halves *h, uint16_t found, double want, double sizes)
{
  double units = h->type == KJIT_F16 ? 0x1p-11 : 0x1p-8, value = decode(found, h->type);
  double room = fabs(want) * units + sizes * 0x1p-16 + 0x1p-25;
  if (!(fabs(value - want) <= room))
    fprintf(stderr, "found %.9g, expected %.9g within %.2g\n", value, want, room);
  REQUIRE(fabs(value - want) <= room);
}

static void check_all(const halves *h, way w)
{
  for (int i = 0; i < M; i++)
    for (int k = 0; k < WIDTH; k++) {
      double sum = 0, sizes = 0;
      for (int j = 0; j < N; j++) sum += term(h, w, i, j, k), sizes += fabs(term(h, w, i, j, k));
      check(h, h->by_x[i * WIDTH + k], sum, sizes);
    }
  for (int j = 0; j < N; j++)
    for (int k = 0; k < WIDTH; k++) {
      double sum = 0, sizes = 0;
      for (int i = 0; i < M; i++) sum -= term(h, w, i, j, k), sizes += fabs(term(h, w, i, j, k));
      check(h, h->by_y[j * WIDTH + k], sum, sizes);
    }
}

/* ---- the calls ---- */

typedef struct operands {
  int64_t of_x[2], of_y[2];
  kjit_tensor x, y, cotangents, result, by_x, by_y;
} operands;

static void describe(halves *h, way w, operands *o)
{
  *o = (operands){ .of_x = { M, WIDTH }, .of_y = { N, WIDTH } };
  o->x = kjit_make_tensor(h->x, h->type, 2, o->of_x);
  o->y = kjit_make_tensor(h->y, h->type, 2, o->of_y);
  o->cotangents = kjit_make_tensor(h->cotangents, h->type, 1, o->of_x);
  o->by_x = kjit_make_tensor(h->by_x, h->type, 2, o->of_x);
  o->by_y = kjit_make_tensor(h->by_y, h->type, 2, o->of_y);
  o->result = w == MAX ? kjit_make_tensor(h->places, KJIT_I64, 1, o->of_x)
                       : kjit_make_tensor(h->rounded, KJIT_F32, 1, o->of_x);
}

static void compute(kjit_module *module, halves *h, way w, uint64_t chunk)
{
  static const uint32_t by[] = { 0, 1 };
  operands o;
  kjit_function *function;
  describe(h, w, &o);
  REQUIRE(kjit_get_function(module, w == ADD ? "gauss" : "squared", &function) == KJIT_OK);
  const kjit_operand gradients[] = { kjit_operand_tensor(&o.by_x), kjit_operand_tensor(&o.by_y) },
                     cotangents = kjit_operand_tensor(&o.cotangents),
                     result = kjit_operand_tensor(&o.result),
                     func = kjit_operand_function(function, NULL, 0, NULL, 0),
                     x = kjit_operand_tensor(&o.x), y = kjit_operand_tensor(&o.y);
  const kjit_operator operator_ = { .name = names[w] };
  const kjit_algorithm_options options = { .size_bytes = sizeof options, .chunk = chunk };
  kjit_status status =
    kjit_pairs_gradient(context, gradients, by, 2, &cotangents, w == ADD ? NULL : &result, &func,
                        &x, &y, 1, &operator_, &options);
  if (status != KJIT_OK) fprintf(stderr, "%s\n", kjit_get_diagnostic(context, 0)->message);
  REQUIRE(status == KJIT_OK);
}

static void test_type(kjit_module *module, halves *h, kjit_type type)
{
  h->type = type;
  for (int i = 0; i < M * WIDTH; i++) h->x[i] = draw(type);
  for (int i = 0; i < N * WIDTH; i++) h->y[i] = draw(type);
  for (int i = 0; i < M; i++) h->cotangents[i] = draw(type);
  for (int w = 0; w < WAYS; w++) {
    reduce(h, (way)w);
    for (uint64_t chunk = 0; chunk <= 64; chunk += 64) {
      memset(h->by_x, 0xff, sizeof h->by_x);
      memset(h->by_y, 0xff, sizeof h->by_y);
      compute(module, h, (way)w, chunk);
      check_all(h, (way)w);
    }
  }
}

/* ---- arguments ---- */

/* Computes the derivatives of s[0] * s[1]^2 * x[0] * y[0] + t * x[1] by s and t, which are of 16
 * bits. The sums over y in f32 have no overflow, although those of f16 would have one. */
static void test_arguments(kjit_module *module, halves *h, kjit_type type)
{
  static const uint32_t by[] = { 4, 5 };
  const int64_t two = 2, m = M, of_s[] = { M, 2 };
  float by_s[M * 2], by_t[M];
  uint16_t s_bits[2] = { draw(type), draw(type) }, t_bits = draw(type);
  kjit_function *function;
  kjit_tensor s = kjit_make_tensor(s_bits, type, 1, &two),
              gs = kjit_make_tensor(by_s, KJIT_F32, 2, of_s),
              gt = kjit_make_tensor(by_t, KJIT_F32, 1, &m);
  operands o;
  describe(h, ADD, &o);
  REQUIRE(kjit_get_function(module, "scaled", &function) == KJIT_OK);
  kjit_arg t = kjit_make_arg(KJIT_ARG_VALUE, type);
  t.value.u = t_bits;
  const kjit_arg arguments[] = { kjit_arg_tensor(&s), t };
  const kjit_operand gradients[] = { kjit_operand_tensor(&gs), kjit_operand_tensor(&gt) },
                     cotangents = kjit_operand_tensor(&o.cotangents),
                     func = kjit_operand_function(function, arguments, 2, NULL, 0),
                     x = kjit_operand_tensor(&o.x), y = kjit_operand_tensor(&o.y);
  const kjit_operator operator_ = { .name = "add" };
  kjit_status status = kjit_pairs_gradient(context, gradients, by, 2, &cotangents, NULL, &func, &x,
                                           &y, 1, &operator_, NULL);
  if (status != KJIT_OK) fprintf(stderr, "%s\n", kjit_get_diagnostic(context, 0)->message);
  REQUIRE(status == KJIT_OK);
  double s0 = decode(s_bits[0], type), s1 = decode(s_bits[1], type);
  for (int i = 0; i < M; i++) {
    double sum = 0, sizes = 0, c = decode(h->cotangents[i], type);
    for (int j = 0; j < N; j++) {
      double term = 4096 * c * at(h, h->x, i, 0) * at(h, h->y, j, 0);
      sum += term, sizes += fabs(term);
    }
    double room = sizes * 0x1p-16, linear = N * c * at(h, h->x, i, 1);
    REQUIRE(fabs(by_s[i * 2] - sum * s1 * s1) <= room * s1 * s1);
    REQUIRE(fabs(by_s[i * 2 + 1] - sum * 2 * s0 * s1) <= room * 2 * fabs(s0 * s1));
    REQUIRE(fabs(by_t[i] - linear) <= fabs(linear) * 0x1p-16);
  }
}

int main(void)
{
  kjit_module *module;
  halves *h = calloc(1, sizeof *h);
  seed = kj_draw_seed();
  REQUIRE(h && kjit_create_context(NULL, &context) == KJIT_OK);
  REQUIRE(kjit_parse_module(context, "halves", text, strlen(text), &module) == KJIT_OK);
  test_type(module, h, KJIT_F16);
  test_arguments(module, h, KJIT_F16);
  test_type(module, h, KJIT_BF16);
  test_arguments(module, h, KJIT_BF16);
  kjit_release_module(module);
  kjit_destroy_context(context);
  free(h);
  return 0;
}
