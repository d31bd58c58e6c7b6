"""The older interface of numpy.random: `RandomState`, and functions in the module such as `rand` and `seed`."""

import functools
import threading

from . import _engine
from .random import Generator

_NAMES = ("rand", "randn", "randint", "random_sample", "ranf", "sample", "seed", "get_state", "set_state", "RandomState", "SeedSequence")


class RandomState(Generator):
    """A `Generator` with the older methods, like `numpy.random.RandomState`. Its numbers are those of
    the Generator with the same seed."""

    def rand(self, *shape):
        """Returns uniform numbers from 0 to 1. The arguments are the extents of the result."""
        return self.random(shape or None)

    def randn(self, *shape):
        """Returns standard normal numbers. The arguments are the extents of the result."""
        return self.standard_normal(shape or None)

    def randint(self, low, high=None, size=None, dtype=int):
        """Returns integers from low to high, without high. If high is None, they are from 0 to low."""
        return self.integers(low, high, size, dtype)

    def random_sample(self, size=None):
        """Returns uniform numbers from 0 to 1."""
        return self.random(size)

    ranf = sample = random_sample

    def uniform(self, low=0.0, high=1.0, size=None):
        """Returns uniform numbers between low and high, in either order."""
        if isinstance(low, (int, float)) and isinstance(high, (int, float)):
            low, high = min(low, high), max(low, high)
        return super().uniform(low, high, size)

    def seed(self, seed=None):
        """Restarts the sequence of numbers, like a new RandomState with the seed."""
        self.__init__(seed, self._device)


    def get_state(self, legacy=True):
        """Returns the state, which `set_state` restores. Its form is kjit's own."""
        return self.__getstate__()

    def set_state(self, state):
        """Restores a state that `get_state` has returned. Raises ValueError for other states."""
        if not isinstance(state, tuple) or [type(x) for x in state] != [type(x) for x in self.__getstate__()]:
            raise ValueError("set_state takes a state that get_state() of a kjit.numpy.random generator has returned")
        with self._lock:
            self._seed, _, self._word, self._sequence, self._orders = state


# The generators of the module's functions, by device, and the seed of new generators.
_shared: dict[str, RandomState] = {}
_seed = None
_lock = threading.Lock()


def seed(seed=None):
    """Restarts the sequences of the module's functions on every device. seed: see `default_rng`."""
    global _seed
    with _lock:
        _seed = seed
        _shared.clear()


def _state():
    """Returns the generator of the default device."""
    device = _engine.default_device()
    with _lock:
        if device not in _shared:
            _shared[device] = RandomState(_seed, device)
        return _shared[device]


@functools.cache
def attribute(name):
    """Returns the module's function with the name of a method of RandomState, or None."""
    if name == "SeedSequence":
        import numpy

        return numpy.random.SeedSequence
    if name in ("seed", "RandomState"):
        return globals()[name]
    method = None if name.startswith("_") else getattr(RandomState, name, None)
    if not callable(method):
        return None

    @functools.wraps(method)
    def call(*args, **options):
        return getattr(_state(), name)(*args, **options)

    return call


def names():
    """Returns the names of the module's functions."""
    return sorted({name for name in dir(Generator) if not name.startswith("_")} - {"device", "spawn"} | set(_NAMES))
