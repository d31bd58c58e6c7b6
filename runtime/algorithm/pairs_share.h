/* Declarations for reductions over pairs that process y in chunks and divide x into shares, one for
 * each device. pairs_stream.c runs these reductions, and pairs_share.c manages their memory. */
#ifndef KA_PAIRS_SHARE_H
#define KA_PAIRS_SHARE_H

#include "algorithm/pairs.h"

/* Maximum number of results of a call: reduced values, or the k smallest values and their indices.
 */
enum { KA_BUFFERS = 2, KA_MOST_RESULTS = KA_MOST_PAIR_RESULTS };

/* An argument for some rows in an array or tensor. */
typedef struct ka_cut {
  kjit_arg argument;
  kjit_tensor tensor;
  int64_t shape[KJ_MAX_RANK];
  kjit_array *view; /* view that the owner of this struct releases, or NULL */
} ka_cut;

/* An operand with rows of y. `pinned` has pinned buffers if the operand is in host memory. */
typedef struct ka_source {
  kj_view view;
  kjit_array *pinned[KA_BUFFERS];
} ka_source;

/* The work of one device: some rows of x, paired with all rows of y. If there is only one share,
 * `given` contains the operands of the call itself, except that an x in host memory is replaced by
 * a copy on the device. */
typedef struct ka_share {
  kjit_device *device;
  uint64_t first, rows;
  ka_pairing given;
  kjit_operand x[KA_MOST_ROWS], function, results[KA_MOST_RESULTS];
  ka_cut x_rows[KA_MOST_ROWS], result_rows[KA_MOST_RESULTS];
  /* Copies on the device; NULL for operands that are on the device already. */
  kjit_array *x_arrays[KA_MOST_ROWS], *result_arrays[KA_MOST_RESULTS];
  kjit_arg *arguments; /* arguments of the func */
  kjit_array **argument_arrays;
  size_t result_count;
  ka_found found[KA_MOST_PAIR_RESULTS];
  size_t found_count;
  kjit_array *found_arrays[KA_MOST_PAIR_RESULTS];
  /* buffers for chunks of y; NULL if y is on the device */
  kjit_array *buffers[KA_MOST_ROWS][KA_BUFFERS];
  kjit_stream *compute, *copies; /* copies: NULL if all of y is on the device */
  kjit_event *copied[KA_BUFFERS], *used[KA_BUFFERS];
} ka_share;

typedef struct ka_streaming {
  kjit_context *context;
  const char *name;
  const ka_pairing *given;
  kjit_algorithm_options options;
  kjit_device *device; /* the call's device, or the first of several */
  uint64_t m, n, chunk;
  kj_view x_views[KA_MOST_ROWS], result_views[KA_MOST_RESULTS];
  size_t x_count;
  uint32_t buffers;
  bool is_wide, is_shared; /* is_shared: options.devices divides the rows of x */
  ka_source sources[KA_MOST_ROWS];
  ka_share *shares;
  size_t share_count;
} ka_streaming;

typedef struct ka_counting {
  ka_streaming *streaming;
  ka_share *share;
} ka_counting;

/* Make an argument for `count` rows of a tensor or an array, starting with row `first`. view is the
 * view of the whole tensor. */
void ka_cut_tensor(const kjit_tensor *whole, const kj_view *view, uint64_t first, uint64_t count,
                   ka_cut *rows);
kjit_status ka_cut_array(kjit_array *whole, uint64_t first, uint64_t count, ka_cut *rows);
kjit_status ka_cut_rows(const kjit_arg *whole, const kj_view *view, uint64_t first, uint64_t count,
                        ka_cut *rows);

/* Returns the options for a call that computes one chunk of the share. */
kjit_algorithm_options ka_options_of(const ka_streaming *s, const ka_share *share);
/* Fills in share->given: copies the share's rows of x and the func's other arguments to the device
 * and allocates the results there. Waits for the work that is queued on the default streams of the
 * devices from which it copies. */
kjit_status ka_place_share(const ka_streaming *s, ka_share *share);
/* Allocates the arrays for intermediate results and the buffers for y. */
kjit_status ka_allocate_share(const ka_streaming *s, ka_share *share);
kjit_status ka_allocate_pinned(ka_streaming *s);
/* Copies computed results from the device to the application's arrays if these are in other
 * memory. */
kjit_status ka_fetch_results(const ka_streaming *s, const ka_share *share);
void ka_release_shares(ka_streaming *s);

#endif
