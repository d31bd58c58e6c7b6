# RUN: %kjit-python %s
"""Passes Python objects of every kind as every argument. Each call returns a result or raises an exception with a
message."""
import array
import collections
import ctypes
import datetime
import decimal
import enum
import fractions
import gc
import mmap
import os
import sys
import threading
import types
import warnings
import weakref

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import numpy as np  # noqa: E402

warnings.simplefilter("ignore")


@kjit.jit
def fill(r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = x


@kjit.jit
def copy(r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i]


@kjit.func
def add(a, b):
    return a + b


class Own(Exception):
    """Exceptions that the objects themselves raise pass through."""


class Index(int):
    def __index__(self):
        raise Own


class Float(float):
    def __float__(self):
        raise Own


class NoAttributes:
    def __getattr__(self, name):
        raise Own(name)


class NoCapsule:
    def __dlpack__(self):
        raise Own

    def __dlpack_device__(self):
        return 1, 0


class Launching:
    def __dlpack_device__(self):
        fill(r, 1.0)
        gc.collect()
        return 1, 0

    def __dlpack__(self, **options):
        fill[1, 8](r, 2.0)
        return np.ones(8).__dlpack__()


class Pretending:
    __class__ = np.ndarray


class Callable:
    def __call__(self):
        pass

    def __dlpack_device__(self):
        return self


class NoNames(type):
    def __getattribute__(self, name):
        raise Own(name)


class Nameless(metaclass=NoNames):
    pass


class Structure(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("p", ctypes.c_void_p)]


r, x = np.zeros(8), np.ones(8)
released, closed = memoryview(bytearray(8)), mmap.mmap(-1, 64)
released.release()
closed.close()
deep = ()
for _ in range(5000):
    deep = (deep,)
Named = collections.namedtuple("Named", "a b")
things = [
    Index(3), Float(2), 1j, 2**64, -(2**70), 10**400, 1e400, float("nan"), True, "text", b"abcdefgh", bytearray(8), None, ..., NotImplemented, NoAttributes(), NoCapsule(), Launching(), Pretending(),
    Callable(), Nameless(), Nameless, released, closed, memoryview(bytearray(64)).cast("d"), Structure(), (Structure * 3)(), (ctypes.c_void_p * 3)(), ctypes.c_double(3), ctypes.pointer(ctypes.c_int(3)),
    array.array("d", [1] * 8), np.longdouble(3), np.zeros(1, np.longdouble), np.str_("a"), np.array(["a"]), np.datetime64("2020-01-01"), np.array([object()]), np.void(b"ab"), np.array(3.0), np.bool_(True),
    np.zeros(0), np.zeros((1,) * 8), np.broadcast_to(np.zeros(1), (8,)), np.zeros(16)[::-2], np.zeros(8, ">f8"), np.zeros(65, "u1")[1:].view("f8"), np.ma.array([1.0] * 8, mask=[1] * 8), np.matrix([[1.0]]),
    decimal.Decimal(3), fractions.Fraction(1, 3), datetime.date(2020, 1, 1), [1.0] * 8, {1: 2}, {1}, range(3), iter([]), type, object, int, print, fill, add, fill[1, 8], kjit, kjit.Array, kjit.f32,
    (), deep, tuple(range(3000)), (None,), ((),), (1, (2, (x,))), Named(1, x), lambda: 0, lambda v: v, types.SimpleNamespace(shape=(3,), dtype="f8"), enum.IntEnum("E", "A B").A, kjit.device("cpu"),
    kjit.device("cpu").stream(), kjit.device("cpu").event(), weakref.proxy(add), sys._getframe(), threading.Lock(), kjit.zeros(8, "f64"), kjit.zeros((), "f64"), kjit.zeros(0, "f64")]
calls = [
    lambda t: fill(r, t), lambda t: copy(r, t), lambda t: fill(t, 1), lambda t: fill[1, 8](t, t), lambda t: fill(t), lambda t: fill(r=t, x=1), lambda t: fill(r=r, x=t), lambda t: add(t, t), lambda t: fill[t],
    lambda t: fill[t, t](r, 1), lambda t: fill[1, 8, t](r, 1), lambda t: fill[1, 8, None, t](r, 1), lambda t: kjit.array(t), lambda t: kjit.from_dlpack(t), lambda t: kjit.empty(t), lambda t: kjit.zeros(3, t),
    lambda t: kjit.zeros(3, "f32", t), lambda t: kjit.full(3, t), lambda t: kjit.zeros(4, "f32")[t], lambda t: kjit.zeros(4, "f32").reshape(t), lambda t: kjit.zeros(4, "f32").__setitem__(t, 1),
    lambda t: kjit.zeros(4, "f32").__setitem__(0, t), lambda t: kjit.device(t), lambda t: kjit.jit(t), lambda t: kjit.func(t), lambda t: kjit.jit(lambda r: 0, block=t), lambda t: kjit.jit(lambda r: 0, checks=t),
    lambda t: kjit.jit(lambda r: 0, debug=t), lambda t: fill.inspect(t), lambda t: fill.inspect("ptx", t), lambda t: kjit.synchronize(t), lambda t: kjit.device("cpu").stream().wait(t)]
EXPECTED = (kjit.Error, Own, TypeError, ValueError, OverflowError, IndexError, BufferError, MemoryError, RecursionError, NotImplementedError, AttributeError)
results = refusals = 0
for thing in things:
    for number, call in enumerate(calls):
        try:
            call(thing)
            results += 1
        except EXPECTED as error:
            assert not isinstance(error, AttributeError) or "kjit" not in str(error), (number, error)
            assert str(error) or isinstance(error, (Own, MemoryError, RecursionError)), (number, type(thing), error)
            refusals += 1
        except BaseException as error:
            raise AssertionError(f"call {number} of {type(thing)}: {type(error)} {error}") from error
assert results > 100 and refusals > 1000, (results, refusals)
print(f"hostile: {results} results, {refusals} refusals", file=sys.stderr)
