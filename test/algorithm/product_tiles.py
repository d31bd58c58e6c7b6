#!/usr/bin/env python3
"""product_tiles.py --kjit-run PROGRAM [--device D]: compares the kernels from which products on GPUs are built with NumPy, also
on the CPU. Shapes are random. The values are integers, so the sums do not depend on the order of additions."""
import argparse
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from share import share_of

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs", "product_tiles.kir")
# Type, rows, columns and depth of a tile, and whether it uses tensor cores, as in the rows of runtime/algorithm/product_plan.c.
TILES = [("f4", 256, 128, 8, False), ("f4", 128, 128, 8, False), ("f4", 128, 64, 16, False), ("f4", 64, 64, 16, False), ("f4", 64, 64, 32, False), ("f8", 128, 64, 16, False), ("f8", 64, 64, 16, False), ("i8", 64, 64, 16, False),
         ("c8", 64, 64, 16, False), ("c16", 64, 64, 8, False), ("c16", 32, 32, 16, False), ("f4", 128, 128, 16, True), ("f4", 64, 64, 16, True), ("f8", 64, 128, 16, True), ("f8", 64, 64, 16, True)]
NAMES = {"f4": "f32", "f8": "f64", "i8": "i64", "c8": "c64", "c16": "c128"}


def run(arguments, folder, name, kind, shape, launches):
    """Tests the parts of the product and their sum with both kernels."""
    parts, batch, m, n = shape
    command = [arguments.kjit_run, KERNELS, "--device", arguments.device, "--quiet", "--arg", f"x=@{folder}/x.npy", "--arg", f"y=@{folder}/y.npy", "--arg", f"c=full:{NAMES[kind]}[{parts}, {batch}, {m}, {n}]:value=7",
               "--arg", f"d=zeros:{NAMES[kind]}[{batch}, {m}, {n}]", "--arg", f"e=zeros:{NAMES[kind]}[{batch}, {m}, {n}]", "--launch", launches, "--launch", "parts(d, c)", "--launch", f"many_parts[{batch * m * n}, 256](e, c)",
               "--save", f"d={folder}/d.npy", "--save", f"e={folder}/e.npy"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"WRONG: {name}: {done.stderr}")
    return np.load(f"{folder}/d.npy"), np.load(f"{folder}/e.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    arguments = parser.parse_args()
    print(f"tiles of products on {arguments.device}, seed {arguments.seed}")
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        for kind, rows, columns, depth, has_mma in share_of(TILES, "product_tiles"):
            batch, parts = (int(v) for v in rng.integers(1, 3, 2))
            m, n, k = (int(v) for v in (rng.integers(1, rows + 20), rng.integers(1, columns + 20), rng.integers(0, 70)))
            x, y = (rng.integers(-9, 10, (batch, *s)).astype(kind) for s in ((m, k), (k, n)))
            if kind[0] == "c":
                x, y = x * (1 + 2j), y * (3 - 1j)
            np.save(f"{folder}/x.npy", x.astype(kind))
            np.save(f"{folder}/y.npy", y.astype(kind))
            want = (x.astype("c16" if kind[0] == "c" else "f8") @ y).astype(kind)
            deep = [str(bool(v)).lower() for v in rng.integers(0, 2, 2)]
            blocks = batch * parts * -(-m // rows) * -(-n // columns)
            ways = {"tiles": f"tiles[{blocks}, 256](c, x, y, {rows}, {columns}, {depth}, {deep[0]}, {deep[1]}, {str(has_mma).lower()})"}
            cluster = int(rng.choice([2, 4, 8]))
            if parts == 1:
                ways["clusters"] = f"cluster_tiles[{cluster * blocks}, 256](c, x, y, {rows}, {columns}, {depth}, {deep[0]}, {deep[1]}, {str(has_mma).lower()}, {cluster})"
            if rng.random() < 0.3:
                ways["warps"] = f"warps[{-(-batch * parts * m * n // 8)}, 256](c, x, y)"
                ways["threads"] = "threads(c, x, y)"
            for way, launches in ways.items():
                title = f"{way} of {kind}, {rows} x {columns} x {depth}, tensor cores {has_mma}, deep {deep}, of ({parts} parts) {batch} x {m} x {k} x {n}"
                for got in run(arguments, folder, title, kind, (parts, batch, m, n), launches):
                    if not np.array_equal(got, want):
                        sys.exit(f"WRONG: {title}: {np.argwhere(got != want)[:3].tolist()}")


if __name__ == "__main__":
    main()
