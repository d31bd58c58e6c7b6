import numpy as np

from rows import row


@row("26 match_all; 28 activemask in a divergent branch; 29 lanemask_lt")
def _(r, rng):
    r.arrays_of(same=np.zeros(10, np.uint32), different=np.ones(10, np.uint32), here=np.zeros(32, np.uint32), below=np.zeros(32, np.uint32))
    r.launch("all_of_ten", "1, 32", "same", "different")
    r.launch("who_is_here", "1, 32", "here")
    r.launch("lanes_below", "1, 32", "below")
    r.expect("same", np.full(10, 0b1111111111, np.uint32))
    r.expect("different", np.zeros(10, np.uint32))
    r.expect("here", np.array([0x55555555, 0xAAAAAAAA] * 16, np.uint32))
    r.expect("below", (2 ** np.arange(32, dtype=np.uint64) - 1).astype(np.uint32))


@row("49 inc and dec of u32 and u64")
def _(r, rng):
    n = 400
    for dtype in (np.uint32, np.uint64):
        k = np.dtype(dtype).name
        old, limit = rng.integers(0, 9, n, dtype), rng.integers(0, 9, n, dtype)
        r.arrays_of(**{"up" + k: old, "down" + k: old.copy(), "limit" + k: limit})
        r.launch("wrap", "2, 128", "up" + k, "down" + k, "limit" + k)
        r.expect("up" + k, np.where(old >= limit, 0, old + dtype(1)).astype(dtype))
        r.expect("down" + k, np.where((old == 0) | (old > limit), limit, old - dtype(1)).astype(dtype))


@row("56 parts of complex numbers")
def _(r, rng):
    for dtype in (np.complex64, np.complex128):
        k = np.dtype(dtype).name
        z = (np.arange(32) + 1j * np.arange(32)).astype(dtype)
        r.arrays_of(**{"re" + k: z, "im" + k: z.copy()})
        r.launch("parts", "1, 32", "re" + k, "im" + k)
        r.expect("re" + k, z + dtype(1))
        r.expect("im" + k, z + dtype(1j))


@row("16 f16 operations; 68 f16 to an integer truncates")
def _(r, rng):
    r.arrays_of(h=np.zeros(6, np.float16), n=np.zeros(1, np.int32), x=np.array([3, 4], np.float16))
    r.launch("halves", "1, 1", "h", "n", "x")
    r.expect("h", np.array([7, -1, 12, 10, 4, 3], np.float16))
    r.expect("n", np.array([12], np.int32))


@row("90 vectors from mixed parts")
def _(r, rng):
    r.arrays_of(v=np.zeros((7, 4)))
    r.launch("parts_of_vectors", "1, 1", "v")
    r.expect("v", np.array([[1, 3, 5, 7]] * 6 + [[10, 11, 0, 0]], float))


@row("106 cache hints on every type")
def _(r, rng):
    n = 300
    for dtype in (np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32, np.float64):
        k = np.dtype(dtype).name
        x = rng.integers(0, 2 if dtype is np.bool_ else 100, n).astype(dtype)
        r.arrays_of(**{"x" + k: x, "copies" + k: np.zeros((9, n), dtype)})
        r.launch("hints", "2, 128", "copies" + k, "x" + k)
        r.expect("copies" + k, np.stack([x] * 9))
