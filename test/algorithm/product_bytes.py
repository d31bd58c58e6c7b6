#!/usr/bin/env python3
"""product_bytes.py --kjit-run PROGRAM [--device D]: compares the kernels for 8-bit products, and the kernels that use tensor
copies, with NumPy, also on the CPU. Shapes are random. The values are integers, which tensor cores sum without rounding."""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

import small_floats

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "product_bytes.kir")
FORMATS = ["", "e4m3", "e5m2"]
INTEGERS = {"i8": ("i1", -128, 128), "u8": ("u1", 0, 256)}


def draw(rng, kind, shape):
    """Returns the array, and the numbers that its elements represent."""
    if kind in FORMATS:
        return small_floats.pick(rng, kind, shape, 8, whole=True)
    numpy_kind, low, high = INTEGERS[kind]
    x = rng.integers(low, high, shape).astype(numpy_kind)
    return x, x.astype("f8")


def run(arguments, folder, title, sums, shape, launch):
    command = [arguments.kjit_run, KERNELS, "--device", arguments.device, "--quiet", "--arg", f"x=@{folder}/x.npy", "--arg", f"y=@{folder}/y.npy",
               "--arg", f"c=full:{sums}{list(shape)}:value=7", "--launch", launch, "--save", f"c={folder}/c.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"WRONG: {title}: {done.stderr}")
    return np.load(f"{folder}/c.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    arguments = parser.parse_args()
    print(f"products of 8 bits on {arguments.device}, seed {arguments.seed}")
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for kind in [*INTEGERS, *FORMATS[1:]]:
            number, sums = FORMATS.index(kind) if kind in FORMATS else 0, "f32" if kind in FORMATS else "i32"
            for way in ("bytes", "tensor"):
                side, depth = int(rng.choice([64, 128])), int(rng.choice([32, 64]))
                groups, bands = int(rng.integers(1, 3)), int(rng.integers(1, 3 if number else 5))
                batch, parts = (int(v) for v in rng.integers(1, 3, 2))
                m, n, k = int(rng.integers(1, 150)), int(rng.integers(1, 150)), int(rng.integers(1, 400))
                # rows are padded to multiples of 16 bytes, as tensor copies require, with zeros after the K dimension
                length = -(-k // 16) * 16
                x, y = np.zeros((batch, m, length), "u1"), np.zeros((batch, n, length), "u1")
                (own, a), (other, b) = draw(rng, kind, (batch, m, k)), draw(rng, kind, (batch, n, k))
                x[..., :k], y[..., :k] = own.view("u1"), other.view("u1")
                np.save(f"{folder}/x.npy", x.view(own.dtype))
                np.save(f"{folder}/y.npy", y.view(own.dtype))
                if way == "tensor":
                    slices = -(-length // 128)
                    parts = min(parts, slices)
                    stages = int(min(rng.integers(2, 5), -(-slices // parts)))
                    blocks = batch * parts * -(-m // (64 * groups)) * -(-n // (64 * bands))
                    launch = f"tensor[{blocks}, {128 * groups}](c, x, y, {length}, {groups}, {bands}, {stages}, {number}, {128 * groups})"
                else:
                    deep = ", ".join(str(bool(v)).lower() for v in rng.integers(0, 2, 2))
                    blocks = batch * parts * -(-m // side) * -(-n // side)
                    launch = f"bytes[{blocks}, 256](c, x, y, {k}, {side}, {side}, {depth}, {deep}, {number})"
                title = f"{launch} of {kind}, {batch} x {m} x {k} x {n}"
                got = run(arguments, folder, title, sums, (parts, batch, m, n), launch).astype("f8").sum(axis=0)
                want = np.einsum("gil,gjl->gij", a, b)
                if not np.array_equal(got, want):
                    sys.exit(f"WRONG: {title}: {np.argwhere(got != want)[:3].tolist()}")


if __name__ == "__main__":
    main()
