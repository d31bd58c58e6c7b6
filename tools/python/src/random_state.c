/* Implements the random generators that np.random and the module random use in functions of
 * kjit.njit. As in Numba, each generator is a Mersenne Twister. Each thread has two generators, for
 * np.random and for random. */
#include "random_state.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 624, SHIFT = 397 };

typedef struct twister {
  uint32_t words[WORDS];
  int next;      /* position of the next word; WORDS means that new words must be computed first */
  int is_seeded; /* 0 before the first use of the generator in its thread */
  int has_normal;
  double normal; /* the unused second number of the last pair, if has_normal is set */
} twister;

static _Thread_local twister of_numpy, of_python;

/* ---- seeds ---- */

static void seed(twister *t, uint32_t number)
{
  for (uint32_t i = 0; i < WORDS; i++) {
    t->words[i] = number;
    number = 1812433253u * (number ^ (number >> 30)) + i + 1;
  }
  t->next = WORDS;
  t->has_normal = 0;
  t->is_seeded = 1;
}

/* Seeds a generator with random bytes from the operating system. If the system provides none, the
 * time and the process id determine the seed, as in NumPy. */
static void seed_with_entropy(twister *t)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  seed(t, (uint32_t)now.tv_nsec ^ (uint32_t)now.tv_sec ^ (uint32_t)getpid() << 16 ^
            (uint32_t)((uintptr_t)t >> 4));
  unsigned char *bytes = (unsigned char *)t->words;
  for (size_t made = 0; made < sizeof t->words;) {
    ssize_t got = getrandom(bytes + made, sizeof t->words - made, 0);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) made += (size_t)got;
  }
  t->words[0] |= 1u << 31; /* a state in which all words are 0 would be invalid */
}

/* Makes the child of a fork seed its generators again, so that it does not repeat the parent's
 * numbers. */
static void forget_seeds(void) { of_numpy.is_seeded = of_python.is_seeded = 0; }

static twister *seeded(twister *t)
{
  if (!t->is_seeded) seed_with_entropy(t);
  return t;
}

/* ---- numbers ---- */

static uint32_t mix(uint32_t high, uint32_t low, uint32_t far)
{
  uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
  return far ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
}

static void make_words(twister *t)
{
  uint32_t *w = t->words;
  int i = 0;
  for (; i < WORDS - SHIFT; i++) w[i] = mix(w[i], w[i + 1], w[i + SHIFT]);
  for (; i < WORDS - 1; i++) w[i] = mix(w[i], w[i + 1], w[i + SHIFT - WORDS]);
  w[i] = mix(w[i], w[0], w[SHIFT - 1]);
  t->next = 0;
}

static uint32_t get_word(twister *t)
{
  if (t->next == WORDS) make_words(t);
  uint32_t y = t->words[t->next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

static double get_double(twister *t)
{
  uint32_t high = get_word(t) >> 5, low = get_word(t) >> 6;
  return (double)((uint64_t)high << 26 | low) / 9007199254740992.0;
}

/* Returns a number from the standard normal distribution, by the polar method. */
static double get_normal(twister *t)
{
  if (t->has_normal) {
    t->has_normal = 0;
    return t->normal;
  }
  volatile double a, b, squares; /* volatile, so that the compiler does not contract a product and a
                                    sum to an FMA */
  do {
    a = 2.0 * get_double(t) - 1.0;
    b = 2.0 * get_double(t) - 1.0;
    volatile double aa = a * a, bb = b * b;
    squares = aa + bb;
  } while (squares >= 1.0 || squares == 0.0);
  double factor = sqrt(-2.0 * log(squares) / squares);
  t->normal = factor * a;
  t->has_normal = 1;
  return factor * b;
}

/* ---- functions that compiled code calls ---- */

static double numpy_double(void) { return get_double(seeded(&of_numpy)); }

static double numpy_normal(void) { return get_normal(seeded(&of_numpy)); }

/* Returns a number with `bits` bits, 1 to 64. Uses the low bits of words, the high word first, like
 * NumPy. */
static uint64_t numpy_bits(int32_t bits)
{
  twister *t = seeded(&of_numpy);
  uint64_t high = bits > 32 ? get_word(t) & (0xffffffffu >> (64 - bits)) : 0;
  uint32_t low = get_word(t);
  return bits > 32 ? high << 32 | low : low & (0xffffffffu >> (32 - bits));
}

static void numpy_seed(uint32_t number) { seed(&of_numpy, number); }

static double python_double(void) { return get_double(seeded(&of_python)); }

static double python_normal(void) { return get_normal(seeded(&of_python)); }

/* Returns a number with `bits` bits, 1 to 64. Uses the high bits of words, the low word first, like
 * Python. */
static uint64_t python_bits(int32_t bits)
{
  twister *t = seeded(&of_python);
  uint64_t low = get_word(t);
  if (bits <= 32) return low >> (32 - bits);
  return low | (uint64_t)(get_word(t) >> (64 - bits)) << 32;
}

static void python_seed(uint32_t number) { seed(&of_python, number); }

static const struct {
  const char *name;
  void (*function)(void);
} functions[] = {
  { "numpy_double", (void (*)(void))numpy_double },
  { "numpy_normal", (void (*)(void))numpy_normal },
  { "numpy_bits", (void (*)(void))numpy_bits },
  { "numpy_seed", (void (*)(void))numpy_seed },
  { "python_double", (void (*)(void))python_double },
  { "python_normal", (void (*)(void))python_normal },
  { "python_bits", (void (*)(void))python_bits },
  { "python_seed", (void (*)(void))python_seed },
};

static void forget_seeds_at_fork(void) { pthread_atfork(NULL, NULL, forget_seeds); }

void (*random_state_find(const char *name))(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, forget_seeds_at_fork);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!strcmp(functions[i].name, name)) return functions[i].function;
  return NULL;
}
