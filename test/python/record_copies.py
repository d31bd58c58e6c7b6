# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Copies and pickles of arrays of records and dates have NumPy's elements. Operations that these types lack are
rejected by name."""
import copy
import pickle

import numpy as np

import kjit
import kjit.numpy as knp

RECORD = np.dtype([("a", "f4"), ("b", "i8")])
SPREAD = np.dtype({"names": ["a", "b"], "formats": ["u1", "f8"], "offsets": [0, 16], "itemsize": 32})
ARRAYS = [
    np.array([(1, 2), (3, 4), (5, 6)], RECORD),
    np.array([(1, 2.5), (255, -1)], SPREAD),
    np.array([((1, 2, 3),), ((4, 5, 6),)], [("p", "f4", (3,))]),
    np.array([((7,),)], [("outer", [("inner", "i4")])]),
    np.array(["2024-02-29", "NaT"], "M8[D]"),
    np.array([5, -7], "m8[s]"),
    np.zeros((0, 2), RECORD),
    np.arange(6.0).reshape(2, 3),
]
COPIES = {
    "copy": lambda x: x.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "kjit.array": kjit.array,
    "knp.copy": knp.copy,
    "np.copy": np.copy,
    "flatten": lambda x: x.flatten(),
    **{f"pickle {number}": lambda x, number=number: pickle.loads(pickle.dumps(x, number)) for number in range(pickle.HIGHEST_PROTOCOL + 1)},
}


def host(x):
    return x.to_host() if isinstance(x, kjit.Array) else x


def check(name, own, wanted):
    before = own.to_host()
    made = COPIES[name](own)
    found, wanted = host(made), wanted.ravel() if name == "flatten" else wanted
    assert isinstance(made, kjit.Array) or name == "np.copy", (name, type(made))
    assert found.dtype == wanted.dtype and found.shape == wanted.shape and str(found.tolist()) == str(wanted.tolist()), (name, found, wanted)
    if wanted.size and isinstance(made, kjit.Array):  # the copy has its own elements
        made.copy_from(np.zeros(made.shape, wanted.dtype))
    assert str(own.to_host().tolist()) == str(before.tolist()), name


for wanted in ARRAYS:
    own = kjit.array(wanted)
    for name in COPIES:
        check(name, own, wanted)
        check(name, own[::-1], wanted[::-1])
        check(name, own.T, wanted.T)
        check(name, own[1:], wanted[1:])

# Copies of strided arrays that are large enough for several threads.
many = np.zeros((300, 70), RECORD)
many["a"], many["b"] = np.arange(21000).reshape(300, 70), -np.arange(21000).reshape(300, 70)
assert (kjit.array(many)[::3, ::-2].copy().to_host() == many[::3, ::-2]).all()

records = kjit.array(ARRAYS[0])
for operation in (
    lambda: records == records, lambda: records + 1, lambda: -records, lambda: records.astype("f4"), lambda: records.sum(),
    lambda: knp.sort(records), lambda: knp.concat([records, records]), lambda: kjit.array(ARRAYS[4]) == kjit.array(ARRAYS[4]),
):  # fmt: skip
    try:
        operation()
    except knp.PromotionError as error:
        assert "kjit.numpy has no operations" in str(error) and ("record_a_b" in str(error) or "datetime64_D" in str(error)), error
    else:
        raise AssertionError("an operation on records was computed")
