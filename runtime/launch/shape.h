/* The shape of a launch: grid, block, clusters, dynamic shared memory. shape.c chooses what is part
 * of the key, fit.c goes on with what only the compiled code knows. */
#ifndef KJ_LAUNCH_SHAPE_H
#define KJ_LAUNCH_SHAPE_H

#include "code/specialization.h"

static inline uint64_t kj_volume(const uint32_t v[3]) { return (uint64_t)v[0] * v[1] * v[2]; }

/* A grid of one dimension for so many elements, or threads that were asked for, of which a block
 * takes `share`. */
static inline uint32_t kj_count_blocks(const kjit_device *device, uint64_t count, uint64_t share)
{
  uint64_t most = device->info.max_grid[0], blocks;
  if ((count | share) >> 32) blocks = count / share + (count % share != 0);
  else blocks = (uint32_t)count / (uint32_t)share + ((uint32_t)count % (uint32_t)share != 0);
  return blocks == 0 ? 1 : blocks > most ? (uint32_t)most : (uint32_t)blocks;
}

/* Grid and block. Errors: LAUNCH, ARGUMENT. diagnostics NULL: only the kernel's programs are run;
 * LAUNCH, without a word, where they do not tell or the launch is to be refused. */
kjit_status kj_choose_shape(kj_call *call, kj_diagnostics *diagnostics);
/* Chooses the block where occupancy counts, makes a chosen grid smaller where a thread takes
 * several elements, sizes dynamic shared memory, checks limits. Errors: LAUNCH, DEVICE. */
kjit_status kj_fit_shape(kj_call *call, kjit_specialization *specialization,
                         kj_diagnostics *diagnostics);
/* "kernel `k`: the launch has 5 what, whose allows 4"; whose NULL: the device. */
kjit_status kj_exceed(const kj_call *call, const char *what, uint64_t given, uint64_t limit,
                      const char *whose, kj_diagnostics *diagnostics);
/* LAUNCH: "kernel `k`: ..."; diagnostics NULL: nobody is told. */
kjit_status kj_refuse_launch(const kj_call *call, kj_location location, kj_diagnostics *diagnostics,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Value `index` of programs that were made of expr, for a block or NULL. False: the rules have to
 * be asked. */
bool kj_evaluate_quickly(const kj_call *call, const kj_programs *programs, uint32_t index,
                         const ki_expr *expr, const uint32_t *block, int64_t *value);
#endif
