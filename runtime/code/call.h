/* A call of a kernel on its way to its code: bound arguments, the shape of the launch, the key. */
#ifndef KJ_CODE_CALL_H
#define KJ_CODE_CALL_H

#include "code/kernel.h"

/* One bound argument. Small and without a need to be cleared: filling these is most of what a hit
 * does. */
struct kj_bound {
  uint8_t kind; /* kj_argument_kind */
  uint8_t rank, layout, facts, access;
  bool on_host, is_empty;
  bool offsets_fit; /* every offset, extent and stride is in the range of i32 */
  kjit_type type;   /* of scalars and compile-time values; arrays: the element */
  union {
    struct {          /* scalars and compile-time values */
      ki_value value; /* type KJIT_ANY: none that the host can compute with */
      uint64_t
        /* a run-time scalar or pointer as it goes to the kernel; of a value that is made of others,
           in bits[0], the address where the host has it */
        bits[2];
    };
    struct {                          /* arrays */
      const int64_t *shape, *strides; /* strides only of strided layouts */
      uint64_t address, low, high;    /* of element 0; the bytes [low, high) hold all elements */
      uint64_t count;
      uint64_t target; /* address of element 0 for the kernel: address, or the copy's on the GPU */
    };
    const ki_decl *function;
  };
};

typedef struct kj_call {
  kjit_kernel *kernel;
  kj_runtime *runtime;
  kjit_device *device;
  kjit_stream *stream; /* or NULL */
  const kjit_launch_config *config;
  kj_bound *bound; /* one for each parameter */
  uint64_t *key;
  uint32_t key_count;
  kj_shared_size *shared; /* as kj_code.shared_arrays; one more for the launch's own */
  char *parameters;       /* memory for the parameter block, parameter_room bytes */
  size_t parameter_room;
  char *own_parameters; /* of kj_make_room; whoever divided the call's memory frees it */
  bool has_host_arrays, is_miss;
  uint32_t facts;    /* KJ_CALL_FACT_*, of kj_make_key */
  bool is_sealed;    /* the kernel was when the arguments were matched */
  bool is_general;   /* facts are left out of the key */
  bool is_makeshift; /* runs code for fewer facts than it has */
  /* configuration */
  uint32_t grid[3], block[3], cluster[3];
  bool is_block_chosen; /* nobody has given a block */
  bool is_cooperative;
  /* the grid may still be made smaller: the kernel is all grid_ranges and no grid was given */
  bool is_chosen;
  bool has_elements; /* elements is known */
  bool has_nothing;  /* no iterations at all */
  uint64_t elements; /* of the largest grid_range */
  uint64_t dynamic_shared_bytes;
} kj_call;

/* Divides call_bytes of memory: bound arguments, then the key, then the parameter block. */
size_t kj_divide_memory(kj_call *call, char *memory);
/* "f32[:, :] C", "f32", "16", "a func" for messages and signatures. */
void kj_print_bound(const kj_call *call, const kj_bound *bound, kj_buffer *buffer);
int64_t kj_stride_of(const kj_bound *array, uint32_t dimension);
/* Whether the bytes [low, high) of two arrays have some in common; neither is empty. */
static inline bool kj_do_meet(uint64_t low, uint64_t high, uint64_t other_low, uint64_t other_high)
{
  return (high > other_low) & (other_high > low);
}
kj_relation kj_relate(const kj_bound *a, const kj_bound *b);
kj_scope kj_call_scope(const kj_call *call);
/* Values of @block or another attribute, missing ones 1. */
kjit_status kj_evaluate_attribute(const kjit_kernel *kernel, kj_scope *scope,
                                  const ki_attribute *attribute, kj_diagnostics *diagnostics,
                                  uint32_t values[3]);

#endif
