/* The CPU as a device: its table, and what its files have for each other. */
#ifndef KJ_CPU_CPU_H
#define KJ_CPU_CPU_H

#include "base/device.h"

/* What each function does stands in base/device.h; here they are for a device that runs kernels on
 * the host's cores, too. */
extern const kj_device_operations kj_cpu_operations;
/* target_device.c: returns the operations that replace a kind of devices in a context with
 * kjit_config.target. Returns the kind itself if target is NULL or of another kind. */
const kj_device_operations *kj_target_operations(const kj_device_operations *kind,
                                                 const char *target);

enum { KJ_MOST_WORKERS = 256 }; /* of a launch, and of the process */

/* ---- workers.c: the process's threads that help launches ---- */

/* Cores that this process may use; at least 1. */
uint32_t kj_count_cores(void);
/* A device opens whose launches want so many threads at most, and closes: then none of its launches
 * is under way. Closing the last one joins all workers. */
void kj_open_workers(uint32_t threads);
void kj_close_workers(void);
/* Calls body(data, 0), and from workers that are free meanwhile body(data, i) for some i below
 * count, each once, and again where it has returned because of kj_leave_work. Returns when all that
 * were called have returned. count: 2 to KJ_MOST_WORKERS. Any number of threads at once; not under
 * any lock. */
void kj_share_work(size_t count, void (*body)(void *data, size_t index), void *data);
/* For a body of kj_share_work whose index is not 0, now and then: more threads run than should, and
 * this one is to return soon. */
bool kj_leave_work(void);

/* ---- spread.c: how many threads a launch is worth ---- */

typedef struct kj_cpu_work {
  uint64_t size; /* what the time depends on; launches of a size, within a factor of 2, are alike */
  uint64_t units;  /* that can be run by different threads; at least 1 */
  uint32_t most;   /* threads */
  bool is_limited; /* they are fewer than the device's usual ones */
  bool is_even;    /* the units are elements of a vectorized loop, and one is as the other */
} kj_cpu_work;

typedef struct kj_spread {
  uint32_t workers, class;
  kj_width width;
  bool is_timed; /* kj_note_time is to be called */
  bool is_trial; /* of a width that is not the best one by what is known */
  bool has_lead; /* kj_count_lead blocks are run first by one thread, then kj_follow_lead decides */
  double alone_ns; /* one thread is expected to take; 0: nothing is known */
} kj_spread;

kj_spread kj_choose_spread(kj_cpu_cost *cost, const kj_cpu_work *work);
/* Into how many pieces a range is cut. */
uint32_t kj_count_pieces(const kj_cpu_work *work, const kj_spread *spread);
uint64_t kj_count_lead(const kj_spread *spread, uint64_t blocks);
/* all_ns: what all blocks will take as the first ones have; changes how the rest is spread. */
void kj_follow_lead(kj_cpu_cost *cost, const kj_cpu_work *work, kj_spread *spread, double all_ns);
void kj_note_time(kj_cpu_cost *cost, const kj_cpu_work *work, const kj_spread *spread,
                  uint64_t time_ns);

/* ---- run.c: runs a grid on the cores of this machine ---- */

typedef struct kj_cpu_launch {
  kj_cpu_kernel kernel;
  const void *parameters;
  kj_cpu_grid grid;
  uint64_t scratch_bytes; /* of one worker, dynamic shared memory included */
  /* what of it is 0 before a worker's first block; scratch_bytes: nothing */
  uint64_t zeroed_from;
  bool is_cleared;      /* all of a worker's is: guests see nothing of what was there before */
  uint32_t stack_bytes; /* as kj_code has it */
  bool is_interruptible;
  bool is_cooperative; /* all blocks take turns: one group */
  kj_cpu_parts parts;  /* what waits for one another, as kj_code says; grid.cluster is set */
} kj_cpu_launch;

/* The device's function for a launch whose parameters are marshalled: cuts the grid where the code
 * leaves that to the runtime, runs all blocks and returns when they are done. Any number of threads
 * at once. Errors: MEMORY; LAUNCH for more parts than can wait for one another; KERNEL where they
 * wait forever; MISUSE of the host's executor. */
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
/* Runs a group in scratch memory of its size. STUCK: its parts wait for each other forever; the
 * text says who. */
typedef enum kj_group_end { KJ_GROUP_DONE, KJ_GROUP_STUCK, KJ_GROUP_INTERRUPTED } kj_group_end;
kj_group_end kj_run_group(kj_crowd *crowd, uint64_t group, void *scratch, char *stuck,
                          size_t stuck_bytes);
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
