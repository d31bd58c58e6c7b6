/* Lines that threads on the CPU print are collected here, whole. */
#include "native/print_line.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 19 /* words */ };

static bool make_room(kj_print_sink *sink, size_t needed)
{
  if (sink->count + needed <= sink->capacity) return true;
  size_t wanted = sink->capacity ? 2 * sink->capacity : 1024;
  uint64_t *grown = realloc(sink->words, wanted * sizeof *grown);
  if (!grown) return false;
  sink->words = grown;
  sink->capacity = wanted;
  return sink->count + needed <= wanted;
}

void kj_print_line(kj_print_sink *sink, uint64_t header, uint64_t block, const uint64_t *values)
{
  size_t count = kj_print_count(header);
  pthread_mutex_lock(&sink->mutex);
  if (make_room(sink, count + 2)) {
    uint64_t *at = sink->words + sink->count;
    at[0] = block;
    at[1] = header;
    if (count) memcpy(at + 2, values, count * sizeof *values);
    sink->count += count + 2;
    if (sink->count >= LARGE) sink->deliver(sink);
  } else {
    sink->lost++;
  }
  pthread_mutex_unlock(&sink->mutex);
}
