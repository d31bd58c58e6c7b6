/* The C function of each algorithm's name, and what its arguments are. */
#include "algorithm.h"

/* A matrix is five arguments: data, columns, offsets, and the numbers of rows and columns. */
static kjit_csr csr_of(const algorithm_argument *a)
{
  return (kjit_csr){ a[0].operands, a[1].operands, a[2].operands, { a[3].integer, a[4].integer } };
}

#define CALL(name, call) \
  static kjit_status call_##name(kjit_context *context, const algorithm_argument *a, \
                                 const kjit_algorithm_options *options) \
  { \
    return call; \
  }
CALL(reduce, kjit_reduce(context, a[0].operands, a[1].operands, a[2].operators, options))
CALL(reduce_several, kjit_reduce_several(context, a[0].operands, a[1].operands, a[2].operators,
                                         a[2].count, options))
CALL(reduce_segments, kjit_reduce_segments(context, a[0].operands, a[1].operands, a[2].operands,
                                           a[3].operators, options))
CALL(scan_segments, kjit_scan_segments(context, a[0].operands, a[1].operands, a[2].operands,
                                       a[3].operators, options))
CALL(reduce_by_key,
     kjit_reduce_by_key(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                        a[4].operands, a[5].operators, a[6].function, options))
CALL(scan_by_key, kjit_scan_by_key(context, a[0].operands, a[1].operands, a[2].operands,
                                   a[3].operators, a[4].function, options))
CALL(scan, kjit_scan(context, a[0].operands, a[1].operands, a[2].operators, options))
CALL(sort, kjit_sort(context, a[0].operands, a[1].operands, a[2].function, options))
CALL(sort_pairs, kjit_sort_pairs(context, a[0].operands, a[1].operands, a[2].operands,
                                 a[3].operands, a[4].function, options))
CALL(argsort, kjit_argsort(context, a[0].operands, a[1].operands, a[2].function, options))
CALL(merge,
     kjit_merge(context, a[0].operands, a[1].operands, a[2].operands, a[3].function, options))
CALL(top_k, kjit_top_k(context, a[0].operands, a[1].operands, a[2].operands, a[3].integer,
                       a[4].function, options))
CALL(sort_segments, kjit_sort_segments(context, a[0].operands, a[1].operands, a[2].operands,
                                       a[3].operands, a[4].operands, a[5].function, options))
CALL(map, kjit_map(context, a[0].operands, a[0].count, a[1].function, a[2].operands, a[2].count,
                   options))
CALL(select,
     kjit_select(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands, options))
CALL(partition, kjit_partition(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                               a[4].operands, options))
CALL(partition_three, kjit_partition_three(context, a[0].operands, a[1].operands, a[2].operands,
                                           a[3].operands, a[4].operands, a[5].operands, options))
CALL(nonzero, kjit_nonzero(context, a[0].operands, a[1].operands, a[2].operands, options))
CALL(unique,
     kjit_unique(context, a[0].operands, a[1].operands, a[2].operands, a[3].function, options))
CALL(unique_pairs, kjit_unique_pairs(context, a[0].operands, a[1].operands, a[2].operands,
                                     a[3].operands, a[4].operands, a[5].function, options))
CALL(run_lengths, kjit_run_lengths(context, a[0].operands, a[1].operands, a[2].operands,
                                   a[3].operands, a[4].operands, a[5].function, options))
CALL(set_union, kjit_set_union(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                               a[4].function, options))
CALL(set_intersection, kjit_set_intersection(context, a[0].operands, a[1].operands, a[2].operands,
                                             a[3].operands, a[4].function, options))
CALL(set_difference, kjit_set_difference(context, a[0].operands, a[1].operands, a[2].operands,
                                         a[3].operands, a[4].function, options))
CALL(set_symmetric_difference,
     kjit_set_symmetric_difference(context, a[0].operands, a[1].operands, a[2].operands,
                                   a[3].operands, a[4].function, options))
CALL(update_at,
     kjit_update_at(context, a[0].operands, a[1].operands, a[2].operands, a[3].operators, options))
CALL(einsum, kjit_einsum(context, a[0].operands, a[1].text, a[2].operands, a[2].count, options))
CALL(matmul, kjit_matmul(context, a[0].operands, a[1].operands, a[2].operands, options))
CALL(pairs, kjit_pairs_several(context, a[0].operands, a[0].count, a[1].operands, a[2].operands,
                               a[3].operands, a[3].count, a[4].operators, options))
CALL(pairs_smallest,
     kjit_pairs_smallest(context, a[0].operands, a[1].operands, a[2].operands, a[3].operands,
                         a[4].operands, a[4].count, a[5].integer, options))
CALL(pairs_gradient, kjit_pairs_gradient(context, a[0].operands, a[1].integers, a[1].count,
                                         a[2].operands, a[3].operands, a[4].operands, a[5].operands,
                                         a[6].operands, a[6].count, a[7].operators, options))
CALL(search_sorted, kjit_search_sorted(context, a[0].operands, a[1].operands, a[2].operands,
                                       a[3].function, options))
CALL(bincount,
     kjit_bincount(context, a[0].operands, a[1].operands, a[2].integer, a[3].operands, options))
CALL(histogram, kjit_histogram(context, a[0].operands, a[1].operands, a[2].integer, a[3].real,
                               a[4].real, a[5].operands, options))
CALL(histogram_edges, kjit_histogram_edges(context, a[0].operands, a[1].operands, a[2].operands,
                                           a[3].operands, options))
CALL(random_uniform, kjit_random_uniform(context, a[0].operands, (uint64_t)a[1].integer,
                                         (uint64_t)a[2].integer, a[3].real, a[4].real, options))
CALL(random_normal, kjit_random_normal(context, a[0].operands, (uint64_t)a[1].integer,
                                       (uint64_t)a[2].integer, a[3].real, a[4].real, options))
CALL(random_exponential, kjit_random_exponential(context, a[0].operands, (uint64_t)a[1].integer,
                                                 (uint64_t)a[2].integer, a[3].real, options))
CALL(random_integers,
     kjit_random_integers(context, a[0].operands, (uint64_t)a[1].integer, (uint64_t)a[2].integer,
                          a[3].integer, a[4].integer, options))
CALL(random_permutation,
     kjit_random_permutation(context, a[0].operands, (uint64_t)a[1].integer, options))
CALL(random_shuffle,
     kjit_random_shuffle(context, a[0].operands, a[1].operands, (uint64_t)a[2].integer, options))

static kjit_status call_spmv(kjit_context *context, const algorithm_argument *a,
                             const kjit_algorithm_options *options)
{
  kjit_csr matrix = csr_of(&a[1]);
  return kjit_spmv(context, a[0].operands, &matrix, a[6].operands, options);
}

static kjit_status call_spmm(kjit_context *context, const algorithm_argument *a,
                             const kjit_algorithm_options *options)
{
  kjit_csr matrix = csr_of(&a[1]);
  return kjit_spmm(context, a[0].operands, &matrix, a[6].operands, options);
}

static kjit_status call_csr_check(kjit_context *context, const algorithm_argument *a,
                                  const kjit_algorithm_options *options)
{
  kjit_csr matrix = csr_of(a);
  return kjit_csr_check(context, &matrix, (uint32_t)a[5].integer, options);
}

/* A result has the shape of the matrix that it is made of. Who asks has no operands for it. */
static kjit_csr result_of(const algorithm_argument *a, int64_t rows, int64_t columns)
{
  return (kjit_csr){ a[0].operands, a[1].operands, a[2].operands, { rows, columns } };
}

static kjit_status call_csr_from_coo(kjit_context *context, const algorithm_argument *a,
                                     const kjit_algorithm_options *options)
{
  kjit_csr result = result_of(a, a[6].integer, a[7].integer);
  kjit_coo matrix = { a[3].operands, a[4].operands, a[5].operands, { a[6].integer, a[7].integer } };
  return kjit_csr_from_coo(context, &result, &matrix, options);
}

static kjit_status call_csr_to_coo(kjit_context *context, const algorithm_argument *a,
                                   const kjit_algorithm_options *options)
{
  kjit_csr matrix = csr_of(&a[1]);
  return kjit_csr_to_coo(context, a[0].operands, &matrix, options);
}

static kjit_status call_csr_transpose(kjit_context *context, const algorithm_argument *a,
                                      const kjit_algorithm_options *options)
{
  kjit_csr matrix = csr_of(&a[3]), result = result_of(a, a[7].integer, a[6].integer);
  return kjit_csr_transpose(context, &result, &matrix, options);
}

static kjit_status call_csr_from_dense(kjit_context *context, const algorithm_argument *a,
                                       const kjit_algorithm_options *options)
{
  kjit_csr result = result_of(a, a[4].integer, a[5].integer);
  return kjit_csr_from_dense(context, &result, a[3].operands, options);
}

static kjit_status call_csr_to_dense(kjit_context *context, const algorithm_argument *a,
                                     const kjit_algorithm_options *options)
{
  kjit_csr matrix = csr_of(&a[1]);
  return kjit_csr_to_dense(context, a[0].operands, &matrix, options);
}

static const algorithm_row rows[] = {
  { "reduce", "rxo", call_reduce },
  { "reduce_several", "RxO", call_reduce_several },
  { "reduce_segments", "rxxo", call_reduce_segments },
  { "scan_segments", "rxxo", call_scan_segments },
  { "reduce_by_key", "rrrxxof", call_reduce_by_key },
  { "scan_by_key", "rxxof", call_scan_by_key },
  { "scan", "rxo", call_scan },
  { "sort", "rxf", call_sort },
  { "sort_pairs", "rrxxf", call_sort_pairs },
  { "argsort", "rxf", call_argsort },
  { "merge", "rxxf", call_merge },
  { "top_k", "rrxif", call_top_k },
  { "sort_segments", "rrxxxf", call_sort_segments },
  { "map", "RfX", call_map },
  { "select", "rrxx", call_select },
  { "partition", "rrrxx", call_partition },
  { "partition_three", "rrrrxx", call_partition_three },
  { "nonzero", "rrx", call_nonzero },
  { "unique", "rrxf", call_unique },
  { "unique_pairs", "rrrxxf", call_unique_pairs },
  { "run_lengths", "rrrrxf", call_run_lengths },
  { "set_union", "rrxxf", call_set_union },
  { "set_intersection", "rrxxf", call_set_intersection },
  { "set_difference", "rrxxf", call_set_difference },
  { "set_symmetric_difference", "rrxxf", call_set_symmetric_difference },
  { "update_at", "rxxo", call_update_at },
  { "einsum", "rsX", call_einsum },
  { "matmul", "rxx", call_matmul },
  { "pairs", "RxxXo", call_pairs },
  { "pairs_smallest", "rrxxXi", call_pairs_smallest },
  { "pairs_gradient", "RIxxxxXo", call_pairs_gradient },
  { "search_sorted", "rxxf", call_search_sorted },
  { "bincount", "rxix", call_bincount },
  { "histogram", "rxiddx", call_histogram },
  { "histogram_edges", "rxxx", call_histogram_edges },
  { "random_uniform", "riidd", call_random_uniform },
  { "random_normal", "riidd", call_random_normal },
  { "random_exponential", "riid", call_random_exponential },
  { "random_integers", "riiii", call_random_integers },
  { "random_permutation", "ri", call_random_permutation },
  { "random_shuffle", "rxi", call_random_shuffle },
  { "spmv", "rxxxiix", call_spmv },
  { "spmm", "rxxxiix", call_spmm },
  { "csr_check", "xxxiii", call_csr_check },
  { "csr_from_coo", "rrrxxxii", call_csr_from_coo },
  { "csr_to_coo", "rxxxii", call_csr_to_coo },
  { "csr_transpose", "rrrxxxii", call_csr_transpose },
  { "csr_from_dense", "rrrxii", call_csr_from_dense },
  { "csr_to_dense", "rxxxii", call_csr_to_dense },
};

const algorithm_row *binding_find_algorithm(const char *name)
{
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].name, name)) return &rows[i];
  return NULL;
}
