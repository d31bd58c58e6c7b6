/* Functions of kjit that CPU code calls to print lines, and to report facts that do not hold.
 * watch.h has the functions for the checks for uninitialized memory and races. */
#ifndef KJ_NATIVE_SUPPORT_ROUTINES_H
#define KJ_NATIVE_SUPPORT_ROUTINES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* ---- printed lines ----
 *
 * The format in which a thread sends a printed line to the application: a header and values, 64
 * bits each. Both libraries use it. */

/* A header is never 0. kj_code.prints has a line of text for each print statement; the header
 * contains the number of the print statement. In the text, the character 2 followed by a letter
 * stands for a value: b bool, i signed, u unsigned, p pointer; h f16, y bf16, f f32 and d f64 are
 * passed as their bits. F (c64) and D (c128) stand for two values. The character 1 followed by
 * another character stands for the character whose code is lower by 64. */
enum { KJ_MOST_PRINT_WORDS = 256 };
#define KJ_PRINT_HEADER(site, count) ((uint64_t)(site) << 16 | (uint64_t)(count) << 1 | 1)
static inline uint32_t kn_print_site(uint64_t header) { return (uint32_t)(header >> 16 & 0xffff); }
static inline uint32_t kn_print_count(uint64_t header) { return (uint32_t)(header >> 1 & 0x7fff); }
/* GPU: identifies the module among the modules that share the ring buffer */
static inline uint32_t kn_print_source(uint64_t header) { return (uint32_t)(header >> 32); }

/* ---- GPU ---- */

/* The print buffer of a device, which is a ring buffer of words in host memory. A thread reserves
 * words with a compare-and-swap on *next, which is in device memory. The thread then writes its
 * values and, last, the header. The host side reads until it finds a header of 0, sets the words
 * that it has read to 0, and advances `read`. */
typedef struct kn_print_ring {
  uint64_t next; /* address of the counter of reserved words */
  uint64_t mask; /* the number of words, which is a power of two, minus 1 */
  uint64_t read; /* number of words that the host has read; like *next, it only grows */
  uint64_t lost; /* number of lines for which there was no space */
  uint64_t words[];
} kn_print_ring;

/* The name and the type of a device variable, which libkjit sets after it has loaded a module that
 * prints. If ring is 0, lines are not printed. */
#define KJ_PRINT_PORT "kjit_print_port"
typedef struct kn_print_port {
  uint64_t ring;   /* address */
  uint64_t source; /* already shifted to the position of kn_print_source; the other bits are 0 */
} kn_print_port;

/* ---- CPU ---- */

/* A launch's lines until they are delivered. For each line, `words` contains the number of the
 * block, the header and the values. */
typedef struct kn_print_sink kn_print_sink;
struct kn_print_sink {
  pthread_mutex_t mutex;
  uint64_t *words;
  size_t count, capacity;
  uint64_t lost; /* number of lines that were lost when out of memory */
  /* If not NULL, a function that can empty the sink. A thread of the launch calls it when the sink
   * has become large. The thread does not hold the mutex. */
  void (*deliver)(kn_print_sink *sink);
};

/* CPU code calls this for each printed line, from any thread of the launch. */
#define KJ_PRINT_FUNCTION "kn_print_line"
void kn_print_line(kn_print_sink *sink, uint64_t header, uint64_t block, const uint64_t *values);

/* Reports that a fact on which compiled code relies does not hold. Only builds with assertions call
 * it. */
#define KJ_FACT_FUNCTION "kn_report_fact"
_Noreturn void kn_report_fact(const char *fact, uint64_t value);

/* These functions check that the iterations of a loop that is marked as parallel are independent.
 * Code calls kn_begin_iteration at each iteration's start, with its number (starting at 0). It
 * calls kn_note_parallel_access before each access that is marked as independent of other
 * iterations. `how` contains KJ_PARALLEL_STORE for a write, and KJ_PARALLEL_FREE if the access can
 * be moved across other accesses of its iteration. A thread runs only one such loop at a time. */
#define KJ_ITERATION_FUNCTION "kn_begin_iteration"
#define KJ_PARALLEL_FUNCTION "kn_note_parallel_access"
enum { KJ_PARALLEL_STORE = 1, KJ_PARALLEL_FREE = 2 };
void kn_begin_iteration(uint64_t number);
void kn_note_parallel_access(const char *place, const void *at, uint64_t size, uint32_t how);

#endif
