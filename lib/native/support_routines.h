/* Functions of kjit that CPU code calls to print lines and to report facts that do not hold.
 * watch.h has the functions for watched memory. */
#ifndef KJ_NATIVE_SUPPORT_ROUTINES_H
#define KJ_NATIVE_SUPPORT_ROUTINES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Format of the lines that kernels print, on their way from a thread to the application: a header
 * and values of 64 bits each. Both libraries use it. */

/* A header is never 0. kj_code.prints has one line of text for each print statement, by its number.
 * In the text, the character 2 and a letter stand for a value: b bool, i signed, u unsigned, p
 * pointer, and, passed as their bits, h f16, y bf16, f f32, d f64. F (c64) and D (c128) take two
 * values. The character 1 and another character stand for the character 64 below that one. */
enum { KJ_MOST_PRINT_WORDS = 256 };
#define KJ_PRINT_HEADER(site, count) ((uint64_t)(site) << 16 | (uint64_t)(count) << 1 | 1)
static inline uint32_t kn_print_site(uint64_t header) { return (uint32_t)(header >> 16 & 0xffff); }
static inline uint32_t kn_print_count(uint64_t header) { return (uint32_t)(header >> 1 & 0x7fff); }
/* GPU: the number of the module among those that share the ring */
static inline uint32_t kn_print_source(uint64_t header) { return (uint32_t)(header >> 32); }

/* ---- GPU ---- */

/* The print buffer of a device: a ring of words in host memory. A thread reserves words by
 * compare-and-swap on *next, which is in device memory. It writes its values and then the header.
 * The application's side reads until it finds a header of 0, sets the words that it has read to 0,
 * and advances `read`. */
typedef struct kn_print_ring {
  uint64_t next; /* address of the counter */
  uint64_t mask; /* number of words, a power of two, minus 1 */
  uint64_t read; /* number of words read so far; like *next it only grows */
  uint64_t lost; /* number of lines that did not fit */
  uint64_t words[];
} kn_print_ring;

/* Device variable of this name, which libkjit fills in after it has loaded a module that prints. If
 * ring is 0, nothing is printed. */
#define KJ_PRINT_PORT "kjit_print_port"
typedef struct kn_print_port {
  uint64_t ring;   /* address */
  uint64_t source; /* already shifted to the bits of kn_print_source; the other bits are 0 */
} kn_print_port;

/* ---- CPU ---- */

/* Lines of a launch until they are delivered. For each line `words` holds its block, its header and
 * its values. */
typedef struct kn_print_sink kn_print_sink;
struct kn_print_sink {
  pthread_mutex_t mutex;
  uint64_t *words;
  size_t count, capacity;
  uint64_t lost; /* number of lines that were lost because there was no memory */
  /* may empty the sink; any thread of the launch calls it when the sink is large, without holding
   * the mutex */
  void (*deliver)(kn_print_sink *sink);
};

/* CPU code calls this for each printed line, from any thread of the launch. */
#define KJ_PRINT_FUNCTION "kn_print_line"
void kn_print_line(kn_print_sink *sink, uint64_t header, uint64_t block, const uint64_t *values);

/* Reports a fact that compiled code relies on and that does not hold. Only builds with assertions
 * call it. */
#define KJ_FACT_FUNCTION "kn_report_fact"
_Noreturn void kn_report_fact(const char *fact, uint64_t value);

/* Check that the iterations of a loop that is marked parallel are independent. Code calls
 * kn_begin_iteration at the start of each iteration, with its number from 0, and
 * kn_note_parallel_access before each access that is marked as independent of other iterations.
 * how: KJ_PARALLEL_STORE for a write; KJ_PARALLEL_FREE if the access may be moved past other
 * accesses of its iteration. A thread runs one such loop at a time. */
#define KJ_ITERATION_FUNCTION "kn_begin_iteration"
#define KJ_PARALLEL_FUNCTION "kn_note_parallel_access"
enum { KJ_PARALLEL_STORE = 1, KJ_PARALLEL_FREE = 2 };
void kn_begin_iteration(uint64_t number);
void kn_note_parallel_access(const char *place, const void *at, uint64_t size, uint32_t how);

#endif
