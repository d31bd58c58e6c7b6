/* Runs a grid on the cores of this machine. */
#ifndef KJ_CPU_RUN_H
#define KJ_CPU_RUN_H

#include "base/device.h"

typedef struct kj_cpu_launch {
  kj_cpu_kernel kernel;
  const void *parameters;
  kj_cpu_grid grid;
  uint64_t scratch_bytes; /* of one worker, dynamic shared memory included */
  /* what of it is 0 before a worker's first block; scratch_bytes: nothing */
  uint64_t zeroed_from;
  bool is_small;       /* not worth waking other threads */
  bool is_cooperative; /* all blocks take turns: one group */
  kj_cpu_parts parts;  /* what waits for one another, as kj_code says; grid.cluster is set */
} kj_cpu_launch;

/* Runs all blocks and returns when they are done. Any number of threads at once. Errors: MEMORY;
 * LAUNCH for more parts than can wait for one another; KERNEL where they wait forever. */
kjit_status kj_run_cpu(kjit_device *device, const kj_cpu_launch *launch,
                       kj_diagnostics *diagnostics);
/* The device's function for a launch whose parameters are marshalled: cuts the grid where the code
 * leaves that to the runtime. */
kjit_status kj_launch_on_cpu(kjit_device *device, const kj_device_code *loaded, const kj_code *code,
                             const kj_device_launch *launch, kj_diagnostics *diagnostics);
/* The buffers that launches have left for the next ones. */
void kj_free_scratch(kjit_device *device);

#endif
