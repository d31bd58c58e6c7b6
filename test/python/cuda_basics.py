# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""kjit.cuda, on random data, against NumPy and plain Python."""
import numpy as np
import seeds

from kjit import cuda
from kjit.cuda.random import (create_xoroshiro128p_states, xoroshiro128p_next, xoroshiro128p_normal_float32, xoroshiro128p_normal_float64,
                              xoroshiro128p_uniform_float64)

rng = seeds.fresh_generator()


def raises(kind, text, function, *args, **keywords):
    try:
        function(*args, **keywords)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"not refused: {text}")


# ---- signatures, device functions, known values as arguments ----


@cuda.jit(device=True)
def tile_sum(x, count, dtype, operation, start):
    tile = cuda.shared.array(count, dtype)
    t = cuda.threadIdx.x
    tile[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    r = start
    for i in range(count):
        r = operation(r, tile[i])
    return r


def add(a, b):
    return a + b


def most(a, b):
    return max(a, b)


@cuda.jit("void(float32[:], float64[:, :])")
def both(x, r):
    a = tile_sum(x, 32, cuda.float32, add, 0.0)
    b = tile_sum(x, 32, cuda.float64, most, -1.0)
    r[0, cuda.grid(1)] = a
    r[1, cuda.grid(1)] = b


x, r = rng.random(96, dtype=np.float32), np.zeros((2, 96))
both[3, 32](x, r)
rows = x.reshape(3, 32)
np.testing.assert_allclose(r[0], np.repeat(rows.astype(float).sum(1), 32), rtol=1e-6)
np.testing.assert_array_equal(r[1], np.repeat(rows.max(1), 32))
raises(TypeError, "No matching definition", both[1, 1], x.astype(np.float64), r)
raises(ValueError, "Kernel launch configuration", both, x, r)
raises(TypeError, "void return type", cuda.jit("int32(int32[:])"), lambda a: 0)


# ---- Numba's types: int64 and float64 literals, wrapping indices, `/` of integers ----


@cuda.jit
def numbers(a, r):
    r[0] = a[0] * a[0]
    r[1] = a[0] / 4
    r[2] = a[-1]
    k = -2
    r[3] = a[k]


a, r = rng.integers(2**20, 2**30, 5).astype(np.int32), np.zeros(4)
numbers[1, 1](a, r)
np.testing.assert_array_equal(r, [float(int(a[0]) ** 2), a[0] / 4, a[-1], a[-2]])

# ---- atomics, warps, constant arrays ----
TABLE = rng.integers(0, 100, 16)


@cuda.jit
def counted(x, bins, best, lanes):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    cuda.atomic.add(bins, x[i] % 16, table[x[i] % 16])
    cuda.atomic.max(best, (0, 1), x[i])
    v = x[i]
    for step in (16, 8, 4, 2, 1):
        v += cuda.shfl_xor_sync(0xFFFFFFFF, v, step)
    lanes[i] = v


x = rng.integers(0, 1000, 128).astype(np.int64)
bins, best, lanes = np.zeros(16, np.int64), np.zeros((1, 2), np.int64), np.zeros(128, np.int64)
counted[4, 32](x, bins, best, lanes)
np.testing.assert_array_equal(bins, np.bincount(x % 16, minlength=16) * TABLE)
assert best.tolist() == [[0, x.max()]]
np.testing.assert_array_equal(lanes, np.repeat(x.reshape(4, 32).sum(1), 32))

# ---- arrays of the device ----
h = rng.random((5, 7))
d = cuda.to_device(h)
assert d.strides == h.strides and d.is_c_contiguous() and d.T.is_f_contiguous()
np.testing.assert_array_equal(d[1:4, ::2].copy_to_host(), h[1:4, ::2])
d[2] = 3.0
h[2] = 3.0
assert d[2, 1] == 3.0
np.testing.assert_array_equal(d.copy_to_host(), h)
f = cuda.to_device(np.asfortranarray(h))
assert f.is_f_contiguous() and not f.is_c_contiguous()
np.testing.assert_array_equal(f.copy_to_host(), h)
np.testing.assert_array_equal(d.reshape(7, 5).copy_to_host(), h.reshape(7, 5))
raises(ValueError, "incompatible shape", d.copy_to_device, np.zeros((7, 5)))
raises(IndexError, "out of bounds", lambda: d[5])

# ---- reduce, vectorize, guvectorize ----
x = rng.integers(1, 9, 1000)
assert cuda.reduce(lambda a, b: a + b)(x, init=5) == x.sum() + 5
assert cuda.Reduce(lambda a, b: max(a, b))(cuda.to_device(x)) == x.max()


@cuda.vectorize(["float32(float32, float32)", "float64(float64, float64)"], target="cuda")
def hypotenuse(a, b):
    return (a * a + b * b) ** 0.5


p, q = rng.random((4, 1), dtype=np.float32), rng.random(6, dtype=np.float32)
made = hypotenuse(p, q)
assert made.dtype == np.float32 and made.shape == (4, 6)
np.testing.assert_allclose(made, np.hypot(p, q), rtol=1e-6)
np.testing.assert_allclose(hypotenuse(cuda.to_device(p), q.astype(float)).copy_to_host(), np.hypot(p, q), rtol=1e-6)
raises(TypeError, "no matching signature", hypotenuse, p * 1j, q)


@cuda.guvectorize([(cuda.float64[:, :], cuda.float64[:], cuda.float64[:])], "(m,n),(n)->(m)")
def rows_times(m, v, r):
    for i in range(m.shape[0]):
        r[i] = 0
        for j in range(m.shape[1]):
            r[i] += m[i, j] * v[j]


m, v = rng.random((3, 4, 5)), rng.random(5)
np.testing.assert_allclose(rows_times(m, v), m @ v)
raises(ValueError, "mismatch in its core dimension 0", rows_times, m, rng.random(4))

# ---- random states, against the generator in plain Python ----
MASK = 2**64 - 1


def rotated(x, k):
    return (x << k | x >> 64 - k) & MASK


def step(s):
    result = (s[0] + s[1]) & MASK
    t = s[1] ^ s[0]
    return result, (rotated(s[0], 55) ^ t ^ (t << 14) & MASK, rotated(t, 36))


def jumped(s):
    found = [0, 0]
    for jump in (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922):
        for b in range(64):
            if jump >> b & 1:
                found = [found[0] ^ s[0], found[1] ^ s[1]]
            s = step(s)[1]
    return tuple(found)


seed = int(rng.integers(2**62))
z = (seed + 0x9E3779B97F4A7C15) & MASK
z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
z ^= z >> 31
state, bits, expected = jumped((z, z)), np.zeros((4, 3), np.uint64), []


@cuda.jit
def draw(states, bits, uniform, normal):
    i = cuda.grid(1)
    for j in range(bits.shape[1]):
        bits[i, j] = xoroshiro128p_next(states, i)
    for j in range(uniform.shape[1]):
        uniform[i, j] = xoroshiro128p_uniform_float64(states, i)
        normal[i, j] = xoroshiro128p_normal_float64(states, i)


for _ in range(4):
    own, drawn = state, []
    for _ in range(3):
        value, own = step(own)
        drawn.append(value)
    expected.append(drawn)
    state = jumped(state)
uniform, normal = np.zeros((4, 2000)), np.zeros((4, 2000))
draw[1, 4](create_xoroshiro128p_states(4, seed, subsequence_start=1), bits, uniform, normal)
assert bits.tolist() == expected
assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.03 and len(np.unique(uniform)) == 8000
assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1 and np.isfinite(normal).all()


@cuda.jit
def draw_normal(states, double, single, uniform):
    i = cuda.grid(1)
    for j in range(double.shape[1]):
        double[i, j] = xoroshiro128p_normal_float64(states, i)
        single[i, j] = xoroshiro128p_normal_float32(states, i)
    for j in range(uniform.shape[1]):
        uniform[i, j] = xoroshiro128p_uniform_float64(states, i)


# The Box-Muller transform with 32-bit numbers for both types, as in Numba.
double, single, none = np.zeros((4, 50)), np.zeros((4, 50)), np.zeros((4, 0))
states = create_xoroshiro128p_states(4, seed)
draw_normal[1, 4](states, double, single, none)
uniform = np.zeros((4, 200))
draw_normal[1, 4](create_xoroshiro128p_states(4, seed), none, none, uniform)
u = uniform.reshape(4, 50, 2, 2).astype(np.float32)
log, angle = np.log(u[:, :, :, 0]), u[:, :, :, 1]
assert np.allclose(double, np.sqrt(-2.0 * log[:, :, 0]) * np.cos(2 * np.pi * angle[:, :, 0].astype(np.float64)), rtol=1e-6, atol=1e-9)
assert np.allclose(single, np.sqrt(-2 * log[:, :, 1]) * np.cos(np.float32(2 * np.pi) * angle[:, :, 1]), rtol=1e-5, atol=1e-6)

# ---- streams, events, PTX ----
stream, begin, end = cuda.stream(), cuda.event(), cuda.event()
begin.record(stream)
numbers[1, 1, stream](a, r)
end.record(stream)
stream.synchronize()
assert cuda.event_elapsed_time(begin, end) >= 0
ptx, result = cuda.compile_ptx(lambda x: None, (cuda.float32[:],))
assert ".entry" in ptx and result is cuda.void
assert ".entry" in both.inspect_asm(both.signatures[0])

# ---- what is out of scope ----
raises(RuntimeError, "a.cu not found", cuda.jit, lambda x: None, link=["a.cu"])
raises(NotImplementedError, "nrt=True", cuda.CUSource, "int f();", nrt=True)
raises(ValueError, "Unrecognized options", cuda.jit, lambda x: None, nonexistent=True)
raises(AttributeError, "no attribute", getattr, cuda, "nonexistent")
