import numpy as np
from rows import row


def fragments(rows, count, bits, is_transposed=False):
    """Returns the data that each lane gets from `count` matrices of 8 rows with 16 bytes each: four bytes of each
    matrix, from row lane / 4, or a column's pair."""
    rows = rows.reshape(count, 8, -1)
    per = 32 // bits
    out = np.zeros((32, count * per), rows.dtype)
    for lane in range(32):
        for m in range(count):
            matrix = rows[m].T if is_transposed else rows[m]
            out[lane, m * per:(m + 1) * per] = matrix[lane // 4, lane % 4 * per:(lane % 4 + 1) * per]
    return out


@row("ldmatrix, 16 bits")
def _(r, rng):
    x = rng.integers(0, 65536, (32, 8)).astype(np.uint16)
    r.arrays_of(x=x)
    for name in ("y", "t"):
        for count in (4, 2, 1):
            r.arrays_of(**{f"{name}{count}": np.zeros((32, 2 * count), np.uint16)})
    r.launch("load16", "1, 32", "y4", "y2", "y1", "t4", "t2", "t1", "x")
    for count in (4, 2, 1):
        r.expect(f"y{count}", fragments(x[:8 * count], count, 16))
        r.expect(f"t{count}", fragments(x[:8 * count], count, 16, True))


@row("ldmatrix, 8 and 32 bits")
def _(r, rng):
    b, f = rng.integers(0, 256, (32, 16)).astype(np.uint8), rng.standard_normal((32, 4)).astype(np.float32)
    r.arrays_of(b=b, f=f, yb=np.zeros((32, 16), np.uint8), yf=np.zeros((32, 4), np.float32))
    r.launch("load8", "1, 32", "yb", "b")
    r.launch("load32", "1, 32", "yf", "f")
    r.expect("yb", fragments(b, 4, 8))
    r.expect("yf", fragments(f, 4, 32))


@row("stmatrix")
def _(r, rng):
    tiles = rng.standard_normal((2, 32, 8)).astype(np.float16)
    plain = np.concatenate([fragments(t, 4, 16) for t in tiles])
    r.arrays_of(x=plain, y=np.zeros((64, 8), np.float16), t=np.zeros((64, 8), np.float16))
    r.launch("store16", "1, 64", "y", "t", "x")
    r.expect("y", tiles.reshape(64, 8))
    r.expect("t", tiles.reshape(2, 4, 8, 8).transpose(0, 1, 3, 2).reshape(64, 8))


@row("ldmatrix and mma")
def _(r, rng):
    a, b = rng.integers(-8, 9, (16, 16)).astype(np.float16), rng.integers(-8, 9, (16, 8)).astype(np.float16)
    r.arrays_of(a=a, b=b, c=np.zeros((16, 8), np.float32))
    r.launch("product", "1, 32", "c", "a", "b")
    r.expect("c", a.astype(np.float32) @ b.astype(np.float32))
