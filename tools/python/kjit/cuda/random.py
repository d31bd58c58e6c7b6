"""xoroshiro128+, a random generator with one state for each thread, and random numbers made from
it."""

import math

import numpy

from .. import _functions, dtypes
from . import arrays, types

u64, f32 = dtypes.SCALARS["u64"], dtypes.SCALARS["f32"]

# A state consists of two 64-bit integers.
xoroshiro128p_dtype = numpy.dtype([("s0", numpy.uint64), ("s1", numpy.uint64)], align=True)
xoroshiro128p_type = types.Record(xoroshiro128p_dtype)
_DOUBLE_STEP = 1.0 / (1 << 53)
_BELOW_ONE = numpy.float32(1 - 2**-24)
_FIRST = numpy.uint64(0x9E3779B97F4A7C15)
_MIX_1 = numpy.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = numpy.uint64(0x94D049BB133111EB)
_JUMP_1 = numpy.uint64(0xBEAC0467EBA5FACB)
_JUMP_2 = numpy.uint64(0xD86B048B86AA9922)
_TWO_PI = 2 * math.pi
_TWO_PI_FLOAT32 = numpy.float32(_TWO_PI)


class _Kernel(_functions.Kernel):
    is_typed = True


def _rotated(x, k):
    return (x << u64(k)) | (x >> u64(64 - k))


def xoroshiro128p_next(states, index):
    """Advances the state states[index] and returns 64 random bits."""
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    result = s0 + s1
    mixed = s1 ^ s0
    states[index]["s0"] = _rotated(s0, 55) ^ mixed ^ (mixed << u64(14))
    states[index]["s1"] = _rotated(mixed, 36)
    return result


def _jumped(states, index):
    """Advances a state by 2^64 steps."""
    s0 = u64(0)
    s1 = u64(0)
    for part in range(2):
        bits = _JUMP_1 if part == 0 else _JUMP_2
        for b in range(64):
            if (bits >> u64(b)) & u64(1) != u64(0):
                s0 ^= states[index]["s0"]
                s1 ^= states[index]["s1"]
            xoroshiro128p_next(states, index)
    states[index]["s0"] = s0
    states[index]["s1"] = s1
    return s0


def _init(states, seed, start, count):
    z = seed + _FIRST
    z = (z ^ (z >> u64(30))) * _MIX_1
    z = (z ^ (z >> u64(27))) * _MIX_2
    z = z ^ (z >> u64(31))
    states[0]["s0"] = z
    states[0]["s1"] = z
    for i in range(start):
        _jumped(states, 0)
    for i in range(1, count):
        states[i]["s0"] = states[i - 1]["s0"]
        states[i]["s1"] = states[i - 1]["s1"]
        _jumped(states, i)


def xoroshiro128p_uniform_float32(states, index):
    """Returns a float32 in [0, 1) from states[index]. It is the number of
    xoroshiro128p_uniform_float64, rounded; if rounding gives 1, the largest float32 below 1 is
    returned."""
    return min(f32(xoroshiro128p_uniform_float64(states, index)), _BELOW_ONE)


def xoroshiro128p_uniform_float64(states, index):
    """Returns a float64 in [0, 1) from states[index]."""
    return (xoroshiro128p_next(states, index) >> u64(11)) * _DOUBLE_STEP


# The Box-Muller method computes a normal number from two uniform numbers. Numba rounds the uniform numbers to float32,
# even for a float64 result. These functions do the same, so they return the same numbers as Numba.
def xoroshiro128p_normal_float32(states, index):
    """Returns a normally distributed float32 with mean 0 and standard deviation 1 from
    states[index]."""
    u1 = f32(xoroshiro128p_uniform_float64(states, index))
    u2 = f32(xoroshiro128p_uniform_float64(states, index))
    return math.sqrt(f32(-2) * math.log(u1)) * math.cos(_TWO_PI_FLOAT32 * u2)


def xoroshiro128p_normal_float64(states, index):
    """Returns a normally distributed float64 with mean 0 and standard deviation 1 from
    states[index]."""
    u1 = f32(xoroshiro128p_uniform_float64(states, index))
    u2 = f32(xoroshiro128p_uniform_float64(states, index))
    return math.sqrt(-2.0 * math.log(u1)) * math.cos(_TWO_PI * u2)


_init_kernel = None


def init_xoroshiro128p_states(states, seed, subsequence_start=0, stream=0):
    """Initializes an array's states from create_xoroshiro128p_states. Each state is 2^64 steps
    ahead of the previous one."""
    global _init_kernel
    if _init_kernel is None:
        _init_kernel = _Kernel(_init, device="cpu")
    host = numpy.zeros(states.shape, xoroshiro128p_dtype)
    if len(host):
        _init_kernel[1, 1](host, numpy.uint64(seed % 2**64), int(subsequence_start), len(host))
        states.copy_to_device(host)


def create_xoroshiro128p_states(n, seed, subsequence_start=0, stream=0):
    """Returns a device array with the states of n random generators, whose sequences do not
    overlap. seed: an integer; subsequence_start: the number of states to skip first."""
    states = arrays.device_array(n, xoroshiro128p_dtype)
    init_xoroshiro128p_states(states, seed, subsequence_start)
    return states
