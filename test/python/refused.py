# RUN: %kjit-python %s
"""What algorithms say of arguments that they do not take: in words of the call, not of what is behind it."""
import kjit
import numpy as np

x = np.ones((3, 3))
n = np.arange(9)
line = x[0]


def product(a, b, i, j):
    return a * b


KNOWN = "accumulator, device, plan, stream"
for kind, text, call in (
    (TypeError, 'an expression is a text, "ij,jk->ik", not int', lambda: kjit.einsum(3, x, x)),
    (TypeError, "lists of axes are not taken", lambda: kjit.einsum(x, [0, 1], x, [1, 2])),
    (TypeError, "einsum: argument 3 is None: an array or a number is expected", lambda: kjit.einsum("ij,jk->ik", x, None)),
    (TypeError, "matmul: argument 1 is None", lambda: kjit.matmul(None, x)),
    (TypeError, "matmul: argument 2 is None", lambda: kjit.matmul(x, None)),
    (TypeError, "reduce: argument 1 is None", lambda: kjit.reduce(None)),
    (TypeError, "random_uniform: x is an array or the shape of a new one, not None", lambda: kjit.random_uniform(None, 1)),
    (TypeError, "update_at: x, places and values are arrays or numbers, not None", lambda: kjit.update_at(None, n, 1)),
    (TypeError, f"no option is called 'flags': {KNOWN}", lambda: kjit.matmul(x, x, flags=3)),
    (TypeError, f"no option is called 'made': {KNOWN}", lambda: kjit.sort(x, made=[])),
    (TypeError, f"no option is called 'together': {KNOWN}", lambda: kjit.reduce(x, together=True)),
    (TypeError, f"no option is called 'axes': {KNOWN}", lambda: kjit.sort(x, axes=(1,))),
    (OverflowError, "chunk is -1: it is from 0 to 2^64 - 1", lambda: kjit.pairs(product, line, line, chunk=-1)),
    (TypeError, "chunk is an integer, not 2.5", lambda: kjit.pairs(product, line, line, chunk=2.5)),
    (OverflowError, "end_bit is 4294967296: it is from 0 to 2^32 - 1", lambda: kjit.argsort(n, end_bit=2**32)),
    (TypeError, "what NumPy calls 'f8' is \"f64\"", lambda: kjit.zeros(3, "f8")),
    (TypeError, "what NumPy calls '<i4' is \"i32\"", lambda: kjit.empty(3, "<i4")),
    (TypeError, "'banana' is no element type: kjit.f32, \"f32\", numpy.float32", lambda: kjit.zeros(3, "banana")),
):
    try:
        call()
    except kind as error:
        assert text in str(error), f"{error}, expected {text}"
    else:
        raise AssertionError(f"not refused: {text}")

# A list is the shape of a new array, as NumPy takes it, and so is an integer of NumPy's.
assert kjit.random_uniform([3, 2], 1).shape == (3, 2) and kjit.random_integers(np.int64(3), 1, 0, 9).shape == (3,)
# What may be left out still may, and bits are looked at by every sort of numbers.
assert kjit.bincount(n, 9, None).sum() == 9 and kjit.sort_segments(n, np.array([0, 4, 9])).shape == (9,)
assert kjit.top_k(n, 2, out=(np.zeros(2, int), None))[0].tolist() == [0, 1]
assert kjit.argsort(np.array([5, 4, 3]), begin_bit=1, end_bit=3).tolist() == [2, 0, 1]
