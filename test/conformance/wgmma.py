import numpy as np
from mma import KINDS, encode, random_matrix
from rows import ROWS, row

ROWS.clear()  # those of mma.py


def image(kind, matrix, width, is_outside):
    """Returns the bytes of a matrix [other, k] in shared memory, and its two strides: groups of 8 rows with `width`
    bytes each, or 16 bytes without a swizzle. is_outside: the rows run along k."""
    size = KINDS[kind][0] // 8
    lying = matrix.T if is_outside else matrix
    outer, inner = lying.shape
    groups, across = outer // 8, max(1, inner * size // width)
    group_bytes = 8 * width
    # groups of 8 rows, one after the other, followed by the next columns of all groups
    offsets = np.zeros(lying.shape, np.int64)
    for o in range(outer):
        for i in range(inner):
            at = i * size
            linear = at // width * groups * group_bytes + o // 8 * group_bytes + o % 8 * width + at % width
            offsets[o, i] = linear ^ ((linear >> 3) & (width - 16)) if width > 16 else linear
    elements = np.zeros(max(1, across) * groups * group_bytes // size, lying.dtype)
    elements[offsets.reshape(-1) // size] = lying.reshape(-1)
    by_group, by_width = group_bytes, groups * group_bytes
    plain = width == 16
    leading, stride = (by_group, by_width) if is_outside and plain else (by_width, by_group)
    return elements, leading, stride


def describe(kind, kernel, n, width, outside_a, outside_b, result):
    k = 256 // KINDS[kind][0]

    def test(r, rng):
        a, b = random_matrix(kind, (64, k), rng), random_matrix(kind, (k, n), rng)
        ia, la, sa = image(kind, encode(kind, a), width, outside_a)
        ib, lb, sb = image(kind, encode(kind, b.T), width, outside_b)
        r.arrays_of(a=ia.astype(KINDS[kind][1]), b=ib.astype(KINDS[kind][1]), d=np.zeros((64, n), result))
        flags = (str(int(outside_a)), str(int(outside_b))) if KINDS[kind][0] == 16 else ()
        r.launch("of_" + kernel, "1, 128", "d", "a", "b", str(la), str(sa), str(lb), str(sb), str(n), str(0 if width == 16 else width), *flags)
        r.expect("d", (2 * (a @ b)).astype(result))

    return test


# Rows along k are at least as wide as the part that a product reads: 32 bytes.
for width in (16, 32, 64, 128):
    for outside_a in (False, True):
        for outside_b in (False, True):
            row(f"wgmma f16, rows of {width}, k {'outside' if outside_a else 'inside'} and {'outside' if outside_b else 'inside'}")(
                describe("F16", "f16", 64, width, outside_a, outside_b, np.float32))
for n in (8, 24, 128, 256):
    row(f"wgmma f16, n {n}")(describe("F16", "f16", n, 32, False, False, np.float32))
row("wgmma f16 in f16")(describe("F16", "f16_half", 64, 128, False, True, np.float16))
row("wgmma bf16")(describe("BF16", "bf16", 128, 128, False, True, np.float32))
for kind, result in (("TF32", np.float32), ("S8", np.int32), ("U8", np.int32), ("E4M3", np.float32), ("E5M2", np.float32)):
    for width in (16, 32, 128):
        row(f"wgmma {kind.lower()}, rows of {width}")(describe(kind, kind.lower(), 64, width, False, False, result))


@row("wgmma with a fragment, two warpgroups")
def _(r, rng):
    a, b = random_matrix("F16", (128, 16), rng), random_matrix("F16", (16, 32), rng)
    ib, leading, stride = image("F16", b.T.astype(np.float16), 64, True)
    assert (leading, stride) == (1024, 512)
    r.arrays_of(a=a.astype(np.float16), b=ib, d=np.zeros((128, 32), np.float32))
    r.launch("fragment", "1, 256", "d", "a", "b")
    r.expect("d", (a @ b).astype(np.float32))
