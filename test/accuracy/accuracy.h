/* Declarations that the files of the accuracy test share: the measured functions, the inputs, and
 * the reference in higher precision.
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
  /* number of significant bits; exponents of the smallest normal number and of the largest
   * number */
  int precision, least_exponent, most_exponent;
  unsigned bytes;
  uint8_t code; /* DLPack's */
} format;
enum { FORMAT_F32, FORMAT_F64, FORMAT_F16, FORMAT_BF16, FORMAT_COUNT };
extern const format formats[FORMAT_COUNT];

double decode(const format *f, uint64_t bits);
/* Returns the bits of the nearest number of the format, ties to even. */
uint64_t encode(const format *f, double value);
uint64_t load_bits(const format *f, const void *array, size_t i);
void store_bits(const format *f, void *array, size_t i, uint64_t bits);

/* ---- the measured functions ---- */

enum { MOST_ARGUMENTS = 3, PRECISION = 160 };
enum {
  /* only random numbers in the interval: no special values, no other magnitudes */
  ONLY_DOMAIN = 1,
  SECOND_INTEGER = 2, /* the second argument is a whole number */
  FIRST_INTEGER = 4,  /* the first is */
  IS_SLOW = 8,        /* its reference is slow, so it gets fewer samples */
  SIGN_OPEN = 16,     /* the sign of a zero is not checked */
  NO_SMALL = 32,      /* f32 and f64 only */
};

/* Computes the exact result, rounded to PRECISION bits, for arguments that are numbers of the
 * format. */
typedef void (*reference)(mpfr_t r, mpfr_t *x, const format *f);

typedef struct measured {
  int builtin;           /* ki_builtin_id */
  const char *statement; /* stores r[i] from x[i], y[i], z[i] */
  unsigned arguments, flags;
  reference exact;
  double low, high; /* half of the random arguments lie here */
  double most;      /* maximum magnitude of all arguments; 0 means no limit */
} measured;

extern const measured measured_functions[];
extern const size_t measured_count;

/* Computes the exact result of a complex function. z[2 * k] and z[2 * k + 1] are the parts of
 * argument k. r[1] is not written if the result is real. */
typedef void (*complex_reference)(mpfr_t *r, mpfr_t *z);

typedef struct measured_complex {
  int builtin;
  const char *call; /* of x[i], y[i] */
  unsigned arguments;
  bool is_real; /* the result */
  complex_reference exact;
  double most; /* maximum magnitude of the parts of arguments */
} measured_complex;

extern const measured_complex complex_functions[];
extern const size_t complex_count;

/* ---- inputs ---- */

typedef struct random_state {
  uint64_t state;
} random_state;
uint64_t next_random(random_state *random);
/* Writes `count` tuples of arguments to arguments[k], which are arrays of bits of the format: first
 * all combinations of special values, then random numbers. */
void make_inputs(const measured *m, const format *f, random_state *random,
                 uint64_t *arguments[MOST_ARGUMENTS], size_t count);

#endif
