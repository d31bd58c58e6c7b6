/* Blocks and warps that wait for one another, on one core: each is a part with a stack of its own,
 * and they take turns. */
#ifndef KJ_CPU_PARTS_H
#define KJ_CPU_PARTS_H

#include "cpu/run.h"

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

#endif
