/* The CPU as a device: its table, and what its files have for each other. */
#ifndef KJ_CPU_CPU_H
#define KJ_CPU_CPU_H

#include "base/device.h"

/* What each function does stands in base/device.h; here they are for a device that runs kernels on
 * the host's cores, too. */
extern const kj_device_operations kj_cpu_operations;

/* ---- run.c: runs a grid on the cores of this machine ---- */

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

/* ---- parts.c: blocks and warps that wait for one another, on one core: each is a part with a
 * stack of its own, and they take turns ---- */

/* the parts of one group of blocks: a block, a cluster, or the grid */
typedef struct kj_crowd kj_crowd;

/* Groups of a launch, and what one of them takes. */
uint64_t kj_count_groups(const kj_cpu_launch *launch);
uint64_t kj_group_scratch_bytes(const kj_cpu_launch *launch);
/* For any number of groups of the launch, one after the other. NULL: out of memory. */
kj_crowd *kj_create_crowd(const kj_cpu_launch *launch);
void kj_destroy_crowd(kj_crowd *crowd);
/* Runs a group in scratch memory of its size. false: its parts wait for each other forever; the
 * text says who. */
bool kj_run_group(kj_crowd *crowd, uint64_t group, void *scratch, char *stuck, size_t stuck_bytes);
/* More parts than run together: refused, with the numbers. */
kjit_status kj_check_parts(const kj_cpu_launch *launch, kj_diagnostics *diagnostics);

/* ---- object.c: machine code of a relocatable object into this process without LLVM: for objects
 * of the disk cache ---- */

typedef struct kj_image kj_image; /* an object in memory, ready to run */

/* The object comes from a file: nothing in it is believed. false: it is no object that this loader
 * takes, or calls what this process lacks; *reason says which, static storage. The bytes are not
 * used afterwards. */
bool kj_load_image(const void *object, size_t size_bytes, const char *entry,
                   const kj_outside *outside, kj_image **image, kj_cpu_kernel *kernel,
                   const char **reason);
void kj_unload_image(kj_image *image); /* NULL is fine */

#endif
