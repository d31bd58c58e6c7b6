#!/usr/bin/env python3
"""product_tiles.py BIN_DIR: the tiles of lib/library/product_tiles.kir on the first GPU, for the tables of runtime/algorithm/product_plan.c: 4096 x 4096 x 4096, microseconds of each size."""
import argparse
import os
import re
import tempfile

from report import output_of, print_table

SIZE = 4096
TEXT = """import "product_tiles"
func left(g, i, l, x) @inline { return x[i, l] }
func right(g, j, l, y) @inline { return y[l, j] }
func put(p, g, i, j, v, c) @inline { c[i, j] = v }
kernel run(c, x, y, const MMA, const ROWS, const COLUMNS, const DEPTH, const AT_ONCE) @block(256) @launch_bounds(256, AT_ONCE) {
  product_tiles(bind_back(left, x), bind_back(right, y), bind_back(put, c), i32(c.shape[0]), i32(c.shape[1]), i32(x.shape[1]), zero(dtype(c)), 1, ROWS, COLUMNS, DEPTH, true, false, MMA, 1)
}
"""
# Rows, columns, depth, blocks on a multiprocessor.
SIZES = [(256, 128, 8, 1), (128, 256, 8, 1), (128, 128, 8, 1), (128, 128, 16, 1), (128, 128, 16, 2), (64, 128, 16, 2), (128, 64, 16, 2), (64, 64, 16, 2), (64, 64, 16, 3)]
KINDS = [("f32", "false"), ("f32", "true"), ("f64", "false"), ("f64", "true")]


def measure(kjit_run, text, kind, has_mma, size):
    rows, columns, depth, at_once = size
    command = [kjit_run, text, "--device", "cuda", "--quiet", "--bench", "5", "--arg", f"c=zeros:{kind}[{SIZE}, {SIZE}]", "--arg", f"a=rand:{kind}[{SIZE}, {SIZE}]", "--arg",
               f"b=rand:{kind}[{SIZE}, {SIZE}]", "--launch", f"run[{SIZE // rows * (SIZE // columns)}, 256](c, a, b, {has_mma}, {rows}, {columns}, {depth}, {at_once})"]
    try:
        return re.search(r"median ([0-9.]+) us", output_of(command)).group(1)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1][:60]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin_dir")
    arguments = parser.parse_args()
    kjit_run = os.path.join(arguments.bin_dir, "kjit-run")
    device = next((line for line in output_of([kjit_run, "--devices"]).splitlines() if line.startswith("cuda")), "no GPU")
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "tiles.kir")
        with open(text, "w") as file:
            file.write(TEXT)
        rows = [[kind + (" by tensor cores" if has_mma == "true" else ""), " x ".join(map(str, size[:2])), size[2], size[3], measure(kjit_run, text, kind, has_mma, size)] for kind, has_mma in KINDS for size in SIZES]
    print_table(f"Tiles of products, {SIZE} x {SIZE} x {SIZE}", device, ["type", "tile", "depth", "blocks at once", "us"], rows)


if __name__ == "__main__":
    main()
