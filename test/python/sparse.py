# RUN: %kjit-python %s
"""Sparse matrices that are created from arrays. Indices that are out of bounds are found before a product reads
them."""
import kjit
import numpy as np

ones = np.ones(4)
columns, offsets = np.array([0, 2, 1, 0]), np.array([0, 1, 1, 4])


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), f"{error}, expected {text}"
    else:
        raise AssertionError(f"not refused: {text}")


def changed(array, place, value):
    made = array.copy()
    made[place] = value
    return made


# ---- arrays that a user passes are checked once ----

makers = [lambda *parts, **options: kjit.CSR(*parts, (3, 3), **options), lambda *parts, **options: kjit.csr(parts, (3, 3), **options)]
places = [lambda x: x, lambda x: x[::-1].copy()[::-1], lambda x: kjit.array(x, device=kjit.device())]
for make in makers:
    for place in places:
        for index in (np.int32, np.int64):
            data, where, rows = place(ones), place(columns.astype(index)), place(offsets.astype(index))
            assert make(data, where, rows).shape == (3, 3)
            for value in (3, -1, 2**31 - 1):
                text = f"`indices`: entry 2 is {value}, but the matrix has 3 columns"
                refused(kjit.ArgumentError, text, lambda: make(data, place(changed(columns.astype(index), 2, value)), rows))
                assert make(data, place(changed(columns.astype(index), 2, value)), rows, check=False).nnz == 4
            for i, value, text in ((1, 3, "row 1 is from 3 to 1"), (3, 5, "row 2 is from 1 to 5"), (0, -1, "row 0 is from -1 to 1")):
                text = f"`indptr`: {text}, but offsets must ascend and be from 0 to 4"
                refused(kjit.ArgumentError, text, lambda: make(data, where, place(changed(offsets.astype(index), i, value))))
refused(kjit.ArgumentError, "entry 0 is 1099511627776", lambda: kjit.CSR(np.ones(1), np.array([2**40]), np.array([0, 1]), (1, 3)) @ np.ones(3))
np.testing.assert_array_equal(kjit.CSR([1.0, 2.0], [1, 0], [0, 1, 2], [2, 2]) @ np.ones(2), [1, 2])
refused(kjit.ArgumentError, "`plan` is not supported", lambda: kjit.CSR(ones, columns, offsets, (3, 3), plan=True))
refused(TypeError, "there is no option 'speed'", lambda: kjit.CSR(ones, columns, offsets, (3, 3), speed=1))



class Given:
    """Attributes and methods of SciPy's matrices."""

    def __init__(self, data, indices, indptr, shape):
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, shape

    def tocsr(self):
        return self


assert kjit.csr(Given(ones, columns, offsets, (3, 3))).shape == (3, 3)
broken = Given(ones, changed(columns, 1, 7), offsets, (3, 3))
assert kjit.csr(broken, check=False).shape == (3, 3)
refused(kjit.ArgumentError, "`indices`: entry 1 is 7", lambda: kjit.csr(broken))
refused(kjit.ArgumentError, "`indices`: entry 1 is 7", lambda: kjit.lsmr(broken, np.ones(3)))
refused(kjit.ArgumentError, "`indices`: entry 1 is 7", lambda: kjit.lsmr(kjit.csr(np.eye(3)), np.ones(3), transposed=broken))

# ---- invalid shapes and tuples ----

for shape in (3, (3,), (3, 3, 3), (3, 2.5), "ab"):
    refused(TypeError, "the shape of a matrix must be a tuple of two integers, (rows, columns), not ", lambda: kjit.csr((ones, columns, offsets), shape))
refused(TypeError, "not a tuple of 1", lambda: kjit.csr((ones,), (3, 3)))
refused(TypeError, "the coordinates of a matrix must be a tuple of two arrays", lambda: kjit.csr((ones, columns), (3, 3)))
refused(TypeError, "the coordinates of a matrix must be a tuple of two arrays", lambda: kjit.csr((ones, (columns,)), (3, 3)))

# ---- solvers: 0 switches a limit off, as in SciPy ----

hilbert = 1 / (np.arange(6)[:, None] + np.arange(6) + 1.0)
right = hilbert @ np.ones(6)
loose = kjit.lsmr(hilbert, right, iteration_limit=500)
tight = kjit.lsmr(hilbert, right, matrix_tolerance=0, b_tolerance=0, condition_limit=0, iteration_limit=500)
assert loose.status == 0 and loose.residual_norm > 1e-10, loose
assert tight.status == 0 and tight.residual_norm < 1e-13, tight
steep = np.diag(10.0 ** np.arange(12))  # because the condition number exceeds 1e8
for limit, status in ((1e8, 2), (0, 0)):
    found = kjit.lsmr(steep, np.ones(12), matrix_tolerance=0, b_tolerance=0, condition_limit=limit, iteration_limit=2000)
    assert found.status == status, found
assert kjit.cg(hilbert, right).residual_norm > 1e-10
least = kjit.cg(hilbert, right, residual_tolerance=0)
assert least.status == 3 and least.residual_norm < 1e-13, least
assert kjit.cg(np.eye(3), np.ones(3), residual_tolerance=0).status == 0

sparse = kjit.csr(hilbert)
for limit in (0, -2, 2**64):
    refused(kjit.ArgumentError, f"iteration_limit must be from 1 to 2^63 - 1, or None, not {limit}", lambda: kjit.cg(hilbert, right, iteration_limit=limit))
refused(TypeError, "iteration_limit must be an integer or None, not 2.5", lambda: kjit.cg(hilbert, right, iteration_limit=2.5))
refused(TypeError, "residual_tolerance must be a number, not None", lambda: kjit.cg(hilbert, right, residual_tolerance=None))
refused(TypeError, "condition_limit must be a number, not 'high'", lambda: kjit.lsmr(hilbert, right, condition_limit="high"))
refused(TypeError, "`transposed` must be a sparse matrix, a.T or a SciPy matrix, not ndarray", lambda: kjit.lsmr(sparse, right, transposed=hilbert))
refused(kjit.ArgumentError, "the transposed matrix has the shape", lambda: kjit.lsmr(sparse, right, transposed=kjit.csr(hilbert[:3])))
refused(TypeError, "`b` must be an array, not NoneType", lambda: kjit.cg(sparse, None))
refused(TypeError, "`a` must be an array, not int", lambda: kjit.cg(3, right))
