/* Functions of kjit that code on the CPU calls for lines that it prints and for facts that are
 * asserted. watch.h has those for watched memory. */
#ifndef KJ_NATIVE_SUPPORT_ROUTINES_H
#define KJ_NATIVE_SUPPORT_ROUTINES_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* Lines that kernels print, on their way from a thread to the host: a header and values, 64 bits
 * each. Both libraries know the form. */

/* A header is never 0. In kj_code.prints a place that prints is one line of text, by its number: a
 * value is the character 2 and a letter (b bool, i signed, u unsigned, p pointer; by their own bits
 * h f16, y bf16, f f32, d f64; F c64 and D c128 are two values); 1 and a character stand for the
 * one 64 below it. */
enum { KJ_MOST_PRINT_WORDS = 256 };
#define KJ_PRINT_HEADER(site, count) ((uint64_t)(site) << 16 | (uint64_t)(count) << 1 | 1)
static inline uint32_t kn_print_site(uint64_t header) { return (uint32_t)(header >> 16 & 0xffff); }
static inline uint32_t kn_print_count(uint64_t header) { return (uint32_t)(header >> 1 & 0x7fff); }
/* GPU: who of those that share a ring */
static inline uint32_t kn_print_source(uint64_t header) { return (uint32_t)(header >> 32); }

/* ---- GPU ---- */

/* The buffer of a device: a ring of words in memory of the host. A thread takes its place by
 * compare-and-swap on *next, which lies on the device, writes its values, then the header. The host
 * reads up to a header of 0, sets to 0 what it has read, and moves `read`. */
typedef struct kn_print_ring {
  uint64_t next; /* address */
  uint64_t mask; /* number of words, a power of two, less 1 */
  uint64_t read; /* words, as *next: they only grow */
  uint64_t lost; /* lines for which there was no room */
  uint64_t words[];
} kn_print_ring;

/* What the host fills in after it has loaded a module that prints: the variable of this name. With
 * a ring of 0 nothing is printed. */
#define KJ_PRINT_PORT "kjit_print_port"
typedef struct kn_print_port {
  uint64_t ring;   /* address */
  uint64_t source; /* in the bits of kn_print_source, the rest 0 */
} kn_print_port;

/* ---- CPU ---- */

/* A line of a launch, kept until it is delivered: its block, its header and its values in one list
 * of words. */
typedef struct kn_print_sink kn_print_sink;
struct kn_print_sink {
  pthread_mutex_t mutex;
  uint64_t *words;
  size_t count, capacity;
  uint64_t lost; /* lines for which there was no memory */
  /* may empty the sink; called when it is large, by any thread of the launch, without the mutex */
  void (*deliver)(kn_print_sink *sink);
};

/* Code on the CPU calls this for each line of a launch, from any of its threads. */
#define KJ_PRINT_FUNCTION "kn_print_line"
void kn_print_line(kn_print_sink *sink, uint64_t header, uint64_t block, const uint64_t *values);

/* In builds with assertions: what the code relies on does not hold. */
#define KJ_FACT_FUNCTION "kn_report_fact"
_Noreturn void kn_report_fact(const char *fact, uint64_t value);

/* The same of loops that are marked parallel: at the start of each iteration, with its number from
 * 0, and before each access that is said to be independent of other iterations'. how:
 * KJ_PARALLEL_STORE; KJ_PARALLEL_FREE: the access may be moved past others of its iteration. A
 * calling thread is in one such loop at a time. */
#define KJ_ITERATION_FUNCTION "kn_begin_iteration"
#define KJ_PARALLEL_FUNCTION "kn_note_parallel_access"
enum { KJ_PARALLEL_STORE = 1, KJ_PARALLEL_FREE = 2 };
void kn_begin_iteration(uint64_t number);
void kn_note_parallel_access(const char *place, const void *at, uint64_t size, uint32_t how);

#endif
