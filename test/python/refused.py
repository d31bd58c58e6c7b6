# RUN: %kjit-python %s
"""Messages of algorithms about arguments that they do not support. The messages use the terms of the call, not those of
its implementation."""
import kjit
import numpy as np

x = np.ones((3, 3))
masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
point = np.dtype([("x", "f4"), ("y", "f4")])
n = np.arange(9)
line = x[0]


def product(a, b, i, j):
    return a * b


def nothing(a, b, i, j):
    c = a * b


def complex_sum(a, b):
    return a + 1j * b


def first(a, b):
    return a


KNOWN = "accumulator, device, plan, stream"
for kind, text, call in (
    (TypeError, 'an expression must be a string such as "ij,jk->ik", not int', lambda: kjit.einsum(3, x, x)),
    (TypeError, "lists of axes are not supported", lambda: kjit.einsum(x, [0, 1], x, [1, 2])),
    (TypeError, "einsum: argument 3 is None: expected an array or a number", lambda: kjit.einsum("ij,jk->ik", x, None)),
    (TypeError, "matmul: argument 1 is None", lambda: kjit.matmul(None, x)),
    (TypeError, "matmul: argument 2 is None", lambda: kjit.matmul(x, None)),
    (TypeError, "reduce: argument 1 is None", lambda: kjit.reduce(None)),
    (TypeError, "random_uniform: x must be an array or the shape of a new array, not None", lambda: kjit.random_uniform(None, 1)),
    (TypeError, "update_at: x, places and values must be arrays or numbers, not None", lambda: kjit.update_at(None, n, 1)),
    (TypeError, f"there is no option 'flags'; the options are {KNOWN}", lambda: kjit.matmul(x, x, flags=3)),
    (TypeError, f"there is no option 'made'; the options are {KNOWN}", lambda: kjit.sort(x, made=[])),
    (TypeError, f"there is no option 'together'; the options are {KNOWN}", lambda: kjit.reduce(x, together=True)),
    (TypeError, f"there is no option 'axes'; the options are {KNOWN}", lambda: kjit.sort(x, axes=(1,))),
    (OverflowError, "chunk is -1, but must be from 0 to 2^64 - 1", lambda: kjit.pairs(product, line, line, chunk=-1)),
    (TypeError, "chunk must be an integer, not 2.5", lambda: kjit.pairs(product, line, line, chunk=2.5)),
    (OverflowError, "end_bit is 4294967296, but must be from 0 to 2^32 - 1", lambda: kjit.argsort(n, end_bit=2**32)),
    (TypeError, "what NumPy calls 'f8' is \"f64\"", lambda: kjit.zeros(3, "f8")),
    (TypeError, "what NumPy calls '<i4' is \"i32\"", lambda: kjit.empty(3, "<i4")),
    (kjit.TypingError, "`nothing` returns no value for a row of x and a row of y", lambda: kjit.pairs(nothing, line, line)),
    (kjit.TypingError, "`nothing` returns no value for a row", lambda: kjit.pairs_smallest(nothing, line, line, 2)),
    (kjit.TypingError, "`complex_sum` returns complex128 for two values of type float64", lambda: kjit.reduce(line, complex_sum)),
    (kjit.TypingError, "`complex_sum` returns complex128 for two values of type int64", lambda: kjit.scan(n, complex_sum)),
    (TypeError, "computed() needs a Python function or a kjit.func, not None", lambda: kjit.pairs(None, line, line)),
    (TypeError, "arguments must be a tuple of arrays and numbers", lambda: kjit.pairs(product, line, line, arguments=3)),
    (TypeError, "arguments must be a tuple of arrays and numbers", lambda: kjit.pairs_smallest(product, line, line, 2, arguments=line)),
    (TypeError, 'a signature must be a string such as "(n),(n)->()", not int', lambda: kjit.map(first, n, n, signature=3)),
    (ValueError, "an operator's name must not contain zero bytes", lambda: kjit.reduce(n, "add\0max")),
    (TypeError, "a result is written to an array, not to a list", lambda: kjit.reduce(line, out=[0.0])),
    (TypeError, "a result is written to an array, not to a tuple", lambda: kjit.reduce(line, out=(np.zeros(()),))),
    (TypeError, "a result is written to an array, not to a list", lambda: kjit.update_at([1, 2], [0], [3])),
    (TypeError, "the masked elements of a masked array", lambda: kjit.reduce(masked)),
    (TypeError, "the masked elements of a masked array", lambda: kjit.map(lambda u: u, masked)),
    (TypeError, "the masked elements of a masked array", lambda: kjit.sort(line, out=masked)),
    (TypeError, "axis must be an integer or a tuple of integers, not [0]", lambda: kjit.reduce(x, axis=[0])),
    (TypeError, "axis must be an integer or a tuple of integers, not 1.0", lambda: kjit.sort(x, axis=1.0)),
    (kjit.ArgumentError, "axis 100 is out of range", lambda: kjit.reduce(x, axis=2**80)),
    (TypeError, "`initial`: ", lambda: kjit.reduce(n, initial=np.str_("a"))),
    (kjit.TypingError, "`initial`, record (x, y),", lambda: kjit.reduce(n, initial=np.zeros((), point))),
    (kjit.TypingError, "`initial`, a number", lambda: kjit.reduce(np.zeros(3, point), first, initial=3)),
    (TypeError, "'banana' is not an element type, such as kjit.f32, \"f32\", numpy.float32", lambda: kjit.zeros(3, "banana")),
):
    try:
        call()
    except kind as error:
        assert text in str(error), f"{error}, expected {text}"
    else:
        raise AssertionError(f"not refused: {text}")

# A list can be the shape of a new array, as in NumPy. An integer of NumPy can be the shape as well.
assert kjit.random_uniform([3, 2], 1).shape == (3, 2) and kjit.random_integers(np.int64(3), 1, 0, 9).shape == (3,)
# Optional arguments can still be omitted, and every numeric sort supports bits.
assert kjit.bincount(n, 9, None).sum() == 9 and kjit.sort_segments(n, np.array([0, 4, 9])).shape == (9,)
assert kjit.top_k(n, 2, out=(np.zeros(2, int), None))[0].tolist() == [0, 1]
assert kjit.argsort(np.array([5, 4, 3]), begin_bit=1, end_bit=3).tolist() == [2, 0, 1]
# Elements that are not masked are read, and a 64-bit initial value is accepted.
assert kjit.reduce(np.ma.array([1, 2, 3])) == 6
assert kjit.reduce(n, "max", initial=2**40) == 2**40 and kjit.reduce(line, initial=2**40) == 2**40 + 3
assert kjit.scan(n.astype("u8"), "max", initial=2**63 + 1)[0] == 2**63 + 1
