/* kjit/cpp/solve.hpp: conversions of sparse matrices and linear systems for kjit.hpp. Include
 * kjit/kjit.hpp, which includes this file. */
#ifndef KJIT_CPP_SOLVE_HPP
#define KJIT_CPP_SOLVE_HPP

#include <kjit/cpp/algorithms.hpp>

namespace kjit {

namespace detail {
template <typename M, typename F>
csr_arrays create_csr(const char *name, const options &given, std::int64_t rows, std::int64_t width,
                      const M &source, F &&function)
{
  detail::call call(name, given);
  call.start(source);
  const created made =
    call.create(3, nullptr, [&](const kjit_operand *const *r, const kjit_operand *, std::size_t) {
      const kjit_csr result = { r[0], r[1], r[2], { rows, width } };
      return function(call.context(), &result, call.given());
    });
  return { made[0], made[1], made[2], rows, width };
}
} // namespace detail

/* Converts a sparse matrix from coordinate to CSR format (kjit_csr_from_coo). */
inline csr_arrays csr_from_coo(const coo &a, const options &given = {})
{
  const kjit_coo matrix = a.get();
  return detail::create_csr("kjit::csr_from_coo", given, matrix.shape[0], matrix.shape[1], a,
                            [&](kjit_context *context, const kjit_csr *result,
                                const kjit_algorithm_options *o) {
                              return kjit_csr_from_coo(context, result, &matrix, o);
                            });
}
/* Transposes a sparse matrix (kjit_csr_transpose). */
inline csr_arrays csr_transpose(const csr &a, const options &given = {})
{
  const kjit_csr matrix = a.get();
  return detail::create_csr("kjit::csr_transpose", given, matrix.shape[1], matrix.shape[0], a,
                            [&](kjit_context *context, const kjit_csr *result,
                                const kjit_algorithm_options *o) {
                              return kjit_csr_transpose(context, result, &matrix, o);
                            });
}
/* Converts the nonzero elements of an array with two axes to a sparse matrix
 * (kjit_csr_from_dense). */
inline csr_arrays csr_from_dense(const any_array &x, const options &given = {})
{
  const std::vector<std::int64_t> shape = x.shape();
  if (shape.size() != 2)
    detail::fail(KJIT_ERROR_ARGUMENT, "kjit::csr_from_dense needs an array with two axes");
  const operand dense(x);
  return detail::create_csr("kjit::csr_from_dense", given, shape[0], shape[1], dense,
                            [&](kjit_context *context, const kjit_csr *result,
                                const kjit_algorithm_options *o) {
                              return kjit_csr_from_dense(context, result, dense.get(), o);
                            });
}

/* Options of a solver with their defaults, to be changed and passed to kjit::cg or kjit::lsmr. */
inline kjit_solve_options solve_options()
{
  kjit_solve_options defaults = {};
  defaults.size_bytes = sizeof defaults;
  return defaults;
}

namespace detail {
template <typename F>
kjit_solution solve(const char *name, const target &x, const csr &a, const operand &b,
                    const kjit_solve_options &given, F &&function)
{
  const options nothing;
  detail::call call(name, nothing);
  call.start(x, a, b);
  const kjit_csr matrix = a.get();
  kjit_linear_operator system = {};
  system.matrix = &matrix;
  kjit_solution solution = {};
  solution.size_bytes = sizeof solution;
  kjit::check(call.context(),
              function(call.context(), x.get(), &system, b.get(), &given, &solution));
  return solution;
}
} // namespace detail

/* Solves A x = b for a symmetric positive definite matrix (kjit_cg). If the system does not
 * converge, the call succeeds, and the result has the status that says so. */
inline kjit_solution cg(const target &x, const csr &a, const operand &b,
                        const kjit_solve_options &given = solve_options())
{
  return detail::solve("kjit::cg", x, a, b, given, kjit_cg);
}
/* Minimizes |b - A x| for a matrix of any shape (kjit_lsmr). */
inline kjit_solution lsmr(const target &x, const csr &a, const operand &b,
                          const kjit_solve_options &given = solve_options())
{
  return detail::solve("kjit::lsmr", x, a, b, given, kjit_lsmr);
}

} // namespace kjit
#endif
