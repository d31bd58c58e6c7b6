"""Helpers for several checks of third-party programs."""
import importlib.util
import sys
import types

import numpy as np


def bare(package):
    """Makes a package importable without running its __init__.py, which would import modules that the checked modules
    do not need."""
    spec = importlib.util.find_spec(package)
    module = types.ModuleType(package)
    module.__path__ = list(spec.submodule_search_locations)
    module.__spec__ = spec
    sys.modules[package] = module
    parent, _, last = package.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
    return module


def random(seed=1):
    return np.random.RandomState(seed)


def plane(shape=(23, 31), dtype="f8", seed=1):
    return random(seed).uniform(0, 100, shape).astype(dtype)


def launched(kernel, shape, *arguments):
    """Launches a kernel over a grid of blocks with 16 threads in each axis. Returns its arguments, which the kernel has
    changed."""
    threads = (16,) * len(shape)
    blocks = tuple((n + 15) // 16 for n in shape)
    kernel[blocks, threads](*arguments)
    return [a for a in arguments if isinstance(a, np.ndarray)]
