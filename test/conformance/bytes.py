import numpy as np
from rows import row


@row("keys, values and counts through the same bytes")
def _(r, rng):
    for k, (key, value, n) in enumerate(((np.uint64, np.float32, 4), (np.uint8, np.float64, 3), (np.int32, np.int32, 1), (np.uint16, np.complex128, 2))):
        size = 64 * n
        keys, values = rng.integers(0, 200, 3 * size).astype(key), rng.integers(-99, 99, 3 * size).astype(value)
        places = np.concatenate([rng.permutation(size) for _ in range(3)]).astype(np.int32)
        names = [f"{name}{k}" for name in ("keys", "values", "counts", "places")]
        r.arrays_of(**dict(zip(names, (keys, values, np.zeros(3 * 64, np.uint32), places))))
        r.launch("permuted", "3, 64", *names, n)
        at = places + size * (np.arange(3 * size) // size)
        moved_keys, moved_values = np.empty_like(keys), np.empty_like(values)
        moved_keys[at], moved_values[at] = keys, values
        r.expect(names[0], moved_keys)
        r.expect(names[1], moved_values)
        digits = (places[::n] % 32).reshape(3, 64)
        r.expect(names[2], np.concatenate([np.tile(np.bincount(d, minlength=32), 2) for d in digits]))


@row("views of the launch's own memory")
def _(r, rng):
    x = rng.standard_normal(64).astype(np.float32)
    r.arrays_of(r=np.zeros(32, np.float64), low=np.zeros(32, np.uint8), x=x)
    r.launch("launched", "1, 32, 384", "r", "low", "x")
    t = np.arange(32)
    r.expect("r", x[31 - t] + x[32 + 4 * (t // 4) + 3 - t % 4].astype(np.float64))
    r.expect("low", x[:32].view(np.uint8)[3::4])


@row("what is written as one type, read as others")
def _(r, rng):
    x = rng.integers(-1000, 1000, 128).astype(np.float32)
    r.arrays_of(sums=np.zeros(32, np.float32), bytes=np.zeros((32, 16), np.uint8), words=np.zeros((32, 2), np.uint64), x=x)
    r.launch("punned", "1, 32", "sums", "bytes", "words", "x")
    r.expect("sums", x.reshape(32, 4).sum(axis=1))
    r.expect("bytes", x.view(np.uint8).reshape(32, 16))
    r.expect("words", np.stack([x.view(np.uint64)[::2], x.view(np.uint32)[2::4]], axis=1))


@row("views of local arrays")
def _(r, rng):
    x = rng.integers(0, 60000, (40, 16)).astype(np.uint16)
    r.arrays_of(out=np.zeros((40, 4), np.uint32), x=x)
    r.launch("own", "5, 8", "out", "x")
    words, i = x.view(np.uint32).copy(), np.arange(40)
    words[i, i % 4 + 1] += 1
    last = words[:, 7]
    r.expect("out", np.stack([words[i, i % 4], words[i, i % 4 + 1], last, words[i, i % 4 + 1] & 0xFFFF], axis=1))
