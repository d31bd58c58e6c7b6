/* Lines that kernels print, on their way from a thread to the host: a header and values, 64 bits
 * each. Both libraries know the form. */
#ifndef KJ_NATIVE_PRINT_LINE_H
#define KJ_NATIVE_PRINT_LINE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* A header is never 0. In kj_code.prints a place that prints is one line of text, by its number: a
 * value is the character 2 and a letter (b bool, i signed, u unsigned, p pointer; by their own bits
 * h f16, y bf16, f f32, d f64; F c64 and D c128 are two values); 1 and a character stand for the
 * one 64 below it. */
enum { KJ_MOST_PRINT_WORDS = 256 };
#define KJ_PRINT_HEADER(site, count) ((uint64_t)(site) << 16 | (uint64_t)(count) << 1 | 1)
static inline uint32_t kj_print_site(uint64_t header) { return (uint32_t)(header >> 16 & 0xffff); }
static inline uint32_t kj_print_count(uint64_t header) { return (uint32_t)(header >> 1 & 0x7fff); }
/* GPU: who of those that share a ring */
static inline uint32_t kj_print_source(uint64_t header) { return (uint32_t)(header >> 32); }

/* ---- GPU ---- */

/* The buffer of a device: a ring of words in memory of the host. A thread takes its place by
 * compare-and-swap on *next, which lies on the device, writes its values, then the header. The host
 * reads up to a header of 0, sets to 0 what it has read, and moves `read`. */
typedef struct kj_print_ring {
  uint64_t next; /* address */
  uint64_t mask; /* number of words, a power of two, less 1 */
  uint64_t read; /* words, as *next: they only grow */
  uint64_t lost; /* lines for which there was no room */
  uint64_t words[];
} kj_print_ring;

/* What the host fills in after it has loaded a module that prints: the variable of this name. With
 * a ring of 0 nothing is printed. */
#define KJ_PRINT_PORT "kjit_print_port"
typedef struct kj_print_port {
  uint64_t ring;   /* address */
  uint64_t source; /* in the bits of kj_print_source, the rest 0 */
} kj_print_port;

/* ---- CPU ---- */

/* A line of a launch, kept until it is delivered: its block, its header and its values in one list
 * of words. */
typedef struct kj_print_sink kj_print_sink;
struct kj_print_sink {
  pthread_mutex_t mutex;
  uint64_t *words;
  size_t count, capacity;
  uint64_t lost; /* lines for which there was no memory */
  /* empties the sink; called when it is large, under the mutex */
  void (*deliver)(kj_print_sink *sink);
};

/* Code on the CPU calls this for each line of a launch, from any of its threads. */
#define KJ_PRINT_FUNCTION "kj_print_line"
void kj_print_line(kj_print_sink *sink, uint64_t header, uint64_t block, const uint64_t *values);

#endif
