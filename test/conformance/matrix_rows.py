import numpy as np

from rows import row

LANES = np.arange(32)


def fragments(x, count, is_transposed):
    """Lane i has two neighbouring elements in row i // 4 of each matrix or of its transpose."""
    matrices = x.reshape(4, 8, 8)[:count]
    if is_transposed:
        matrices = matrices.transpose(0, 2, 1)
    at = LANES // 4, 2 * (LANES % 4)
    return np.concatenate([np.stack([m[at[0], at[1]], m[at[0], at[1] + 1]], 1) for m in matrices], 1)


@row("ldmatrix and stmatrix: 1, 2 and 4 matrices, as they are and transposed")
def _(r, rng):
    x = rng.integers(-100, 100, (32, 8)).astype(np.float16)
    r.array("x", x)
    for count in (1, 2, 4):
        for suffix in ("", "_trans"):
            k = f"x{count}{suffix}"
            wanted = fragments(x, count, bool(suffix))
            r.arrays_of(**{f"l{k}": np.zeros((32, 2 * count), np.float16), f"s{k}": np.zeros((32, 8), np.float16), f"f{k}": wanted})
            r.launch(f"load_{k}", "1, 32", f"l{k}", "x")
            r.launch(f"store_{k}", "1, 32", f"s{k}", f"f{k}")
            r.expect(f"l{k}", wanted)
            r.expect(f"s{k}", np.where(np.arange(32)[:, None] < 8 * count, x, np.float16(-1)))


@row("arrivals that a phase misses, distances in shared memory, a copy that has been read")
def _(r, rng):
    r.arrays_of(pending=np.zeros(32, np.int32), apart=np.zeros(32, np.int32), rows=np.zeros((4, 32), np.int32))
    r.launch("barrier_words", "1, 32", "pending", "apart")
    r.launch("twice", "1, 32", "rows")
    r.expect("pending", np.arange(40, 8, -1))  # the count before the arrival that returned the token
    r.expect("apart", 8 * (np.arange(32) % 16))
    r.expect("rows", 100 * np.arange(4)[:, None] + np.arange(32))
