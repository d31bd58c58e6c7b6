/* The accuracy test's own parts: what is measured, inputs, and the reference in higher precision.
 */
#ifndef KJ_ACCURACY_H
#define KJ_ACCURACY_H

#include <mpfr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- formats ---- */

typedef struct format {
  const char *name;
  /* significant bits; of the least normal number; of the greatest */
  int precision, least_exponent, most_exponent;
  unsigned bytes;
  uint8_t code; /* DLPack's */
} format;
enum { FORMAT_F32, FORMAT_F64, FORMAT_F16, FORMAT_BF16, FORMAT_COUNT };
extern const format formats[FORMAT_COUNT];

double decode(const format *f, uint64_t bits);
/* To the nearest, halves to even. */
uint64_t encode(const format *f, double value);
uint64_t load_bits(const format *f, const void *array, size_t i);
void store_bits(const format *f, void *array, size_t i, uint64_t bits);

/* ---- what is measured ---- */

enum { MOST_ARGUMENTS = 3, PRECISION = 160 };
enum {
  /* random numbers in the interval only: no special values, no other magnitudes */
  ONLY_DOMAIN = 1,
  SECOND_INTEGER = 2, /* the second argument is a whole number */
  FIRST_INTEGER = 4,  /* the first is */
  IS_SLOW = 8,        /* its reference takes long: fewer samples */
  SIGN_OPEN = 16,     /* the sign of a zero is left open */
  NO_SMALL = 32,      /* f32 and f64 only */
};

/* Exact result, rounded to PRECISION bits, of arguments that are numbers of the format. */
typedef void (*reference)(mpfr_t r, mpfr_t *x, const format *f);

typedef struct measured {
  int builtin;           /* ki_builtin_id */
  const char *statement; /* stores r[i] from x[i], y[i], z[i] */
  unsigned arguments, flags;
  reference exact;
  double low, high; /* half of the random arguments lie here */
  double most;      /* magnitude of all arguments; 0: no bound */
} measured;

extern const measured measured_functions[];
extern const size_t measured_count;

/* Of complex numbers: z[2 * k] and z[2 * k + 1] are the parts of argument k; r[1] stays untouched
 * where the result is real. */
typedef void (*complex_reference)(mpfr_t *r, mpfr_t *z);

typedef struct measured_complex {
  int builtin;
  const char *call; /* of x[i], y[i] */
  unsigned arguments;
  bool is_real; /* the result */
  complex_reference exact;
  double most; /* of the parts of arguments */
} measured_complex;

extern const measured_complex complex_functions[];
extern const size_t complex_count;

/* ---- inputs ---- */

typedef struct random_state {
  uint64_t state;
} random_state;
uint64_t next_random(random_state *random);
/* count tuples of arguments into arguments[k] (arrays of bits of the format): special values with
 * each other first, then random ones. */
void make_inputs(const measured *m, const format *f, random_state *random,
                 uint64_t *arguments[MOST_ARGUMENTS], size_t count);

#endif
