#!/usr/bin/env python3
"""Sparse matrices against loops over NumPy arrays: random lengths of rows, shapes, layouts and types. Prints the seed; --seed repeats a run."""
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
ROUNDING = {"f2": (2.0**-11, 2.0**-25)}  # of the results, and of those that are subnormal
INDICES = ["i4", "i8"]
MODULE = """
func scaled(k, data, factor) { return data[k] * factor[0] }
func square(i, x) { return x[i] * x[i] }
func add_to(i, v, y) { y[i] = y[i] + v }
"""


class Csr(c.Structure):
    _fields_ = [("data", c.POINTER(Operand)), ("columns", c.POINTER(Operand)), ("offsets", c.POINTER(Operand)), ("shape", c.c_int64 * 2)]


class Sparse(Algorithms):
    def csr(self, data, columns, offsets, shape):
        """Arrays, or operands, as a matrix."""
        operands = [x if isinstance(x, Operand) else self.array(x) for x in (data, columns, offsets)]
        self.keep.append(operands)
        return Csr(*[c.pointer(x) for x in operands], (c.c_int64 * 2)(*shape))

    def call(self, name, *arguments, **options):
        made = [c.byref(x) if isinstance(x, c.Structure) else x for x in arguments]
        self.require(getattr(self.c, name)(self.context, *made, c.byref(self.options(**options))))

    def refuse(self, name, message, *arguments, **options):
        try:
            self.call(name, *arguments, **options)
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
    """few: up to four entries; long: among them rows of thousands; one: all of them in one row."""
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
    """(data, columns, offsets) with room behind the entries, sometimes; columns are not sorted, and some come twice."""
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
    """(row, column, value) of each entry, by the definition."""
    data, columns, offsets = matrix
    rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return rows, columns[:len(rows)].astype(int), data[:len(rows)]


def product(matrix, x):
    """A loop over the entries: the sums, and those of the absolute values."""
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
    """Of so many additions of products that are rounded, and of the result."""
    if kind[0] in "iu":
        return 0
    longest = int(np.max(np.diff(matrix[2].astype(int)), initial=0))
    relative, absolute = ROUNDING.get(kind, (0, 0))
    return sizes * (EPSILON[kind] * (longest + 2) + relative) + absolute


# ---- products ----

def check_product(rng, kjit, functions):
    kind = str(rng.choice(KINDS))
    rows, columns = (int(n) for n in rng.choice([0, 1, 5, 40, 700, 3000], 2, p=[0.06, 0.1, 0.14, 0.2, 0.25, 0.25]))
    across = None if rng.random() < 0.5 else int(rng.choice([0, 1, 2, 3, 7, 16, 17, 33, 70]))
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
    """Data, vector and result that are funcs."""
    rows, columns = 900, 400
    data, where, offsets = random_csr(rng, "f8", rows, columns, "long")
    x, y, factor = rng.standard_normal(columns), rng.standard_normal(rows), np.array([1.5])
    want, sizes = product((data * 1.5, where, offsets), x * x)
    want += y
    kjit.begin()
    entries = kjit.function(functions["scaled"], [data, factor], [len(data)])
    kjit.call("kjit_spmv", kjit.function(functions["add_to"], [y], [rows]), kjit.csr(entries, where, offsets, (rows, columns)), kjit.function(functions["square"], [x], [columns]))
    compare("product of funcs", y, want, 1e-11 + sizes * 1e-12)


def check_errors(kjit, device):
    data, columns, offsets, x, y = np.ones(4), np.array([0, 2, 1, 0]), np.array([0, 1, 1, 4]), np.ones(3), np.zeros(3)
    kjit.begin()
    result, a, vector = kjit.array(y), kjit.csr(data, columns, offsets, (3, 3)), kjit.array(x)
    refuse = kjit.refuse
    refuse("kjit_spmv", "`x` has 3 rows, and the matrix 4 columns", result, kjit.csr(data, columns, offsets, (3, 4)), vector)
    refuse("kjit_spmv", "`offsets` has 4 elements: a matrix of 4 rows has one more", result, kjit.csr(data, columns, offsets, (4, 3)), vector)
    refuse("kjit_spmv", "`columns` has 3 elements, and `data` has 4", result, kjit.csr(data, columns[:3], offsets, (3, 3)), vector)
    refuse("kjit_spmv", "`columns` has elements of type f64: indices", result, kjit.csr(data, data, offsets, (3, 3)), vector)
    refuse("kjit_spmv", "`offsets` has elements of type u32: indices", result, kjit.csr(data, columns, offsets.astype("u4"), (3, 3)), vector)
    refuse("kjit_spmv", "`x` has elements of type f32, and `data` of type f64", result, a, kjit.array(x.astype("f4")))
    refuse("kjit_spmv", "`data` has elements of type bool: a product takes numbers", result, kjit.csr(data > 0, columns, offsets, (3, 3)), kjit.array(x > 0))
    refuse("kjit_spmv", "`x` has 2 axes: a vector has one, kjit_spmm takes a matrix", result, a, kjit.array(np.ones((3, 2))))
    refuse("kjit_spmm", "`x` has 1 axis: a matrix has two, kjit_spmv takes a vector", result, a, vector)
    refuse("kjit_spmv", "`result` has to have the shape (3)", kjit.array(np.zeros(2)), a, vector)
    refuse("kjit_spmm", "`result` has to have the shape (3, 2)", kjit.array(np.zeros((3, 3))), a, kjit.array(np.ones((3, 2))))
    refuse("kjit_spmv", "`result` is written and overlaps `x`", vector, a, vector)
    refuse("kjit_spmv", "the matrix has the shape (-1, 3)", result, kjit.csr(data, columns, offsets, (-1, 3)), vector)
    refuse("kjit_spmv", "it does not take options.axes", result, a, vector, axes=[0])
    if device == "cpu":  # a GPU tells at the next synchronization
        for wrong in ([0, 3, 1, 4], [0, 1, 1, 5], [-1, 1, 1, 4]):
            bad = kjit.csr(data, columns, np.array(wrong), (3, 3))
            refuse("kjit_spmv", "the offsets of a segment descend or lead out of x", result, bad, vector)
            refuse("kjit_spmm", "the offsets of a segment descend or lead out of x", kjit.array(np.zeros((3, 2))), bad, kjit.array(np.ones((3, 2))))


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
    checks = [check_product, check_product, check_product, check_funcs]
    for number in range(given.count):
        checks[number % len(checks)](np.random.default_rng([seed, number]), kjit, functions)
    kjit.release(module)


if __name__ == "__main__":
    sys.exit(main())
