# REQUIRES: numba
# RUN: %numba-python %s
"""Kernels with forms that programs of numba.cuda have. The CPU target of kjit.cuda gives the same arrays as Numba's simulator, which
runs this file in another process."""
import json
import os
import subprocess
import sys

import numpy as np

OF_NUMBA = "--numba" in sys.argv
os.environ.setdefault("KJIT_DEVICE", "cpu")
if OF_NUMBA:
    from numba import cuda, float32, float64, int32
else:
    from kjit import cuda, float32, float64, int32

SHAPE, KIND = (2, 2), np.float32
NAN = float("nan")
Z, HALF = 1 + 2j, np.float32(0.5)
FORMS = []


def form(function=None, *, shared_bytes=0):
    """Adds a kernel of r, which 4 threads run."""
    if function is None:
        return lambda function: form(function, shared_bytes=shared_bytes)
    FORMS.append((function.__name__, cuda.jit(function), shared_bytes))
    return function


@cuda.jit(device=True)
def put(a, v):
    a[0] = v
    return a[0] + a.size


# ---- arrays of the block and of the thread ----


@form
def two_at_once(r):
    a, b = cuda.local.array(2, float32), cuda.local.array((2, 3), float64)
    a[0] = 1
    b[1, 2] = 2.5
    r[cuda.grid(1)] = a[0] + b[1, 2] + b.shape[1]


@form
def two_names(r):
    a = b = cuda.local.array(2, float32)
    a[0] = 4
    r[cuda.grid(1)] = b[0]


@form
def argument(r):
    i = cuda.grid(1)
    r[i] = put(cuda.local.array(2, float32), i) + put(cuda.local.array(3, int32), 2)


@form
def item_of_tuple(r):
    t = (cuda.local.array(2, float32), 3)
    t[0][1] = 5
    r[cuda.grid(1)] = t[0][1] + t[1]


@form
def in_loop_and_branch(r):
    i = cuda.grid(1)
    for j in range(3):
        a = cuda.local.array(2, float32)
        r[i] += put(a, j)
    if i > 1:
        r[i] += put(cuda.local.array(5, float32), i)


@form(shared_bytes=32)
def parts_of_dynamic(r):
    i = cuda.grid(1)
    a = cuda.shared.array(0, dtype=int32)[:4]
    b = cuda.shared.array(0, dtype=int32)[4:]
    a[i] = i
    b[i] = 10 * i
    cuda.syncthreads()
    r[i] = a[3 - i] + b[3 - i] + b.size


@form
def element_of_new(r):
    i = cuda.grid(1)
    s = cuda.shared.array(SHAPE, KIND).T
    s[i % 2, i // 2] = i
    cuda.syncthreads()
    r[i] = s[i // 2, i % 2] + cuda.shared.array(7, int32).size


# ---- constants and calls ----


@form
def parts_of_constants(r):
    r[cuda.grid(1)] = Z.real + 10 * Z.imag + HALF.real + (2.5).real + (1j).imag + HALF.imag


@form
def items_of_tuple(r):
    i = cuda.grid(1)
    t = (1, 2.5, i)
    r[i] = max(*t) + min(0, *t) + max(*t, 2)


@form
def order_of_items(r):
    t, u = (NAN, 2.0), (5.0, NAN)
    r[cuda.grid(1)] = max(1.0, *t) + 10 * min(3.0, *t, *u) + 100 * max(*u, *t)


def results():
    values = {}
    for name, kernel, shared_bytes in FORMS:
        r = np.zeros(4)
        kernel[1, 4, 0, shared_bytes](r)
        values[name] = r.tolist()
    return values


if OF_NUMBA:
    print(json.dumps(results()))
else:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run([sys.executable, __file__, "--numba"], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    wanted, got = json.loads(done.stdout), results()
    assert len(FORMS) == len(got) and got == wanted, {name: (got[name], wanted[name]) for name in got if got[name] != wanted[name]}
