import numpy as np
from rows import row


@row("cp_async")
def _(r, rng):
    x = rng.standard_normal(768).astype(np.float32)
    r.arrays_of(x=x, y=np.zeros(768, np.float32))
    r.launch("by_threads", "3, 64", "y", "x")
    r.expect("y", x.reshape(3, 256)[:, ::-1].reshape(-1))


@row("cp_async in two stages, with a rest")
def _(r, rng):
    n = 64 * 3 + 18
    x = rng.integers(-100, 100, n).astype(np.float16)
    r.arrays_of(x=x, y=np.full((4, 32), 9, np.float32))
    r.launch("two_stages", "1, 32", "y", "x")
    padded = np.zeros(256, np.float32)
    padded[:n] = x
    tiles = padded.reshape(4, 64)
    r.expect("y", tiles[:, :31:-1] + tiles[:, :32])


@row("cp_async that arrives at a barrier")
def _(r, rng):
    x = rng.integers(0, 256, 512).astype(np.uint8)
    r.arrays_of(x=x, y=np.zeros(512, np.uint8))
    r.launch("bytes_of", "1, 32", "y", "x")
    r.expect("y", x[::-1])


@row("bulk copies in and out")
def _(r, rng):
    x = rng.integers(-1000, 1000, (5, 128)).astype(np.int32)
    r.arrays_of(x=x, y=np.zeros((5, 128), np.int32))
    r.launch("bulk", "1, 64", "y", "x")
    k = np.arange(5)[:, None]
    r.expect("y", np.concatenate([x[:, :63:-1] + k, x[:, 63::-1] - k], axis=1).astype(np.int32))


@row("bulk copies to another block")
def _(r, rng):
    x = rng.standard_normal(128).astype(np.float32)
    r.arrays_of(x=x, y=np.zeros(128, np.float32))
    r.launch("across", "4, 32", "y", "x")
    r.expect("y", x.reshape(2, 2, 32)[:, ::-1, ::-1].reshape(-1))


@row("arriving at another block's barrier")
def _(r, rng):
    r.arrays_of(y=np.zeros(64, np.int32))
    r.launch("remote_arrival", "2, 32", "y")
    r.expect("y", np.full(64, 31 * 32 // 2, np.int32))


@row("tensor copies over the edges")
def _(r, rng):
    x = rng.integers(-1000, 1000, (21, 44)).astype(np.float32)
    r.arrays_of(x=x, y=np.full((21, 44), 9, np.float32))
    r.launch("boxes", "1, 32", "y", "x", "21", "44")
    r.expect("y", x * 2 + 1)


@row("tensor copies, swizzled")
def _(r, rng):
    x = rng.integers(0, 65536, (3, 24, 64)).astype(np.uint16)
    r.arrays_of(x=x)
    for swizzle in (32, 64, 128):
        width = swizzle // 2
        r.arrays_of(**{f"y{swizzle}": np.zeros(16 * width, np.uint16)})
        r.launch("swizzled", "1, 64", f"y{swizzle}", "x", str(swizzle))
        box = np.zeros((16, width), np.uint16)
        part = x[2, 5:21, 8:8 + width]
        box[:, :part.shape[1]] = part
        linear = np.arange(16 * width) * 2
        lies = np.zeros(16 * width, np.uint16)
        lies[(linear ^ ((linear >> 3) & (swizzle - 16))) // 2] = box.reshape(-1)
        r.expect(f"y{swizzle}", lies)
