"""Products of two sparse matrices, computed in the matrices' memory: with NumPy for NumPy arrays,
otherwise with kjit.numpy on the device.

Each entry of the left matrix is multiplied by the entries in one row of the right matrix. The products are coordinates,
which `kjit.csr` sorts; it also adds products at the same position. The rows are processed in blocks, which bounds the
memory for the products.
"""

from . import _kjit
from ._errors import ArgumentError
from ._products import CSR, csr
from ._sparse_elements import _entries
from .sparse import _common, _wide

# The maximum number of products in a block of rows. A product takes about 60 bytes.
_MOST_PRODUCTS = 1 << 25


class _Products:
    """The products of two matrices' entries, in the order of the left matrix. `offsets[k]` is the number of products
    before entry k of the left matrix."""

    def __init__(self, first, second):
        self.xp, data, rows, columns, self.row_offsets = _entries(first)
        _, more, _, self.columns, starts = _entries(second)
        self.left, self.right = _common(self.xp, data, more)
        if self.left.dtype == "bool":  # a bool result says whether a path exists, so the paths are counted first
            self.left, self.right = (x.astype("int32") for x in (self.left, self.right))
        self.rows, columns, starts, self.row_offsets = _wide(self.xp, rows, columns, starts, self.row_offsets)
        self.place = {} if not isinstance(data, _kjit.Array) else {"device": data.device}
        self.starts = starts[:-1][columns]
        self.counts = starts[1:][columns] - self.starts
        zero = self.xp.zeros(1, dtype="int64", **self.place)
        self.offsets = self.xp.concatenate([zero, self.xp.cumsum(self.counts)])

    def blocks(self, row_count):
        """Returns pairs (first row, end) of blocks that have at most _MOST_PRODUCTS products or a
        single row."""
        if int(self.offsets[-1]) <= _MOST_PRODUCTS:
            return [(0, row_count)]
        import numpy

        before = self.offsets[self.row_offsets]
        before = before.to_host() if isinstance(before, _kjit.Array) else before
        blocks, first = [], 0
        while first < row_count:
            fits = int(numpy.searchsorted(before, before[first] + _MOST_PRODUCTS, side="right")) - 1
            blocks.append((first, min(max(fits, first + 1), row_count)))
            first = blocks[-1][1]
        return blocks

    def matrix(self, first, end, column_count):
        """Returns the rows first to end - 1 of the product."""
        xp, place = self.xp, self.place
        low, high = (int(self.row_offsets[row]) for row in (first, end))
        counts, offsets = self.counts[low:high], self.offsets[low:high] - self.offsets[low : low + 1]
        total = int(self.offsets[high]) - int(self.offsets[low])
        entries = xp.repeat(xp.arange(low, high, **place), counts)
        others = xp.arange(total, **place) + xp.repeat(self.starts[low:high] - offsets, counts)
        data = self.left[entries] * self.right[others]
        return self.without_zeros(csr((data, (self.rows[entries] - first, self.columns[others])), (end - first, column_count)))

    def without_zeros(self, matrix):
        xp, (data, indices, indptr) = self.xp, (matrix.data, matrix.indices, matrix.indptr)
        keep = data != 0
        before = xp.concatenate([xp.zeros(1, dtype="int64", **self.place), xp.cumsum(keep.astype("int64"))])
        if int(before[-1]) == matrix.nnz:
            return matrix
        return CSR(data[keep], indices[keep], before[indptr].astype(indptr.dtype), matrix.shape, check=False)


def product(first, second):
    """Returns the matrix product of two sparse matrices as `kjit.CSR`, with sorted columns. As in
    SciPy, it has no entries that are 0. Raises ArgumentError unless the left matrix has as many columns as the right
    matrix has rows."""
    first, second = csr(first), csr(second)
    if first.shape[1] != second.shape[0]:
        raise ArgumentError(f"the shapes {first.shape} and {second.shape} do not match for a product", "KJIT_ERROR_ARGUMENT")
    made = _Products(first, second)
    kind = made.xp.result_type(first.data.dtype, second.data.dtype)
    found = [made.matrix(*block, second.shape[1]) for block in made.blocks(first.shape[0])]
    whole = found[0] if len(found) == 1 else _below(made.xp, found)
    return whole if whole.data.dtype == kind else whole.astype(kind)


def _below(xp, matrices):
    """Stacks the matrices vertically without sorting again."""
    offsets, count = [matrices[0].indptr[:1]], 0
    for matrix in matrices:
        offsets.append(matrix.indptr[1:] + count)
        count += matrix.nnz
    data, indices = (xp.concatenate([getattr(matrix, name) for matrix in matrices]) for name in ("data", "indices"))
    shape = sum(matrix.shape[0] for matrix in matrices), matrices[0].shape[1]
    return CSR(data, indices, xp.concatenate(offsets), shape, check=False)
