# RUN: env KJIT_CPU_DEVICES=2 %kjit-python %s cpu:1
# RUN: %if cuda %{ %kjit-python %s cuda:0 %}
"""Elements of arrays outside the host's memory: x[i] is a recorded copy, which is made when it is needed or before the element is
overwritten. Conversions to Python numbers read the element itself, also while another thread writes to the array."""
import random
import sys
import threading

import numpy as np
import seeds

import kjit
import kjit.numpy as knp

place = sys.argv[1]
COUNT = 300

# Every element type, converted and copied.
for name in ("bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64", "complex128"):
    want = seeds.fresh_generator().integers(0, 2 if name == "bool" else 100, 7).astype(name)
    x = knp.asarray(want, device=place)
    for i in range(-7, 7):
        number = x[i].item()
        assert number == want[i].item() and type(number) is type(want[i].item()), (name, i, number)
        assert x[i].to_host() == want[i] and x[i].dtype == x.dtype and x[i].shape == () and x[i].device == place

# Operations that are recorded, and operations that are not.
x = knp.asarray(np.arange(5.0), device=place)
y = x[1]
assert "a copy of one element" in kjit.explain(y), kjit.explain(y)
z = y * 10 + x[2]  # reads the array itself
x[1] = 7
assert "a copy of one element" not in kjit.explain(y) and float(y) == 1 and float(z) == 12 and float(x[1]) == 7
assert "from an expression" in kjit.explain(y) and x.to_host().tolist() == [0, 7, 2, 3, 4]
try:
    y[...] = 3
    raise SystemExit("a copy of an element was written")
except TypeError as error:
    assert "copy of one element" in str(error), error
y += 1
assert float(y) == 2 and float(x[1]) == 7
last = x[4]
del x  # the copy keeps the memory
assert float(last) == 4

# Some threads read elements while another thread overwrites them.
x = knp.asarray(np.arange(float(COUNT)), device=place)
elements = [x[i] for i in range(COUNT)]
wrong = []


def read():
    for i in random.sample(range(COUNT), COUNT):
        if float(elements[i]) != i:
            wrong.append(i)


def write():
    for _ in range(10):
        x[:] = x + 1.0


threads = [threading.Thread(target=read) for _ in range(3)] + [threading.Thread(target=write)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong[:3]
assert x.to_host().tolist() == [i + 10.0 for i in range(COUNT)]
print("recorded_elements: good")
