# REQUIRES: greenlet
# RUN: env KJIT_DEVICE=cpu KJIT_CPU_DEVICES=2 %kjit-python %s
# RUN: env KJIT_DEVICE=python KJIT_CPU_DEVICES=2 %kjit-python %s
"""Arguments on another device than the launch, in every form, are refused with the name of the parameter: on the CPU target and in
the simulator. With peer access each of them is taken."""
import numpy as np

import kjit
from kjit import cuda

RECORD = np.dtype([("a", "i4"), ("b", "f8")], align=True)


@cuda.jit
def fill(r):
    i = cuda.grid(1)
    if i < r.size:
        r[i] = i + 1


@cuda.jit
def of_tuple(given):
    given[0][1][0] = 7


@cuda.jit
def of_record(p):
    p.a = 3


with cuda.gpus[1]:
    r, records, stream = cuda.to_device(np.zeros(4)), cuda.to_device(np.zeros(2, RECORD)), cuda.stream()
LAUNCHES = [
    ("`r`", lambda: fill[1, 4](r), lambda: r[3] == 4),
    ("`r`", lambda: fill[1, 4](r=r), lambda: r[3] == 4),
    ("`r`", lambda: fill[1, 4](cuda.InOut(r)), lambda: r[3] == 4),
    ("`r`", lambda: fill.forall(4)(r[1:]), lambda: r[3] == 3),
    ("`given[0][1]`", lambda: of_tuple[1, 1](((1, r),)), lambda: r[0] == 7),
    ("`p", lambda: of_record[1, 1](records[1]), lambda: records[1]["a"] == 3),
]
host = np.zeros(4)
for is_on in (False, True):
    if is_on:
        cuda.gpus[0].get_primary_context().enable_peer_access(1)
    for name, launch, has_run in LAUNCHES:
        r[:] = 0.0
        try:
            launch()
            assert is_on and has_run(), name
        except kjit.ArgumentError as error:
            assert not is_on and f"parameter {name}" in str(error) and "the launch is on cpu:0, but the array is on cpu:1" in str(error), error
    try:
        fill[1, 4, stream](host)
        raise AssertionError("a stream of another device was taken")
    except kjit.ArgumentError as error:
        assert "its stream is on cpu:1" in str(error), error
    with cuda.gpus[1]:
        fill[1, 4, stream](host)
    assert host[3] == 4
print("devices_of_arguments: good")
