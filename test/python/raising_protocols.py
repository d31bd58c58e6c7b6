# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Exceptions that attributes and methods of array and stream protocols raise. KeyboardInterrupt and SystemExit reach the program, an
Exception is named in kjit's exception, and only AttributeError means that the object does not have the attribute."""
import numpy as np

import kjit


@kjit.jit
def double(r, x):
    for i in kjit.grid_range(len(r)):
        r[i] = x[i] * 2


def raising(kind):
    """Returns a property that raises an exception of the kind."""

    def fail(self, *args, **options):
        raise kind("from the program")

    return property(fail), fail


def arrays(kind):
    """Returns objects whose array protocols raise an exception of the kind."""
    attribute, method = raising(kind)
    device = {"__dlpack_device__": lambda self: (1, 0)}
    capsule = {"__dlpack__": lambda self, **options: np.zeros(3).__dlpack__()}
    interface = {"shape": (3,), "typestr": "<f8", "data": (64, False), "version": 3}
    index = type("Extent", (), {"__index__": method})()
    flag = type("Flag", (), {"__bool__": method})()
    return [
        type(name, (), fields)()
        for name, fields in {
            "DlpackAttribute": {"__dlpack__": attribute, **device},
            "DlpackMethod": {"__dlpack__": method, **device},
            "DeviceAttribute": {"__dlpack_device__": attribute, **capsule},
            "DeviceMethod": {"__dlpack_device__": method, **capsule},
            "Interface": {"__cuda_array_interface__": attribute},
            "Extent": {"__cuda_array_interface__": interface | {"shape": (index,)}},
            "Flag": {"__cuda_array_interface__": interface | {"data": (64, flag)}},
            "Attribute": {"__getattr__": method},
        }.items()
    ]


def streams(kind):
    attribute, method = raising(kind)
    fields = {"__cuda_stream__": attribute}, {"__cuda_stream__": method}, {"ptr": attribute}, {"handle": type("Pointer", (), {"value": attribute})()}
    return [type("Stream", (), each)() for each in fields]


def caught(function):
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def launched(x):
    return caught(lambda: double(np.zeros(3), x))


for kind in (KeyboardInterrupt, SystemExit):
    for x in arrays(kind):
        for error in (launched(x), caught(lambda x=x: kjit.array(x)), caught(lambda x=x: kjit.reduce(x))):
            assert type(error) is kind and error.args == ("from the program",), (type(x), repr(error))

for kind in (ZeroDivisionError, RuntimeError, MemoryError):
    for x in arrays(kind):
        error = launched(x)
        is_named = isinstance(error, kjit.ArgumentError) and type(x).__name__ in str(error)
        is_interface = "__cuda_array_interface__: " in str(error)  # says which field of the interface is wrong
        assert is_named and ("from the program" in str(error) or is_interface), (type(x), repr(error))

# An AttributeError is the answer of an object that does not have the protocol.
for x in arrays(AttributeError):
    if type(x).__name__ in ("DlpackAttribute", "DeviceAttribute", "Interface", "Attribute"):
        assert "is neither a number nor an array" in str(launched(x)), type(x)

for kind in (KeyboardInterrupt, SystemExit, ZeroDivisionError):
    for stream in streams(kind):
        error = caught(lambda stream=stream: double[1, 3, stream](np.zeros(3), np.zeros(3)))
        assert type(error) is kind, repr(error)
for stream in streams(AttributeError)[:1]:
    assert "a stream must be" in str(caught(lambda stream=stream: double[1, 3, stream](np.zeros(3), np.zeros(3))))

# The number of bytes of shared memory.
for kind in (KeyboardInterrupt, ZeroDivisionError):
    size = type("Size", (), {"__index__": raising(kind)[1]})()
    assert type(caught(lambda size=size: double[1, 3, None, size](np.zeros(3), np.zeros(3)))) is kind
for size in (-1, "8"):
    error = caught(lambda size=size: double[1, 3, None, size](np.zeros(3), np.zeros(3)))
    assert isinstance(error, kjit.ArgumentError) and "shared memory must be a number of bytes" in str(error), error

# After all exceptions, the other conversions still work.
r = np.zeros(3)
double(r, np.arange(3.0))
assert r.tolist() == [0, 2, 4]
