# RUN: %kjit-python %s
# RUN: env KJIT_CPU_DEVICES=2 KJIT_DEVICE=cpu:1 %kjit-python %s
"""Random programs with expressions of kjit.numpy against NumPy, computed at once, one by one and as fused kernels: aliases, views of views,
updates in place, masks, arrays of indices, out= and where=, arrays without dimensions, bools, operands of other classes, comparisons with
integers that the type does not have.

Results are equal bit for bit, those of floats, too: a fused kernel rounds where the single operations do.

    python3 test/python/random_expressions.py [programs] [steps]     # KJIT_TEST_SEED repeats a run"""
import array
import operator
import os
import random
import sys

os.environ.setdefault("KJIT_DEVICE", "cpu")
os.environ.pop("KJIT_FUSE", None)
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

seed = seeds.seed
ON_CPU = os.environ["KJIT_DEVICE"] == "cpu"


def same(got, expected, what):
    host, expected = got.to_host(), np.asarray(expected)
    assert host.dtype == expected.dtype and host.shape == expected.shape, (seed, what, host.dtype, expected.dtype, host.shape)
    assert np.array_equal(host, expected, equal_nan=expected.dtype.kind == "f"), (seed, what, host, expected)


# ---- random programs ----

INTEGERS, FLOATS = ("i4", "i8", "u1"), ("f4", "f8")
SHAPES = [(60,), (4, 15), (15,), (4, 1), (1,)]
BINARY = {
    "i": [("+", lambda a, b: a + b), ("-", lambda a, b: a - b), ("*", lambda a, b: a * b), ("&", lambda a, b: a & b),
          ("|", lambda a, b: a | b), ("^", lambda a, b: a ^ b)],
    "f": [("+", lambda a, b: a + b), ("-", lambda a, b: a - b), ("*", lambda a, b: a * b)],
}  # fmt: skip
if ON_CPU:  # calls of NumPy's ufuncs
    for operators in BINARY.values():
        operators += [("np.subtract", np.subtract), ("np.multiply", np.multiply), ("np.maximum", np.maximum)]
IN_PLACE = ("__iadd__", "__isub__", "__imul__")


class Like:
    """An object that NumPy can convert to an array."""

    def __init__(self, host):
        self.host = host

    def __array__(self, dtype=None, copy=None):
        return self.host if dtype is None else self.host.astype(dtype)


def unaligned(host):
    return np.frombuffer(b"x" + host.tobytes(), "u1")[1:].view(host.dtype).reshape(host.shape)


# Objects with the elements of a NumPy array, which operators convert.
OTHERS = (
    lambda host: host.astype(host.dtype.newbyteorder(">")), unaligned, Like, memoryview, np.ndarray.tolist,
    lambda host: array.array(host.dtype.char, host.tobytes()) if host.ndim == 1 else tuple(host.tolist()),
)  # fmt: skip
COMPARISONS = {
    operator.lt: "less",
    operator.le: "less_equal",
    operator.eq: "equal",
    operator.ne: "not_equal",
    operator.gt: "greater",
    operator.ge: "greater_equal",
}


class Program:
    """Runs the same statements on NumPy arrays and on kjit arrays. `arrays` contains pairs; some are views of
    others."""

    def __init__(self, number, kind):
        self.choice, self.generator = random.Random(seed + number), np.random.default_rng(seed + number)
        self.kind, self.types = kind, INTEGERS if kind == "i" else FLOATS
        self.arrays, self.lent, self.trace = [], [], [number]
        for shape in SHAPES:
            self.add(*self.fresh(shape))

    def fresh(self, shape):
        dtype = self.choice.choice(self.types)
        host = self.generator.integers(0, 100, shape) if self.kind == "i" else self.generator.random(shape) * 4 - 2
        host = np.asarray(host).astype(dtype)
        return host, knp.asarray(host, copy=True)

    def add(self, host, own):
        self.arrays.append((host, own))
        if len(self.arrays) > 9:
            self.arrays.pop(self.choice.randrange(len(self.arrays) - 1))  # `pick` needs the last array

    def pick(self, test=lambda host: True):
        fitting = [pair for pair in self.arrays if test(pair[0])]
        if not fitting:
            self.add(*self.fresh((60,)))
            fitting = self.arrays[-1:]
        return self.choice.choice(fitting)

    def partner(self, host):
        """Returns an array that broadcasts with another array, or a number."""
        if self.choice.random() < 0.25:
            number = self.choice.randrange(1, 8) if self.kind == "i" else self.choice.choice((0.5, 2.0, 1.25, 3))
            typed = host.dtype.type(number)
            return typed, self.choice.choice((number, typed))  # a Python or NumPy number

        def fits(other):
            try:
                np.broadcast_shapes(host.shape, other.shape)
            except ValueError:
                return False
            return True

        return self.pick(fits)

    def expression(self, depth):
        """A random expression of one to `depth` operations."""
        a, x = self.pick()
        for _ in range(self.choice.randrange(1, depth + 1)):
            b, y = self.partner(a)
            word, operator = self.choice.choice(BINARY[self.kind])
            self.trace.append(word)
            if self.choice.random() < 0.3 and not isinstance(y, (int, float)):
                a, x = operator(b, a), operator(y, x)
            else:
                a, x = operator(a, b), operator(x, y)
            a, x = self.choice.choice((self.keep, self.keep, self.negate, self.compare, self.convert))(a, x)
        return a, x

    def keep(self, a, x):
        return a, x

    def negate(self, a, x):
        return -a, -x

    def compare(self, a, x):
        b, y = self.partner(a)
        return np.where(a > b, a, -a), knp.where(x > y, x, -x)

    def convert(self, a, x):
        dtype = self.choice.choice(self.types)
        return a.astype(dtype), knp.astype(x, getattr(knp, np.dtype(dtype).name))

    # the statements

    def compute(self):
        self.add(*self.expression(5))

    def look(self):
        self.check(self.pick(), "look")

    def update(self):
        a, x = self.pick()
        b, y = self.partner(a)
        if np.broadcast_shapes(a.shape, np.shape(b)) != a.shape or not np.can_cast(np.asarray(b).dtype, a.dtype, "same_kind"):
            return
        word = self.choice.choice(IN_PLACE)
        made_b, made_y = self.choice.choice(((b, y), (b * a[:1].astype(a.dtype), None)))
        if made_y is None:  # a part to which the program holds no reference, and which reads the overwritten elements
            if made_b.dtype != a.dtype or made_b.shape != np.broadcast_shapes(np.shape(b), a.shape[:0] + a[:1].shape):
                return
            if np.broadcast_shapes(a.shape, made_b.shape) != a.shape:
                return
            getattr(a, word)(made_b)
            getattr(x, word)(y * x[:1])
            return
        getattr(a, word)(b)
        getattr(x, word)(y)

    def update_by_itself(self):
        a, x = self.pick()
        number = a.dtype.type(3)
        a += a * number
        x += x * 3

    def view(self):
        a, x = self.pick(lambda host: host.ndim and host.shape[0] > 1)
        which = self.choice.randrange(4)
        key = (slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2))[which]
        self.add(a[key], x[key])

    def transposed(self):
        a, x = self.pick()
        self.add(a.T, x.T)

    def store(self):
        a, x = self.pick(lambda host: host.shape and host.shape[0] > 2)
        which = self.choice.randrange(3)
        if which == 0:
            a[1:], x[1:] = a[:-1] + a[1:], x[:-1] + x[1:]
        elif which == 1:
            a[...], x[...] = a[::-1] - a, x[::-1] - x
        else:
            b, y = self.expression(3)
            if b.dtype.kind == a.dtype.kind and b.shape == a.shape:
                a[...], x[...] = b.astype(a.dtype), y

    def store_where(self):
        a, x = self.pick()
        b, _ = pair = self.partner(a)
        if np.broadcast_shapes(a.shape, np.shape(b)) == a.shape:
            number = 5
            a[np.broadcast_to(a > b, a.shape)] = number
            x[knp.broadcast_to(x > pair[1], x.shape)] = number

    def select(self):
        a, x = self.expression(2)
        b, y = self.partner(a)
        if np.broadcast_shapes(a.shape, np.shape(b)) == a.shape:
            same(x[x > y], a[a > b], [*self.trace, "select"])
            for one, other in zip(knp.nonzero(x > y), np.nonzero(a > b)):
                same(one, other, [*self.trace, "nonzero"])

    def update_where(self):
        a, x = self.pick()
        a[a > 2] += a.dtype.type(3)
        x[x > 2] += 3

    def scan(self):
        a, x = self.expression(3)
        axis = self.choice.randrange(a.ndim)
        if self.kind == "i":
            same(knp.cumulative_sum(x, axis=axis), a.cumsum(axis=axis), [*self.trace, "scan"])

    def reduce(self):
        a, x = self.expression(3)
        axis = self.choice.choice([None, *range(a.ndim)])
        if self.kind == "i":
            total = np.atleast_1d(a.sum(axis=axis)).astype("i8")
            self.add(total, knp.astype(knp.reshape(knp.sum(x, axis=axis), total.shape), knp.int64))
            same(knp.any(x > 3, axis=axis), np.any(a > 3, axis=axis), self.trace)
        same(knp.max(x, axis=axis), a.max(axis=axis), self.trace)

    def whole(self):
        """A whole pair with at least three elements along its first axis, and an array of indices along it."""
        a, x = self.pick(lambda host: host.ndim and host.shape[0] > 2)
        # each index once, because NumPy does not specify the order of equal indices
        places = self.generator.permutation(a.shape[0])[: self.choice.randrange(1, a.shape[0])]
        places = np.where(self.generator.random(places.size) < 0.5, places, places - a.shape[0])
        return a, x, places, self.choice.choice((places, knp.asarray(places), places.tolist()))

    def store_at(self):
        """Assignments and updates through arrays of indices, whose values may read the same memory."""
        a, x, places, own = self.whole()
        number = a.dtype.type(self.choice.randrange(1, 5))
        which = self.choice.randrange(5)
        if which == 0:
            a[places] = a[places[::-1]] + number
            x[own] = x[own][::-1] + number
        elif which == 1:
            a[places] += number
            x[own] += number
        elif which == 2:
            a[places], x[own] = 3, 3
        elif which == 3:
            a[places], x[own] = a[-places.size :] * number, x[-places.size :] * number
        else:
            # a copy, because NumPy writes some elements of a view on the same memory before it has read others
            a[places, ...], x[own, ...] = a[: places.size].copy(), x[: places.size].copy()

    def take_at(self):
        a, x, places, own = self.whole()
        number = self.choice.choice((2, a.dtype.type(2)))
        same((x * number)[own], (a * a.dtype.type(2))[places], [*self.trace, "take"])

    def result_in(self):
        """out= and where=: the result may be an operand, or have another type of the same kind."""
        a, x = self.pick()
        b, y = self.partner(a)
        c, z = self.pick(lambda host: host.shape == a.shape)
        if np.broadcast_shapes(a.shape, np.shape(b)) != a.shape or not np.can_cast(np.result_type(a, b), c.dtype, "same_kind"):
            return
        name = self.choice.choice(("add", "multiply", "maximum"))
        b = np.asarray(b)  # an untyped number has the type of the array, as a typed one
        if self.choice.random() < 0.5:
            getattr(np, name)(a, b, out=c)
            getattr(knp, name)(x, y, out=z)
            return
        mask = self.generator.random(a.shape) < 0.5
        getattr(np, name)(a, b, out=c, where=mask)
        getattr(knp, name)(x, y, out=z, where=knp.asarray(mask))

    def view_of_view(self):
        a, x = self.pick(lambda host: host.ndim and host.shape[0] > 3)
        for _ in range(2):
            key = self.choice.choice((slice(None, None, -1), slice(1, None), slice(None, None, 2), slice(-3, None), (slice(None), None), (..., slice(None, None, -1))))
            a, x = a[key], x[key]
        if self.choice.random() < 0.5:
            a, x = np.squeeze(a), knp.squeeze(x)
        if a.ndim in (1, 2) and a.size:
            self.add(a, x)

    def point(self):
        """Arrays without dimensions, and elements that are scalars in NumPy."""
        a, x = self.pick(lambda host: host.ndim == 1 and host.size > 1)
        b, y = a[-1, ...], x[-1, ...]  # views of the last element
        number, own = np.asarray(a[-1]), x[-1]  # copies
        same(y * y + y, np.asarray(b * b + b), [*self.trace, "point"])
        self.add((a + b).astype(a.dtype), x + y)
        b[...], y[...] = 2, 2
        same(own, number, [*self.trace, "point"])
        refused = False
        try:
            own[...] = 3
        except TypeError:
            refused = True
        assert refused, self.trace

    def truths(self):
        """Arithmetic of bools."""
        a, x = self.pick()
        b, y = self.partner(a)
        p, q, u, v = a > b, a == b, x > y, x == y
        word, operator = self.choice.choice((("&", lambda a, b: a & b), ("|", lambda a, b: a | b), ("^", lambda a, b: a ^ b), ("+", lambda a, b: a + b), ("*", lambda a, b: a * b)))
        same(~operator(u, v), ~operator(p, q), [*self.trace, word])
        typed = a.dtype.type(1)
        same(operator(u, v) * x + u, operator(p, q) * a + p * typed, [*self.trace, word, "bools with numbers"])
        u &= v
        p &= q
        same(u, p, [*self.trace, "an update of bools"])

    def other_operand(self):
        """An operand, an assigned value or an update of a class that is not an array."""
        if not ON_CPU:
            return
        a, x = self.pick()
        b = self.partner(a)[0]
        if not np.ndim(b) or np.broadcast_shapes(a.shape, b.shape) != a.shape:
            return
        other = self.choice.choice(OTHERS)(np.array(b, order="C"))  # a copy, because a and b can share memory
        same_elements = np.asarray(other).astype(np.asarray(other).dtype.newbyteorder("="))
        word, operator = self.choice.choice(BINARY[self.kind])
        trace = [*self.trace, word, type(other).__name__]
        same(operator(x, other), operator(a, same_elements), trace)
        if not isinstance(other, np.ndarray):  # NumPy calls the operators of its own arrays
            same(operator(other, x), operator(same_elements, a), trace)
        same(knp.where(x > 2, other, 0), np.where(a > 2, same_elements, same_elements.dtype.type(0)), trace)
        if np.can_cast(same_elements.dtype, a.dtype, "same_kind"):
            if self.choice.random() < 0.5:
                a[...] = same_elements
                x[...] = other
            else:
                a += same_elements
                x += other

    def out_of_range(self):
        """A comparison with an integer that the array's type may not have, after arithmetic and within an
        expression."""
        if self.kind == "f":
            return
        a, x = self.expression(2)
        limits = np.iinfo(a.dtype)
        number = self.choice.choice((limits.min - 1, limits.max + 1, limits.min, limits.max, -(2**70), 2**70, 2**64, -1, 300))
        compare = self.choice.choice(list(COMPARISONS))
        expected = np.asarray([compare(int(each), number) for each in a.flat], bool).reshape(a.shape)
        same(compare(x, number), expected, [*self.trace, compare.__name__, number])
        same(compare(x, number) & (x > 1), expected & (a > 1), [*self.trace, compare.__name__, number])
        out = knp.ones(a.shape, dtype=knp.bool)
        getattr(knp, COMPARISONS[compare])(x, number, out=out)
        same(out, expected, [*self.trace, compare.__name__, number, "out="])

    def drop(self):
        if len(self.arrays) > len(SHAPES):
            self.arrays.pop(self.choice.randrange(len(self.arrays)))

    def lend(self):
        """NumPy uses the memory for a while, and writes to it."""
        if not ON_CPU or len(self.lent) > 1:
            return
        a, x = self.pick()
        self.lent.append((a, np.asarray(x)))

    def write_lent(self):
        if self.lent:
            a, b = self.lent.pop()
            a[:1], b[:1] = 7, 7

    def check(self, pair, what):
        same(pair[1], pair[0], [*self.trace, what])

    def run(self, steps):
        statements = [self.compute] * 5 + [self.update] * 2 + [
            self.look, self.update_by_itself, self.view, self.transposed, self.store, self.store_where, self.reduce, self.drop,
            self.lend, self.write_lent, self.select, self.update_where, self.scan, self.store_at, self.take_at, self.result_in,
            self.view_of_view, self.point, self.truths, self.other_operand, self.out_of_range,
        ]  # fmt: skip
        with np.errstate(all="ignore"):
            for _ in range(steps):
                statement = self.choice.choice(statements)
                self.trace.append(statement.__name__)
                statement()
        self.choice.shuffle(self.arrays)
        for pair in self.arrays:
            self.check(pair, "end")


def run_programs(count, steps):
    for number in range(count):
        for mode in (False, True, "now") if number % 3 == 0 else (False, True):
            with knp.fuse(mode):
                Program(number, "if"[number % 2]).run(steps)


if __name__ == "__main__":
    run_programs(int(sys.argv[1]) if len(sys.argv) > 1 else 6, int(sys.argv[2]) if len(sys.argv) > 2 else 30)
    print("seed", seed)
