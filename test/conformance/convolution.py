import numpy as np
from rows import row


@row("convolution with the filter in a constant")
def _(r, rng):
    taps = np.array([0.0625, 0.25, 0.375, 0.25, 0.0625])
    for dtype in (np.float32, np.float64):
        k = np.dtype(dtype).name
        x = rng.integers(-100, 100, 1003).astype(dtype)
        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros(1003, dtype)})
        r.launch("conv1d", "", f"o{k}", f"x{k}")
        r.expect(f"o{k}", np.convolve(x.astype(np.float64), taps, "same"))
    img = rng.integers(0, 256, (37, 53)).astype(np.uint8)
    r.arrays_of(img=img, edges=np.zeros_like(img))
    r.launch("sobel", "", "edges", "img")
    padded = np.pad(img.astype(np.int64), 1, mode="edge")
    g = sum(w * padded[dy:dy + 37, dx:dx + 53] for dy, line in enumerate([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) for dx, w in enumerate(line))
    r.expect("edges", np.minimum(abs(g), 255))


@row("convolution with a halo in shared memory")
def _(r, rng):
    img = rng.integers(-50, 50, (11, 150)).astype(np.float32)
    for radius, block in ((1, 32), (4, 64), (7, 40)):
        taps = rng.integers(-5, 6, 2 * radius + 1).astype(np.float32)
        r.arrays_of(**{f"t{radius}": taps, f"i{radius}": img, f"o{radius}": np.full_like(img, np.nan)})
        r.launch("conv_rows", f"{-(-150 // block)}x11, {block}x1", f"o{radius}", f"i{radius}", f"t{radius}", radius, block)
        r.expect(f"o{radius}", np.stack([np.convolve(line, taps[::-1])[radius:radius + 150] for line in img.astype(np.float64)]))


@row("transpose through a padded tile")
def _(r, rng):
    for dtype in (np.float32, np.float64, np.int16):
        k = np.dtype(dtype).name
        x = rng.integers(-1000, 1000, (75, 101)).astype(dtype)
        r.arrays_of(**{f"x{k}": x, f"o{k}": np.zeros((101, 75), dtype)})
        r.launch("transpose", "4x3, 32x8", f"o{k}", f"x{k}")
        r.expect(f"o{k}", x.T)


@row("histograms in static and dynamic shared memory")
def _(r, rng):
    data = rng.integers(0, 256, 20011).astype(np.uint8)
    x = rng.uniform(-1.2, 1.2, 5003).astype(np.float32)
    r.arrays_of(data=data, bins=np.zeros(256, np.uint32), x=x, few=np.zeros(37, np.uint32))
    r.launch("histogram256", "5, 96", "bins", "data")
    r.launch("histogram", "3, 50, 148", "few", "x", "-1f32", "1f32")
    r.expect("bins", np.bincount(data, minlength=256))
    b = ((x - np.float32(-1)) * np.float32(37 / np.float32(2))).astype(np.int32)
    r.expect("few", np.bincount(b[(b >= 0) & (b < 37)], minlength=37))


@row("an operation as argument, any rank")
def _(r, rng):
    for number, shape in enumerate([(101,), (7, 19), (3, 4, 5)]):
        x, y = rng.uniform(1, 2, shape), rng.uniform(1, 2, shape)
        r.arrays_of(**{f"x{number}": x, f"y{number}": y, f"o{number}": np.zeros(shape)})
        r.launch("elementwise", "", "rel_diff", f"o{number}", f"x{number}", f"y{number}")
        r.expect(f"o{number}", 2 * (x - y) / (x + y), rtol=1e-14, atol=1e-15)
