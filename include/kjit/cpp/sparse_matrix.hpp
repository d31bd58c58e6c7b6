/* kjit/cpp/sparse_matrix.hpp: sparse matrices for kjit.hpp. Include kjit/kjit.hpp, which includes
 * this file. */
#ifndef KJIT_CPP_SPARSE_MATRIX_HPP
#define KJIT_CPP_SPARSE_MATRIX_HPP

#include <kjit/cpp/call.hpp>

namespace kjit {

/* The arrays of a sparse matrix in CSR format, such as the result of a conversion. data and columns
 * can have more elements than there are entries; the last element of offsets is the number of
 * entries. */
struct csr_arrays {
  any_array data;         /* value of each entry */
  any_array columns;      /* column of each entry */
  any_array offsets;      /* first entry of each row, and the end */
  std::int64_t rows = 0;  /* number of rows */
  std::int64_t width = 0; /* number of columns */
};

/* A sparse matrix in CSR format, made of operands. Use each object for one call only. */
class csr {
public:
  /* Refers to the operands for a matrix with these numbers of rows and columns. */
  template <typename D, typename C, typename O>
  csr(const D &data, const C &columns, const O &offsets, std::int64_t rows, std::int64_t width)
      : data_(data), columns_(columns), offsets_(offsets), rows_(rows), width_(width)
  {
  }
  /* Refers to the arrays of a matrix. */
  csr(const csr_arrays &a) : csr(a.data, a.columns, a.offsets, a.rows, a.width) {}
  /* Returns the matrix for the C interface. */
  kjit_csr get() const
  {
    return { data_.get(), columns_.get(), offsets_.get(), { rows_, width_ } };
  }
  /* Returns the operands. */
  std::array<const operand *, 3> operands() const { return { &data_, &columns_, &offsets_ }; }

private:
  operand data_, columns_, offsets_;
  std::int64_t rows_, width_;
};

/* A sparse matrix in coordinate format, made of operands. Use each object for one call only. */
class coo {
public:
  /* Refers to the operands for a matrix with these numbers of rows and columns. */
  template <typename D, typename R, typename C>
  coo(const D &data, const R &rows, const C &columns, std::int64_t height, std::int64_t width)
      : data_(data), rows_(rows), columns_(columns), height_(height), width_(width)
  {
  }
  /* Returns the matrix for the C interface. */
  kjit_coo get() const { return { data_.get(), rows_.get(), columns_.get(), { height_, width_ } }; }
  /* Returns the operands. */
  std::array<const operand *, 3> operands() const { return { &data_, &rows_, &columns_ }; }

private:
  operand data_, rows_, columns_;
  std::int64_t height_, width_;
};

} // namespace kjit
#endif
