#!/usr/bin/env python3
"""Compares sparse matrices with loops over NumPy arrays, for random row lengths, shapes, layouts and types. Prints the seed;
--seed repeats a run."""
import argparse
import ctypes as c
import os
import secrets
import sys

import numpy as np

from calls import Algorithms, Failure, Operand
from reduce import strided

KINDS = ["f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
EPSILON = {"f2": 2.0**-23, "f4": 2.0**-23, "f8": 2.0**-52, "c8": 2.0**-22, "c16": 2.0**-51}  # of the sums
ROUNDING = {"f2": (2.0**-11, 2.0**-25)}  # relative error of the results, and absolute error of subnormal results
INDICES = ["i4", "i8"]
MODULE = """
func scaled(k, data, factor) { return data[k] * factor[0] }
func square(i, x) { return x[i] * x[i] }
func add_to(i, v, y) { y[i] = y[i] + v }
"""


class Csr(c.Structure):
    _fields_ = [("data", c.POINTER(Operand)), ("columns", c.POINTER(Operand)), ("offsets", c.POINTER(Operand)), ("shape", c.c_int64 * 2)]


class Coo(c.Structure):
    _fields_ = [("data", c.POINTER(Operand)), ("rows", c.POINTER(Operand)), ("columns", c.POINTER(Operand)), ("shape", c.c_int64 * 2)]


Multiply = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Operand), c.POINTER(Operand), c.c_void_p)


class LinearOperator(c.Structure):
    _fields_ = [("matrix", c.POINTER(Csr)), ("transposed", c.POINTER(Csr)), ("multiply", Multiply), ("multiply_transposed", Multiply), ("user", c.c_void_p), ("shape", c.c_int64 * 2)]


class SolveOptions(c.Structure):
    _fields_ = [("size_bytes", c.c_uint32), ("damp", c.c_double), ("matrix_tolerance", c.c_double), ("b_tolerance", c.c_double), ("condition_limit", c.c_double), ("residual_tolerance", c.c_double),
                ("iteration_limit", c.c_int64), ("device", c.c_void_p), ("stream", c.c_void_p)]


class Solution(c.Structure):
    _fields_ = [("size_bytes", c.c_uint32), ("status", c.c_int), ("iterations", c.c_int64), ("residual_norm", c.c_double), ("normal_residual_norm", c.c_double), ("matrix_norm", c.c_double),
                ("condition", c.c_double), ("solution_norm", c.c_double)]


SORTED, UNIQUE = 1, 2
SOLVED, LEAST_SQUARES, CONDITION, ITERATIONS, INDEFINITE, OVERFLOW = range(6)


class Sparse(Algorithms):
    plans = []

    def csr(self, data, columns, offsets, shape):
        """Returns a matrix from arrays or operands."""
        operands = [x if isinstance(x, Operand) else self.array(x) for x in (data, columns, offsets)]
        self.keep.append(operands)
        return Csr(*[c.pointer(x) for x in operands], (c.c_int64 * 2)(*shape))

    def coo(self, data, rows, columns, shape):
        operands = [self.array(x) for x in (data, rows, columns)]
        self.keep.append(operands)
        return Coo(*[c.pointer(x) for x in operands], (c.c_int64 * 2)(*shape))

    def call(self, name, *arguments, **options):
        made = [c.byref(x) if isinstance(x, c.Structure) else x for x in arguments]
        self.require(getattr(self.c, name)(self.context, *made, c.byref(self.options(**options))))

    def prepare(self, name, *arguments, **options):
        """Returns a function that runs the same call as a plan."""
        plan = c.c_void_p()
        self.call(name, *arguments, plan=c.addressof(plan), **options)
        self.plans.append(plan)
        return lambda: self.require(self.c.kjit_run_plan(plan, None))

    def destroy_plans(self):
        for plan in self.plans:
            self.c.kjit_destroy_plan(plan)
        self.plans = []

    def solve(self, name, x, a, b, **options):
        """Returns the solution of kjit_cg or kjit_lsmr."""
        made, solution = SolveOptions(size_bytes=c.sizeof(SolveOptions), device=self.device, **options), Solution(size_bytes=c.sizeof(Solution))
        self.require(getattr(self.c, name)(self.context, c.byref(self.array(x)), c.byref(a), c.byref(self.array(b)), c.byref(made), c.byref(solution)))
        return solution

    def refuse(self, name, message, *arguments, **options):
        try:
            (self.solve if name in ("kjit_cg", "kjit_lsmr") else self.call)(name, *arguments, **options)
        except Failure as failure:
            if message in str(failure):
                return
            raise SystemExit(f"WRONG: {name} says {failure}, expected {message!r}") from failure
        raise SystemExit(f"WRONG: {name} does not say {message!r}")


# ---- matrices ----

def values(rng, kind, count):
    x = rng.standard_normal(count)
    if kind[0] == "c":
        x = x + 1j * rng.standard_normal(count)
    if kind[0] in "iu":
        x = rng.integers(0 if kind[0] == "u" else -9, 10, count)
    return x.astype(kind)


def row_lengths(rng, rows, kind):
    """few: up to four entries in each row. long: some rows have thousands of entries. one: one row has all entries."""
    if kind == "none" or not rows:
        return np.zeros(rows, int)
    lengths = rng.integers(0, 5, rows)
    if kind == "empty":
        lengths[rng.random(rows) < 0.9] = 0
    if kind == "long":
        lengths[rng.integers(0, rows, 2)] = rng.integers(500, 9000, 2)
    if kind == "one":
        lengths[:] = 0
        lengths[rng.integers(rows)] = 20000
    return lengths


def random_csr(rng, kind, rows, columns, lengths=None):
    """Returns (data, columns, offsets), sometimes with unused capacity after the entries. Columns are not sorted, and some
    occur twice."""
    lengths = row_lengths(rng, rows, lengths or str(rng.choice(["few", "none", "empty", "long", "one"])))
    if not columns:
        lengths[:] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    count, room = int(offsets[-1]), int(rng.choice([0, 3]))
    where = np.zeros(count + room, int)
    where[:count] = rng.integers(0, max(columns, 1), count)
    where[count:] = 10**6
    data = np.concatenate([values(rng, kind, count), np.full(room, 99).astype(kind)])
    return strided(rng, data), strided(rng, where.astype(str(rng.choice(INDICES)))), strided(rng, offsets.astype(str(rng.choice(INDICES))))


def wide(x):
    return x.astype({"f": "f8", "c": "c16", "i": "i8", "u": "u8"}[x.dtype.kind])


def entries_of(matrix):
    """Yields (row, column, value) of each entry, following the definition."""
    data, columns, offsets = matrix
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return rows, columns[:len(rows)].astype(int), data[:len(rows)]


def product(matrix, x):
    """Returns the sums of a loop over the entries, and the sums of their absolute values."""
    rows, columns, data = entries_of(matrix)
    shape = (len(matrix[2]) - 1, *x.shape[1:])
    sums, sizes = np.zeros(shape, wide(x).dtype), np.zeros(shape)
    terms = wide(data).reshape(-1, *[1] * (x.ndim - 1)) * wide(x)[columns]
    np.add.at(sums, rows, terms)
    np.add.at(sizes, rows, np.abs(terms))
    return sums, sizes


def compare(title, got, want, tolerance):
    wrong = ~(np.abs(wide(got) - want) <= tolerance) if got.dtype.kind in "fc" else got != want.astype(got.dtype)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(np.broadcast_to(wrong, got.shape)))
        raise SystemExit(f"WRONG: {title}: {got[at]} at {at}, expected {want[at]}; {int(wrong.sum())} of {got.size} elements")


def tolerance_of(kind, matrix, sizes):
    """Returns the error bound for this number of additions of rounded products, and for the rounding of the result."""
    if kind[0] in "iu":
        return 0
    longest = int(np.max(np.diff(matrix[2].astype(int)), initial=0))
    relative, absolute = ROUNDING.get(kind, (0, 0))
    return sizes * (EPSILON[kind] * (longest + 2) + relative) + absolute


def dense_of(matrix, columns):
    """Adds entries at the same position; for bool, combines them with `or`."""
    rows, where, data = entries_of(matrix)
    dense = np.zeros((len(matrix[2]) - 1, columns), wide(data).dtype if data.dtype != bool else bool)
    (np.logical_or if data.dtype == bool else np.add).at(dense, (rows, where), data)
    return dense


def same(title, got, want):
    if got.shape != np.shape(want) or not np.array_equal(got, np.asarray(want).astype(got.dtype)):
        raise SystemExit(f"WRONG: {title}: {got}, expected {want}")


# ---- products ----

def check_product(rng, kjit, functions):
    kind = str(rng.choice(KINDS))
    rows, columns = (int(n) for n in rng.choice([0, 1, 5, 40, 700, 3000], 2, p=[0.06, 0.1, 0.14, 0.2, 0.25, 0.25]))
    across = None if rng.random() < 0.5 else int(rng.choice([0, 1, 2, 3, 7, 16, 17, 33, 70, 127, 130]))
    matrix = random_csr(rng, kind, rows, columns)
    x = strided(rng, values(rng, kind, columns * (1 if across is None else across)).reshape([columns] if across is None else [columns, across]))
    y, again = (strided(rng, np.full([rows, *x.shape[1:]], 77).astype(kind)) for _ in range(2))
    title = f"product of {kind}[{rows}, {columns}], {len(matrix[0])} entries, {matrix[1].dtype} and {matrix[2].dtype}, with {list(x.shape)}"
    for result in (y, again):
        kjit.begin()
        kjit.call("kjit_spmv" if across is None else "kjit_spmm", kjit.array(result), kjit.csr(*matrix, (rows, columns)), kjit.array(x))
    sums, sizes = product(matrix, x)
    compare(title, y, sums, tolerance_of(kind, matrix, sizes))
    if y.tobytes() != again.tobytes():
        raise SystemExit(f"WRONG: {title}: two runs gave different bits")


def check_funcs(rng, kjit, functions):
    """The data, the vector and the result are funcs."""
    rows, columns = 900, 400
    data, where, offsets = random_csr(rng, "f8", rows, columns, "long")
    x, y, factor = rng.standard_normal(columns), rng.standard_normal(rows), np.array([1.5])
    want, sizes = product((data * 1.5, where, offsets), x * x)
    want += y
    kjit.begin()
    entries = kjit.function(functions["scaled"], [data, factor], [len(data)])
    kjit.call("kjit_spmv", kjit.function(functions["add_to"], [y], [rows]), kjit.csr(entries, where, offsets, (rows, columns)), kjit.function(functions["square"], [x], [columns]))
    compare("product of funcs", y, want, 1e-11 + sizes * 1e-12)


# ---- conversions ----

EXACT = ["f4", "f8", "c8", "i1", "i2", "i4", "i8", "u1", "u4", "u8", "?"]


def exact_csr(rng):
    """Returns (matrix, shape, kind) of a matrix of small integers, so that sums are not rounded."""
    kind = str(rng.choice(EXACT))
    rows, columns = (int(n) for n in rng.choice([0, 1, 5, 40, 700, 3000], 2))
    data, where, offsets = random_csr(rng, "f8", rows, columns, str(rng.choice(["few", "empty", "long"])))
    data = strided(rng, np.round(np.clip(np.abs(data) * 3, 0, 4)).astype(kind))
    return (data, where, offsets), (rows, columns), kind


def result_arrays(rng, kind, room, rows):
    index = str(rng.choice(INDICES))
    return [strided(rng, np.full(n, 77).astype(t)) for n, t in ((room, kind), (room, index), (rows + 1, index))]


class Conversions:
    """Returns all conversions of one matrix as functions without arguments, or as plans. Arrays have a capacity of `room`
    entries."""

    def __init__(self, rng, kjit, matrix, shape, kind, is_planned):
        (rows, columns), room = shape, len(matrix[0])
        self.matrix, self.shape, self.kind = matrix, shape, kind
        self.count = int(matrix[2][-1])
        self.row_of = strided(rng, np.full(room, 77).astype(str(rng.choice(INDICES))))
        self.flipped = result_arrays(rng, kind, room, columns)
        self.dense, self.of_dense = (strided(rng, np.zeros((rows, columns), kind)) for _ in range(2))
        self.coo = [strided(rng, np.zeros(self.count, t)) for t in (kind, str(rng.choice(INDICES)), str(rng.choice(INDICES)))]
        self.made = result_arrays(rng, kind, self.count, rows)
        self.found = result_arrays(rng, kind, self.count + int(rng.integers(0, 3)), rows)
        a = kjit.csr(*matrix, shape)
        self.results = [self.row_of, *self.flipped, self.dense, *self.made, *self.found]
        calls = [("kjit_csr_to_coo", kjit.array(self.row_of), a), ("kjit_csr_transpose", kjit.csr(*self.flipped, (columns, rows)), a), ("kjit_csr_to_dense", kjit.array(self.dense), a),
                 ("kjit_csr_from_coo", kjit.csr(*self.made, shape), kjit.coo(*self.coo, shape)), ("kjit_csr_from_dense", kjit.csr(*self.found, shape), kjit.array(self.of_dense))]
        self.steps = [kjit.prepare(*call) if is_planned else lambda call=call: kjit.call(*call) for call in calls]

    def run(self, rng):
        """Uses the current values of the matrix."""
        data, where, offsets = self.matrix
        for result in self.results:
            result[...] = np.array(77).astype(result.dtype)
        of_entries, shuffled = np.repeat(np.arange(self.shape[0]), np.diff(offsets.astype(int))), rng.permutation(self.count)
        for array, values_ in zip(self.coo, (data[:self.count], of_entries, where[:self.count])):
            array[...] = values_[shuffled]
        self.of_dense[...] = dense_of(self.matrix, self.shape[1]).astype(self.kind)
        for step in self.steps:
            step()

    def check(self, title):
        (data, where, offsets), (rows, columns), count = self.matrix, self.shape, self.count
        of_entries, dense = np.repeat(np.arange(rows), np.diff(offsets.astype(int))), self.of_dense
        same(f"rows of {title}", self.row_of, np.concatenate([of_entries, np.full(len(data) - count, 77)]))
        # transposed: sorted by column; entries in a column keep their order
        order = np.argsort(where[:count], kind="stable")
        same(f"offsets of {title} transposed", self.flipped[2], np.searchsorted(where[:count][order], np.arange(columns + 1)))
        same(f"columns of {title} transposed", self.flipped[1][:count], of_entries[order])
        same(f"data of {title} transposed", self.flipped[0][:count], data[:count][order])
        same(f"{title} as a dense matrix", self.dense, dense)
        # from coordinates in any order
        places = np.unique(of_entries * max(columns, 1) + where[:count])
        same(f"offsets of {title} from coordinates", self.made[2], np.searchsorted(places, np.arange(rows + 1) * max(columns, 1)))
        same(f"columns of {title} from coordinates", self.made[1][:len(places)], places % max(columns, 1))
        same(f"data of {title} from coordinates", self.made[0][:len(places)], dense.reshape(-1)[places])
        at, across = np.nonzero(dense)
        same(f"offsets of {title} from a dense matrix", self.found[2], np.searchsorted(at, np.arange(rows + 1)))
        same(f"columns of {title} from a dense matrix", self.found[1][:len(at)], across)
        same(f"data of {title} from a dense matrix", self.found[0][:len(at)], dense[at, across])


def check_conversions(rng, kjit, functions):
    matrix, shape, kind = exact_csr(rng)
    kjit.begin()
    conversions = Conversions(rng, kjit, matrix, shape, kind, False)
    title = f"{kind}{list(shape)}, {conversions.count} entries"
    conversions.run(rng)
    conversions.check(title)
    made_csr = kjit.csr(*conversions.made, shape)
    kjit.require(kjit.c.kjit_csr_check(kjit.context, c.byref(made_csr), c.c_uint32(SORTED | UNIQUE), c.byref(kjit.options())))


def check_plans(rng, kjit, functions):
    """Runs plans for several matrices, one after the other. The matrices have the same number of entries at other positions."""
    (data, where, offsets), (rows, columns), kind = exact_csr(rng)
    kjit.begin()
    conversions = Conversions(rng, kjit, (data, where, offsets), (rows, columns), kind, True)
    for run in range(3):
        count = conversions.count
        if run and count:
            offsets[1:] = np.cumsum(rng.permutation(np.diff(offsets.astype(int))))
            where[:count] = rng.integers(0, columns, count)
            data[:count] = rng.integers(0, 5, count).astype(kind)
        conversions.run(rng)
        conversions.check(f"run {run} of plans of {kind}[{rows}, {columns}], {count} entries")
    kjit.destroy_plans()


def check_checks(kjit):
    good = (np.ones(5), np.array([0, 2, 1, 0, 2]), np.array([0, 2, 2, 5]))
    cases = [(good, UNIQUE, "ascend within a row, at entry 3"), (good, SORTED, "ascend within a row, at entry 3"), (good, 0, None),
             ((good[0], np.array([0, 3, 1, 0, 2]), good[2]), 0, "`columns` is out of bounds of the matrix with 3 columns at entry 1"),
             ((good[0], np.array([0, 2, 1, -1, 2]), good[2]), 0, "`columns` is out of bounds of the matrix with 3 columns at entry 3"),
             ((good[0], good[1], np.array([0, 2, 1, 5])), 0, "`offsets` decreases or is out of bounds of `data` at row 1"),
             ((good[0], good[1], np.array([0, 2, 2, 6])), 0, "`offsets` decreases or is out of bounds of `data` at row 2"),
             ((good[0], good[1], np.array([-1, 2, 2, 5])), 0, "`offsets` decreases or is out of bounds of `data` at row 0"),
             ((good[0], np.array([0, 2, 0, 1, 1]), good[2]), UNIQUE, "`columns` contains a column twice in the same row, at entry 4"),
             ((good[0], np.array([0, 2, 0, 1, 1]), good[2]), SORTED, None),
             ((good[0], np.array([1, 2, 0, 1, 2]), good[2]), SORTED | UNIQUE, None)]
    for matrix, flags, message in cases:
        for index in INDICES:
            kjit.begin()
            a = kjit.csr(matrix[0], matrix[1].astype(index), matrix[2].astype(index), (3, 3))
            if message:
                kjit.refuse("kjit_csr_check", message, a, c.c_uint32(flags))
            else:
                kjit.call("kjit_csr_check", a, c.c_uint32(flags))


def check_refused_conversions(kjit, device):
    data, columns, offsets = np.ones(4), np.array([0, 2, 1, 0]), np.array([0, 1, 1, 4])
    kjit.begin()
    room = kjit.csr(np.ones(4), np.zeros(4, "i4"), np.zeros(4, "i4"), (3, 3))
    a, coo = kjit.csr(data, columns, offsets, (3, 3)), kjit.coo(data, columns, columns, (3, 3))
    refuse = kjit.refuse
    refuse("kjit_csr_from_coo", "the result has the shape (3, 3); expected (3, 4)", room, kjit.coo(data, columns, columns, (3, 4)))
    refuse("kjit_csr_from_coo", "`rows` has 3 elements, but `data` has 4", room, kjit.coo(data, columns[:3], columns, (3, 3)))
    refuse("kjit_csr_from_coo", "rows times columns must be at most 2^64", room, kjit.coo(data, columns, columns, (2**40, 2**40)))
    refuse("kjit_csr_from_coo", "`result_data` needs 4 entries; it has 3", kjit.csr(np.ones(3), np.zeros(4, "i4"), np.zeros(4, "i4"), (3, 3)), coo)
    refuse("kjit_csr_from_coo", "`result_data` has elements of type f32: expected f64", kjit.csr(np.ones(4, "f4"), np.zeros(4, "i4"), np.zeros(4, "i4"), (3, 3)), coo)
    refuse("kjit_csr_transpose", "`result_offsets` has 3 elements; a matrix with 3 rows", kjit.csr(np.ones(4), np.zeros(4, "i4"), np.zeros(3, "i4"), (3, 3)), a)
    refuse("kjit_csr_transpose", "the output `result_data` overlaps `data`", kjit.csr(data, np.zeros(4, "i4"), np.zeros(4, "i4"), (3, 3)), a)
    refuse("kjit_csr_to_dense", "`result` must have the shape (3, 3)", kjit.array(np.zeros((3, 4))), a)
    refuse("kjit_csr_to_dense", "options.work_bytes is not an option of this algorithm", kjit.array(np.zeros((3, 3))), a, work_bytes=c.addressof(c.c_uint64()))
    refuse("kjit_csr_from_dense", "`x` has 1 axes; a matrix must have two", room, kjit.array(data))
    refuse("kjit_csr_check", "options.plan is not supported, because the call waits for the device", a, c.c_uint32(0), plan=c.addressof(c.c_void_p()))
    if device == "cpu":
        outside = kjit.csr(data, columns + 1, offsets, (3, 3))
        refuse("kjit_csr_transpose", "an index in `columns` is out of bounds of the matrix", room, outside)
        refuse("kjit_csr_to_dense", "an index in `columns` is out of bounds of the matrix", kjit.array(np.zeros((3, 3))), outside)
        refuse("kjit_csr_from_coo", "an index in `rows` or `columns` is out of bounds of the matrix", room, kjit.coo(data, columns, columns - 1, (3, 3)))
        refuse("kjit_csr_from_dense", "the matrix has more nonzero elements than", room, kjit.array(np.ones((3, 3))))


# ---- solvers ----

def operator(kjit, matrix, shape, kind):
    """Solves with the matrix's entries, sometimes also with the entries of the transposed matrix, or with host functions that
    call kjit_spmv. The test keeps the objects that the host functions need."""
    a = LinearOperator(shape=(c.c_int64 * 2)(*shape))
    csr = kjit.csr(*matrix, shape)
    flipped = [np.zeros(len(matrix[0]), matrix[0].dtype), np.zeros(len(matrix[0]), "i4"), np.zeros(shape[1] + 1, "i4")]
    transposed = kjit.csr(*flipped, shape[::-1])
    if kind != "matrix":
        kjit.call("kjit_csr_transpose", transposed, csr)
    if kind == "functions":
        multiply = [Multiply(lambda user, result, x, options, m=m: kjit.c.kjit_spmv(kjit.context, result, c.byref(m), x, c.c_void_p(options))) for m in (csr, transposed)]
        a.multiply, a.multiply_transposed = multiply
        kjit.keep.append(multiply)
    else:
        a.matrix = c.pointer(csr)
        if kind == "both":
            a.transposed = c.pointer(transposed)
    kjit.keep.append((csr, transposed))
    return a


KINDS_OF_OPERATOR = ["matrix", "both", "functions"]


def near(title, got, want, tolerance):
    if not np.max(np.abs(np.asarray(got, "f8") - want), initial=0) <= tolerance:
        raise SystemExit(f"WRONG: {title}: {got}, expected {want} within {tolerance}")


def check_lsmr(rng, kjit, functions):
    """Compares with a dense solution of the normal equations."""
    kind = "f8" if rng.random() < 0.7 else "f4"
    rows, columns = (int(n) for n in rng.choice([1, 7, 60, 200], 2))
    damp = float(rng.choice([0, 0.1, 2.0]))
    data, where, offsets = random_csr(rng, kind, rows, columns, str(rng.choice(["few", "empty", "long"])))
    matrix, shape = (data, where, offsets), (rows, columns)
    dense, b = dense_of(matrix, columns), strided(rng, rng.standard_normal(rows).astype(kind))
    want = np.linalg.lstsq(np.vstack([dense, damp * np.eye(columns)]), np.concatenate([b.astype("f8"), np.zeros(columns)]), rcond=1e-10)[0]
    singular = np.linalg.svd(dense, compute_uv=False)
    singular = np.hypot(singular[singular > 1e-10 * singular.max(initial=1e-300)], damp)
    x = strided(rng, np.full(columns, 7).astype(kind))
    kjit.begin()
    solution = kjit.solve("kjit_lsmr", x, operator(kjit, matrix, shape, str(rng.choice(KINDS_OF_OPERATOR))), b, damp=damp, matrix_tolerance=1e-14, b_tolerance=1e-14, condition_limit=1e14,
                          iteration_limit=20 * (rows + columns))
    condition = float(singular.max() / singular.min()) if singular.size else 1.0
    title = f"lsmr of {kind}[{rows}, {columns}] with damp {damp}, condition {condition:.3}: status {solution.status} after {solution.iterations} iterations"
    allowed = (1e-12 if kind == "f8" else 1e-5) * condition**2 * max(1.0, float(np.linalg.norm(want)), float(np.linalg.norm(b)) / float(singular.max(initial=1e-300)) if singular.size else 1.0)
    if condition < (1e4 if kind == "f8" else 30):
        near(title, x, want, allowed)
        residual = np.sqrt(np.linalg.norm(b - dense @ want)**2 + damp**2 * np.linalg.norm(want)**2)
        near(f"{title}: the residual's norm", solution.residual_norm, residual, (1e-9 if kind == "f8" else 1e-4) * condition * (1 + float(np.linalg.norm(b))))
        near(f"{title}: the solution's norm", solution.solution_norm, float(np.linalg.norm(x.astype("f8"))), 1e-5 * (1 + float(np.linalg.norm(want))))
    if solution.status in (INDEFINITE, OVERFLOW):
        raise SystemExit(f"WRONG: {title}")


def laplacian(n):
    """The matrix of a line of n points, plus a small multiple of the identity: symmetric positive definite."""
    entries = [(i, j, 2.01 if i == j else -1.0) for i in range(n) for j in (i - 1, i, i + 1) if 0 <= j < n]
    rows, columns, data = (np.array(x) for x in zip(*entries))
    return data, columns, np.searchsorted(rows, np.arange(n + 1))


def check_cg(rng, kjit, functions):
    kind = "f8" if rng.random() < 0.7 else "f4"
    n = int(rng.choice([1, 2, 50, 333]))
    data, where, offsets = laplacian(n)
    matrix = (strided(rng, data.astype(kind)), strided(rng, where.astype(str(rng.choice(INDICES)))), strided(rng, offsets))
    dense, b = dense_of(matrix, n), strided(rng, rng.standard_normal(n).astype(kind))
    x = strided(rng, np.full(n, 7).astype(kind))
    kjit.begin()
    a = operator(kjit, matrix, (n, n), str(rng.choice(["matrix", "functions"])))
    tolerance = 1e-10 if kind == "f8" else 1e-5
    solution = kjit.solve("kjit_cg", x, a, b, residual_tolerance=tolerance)
    title = f"cg of {kind}[{n}, {n}]: status {solution.status} after {solution.iterations} iterations"
    if solution.status != SOLVED:
        raise SystemExit(f"WRONG: {title}")
    near(title, x, np.linalg.solve(dense, b.astype("f8")), (1e-7 if kind == "f8" else 2e-2) * float(np.linalg.norm(b)))
    residual = float(np.linalg.norm(b - dense @ x.astype("f8")))
    near(f"{title}: the residual's norm", solution.residual_norm, residual, 1e-12 if kind == "f8" else 1e-4)


def check_endings(kjit):
    """Systems that do not converge, are not positive definite, have no solution, or are empty."""
    kjit.begin()
    matrix, b, x = laplacian(300), np.ones(300), np.zeros(300)
    a, dense = operator(kjit, matrix, (300, 300), "matrix"), dense_of(matrix, 300)
    for name in ("kjit_cg", "kjit_lsmr"):
        solution = kjit.solve(name, x, a, b, iteration_limit=7)
        if (solution.status, solution.iterations) != (ITERATIONS, 7):
            raise SystemExit(f"WRONG: {name} ends with status {solution.status} after {solution.iterations} iterations, which are at most 7")
        near(f"{name} after 7 iterations", solution.residual_norm, np.linalg.norm(b - dense @ x), 1e-9 * np.linalg.norm(b))
    # here the residual of conjugate gradients goes up and down; x is the iterate with the smallest residual
    rng = np.random.default_rng(5)
    steep = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    steep = steep @ np.diag(np.logspace(0, 9, 60)) @ steep.T
    full = (steep.reshape(-1), np.tile(np.arange(60), 60), np.arange(0, 3601, 60))
    right, y, least = rng.standard_normal(60), np.zeros(60), np.inf
    for limit in range(1, 25):
        kjit.begin()
        solution = kjit.solve("kjit_cg", y, operator(kjit, full, (60, 60), "matrix"), right, iteration_limit=limit, residual_tolerance=1e-14)
        residual = float(np.linalg.norm(right - steep @ y))
        if residual > least * (1 + 1e-6):
            raise SystemExit(f"WRONG: kjit_cg gives a residual of {residual} after {limit} iterations, and {least} before")
        least = min(least, residual)
    kjit.begin()
    minus = operator(kjit, (-matrix[0], *matrix[1:]), (300, 300), "matrix")
    solution = kjit.solve("kjit_cg", x, minus, b)
    if solution.status != INDEFINITE or x.any() or abs(solution.residual_norm - np.sqrt(300)) > 1e-12:
        raise SystemExit(f"WRONG: status {solution.status} of a negative definite matrix")
    solution = kjit.solve("kjit_lsmr", np.zeros(1), operator(kjit, (np.ones(2), np.zeros(2, int), np.arange(3)), (2, 1), "matrix"), np.array([1.0, -1.0]))
    if solution.status != LEAST_SQUARES or abs(solution.residual_norm - np.sqrt(2)) > 1e-12:
        raise SystemExit(f"WRONG: status {solution.status} of a system without a solution")
    for shape in ((0, 0), (3, 0), (0, 3)):
        nothing, x = (np.zeros(0), np.zeros(0, int), np.zeros(shape[0] + 1, int)), np.full(shape[1], 7.0)
        solution = kjit.solve("kjit_lsmr", x, operator(kjit, nothing, shape, "matrix"), np.ones(shape[0]))
        if x.any() or abs(solution.residual_norm - np.sqrt(shape[0])) > 1e-12:
            raise SystemExit(f"WRONG: a system of the shape {shape}")
    infinite = b.copy()
    infinite[3] = np.inf
    a = operator(kjit, matrix, (300, 300), "matrix")
    if kjit.solve("kjit_cg", np.zeros(300), a, infinite).status != OVERFLOW or kjit.solve("kjit_lsmr", np.zeros(300), a, infinite).status != OVERFLOW:
        raise SystemExit("WRONG: what is infinite is not told")


def check_refused_solvers(kjit):
    matrix, b, x = laplacian(4), np.ones(4), np.zeros(4)
    kjit.begin()
    a, refuse = operator(kjit, matrix, (4, 4), "matrix"), kjit.refuse
    refuse("kjit_cg", "`b` has 3 elements, but the matrix has 4 rows", x, a, b[:3])
    refuse("kjit_lsmr", "`x` has 3 elements, but the matrix has 4 columns", x[:3], a, b)
    refuse("kjit_lsmr", "the output `x` overlaps `b`", b, a, b)
    refuse("kjit_lsmr", "options.damp is -1, but must be finite and not negative", x, a, b, damp=-1.0)
    refuse("kjit_lsmr", "options.b_tolerance is nan", x, a, b, b_tolerance=float("nan"))
    refuse("kjit_cg", "options.iteration_limit is -2", x, a, b, iteration_limit=-2)
    refuse("kjit_cg", "`b` has elements of type i64; a solver needs f32 or f64", x, a, b.astype("i8"))
    refuse("kjit_cg", "`data` has elements of type f64, but `b` has elements of type f32", x.astype("f4"), a, b.astype("f4"))
    refuse("kjit_cg", "the operator has neither a matrix nor a function `multiply`", x, LinearOperator(shape=(c.c_int64 * 2)(4, 4)), b)
    wide = operator(kjit, (matrix[0], matrix[1], matrix[2]), (4, 5), "matrix")
    refuse("kjit_cg", "the matrix has the shape (4, 5); kjit_cg needs a square matrix", np.zeros(5), wide, b)
    one_way = operator(kjit, matrix, (4, 4), "functions")
    one_way.multiply_transposed = Multiply()
    refuse("kjit_lsmr", "nor a function `multiply_transposed`", x, one_way, b)
    failing = Multiply(lambda *_: 1)
    refuse("kjit_cg", "", x, LinearOperator(multiply=failing, shape=(c.c_int64 * 2)(4, 4)), b)


def check_bf16(rng, kjit):
    """The entries and the matrix are bf16; sums are f32."""
    data, where, offsets = random_csr(rng, "f4", 300, 200, "long")
    x = rng.standard_normal((200, 5)).astype("f4")
    data, x = ((v.view("u4") & 0xFFFF0000).view("f4") for v in (np.ascontiguousarray(data), x))
    kjit.begin()
    halves = []
    for v in (data, x):
        halves.append(kjit.array((v.view("u4") >> 16).astype("u2")))
        kjit.keep[-1][0].code = 4  # kDLBfloat
    matrix, y = (data, where, offsets), np.zeros((300, 5), "f4")
    kjit.call("kjit_spmm", kjit.array(y), kjit.csr(halves[0], where, offsets, (300, 200)), halves[1])
    sums, sizes = product(matrix, x)
    compare("product of bf16", y, sums, tolerance_of("f4", matrix, sizes))


def check_errors(kjit, device):
    data, columns, offsets, x, y = np.ones(4), np.array([0, 2, 1, 0]), np.array([0, 1, 1, 4]), np.ones(3), np.zeros(3)
    kjit.begin()
    result, a, vector = kjit.array(y), kjit.csr(data, columns, offsets, (3, 3)), kjit.array(x)
    refuse = kjit.refuse
    refuse("kjit_spmv", "`x` has 3 rows, but the matrix has 4 columns", result, kjit.csr(data, columns, offsets, (3, 4)), vector)
    refuse("kjit_spmv", "`offsets` has 4 elements; a matrix with 4 rows needs 5 elements", result, kjit.csr(data, columns, offsets, (4, 3)), vector)
    refuse("kjit_spmv", "`columns` has 3 elements, but `data` has 4; both must have one element for each entry", result, kjit.csr(data, columns[:3], offsets, (3, 3)), vector)
    refuse("kjit_spmv", "`columns` has elements of type f64: indices", result, kjit.csr(data, data, offsets, (3, 3)), vector)
    refuse("kjit_spmv", "`offsets` has elements of type u32: indices", result, kjit.csr(data, columns, offsets.astype("u4"), (3, 3)), vector)
    refuse("kjit_spmv", "`x` has elements of type f32, but `data` has type f64", result, a, kjit.array(x.astype("f4")))
    refuse("kjit_spmv", "`data` has elements of type bool, but a product needs numbers", result, kjit.csr(data > 0, columns, offsets, (3, 3)), kjit.array(x > 0))
    refuse("kjit_spmv", "`x` has 2 axes: kjit_spmm needs a matrix, which has two", result, a, kjit.array(np.ones((3, 2))))
    refuse("kjit_spmm", "`x` has 1 axis: kjit_spmv needs a vector, which has one", result, a, vector)
    refuse("kjit_spmv", "`result` must have the shape (3)", kjit.array(np.zeros(2)), a, vector)
    refuse("kjit_spmm", "`result` must have the shape (3, 2)", kjit.array(np.zeros((3, 3))), a, kjit.array(np.ones((3, 2))))
    refuse("kjit_spmv", "the output `result` overlaps `x`", vector, a, vector)
    refuse("kjit_spmv", "the matrix has the shape (-1, 3)", result, kjit.csr(data, columns, offsets, (-1, 3)), vector)
    refuse("kjit_spmv", "options.axes is not an option of this algorithm", result, a, vector, axes=[0])
    if device == "cpu":  # a GPU reports the error at the next synchronization
        for wrong in ([0, 3, 1, 4], [0, 1, 1, 5], [-1, 1, 1, 4]):
            bad = kjit.csr(data, columns, np.array(wrong), (3, 3))
            refuse("kjit_spmv", "an element of `offsets` is less than the preceding one, negative, or more than the number of elements", result, bad, vector)
            refuse("kjit_spmm", "an element of `offsets` is less than the preceding one, negative, or more than the number of elements", kjit.array(np.zeros((3, 2))), bad, kjit.array(np.ones((3, 2))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    seed = secrets.randbits(31) if given.seed is None else given.seed
    print(f"sparse matrices on {given.device}, seed {seed}", flush=True)
    kjit = Sparse(given.libdir, given.device)
    module = kjit.parse(MODULE)
    functions = {name: kjit.find(module, name) for name in ("scaled", "square", "add_to")}
    check_errors(kjit, given.device)
    check_checks(kjit)
    check_refused_conversions(kjit, given.device)
    check_bf16(np.random.default_rng([seed, given.count]), kjit)
    check_endings(kjit)
    check_refused_solvers(kjit)
    checks = [check_product, check_conversions, check_product, check_lsmr, check_funcs, check_cg, check_plans]
    for number in range(given.count):
        checks[number % len(checks)](np.random.default_rng([seed, number]), kjit, functions)
    kjit.release(module)


if __name__ == "__main__":
    sys.exit(main())
