/* Prepared launches: the object, and the functions that keep and replace its arguments. */
#ifndef KJ_LAUNCH_PREPARED_H
#define KJ_LAUNCH_PREPARED_H

#include "launch/steps.h"

/* A copy of the data that an argument points to. The copy is necessary because the application may
 * free tensors and values after the call. */
typedef struct kj_kept_argument {
  kjit_tensor tensor;
  int64_t extents[2 * KJ_MAX_RANK];
  uint64_t bits[2];
  int32_t scalar_offset; /* offset in the parameter block if the argument can be replaced by a write
                            to the block, otherwise -1 */
  uint8_t scalar_bytes;
  void *value; /* memory for a value that is too large for `bits`, or NULL */
} kj_kept_argument;

/* The fields that a run on a GPU reads if it only has to call the driver. code and function belong
 * to the specialization, which may be evicted and loaded again. */
typedef struct kj_ready_launch {
  _Alignas(64) bool is_ready; /* true if the parameter block and the shape belong to the current
                                 arguments */
  uint32_t forks, generation; /* generation of the device when the arguments were checked */
  kj_stream_id noted;         /* the stream for which the arrays' uses are recorded, or NONE */
  kjit_specialization *specialization;
  ki_launch_counter *launches;
  kj_known_shape shape;
} kj_ready_launch;

struct kjit_prepared {
  kj_ready_launch ready;
  kj_object object;
  kjit_kernel *kernel;
  kjit_launch_config config;
  kjit_arg *arguments; /* the arguments; the data that they point to is in `kept` */
  kj_kept_argument *kept;
  size_t count;
  char *memory; /* memory of the call */
  kj_call call;
  /* true if an argument was replaced after `call` was bound; `ready` may belong to the new
   * arguments already */
  bool is_stale;
  bool is_sealed; /* whether the kernel was sealed when the slow path found the specialization */
};

/* Marks that the current arguments differ from those of `call`, so that the next run checks them
 * again. */
static inline void kj_set_stale(kjit_prepared *prepared)
{
  prepared->is_stale = true;
  prepared->ready.is_ready = false;
}

/* ---- prepared_arguments.c ---- */

/* Copies the arguments and the data that they point to, and retains arrays. Errors: ARGUMENT,
 * located at the parameter; MEMORY. */
kjit_status kj_keep_arguments(kjit_prepared *prepared, const kjit_arg *arguments,
                              kj_diagnostics *diagnostics);
void kj_release_arguments(kjit_prepared *prepared);
/* Finds the scalars that can be replaced in the parameter block of a new specialization. */
void kj_find_scalars(kjit_prepared *prepared);

#endif
