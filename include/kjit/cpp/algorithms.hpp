/* kjit/cpp/algorithms.hpp: a C++ function for each algorithm of kjit/algorithm.h. Include
 * kjit/kjit.hpp, which includes this file.
 *
 * Made by scripts/make-algorithms.py from runtime/algorithm/algorithms.def. Do not edit. */
#ifndef KJIT_CPP_ALGORITHMS_HPP
#define KJIT_CPP_ALGORITHMS_HPP

#include <kjit/cpp/sparse_matrix.hpp>

namespace kjit {

/* Combines all elements, or the elements along some axes, with an operator (kjit_reduce). */
inline any_array reduce(const operand &x, const operation &op, const options &given = {})
{
  detail::call call_("kjit::reduce", given);
  call_.start(x, op);
  const kjit_operator *const op_c = call_.of(op);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_reduce(call_.context(), r[0], x.get(), op_c, call_.given());
    });
  return made[0];
}
/* Like kjit::reduce, but writes to existing arrays. */
inline void reduce_into(const target &result, const operand &x, const operation &op,
                        const options &given = {})
{
  detail::call call_("kjit::reduce_into", given);
  call_.start(result, x, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run(
    [&] { return kjit_reduce(call_.context(), result.get(), x.get(), op_c, call_.given()); });
}

/* Computes several reductions and reads x only once (kjit_reduce_several). */
inline created reduce_several(const operand &x, const std::vector<operation> &ops,
                              const options &given = {})
{
  detail::call call_("kjit::reduce_several", given);
  call_.start(x, ops);
  const kjit_operator *const ops_c = call_.of(ops);
  return call_.create(0, nullptr,
                      [&](const kjit_operand *const *, const kjit_operand *every, std::size_t) {
                        return kjit_reduce_several(call_.context(), every, x.get(), ops_c,
                                                   ops.size(), call_.given());
                      });
}
/* Like kjit::reduce_several, but writes to existing arrays. */
inline void reduce_several_into(const targets &r, const operand &x,
                                const std::vector<operation> &ops, const options &given = {})
{
  detail::call call_("kjit::reduce_several_into", given);
  call_.start(r, x, ops);
  const kjit_operator *const ops_c = call_.of(ops);
  call_.run([&] {
    return kjit_reduce_several(call_.context(), r.get(), x.get(), ops_c, ops.size(), call_.given());
  });
}

/* Reduces each segment in x; offsets has each segment's start and the last end
 * (kjit_reduce_segments). */
inline any_array reduce_segments(const operand &x, const operand &offsets, const operation &op,
                                 const options &given = {})
{
  detail::call call_("kjit::reduce_segments", given);
  call_.start(x, offsets, op);
  const kjit_operator *const op_c = call_.of(op);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_reduce_segments(call_.context(), r[0], x.get(), offsets.get(), op_c,
                                  call_.given());
    });
  return made[0];
}
/* Like kjit::reduce_segments, but writes to existing arrays. */
inline void reduce_segments_into(const target &result, const operand &x, const operand &offsets,
                                 const operation &op, const options &given = {})
{
  detail::call call_("kjit::reduce_segments_into", given);
  call_.start(result, x, offsets, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] {
    return kjit_reduce_segments(call_.context(), result.get(), x.get(), offsets.get(), op_c,
                                call_.given());
  });
}

/* Scans each segment in x; offsets has each segment's start and the last end (kjit_scan_segments).
 */
inline any_array scan_segments(const operand &x, const operand &offsets, const operation &op,
                               const options &given = {})
{
  detail::call call_("kjit::scan_segments", given);
  call_.start(x, offsets, op);
  const kjit_operator *const op_c = call_.of(op);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_scan_segments(call_.context(), r[0], x.get(), offsets.get(), op_c, call_.given());
    });
  return made[0];
}
/* Like kjit::scan_segments, but writes to existing arrays. */
inline void scan_segments_into(const target &result, const operand &x, const operand &offsets,
                               const operation &op, const options &given = {})
{
  detail::call call_("kjit::scan_segments_into", given);
  call_.start(result, x, offsets, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] {
    return kjit_scan_segments(call_.context(), result.get(), x.get(), offsets.get(), op_c,
                              call_.given());
  });
}

/* Reduces each run with equal consecutive keys (kjit_reduce_by_key). */
inline results<3> reduce_by_key(const operand &keys, const operand &x, const operation &op,
                                const callable &equal, const options &given = {})
{
  detail::call call_("kjit::reduce_by_key", given);
  call_.start(keys, x, op, equal);
  const kjit_operator *const op_c = call_.of(op);
  kjit_function *const equal_c = call_.of(equal, 2);
  const created made =
    call_.create(3, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_reduce_by_key(call_.context(), r[0], r[1], r[2], keys.get(), x.get(), op_c,
                                equal_c, call_.given());
    });
  return { { made[0], made[1], made[2] } };
}
/* The same call with defaults for the last arguments. */
inline results<3> reduce_by_key(const operand &keys, const operand &x, const operation &op,
                                const options &given = {})
{
  return reduce_by_key(keys, x, op, none, given);
}
/* Like kjit::reduce_by_key, but writes to existing arrays. */
inline void reduce_by_key_into(const target &result_keys, const target &result,
                               const target &number, const operand &keys, const operand &x,
                               const operation &op, const callable &equal,
                               const options &given = {})
{
  detail::call call_("kjit::reduce_by_key_into", given);
  call_.start(result_keys, result, number, keys, x, op, equal);
  const kjit_operator *const op_c = call_.of(op);
  kjit_function *const equal_c = call_.of(equal, 2);
  call_.run([&] {
    return kjit_reduce_by_key(call_.context(), result_keys.get(), result.get(), number.get(),
                              keys.get(), x.get(), op_c, equal_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void reduce_by_key_into(const target &result_keys, const target &result,
                               const target &number, const operand &keys, const operand &x,
                               const operation &op, const options &given = {})
{
  reduce_by_key_into(result_keys, result, number, keys, x, op, none, given);
}

/* Scans each run with equal consecutive keys (kjit_scan_by_key). */
inline any_array scan_by_key(const operand &keys, const operand &x, const operation &op,
                             const callable &equal, const options &given = {})
{
  detail::call call_("kjit::scan_by_key", given);
  call_.start(keys, x, op, equal);
  const kjit_operator *const op_c = call_.of(op);
  kjit_function *const equal_c = call_.of(equal, 2);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_scan_by_key(call_.context(), r[0], keys.get(), x.get(), op_c, equal_c,
                              call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array scan_by_key(const operand &keys, const operand &x, const operation &op,
                             const options &given = {})
{
  return scan_by_key(keys, x, op, none, given);
}
/* Like kjit::scan_by_key, but writes to existing arrays. */
inline void scan_by_key_into(const target &result, const operand &keys, const operand &x,
                             const operation &op, const callable &equal, const options &given = {})
{
  detail::call call_("kjit::scan_by_key_into", given);
  call_.start(result, keys, x, op, equal);
  const kjit_operator *const op_c = call_.of(op);
  kjit_function *const equal_c = call_.of(equal, 2);
  call_.run([&] {
    return kjit_scan_by_key(call_.context(), result.get(), keys.get(), x.get(), op_c, equal_c,
                            call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void scan_by_key_into(const target &result, const operand &keys, const operand &x,
                             const operation &op, const options &given = {})
{
  scan_by_key_into(result, keys, x, op, none, given);
}

/* Sorts along one axis, by default the last axis; the sort is stable (kjit_sort). */
inline any_array sort(const operand &x, const callable &less, const options &given = {})
{
  detail::call call_("kjit::sort", given);
  call_.start(x, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_sort(call_.context(), r[0], x.get(), less_c, call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array sort(const operand &x, const options &given = {}) { return sort(x, none, given); }
/* Like kjit::sort, but writes to existing arrays. */
inline void sort_into(const target &result, const operand &x, const callable &less,
                      const options &given = {})
{
  detail::call call_("kjit::sort_into", given);
  call_.start(result, x, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run(
    [&] { return kjit_sort(call_.context(), result.get(), x.get(), less_c, call_.given()); });
}
/* The same call with defaults for the last arguments. */
inline void sort_into(const target &result, const operand &x, const options &given = {})
{
  sort_into(result, x, none, given);
}

/* Sorts x and moves the corresponding elements in values (kjit_sort_pairs). */
inline results<2> sort_pairs(const operand &x, const operand &values, const callable &less,
                             const options &given = {})
{
  detail::call call_("kjit::sort_pairs", given);
  call_.start(x, values, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_sort_pairs(call_.context(), r[0], r[1], x.get(), values.get(), less_c,
                             call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> sort_pairs(const operand &x, const operand &values, const options &given = {})
{
  return sort_pairs(x, values, none, given);
}
/* Like kjit::sort_pairs, but writes to existing arrays. */
inline void sort_pairs_into(const target &result, const target &result_values, const operand &x,
                            const operand &values, const callable &less, const options &given = {})
{
  detail::call call_("kjit::sort_pairs_into", given);
  call_.start(result, result_values, x, values, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_sort_pairs(call_.context(), result.get(), result_values.get(), x.get(),
                           values.get(), less_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void sort_pairs_into(const target &result, const target &result_values, const operand &x,
                            const operand &values, const options &given = {})
{
  sort_pairs_into(result, result_values, x, values, none, given);
}

/* Writes the indices that would sort x (kjit_argsort). */
inline any_array argsort(const operand &x, const callable &less, const options &given = {})
{
  detail::call call_("kjit::argsort", given);
  call_.start(x, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_argsort(call_.context(), r[0], x.get(), less_c, call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array argsort(const operand &x, const options &given = {})
{
  return argsort(x, none, given);
}
/* Like kjit::argsort, but writes to existing arrays. */
inline void argsort_into(const target &result, const operand &x, const callable &less,
                         const options &given = {})
{
  detail::call call_("kjit::argsort_into", given);
  call_.start(result, x, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run(
    [&] { return kjit_argsort(call_.context(), result.get(), x.get(), less_c, call_.given()); });
}
/* The same call with defaults for the last arguments. */
inline void argsort_into(const target &result, const operand &x, const options &given = {})
{
  argsort_into(result, x, none, given);
}

/* Merges two sorted arrays with one axis (kjit_merge). */
inline any_array merge(const operand &x, const operand &y, const callable &less,
                       const options &given = {})
{
  detail::call call_("kjit::merge", given);
  call_.start(x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_merge(call_.context(), r[0], x.get(), y.get(), less_c, call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array merge(const operand &x, const operand &y, const options &given = {})
{
  return merge(x, y, none, given);
}
/* Like kjit::merge, but writes to existing arrays. */
inline void merge_into(const target &result, const operand &x, const operand &y,
                       const callable &less, const options &given = {})
{
  detail::call call_("kjit::merge_into", given);
  call_.start(result, x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_merge(call_.context(), result.get(), x.get(), y.get(), less_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void merge_into(const target &result, const operand &x, const operand &y,
                       const options &given = {})
{
  merge_into(result, x, y, none, given);
}

/* Writes the first k elements in sorted order, and their indices along the axis (kjit_top_k). */
inline results<2> top_k(const operand &x, std::int64_t k, const callable &less,
                        const options &given = {})
{
  detail::call call_("kjit::top_k", given);
  call_.start(x, k, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_top_k(call_.context(), r[0], r[1], x.get(), k, less_c, call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> top_k(const operand &x, std::int64_t k, const options &given = {})
{
  return top_k(x, k, none, given);
}
/* Like kjit::top_k, but writes to existing arrays. */
inline void top_k_into(const target &result, const target &result_places, const operand &x,
                       std::int64_t k, const callable &less, const options &given = {})
{
  detail::call call_("kjit::top_k_into", given);
  call_.start(result, result_places, x, k, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_top_k(call_.context(), result.get(), result_places.get(), x.get(), k, less_c,
                      call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void top_k_into(const target &result, const target &result_places, const operand &x,
                       std::int64_t k, const options &given = {})
{
  top_k_into(result, result_places, x, k, none, given);
}

/* Sorts each segment in x and moves the corresponding elements in values (kjit_sort_segments). */
inline results<2> sort_segments(const operand &x, const operand &values, const operand &offsets,
                                const callable &less, const options &given = {})
{
  detail::call call_("kjit::sort_segments", given);
  call_.start(x, values, offsets, less);
  kjit_function *const less_c = call_.of(less, 2);
  const bool wanted[] = { true, values.get() != nullptr };
  const created made =
    call_.create(2, wanted, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_sort_segments(call_.context(), r[0], r[1], x.get(), values.get(), offsets.get(),
                                less_c, call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> sort_segments(const operand &x, const operand &values, const operand &offsets,
                                const options &given = {})
{
  return sort_segments(x, values, offsets, none, given);
}
/* Like kjit::sort_segments, but writes to existing arrays. */
inline void sort_segments_into(const target &result, const target &result_values, const operand &x,
                               const operand &values, const operand &offsets, const callable &less,
                               const options &given = {})
{
  detail::call call_("kjit::sort_segments_into", given);
  call_.start(result, result_values, x, values, offsets, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_sort_segments(call_.context(), result.get(), result_values.get(), x.get(),
                              values.get(), offsets.get(), less_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void sort_segments_into(const target &result, const target &result_values, const operand &x,
                               const operand &values, const operand &offsets,
                               const options &given = {})
{
  sort_segments_into(result, result_values, x, values, offsets, none, given);
}

/* Calls a func for corresponding elements in all operands, which broadcast (kjit_map). */
inline created map(const callable &func, const operands &x, const options &given = {})
{
  detail::call call_("kjit::map", given);
  call_.start(func, x);
  kjit_function *const func_c = call_.of(func, x.size());
  return call_.create(0, nullptr,
                      [&](const kjit_operand *const *, const kjit_operand *every, std::size_t n) {
                        return kjit_map(call_.context(), every, n, func_c, x.get(), x.size(),
                                        call_.given());
                      });
}
/* Like kjit::map, but writes to existing arrays. */
inline void map_into(const targets &r, const callable &func, const operands &x,
                     const options &given = {})
{
  detail::call call_("kjit::map_into", given);
  call_.start(r, func, x);
  kjit_function *const func_c = call_.of(func, x.size());
  call_.run([&] {
    return kjit_map(call_.context(), r.get(), r.size(), func_c, x.get(), x.size(), call_.given());
  });
}

/* Writes the running reduction along one axis, by default the last axis (kjit_scan). */
inline any_array scan(const operand &x, const operation &op, const options &given = {})
{
  detail::call call_("kjit::scan", given);
  call_.start(x, op);
  const kjit_operator *const op_c = call_.of(op);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_scan(call_.context(), r[0], x.get(), op_c, call_.given());
    });
  return made[0];
}
/* Like kjit::scan, but writes to existing arrays. */
inline void scan_into(const target &result, const operand &x, const operation &op,
                      const options &given = {})
{
  detail::call call_("kjit::scan_into", given);
  call_.start(result, x, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] { return kjit_scan(call_.context(), result.get(), x.get(), op_c, call_.given()); });
}

/* Writes the running maximum or minimum along one axis, and its index (kjit_scan_with_index). */
inline results<2> scan_with_index(const operand &x, const operation &op, const options &given = {})
{
  detail::call call_("kjit::scan_with_index", given);
  call_.start(x, op);
  const kjit_operator *const op_c = call_.of(op);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_scan_with_index(call_.context(), r[0], r[1], x.get(), op_c, call_.given());
    });
  return { { made[0], made[1] } };
}
/* Like kjit::scan_with_index, but writes to existing arrays. */
inline void scan_with_index_into(const target &result, const target &result_places,
                                 const operand &x, const operation &op, const options &given = {})
{
  detail::call call_("kjit::scan_with_index_into", given);
  call_.start(result, result_places, x, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] {
    return kjit_scan_with_index(call_.context(), result.get(), result_places.get(), x.get(), op_c,
                                call_.given());
  });
}

/* Writes the elements whose flag is not 0 to the start of result (kjit_select). */
inline results<2> select(const operand &x, const operand &flags, const options &given = {})
{
  detail::call call_("kjit::select", given);
  call_.start(x, flags);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_select(call_.context(), r[0], r[1], x.get(), flags.get(), call_.given());
    });
  return { { made[0], made[1] } };
}
/* Like kjit::select, but writes to existing arrays. */
inline void select_into(const target &result, const target &number, const operand &x,
                        const operand &flags, const options &given = {})
{
  detail::call call_("kjit::select_into", given);
  call_.start(result, number, x, flags);
  call_.run([&] {
    return kjit_select(call_.context(), result.get(), number.get(), x.get(), flags.get(),
                       call_.given());
  });
}

/* Selects elements, and writes the remaining elements to rest (kjit_partition). */
inline results<3> partition(const operand &x, const operand &flags, const options &given = {})
{
  detail::call call_("kjit::partition", given);
  call_.start(x, flags);
  const created made =
    call_.create(3, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_partition(call_.context(), r[0], r[1], r[2], x.get(), flags.get(), call_.given());
    });
  return { { made[0], made[1], made[2] } };
}
/* Like kjit::partition, but writes to existing arrays. */
inline void partition_into(const target &result, const target &rest, const target &number,
                           const operand &x, const operand &flags, const options &given = {})
{
  detail::call call_("kjit::partition_into", given);
  call_.start(result, rest, number, x, flags);
  call_.run([&] {
    return kjit_partition(call_.context(), result.get(), rest.get(), number.get(), x.get(),
                          flags.get(), call_.given());
  });
}

/* Distributes elements by class (0, 1 or 2) (kjit_partition_three). */
inline results<4> partition_three(const operand &x, const operand &classes,
                                  const options &given = {})
{
  detail::call call_("kjit::partition_three", given);
  call_.start(x, classes);
  const created made =
    call_.create(4, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_partition_three(call_.context(), r[0], r[1], r[2], r[3], x.get(), classes.get(),
                                  call_.given());
    });
  return { { made[0], made[1], made[2], made[3] } };
}
/* Like kjit::partition_three, but writes to existing arrays. */
inline void partition_three_into(const target &first, const target &second, const target &rest,
                                 const target &counts, const operand &x, const operand &classes,
                                 const options &given = {})
{
  detail::call call_("kjit::partition_three_into", given);
  call_.start(first, second, rest, counts, x, classes);
  call_.run([&] {
    return kjit_partition_three(call_.context(), first.get(), second.get(), rest.get(),
                                counts.get(), x.get(), classes.get(), call_.given());
  });
}

/* Writes the indices of the nonzero elements (kjit_nonzero). */
inline results<2> nonzero(const operand &x, const options &given = {})
{
  detail::call call_("kjit::nonzero", given);
  call_.start(x);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_nonzero(call_.context(), r[0], r[1], x.get(), call_.given());
    });
  return { { made[0], made[1] } };
}
/* Like kjit::nonzero, but writes to existing arrays. */
inline void nonzero_into(const target &result, const target &number, const operand &x,
                         const options &given = {})
{
  detail::call call_("kjit::nonzero_into", given);
  call_.start(result, number, x);
  call_.run([&] {
    return kjit_nonzero(call_.context(), result.get(), number.get(), x.get(), call_.given());
  });
}

/* Writes the first element in each run of equal elements (kjit_unique). */
inline results<2> unique(const operand &x, const callable &equal, const options &given = {})
{
  detail::call call_("kjit::unique", given);
  call_.start(x, equal);
  kjit_function *const equal_c = call_.of(equal, 2);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_unique(call_.context(), r[0], r[1], x.get(), equal_c, call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> unique(const operand &x, const options &given = {})
{
  return unique(x, none, given);
}
/* Like kjit::unique, but writes to existing arrays. */
inline void unique_into(const target &result, const target &number, const operand &x,
                        const callable &equal, const options &given = {})
{
  detail::call call_("kjit::unique_into", given);
  call_.start(result, number, x, equal);
  kjit_function *const equal_c = call_.of(equal, 2);
  call_.run([&] {
    return kjit_unique(call_.context(), result.get(), number.get(), x.get(), equal_c,
                       call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void unique_into(const target &result, const target &number, const operand &x,
                        const options &given = {})
{
  unique_into(result, number, x, none, given);
}

/* Writes the first element in each run of equal elements, and the corresponding element in values
 * (kjit_unique_pairs). */
inline results<3> unique_pairs(const operand &x, const operand &values, const callable &equal,
                               const options &given = {})
{
  detail::call call_("kjit::unique_pairs", given);
  call_.start(x, values, equal);
  kjit_function *const equal_c = call_.of(equal, 2);
  const created made =
    call_.create(3, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_unique_pairs(call_.context(), r[0], r[1], r[2], x.get(), values.get(), equal_c,
                               call_.given());
    });
  return { { made[0], made[1], made[2] } };
}
/* The same call with defaults for the last arguments. */
inline results<3> unique_pairs(const operand &x, const operand &values, const options &given = {})
{
  return unique_pairs(x, values, none, given);
}
/* Like kjit::unique_pairs, but writes to existing arrays. */
inline void unique_pairs_into(const target &result, const target &result_values,
                              const target &number, const operand &x, const operand &values,
                              const callable &equal, const options &given = {})
{
  detail::call call_("kjit::unique_pairs_into", given);
  call_.start(result, result_values, number, x, values, equal);
  kjit_function *const equal_c = call_.of(equal, 2);
  call_.run([&] {
    return kjit_unique_pairs(call_.context(), result.get(), result_values.get(), number.get(),
                             x.get(), values.get(), equal_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void unique_pairs_into(const target &result, const target &result_values,
                              const target &number, const operand &x, const operand &values,
                              const options &given = {})
{
  unique_pairs_into(result, result_values, number, x, values, none, given);
}

/* Writes the first element in each run of equal elements, its length and its first index
 * (kjit_run_lengths). */
inline results<4> run_lengths(const operand &x, const callable &equal, const options &given = {})
{
  detail::call call_("kjit::run_lengths", given);
  call_.start(x, equal);
  kjit_function *const equal_c = call_.of(equal, 2);
  const created made =
    call_.create(4, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_run_lengths(call_.context(), r[0], r[1], r[2], r[3], x.get(), equal_c,
                              call_.given());
    });
  return { { made[0], made[1], made[2], made[3] } };
}
/* The same call with defaults for the last arguments. */
inline results<4> run_lengths(const operand &x, const options &given = {})
{
  return run_lengths(x, none, given);
}
/* Like kjit::run_lengths, but writes to existing arrays. */
inline void run_lengths_into(const target &result, const target &lengths, const target &starts,
                             const target &number, const operand &x, const callable &equal,
                             const options &given = {})
{
  detail::call call_("kjit::run_lengths_into", given);
  call_.start(result, lengths, starts, number, x, equal);
  kjit_function *const equal_c = call_.of(equal, 2);
  call_.run([&] {
    return kjit_run_lengths(call_.context(), result.get(), lengths.get(), starts.get(),
                            number.get(), x.get(), equal_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void run_lengths_into(const target &result, const target &lengths, const target &starts,
                             const target &number, const operand &x, const options &given = {})
{
  run_lengths_into(result, lengths, starts, number, x, none, given);
}

/* Writes the union of two sorted arrays (kjit_set_union). */
inline results<2> set_union(const operand &x, const operand &y, const callable &less,
                            const options &given = {})
{
  detail::call call_("kjit::set_union", given);
  call_.start(x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_set_union(call_.context(), r[0], r[1], x.get(), y.get(), less_c, call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> set_union(const operand &x, const operand &y, const options &given = {})
{
  return set_union(x, y, none, given);
}
/* Like kjit::set_union, but writes to existing arrays. */
inline void set_union_into(const target &result, const target &number, const operand &x,
                           const operand &y, const callable &less, const options &given = {})
{
  detail::call call_("kjit::set_union_into", given);
  call_.start(result, number, x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_set_union(call_.context(), result.get(), number.get(), x.get(), y.get(), less_c,
                          call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void set_union_into(const target &result, const target &number, const operand &x,
                           const operand &y, const options &given = {})
{
  set_union_into(result, number, x, y, none, given);
}

/* Writes the intersection of two sorted arrays (kjit_set_intersection). */
inline results<2> set_intersection(const operand &x, const operand &y, const callable &less,
                                   const options &given = {})
{
  detail::call call_("kjit::set_intersection", given);
  call_.start(x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_set_intersection(call_.context(), r[0], r[1], x.get(), y.get(), less_c,
                                   call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> set_intersection(const operand &x, const operand &y, const options &given = {})
{
  return set_intersection(x, y, none, given);
}
/* Like kjit::set_intersection, but writes to existing arrays. */
inline void set_intersection_into(const target &result, const target &number, const operand &x,
                                  const operand &y, const callable &less, const options &given = {})
{
  detail::call call_("kjit::set_intersection_into", given);
  call_.start(result, number, x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_set_intersection(call_.context(), result.get(), number.get(), x.get(), y.get(),
                                 less_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void set_intersection_into(const target &result, const target &number, const operand &x,
                                  const operand &y, const options &given = {})
{
  set_intersection_into(result, number, x, y, none, given);
}

/* Writes elements that are in x but not in y (kjit_set_difference). */
inline results<2> set_difference(const operand &x, const operand &y, const callable &less,
                                 const options &given = {})
{
  detail::call call_("kjit::set_difference", given);
  call_.start(x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_set_difference(call_.context(), r[0], r[1], x.get(), y.get(), less_c,
                                 call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> set_difference(const operand &x, const operand &y, const options &given = {})
{
  return set_difference(x, y, none, given);
}
/* Like kjit::set_difference, but writes to existing arrays. */
inline void set_difference_into(const target &result, const target &number, const operand &x,
                                const operand &y, const callable &less, const options &given = {})
{
  detail::call call_("kjit::set_difference_into", given);
  call_.start(result, number, x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_set_difference(call_.context(), result.get(), number.get(), x.get(), y.get(),
                               less_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void set_difference_into(const target &result, const target &number, const operand &x,
                                const operand &y, const options &given = {})
{
  set_difference_into(result, number, x, y, none, given);
}

/* Writes elements that are in x or y but not in both (kjit_set_symmetric_difference). */
inline results<2> set_symmetric_difference(const operand &x, const operand &y, const callable &less,
                                           const options &given = {})
{
  detail::call call_("kjit::set_symmetric_difference", given);
  call_.start(x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_set_symmetric_difference(call_.context(), r[0], r[1], x.get(), y.get(), less_c,
                                           call_.given());
    });
  return { { made[0], made[1] } };
}
/* The same call with defaults for the last arguments. */
inline results<2> set_symmetric_difference(const operand &x, const operand &y,
                                           const options &given = {})
{
  return set_symmetric_difference(x, y, none, given);
}
/* Like kjit::set_symmetric_difference, but writes to existing arrays. */
inline void set_symmetric_difference_into(const target &result, const target &number,
                                          const operand &x, const operand &y, const callable &less,
                                          const options &given = {})
{
  detail::call call_("kjit::set_symmetric_difference_into", given);
  call_.start(result, number, x, y, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_set_symmetric_difference(call_.context(), result.get(), number.get(), x.get(),
                                         y.get(), less_c, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void set_symmetric_difference_into(const target &result, const target &number,
                                          const operand &x, const operand &y,
                                          const options &given = {})
{
  set_symmetric_difference_into(result, number, x, y, none, given);
}

/* Sets x[places[i]] to operator(x[places[i]], values[i]) for each i (kjit_update_at). */
inline void update_at(const target &x, const operand &places, const operand &values,
                      const operation &op, const options &given = {})
{
  detail::call call_("kjit::update_at", given);
  call_.start(x, places, values, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] {
    return kjit_update_at(call_.context(), x.get(), places.get(), values.get(), op_c,
                          call_.given());
  });
}

/* Computes the product sum that an expression such as "ij,jk->ik" describes (kjit_einsum). */
inline any_array einsum(const std::string &letters, const operands &x, const options &given = {})
{
  detail::call call_("kjit::einsum", given);
  call_.start(letters, x);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_einsum(call_.context(), r[0], letters.c_str(), x.get(), x.size(), call_.given());
    });
  return made[0];
}
/* Like kjit::einsum, but writes to existing arrays. */
inline void einsum_into(const target &result, const std::string &letters, const operands &x,
                        const options &given = {})
{
  detail::call call_("kjit::einsum_into", given);
  call_.start(result, letters, x);
  call_.run([&] {
    return kjit_einsum(call_.context(), result.get(), letters.c_str(), x.get(), x.size(),
                       call_.given());
  });
}

/* Computes the matrix product of x and y (kjit_matmul). */
inline any_array matmul(const operand &x, const operand &y, const options &given = {})
{
  detail::call call_("kjit::matmul", given);
  call_.start(x, y);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_matmul(call_.context(), r[0], x.get(), y.get(), call_.given());
    });
  return made[0];
}
/* Like kjit::matmul, but writes to existing arrays. */
inline void matmul_into(const target &result, const operand &x, const operand &y,
                        const options &given = {})
{
  detail::call call_("kjit::matmul_into", given);
  call_.start(result, x, y);
  call_.run(
    [&] { return kjit_matmul(call_.context(), result.get(), x.get(), y.get(), call_.given()); });
}

/* Combines function(x[i], y[j]) over all j for each i (kjit_pairs). */
inline any_array pairs(const operand &func, const operand &x, const operands &y,
                       const operation &op, const options &given = {})
{
  detail::call call_("kjit::pairs", given);
  call_.start(func, x, y, op);
  const kjit_operator *const op_c = call_.of(op);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_pairs(call_.context(), r[0], func.get(), x.get(), y.get(), y.size(), op_c,
                        call_.given());
    });
  return made[0];
}
/* Like kjit::pairs, but writes to existing arrays. */
inline void pairs_into(const target &result, const operand &func, const operand &x,
                       const operands &y, const operation &op, const options &given = {})
{
  detail::call call_("kjit::pairs_into", given);
  call_.start(result, func, x, y, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] {
    return kjit_pairs(call_.context(), result.get(), func.get(), x.get(), y.get(), y.size(), op_c,
                      call_.given());
  });
}

/* Combines each value of the tuple function(x[i], y[j]) over all j for each i (kjit_pairs_several).
 */
inline created pairs_several(const operand &func, const operand &x, const operands &y,
                             const operation &op, const options &given = {})
{
  detail::call call_("kjit::pairs_several", given);
  call_.start(func, x, y, op);
  const kjit_operator *const op_c = call_.of(op);
  return call_.create(0, nullptr,
                      [&](const kjit_operand *const *, const kjit_operand *every, std::size_t n) {
                        return kjit_pairs_several(call_.context(), every, n, func.get(), x.get(),
                                                  y.get(), y.size(), op_c, call_.given());
                      });
}
/* Like kjit::pairs_several, but writes to existing arrays. */
inline void pairs_several_into(const targets &r, const operand &func, const operand &x,
                               const operands &y, const operation &op, const options &given = {})
{
  detail::call call_("kjit::pairs_several_into", given);
  call_.start(r, func, x, y, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] {
    return kjit_pairs_several(call_.context(), r.get(), r.size(), func.get(), x.get(), y.get(),
                              y.size(), op_c, call_.given());
  });
}

/* Writes the k smallest values of function(x[i], y[j]) for each i, and their indices j
 * (kjit_pairs_smallest). */
inline results<2> pairs_smallest(const operand &func, const operand &x, const operands &y,
                                 std::int64_t k, const options &given = {})
{
  detail::call call_("kjit::pairs_smallest", given);
  call_.start(func, x, y, k);
  const created made =
    call_.create(2, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_pairs_smallest(call_.context(), r[0], r[1], func.get(), x.get(), y.get(),
                                 y.size(), k, call_.given());
    });
  return { { made[0], made[1] } };
}
/* Like kjit::pairs_smallest, but writes to existing arrays. */
inline void pairs_smallest_into(const target &result, const target &result_places,
                                const operand &func, const operand &x, const operands &y,
                                std::int64_t k, const options &given = {})
{
  detail::call call_("kjit::pairs_smallest_into", given);
  call_.start(result, result_places, func, x, y, k);
  call_.run([&] {
    return kjit_pairs_smallest(call_.context(), result.get(), result_places.get(), func.get(),
                               x.get(), y.get(), y.size(), k, call_.given());
  });
}

/* Computes derivatives of pairs (kjit_pairs_gradient). */
inline created pairs_gradient(const std::vector<std::uint32_t> &by, const operand &cotangents,
                              const operand &result, const operand &func, const operand &x,
                              const operands &y, const operation &op, const options &given = {})
{
  detail::call call_("kjit::pairs_gradient", given);
  call_.start(by, cotangents, result, func, x, y, op);
  const kjit_operator *const op_c = call_.of(op);
  return call_.create(0, nullptr,
                      [&](const kjit_operand *const *, const kjit_operand *every, std::size_t) {
                        return kjit_pairs_gradient(call_.context(), every, by.data(), by.size(),
                                                   cotangents.get(), result.get(), func.get(),
                                                   x.get(), y.get(), y.size(), op_c, call_.given());
                      });
}
/* Like kjit::pairs_gradient, but writes to existing arrays. */
inline void pairs_gradient_into(const targets &gradients, const std::vector<std::uint32_t> &by,
                                const operand &cotangents, const operand &result,
                                const operand &func, const operand &x, const operands &y,
                                const operation &op, const options &given = {})
{
  detail::call call_("kjit::pairs_gradient_into", given);
  call_.start(gradients, by, cotangents, result, func, x, y, op);
  const kjit_operator *const op_c = call_.of(op);
  call_.run([&] {
    return kjit_pairs_gradient(call_.context(), gradients.get(), by.data(), by.size(),
                               cotangents.get(), result.get(), func.get(), x.get(), y.get(),
                               y.size(), op_c, call_.given());
  });
}

/* Finds the insertion index of each element of values in a sorted array (kjit_search_sorted). */
inline any_array search_sorted(const operand &sorted, const operand &values, const callable &less,
                               const options &given = {})
{
  detail::call call_("kjit::search_sorted", given);
  call_.start(sorted, values, less);
  kjit_function *const less_c = call_.of(less, 2);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_search_sorted(call_.context(), r[0], sorted.get(), values.get(), less_c,
                                call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array search_sorted(const operand &sorted, const operand &values,
                               const options &given = {})
{
  return search_sorted(sorted, values, none, given);
}
/* Like kjit::search_sorted, but writes to existing arrays. */
inline void search_sorted_into(const target &result, const operand &sorted, const operand &values,
                               const callable &less, const options &given = {})
{
  detail::call call_("kjit::search_sorted_into", given);
  call_.start(result, sorted, values, less);
  kjit_function *const less_c = call_.of(less, 2);
  call_.run([&] {
    return kjit_search_sorted(call_.context(), result.get(), sorted.get(), values.get(), less_c,
                              call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void search_sorted_into(const target &result, const operand &sorted, const operand &values,
                               const options &given = {})
{
  search_sorted_into(result, sorted, values, none, given);
}

/* Counts how many elements of x equal i, for each i below bins (kjit_bincount). */
inline any_array bincount(const operand &x, std::int64_t bins, const operand &weights,
                          const options &given = {})
{
  detail::call call_("kjit::bincount", given);
  call_.start(x, bins, weights);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_bincount(call_.context(), r[0], x.get(), bins, weights.get(), call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array bincount(const operand &x, std::int64_t bins, const options &given = {})
{
  return bincount(x, bins, none, given);
}
/* Like kjit::bincount, but writes to existing arrays. */
inline void bincount_into(const target &result, const operand &x, std::int64_t bins,
                          const operand &weights, const options &given = {})
{
  detail::call call_("kjit::bincount_into", given);
  call_.start(result, x, bins, weights);
  call_.run([&] {
    return kjit_bincount(call_.context(), result.get(), x.get(), bins, weights.get(),
                         call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void bincount_into(const target &result, const operand &x, std::int64_t bins,
                          const options &given = {})
{
  bincount_into(result, x, bins, none, given);
}

/* Counts the elements of x in bins of equal width from low to high (kjit_histogram). */
inline any_array histogram(const operand &x, std::int64_t bins, double low, double high,
                           const operand &weights, const options &given = {})
{
  detail::call call_("kjit::histogram", given);
  call_.start(x, bins, low, high, weights);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_histogram(call_.context(), r[0], x.get(), bins, low, high, weights.get(),
                            call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array histogram(const operand &x, std::int64_t bins, double low, double high,
                           const options &given = {})
{
  return histogram(x, bins, low, high, none, given);
}
/* Like kjit::histogram, but writes to existing arrays. */
inline void histogram_into(const target &result, const operand &x, std::int64_t bins, double low,
                           double high, const operand &weights, const options &given = {})
{
  detail::call call_("kjit::histogram_into", given);
  call_.start(result, x, bins, low, high, weights);
  call_.run([&] {
    return kjit_histogram(call_.context(), result.get(), x.get(), bins, low, high, weights.get(),
                          call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void histogram_into(const target &result, const operand &x, std::int64_t bins, double low,
                           double high, const options &given = {})
{
  histogram_into(result, x, bins, low, high, none, given);
}

/* Counts the elements of x in the bins between consecutive edges (kjit_histogram_edges). */
inline any_array histogram_edges(const operand &x, const operand &edges, const operand &weights,
                                 const options &given = {})
{
  detail::call call_("kjit::histogram_edges", given);
  call_.start(x, edges, weights);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_histogram_edges(call_.context(), r[0], x.get(), edges.get(), weights.get(),
                                  call_.given());
    });
  return made[0];
}
/* The same call with defaults for the last arguments. */
inline any_array histogram_edges(const operand &x, const operand &edges, const options &given = {})
{
  return histogram_edges(x, edges, none, given);
}
/* Like kjit::histogram_edges, but writes to existing arrays. */
inline void histogram_edges_into(const target &result, const operand &x, const operand &edges,
                                 const operand &weights, const options &given = {})
{
  detail::call call_("kjit::histogram_edges_into", given);
  call_.start(result, x, edges, weights);
  call_.run([&] {
    return kjit_histogram_edges(call_.context(), result.get(), x.get(), edges.get(), weights.get(),
                                call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void histogram_edges_into(const target &result, const operand &x, const operand &edges,
                                 const options &given = {})
{
  histogram_edges_into(result, x, edges, none, given);
}

/* Fills x with uniformly distributed numbers from low to high (kjit_random_uniform). */
inline void random_uniform(const target &x, std::uint64_t seed, std::uint64_t offset, double low,
                           double high, const options &given = {})
{
  detail::call call_("kjit::random_uniform", given);
  call_.start(x, seed, offset, low, high);
  call_.run([&] {
    return kjit_random_uniform(call_.context(), x.get(), seed, offset, low, high, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void random_uniform(const target &x, std::uint64_t seed, const options &given = {})
{
  random_uniform(x, seed, 0, 0, 1, given);
}

/* Fills x with normally distributed numbers (kjit_random_normal). */
inline void random_normal(const target &x, std::uint64_t seed, std::uint64_t offset, double center,
                          double deviation, const options &given = {})
{
  detail::call call_("kjit::random_normal", given);
  call_.start(x, seed, offset, center, deviation);
  call_.run([&] {
    return kjit_random_normal(call_.context(), x.get(), seed, offset, center, deviation,
                              call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void random_normal(const target &x, std::uint64_t seed, const options &given = {})
{
  random_normal(x, seed, 0, 0, 1, given);
}

/* Fills x with exponentially distributed numbers (kjit_random_exponential). */
inline void random_exponential(const target &x, std::uint64_t seed, std::uint64_t offset,
                               double scale, const options &given = {})
{
  detail::call call_("kjit::random_exponential", given);
  call_.start(x, seed, offset, scale);
  call_.run([&] {
    return kjit_random_exponential(call_.context(), x.get(), seed, offset, scale, call_.given());
  });
}
/* The same call with defaults for the last arguments. */
inline void random_exponential(const target &x, std::uint64_t seed, const options &given = {})
{
  random_exponential(x, seed, 0, 1, given);
}

/* Fills x with integers from least to greatest (kjit_random_integers). */
inline void random_integers(const target &x, std::uint64_t seed, std::uint64_t offset,
                            std::int64_t least, std::int64_t greatest, const options &given = {})
{
  detail::call call_("kjit::random_integers", given);
  call_.start(x, seed, offset, least, greatest);
  call_.run([&] {
    return kjit_random_integers(call_.context(), x.get(), seed, offset, least, greatest,
                                call_.given());
  });
}

/* Fills x with a random permutation of 0 to n - 1 (kjit_random_permutation). */
inline void random_permutation(const target &x, std::uint64_t seed, const options &given = {})
{
  detail::call call_("kjit::random_permutation", given);
  call_.start(x, seed);
  call_.run([&] { return kjit_random_permutation(call_.context(), x.get(), seed, call_.given()); });
}

/* Writes the rows of x in a random order (kjit_random_shuffle). */
inline any_array random_shuffle(const operand &x, std::uint64_t seed, const options &given = {})
{
  detail::call call_("kjit::random_shuffle", given);
  call_.start(x, seed);
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_random_shuffle(call_.context(), r[0], x.get(), seed, call_.given());
    });
  return made[0];
}
/* Like kjit::random_shuffle, but writes to existing arrays. */
inline void random_shuffle_into(const target &result, const operand &x, std::uint64_t seed,
                                const options &given = {})
{
  detail::call call_("kjit::random_shuffle_into", given);
  call_.start(result, x, seed);
  call_.run([&] {
    return kjit_random_shuffle(call_.context(), result.get(), x.get(), seed, call_.given());
  });
}

/* Multiplies a sparse matrix by a vector (kjit_spmv). */
inline any_array spmv(const csr &a, const operand &x, const options &given = {})
{
  detail::call call_("kjit::spmv", given);
  call_.start(a, x);
  const kjit_csr a_c = a.get();
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_spmv(call_.context(), r[0], &a_c, x.get(), call_.given());
    });
  return made[0];
}
/* Like kjit::spmv, but writes to existing arrays. */
inline void spmv_into(const target &result, const csr &a, const operand &x,
                      const options &given = {})
{
  detail::call call_("kjit::spmv_into", given);
  call_.start(result, a, x);
  const kjit_csr a_c = a.get();
  call_.run([&] { return kjit_spmv(call_.context(), result.get(), &a_c, x.get(), call_.given()); });
}

/* Multiplies a sparse matrix by a matrix (kjit_spmm). */
inline any_array spmm(const csr &a, const operand &x, const options &given = {})
{
  detail::call call_("kjit::spmm", given);
  call_.start(a, x);
  const kjit_csr a_c = a.get();
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_spmm(call_.context(), r[0], &a_c, x.get(), call_.given());
    });
  return made[0];
}
/* Like kjit::spmm, but writes to existing arrays. */
inline void spmm_into(const target &result, const csr &a, const operand &x,
                      const options &given = {})
{
  detail::call call_("kjit::spmm_into", given);
  call_.start(result, a, x);
  const kjit_csr a_c = a.get();
  call_.run([&] { return kjit_spmm(call_.context(), result.get(), &a_c, x.get(), call_.given()); });
}

/* Checks the indices of a sparse matrix and waits for the device (kjit_csr_check). */
inline void csr_check(const csr &a, std::uint32_t flags, const options &given = {})
{
  detail::call call_("kjit::csr_check", given);
  call_.start(a, flags);
  const kjit_csr a_c = a.get();
  call_.run([&] { return kjit_csr_check(call_.context(), &a_c, flags, call_.given()); });
}
/* The same call with defaults for the last arguments. */
inline void csr_check(const csr &a, const options &given = {}) { csr_check(a, 0, given); }

/* Writes the row of each entry (kjit_csr_to_coo). */
inline any_array csr_to_coo(const csr &a, const options &given = {})
{
  detail::call call_("kjit::csr_to_coo", given);
  call_.start(a);
  const kjit_csr a_c = a.get();
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_csr_to_coo(call_.context(), r[0], &a_c, call_.given());
    });
  return made[0];
}
/* Like kjit::csr_to_coo, but writes to existing arrays. */
inline void csr_to_coo_into(const target &rows, const csr &a, const options &given = {})
{
  detail::call call_("kjit::csr_to_coo_into", given);
  call_.start(rows, a);
  const kjit_csr a_c = a.get();
  call_.run([&] { return kjit_csr_to_coo(call_.context(), rows.get(), &a_c, call_.given()); });
}

/* Converts a sparse matrix to a dense array (kjit_csr_to_dense). */
inline any_array csr_to_dense(const csr &a, const options &given = {})
{
  detail::call call_("kjit::csr_to_dense", given);
  call_.start(a);
  const kjit_csr a_c = a.get();
  const created made =
    call_.create(1, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      return kjit_csr_to_dense(call_.context(), r[0], &a_c, call_.given());
    });
  return made[0];
}
/* Like kjit::csr_to_dense, but writes to existing arrays. */
inline void csr_to_dense_into(const target &result, const csr &a, const options &given = {})
{
  detail::call call_("kjit::csr_to_dense_into", given);
  call_.start(result, a);
  const kjit_csr a_c = a.get();
  call_.run([&] { return kjit_csr_to_dense(call_.context(), result.get(), &a_c, call_.given()); });
}

} // namespace kjit
#endif
