/* The driver of test/unit/fake_cuda.h as libcuda.so.1. The Python test opens this library as well,
 * to read the parameters that a launch passes to the GPU. */
#include "../../unit/fake_cuda.h"

#define X(name, symbol, parameters) \
  extern __typeof__(fake_##name) exported_##name __asm__(symbol) \
    __attribute__((alias("fake_" #name), visibility("default")));
#include "cuda/driver.def"
#undef X

#define EXPORT __attribute__((visibility("default")))
typedef struct fake_seen {
  int64_t launches, allocations, events, streams, orders;
  /* ordered: the last pair of streams in which one stream waits for the other */
  uint64_t stream, ordered[2];
  unsigned grid[3], block[3];
  int64_t parameter_bytes;
  char parameters[1024];
  int64_t shared_bytes; /* shared memory of the last launch */
} fake_seen;

EXPORT void fake_set_devices(int count);
EXPORT void fake_set_devices(int count)
{
  (void)find_fake;
  cuda.devices = count;
  cuda.memory_limit = (size_t)1 << 30;
}

EXPORT void fake_break_next_launch(void);
EXPORT void fake_break_next_launch(void) { cuda.fault_next_launch = true; }

EXPORT void fake_look(fake_seen *seen);
EXPORT void fake_look(fake_seen *seen)
{
  *seen = (fake_seen){ .launches = cuda.launches,
                       .allocations = cuda.allocations,
                       .events = cuda.events,
                       .streams = cuda.streams,
                       .orders = cuda.orders,
                       .stream = (uintptr_t)cuda.stream,
                       .parameter_bytes = (int64_t)cuda.parameter_bytes,
                       .shared_bytes = cuda.shared_bytes };
  memcpy(seen->grid, cuda.grid, sizeof seen->grid);
  memcpy(seen->block, cuda.block, sizeof seen->block);
  memcpy(seen->parameters, cuda.parameters, sizeof seen->parameters);
}
