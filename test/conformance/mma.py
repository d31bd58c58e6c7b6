import os
import re

import numpy as np
from rows import row

# For each element type: its bits, the NumPy type of the fragment's elements, and whether it is signed (integers).
KINDS = {
    "F16": (16, np.float16), "BF16": (16, np.uint16), "TF32": (32, np.float32), "F32": (32, np.float32), "F64": (64, np.float64), "S8": (8, np.int8), "U8": (8, np.uint8),
    "S4": (4, np.int32), "U4": (4, np.uint32), "B1": (1, np.uint32), "E4M3": (8, np.uint8), "E5M2": (8, np.uint8), "S32": (32, np.int32),
}
SMALL = {"F16", "BF16", "E4M3", "E5M2", "TF32"}


def table():
    """The products for which mma.kir has kernels. If the source tree is available, a test checks that these are all
    products."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "mma.kir")) as file:
        names = re.findall(r"^kernel m(\d+)n(\d+)k(\d+)_(\w+)\(", file.read(), re.MULTILINE)
    found = []
    for m, n, k, rest in names:
        *variant, a, b, c = rest.split("_")
        found.append((int(m), int(n), int(k), "_".join(variant), a.upper(), b.upper(), c.upper()))
    source = os.path.join(here, "../../lib/typing/mma.def")
    if os.path.exists(source):
        with open(source) as file:
            rows = re.findall(r"X\(MMA_M\d+N\d+K\d+_?(\w*), (\d+), (\d+), (\d+), \w+, (\w+), (\w+), (\w+),", file.read())
        rows = [(int(m), int(n), int(k), variant.lower(), a, b, c) for variant, m, n, k, a, b, c in rows]
        assert sorted(found) == sorted(rows), "mma.kir and lib/typing/mma.def differ"
    return found


def random_matrix(kind, shape, rng):
    """Creates values as the instruction reads them. Floats are small integers and halves, so that every sum is
    exact."""
    if kind in ("F32", "F64", "TF32", "F16", "BF16", "E4M3", "E5M2"):
        return rng.integers(-4, 5, shape) * 0.5
    low, high = {"S8": (-128, 128), "U8": (0, 256), "S4": (-8, 8), "U4": (0, 16), "B1": (0, 2), "S32": (-1000, 1000)}[kind]
    return rng.integers(low, high, shape)


def encode(kind, values):
    """Returns the bit patterns or numbers of single elements, before packing."""
    if kind == "BF16":
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if kind == "E5M2":
        return (values.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8)
    if kind == "E4M3":
        bits = (values / 256).astype(np.float16).view(np.uint16)
        return ((bits >> 8 & 0x80) | (bits >> 7 & 0x7F)).astype(np.uint8)
    return values


def pack(kind, elements):
    """Converts the [32, n] elements of the matrix to the [32, n / packed] elements of the fragment."""
    bits, dtype = KINDS[kind]
    packed = 32 // bits if bits < 8 else 1
    if packed == 1:
        return elements.astype(dtype)
    words = (elements.reshape(32, -1, packed).astype(np.int64) & ((1 << bits) - 1)) << (bits * np.arange(packed))
    return words.sum(axis=2).astype(np.uint32).view(dtype)


def operand(kind, matrix):
    """Returns A, or B transposed, as [rows, k], in the layouts of the PTX manual: a register has neighbours along k,
    and a group of 4 lanes has a row. The next registers are 8 rows further down, then further along k."""
    rows, k = matrix.shape
    per = max(1, 32 // KINDS[kind][0])
    lanes = np.zeros((32, rows * k // 32))
    for lane in range(32):
        group, quad = divmod(lane, 4)
        for e in range(lanes.shape[1]):
            register, inner = divmod(e, per)
            tall = rows // 8
            lanes[lane, e] = matrix[group + 8 * (register % tall), quad * per + inner + 4 * per * (register // tall)]
    return lanes


def result(matrix):
    lanes = np.zeros((32, matrix.size // 32))
    for lane in range(32):
        group, quad = divmod(lane, 4)
        for e in range(lanes.shape[1]):
            lanes[lane, e] = matrix[group + 8 * (e // 2), quad * 2 + e % 2]
    return lanes


def product(variant, a, b, c, kind):
    if variant == "xor":
        return c + (a[:, :, None] != b[None, :, :]).sum(axis=1)
    total = c + a @ b
    return np.clip(total, -2**31, 2**31 - 1) if variant == "sat" else total


def describe(m, n, k, variant, ka, kb, kc):
    def test(r, rng):
        a, b, c = random_matrix(ka, (m, k), rng), random_matrix(kb, (k, n), rng), random_matrix(kc, (m, n), rng)
        if variant == "sat":
            c = np.where(rng.integers(0, 2, c.shape) == 1, c + 2**31 - 1000, c - 2**31 + 1000)
        r.arrays_of(a=pack(ka, encode(ka, operand(ka, a))), b=pack(kb, encode(kb, operand(kb, b.T))), c=pack(kc, result(c)), d=np.zeros((32, m * n // 32), KINDS[kc][1]))
        suffix = f"_{variant}" if variant else ""
        r.launch(f"m{m}n{n}k{k}{suffix}_{ka.lower()}_{kb.lower()}_{kc.lower()}", "1, 32", "d", "a", "b", "c")
        r.expect("d", result(product(variant, a, b, c, kc)).astype(KINDS[kc][1]))

    return test


for case in table():
    row("mma m%dn%dk%d %s %s %s %s" % case)(describe(*case))
