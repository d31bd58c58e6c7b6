/* Reductions over pairs by pieces of y and shares of x: what pairs_stream.c, which runs them, and
 * pairs_share.c, which has their memory, both know. */
#ifndef KA_PAIRS_SHARE_H
#define KA_PAIRS_SHARE_H

#include "algorithm/pairs.h"

/* The results of a call: those that the func's values are reduced to, or the k least and their
 * places. */
enum { KA_BUFFERS = 2, KA_MOST_RESULTS = KA_MOST_PAIR_RESULTS };

/* Some rows of an array or tensor, as an argument. */
typedef struct ka_cut {
  kjit_arg argument;
  kjit_tensor tensor;
  int64_t shape[KJ_MAX_RANK];
  kjit_array *view; /* to be released */
} ka_cut;

/* An operand of y. pinned: where it lies in memory of the host. */
typedef struct ka_source {
  kj_view view;
  kjit_array *pinned[KA_BUFFERS];
} ka_source;

/* What a device does: all of y for some rows of x. Where there is one share only, given is the
 * call's, but for an x that lies in memory of the host. */
typedef struct ka_share {
  kjit_device *device;
  uint64_t first, rows;
  ka_pairing given;
  kjit_operand x[KA_MOST_ROWS], function, results[KA_MOST_RESULTS];
  ka_cut x_rows[KA_MOST_ROWS], result_rows[KA_MOST_RESULTS];
  /* NULL: they are on the device */
  kjit_array *x_arrays[KA_MOST_ROWS], *result_arrays[KA_MOST_RESULTS];
  kjit_arg *arguments; /* of the func */
  kjit_array **argument_arrays;
  size_t result_count;
  ka_found found[KA_MOST_PAIR_RESULTS];
  size_t found_count;
  kjit_array *found_arrays[KA_MOST_PAIR_RESULTS];
  kjit_array *buffers[KA_MOST_ROWS][KA_BUFFERS]; /* of y; NULL: it is on the device */
  kjit_stream *compute, *copies;                 /* copies: NULL where all of y is there */
  kjit_event *copied[KA_BUFFERS], *used[KA_BUFFERS];
} ka_share;

typedef struct ka_streaming {
  kjit_context *context;
  const char *name;
  const ka_pairing *given;
  kjit_algorithm_options options;
  kjit_device *device; /* of the call, or the first one */
  uint64_t m, n, chunk;
  kj_view x_views[KA_MOST_ROWS], result_views[KA_MOST_RESULTS];
  size_t x_count;
  uint32_t buffers;
  bool is_wide, is_shared; /* is_shared: by options.devices */
  ka_source sources[KA_MOST_ROWS];
  ka_share *shares;
  size_t share_count;
} ka_streaming;

typedef struct ka_counting {
  ka_streaming *streaming;
  ka_share *share;
} ka_counting;

/* Rows of a tensor or array from `first` on; view: of the whole. */
void ka_cut_tensor(const kjit_tensor *whole, const kj_view *view, uint64_t first, uint64_t count,
                   ka_cut *rows);
kjit_status ka_cut_array(kjit_array *whole, uint64_t first, uint64_t count, ka_cut *rows);
kjit_status ka_cut_rows(const kjit_arg *whole, const kj_view *view, uint64_t first, uint64_t count,
                        ka_cut *rows);

/* Of a call that is a piece of the share. */
kjit_algorithm_options ka_options_of(const ka_streaming *s, const ka_share *share);
/* Makes share->given: rows of x and of the results, and what else the func is called with, on the
 * device. Waits for what is queued on the default streams of devices that things come from. */
kjit_status ka_place_share(const ka_streaming *s, ka_share *share);
/* Memory for what is found, and buffers for y. */
kjit_status ka_allocate_share(const ka_streaming *s, ka_share *share);
kjit_status ka_allocate_pinned(ka_streaming *s);
/* Results that the host wants elsewhere, when they are there. */
kjit_status ka_fetch_results(const ka_streaming *s, const ka_share *share);
void ka_release_shares(ka_streaming *s);

#endif
