/* The CPU as a device: its table of operations, and the functions that the files in this folder
 * share. */
#ifndef KJ_CPU_CPU_H
#define KJ_CPU_CPU_H

#include "base/device.h"

/* Operations of a device that runs kernels on this machine's cores. base/device.h documents each
 * function. */
extern const kj_device_operations kj_cpu_operations;
/* Returns the operations for a kind of device in a context whose kjit_config.target is `target`
 * (target_device.c). These are the usual operations of the kind if target is NULL or names a target
 * of another kind. */
const kj_device_operations *kj_target_operations(const kj_device_operations *kind,
                                                 const char *target);

/* maximum number of threads of a launch, and of worker threads of the process */
enum { KJ_MOST_WORKERS = 256 };

/* ---- workers.c: worker threads in the process ---- */

/* Returns the number of cores that this process may use, at least 1. */
uint32_t kj_count_cores(void);
/* Called when a device opens or closes. threads: the maximum number of threads of its launches. No
 * launch may be running on a device that closes. Closing the last device joins all workers. */
void kj_open_workers(uint32_t threads);
void kj_close_workers(void);
/* Calls body(data, 0) on this thread. Workers that become idle in the meantime call body(data, i)
 * for other indices i < count. Each index is used once; an index whose worker has returned early
 * because of kj_leave_work is used again. Returns when all started bodies have returned. count is 2
 * to KJ_MOST_WORKERS. Any number of threads may call this at once. The caller holds no lock. */
void kj_share_work(size_t count, void (*body)(void *data, size_t index), void *data);
/* A body with an index other than 0 must call this function regularly. If the result is true, too
 * many threads run, and the body has to return soon. */
bool kj_leave_work(void);

/* ---- spread.c: how many threads to use for a launch ---- */

typedef struct kj_cpu_work {
  uint64_t size;   /* measure of the launch's work; kjit assumes that launches whose sizes differ by
                      less than a factor of 2 take a similar time */
  uint64_t units;  /* number of chunks into which the work can be divided, at least 1 */
  uint32_t most;   /* maximum number of threads */
  bool is_limited; /* `most` is less than the device's usual maximum */
  /* true if the units are elements of a vectorized loop, so that all units take the same time */
  bool is_even;
} kj_cpu_work;

typedef struct kj_spread {
  uint32_t workers, class;
  kj_width width;
  bool is_timed;   /* the caller has to call kj_note_time */
  bool is_trial;   /* whether the launch measures a width other than the best known width */
  bool has_lead;   /* true if one thread first runs kj_count_lead blocks (the lead). kj_follow_lead
                      then decides how many threads run the remaining blocks */
  double alone_ns; /* estimated time of one thread, or 0 if unknown */
} kj_spread;

kj_spread kj_choose_spread(kj_cpu_cost *cost, const kj_cpu_work *work);
/* Returns the number of pieces into which a range is divided. */
uint32_t kj_count_pieces(const kj_cpu_work *work, const kj_spread *spread);
uint64_t kj_count_lead(const kj_spread *spread, uint64_t blocks);
/* Changes how the remaining blocks are spread. all_ns is the estimated time for all blocks,
 * extrapolated from the lead. */
void kj_follow_lead(kj_cpu_cost *cost, const kj_cpu_work *work, kj_spread *spread, double all_ns);
void kj_note_time(kj_cpu_cost *cost, const kj_cpu_work *work, const kj_spread *spread,
                  uint64_t time_ns);

/* ---- run.c: runs a grid on the cores of this machine ---- */

typedef struct kj_cpu_launch {
  kj_cpu_kernel kernel;
  const void *parameters;
  kj_cpu_grid grid;
  uint64_t scratch_bytes; /* scratch memory of one worker, including dynamic shared memory */
  /* the scratch memory from this offset on is zeroed before a worker's first block; scratch_bytes
   * means that nothing is zeroed */
  uint64_t zeroed_from;
  bool is_cleared; /* true if all scratch memory of a worker is zeroed, so that guests cannot read
                      data of earlier launches */
  uint32_t stack_bytes; /* see kj_code */
  bool is_interruptible;
  bool is_cooperative; /* true if all blocks form one group of fibers that wait for each other */
  /* true if blocks or warps are fibers, see kj_code; if so, grid.cluster is set */
  kj_cpu_fibers parts;
} kj_cpu_launch;

/* Implements the device's launch. The parameters are already marshalled. Divides the grid if the
 * code allows this, runs all blocks and returns when all have ended. Any number of threads may call
 * this at once. Errors: MEMORY; LAUNCH if a group has too many fibers; KERNEL for a deadlock;
 * MISUSE of the application's executor. */
kjit_status kj_launch_on_cpu(kjit_device *device, const kj_device_code *loaded, const kj_code *code,
                             const kj_device_launch *launch, kj_diagnostics *diagnostics);
/* Frees the scratch buffers that launches have kept for reuse. */
void kj_free_scratch(kjit_device *device);

/* ---- parts.c: blocks and warps that wait for each other. Each block or warp is a fiber with its
 * own stack, and the fibers of a group take turns on one core ---- */

/* the fibers of one group: a block, a cluster or the whole grid */
typedef struct kj_crowd kj_crowd;

/* Return the number of groups of a launch, and the scratch memory of one group in bytes. */
uint64_t kj_count_groups(const kj_cpu_launch *launch);
uint64_t kj_group_scratch_bytes(const kj_cpu_launch *launch);
/* Creates the fibers of one group. The same fibers can run any number of groups of the launch, one
 * group after the other. Returns NULL if out of memory. */
kj_crowd *kj_create_crowd(const kj_cpu_launch *launch);
void kj_destroy_crowd(kj_crowd *crowd);
/* Runs a group. scratch has kj_group_scratch_bytes bytes. KJ_GROUP_STUCK means a deadlock; the text
 * in `stuck` names the fibers. */
typedef enum kj_group_end { KJ_GROUP_DONE, KJ_GROUP_STUCK, KJ_GROUP_INTERRUPTED } kj_group_end;
kj_group_end kj_run_group(kj_crowd *crowd, uint64_t group, void *scratch, char *stuck,
                          size_t stuck_bytes);
/* Checks the number of fibers of a group. Returns an error with the numbers if a group has too
 * many. */
kjit_status kj_check_parts(const kj_cpu_launch *launch, kj_diagnostics *diagnostics);

/* ---- object.c: loads the machine code of a relocatable object into this process without LLVM, for
 * objects from the disk cache ---- */

typedef struct kj_image kj_image; /* a loaded object, ready to run */

/* Loads an object. It comes from a file and is therefore untrusted. Returns false if the loader
 * does not support the object, or if a function that the object calls does not exist in this
 * process. `reason` then has a message. The caller can free the bytes after the call. */
enum { KJ_IMAGE_REASON_BYTES = 128 };
bool kj_load_image(const void *object, size_t size_bytes, const char *entry,
                   const kj_outside *outside, kj_image **image, kj_cpu_kernel *kernel,
                   char reason[KJ_IMAGE_REASON_BYTES]);
void kj_unload_image(kj_image *image); /* image can be NULL */

#endif
