# RUN: %kjit-python %s %examples/python/arrays
"""Runs the programs in examples/python/arrays, which take the array namespace as an argument, with kjit.numpy and with
NumPy."""
import glob
import importlib
import os
import sys

os.environ.setdefault("KJIT_DEVICE", "cpu")
import kjit.numpy as knp  # noqa: E402

sys.path.insert(0, sys.argv[1])
from both import compare  # noqa: E402

names = sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(sys.argv[1], "*.py")))
names.remove("both")
assert len(names) == 12, names
for name in names:
    program = importlib.import_module(name)
    compare(program.run, name + ": {}")
with knp.fuse(False):
    for name in ("black_scholes", "diffusion"):
        compare(importlib.import_module(name).run, name + ", not fused: {}")
