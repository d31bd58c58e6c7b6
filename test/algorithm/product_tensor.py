#!/usr/bin/env python3
"""product_tensor.py --kjit-run PROGRAM [--device D] [--rounds N]: compares the kernels for products with tensor copies with
NumPy, also on the CPU. Shapes and layouts are random. The values are integers, so the sums do not depend on the order of
additions."""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from share import share_of

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "product_tensor.kir")
SUMS = {"f2": "f32", "f4": "f32", "f8": "f64", "e4m3": "f32", "e5m2": "f32"}
# 8-bit float formats: mantissa bits, exponent bias, and the largest integer up to which every integer is representable.
FORMATS = {"e4m3": (3, 7, 15), "e5m2": (2, 15, 7)}
# Groups, bands, stages, cluster, as in the rows of runtime/algorithm/product_tensor.c.
TENSOR = [(2, 4, 4, 1), (2, 2, 4, 1), (2, 2, 4, 2), (1, 2, 3, 1), (1, 2, 4, 4), (2, 1, 4, 8), (1, 1, 4, 1), (1, 1, 2, 2)]
FORMAT_ROWS = [(2, 2, 4, 1), (1, 2, 8, 1), (2, 1, 4, 4), (1, 1, 4, 2), (1, 2, 3, 1), (1, 1, 2, 2)]
# Rows, columns, tall, wide, stages, cluster.
F64 = [(128, 128, 64, 32, 4, 1), (128, 64, 64, 32, 3, 1), (64, 64, 32, 16, 4, 1), (64, 64, 32, 16, 3, 4), (128, 64, 64, 32, 4, 2)]


def lay_out(x, is_deep, kind):
    """Creates [batch, rows, terms] or [batch, terms, rows]. Rows have multiples of 16 bytes and are padded with zeros."""
    x = x if is_deep else x.transpose(0, 2, 1)
    room = np.zeros((*x.shape[:2], -(-x.shape[2] * np.dtype(kind).itemsize // 16) * 16 // np.dtype(kind).itemsize), kind)
    room[..., :x.shape[2]] = x
    return room


def encode(values, kind):
    """Returns integers in the form that the kernels read: unchanged, or as the bytes of 8-bit floats."""
    if kind not in FORMATS:
        return values.astype(kind)
    mantissa, bias, _ = FORMATS[kind]
    sizes = np.abs(values)
    exponents = np.floor(np.log2(np.maximum(sizes, 1))).astype(int)
    bits = (exponents + bias << mantissa) + (sizes * 2.0 ** (mantissa - exponents) - 2**mantissa).astype(int)
    return (np.where(sizes == 0, 0, bits) + 128 * (values < 0)).astype("u1")


def check(arguments, folder, rng, kind, way, shape, parts, launch, deep, turned):
    batch, m, n, k = shape
    most = FORMATS[kind][2] if kind in FORMATS else 9
    x, y = (rng.integers(-most, most + 1, (batch, *s)) for s in ((m, k), (k, n)))
    for name, factor, is_deep in (("x", x, deep[0]), ("y", y.transpose(0, 2, 1), deep[1])):
        encoded = encode(factor, kind)
        np.save(f"{folder}/{name}.npy", lay_out(encoded, is_deep, encoded.dtype))
    result = [parts, batch, n, m] if turned else [parts, batch, m, n]
    command = [arguments.kjit_run, KERNELS, "--device", arguments.device, "--quiet", "--arg", f"x=@{folder}/x.npy", "--arg", f"y=@{folder}/y.npy", "--arg", f"c=full:{SUMS[kind]}{result}:value=7",
               "--launch", launch, "--save", f"c={folder}/c.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    title = f"{launch} of {kind}, {batch} x {m} x {k} x {n}"
    if done.returncode:
        sys.exit(f"WRONG: {title}: {done.stderr}")
    got, want = np.load(f"{folder}/c.npy").sum(axis=0), x.astype("f8") @ y.astype("f8")
    got = got.transpose(0, 2, 1) if turned else got
    if not np.array_equal(got, want):
        sys.exit(f"WRONG: {title}: {np.argwhere(got != want)[:3].tolist()} of {np.count_nonzero(got != want)}")


def text(*values):
    return ", ".join(str(v).lower() for v in values)


def check_tensor(arguments, folder, rng, row, kind, is_long=False):
    groups, bands, stages, cluster = row
    deep = [kind in FORMATS or bool(rng.integers(0, 2)), kind != "f2" or bool(rng.integers(0, 2))]
    item = 1 if kind in FORMATS else np.dtype(kind).itemsize
    unit = 16 // item
    batch, m, n = int(rng.integers(1, 3)), int(rng.integers(16, 220)), int(rng.integers(16, 300))
    k = int(rng.integers(16, 120 * unit)) if cluster == 1 else int(rng.integers(8 * cluster * unit, 100 * unit))
    if is_long:
        k = 128 // item * int(rng.integers(8 * cluster, 15 * cluster)) + int(rng.integers(1, 129 // item))
    slices = -(-k * item // 128)
    parts = 1 if cluster > 1 else min(int(rng.integers(1, 3)), slices)
    stages = min(stages, -(-slices // max(parts, cluster)))
    turned = bool(rng.integers(0, 2))
    blocks = batch * parts * cluster * -(-m // (64 * groups)) * -(-n // (64 * bands))
    name = "tensor" if cluster == 1 else "tensor_clusters"
    launch = f"{name}[{blocks}, {128 * groups}](c, x, y, {text(k, groups, bands, stages, cluster, turned, *deep, list(FORMATS).index(kind) + 1 if kind in FORMATS else 0)})"
    check(arguments, folder, rng, kind, name, (batch, m, n, k), parts, launch, deep, turned)


def check_f64(arguments, folder, rng, row):
    rows, columns, tall, wide, stages, cluster = row
    deep, turned = [bool(v) for v in rng.integers(0, 2, 2)], bool(rng.integers(0, 2))
    batch, m, n = int(rng.integers(1, 3)), int(rng.integers(16, 220)), int(rng.integers(16, 220))
    k = int(rng.integers(16 * cluster, 300))
    slices = -(-k // 16)
    parts = 1 if cluster > 1 else min(int(rng.integers(1, 3)), slices)
    stages = min(stages, -(-slices // max(parts, cluster)))
    blocks = batch * parts * cluster * -(-m // rows) * -(-n // columns)
    name = "f64s" if cluster == 1 else "f64s_clusters"
    launch = f"{name}[{blocks}, {32 * (rows // tall) * (columns // wide)}](c, x, y, {text(k, *row[:4], stages, cluster, turned, *deep)})"
    check(arguments, folder, rng, "f8", name, (batch, m, n, k), parts, launch, deep, turned)


def check_vectors(arguments, folder, rng, kind):
    batch, m, n, k = (int(v) for v in (rng.integers(1, 3), rng.integers(1, 70), rng.integers(1, 5), rng.integers(0, 3000)))
    parts = int(rng.integers(1, 4))
    launch = f"vectors[{-(-batch * parts * m * n // 8)}, 256](c, x, y, {k}, {int(rng.integers(1, 5))})"
    check(arguments, folder, rng, kind, "vectors", (batch, m, n, k), parts, launch, [True, True], False)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    arguments = parser.parse_args()
    print(f"products by tensor copies on {arguments.device}, seed {arguments.seed}")
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for row in share_of(TENSOR, "product_tensor"):
                check_tensor(arguments, folder, rng, row, str(rng.choice(["f2", "f4"])))
            for kind in FORMATS: # sums of each number of slices; four and more slices are summed in a separate loop
                check_tensor(arguments, folder, rng, FORMAT_ROWS[rng.integers(0, len(FORMAT_ROWS))], kind)
                check_tensor(arguments, folder, rng, FORMAT_ROWS[rng.integers(0, 4)], kind, is_long=True)
            for row in share_of(F64, "product_f64"):
                check_f64(arguments, folder, rng, row)
            for kind in ("f2", "f4", "f8"):
                check_vectors(arguments, folder, rng, kind)


if __name__ == "__main__":
    main()
